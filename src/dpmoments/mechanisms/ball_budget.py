"""How adaptive-ball divides a budget, step by step, from what it has learnt of the number of rows so far.

A step is paid for by the noise it can bear, in rows: a large table pays next to nothing for a centre and a radius, and a small
one is released at the public bounds before it has paid for either. The constants were chosen on the design half of the tables
in ``benchmarks/practice`` and are judged on the other (``docs/practice.md``); ``docs/derivations/adaptive_ball.md`` has the
reasons.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from dpmoments.mechanisms.lattice_noise import noise_deviation, noise_scale_for
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.sensitivity import row_sum_l1, row_sum_l2

__all__ = ["BallBudget"]

COUNT_SHARE = 0.008
CENTER_SHARES = (0.005, 0.08)
CENTER_NOISE = 0.1
"""Norm of the noise on the centre that its share is to reach, in units of the ball."""
SCREEN_ROWS = 0.01
SCREEN_NOISE = 4.0
SCREEN_SHARES = (0.0025, 0.045)
"""A share of the rows may lie beyond the first radius looked at, which is so many noise scales; where that costs more, no such
look is taken."""
SEARCH_SHARES = (0.01, 0.12)
SEARCH_SHARE_AT_EASE = 0.04
ROWS_AT_EASE = 0.004
"""Where so small a share of the rows may lie beyond the ball anyway, no more than that is paid to know the radius better."""
SEARCH_NOISE_PURE, SEARCH_NOISE_GAUSSIAN = 10.0, 6.0
"""Rows that may lie beyond the ball, at least: so many scales of the noise of the search, or it would find nothing."""
ROWS_FOR_NOISE = 3.0
"""Rows that may lie beyond the ball: so many times the Frobenius norm of the noise, in rows."""
MOST_BEYOND = 0.25
"""And never more than this share of all."""
BEYOND_SHARE = 0.01
EXCESS_SHARE_PER_GAIN = 0.02
MOST_EXCESS_SHARE = 0.12
"""The last look before rows are clipped is paid for in proportion to what clipping gains."""
SHARE_FOR_NOISE = 0.9
"""The share of the last step by which the others are planned."""


@dataclass(frozen=True)
class BallBudget:
    """Shares of a whole budget for the steps of one run.

    Attributes
    ----------
    whole : PrivacyBudget
        ε or ρ.
    neighbors : Neighbors
    n_features : int
    noise_rows : float
        The Frobenius norm of the noise of the last step at radius 1, for ``SHARE_FOR_NOISE`` of the budget: in rows of that
        norm.
    """

    whole: PrivacyBudget
    neighbors: Neighbors
    n_features: int
    noise_rows: float

    @property
    def pure(self) -> bool:
        """Whether losses add up in ε; else in ρ."""
        return self.whole.kind is BudgetKind.PURE

    def part(self, share: float) -> PrivacyBudget:
        """That share of the whole."""
        return self.whole.split(share, 1.0 - share)[0]

    def scale(self, share: float) -> float:
        """Scale of the noise that the share buys for a count."""
        return noise_scale_for(self.part(share), 1.0)

    def deviation(self, share: float) -> float:
        """Its standard deviation."""
        return noise_deviation(self.scale(share), pure=self.pure)

    def share_for(self, scale: float) -> float:
        """The share that buys noise of this scale for a count; infinite for none."""
        if scale <= 0.0:
            return math.inf
        ratio = noise_scale_for(self.whole, 1.0) / scale
        return ratio if self.pure else ratio * ratio

    def search_share(self, least_rows: float) -> float:
        """For the radius, in a table of about so many rows."""
        aim = max(ROWS_FOR_NOISE * self.noise_rows, ROWS_AT_EASE * least_rows)
        for_noise = self.share_for(ROWS_FOR_NOISE * self.noise_rows / self._search_noise)
        wanted = max(
            self.share_for(aim / self._search_noise),
            self.share_for(MOST_BEYOND * least_rows / self._search_noise),
            min(SEARCH_SHARE_AT_EASE, for_noise),
        )
        return _within(wanted, SEARCH_SHARES)

    def rows_beyond(self, least_rows: float) -> int | None:
        """K, how many rows may lie beyond the ball; None where the table has too few for a search."""
        least = self._search_noise * self.scale(self.search_share(least_rows))
        most = MOST_BEYOND * least_rows
        if least > most:
            return None
        return math.floor(max(least, min(ROWS_FOR_NOISE * self.noise_rows, most)))

    def center_share(self, least_rows: float) -> float:
        """For the centre."""
        norm = self.center_noise(1.0) / (CENTER_NOISE * least_rows)
        return _within(norm if self.pure else norm * norm, CENTER_SHARES)

    def center_scale(self, share: float) -> float:
        """Scale of the noise on every entry of the sum of rows."""
        return noise_scale_for(self.part(share) if share < 1.0 else self.whole, self._sum_sensitivity)

    def center_noise(self, share: float) -> float:
        """Root mean square norm of the noise on the sum of rows."""
        return noise_deviation(self.center_scale(share), pure=self.pure) * math.sqrt(self.n_features)

    def screen_share(self, least_rows: float) -> float | None:
        """For a first look at one large radius; None where it costs too much for a first look."""
        share = self.share_for(SCREEN_ROWS * least_rows / SCREEN_NOISE)
        return None if share > SCREEN_SHARES[1] else max(share, SCREEN_SHARES[0])

    @staticmethod
    def screened_rows(least_rows: float, rows_beyond: int) -> float:
        """How many rows may lie beyond that radius."""
        return max(float(rows_beyond), SCREEN_ROWS * least_rows)

    @staticmethod
    def excess_share(radius: float) -> float:
        """For what lies beyond the ball, given its radius."""
        return min(MOST_EXCESS_SHARE, EXCESS_SHARE_PER_GAIN / radius**2)

    @property
    def _search_noise(self) -> float:
        return SEARCH_NOISE_PURE if self.pure else SEARCH_NOISE_GAUSSIAN

    @property
    def _sum_sensitivity(self) -> float:
        return (row_sum_l1(self.neighbors, self.n_features) if self.pure else row_sum_l2(self.neighbors)).value


def _within(value: float, bounds: tuple[float, float]) -> float:
    return min(max(value, bounds[0]), bounds[1])
