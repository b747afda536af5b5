"""Choosing the event: a statistic, a threshold, a side, and which of the two tables it speaks for."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpmoments.audit.bounds import epsilon_lower_bound
from dpmoments.foundation.arrays import FloatArray

__all__ = ["Event", "best_events", "rarer_events"]


N_THRESHOLDS = 64
SHARES = (0.5, 0.25, 0.125)
LEAST_OCCURRENCES = 10
SELECTION_FAILURE = 0.01
"""Confidence that candidates are compared at; the reported bound has its own draws and its own confidence."""


@dataclass(frozen=True, slots=True)
class Event:
    """{statistic ≥ threshold} or {statistic ≤ threshold}, likelier on the first table or on the second.

    Attributes
    ----------
    statistic : str
    column : int
        Its column in the matrix of statistics.
    threshold : float
    above : bool
    likelier_on_second : bool
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
    delta : float
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
        levels = np.unique(np.linspace(0, len(pooled) - 1, N_THRESHOLDS).round().astype(np.int64))
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
        raise ValueError("there is no statistic to choose from")
    return best[False], best[True]


def rarer_events(event: Event, first: FloatArray, second: FloatArray) -> tuple[Event, ...]:
    """The event itself, and the same with thresholds further out.

    A short sample cannot show that a rarer event is the more telling one. So all of them are tried on the final draws, at a
    shared confidence.

    Parameters
    ----------
    event : Event
    first, second : ndarray of shape (N, S)
        The statistics it was chosen on. Thresholds are where a half, a quarter, … of its occurrences on the table it
        speaks for lie beyond.
    """
    values = (second if event.likelier_on_second else first)[:, event.column]
    occurred = np.sort(values[values >= event.threshold] if event.above else values[values <= event.threshold])
    if not event.above:
        occurred = occurred[::-1]
    thresholds = {event.threshold: None}  # a dict keeps the order
    for share in SHARES:
        if len(occurred) * share >= LEAST_OCCURRENCES:
            thresholds[float(occurred[-int(len(occurred) * share)])] = None
    return tuple(replace(event, threshold=threshold) for threshold in thresholds)


def _counts(ordered: FloatArray, thresholds: FloatArray, above: bool) -> npt.NDArray[np.int64]:
    if above:
        return len(ordered) - np.searchsorted(ordered, thresholds, side="left")
    return np.searchsorted(ordered, thresholds, side="right")
