"""Repeated runs as numbers, an event among them, and lower bounds on ε from its counts."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.base.errors import InputTypeError, shown
from dpmoments.base.table_libraries import pa
from dpmoments.base.values import FloatArray
from dpmoments.mechanisms.base import CalibratedPlan
from dpmoments.mechanisms.shape import RunResult
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors, PrivacyUnit, SelectionKey
from dpmoments.rows.kernel import MomentSummary
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.rows import Rows
from dpmoments.rows.summary import Summary, blas_threads
from dpmoments.schema.schema import Schema

Record = dict[str, float]

_MAX = 1e300
_N_BINS = 24
_TAILS = 0.005
_RIDGE = 1e-3


def raw_statistics(
    records: Sequence[Record], names: tuple[str, ...], first: FloatArray, second: FloatArray
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return every number of N outputs, and functions of the noisy Gram matrices, shape (N, S)."""
    # A number that a record lacks counts as smaller than any number; `first` and `second` are the exact Gram matrices.
    values = np.array([[record.get(name, -np.inf) for name in names] for record in records], dtype=np.float64)
    values = values.reshape(len(records), len(names))
    grams = noisy_grams(records, len(first))
    eigenvalues, eigenvectors = np.linalg.eigh(grams)
    made = {f"eigenvalue {index} of Ĝ": eigenvalues[:, index] for index in range(grams.shape[1])}
    made["tr Ĝ"] = eigenvalues.sum(axis=1)
    with np.errstate(divide="ignore"):
        made["log |det Ĝ|"] = np.log(np.abs(eigenvalues)).sum(axis=1)

    # What separates the two exact matrices.
    difference = second - first
    made["⟨Ĝ, difference⟩"] = np.einsum("nij,ij->n", grams, difference)
    shifts, directions = np.linalg.eigh(difference)
    moved = np.flatnonzero(np.abs(shifts) > 1e-6)
    for label, index in zip("uv", moved, strict=False):
        u = directions[:, index]
        overlaps = np.einsum("nij,i->nj", eigenvectors, u) ** 2
        made[f"{label}ᵀĜ{label}"] = np.einsum("nij,i,j->n", grams, u, u)
        with np.errstate(divide="ignore", invalid="ignore"):
            made[f"{label}ᵀĜ⁻¹{label}"] = (overlaps / eigenvalues).sum(axis=1)
        for column, name in ((-1, "leading"), (0, "last")):
            made[f"overlap of {label} and the {name} eigenvector"] = overlaps[:, column]
    for label, matrix in (("G₁", first), ("G₂", second)):
        spread = np.linalg.eigvalsh(grams - matrix)
        made[f"smallest eigenvalue of Ĝ − {label}"] = spread[:, 0]
        made[f"largest eigenvalue of Ĝ − {label}"] = spread[:, -1]
    together = np.column_stack([values, *made.values()])
    return np.nan_to_num(together, nan=-_MAX, posinf=_MAX, neginf=-_MAX), (*names, *made)


def noisy_grams(records: Sequence[Record], n_features: int) -> FloatArray:
    """Return the released Gram matrices, shape (N, d, d); 0 if missing or not finite."""
    grams = np.zeros((len(records), n_features, n_features))
    for i, j in zip(*np.triu_indices(n_features), strict=True):
        name = f"gram[{i},{j}]"
        grams[:, i, j] = grams[:, j, i] = [record.get(name, 0.0) for record in records]
    return np.where(np.isfinite(grams), grams, 0.0)


@dataclass(frozen=True, slots=True, eq=False)
class LearnedScores:
    """Two approximations of the log likelihood ratio of the second table against the first.

    ``linear`` is Fisher's discriminant on the statistics, ``additive`` the discriminant on log-ratios of their binned
    frequencies.
    """

    lower: FloatArray
    upper: FloatArray
    linear_weights: FloatArray
    edges: tuple[FloatArray, ...]
    log_ratios: tuple[FloatArray, ...]
    additive_weights: FloatArray

    names = ("linear discriminant", "additive log-ratio score")

    def __call__(self, statistics: FloatArray) -> FloatArray:
        """Return scores of draws, shape (N, 2)."""
        linear = _trimmed(statistics, self.lower, self.upper) @ self.linear_weights
        binned = _binned(statistics, self.edges, self.log_ratios) @ self.additive_weights
        return np.column_stack([linear, binned])


