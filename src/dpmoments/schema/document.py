"""YAML of schema files: plain values, no repeated keys, and few spellings that are not text.

YAML 1.1, which PyYAML reads, turns ``no`` into false, ``010`` into 8, ``12:30`` into 750 and ``1e6`` into text. Levels
must not change in such ways, so this reader follows the core schema of YAML 1.2. A few lines of aliases can expand to
more than any memory holds (a "billion laughs"), so expanded values are counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar

import yaml

from dpmoments.base.errors import InputValueError, listed, shown
from dpmoments.schema.derived import ENTRIES, FILL_IN, UnknownEntriesError, blank_entries, column_from_dict
from dpmoments.schema.patterns import columns_of_entry

_PLAIN_WORDS = re.compile(r"[^\W\d](?:[\w -]*\w)?")
"""Text that is written without quotes: words that begin with a letter."""
_MAX_VALUES = 250_000
"""Maximum values in a file, with aliases expanded: about 400 MB while they are read."""
_MAX_DEPTH = 32
"""Maximum nesting of lists and mappings."""


def read_text(path: str | Path) -> str:
    """Read a file's text, without a byte order mark."""
    with suppress(UnicodeDecodeError):
        return Path(path).read_bytes().decode("utf-8-sig")
    raise InputValueError(f"{path} is not a YAML file (it is not text in UTF-8)")


def read_yaml_nodes(path: str | Path) -> tuple[Any, Any]:
    """Parse a file; return its values and their nodes, which hold line numbers."""
    text = read_text(path)
    try:
        loader = _CoreLoader(text)
        node = loader.get_single_node()
        return (None if node is None else loader.construct_document(node)), node
    except _NotPlainError as error:
        fault = _placed(error.stated, error)
    except yaml.MarkedYAMLError as error:
        fault = _placed("check the indent, colons and quotes there and in the line before", error)
        if "while parsing a flow" in (error.context or "") and error.context_mark is not None:
            fault = _in_line(error.context_mark.line + 1, "a bracket that opens there is not closed, or lacks a comma")
        for pattern, slip in (
            (r"\s*-[^\W\d][\w ]*:", _DASH_WITHOUT_SPACE),  # as in ``-name: age``
            (r"[ ]*\t", "it is indented with a tab, but YAML allows only spaces"),
        ):
            lines = enumerate(text.splitlines(), start=1)
            fault = next((_in_line(number, slip) for number, line in lines if re.match(pattern, line)), fault)
    except (yaml.YAMLError, RecursionError, ValueError):
        fault = ""
    # Outside the handlers: a chained error would quote the file.
    raise InputValueError(f"{path} is not a YAML file{fault}")


_DASH_WITHOUT_SPACE = "add a space after the - that begins a column"


def parse_yaml(text: str) -> Any:
    """Parse text of plain values."""
    return yaml.load(text, Loader=_CoreLoader)  # a SafeLoader of plain values alone


def format_yaml(values: Any) -> str:
    """Format values as text that :func:`parse_yaml` reads back.

    >>> print(format_yaml({"name": "age", "levels": ["north", "010", "1e6", "no"]}), end="")
    name: age
    levels:
    - north
    - "010"
    - "1e6"
    - 'no'
    """
    return yaml.dump(values, Dumper=_QuotingDumper, sort_keys=False, allow_unicode=True, width=float("inf"))


def _in_line(line: int, fault: str) -> str:
    return f" (line {line}): {fault}"


def _placed(fault: str, error: yaml.MarkedYAMLError) -> str:
    """Return the fault with the line of a YAML error, if it is known."""
    mark = error.problem_mark or error.context_mark
    return fault if mark is None else _in_line(mark.line + 1, fault)


