"""Exact privacy loss between two tables, for outputs of known density."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.base.one_variable import brent_root
from dpmoments.base.values import FloatArray, bordered
from dpmoments.mechanisms.base import Plan
from dpmoments.moments.models import AdditiveModel, CenteredLevelsModel, NoiseModel
from dpmoments.papers.mechanisms.eigenvectors import IterativeEigenvectorsPlan, temperature
from dpmoments.papers.sphere import envelope_parameter
from dpmoments.privacy.curves import gaussian_epsilon, zcdp_epsilon
from dpmoments.privacy.laws import DiscreteGaussian, DiscreteLaplace, KNorm, MatrixLaplaceDraw
from dpmoments.privacy.receipt import Draw
from dpmoments.privacy.sensitivity import query_distance
from dpmoments.rows.moments import ExactMoments

_ORDERS = 1.0 + np.geomspace(1e-3, 1e3, 121)
"""Rényi orders to try; the supremum over all orders is larger by less than a thousandth."""

_ROUNDING = 1e-9


class ShiftLoss(NamedTuple):
    """Privacy loss between two tables whose exact moments are known."""

    # the least ε; of normal noise the distance μ in standard deviations. Infinite if what has no noise differs.
    size: float
    is_gaussian: bool = False  # true if `size` is μ, and every pair (ε, δ) follows from it


def shift_loss(
    model: NoiseModel, gram_shift: FloatArray, sum_shift: FloatArray, count_shift: float
) -> ShiftLoss | None:
    """Return the exact privacy loss between two tables whose moments are so far apart.

    None without a closed form.
    """
    if not isinstance(model, AdditiveModel):
        return None
    if not isinstance(model, CenteredLevelsModel):
        return _added_loss(model, gram_shift, sum_shift, count_shift)
    about, outside = np.eye(model.n_features + 1), np.eye(model.n_features + 1)
    about[1:, 0] = -model.center
    shift = about @ bordered(count_shift, sum_shift, gram_shift) @ about.T
    outside[0, 0] = 0.0
    outside[1:, 1:] -= model.projection
    if np.abs(outside @ shift).max() > _ROUNDING * max(1.0, float(np.abs(shift).max())):
        return ShiftLoss(math.inf)
    return _added_loss(model, shift[1:, 1:], shift[0, 1:], count_shift)


def loss_dimension(model: NoiseModel) -> int | None:
    """Return the number k of noisy values, if the noise's own loss has a gamma distribution.

    None without a closed form. Pure noise of density ∝ exp(−loss(z)) has a loss of Gamma(k, 1), and half the squared
    loss of Gaussian noise is Gamma(k/2, 1), since the loss is homogeneous in z.
    """
    if not isinstance(model, AdditiveModel):
        return None
    m = round(float(np.trace(model.projection))) if isinstance(model, CenteredLevelsModel) else model.n_features
    zeros = np.zeros((m, m)), np.zeros(m), 0.0
    cells, known = _noisy_cells(model, *zeros), _added_loss(model, *zeros) is not None
    return len(cells) + bool(model.count_scale) if cells and known else None


def _added_loss(
    model: AdditiveModel, gram_shift: FloatArray, sum_shift: FloatArray, count_shift: float
) -> ShiftLoss | None:
    """Return the loss of noise that is added entry by entry, the count's own noise included."""
    loss, cells = None, _noisy_cells(model, gram_shift, sum_shift, count_shift)
    rate = float(model.rate or 0.0)
    if cells is None:
        loss = ShiftLoss(math.inf)
    elif model.family == "gaussian":
        loss = ShiftLoss(math.sqrt(math.fsum(shift**2 / variance for shift, variance in cells)), is_gaussian=True)
    elif model.family == "laplace":
        loss = ShiftLoss(math.fsum(abs(shift) / math.sqrt(variance / 2.0) for shift, variance in cells))
    elif model.family == "isotropic":
        # a svec coordinate has the diagonal's variance, whichever cell it stands for
        square = math.fsum(shift**2 / variance for shift, variance in cells) * model.diagonal_variance
        loss = ShiftLoss(rate * math.sqrt(square))
    elif model.family == "matrix-laplace" and (model.sum_variance is None or model.count_variance):
        shift = gram_shift
        if model.sum_variance is not None:
            w = math.sqrt(model.off_diagonal_variance / model.sum_variance)
            shift = bordered(w * w * count_shift, w * sum_shift, gram_shift)
        loss = ShiftLoss(rate * float(np.abs(np.linalg.eigvalsh(shift)).sum()))
    if loss is None or not model.count_scale:
        return loss
    if loss.is_gaussian == model.count_is_laplace:
        return None  # the sum of a Gaussian loss and a Laplace loss has no closed form
    of_count = abs(count_shift) / model.count_scale
    size = math.hypot(loss.size, of_count) if loss.is_gaussian else loss.size + of_count
    return ShiftLoss(size, is_gaussian=loss.is_gaussian)


