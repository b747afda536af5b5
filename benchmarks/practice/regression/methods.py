"""Methods that spend all their budget on one regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np
import numpy.typing as npt
from scipy.optimize import brentq, minimize_scalar
from scipy.special import ndtri

from dpmoments.base.values import FloatArray
from dpmoments.noise import matrix_laplace, symmetric_gaussian
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import gaussian_noise_scale
from dpmoments.privacy.unit import Neighbors

# Noise on a vector of known Euclidean sensitivity, under a pure or an approximate budget.


@cache
def gaussian_distance(budget: PrivacyBudget) -> float:
    """μ of an (ε, δ) budget: Gaussian noise of σ on a query of sensitivity Δ may have Δ/σ = μ (Balle & Wang 2018).

    Several such queries, each perhaps chosen by the answers before, spend √Σμ² together (Dong, Roth & Su 2022, corollary 3.3).
    """
    if budget.kind is not BudgetKind.APPROXIMATE:
        raise ValueError(f"Gaussian noise has no calibration to {budget}: give epsilon and delta above 0")
    return 1.0 / gaussian_noise_scale(budget.epsilon, budget.delta, 1.0)


def vector_noise(
    size: tuple[int, ...], sensitivity: float, budget: PrivacyBudget, share: float, rng: np.random.Generator
) -> FloatArray:
    """Noise for a query of shape (k, …), one column a run, at a share of a budget.

    Under a pure budget of density ∝ exp(−ε·share‖z‖₂/Δ): a uniform direction of length Gamma(k, Δ/(ε·share)), and shares of
    queries add up to 1 (Chaudhuri et al. 2011, algorithm 1). Else Gaussian, with Δ/σ = μ√share: shares add up to 1, too.
    """
    normal = rng.standard_normal(size)
    if budget.kind is BudgetKind.PURE:
        length = rng.gamma(size[0], sensitivity / (budget.epsilon * share), size[1:])
        return normal / np.linalg.norm(normal, axis=0) * length
    return normal * (sensitivity / (gaussian_distance(budget) * np.sqrt(share)))


# AdaSSP (Wang 2018, algorithm 2): sufficient statistics with noise, and a ridge just large enough for it.

FAILURE = 0.05
"""ϱ of the paper: its bounds fail with this probability."""
PARTS = 3
"""Queries, each at a third of the budget: the least eigenvalue, XᵀX, Xᵀy; all of sensitivity 1 under add-remove."""


@dataclass(frozen=True, eq=False)
class NoisyStatistics:
    """What AdaSSP releases."""

    gram: FloatArray  # (k, k)
    cross: FloatArray  # (k,)
    least_eigenvalue: float  # A lower bound on that of XᵀX but with probability ``FAILURE``, at least 0
    noise_norm: float  # A bound on the spectral norm of the noise in ``gram``, with the same exception


def noisy_statistics(
    gram: FloatArray, cross: FloatArray, budget: PrivacyBudget, rng: np.random.Generator
) -> NoisyStatistics:
    """The three parts, calibrated jointly.

    Where the paper gives each (ε/3, δ/3) by the classical bound, here Δ/σ = μ/√3 each, μ that of the whole (ε, δ) budget: all
    three together are one Gaussian mechanism. The noise on XᵀX is isotropic, with half the variance off the diagonal, and the
    bound on its norm is a simulated quantile in place of the paper's √(k log(2k²/ϱ)), which is larger. Under a pure ε, for which
    the paper has nothing: ε/3 each, Laplace, matrix Laplace and noise of Gamma length.
    """
    k, least = len(cross), float(np.linalg.eigvalsh(gram)[0])
    if budget.kind is BudgetKind.PURE:
        scale = PARTS / budget.epsilon
        noise = matrix_laplace(k, 1.0 / scale, rng)
        least += scale * (float(rng.laplace()) - math.log(0.5 / FAILURE))
    else:
        scale = math.sqrt(PARTS) / gaussian_distance(budget)
        noise = symmetric_gaussian(k, scale, rng)
        least += scale * (float(rng.standard_normal()) + float(ndtri(FAILURE)))
    norm = scale * typical_norm(k, budget.kind)
    noisy_cross = cross + vector_noise((k,), 1.0, budget, 1.0 / PARTS, rng)
    return NoisyStatistics(gram + noise, noisy_cross, max(least, 0.0), norm)


@cache
def typical_norm(k: int, kind: BudgetKind) -> float:
    """What the spectral norm of the noise on XᵀX at scale 1 passes with probability ``FAILURE``, of 400 draws."""
    rng = np.random.default_rng(k)
    draw = matrix_laplace if kind is BudgetKind.PURE else symmetric_gaussian
    norms = [float(np.abs(np.linalg.eigvalsh(draw(k, 1.0, rng))).max()) for _ in range(400)]
    return float(np.quantile(norms, 1.0 - FAILURE))


def adassp(gram: FloatArray, cross: FloatArray, budget: PrivacyBudget, rng: np.random.Generator) -> FloatArray:
    """The weights of one run, shape (k,): (XᵀX + noise + λI)⁻¹(Xᵀy + noise).

    λ = max(0, bound on the noise − bound on the least eigenvalue).
    """
    found = noisy_statistics(gram, cross, budget, rng)
    ridge = max(0.0, found.noise_norm - found.least_eigenvalue)
    return np.asarray(np.linalg.solve(found.gram + ridge * np.eye(len(cross)), found.cross))


# Boosted AdaSSP (Tang et al. 2023, arXiv 2303.03451, algorithm 1): one noisy Gram matrix, many noisy residual sums.


def boosted_adassp(
    rows: FloatArray, target: FloatArray, budget: PrivacyBudget, rng: np.random.Generator, rounds: int = 100
) -> FloatArray:
    """Return the weights of one run, shape (k,).

    The least eigenvalue, XᵀX and all rounds together have a third of the squared Gaussian distance each, as in AdaSSP here. A
    round asks for the sum of x·clip(y − xᵀw, −1, 1), of sensitivity 1, and adds (XᵀX + noise + λI)⁻¹ of it to w. The authors'
    program (github.com/shuaitang/BoostedAdaSSP) has 100 rounds by default.
    """
    if budget.kind is not BudgetKind.APPROXIMATE:
        raise ValueError("boosted AdaSSP is for (ε, δ)")
    k = rows.shape[1]
    scale = math.sqrt(PARTS) / gaussian_distance(budget)
    gram = rows.T @ rows
    least = float(np.linalg.eigvalsh(gram)[0]) + scale * (float(rng.standard_normal()) + float(ndtri(FAILURE)))
    ridge = max(0.0, scale * typical_norm(k, budget.kind) - max(least, 0.0))
    system = gram + symmetric_gaussian(k, scale, rng) + ridge * np.eye(k)
    weights = np.zeros(k)
    for _ in range(rounds):
        residual_sum = rows.T @ np.clip(target - rows @ weights, -1.0, 1.0)
        noise = scale * math.sqrt(rounds) * rng.standard_normal(k)
        weights = weights + np.linalg.solve(system, residual_sum + noise)
    return weights


# Output perturbation of ridge regression: the baseline P of Amin et al. 2019, after Chaudhuri, Monteleoni & Sarwate 2011.


def minimiser_sensitivity(penalty: float, bound: float, neighbors: Neighbors) -> float:
    """How far the minimiser of ‖Xw − y‖² + α‖w‖² over ‖w‖ ≤ W moves, rows and targets of norm 1 at most.

    The objective is 2α-strongly convex, so minimisers of two of them are apart by at most ‖∇(difference)‖/(2α), taken at
    either. One row more or less: 2|xᵀw − y|‖x‖ ≤ 2(W + 1), hence (W + 1)/α. A row replaced: (W + 2)/α.
    """
    return (bound + (1.0 if neighbors is Neighbors.ADD_REMOVE else 2.0)) / penalty


def constrained_ridge(gram: FloatArray, cross: FloatArray, penalty: float, bound: float) -> FloatArray:
    """The minimiser itself: (G + (α + ν)I)⁻¹c with the least ν ≥ 0 that keeps it within the bound."""
    eigenvalues, vectors = np.linalg.eigh(gram)
    along = vectors.T @ cross
    shrunk = np.maximum(eigenvalues, 0.0) + penalty

    def beyond(multiplier: float) -> float:
        return float(np.linalg.norm(along / (shrunk + multiplier))) - bound

    multiplier = 0.0
    if beyond(0.0) > 0.0:
        multiplier = float(brentq(beyond, 0.0, float(np.linalg.norm(along)) / bound, xtol=1e-14, rtol=1e-13))
    return np.asarray(vectors @ (along / (shrunk + multiplier)))


@dataclass(frozen=True)
class OutputPerturbation:
    """The constrained ridge solution with noise on it."""

    penalty: float  # α, of the sum over the rows
    bound: float  # W

    def fits(
        self, gram: FloatArray, cross: FloatArray, budget: PrivacyBudget, runs: int, rng: np.random.Generator
    ) -> FloatArray:
        """Weights of independent runs, shape (k, runs); add-remove."""
        exact = constrained_ridge(gram, cross, self.penalty, self.bound)
        sensitivity = minimiser_sensitivity(self.penalty, self.bound, Neighbors.ADD_REMOVE)
        return exact[:, None] + vector_noise((len(cross), runs), sensitivity, budget, 1.0, rng)


# Noisy gradient descent for least squares on all rows at a time (Bassily, Smith & Thakurta 2014; Abadi et al. 2016).


Floats = npt.NDArray[np.floating]


def clipped_gradient(rows: Floats, norms: Floats, target: Floats, weights: Floats, clip: float) -> Floats:
    """Σ over the rows of (xᵀw − y)x, each shortened to norm ``clip``; shape (k, m) for weights of m runs.

    One row more or less moves it by ``clip`` at most, at any weights. Rows have shape (n, k), norms and target (n,).
    """
    residuals = rows @ weights
    residuals -= target[:, None]
    largest = np.divide(clip, norms, out=np.full_like(norms, np.inf), where=norms > 0.0)[:, None]
    np.clip(residuals, -largest, largest, out=residuals)
    return rows.T @ residuals


@dataclass(frozen=True)
class NoisyGradientDescent:
    """w ← w − (η/n)(Σ clipped gradients + noise), from 0, T times; the last w."""

    steps: int  # T; every step has an equal share of the budget
    clip: float
    rate: float  # η, in units of 1/λ₁(XᵀX/n)

    def fits(
        self,
        rows: Floats,
        target: Floats,
        budget: PrivacyBudget,
        runs: int,
        rng: np.random.Generator,
        largest_eigenvalue: float,
    ) -> Floats:
        """Weights of independent runs, shape (k, runs); add-remove.

        n and λ₁(XᵀX), ``largest_eigenvalue``, are the table's own and not paid for. In single precision, which
        takes half the time.
        """
        rows, target = rows.astype(np.float32), target.astype(np.float32)
        norms = np.linalg.norm(rows, axis=1)
        weights = np.zeros((rows.shape[1], runs), dtype=np.float32)
        for _ in range(self.steps):
            gradient = clipped_gradient(rows, norms, target, weights, self.clip)
            gradient += vector_noise(weights.shape, self.clip, budget, 1.0 / self.steps, rng)
            weights -= np.float32(self.rate / largest_eigenvalue) * gradient
        return weights.astype(np.float64)


# Regressions from Gaussian sketches with noise: linear mixing (Lev et al. 2025, arXiv 2505.24603), least squares on a sketch of
# rows and targets, and iterative Hessian mixing (Lev et al. 2026, arXiv 2601.07545), Newton steps with sketched Hessians.


def sketch_epsilon(least: float, rows: int, delta: float, sketches: int = 1) -> float:
    """Return ε at δ of sketches of so many rows, if the least eigenvalue of AᵀA plus noise is at least ``least``.

    The Rényi divergence of order α is k/(2(α − 1))·(α log(1 − 1/γ) − log(1 − α/γ)) for rows of norm 1 and 1 < α < γ (theorem 1),
    turned into (ε, δ) by the conversion of Canonne, Kamath & Steinke (2020).
    """

    def epsilon(log_order: float) -> float:
        order = 1.0 + math.exp(log_order)
        divergence = (
            sketches * rows / (2.0 * (order - 1.0)) * (order * math.log1p(-1.0 / least) - math.log1p(-order / least))
        )
        return divergence + math.log1p(-1.0 / order) - math.log(delta * order) / (order - 1.0)

    bounds = (math.log(1e-6), math.log(least - 1.0) - 1e-9)
    return float(minimize_scalar(epsilon, bounds=bounds, method="bounded", options={"xatol": 1e-6}).fun)


@cache
def _least_eigenvalue(epsilon: float, delta: float, rows: int, sketches: int = 1) -> float:
    """Return the γ at which sketches and noisy eigenvalue together cost ε: the eigenvalue's noise is γ/√k."""

    def excess(log_least: float) -> float:
        least = math.exp(log_least)
        of_eigenvalue = math.sqrt(2.0 * math.log(3.75 / delta)) * math.sqrt(rows) / least
        return sketch_epsilon(least, rows, delta / 3.0, sketches) + of_eigenvalue - epsilon

    return math.exp(brentq(excess, math.log(1.01), math.log(1e12)))


