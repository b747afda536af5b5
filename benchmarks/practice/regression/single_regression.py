"""One regression as a method sees it that spends all its budget on it: rows of norm 1 at most, a target within −1 and 1."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

import dpmoments as dpm
from benchmarks.practice.regression.excess_risk import Regression
from dpmoments.rows.rows import Rows
from dpmoments.rows.sources.source import LocalSource
from dpmoments.schema.columns import Coordinate

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class SingleRegression:
    """min ‖Xw − y‖², every row of X of norm at most 1, every |y| at most 1.

    Attributes
    ----------
    rows : ndarray of shape (n, k)
        X: the features of all other columns about the midpoints of their bounds (a column spans −1 to 1, a category is a block of
        norm 1) and a constant for the intercept, over the largest norm that public bounds allow.
    target : ndarray of shape (n,)
        y, about the midpoint of its bounds, in its half-width.
    line_units : ndarray of shape (k,)
        A line of a release in encoded units is these times w: slopes, then the constant.
    """

    rows: FloatArray
    target: FloatArray
    line_units: FloatArray

    @classmethod
    def of(cls, data: Any, schema: dpm.Schema, target: str) -> SingleRegression:
        """From a table; rows that the schema drops are left out.

        Rows of a schema of the unit ball have norm 1 at most, without the constant.
        """
        source = Rows.of(data, schema, mean=True).source
        if not isinstance(source, LocalSource):
            raise TypeError("the table must be one that is read on this machine")
        encoded = np.concatenate(list(source.blocks()))
        encoded = encoded[np.isfinite(encoded).all(axis=1)]
        names = list(schema.feature_names)
        y = names.index(target)
        own = next(column.feature_names for column in schema.columns if target in column.feature_names)
        features = [index for index, name in enumerate(names) if name not in own]
        encoding = schema.encoding(mean=True)
        scale = encoding.scale / encoding.unit
        squares = 1 if isinstance(schema.columns[0], Coordinate) else len(schema.columns) - 1
        norm = float(np.sqrt(squares + 1))
        rows = np.column_stack([encoded[:, features] * scale[features], np.ones(len(encoded))]) / norm
        units = np.append(scale[features], 1.0) / (norm * scale[y])
        return cls(np.ascontiguousarray(rows), encoded[:, y] * scale[y], units)

    @property
    def n_rows(self) -> int:
        return len(self.rows)

    @property
    def n_coefficients(self) -> int:
        return self.rows.shape[1]

    def moments(self) -> tuple[FloatArray, FloatArray]:
        return self.rows.T @ self.rows, self.rows.T @ self.target

    def excess(self, weights: FloatArray, truth: Regression) -> float:
        """Excess risk of the line of those weights, shape (k,), in ``truth``'s terms."""
        line = weights * self.line_units
        return truth.excess(line[:-1], float(line[-1]))
