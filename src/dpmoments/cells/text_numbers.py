"""Numbers and flags in text cells, as a text format writes them; correctly rounded.

The same cells as Arrow's CSV reader reads where the format is the default one: blanks and tabs around a number do not count,
``inf`` and ``nan`` in any case are numbers that are not finite, and a word for nothing is compared as it stands.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dpmoments.cells.objects import NO_LEVEL
from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.foundation.table_libraries import pa, pc
from dpmoments.foundation.text_format import TextFormat
from dpmoments.schema.columns import Categorical
from dpmoments.schema.dates import Date

_BLANKS = " \t"


@dataclass(frozen=True, eq=False, repr=False)
class TextCells:
    """What a column of text holds.

    Attributes
    ----------
    values : ndarray of shape (n,)
        As float64; NaN where a cell is missing or does not parse.
    missing : ndarray of bool, shape (n,)
        Cells that hold nothing, and numbers that are not finite: those to which the column's ``missing`` rule applies.
    unparseable : ndarray of bool, shape (n,)
        Cells that hold something else.
    """

    values: FloatArray
    missing: BoolArray
    unparseable: BoolArray

    def __repr__(self) -> str:
        return "TextCells(values=<private>)"

    @classmethod
    def of(cls, values: Any, nothing: Any, readable: Any) -> TextCells:
        """Arrow's answers put together: values, which cells hold nothing, and which of the others can be read."""
        empty = _as_flags(nothing)
        unparseable = ~empty & ~_as_flags(readable)
        result = np.array(values.to_numpy(zero_copy_only=False), dtype=np.float64)
        result[empty | unparseable] = np.nan
        return cls(result, ~np.isfinite(result) & ~unparseable, unparseable)


def text_numbers(cells: Any, text_format: TextFormat) -> TextCells:
    """Numbers in a column of text.

    Parameters
    ----------
    cells : pyarrow.Array or ChunkedArray of text, length n

    Examples
    --------
    >>> german = TextFormat(decimal=",", thousands=".")
    >>> found = text_numbers(pa.array(["1.234,5", " -12 ", "n/a", "1.2345", "1,5e3"]), german)
    >>> found.values, found.missing.tolist(), found.unparseable.tolist()
    (array([1234.5,  -12. ,    nan,    nan, 1500. ]), [False, False, True, False, False], [False, False, False, True, False])
    """
    texts = _plain_texts(cells)
    nothing = is_nothing(texts, text_format.null_words)
    trimmed = pc.utf8_trim(pc.fill_null(texts, ""), _BLANKS)
    readable = pc.match_substring_regex(trimmed, _pattern(text_format))
    trimmed = _with_a_point(trimmed, text_format)
    usable = pc.fill_null(pc.and_(readable, pc.invert(nothing)), False)
    digits = pc.if_else(usable, trimmed, pa.scalar("nan", trimmed.type))
    return TextCells.of(pc.cast(digits, pa.float64()), nothing, readable)


def text_flags(cells: Any, text_format: TextFormat) -> TextCells:
    """Flags in a column of text, as 0 and 1.

    Parameters as for :func:`text_numbers`.

    Examples
    --------
    >>> text_flags(pa.array(["ja", "nein", "", "Ja"]), TextFormat(true=["ja"], false=["nein"])).values
    array([ 1.,  0., nan, nan])
    """
    texts = _plain_texts(cells)
    nothing = is_nothing(texts, text_format.null_words)
    true, false = (
        pc.is_in(texts, pa.array(words, texts.type)) for words in (text_format.true_words, text_format.false_words)
    )
    return TextCells.of(pc.cast(true, pa.float64()), nothing, pc.or_(true, false))


def decoded_bytes(cells: Any) -> tuple[Any, BoolArray]:
    """Bytes or text as text, and which of them are not UTF-8, shape (n,).

    Arrow looks at no byte of a text column that it is given, or reads from a file.
    """
    if pa.types.is_string_view(cells.type):
        cells = pc.cast(cells, pa.large_string())
    try:
        return pc.cast(cells, pa.large_binary()).cast(pa.large_string()), np.zeros(len(cells), dtype=bool)
    except pa.ArrowException:  # some cell is not: they are told one by one
        held = pc.cast(cells, pa.large_binary()).to_pylist()
        texts = [None if cell is None else cell.decode(errors="replace") for cell in held]
        whole = [text is None or text.encode() == cell for text, cell in zip(texts, held, strict=True)]
        return pa.array(texts, pa.large_string()), ~np.array(whole, dtype=bool)


