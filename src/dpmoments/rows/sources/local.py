"""Sources on one machine.

Parts of the table are read in turn, encoded and summarized in threads.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Generic, Self, TypeVar, cast

import numpy.typing as npt

from dpmoments.base.arrays import FloatArray
from dpmoments.base.text_format import TextFormat
from dpmoments.rows.encode import (
    cell_rules,
    encode_columns,
    encode_levels,
    encode_numbers,
    read_numbers,
)
from dpmoments.rows.fingerprint import Fingerprint
from dpmoments.rows.kernel import NumberBlock
from dpmoments.rows.level_sums import CodedBlock, OfEncodedRows, counting_levels
from dpmoments.rows.sources.source import Source
from dpmoments.rows.summary import BlockMemory, Summary
from dpmoments.rows.threads import summarize_in_threads
from dpmoments.rows.units import UnitBlock

Part = TypeVar("Part")
Running = TypeVar("Running")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False, repr=False)
class LocalSource(Source, Generic[Part]):
    """Table that this process reads itself, repeatedly.

    A ``fingerprint`` gets the rows of a pass.
    """

    fingerprint: Fingerprint | None = field(default=None, kw_only=True)

    @abstractmethod
    def parts(self) -> Iterator[Part]:
        """Iterate over parts of the table, before encoding; each has a length.

        The first part of each declared type has none, since types are refused before a value is read.
        """

    def parts_for(self, summary: Summary[Any, Any]) -> Iterator[Part]:
        """Iterate over parts, of the size that suits a summary if possible."""
        del summary
        return self.parts()

    def measured(self, parts: Iterator[Part]) -> Iterator[tuple[Part, int]]:
        """Iterate over parts with their share of :attr:`pass_length`."""
        for part in parts:
            if self.fingerprint is not None:
                self.fingerprint.add(self.cells(part))
            yield part, len(part)  # type: ignore[arg-type]

    @abstractmethod
    def written_cells(self, part: Part, name: str) -> Any:
        """Return a column of a part before any rule: an Arrow array, or one of Python objects."""
        # `name` is the column's name in the table.

    def cells(self, part: Part) -> Mapping[str, Any]:
        """Return the columns of a part, by their names in the schema and read by its kinds."""
        return {own: self.written_cells(part, name) for name, own in self.reading.names_read.items()}

    def encode(self, part: Part, memory: BlockMemory | None = None) -> npt.NDArray[Any]:
        """Return encoded rows, (n, d), read-only, NaN if dropped."""
        # With `memory` the next part overwrites them.
        return self.encode_levels(part, memory).encoded()

    def encode_levels(self, part: Part, memory: BlockMemory | None = None) -> CodedBlock:
        """Return the encoded rows with levels as codes."""
        return encode_levels(
            self.reading.counted(self.cells(part)), self.reading.encoded_schema, self.reading.layout, memory
        )

    @property
    def encodes_numbers(self) -> bool:
        """True if parts may be encoded in machine code."""
        return True

    def number_block(self, part: Part, memory: BlockMemory) -> NumberBlock:
        """Return a part that is encoded when a summary has chosen how."""
        columns = self.reading.counted(self.cells(part))

        def encoded() -> FloatArray:
            return encode_levels(columns, self.reading.encoded_schema, self.reading.layout, memory).encoded()

        def numbers() -> FloatArray:
            return read_numbers(columns, self.reading.encoded_schema, memory)

        n_rows = len(columns[self.reading.encoded_schema.names[0]])
        return NumberBlock(n_rows, numbers, encoded, self.encode_numbers)

    def encode_numbers(self, values: npt.NDArray[Any]) -> FloatArray:
        """Encode some rows of :attr:`NumberBlock.numbers`, NaN if dropped."""
        return encode_numbers(values, self.reading.encoded_schema, self.reading.layout)

    def encode_units(self, part: Part) -> UnitBlock:
        """Return the kept encoded rows of a part and their units."""
        assert self.reading.privacy_unit is not None, "the table was opened for rows"
        columns = self.cells(part)
        encoded: FloatArray = encode_columns(columns, self.reading.schema, mean=self.reading.mean)
        return UnitBlock.of(columns[self.reading.privacy_unit.column], encoded, self.reading.privacy_unit)

    def unconverted(self, on_ragged_line: Callable[[], None]) -> Self:
        """Return the table with values as written, whatever the schema's kinds."""
        # Lines of a delimited file with more or fewer fields than the first are skipped, with a call for each.
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
            if not len(part):  # type: ignore[arg-type]
                continue
            if self.reading.layout.columns:
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
        # `on_block` gets each part's share of `pass_length`. The schema and what is asked decide how parts are encoded.
        schema, layout, memory = self.reading.encoded_schema, self.reading.layout, BlockMemory()

        def summed(asked: Summary[Any, Any], encode: Callable[..., Any], **options: Any) -> Any:
            return summarize_in_threads(asked, self._watched(asked, on_block), partial(encode, **options), threads)

        result: Result
        if summary.takes_units:
            result = summed(summary, self.encode_units)
        elif layout.columns and (counting := counting_levels(summary, schema, layout)) is not None:
            result = cast("Result", counting.result(summed(counting, self.encode_levels, memory=memory)))
        elif layout.columns:
            asked = summary if summary.takes_levels else OfEncodedRows(summary)
            result = summed(asked, self.encode_levels, memory=memory)
        else:
            rules = cell_rules(schema, layout) if self.encodes_numbers else None
            numbers = None if rules is None else summary.of_numbers(rules)
            if numbers is None:
                result = summed(summary, self.encode, memory=memory)
            else:
                result = summed(numbers, self.number_block, memory=memory)
        return result

    def require_types(self, empty: Part) -> None:
        """Raise if a column of a part without rows has a type of which no value is usable."""
        if self.reading.privacy_unit is None:
            self.encode_levels(empty)
        else:
            self.encode_units(empty)

    def _watched(self, summary: Summary[Any, Any], on_block: Callable[[int], None] | None) -> Iterator[Part]:
        empty = True
        for part, length in self.measured(self.parts_for(summary)):
            if not len(part):  # type: ignore[arg-type]
                self.require_types(part)
                continue
            yield part
            empty = False
            if on_block is not None:
                on_block(length)
        if empty and on_block is not None:
            on_block(0)  # a pass over no row is a pass
