"""Interface between Rows and the engine that holds the table."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dpmoments.foundation.errors import InputFileNotFoundError, InputPermissionError, InputValueError, message_of
from dpmoments.foundation.text_reading import EncodingError, LongLineError
from dpmoments.messages.message import Message
from dpmoments.rows.encode import Restriction
from dpmoments.rows.summary import Missing, Summary

Running = TypeVar("Running")
Result = TypeVar("Result")


class Source(Protocol):
    """Table that can be passed over repeatedly, with the same rows every time."""

    @property
    def n_rows(self) -> int | None:
        """Number of rows, dropped ones included, if known without a pass."""

    @property
    def pass_length(self) -> int | None:
        """Sum of the ``on_block`` calls of a pass, in rows or hundredths; None if unknown."""

    @property
    def missing(self) -> Missing:
        """Rule for non-finite values of its encoded batches."""

    def restricted(self, restriction: Restriction) -> Source:
        """Return the table limited to rows with some levels of a column."""

    def summarize_units(
        self, summary: Summary[Any, Any], *, threads: int | None = None, on_block: Callable[[int], None] | None = None
    ) -> Any:
        """Summarize like :meth:`summarize`, in batches that name each row's unit."""
        # Requires a privacy unit.

    def summarize(
        self,
        summary: Summary[Running, Result],
        *,
        threads: int | None = None,
        on_block: Callable[[int], None] | None = None,
    ) -> Result:
        """Map a summary over the table's partitions and merge the results."""


# Readers' errors, told without the cells they quote.


DAMAGED_FILE = Message("damaged-file")
_ADVICE = {
    "double": Message("cells-not-numbers", advice=Message("number-advice")),
    "bool": Message("cells-not-flags"),
    "string": Message("cells-not-text"),
}
"""Advice if a value cannot be converted to the type that Arrow expects."""
_CONVERSION = r"In CSV column #(\d+): (?:(?:Row #\d+: )?CSV conversion error to (\w+): )?"
LONG_LINE = "straddling object straddles two block boundaries"
"""Arrow's message for a line longer than one block, or than two, depending on its start."""
FAILED_QUERY = Message("query-failed")


class ReadAgain(Exception):  # noqa: N818 (no error reaches a caller)
    """Request to read a delimited file again from its beginning, in the way of the argument."""


def read_quietly(
    step: Callable[[], Result],
    where: str | Path,
    why: Message = DAMAGED_FILE,
    *,
    columns: Sequence[str] = (),
    mended: Callable[[str], str | None] | None = None,
) -> Result:
    """Run one step of reading a private table, and hide the text of any reader's error."""
    # Parse and cast errors quote the value they stop at. The error raised here names the location `where` and the
    # likely cause `why`, and is not chained to the original. `columns` are a delimited file's columns, in order; only
    # those in the schema are named. `mended` maps the error's text to another way to read the file, or None.
    try:
        return step()
    except FileNotFoundError:
        failure: Exception = InputFileNotFoundError(Message("table-missing", table=where))
    except PermissionError:
        failure = InputPermissionError(Message("file-permission", path=where))
    except MemoryError:
        failure = MemoryError(f"{where} does not fit into memory")
    except (EncodingError, LongLineError) as error:
        failure = InputValueError(Message("table-unreadable", table=where, reason=message_of(error)))
    except Exception as error:
        kind = type(error).__name__
        if mended is not None and (way := mended(str(error))) is not None:
            failure = ReadAgain(way)
        else:
            reason = Message("reader-stopped", reason=_reason(str(error), columns) or why, kind=kind)
            failure = InputValueError(Message("table-unreadable", table=where, reason=reason))
    raise failure  # outside the handlers, where the original would become its context


def unconverted_column(message: str, columns: Sequence[str]) -> str | None:
    """Return the column that Arrow's CSV reader could not convert; None for other messages."""
    result = re.match(_CONVERSION, message)
    return columns[int(result[1])] if result and int(result[1]) < len(columns) else None


def _reason(message: str, columns: Sequence[str]) -> Message | None:
    """Return the public part of a message of Arrow's CSV reader; None for other messages."""
    if (match := re.match(_CONVERSION, message)) and int(match[1]) < len(columns):
        advice = _ADVICE.get(match[2] or "")
        stated = {} if advice is None else {"advice": advice}
        return Message("cell-of-other-type", column=columns[int(match[1])], **stated)
    if re.match(r"CSV parse error: (Row #\d+: )?Expected \d+ columns, got \d+: ", message):
        return Message("line-of-other-length")
    return None
