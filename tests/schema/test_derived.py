"""Derived features: what their cells, bounds, names and files are, that rows stay in the ball, and that mechanisms serve them."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmoments as dpm
from dpmoments.audit.procedure import configuration
from dpmoments.audit.replay import replay
from dpmoments.base.message import Message
from dpmoments.mechanisms.means.base import MeanMechanism
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS, make_mean_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.encode import encode_columns
from dpmoments.rows.rows import Rows
from dpmoments.schema import Coordinate, DerivedColumn, Schema, derived_values
from dpmoments.schema.constraints import Constraints, LevelBlock
from dpmoments.schema.derived import column_from_dict
from dpmoments.schema.document import parse_yaml
from dpmoments.schema.encoding import column_weights, may_be_shortened
from support.examples import examples
from support.said import refused

EPSILON = 2.0**-53
BOUNDS = [
    (0.0, 100.0), (-100.0, 0.0), (-10.0, 100.0), (-100.0, 10.0), (10.0, 100.0), (-100.0, -10.0), (-1.0, 1.0), (0.1, 0.3),
    (-3.0, 1e-3), (1e9, 1e9 + 1), (-1e24, 1e20), (1e-20, 1e-19), (-1.0, 1e-24), (1e16, 1e16 + 6),
]  # fmt: skip
numbers = st.floats(-1e6, 1e6)
bounds = st.one_of(st.sampled_from(BOUNDS), st.tuples(numbers, numbers).filter(lambda ends: ends[1] - ends[0] > 1e-6))


# Random schemas and tables, and the exact reference -----------------------------------------------------------------------------


@st.composite
def schemas(draw: st.DrawFn, typical: bool) -> Schema:
    """A few columns of every kind, and derived features of all kinds, before and after them."""
    columns: list[Any] = []
    for index in range(draw(st.integers(1, 2))):
        lower, upper = draw(bounds)
        inside = (
            (lower + (upper - lower) * 0.25, lower + (upper - lower) * 0.5) if typical and draw(st.booleans()) else None
        )
        rule = draw(st.sampled_from(["center", "drop"]))
        columns.append(dpm.Numeric(f"n{index}", lower, upper, missing=rule, typical=inside))
    booleans = st.lists(st.sampled_from(["center", "drop"]), max_size=2)
    columns += [dpm.Boolean(f"b{index}", missing=rule) for index, rule in enumerate(draw(booleans))]
    for index in range(draw(st.integers(0, 2))):
        rules = draw(st.sampled_from(["zero", "drop"])), draw(st.sampled_from(["zero", "drop"]))
        columns.append(dpm.Categorical(f"c{index}", ["x", "y", "z"][: draw(st.integers(1, 3))], *rules))
    derived: list[Any] = [
        *(dpm.Power(column.name, exponent) for column in columns if column.kind == "numeric" for exponent in (2, 3, 4)),
        *(
            dpm.Product(*draw(st.permutations([one.name, other.name])))
            for one, other in itertools.combinations(columns, 2)
            if (one.kind, other.kind) != ("categorical", "categorical")
        ),
    ]
    chosen = draw(st.lists(st.sampled_from(derived), min_size=1, max_size=4, unique=True))
    return Schema(*draw(st.permutations(columns + chosen)))


def cell_of(column: Any) -> st.SearchStrategy[Any]:
    if column.kind == "numeric":
        lower, upper = column.bounds
        ends = [
            lower,
            upper,
            (lower + upper) / 2,
            0.0,
            None,
            math.nan,
            math.inf,
            -math.inf,
            1e300,
            -1e300,
            2 * upper - lower,
        ]
        return st.one_of(st.floats(lower, upper), st.sampled_from(ends))
    if column.kind == "boolean":
        return st.sampled_from([True, False, True, False, None])
    return st.sampled_from(["x", "y", "z", "else", "", None])


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, pa.Table]:
    schema, n_rows = draw(st.booleans().flatmap(schemas)), draw(st.integers(1, 8))
    types = {"numeric": pa.float64(), "boolean": pa.bool_(), "categorical": pa.string()}
    cells = {
        column.name: pa.array(
            draw(st.lists(cell_of(column), min_size=n_rows, max_size=n_rows)), types[column.kind], from_pandas=False
        )
        for column in schema.table_columns
    }
    return schema, pa.table(cells)


def kept_cells(schema: Schema, row: dict[str, Any]) -> dict[str, list[Fraction]] | None:
    """What the rules leave of a row's cells, without rounding, derived features included; None where it is dropped."""
    kept: dict[str, list[Fraction]] = {}
    for column in schema.table_columns:
        cell = row[column.name]
        if isinstance(column, dpm.Categorical):
            rule = column.missing if cell in (None, "") else column.other if cell not in column.levels else "keep"
            if rule == "drop":
                return None
            kept[column.name] = [Fraction(cell == level) for level in column.levels]
            continue
        lower, upper = map(Fraction, column.bounds)
        missing = cell is None or not math.isfinite(cell)
        if missing and column.missing == "drop":
            return None
        kept[column.name] = [(lower + upper) / 2 if missing else min(max(Fraction(cell), lower), upper)]
    for derived in schema.derived_columns:
        if isinstance(derived.stated, dpm.Power):
            kept[derived.name] = [kept[derived.stated.column][0] ** derived.stated.exponent]
        else:
            one, other = (kept[name] for name in derived.stated.factors)
            kept[derived.name] = [first * second for first in one for second in other]
    return kept


