"""A release as a JSON file: versioned, exact to the last bit, and refused when it is damaged or edited by hand."""

from __future__ import annotations

import hashlib
import json
import math
import os
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.analysis.repair import Repair
from dpmoments.moment_release import MomentRelease
from dpmoments.noise_law import NoiseLaw
from dpmoments.privacy.statement import PrivacyStatement
from dpmoments.schema import Schema

__all__ = ["check_output", "load", "save_release"]

FORMAT = "dpmoments-release"
FORMAT_VERSION = 1

FloatArray = npt.NDArray[np.float64]


def check_output(path: str | Path, *, overwrite: bool = False) -> None:
    """Raise unless a file can be written at ``path``; done before any budget is spent.

    Raises
    ------
    FileExistsError
        If there is a file already: overwriting a release would lose what its budget bought.
    OSError
        If the folder does not exist or cannot be written to.
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file in it")
    if path.exists() and not overwrite:
        raise FileExistsError(
            f"{path} exists already: a release cannot be made again without spending again, so it is not overwritten; "
            "choose another name"
        )
    if not path.parent.is_dir():
        raise FileNotFoundError(f"the folder {path.parent} does not exist: make it first")
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
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.", suffix=".part")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        # mkstemp makes files that only their owner reads; a release is meant to be published
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except BaseException:
        Path(temporary).unlink(missing_ok=True)
        raise


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
    try:
        document = json.loads(Path(path).read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        # JSONDecodeError names a place; other errors quote the file, which is private where a table was named by mistake
        place = f" ({error})" if isinstance(error, json.JSONDecodeError) else ""
        raise ValueError(f"{path} is not a release: it is damaged or not JSON{place}") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise ValueError(f"{path} is not a dpmoments release")
    if document.get("version") != FORMAT_VERSION:
        raise ValueError(
            f"{path} is a release of file version {document.get('version')!r}; this library reads version {FORMAT_VERSION}"
        )
    content = document.get("content")
    if not isinstance(content, dict):
        raise ValueError(f"{path} is not a release: it has no content")
    try:
        intact = document.get("sha256") == _digest(content)
    except (ValueError, RecursionError):  # a number beyond floating point: no release has one
        intact = False
    if not intact:
        raise ValueError(f"{path} was changed after it was written, or is damaged: its checksum does not match")
    try:
        return _from_dict(content)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ValueError(f"{path} does not hold a consistent release: {error}") from error


def _to_dict(release: MomentRelease) -> dict[str, Any]:
    gram = release.noisy_gram
    upper = gram[np.triu_indices(len(gram))]
    return {
        "schema": release.schema.to_dict(),
        "privacy": release.privacy.to_dict(),
        "noise": None if release.noise is None else release.noise.to_dict(),
        "mechanism": release.mechanism,
        "mechanism_options": _plain(release.mechanism_options),
        "calibration": _plain(release.calibration),
        "repair": str(release.repair),
        "centered": release.centered,
        "noisy_count": release.noisy_count,
        "noisy_sum": None if release.noisy_sum is None else release.noisy_sum.tolist(),
        "noisy_gram_upper_triangle": upper.tolist(),
        "diagnostics": _plain(release.diagnostics),
    }


def _from_dict(content: Mapping[str, Any]) -> MomentRelease:
    schema = Schema.from_dict(content["schema"])
    d = schema.n_features
    upper = _finite(content["noisy_gram_upper_triangle"], d * (d + 1) // 2, "noisy_gram_upper_triangle")
    gram = np.zeros((d, d))
    gram[np.triu_indices(d)] = upper
    gram = np.triu(gram) + np.triu(gram, 1).T
    count = content["noisy_count"]
    if count is not None and not (isinstance(count, int | float) and math.isfinite(count)):
        raise ValueError("noisy_count is not a finite number")
    if not isinstance(content["centered"], bool):
        raise TypeError("centered must be true or false")
    noisy_sum = content["noisy_sum"]
    return MomentRelease(
        schema=schema,
        privacy=PrivacyStatement.from_dict(content["privacy"]),
        noise=None if content["noise"] is None else _noise_law(content["noise"]),
        mechanism=str(content["mechanism"]),
        mechanism_options=_restored(content["mechanism_options"]),
        calibration=_restored(content["calibration"]),
        repair=Repair.of(content["repair"]),
        centered=content["centered"],
        noisy_count=None if count is None else float(count),
        noisy_sum=None if noisy_sum is None else _finite(noisy_sum, d, "noisy_sum"),
        noisy_gram=gram,
        diagnostics=_restored(content["diagnostics"]),
    )


def _noise_law(values: Mapping[str, Any]) -> NoiseLaw:
    for name, value in values.items():
        is_number = isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
        if not (isinstance(value, str) if name == "family" else value is None or is_number):
            raise ValueError(f"{name} of the noise law is not a finite number")
    return NoiseLaw(**values)


def _finite(values: object, length: int, name: str) -> FloatArray:
    array = np.asarray(values, dtype=np.float64)
    if array.shape != (length,) or not np.isfinite(array).all():
        raise ValueError(f"{name} must hold {length} finite numbers")
    return array


def _plain(value: Any) -> Any:
    """JSON values; arrays keep their shape under a key of their own."""
    if isinstance(value, np.ndarray):
        return {"array": value.tolist()}
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, Mapping):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"float": repr(value)}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    raise TypeError(f"a release cannot hold a {type(value).__name__}")


def _restored(value: Any) -> Any:
    if isinstance(value, dict):
        if set(value) == {"array"}:
            return np.asarray(value["array"])
        if set(value) == {"float"}:
            return float(value["float"])
        return {key: _restored(entry) for key, entry in value.items()}
    return [_restored(entry) for entry in value] if isinstance(value, list) else value


def _digest(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _refuse_constant(name: str) -> float:
    raise ValueError(f"it holds {name}, which no release does")


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
