r"""How CoinPress spends its budget: clipping radii, budget split and number of steps, from public numbers alone.

These choices serve accuracy: privacy holds for any schedule. Derivations: ``docs/derivations/coinpress.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from dpmoments.papers.bounds.coinpress import last_step_shares

__all__ = [
    "Schedule",
    "clip_shrinkage",
    "fewest_steps",
    "mean_clip",
    "mean_schedule",
    "moment_clip_square",
    "paper_shares",
    "predicted_bias",
    "shell_quantile",
    "shell_radius",
    "spread_schedule",
]

MOST_STEPS = 60
SLACK = 0.003
"""Of the schedules whose predicted error is within this fraction of the best, the one with the fewest steps is taken."""
LARGEST = 1e150
"""Predicted scales are capped here: such a schedule is useless anyway, and the cap keeps the arithmetic finite."""
RATIOS: tuple[float, ...] = tuple(np.geomspace(0.02, 0.95, 80).tolist())
"""Contraction ratios of the first step that the search for a schedule tries."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Budget of every step.

    Attributes
    ----------
    shares : tuple of float
        Share of ρ for each step; they add up to 1.
    scales : tuple of float
        What is known before each step. For a covariance: the ratio k of the largest to the smallest scaled eigenvalue; for a
        mean: the radius of the ball that holds it.
    predicted_error : float
        Root mean square error predicted for normal data, sampling included.
    """

    shares: tuple[float, ...]
    scales: tuple[float, ...]
    predicted_error: float

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return len(self.shares)


def moment_clip_square(n_features: int, noise_error: float) -> float:
    """γ² that balances noise against clipping for normal rows, never below the median of ‖w‖².

    Minimises (noise_error·t)² + (E(χ²_d − t)₊/√d)²: noise grows with t = γ², and clipping shrinks every eigenvalue alike, by
    E(χ²_d − t)₊/d. The derivative increases with t, so there is one minimum.

    Parameters
    ----------
    n_features : int
    noise_error : float
        Frobenius error from noise per unit of γ².

    Examples
    --------
    >>> round(moment_clip_square(10, 1e-3), 1), round(moment_clip_square(10, 1e-4), 1)
    (23.5, 29.4)
    """
    d = n_features

    def slope(t: float) -> float:
        tail = float(scipy.special.chdtrc(d, t))
        excess = d * float(scipy.special.chdtrc(d + 2, t)) - t * tail
        return noise_error**2 * t - excess * tail / d

    return _root_above(slope, _chi_square_median(d), d + 1500.0 + 60.0 * math.sqrt(d))


def shell_radius(n_features: int, noise_error: float, bias_weight: float) -> float:
    """Clipping radius for a mean whose centre is known, never below the median norm of a normal row.

    Minimises (noise_error·C)² + (bias_weight·E(χ_d − C)₊)² over C. ``bias_weight`` is the bias that clipping brings to the mean,
    as a fraction of the mean length clipped off, E(χ_d − C)₊: 0 for normal rows, by symmetry; about 1/√d for a skewed product
    distribution; 1 for rows skewed along one direction.

    Parameters
    ----------
    n_features : int
    noise_error : float
        Euclidean error from noise at radius 1.
    bias_weight : float

    Examples
    --------
    >>> round(shell_radius(50, 0.00142, 0.1), 2), round(shell_radius(50, 0.00142, 0.025), 2)
    (8.09, 7.53)
    """
    d = n_features
    mean_norm = math.sqrt(2.0) * math.exp(scipy.special.gammaln((d + 1) / 2.0) - scipy.special.gammaln(d / 2.0))

    def slope(c: float) -> float:
        tail = float(scipy.special.chdtrc(d, c * c))
        excess = mean_norm * float(scipy.special.chdtrc(d + 1, c * c)) - c * tail
        return noise_error**2 * c - bias_weight**2 * excess * tail

    return _root_above(slope, math.sqrt(_chi_square_median(d)), math.sqrt(d) + 40.0)


def _chi_square_median(n_features: int) -> float:
    return 2.0 * float(scipy.special.gammaincinv(n_features / 2.0, 0.5))


def _root_above(slope: Callable[[float], float], least: float, most: float) -> float:
    if slope(least) >= 0.0:
        return least
    return most if slope(most) <= 0.0 else float(scipy.optimize.brentq(slope, least, most))


def shell_quantile(shell: float, n_features: int) -> float:
    """z ≥ 0 with P(Z > z) = P(χ_d > shell), Z standard normal; 0 where more than half of normal rows are beyond the shell."""
    return max(0.0, -float(scipy.special.ndtri(max(float(scipy.special.chdtrc(n_features, shell * shell)), 1e-300))))


def mean_clip(radius: float, shell: float, quantile: float) -> float:
    """Clipping radius about a centre up to ``radius`` away from the mean: min(√(r² + 2zr + C²), r + C).

    C is ``shell`` and z = ``quantile`` from :func:`shell_quantile`: ‖δ + x‖² = r² + 2⟨δ, x⟩ + ‖x‖², with ⟨δ, x⟩ ~ N(0, r²) for a
    normal row x. The released code of CoinPress has z = 3.
    """
    return min(math.sqrt(radius * radius + 2.0 * quantile * radius + shell * shell), radius + shell)


def clip_shrinkage(radius: float, n_features: int) -> float:
    """κ: the mean of normal rows, a small δ away from the centre, is (1 − κ)δ away after clipping to ``radius``.

    κ = E[1{‖z‖ > C}(1 − (1 − 1/d)C/‖z‖)] is one minus the derivative of the clipped mean with respect to δ.

    Examples
    --------
    >>> round(clip_shrinkage(7.0, 50), 3), round(clip_shrinkage(8.5, 50), 4)
    (0.047, 0.0011)
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


