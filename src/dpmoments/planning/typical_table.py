"""Typical rows: a public table with assumed means and standard deviations.

The caller gives them, or they are marked defaults.
Values lie within their bounds and are moderately correlated; nothing here is computed from a table or drawn at random twice.
"""

from __future__ import annotations

import math
import operator
import zlib
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np
import scipy

from dpmoments.foundation.arrays import BoolArray, FloatArray, IntegerArray
from dpmoments.foundation.errors import InputTypeError, InputValueError, listed, shown
from dpmoments.foundation.values import is_finite_number
from dpmoments.schema.columns import Boolean, Categorical, Column, Coordinate
from dpmoments.schema.derived import DerivedColumn, MissingIndicator, SchemaColumn
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
_COMMON = 0.25
"""Squared loading of columns on a common factor: about the correlation of two of numbers."""
_DISTINCT_ROWS = 1024
_LEAST_SPREAD, _AS_NORMAL = 0.02, 1e5
"""Sums of beta parameters: below the first a column has only its bounds, above it is normal."""
_DIGITS = 9
"""Digits to which columns of one shape share their values."""
_Guesses = tuple[tuple[str, float], ...]


@dataclass(frozen=True, eq=False)
class TypicalTable:
    """Guessed standard deviation and mean of every feature, and rows that have them."""

    schema: Schema
    standard_deviations: FloatArray  # with `means`: (d,), in original units
    means: FloatArray
    # with `assumed_means`: (d,), true if the standard deviation (the mean) is a default, given neither by the caller
    # nor by the schema's typical range
    assumed: BoolArray
    assumed_means: BoolArray
    shares: BoolArray  # (d,), features that are 0 or 1, whose mean is a share: Boolean columns and levels
    columns: tuple[str, ...]  # the column of each feature

    @classmethod
    def of(
        cls,
        schema: Schema,
        *,
        typical_sd: Mapping[str, float] | None = None,
        typical_mean: Mapping[str, float] | None = None,
    ) -> TypicalTable:
        """Combine guesses of the caller, typical ranges of the schema, and defaults, in this order."""
        means, deviations = (
            tuple(sorted(_checked(schema, what, given).items()))
            for what, given in (("typical_mean", typical_mean), ("typical_sd", typical_sd))
        )
        return cls._of(schema, deviations, means)

    @classmethod
    @lru_cache(maxsize=16)
    def _of(cls, schema: Schema, typical_sd: _Guesses, typical_mean: _Guesses) -> TypicalTable:
        parts = [_defaults(column, schema) for column in schema.columns]
        deviations, means, assumed, shares = (np.concatenate(values) for values in zip(*parts, strict=True))
        columns = tuple(column.name for column in schema.columns for _ in column.feature_names)
        shares, assumed_means = shares.astype(bool), assumed.astype(bool)
        for name, value in typical_mean:
            index = schema.feature_names.index(name)
            means[index], assumed_means[index] = value, False
            if shares[index]:
                deviations[index], assumed[index] = math.sqrt(value * (1.0 - value)), 0.0
        for name, value in typical_sd:
            index = schema.feature_names.index(name)
            deviations[index], assumed[index] = value, 0.0
            if shares[index] and name not in dict(typical_mean):
                assumed_means[index] = False
                means[index] = (1.0 - math.sqrt(max(0.0, 1.0 - 4.0 * value**2))) / 2.0
        for column, features in schema.columns_with_slices:
            if isinstance(column, Categorical) and (rest := assumed_means[features]).any():  # the shares that are left
                means[features][rest] = max(1.0 - float(means[features][~rest].sum()), 0.0) / rest.sum()
        return cls(schema, deviations, means, assumed.astype(bool), assumed_means, shares, columns)._as_possible()

    def _as_possible(self) -> TypicalTable:
        """Return the table with the moments of its rows.

        Guesses may be impossible within bounds, or not add up to 1.
        """
        values = self.values(_DISTINCT_ROWS)
        return replace(self, standard_deviations=values.std(axis=0), means=values.mean(axis=0))

    def for_schema(self, schema: Schema) -> TypicalTable:
        """Return the same guesses for a schema of some of the columns.

        Their bounds, rules, and derived features may be others.
        """
        result, names = TypicalTable.of(schema), self.schema.feature_names
        known = [(index, names.index(name)) for index, name in enumerate(schema.feature_names) if name in names]
        here, there = (list(side) for side in zip(*known, strict=True))
        arrays = {}
        for name in ("standard_deviations", "means", "assumed", "assumed_means"):
            arrays[name] = getattr(result, name).copy()
            arrays[name][here] = getattr(self, name)[there]
        return replace(result, **arrays)._as_possible()

    @property
    def words(self) -> str:
        """Assumptions behind the marked numbers, one line; empty if nothing is assumed."""
        if not self.assumed.any():
            return ""
        blocks = {column.name: column for column in self.schema.columns}
        guessed = [blocks[name] for name, assumed in zip(self.columns, self.assumed, strict=True) if assumed]
        numbers = [column for column, share in zip(guessed, self.shares[self.assumed], strict=True) if not share]
        scaled = [isinstance(column, Numeric) and column.scale is not None for column in numbers]
        coordinates = [isinstance(column, Coordinate) for column in numbers]
        of_ball = any(isinstance(column, Coordinate) for column in self.schema.columns)
        said = {
            "standard deviations of a tenth of the range": not all(map(operator.or_, scaled, coordinates)),
            "standard deviations in the middle of their scale ranges": any(scaled),
            "coordinates spread evenly over the unit ball": of_ball and bool(numbers),
            "Boolean columns true in a quarter of the rows": any(isinstance(column, Boolean) for column in guessed),
            "all levels equally frequent": any(isinstance(column, Categorical) for column in guessed),
        }
        assumed = ", ".join(words for words, is_so in said.items() if is_so)
        return f"~ assumes {assumed}: give typical_sd, a public guess, for others"

    @cached_property
    def features_of_columns(self) -> Mapping[str, tuple[int, ...]]:
        """Indices of the features of every column, by its name."""
        return {
            name: tuple(index for index, other in enumerate(self.columns) if other == name)
            for name in dict.fromkeys(self.columns)
        }

    @lru_cache(maxsize=16)  # noqa: B019 - tables are few and immutable
    def encoded(self, n_rows: int, *, mean: bool) -> FloatArray:
        """Return typical rows, encoded as for a release, without missing values; at most 1,024."""
        drawn, values = self.schema.with_indicators, self.values(min(n_rows, _DISTINCT_ROWS))
        encoding, block = drawn.encoding(mean=mean), np.zeros((len(values), drawn.n_features))
        block[:, : values.shape[1]] = values
        for feature in range(drawn.n_features):
            block[:, feature] = encoding.encode_cells(block[:, feature].copy(), feature)
        encoding.scale_into_ball(block)
        return block

    @lru_cache(maxsize=64)  # noqa: B019
    def moments(self, n_rows: int) -> tuple[FloatArray, FloatArray]:
        """Return means and covariance, in original units, of ``n_rows`` typical rows."""
        values = self.values(min(n_rows, _DISTINCT_ROWS))
        times, rest = divmod(n_rows, len(values))
        weights = (times + (np.arange(len(values)) < rest)) / n_rows
        mean = weights @ values
        centered = values - mean
        return mean, centered.T @ (centered * weights[:, None])

    @lru_cache(maxsize=16)  # noqa: B019
    def values(self, n_rows: int) -> FloatArray:
        """Return typical rows in original units, shape (n_rows, d)."""
        result = np.empty((n_rows, len(self.columns)))
        by_column: dict[str, FloatArray] = {}
        blocks = {column.name: column for column in self.schema.columns}
        if coordinates := [at for at, name in enumerate(self.columns) if isinstance(blocks[name], Coordinate)]:
            # spread evenly over a ball in which each coordinate has standard deviation 1
            d = len(coordinates)
            rows = np.random.default_rng(d).standard_normal((n_rows, d))
            lengths = scipy.special.ndtr(np.random.default_rng(d + 1).standard_normal(n_rows)) ** (1.0 / d)
            rows *= (math.sqrt(d + 2.0) * lengths / np.linalg.norm(rows, axis=1))[:, None]
            result[:, coordinates] = self.means[coordinates] + rows * self.standard_deviations[coordinates]
        for column in sorted(self.schema.columns, key=lambda column: isinstance(column, DerivedColumn)):
            own = list(self.features_of_columns[column.name])
            if isinstance(column, DerivedColumn):
                result[:, own] = column.values([by_column[factor.name] for factor in column.factors])
            elif not isinstance(column, Coordinate | MissingIndicator):
                result[:, own] = _values(column, self.means[own], self.standard_deviations[own], n_rows)
            by_column[column.name] = result[:, own]
        return result