def linear_mixing(
    rows: FloatArray, target: FloatArray, budget: PrivacyBudget, rng: np.random.Generator, per_feature: float = 2.5
) -> FloatArray:
    """Return the weights of one run, shape (k,): rows have norm at most 1, and |y| is at most 1.

    The sketch has ``per_feature`` rows per feature; 2.5 is the setting of the authors' program (github.com/omrilev1/GaussMix).
    """
    if budget.kind is not BudgetKind.APPROXIMATE:
        raise ValueError("linear mixing is for (ε, δ)")
    table = np.column_stack([rows, target]) / math.sqrt(2.0)
    k = rows.shape[1]
    sketched = math.ceil(per_feature * (k + 1))
    wanted = _least_eigenvalue(budget.epsilon, budget.delta, sketched)
    noise = wanted / math.sqrt(sketched)
    margin = math.sqrt(2.0 * math.log(3.0 / budget.delta))
    least = float(np.linalg.eigvalsh(table.T @ table)[0]) + noise * (float(rng.standard_normal()) - margin)
    added = math.sqrt(max(0.0, wanted - max(least, 0.0)))
    sketch = _sketch(table.T @ table, sketched, added, rng)
    return np.asarray(np.linalg.lstsq(sketch[:, :k], sketch[:, k], rcond=None)[0])


