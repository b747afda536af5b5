"""What a person sees when a command fails: a line or two on standard error, and never a cell of the table."""

from __future__ import annotations

import opcode
from pathlib import Path
from types import TracebackType

import dpmoments
from dpmoments.cli.option_words import in_options
from dpmoments.release_run import NOTES

__all__ = ["explain", "has_own_words"]

PACKAGE = Path(dpmoments.__file__).parent
RAISE = opcode.opmap["RAISE_VARARGS"]


def explain(error: Exception) -> str:
    """Say in one line what went wrong.

    A message is shown only where it cannot quote a cell: where a ``raise`` statement of this library made it (no message of
    the library names a private value), or where the operating system refused a file. Whatever else stops a command, such as
    an error inside a reader or an array library, is told by its kind and place alone. Whether anything was spent is told of any.

    Examples
    --------
    >>> explain(FileNotFoundError(2, "No such file or directory", "people.yaml"))
    'people.yaml: No such file or directory'
    """
    # Notes of others may quote a cell, as messages may.
    notes = [note for note in getattr(error, "__notes__", ()) if note in NOTES]
    return "; ".join([_message(error), *notes])


def _message(error: Exception) -> str:
    if has_own_words(error):
        return in_options(" ".join(str(error).split()))
    if isinstance(error, OSError) and error.strerror and error.filename:
        return f"{error.filename}: {error.strerror}"
    return (
        f"stopped by an unexpected {type(error).__name__} at {_place(error.__traceback__)}; its message is withheld, because it "
        "may quote the table. Please report this line"
    )


def has_own_words(error: Exception) -> bool:
    """Whether the message was written by a ``raise`` statement of this library, and not by code it called.

    Examples
    --------
    >>> try:
    ...     dpmoments.Neighbors.of("both")
    ... except ValueError as error:
    ...     has_own_words(error)
    True
    >>> try:
    ...     float("a cell")
    ... except ValueError as error:
    ...     has_own_words(error)
    False
    """
    last = _innermost(error.__traceback__)
    if last is None or not Path(last.tb_frame.f_code.co_filename).is_relative_to(PACKAGE):
        return False
    # Code in C has no frame of its own: its errors stop at a call in our file, not at a raise.
    return last.tb_frame.f_code.co_code[last.tb_lasti] == RAISE


def _innermost(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback


def _place(traceback: TracebackType | None) -> str:
    """File and line of the innermost frame."""
    last = _innermost(traceback)
    return "an unknown place" if last is None else f"{Path(last.tb_frame.f_code.co_filename).name}:{last.tb_lineno}"
