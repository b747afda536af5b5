"""Output of the command line: tables and text, and one line for an error.

An error never shows a value of the table.
"""

from __future__ import annotations

import errno
import json
import logging
import math
import os
import re
import sys
import tempfile
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from dpmoments.foundation.errors import InputError, line_of, visible
from dpmoments.foundation.progress import log

if TYPE_CHECKING:
    from dpmoments.analysis.answers import Answer


class OutputError(InputError, OSError):
    """Standard output that did not accept everything; not raised if a reader closed early."""


@contextmanager
def printing() -> Iterator[None]:
    """Raise :class:`OutputError` if printing inside the block fails."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(error.errno, error.strerror) from error


def drop_output() -> None:
    """Drop unwritten output, about which Python would complain again at exit."""
    with suppress(OSError, ValueError):  # a stream without a file of its own
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def print_text(text: str = "", *, indent: int = 0) -> None:
    """Print to standard output, wrapped at the terminal's width."""
    # Names of columns are never read as markup.
    _print(Padding(visible(text), (0, 0, 0, indent)))


def print_command(text: str) -> None:
    """Print a command to copy: indented, on one line however long."""
    with printing():
        _console().print(f"  {visible(text)}", soft_wrap=True)


def print_lines(text: str) -> None:
    """Print lines of a table unchanged, however long."""
    with printing():
        print("\n".join(line.rstrip() for line in visible(text).splitlines()))


def print_page(text: str) -> None:
    """Print a page for a file, unchanged."""
    with printing():
        print(text, end="")


def print_table(
    headers: Sequence[str], rows: Iterable[tuple[str, ...]], *, numbers: Sequence[str] = (), whole: Sequence[str] = ()
) -> None:
    """Print rows under headers (none if all are empty)."""
    # `numbers` are right-aligned, and `whole` columns unbroken. Columns that do not fit the terminal follow below,
    # after the first column once more.
    body = [tuple(map(visible, row)) for row in rows]
    unbroken = [header in numbers or header in whole for header in headers]
    words = [visible(header).replace("± ", "±\u00a0") for header in headers]
    space = _console().width - _TABLE_INDENT
    widths = [max([len(word), *(len(row[index]) for row in body)]) for index, word in enumerate(words)]
    if sum(widths) + _BETWEEN_COLUMNS * (len(widths) - 1) > space:
        for index in (index for index, of_digits in enumerate(unbroken) if of_digits):
            least = max([*map(len, words[index].split(" ")), *(len(row[index]) for row in body)])
            words[index] = "\n".join(textwrap.wrap(words[index], least, break_long_words=False))
            widths[index] = least
    for number, chosen in enumerate(_parts_that_fit(words, widths, unbroken, space)):
        if number:
            print_text()
        table = Table(
            box=None, pad_edge=False, padding=(0, _BETWEEN_COLUMNS, 0, 0), header_style="bold", show_header=any(headers)
        )
        for index in chosen:
            table.add_column(
                words[index],
                justify="right" if headers[index] in numbers else "left",
                overflow="fold",
                no_wrap=unbroken[index],
                vertical="bottom" if any(unbroken) else "top",
            )
        for row in body:
            table.add_row(*(row[index] for index in chosen))
        _print(Padding(table, (0, 0, 0, _TABLE_INDENT)))


_TABLE_INDENT, _BETWEEN_COLUMNS = 2, 2
_FOLDED_TEXT = 12
"""Least characters of a column of text, which is broken over lines."""


