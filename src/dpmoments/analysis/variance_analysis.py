"""Analysis of variance from released moments: whether groups differ by more than sampling and noise make them differ."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmoments.analysis.answers import TableAnswer, in_floating_point, number, number_or_none
from dpmoments.analysis.cautions import cautions
from dpmoments.analysis.confidence import confidence_level
from dpmoments.analysis.functionals import NO_MEAN, NOISE_UNKNOWN, NOT_DISTINGUISHABLE, law_in_words
from dpmoments.analysis.group_sums import GroupSums
from dpmoments.analysis.levels import Levels, feature_place
from dpmoments.analysis.released import Released
from dpmoments.analysis.score_test import probability_in_words, score_test
from dpmoments.foundation.arrays import FloatArray

__all__ = ["AnalysisOfVariance", "anova", "between_groups"]


@dataclass(frozen=True, eq=False, repr=False)
class AnalysisOfVariance(TableAnswer):
    """One-way analysis of variance, in squared units of the target.

    Attributes
    ----------
    target, by : str
    levels : tuple of str
    counts : ndarray of shape (k,)
        Rows of each group as released.
    sum_of_squares : tuple of float
        Between and within groups, corrected by what the noise is expected to add; 0 or above.
    noise_between : float
        What the noise is expected to add to the sum of squares between groups; NaN where it is not known.
    degrees : tuple of float
        k − 1 and n − k, k the groups that have rows.
    f : float
        Mean square between over mean square within, both corrected.
    eta_squared : float
        Share of the variance that is between groups, corrected by noise alone (R² of the regression on the groups).
    p_value : float
        Of no difference between groups, noise and sampling together; NaN where the noise is not known.
    level : float
        Groups differ where the p-value is below 1 − level.
    warning : str
    """

    target: str
    by: str
    levels: tuple[str, ...]
    counts: FloatArray
    sum_of_squares: tuple[float, float]
    noise_between: float
    degrees: tuple[float, float]
    f: float
    eta_squared: float
    p_value: float
    level: float
    warning: str = ""

    @property
    def verdict(self) -> str:
        """Whether the groups' means differ, in words."""
        if np.isnan(self.p_value):
            return NOISE_UNKNOWN
        return "groups differ" if self.p_value < 1.0 - self.level else NOT_DISTINGUISHABLE

    @property
    def lost(self) -> bool:
        """Whether what the noise adds between groups decides, and they are not told apart."""
        (upper, lower), within = self.degrees, self.sum_of_squares[1]
        least = upper * within / lower if lower > 0.0 else 0.0
        return self.verdict == NOT_DISTINGUISHABLE and self.noise_between > least

    @property
    def heading(self) -> tuple[str, ...]:
        return (f"analysis of variance of {self.target} by {self.by}: {self.verdict}",)

    def table(self) -> list[tuple[str, ...]]:
        """The usual table: between, within, total."""
        (between, within), (upper, lower) = self.sum_of_squares, self.degrees
        squares = (between / upper if upper > 0 else np.nan, within / lower if lower > 0 else np.nan)
        return [
            ("", "sum of squares", "degrees", "mean square", "F", "p"),
            (
                "between groups",
                number(between),
                f"{upper:,.0f}",
                number(float(squares[0])),
                "noise" if self.lost else number(self.f),
                probability_in_words(self.p_value).removeprefix("p = ").removeprefix("p "),
            ),
            ("within groups", number(within), f"{lower:,.0f}", number(float(squares[1])), "", ""),
            ("total", number(between + within), f"{upper + lower:,.0f}", "", "", ""),
        ]

    @property
    def remarks(self) -> tuple[str, ...]:
        if np.isnan(self.p_value):
            return law_in_words(None), self.warning
        eta = "noise" if self.lost else number(self.eta_squared)
        return (
            f"eta² = {eta}; sums of squares are less what the noise is expected to add ({number(self.noise_between)} between "
            "groups), and p is of noise and sampling together",
            self.warning,
        )

    def columns(self) -> Mapping[str, Sequence[Any]]:
        """Between and within groups, a row each."""
        return {
            "source": ["between groups", "within groups"],
            "sum_of_squares": list(self.sum_of_squares),
            "degrees": list(self.degrees),
            "f": [number_or_none(self.f), None],
            "p_value": [number_or_none(self.p_value), None],
        }

    def to_dict(self) -> dict[str, Any]:
        """The analysis as JSON holds it."""
        return {
            "target": self.target,
            "by": self.by,
            "levels": list(self.levels),
            "counts": self.counts.tolist(),
            "sum_of_squares": list(self.sum_of_squares),
            "noise_between": number_or_none(self.noise_between),
            "degrees": list(self.degrees),
            "f": number_or_none(self.f),
            "eta_squared": number_or_none(self.eta_squared),
            "p_value": number_or_none(self.p_value),
            "level": self.level,
            "verdict": self.verdict,
            "warning": self.warning,
        }


