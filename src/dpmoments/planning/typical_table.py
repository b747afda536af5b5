"""Typical rows: a public table with assumed means and standard deviations.

The caller gives them, or they are marked defaults.
Values lie within their bounds and are moderately correlated; nothing here is computed from a table or drawn at random twice.
"""

from __future__ import annotations

import math
import operator
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy

from dpmoments.base.errors import InputTypeError, InputValueError, shown
from dpmoments.base.values import BoolArray, FloatArray, IntegerArray, is_finite_number
from dpmoments.schema.column import check_missing_share
from dpmoments.schema.columns import Boolean, Categorical, Column, Coordinate, Numeric, WeightColumn
from dpmoments.schema.derived import DerivedColumn, MissingIndicator, SchemaColumn, presence_column
from dpmoments.schema.patterns import matching
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
_DISTINCT_ROWS, _MOST_COUNTS, _DISTINCT_WEIGHTS = 1024, 64, 5
_LEAST_SPREAD, _AS_NORMAL = 0.02, 1e5
"""Sums of beta parameters: below the first a column has only its bounds, above it is normal."""
USUAL_EFFECT, _CAP_IN_MEANS = 1.4, 3.0
"""Default design effect of weights (six surveys: 1.3 to 1.6), and cap over mean."""
_DIGITS = 9
"""Digits to which columns of one shape share their values."""
_Guesses = tuple[tuple[str, float], ...]


