"""Entries of a schema file for many columns: lists of names, patterns, and defaults."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import Any

from dpmoments.base.errors import InputValueError, listed, meant, shown

_PATTERN = re.compile(r"[*?\[]")
_OF_KINDS = {"other": ("categorical",), "fill": ("numeric", "date", "boolean")}
"""Kinds of column that a default of the table is for, if it is not for all."""


def expanded(values: Any) -> Any:
    """Return the values of a schema file with an entry for each column, defaults included.

    >>> expanded({"columns": [{"name": ["A1", "A2"], "kind": "boolean"}], "defaults": {"missing": "drop"}})["columns"]
    [{'name': 'A1', 'kind': 'boolean', 'missing': 'drop'}, {'name': 'A2', 'kind': 'boolean', 'missing': 'drop'}]
    """
    if not isinstance(values, Mapping) or not isinstance(values.get("columns"), list):
        return values
    columns = [column for entry in values["columns"] for column in columns_of_entry(entry, values)]
    return {key: value for key, value in values.items() if key not in ("names", "defaults")} | {"columns": columns}


def columns_of_entry(entry: Any, values: Mapping[str, Any]) -> list[Any]:
    """Return the columns for which one entry of a schema file stands."""
    if not isinstance(entry, Mapping):
        return [entry]
    stated, known = entry.get("name"), values.get("names") or []
    several = isinstance(stated, list)
    for given in (known, *([stated] if several else [])):
        if not isinstance(given, list) or not all(isinstance(name, str) for name in given):
            raise InputValueError(f"a list of names of columns holds texts (names: [A1, A2]), got {shown(given)}")
    names: list[Any] = []
    for name in stated if isinstance(stated, list) else [stated]:
        if not (isinstance(name, str) and known and _PATTERN.search(name)) or name in known:
            names.append(name)
            continue
        several = True
        own = [entry.get("name") for entry in values["columns"] if isinstance(entry, Mapping)]
        others = [other for each in own for other in (each if isinstance(each, list) else [each])]
        names += [each for each in matching("name", [name], known) if each not in others]
    defaults = values.get("defaults") or {}
    if not isinstance(defaults, Mapping):
        raise InputValueError(f"defaults={shown(defaults)} must be a mapping, such as defaults: {{missing: available}}")
    kind = entry.get("kind")
    given = {
        key: value
        for key, value in defaults.items()
        if key not in entry and kind not in ("power", "product") and kind in _OF_KINDS.get(key, (kind,))
    }
    rest = {**entry, **given}
    if rest.get("confirmed") is True:
        del rest["confirmed"]
    elif "confirmed" in rest:
        rest["confirmed"] = None
    if not several:
        return [rest]
    if not names or "source" in rest:
        raise InputValueError("an entry of several columns needs a list of their names in the table, and no source")
    said = rest.pop("description", None)
    by_name = said if isinstance(said, Mapping) else dict.fromkeys(names, said)
    if unknown := [name for name in by_name if name not in names]:
        raise InputValueError(f"description is of {shown(unknown[0])}, which is not a column of the entry")
    return [rest | {"name": name} | ({"description": by_name[name]} if by_name.get(name) else {}) for name in names]


def shortened(values: dict[str, Any]) -> dict[str, Any]:
    """Invert :func:`expanded`: neighboring columns that are alike share an entry."""
    entries: list[dict[str, Any]] = []
    for column in values["columns"]:
        said = {column["name"]: column["description"]} if "description" in column and "name" in column else {}
        alike = {key: value for key, value in column.items() if key not in ("name", "description")}
        last = entries[-1] if entries else {}
        if "name" not in column or "source" in column or alike != last.get("alike"):
            entries.append({"names": [column.get("name")], "alike": alike, "said": said, "whole": column})
        else:
            last["names"].append(column["name"])
            last["said"] |= said
    columns = [
        entry["whole"]
        if len(entry["names"]) == 1
        else {"name": entry["names"], **({"description": entry["said"]} if entry["said"] else {}), **entry["alike"]}
        for entry in entries
    ]
    names = [column["name"] for column in values["columns"] if "name" in column]
    literal = {"names": names} if any(_PATTERN.search(name) for name in names) else {}
    return {key: value for key, value in values.items() if key != "columns"} | literal | {"columns": columns}


def matching(what: str, patterns: Iterable[object], names: Iterable[str]) -> dict[str, object]:
    """Return the pattern of each name that one matches; a name matches only itself.

    >>> matching("items", ["B1", "A*", "A2"], ["A1", "A2", "B1"])
    {'B1': 'B1', 'A1': 'A*', 'A2': 'A2'}
    """
    known, stated = list(names), list(patterns)
    result: dict[str, object] = {}
    for pattern in stated:
        found = [pattern] if pattern in known else [name for name in known if fnmatchcase(name, str(pattern))]
        if not found:
            advice = meant(pattern, known, f"They are {listed(known)}." if known else f"No {what} are there.")
            raise InputValueError(f"{what}: {shown(pattern)} matches none of the names.{advice}")
        for name in found:
            of = name if name in stated else pattern
            if result.setdefault(name, of) != of:
                raise InputValueError(
                    f"{what}: {shown(result[name])} and {shown(pattern)} both match {shown(name)}: narrow one of them, or "
                    "name that by itself"
                )
    return result
