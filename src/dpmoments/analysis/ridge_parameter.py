"""The ridge parameter that a release itself asks for: from the law of its noise (``docs/derivations/ridge-parameter.md``)."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.analysis.answers import in_floating_point
from dpmoments.analysis.regressors import regressed_moment
from dpmoments.analysis.released import Released
from dpmoments.foundation.arrays import FloatArray
from dpmoments.privacy import sensitivity
from dpmoments.privacy.budget import BudgetKind
from dpmoments.repair.repair import exact_law
from dpmoments.repair.spectral import SpectralNoise

_TAKEN_BY_REPAIR = 0.5
"""Of the noise that a repair took off the features' moments, the share that counts as gone."""
_EXPLAINED_SHARES = (np.arange(40) + 0.5) / 40.0
"""Prior of the share of the target's variance that the features explain: uniform."""
_VARIANCE_EXPONENTS = (0.0, 0.5)
"""Prior variance of a coefficient ∝ (variance of its direction)^(−a): a = 0 for coefficients alike in all directions."""
_SCALES = np.array([0.25, 1.0, 4.0])
"""A coefficient's own prior variance is the common one times one of these, equally likely."""
_MIN_DIRECTION = 1e-9
"""Directions with less of the largest variance than this are taken for constant where a is above 0."""
_PENALTIES = 200
_MIN_PENALTY, _MAX_PENALTY = 0.02, 1e3
"""The grid of 2α: from this multiple of σ√k to that of σ√k or of the largest variance, whichever is more."""
_SINGULAR = 1e-11
"""2α is at least this share of the trace, below which the system would count as singular."""


@dataclass(frozen=True, slots=True, eq=False)
class _Spectrum:
    """A regression in the eigenbasis of the features' repaired moments.

    Attributes
    ----------
    variances : ndarray of shape (k,)
        s, the repaired moments along each eigenvector.
    vectors : ndarray of shape (k, k)
        The eigenvectors, one a column.
    solved, observed : ndarray of shape (k,)
        Cross moments with the target as they enter the system (repaired), and as observed (with noise of a known law).
    target_variance : float
    noise_variance : float
        v, of a cell off the diagonal, for one row's moments: what counts of it after the repair.
    """

    variances: FloatArray
    vectors: FloatArray
    solved: FloatArray
    observed: FloatArray
    target_variance: float
    noise_variance: float


@in_floating_point
def automatic_alpha(release: Released, features: Sequence[int], target: int, *, intercept: bool) -> float:
    """The α at which ridge regression on a release comes nearest to what the noise lets one know of the coefficients.

    The posterior mean of the coefficients given the noisy cross moments is worked out in the eigenbasis of the features'
    moments, for a prior that the release and the law of its noise determine. α is then the one whose fit
    (S_AA + 2α I) w = S_Ay, on the repaired moments, has the least expected loss against it.

    Parameters
    ----------
    release : Released
    features : sequence of int
        Positions of the k features A in the release's arrays.
    target : int
        Position of the target y, none of the features.
    intercept : bool
        Whether S is the covariance (True), or the second moment about the zero of the table's units (about that of the unit
        ball where no mean was released).

    Returns
    -------
    float
        Above 0 and finite; in unit-ball units, as ``alpha`` of a ridge regression is. It tends to 0 with the noise, and where
        all is noise it is so large that the coefficients are nearly 0.

    Raises
    ------
    ValueError
        If no number of rows was released, an intercept is asked of a release without a mean, or the numbers leave the range of
        floating point.

    Notes
    -----
    Post-processing: it costs no privacy. If ``release.noise`` is None or has caveats, the size of the noise is taken to be that
    of noise added to every cell at the same budget, and nothing is known of what a repair took off.

    Source: the normal-means problem with a scale mixture as the prior (West 1987), Cov(N b) = v(‖b‖² I + b bᵀ) for the noise.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> x = np.random.default_rng(0).uniform(-0.5, 0.5, 50_000)
    >>> table = np.column_stack([x, 0.1 + 0.8 * x])
    >>> released = dpm.release(table, dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0)
    >>> automatic_alpha(released, [0], 1, intercept=True) < 1e-3
    True
    """
    spectrum = _spectrum(release, list(features), target, intercept)
    return _nearest_penalty(spectrum, _posterior_means(spectrum)) / 2.0


@in_floating_point
def expected_coefficients(release: Released, features: Sequence[int], target: int, *, intercept: bool) -> FloatArray:
    """The posterior mean of the encoded coefficients that :func:`automatic_alpha` compares ridge fits with, shape (k,).

    Parameters and errors are the same. A fit in its own right, with a penalty for each direction.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> x = np.random.default_rng(0).uniform(-0.5, 0.5, 50_000)
    >>> table = np.column_stack([x, 0.1 + 0.8 * x])
    >>> released = dpm.release(table, dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0)
    >>> expected_coefficients(released, [0], 1, intercept=True).round(2)
    array([0.8])
    """
    spectrum = _spectrum(release, list(features), target, intercept)
    return spectrum.vectors @ _posterior_means(spectrum)