def _noisy_cells(
    model: AdditiveModel, gram_shift: FloatArray, sum_shift: FloatArray, count_shift: float
) -> list[tuple[float, float]] | None:
    """Return (shift, noise variance) of every noisy cell; None if one without noise moves."""
    size = len(gram_shift)
    cells = [(float(gram_shift[i, i]), model.diagonal_variance) for i in range(size)]
    cells += [(float(shift), model.off_diagonal_variance) for shift in gram_shift[np.triu_indices(size, 1)]]
    if model.sum_variance is not None:
        cells += [(float(shift), model.sum_variance) for shift in sum_shift]
    if model.count_variance is not None:
        cells.append((float(count_shift), model.count_variance))
    if any(variance == 0.0 and shift != 0.0 for shift, variance in cells):
        return None
    return [(shift, variance) for shift, variance in cells if variance > 0.0]


def noise_epsilon(
    model: NoiseModel, first: ExactMoments, second: ExactMoments, delta: float, *, rate: float = 1.0
) -> float | None:
    """Return the smallest ε of (ε, δ) between two tables under additive noise.

    The noise has 1/``rate`` times the stated scale. None without a closed form, and infinite if a cell without noise differs.
    Laplace and matrix Laplace noise is pure: its loss at δ = 0 is returned for any ``delta``. Rows have norm at most 1.
    """
    shifts = gram_of(second) - gram_of(first), _sum(second) - _sum(first), float(second.count - first.count)
    loss = shift_loss(model, *shifts)
    if loss is None or not loss.is_gaussian or loss.size == 0.0:
        return None if loss is None else rate * loss.size
    return gaussian_epsilon(delta, rate * loss.size, 1.0) if delta > 0.0 else math.inf


NoisyMoments = tuple[FloatArray, FloatArray | None, float]
"""Noisy Gram matrix, sum and count of a run."""


def noise_rate_at_least(
    model: NoiseModel, samples: Sequence[tuple[ExactMoments, Sequence[NoisyMoments]]], failure: float
) -> float | None:
    """Return a lower confidence bound on the rate of additive noise."""
    # It is in units of the stated rate. `samples` has the exact moments of a table with the noisy moments of runs on
    # it. The loss of pure noise over N runs of k values is Gamma(Nk, 1/rate) or larger, and half the squared loss of
    # Gaussian noise Gamma(Nk/2, 1/rate²) (`docs/evidence/derivations/measured-noise.md`). None without a closed form.
    k = loss_dimension(model)
    if k is None:
        return None
    total, count, is_gaussian = 0.0, 0, False
    for exact, runs in samples:
        gram, own_sum = gram_of(exact), _sum(exact)
        for noisy_gram, noisy_sum, noisy_count in runs:
            shift = np.zeros_like(own_sum) if noisy_sum is None else noisy_sum - own_sum
            loss = shift_loss(model, noisy_gram - gram, shift, noisy_count - exact.count)
            assert loss is not None
            is_gaussian, count = loss.is_gaussian, count + 1
            total += loss.size**2 / 2.0 if loss.is_gaussian else loss.size
    return _rate_at_least(total, count * k, failure, is_gaussian=is_gaussian)


def _rate_at_least(loss: float, values: int, failure: float, *, is_gaussian: bool) -> float:
    """Return a lower confidence bound on the rate of noise, from its loss on all values."""
    # Of normal noise `loss` is half the square.
    shape = values / 2.0 if is_gaussian else float(values)
    rate = float(scipy.special.gammaincinv(shape, failure)) / loss if loss > 0.0 else math.inf
    return math.sqrt(rate) if is_gaussian else rate


_LEAST_SCALE = 30.0
"""Scale, in lattice units, from which discrete noise is measured as if continuous."""


