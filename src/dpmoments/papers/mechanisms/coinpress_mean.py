"""CoinPress mean, by a sequence of shrinking balls.

Source: Biswas, Dong, Kamath & Ullman 2020, Figure 2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, ClassVar, Literal

import numpy as np
import scipy

from dpmoments.base.checks import check_one_of
from dpmoments.base.errors import InputValueError, out_of_range, shown
from dpmoments.base.message import Message
from dpmoments.base.values import FloatArray
from dpmoments.mechanisms.means.base import MeanMechanism, MeanPlan, NoisyMean, NormalRows
from dpmoments.mechanisms.shape import Arithmetic, MomentShape, positive_definite
from dpmoments.papers.mechanisms.coinpress import CoinPress, Ellipsoid, StepRules
from dpmoments.papers.mechanisms.coinpress_schedule import (
    MAX_STEPS,
    STAND_IN_ROWS,
    ClipSquares,
    CoinPressOptions,
    Schedule,
    best_schedule,
    candidate_splits,
    fewest_steps,
    normal_norm_radius,
)
from dpmoments.papers.mechanisms.mapped_rows import (
    FROM_EDGE,
    MAX_CLIPPED,
    MAX_SEEN,
    NOISE_DECIDES,
    MappedRows,
    NoisyStep,
    clipped_norm,
    count_first,
    first_count_error,
    left_after_count,
    noise_of_last_step,
    norm_edges,
    require_workable_budget,
    spread_about_mean,
)
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.curves import zcdp_noise_scale
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sensitivity import row_sum_l2
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

_HISTOGRAM_SHARE = 0.02
"""Share of the last step's budget for the histogram of norms."""
_HEAVIER = 1.06
"""Ratio of the histogram's best radius to the normal one above which tails are heavy."""
_OUTSIDE_BALL = 0.01
"""Probability that a step's error exceeds the next ball's planned radius, for normal rows."""


# CoinPress with the constants of its paper, for comparison.

_FAILURE = 0.05
"""Default β of the paper's constants."""


@dataclass(frozen=True, kw_only=True)
class PaperOptions(CoinPressOptions):
    """Options of both mechanisms for the constants of the paper."""

    constants: Literal["practical", "paper"] = "practical"
    # β: with the paper's constants, no normal row is clipped and nothing leaves its ball or ellipsoid, except with this
    # probability
    failure: float = _FAILURE

    @property
    def widens_last_clip(self) -> bool:
        return super().widens_last_clip and self.constants == "practical"

    @property
    def splits(self) -> list[tuple[float, ...]] | None:
        if self.constants == "paper" and self.split is None:
            return self.named_splits("experiments")
        return super().splits

    def step_failures(self, n_steps: int) -> tuple[float, float]:
        """Return β_s of each step before the last, β/(4(t − 1)), and of the last, β/4.

        Source: Biswas et al. 2020, Figure 2.
        """
        return self.failure / (4.0 * max(n_steps - 1, 1)), self.failure / 4.0

    def check_schedule_options(self) -> None:
        check_one_of("constants", self.constants, ("practical", "paper"))
        if isinstance(self.failure, bool) or not isinstance(self.failure, int | float) or not 0.0 < self.failure < 1.0:
            raise out_of_range("failure", self.failure, "a probability, above 0 and below 1")
        if self.failure != _FAILURE and self.constants != "paper":
            raise InputValueError(
                f"failure={shown(self.failure)} needs the paper's constants, since the practical ones have no β: "
                'leave it out, or give constants="paper"'
            )
        super().check_schedule_options()


