"""What each cell rule does, and that a row's encoding depends on that row alone."""

from __future__ import annotations

import math
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import dpmoments as dpm
from dpmoments.rows.encode import encode_columns
from dpmoments.rows.rows import Rows
from dpmoments.rows.summary import checked_block, fill_missing, plain_rows
from dpmoments.schema import Coordinate, Schema
from support.encoded_blocks import encoded_blocks
from support.said import Said, refused
from support.table_forms import write


def outcome(column: Any, frame: Any) -> list[float] | str:
    """The encoded cell of a frame of one, or what became of its row."""
    rows = Rows.of(frame, Schema(column, row_norm=1), neighbors="add_remove")
    block = next(encoded_blocks(rows))
    return block[0].tolist() if len(block) else "dropped"


STOPPED = (
    "has a cell that is missing, not finite or not readable, and",
    "a cell is NaN or infinite and missing='error': clean the",
)
AGE = dict(lower=0, upper=100)
RULES: list[tuple[Any, Any, list[float] | str]] = [
    (dpm.Numeric("c", **AGE), 75, [0.5]),
    (dpm.Numeric("c", **AGE), 0.0, [-1.0]),
    (dpm.Numeric("c", **AGE), -7.5, [-1.0]),
    (dpm.Numeric("c", **AGE), 1e300, [1.0]),
    *[(dpm.Numeric("c", **AGE, missing="error"), cell, "error") for cell in (None, math.nan, math.inf, -math.inf)],
    *[(dpm.Numeric("c", **AGE, missing="center"), cell, [0.0]) for cell in (None, math.nan, math.inf, -math.inf)],
    *[(dpm.Numeric("c", **AGE, missing="drop"), cell, "dropped") for cell in (None, math.nan, math.inf, -math.inf)],
    *[(dpm.Boolean("c", missing="center"), cell, [value]) for cell, value in [(True, 1.0), (False, -1.0), (None, 0.0)]],
    (dpm.Boolean("c"), None, "error"),
    (dpm.Boolean("c", missing="drop"), None, "dropped"),
    (dpm.Boolean("c"), 7, [1.0]),
    (dpm.Boolean("c"), 0.5, [0.0]),
    *[(dpm.Boolean("c", true_values=[5], false_values=["no"]), cell, [value]) for cell, value in [(1, 1.0), (0, -1.0), (5, 1.0)]],
    *[(dpm.Categorical("c", ["x", "y"]), cell, value) for cell, value in [("x", [1, 0]), ("y", [0, 1])]],
    *[(dpm.Categorical("c", ["x", "y"]), cell, "dropped") for cell in ("z", "X", " x", "x ", "xy")],
    (dpm.Categorical("c", ["x", "y"], other="zero"), "z", [0.0, 0.0]),
    *[(dpm.Categorical("c", ["x", "y"], missing="error"), cell, "error") for cell in (None, "")],
    *[(dpm.Categorical("c", ["x", "y"], missing="zero"), cell, [0.0, 0.0]) for cell in (None, "")],
    *[(dpm.Categorical("c", ["x", "y"], missing="drop", other="zero"), cell, "dropped") for cell in (None, "")],
    (dpm.Categorical("c", ["x", ""]), "", [0, 1]),
    (dpm.Categorical("c", ["x", ""], missing="zero"), None, [0, 0]),
    *[(dpm.Categorical("c", [3, 40]), cell, [1, 0]) for cell in (3, 3.0, "3", "3.0")],
    *[(dpm.Categorical("c", [3, 40]), cell, "dropped") for cell in (4, 3.5, "03", "3.", "3.00", " 3", "x", 2**53 + 1)],
    (dpm.Categorical("c", [3, 40], missing="zero"), math.nan, [0, 0]),
    *[(dpm.Categorical("c", ["3", "040"]), cell, value) for cell, value in [(3, [1, 0]), ("040", [0, 1]), (40, "dropped")]],
    (dpm.Categorical("c", [2**53 - 1]), 2**53 - 1, [1]),
    (dpm.Categorical("c", [str(2**63)]), 2.0**63, "dropped"),
    *[(dpm.Categorical("c", [2**53 - 1]), cell, "dropped") for cell in (2**53, -(2**53) + 1, 2**63 - 1)],
    *[(dpm.Categorical("c", ["1", "2.5", "-0"]), *row) for row in [(1.0, [1, 0, 0]), ("2.5", [0, 1, 0]), ("-0", [0, 0, 1])]],
    *[(dpm.Categorical("c", ["1", "2.5", "-0"]), cell, "dropped") for cell in (2.5, -0.0, 1.5, "1.0")],
    (Coordinate("c", missing="error"), math.inf, "error"),
    (Coordinate("c", missing="center"), math.inf, [0.0]),
    (Coordinate("c", missing="drop"), math.inf, "dropped"),
]  # fmt: skip


