"""Rows whose levels are codes: an encoded part of a table before its levels are spread over features, most of which are 0."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dpmoments.cells.reading import CodeArray
from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.rows.summary import Adapted
from dpmoments.schema.columns import Categorical
from dpmoments.schema.derived import feature_slices
from dpmoments.schema.encoding import Encoding
from dpmoments.schema.schema import Schema

__all__ = ["LevelBlock", "LevelColumn", "LevelLayout", "OfEncodedRows", "dense_rows_at_a_time"]

MOST_ROWS_PER_BLOCK = 65_536
MOST_CELLS_PER_BLOCK = 1 << 22

Running = TypeVar("Running")
Result = TypeVar("Result")


def dense_rows_at_a_time(n_features: int) -> int:
    """How many rows of so many features are held at a time: 32 megabytes at most, or 64 rows."""
    return min(MOST_ROWS_PER_BLOCK, max(64, MOST_CELLS_PER_BLOCK // n_features))


@dataclass(frozen=True)
class LevelColumn:
    """A categorical column of a schema.

    Attributes
    ----------
    start : int
        Its first feature.
    n_levels : int
    may_have_none : bool
        Whether a row that counts may have none of the levels.
    value : float
        What the feature of a row's level is, in the unit ball.
    """

    start: int
    n_levels: int
    may_have_none: bool
    value: float

    @property
    def features(self) -> slice:
        """Of the levels."""
        return slice(self.start, self.start + self.n_levels)

    @property
    def n_codes(self) -> int:
        """Codes of rows that count: those of the levels, and one more where there may be none."""
        return self.n_levels + self.may_have_none


@dataclass(frozen=True, eq=False)
class LevelLayout:
    """Which features of a schema are levels of categorical columns, and which are numbers: all others, products with levels too.

    Attributes
    ----------
    n_features : int
        d.
    numbers : ndarray of int64, shape (m,)
        Places of the features that are numbers.
    encoding : Encoding
        Of the numbers.
    places : mapping of str to slice
        Where the features of each column that is not categorical stand among the numbers.
    columns : tuple of LevelColumn
    """

    n_features: int
    numbers: npt.NDArray[np.int64]
    encoding: Encoding
    places: Mapping[str, slice]
    columns: tuple[LevelColumn, ...]

    @classmethod
    def of(cls, schema: Schema, *, mean: bool) -> LevelLayout:
        """The layout of encoded rows.

        Examples
        --------
        >>> from dpmoments import Numeric
        >>> layout = LevelLayout.of(Schema(Categorical("region", ["north", "south"]), Numeric("age", 0, 100)), mean=True)
        >>> layout.numbers.tolist(), [column.features for column in layout.columns]
        ([2], [slice(0, 2, None)])
        """
        encoding = schema.encoding(mean=mean)
        ones = np.ones((1, schema.n_features))
        encoding.scale_into_ball(ones)
        is_number, columns = np.ones(schema.n_features, dtype=bool), []
        for column, place in zip(schema.columns, feature_slices(schema.columns), strict=True):
            if isinstance(column, Categorical):
                is_number[place] = False
                none = "zero" in (column.missing, column.other)
                columns.append(LevelColumn(place.start, len(column.levels), none, float(ones[0, place.start])))
        numbers = np.flatnonzero(is_number)
        others = [column for column in schema.columns if not isinstance(column, Categorical)]
        places = {column.name: place for column, place in zip(others, feature_slices(others), strict=True)}
        return cls(schema.n_features, numbers, encoding.of_features(numbers), places, tuple(columns))


@dataclass(frozen=True, eq=False, repr=False)
class LevelBlock:
    """Encoded rows of a part of a table.

    Attributes
    ----------
    layout : LevelLayout
    numbers : ndarray, shape (n, m), stored by columns
        In the unit ball; finite in rows that are not dropped.
    codes : tuple of ndarray of int64, shape (n,)
        For each categorical column which level a row has; the number of levels where it has none.
    dropped : ndarray of bool, shape (n,)
        Rows that a rule drops.
    """

    layout: LevelLayout
    numbers: FloatArray
    codes: tuple[CodeArray, ...]
    dropped: BoolArray

    def __len__(self) -> int:
        return len(self.dropped)

    def kept(self) -> LevelBlock:
        """The rows that no rule drops."""
        if not self.dropped.any():
            return self
        kept = np.flatnonzero(~self.dropped)
        codes = tuple(codes[kept] for codes in self.codes)
        return LevelBlock(self.layout, np.asfortranarray(self.numbers[kept]), codes, self.dropped[kept])

    def rows(self, start: int, stop: int) -> LevelBlock:
        """Some of the rows, one after the other."""
        codes = tuple(codes[start:stop] for codes in self.codes)
        return LevelBlock(self.layout, self.numbers[start:stop], codes, self.dropped[start:stop])

    def encoded(self) -> FloatArray:
        """The same rows, shape (n, d), with a feature for every level; a dropped row is NaN throughout."""
        if not self.codes:
            rows: FloatArray = self.numbers.copy(order="F") if self.dropped.any() else self.numbers
        else:
            rows = np.zeros((len(self), self.layout.n_features), order="F")
            rows[:, self.layout.numbers] = self.numbers
            for column, codes in zip(self.layout.columns, self.codes, strict=True):
                known = np.flatnonzero(codes < column.n_levels)
                rows[known, column.start + codes[known]] = column.value
        rows[self.dropped] = np.nan
        return rows

    def encoded_blocks(self) -> Iterator[FloatArray]:
        """The same as :meth:`encoded`, in blocks of 32 megabytes at most, or of 64 rows."""
        step = dense_rows_at_a_time(self.layout.n_features)
        for start in range(0, len(self), step):
            yield self.rows(start, start + step).encoded()


@dataclass(frozen=True)
class OfEncodedRows(Adapted[Running, Result]):
    """A summary that takes rows with a feature for every level, of blocks of codes; few such rows are held at a time."""

    def add(self, running: Running, block: Any) -> None:
        for rows in block.encoded_blocks():
            self.summary.add(running, rows)