@dataclass(frozen=True)
class PaperCoinPress(PaperOptions, CoinPress):
    """Covariance by :class:`~dpmoments.mechanisms.CoinPress` with the constants of the paper.

    Clipping radius and ridge come from the tail bounds of its theorems, which are loose, and ¾ of the budget is for the
    last step, as in its experiments. ``failure`` is β: the constants fail with at most this probability for normal rows
    of mean zero within the bounds.

    Examples
    --------
    >>> shape = MomentShape(10, n_rows=7000, mean=False, row_norm=None)
    >>> plan = PaperCoinPress((1.0, 1e6)).plan(shape, PrivacyBudget.zcdp(0.5), "replace_one")
    >>> len(plan.details["shares"])
    2
    """

    constants: Literal["practical", "paper"] = field(default="paper", kw_only=True)

    public_name: ClassVar[str | None] = "paper-coinpress"

    def step_rules(self, shape: MomentShape, n_rows: float, rho: float, neighbors: Neighbors) -> StepRules:
        if self.constants == "practical":
            return super().step_rules(shape, n_rows, rho, neighbors)

        def clips(n_steps: int) -> ClipSquares:
            return covariance_theory(shape.n_features, n_rows, *self.step_failures(n_steps))

        schedule = fewest_steps(
            [self.scheduled(shape, n_rows, rho, neighbors, clips(len(split)), [split]) for split in self.splits or ()]
        )
        return StepRules.of(n_rows, clips(schedule.n_steps), schedule)

    def next_ellipsoid(self, ellipsoid: Ellipsoid, release: NoisyStep, rules: StepRules, *, final: bool) -> Ellipsoid:
        if self.constants == "practical":
            return super().next_ellipsoid(ellipsoid, release, rules, final=final)
        early, last = self.step_failures(rules.schedule.n_steps)
        covariance, center = ellipsoid.estimate(release, rules.n_rows)
        eigenvalues, eigenvectors = np.linalg.eigh(covariance)
        # The next ellipsoid is from U = Z₊ + (η + ν)I: η is for sampling, ν bounds the noise's largest eigenvalue.
        sampling = covariance_theory(len(center), rules.n_rows, early, last).ridge
        ridge = sampling + normal_matrix_norm(len(center), early / 3.0) * release.gram_scale / rules.n_rows
        step = eigenvectors.T / np.sqrt(np.maximum(eigenvalues, 0.0) + ridge)[:, None]
        return Ellipsoid(center, step @ ellipsoid.linear, ellipsoid.evidence, ellipsoid.held, ellipsoid.unchecked)


def covariance_theory(n_features: int, n_rows: float, early: float, last: float) -> ClipSquares:
    """Return clips for steps that may fail with probability ``early``, the last with ``last``."""
    # A third of `early` is for each failure: a row is clipped, the sampling error exceeds η, the noise exceeds ν. The
    # paper names these three; how its supplement divides β_s among them is not known here.
    each = early / 3.0
    return ClipSquares(
        early=normal_norm_square(n_features, each / n_rows),
        last=normal_norm_square(n_features, last / n_rows),
        contraction=2.0 * normal_matrix_norm(n_features, each),
        ridge=normal_second_moment_error(n_rows, n_features, each),
    )


# Tail bounds of normal rows and of normal noise in closed form.


def normal_norm_square(n_features: int, failure: float) -> float:
    """Return γ² = d + 2√(d ln(1/β)) + 2 ln(1/β)."""
    # P(‖w‖² > γ²) ≤ β for a normal row (Laurent & Massart 2000).
    log = math.log(1.0 / failure)
    return n_features + 2.0 * math.sqrt(n_features * log) + 2.0 * log


def normal_matrix_norm(n_features: int, failure: float) -> float:
    """Return √(2d) + √(2 ln(2/β))."""
    # A normal matrix with SDs 1 and, off the diagonal, 1/√2 exceeds it with probability ≤ β.
    return math.sqrt(2.0 * n_features) + math.sqrt(2.0 * math.log(2.0 / failure))


def normal_second_moment_error(n_rows: float, n_features: int, failure: float) -> float:
    """Return 2s + s², s = √(d/n) + √(2 ln(2/β)/n)."""
    # P(‖Σ̂ − I‖ exceeds it) ≤ β (Davidson & Szarek 2001).
    error = math.sqrt(n_features / n_rows) + math.sqrt(2.0 * math.log(2.0 / failure) / n_rows)
    return 2.0 * error + error**2


@dataclass(frozen=True, slots=True)
class Balls:
    """Clipping radius and budget share of every step."""

    n_rows: float
    schedule: Schedule
    radii: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class LastClip:
    """Last step's budget and clipping radius, with the evidence of the histogram of norms."""

    rho: float
    radius: float
    share_outside: float  # estimated fraction of rows beyond the planned radius, among those seen
    seen: float  # fraction of the rows in bins above the noise
    norm: float | None  # root mean square of the clipped norms, among the rows seen; None if no bin is
    share_clipped: float  # estimated fraction of rows beyond `radius`, among those seen
    heavier: bool  # true if the norms have heavier tails than normal rows


