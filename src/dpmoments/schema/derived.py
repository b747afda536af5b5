"""Derived features: values computed from columns, their bounds and their encoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from inspect import signature
from itertools import accumulate, pairwise, product
from typing import Any, ClassVar, TypeVar

import numpy as np

from dpmoments.base.errors import InputTypeError, InputValueError, listed, shown
from dpmoments.base.message import Message
from dpmoments.base.values import FloatArray, check_name, rounded_down, rounded_up
from dpmoments.schema.column import EncodedColumn
from dpmoments.schema.columns import (
    MAX_BOUND,
    Boolean,
    Categorical,
    Column,
    Coordinate,
    Numeric,
    SamplingWeight,
    WeightColumn,
)
from dpmoments.schema.dates import Date

# Powers and products as they are stated, by the names of columns: what derived features are made of.


@dataclass(frozen=True, repr=False)
class Power:
    """Integer power of a numeric column of the schema: one feature, ``age^2``.

    Parameters
    ----------
    column : str
        Name of a :class:`~dpmoments.Numeric` column with bounds, anywhere in the schema.
    exponent : {2, 3, 4}

    Raises
    ------
    TypeError, ValueError
        If the column is not given by its name, or the exponent is not 2, 3 or 4.

    Notes
    -----
    Computed after the column's own rules: clipped to its bounds, the fill value if missing under ``"fill"``. Its
    bounds follow from those of the column. It counts as one column in the row-norm bound, so all other features get
    more noise; :func:`dpmoments.forecast` shows how much.

    Examples
    --------
    >>> from dpmoments import Numeric, Schema
    >>> schema = Schema(Numeric("age", -10, 100), Power("age", 2))
    >>> schema.feature_names, schema.columns[1].bounds
    (('age', 'age^2'), (0.0, 10000.0))
    """

    column: str
    exponent: int

    kind: ClassVar[str] = "power"

    def __post_init__(self) -> None:
        check_name(self.column)
        exponent = self.exponent
        if isinstance(exponent, bool) or not isinstance(exponent, int | np.integer):
            raise InputTypeError(
                f"power of '{self.column}': the exponent must be a whole number, got {type(exponent).__name__}"
            )
        if exponent not in (2, 3, 4):
            raise InputValueError(
                f"power of '{self.column}': exponent={shown(exponent)} must be 2, 3 or 4 (the column itself is its "
                "first power)"
            )
        object.__setattr__(self, "exponent", int(exponent))

    @property
    def name(self) -> str:
        """``column^exponent``."""
        return f"{self.column}^{self.exponent}"

    @property
    def factors(self) -> tuple[str, ...]:
        """The column's name."""
        return (self.column,)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return {"kind": self.kind, "column": self.column, "exponent": self.exponent}

    def __repr__(self) -> str:
        return f"Power({self.column!r}, {self.exponent})"


@dataclass(frozen=True, repr=False, init=False)
class Product:
    """Product of two columns of the schema: an interaction, ``age:smoker``.

    Parameters
    ----------
    *factors : str
        Names of two columns: numeric ones with bounds, Booleans, and at most one categorical. A Boolean is 0 or 1. With
        a categorical of k levels the product is k features ``age:region=north``, …: the other factor for the row's
        level, 0 for the others.

    Raises
    ------
    TypeError, ValueError
        If there are not two names, or they are the same.

    Notes
    -----
    Computed after the columns' own rules, like :class:`Power`; a block of k features also counts as one column.

    Examples
    --------
    >>> from dpmoments import Boolean, Categorical, Numeric, Schema
    >>> age, region = Numeric("age", 0, 100), Categorical("region", ["north", "south"])
    >>> schema = Schema(age, Boolean("smoker"), region, Product("age", "smoker"), Product("age", "region"))
    >>> schema.feature_names[4:]
    ('age:smoker', 'age:region=north', 'age:region=south')
    """

    factors: tuple[str, ...]

    kind: ClassVar[str] = "product"

    def __init__(self, *factors: str) -> None:
        if len(factors) != 2:
            raise InputValueError(f"a product needs two factors, names of two columns, got {len(factors)}")
        for factor in factors:
            check_name(factor)
        if factors[0] == factors[1]:
            raise InputValueError(f"the product of {shown(factors[0])} with itself: use Power({shown(factors[0])}, 2)")
        object.__setattr__(self, "factors", factors)

    @property
    def name(self) -> str:
        """``first:second``."""
        return ":".join(self.factors)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return {"kind": self.kind, "factors": list(self.factors)}

    def __repr__(self) -> str:
        return f"Product({', '.join(map(repr, self.factors))})"


