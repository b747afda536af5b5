"""What was said, by codes and facts: tests assert these, and the words live in ``tests/golden/words``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from dpmoments.foundation.errors import InputError
from dpmoments.messages.message import Message
from dpmoments.releases.release_warning import MessageWarning

__all__ = ["codes", "refused", "warned"]


def codes(messages: Iterable[Message]) -> list[str]:
    """The codes of messages, in their order."""
    return [message.code for message in messages]


@contextmanager
def refused(
    code: str | tuple[str, ...], kind: type[Exception] | tuple[type[Exception], ...] = ValueError, **facts: Any
) -> Iterator[Any]:
    """Steps that are refused with this code, or one of these, and these facts among its own."""
    with pytest.raises(kind) as caught:
        yield caught
    error = caught.value
    assert isinstance(error, InputError), repr(error)
    assert error.code in ((code,) if isinstance(code, str) else code), repr(error)
    assert facts.items() <= dict(error.facts).items(), repr(error)


@contextmanager
def warned(code: str, kind: type[MessageWarning] = MessageWarning, **facts: Any) -> Iterator[Any]:
    """Steps that give a warning of this code, with these facts among its own."""
    with pytest.warns(kind) as caught:
        yield caught
    found = [one.message for one in caught if isinstance(one.message, kind)]
    assert any(one.code == code and facts.items() <= dict(one.facts).items() for one in found), [*map(repr, found)]
