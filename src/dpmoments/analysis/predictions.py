"""Predictions with intervals."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from dpmoments.analysis.answers import TableAnswer, finite_or_none, number
from dpmoments.analysis.inference import CoefficientInference
from dpmoments.foundation.arrays import FloatArray

__all__ = ["Predictions"]

SHOWN_ROWS = 20


@dataclass(frozen=True, eq=False, repr=False)
class Predictions(TableAnswer):
    """Predictions for rows, with confidence intervals of the line there and intervals in which new rows lie.

    Attributes
    ----------
    prediction : ndarray of shape (m,)
    mean : ndarray of shape (m, 2)
        Confidence interval of the population's line.
    value : ndarray of shape (m, 2)
        Where a new row's target lies, for normal residuals of one variance: of that, what noise lets it be at most.
    level : float
    """

    prediction: FloatArray
    mean: FloatArray
    value: FloatArray
    level: float

    @classmethod
    def of(cls, rows: FloatArray, inference: CoefficientInference, prediction: FloatArray, level: float) -> Predictions:
        """For rows in the table's units, the constant first where there is one, shape (m, k)."""
        covariance = inference.privacy_covariance + inference.sampling_covariance
        variance = np.maximum(np.einsum("ij,jk,ik->i", rows, covariance, rows), 0.0)
        quantile = float(scipy.special.stdtrit(inference.degrees_of_freedom, 0.5 + 0.5 * level))
        of_residual = inference.residual_deviation(0.5 + 0.5 * level) ** 2
        reaches = [quantile * np.sqrt(variance), quantile * np.sqrt(variance + of_residual)]
        mean, value = (np.column_stack([prediction - reach, prediction + reach]) for reach in reaches)
        return cls(prediction, mean, value, level)

    def columns(self) -> dict[str, list[Any]]:
        """Columns for frames."""
        return {
            "prediction": self.prediction.tolist(),
            "mean_lower": self.mean[:, 0].tolist(),
            "mean_upper": self.mean[:, 1].tolist(),
            "lower": self.value[:, 0].tolist(),
            "upper": self.value[:, 1].tolist(),
        }

    def table(self) -> list[tuple[str, ...]]:
        """Rows of text, the head first; the first twenty."""
        rows = list(zip(*self.columns().values(), strict=True))[:SHOWN_ROWS]
        return [("row", *self.columns()), *((str(place), *map(number, row)) for place, row in enumerate(rows))]

    @property
    def remarks(self) -> tuple[str, ...]:
        return (f"… {len(self.prediction) - SHOWN_ROWS} more rows",) if len(self.prediction) > SHOWN_ROWS else ()

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds them."""
        return {"level": self.level} | {
            name: finite_or_none(np.asarray(values)) for name, values in self.columns().items()
        }
