"""Noise in eigenvalues, and its removal (``docs/evidence/derivations/repairs.md``)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.base.checks import check_at_least, check_probability
from dpmoments.base.one_variable import brent_root
from dpmoments.base.values import BoolArray, FloatArray
from dpmoments.moments.law import NoiseLaw

_FloatOrComplex = TypeVar("_FloatOrComplex", float, npt.NDArray[np.complex128])


@dataclass(frozen=True, slots=True)
class SpectralNoise:
    """Rotation-invariant noise on a d × d symmetric matrix, as eigenvalues see it.

    For large d it is described by its R-transform R(g) = v g / ((1 − κ₊ g)(1 + κ₋ g)) (``docs/evidence/derivations/repairs.md``):

    - Gaussian, v = dσ²/2, κ₊ = κ₋ = 0 (a semicircle);
    - matrix Laplace (W₁ − W₂)/(2c) with ν degrees of freedom, v = νd/(2c²), κ₊ = κ₋ = d/(2c) (a free difference of two
      Marchenko–Pastur distributions);
    - one Wishart less its mean, (W − νI)/(2c), v = νd/(4c²), κ₊ = d/(2c), κ₋ = 0.

    ``size`` is d, ``cell_variance`` the variance σ²/2 of an entry off the diagonal (half of that on it), ``trace_variance``
    that of the trace, ``upper_skew`` and ``lower_skew`` are κ₊ and κ₋.
    """

    size: int
    cell_variance: float
    trace_variance: float
    upper_skew: float = 0.0
    lower_skew: float = 0.0

    @classmethod
    def of(cls, law: NoiseLaw) -> SpectralNoise:
        """Compute it for the noise on a Gram matrix, averaged over rotations at equal energy."""
        d = law.n_features
        traceless = law.energy - law.trace_variance / d
        cell = law.trace_variance / (2.0 * d) if d == 1 else traceless / ((d - 1) * (d + 2))
        upper_skew, lower_skew = law.spectral_skews
        return cls(d, cell, law.trace_variance, upper_skew, lower_skew)

    def block(self, size: int) -> SpectralNoise:
        """Restrict to a subspace of ``size`` dimensions that was chosen without the noise."""
        share = size / self.size
        return replace(
            self,
            size=size,
            trace_variance=self.trace_variance * share,
            upper_skew=self.upper_skew * share,
            lower_skew=self.lower_skew * share,
        )

    @property
    def variance(self) -> float:
        """Mean square v of an eigenvalue of the noise, for large d."""
        return self.size * self.cell_variance

    @property
    def dimensions(self) -> float:
        """Dimension (d − 1)(d + 2)/2 of the traceless symmetric matrices."""
        return (self.size - 1) * (self.size + 2) / 2.0

    @property
    def energy(self) -> float:
        """Mean squared norm E‖N − (tr N/d) I‖_F² of the traceless part."""
        return 2.0 * self.cell_variance * self.dimensions

    def correction(self, g: _FloatOrComplex) -> _FloatOrComplex:
        """Return R(g)·g."""
        result: _FloatOrComplex = self.variance * g * g / ((1.0 - self.upper_skew * g) * (1.0 + self.lower_skew * g))
        return result

    @property
    def threshold(self) -> float:
        """Height above a flat spectrum at which an eigenvalue emerges (Baik et al. 2005)."""
        # It is 1/g, where g is the smallest positive root of d/dg[1/g + R(g)] = 0.
        return 1.0 / self._edge_point

    @property
    def edge(self) -> float:
        """Upper end 1/g + R(g) of the noise spectrum, at that root."""
        g = self._edge_point
        if math.isinf(g):  # the eigenvalues at the upper end are all the same: lim R(g) as g → ∞
            return self.variance / self.lower_skew
        return 1.0 / g + self.correction(g) / g

    @property
    def _edge_point(self) -> float:
        # The root s = g√v of (1 − as)²(1 + bs)² = s²(1 + ab s²), a = κ₊/√v, b = κ₋/√v; that it is the only one on (0, 1/a) is
        # shown in docs/evidence/derivations/repairs.md (edge and threshold).
        scale = math.sqrt(self.variance)
        a, b = self.upper_skew / scale, self.lower_skew / scale
        if a == b:
            return math.sqrt(2.0 / (2.0 * a * a + 1.0 + math.sqrt(8.0 * a * a + 1.0))) / scale
        if a == 0.0:
            return 1.0 / (1.0 - b) / scale if b < 1.0 else math.inf

        def excess(s: float) -> float:
            return (1.0 - a * s) * (1.0 + b * s) - s * math.sqrt(1.0 + a * b * s * s)

        return brent_root(excess, 0.0, 1.0 / a, xtol=1e-300, rtol=1e-14) / scale


# Rotation-invariant repair: eigenvalues moved to what they are expected to be along the noisy eigenvectors.

_BANDWIDTH = 1.3
"""Kernel bandwidth, in units of √v·d^(−1/3); errors change by under 2 % between 1.0 and 1.5."""


def rotation_invariant_eigenvalues(eigenvalues: FloatArray, noise: SpectralNoise) -> FloatArray:
    """Return expected values of v_iᵀ G v_i for the eigenvectors v_i of a noisy matrix G + N.

    Of all matrices with the noisy eigenvectors, Σ v_i v_iᵀ (v_iᵀ G v_i) is nearest to G in Frobenius norm. For large d, noise
    that is free from G and unknown eigenvectors of G, v_iᵀ G v_i is close to

        λ_i − Im[R(g) g]/Im g,  g = lim (1/d) Σ_j 1/(λ_i − i0 − λ_j),

    where R is the R-transform of the noise (Bun, Allez, Bouchaud & Potters 2016). For Gaussian noise that is λ_i − 2v·Re g,
    which minimizes Stein's unbiased risk estimate eigenvalue by eigenvalue. The result ascends within the range of λ; entries
    may be negative.
    """
    if noise.variance == 0.0:
        return eigenvalues
    bandwidth = _BANDWIDTH * math.sqrt(noise.variance) * noise.size ** (-1.0 / 3.0)
    g = _stieltjes_transform(eigenvalues, bandwidth)
    expected = eigenvalues - np.imag(noise.correction(g)) / np.imag(g)
    monotone = _ascending(expected)  # the true values ascend with λ; the estimates need not
    return np.asarray(np.clip(monotone, eigenvalues[0], eigenvalues[-1]))


def _stieltjes_transform(eigenvalues: FloatArray, bandwidth: float) -> npt.NDArray[np.complex128]:
    """Return h + iπρ at every eigenvalue; ρ is their smoothed density, h its Hilbert transform."""
    distance = (eigenvalues[:, None] - eigenvalues[None, :]) / (math.sqrt(2.0) * bandwidth)
    real = scipy.special.dawsn(distance).mean(axis=1) * math.sqrt(2.0)
    imaginary = np.exp(-(distance**2)).mean(axis=1) * math.sqrt(math.pi / 2.0)
    return np.asarray((real + 1j * imaginary) / bandwidth)


def _ascending(values: FloatArray) -> FloatArray:
    """Return the nearest ascending values in squares."""
    # At k the largest, over i ≤ k, of the least mean from i to some j ≥ k.
    sums, places = np.append(0.0, np.cumsum(values)), np.arange(len(values))
    sizes = places[None, :] - places[:, None] + 1.0
    means = np.where(sizes > 0.0, (sums[None, 1:] - sums[:-1, None]) / np.maximum(sizes, 1.0), math.inf)
    least = np.minimum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
    return np.asarray(np.maximum.accumulate(least, axis=0).diagonal())


def possible_eigenvalues(eigenvalues: FloatArray, upper: float | None) -> FloatArray:
    """Return the nearest ascending eigenvalues of a Gram matrix of trace at most ``upper``."""
    ascending = _ascending(eigenvalues)
    positive: FloatArray = np.maximum(ascending, 0.0)
    return positive if upper is None or float(positive.sum()) <= upper else on_simplex(ascending, upper)


def on_simplex(values: FloatArray, total: float) -> FloatArray:
    """Return the nearest values that are 0 or more and add up to ``total``.

    >>> on_simplex(np.array([0.9, 0.3, -0.1]), 1.0)
    array([0.8, 0.2, 0. ])
    """
    ordered = np.sort(values)[::-1]
    excess = (np.cumsum(ordered) - total) / np.arange(1, len(ordered) + 1)
    kept = np.flatnonzero(ordered > excess)
    nearest = np.maximum(values - excess[kept[-1] if len(kept) else 0], 0.0)
    if not nearest.any():  # the total is lost in the rounding of huge values
        nearest = (values == values.max()).astype(float)
    return np.asarray(nearest * (total / nearest.sum()))


_OUTLIER_CENTER = 1.5
"""Distance beyond the edge at which an outlier has probability 1/2, in √v·d^(−2/3).

