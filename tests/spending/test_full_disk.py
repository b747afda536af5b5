"""A disk that is full: what cannot be written is named, nothing is half-written, and nobody is asked to report it."""

from __future__ import annotations

import errno
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm
from dpmoments.cli import main

pytestmark = pytest.mark.long

FULL = Path("/dev/full")
PREFLIGHT = ["preflight", "people.parquet", "--schema", "people.yaml"]
RELEASE = ["release", "people.parquet", "--schema", "people.yaml", "--epsilon", "1", "--neighbors", "add_remove"]
WRITES: dict[str, list[str]] = {
    "report": ["report", "people.json", "--output", "new.html"],
    "synthetic.csv": ["synthetic", "people.json", "-n", "10", "--output", "new.csv"],
    "synthetic.parquet": ["synthetic", "people.json", "-n", "10", "--output", "new.parquet"],
    "init": ["init", "people.parquet", "--output", "new.yaml"],
    "pool": ["pool", "people.json", "other.json", "--output", "new.json"],
    "forecast": [
        *("forecast", "--schema", "people.yaml", "--n-rows", "1000", "--epsilon", "1", "--neighbors", "add_remove"),
        *("--html", "new.html"),
    ],
}
PRINTS = {
    "preflight": PREFLIGHT,
    "version": ["--version"],
    "ledger": ["ledger", "show", "budget.db", "--json"],
    "release": [*RELEASE, "--output", "new.json"],
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    table = pa.table({"age": rng.uniform(20, 60, 500), "level": rng.choice(["a", "b"], 500)})
    schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Categorical("level", ["a", "b"]))
    pq.write_table(table, "people.parquet")
    schema.save("people.yaml")
    for name in ("people", "other"):
        dpm.release(table, schema, epsilon=1.0, dataset=name, output=f"{name}.json")
    dpm.Ledger("budget.db").grant("people", epsilon=1.0)
    return tmp_path


def refuse(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.skipif(not FULL.exists(), reason="no device that is always full")
@pytest.mark.parametrize("command", PRINTS.values(), ids=PRINTS)
def test_standard_output_on_a_full_disk(folder: Path, command: list[str]) -> None:
    with FULL.open("w") as full:
        done = subprocess.run(
            [sys.executable, "-m", "dpmoments", *command], stdout=full, stderr=subprocess.PIPE, text=True
        )
    *before, said = done.stderr.splitlines()
    assert done.returncode == 1
    assert said.startswith(f"dpmoments: standard output cannot be written: {os.strerror(errno.ENOSPC)}")
    assert not any("report this" in line or "Traceback" in line or "Exception" in line for line in (*before, said))
    if command[0] == "release":
        assert dpm.load(folder / "new.json").n_rows


@pytest.mark.parametrize("command", WRITES.values(), ids=WRITES)
def test_a_file_on_a_full_disk_is_named_and_not_left_half_written(
    folder: Path, command: list[str], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    before = set(folder.iterdir())
    monkeypatch.setattr("dpmoments.base.documents.os.fsync", refuse)
    assert main(command) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert said.startswith(f"dpmoments: {command[-1]}: {os.strerror(errno.ENOSPC)}")
    assert set(folder.iterdir()) == before
    monkeypatch.undo()
    os.chdir(folder)
    assert main(command) == 0
    assert [path.name for path in set(folder.iterdir()) - before] == [command[-1]]


LIMITED = """\
import resource, signal, sys
from dpmoments.cli import main
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (200, resource.RLIM_INFINITY))
sys.exit(main(sys.argv[1:]))
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="no limit on the size of files")
@pytest.mark.parametrize("command", [WRITES["report"], WRITES["synthetic.parquet"]])
def test_the_operating_system_s_own_refusal_reads_the_same(folder: Path, command: list[str]) -> None:
    before = set(folder.iterdir())
    # Without -B Python would write compiled modules under the same limit, and leave broken ones to every later process.
    done = subprocess.run([sys.executable, "-B", "-c", LIMITED, *command], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1].startswith(f"dpmoments: {command[-1]}: {os.strerror(errno.EFBIG)}")
    assert set(folder.iterdir()) == before


@pytest.mark.usefixtures("folder")
def test_a_full_disk_inside_a_pass_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """An engine that spills, say: no file is known, and the message of the error may hold anything."""

    def spill(*_: Any, **__: Any) -> None:
        raise OSError(errno.ENOSPC, "[Errno 28] while writing 'a cell'")

    monkeypatch.setattr(sys.modules["dpmoments.planning.preflight"], "survey_table", spill)
    assert main(PREFLIGHT) == 1
    said = capsys.readouterr().err.splitlines()[-1]
    assert os.strerror(errno.ENOSPC) in said
    assert tempfile.gettempdir() in said
    assert "a cell" not in said
    assert "report this" not in said


def test_a_release_that_can_be_kept_nowhere_is_said_to_be_spent(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("dpmoments.base.documents.os.fsync", refuse)
    assert main([*RELEASE, "--output", "new.json"]) == 1
    said = capsys.readouterr().err
    assert os.strerror(errno.ENOSPC) in said
    assert "the whole cost counts as spent" in said
    assert not (folder / "new.json").exists()
