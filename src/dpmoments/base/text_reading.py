"""Bytes of a text file as a decompressed UTF-8 stream, never whole in memory."""

from __future__ import annotations

import codecs
import csv
import io
import re
import shlex
from collections.abc import Callable, Sequence
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Literal

from dpmoments.base.errors import InputPermissionError, InputValueError
from dpmoments.base.table_libraries import pa
from dpmoments.base.text_format import TextFormat

_PIECE = 1 << 20
_HEADER_BYTES = 1 << 20
_UNREADABLE_BYTES = "dpmoments.unreadable"
"""Error handler of decoders.

Bytes that are not text become half of a surrogate pair, which no text contains.
"""


def _marked(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeDecodeError):
        raise error
    return "\udcff", error.end


codecs.register_error(_UNREADABLE_BYTES, _marked)


class EncodingError(InputValueError):
    """Bytes that are not text in the encoding; the message contains none of them."""


class LongLineError(InputValueError):
    """Line longer than the limit; the message contains nothing of it."""


class LineLengths:
    r"""Lengths of a delimited text's lines as Arrow's reader divides it.

    Line ends in quotes do not count.
    """

    def __init__(self, delimiter: str, quote: str | None, longest: int) -> None:
        self._delimiter, self._quote, self._longest = delimiter.encode(), (quote or "").encode(), longest
        marks = b"".join(re.escape(mark) for mark in (b"\r", b"\n", self._delimiter, self._quote))
        self._marks = re.compile(b"[" + marks + b"]")
        self._place = self._line = self._cell = 0  # where we are, and where the line and its cell began
        self._closed = -1  # after the last quote that closed a cell, which opens it again where it stands there
        self._quoted = False

    def add(self, block: bytes) -> None:
        """Measure the next batch of bytes."""
        if not self._place and block.startswith(codecs.BOM_UTF8):
            self._line = self._cell = len(codecs.BOM_UTF8)
        for mark in self._marks.finditer(block):
            index, result = self._place + mark.start(), mark.group()
            if result == self._quote:
                if self._quoted:
                    self._quoted, self._closed = False, index + 1
                else:
                    self._quoted = index in (self._cell, self._closed)
            elif not self._quoted:
                self._cell = index + 1
                if result != self._delimiter:
                    self._end_line(index)
                    self._line = index + 1
        self._place += len(block)
        self._end_line(self._place)

    def _end_line(self, end: int) -> None:
        if end - self._line > self._longest:
            raise LongLineError(f"one of its lines is longer than {self._longest:,} bytes")


def open_utf8(path: Path, text_format: TextFormat, raw: Any = None) -> Any:
    """Open a file's text, below the skipped lines, as a binary stream of UTF-8."""
    # `raw` is the file as `pyarrow.OSFile`, if the caller needs its position. Decoding is one run from the first byte,
    # so the result does not depend on how the file is divided into reads.
    raw = pa.OSFile(str(path)) if raw is None else raw
    try:
        stream = pa.CompressedInputStream(raw, pa.Codec.detect(str(path)).name)
    except (TypeError, ValueError):  # what versions of pyarrow say where no compression has such an ending
        stream = raw
    read_through = text_format.is_utf8 and text_format.skip_lines == 0
    return stream if read_through else Utf8Stream(stream, text_format.encoding, text_format.skip_lines)