In these units the largest eigenvalue of noise has mean −1.2 and standard deviation 1.3 (Tracy & Widom 1996).
"""
_OUTLIER_WIDTH = 2.0
"""Distance, in the same units, over which the odds grow by a factor of e."""
_NEGLIGIBLE = 1e-3
"""Minimum weight of a bulk in the average."""


def bulk_and_outlier_eigenvalues(eigenvalues: FloatArray, noise: SpectralNoise, upper: float | None) -> FloatArray:
    """Estimate v_iᵀ G v_i for the eigenvectors v_i of a noisy matrix G + N, at any noise and d.

    The lowest b eigenvalues are treated as a bulk in which noise dominates, the others as outliers with rotation-invariant
    values. The bulk is shrunk towards its mean by the share of its spread that the noise explains; this uses the whole bulk at
    once, which is more stable than correcting single eigenvalues. Its mean is what the outliers leave of the trace. The result
    averages over b, weighted by the height of each eigenvalue above the bulk below it; it ascends, is nonnegative and sums to
    at most ``upper``, a bound on the trace of G (derivation: ``docs/evidence/derivations/repairs.md``).
    """
    d = len(eigenvalues)
    alone = rotation_invariant_eigenvalues(eigenvalues, noise)
    if noise.variance == 0.0 or d < 2:
        return possible_eigenvalues(alone, upper)
    limit, deviation = math.inf if upper is None else upper, math.sqrt(noise.trace_variance)
    trace = min(max(float(eigenvalues.sum()), 0.0), limit)
    above = np.append(np.cumsum(np.maximum(alone, 0.0)[::-1])[::-1], 0.0)  # what outliers from b on take of the trace
    means = np.cumsum(eigenvalues) / np.arange(1, d + 1)
    total, assigned, open_weight = np.zeros(d), 0.0, 1.0
    for size in range(d, 0, -1):
        room, mean, within = max(trace - float(above[size]), 0.0), float(means[size - 1]), noise.block(size)
        stands_out = 0.0
        if size > 1:
            # The probability that the largest eigenvalue of the bulk is an outlier.
            unit = math.sqrt(within.variance) * size ** (-2.0 / 3.0)
            height = float(eigenvalues[size - 1]) - mean
            beyond = ((height - within.edge) / unit - _OUTLIER_CENTER) / _OUTLIER_WIDTH
            # An eigenvalue of G stands out only from the threshold on, and none is larger than the trace.
            threshold = within.threshold
            can_stand_out = min(1.0, max(0.0, 2.0 * (room / threshold - 1.0))) if threshold > 0.0 else 1.0
            stands_out = float(scipy.special.expit(beyond)) * can_stand_out
        weight, open_weight = open_weight * (1.0 - stands_out), open_weight * stands_out
        if weight > _NEGLIGIBLE:
            estimate = alone.copy()
            if size > 1:
                bulk = room / size + pooled_spread(
                    eigenvalues[:size] - mean, within, min(room + 2.0 * deviation, limit)
                )
                # Pooling gains where a bulk has many dimensions; in two it cannot (Stein 1956).
                local = min(1.0, 2.0 / within.dimensions)
                estimate[:size] = (1.0 - local) * bulk + local * alone[:size]
            total += weight * possible_eigenvalues(estimate, upper)
            assigned += weight
        if open_weight < _NEGLIGIBLE:
            break
    return total / assigned


def pooled_spread(deviations: FloatArray, noise: SpectralNoise, largest_trace: float) -> FloatArray:
    """Scale deviations from the mean by the share of their squares that noise does not explain."""
    # No matrix with trace at most t = `largest_trace` has ‖G − (tr G/b) I‖_F² above t²(1 − 1/b).
    observed = float(np.sum(deviations**2))
    if observed == 0.0:
        return deviations
    possible = largest_trace**2 * (1.0 - 1.0 / len(deviations))
    spread = min(max(observed - noise.energy, 0.0), possible)
    return deviations * (spread / observed)


# Bound on the extreme eigenvalues of symmetric normal matrices.
#
# Bounds for Wishart matrices are in ``papers/models.py``.
#
# They are quantiles, and hold up to a stated probability.
#
# Two bounds of each hold, and the smaller one is used: a tail bound in closed form, and a quantile simulated once from a fixed
# seed, equal on every machine with the same NumPy. The eigenvalues of both matrices equal those of tridiagonal matrices of
# independent normal and χ entries (Dumitriu & Edelman 2002), so a simulated matrix costs a few numbers per row. No noise is drawn
# here, and no record is read.

SEED = 20_150_701
_MAX_DRAWS = 20_000
_MAX_ENTRIES = 200_000
"""Max number of simulated matrices times their rows, but at least ``_MIN_DRAWS`` matrices."""
_MIN_DRAWS = 4_000
_MAX_SIZE = 400
"""Size from which only the tail bound is used, since it is within a few per cent."""
# SDs subtracted from a simulated tail. It is too light with probability below e^(−12.5), by Chernoff's bound.
_SAFETY = 5.0
# Min number of simulated matrices beyond a quantile. With fewer only the tail bound is used.
_MIN_BEYOND = 20.0
_BISECTIONS = 40


@lru_cache(maxsize=256)
def normal_norm_quantile(size: int, failure: float) -> float:
    """Bound the spectral norm of a symmetric normal matrix, except with probability ``failure``."""
    # Variances are 1 on and ½ off the diagonal. In closed form √(2m) + √(2 ln(2/failure)), m = `size` (Gaussian
    # concentration about a mean of at most √(2m)).
    check_at_least("size", size)
    check_probability("failure", failure)
    if size == 1:
        return -float(scipy.special.ndtri(failure / 2.0))
    bound = math.sqrt(2.0 * size) + math.sqrt(2.0 * math.log(2.0 / failure))
    draws, beyond = n_draws(size, failure)
    if not beyond:
        return bound
    with np.errstate(all="ignore"):
        generator = np.random.default_rng([SEED, size])
        main = generator.standard_normal((size, draws))
        beside = generator.chisquare(size - 1.0 - np.arange(size - 1), (draws, size - 1)).T / 2.0
        within = least_value(
            lambda x: outside(all_below(main, beside, x) & all_below(-main, beside, x)) <= beyond, 0.0, bound
        )
    return min(bound, within[1])


def n_draws(size: int, tail: float) -> tuple[int, int]:
    """Return the number of matrices to simulate, and how many may be beyond a quantile."""
    # 0 if too few would.
    draws = max(_MIN_DRAWS, min(_MAX_DRAWS, _MAX_ENTRIES // size))
    expected = draws * tail
    left = expected - _SAFETY * math.sqrt(expected)
    return draws, math.floor(left) if left >= _MIN_BEYOND and size <= _MAX_SIZE else 0


def least_value(holds: Callable[[float], bool], low: float, high: float) -> tuple[float, float]:
    """Return the ends of a short interval in which a condition begins to hold."""
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2.0
        if holds(middle):
            high = middle
        else:
            low = middle
    return low, high


def all_below(main: FloatArray, beside: FloatArray, value: float) -> BoolArray:
    """Return True for tridiagonal matrices with all eigenvalues below ``value``."""
    # Every pivot of T − value·I is negative.
    pivot = main[0] - value
    below: BoolArray = pivot < 0.0
    for entry, square in zip(main[1:], beside, strict=True):
        pivot = entry - value - square / pivot
        below &= pivot < 0.0
    return below


def outside(within: BoolArray) -> int:
    """Count the draws that are not within."""
    return len(within) - int(np.count_nonzero(within))
