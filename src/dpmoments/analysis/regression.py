"""Linear regressions from released moments: least squares and ridge, in the table's own units."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from dpmoments.analysis.answers import in_floating_point
from dpmoments.analysis.confidence import confidence_level
from dpmoments.analysis.inference import CoefficientInference
from dpmoments.analysis.line_fitting import (
    fitted_line,
    inference_of,
    penalised_slopes,
    stated_penalty,
)
from dpmoments.analysis.regression_results import FittedLine
from dpmoments.analysis.regressors import Regressors, regressed_moment
from dpmoments.analysis.released import Released
from dpmoments.analysis.ridge_parameter import automatic_alpha


@in_floating_point
def ols(
    release: Released,
    target: str,
    features: Sequence[str] | None = None,
    *,
    intercept: bool | None = None,
    reference: Sequence[str] | Mapping[str, str | int] | None = None,
    level: float = 0.95,
) -> FittedLine:
    """Least squares of one released feature on others, with standard errors and intervals: free of privacy cost.

    Where noise lets the fit be identified, the coefficients solve the normal equations of the moments as they were released, so
    that their errors are known; else they are steadied by a penalty of the size of the noise (``alpha`` of the answer), and the
    intervals are those of the inverted test.

    Parameters
    ----------
    release : Released
    target : str
        A feature (a level of a categorical column is one, ``region=north``), or an R formula: ``income ~ age + C(region)``.
    features : sequence of str, optional
        Feature or column names (a categorical column stands for all its levels); default: all that are not of the target's
        column, nor computed from it.
    intercept : bool, optional
        Whether to fit an intercept; default: where a mean was released.
    reference : sequence of str or mapping, optional
        Levels with which the others of their column are compared, ``["region=north"]`` or ``{"region": "north"}``: one feature of
        every categorical whose levels are all there is left out, since they add up to one. Default: the most frequent level by
        the release.
    level : float
        Confidence of intervals and bounds.

    Returns
    -------
    FittedLine
        ``print`` shows it as a table.

    Raises
    ------
    ValueError
        If a name is not a feature, the target is among the features or one computed from the other, an intercept is asked of a
        release without a mean, the level is below 0.5, or no number of rows was released.

    Notes
    -----
    Intervals are for the coefficients in the population that the table's rows are a sample of
    (:class:`dpmoments.analysis.inference.CoefficientInference`, ``docs/derivations/regression-inference.md``).

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> x = np.random.default_rng(0).uniform(-0.5, 0.5, 50_000)
    >>> table = np.column_stack([x, 0.1 + 0.8 * x])
    >>> released = dpm.release(table, dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0)
    >>> fit = released.ols("x1 ~ x0")
    >>> fit.coefficients.round(2), bool(fit.identified)
    (array([0.8]), True)
    """
    level = confidence_level(level)
    chosen = Regressors.chosen(release, target, features, intercept, reference)
    inference = inference_of(release, chosen)
    if inference is not None and inference.identified:
        slopes = inference.equations.solution[1 if chosen.intercept else 0 :]
        moment = regressed_moment(release.with_repair("none"), intercept=chosen.intercept)
        return fitted_line(release, chosen, inference, "least squares", slopes, 0.0, level, moment)
    if inference is None:
        alpha = automatic_alpha(release, chosen.features, chosen.target, intercept=chosen.intercept)
    else:
        equations = inference.equations
        alpha = math.sqrt(equations.noise_variance * equations.n_regressors) / equations.n_rows
    moment = regressed_moment(release, intercept=chosen.intercept)
    slopes = penalised_slopes(moment, chosen, alpha)
    return fitted_line(release, chosen, inference, "least squares", slopes, alpha, level, moment)


@in_floating_point
def ridge(
    release: Released,
    target: str,
    features: Sequence[str] | None = None,
    *,
    alpha: float | Literal["auto"] = "auto",
    intercept: bool | None = None,
    reference: Sequence[str] | Mapping[str, str | int] | None = None,
    level: float = 0.95,
) -> FittedLine:
    """Ridge regression of one released feature on others: the better predictions where noise matters; free of privacy cost.

    Solves (S_AA + 2α I) w = S_Ay for encoded rows, S the repaired covariance (with an intercept) or second moment (without): the
    minimiser of ‖Xw − y‖²/(2n) + α‖w‖². The coefficients are then carried to the table's units.

    Parameters
    ----------
    release : Released
    target : str
        As for :func:`ols`.
    features : sequence of str, optional
        As for :func:`ols`.
    alpha : float or "auto"
        The α of Amin et al. (2019), in unit-ball units, so that it treats all columns alike; where the schema has typical ranges
        it presses less on columns that got more of the ball, and less noise. ``"auto"``: by the law of the noise
        (:func:`dpmoments.analysis.ridge_parameter.automatic_alpha`).
    intercept : bool, optional
        Whether to fit an intercept, which is not penalised; default: where a mean was released.
    reference : sequence of str or mapping, optional
        As for :func:`ols`.
    level : float
        Confidence of intervals and bounds.

    Returns
    -------
    FittedLine
        Its intervals and p-values are for the coefficients of least squares, which no penalty shrinks.

    Raises
    ------
    ValueError
        As for :func:`ols`; also if ``alpha`` is negative, or 0 where the system is singular.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> x = np.random.default_rng(0).uniform(-0.5, 0.5, 50_000)
    >>> table = np.column_stack([x, 0.1 + 0.8 * x])
    >>> released = dpm.release(table, dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0)
    >>> fit = released.ridge("x1", ["x0"])
    >>> fit.coefficients.round(2), round(fit.intercept, 2)
    (array([0.8]), 0.1)
    """
    level = confidence_level(level)
    chosen = Regressors.chosen(release, target, features, intercept, reference)
    penalty = stated_penalty(alpha)
    if penalty is None:
        penalty = automatic_alpha(release, chosen.features, chosen.target, intercept=chosen.intercept)
    moment = regressed_moment(release, intercept=chosen.intercept)
    slopes = penalised_slopes(moment, chosen, penalty)
    return fitted_line(release, chosen, inference_of(release, chosen), "ridge", slopes, penalty, level, moment)


# The lasso from released moments, by scikit-learn's paths from a Gram matrix.


@in_floating_point
def lasso(
    release: Released,
    target: str,
    features: Sequence[str] | None = None,
    *,
    alpha: float | Literal["auto"] = "auto",
    intercept: bool | None = None,
    reference: Sequence[str] | Mapping[str, str | int] | None = None,
    level: float = 0.95,
) -> FittedLine:
    """Lasso of one released feature on others: few coefficients, the rest exactly 0; free of privacy cost.

    Minimises ‖Xw − y‖²/(2n) + α‖w‖₁ for encoded rows, as scikit-learn does, from the repaired moments.

    Parameters
    ----------
    release : Released
    target : str
        As for :func:`dpmoments.analysis.regression.ols`.
    features : sequence of str, optional
        As for :func:`dpmoments.analysis.regression.ols`.
    alpha : float or "auto"
        In unit-ball units. ``"auto"``: what noise and sampling reach in the largest of k cells, √(2 ln 2k) standard deviations
        (the universal threshold of Donoho & Johnstone 1994).
    intercept : bool, optional
        Whether to fit an intercept, which is not penalised; default: where a mean was released.
    reference : sequence of str or mapping, optional
        As for :func:`dpmoments.analysis.regression.ols`.
    level : float
        Confidence of intervals.

    Returns
    -------
    FittedLine
        Its intervals and p-values are for the coefficients of least squares on all of the features.

    Raises
    ------
    ValueError
        As for :func:`dpmoments.analysis.regression.ols`; also if ``alpha`` is negative.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> x = np.random.default_rng(0).uniform(-0.5, 0.5, (50_000, 2))
    >>> table = np.column_stack([x, 0.5 * x[:, 0]])
    >>> released = dpm.release(table, dpm.Schema.unit_ball(3), epsilon=1.0, insecure_seed=0)
    >>> released.lasso("x2").coefficients.round(2)
    array([0.5, 0. ])
    """
    from sklearn.linear_model import lars_path_gram

    level = confidence_level(level)
    chosen = Regressors.chosen(release, target, features, intercept, reference)
    inference = inference_of(release, chosen)
    penalty = stated_penalty(alpha)
    if penalty is None:
        penalty = _universal_threshold(release, chosen, inference)
    moment = regressed_moment(release, intercept=chosen.intercept)
    a = list(chosen.features)
    _, _, path = lars_path_gram(
        Xy=moment[a, chosen.target],
        Gram=moment[np.ix_(a, a)],
        n_samples=1,
        method="lasso",
        alpha_min=penalty,
        copy_X=True,
    )
    slopes = np.asarray(path[:, -1], dtype=np.float64)
    return fitted_line(release, chosen, inference, "lasso", slopes, penalty, level, moment)


def _universal_threshold(release: Released, chosen: Regressors, inference: CoefficientInference | None) -> float:
    if inference is None:
        return automatic_alpha(release, chosen.features, chosen.target, intercept=chosen.intercept)
    equations = inference.equations
    without_features = np.zeros(equations.n_regressors + 1)
    without_features[-1] = 1.0
    if chosen.intercept:
        without_features[0] = -float(equations.moments[0, -1] / equations.moments[0, 0])
    first = 1 if chosen.intercept else 0
    largest = float(np.diag(equations.error_covariance(without_features))[first:].max())
    k = equations.n_regressors - first
    return math.sqrt(2.0 * math.log(2.0 * k) * largest) / equations.n_rows