def _spectrum(release: Released, features: list[int], target: int, intercept: bool) -> _Spectrum:
    moment = regressed_moment(release, intercept=intercept)
    block = np.ix_(features, features)
    variances, vectors = np.linalg.eigh(moment[block])
    solved = vectors.T @ moment[features, target]
    if exact_law(release.noise) is None:
        observed, noise_variance = solved, _typical_noise(release, moment)
    else:
        raw_release = release.with_repair("none")
        raw, noise_variance = (
            regressed_moment(raw_release, intercept=intercept),
            _cell_variance(release, raw_release, intercept),
        )
        observed = vectors.T @ raw[features, target]
        k = len(features)
        if noise_variance > 0.0:
            energy = noise_variance * k * (k + 1)  # E‖N_AA‖²
            taken = float(((moment - raw)[block] ** 2).sum()) / energy
            noise_variance *= 1.0 - _TAKEN_BY_REPAIR * min(taken, 1.0)
    return _Spectrum(
        variances=np.maximum(variances, 0.0),
        vectors=vectors,
        solved=solved,
        observed=observed,
        target_variance=max(float(moment[target, target]), 0.0),
        noise_variance=noise_variance,
    )


def _cell_variance(release: Released, raw_release: Released, intercept: bool) -> float:
    """v: of the noise on a cell of the moments off the diagonal, for one row; that on the mean is spread over all cells."""
    noise, n_rows = release.noise, release.n_rows
    assert noise is not None
    if release.noisy_sum is not None:
        about_center = release.noisy_sum / n_rows
        if intercept:
            noise = noise.about(-about_center)
        else:
            # Σ(u + o)(u + o)ᵀ for rows u about the centre holds the noise on Σu times o, the centre seen from the table's zero
            origin = raw_release.unit_ball_mean - about_center + release.encoding.offset / release.encoding.scale
            noise = noise.about(origin)
    return SpectralNoise.of(noise).cell_variance / n_rows**2


def _typical_noise(release: Released, moment: FloatArray) -> float:
    """v of Gaussian noise on the whole Gram matrix at the release's budget, of matrix Laplace noise under a pure one.

    Where rows have no bound, they are taken for bounded by the square root of the trace of their second moment.
    """
    budget, neighbors, d = release.privacy.budget, release.privacy.neighbors, len(moment)
    k = release.privacy.rows_per_unit  # what is left for one row: a k-th of ε, a k²-th of ρ
    if budget.kind is BudgetKind.PURE:
        rate = budget.epsilon / k / sensitivity.gram_nuclear(neighbors, d).value
        variance = (d + 1) / (2.0 * rate**2)
    else:
        variance = sensitivity.gram_frobenius(neighbors, d).value ** 2 / (4.0 * budget.to_rho() / k**2)
    square = 1.0 if release.schema.row_norm is not None else max(float(np.trace(moment)), 0.0)
    return variance * square**2 / release.n_rows**2


def _posterior_means(spectrum: _Spectrum) -> FloatArray:
    """Posterior means of the coefficients along each eigenvector, shape (k,).

    With c = s·w + e, Var e = v(1 + ‖w‖²) and w ~ N(0, τ²·s^(−a)·g), g one of ``_SCALES``; τ² by the explained share
    Σ s·E[w²] / Var(y), which is averaged over, as a is, with the likelihood of c as weights.
    """
    s, c, v = spectrum.variances, spectrum.observed, spectrum.noise_variance
    if v == 0.0:
        return np.divide(c, s, out=np.zeros_like(s), where=s > 0.0)
    if spectrum.target_variance == 0.0 or not s.any():
        return np.zeros_like(s)
    priors = []
    for exponent in _VARIANCE_EXPONENTS:
        profile = np.ones_like(s)
        if exponent:
            profile = np.where(s > _MIN_DIRECTION * s.max(), np.maximum(s, _MIN_DIRECTION * s.max()) ** -exponent, 0.0)
        share = _EXPLAINED_SHARES[:, None] * spectrum.target_variance / (s @ profile)
        priors.append(share * profile)
    prior = np.concatenate(priors)  # E[w²], one row a hypothesis
    noise = v * (1.0 + prior.sum(axis=1))[:, None, None]
    own = prior[:, :, None] * (_SCALES / _SCALES.mean())
    spread = s[:, None] ** 2 * own + noise
    log_density = -0.5 * (np.log(spread) + c[:, None] ** 2 / spread)
    largest = log_density.max(axis=2, keepdims=True)
    density = np.exp(log_density - largest)
    total = density.sum(axis=2, keepdims=True)
    means = (density / total * s[:, None] * own / spread).sum(axis=2) * c
    log_likelihood = (largest + np.log(total)).sum(axis=(1, 2))
    weights = np.exp(log_likelihood - log_likelihood.max())
    return np.asarray(weights @ means / weights.sum())


def _nearest_penalty(spectrum: _Spectrum, expected: FloatArray) -> float:
    """2α of least Σ (s + σ)(ŵ(α) − E[w])²: a variance is known to about σ = √v."""
    s, deviation = spectrum.variances, math.sqrt(spectrum.noise_variance)
    unit = deviation * math.sqrt(len(s))
    singular = _SINGULAR * max(1.0, float(s.sum()))
    least = max(_MIN_PENALTY * unit, singular)
    penalties = np.geomspace(least, max(_MAX_PENALTY * max(unit, float(s.max())), 2.0 * least), _PENALTIES)
    fits = spectrum.solved / (s + penalties[:, None])
    losses = ((s + deviation) * (fits - expected) ** 2).sum(axis=1)
    return float(penalties[int(losses.argmin())])
