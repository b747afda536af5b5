"""A watcher of the files that something writes: their paths, modes and contents, also of files that live for milliseconds.

>>> with tempfile.TemporaryDirectory() as folder, watched(folder) as files:
...     _ = (Path(folder) / "t").write_text("person-17")
>>> [leak for leak in leaks(files, secrets=["person-18", 123.25])]
[]
"""

from __future__ import annotations

import os
import stat
import struct
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

__all__ = ["WatchedFile", "forms", "leaks", "watched"]

SECONDS_BETWEEN_LOOKS = 0.002
LOOKS_PER_LOOK_AT_HANDLES = 50
WORD = 8
MOST_BYTES = 1 << 28
"""Of the contents of one file that are kept."""
SMALL = 1 << 20
"""Files of so many bytes are read at every change, larger ones at the end."""


@dataclass(frozen=True)
class WatchedFile:
    """A file that was made, or changed, while it was watched."""

    path: Path
    mode: int  # permissions, such as 0o600
    contents: bytes  # all that was seen: at its end, or as it was deleted; of a small file also after each change


@contextmanager
def watched(*folders: str | Path, links: bool = True) -> Iterator[list[WatchedFile]]:
    """Watch all files in folders and below; the list is filled when the block ends.

    Each file is given a second name, in a folder beside the first, as soon as it is seen, so that its contents outlive it. Files
    that have no name any more, but are open in this process or one that it started, are read there. A file that lives for a few
    milliseconds may be missed. Without ``links`` a copy is made instead: a ledger refuses to be a file of two names.
    """
    files: list[WatchedFile] = []
    roots = [Path(folder).resolve() for folder in folders]
    with tempfile.TemporaryDirectory(dir=roots[0].parent, prefix="watcher-") as kept:
        watcher = _Watcher(roots, Path(kept), links=links)
        thread = threading.Thread(target=watcher.run, daemon=True)
        thread.start()
        try:
            yield files
        finally:
            watcher.stopped.set()
            thread.join()
            files += watcher.found()
    if watcher.failed:
        raise watcher.failed[0]


class _Watcher:
    def __init__(self, roots: list[Path], kept: Path, *, links: bool) -> None:
        self.stopped = threading.Event()
        self.failed: list[BaseException] = []
        self._roots, self._kept, self._may_link = roots, kept, links
        self._seen: dict[tuple[str, int], tuple[int, int]] = {}
        self._links: dict[tuple[str, int], tuple[int, Path, list[bytes]]] = {}
        for path, about in self._files():
            self._seen[path, about.st_ino] = (about.st_mtime_ns, about.st_size)

    def run(self) -> None:
        try:
            number = 0
            while not self.stopped.wait(SECONDS_BETWEEN_LOOKS):
                self._look()
                if number % LOOKS_PER_LOOK_AT_HANDLES == 0:
                    self._look_at_handles()
                number += 1
            self._look()
        except BaseException as error:  # told by the thread that waits
            self.failed.append(error)

    def found(self) -> list[WatchedFile]:
        files = []
        for (path, _), (mode, link, contents) in self._links.items():
            last = _contents(link)
            files.append(
                WatchedFile(Path(path), mode, b"".join([*contents, last] if last not in contents else contents))
            )
        return files

    def _files(self) -> Iterator[tuple[str, os.stat_result]]:
        waiting = [str(root) for root in self._roots]
        while waiting:
            with suppress(OSError), os.scandir(waiting.pop()) as entries:
                for entry in entries:
                    with suppress(OSError):
                        if entry.is_dir(follow_symlinks=False):
                            if Path(entry.path) != self._kept:
                                waiting.append(entry.path)
                        elif entry.is_file(follow_symlinks=False):
                            yield entry.path, os.lstat(entry.path)

    def _look(self) -> None:
        for path, about in self._files():
            key, state = (path, about.st_ino), (about.st_mtime_ns, about.st_size)
            if self._seen.get(key) != state:
                self._seen[key] = state
                self._keep(key, path, about, nameless=False)

    def _look_at_handles(self) -> None:
        inside = tuple(f"{root}{os.sep}" for root in self._roots)
        for handle in (handle for process in _descendants() for handle in _listed(Path(f"/proc/{process}/fd"))):
            with suppress(OSError):
                target = os.readlink(handle)
                if target.startswith(inside) and target.endswith(" (deleted)"):
                    about = os.stat(handle)
                    key, state = (target, about.st_ino), (about.st_mtime_ns, about.st_size)
                    if stat.S_ISREG(about.st_mode) and self._seen.get(key) != state:
                        self._seen[key] = state
                        self._keep(key, str(handle), about, nameless=True)

    def _keep(self, key: tuple[str, int], path: str, about: os.stat_result, *, nameless: bool) -> None:
        mode = stat.S_IMODE(about.st_mode)
        if key not in self._links:
            link = self._kept / str(len(self._links))
            if not nameless and self._may_link:
                with suppress(OSError):  # it is gone already: its name and mode are known
                    os.link(path, link)
            self._links[key] = (mode, link, [])
        _, link, contents = self._links[key]
        if nameless:
            contents[:] = [_contents(Path(path))]
        elif about.st_size <= SMALL:  # it may be written anew under its name
            contents.append(_contents(link if self._may_link else Path(path)))


