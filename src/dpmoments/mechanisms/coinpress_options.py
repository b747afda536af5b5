"""Options that both CoinPress mechanisms have, the covariance's and the mean's, and their checks."""

from __future__ import annotations

import math
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal

from dpmoments.mechanisms.coinpress_schedule import MOST_STEPS
from dpmoments.papers.bounds.coinpress import last_step_shares

__all__ = ["FAILURE", "STAND_IN_ROWS", "CoinPressOptions", "checked_eigenvalue_bounds"]

FAILURE = 0.05
"""β where the paper's constants are asked for and none is given."""
LAST_SHARE = MappingProxyType({"experiments": 0.75, "theorems": 0.5})
"""What the last step gets (Biswas et al. 2020, section 3; Theorems 2.2 and 2.4); the others get equal parts of the rest."""

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
    split : tuple of float, "experiments", "theorems" or None
        Shares of the budget, one a step, kept so that they add up to 1; or those of the paper, by name.
    failure : float
        β: with the paper's constants, no normal row is clipped and nothing leaves its ball or ellipsoid, except with this
        probability.
    """

    constants: Literal["practical", "paper"] = "practical"
    clip: Literal["adaptive", "gaussian"] = "adaptive"
    steps: int | None = None
    split: tuple[float, ...] | Literal["experiments", "theorems"] | None = None
    failure: float = FAILURE

    @property
    def widens_last_clip(self) -> bool:
        """Whether a histogram of norms is paid for, from which the last clip is widened where tails are heavy."""
        return self.clip == "adaptive" and self.constants == "practical"

    @property
    def splits(self) -> list[tuple[float, ...]] | None:
        """The divisions of the budget that a schedule is chosen from; None where they are searched."""
        if isinstance(self.split, tuple):
            return [self.split]
        name = self.split or ("experiments" if self.constants == "paper" else None)
        if name is None:
            return None
        lengths = range(1, MOST_STEPS + 1) if self.steps is None else [self.steps]
        return [last_step_shares(n_steps, LAST_SHARE[name]) for n_steps in lengths]

    def step_failures(self, n_steps: int) -> tuple[float, float]:
        """β_s of each step before the last, β/(4(t − 1)), and of the last, β/4 (Biswas et al. 2020, Figure 2)."""
        return self.failure / (4.0 * max(n_steps - 1, 1)), self.failure / 4.0

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
        if isinstance(self.failure, bool) or not isinstance(self.failure, int | float) or not 0.0 < self.failure < 1.0:
            raise ValueError(f"failure={self.failure!r} is a probability, above 0 and below 1")
        if self.failure != FAILURE and self.constants != "paper":
            raise ValueError(
                f"failure={self.failure!r} is the β of the paper's constants, and the practical ones have none: leave it out, or "
                'give constants="paper"'
            )
        if isinstance(self.split, str):
            if self.split not in LAST_SHARE:
                raise ValueError(f"split={self.split!r}: use {' or '.join(map(repr, LAST_SHARE))}, or one share a step")
        elif self.split is not None:
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
