"""What may be asked of a table's rows, what is told while they are read, and that nothing shows them."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.feather as pa_feather
import pytest

import dpmoments as dpm
from contracts.cases import CASES
from dpmoments.base.progress import Watch
from dpmoments.mechanisms.base import UnitsPlan
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.privacy.budget import PrivacyRequest
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.rows.kernel import transformed_norms
from dpmoments.rows.rows import Rows
from dpmoments.schema import Schema
from support.said import refused
from support.table_forms import (
    EXPECTED,
    FILES,
    FORMS,
    N_ROWS,
    SCHEMA,
    TABLE,
    a_third_of_forms,
    csv_text,
    parquet,
    reference_rows,
    write,
)


@pytest.fixture(params=a_third_of_forms(2))
def form(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    name = request.param
    return FORMS[name]() if name in FORMS else FILES[name](tmp_path)


@pytest.mark.long
def test_a_histogram_counts_every_row(form: Any) -> None:
    edges = [0.2, 0.5, 0.9]
    rows, dropped = reference_rows(TABLE, SCHEMA)
    norms = np.linalg.norm(rows, axis=1)
    kept = norms[~dropped]
    for relation in ("add_remove", "replace_one"):
        found = Rows.of(form, SCHEMA, neighbors=relation).histogram(lambda block: np.linalg.norm(block, axis=1), edges)
        expected = np.histogram(kept, [0.0, *edges, 9.0])[0]
        assert [found.below, *found.counts, found.above] == expected.tolist()
        assert found.total == len(kept)


def test_nan_and_edges_of_a_histogram() -> None:
    rows = Rows.of(np.array([[0.0], [0.25], [0.5], [1.0]]), Schema.unit_ball(1))
    found = rows.histogram(lambda block: np.where(block[:, 0] == 1.0, np.nan, block[:, 0]), [0.25, 0.5, 0.75])
    assert (found.below, found.counts.tolist(), found.above) == (1, [1, 1], 1)
    for edges in ([0.5], [0.5, 0.5], [1.0, 0.0], [0.0, np.nan]):
        with refused("edges must be at least two increasing numbers"):
            rows.histogram(lambda block: block[:, 0], edges)
    with refused("rows: return one value per row"):
        rows.histogram(lambda block: block, [0.0, 1.0])


@pytest.mark.parametrize("d", [2, 17, 100])
def test_a_statistic_that_depends_on_the_rows_around_it_is_refused(d: int) -> None:
    rng = np.random.default_rng(d)
    rows = Rows.of(rng.standard_normal((50, d)) / d, Schema.unit_ball(d))
    vector = rng.standard_normal(d)
    depending: list[Callable[[np.ndarray], np.ndarray]] = [
        lambda block: block[:, 0] - block[:, 0].mean(),
        lambda block: np.arange(float(len(block))),
        lambda block: np.sort(block[:, 0]),
    ]
    if d > 2:
        depending.append(lambda block: block @ vector)
    for statistic in depending:
        with refused("a row's statistic depends on other rows, so one row could"):
            rows.histogram(statistic, [0.0, 1.0])
    for statistic in (
        lambda block: np.abs(block).max(axis=1),
        lambda block: transformed_norms(block, linear=np.eye(d)),
    ):
        assert rows.histogram(statistic, [0.0, 0.1]).total == 50


def told(data: Any, schema: Schema, passes: int = 1) -> list[float | None]:
    seen: list[float | None] = []
    for _ in range(passes):
        dpm.release(data, schema, epsilon=1.0, progress=seen.append, insecure_seed=0)
    return seen


@pytest.mark.long
def test_progress_tells_the_same_of_every_table(tmp_path: Path) -> None:
    ball = Schema.unit_ball(2)
    every_hundredth = [step / 100 for step in range(1, 101)]
    for n_rows in (0, 1, 2, 99, 70_000, 400_000):
        assert told(np.zeros((n_rows, 2)), ball) == every_hundredth
    assert told(parquet(tmp_path / "t.parquet", row_group_size=9), SCHEMA) == every_hundredth * 6
    assert told(parquet(tmp_path / "empty.parquet", table=TABLE.slice(0, 0)), SCHEMA) == every_hundredth * 6
    for table in (TABLE, TABLE.slice(0, 0)):
        assert told(write(tmp_path / "t.csv", csv_text(table)), SCHEMA) == every_hundredth * 6
        assert told(write(tmp_path / "t.csv.gz", gzip.compress(csv_text(table))), SCHEMA) == every_hundredth * 6
        pa_feather.write_feather(table, tmp_path / "t.feather")
        assert told(tmp_path / "t.feather", SCHEMA) == every_hundredth * 6
    folder = tmp_path / "keys" / "region=north"
    folder.mkdir(parents=True)
    write(folder / "t.csv", csv_text(TABLE.drop_columns(["region"])))
    assert told(tmp_path / "keys" / "*" / "*.csv", SCHEMA) == every_hundredth * 6


def test_progress_of_several_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float | None] = []
    every_hundredth = [step / 100 for step in range(1, 101)]
    watch = Watch(seen.append)
    for blocks in ((0, 4, 6, 0), (10,), (3, 3), (9, 9, 9)):  # of files that are not what they were, too
        with watch.passing(10):
            for block in blocks:
                watch(block)
        assert seen == every_hundredth
        seen.clear()
    with watch.passing(10, 2):
        watch(13)
        assert seen == [*every_hundredth, *every_hundredth[:30]]
    assert seen == every_hundredth * 2
    clock = iter([0.0, 0.1, 0.3, 0.35, 9.0])
    monkeypatch.setattr("dpmoments.base.progress.time.monotonic", lambda: next(clock))
    seen.clear()
    with watch.passing(None):
        for _ in range(5):
            watch(1)
    assert seen == [None, None, None]  # at 0, 0.3 and 9 seconds
    seen.clear()
    with watch.passing(None):  # as long as the pass before
        watch(2)
        assert seen == every_hundredth[:40]
    seen.clear()
    with pytest.raises(KeyError), watch.passing(10):
        raise KeyError
    assert seen == []  # a pass that is stopped is not told to its end


def test_a_query_tells_hundredths_from_its_second_pass_on() -> None:
    frame = pl.from_arrow(TABLE).lazy()  # type: ignore[union-attr]
    seen: list[float | None] = []
    dpm.release(frame, SCHEMA, epsilon=1.0, progress=seen.append, insecure_seed=0, neighbors="replace_one")
    every_hundredth = [step / 100 for step in range(1, 101)]
    assert seen[0] is None
    assert seen[1:] == every_hundredth * (len(seen) // 100)
    assert len(seen) > 100


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_the_bar_tells_rows_a_second_only_where_their_number_is_public(
    neighbors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By a clock that goes on by a second whenever it is asked: 4,000 rows in about a hundred seconds."""
    shown: list[dict[str, Any]] = []
    clock = iter(float(second) for second in range(10**6))

    class Display:
        def __init__(self, *_: Any, **__: Any) -> None:
            pass

        def __enter__(self) -> Display:
            return self

        def __exit__(self, *_: Any) -> None:
            pass

        def add_task(self, *_: Any, **__: Any) -> int:
            return 0

        def note(self, _: int, **fields: Any) -> None:
            shown.append(fields)

        reset = update = note

    monkeypatch.setattr("rich.progress.Progress", Display)
    monkeypatch.setattr("dpmoments.base.progress.time.monotonic", lambda: next(clock))
    options: dict[str, Any] = dict(epsilon=1.0, mechanism="laplace", progress=True, neighbors=neighbors)
    dpm.release(np.zeros((4_000, 2)), Schema.unit_ball(2), **options)
    assert [step["description"] for step in shown if "description" in step] == ["reading rows, pass 1 of 1"]
    rates = {step["rate"] for step in shown}
    assert rates == ({""} if neighbors == "add_remove" else {"", "40 rows/s"})
    said = len(shown)
    dpm.release(np.zeros((4_000, 2)), Schema.unit_ball(2), n_rows=4_000, **(options | {"neighbors": "add_remove"}))
    assert shown[said + 1]["rate"] == "40 rows/s"  # whoever knows it from elsewhere


