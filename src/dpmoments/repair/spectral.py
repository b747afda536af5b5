"""What repairs know about the noise on a symmetric matrix: its free law, that is what it does to eigenvalues."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.terms import NoiseLaw

FloatOrComplex = TypeVar("FloatOrComplex", float, npt.NDArray[np.complex128])


@dataclass(frozen=True, slots=True)
class SpectralNoise:
    """Noise on a d × d symmetric matrix whose law does not change under rotations, as seen by eigenvalues.

    For a large d it is described by its R-transform, R(g) = v g / ((1 − κ₊ g)(1 + κ₋ g))
    (``docs/derivations/repairs.md``):

    - Gaussian, v = dσ²/2, κ₊ = κ₋ = 0 (a semicircle);
    - matrix Laplace (W₁ − W₂)/(2c) with ν degrees of freedom, v = νd/(2c²), κ₊ = κ₋ = d/(2c) (a free difference of two
      Marchenko–Pastur laws);
    - one Wishart less its mean, (W − νI)/(2c), v = νd/(4c²), κ₊ = d/(2c), κ₋ = 0.

    Attributes
    ----------
    size : int
        d.
    cell_variance : float
        Variance of a cell off the diagonal (σ²/2); on it, twice as much.
    trace_variance : float
        Of the trace.
    upper_skew, lower_skew : float
        κ₊ and κ₋.

    Examples
    --------
    >>> from dpmoments.noise.cells import GaussianCells
    >>> law = NoiseLaw.additive(GaussianCells(), 50, diagonal=2.0, off_diagonal=1.0, of_sum=0.0, of_count=0.0)
    >>> noise = SpectralNoise.of(law)
    >>> round(noise.edge, 3), round(noise.threshold, 3)  # 2√v and √v
    (14.142, 7.071)
    """

    size: int
    cell_variance: float
    trace_variance: float
    upper_skew: float = 0.0
    lower_skew: float = 0.0

    @classmethod
    def of(cls, law: NoiseLaw) -> SpectralNoise:
        """The spectral law of the noise on a Gram matrix.

        A law that changes under rotations (independent entries of equal variance, unequal scales) is replaced by the one of the
        same total energy that does not.
        """
        d = law.n_features
        traceless = law.energy - law.trace_variance / d
        cell = law.trace_variance / (2.0 * d) if d == 1 else traceless / ((d - 1) * (d + 2))
        upper_skew, lower_skew = law.spectral_skews
        return cls(d, cell, law.trace_variance, upper_skew, lower_skew)

    def block(self, size: int) -> SpectralNoise:
        """The law of the noise on a subspace of ``size`` dimensions (chosen without looking at the noise)."""
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
        """v: the mean square of an eigenvalue of the noise, at large d."""
        return self.size * self.cell_variance

    @property
    def dimensions(self) -> float:
        """Dimensions of the traceless symmetric matrices, (d − 1)(d + 2)/2."""
        return (self.size - 1) * (self.size + 2) / 2.0

    @property
    def energy(self) -> float:
        """E‖N − (tr N/d) I‖_F²."""
        return 2.0 * self.cell_variance * self.dimensions

    def correction(self, g: FloatOrComplex) -> FloatOrComplex:
        """R(g)·g."""
        result: FloatOrComplex = self.variance * g * g / ((1.0 - self.upper_skew * g) * (1.0 + self.lower_skew * g))
        return result

    @property
    def threshold(self) -> float:
        """Height over a flat spectrum from which an eigenvalue stands out of the noise (Baik, Ben Arous & Péché 2005).

        It is 1/g with g the least positive root of d/dg[1/g + R(g)] = 0.
        """
        return 1.0 / self._edge_point

    @property
    def edge(self) -> float:
        """Upper end of the spectrum of the noise, 1/g + R(g) at that root."""
        g = self._edge_point
        if math.isinf(g):  # the eigenvalues at the upper end are all the same: lim R(g) as g → ∞
            return self.variance / self.lower_skew
        return 1.0 / g + self.correction(g) / g

    @property
    def _edge_point(self) -> float:
        # The root s = g√v of (1 − as)²(1 + bs)² = s²(1 + ab s²), a = κ₊/√v, b = κ₋/√v; that it is the only one on (0, 1/a) is
        # shown in docs/derivations/repairs.md (edge and threshold).
        scale = math.sqrt(self.variance)
        a, b = self.upper_skew / scale, self.lower_skew / scale
        if a == b:
            q = a * a
            return math.sqrt(2.0 / (2.0 * q + 1.0 + math.sqrt(8.0 * q + 1.0))) / scale
        if b == 0.0:
            return 1.0 / (1.0 + a) / scale
        if a == 0.0:
            return 1.0 / (1.0 - b) / scale if b < 1.0 else math.inf

        def excess(s: float) -> float:
            return (1.0 - a * s) * (1.0 + b * s) - s * math.sqrt(1.0 + a * b * s * s)

        return float(scipy.optimize.brentq(excess, 0.0, 1.0 / a, xtol=1e-300, rtol=1e-14)) / scale


# Rotation-invariant repair: eigenvalues moved to what they are expected to be along the noisy eigenvectors.

_BANDWIDTH = 1.3
"""Of the kernel, in units of √v·d^(−1/3). Errors change by under 2 % between 1.0 and 1.5 (``docs/derivations/repairs.md``)."""
_MAX_BLOCK = 2**21


def rotation_invariant_eigenvalues(eigenvalues: FloatArray, noise: SpectralNoise) -> FloatArray:
    """Expected values of v_iᵀ G v_i, v_i the eigenvectors of a noisy matrix G + N.

    Of all matrices with the noisy eigenvectors, Σ v_i v_iᵀ (v_iᵀ G v_i) is nearest to G in Frobenius norm. For large d, noise
    that is free from G and no knowledge of the eigenvectors of G, v_iᵀ G v_i is close to

        λ_i − Im[R(g) g]/Im g,  g = lim (1/d) Σ_j 1/(λ_i − i0 − λ_j),

    R the R-transform of the noise (Bun, Allez, Bouchaud & Potters 2016). For Gaussian noise that is λ_i − 2v·Re g: the
    same as minimising Stein's unbiased risk estimate eigenvalue by eigenvalue.

    Parameters
    ----------
    eigenvalues : ndarray of shape (d,)
        λ, of the noisy matrix, ascending.

    Returns
    -------
    ndarray of shape (d,)
        Ascending, between the least and the largest λ; negative values are possible.

    Examples
    --------
    >>> noise = SpectralNoise(size=3, cell_variance=0.5, trace_variance=3.0)
    >>> rotation_invariant_eigenvalues(np.array([0.0, 20.0, 100.0]), noise).round(1)
    array([  0.1,  20. , 100. ])
    """
    if noise.variance == 0.0:
        return eigenvalues
    bandwidth = _BANDWIDTH * math.sqrt(noise.variance) * noise.size ** (-1.0 / 3.0)
    g = _stieltjes_transform(eigenvalues, bandwidth)
    expected = eigenvalues - np.imag(noise.correction(g)) / np.imag(g)
    monotone = scipy.optimize.isotonic_regression(expected).x  # the true values ascend with λ; the estimates need not
    return np.clip(monotone, eigenvalues[0], eigenvalues[-1])


def _stieltjes_transform(eigenvalues: FloatArray, bandwidth: float) -> npt.NDArray[np.complex128]:
    """g = h + iπρ at every eigenvalue, ρ their density smoothed by a normal kernel and h its Hilbert transform."""
    d = len(eigenvalues)
    result = np.empty(d, dtype=np.complex128)
    step = max(1, _MAX_BLOCK // d)
    for start in range(0, d, step):
        distance = (eigenvalues[start : start + step, None] - eigenvalues[None, :]) / (math.sqrt(2.0) * bandwidth)
        result.real[start : start + step] = scipy.special.dawsn(distance).mean(axis=1) * math.sqrt(2.0) / bandwidth
        result.imag[start : start + step] = np.exp(-(distance**2)).mean(axis=1) * math.sqrt(math.pi / 2.0) / bandwidth
    return result


def possible_eigenvalues(eigenvalues: FloatArray, upper: float | None) -> FloatArray:
    """The nearest eigenvalues, ascending with their index, that a Gram matrix of trace at most ``upper`` can have.

    The Euclidean projection on {x : 0 ≤ x, Σx ≤ upper} after an isotonic regression: subtract the least amount that, with
    negative values set to zero, brings the sum down to ``upper``. (Each is then at most ``upper``, too.)

    Examples
    --------
    >>> possible_eigenvalues(np.array([-2.0, 1.0, 5.0]), upper=4.0)
    array([0., 0., 4.])
    >>> possible_eigenvalues(np.array([-2.0, 1.0, 2.0]), upper=4.0)
    array([0., 1., 2.])
    """
    ascending = scipy.optimize.isotonic_regression(eigenvalues).x
    positive: FloatArray = np.maximum(ascending, 0.0)
    if upper is None or float(positive.sum()) <= upper:
        return positive
    descending = ascending[::-1]
    excess = (np.cumsum(descending) - upper) / np.arange(1, len(descending) + 1)
    kept = np.flatnonzero(descending > excess)  # empty where ``upper`` is lost in the rounding of the largest value
    within: FloatArray = np.maximum(ascending - excess[kept[-1] if len(kept) else 0], 0.0)
    return within


_OUTLIER_CENTER = 1.5
"""An eigenvalue so far beyond the edge is taken for an outlier with probability 1/2, in units of √v·d^(−2/3). In those units the
largest eigenvalue of noise has mean −1.2 and standard deviation 1.3 (Tracy & Widom 1996)."""
_OUTLIER_WIDTH = 2.0
"""The odds are e times as high for every such distance more, in the same units."""
_PRIOR_TRACES = np.exp(np.linspace(math.log(1e-4), 0.0, 240))
_CLEAR = 20.0
"""So many standard deviations above 0 a trace is taken as it is."""
_NEGLIGIBLE = 1e-3
"""A bulk of less weight than this is left out of the average."""


def bulk_and_outlier_eigenvalues(
    eigenvalues: FloatArray, noise: SpectralNoise, upper: float | None, attained: float = 0.0
) -> FloatArray:
    """Estimate v_iᵀ G v_i, v_i the eigenvectors of a noisy matrix G + N, at any noise and any d.

    The lowest b eigenvalues are taken for a bulk in which noise dominates, the others for outliers. Outliers get their
    rotation-invariant values. The bulk is pulled towards its mean by the share of its spread that the noise explains, which uses
    the whole bulk at once and so is steadier than any correction of single eigenvalues; its mean comes from what the trace leaves
    to it. The result is the average over b, weighted by how far each eigenvalue stands out of the bulk below it.

    Parameters
    ----------
    eigenvalues : ndarray of shape (d,)
        Of the noisy matrix, ascending.
    upper : float or None
        Bound on the trace of G; None where there is none.
    attained : float
        Prior probability that the trace of G equals ``upper``, as it does when all rows have the largest norm allowed.

    Returns
    -------
    ndarray of shape (d,)
        Ascending, non-negative, with a sum of at most ``upper``.

    Notes
    -----
    Derivation, and why the constants hardly matter: ``docs/derivations/repairs.md``.

    Examples
    --------
    >>> noise = SpectralNoise(size=4, cell_variance=0.5, trace_variance=4.0)
    >>> bulk_and_outlier_eigenvalues(np.array([-2.0, -0.5, 1.0, 40.0]), noise, upper=100.0).round(1)
    array([ 0. ,  0. ,  0. , 39.9])
    """
    d = len(eigenvalues)
    alone = rotation_invariant_eigenvalues(eigenvalues, noise)
    if noise.variance == 0.0 or d < 2:
        return possible_eigenvalues(alone, upper)
    deviation = math.sqrt(noise.trace_variance)
    trace = _trace_estimate(float(eigenvalues.sum()), deviation, upper, attained)
    above = np.append(
        np.cumsum(np.maximum(alone, 0.0)[::-1])[::-1], 0.0
    )  # above[b]: what outliers from b on take of the trace
    means = np.cumsum(eigenvalues) / np.arange(1, d + 1)
    total = np.zeros(d)
    assigned, open_weight = 0.0, 1.0
    for size in range(d, 0, -1):
        room = max(trace - float(above[size]), 0.0)
        mean = float(means[size - 1])
        within = noise.block(size)
        stands_out = _outlier_weight(float(eigenvalues[size - 1]) - mean, within, room) if size > 1 else 0.0
        weight, open_weight = open_weight * (1.0 - stands_out), open_weight * stands_out
        if weight > _NEGLIGIBLE:
            estimate = alone.copy()
            if size > 1:
                bulk = room / size + pooled_spread(eigenvalues[:size] - mean, within, _largest(room, deviation, upper))
                # Pooling gains where a bulk has many dimensions; in two it cannot (Stein 1956).
                local = min(1.0, 2.0 / within.dimensions)
                estimate[:size] = (1.0 - local) * bulk + local * alone[:size]
            total += weight * possible_eigenvalues(estimate, upper)
            assigned += weight
        if open_weight < _NEGLIGIBLE:
            break
    return total / assigned


def pooled_spread(deviations: FloatArray, noise: SpectralNoise, largest_trace: float) -> FloatArray:
    """Deviations from the mean, times the share of their sum of squares that noise does not explain.

    Parameters
    ----------
    deviations : ndarray of shape (b,)
        Eigenvalues less their mean.
    noise : SpectralNoise
        On the same b dimensions.
    largest_trace : float
        t: no matrix of trace at most t has ‖G − (tr G/b) I‖_F² above t²(1 − 1/b).
    """
    observed = float(np.sum(deviations**2))
    if observed == 0.0:
        return deviations
    possible = largest_trace**2 * (1.0 - 1.0 / len(deviations))
    spread = min(max(observed - noise.energy, 0.0), possible)
    return deviations * (spread / observed)


def _trace_estimate(noisy_trace: float, deviation: float, upper: float | None, attained: float = 0.0) -> float:
    """Estimate a trace known to lie in [0, upper], seen with noise of standard deviation ``deviation``.

    Its posterior mean, the noise being taken for normal. Prior: its logarithm uniform on four decades below ``upper``, since
    rows seldom fill their bounds. With ``attained`` > 0, for second moments: that probability on
    ``upper`` itself, and the possible value nearest to the noisy one in the place of the rest.

    Examples
    --------
    >>> _trace_estimate(2000.0, 10.0, upper=1000.0)
    1000.0
    >>> round(_trace_estimate(5.0, 10.0, upper=1000.0), 1)
    3.6
    >>> round(_trace_estimate(95.0, 10.0, upper=100.0, attained=0.2), 1)
    97.8
    """
    limit = math.inf if upper is None else upper
    nearest = min(max(noisy_trace, 0.0), limit)
    if upper is None or upper <= 0.0 or deviation == 0.0:
        return nearest
    if attained == 0.0:
        if noisy_trace > _CLEAR * deviation:
            return nearest
        possible = upper * _PRIOR_TRACES
        logarithms = -0.5 * ((noisy_trace - possible) / deviation) ** 2
        weights = np.exp(logarithms - logarithms.max())
        return float(weights @ possible / weights.sum())
    low, high = -noisy_trace / deviation, (limit - noisy_trace) / deviation
    at_limit = attained * math.exp(-high * high / 2.0) / (math.sqrt(2.0 * math.pi) * deviation)
    below = (1.0 - attained) * float(scipy.special.ndtr(high) - scipy.special.ndtr(low)) / limit
    if at_limit + below == 0.0:
        return nearest
    return (at_limit * limit + below * nearest) / (at_limit + below)


def _outlier_weight(height: float, noise: SpectralNoise, room: float) -> float:
    """Probability given to an eigenvalue, ``height`` above the mean of a bulk of which it is the largest, being an outlier."""
    unit = math.sqrt(noise.variance) * noise.size ** (-2.0 / 3.0)
    beyond = ((height - noise.edge) / unit - _OUTLIER_CENTER) / _OUTLIER_WIDTH
    # An eigenvalue of G stands out only from the threshold on, and none is larger than the trace.
    threshold = noise.threshold
    can_stand_out = min(1.0, max(0.0, 2.0 * (room / threshold - 1.0))) if threshold > 0.0 else 1.0
    return float(scipy.special.expit(beyond)) * can_stand_out


def _largest(room: float, deviation: float, upper: float | None) -> float:
    reach = room + 2.0 * deviation
    return reach if upper is None else min(reach, upper)
