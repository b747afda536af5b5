"""Message: a code with plain facts, stored as data and put into words when printed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from types import MappingProxyType
from typing import Any, Literal

import numpy as np

from dpmoments.foundation.errors import InputTypeError, InputValueError, visible
from dpmoments.foundation.values import from_plain, require_known, to_plain
from dpmoments.messages.advice import ANALYST, AT_THE_SHELL, IN_PYTHON
from dpmoments.messages.codes import CODES, ERRORS, PART, QUERIES, Fact, fault_of
from dpmoments.messages.findings import FINDINGS, SHORT
from dpmoments.messages.wording import Argument, Words, as_fact, filled

Audience = Literal["analyst", "curator", "shell", "short"]
"""Reader of a message.

``curator`` reads Python, ``shell`` is a curator at the command line, ``short`` is a caption or a cell.
"""
_ADVICE: Mapping[Audience, Mapping[str, Words]] = MappingProxyType(
    {"analyst": ANALYST, "curator": IN_PYTHON, "shell": AT_THE_SHELL}
)
_MAX_IN_FILE = 100_000


class Message:
    """A message as data: its words are made when it is printed, for the audience that reads it.

    Parameters
    ----------
    code : str
        One of :data:`dpmoments.messages.codes.CODES`.
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

    __slots__ = ("_facts", "code")
    code: str
    _facts: tuple[tuple[str, Fact], ...]

    def __init__(self, code: str, /, **facts: Any) -> None:
        readers: Mapping[str, Callable[[Any], Any]] = _READERS if code in ERRORS else {}
        plain = {name: readers.get(CODES.get(code, {}).get(name, ""), _plain)(value) for name, value in facts.items()}
        if fault := fault_of(code, plain):
            raise InputValueError.of(fault[0], **fault[1])
        object.__setattr__(self, "code", code)
        object.__setattr__(self, "_facts", tuple(sorted(plain.items())))

    def __setattr__(self, name: str, value: object) -> None:
        raise InputTypeError.of("message-not-changed")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Message) and (self.code, self._facts) == (other.code, other._facts)

    def __hash__(self) -> int:
        return hash((self.code, self._facts))

    def __reduce__(self) -> tuple[Any, ...]:
        return _made, (self.code, dict(self._facts))

    @classmethod
    def of_query(cls, query: Query) -> Message:
        """Return the query of a draw.

        A text that is not a code is the name of a query from outside the library.
        """
        if isinstance(query, str):
            return cls(query) if query in QUERIES else cls("query", name=query)
        if query.code not in QUERIES:
            raise InputValueError.of("message-of-other-code", value=query.code)
        return query

    @property
    def facts(self) -> Mapping[str, Fact]:
        """The facts by name."""
        return MappingProxyType(dict(self._facts))

    def within(self, part: str) -> Message:
        """Return the same message about one group or table of several."""
        facts = dict(self._facts)
        outer = facts.pop(PART, ())
        assert isinstance(outer, tuple)
        return Message(self.code, **facts, part=(part, *outer))

    def text(self, audience: Audience = "analyst") -> str:
        """Return the message in words."""
        absent: dict[str, Fact] = {
            name[:-1]: "" for name, kind in CODES[self.code].items() if (kind, name[-1]) == ("message", "?")
        }
        facts = absent | {name: _said(fact, audience) for name, fact in self._facts}
        argument = Argument(shell=audience == "shell")
        if audience == "short":
            said = filled(SHORT[self.code] if self.code in SHORT else FINDINGS[self.code], facts, argument)
        else:
            findings = FINDINGS if self.code in FINDINGS else SHORT
            sentences = (findings[self.code], _ADVICE[audience].get(self.code, ""))
            said = " ".join(filled(sentence, facts, argument) for sentence in sentences if sentence)
        part = facts.get(PART, ())
        assert isinstance(part, tuple)
        return "".join(f"{visible(str(name))}: " for name in part) + said

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        facts = "".join(f", {name}={value!r}" for name, value in self._facts)
        return f"Message({self.code!r}{facts})"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        if not self._facts:
            return {"code": self.code}
        facts = {name: _in_file(value) for name, value in self._facts}
        return {"code": self.code, "facts": to_plain(facts)}

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
            raise InputValueError.of("entries-missing", name="message", names=["code"])
        facts = from_plain(values.get("facts", {}))
        if not isinstance(facts, dict) or not all(isinstance(name, str) for name in facts):
            raise InputTypeError.of("not-a-mapping", name="facts")
        code = values["code"]
        if codes is not None and (not isinstance(code, str) or code not in codes):
            raise InputValueError.of("message-of-other-code", value=code)
        plain = {name: tuple(value) if isinstance(value, list) else value for name, value in facts.items()}
        if fault := fault_of(code, plain):
            raise InputValueError.of(fault[0], **fault[1])
        return cls(code, **plain)


Query = Message | str
"""Query of a receipt: a message, or the name of a query from outside the library.

A message without facts may be given by its code.
"""


def _made(code: str, facts: dict[str, Fact]) -> Message:
    return Message(code, **facts)


def messages_of(values: object, codes: Iterable[str], what: str) -> tuple[Message, ...]:
    """Read a list of messages of a file."""
    if not isinstance(values, list) or len(values) > _MAX_IN_FILE:
        raise InputTypeError.of("entry-of-other-type", name=what, expected="messages")
    return tuple(Message.from_dict(value, codes) for value in values)


def _said(fact: Fact, audience: Audience) -> Fact:
    """Return a fact with the messages in it as text."""
    if isinstance(fact, tuple):
        return tuple(_said(part, audience) for part in fact)
    return fact.text(audience) if isinstance(fact, Message) else fact


def _in_file(fact: Fact) -> Any:
    """Return a fact as JSON holds it; :meth:`Message.from_dict` refuses one that holds messages."""
    if isinstance(fact, tuple):
        return [_in_file(part) for part in fact]
    return fact.to_dict() if isinstance(fact, Message) else fact


def _plain(value: Any) -> Any:
    """Return a fact without the types of arrays."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, list | tuple):
        return tuple(map(_plain, value))
    return str(value) if isinstance(value, str) else value


def _names(values: Any) -> Any:
    """Return names that may be numbers or truth values, as levels are."""
    return tuple(map(str, values)) if isinstance(values, list) else _plain(values)


_READERS: Mapping[str, Callable[[Any], Any]] = MappingProxyType({"fact": as_fact, "names": _names})
"""Readers of the facts of an error, by kind."""
