"""Fetch published files once, check them, and keep them in the user's cache."""

import hashlib
import os
import tempfile
from dataclasses import dataclass
from pathlib import Path

FOLDER_VARIABLE = "DPMOMENTS_DATA"
_TIMEOUT_SECONDS = 30.0
_LARGEST_DOWNLOAD = 64 * 2**20


@dataclass(frozen=True)
class PublishedFile:
    """A file that its publisher does not change: its name, its https address and the md5 of its bytes."""

    name: str
    url: str
    md5: str


def cache_folder() -> Path:
    """Folder of the downloaded files: ``$XDG_CACHE_HOME/dpmoments``, by default ``~/.cache/dpmoments``."""
    configured = os.environ.get("XDG_CACHE_HOME", "")
    # The XDG specification asks that a relative path be ignored.
    base = Path(configured) if os.path.isabs(configured) else Path.home() / ".cache"
    return base / "dpmoments"


def find_local(file: PublishedFile) -> bytes | None:
    """Bytes of the file from ``DPMOMENTS_DATA`` or the cache, checked; None where neither holds it.

    Raises
    ------
    NotADirectoryError
        If ``DPMOMENTS_DATA`` is set to something that is not a folder.
    ValueError
        If a file of that name is there and its md5 is wrong.
    """
    folders = [cache_folder()]
    chosen = os.environ.get(FOLDER_VARIABLE)
    if chosen:
        if not Path(chosen).is_dir():
            raise NotADirectoryError(
                f"{FOLDER_VARIABLE} is set to {chosen!r}, which is not a folder; name the folder that holds "
                f"{file.name}, or unset the variable"
            )
        folders.insert(0, Path(chosen))
    for folder in folders:
        path = folder / file.name
        if path.is_file():
            content = path.read_bytes()
            _check(file, content, str(path), "remove it, or put the published file in its place")
            return content
    return None


def load(file: PublishedFile) -> bytes:
    """Bytes of the file: from ``DPMOMENTS_DATA``, else the cache, else its publisher (and then cached).

    Raises
    ------
    NotADirectoryError, ValueError
        As `find_local`; and ValueError if the downloaded bytes have the wrong md5 (nothing is then stored).
    ConnectionError
        If the file cannot be downloaded. The message says where to put it by hand.
    OSError
        If the cache cannot be written.
    """
    content = find_local(file)
    if content is None:
        content = _download(file)
        _check(file, content, file.url, "nothing was stored; try again later, or place the file by hand")
        _store(cache_folder() / file.name, content)
    return content


def _check(file: PublishedFile, content: bytes, where: str, advice: str) -> None:
    md5 = hashlib.md5(content, usedforsecurity=False).hexdigest()
    if md5 != file.md5:
        raise ValueError(f"{where} is not the published {file.name}: its md5 is {md5}, expected {file.md5}; {advice}")


def _download(file: PublishedFile) -> bytes:
    import http.client
    import urllib.request

    try:
        with urllib.request.urlopen(file.url, timeout=_TIMEOUT_SECONDS) as response:
            # The limit keeps an endless answer from filling the memory; an answer that it cuts fails the md5 check.
            content: bytes = response.read(_LARGEST_DOWNLOAD)
    except (OSError, http.client.HTTPException) as error:
        raise ConnectionError(
            f"could not download {file.url} ({error}). Get {file.name} by other means and place it at "
            f"{cache_folder() / file.name}, or set {FOLDER_VARIABLE} to a folder that holds it"
        ) from error
    return content


def _store(path: Path, content: bytes) -> None:
    """Write under a temporary name in the same folder, then rename: no reader ever sees half a file."""
    temporary = None
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False) as handle:
            temporary = Path(handle.name)
            handle.write(content)
        temporary.replace(path)
    except OSError as error:
        if temporary is not None:
            temporary.unlink(missing_ok=True)
        raise OSError(
            f"could not store {path} ({error}); set XDG_CACHE_HOME to a folder that can be written, or place "
            f"the file in a folder of your own and name that in {FOLDER_VARIABLE}"
        ) from error