def test_a_plan_that_says_how_many_passes_it_makes_makes_so_many() -> None:
    made: list[int] = []

    @contextmanager
    def passing(_: int | None, n_passes: int) -> Iterator[None]:
        made.append(n_passes)
        yield

    told = 0
    for case in {(case.mechanism.name, case.mean): case for case in CASES}.values():
        if (plan := case.plan()).passes is not None:
            made.clear()
            plan.run(replace(case.rows(), on_pass=passing), PrivacyFilter.open(plan, insecure_seed=0))
            assert sum(made) == plan.passes, case.id
            told += 1
    assert told > 5
    unit, budget, neighbors = dpm.PrivacyUnit("id", 2), dpm.PrivacyBudget.pure(1.0), dpm.Neighbors.ADD_REMOVE
    plan = dpm.mechanisms.Laplace().plan_for(MomentShape(2), PrivacyRequest(budget, neighbors, unit))
    of_units = UnitsPlan.of(plan, budget, unit)
    people = pa.table({"x0": [0.1, 0.2], "x1": [0.3, 0.1], "id": ["a", "b"]})
    made.clear()
    rows = Rows.of(people, Schema.unit_ball(2, names=["x0", "x1"]), privacy_unit=unit, on_pass=passing)
    of_units.run(rows, PrivacyFilter.open(of_units, insecure_seed=0))
    assert sum(made) == of_units.passes == 3


def test_a_progress_bar_says_nothing_of_the_table(capfd: pytest.CaptureFixture[str]) -> None:
    dpm.release(np.zeros((4711, 2)), Schema.unit_ball(2), epsilon=1.0, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "4711" not in err
    assert "4,711" not in err


def nested_reprs(value: Any) -> Iterator[str]:
    yield repr(value)
    yield str(value)
    for name in ("source", "schema"):
        if hasattr(value, name):
            yield from nested_reprs(getattr(value, name))


@pytest.mark.long(sets=5)
def test_no_repr_shows_the_table(form: Any) -> None:
    rows = Rows.of(form, SCHEMA, neighbors="replace_one")
    histogram = rows.histogram(lambda block: block[:, 0], [0.0, 0.1])
    shown = " ".join(map(repr, (rows, rows.moments(), histogram)))
    for private in (N_ROWS, EXPECTED.count, N_ROWS - EXPECTED.count, histogram.below):
        assert str(private) not in shown
    for told_of in nested_reprs(rows):
        assert "secret" not in told_of
        assert "100.0" not in told_of.replace("upper=100.0", "")
        assert str(TABLE["age"][1]) not in told_of
    array_rows = Rows.of(np.full((37, 2), 0.4711), Schema.unit_ball(2))
    assert not any("4711" in text or "37" in text for text in nested_reprs(array_rows))
