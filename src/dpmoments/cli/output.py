"""Output of the command line: tables and text, and one line for an error.

An error never shows a value of the table.
"""

from __future__ import annotations

import errno
import json
import logging
import os
import re
import sys
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer
from rich.console import Console
from rich.padding import Padding

from dpmoments.base.errors import InputError, line_of, visible
from dpmoments.base.progress import log

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


def print_text(text: str = "") -> None:
    """Print to standard output, wrapped at the terminal's width; rows of tables stay whole."""
    with printing():
        console = _console()
        for line in visible(text).split("\n"):
            words = line.strip()
            if "  " in words or not words:  # columns of a table are two spaces apart
                print(line.rstrip())
                continue
            with console.capture() as capture:
                console.print(Padding(words, (0, 0, 0, len(line) - len(line.lstrip()))))
            print("\n".join(wrapped.rstrip() for wrapped in capture.get().splitlines()))


def print_command(text: str) -> None:
    """Print a command to copy: indented, on one line however long."""
    with printing():
        print(f"  {visible(text)}")


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON document; numbers keep every bit, and non-finite numbers become null."""
    from dpmoments.analysis.answers import plain

    with printing():
        print(json.dumps(plain(value, finite=True), indent=1, allow_nan=False))


def print_answer(answer: Answer, as_json: bool) -> None:
    """Print an answer as JSON, or as its text."""
    if as_json:
        print_json(answer.to_dict())
    else:
        print_text(answer.text())


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


def _console(*, stderr: bool = False) -> Console:
    return Console(stderr=stderr, markup=False, highlight=False, emoji=False)


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


def needs_option(hint: str, option: str) -> typer.BadParameter:
    """Return the error of an option that goes with another, which is absent."""
    return bad_option(hint, f"it goes with {option}: give both")


@contextmanager
def naming(hint: str) -> Iterator[None]:
    """Make an error inside the block one of the command, with the options in ``hint``."""
    try:
        yield
    except (TypeError, ValueError) as error:
        raise bad_option(hint, error) from error


_GROUPED = re.compile(r"[+-]?\d{1,3}(?:([., _'’\u00a0\u202f])\d{3})(?:\1\d{3})*")


def what_number_to_write(message: str, options: Sequence[str], arguments: Sequence[str]) -> str | None:
    """Describe an invalid number given to an option, and how to write it.

    None for other messages.

    The parser's ``message`` does not quote the number, so it is found in ``arguments`` after one of ``options``.

    >>> refused = "Input should be a valid integer, unable to parse string as an integer"
    >>> print(what_number_to_write(refused, ["--n-rows"], ["forecast", "--n-rows", "9.700"]))
    must be a whole number, got the text '9.700': write 9700
    """
    from dpmoments.base.values import number_as_text

    result = re.search(r"unable to parse string as an? (integer|number)|is not a valid (integer|float)", message)
    if result is None:
        return None
    whole = "integer" in result.groups()
    apart = [value for flag, value in pairwise(arguments) if flag in options]
    joined = [text.partition("=") for text in arguments]
    for text in [*apart, *(value for flag, sign, value in joined if sign and flag in options)]:
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


class StoppedError(InputError):
    """Job stopped by the keyboard; the message says whether anything was spent."""


def explain(error: Exception) -> str:
    # A message is shown only if it cannot quote a value: raised by this library (whose messages contain no private
    # values), or by the operating system refusing a file. Any other error, such as one inside a reader or an array
    # library, is described by its type and location only. Every description says whether anything was spent.
    if isinstance(error, OSError) and error.errno is not None:
        reason = os.strerror(error.errno)
        message = f"{error.filename}: {reason}"
        if isinstance(error, OutputError):
            message = (
                f"standard output cannot be written: {reason}. The printed output is incomplete; files written by "
                "the command are complete. Free space for the output, or print elsewhere"
            )
        elif not error.filename:
            message = f"the operating system refused to read or write: {reason}"
        if not isinstance(error, OutputError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            message += ". Free space there, or choose another folder"
            if not error.filename:
                message += f"; temporary files are in {tempfile.gettempdir()}, and TMPDIR names another folder for them"
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
