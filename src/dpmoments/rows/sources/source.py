"""What Rows asks of whatever engine holds the table."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol, TypeVar

from dpmoments.foundation.errors import InputFileNotFoundError, InputPermissionError, InputValueError
from dpmoments.foundation.text_reading import EncodingError, LongLineError
from dpmoments.rows.restriction import Restriction
from dpmoments.rows.summary import Missing, Summary

Running = TypeVar("Running")
Result = TypeVar("Result")


class Source(Protocol):
    """A table that can be passed over again and again, with the same rows every time."""

    @property
    def n_rows(self) -> int | None:
        """Number of rows, dropped ones included, where it is known without a pass."""

    @property
    def pass_length(self) -> int | None:
        """What the calls of ``on_block`` add up to over a pass: rows, or an engine's hundredths; None where that is not known."""

    @property
    def missing(self) -> Missing:
        """The rule for cells of its encoded blocks that are not finite."""

    def restricted(self, restriction: Restriction) -> Source:
        """The same table, of which the rows of some levels of a column are meant alone."""

    def summarise_units(
        self, summary: Summary[Any, Any], *, threads: int | None = None, on_block: Callable[[int], None] | None = None
    ) -> Any:
        """As :meth:`summarise`, of blocks that say whose each row is; where the table was opened for a privacy unit."""

    def summarise(
        self,
        summary: Summary[Running, Result],
        *,
        threads: int | None = None,
        on_block: Callable[[int], None] | None = None,
    ) -> Result:
        """Map a summary over the partitions of the table and merge what they return."""


# Readers' errors, told without the cells they quote.


DAMAGED_FILE = "damaged, truncated, or not what its name says"
NUMBER_ADVICE = (
    "say how the file is written, text_format=TextFormat(decimal=',', thousands='.', nulls=[...]) (or --decimal, --thousands, "
    "--null)"
)
_ADVICE = {
    "double": f"its cells are not all numbers with a decimal point; {NUMBER_ADVICE}",
    "bool": "say what stands for true and false, text_format=TextFormat(true=[...], false=[...]) (--true, --false)",
    "string": "it is not all text in UTF-8; pass text_format=TextFormat(encoding=...) (--encoding)",
}
"""What may help where a cell is not of the type to which Arrow converts."""
_CONVERSION = r"In CSV column #(\d+): (?:(?:Row #\d+: )?CSV conversion error to (\w+): )?"
LONG_LINE = "straddling object straddles two block boundaries"
"""What Arrow's CSV reader says of a line that is longer than a block, or than two, by where it begins in one."""
FAILED_QUERY = "its query fails, on the table or before it"


class ReadAgain(Exception):  # noqa: N818 (no error reaches a caller)
    """A delimited file is to be read from its beginning in another way, which is the argument."""


def read_quietly(
    step: Callable[[], Result],
    where: str | Path,
    why: str = DAMAGED_FILE,
    *,
    columns: Sequence[str] = (),
    mended: Callable[[str], str | None] | None = None,
) -> Result:
    """Do one step of reading a private table; let no text of a reader's error through.

    Parse and cast errors quote the cell they stop at. What is raised here names the place and the kind of error, and is not
    chained to the original.

    Parameters
    ----------
    where : str or path
        What is being read.
    why : str
        The likely cause.
    columns : sequence of str
        The columns of a delimited file, in order; only those that the schema names are given.
    mended : callable, optional
        Given what an error says, in which other way the file can be read; None where in none.
    """
    try:
        return step()
    except FileNotFoundError:
        failure: Exception = InputFileNotFoundError(f"{where} is not there")
    except PermissionError:
        failure = InputPermissionError(f"{where} cannot be read: permission denied")
    except MemoryError:
        failure = MemoryError(f"{where} does not fit into memory")
    except (EncodingError, LongLineError) as error:
        failure = InputValueError(f"{where} cannot be read: {error}")
    except Exception as error:
        kind = type(error).__name__
        if mended is not None and (way := mended(str(error))) is not None:
            failure = ReadAgain(way)
        else:
            failure = InputValueError(f"{where} cannot be read: {_reason(str(error), columns) or why} ({kind})")
    raise failure  # outside the handlers, where the original would become its context


def unconverted_column(message: str, columns: Sequence[str]) -> str | None:
    """The column of which Arrow's CSV reader says that a cell is not of its type; None where it says something else."""
    result = re.match(_CONVERSION, message)
    return columns[int(result[1])] if result and int(result[1]) < len(columns) else None


def _reason(message: str, columns: Sequence[str]) -> str | None:
    """What is safe to tell of a message of Arrow's CSV reader; None of any other."""
    if (found := re.match(_CONVERSION, message)) and int(found[1]) < len(columns):
        advice = _ADVICE.get(found[2] or "")
        return f"a cell of its column {columns[int(found[1])]!r} does not have the column's type{f': {advice}' if advice else ''}"
    if re.match(r"CSV parse error: (Row #\d+: )?Expected \d+ columns, got \d+: ", message):
        return "one of its lines does not have as many cells as the first"
    return None
