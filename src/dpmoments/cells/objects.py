"""Cells of object columns (Python objects in NumPy arrays and pandas frames), one by one.

A type inferred for a whole block would let one row's cell decide how another's is read.
"""

from __future__ import annotations

import math
from decimal import Decimal
from numbers import Real
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.table_libraries import pa

__all__ = ["NO_LEVEL", "is_missing", "object_numbers", "object_texts"]

ObjectArray = npt.NDArray[np.object_]


def object_numbers(cells: ObjectArray, name: str) -> npt.NDArray[np.float64]:
    """Numbers as float64, shape (n,); missing cells as NaN.

    Parameters
    ----------
    cells : ndarray of objects, shape (n,)
        Python, NumPy or decimal numbers, booleans; None, NaN or a missing value of pandas where missing.
    name : str
        The column's name, for the message.

    Raises
    ------
    TypeError
        If a cell is anything else.

    Examples
    --------
    >>> object_numbers(np.array([1, 2.5, None, True], dtype=object), "age")
    array([1. , 2.5, nan, 1. ])
    """
    return np.fromiter((_number(cell, name) for cell in cells), np.float64, len(cells))


NO_LEVEL = "\0 no level"
"""Text of a cell that can be no level."""


def object_texts(cells: ObjectArray, name: str, *, integers: bool) -> Any:
    """Text of each cell as a pyarrow large_string array of length n, null where missing.

    Parameters
    ----------
    cells : ndarray of objects, shape (n,)
        Strings or integers; None, NaN or a missing value of pandas where missing.
    name : str
        The column's name, for the message.
    integers : bool
        Whether the column's levels are integers; floats such as 3.0 are then allowed.

    Raises
    ------
    TypeError
        If a cell is anything else.

    Examples
    --------
    >>> object_texts(np.array(["a", 3, None], dtype=object), "region", integers=False).to_pylist()
    ['a', '3', None]
    """
    return pa.array([_text(cell, name, integers) for cell in cells], pa.large_string())


def _number(cell: object, name: str) -> float:
    if is_missing(cell):
        return math.nan
    if isinstance(cell, Real | Decimal | np.bool_):
        try:
            return float(cell)
        except OverflowError:  # an integer beyond the range of float64
            return math.inf if cell > 0 else -math.inf  # type: ignore[operator]
    raise TypeError(
        f"column {name!r} holds objects, and one of them is not a number: convert the column to numbers first, or describe "
        "it as Categorical"
    )


def _text(cell: object, name: str, integers: bool) -> str | None:
    if is_missing(cell):
        return None
    if isinstance(cell, str):
        return cell.encode(errors="replace").decode()  # half of a surrogate pair is in no level
    if isinstance(cell, int | np.integer) and not isinstance(cell, bool):
        # Python refuses to write out integers of thousands of digits, and none of them is a level.
        return str(cell) if abs(int(cell)) < 10**1000 else NO_LEVEL
    if isinstance(cell, float | np.floating):
        if integers:
            return repr(float(cell) + 0.0)  # −0.0 becomes 0.0
        # Whole numbers as their integers, as in a column of floats; no other number is a level.
        number = float(cell)
        return str(int(number)) if number.is_integer() and abs(number) < 2.0**63 else NO_LEVEL
    raise TypeError(
        f"column {name!r} holds objects, and one of them is neither text nor an integer: convert the column to text first, "
        "or describe it as Numeric or Boolean"
    )


def is_missing(cell: object) -> bool:
    """Whether a cell of an object column holds nothing."""
    if cell is None or type(cell).__name__ in ("NAType", "NaTType"):
        return True
    if isinstance(cell, Decimal):
        return cell.is_nan()
    return isinstance(cell, float | np.floating) and bool(np.isnan(cell))
