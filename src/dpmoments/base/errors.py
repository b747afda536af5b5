"""Errors whose message this library wrote, so that it may be shown."""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import Enum
from os import PathLike
from pathlib import Path
from reprlib import Repr
from types import TracebackType
from typing import Any, Literal, Self


class InputError(Exception):
    """Error whose message this library wrote.

    It quotes no value of a table and may be shown to anyone. ``shell`` is its sentence for a reader at the command line, if
    it names an option or a command there.

    Every error that the library raises on purpose is one, and also of the built-in kind that Python's users expect: catch
    ``ValueError`` or ``InputError``. An error of a reader or an array library is not one, and its message may quote the table.

    Examples
    --------
    >>> from dpmoments.privacy.unit import Neighbors
    >>> try:
    ...     Neighbors.of("both")
    ... except InputError as error:
    ...     isinstance(error, ValueError)
    True
    """

    def __init__(self, *sentence: Any, shell: str | None = None) -> None:
        super().__init__(*sentence)
        self._shell = shell

    def __str__(self) -> str:
        # A KeyError would quote its sentence as a key.
        return visible(self.args[0] if len(self.args) == 1 and isinstance(self.args[0], str) else super().__str__())

    def preceded_by(self, words: str) -> Self:
        """Return the error with words before its sentence, such as the file that it is about."""
        return type(self)(f"{words}{self}", shell=f"{words}{self.text('shell')}")

    def text(self, audience: Literal["curator", "shell"] = "curator") -> str:
        """Return the sentence for a curator, who reads Python, or who is at the shell."""
        return visible(self._shell) if audience == "shell" and self._shell is not None else str(self)


class InputValueError(InputError, ValueError): ...


class InputTypeError(InputError, TypeError): ...


def wrong_type(parameter: str, expected: str, value: object, *, column: str = "", advice: str = "") -> InputTypeError:
    """Return the error of an argument that has another type than expected."""
    return InputTypeError(f"{of_column(column)}{parameter} must be {expected}, got {type(value).__name__}{advice}")


def out_of_range(parameter: str, value: object, expected: str, *, column: str = "") -> InputValueError:
    """Return the error of an argument with a value that it cannot have."""
    return InputValueError(f"{of_column(column)}{parameter} must be {expected}, got {shown(value)}")


def of_column(column: str | None) -> str:
    """Return the beginning of a sentence about a column; nothing without one."""
    return f"column '{column}': " if column else ""


# Errors of other built-in kinds that this library raises.


class InputAttributeError(InputError, AttributeError): ...


class InputKeyError(InputError, KeyError): ...


class InputArithmeticError(InputError, ArithmeticError): ...


class InputOverflowError(InputError, OverflowError): ...


class InputRuntimeError(InputError, RuntimeError): ...


class InputOSError(InputError, OSError): ...


class InputFileNotFoundError(InputError, FileNotFoundError): ...


class InputFileExistsError(InputError, FileExistsError): ...


class InputIsADirectoryError(InputError, IsADirectoryError): ...


class InputPermissionError(InputError, PermissionError): ...


class InputModuleNotFoundError(InputError, ModuleNotFoundError): ...


def line_of(traceback: TracebackType | None) -> str | None:
    """Return the file and line of the innermost frame, None if unknown."""
    while traceback is not None and traceback.tb_next is not None:
        traceback = traceback.tb_next
    return None if traceback is None else f"{Path(traceback.tb_frame.f_code.co_filename).name}:{traceback.tb_lineno}"


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


def shown(value: object) -> str:
    """Format a value for a message, abbreviated if it is long or deep.

    >>> shown("north"), shown([[1] * 100] * 100)
    ("'north'", '[[1, 1, 1, 1, ...], [1, 1, 1, 1, ...], [1, 1, 1, 1, ...], [1, 1, 1, 1, ...], ...]')
    """
    if getattr(value, "ndim", None) == 0 and hasattr(value, "item"):  # a number of NumPy
        value = value.item()
    short = Repr()
    short.maxlevel, short.maxlist, short.maxdict, short.maxtuple = 3, 4, 4, 4
    short.maxstring = short.maxlong = short.maxother = 200
    return short.repr(str(value) if isinstance(value, Enum | PathLike) else value)


MAX_NAMED = 5
"""Names that one message lists; of more it says how many there are."""


def listed(names: Iterable[object], *, quoted: bool = True) -> str:
    """Return names as a message lists them.

    >>> listed(["age", "income"]), listed("abcdefg", quoted=False)
    ("'age', 'income'", 'a, b, c, d, e and 2 more')
    """
    texts = [f"'{name}'" if quoted else f"{name}" for name in names]
    more = f" and {len(texts) - MAX_NAMED} more" if len(texts) > MAX_NAMED else ""
    return ", ".join(texts[:MAX_NAMED]) + more


_CLOSE = 0.7
"""Smallest similarity of a name that is suggested."""
_LONGEST_NAME = 200
"""Longest name that is compared, in characters."""


def closest(name: object, known: Iterable[str]) -> str:
    """Return the public name that is closest; nothing if no name is close.

    >>> closest("incom", ["age", "income"]), closest("Age", ["age"]), closest("height", ["age"])
    ('income', 'age', '')
    """
    plain = {each.casefold(): each for each in known}
    text = name.strip().casefold() if isinstance(name, str) and len(name) <= _LONGEST_NAME else ""
    from difflib import get_close_matches

    close = get_close_matches(text, plain, n=1, cutoff=_CLOSE) if text else []
    return plain[close[0]] if close else ""


def meant(name: object, known: Iterable[str], otherwise: str = "") -> str:
    """Return the question if the closest name was meant, else other advice; after a space.

    >>> meant("incom", ["age", "income"]), meant("height", ["age"], "Its names are age.")
    (" Did you mean 'income'?", ' Its names are age.')
    """
    close = closest(name, known)
    advice = f"Did you mean '{close}'?" if close else otherwise
    return f" {advice}" if advice else ""


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
