"""An audit: search for a telling event on pilot draws, then bound ε from fresh ones."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.array_types import FloatArray
from dpmoments.audit.bounds import epsilon_lower_bound
from dpmoments.audit.events import Event, best_events, rarer_events
from dpmoments.audit.outcomes import names_in
from dpmoments.audit.pairs import NeighboringPair, neighboring_pairs
from dpmoments.audit.results import AuditEffort, AuditResult
from dpmoments.audit.statistics import LearnedScores, learn_scores, raw_statistics
from dpmoments.audit.trials import Trial, make_trials, stated_promise, worst_exact
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.neighbors import Neighbors

__all__ = ["audit"]


LEVEL = 0.999
"""Confidence of a reported bound."""


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """The events that pilot draws chose, with what it takes to recognise them."""

    trial: Trial
    events: tuple[Event, ...]
    numbers: tuple[str, ...]
    scores: LearnedScores

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
        return bounds[best], self.events[best]


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
) -> AuditResult:
    """Bound from below the ε that a mechanism really spends, by running it on neighbouring tables.

    Pilot draws on every pair train scores and choose, for each order of the pair, one statistic and up to four thresholds.
    The most promising pairs get fresh draws, and Clopper–Pearson bounds on the two probabilities of each chosen event give
    ε ≥ log((p − δ)/q); all of them share the probability of failure equally. Beside it stands the exact loss on the worst
    pair, where the law of the noise is known.

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
        Confidence: the probability that the bound holds, if everything else is as assumed.
    pairs : sequence of NeighboringPair, optional
        Default: :func:`neighboring_pairs`.

    Returns
    -------
    AuditResult

    Raises
    ------
    ValueError
        If the mechanism refuses the budget, the relation or the shape.

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
    if pairs is None:
        pairs = neighboring_pairs(n_features, neighbors)
    trials = make_trials(mechanism, budget, pairs, mean)
    if effort is None:
        effort = AuditEffort().for_passes(max(trial.passes(generator) for trial in trials))
    candidates = sorted(
        (_candidate(trial, effort.pilot, generator) for trial in trials),
        key=lambda candidate: max(event.promise for event in candidate.events),
        reverse=True,
    )[: effort.finalists]
    failure = (1.0 - level) / len(candidates)
    bounds = [candidate.bound(effort.final, failure, generator) for candidate in candidates]
    best = int(np.argmax([bound for bound, _ in bounds]))
    found, (lower_bound, event) = candidates[best], bounds[best]
    exact, exact_pair = worst_exact(trials)
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
        pair=found.trial.pair.name,
        event=str(event),
        exact_pair=exact_pair,
        draws=effort.final,
        level=level,
        seconds=time.process_time() - started,
    )


def _statistics(
    trial: Trial, sample: Sequence[dict[str, float]], numbers: tuple[str, ...], scores: LearnedScores | None
) -> tuple[FloatArray, tuple[str, ...]]:
    statistics, names = raw_statistics(sample, numbers, *trial.grams)
    if scores is None:
        return statistics, names
    return np.column_stack([statistics, scores(statistics)]), (*names, *scores.names)


def _candidate(trial: Trial, size: int, generator: np.random.Generator) -> _Candidate:
    """Learn scores from half of the pilot draws, and choose the event on the other half."""
    samples = trial.run(size, generator)
    half = size // 2
    numbers = names_in(*(sample[:half] for sample in samples))
    learning = [_statistics(trial, sample[:half], numbers, None)[0] for sample in samples]
    scores = learn_scores(learning[0], learning[1])
    (first, names), (second, _) = (_statistics(trial, sample[half:], numbers, scores) for sample in samples)
    events = [
        rarer
        for event in best_events(first, second, names, trial.delta)
        for rarer in rarer_events(event, first, second)
    ]
    return _Candidate(trial, tuple(events), numbers, scores)
