"""The affine map between a table's units and the unit ball, on cells and on moments."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.arrays import FloatArray

__all__ = ["Encoding"]


@dataclass(frozen=True, eq=False)
class Encoding:
    """value = offset + unit · row_norm · x/weight, feature by feature, x in the unit ball.

    Attributes
    ----------
    offset : ndarray of shape (d,)
        The table value that maps to 0.
    unit : ndarray of shape (d,)
        Half-widths of the columns (1 for one-hot features).
    row_norm : float
        B, the bound on the norm of weight · (value − offset)/unit.
    weight : ndarray of shape (d,), optional
        How much of the ball a feature gets (:mod:`dpmoments.schema.typical`); None: all alike, 1.
    """

    offset: FloatArray
    unit: FloatArray
    row_norm: float
    weight: FloatArray | None = None

    @property
    def scale(self) -> FloatArray:
        """unit · row_norm/weight, shape (d,): the table's units in one unit of x."""
        scale = self.unit * self.row_norm
        return scale if self.weight is None else scale / self.weight

    def of_features(self, places: npt.NDArray[np.int64]) -> Encoding:
        """The same map of some of the features alone."""
        weight = None if self.weight is None else self.weight[places]
        return Encoding(self.offset[places], self.unit[places], self.row_norm, weight)

    def values_in_ball(self, *values: FloatArray) -> tuple[FloatArray, ...]:
        """Values of every feature, as bounds are, in the unit ball: value → x, each of shape (d,)."""
        return tuple((value - self.offset) / self.scale for value in values)

    def decode_mean(self, mean: FloatArray) -> FloatArray:
        """E[x] → E[value], shape (d,)."""
        return self.offset + self.scale * mean

    def decode_covariance(self, covariance: FloatArray) -> FloatArray:
        """Cov(x) → Cov(value), shape (d, d)."""
        return covariance * np.outer(self.scale, self.scale)

    def decode_second_moment(self, second_moment: FloatArray, mean: FloatArray | None) -> FloatArray:
        """E[x xᵀ] → E[value valueᵀ], shape (d, d).

        With c the offset and m = scale·E[x]: E[v vᵀ] = c cᵀ + c mᵀ + m cᵀ + scale·E[x xᵀ]·scale. The mean is not needed
        where the offset is zero.
        """
        scaled = self.decode_covariance(second_moment)
        if not self.offset.any():
            return scaled
        if mean is None:
            raise ValueError("the second moment in the table's units needs the mean: the encoding is centred")
        cross = np.outer(self.offset, self.scale * mean)
        return np.outer(self.offset, self.offset) + cross + cross.T + scaled

    def encode_cells(self, values: FloatArray, feature: int, out: FloatArray | None = None) -> FloatArray:
        """(value − offset)/unit of one feature's cells, shape (n,): in [−1, 1] inside the bounds, not yet in the ball."""
        encoded: FloatArray = np.subtract(values, self.offset[feature], out=out)
        np.divide(encoded, self.unit[feature], out=encoded)
        return encoded

    def scale_into_ball(self, block: FloatArray, first: int = 0) -> None:
        """Multiply encoded cells, shape (n, k), of k features from ``first`` on, by weight/B; what is finite stays so."""
        if self.weight is not None:
            block *= self.weight[first : first + block.shape[1]]
        if self.row_norm < 1:
            largest = 2.0**1023 * self.row_norm
            np.clip(block, -largest, largest, out=block)
        if self.row_norm != 1:
            block /= self.row_norm
