"""Interface between Rows and the engine that holds the table."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dpmoments.foundation.errors import (
    InputError,
    InputFileNotFoundError,
    InputPermissionError,
    InputValueError,
    message_of,
)
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
UNCONVERTED = "In CSV column #"
"""Arrow's message for a value that cannot be converted to its column's type."""
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
    mended: Callable[[str], str | None] | None = None,
) -> Result:
    """Run one step of reading a private table, and hide the text of any reader's error."""
    # Parse and cast errors quote the value they stop at. The error raised here names the location `where` and the
    # likely cause `why`, and is not chained to the original. This library's own errors quote none and are raised again.
    # `mended` maps the error's text to another way to read the file, or None.
    try:
        return step()
    except (EncodingError, LongLineError) as error:
        failure: Exception = InputValueError(Message("table-unreadable", table=where, reason=message_of(error)))
    except InputError:
        raise
    except FileNotFoundError:
        failure = InputFileNotFoundError(f"{where} does not exist")
    except PermissionError:
        failure = InputPermissionError(f"{where} cannot be read: permission denied")
    except MemoryError:
        failure = MemoryError(f"{where} does not fit into memory")
    except Exception as error:
        kind = type(error).__name__
        if mended is not None and (way := mended(str(error))) is not None:
            failure = ReadAgain(way)
        else:
            if re.match(r"CSV parse error: (Row #\d+: )?Expected \d+ columns, got \d+: ", str(error)):
                why = Message("line-of-other-length")
            reason = Message("reader-stopped", reason=why, kind=kind)
            failure = InputValueError(Message("table-unreadable", table=where, reason=reason))
    raise failure  # outside the handlers, where the original would become its context