def _parts_that_fit(
    words: Sequence[str], widths: Sequence[int], unbroken: Sequence[bool], space: int
) -> list[list[int]]:
    """Return the columns of each table to print: an error (±) with its number, the first in all."""
    least = [width if fixed else min(width, _FOLDED_TEXT) for width, fixed in zip(widths, unbroken, strict=True)]
    if any(unbroken):
        least[:1] = [min(width, space // 2) for width in widths[:1]]
    groups: list[list[int]] = []
    for index in range(1, len(words)):
        if groups and words[index].startswith("±"):
            groups[-1].append(index)
        else:
            groups.append([index])
    parts: list[list[int]] = [[0][: len(words)]]
    for group in groups:
        together = [*parts[-1], *group]
        if len(parts[-1]) > 1 and sum(least[i] + _BETWEEN_COLUMNS for i in together) - _BETWEEN_COLUMNS > space:
            parts.append([0, *group])
        else:
            parts[-1] = together
    return parts


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON document; numbers keep every bit, and non-finite numbers become null."""
    with printing():
        print(json.dumps(_plain(value), indent=1, allow_nan=False))


def print_answer(answer: Answer, as_json: bool) -> None:
    """Print an answer as JSON, or as its text unchanged."""
    if as_json:
        print_json(answer.to_dict())
    else:
        print_lines(answer.summary())


def print_checks(checks: Iterable[Any]) -> str:
    """Print the outcome of each check; return what the failed ones looked at."""
    failed = []
    for check in checks:
        mark = {None: "unknown   ", True: "ok        ", False: "FAILED    "}[check.passed]
        print_text(f"{mark}{check.what}: {check.detail}")
        if check.passed is False:
            failed.append(check.what)
    return "; ".join(failed)


def complain(text: str) -> None:
    _console(stderr=True).print(visible(text), soft_wrap=True)


def _print(content: Padding) -> None:
    """Print without the spaces with which rich fills every line."""
    with printing():
        console = _console()
        with console.capture() as capture:
            console.print(content)
        print("\n".join(line.rstrip() for line in capture.get().splitlines()))


def _console(*, stderr: bool = False) -> Console:
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


def _plain(value: Any) -> Any:
    import numpy as np

    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value


# The library's log on standard error: what ``--verbose`` shows.


class _Steps(logging.Handler):
    """Handler that writes each record as a timed line on standard error."""

    def emit(self, record: logging.LogRecord) -> None:
        complain(self.format(record))


_STEPS = _Steps()
_STEPS.setFormatter(logging.Formatter("%(asctime)s dpmoments: %(message)s"))


def tell_steps(wanted: bool) -> None:
    """Start or stop showing the steps of a job."""
    if wanted:
        log.addHandler(_STEPS)
        log.setLevel(logging.DEBUG)
    elif _STEPS in log.handlers:
        log.removeHandler(_STEPS)
        log.setLevel(logging.NOTSET)


def bad_option(hint: str, refusal: str | Exception) -> typer.BadParameter:
    """Return the error of the options in ``hint``, in the shell's words."""
    text = refusal.text("shell") if isinstance(refusal, InputError) else visible(str(refusal))
    return typer.BadParameter(text, param_hint=hint)


_GROUPED = re.compile(r"[+-]?\d{1,3}(?:([., _'’\u00a0\u202f])\d{3})(?:\1\d{3})*")


def what_number_to_write(message: str, options: Sequence[str], arguments: Sequence[str]) -> str | None:
    """Describe an invalid number given to an option, and how to write it.

    None for other messages.

    The parser's ``message`` does not quote the number, so it is found in ``arguments`` after one of ``options``.

    >>> refused = "Input should be a valid integer, unable to parse string as an integer"
    >>> print(what_number_to_write(refused, ["--n-rows"], ["forecast", "--n-rows", "9.700"]))
    must be a whole number, got the text '9.700': write 9700
    """
    from dpmoments.foundation.values import number_as_text

    result = re.search(r"unable to parse string as an? (integer|number)|is not a valid (integer|float)", message)
    if result is None:
        return None
    whole = "integer" in result.groups()
    for text in _given(options, arguments):
        try:
            int(text) if whole else float(text)
        except ValueError:
            if not whole:
                return number_as_text(text)
            plain, advice = text.strip(), "digits only, without a unit or thousands separators"
            if _GROUPED.fullmatch(plain):
                advice = f"write {re.sub(r'[^0-9+-]', '', plain)}"
            elif re.fullmatch(r"\d{1,3}(\.\d+)?[eE]\+?\d{1,2}", plain) and float(plain).is_integer():
                advice = f"write {int(float(plain))}"
            return f"must be a whole number, got the text {text!r}: {advice}"
    return None


def _given(options: Sequence[str], arguments: Sequence[str]) -> list[str]:
    apart = [value for flag, value in pairwise(arguments) if flag in options]
    return apart + [text.partition("=")[2] for text in arguments if text.partition("=")[0] in options and "=" in text]


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class StoppedError(InputError):
    """Job stopped by the keyboard; the message says whether anything was spent."""


def explain(error: Exception) -> str:
    # A message is shown only if it cannot quote a value: raised by this library (whose messages contain no private
    # values), or by the operating system refusing a file. Any other error, such as one inside a reader or an array
    # library, is described by its type and location only. Every description says whether anything was spent.
    if isinstance(error, OSError) and error.errno is not None:
        message = _refusal(error)
    elif isinstance(error, InputError):
        message = " ".join(error.text("shell").split())
    else:
        message = (
            f"stopped by an unexpected {type(error).__name__} at {line_of(error.__traceback__) or 'an unknown line'}; its "
            "message is withheld, because it may quote the table. Please report this line"
        )
    return "; ".join([message, *notes_of(error)])


def refuge(name: str) -> Path:
    """Return a path in a new folder, for a release whose file could not be written."""
    return Path(tempfile.mkdtemp(prefix="dpmoments-")) / name


def notes_of(error: BaseException) -> list[str]:
    """Return the library's notes on an error: whether anything was spent."""
    # Others' notes may quote a value.
    from dpmoments.spending.run import NOTES

    return [note for note in getattr(error, "__notes__", ()) if note in NOTES]


def _refusal(error: OSError) -> str:
    # Text from a library's error may quote anything and is hidden.
    assert error.errno is not None
    words = os.strerror(error.errno)
    if isinstance(error, OutputError):
        return (
            f"standard output cannot be written: {words}. The printed output is incomplete; files written by "
            f"the command are complete. Free space for the output, or print elsewhere"
        )
    refused = (
        f"{error.filename}: {words}" if error.filename else f"the operating system refused to read or write: {words}"
    )
    if error.errno in _NO_ROOM:
        refused += ". Free space there, or choose another folder"
        if not error.filename:
            refused += f"; temporary files are in {tempfile.gettempdir()}, and TMPDIR names another folder for them"
    return refused
