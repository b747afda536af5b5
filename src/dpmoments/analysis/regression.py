"""Linear regressions from released moments.

Least squares, ridge and lasso, in the table's own units.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

import numpy as np

from dpmoments.analysis.answers import confidence_level, in_floating_point
from dpmoments.analysis.description import describe
from dpmoments.analysis.normal_equations import NormalEquations
from dpmoments.analysis.regression_results import ExplainedVariance, FittedLine
from dpmoments.analysis.regressors import PenalizedLevels, Regressors, regressed_moment
from dpmoments.analysis.released import Moments, cautions_by_code, complete_share
from dpmoments.analysis.robust_errors import ResidualProducts
from dpmoments.base.errors import InputValueError, out_of_range, shown
from dpmoments.base.values import FloatArray, first_largest, is_finite_number
from dpmoments.moments.models import MomentInterval
from dpmoments.moments.repair import exact_law
from dpmoments.moments.spectral import SpectralNoise
from dpmoments.privacy import sensitivity
from dpmoments.privacy.budget import BudgetKind


@in_floating_point
def ols(
    release: Moments,
    target: str,
    features: Sequence[str] | None = None,
    *,
    intercept: bool | None = None,
    reference: Sequence[str] | Mapping[str, str | int] | None = None,
    level: float = 0.95,
    cov_type: Literal["auto", "HC", "HC1", "nonrobust"] = "auto",
) -> FittedLine:
    """Fit least squares of a feature on others, with intervals: free of privacy cost.

    If the noise is small, the coefficients solve the normal equations of the released moments. Else they are the coefficients
    nearest to ``ridge("auto")`` that the release does not refute, so that each lies in its confidence interval. Those of one
    column are of the moments after repair, as ``release.correlation`` and :func:`group_means` are. A coefficient whose
    interval is unbounded is not estimable at this budget.

    Parameters
    ----------
    release : Moments
    target : str
        A feature (of a categorical column one level, ``region=north``), or a formula of R or patsy whose terms are affine
        functions of features: ``income ~ I(age/10) + C(region, Sum)``.
    features : sequence of str, optional
        Feature or column names (a categorical column stands for all its levels); default: all features except those of
        the target's column and those computed from it.
    intercept : bool, optional
        Fit an intercept; default: if a mean was released.
    reference : sequence of str or mapping, optional
        Levels such as ``region=north`` (a list, or ``{"region": "north"}``) with which the other levels of their columns are
        compared. If all levels of a column are in the fit, one must be left out, since they add up to one. Default: the most
        frequent level in the release.
    level : float
        Confidence of intervals and bounds.
    cov_type : {"auto", "HC", "HC1", "nonrobust"}
        Sampling errors that allow for residuals of unequal variance (``"HC"``, which is HC1, White 1980), or that assume one
        variance. The former need the products of all regressors and the target in the schema
        (:meth:`dpmoments.Schema.with_products`), and are the default if they are there. HC2 and HC3 need the leverage of every
        row, which moments do not hold: they are refused.

    Returns
    -------
    FittedLine
        ``print`` shows it as a table.

    Raises
    ------
    ValueError
        If a name is not a feature, the target is a feature or one is derived from the other, terms of the formula follow from
        each other, an intercept is requested without a released mean, the level is below 0.5, no number of rows was released,
        or ``"HC"`` lacks products, which are named.

    Notes
    -----
    Intervals are for the coefficients in the population that the table's rows are a sample of
    (:class:`dpmoments.analysis.normal_equations.NormalEquations`, ``docs/evidence/derivations/regression-inference.md``).

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
    if cov_type in ("HC2", "HC3"):
        raise InputValueError(
            f"cov_type={shown(cov_type)} divides each squared residual by a power of 1 less the row's leverage, "
            "which a release of moments does not hold: use 'HC1', which differs little where rows are many "
            "times the coefficients"
        )
    if cov_type not in ("auto", "HC", "HC1", "nonrobust"):
        raise InputValueError(
            f"cov_type={shown(cov_type)}: use 'HC' (HC1), 'nonrobust' or 'auto' (HC1 if the release has the products)"
        )
    release, chosen = Regressors.read(release, target, features, intercept, reference)
    chosen.require_independent(release)
    robust = cov_type != "nonrobust"
    products = ResidualProducts.of(release, chosen, required=cov_type != "auto") if robust else None
    equations = NormalEquations.of(release, chosen, products)
    if equations is None or not (equations.delta_method_valid or equations.linearized):
        penalized = PenalizedFit.of(release, chosen, None)
        slopes = penalized.slopes[[chosen.unmerged.index(feature) for feature in chosen.features]]
        if equations is None:
            return _fitted_line(release, chosen, None, "least squares", penalized, level)
        equations = replace(equations, toward=np.concatenate([[np.nan], slopes]) if chosen.intercept else slopes)
    slopes = equations.estimate[1 if chosen.intercept else 0 :]
    of = release.with_repair("none") if equations.repaired is None else release
    fit = PenalizedFit.of_slopes(regressed_moment(of, intercept=chosen.intercept), chosen, slopes)
    return _fitted_line(release, chosen, equations, "least squares", fit, level)