@dataclass(frozen=True)
class CoinPressMeanPlan(MeanPlan):
    """Calibrated :class:`CoinPressMean`."""

    mechanism: CoinPressMean
    rho: float
    balls: Balls | None

    arithmetic: ClassVar[Arithmetic] = Arithmetic.EXACT_LATTICE

    @property
    def expected_count_error(self) -> float:
        return first_count_error(self.rho, self.balls is None)

    @property
    def error_needs_rows(self) -> bool:  # type: ignore[override]  # the last clip may be widened for the rows
        return self.mechanism.widens_last_clip

    def expected_errors(self, assumed: NormalRows) -> FloatArray:
        d, n, options = self.shape.n_features, assumed.n_rows, self.mechanism
        rho = self.rho if self.balls is not None else left_after_count(self.rho)
        balls = self.balls or options.balls(self.shape, float(n), rho, self.neighbors)
        *_, last = PrivacyBudget.zcdp(rho).split(*balls.schedule.shares)
        spent = last.rho * (1.0 - _HISTOGRAM_SHARE) if options.widens_last_clip else last.rho
        unit = row_sum_l2(self.neighbors).value * balls.radii[-1] / n
        # what clipping adds to the error that `mean_schedule` predicts
        rest = balls.schedule.predicted_error**2 - d * (1.0 / n + unit * unit / (2.0 * last.rho))
        bias = math.sqrt(max(rest, 0.0)) / math.sqrt(d)
        back = np.linalg.inv(options.whitening(self.shape)).astype(np.float64)
        return np.asarray(math.hypot(zcdp_noise_scale(spent, unit), bias) * np.sqrt((back * back).sum(axis=1)))

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> NoisyMean:
        self.check_rows(rows)
        options, balls, rho, d = self.mechanism, self.balls, self.rho, self.shape.n_features
        if balls is None:
            count, rho = count_first(rows, privacy_filter, rho, None)
            balls = options.balls(self.shape, count, rho, self.neighbors)
        linear = options.whitening(self.shape)
        back = np.linalg.inv(linear).astype(np.float64)
        center, steps, last = np.zeros(d), list[dict[str, Any]](), None
        for index, budget in enumerate(PrivacyBudget.zcdp(rho).split(*balls.schedule.shares)):
            radius, spend, mapped = balls.radii[index], budget.rho, MappedRows(rows, privacy_filter, center, linear)
            if index == len(balls.radii) - 1 and options.widens_last_clip:
                last = self._last_clip(mapped, spend, radius, balls.n_rows)
                spend, radius = last.rho, last.radius
            sums = mapped.sums(index + 1, spend, radius)
            # Rows were clipped to {x : ‖linear·(x − center)‖ ≤ radius}; the mean was known to lie within mean_radius.
            steps.append(
                {
                    "center": center.tolist(),
                    "radius": radius,
                    "mean_radius": balls.schedule.scales[index],
                    "rho": budget.rho,
                    "noise_scale": sums.sum_scale / balls.n_rows,
                }
            )
            moved = sums.sum / balls.n_rows
            center = center + back @ moved
        entry = steps[-1]["noise_scale"]
        noise = math.sqrt(d) * entry
        length, seen = float(np.linalg.norm(moved)), None if last is None else (last.seen, last.share_outside)
        spread = math.sqrt(d) if last is None or last.norm is None else spread_about_mean(last.norm, length, noise)
        warnings = last_step_warnings(length, balls.schedule.scales[-1], entry, noise, spread, seen)
        whitened = linear @ center
        distance = float(np.linalg.norm(whitened))
        bound = balls.schedule.scales[0]
        if distance > math.hypot(bound, noise) + FROM_EDGE * entry:
            warnings.append(Message("mean-beyond-radius"))
        elif distance > bound:
            center = back @ (whitened * (bound / distance))
        diagnostics: dict[str, Any] = {
            "steps": steps,
            "linear": linear.tolist(),
            "predicted_error": balls.schedule.predicted_error,
            "share_outside": None if last is None else last.share_outside,
            "warnings": tuple(warnings),
        }
        law = noise_of_last_step(
            back,
            sums,
            self.expected_count_error,
            balls.n_rows,
            clipped=None if last is None else last.share_clipped,
            bias_suspected=last is not None and (last.heavier or last.seen < MAX_SEEN),
        )
        return NoisyMean(center, balls.n_rows, diagnostics, law)

    def _last_clip(self, mapped: MappedRows, rho: float, planned: float, n_rows: float) -> LastClip:
        """Plan the last step by a histogram of norms, paid for by part of its budget."""
        d = self.shape.n_features
        for_histogram, rest = PrivacyBudget.zcdp(rho).split(_HISTOGRAM_SHARE, 1.0 - _HISTOGRAM_SHARE)
        histogram = mapped.norms("norm-histogram", for_histogram.rho, norm_edges(math.sqrt(d)))
        noise_error = row_sum_l2(self.neighbors).value * math.sqrt(d / (2.0 * rest.rho)) / n_rows
        weight = _skewed_weight(d)
        best = histogram.best_radius(1, noise_error, weight) or 0.0
        heavier = best > _HEAVIER * normal_norm_radius(d, noise_error, weight)
        radius = max(planned, best) if heavier else planned
        return LastClip(
            rest.rho,
            radius,
            histogram.share_above(planned),
            seen=float(histogram.occupied.sum()) / n_rows,
            norm=clipped_norm(histogram, radius),
            share_clipped=histogram.share_above(radius),
            heavier=heavier,
        )


