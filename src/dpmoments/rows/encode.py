"""Conversion of values to encoded rows, and restriction to rows with given levels.

The schema's per-row rules, applied to one batch of columns.

Every value has exactly one outcome, and a row's encoding depends on that row only:

================================  ==========================================================================
value                             outcome
================================  ==========================================================================
number inside the bounds          mapped affinely
number outside the bounds         clipped to the bounds, then mapped
number in a column with a scale   mapped affinely, as ±1e200 if beyond it
null, NaN, +inf, −inf             the column's ``missing`` rule: error (one for all), a public value, or row dropped
listed in ``missing_values``      the same rule
unreadable, in a column of these  the same rule: text, bytes or a list among numbers; text that is not a date
level of a categorical, or alias  one-hot
unknown level, unreadable value   the column's ``other`` rule: row dropped, or no level
null or empty text (categorical)  the column's ``missing`` rule: error, no level, or row dropped
================================  ==========================================================================

A number beyond the range of float64 is infinite; :mod:`dpmoments.schema.cell_reading` defines how each type is read. A
Boolean column also accepts numbers, like a numeric column with bounds 0 and 1, and the values that it lists for true and
false. A column of text is read as numbers if the schema states their format. So a value stops a pass only if the
column's rule is "error". Before any value is read, a column is refused if its declared type contains no usable value,
such as text for a Numeric. Derived features are computed after those rules and have none of their own. A dropped row is
NaN here; the kernel turns it into zeros. No error names a value.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmoments.base.errors import InputTypeError, InputValueError, listed, shown
from dpmoments.base.table_libraries import pa, pc
from dpmoments.base.values import BoolArray, FloatArray
from dpmoments.rows.compiled import CellRules
from dpmoments.rows.level_sums import CodedBlock, LevelLayout
from dpmoments.rows.summary import BlockMemory, dropped_by_missing
from dpmoments.schema.cell_reading import MISSING, UNKNOWN, CodeArray, NumberColumn, level_codes, name_words, numbers
from dpmoments.schema.columns import Boolean, Categorical, Column, NameColumn, WeightColumn
from dpmoments.schema.constraints import Level, grouping_column, levels_of, schema_of_groups
from dpmoments.schema.derived import MissingIndicator, presence_column
from dpmoments.schema.encoding import Encoding
from dpmoments.schema.schema import Schema


@dataclass(frozen=True)
class Restriction:
    """Selection of rows by their level of one column, and the schema of the other columns.

    ``column`` (Categorical or Boolean) is read but not encoded. A row without one of its levels is left out, whatever
    the column's rule; with ``missing="error"``, a missing value is still an error, as is an unreadable one of a
    Boolean.
    """

    column: Categorical | Boolean
    levels: tuple[Level, ...]
    schema: Schema

    @classmethod
    def of(cls, schema: Schema, by: str, levels: Sequence[Level]) -> Restriction:
        """Return the restriction to rows with one of these levels in the column ``by``."""
        column = grouping_column(schema, by)
        known = levels_of(column)
        typed = [(type(level), level) for level in known]
        if unknown := [level for level in levels if (type(level), level) not in typed]:
            raise InputValueError(
                f"{shown(unknown[0])} is not a level of {by}: use one of {listed(list(map(str, known)))}"
            )
        return cls(column, tuple(levels), schema_of_groups(schema, by))

    def applied(self, columns: Mapping[str, Any]) -> dict[str, Any]:
        """Return the other columns of a batch, limited to the selected rows."""
        with suppress(pa.ArrowException):  # whose message may quote a cell
            kept = self._kept(columns[self.column.name])
            return {name: _rows(columns[name], kept) for name in self.schema.names}
        raise InputTypeError(
            f"column '{self.column.name}', or another column, cannot be divided into groups: convert it first"
        )

    def _kept(self, cells: Any) -> BoolArray:
        """Return the mask of selected rows, shape (n,)."""
        if isinstance(self.column, Categorical):
            codes = level_codes(cells, self.column)
            missing, instead = codes == MISSING, "zero"
        else:
            values = numbers(cells, self.column)[0]
            missing, instead = ~np.isfinite(values), "fill"
            if self.column.missing == "fill":
                values, missing = np.where(missing, self.column.replacement, values), np.zeros_like(missing)
            # as the cell would be encoded: beyond 0 and 1 at the nearer; between them it is no level
            codes = np.where(values >= 1.0, 1, np.where(values <= 0.0, 0, -1))
        dropped_by_missing(missing, self.column.missing, self.column.name, instead)
        indices = [levels_of(self.column).index(level) for level in self.levels]
        kept: BoolArray = np.isin(codes, indices) & ~missing
        return kept


def _rows(cells: Any, kept: BoolArray) -> Any:
    if isinstance(cells, np.ndarray):
        return cells[kept]
    # Arrow filters neither of these types.
    if pa.types.is_run_end_encoded(cells.type):
        cells = pc.run_end_decode(cells)
    if pa.types.is_string_view(cells.type):
        cells = cells.cast(pa.large_string())
    return cells.filter(pa.array(kept))


def encode_columns(columns: Mapping[str, Any], schema: Schema, *, mean: bool) -> FloatArray:
    """Encode equally long columns as rows, shape (n, d); dropped rows are NaN throughout."""
    # Rows have norm ≤ 1, up to rounding, if the schema bounds every column and its row norm is the default.
    return encode_levels(columns, schema, LevelLayout.of(schema, mean=mean)).encoded()


def encode_levels(
    columns: Mapping[str, Any], schema: Schema, layout: LevelLayout, memory: BlockMemory | None = None
) -> CodedBlock:
    """Encode columns like :func:`encode_columns`, with codes in place of one-hot levels."""
    n_rows = len(columns[schema.names[0]])
    block = (BlockMemory() if memory is None else memory).block(n_rows, len(layout.numbers))
    drop = np.zeros(n_rows, dtype=bool)
    codes: list[CodeArray] = []
    factors = {factor.name for column in schema.derived_columns for factor in column.factors}
    ruled: dict[str, FloatArray] = {}  # cells as their columns' rules left them, in the table's units
    absent: dict[str, BoolArray] = {}  # rows without a value, of columns with missing="available"
    dropped: BoolArray | None
    for column in schema.table_columns:
        if isinstance(column, NameColumn):
            block[:, layout.slices[column.name]], missing = _read(name_words, columns[column.name], column)
            dropped = dropped_by_missing(missing, column.missing, column.name, "available")
        elif isinstance(column, Categorical):
            result, dropped = _encoded_levels(columns[column.name], column)
            codes.append(result)
            if column.name in factors:
                ruled[column.name] = _one_hot(result, column)
            if column.missing == "available":
                absent[column.name] = result == len(column.levels)
        else:
            index = layout.slices[column.name]
            values = _read_numbers(columns[column.name], column)
            if isinstance(column, WeightColumn):  # a negative weight is as unusable as a missing one
                values = np.where(values < 0.0, np.nan, values)
            if column.missing == "available" and (missing := ~np.isfinite(values)).any():
                absent[column.name] = missing
            dropped = _ruled(values, column, block[:, index.start])
            if column.name in factors:
                ruled[column.name] = block[:, index].copy(order="F")
            _encode_in_place(block, index, layout.encoding)
        if dropped is not None:
            drop |= dropped
    for derived in schema.derived_columns:
        index = layout.slices[derived.name]
        lost = absent.get(presence_column(derived) or "")
        if isinstance(derived, MissingIndicator):
            block[:, index.start] = 0.0 if lost is None else lost
        else:
            block[:, index] = derived.values([ruled[factor.name] for factor in derived.factors])
        _encode_in_place(block, index, layout.encoding)
        if lost is not None and not isinstance(derived, MissingIndicator):
            block[lost, index] = 0.0
    return CodedBlock(layout, block, tuple(codes), drop)


# Schemas of numbers only: read first, then encoded, here or in machine code.


def read_numbers(columns: Mapping[str, Any], schema: Schema, memory: BlockMemory) -> FloatArray:
    """Convert columns of numbers to float64, shape (n, d), before any rule."""
    # The next batch overwrites them.
    block = memory.block(len(columns[schema.names[0]]), len(schema.names))
    for index, column in enumerate(schema.table_columns):
        assert not isinstance(column, Categorical), "a schema of numbers only"
        block[:, index] = _read_numbers(columns[column.name], column)
    return block


def encode_numbers(values: FloatArray, schema: Schema, layout: LevelLayout) -> FloatArray:
    """Encode numbers of :func:`read_numbers` like :func:`encode_columns`."""
    # Machine code gives the same bits.
    block = np.empty(values.shape, order="F")
    drop = np.zeros(len(values), dtype=bool)
    for index, column in enumerate(schema.table_columns):
        assert not isinstance(column, Categorical), "a schema of numbers only"
        dropped = _ruled(np.asarray(values[:, index], dtype=np.float64), column, block[:, index])
        _encode_in_place(block, slice(index, index + 1), layout.encoding)
        if dropped is not None:
            drop |= dropped
    return CodedBlock(layout, block, (), drop).encoded()


def cell_rules(schema: Schema, layout: LevelLayout) -> CellRules | None:
    """Return the constants of :func:`encode_numbers`. None if a feature is a level or derived."""
    if schema.derived_columns or any(isinstance(column, Categorical) for column in schema.table_columns):
        return None
    encoding = layout.encoding
    d = len(schema.table_columns)
    rules = np.empty((d, 6))
    for index, column in enumerate(schema.table_columns):
        assert not isinstance(column, Categorical), "a layout without levels"
        rules[index, :3] = *column.clipped_to, column.replacement
    rules[:, 3], rules[:, 4] = encoding.offset, encoding.unit
    rules[:, 5] = 1.0 if encoding.weight is None else encoding.weight
    return CellRules(
        rules,
        np.array([column.missing == "drop" for column in schema.table_columns]),
        np.array([column.missing == "error" for column in schema.table_columns]),
        2.0**1023 * encoding.row_norm if encoding.row_norm < 1 else np.inf,
        float(encoding.row_norm),
    )


def _encoded_levels(cells: Any, column: Categorical) -> tuple[CodeArray, BoolArray | None]:
    """Return level codes as in :class:`CodedBlock`, shape (n,), and a mask of dropped rows."""
    # The mask is None without any.
    codes: CodeArray = _read(level_codes, cells, column)
    if not len(codes) or codes.min() >= 0:
        return codes, None
    dropped = dropped_by_missing(codes == MISSING, column.missing, column.name, "available")
    if column.other == "drop":
        dropped = dropped | (codes == UNKNOWN)
    return np.where(codes < 0, len(column.levels), codes), dropped


def _one_hot(codes: CodeArray, column: Categorical) -> FloatArray:
    rows = np.zeros((len(codes), len(column.levels)), order="F")
    known = np.flatnonzero(codes < len(column.levels))
    rows[known, codes[known]] = 1.0
    return rows


def _read_numbers(cells: Any, column: NumberColumn) -> FloatArray:
    """Convert cells to float64, NaN if missing or unreadable."""
    values: FloatArray = _read(numbers, cells, column)[0]
    return values


def _read(reader: Callable[[Any, Any], Any], cells: Any, column: Column) -> Any:
    """Return what ``reader`` makes of a column's values."""
    with suppress(pa.ArrowException):  # whose message may quote a cell
        return reader(cells, column)
    raise InputTypeError(f"column '{column.name}' cannot be converted to plain numbers or text: convert it first")


def _ruled(values: FloatArray, column: NumberColumn, out: FloatArray) -> BoolArray | None:
    """Fill ``out`` with numbers after the column's rules; return a mask of dropped rows or None."""
    dropped = None
    if (missing := ~np.isfinite(values)).any():
        instead = "available" if "available" in column.missing_rules else "drop"
        dropped = dropped_by_missing(missing, column.missing, column.name, instead)
        values = np.where(missing, column.replacement, values)
    np.clip(values, *column.clipped_to, out=out)
    return dropped


def _encode_in_place(block: FloatArray, features: slice, encoding: Encoding) -> None:
    """Encode some features in place, while they are in the processor's cache."""
    for feature in range(features.start, features.stop):
        encoding.encode_cells(block[:, feature], feature, out=block[:, feature])
    encoding.scale_into_ball(block[:, features], features.start)
