"""Errors whose message a ``raise`` statement of this library wrote, and no code that may quote a cell."""

from __future__ import annotations

import opcode
from pathlib import Path
from types import TracebackType

__all__ = ["has_own_words", "innermost_frame", "place_of"]

PACKAGE = Path(__file__).parents[1]
RAISE = opcode.opmap["RAISE_VARARGS"]


def has_own_words(error: BaseException) -> bool:
    """Whether the message was written by a ``raise`` statement of this library, and not by code it called.

    Examples
    --------
    >>> from dpmoments.privacy.neighbors import Neighbors
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
    last = innermost_frame(error.__traceback__)
    if last is None or not Path(last.tb_frame.f_code.co_filename).is_relative_to(PACKAGE):
        return False
    # Code in C has no frame of its own: its errors stop at a call in our file, not at a raise.
    return last.tb_frame.f_code.co_code[last.tb_lasti] == RAISE


def innermost_frame(traceback: TracebackType | None) -> TracebackType | None:
    """Where an error began; None where there is no traceback."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback


def place_of(traceback: TracebackType | None) -> str:
    """File and line of the innermost frame."""
    last = innermost_frame(traceback)
    return "an unknown place" if last is None else f"{Path(last.tb_frame.f_code.co_filename).name}:{last.tb_lineno}"
