"""Exact sums of clipped residual products, the query of a regression's refinement."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpmoments.foundation.arrays import FloatArray
from dpmoments.rows.kernel import MomentSummary, RunningMoments
from dpmoments.rows.moments import Moments
from dpmoments.rows.rounding import SlicedMatrix, row_peaks
from dpmoments.rows.summary import Adapted, Missing, plain_rows

SHARE_WEIGHT = 0.2
"""Weight of the last coordinate, the indicator of a clipped row."""
LONGEST = float(np.nextafter(np.sqrt(1.0 + SHARE_WEIGHT**2), np.inf))
"""Largest length of a row's coordinates, in clips."""


@dataclass(frozen=True, eq=False)
class ClippedProducts(Adapted["RunningMoments", Moments]):
    """Sums of clip_C(r a), with a = (1, L(x − center)) and r = t(x − center) − constant.

    One coordinate follows: ``SHARE_WEIGHT``·C if ‖r a‖ > C, else 0. A row's coordinates are a function of its own values,
    to the last bit; a dropped row has none.

    Attributes
    ----------
    linear : SlicedMatrix
        The rows of L, then t.
    center : ndarray of shape (d,)
    constant : float
    clip : float
        C.
    missing : str
        Rule for values that are not finite.
    """

    linear: SlicedMatrix
    center: FloatArray
    constant: float
    clip: float
    missing: Missing = "error"

    @classmethod
    def of(
        cls, linear: FloatArray, center: FloatArray, constant: float, clip: float, bits: int, missing: Missing
    ) -> ClippedProducts:
        """Return the summary; the lattice is ``LONGEST`` · C · 2^−bits."""
        # Products of finite numbers are finite; if they ever were not, the row would have no term.
        moments = MomentSummary(len(linear) + 1, bits, LONGEST * clip, missing="center")
        return cls(moments, SlicedMatrix.of(linear), center, constant, clip, missing)

    def add(self, running: RunningMoments, block: NDArray[Any]) -> None:
        """Add the products of a batch's kept rows."""
        step = max(self.rows_per_task, 1)
        for start in range(0, len(block), step):
            self.summary.add(running, self.products(block[start : start + step]))

    def products(self, block: NDArray[Any]) -> FloatArray:
        """Return the coordinates of the kept rows before rounding, shape (n, k + 2)."""
        values = plain_rows(block, self.missing)
        values -= self.center
        image, exponents = self.linear.image(values, row_peaks(values))
        image = np.ldexp(image, exponents[:, None])
        residuals, k = image[:, -1] - self.constant, image.shape[1] - 1
        result = np.empty((len(image), k + 2))
        result[:, 0] = residuals
        np.multiply(image[:, :-1], residuals[:, None], out=result[:, 1 : k + 1])
        squares = np.zeros(len(image))
        for column in result[:, : k + 1].T:  # one after the other: a sum along rows depends on how many rows there are
            squares += column * column
        clipped = squares > self.clip * self.clip
        result[clipped, : k + 1] *= (self.clip / np.sqrt(squares[clipped]))[:, None]
        result[:, k + 1] = np.where(clipped, SHARE_WEIGHT * self.clip, 0.0)
        return result
