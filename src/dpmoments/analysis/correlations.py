"""Correlations of a release, each with its interval and what can be said of its sign."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any

import numpy as np
import scipy

from dpmoments.analysis.answers import Answer, Column, confidence_level, format_level, in_floating_point, step_errors
from dpmoments.analysis.confidence import (
    ERROR_RATE,
    NOT_ESTIMABLE,
    deviations_for,
    estimable,
    format_findings,
    holding,
    holds_among_all,
    p_values,
    sign_verdicts,
    verdict_columns,
)
from dpmoments.analysis.functionals import (
    SINGULAR,
    FeatureVariances,
    LocalMoments,
    Standardized,
    comparisons_of,
    describe_law,
    functionals_of,
    noise_edges,
    opposite_levels,
    without_redundant_levels,
)
from dpmoments.analysis.released import Moments, cautions_by_code, chosen_features, indices_of, needs_mean, unrelated
from dpmoments.analysis.robust_errors import PairProducts, known_ratio
from dpmoments.base.errors import InputValueError
from dpmoments.base.values import BoolArray, FloatArray, IntegerArray, largest_first
from dpmoments.moments.law import NoiseLaw

# How correlations vary from sample to sample, by what kind of features they are of.


def _sampling_variances(
    correlation: FloatArray, variances: FeatureVariances, i: IntegerArray, j: IntegerArray
) -> FloatArray:
    """Return n times the sampling variance of correlations, to first order."""
    square = correlation**2
    result = (1.0 - square) ** 2
    spread = np.clip(variances.share * (1.0 - variances.share), 1e-9, None)
    for of_share, other in ((i, j), (j, i)):
        mixed = variances.of_share[of_share] & ~variances.of_share[other]
        p_q = spread[of_share]
        biserial = (1.0 - square) ** 2 * (1.0 - 1.5 * square + square / (4.0 * p_q))
        result[mixed] = biserial[mixed]
    both: BoolArray = variances.of_share[i] & variances.of_share[j]
    if both.any():
        # E[ψ²], ψ = uv − r(u² + v²)/2, over the four cells of two shares; u and v are standardized
        r, p, q = correlation[both], variances.share[i[both]], variances.share[j[both]]
        p, q = np.clip(p, 1e-9, 1.0 - 1e-9), np.clip(q, 1e-9, 1.0 - 1e-9)
        deviation = np.sqrt(p * (1.0 - p) * q * (1.0 - q))
        joint = np.clip(p * q + r * deviation, np.maximum(0.0, p + q - 1.0), np.minimum(p, q))
        result[both] = 0.0
        for x, y, share in ((1, 1, joint), (1, 0, p - joint), (0, 1, q - joint), (0, 0, 1.0 - p - q + joint)):
            u, v = (x - p) / np.sqrt(p * (1.0 - p)), (y - q) / np.sqrt(q * (1.0 - q))
            result[both] += share * (u * v - r * (u**2 + v**2) / 2.0) ** 2
    return np.maximum(result, 0.0)


_CLOSE_TO_ONE = 1.0 - 1e-12


@dataclass(frozen=True, eq=False)
class _Errors:
    """Variance of ``r`` − ρ as a function of the population's ρ.

    Noise of C_ij − ρ√(V_i V_j) to first order, and sampling.

    The privacy part is ``of_product`` − 2ρ·``shared`` + ρ²·``of_scale``. The sampling part is constant on the scale of artanh r
    (Fisher 1921) for two numbers, so that without noise the interval is Fisher's.
    """

    r: FloatArray
    of_product: FloatArray
    shared: FloatArray
    of_scale: FloatArray
    variances: FeatureVariances
    i: IntegerArray
    j: IntegerArray
    moments: LocalMoments
    times: FloatArray
    """Factor on the sampling variance of normal rows, by products and design effects, (P,)."""
    of_normal_rows: BoolArray
    """True for pairs whose sampling variance assumes normal rows, shape (P,)."""

    @classmethod
    def of(
        cls,
        r: FloatArray,
        moments: LocalMoments,
        variances: FeatureVariances,
        i: IntegerArray,
        j: IntegerArray,
        safe: FloatArray,
        of_opposites: BoolArray,
    ) -> _Errors:
        product, scale = functionals_of(3, len(i)), functionals_of(3, len(i))
        product[:, 1, 2] = product[:, 2, 1] = 0.5 / (np.sqrt(safe[i]) * np.sqrt(safe[j]))
        own = variances.weights / (2.0 * safe)[:, None, None]
        for index, feature in ((1, i), (2, j)):
            for row, column in ((0, 0), (0, 1), (1, 0), (1, 1)):
                scale[:, index * row, index * column] += own[feature, row, column]
        product[of_opposites] = scale[of_opposites] = 0.0  # one level is where the other is not, in every table
        indices = np.stack([np.zeros(len(i), dtype=int), i + 1, j + 1], axis=1)
        of_product, of_scale, both = (
            moments.variances(indices, weights) for weights in (product, scale, product + scale)
        )
        shared = (both - of_product - of_scale) / 2.0
        assumed = ~(variances.of_share[i] & variances.of_share[j])
        return cls(r, of_product, shared, of_scale, variances, i, j, moments, np.ones(len(i)), assumed)

    def privacy(self, rho: FloatArray) -> FloatArray:
        """Return the variance of privacy noise if the population's correlation is ``rho``."""
        return np.maximum(self.of_product - 2.0 * rho * self.shared + rho**2 * self.of_scale, 0.0)

    def parts(self, rho: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return variances of noise and sampling error at the population's correlation ``rho``."""
        complete = self.times * _sampling_variances(rho, self.variances, self.i, self.j)
        # docs/evidence/derivations/missing-values.md, section 5
        moments, i, j = self.moments, self.i, self.j
        missing = (moments.gaps[i] + moments.gaps[j]) * (1.0 - rho**2 / 2.0)
        missing = missing + moments.joint_gaps[i, j] * (1.0 + rho**2)
        rows = max(moments.independent_rows - 3.0, 1.0)  # as in Fisher's interval
        return self.privacy(rho), (complete + np.maximum(missing, 0.0)) / rows

    def with_products(self, release: Moments, usable: BoolArray, safe: FloatArray) -> _Errors:
        """Return the errors with the sampling variances that released products give."""
        moments = self.moments
        asked = np.flatnonzero(usable & self.of_normal_rows)
        pairs, deviations = np.column_stack([self.i[asked], self.j[asked]]), np.sqrt(safe / moments.n_rows)
        found = PairProducts.of(release, pairs, moments.location, deviations)
        times = self.times.copy()
        if release.weighting is not None:  # of the two columns the larger stated design effect
            times *= np.maximum(release.weighting.stated[self.i], release.weighting.stated[self.j])
        if found is None:
            return replace(self, times=times)
        products, kept = found
        at, assumed = asked[kept], self.of_normal_rows.copy()
        r = self._inside[at]
        normal = _sampling_variances(r, self.variances, self.i[at], self.j[at])
        variance, noise = products.variances(r, moments.n_rows)
        times[at] *= known_ratio(variance / normal, noise / normal)
        assumed[at] = False
        return replace(self, times=times, of_normal_rows=assumed)

    @cached_property
    def _inside(self) -> FloatArray:
        """Correlations no nearer to ±1 than their standard error, or 1/n."""
        return _inside(self.r, np.maximum(np.sqrt(sum(self.parts(self.r))), 1.0 / self.moments.independent_rows))

    @cached_property
    def _on_scale(self) -> FloatArray:
        """Variance of the sampling error of artanh r."""
        return self.parts(self._inside)[1] / (1.0 - self._inside**2) ** 2

    def _between(self, rho: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return the variances of r − ρ."""
        # Noise at ``rho``, and sampling that is constant on the scale of artanh r.
        r, rho = (np.clip(each, -_CLOSE_TO_ONE, _CLOSE_TO_ONE) for each in (self.r, rho))
        apart = np.arctanh(r) - np.arctanh(rho)
        slope = np.divide(r - rho, apart, out=1.0 - rho**2, where=np.abs(apart) > 1e-6)
        return self.privacy(rho), self._on_scale * slope**2

    def interval(self, level: float) -> tuple[FloatArray, FloatArray]:
        """Return the hull of all ρ that a test at h(level) standard errors leaves."""

        def beyond(rho: FloatArray) -> FloatArray:
            """Return |r − ρ| − h·(standard error): positive where ρ is refuted."""
            privacy, sampling = self._between(rho)
            half = deviations_for(level, self.moments.law, privacy, sampling)
            return np.abs(r - rho) - half * np.sqrt(privacy + sampling)

        r = self.r
        at_zero, ends = beyond(np.zeros_like(r)), []
        for side in (-1.0, 1.0):
            outer = np.full_like(r, side)
            refuted = beyond(outer)
            zero_between = (r * side < 0.0) & (refuted > 0.0)
            inner = np.where(zero_between & (at_zero <= 0.0), 0.0, r)
            outer = np.where(zero_between & (at_zero > 0.0), 0.0, outer)

            # by the Illinois rule: where `beyond`, at most 0 at `inner` and above 0 at `outer`, crosses 0
            at_inner, at_outer = beyond(inner), beyond(outer)
            for _ in range(_STEPS):
                slope = at_outer - at_inner
                share = np.divide(at_inner, -slope, out=np.full_like(slope, 0.5), where=slope > 0.0).clip(0.0, 1.0)
                middle = inner + share * (outer - inner)
                value = beyond(middle)
                above = value > 0.0
                at_inner, at_outer = np.where(above, at_inner / 2.0, value), np.where(above, value, at_outer / 2.0)
                inner, outer = np.where(above, inner, middle), np.where(above, middle, outer)
                if np.abs(value).max(initial=0.0) < _NEAR:
                    outer = middle
                    break
            ends.append(np.where(refuted > 0.0, outer, side))

        return ends[0], ends[1]

    def p_values(self) -> FloatArray:
        """Return p-values of ρ = 0, counting the far end of [−1, 1] as the interval does."""
        rho = np.stack([np.zeros_like(self.r), -np.sign(self.r)])
        privacy, sampling = np.stack([self._between(each) for each in rho], axis=1)
        error, apart = np.sqrt(privacy + sampling), np.abs(self.r - rho)
        far = np.divide(apart, error, out=np.where(apart > 0.0, np.inf, 0.0), where=error > 0.0)
        at_zero, at_end = p_values(far, privacy, sampling, self.moments.law)
        result = np.maximum(at_zero, at_end)
        by_student = _p_by_student(result, self.r, self._on_scale, privacy[0], self.moments.law)
        return np.asarray(np.where(self.of_normal_rows, np.maximum(by_student, at_end), result))


def _p_by_student(
    p: FloatArray, r: FloatArray, on_scale: FloatArray, privacy: FloatArray, law: NoiseLaw | None
) -> FloatArray:
    """Return p-values of ρ = 0 by Student's t, on that side of 0.05 on which ``p`` is."""
    # `p` is of Fisher's interval, `on_scale` the sampling variance of artanh r: 1/(n − 3) where t has n − 2 degrees of freedom.
    degrees = 1.0 / np.maximum(on_scale, 1e-300) + 1.0
    t = np.abs(r) * np.sqrt(degrees / np.maximum(1.0 - r**2, 1e-300))
    normal = -scipy.special.ndtri(scipy.special.stdtr(degrees, -t))
    sampling = np.divide(r, normal, out=np.sqrt(on_scale), where=normal > 0.0) ** 2
    error = np.sqrt(privacy + sampling)
    result = p_values(
        np.divide(np.abs(r), error, out=np.full_like(r, np.inf), where=error > 0.0), privacy, sampling, law
    )
    below = np.minimum(result, np.nextafter(ERROR_RATE, 0.0))
    return np.where(p < ERROR_RATE, below, np.maximum(result, ERROR_RATE))


_STEPS, _NEAR = 24, 1e-11
"""Max number of steps to a crossing, and the distance from 0 at which all are there."""


KNOWN_VARIANCE = 3.0
"""Min variance for a correlation, in SDs of its noise."""
_NORMAL_ROWS = "on 16 real tables, the error without this assumption was 0.8 to 1.2 times it for 80 % of pairs"
"""Measured by ``benchmarks/practice/unequal_variance.py``."""
_SHOWN_PAIRS = 60
"""Max number of pairs in the text, the clearest first; frames and JSON hold all."""


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Correlations(Answer):
    """Correlations of all pairs of some features.

    In the order (2, 1), (3, 1), (3, 2), and so on.

    Attributes
    ----------
    feature_names : tuple of str
    correlation : ndarray of shape (k, k)
        As ``release.correlation``; NaN if not estimable.
    privacy_noise, sampling_noise : ndarray of shape (k, k)
        Standard deviations of the two parts of the error, before repair; NaN if not known.
    lower, upper : ndarray of shape (k, k)
        Interval of every correlation of the population.
    level : float
        Its confidence.
    partial : bool
        True for partial correlations given all other features.
    identified : bool
        False if the noise is too large to invert the covariance (partial correlations only): every number is then NaN.
    noise_known : bool
    normal_rows : bool
        True if the sampling error of a pair that is compared assumes normal rows.
    p_value : ndarray of shape (k, k)
        Of each correlation by itself; below 0.05 exactly when 0 is outside its 95 % interval. NaN if the noise is unknown.
    comparable : ndarray of bool, shape (k, k)
        False for features made of the same column (levels, powers, products), which get no verdict and are left out of the text.
    columns_of_features : tuple of str
        The column of each feature.
    cutoff : float or None
        Largest p/``counts_as`` of a pair that holds among all of a page; None: by Holm's correction over this table.
    counts_as : ndarray of shape (k, k)
        Comparisons that each pair counts as: k levels of a column are k − 1 of them.
    warning : str
    """

    feature_names: tuple[str, ...]
    correlation: FloatArray
    privacy_noise: FloatArray
    sampling_noise: FloatArray
    lower: FloatArray
    upper: FloatArray
    level: float
    partial: bool = False
    identified: bool = True
    noise_known: bool = True
    normal_rows: bool = False
    p_value: FloatArray
    comparable: BoolArray
    columns_of_features: tuple[str, ...]
    cutoff: float | None = None
    counts_as: FloatArray
    warning: str = ""

    facts = ("feature_names", "level", "partial", "identified", "pairs: *", "warning")

    def __getitem__(self, names: Sequence[str]) -> Correlations:
        """Return the correlations of some of the features, by name."""
        # Pairs hold among all of these pairs only.
        chosen = indices_of(self.feature_names, names)
        if len(chosen) < 2:
            raise InputValueError("a correlation is of two features: name two at least")
        block = np.ix_(chosen, chosen)
        every = ((field.name, getattr(self, field.name)) for field in fields(self))
        parts: dict[str, Any] = {name: value[block] for name, value in every if isinstance(value, np.ndarray)}
        return replace(
            self,
            feature_names=tuple(self.feature_names[index] for index in chosen),
            columns_of_features=tuple(self.columns_of_features[index] for index in chosen),
            **parts,
        )

    @cached_property
    def verdict(self) -> tuple[tuple[str, ...], ...]:
        """Verdict on each pair by its own interval; empty if not comparable."""
        result = np.full(self.lower.shape, "", dtype=object)
        first, second = self._pairs
        result[first, second] = result[second, first] = self._verdicts
        return tuple(map(tuple, result.tolist()))

    @cached_property
    def holds_among_all(self) -> BoolArray:
        """True for pairs whose sign also holds among all comparisons of the page, shape (k, k).

        The chance that any of them is false is at most 1 − ``level``.
        """
        first, second = (indices[self._counted] for indices in self._pairs)
        result = np.zeros(self.lower.shape, dtype=bool)
        held = holds_among_all(*self.comparisons, self.level, self.cutoff)
        result[first, second] = result[second, first] = held
        return result

    @cached_property
    def _verdicts(self) -> list[str]:
        pairs = self._pairs
        words = sign_verdicts(
            self.lower[pairs] + self.upper[pairs],
            self.p_value[pairs],
            np.nan_to_num(self.privacy_noise[pairs] ** 2, nan=1.0),
            np.nan_to_num(self.sampling_noise[pairs] ** 2, nan=0.0),
            estimable(self.lower[pairs], self.upper[pairs], -1.0, 1.0),
            self.level,
        )
        if not self.identified and self.noise_known:
            words = [NOT_ESTIMABLE] * len(words)
        return [word if counted else "" for word, counted in zip(words, self._counted, strict=True)]

    @property
    def _pairs(self) -> tuple[IntegerArray, IntegerArray]:
        return np.tril_indices(len(self.feature_names), -1)

    @property
    def _counted(self) -> BoolArray:
        return self.comparable[self._pairs]

    @property
    def comparisons(self) -> tuple[FloatArray, FloatArray]:
        """The p-values of the pairs that are compared, and the comparisons that each counts as."""
        counted = self._counted
        return self.p_value[self._pairs][counted], self.counts_as[self._pairs][counted]

    @property
    def _shown(self) -> list[int]:
        """Indices of comparable pairs, by decreasing |correlation| in standard errors."""
        if not self.identified:
            return []
        total = np.hypot(self.privacy_noise, self.sampling_noise)[self._pairs]
        size = np.abs(np.nan_to_num(self.correlation[self._pairs]))
        order = largest_first(np.divide(size, total, out=np.zeros_like(size), where=total > 0.0))
        return order[self._counted[order]].tolist()  # type: ignore[no-any-return]

    @property
    def heading(self) -> tuple[str, ...]:
        kind = "partial correlations, given all others of these features" if self.partial else "correlations"
        if not self.identified:
            return (f"{kind}: {NOT_ESTIMABLE}: too noisy to invert the covariance; use fewer columns",)
        held = self.holds_among_all[self._pairs][self._counted]
        return (f"{kind}: {format_findings(held, 'pairs', self.level)}",)

    @property
    def _shown_rows(self) -> list[int]:
        return self._shown[:_SHOWN_PAIRS]

    @property
    def remarks(self) -> tuple[str, ...]:
        hidden = len(self._shown) - _SHOWN_PAIRS
        more = f"… {hidden} more pairs: to_pandas() and --json hold all" if hidden > 0 else ""
        normal = f"± sampling assumes normal rows: {_NORMAL_ROWS}." if self.normal_rows and self.identified else ""
        return more, normal, "" if self.noise_known else describe_law(None), self.warning

    def _columns(self) -> list[Column]:
        pairs, names = self._pairs, self.feature_names
        every = self.correlation, self.privacy_noise, self.sampling_noise, self.lower, self.upper, self.p_value
        correlation, privacy, sampling, lower, upper, p_value = (values[pairs] for values in every)
        first, second = ([names[index] for index in indices] for indices in reversed(pairs))
        total = step_errors(np.hypot(privacy, sampling), lower, upper)
        return [
            Column("feature", first, label=True),
            Column("other", second, label=True),
            Column(head="pair", cells=[f"{one} ~ {other}" for one, other in zip(first, second, strict=True)]),
            Column("correlation", correlation, "correlation", errors=total),
            Column("privacy_noise", privacy, "± privacy", errors=privacy),
            Column("sampling_noise", sampling, "± sampling", errors=sampling),
            Column("lower", lower, format_level(self.level), errors=total, upper=upper),
            Column("upper", upper),
            Column("p_value", p_value),
            *verdict_columns(self._verdicts, self.holds_among_all[pairs]),
        ]


def _inside(correlation: FloatArray, deviation: FloatArray) -> FloatArray:
    """Return correlations no nearer to ±1 than their standard error."""
    most = np.minimum(_CLOSE_TO_ONE, np.maximum(1.0 - deviation, 0.0))
    return np.clip(correlation, -most, most)


@in_floating_point
def correlations(release: Moments, columns: Sequence[str] | None = None, *, level: float = 0.95) -> Correlations:
    """Compute correlations with noise, interval and verdict each: free of privacy cost.

    ``release.correlation`` is the bare array.

    Parameters
    ----------
    release : Moments
    columns : sequence of str, optional
        Columns or features, two at least; default: all.
    level : float
        Confidence of the intervals.

    Returns
    -------
    Correlations
        ``print`` shows the pairs, the clearest first.

    Raises
    ------
    ValueError
        If a name is unknown, the level is below 0.5, or no mean was released.

    Notes
    -----
    Intervals are of the population's correlations, on the scale of Fisher (1921). Their privacy part is the first order in the
    noise of the released moments, before any repair; for a column of two levels, averaged over both. An estimate is
    ``release.correlation``, whatever the level; an interval is widened where it does not hold it. The sampling
    part is from the second moments of the squares and the product of two columns where the schema has them
    (:meth:`dpmoments.Schema.with_products`), for any rows; else (1 − r²)²/n where both features are numbers, as for
    normal rows, for a number and a level as for the point-biserial correlation (Das Gupta 1960), and from the joint counts where
    both are levels or Booleans. If a variance is noise-dominated, the interval is [−1, 1].

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> x = np.random.default_rng(0).uniform(-0.5, 0.5, (50_000, 1))
    >>> table = np.hstack([x, 0.9 * x])
    >>> released = dpm.release(table, dpm.Schema.unit_ball(2), epsilon=1.0, insecure_seed=0)
    >>> released.correlations().verdict[0][1]
    'positive'
    """
    level = confidence_level(level)
    chosen = np.array(chosen_features(release, columns))
    if len(chosen) < 2:
        raise InputValueError("a correlation is of two features: name two at least")
    errors, usable, of_opposites = _errors_of_pairs(release, chosen)
    size, law = len(chosen), errors.moments.law
    privacy, sampling = errors.parts(errors.r)
    result = np.where(of_opposites & usable, -1.0, release.correlation[errors.i, errors.j])
    lower, upper = (np.clip(end, -1.0, 1.0) for end in holding(*errors.interval(level), result))
    p_value = np.where(usable, errors.p_values(), 1.0 if law is not None else np.nan)
    lower[of_opposites] = upper[of_opposites] = -1.0
    p_value[of_opposites & usable & ~np.isnan(p_value)] = 0.0
    lower[~usable], upper[~usable] = (np.nan, np.nan) if law is None else (-1.0, 1.0)
    if law is not None:
        p_value[result * errors.r <= 0.0] = 1.0  # 0 is between the estimate and what its interval is of
        result = np.where(estimable(lower, upper, -1.0, 1.0), result, np.nan)
    privacy[~usable] = sampling[~usable] = np.nan
    compared = unrelated(release, chosen.tolist())[np.tril_indices(size, -1)]
    return _answer(
        release,
        chosen.tolist(),
        level,
        correlation=_symmetric(result, size, 1.0),
        privacy_noise=_symmetric(np.sqrt(privacy), size, 0.0),
        sampling_noise=_symmetric(np.sqrt(sampling), size, 0.0),
        lower=_symmetric(lower, size, 1.0),
        upper=_symmetric(upper, size, 1.0),
        normal_rows=bool((errors.of_normal_rows & usable & compared).any()),
        p_value=_symmetric(p_value, size, 0.0),
    )


def _answer(release: Moments, features: Sequence[int], level: float, **parts: Any) -> Correlations:
    """Return the answer of these features; ``parts`` are the other fields."""
    counts_as = comparisons_of(release, features)
    return Correlations(
        feature_names=tuple(release.feature_names[feature] for feature in features),
        columns_of_features=tuple(release.column_names[feature] for feature in features),
        comparable=unrelated(release, features),
        counts_as=np.outer(counts_as, counts_as),
        level=level,
        noise_known=release.noise is not None,
        warning=cautions_by_code(release),
        **parts,
    )


@in_floating_point
def correlation_noise(release: Moments, features: Sequence[int]) -> FloatArray:
    """Return ``privacy_noise`` of :func:`correlations` alone, of k features, shape (k, k)."""
    errors, usable, _ = _errors_of_pairs(release, np.asarray(features))
    return _symmetric(np.where(usable, np.sqrt(errors.privacy(errors.r)), np.nan), len(features), 0.0)


def _errors_of_pairs(release: Moments, chosen: IntegerArray) -> tuple[_Errors, BoolArray, BoolArray]:
    """Return errors of pairs, and masks: variances not hidden, opposite levels."""
    opposite = opposite_levels(release)
    moments = LocalMoments.of(release).with_opposites(opposite)
    variances = FeatureVariances.of(release, moments)
    first, second = np.tril_indices(len(chosen), -1)
    i, j = chosen[first], chosen[second]
    of_opposites = opposite[i] == j
    noise = np.zeros(len(variances.values))
    if moments.law is not None:
        # what clipping hides only adds to a variance, which is known to be above 0 without it
        noise = variances.noise(replace(moments, law=moments.law.drawn))
    known = (variances.values > KNOWN_VARIANCE * noise) & (variances.values > 0.0)
    usable = known[i] & known[j]
    safe = np.where(known, variances.values, 1.0)
    root = np.sqrt(safe[i]) * np.sqrt(safe[j])
    raw = np.where(usable, moments.moments[i + 1, j + 1] / root, 0.0)
    bounded = np.clip(np.where(of_opposites, -1.0, raw), -1.0, 1.0)
    errors = _Errors.of(bounded, moments, variances, i, j, safe, of_opposites)
    return errors.with_products(release, usable, safe), usable, of_opposites


def _symmetric(values: FloatArray, size: int, diagonal: float) -> FloatArray:
    matrix = np.full((size, size), diagonal)
    rows = np.tril_indices(size, -1)
    matrix[rows] = values
    matrix.T[rows] = values
    matrix.setflags(write=False)
    return matrix


@in_floating_point
def partial_correlation(release: Moments, columns: Sequence[str] | None = None, *, level: float = 0.95) -> Correlations:
    """Compute partial correlations of two features given all others named: free of privacy cost.

    Parameters
    ----------
    release : Moments
    columns : sequence of str, optional
        Columns or features, two at least; default: all. Of a categorical whose levels are all there, the most frequent by the
        release is left out, since they add up to one.
    level : float
        Confidence of the intervals.

    Returns
    -------
    Correlations
        ``identified`` is False, and every number NaN, if the noise is too large to invert the covariance.

    Raises
    ------
    ValueError
        If a name is unknown, there are fewer than two features, the level is below 0.5, or no mean was released.

    Notes
    -----
    −P_ij/√(P_ii P_jj), P the inverse of the covariance before repair. Privacy: the first order in the noise, dP = −P dC P.
    Sampling: (1 − ρ²)²/(n − k − 1), as for normal rows. Identified: the smallest eigenvalue of the covariance, in units in which
    the noise is the same in all directions, is beyond the edge of the noise's spectrum.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(0, 0.1, (50_000, 1))
    >>> table = np.hstack([x, x + rng.normal(0, 0.1, (50_000, 1)), x + rng.normal(0, 0.1, (50_000, 1))])
    >>> released = dpm.release(table, dpm.Schema.unit_ball(3), epsilon=3.0, insecure_seed=0)
    >>> released.partial_correlation().verdict[2][1]
    'not clear (too few rows)'
    """
    level = confidence_level(level)
    if release.noisy_sum is None:
        raise needs_mean("partial correlations")
    chosen = without_redundant_levels(release, columns)
    if len(chosen) < 2:
        raise InputValueError("a correlation is of two features: name two at least")
    if len(chosen) == 2:  # nothing is given
        return replace(
            correlations(release, [release.feature_names[index] for index in chosen], level=level), partial=True
        )
    if int((np.diag(release.covariance)[chosen] > 0.0).sum()) < 2:
        return _not_identified(release, chosen, level)
    standardized = Standardized.of(release, chosen, by_deviation=False)
    features, law = standardized.features, standardized.moments.law
    k, n = len(features), standardized.moments.independent_rows
    smallest = float(np.linalg.eigvalsh(standardized.noisy)[0])
    largest = float(np.diag(standardized.noisy).max())
    if not smallest > SINGULAR * largest or not _noise_leaves_inverse(standardized, smallest):
        return _not_identified(release, features.tolist(), level)
    inverse = np.linalg.inv(standardized.noisy)
    root = np.sqrt(np.diag(inverse))
    result = np.clip(-(inverse + inverse.T) / (2.0 * np.outer(root, root)), -1.0, 1.0)
    np.fill_diagonal(result, 0.0)
    privacy = _privacy_variances(standardized, inverse / root, result)
    on_scale = 1.0 / max(n - k - 1.0, 1.0)
    sampling = on_scale * (1.0 - result**2) ** 2
    lower, upper, p_value = (np.full((k, k), np.nan) for _ in range(3))
    if law is not None:
        # Fisher's (1921) interval with noise: tanh(artanh r ± half·deviation/(1 − r²)), and |r| in standard errors
        deviation = np.sqrt(privacy + sampling)
        inside = _inside(result, deviation)
        unit, middle = deviation / (1.0 - inside**2), np.arctanh(inside)
        half = deviations_for(level, law, privacy, sampling) * unit
        lower, upper = np.tanh(middle - half), np.tanh(middle + half)
        size = np.divide(np.abs(middle), unit, out=np.full_like(unit, np.inf), where=unit > 0.0)
        p_value = p_values(size, privacy, sampling, law)
        p_value = _p_by_student(p_value, result, np.full_like(result, on_scale), privacy, law)
        result = np.where(estimable(lower, upper, -1.0, 1.0), inside, np.nan)
    for values, diagonal in ((result, 1.0), (lower, 1.0), (upper, 1.0), (privacy, 0.0), (sampling, 0.0)):
        np.fill_diagonal(values, diagonal)
    return _answer(
        release,
        features.tolist(),
        level,
        correlation=result,
        privacy_noise=np.sqrt(privacy),
        sampling_noise=np.sqrt(sampling),
        lower=lower,
        upper=upper,
        partial=True,
        normal_rows=True,
        p_value=p_value,
    )


def _noise_leaves_inverse(standardized: Standardized, smallest: float) -> bool:
    """Return True if the noise is below the covariance S in every direction."""
    moments, law = standardized.moments, standardized.moments.law
    if law is None:
        return smallest > 0.0
    features = standardized.features
    eigenvalues, vectors = np.linalg.eigh(standardized.noisy)
    rows = (vectors / np.sqrt(eigenvalues)).T * (moments.unit[features] / standardized.scale)
    matrix = np.zeros((len(features) + 1, law.n_features + 1))
    matrix[0, 0] = 1.0
    matrix[1:, 0] = rows @ moments.shift[features]
    matrix[1:, features + 1] = rows * moments.stretch[features]
    whitened = law.carried(matrix)
    cells = whitened.cell_variances()[1:, 1:] / moments.n_rows**2
    return bool(noise_edges(cells, np.eye(len(features))[:1], whitened)[0] < 1.0)


def _not_identified(release: Moments, features: Sequence[int], level: float) -> Correlations:
    shape = (len(features),) * 2
    unknown = np.full(shape, np.nan)
    ends = (unknown, unknown) if release.noise is None else (np.full(shape, -1.0), np.full(shape, 1.0))
    parts = dict.fromkeys(("correlation", "privacy_noise", "sampling_noise", "p_value"), unknown)
    return _answer(release, features, level, partial=True, identified=False, lower=ends[0], upper=ends[1], **parts)


def _privacy_variances(standardized: Standardized, scaled: FloatArray, correlation: FloatArray) -> FloatArray:
    """Return Var(q_iᵀ N q_j + ρ(q_iᵀ N q_i + q_jᵀ N q_j)/2), q_i = P_i/√P_ii, P the inverse."""
    moments, features = standardized.moments, standardized.features
    k = len(features)
    in_units = moments.unit[features] / standardized.scale
    vectors = scaled.T * in_units  # rows
    own = vectors[:, :, None] * vectors[:, None, :]
    variances = np.zeros((k, k))
    for i in range(1, k):
        product = vectors[i][None, :, None] * vectors[:i, None, :]
        weights = np.zeros((i, k + 1, k + 1))
        weights[:, 1:, 1:] = (product + np.swapaxes(product, 1, 2)) / 2.0
        weights[:, 1:, 1:] += correlation[i, :i, None, None] * (own[i] + own[:i]) / 2.0
        indices = np.broadcast_to(np.concatenate([[0], features + 1]), (i, k + 1))
        variances[i, :i] = variances[:i, i] = moments.variances(indices, weights) / moments.n_rows**2
    return variances
