"""Welch's t-test of two groups from released moments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import scipy

from dpmoments.analysis.answers import (
    NOISE,
    Answer,
    Column,
    confidence_level,
    format_level,
    in_floating_point,
    intervals,
    rounded,
    step_errors,
)
from dpmoments.analysis.confidence import decided, deviations_for, error_rate, format_probability, holding, not_clear
from dpmoments.analysis.estimate import Estimates, MomentErrors, estimates_of
from dpmoments.analysis.functionals import describe_law, without_redundant_levels
from dpmoments.analysis.group_means import GroupSums, Levels, differences_of_means, means_by
from dpmoments.analysis.normal_equations import JointTest, NormalEquations
from dpmoments.analysis.regression_results import ExplainedVariance
from dpmoments.analysis.regressors import Regressors
from dpmoments.analysis.released import Moments, cautions_by_code, dates_in, feature_index, needs_mean
from dpmoments.base.errors import InputValueError
from dpmoments.base.values import FloatArray
from dpmoments.schema.dates import Date

_SHOWN_NAMES = 8
"""Max number of names listed in a message."""


@dataclass(frozen=True, eq=False, repr=False)
class TwoGroups(Answer):
    """A t-test of two groups, in units of the target.

    Attributes
    ----------
    target, by : str
    levels : tuple of two str
    counts, count_noise, means : ndarray of shape (2,)
        Rows with their noise SDs; NaN for the mean of a group with a noise-dominated count.
    difference : float
        First mean less second.
    lower, upper : float
        Its interval.
    privacy_noise, sampling_noise : float
        The two parts of the difference's standard error.
    statistic : float
        The difference over its standard error if the groups have one mean, reduced for heavy tails of the noise; NaN if the
        noise is not known.
    degrees : float
        Of the t distribution: Welch–Satterthwaite, at most the rows of both groups less 2; with the pooled variance, all
        rows less the groups.
    p_value : float
    own_variances : bool
        True if each group's own variance is in the release (Welch's test); else the pooled one is used.
    effect_size : Estimates
        ``cohen_d``: the difference in deviations within all groups of the column (Cohen 1988), with its interval.
    level : float
    warning : str
    date : Date or None
        The target's column, if it holds dates.
    """

    target: str
    by: str
    levels: tuple[str, ...]
    counts: FloatArray
    count_noise: FloatArray
    means: FloatArray
    difference: float
    lower: float
    upper: float
    privacy_noise: float
    sampling_noise: float
    statistic: float
    degrees: float
    p_value: float
    own_variances: bool
    effect_size: Estimates
    level: float
    warning: str = ""
    date: Date | None = None

    facts = (
        *("target", "by", "groups: *", "difference", "lower", "upper", "privacy_noise", "sampling_noise"),
        *("statistic", "degrees", "p_value", "own_variances", "cohen_d", "cohen_d_interval"),
        *("level", "verdict", "warning"),
    )

    @property
    def cohen_d(self) -> float:
        """Difference in deviations within groups; NaN if it is not estimable."""
        return float(self.effect_size.value[0])

    @property
    def cohen_d_interval(self) -> tuple[float, float]:
        """Interval of ``cohen_d``."""
        return float(self.effect_size.lower[0]), float(self.effect_size.upper[0])

    @property
    def verdict(self) -> str:
        """Verdict: the group with the higher mean."""
        if self.p_value >= error_rate(self.level) or self.statistic == 0.0:
            known = not math.isnan(self.difference)
            return not_clear(self.privacy_noise, self.sampling_noise, can_be_estimated=known)
        return decided(self.p_value, f"{self.levels[0] if self.statistic > 0.0 else self.levels[1]} higher")

    @property
    def heading(self) -> tuple[str, ...]:
        name = "Welch's t-test" if self.own_variances else "t-test (pooled variance)"
        return (f"{name} of {self.target} by {self.by}: {self.verdict}",)

    def table(self) -> list[tuple[str, ...]]:
        """Return a line per group, then the difference."""
        error = float(step_errors(math.hypot(self.privacy_noise, self.sampling_noise), self.lower, self.upper)[0])
        means = Column(values=self.means, errors=[error] * 2, dates=[self.date] * 2).text()
        lines = [
            (name, f"{count:,.0f}", rounded(noise, noise), mean, "", "", "")
            for name, count, noise, mean in zip(
                self.levels, self.counts.tolist(), self.count_noise.tolist(), means, strict=True
            )
        ]
        parts = [rounded(part, part) for part in (self.privacy_noise, self.sampling_noise)]
        cells = [rounded(self.difference, error), *parts, *intervals(self.lower, self.upper, error)]
        unlike = Column(cells=cells, dates=[self.date] * len(cells)).text()
        head = ("", "rows", "± noise", "mean", "± privacy", "± sampling", format_level(self.level))
        return [head, *lines, ("difference", "", "", *unlike)]

    @property
    def remarks(self) -> tuple[str, ...]:
        if math.isnan(self.p_value):
            return describe_law(None), self.warning
        if math.isnan(self.difference):
            return (self.warning,)
        needed = f"; each group's own variance needs the product {self.target}:{self.by} in the schema"
        return (
            f"t = {self.statistic:,.2f}, {self.degrees:,.0f} degrees of freedom, {format_probability(self.p_value)}, "
            f"including privacy noise{'' if self.own_variances else needed}",
            self.warning,
        )

    def _columns(self) -> list[Column]:
        return [
            Column("group", self.levels, label=True),
            Column("count", self.counts),
            Column("count_noise", self.count_noise),
            Column("mean", self.means),
        ]


@in_floating_point
def t_test(
    release: Moments, target: str, by: str, groups: Sequence[str] | None = None, *, level: float = 0.95
) -> TwoGroups:
    """Run Welch's t-test of a feature by two groups: post-processing, free of privacy cost.

    Parameters
    ----------
    release : Moments
    target : str
        A feature.
    by : str
        A Boolean column, or a categorical.
    groups : sequence of str, optional
        The two levels to compare; required if the column has more.
    level : float
        Confidence of the interval.

    Returns
    -------
    TwoGroups

    Raises
    ------
    ValueError
        If a name is unknown, the groups are not two, the level is below 0.5, or no mean was released.

    Notes
    -----
    Each group has its own variance if the schema has the product of target and level as a feature (Welch 1947), else variances
    are assumed equal: the answer says which. The test compares sums about the mean of the two groups together, so that noise on
    their counts does not count as a difference; the interval, as in
    :func:`dpmoments.analysis.group_means.group_means` but with the quantile of t, holds 0 if the test does not reject.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, dpmoments as dpm
    >>> rng = np.random.default_rng(0)
    >>> smoker = rng.random(50_000) < 0.3
    >>> table = pa.table({"smoker": smoker, "age": rng.uniform(20, 60, 50_000) + 10 * smoker})
    >>> released = dpm.release(table, dpm.Schema(dpm.Boolean("smoker"), dpm.Numeric("age", 0, 100)), rho=1, insecure_seed=0)
    >>> released.t_test("age", by="smoker").verdict
    'smoker=true higher'
    """
    level = confidence_level(level)
    if release.noisy_sum is None:
        raise needs_mean("a t-test")
    feature = feature_index(release, target)
    every = Levels.of(release, by)
    two = every if groups is None else every.chosen(groups)
    if len(two.names) != 2:
        more = f", … ({len(two.names)} in all)" if len(two.names) > _SHOWN_NAMES else ""
        raise InputValueError(
            f"a t-test is of two groups, and here are {len(two.names)} "
            f"({', '.join(map(repr, two.names[:_SHOWN_NAMES]))}{more}): name two of them, or use anova"
        )
    sums = GroupSums.of(release, feature, every)
    pair = [every.names.index(name) for name in two.names]
    means = means_by(release, by, [target], level, tested=False)
    index = means.differences.pairs.index(two.names)
    statistic, degrees, parts, p_value = _tested(sums, pair)
    difference = float(means.differences.difference[0, index])
    low, high = (float(bound[feature]) for bound in release.schema.feature_bounds)
    of_sampling = np.full(len(every.names), _degrees(sums, pair))
    ends = differences_of_means(sums, (low, high), level, of_sampling, tested=False)
    lower, upper = (float(end) for end in holding(ends[0][index], ends[1][index], np.array(difference)))
    lower, upper = max(lower, low - high), min(upper, high - low)
    if p_value >= error_rate(level) or (math.isnan(difference) and release.noise is not None):
        # the test is of sums about one mean, and the interval of two means
        lower, upper = min(lower, 0.0), max(upper, 0.0)
    if p_value < error_rate(level) and lower <= 0.0 <= upper:
        p_value = error_rate(level)
        statistic = math.copysign(float(scipy.stats.t.isf(p_value / 2.0, degrees)), statistic)
    return TwoGroups(
        target=target,
        by=by,
        levels=two.names,
        counts=np.maximum(np.round(sums.counts[pair]), 0.0) if sums.some_missing else means.counts[pair],
        count_noise=(sums.count_noise if sums.some_missing else means.count_noise)[pair],
        means=means.mean[0, pair],
        difference=difference,
        lower=lower,
        upper=upper,
        privacy_noise=parts[0] * sums.unit,
        sampling_noise=parts[1] * sums.unit,
        statistic=statistic,
        degrees=degrees,
        p_value=p_value,
        own_variances=bool(sums.own[pair].all()),
        effect_size=_in_deviations(release, feature, every, pair, level),
        level=level,
        warning=cautions_by_code(release),
        date=dates_in(release.schema).get(target),
    )


def _in_deviations(release: Moments, target: int, levels: Levels, pair: Sequence[int], level: float) -> Estimates:
    """Return Cohen's d of two groups, a contrast of the regression on the levels."""
    complete = len(levels.features) == len(levels.names)
    regressors = levels.features[:-1] if complete else levels.features
    # where a row of each group is, in the regressors: levels that they leave out are at 0
    places = np.eye(len(levels.names))[:, : len(regressors)] if len(levels.features) > 1 else np.array([[0.0], [1.0]])
    between = places[pair[0]] - places[pair[1]]
    errors = MomentErrors.of(release, [*regressors, target])
    rows = errors.moments.n_rows

    def in_deviations(_: FloatArray, covariance: FloatArray) -> FloatArray:
        slopes = np.linalg.solve(covariance[:-1, :-1], covariance[:-1, -1])
        within = (covariance[-1, -1] - slopes @ covariance[:-1, -1]) * rows / max(rows - len(places), 1.0)
        return np.array([between @ slopes / np.sqrt(within)])

    return estimates_of(errors, ["cohen_d"], in_deviations, "identity", level)


