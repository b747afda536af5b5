"""What a person sees when a command fails: a line or two on standard error, and never a cell of the table."""

from __future__ import annotations

import errno
import os
import tempfile

from dpmoments.cli.option_words import in_options
from dpmoments.cli.tables import OutputError
from dpmoments.foundation.errors import has_own_words, place_of
from dpmoments.spending.run import NOTES

__all__ = ["StoppedError", "explain", "has_own_words", "notes_of"]


NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class StoppedError(Exception):
    """A job was stopped by the keyboard; the message says whether anything was spent."""


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
    return "; ".join([_message(error), *notes_of(error)])


def notes_of(error: BaseException) -> list[str]:
    """What the library noted on an error: whether anything was spent. Notes of others may quote a cell, as messages may."""
    return [note for note in getattr(error, "__notes__", ()) if note in NOTES]


def _message(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno is not None:
        return _refusal(error)
    if has_own_words(error):
        return in_options(" ".join(str(error).split()))
    return (
        f"stopped by an unexpected {type(error).__name__} at {place_of(error.__traceback__)}; its message is withheld, because "
        "it may quote the table. Please report this line"
    )


def _refusal(error: OSError) -> str:
    """Say what the operating system refused. Its own words alone are shown: those of a library's error may quote anything."""
    assert error.errno is not None
    words = os.strerror(error.errno)
    if isinstance(error, OutputError):
        return (
            f"standard output cannot be written: {words}. What was printed is not complete; files that the command wrote are. "
            "Make room where the output goes, or print elsewhere"
        )
    refused = (
        f"{error.filename}: {words}" if error.filename else f"the operating system refused to read or write: {words}"
    )
    if error.errno in NO_ROOM:
        refused += ". Make room there, or choose another place"
        if not error.filename:
            refused += f"; temporary files are in {tempfile.gettempdir()}, and TMPDIR names another folder for them"
    return refused
