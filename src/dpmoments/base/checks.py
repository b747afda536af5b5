"""Checks of arguments that many functions share, one for each kind of mistake."""

from __future__ import annotations

import math
from collections.abc import Collection, Iterable
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.base.errors import InputValueError, closest, of_column, out_of_range, shown
from dpmoments.base.values import FloatArray, is_finite_number


def check_probability(parameter: str, value: float) -> None:
    """Raise ValueError unless a number is above 0 and below 1."""
    _require(_is_real(value) and 0.0 < value < 1.0, parameter, value, "a probability, above 0 and below 1")


def check_positive(parameter: str, value: float) -> None:
    """Raise ValueError unless a number is finite and above 0."""
    _require(_is_real(value) and 0.0 < value < math.inf, parameter, value, "a positive finite number")


def check_not_negative(parameter: str, value: float) -> None:
    """Raise ValueError unless a number is finite, and 0 or above."""
    _require(_is_real(value) and 0.0 <= value < math.inf, parameter, value, "finite and not negative")


def check_at_least(parameter: str, value: Any, least: int = 1) -> None:
    """Raise ValueError unless a number is whole, and ``least`` or more."""
    _require(is_whole(value) and value >= least, parameter, value, f"a whole number, {least} or more")


def check_between(parameter: str, value: float, least: float, most: float) -> None:
    """Raise ValueError unless a number is finite and in a range."""
    expected = f"at least {least:g}" if most == math.inf else f"between {least:g} and {most:g}"
    _require(_is_real(value) and least <= value <= most, parameter, value, expected)


def check_one_of(parameter: str, value: object, choices: Collection[Any], *, column: str = "") -> None:
    """Raise ValueError unless a value is one of the choices."""
    if value not in tuple(choices):  # a dictionary would ask for the value's hash, which a list has not
        raise not_one_of(parameter, value, choices, column=column)


def not_one_of(parameter: str, value: object, choices: Iterable[Any], *, column: str = "") -> InputValueError:
    """Return the error of a value that is not one of the choices."""
    known = [str(choice) for choice in choices]
    use = " or ".join(filter(None, [", ".join(f"'{choice}'" for choice in known[:-1]), f"'{known[-1]}'"]))
    close = closest(value, known)
    question = f" (did you mean '{close}'?)" if close else ""
    return InputValueError(f"{of_column(column)}{parameter}={shown(value)}: use {use}{question}")


def check_finite(parameter: str, values: npt.NDArray[Any]) -> None:
    """Raise ValueError if an array holds NaN or infinity."""
    if not np.isfinite(values).all():
        raise InputValueError(f"{parameter} holds NaN or infinity: use finite numbers")


def check_vector(parameter: str, values: npt.NDArray[Any]) -> None:
    """Raise ValueError unless an array is a vector of finite numbers, not empty."""
    if values.ndim != 1 or values.size == 0:
        raise InputValueError(f"{parameter} has shape {values.shape}: give a vector with at least one entry")
    check_finite(parameter, values)


def symmetric_part(matrix: npt.ArrayLike, parameter: str = "matrix", tolerance: float = 1e-9) -> FloatArray:
    """Return (M + Mᵀ)/2, shape (d, d), of a square, finite M that is nearly symmetric."""
    # Up to `tolerance` of its largest entry.
    array = np.asarray(matrix, dtype=np.float64)
    if array.ndim != 2 or array.shape[0] != array.shape[1] or array.size == 0:
        raise InputValueError(f"{parameter} has shape {array.shape}: give a square matrix, (d, d)")
    check_finite(parameter, array)
    half = 0.5 * array
    if np.abs(half - half.T).max() > tolerance * np.abs(half).max():
        raise InputValueError(f"{parameter} is not symmetric: pass (M + Mᵀ)/2 if the difference is intended")
    return np.asarray(half + half.T, dtype=np.float64)


def is_whole(value: object) -> bool:
    """Return True for an integer that is not a Boolean."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_real(value: object) -> bool:
    return is_finite_number(value.item() if isinstance(value, np.generic) else value)


def _require(holds: bool, parameter: str, value: object, expected: str) -> None:
    if not holds:
        raise out_of_range(parameter, value, expected)
