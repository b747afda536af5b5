"""Welch's t-test of two groups from released moments."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from dpmoments.analysis.answers import TableAnswer, finite_or_none, in_floating_point, number
from dpmoments.analysis.cautions import cautions
from dpmoments.analysis.confidence import confidence_level, deviations_for, level_in_words
from dpmoments.analysis.functionals import NO_MEAN, NOISE_UNKNOWN, NOT_DISTINGUISHABLE, law_in_words
from dpmoments.analysis.group_means import group_means
from dpmoments.analysis.group_sums import GroupSums
from dpmoments.analysis.levels import Levels, feature_place, shown_names
from dpmoments.analysis.released import Released
from dpmoments.analysis.score_test import probability_in_words
from dpmoments.foundation.arrays import FloatArray

__all__ = ["TwoGroups", "t_test"]


@dataclass(frozen=True, eq=False, repr=False)
class TwoGroups(TableAnswer):
    """A t-test of two groups, in units of the target.

    Attributes
    ----------
    target, by : str
    levels : tuple of two str
    counts, means : ndarray of shape (2,)
        NaN for the mean of a group whose count is lost in the noise.
    difference : float
        First mean less second.
    lower, upper : float
        Its interval.
    privacy_noise, sampling_noise : float
        The two parts of the difference's standard error.
    statistic : float
        The difference over its standard error where the groups have one mean; NaN where the noise is not known.
    degrees : float
        Of the t distribution (Welch–Satterthwaite; the noise, whose law is known, counts as infinitely many).
    p_value : float
    own_variances : bool
        Whether each group's own variance is in the release (Welch's test); else the pooled one is used.
    level : float
    warning : str
    """

    target: str
    by: str
    levels: tuple[str, ...]
    counts: FloatArray
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
    level: float
    warning: str = ""

    @property
    def verdict(self) -> str:
        """Which group's mean is higher, in words."""
        if math.isnan(self.p_value):
            return NOISE_UNKNOWN
        if self.p_value >= 1.0 - self.level or self.statistic == 0.0:
            return NOT_DISTINGUISHABLE
        return f"{self.levels[0] if self.statistic > 0.0 else self.levels[1]} higher"

    @property
    def heading(self) -> tuple[str, ...]:
        name = "Welch's t-test" if self.own_variances else "t-test (pooled variance)"
        return (f"{name} of {self.target} by {self.by}: {self.verdict}",)

    def table(self) -> list[tuple[str, ...]]:
        """A group a line, then the difference."""
        lines = [
            (name, f"{count:,.0f}", number(float(mean)), "", "", "")
            for name, count, mean in zip(self.levels, self.counts, self.means, strict=True)
        ]
        interval = f"[{number(self.lower)}, {number(self.upper)}]"
        parts = (number(self.privacy_noise), number(self.sampling_noise))
        head = ("", "rows", "mean", "± privacy", "± sampling", level_in_words(self.level))
        return [head, *lines, ("difference", "", number(self.difference), *parts, interval)]

    @property
    def remarks(self) -> tuple[str, ...]:
        if math.isnan(self.p_value):
            return law_in_words(None), self.warning
        needed = f"; each group's own variance needs the product {self.target}:{self.by} in the schema"
        return (
            f"t = {number(self.statistic)}, {number(self.degrees)} degrees of freedom, {probability_in_words(self.p_value)}, "
            f"of noise and sampling together{'' if self.own_variances else needed}",
            self.warning,
        )

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """A group a row."""
        return {"group": self.levels, "count": self.counts.tolist(), "mean": finite_or_none(self.means)}

    def to_dict(self) -> dict[str, Any]:
        """The test as JSON holds it."""
        plain = {
            name: finite_or_none(np.array([getattr(self, name)], dtype=float))[0]
            for name in (
                *("difference", "lower", "upper", "privacy_noise", "sampling_noise"),
                *("statistic", "degrees", "p_value"),
            )
        }
        return {
            "target": self.target,
            "by": self.by,
            "groups": {name: list(values) for name, values in self.columns().items()},
            **plain,
            "own_variances": self.own_variances,
            "level": self.level,
            "verdict": self.verdict,
            "warning": self.warning,
        }


