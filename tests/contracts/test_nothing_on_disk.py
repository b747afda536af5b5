"""While a local table is read, nothing that depends on a record reaches a disk but the release."""

from __future__ import annotations

import json
import os
import sqlite3
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.cli import main
from dpmoments.estimators import DPCovariance
from dpmoments.privacy.ledger import Ledger
from dpmoments.rows.rows import Rows
from support.table_forms import FILES, FORMS, csv_text, write
from support.watched_files import WatchedFile, leaks, watched

pytestmark = pytest.mark.long(sets=None)

N_ROWS = 3000
SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100, missing="center"),
    dpm.Categorical("region", ["north", "south"], missing="zero", other="zero"),
)
NUMBERS = dpm.Schema(dpm.Numeric("age", 0, 100, missing="center"), dpm.Numeric("height", 100, 250, missing="center"))
SCHEMA_TEXT = """
columns:
  - {name: age, kind: numeric, lower: 0, upper: 100, missing: center}
  - {name: region, kind: categorical, levels: [north, south], missing: zero, other: zero}
"""
UNIT = dpm.PrivacyUnit("person", 2)
CSV_FORMAT = dpm.TextFormat(encoding="utf-16", delimiter=";", decimal=",")


def private_table(seed: int) -> pa.Table:
    """A table whose every cell can be told from all others."""
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": rng.uniform(10, 90, N_ROWS),
            "height": rng.uniform(110, 240, N_ROWS),
            "region": [f"secret region {seed}-{place}" if place % 7 == 0 else "north" for place in range(N_ROWS)],
            "person": [f"secret person {seed}-{place // 3}" for place in range(N_ROWS)],
        }
    )


def secrets_of(table: pa.Table) -> list[str | float]:
    """Cells, ids, and exact sums."""
    held = table.to_pydict()
    sums = [float(np.sum(held[name])) for name in ("age", "height")]
    return [*held["age"], *held["height"], *sums, *dict.fromkeys(held["person"]), *(set(held["region"]) - {"north"})]


def utf16(folder: Path, table: pa.Table) -> Path:
    text = csv_text(table).decode().replace(",", ";").replace(".", ",")
    return write(folder / "t.csv", text.encode("utf-16"))


def with_temp_directory(table: pa.Table) -> Any:
    connection = duckdb.connect(config={"temp_directory": tempfile.gettempdir(), "memory_limit": "200MB", "threads": 1})
    return connection.from_arrow(table)


IN_MEMORY = {name: FORMS[name] for name in ("arrow", "pandas", "pandas of arrow", "polars", "polars lazy", "arrow dataset")} | {
    "pandas of objects": lambda table: table.to_pandas().astype(object), "duckdb": with_temp_directory,
}  # fmt: skip
ON_DISK = {name: FILES[name] for name in ("parquet", "feather", "csv", "csv gz")} | {"csv utf-16": utf16}


def made(form: str, table: pa.Table, folder: Path) -> Any:
    return ON_DISK[form](folder, table) if form in ON_DISK else IN_MEMORY[form](table)


class Place:
    """Folders in which a process may write: that of temporary files, the current one, home, and that of results."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.root = folder / "watched"
        self.data = folder / "data"
        self.out = self.root / "out"
        for path in (self.data, self.out, *(self.root / name for name in ("tmp", "here", "home", "cache"))):
            path.mkdir(parents=True)
        for name in ("TMPDIR", "TMP", "TEMP"):
            monkeypatch.setenv(name, str(self.root / "tmp"))
        monkeypatch.setenv("HOME", str(self.root / "home"))
        monkeypatch.setenv("XDG_CACHE_HOME", str(self.root / "cache"))
        monkeypatch.setattr(tempfile, "tempdir", None)
        tempfile.gettempdir()  # tries the folder once, by a file of its own
        monkeypatch.chdir(self.root / "here")

    def seen(self, run: Callable[[], Any]) -> list[WatchedFile]:
        with watched(self.root, links=False) as files:
            run()
        return files

    def written(self, files: list[WatchedFile]) -> set[str]:
        """Names of the files that were made, relative to the folders; a file under way to a name is that name's."""
        names = set()
        for file in files:
            name = str(file.path).removesuffix(" (deleted)").removeprefix(f"{self.root.resolve()}{os.sep}")
            names.add("a part" if name.endswith(".part") or ".part-" in name else name)
        return names


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    return Place(tmp_path, monkeypatch)


@pytest.mark.long(sets=7)
@pytest.mark.parametrize("kind", ["rows", "units", "groups", "preflight"])
@pytest.mark.parametrize("form", [*IN_MEMORY, *ON_DISK])
def test_reading_a_table_writes_nothing(form: str, kind: str, place: Place) -> None:
    table = private_table(1)
    data = made(form, table, place.data)
    options: dict[str, Any] = {"text_format": CSV_FORMAT} if form == "csv utf-16" else {}
    by = dpm.Schema(
        dpm.Numeric("age", 0, 100, missing="center"), dpm.Categorical("region", ["north", "south"], missing="zero")
    )
    runs: dict[str, Callable[[], Any]] = {
        "rows": lambda: dpm.release(data, SCHEMA, epsilon=1.0, **options),
        "units": lambda: dpm.release(data, SCHEMA, epsilon=1.0, privacy_unit=UNIT, **options),
        "groups": lambda: dpm.release_groups(data, by, by="region", epsilon=1.0, **options),
        "preflight": lambda: dpm.preflight(data, SCHEMA, privacy_unit=UNIT, **options),
    }
    assert place.written(place.seen(runs[kind])) == set()