def _values(column: Column, means: FloatArray, deviations: FloatArray, n_rows: int) -> FloatArray:
    """Return a column's values with these means and standard deviations, shape (n_rows, k)."""
    places = _places(column.name, n_rows)
    if isinstance(column, Categorical):
        ends = np.cumsum(means / means.sum()) if means.sum() > 0.0 else np.linspace(0.0, 1.0, len(means) + 1)[1:]
        levels = np.minimum(np.searchsorted(ends, (places + 0.5) / n_rows), len(means) - 1)
        return np.eye(len(means))[levels]
    mean, deviation = float(means[0]), float(deviations[0])
    if isinstance(column, Boolean):
        least = min(1, n_rows - 1) if 0.0 < mean < 1.0 else 0
        trues = min(max(round(mean * n_rows), least), n_rows - least)
        return (places >= n_rows - trues).astype(float)[:, None]
    if isinstance(column, Numeric) and column.scale is not None:
        return (mean + deviation * _standard(0.5, math.inf, n_rows)[places])[:, None]
    assert not isinstance(column, Coordinate), "coordinates are spread over their ball together"
    lower, upper = column.bounds
    width = upper - lower
    center, share = round((mean - lower) / width, _DIGITS), round(deviation / width, _DIGITS)
    if center * (1.0 - center) <= share**2:  # no such mean with that standard deviation
        center = (1.0 - math.sqrt(max(0.0, 1.0 - 4.0 * share**2))) / 2.0
    both = center * (1.0 - center) / share**2 - 1.0 if share else math.inf
    standard = _standard(center, max(both, _LEAST_SPREAD), n_rows)
    return np.clip(lower + width * center + deviation * standard[places], lower, upper)[:, None]