def _degrees(sums: GroupSums, pair: list[int]) -> float:
    """Return the degrees of freedom of the sampling variance of a difference."""
    sampling, degrees = sums.sampling_variances[pair], sums.sampling_degrees[pair]
    if not sums.own[pair].any():
        return float(degrees[0])  # one pooled variance
    below = float(np.sum(sampling**2 / degrees))
    return float(sampling.sum()) ** 2 / below if below > 0.0 else math.inf  # Welch 1947


def _tested(sums: GroupSums, pair: list[int]) -> tuple[float, float, tuple[float, float], float]:
    """Return t, its degrees, both parts of the standard error, and p, under equal means."""
    k, rows = len(sums.counts), sums.safe_counts[pair]
    one, other = pair
    # Σy less mean·count of each group, over its count: about the mean m of both together, m·count has its noise too
    both = float(sums.sums[pair].sum() / rows.sum())
    weights = np.zeros(2 * k)
    weights[k + one], weights[k + other] = 1.0 / rows[0], -1.0 / rows[1]
    weights[one], weights[other] = -both / rows[0], both / rows[1]
    statistic = float(weights @ np.concatenate([sums.counts, sums.sums]))
    privacy, sampling = float(weights @ sums.covariance @ weights), sums.sampling_variances[pair]
    total = privacy + float(sampling.sum())
    if math.isnan(total):
        return math.nan, math.nan, (math.nan, math.sqrt(float(sampling.sum()))), math.nan
    if total == 0.0:
        return 0.0, math.inf, (0.0, 0.0), 1.0
    of_both = sums.moments.independent_rows - float(sums.present.sum())
    if sums.own[pair].all():  # noisy counts may add up to more rows
        independent = float(rows.sum()) / sums.moments.rows_per_unit
        of_both = min(independent, sums.moments.independent_rows) - 2.0
    known = (float(sampling.sum()) / total) ** 2  # the variance of the noise has no error
    degrees = min(_degrees(sums, pair) / known if known > 0.0 else math.inf, max(of_both, 1.0))
    # tails of the noise's own law where it decides: its deviations stand for normal ones
    heavy = float(deviations_for(0.95, sums.moments.law, np.array(privacy), np.array(total - privacy)))
    normal = float(deviations_for(0.95, sums.moments.law, np.array(0.0), np.array(1.0)))
    t = statistic / math.sqrt(total) * normal / heavy
    p_value = float(2.0 * scipy.stats.t.sf(abs(t), degrees))
    return t, degrees, (math.sqrt(max(privacy, 0.0)), math.sqrt(float(sampling.sum()))), p_value


