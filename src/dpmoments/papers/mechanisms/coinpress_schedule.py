"""CoinPress's schedule from public numbers: clipping radii, budget split, number of steps.

Privacy holds for any schedule. Derivations: ``docs/evidence/derivations/coinpress.md``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np
import scipy

from dpmoments.base.checks import check_one_of
from dpmoments.base.errors import InputValueError, out_of_range, shown
from dpmoments.base.one_variable import brent_root

MAX_STEPS = 60
_SLACK = 0.003
"""Tolerated excess of the predicted error over the best, for a schedule with fewer steps."""
_MAX = 1e150
"""Cap on predicted scales, which keeps the arithmetic of useless schedules finite."""
_RATIOS: tuple[float, ...] = tuple(np.geomspace(0.02, 0.95, 80).tolist())
"""Contraction ratios of the first step that the schedule search tries."""


@dataclass(frozen=True, slots=True)
class Schedule:
    """Budget of every step."""

    shares: tuple[float, ...]  # share of ρ for each step; they add up to 1
    # knowledge before each step. For a covariance: the ratio k of the largest to the smallest scaled eigenvalue; for a
    # mean: the radius of the ball that holds it.
    scales: tuple[float, ...]
    predicted_error: float  # RMSE predicted for normal data, sampling included

    @property
    def n_steps(self) -> int:
        """Number of steps."""
        return len(self.shares)


def moment_clip_square(n_features: int, noise_error: float) -> float:
    """Return the γ² ≥ the median of ‖w‖² that balances noise against clipping for normal rows.

    It minimizes (noise_error·t)² + (E(χ²_d − t)₊/√d)² over t = γ²; ``noise_error`` is the Frobenius error per unit of
    γ². The derivative increases with t, so there is one minimum.
    """
    d = n_features

    def slope(t: float) -> float:
        tail = float(scipy.special.chdtrc(d, t))
        excess = d * float(scipy.special.chdtrc(d + 2, t)) - t * tail
        return noise_error**2 * t - excess * tail / d

    return _root_above(slope, _chi_square_median(d), d + 1500.0 + 60.0 * math.sqrt(d))


def normal_norm_radius(n_features: int, noise_error: float, bias_weight: float) -> float:
    """Return the clipping radius for a mean with a known center, at least a row's median norm.

    Minimizes (noise_error·C)² + (bias_weight·E(χ_d − C)₊)² over C; ``noise_error`` is the error from noise at radius 1.
    ``bias_weight`` is the bias of the mean, as a fraction of the length clipped off: 0 for normal rows, by symmetry;
    about 1/√d for a skewed product distribution; 1 for rows skewed along one direction.
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
    return most if slope(most) <= 0.0 else brent_root(slope, least, most)


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
    """Return the steps for a covariance with scaled eigenvalues in [1/k, 1], k = ``spread``.

    A step of budget ρ_s reduces k to k′ = 1 + (noise/√ρ_s + ridge)·k; the last step, of budget ρ_T, leaves an error of
    final_noise·k/√ρ_T, and ``sampling_square`` is the squared sampling error. With zero ridge the cheapest sequence satisfies
    k_{s+1} = 1 + √(k_s(k_s − 1)³)/k_{s−1}: geometric for k ≫ 1, slower near k = 1. ``shares`` restricts the budget splits
    (default: searched), ``n_steps`` their length.
    """
    sampling = math.sqrt(sampling_square)

    def after(scale: float, share: float) -> float:
        return 1.0 + (noise / math.sqrt(share * rho) + ridge) * scale

    def error(scale: float, share: float, _: int) -> float:
        return math.hypot(sampling, final_noise * scale / math.sqrt(share * rho))

    def geometric(ratio: float) -> Iterator[list[float]]:
        before, after = spread, 1.0 + ratio * spread
        spent: list[float] = []
        while len(spent) < MAX_STEPS - 1:
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

    return best_schedule(candidate_splits(shares, geometric, n_steps), spread, after, error)


def candidate_splits(
    given: Sequence[Sequence[float]] | None, geometric: Callable[[float], Iterator[list[float]]], n_steps: int | None
) -> Sequence[Sequence[float]]:
    """Return the splits to compare: ``given``, or one step and all searched ones."""
    # Only those of ``n_steps`` if given.
    splits = given
    if splits is None:
        splits = [[1.0], *(split for ratio in _RATIOS for split in geometric(ratio))]
    if n_steps is None:
        return splits
    # If the budget is too small for any searched split of that length, use the paper's split.
    return [split for split in splits if len(split) == n_steps] or [
        last_step_shares(n_steps, _LAST_SHARE["experiments"])
    ]


