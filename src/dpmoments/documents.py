"""A release as a JSON file: versioned, exact to the last bit, and refused when it is damaged or edited by hand."""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import tempfile
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.moment_release import MomentRelease
from dpmoments.noise_law import NoiseLaw
from dpmoments.plain_values import from_plain, to_plain
from dpmoments.privacy.statement import PrivacyStatement
from dpmoments.repair.repair import Repair
from dpmoments.schema.schema import Schema

__all__ = ["check_output", "load", "save_release"]

FORMAT = "dpmoments-release"
FORMAT_VERSION = 1
ENTRIES = {field.name for field in fields(MomentRelease)} - {"noisy_gram"} | {"noisy_gram_upper_triangle"}

FloatArray = npt.NDArray[np.float64]


def check_output(path: str | Path, *, overwrite: bool = False) -> None:
    """Raise unless a file can be written at ``path``; done before any budget is spent.

    Raises
    ------
    FileExistsError
        If there is a file already: overwriting a release would lose what its budget bought.
    OSError
        If the folder does not exist or cannot be written to, or the name cannot be a file's.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist: make it first")
    if _exists(path) and not overwrite:
        raise FileExistsError(_taken(path))
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise PermissionError(f"cannot write in {path.parent}: {error.strerror}; nothing was spent") from error


def save_release(release: MomentRelease, path: str | Path, *, overwrite: bool = False) -> None:
    """Write a release as JSON, all of it or nothing.

    Raises
    ------
    FileExistsError
        If there is a file already and ``overwrite`` is False.
    """
    path = Path(path)
    check_output(path, overwrite=overwrite)
    content = _to_dict(release)
    document = {"format": FORMAT, "version": FORMAT_VERSION, "sha256": _digest(content), "content": content}
    text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
    # Not named after the release: a name may be as long as the file system allows.
    temporary = path.parent / f".dpmoments-{secrets.token_hex(8)}.part"
    try:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        _publish(temporary, path, overwrite)
    finally:
        temporary.unlink(missing_ok=True)
    _flush_folder(path.parent)


def load(path: str | Path) -> MomentRelease:
    """Read a release. No code in the file is ever run.

    Parameters
    ----------
    path : path
        A file written by :meth:`dpmoments.MomentRelease.save`.

    Raises
    ------
    ValueError
        If the file is not a release, is of a version this library does not read, is truncated, or differs from what was
        written (the checksum finds accidents and careless edits; it is not a signature).
    """
    content = _checked_content(path)
    try:
        return _from_dict(content)
    except KeyError as error:
        failure = f"it has no entry {error.args[0]!r}"
    except (TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        failure = str(error)
    raise ValueError(f"{path} does not hold a consistent release: {failure}")


def _checked_content(path: str | Path) -> dict[str, Any]:
    """What the file holds, its format, version and checksum found right. Nothing of another file is quoted."""
    document: Any = None
    try:
        document = json.loads(
            Path(path).read_bytes().decode(),
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
            object_pairs_hook=_without_repeats,
        )
        failure = ""
    except json.JSONDecodeError as error:
        failure = f" ({error.msg}: line {error.lineno} column {error.colno})"
    except _NotAReleaseError as error:
        failure = f" ({error})"
    except (UnicodeDecodeError, ValueError, RecursionError):
        failure = " (its text cannot be read)"
    if failure:
        raise ValueError(f"{path} is not a release: it is damaged or not JSON{failure}")
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{path} is not a dpmoments release")
    version = document.get("version")
    if isinstance(version, bool) or version != FORMAT_VERSION:
        shown = version if isinstance(version, int | str) else "none"
        raise ValueError(f"{path} is a release of file version {shown!r}; this library reads version {FORMAT_VERSION}")
    content = document.get("content")
    if not isinstance(content, dict):
        raise ValueError(f"{path} is not a release: it has no content")
    intact = False
    with suppress(ValueError, RecursionError):
        intact = document.get("sha256") == _digest(content)
    if not intact:
        raise ValueError(f"{path} was changed after it was written, or is damaged: its checksum does not match")
    return content


def _to_dict(release: MomentRelease) -> dict[str, Any]:
    gram = release.noisy_gram
    upper = gram[np.triu_indices(len(gram))]
    return {
        "schema": release.schema.to_dict(),
        "privacy": release.privacy.to_dict(),
        "noise": None if release.noise is None else release.noise.to_dict(),
        "mechanism": release.mechanism,
        "mechanism_options": to_plain(release.mechanism_options),
        "calibration": to_plain(release.calibration),
        "repair": str(release.repair),
        "centered": release.centered,
        "noisy_count": release.noisy_count,
        "noisy_sum": None if release.noisy_sum is None else release.noisy_sum.tolist(),
        "noisy_gram_upper_triangle": upper.tolist(),
        "diagnostics": to_plain(release.diagnostics),
    }


def _from_dict(content: Mapping[str, Any]) -> MomentRelease:
    if unknown := sorted(set(content) - ENTRIES):
        raise ValueError(f"it has unknown entries {', '.join(map(repr, unknown))}")
    schema = Schema.from_dict(content["schema"])
    d = schema.n_features
    upper = _numbers(content["noisy_gram_upper_triangle"], d * (d + 1) // 2, "noisy_gram_upper_triangle")
    gram = np.empty((d, d))
    gram[np.triu_indices(d)] = upper
    gram.T[np.triu_indices(d)] = upper
    count = content["noisy_count"]
    if count is not None and not _is_number(count):
        raise ValueError("noisy_count is not a finite number")
    for name, kind, words in (
        ("centered", bool, "true or false"),
        ("mechanism", str, "a name"),
        ("mechanism_options", dict, "a mapping"),
        ("calibration", dict, "a mapping"),
        ("diagnostics", dict, "a mapping"),
        ("privacy", dict, "a mapping"),
    ):
        if not isinstance(content[name], kind):
            raise TypeError(f"{name} must be {words}")
    if not isinstance(content["privacy"]["rules"], list):
        raise TypeError("the rules of the privacy statement must be a list")
    noisy_sum = content["noisy_sum"]
    return MomentRelease(
        schema=schema,
        privacy=PrivacyStatement.from_dict(content["privacy"]),
        noise=None if content["noise"] is None else _noise_law(content["noise"], d),
        mechanism=content["mechanism"],
        mechanism_options=from_plain(content["mechanism_options"]),
        calibration=from_plain(content["calibration"]),
        repair=Repair.of(content["repair"]),
        centered=content["centered"],
        noisy_count=None if count is None else float(count),
        noisy_sum=None if noisy_sum is None else _numbers(noisy_sum, d, "noisy_sum"),
        noisy_gram=gram,
        diagnostics=from_plain(content["diagnostics"]),
    )


def _noise_law(values: Mapping[str, Any], n_features: int) -> NoiseLaw:
    for name, value in values.items():
        if not (isinstance(value, str) if name == "family" else value is None or (_is_number(value) and value >= 0)):
            raise ValueError(f"{name} of the noise law is not a finite number, 0 or above")
    law = NoiseLaw(**values)
    if law.n_features != n_features:
        raise ValueError(f"the noise law is for {law.n_features} features and the schema has {n_features}")
    if law.diagonal_variance is None or law.off_diagonal_variance is None:
        raise ValueError("the noise law has no variances")
    if law.family in ("matrix-laplace", "wishart") and not law.rate:
        raise ValueError("the noise law has no rate")
    return law


def _numbers(values: object, length: int, name: str) -> FloatArray:
    if not isinstance(values, list) or len(values) != length or not all(map(_is_number, values)):
        raise ValueError(f"{name} must hold {length} finite numbers")
    return np.array(values, dtype=np.float64)


def _is_number(value: object) -> bool:
    """Whether it is a number that float64 holds."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= 2**1023 if isinstance(value, int) else math.isfinite(value)