def test_arrays_estimators_and_means_write_nothing(place: Place) -> None:
    table = private_table(2)
    array = np.column_stack([table["age"], table["height"]])

    def run() -> None:
        dpm.release(array, NUMBERS, epsilon=1.0)
        dpm.release(array.astype(object), NUMBERS, epsilon=1.0)
        dpm.release_mean(array, NUMBERS, rho=1.0)
        DPCovariance(schema=NUMBERS, epsilon=1.0).fit(array.tolist())
        DPCovariance(schema=NUMBERS, epsilon=1.0).fit(pd.DataFrame(array, columns=["age", "height"]))

    assert place.written(place.seen(run)) == set()


COMMANDS = {
    "release": "release --epsilon 1 --output OUT/r.json",
    "release of units": "release --epsilon 1 --privacy-unit person --max-rows-per-unit 2 --output OUT/r.json",
    "release of groups": "release --epsilon 1 --by region --output OUT/r.json",
    "release of means": "release-mean --rho 1 --output OUT/r.json",
    "release of counts": "release-counts --epsilon 1 --by region --output OUT/r.json",
    "preflight": "preflight",
}


@pytest.mark.long
@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("form", ["parquet", "feather", "csv", "csv gz"])
def test_a_command_writes_the_release_alone(
    form: str, command: str, place: Place, capsys: pytest.CaptureFixture[str]
) -> None:
    table = private_table(3)
    path = made(form, table, place.data)
    (place.data / "people.yaml").write_text(SCHEMA_TEXT)
    verb, *rest = COMMANDS[command].replace("OUT", str(place.out)).split()
    arguments = [verb, str(path), "--schema", str(place.data / "people.yaml"), *rest]
    files = place.seen(lambda: main([*arguments, *(["--neighbors", "add_remove"] if rest else [])]))
    capsys.readouterr()
    assert place.written(files) - {"a part"} == ({"out/r.json"} if rest else set())
    assert leaks(files, secrets_of(table)) == []
    assert all(not file.mode & 0o022 for file in files)


def test_a_report_is_of_the_release_alone(place: Place, capsys: pytest.CaptureFixture[str]) -> None:
    table = private_table(4)
    dpm.release(table, SCHEMA, epsilon=1.0).save(place.data / "r.json")
    files = place.seen(lambda: main(["report", str(place.data / "r.json"), "--output", str(place.out / "r.html")]))
    capsys.readouterr()
    assert leaks(files, secrets_of(table)) == []
    assert "out/r.html" in place.written(files)


def entries(path: Path) -> list[dict[str, Any]]:
    """Of a ledger, without what is drawn or told by the clock."""
    with sqlite3.connect(path) as connection:
        found = [json.loads(entry) for (entry,) in connection.execute("SELECT entry FROM history ORDER BY number")]
    for entry in found:
        del entry["time"]
        entry["content"].pop("release", None)
    return found


def test_a_ledger_depends_on_no_cell(place: Place) -> None:
    """Two tables that have nothing in common, and one of no rows, leave the same entries."""
    found = []
    for number, table in enumerate((private_table(5), private_table(6), private_table(5).slice(0, 0))):
        ledger = Ledger(place.out / f"{number}.db")
        ledger.grant("people", epsilon=9.0, neighbors="add_remove")

        def run(table: pa.Table = table, ledger: Ledger = ledger) -> None:
            dpm.release(table, SCHEMA, epsilon=1.0, ledger=ledger, dataset="people")
            dpm.release(table, SCHEMA, epsilon=1.0, mechanism="standardized", ledger=ledger, dataset="people")

        files = place.seen(run)
        assert {name for name in place.written(files) if not name.startswith(f"out/{number}.db")} == set()
        assert leaks(files, secrets_of(private_table(5 + number % 2))) == []
        assert all(not file.mode & 0o022 for file in files)
        found.append(entries(place.out / f"{number}.db"))
    assert found[0] == found[1] == found[2]


@pytest.mark.long(sets=2)
@pytest.mark.parametrize("kind", ["a cell", "an id", "a sum"])
def test_what_is_written_is_found(kind: str, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: a pass that leaves something in a file for some milliseconds."""
    table = private_table(7)
    plain = Rows.moments

    def leaving(rows: Rows, *arguments: Any, **options: Any) -> Any:
        with tempfile.NamedTemporaryFile() as file:
            if kind == "a cell":
                file.write(np.asarray(table["age"])[:50].tobytes())
            elif kind == "an id":
                file.write(table["person"][17].as_py().encode())
            else:
                file.write(repr(secrets_of(table)[2 * N_ROWS]).encode())
            file.flush()
            found = plain(rows, *arguments, **options)
            time.sleep(0.2)
        return found

    monkeypatch.setattr(Rows, "moments", leaving)
    files = place.seen(lambda: dpm.release(table, SCHEMA, epsilon=1.0, mechanism="matrix-laplace"))
    assert len(place.written(files)) == 1
    assert leaks(files, secrets_of(table))
