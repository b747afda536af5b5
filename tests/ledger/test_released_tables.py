"""One table under two dataset names is noticed, by the curator alone."""

from __future__ import annotations

import sqlite3
import warnings
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from dpmoments.rows.rows import Rows
from support.said import warned

TABLE = pd.DataFrame(np.random.default_rng(0).uniform(0, 1, (500, 3)), columns=["a", "b", "person"])
SCHEMA = dpm.Schema(dpm.Numeric("a", 0, 1), dpm.Numeric("b", 0, 2))
OTHER = {
    "a changed value": lambda: TABLE.assign(a=TABLE["a"].where(TABLE.index > 0, 0.5)),
    "a row less": lambda: TABLE.iloc[1:],
    "a row twice": lambda: pd.concat([TABLE, TABLE.iloc[:1]]),
    "values of two rows exchanged": lambda: TABLE.assign(a=[*TABLE["a"][[1, 0]], *TABLE["a"][2:]]),
}


@pytest.fixture
def ledger(tmp_path: Path) -> dpm.Ledger:
    kept = dpm.Ledger(tmp_path / "budget.db")
    for name in ("people", "persons"):
        kept.grant(name, epsilon=5.0)
    return kept


def release(ledger: dpm.Ledger, dataset: str, table: Any = TABLE, **options: Any) -> dpm.MomentRelease:
    return dpm.release(table, SCHEMA, **{"epsilon": 1.0, "ledger": ledger, "dataset": dataset, "threads": 1} | options)


def test_the_same_rows_in_any_order_and_form_are_noticed(ledger: dpm.Ledger, tmp_path: Path) -> None:
    release(ledger, "people")
    with warnings.catch_warnings():
        warnings.simplefilter("error", dpm.ReleaseWarning)
        release(ledger, "people", epsilon=0.5)  # under its own name it may be released again
    TABLE.sample(frac=1, random_state=1).to_parquet(tmp_path / "t.parquet")
    for number, way in enumerate(
        [{"table": TABLE.iloc[::-1]}, {"table": tmp_path / "t.parquet", "mechanism": "laplace"}]
    ):
        with warned("table-of-other-dataset", dpm.ReleaseWarning, names=("people",)):
            released = release(ledger, "persons", output=tmp_path / f"{number}.json", **way)
        assert "table-of-other-dataset" not in [message.code for message in released.warnings]
        assert "people" not in (tmp_path / f"{number}.json").read_text()


@pytest.mark.parametrize("name", OTHER)
def test_another_table_is_not_reported(name: str, ledger: dpm.Ledger) -> None:
    release(ledger, "people")
    with warnings.catch_warnings():
        warnings.simplefilter("error", dpm.ReleaseWarning)
        release(ledger, "persons", OTHER[name]())


def test_no_entry_of_the_history_depends_on_the_fingerprint(ledger: dpm.Ledger) -> None:
    """So that no hash in a release does; and without the key nobody can make a fingerprint."""
    release(ledger, "people")
    with closing(sqlite3.connect(ledger.path)) as file:
        ((dataset, fingerprint),) = file.execute("SELECT * FROM tables").fetchall()
        entries = file.execute("SELECT entry, hash FROM history").fetchall()
        file.execute("DELETE FROM tables")
        file.commit()
    assert (dataset, len(fingerprint)) == ("people", 64)
    assert not [entry for entry in entries if fingerprint in " ".join(entry)]
    assert all(check.passed for check in ledger.verify())
    other = dpm.Ledger(f"{ledger.path}.other")
    other.grant("people", epsilon=5.0)
    release(other, "people")
    with closing(sqlite3.connect(other.path)) as file:
        assert file.execute("SELECT fingerprint FROM tables").fetchall() != [(fingerprint,)]


def test_a_table_that_cannot_be_read_is_refunded(ledger: dpm.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ValueError):
        release(ledger, "people", TABLE.assign(a=TABLE["a"].where(TABLE.index > 0)))
    assert ledger.left("people").epsilon == 5.0

    def stopped(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Rows, "moments", stopped)
    with pytest.raises(KeyboardInterrupt) as stop:
        release(ledger, "people")
    assert stop.value.__notes__ == ["nothing was spent"]
    assert ledger.left("people").epsilon == 5.0
    with closing(sqlite3.connect(ledger.path)) as file:
        assert file.execute("SELECT count(*) FROM tables").fetchall() == [(0,)]


def test_groups_counts_means_and_units_are_compared(ledger: dpm.Ledger) -> None:
    schema = dpm.Schema(dpm.Numeric("a", 0, 1), dpm.Boolean("old"))
    table = TABLE.assign(old=TABLE["b"] > 0.5, person=TABLE.index // 2)
    ways = {
        "release_groups": {"by": "old"},
        "release_counts": {"by": ["old"]},
        "release_mean": {},
        "release": {"privacy_unit": dpm.PrivacyUnit("person", 2)},
    }
    for number, (function, options) in enumerate(ways.items()):
        unit = "person" if "privacy_unit" in options else "row"
        for name in ("first", "second"):
            ledger.grant(f"{name} {number}", epsilon=1.0, unit=unit)
        run = getattr(dpm, function)
        run(table, schema, epsilon=1.0, ledger=ledger, dataset=f"first {number}", **options)
        with warned("table-of-other-dataset", dpm.ReleaseWarning):
            run(table, schema, epsilon=1.0, ledger=ledger, dataset=f"second {number}", **options)