@lru_cache(maxsize=64)
def _standard(center: float, both: float, n_rows: int) -> FloatArray:
    """Return ordered values of a standardized beta distribution, normal for large ``both``."""
    at = (np.arange(n_rows) + 0.5) / n_rows
    normal = both > _AS_NORMAL
    values = scipy.special.ndtri(at) if normal else scipy.special.betaincinv(center * both, (1.0 - center) * both, at)
    values = values - values.mean()
    spread = float(values.std())
    return np.asarray(values / spread if spread > 0.0 else values)


@lru_cache(maxsize=1024)
def _places(name: str, n_rows: int) -> IntegerArray:
    """Return the rank of each row in a column; columns have a common factor."""
    seeds = (zlib.crc32(text.encode()) for text in (f"column {name}", "common"))
    own, common = (np.random.default_rng(seed).standard_normal(n_rows) for seed in seeds)
    order = np.argsort(math.sqrt(1.0 - _COMMON) * own + math.sqrt(_COMMON) * common, kind="stable")
    result = np.empty(n_rows, dtype=np.int64)
    result[order] = np.arange(n_rows)
    return result


def _defaults(column: SchemaColumn, schema: Schema) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
    """Return SDs, means, and whether they are defaults and shares, of a column's features."""
    size = len(column.feature_names)
    ones, zeros = np.ones(size), np.zeros(size)
    if isinstance(column, Categorical):
        return ones * math.sqrt((size - 1) / size**2), ones / size, ones, ones
    if isinstance(column, DerivedColumn):  # as its columns
        return ones, zeros, ones, ones * column.is_flag
    if isinstance(column, Boolean):
        return ones * math.sqrt(_FLAG_SHARE * (1.0 - _FLAG_SHARE)), ones * _FLAG_SHARE, ones, ones
    if isinstance(column, Coordinate):
        reach = 1.0 if schema.row_norm is None else schema.row_norm
        return ones * reach / math.sqrt(schema.n_features + 2), zeros, ones, zeros
    if isinstance(column, Numeric) and column.scale is not None:
        return ones * math.sqrt(column.scale[0] * column.scale[1]), ones * (column.center or 0.0), ones, zeros
    lower, upper = column.bounds
    typical = None if isinstance(column, MissingIndicator) else column.typical_within_bounds
    if typical is not None:
        return ones * (typical[1] / 4.0 - typical[0] / 4.0), ones * (typical[0] / 2.0 + typical[1] / 2.0), zeros, zeros
    width = upper - lower
    return ones * _DEVIATION_SHARE * width, ones * (lower + _MEAN_SHARE * width), ones, zeros


def _checked(schema: Schema, what: str, given: Mapping[str, float] | None) -> dict[str, float]:
    """Check the guesses, by feature."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputTypeError(f"{what} is a mapping of features to numbers, as in {what}={{'age': 18}}")
    names, known = schema.feature_names, schema.without_derived.feature_names  # the others follow from them
    if unknown := sorted(set(given) - set(known), key=str):
        raise InputValueError(f"{what} names {listed([*map(str, unknown)])}: use {listed(known)}")
    lower, upper = schema.feature_bounds
    for name, value in given.items():
        index = names.index(name)
        least, most = (float(lower[index]), float(upper[index]))
        if what == "typical_mean":
            if not (is_finite_number(value) and least <= value <= most):
                raise InputValueError(
                    f"{what} of {shown(name)}: {shown(value)} must be a number between {least:g} and {most:g}, the "
                    "feature's bounds"
                )
        elif not (is_finite_number(value) and value > 0.0):
            raise InputValueError(f"{what} of {shown(name)}: {shown(value)} must be a positive finite number")
        elif value > (most / 2.0 - least / 2.0) * (1.0 + 1e-12):
            raise InputValueError(
                f"{what} of {shown(name)}: {value:g} is more than half the range, {most / 2.0 - least / 2.0:g}, the "
                f"largest possible standard deviation between {least:g} and {most:g}: is it in the units of the "
                "bounds?"
            )
    return {name: float(value) for name, value in given.items()}
