"""What a release says of each feature by itself: its mean and its spread, and how much noise is on them."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmoments.analysis.answers import aligned, finite_or_none, in_floating_point, number
from dpmoments.analysis.released import Released
from dpmoments.array_types import FloatArray
from dpmoments.repair.count_floor import few_rows_in_words
from dpmoments.schema.constraints import Constraints

__all__ = ["Description", "describe"]


@dataclass(frozen=True, eq=False)
class Description:
    """Mean and spread of every feature, in the table's units.

    Attributes
    ----------
    feature_names : tuple of str
    mean : ndarray of shape (d,) or None
        None where no mean was released.
    mean_noise : ndarray of shape (d,)
        Standard deviation of the noise that privacy adds to the mean, before repair; NaN where it is not known, or there is no
        mean.
    standard_deviation : ndarray of shape (d,) or None
        NaN where the noise made a variance negative; None where no mean was released.
    root_mean_square : ndarray of shape (d,) or None
        In place of the standard deviation where no mean was released; NaN where no count was either.
    n_rows : int or None
        None where no count was released.
    count_noise : float or None
        Standard deviation of the noise on the count: 0 where it is public, None where it is not known or there is no count.
    count_is_public : bool
    warning : str
        What speaks against reading the numbers as those of the table: too few rows for the budget; mostly empty.
    """

    feature_names: tuple[str, ...]
    mean: FloatArray | None
    mean_noise: FloatArray
    standard_deviation: FloatArray | None
    root_mean_square: FloatArray | None
    n_rows: int | None
    count_noise: float | None
    count_is_public: bool
    warning: str = ""

    @property
    def rows_in_words(self) -> str:
        """The number of rows and how far it can be trusted."""
        if self.n_rows is None:
            return "not released (the number of rows is private and nothing was spent on it)"
        if self.count_is_public:
            return f"{self.n_rows:,} (public, exact)"
        deviation = "" if self.count_noise is None else f", standard deviation {number(self.count_noise)}"
        return f"{self.n_rows:,} (noisy{deviation})"

    @property
    def noise_in_words(self) -> str:
        """What the noise in the table is; empty where none of it is known."""
        if not np.isfinite(self.mean_noise).any():
            return ""
        return "± noise: standard deviation of the noise that privacy adds to the mean, before repair."

    def table(self) -> list[tuple[str, str, str, str]]:
        """Rows of text, the head first: feature, mean, noise on the mean, spread."""
        unknown = np.full(len(self.feature_names), np.nan)
        means = unknown if self.mean is None else self.mean
        if self.standard_deviation is not None:
            words, spread = "standard deviation", self.standard_deviation
        else:
            words, spread = "root mean square", unknown if self.root_mean_square is None else self.root_mean_square
        cells = zip(self.feature_names, means, self.mean_noise, spread, strict=True)
        return [
            ("feature", "mean", "± noise", words),
            *((name, number(mean), number(noise), number(deviation)) for name, mean, noise, deviation in cells),
        ]

    def summary(self) -> str:
        """The description as text: the number of rows and a line a feature."""
        return "\n".join(
            filter(None, [f"rows: {self.rows_in_words}", aligned(self.table()), self.noise_in_words, self.warning])
        )

    def __str__(self) -> str:
        return self.summary()

    def to_dict(self) -> dict[str, Any]:
        """The description as JSON holds it; ``root_mean_square`` stands in for ``standard_deviation`` without a mean."""
        spread = {"standard_deviation": self.standard_deviation, "root_mean_square": self.root_mean_square}
        return {
            "n_rows": self.n_rows,
            "count_noise": self.count_noise,
            "count_is_public": self.count_is_public,
            "feature_names": list(self.feature_names),
            "mean": None if self.mean is None else finite_or_none(self.mean),
            "mean_noise": finite_or_none(self.mean_noise),
            **{name: finite_or_none(values) for name, values in spread.items() if values is not None},
            "warning": self.warning,
        }


@in_floating_point
def describe(release: Released) -> Description:
    """Mean and spread of every feature, each with its noise: post-processing, free of privacy cost.

    Parameters
    ----------
    release : Released

    Returns
    -------
    Description
        ``print`` shows it as a table.

    Notes
    -----
    The noise on the mean is that of (noise of the sum − mean · noise of the count)/n, to first order.

    Examples
    --------
    >>> import numpy as np, dpmoments as dpm
    >>> table = np.random.default_rng(0).uniform(-0.5, 0.5, (50_000, 2))
    >>> released = dpm.release(table, dpm.Schema.unit_ball(2), rho=0.5, neighbors="replace_one", insecure_seed=0)
    >>> found = released.describe()
    >>> found.standard_deviation.round(2), found.rows_in_words
    (array([0.29, 0.29]), '50,000 (public, exact)')
    """
    with_mean, with_count = release.noisy_sum is not None, release.noisy_count is not None
    unknown = np.full(len(release.feature_names), np.nan)
    spread = _root(np.diag(release.covariance if with_mean else release.second_moment)) if with_count else unknown
    return Description(
        feature_names=release.feature_names,
        mean=release.mean if with_mean else None,
        mean_noise=_mean_noise(release),
        standard_deviation=spread if with_mean else None,
        root_mean_square=None if with_mean else spread,
        n_rows=release.n_rows if with_count else None,
        count_noise=_count_noise(release),
        count_is_public=release.count_is_public,
        warning=few_rows_in_words(release.noisy_count, release.noise),
    )


def _root(variance: FloatArray) -> FloatArray:
    """NaN for a negative variance, which a release without repair can have."""
    return np.sqrt(np.where(variance >= 0, variance, np.nan))


def _mean_noise(release: Released) -> FloatArray:
    law = release.noise
    if release.noisy_sum is None or law is None or law.sum_variance is None or law.count_variance is None:
        return np.full(len(release.feature_names), np.nan)
    variance = law.sum_variance + release.unit_ball_mean**2 * law.count_variance
    noise = np.sqrt(variance) / release.n_rows * release.encoding.scale
    noise[list(Constraints.of(release.schema, mean=True).certain)] = (
        0.0  # a column of one level: its share is 1 in every table
    )
    return np.asarray(noise)


def _count_noise(release: Released) -> float | None:
    if release.count_is_public:
        return 0.0
    if release.noisy_count is None or release.noise is None or release.noise.count_variance is None:
        return None
    return math.sqrt(release.noise.count_variance)
