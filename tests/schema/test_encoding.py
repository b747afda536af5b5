"""The affine map between a table's units and the unit ball, on cells and on moments, against exact rational arithmetic."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmoments as dpm
from dpmoments.rows.encode import encode_columns
from dpmoments.rows.sources.source import Reading
from dpmoments.schema import Schema
from dpmoments.schema.columns import Numeric
from support.examples import examples
from support.said import refused

EPSILON = 2.0**-53
"""Relative error of one rounding."""

BOUNDS = [
    (0.0, 1.0), (0.0, 100.0), (-100.0, 0.0), (-1.0, 1.0), (-3.0, 17.0), (5.0, 6.0), (-6.0, -5.0), (0.1, 0.3),
    (1e9, 1e9 + 1), (-1e9, 2e9), (0.0, 1e-9), (0.0, 1e100), (-1e100, 1e-100), (1e-100, 2e-100), (1e16, 1e16 + 2),
    (1e16, 1e16 + 6),
]  # fmt: skip

numbers = st.floats(-1e12, 1e12)
finite_bounds = st.one_of(
    st.sampled_from(BOUNDS),
    st.tuples(numbers, numbers).filter(lambda pair: pair[1] - pair[0] > 1e-12),
    st.floats(1e-9, 1e12).map(lambda upper: (0.0, upper)),
    st.floats(1e-9, 1e12).map(lambda upper: (-upper, 0.0)),
)


@st.composite
def tables(draw: st.DrawFn) -> tuple[Schema, dict[str, Any]]:
    """A schema of a few columns, and cells of every kind it allows, few of them missing."""
    n_rows = draw(st.integers(1, 6))
    columns: list[Any] = []
    cells: dict[str, Any] = {}
    for index in range(draw(st.integers(1, 4))):
        name = f"c{index}"
        if draw(st.booleans()):
            lower, upper = draw(finite_bounds)
            columns.append(dpm.Numeric(name, lower, upper, missing="center"))
            inside = st.floats(lower, upper)
            cell = st.one_of(inside, st.sampled_from([lower, upper, np.nan, np.inf, -np.inf, 1e300, -1e300]))
            cells[name] = pa.array(draw(st.lists(cell, min_size=n_rows, max_size=n_rows)), pa.float64())
        else:
            columns.append(dpm.Categorical(name, ["x", "y"], missing="zero", other="zero"))
            cell = st.sampled_from(["x", "y", "z", None, ""])
            cells[name] = pa.array(draw(st.lists(cell, min_size=n_rows, max_size=n_rows)), pa.string())
    norm = draw(st.one_of(st.just("default"), st.floats(0.1, 2.0)))
    return Schema(*columns, row_norm=norm), cells


@pytest.mark.parametrize("bounds", BOUNDS)
@pytest.mark.parametrize("mean", [True, False])
def test_bounds_attain_one_and_nothing_passes_it(bounds: tuple[float, float], mean: bool) -> None:
    lower, upper = bounds
    schema = Schema(dpm.Numeric("c", lower, upper))
    cells = pa.array([lower, upper, lower - 1e101, upper + 1e101])
    low, high, below, above = encode_columns({"c": cells}, schema, mean=mean)[:, 0]
    assert (below, above) == (low, high)
    assert max(abs(low), abs(high)) == 1.0
    if mean:
        assert low <= 0 < high  # 0 where the midpoint is rounded to the bound
    else:
        assert low == lower / max(abs(lower), abs(upper))
    # planted fault: half the width as the unit, where the midpoint is rounded, passes one
    if bounds == (1e16, 1e16 + 6) and mean:
        midpoint, half = lower + (upper - lower) / 2, (upper - lower) / 2
        assert abs(lower - midpoint) / half > 1.3


def exact_moments(rows: Sequence[Sequence[Fraction]]) -> tuple[list[Fraction], list[list[Fraction]]]:
    """Mean and second moment, slow and exact."""
    n, d = len(rows), len(rows[0])
    mean = [sum((row[i] for row in rows), Fraction(0)) / n for i in range(d)]
    second = [[sum((row[i] * row[j] for row in rows), Fraction(0)) / n for j in range(d)] for i in range(d)]
    return mean, second


@settings(max_examples=examples(150), deadline=None)
@given(table=tables(), mean=st.booleans())
def test_moments_come_back_in_the_tables_units(table: tuple[Schema, dict[str, Any]], mean: bool) -> None:
    """Encode cells, take moments, decode: what the table's own moments are, to rounding."""
    schema, cells = table
    encoding = schema.encoding(mean=mean)
    encoded = [[Fraction(cell) for cell in row] for row in encode_columns(cells, schema, mean=mean).tolist()]
    mean, second = exact_moments(encoded)
    offset, scale = map(Fraction, encoding.offset.tolist()), [Fraction(value) for value in encoding.scale.tolist()]
    offset = list(offset)
    own_rows = [[offset[i] + scale[i] * row[i] for i in range(len(row))] for row in encoded]
    own_mean, own_second = exact_moments(own_rows)

    unit_mean = np.array([float(value) for value in mean])
    unit_second = np.array([[float(value) for value in line] for line in second])
    # Rounding is relative to the largest term of the sum, not to what is left of it.
    size = np.abs(encoding.offset) + encoding.unit
    found_mean = encoding.decode_mean(unit_mean)
    assert_close(found_mean, own_mean, 4 * EPSILON * size)
    found_second = encoding.decode_second_moment(unit_second, unit_mean)
    assert_close(found_second, own_second, 12 * EPSILON * np.outer(size, size))
    own_covariance = [
        [own_second[i][j] - own_mean[i] * own_mean[j] for j in range(len(mean))] for i in range(len(mean))
    ]
    covariance = np.array(
        [[float(second[i][j] - mean[i] * mean[j]) for j in range(len(mean))] for i in range(len(mean))]
    )
    assert_close(
        encoding.decode_covariance(covariance), own_covariance, 6 * EPSILON * np.outer(encoding.unit, encoding.unit)
    )


