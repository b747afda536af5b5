"""Sources on one machine: parts of the table read in turn, encoded and summarised in threads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, Generic, Self, TypeVar

import numpy.typing as npt

from dpmoments.array_types import FloatArray
from dpmoments.privacy.privacy_unit import PrivacyUnit
from dpmoments.rows.block_memory import BlockMemory
from dpmoments.rows.cells import Missing
from dpmoments.rows.encode import encode_columns
from dpmoments.rows.restriction import Restriction
from dpmoments.rows.summary import Summary
from dpmoments.rows.threads import summarise_in_threads
from dpmoments.rows.unit_selection import UnitBlock, UnitSelection
from dpmoments.schema.schema import Schema
from dpmoments.text_files.text_format import TextFormat

__all__ = ["LocalSource"]

Part = TypeVar("Part")
Running = TypeVar("Running")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False, repr=False)
class LocalSource(ABC, Generic[Part]):
    """A table that this process reads itself, again and again.

    Attributes
    ----------
    schema : Schema
    mean : bool
        Whether rows are encoded about the midpoints of their bounds; see :meth:`dpmoments.Schema.encoding`.
    restriction : Restriction or None
        Where the rows of some levels of a column are meant alone.
    privacy_unit : PrivacyUnit or None
        Where rows belong to units of several: its column is read beside the schema's.
    selection : UnitSelection or None
        Where not all rows of a unit count.
    """

    schema: Schema
    mean: bool
    restriction: Restriction | None = field(default=None, kw_only=True)
    privacy_unit: PrivacyUnit | None = field(default=None, kw_only=True)
    selection: UnitSelection | None = field(default=None, kw_only=True)

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""
        return self.schema.names if self.privacy_unit is None else (*self.schema.names, self.privacy_unit.column)

    def restricted(self, restriction: Restriction) -> Self:
        """The same table, of which some rows are meant alone."""
        return replace(self, restriction=restriction)

    def selected(self, selection: UnitSelection) -> Self:
        """The same table, of which the rows that a selection keeps in place are meant alone."""
        return replace(self, selection=selection)

    @property
    def encoded_schema(self) -> Schema:
        """Of the columns that are encoded."""
        return self.schema if self.restriction is None else self.restriction.schema

    def counted(self, columns: Mapping[str, Any]) -> Mapping[str, Any]:
        """The columns of a part, of the rows that are meant."""
        return columns if self.restriction is None else self.restriction.applied(columns)

    @property
    def n_rows(self) -> int | None:
        """Number of rows where it is known without a pass."""
        return None

    @property
    def pass_length(self) -> int | None:
        """Progress is told in rows."""
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

    @abstractmethod
    def written_cells(self, part: Part, name: str) -> Any:
        """The cells of one column of a piece, before any rule: an Arrow array, or an array of Python objects."""

    def cells(self, part: Part) -> Mapping[str, Any]:
        """The columns of a piece, as cells of the kinds that the schema says they are."""
        return {name: self.written_cells(part, name) for name in self.names}

    def encode(self, part: Part, memory: BlockMemory | None = None) -> npt.NDArray[Any]:
        """Encoded rows of a piece, shape (n, d); a dropped row is NaN throughout, and one that does not count left out.

        They are not to be changed; those in a ``memory`` are gone with the next piece.
        """
        if self.selection is not None:
            return self.selection.kept(self.encode_units(part))
        return encode_columns(self.counted(self.cells(part)), self.encoded_schema, mean=self.mean, memory=memory)

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
        summary : Summary
        threads : int, optional
            Default: the usable cores. The result does not depend on it.
        on_block : callable, optional
            Called with the number of rows of every piece that was read and handed on, for progress.
        """
        encode = partial(self.encode, memory=BlockMemory())
        return summarise_in_threads(summary, self._watched(summary, on_block), encode, threads)

    def summarise_units(
        self, summary: Summary[Any, Any], *, threads: int | None = None, on_block: Callable[[int], None] | None = None
    ) -> Any:
        """As :meth:`summarise`, of a :class:`~dpmoments.rows.unit_selection.UnitBlock` for every piece."""
        blocks: Callable[[Part], Any] = self.encode_units
        return summarise_in_threads(summary, self._watched(summary, on_block), blocks, threads)

    def _watched(self, summary: Summary[Any, Any], on_block: Callable[[int], None] | None) -> Iterator[Part]:
        empty = True
        for part in self.parts_for(summary):
            yield part
            empty = False
            if on_block is not None:
                on_block(len(part))  # type: ignore[arg-type]
        if empty and on_block is not None:
            on_block(0)  # a pass over no row is a pass