def _digest(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


class _NotAReleaseError(Exception):
    """The file is JSON of a kind that no release is; the message quotes nothing of it."""


def _refuse_constant(name: str) -> float:
    raise _NotAReleaseError(f"it holds {name}, which no release does")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _NotAReleaseError("it holds a number beyond the range of floating point")
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise _NotAReleaseError("a key stands twice in one entry")
    return entries


def _exists(path: Path) -> bool:
    """Whether there is anything of that name, a broken link among others; a name that cannot be raises."""
    try:
        os.lstat(path)
    except FileNotFoundError:
        return False
    except ValueError:  # a null character
        raise OSError(f"{str(path)!r} cannot be the name of a file; nothing was spent") from None
    return True


def _taken(path: Path) -> str:
    return (
        f"{path} exists already: a release cannot be made again without spending again, so it is not overwritten; "
        "choose another name"
    )


def _publish(temporary: Path, path: Path, overwrite: bool) -> None:
    """Give the finished file its name, in one step."""
    if not overwrite:
        try:
            os.link(temporary, path)  # fails where a file has appeared since it was checked
            return
        except FileExistsError:
            raise FileExistsError(_taken(path)) from None
        except OSError:  # a file system without hard links
            if _exists(path):
                raise FileExistsError(_taken(path)) from None
    os.replace(temporary, path)


def _flush_folder(folder: Path) -> None:
    """Make the new name last through a power cut, where the system can be asked to."""
    with suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
