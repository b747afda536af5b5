"""JSON documents: written completely or not at all; checked when read.

Refused if damaged or edited by hand.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from dpmoments.base.errors import (
    InputError,
    InputFileExistsError,
    InputFileNotFoundError,
    InputIsADirectoryError,
    InputOSError,
    InputPermissionError,
    InputValueError,
    shown,
)
from dpmoments.base.values import require_known

Result = TypeVar("Result")

_KEEPS_A_RELEASE = (
    "a release cannot be made again without spending again, so it is not overwritten; choose another name"
)
NEVER_OVERWRITTEN = "it is not overwritten; choose another name"
KEEPS_A_FILE = f"{NEVER_OVERWRITTEN}, or pass overwrite=True"
"""Advice if the file exists."""


@dataclass(frozen=True, slots=True)
class DocumentKind:
    """A kind of file."""

    format: str  # identifies the kind inside the file, such as `dpmoments-release`
    version: int  # version of the layout of the content; files of other versions are refused
    noun: str  # name of the content in messages, such as `release`

    def write(self, content: Mapping[str, Any], path: str | Path, *, overwrite: bool = False) -> None:
        """Write a document, completely or not at all; every number in ``content`` must be finite."""
        document = {"format": self.format, "version": self.version, "sha256": _digest(content), "content": content}
        text = json.dumps(document, ensure_ascii=False, allow_nan=False, indent=1)
        write_text(text, path, overwrite=overwrite, taken=_KEEPS_A_RELEASE)


def write_text(text: str, path: str | Path, *, overwrite: bool = False, taken: str = KEEPS_A_FILE) -> None:
    """Write a text completely or not at all; ``taken`` is the advice if the file exists."""
    with whole_file(path, overwrite=overwrite, taken=taken) as temporary:
        descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        with os.fdopen(descriptor, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)


@contextmanager
def whole_file(path: str | Path, *, overwrite: bool = False, taken: str = NEVER_OVERWRITTEN) -> Iterator[Path]:
    """Yield a temporary path whose file gets its final name once it is completely on disk."""
    path = Path(path)
    check_output(path, overwrite=overwrite, taken=taken)
    # The name is not made from the document's, which may already have the greatest length that the file system allows.
    temporary = path.parent / f".dpmoments-{secrets.token_hex(8)}.part"
    try:
        yield temporary
        _flush(temporary, os.O_RDWR)
        publish(temporary, path, overwrite=overwrite)
    except FileExistsError:
        raise _taken(path, taken) from None
    except OSError as error:
        if error.errno is None:  # in words already
            raise
        raise InputOSError(error.errno, os.strerror(error.errno), str(path)) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def read_document(path: str | Path, builders: Mapping[DocumentKind, Callable[[Mapping[str, Any]], Result]]) -> Result:
    """Read a document of one of several kinds and build its content."""
    # No code in the file is ever run, and errors quote no text of foreign files.
    nouns = " or ".join(kind.noun for kind in builders)
    document: Any = None
    failure = ""
    try:
        document = json.loads(
            Path(path).read_bytes().decode(),
            parse_constant=_refuse_constant,
            parse_float=_finite_float,
            object_pairs_hook=_without_repeats,
        )
    except json.JSONDecodeError as error:
        failure = f"{error.msg}: line {error.lineno} column {error.colno}"
    except _NotADocumentError as error:
        failure = str(error)
    except (UnicodeDecodeError, ValueError, RecursionError):
        failure = "its text cannot be read"
    if failure:
        raise InputValueError(f"{path} is not a {nouns}: it is damaged or not JSON ({failure})")
    kind = next(
        (kind for kind in builders if isinstance(document, dict) and document.get("format") == kind.format), None
    )
    if kind is None:
        raise InputValueError(f"{path} is not a dpmoments {nouns}")
    require_known(document, ("format", "version", "sha256", "content"), str(path))
    version = document.get("version")
    if isinstance(version, bool) or version != kind.version:
        stated = version if isinstance(version, int | str) else "none"
        raise InputValueError(
            f"{path} is a {kind.noun} of file version {shown(stated)}; this library reads version {kind.version}"
        )
    content = document.get("content")
    if not isinstance(content, dict):
        raise InputValueError(f"{path} is not a {kind.noun}: it has no content")
    intact = False
    with suppress(ValueError, RecursionError):
        intact = document.get("sha256") == _digest(content)
    if not intact:
        raise InputValueError(f"{path} was changed after it was written, or is damaged: its checksum does not match")

    try:
        return builders[kind](content)
    except KeyError as error:
        failure = str(error) if isinstance(error, InputError) else f"it has no entry {shown(error.args[0])}"
    except (TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as error:
        failure = str(error)
    raise InputValueError(f"{path} does not hold a consistent {kind.noun}: {failure}")


def check_output(path: str | Path, *, overwrite: bool = False, taken: str = _KEEPS_A_RELEASE) -> None:
    """Raise if no file can be written at ``path``; called before any budget is spent."""
    path = Path(path)
    if path.is_dir():
        raise InputIsADirectoryError(f"{path} is a folder: name a file in it")
    if not path.parent.is_dir():
        raise InputFileNotFoundError(f"the folder {path.parent} does not exist: make it first")
    try:
        exists = os.lstat(path) is not None  # also a broken link
    except FileNotFoundError:
        exists = False
    except ValueError:  # a null character
        raise InputOSError(f"{shown(str(path))} cannot be the name of a file; nothing was spent") from None
    if exists and not overwrite:
        raise _taken(path, taken)
    try:
        with tempfile.TemporaryFile(dir=path.parent):
            pass
    except OSError as error:
        raise InputPermissionError(f"cannot write in {path.parent}: {error.strerror}; nothing was spent") from error


def _taken(path: Path, advice: str) -> InputFileExistsError:
    """Return the error of a file that exists."""
    refused = f"{path} exists already: "
    return InputFileExistsError(
        f"{refused}{advice}", shell=refused + advice.replace("pass overwrite=True", "pass --overwrite")
    )


def _digest(content: Mapping[str, Any]) -> str:
    canonical = json.dumps(content, ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(canonical.encode()).hexdigest()


class _NotADocumentError(InputError):
    """JSON that :meth:`DocumentKind.write` never writes; the message quotes no text of the file."""


def _refuse_constant(name: str) -> float:
    raise _NotADocumentError(f"it holds {name}, which is never written")


def _finite_float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise _NotADocumentError("it holds a number beyond the range of floating point")
    return value


def _without_repeats(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    entries = dict(pairs)
    if len(entries) < len(pairs):
        raise _NotADocumentError("a key occurs twice in one entry")
    return entries


def publish(temporary: Path, path: Path, *, overwrite: bool = False) -> None:
    """Move a finished file to its name in one step; raise FileExistsError if that is taken."""
    if overwrite:
        os.replace(temporary, path)
    else:
        try:
            os.link(temporary, path)  # fails if a file has appeared since the check
        except FileExistsError:
            raise
        except OSError:  # a file system without hard links: the name is taken first, by one process alone
            os.close(os.open(path, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
            try:
                os.replace(temporary, path)
            except BaseException:
                path.unlink()  # an empty file with the name would keep the next attempt from it
                raise
    with suppress(OSError):  # the new name survives a power cut, on systems that can flush a folder
        _flush(path.parent, os.O_RDONLY)


def _flush(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
