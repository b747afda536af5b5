"""Intervals and p-values of coefficients straight from the normal equations."""

from __future__ import annotations

import numpy as np
import scipy

from dpmoments.analysis.normal_equations import NormalEquations


def intervals_of(equations: NormalEquations, level: float) -> np.ndarray:
    """Confidence intervals in the table's units, shape (k, 2)."""
    return np.array([(each.lower, each.upper) for each in equations.estimates(level)])


def inverted_p_value(equations: NormalEquations, index: int, value: float) -> float:
    """The p-value of a coefficient's value in the table's units, by test inversion; the fit need not be identified."""
    of_entry = equations.at_zero if index == 0 and equations.at_zero is not None else equations
    fixed = {index: -value / float(equations.units_map[index, index]), of_entry.n_regressors: 1.0}
    starts = [np.append(-of_entry.solution, 1.0)]
    return float(scipy.special.chdtrc(1, of_entry.search.least(fixed, starts).statistic))
