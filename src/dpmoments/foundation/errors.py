"""Errors whose message a ``raise`` statement of this library wrote, and no code that may quote a cell."""

from __future__ import annotations

import opcode
import re
from pathlib import Path
from types import TracebackType

_PACKAGE = Path(__file__).parents[1]
_RAISE = opcode.opmap["RAISE_VARARGS"]


def has_own_words(error: BaseException) -> bool:
    """Whether the message was written by a ``raise`` statement of this library, and not by code it called.

    Examples
    --------
    >>> from dpmoments.privacy.unit import Neighbors
    >>> try:
    ...     Neighbors.of("both")
    ... except ValueError as error:
    ...     has_own_words(error)
    True
    >>> try:
    ...     float("a cell")
    ... except ValueError as error:
    ...     has_own_words(error)
    False
    """
    last = _innermost_frame(error.__traceback__)
    if last is None or not Path(last.tb_frame.f_code.co_filename).is_relative_to(_PACKAGE):
        return False
    # Code in C has no frame of its own: its errors stop at a call in our file, not at a raise.
    return last.tb_frame.f_code.co_code[last.tb_lasti] == _RAISE


def _innermost_frame(traceback: TracebackType | None) -> TracebackType | None:
    """Where an error began; None where there is no traceback."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback


def place_of(traceback: TracebackType | None) -> str:
    """File and line of the innermost frame."""
    last = _innermost_frame(traceback)
    return "an unknown place" if last is None else f"{Path(last.tb_frame.f_code.co_filename).name}:{last.tb_lineno}"


# Text out of a file as it is shown: no character of it that a terminal or a page obeys instead of showing.

_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that a terminal obeys instead of showing, or that turn the direction of what follows."""


def visible(text: str) -> str:
    r"""Text in which a name out of a file cannot clear the screen, or hide what stands beside it.

    Examples
    --------
    >>> print(visible("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    return _HIDDEN.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


# What a ledger says where it cannot do what it is asked.


class LedgerError(RuntimeError):
    """A ledger cannot be used as asked: its file is locked, damaged, foreign, newer or gone, or its history contradicts itself.

    Nothing was spent by what was asked for.
    """


class BudgetExceededError(LedgerError):
    """A release would pass the budget that its dataset was granted, or is of a kind that the grant cannot count."""