Value = TypeVar("Value", Fraction, float, FloatArray)


@dataclass(frozen=True, repr=False)
class DerivedColumn(EncodedColumn):
    """Power or product with the columns, ``factors``, that it is computed from.

    In the order of ``stated.factors``.

    Floating-point rounding is monotone, so the extremes of computed values occur at those of exact values. ``bounds``
    contain both, rounded outward, so that no encoded value exceeds 1 in magnitude.
    """

    stated: Power | Product
    factors: tuple[Numeric | Date | Boolean | Categorical, ...]

    missing: ClassVar[str] = "as its columns"
    description: ClassVar[None] = None

    @classmethod
    def of(cls, stated: Power | Product, columns: Sequence[Column]) -> DerivedColumn:
        """Combine a stated feature with the table's columns."""
        by_name = {column.name: column for column in columns}
        factors = []
        for name in stated.factors:
            if name not in by_name:
                raise InputValueError(
                    f"{shown(stated)}: the schema has no column '{name}': a derived feature is made of columns of the "
                    "table, which are in the schema themselves (not of other derived features)"
                )
            column = by_name[name]
            if isinstance(column, Coordinate):
                raise InputValueError(
                    f"{shown(stated)}: column '{column.name}' is a coordinate without bounds, so nothing can be "
                    "computed from it: describe the column as Numeric, with bounds"
                )
            if isinstance(column, Numeric) and column.scale is not None:
                raise InputValueError(
                    f"{shown(stated)}: column '{column.name}' has a scale in place of bounds, so that nothing bounds "
                    "what is computed from it: give the column bounds, or leave the derived feature out"
                )
            factors.append(column)
        kinds = [type(factor) for factor in factors]
        if isinstance(stated, Power) and kinds not in ([Numeric], [Date]):
            why = "which is its own power" if kinds == [Boolean] else "whose levels are not numbers"
            raise InputValueError(
                f"{shown(stated)}: column '{stated.column}' is {factors[0].kind}, {why}: leave it out"
            )
        if kinds == [Categorical, Categorical]:
            raise InputValueError(
                f"{shown(stated)}: both columns are categorical, and the Gram matrix already counts the rows of "
                "each pair of levels: leave it out"
            )
        if len(left_out := [factor.name for factor in factors if factor.missing == "available"]) > 1:
            raise InputValueError(
                f"{shown(stated)}: '{left_out[0]}' and '{left_out[1]}' both have missing='available', and the "
                "product of two such columns is not offered: choose missing='drop' or 'fill' for one of them, or "
                "leave the product out"
            )
        made = cls(stated, tuple(factors))
        corners = made._exact_corners([factor.bounds for factor in factors])
        if max(map(abs, corners)) > MAX_BOUND or made.bounds[1] - made.bounds[0] < 1.0 / MAX_BOUND:
            raise InputValueError(
                f"{shown(stated)}: given the bounds of {listed(stated.factors)}, its values exceed "
                f"{MAX_BOUND:g}, or are within {1.0 / MAX_BOUND:g} of each other: use units of measurement in which "
                "the columns are nearer to 1"
            )
        return made

    @property
    def name(self) -> str:
        """Such as ``age^2`` or ``age:smoker``."""
        return self.stated.name

    @property
    def kind(self) -> str:
        """``"power"`` or ``"product"``."""
        return self.stated.kind

    @property
    def levels(self) -> Categorical | None:
        """Categorical factor, with one feature per level; None for a single feature."""
        return next((factor for factor in self.factors if isinstance(factor, Categorical)), None)

    @property
    def is_flag(self) -> bool:
        """True for the product of two flags, which is 0 or 1."""
        return all(isinstance(factor, Boolean) and factor.is_flag for factor in self.factors)

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Own name, or one name per level of its categorical factor."""
        if isinstance(self.stated, Power):
            return (self.name,)
        return tuple(":".join(names) for names in product(*(factor.feature_names for factor in self.factors)))

    @cached_property
    def bounds(self) -> tuple[float, float]:
        """Bounds in original units, implied by the factors' bounds."""
        return self._range([factor.bounds for factor in self.factors])

    @property
    def typical_within_bounds(self) -> tuple[float, float] | None:
        """Typical range implied by those of the factors; None if no factor has one."""
        ranges = [factor.typical_within_bounds if isinstance(factor, Numeric) else None for factor in self.factors]
        if not any(ranges):
            return None
        return self._range([within or factor.bounds for within, factor in zip(ranges, self.factors, strict=True)])

    def _range(self, ranges: Sequence[tuple[float, float]]) -> tuple[float, float]:
        """Return the min and max value for factors in these ranges, rounded outward."""
        # They cover exact and computed values.
        exact, computed = self._exact_corners(ranges), [self._of(corner) for corner in self._corners(ranges)]
        return min(rounded_down(min(exact)), *computed), max(rounded_up(max(exact)), *computed)

    def _exact_corners(self, ranges: Sequence[tuple[float, float]]) -> list[Fraction]:
        return [self._of([Fraction(value) for value in corner]) for corner in self._corners(ranges)]

    def _corners(self, ranges: Sequence[tuple[float, float]]) -> list[tuple[float, ...]]:
        """Return the points with the extremes of a product or power."""
        # Ends of ranges, or 0 inside a single range.
        inside = isinstance(self.stated, Power) and ranges[0][0] < 0.0 < ranges[0][1]
        return [*product(*ranges), *([(0.0,)] if inside else [])]

    def _of(self, values: Sequence[Value]) -> Value:
        # No pow: products of two numbers are rounded correctly, alike on every machine and at every place of an array.
        if isinstance(self.stated, Product):
            return values[0] * values[1]
        (value,) = values
        square = value * value
        if self.stated.exponent == 2:
            return square
        return square * (value if self.stated.exponent == 3 else square)

    def values(self, cells: Sequence[FloatArray]) -> FloatArray:
        """Compute the features, (n, k), in original units from each factor's, (n, 1) or (n, levels).

        NaN stays.
        """
        with np.errstate(over="ignore", invalid="ignore"):  # beyond the bounds alone
            return self._of(cells)

    @property
    def is_centered(self) -> bool:
        """True unless it is a block, whose norm about midpoints would be up to √k."""
        return self.levels is None

    @property
    def public_values_text(self) -> str:
        """Column's values according to the schema, for people."""
        lower, upper = self.bounds
        return f"{lower:g} to {upper:g}" + ("" if self.levels is None else f", by level of {self.levels.name}")

    @property
    def rule(self) -> Message:
        """Treatment of the column's values, for the privacy statement."""
        return Message("derived-feature", column=self.name, factors=self.stated.factors)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return self.stated.to_dict()

    def __repr__(self) -> str:
        return repr(self.stated)


