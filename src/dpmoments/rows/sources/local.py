"""Sources on one machine: parts of the table read in turn, encoded and summarised in threads."""

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
from dpmoments.rows.encode import encode_columns, encode_levels, largest_block
from dpmoments.rows.level_sums import LevelBlock, LevelLayout, OfEncodedRows, counting_levels
from dpmoments.rows.restriction import Restriction
from dpmoments.rows.summary import BlockMemory, Missing, Summary
from dpmoments.rows.threads import summarise_in_threads
from dpmoments.rows.units import UnitBlock
from dpmoments.schema.schema import Schema

Part = TypeVar("Part")
Running = TypeVar("Running")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False, repr=False)
class LocalSource(ABC, Generic[Part]):
    """A table that this process reads itself, again and again.

    Attributes
    ----------
    mean : bool
        Whether rows are encoded about the midpoints of their bounds; see :meth:`dpmoments.Schema.encoding`.
    restriction : Restriction or None
        Where the rows of some levels of a column are meant alone.
    privacy_unit : PrivacyUnit or None
        Where rows belong to units of several: its column is read beside the schema's.
    """

    schema: Schema
    mean: bool
    restriction: Restriction | None = field(default=None, kw_only=True)
    privacy_unit: PrivacyUnit | None = field(default=None, kw_only=True)

    @property
    def largest_part(self) -> int:
        """How many rows are encoded at a time."""
        return largest_block(self.schema, whole_rows=self.privacy_unit is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""
        return self.schema.names if self.privacy_unit is None else (*self.schema.names, self.privacy_unit.column)

    def restricted(self, restriction: Restriction) -> Self:
        """The same table, of which some rows are meant alone."""
        return replace(self, restriction=restriction)

    @property
    def encoded_schema(self) -> Schema:
        """Of the columns that are encoded."""
        return self.schema if self.restriction is None else self.restriction.schema

    @cached_property
    def layout(self) -> LevelLayout:
        """Which of the encoded features are levels."""
        return LevelLayout.of(self.encoded_schema, mean=self.mean)

    def counted(self, columns: Mapping[str, Any]) -> Mapping[str, Any]:
        """The columns of a part, of the rows that are meant."""
        return columns if self.restriction is None else self.restriction.applied(columns)

    @property
    def n_rows(self) -> int | None:
        """Number of rows where it is known without a pass."""
        return None

    @property
    def pass_length(self) -> int | None:
        """Progress is told in rows, unless a source knows better."""
        return self.n_rows

    @property
    def missing(self) -> Missing:
        """The rule for cells of an encoded block that are not finite: in a block encoded by columns, a dropped row."""
        return "drop"

    @abstractmethod
    def parts(self) -> Iterator[Part]:
        """Pieces of the table with a length, before encoding."""

    def parts_for(self, summary: Summary[Any, Any]) -> Iterator[Part]:
        """The same pieces, in the size that suits a summary where that can be chosen."""
        del summary
        return self.parts()

    def measured(self, parts: Iterator[Part]) -> Iterator[tuple[Part, int]]:
        """Pieces as they come, each with what it adds to :attr:`pass_length`."""
        for part in parts:
            yield part, len(part)  # type: ignore[arg-type]

    @abstractmethod
    def written_cells(self, part: Part, name: str) -> Any:
        """The cells of one column of a piece, before any rule: an Arrow array, or an array of Python objects."""

    def cells(self, part: Part) -> Mapping[str, Any]:
        """The columns of a piece, as cells of the kinds that the schema says they are."""
        return {name: self.written_cells(part, name) for name in self.names}

    def encode(self, part: Part, memory: BlockMemory | None = None) -> npt.NDArray[Any]:
        """Encoded rows of a piece, shape (n, d); a dropped row is NaN throughout.

        They are not to be changed; those in a ``memory`` are gone with the next piece.
        """
        return self.encode_levels(part, memory).encoded()

    def encode_levels(self, part: Part, memory: BlockMemory | None = None) -> LevelBlock:
        """The same rows with levels as codes."""
        return encode_levels(self.counted(self.cells(part)), self.encoded_schema, self.layout, memory)

    def encode_units(self, part: Part) -> UnitBlock:
        """The encoded rows of a piece that no rule drops, and whose each is."""
        assert self.privacy_unit is not None, "the table was opened for rows"
        columns = self.cells(part)
        encoded: FloatArray = encode_columns(columns, self.schema, mean=self.mean)
        return UnitBlock.of(columns[self.privacy_unit.column], encoded, self.privacy_unit)

    def unconverted(self, on_ragged_line: Callable[[], None]) -> Self:
        """The same table, whose parts hold cells as they are written, of whatever kind the schema says they are.

        Lines of a delimited file that have more or fewer cells than the first are left out, with a call for each.
        """
        del on_ragged_line
        return self

    @property
    def text_of_cells(self) -> TextFormat | None:
        """How the cells of :meth:`unconverted` are written, where they are bytes of a text file; else None."""
        return None

    def one_by_one(self) -> list[Self]:
        """Sources of the files that the table is made of, in order, each to be read whatever becomes of the others."""
        return [self]

    def blocks(self) -> Iterator[npt.NDArray[Any]]:
        """Encoded blocks, shape (n_i, d), in the order of the table."""
        for part in self.parts():
            if self.layout.columns:
                yield from self.encode_levels(part).encoded_blocks()
            else:
                yield self.encode(part)

    def summarise(
        self,
        summary: Summary[Running, Result],
        *,
        threads: int | None = None,
        on_block: Callable[[int], None] | None = None,
    ) -> Result:
        """Map a summary over the table and merge.

        Parameters
        ----------
        threads : int, optional
            Default: the usable cores. The result does not depend on it.
        on_block : callable, optional
            Called with what every piece that was read and handed on adds to :attr:`pass_length`, for progress.
        """
        memory = BlockMemory()
        if not self.layout.columns:
            encode = partial(self.encode, memory=memory)
            return summarise_in_threads(summary, self._watched(summary, on_block), encode, threads)
        levels: Callable[[Part], Any] = partial(self.encode_levels, memory=memory)
        # What follows is decided by the schema and what is asked: levels are counted where that is possible, and less work.
        counting = counting_levels(summary, self.encoded_schema, self.layout)
        if counting is not None:
            sums = summarise_in_threads(counting, self._watched(counting, on_block), levels, threads)
            return cast("Result", counting.result(sums))
        asked = summary if summary.takes_levels else OfEncodedRows(summary)
        return summarise_in_threads(asked, self._watched(asked, on_block), levels, threads)

    def summarise_units(
        self, summary: Summary[Any, Any], *, threads: int | None = None, on_block: Callable[[int], None] | None = None
    ) -> Any:
        """As :meth:`summarise`, of a :class:`~dpmoments.rows.units.UnitBlock` for every piece."""
        blocks: Callable[[Part], Any] = self.encode_units
        return summarise_in_threads(summary, self._watched(summary, on_block), blocks, threads)

    def _watched(self, summary: Summary[Any, Any], on_block: Callable[[int], None] | None) -> Iterator[Part]:
        empty = True
        for part, length in self.measured(self.parts_for(summary)):
            yield part
            empty = False
            if on_block is not None:
                on_block(length)
        if empty and on_block is not None:
            on_block(0)  # a pass over no row is a pass
