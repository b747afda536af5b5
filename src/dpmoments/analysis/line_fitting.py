"""What least squares, ridge and lasso share: the moments in use, the penalised system, and the answer that is made of slopes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

import numpy as np

from dpmoments.analysis.inference import CoefficientInference, NormalEquations
from dpmoments.analysis.regression_results import ClippingEffect, ExplainedVariance, FittedLine
from dpmoments.analysis.regressors import Regressors
from dpmoments.analysis.released import Released, describe_contribution
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.values import is_finite_number, shown
from dpmoments.noise.models import MomentInterval
from dpmoments.repair.repair import few_rows_message

# How far the privacy noise can have moved the coefficients of a ridge fit (``docs/derivations/ridge-error-bound.md``).

_SHARES = (1.0, 0.9, 0.8, 0.65, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02, 0.01, 0.001, 0.0)
"""θ: every share of the lower bound on a positive semi-definite matrix is one too; the best of these is used."""


@dataclass(frozen=True, slots=True, eq=False)
class _Fit:
    """A ridge fit as the bounds see it.

    Attributes
    ----------
    moment : ndarray of shape (d, d)
        What was solved with.
    chosen : list of int
        Features, then the target.
    weights : ndarray of shape (k,)
    alpha : float
    intercept : bool
    smallest : float
        Least eigenvalue of the features' block of ``moment``, with the penalty.
    """

    moment: FloatArray
    chosen: list[int]
    weights: FloatArray
    alpha: float
    intercept: bool
    smallest: float


@dataclass(frozen=True, slots=True)
class ErrorBound:
    """A bound, None where no law gives one, and what else is to be known of it."""

    value: float | None
    note: str = ""


def _error_bound(release: Released, fit: _Fit, failure: float) -> ErrorBound:
    """A bound on ‖ŵ − w‖ that fails with probability ≤ ``failure``, w the fit on the table itself; encoded rows."""
    if release.noisy_count is None:
        return ErrorBound(None, "no number of rows was released")
    model = release.noise_model
    interval = None if model is None else model.interval(release, fit.chosen, failure)
    if model is not None and interval is not None:
        return _by_interval(release, fit, interval, _COVERAGE.get(model.condition, ""))
    if release.noise is None:
        return ErrorBound(None, f"no law is known of what {release.mechanism!r} does to the moments")
    if release.noise.caveats:
        return ErrorBound(None, "the law of the noise is conditional on more than the release, and gives no bound")
    if not fit.intercept and release.noisy_sum is not None and release.encoding.offset.any():
        return ErrorBound(
            None, "about the zero of the table's units the noises of mean and Gram matrix mix; fit an intercept"
        )
    operator = _moment_error_bound(release, fit, failure)
    curvature = max(2.0 * fit.alpha, fit.smallest - operator)
    note = "Lemma 1 of Amin et al. 2019"
    if curvature <= 0:
        return ErrorBound(math.inf, note)
    return ErrorBound(operator * math.sqrt(1.0 + float(fit.weights @ fit.weights)) / curvature, note)


def _moment_error_bound(release: Released, fit: _Fit, failure: float) -> float:
    """Bound on ‖Ŝ − S‖_op on a block, Ŝ the moment matrix in use, for noise whose law holds as it is.

    ‖Ŝ − S‖ ≤ ‖Ŝ − Ŝ₀‖ + ‖Ŝ₀ − S‖, Ŝ₀ the unrepaired matrix: the first term is known exactly, the second is bounded by
    the noise law. (S_AA + 2αI)(ŵ − w) = (E b)_A with b = (−ŵ, 1) and E = Ŝ − S, so ‖ŵ − w‖ ≤ ‖E‖_op √(1 + ‖ŵ‖²)/λ, λ the least
    eigenvalue of S_AA + 2αI: at least 2α, and at least λ̂ − ‖E‖_op. Only the block of features and target counts.
    """
    noise, chosen = release.noise, fit.chosen
    assert noise is not None
    n, block, indices = release.n_rows, np.ix_(chosen, chosen), np.array(chosen) + 1
    raw = release.with_repair("none")
    reference = raw.unit_ball_covariance if fit.intercept else raw.unit_ball_gram / n
    parts = 1 + (1 if fit.intercept else 0) + (1 if noise.count_variance else 0)
    bound = float(np.linalg.norm((fit.moment - reference)[block], 2))
    bound += noise.gram_bound(failure / parts, indices) / n
    if fit.intercept:
        offset = noise.sum_bound(failure / parts, indices) / n
        length = float(np.linalg.norm(raw.unit_ball_mean[chosen]))
        bound += 2.0 * length * offset + offset**2
    if noise.count_variance:
        # G/n̂ − G/n and its like for the mean: ‖G/n‖ ≤ 1 and ‖μ‖ ≤ 1, so each moves by |n̂ − n|/n̂
        raised = max(0.0, n - (release.noisy_count or 0.0) - 0.5)  # where the noisy count was below its floor
        relative = (noise.count_bound(failure / parts) + 0.5 + raised) / n
        bound += relative * (3.0 + relative if fit.intercept else 1.0)
    return bound


_COVERAGE = MappingProxyType(
    {
        "clipped-in-last-step": (
            "against the fit on the rows as the last step clipped them: what clipping took away comes on top"
        ),
        "asserted-smallest-eigenvalue": "where no eigenvalue is below the stated smallest_eigenvalue",
    }
)
"""What a bound from an interval is about, by its condition."""


def _by_interval(release: Released, fit: _Fit, result: MomentInterval, note: str) -> ErrorBound:
    """The bound from an interval that the noise model gives, whatever repair was made."""
    if result.constant and not fit.intercept:
        # moments about the zero of the table's units, in units of the encoding's scale
        matrix = np.eye(len(result.center))
        matrix[1:, 0] = (release.encoding.offset / release.encoding.scale)[fit.chosen]
        about_zero = result.mapped(matrix)
        result = MomentInterval(about_zero.center[1:, 1:], about_zero.spread[1:, 1:], False, result.count_error)
    n_rows = float(release.n_rows)
    of_count = 0.0 if release.count_is_public else result.count_error
    value = _coefficient_error_bound(result, fit.weights, fit.alpha, n_rows, of_count)
    return ErrorBound(value, note)


def _coefficient_error_bound(
    interval: MomentInterval, weights: FloatArray, alpha: float, n_rows: float, count_error: float
) -> float:
    """Bound on ‖ŵ − w‖ for every table whose moments are in an interval, w its ridge coefficients.

    Parameters
    ----------
    interval : MomentInterval
        Of features and target, the target last.
    weights : ndarray of shape (k,)
        ŵ, from wherever.
    alpha : float
        The penalty is 2αn on each coefficient, none on the constant.
    n_rows, count_error : float
        n is within ``count_error`` of ``n_rows``.

    Returns
    -------
    float
        inf where the interval holds tables that have no fit.

    Notes
    -----
    With M = C + E, −R ⪯ E ⪯ R, and b = (ŵ, −1): (M_AA + P)(ŵ − w) = g + (Eb)_A, g = (C_AA + P)ŵ − C_Ay known, so that
    ‖ŵ − w‖_H ≤ √(gᵀH⁻¹g) + ρ√(bᵀRb) for any H ⪯ M_AA + P with R_AA ⪯ ρ²H. H = θ(C − R)_AA + P, with the best θ in [0, 1]. Where
    that says less, ‖ŵ‖ + ‖w‖, with ‖w‖ ≤ √M_yy/(2√λ) for a penalty λ.

    Examples
    --------
    >>> tight = MomentInterval(100 * np.eye(2), 1e-9 * np.eye(2), False, 0.0)
    >>> round(_coefficient_error_bound(tight, np.array([0.0]), 0.0, 100, 0.0), 9)
    0.0
    >>> round(_coefficient_error_bound(tight, np.array([0.5]), 0.0, 100, 0.0), 9)
    0.5
    """
    center, spread, k = interval.center, interval.spread, len(weights)
    start = 1 if interval.constant else 0
    slopes = slice(start, start + k)
    penalty = np.zeros(start + k)
    penalty[slopes] = 2.0 * alpha * n_rows
    least_penalty = np.zeros(start + k)
    least_penalty[slopes] = 2.0 * alpha * max(n_rows - count_error, 0.0)
    if start:
        constant = (center[0, -1] - center[0, slopes] @ weights) / center[0, 0] if center[0, 0] > 0 else 0.0
        fitted = np.concatenate([[constant], weights])
    else:
        fitted = weights
    beyond = np.concatenate([fitted, [-1.0]])
    gradient = center[:-1, :-1] @ fitted + penalty * fitted - center[:-1, -1]
    leverage = math.sqrt(max(float(beyond @ spread @ beyond), 0.0))
    of_count = 2.0 * alpha * count_error * float(np.linalg.norm(weights))
    lower = center[:-1, :-1] - spread[:-1, :-1]
    # no coefficients are longer than √M_yy/(2√λ), whatever the features
    length, least = max(float(center[-1, -1] + spread[-1, -1]), 0.0), float(least_penalty[-1])
    best = float(np.linalg.norm(weights)) + math.sqrt(length / least) / 2.0 if least > 1e-300 else math.inf
    for share in _SHARES:
        eigenvalues, vectors = np.linalg.eigh(share * lower + np.diag(least_penalty))
        if eigenvalues[0] <= 1e-12 * max(float(eigenvalues[-1]), 0.0) or eigenvalues[0] < 1e-300:
            continue
        root = vectors / np.sqrt(eigenvalues)  # H⁻¹ = root rootᵀ
        reach = float(np.linalg.norm(root[slopes], 2))
        ratio = math.sqrt(max(float(np.linalg.eigvalsh(root.T @ spread[:-1, :-1] @ root)[-1]), 0.0))
        best = min(best, reach * (float(np.linalg.norm(root.T @ gradient)) + ratio * leverage + reach * of_count))
    return best


def stated_penalty(alpha: float | Literal["auto"]) -> float | None:
    """The penalty that is stated; None where it is to be found."""
    if alpha == "auto":
        return None
    if not (is_finite_number(alpha) and float(alpha) >= 0.0):
        raise ValueError(f"alpha={shown(alpha)} must be zero, a positive number, or 'auto'")
    return float(alpha)


def penalised_slopes(moment: FloatArray, chosen: Regressors, alpha: float) -> FloatArray:
    """w of (S_AA + 2α I) w = S_Ay.

    Raises
    ------
    ValueError
        If the system is singular.
    """
    a = list(chosen.features)
    system = moment[np.ix_(a, a)] + 2.0 * alpha * np.eye(len(a))
    if float(np.linalg.eigvalsh(system)[0]) <= 1e-12 * max(1.0, float(np.trace(system))):
        raise ValueError(
            f"the system is singular at alpha={alpha!r}: features are collinear or the noise hides them: leave features out, or "
            "use ridge with alpha > 0 (or 'auto')"
        )
    return np.asarray(np.linalg.solve(system, moment[a, chosen.target]), dtype=np.float64)


def inference_of(release: Released, chosen: Regressors) -> CoefficientInference | None:
    """None where no law of the noise is known."""
    noise = release.noise
    if noise is None:
        return None
    scale = release.encoding.scale
    shift, unit = release.zero_of_units, float(scale[chosen.target])
    slopes = np.diag(unit / scale[list(chosen.features)])

    def equations(*, about_zero: bool) -> NormalEquations:
        return NormalEquations.of(
            release, noise, chosen.features, chosen.target, constant=chosen.intercept, about_zero=about_zero
        )

    if not chosen.intercept:
        return CoefficientInference(equations(about_zero=release.noisy_sum is not None), None, slopes, 0.0, unit)
    k = len(chosen.features)
    units = np.zeros((k + 1, k + 1))
    units[0, 0] = unit
    units[0, 1:] = -unit * shift[list(chosen.features)]
    units[1:, 1:] = slopes
    offset = unit * float(shift[chosen.target])
    return CoefficientInference(equations(about_zero=False), equations(about_zero=True), units, offset, unit)


def fitted_line(
    release: Released,
    chosen: Regressors,
    inference: CoefficientInference | None,
    method: str,
    slopes: FloatArray,
    alpha: float,
    level: float,
    moment: FloatArray,
) -> FittedLine:
    a, y, names = list(chosen.features), chosen.target, release.feature_names
    scale = release.encoding.scale
    coefficients = slopes * scale[y] / scale[a]
    constant = 0.0
    if chosen.intercept:
        if method == "least squares" and inference is not None and inference.identified:
            constant = float(inference.coefficients[0])
        else:
            constant = float(release.mean[y] - coefficients @ release.mean[a])
    variance = float(moment[y, y])
    explained = float(2.0 * slopes @ moment[a, y] - slopes @ moment[np.ix_(a, a)] @ slopes)
    smallest = float(np.linalg.eigvalsh(moment[np.ix_(a, a)] + 2.0 * alpha * np.eye(len(a)))[0])
    if method == "lasso":
        value, note = None, "the bound is for ridge fits"
    else:
        bound = _error_bound(release, _Fit(moment, [*a, y], slopes, alpha, chosen.intercept, smallest), 1.0 - level)
        value, note = bound.value, bound.note
    return FittedLine(
        method=method,
        target=names[y],
        features=tuple(names[index] for index in a),
        coefficients=coefficients,
        intercept=constant,
        alpha=alpha,
        references=chosen.references,
        too_few=chosen.too_few,
        level=level,
        inference=inference,
        explained=_explained(inference, method, slopes, alpha),
        clipping=ClippingEffect.of(release, inference),
        unit_ball_coefficients=slopes,
        unit_ball_error_bound=value,
        error_bound_note=note,
        released_r_squared=min(max(explained / variance, 0.0), 1.0) if variance > 0 else 0.0,
        n_rows=release.n_rows,
        with_intercept=chosen.intercept,
        help=_help(inference, [names[index] for index in a]),
        warning=". ".join(
            filter(None, [few_rows_message(release.noisy_count, release.noise), describe_contribution(release)])
        ),
        schema=release.schema,
    )


def _explained(
    inference: CoefficientInference | None, method: str, slopes: FloatArray, alpha: float
) -> ExplainedVariance | None:
    if inference is None:
        return None
    equations = inference.equations
    if method == "least squares" and inference.identified:
        return ExplainedVariance.of_population(equations)
    return ExplainedVariance.of_line(equations, slopes, 2.0 * alpha * equations.n_rows)


def _help(inference: CoefficientInference | None, names: Sequence[str]) -> str:
    """What would make noise less of a fit; ``names`` are those of the features."""
    if inference is None:
        return ""
    if inference.identified:
        return "More rows or a larger budget would show a weaker relation."
    equations = inference.equations
    fewer = "fewer features, or " if len(names) > 1 else ""
    if lost := _features_lost_in_noise(equations, names):
        words = ("vary", "them") if len(lost) > 1 else ("varies", "it")
        return f"Noise hides how much {', '.join(lost)} {words[0]}: leave {words[1]} out."
    least = equations.least_eigenvalue
    if least <= 0.05 * equations.noise_floor:
        return f"It takes {fewer}far more rows or a far larger budget."
    times = max(equations.noise_floor / least, 1.5)
    return f"It takes {fewer}at least {times:.1f} times the rows or the budget."


def _features_lost_in_noise(equations: NormalEquations, names: Sequence[str]) -> list[str]:
    """Features that no regression could tell from a constant, if they are not all."""
    moments, first = equations.moments, 1 if equations.with_constant else 0
    spread = np.diag(moments)[first:-1].copy()
    if first:
        spread -= moments[0, 1:-1] ** 2 / moments[0, 0]
    lost = [name for name, square in zip(names, spread, strict=True) if square < equations.noise_floor]
    return lost if len(lost) < len(names) else []
