"""Constraints that the encoding puts on any table's moments.

They follow from the schema only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from dpmoments.base.errors import InputValueError, listed, meant, shown
from dpmoments.base.values import FloatArray
from dpmoments.schema.columns import OTHER, Boolean, Categorical, NameColumn
from dpmoments.schema.derived import DerivedColumn
from dpmoments.schema.encoding import may_be_shortened
from dpmoments.schema.schema import Schema


@dataclass(frozen=True)
class LevelBlock:
    """One-hot features ``start`` to ``stop`` (exclusive) of a categorical.

    At most one is 1 in a row, the others 0.

    If ``complete``, exactly one is 1 in every row, so the level counts sum to the number of rows. Not so if missing or
    other values set all features to 0 (``"zero"``).
    """

    start: int
    stop: int
    complete: bool

    @property
    def features(self) -> slice:
        return slice(self.start, self.stop)

    @property
    def size(self) -> int:
        return self.stop - self.start


@dataclass(frozen=True, eq=False)
class Constraints:
    """Constraints that hold for every table of a schema, in column units.

    A column's encoding spans a range of 1 or 2.

    Column units are the mechanisms' unit-ball units times the row norm: u = (value − offset)/unit. With u the rows, s =
    Σu and G = Σuuᵀ:

    - one-hot blocks: u_l ∈ {0, 1}, so G_ll = s_l ≥ 0; G_lm = 0 for two levels of one block; Σ_l s_l ≤ n and
      0 ≤ G_lm ≤ min(s_l, s_m) for levels of two blocks. In a complete block Σ_l u_l = 1, so Σ_l s_l = n, and Σ_l G_cl =
      s_c for every other feature c;
    - Booleans ("flags"): u is −1 or 1, so G_bb = n. Not with ``missing="center"``, which gives a third value, nor
      without a
      released mean. A Boolean column also accepts fractions, which no schema foretells: then G_bb < n, so users of the
      equation must check that it can hold. The product of two flags is a flag. The product of a flag and a categorical
      is not treated as a one-hot block, because fractions in it would go unnoticed;
    - bounds: lower ≤ s_c/n ≤ upper, and the same for the mean over the rows of any one level.

    The first two are not claimed if the row norm is below its default: longer rows are then scaled down.
    """

    n_features: int
    # column units per unit-ball unit; None without a bound on rows (the units are then the same)
    row_norm: float | None
    # (d,), the same for each feature: `row_norm`, unless typical ranges give some columns a larger share of the ball
    units: FloatArray
    blocks: tuple[LevelBlock, ...]
    flags: tuple[int, ...]  # features of Booleans whose values are all true or false
    lower: FloatArray  # with `upper`: (d,), bounds of every feature in column units; infinite without bounds
    upper: FloatArray

    @classmethod
    def of(cls, schema: Schema, *, mean: bool) -> Constraints:
        """Return the constraints of a schema whose rows are encoded with or without the mean."""
        encoding = schema.encoding(mean=mean)
        lower, upper = schema.feature_bounds
        blocks: list[LevelBlock] = []
        flags: list[int] = []
        start = 0
        for column in schema.columns:
            stop = start + len(column.feature_names)
            if isinstance(column, Categorical):
                blocks.append(LevelBlock(start, stop, column.complete))
            elif mean and isinstance(column, Boolean | DerivedColumn) and column.is_flag:
                flags.append(start)
            start = stop
        rows_may_be_scaled = may_be_shortened(schema.columns, schema.row_norm)
        return cls(
            n_features=start,
            row_norm=schema.row_norm,
            units=np.ones(start) if schema.row_norm is None else encoding.scale / encoding.unit,
            blocks=() if rows_may_be_scaled else tuple(blocks),
            flags=() if rows_may_be_scaled else tuple(flags),
            lower=(lower - encoding.offset) / encoding.unit,
            upper=(upper - encoding.offset) / encoding.unit,
        )

    @property
    def counts(self) -> bool:
        """True if some feature is exactly 0 or 1, so that moments contain row counts."""
        return bool(self.blocks or self.flags)

    @property
    def certain(self) -> tuple[int, ...]:
        """Features that are the same in every row: the only level of a complete block."""
        return tuple(block.start for block in self.blocks if block.complete and block.size == 1)


# What a schema says of groups of rows: which they are, and what is released of each.

Level = str | int | bool


def grouping_column(schema: Schema, by: str) -> Categorical | Boolean:
    """Return the column that divides the rows into groups."""
    grouping = next((column for column in schema.columns if column.name == by), None)
    divides = [column.name for column in schema.columns if isinstance(column, Categorical | Boolean)]
    groups = "Groups are levels of a column, and the schema has no such column."
    if divides:
        groups = f"Groups are the levels of a categorical or Boolean column: {listed(divides)}."
    if grouping is None:
        name = by if isinstance(by, str) else shown(by)
        raise InputValueError(f"'{name}' is not a column of the schema.{meant(name, divides, groups)}")
    if not isinstance(grouping, Categorical | Boolean):
        raise InputValueError(
            f"'{grouping.name}' is {grouping.kind}. {groups} Bands of numbers must be made before the release."
        )
    return grouping


def levels_of(column: Categorical | Boolean) -> tuple[Level, ...]:
    """Return the levels of a grouping column in schema order."""
    # Those of a Boolean are False and True.
    return tuple(column.levels) if isinstance(column, Categorical) else (False, True)


def finding_columns(schema: Schema) -> tuple[Categorical, ...]:
    """Return the columns whose levels a release finds."""
    return tuple(column for column in schema.table_columns if isinstance(column, Categorical) and column.finds_levels)


def require_levels(schema: Schema) -> None:
    """Raise ValueError if levels of a column are still to be found."""
    for column in finding_columns(schema):
        raise InputValueError(
            f"column '{column.name}' has levels='discover', which only a release of moments finds: list its levels. After such a "
            "release they are public, in the schema of the release"
        )


def schema_of_names(schema: Schema) -> Schema:
    """Return the schema of the pass that finds levels, without derived features."""
    finding = finding_columns(schema)
    columns = [NameColumn.of(column) if column in finding else column for column in schema.table_columns]
    return schema.with_columns(columns, row_norm=False)


def schema_with_found(schema: Schema, names: Mapping[str, Sequence[str]]) -> Schema:
    """Return the schema with the levels found.

    A column without any is left out, with its products. A name with which a feature would be called as another one counts as
    not found.
    """
    taken = {name for column in schema.columns if column.name not in names for name in column.feature_names}
    taken |= {column.name for column in schema.columns}
    kept: dict[str, Sequence[str]] = {}
    for name, levels in names.items():
        kept[name] = [level for level in levels if f"{name}={level}" not in taken]
        taken |= {f"{name}={level}" for level in (*kept[name], OTHER)}
    lost = {name for name, levels in kept.items() if not levels}
    columns = [
        column.with_found(kept[column.name]) if isinstance(column, Categorical) and column.name in kept else column
        for column in schema.without_indicators.columns
        if column.name not in lost and not (isinstance(column, DerivedColumn) and lost & {*column.stated.factors})
    ]
    return schema.with_columns(columns, row_norm=schema.row_norm is not None).with_indicators


def schema_of_groups(schema: Schema, by: str) -> Schema:
    """Return the schema without the grouping column and its products.

    They are redundant within a group.

    A stated row-norm bound stays; the default one becomes that of the remaining columns.
    """
    grouping_column(schema, by)
    columns = [
        column
        for column in schema.columns
        if column.name != by and not (isinstance(column, DerivedColumn) and by in column.stated.factors)
    ]
    if not columns:
        raise InputValueError(
            f"by={shown(by)} is the schema's only column: add another, whose moments each group will have"
        )
    # A bound of its own is kept; one that is the default of more columns comes out as the default of these.
    weight = schema.sampling_weight  # no group has the whole population
    if weight is not None:
        weight = replace(weight, population=None, sample_size=None)
    return schema.with_columns(columns, row_norm=schema.row_norm is not None, weight=weight)


def schema_of_tables(schema: Schema, tables: Sequence[Sequence[str]]) -> Schema:
    """Return the schema of the columns of contingency tables, in the schema's order."""
    wanted = {grouping_column(schema, name).name for by in tables for name in by}
    return schema.with_columns([column for column in schema.columns if column.name in wanted], row_norm=False)


