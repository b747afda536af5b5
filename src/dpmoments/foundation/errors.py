"""Errors of this library: those whose message it wrote itself, and may be shown."""

from __future__ import annotations

import re
from pathlib import Path
from types import TracebackType


class InputError(Exception):
    """An error whose message this library wrote: it quotes no value of a table and may be shown to anyone.

    Every error that the library raises on purpose is one, and also of the built-in kind that Python's users expect: catch
    ``ValueError`` or ``InputError``. An error of a reader or an array library is none, and its message may quote the table.

    Examples
    --------
    >>> from dpmoments.privacy.unit import Neighbors
    >>> try:
    ...     Neighbors.of("both")
    ... except InputError as error:
    ...     isinstance(error, ValueError), error.code
    (True, 'value')
    """

    @property
    def code(self) -> str:
        """The kind of error, a word that stays as it is: ``"value"``, ``"file-not-found"``."""
        words = re.findall(
            r"[A-Z]+(?![a-z])|[A-Z][a-z]+", type(self).__name__.removeprefix("Input").removesuffix("Error")
        )
        return "-".join(words).lower()


class InputValueError(InputError, ValueError):
    """A ``ValueError`` that this library raised."""


class InputTypeError(InputError, TypeError):
    """A ``TypeError`` that this library raised."""


class InputKeyError(InputError, KeyError):
    """A ``KeyError`` that this library raised."""


class InputLookupError(InputError, LookupError):
    """A ``LookupError`` that this library raised."""


class InputArithmeticError(InputError, ArithmeticError):
    """An ``ArithmeticError`` that this library raised."""


class InputOverflowError(InputError, OverflowError):
    """An ``OverflowError`` that this library raised."""


class InputFloatingPointError(InputError, FloatingPointError):
    """A ``FloatingPointError`` that this library raised."""


class InputRuntimeError(InputError, RuntimeError):
    """A ``RuntimeError`` that this library raised."""


class InputOSError(InputError, OSError):
    """An ``OSError`` that this library raised."""


class InputFileNotFoundError(InputError, FileNotFoundError):
    """A ``FileNotFoundError`` that this library raised."""


class InputFileExistsError(InputError, FileExistsError):
    """A ``FileExistsError`` that this library raised."""


class InputIsADirectoryError(InputError, IsADirectoryError):
    """An ``IsADirectoryError`` that this library raised."""


class InputNotADirectoryError(InputError, NotADirectoryError):
    """A ``NotADirectoryError`` that this library raised."""


class InputPermissionError(InputError, PermissionError):
    """A ``PermissionError`` that this library raised."""


class InputConnectionError(InputError, ConnectionError):
    """A ``ConnectionError`` that this library raised."""


class InputModuleNotFoundError(InputError, ModuleNotFoundError):
    """A ``ModuleNotFoundError`` that this library raised."""


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


class LedgerError(InputError, RuntimeError):
    """A ledger cannot be used as asked: its file is locked, damaged, foreign, newer or gone, or its history contradicts itself.

    Nothing was spent by what was asked for.
    """


class BudgetExceededError(LedgerError):
    """A release would pass the budget that its dataset was granted, or is of a kind that the grant cannot count."""
