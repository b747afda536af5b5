"""The public bound on the norm of an encoded row: what it may be, and whether it is below what the columns allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Literal

import numpy as np

from dpmoments.plain_values import shown
from dpmoments.schema.columns import Coordinate, Numeric
from dpmoments.schema.derived import SchemaColumn
from dpmoments.schema.numeric import LARGEST_BOUND

__all__ = ["checked_row_norm", "may_be_shortened"]


def checked_row_norm(columns: Sequence[SchemaColumn], row_norm: float | Literal["default"] | None) -> float | None:
    """The bound that a schema of these columns has: √(number of columns) by default and at most; None where nothing bounds a row.

    Raises
    ------
    ValueError
        If it is not positive and finite, or is given where columns have scales in place of bounds, or is not given where
        coordinates need it.
    TypeError
        If it is not a number.

    Examples
    --------
    >>> columns = [Numeric("a", 0, 1), Numeric("b", 0, 1), Numeric("c", 0, 1), Numeric("d", 0, 1)]
    >>> checked_row_norm(columns, "default"), checked_row_norm(columns, 1.5), checked_row_norm(columns, 7)
    (2.0, 1.5, 2.0)
    """
    unbounded = any(isinstance(column, Coordinate) for column in columns)
    if rough := [column.name for column in columns if isinstance(column, Numeric) and column.scale is not None]:
        if unbounded:
            raise ValueError(
                f"column {rough[0]!r} has a scale and there are coordinates, of which nothing is known: give every column "
                "bounds or a scale"
            )
        if row_norm not in ("default", None):
            raise ValueError(
                f"row_norm={shown(row_norm)} and column {rough[0]!r} has a scale, in place of bounds: nothing bounds a "
                "row, so leave row_norm out"
            )
        return None
    longest = math.sqrt(len(columns))
    if row_norm == "default":
        if unbounded:
            raise ValueError("coordinates have no bounds of their own: give row_norm, or use Schema.unit_ball(d)")
        return longest
    if row_norm is None:
        if not unbounded:
            raise ValueError("row_norm=None is for coordinates without bounds: bounded columns bound the row")
        return None
    if isinstance(row_norm, bool) or not isinstance(row_norm, int | float | np.integer | np.floating):
        raise TypeError(f"row_norm must be a number, got {type(row_norm).__name__}")
    bound = row_norm if isinstance(row_norm, int) else float(row_norm)
    if not 1.0 / LARGEST_BOUND <= bound <= LARGEST_BOUND:
        raise ValueError(
            f"row_norm={shown(bound)}: the bound on a row's norm must be positive and finite, from {1.0 / LARGEST_BOUND:g} to "
            f"{LARGEST_BOUND:g}"
        )
    return float(bound) if unbounded else min(float(bound), longest)


def may_be_shortened(columns: Sequence[SchemaColumn], row_norm: float | None) -> bool:
    """Whether some row can be longer than the row norm, and is shortened to it: bounds alone do not keep it within."""
    free = any(isinstance(column, Coordinate) for column in columns)
    return row_norm is not None and (free or row_norm < math.sqrt(len(columns)) * (1.0 - 1e-12))
