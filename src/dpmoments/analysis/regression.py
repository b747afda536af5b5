"""Ridge regression from released moments, on the table's own units, with the paper's error bound."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.analysis.answers import finite_or_none, in_floating_point
from dpmoments.analysis.coefficient_bounds import Fit, error_bound
from dpmoments.analysis.released import Released
from dpmoments.array_types import FloatArray
from dpmoments.repair.count_floor import few_rows_in_words

__all__ = ["RidgeRegression", "ridge"]

SHOWN_FEATURES = 4
"""Messages name so many features of a categorical column at most."""


@dataclass(frozen=True, eq=False)
class RidgeRegression:
    """A ridge regression computed from a release.

    Attributes
    ----------
    target : str
    features : tuple of str
    coefficients : ndarray of shape (k,)
        In units of the target per unit of each feature.
    intercept : float
        In units of the target; 0 where none was fitted.
    alpha : float
    unit_ball_coefficients : ndarray of shape (k,)
        The same coefficients for encoded rows, the space in which ``alpha`` and the bound are stated.
    unit_ball_error_bound : float or None
        With the confidence below, ‖ŵ − w‖₂ ≤ this, w the ridge solution on the table itself with the same ``alpha`` (encoded
        rows); inf where ``alpha`` is 0 and the data fix no bound; None where no law gives one.
    level : float
        Confidence of the bound.
    error_bound_note : str
        What else is to be known of the bound, or why there is none; mostly empty.
    r_squared : float
        Share of the target's released variance that the fit explains, at the released moments (clipped into [0, 1]).
    warning : str
        What speaks against reading the fit as that of the table: too few rows for the budget; mostly empty.
    """

    target: str
    features: tuple[str, ...]
    coefficients: FloatArray
    intercept: float
    alpha: float
    unit_ball_coefficients: FloatArray
    unit_ball_error_bound: float | None
    level: float
    r_squared: float
    error_bound_note: str = ""
    warning: str = ""

    def predict(self, values: npt.ArrayLike) -> FloatArray:
        """Predictions for rows of features in the table's units, (m, k) → (m,)."""
        return np.asarray(values, dtype=np.float64) @ self.coefficients + self.intercept

    def summary(self) -> str:
        """The fit as text."""
        width = max([len(name) for name in self.features] + [len("(intercept)")])
        lines = [
            f"ridge regression of {self.target}, alpha = {self.alpha:g}, R² = {self.r_squared:.3f} (released moments)"
        ]
        lines.append(f"{'(intercept)':<{width}}  {self.intercept:12.5g}")
        lines += [
            f"{name:<{width}}  {value:12.5g}" for name, value in zip(self.features, self.coefficients, strict=True)
        ]
        lines.append(self._bound_in_words())
        return "\n".join(filter(None, [*lines, self.warning]))

    def _bound_in_words(self) -> str:
        bound, note = self.unit_ball_error_bound, self.error_bound_note
        if bound is None:
            return f"no bound on what the privacy noise did: {note}"
        if bound == math.inf:
            return (
                "no bound on what the privacy noise did: it may outweigh the smallest eigenvalue of the features' "
                "moments; give alpha > 0 or fewer features"
            )
        size = float(np.linalg.norm(self.unit_ball_coefficients))
        words = (
            f"privacy noise moved the encoded coefficients (norm {size:.3g}) by at most {bound:.3g}, "
            f"with confidence {self.level:.0%}"
        )
        if bound >= size:
            words += ": as much as all of them, so that the bound vouches for none"
        return f"{words} ({note})" if note else words

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """The fit as JSON holds it, coefficients by feature; the error bound is None where there is none that is finite."""
        bound = self.unit_ball_error_bound
        return {
            "target": self.target,
            "intercept": self.intercept,
            "coefficients": dict(zip(self.features, finite_or_none(self.coefficients), strict=True)),
            "alpha": self.alpha,
            "r_squared": self.r_squared,
            "unit_ball_error_bound": None if bound is None or not math.isfinite(bound) else bound,
            "level": self.level,
            "error_bound_note": self.error_bound_note,
            "warning": self.warning,
        }


