"""Cleaning rules: public statements on how a table writes its values, one by one."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TypeGuard

import numpy as np

from dpmoments.foundation.checks import check_between
from dpmoments.foundation.errors import InputTypeError, InputValueError, shown, wrong_type
from dpmoments.foundation.values import check_text

MarkedMissing = tuple[str | int | float, ...]
"""Values that mean a missing one: texts as they are written, and numbers."""


def is_number(value: object) -> TypeGuard[int | float]:
    """Return True for a finite int or float that is not a Boolean."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


MAX_WEIGHT = 1024.0
"""Max weight of a column or of means, and of its reciprocal."""


def checked_weight(column: str, weight: object) -> float | None:
    """Return a column's weight, from 1/1024 to 1024; None if it is not given.

    >>> checked_weight("income", 4)
    4.0
    """
    if weight is None:
        return None
    if isinstance(weight, bool) or not isinstance(weight, int | float | np.integer | np.floating):
        raise wrong_type("weight", "a number", weight, column=column)
    if not 1.0 / MAX_WEIGHT <= weight <= MAX_WEIGHT:
        raise InputValueError(
            f"column '{column}': weight={shown(weight)} must be from 1/{MAX_WEIGHT:g} to {MAX_WEIGHT:g}; 1 is "
            "the default"
        )
    return float(weight)


def checked_mean_weight(weight: object) -> float:
    """Return the weight of means, from 1/1024 to 1024.

    >>> checked_mean_weight(4)
    4.0
    """
    if isinstance(weight, bool) or not isinstance(weight, int | float | np.integer | np.floating):
        raise wrong_type("mean_weight", "a number", weight)
    check_between("mean_weight", float(weight), 1.0 / MAX_WEIGHT, MAX_WEIGHT)
    return float(weight)


def checked_marks(column: str, values: object, option: str = "missing_values") -> MarkedMissing | None:
    """Return a list of texts and numbers as a tuple; None if it is not given.

    >>> checked_marks("pay", [-9, "NA", ""])
    (-9, 'NA', '')
    """
    if values is None:
        return None
    if isinstance(values, str) or not isinstance(values, Sequence | np.ndarray):
        raise InputTypeError(f"{_which(column)}{option}={shown(values)} must be a list of texts and numbers")
    plain = tuple(value.item() if isinstance(value, np.generic) else value for value in values)
    for value in plain:
        if isinstance(value, str):
            check_text(value, option, column or None)
        elif not is_number(value):
            raise InputTypeError(
                f"{_which(column)}{option} holds {shown(value)}: it must be a list of texts and finite numbers (in "
                "a file, quote true, false and null where they are text)"
            )
    return plain


def folded(text: str, *, strip: bool, casefold: bool) -> str:
    """Return a text without surrounding spaces, and in one case, as stated.

    >>> folded(" Große ", strip=True, casefold=True)
    'grosse'
    """
    text = text.strip() if strip else text
    return text.casefold() if casefold else text


def checked_aliases(
    column: str, aliases: object, levels: Sequence[str | int]
) -> dict[str | int, tuple[str | int, ...]]:
    """Return the other spellings of levels: {level: (spelling, …)}."""
    if aliases is None:
        return {}
    if not isinstance(aliases, Mapping):
        raise InputTypeError(
            f"column '{column}': aliases={shown(aliases)} must map levels to lists of their other spellings: {{"
            '"east": ["E", "Est"]}'
        )
    by_text = {str(level): level for level in levels}  # a file of JSON has no integers for keys
    result: dict[str | int, tuple[str | int, ...]] = {}
    for key, spellings in aliases.items():
        level = by_text.get(str(key))
        if level is None or isinstance(key, bool):
            raise InputValueError(f"column '{column}': aliases name {shown(key)}, which is not one of its levels")
        if isinstance(spellings, str) or not isinstance(spellings, Sequence | np.ndarray):
            raise InputTypeError(
                f"column '{column}': the aliases of {shown(level)} must be a list of texts: [{shown(spellings)}]"
            )
        plain = tuple(value.item() if isinstance(value, np.generic) else value for value in spellings)
        for spelling in plain:
            if isinstance(spelling, bool) or not isinstance(spelling, str | int):
                raise InputTypeError(
                    f"column '{column}': the aliases of {shown(level)} must be texts or integers, got {shown(spelling)}"
                )
            if isinstance(spelling, str):
                check_text(spelling, "aliases", column)
        result[level] = plain
    return result


def spellings_of(
    column: str,
    levels: Sequence[str | int],
    aliases: Mapping[str | int, Sequence[str | int]],
    missing_values: MarkedMissing,
    *,
    strip: bool,
    casefold: bool,
) -> tuple[dict[str, int], frozenset[str]]:
    """Return the texts of levels with the levels' indices, and the texts of missing values."""
    # Raise if a spelling means two levels, or a level and a missing value.
    result: dict[str, int] = {}
    for index, level in enumerate(levels):
        for spelling in (level, *aliases.get(level, ())):
            text = folded(str(spelling), strip=strip, casefold=casefold)
            if result.setdefault(text, index) != index:
                other = levels[result[text]]
                raise InputValueError(
                    f"column '{column}': {shown(str(spelling))} would be read as the level {shown(other)} and as "
                    f"{shown(level)}: levels, aliases, strip and casefold must leave every level apart"
                )
    nothing = frozenset(folded(_as_text(value), strip=strip, casefold=casefold) for value in missing_values)
    if both := sorted(nothing & result.keys()):
        raise InputValueError(
            f"column '{column}': {shown(both[0])} is both in missing_values and a spelling of the level "
            f"{shown(levels[result[both[0]]])}"
        )
    return result, nothing


def _as_text(value: str | int | float) -> str:
    """Format a number as the text of a table: whole ones without a decimal point."""
    if isinstance(value, float) and value.is_integer() and abs(value) < 2.0**63:
        return str(int(value))
    return str(value)


def texts_of(values: MarkedMissing) -> tuple[str, ...]:
    """Return the texts by which these values are found in a column of text.

    >>> texts_of((-9, "NA", 99.5))
    ('-9', '-9.0', 'NA', '99.5')
    """
    texts: list[str] = []
    for value in values:
        text = _as_text(value)
        texts += [text, f"{text}.0"] if is_number(value) and text.lstrip("-").isdigit() else [text]
    return tuple(dict.fromkeys(texts))


def numbers_of(values: MarkedMissing) -> tuple[float, ...]:
    """Return the numbers among values."""
    return tuple(float(value) for value in values if is_number(value))


def _which(column: str) -> str:
    return f"column {column!r}: " if column else ""
