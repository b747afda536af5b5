"""Errors whose message this library wrote, so that it may be shown."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Protocol, Self


class StatedError(Protocol):
    """Message of an error as data: a code with facts, and its text for an audience."""

    @property
    def code(self) -> str:
        """Code of the message."""

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts of the message, by name."""

    def text(self, audience: Any = ...) -> str:
        """Return the text for an audience."""


class InputError(Exception):
    """Error whose message this library wrote.

    It quotes no value of a table and may be shown to anyone.

    Every error that the library raises on purpose is one, and also of the built-in kind that Python's users expect: catch
    ``ValueError`` or ``InputError``. An error of a reader or an array library is not one, and its message may quote the table.

    Examples
    --------
    >>> from dpmoments.privacy.unit import Neighbors
    >>> try:
    ...     Neighbors.of("both")
    ... except InputError as error:
    ...     isinstance(error, ValueError), error.code, dict(error.facts)
    (True, 'unknown-relation', {'value': 'both'})
    """

    def __init__(self, *sentence: Any, shell: str | None = None) -> None:
        super().__init__(*sentence)
        self._shell = shell

    make_message: ClassVar[Callable[..., StatedError]]
    """Maker of messages, which ``dpmoments`` sets: this file is below them."""

    @classmethod
    def of(cls, code: str, /, **facts: Any) -> Self:
        """Return the error of a message, for files of this floor, which cannot import it."""
        return cls(cls.make_message(code, **facts))

    @property
    def message_data(self) -> StatedError | None:
        """Message as data, if the error has one; else it is text."""
        stated = self.args[0] if self.args else None
        return stated if hasattr(stated, "facts") and hasattr(stated, "text") else None

    @property
    def code(self) -> str:
        """Code of the message, or the kind of error, such as ``"value"`` or ``"file-not-found"``."""
        if self.message_data is not None:
            return self.message_data.code
        words = re.findall(
            r"[A-Z]+(?![a-z])|[A-Z][a-z]+", type(self).__name__.removeprefix("Input").removesuffix("Error")
        )
        return "-".join(words).lower()

    @property
    def facts(self) -> Mapping[str, Any]:
        """Facts of the message, by name; empty if it is text."""
        return {} if self.message_data is None else self.message_data.facts

    def __str__(self) -> str:
        if self.message_data is not None:
            return self.message_data.text("curator")
        # A KeyError would quote its sentence as a key.
        return visible(self.args[0] if len(self.args) == 1 and isinstance(self.args[0], str) else super().__str__())

    def text(self, audience: str = "curator") -> str:
        """Return the sentence for an audience: ``shell`` is a reader at the command line."""
        if self.message_data is not None:
            return self.message_data.text(audience)
        return visible(self._shell) if audience == "shell" and self._shell is not None else str(self)


def message_of(error: BaseException) -> StatedError:
    """Return the message of an error of this library, else one that quotes the error of another."""
    stated = error.message_data if isinstance(error, InputError) else None
    return InputError.make_message("foreign-error", text=str(error)) if stated is None else stated


class InputValueError(InputError, ValueError):
    """A ``ValueError`` raised by this library."""


class InputTypeError(InputError, TypeError):
    """A ``TypeError`` raised by this library."""


def wrong_type(parameter: str, expected: str, value: object, **more: Any) -> InputTypeError:
    """Return the error of an argument that has another type than expected."""
    return InputTypeError.of("wrong-type", parameter=parameter, expected=expected, got=type(value).__name__, **more)


def out_of_range(parameter: str, value: object, expected: str, **more: Any) -> InputValueError:
    """Return the error of an argument with a value that it cannot have."""
    return InputValueError.of("out-of-range", parameter=parameter, value=value, expected=expected, **more)


class InputAttributeError(InputError, AttributeError):
    """An ``AttributeError`` that this library raised."""


class InputKeyError(InputError, KeyError):
    """A ``KeyError`` raised by this library."""


class InputArithmeticError(InputError, ArithmeticError):
    """An ``ArithmeticError`` raised by this library."""


class InputOverflowError(InputError, OverflowError):
    """An ``OverflowError`` raised by this library."""


class InputRuntimeError(InputError, RuntimeError):
    """A ``RuntimeError`` raised by this library."""


class InputOSError(InputError, OSError):
    """An ``OSError`` raised by this library."""


class InputFileNotFoundError(InputError, FileNotFoundError):
    """A ``FileNotFoundError`` raised by this library."""


class InputFileExistsError(InputError, FileExistsError):
    """A ``FileExistsError`` raised by this library."""


class InputIsADirectoryError(InputError, IsADirectoryError):
    """An ``IsADirectoryError`` raised by this library."""


class InputNotADirectoryError(InputError, NotADirectoryError):
    """A ``NotADirectoryError`` raised by this library."""


class InputPermissionError(InputError, PermissionError):
    """A ``PermissionError`` raised by this library."""


class InputConnectionError(InputError, ConnectionError):
    """A ``ConnectionError`` raised by this library."""


class InputModuleNotFoundError(InputError, ModuleNotFoundError):
    """A ``ModuleNotFoundError`` raised by this library."""


def _innermost_frame(traceback: TracebackType | None) -> TracebackType | None:
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback


def line_of(traceback: TracebackType | None) -> str | None:
    """Return the file and line of the innermost frame, None if unknown."""
    last = _innermost_frame(traceback)
    return None if last is None else f"{Path(last.tb_frame.f_code.co_filename).name}:{last.tb_lineno}"


# Text out of a file as it is shown: no character of it that a terminal or a page obeys instead of showing.

_HIDDEN = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
"""Characters that a terminal obeys instead of showing.

Some change the direction of the text after them.
"""


def visible(text: str) -> str:
    r"""Escape characters with which a name from a file could clear the screen or hide other text.

    >>> print(visible("a\x1b[2Jb"))
    a\x1b[2Jb
    """
    return _HIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


# What a ledger says where it cannot do what it is asked.


class LedgerError(InputError, RuntimeError):
    """Ledger that cannot be used.

    Its file is locked, damaged, foreign, newer or missing, or contradicts itself.

    The refused request spent nothing.
    """


class BudgetExceededError(LedgerError):
    """Release that would exceed its dataset's budget, or that the grant cannot measure.

    It cannot measure some kinds of budget.
    """