def best_schedule(
    splits: Sequence[Sequence[float]],
    first: float,
    after: Callable[[float, float], float],
    error: Callable[[float, float, int], float],
) -> Schedule:
    """Return the schedule of the best split, as :func:`fewest_steps` chooses."""
    # `after` is the scale that a step leaves, of the scale before it and its share; `error` that of the last step, of
    # the same and the number of steps.
    errors = list[float]()
    # A searched split has one step more than the one before, whose scales it keeps.
    shares, scales = list[float](), [first]
    for split in splits:
        if split[:-2] != shares:
            shares, scales = [], [first]
        _add_scales(scales, split[len(shares) : -1], after)
        shares = list(split[:-1])
        errors.append(error(scales[-1], split[-1], len(split)))
    chosen = _fewest(errors, list(map(len, splits)))
    scales = _add_scales([first], splits[chosen][:-1], after)
    return Schedule(tuple(splits[chosen]), tuple(scales), errors[chosen])


def _add_scales(scales: list[float], shares: Sequence[float], after: Callable[[float, float], float]) -> list[float]:
    for share in shares:
        scales.append(min(after(scales[-1], share), _MAX))
    return scales


def fewest_steps(schedules: Sequence[Schedule]) -> Schedule:
    """Return the schedule with the fewest steps among those nearly as accurate as the best."""
    return schedules[_fewest([one.predicted_error for one in schedules], [one.n_steps for one in schedules])]


def _fewest(errors: Sequence[float], n_steps: Sequence[int]) -> int:
    most = min(errors) * (1.0 + _SLACK)
    return min((i for i, error in enumerate(errors) if error <= most), key=lambda i: (n_steps[i], errors[i]))


# Options that both CoinPress mechanisms have, the covariance's and the mean's, and their checks.

_LAST_SHARE = MappingProxyType({"experiments": 0.75, "theorems": 0.5})
"""Budget share of the last step; the others share the rest equally."""
# Biswas et al. 2020, section 3; Theorems 2.2 and 2.4.

STAND_IN_ROWS = 1000
"""Assumed number of rows if that is private, to refuse impossible options beforehand."""


@dataclass(frozen=True, kw_only=True)
class CoinPressOptions:
    """Budget split and clipping options of both CoinPress mechanisms."""

    clip: Literal["adaptive", "gaussian"] = "adaptive"
    steps: int | None = None
    # budget share of each step, scaled to sum to 1; or those of the paper, by name
    split: tuple[float, ...] | Literal["experiments", "theorems"] | None = None

    @property
    def widens_last_clip(self) -> bool:
        """True if the run pays for a histogram of norms, which widens the last clip for heavy tails."""
        return self.clip == "adaptive"

    @property
    def splits(self) -> list[tuple[float, ...]] | None:
        """Budget splits to choose from; None if they are searched."""
        if isinstance(self.split, tuple):
            return [self.split]
        return None if self.split is None else self.named_splits(self.split)

    def named_splits(self, name: str) -> list[tuple[float, ...]]:
        """Return the shares of a name for every number of steps."""
        lengths = range(1, MAX_STEPS + 1) if self.steps is None else [self.steps]
        return [last_step_shares(n_steps, _LAST_SHARE[name]) for n_steps in lengths]

    def check_schedule_options(self) -> None:
        """Raise for impossible options, and scale ``split`` to a sum of 1."""
        check_one_of("clip", self.clip, ("adaptive", "gaussian"))
        if self.steps is not None and (isinstance(self.steps, bool) or not 1 <= self.steps <= 1000):
            raise out_of_range("steps", self.steps, "a whole number from 1 to 1000")
        if isinstance(self.split, str):
            if self.split not in _LAST_SHARE:
                raise InputValueError(
                    f"split={shown(self.split)}: use {' or '.join(map(repr, _LAST_SHARE))}, or one share per step"
                )
        elif self.split is not None:
            split = tuple(map(float, self.split))
            if not split or not all(math.isfinite(share) and share > 0.0 for share in split):
                raise InputValueError(f"split={shown(self.split)}: give one positive share per step")
            if self.steps not in (None, len(split)):
                raise InputValueError(f"split has {len(split)} shares and steps={self.steps}: leave steps out")
            object.__setattr__(self, "split", tuple(share / math.fsum(split) for share in split))


def checked_eigenvalue_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    """Return (lowest, highest) as floats."""
    lowest, highest = (float(bound) for bound in bounds)
    if not 0.0 < lowest <= highest < math.inf:
        raise InputValueError(
            f"eigenvalue_bounds={shown(bounds)}: give (lowest, highest) with 0 < lowest ≤ highest, finite"
        )
    return lowest, highest


@dataclass(frozen=True, slots=True)
class ClipSquares:
    """Clipping of a covariance's steps, and the uncertainty they leave."""

    early: float  # with `last`: γ², the square of the clipping radius, of the steps before the last and of the last
    last: float
    contraction: float  # noise of SD σ on the diagonal leaves uncertainty contraction·σ in every direction
    ridge: float = 0.0  # η: addition of a step to all directions for the sampling error


def last_step_shares(n_steps: int, last: float) -> tuple[float, ...]:
    """Return this share for the last step and the rest in equal parts; 1 for a single step."""
    if n_steps == 1:
        return (1.0,)
    return (*[(1.0 - last) / (n_steps - 1)] * (n_steps - 1), last)
