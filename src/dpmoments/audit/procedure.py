"""Audit: choose an event on pilot draws, then bound ε from fresh ones."""

from __future__ import annotations

import contextlib
import math
import secrets
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import product
from typing import Any

import numpy as np

from dpmoments.analysis.answers import Answer, Column
from dpmoments.audit.events import (
    SELECTION_FAILURE,
    Event,
    LearnedScores,
    RepeatedRows,
    RepeatedUnits,
    best_events,
    epsilon_lower_bound,
    learn_scores,
    noisy_grams,
    rarer_events,
    raw_statistics,
    record_names,
    repeated_rows,
    repeated_units,
    run_repeatedly,
)
from dpmoments.audit.exact import (
    draw_rates_at_least,
    gram_of,
    leading_scores,
    loss_dimension,
    noise_epsilon,
    noise_rate_at_least,
    one_direction_epsilon,
    stated_temperature,
    temperature_at_least,
)
from dpmoments.audit.pairs import NeighboringPair, distant_pairs, neighboring_pairs, unit_pairs
from dpmoments.audit.replay import Recorder
from dpmoments.base.checks import check_probability
from dpmoments.base.errors import InputRuntimeError, InputValueError, shown
from dpmoments.base.values import FloatArray
from dpmoments.mechanisms import CoinPress, InverseGaussian, PrivatePreconditioning
from dpmoments.mechanisms.base import CalibratedPlan, Mechanism, Plan, UnitsPlan
from dpmoments.mechanisms.registry import MECHANISMS, make_mechanism
from dpmoments.mechanisms.shape import MomentShape, RunResult
from dpmoments.moments.models import NoiseModel
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget, PrivacyRequest
from dpmoments.privacy.curves import zcdp_epsilon
from dpmoments.privacy.sampling import insecure_generator, secure_generator
from dpmoments.privacy.unit import Neighbors, PrivacyUnit, require_unit
from dpmoments.schema.schema import Schema

_TOLERANCE = 1e-6
"""Relative excess of an exact loss over ε that lattice rounding and sums here may cause."""