def between_groups(sums: GroupSums) -> tuple[float, float, float]:
    """Sum of squares between groups, what noise is expected to add to it, and the p-value of no difference.

    The scores are S_g = Σy over group g less n_g/n of the whole: where no group differs they have mean 0 and covariance
    σ²(diag(n) − n nᵀ/N) + that of the noise (:func:`score_test`). The sum of squares is Σ_g (S_g)²/n_g.
    """
    k = len(sums.counts)
    shares = np.maximum(sums.counts, 0.0) / sums.n_rows
    shares = shares / max(1.0, float(shares.sum()))
    scores = sums.sums - shares * float(sums.sums.sum())
    centring = np.eye(k) - np.outer(shares, np.ones(k))
    noise = centring @ sums.covariance[k:, k:] @ centring.T
    rows = np.maximum(sums.counts, 0.0) + 1.0 / k  # a group of no rows varies little, but not nothing
    spread = np.where(sums.own, sums.variances, sums.total_variance)
    sampling = centring @ np.diag(rows * spread) @ centring.T
    weights = 1.0 / np.maximum(sums.safe_counts, np.nan_to_num(sums.count_noise, nan=0.0))
    squares, added = float(np.sum(weights * scores**2)), float(np.sum(weights * np.diag(noise)))
    _, _, p_value = score_test(scores, noise, sampling, k - 1, sums.moments.law)
    return squares, added, p_value


@in_floating_point
def anova(release: Released, target: str, by: str, *, level: float = 0.95) -> AnalysisOfVariance:
    """One-way analysis of variance of a feature by groups: post-processing, free of privacy cost.

    Parameters
    ----------
    release : Released
    target : str
        A feature.
    by : str
        A categorical or Boolean column.
    level : float
        Groups are said to differ where the p-value is below 1 − level.

    Returns
    -------
    AnalysisOfVariance

    Raises
    ------
    ValueError
        If a name is unknown, the target is of the column ``by``, that holds numbers, the level is below 0.5, or no mean was
        released.

    Notes
    -----
    The p-value is that of a score test: sums over groups about the overall mean, against the covariance that sampling and the
    noise of the release give them where no group differs, where the F distribution would call noise a difference. F and eta²
    are corrected by what the noise is expected to add. Sampling takes groups to vary alike, but where the schema has the product
    of target and level as a feature.

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
        raise ValueError(f"analysis of variance: {NO_MEAN}")
    levels = Levels.of(release, by)
    sums = GroupSums.of(release, feature_place(release, target), levels)
    squares, added, p_value = between_groups(sums)
    if len(levels.names) < 2:
        p_value = 1.0 if release.noise is not None else np.nan  # one group: there is nothing to differ
    total = sums.n_rows * sums.total_variance
    between = min(max(0.0, squares - (0.0 if np.isnan(added) else added)), total)
    within = total - between
    rows = np.maximum(sums.counts, 0.0)
    present = int((rows >= np.maximum(0.5, np.nan_to_num(sums.count_noise, nan=0.0))).sum())
    degrees = (float(max(present - 1, 0)), max(sums.n_rows - present, 0.0))
    usable = degrees[0] > 0.0 and degrees[1] > 0.0 and within > 0.0
    return AnalysisOfVariance(
        target=target,
        by=by,
        levels=levels.names,
        counts=rows,
        sum_of_squares=(between * sums.unit**2, within * sums.unit**2),
        noise_between=added * sums.unit**2,
        degrees=degrees,
        f=(between / degrees[0]) / (within / degrees[1]) if usable else np.nan,
        eta_squared=between / total if total > 0.0 else np.nan,
        p_value=p_value,
        level=level,
        warning=cautions(release),
    )
