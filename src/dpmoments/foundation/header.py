"""Names of columns in the first line of a text file; no record is looked at."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Literal

from dpmoments.foundation.table_libraries import pa
from dpmoments.foundation.text_format import TextFormat
from dpmoments.foundation.text_reading import EncodingError, open_utf8

__all__ = ["first_line", "names_in", "other_delimiter"]

HEADER_BYTES = 1 << 20
DELIMITERS = {";": '";"', "\t": '"\\t", a tab', "|": '"|"', ",": '","'}
"""Those that are told of, and how they are written in a message."""


def first_line(path: Path, text_format: TextFormat) -> str:
    """The first line of a file that is not empty, without its end; line ends in quotes are part of it.

    Raises
    ------
    ValueError, PermissionError
        If it cannot be read. Nothing of it is quoted: it may be a record.
    """
    encoding = text_format.encoding.upper() if text_format.is_utf8 else text_format.encoding
    fault = f"damaged, or not a text file in {encoding}: if it is text, pass the encoding it was saved in"
    try:
        stream = open_utf8(path, text_format)
        try:
            return _until_line_end(bytes(stream.read(HEADER_BYTES)), text_format).decode().removeprefix("\ufeff")
        finally:
            stream.close()
    except PermissionError:
        raise PermissionError(f"{path} cannot be read: permission denied") from None
    except EncodingError as error:
        fault = str(error)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        pass
    raise ValueError(f"{path} cannot be read: {fault}")  # outside the handlers: the original holds bytes


def names_in(line: str, delimiter: str, text_format: TextFormat) -> list[str]:
    """The names that a header line holds.

    Examples
    --------
    >>> names_in('age;"sex;gender"', ";", TextFormat())
    ['age', 'sex;gender']
    """
    quoting: Literal[0, 3] = csv.QUOTE_NONE if text_format.quote is None else csv.QUOTE_MINIMAL
    reader = csv.reader(
        io.StringIO(line, newline=""), delimiter=delimiter, quotechar=text_format.quote or '"', quoting=quoting
    )
    try:
        return next(reader, [])
    except csv.Error:
        return [line]


def other_delimiter(
    line: str, delimiter: str, text_format: TextFormat, fits: Callable[[Sequence[str]], bool]
) -> str | None:
    """Advice where the names of a header line would fit by another delimiter; None where by none.

    The line alone is looked at, for the message: which delimiter is taken follows from nothing in the file.

    Examples
    --------
    >>> other_delimiter("age;sex", ",", TextFormat(), lambda names: len(names) > 1)
    'its first line has 1 column by the delimiter "," and would have 2 by ";": pass delimiter=";"'
    """
    found = len(names_in(line, delimiter, text_format))
    for mark, written in DELIMITERS.items():
        names = names_in(line, mark, text_format)
        if mark != delimiter and len(names) > found and fits(names):
            columns = "1 column" if found == 1 else f"{found} columns"
            by = DELIMITERS.get(delimiter, repr(delimiter))
            return (
                f"its first line has {columns} by the delimiter {by} and would have {len(names)} by {written}: "
                f"pass delimiter={written.split(', a')[0]}"
            )
    return None


def _until_line_end(head: bytes, text_format: TextFormat) -> bytes:
    quote, start = (text_format.quote or "").encode(), 0
    for line_end in re.finditer(rb"\r\n|\n|\r", head):
        line = head[start : line_end.start()]
        if not line.strip():
            start = line_end.end()
        elif not quote or line.count(quote) % 2 == 0:
            return line
    return head[start:]