@in_floating_point
def ridge(
    release: Moments,
    target: str,
    features: Sequence[str] | None = None,
    *,
    alpha: float | Literal["auto"] = "auto",
    intercept: bool | None = None,
    reference: Sequence[str] | Mapping[str, str | int] | None = None,
    level: float = 0.95,
) -> FittedLine:
    """Fit ridge regression of a feature on others.

    Better predictions if noise matters, no privacy cost.

    Solves (S_AA + 2α I) w = S_Ay for encoded rows, S the repaired covariance (with an intercept) or second moment (without): the
    minimizer of ‖Xw − y‖²/(2n) + α‖w‖². The coefficients are then converted to original units.

    All levels of a categorical column are penalized alike, and then printed relative to the reference level: predictions do not
    depend on which it is. A level with too few rows counts as an average one. Only in a column whose rows may have no level
    (``missing="zero"``, ``other="zero"``) these are merged into the reference level, as they are in :func:`ols`.

    Parameters
    ----------
    release : Moments
    target : str
        As for :func:`ols`.
    features : sequence of str, optional
        As for :func:`ols`.
    alpha : float or "auto"
        The α of Amin et al. (2019), in unit-ball units, so that it treats all columns alike; where the schema has typical ranges
        it presses less on columns that got more of the ball, and less noise. ``"auto"``: by the noise distribution
        (:func:`dpmoments.analysis.regression.automatic_alpha`).
    intercept : bool, optional
        Fit an intercept, which is not penalized; default: if a mean was released.
    reference : sequence of str or mapping, optional
        As for :func:`ols`.
    level : float
        Confidence of intervals and bounds.

    Returns
    -------
    FittedLine
        Without errors, intervals or p-values: those of a penalized fit are not known.

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
    release, chosen = Regressors.read(release, target, features, intercept, reference)
    fit = PenalizedFit.of(release, chosen, stated_penalty(alpha))
    return _fitted_line(release, chosen, NormalEquations.of(release, chosen), "ridge", fit, level)


@in_floating_point
def lasso(
    release: Moments,
    target: str,
    features: Sequence[str] | None = None,
    *,
    alpha: float | Literal["auto"] = "auto",
    intercept: bool | None = None,
    reference: Sequence[str] | Mapping[str, str | int] | None = None,
    level: float = 0.95,
) -> FittedLine:
    """Fit the lasso of a feature on others, most coefficients exactly 0: free of privacy cost.

    Minimizes ‖Xw − y‖²/(2n) + α‖w‖₁ for encoded rows, as scikit-learn does, from the repaired moments.

    Parameters
    ----------
    release : Moments
    target : str
        As for :func:`dpmoments.analysis.regression.ols`.
    features : sequence of str, optional
        As for :func:`dpmoments.analysis.regression.ols`.
    alpha : float or "auto"
        In unit-ball units. ``"auto"``: what noise and sampling reach in the largest of k cells, √(2 ln 2k) standard deviations
        (the universal threshold of Donoho & Johnstone 1994).
    intercept : bool, optional
        Fit an intercept, which is not penalized; default: if a mean was released.
    reference : sequence of str or mapping, optional
        As for :func:`dpmoments.analysis.regression.ols`.
    level : float
        Confidence level of intervals.

    Returns
    -------
    FittedLine
        Without errors, intervals or p-values: those of a penalized fit are not known.

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
    release, chosen = Regressors.read(release, target, features, intercept, reference)
    equations = NormalEquations.of(release, chosen)
    penalty = stated_penalty(alpha)
    if penalty is None and equations is None:
        penalty = automatic_alpha(release, chosen.features, chosen.target, intercept=chosen.intercept)
    if penalty is None:
        assert equations is not None
        first = int(chosen.intercept)
        without_features = np.append(np.zeros(equations.n_regressors), 1.0)
        if chosen.intercept:
            without_features[0] = -float(equations.moments[0, -1] / equations.moments[0, 0])
        largest = float(np.diag(equations.error_covariance(without_features))[first:].max())
        penalty = math.sqrt(2.0 * math.log(2.0 * (equations.n_regressors - first)) * largest) / equations.n_rows
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
    slopes = np.where(np.abs(slopes) > _LEFT_BY_ROUNDING * np.abs(slopes).max(), slopes, 0.0)
    fit = PenalizedFit.of_slopes(moment, chosen, slopes, penalty)
    return _fitted_line(release, chosen, equations, "lasso", fit, level)


