"""Reliability of items, factors behind them, canonical and tetrachoric correlations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

import numpy as np
import scipy

from dpmoments.analysis.answers import Answer, Column, confidence_level, in_floating_point, number
from dpmoments.analysis.confidence import format_probability, score_test
from dpmoments.analysis.effects import zero_one
from dpmoments.analysis.estimate import Estimates, MomentErrors, estimates_of
from dpmoments.analysis.functionals import independent_features
from dpmoments.analysis.released import Moments, cautions_by_code, correlation_of, named_features
from dpmoments.base.checks import check_one_of, is_whole
from dpmoments.base.errors import InputValueError, out_of_range
from dpmoments.base.values import FloatArray

_AT_LIMIT = "A unique variance is at its limit: a factor is an item itself, and errors are too small."


@in_floating_point
def cronbach_alpha(release: Moments, columns: Sequence[str], *, level: float = 0.95) -> Estimates:
    """Compute Cronbach's α of a sum of items: free of privacy cost.

    Parameters
    ----------
    release : Moments
    columns : sequence of str, or str
        The items, two at least, or the name of one of the schema's ``item_lists``.
    level : float
        Confidence of the interval.

    Returns
    -------
    Estimates

    Raises
    ------
    ValueError
        If a name is unknown, there are fewer than two items, or no mean was released.

    Notes
    -----
    k/(k − 1)·(1 − Σ variances/variance of the sum) (Cronbach 1951), with an interval that is symmetric in −log(1 − α).

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> rng = np.random.default_rng(0)
    >>> items = rng.normal(0, 0.1, (20_000, 1)) + rng.normal(0, 0.1, (20_000, 4))
    >>> released = dpm.release(items, dpm.Schema.unit_ball(4), epsilon=3.0, insecure_seed=0)
    >>> released.cronbach_alpha(["x0", "x1", "x2", "x3"]).value.round(1).tolist()
    [0.8]
    """

    def alpha(_: FloatArray, covariance: FloatArray) -> FloatArray:
        k = len(covariance)
        return np.array([k / (k - 1.0) * (1.0 - np.trace(covariance) / covariance.sum())])

    return _of_items(release, columns, "cronbach_alpha", "Cronbach's α", alpha, level)


@in_floating_point
def mcdonald_omega(release: Moments, columns: Sequence[str], *, level: float = 0.95) -> Estimates:
    """Compute McDonald's ω of a sum of items: free of privacy cost.

    Parameters
    ----------
    release : Moments
    columns : sequence of str, or str
        The items, three at least, or the name of one of the schema's ``item_lists``.
    level : float
        Confidence of the interval.

    Returns
    -------
    Estimates

    Raises
    ------
    ValueError
        If a name is unknown, there are fewer than three items, or no mean was released.

    Notes
    -----
    (Σ loadings)²/((Σ loadings)² + Σ unique variances), of one factor fitted to the covariances by maximum likelihood
    (McDonald 1999).

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> rng = np.random.default_rng(0)
    >>> items = rng.normal(0, 0.1, (20_000, 1)) + rng.normal(0, 0.1, (20_000, 4))
    >>> released = dpm.release(items, dpm.Schema.unit_ball(4), epsilon=3.0, insecure_seed=0)
    >>> released.mcdonald_omega(["x0", "x1", "x2", "x3"]).value.round(1).tolist()
    [0.8]
    """

    def omega(_: FloatArray, covariance: FloatArray) -> FloatArray:
        deviations = np.sqrt(np.diag(covariance))
        loadings, unique = one.fitted(correlation_of(covariance))
        common = float(deviations @ loadings[:, 0]) ** 2
        return np.array([common / (common + float(deviations**2 @ unique))])

    one = Factors(1, "ml")
    result = _of_items(release, columns, "mcdonald_omega", "McDonald's ω", omega, level, least=3)
    return replace(result, warning="\n".join(filter(None, [_AT_LIMIT, result.warning]))) if one.at_limit else result


def _of_items(
    release: Moments,
    columns: Sequence[str],
    name: str,
    what: str,
    function: Callable[[FloatArray, FloatArray], FloatArray],
    level: float,
    least: int = 2,
) -> Estimates:
    level = confidence_level(level)
    items = named_features(release, columns, word="columns")
    if len(items) < least:
        raise InputValueError(f"{what} is of {least} items or more, and columns names {len(items)}")
    what = f"{what} of {len(items)} items"
    return estimates_of(
        MomentErrors.of(release, items), [name], function, "log1m", level, what=what, warning=cautions_by_code(release)
    )


_LEAST_UNIQUE = 0.005
"""Smallest unique variance: below it a factor is an item itself (Heywood's case)."""


@dataclass(eq=False)
class Factors:
    """Fits of a number of factors to correlations, each begun at the first."""

    n_factors: int
    method: Literal["ml", "minres"]
    start: FloatArray | None = None
    at_limit: bool = False

    def fitted(self, correlation: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return unrotated loadings, (k, m), and unique variances, (k,)."""
        if not np.isfinite(correlation).all() or np.linalg.eigvalsh(correlation)[0] <= 0.0:
            raise np.linalg.LinAlgError("not a correlation matrix")
        of = _of_likelihood if self.method == "ml" else _of_residuals
        if self.start is None:
            smallest = 1.0 / np.diag(np.linalg.inv(correlation))  # 1 less the squared multiple correlations
            start = np.clip((1.0 - 0.5 * self.n_factors / len(correlation)) * smallest, _LEAST_UNIQUE, 1.0)
            minimize: Any = scipy.optimize.minimize  # its stubs know no bounds as a list
            found = minimize(
                lambda unique: of(unique, correlation, self.n_factors)[:2],
                start,
                jac=True,
                method="L-BFGS-B",
                bounds=[(_LEAST_UNIQUE, 1.0)] * len(start),
                options={"maxiter": 1000, "ftol": 1e-15, "gtol": 1e-9},
            )
            self.start = found.x
            self.at_limit = bool((found.x <= _LEAST_UNIQUE).any())
        unique = self.start.copy()
        free = (unique > _LEAST_UNIQUE) & (unique < 1.0)

        def slopes(some: FloatArray) -> FloatArray:
            every = unique.copy()
            every[free] = some
            return of(every, correlation, self.n_factors)[1][free]

        solved = scipy.optimize.root(slopes, unique[free], tol=1e-13).x if free.any() else unique[free]
        if not ((solved > 0.0) & (solved < 1.0)).all():
            raise np.linalg.LinAlgError("a unique variance is at its limit")
        unique[free] = solved
        return of(unique, correlation, self.n_factors)[2], unique


def _of_likelihood(unique: FloatArray, correlation: FloatArray, m: int) -> tuple[float, FloatArray, FloatArray]:
    """Return the discrepancy of likelihood, its gradient and loadings (Jöreskog 1967)."""
    root = np.sqrt(unique)
    values, vectors = np.linalg.eigh(correlation / np.outer(root, root))
    values, vectors = values[::-1], vectors[:, ::-1]
    loadings = root[:, None] * vectors[:, :m] * np.sqrt(np.maximum(values[:m] - 1.0, 0.0))
    rest = np.maximum(values[m:], 1e-12)
    implied = loadings @ loadings.T + np.diag(unique)
    slope = np.diag(implied - correlation) / unique**2
    return float(np.sum(rest - np.log(rest) - 1.0)), slope, loadings


def _of_residuals(unique: FloatArray, correlation: FloatArray, m: int) -> tuple[float, FloatArray, FloatArray]:
    """Return the squared residuals, their gradient and loadings (Harman & Jones 1966)."""
    values, vectors = np.linalg.eigh(correlation - np.diag(unique))
    loadings = vectors[:, ::-1][:, :m] * np.sqrt(np.maximum(values[::-1][:m], 0.0))
    residual = correlation - np.diag(unique) - loadings @ loadings.T
    return float(np.sum(residual**2)) / 2.0, -np.diag(residual), loadings


def _varimax(loadings: FloatArray, start: FloatArray | None = None) -> tuple[FloatArray, FloatArray]:
    """Return rotated loadings and the rotation, by Kaiser's (1958) planar rotations."""
    size = np.sqrt(np.sum(loadings**2, axis=1))
    size = np.where(size > 0.0, size, 1.0)
    rotation = np.eye(loadings.shape[1]) if start is None else start.copy()
    turned = loadings / size[:, None] @ rotation
    for _ in range(500):
        largest = 0.0
        for first in range(turned.shape[1]):
            for second in range(first + 1, turned.shape[1]):
                x, y = turned[:, first], turned[:, second]
                u, v = x**2 - y**2, 2.0 * x * y
                above = 2.0 * (u @ v) - 2.0 * u.sum() * v.sum() / len(x)
                below = u @ u - v @ v - (u.sum() ** 2 - v.sum() ** 2) / len(x)
                angle = np.arctan2(above, below) / 4.0
                cosine, sine = np.cos(angle), np.sin(angle)
                plane = np.array([[cosine, -sine], [sine, cosine]])
                turned[:, [first, second]] = turned[:, [first, second]] @ plane
                rotation[:, [first, second]] = rotation[:, [first, second]] @ plane
                largest = max(largest, abs(float(angle)))
        if largest < 1e-13:
            break
    return turned * size[:, None], rotation


@dataclass(frozen=True, eq=False, repr=False)
class FactorAnalysis(Answer):
    """Factors of some features, as factor_analyzer names them.

    Attributes
    ----------
    feature_names : tuple of str
    loadings_ : ndarray of shape (k, m)
        Correlations of features and factors, factors by decreasing variance.
    estimates : Estimates
        Loadings, a factor after the other, then unique variances, with errors and intervals.
    method, rotation : str
    at_limit : bool
        True if a unique variance is at its limit of 0.005: a factor is then an item itself, and errors are too small.
    level : float
    warning : str
    """

    feature_names: tuple[str, ...]
    loadings_: FloatArray
    uniquenesses: FloatArray
    estimates: Estimates
    method: str
    rotation: str
    at_limit: bool
    level: float
    warning: str = ""

    facts = ("feature_names", "method", "rotation", "level", "at_limit", "estimates", "warning")

    def get_uniquenesses(self) -> FloatArray:
        """Return the variance of every feature that no factor shares, (k,)."""
        return self.uniquenesses

    def get_communalities(self) -> FloatArray:
        """Return the variance of every feature that the factors share, (k,)."""
        return np.asarray(np.sum(self.loadings_**2, axis=1))

    def get_factor_variance(self) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the variance of every factor, its share, and the shares added up."""
        variance = np.sum(self.loadings_**2, axis=0)
        share = variance / len(self.loadings_)
        return variance, share, np.cumsum(share)

    @property
    def heading(self) -> tuple[str, ...]:
        m, turned = self.loadings_.shape[1], ""
        if m > 1 and self.rotation != "none":
            turned = f", {self.rotation} rotation"
        return (f"{m} factor{'s' if m > 1 else ''} of {len(self.feature_names)} features ({self.method}{turned})",)

    @property
    def remarks(self) -> tuple[str, ...]:
        known = self.estimates.value[: self.loadings_.size].reshape(self.loadings_.T.shape).sum(axis=1)
        every = zip(100.0 * self.get_factor_variance()[1], np.isfinite(known), strict=True)
        shares = ", ".join(f"{share:.3g} %" if is_known else "–" for share, is_known in every)
        hidden = "Loadings that noise hides are not estimable: use fewer factors or items."
        return (
            f"share of the variance: {shares}" if "%" in shares else "",
            f"in brackets: {100.0 * self.level:.6g} % intervals",
            _AT_LIMIT if self.at_limit else "",
            "" if np.isfinite(self.estimates.value).all() else hidden,
            self.warning,
        )

    def _columns(self) -> list[Column]:
        k, m = self.loadings_.shape
        both = [f"{row[1]} {row[4]}" for row in self.estimates.table()[1:]]
        values = self.estimates.value
        columns = [Column("feature", self.feature_names, "feature", label=True)]
        for factor in range(m):
            at = slice(factor * k, (factor + 1) * k)
            columns.append(Column(f"factor_{factor + 1}", values[at], f"factor {factor + 1}", both[at]))
        return [*columns, Column("uniqueness", values[m * k :], "unique", both[m * k :])]


@in_floating_point
def factor_analysis(
    release: Moments,
    n_factors: int,
    columns: Sequence[str] | None = None,
    method: Literal["ml", "minres"] = "ml",
    rotation: Literal["varimax", "none"] = "varimax",
    *,
    level: float = 0.95,
) -> FactorAnalysis:
    """Fit common factors to correlations: free of privacy cost.

    Parameters
    ----------
    release : Moments
    n_factors : int
        How many.
    columns : sequence of str, or str, optional
        Columns or features, or the name of one of the schema's ``item_lists``; default: all. Of all levels of a column the most
        frequent is left out.
    method : {"ml", "minres"}
        Maximum likelihood, or least squares of the residuals.
    rotation : {"varimax", "none"}
        With rows normalized (Kaiser 1958).
    level : float
        Confidence of the intervals.

    Returns
    -------
    FactorAnalysis

    Raises
    ------
    ValueError
        If a name is unknown, there are too few features for the factors, the noise leaves no correlation matrix, or no mean was
        released.

    Notes
    -----
    Errors are of first order in the correlations, with the derivatives of the fit. A factor has no sign of its own: its loadings
    add up to a number above 0.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> rng = np.random.default_rng(0)
    >>> items = rng.normal(0, 0.1, (20_000, 1)) + rng.normal(0, 0.1, (20_000, 4))
    >>> released = dpm.release(items, dpm.Schema.unit_ball(4), epsilon=3.0, insecure_seed=0)
    >>> released.factor_analysis(1).loadings_[:, 0].round(1).tolist()
    [0.7, 0.7, 0.7, 0.7]
    """
    level = confidence_level(level)
    check_one_of("method", method, ("ml", "minres"))
    check_one_of("rotation", rotation, ("varimax", "none"))
    chosen = independent_features(release, columns)
    k = len(chosen)
    if not is_whole(n_factors) or n_factors < 1:
        raise out_of_range("n_factors", n_factors, "a positive whole number")
    if (k - n_factors) ** 2 < k + n_factors:
        raise InputValueError(
            f"{n_factors} factors of {k} features have more loadings than there are correlations: fit fewer factors"
        )
    errors, fits = MomentErrors.of(release, chosen), Factors(n_factors, method)
    held: list[FloatArray] = []

    def loadings(_: FloatArray, covariance: FloatArray) -> FloatArray:
        unrotated, unique = fits.fitted(correlation_of(covariance))
        signs = np.where(unrotated.sum(axis=0) < 0.0, -1.0, 1.0)
        unrotated = unrotated * signs
        if rotation == "none" or n_factors == 1:
            return np.concatenate([unrotated.T.ravel(), unique])
        turned, found = _varimax(unrotated, held[0] if held else None)
        if not held:
            order = np.argsort(-np.sum(turned**2, axis=0), kind="stable")
            signed = np.where(turned.sum(axis=0) < 0.0, -1.0, 1.0)[order]
            held.append(found[:, order] * signed)
            turned = turned[:, order] * signed
        return np.concatenate([turned.T.ravel(), unique])

    try:
        first = loadings(errors.mean, errors.covariance)
    except np.linalg.LinAlgError:
        raise InputValueError(
            "noise leaves no correlation matrix of these features to fit factors to: name fewer features, or release "
            "with more budget"
        ) from None
    names = tuple(release.feature_names[feature] for feature in chosen)
    of_factors = [f"{name} on factor {factor + 1}" for factor in range(n_factors) for name in names]
    every = [*of_factors, *(f"uniqueness of {name}" for name in names)]
    estimates = estimates_of(errors, every, loadings, "identity", level)
    return FactorAnalysis(
        names,
        first[: k * n_factors].reshape(n_factors, k).T,
        first[k * n_factors :],
        estimates,
        method,
        rotation,
        fits.at_limit,
        level,
        cautions_by_code(release),
    )


@dataclass(frozen=True, eq=False, repr=False)
class CanonicalCorrelations(Answer):
    """Canonical correlations of two groups of features.

    Attributes
    ----------
    cancorr : Estimates
        With errors and intervals. Intervals of equal correlations, and of one that is 0, are approximate.
    x_cancoef, y_cancoef : ndarray
        Weights of the features, a column for each correlation, so that every variate has variance 1.
    x_names, y_names, feature_names : tuple of str
        Features of the two groups, and all in the release's order.
    statistic, p_value : float
        Test that no feature of one group is correlated with one of the other, with its degrees of freedom.
    degrees : int
    """

    cancorr: Estimates
    x_cancoef: FloatArray
    y_cancoef: FloatArray
    x_names: tuple[str, ...]
    y_names: tuple[str, ...]
    feature_names: tuple[str, ...]
    statistic: float
    degrees: int
    p_value: float

    facts = ("x_names", "y_names", "cancorr", "x_cancoef", "y_cancoef", "statistic", "degrees", "p_value")

    @property
    def heading(self) -> tuple[str, ...]:
        return (f"canonical correlations of {len(self.x_names)} and {len(self.y_names)} features",)

    @property
    def remarks(self) -> tuple[str, ...]:
        test = f"no relation at all: χ²({self.degrees}) = {number(self.statistic)}, {format_probability(self.p_value)}"
        return test, *self.cancorr.remarks

    def _columns(self) -> Sequence[Column]:
        return self.cancorr._columns()


@in_floating_point
def cancorr(release: Moments, x: Sequence[str], y: Sequence[str], *, level: float = 0.95) -> CanonicalCorrelations:
    """Compute canonical correlations of two groups of features: free of privacy cost.

    Parameters
    ----------
    release : Moments
    x, y : sequence of str, or str
        Columns or features, none in both, or names of the schema's ``item_lists``. Of all levels of a column the most frequent
        is left out.
    level : float
        Confidence of the intervals.

    Returns
    -------
    CanonicalCorrelations

    Raises
    ------
    ValueError
        If a name is unknown or in both groups, the noise leaves no covariance to invert, or no mean was released.

    Notes
    -----
    The singular values of Sxx^(−1/2) Sxy Syy^(−1/2) (Hotelling 1936), with intervals on Fisher's scale. The test is of all
    covariances between the groups together, with their noise: without noise, n times the sum of the squared correlations
    (Pillai's trace) as χ², which is not Bartlett's χ² of Wilks' lambda.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> rng = np.random.default_rng(0)
    >>> table = rng.normal(0, 0.1, (20_000, 1)) + rng.normal(0, 0.1, (20_000, 4))
    >>> released = dpm.release(table, dpm.Schema.unit_ball(4), epsilon=3.0, insecure_seed=0)
    >>> released.cancorr(["x0", "x1"], ["x2", "x3"]).cancorr.value.round(1).tolist()
    [0.7, 0.0]
    """
    level = confidence_level(level)
    one, two = (independent_features(release, names, word=word) for names, word in ((x, "x"), (y, "y")))
    if both := set(one) & set(two):
        raise InputValueError(f"{release.feature_names[min(both)]!r} is in x and in y: name it in one of them")
    errors, k = MomentErrors.of(release, [*one, *two]), len(one)
    smaller = min(k, len(two))

    def roots(covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
        first, second = (np.linalg.cholesky(block) for block in (covariance[:k, :k], covariance[k:, k:]))
        return np.linalg.inv(first), np.linalg.inv(second)

    def correlations(_: FloatArray, covariance: FloatArray) -> FloatArray:
        first, second = roots(covariance)
        return np.asarray(
            np.linalg.svd(first @ covariance[:k, k:] @ second.T, compute_uv=False)[:smaller], dtype=np.float64
        )

    try:
        first, second = roots(errors.covariance)
    except np.linalg.LinAlgError:
        raise InputValueError(
            "noise leaves no covariance of these features to invert: name fewer features, or release with more budget"
        ) from None
    left, _, right = np.linalg.svd(first @ errors.covariance[:k, k:] @ second.T, full_matrices=False)
    names = [f"correlation {at + 1}" for at in range(smaller)]
    estimates = estimates_of(errors, names, correlations, "fisher", level, warning=cautions_by_code(release))

    pairs = [(i, k + j) for i in range(k) for j in range(len(two))]
    weights = np.zeros((len(pairs), k + len(two), k + len(two)))
    for at, (i, j) in enumerate(pairs):
        weights[at, i, j] = weights[at, j, i] = 0.5
    privacy, _ = errors.errors(np.zeros((len(pairs), k + len(two))), weights)
    apart: FloatArray = np.asarray(
        np.kron(errors.covariance[:k, :k], errors.covariance[k:, k:]) / errors.moments.independent_rows
    )
    scores = np.array([errors.covariance[pair] for pair in pairs])
    statistic, degrees, p_value = score_test(scores, privacy, apart, len(pairs), errors.moments.law)
    return CanonicalCorrelations(
        estimates,
        first.T @ left,
        second.T @ right.T,
        tuple(release.feature_names[index] for index in one),
        tuple(release.feature_names[index] for index in two),
        estimates.feature_names,
        statistic,
        degrees,
        p_value,
    )


_NODES, _WEIGHTS = np.polynomial.legendre.leggauss(40)


def _both_below(p: float, q: float, r: float) -> float:
    """Return the probability that two normals are below their p and q quantiles."""
    h, k = scipy.special.ndtri(p), scipy.special.ndtri(q)
    angles = np.arcsin(r) * (_NODES + 1.0) / 2.0
    density = np.exp(-(h**2 + k**2 - 2.0 * h * k * np.sin(angles)) / (2.0 * np.cos(angles) ** 2))
    return float(p * q + np.arcsin(r) / 2.0 * (_WEIGHTS @ density) / (2.0 * np.pi))


@in_floating_point
def tetrachoric(release: Moments, columns: Sequence[str], *, level: float = 0.95) -> Estimates:
    """Compute tetrachoric correlations of Booleans: free of privacy cost.

    Parameters
    ----------
    release : Moments
    columns : sequence of str
        Booleans or levels, two at least, such as ``income > 50,000`` cut at public thresholds.
    level : float
        Confidence of the intervals.

    Returns
    -------
    Estimates
        One for each pair.

    Raises
    ------
    ValueError
        If a name is unknown, a feature is neither a Boolean nor a level, or no mean was released.

    Notes
    -----
    The correlation of two normal variables that are above their thresholds as often, alone and together, as the release says
    (Pearson 1900). The sampling error is of the four cells.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, dpmoments as dpm
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(0, 1, (50_000, 1)) + rng.normal(0, 1, (50_000, 2))
    >>> table = pa.table({"high": x[:, 0] > 1, "long": x[:, 1] > 0})
    >>> released = dpm.release(table, dpm.Schema(dpm.Boolean("high"), dpm.Boolean("long")), epsilon=1.0, insecure_seed=0)
    >>> released.tetrachoric(["high", "long"]).value.round(1).tolist()
    [0.5]
    """
    level = confidence_level(level)
    named = named_features(release, columns, word="columns")
    chosen = [zero_one(release, release.feature_names[index]) for index in named]
    if len(chosen) < 2:
        raise InputValueError("a correlation is of two features: name two at least")

    def correlation(mean: FloatArray, covariance: FloatArray) -> FloatArray:
        (p, q), both = mean.tolist(), covariance[0, 1] + mean[0] * mean[1]
        root = scipy.optimize.brentq(lambda r: _both_below(p, q, r) - both, -1.0 + 1e-9, 1.0 - 1e-9, xtol=1e-13)
        return np.array([root])

    parts, names = [], []
    for at, first in enumerate(chosen):
        for second in chosen[:at]:
            errors = MomentErrors.of(release, [second, first])
            name = f"{release.feature_names[second]} ~ {release.feature_names[first]}"
            parts.append(estimates_of(errors, [name], correlation, "fisher", level, sampling=errors.sampling_of_cells))
            names.append(name)
    what = f"tetrachoric correlations of {len(chosen)} features"
    features = tuple(release.feature_names[index] for index in sorted(chosen))
    return Estimates.joined(parts, feature_names=features, what=what, warning=cautions_by_code(release))
