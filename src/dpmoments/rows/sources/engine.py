"""Tables read by an engine's workers.

Equal work per partition, merged in a tree, same bits as a local pass.
"""

from __future__ import annotations

import os
import zlib
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import date
from functools import partial
from importlib.util import find_spec
from numbers import Number
from typing import Any, NoReturn, TypeVar
from uuid import UUID

import numpy as np
import numpy.typing as npt

from dpmoments.cells.objects import read_objects
from dpmoments.foundation.errors import (
    InputError,
    InputFileNotFoundError,
    InputModuleNotFoundError,
    InputPermissionError,
    InputTypeError,
    InputValueError,
    StatedError,
    line_of,
)
from dpmoments.foundation.table_libraries import nw, pa, pc
from dpmoments.foundation.values import shown
from dpmoments.messages.message import Message
from dpmoments.rows.sources.arrow import BatchSource
from dpmoments.rows.sources.local import LocalSource
from dpmoments.rows.sources.memory import ArraySource, FrameSource
from dpmoments.rows.sources.source import FAILED_QUERY, Reading, Source, read_quietly
from dpmoments.rows.summary import BlockMemory, Summary
from dpmoments.rows.units import HashArray, mixed, unit_hashes

# A number for the rows of a table that does not depend on their order: two passes over one table give the same.

_WORD = (1 << 64) - 1
_STEP = 0xD1342543DE82EF95
"""Odd; its powers are the columns' multipliers."""
_EMPTY = np.uint64(0x5851F42D4C957F2D)
"""Hash of a missing value."""
_READ = (str, bytes, Number, np.generic, date, UUID)
"""Types of objects that some reader accepts."""
_ROWS_AT_A_TIME = 8_192
"""Rows hashed at a time.

Hashes fit in the processor's cache, and are too small for an allocator to return to the system.
"""


class Fingerprint:
    """Σ over rows of a hash of the row's values, modulo 2^64.

    >>> first, again, other = Fingerprint(), Fingerprint(), Fingerprint()
    >>> first.add({"a": pa.array([1.0, 2.0]), "b": pa.array(["x", "y"])})
    >>> again.add({"a": pa.array([2.0]), "b": pa.array(["y"])})
    >>> again.add({"a": pa.array([1.0]), "b": pa.array(["x"])})
    >>> other.add({"a": pa.array([2.0, 1.0]), "b": pa.array(["x", "y"])})
    >>> first.value == again.value, first.value == other.value
    (True, False)
    """

    def __init__(self) -> None:
        self.value = 0

    def add(self, columns: Mapping[str, Any]) -> None:
        """Add rows, given as equally long columns: Arrow arrays, or arrays of Python objects."""
        result = [_cell_hashes(cells) for cells in columns.values()]
        n_rows = len(result[0])
        hashes, terms = np.empty((2, min(_ROWS_AT_A_TIME, n_rows)), np.uint64)
        for start in range(0, n_rows, _ROWS_AT_A_TIME):
            size, multiplier = min(_ROWS_AT_A_TIME, n_rows - start), 1
            hashes[:size] = 0
            for words in result:
                multiplier = multiplier * _STEP & _WORD
                np.multiply(words[start : start + size], np.uint64(multiplier), out=terms[:size])
                hashes[:size] += terms[:size]
            self.value = (self.value + int(np.add.reduce(mixed(hashes[:size])))) & _WORD


def _cell_hashes(cells: Any) -> HashArray:
    """Hash each value to 64 bits, shape (n,); equal values of one type get equal hashes."""
    if isinstance(cells, np.ndarray):
        return np.array(read_objects(cells, _object_word, 0), np.uint64)
    if isinstance(cells, pa.ChunkedArray):
        words = [_cell_hashes(chunk) for chunk in cells.chunks]
        return words[0] if len(words) == 1 else np.concatenate([np.zeros(0, np.uint64), *words])
    if pa.types.is_run_end_encoded(cells.type):
        return _cell_hashes(pc.run_end_decode(cells))
    result = (
        _looked_up(_hash_words(cells.dictionary), cells) if pa.types.is_dictionary(cells.type) else _hash_words(cells)
    )
    return np.where(cells.is_null().to_numpy(zero_copy_only=False), _EMPTY, result) if cells.null_count else result