@pytest.mark.long(sets=51)
@pytest.mark.parametrize(("column", "cell", "expected"), RULES, ids=[f"{row[0]!r}-{row[1]!r}" for row in RULES])
def test_what_each_rule_does(column: Any, cell: Any, expected: list[float] | str) -> None:
    frames: list[Any] = [pa.table({"c": [cell]}), pd.DataFrame({"c": pd.Series([cell], dtype=object)})]
    if isinstance(column, Coordinate):
        frames.append(np.array([[cell]]))
    for frame in frames:
        if expected == "error":
            with refused(STOPPED):
                outcome(column, frame)
            with refused(STOPPED):
                Rows.of(frame, Schema(column, row_norm=1), neighbors="replace_one").moments()
            continue
        assert outcome(column, frame) == expected
        moments = Rows.of(frame, Schema(column, row_norm=1), neighbors="replace_one").moments()
        assert (moments.count, moments.dropped) == (int(expected != "dropped"), 0)


def test_a_decimal_is_rounded_once_whatever_the_scale_of_its_column() -> None:
    """A row's encoding depends on that row alone: the digits of another row's cell widen the column's type."""
    cells = [Decimal(numerator).scaleb(-3) for numerator in range(1, 2000, 7)]
    schema = Schema(dpm.Numeric("c", -1, 2.5))
    expected = Rows.of(np.array([[float(cell)] for cell in cells]), schema)
    unlike = 0
    for scale in (3, 10, 20, 30):
        column = pa.array(cells, pa.decimal128(38, scale))
        found = next(encoded_blocks(Rows.of(pa.table({"c": column}), schema)))
        assert found.tobytes() == next(encoded_blocks(expected)).tobytes()
        unlike += int((pc.cast(column, pa.float64()).to_numpy() != [float(cell) for cell in cells]).sum())
    assert unlike > 0  # planted fault: Arrow's own cast


def test_a_single_column_keeps_its_empty_lines(tmp_path: Path) -> None:
    schema = Schema(dpm.Numeric("c", 0, 2, missing="center"))
    path = write(tmp_path / "t.csv", b'c\n1\n\n2\n""\n')
    assert Rows.of(path, schema).moments() == Rows.of(pa.table({"c": [1.0, None, 2.0, None]}), schema).moments()
    two = write(tmp_path / "two.csv", b"c,d\n1,1\n\n2,2\n\n\n")
    assert Rows.of(two, schema, neighbors="replace_one").moments().count == 2


def test_a_block_is_a_plain_array_of_real_numbers() -> None:
    for kind in (bool, np.int8, np.uint64, np.float32, np.float64):
        assert checked_block(np.ones((2, 3), dtype=kind), 3).shape == (2, 3)
    faulty: list[Any] = [
        [[1.0, 2.0, 3.0]],
        np.ma.masked_array(np.ones((2, 3))),
        np.ones((2, 3), dtype=object),
        np.ones((2, 3), dtype="U3"),
        np.ones((2, 3), dtype=np.complex64),
        np.ones((2, 3), dtype=np.longdouble),
        np.ones((2, 3), dtype="m8[s]"),
    ]
    for block in faulty:
        with refused(
            (
                "a block must not be a masked array: fill masked cells with",
                "a block must hold integers, float32 or float64, got dtype",
                "must be",
            ),
            TypeError,
        ):
            checked_block(block, 3)
    for shape in ((3,), (1, 2, 3), (3, 2)):
        with refused(("a block must have", "a block must be two-dimensional, got")):
            checked_block(np.ones(shape), 3)


def test_text_is_no_number_and_a_large_integer_is_the_nearest() -> None:
    schema = Schema(dpm.Numeric("x", 0.0, 1e19, missing="drop"))
    for cells in (pa.array(["1.5", "2"]), pa.array([b"1"]), pa.array([0, 1], pa.timestamp("s"))):
        with refused(
            (
                "column needs numbers: describe it as Date, with dates for",
                "column needs numbers: convert it, or describe it as",
            ),
            TypeError,
        ):
            Rows.of(pa.table({"x": cells}), schema).moments()
    large = [2**53 + 1, 2**63 - 1, 12]
    exact = Rows.of(pa.table({"x": pa.array(large)}), schema).moments()
    assert (
        exact.gram == Rows.of(pa.table({"x": pa.array([float(cell) for cell in large])}), schema).moments().gram
    ).all()


