"""YAML of schema files: plain values, no repeated keys, and few spellings that are not text.

YAML 1.1, which PyYAML reads, turns ``no`` into false, ``010`` into 8, ``12:30`` into 750 and ``1e6`` into text. Levels
must not change in such ways, so this reader follows the core schema of YAML 1.2. A few lines of aliases can expand to
more than any memory holds (a "billion laughs"), so expanded values are counted.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any, ClassVar

import yaml

from dpmoments.foundation.errors import InputValueError, listed, shown
from dpmoments.schema.entries import ENTRIES, UnknownEntriesError, blank_entries, column_from_dict

_PLAIN_WORDS = re.compile(r"[^\W\d](?:[\w -]*\w)?")
"""Text that is written without quotes: words that begin with a letter."""
_MAX_VALUES = 250_000
"""Maximum values in a file, with aliases expanded: about 400 MB while they are read."""
_MAX_DEPTH = 32
"""Maximum nesting of lists and mappings."""


def read_text(path: str | Path) -> str:
    """Read a file's text, without a byte order mark."""
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    raise InputValueError(f"{path} is not a YAML file (it is not text in UTF-8)")


def read_yaml_nodes(path: str | Path) -> tuple[Any, Any]:
    """Parse a file; return its values and their nodes, which hold line numbers."""
    text = read_text(path)
    try:
        loader = _CoreLoader(text)
        node = loader.get_single_node()
        return (None if node is None else loader.construct_document(node)), node
    except _RepeatedKeyError as error:
        fault = _placed("a key occurs twice in one entry", error)
    except _NotPlainError as error:
        fault = _placed(error.stated, error)
    except yaml.MarkedYAMLError as error:
        fault = _syntax_fault(text, error)
    except (yaml.YAMLError, RecursionError, ValueError):
        fault = ""
    # Outside the handlers: a chained error would quote the file.
    raise InputValueError(f"{path} is not a YAML file{fault}")


def _syntax_fault(text: str, error: yaml.MarkedYAMLError) -> str:
    """Describe a syntax error if its cause is recognized; quotes no text of the file."""
    tabs = [number for number, line in enumerate(text.splitlines(), start=1) if re.match(r"[ ]*\t", line)]
    if tabs:
        return _in_line(tabs[0], "it is indented with a tab, but YAML allows only spaces")
    if unspaced := _columns_without_blank(text):
        return _in_line(unspaced[0], _DASH_WITHOUT_SPACE)
    problem, context = error.problem or "", error.context or ""
    if "while parsing a flow" in context and error.context_mark is not None:
        opening, closing = "[]" if "sequence" in context else "{}"
        comma = ", or a comma is missing in it" if "<scalar>" in problem else ""
        fault = f"the {opening} that opens there is not closed with {closing}{comma}"
        return _in_line(error.context_mark.line + 1, fault)
    if _indented_further(text, error) or ("expected <block end>" in problem and "<scalar>" not in problem):
        return _placed("its indent differs: indent it like the line above, with a column's entries aligned", error)
    if "expected ':'" in problem or "mapping values are not allowed" in problem:
        return _placed("a colon is missing or superfluous, here or in the line before, or an indent differs", error)
    if "scanning a quoted scalar" in context:
        return _placed("a quote is opened and not closed", error)
    return _placed("check its indents and quotes", error)


_DASH_WITHOUT_SPACE = "add a space after the - that begins a column"


def _columns_without_blank(text: str) -> list[int]:
    """Return the lines that begin with - and no space after it, as in ``-name: age``."""
    return [number for number, line in enumerate(text.splitlines(), start=1) if re.match(r"\s*-[^\W\d][\w ]*:", line)]


def _indented_further(text: str, error: yaml.MarkedYAMLError) -> bool:
    """Return True if an entry is indented further than a complete entry above it."""
    if "mapping values are not allowed" not in (error.problem or "") or error.problem_mark is None:
        return False
    above, line = ["", *text.splitlines()][error.problem_mark.line : error.problem_mark.line + 2]
    begun = re.match(r"(\s*(?:- +)?)[^\s#-][^:]*: +[^\s#]", above)
    return begun is not None and len(line) - len(line.lstrip()) > len(begun[1])


def _compose_yaml(text: str) -> Any:
    """Parse text to nodes, which hold line numbers."""
    return yaml.compose(text, Loader=_CoreLoader)


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


class _RepeatedKeyError(yaml.constructor.ConstructorError):
    pass


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
            raise _RepeatedKeyError(problem="a key occurs twice", problem_mark=again[0] if again else node.start_mark)
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

# Values of a schema file that YAML reads as something else than whoever wrote them is likely to mean.