def _object_word(cell: object) -> int:
    """Hash an object that no reader accepts by its type only."""
    # Anything else may be a memory address.
    if isinstance(cell, _READ) or cell is None:
        return zlib.crc32(repr(cell).encode(errors="backslashreplace"))
    return zlib.crc32(type(cell).__qualname__.encode(errors="backslashreplace"))


def _hash_words(cells: Any) -> HashArray:
    kind = cells.type
    if pa.types.is_null(kind):
        return np.zeros(len(cells), np.uint64)
    if pa.types.is_boolean(kind):
        return _hash_words(cells.cast(pa.uint8()))
    if pa.types.is_temporal(kind):
        cells = cells.view(pa.int32() if kind.bit_width == 32 else pa.int64())
        kind = cells.type
    if pa.types.is_floating(kind):
        values = cells.to_numpy(zero_copy_only=False)  # NaN for nothing
        return np.ascontiguousarray(values, np.float64).view(np.uint64)
    if pa.types.is_integer(kind):
        filled = pc.fill_null(cells, pa.scalar(0, kind)).to_numpy(zero_copy_only=False)
        whole: HashArray = filled.astype(np.uint64, casting="unsafe")
        return whole
    with suppress(pa.ArrowException):
        texts = pc.fill_null(cells.cast(pa.large_binary()), b"").dictionary_encode()  # levels are few
        return _looked_up(unit_hashes(texts.dictionary, 0), texts)
    return _cell_hashes(np.array([*cells.to_pylist(), None], dtype=object)[:-1])


def _looked_up(words: HashArray, cells: Any) -> HashArray:
    """Return each value's dictionary entry; anything for a missing value."""
    indices = pc.fill_null(cells.indices, pa.scalar(0, cells.indices.type)).to_numpy(zero_copy_only=False)
    return words[indices] if len(words) else np.zeros(len(indices), np.uint64)


# What a worker of an engine does with one partition of a table, and how what workers return is merged.


def opened_partition(reading: Reading, partition: Any) -> LocalSource[Any]:
    """Return a source of a partition's rows: a frame, an array, record batches, or a source that locates its rows."""
    if isinstance(partition, LocalSource):
        return replace(partition, reading=reading)
    if isinstance(partition, Iterator):
        return BatchSource(reading, partition)
    if not isinstance(partition, np.ndarray):
        return FrameSource(reading, nw.from_native(partition))
    if partition.dtype != reading.array_type:
        raise InputTypeError(
            "a block of the array is not of the type that the array says it is: use astype on the array"
        )
    return ArraySource(reading, partition)


@dataclass(frozen=True)
class Failure:
    """Reason why a partition could not be read, in text that quotes no value."""

    kind: type[Exception]
    message: StatedError | str

    @classmethod
    def of(cls, error: Exception) -> Failure:
        """Return the error's own message if this library wrote it, else its type and location."""
        if isinstance(error, InputError):
            kinds = (InputTypeError, InputFileNotFoundError, InputPermissionError)
            return cls(next((kind for kind in kinds if isinstance(error, kind)), InputValueError), error.args[0])
        where = {} if (line := line_of(error.__traceback__)) is None else {"where": Message("at-line", line=line)}
        return cls(InputValueError, Message("partition-not-read", kind=type(error).__name__, **where))

    def tell(self) -> NoReturn:
        """Raise the error, in the driver."""
        raise self.kind(self.message)


@dataclass(frozen=True, eq=False, repr=False)
class JobOutcome:
    """Result of some partitions: private data.

    ``partitions`` are their numbers: a partition that returns twice, or not at all, is noticed. ``fingerprint`` is that
    of their rows if it is kept (:class:`~dpmoments.rows.sources.engine.Fingerprint`).
    """

    partitions: frozenset[int]
    result: Any
    fingerprint: int = 0
    failure: Failure | None = None


Work = Callable[[LocalSource[Any]], Any]
"""Work on a partition.

A frozen dataclass or a module's function, which an engine can send to its workers.
"""