_LEFT_BY_ROUNDING = 1e-10
"""Share of the largest slope up to which one is 0, but for rounding."""


# What they share: the penalized system, and the answer that is made of slopes.


def stated_penalty(alpha: float | Literal["auto"]) -> float | None:
    """Return the given penalty; None for ``"auto"``."""
    if alpha == "auto":
        return None
    if not (is_finite_number(alpha) and float(alpha) >= 0.0):
        raise out_of_range("alpha", alpha, "'auto', 0 or a positive number")
    return float(alpha)


@dataclass(frozen=True, eq=False)
class PenalizedFit:
    """Ridge fit: coefficients of all levels, and slopes relative to the reference levels."""

    moment: FloatArray  # (d, d)
    target: int
    intercept: bool
    levels: PenalizedLevels
    penalized: FloatArray  # (q,), what is penalized: weights of encoded rows are `levels.basis` times this
    alpha: float

    @classmethod
    def of(cls, release: Moments, chosen: Regressors, alpha: float | None) -> PenalizedFit:
        """Solve (S_AA + 2α I) w = S_Ay, A the features and the reference levels.

        None chooses α, and penalizes coefficients in units in which all features have the same noise.
        """
        levels = PenalizedLevels.of(release, chosen, sizes=noise_sizes(release) if alpha is None else None)
        if alpha is None:
            alpha = automatic_alpha(release, levels.indices, chosen.target, intercept=chosen.intercept)
        moment = regressed_moment(release, intercept=chosen.intercept)
        fit = cls(moment, chosen.target, chosen.intercept, levels, np.zeros(levels.basis.shape[1]), alpha)
        system = fit.system
        if float(np.linalg.eigvalsh(system)[0]) <= 1e-12 * max(1.0, float(np.trace(system))):
            raise InputValueError(
                f"the system is singular at alpha {shown(alpha)}: features are collinear or the noise hides them: "
                "leave features out, or use ridge with alpha > 0 (or 'auto')"
            )
        cross = levels.basis.T @ moment[list(levels.indices), chosen.target]
        return replace(fit, penalized=np.asarray(np.linalg.solve(system, cross)))

    @classmethod
    def of_slopes(cls, moment: FloatArray, chosen: Regressors, slopes: FloatArray, alpha: float = 0.0) -> PenalizedFit:
        """Return the fit that has these slopes of features, found in another way."""
        levels = PenalizedLevels.of_features(chosen.features)
        return cls(moment, chosen.target, chosen.intercept, levels, slopes, alpha)

    @property
    def weights(self) -> FloatArray:
        """Coefficients of `levels.indices`, for encoded rows, shape (p,)."""
        return self.levels.basis @ self.penalized

    @property
    def slopes(self) -> FloatArray:
        """Slopes of encoded features, shape (k,)."""
        return self.levels.relative @ self.weights

    @property
    def system(self) -> FloatArray:
        """S_AA + 2α I, without the directions in which predictions do not change."""
        a, basis = list(self.levels.indices), self.levels.basis
        return basis.T @ self.moment[np.ix_(a, a)] @ basis + 2.0 * self.alpha * np.eye(basis.shape[1])