class _QuotingDumper(yaml.SafeDumper):
    """SafeDumper that quotes all text except plain words: in quotes every character is safe."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = None if _PLAIN_WORDS.fullmatch(text) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_QuotingDumper.add_representer(str, _QuotingDumper.represent_text)


class _NotPlainError(yaml.constructor.ConstructorError):
    """Something other than plain values, or too many of them; quotes no text of the file."""

    def __init__(self, stated: str, mark: yaml.Mark | None) -> None:
        super().__init__(problem=stated, problem_mark=mark)
        self.stated = stated


class _CoreLoader(yaml.SafeLoader):
    """SafeLoader limited to the types of YAML 1.2's core schema, decimal numbers only."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own registries, filled below
    yaml_constructors: ClassVar[dict[str | None, Any]] = {}

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._values = self._depth = 0
        self._sizes: dict[str, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Count nodes, with aliases expanded."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        before, anchor, alias = self._values, str(getattr(event, "anchor", "")), isinstance(event, yaml.AliasEvent)
        if alias:
            if anchor in self.anchors and anchor not in self._sizes:
                raise _NotPlainError("an alias contains itself", event.start_mark)
            self._values += self._sizes.get(anchor, 0)
        self._values += 1
        self._depth += 1
        if self._values > _MAX_VALUES or self._depth > _MAX_DEPTH:
            raise _NotPlainError(
                f"it holds more than {_MAX_VALUES:,} values with aliases expanded, or nests them {_MAX_DEPTH} deep",
                event.start_mark,
            )
        node = super().compose_node(parent, index)
        self._depth -= 1
        if not alias:
            self._sizes[anchor] = self._values - before
        return node

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            keys = [(getattr(key, "value", None), key.start_mark) for key, _ in node.value]
            again = [mark for index, (key, mark) in enumerate(keys) if any(key == other for other, _ in keys[:index])]
            raise _NotPlainError("a key occurs twice in one entry", again[0] if again else node.start_mark)
        return mapping

    def construct_scalar_of(self, node: yaml.Node) -> Any:
        """Convert a scalar to a number, a Boolean or null if its text is one."""
        text = self.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else ""
        kind = node.tag.rpartition(":")[2]
        if not isinstance(node, yaml.ScalarNode) or not _CORE_TYPES[kind].fullmatch(text):
            raise _NotPlainError(f"a value that is marked as {kind} is not one", node.start_mark)
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        return int(text) if kind == "int" else float(text)

    def refuse(self, node: yaml.Node) -> Any:
        """Reject tags except for plain values."""
        raise _NotPlainError("it holds a value of a kind that schemas do not use", node.start_mark)


_CORE_TYPES = {
    "bool": re.compile("true|True|TRUE|false|False|FALSE"),
    "null": re.compile("~|null|Null|NULL|"),
    "int": re.compile("[-+]?(0|[1-9][0-9]*)"),
    "float": re.compile(r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?"),
}
for _kind, _first in (
    ("bool", "tTfF"),
    ("null", ["~", "n", "N", ""]),
    ("int", "-+0123456789"),
    ("float", "-+.0123456789"),
):
    _tag = f"tag:yaml.org,2002:{_kind}"
    _CoreLoader.add_implicit_resolver(_tag, re.compile(f"^(?:{_CORE_TYPES[_kind].pattern})$"), list(_first))
    _CoreLoader.add_constructor(_tag, _CoreLoader.construct_scalar_of)
for _kind in ("str", "seq", "map"):
    _tag = f"tag:yaml.org,2002:{_kind}"
    _CoreLoader.add_constructor(_tag, yaml.SafeLoader.yaml_constructors[_tag])
_CoreLoader.add_constructor(None, _CoreLoader.refuse)

# Mistakes in a schema file that is valid YAML. Some values YAML reads as something else than was probably meant.

_TEXT, _INTEGER, _NULL, _FLOAT = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "null", "float"))
_IN_TYPOGRAPHIC_QUOTES = re.compile("[“”„‟«»‹›‘‚‛].*|.*[“”„‟«»‹›‘]|’.*’", re.DOTALL)
"""Excludes a single apostrophe, ’, which may begin or end a word."""
_TYPOGRAPHIC_QUOTES = "“”„‟«»‹›‘’‚‛"
_GROUPED_BY_POINT = re.compile(r"([+-]?[1-9]\d{0,2})\.000")
"""50.000 is 50 in YAML and 50,000 to many who write it; numbers such as 1.375 are clear."""
_NUMBERS = ("lower", "upper", "scale", "typical", "center", "radius", "weight", "missing_share")


