"""Tables read by an engine's workers, with the bits of a local pass."""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any, ClassVar

import numpy as np

from dpmoments.base.errors import (
    InputError,
    InputFileNotFoundError,
    InputModuleNotFoundError,
    InputPermissionError,
    InputTypeError,
    InputValueError,
    line_of,
    shown,
)
from dpmoments.base.table_libraries import nw
from dpmoments.rows.sources.arrow import BatchSource
from dpmoments.rows.sources.memory import ArraySource, FrameSource
from dpmoments.rows.sources.source import (
    FAILED_QUERY,
    Fingerprint,
    FirstPass,
    LocalSource,
    Reading,
    Source,
    read_quietly,
)
from dpmoments.rows.summary import Result, Running, Summary

# What a worker of an engine does with one partition of a table, and how what workers return is merged.


def opened_partition(reading: Reading, partition: Any) -> LocalSource[Any]:
    """Return a source of a partition: a frame, an array, batches, or a source of its rows."""
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


def unquoted(error: Exception) -> InputError:
    """Return a new error without values: this library's own words, else type and line only."""
    if isinstance(error, InputError):
        kinds = (InputTypeError, InputFileNotFoundError, InputPermissionError)
        return next((kind for kind in kinds if isinstance(error, kind)), InputValueError)(
            str(error), shell=error.text("shell")
        )
    line = line_of(error.__traceback__)
    return InputValueError(
        f"a partition cannot be read: stopped by {type(error).__name__}{f' at {line}' if line else ''}; the message is "
        "withheld, because it may quote the table"
    )


@dataclass(frozen=True, eq=False, repr=False)
class JobOutcome:
    """Result of some partitions: private data.

    ``partitions`` are their numbers: a partition that returns twice, or not at all, is noticed. ``fingerprint`` is that
    of their rows if it is kept (:class:`~dpmoments.rows.sources.engine.Fingerprint`).
    """

    partitions: frozenset[int]
    result: Any
    fingerprint: int = 0
    failure: InputError | None = None


Work = Callable[[LocalSource[Any]], Any]
"""Work on a partition: a dataclass or a function, which an engine can send to workers."""


@dataclass(frozen=True, eq=False, repr=False)
class PartitionJob:
    """Task of a worker: open a partition, work on it in one thread, and return the outcome.

    It raises nothing: an error is a result, so that no engine repeats it, or logs what it quotes. ``work`` maps a
    source to a result; ``merge`` combines two results and is commutative and associative; ``nothing`` is the result
    of no partition; if ``fingerprinted``, the rows are fingerprinted.
    """

    reading: Reading
    work: Work
    merge: Callable[[Any, Any], Any]
    nothing: Any
    fingerprinted: bool

    def outcome(self, partition: Any, number: int) -> JobOutcome:
        fingerprint = Fingerprint()
        try:
            source = opened_partition(self.reading, partition)
            result = self.work(replace(source, fingerprint=fingerprint) if self.fingerprinted else source)
        except Exception as error:
            return JobOutcome(frozenset([number]), None, failure=unquoted(error))
        return JobOutcome(frozenset([number]), result, fingerprint.value)

    def merged(self, outcomes: Iterable[JobOutcome]) -> JobOutcome:
        """Merge the outcomes of partitions; of several failures, keep that of the lowest partition."""
        total = JobOutcome(frozenset(), self.nothing)
        for other in outcomes:
            partitions = total.partitions | other.partitions
            failed = [one for one in (total, other) if one.failure is not None]
            if total.partitions & other.partitions:
                twice = InputValueError("the engine returned a partition's result twice: the sums would be wrong")
                total = JobOutcome(partitions, None, failure=twice)
            elif failed:
                total = JobOutcome(partitions, None, failure=min(failed, key=lambda one: min(one.partitions)).failure)
            else:
                fingerprint = (total.fingerprint + other.fingerprint) % (1 << 64)
                total = JobOutcome(partitions, self.merge(total.result, other.result), fingerprint)
        return total


def summarized(summary: Summary[Any, Any], source: LocalSource[Any]) -> Any:
    """Summarize one partition in a pass, in one thread."""
    return source.summarize(summary, threads=1)


FAN_IN = 8
"""Results merged in one task: limits what a worker holds and what the driver gets."""
_HUNDREDTHS = 100

_PACKAGES = {"dask": "dask", "spark": "pyspark"}


@dataclass(frozen=True, eq=False, repr=False)
class EngineSource(Source):
    """Table in partitions that an engine's processes read.

    A task reads a partition, encodes it and sums it in one thread, as a local pass does; only a finished result leaves
    a worker. Results are functions of their partitions, without accumulators, and each partition's result is
    merged exactly once, as its number proves: a task that is repeated, run twice at a time, or lost with its worker
    changes nothing.
    """

    first_pass: FirstPass = field(default_factory=FirstPass, kw_only=True)

    where: ClassVar[str]
    """Description of the table, for messages."""
    fingerprinted: ClassVar[bool] = True
    """True if its rows might differ between passes, so that passes are compared."""

    @abstractmethod
    def outcome(self, job: PartitionJob, progress: PassProgress) -> tuple[JobOutcome, int]:
        """Run a job over all partitions; return the outcome and their number."""

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
        # The engine decides how many partitions it reads at a time.
        nothing = summary.finish(summary.start())
        result: Result = self.mapped(partial(summarized, summary), summary.merge, nothing, on_block)
        return result

    def mapped(
        self, work: Work, merge: Callable[[Any, Any], Any], nothing: Any, on_block: Callable[[int], None] | None = None
    ) -> Any:
        """Run the same work on a local source of every partition, and merge the results."""
        # `merge` is commutative and associative, `nothing` the result of no partition; `on_block` gets hundredths of
        # the pass.
        progress = PassProgress(on_block)
        job = PartitionJob(self.reading, work, merge, nothing, self.fingerprinted)
        outcome, n_partitions = read_quietly(partial(self.outcome, job, progress), self.where, FAILED_QUERY)
        if outcome.failure is not None:
            raise outcome.failure
        if outcome.partitions != frozenset(range(n_partitions)):
            raise InputValueError(f"{self.where}: the engine lost a partition's result: the sums would be wrong")
        if self.fingerprinted:
            self.first_pass.require_same(outcome.fingerprint, self.where)
        progress.tell(1.0)
        return outcome.result


@dataclass(frozen=True, eq=False, repr=False)
class FilePieces(EngineSource):
    """Rows of files, in pieces that workers read as this process would."""

    pieces: tuple[LocalSource[Any], ...]
    known_rows: int | None

    where: ClassVar[str] = "the table"
    fingerprinted: ClassVar[bool] = False  # a local pass trusts files, too

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

_NONCE_BYTES = 12


@dataclass(frozen=True, eq=False, repr=False)
class Seal:
    """Key of one pass over the data, which only the driver and its workers hold.

    Content is encrypted and authenticated with AES-256 in Galois/counter mode; nonces are random, which is safe for far
    more messages than a pass has partitions (2³²). ``key`` is 32 random bytes.
    """

    key: bytes = field(default_factory=lambda: os.urandom(32))

    def sealed(self, content: bytes) -> bytes:
        """Encrypt content."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        nonce = os.urandom(_NONCE_BYTES)
        return nonce + AESGCM(self.key).encrypt(nonce, content, None)

    def opened(self, sealed: bytes) -> bytes:
        """Decrypt content."""
        from cryptography.exceptions import InvalidTag
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM

        with suppress(InvalidTag):
            return AESGCM(self.key).decrypt(sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:], None)
        raise InputValueError("a partition's result was changed on its way from a worker")
