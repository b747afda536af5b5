"""YAML as schema files use it: plain values, no repeated keys, and few spellings that are not text.

YAML 1.1, which PyYAML reads, takes ``no`` for false, ``010`` for 8, ``12:30`` for 750 and ``1e6`` for text. A list of
levels must not change in such ways, so this reader follows the core schema of YAML 1.2.

A few lines of aliases can stand for more than any memory holds (a "billion laughs"), so what they stand for is counted.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any, ClassVar

import yaml

__all__ = [
    "columns_without_blank",
    "compose_yaml",
    "format_yaml",
    "parse_yaml",
    "read_text",
    "read_yaml",
    "read_yaml_nodes",
]

PLAIN_WORDS = re.compile(r"[^\W\d](?:[\w -]*\w)?")
"""Text that is written without quotes: words that begin with a letter."""
MOST_VALUES = 250_000
"""Values that a file may hold, those that an alias stands for counted each time: some 400 MB while they are read."""
MOST_DEPTH = 32
"""Lists and mappings in one another."""


def read_text(path: str | Path) -> str:
    """The text of a file, without a mark of the byte order.

    Raises
    ------
    ValueError
        If it is not text in UTF-8.
    """
    try:
        return Path(path).read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        pass
    raise ValueError(f"{path} is not a YAML file (it is not text in UTF-8)")


def read_yaml(path: str | Path) -> Any:
    """Parse a file of plain values.

    Raises
    ------
    ValueError
        If the file is not such YAML. The message names the line but quotes no text: the path may be the table's, by mistake.
    """
    return read_yaml_nodes(path)[0]


def read_yaml_nodes(path: str | Path) -> tuple[Any, Any]:
    """What :func:`read_yaml` reads, and the nodes that it was read from, with their places in the file.

    Raises
    ------
    ValueError
        As for :func:`read_yaml`.
    """
    text = read_text(path)
    try:
        loader = _CoreLoader(text)
        node = loader.get_single_node()
        return (None if node is None else loader.construct_document(node)), node
    except _RepeatedKeyError as error:
        fault = f": a key stands twice in one entry{_place(error)}"
    except _NotPlainError as error:
        fault = f": {error.problem}{_place(error)}"
    except yaml.MarkedYAMLError as error:
        fault = _syntax_fault(text, error)
    except (yaml.YAMLError, RecursionError, ValueError):
        fault = ""
    raise ValueError(f"{path} is not a YAML file{fault}")  # outside the handlers: a chained error would quote the file


def _syntax_fault(text: str, error: yaml.MarkedYAMLError) -> str:
    """What breaks the syntax, where that can be told; no text of the file is quoted."""
    tabs = [number for number, line in enumerate(text.splitlines(), start=1) if re.match(r"[ ]*\t", line)]
    if tabs:
        return f" (line {tabs[0]}): it is indented with a tab, and YAML takes blanks alone"
    if unspaced := columns_without_blank(text):
        return f" (line {unspaced[0]}): a blank belongs after the - that begins a column"
    problem, context = error.problem or "", error.context or ""
    if "while parsing a flow" in context and error.context_mark is not None:
        opening, closing = "[]" if "sequence" in context else "{}"
        comma = ", or a comma is missing in it" if "<scalar>" in problem else ""
        return (
            f" (line {error.context_mark.line + 1}): the {opening} that opens there is not closed with {closing}{comma}"
        )
    if _indented_further(text, error) or ("expected <block end>" in problem and "<scalar>" not in problem):
        return (
            f"{_place(error)}: its indent differs: indent it as the line above, entries of a column below one another"
        )
    if "expected ':'" in problem or "mapping values are not allowed" in problem:
        return f"{_place(error)}: a colon is missing or one too many, here or in the line before, or an indent differs"
    if "scanning a quoted scalar" in context:
        return f"{_place(error)}: a quote is opened and not closed"
    return f"{_place(error)}: look at its indents and quotes"


def columns_without_blank(text: str) -> list[int]:
    """The lines that begin with a - and go on without a blank, as in ``-name: age``."""
    return [number for number, line in enumerate(text.splitlines(), start=1) if re.match(r"\s*-[^\W\d][\w ]*:", line)]


def _indented_further(text: str, error: yaml.MarkedYAMLError) -> bool:
    """Whether an entry stands further to the right than one above it that has its value."""
    if "mapping values are not allowed" not in (error.problem or "") or error.problem_mark is None:
        return False
    above, line = ["", *text.splitlines()][error.problem_mark.line : error.problem_mark.line + 2]
    begun = re.match(r"(\s*(?:- +)?)[^\s#-][^:]*: +[^\s#]", above)
    return begun is not None and len(line) - len(line.lstrip()) > len(begun[1])


def compose_yaml(text: str) -> Any:
    """The nodes of text that :func:`parse_yaml` reads, with their places in it."""
    return yaml.compose(text, Loader=_CoreLoader)


def parse_yaml(text: str) -> Any:
    """Parse text of plain values.

    Examples
    --------
    >>> parse_yaml("levels: [no, 010, 10, 12:30, 1e6, true, null]")
    {'levels': ['no', '010', 10, '12:30', 1000000.0, True, None]}
    """
    return yaml.load(text, Loader=_CoreLoader)  # a SafeLoader of plain values alone


def format_yaml(values: Any) -> str:
    """Text that :func:`parse_yaml` reads as the same values.

    Examples
    --------
    >>> print(format_yaml({"name": "age", "levels": ["north", "010", "1e6", "no"]}), end="")
    name: age
    levels:
    - north
    - "010"
    - "1e6"
    - 'no'
    """
    return yaml.dump(values, Dumper=_QuotingDumper, sort_keys=False, allow_unicode=True, width=float("inf"))


def _place(error: yaml.MarkedYAMLError) -> str:
    mark = error.problem_mark or error.context_mark
    return "" if mark is None else f" (line {mark.line + 1})"


class _QuotingDumper(yaml.SafeDumper):
    """SafeDumper that quotes all text but plain words; in quotes every character can be written."""

    def represent_text(self, text: str) -> yaml.ScalarNode:
        style = None if PLAIN_WORDS.fullmatch(text) else '"'
        return self.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_QuotingDumper.add_representer(str, _QuotingDumper.represent_text)


class _RepeatedKeyError(yaml.constructor.ConstructorError):
    pass


class _NotPlainError(yaml.constructor.ConstructorError):
    """Something other than plain values, or more of them than a schema has; the problem quotes no text of the file."""


class _CoreLoader(yaml.SafeLoader):
    """SafeLoader with the types of YAML 1.2's core schema and no others, decimal numbers only."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own registries, filled below
    yaml_constructors: ClassVar[dict[str | None, Any]] = {}

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self._values = self._depth = 0
        self._sizes: dict[str, int] = {}

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Count what is read, and what an alias stands for as if it were written out."""
        event: Any = self.peek_event()  # type: ignore[no-untyped-call]
        before, anchor, alias = self._values, str(getattr(event, "anchor", "")), isinstance(event, yaml.AliasEvent)
        if alias:
            if anchor in self.anchors and anchor not in self._sizes:
                raise _NotPlainError(
                    problem="an alias stands for something that holds it", problem_mark=event.start_mark
                )
            self._values += self._sizes.get(anchor, 0)
        self._values += 1
        self._depth += 1
        if self._values > MOST_VALUES or self._depth > MOST_DEPTH:
            raise _NotPlainError(
                problem=f"it holds more than {MOST_VALUES:,} values, aliases written out, or values {MOST_DEPTH} deep",
                problem_mark=event.start_mark,
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
            again = [mark for place, (key, mark) in enumerate(keys) if any(key == other for other, _ in keys[:place])]
            raise _RepeatedKeyError(problem="a key stands twice", problem_mark=again[0] if again else node.start_mark)
        return mapping

    def construct_scalar_of(self, node: yaml.Node) -> Any:
        """A number, a truth value or null, where its text is one."""
        text = self.construct_scalar(node) if isinstance(node, yaml.ScalarNode) else ""
        kind = node.tag.rpartition(":")[2]
        if not isinstance(node, yaml.ScalarNode) or not CORE_TYPES[kind].fullmatch(text):
            raise _NotPlainError(problem=f"a value that is marked as {kind} is none", problem_mark=node.start_mark)
        if kind == "null":
            return None
        if kind == "bool":
            return text.lower() == "true"
        return int(text) if kind == "int" else float(text)

    def refuse(self, node: yaml.Node) -> Any:
        """No tag but those of plain values."""
        raise _NotPlainError(problem="it holds a value of a kind that no schema has", problem_mark=node.start_mark)


CORE_TYPES = {
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
    _CoreLoader.add_implicit_resolver(_tag, re.compile(f"^(?:{CORE_TYPES[_kind].pattern})$"), list(_first))
    _CoreLoader.add_constructor(_tag, _CoreLoader.construct_scalar_of)
for _kind in ("str", "seq", "map"):
    _tag = f"tag:yaml.org,2002:{_kind}"
    _CoreLoader.add_constructor(_tag, yaml.SafeLoader.yaml_constructors[_tag])
_CoreLoader.add_constructor(None, _CoreLoader.refuse)