def _sketch(gram: FloatArray, sketched: int, added: float, rng: np.random.Generator) -> FloatArray:
    """Draw S·A + noise: for a Gaussian S its rows have the law N(0, AᵀA), and are drawn so, without the n columns of S."""
    values, vectors = np.linalg.eigh(gram)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    shape = (sketched, len(gram))
    return np.asarray(rng.standard_normal(shape) @ root.T + added * rng.standard_normal(shape))


def hessian_mixing(
    rows: FloatArray, target: FloatArray, budget: PrivacyBudget, rng: np.random.Generator, steps: int = 3
) -> FloatArray:
    """Return the weights of one run, shape (k,): rows have norm at most 1, and |y| is at most 1.

    Three steps, six rows of a sketch for each feature (or as many as its failure probability asks for) and the split of (ε, δ)
    are those of the authors' program (github.com/omrilev1/HessianMix).
    """
    if budget.kind is not BudgetKind.APPROXIMATE:
        raise ValueError("Hessian mixing is for (ε, δ)")
    epsilon, delta, k = budget.epsilon / 2.0, budget.delta, rows.shape[1]
    failure = delta / 10.0
    sketched = int(6.0 * max(k, math.log(4.0 * steps / failure)))
    wanted = _least_eigenvalue(epsilon, 0.75 * delta, sketched, steps)
    residual_noise = gaussian_noise_scale(epsilon, delta / 4.0, 1.0) * math.sqrt(steps)
    gram = rows.T @ rows
    margin = math.sqrt(2.0 * math.log(4.0 / failure))
    least = float(np.linalg.eigvalsh(gram)[0]) + wanted / math.sqrt(sketched) * (float(rng.standard_normal()) - margin)
    added = math.sqrt(max(0.0, wanted - max(least, 0.0)))
    weights = np.zeros(k)
    for _ in range(steps):
        sketch = _sketch(gram, sketched, added, rng)
        step = rows.T @ np.clip(target - rows @ weights, -1.0, 1.0) + residual_noise * rng.standard_normal(k)
        weights = weights + np.linalg.solve(sketch.T @ sketch / sketched, step)
    return weights


