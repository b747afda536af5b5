"""Exact moments of a table's rows, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmoments import Schema
from dpmoments.base.values import FloatArray
from dpmoments.rows.rows import Rows

RARE = 0.03
"""Levels and flags of a smaller standard deviation are left out: those of under one row in a thousand."""


@dataclass(frozen=True, eq=False)
class Moments:
    mean: FloatArray
    covariance: FloatArray

    @classmethod
    def of(cls, data: Any, schema: Schema) -> Moments:
        """The exact moments of the rows of a table."""
        encoding, found = schema.encoding(), Rows.of(data, schema).moments()
        scale = float(found.scale)
        mean = np.array(found.sum, dtype=float) * scale / found.count
        gram = np.array(found.gram, dtype=float) * scale**2 / found.count
        return cls(encoding.decode_mean(mean), encoding.decode_covariance(gram - np.outer(mean, mean)))

    @property
    def deviations(self) -> FloatArray:
        return np.sqrt(np.maximum(np.diag(self.covariance), 0.0))

    @property
    def correlations(self) -> FloatArray:
        """Correlations, shape (d, d); 0 with a feature that no row has."""
        scale = np.outer(self.deviations, self.deviations)
        return np.divide(self.covariance, scale, out=np.eye(len(scale)), where=scale > 0.0)

    def kept(self, places: FloatArray) -> Moments:
        return Moments(self.mean[places], self.covariance[np.ix_(places, places)])
