"""Values of a schema file that YAML reads as something else than whoever wrote them is likely to mean."""

from __future__ import annotations

import re
from collections.abc import Iterator

import yaml

from dpmoments.foundation.values import shown

__all__ = ["slips_in", "slips_of", "slips_of_row_norm"]

TEXT, INTEGER, NULL, FLOAT = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "null", "float"))
IN_TYPOGRAPHIC_QUOTES = re.compile("[“”„‟«»‹›‘‚‛].*|.*[“”„‟«»‹›‘]|’.*’", re.DOTALL)
"""An apostrophe alone, ’, may begin or end a word."""
TYPOGRAPHIC_QUOTES = "“”„‟«»‹›‘’‚‛"
GROUPED_BY_POINT = re.compile(r"([+-]?[1-9]\d{0,2})\.000")
"""50.000, which is 50 in YAML and 50,000 to many who write it. Numbers such as 1.375 have digits to mean."""


def slips_in(root: yaml.Node) -> bool:
    """Whether a schema file has such values.

    Parameters
    ----------
    root : yaml.Node
        The file.
    """
    return any(slips_of(column) for column in columns_of(root)) or bool(slips_of_row_norm(root))


def columns_of(root: yaml.Node) -> list[yaml.Node]:
    """The nodes of the columns."""
    columns = _value(root, "columns")
    return list(columns.value) if isinstance(columns, yaml.SequenceNode) else []


def slips_of(column: yaml.Node) -> list[tuple[int, str]]:
    """Such values of one column: the line of each, and what to write in its place.

    Examples
    --------
    >>> from dpmoments.schema.document import compose_yaml
    >>> text = "{name: ward, kind: categorical, levels: [A12 B03 ICU]}"
    >>> for part in slips_of(compose_yaml(text))[0][1].split("; "):
    ...     print(part)
    column 'ward': levels holds one level, 'A12 B03 ICU': with commas it would be levels: [A12, B03, ICU]
    if it really is one, quote it: levels: ["A12 B03 ICU"]
    """
    name = getattr(_value(column, "name"), "value", None)
    which = f"column {shown(name)}"
    slips = [_quoted(node, which) for node in _plain_scalars(column)]
    slips += [_levels(_value(column, "levels"), which)]
    for key in ("lower", "upper", "scale", "typical", "center", "radius"):
        slips += [(line, f"{which}: {key}: {words}") for line, words in _grouped(_value(column, key))]
    return [slip for slip in slips if slip is not None]


def slips_of_row_norm(root: yaml.Node) -> list[tuple[int, str]]:
    """Such numbers in the entry above the columns."""
    return [(line, f"row_norm: {words}") for line, words in _grouped(_value(root, "row_norm"))]


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """The value of an entry, if there is one."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for name, value in pairs if name.value == key), None)


def _is_plain(node: yaml.Node | None) -> bool:
    """Whether it is text or a number without quotes."""
    return isinstance(node, yaml.ScalarNode) and node.style is None


def _plain_scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    """All values without quotes, but descriptions."""
    if isinstance(node, yaml.ScalarNode) and node.style is None:
        yield node
    for part in node.value if isinstance(node, yaml.CollectionNode) else []:
        if not isinstance(part, tuple):
            yield from _plain_scalars(part)
        elif part[0].value != "description":
            yield from _plain_scalars(part[1])


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _quoted(node: yaml.ScalarNode, which: str) -> tuple[int, str] | None:
    """A word in quotes that are none to YAML."""
    if not IN_TYPOGRAPHIC_QUOTES.fullmatch(node.value):
        return None
    bare = node.value.strip(TYPOGRAPHIC_QUOTES)
    marks = " and ".join(dict.fromkeys(mark for mark in (node.value[0], node.value[-1]) if mark in TYPOGRAPHIC_QUOTES))
    return _line(node), (
        f"{which}: {node.value} has typographic quotes, {marks}, which YAML takes for a part of it: write {bare}, or "
        f'"{bare}" in straight quotes'
    )


def _levels(node: yaml.Node | None, which: str) -> tuple[int, str] | None:
    """Levels that are no list, one that looks like several, and numbers beside digits that are text."""
    if isinstance(node, yaml.ScalarNode) and node.tag != NULL and node.value.strip():
        parts = _parts(node.value)
        return _line(node), f"{which}: levels is a text and no list: put them in [ ], levels: [{', '.join(parts)}]"
    if not isinstance(node, yaml.SequenceNode):
        return None
    plain = [level for level in node.value if _is_plain(level)]
    if len(node.value) == len(plain) == 1 and plain[0].tag == TEXT:
        text = plain[0].value
        if "," in text or (node.flow_style and len(text.split()) > 1):
            return _line(plain[0]), (
                f"{which}: levels holds one level, {shown(text)}: with commas it would be levels: [{', '.join(_parts(text))}]; "
                f'if it really is one, quote it: levels: ["{text}"]'
            )
    digits = [level for level in plain if level.tag == TEXT and re.fullmatch(r"0\d+", level.value)]
    numbers = [level for level in plain if level.tag == INTEGER]
    if digits and numbers:
        first = ", ".join(f'"{level.value}"' for level in node.value[:2])
        more = ", …" if len(node.value) > 2 else ""
        return _line(digits[0]), (
            f"{which}: {digits[0].value} is text, since it begins with 0, and {numbers[0].value} is a number: put all in quotes, "
            f"levels: [{first}{more}]"
        )
    return None


def _parts(text: str) -> list[str]:
    """Levels as they stand in a text: between commas or semicolons where it has some, else between blanks."""
    parts = re.split("[,;]", text) if re.search("[,;]", text) else text.split()
    return [part.strip() for part in parts if part.strip()]


def _grouped(node: yaml.Node | None) -> Iterator[tuple[int, str]]:
    """Numbers whose point may be meant as a mark between thousands."""
    for scalar in () if node is None else _plain_scalars(node):
        if scalar.tag == FLOAT and (found := GROUPED_BY_POINT.fullmatch(scalar.value)):
            number = found[1]
            yield (
                _line(scalar),
                f"{scalar.value} is {number}, since a point begins decimals: write {number}, or {number}000",
            )
