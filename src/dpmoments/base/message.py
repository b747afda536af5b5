"""Message: a code with plain facts, as files hold it, put into words when it is printed.

A file that holds another code, or another fact, is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from dpmoments.base.errors import InputTypeError, InputValueError, shown, visible
from dpmoments.base.values import from_plain, require_known, to_plain
from dpmoments.base.wordings import QUERIES, WORDINGS, Audience, Fact, Facts

_MAX_IN_FILE = 100_000


@dataclass(frozen=True, init=False, repr=False, slots=True)
class Message:
    """A message as data: its words are made when it is printed, for the audience that reads it.

    Parameters
    ----------
    code : str
        One of :data:`dpmoments.base.wordings.WORDINGS`.
    **facts
        Numbers, names and tuples of them, as the code declares.

    Raises
    ------
    ValueError
        If the code is unknown, or the facts are not those of the code.

    Examples
    --------
    >>> message = Message("rows-dropped", share=0.12, rows=45222)
    >>> print(message.text("analyst"))
    About 12% of the table's 45,222 rows were dropped (missing values, or values outside the schema). Results describe the rest.
    >>> Message.from_dict(message.to_dict()) == message
    True
    """

    code: str
    _facts: tuple[tuple[str, Fact], ...]

    def __init__(self, code: str, /, **facts: Any) -> None:
        plain = {name: _plain(value) for name, value in facts.items()}
        _check(code, plain)
        object.__setattr__(self, "code", code)
        object.__setattr__(self, "_facts", tuple(sorted(plain.items())))

    @classmethod
    def of_query(cls, query: Query) -> Message:
        """Return the query of a draw.

        A text that is not a code is the name of a query from outside the library.
        """
        if isinstance(query, str):
            return cls(query) if query in QUERIES else cls("query", name=query)
        if query.code not in QUERIES:
            raise _other_code(query.code)
        return query

    @property
    def facts(self) -> Facts:
        """The facts by name."""
        return MappingProxyType(dict(self._facts))

    def within(self, part: str) -> Message:
        """Return the same message about one group or table of several."""
        return Message(self.code, **{**self.facts, PART: (part, *self.facts.get(PART, ()))})

    def text(self, audience: Audience = "analyst") -> str:
        """Return the message in words."""
        parts = "".join(f"{visible(str(name))}: " for name in self.facts.get(PART, ()))
        return parts + WORDINGS[self.code].text(self.facts, audience)

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        facts = "".join(f", {name}={value!r}" for name, value in self._facts)
        return f"Message({self.code!r}{facts})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        if not self._facts:
            return {"code": self.code}
        return {"code": self.code, "facts": to_plain({name: _in_file(value) for name, value in self._facts})}

    @classmethod
    def from_dict(cls, values: Any, codes: Iterable[str] | None = None) -> Message:
        """Read a message of a file.

        Refuse one that is not of the ``codes`` expected, or whose facts are not its own.

        Raises
        ------
        TypeError, ValueError
            If it is not a message.
        """
        require_known(values, ("code", "facts"), "message")
        if "code" not in values:
            raise InputValueError("message has no code")
        facts = from_plain(values.get("facts", {}))
        if not isinstance(facts, dict) or not all(isinstance(name, str) for name in facts):
            raise InputTypeError("facts must be a mapping")
        code = values["code"]
        if codes is not None and (not isinstance(code, str) or code not in codes):
            raise _other_code(code)
        return cls(code, **facts)


Query = Message | str
"""Query of a receipt: a message, or the name of a query from outside the library.

A message without facts may be given by its code.
"""


def messages_of(values: object, codes: Iterable[str], what: str) -> tuple[Message, ...]:
    """Read a list of messages of a file."""
    if not isinstance(values, list) or len(values) > _MAX_IN_FILE:
        raise InputTypeError(f"{what} must be a list of messages")
    return tuple(Message.from_dict(value, codes) for value in values)


_NAMED = 3
"""Columns that a line on several names."""


def lines_of(messages: Iterable[Message]) -> tuple[str, ...]:
    """Return messages in words; those that differ in nothing but their column are one line."""
    alike: dict[tuple[Any, ...], list[Message]] = {}
    for message in messages:
        rest = tuple(fact for fact in message._facts if fact[0] != "column")
        alike.setdefault((message.code, rest), []).append(message)
    lines = []
    for first, *others in alike.values():
        columns = [str(message.facts["column"]) for message in (first, *others) if "column" in message.facts]
        if others and columns:
            left = f" and {len(columns) - _NAMED} more" if len(columns) > _NAMED else ""
            named = f"{len(columns)} columns ({', '.join(columns[:_NAMED])}{left})"
            first = Message(first.code, **{**first.facts, "column": named})
        lines.append(first.text())
    return tuple(lines)


def _in_file(fact: Fact) -> Any:
    return [_in_file(part) for part in fact] if isinstance(fact, tuple) else fact


def _plain(value: Any) -> Any:
    """Return a fact without the types of arrays."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return str(value) if isinstance(value, str) else value


# Facts: the kinds that a code declares, and how words hold them.


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_word(value: object) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[A-Za-z0-9_.-]{1,80}", value) is not None


def _every(check: Callable[[object], bool]) -> Callable[[object], bool]:
    return lambda value: isinstance(value, tuple) and all(map(check, value))


KINDS: Mapping[str, Callable[[object], bool]] = MappingProxyType(
    {
        "number": _is_number,
        "numbers": _every(_is_number),
        "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
        "flag": lambda value: isinstance(value, bool),
        "name": lambda value: isinstance(value, str),
        "names": _every(lambda value: isinstance(value, str)),
        "level": lambda value: isinstance(value, str | int),
        "word": _is_word,
        "words": _every(_is_word),
    }
)
"""Kinds of facts.

A ``name`` is text that a person wrote, a ``word`` one that the library defines.
"""
PART = "part"
"""A fact of any message: the group or pooled table that it is about, from the outside in."""


def _other_code(code: object) -> InputValueError:
    return InputValueError(f"{shown(code)} is not the code of a message that is expected here")


def _check(code: object, facts: Mapping[str, object]) -> None:
    """Raise ValueError unless the code declares these facts."""
    if not isinstance(code, str) or code not in WORDINGS:
        raise _other_code(code)
    declared = WORDINGS[code].facts
    if missing := {name for name in declared if not name.endswith("?")} - facts.keys():
        raise InputValueError(f"message {shown(code)} lacks the facts {', '.join(sorted(missing))}")
    kinds = {name.removesuffix("?"): kind for name, kind in declared.items()} | {PART: "names"}
    for name, value in facts.items():
        if name not in kinds:
            raise InputValueError(f"message {shown(code)} has no fact {shown(name)}")
        if not KINDS[kinds[name]](value):
            raise InputValueError(
                f"the fact {shown(name)} of message {shown(code)} is not of kind {shown(kinds[name])}"
            )
