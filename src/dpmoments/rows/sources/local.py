"""Sources on one machine.

Parts of the table read in turn, encoded and summarized in threads.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, Generic, Self, TypeVar, cast

import numpy.typing as npt

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.text_format import TextFormat
from dpmoments.privacy.unit import PrivacyUnit
from dpmoments.rows.encode import (
    cell_rules,
    encode_columns,
    encode_levels,
    encode_numbers,
    largest_block,
    read_numbers,
)
from dpmoments.rows.kernel import NumberBlock, of_numbers
from dpmoments.rows.level_sums import LevelBlock, LevelLayout, OfEncodedRows, counting_levels
from dpmoments.rows.restriction import Restriction
from dpmoments.rows.summary import BlockMemory, Missing, Summary
from dpmoments.rows.threads import summarize_in_threads
from dpmoments.rows.units import UnitBlock
from dpmoments.schema.schema import Schema

Part = TypeVar("Part")
Running = TypeVar("Running")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False, repr=False)
class LocalSource(ABC, Generic[Part]):
    """Table that this process reads itself, repeatedly.

    If ``mean``, rows are encoded about the midpoints of their bounds (:meth:`dpmoments.Schema.encoding`).
    ``restriction`` limits the rows to some levels of a column. The column of ``privacy_unit`` is read in addition to
    the schema's.
    """

    schema: Schema
    mean: bool
    restriction: Restriction | None = field(default=None, kw_only=True)
    privacy_unit: PrivacyUnit | None = field(default=None, kw_only=True)

    @property
    def largest_part(self) -> int:
        """Number of rows encoded at a time."""
        return largest_block(self.schema, whole_rows=self.privacy_unit is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that are read, by their names in the table."""
        names = self.schema.names_in_table
        return names if self.privacy_unit is None else (*names, self.privacy_unit.column)

    @property
    def names_read(self) -> Mapping[str, str]:
        """Names of the columns that are read: in the table → in the schema."""
        return dict(zip(self.names, (*self.schema.names, self.names[-1]), strict=False))

    def restricted(self, restriction: Restriction) -> Self:
        """Return the table limited to some rows."""
        return replace(self, restriction=restriction)

    @property
    def encoded_schema(self) -> Schema:
        """Schema of the columns that are encoded."""
        return self.schema if self.restriction is None else self.restriction.schema

    @cached_property
    def layout(self) -> LevelLayout:
        """Layout of levels and numbers among the encoded features."""
        return LevelLayout.of(self.encoded_schema, mean=self.mean)

    def counted(self, columns: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the columns of a part, limited to the selected rows."""
        return columns if self.restriction is None else self.restriction.applied(columns)

    @property
    def n_rows(self) -> int | None:
        """Number of rows if known without a pass."""
        return None

    @property
    def pass_length(self) -> int | None:
        """Length of a pass in rows, unless a source has a better unit."""
        return self.n_rows

    @property
    def missing(self) -> Missing:
        """Rule for non-finite values of an encoded batch.

        In a batch encoded by columns, a dropped row.
        """
        return "drop"

    @abstractmethod
    def parts(self) -> Iterator[Part]:
        """Iterate over parts of the table, before encoding; each has a length."""

    def parts_for(self, summary: Summary[Any, Any]) -> Iterator[Part]:
        """Iterate over parts, of the size that suits a summary if possible."""
        del summary
        return self.parts()

    def measured(self, parts: Iterator[Part]) -> Iterator[tuple[Part, int]]:
        """Iterate over parts with their share of :attr:`pass_length`."""
        for part in parts:
            yield part, len(part)  # type: ignore[arg-type]

    @abstractmethod
    def written_cells(self, part: Part, name: str) -> Any:
        """Return a column of a part before any rule: an Arrow array, or one of Python objects.

        ``name`` is the column's name in the table.
        """

    def cells(self, part: Part) -> Mapping[str, Any]:
        """Return the columns of a part, by their names in the schema and read by its kinds."""
        return {own: self.written_cells(part, name) for name, own in self.names_read.items()}

    def encode(self, part: Part, memory: BlockMemory | None = None) -> npt.NDArray[Any]:
        """Return encoded rows, (n, d), read-only, NaN if dropped.

        With ``memory`` the next part overwrites them.
        """
        return self.encode_levels(part, memory).encoded()

    def encode_levels(self, part: Part, memory: BlockMemory | None = None) -> LevelBlock:
        """Return the encoded rows with levels as codes."""
        return encode_levels(self.counted(self.cells(part)), self.encoded_schema, self.layout, memory)

    @property
    def encodes_numbers(self) -> bool:
        """True if parts may be encoded in machine code."""
        return True

    def _of_numbers(self, summary: Summary[Running, Result]) -> Summary[Running, Result] | None:
        rules = cell_rules(self.encoded_schema, self.layout) if self.encodes_numbers else None
        return None if rules is None else cast("Summary[Running, Result] | None", of_numbers(summary, rules))

    def number_block(self, part: Part, memory: BlockMemory) -> NumberBlock:
        """Return a part that is encoded when a summary has chosen how."""
        columns = self.counted(self.cells(part))

        def encoded() -> FloatArray:
            return encode_levels(columns, self.encoded_schema, self.layout, memory).encoded()

        def numbers() -> FloatArray:
            try:
                return read_numbers(columns, self.encoded_schema, memory)
            except Exception:
                encoded()  # raises what it always raises, of the first column that has a reason
                raise

        n_rows = len(columns[self.encoded_schema.names[0]])
        return NumberBlock(n_rows, numbers, encoded, self.encode_numbers)

    def encode_numbers(self, values: npt.NDArray[Any]) -> FloatArray:
        """Encode some rows of :attr:`NumberBlock.numbers`, NaN if dropped."""
        return encode_numbers(values, self.encoded_schema, self.layout)

    def encode_units(self, part: Part) -> UnitBlock:
        """Return the kept encoded rows of a part and their units."""
        assert self.privacy_unit is not None, "the table was opened for rows"
        columns = self.cells(part)
        encoded: FloatArray = encode_columns(columns, self.schema, mean=self.mean)
        return UnitBlock.of(columns[self.privacy_unit.column], encoded, self.privacy_unit)

    def unconverted(self, on_ragged_line: Callable[[], None]) -> Self:
        """Return the table with values as written, whatever the schema's kinds.

        Lines of a delimited file with more or fewer fields than the first are skipped, with a call for each.
        """
        del on_ragged_line
        return self

    @property
    def text_of_cells(self) -> TextFormat | None:
        """Format of the values of :meth:`unconverted` if they are bytes of a text file, else None."""
        return None

    def one_by_one(self) -> list[Self]:
        """Return sources of the table's files, in order, which are read independently."""
        return [self]

    def blocks(self) -> Iterator[npt.NDArray[Any]]:
        """Iterate over encoded batches, shape (n_i, d), in table order."""
        for part in self.parts():
            if self.layout.columns:
                yield from self.encode_levels(part).encoded_blocks()
            else:
                yield self.encode(part)

    def summarize(
        self,
        summary: Summary[Running, Result],
        *,
        threads: int | None = None,
        on_block: Callable[[int], None] | None = None,
    ) -> Result:
        """Map a summary over the table in threads.

        ``on_block`` gets each part's share of :attr:`pass_length`.
        """
        memory = BlockMemory()
        if not self.layout.columns:
            numbers = self._of_numbers(summary)
            if numbers is not None:
                encode_later: Callable[[Part], Any] = partial(self.number_block, memory=memory)
                return summarize_in_threads(numbers, self._watched(numbers, on_block), encode_later, threads)
            encode = partial(self.encode, memory=memory)
            return summarize_in_threads(summary, self._watched(summary, on_block), encode, threads)
        levels: Callable[[Part], Any] = partial(self.encode_levels, memory=memory)
        # What follows is decided by the schema and what is asked: levels are counted where that is possible, and less work.
        counting = counting_levels(summary, self.encoded_schema, self.layout)
        if counting is not None:
            sums = summarize_in_threads(counting, self._watched(counting, on_block), levels, threads)
            return cast("Result", counting.result(sums))
        asked = summary if summary.takes_levels else OfEncodedRows(summary)
        return summarize_in_threads(asked, self._watched(asked, on_block), levels, threads)

    def summarize_units(
        self, summary: Summary[Any, Any], *, threads: int | None = None, on_block: Callable[[int], None] | None = None
    ) -> Any:
        """Summarize like :meth:`summarize`, in :class:`~dpmoments.rows.units.UnitBlock` batches."""
        blocks: Callable[[Part], Any] = self.encode_units
        return summarize_in_threads(summary, self._watched(summary, on_block), blocks, threads)

    def _watched(self, summary: Summary[Any, Any], on_block: Callable[[int], None] | None) -> Iterator[Part]:
        empty = True
        for part, length in self.measured(self.parts_for(summary)):
            yield part
            empty = False
            if on_block is not None:
                on_block(length)
        if empty and on_block is not None:
            on_block(0)  # a pass over no row is a pass
