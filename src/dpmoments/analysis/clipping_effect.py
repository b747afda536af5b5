"""What moving rows or cells into bounds can have done to coefficients: as far as a release has paid to know."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmoments.analysis.inference import CoefficientInference
from dpmoments.analysis.released import Released
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.values import is_finite_number

__all__ = ["ClippingEffect"]

MANY = 0.25
"""Where more of the rows than this may have been moved, the moments may be far from the table's."""
OF_USE = 3.0
"""A bound of more standard errors says nothing of use."""


@dataclass(frozen=True, eq=False)
class ClippingEffect:
    """How far coefficients can be from those of rows that were not moved.

    Attributes
    ----------
    share : float or None
        Of the rows, that were moved, at most (95 % confidence); None where nothing was paid to know it.
    standard_errors : ndarray of shape (k,) or None
        The largest possible effect on each slope, in its standard errors; None where it is not known.
    """

    share: float | None
    standard_errors: FloatArray | None

    @classmethod
    def of(cls, release: Released, inference: CoefficientInference | None) -> ClippingEffect:
        """The effect on a fit.

        Notes
        -----
        Moving a row u about the centre to f·u, f < 1, takes Σ(1 − f²)uuᵀ ⪰ 0 off the Gram matrix, of trace n·t at most, and n·m
        off the length of the sum; ``adaptive-ball`` releases bounds on both. With E what was taken and b = (−β, 1), coefficients
        move by M_AA⁻¹(E b)_A to first order, and ‖(E b)_x‖ ≤ n(m|b₀| + t‖b_x‖), |(E b)₀| ≤ n·m‖b_x‖.
        """
        found = [
            release.diagnostics.get(name) for name in ("share_beyond_bound", "trace_bias_bound", "mean_bias_bound")
        ]
        if not all(is_finite_number(value) for value in found):
            return cls(None, None)
        share, trace, mean = (float(value) for value in found)  # type: ignore[arg-type]
        if inference is None or not inference.identified:
            return cls(share, None)
        equations, beyond = inference.equations, inference.beyond
        first = 1 if equations.with_constant else 0
        constant = abs(float(beyond[0])) if first else 0.0
        slopes = float(np.linalg.norm(beyond[first:]))
        inverse = np.linalg.inv(equations.gram)[first:]
        reach = np.linalg.norm(inverse[:, first:], axis=1) * (mean * constant + trace * slopes)
        if first:
            reach = reach + np.abs(inverse[:, 0]) * mean * slopes
        units = np.diag(inference.units)[first:]
        effect = np.abs(units) * equations.n_rows * reach
        errors = inference.standard_errors[first:]
        return cls(share, np.where(effect > 0.0, effect / np.maximum(errors, np.finfo(float).tiny), 0.0))

    @property
    def in_words(self) -> str:
        """One sentence."""
        if self.share is None:
            return (
                "Clipping: values beyond the public bounds count as the bounds; how many there were was not measured."
            )
        if self.share > MANY:
            return (
                f"WARNING: up to {self.share:.0%} of the rows were moved into a ball: coefficients and intervals are of the "
                "moved rows, and may be far from the table's (AdaptiveBall(dominant_rows=True) moves none)."
            )
        moved = (
            f"Clipping: at most {self.share:.2%} of the rows were moved into a ball (95 % confidence), which the intervals do "
            "not allow for"
        )
        if self.standard_errors is not None and (largest := float(self.standard_errors.max())) <= OF_USE:
            return f"{moved}: it moved no coefficient by more than {largest:.2g} of its standard errors."
        return (
            f"{moved}: rows keep their direction from the centre, so that it matters where those rows are unlike the others "
            "(AdaptiveBall(dominant_rows=True) moves none)."
        )
