"""Facts put into the words of a message. Templates are the library's own.

No text of a fact is ever read as one.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from enum import Enum
from os import PathLike
from typing import Any

import numpy as np

from dpmoments.foundation.errors import visible
from dpmoments.foundation.values import no_less, shown
from dpmoments.messages.codes import ARGUMENT, Fact
from dpmoments.messages.phrases import PHRASES

Words = str | Callable[[Mapping[str, Any]], str]
"""A template with the facts' names in braces, or a function of the facts."""
MAX_NAMED = 5
"""Names that one message lists; of more it says how many there are."""


_CLOSE = 0.7
"""Smallest similarity of a name that is suggested."""
_LONGEST_NAME = 200
"""Longest name that is compared, in characters."""
_CONTAINERS = (int, bytes, list, tuple, dict, set, np.ndarray)
"""Types of values whose text is shortened; another object has a text of its own."""


class _Name(str):
    """Name that is quoted as code when it is formatted as ``python`` or ``shell``."""

    __slots__ = ()

    def __repr__(self) -> str:
        return shown(str(self))

    def __format__(self, spec: str) -> str:
        if spec == "shell":
            return shlex.quote(self)
        if spec == "phrase":
            return PHRASES[str(self)]
        if spec.startswith("message"):
            return str(self)
        return repr(str(self)) if spec == "python" else format(str(self), spec)


class _Shown(_Name):
    """Text of a value that is neither a number nor text, quoted already."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def as_fact(value: Any) -> Fact:
    """Return a fact of an error: a number or text itself, else a shortened text.

    >>> [as_fact(value) for value in (3, "age", [1, 2], None)]
    [3, 'age', [1, 2], None]
    """
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, Enum | PathLike):
        return str(value)
    if isinstance(value, str | float) or (isinstance(value, int) and abs(value) < 2**64):
        return value
    return _Shown(shown(value) if isinstance(value, _CONTAINERS) else str(value))


class _Names(tuple["Fact", ...]):
    """Facts that are listed when they are formatted."""

    def __format__(self, spec: str) -> str:
        names = [*map(str, self)]
        if spec == "python":
            return ", ".join(map(repr, names))
        if spec == "messages":
            return "; ".join(names)
        if spec == "and no":
            return " and no ".join(names)
        return ", ".join(names) if spec == "all" else listed(names, quoted=spec != "plain")


_ARGUMENTS = {
    "with mean": ("with mean=True", "without --no-mean"),
    "without mean": ("with mean=False", "with --no-mean"),
    "overwrite": ("pass overwrite=True", "pass --overwrite"),
    "privacy_unit": ("privacy_unit=", "--privacy-unit"),
    "reason": ("reason='…', by='…'", "--reason TEXT --by NAME"),
    "delimiter=\t": ('delimiter="\\t"', "--delimiter tab"),
    "encoding": ("text_format=TextFormat(encoding=...)", "--encoding"),
}
"""Arguments that the command line writes in its own way: in Python, and there."""


class Argument:
    """Formatter of arguments in sentences, ``{argument:name=value}``, for Python or the shell.

    >>> "{0:dataset=north coast}, {1:dataset=north coast}".format(Argument(), Argument(shell=True))
    "dataset='north coast', --dataset 'north coast'"
    """

    def __init__(self, *, shell: bool = False) -> None:
        self._shell = shell

    def __format__(self, spec: str) -> str:
        if spec in _ARGUMENTS:
            return _ARGUMENTS[spec][self._shell]
        name, _, value = spec.partition("=")
        return f"--{name} {shlex.quote(value)}" if self._shell else f"{name}={value!r}"


def filled(words: Words, facts: Mapping[str, Fact], argument: Argument | None = None) -> str:
    """Return the words with the facts in them.

    Characters of names that a terminal obeys are shown.

    >>> print(filled("{names} and {share:.0%}", {"names": ("a", "{share}"), "share": 0.2}))
    'a', '{share}' and 20%
    """
    visible_facts: dict[str, Any] = {name: _visible(fact) for name, fact in facts.items()}
    visible_facts[ARGUMENT] = Argument() if argument is None else argument
    return words(visible_facts) if callable(words) else words.format(**visible_facts)


def _visible(fact: Fact) -> Fact:
    """Return a fact without characters of names that a terminal obeys."""
    if isinstance(fact, tuple):
        return _Names(map(_visible, fact))
    if isinstance(fact, _Shown):
        return _Shown(visible(fact))
    return _Name(visible(fact)) if isinstance(fact, str) else fact


def listed(names: Sequence[str], *, quoted: bool = True) -> str:
    """Return names as a message lists them.

    >>> listed(["age", "income"]), listed("abcdefg", quoted=False)
    ("'age', 'income'", 'a, b, c, d, e and 2 more')
    """
    result = [f"'{name}'" if quoted else name for name in names[:MAX_NAMED]]
    more = f" and {len(names) - MAX_NAMED} more" if len(names) > MAX_NAMED else ""
    return ", ".join(result) + more


def closest(name: object, known: Iterable[str]) -> dict[str, str]:
    """Return the fact of the public name that is closest; nothing if no name is close.

    >>> closest("incom", ["age", "income"]), closest("Age", ["age"]), closest("height", ["age"])
    ({'close': 'income'}, {'close': 'age'}, {})
    """
    plain = {each.casefold(): each for each in known}
    text = name.strip().casefold() if isinstance(name, str) and len(name) <= _LONGEST_NAME else ""
    from difflib import get_close_matches

    close = get_close_matches(text, plain, n=1, cutoff=_CLOSE) if text else []
    return {"close": plain[close[0]]} if close else {}


def budget_text(facts: Mapping[str, Fact]) -> str:
    """Return a budget in words.

    >>> budget_text({"epsilon": 1.0}), budget_text({"rho": 0.5})
    ('ε = 1', 'ρ = 0.5')
    """
    signs = {"epsilon": "ε", "delta": "δ", "rho": "ρ"}
    return ", ".join(f"{sign} = {no_less(_float(facts, name))}" for name, sign in signs.items() if name in facts)


def at_most_percent(share: Fact) -> str:
    """Return a share in percent, rounded up to two digits.

    >>> at_most_percent(0.2201), at_most_percent(1.0)
    ('23%', '100%')
    """
    assert isinstance(share, int | float)
    return f"{float(no_less(100.0 * share, 2)):g}%"


def _float(facts: Mapping[str, Fact], name: str) -> float:
    value = facts[name]
    assert isinstance(value, int | float)
    return float(value)
