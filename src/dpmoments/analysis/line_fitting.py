"""What least squares, ridge and lasso share: the moments in use, the penalised system, and the answer that is made of slopes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from dpmoments.analysis.cautions import rows_of_units_in_words
from dpmoments.analysis.clipping_effect import ClippingEffect
from dpmoments.analysis.coefficient_bounds import Fit, error_bound
from dpmoments.analysis.explained_variance import ExplainedVariance
from dpmoments.analysis.fitted_line import FittedLine
from dpmoments.analysis.inference import CoefficientInference
from dpmoments.analysis.noise_of_run import noise_of_run
from dpmoments.analysis.normal_equations import NormalEquations
from dpmoments.analysis.regressors import Regressors
from dpmoments.analysis.released import Released
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.values import is_finite_number, shown
from dpmoments.repair.count_floor import few_rows_in_words

__all__ = ["fitted_line", "inference_of", "penalised_slopes", "stated_penalty"]


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
    noise = noise_of_run(release)
    if noise is None or (chosen.intercept and not _count_noise_is_known(release)):
        return None  # without a constant the number of rows is no moment among those solved with
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


def _count_noise_is_known(release: Released) -> bool:
    """A run of no additive law releases a sum with a count whose noise its record states."""
    return release.noise is None or release.noise.count_variance is not None or release.count_is_public


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
        bound = error_bound(release, Fit(moment, [*a, y], slopes, alpha, chosen.intercept, smallest), 1.0 - level)
        value, note = bound.value, bound.note
    return FittedLine(
        method=method,
        target=names[y],
        features=tuple(names[place] for place in a),
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
        help=_help(inference, [names[place] for place in a]),
        warning=". ".join(
            filter(None, [few_rows_in_words(release.noisy_count, release.noise), rows_of_units_in_words(release)])
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