_TEXT, _INTEGER, _NULL, _FLOAT = (f"tag:yaml.org,2002:{kind}" for kind in ("str", "int", "null", "float"))
_IN_TYPOGRAPHIC_QUOTES = re.compile("[“”„‟«»‹›‘‚‛].*|.*[“”„‟«»‹›‘]|’.*’", re.DOTALL)
"""Excludes a single apostrophe, ’, which may begin or end a word."""
_TYPOGRAPHIC_QUOTES = "“”„‟«»‹›‘’‚‛"
_GROUPED_BY_POINT = re.compile(r"([+-]?[1-9]\d{0,2})\.000")
"""50.000 is 50 in YAML and 50,000 to many who write it; numbers such as 1.375 are clear."""


def slips_in(root: yaml.Node) -> bool:
    """Return True if a schema file contains values that are probably typing mistakes."""
    return any(_slips_of(column) for column in _columns_of(root)) or bool(_slips_of_row_norm(root))


def _columns_of(root: yaml.Node) -> list[yaml.Node]:
    columns = _value(root, "columns")
    return list(columns.value) if isinstance(columns, yaml.SequenceNode) else []


def _slips_of(column: yaml.Node) -> list[tuple[int, str]]:
    """Return the probable mistakes of a column: line and correction.

    >>> from dpmoments.schema.document import _compose_yaml
    >>> text = "{name: ward, kind: categorical, levels: [A12 B03 ICU]}"
    >>> for part in _slips_of(_compose_yaml(text))[0][1].split("; "):
    ...     print(part)
    column 'ward': levels holds one level, 'A12 B03 ICU': with commas it would be levels: [A12, B03, ICU]
    if it really is one, quote it: levels: ["A12 B03 ICU"]
    """
    name = getattr(_value(column, "name"), "value", None)
    which = f"column {shown(name)}"
    slips = [_quoted(node, which) for node in _plain_scalars(column)]
    slips += [_levels(_value(column, "levels"), which)]
    for key in ("lower", "upper", "scale", "typical", "center", "radius", "weight"):
        slips += [(line, f"{which}: {key}: {fault}") for line, fault in _grouped(_value(column, key))]
    return [slip for slip in slips if slip is not None]


def _slips_of_row_norm(root: yaml.Node) -> list[tuple[int, str]]:
    """Return the probable mistakes in the entries above the columns."""
    return [(line, f"row_norm: {fault}") for line, fault in _grouped(_value(root, "row_norm"))]


def _value(node: yaml.Node | None, key: str) -> yaml.Node | None:
    """Return an entry's value, or None."""
    pairs = node.value if isinstance(node, yaml.MappingNode) else []
    return next((value for name, value in pairs if name.value == key), None)


def _is_plain(node: yaml.Node | None) -> bool:
    """Return True for text or a number without quotes."""
    return isinstance(node, yaml.ScalarNode) and node.style is None


def _plain_scalars(node: yaml.Node) -> Iterator[yaml.ScalarNode]:
    """Iterate over all values without quotes, except descriptions."""
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
    """Find a word in quotes that YAML does not treat as quotes."""
    if not _IN_TYPOGRAPHIC_QUOTES.fullmatch(node.value):
        return None
    bare = node.value.strip(_TYPOGRAPHIC_QUOTES)
    marks = [*dict.fromkeys(mark for mark in (node.value[0], node.value[-1]) if mark in _TYPOGRAPHIC_QUOTES)]
    return _line(node), (
        f"{which}: {node.value} has typographic quotes, {', '.join(marks)}, which YAML reads as part of it: write {bare}, "
        f'or "{bare}" in straight quotes'
    )


def _levels(node: yaml.Node | None, which: str) -> tuple[int, str] | None:
    """Find levels that are not a list, look like several, or mix numbers with digits as text."""
    if isinstance(node, yaml.ScalarNode) and node.tag != _NULL and node.value.strip():
        return _line(node), (
            f"{which}: levels is a text, not a list: put them in [ ], levels: [{', '.join(_parts(node.value))}]"
        )
    if not isinstance(node, yaml.SequenceNode):
        return None
    plain = [level for level in node.value if _is_plain(level)]
    if len(node.value) == len(plain) == 1 and plain[0].tag == _TEXT:
        text = plain[0].value
        if "," in text or (node.flow_style and len(text.split()) > 1):
            return _line(plain[0]), (
                f"{which}: levels holds one level, {shown(text)}: with commas it would be levels: "
                f'[{", ".join(_parts(text))}]; if it really is one, quote it: levels: ["{text}"]'
            )
    digits = [level for level in plain if level.tag == _TEXT and re.fullmatch(r"0\d+", level.value)]
    numbers = [level for level in plain if level.tag == _INTEGER]
    if digits and numbers:
        quoted = [f'"{level.value}"' for level in node.value[:2]] + ["…"] * (len(node.value) > 2)
        return _line(digits[0]), (
            f"{which}: {digits[0].value} is text because it begins with 0, but {numbers[0].value} is a number: put all in "
            f"quotes, levels: [{', '.join(quoted)}]"
        )
    return None


