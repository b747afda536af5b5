"""What a run of CoinPress says of itself: every step, and warnings in words."""

from __future__ import annotations

import math
from typing import Any

from dpmoments.mechanisms.coinpress_ellipsoid import StepRules
from dpmoments.mechanisms.coinpress_last_clip import FAR, LastClip

__all__ = ["run_diagnostics"]

LARGE_TAIL = 0.06
"""A tail of a larger share of the rows that the histogram could not see is warned of."""


def run_diagnostics(steps: list[dict[str, Any]], rules: StepRules, clip: LastClip, half_seen: bool) -> dict[str, Any]:
    """Ellipsoid of every step, predicted error and warnings; all computed from noisy outputs and public numbers."""
    found: list[str] = []
    final, d = steps[-1], len(steps[-1]["center"])
    planned = rules.last_radius**2
    # Rows that obey the bounds have E‖w‖² ≤ d. The limit on ``fill`` is halfway between d and radius², plus four standard
    # deviations of the noise.
    limit = (d + planned) / (2.0 * planned) + 4.0 * final["noise_scale"] * math.sqrt(d) / final["radius"] ** 2
    if (clip.outside is not None and clip.outside > 0.5) or (final["radius"] ** 2 <= planned and final["fill"] > limit):
        found.append(
            "most rows were clipped: they lie far outside the stated bounds (or have very heavy tails); "
            "widen the schema's scale or radius, or eigenvalue_bounds or mean_radius"
        )
    # An error of √d leaves nothing of the least directions. A range that stays wide, because one step is best, is no fault.
    if rules.schedule.predicted_error > math.sqrt(d):
        found.append(
            "the budget is too small for this range of eigenvalues: the smallest ones are lost in the noise "
            "(more rows, a larger rho, or a narrower range)"
        )
    if clip.radius > FAR * rules.last_radius:
        found.append(
            f"the last clip is more than {FAR:g} times as wide as planned, because some rows lie far out: the noise on every "
            "column has grown with its square. Bounds, or a transformed column, serve such a table better"
        )
    if clip.left_out or half_seen:
        found.append(
            "some column or combination of columns gets its variance from few rows, which were clipped, or varies less than "
            "its least scale: its released variance is far too small, or mostly noise. Declare flags as such, or give bounds"
        )
    # In units of w the signal is about 1 in every direction, more where the clip had to be widened for all.
    signal = math.sqrt(d) * max(1.0, final["fill"] * final["radius"] ** 2 / d)
    if final["noise_scale"] * math.sqrt(d * (d + 1) / 2.0) > signal:
        found.append("the expected error is larger than the covariance itself: this release is mostly noise")
    if clip.unseen_tail > LARGE_TAIL:
        found.append(
            f"a tail of up to about {min(1.0, clip.unseen_tail):.0%} of the rows, however far out, would not have been seen and "
            "would have been clipped: if there is one, variances are too small"
        )
    if rules.n_rows < d:
        found.append("there are fewer rows than features: the covariance of the rows is singular, whatever its noise")
    return {
        "steps": steps,
        "predicted_mahalanobis": rules.schedule.predicted_error,
        "share_outside": clip.outside,
        "share_unseen": clip.unseen_tail,
        "warnings": found,
    }
