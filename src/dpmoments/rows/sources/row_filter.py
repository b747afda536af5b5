"""Filters of frames that are applied as files are read.

A filter is comparisons of columns with values, all of which must hold.
A row is kept or left out by its own cells, as Arrow compares them, and only plans are accepted whose engine compares every cell
in the same way. Everything else is left to the engine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from dpmoments.foundation.arrays import BoolArray
from dpmoments.foundation.table_libraries import pa, pc

_MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
"""Operators of a comparison whose sides are exchanged."""
_EXACT_IN_FLOAT64 = 2**53


@dataclass(frozen=True)
class Comparison:
    """Comparison of a column with a value of its type; a row without a cell is left out."""

    column: str
    operator: str  # ==, !=, <, <=, >, >=; or present and missing, without a value
    value: bool | int | float | str | None = None  # never NaN
    # true if NaN is greater than every number (Spark); else no comparison with it holds (pandas)
    nan_is_largest: bool = False

    def holds(self, cells: Any) -> BoolArray:
        """Return which cells of an Arrow array fulfill it."""
        if self.operator in ("present", "missing"):
            valid = pc.is_valid(cells)
            result = valid if self.operator == "present" else pc.invert(valid)
            return _mask(result)
        if pa.types.is_dictionary(cells.type):
            cells = cells.dictionary_decode()
        if pa.types.is_integer(cells.type):
            cells = cells.cast(pa.int64())
        result = _COMPARE[self.operator](cells, pa.scalar(self.value, cells.type))
        if pa.types.is_floating(cells.type):
            largest = self.nan_is_largest and self.operator in (">", ">=", "!=")
            result = pc.if_else(pc.is_nan(cells), largest, result)
        return _mask(result)


def kept_rows(batch: pa.RecordBatch, comparisons: Iterable[Comparison]) -> pa.RecordBatch:
    """Return the rows of a batch for which all comparisons hold."""
    for comparison in comparisons:
        batch = batch.filter(pa.array(comparison.holds(batch.column(comparison.column))))
    return batch


_COMPARE: Mapping[str, Any] = {
    "==": lambda cells, value: pc.equal(cells, value),
    "!=": lambda cells, value: pc.not_equal(cells, value),
    "<": lambda cells, value: pc.less(cells, value),
    "<=": lambda cells, value: pc.less_equal(cells, value),
    ">": lambda cells, value: pc.greater(cells, value),
    ">=": lambda cells, value: pc.greater_equal(cells, value),
}


def _mask(result: Any) -> BoolArray:
    mask: BoolArray = pc.fill_null(result, False).to_numpy(zero_copy_only=False)
    return mask


# Spark: conditions of an optimized plan. A row is kept if its condition is true, neither false nor null.

_SPARK_OPERATORS = {
    "EqualTo": "==",
    "GreaterThan": ">",
    "GreaterThanOrEqual": ">=",
    "LessThan": "<",
    "LessThanOrEqual": "<=",
}
_SPARK_NUMBERS = {"double": float, "float": float, "bigint": int, "int": int, "smallint": int, "tinyint": int}


def comparisons_of_spark(condition: Any, names: Mapping[int, str]) -> list[Comparison] | None:
    """Return the comparisons that a condition consists of; None for any other condition."""
    # `condition` is a Catalyst expression, `names` the names of the scanned columns by their expression IDs.
    kind = _class_of(condition)
    if kind == "And":
        sides = [comparisons_of_spark(side, names) for side in (condition.left(), condition.right())]
        return None if sides[0] is None or sides[1] is None else sides[0] + sides[1]
    if kind in ("IsNotNull", "IsNull"):
        name = _scanned_name(condition.child(), names)
        return None if name is None else [Comparison(name, "present" if kind == "IsNotNull" else "missing")]
    negated = kind == "Not"
    compared = condition.child() if negated else condition
    operator = _SPARK_OPERATORS.get(_class_of(compared))
    if operator is None or (negated and operator != "=="):
        return None
    left, right = compared.left(), compared.right()
    if _class_of(left) == "Literal":
        left, right, operator = right, left, _MIRRORED[operator]
    name = _scanned_name(left, names)
    if name is None or _class_of(right) != "Literal":
        return None
    kind_of_cells = str(left.dataType().simpleString())  # text in another collation says so
    value = _spark_value(right, kind_of_cells)
    if value is None or (isinstance(value, str) and operator != "=="):
        return None
    return [Comparison(name, "!=" if negated else operator, value, nan_is_largest=True)]


def _class_of(node: Any) -> str:
    """Return the class name of an expression; empty if it is not one of Catalyst's own."""
    name = str(node.getClass().getName())
    package, _, kind = name.rpartition(".")
    return kind if package == "org.apache.spark.sql.catalyst.expressions" else ""


def _scanned_name(node: Any, names: Mapping[int, str]) -> str | None:
    if _class_of(node) != "AttributeReference":
        return None
    return names.get(int(node.exprId().id()))


def _spark_value(literal: Any, kind: str) -> float | int | str | None:
    """Return a literal's value; None unless it is finite and of the cells' type."""
    if str(literal.dataType().simpleString()) != kind or literal.value() is None:
        return None
    if kind == "string":
        return str(literal.value().toString())
    if kind not in _SPARK_NUMBERS:
        return None
    value: float | int = _SPARK_NUMBERS[kind](str(literal.value()))
    return value if math.isfinite(value) else None


# Dask: predicates of a plan. Without != missing cells and NaN are left out, whatever types pandas gives a partition.

_DASK_OPERATORS = {"EQ": "==", "GT": ">", "GE": ">=", "LT": "<", "LE": "<="}


def comparisons_of_dask(predicate: Any, frame: Any) -> list[Comparison] | None:
    """Return the comparisons of columns of ``frame`` that a predicate consists of."""
    # None for any other predicate.
    kind = type(predicate).__name__ if type(predicate).__module__.startswith("dask.dataframe.") else ""
    if kind == "And":
        sides = [comparisons_of_dask(side, frame) for side in (predicate.left, predicate.right)]
        return None if sides[0] is None or sides[1] is None else sides[0] + sides[1]
    operator = _DASK_OPERATORS.get(kind)
    if operator is None:
        return None
    column, value = predicate.left, predicate.right
    if not hasattr(column, "operands"):
        column, value, operator = value, column, _MIRRORED[operator]
    if type(column).__name__ != "Projection" or column.frame._name != frame._name or column.ndim != 1:
        return None
    name, value = column.operand("columns"), _dask_value(value, str(column._meta.dtype))
    if not isinstance(name, str) or value is None or (isinstance(value, str) and operator != "=="):
        return None
    return [Comparison(name, operator, value)]


def _dask_value(value: Any, dtype: str) -> float | int | str | None:
    """Return a value that pandas compares exactly with cells of this type; None for any other."""
    if dtype == "float64" and type(value) in (int, float) and math.isfinite(value):
        return float(value) if type(value) is float or abs(value) <= _EXACT_IN_FLOAT64 else None
    if dtype in ("int8", "int16", "int32", "int64") and type(value) is int:
        return value if abs(value) < _EXACT_IN_FLOAT64 else None  # an empty cell makes floats of a partition's integers
    return value if dtype == "string" and type(value) is str else None
