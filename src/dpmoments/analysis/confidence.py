"""Levels of confidence, as analyses are asked for them."""

from __future__ import annotations

from dpmoments.plain_values import is_finite_number, shown

__all__ = ["checked_confidence"]


def checked_confidence(level: float) -> float:
    """The level, if it can be meant as one.

    Raises
    ------
    ValueError
        If it is not a number from 0.5 up to, not including, 1: below 0.5 it is what statsmodels calls ``alpha``.

    Examples
    --------
    >>> checked_confidence(0.05)
    Traceback (most recent call last):
    ...
    ValueError: level=0.05 must be a confidence such as 0.95, at least 0.5 and below 1 (it is 1 − alpha of statsmodels)
    """
    if not (is_finite_number(level) and 0.5 <= level < 1.0):
        raise ValueError(
            f"level={shown(level)} must be a confidence such as 0.95, at least 0.5 and below 1 (it is 1 − alpha of statsmodels)"
        )
    return float(level)