@in_floating_point
def t_test(
    release: Released, target: str, by: str, groups: Sequence[str] | None = None, *, level: float = 0.95
) -> TwoGroups:
    """Welch's t-test of a feature by two groups: post-processing, free of privacy cost.

    Parameters
    ----------
    release : Released
    target : str
        A feature.
    by : str
        A Boolean column, or a categorical.
    groups : sequence of str, optional
        The two levels to compare; needed where the column has more.
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
    Groups vary as they do by themselves where the schema has the product of target and level as a feature (Welch 1947), and alike
    where it has not: the answer says which. The test is of sums about the mean of the two groups together, so that noise on
    their counts does not count as a difference; the interval is that of :func:`group_means`.

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
        raise ValueError(f"t-test: {NO_MEAN}")
    feature = feature_place(release, target)
    every = Levels.of(release, by)
    two = every if groups is None else every.chosen(groups)
    if len(two.names) != 2:
        raise ValueError(
            f"a t-test is of two groups, and here are {len(two.names)} ({shown_names(two.names)}): name two by groups=, or use "
            "anova"
        )
    sums = GroupSums.of(release, feature, every)
    pair = [every.names.index(name) for name in two.names]
    means = group_means(release, by, [target], level=level)
    place = next(place for place, names in enumerate(means.differences.pairs) if names == two.names)
    statistic, degrees, parts, p_value = _tested(sums, pair)
    return TwoGroups(
        target=target,
        by=by,
        levels=two.names,
        counts=means.counts[pair],
        means=means.mean[0, pair],
        difference=float(means.differences.difference[0, place]),
        lower=float(means.differences.lower[0, place]),
        upper=float(means.differences.upper[0, place]),
        privacy_noise=parts[0] * sums.unit,
        sampling_noise=parts[1] * sums.unit,
        statistic=statistic,
        degrees=degrees,
        p_value=p_value,
        own_variances=bool(sums.own[pair].all()),
        level=level,
        warning=cautions(release),
    )


def _tested(sums: GroupSums, pair: Sequence[int]) -> tuple[float, float, tuple[float, float], float]:
    """t, its degrees, the two parts of the standard error, and p, under one mean of both groups."""
    k, rows = len(sums.counts), sums.safe_counts[list(pair)]
    one, other = pair
    # Σy less mean·count of each group, over its count: about the mean m of both together, m·count has its noise too
    both = float(sums.sums[list(pair)].sum() / rows.sum())
    weights = np.zeros(2 * k)
    weights[k + one], weights[k + other] = 1.0 / rows[0], -1.0 / rows[1]
    weights[one], weights[other] = -both / rows[0], both / rows[1]
    statistic = float(weights @ np.concatenate([sums.counts, sums.sums]))
    privacy, sampling = float(weights @ sums.covariance @ weights), sums.variances[list(pair)] / rows
    total = privacy + float(sampling.sum())
    if math.isnan(total):
        return math.nan, math.nan, (math.nan, math.sqrt(float(sampling.sum()))), math.nan
    if total == 0.0:
        return 0.0, math.inf, (0.0, 0.0), 1.0
    below = float(np.sum(sampling**2 / np.maximum(rows - 1.0, 1.0)))
    degrees = total**2 / below if below > 0.0 else math.inf
    t = statistic / math.sqrt(total)
    # tails of the noise's own law where it decides: its deviations stand for normal ones
    heavy = float(deviations_for(0.95, sums.moments.law, np.array(privacy), np.array(total - privacy)))
    normal = float(deviations_for(0.95, sums.moments.law, np.array(0.0), np.array(1.0)))
    p_value = float(2.0 * scipy.stats.t.sf(abs(t) * normal / heavy, min(degrees, 1e9)))
    return t, degrees, (math.sqrt(max(privacy, 0.0)), math.sqrt(float(sampling.sum()))), p_value