# TukeyEM (Amin, Joseph, Ribero & Vassilvitskii, ICLR 2023): a deep point among least-squares fits to parts of the table.

MODELS = 1000
"""Fits, each to a part of the rows; the paper's heuristic wants 1,000 rows per feature. With fewer, as many as have k rows."""


def tukey_fit(
    rows: FloatArray, target: FloatArray, budget: PrivacyBudget, rng: np.random.Generator
) -> FloatArray | None:
    """Return the weights of one run, shape (k,), or None if the test that precedes the draw fails."""
    n, k = rows.shape
    models = min(MODELS, n // k)
    if models < 8:
        return None
    parts = np.array_split(rng.permutation(n), models)
    fits = np.array([np.linalg.lstsq(rows[part], target[part], rcond=None)[0] for part in parts])
    return tukey_median(fits, budget, rng)


def tukey_median(fits: FloatArray, budget: PrivacyBudget, rng: np.random.Generator) -> FloatArray | None:
    """Return a point drawn by the exponential mechanism on its approximate Tukey depth among the fits, or None.

    Half of ε tests whether a draw from points of depth at least m/4 is safe (lemma 3.6), with Laplace noise of scale 2/ε; the
    authors' program (google-research/dp_regression) has ε/2 there. The other half draws.
    """
    if budget.kind is not BudgetKind.APPROXIMATE:
        raise ValueError("TukeyEM is for (ε, δ)")
    epsilon, delta = budget.epsilon / 2.0, budget.delta
    models = len(fits)
    ordered = np.sort(fits.T + 1e-10 * rng.random(fits.T.shape), axis=1)
    deepest = models // 2
    widths = np.log(ordered[:, ::-1][:, :deepest] - ordered[:, :deepest])
    log_volumes = widths.sum(axis=0)  # of the points of depth above i
    least = deepest // 2

    def safe(distance: int) -> bool:
        inner = log_volumes[least + distance + 1 : deepest - 1]
        if least - distance - 2 < 0 or not len(inner):
            return False
        steps = epsilon / 2.0 * np.arange(1, len(inner) + 1)
        return bool(np.min(log_volumes[least - distance - 2] - inner - steps) <= math.log(delta / 8.0) - epsilon)

    distance = -1
    while safe(distance + 1):
        distance += 1
    if distance + rng.laplace(scale=1.0 / epsilon) <= math.log(0.5 / delta) / epsilon:
        return None
    depths = np.arange(least, deepest + 1)
    volumes = log_volumes[depths - 1]
    shells = volumes.copy()
    shells[:-1] += np.log1p(-np.exp(np.minimum(np.diff(volumes), -1e-12)))
    depth = int(depths[np.argmax(shells + epsilon * depths + rng.gumbel(size=len(depths)))])
    low, high = ordered[:, depth - 1], ordered[:, models - depth]
    while True:
        point = rng.uniform(low, high)
        if depth == deepest or np.any(point < ordered[:, depth]) or np.any(point > ordered[:, models - depth - 1]):
            return np.asarray(point)