@dataclass(frozen=True)
class CoinPressMean(PaperOptions, MeanMechanism):
    """Mean in a ball of public radius, rows of known covariance, by shrinking balls.

    Each step clips rows to a ball about the last center and releases their noisy mean; the size of the noise gives a smaller
    ball for the next step. The number of steps grows with the logarithm of the radius; the error hardly depends on it.

    **Privacy.** ρ-zCDP by composition of exact discrete Gaussian releases, each at the radius actually used for clipping. The
    guarantee assumes nothing about the rows.

    Parameters
    ----------
    radius : float, optional
        ‖μ‖ ≤ radius, in encoded units. Default: 1 for rows in the unit ball; otherwise required.
    scale : float, optional
        Rows have covariance ⪯ scale²·I. Default: 1/√d for rows in the unit ball; otherwise it (or ``covariance``) is required.
    covariance : nested sequence of shape (d, d), optional
        A known covariance instead of ``scale``, for example from an earlier release; the radius then bounds ‖Σ^{−1/2}μ‖.
    constants : {"practical", "paper"}
        ``"paper"``: clipping radii and balls of the paper's Figure 2, and ¾ of the budget for the last step, as in its
        experiments (``split="theorems"`` for the ½ of Theorem 2.2).
    clip : {"adaptive", "gaussian"}
        ``"adaptive"``: 2 % of the last step's budget pays for a histogram of norms, from which the last clip is widened for
        heavy tails. ``"gaussian"``: clip as for normal rows.
    steps : int, optional
        Number of steps. By default it follows from n, d, ρ and the radius.
    split : sequence of float, "experiments" or "theorems", optional
        Budget share of each step; or ¾ or ½ for the last step and equal parts of the rest for the others. By default the shares
        are searched; with the paper's constants they are the shares of its experiments.
    failure : float
        β of Figure 2, for the paper's constants only: β/4 for the last step and β/4(t − 1) for each other.

    Examples
    --------
    >>> shape = MomentShape(50, n_rows=1000, row_norm=None)
    >>> plan = CoinPressMean(radius=7e6, scale=1.0).plan(shape, PrivacyBudget.zcdp(0.5), "replace_one")
    >>> len(plan.balls.radii), round(plan.balls.schedule.predicted_error, 3)
    (12, 0.249)
    """

    radius: float | None = None
    scale: float | None = None
    covariance: Sequence[Sequence[float]] | None = field(default=None, repr=False)

    public_name: ClassVar[str | None] = "coinpress"
    summary: ClassVar[str] = "shrinking balls from a public radius; rows of known covariance"
    source: ClassVar[str] = "Biswas, Dong, Kamath & Ullman 2020 (CoinPress)"

    def __post_init__(self) -> None:
        self.require_positive("radius", "scale")
        self.check_schedule_options()
        if self.covariance is not None:
            if self.scale is not None:
                raise InputValueError("give scale or covariance, not both")
            object.__setattr__(self, "covariance", positive_definite(self.covariance, "covariance"))

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> CoinPressMeanPlan:
        rho = self.drawable_budget(budget).rho
        if self.covariance is not None and len(self.covariance) != shape.n_features:
            raise InputValueError(
                f"covariance has {len(self.covariance)} rows; the table has {shape.n_features} features"
            )
        balls = self.balls(shape, float(shape.n_rows or STAND_IN_ROWS), rho, neighbors)
        require_workable_budget(rho, None if shape.n_rows is None else balls.schedule.shares)
        return CoinPressMeanPlan(self, shape, neighbors, budget, rho=rho, balls=None if shape.n_rows is None else balls)

    def whitening(self, shape: MomentShape) -> FloatArray:
        """Return the map under which rows have covariance at most I."""
        if self.covariance is None:
            return np.eye(shape.n_features) / self.known_scale(self.scale, shape)
        eigenvalues, eigenvectors = np.linalg.eigh(np.array(self.covariance))
        return np.asarray((eigenvectors / np.sqrt(eigenvalues)) @ eigenvectors.T)

    def balls(self, shape: MomentShape, n_rows: float, rho: float, neighbors: Neighbors) -> Balls:
        """Return schedule and clipping radii for a number of rows, public or noisy."""
        d, sensitivity = shape.n_features, row_sum_l2(neighbors).value
        radius = self.known_radius(self.radius, shape)
        if self.covariance is None:
            radius /= self.known_scale(self.scale, shape)
        planned = partial(
            mean_schedule, radius, rho, n_features=d, n_rows=n_rows, sensitivity=sensitivity, n_steps=self.steps
        )
        if self.constants == "practical":
            noise_error = sensitivity * math.sqrt(d / (1.8 * rho)) / n_rows
            # A quarter of the weight for skewed norms, more in few dimensions (a wider clip is cheap there).
            weight = _skewed_weight(d) * max(0.25, 1.0 / math.sqrt(d))
            shell = normal_norm_radius(d, noise_error, weight)
            clip = partial(mean_clip, shell=shell, quantile=shell_quantile(shell, d))
            schedule = planned(
                spherical=clip,
                ball_factor=math.sqrt(float(scipy.special.chdtri(d, _OUTSIDE_BALL))),
                shrinkage=clip_shrinkage(shell, d),
                shares=self.splits,
            )
            return Balls(n_rows, schedule, tuple(map(clip, schedule.scales)))

        def by_theory(split: tuple[float, ...]) -> Balls:
            # A step's radius, which bounds its error, in SDs: γ of Biswas et al. 2020, Figure 2, MVM, step 1.
            early, last = (math.sqrt(normal_norm_square(d, each / n_rows)) for each in self.step_failures(len(split)))
            schedule = planned(
                spherical=lambda distance: distance + early,
                last_spherical=lambda distance: distance + last,
                ball_factor=early,
                shrinkage=0.0,
                shares=[split],
            )
            *scales, last_scale = schedule.scales
            return Balls(n_rows, schedule, (*(scale + early for scale in scales), last_scale + last))

        result = [by_theory(split) for split in self.splits or ()]
        best = fewest_steps([balls.schedule for balls in result])
        return next(balls for balls in result if balls.schedule is best)