def _fitted_line(
    release: Moments,
    chosen: Regressors,
    equations: NormalEquations | None,
    method: str,
    fit: PenalizedFit,
    level: float,
) -> FittedLine:
    printed = chosen.with_rare_levels if method == "ridge" else chosen
    a, y, names = list(printed.features), chosen.target, release.feature_names
    moment, slopes = fit.moment, fit.slopes
    scale = release.encoding.scale
    coefficients = slopes * scale[y] / scale[a]
    constant = 0.0
    if chosen.intercept:
        if method == "least squares" and equations is not None:
            constant = float(equations.coefficients[0])
        else:
            own = list(fit.levels.indices)
            constant = float(
                release.mean[y] - (release.mean[own] - fit.levels.constant) @ (fit.weights * scale[y] / scale[own])
            )
    variance = float(moment[y, y])
    explained = float(2.0 * slopes @ moment[a, y] - slopes @ moment[np.ix_(a, a)] @ slopes)
    if method == "lasso" or (equations is not None and equations.toward is not None):
        value, note = None, "the bound is for ridge fits"
    else:
        value, note = _error_bound(release, fit, 1.0 - level)
    return FittedLine(
        method=method,
        target=names[y],
        features=tuple(names[index] for index in a),
        coefficients=coefficients,
        intercept=constant,
        alpha=fit.alpha,
        references=chosen.references,
        too_few=chosen.too_few,
        level=level,
        equations=equations,
        explained=_explained(release, chosen, equations, method, fit),
        unit_ball_coefficients=slopes,
        unit_ball_error_bound=value,
        error_bound_note=note,
        released_r_squared=min(max(explained / variance, 0.0), 1.0) if variance > 0 else 0.0,
        n_rows=round(release.sample_size * complete_share(release, [*a, y])[0]),
        with_intercept=chosen.intercept,
        help=_help(release, equations, [names[index] for index in chosen.features]),
        warning=cautions_by_code(release),
        release=release,
    )


def _explained(
    release: Moments, chosen: Regressors, equations: NormalEquations | None, method: str, fit: PenalizedFit
) -> ExplainedVariance | None:
    if equations is None:
        return None
    if method == "least squares" and equations.identified:
        return ExplainedVariance.of_population(equations)
    alpha = fit.alpha
    if method == "least squares":
        alpha = math.sqrt(equations.noise_variance * equations.n_regressors) / equations.n_rows
    if method == "ridge":
        if chosen.references:
            of_levels = NormalEquations.of(release, replace(chosen, features=fit.levels.indices))
            assert of_levels is not None
            equations = of_levels
        equations = equations.mapped(fit.levels.map_of(equations.with_constant))
    return ExplainedVariance.of_line(equations, fit.penalized, 2.0 * alpha * equations.n_rows)


def _help(release: Moments, equations: NormalEquations | None, names: Sequence[str]) -> str:
    """Return advice for a fit that is noise; ``names`` are its features."""
    if equations is None:
        return ""
    if equations.identified:
        return "More rows or a larger budget would show a weaker relation."
    fewer = "fewer features, or " if len(names) > 1 else ""
    described = describe(release)[list(names)]
    hidden = (described.deviation_below > 0.0) | described.standard_deviation_is_noise
    lost = [name for name, unseen in zip(names, hidden, strict=True) if unseen]
    if 0 < len(lost) < len(names):
        words = ("vary", "them") if len(lost) > 1 else ("varies", "it")
        return f"Noise hides how much {', '.join(lost)} {words[0]}: leave {words[1]} out."
    if following := _following(equations, names):
        named = ", ".join(following)
        return f"The features {named} nearly follow from each other (all but {_FOLLOWS:.0%} of their variance): leave one out."
    least = equations.least_eigenvalue
    if least <= 0.05 * equations.noise_floor:
        return f"It takes {fewer}far more rows or a far larger budget."
    times = max(equations.noise_floor / least, 1.5)
    return f"It takes {fewer}at least {times:.1f} times the rows or the budget."


