"""Lossless conversion of values to JSON and back, without running code.

Checks of numbers and text in files.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from decimal import ROUND_CEILING, Context
from fractions import Fraction
from typing import Any, TypeAlias, TypeGuard

import numpy as np
import numpy.typing as npt

from dpmoments.base.errors import InputTypeError, InputValueError, of_column, shown

# Array types, bordered matrices, and the order of sizes.

FloatArray: TypeAlias = npt.NDArray[np.float64]
BoolArray: TypeAlias = npt.NDArray[np.bool_]
IntegerArray: TypeAlias = npt.NDArray[Any]
"""int64, or Python integers in an object array if int64 could overflow."""


ROUNDING = 1e-9
"""Relative difference up to which sizes count as equal: processors round differently."""


def bordered(corner: float, side: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return [[corner, sideᵀ], [side, matrix]], such as a Gram matrix with sums and a count."""
    return np.block([[np.array([[corner]]), side[None, :]], [side[:, None], matrix]])


def first_largest(sizes: FloatArray) -> IntegerArray:
    """Return the place of the largest size, the first of those equal but for rounding."""
    # Such as those of the two levels of a column: which of them is larger depends on the processor.
    largest = sizes.max(axis=-1, keepdims=True)
    return np.asarray(np.argmax(sizes >= largest - ROUNDING * np.abs(largest), axis=-1))