@dataclass(frozen=True, eq=False)
class TypicalTable:
    """Guessed means, standard deviations and missing values, and rows that have them."""

    schema: Schema
    # with `guessed_means`: (d,), of the values that are present, in original units; rows have them if that is possible
    guessed_deviations: FloatArray
    guessed_means: FloatArray
    # with `assumed_means`: (d,), true if the standard deviation (the mean) is a default, given neither by the caller
    # nor by the schema
    assumed: BoolArray
    assumed_means: BoolArray
    shares: BoolArray  # (d,), features that are 0 or 1, whose mean is a share: Boolean columns and levels
    columns: tuple[str, ...]  # the column of each feature
    missing: Mapping[str, float]  # fraction of missing values of the columns that have some

    @classmethod
    def of(
        cls,
        schema: Schema,
        *,
        typical_sd: Mapping[str, float] | None = None,
        typical_mean: Mapping[str, float] | None = None,
        missing_share: Mapping[str, float] | None = None,
    ) -> TypicalTable:
        """Combine guesses of the caller, what the schema states, and defaults, in this order."""
        features = schema.without_derived.feature_names  # the others follow from them
        means = checked_guesses(schema, "typical_mean", typical_mean, features)
        deviations = checked_guesses(schema, "typical_sd", typical_sd, features)
        stated = {column.name: getattr(column, "missing_share", None) for column in schema.table_columns}
        missing = {name: share for name, share in stated.items() if share is not None}
        missing |= checked_guesses(schema, "missing_share", missing_share, tuple(stated))
        return cls._of(schema, *(tuple(sorted(guesses.items())) for guesses in (deviations, means, missing)))

    @classmethod
    @lru_cache(maxsize=16)
    def _of(cls, schema: Schema, typical_sd: _Guesses, typical_mean: _Guesses, missing: _Guesses) -> TypicalTable:
        sizes = [len(column.feature_names) for column in schema.columns]
        parts = zip(*(_defaults(column, schema) for column in schema.columns), strict=True)
        deviations, means, assumed, assumed_means, shares = (np.repeat(part, sizes) for part in parts)
        for name, value in typical_mean:
            index = schema.feature_names.index(name)
            means[index], assumed_means[index] = value, False
            if shares[index]:
                deviations[index], assumed[index] = math.sqrt(value * (1.0 - value)), False
        for name, value in typical_sd:
            index = schema.feature_names.index(name)
            deviations[index], assumed[index] = value, False
            if shares[index] and name not in dict(typical_mean):
                assumed_means[index] = False
                means[index] = (1.0 - math.sqrt(max(0.0, 1.0 - 4.0 * value**2))) / 2.0
        for column, features in schema.columns_with_slices:
            if not isinstance(column, Categorical):
                continue
            rest = assumed_means[features]
            if (total := float(means[features][~rest].sum())) > 1.01:  # rounded ones may exceed 1
                raise InputValueError(
                    f"the typical shares of levels of '{column.name}' add up to {total:.4g}, and a row has one level: give "
                    "shares that add up to 1, or less if other levels have the rest"
                )
            if rest.any():  # the shares that are left
                means[features][rest] = max(1.0 - total, 0.0) / rest.sum()
        # A mean that is known to be near a bound leaves less room to vary than the default.
        near = np.minimum(*(np.abs(means - bound) for bound in schema.feature_bounds))
        near = np.where(assumed & ~assumed_means & ~shares & (near > 0.0), near, np.inf)
        columns = tuple(column.name for column in schema.columns for _ in column.feature_names)
        return cls(schema, np.minimum(deviations, near), means, assumed, assumed_means, shares, columns, dict(missing))

    @property
    def means(self) -> FloatArray:
        """Mean of each feature in the typical rows, shape (d,)."""
        return self.moments(_DISTINCT_ROWS)[0]

    @cached_property
    def standard_deviations(self) -> FloatArray:
        """Standard deviation of each feature in the typical rows, shape (d,)."""
        return np.asarray(np.sqrt(np.diag(self.moments(_DISTINCT_ROWS)[1])))

    def for_schema(self, schema: Schema) -> TypicalTable:
        """Return the same guesses for a schema of some of the columns.

        Their bounds, rules, and derived features may be others.
        """
        result, names = TypicalTable.of(schema), self.schema.feature_names
        known = [(index, names.index(name)) for index, name in enumerate(schema.feature_names) if name in names]
        here, there = (list(side) for side in zip(*known, strict=True))
        changes: dict[str, Any] = {
            "missing": {name: self.missing[name] for name in schema.names if name in self.missing}
        }
        for name in ("guessed_deviations", "guessed_means", "assumed", "assumed_means"):
            changes[name] = getattr(result, name).copy()
            changes[name][here] = getattr(self, name)[there]
        return replace(result, **changes)

    @cached_property
    def kept_share(self) -> float:
        """Fraction of the rows that no missing value drops; columns miss values independently."""
        dropping = {column.name for column in self.schema.table_columns if column.missing == "drop"}
        return math.prod(1.0 - share for name, share in self.missing.items() if name in dropping)

    @property
    def words(self) -> str:
        """Assumptions behind the marked numbers, one line; empty if nothing is assumed."""
        blocks = {column.name: column for column in self.schema.columns}
        guessed = [blocks[name] for name, assumed in zip(self.columns, self.assumed, strict=True) if assumed]
        numbers = [column for column, share in zip(guessed, self.shares[self.assumed], strict=True) if not share]
        scaled = [isinstance(column, Numeric) and column.scale is not None for column in numbers]
        coordinates = [isinstance(column, Coordinate) for column in numbers]
        of_ball = any(isinstance(column, Coordinate) for column in self.schema.columns)
        weight = self.schema.sampling_weight
        said = {
            "standard deviations of a tenth of the range": not all(map(operator.or_, scaled, coordinates)),
            "standard deviations in the middle of their scale ranges": any(scaled),
            "coordinates spread evenly over the unit ball": of_ball and bool(numbers),
            "Boolean columns true in a quarter of the rows": any(isinstance(column, Boolean) for column in guessed),
            "all levels equally frequent": any(isinstance(column, Categorical) for column in guessed),
            "weights with a mean of a third of their cap": weight is not None and weight.mean_weight is None,
            "weights with a design effect of 1.4": weight is not None and weight.is_released,
            "no missing values": any(
                column.missing != "error" and column.name not in self.missing for column in self.schema.table_columns
            ),
        }
        assumed = ", ".join(words for words, is_so in said.items() if is_so)
        return (
            f"~ assumes {assumed}: public guesses (typical sd and mean, missing share) replace them" if assumed else ""
        )

    @cached_property
    def features_of_columns(self) -> Mapping[str, tuple[int, ...]]:
        """Indices of the features of every column, by its name."""
        return {
            name: tuple(index for index, other in enumerate(self.columns) if other == name)
            for name in dict.fromkeys(self.columns)
        }

    @lru_cache(maxsize=16)  # noqa: B019 - tables are few and immutable
    def encoded(self, n_rows: int, *, mean: bool) -> FloatArray:
        """Return typical rows, encoded as for a release; at most 1,024."""
        drawn, values = self.schema.with_indicators.as_read, self.values(min(n_rows, _DISTINCT_ROWS))
        times = 1 if self.schema.sampling_weight is None else min(_DISTINCT_WEIGHTS, n_rows // len(values))
        values = np.repeat(values, times, axis=0)
        present = np.repeat(self.present(len(values) // times), times, axis=0)
        encoding, block = drawn.encoding(mean=mean), np.zeros((len(values), drawn.n_features))
        block[:, : values.shape[1]] = values
        for column, features in drawn.columns_with_slices:
            if isinstance(column, WeightColumn):
                block[:, features.start] = np.tile(self._weights(times), len(values) // times)
            if isinstance(column, MissingIndicator):
                block[:, features] = 1.0 - present[:, list(self.features_of_columns[column.stated.column])]
            for feature in range(features.start, features.stop):
                block[:, feature] = encoding.encode_cells(block[:, feature].copy(), feature)
            if isinstance(column, DerivedColumn) and not isinstance(column, MissingIndicator):
                block[:, features] *= present[:, features]
        encoding.scale_into_ball(block)
        return block

    def _weights(self, n_rows: int) -> FloatArray:
        """Return skewed sampling weights up to their cap, shape (n_rows,)."""
        weight = self.schema.sampling_weight
        assert weight is not None
        mean = weight.bounds[1] / _CAP_IN_MEANS if weight.mean_weight is None else weight.mean_weight
        effect = USUAL_EFFECT if weight.is_released else float(weight.design_effect)  # type: ignore[arg-type]
        skewed = np.exp(scipy.special.ndtri((np.arange(n_rows) + 0.5) / n_rows))
        spread = (skewed - skewed.mean()) / max(float(skewed.std()), 1e-9)
        weights = mean * np.maximum(1.0 + math.sqrt(max(effect - 1.0, 0.0)) * spread, 0.05)
        return np.asarray(np.minimum(weights, weight.bounds[1]))

    @lru_cache(maxsize=64)  # noqa: B019
    def moments(self, n_rows: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return means, covariance, and the fraction of rows with both values, of typical rows.

        In original units, of the values that are present among ``n_rows`` rows.
        """
        values = self.values(min(n_rows, _DISTINCT_ROWS))
        present = self.present(len(values))
        times, rest = divmod(n_rows, len(values))
        weights = (times + (np.arange(len(values)) < rest)) / n_rows
        both = present.T @ (present * weights[:, None])
        mean = weights @ (values * present) / np.diag(both)
        centered = (values - mean) * present
        return mean, centered.T @ (centered * weights[:, None]) / np.where(both > 0.0, both, 1.0), both

    @lru_cache(maxsize=16)  # noqa: B019
    def values(self, n_rows: int) -> FloatArray:
        """Return typical rows in original units after the schema's rules, shape (n_rows, d)."""
        result = np.empty((n_rows, len(self.columns)))
        by_column: dict[str, FloatArray] = {}
        blocks = {column.name: column for column in self.schema.columns}
        if coordinates := [at for at, name in enumerate(self.columns) if isinstance(blocks[name], Coordinate)]:
            # spread evenly over a ball in which each coordinate has standard deviation 1
            d = len(coordinates)
            rows = np.random.default_rng(d).standard_normal((n_rows, d))
            lengths = scipy.special.ndtr(np.random.default_rng(d + 1).standard_normal(n_rows)) ** (1.0 / d)
            rows *= (math.sqrt(d + 2.0) * lengths / np.linalg.norm(rows, axis=1))[:, None]
            result[:, coordinates] = self.guessed_means[coordinates] + rows * self.guessed_deviations[coordinates]
        for column in sorted(self.schema.columns, key=lambda column: isinstance(column, DerivedColumn)):
            own = list(self.features_of_columns[column.name])
            if isinstance(column, DerivedColumn):
                result[:, own] = column.values([by_column[factor.name] for factor in column.factors])
            elif not isinstance(column, Coordinate):
                result[:, own] = _values(column, self.guessed_means[own], self.guessed_deviations[own], n_rows)
                lost = self._lost(column.name, n_rows)
                if column.missing != "drop":
                    result[lost[:, None], own] = 0.0 if isinstance(column, Categorical) else column.replacement
            by_column[column.name] = result[:, own]
        return result

    def present(self, n_rows: int) -> FloatArray:
        """Return 1 for values that are present, 0 for those left out, shape (n_rows, d)."""
        result = np.ones((n_rows, len(self.columns)))
        for column, features in self.schema.columns_with_slices:
            if (of := presence_column(column)) is not None:
                result[self._lost(of, n_rows), features] = 0.0
        return result

    def _lost(self, column: str, n_rows: int) -> IntegerArray:
        """Return the rows without a value, chosen for each column by itself."""
        order = np.random.default_rng(zlib.crc32(f"missing {column}".encode())).permutation(n_rows)
        return order[: min(round(self.missing.get(column, 0.0) * n_rows), n_rows - 1)]


def noise_chances(seed: int) -> FloatArray:
    """Return probabilities that noise on the counts of typical rows is less."""
    return np.random.default_rng(seed).random(_MOST_COUNTS)


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


def _defaults(column: SchemaColumn, schema: Schema) -> tuple[float, float, bool, bool, bool]:
    """Return SD and mean of a feature, if they are defaults, and if the mean is a share."""
    if isinstance(column, Categorical):
        size = len(column.feature_names)
        return math.sqrt((size - 1) / size**2), 1.0 / size, True, True, True
    if isinstance(column, DerivedColumn):  # as its columns
        return 1.0, 0.0, True, True, column.is_flag
    if isinstance(column, Boolean):
        return math.sqrt(_FLAG_SHARE * (1.0 - _FLAG_SHARE)), _FLAG_SHARE, True, True, True
    if isinstance(column, Coordinate):
        reach = 1.0 if schema.row_norm is None else schema.row_norm
        return reach / math.sqrt(schema.n_features + 2), 0.0, True, True, False
    if isinstance(column, Numeric) and column.scale is not None:
        return math.sqrt(column.scale[0] * column.scale[1]), float(column.center or 0.0), True, True, False
    lower, upper = column.bounds
    deviation, mean, assumed = _DEVIATION_SHARE * (upper - lower), lower + _MEAN_SHARE * (upper - lower), True
    if (typical := column.typical_within_bounds) is not None:
        deviation, mean, assumed = typical[1] / 4.0 - typical[0] / 4.0, typical[0] / 2.0 + typical[1] / 2.0, False
    # Under "fill" the value counts as one that is missing, and need not be like the others.
    fill = column.fill_as_number if column.missing == "available" else None
    return deviation, mean if fill is None else float(fill), assumed, assumed and fill is None, False


def checked_guesses(
    schema: Schema, what: str, given: Mapping[Any, float] | None, known: Sequence[str]
) -> dict[str, float]:
    """Check the guesses, and return them by name; a name overrules a pattern such as ``A*``."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise InputTypeError(f"{what} is a mapping of features to numbers, as in {what}={{'age': 18}}")
    rules = {column.name: column.missing for column in schema.table_columns}
    words = what.replace("_", " ")
    if what == "missing_share":
        # A rule that stops a release has no missing values, so that no pattern is about its column.
        words += " of columns whose rule is not missing='error'"
        known = [name for name in known if name in given or rules[name] != "error"]
    result: dict[str, Any] = {name: given[pattern] for name, pattern in matching(words, given, known).items()}
    if what == "missing_share":
        for name, value in result.items():
            check_missing_share(name, value, rules[name])
        return {name: float(value) for name, value in result.items()}
    lower, upper = schema.feature_bounds
    for name, value in result.items():
        index = schema.feature_names.index(name)
        least, most = (float(lower[index]), float(upper[index]))
        if what == "typical_mean":
            if not (is_finite_number(value) and least <= value <= most):
                raise InputValueError(
                    f"{words} of {shown(name)}: {shown(value)} must be a number between {least:g} and {most:g}, the "
                    "feature's bounds"
                )
        elif not (is_finite_number(value) and value > 0.0):
            raise InputValueError(f"{words} of {shown(name)}: {shown(value)} must be a positive finite number")
        elif value > (most / 2.0 - least / 2.0) * (1.0 + 1e-12):
            raise InputValueError(
                f"{words} of {shown(name)}: {value:g} is more than half the range, {most / 2.0 - least / 2.0:g}, the "
                f"largest possible standard deviation between {least:g} and {most:g}: is it in the units of the "
                "bounds?"
            )
    return {name: float(value) for name, value in result.items()}
