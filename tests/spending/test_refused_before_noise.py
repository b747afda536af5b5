"""What can stop a release stops it before its first draw of noise, for groups, means and every mechanism: nothing is spent."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm
from dpmoments.base.errors import InputError
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.spending.run import NOTHING_SPENT
from mechanisms.test_means import OPTIONS
from support.said import refused

ODD: dict[str, Any] = {
    "text": "Smith-4711",
    "bytes": b"4711",
    "list": [4711],
    "dict": {"Smith": 4711},
    "complex": 4711j,
    "date": dt.date(2020, 1, 1),
    "object": object(),
    "none": None,
    "NaN": float("nan"),
    "infinity": float("inf"),
    "Decimal NaN": Decimal("NaN"),
    "half of a surrogate pair": "\ud800",
}
KINDS: dict[str, dict[str, Any]] = {
    "pure": dict(epsilon=1.0),
    "approximate": dict(epsilon=1.0, delta=1e-6),
    "zCDP": dict(rho=0.5),
}


@pytest.fixture
def ledger(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dpm.Ledger:
    """Of a table called as the relation is; a draw of noise fails the test."""

    def drawn(*_: Any, **__: Any) -> Any:
        pytest.fail("noise was drawn")

    monkeypatch.setattr(PrivacyFilter, "draw", drawn)
    kept = dpm.Ledger(tmp_path / "budget.db")
    for neighbors in ("add_remove", "replace_one"):
        kept.grant(neighbors, epsilon=10.0, delta=1e-3, neighbors=neighbors)
    return kept


def require_nothing_spent(ledger: dpm.Ledger, error: BaseException) -> None:
    assert NOTHING_SPENT in "".join((*getattr(error, "__notes__", ()), str(error))).casefold()
    assert all(ledger.spent(neighbors).epsilon == 0.0 for neighbors in ("add_remove", "replace_one"))
    assert "4711" not in repr((str(error), getattr(error, "__notes__", ())))


def require_column_named(error: BaseException, column: str) -> None:
    """The error is this library's own, about that column."""
    assert isinstance(error, InputError), repr(error)
    assert f"'{column}'" in str(error), repr(error)


def groups_frame(column: str, cell: Any, where: str) -> pd.DataFrame:
    """Rows of "a" and "b"; the last one, of group "b" or of none, holds the odd cell."""
    cells: dict[str, list[Any]] = {
        "g": ["a", "b"] * 8,
        "x": [1.0, 2] * 8,
        "f": [True, False] * 8,
        "d": ["2020-05-01"] * 16,
    }
    cells["g"][-1] = {"last group": "b", "no group": "z"}[where]
    cells[column][-1] = cell
    return pd.DataFrame({name: pd.Series(held, dtype=object) for name, held in cells.items()})


def groups_schema(**rules: Any) -> dpm.Schema:
    return dpm.Schema(
        dpm.Categorical("g", ["a", "b"], missing=rules.get("g", "drop")),
        dpm.Numeric("x", 0, 10, missing=rules.get("x", "drop")),
        dpm.Boolean("f", missing=rules.get("f", "drop")),
        dpm.Date("d", "2020-01-01", "2021-01-01", missing=rules.get("d", "drop")),
    )


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("where", ["last group", "no group"])
@pytest.mark.parametrize("column", ["x", "f", "d"])
@pytest.mark.parametrize("name", ODD)
def test_groups_are_refused_before_noise_whatever_the_odd_cell(
    name: str, column: str, where: str, ledger: dpm.Ledger, tmp_path: Path
) -> None:
    frame, schema = groups_frame(column, ODD[name], where), groups_schema(**{column: "error"})
    if column == "d" and name == "date":
        pytest.skip("it is a date")
    options: dict[str, Any] = dict(epsilon=1.0, ledger=ledger, dataset="add_remove", output=tmp_path / "out.json")
    with pytest.raises((TypeError, ValueError)) as alone:
        dpm.release(frame, schema, **options)
    with pytest.raises((TypeError, ValueError)) as caught:
        dpm.release_groups(frame, schema, by="g", **options)
    for error in (alone.value, caught.value):
        require_column_named(error, column)
        require_nothing_spent(ledger, error)
    assert not (tmp_path / "out.json").exists()


@pytest.mark.parametrize("where", ["g", "f", "w"])
def test_a_missing_group_or_a_negative_weight_is_refused_before_noise(where: str, ledger: dpm.Ledger) -> None:
    by = "f" if where == "f" else "g"
    frame, schema = groups_frame(by, None, "last group"), groups_schema(**{by: "error"})
    if where == "w":
        frame = frame.assign(w=[1.0] * 15 + [-1.0])
        schema = dpm.Schema(*groups_schema().columns, dpm.SamplingWeight("w", 8.0, design_effect=1.5))
    with refused("has a cell that is missing, not finite or not readable, and") as caught:
        dpm.release_groups(frame, schema, by=by, epsilon=1.0, ledger=ledger, dataset="add_remove")
    require_nothing_spent(ledger, caught.value)


