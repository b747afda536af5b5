"""What the library's log tells: the steps of a job, the same for neighboring tables, and no value of a table."""

from __future__ import annotations

import logging
import shlex
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pytest

import dpmoments as dpm
from dpmoments.base.progress import Watch, log
from dpmoments.cli import main
from support.said import refused

SCHEMA = dpm.Schema(dpm.Numeric("age", 0, 9999), dpm.Categorical("ward", ["north", "south"]))
SECRETS = ("4711", "secret", "1234")
"""Cells of the table; and its number of rows."""


def table(n_rows: int, *, age: float = 4711.0, ward: str = "secretward") -> pa.Table:
    return pa.table({"age": [age] * n_rows, "ward": [ward, *["north"] * (n_rows - 1)], "id": ["secretperson"] * n_rows})


def in_groups(path: Path, output: Path, **options: Any) -> object:
    return dpm.release_groups(path, SCHEMA, by="ward", output=output, epsilon=1.0, **options)


JOBS: dict[str, Callable[..., object]] = {
    "release": lambda path, output, **options: dpm.release(path, SCHEMA, output=output, epsilon=1.0, **options),
    "release_mean": lambda path, output, **options: dpm.release_mean(path, SCHEMA, output=output, rho=1.0, **options),
    "release_counts": lambda path, output, **options: dpm.release_counts(
        path, SCHEMA, by="ward", output=output, epsilon=1.0, **options
    ),
    "release_groups": in_groups,
    "release for units": lambda path, output, **options: dpm.release(
        path, SCHEMA, output=output, epsilon=1.0, mechanism="laplace", privacy_unit=dpm.PrivacyUnit("id", 3), **options
    ),
}


@pytest.fixture
def logged(caplog: pytest.LogCaptureFixture) -> Iterator[Callable[[], list[str]]]:
    def lines() -> list[str]:
        found = [f"{record.levelname} {record.getMessage()}" for record in caplog.records if record.name == "dpmoments"]
        caplog.clear()
        return found

    with caplog.at_level(logging.DEBUG, logger="dpmoments"):
        yield lines


def run(job: str, folder: Path, data: pa.Table, **options: Any) -> None:
    folder.mkdir()
    pa_csv.write_csv(data, folder / "people.csv")
    ledger = dpm.Ledger(folder / "budget.db")
    budget = {"rho": 9.0} if job == "release_mean" else {"epsilon": 9.0}
    ledger.grant("people", unit="id" if job == "release for units" else "row", **budget)
    JOBS[job](folder / "people.csv", folder / "people.json", ledger=ledger, dataset="people", **options)


NEIGHBORS = {
    "as it is": table(1234),
    "without a row": table(1233),
    "of other rows": table(40, age=3.0, ward="south"),
    "without rows": table(1).slice(0, 0),
}


@pytest.mark.long(sets=2)
@pytest.mark.parametrize("job", [job for job in JOBS if job != "release_mean"])
def test_the_log_of_a_release_is_the_same_for_every_table(
    job: str, logged: Callable[[], list[str]], tmp_path: Path
) -> None:
    """By mechanisms whose number of passes and draws is fixed."""
    options = {"mechanism": "laplace"} if job not in ("release for units", "release_counts") else {}
    told = {}
    for name, data in NEIGHBORS.items():
        folder = tmp_path / name
        run(job, folder, data, **options)
        told[name] = [line.replace(str(folder), "FOLDER") for line in logged()]
    assert all(lines == told["as it is"] for lines in told.values())
    text = "\n".join(told["as it is"])
    assert not any(secret in text for secret in SECRETS)
    for step in (
        f"INFO planned: {'counts' if job == 'release_counts' else 'laplace'}",
        "INFO ledger: entry 2 reserved for people",
        "INFO the run begins",
        "DEBUG pass 1",
        "over the table: ended",
        "draws of noise",
        "INFO written: FOLDER/people.json",
        "INFO ledger: entry 2 committed",
    ):
        assert step in text


@pytest.mark.long
def test_a_log_that_counts_is_found(monkeypatch: pytest.MonkeyPatch, logged: Any, tmp_path: Path) -> None:
    original = Watch.__call__

    def counted(self: Watch, amount: int) -> None:
        log.debug("%d", amount)
        original(self, amount)

    monkeypatch.setattr(Watch, "__call__", counted)
    with pytest.raises(AssertionError):
        test_the_log_of_a_release_is_the_same_for_every_table("release", logged, tmp_path)


@pytest.mark.long
def test_a_ledger_does_not_say_whether_another_dataset_has_the_same_table(tmp_path: Path) -> None:
    schema, rows = dpm.Schema(dpm.Numeric("age", 0, 9999)), table(5_000)
    for number, other in enumerate((rows, table(5_000, age=4710.0), table(5_001))):
        ledger = dpm.Ledger(tmp_path / f"{number}.db")
        for dataset, data in (("people", rows), ("persons", other)):
            ledger.grant(dataset, epsilon=1.0)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                dpm.release(data, schema, epsilon=1.0, mechanism="laplace", ledger=ledger, dataset=dataset)


@pytest.mark.parametrize("job", [job for job in JOBS if job != "release_counts"])  # which does not read the column
def test_no_value_is_logged_where_a_job_is_stopped(job: str, logged: Callable[[], list[str]], tmp_path: Path) -> None:
    bad = table(1234).set_column(0, "age", pa.array(["secretage", *["4711"] * 1233]))
    with refused("has a cell that is missing, not finite or not readable, and", column="age"):
        run(job, tmp_path / "stopped", bad)
    lines = logged()
    assert lines[-2:] == ["INFO the run was stopped: nothing was spent", "INFO ledger: entry 2 refunded"]
    assert not any(secret in line for line in lines for secret in SECRETS)


def test_verbose_tells_the_steps_on_standard_error(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    pa_csv.write_csv(table(1234), "people.csv")
    SCHEMA.save("people.yaml")
    arguments = shlex.split("release people.csv --schema people.yaml --epsilon 1 --neighbors add_remove --output")
    assert main(["--verbose", *arguments, "a.json"]) == 0
    told = capsys.readouterr().err
    assert "dpmoments: written: a.json" in told
    assert "dpmoments: pass 1 over the table: begun" in told
    assert not any(secret in told for secret in SECRETS)
    assert main([*arguments, "b.json"]) == 0
    assert "written" not in capsys.readouterr().err
    assert not log.isEnabledFor(logging.DEBUG)


def test_nothing_is_told_where_nobody_listens() -> None:
    """Python would print warnings of a logger that has no handler."""
    assert [type(handler) for handler in log.handlers] == [logging.NullHandler]