def mistakes_in(root: yaml.Node | None, values: object) -> list[str]:
    """Describe the mistakes in a schema file, one per column and entry, with lines.

    ``root`` is the node of ``values``.

    >>> text = '''columns:
    ... - {name: age, kind: numeric, lower: 0, uper: 120}
    ... - name: pay
    ...   kind: numeric
    ...   lower: 0
    ...   upper: 200,000
    ... '''
    >>> for mistake in mistakes_in(yaml.compose(text, Loader=_CoreLoader), parse_yaml(text)):
    ...     print(mistake)
    line 2: column 'age' has unknown entries 'uper' (did you mean 'upper'?): use center, decimal, ...
    line 6: column 'pay': upper must be a number, got the text '200,000': write 200000
    """
    columns = _value(root, "columns")
    if not isinstance(values, Mapping) or not isinstance(columns, yaml.SequenceNode):
        unspaced = [line for node in (root, columns) for key, line in _lines_of(node).items() if key.startswith("-")]
        return [f"line {line}: {_DASH_WITHOUT_SPACE}" for line in unspaced[:1]]

    result = [f"line {line}: row_norm: {slip}" for line, slip in _grouped_by_points(_value(root, "row_norm"))]
    for key, line in _lines_of(root).items():
        if key not in ENTRIES:
            close = get_close_matches(key, ENTRIES, n=1)
            question = f" (did you mean {listed(close)}?)" if close else ""
            result.append(f"line {line}: unknown entries in the schema: {shown(key)}{question}")

    advice = ""
    names: list[object] = []
    for entry, node in zip(values["columns"], columns.value, strict=True):
        columns_of = [entry]
        try:
            columns_of = columns_of_entry(entry, values)
            fault = next(filter(None, map(_fault, columns_of)), "")
        except InputValueError as error:
            fault = str(error)
        own = [column.get("name") for column in columns_of if isinstance(column, Mapping)]
        patterns = [name for name in own if isinstance(name, str) and "*" in name and not values.get("names")]
        again = [name for name in own if name is not None and name in names]
        if slips := [*_slips_of(node)]:  # what else the column gets wrong may follow from them
            result += [f"line {line}: {slip}" for line, slip in slips]
        elif fault:
            result.append(f"line {_line_of(fault, node)}: {fault}")
            advice = f". {FILL_IN}" if fault in map(blank_entries, columns_of) else advice
        elif patterns:
            which = f"line {_line(node)}: name: {shown(patterns[0])} is a pattern"
            result.append(f"{which}: list the names that it can match above the columns, names: [A1, A2], or here")
        elif again:
            line = _lines_of(node)["name"]
            result.append(f"line {line}: two columns are named {shown(again[0])}: rename or delete one")
        names += own
    return [*result[:-1], result[-1] + advice] if result else []


def _fault(column: Any) -> str:
    if isinstance(column, str) and ":" in column:
        return "every column is a mapping with a name and a kind: add a space after each colon"
    stated = ""
    try:
        column_from_dict(column)
    except UnknownEntriesError as error:  # a misspelled entry is also blank
        return str(error)
    except (TypeError, ValueError) as error:
        stated = str(error)
    return blank_entries(column) or stated


def _line_of(fault: str, column: yaml.Node) -> int:
    """Return the line of the first entry that a fault names, else of the column."""
    of_column, unknown, names = fault.partition("has unknown entries ")
    words = names if unknown else re.sub(r"'[^']*'", "", of_column)  # a value may be written like an entry
    lines = _lines_of(column)
    return next((lines[word] for word in re.findall(r"\w+", words) if word in lines), _line(column))


