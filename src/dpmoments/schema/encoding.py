"""Affine map between original units and the unit ball, for values and for moments."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputValueError, shown, wrong_type
from dpmoments.schema.columns import Categorical, Coordinate
from dpmoments.schema.derived import SchemaColumn, stated_columns
from dpmoments.schema.numeric import MAX_BOUND, Numeric


@dataclass(frozen=True, eq=False)
class Encoding:
    """Encoding value = offset + unit · row_norm · x/weight of each feature.

    x is in the unit ball.
    """

    offset: FloatArray  # (d,), value encoded as 0
    unit: FloatArray  # (d,), half-widths of the columns (1 for one-hot features)
    row_norm: float  # B, the bound on the norm of weight · (value − offset)/unit
    # (d,), optional, relative share of the ball (`dpmoments.schema.typical`); None: 1 for every feature
    weight: FloatArray | None = None

    @property
    def scale(self) -> FloatArray:
        """``unit · row_norm/weight``, shape (d,): original units per unit of x."""
        scale = self.unit * self.row_norm
        return scale if self.weight is None else scale / self.weight

    def of_features(self, features: npt.NDArray[np.int64]) -> Encoding:
        """Return the map of some of the features."""
        weight = None if self.weight is None else self.weight[features]
        return Encoding(self.offset[features], self.unit[features], self.row_norm, weight)

    def values_in_ball(self, *values: FloatArray) -> tuple[FloatArray, ...]:
        """Encode one value for each feature, such as bounds: value → x, each of shape (d,)."""
        return tuple((value - self.offset) / self.scale for value in values)

    def decode_mean(self, mean: FloatArray) -> FloatArray:
        """Convert E[x] to E[value], shape (d,)."""
        return self.offset + self.scale * mean

    def decode_covariance(self, covariance: FloatArray) -> FloatArray:
        """Convert Cov(x) to Cov(value), shape (d, d)."""
        return covariance * np.outer(self.scale, self.scale)

    def decode_second_moment(self, second_moment: FloatArray, mean: FloatArray | None) -> FloatArray:
        """Convert E[x xᵀ] to E[value valueᵀ], shape (d, d)."""
        # With offset c and m = scale·E[x]: E[v vᵀ] = c cᵀ + c mᵀ + m cᵀ + scale·E[x xᵀ]·scale. The mean is not needed
        # if c = 0.
        scaled = self.decode_covariance(second_moment)
        if not self.offset.any():
            return scaled
        if mean is None:
            raise InputValueError(
                "the second moment in original units needs the mean, because the encoding is centered"
            )
        cross = np.outer(self.offset, self.scale * mean)
        return np.outer(self.offset, self.offset) + cross + cross.T + scaled

    def encode_cells(self, values: FloatArray, feature: int, out: FloatArray | None = None) -> FloatArray:
        """Compute (value − offset)/unit of a feature, shape (n,)."""
        # In [−1, 1] within bounds, not yet in the ball.
        encoded: FloatArray = np.subtract(values, self.offset[feature], out=out)
        np.divide(encoded, self.unit[feature], out=encoded)
        return encoded

    def scale_into_ball(self, block: FloatArray, first: int = 0) -> None:
        """Multiply encoded values, (n, k), of k features from ``first`` on, by weight/B."""
        # Finite ones stay finite.
        if self.weight is not None:
            block *= self.weight[first : first + block.shape[1]]
        if self.row_norm < 1:
            largest = 2.0**1023 * self.row_norm
            np.clip(block, -largest, largest, out=block)
        if self.row_norm != 1:
            block /= self.row_norm


# The public bound on the norm of an encoded row: what it may be, and whether it is below what the columns allow.

LATTICE = 2**16
"""Level entries of a schema's encoded rows are multiples of 1/LATTICE.

