"""An audit: search for a telling event on pilot draws, then bound ε from fresh ones."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.audit.bounds import epsilon_lower_bound
from dpmoments.audit.directions import leading_scores, one_direction_epsilon, stated_temperature, temperature_at_least
from dpmoments.audit.events import SELECTION_FAILURE, Event, best_events, rarer_events
from dpmoments.audit.outcomes import names_in
from dpmoments.audit.pairs import NeighboringPair, distant_pairs, neighboring_pairs, unit_pairs
from dpmoments.audit.results import AuditEffort, AuditResult, MeasuredDirection
from dpmoments.audit.statistics import LearnedScores, learn_scores, noisy_grams, raw_statistics
from dpmoments.audit.trials import Trial, make_trials, stated_promise, worst_exact
from dpmoments.foundation.arrays import FloatArray
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.unit import PrivacyUnit, require_unit

__all__ = ["audit", "default_pairs"]


LEVEL = 0.999
"""Confidence of a reported bound."""
SCREENING = 4
"""All pairs get one part in so many of the pilot draws, and so many pairs get all of them."""
SCREENING_FAILURE = 0.2
"""Confidence that events are compared at on the few draws of a screening, so that few of the bounds are 0."""
DISTANT_LOG_RATIO = 2.0
"""About the largest log-ratio that some thousand draws show: pairs are so many rows apart that ε allows it."""
MOST_ROWS_APART = 100


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """The events that pilot draws chose, with what it takes to recognise them."""

    trial: Trial
    events: tuple[Event, ...]
    numbers: tuple[str, ...]
    scores: LearnedScores

    @property
    def promise(self) -> float:
        """The bound on ε that the pilot draws gave: biased upwards, for ranking alone."""
        return max(event.promise for event in self.events) / self.trial.pair.rows_apart

    def bound(self, size: int, failure: float, generator: np.random.Generator) -> tuple[float, Event]:
        """The bound on ε from fresh draws, and the event that gave it; the events share the probability of failure."""
        first, second = (
            _statistics(self.trial, sample, self.numbers, self.scores)[0] for sample in self.trial.run(size, generator)
        )
        bounds = []
        for event in self.events:
            hits, other_hits = event.count(first), event.count(second)
            if event.likelier_on_second:
                hits, other_hits = other_hits, hits
            share = failure / len(self.events)
            bounds.append(float(epsilon_lower_bound(hits, other_hits, size, self.trial.delta, share)))
        best = int(np.argmax(bounds))
        # ε for each of the rows by which the tables differ; more than one only where the promise is pure.
        return bounds[best] / self.trial.pair.rows_apart, self.events[best]


def audit(
    mechanism: Mechanism | str,
    budget: PrivacyBudget,
    neighbors: Neighbors | str,
    generator: np.random.Generator,
    *,
    n_features: int = 2,
    mean: bool = True,
    effort: AuditEffort | None = None,
    level: float = LEVEL,
    pairs: Sequence[NeighboringPair] | None = None,
    privacy_unit: PrivacyUnit | None = None,
) -> AuditResult:
    """Bound from below the ε that a mechanism really spends, by running it on neighbouring tables.

    Pilot draws on every pair train scores and choose, for each order of the pair, one statistic and up to four thresholds.
    The most promising pairs get fresh draws, and Clopper–Pearson bounds on the two probabilities of each chosen event give
    ε ≥ log((p − δ)/q), divided by the number of rows by which the pair differs. Beside it stands the exact loss on the worst
    pair, where the laws of the draws are known; and where a mechanism pays for one direction, the exact loss at the temperature
    that fresh draws show it to have. All that is tried on fresh draws shares the probability of failure (Bonferroni): the
    bounds hold together with the stated confidence.

    A bound above the stated ε refutes the mechanism or its code. One below it proves nothing: it says how much of the
    stated ε these attacks could show.

    Parameters
    ----------
    mechanism : Mechanism or str
    budget : PrivacyBudget
    neighbors : Neighbors or str
    generator : numpy.random.Generator
        With ``dpmoments.noise.secure_generator()`` integer noise comes from the sampler that releases use, at about a
        tenth of the speed; with any other generator from its stand-in for tests.
    n_features : int
        Of the default pairs.
    mean : bool
        Whether count and mean are released beside the second moment.
    effort : AuditEffort, optional
        Default: :class:`AuditEffort` (), less for mechanisms of several passes.
    level : float
        Confidence: the probability that the bounds hold, if everything else is as assumed.
    pairs : sequence of NeighboringPair, optional
        Default: :func:`neighboring_pairs`, and where the budget is pure :func:`distant_pairs`; with a privacy unit
        :func:`unit_pairs`.
    privacy_unit : PrivacyUnit, optional
        As for a release: the budget is then for people of many rows, and tables differ by one of them. A few keys, drawn
        beforehand, stand for all by which rows are chosen.

    Returns
    -------
    AuditResult

    Raises
    ------
    ValueError
        If the mechanism refuses the budget, the relation or the shape, or the privacy unit cannot serve.

    Examples
    --------
    >>> from dpmoments.noise import insecure_generator
    >>> found = audit("matrix-laplace", PrivacyBudget.pure(1.0), "add_remove", insecure_generator(0),
    ...               effort=AuditEffort(200, 1000))
    >>> found.lower_bound <= 1.0, round(found.exact, 9)
    (True, 1.0)
    """
    started = time.process_time()
    mechanism = make_mechanism(mechanism)
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level!r} is a probability, above 0 and below 1: use 0.999, say")
    if privacy_unit is not None:
        require_unit(privacy_unit, (), Neighbors.of(neighbors))
        pairs = unit_pairs(n_features, privacy_unit) if pairs is None else pairs
    if pairs is None:
        pairs = default_pairs(n_features, budget, neighbors)
    trials = make_trials(mechanism, budget, pairs, mean)
    if effort is None:
        effort = AuditEffort().for_passes(max(trial.passes(generator) for trial in trials))
    shortlist = _most_promising(
        (_candidate(trial, max(effort.pilot // SCREENING, 20), generator, SCREENING_FAILURE) for trial in trials),
        max(SCREENING, effort.finalists),
    )
    candidates = _most_promising(
        (_candidate(found.trial, effort.pilot, generator, SELECTION_FAILURE) for found in shortlist), effort.finalists
    )
    exact, exact_pair = worst_exact(trials)
    failure = 1.0 - level
    direction = None
    if (warmest := _most_sensitive_to_temperature(trials)) is not None:
        failure /= 2.0
        direction = _measured_direction(warmest, max(effort.final // 2, 20), failure, generator)
    bounds = [candidate.bound(effort.final, failure / len(candidates), generator) for candidate in candidates]
    best = int(np.argmax([bound for bound, _ in bounds]))
    found, (lower_bound, event) = candidates[best], bounds[best]
    return AuditResult(
        mechanism=mechanism.name,
        options=mechanism.options,
        neighbors=Neighbors.of(neighbors),
        cost=found.trial.cost,
        n_features=found.trial.pair.n_features,
        mean=mean,
        stated_epsilon=stated_promise(found.trial.cost)[0],
        delta=found.trial.delta,
        lower_bound=lower_bound,
        exact=exact,
        direction=direction,
        pair=found.trial.pair.name,
        event=str(event),
        exact_pair=exact_pair,
        draws=effort.final,
        level=level,
        seconds=time.process_time() - started,
        privacy_unit=found.trial.pair.privacy_unit,
    )


def default_pairs(n_features: int, budget: PrivacyBudget, neighbors: Neighbors | str) -> tuple[NeighboringPair, ...]:
    """Neighbours, and under a small pure ε pairs that are as many rows apart as make e^{kε} large enough to see.

    Examples
    --------
    >>> pairs = default_pairs(2, PrivacyBudget.pure(0.1), "add_remove")
    >>> {pair.rows_apart for pair in pairs}
    {1, 20}
    """
    pairs = neighboring_pairs(n_features, neighbors)
    if budget.kind is not BudgetKind.PURE:
        return pairs
    rows_apart = round(min(DISTANT_LOG_RATIO / budget.epsilon, MOST_ROWS_APART))
    return pairs if rows_apart < 2 else (*pairs, *distant_pairs(n_features, neighbors, rows_apart))


def _most_promising(candidates: Iterable[_Candidate], number: int) -> list[_Candidate]:
    return sorted(candidates, key=lambda candidate: candidate.promise, reverse=True)[:number]


def _most_sensitive_to_temperature(trials: Sequence[Trial]) -> Trial | None:
    """The neighbours between which a direction at twice its stated temperature would lose most; None where none is stated."""
    losses = [
        (_direction_epsilon(trial, 2.0 * stated), index)
        for index, trial in enumerate(trials)
        if trial.is_exact and (stated := stated_temperature(trial.plan)) is not None
    ]
    return trials[max(losses)[1]] if losses else None


def _measured_direction(trial: Trial, size: int, failure: float, generator: np.random.Generator) -> MeasuredDirection:
    """The exact loss of a trial at the temperature that fresh draws on both of its tables show, at least."""
    scores = [
        leading_scores(noisy_grams([record for record in sample if not record["failed"]], len(gram)), gram)
        for sample, gram in zip(trial.run(size, generator), trial.grams, strict=True)
    ]
    stated, at_least = stated_temperature(trial.plan), temperature_at_least(scores, trial.grams, failure)
    assert stated is not None
    return MeasuredDirection(trial.pair.name, stated, at_least, _direction_epsilon(trial, at_least))


def _direction_epsilon(trial: Trial, strength: float) -> float:
    tables = trial.first.moments(), trial.second.moments()
    epsilon = one_direction_epsilon(trial.plan, *tables, trial.delta, strength=strength)
    assert epsilon is not None, "a temperature is stated"
    return epsilon


def _statistics(
    trial: Trial, sample: Sequence[dict[str, float]], numbers: tuple[str, ...], scores: LearnedScores | None
) -> tuple[FloatArray, tuple[str, ...]]:
    statistics, names = raw_statistics(sample, numbers, *trial.grams)
    if scores is None:
        return statistics, names
    return np.column_stack([statistics, scores(statistics)]), (*names, *scores.names)


def _candidate(trial: Trial, size: int, generator: np.random.Generator, failure: float) -> _Candidate:
    """Learn scores from half of the pilot draws, and choose the event on the other half."""
    samples = trial.run(size, generator)
    half = size // 2
    numbers = names_in(*(sample[:half] for sample in samples))
    learning = [_statistics(trial, sample[:half], numbers, None)[0] for sample in samples]
    scores = learn_scores(learning[0], learning[1])
    (first, names), (second, _) = (_statistics(trial, sample[half:], numbers, scores) for sample in samples)
    events = [
        rarer
        for event in best_events(first, second, names, trial.delta, failure)
        for rarer in rarer_events(event, first, second)
    ]
    return _Candidate(trial, tuple(events), numbers, scores)
