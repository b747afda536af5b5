"""Public description of a table.

Columns, bounds, levels, and rules for missing and invalid values.

Reads no data. Fixes the affine map from original units to the unit ball that mechanisms work in, and its inverse on
moments.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import Any, Literal

import numpy as np

from dpmoments.base.errors import InputTypeError, InputValueError, listed, meant, shown, wrong_type
from dpmoments.base.message import Message
from dpmoments.base.records import written
from dpmoments.base.text_files import TextFormat
from dpmoments.base.values import FloatArray
from dpmoments.schema.codebooks import complete_columns, frictionless_field
from dpmoments.schema.column import MarkedMissing, as_text, checked_marks, checked_weight
from dpmoments.schema.columns import (
    Boolean,
    Categorical,
    Column,
    Coordinate,
    Numeric,
    SamplingWeight,
    WeightColumn,
    coordinates,
    without_cleaning,
)
from dpmoments.schema.dates import Date
from dpmoments.schema.derived import (
    ENTRIES,
    FILL_IN,
    DerivedColumn,
    MissingIndicator,
    Power,
    Product,
    SchemaColumn,
    blank_entries,
    column_from_dict,
    columns_with_slices,
    indicators,
    presence_column,
    stated_columns,
    with_factors,
)
from dpmoments.schema.drafting import SchemaDraft, draft
from dpmoments.schema.encoding import (
    Encoding,
    RoughScale,
    check_typical_ranges,
    checked_row_norm,
    column_weight,
    column_weights,
    lattice_weights,
)
from dpmoments.schema.goals import Goal, checked_goals
from dpmoments.schema.patterns import expanded, matching, shortened

_FORMAT = "dpmoments-schema"
_FORMAT_VERSION = 1
_OPTIONS = ("missing_values", "text_format", "mean_weight", "item_lists", "goals")


@dataclass(frozen=True, init=False)
class Schema:
    """Public description of a table.

    Parameters
    ----------
    *stated : Numeric, Date, Categorical, Boolean, Power, Product or SamplingWeight
        In the order of the released features. Columns of the table that the schema does not name are never read. Powers
        and products are computed from columns of the same schema, in any order. A sampling weight is last.
    row_norm : float or "default", optional
        Public bound B on the Euclidean norm of an encoded row (numeric columns in [−1, 1], a categorical a one-hot
        block of norm 1). Default: √(number of columns, powers and products included), which no row exceeds; slightly
        more if a column is categorical, so that rounding makes no row longer. A smaller value scales longer rows down
        and lowers the noise in proportion to B². It must come from public knowledge: choosing it from the table leaks
        information. None if a column has a ``scale`` range in place of bounds: nothing bounds its rows. Cannot be
        combined with a ``typical`` range.
    missing_values : list of str or float, optional
        Values that mean a missing one in every column that states none of its own, such as ``[-9, "NA", ""]``: numbers, and
        texts as they are written. Levels of a categorical column are never missing.
    text_format : TextFormat, optional
        Format of the table's text files, if it is not the usual one; ignored for other tables.
    mean_weight : float, optional
        Weight of means and shares of levels relative to covariances, from 1/1024 to 1024; default 1. A larger one gives
        means less noise at the expense of covariances, in mechanisms that release both as one matrix.
    item_lists : mapping of str to list of str, optional
        Names of lists of columns, such as the items of a scale: ``{"openness": ["O1", "O2", "O3"]}``. A pattern, ``"O*"``, stands
        for all columns that it matches.
    goals : list of str, or mapping of str to float, optional
        How precise answers should be: ``["mean(income) ± 500", "correlation(*) ± 0.03 at 0.9"]``, or ``{"mean(income)": 500}``.
        A forecast says which budget meets them, and a release whether it did. Goals whose columns are left out go with them.

    Raises
    ------
    ValueError
        If no column is given, two columns or features share a name, a power or product is not of bounded columns of the
        schema, or ``row_norm`` is not positive.
    TypeError
        If something that is not a column is given.

    Examples
    --------
    >>> from dpmoments.schema.columns import Numeric
    >>> schema = Schema(Numeric("age", 0, 100), Categorical("region", ["north", "south"]))
    >>> schema.feature_names
    ('age', 'region=north', 'region=south')
    >>> round(schema.row_norm, 4)
    1.4142
    """

    columns: tuple[SchemaColumn, ...]
    row_norm: float | None
    missing_values: MarkedMissing
    text_format: TextFormat | None
    mean_weight: float
    item_lists: Mapping[str, tuple[str, ...]] = field(hash=False)
    goals: tuple[Goal, ...]
    sampling_weight: SamplingWeight | None

    def __init__(
        self,
        *stated: Column | Power | Product | DerivedColumn | SamplingWeight,
        row_norm: float | Literal["default"] | None = "default",
        missing_values: Sequence[str | float] | None = None,
        text_format: TextFormat | None = None,
        mean_weight: float = 1.0,
        item_lists: Mapping[str, Sequence[str]] | None = None,
        goals: Sequence[str | Goal] | Mapping[str, float | str] | None = None,
    ) -> None:
        if text_format is not None and not isinstance(text_format, TextFormat):
            raise wrong_type("text_format", "a dpmoments.TextFormat", text_format)
        weight = None
        if stated and isinstance(stated[-1], SamplingWeight):
            *stated, weight = stated  # type: ignore[assignment]
        for column in stated:
            if isinstance(column, SamplingWeight):
                raise InputValueError(
                    f"the sampling weight '{column.name}' is not the schema's last column: a schema has one at most, "
                    "after all others"
                )
            if not isinstance(column, Column | Power | Product | DerivedColumn):
                raise InputTypeError(
                    "a schema consists of Numeric, Date, Categorical and Boolean columns, and of Power and Product of "
                    f"them, got {type(column).__name__}"
                )
        if not stated:
            raise InputValueError("a schema needs at least one column")
        marks = checked_marks("", missing_values) or ()
        columns = with_factors([_with_missing_values(column, marks) for column in stated])
        ball: tuple[SchemaColumn, ...] = columns
        if weight is not None:
            weight = _with_missing_values(weight, marks)
            if weight.is_released and not any(isinstance(column, WeightColumn) for column in columns):
                ball = *columns, Boolean(weight.name)  # as long as a released weight
            _check_weight(weight, columns)
        names = [column.name for column in columns]
        if repeated := _repeated(names):
            raise InputValueError(f"duplicate column names in the schema: {listed(repeated)}")
        features = [feature for column in columns for feature in column.feature_names]
        if repeated := _repeated(features):
            raise InputValueError(f"two columns give the same feature name: {listed(repeated)}")
        read = [_source_of(column) for column in columns if not isinstance(column, DerivedColumn)]
        if repeated := _repeated(read):
            raise InputValueError(f"two columns of the schema are read from the same column: {listed(repeated)}")
        row_norm = checked_row_norm(ball, row_norm)
        if weight is not None and (row_norm is None or row_norm < checked_row_norm(ball, "default")):  # type: ignore[operator]
            raise _needs_bounds(weight)
        # A count of missing values does not survive that rows are scaled down.
        available = next(filter(None, map(presence_column, columns)), None)
        if available is not None and (row_norm is None or row_norm < checked_row_norm(ball, "default")):  # type: ignore[operator]
            raise InputValueError(
                f"column '{available}' has missing='available', which needs bounds on every column and the row-norm "
                "bound that follows from them: leave row_norm and scale out, or choose missing='drop' or 'fill'"
            )
        check_typical_ranges(columns, row_norm)
        mean_weight = checked_weight(mean_weight, "mean_weight")
        if mean_weight != 1.0 and row_norm is None:
            raise InputValueError(
                f"mean_weight={shown(mean_weight)} divides noise between means and covariances of rows with bounds, "
                "and these have none: leave it out"
            )
        object.__setattr__(self, "columns", columns)
        object.__setattr__(self, "row_norm", row_norm)
        object.__setattr__(self, "missing_values", marks)
        object.__setattr__(self, "text_format", text_format)
        object.__setattr__(self, "mean_weight", mean_weight)
        object.__setattr__(self, "item_lists", _checked_item_lists(item_lists, self.names))
        object.__setattr__(self, "goals", checked_goals(goals or (), columns))
        object.__setattr__(self, "sampling_weight", weight)

    @classmethod
    def unit_ball(
        cls,
        n_features: int,
        *,
        names: Sequence[str] | None = None,
        missing: Literal["error", "center", "drop"] = "error",
    ) -> Schema:
        """Return a schema for arrays of rows in the unit ball.

        Longer rows are scaled down to norm 1.

        Parameters
        ----------
        n_features : int
        names : sequence of str, optional
            Feature names; ``x0``, ``x1``, … if not given.
        missing : {"error", "center", "drop"}
            Treatment of a NaN or infinite value: stop, replace by 0, or drop its row.

        Examples
        --------
        >>> Schema.unit_ball(2).feature_names, Schema.unit_ball(2).row_norm
        (('x0', 'x1'), 1.0)
        """
        return cls(*coordinates(n_features, names, missing), row_norm=1.0)

    @classmethod
    def unbounded(
        cls,
        n_features: int,
        *,
        names: Sequence[str] | None = None,
        missing: Literal["error", "center", "drop"] = "error",
    ) -> Schema:
        """Return a schema for arrays without a bound on rows.

        Only mechanisms that need none accept it.

        Parameters as in :meth:`unit_ball`.

        Examples
        --------
        >>> Schema.unbounded(2).row_norm is None
        True
        """
        return cls(*coordinates(n_features, names, missing), row_norm=None)

    @staticmethod
    def draft(
        data: Any, *, text_format: TextFormat | None = None, codebook: str | Path | Sequence[str | Path] | None = None
    ) -> SchemaDraft:
        r"""Draft a schema from what a table and its codebooks declare.

        Its blanks are to fill in from public knowledge.

        Parameters
        ----------
        data : frame, path or relation
            As for :func:`dpmoments.release`; an array has no names.
        text_format : TextFormat, optional
            Format of text files; the draft states it.
        codebook : path or list of paths, optional
            Public codebooks of the table: Frictionless, CSVW or Croissant (.json), DDI (.xml), a REDCap dictionary or a sheet
            with the columns name, label, type, min, max, values, missing (.csv, .xlsx). The draft takes bounds, levels, labels
            and missing codes from them, says from where, and lists conflicts.

        Raises
        ------
        ValueError, TypeError, FileNotFoundError
            If the table does not exist, or no column has a name.

        Examples
        --------
        >>> import pyarrow as pa
        >>> print(str(Schema.draft(pa.table({"age": [30, 40]}))).partition("\ncolumns:")[2].strip())
        - name: "age"
            kind: numeric  # the frame says int64; codes? then categorical, with levels: [1, 2]
            # lower, upper: values outside are clipped to them, and noise grows with their distance: ...
            lower:  # perhaps 0 to 120, years: nobody is known to have lived longer than 122
            upper:
            ...
            missing: error
        """
        return draft(data, text_format, codebook)

    @classmethod
    def from_codebook(cls, path: str | Path, columns: Sequence[str] | None = None) -> Schema:
        """Read a schema from a codebook that declares bounds and levels.

        The formats of :meth:`draft` are read. A column with declared missing codes has ``missing="available"``, the others
        ``"error"``.

        Parameters
        ----------
        path : path
        columns : list of str, optional
            Columns by their names in the table. Default: those that the codebook describes completely.

        Raises
        ------
        ValueError, FileNotFoundError
            If the codebook cannot be read, does not describe a column, or describes it without bounds or levels.

        Examples
        --------
        >>> import json, pathlib, tempfile
        >>> codebook = pathlib.Path(tempfile.mkdtemp(), "people.json")
        >>> bounds = {"minimum": 0, "maximum": 120}
        >>> fields = [{"name": "age", "type": "integer", "constraints": bounds}, {"name": "notes", "type": "string"}]
        >>> _ = codebook.write_text(json.dumps({"fields": fields}))
        >>> Schema.from_codebook(codebook)
        Schema(Numeric(name='age', lower=0.0, upper=120.0, missing='error'), row_norm=1.0)
        """
        return cls.from_dict({"columns": complete_columns(path, columns)})

    def to_frictionless(self) -> dict[str, Any]:
        """Return the table's columns as a Frictionless Table Schema.

        It has their names in the table, types, bounds, levels, missing codes and descriptions; rules of a release, scale ranges
        and derived features have no place in it.

        Examples
        --------
        >>> from dpmoments import Numeric
        >>> Schema(Numeric("age", 0, 120)).to_frictionless()["fields"]
        [{'name': 'age', 'type': 'number', 'constraints': {'minimum': 0.0, 'maximum': 120.0}}]
        """
        fields = [frictionless_field(column) for column in self.table_columns if not isinstance(column, Coordinate)]
        return {"$schema": "https://datapackage.org/profiles/2.0/tableschema.json", "fields": fields}

    @cached_property
    def table_columns(self) -> tuple[Column, ...]:
        """Columns read from the table, in order, without derived features."""
        return tuple(column for column in self.columns if not isinstance(column, DerivedColumn))

    @property
    def derived_columns(self) -> tuple[DerivedColumn, ...]:
        """Powers, products and indicators of missing values, in order, with their factors."""
        return tuple(column for column in self.columns if isinstance(column, DerivedColumn))

    @property
    def without_derived(self) -> Schema:
        """Schema without its derived features; a stated row-norm bound stays."""
        return self.with_columns(self.table_columns)

    def with_columns(
        self,
        columns: Sequence[SchemaColumn | Power | Product],
        *,
        row_norm: bool = True,
        weight: SamplingWeight | None = None,
        text_format: TextFormat | None = None,
    ) -> Schema:
        """Return a schema of other columns of the same table.

        It has this one's sampling weight and text format, or those that are given. If not ``row_norm``, the row-norm bound
        is the default of these columns.
        """
        norm: float | Literal["default"] | None = self.row_norm if row_norm else "default"
        names = {column.name for column in columns}
        weight = weight or self.sampling_weight
        if weight is not None and isinstance(weight.design_effect, Mapping):
            effects = {name: effect for name, effect in weight.design_effect.items() if name in names}
            weight = replace(weight, design_effect=effects or None)
        return Schema(
            *columns,
            *(() if weight is None else (weight,)),
            row_norm=norm,
            missing_values=self.missing_values,
            text_format=text_format or self.text_format,
            mean_weight=self.mean_weight,
            item_lists={name: items for name, items in self.item_lists.items() if names.issuperset(items)},
            goals=[goal for goal in self.goals if goal.fits(with_factors(columns))],
        )

    @cached_property
    def has_available(self) -> bool:
        """True if moments are of the rows whose values are present, pair by pair."""
        return any(presence_column(column) is not None for column in self.columns)

    @cached_property
    def with_indicators(self) -> Schema:
        """Schema of the drawn features: these, indicators of missing numbers, and a released weight."""
        columns = indicators(self.columns)
        if self.sampling_weight is not None and self.sampling_weight.is_released and not self._has_weight:
            columns.append(WeightColumn.of(self.sampling_weight))
        return self if len(columns) == len(self.columns) else self.with_columns(columns)

    @cached_property
    def without_indicators(self) -> Schema:
        """Schema of the stated columns."""
        columns = [column for column in stated_columns(self.columns) if not isinstance(column, WeightColumn)]
        return self if len(columns) == len(self.columns) else self.with_columns(columns)

    @cached_property
    def without_weight(self) -> Schema:
        """Schema of the drawn features without the sampling weight."""
        return self.with_columns([column for column in self.columns if not isinstance(column, WeightColumn)])

    @cached_property
    def as_read(self) -> Schema:
        """Schema by which rows are read: these columns, and the sampling weight."""
        if self.sampling_weight is None or self._has_weight:
            return self
        return self.with_columns([*self.columns, WeightColumn.of(self.sampling_weight)])

    @property
    def _has_weight(self) -> bool:
        return any(isinstance(column, WeightColumn) for column in self.columns)

    def capped(self, epsilon: float) -> Schema:
        """Return the schema with the cap of the public rule, if its sampling weight has none."""
        if self.sampling_weight is None or self.sampling_weight.upper is not None:
            return self
        return self.with_columns(self.columns, weight=self.sampling_weight.capped(epsilon))

    def with_text_format(self, text_format: TextFormat | None) -> Schema:
        """Return the schema with another text format; itself if it is None."""
        if text_format is None or text_format == self.text_format:
            return self
        return self.with_columns(self.columns, text_format=text_format)

    @property
    def without_cleaning(self) -> Schema:
        """Schema of the same features without cleaning rules; equal ones can be pooled."""
        columns = [column if isinstance(column, DerivedColumn) else without_cleaning(column) for column in self.columns]
        weight = () if self.sampling_weight is None else (without_cleaning(self.sampling_weight),)
        return Schema(*columns, *weight, row_norm=self.row_norm)

    @property
    def by_own_names(self) -> Schema:
        """Schema of a table whose columns have the schema's names."""
        columns = [
            column if isinstance(column, Coordinate | DerivedColumn) else replace(column, source=None)
            for column in self.columns
        ]
        weight = None if self.sampling_weight is None else replace(self.sampling_weight, source=None)
        return self.with_columns(columns, weight=weight)

    def with_products(self, names: Sequence[str]) -> Schema:
        """Return this schema with squares and products of some columns.

        It adds the square of each and the product of each two, if they are not there.

        A release of it has standard errors that are robust to residuals of unequal variance in regressions of one of these
        columns on the others. Each product counts as a column in a default row-norm bound, and raises all noise:
        :func:`dpmoments.forecast` says by how much. A Boolean is its own square, and needs none. A stated ``row_norm`` stays.

        Parameters
        ----------
        names : sequence of str
            Columns of the table, of which one at most may be categorical.

        Raises
        ------
        ValueError
            If a name is unknown, or two columns are categorical: the product of three columns is not a derived feature.

        Examples
        --------
        >>> from dpmoments import Boolean, Numeric
        >>> Schema(Numeric("age", 0, 100), Boolean("smoker"), Numeric("pay", 0, 1)).with_products(["pay", "smoker"]).feature_names
        ('age', 'smoker', 'pay', 'pay^2', 'smoker:pay')
        """
        if isinstance(names, str):
            raise InputTypeError(f"with_products takes a list of columns, not one string: [{shown(names)}]")
        if unknown := [name for name in names if name not in self.names]:
            name = unknown[0] if isinstance(unknown[0], str) else shown(unknown[0])
            raise InputValueError(f"The schema has no column '{name}'.{meant(name, self.names)}")
        chosen = [column for column in self.table_columns if column.name in names]
        levels = [column.name for column in chosen if isinstance(column, Categorical)]
        if len(levels) > 1:
            raise InputValueError(
                f"{shown(levels[0])} and {shown(levels[1])} are both categorical: robust errors would need the "
                "products of their levels with the other columns, which a schema cannot have. Name one of them"
            )
        present = {tuple(sorted(column.stated.factors)) for column in self.derived_columns if column.kind == "product"}
        squares = [Power(column.name, 2) for column in chosen if not isinstance(column, Boolean | Categorical)]
        products = [Product(one.name, other.name) for one, other in combinations(chosen, 2)]
        added: list[Power | Product] = [
            *(power for power in squares if power.name not in self.feature_names),
            *(product for product in products if tuple(sorted(product.factors)) not in present),
        ]
        if self.row_norm is None or self.row_norm == checked_row_norm(self.columns, "default"):
            return self.with_columns([*self.columns, *added], row_norm=False)
        return self.with_columns([*self.columns, *added])

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the schema's columns, without derived features."""
        return tuple(column.name for column in self.table_columns)

    @cached_property
    def columns_by_source(self) -> Mapping[str, Column]:
        """Columns by their names in the table, in order."""
        return {_source_of(column): column for column in self.table_columns}

    @property
    def names_in_table(self) -> tuple[str, ...]:
        """Names of the columns in the table, in order."""
        return tuple(self.columns_by_source)

    @property
    def reserved_names(self) -> frozenset[str]:
        """Names that a privacy unit's column cannot have."""
        weight = () if self.sampling_weight is None else (self.sampling_weight.name, _source_of(self.sampling_weight))
        return frozenset({*self.names_in_table, *weight, *(column.name for column in self.columns)})

    @cached_property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the encoded features, in the order of every released array."""
        return tuple(feature for column in self.columns for feature in column.feature_names)

    @cached_property
    def columns_with_slices(self) -> tuple[tuple[SchemaColumn, slice], ...]:
        """Columns, derived ones included, each with the slice of its features."""
        return tuple(columns_with_slices(self.columns))

    @property
    def n_features(self) -> int:
        """Number d of encoded features."""
        return len(self.feature_names)

    @property
    def is_coordinates(self) -> bool:
        """True if every column is a bare coordinate, as in :meth:`unit_ball` and :meth:`unbounded`."""
        return all(isinstance(column, Coordinate) for column in self.columns)

    @property
    def drops_rows(self) -> bool:
        """True if some column's rule can drop a row.

        The number of kept rows is then private under every relation.
        """
        if self.sampling_weight is not None and self.sampling_weight.missing == "drop":
            return True
        return any(
            column.missing == "drop" or (isinstance(column, Categorical) and column.other == "drop")
            for column in self.table_columns
        )

    def rough_scale(self, *, mean: bool = True) -> RoughScale | None:
        """Return the ranges of the encoded features' SDs and means.

        None without a column with a scale range.
        """
        return RoughScale.of(self.columns, mean=mean)

    def encoding(self, *, mean: bool = True) -> Encoding:
        """Return the affine map between original units and the unit ball.

        Parameters
        ----------
        mean : bool
            True: a numeric column [l, u] maps to [−1, 1] about its midpoint. False: it is divided by max(|l|, |u|), so
            that 0 stays 0 and the second moment of the encoded rows gives the table's without the mean; so is a product
            with a categorical, always. A column with a scale range is divided by the geometric mean of its ends, after
            subtracting its center if ``mean``. With typical ranges every column is then multiplied by its weight.
        """
        if mean in self._encodings:  # every answer needs it several times
            return self._encodings[mean]
        offset = np.concatenate([column.offset(mean) for column in self.columns])
        unit = np.concatenate([column.unit_length(mean) for column in self.columns])
        weights = column_weights(self.columns, mean=mean)
        if weights is not None:
            if self.row_norm is not None and any(isinstance(column, Categorical) for column in self.columns):
                weights = lattice_weights(weights, self.row_norm)
            weights = np.repeat(weights, [len(column.feature_names) for column in self.columns])
        for array in (offset, unit, weights):
            if array is not None:
                array.setflags(write=False)
        self._encodings[mean] = Encoding(offset, unit, 1.0 if self.row_norm is None else self.row_norm, weights)
        return self._encodings[mean]

    @cached_property
    def _encodings(self) -> dict[bool, Encoding]:
        return {}

    @property
    def feature_bounds(self) -> tuple[FloatArray, FloatArray]:
        """Public lower and upper bounds of the features in original units, each of shape (d,)."""
        reach = math.inf if self.row_norm is None else self.row_norm
        pairs: list[tuple[float, float]] = []
        for column in self.columns:
            pair = (-reach, reach) if isinstance(column, Coordinate) else column.bounds
            pairs += [pair] * len(column.feature_names)
        lower, upper = np.array(pairs).T
        return lower, upper

    @property
    def rules(self) -> tuple[Message, ...]:
        """Treatment of values and rows, for the privacy statement, a message for each rule."""
        hidden = Coordinate | MissingIndicator | WeightColumn
        rules = [column.rule for column in self.columns if not isinstance(column, hidden)]
        if self.sampling_weight is not None:
            rules.append(self.sampling_weight.rule)
        if coordinates := [column for column in self.columns if isinstance(column, Coordinate)]:
            missing = sorted({column.missing for column in coordinates})
            rules.append(Message("coordinates", coordinates=len(coordinates), missing=missing))
        norm = self.row_norm
        rules.append(Message("no-row-norm-bound") if norm is None else Message("row-norm-bound", norm=norm))
        if any(isinstance(column, Numeric) and column.typical is not None for column in self.columns):
            rules.append(Message("noise-by-typical-range"))
        if weighted := {column.name: weight for column in self.columns if (weight := column_weight(column)) != 1.0}:
            rules.append(Message("noise-by-weight", names=tuple(weighted), weights=tuple(weighted.values())))
        if self.mean_weight != 1.0:
            rules.append(Message("noise-by-mean-weight", weight=self.mean_weight))
        return tuple(rules)

    @property
    def _unusual_options(self) -> dict[str, Any]:
        """Options of the schema that differ from their defaults."""
        options = {name: getattr(self, name) for name in _OPTIONS} | {"goals": [*map(str, self.goals)]}
        return {name: value for name, value in options.items() if value not in (None, (), [], {}, 1.0)}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        values = {"format": _FORMAT, "version": _FORMAT_VERSION, "row_norm": self.row_norm} | self._unusual_options
        stated: list[Any] = [*self.without_indicators.columns]
        stated += [] if self.sampling_weight is None else [self.sampling_weight]
        columns = [_stated(column, self.missing_values) for column in stated]
        return {name: written(value) for name, value in {**values, "columns": columns}.items()}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Schema:
        """Invert :meth:`to_dict`.

        Raises
        ------
        ValueError
            If the values are not a schema, or have blanks; the message names all columns with blanks.
        """
        if not isinstance(values, Mapping) or not isinstance(values.get("columns"), list):
            raise InputValueError("this is not a schema: a mapping with a list of columns is expected")
        if values.get("format", _FORMAT) != _FORMAT or values.get("version", _FORMAT_VERSION) != _FORMAT_VERSION:
            raise InputValueError(
                f"this schema has format {shown(values.get('format'))} version {shown(values.get('version'))}; this "
                f"release of dpmoments reads {shown(_FORMAT)} version {_FORMAT_VERSION}"
            )
        if unknown := sorted(set(values) - set(ENTRIES), key=str):
            raise InputValueError(f"unknown entries in the schema: {', '.join(map(shown, unknown))}")
        values = expanded(values)
        if blanks := [*filter(None, map(blank_entries, values["columns"]))]:
            raise InputValueError(f"{'; '.join(blanks)}. {FILL_IN}")
        columns = [column_from_dict(column) for column in values["columns"]]
        options = {name: values[name] for name in ("row_norm", *_OPTIONS) if name in values}
        if options.get("text_format") is not None:
            options["text_format"] = TextFormat.from_dict(options["text_format"])
        return cls(*columns, **options)

    def save(self, path: str | Path) -> None:
        """Write the schema as YAML; neighboring columns that are alike share an entry."""
        from dpmoments.schema.document import format_yaml

        Path(path).write_text(format_yaml(shortened(self.to_dict())), encoding="utf-8", newline="\n")

    @classmethod
    def load(cls, path: str | Path, table: Schema | None = None) -> Schema:
        """Read a schema from YAML, or a request for parts of a table.

        Parameters
        ----------
        path : path
        table : Schema, optional
            The schema of a table, of which the file may ask for columns by name, ``columns: [age, income]``; without ``columns``,
            for those that its ``goals`` name.

        Raises
        ------
        ValueError
            If the file is not a schema, or has mistakes or blanks; the message names all of these columns, with lines.
        """
        from dpmoments.schema.document import mistakes_in, read_yaml_nodes

        values, node = read_yaml_nodes(path)
        failure = "; ".join(mistakes_in(node, values)) if table is None else ""
        if not failure:
            try:
                return cls.from_dict(values if table is None else _requested(values, table))
            except (TypeError, ValueError) as error:
                failure = str(error)
        raise InputValueError(f"{path}: {failure}")

    def __repr__(self) -> str:
        shown = ", ".join(repr(column) for column in self.columns[:8])
        weight = "" if self.sampling_weight is None else f", {self.sampling_weight!r}"
        more = f", … {len(self.columns) - 8} more" if len(self.columns) > 8 else ""
        options = "".join(f", {name}={value!r}" for name, value in self._unusual_options.items())
        return f"Schema({shown}{more}{weight}, row_norm={self.row_norm!r}{options})"


def _requested(values: Any, table: Schema) -> dict[str, Any]:
    """Return the values of a schema, for a request that names columns of a table."""
    if not isinstance(values, Mapping) or not isinstance(values.get("columns", []), list):
        raise InputValueError("this is not a request: a list of goals is expected, and perhaps a list of columns")
    known = [column.name for column in table.columns]
    goals = values.get("goals")
    entries = values.get("columns")
    if entries is None:
        needed = {name for goal in checked_goals(goals or (), table.columns) for name in goal.columns(table.columns)}
        entries = [name for name in known if name in needed]
    named = [entry["name"] if isinstance(entry, Mapping) and [*entry] == ["name"] else entry for entry in entries]
    asked = matching("columns", [name for name in named if not isinstance(name, Mapping)], known)
    own = [column_from_dict(entry) for entry in named if isinstance(entry, Mapping)]
    columns: list[Any] = [column for column in table.columns if column.name in asked]
    columns += [column for column in own if not isinstance(column, SamplingWeight)]
    weight = next((column for column in own if isinstance(column, SamplingWeight)), None)
    return table.with_columns(columns, row_norm=False, weight=weight).to_dict() | {"goals": goals}


def _checked_item_lists(stated: object, names: Sequence[str]) -> dict[str, tuple[str, ...]]:
    """Return named lists of columns, with patterns replaced by the columns that they match."""
    if stated is None:
        return {}
    if not isinstance(stated, Mapping) or not all(isinstance(name, str) and name for name in stated):
        raise InputTypeError('item_lists must map names to lists of columns: {"openness": ["O1", "O2"]}')
    result = {}
    for name, items in stated.items():
        listed_items = [items] if isinstance(items, str) else items
        if not isinstance(listed_items, Sequence) or not all(isinstance(item, str) for item in listed_items):
            raise InputTypeError(f"item_lists: {shown(name)} must be a list of names of columns, got {shown(items)}")
        result[name] = tuple(matching(f"item_lists: {shown(name)}", listed_items, names))
    return result


def _needs_bounds(weight: SamplingWeight) -> InputValueError:
    return InputValueError(
        f"the sampling weight '{weight.name}' needs bounds on every column and the row-norm bound that follows from them: "
        "leave row_norm and scale out"
    )


def _check_weight(weight: SamplingWeight, columns: Sequence[SchemaColumn]) -> None:
    """Raise ValueError if a sampling weight cannot go with these columns."""
    if any(isinstance(column, Coordinate) for column in columns):
        raise _needs_bounds(weight)
    named = [column.name for column in columns if not isinstance(column, WeightColumn)]
    if weight.name in named:
        raise InputValueError(f"duplicate column names in the schema: {weight.name}")
    if finding := [column.name for column in columns if isinstance(column, Categorical) and column.finds_levels]:
        raise InputValueError(
            f"column '{finding[0]}' has levels='discover', which a release with the sampling weight '{weight.name}' does not "
            "find: list its levels"
        )
    effects = weight.design_effect if isinstance(weight.design_effect, Mapping) else {}
    if unknown := [name for name in effects if name not in named]:
        raise InputValueError(
            f"design_effect of '{weight.name}' names {shown(unknown[0])}, which is not a column.{meant(unknown[0], named)}"
        )


def _source_of(column: Column | SamplingWeight) -> str:
    return column.source or column.name


def _with_missing_values(column: Any, of_table: MarkedMissing) -> Any:
    """Return a column with the table's missing values, unless it states its own."""
    if (
        not of_table
        or not isinstance(column, Numeric | Date | Categorical | Boolean | SamplingWeight)
        or column.missing_values is not None
    ):
        return column
    values = of_table
    if isinstance(column, Categorical):
        values = tuple(value for value in of_table if column.folded(as_text(value)) not in column.spellings[0])
    if isinstance(column, Boolean):
        values = tuple(value for value in of_table if value not in column.codes)
    return replace(column, missing_values=values)


