"""CoinPress: covariance (and mean) from weak prior bounds, by shrinking ellipsoids."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from dpmoments.base.errors import InputValueError, out_of_range
from dpmoments.base.message import Message
from dpmoments.base.values import BoolArray, FloatArray
from dpmoments.mechanisms.base import GAUSSIAN_LOSS_UNITS, Mechanism
from dpmoments.mechanisms.shape import MomentShape, RunResult, positive_definite
from dpmoments.papers.mechanisms.coinpress_schedule import (
    STAND_IN_ROWS,
    ClipSquares,
    CoinPressOptions,
    Schedule,
    checked_eigenvalue_bounds,
    moment_clip_square,
    spread_schedule,
)
from dpmoments.papers.mechanisms.mapped_rows import (
    MappedRows,
    NoisyStep,
    RecursivePlan,
    StepNoise,
    count_first,
    require_workable_budget,
    tail_edges,
)
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

# State after each step: an ellipsoid that holds nearly all rows.

# Evidence of earlier steps for later ones: rows that a clip reduced were once seen.

_SURE = 2.0
"""Noise SDs above the noise's spectral edge at which a variance counts as seen."""
_VISIBLE = 0.75
"""Part of the noise's spectral edge above which a direction seen so on average stays."""
_STEPS_BEFORE = 2
"""Number of steps remembered."""
_RESOLVED = 0.5
"""Measured variance above which a direction cannot have lost most of its rows."""


