"""Tables that the workers of an engine read: the same work on every partition, merged on a tree, to the bits of a local pass."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from importlib.util import find_spec
from typing import Any, Self, TypeVar

from dpmoments.privacy.unit import PrivacyUnit
from dpmoments.rows.cells import Missing
from dpmoments.rows.restriction import Restriction
from dpmoments.rows.sources.partitions import Outcome, PartitionJob, Reading, Summarised, SummarisedUnits, Work
from dpmoments.rows.sources.reading import FAILED_QUERY, read_quietly
from dpmoments.rows.summary import Summary
from dpmoments.schema.schema import Schema

__all__ = ["FAN_IN", "HUNDREDTHS", "EngineSource", "PassProgress", "require_installed"]

FAN_IN = 8
"""So many results are merged in one task: a worker holds no more of them, and the driver gets few."""
HUNDREDTHS = 100

PACKAGES = {"dask": "dask", "spark": "pyspark"}

Running = TypeVar("Running")
Result = TypeVar("Result")


@dataclass(eq=False, repr=False)
class FirstPass:
    """What later passes over the same table are held to. It is mutable: copies of a source share it."""

    fingerprint: int | None = None


@dataclass(frozen=True, eq=False, repr=False)
class EngineSource(ABC):
    """A table in partitions that processes of an engine read.

    A task reads a partition, encodes it and sums it up in one thread, as a local pass does; what leaves a worker is a finished
    result. Results are functions of their partitions, there are no accumulators, and each partition's is merged exactly once,
    which its number vouches for: a task that is repeated, or run twice at a time, or lost with its worker, changes nothing.

    Attributes
    ----------
    reading : Reading
    first_pass : FirstPass
    """

    reading: Reading
    first_pass: FirstPass = field(default_factory=FirstPass, kw_only=True)

    @property
    @abstractmethod
    def where(self) -> str:
        """What is read, for messages."""

    @property
    @abstractmethod
    def fingerprinted(self) -> bool:
        """Whether it might have other rows at another pass, so that passes are compared."""

    @abstractmethod
    def outcome(self, job: PartitionJob, progress: PassProgress) -> tuple[Outcome, int] | None:
        """Run a job over all partitions: what they come to, and their number; None where there is no partition."""

    @property
    def schema(self) -> Schema:
        """Of the table."""
        return self.reading.schema

    @property
    def mean(self) -> bool:
        """Whether rows are encoded about the midpoints of their bounds."""
        return self.reading.mean

    @property
    def privacy_unit(self) -> PrivacyUnit | None:
        """Where rows belong to units of several."""
        return self.reading.privacy_unit

    @property
    def n_rows(self) -> int | None:
        """Number of rows where it is known without a pass."""
        return None

    @property
    def pass_length(self) -> int:
        """Progress is told in hundredths of the tasks."""
        return HUNDREDTHS

    @property
    def missing(self) -> Missing:
        """The rule for cells of an encoded block that are not finite."""
        return "drop"

    def restricted(self, restriction: Restriction) -> Self:
        """The same table, of which some rows are meant alone."""
        return replace(self, reading=replace(self.reading, restriction=restriction))

    def summarise(
        self,
        summary: Summary[Running, Result],
        *,
        threads: int | None = None,
        on_block: Callable[[int], None] | None = None,
    ) -> Result:
        """Map a summary over the partitions and merge; how many run at a time is the engine's to say."""
        del threads
        nothing = summary.finish(summary.start())
        found: Result = self.mapped(Summarised(summary), summary.merge, nothing, on_block)
        return found

    def summarise_units(
        self, summary: Summary[Any, Any], *, threads: int | None = None, on_block: Callable[[int], None] | None = None
    ) -> Any:
        """As :meth:`summarise`, of blocks that say whose each row is."""
        del threads
        return self.mapped(SummarisedUnits(summary), summary.merge, summary.finish(summary.start()), on_block)

    def mapped(
        self,
        work: Work,
        merge: Callable[[Any, Any], Any],
        nothing: Any,
        on_block: Callable[[int], None] | None = None,
    ) -> Any:
        """Do the same work on a local source of every partition, and merge what comes of it.

        Parameters
        ----------
        work : callable
            Source ↦ result.
        merge : callable
            Commutative and associative.
        nothing : object
            The result for no partition.
        on_block : callable, optional
            Called with hundredths of the pass.

        Raises
        ------
        ValueError, TypeError, MemoryError, OSError
            In words of this library: no message of a worker or an engine is told.
        """
        progress = PassProgress(on_block)
        job = PartitionJob(self.reading, work, merge, self.fingerprinted)
        found = read_quietly(partial(self.outcome, job, progress), self.where, FAILED_QUERY)
        if found is None:
            outcome = Outcome(frozenset(), nothing)
        else:
            outcome, n_partitions = found
            if outcome.failure is not None:
                outcome.failure.tell()
            if outcome.partitions != frozenset(range(n_partitions)):
                raise ValueError(
                    f"{self.where}: the engine lost the result of a partition, so that the sums would be wrong"
                )
        if self.fingerprinted:
            self._compare(outcome.fingerprint)
        progress.tell(1.0)
        return outcome.result

    def _compare(self, fingerprint: int) -> None:
        first = self.first_pass.fingerprint
        self.first_pass.fingerprint = fingerprint
        if first is not None and first != fingerprint:
            raise ValueError(
                f"{self.where} gave other rows at this pass than at the one before: it is made anew every time (of random "
                "numbers, a sample, or files that change). Write it to Parquet files once, and pass those"
            )

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class PassProgress:
    """Hundredths of a pass, each told once."""

    def __init__(self, on_block: Callable[[int], None] | None) -> None:
        self._on_block = on_block
        self._told = 0

    def tell(self, share: float) -> None:
        """So much of the pass is done; less than before is not believed."""
        due = int(share * HUNDREDTHS) - self._told
        if due > 0 and self._on_block is not None:
            self._told += due
            self._on_block(due)


def require_installed(engine: str) -> None:
    """Raise unless the package of an engine is there.

    Raises
    ------
    ModuleNotFoundError
        Naming the extra.
    """
    if find_spec(PACKAGES[engine]) is None:
        raise ModuleNotFoundError(
            f"the engine {engine!r} is not installed here: pip install 'dpmoments[{engine}]' (and on every worker)"
        )
