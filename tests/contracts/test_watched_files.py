"""The watcher sees files that are gone again, and what they held."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from support.watched_files import leaks, watched


@pytest.mark.long
def test_files_are_seen_with_their_contents_and_modes_though_they_are_gone(tmp_path: Path) -> None:
    root = tmp_path / "root"
    root.mkdir()
    (root / "before").write_text("person-1")
    with watched(root) as files:
        (root / "below").mkdir()
        (root / "below" / "short").write_bytes(b"..person-2")
        (root / "below" / "short").chmod(0o604)
        time.sleep(0.1)
        (root / "below" / "short").unlink()
        with (root / "nameless").open("wb") as open_file:
            (root / "nameless").unlink()
            open_file.write(np.array([0.0, 1234.5], ">f8").tobytes())
            open_file.flush()
            time.sleep(0.5)
        (root / "at last").write_bytes(np.array([987654321]).tobytes())
        assert files == []
    assert {(file.path.name, file.mode) for file in files} >= {("short", 0o604)}
    assert {file.path.name for file in files} >= {"short", "nameless (deleted)", "at last"}
    found = leaks(files, ["person-1", "person-2", 1234.5, 987654321, 11.25])
    assert {told.split(" as ")[0] for told in found} == {"'person-2'", "1234.5", "987654321"}
    assert list(tmp_path.iterdir()) == [root]
