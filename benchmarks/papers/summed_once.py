"""A table whose exact sums are made once, however many mechanisms draw their noise on them."""

from __future__ import annotations

from functools import cache

import numpy as np

import dpmoments as dpm
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.rows import Rows


class SummedOnce:
    """Answers what a plan asks of :class:`Rows` in the unit ball from sums made once a lattice."""

    def __init__(self, table: np.ndarray, neighbors: Neighbors | str = Neighbors.REPLACE_ONE) -> None:
        rows = Rows.of(table, dpm.Schema.unit_ball(table.shape[1]), neighbors=neighbors, threads=1)
        self.n_rows, self.n_features, self.neighbors = len(table), rows.n_features, rows.neighbors
        self.schema = rows.schema
        self._moments = cache(rows.moments)

    def moments(self, **lattice: int) -> ExactMoments:
        """The exact sums, on the lattice 2^−bits where ``bits`` is given."""
        moments: ExactMoments = self._moments(**lattice)
        return moments

    @property
    def gram(self) -> np.ndarray:
        """The Gram matrix in unit-ball units, of rows clipped to the ball."""
        moments = self.moments()
        return moments.gram.astype(np.float64) * moments.scale**2