def exact_range(schema: Schema, derived: DerivedColumn) -> tuple[Fraction, Fraction]:
    """Interval arithmetic, case by case."""
    ranges = {
        column.name: (Fraction(0), Fraction(1)) if column.kind != "numeric" else tuple(map(Fraction, column.bounds))
        for column in schema.table_columns
    }
    if isinstance(derived.stated, dpm.Power):
        lower, upper = ranges[derived.stated.column]
        exponent = derived.stated.exponent
        if exponent % 2:
            return lower**exponent, upper**exponent
        largest = max(abs(lower), abs(upper)) ** exponent
        return (Fraction(0) if lower <= 0 <= upper else min(abs(lower), abs(upper)) ** exponent), largest
    (a, b), (c, d) = (ranges[name] for name in derived.stated.factors)
    products = [a * c, a * d, b * c, b * d]
    return min(products), max(products)


def exact_rows(schema: Schema, table: pa.Table, mean: bool) -> list[list[Fraction] | None]:
    """Encoded rows in units of the columns' bounds (not yet of the row norm); None where a row is dropped."""
    rows: list[list[Fraction] | None] = []
    for row in table.to_pylist():
        kept = kept_cells(schema, row)
        if kept is None:
            rows.append(None)
            continue
        encoded: list[Fraction] = []
        for column in schema.columns:
            if isinstance(column, dpm.Categorical):
                encoded += kept[column.name]
                continue
            lower, upper = (
                exact_range(schema, column)
                if isinstance(column, DerivedColumn)
                else tuple(map(Fraction, column.bounds))
            )
            of_levels = isinstance(column, DerivedColumn) and any(
                isinstance(part, dpm.Categorical) for part in column.factors
            )
            centered = mean and not of_levels
            offset, unit = (
                ((lower + upper) / 2, (upper - lower) / 2) if centered else (Fraction(0), max(abs(lower), abs(upper)))
            )
            encoded += [(value - offset) / unit for value in kept[column.name]]
        rows.append(encoded)
    return rows


def rounding(schema: Schema, mean: bool) -> np.ndarray:
    """What rounding may do to encoded cells: a part of their magnitude, not of the distance of their bounds; shape (d,)."""
    encoding = schema.encoding(mean=mean)
    return 32 * EPSILON * (np.abs(encoding.offset) / encoding.unit + 1.0)


def encoded_rows(schema: Schema, table: pa.Table, mean: bool) -> np.ndarray:
    return encode_columns({name: table[name] for name in schema.names}, schema, mean=mean)


# Cells -----------------------------------------------------------------------------------------------------------------------