Exact on that lattice and finer ones.
"""


def longest_row_norm(columns: Sequence[SchemaColumn]) -> float:
    """Return a bound on the norm of a row of bounded columns.

    √(number of columns), or slightly more.

    If a column is categorical, it is the next number that makes a level, 1/row_norm, a multiple of 2⁻¹⁶. Rows are later
    rounded to multiples that are as fine or finer: a level rounded up would make some rows longer than the ball, and
    each of their entries dependent on the whole row (``docs/evidence/derivations/exact-sums.md``, section 6).

    >>> from dpmoments import Categorical
    >>> columns = [Numeric("a", 0, 1), Categorical("b", ["x", "y"])]
    >>> longest_row_norm(columns[:1] * 2) == 2**0.5, longest_row_norm(columns) == 2**16 / 46340
    (True, True)
    """
    columns = stated_columns(columns)  # an indicator is 0 unless its column is
    if not any(isinstance(column, Categorical) for column in columns):
        return math.sqrt(len(columns))
    return LATTICE / math.isqrt(LATTICE**2 // len(columns))


def lattice_weights(weights: FloatArray, row_norm: float) -> FloatArray:
    """Round column weights down so that a level is a multiple of 2⁻¹⁶, as it is without weights.

    >>> (lattice_weights(np.array([0.9, 1.1]), longest_row_norm([Numeric("a", 0, 1)])) * 2**16).tolist()
    [58982.0, 72089.0]
    """
    steps = round(LATTICE / row_norm)
    return np.floor(weights * steps) / steps


def checked_row_norm(columns: Sequence[SchemaColumn], row_norm: float | Literal["default"] | None) -> float | None:
    """Return the row-norm bound of these columns; None if unbounded.

    It is at most :func:`longest_row_norm`, the default.

    >>> columns = [Numeric("a", 0, 1), Numeric("b", 0, 1), Numeric("c", 0, 1), Numeric("d", 0, 1)]
    >>> checked_row_norm(columns, "default"), checked_row_norm(columns, 1.5), checked_row_norm(columns, 7)
    (2.0, 1.5, 2.0)
    """
    unbounded = any(isinstance(column, Coordinate) for column in columns)
    if rough := [column.name for column in columns if isinstance(column, Numeric) and column.scale is not None]:
        if unbounded:
            raise InputValueError(
                f"column '{rough[0]}' has a scale, and coordinates have neither bounds nor a scale: give every "
                "column bounds or a scale"
            )
        if row_norm not in ("default", None):
            raise InputValueError(
                f"row_norm={shown(row_norm)} and column '{rough[0]}' has a scale, in place of bounds: nothing "
                "bounds a row, so leave row_norm out"
            )
        return None
    longest = longest_row_norm(columns)
    if row_norm == "default":
        if unbounded:
            raise InputValueError("coordinates have no bounds of their own: give row_norm, or use Schema.unit_ball(d)")
        return longest
    if row_norm is None:
        if not unbounded:
            raise InputValueError("row_norm=None is for coordinates without bounds: bounded columns bound the row")
        return None
    if isinstance(row_norm, bool) or not isinstance(row_norm, int | float | np.integer | np.floating):
        raise wrong_type("row_norm", "a number", row_norm)
    bound = row_norm if isinstance(row_norm, int) else float(row_norm)
    if not 1.0 / MAX_BOUND <= bound <= MAX_BOUND:
        raise InputValueError(
            f"row_norm={shown(bound)}: the bound on a row's norm must be positive and finite, from "
            f"{1.0 / MAX_BOUND:g} to {MAX_BOUND:g}"
        )
    return float(bound) if unbounded else min(float(bound), longest)


def may_be_shortened(columns: Sequence[SchemaColumn], row_norm: float | None) -> bool:
    """Return True if a row within its bounds can exceed the row-norm bound."""
    # It is then scaled down.
    free = any(isinstance(column, Coordinate) for column in columns)
    return row_norm is not None and (free or row_norm < math.sqrt(len(stated_columns(columns))) * (1.0 - 1e-12))
