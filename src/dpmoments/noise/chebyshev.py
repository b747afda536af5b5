"""Quantiles that hold for every law."""

from __future__ import annotations

import math

__all__ = ["cantelli_quantile", "checked_level"]


def cantelli_quantile(level: float) -> float:
    """What no standardised variable passes with more than the probability left: ±√(p/(1 − p)), p the larger side.

    Examples
    --------
    >>> cantelli_quantile(0.8), cantelli_quantile(0.1)
    (2.0, -3.0)
    """
    return math.sqrt(level / (1.0 - level)) if level >= 0.5 else -math.sqrt((1.0 - level) / level)


def checked_level(level: float) -> float:
    """The level, if it is a probability above 0 and below 1; else a ValueError."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level!r} is a probability, above 0 and below 1")
    return level