@dataclass(frozen=True, eq=False, repr=False)
class PartitionJob:
    """Task of a worker: open a partition, work on it in one thread, and return the outcome.

    It raises nothing: an error is a result, so that no engine repeats it, or logs what it quotes. ``work`` maps a
    source to a result; ``merge`` combines two results and is commutative and associative; if ``fingerprinted``, the
    rows are fingerprinted.
    """

    reading: Reading
    work: Work
    merge: Callable[[Any, Any], Any]
    fingerprinted: bool

    def outcome(self, partition: Any, number: int) -> JobOutcome:
        fingerprint = Fingerprint()
        try:
            source = opened_partition(self.reading, partition)
            result = self.work(FingerprintedSource(self.reading, source, fingerprint) if self.fingerprinted else source)
        except Exception as error:
            return JobOutcome(frozenset([number]), None, failure=Failure.of(error))
        return JobOutcome(frozenset([number]), result, fingerprint.value)

    def merged(self, outcomes: Sequence[JobOutcome]) -> JobOutcome:
        """Merge the outcomes of one or more partitions."""
        total = outcomes[0]
        for other in outcomes[1:]:
            total = self.joined(total, other)
        return total

    def joined(self, first: JobOutcome, second: JobOutcome) -> JobOutcome:
        """Merge two outcomes; of two failures, keep that of the lower partition."""
        partitions = first.partitions | second.partitions
        if first.partitions & second.partitions:
            twice = Failure(InputValueError, Message("partition-twice"))
            return JobOutcome(partitions, None, failure=twice)
        failed = [one for one in (first, second) if one.failure is not None]
        if failed:
            failure = min(failed, key=lambda one: min(one.partitions)).failure
            return JobOutcome(partitions, None, failure=failure)
        fingerprint = (first.fingerprint + second.fingerprint) % (1 << 64)
        return JobOutcome(partitions, self.merge(first.result, second.result), fingerprint)


def summarized(summary: Summary[Any, Any], source: LocalSource[Any], *, of_units: bool = False) -> Any:
    """Pass of a summary over one partition, in batches that name each row's unit if ``of_units``."""
    return (source.summarize_units if of_units else source.summarize)(summary, threads=1)


@dataclass(frozen=True, eq=False, repr=False)
class _Piece:
    """Piece of a partition, and its columns, read once."""

    part: Any
    columns: Mapping[str, Any]

    def __len__(self) -> int:
        return len(self.part)


@dataclass(frozen=True, eq=False, repr=False)
class FingerprintedSource(LocalSource[_Piece]):
    """Source whose pieces are added to a fingerprint as they are read."""

    source: LocalSource[Any]
    fingerprint: Fingerprint

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
        if isinstance(self.source, ArraySource) and self.source.raw and self.reading.restriction is None:
            return self.source.encode(part.part, memory)
        return super().encode(part, memory)


FAN_IN = 8
"""Results merged in one task: limits what a worker holds and what the driver gets."""
_HUNDREDTHS = 100

_PACKAGES = {"dask": "dask", "spark": "pyspark"}

Running = TypeVar("Running")
Result = TypeVar("Result")


