"""Rows moved into the unit ball before anything else is asked of them, where the schema alone does not keep them there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.arrays import FloatArray
from dpmoments.rows.cells import Missing
from dpmoments.rows.summary import Summary

__all__ = ["InUnitBall", "rows_in_unit_ball"]

Running = TypeVar("Running")
Result = TypeVar("Result")


@dataclass(frozen=True)
class InUnitBall(Summary[Running, Result]):
    """A summary of the rows after :func:`rows_in_unit_ball`: about a centre, too, a long row is the shortened one.

    Attributes
    ----------
    summary : Summary
    missing : {"error", "center", "drop"}
    """

    summary: Summary[Running, Result]
    missing: Missing = "error"

    @property
    def rows_per_task(self) -> int:
        return self.summary.rows_per_task

    def start(self) -> Running:
        return self.summary.start()

    def add(self, running: Running, block: npt.NDArray[Any]) -> None:
        self.summary.add(running, rows_in_unit_ball(block, self.missing))

    def finish(self, running: Running) -> Result:
        return self.summary.finish(running)

    def merge(self, first: Result, second: Result) -> Result:
        return self.summary.merge(first, second)


def rows_in_unit_ball(block: npt.NDArray[Any], missing: Missing) -> FloatArray:
    """A copy whose rows have norm 1 at most, but for rounding; under ``"center"`` a missing cell is 0, else it stays missing.

    Each row of the result is a function of that row alone.

    Examples
    --------
    >>> rows_in_unit_ball(np.array([[0.3, 0.4], [3.0, 4.0], [np.nan, 0.5]]), "center").round(3).tolist()
    [[0.3, 0.4], [0.6, 0.8], [0.0, 0.5]]
    """
    rows: FloatArray = np.array(block, dtype=np.float64, order="C")
    if missing == "center":
        rows[~np.isfinite(rows)] = 0.0
    # Only so long as no square passes what floating point holds.
    peaks = np.maximum(np.abs(rows).max(axis=1, initial=0.0), 1.0)
    scaled = rows / peaks[:, None]
    norms = np.zeros(len(rows))
    for column in scaled.T:  # one addition after the other: a sum along rows depends on how many rows there are
        norms += column * column
    norms = np.sqrt(norms)
    long = norms * peaks > 1.0  # not where a cell is missing
    rows[long] = scaled[long] / norms[long, None]
    return rows
