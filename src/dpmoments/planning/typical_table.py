"""Assumed means and standard deviations for forecasts: public guesses, or marked defaults."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.foundation.values import is_finite_number
from dpmoments.messages.message import Message
from dpmoments.schema.columns import Boolean, Categorical, Coordinate
from dpmoments.schema.derived import DerivedColumn, SchemaColumn
from dpmoments.schema.encoding import Encoding
from dpmoments.schema.numeric import Numeric
from dpmoments.schema.schema import Schema

_DEVIATION_SHARE = 0.1
"""Default SD of a numeric column, as a fraction of its range.

The median of 95 columns of real tables at codebook bounds (the design half of ``benchmarks/practice``) is 0.09, that of
the tables' medians 0.10; a uniform column has 0.29.
"""
_MEAN_SHARE = 0.25
"""Default position of a numeric column's mean in its range (in real tables mostly low)."""
_FLAG_SHARE = 0.25
"""Default share of rows in which a Boolean column is true."""
_DECAY = 1.0
"""Default decay: eigenvalues of the correlations of numeric columns fall as 1/i."""


@dataclass(frozen=True, eq=False)
class TypicalTable:
    """Guessed standard deviation and mean of every feature, never computed from a table."""

    schema: Schema
    standard_deviations: FloatArray  # with `means`: (d,), in original units
    means: FloatArray
    # with `assumed_means`: (d,), true if the standard deviation (the mean) is a default, given neither by the caller
    # nor by the schema's typical range
    assumed: BoolArray
    assumed_means: BoolArray
    shares: BoolArray  # (d,), features that are 0 or 1, whose mean is a share: Boolean columns and levels
    columns: tuple[str, ...]  # the column of each feature
    # eigenvalues of the second moment, given or by default those of the numeric columns, up to a factor
    spectrum: tuple[float, ...]

    @classmethod
    def of(
        cls,
        schema: Schema,
        *,
        typical_sd: Mapping[str, float] | None = None,
        typical_mean: Mapping[str, float] | None = None,
        spectrum: Sequence[float] | None = None,
        decay: float | None = None,
    ) -> TypicalTable:
        """Combine guesses of the caller, typical ranges of the schema, and defaults, in this order."""
        parts = [_defaults(column, schema) for column in schema.columns]
        deviations, means, assumed, shares = (np.concatenate(values) for values in zip(*parts, strict=True))
        columns = tuple(column.name for column in schema.columns for _ in column.feature_names)
        shares, assumed_means = shares.astype(bool), assumed.astype(bool)
        for name, value in _checked(schema, "typical_mean", typical_mean).items():
            index = schema.feature_names.index(name)
            means[index], assumed_means[index] = value, False
            if shares[index]:
                deviations[index], assumed[index] = math.sqrt(value * (1.0 - value)), 0.0
        for name, value in _checked(schema, "typical_sd", typical_sd).items():
            index = schema.feature_names.index(name)
            deviations[index], assumed[index] = value, 0.0
            if shares[index] and name not in (typical_mean or {}):
                assumed_means[index] = False
                means[index] = (1.0 - math.sqrt(max(0.0, 1.0 - 4.0 * value**2))) / 2.0
        falls = _DECAY if decay is None else decay
        numbers = max(1, int((~shares).sum()))
        values = spectrum or [float(index) ** -falls for index in range(1, numbers + 1)]
        for array in (deviations, means):
            array.setflags(write=False)
        spectrum_of_table = tuple(map(float, values))
        return cls(schema, deviations, means, assumed.astype(bool), assumed_means, shares, columns, spectrum_of_table)

    @property
    def words(self) -> str:
        """Assumptions behind the marked numbers, one line; empty if nothing is assumed."""
        if not self.assumed.any():
            return ""
        said = []
        numbers, blocks = self.assumed & ~self.shares, {column.name: column for column in self.schema.columns}
        if any(numbers[index] and not isinstance(blocks[name], Coordinate) for index, name in enumerate(self.columns)):
            said.append("standard deviations of a tenth of the range")
        if any(isinstance(column, Coordinate) for column in self.schema.columns) and numbers.any():
            said.append("coordinates spread evenly over the unit ball")
        if any(self.assumed[index] and isinstance(blocks[name], Boolean) for index, name in enumerate(self.columns)):
            said.append("Boolean columns true in a quarter of the rows")
        if any(
            self.assumed[index] and isinstance(blocks[name], Categorical) for index, name in enumerate(self.columns)
        ):
            said.append("all category shares equally likely")
        return f"~ assumes {', '.join(said)}: give typical_sd, a public guess, for others"

    @cached_property
    def features_of_columns(self) -> Mapping[str, tuple[int, ...]]:
        """Indices of the features of every column, by its name."""
        return {
            name: tuple(index for index, other in enumerate(self.columns) if other == name)
            for name in dict.fromkeys(self.columns)
        }

    @cached_property
    def encoding(self) -> Encoding:
        """Affine map of a release with a mean."""
        return self.schema.encoding(mean=True)

    @cached_property
    def in_unit_ball(self) -> tuple[FloatArray, FloatArray]:
        """Standard deviations and means of the encoded rows."""
        encoding = self.encoding
        return self.standard_deviations / encoding.scale, (self.means - encoding.offset) / encoding.scale

    @cached_property
    def squared_distance(self) -> tuple[float, float]:
        """Mean of ‖x − E x‖² over encoded rows, and its variance over the squared mean."""
        # A gamma distribution. The latter is 2Σλ²/(Σλ)² for normal columns with eigenvalues λ of their second moment,
        # (1 − 2p)²/(p(1 − p)) for a Boolean column true in a share p of the rows, and the mean over equally likely
        # shares for levels.
        return self.squared_distance_of(range(len(self.shares)))

    def squared_distance_of(self, features: Iterable[int]) -> tuple[float, float]:
        """Return :attr:`squared_distance` in some features."""
        chosen = np.zeros(len(self.shares), dtype=bool)
        chosen[list(features)] = True
        deviations, _ = self.in_unit_ball
        squares = np.where(chosen, deviations**2, 0.0)
        of_numbers = float(squares[~self.shares].sum())
        values = np.array(self.spectrum)
        variance = of_numbers**2 * 2.0 * float(np.sum(values**2)) / float(np.sum(values)) ** 2 if values.any() else 0.0
        for indices in self.features_of_columns.values():
            if not self.shares[indices[0]] or not chosen[indices[0]]:
                continue
            whole, levels = float(squares[list(indices)].sum()), len(indices)
            if levels == 1:
                spread = min(float(self.standard_deviations[indices[0]]) ** 2, 0.25)
                variance += whole**2 * (1.0 - 4.0 * spread) / spread if spread > 0.0 else 0.0
            else:
                of_shares = 6.0 / ((levels + 1) * (levels + 2)) - 4.0 / (levels + 1) ** 2
                variance += whole**2 * 4.0 * of_shares * ((levels + 1) / (levels - 1)) ** 2
        total = float(squares.sum())
        return total, variance / total**2 if total > 0.0 else 0.0