def assert_close(found: np.ndarray[Any, Any], expected: Any, tolerance: np.ndarray[Any, Any]) -> None:
    expected = np.array(expected, dtype=object).reshape(found.shape)
    for index in np.ndindex(found.shape):
        assert abs(Fraction(float(found[index])) - expected[index]) <= Fraction(float(tolerance[index])), index


@pytest.mark.long
@settings(max_examples=examples(150), deadline=None)
@given(table=tables(), mean=st.booleans())
def test_cells_inside_the_bounds_come_back_themselves(table: tuple[Schema, dict[str, Any]], mean: bool) -> None:
    schema, cells = table
    encoding = schema.encoding(mean=mean)
    decoded = encoding.decode_mean(encode_columns(cells, schema, mean=mean))
    size = np.abs(encoding.offset) + encoding.unit
    start = 0
    for column in schema.columns:
        if isinstance(column, Numeric):
            lower, upper = column.bounds
            values = np.nan_to_num(cells[column.name].to_numpy(), nan=np.nan, posinf=np.nan, neginf=np.nan)
            expected = np.where(np.isnan(values), lower + (upper - lower) / 2, np.clip(values, lower, upper))
            assert (np.abs(decoded[:, start] - expected) <= 8 * EPSILON * size[start]).all()
        else:
            one_hot = np.array([[cell == level for level in column.levels] for cell in cells[column.name].to_pylist()])
            assert (np.abs(decoded[:, start : start + 2] - one_hot) <= 4 * EPSILON).all()
        start += len(column.feature_names)


def test_a_second_moment_about_an_offset_needs_the_mean() -> None:
    centered = Schema(dpm.Numeric("c", 0, 1)).encoding(mean=True)
    with refused("the second moment in original units needs the mean, because"):
        centered.decode_second_moment(np.eye(1), None)
    plain = Schema(dpm.Numeric("c", 0, 2)).encoding(mean=False)
    np.testing.assert_array_equal(plain.decode_second_moment(np.eye(1), None), [[4.0]])


def test_a_block_takes_32_megabytes() -> None:
    rows_of = {1: 65_536, 64: 65_536, 65: 64_527, 2_000: 2_097}
    assert {d: Reading(Schema.unit_ball(d), mean=True).largest_part for d in rows_of} == rows_of
