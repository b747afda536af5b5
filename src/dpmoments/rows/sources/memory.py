"""Tables in memory: arrays, separate columns, and frames through narwhals."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from dpmoments.base.errors import InputTypeError, InputValueError, listed
from dpmoments.base.table_libraries import nw
from dpmoments.rows.kernel import NumberBlock
from dpmoments.rows.sources.source import FAILED_QUERY, LocalSource, read_quietly, require_no_guess_of_polars
from dpmoments.rows.summary import BlockMemory, Missing, Summary
from dpmoments.schema.cells import ColumnTable, array_cells, series_cells
from dpmoments.schema.columns import Boolean, Coordinate, Numeric

_RAW_ROWS_PER_BLOCK = 1 << 20
_MIN_ROWS_PER_PART = 16_384
"""Smaller parts cost more in overhead than evenly loaded threads gain."""


@dataclass(frozen=True, eq=False, repr=False)
class ArraySource(LocalSource[npt.NDArray[Any]]):
    """Rows of a two-dimensional NumPy array with the schema's table columns, in order."""

    array: npt.NDArray[Any]

    def __post_init__(self) -> None:
        array, n_columns = self.array, len(self.reading.schema.names)
        if isinstance(array, np.ma.MaskedArray):
            raise InputTypeError(
                "a masked array's mask would be lost: fill it, array.filled(np.nan), and choose each column's "
                "missing rule"
            )
        if array.ndim != 2:
            raise InputValueError(
                f"an array of {array.ndim} dimensions is not a table: pass shape (rows, columns), array.reshape(-1, "
                "1) for a single column"
            )
        if array.dtype.names is not None or array.dtype.kind not in "biufO":
            # The width of a text dtype is that of its longest cell, so that only the kind is shown.
            raise InputTypeError(
                f"an array of type {array.dtype.type.__name__} is not a table of numbers: pass a numeric array, or "
                "a pandas, Polars or Arrow frame with named columns"
            )
        if array.shape[1] != n_columns:
            raise InputValueError(
                f"the array has {array.shape[1]} columns and the schema {n_columns}: an array's columns are the "
                "schema's, in order, without derived features"
            )
        object.__setattr__(self, "array", np.asarray(array))  # np.matrix has no one-dimensional columns

    @property
    def n_rows(self) -> int:
        return len(self.array)

    @property
    def raw(self) -> bool:
        """True if batches are the caller's own numbers."""
        # Summaries then apply the columns' common missing rule.
        return (
            self.array.dtype.kind in "iuf"
            and self.array.dtype.itemsize <= 8
            and self.reading.schema.is_coordinates
            and self.reading.schema.row_norm in (None, 1.0)
            and len({column.missing for column in self.reading.schema.table_columns}) == 1
        )

    @property
    def missing(self) -> Missing:
        if not self.raw:
            return "drop"
        column = self.reading.schema.table_columns[0]
        assert isinstance(column, Coordinate), "only coordinates reach the kernel unencoded"
        return column.missing

    def parts(self) -> Iterator[npt.NDArray[Any]]:
        return _slices(self.array, _RAW_ROWS_PER_BLOCK if self.raw else _rows_per_part(self))

    def parts_for(self, summary: Summary[Any, Any]) -> Iterator[npt.NDArray[Any]]:
        return _slices(self.array, summary.rows_per_task) if self.raw else self.parts()

    def encode(self, part: npt.NDArray[Any], memory: BlockMemory | None = None) -> npt.NDArray[Any]:
        """Return encoded rows, shape (n, d); the caller's own if nothing needs encoding."""
        return part if self.raw else super().encode(part, memory)

    @property
    def encodes_numbers(self) -> bool:
        return not self.raw

    def number_block(self, part: npt.NDArray[Any], memory: BlockMemory) -> NumberBlock:
        """Return a part whose numbers are the caller's own where they need no reading."""
        plain = self.array.dtype.kind in "iuf" and self.array.dtype.itemsize <= 8 and self.reading.restriction is None
        as_it_is = plain and all(
            not column.missing_values
            and (isinstance(column, Coordinate | Numeric) or (isinstance(column, Boolean) and not column.codes))
            for column in self.reading.schema.table_columns
        )
        if not as_it_is:  # reading does more than convert the array to float64
            return super().number_block(part, memory)
        return NumberBlock(len(part), lambda: part, lambda: self.encode(part, memory), self.encode_numbers)

    def written_cells(self, part: npt.NDArray[Any], name: str) -> Any:
        return array_cells(part[:, self.reading.names.index(name)])