class Utf8Stream:
    r"""Binary stream of UTF-8 made of a stream in another encoding.

    Bytes that are not text in it become bytes that are not UTF-8, so that only the value that contains them is
    unreadable. In the first line, which holds the names, they are an error. The first ``skip_lines`` lines (ended by
    LF, CR LF or CR) are skipped.
    """

    def __init__(self, stream: Any, encoding: str, skip_lines: int = 0) -> None:
        self._encoding = encoding
        self._text = io.TextIOWrapper(stream, encoding, errors=_UNREADABLE_BYTES, newline="")
        self.closed = False
        for _ in range(skip_lines):
            self._decoded(self._text.readline)
        names = self._decoded(lambda: self._text.readline(_HEADER_BYTES))
        if any("\ud800" <= character <= "\udfff" for character in names):
            raise EncodingError(f"its bytes are not text in {self._encoding}: pass the encoding it was saved in")
        if not skip_lines:
            names = names.removeprefix("\ufeff")  # the byte order mark, where the codec leaves it
        self._made = names.encode()

    def read(self, size: int = -1) -> bytes:
        """Read ``size`` bytes, fewer only at the end of the stream."""
        pieces, length = [self._made], len(self._made)
        whole = size is None or size < 0
        while whole or length < size:
            # Of surrogates these bytes are not UTF-8.
            piece = self._decoded(lambda: self._text.read(_PIECE)).encode(errors="surrogatepass")
            if not piece:
                break
            pieces.append(piece)
            length += len(piece)
        content = b"".join(pieces)
        cut = len(content) if whole else size
        self._made = content[cut:]
        return content[:cut]

    def close(self) -> None:
        self.closed = True
        self._text.close()

    def _decoded(self, read: Callable[[], str]) -> str:
        with suppress(UnicodeError):
            return read()
        # outside the handler: the error holds the bytes
        raise EncodingError(f"its bytes are not text in {self._encoding}: pass the encoding it was saved in")


# Names of columns in the first line of a text file; no record is looked at.

_DELIMITERS = {";": '";"', "\t": '"\\t", a tab', "|": '"|"', ",": '","'}
"""Delimiters that a message may suggest, and how it writes them."""


def first_line(path: Path, text_format: TextFormat) -> str:
    """Return the first non-empty line of a file, without its end."""
    # Line ends in quotes are part of it.
    encoding = text_format.encoding.upper() if text_format.is_utf8 else text_format.encoding
    fault = f"damaged, or not a text file in {encoding}: if it is text, pass the encoding it was saved in"
    try:
        with closing(open_utf8(path, text_format)) as stream:
            head = bytes(stream.read(_HEADER_BYTES))
        quote, start = (text_format.quote or "").encode(), 0
        for line_end in re.finditer(rb"\r\n|\n|\r", head):
            line = head[start : line_end.start()]
            if not line.strip():
                start = line_end.end()
            elif not quote or line.count(quote) % 2 == 0:
                return line.decode().removeprefix("\ufeff")
        return head[start:].decode().removeprefix("\ufeff")
    except PermissionError:
        raise InputPermissionError(f"{path} cannot be read: permission denied") from None
    except EncodingError as error:
        fault = str(error)
    except (pa.ArrowException, OSError, UnicodeDecodeError):
        pass
    # Outside the handlers, whose errors hold bytes of the file.
    raise InputValueError(f"{path} cannot be read: {fault}")


def names_in(line: str, delimiter: str, text_format: TextFormat) -> list[str]:
    """Return the names in a header line.

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
) -> InputValueError | None:
    """Return an error with advice if a header line would fit with another delimiter, else None.

    Only that line is read, and only for the message: the delimiter used never depends on the file.

    >>> print(other_delimiter("age;sex", ",", TextFormat(), lambda names: len(names) > 1))
    its first line has 1 column(s) by the delimiter "," and would have 2 by ";": pass delimiter=';'
    """
    result = len(names_in(line, delimiter, text_format))
    for mark, written in _DELIMITERS.items():
        names = names_in(line, mark, text_format)
        if mark != delimiter and len(names) > result and fits(names):
            advice = (
                f"its first line has {result} column(s) by the delimiter {_DELIMITERS.get(delimiter, repr(delimiter))} and "
                f"would have {len(names)} by {written}: pass "
            )
            in_python, option = (
                ('delimiter="\\t"', "tab") if mark == "\t" else (f"delimiter={mark!r}", shlex.quote(mark))
            )
            return InputValueError(f"{advice}{in_python}", shell=f"{advice}--delimiter {option}")
    return None
