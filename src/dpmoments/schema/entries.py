"""Columns as entries of a schema file: reading them, and naming those that are still blank."""

from __future__ import annotations

from collections.abc import Mapping
from inspect import signature
from typing import Any

from dpmoments.foundation.errors import InputValueError, listed, shown
from dpmoments.schema.columns import Boolean, Categorical, Column, Coordinate
from dpmoments.schema.dates import Date
from dpmoments.schema.derived import Power, Product
from dpmoments.schema.numeric import Numeric

ENTRIES = ("format", "version", "row_norm", "missing_values", "text_format", "mean_weight", "columns")
"""Top-level entries of a schema file."""

_KINDS: Mapping[str, type[Column | Power | Product]] = {
    column.kind: column for column in (Numeric, Categorical, Boolean, Date, Coordinate, Power, Product)
}
_WRITTEN_KINDS = tuple(kind for kind in _KINDS if kind != Coordinate.kind)
"""Kinds that people write; only arrays have coordinates."""
_NEEDED = {
    "numeric": ("name", "kind", "lower", "upper"),
    "date": ("name", "kind", "lower", "upper"),
    "categorical": ("name", "kind", "levels"),
    "power": ("column", "exponent"),
    "product": ("factors",),
}
"""Required entries of each kind; other kinds need only a name and a kind."""
_MAY_BE_EMPTY = ("missing_values",)
"""Entries that may be empty lists: they overrule the table's."""


class UnknownEntriesError(InputValueError):
    """Column of a schema file with entries that no column of its kind has."""


def column_from_dict(values: object) -> Column | Power | Product:
    """Read a column of a schema file."""
    if not isinstance(values, Mapping):
        raise InputValueError("every column is a mapping with a name and a kind")
    entries = dict(values)
    which, kind = _which(entries), entries.pop("kind", None)
    if not isinstance(kind, str) or kind not in _KINDS:
        raise InputValueError(f"{which} has kind {shown(kind)}: use {', '.join(map(str, [*_WRITTEN_KINDS]))}")
    made = _KINDS[kind]
    options = set(signature(made).parameters)
    if unknown := sorted(set(entries) - options, key=str):
        from difflib import get_close_matches

        close = [near for key in unknown for near in get_close_matches(str(key), sorted(options), n=1)]
        question = f" (did you mean {listed(close)}?)" if close else ""
        if not close and any(str(key).replace(".", "").isdigit() for key in unknown):
            question = " (in braces a comma ends an entry: write 1000, not 1,000)"
        raise UnknownEntriesError(
            f"{which} has unknown entries {', '.join(map(shown, unknown))}{question}: "
            f"use {', '.join(sorted(options | {'kind'}))}"
        )
    if made in (Power, Product):
        if absent := [key for key in _NEEDED[kind] if entries.get(key) is None]:
            raise InputValueError(f"{which} has no {' and no '.join(map(str, absent))}")
        if made is Product:
            factors = entries["factors"]
            if not isinstance(factors, list):
                raise InputValueError(f"a product has factors={shown(factors)}: give a list of two names of columns")
            return Product(*factors)
        return Power(**entries)
    if entries.get("name") is None:
        raise InputValueError("a column has no name")
    for needed in _NEEDED.get(kind, ("name", "kind"))[2:]:
        entries.setdefault(needed, None)
    return made(**entries)


def blank_entries(values: object) -> str:
    """Describe the blank entries of a column of a schema file; nothing without any.

    >>> print(blank_entries({"name": "age", "kind": "numeric", "lower": 0, "upper": None}))
    column 'age' has no bounds (upper)
    """
    if not isinstance(values, Mapping):
        return ""
    kind = values.get("kind")
    needed = _NEEDED.get(kind if isinstance(kind, str) else "", ("name", "kind"))
    blank = [
        key
        for key in dict.fromkeys((*needed, *values))
        if values.get(key) is None or (values[key] == [] and key not in _MAY_BE_EMPTY)
    ]
    if values.get("scale") is not None:  # in place of bounds
        blank = [key for key in blank if key not in ("lower", "upper")]
    if not blank:
        return ""
    blank.sort(key=lambda key: key in ("lower", "upper"))
    absent = f"bounds ({', '.join(blank)})" if {*blank} <= {"lower", "upper"} else " and no ".join(map(str, blank))
    return f"{_which(values)} has no {absent}"


def _which(entries: Mapping[Any, Any]) -> str:
    """Format the name of an entry for a message."""
    # A derived feature has no name of its own in a file.
    kind = entries.get("kind")
    return f"a {kind}" if kind in (Power.kind, Product.kind) else f"column {shown(entries.get('name'))}"