def test_whole_numbers_in_floats_are_levels_up_to_two_to_the_63() -> None:
    text = str(3 * 2**61)
    schema = Schema(dpm.Categorical("c", [text, "1"], missing="drop"))
    found = Rows.of(pa.table({"c": pa.array([3.0 * 2.0**61, 1.0, 1.5, 2.0**63, math.inf, None])}), schema)
    expected = Rows.of(pa.table({"c": pa.array([text, "1", "other", "other", "other", None])}), schema)
    assert (found.moments().gram == expected.moments().gram).all()


def test_a_level_that_is_an_integer_is_the_same_in_every_type() -> None:
    schema = Schema(dpm.Categorical("c", [3, -1, 0], missing="zero", other="zero"))
    plain = [3, -1, 3, 7, 0]
    expected = [[1, 0, 0], [0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]]
    for cells in (
        pa.array(plain),
        pa.array(plain, pa.int8()),
        pa.array(plain, pa.float32()),
        pa.array([3.0, -1.0, 3.0, 7.0, -0.0]),
        pa.array(["3", "-1", "3.0", "7", "0"]),
        pa.array(["3", "-1.0", "3", "3.5", "0.0"], pa.large_string()),
        np.array([3, -1.0, "3", None, 0], dtype=object),
        np.array([3, -1.0, "3", None, -0.0], dtype=object),
    ):
        assert encode_columns({"c": cells}, schema, mean=False).tolist() == expected
    assert encode_columns({"c": pa.array([2**53 + 1, 3])}, schema, mean=False).tolist() == [[0, 0, 0], [1, 0, 0]]
    for gap in (math.nan, math.inf, 2.5, None):
        assert encode_columns({"c": pa.array([gap, 3.0])}, schema, mean=False).tolist() == [[0, 0, 0], [1, 0, 0]]


def test_how_many_rows_a_rule_for_missing_cells_drops() -> None:
    gaps = np.array([[math.nan, 1.0], [2.0, 3.0], [4.0, -math.inf], [math.inf, math.nan]])
    for rule, dropped, left in (
        ("center", 0, [[0.0, 1.0], [2.0, 3.0], [4.0, 0.0], [0.0, 0.0]]),
        ("drop", 3, [[0.0, 0.0], [2.0, 3.0], [0.0, 0.0], [0.0, 0.0]]),
    ):
        values = gaps.copy()
        assert fill_missing(values, rule) == dropped  # type: ignore[arg-type]
        assert values.tolist() == left
        assert fill_missing(values, "drop") == 0
    assert plain_rows(gaps, "drop").tolist() == [[2.0, 3.0]]
    assert len(plain_rows(gaps, "center")) == 4
    plain = np.asfortranarray(np.ones((3, 2), dtype=np.float32))
    copied = plain_rows(plain, "error")
    assert copied.dtype == np.float64
    assert copied.flags.c_contiguous
    for rule in ("error", "drop"):
        rows = np.ones((3, 2))
        assert not np.shares_memory(plain_rows(rows, rule), rows)  # type: ignore[arg-type]
    with refused("a cell is NaN or infinite and missing='error': clean the"):
        fill_missing(gaps, "error")


def test_a_refusal_names_a_type_without_what_may_be_read_off_cells() -> None:
    types = {
        "nested values": [pa.array([{"secret": 1}]), pa.array([[1]])],
        "binary": [pa.array([b"abc"], pa.binary(3)), pa.array([b"1"])],
        "decimal": [pa.array([Decimal("1.23")])],
        "bool": [pa.array([True])],
        "timestamp": [pa.array([0, 1], pa.timestamp("s"))],
    }
    for name, columns in types.items():
        said = Said("in the table and a categorical column needs text or", column="c", type=name)
        for cells, levels in product(columns, (["x"], [1, 0])):
            with refused(said, TypeError):
                encode_columns({"c": cells}, Schema(dpm.Categorical("c", levels)), mean=False)


def test_a_column_with_a_scale_takes_numbers_up_to_1e200() -> None:
    schema = Schema(dpm.Numeric("c", scale=(1, 10), missing="center"))
    cells = {"c": pa.array([1.7e308, 1e200, -1e300, -1e200, 7.0, None])}
    large, at_most, small, at_least, other, missing = encode_columns(cells, schema, mean=True)[:, 0].tolist()
    assert (large, small) == (at_most, at_least)
    assert large == -small
    assert other != missing