_FOLLOWS = 0.01
"""Share of the features' variance below which a combination of them counts as constant."""


def _following(equations: NormalEquations, names: Sequence[str]) -> list[str]:
    """Return features that nearly follow from each other despite any noise; empty without any."""
    if not (equations.with_constant and len(names) > 1):
        return []
    along = equations.gram[0, 1:] / equations.gram[0, 0]
    places = equations.design_map[1:-1] - np.outer(along, equations.design_map[0])
    covariance = equations.gram[1:, 1:] - np.outer(along, equations.gram[0, 1:])
    size = np.diag(covariance)
    if not (size > 0.0).all():
        return []
    eigenvalues, vectors = np.linalg.eigh(covariance / np.sqrt(np.outer(size, size)))
    weights = vectors[:, 0]
    noise = math.sqrt(max(equations.noise.variance_of_square(weights / np.sqrt(size) @ places), 0.0))
    if max(float(eigenvalues[0]), 0.0) + 3.0 * noise > _FOLLOWS:
        return []
    return [name for name, weight in zip(names, np.abs(weights), strict=True) if weight > 0.1 * np.abs(weights).max()]


# The ridge parameter that a release itself asks for, from the law of its noise: ``docs/evidence/derivations/ridge-parameter.md``

_TAKEN_BY_REPAIR = 0.5
"""Fraction of noise removed from the features' moments by the repair that counts as gone."""
_EXPLAINED_SHARES = (np.arange(40) + 0.5) / 40.0
"""Prior of the share of the target's variance that the features explain: uniform."""
_VARIANCE_EXPONENTS = (0.0, 0.5)
"""Prior variance of a coefficient ∝ (variance of its direction)^(−a).

a = 0 for coefficients alike in all directions.
"""
_SCALES = np.array([0.25, 1.0, 4.0])
"""A coefficient's own prior variance is the common one times one of these, equally likely."""
_MIN_DIRECTION = 1e-9
"""Min fraction of the largest variance; directions below it are assumed constant if a > 0."""
_PENALTIES = 200
_MIN_PENALTY, _MAX_PENALTY = 0.02, 1e3
"""The grid of 2α starts at this multiple of σ√k.

It ends at that of σ√k or of the largest variance, whichever is more.
"""
_SINGULAR = 1e-11
"""2α is at least this share of the trace, below which the system would count as singular."""


@dataclass(frozen=True, slots=True, eq=False)
class _Spectrum:
    """A regression in the eigenbasis of the features' repaired moments."""

    variances: FloatArray
    vectors: FloatArray
    solved: FloatArray
    observed: FloatArray
    target_variance: float
    noise_variance: float


@in_floating_point
def automatic_alpha(release: Moments, features: Sequence[int], target: int, *, intercept: bool) -> float:
    """Choose the α whose ridge fit is nearest to the posterior mean of the coefficients.

    The posterior mean given the noisy cross moments is computed in the eigenbasis of the features' moments, for a
    prior that the release and its noise distribution determine: normal means with a scale mixture as the prior (West
    1987), Cov(N b) = v(‖b‖² I + b bᵀ). α minimizes the expected loss of the fit (S_AA + 2α I) w = S_Ay on the
    repaired moments against it; S is the covariance with an ``intercept``, else the second moment about zero. α is in
    unit-ball units, above 0 and finite.

    If ``release.noise`` is None or has caveats, noise on every entry at the same budget is assumed, and the effect of
    the repair assumed unknown.
    """
    spectrum = _spectrum(release, list(features), target, intercept)
    expected = _posterior_means(spectrum)
    # 2α of least Σ (s + σ)(ŵ(α) − E[w])²; σ = √v is the error of a variance
    s, deviation = spectrum.variances, math.sqrt(spectrum.noise_variance)
    unit = deviation * math.sqrt(len(s))
    least = max(_MIN_PENALTY * unit, _SINGULAR * max(1.0, float(s.sum())))
    penalties = np.geomspace(least, max(_MAX_PENALTY * max(unit, float(s.max())), 2.0 * least), _PENALTIES)
    fits = spectrum.solved / (s + penalties[:, None])
    losses = ((s + deviation) * (fits - expected) ** 2).sum(axis=1)
    return float(penalties[first_largest(-losses)]) / 2.0


