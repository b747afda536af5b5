"""Options that both CoinPress mechanisms have, the covariance's and the mean's, and their checks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

__all__ = ["STAND_IN_ROWS", "CoinPressOptions", "checked_eigenvalue_bounds"]

STAND_IN_ROWS = 1000
"""Stands in for the number of rows where that is private, so that options that cannot work are refused before a row is read."""


@dataclass(frozen=True, kw_only=True)
class CoinPressOptions:
    """How a run divides its budget among steps, and how it clips.

    Attributes
    ----------
    constants : {"practical", "paper"}
    clip : {"adaptive", "gaussian"}
    steps : int or None
    split : tuple of float or None
        Shares of the budget, one a step; kept so that they add up to 1.
    """

    constants: Literal["practical", "paper"] = "practical"
    clip: Literal["adaptive", "gaussian"] = "adaptive"
    steps: int | None = None
    split: tuple[float, ...] | None = None

    @property
    def widens_last_clip(self) -> bool:
        """Whether a histogram of norms is paid for, from which the last clip is widened where tails are heavy."""
        return self.clip == "adaptive" and self.constants == "practical"

    def check_schedule_options(self) -> None:
        """Refuse options that cannot be, and bring ``split`` to a sum of 1.

        Raises
        ------
        ValueError
            If an option is not one of its choices, or ``steps`` and ``split`` disagree.
        """
        for name, choices in (("constants", ("practical", "paper")), ("clip", ("adaptive", "gaussian"))):
            if getattr(self, name) not in choices:
                raise ValueError(f"{name}={getattr(self, name)!r}: use {' or '.join(map(repr, choices))}")
        if self.steps is not None and (isinstance(self.steps, bool) or not 1 <= self.steps <= 1000):
            raise ValueError(f"steps={self.steps!r} must be a whole number from 1 to 1000")
        if self.split is not None:
            split = tuple(map(float, self.split))
            if not split or not all(math.isfinite(share) and share > 0.0 for share in split):
                raise ValueError(f"split={self.split!r}: give one positive share a step")
            if self.steps not in (None, len(split)):
                raise ValueError(f"split has {len(split)} shares and steps={self.steps}: leave steps out")
            object.__setattr__(self, "split", tuple(share / math.fsum(split) for share in split))


def checked_eigenvalue_bounds(bounds: tuple[float, float]) -> tuple[float, float]:
    """(lowest, highest) as floats.

    Raises
    ------
    ValueError
        Unless 0 < lowest ≤ highest < ∞.
    """
    lowest, highest = (float(bound) for bound in bounds)
    if not 0.0 < lowest <= highest < math.inf:
        raise ValueError(f"eigenvalue_bounds={bounds!r}: give (lowest, highest) with 0 < lowest ≤ highest, finite")
    return lowest, highest