INDICATOR_WEIGHT = 0.5
"""Encoded value of an indicator, as a share of the largest value of its column.

The noise on the number of missing values is larger by its reciprocal; a row with a missing value is nearer to the others.
"""


@dataclass(frozen=True)
class Absence:
    """Statement that a column's missing values are counted.

    >>> Absence("age").name
    'age (missing)'
    """

    column: str

    kind: ClassVar[str] = "missing"

    @property
    def name(self) -> str:
        """``column (missing)``."""
        return f"{self.column} (missing)"

    @property
    def factors(self) -> tuple[str, ...]:
        """The column's name."""
        return (self.column,)


@dataclass(frozen=True, repr=False)
class MissingIndicator(DerivedColumn):
    """Companion of a column with ``missing="available"``: 1 where its value is missing, else 0.

    There the column's own cell holds its public stand-in f, |f| ≤ 0.85, and the indicator is encoded as ½: the two together
    are never longer than the column without missing values (``docs/evidence/derivations/missing-values.md``).
    """

    stated: Absence  # type: ignore[assignment]

    is_flag: ClassVar[bool] = False  # its shares follow no constraint of Boolean columns
    is_centered: ClassVar[bool] = False
    levels: ClassVar[None] = None
    bounds: ClassVar[tuple[float, float]] = (0.0, 1.0)
    typical_within_bounds: ClassVar[None] = None

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Own name."""
        return (self.name,)

    def values(self, cells: Sequence[FloatArray]) -> FloatArray:
        """Return 1 for NaN, else 0, shape (n, 1)."""
        return np.isnan(cells[0]).astype(np.float64)

    def unit_length(self, mean: bool) -> FloatArray:
        """Return the reciprocal of the indicator's weight."""
        return np.full(1, 1.0 / INDICATOR_WEIGHT)


