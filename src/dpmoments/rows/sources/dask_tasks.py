"""One task for each partition of a Dask collection: it reads the partition, works on it, and returns sealed bytes.

Dask's workers may write what a task returns to a disk. So no task returns rows, and what ours return is encrypted. The key is an
argument of each task, which Dask keeps in memory; the encrypted job is the result of a task.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from dpmoments.foundation.errors import InputTypeError
from dpmoments.rows.sources.engine import Failure, Outcome, PartitionJob
from dpmoments.rows.sources.sealing import Seal


@dataclass(frozen=True, eq=False, repr=False)
class PartitionTask:
    """Steps of Dask that make one partition, for one task.

    Attributes
    ----------
    output : key
        The partition.
    steps : sequence of dask GraphNode
        Each after those that it needs.
    inputs : sequence of keys
        Results of other tasks.
    """

    output: Hashable
    steps: Sequence[Any]
    inputs: Sequence[Hashable] = ()

    @classmethod
    def of_value(cls, value: Any) -> PartitionTask:
        """Return the task of a partition that is a value."""
        from dask._task_spec import DataNode

        return cls("partition", (DataNode("partition", value),))

    def run(self, given: Sequence[Any]) -> Any:
        """Return the partition."""
        values = dict(zip(self.inputs, given, strict=True))
        last_use = {key: index for index, step in enumerate(self.steps) for key in step.dependencies}
        for index, step in enumerate(self.steps):
            values[step.key] = step(values)
            for key in step.dependencies:
                if last_use[key] == index and key != self.output:
                    values.pop(key)
        return values[self.output]


@dataclass(frozen=True, eq=False, repr=False)
class CutGraph:
    """A graph of Dask, cut into one task for each partition and the steps that several partitions need.

    Attributes
    ----------
    stored : mapping
        Steps whose results are kept between tasks.
    """

    partitions: Sequence[PartitionTask]
    stored: Mapping[Hashable, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, graph: Mapping[Hashable, Any], outputs: Sequence[Hashable]) -> CutGraph:
        """Cut a graph.

        Parameters
        ----------
        outputs : sequence of keys
            The partitions.
        """
        from dask._task_spec import DataNode

        in_order = _in_order(graph, outputs)
        needed_by: dict[Hashable, set[int]] = {key: set() for key in in_order}
        for number, output in enumerate(outputs):
            needed_by[output].add(number)
        for key in reversed(in_order):
            # What two partitions need is stored, and so is all that it is made of: two is enough to say so.
            for needed in graph[key].dependencies:
                needed_by[needed] |= set(sorted(needed_by[key])[:2])
        values = {key for key in in_order if type(graph[key]) is DataNode}  # these are in the graph, and no results
        stored = {key for key in in_order if len(needed_by[key]) > 1 and key not in values}
        own: list[list[Hashable]] = [[] for _ in outputs]
        for key in in_order:
            if len(needed_by[key]) == 1:
                own[min(needed_by[key])].append(key)
        partitions = [_task(graph, output, keys, values) for output, keys in zip(outputs, own, strict=True)]
        stored |= {needed for key in stored for needed in graph[key].dependencies}
        return cls(partitions, {key: graph[key] for key in in_order if key in stored})


def _task(graph: Mapping[Hashable, Any], output: Hashable, own: list[Hashable], values: set[Hashable]) -> PartitionTask:
    needed = {output}.union(*(graph[key].dependencies for key in own)) - set(own)
    copied, inputs = sorted(needed & values, key=str), sorted(needed - values, key=str)
    return PartitionTask(output, tuple(graph[key] for key in (*copied, *own)), tuple(inputs))


def _in_order(graph: Mapping[Hashable, Any], outputs: Sequence[Hashable]) -> list[Hashable]:
    """Return the keys that the outputs need, each after those that it needs."""
    result: dict[Hashable, None] = {}
    waiting: list[tuple[Hashable, bool]] = [(key, False) for key in reversed(outputs)]
    while waiting:
        key, complete = waiting.pop()
        if complete:
            result[key] = None
        elif key not in result:
            if key not in graph:
                raise InputTypeError(
                    "the Dask array is kept on a cluster, whose workers may write it to their disks: pass the array before "
                    "persist(), or Parquet files"
                )
            waiting.append((key, True))
            waiting += [(needed, False) for needed in graph[key].dependencies]
    return list(result)


def sealed(seal: Seal | None, value: Any) -> Any:
    """Encrypt a value; leave it as it is without a seal, where no result leaves memory."""
    import cloudpickle

    return value if seal is None else seal.sealed(cloudpickle.dumps(value))


def opened(seal: Seal | None, value: Any) -> Any:
    """Decrypt a value."""
    import cloudpickle

    return value if seal is None else cloudpickle.loads(seal.opened(value))


@lru_cache(maxsize=1)
def _opened_job(key: bytes, value: bytes) -> Any:
    return opened(Seal(key), value)


def opened_job(seal: Seal | None, value: Any) -> PartitionJob:
    """Decrypt a job, once for all tasks of a pass that a process runs."""
    job: PartitionJob = value if seal is None else _opened_job(seal.key, value)
    return job


def partition_outcome(seal: Seal | None, task: PartitionTask, number: int, job: Any, *given: Any) -> Any:
    """Read a partition and work on it. An error is a result: no worker writes what it quotes into a log."""
    work = opened_job(seal, job)
    try:
        partition = task.run(given)
    except Exception as error:
        return sealed(seal, Outcome(frozenset([number]), None, failure=Failure.of(error)))
    return sealed(seal, work.outcome(partition, number))


def merged_outcome(seal: Seal | None, job: Any, outcomes: Sequence[Any]) -> Any:
    """Merge outcomes."""
    return sealed(seal, opened_job(seal, job).merged([opened(seal, outcome) for outcome in outcomes]))