def directions_of(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the eigenvalues of a symmetric matrix, largest first, and its directions as rows."""
    # Any basis belongs to eigenvalues that are equal but for rounding, such as zeros: the features' order decides.
    eigenvalues, vectors = np.linalg.eigh(matrix)
    rounding = 256.0 * np.finfo(float).eps * np.abs(eigenvalues).max(initial=0.0)
    apart = np.flatnonzero(np.diff(eigenvalues) > rounding) + 1
    for equal in np.split(np.arange(len(eigenvalues)), apart):
        if len(equal) > 1:
            own = vectors[:, equal]
            vectors[:, equal] = own @ np.linalg.eigh(own.T @ (np.arange(len(own))[:, None] * own))[1]
    return eigenvalues[::-1], vectors.T[::-1]


def leading_positive(rows: FloatArray) -> FloatArray:
    """Return rows, (p, k), each times the sign of its largest entry."""
    leading = np.take_along_axis(rows, first_largest(np.abs(rows))[:, None], axis=1)
    return np.where(leading < 0.0, -rows, rows)


def largest_first(sizes: FloatArray) -> IntegerArray:
    """Return the order from the largest size down; equal ones but for rounding keep theirs."""
    mantissas, exponents = np.frexp(sizes)
    return np.argsort(-np.ldexp(np.round(mantissas * 2.0**30), exponents), kind="stable")


# Conversion to JSON and back.

_MAX_DEPTH = 128
"""Maximum nesting of lists and mappings: whatever is read can be written again."""
_ARRAY_TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")


def to_plain(value: Any) -> Any:
    """Convert a value to nested lists, dictionaries, strings and numbers that JSON can hold."""
    # Arrays, tuples and non-finite floats become dictionaries with one key that begins with a dollar sign; a mapping's
    # own keys that begin with a dollar sign get a second one. A value of any other type is kept as its text: refusing
    # it would lose a release whose budget is already spent.
    if isinstance(value, np.ndarray):
        array = value.astype(np.float64) if value.dtype == np.longdouble else value
        if array.dtype.name not in _ARRAY_TYPES:
            return to_plain(array.tolist())
        values = [to_plain(entry) for entry in array.ravel().tolist()]
        return {"$array": {"dtype": array.dtype.name, "shape": list(array.shape), "values": values}}
    if isinstance(value, np.generic):
        value = float(value) if isinstance(value, np.floating) else value.item()
    if isinstance(value, Mapping):
        names = {key: f"${key}" if str(key).startswith("$") else str(key) for key in value}
        return {names[key]: to_plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple):
        return {"$tuple": [to_plain(entry) for entry in value]}
    if isinstance(value, list):
        return [to_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": repr(float(value))}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def from_plain(value: Any, *, depth: int = 0) -> Any:
    """Invert :func:`to_plain`; ``depth`` is the nesting level of the value."""
    if not isinstance(value, list | dict):
        return value
    if depth > _MAX_DEPTH:
        raise InputValueError(f"it nests values more than {_MAX_DEPTH} deep")
    if isinstance(value, list):
        return [from_plain(entry, depth=depth + 1) for entry in value]
    tag = next(iter(value), "")
    if len(value) == 1 and tag.startswith("$") and not tag.startswith("$$"):
        held = value[tag]
        if tag == "$float" and held in ("nan", "inf", "-inf"):
            return float(held)
        if tag == "$tuple" and isinstance(held, list):
            return tuple(from_plain(held, depth=depth + 1))
        if tag == "$array" and isinstance(held, dict) and set(held) == {"dtype", "shape", "values"}:
            entries, dtype, shape = from_plain(held["values"], depth=depth + 1), held["dtype"], held["shape"]
            kind = bool if dtype == "bool" else float if dtype in ("float32", "float64") else int
            plain = isinstance(entries, list) and all(type(entry) is kind for entry in entries)
            with suppress(ArithmeticError, TypeError, ValueError), np.errstate(over="raise"):
                if plain and dtype in _ARRAY_TYPES and all(type(length) is int and length >= 0 for length in shape):
                    return np.array(entries, dtype=dtype).reshape(tuple(shape))
        raise InputValueError(f"a value is marked {shown(tag)} but is of another kind")
    return {
        key[1:] if key.startswith("$$") else key: from_plain(entry, depth=depth + 1) for key, entry in value.items()
    }


def is_finite_number(value: object) -> TypeGuard[int | float]:
    """Return True for an int or float that is finite as float64; Booleans are not numbers.

    >>> is_finite_number(3), is_finite_number(10**400), is_finite_number(True)
    (True, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= 2**1023 if isinstance(value, int) else math.isfinite(value)


def finite_numbers(values: object, length: int, name: str) -> FloatArray:
    """Convert a list from a file to an array of shape (length,)."""
    if not isinstance(values, list) or len(values) != length or not all(map(is_finite_number, values)):
        raise InputValueError(f"{name} must hold {length} finite numbers")
    return np.array(values, dtype=np.float64)


def require_known(given: Mapping[str, Any], known: Iterable[str], what: str) -> None:
    """Raise ValueError if ``what`` has unknown entries, TypeError if it is not a mapping."""
    if not isinstance(given, Mapping):
        raise InputTypeError(f"{what} must be a mapping")
    if unknown := sorted(set(given) - set(known), key=str):
        raise InputValueError(f"{what} has unknown entries {', '.join(map(shown, unknown))}")


# Checks of the names, rules and texts of columns of every kind.

_MAX_DESCRIPTION_LENGTH = 300
_MAX_LABEL_LENGTH = 200
"""In characters."""


def check_name(name: object) -> None:
    """Raise unless ``name`` is non-empty text that a file can hold."""
    if not isinstance(name, str) or not name:
        raise InputTypeError(f"a column's name is a non-empty string, got {shown(name)}")
    check_text(name, "name")


def check_text(text: str, parameter: str, column: str | None = None) -> None:
    """Raise unless a file can hold the ``text`` of a parameter."""
    # Checked here, because a failure to write the file of a release would come after its budget is spent.
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputValueError(
            f"{of_column(column)}{parameter}={shown(text)} is not valid Unicode text (it holds half of a surrogate pair)"
        ) from None


def check_label(parameter: str, text: object, named: str, noun: str, example: str) -> None:
    """Raise unless ``text`` is a short printable name."""
    if not isinstance(text, str):
        raise InputTypeError(f"{parameter} must be a text that names {named}, such as '{example}', got {shown(text)}")
    check_text(text, parameter)
    if not text.strip() or len(text) > _MAX_LABEL_LENGTH or not text.isprintable():
        raise InputValueError(
            f"{noun} must have 1 to {_MAX_LABEL_LENGTH} printable characters, such as '{example}', got {shown(text)}"
        )


def check_description(column: str, description: object) -> None:
    """Raise unless ``description`` is None or one line of printable text."""
    # Control characters, line ends and marks of writing direction could make a page or a terminal show something else.
    if description is None:
        return
    if not isinstance(description, str) or not description.strip():
        raise InputTypeError(f"column '{column}': description={shown(description)} must be a text, or left out")
    if len(description) > _MAX_DESCRIPTION_LENGTH or not description.isprintable():
        raise InputValueError(
            f"column '{column}': its description must be one line of printable characters, "
            f"{_MAX_DESCRIPTION_LENGTH} at most"
        )


def number_as_text(text: str) -> str:
    """Describe what is wrong with a text in place of a number, and how to write it."""
    plain = text.strip()
    wrong = f"must be a number, got the text {shown(text)}"
    number = None
    if re.fullmatch(r"[+-]?\d{1,3}([,_ '’\u00a0\u202f]\d{3})+(\.\d+)?", plain) or re.fullmatch(
        r"[+-]?\d[\d_]*(\.\d+)?", plain
    ):
        number = re.sub(r"[^0-9.+-]", "", plain)
    elif re.fullmatch(r"[+-]?\d{1,3}(\.\d{3})+(,\d+)?", plain):
        number = plain.replace(".", "").replace(",", ".")
    elif re.fullmatch(r"[+-]?\d*,\d+", plain):
        number = plain.replace(",", ".")
    elif re.fullmatch(r"\d{4}-\d{2}-\d{2}.*", plain):
        return f"{wrong}: a column with dates for bounds is of kind date, dpmoments.Date"
    if number is None:
        return f"{wrong}: digits with a decimal point, without a unit or thousands separators"
    return f"{wrong}: write {number}"


# Exact numbers as floats, rounded to the safe side; losses in words that never say less.


def rounded_up(value: Fraction) -> float:
    """Return the smallest float that is at least ``value``."""
    rounded = float(value)
    return rounded if Fraction(rounded) >= value else math.nextafter(rounded, math.inf)


def rounded_down(value: Fraction) -> float:
    """Return the largest float that is at most ``value``."""
    return -rounded_up(-value) + 0.0  # never minus nothing


def leading_decimals(error: float) -> int:
    """Return the decimals of an error's two leading digits, negative before the point.

    >>> leading_decimals(0.0123), leading_decimals(2.14), leading_decimals(9.96), leading_decimals(1234.0)
    (3, 1, 0, -2)
    """
    return 1 - int(f"{error:.1e}".partition("e")[2])


def no_less(loss: float, digits: int = 6) -> str:
    """Format a loss with ``digits`` significant digits, rounded up."""
    # From the shortest decimal that is this float: 0.1 is not 0.100001.
    rounded = Context(prec=digits, rounding=ROUND_CEILING).create_decimal(repr(float(loss)))
    return f"{float(rounded):.{digits}g}"