def require_unweighted(schema: Schema) -> None:
    """Raise ValueError if rows have sampling weights, which only a release of moments takes."""
    if schema.sampling_weight is not None:
        raise InputValueError(
            f"'{schema.sampling_weight.name}' is a sampling weight, and only releases of moments are weighted: use release(), "
            "whose answers have weighted means and shares, or leave the weight out of the schema"
        )


def require_mean_of_weighted(schema: Schema, *, mean: bool) -> None:
    """Raise ValueError if rows have sampling weights and no mean is released."""
    if schema.sampling_weight is not None and not mean:
        refused = f"rows weighted by '{schema.sampling_weight.name}' are released with their mean: "
        raise InputValueError(f"{refused}leave mean=False out", shell=f"{refused}leave --no-mean out")


def require_no_available(schema: Schema) -> None:
    """Raise ValueError if a column needs the number of its present values for a mean."""
    name = next((column.name for column in schema.table_columns if column.missing == "available"), None)
    if name is not None:
        raise InputValueError(
            f"column '{name}' has missing='available', which needs the number of present values: a release of moments "
            "has it, and a mean-only release does not. Use release() or, in the schema, missing='drop' or 'fill'"
        )


def may_lack_levels(schema: Schema) -> bool:
    """Return True if a kept row may have no level in a Categorical or Boolean column.

    >>> may_lack_levels(Schema(Boolean("smoker"))), may_lack_levels(Schema(Boolean("smoker", missing="center")))
    (False, True)
    """
    return any(
        column.missing in ("zero", "center", "available")
        or (isinstance(column, Categorical) and column.other == "zero")
        for column in schema.columns
        if isinstance(column, Categorical | Boolean)
    )


def every_row_has_levels(schema: Schema) -> bool:
    """Return True if every row has a level in each column, and none is dropped."""
    return not (may_lack_levels(schema) or schema.drops_rows)
