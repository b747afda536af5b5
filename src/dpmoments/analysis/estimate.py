"""Estimates of smooth functions of means and covariances, with noise and sampling error."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from numbers import Real
from typing import Any, Literal, NamedTuple

import numpy as np

from dpmoments.analysis.answers import Answer, Column, confidence_level, format_level, in_floating_point, step_errors
from dpmoments.analysis.confidence import (
    deviations_for,
    error_rate,
    holds_among_all,
    p_values,
    sign_verdicts,
    verdict_columns,
)
from dpmoments.analysis.functionals import (
    SINGULAR,
    FeatureVariances,
    LocalMoments,
    covariance_of_gaps,
    describe_law,
    semidefinite,
)
from dpmoments.analysis.released import (
    Moments,
    Weighting,
    by_squared_weights,
    cautions_by_code,
    indices_of,
    named_features,
)
from dpmoments.base.checks import check_one_of
from dpmoments.base.errors import wrong_type
from dpmoments.base.values import BoolArray, FloatArray, IntegerArray
from dpmoments.moments.law import NoiseLaw
from dpmoments.schema.constraints import Constraints

_STEP = 1e-5
"""Step of numeric derivatives, in standard deviations: differences then have ten digits."""
_LOST, _COARSE = 1e-6, 1e-3
"""Standard deviation, in public units, below which it is not one, and what stands for it."""
_BEND = 0.25
"""Largest departure from a parabola over an interval, as a share of its change there."""


class Scale(NamedTuple):
    """The scale on which an interval is symmetric, and the value that says "nothing there"."""

    of: Callable[[FloatArray], FloatArray]
    back: Callable[[FloatArray], FloatArray]
    slope: Callable[[FloatArray], FloatArray]  # derivative of `of`
    nothing: float = 0.0


Link = Literal["identity", "log", "log1m", "fisher"]
SCALES: Mapping[str, Scale] = {
    "identity": Scale(lambda x: x, lambda y: y, np.ones_like),
    "log": Scale(np.log, np.exp, lambda x: 1.0 / x, 1.0),
    "log1m": Scale(lambda x: -np.log1p(-x), lambda y: -np.expm1(-y), lambda x: 1.0 / (1.0 - x)),
    "fisher": Scale(np.arctanh, np.tanh, lambda x: 1.0 / (1.0 - x**2)),
}
"""Scales of intervals: of sums, of ratios, of reliabilities, of correlations."""


@dataclass(frozen=True, eq=False)
class MomentErrors:
    """Means and covariances of some features before repair, and the errors of their functions.

    Levels and Booleans have the variance p(1 − p) and two levels of a column the covariance −pq, with the
    noise of the shares only; they are sampled as free variances are, which gives the textbook's errors of coefficients.
    """

    mean: FloatArray  # (k,), in original units
    covariance: FloatArray  # (k, k)
    moments: LocalMoments
    features: IntegerArray  # (k,)
    feature_names: tuple[str, ...]  # in the release's order
    on_mean: FloatArray  # (k, k + 1, k + 1), weights of every mean on Σ w wᵀ of the constant and the features
    on_covariance: FloatArray  # (k, k, k + 1, k + 1)
    weighting: Weighting | None  # of a release of weighted rows

    @classmethod
    def of(cls, release: Moments, features: Sequence[int]) -> MomentErrors:
        """Return the moments of features by index."""
        moments, chosen = LocalMoments.of(release), np.asarray(features)
        variances = FeatureVariances.of(release, moments)
        k, n, unit = len(chosen), moments.n_rows, moments.unit[chosen]
        mean = moments.location[chosen].copy()
        covariance = moments.moments[np.ix_(chosen + 1, chosen + 1)] * np.outer(unit, unit) / n

        on_mean, on_covariance = np.zeros((k, k + 1, k + 1)), np.zeros((k, k, k + 1, k + 1))
        every = np.arange(k)
        on_mean[every, 0, every + 1] = on_mean[every, every + 1, 0] = unit / (2.0 * n)
        of_pair = np.outer(unit, unit) / n
        row, column = np.tril_indices(k)
        on_covariance[row, column, row + 1, column + 1] += of_pair[row, column] / 2.0
        on_covariance[row, column, column + 1, row + 1] += of_pair[row, column] / 2.0
        on_covariance[row, column, 0, 0] -= covariance[row, column] / n

        # a share decides a variance, and shares of two levels of a column their covariance
        share = variances.of_share[chosen]
        p = np.where(share, np.clip(mean, 0.0, 1.0), np.nan)
        for block in Constraints.of(release.schema, mean=True).blocks:
            inside = np.flatnonzero((chosen >= block.start) & (chosen < block.stop) & share)
            for i in inside:
                for j in inside[inside < i]:
                    covariance[i, j] = covariance[j, i] = -p[i] * p[j]
                    on_covariance[i, j] = -p[i] * on_mean[j] - p[j] * on_mean[i]
        for i in np.flatnonzero(share):
            covariance[i, i] = p[i] * (1.0 - p[i])
            on_covariance[i, i] = (1.0 - 2.0 * p[i]) * on_mean[i]
        names = tuple(release.feature_names[feature] for feature in sorted(features))
        upper = np.triu_indices(k, 1)
        on_covariance[upper] = np.swapaxes(on_covariance, 0, 1)[upper]
        covariance = (covariance + covariance.T) / 2.0
        return cls(mean, covariance, moments, chosen, names, on_mean, on_covariance, release.weighting)

    @cached_property
    def _spread(self) -> FloatArray:
        """The positive semi-definite matrix nearest to the correlations, in original units."""
        deviations = np.sqrt(np.maximum(np.diag(self.covariance), 0.0))
        safe = np.where(deviations > 0.0, deviations, 1.0)
        return np.asarray(semidefinite(self.covariance / np.outer(safe, safe)) * np.outer(safe, safe))

    def errors(self, of_mean: FloatArray, of_covariance: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the covariances of m functions by noise and by sampling."""
        # their gradients are (m, k) and (m, k, k)
        return self.privacy(of_mean, of_covariance), self.sampling(of_mean, of_covariance)

    def privacy(self, of_mean: FloatArray, of_covariance: FloatArray) -> FloatArray:
        """Return the covariance of m functions by noise and by what clipping hides."""
        weights = np.einsum("mi,iab->mab", of_mean, self.on_mean, optimize=True)
        weights += np.einsum("mij,ijab->mab", of_covariance, self.on_covariance, optimize=True)
        return self.moments.covariance(np.append(0, self.features + 1), weights)

    def sampling_of_cells(self, of_mean: FloatArray, of_covariance: FloatArray) -> FloatArray:
        """Return the covariance of m functions of two Booleans by sampling, over their four cells."""
        (p, q), both = self.mean, self.covariance[0, 1]
        joint = np.clip(both + p * q, max(0.0, p + q - 1.0), min(p, q))
        of_share = of_mean + np.diagonal(of_covariance, axis1=1, axis2=2) * (1.0 - 2.0 * self.mean)
        result = np.zeros((len(of_mean), len(of_mean)))
        cells = np.array([[1, 1], [1, 0], [0, 1], [0, 0]])
        shares = np.array([joint, p - joint, q - joint, 1.0 - p - q + joint])
        if self.weighting is not None:
            shares *= self.weighting.of_cells(cells, self.mean, self.covariance, self.features)
        for (u, v), share in zip(cells, shares, strict=True):
            change = of_share @ np.array([u - p, v - q]) + 2.0 * of_covariance[:, 0, 1] * ((u - p) * (v - q) - both)
            result += share * np.outer(change, change)
        first, second = self.features
        gaps = self.moments.gaps
        missing = 1.0 + gaps[first] + gaps[second] + self.moments.joint_gaps[first, second]
        return np.asarray(result * missing / self.moments.independent_rows)

    def sampling(self, of_mean: FloatArray, of_covariance: FloatArray) -> FloatArray:
        """Return the covariance of m functions by sampling, for normal rows."""
        spread = self._spread
        of_means = spread
        if (weighting := self.weighting) is not None:
            root = np.sqrt(weighting.stated[self.features])
            change = weighting.spread[np.ix_(self.features, self.features)]
            of_means = by_squared_weights(spread, change) * np.outer(root, root)
            spread = spread * np.sqrt(np.outer(root, root))
        gaps, joint_gaps = self.moments.gaps[self.features], self.moments.joint_gaps
        between = of_covariance @ spread
        result = 2.0 * np.einsum("aij,bji->ab", between, between, optimize=True)
        if gaps.any():
            joint = joint_gaps[np.ix_(self.features, self.features)]
            own = 1.0 + gaps
            diagonal = np.diag(of_means) * own
            of_means = of_means * np.outer(own, own) / (joint + own[:, None] + gaps)
            np.fill_diagonal(of_means, diagonal)
            result += covariance_of_gaps(of_covariance, spread, gaps, joint)
        result += of_mean @ of_means @ of_mean.T
        return np.asarray(result / self.moments.independent_rows)

    def gradients(
        self, function: Callable[[FloatArray, FloatArray], FloatArray]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return the values of a function and its gradients, (m,), (m, k), (m, k, k)."""
        k = len(self.features)
        # noise can make a variance nothing or less: steps are then by the public bounds, since shorter ones would be lost
        spread, unit = np.sqrt(np.maximum(np.diag(self.covariance), 0.0)), self.moments.unit[self.features]
        spread = np.where(spread > _LOST * unit, spread, _COARSE * unit)
        step, basis = _STEP * spread, np.diag(spread)
        try:  # a function of an inverse bends within what features have of their own
            own = np.linalg.cholesky(self.covariance)
            basis = own if (np.diag(own) > math.sqrt(SINGULAR) * spread).all() else basis
        except np.linalg.LinAlgError:
            pass
        value = function(self.mean.copy(), self.covariance.copy())
        of_mean, of_covariance = np.zeros((len(value), k)), np.zeros((len(value), k, k))
        for i in range(k):
            sides = []
            for sign in (1.0, -1.0):
                moved = self.mean.copy()
                moved[i] += sign * step[i]
                sides.append(function(moved, self.covariance.copy()))
            of_mean[:, i] = (sides[0] - sides[1]) / (2.0 * step[i])
            for j in range(i + 1):
                turn = _STEP * (np.outer(basis[:, i], basis[:, j]) + np.outer(basis[:, j], basis[:, i])) / 2.0
                sides = [function(self.mean.copy(), self.covariance + sign * turn) for sign in (1.0, -1.0)]
                of_covariance[:, i, j] = of_covariance[:, j, i] = (sides[0] - sides[1]) / (2.0 * _STEP)
        back = np.linalg.inv(basis)
        return value, of_mean, back.T @ of_covariance @ back


@dataclass(frozen=True, eq=False, repr=False)
class Estimates(Answer):
    """Estimates of functions of moments, each with its interval.

    Attributes
    ----------
    names : tuple of str
    value : ndarray of shape (m,)
        NaN where it is not estimable.
    lower, upper : ndarray of shape (m,)
        Interval of the population's value, on the scale of the link.
    privacy_noise, sampling_noise : ndarray of shape (m,)
        The two parts of the standard error.
    p_value : ndarray of shape (m,)
        Of the hypothesis that the value is 0, or 1 for a ratio.
    privacy_lower, privacy_upper : ndarray of shape (m,)
        Interval of the table's own value, by the noise.
    feature_names : tuple of str
        Features that they are made of, in the release's order.
    level : float
    link : str
    what : str
        What the numbers are, in the heading.
    warning : str
    """

    names: tuple[str, ...]
    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    privacy_noise: FloatArray
    sampling_noise: FloatArray
    p_value: FloatArray
    privacy_lower: FloatArray
    privacy_upper: FloatArray
    feature_names: tuple[str, ...]
    level: float
    link: str = "identity"
    what: str = "estimates"
    warning: str = ""
    noise_known: bool = True

    facts = ("feature_names", "level", "link", "estimates: *", "warning")

    @classmethod
    def joined(cls, parts: Sequence[Estimates], **stated: Any) -> Estimates:
        """Return the estimates of several answers as one."""
        arrays: dict[str, Any] = {
            field.name: np.concatenate([getattr(part, field.name) for part in parts])
            for field in fields(cls)
            if isinstance(getattr(parts[0], field.name), np.ndarray)
        }
        return replace(parts[0], names=tuple(name for part in parts for name in part.names), **arrays, **stated)

    def __getitem__(self, name: str) -> tuple[float, float, float]:
        """Return a value and its interval, by name."""
        [at] = indices_of(self.names, name)
        return float(self.value[at]), float(self.lower[at]), float(self.upper[at])

    @cached_property
    def verdict(self) -> tuple[str, ...]:
        """Sign of each by its own interval; of a ratio whether it is above or below 1."""
        nothing = SCALES[self.link].nothing
        words = ("above 1", "below 1") if nothing == 1.0 else ("positive", "negative")
        known = np.isfinite(self.value)
        p_value = np.where(known | (not self.noise_known), self.p_value, 1.0)
        privacy, sampling = (np.nan_to_num(part, nan=1.0) ** 2 for part in (self.privacy_noise, self.sampling_noise))
        return tuple(sign_verdicts(self.value - nothing, p_value, privacy, sampling, known, self.level, words=words))

    @cached_property
    def holds_among_all(self) -> BoolArray:
        """True for those whose sign also holds among all of this answer."""
        return holds_among_all(self.p_value, np.ones(len(self.names)), self.level)

    @property
    def heading(self) -> tuple[str, ...]:
        return (self.what,)

    @property
    def remarks(self) -> tuple[str, ...]:
        return "" if self.noise_known else describe_law(None), self.warning

    def _columns(self) -> list[Column]:
        error = step_errors(np.hypot(self.privacy_noise, self.sampling_noise), self.lower, self.upper)
        return [
            Column("name", self.names, "", label=True),
            Column("estimate", self.value, "estimate", errors=error),
            Column("privacy_noise", self.privacy_noise, "± privacy", errors=self.privacy_noise),
            Column("sampling_noise", self.sampling_noise, "± sampling", errors=self.sampling_noise),
            Column("lower", self.lower, format_level(self.level), errors=error, upper=self.upper),
            Column("upper", self.upper),
            Column("p_value", self.p_value),
            *verdict_columns(self.verdict, self.holds_among_all),
        ]


def estimates_of(
    errors: MomentErrors,
    names: Sequence[str],
    function: Callable[[FloatArray, FloatArray], FloatArray],
    link: Link = "identity",
    level: float = 0.95,
    *,
    sampling: Callable[[FloatArray, FloatArray], FloatArray] | None = None,
    what: str = "estimates",
    warning: str = "",
) -> Estimates:
    """Return the estimates of m functions by the delta method on the scale of a link."""
    scale, law, size = SCALES[link], errors.moments.law, len(names)
    with np.errstate(all="ignore"):

        def scaled(mean: FloatArray, covariance: FloatArray) -> FloatArray:
            return scale.of(np.asarray(function(mean, covariance), dtype=np.float64))

        try:
            value, of_mean, of_covariance = errors.gradients(scaled)
        except (np.linalg.LinAlgError, ArithmeticError, ValueError):
            k = len(errors.features)
            value, of_mean, of_covariance = (np.full((size, *shape), np.nan) for shape in ((), (k,), (k, k)))
        known = np.isfinite(value) & np.isfinite(of_mean).all(1) & np.isfinite(of_covariance).all((1, 2))
        of_mean, of_covariance = (
            np.where(known[:, None], of_mean, 0.0),
            np.where(known[:, None, None], of_covariance, 0.0),
        )
        by_sampling = (sampling or errors.sampling)(of_mean, of_covariance)
        of_noise, of_rows = (
            np.maximum(np.diag(part), 0.0) for part in (errors.privacy(of_mean, of_covariance), by_sampling)
        )
    degrees = max(errors.moments.independent_rows - 1.0, 1.0)

    def reach(half: FloatArray) -> tuple[FloatArray, FloatArray]:
        if errors.weighting is not None:
            deviations = np.sqrt(np.maximum(np.diag(errors.covariance), 0.0))
            half = half + np.abs(of_mean) @ errors.weighting.hidden_by_cap(deviations)
        result = np.where(known, _reach(errors, scaled, value, of_mean, of_covariance, half), np.nan)
        return result, np.divide(result, half, out=np.ones(size), where=half > 0.0)

    return estimates_of_errors(
        names,
        value,
        of_noise,
        of_rows,
        law,
        level,
        degrees,
        link,
        reach,
        features=errors.feature_names,
        what=what,
        warning=warning,
    )


def estimates_of_errors(
    names: Sequence[str],
    value: FloatArray,
    of_noise: FloatArray,
    of_rows: FloatArray,
    law: NoiseLaw | None,
    level: float,
    degrees: float,
    link: Link = "identity",
    reach: Callable[[FloatArray], tuple[FloatArray, FloatArray]] = lambda half: (half, np.ones_like(half)),
    *,
    features: tuple[str, ...],
    what: str = "estimates",
    warning: str = "",
) -> Estimates:
    """Return the estimates of numbers on the scale of a link, by their variances."""
    # `reach` returns half-widths that allow for a bend, and how much wider that makes them: errors grow alike
    scale, least = SCALES[link], error_rate(level)
    with np.errstate(all="ignore"):
        total = np.sqrt(of_noise + of_rows)
        half, wider = reach(deviations_for(level, law, of_noise, of_rows, degrees) * total)
        alone = wider * deviations_for(level, law, of_noise, np.zeros_like(of_noise)) * np.sqrt(of_noise)
        known = np.isfinite(value) & np.isfinite(half)
        apart = np.abs(value - scale.of(np.asarray(scale.nothing)))
        far = np.divide(apart, total, out=np.where(apart > 0.0, np.inf, 0.0), where=total > 0.0)
        p_value = p_values(far, of_noise, of_rows, law, degrees)
        # the hypothesis lies in the interval exactly if p is not below 1 − level
        p_value = np.where(half >= apart, np.maximum(p_value, least), np.minimum(p_value, np.nextafter(least, 0.0)))
        estimate = np.where(known, scale.back(value), np.nan)
        slope = np.abs(scale.slope(estimate))
        ends = [
            np.where(known, scale.back(value + sign * width), sign * np.inf)
            for width in (half, alone)
            for sign in (-1, 1)
        ]
        parts = [np.where(known, wider * np.sqrt(part) / slope, np.nan) for part in (of_noise, of_rows)]
    if law is None:
        ends, p_value = [np.full(len(value), np.nan)] * 4, np.full(len(value), np.nan)
    return Estimates(
        tuple(names),
        estimate,
        ends[0],
        ends[1],
        parts[0],
        parts[1],
        np.where(known, p_value, np.nan),
        ends[2],
        ends[3],
        features,
        level,
        link,
        what,
        warning,
        law is not None,
    )


def _reach(
    errors: MomentErrors,
    function: Callable[[FloatArray, FloatArray], FloatArray],
    value: FloatArray,
    of_mean: FloatArray,
    of_covariance: FloatArray,
    half: FloatArray,
) -> FloatArray:
    """Return half-widths that allow for a bend; NaN if no parabola describes the function.

    Along the changes of moments that are the likeliest to move each by its half-width.
    """
    spread, unit = np.diag(errors.covariance), errors.moments.unit[errors.features]
    cells = errors.moments.cell_variances(errors.features) * np.outer(unit, unit) ** 2 / errors.moments.n_rows**2
    cells, rows = np.nan_to_num(cells), errors.moments.independent_rows
    of_means = np.diag(np.diag(cells) / np.maximum(spread, 1e-300)) + errors._spread / rows
    result = half.copy()
    for index in range(len(value)):
        weights = of_covariance[index]
        mean, covariance = of_means @ of_mean[index], weights * cells
        covariance = covariance + 2.0 * errors._spread @ weights @ errors._spread / rows
        along = float(of_mean[index] @ mean + np.sum(weights * covariance))
        if along <= 0.0 or not half[index] > 0.0:
            continue

        def at(step: float, index: int = index, mean: FloatArray = mean, covariance: FloatArray = covariance) -> float:
            try:
                moved = function(errors.mean + step * mean, errors.covariance + step * covariance)
            except (np.linalg.LinAlgError, ArithmeticError, ValueError):
                return math.nan
            return float(moved[index] - value[index])

        share = half[index] / along
        after, before = at(share), at(-share)
        line, bend = (after - before) / 2.0, (after + before) / 2.0
        off = max(abs(at(side * share / 2.0) - side * line / 2.0 - bend / 4.0) for side in (1.0, -1.0))
        if not off <= _BEND * max(abs(line), abs(bend), 0.1 * half[index]):
            result[index] = math.nan
        elif abs(bend) > _BEND * abs(line):
            result[index] = max(half[index], abs(line) + abs(bend))
    return result


@in_floating_point
def estimate(
    release: Moments,
    function: Callable[[FloatArray, FloatArray], Any],
    columns: Sequence[str],
    link: Link = "identity",
    *,
    level: float = 0.95,
) -> Estimates:
    """Estimate any smooth function of means and covariances: free of privacy cost.

    Parameters
    ----------
    release : Moments
    function : callable
        Takes the means, shape (k,), and the covariances, shape (k, k), of the features, in original units and in the order of
        ``columns``; returns a number, a sequence of numbers, or a mapping of names to numbers.
    columns : sequence of str
        Columns or features.
    link : {"identity", "log", "log1m", "fisher"}
        Scale on which the interval is symmetric: log for ratios, Fisher's artanh for correlations, −log(1 − x) for
        reliabilities.
    level : float
        Confidence of the intervals.

    Returns
    -------
    Estimates

    Raises
    ------
    ValueError
        If a name or the link is unknown, the level is below 0.5, or no mean was released.
    TypeError
        If the function returns something else than numbers.

    Notes
    -----
    The function is taken at the moments before repair. Its error is of first order, by numeric derivatives, with the noise of
    the release and the sampling error of normal rows. A number is not estimable where the function is
    not defined, or bends too much over its interval for an error of first order.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> x = np.random.default_rng(0).uniform(0.2, 0.5, (50_000, 2))
    >>> released = dpm.release(x, dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0)
    >>> ratio = released.estimate(lambda mean, covariance: mean[0] / mean[1], ["x0", "x1"], link="log")
    >>> ratio.value.round(2).tolist(), ratio.verdict
    ([1.0], ('not clear (too few rows)',))
    """
    level = confidence_level(level)
    check_one_of("link", link, SCALES)
    errors = MomentErrors.of(release, named_features(release, columns, word="columns"))
    raised = ""
    with np.errstate(all="ignore"):
        try:
            first = function(errors.mean.copy(), errors.covariance.copy())
        except (np.linalg.LinAlgError, ArithmeticError, ValueError) as error:
            first, raised = math.nan, f" ({type(error).__name__})"
    given = np.ravel(np.asarray(list(first.values()) if isinstance(first, Mapping) else first, dtype=object))
    names = list(map(str, first)) if isinstance(first, Mapping) else [f"value {at + 1}" for at in range(len(given))]
    if not 0 < len(given) == len(names) or not all(isinstance(each, Real | np.bool_) for each in given):
        raise wrong_type(
            "what the function returns", "a number, a sequence of numbers or a mapping of names to numbers", first
        )
    if len(given) == 1 and not isinstance(first, Mapping):
        names = [getattr(function, "__name__", "value").replace("<lambda>", "value")]

    def numbers(mean: FloatArray, covariance: FloatArray) -> FloatArray:
        given = function(mean, covariance)
        return np.ravel(np.asarray(list(given.values()) if isinstance(given, Mapping) else given, dtype=np.float64))

    undefined = (
        "" if all(map(math.isfinite, given)) else f"The function is not defined at the released moments{raised}."
    )
    warning = "\n".join(filter(None, (undefined, cautions_by_code(release))))
    return estimates_of(errors, names, numbers, link, level, warning=warning)
