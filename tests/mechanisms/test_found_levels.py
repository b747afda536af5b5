"""Levels that a release finds: replayed on neighbors, with planted faults, and in releases of every kind of table."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pytest

import dpmoments as dpm
from dpmoments.audit.replay import replay
from dpmoments.audit.verification import checks
from dpmoments.mechanisms.counts import FindingPlan
from dpmoments.noise import insecure_generator
from dpmoments.privacy.budget import PrivacyBudget, PrivacyRequest
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.sampling import noised
from dpmoments.privacy.unit import Neighbors
from dpmoments.releases.disclosed import ReleaseWarning
from dpmoments.releases.statements import describe_composition
from dpmoments.rows.histogram import CellCounts, NameSummary
from dpmoments.rows.rows import Rows
from dpmoments.schema.constraints import schema_of_names
from support.said import refused

BUDGET = {"epsilon": 2.0, "delta": 1e-6}
SCHEMA = dpm.Schema(
    dpm.Categorical("town", "discover", max_levels=10, missing="zero", strip=True, casefold=True),
    dpm.Numeric("age", 0, 100),
)
UNIT = dpm.PrivacyUnit("person", max_rows=3)
TOWNS = {"Oslo": 3000, "Bergen": 1500, "Zürich": 700, "Å": 400, "Rare": 3, "x" * 49: 900, "line\nend": 900}
"""How many rows have each; the last two are no names."""


def table(towns: dict[str, int] | None = None, missing: int = 200) -> pd.DataFrame:
    counts = TOWNS if towns is None else towns
    cells = [town for town, times in counts.items() for _ in range(times)] + [None] * missing
    ages = np.random.default_rng(3).uniform(20, 60, len(cells))
    return pd.DataFrame({"town": cells, "age": ages}).sample(frac=1.0, random_state=5, ignore_index=True)


def by_person(frame: pd.DataFrame, rows: int = 4) -> pd.DataFrame:
    """The same rows, of persons who have several in a row of the table."""
    return frame.assign(person=[f"p{index // rows}" for index in range(len(frame))])


def plan_of(neighbors: str = "add_remove", unit: dpm.PrivacyUnit | None = None) -> FindingPlan:
    budget = PrivacyBudget.approximate(**BUDGET)
    plan = FindingPlan.of(SCHEMA, PrivacyRequest(budget, Neighbors.of(neighbors), unit))
    assert plan is not None
    return plan


def replayed(first: pd.DataFrame, second: pd.DataFrame, plan: Any, **options: bool) -> tuple[str, ...]:
    rows = [
        Rows.of(frame, schema_of_names(SCHEMA), neighbors=plan.neighbors, threads=1, privacy_unit=plan.privacy_unit)
        for frame in (first, second)
    ]
    return replay(plan, *rows, insecure_generator(1), **options)


# Replay ---------------------------------------------------------------------------------------------------------------


def test_nothing_but_the_names_leaves_the_run() -> None:
    frame = table({"Oslo": 300, "Bergen": 200, "Rare": 1})
    without_rare = frame[frame["town"] != "Rare"]
    assert replayed(frame, without_rare, plan_of()) == ()
    assert replayed(frame.sample(frac=1.0, random_state=1), frame, plan_of(), same_rows=True) == ()
    assert replayed(frame, table({"Elsewhere": 4000}), plan_of(), any_table=True) == ()
    moved = frame.replace({"town": {"Rare": "Oslo"}})
    assert replayed(frame, moved, plan_of("replace_one")) == ()
    # two rows away, a relation that is not paid for
    assert "moved by" in replayed(without_rare.iloc[1:], frame, plan_of())[0]
    assert "moved by inf" in replayed(frame, frame.drop(frame.index[frame["town"] == "Oslo"][:2]), plan_of())[0]


@pytest.mark.long
def test_a_unit_has_one_name() -> None:
    frame = by_person(table({"Oslo": 300, "Bergen": 200, "Ghent": 50}), 7)
    plan = plan_of(unit=UNIT)
    assert plan.privacy_unit == replace(UNIT, max_rows=1)
    for person in ("p0", "p11", "p40"):
        assert replayed(frame, frame[frame["person"] != person], plan) == ()
        assert replayed(frame[frame["person"] != person], frame, plan) == ()
    assert replayed(frame, frame.iloc[::-1], plan, same_rows=True) == ()
    # fault: the rows of a unit count as those of several
    several = replace(UNIT, max_rows=7)
    rows = [
        Rows.of(one, schema_of_names(SCHEMA), threads=1, privacy_unit=several)
        for one in (frame, frame[frame["person"] != "p11"])
    ]
    recorded = [one.bounded((1, 2)).name_counts()[0].total() for one in rows]
    assert recorded[0] - recorded[1] > 1


def test_a_row_with_two_names_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: parts of a text count as names of their own."""
    finish = NameSummary.finish

    def of_parts(self: NameSummary, running: Any) -> CellCounts:
        result = finish(self, running)
        for counts in result.tables:
            for name, times in [*counts.items()]:
                for part in name.split("-"):
                    counts[part] += times
        return result

    frame = table({"Oslo-Bergen": 300})
    assert replayed(frame, frame.iloc[1:], plan_of()) == ()
    monkeypatch.setattr(NameSummary, "finish", of_parts)
    assert "moved by" in replayed(frame, frame.iloc[1:], plan_of())[0]