@pytest.mark.long
@settings(max_examples=examples(150), deadline=None)
@given(made=tables(), mean=st.booleans())
def test_derived_cells_are_those_of_the_cells_that_rules_leave_and_rows_stay_in_the_ball(
    made: tuple[Schema, pa.Table], mean: bool
) -> None:
    schema, table = made
    block, tolerance = encoded_rows(schema, table, mean), rounding(schema, mean)
    weight = schema.encoding(mean=mean).weight
    weights = np.ones(schema.n_features) if weight is None else weight
    for found, expected in zip(block, exact_rows(schema, table, mean), strict=True):
        if expected is None:
            assert np.isnan(found).all()
            continue
        cells = zip(found, weights, expected, strict=True)
        off = [
            abs(Fraction(cell) * Fraction(schema.row_norm) - Fraction(weight) * exact) for cell, weight, exact in cells
        ]
        assert all(error <= limit for error, limit in zip(off, tolerance * weights, strict=True))
        assert (np.abs(found) <= weights / schema.row_norm).all()
        assert np.linalg.norm(found) <= 1.0 + 8 * EPSILON * len(found)


def test_powers_are_products_rounded_correctly_and_no_call_of_pow() -> None:
    """pow may round otherwise on another machine, or at another place of an array."""
    schema = Schema(dpm.Numeric("x", -50, 50), *(dpm.Power("x", exponent) for exponent in (2, 3, 4)))
    x = np.random.default_rng(0).uniform(-50, 50, 2000)
    values = derived_values(schema, np.column_stack([x, x, x, x]))
    assert values.tolist() == [[v, v * v, v * v * v, (v * v) * (v * v)] for v in x.tolist()]
    assert not np.array_equal(values[:, 2], x**3)  # planted fault


# Bounds ----------------------------------------------------------------------------------------------------------------------


@pytest.mark.long
@settings(max_examples=examples(200), deadline=None)
@given(schema=schemas(typical=False))
def test_bounds_hold_the_exact_range_and_little_more(schema: Schema) -> None:
    for derived in schema.derived_columns:
        lower, upper = map(Fraction, derived.bounds)
        least, most = exact_range(schema, derived)
        assert lower <= least < most <= upper
        slack = 4 * EPSILON * max(abs(least), abs(most))
        assert least - lower <= slack
        assert upper - most <= slack


# Names, order, files -----------------------------------------------------------------------------------------------------------

AGE, HOURS, SMOKER = dpm.Numeric("age", 0, 100), dpm.Numeric("hours", 0, 80), dpm.Boolean("smoker")
REGION = dpm.Categorical("region", ["north", "south"])
EVERYTHING = Schema(
    dpm.Product("age", "region"), AGE, dpm.Power("age", 2), HOURS, SMOKER, dpm.Product("smoker", "age"), REGION,
    dpm.Product("region", "smoker"), dpm.Power("hours", 4), dpm.Product("hours", "age"),
)  # fmt: skip


def test_names_order_and_row_norm() -> None:
    assert EVERYTHING.feature_names == (
        "age:region=north", "age:region=south", "age", "age^2", "hours", "smoker", "smoker:age", "region=north", "region=south",
        "region=north:smoker", "region=south:smoker", "hours^4", "hours:age",
    )  # fmt: skip
    assert EVERYTHING.names == ("age", "hours", "smoker", "region")
    assert EVERYTHING.table_columns == (AGE, HOURS, SMOKER, REGION)
    assert [column.name for column in EVERYTHING.derived_columns] == [
        "age:region", "age^2", "smoker:age", "region:smoker", "hours^4", "hours:age",
    ]  # fmt: skip
    assert EVERYTHING.row_norm == pytest.approx(math.sqrt(10), rel=5e-5)  # a block of k features counts as one column
    assert Schema(*EVERYTHING.columns) == EVERYTHING
    assert EVERYTHING.without_derived == Schema(AGE, HOURS, SMOKER, REGION)
    assert Schema(AGE, dpm.Power("age", 2), row_norm=1.2).without_derived.row_norm == 1.0
    assert Schema(AGE, HOURS, dpm.Power("age", 2), row_norm=1.2).without_derived.row_norm == 1.2
    assert repr(Schema(AGE, dpm.Power("age", 2), SMOKER, dpm.Product("age", "smoker"))).count("Power('age', 2)") == 1