SchemaColumn = Column | DerivedColumn


def stated_columns(columns: Sequence[SchemaColumn]) -> list[SchemaColumn]:
    """Return the columns without indicators of missing values, and without an unreleased weight."""
    return [
        column
        for column in columns
        if not isinstance(column, MissingIndicator) and not (isinstance(column, WeightColumn) and not column.released)
    ]


def presence_column(column: SchemaColumn) -> str | None:
    """Return the column whose missing values leave out values of this one; None without any.

    >>> presence_column(Numeric("age", 0, 100)), presence_column(Numeric("age", 0, 100, missing="available"))
    (None, 'age')
    """
    factors = column.factors if isinstance(column, DerivedColumn) else (column,)
    return next((factor.name for factor in factors if factor.missing == "available"), None)


def indicators(columns: Sequence[SchemaColumn]) -> list[SchemaColumn]:
    """Return the columns, followed by an indicator for each number with ``missing="available"``.

    A categorical column needs none: a row without a level has a missing value.

    >>> [column.name for column in indicators([Boolean("smoker", missing="available")])]
    ['smoker', 'smoker (missing)']
    """
    stated = stated_columns(columns)
    own: list[SchemaColumn] = [
        MissingIndicator(Absence(column.name), (column,))
        for column in stated
        if isinstance(column, Numeric | Date | Boolean) and column.missing == "available"
    ]
    return [*stated, *own]


def with_factors(stated: Sequence[Column | Power | Product | DerivedColumn]) -> tuple[SchemaColumn, ...]:
    """Return a schema's columns, powers and products combined with their factors."""
    columns = [column for column in stated if not isinstance(column, Power | Product | DerivedColumn)]
    result: list[SchemaColumn] = []
    made: dict[tuple[str, tuple[str, ...]], str] = {}
    for column in stated:
        if isinstance(column, MissingIndicator) or not isinstance(column, Power | Product | DerivedColumn):
            result.append(column)
            continue
        derived = DerivedColumn.of(column.stated if isinstance(column, DerivedColumn) else column, columns)
        if isinstance(derived.stated, Product):
            key = (derived.kind, tuple(sorted(derived.stated.factors)))
            if made.setdefault(key, derived.name) != derived.name:
                raise InputValueError(
                    f"{shown(made[key])} and {shown(derived.name)} are the same product: leave one out"
                )
        result.append(derived)
    rough = [column.name for column in columns if isinstance(column, Numeric) and column.scale is not None]
    if rough and len(result) > len(columns):
        raise InputValueError(
            f"column '{rough[0]}' has a scale in place of bounds, and the schema has derived features: nothing "
            "bounds the rows of such a schema. Give every column bounds, or leave the derived features out"
        )
    return tuple(result)


def columns_with_slices(columns: Sequence[SchemaColumn]) -> list[tuple[SchemaColumn, slice]]:
    """Return the columns, each with the slice of its features.

    >>> [features for _, features in columns_with_slices([Categorical("region", ["north", "south"]), Boolean("smoker")])]
    [slice(0, 2, None), slice(2, 3, None)]
    """
    stops = accumulate((len(column.feature_names) for column in columns), initial=0)
    return [(column, slice(*ends)) for column, ends in zip(columns, pairwise(stops), strict=True)]


# Columns and derived features as entries of a schema file: reading them, and naming those that are still blank.

FILL_IN = (
    "Fill these in from public knowledge (they are never read from the data, because that would leak it), or delete unwanted "
    "columns"
)