@dataclass(frozen=True, eq=False, repr=False)
class AnalysisOfVariance(Answer):
    """One-way analysis of variance, in squared units of the target.

    Attributes
    ----------
    target, by : str
    levels : tuple of str
    counts : ndarray of shape (k,)
        Rows of each group as released.
    sum_of_squares : tuple of float
        Between and within groups, less the expected effect of noise; 0 or above. Printed as “noise” if noise dominates it.
    noise_between : float
        Expected effect of noise on the sum of squares between groups; NaN if not known.
    noise : tuple of float
        Noise SDs of the sums of squares between and within groups, and of their total; NaN if not known.
    degrees : tuple of float
        k − 1 and n − k, k the groups that have rows.
    test : JointTest
        Test of no difference between groups, of noise and sampling together: the overall F test of the regression on the
        groups. Without noise F is the mean square between over that within.
    eta_squared : float
        Share of the variance that is between groups, corrected for noise (R² of the regression on the groups).
    eta_squared_interval : tuple of float
        Its interval, noise and sampling together; [0, 1] if nothing is known.
    reason : str
        Verdict where the groups do not differ clearly: by the larger part of the error, noise or sampling.
    level : float
        Groups differ if the p-value is below 1 − level.
    warning : str
    """

    target: str
    by: str
    levels: tuple[str, ...]
    counts: FloatArray
    sum_of_squares: tuple[float, float]
    noise_between: float
    noise: tuple[float, float, float]
    degrees: tuple[float, float]
    test: JointTest
    eta_squared: float
    eta_squared_interval: tuple[float, float]
    reason: str
    level: float
    warning: str = ""

    facts = (
        *("target", "by", "levels", "counts", "sum_of_squares", "noise_between", "noise", "degrees", "f"),
        *("eta_squared", "eta_squared_interval", "p_value", "level", "verdict", "warning"),
    )

    @property
    def f(self) -> float:
        """F of the test."""
        return self.test.f

    @property
    def p_value(self) -> float:
        """P-value of the test; NaN if the noise is not known."""
        return self.test.p_value

    @property
    def verdict(self) -> str:
        """Verdict on a difference of the groups' means."""
        return decided(self.p_value, "groups differ" if self.p_value < error_rate(self.level) else self.reason)

    @property
    def lost(self) -> bool:
        """True if groups do not differ clearly and noise dominates the sum of squares between them."""
        (upper, lower), within = self.degrees, self.sum_of_squares[1]
        least = upper * within / lower if lower > 0.0 else 0.0
        return self.verdict == self.reason and self.noise_between > least

    @property
    def heading(self) -> tuple[str, ...]:
        return (f"analysis of variance of {self.target} by {self.by}: {self.verdict}",)

    def table(self) -> list[tuple[str, ...]]:
        """Return the usual table: between, within, total."""
        totals, degrees = (*self.sum_of_squares, sum(self.sum_of_squares)), (*self.degrees, sum(self.degrees))
        lines: list[tuple[str, ...]] = [("", "sum of squares", "degrees", "mean square")]
        names = "between groups", "within groups", "total"
        for name, total, noise, df, lost in zip(names, totals, self.noise, degrees, self._is_noise, strict=True):
            square, mean = (NOISE if lost else rounded(total / by, noise / by) for by in (1.0, df or math.nan))
            lines.append((name, square, f"{df:,.0f}", "" if name == "total" else mean))
        return lines

    @property
    def _is_noise(self) -> tuple[bool, bool, bool]:
        """True for sums of squares (between, within, total) that noise dominates."""
        within = self.sum_of_squares[1]
        return self.lost, self.noise[1] >= within, self.noise[2] >= sum(self.sum_of_squares)

    @property
    def remarks(self) -> tuple[str, ...]:
        if np.isnan(self.p_value):
            return describe_law(None), self.warning
        error = self.noise[0] / total if (total := sum(self.sum_of_squares)) > 0.0 else math.nan
        eta = NOISE if self.lost else rounded(self.eta_squared, error)
        return (
            f"{self.test.description}, including privacy noise. eta² = {eta}.",
            "Sums of squares are reduced by what the noise is expected to add "
            f"({rounded(self.noise_between, self.noise_between)} between groups).",
            "Equal group variances are assumed.",
            self.warning,
        )

    def _columns(self) -> list[Column]:
        return [
            Column("source", ("between groups", "within groups"), label=True),
            Column("sum_of_squares", np.where(self._is_noise[:2], np.nan, self.sum_of_squares)),
            Column("degrees", self.degrees),
            Column("f", np.array([self.f, np.nan])),
            Column("p_value", np.array([self.p_value, np.nan])),
        ]


