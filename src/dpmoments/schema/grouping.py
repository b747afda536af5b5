"""What a schema says of groups of rows: which they are, and what is released of each."""

from __future__ import annotations

from dpmoments.foundation.values import shown
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.derived import DerivedColumn
from dpmoments.schema.schema import Schema

__all__ = ["Level", "grouping_column", "levels_of", "schema_of_groups"]

Level = str | int | bool


def grouping_column(schema: Schema, by: str) -> Categorical | Boolean:
    """The column that divides the rows into groups.

    Raises
    ------
    ValueError
        If the schema has no such column, or it is one of numbers.

    Examples
    --------
    >>> grouping_column(Schema(Boolean("smoker"), Categorical("region", ["north", "south"])), "region").levels
    ('north', 'south')
    """
    found = next((column for column in schema.columns if column.name == by), None)
    divides = [column.name for column in schema.columns if isinstance(column, Categorical | Boolean)]
    words = f"use {' or '.join(map(repr, divides))}" if divides else "the schema has no such column"
    if found is None:
        raise ValueError(
            f"by={shown(by)} is no column of the schema: groups are the levels of one of its columns, {words}"
        )
    if not isinstance(found, Categorical | Boolean):
        raise ValueError(
            f"by={shown(by)} is a {found.kind} column, and groups are the levels of a Categorical or Boolean one: {words}, or "
            "cut the numbers into levels before"
        )
    return found


def levels_of(column: Categorical | Boolean) -> tuple[Level, ...]:
    """The levels of a column that divides rows, in the schema's order; those of a Boolean are False and True."""
    return column.levels if isinstance(column, Categorical) else (False, True)


def schema_of_groups(schema: Schema, by: str) -> Schema:
    """The schema without the column that divides the rows, and without products with it: in a group they say nothing new.

    A bound on the row norm that was given stays; the default one becomes that of the columns left.

    Raises
    ------
    ValueError
        As :func:`grouping_column`, or if no other column is left.

    Examples
    --------
    >>> from dpmoments import Product
    >>> smokers = Schema(Boolean("smoker"), Categorical("region", ["north", "south"]), Product("smoker", "region"))
    >>> schema_of_groups(smokers, "region").feature_names
    ('smoker',)
    """
    grouping_column(schema, by)
    columns = [
        column
        for column in schema.columns
        if column.name != by and not (isinstance(column, DerivedColumn) and by in column.stated.factors)
    ]
    if not columns:
        raise ValueError(f"by={shown(by)} is the schema's only column: describe another, of which groups have moments")
    # A bound of its own is kept; one that is the default of more columns comes out as the default of these.
    return Schema(*columns, row_norm="default" if schema.row_norm is None else schema.row_norm)
