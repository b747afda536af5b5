"""Conversion of values to what JSON can hold, and back, without loss and without running code; checks of numbers in files."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from dpmoments.array_types import FloatArray

__all__ = ["finite_numbers", "from_plain", "is_finite_number", "require_kinds", "require_known", "to_plain"]

ARRAY_TYPES = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64")


def to_plain(value: Any) -> Any:
    """Nested lists, dictionaries, strings and numbers that JSON can hold.

    Arrays, tuples and non-finite floats become dictionaries with one key that begins with a dollar sign; a mapping's own keys
    that begin with a dollar sign get a second one. A value of any other type is kept as its text: to refuse it would lose a
    release whose budget is already spent.

    Examples
    --------
    >>> to_plain({"shares": (0.5, 0.5), "bound": math.inf})
    {'shares': {'$tuple': [0.5, 0.5]}, 'bound': {'$float': 'inf'}}
    """
    if isinstance(value, np.ndarray):
        return _array_to_plain(value)
    if isinstance(value, np.generic):
        value = float(value) if isinstance(value, np.floating) else value.item()
    if isinstance(value, Mapping):
        return {_escaped(str(key)): to_plain(entry) for key, entry in value.items()}
    if isinstance(value, tuple):
        return {"$tuple": [to_plain(entry) for entry in value]}
    if isinstance(value, list):
        return [to_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return {"$float": repr(float(value))}
    if value is None or isinstance(value, str | bool | int | float):
        return value
    return str(value)


def from_plain(value: Any) -> Any:
    """The inverse of :func:`to_plain`.

    Raises
    ------
    ValueError
        If a tagged value is not as :func:`to_plain` writes it.

    Examples
    --------
    >>> from_plain(to_plain({"shares": (0.5, 0.5), "steps": np.arange(3)}))
    {'shares': (0.5, 0.5), 'steps': array([0, 1, 2])}
    """
    if isinstance(value, list):
        return [from_plain(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    tag = next(iter(value), "")
    if len(value) == 1 and tag.startswith("$") and not tag.startswith("$$"):
        return _tagged(tag, value[tag])
    return {key[1:] if key.startswith("$$") else key: from_plain(entry) for key, entry in value.items()}


def is_finite_number(value: object) -> bool:
    """Whether ``value`` is an int or float that float64 can hold as a finite number; booleans do not count.

    Examples
    --------
    >>> is_finite_number(3), is_finite_number(10**400), is_finite_number(True)
    (True, False, False)
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) <= 2**1023 if isinstance(value, int) else math.isfinite(value)


def finite_numbers(values: object, length: int, name: str) -> FloatArray:
    """Turn a list from a file into an array of shape (length,).

    Raises
    ------
    ValueError
        If it is not a list of ``length`` finite numbers.
    """
    if not isinstance(values, list) or len(values) != length or not all(map(is_finite_number, values)):
        raise ValueError(f"{name} must hold {length} finite numbers")
    return np.array(values, dtype=np.float64)


def _escaped(key: str) -> str:
    return f"${key}" if key.startswith("$") else key


def _array_to_plain(array: np.ndarray[Any, Any]) -> Any:
    if array.dtype == np.longdouble:
        array = array.astype(np.float64)
    if array.dtype.name not in ARRAY_TYPES:
        return to_plain(array.tolist())
    values = [to_plain(entry) for entry in array.ravel().tolist()]
    return {"$array": {"dtype": array.dtype.name, "shape": list(array.shape), "values": values}}


def _tagged(tag: str, held: Any) -> Any:
    if tag == "$float" and held in ("nan", "inf", "-inf"):
        return float(held)
    if tag == "$tuple" and isinstance(held, list):
        return tuple(from_plain(held))
    if tag == "$array" and isinstance(held, dict) and held.get("dtype") in ARRAY_TYPES:
        entries = from_plain(held["values"])
        if isinstance(entries, list) and all(isinstance(entry, bool | int | float) for entry in entries):
            return np.array(entries, dtype=held["dtype"]).reshape(tuple(held["shape"]))
    raise ValueError(f"a value is marked {tag!r} and is not one")


def require_known(given: Iterable[str], known: Iterable[str], what: str) -> None:
    """Raise ValueError where ``what`` has entries beside the known ones."""
    if unknown := sorted(set(given) - set(known)):
        raise ValueError(f"{what} has unknown entries {', '.join(map(repr, unknown))}")


def require_kinds(content: Mapping[str, Any], **kinds: type) -> None:
    """Raise unless the named entries are of these types.

    Raises
    ------
    KeyError
        If an entry is absent.
    TypeError
        If it is of another type.
    """
    words: dict[type, str] = {str: "a text", dict: "a mapping", list: "a list"}
    for name, kind in kinds.items():
        if not isinstance(content[name], kind):
            raise TypeError(f"{name} must be {words[kind]}")