def _between_groups(sums: GroupSums) -> tuple[float, float, float, str]:
    """Return the sum of squares between groups, its expected noise and noise SD, and a reason."""
    # Σ_g (S_g)²/n_g of the scores S_g = Σy over group g less n_g/n of the total.
    k = len(sums.counts)
    shares = np.maximum(sums.counts, 0.0) / sums.moments.n_rows
    shares = shares / max(1.0, float(shares.sum()))
    scores = sums.sums - shares * float(sums.sums.sum())
    centring = np.eye(k) - np.outer(shares, np.ones(k))
    noise = centring @ sums.covariance[k:, k:] @ centring.T
    rows = np.maximum(sums.counts, 0.0) + 1.0 / k  # a group of no rows varies little, but not nothing
    sampling = sums.moments.rows_per_unit * centring @ np.diag(rows * sums.total_variance) @ centring.T
    weights = 1.0 / np.maximum(sums.safe_counts, np.nan_to_num(sums.count_noise, nan=0.0))
    # of Σ w(S + N)²: 2 Σ w S N, and the variance of Σ w N²
    gradient, own = 2.0 * weights * scores, weights[:, None] * noise
    deviation = math.sqrt(max(float(gradient @ noise @ gradient) + 2.0 * float(np.sum(own * own.T)), 0.0))
    reason = not_clear(float(weights @ np.diag(noise)), float(weights @ np.diag(sampling)))
    return float(np.sum(weights * scores**2)), float(np.sum(weights * np.diag(noise))), deviation, reason


