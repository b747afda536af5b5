"""What is wrong with a schema file, each mistake with the line it stands in."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any

import yaml

from dpmoments.foundation.values import shown
from dpmoments.schema.document import columns_without_blank, compose_yaml
from dpmoments.schema.entries import ENTRIES, FILL_IN, blank_entries, column_from_dict
from dpmoments.schema.writing import slips_of, slips_of_row_norm

__all__ = ["mistakes_in"]


@dataclass
class _Lines:
    """Where an entry of a file begins, and its keys; lines count from 1."""

    start: int
    keys: dict[str, int] = field(default_factory=dict)
    running_on: tuple[int, int] | None = None

    @classmethod
    def of(cls, node: yaml.Node) -> _Lines:
        lines = cls(node.start_mark.line + 1)
        for key, value in node.value if isinstance(node, yaml.MappingNode) else []:
            lines.keys[str(key.value)] = key.start_mark.line + 1
            first, last = value.start_mark.line + 1, value.end_mark.line + 1
            if isinstance(value, yaml.ScalarNode) and value.style is None and first < last and lines.running_on is None:
                lines.running_on = first, last
        return lines

    def named_in(self, message: str) -> int:
        """The line of the entry that a message names first; else of the column."""
        rest = re.sub(r"^column '.*?'", "", message)
        places = [
            (found.start(), line)
            for key, line in self.keys.items()
            if (found := re.search(rf"\b{re.escape(key)}\b", rest))
        ]
        return min(places)[1] if places else self.start


def mistakes_in(text: str, values: object) -> str | None:
    """The mistakes in a schema file that is YAML, one for each column and entry that has one; None where none is found.

    Parameters
    ----------
    text : str
        The file.
    values : object
        What it was read as.

    Examples
    --------
    >>> text = '''columns:
    ... - {name: age, kind: numeric, lower: 0, uper: 120}
    ... - name: pay
    ...   kind: numeric
    ...   lower: 0
    ...   upper: 200,000
    ... '''
    >>> from dpmoments.schema.document import parse_yaml
    >>> for mistake in mistakes_in(text, parse_yaml(text)).split("; "):
    ...     print(mistake)
    line 2: column 'age' has unknown entries 'uper' (did you mean 'upper'?): use center, description, kind, lower, ...
    line 6: column 'pay': upper must be a number, got the text '200,000': write 200000
    """
    if not isinstance(values, Mapping) or not isinstance(values.get("columns"), list):
        lines_of_dashes = columns_without_blank(text)
        return (
            f"line {lines_of_dashes[0]}: a blank belongs after the - that begins a column" if lines_of_dashes else None
        )
    node = compose_yaml(text)
    top = _Lines.of(node)
    found = [f"line {line}: {slip}" for line, slip in slips_of_row_norm(node)]
    for key in values:
        if key not in ENTRIES:
            close = get_close_matches(str(key), ENTRIES, n=1)
            meant = f" (did you mean {close[0]!r}?)" if close else ""
            line = top.keys.get(str(key), top.start)
            found.append(f"line {line}: unknown entries in the schema: {shown(key)}{meant}")
    nodes = next(value.value for key, value in node.value if key.value == "columns")
    blanks = False
    for column, place in zip(values["columns"], nodes, strict=True):
        lines = _Lines.of(place)
        if slips := slips_of(place):  # what else the column gets wrong may follow from them
            found += [f"line {line}: {slip}" for line, slip in slips]
            continue
        if (fault := _fault(column, lines)) is None:
            continue
        found.append(f"line {lines.named_in(fault)}: {fault}")
        blanks |= fault.startswith(blank_entries(column) or "\0")
    found += _named_twice(values["columns"], nodes)
    return f"{'; '.join(found)}{f'. {FILL_IN}' if blanks else ''}" if found else None


def _named_twice(columns: list[Any], nodes: list[yaml.Node]) -> list[str]:
    """Columns that have a name which another has before them."""
    first: dict[str, int] = {}
    found = []
    for column, place in zip(columns, nodes, strict=True):
        name = column.get("name") if isinstance(column, Mapping) else None
        if not isinstance(name, str):
            continue
        line = _Lines.of(place).keys["name"]
        if name in first:
            found.append(f"lines {first[name]} and {line}: two columns are called {name!r}: rename or delete one")
        first.setdefault(name, line)
    return found


def _fault(column: Any, lines: _Lines) -> str | None:
    """What is wrong with one column, in words."""
    if isinstance(column, str) and ":" in column:
        return "every column is a mapping with a name and a kind: a blank belongs after each colon"
    unknown = _unknown(column)
    fault = unknown or blank_entries(column)
    if fault is None:
        try:
            column_from_dict(column)
        except (TypeError, ValueError) as error:
            fault = str(error)
    if fault is not None and lines.running_on is not None:
        first, last = lines.running_on
        fault += f" (a value runs on from line {first} to {last}: is a colon, or the blank after one, missing there?)"
    return fault


def _unknown(column: Any) -> str | None:
    """That entries are unknown, rather than that others are blank: a misspelt one is both."""
    if not isinstance(column, Mapping):
        return None
    try:
        column_from_dict(column)
    except (TypeError, ValueError) as error:
        return str(error) if "unknown entries" in str(error) else None
    return None
