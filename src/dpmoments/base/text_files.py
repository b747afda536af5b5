"""Text files of tables: encoding, delimiter and decimal mark found out, then read in blocks."""

from __future__ import annotations

import codecs
import csv
import io
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any, Literal

from dpmoments.base.errors import InputPermissionError, InputTypeError, InputValueError, listed, out_of_range, shown
from dpmoments.base.table_libraries import pa

# TextFormat: how a delimited text file is written, stated by the curator.

USUAL_NULLS = (
    *("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "none", "n/a", "#N/A", "-NaN", "-nan"),
)  # fmt: skip
_TRUE = ("true", "True", "TRUE", "1", "1.0", "t", "T")
_FALSE = ("false", "False", "FALSE", "0", "0.0", "f", "F")
_YAML_NAMES = {True: "true", False: "false"}
CSV_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": ","}

_CHANGING = ("hz", "idna", "iso2022_", "punycode", "raw-unicode-escape", "unicode-escape", "utf-7")
"""Names of codecs that read bytes by the text before them, or make line ends of escapes."""


@dataclass(frozen=True, kw_only=True)
class TextFormat:
    """Format of a text file (CSV), or place of a table in a workbook, if not the usual one.

    Nothing is guessed: a delimiter, encoding or decimal mark guessed from the records would let one row decide how
    others are read. The equivalent option of :func:`pandas.read_csv` is in parentheses.

    Parameters
    ----------
    delimiter : str, optional
        One ASCII character between values (pandas: ``sep``). Default: a tab in .tsv files, else a comma.
    encoding : str
        Any text encoding that Python knows (pandas: ``encoding``), such as ``"latin-1"``, ``"cp1252"``, ``"utf-16"``,
        except stateful ones (``utf-7``, ``hz``, ``iso2022_jp``) and escapes (``unicode_escape``). A byte order mark is
        not part of the first name.
    decimal : str
        Decimal mark of numbers (pandas: ``decimal``).
    thousands : str, optional
        Mark between groups of three digits, before the decimal mark only (pandas: ``thousands``): with ``"."``,
        ``1.234`` is 1234, and ``1.23`` is not a number. Digits without marks are also read.
    nulls : sequence of str
        Null markers in addition to the usual ones in columns of numbers, Booleans and dates: an empty text, ``NA``,
        ``n/a``, ``NULL``, … (pandas: ``na_values``). In a categorical column only these apply, unless they are its
        levels. In the privacy unit's column they apply in addition to the usual ones.
    true, false : sequence of str
        Texts for true and false in Boolean columns, in addition to the usual ``true``, ``1``, ``t``, ``false``, ``0``,
        ``f`` (pandas: ``true_values``, ``false_values``). With ``true=["1"], false=["2"]`` 2 is false.
    quote : str, optional
        Character around values that contain delimiters (pandas: ``quotechar``); None: quotes are text (pandas:
        ``quoting=csv.QUOTE_NONE``).
    skip_lines : int
        Lines above the header line (pandas: ``skiprows``), in text files and workbooks.
    skip_below : int
        Lines below the header line that are not records, such as units, in text files and workbooks.
    sheet : str or int, optional
        Sheet of a workbook, by its name, or by its number from 1. Default: the first.

    Raises
    ------
    TypeError, ValueError
        If an option is invalid, or two contradict each other.

    Examples
    --------
    >>> hospital = TextFormat(delimiter=";", encoding="latin-1", decimal=",", thousands=".", nulls=["k.A."])
    >>> hospital
    TextFormat(delimiter=';', encoding='latin-1', decimal=',', thousands='.', nulls=('k.A.',))
    >>> TextFormat(encoding="latin-0")
    Traceback (most recent call last):
        ...
    dpmoments.base.errors.InputValueError: 'latin-0' is not a text encoding that Python knows: common ones
    ...
    """

    delimiter: str | None = None
    encoding: str = "utf-8"
    decimal: str = "."
    thousands: str | None = None
    nulls: tuple[str, ...] = ()
    true: tuple[str, ...] = ()
    false: tuple[str, ...] = ()
    quote: str | None = '"'
    skip_lines: int = 0
    skip_below: int = 0
    sheet: str | int | None = None

    def __post_init__(self) -> None:
        for option in ("delimiter", "decimal", "thousands", "quote"):
            mark = getattr(self, option)
            if mark is None and option != "decimal":
                continue
            if not isinstance(mark, str) or len(mark) != 1 or mark.isalnum() or mark in "\r\n\0\ufeff":
                raise out_of_range(option, mark, "one character, not a letter, digit or line end")
        if (self.delimiter or ",") > "\x7e" or (self.quote or '"') > "\x7e":
            raise InputValueError("delimiter and quote must be ASCII characters")
        if self.delimiter is not None and self.delimiter == self.quote:
            raise InputValueError(f"delimiter and quote are both {shown(self.quote)}")
        for option, mark in (("decimal", self.decimal), ("thousands", self.thousands)):
            if mark is not None and mark in '+-"':
                raise InputValueError(f"{option} cannot be a sign or a quote, which numbers contain, got {shown(mark)}")
        if self.decimal.isspace():
            raise InputValueError(f"decimal must not be a space, got {shown(self.decimal)}")
        if self.decimal == self.thousands:
            raise InputValueError(
                f"decimal and thousands are both {shown(self.decimal)}: what would 1{self.decimal}234 be?"
            )
        if not isinstance(self.encoding, str) or not _is_text_encoding(self.encoding):
            raise InputValueError(
                f"{shown(self.encoding)} is not a text encoding that Python knows: common ones are utf-8, "
                "cp1252, latin-1, utf-16"
            )
        if codecs.lookup(self.encoding).name.startswith(_CHANGING):
            raise InputValueError(
                f"in the encoding {shown(self.encoding)} one row could change how later rows are read. "
                "Convert the file to UTF-8, for example with iconv, and leave the encoding out"
            )
        for option in ("nulls", "true", "false"):
            words = getattr(self, option)
            if isinstance(words, str) or not isinstance(words, Sequence):
                raise InputTypeError(f"{option}={shown(words)} must be a list of texts: [{shown(words)}]")
            if not all(isinstance(word, str) for word in words):
                raise InputTypeError(
                    f"{option}={shown(words)} must be a list of texts: put the texts of the file in quotes"
                )
            object.__setattr__(self, option, tuple(words))
        for first, second in (("true", "false"), ("nulls", "true"), ("nulls", "false")):
            if both := sorted(set(getattr(self, first)) & set(getattr(self, second))):
                raise InputValueError(f"{shown(both[0])} is both in {first} and in {second}")
        for option in ("skip_lines", "skip_below"):
            lines = getattr(self, option)
            if isinstance(lines, bool) or not isinstance(lines, int) or lines < 0:
                raise out_of_range(option, lines, "a whole number, 0 or more")
        sheet = self.sheet
        if isinstance(sheet, bool) or not (
            sheet is None or (isinstance(sheet, str) and sheet) or sheet in range(1, 10_000)
        ):
            raise out_of_range("sheet", sheet, "the name of a sheet, or its number from 1")

    def delimiter_for(self, ending: str) -> str:
        r"""Return the delimiter of a file with this ending.

        Examples
        --------
        >>> TextFormat().delimiter_for(".tsv"), TextFormat(delimiter=";").delimiter_for(".csv")
        ('\t', ';')
        """
        return CSV_DELIMITERS[ending] if self.delimiter is None else self.delimiter

    @property
    def null_markers(self) -> tuple[str, ...]:
        """Null markers in columns of numbers, Booleans and dates."""
        reported = {*self.true, *self.false}
        return tuple(dict.fromkeys((*(word for word in USUAL_NULLS if word not in reported), *self.nulls)))

    @property
    def true_markers(self) -> tuple[str, ...]:
        """Texts for true."""
        return (*(word for word in _TRUE if word not in (*self.false, *self.nulls)), *self.true)

    @property
    def false_markers(self) -> tuple[str, ...]:
        """Texts for false."""
        return (*(word for word in _FALSE if word not in (*self.true, *self.nulls)), *self.false)

    @property
    def of_text(self) -> tuple[str, ...]:
        """Stated options that a workbook does not have."""
        return tuple(option for option in self.to_dict() if option not in ("skip_lines", "skip_below", "sheet"))

    @property
    def is_utf8(self) -> bool:
        """True if the bytes are UTF-8, with or without a byte order mark."""
        return codecs.lookup(self.encoding).name in ("utf-8", "utf-8-sig")

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file: the options that are not the usual ones.

        >>> TextFormat(decimal=",", nulls=["k.A."]).to_dict()
        {'decimal': ',', 'nulls': ['k.A.']}
        """
        return {
            option.name: list(value) if isinstance(value, tuple) else value
            for option in fields(self)
            if (value := getattr(self, option.name)) != option.default
        }

    @classmethod
    def from_dict(cls, values: object) -> TextFormat:
        """Invert :meth:`to_dict`.

        Raises
        ------
        TypeError, ValueError
            If the values are not those of a text format.
        """
        known = [option.name for option in fields(cls)]
        if not isinstance(values, Mapping):
            raise InputTypeError(f"text_format must be a mapping of {', '.join(known)}")
        # YAML reads the names true and false without quotes as Booleans.
        named = {key: _YAML_NAMES[key] if isinstance(key, bool) else key for key in values}
        if len({*named.values()}) == len(named):
            values = {named[key]: value for key, value in values.items()}
        if unknown := [key for key in values if key not in known]:
            from difflib import get_close_matches

            close = get_close_matches(str(unknown[0]), known, n=1)
            question = f" (did you mean {listed(close)}?)" if close else ""
            raise InputValueError(
                f"text_format has unknown entries {', '.join(map(shown, unknown))}{question}: use {', '.join(known)}"
            )
        return cls(**values)

    def __repr__(self) -> str:
        stated = ((option.name, getattr(self, option.name), option.default) for option in fields(self))
        return f"TextFormat({', '.join(f'{name}={value!r}' for name, value, usual in stated if value != usual)})"


def _is_text_encoding(name: str) -> bool:
    """Return True if text in this encoding can be read in batches."""
    try:
        result = codecs.lookup(name)
    except (LookupError, ValueError):  # a null character in the name
        return False
    return result._is_text_encoding and result.incrementaldecoder is not None


# Bytes of a text file as a decompressed UTF-8 stream, never whole in memory.

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