def test_a_file_says_what_is_derived_and_of_what(tmp_path: Path) -> None:
    EVERYTHING.save(tmp_path / "schema.yaml")
    assert Schema.load(tmp_path / "schema.yaml") == EVERYTHING
    entries = EVERYTHING.to_dict()["columns"]
    assert entries[0] == {"kind": "product", "factors": ["age", "region"]}
    assert entries[2] == {"kind": "power", "column": "age", "exponent": 2}
    release = dpm.release(people(200), EVERYTHING, epsilon=1.0, output=tmp_path / "release.json")
    assert dpm.load(tmp_path / "release.json").schema == EVERYTHING
    assert release.feature_names == EVERYTHING.feature_names
    assert Message("derived-feature", column="age^2", factors=("age",)) in release.privacy.rules


SCALED = dpm.Numeric("income", scale=(1, 1e6))
NO_EXPONENT = "must be 2, 3 or 4 (the column itself is its first"
NO_NAME = "a column's name is a non-empty string, got"
NO_COLUMN = "a derived feature is made of columns of the table,"
TWICE = "duplicate column names in the schema"
TOO_FAR = "of each other: use units of measurement in which the"
REFUSED: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: dpm.Power("age", 1), ValueError, NO_EXPONENT),
    (lambda: dpm.Power("age", 5), ValueError, NO_EXPONENT),
    (lambda: dpm.Power("age", 2.5), TypeError, "the exponent must be a whole number, got"),
    (lambda: dpm.Power("age", True), TypeError, "the exponent must be a whole number, got"),
    (lambda: dpm.Power(AGE, 2), TypeError, NO_NAME),
    (lambda: dpm.Product(AGE, HOURS), TypeError, NO_NAME),
    (lambda: dpm.Product("age"), ValueError, "a product needs two factors, names of two columns,"),
    (lambda: dpm.Product("age", "hours", "smoker"), ValueError, "a product needs two factors, names of two columns,"),
    (lambda: dpm.Product("age", "age"), ValueError, "with itself: use Power"),
    (lambda: Schema(AGE, dpm.Power("agee", 2)), ValueError, NO_COLUMN),
    (lambda: Schema(AGE, dpm.Power("age", 2), dpm.Power("age^2", 2)), ValueError, NO_COLUMN),
    (lambda: Schema(dpm.Power("age", 2)), ValueError, NO_COLUMN),
    (lambda: Schema(SMOKER, dpm.Power("smoker", 2)), ValueError, "leave it out"),
    (lambda: Schema(REGION, dpm.Power("region", 2)), ValueError, "leave it out"),
    (
        lambda: Schema(REGION, dpm.Categorical("sex", ["f", "m"]), dpm.Product("region", "sex")),
        ValueError,
        "both columns are categorical, and the Gram matrix",
    ),
    (
        lambda: Schema(Coordinate("x"), dpm.Power("x", 2), row_norm=1),
        ValueError,
        "is a coordinate without bounds, so nothing can be",
    ),
    (lambda: Schema(SCALED, dpm.Power("income", 2)), ValueError, "has a scale in place of bounds, so that nothing"),
    (
        lambda: Schema(AGE, SCALED, dpm.Power("age", 2)),
        ValueError,
        "has a scale in place of bounds, and the schema has",
    ),
    (lambda: Schema(AGE, dpm.Power("age", 2), dpm.Power("age", 2)), ValueError, TWICE),
    (
        lambda: Schema(AGE, SMOKER, dpm.Product("age", "smoker"), dpm.Product("smoker", "age")),
        ValueError,
        "are the same product: leave one out",
    ),
    (lambda: Schema(AGE, dpm.Numeric("age^2", 0, 1), dpm.Power("age", 2)), ValueError, TWICE),
    (
        lambda: Schema(AGE, REGION, dpm.Boolean("age:region=north"), dpm.Product("age", "region")),
        ValueError,
        "two columns give the same feature name",
    ),
    (lambda: Schema(dpm.Numeric("x", 0, 1e40), dpm.Power("x", 3)), ValueError, TOO_FAR),
    (lambda: Schema(dpm.Numeric("x", 0, 1e90), dpm.Power("x", 4)), ValueError, TOO_FAR),
    (lambda: Schema(dpm.Numeric("x", 0, 1e-60), dpm.Power("x", 2)), ValueError, TOO_FAR),
    (lambda: from_file("{kind: power, column: age, exponent: }"), ValueError, "a power has no exponent"),
    (lambda: from_file("{kind: product}"), ValueError, "a product has no factors"),
    (lambda: from_file("{kind: product, factors: age}"), ValueError, "give a list of two names of columns"),
    (lambda: from_file("{kind: power, name: a, column: age, exponent: 2}"), ValueError, "has unknown entries"),
    (lambda: from_file("{kind: product, factors: [age, 3]}"), TypeError, NO_NAME),
]