@pytest.mark.long(sets=6)
@pytest.mark.parametrize("column", ["g", "x", "f", "d"])
@pytest.mark.parametrize("name", ODD)
def test_no_odd_cell_stops_groups_where_no_rule_is_error(name: str, column: str) -> None:
    """Of groups whose rows are few: each is released, and the odd row is in none or counts as its rule says."""
    frame = groups_frame(column, ODD[name], "last group")
    for rule in ("drop", "center"):
        schema = groups_schema(x=rule, f=rule, d=rule)
        groups = dpm.release_groups(frame, schema, by="g", rho=1e9, mechanism="gaussian", insecure_seed=0)
        dropped = rule == "drop" and not (column == "d" and name == "date")
        assert groups["b"].n_rows == pytest.approx(7 if dropped or column == "g" else 8, abs=0.5)
        assert groups["a"].n_rows == pytest.approx(8, abs=0.5)


@pytest.mark.parametrize(
    "second", [pa.array(["Smith"]), pa.array([[4711]]), pa.array([b"4711"])], ids=lambda cells: str(cells.type)
)
def test_a_later_file_of_another_type_stops_groups_before_noise(
    second: Any, ledger: dpm.Ledger, tmp_path: Path
) -> None:
    """No rule is "error" here: types are refused by the first pass over all files."""
    for name, cells, group in (("a.parquet", pa.array([1.0]), "a"), ("b.parquet", second, "b")):
        (tmp_path / "t").mkdir(exist_ok=True)
        pq.write_table(pa.table({"g": [group], "x": cells, "f": [True], "d": ["2020-05-01"]}), tmp_path / "t" / name)
    with pytest.raises((TypeError, ValueError)) as caught:
        dpm.release_groups(tmp_path / "t", groups_schema(), by="g", epsilon=1.0, ledger=ledger, dataset="add_remove")
    require_nothing_spent(ledger, caught.value)


def test_groups_on_dask_are_refused_before_noise(ledger: dpm.Ledger) -> None:
    dd = pytest.importorskip("dask.dataframe")
    import dask

    frame = groups_frame("x", b"4711", "last group")
    with dask.config.set({"dataframe.convert-string": False}):
        table = dd.from_pandas(frame, npartitions=3, sort=False)
        with pytest.raises((TypeError, ValueError)) as caught:
            dpm.release_groups(
                table, groups_schema(x="error"), by="g", epsilon=1.0, ledger=ledger, dataset="add_remove"
            )
        require_nothing_spent(ledger, caught.value)


@pytest.mark.long(sets=8)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", sorted(MECHANISMS))
def test_every_mechanism_reads_all_rows_before_its_first_draw(
    name: str, neighbors: Any, kind: str, ledger: dpm.Ledger
) -> None:
    one_column = name == "log-scale-histogram"
    columns = ["x"] if one_column else ["x", "y"]
    frame = pd.DataFrame({column: pd.Series([0.5] * 40, dtype=object) for column in columns})
    frame.loc[39, columns[-1]] = "Smith-4711"
    schema = dpm.Schema(*(dpm.Numeric(column, 0, 1) for column in columns))
    options: dict[str, Any] = dict(neighbors=neighbors, ledger=ledger, dataset=neighbors, **KINDS[kind])
    with pytest.raises((TypeError, ValueError)) as caught:
        dpm.release(frame, schema, mechanism=name, **options)
    require_nothing_spent(ledger, caught.value)  # some make no release of such a budget, relation or table


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", sorted(MEAN_MECHANISMS))
@pytest.mark.parametrize("form", ["objects", "array"])
def test_means_read_all_rows_before_their_first_draw(name: str, form: str, neighbors: Any, ledger: dpm.Ledger) -> None:
    cells = np.full((40, 2), 0.5, dtype=object if form == "objects" else float)
    cells[39, 1] = "Smith-4711" if form == "objects" else np.nan
    options: dict[str, Any] = dict(
        neighbors=neighbors, ledger=ledger, dataset=neighbors, rho=0.01, **OPTIONS.get(name, {})
    )
    schema = dpm.Schema.unit_ball(2) if name == "bounded-sums" else dpm.Schema.unbounded(2)
    code = (
        "has a cell that is missing, not finite or not readable, and"
        if form == "objects"
        else "a cell is NaN or infinite and missing='error': clean the"
    )
    if name in ("naive", "symq", "karwa-vadhan") and neighbors == "add_remove":
        code = "is not defined under"
    with refused(code, (TypeError, ValueError)) as caught:
        dpm.release_mean(cells, schema, mechanism=name, **options)
    require_nothing_spent(ledger, caught.value)