@in_floating_point
def expected_coefficients(release: Moments, features: Sequence[int], target: int, *, intercept: bool) -> FloatArray:
    """Compute the posterior mean of encoded coefficients, shape (k,)."""
    # A fit in its own right, with a penalty for each direction; `automatic_alpha` uses it.
    spectrum, sizes = _spectrum(release, list(features), target, intercept), noise_sizes(release)
    return np.asarray(spectrum.vectors @ _posterior_means(spectrum) * (sizes[target] / sizes[list(features)]))


def noise_sizes(release: Moments) -> FloatArray:
    """Return the features' sizes in coordinates of equal noise, shape (d,), about 1."""
    law, d = exact_law(release.noise), len(release.feature_names)
    if law is None:
        return np.ones(d)
    variances = law.variance(np.arange(1, d + 1)[:, None], np.ones((d, 1, 1)))
    known = variances > 0.0
    if not known.any():
        return np.ones(d)
    logarithms = np.log(np.where(known, variances, 1.0)) / 4.0
    return np.asarray(np.exp(np.where(known, logarithms - logarithms[known].mean(), logarithms[known].min())))


def _spectrum(release: Moments, features: list[int], target: int, intercept: bool) -> _Spectrum:
    """Return the regression in coordinates of equal noise."""
    sizes = noise_sizes(release)
    units = np.outer(sizes, sizes)
    moment = regressed_moment(release, intercept=intercept) / units
    block = np.ix_(features, features)
    variances, vectors = np.linalg.eigh(moment[block])
    solved = vectors.T @ moment[features, target]
    if exact_law(release.noise) is None:
        observed, noise_variance = solved, _typical_noise(release, moment)
    else:
        raw_release = release.with_repair("none")
        raw = regressed_moment(raw_release, intercept=intercept) / units
        noise_variance = _cell_variance(release, raw_release, intercept, sizes)
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


def _cell_variance(release: Moments, raw_release: Moments, intercept: bool, sizes: FloatArray) -> float:
    """Return v, the noise variance of an off-diagonal entry per row."""
    # Features are in units of these sizes. The noise of the mean is spread over all entries.
    noise, n_rows = exact_law(release.noise), release.sample_size
    assert noise is not None
    if release.noisy_sum is not None:
        about_center = release.noisy_sum / n_rows
        if intercept:
            noise = noise.about(-about_center)
        else:
            # Σ(u + o)(u + o)ᵀ for rows u about the center holds the noise on Σu times o, the center seen from the table's zero
            origin = raw_release.unit_ball_mean - about_center + release.encoding.offset / release.encoding.scale
            noise = noise.about(origin)
    return SpectralNoise.of(noise.carried(np.diag(1.0 / np.append(1.0, sizes)))).cell_variance / n_rows**2


def _typical_noise(release: Moments, moment: FloatArray) -> float:
    """Return v of Gaussian noise on the Gram matrix at the release's budget."""
    # Of matrix Laplace noise if it is pure.
    budget, neighbors, d = release.privacy.budget, release.privacy.neighbors, len(moment)
    k = release.privacy.rows_per_unit  # what is left for one row: a k-th of ε, a k²-th of ρ
    if budget.kind is BudgetKind.PURE:
        rate = budget.epsilon / k / sensitivity.gram_nuclear(neighbors, d).value
        variance = (d + 1) / (2.0 * rate**2)
    else:
        variance = sensitivity.gram_frobenius(neighbors, d).value ** 2 / (4.0 * budget.to_rho() / k**2)
    square = 1.0 if release.schema.row_norm is not None else max(float(np.trace(moment)), 0.0)
    return variance * square**2 / release.sample_size**2


def _posterior_means(spectrum: _Spectrum) -> FloatArray:
    """Return posterior means of the coefficients along each eigenvector, shape (k,)."""
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