def learn_scores(first: FloatArray, second: FloatArray) -> LearnedScores:
    """Fit both scores to draws on two tables, each of shape (N, S)."""
    pooled = np.vstack([first, second])
    lower, upper = np.quantile(pooled, [_TAILS, 1.0 - _TAILS], axis=0)
    linear = _fisher(_trimmed(first, lower, upper), _trimmed(second, lower, upper))
    edges, log_ratios = [], []
    for ours, theirs, together in zip(first.T, second.T, pooled.T, strict=True):
        inner = np.unique(np.quantile(together, np.linspace(0.0, 1.0, _N_BINS + 1)[1:-1], method="lower"))
        counts = [
            np.bincount(np.searchsorted(inner, part, side="left"), minlength=len(inner) + 1) for part in (ours, theirs)
        ]
        edges.append(inner)
        log_ratios.append(np.log((counts[1] + 0.5) / (counts[0] + 0.5)))
    additive = _fisher(*(_binned(part, tuple(edges), tuple(log_ratios)) for part in (first, second)))
    return LearnedScores(lower, upper, linear, tuple(edges), tuple(log_ratios), additive)


def _trimmed(statistics: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Scale outer quantiles to [0, 1] and clip, so that heavy tails do not set the weights."""
    width = np.where(upper > lower, upper - lower, 1.0)
    return np.asarray(np.clip((statistics - lower) / width, 0.0, 1.0))


def _binned(statistics: FloatArray, edges: Sequence[FloatArray], log_ratios: Sequence[FloatArray]) -> FloatArray:
    columns = [
        table[np.searchsorted(inner, column, side="left")]
        for column, inner, table in zip(statistics.T, edges, log_ratios, strict=True)
    ]
    return np.column_stack(columns)


def _fisher(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return Σ⁻¹(mean of second − mean of first), with a small ridge on the mean covariance Σ."""
    covariance = np.atleast_2d(np.cov(first.T) + np.cov(second.T)) / 2.0
    scale = float(np.trace(covariance)) / len(covariance)
    ridge = _RIDGE * (scale if scale > 0.0 else 1.0)
    weights: FloatArray = np.linalg.solve(
        covariance + ridge * np.eye(len(covariance)), second.mean(axis=0) - first.mean(axis=0)
    )
    return weights


# Lower bounds on ε that hold with stated confidence, from how often an event was seen.


def _probability_above(successes: npt.ArrayLike, trials: int, failure: float) -> FloatArray:
    """Return Clopper–Pearson lower bounds on probabilities, each with this failure probability."""
    count = np.asarray(successes, dtype=np.float64)
    return np.where(count > 0, scipy.special.betaincinv(np.maximum(count, 1.0), trials - count + 1.0, failure), 0.0)


def epsilon_lower_bound(
    hits: npt.ArrayLike, other_hits: npt.ArrayLike, trials: int, delta: float, failure: float
) -> FloatArray:
    """Bound ε from below by the counts of an event on two neighboring tables.

    ε ≥ log((p − δ)/q) for the probabilities p and q of any event; p is taken at its lower and q at its upper
    Clopper–Pearson bound, each with half of ``failure``. The event must have been fixed without these draws. The result
    is 0 if nothing can be concluded.

    Examples
    --------
    >>> float(epsilon_lower_bound(5000, 1800, 10_000, 0.0, 0.001).round(3))
    0.919
    """
    p = _probability_above(hits, trials, failure / 2.0) - delta
    q = 1.0 - _probability_above(trials - np.asarray(other_hits), trials, failure / 2.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > q, np.log(np.maximum(p, 0.0) / q), 0.0)


_N_THRESHOLDS = 64
_SHARES = (0.5, 0.25, 0.125)
_MIN_OCCURRENCES = 10
SELECTION_FAILURE = 0.01
"""Failure probability at which candidates are compared; the reported bound has its own."""


@dataclass(frozen=True, slots=True)
class Event:
    """Event {statistic ≥ threshold} or {statistic ≤ threshold}.

    It is likelier on one of the two tables. ``column`` is the index of the statistic, and ``promise`` the bound on ε
    from the draws it was chosen on, which is biased upwards and only used for ranking.
    """

    statistic: str
    column: int
    threshold: float
    above: bool
    likelier_on_second: bool
    promise: float

    def count(self, statistics: FloatArray) -> int:
        """Count the draws in which the event happened."""
        values = statistics[:, self.column]
        return int(np.sum(values >= self.threshold if self.above else values <= self.threshold))

    def __str__(self) -> str:
        return f"{self.statistic} {'≥' if self.above else '≤'} {self.threshold:.4g}"


def best_events(
    first: FloatArray, second: FloatArray, names: tuple[str, ...], delta: float, failure: float = SELECTION_FAILURE
) -> tuple[Event, Event]:
    """Return the events with the largest bounds on ε, one likelier on each of the tables."""
    # Thresholds are sample quantiles of the statistics of draws, shape (N, S), without NaN.
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
    return best[False], best[True]


def rarer_events(event: Event, first: FloatArray, second: FloatArray) -> tuple[Event, ...]:
    """Return the event and rarer ones with more extreme thresholds."""
    # A short sample cannot show that a rarer event gives a larger bound, so all are tried on the final draws, at a
    # shared confidence. The thresholds are exceeded by a half, a quarter, … of the occurrences on the table where it is
    # likelier.
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

Running = TypeVar("Running")
Result = TypeVar("Result")

_SELECTIONS = 16
"""Number of selection keys used in place of all; the selected rows are found once for each."""
_MAX_NUMBERS = 400
"""Maximum number of values read from an output."""


@dataclass(frozen=True, eq=False)
class RepeatedRows(Rows):
    """Rows that cache exact moments, so that thousands of runs read the table once.

    Moments about a center or in a linear map depend on earlier noise and are computed every time.
    """

    remembered: dict[tuple[float, int], ExactMoments] = field(default_factory=dict, repr=False)
    passes: list[int] = field(default_factory=lambda: [0], repr=False)

    def summarize(self, summary: Summary[Running, Result]) -> Result:
        """Return a cached summary if possible."""
        if not isinstance(summary, MomentSummary) or summary.center is not None or summary.linear is not None:
            self.passes[0] += 1
            return super().summarize(summary)
        key = (summary.radius, summary.bits)
        if key not in self.remembered:
            self.remembered[key] = super().summarize(summary)
        return self.remembered[key]  # type: ignore[return-value]


def repeated_rows(table: FloatArray, neighbors: Neighbors, schema: Schema | None = None) -> RepeatedRows:
    """Make cached rows; the default schema drops rows only if the table has one with NaN."""
    if schema is None:
        schema = Schema.unit_ball(table.shape[1], missing="drop" if np.isnan(table).any() else "error")
    rows = RepeatedRows.of(table, schema, neighbors=neighbors, threads=1)
    assert isinstance(rows, RepeatedRows)
    return rows


@dataclass(frozen=True, eq=False)
class RepeatedUnits(RepeatedRows):
    """Cached rows of units, with a few selections of the counted rows made beforehand.

    Before a run has drawn its key, the first selection is used.
    """

    selections: tuple[RepeatedRows, ...] = ()

    def bounded(self, key: SelectionKey) -> Rows:
        """Return the selection of a key."""
        return self.selections[key[0] % len(self.selections)]

    def summarize(self, summary: Summary[Running, Result]) -> Result:
        return self.selections[0].summarize(summary)

    @property
    def selected_alike(self) -> bool:
        """True if the selected rows do not depend on the key."""
        return len(self.selections) == 1


def repeated_units(
    table: FloatArray, units: Sequence[str], privacy_unit: PrivacyUnit, schema: Schema | None = None
) -> RepeatedUnits:
    """Make cached rows of units, for a few selection keys."""
    schema = Schema.unit_ball(table.shape[1]) if schema is None else schema
    cells = {name: table[:, index] for index, name in enumerate(schema.names)}
    frame = pa.table({**cells, privacy_unit.column: pa.array(list(units), pa.string())})
    rows = RepeatedUnits.of(frame, schema, threads=1, privacy_unit=privacy_unit)
    assert isinstance(rows, RepeatedUnits)
    plain = RepeatedRows(rows.schema, rows.neighbors, rows.source, 1, privacy_unit=privacy_unit, passes=rows.passes)
    # The counted rows do not depend on the key if no unit has unequal rows of which some are left out.
    rows_of = (table[np.array(units, dtype=object) == unit] for unit in set(units))
    selected_alike = all(len(own) <= privacy_unit.rows_per_unit or bool((own == own[0]).all()) for own in rows_of)
    selections = []
    for key in range(1 if selected_alike else _SELECTIONS):
        result = plain.bounded((key, key))
        assert isinstance(result, RepeatedRows)
        selections.append(replace(result, remembered={}))
    return replace(rows, selections=tuple(selections))


def run_repeatedly(
    plan: CalibratedPlan[RunResult], rows: Rows, size: int, generator: np.random.Generator
) -> tuple[list[Record], Exception | None]:
    """Run a plan ``size`` times; return the outputs as named numbers."""
    # A run that raises is an outcome, since an error may depend on the table: it is recorded as `failed`, with a number
    # for the kind of error. The last error is returned if all runs raised.
    records: list[Record] = []
    failure: Exception | None = None
    n_failures = 0
    # Held once: the summation would otherwise look for the linear algebra library in every run.
    with blas_threads(1):
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
    """Return every number of an output by name; texts become hash numbers."""
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
        plain = [message.to_dict() for message in value] if key == "warnings" else value
        _flatten(str(key), plain, record)
    if noisy.model is not None:
        _flatten("model", noisy.model.to_dict(), record)
    return record


def record_names(*samples: Sequence[Record]) -> tuple[str, ...]:
    """Return names of the numbers in any record, in order of appearance."""
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
            f"the diagnostic {shown(name)} is a {type(value).__name__}: the audit reads plain values and arrays"
        )


def _code(text: str) -> float:
    return float(zlib.crc32(text.encode()))