def from_file(entry: str) -> Schema:
    return Schema.from_dict(parse_yaml(f"columns: [{{name: age, kind: numeric, lower: 0, upper: 1}}, {entry}]"))


@pytest.mark.parametrize(("make", "kind", "said"), REFUSED)
def test_what_cannot_be_derived_is_refused_with_the_reason(
    make: Callable[[], object], kind: type[Exception], said: str
) -> None:
    with refused(said, kind):
        make()


# What else asks the schema ------------------------------------------------------------------------------------------------------


def people(n_rows: int, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": rng.uniform(-20, 120, n_rows),
            "hours": rng.uniform(0, 80, n_rows),
            "smoker": rng.random(n_rows) < 0.3,
            "region": rng.choice(["north", "south"], n_rows),
        }
    )


def test_an_array_and_a_file_have_the_tables_columns_alone(tmp_path: Path) -> None:
    schema = Schema(dpm.Power("age", 2), AGE, SMOKER, dpm.Product("age", "smoker"))
    table = people(50).select(["smoker", "age"])
    expected = Rows.of(table, schema).moments()
    array = np.column_stack([table["age"], table["smoker"].to_numpy(zero_copy_only=False).astype(float)])
    assert Rows.of(array, schema).moments() == expected
    with refused("an array's columns are the schema's, in order, without"):
        Rows.of(np.ones((3, 4)), schema)
    # a column of that name in the table is not read, whatever it holds
    odd = table.append_column("age^2", pa.array(["Smith"] * 50)).append_column("age:smoker", pa.array([None] * 50))
    pq.write_table(odd, tmp_path / "t.parquet")
    for data in (
        odd,
        odd.to_pandas(),
        pl.from_arrow(odd).lazy(),
        tmp_path / "t.parquet",
        duckdb.connect().from_arrow(odd),
    ):
        assert Rows.of(data, schema).moments() == expected


def test_what_the_encoding_makes_true_is_claimed_and_no_more() -> None:
    other = dpm.Boolean("other", missing="drop")
    unsure = dpm.Boolean("unsure", missing="center")
    schema = Schema(
        dpm.Product("other", "smoker"), SMOKER, other, unsure, dpm.Product("unsure", "smoker"), AGE, dpm.Product("age", "smoker"),
        REGION, dpm.Product("region", "age"), dpm.Product("smoker", "region"),
    )  # fmt: skip
    found = Constraints.of(schema, mean=True)
    assert found.flags == (0, 1, 2)
    assert found.blocks == (LevelBlock(7, 9, complete=True),)
    assert found.lower.tolist() == [-1] * 7 + [0] * 6
    assert found.upper.tolist() == [1] * 13
    assert Constraints.of(schema, mean=False).flags == ()
    assert not may_be_shortened(schema.columns, schema.row_norm)
    # planted fault: as if derived features were no columns in the bound on a row
    assert may_be_shortened(schema.columns, math.sqrt(len(schema.table_columns)))