@dataclass(frozen=True, slots=True)
class AuditEffort:
    """Number of draws of an audit."""

    pilot: int = 500  # runs on each table of the promising pairs, half to learn scores and half to choose events
    # fresh runs on each table of each finalist, the only ones in the reported bound; half as many more if a parameter
    # of the noise is measured
    final: int = 6000
    finalists: int = 1  # pairs with final draws; they share the failure probability

    def __post_init__(self) -> None:
        if self.pilot < 20 or self.final < 20 or self.finalists < 1:
            raise InputValueError(
                f"pilot={self.pilot}, final={self.final}, finalists={self.finalists}: an audit needs at least 20 "
                "pilot and 20 final draws, and one finalist"
            )

    @classmethod
    def of_draws(cls, draws: int) -> AuditEffort:
        """Make the effort with this many final draws and a tenth as pilot draws."""
        return cls(pilot=max(20, draws // 10), final=draws)

    def for_passes(self, passes: int) -> AuditEffort:
        """Reduce the effort for mechanisms with several passes per run."""
        share = max(1, min(passes * 2, 20))
        return AuditEffort(max(self.pilot // share, 20), max(self.final // share, 20), self.finalists)


@dataclass(frozen=True, slots=True)
class MeasuredLaw:
    """Parameter of the distribution of the draws, measured from fresh runs."""

    # `"noise rate"`: one over the scale of additive noise, in units of the stated one; `"temperature"` of the first
    # direction, for mechanisms that pay for one; or the rate of the draw of a query, for runs of several
    parameter: str
    # the pair it was measured on: that with the largest exact loss, or on which a direction that is too hot loses most
    pair: str
    # with `at_least`: the parameter that the plan states, and the lower confidence bound on that of the draws
    stated: float
    at_least: float
    # exact loss on that pair at the lower bound, all other draws as stated (for runs of several draws: the stated ε
    # times the rate, a comparison). It assumes the stated family of
    # distributions; if it exceeds the stated ε, the draws are not what the mechanism states, whatever their
    # distribution.
    epsilon: float


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Result of an audit of one mechanism.

    Attributes
    ----------
    mechanism : str
    options : dict
    neighbors : Neighbors
    cost : PrivacyBudget
        The stated privacy loss of a run.
    n_features : int
    mean : bool
    stated_epsilon, delta : float
        The compared promise: for a zCDP cost, the ε it implies at ``delta``.
    lower_bound : float
        Lower bound on ε at the stated confidence level, if ``run`` drew its noise as implemented.
    exact : float or None
        Exact loss on the worst pair under the stated noise distributions; None if no closed form is known.
    measured : MeasuredLaw or None
        Exact loss at a measured parameter of what was drawn: the scale of additive noise, or the temperature of a direction.
    pair, event : str
        Pair and event of the lower bound.
    exact_pair : str
        Pair with the largest exact loss.
    draws : int
        Final draws on each table.
    level : float
        Joint confidence level of ``lower_bound`` and ``measured``.
    seconds : float
        Processor time.
    privacy_unit : PrivacyUnit or None
        The privacy unit, if it is not one row.
    """

    mechanism: str
    options: dict[str, object]
    neighbors: Neighbors
    cost: PrivacyBudget
    n_features: int
    mean: bool
    stated_epsilon: float
    delta: float
    lower_bound: float
    exact: float | None
    measured: MeasuredLaw | None
    pair: str
    event: str
    exact_pair: str
    draws: int
    level: float
    seconds: float
    privacy_unit: PrivacyUnit | None = None

    @property
    def exceeded(self) -> bool:
        """True if the mechanism was shown to spend more than it states, or draws otherwise."""
        if self.measured is not None and self.measured.at_least > self.measured.stated * (1.0 + _TOLERANCE):
            return True
        exact = max(
            -math.inf if self.exact is None else self.exact,
            -math.inf if self.measured is None else self.measured.epsilon,
        )
        return self.lower_bound > self.stated_epsilon or exact > self.stated_epsilon * (1.0 + _TOLERANCE)

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes by name, and whether the stated ε is exceeded."""
        return asdict(self) | {"cost": self.cost.to_dict(), "exceeded": self.exceeded}


# A plan on the two tables of a pair: what an audit runs, and what it compares with.

_ZCDP_DELTA = 0.01
"""Large δ at which ρ-zCDP is audited, so that its events are seen."""


@dataclass(frozen=True, slots=True, eq=False)
class Trial:
    """Plan on the two tables of a pair, compared with a cost at a δ.

    ``run_plan`` is run; ``plan`` has known noise distributions (for units, it is the plan for the counted rows).
    """

    pair: NeighboringPair
    plan: Plan
    run_plan: CalibratedPlan[RunResult]
    first: RepeatedRows
    second: RepeatedRows
    cost: PrivacyBudget
    delta: float

    @property
    def grams(self) -> tuple[FloatArray, FloatArray]:
        """Exact Gram matrices, each of shape (d, d)."""
        return gram_of(self.first.moments()), gram_of(self.second.moments())

    @property
    def is_exact(self) -> bool:
        """True if the tables are neighbors and their counted rows do not depend on the selection."""
        alike = (rows.selected_alike for rows in (self.first, self.second) if isinstance(rows, RepeatedUnits))
        return self.pair.rows_apart == 1 and all(alike)

    def passes(self, generator: np.random.Generator) -> int:
        """Count the passes of one run over the rows."""
        before = self.second.passes[0]
        run_repeatedly(self.run_plan, self.second, 1, generator)
        return self.second.passes[0] - before

    def run(self, size: int, generator: np.random.Generator) -> tuple[list[dict[str, float]], list[dict[str, float]]]:
        first, first_failure = run_repeatedly(self.run_plan, self.first, size, generator)
        second, second_failure = run_repeatedly(self.run_plan, self.second, size, generator)
        if first_failure is not None and second_failure is not None:
            raise InputRuntimeError(f"every run failed on both tables of {shown(self.pair.name)}") from first_failure
        return first, second


def make_trials(
    mechanism: Mechanism, budget: PrivacyBudget, pairs: Sequence[NeighboringPair], mean: bool
) -> list[Trial]:
    """Make a plan for every pair whose number of rows the mechanism accepts."""
    plans: dict[tuple[MomentShape, PrivacyUnit | None], Plan | ValueError] = {}
    planned = []
    for pair in pairs:
        n_rows = len(pair.first) if pair.neighbors.table_size_is_public else None
        asked = MomentShape.of(pair.schema, mean=mean, n_rows=n_rows), pair.privacy_unit
        planned.append(asked)
        if asked not in plans:
            try:
                plans[asked] = mechanism.plan_for(asked[0], PrivacyRequest(budget, pair.neighbors, pair.privacy_unit))
            except ValueError as refusal:
                plans[asked] = refusal
    runs = {
        asked: plan if asked[1] is None else UnitsPlan.of(plan, budget, asked[1])
        for asked, plan in plans.items()
        if isinstance(plan, Plan)
    }
    costs = {plan.cost for plan in runs.values()}
    cost = costs.pop() if len(costs) == 1 else budget
    trials = []
    for pair, asked in zip(pairs, planned, strict=True):
        if not isinstance(plan := plans[asked], Plan):
            continue
        if pair.privacy_unit is None:
            tables = [repeated_rows(table, pair.neighbors, pair.schema) for table in (pair.first, pair.second)]
        else:
            of_units = (pair.first, pair.first_units), (pair.second, pair.second_units)
            tables = [repeated_units(*table, pair.privacy_unit, pair.schema) for table in of_units]
        trials.append(Trial(pair, plan, runs[asked], tables[0], tables[1], cost, _stated_promise(cost)[1]))
    if trials:
        return trials
    if refusals := [plan for plan in plans.values() if isinstance(plan, ValueError)]:
        raise refusals[0]
    raise InputValueError("no pair of tables to audit")


def _stated_promise(cost: PrivacyBudget) -> tuple[float, float]:
    """Return (ε, δ) as a cost states or implies it."""
    if cost.kind is BudgetKind.ZCDP:
        return zcdp_epsilon(cost.rho, _ZCDP_DELTA), _ZCDP_DELTA
    return cost.epsilon, cost.delta


def _worst_exact(trials: Sequence[Trial]) -> tuple[float, Trial] | None:
    """Return the largest known exact loss over pairs of neighbors, and its trial."""
    worst: tuple[float, Trial] | None = None
    for trial in (trial for trial in trials if trial.is_exact):
        tables, model = (trial.first.moments(), trial.second.moments()), trial.plan.model
        if model is None:
            loss = one_direction_epsilon(trial.plan, *tables, trial.delta)
        else:
            loss = noise_epsilon(model, *tables, trial.delta)
        if loss is not None and (worst is None or loss > worst[0]):
            worst = loss, trial
    return worst


LEVEL = 0.999
"""Default confidence level of a reported bound."""
_SCREENING = 4
"""Fraction 1/4 of the pilot draws that all pairs get, and number of pairs that get all."""
_SCREENING_FAILURE = 0.2
"""Failure probability in screening, large so that few bounds are 0."""
_DISTANT_LOG_RATIO = 2.0
"""Largest log-ratio that some thousand draws show; it sets the rows apart."""
_MAX_ROWS_APART = 100


@dataclass(frozen=True, slots=True, eq=False)
class _Candidate:
    """Events chosen on pilot draws, with the scores to recognize them."""

    trial: Trial
    events: tuple[Event, ...]
    numbers: tuple[str, ...]
    scores: LearnedScores

    @property
    def promise(self) -> float:
        """Bound on ε from the pilot draws: biased upwards, only for ranking."""
        return max(event.promise for event in self.events) / self.trial.pair.rows_apart

    def bound(self, size: int, failure: float, generator: np.random.Generator) -> tuple[float, Event]:
        """Return the bound on ε from fresh draws, and its event (failure shared by all events)."""
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
    """Bound from below the ε that a mechanism spends, by running it on neighboring tables.

    Pilot draws on every pair train scores and choose, for each order of the pair, one statistic and up to four
    thresholds. The most promising pairs get fresh draws, and Clopper–Pearson bounds on the two probabilities of each
    chosen event give ε ≥ log((p − δ)/q), divided by the number of rows by which the pair differs. The result also has
    the exact loss on the worst pair, if noise distributions are known, and the exact loss at a parameter measured from
    what fresh runs drew: the scale of additive noise, or the temperature of a mechanism that pays for one direction.
    All tests on fresh draws share the failure probability (Bonferroni), so that the bounds hold jointly at the stated
    confidence level.

    A bound above the stated ε refutes the mechanism or its code. A bound below it proves nothing: it is the part of the
    stated ε that these attacks could show.

    Parameters
    ----------
    mechanism : Mechanism or str
    budget : PrivacyBudget
    neighbors : Neighbors or str
    generator : numpy.random.Generator
        With ``dpmoments.noise.secure_generator()`` integer noise comes from the sampler that releases use, at about a
        tenth of the speed; with any other generator from its substitute for tests.
    n_features : int
        Number of features of the default pairs.
    mean : bool
        Release count and mean with the second moment.
    effort : AuditEffort, optional
        Default: :class:`AuditEffort` (), less for mechanisms of several passes.
    level : float
        Joint confidence level of the bounds.
    pairs : sequence of NeighboringPair, optional
        Default: :func:`neighboring_pairs`, and for a pure budget :func:`distant_pairs`; with a privacy unit
        :func:`unit_pairs`.
    privacy_unit : PrivacyUnit, optional
        As for a release: the budget is then for units of many rows, and tables differ by one unit. A few selection
        keys, drawn beforehand, are used in place of all.

    Returns
    -------
    AuditResult

    Raises
    ------
    ValueError
        If the mechanism refuses the budget, the relation, the shape, or the privacy unit.

    Examples
    --------
    >>> from dpmoments.noise import insecure_generator
    >>> measured = audit("matrix-laplace", PrivacyBudget.pure(1.0), "add_remove", insecure_generator(0),
    ...               effort=AuditEffort(50, 250))
    >>> measured.lower_bound <= 1.0, round(measured.exact, 9)
    (True, 1.0)
    """
    started = time.process_time()
    mechanism = make_mechanism(mechanism)
    check_probability("level", level)
    if privacy_unit is not None:
        require_unit(privacy_unit, Schema.unit_ball(n_features), Neighbors.of(neighbors))
        pairs = unit_pairs(n_features, privacy_unit) if pairs is None else pairs
    if pairs is None:
        pairs = _default_pairs(n_features, budget, neighbors)
    trials = make_trials(mechanism, budget, pairs, mean)
    if effort is None:
        effort = AuditEffort().for_passes(max(trial.passes(generator) for trial in trials))
    shortlist = _most_promising(
        (_candidate(trial, max(effort.pilot // _SCREENING, 20), generator, _SCREENING_FAILURE) for trial in trials),
        max(_SCREENING, effort.finalists),
    )
    candidates = _most_promising(
        (_candidate(result.trial, effort.pilot, generator, SELECTION_FAILURE) for result in shortlist), effort.finalists
    )
    exact, worst = _worst_exact(trials) or (None, None)
    failure = 1.0 - level
    measured = None
    if worst is not None and (model := worst.plan.model) is not None and loss_dimension(model) is not None:
        failure /= 2.0
        measured = _measured_noise(worst, model, max(effort.final // 2, 20), failure, generator)
    elif warmed := [trial for trial in trials if trial.is_exact and stated_temperature(trial.plan) is not None]:
        failure /= 2.0
        losses = [_direction_epsilon(trial, 2.0 * (stated_temperature(trial.plan) or 0.0)) for trial in warmed]
        _, warmest = max((loss, index) for index, loss in enumerate(losses))
        measured = _measured_direction(warmed[warmest], max(effort.final // 2, 20), failure, generator)
    elif (model := trials[0].plan.model) is None or loss_dimension(model) is None:
        failure /= 2.0
        measured = _measured_draws(trials[0], min(effort.final, _MEASURED_RUNS), failure, generator)
    bounds = [candidate.bound(effort.final, failure / len(candidates), generator) for candidate in candidates]
    best = int(np.argmax([bound for bound, _ in bounds]))
    result, (lower_bound, event) = candidates[best], bounds[best]
    return AuditResult(
        mechanism=mechanism.name,
        options=mechanism.options,
        neighbors=Neighbors.of(neighbors),
        cost=result.trial.cost,
        n_features=result.trial.pair.n_features,
        mean=mean,
        stated_epsilon=_stated_promise(result.trial.cost)[0],
        delta=result.trial.delta,
        lower_bound=lower_bound,
        exact=exact,
        measured=measured,
        pair=result.trial.pair.name,
        event=str(event),
        exact_pair="" if worst is None else worst.pair.name,
        draws=effort.final,
        level=level,
        seconds=time.process_time() - started,
        privacy_unit=result.trial.pair.privacy_unit,
    )


def _default_pairs(n_features: int, budget: PrivacyBudget, neighbors: Neighbors | str) -> tuple[NeighboringPair, ...]:
    """Return neighbors, and for a small pure ε pairs far enough apart that e^{kε} is visible."""
    pairs = neighboring_pairs(n_features, neighbors)
    if budget.kind is not BudgetKind.PURE:
        return pairs
    rows_apart = round(min(_DISTANT_LOG_RATIO / budget.epsilon, _MAX_ROWS_APART))
    return pairs if rows_apart < 2 else (*pairs, *distant_pairs(n_features, neighbors, rows_apart))


def _most_promising(candidates: Iterable[_Candidate], number: int) -> list[_Candidate]:
    return sorted(candidates, key=lambda candidate: candidate.promise, reverse=True)[:number]


def _measured_noise(
    trial: Trial, model: NoiseModel, size: int, failure: float, generator: np.random.Generator
) -> MeasuredLaw:
    """Return the exact loss at a lower bound on the rate of fresh noise on both tables."""
    tables = trial.first.moments(), trial.second.moments()
    d = trial.pair.n_features
    samples = []
    for exact, sample in zip(tables, trial.run(size, generator), strict=True):
        ended = [record for record in sample if not record["failed"]]
        sums = [
            np.array([record[f"sum[{index}]"] for index in range(d)]) if "sum[0]" in record else None
            for record in ended
        ]
        counts = [record.get("count", float(exact.count)) for record in ended]
        samples.append((exact, list(zip(noisy_grams(ended, d), sums, counts, strict=True))))
    at_least = noise_rate_at_least(model, samples, failure)
    assert at_least is not None, "a loss dimension comes with a closed form"
    epsilon = noise_epsilon(model, *tables, trial.delta, rate=at_least)
    assert epsilon is not None, "a loss dimension comes with a closed form"
    return MeasuredLaw("noise rate", trial.pair.name, 1.0, at_least, epsilon)


_MEASURED_RUNS = 60
"""Fresh runs whose draws are measured one by one, if a run has no closed form."""


def _measured_draws(trial: Trial, size: int, failure: float, generator: np.random.Generator) -> MeasuredLaw | None:
    """Return the largest lower bound on a rate over all queries; None without rates."""
    exchanges = []
    for _ in range(size):
        recorder = Recorder(trial.run_plan, generator)
        with warnings.catch_warnings(), contextlib.suppress(ArithmeticError, ValueError):
            warnings.simplefilter("ignore")
            trial.run_plan.run(trial.second, recorder)
        exchanges += [(one.made, one.query, one.answer) for one in recorder.exchanges]
    rates = draw_rates_at_least(exchanges, failure)
    if not rates:
        return None
    key = max(rates, key=rates.__getitem__)
    return MeasuredLaw(f"rate of {key}", trial.pair.name, 1.0, rates[key], rates[key] * _stated_promise(trial.cost)[0])


def _measured_direction(trial: Trial, size: int, failure: float, generator: np.random.Generator) -> MeasuredLaw:
    """Return the exact loss at a lower bound on the temperature."""
    # From fresh draws on both tables.
    scores = [
        leading_scores(noisy_grams([record for record in sample if not record["failed"]], len(gram)), gram)
        for sample, gram in zip(trial.run(size, generator), trial.grams, strict=True)
    ]
    stated, at_least = stated_temperature(trial.plan), temperature_at_least(scores, trial.grams, failure)
    assert stated is not None
    return MeasuredLaw("temperature", trial.pair.name, stated, at_least, _direction_epsilon(trial, at_least))


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
    """Fit scores to half of the pilot draws, and choose the event on the other half."""
    samples = trial.run(size, generator)
    half = size // 2
    numbers = record_names(*(sample[:half] for sample in samples))
    learning = [_statistics(trial, sample[:half], numbers, None)[0] for sample in samples]
    scores = learn_scores(learning[0], learning[1])
    (first, names), (second, _) = (_statistics(trial, sample[half:], numbers, scores) for sample in samples)
    events = [
        rarer
        for event in best_events(first, second, names, trial.delta, failure)
        for rarer in rarer_events(event, first, second)
    ]
    return _Candidate(trial, tuple(events), numbers, scores)


# Table of audits: every mechanism in everything it supports, with options and effort.

DEFAULT_BUDGETS = (PrivacyBudget.pure(1.0), PrivacyBudget.approximate(1.0, 0.01), PrivacyBudget.zcdp(0.5))
"""One budget of each kind; δ is large, so that its events are seen in ten thousand draws."""
_CHOSEN: Mapping[str, Mechanism] = {
    # Few steps, so that some thousand runs can be afforded.
    "coinpress": CoinPress(eigenvalue_bounds=(0.1, 1.0), steps=2),
    "private-preconditioning": PrivatePreconditioning(eigenvalue_bounds=(0.1, 1.0)),
    # It refuses without a bound. This one is the smallest eigenvalue of the tables that have many rows on every axis.
    "inverse-gaussian": InverseGaussian(smallest_eigenvalue=30.0),
}
"""Options for mechanisms whose defaults are slow or refuse."""
_ALWAYS_WITH_MEAN = ("auto", "standardized")
"""Mechanisms audited only with count and mean.

``standardized`` always releases them; ``auto`` runs one of the others, which are also audited without.
"""
_SLOW = ("iterative-eigenvectors", "kapralov-talwar", "log-scale-histogram")
"""Mechanisms with slow runs."""
_SLOW_EFFORT = AuditEffort(pilot=300, final=2500)
"""Default effort for slow mechanisms."""
_TYPICAL_ROWS = 100
"""Public number of rows for which a mechanism must have a plan under ``replace_one``."""


@dataclass(frozen=True, slots=True)
class AuditSetting:
    """One row of the table of audits."""

    mechanism: Mechanism
    budget: PrivacyBudget
    neighbors: Neighbors
    mean: bool
    privacy_unit: PrivacyUnit | None = None

    def run(
        self,
        generator: np.random.Generator,
        *,
        n_features: int = 2,
        effort: AuditEffort | None = None,
        level: float = LEVEL,
    ) -> AuditResult:
        """Audit this setting, with fewer features or less effort if the mechanism needs it."""
        if effort is None and self.mechanism.name in _SLOW:
            effort = _SLOW_EFFORT
        return audit(
            self.mechanism,
            self.budget,
            self.neighbors,
            generator,
            mean=self.mean,
            n_features=min(n_features, self.mechanism.most_features or n_features),
            effort=effort,
            level=level,
            privacy_unit=self.privacy_unit,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Audits(Answer):
    """Results of audits as one table, with the mechanisms that could not be audited."""

    results: tuple[AuditResult, ...]
    refusals: Mapping[str, str]

    def _columns(self) -> list[Column]:
        rows = map(_row, self.results)
        return [Column(name, values, name) for name, values in zip(_HEADS, zip(*rows, strict=True), strict=True)]

    @property
    def remarks(self) -> tuple[str, ...]:
        return (
            *(f"not {name}: {refusal}" for name, refusal in self.refusals.items()),
            "'ε at least' is a lower bound, with 99.9 % confidence; 'exact ε' follows from the stated noise distributions on "
            "the worst pair, 'measured ε' with the scale of noise, or the temperature of directions, that fresh runs show at "
            "least (included in the 99.9 %). The pairs are in JSON.",
        )

    def to_dict(self) -> dict[str, Any]:
        return {"audits": [result.to_dict() for result in self.results], "refused": dict(self.refusals)}


_HEADS = ("mechanism", "neighbors", "mean", "budget", "at δ", "stated ε", "ε at least", "exact ε", "measured ε")


def _row(result: AuditResult) -> tuple[str, ...]:
    """Return the cells of an audit under ``_HEADS``."""
    options = ", ".join(f"{key}={value}" for key, value in result.options.items())
    measured = None if result.measured is None else result.measured.epsilon
    return (
        f"{result.mechanism} ({options})" if options else result.mechanism,
        str(result.neighbors),
        "yes" if result.mean else "no",
        str(result.cost),
        f"{result.delta:g}",
        f"{result.stated_epsilon:.3f}",
        f"{'EXCEEDED ' if result.exceeded else ''}{result.lower_bound:.3f}",
        *("–" if value is None else f"{value:.3f}" for value in (result.exact, measured)),
    )


def configuration(mechanism: Mechanism | str) -> Mechanism:
    """Return the mechanism with the options that it is audited with by default."""
    made = make_mechanism(mechanism)
    return _CHOSEN.get(made.name, made)


def audit_plan(
    mechanisms: Iterable[Mechanism] | None = None,
    *,
    budgets: Sequence[PrivacyBudget] = DEFAULT_BUDGETS,
    neighbors: Sequence[Neighbors] = tuple(Neighbors),
    n_features: int = 2,
    privacy_unit: PrivacyUnit | None = None,
) -> tuple[list[AuditSetting], dict[str, str]]:
    """List every setting of several mechanisms, and the reasons of those that support none."""
    # Default: all mechanisms of the registry.
    settings, refusals = list[AuditSetting](), dict[str, ValueError]()
    for mechanism in map(configuration, MECHANISMS) if mechanisms is None else mechanisms:
        supported, refusal = list[AuditSetting](), _unsupported(mechanism.name)
        means = (True,) if mechanism.name in _ALWAYS_WITH_MEAN else (True, False)
        features = min(n_features, mechanism.most_features or n_features)
        for budget, relation, mean in product(budgets, neighbors, means):
            if budget.kind not in mechanism.budget_kinds or relation not in mechanism.supported_neighbors:
                continue
            if privacy_unit is not None and relation is not Neighbors.ADD_REMOVE:
                continue
            n_rows = _TYPICAL_ROWS if relation.table_size_is_public else None
            try:
                shape = MomentShape(features, n_rows=n_rows, mean=mean)
                mechanism.plan_for(shape, PrivacyRequest(budget, relation, privacy_unit))
            except ValueError as error:
                refusal = error
            else:
                supported.append(AuditSetting(mechanism, budget, relation, mean, privacy_unit))
        settings += supported
        if not supported:
            refusals[mechanism.name] = refusal
    if not settings:
        raise next(iter(refusals.values())) if len(refusals) == 1 else _unsupported(*refusals)
    return settings, {name: str(refusal) for name, refusal in refusals.items()}


def _unsupported(*names: str) -> ValueError:
    return InputValueError(f"nothing to audit: no budget and relation given here is supported by {', '.join(names)}")


def audit_generator(index: int, *, seed: int | None = None, exact_noise: bool = False) -> np.random.Generator:
    """Return the random generator of the setting with this index."""
    # `exact_noise` uses the sampler of releases, about ten times slower; otherwise a fast substitute is seeded, with
    # the secret randomness of the operating system if `seed` is None.
    if exact_noise:
        if seed is not None:
            raise InputValueError(
                f"seed={seed}: exact noise comes from the operating system and has no seed; leave one out"
            )
        return secure_generator()
    return insecure_generator(secrets.randbits(64) if seed is None else seed + index)
