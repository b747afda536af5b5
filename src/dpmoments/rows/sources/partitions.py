"""What a worker of an engine does with one partition of a table, and how what workers return is merged."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.errors import has_own_words, place_of
from dpmoments.foundation.table_libraries import nw
from dpmoments.privacy.unit import PrivacyUnit
from dpmoments.rows.block_memory import BlockMemory
from dpmoments.rows.restriction import Restriction
from dpmoments.rows.sources.fingerprint import Fingerprint
from dpmoments.rows.sources.local import LocalSource
from dpmoments.rows.sources.memory import ArraySource, FrameSource
from dpmoments.rows.summary import Summary
from dpmoments.schema.schema import Schema

__all__ = ["Failure", "Outcome", "PartitionJob", "Reading", "Summarised", "SummarisedUnits", "Work"]


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """How each partition is read: the attributes of :class:`~dpmoments.rows.sources.local.LocalSource`."""

    schema: Schema
    mean: bool
    privacy_unit: PrivacyUnit | None = None
    restriction: Restriction | None = None
    array_type: np.dtype[Any] | None = None
    """Where the table is an array, that of all its blocks."""

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that are read."""
        return self.schema.names if self.privacy_unit is None else (*self.schema.names, self.privacy_unit.column)

    def opened(self, partition: Any) -> LocalSource[Any]:
        """A source of the rows of one partition: a frame, an array, or a source that knows where its rows are."""
        if isinstance(partition, np.ndarray):
            if partition.dtype != self.array_type:
                raise TypeError(
                    "a block of the array is not of the type that the array says it is: use astype on the array"
                )
            return ArraySource(self.schema, self.mean, partition, restriction=self.restriction)
        if isinstance(partition, LocalSource):
            source: LocalSource[Any] = partition
        else:
            source = FrameSource(self.schema, self.mean, nw.from_native(partition), privacy_unit=self.privacy_unit)
        return replace(source, restriction=self.restriction)


@dataclass(frozen=True)
class Failure:
    """Why a partition could not be read, in words that quote no cell."""

    kind: type[Exception]
    message: str

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """The error's own message, where this library wrote it; else its kind and place."""
        if has_own_words(error):
            kinds = (TypeError, MemoryError, FileNotFoundError, PermissionError)
            return cls(next((kind for kind in kinds if isinstance(error, kind)), ValueError), str(error))
        return cls(
            ValueError,
            f"a partition cannot be read: stopped by {type(error).__name__} at {place_of(error.__traceback__)}; the message is "
            "withheld, because it may quote the table",
        )

    def tell(self) -> NoReturn:
        """Raise it, in the driver."""
        raise self.kind(self.message)


@dataclass(frozen=True, eq=False, repr=False)
class Outcome:
    """What some partitions came to: private data.

    Attributes
    ----------
    partitions : frozenset of int
        Which; a partition that came back twice, or not at all, is noticed by its number.
    result : object
    fingerprint : int
        Of their rows, where it is kept; see :class:`~dpmoments.rows.sources.fingerprint.Fingerprint`.
    failure : Failure or None
    """

    partitions: frozenset[int]
    result: Any
    fingerprint: int = 0
    failure: Failure | None = None


Work = Callable[[LocalSource[Any]], Any]
"""What is done with a partition; a frozen dataclass or a function of a module, which an engine can send to where the rows are."""


@dataclass(frozen=True, eq=False, repr=False)
class PartitionJob:
    """The task of a worker: open a partition, work on it in one thread, and say how that went.

    It raises nothing: an error is a result, so that no engine repeats it, nor writes what it quotes into a log.

    Attributes
    ----------
    reading : Reading
    work : callable
        Source ↦ result.
    merge : callable
        Two results ↦ the result for the partitions of both; commutative and associative.
    fingerprinted : bool
        Whether the rows' fingerprint is taken.
    """

    reading: Reading
    work: Work
    merge: Callable[[Any, Any], Any]
    fingerprinted: bool

    def outcome(self, partition: Any, number: int) -> Outcome:
        """Of one partition."""
        fingerprint = Fingerprint()
        try:
            source = self.reading.opened(partition)
            result = self.work(FingerprintedSource.of(source, fingerprint) if self.fingerprinted else source)
        except Exception as error:
            return Outcome(frozenset([number]), None, failure=Failure.of(error))
        return Outcome(frozenset([number]), result, fingerprint.value)

    def merged(self, outcomes: Sequence[Outcome]) -> Outcome:
        """Of the partitions of all; there is one at least."""
        total = outcomes[0]
        for other in outcomes[1:]:
            total = self.joined(total, other)
        return total

    def joined(self, first: Outcome, second: Outcome) -> Outcome:
        """Of the partitions of both; of two failures, that of the lower partition."""
        partitions = first.partitions | second.partitions
        if first.partitions & second.partitions:
            twice = Failure(ValueError, "the engine gave the result of a partition twice: the sums would be wrong")
            return Outcome(partitions, None, failure=twice)
        failed = [one for one in (first, second) if one.failure is not None]
        if failed:
            failure = min(failed, key=lambda one: min(one.partitions)).failure
            return Outcome(partitions, None, failure=failure)
        fingerprint = (first.fingerprint + second.fingerprint) % (1 << 64)
        return Outcome(partitions, self.merge(first.result, second.result), fingerprint)


@dataclass(frozen=True)
class Summarised:
    """A pass of a summary over one partition."""

    summary: Summary[Any, Any]

    def __call__(self, source: LocalSource[Any]) -> Any:
        return source.summarise(self.summary, threads=1)


@dataclass(frozen=True)
class SummarisedUnits:
    """As :class:`Summarised`, of blocks that say whose each row is."""

    summary: Summary[Any, Any]

    def __call__(self, source: LocalSource[Any]) -> Any:
        return source.summarise_units(self.summary, threads=1)


@dataclass(frozen=True, eq=False, repr=False)
class _Piece:
    """A piece of a partition, and its columns, read once."""

    part: Any
    columns: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.part)


@dataclass(frozen=True, eq=False, repr=False)
class FingerprintedSource(LocalSource[_Piece]):
    """A source whose pieces are added to a fingerprint as they are read."""

    source: LocalSource[Any] = field(kw_only=True)
    fingerprint: Fingerprint = field(kw_only=True)

    @classmethod
    def of(cls, source: LocalSource[Any], fingerprint: Fingerprint) -> FingerprintedSource:
        """The same rows."""
        options: dict[str, Any] = dict(restriction=source.restriction, privacy_unit=source.privacy_unit)
        return cls(source.schema, source.mean, source=source, fingerprint=fingerprint, **options)

    def parts(self) -> Iterator[_Piece]:
        return self._read(self.source.parts())

    def parts_for(self, summary: Summary[Any, Any]) -> Iterator[_Piece]:
        return self._read(self.source.parts_for(summary))

    def _read(self, parts: Iterator[Any]) -> Iterator[_Piece]:
        for part in parts:
            columns = self.source.cells(part)
            self.fingerprint.add(columns)
            yield _Piece(part, columns)

    def cells(self, part: _Piece) -> Mapping[str, Any]:
        return part.columns

    def written_cells(self, part: _Piece, name: str) -> Any:
        return self.source.written_cells(part.part, name)

    def encode(self, part: _Piece, memory: BlockMemory | None = None) -> npt.NDArray[Any]:
        if isinstance(self.source, ArraySource) and self.source.raw and self.restriction is None:
            return self.source.encode(part.part, memory)
        return super().encode(part, memory)
