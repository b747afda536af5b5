"""What was said: of an error a part of its sentence, of a message its code and facts (``tests/golden/words``)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest

from dpmoments.base.errors import InputError
from dpmoments.base.message import Message
from dpmoments.releases.disclosed import MessageWarning

__all__ = ["Said", "codes", "refused", "warned"]


class Said:
    """A message as a test expects it: its code, or a part of its sentence, and those of its facts that matter.

    A fact that is a message may be one, too.
    """

    def __init__(self, code: str, /, **facts: Any) -> None:
        self.code, self.facts = code, facts

    def __repr__(self) -> str:
        return f"Said({', '.join([repr(self.code), *(f'{name}={fact!r}' for name, fact in self.facts.items())])})"

    def is_of(self, said: Message | InputError | MessageWarning) -> bool:
        """Whether a message has the code and these facts, or an error's sentence holds them."""
        if isinstance(said, InputError):
            return _is_in(self, str(said))
        return said.code == self.code and all(
            name in said.facts and _is_fact(fact, said.facts[name]) for name, fact in self.facts.items()
        )


def _is_in(fact: Any, sentence: str) -> bool:
    """Whether a sentence holds a fact, however it writes it; of names it lists the first few."""
    if isinstance(fact, Said):
        return fact.code in sentence and all(_is_in(part, sentence) for part in fact.facts.values())
    if isinstance(fact, tuple | list):
        return all(_is_in(part, sentence) for part in fact[:5])
    if isinstance(fact, bool):
        return True  # chose the words
    written = (str(fact), repr(fact), *((f"{fact:,}", f"{fact:g}") if isinstance(fact, int | float) else ()))
    return any(form in sentence for form in written)


def _is_fact(expected: Any, fact: Any) -> bool:
    if isinstance(expected, tuple):
        return isinstance(fact, tuple) and len(fact) == len(expected) and all(map(_is_fact, expected, fact))
    if isinstance(expected, Said):
        return isinstance(fact, Message) and expected.is_of(fact)
    return bool(expected == fact)


def codes(messages: Iterable[Message]) -> list[str]:
    """The codes of messages, in their order."""
    return [message.code for message in messages]


@contextmanager
def refused(
    said: str | Said | tuple[str | Said, ...],
    kind: type[Exception] | tuple[type[Exception], ...] = ValueError,
    **facts: Any,
) -> Iterator[Any]:
    """Steps that are refused with this part of a sentence, or one of these, and these facts in it."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert isinstance(error, InputError), repr(error)
    assert any(_expected(one, facts).is_of(error) for one in (said if isinstance(said, tuple) else (said,))), (
        str(error),
        said,
        facts,
    )


@contextmanager
def warned(code: str, kind: type[MessageWarning] = MessageWarning, **facts: Any) -> Iterator[Any]:
    """Steps that give a warning of this code, with these facts among its own."""
    with pytest.warns(kind) as caught:
        yield caught
    found = [one.message for one in caught if isinstance(one.message, kind)]
    assert any(Said(code, **facts).is_of(one) for one in found), [*map(repr, found)]


def _expected(said: str | Said, facts: Mapping[str, Any]) -> Said:
    return Said(said, **facts) if isinstance(said, str) else Said(said.code, **said.facts, **facts)