# How far the privacy noise can have moved the coefficients of a ridge fit (``docs/evidence/derivations/ridge-error-bound.md``).

_SHARES = (1.0, 0.9, 0.8, 0.65, 0.5, 0.35, 0.25, 0.15, 0.1, 0.05, 0.02, 0.01, 0.001, 0.0)
"""θ: every share of the lower bound on a positive semi-definite matrix is one too.

The best of these is used.
"""


def _error_bound(release: Moments, fit: PenalizedFit, failure: float) -> tuple[float | None, str]:
    """Bound ‖ŵ − w‖ with failure probability ≤ ``failure``, w the fit on the table."""
    # Slopes of encoded rows. Relative to reference levels they are at most this times as long as the penalized coefficients.
    times = float(np.linalg.norm(fit.levels.relative @ fit.levels.basis, 2))
    model = release.noise_model
    interval = None if model is None else model.interval(release, [*fit.levels.indices, fit.target], failure)
    if model is not None and interval is not None:
        if interval.constant and not fit.intercept:
            # moments about the zero of the table's units, in units of the encoding's scale
            matrix = np.eye(len(interval.center))
            matrix[1:, 0] = (release.encoding.offset / release.encoding.scale)[[*fit.levels.indices, fit.target]]
            about_zero = interval.mapped(matrix)
            interval = MomentInterval(about_zero.center[1:, 1:], about_zero.spread[1:, 1:], False, interval.count_error)
        interval = interval.mapped(fit.levels.map_of(interval.constant))
        of_count = 0.0 if release.count_is_public else interval.count_error
        bound = _coefficient_error_bound(interval, fit.penalized, fit.alpha, float(release.sample_size), of_count)
        return times * bound, _COVERAGE.get(model.condition, "")
    if release.noise is None:
        return None, f"the noise distribution of {release.mechanism!r} is unknown"
    if release.noise.caveats:
        return None, "the noise distribution is conditional on more than the release, and gives no bound"
    if not fit.intercept and release.noisy_sum is not None and release.encoding.offset.any():
        return None, ("about the zero of the table's units the noises of mean and Gram matrix mix; fit an intercept")
    length = float(np.linalg.norm(fit.levels.basis, 2))
    operator = length * _moment_error_bound(release, fit, failure)
    curvature = max(2.0 * fit.alpha, float(np.linalg.eigvalsh(fit.system)[0]) - length * operator)
    note = "Lemma 1 of Amin et al. 2019"
    if curvature <= 0:
        return times * math.inf, note
    return times * (operator * math.sqrt(1.0 + float(fit.weights @ fit.weights)) / curvature), note


def _moment_error_bound(release: Moments, fit: PenalizedFit, failure: float) -> float:
    """Bound ‖Ŝ − S‖_op on a block, Ŝ the moment matrix in use, for noise of known distribution."""
    noise, chosen = release.noise, [*fit.levels.indices, fit.target]
    assert noise is not None
    n, block, indices = release.sample_size, np.ix_(chosen, chosen), np.array(chosen) + 1
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
"""Notes on the coverage of a bound from an interval, by the condition of the interval."""


def _coefficient_error_bound(
    interval: MomentInterval, weights: FloatArray, alpha: float, n_rows: float, count_error: float
) -> float:
    """Bound ‖ŵ − w‖ for every table whose moments are in an interval, w its ridge coefficients.

    Inf if one has no fit.

    The penalty is 2αn on each coefficient, none on the constant; n is within ``count_error`` of ``n_rows``. The target is last.

    With M = C + E, −R ⪯ E ⪯ R, and b = (ŵ, −1): (M_AA + P)(ŵ − w) = g + (Eb)_A, g = (C_AA + P)ŵ − C_Ay known, so that
    ‖ŵ − w‖_H ≤ √(gᵀH⁻¹g) + ρ√(bᵀRb) for any H ⪯ M_AA + P with R_AA ⪯ ρ²H. H = θ(C − R)_AA + P, with the best θ in [0, 1]. The
    other bound is ‖ŵ‖ + ‖w‖, with ‖w‖ ≤ √M_yy/(2√λ) for a penalty λ; the smaller one is used.
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