def _upper(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return a matrix ⪰ both."""
    # ``first`` plus the positive part of ``second − first``, if that is not 0.
    eigenvalues, eigenvectors = np.linalg.eigh(second - first)
    if eigenvalues[-1] <= 0.0:
        return first
    above = eigenvectors[:, eigenvalues > 0.0] * np.sqrt(eigenvalues[eigenvalues > 0.0])
    return np.asarray(first + above @ above.T)


@dataclass(frozen=True, slots=True, eq=False)
class Observation:
    """Measurement of one step, in the coordinates of the present one."""

    covariance: FloatArray  # (d, d), noisy; at most Cov(w) up to its noise
    noise: FloatArray  # (d, d), vᵀ·noise·v is the standard deviation of vᵀ·covariance·v

    @property
    def bound(self) -> FloatArray:
        """Lower bound on Cov(w)."""
        return np.asarray(self.covariance - (math.sqrt(2.0 * len(self.covariance)) + _SURE) * self.noise)

    def moved(self, step: FloatArray) -> Observation:
        """Return the observation after w ← step·w."""
        return Observation(step @ self.covariance @ step.T, step @ self.noise @ step.T)


@dataclass(frozen=True, slots=True, eq=False)
class Evidence:
    """Observations of earlier steps, the last one first."""

    observations: tuple[Observation, ...] = ()

    def raised(self, covariance: FloatArray) -> FloatArray:
        """Return the covariance, raised to what the last step saw."""
        return _upper(covariance, self.observations[0].bound) if self.observations else covariance

    def resolved(self, directions: FloatArray) -> BoolArray:
        """Mark ``directions`` in which the two last steps saw variance above their noise."""
        # One value for each column, shape (k,).
        if len(self.observations) < _STEPS_BEFORE:
            return np.full(directions.shape[1], False)
        least = _VISIBLE * math.sqrt(2.0 * len(directions))
        seen = [_forms(directions, one.covariance) / _forms(directions, one.noise) for one in self.observations]
        return np.asarray(np.mean(seen, axis=0) > least)

    def held(self, now: Observation) -> FloatArray:
        """Return a positive semi-definite lower limit for the covariance."""
        # It is 0 if no row was clipped.
        if not self.observations:
            return np.zeros_like(now.covariance)
        before, edge = self.observations[0], math.sqrt(2.0 * len(now.covariance))
        excess, vectors = np.linalg.eigh(before.bound - now.covariance - edge * now.noise)
        lost = vectors[:, excess > 0.0]
        # Variance ps² of rows at distance s, now measured as λ = pγ²: at the scale √(ps²/λ) they fit into the clip.
        measured = np.maximum(_forms(lost, now.covariance), 0.5 * edge * _forms(lost, now.noise))
        return np.asarray((lost * (_forms(lost, before.covariance) / measured)) @ lost.T)

    def moved(self, step: FloatArray, now: Observation) -> Evidence:
        """Add the present step's observation, after w ← step·w."""
        return Evidence(tuple(one.moved(step) for one in (now, *self.observations)[:_STEPS_BEFORE]))


def _forms(vectors: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return vᵀ·matrix·v for every column v."""
    return np.asarray(np.einsum("ij,ij->j", vectors, matrix @ vectors))


def spectral_edge(n_features: int) -> float:
    """Return √(2d) (1 if d = 1), the largest eigenvalue for large d of normal noise."""
    # Its SDs are 1 and, off the diagonal, 1/√2.
    return math.sqrt(2.0 * n_features) if n_features > 1 else 1.0


@dataclass(frozen=True, slots=True)
class StepRules:
    """Parameters of a run, from public numbers or a noisy count."""

    n_rows: float
    radius: float  # with `last_radius`: clipping radius of the steps before the last, and of the last
    last_radius: float
    schedule: Schedule

    @classmethod
    def of(cls, n_rows: float, clips: ClipSquares, schedule: Schedule) -> StepRules:
        """Return the rules of a schedule that was planned with these clips."""
        return cls(n_rows, math.sqrt(clips.early), math.sqrt(clips.last), schedule)


@dataclass(frozen=True, slots=True, eq=False)
class Ellipsoid:
    """Map w = linear·(x − center) of rows x; if the bounds hold, E[w wᵀ] ⪯ I."""

    center: FloatArray  # (d,)
    linear: FloatArray  # (d, d), invertible; not symmetric from the second step on
    evidence: Evidence  # measurements of earlier steps
    # (d, d), positive semi-definite: directions are enlarged no further than if Cov(w) ⪰ held, since their rows would
    # be clipped
    held: FloatArray
    # (d,), coordinates of w that were enlarged much since they were last measured, or had then lost rows to the clip;
    # None if all did
    unchecked: BoolArray

    @classmethod
    def first(
        cls, n_features: int, anchor: FloatArray | None, largest: float, held: FloatArray | None = None
    ) -> Ellipsoid:
        """Return the ellipsoid of the bounds: E[x xᵀ] ⪯ largest·anchor."""
        # `held` is in the units of x.
        if anchor is None:
            root = np.eye(n_features)
        else:
            eigenvalues, eigenvectors = np.linalg.eigh(anchor)
            root = (eigenvectors / np.sqrt(eigenvalues)) @ eigenvectors.T
        linear = root / math.sqrt(largest)
        return cls(
            np.zeros(n_features),
            linear,
            Evidence(),
            np.zeros_like(linear) if held is None else linear @ held @ linear.T,
            np.full(n_features, False),
        )

    def estimate(self, release: NoisyStep, n_rows: float) -> tuple[FloatArray, FloatArray]:
        """Return the noisy covariance of w, and the noisy mean as the next center."""
        # Noise of variance s² on the entries of the estimated mean m̂ makes E[m̂ m̂ᵀ] too large by s²I. Subtracting m̂
        # m̂ᵀ from the second moment therefore takes off s²I too much, which is added back.
        second_moment = release.gram / n_rows
        if release.sum is None:
            return second_moment, self.center
        mean = release.sum / n_rows
        excess = (release.sum_scale / n_rows) ** 2 * np.eye(len(mean))
        center = self.center + np.linalg.solve(self.linear, mean)
        return second_moment - np.outer(mean, mean) + excess, center

    def floored(self, release: NoisyStep, n_rows: float, floor: float, *, final: bool) -> Ellipsoid:
        """Return the next ellipsoid, small eigenvalues raised to ``floor`` times the noise's edge.

        The noise hides smaller variances; the rescaling enlarges these directions, so that a later step can resolve
        them. What a step saw above its noise bounds the covariance from below for good, since clipping only reduces: a
        direction that a later step finds smaller has lost rows to the clip, and is reduced until these rows fit.
        """
        covariance, center = self.estimate(release, n_rows)
        now = Observation(covariance, self.noise(release, n_rows) * np.eye(len(center)))
        eigenvalues, eigenvectors = np.linalg.eigh(covariance)
        least = floor * spectral_edge(len(center)) * release.gram_scale / n_rows
        kept = self.evidence.resolved(eigenvectors)
        if final:  # what noise made too large by less than a factor of two is put right before the last step
            kept &= eigenvalues < _RESOLVED
        outer = (eigenvectors * np.maximum(eigenvalues, np.where(kept, 1.0, least))) @ eigenvectors.T
        held = _upper(self.held, self.evidence.held(now))
        values, vectors = np.linalg.eigh(_upper(self.evidence.raised(outer), held))
        step = vectors.T / np.sqrt(values)[:, None]
        measured = np.einsum("ij,ij->j", vectors, covariance @ vectors)
        unchecked = (values < _RESOLVED) | (measured < _RESOLVED * values)
        return Ellipsoid(
            center,
            step @ self.linear,
            self.evidence.moved(step, now),
            step @ held @ step.T,
            unchecked & ~unchecked.all(),
        )

    def noise(self, release: NoisyStep, n_rows: float) -> float:
        """Return the noise SD of a diagonal entry of :meth:`estimate`."""
        scale = release.gram_scale / n_rows
        if release.sum is None:
            return scale
        # The noise e of m̂ is in m̂m̂ᵀ as m̂eᵀ + em̂ᵀ.
        return math.hypot(scale, 2.0 * float(np.linalg.norm(release.sum)) / n_rows * release.sum_scale / n_rows)

    def covariance(self, release: NoisyStep, n_rows: float) -> tuple[FloatArray, FloatArray]:
        """Return the final covariance of x, with negative eigenvalues set to 0, and the mean of x."""
        covariance, center = self.estimate(release, n_rows)
        eigenvalues, eigenvectors = np.linalg.eigh(self.evidence.raised(covariance))
        root = np.linalg.solve(self.linear, eigenvectors * np.sqrt(np.maximum(eigenvalues, 0.0)))
        return root @ root.T, center

    def half_seen(self, release: NoisyStep, n_rows: float) -> bool:
        """Return True if an unchecked direction was enlarged for a variance far above what is seen.

        Either it varies less than was planned for, or few rows make up its variance, and these were clipped.
        """
        # Directions that are held are at a scale at which their rows fit.
        enlarged = self.unchecked & (np.diag(self.held) < _RESOLVED)
        measured, noise = np.diag(self.estimate(release, n_rows)[0])[enlarged], self.noise(release, n_rows)
        return bool(((measured > 4.0 * noise) & (measured < 0.5 * _RESOLVED)).any())

    def record(self, radius: float, rho: float, release: NoisyStep, n_rows: float) -> dict[str, Any]:
        """Return the step as plain values; rows were clipped to ‖linear·(x − center)‖ ≤ radius.

        ``fill`` is the noisy mean of ‖w‖²/radius²: 1 if every row was clipped.
        """
        return {
            "center": self.center.tolist(),
            "linear": self.linear.tolist(),
            "radius": radius,
            "rho": rho,
            "noise_scale": release.gram_scale / n_rows,
            "fill": float(np.trace(release.gram)) / (n_rows * radius**2),
        }


# The clipping radius of CoinPress's last step, widened where a private histogram of norms shows heavy tails.

_HISTOGRAM_SHARE = 0.02
"""Share of the last step's budget for the histogram of norms, for ten features or more."""
_MAX_HISTOGRAM_SHARE = 0.1
_FAR = 4.0
"""Multiple of the planned last radius above which a warning is given."""
_AFFORDABLE = 0.1
"""Noise per variance up to which the clip is widened for rows along unchecked directions."""


@dataclass(frozen=True, slots=True)
class _LastClip:
    """Last step's budget and clipping radius, with the histogram's evidence."""

    # ``clipped`` is the share of rows beyond the radius, ``lost`` what clipping takes off the mean of their squared
    # norms.

    rho: float
    radius: float
    outside: float | None = None
    left_out: bool = False
    unseen_tail: float = 0.0
    clipped: float = 0.0
    lost: float = 0.0


def _widened_clip(
    rows: Rows, privacy_filter: PrivacyFilter, planned: _LastClip, ellipsoid: Ellipsoid, *, n_rows: float, mean: bool
) -> _LastClip:
    """Return the clip after part of the planned budget paid for a histogram of norms."""
    d = len(ellipsoid.center)
    # A tail of c rows is worth a wider clip if its part in the covariance, c/√d, exceeds the noise, which is in
    # proportion to d: from c ∝ d^1.5 on. With few features thin tails matter, and the histogram must see them.
    share = min(_MAX_HISTOGRAM_SHARE, _HISTOGRAM_SHARE * max(1.0, math.pow(10.0 / d, 1.5)))
    for_histogram, rest = PrivacyBudget.zcdp(planned.rho).split(share, 1.0 - share)
    # A row very far out along directions enlarged unchecked only says how far these were enlarged: it is counted apart.
    mapped, edges = MappedRows(rows, privacy_filter, ellipsoid.center, ellipsoid.linear), tail_edges(planned.radius)
    whole, apart = mapped.tails("norm-histogram", for_histogram.rho, edges, ellipsoid.linear[ellipsoid.unchecked])
    noise = StepNoise.calibrated(d, rest.rho, rows.neighbors, mean=mean)
    noise_error = noise.noise_scale * math.sqrt(d * (d + 1) / 2.0) / n_rows
    affordable = math.sqrt(_AFFORDABLE * math.sqrt(d) / noise_error)
    near = apart.typical_norms <= max(_FAR * planned.radius, affordable)
    histogram = replace(whole, counts=whole.counts + np.where(near, apart.occupied, 0.0))
    best = histogram.best_radius(2, noise_error, 1.0 / math.sqrt(d))
    # Never below the planned radius: for normal rows that is the better choice, since it suffers from no bins and no noise.
    radius = max(planned.radius, best or 0.0)
    long_rows = replace(whole, counts=whole.occupied + apart.occupied)
    return _LastClip(
        rest.rho,
        radius,
        outside=histogram.share_above(planned.radius),
        left_out=bool((apart.occupied > 0.0)[~near].any()),
        unseen_tail=2.0 * whole.least_seen / n_rows,
        clipped=long_rows.share_above(radius),
        lost=long_rows.mean_excess(radius),
    )


# Diagnostics of a run: every step, and warnings.

_LARGE_TAIL = 0.06
"""Fraction of rows in an unseen tail above which a warning is given."""
_LARGE_LOSS = 0.25
"""Loss of squared norm over √d to warn of; log-normal rows with σ = 1 lose about 0.2."""


def _run_diagnostics(steps: list[dict[str, Any]], rules: StepRules, clip: _LastClip, half_seen: bool) -> dict[str, Any]:
    """Return every step's ellipsoid, the predicted error and warnings."""
    # From noisy outputs and public numbers.
    result: list[Message] = []
    final, d = steps[-1], len(steps[-1]["center"])
    planned = rules.last_radius**2
    # Rows that obey the bounds have E‖w‖² ≤ d. The limit on ``fill`` is halfway between d and radius², plus four standard
    # deviations of the noise.
    limit = (d + planned) / (2.0 * planned) + 4.0 * final["noise_scale"] * math.sqrt(d) / final["radius"] ** 2
    if (clip.outside is not None and clip.outside > 0.5) or (final["radius"] ** 2 <= planned and final["fill"] > limit):
        result.append(Message("rows-outside-bounds"))
    # An error of √d leaves nothing of the least directions. A range that stays wide, because one step is best, is no fault.
    if rules.schedule.predicted_error > math.sqrt(d):
        result.append(Message("small-eigenvalues-lost"))
    if clip.radius > _FAR * rules.last_radius:
        result.append(Message("clip-widened", times=clip.radius / rules.last_radius))
    if clip.left_out or half_seen:
        result.append(Message("variance-of-few-rows"))
    elif clip.lost > _LARGE_LOSS * math.sqrt(d):
        result.append(Message("variance-of-outlying-rows", share=clip.clipped))
    # In units of w the signal is about 1 in every direction, more where the clip had to be widened for all.
    signal = math.sqrt(d) * max(1.0, final["fill"] * final["radius"] ** 2 / d)
    if final["noise_scale"] * math.sqrt(d * (d + 1) / 2.0) > signal:
        result.append(Message("noise-above-covariance"))
    if clip.unseen_tail > _LARGE_TAIL:
        result.append(Message("rows-unseen-tail", share=min(1.0, clip.unseen_tail)))
    if rules.n_rows < d:
        result.append(Message("fewer-rows-than-features"))
    return {
        "steps": steps,
        "predicted_mahalanobis": rules.schedule.predicted_error,
        "share_outside": clip.outside,
        "share_unseen": clip.unseen_tail,
        "warnings": tuple(result),
    }


FLOOR = 0.5
"""Part of the noise's spectral edge to which a step raises smaller eigenvalues."""
_CAUTION = 0.7
"""Fraction of the noise's spectral edge assumed by the schedule, as experiments show."""
_MIN_EIGENVALUE = 0.1
"""Default lower bound on eigenvalues over the schema's min variances, for correlation."""


@dataclass(frozen=True)
class CoinPressPlan(RecursivePlan):
    """Calibrated :class:`CoinPress`; ``rules`` is None if the number of rows is private."""

    mechanism: CoinPress
    rules: StepRules | None

    @property
    def details(self) -> Mapping[str, Any]:
        lowest, highest, mean_radius = self.mechanism.bounds(self.shape)
        details: dict[str, Any] = {"rho": self.rho, "spread": (highest + mean_radius**2) / lowest}
        if self.rules is not None:
            schedule = self.rules.schedule
            details |= {"shares": schedule.shares, "predicted_mahalanobis": schedule.predicted_error}
        return details

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> RunResult:
        self.check_rows(rows)
        shape, options, rules, rho = self.shape, self.mechanism, self.rules, self.rho
        if rules is None:
            count, rho = count_first(rows, privacy_filter, rho, None)
            rules = options.step_rules(shape, count, rho, self.neighbors)
        n_rows = rules.n_rows
        ellipsoid = options.first_ellipsoid(shape, rules.radius)
        steps: list[dict[str, Any]] = []

        def step(which: Mapping[str, int | bool], rho: float, radius: float) -> NoisyStep:
            mapped = MappedRows(rows, privacy_filter, ellipsoid.center, ellipsoid.linear)
            return mapped.moments(which, rho, radius, mean=shape.mean)

        *early, last = PrivacyBudget.zcdp(rho).split(*rules.schedule.shares)
        for budget in early:
            release = step({"step": len(steps) + 1}, budget.rho, rules.radius)
            steps.append(ellipsoid.record(rules.radius, budget.rho, release, n_rows))
            ellipsoid = options.next_ellipsoid(ellipsoid, release, rules, final=len(steps) == len(early))
        clip = _LastClip(last.rho, rules.last_radius)
        if options.widens_last_clip:
            clip = _widened_clip(rows, privacy_filter, clip, ellipsoid, n_rows=n_rows, mean=shape.mean)
        release = step({"last": True}, clip.rho, clip.radius)
        steps.append(ellipsoid.record(clip.radius, last.rho, release, n_rows))
        covariance, mean = ellipsoid.covariance(release, n_rows)
        return RunResult(
            count=n_rows if shape.mean or self.neighbors.table_size_is_public else None,
            sum=np.zeros_like(mean) if shape.mean else None,
            gram=n_rows * (covariance + covariance.T) / 2.0,
            center=mean if shape.mean else None,
            diagnostics=_run_diagnostics(steps, rules, clip, ellipsoid.half_seen(release, n_rows)),
            model=release.model(ellipsoid.linear, ellipsoid.center, self.expected_count_error),
        )


@dataclass(frozen=True)
class CoinPress(CoinPressOptions, Mechanism):
    """Covariance from a rough eigenvalue range, by shrinking ellipsoids.

    Source: Biswas, Dong, Kamath & Ullman 2020.

    The covariance is known to satisfy lo·A ⪯ Σ ⪯ hi·A. The number of steps grows with log(hi/lo); the error hardly depends on
    it. Each step maps rows to w = T(x − c), clips them to a ball and releases their noisy second moment Z. The next step uses
    U^{−1/2}T in place of T, where U is Z with its small eigenvalues raised to the noise level. If the mean is released, each
    step also releases the noisy sum and moves c to the estimated mean. An unknown mean then costs a few more steps; removing it
    by differences of paired rows would cost half the rows (``docs/evidence/derivations/coinpress.md``).

    **Privacy.** ρ-zCDP, by composition over the steps: each is an exact discrete Gaussian release of integer sums of rows
    clipped to the radius actually used. Under (ε, δ) the steps together are no worse than one Gaussian mechanism, which allows
    a larger ρ than zCDP does by itself (``docs/evidence/derivations/composition.md``). The guarantee assumes nothing about the
    rows: if the bounds are wrong only accuracy suffers, and the diagnostics warn of it.

    Parameters
    ----------
    eigenvalue_bounds : (lo, hi), optional
        Range of the eigenvalues of the covariance (of the second moment if no mean is released) relative to ``anchor``, in
        encoded units. Default: (1e-6, 1) for rows in the unit ball; computed from the scale ranges of the schema's columns, if
        there are any; otherwise required.
    mean_radius : float, optional
        Bound on the norm of the mean relative to ``anchor``, if the mean is released. Default: 1 in the unit ball; computed
        from the scale ranges of the schema's columns, if there are any; otherwise required.
    anchor : nested sequence of shape (d, d), optional
        A, positive definite. Default: the diagonal matrix of the squared lower ends of the scale ranges, if columns have them,
        else the identity.
    clip : {"adaptive", "gaussian"}
        ``"adaptive"``: 2 % of the last step's budget (up to 10 % below ten features) pays for a histogram of norms, from which
        the last clip is widened for heavy tails. ``"gaussian"``: clip as for normal rows.
    steps : int, optional
        Number of steps; by default it follows from n, d, ρ and hi/lo.
    split : sequence of float, "experiments" or "theorems", optional
        Budget share of each step; or ¾ or ½ for the last step and equal parts of the rest for the others. By default the shares
        are searched.

    Examples
    --------
    >>> shape = MomentShape(10, n_rows=7000, mean=False, row_norm=None)
    >>> plan = CoinPress(eigenvalue_bounds=(1.0, 1e6)).plan(shape, PrivacyBudget.zcdp(0.5), "replace_one")
    >>> len(plan.details["shares"]), round(plan.details["predicted_mahalanobis"], 3)
    (10, 0.131)
    """

    eigenvalue_bounds: tuple[float, float] | None = None
    mean_radius: float | None = None
    anchor: Sequence[Sequence[float]] | None = field(default=None, repr=False)

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.ZCDP, BudgetKind.APPROXIMATE})
    loss_units: ClassVar[Mapping[BudgetKind, LossUnit]] = GAUSSIAN_LOSS_UNITS
    needs_row_norm: ClassVar[bool] = False
    counts_rows: ClassVar[bool] = True
    summary: ClassVar[str] = "covariance (and mean) from a rough eigenvalue range; needs no bound on a row"
    source: ClassVar[str] = "Biswas, Dong, Kamath & Ullman 2020 (CoinPress), joint with the mean"
    public_name: ClassVar[str | None] = "coinpress"

    def __post_init__(self) -> None:
        self.check_schedule_options()
        if self.eigenvalue_bounds is not None:
            object.__setattr__(self, "eigenvalue_bounds", checked_eigenvalue_bounds(self.eigenvalue_bounds))
        if self.mean_radius is not None and not 0.0 <= self.mean_radius < math.inf:
            raise out_of_range("mean_radius", self.mean_radius, "finite and not negative")
        if self.anchor is not None:
            object.__setattr__(self, "anchor", positive_definite(self.anchor, "the anchor"))

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> CoinPressPlan:
        rho = self.drawable_budget(budget).rho
        if shape.n_rows == 0:
            raise InputValueError("coinpress needs rows: this table is publicly empty")
        rules = self.step_rules(shape, float(shape.n_rows or STAND_IN_ROWS), rho, neighbors)
        require_workable_budget(rho, None if shape.n_rows is None else rules.schedule.shares)
        return CoinPressPlan(self, shape, neighbors, budget, rho, rules=None if shape.n_rows is None else rules)

    def step_rules(self, shape: MomentShape, n_rows: float, rho: float, neighbors: Neighbors) -> StepRules:
        """Return radius and schedule for a number of rows, public or noisy."""
        d = shape.n_features
        frobenius = self.unit_noise(shape, n_rows, neighbors) * math.sqrt(d * (d + 1) / 2.0)
        square = moment_clip_square(d, frobenius / math.sqrt(0.75 * rho))
        clips = ClipSquares(square, square, contraction=_CAUTION * spectral_edge(d))
        return StepRules.of(n_rows, clips, self.scheduled(shape, n_rows, rho, neighbors, clips, self.splits))

    def unit_noise(self, shape: MomentShape, n_rows: float, neighbors: Neighbors) -> float:
        """Return the noise SD of a second moment of rows in the unit ball, at ρ = 1."""
        return StepNoise.calibrated(shape.n_features, 1.0, neighbors, mean=shape.mean).noise_scale / n_rows

    def scheduled(
        self,
        shape: MomentShape,
        n_rows: float,
        rho: float,
        neighbors: Neighbors,
        clips: ClipSquares,
        splits: list[tuple[float, ...]] | None,
    ) -> Schedule:
        """Return the best schedule with these clips."""
        d, unit = shape.n_features, self.unit_noise(shape, n_rows, neighbors)
        lowest, highest, mean_radius = self.bounds(shape)
        return spread_schedule(
            (highest + mean_radius**2) / lowest,
            rho,
            noise=clips.contraction * unit * clips.early,
            ridge=clips.ridge,
            final_noise=unit * math.sqrt(d * (d + 1) / 2.0) * clips.last,
            sampling_square=d * (d + 1) / n_rows,
            shares=splits,
            n_steps=self.steps,
        )

    def next_ellipsoid(self, ellipsoid: Ellipsoid, release: NoisyStep, rules: StepRules, *, final: bool) -> Ellipsoid:
        """Return the ellipsoid after a step."""
        return ellipsoid.floored(release, rules.n_rows, FLOOR, final=final)

    def first_ellipsoid(self, shape: MomentShape, radius: float) -> Ellipsoid:
        """Return the ellipsoid that the public bounds imply.

        A Boolean column is held to the scale at which its rarer value is √(radius² − d) away from the other, so that a row
        whose other features are normal is not clipped, however rare it is.
        """
        _, highest, mean_radius = self.bounds(shape)
        anchor, held = self.anchor, None
        if shape.rough_scale is not None:
            anchor = shape.rough_scale.anchor if anchor is None else anchor
            held = np.diag(np.square(shape.rough_scale.span)) / max(radius**2 - shape.n_features, 1.0)
        first = None if anchor is None else np.array(anchor)
        return Ellipsoid.first(shape.n_features, first, highest + mean_radius**2, held)

    def bounds(self, shape: MomentShape) -> tuple[float, float, float]:
        """Return least and greatest eigenvalue, and the radius of the mean (0 if not released)."""
        in_the_ball = shape.row_norm is not None and self.anchor is None
        if self.anchor is not None and len(self.anchor) != shape.n_features:
            raise InputValueError(f"the anchor has {len(self.anchor)} rows; the table has {shape.n_features} features")
        rough = shape.rough_scale if self.anchor is None else None
        bounds = self.eigenvalue_bounds
        if bounds is None:
            if in_the_ball:
                bounds = (1e-6, 1.0)
            elif rough is not None:
                bounds = (_MIN_EIGENVALUE, rough.spread)
            else:
                needs = (
                    "coinpress needs a rough range for the eigenvalues of the covariance, and 1e6 costs a few percent: "
                )
                raise InputValueError(
                    f"{needs}CoinPress(eigenvalue_bounds=(lowest, highest))",
                    shell=f"{needs}--option 'eigenvalue_bounds=[LOWEST, HIGHEST]'",
                )
        if not shape.mean:
            return (*bounds, 0.0)
        radius = self.mean_radius
        if radius is None:
            if rough is not None:
                radius = rough.mean_radius
            elif in_the_ball:
                radius = 1.0
            else:
                needs = "coinpress needs a bound on the norm of the mean, which may be generous: "
                raise InputValueError(
                    f"{needs}CoinPress(mean_radius=…); or mean=False for rows of mean zero",
                    shell=f"{needs}--option mean_radius=NUMBER; or --no-mean for rows of mean zero",
                )
        return (*bounds, radius)