def _defaults(column: SchemaColumn, schema: Schema) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return SDs, means, and whether they are defaults and shares, of a column's features."""
    size = len(column.feature_names)
    ones, zeros = np.ones(size), np.zeros(size)
    if isinstance(column, Categorical):
        return ones * math.sqrt((size - 1) / (size * (size + 1))), ones / size, ones, ones
    if isinstance(column, Boolean) or (isinstance(column, DerivedColumn) and column.is_flag):
        return ones * math.sqrt(_FLAG_SHARE * (1.0 - _FLAG_SHARE)), ones * _FLAG_SHARE, ones, ones
    if isinstance(column, Coordinate):
        reach = 1.0 if schema.row_norm is None else schema.row_norm
        return ones * reach / math.sqrt(schema.n_features + 2), zeros, ones, zeros
    if isinstance(column, Numeric) and column.scale is not None:
        return ones * math.sqrt(column.scale[0] * column.scale[1]), ones * (column.center or 0.0), ones, zeros
    lower, upper = column.bounds
    typical = column.typical_within_bounds
    if typical is not None:
        return ones * (typical[1] / 4.0 - typical[0] / 4.0), ones * (typical[0] / 2.0 + typical[1] / 2.0), zeros, zeros
    width = upper - lower
    return ones * _DEVIATION_SHARE * width, ones * (lower + _MEAN_SHARE * width), ones, zeros


def _checked(schema: Schema, what: str, given: Mapping[str, float] | None) -> dict[str, float]:
    """Check the guesses, by feature."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputTypeError(Message("not-a-mapping-of-features", parameter=what))
    names = schema.feature_names
    if unknown := sorted(set(given) - set(names), key=str):
        raise InputValueError(Message("unknown-names-in", parameter=what, names=[*map(str, unknown)], known=names))
    lower, upper = schema.feature_bounds
    for name, value in given.items():
        index = names.index(name)
        least, most = (float(lower[index]), float(upper[index]))
        if what == "typical_mean":
            if not (is_finite_number(value) and least <= value <= most):
                raise InputValueError(
                    Message("not-between-bounds", parameter=what, feature=name, value=value, least=least, most=most)
                )
        elif not (is_finite_number(value) and value > 0.0):
            raise InputValueError(Message("not-positive-of-feature", parameter=what, feature=name, value=value))
        elif value > (most / 2.0 - least / 2.0) * (1.0 + 1e-12):
            raise InputValueError(
                Message(
                    "deviation-above-half-range",
                    parameter=what,
                    feature=name,
                    value=value,
                    half=most / 2.0 - least / 2.0,
                    least=least,
                    most=most,
                )
            )
    return {name: float(value) for name, value in given.items()}