def _parts(text: str) -> list[str]:
    """Split text at commas or semicolons if there are any, else at spaces."""
    parts = re.split("[,;]", text) if re.search("[,;]", text) else text.split()
    return [part.strip() for part in parts if part.strip()]


def _grouped(node: yaml.Node | None) -> Iterator[tuple[int, str]]:
    """Find numbers whose point may be meant as a thousands separator."""
    for scalar in () if node is None else _plain_scalars(node):
        if scalar.tag == _FLOAT and (result := _GROUPED_BY_POINT.fullmatch(scalar.value)):
            number = result[1]
            yield (
                _line(scalar),
                (f"{scalar.value} is {number}, because a point starts the decimals: write {number}, or {number}000"),
            )


# What is wrong with a schema file, each mistake with the line it stands in.


@dataclass
class _Lines:
    """Line numbers of the file's entries, from 1, and their keys."""

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

    def named_in(self, fault: str) -> int:
        """Return the line of the first entry that a fault names, else of the column."""
        of_column, found, about = fault.partition("has unknown entries ")
        words = about if found else re.sub(r"'[^']*'", "", of_column)  # a value may be written like an entry
        lines = [self.keys[word] for word in re.findall(r"\w+", words) if word in self.keys]
        return lines[0] if lines else self.start


def mistakes_in(text: str, values: object) -> tuple[str, ...]:
    """Describe the mistakes in a schema file that is valid YAML, one per column and entry.

    ``values`` are the parsed ``text``.

    >>> text = '''columns:
    ... - {name: age, kind: numeric, lower: 0, uper: 120}
    ... - name: pay
    ...   kind: numeric
    ...   lower: 0
    ...   upper: 200,000
    ... '''
    >>> from dpmoments.schema.document import parse_yaml
    >>> for mistake in mistakes_in(text, parse_yaml(text)):
    ...     print(mistake)
    line 2: column 'age' has unknown entries 'uper' (did you mean 'upper'?): use center, decimal, ...
    line 6: column 'pay': upper must be a number, got the text '200,000': write 200000
    """
    if not isinstance(values, Mapping) or not isinstance(values.get("columns"), list):
        lines_of_dashes = _columns_without_blank(text)
        return (_mistake(lines_of_dashes[0], _DASH_WITHOUT_SPACE),) if lines_of_dashes else ()
    node = _compose_yaml(text)
    top = _Lines.of(node)
    result = [_mistake(line, slip) for line, slip in _slips_of_row_norm(node)]
    for key in values:
        if key not in ENTRIES:
            close = get_close_matches(str(key), ENTRIES, n=1)
            question = f" (did you mean {listed(close)}?)" if close else ""
            line = top.keys.get(str(key), top.start)
            result.append(_mistake(line, f"unknown entries in the schema: {shown(str(key))}{question}"))
    nodes = next(value.value for key, value in node.value if key.value == "columns")
    for column, index in zip(values["columns"], nodes, strict=True):
        lines = _Lines.of(index)
        if slips := _slips_of(index):  # what else the column gets wrong may follow from them
            result += [_mistake(line, slip) for line, slip in slips]
            continue
        if not (fault := _fault(column)):
            continue
        line = lines.named_in(fault)
        if lines.running_on is not None:
            first, last = lines.running_on
            fault += (
                f" (a value runs on from line {first} to {last}: is a colon, or the space after one, missing there?)"
            )
        result.append(_mistake(line, fault))
    return (*result, *_named_twice(values["columns"], nodes))


def _mistake(line: int, fault: str) -> str:
    return f"line {line}: {fault}"


def _named_twice(columns: list[Any], nodes: list[yaml.Node]) -> list[str]:
    """Describe columns whose name an earlier column has."""
    first: dict[str, int] = {}
    result = []
    for column, index in zip(columns, nodes, strict=True):
        name = column.get("name") if isinstance(column, Mapping) else None
        if not isinstance(name, str):
            continue
        line = _Lines.of(index).keys["name"]
        if name in first:
            result.append(f"lines {first[name]} and {line}: two columns are named {shown(name)}: rename or delete one")
        first.setdefault(name, line)
    return result


def _fault(column: Any) -> str:
    """Describe what is wrong with a column."""
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
