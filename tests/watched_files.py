"""Watch folders while something runs: a copy of every file that appears in them, also of one that is gone soon after."""

from __future__ import annotations

import os
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

__all__ = ["WatchedFiles", "watched_files"]

SECONDS_BETWEEN_LOOKS = 0.01


@dataclass
class WatchedFiles:
    """Versions of the files that appeared in some folders.

    Attributes
    ----------
    folders : tuple of Path
    records : list of (Path, int, bytes)
        Path, permission bits and contents; a file that changed is there once for each version that was seen.
    """

    folders: tuple[Path, ...]
    records: list[tuple[Path, int, bytes]] = field(default_factory=list)
    known: dict[Path, tuple[int, int, int]] = field(default_factory=dict)

    def look(self) -> None:
        """Copy what is new, or changed since the last look."""
        for folder in self.folders:
            for parent, _, names in os.walk(folder):
                for name in names:
                    self._copy(Path(parent, name))

    def _copy(self, path: Path) -> None:
        try:
            found = path.lstat()
            version = (found.st_ino, found.st_mtime_ns, found.st_size)
            if not stat.S_ISREG(found.st_mode) or self.known.get(path) == version:
                return
            contents = path.read_bytes()
        except OSError:
            return  # removed meanwhile
        self.records.append((path, stat.S_IMODE(found.st_mode), contents))
        self.known[path] = version


@contextmanager
def watched_files(*folders: Path | str) -> Iterator[WatchedFiles]:
    """Watch folders, and all in them, in a thread of its own; what is there before is not recorded unless it changes."""
    watched = WatchedFiles(tuple(map(Path, folders)))
    watched.look()
    watched.records.clear()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(SECONDS_BETWEEN_LOOKS):
            watched.look()

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield watched
    finally:
        over.set()
        thread.join()
        watched.look()
