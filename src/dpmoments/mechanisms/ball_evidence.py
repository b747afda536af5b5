"""What a run of adaptive-ball learnt of the rows that it moved, and what it says of that."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import scipy

from dpmoments.foundation.values import is_finite_number
from dpmoments.mechanisms.ball_budget import BEYOND_SHARE, BallBudget
from dpmoments.mechanisms.ball_search import RowDistances, radius_at
from dpmoments.mechanisms.noisy_moments import NoisyMoments
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.rounding import no_less

__all__ = ["BallEvidence"]

FAILURE = 0.05
"""Probability that one of the bounds on what clipping did does not hold, the noisy answers being independent of one
another."""
BOUNDS = 3
NEGLIGIBLE = 0.01
"""What clipping took at most is no matter below this share of all variances together."""


@dataclass(frozen=True)
class BallEvidence:
    """Rows beyond a ball.

    Attributes
    ----------
    radius : float
    rows_beyond, rows_deviation : float
        Their number with noise (NaN before it is asked for), and the noise's standard deviation.
    excess, excess_deviation : float
        The same for Σ(‖x − c‖² − r²) over them.
    farthest : float
        How far from the centre a row can be.
    pure : bool
        Whether the noise is Laplace noise.
    """

    radius: float
    rows_beyond: float
    rows_deviation: float
    excess: float
    excess_deviation: float
    farthest: float
    pure: bool

    @classmethod
    def found(
        cls,
        distances: RowDistances,
        privacy_filter: PrivacyFilter,
        budget: BallBudget,
        place: int,
        farthest: float,
    ) -> BallEvidence:
        """Ask for the excess; the number of rows is asked for when the ball is taken."""
        radius = radius_at(place)
        share = budget.excess_share(radius)
        excess, deviation = distances.noisy_excess(privacy_filter, budget, share, place, farthest)
        return cls(radius, math.nan, budget.deviation(BEYOND_SHARE), excess, deviation, farthest, budget.pure)

    def with_rows(
        self, distances: RowDistances, privacy_filter: PrivacyFilter, budget: BallBudget, place: int
    ) -> BallEvidence:
        """The same with the number of rows beyond the ball."""
        return replace(self, rows_beyond=distances.noisy_rows_beyond(privacy_filter, budget, BEYOND_SHARE, place))

    def diagnostics(self, noisy: NoisyMoments) -> dict[str, Any]:
        """What the rows that were moved did to the moments at most, with a warning where that is more than the noise.

        Clipping takes at most E/n off the trace of the second moment about the centre, E the excess, and moves the mean by at
        most E/(2rn), since ‖x − c‖² − r² ≥ 2r(‖x − c‖ − r).
        """
        noise, count = noisy.noise, noisy.count
        assert noise is not None
        assert noise.sum_error is not None
        assert count is not None
        assert noisy.sum is not None
        most_rows = max(0.0, self.rows_beyond + self._reach(self.rows_deviation))
        most_excess = max(0.0, self.excess + self._reach(self.excess_deviation))
        most_excess = min(most_excess, most_rows * max(0.0, self.farthest**2 - self.radius**2))
        count_noise = noise.count_quantile(1.0 - FAILURE / BOUNDS) if noise.count_variance else 0.0
        least_count = max(1.0, count - count_noise)
        found = {
            "radius": self.radius,
            "rows_beyond": self.rows_beyond,
            "excess_beyond": self.excess,
            "share_beyond_bound": min(1.0, most_rows / least_count),
            "trace_bias_bound": most_excess / least_count,
            "mean_bias_bound": most_excess / (2.0 * self.radius * least_count),
        }
        d = noise.n_features
        trace_noise = math.sqrt(d * noise.diagonal_variance) / least_count
        lost = found["trace_bias_bound"]
        if lost <= trace_noise and found["mean_bias_bound"] <= noise.sum_error / least_count:
            return found
        # Of the covariance clipping takes more than of the second moment where it moves the mean away from the centre.
        at_least_one = max(1.0, count)
        moved = float(np.linalg.norm(noisy.sum)) / at_least_one
        lost *= 1.0 + min(1.0, moved / self.radius)
        spread = float(np.trace(noisy.gram)) / at_least_one - moved**2
        shown = max(spread, trace_noise)
        if lost < NEGLIGIBLE * shown:
            return found
        may_be = f"by up to {lost / shown:.0%} of what is shown" if lost < shown else "by more than what is shown"
        warning = (
            f"rows beyond a ball of radius {self.radius:.2f} were moved into it: the columns' variances together, in units of "
            f"their bounds, may be too small {may_be} (95 % confidence), where noise alone "
            f"moves them by {trace_noise / shown:.1%}. Where few rows make up much of a column, release with "
            "AdaptiveBall(dominant_rows=True), which moves none"
        )
        return found | {"warnings": [warning]}

    @staticmethod
    def rules(diagnostics: Mapping[str, Any]) -> tuple[str, ...]:
        """What was done to rows, for the privacy statement."""
        if "radius" not in diagnostics:
            return ()
        radius, share = _recorded(diagnostics, "radius"), _recorded(diagnostics, "share_beyond_bound")
        trace, mean = (_recorded(diagnostics, f"{name}_bias_bound", math.inf) for name in ("trace", "mean"))
        return (
            f"Encoded rows were moved into a ball of radius {radius:.3g} about a centre found privately, and the moments are of "
            f"the moved rows. With 95 % confidence at most {no_less(100 * share, 2)} % of the rows lay outside, and moving them "
            f"took at most {no_less(trace, 2)} off the mean squared distance from the centre and moved the mean by at most "
            f"{no_less(mean, 2)}, in units of the ball of all rows.",
        )

    @staticmethod
    def recorded_radius(diagnostics: Mapping[str, Any]) -> float | None:
        """The ball of a run; None where it had none.

        Raises
        ------
        ValueError
            If what a file has for it is no radius.
        """
        return _recorded(diagnostics, "radius") if "radius" in diagnostics else None

    def _reach(self, deviation: float) -> float:
        failure = FAILURE / BOUNDS
        return deviation * (
            -math.log(2.0 * failure) / math.sqrt(2.0) if self.pure else float(-scipy.special.ndtri(failure))
        )


def _recorded(diagnostics: Mapping[str, Any], name: str, most: float = 1.0) -> float:
    value: Any = diagnostics.get(name)
    if not is_finite_number(value) or not 0.0 <= value <= most:
        raise ValueError(
            f"{name} of the diagnostics must be a number from 0 to {most:g}: the file was changed after the release"
        )
    return float(value)
