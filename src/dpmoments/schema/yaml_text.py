"""YAML as schema files use it: plain values, no repeated keys, and few spellings that are not text.

YAML 1.1, which PyYAML reads, takes ``no`` for false, ``010`` for 8, ``12:30`` for 750 and ``1e6`` for text. A list of
levels must not change in such ways, so this reader follows the core schema of YAML 1.2.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import yaml

__all__ = ["format_yaml", "parse_yaml", "read_yaml"]

PLAIN_WORDS = re.compile(r"[^\W\d](?:[\w -]*\w)?")
"""Text that is written without quotes: words that begin with a letter."""


def read_yaml(path: str | Path) -> Any:
    """Parse a file of plain values.

    Raises
    ------
    ValueError
        If the file is not such YAML. The message names the line but quotes no text: the path may be the table's, by mistake.
    """
    try:
        return parse_yaml(Path(path).read_bytes().decode("utf-8-sig"))
    except UnicodeDecodeError:
        fault = " (it is not text in UTF-8)"
    except _RepeatedKeyError as error:
        fault = f": a key stands twice in one entry{_place(error)}"
    except yaml.MarkedYAMLError as error:
        fault = f"{_place(error)}: look at its indents and quotes"
    except (yaml.YAMLError, RecursionError, ValueError):
        fault = ""
    raise ValueError(f"{path} is not a YAML file{fault}")  # outside the handlers: a chained error would quote the file


def parse_yaml(text: str) -> Any:
    """Parse text of plain values.

    Examples
    --------
    >>> parse_yaml("levels: [no, 010, 10, 12:30, 1e6, true, null]")
    {'levels': ['no', '010', 10, '12:30', 1000000.0, True, None]}
    """
    return yaml.load(text, Loader=_CoreLoader)  # a SafeLoader with fewer types


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


class _CoreLoader(yaml.SafeLoader):
    """SafeLoader with the implicit types of YAML 1.2's core schema, decimal numbers only."""

    yaml_implicit_resolvers: dict[str, Any] = {}  # noqa: RUF012 - PyYAML's own registry, filled below

    def construct_mapping(self, node: yaml.MappingNode, deep: bool = False) -> dict[Any, Any]:
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        if len(mapping) < len(node.value):
            raise _RepeatedKeyError(problem="a key stands twice", problem_mark=node.start_mark)
        return mapping


for _tag, _pattern, _first in (
    ("bool", r"true|True|TRUE|false|False|FALSE", "tTfF"),
    ("null", r"~|null|Null|NULL|", ["~", "n", "N", ""]),
    ("int", r"[-+]?(0|[1-9][0-9]*)", "-+0123456789"),
    ("float", r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))([eE][-+]?[0-9]+)?", "-+.0123456789"),
):
    _CoreLoader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(f"^(?:{_pattern})$"), list(_first))