def test_typical_ranges_of_factors_are_passed_on() -> None:
    age = dpm.Numeric("age", 0, 120, typical=(20, 75))
    schema = Schema(
        age, SMOKER, REGION, dpm.Power("age", 2), dpm.Product("age", "smoker"), dpm.Product("age", "region")
    )
    power, product, block = schema.derived_columns
    assert power.typical_within_bounds == (400.0, 5625.0)
    assert product.typical_within_bounds == block.typical_within_bounds == (0.0, 75.0)
    assert Schema(HOURS, dpm.Power("hours", 2)).derived_columns[0].typical_within_bounds is None


@pytest.mark.parametrize("mean", [True, False])
def test_a_block_asks_for_the_part_of_the_ball_that_its_mean_square_calls_for(mean: bool) -> None:
    """As much as one numeric column in [−1, 1] with half of its mean square, of which the levels' means take 2/(k + 1)."""
    columns = [dpm.Numeric("age", 0, 120, typical=(20, 75)), REGION]
    deviation, middle = 75 / 4 / 120, 75 / 2 / 120  # the product is 0 to 75, typically, in units of 120
    mean_square = deviation**2 + middle**2 * (1 / 3 if mean else 1)
    end = 2 * math.sqrt(mean_square / 2)
    found = column_weights(Schema(*columns, dpm.Product("age", "region")).columns, mean=mean)
    alike = column_weights(Schema(*columns, dpm.Numeric("z", -1, 1, typical=(-end, end))).columns, mean=mean)
    np.testing.assert_allclose(found, alike, rtol=1e-12)


# Values for predictions --------------------------------------------------------------------------------------------------------


def test_derived_values_of_a_frame_as_it_is() -> None:
    schema = Schema(
        dpm.Power("age", 2), AGE, SMOKER, REGION, dpm.Product("age", "smoker"), dpm.Product("age", "region")
    )
    gap = math.nan
    values = np.array(
        [[7.0, 200.0, 1, 0, 1, 7, 7, 7], [7.0, gap, 0, 1, 0, 7, 7, 7], [7.0, -1.0, gap, gap, gap, 7, 7, 7]]
    )
    found = derived_values(schema, values)
    np.testing.assert_array_equal(
        found,
        [
            [40000.0, 200, 1, 0, 1, 200, 0, 200],
            [gap, gap, 0, 1, 0, gap, gap, gap],
            [1.0, -1, gap, gap, gap, gap, gap, gap],
        ],
    )
    with refused("one column per feature, got"):
        derived_values(schema, values[:, :7])


# What they cost ----------------------------------------------------------------------------------------------------------------


def test_the_forecast_says_what_derived_features_and_robust_errors_cost_in_noise() -> None:
    """Against a forecast of the schema without them, and with them."""
    plain = Schema(AGE, HOURS)
    asked: dict[str, Any] = dict(n_rows=1024, rho=0.5, mechanism="gaussian")
    told, less = (dpm.forecast(schema, **asked) for schema in (Schema(AGE, HOURS, dpm.Power("age", 2)), plain))
    assert told.derived_cost is not None
    assert less.noise is not None
    assert told.derived_cost.after == pytest.approx(less.noise.typical_correlation(), rel=1e-9)
    assert told.derived_cost.ratio < 0.9
    assert str(told.derived_cost) in str(told)
    assert less.derived_cost is None
    robust = dpm.forecast(plain, robust=["age", "hours"], **asked)
    with_them = dpm.forecast(plain.with_products(["age", "hours"]), **asked)
    assert robust.robust_cost is not None
    assert with_them.derived_cost is not None
    assert robust.robust_cost.after == pytest.approx(with_them.derived_cost.before, rel=1e-9)
    assert str(robust.robust_cost) in str(robust)
    assert dpm.forecast(plain.with_products(["age"]), robust=["age"], **asked).robust_cost is None


# Every mechanism, replayed -----------------------------------------------------------------------------------------------------