def _skewed_weight(n_features: int) -> float:
    """Return ``bias_weight`` of :func:`normal_norm_radius` for a skewed product distribution."""
    # About √(1/(2d)).
    return math.sqrt(0.5 / n_features)


_FAR = 1.5
"""Radii of the planned ball beyond which a last step shows that the mean was outside."""
_HALF = 0.5
"""Fraction of rows that the histogram of norms must see to say that most are clipped."""


def last_step_warnings(
    moved: float, ball: float, entry: float, noise: float, spread: float, seen: tuple[float, float] | None
) -> list[Message]:
    """Return warnings from the length ``moved`` of the last of several shrinking steps."""
    # `ball` is the radius of the ball planned for the mean, `entry` and `noise` the noise of an entry and its RMS norm,
    # `spread` the rows' RMS distance from their mean, and `seen` the fractions of rows that the histogram of norms saw,
    # and of those beyond the planned clipping radius.
    result = []
    far = moved > math.hypot(_FAR * ball, noise) + FROM_EDGE * entry
    if far or (seen is not None and seen[0] >= _HALF and seen[1] > MAX_CLIPPED):
        result.append(Message("rows-mostly-clipped"))
    if noise > NOISE_DECIDES * spread:
        result.append(Message("mean-lost"))
    return result


