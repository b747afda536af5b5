"""TextFormat: how a delimited text file is written, stated by the curator."""

from __future__ import annotations

import codecs
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

from dpmoments.base.errors import InputTypeError, InputValueError, listed, out_of_range, shown

USUAL_NULLS = (
    *("", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "none", "n/a", "#N/A", "-NaN", "-nan"),
)  # fmt: skip
_TRUE = ("true", "True", "TRUE", "1", "1.0", "t", "T")
_FALSE = ("false", "False", "FALSE", "0", "0.0", "f", "F")
_YAML_NAMES = {True: "true", False: "false"}
CSV_DELIMITERS = {".csv": ",", ".tsv": "\t", ".txt": ","}

_CHANGING = ("hz", "idna", "iso2022_", "punycode", "utf-7")
"""Names of stateful codecs, in which the meaning of bytes depends on the text before them."""


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
        except stateful ones (``utf-7``, ``hz``, ``iso2022_jp``). A byte order mark is not part of the first name.
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
                f"the encoding {shown(self.encoding)} is stateful: one row could change how later rows are read. "
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
            raise InputTypeError(f"text_format must be a mapping of {', '.join(map(str, known))}")
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
