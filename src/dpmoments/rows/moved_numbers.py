"""Rows with some features clipped to a ball, while the others stay as they are.

The moved features are rounded to the lattice that the sums use, and their norm is checked there in whole numbers: the sums round
them again, which changes nothing (``docs/evidence/derivations/exact-sums.md``, section 8).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.arrays import FloatArray
from dpmoments.rows.rounding import RowMap, RowRounder
from dpmoments.rows.summary import Missing, Summary

Running = TypeVar("Running")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False)
class MovedNumbers(Summary[Running, Result]):
    """Summary of rows whose chosen features are taken about a center and clipped to a ball.

    Attributes
    ----------
    summary : Summary
        Of rows on the lattice of spacing 2^−bits.
    features : tuple of int
    center : ndarray of shape (number of features,)
        Their center, from public numbers and noisy answers.
    limit : int
        Radius of the ball, in units of 2^−bits.
    bits : int
    missing : {"error", "center", "drop"}
        Rule for rows with a missing value, which the summary applies.
    """

    summary: Summary[Running, Result]
    features: tuple[int, ...]
    center: FloatArray
    limit: int
    bits: int
    missing: Missing

    @property
    def rows_per_task(self) -> int:
        return self.summary.rows_per_task

    def start(self) -> Running:
        return self.summary.start()

    def add(self, running: Running, block: npt.NDArray[Any]) -> None:
        self.summary.add(running, self.moved(block))

    def finish(self, running: Running) -> Result:
        return self.summary.finish(running)

    def merge(self, first: Result, second: Result) -> Result:
        return self.summary.merge(first, second)

    def moved(self, block: npt.NDArray[Any]) -> FloatArray:
        """Return a copy of the rows; each depends on that row only.

        >>> from dpmoments.rows.kernel import MomentSummary
        >>> moved = MovedNumbers(MomentSummary(3, bits=4), (1, 2), np.array([0.5, 0.0]), 8, 4, "drop")
        >>> moved.moved(np.array([[0.25, 0.5, 0.25], [0.25, 0.5, -1.0], [0.25, np.nan, 0.0]]))
        array([[ 0.25  ,  0.    ,  0.25  ],
               [ 0.25  ,  0.    , -0.4375],
               [ 0.25  ,     nan,     nan]])
        """
        rows: FloatArray = np.array(block, dtype=np.float64, order="C")
        chosen = list(self.features)
        missing = ~np.isfinite(rows[:, chosen])
        row_map = RowMap.of(
            len(chosen), bits=self.bits, radius=1.0, center=self.center, linear=None, missing="center", limit=self.limit
        )
        rounded = RowRounder(row_map, max(len(rows), 1)).round(np.ascontiguousarray(rows[:, chosen])).rows
        rows[:, chosen] = rounded * 2.0**-self.bits
        if self.missing != "center":
            rows[np.ix_(np.flatnonzero(missing.any(axis=1)), np.array(chosen))] = np.nan
        return rows