@dataclass(eq=False, repr=False)
class FirstPass:
    """Facts of the first pass that later passes must match.

    Mutable, since copies of a source share it.
    """

    fingerprint: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class EngineSource(Source):
    """Table in partitions that an engine's processes read.

    A task reads a partition, encodes it and sums it in one thread, as a local pass does; only a finished result leaves
    a worker. Results are functions of their partitions, without accumulators, and each partition's result is
    merged exactly once, as its number proves: a task that is repeated, run twice at a time, or lost with its worker
    changes nothing.
    """

    first_pass: FirstPass = field(default_factory=FirstPass, kw_only=True)

    @property
    @abstractmethod
    def where(self) -> str:
        """Description of the table, for messages."""

    @property
    @abstractmethod
    def fingerprinted(self) -> bool:
        """True if its rows might differ between passes, so that passes are compared."""

    @abstractmethod
    def outcome(self, job: PartitionJob, progress: PassProgress) -> tuple[JobOutcome, int] | None:
        """Run a job over all partitions."""
        # Return the outcome and their number, or None without partitions.

    @property
    def pass_length(self) -> int:
        """100: progress is in hundredths of the tasks."""
        return _HUNDREDTHS

    def summarize(
        self,
        summary: Summary[Running, Result],
        *,
        threads: int | None = None,
        on_block: Callable[[int], None] | None = None,
    ) -> Result:
        del threads  # the engine decides how many partitions it reads at a time
        nothing = summary.finish(summary.start())
        result: Result = self.mapped(partial(summarized, summary), summary.merge, nothing, on_block)
        return result

    def summarize_units(
        self, summary: Summary[Any, Any], *, threads: int | None = None, on_block: Callable[[int], None] | None = None
    ) -> Any:
        del threads
        nothing = summary.finish(summary.start())
        return self.mapped(partial(summarized, summary, of_units=True), summary.merge, nothing, on_block)

    def mapped(
        self, work: Work, merge: Callable[[Any, Any], Any], nothing: Any, on_block: Callable[[int], None] | None = None
    ) -> Any:
        """Run the same work on a local source of every partition, and merge the results."""
        # `merge` is commutative and associative, `nothing` the result of no partition; `on_block` gets hundredths of
        # the pass.
        progress = PassProgress(on_block)
        job = PartitionJob(self.reading, work, merge, self.fingerprinted)
        result = read_quietly(partial(self.outcome, job, progress), self.where, FAILED_QUERY)
        if result is None:
            outcome = JobOutcome(frozenset(), nothing)
        else:
            outcome, n_partitions = result
            if outcome.failure is not None:
                outcome.failure.tell()
            if outcome.partitions != frozenset(range(n_partitions)):
                raise InputValueError(f"{self.where}: the engine lost a partition's result: the sums would be wrong")
        if self.fingerprinted:
            self._compare(outcome.fingerprint)
        progress.tell(1.0)
        return outcome.result

    def _compare(self, fingerprint: int) -> None:
        first = self.first_pass.fingerprint
        self.first_pass.fingerprint = fingerprint
        if first is not None and first != fingerprint:
            raise InputValueError(
                f"{self.where} returned different rows in this pass than in the one before: they are recomputed "
                "each time (from random numbers, a sample, or data that change). Write it to Parquet files once, "
                "and pass those"
            )


@dataclass(frozen=True, eq=False, repr=False)
class FilePieces(EngineSource):
    """Rows of files, in pieces that workers read as this process would."""

    pieces: tuple[LocalSource[Any], ...]
    known_rows: int | None

    @property
    def where(self) -> str:
        return "the table"

    @property
    def fingerprinted(self) -> bool:
        return False  # a local pass trusts files, too

    @property
    def n_rows(self) -> int | None:
        return self.known_rows


class PassProgress:
    """Hundredths of a pass, each reported once."""

    def __init__(self, on_block: Callable[[int], None] | None) -> None:
        self._on_block = on_block
        self._told = 0

    def tell(self, share: float) -> None:
        """Report the finished share of the pass; a lower share than before is ignored."""
        due = int(share * _HUNDREDTHS) - self._told
        if due > 0 and self._on_block is not None:
            self._told += due
            self._on_block(due)


def require_installed(engine: str) -> None:
    """Raise unless the engine's package is installed."""
    if find_spec(_PACKAGES[engine]) is None:
        raise InputModuleNotFoundError(
            f"the engine {shown(engine)} is not installed here: pip install 'dpmoments[{engine}]' (and on every worker)"
        )


# Encryption of what workers of an engine hand back: an engine may write it to a disk on its way.

_KEY_BYTES = 32
_NONCE_BYTES = 12


@dataclass(frozen=True, eq=False, repr=False)
class Seal:
    """Key of one pass over the data, which only the driver and its workers hold.

    Content is encrypted and authenticated with AES-256 in Galois/counter mode; nonces are random, which is safe for far
    more messages than a pass has partitions (2³²). ``key`` is 32 random bytes.
    """

    key: bytes = field(default_factory=lambda: os.urandom(_KEY_BYTES))

    def sealed(self, content: bytes) -> bytes:
        """Encrypt content."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(_NONCE_BYTES)
        return nonce + AESGCM(self.key).encrypt(nonce, content, None)

    def opened(self, sealed: bytes) -> bytes:
        """Decrypt content."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        try:
            return AESGCM(self.key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
        except InvalidTag:
            pass
        raise InputValueError("a partition's result was changed on its way from a worker")
