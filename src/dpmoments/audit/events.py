"""Choosing the event: a statistic, a threshold, a side, and which of the two tables it speaks for."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dpmoments.audit.statistics import epsilon_lower_bound
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.foundation.table_libraries import pa
from dpmoments.mechanisms.base import CalibratedPlan
from dpmoments.mechanisms.shape import RunResult
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors, PrivacyUnit, SelectionKey
from dpmoments.rows.kernel import MomentSummary
from dpmoments.rows.moments import Moments
from dpmoments.rows.rows import Rows
from dpmoments.rows.summary import Summary
from dpmoments.rows.threads import single_threaded_blas
from dpmoments.schema.schema import Schema

_N_THRESHOLDS = 64
_SHARES = (0.5, 0.25, 0.125)
_MIN_OCCURRENCES = 10
SELECTION_FAILURE = 0.01
"""Confidence that candidates are compared at; the reported bound has its own draws and its own confidence."""


@dataclass(frozen=True, slots=True)
class Event:
    """{statistic ≥ threshold} or {statistic ≤ threshold}, likelier on the first table or on the second.

    Attributes
    ----------
    column : int
        Its column in the matrix of statistics.
    promise : float
        The bound on ε that the draws it was chosen on gave: biased upwards, for ranking alone.
    """

    statistic: str
    column: int
    threshold: float
    above: bool
    likelier_on_second: bool
    promise: float

    def count(self, statistics: FloatArray) -> int:
        """How often it happened among draws, statistics of shape (N, number of statistics)."""
        values = statistics[:, self.column]
        return int(np.sum(values >= self.threshold if self.above else values <= self.threshold))

    def __str__(self) -> str:
        return f"{self.statistic} {'≥' if self.above else '≤'} {self.threshold:.4g}"


def best_events(
    first: FloatArray, second: FloatArray, names: tuple[str, ...], delta: float, failure: float = SELECTION_FAILURE
) -> tuple[Event, Event]:
    """The events with the largest lower bound on ε among thresholds at sample quantiles of every statistic.

    Parameters
    ----------
    first, second : ndarray of shape (N, S)
        Statistics of draws on the two tables; none NaN.
    names : tuple of str, length S
    failure : float
        The confidence that candidates are compared at is 1 less this.

    Returns
    -------
    tuple of two Event
        The best that is likelier on the first table, and the best that is likelier on the second.
    """
    trials = len(first)
    best: dict[bool, Event] = {}
    for column, name in enumerate(names):
        ordered, other = np.sort(first[:, column]), np.sort(second[:, column])
        pooled = np.sort(np.concatenate([ordered, other]))
        levels = np.unique(np.linspace(0, len(pooled) - 1, _N_THRESHOLDS).round().astype(np.int64))
        thresholds = np.unique(pooled[levels])
        for above in (True, False):
            hits, other_hits = (_counts(values, thresholds, above) for values in (ordered, other))
            for swapped in (False, True):
                pair = (other_hits, hits) if swapped else (hits, other_hits)
                scores = epsilon_lower_bound(*pair, trials, delta, failure)
                index = int(np.argmax(scores))
                if swapped not in best or scores[index] > best[swapped].promise:
                    best[swapped] = Event(
                        name, column, float(thresholds[index]), above, swapped, promise=float(scores[index])
                    )
    if not best:
        raise InputValueError("there is no statistic to choose from")
    return best[False], best[True]


def rarer_events(event: Event, first: FloatArray, second: FloatArray) -> tuple[Event, ...]:
    """The event itself, and the same with thresholds further out.

    A short sample cannot show that a rarer event is the more telling one. So all of them are tried on the final draws, at a
    shared confidence.

    Parameters
    ----------
    first, second : ndarray of shape (N, S)
        The statistics it was chosen on. Thresholds are where a half, a quarter, … of its occurrences on the table it
        speaks for lie beyond.
    """
    values = (second if event.likelier_on_second else first)[:, event.column]
    occurred = np.sort(values[values >= event.threshold] if event.above else values[values <= event.threshold])
    if not event.above:
        occurred = occurred[::-1]
    thresholds = {event.threshold: None}  # a dict keeps the order
    for share in _SHARES:
        if len(occurred) * share >= _MIN_OCCURRENCES:
            thresholds[float(occurred[-int(len(occurred) * share)])] = None
    return tuple(replace(event, threshold=threshold) for threshold in thresholds)


def _counts(ordered: FloatArray, thresholds: FloatArray, above: bool) -> npt.NDArray[np.int64]:
    if above:
        return len(ordered) - np.searchsorted(ordered, thresholds, side="left")
    return np.searchsorted(ordered, thresholds, side="right")


# Repeated runs of a plan on one table, as a table of numbers: all that someone who sees the outputs can measure.

Record = dict[str, float]
Running = TypeVar("Running")
Result = TypeVar("Result")

_SELECTIONS = 16
"""So many keys stand for all: which rows count is found once for each, and not in every run."""
_MAX_NUMBERS = 400
"""Numbers of an output that are looked at; longer diagnostics are cut."""


@dataclass(frozen=True, eq=False)
class RepeatedRows(Rows):
    """Rows that remember their exact moments, so that thousands of runs read the table once.

    Moments about a centre or in a linear map, which depend on earlier noise, are computed every time.
    """

    remembered: dict[tuple[float, int], Moments] = field(default_factory=dict, repr=False)
    passes: list[int] = field(default_factory=lambda: [0], repr=False)

    def summarise(self, summary: Summary[Running, Result]) -> Result:
        """As :meth:`dpmoments.rows.rows.Rows.summarise`."""
        if not isinstance(summary, MomentSummary) or summary.center is not None or summary.linear is not None:
            self.passes[0] += 1
            return super().summarise(summary)
        key = (summary.radius, summary.bits)
        if key not in self.remembered:
            self.remembered[key] = super().summarise(summary)
        remembered: Any = self.remembered[key]
        return remembered  # type: ignore[no-any-return]


def repeated_rows(table: FloatArray, neighbors: Neighbors, schema: Schema | None = None) -> RepeatedRows:
    """Rows of a table that is read once; by default of a schema that drops rows only where the table has one with NaN.

    Examples
    --------
    >>> repeated_rows(np.array([[1.0, 0.0], [np.nan, 0.0]]), Neighbors.ADD_REMOVE).moments().count
    1
    """
    if schema is None:
        schema = Schema.unit_ball(table.shape[1], missing="drop" if np.isnan(table).any() else "error")
    rows = RepeatedRows.of(table, schema, neighbors=neighbors, threads=1)
    assert isinstance(rows, RepeatedRows)
    return rows


@dataclass(frozen=True, eq=False)
class RepeatedUnits(RepeatedRows):
    """Rows of units, of which a few selections of those that count are made beforehand.

    What is asked before a run has drawn its key is answered for the first of them.
    """

    selections: tuple[RepeatedRows, ...] = ()

    def bounded(self, key: SelectionKey) -> Rows:
        """One of the selections, by the key."""
        return self.selections[key[0] % len(self.selections)]

    def summarise(self, summary: Summary[Running, Result]) -> Result:
        """As :meth:`RepeatedRows.summarise`."""
        return self.selections[0].summarise(summary)

    @property
    def selected_alike(self) -> bool:
        """Whether the rows that count are the same, whatever the key."""
        return len(self.selections) == 1


def repeated_units(
    table: FloatArray, units: Sequence[str], privacy_unit: PrivacyUnit, schema: Schema | None = None
) -> RepeatedUnits:
    """Rows of a table of units that is read once for each of a few keys.

    Examples
    --------
    >>> rows = repeated_units(np.ones((7, 1)), ["a"] * 6 + ["b"], PrivacyUnit("person", max_rows=2))
    >>> rows.moments().count, rows.selected_alike
    (3, True)
    """
    schema = Schema.unit_ball(table.shape[1]) if schema is None else schema
    cells = {name: table[:, index] for index, name in enumerate(schema.names)}
    frame = pa.table({**cells, privacy_unit.column: pa.array(list(units), pa.string())})
    rows = RepeatedUnits.of(frame, schema, threads=1, privacy_unit=privacy_unit)
    assert isinstance(rows, RepeatedUnits)
    plain = RepeatedRows(rows.schema, rows.neighbors, rows.source, 1, privacy_unit=privacy_unit, passes=rows.passes)
    selections = []
    for key in range(
        1 if _selected_alike(table, np.array(units, dtype=object), privacy_unit.max_rows) else _SELECTIONS
    ):
        result = plain.bounded((key, key))
        assert isinstance(result, RepeatedRows)
        selections.append(replace(result, remembered={}))
    return replace(rows, selections=tuple(selections))


def _selected_alike(table: FloatArray, units: npt.NDArray[Any], max_rows: int) -> bool:
    """Whether of each unit all rows count, or all rows are equal."""
    rows_of = (table[units == unit] for unit in set(units.tolist()))
    return all(len(rows) <= max_rows or bool((rows == rows[0]).all()) for rows in rows_of)


def run_repeatedly(
    plan: CalibratedPlan[RunResult], rows: Rows, size: int, generator: np.random.Generator
) -> tuple[list[Record], Exception | None]:
    """The plan's own ``run``, ``size`` times.

    Returns
    -------
    records : list of dict
        Every output as named numbers. A run that raises is an outcome too (an error that depends on the table tells of
        it): it is recorded as ``failed``, with a number for the kind of error.
    failure : Exception or None
        The last error, if all runs raised.
    """
    records: list[Record] = []
    failure: Exception | None = None
    n_failures = 0
    # Held once: the summation would otherwise look for the linear algebra library in every run.
    with single_threaded_blas():
        for _ in range(size):
            try:
                noisy = plan.run(rows, PrivacyFilter(plan, generator))
            except Exception as error:  # whatever it is, the one who asked for the release sees it
                failure, n_failures = error, n_failures + 1
                records.append({"failed": 1.0, "error": _code(type(error).__name__)})
            else:
                records.append(_numbers_of(noisy))
    return records, failure if n_failures == size else None


def _numbers_of(noisy: RunResult) -> Record:
    """Every number in an output, by name; texts as a number that stands for them.

    Examples
    --------
    >>> _numbers_of(RunResult(3.0, None, np.eye(1), {"scales": [0.5]}))
    {'failed': 0.0, 'gram[0,0]': 1.0, 'count': 3.0, 'scales.length': 1.0, 'scales.0': 0.5}
    """
    record = {"failed": 0.0}
    for i, row in enumerate(noisy.gram.tolist()):
        for j, value in enumerate(row[i:], start=i):
            record[f"gram[{i},{j}]"] = value
    if noisy.sum is not None:
        record |= {f"sum[{index}]": value for index, value in enumerate(noisy.sum.tolist())}
    if noisy.center is not None:
        record |= {f"center[{index}]": value for index, value in enumerate(noisy.center.tolist())}
    if noisy.count is not None:
        record["count"] = float(noisy.count)
    for key, value in noisy.diagnostics.items():
        _flatten(str(key), value, record)
    if noisy.model is not None:
        _flatten("model", noisy.model.to_dict(), record)
    return record


def names_in(*samples: Sequence[Record]) -> tuple[str, ...]:
    """Names of the numbers that occur in any record, in order of appearance, at most ``_MAX_NUMBERS``."""
    result: dict[str, None] = {}
    for sample in samples:
        for record in sample:
            result.update(dict.fromkeys(record))
    return tuple(result)[:_MAX_NUMBERS]


def _flatten(name: str, value: Any, record: Record) -> None:
    if isinstance(value, str):
        record[name] = _code(value)
    elif isinstance(value, bool | int | float | np.number | np.bool_):
        record[name] = float(value)
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            _flatten(f"{name}.{key}", entry, record)
    elif isinstance(value, np.ndarray):
        _flatten(name, value.tolist(), record)
    elif isinstance(value, Sequence):
        record[f"{name}.length"] = float(len(value))
        for index, entry in enumerate(value):
            _flatten(f"{name}.{index}", entry, record)
    elif value is not None:
        raise InputTypeError(
            f"the diagnostic {name!r} is a {type(value).__name__}: the audit reads plain values and arrays"
        )


def _code(text: str) -> float:
    return float(zlib.crc32(text.encode()))