@in_floating_point
def ridge(
    release: Released,
    target: str,
    features: Sequence[str] | None = None,
    *,
    alpha: float = 0.0,
    intercept: bool | None = None,
    level: float = 0.95,
) -> RidgeRegression:
    """Ridge regression of one released feature on others: post-processing, free of privacy cost.

    Solves (S_AA + 2α I) w = S_Ay for encoded rows, S the covariance (with an intercept) or the second moment (without): the
    minimiser of ‖Xw − y‖²/(2n) + α‖w‖². The coefficients are then carried to the table's units.

    Parameters
    ----------
    release : Released
    target : str
        A feature name; a categorical's levels are features of their own, ``region=north``. A column name stands for its
        feature.
    features : sequence of str, optional
        Feature or column names (a categorical column stands for all its levels); default: everything that is not of the
        target's column, less the first level of every categorical where there is an intercept and ``alpha`` is 0 (all
        levels and the intercept are collinear).
    alpha : float
        The α of Amin et al. (2019), in unit-ball units, so that it treats all columns alike; where the schema has typical ranges
        it presses less on columns that got more of the ball, and less noise.
    intercept : bool, optional
        Whether to fit an intercept, which is not penalised; default: where a mean was released.
    level : float
        Confidence of the error bound.

    Returns
    -------
    RidgeRegression

    Raises
    ------
    ValueError
        If a name is not a feature, the target is among the features, ``alpha`` is negative, an intercept is asked of a release
        without a mean, or the system is singular (``alpha`` = 0).

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
    if not (isinstance(alpha, int | float) and math.isfinite(alpha) and alpha >= 0):
        raise ValueError(f"alpha={alpha!r} must be zero or a positive number")
    if not 0 < level < 1:
        raise ValueError(f"level={level!r} must be between 0 and 1")
    if intercept is None:
        intercept = release.noisy_sum is not None
    if intercept and release.noisy_sum is None:
        raise ValueError("an intercept needs the mean, and the release has none (mean=False): pass intercept=False")
    y = _feature_index(release, target)
    a = _features(release, features, y, leave_one_level=intercept and alpha == 0)
    moment = release.unit_ball_covariance if intercept else release.unit_ball_gram / release.n_rows
    if release.noisy_sum is not None and not intercept:
        # without an intercept the line goes through the zero of the table's units
        moment = _about_zero(release)
    system = moment[np.ix_(a, a)] + 2.0 * alpha * np.eye(len(a))
    smallest = float(np.linalg.eigvalsh(system)[0])
    if smallest <= 1e-12 * max(1.0, float(np.trace(system))):
        raise ValueError(
            f"the system is singular at alpha={alpha!r}: features are collinear or the noise hides them; give alpha > 0 or "
            "leave features out (a categorical's levels add up to one: leave one level out)"
        )
    weights = np.linalg.solve(system, moment[a, y]).astype(np.float64, copy=False)
    scale = release.encoding.scale
    coefficients = weights * scale[y] / scale[a]
    if intercept:
        mean = release.mean
        constant = float(mean[y] - coefficients @ mean[a])
    else:
        constant = 0.0
    variance = float(moment[y, y])
    explained = float(2.0 * weights @ moment[a, y] - weights @ moment[np.ix_(a, a)] @ weights)
    names = release.feature_names
    fit = Fit(moment, [*a, y], weights, float(alpha), intercept, smallest)
    bound = error_bound(release, fit, 1.0 - level)
    return RidgeRegression(
        target=names[y],
        features=tuple(names[i] for i in a),
        coefficients=coefficients,
        intercept=constant,
        alpha=float(alpha),
        unit_ball_coefficients=weights,
        unit_ball_error_bound=bound.value,
        level=level,
        r_squared=min(max(explained / variance, 0.0), 1.0) if variance > 0 else 0.0,
        error_bound_note=bound.note,
        warning=few_rows_in_words(release.noisy_count, release.noise),
    )


def _about_zero(release: Released) -> FloatArray:
    """Second moment about the zero of the table's units, in units of the encoding's scale."""
    scale = release.encoding.scale
    return release.second_moment / np.outer(scale, scale)


def _feature_index(release: Released, name: str) -> int:
    names = release.feature_names
    if name in names:
        return names.index(name)
    for column in release.schema.columns:
        if column.name == name:
            shown = ", ".join(map(repr, column.feature_names[:SHOWN_FEATURES]))
            such_as = "such as " if len(column.feature_names) > SHOWN_FEATURES else ""
            raise ValueError(
                f"{name!r} is categorical and cannot be a target itself: name one of its features, {such_as}{shown}"
            )
    raise ValueError(f"the release has no feature {name!r}; its features are {', '.join(map(repr, names))}")


def _features(release: Released, features: Sequence[str] | None, target: int, *, leave_one_level: bool) -> list[int]:
    columns = {column.name: column.feature_names for column in release.schema.columns}
    names = release.feature_names
    if features is None:
        own = next(block for block in columns.values() if names[target] in block)
        left_out = {block[0] for block in columns.values() if len(block) > 1} if leave_one_level else set()
        return [index for index, name in enumerate(names) if name not in own and name not in left_out]
    if isinstance(features, str):
        raise TypeError("features is a list of names, not one string")
    chosen: list[int] = []
    for name in features:
        block = columns.get(name, (name,))
        chosen += [_feature_index(release, feature) for feature in block]
    if target in chosen:
        raise ValueError(f"the target {names[target]!r} is among the features: leave it out")
    if not chosen:
        raise ValueError("no features: name at least one")
    if len(set(chosen)) < len(chosen):
        raise ValueError("a feature is named twice")
    whole = [
        name for name, block in columns.items() if len(block) > 1 and {names.index(f) for f in block} <= set(chosen)
    ]
    if leave_one_level and whole:
        # Noise hides this from a look at the eigenvalues, and the coefficients would be arbitrary.
        raise ValueError(
            f"all levels of {', '.join(map(repr, whole))} with an intercept make a singular system, since they add up to one: "
            "leave one level out, or give alpha > 0"
        )
    return chosen
