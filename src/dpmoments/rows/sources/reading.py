"""Readers' errors, told without the cells they quote."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from dpmoments.text_files.streams import EncodingError

__all__ = ["DAMAGED_FILE", "FAILED_QUERY", "NUMBER_ADVICE", "read_quietly"]

Result = TypeVar("Result")

DAMAGED_FILE = "damaged, truncated, or not what its name says"
NUMBER_ADVICE = (
    "say how the file is written, text_format=TextFormat(decimal=',', thousands='.', nulls=[...]) (or --decimal, --thousands, "
    "--null)"
)
ADVICE = {
    "double": f"its cells are not all numbers with a decimal point; {NUMBER_ADVICE}",
    "bool": "say what stands for true and false, text_format=TextFormat(true=[...], false=[...]) (--true, --false)",
    "string": "it is not all text in UTF-8; pass text_format=TextFormat(encoding=...) (--encoding)",
}
"""What may help where a cell is not of the type to which Arrow converts."""
FAILED_QUERY = "its query fails, on the table or before it"


def read_quietly(
    step: Callable[[], Result], where: str | Path, why: str = DAMAGED_FILE, *, columns: Sequence[str] = ()
) -> Result:
    """Do one step of reading a private table; let no text of a reader's error through.

    Parse and cast errors quote the cell they stop at. What is raised here names the place and the kind of error, and is not
    chained to the original.

    Parameters
    ----------
    step : callable
    where : str or path
        What is being read.
    why : str
        The likely cause.
    columns : sequence of str
        The columns of a delimited file, in order; only those that the schema names are given.

    Raises
    ------
    ValueError, PermissionError, FileNotFoundError
    """
    try:
        return step()
    except FileNotFoundError:
        failure: Exception = FileNotFoundError(f"{where} is not there")
    except PermissionError:
        failure = PermissionError(f"{where} cannot be read: permission denied")
    except MemoryError:
        failure = MemoryError(f"{where} does not fit into memory")
    except EncodingError as error:
        failure = ValueError(f"{where} cannot be read: {error}")
    except Exception as error:
        kind = type(error).__name__
        failure = ValueError(f"{where} cannot be read: {_reason(str(error), columns) or why} ({kind})")
    raise failure  # outside the handlers, where the original would become its context


def _reason(message: str, columns: Sequence[str]) -> str | None:
    """What is safe to tell of a message of Arrow's CSV reader; None of any other."""
    conversion = r"In CSV column #(\d+): (?:(?:Row #\d+: )?CSV conversion error to (\w+): )?"
    if (found := re.match(conversion, message)) and int(found[1]) < len(columns):
        advice = ADVICE.get(found[2] or "")
        return f"a cell of its column {columns[int(found[1])]!r} does not have the column's type{f': {advice}' if advice else ''}"
    if "straddling object straddles two block boundaries" in message:
        return "one of its lines is longer than a block of a few megabytes"
    if re.match(r"CSV parse error: (Row #\d+: )?Expected \d+ columns, got \d+: ", message):
        return "one of its lines does not have as many cells as the first"
    return None