def decoded_without(cells: Any, nulls: Sequence[str]) -> tuple[Any, BoolArray]:
    """As :func:`decoded_bytes`, null where a cell is not UTF-8 or one of the words for nothing."""
    texts, unreadable = decoded_bytes(cells)
    nothing = pc.or_(pa.array(unreadable), pc.is_in(texts, pa.array(nulls, texts.type)))
    return pc.if_else(nothing, pa.scalar(None, texts.type), texts), unreadable


def decoded_levels(cells: Any, nulls: Sequence[str]) -> tuple[Any, BoolArray]:
    """As :func:`decoded_without`, ``NO_LEVEL`` where a cell is not UTF-8."""
    texts, broken = decoded_without(cells, nulls)
    return pc.if_else(pa.array(broken), pa.scalar(NO_LEVEL, texts.type), texts), broken


def null_words(column: Categorical | Date, text_format: TextFormat) -> list[str]:
    """Words that stand for nothing in a column of text.

    In a categorical column only words that were stated: ``NA`` may be a level, or a value that is none.
    """
    if isinstance(column, Date):
        return list(text_format.null_words)
    levels = set(map(str, column.levels))
    return [word for word in text_format.nulls if word not in levels]


def is_nothing(texts: Any, null_words: tuple[str, ...]) -> Any:
    """Which texts are null, or a word for nothing."""
    return pc.or_(pc.is_null(texts), pc.is_in(texts, pa.array(null_words, texts.type)))


def _plain_texts(cells: Any) -> Any:
    texts = pc.cast(cells, pa.large_string())
    return texts.combine_chunks() if isinstance(texts, pa.ChunkedArray) else texts


def _with_a_point(texts: Any, text_format: TextFormat) -> Any:
    """Texts without thousands marks, the decimal mark a point."""
    thousands, decimal = text_format.thousands, text_format.decimal
    if not (decimal + (thousands or "")).isascii() or not len(texts):
        texts = texts if thousands is None else pc.replace_substring(texts, thousands, "")
        return pc.replace_substring(texts, decimal, ".")
    if thousands is None and decimal == ".":
        return texts
    # Byte by byte, three times as fast: no byte of another character in UTF-8 is that of an ASCII mark.
    _, offsets, held = texts.buffers()
    ends = np.frombuffer(offsets, dtype=np.int64)[texts.offset : texts.offset + len(texts) + 1]
    content = np.frombuffer(held or b"", dtype=np.uint8)[: ends[-1]]
    if thousands is not None:
        kept = content != ord(thousands)
        ends = np.concatenate([np.zeros(1, np.int64), np.cumsum(kept, dtype=np.int64)])[ends]
        content = content[kept]
    plain = np.where(content == ord(decimal), np.uint8(ord(".")), content)
    return pa.LargeStringArray.from_buffers(len(texts), pa.py_buffer(ends), pa.py_buffer(plain))


def _as_flags(flags: Any) -> BoolArray:
    return np.asarray(pc.fill_null(flags, False).to_numpy(zero_copy_only=False), dtype=np.bool_)


def _pattern(text_format: TextFormat) -> str:
    """RE2 of a whole number in the format, blanks around it taken off."""
    whole, mark = r"\d+", re.escape(text_format.decimal)
    if text_format.thousands is not None:
        whole = rf"(?:\d{{1,3}}(?:{re.escape(text_format.thousands)}\d{{3}})+|\d+)"
    finite = rf"(?:{whole}(?:{mark}\d*)?|{mark}\d+)(?:[eE][+-]?\d+)?"
    return rf"^[+-]?(?:{finite}|(?i:inf|infinity|nan(?:\([A-Za-z0-9_]*\))?))$"