def _descendants() -> Iterator[int]:
    """Yield this process, and all that it started."""
    waiting = [os.getpid()]
    while waiting:
        process = waiting.pop()
        yield process
        for thread in _listed(Path(f"/proc/{process}/task")):
            waiting += map(int, _contents(thread / "children").split())


def _listed(folder: Path) -> list[Path]:
    with suppress(OSError):
        return list(folder.iterdir())
    return []


def _contents(path: Path) -> bytes:
    with suppress(OSError), path.open("rb") as file:
        return file.read(MOST_BYTES)
    return b""


def forms(secret: str | float) -> dict[str, bytes]:
    """Return how a secret may be written: as text, and a number in eight bytes, either end first."""
    found = {"text": str(secret).encode(), "UTF-16": str(secret).encode("utf-16-le")}
    if not isinstance(secret, str):
        for end, sign in (("little", "<"), ("big", ">")):
            found[f"float64, {end} end first"] = struct.pack(f"{sign}d", float(secret))
            if float(secret).is_integer() and abs(secret) < 2**63:
                found[f"int64, {end} end first"] = struct.pack(f"{sign}q", int(secret))
    return found


def leaks(files: Iterable[WatchedFile], secrets: Iterable[str | float]) -> list[str]:
    """Return which secrets are in which files, in words; secrets should be long enough not to be met by chance."""
    wanted: dict[int, list[tuple[bytes, str]]] = {}
    for secret in secrets:
        for form, written in forms(secret).items():
            if len(written) >= WORD:  # less is met by chance
                word = int.from_bytes(written[:WORD], "little")
                wanted.setdefault(word, []).append((written, f"{secret!r} as {form}"))
    first_words = np.sort(np.array(list(wanted), np.uint64))
    return [
        f"{told} in {file.path} (mode {file.mode:o})"
        for file in files
        for start in _places(file.contents, first_words)
        for written, told in wanted[int.from_bytes(file.contents[start : start + WORD], "little")]
        if file.contents.startswith(written, start)
    ]


def _places(contents: bytes, first_words: npt.NDArray[np.uint64]) -> Iterator[int]:
    """Yield where one of these words stands."""
    for offset in range(min(WORD, len(contents) - WORD + 1)):
        words = np.frombuffer(contents, np.uint64, (len(contents) - offset) // WORD, offset)
        filled = np.flatnonzero(words)
        index = np.searchsorted(first_words, words[filled])
        met = first_words[np.minimum(index, len(first_words) - 1)] == words[filled]
        yield from (filled[met] * WORD + offset).tolist()
