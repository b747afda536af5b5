"""Levels are counted: the same integers as the dense pass has, wherever the schema alone allows it, and nowhere else."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmoments as dpm
from dpmoments.datasets import _schema
from dpmoments.rows import level_sums
from dpmoments.rows.encode import encode_columns
from dpmoments.rows.kernel import MomentSummary
from dpmoments.rows.level_sums import LevelLayout, _longest_row, _scaled_limbs, counting_levels
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.rounding import Lattice
from dpmoments.rows.rows import Rows
from dpmoments.rows.sources.memory import FrameSource
from dpmoments.rows.sources.opening import open_source
from dpmoments.rows.sources.source import LocalSource
from dpmoments.rows.summary import summarize_in_threads
from dpmoments.schema import Schema
from support.examples import examples
from support.lattice_rows import lattice_rows
from support.said import refused
from support.table_forms import FILES, FORMS, REGIONS, TABLE, make_table, reference_moments, reference_rows

WIDE = Schema(
    dpm.Numeric("age", 0, 100, missing="center"),
    dpm.Categorical("region", REGIONS[:4], missing="zero", other="zero"),
    dpm.Boolean("member", missing="drop"),
    dpm.Categorical("code", range(60), missing="drop"),
)
"""Of the table of :mod:`table_forms`; wide enough that levels are counted."""


def dense(source: LocalSource[Any], summary: MomentSummary) -> ExactMoments:
    """The moments of encoded rows, one feature for every level."""
    return summarize_in_threads(summary, source.parts(), source.encode, 1)


def source_of(table: Any, schema: Schema, *, mean: bool = True) -> LocalSource[Any]:
    source = open_source(table, schema, mean, None, None)
    assert isinstance(source, LocalSource)
    return source


def free_counting(patched: pytest.MonkeyPatch) -> None:
    patched.setattr(level_sums, "_COST_OF_COUNTING", -1e9)
    patched.setattr(level_sums, "_ROWS_PER_STEP", 5)


@pytest.fixture
def counted_always(monkeypatch: pytest.MonkeyPatch) -> None:
    """Levels are counted however little that gains, a few rows at a time."""
    free_counting(monkeypatch)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, pa.Table]:
    """A schema with a categorical column at least, and cells of every kind it allows."""
    n_rows = draw(st.integers(0, 23))
    columns: list[Any] = []
    cells: dict[str, Any] = {}
    typical = draw(st.booleans())

    def held(name: str, of_cells: st.SearchStrategy[Any], kind: pa.DataType) -> None:
        cells[name] = pa.array(draw(st.lists(of_cells, min_size=n_rows, max_size=n_rows)), kind)

    for place in range(draw(st.integers(1, 5))):
        levels = [f"level {i}" for i in range(draw(st.integers(1, 6)))]
        missing, other = draw(st.sampled_from(["zero", "drop", "error"])), draw(st.sampled_from(["zero", "drop"]))
        columns.append(dpm.Categorical(f"c{place}", levels, missing=missing, other=other))
        gaps = st.nothing() if missing == "error" else st.none()
        held(f"c{place}", st.sampled_from([*levels, "no level"]) | gaps, pa.string())
    for place in range(draw(st.integers(0, 4))):
        lower, width = draw(st.floats(-50, 50)), draw(st.floats(1e-3, 90))
        within = (lower, lower + width / 3) if typical else None
        rule = draw(st.sampled_from(["center", "drop"]))
        columns.append(dpm.Numeric(f"n{place}", lower, lower + width, missing=rule, typical=within))
        held(f"n{place}", st.none() | st.floats(lower - 9, lower + width + 9), pa.float64())
    if draw(st.booleans()):
        columns.append(dpm.Boolean("b", missing="center"))
        held("b", st.sampled_from([True, False, None]), pa.bool_())
    names = [column.name for column in columns if not isinstance(column, dpm.Categorical)]
    if "n0" in names:
        columns += draw(st.sampled_from([[], [dpm.Power("n0", 3)], [dpm.Product("c0", "n0"), dpm.Power("n0", 2)]]))
    if "b" in names:
        columns += draw(st.sampled_from([[], [dpm.Product("b", "c0")]]))
    return Schema(*draw(st.permutations(columns))), pa.table(cells)


@pytest.mark.long
@settings(max_examples=examples(60), deadline=None)
@given(
    table=tables(),
    mean=st.booleans(),
    bits=st.sampled_from([20, 20, 19, 17, 16, 22]),
    radius=st.sampled_from([1.0, 1.0, 1.5]),
    keep=st.booleans(),
)
def test_counted_levels_give_the_bits_of_the_dense_pass(
    table: tuple[Schema, pa.Table], mean: bool, bits: int, radius: float, keep: bool
) -> None:
    schema, cells = table
    source = source_of(cells, schema, mean=mean)
    summary = MomentSummary(schema.n_features, bits, radius, missing="drop", keep_dropped=keep)
    with pytest.MonkeyPatch.context() as patched:
        free_counting(patched)
        assert counting_levels(summary, schema, source.reading.layout) is not None, (
            "the default row norm lets levels be counted"
        )
        found = source.summarize(summary, threads=2)
    assert found == dense(source, summary)
    assert found.clipped == 0


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("bits", [9, 16, 20])
def test_the_longest_row_is_attained(mean: bool, bits: int) -> None:
    schema = Schema(
        dpm.Numeric("x", -1, 5, typical=(0, 1)),
        dpm.Categorical("c", ["p", "q"], missing="zero"),
        dpm.Boolean("b"),
        dpm.Power("x", 2),
        dpm.Product("x", "c"),
    )
    rows = list(product([-1.0, 0.0, 2.0, 5.0], ["p", "q", None], [False, True]))
    cells = {name: pa.array(column) for name, column in zip("xcb", zip(*rows, strict=True), strict=True)}
    block = encode_columns(cells, schema, mean=mean)
    layout, d = LevelLayout.of(schema, mean=mean), schema.n_features
    longest = _longest_row(schema, layout, Lattice(d, bits, 1.0))
    # beyond the radius nothing is clipped, so that rows are seen as they are
    unclipped = lattice_rows(block, bits=bits + 1, radius=2.0)
    assert longest == int((unclipped**2).sum(axis=1).max())


def test_rows_that_nothing_bounds_are_not_counted_by_levels() -> None:
    rough = Schema(dpm.Numeric("x", scale=(1, 9)), dpm.Categorical("c", range(99)))
    short = Schema(dpm.Numeric("x", 0, 1), dpm.Categorical("c", range(99)), row_norm=1.2)
    known = Schema(dpm.Numeric("x", 0, 1), dpm.Categorical("c", range(99)))
    found = {}
    for name, schema in (("rough", rough), ("short", short), ("known", known)):
        layout = LevelLayout.of(schema, mean=True)
        found[name] = [
            counting_levels(summary, schema, layout) is not None
            for summary in (
                MomentSummary(100, missing="drop"),
                MomentSummary(100, radius=1.21, missing="drop"),
                MomentSummary(100, radius=0.99, missing="drop"),
                MomentSummary(100, center=np.zeros(100), missing="drop"),
                MomentSummary(100, linear=np.eye(100), missing="drop"),
            )
        ]
    none = [False] * 5
    # with a row norm of 1.2 a radius of √2/1.2 = 1.18 holds every row, and 1 does not
    assert found == {
        "rough": none,
        "short": [False, True, False, False, False],
        "known": [True, True, False, False, False],
    }


def test_the_choice_is_the_schemas() -> None:
    def counted(schema: Schema) -> bool:
        summary = MomentSummary(schema.n_features, missing="drop")
        return counting_levels(summary, schema, LevelLayout.of(schema, mean=True)) is not None

    wide = [dpm.Categorical(f"c{i}", range(1000 if i == 0 else 50)) for i in range(4)]
    assert counted(_schema("adult"))
    assert counted(Schema(*wide))
    assert not counted(_schema("wine"))  # 13 numbers and 3 levels: the product of 16 columns is less work
    assert not counted(Schema(*(dpm.Numeric(f"x{i}", 0, 1) for i in range(50))))


@pytest.fixture(scope="module")
def expected() -> ExactMoments:
    found = reference_moments(TABLE, WIDE)
    assert counting_levels(MomentSummary(WIDE.n_features, missing="drop"), WIDE, LevelLayout.of(WIDE, mean=True))
    return found


EVERYWHERE = (
    "arrow dictionaries that differ",
    "arrow dictionary with a null",
    "arrow runs",
    "polars enum",
    "duckdb",
    "csv",
)


@pytest.mark.parametrize("form", EVERYWHERE)
def test_every_source_counts_levels(
    form: str, expected: ExactMoments, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = Rows.of(FORMS[form]() if form in FORMS else FILES[form](tmp_path), WIDE, neighbors="replace_one")
    count = rows.count()
    monkeypatch.setattr(LocalSource, "encode", None)  # no row is spread over the features
    assert rows.moments() == expected
    assert (count, rows.count()) == (expected.count, expected.count)


@pytest.mark.usefixtures("counted_always")
def test_groups_and_units_have_the_dense_bits() -> None:
    rows = Rows.of(TABLE, WIDE)
    kept = TABLE.filter(pa.compute.equal(TABLE["region"], "north"))
    without = Schema(*(column for column in WIDE.columns if column.name != "region"))
    found = rows.where("region", "north")
    with pytest.raises(AssertionError):  # it is private
        found.table_size()
    assert isinstance(found.source, FrameSource)
    assert (
        found.moments()
        == dense(source_of(kept, without), MomentSummary(without.n_features, missing="drop")).without_dropped()
    )
    people = TABLE.append_column("person", pa.array([f"p{i // 3}" for i in range(TABLE.num_rows)]))
    unit = dpm.PrivacyUnit("person", max_rows=TABLE.num_rows)
    whole = Rows.of(people, WIDE, privacy_unit=unit).bounded((1, 2)).moments()
    assert whole == rows.moments()


def test_a_dense_summary_of_a_wide_schema_takes_few_rows_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """A pass about a center spreads levels over features; what it holds of them at a time is bounded."""
    held: list[int] = []
    add = MomentSummary.add

    def watched(self: MomentSummary, running: Any, block: Any) -> None:
        held.append(block.size)
        add(self, running, block)

    monkeypatch.setattr(MomentSummary, "add", watched)
    monkeypatch.setattr("dpmoments.rows.level_sums._MAX_CELLS_PER_BLOCK", 64 * WIDE.n_features)
    center = np.full(WIDE.n_features, 0.01)
    found = Rows.of(TABLE, WIDE).moments(center)
    assert max(held) == 64 * WIDE.n_features
    rows, dropped = reference_rows(TABLE, WIDE)
    rows[dropped] = np.nan
    assert found == about(rows, center)


def about(rows: np.ndarray, center: np.ndarray) -> ExactMoments:
    summary = MomentSummary(rows.shape[1], center=center, missing="drop")
    running = summary.start()
    summary.add(running, rows)
    return summary.finish(running)


def test_no_product_of_counts_overflows() -> None:
    """Merged counts of more rows than any test can read: times the value of a level they pass int64."""
    table = make_table(50)
    source = source_of(table, WIDE)
    summary = MomentSummary(WIDE.n_features, missing="drop")
    counting = counting_levels(summary, WIDE, source.reading.layout)
    assert counting is not None
    sums = summarize_in_threads(counting, source.parts(), source.encode_levels, 1)  # type: ignore[arg-type]
    once, total, doublings = dense(source, summary), sums, 32
    for _ in range(doublings):
        total = total.merge(total)
    found = counting.result(total)
    assert np.array_equal(found.gram, once.gram.astype(object) * 2**doublings)
    assert found.gram.max() > 2**63
    with refused("more than 2^38 rows are too many for one pass: read them"):
        total.merge(total)


@settings(max_examples=examples(100))
@given(values=st.lists(st.integers(-(2**62), 2**62), max_size=5), factor=st.integers(0, 2**48))
def test_integers_times_a_factor_are_exact(values: list[int], factor: int) -> None:
    high, low = _scaled_limbs(np.array(values, np.int64), factor)
    assert [(int(one) << 60) + int(two) for one, two in zip(high, low, strict=True)] == [
        value * factor for value in values
    ]
    assert all(0 <= two < 1 << 60 for two in low.tolist())


def test_a_group_is_judged_by_its_own_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: the schema of the whole table, whose bounds belong to other features."""
    judged: list[Schema] = []

    def watched(summary: Any, schema: Schema, layout: LevelLayout) -> Any:
        judged.append(schema)
        return counting_levels(summary, schema, layout)

    monkeypatch.setattr("dpmoments.rows.sources.source.counting_levels", watched)
    group = Rows.of(TABLE, WIDE).where("region", REGIONS[0])
    group.moments()
    assert judged == [group.source.reading.encoded_schema]  # type: ignore[attr-defined]
    assert "region" not in judged[0].names