def draw_rates_at_least(exchanges: Iterable[tuple[Draw, FloatArray, FloatArray]], failure: float) -> dict[str, float]:
    """Return lower confidence bounds on the rates of noise draws, by query and distribution."""
    # `exchanges` has each draw with its query and answer; laws that add no noise of one scale are left out. The gamma
    # laws are those of `noise_rate_at_least`, for a draw in place of a run.
    totals: dict[str, tuple[float, int, bool]] = {}
    for made, query, answer in exchanges:
        law, noise = made.law, np.atleast_1d(np.asarray(answer, dtype=np.float64) - np.asarray(query, dtype=np.float64))
        upper = np.triu_indices(len(noise)) if noise.ndim == 2 else np.arange(len(noise))
        cells, is_gaussian = noise[upper], isinstance(law, DiscreteGaussian)
        if isinstance(law, DiscreteGaussian) and min(law.lattice_scales) >= _LEAST_SCALE:
            scales: FloatArray | float = law.scale
            if noise.ndim == 2 and law.off_diagonal_scale is not None:
                scales = np.where(upper[0] == upper[1], law.scale, law.off_diagonal_scale)
            ratios = cells / scales
            loss = float(ratios @ ratios) / 2.0
        elif isinstance(law, DiscreteLaplace) and law.scale >= _LEAST_SCALE:
            loss = float(np.abs(cells).sum()) / law.scale
        elif isinstance(law, KNorm) and law.scale >= _LEAST_SCALE:
            loss = query_distance(law.norm, cells, 0.0 * cells, made.sensitivity.neighbors, law.blocks) / law.scale
        elif isinstance(law, MatrixLaplaceDraw):
            loss = law.rate * float(np.abs(np.linalg.eigvalsh(noise)).sum()) / 4.0**law.bits
        else:
            continue
        key = f"{made.what.code}, {law.name}"
        before = totals.get(key, (0.0, 0, is_gaussian))
        totals[key] = before[0] + loss, before[1] + len(cells), is_gaussian
    return {
        key: _rate_at_least(loss, values, failure / len(totals), is_gaussian=is_gaussian)
        for key, (loss, values, is_gaussian) in totals.items()
    }


def gram_of(moments: ExactMoments) -> FloatArray:
    """Return the exact Gram matrix of encoded rows, shape (d, d)."""
    return np.asarray(moments.gram, dtype=np.float64) * moments.scale**2


def _sum(moments: ExactMoments) -> FloatArray:
    return np.asarray(moments.sum, dtype=np.float64) * moments.scale