def test_a_choice_by_the_order_of_rows_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: the first row of a unit counts, wherever it stands."""
    frame = by_person(table({"Oslo": 100, "Bergen": 100}), 5)

    def first_rows(self: Rows, key: tuple[int, int]) -> Rows:
        del key
        held = self.source.frame.to_native().drop_duplicates("person")  # type: ignore[attr-defined]
        return Rows.of(held, self.schema, threads=1)

    assert replayed(frame, frame.iloc[::-1], plan_of(unit=UNIT), same_rows=True) == ()
    monkeypatch.setattr(Rows, "bounded", first_rows)
    assert "moved by" in replayed(frame, frame.iloc[::-1], plan_of(unit=UNIT), same_rows=True)[0]


# Releases -------------------------------------------------------------------------------------------------------------


@cache
def of_table(seed: int = 0) -> dpm.MomentRelease:
    released = dpm.release(table(), SCHEMA, insecure_seed=seed, **BUDGET)
    assert isinstance(released, dpm.MomentRelease)
    return released


def found(released: dpm.MomentRelease) -> tuple[Any, ...]:
    column = released.schema.columns[0]
    assert isinstance(column, dpm.Categorical)
    return tuple(column.levels)


def test_names_of_many_rows_are_levels_and_all_other_values_are_one() -> None:
    released = of_table()
    assert found(released) == ("bergen", "oslo", "zürich", "å", "other")
    shares = dict(zip(released.feature_names, released.mean.tolist(), strict=True))
    n = sum(TOWNS.values()) + 200
    assert shares["town=oslo"] == pytest.approx(3000 / n, abs=0.01)
    assert shares["town=other"] == pytest.approx(1803 / n, abs=0.01)
    assert all(check.passed for check in checks(released))
    (name, _, _, loss), *_ = released.receipt.lines()
    assert (name, loss) == ("names of levels of town, at most 10", "ε = 0.1, δ = 5e-08")
    assert released.privacy.budget == released.receipt.whole_cost
    assert "5 levels, whose names were found in the table, and published, at ε = 0.1" in released.privacy.describe()
    assert "public levels" not in released.privacy.describe()
    assert "Names of levels were found at ε = 0.1, δ = 5e-08, which is added." in describe_composition(released)
    assert released.privacy_profile.points[3].epsilon == pytest.approx(2.0)
    # the levels are public now
    again = dpm.release(table(), released.schema, insecure_seed=0, epsilon=1.0)
    assert again.schema == released.schema
    assert again.receipt.before is None


@pytest.mark.long
def test_the_same_names_are_found_in_every_kind_of_table(tmp_path: Path) -> None:
    frame = table({town: times for town, times in TOWNS.items() if town != "line\nend"})
    frame.to_csv(tmp_path / "t.csv", index=False)
    frame.to_parquet(tmp_path / "t.parquet")
    kinds: list[Any] = [frame, frame.astype({"town": "category"}), pl.from_pandas(frame), frame.convert_dtypes()]
    dask = pytest.importorskip("dask.dataframe")
    for held in (*kinds, dask.from_pandas(frame, npartitions=3), tmp_path / "t.csv", tmp_path / "t.parquet"):
        assert found(dpm.release(held, SCHEMA, insecure_seed=0, **BUDGET)) == ("bergen", "oslo", "zürich", "å", "other")
    codes = frame["town"].map({"Oslo": 7, "Bergen": 12})
    numbered = frame.assign(town=codes)
    names = {
        found(dpm.release(held, SCHEMA, insecure_seed=0, **BUDGET)) for held in (numbered, numbered.astype(object))
    }
    assert names == {("12", "7", "other")}


def test_several_columns_products_missing_values_and_units() -> None:
    schema = dpm.Schema(
        dpm.Categorical("town", "discover", max_levels=2, missing="drop", levels_share=0.1),
        dpm.Categorical("job", "discover", max_levels=5),
        dpm.Numeric("age", 0, 100, missing="available"),
        dpm.Product("town", "age"),
        dpm.Product("job", "age"),
    )
    frame = by_person(table().assign(job="clerk"), 2)
    frame.loc[frame.index[:900], "job"] = "smith"
    frame.loc[frame.index[900:1800], "job"] = [f"job {index}" for index in range(900)]
    released = dpm.release(
        frame, schema, privacy_unit=dpm.PrivacyUnit("person", 2), insecure_seed=0, epsilon=8.0, delta=1e-6
    )
    columns = {column.name: column for column in released.schema.table_columns}
    assert columns["town"].levels == ("Bergen", "Oslo", "other")  # of four, those with the largest noisy numbers
    assert columns["job"].levels == ("clerk", "smith", "other")
    assert "job=smith:age" in released.feature_names
    before = released.receipt.before
    assert before is not None
    assert [draw.law.epsilon for draw in before.draws] == pytest.approx([0.8, 0.4])
    assert before.privacy_unit == dpm.PrivacyUnit("person", 1)
    assert before.total.within(before.allowance)
    draws = [*before.draws, *released.receipt.draws]
    assert [law for _, law, *_ in released.receipt.lines()] == [*(draw.law.name for draw in draws), ""]
    assert all(check.passed for check in checks(released))


def test_without_a_name_the_column_is_left_out() -> None:
    schema = dpm.Schema(*SCHEMA.columns, dpm.Product("town", "age"))
    with pytest.warns(ReleaseWarning, match="town: no name was found that enough rows have"):
        released = dpm.release(table({f"t{index}": 2 for index in range(900)}), schema, **BUDGET)
    assert released.feature_names == ("age",)
    assert "town: no name was found" in released.privacy.describe()
    assert all(check.passed for check in checks(released))


def test_a_replaced_row_costs_twice_and_is_planned_for() -> None:
    laws = [plan_of(neighbors).laws[0] for neighbors in ("add_remove", "replace_one")]
    assert laws[1].epsilon == pytest.approx(laws[0].epsilon / 2)
    released = dpm.release(table(), SCHEMA, neighbors="replace_one", insecure_seed=0, **BUDGET)
    assert found(released)[-1] == "other"
    assert released.receipt.before is not None
    assert float(released.receipt.before.total.amount) == pytest.approx(0.1)
    assert all(check.passed for check in checks(released))


def test_a_ledger_is_charged_the_whole_budget(tmp_path: Path) -> None:
    ledger = dpm.Ledger(tmp_path / "ledger.jsonl")
    ledger.grant("towns", epsilon=3.0, delta=1e-5, reason="test")
    released = dpm.release(table(), SCHEMA, ledger=ledger, dataset="towns", **BUDGET)
    assert ledger.account("towns").spent.describe() == "ε = 2, δ = 1e-06"
    assert all(check.passed for check in ledger.verify([released]))


# What is refused ------------------------------------------------------------------------------------------------------


def test_budgets_without_delta_are_refused_before_a_row_is_read() -> None:
    for budget in ({"epsilon": 1.0}, {"rho": 0.5}):
        for ask in (lambda **b: dpm.release(table(), SCHEMA, **b), lambda **b: dpm.forecast(SCHEMA, n_rows=100, **b)):
            with refused("can be published only with some probability δ"):
                ask(**budget)
    with refused("and so have all others"):
        dpm.release(table(), dpm.Schema(SCHEMA.columns[0]), **BUDGET)
    with refused("is 0.8 together"):
        dpm.release(
            table(),
            dpm.Schema(*(dpm.Categorical(f"c{i}", "discover", max_levels=2, levels_share=0.4) for i in (1, 2))),
            **BUDGET,
        )


def test_releases_that_find_no_levels_refuse_them() -> None:
    asked: list[Any] = [
        lambda: dpm.release_mean(table(), SCHEMA, **BUDGET),
        lambda: dpm.release_counts(table(), SCHEMA, by="town", **BUDGET),
        lambda: dpm.release_groups(table(), SCHEMA, by="town", **BUDGET),
        lambda: dpm.forecast_counts(SCHEMA, by="town", **BUDGET),
    ]
    for ask in asked:
        with refused("which only a release of moments finds"):
            ask()


def test_a_cell_that_stops_a_release_stops_it_before_a_name_is_found() -> None:
    frame = table()
    frame.loc[5, "age"] = np.nan
    with pytest.raises(ValueError, match="column 'age'") as stopped:
        dpm.release(frame, SCHEMA, **BUDGET)
    assert "nothing was spent" in stopped.value.__notes__


def halved(place: dict[str, Any], key: str) -> None:
    place[key] /= 2.0


FORGED: dict[str, Callable[[dict[str, Any]], Any]] = {
    "a smaller loss": lambda before: halved(before["draws"][0], "loss"),
    "a smaller cost": lambda before: halved(before["cost"], "epsilon"),
    "another law": lambda before: halved(before["draws"][0]["law"], "epsilon"),
    "another query": lambda before: before["draws"][0].update(what={"code": "count"}),
    "nothing": lambda before: before["draws"].clear(),
    "another relation": lambda before: before.update(neighbors="replace_one"),
    "one more": lambda before: before.update(before=json.loads(json.dumps(before))),
}


def test_a_forged_receipt_is_refused() -> None:
    released = of_table()
    kept = released.receipt.to_dict()
    assert Receipt.from_dict(kept) == released.receipt
    for change in FORGED.values():
        values = json.loads(json.dumps(kept))
        change(values["before"])
        with pytest.raises((ValueError, KeyError, TypeError)):
            Receipt.from_dict(values).require_for(released.privacy)


def test_levels_that_no_draw_found_fail_a_check() -> None:
    values = of_table().to_dict()
    values["receipt"]["before"]["draws"][0]["what"]["facts"]["max_levels"] = 2
    faulty = dpm.MomentRelease.from_dict(values)
    assert [check.what for check in checks(faulty) if not check.passed] == ["receipt adds up to the stated budget"]
    del values["receipt"]["before"]
    with pytest.raises(ValueError, match="not for the stated budget"):
        dpm.MomentRelease.from_dict(values)


def test_releases_that_found_levels_are_not_pooled() -> None:
    with refused("found the levels of 'town' in its own table"):
        dpm.pool([of_table(0), of_table(1)])


# Forecast and schema --------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_the_forecast_says_from_which_share_on_a_name_appears() -> None:
    table_ = dpm.forecast(SCHEMA, n_rows=8000, **BUDGET)
    law = plan_of().laws[0]
    half, sure = law.rows_for(0.5), law.rows_for(0.99)
    assert f"if {half:,} rows (" in table_.found_levels[0]
    assert f"99% if {sure:,} rows" in table_.found_levels[0]
    assert table_.found_levels[0] in str(table_)
    assert len(table_.noise_of("auto").mean) == 12
    for rows, share in ((half, 0.5), (sure, 0.99)):
        published = noised(law, {f"name {index}": rows for index in range(4000)}, insecure_generator(rows))
        assert len(published) / 4000 == pytest.approx(share, abs=0.03)


def test_the_schema_of_levels_to_be_found(tmp_path: Path) -> None:
    SCHEMA.save(tmp_path / "schema.yaml")
    assert dpm.Schema.load(tmp_path / "schema.yaml") == SCHEMA
    assert "levels: discover\n  max_levels: 10" in (tmp_path / "schema.yaml").read_text()
    column = dpm.Categorical("town", "discover", max_levels=3)
    assert column.feature_names == ("town=level 1", "town=level 2", "town=level 3", "town=other")
    assert replace(column, missing="drop").finds_levels
    wrong: list[dict[str, Any]] = [
        {"levels": "discover"},
        {"levels": "discover", "max_levels": 0},
        {"levels": "discover", "max_levels": True},
        {"levels": ["a"], "max_levels": 3},
        {"levels": ["a"], "levels_share": 0.1},
        {"levels": "discover", "max_levels": 3, "levels_share": 0.6},
        {"levels": "discover", "max_levels": 3, "other": "zero"},
        {"levels": "discover", "max_levels": 3, "aliases": {"a": ["b"]}},
    ]
    for options in wrong:
        with pytest.raises((ValueError, TypeError), match="town"):
            dpm.Categorical("town", **options)


def test_a_value_outside_the_levels_may_count_as_one_of_them() -> None:
    schema = dpm.Schema(
        dpm.Categorical("town", ["Oslo", "elsewhere"], other="elsewhere", missing="zero"), dpm.Numeric("age", 0, 100)
    )
    released = dpm.release(table(), schema, insecure_seed=0, epsilon=10.0)
    n = sum(TOWNS.values()) + 200
    assert released.mean[:2] == pytest.approx([3000 / n, 1 - 3200 / n], abs=0.01)
    assert "other values count as elsewhere" in released.privacy.describe()
    with refused("use 'drop' or 'zero'"):
        dpm.Categorical("town", ["Oslo"], other="Bergen")


def test_levels_found_in_groups_are_refused_in_a_receipt() -> None:
    """Draws of disjoint groups cost as one, and every column's names are of all rows."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(
        {"a": rng.choice(list("xy"), 3_000), "b": rng.choice(list("uv"), 3_000), "n": rng.random(3_000)}
    )
    finds = [dpm.Categorical(name, "discover", max_levels=3) for name in "ab"]
    schema = dpm.Schema(*finds, dpm.Numeric("n", 0, 1))
    released = dpm.release(frame, schema, epsilon=2.0, delta=1e-6, insecure_seed=0)
    values = released.receipt.to_dict()
    for draw, group in zip(values["before"]["draws"], "pq", strict=True):
        draw["group"] = group
    with refused("in all rows"):
        Receipt.from_dict(values)


