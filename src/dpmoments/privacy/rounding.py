"""Exact numbers as floats, rounded to the safe side; losses in words that never say less."""

from __future__ import annotations

import math
from decimal import ROUND_CEILING, Context
from fractions import Fraction


def rounded_up(value: Fraction) -> float:
    """The least float that is not below ``value``.

    Examples
    --------
    >>> rounded_up(Fraction(1, 3)) > Fraction(1, 3)
    True
    """
    rounded = float(value)
    return rounded if Fraction(rounded) >= value else math.nextafter(rounded, math.inf)


def rounded_down(value: Fraction) -> float:
    """The greatest float that is not above ``value``."""
    return -rounded_up(-value)


def no_less(loss: float, digits: int = 6) -> str:
    """A loss in so many significant digits, never less than it is.

    Examples
    --------
    >>> no_less(0.1), no_less(1.0000049), no_less(1.00319e-6, 4)
    ('0.1', '1.00001', '1.004e-06')
    """
    # From the shortest decimal that is this float: 0.1 is not 0.100001.
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(loss)))
    return f"{float(rounded):.{digits}g}"
