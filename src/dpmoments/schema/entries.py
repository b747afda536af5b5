"""Columns as a schema file has them: read, or named where something is still blank."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields

from dpmoments.plain_values import shown
from dpmoments.schema.columns import Boolean, Categorical, Column, Coordinate, Numeric

__all__ = ["blank_entries", "column_from_dict"]

KINDS: Mapping[str, type[Column]] = {column.kind: column for column in (Numeric, Categorical, Boolean, Coordinate)}


def column_from_dict(values: object) -> Column:
    """Read one column of a schema file.

    Raises
    ------
    ValueError
        If the kind is unknown, an entry is unknown or a needed one is blank.
    """
    if not isinstance(values, Mapping):
        raise ValueError("every column is a mapping with a name and a kind")
    entries = dict(values)
    name, kind = entries.get("name"), entries.pop("kind", None)
    if not isinstance(kind, str) or kind not in KINDS:
        raise ValueError(f"column {shown(name)} has kind {shown(kind)}: use {', '.join(KINDS)}")
    options = {option.name for option in fields(KINDS[kind])}
    if unknown := sorted(set(entries) - options, key=str):
        raise ValueError(
            f"column {shown(name)} has unknown entries {', '.join(map(shown, unknown))}: use {', '.join(sorted(options))}"
        )
    if name is None:
        raise ValueError("a column has no name")
    if kind == "categorical":
        entries.setdefault("levels", None)
    return KINDS[kind](**entries)


def blank_entries(values: object) -> str | None:
    """Which entries of one column of a schema file are still to be filled in, in words; None if there are none.

    Examples
    --------
    >>> blank_entries({"name": "age", "kind": "numeric", "lower": 0, "upper": None})
    "column 'age' has no bounds (upper)"
    """
    if not isinstance(values, Mapping):
        return None
    needed = {"numeric": ("lower", "upper"), "categorical": ("levels",)}.get(
        kind if isinstance(kind := values.get("kind"), str) else "", ()
    )
    blank = [key for key in dict.fromkeys(("name", "kind", *needed, *values)) if values.get(key) in (None, [])]
    if values.get("scale") is not None:  # in place of bounds
        blank = [key for key in blank if key not in ("lower", "upper")]
    bounds = [key for key in blank if key in ("lower", "upper")]
    parts = [key for key in blank if key not in bounds] + ([f"bounds ({', '.join(bounds)})"] if bounds else [])
    return f"column {shown(values.get('name'))} has no {' and no '.join(parts)}" if parts else None