def test_a_name_that_would_be_called_as_another_feature_counts_as_not_found() -> None:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"a": rng.choice(list("xy"), 3_000), "a=x": rng.random(3_000)})
    schema = dpm.Schema(dpm.Categorical("a", "discover", max_levels=3), dpm.Numeric("a=x", 0, 1))
    released = dpm.release(frame, schema, epsilon=2.0, delta=1e-6, insecure_seed=0)
    assert released.feature_names == ("a=y", "a=other", "a=x")


def test_a_mechanism_for_one_number_of_features_is_refused_before_a_name_is_drawn() -> None:
    frame = pd.DataFrame({"a": list("xy") * 500, "n": 0.5})
    schema = dpm.Schema(dpm.Categorical("a", "discover", max_levels=3), dpm.Numeric("n", 0, 1))
    of_five = dpm.mechanisms.AdditiveWishart(scale_matrix=np.eye(5).tolist())
    with refused("scale_matrix") as error:
        dpm.release(frame, schema, epsilon=2.0, delta=1e-6, mechanism=of_five, insecure_seed=0)
    assert "nothing was spent" in error.value.__notes__


def test_a_level_may_be_called_as_the_one_of_names_that_are_not_found() -> None:
    schema = dpm.Schema(dpm.Categorical("a", ["other"]), dpm.Numeric("n", 0, 1))
    assert dpm.Schema.from_dict(schema.to_dict()) == schema