@in_floating_point
def anova(release: Moments, target: str, by: str, *, level: float = 0.95) -> AnalysisOfVariance:
    """Run a one-way analysis of variance of a feature by groups: free of privacy cost.

    Parameters
    ----------
    release : Moments
    target : str
        A feature.
    by : str
        A categorical or Boolean column.
    level : float
        Groups are said to differ if the p-value is below 1 − level.

    Returns
    -------
    AnalysisOfVariance

    Raises
    ------
    ValueError
        If a name is unknown, the target is of the column ``by``, ``by`` is numeric, the level is below 0.5, or no mean was
        released.

    Notes
    -----
    F and its p-value equal those of the regression on the groups (``fvalue`` and ``f_pvalue`` of
    :func:`dpmoments.analysis.regression.ols`), whose errors include the noise: the F of the sums of squares would call noise a
    difference. Sums of squares and eta² are corrected for the expected effect of noise. Equal group variances are assumed.

    Examples
    --------
    >>> import numpy as np, pyarrow as pa, dpmoments as dpm
    >>> rng = np.random.default_rng(0)
    >>> region = rng.choice(["north", "south"], 50_000)
    >>> table = pa.table({"region": region, "income": rng.uniform(10, 20, 50_000) + 2 * (region == "north")})
    >>> schema = dpm.Schema(dpm.Categorical("region", ["north", "south"]), dpm.Numeric("income", 0, 60))
    >>> dpm.release(table, schema, epsilon=1.0, insecure_seed=0).anova("income", by="region").verdict
    'groups differ'
    """
    level = confidence_level(level)
    if release.noisy_sum is None:
        raise needs_mean("analysis of variance")
    levels, feature = Levels.of(release, by), feature_index(release, target)
    sums = GroupSums.of(release, feature, levels)
    squares, added, of_between, reason = _between_groups(sums)
    n_rows = sums.moments.n_rows
    total = n_rows * sums.total_variance
    between = min(max(0.0, squares - (0.0 if np.isnan(added) else added)), total)
    within = total - between
    of_total = n_rows * sums.total_noise
    rows = np.maximum(sums.counts, 0.0)
    present = sums.present
    compared = without_redundant_levels(release, [by]) if present.sum() > 1 else []
    if len(levels.features) == len(levels.names):
        compared = [index for index in compared if present[levels.features.index(index)]]
    equations = NormalEquations.of(release, Regressors(feature, tuple(compared), True, {})) if compared else None
    of_share = 0.0, 1.0
    if equations is not None:
        test, explained = equations.overall_test, ExplainedVariance.of_population(equations)
        of_share = (
            explained.interval(level) if equations.identified and math.isfinite(explained.privacy_error) else of_share
        )
    else:  # one group: there is nothing to differ
        p_value = math.nan if release.noise is None else 1.0
        test = JointTest(math.nan, len(compared), math.inf, p_value, math.nan)
    degrees = (float(max(int(present.sum()) - 1, 0)), max(n_rows - int(present.sum()), 0.0))
    if math.isfinite(test.denominator) and release.privacy.rows_per_unit == 1:  # those of F
        degrees = degrees[0], test.denominator
    return AnalysisOfVariance(
        target=target,
        by=by,
        levels=levels.names,
        counts=rows,
        sum_of_squares=(between * sums.unit**2, within * sums.unit**2),
        noise_between=added * sums.unit**2,
        noise=(of_between * sums.unit**2, math.hypot(of_between, of_total) * sums.unit**2, of_total * sums.unit**2),
        degrees=degrees,
        test=test,
        eta_squared=(share := between / total if total > 0.0 else np.nan),
        eta_squared_interval=(float(np.fmin(of_share[0], share)), float(np.fmax(of_share[1], share))),
        reason=reason,
        level=level,
        warning=cautions_by_code(release),
    )
