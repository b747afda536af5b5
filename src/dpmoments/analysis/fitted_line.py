"""The answer of every regression: coefficients and what they explain, predictions, and the names that statsmodels gives them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmoments.analysis.answers import in_floating_point
from dpmoments.analysis.confidence import confidence_level
from dpmoments.analysis.frames import named_values
from dpmoments.analysis.predictions import Predictions
from dpmoments.analysis.regression_results import CoefficientTable
from dpmoments.foundation.arrays import FloatArray
from dpmoments.schema.schema import Schema

__all__ = ["FittedLine"]


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FittedLine(CoefficientTable):
    """A linear regression computed from a release.

    Attributes
    ----------
    schema : Schema
        Of the release: what frames are read by.
    """

    schema: Schema

    def predict(self, frame: Any) -> FloatArray:
        """Predictions for the rows of a frame, (m,), read by column name; NaN where a cell is empty.

        Raises
        ------
        ValueError, TypeError
            If a column is absent, holds levels that the schema does not list, or the frame is none.
        """
        values = named_values(self.schema, frame, self.features)
        return np.asarray(values @ self.coefficients + self.intercept, dtype=np.float64)

    @in_floating_point
    def prediction_intervals(self, frame: Any, level: float | None = None) -> Predictions:
        """Predictions with confidence intervals of the line, and intervals in which new rows lie.

        Raises
        ------
        ValueError
            As :meth:`predict`; also for a fit that a penalty shrank, or that noise does not let be identified.
        """
        level = self.level if level is None else confidence_level(level)
        inference = self.inference
        if inference is None or not inference.identified or self.method != "least squares":
            why = "a penalty shrank it" if self.method != "least squares" else "noise does not let it be identified"
            raise ValueError(
                f"this fit has no prediction intervals, since {why}: use ols(), with fewer features or more rows"
            )
        values = named_values(self.schema, frame, self.features)
        rows = np.column_stack([np.ones(len(values)), values]) if self.with_intercept else values
        return Predictions.of(rows, inference, self.predict(frame), level)

    @property
    def params(self) -> Any:
        """Coefficients with the intercept first, as a pandas Series (statsmodels' name)."""
        return self._series(
            np.concatenate([[self.intercept], self.coefficients]) if self.with_intercept else self.coefficients
        )

    @property
    def bse(self) -> Any:
        """Standard errors of ``params``."""
        return self._series(self._errors("standard_errors"))

    @property
    def pvalues(self) -> Any:
        """p-values of ``params``."""
        return self._series(self._errors("p_values"))

    @property
    def rsquared(self) -> float:
        """``r_squared``."""
        return self.r_squared

    @property
    def rsquared_adj(self) -> float:
        """``adjusted_r_squared``."""
        return self.adjusted_r_squared

    @property
    def nobs(self) -> int:
        """``n_rows``."""
        return self.n_rows

    def _series(self, values: FloatArray) -> Any:
        import pandas as pd

        return pd.Series(values, index=list(self.names))