def bingham_epsilon(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return the largest log-ratio, in either order, of two Bingham densities ∝ exp(uᵀMu).

    It is sup_u |uᵀ(M₁ − M₂)u − log Z₁ + log Z₂|, attained by an eigenvector of M₁ − M₂, for symmetric matrices M:
    temperature times Gram matrix.

    Examples
    --------
    >>> round(bingham_epsilon(np.diag([3.0, 2.0]), np.diag([2.0, 3.0])), 9)
    1.0
    """
    ours, theirs = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    shifts = np.linalg.eigvalsh(ours - theirs)
    constant = _bingham_log_normalizer(np.linalg.eigvalsh(theirs)) - _bingham_log_normalizer(np.linalg.eigvalsh(ours))
    return float(max(abs(shifts[0] + constant), abs(shifts[-1] + constant)))


def _bingham_rho(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """Return the smallest ρ of ρ-zCDP between Bingham densities of two matrices."""
    # In either order. sup_α D_α/α, with D_α = (log Z(αM₁ + (1 − α)M₂) − α log Z(M₁) + (α − 1) log Z(M₂))/(α − 1).
    ours, theirs = np.asarray(first, dtype=np.float64), np.asarray(second, dtype=np.float64)
    largest = 0.0
    for one, other in ((ours, theirs), (theirs, ours)):
        ends = [_bingham_log_normalizer(np.linalg.eigvalsh(matrix)) for matrix in (one, other)]
        for order in _ORDERS:
            mixed = _bingham_log_normalizer(np.linalg.eigvalsh(order * one + (1.0 - order) * other))
            divergence = (mixed - order * ends[0] + (order - 1.0) * ends[1]) / (order - 1.0)
            largest = max(largest, float(divergence / order))
    return largest


def _bingham_log_normalizer(eigenvalues: npt.ArrayLike) -> float:
    """Return log E[exp(Σ eigenvalues_i u_i²)] for u uniform on the sphere."""
    # With λ_i = max − eigenvalues_i the mean of e^{−uᵀΛu} is Γ(d/2)·(1/2πi)∫ e^s Π (s + λ_i)^{−1/2} ds
    # (``docs/evidence/derivations/bingham.md``). The contour is a parabola through the saddle point, off the cut, on which the
    # trapezoid rule converges geometrically. In the plane it is exp(trace/2)·I₀(gap/2).
    values = np.asarray(eigenvalues, dtype=np.float64)
    d, top = len(values), float(values.max())
    gaps = top - values
    if d == 1:
        return top
    if d == 2:
        return top + math.log(float(scipy.special.i0e(gaps.max() / 2.0)))
    saddle = envelope_parameter(gaps) / 2.0
    step = 0.05 / math.sqrt(d)
    grid = np.arange(-math.sqrt(40.0 / saddle), math.sqrt(40.0 / saddle), step)
    root = 1.0 + 1j * grid
    point = saddle * root**2
    log_terms = point - saddle
    for gap in gaps:
        log_terms -= 0.5 * np.log((point + gap) / (saddle + gap))
    integral = float((np.exp(log_terms) * 2.0 * saddle * root).real.sum()) * step / (2.0 * math.pi)
    log_scale = saddle - 0.5 * float(np.log(saddle + gaps).sum())
    return top + math.lgamma(d / 2.0) + log_scale + math.log(integral)


_DISTINCT = 1e-6
"""Relative eigenvalue gap above which the leading eigenvector shows the drawn direction."""


def stated_temperature(plan: Plan) -> float | None:
    """Return the t that a plan states for its first direction if it pays for only one.

    Else None. Then t is public, and does not depend on earlier draws.
    """
    if not isinstance(plan, IterativeEigenvectorsPlan) or plan.direction_budget is None:
        return None
    if min(plan.rank, plan.shape.n_features - 1) != 1:
        return None
    return temperature(plan.direction_budget, plan.neighbors, plan.mechanism.calibration)


def one_direction_epsilon(
    plan: Plan, first: ExactMoments, second: ExactMoments, delta: float, *, strength: float | None = None
) -> float | None:
    """Return the exact loss between two tables of everything that a run draws.

    ``strength`` replaces the stated temperature; ``delta`` is used by zCDP plans, whose smallest ρ is stated as the ε
    it implies. None for plans that do not pay for exactly one direction. Laplace noise on eigenvalues, sum and count:
    the suprema of their log-ratios add to the direction's, since the draws are independent and each supremum is
    attained on either side. Gaussian noise: its Rényi divergences αμ²/2 and the direction's closed forms add. The
    output is sorted and clipped, and may lose less.
    """
    t = stated_temperature(plan)
    if t is None:
        return None
    assert isinstance(plan, IterativeEigenvectorsPlan)
    t = t if strength is None else strength
    grams = [gram_of(first), gram_of(second)]
    eigenvalues = [np.linalg.eigvalsh(gram) for gram in grams]
    shifts = list((eigenvalues[1] - eigenvalues[0]) / plan.eigenvalue_scale)
    if plan.sum_scale is not None:
        shifts += list((_sum(second) - _sum(first)) / plan.sum_scale)
        if not plan.count_is_public:
            shifts.append((second.count - first.count) / plan.sum_scale)
    hot = t * grams[0], t * grams[1]
    if plan.pure:
        return math.fsum(map(abs, shifts)) + bingham_epsilon(*hot)
    rho = math.fsum(shift**2 for shift in shifts) / 2.0 + _bingham_rho(*hot)
    return zcdp_epsilon(rho, delta) if rho > 0.0 else 0.0


def leading_scores(grams: FloatArray, exact: FloatArray) -> FloatArray:
    """Return uᵀGu less its largest value, for leading eigenvectors u of released matrices."""
    # Matrices with two equal leading eigenvalues do not show the direction and are dropped: the noise on eigenvalues is
    # independent of it.
    eigenvalues, vectors = np.linalg.eigh(grams)
    shown = eigenvalues[:, -1] - eigenvalues[:, -2] > _DISTINCT * np.abs(eigenvalues).max(axis=1)
    u = vectors[shown, :, -1]
    gaps = np.linalg.eigvalsh(exact)[-1] * np.eye(len(exact)) - exact
    return np.asarray(-np.einsum("ni,ij,nj->n", u, gaps, u))


def temperature_at_least(scores: Sequence[FloatArray], exact: Sequence[FloatArray], failure: float) -> float:
    """Return a lower confidence bound on the temperature of Bingham draws on several tables.

    The density exp(t·s(u) − log Z(t)) is an exponential family in t with score s (:func:`leading_scores`). By
    Chernoff's bound the total score of the draws reaches S with probability at most exp(−[f(t̂) − f(t)]) at any t below
    t̂, where f(t) = tS − Σ log Z(t) has its maximum at t̂. The bound is the t at which that is ``failure``. If
    temperatures differ between draws, it bounds the largest.
    """
    total = math.fsum(float(part.sum()) for part in scores)
    spectra = [np.linalg.eigvalsh(gram) for gram in exact]
    counted = [(len(part), spectrum - spectrum[-1]) for part, spectrum in zip(scores, spectra, strict=True)]

    def log_likelihood(t: float) -> float:
        return t * total - math.fsum(size * _bingham_log_normalizer(t * spectrum) for size, spectrum in counted)

    highest = 1.0
    while log_likelihood(2.0 * highest) > log_likelihood(highest):
        highest *= 2.0
    result = scipy.optimize.minimize_scalar(
        lambda t: -log_likelihood(t), bounds=(0.0, 2.0 * highest), method="bounded", options={"xatol": 1e-9}
    )
    likeliest = float(result.x)
    enough = log_likelihood(likeliest) + math.log(failure)
    if enough <= 0.0:  # the uniform distribution, where f is 0, is not excluded
        return 0.0
    return brent_root(lambda t: log_likelihood(t) - enough, 0.0, likeliest)