SMALL = Schema(
    dpm.Power("x", 2), dpm.Numeric("x", -5, 10, missing="drop"), dpm.Boolean("flag", missing="drop"), dpm.Product("x", "flag"),
    dpm.Categorical("level", ["a", "b"], missing="zero", other="drop"), dpm.Product("level", "x"),
)  # fmt: skip
ORDINARY = {"x": 3.0, "flag": True, "level": "a"}
ROWS: dict[str, dict[str, Any]] = {
    "at the bounds": {"x": 10.0, "flag": True, "level": "b"},
    "at the other bound": {"x": -5.0, "flag": False, "level": "a"},
    "far outside": {"x": 1e300, "flag": True, "level": "b"},
    "of no level": {"x": -1e300, "flag": True, "level": None},
    "dropped by a factor": {"x": None, "flag": True, "level": "a"},
    "dropped by another factor": {"x": 10.0, "flag": None, "level": "b"},
    "dropped for its level": {"x": 10.0, "flag": True, "level": "else"},
}


def small_table(last: dict[str, Any] | None) -> pa.Table:
    rng = np.random.default_rng(4)
    n_rows = 40
    rows = [
        {"x": float(x), "flag": bool(flag), "level": str(level)}
        for x, flag, level in zip(
            rng.normal(2, 4, n_rows), rng.random(n_rows) < 0.5, rng.choice(["a", "b"], n_rows), strict=True
        )
    ]
    kinds = pa.schema({"x": pa.float64(), "flag": pa.bool_(), "level": pa.string()})
    return pa.Table.from_pylist(rows + ([] if last is None else [last]), schema=kinds)


BUDGETS = {
    BudgetKind.PURE: PrivacyBudget.pure(1.0),
    BudgetKind.APPROXIMATE: PrivacyBudget.approximate(1.0, 1e-6),
    BudgetKind.ZCDP: PrivacyBudget.zcdp(0.5),
}
SERVED: list[Any] = [
    made
    for made in (
        *(configuration(name) for name in MECHANISMS),
        *(make_mean_mechanism(name) for name in MEAN_MECHANISMS),
    )
    if made.most_features is None
]


FEW_ROWS = ("far outside", "dropped by a factor")


@pytest.mark.long
@pytest.mark.parametrize(
    ("mechanism", "neighbors"),
    [(mechanism, neighbors) for mechanism in SERVED for neighbors in sorted(mechanism.supported_neighbors)],
    ids=lambda value: value if isinstance(value, str) else type(value).__name__,
)
def test_no_mechanism_lets_a_row_of_derived_features_move_a_query_further_than_it_pays_for(
    mechanism: Any, neighbors: Neighbors
) -> None:
    of_means = isinstance(mechanism, MeanMechanism)
    plans = 0
    for mean in (True,) if of_means else (True, False):
        before = small_table(None if neighbors is Neighbors.ADD_REMOVE else ORDINARY)
        n_rows = len(before) if neighbors.table_size_is_public else None
        shape = MomentShape.of(SMALL, mean=mean, n_rows=n_rows)
        try:
            plan = mechanism.plan(shape, BUDGETS[min(mechanism.budget_kinds)], neighbors)
        except ValueError:  # not with the mean, or not without
            continue
        plans += 1
        for name in FEW_ROWS if of_means else ROWS:
            first, second = (
                Rows.of(table, SMALL, mean=mean, neighbors=neighbors, threads=1)
                for table in (before, small_table(ROWS[name]))
            )
            assert replay(plan, first, second, insecure_generator(1)) == (), name
    assert plans


@pytest.mark.long
def test_the_page_on_derived_features_shows_what_the_library_says() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to-read-tables.md").read_text(encoding="utf-8")
    schema = re.search(r"```python\n(products = .*?)^print", page, re.S | re.M)
    entries = re.search(r"```yaml\n(.*?)```", page, re.S)
    assert schema is not None
    assert entries is not None
    made: dict[str, Any] = {"dpm": dpm}
    exec(schema[1], made)
    assert str(dpm.forecast(made["products"], n_rows=50_000, epsilon=1.0).derived_cost) in page
    stated = [column_from_dict(entry) for entry in parse_yaml(entries[1])]
    assert stated == [dpm.Power("age", 2), dpm.Product("age", "smoker")]