# Its schedule, from public numbers only (``docs/evidence/derivations/coinpress.md``).


def shell_quantile(shell: float, n_features: int) -> float:
    """Return z ≥ 0 with P(Z > z) = P(χ_d > shell), Z standard normal; 0 if P(χ_d > shell) > ½."""
    return max(0.0, -float(scipy.special.ndtri(max(float(scipy.special.chdtrc(n_features, shell * shell)), 1e-300))))


def mean_clip(radius: float, shell: float, quantile: float) -> float:
    """Return the clipping radius about a center up to ``radius`` from the mean.

    min(√(r² + 2zr + C²), r + C). C is ``shell`` and z = ``quantile`` from :func:`shell_quantile`: ‖δ + x‖² = r² + 2⟨δ,
    x⟩ + ‖x‖², with ⟨δ, x⟩ ~ N(0, r²) for a normal row x. The released code of CoinPress has z = 3.
    """
    return min(math.sqrt(radius * radius + 2.0 * quantile * radius + shell * shell), radius + shell)


def clip_shrinkage(radius: float, n_features: int) -> float:
    """Return κ for clipping to ``radius``.

    Normal rows with mean a small δ from the center have mean (1 − κ)δ after clipping. κ = E[1{‖z‖ > C}(1 − (1 −
    1/d)C/‖z‖)] is one minus the derivative of the clipped mean with respect to δ.
    """
    d, square = n_features, radius * radius
    tail = float(scipy.special.chdtrc(d, square))
    if d == 1:
        return tail
    inverse = (
        math.exp(scipy.special.gammaln((d - 1) / 2.0) - scipy.special.gammaln(d / 2.0))
        / math.sqrt(2.0)
        * float(scipy.special.chdtrc(d - 1, square))
    )
    return max(0.0, tail - (1.0 - 1.0 / d) * radius * inverse)


def mean_schedule(
    radius: float,
    rho: float,
    *,
    n_features: int,
    n_rows: float,
    sensitivity: float,
    spherical: Callable[[float], float],
    ball_factor: float,
    shrinkage: float,
    last_spherical: Callable[[float], float] | None = None,
    shares: Sequence[Sequence[float]] | None = None,
    n_steps: int | None = None,
) -> Schedule:
    """Return the steps for a mean in a ball of the given radius, rows of unit covariance.

    A step of budget ρ_s at clipping radius C = spherical(r) has noise σ = sensitivity·C/(n√(2ρ_s)) and leaves a ball of
    radius ball_factor·√(1/n + σ²). ``ball_factor`` is a quantile of the norm of a standard normal vector, ``shrinkage``
    κ of :func:`clip_shrinkage` in the last step. ``shares``, ``n_steps``: see :func:`spread_schedule`.
    """
    unit = sensitivity / (n_rows * math.sqrt(2.0))

    def after(scale: float, share: float) -> float:
        deviation = unit * spherical(scale) / math.sqrt(share * rho)
        return ball_factor * math.hypot(math.sqrt(1.0 / n_rows), deviation)

    def error(scale: float, share: float, steps: int) -> float:
        deviation = unit * (last_spherical or spherical)(scale) / math.sqrt(share * rho)
        # The ball's radius is a quantile of the center's distance to the mean; the bias depends on its root mean square.
        distance = scale if steps == 1 else scale * math.sqrt(n_features) / ball_factor
        spread = math.sqrt(n_features) * math.hypot(math.sqrt(1.0 / n_rows), deviation)
        return math.hypot(spread, shrinkage * distance)

    def geometric(ratio: float) -> Iterator[list[float]]:
        current = radius
        spent: list[float] = []
        while len(spent) < MAX_STEPS - 1:
            room = (ratio * current / ball_factor) ** 2 - 1.0 / n_rows
            if room <= 0.0:
                return
            spent.append((unit * spherical(current)) ** 2 / room / rho)
            if sum(spent) >= 1.0:
                return
            yield [*spent, 1.0 - sum(spent)]
            current *= ratio

    return best_schedule(candidate_splits(shares, geometric, n_steps), radius, after, error)
