"""The lasso from released moments, by scikit-learn's paths from a Gram matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from dpmoments.analysis.answers import in_floating_point
from dpmoments.analysis.confidence import confidence_level
from dpmoments.analysis.fitted_line import FittedLine
from dpmoments.analysis.inference import CoefficientInference
from dpmoments.analysis.line_fitting import fitted_line, inference_of, stated_penalty
from dpmoments.analysis.regressed_moment import regressed_moment
from dpmoments.analysis.regressors import Regressors
from dpmoments.analysis.released import Released
from dpmoments.analysis.ridge_parameter import automatic_alpha

__all__ = ["lasso"]


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
