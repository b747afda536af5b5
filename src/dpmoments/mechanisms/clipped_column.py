"""One column without bounds, from search to clip: the shares of its budget, what was found, and what speaks against it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from types import MappingProxyType

from dpmoments.mechanisms.additive import choose_bits
from dpmoments.mechanisms.lattice_noise import noise_deviation, noise_scale_for
from dpmoments.mechanisms.reliability import listed, noise_margin
from dpmoments.mechanisms.row_count import split_for_count
from dpmoments.mechanisms.unbounded_column import (
    Center,
    OctaveHistogram,
    Shares,
    log_scale_histogram,
    noisy_number_beyond,
    private_center,
    share_of,
)
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.rows.rows import Rows

__all__ = [
    "CLIP_SHARE",
    "HISTOGRAM_SHARE",
    "LARGE_TAIL",
    "ClippedColumn",
    "LocatedColumn",
    "column_losses",
    "column_warnings",
    "pure_if_less_noise",
]

COUNT_SHARE: Shares = MappingProxyType({BudgetKind.PURE: 0.05, BudgetKind.ZCDP: 0.02})
"""Share of the whole budget for the number of rows, where it is private."""
HISTOGRAM_SHARE: Shares = MappingProxyType({BudgetKind.PURE: 0.15, BudgetKind.ZCDP: 0.1})
"""Share of a column's budget for the log-scale histogram."""
CLIP_SHARE: Shares = MappingProxyType({BudgetKind.PURE: 0.04, BudgetKind.ZCDP: 0.02})
"""Share of what is left then for the number of clipped rows."""
LEAST_LEFT = 0.1
"""Less than the share of a column's budget that its sums have in any run."""
LEAST_CLIPPED = 0.01
"""Share of clipped rows from which a warning tells of them."""
LARGE_TAIL = 0.1
"""A tail of a larger share of the rows that the histogram could not see is warned of."""


@dataclass(frozen=True, slots=True)
class LocatedColumn:
    """Where a column lies, and its distances from there.

    Attributes
    ----------
    feature : int
    center : Center
    histogram : OctaveHistogram
    n_rows : float
    """

    feature: int
    center: Center
    histogram: OctaveHistogram
    n_rows: float

    @classmethod
    def find(
        cls,
        rows: Rows,
        privacy_filter: PrivacyFilter,
        whole: PrivacyBudget,
        *,
        feature: int,
        n_rows: float,
        about_zero: bool = False,
    ) -> LocatedColumn:
        """Search for the centre, unless it is 0, and count the distances from it, by a part of ``whole``."""
        center = Center(0.0, settled=True, certain=True)
        if not about_zero:
            center = private_center(rows, privacy_filter, whole, feature=feature, n_rows=n_rows)
        loss = share_of(whole, HISTOGRAM_SHARE[whole.kind])
        histogram = log_scale_histogram(rows, privacy_filter, loss, feature=feature, center=center.value)
        return cls(feature, center, histogram, n_rows)

    def clipped(self, rows: Rows, privacy_filter: PrivacyFilter, loss: PrivacyBudget, radius: float) -> ClippedColumn:
        """With a noisy count of the rows beyond ``radius``, which costs ``loss``."""
        beyond = noisy_number_beyond(
            rows,
            privacy_filter,
            loss,
            f"clipped rows of feature {self.feature + 1}",
            feature=self.feature,
            center=self.center.value,
            least=math.nextafter(radius, math.inf),
        )
        pure = loss.kind is BudgetKind.PURE
        deviation = noise_deviation(noise_scale_for(loss, 1.0), pure=pure) / self.n_rows
        share = beyond / self.n_rows
        shows = share > LEAST_CLIPPED + noise_margin(deviation, rows.n_features, pure=pure)
        return ClippedColumn(self, radius, min(max(share, 0.0), 1.0), shows)


