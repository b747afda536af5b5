"""Records: dataclasses that a file holds, written and read by their annotations.

Reading is strict. Nothing is converted, every entry is known, and a fault is named by its path, such as
``origin.ledger.number must be a whole number, 1 or more``. What an entry must be beyond its type is a :class:`Rule` in its
annotation, which has a name in its module; mathematics stays in ``__post_init__``.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from fractions import Fraction
from functools import cache
from types import UnionType
from typing import Annotated, Any, Literal, Self, Union, get_args, get_origin, get_type_hints

import numpy as np
import numpy.typing as npt

from dpmoments.base.errors import InputTypeError, InputValueError
from dpmoments.base.values import finite_numbers, from_plain, is_finite_number, require_known

_TYPES: Mapping[Any, tuple[str, Callable[[object], bool]]] = {
    bool: ("true or false", lambda value: isinstance(value, bool)),
    int: ("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool)),
    float: ("a finite number", is_finite_number),
    str: ("a text", lambda value: isinstance(value, str)),
}


@dataclass(frozen=True)
class Rule:
    """Condition on an entry beyond its type."""

    expected: str  # after "must be"
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class ReadBy:
    """Function that reads an entry, in place of its type."""

    read: Callable[[Any], Any]


AS_IT_IS = ReadBy(lambda value: value)
"""Mark of an entry that its user reads."""


NOT_NEGATIVE = Rule("a finite number, 0 or above", lambda value: value >= 0)
NUMBERED = Rule("a whole number, 1 or more", lambda value: isinstance(value, int) and value >= 1)
ABSENT_IF_NONE = "absent if none"
"""Mark of an entry that a file leaves out if it is None."""


def hexadecimal(n_digits: int) -> Rule:
    """Return the rule for a text of this number of hexadecimal digits."""
    digits = re.compile(f"[0-9a-f]{{{n_digits}}}")
    return Rule(f"{n_digits} hexadecimal digits", lambda value: digits.fullmatch(value) is not None)


class Record:
    """Dataclass that a file holds."""

    __slots__ = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        entries = {name: (kind, getattr(self, name)) for name, kind in annotations_of(type(self)).items()}
        return {
            name: written(value)
            for name, (kind, value) in entries.items()
            if value is not None or ABSENT_IF_NONE not in _marks(kind)
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], path: str = "") -> Self:
        """Return the inverse of :meth:`to_dict`.

        Raise KeyError, TypeError or ValueError if an entry is absent, unknown, or invalid.
        """
        return cls(**read_entries(values, annotations_of(cls), path or cls.__name__))


def read_entries(values: Mapping[str, Any], kinds: Mapping[str, Any], path: str = "") -> dict[str, Any]:
    """Return entries by their kinds; raise if one is absent, unknown or invalid."""
    require_known(values, kinds, path or "it")
    return {
        name: _read(kind, values[name], f"{path}.{name}" if path else name)
        for name, kind in kinds.items()
        if name in values or ABSENT_IF_NONE not in _marks(kind)
    }


def annotations_of(record: Any) -> Mapping[str, Any]:
    """Return the annotations of a dataclass's fields, in order."""
    return _annotations(record)


@cache
def _annotations(record: Any) -> Mapping[str, Any]:
    hints = get_type_hints(record, include_extras=True)
    return {entry.name: hints[entry.name] for entry in fields(record)}


def _marks(kind: Any) -> tuple[Any, ...]:
    return kind.__metadata__ if get_origin(kind) is Annotated else ()


def written(value: Any) -> Any:
    """Return a value of an entry as a file holds it."""
    if isinstance(value, tuple | list):
        return [written(each) for each in value]
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, Mapping):
        return {name: written(each) for name, each in value.items()}
    if isinstance(value, Fraction):
        return f"{value.numerator}/{value.denominator}"
    if isinstance(value, StrEnum):
        return str(value)
    return value.to_dict() if hasattr(value, "to_dict") else value


def _read(kind: Any, value: Any, path: str) -> Any:
    """Return the value of an entry, or raise with the path of its fault."""
    if get_origin(kind) is Annotated:
        readers = [mark.read for mark in _marks(kind) if isinstance(mark, ReadBy)]
        result = readers[0](value) if readers else _read(kind.__origin__, value, path)
        for rule in _marks(kind):
            if isinstance(rule, Rule) and value is not None and not rule.holds(value):
                raise InputValueError(f"{path} must be {rule.expected}")
        return result
    if get_origin(kind) in (Union, UnionType):
        if value is None and type(None) in get_args(kind):
            return None
        kinds = [each for each in get_args(kind) if each is not type(None)]
        if len(kinds) == 1:
            return _read(kinds[0], value, path)
        if not any(_TYPES[each][1](value) for each in kinds):
            raise InputTypeError(f"{path} must be {' or '.join(_TYPES[each][0] for each in kinds)}")
        return value
    if get_origin(kind) in (np.ndarray, npt.NDArray):  # the second since NumPy 2.5
        return finite_numbers(value, len(value) if isinstance(value, list) else 0, path)
    if get_origin(kind) is tuple:
        if not isinstance(value, list):
            raise InputTypeError(f"{path} must be a list")
        return tuple(_read(get_args(kind)[0], each, f"{path}[{index}]") for index, each in enumerate(value))
    if get_origin(kind) is Literal or issubclass(kind, StrEnum):
        choices = list(map(str, get_args(kind) or kind))
        if not isinstance(value, str) or value not in choices:
            raise InputValueError(f"{path} must be one of {', '.join(choices)}")
        return kind(value) if isinstance(kind, type) else value
    if kind is dict:
        if not isinstance(result := from_plain(value), dict):
            raise InputTypeError(f"{path} must be a mapping")
        return result
    if kind in _TYPES:
        expected, holds = _TYPES[kind]
        if not holds(value):
            raise InputTypeError(f"{path} must be {expected}")
        return float(value) if kind is float else value
    return kind.from_dict(value, path) if issubclass(kind, Record) else kind.from_dict(value)
