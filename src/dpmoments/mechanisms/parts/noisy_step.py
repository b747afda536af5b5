"""One step of the recursive estimators: noisy moments of w = A(x − c), clipped to a ball."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.array_types import FloatArray
from dpmoments.mechanisms.base import MomentShape
from dpmoments.mechanisms.gaussian import Gaussian, GaussianPlan
from dpmoments.mechanisms.parts.additive import add_integers, augmented_gram, choose_bits
from dpmoments.noise.lattice import discrete_gaussian
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.curves import zcdp_noise_scale
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.rows.rows import Rows

__all__ = ["NoisyStep", "count_first", "noisy_count", "noisy_step", "require_workable_budget", "step_plan"]

COUNT_SHARE = 0.01
"""Share of ρ for the number of rows, where it is private."""
SMALLEST_SHARE = 1e-4
"""Least share of ρ that a step can get, for runs whose shares are not known beforehand."""


@dataclass(frozen=True, slots=True)
class NoisyStep:
    """Noisy sums of the clipped rows w, in the units of w.

    Attributes
    ----------
    gram : ndarray of shape (k, k)
        Σ w wᵀ plus symmetric normal noise.
    sum : ndarray of shape (k,) or None
        Σ w plus normal noise; None where it was not asked for.
    gram_scale : float
        Standard deviation of the noise on a diagonal entry of ``gram`` (1/√2 of it off the diagonal).
    sum_scale : float
        Standard deviation of the noise on an entry of ``sum``; 0 without it.
    """

    gram: FloatArray
    sum: FloatArray | None
    gram_scale: float
    sum_scale: float


def step_plan(n_outputs: int, rho: float, neighbors: Neighbors, *, mean: bool) -> GaussianPlan:
    """Exact isotropic Gaussian noise of cost ρ for rows clipped to the unit ball; reads no data."""
    shape = MomentShape(n_outputs, mean=mean)
    plan = Gaussian().plan(shape, PrivacyBudget.zcdp(rho), neighbors)
    assert isinstance(plan, GaussianPlan)
    return plan


def noisy_step(
    rows: Rows,
    generator: np.random.Generator,
    plan: GaussianPlan,
    *,
    center: FloatArray,
    linear: FloatArray,
    radius: float,
) -> NoisyStep:
    """Release the moments of w = linear·(x − center), each w clipped to ‖w‖ ≤ radius.

    **Privacy.** ``plan.cost``. Clipped rows are rounded to the lattice of spacing radius·2^−bits, and their norms are checked
    there in exact integers, so the sums are exact integers of known sensitivity. The discrete Gaussian noise is calibrated
    to it. ``center``, ``linear`` and ``radius`` may depend on the rows only through earlier noisy outputs.

    Parameters
    ----------
    rows : Rows
    generator : numpy.random.Generator
    plan : GaussianPlan
        From :func:`step_plan`.
    center : ndarray of shape (d,)
    linear : ndarray of shape (k, d)
    radius : float
    """
    moments = rows.moments(center, linear, radius, bits=plan.bits)
    weight = plan.augmentation
    noisy = add_integers(augmented_gram(moments, weight), plan.draw(generator))
    values = noisy.astype(np.float64) * 4.0**-plan.bits
    gram_scale = plan.noise_scale * radius**2
    if not weight:
        return NoisyStep(values * radius**2, None, gram_scale, 0.0)
    sum_scale = plan.off_diagonal_scale * radius / weight
    gram = np.ascontiguousarray(values[1:, 1:]) * radius**2
    return NoisyStep(gram, values[0, 1:] * (radius / weight), gram_scale, sum_scale)


def noisy_count(rows: Rows, generator: np.random.Generator, rho: float) -> float:
    """The number of rows plus discrete Gaussian noise, at least 1; ρ-zCDP under add-remove."""
    scale = zcdp_noise_scale(rho, 1.0)
    return max(1.0, float(rows.count() + int(discrete_gaussian(scale, 1, generator)[0])))


def count_first(rows: Rows, generator: np.random.Generator, rho: float, public_rows: int | None) -> tuple[float, float]:
    """The number of rows, and what is left of ρ: all of it where the number is public, else all but COUNT_SHARE."""
    if public_rows is not None:
        return float(public_rows), rho
    for_count, rest = PrivacyBudget.zcdp(rho).split(COUNT_SHARE, 1.0 - COUNT_SHARE)
    return noisy_count(rows, generator, for_count.rho), rest.rho


def require_workable_budget(rho: float, shares: Sequence[float] | None) -> None:
    """Refuse, before any row is read, a budget so small that some step's noise would be too large for the lattice.

    Parameters
    ----------
    rho : float
    shares : sequence of float or None
        The steps' shares of ρ; None where they are not known beforehand.
    """
    smallest = rho * (min(shares) if shares is not None else SMALLEST_SHARE)
    # 6 is a little above twice the largest sensitivity of a step, 2√2 for rows augmented by w = 1.
    choose_bits(zcdp_noise_scale(smallest, 6.0))