@dataclass(frozen=True, slots=True)
class ClippedColumn:
    """A column and its clip.

    Attributes
    ----------
    located : LocatedColumn
    radius : float
    share_clipped : float
        Noisy, in [0, 1].
    clipping_shows : bool
        Whether it is above LEAST_CLIPPED by more than noise.
    """

    located: LocatedColumn
    radius: float
    share_clipped: float
    clipping_shows: bool

    @property
    def share_unseen(self) -> float:
        """A tail of about this share of the rows could be in the histogram without standing out."""
        return min(1.0, self.located.histogram.least_seen / self.located.n_rows)

    @property
    def is_constant(self) -> bool:
        """Whether most rows are no farther from the centre than the histogram tells apart."""
        return self.located.histogram.fullest == 0


def pure_if_less_noise(budget: PrivacyBudget, divisible: PrivacyBudget, n_columns: int) -> PrivacyBudget:
    """ε alone in place of (ε, δ) where its Laplace noise is less than normal noise of ``divisible``, its ρ: for few columns.

    Examples
    --------
    >>> whole, rho = PrivacyBudget.approximate(1.0, 1e-6), PrivacyBudget.zcdp(0.0244)
    >>> pure_if_less_noise(whole, rho, 1), pure_if_less_noise(whole, rho, 50)
    (PrivacyBudget.pure(epsilon=1.0), PrivacyBudget.approximate(epsilon=1.0, delta=1e-06))
    """
    if budget.kind is not BudgetKind.APPROXIMATE:
        return budget
    pure = PrivacyBudget.pure(budget.epsilon)
    of_pure, of_zcdp = (whole.split(*[1.0] * n_columns)[0] for whole in (pure, divisible))
    less = noise_deviation(noise_scale_for(of_pure, 1.0), pure=True) < noise_scale_for(of_zcdp, 1.0)
    return pure if less else budget


def column_losses(
    whole: PrivacyBudget, n_columns: int, *, private_count: bool
) -> tuple[PrivacyBudget | None, PrivacyBudget]:
    """The part for the number of rows, where that is private, and for each column.

    Raises
    ------
    ValueError
        Before any row is read, where a column's part is so small that its noise would pass the lattice.
    """
    for_count = None
    if private_count:
        for_count, whole = split_for_count(whole, COUNT_SHARE[whole.kind])
    of_column, *_ = whole.split(*[1.0] * n_columns)
    # The sensitivity of a column's sums is 2 at most.
    choose_bits(noise_scale_for(share_of(of_column, LEAST_LEFT), 2.0))
    return for_count, of_column


def column_warnings(names: Sequence[str], columns: Sequence[ClippedColumn]) -> list[str]:
    """What speaks against moments of clipped columns, whatever they are."""
    found = []
    lost = [not (one.located.center.certain and one.located.histogram.stands_out) for one in columns]
    if any(lost):
        found.append(
            "noise decides where the values lie: the budget is too small for so few rows to find them on the whole line. Give "
            f"more rows, a larger budget, or bounds ({listed(names, lost)})"
        )
    unsettled = [not one.located.center.settled for one in columns]
    if any(unsettled):
        found.append(
            "the search for the values ended before it had found them; the noise is that of its range "
            f"({listed(names, unsettled)})"
        )
    clipped = [one.clipping_shows for one in columns]
    if any(clipped):
        largest = max(one.share_clipped for one in columns if one.clipping_shows)
        found.append(
            f"up to {100.0 * largest:.2g} % of the values were clipped: they are rare and far from the others, or the budget is "
            f"small; the variance is too small, and the mean moved towards the others ({listed(names, clipped)})"
        )
    unseen = [one.share_unseen > LARGE_TAIL for one in columns]
    if any(unseen):
        largest = max(one.share_unseen for one in columns)
        found.append(
            f"up to about {largest:.0%} of the values could lie far from the others without being seen, and would have been "
            f"clipped: if there are any, the variance is too small ({listed(names, unseen)})"
        )
    return found
