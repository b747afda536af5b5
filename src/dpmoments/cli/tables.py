"""Output of the command line.

Plain text that reads the same in a terminal, a pipe and a log.
"""

from __future__ import annotations

import json
import logging
import math
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from rich.console import Console
from rich.padding import Padding
from rich.table import Table

from dpmoments.foundation.errors import InputError, visible
from dpmoments.foundation.progress import log


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
    """Print to standard output, wrapped at the terminal's width.

    Names of columns are never read as markup.
    """
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
    """Print rows under headers (none if all are empty).

    ``numbers`` are right-aligned, and ``whole`` columns unbroken.
    """
    named = any(headers)
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_header=named)
    for header in headers:
        table.add_column(
            visible(header),
            justify="right" if header in numbers else "left",
            overflow="fold",
            no_wrap=header in numbers or header in whole,
        )
    for row in rows:
        table.add_row(*map(visible, row))
    _print(Padding(table, (0, 0, 0, 2)))


def print_json(value: dict[str, Any]) -> None:
    """Print one JSON document; numbers keep every bit, and non-finite numbers become null."""
    with printing():
        print(json.dumps(_plain(value), indent=1, allow_nan=False))


def complain(text: str) -> None:
    """Print to standard error."""
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
