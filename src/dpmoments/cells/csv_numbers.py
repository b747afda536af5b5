"""Text cells of delimited files as numbers, by the rules by which a release reads such a file."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from dpmoments.array_types import BoolArray, FloatArray
from dpmoments.schema.columns import Boolean, Coordinate, Numeric

__all__ = ["FALSE_TEXT", "MISSING_TEXT", "TRUE_TEXT", "csv_numbers"]

MISSING_TEXT = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "none", "n/a", "#N/A", "-NaN", "-nan"]
TRUE_TEXT = ["true", "True", "TRUE", "1", "1.0", "t", "T"]
FALSE_TEXT = ["false", "False", "FALSE", "0", "0.0", "f", "F"]
NUMBER = r"(?i)^[+-]?(([0-9]+\.?[0-9]*|\.[0-9]+)(e[+-]?[0-9]+)?|inf|infinity|nan(\([a-z0-9_]*\))?)$"
"""What Arrow's reader takes as a number, blanks and tabs around it aside."""


def csv_numbers(texts: pa.Array, column: Numeric | Boolean | Coordinate) -> tuple[FloatArray, BoolArray]:
    """Cells as float64, shape (n,), and which of them are no number, shape (n,).

    Parameters
    ----------
    texts : pyarrow.Array of text, length n
    column : Numeric, Boolean or Coordinate

    Returns
    -------
    values : ndarray
        NaN where a cell is missing or no number.
    unreadable : ndarray of bool
        Cells at which a release from a file stops with an error.

    Examples
    --------
    >>> csv_numbers(pa.array([" 1.5", "n/a", "1,5", "1e400"]), Numeric("height", 0, 2.5))
    (array([1.5, nan, nan, inf]), array([False, False,  True, False]))
    """
    missing = pc.or_(pc.is_null(texts), pc.is_in(texts, value_set=pa.array(MISSING_TEXT, texts.type)))
    if isinstance(column, Boolean):
        true, false = (pc.is_in(texts, value_set=pa.array(known, texts.type)) for known in (TRUE_TEXT, FALSE_TEXT))
        read = pc.or_(true, false)
        numbers = pc.cast(pc.cast(true, pa.uint8()), pa.float64())
    else:
        texts = pc.utf8_trim(texts, " \t")
        read = pc.match_substring_regex(texts, NUMBER)
        numbers = pc.cast(pc.if_else(pc.fill_null(read, False), texts, pa.scalar("nan", texts.type)), pa.float64())
    given = ~_flags(missing)
    known = _flags(read) & given
    return np.where(known, numbers.to_numpy(zero_copy_only=False), np.nan), given & ~known


def _flags(cells: pa.Array) -> BoolArray:
    found: BoolArray = pc.fill_null(cells, False).to_numpy(zero_copy_only=False).astype(bool)
    return found