def paper_shares(n_steps: int) -> tuple[float, ...]:
    """¾ of the budget to the last step, the rest in equal parts (Biswas et al. 2020, section 3; its theorems have ½)."""
    return last_step_shares(n_steps, 0.75)


def spread_schedule(
    spread: float,
    rho: float,
    *,
    noise: float,
    ridge: float,
    final_noise: float,
    sampling_square: float,
    shares: Sequence[Sequence[float]] | None = None,
    n_steps: int | None = None,
) -> Schedule:
    """Steps for a covariance whose scaled eigenvalues lie in [1/k, 1], k = ``spread``.

    A step of budget ρ_s reduces k to k′ = 1 + (noise/√ρ_s + ridge)·k; the last step, of budget ρ_T, leaves an error of
    final_noise·k/√ρ_T. With zero ridge the cheapest sequence satisfies k_{s+1} = 1 + √(k_s(k_s − 1)³)/k_{s−1}: geometric for
    k ≫ 1, slower near k = 1.

    Parameters
    ----------
    spread : float
    rho : float
    noise, ridge, final_noise : float
        As above.
    sampling_square : float
        Square of the error that sampling alone brings.
    shares : sequence of sequences, optional
        Budget splits to choose from. By default they are searched.
    n_steps : int, optional
        Consider only schedules of this many steps.
    """

    def follow(split: Sequence[float]) -> Schedule:
        scales = [spread]
        for share in split[:-1]:
            scales.append(min(1.0 + (noise / math.sqrt(share * rho) + ridge) * scales[-1], LARGEST))
        error = math.hypot(math.sqrt(sampling_square), final_noise * scales[-1] / math.sqrt(split[-1] * rho))
        return Schedule(tuple(split), tuple(scales), error)

    def geometric(ratio: float) -> Iterator[list[float]]:
        before, after = spread, 1.0 + ratio * spread
        spent: list[float] = []
        while len(spent) < MOST_STEPS - 1:
            drop = after - 1.0 - ridge * before
            if drop <= 0.0:
                return
            spent.append((noise * before / drop) ** 2 / rho)
            if sum(spent) >= 1.0:
                return
            yield [*spent, 1.0 - sum(spent)]
            before, after = after, 1.0 + math.sqrt(after * (after - 1.0) ** 3) / before
            if after - 1.0 < 1e-9:
                return

    return fewest_steps([follow(split) for split in _candidates(shares, geometric, n_steps)])


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
    """Steps for a mean in a ball of the given radius, rows of unit covariance.

    A step of budget ρ_s at clipping radius C = spherical(r) has noise σ = sensitivity·C/(n√(2ρ_s)) and leaves a ball of radius
    ball_factor·√(1/n + σ²) (Biswas et al. 2020, Figure 2, with the clip that is applied).

    Parameters
    ----------
    radius, rho : float
    n_features : int
    n_rows : float
    sensitivity : float
        Sensitivity of Σw at clipping radius 1.
    spherical : callable
        Maps the radius r of the ball that holds the mean to the clipping radius.
    ball_factor : float
        Quantile of the norm of a standard normal vector.
    shrinkage : float
        κ of :func:`clip_shrinkage` in the last step: the bias is κ times the distance from its centre to the mean.
    last_spherical : callable, optional
        ``spherical`` of the last step, where that is another.
    shares, n_steps
        As in :func:`spread_schedule`.
    """
    unit = sensitivity / (n_rows * math.sqrt(2.0))

    def follow(split: Sequence[float]) -> Schedule:
        scales = [radius]
        for share in split[:-1]:
            deviation = unit * spherical(scales[-1]) / math.sqrt(share * rho)
            scales.append(min(ball_factor * math.hypot(math.sqrt(1.0 / n_rows), deviation), LARGEST))
        deviation = unit * (last_spherical or spherical)(scales[-1]) / math.sqrt(split[-1] * rho)
        # The ball's radius is a quantile of the centre's distance to the mean; the bias depends on its root mean square.
        distance = scales[-1] if len(split) == 1 else scales[-1] * math.sqrt(n_features) / ball_factor
        spread = math.sqrt(n_features) * math.hypot(math.sqrt(1.0 / n_rows), deviation)
        error = math.hypot(spread, shrinkage * distance)
        return Schedule(tuple(split), tuple(scales), error)

    def geometric(ratio: float) -> Iterator[list[float]]:
        current = radius
        spent: list[float] = []
        while len(spent) < MOST_STEPS - 1:
            room = (ratio * current / ball_factor) ** 2 - 1.0 / n_rows
            if room <= 0.0:
                return
            spent.append((unit * spherical(current)) ** 2 / room / rho)
            if sum(spent) >= 1.0:
                return
            yield [*spent, 1.0 - sum(spent)]
            current *= ratio

    return fewest_steps([follow(split) for split in _candidates(shares, geometric, n_steps)])


