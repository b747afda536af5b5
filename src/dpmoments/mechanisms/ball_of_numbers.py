"""Clipping ball in the numbers of rows, if levels are better not clipped.

Levels about their public center have one norm in every row, or nearly so: a ball that holds most rows about a private center is
then no smaller than one in which no level is moved, and only numbers are clipped. Proofs:
``docs/evidence/derivations/adaptive_ball.md``, section "Numbers alone".
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.mechanisms.level_coordinates import LATTICE_BITS, LevelCoordinates
from dpmoments.schema.encoding import LATTICE

_DEVIATIONS = 2.0
"""SDs of the squared distance of levels from a private center that a ball must hold."""
_MIN_REACH = 1.2
"""Do not clip levels if that distance is at least this multiple of the public one …

The public one is from their public center.
"""
_EVEN = 0.85
"""… or its mean is: levels are then nearly even, and their private center is the public one."""
MEAN_WEIGHT = 4.0
"""μ of the appended constant: most means are near the center.

See :mod:`dpmoments.mechanisms.level_coordinates`.
"""


@dataclass(frozen=True)
class BallOfNumbers:
    """Features of a schema that a ball of numbers clips: neither levels nor Booleans."""

    levels: LevelCoordinates  # coordinates of the rows at the public bounds
    features: tuple[int, ...]
    square: int  # largest squared norm of these features, in units of 2⁻³²

    @classmethod
    def of(cls, levels: LevelCoordinates | None, smallest: float, bits: int) -> BallOfNumbers | None:
        """Return the features; None without levels or numbers."""
        # Also None if a ball of the radius `smallest`, a fraction of their largest norm, is too small for the lattice.
        if levels is None or bits < LATTICE_BITS:
            return None
        still = {feature for block in levels.blocks for feature in range(block.start, block.stop)} | set(levels.flags)
        features = tuple(feature for feature in range(len(levels.steps)) if feature not in still)
        square = levels.other_square - sum(levels.steps[feature] ** 2 for feature in levels.flags)
        found = cls(levels, features, square)
        if not features or found.limit(smallest, bits) < 1.0 + math.sqrt(len(features)):
            return None
        return found

    @cached_property
    def unit(self) -> float:
        """Largest norm of the numbers, in unit-ball units: radii of the search are fractions of it."""
        return math.sqrt(self.square) / LATTICE

    @property
    def share(self) -> float:
        """Fraction of the noise that a ball of radius 0 would save."""
        return self.unit**2 / self.levels.row_square

    def limit(self, radius: float, bits: int) -> int:
        """Return a radius in units of 2^−bits, rounded down."""
        return math.floor(radius * self.unit * 2.0**bits)

    def pays(self, center: FloatArray) -> bool:
        """Return True if levels are better not clipped, by the noisy center of the rows."""
        # With shares p the squared distance of a row's level from them is 1 − 2p_l + ‖p‖², of mean 1 − ‖p‖² and
        # variance 4(Σp³ − ‖p‖⁴); that of a Boolean has mean 1 − m² and variance 4m²(1 − m²). For independent columns
        # the mean plus `_DEVIATIONS` SDs is compared with the squared norm about the public center, and so is the mean.
        reach = variance = norm = 0.0
        for block in self.levels.blocks:
            energy = (self.levels.steps[block.start] / LATTICE) ** 2
            shares = np.clip(center[block.features] / math.sqrt(energy), 0.0, 1.0)
            if block.complete:
                shares = shares / max(float(shares.sum()), 1e-9)
            square = float(shares @ shares)
            reach += (1.0 - square) * energy
            variance += 4.0 * max(float(np.sum(shares**3)) - square**2, 0.0) * energy**2
            norm += (1.0 - 1.0 / max(block.size, 2)) * energy
        for flag in self.levels.flags:
            energy = (self.levels.steps[flag] / LATTICE) ** 2
            square = min(float(center[flag]) ** 2 / energy, 1.0)
            reach += (1.0 - square) * energy
            variance += 4.0 * square * (1.0 - square) * energy**2
            norm += energy
        fills = reach + _DEVIATIONS * math.sqrt(variance) >= _MIN_REACH * norm
        return fills or reach >= _EVEN * norm

    def coordinates(self, radius: float, bits: int) -> LevelCoordinates:
        """Return the coordinates of rows whose numbers are in a ball of this radius about 0."""
        limit = self.limit(radius, bits)
        square = _rounded_up(limit**2, 2 * (bits - LATTICE_BITS))
        steps = list(self.levels.steps)
        for feature in self.features:
            steps[feature] = min(steps[feature], _rounded_up(limit, bits - LATTICE_BITS))
        other = self.levels.other_square - self.square + min(square, self.square)
        return replace(self.levels, steps=tuple(steps), other_square=other)

    def center(self, center: FloatArray) -> FloatArray:
        """Return a center that moves numbers only, shape (d,)."""
        result = np.zeros(len(center))
        result[list(self.features)] = center[list(self.features)]
        return result


def _rounded_up(value: int, bits: int) -> int:
    """Return ⌈value/2^bits⌉."""
    return -(-value >> bits)
