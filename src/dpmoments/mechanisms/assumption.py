"""What a forecast assumes of a table, where the error of a mechanism depends on it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.mechanisms.assumed_table import AssumedTable
from dpmoments.schema.schema import Schema

__all__ = ["Assumption"]

DECAY = 1.0
"""Eigenvalues fall as 1/i unless told otherwise: as they do, roughly, in tables of standardised columns."""
MEAN_SQUARE_NORM = 0.5
"""Assumed mean of ‖x‖² where columns have bounds, which the cells of few tables reach; 1 for rows given in the unit ball."""


@dataclass(frozen=True, slots=True)
class Assumption:
    """What a forecast assumes of a table, for the mechanisms whose error depends on it.

    Attributes
    ----------
    spectrum : tuple of float
        Eigenvalues of the second moment E[x xᵀ] of the encoded rows, in descending order; the mean is taken to be 0.
    units : tuple of float or None
        Where columns give rough scales in place of bounds: the standard deviation assumed for every encoded feature (the
        geometric middle of its range), in which ``spectrum`` and errors are measured.
    words : str
        The same, for people.
    """

    spectrum: tuple[float, ...]
    units: tuple[float, ...] | None
    words: str

    @classmethod
    def of(
        cls, schema: Schema, *, mean: bool = True, spectrum: Sequence[float] | None = None, decay: float | None = None
    ) -> Assumption:
        """The assumption for a schema: that of the caller, or the default.

        Raises
        ------
        ValueError
            If the spectrum has another length than the encoded rows, a value that no eigenvalue of a second moment can have, or
            more variance than rows in the unit ball can have; or if both a spectrum and a decay are given.

        Examples
        --------
        >>> print(Assumption.of(Schema.unit_ball(3)).words)
        normal rows, eigenvalues of their second moment as 1/i with sum 1
        """
        d, rough = schema.n_features, schema.rough_scale(mean=mean)
        units = (
            None
            if rough is None
            else tuple(math.sqrt(low * high) for low, high in zip(rough.least, rough.largest, strict=True))
        )
        if spectrum is not None and decay is not None:
            raise ValueError("give spectrum or decay, not both: a spectrum leaves nothing for the decay to say")
        if spectrum is not None:
            values = sorted((float(value) for value in spectrum), reverse=True)
            _check_spectrum(values, d, bounded=schema.row_norm is not None)
            return cls(
                tuple(values), units, f"normal rows, eigenvalues of their second moment {_few(values)}, as given"
            )
        if decay is not None and not 0.0 <= decay < math.inf:
            raise ValueError(f"decay={decay!r}: eigenvalues fall as i^−decay, which must be finite and not negative")
        if schema.row_norm is None and decay is None:
            return cls((1.0,) * d, units, "normal rows, standard deviations in the middle of their ranges")
        power = DECAY if decay is None else decay
        weights = [float(place) ** -power for place in range(1, d + 1)]
        total = float(d) if schema.row_norm is None else 1.0 if schema.is_coordinates else MEAN_SQUARE_NORM
        scale = total / math.fsum(weights)
        falls = "1/i" if power == 1.0 else f"i^−{power:g}"
        words = f"normal rows, eigenvalues of their second moment as {falls} with sum {total:g}"
        return cls(tuple(scale * weight for weight in weights), units, words)

    def table(self, n_rows: int) -> AssumedTable:
        """The table of that many rows."""
        return AssumedTable(n_rows, np.array(self.spectrum), None if self.units is None else np.array(self.units))


def _check_spectrum(values: Sequence[float], n_features: int, *, bounded: bool) -> None:
    if len(values) != n_features:
        raise ValueError(
            f"the spectrum has {len(values)} eigenvalues and the encoded rows {n_features} features: give one for each "
            "(a categorical column has one feature a level)"
        )
    if not all(0.0 <= value < math.inf for value in values):
        raise ValueError(
            "the spectrum holds a value that is negative or not finite: a second moment has no such eigenvalue"
        )
    if bounded and math.fsum(values) > 1.0 + 1e-9:
        raise ValueError(
            f"the spectrum sums to {math.fsum(values):g}: eigenvalues of E[x xᵀ] sum to the mean of ‖x‖², which is at most 1 "
            "for rows in the unit ball"
        )


def _few(values: Sequence[float]) -> str:
    first = ", ".join(f"{value:.2g}" for value in values[:3])
    return first if len(values) <= 3 else f"{first}, …"