@dataclass(frozen=True, eq=False, repr=False)
class ColumnSource(LocalSource[range]):
    """Rows of separate columns."""

    table: ColumnTable

    def __post_init__(self) -> None:
        require_columns(list(self.table.columns), self.reading.names, "the table")

    @property
    def n_rows(self) -> int:
        return self.table.n_rows

    def parts(self) -> Iterator[range]:
        return _slices(range(self.n_rows), _rows_per_part(self))

    def written_cells(self, part: range, name: str) -> Any:
        return self.table.cells(name, slice(part.start, part.stop))


@dataclass(frozen=True, eq=False, repr=False)
class FrameSource(LocalSource["nw.DataFrame[Any]"]):
    """Rows of an eager frame that narwhals supports: pandas, Polars, Arrow, Modin, cuDF."""

    frame: nw.DataFrame[Any]

    def __post_init__(self) -> None:
        index = getattr(getattr(self.frame.to_native(), "index", None), "names", ())
        lost = [name for name in self.reading.names if name in list(index) and name not in self.frame.columns]
        if lost:
            raise InputValueError(
                f"the frame has no column {listed(lost)}: that is its index, which is not read; pass "
                "frame.reset_index()"
            )
        require_columns(self.frame.columns, self.reading.names, "the frame")

    @property
    def n_rows(self) -> int:
        return len(self.frame)

    def parts(self) -> Iterator[nw.DataFrame[Any]]:
        return _slices(self.frame, _rows_per_part(self))

    def written_cells(self, part: nw.DataFrame[Any], name: str) -> Any:
        return series_cells(part[name], name)


@dataclass(frozen=True, eq=False, repr=False)
class LazySource(LocalSource["nw.DataFrame[Any]"]):
    """Rows of a Polars LazyFrame; every pass runs the query again, for the columns read only."""

    frame: Any

    def __post_init__(self) -> None:
        names = read_quietly(self.frame.collect_schema, "the lazy frame", FAILED_QUERY).names()
        require_columns(names, self.reading.names, "the lazy frame")
        plan = read_quietly(lambda: self.frame.explain(optimized=False), "the lazy frame", FAILED_QUERY)
        require_no_guess_of_polars(plan, names)

    def parts(self) -> Iterator[nw.DataFrame[Any]]:
        query = self.frame.select(*self.reading.names)
        collected = read_quietly(query.collect, "the lazy frame", FAILED_QUERY)
        yield from FrameSource(self.reading, nw.from_native(collected)).parts()

    def written_cells(self, part: nw.DataFrame[Any], name: str) -> Any:
        return series_cells(part[name], name)


class MissingColumnsError(InputValueError):
    """Table that lacks columns to be read."""

    names: tuple[str, ...]
    table: str
    n_columns: int
    hint: str

    @classmethod
    def of(cls, table: str, names: Sequence[str], n_columns: int, hint: str) -> Self:
        """Return the error of the absent names, with a hint at the names that are meant."""
        error = cls(
            f"{table} has no column {listed(names)} among its {n_columns}{hint}: rename the column in the table or, if every "
            "file has the other name, state it in the schema, as the column's source (no other name is listed, because without "
            "a header line it could be a value of a record)"
        )
        error.table, error.names, error.n_columns, error.hint = table, tuple(names), n_columns, hint
        return error


def require_columns(held: Sequence[object], wanted: Sequence[str], where: str) -> None:
    """Raise unless every column to be read occurs exactly once among ``held``."""
    # The message shows no names of the table, which are values of a record if a header line is missing, except, where
    # other wanted names are there, names that differ from wanted ones only in case, spaces or marks between words.
    names = [name for name in held if isinstance(name, str)]
    present = set(names)
    if absent := [name for name in wanted if name not in present]:
        plain = {key: name for name in names if len(absent) < len(wanted) and (key := _letters_and_digits(name))}
        alike = [plain[key] for name in absent if (key := _letters_and_digits(name)) in plain]
        raise MissingColumnsError.of(where, absent, len(held), f"; it has {listed(alike)}" if alike else "")
    if repeated := [name for name in wanted if names.count(name) > 1]:
        raise InputValueError(f"{where} has more than one column named {listed(repeated)}: rename them")


def _letters_and_digits(name: str) -> str:
    """Return the name without case, spaces and marks: ``patient_id`` is ``PatientID``."""
    return "".join(letter for letter in name.casefold() if letter.isalnum())


def _slices(rows: Any, step: int) -> Iterator[Any]:
    """Iterate over slices of this many rows, after one of none."""
    yield rows[:0]
    for start in range(0, len(rows), step):
        yield rows[start : start + step]


def _rows_per_part(source: ArraySource | ColumnSource | FrameSource) -> int:
    """Return the rows encoded at a time."""
    # An eighth of a small table, so that all threads have work.
    return min(source.reading.largest_part, max(_MIN_ROWS_PER_PART, source.n_rows // 8))