def predicted_bias(predicted_error: float, unit: float, rho: float, n_features: int, n_rows: float) -> float:
    """What :func:`mean_schedule` predicts beside sampling and noise: of rows clipped about a centre that is not their mean.

    ``unit`` is the sensitivity of the last step's mean, and ``rho`` its budget.
    """
    rest = predicted_error**2 - n_features * (1.0 / n_rows + unit * unit / (2.0 * rho))
    return math.sqrt(max(rest, 0.0))


def _candidates(
    given: Sequence[Sequence[float]] | None, geometric: Callable[[float], Iterator[list[float]]], n_steps: int | None
) -> Sequence[Sequence[float]]:
    """The splits to compare: ``given``, or else one step and all that are searched; only those of ``n_steps``, if not None."""
    splits = given
    if splits is None:
        splits = [[1.0], *(split for ratio in RATIOS for split in geometric(ratio))]
    if n_steps is None:
        return splits
    # Where the budget is too small for any searched split of that length, use the paper's split.
    return [split for split in splits if len(split) == n_steps] or [paper_shares(n_steps)]


def fewest_steps(schedules: Sequence[Schedule]) -> Schedule:
    """The schedule with the fewest steps among those nearly as accurate as the best."""
    best = min(one.predicted_error for one in schedules)
    close = [one for one in schedules if one.predicted_error <= best * (1.0 + SLACK)]
    return min(close, key=lambda one: (one.n_steps, one.predicted_error))