def _stated(column: SchemaColumn | SamplingWeight, of_table: MarkedMissing) -> SchemaColumn | SamplingWeight:
    """Return a column without the missing values that it has of the table."""
    if not of_table or isinstance(column, Coordinate | DerivedColumn) or column.missing_values is None:
        return column
    plain = replace(column, missing_values=None)
    return plain if _with_missing_values(plain, of_table) == column else column


def _repeated(names: Sequence[str]) -> list[str]:
    return sorted(name for name, times in Counter(names).items() if times > 1)


def require_schema(schema: object) -> None:
    """Raise TypeError unless ``schema`` is a schema."""
    if not isinstance(schema, Schema):
        raise wrong_type("schema", "a dpmoments.Schema", schema)


def derived_values(schema: Schema, values: FloatArray) -> FloatArray:
    """Return feature values, shape (n, d), with the derived features computed from the others.

    ``values``, shape (n, d), are in original units and schema order; derived features are overwritten. A Boolean is 0
    or 1, a categorical's features are 1 at the level and 0 elsewhere, and NaN makes NaN.

    >>> from dpmoments import Numeric
    >>> schema = Schema(Power("age", 2), Numeric("age", 0, 100), Boolean("smoker"), Product("age", "smoker"))
    >>> derived_values(schema, np.array([[np.nan, 50.0, 1.0, np.nan], [np.nan, 130.0, 0.0, np.nan]]))
    array([[2.50e+03, 5.00e+01, 1.00e+00, 5.00e+01],
           [1.69e+04, 1.30e+02, 0.00e+00, 0.00e+00]])
    """
    filled: FloatArray = np.array(values, dtype=np.float64)
    columns, n_features = schema.columns_with_slices, schema.n_features
    indices = {column.name: index for column, index in columns}
    if filled.ndim != 2 or filled.shape[1] != n_features:
        raise InputValueError(f"values must have shape (n, {n_features}), one column per feature, got {filled.shape}")
    for column in schema.columns:
        if isinstance(column, DerivedColumn) and not isinstance(column, MissingIndicator):
            filled[:, indices[column.name]] = column.values(
                [filled[:, indices[name]] for name in column.stated.factors]
            )
    return filled