def _slips_of(column: yaml.Node) -> Iterator[tuple[int, str]]:
    """Iterate over the probable typing mistakes of a column: line and correction.

    >>> text = "{name: ward, kind: categorical, levels: [A12 B03 ICU]}"
    >>> for part in next(_slips_of(yaml.compose(text, Loader=_CoreLoader)))[1].split("; "):
    ...     print(part)
    column 'ward': levels holds one level, 'A12 B03 ICU': with commas it would be levels: [A12, B03, ICU]
    if it really is one, quote it: levels: ["A12 B03 ICU"]
    """
    name = _value(column, "name")
    first = name.value[0] if isinstance(name, yaml.SequenceNode) and name.value else name
    which = f"column {shown(getattr(first, 'value', None))}"
    for node in _plain_scalars(column):
        text = node.value
        if _IN_TYPOGRAPHIC_QUOTES.fullmatch(text):
            bare = text.strip(_TYPOGRAPHIC_QUOTES)
            marks = dict.fromkeys(mark for mark in (text[0], text[-1]) if mark in _TYPOGRAPHIC_QUOTES)
            yield (
                _line(node),
                f"{which}: {text} has typographic quotes, {', '.join(marks)}, which YAML reads as part of it: write "
                f'{bare}, or "{bare}" in straight quotes',
            )
    levels = _value(column, "levels")
    if isinstance(levels, yaml.ScalarNode) and levels.tag != _NULL and levels.value.strip() not in ("", "discover"):
        yield (
            _line(levels),
            f"{which}: levels is a text, not a list: put them in [ ], levels: [{_separated(levels.value)}]",
        )
    listed_levels, flow = (levels.value, levels.flow_style) if isinstance(levels, yaml.SequenceNode) else ([], False)
    plain = [level for level in listed_levels if isinstance(level, yaml.ScalarNode) and level.style is None]
    texts = [level for level in plain if level.tag == _TEXT]
    if len(listed_levels) == len(texts) == 1:
        text = texts[0].value
        if "," in text or (flow and len(text.split()) > 1):
            yield (
                _line(texts[0]),
                f"{which}: levels holds one level, {shown(text)}: with commas it would be levels: [{_separated(text)}]; "
                f'if it really is one, quote it: levels: ["{text}"]',
            )
    digits = [level for level in texts if re.fullmatch(r"0\d+", level.value)]
    numbers = [level for level in plain if level.tag == _INTEGER]
    if digits and numbers:
        quoted = [f'"{level.value}"' for level in listed_levels[:2]] + ["…"] * (len(listed_levels) > 2)
        yield (
            _line(digits[0]),
            f"{which}: {digits[0].value} is text because it begins with 0, but {numbers[0].value} is a number: put all in "
            f"quotes, levels: [{', '.join(quoted)}]",
        )
    for key in _NUMBERS:
        yield from ((line, f"{which}: {key}: {slip}") for line, slip in _grouped_by_points(_value(column, key)))


def _separated(text: str) -> str:
    """Return the parts of a text, at commas or semicolons if there are any, else at spaces."""
    parts = re.split("[,;]", text) if re.search("[,;]", text) else text.split()
    return ", ".join(part.strip() for part in parts if part.strip())


def _grouped_by_points(node: yaml.Node | None) -> Iterator[tuple[int, str]]:
    """Find numbers whose point may be meant as a thousands separator."""
    for scalar in () if node is None else _plain_scalars(node):
        if scalar.tag == _FLOAT and (result := _GROUPED_BY_POINT.fullmatch(scalar.value)):
            number = result[1]
            fault = f"{scalar.value} is {number}, because a point starts the decimals: write {number}, or {number}000"
            yield _line(scalar), fault


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for name, value in pairs if name.value == key), None)


def _lines_of(node: yaml.Node | None) -> dict[str, int]:
    """Return the line of each entry of a mapping, from 1."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return {str(key.value): _line(key) for key, _ in pairs}


def _line(node: yaml.Node) -> int:
    return int(node.start_mark.line) + 1


def _plain_scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    """Iterate over all values without quotes, except descriptions."""
    if isinstance(node, yaml.ScalarNode) and node.style is None:
        yield node
    for part in node.value if isinstance(node, yaml.CollectionNode) else []:
        if not isinstance(part, tuple):
            yield from _plain_scalars(part)
        elif part[0].value != "description":
            yield from _plain_scalars(part[1])