ENTRIES = (
    *("format", "version", "row_norm", "missing_values", "text_format", "mean_weight", "names", "defaults"),
    *("item_lists", "goals", "columns"),
)
"""Top-level entries of a schema file."""

_KINDS: Mapping[str, type[Column | Power | Product | SamplingWeight]] = {
    column.kind: column for column in (Numeric, Categorical, Boolean, Date, SamplingWeight, Coordinate, Power, Product)
}
_NEEDED = {
    "numeric": ("name", "kind", "lower", "upper"),
    "date": ("name", "kind", "lower", "upper"),
    "categorical": ("name", "kind", "levels"),
    "power": ("column", "exponent"),
    "product": ("factors",),
}
"""Required entries of each kind; other kinds need only a name and a kind."""


class UnknownEntriesError(InputValueError):
    """Column of a schema file with entries that no column of its kind has."""


def column_from_dict(values: object) -> Column | Power | Product | SamplingWeight:
    """Read a column of a schema file."""
    if not isinstance(values, Mapping):
        raise InputValueError("every column is a mapping with a name and a kind")
    entries = dict(values)
    if entries.get("confirmed", "") is None:  # a blank, which `blank_entries` names
        del entries["confirmed"]
    which, kind = _which(entries), entries.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        usable = ", ".join(known for known in _KINDS if known != Coordinate.kind)  # only arrays have coordinates
        raise InputValueError(f"{which} has kind {shown(kind)}: use {usable}")
    made = _KINDS[kind]
    options = set(signature(made).parameters)
    if unknown := sorted(set(entries) - options, key=str):
        from difflib import get_close_matches

        close = [near for key in unknown for near in get_close_matches(str(key), sorted(options), n=1)]
        question = f" (did you mean {listed(close)}?)" if close else ""
        if not close and any(str(key).replace(".", "").isdigit() for key in unknown):
            question = " (in braces a comma ends an entry: write 1000, not 1,000)"
        raise UnknownEntriesError(
            f"{which} has unknown entries {', '.join(map(shown, unknown))}{question}: "
            f"use {', '.join(sorted(options | {'kind'}))}"
        )
    if made in (Power, Product):
        if absent := [key for key in _NEEDED[kind] if entries.get(key) is None]:
            raise InputValueError(f"{which} has no {' and no '.join(absent)}")
        if made is Product:
            factors = entries["factors"]
            if not isinstance(factors, list):
                raise InputValueError(f"a product has factors={shown(factors)}: give a list of two names of columns")
            return Product(*factors)
        return Power(**entries)
    if entries.get("name") is None:
        raise InputValueError("a column has no name")
    for needed in _NEEDED.get(kind, ("name", "kind"))[2:]:
        entries.setdefault(needed, None)
    return made(**entries)


def blank_entries(values: object) -> str:
    """Describe the blank entries of a column of a schema file; nothing without any.

    >>> print(blank_entries({"name": "age", "kind": "numeric", "lower": 0, "upper": None}))
    column 'age' has no bounds (upper)
    """
    if not isinstance(values, Mapping):
        return ""
    kind = values.get("kind")
    needed = _NEEDED.get(kind if isinstance(kind, str) else "", ("name", "kind"))
    blank = [
        key
        for key in dict.fromkeys((*needed, *values))
        if values.get(key) is None or (values[key] == [] and key != "missing_values")  # none: not the table's either
    ]
    if values.get("scale") is not None:  # in place of bounds
        blank = [key for key in blank if key not in ("lower", "upper")]
    if not blank:
        return ""
    if blank == ["confirmed"]:
        return f"{_which(values)} is not confirmed, and may be read from the data: state confirmed: true if a codebook has it"
    blank.sort(key=lambda key: key in ("lower", "upper"))
    absent = f"bounds ({', '.join(blank)})" if {*blank} <= {"lower", "upper"} else " and no ".join(map(str, blank))
    return f"{_which(values)} has no {absent}"


def _which(entries: Mapping[Any, Any]) -> str:
    """Format the name of an entry for a message."""
    # A derived feature has no name of its own in a file.
    kind = entries.get("kind")
    return f"a {kind}" if kind in (Power.kind, Product.kind) else f"column {shown(entries.get('name'))}"
