"""Table behind Rows: how it is read, and what every source of its rows answers."""

from __future__ import annotations

import re
import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from datetime import date
from functools import cached_property, partial
from numbers import Number
from pathlib import Path
from typing import Any, Generic, Self, TypeVar, cast
from uuid import UUID

import numpy as np
import numpy.typing as npt

from dpmoments.base.arrays import FloatArray
from dpmoments.base.errors import InputError, InputFileNotFoundError, InputPermissionError, InputValueError
from dpmoments.base.table_libraries import pa, pc
from dpmoments.base.text_format import TextFormat
from dpmoments.base.text_reading import EncodingError, LongLineError
from dpmoments.privacy.unit import PrivacyUnit
from dpmoments.rows.encode import Restriction, cell_rules, encode_columns, encode_levels, encode_numbers, read_numbers
from dpmoments.rows.kernel import NumberBlock
from dpmoments.rows.level_sums import (
    CodedBlock,
    LevelLayout,
    LevelSumsSummary,
    OfEncodedRows,
    counting_levels,
    dense_rows_at_a_time,
)
from dpmoments.rows.summary import BlockMemory, Missing, Result, Running, Summary
from dpmoments.rows.threads import summarize_in_threads
from dpmoments.rows.units import HashArray, UnitBlock, mixed, unit_hashes
from dpmoments.rows.weighted import Weighted
from dpmoments.schema.cells.objects import plain_object, read_objects
from dpmoments.schema.cells.reading import gather
from dpmoments.schema.columns import Categorical
from dpmoments.schema.encoding import may_be_shortened
from dpmoments.schema.schema import Schema


@dataclass(frozen=True, eq=False, repr=False)
class Reading:
    """Manner of reading a table.

    If ``mean``, rows are encoded about the midpoints of their bounds (:meth:`dpmoments.Schema.encoding`).
    ``restriction`` limits the rows to some levels of a column. The column of ``privacy_unit`` is read in addition to
    the schema's. ``array_type`` is the common type of all blocks of an engine's array.
    """

    schema: Schema
    mean: bool
    privacy_unit: PrivacyUnit | None = None
    restriction: Restriction | None = None
    array_type: np.dtype[Any] | None = None

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Columns that are read, by their names in the table."""
        names = self.schema.names_in_table
        return names if self.privacy_unit is None else (*names, self.privacy_unit.column)

    @property
    def names_read(self) -> Mapping[str, str]:
        """Names of the columns that are read: in the table → in the schema."""
        return dict(zip(self.names, (*self.schema.names, self.names[-1]), strict=False))

    @property
    def largest_part(self) -> int:
        """Number of rows encoded at a time: at most 32 megabytes, or 64 rows."""
        # A level is a code, one number, unless whole rows are encoded: then levels are spread over features.
        spread = self.privacy_unit is not None or may_be_shortened(self.schema.columns, self.schema.row_norm)
        is_code = [isinstance(column, Categorical) and column.coded and not spread for column in self.schema.columns]
        widths = zip(is_code, self.schema.columns, strict=True)
        return dense_rows_at_a_time(sum(1 if code else len(column.feature_names) for code, column in widths))

    @property
    def encoded_schema(self) -> Schema:
        """Schema of the columns that are encoded."""
        return self.schema if self.restriction is None else self.restriction.schema

    @cached_property
    def layout(self) -> LevelLayout:
        """Layout of levels and numbers among the encoded features."""
        return LevelLayout.of(self.encoded_schema, mean=self.mean)

    def counted(self, columns: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the columns of a part, limited to the selected rows."""
        return columns if self.restriction is None else self.restriction.applied(columns)


@dataclass(frozen=True, eq=False, repr=False)
class Source(ABC):
    """Table that can be passed over repeatedly, with the same rows every time."""

    reading: Reading

    @property
    def n_rows(self) -> int | None:
        """Number of rows, dropped ones included, if known without a pass."""
        return None

    @property
    def pass_length(self) -> int | None:
        """Sum of the ``on_block`` calls of a pass, in rows or a source's own unit; None if unknown."""
        return self.n_rows

    @property
    def missing(self) -> Missing:
        """Rule for non-finite values of encoded batches; by default they are a dropped row."""
        return "drop"

    def restricted(self, restriction: Restriction) -> Self:
        """Return the table limited to rows with some levels of a column."""
        return replace(self, reading=replace(self.reading, restriction=restriction))

    @abstractmethod
    def summarize(
        self,
        summary: Summary[Running, Result],
        *,
        threads: int | None = None,
        on_block: Callable[[int], None] | None = None,
    ) -> Result:
        """Map a summary over the table's partitions and merge the results."""

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


# A number for the rows of a table that does not depend on their order: two passes over one table give the same.

_WORD = (1 << 64) - 1
_STEP = 0xD1342543DE82EF95
"""Odd; its powers are the columns' multipliers."""
_EMPTY = np.uint64(0x5851F42D4C957F2D)
"""Hash of a missing value."""
_READ = (str, bytes, Number, np.generic, date, UUID)
"""Types of objects that some reader accepts."""
_OF_LIBRARIES = {"builtins", "datetime", "decimal", "fractions", "numpy", "pandas", "uuid"}
"""Libraries whose objects print their value."""
_ROWS_AT_A_TIME = 8_192
"""Rows hashed at a time: hashes fit in the cache, and no allocator returns them."""


class Fingerprint:
    """Σ over rows of a hash of the row's values, modulo 2^64.

    >>> first, again, other = Fingerprint(), Fingerprint(), Fingerprint()
    >>> first.add({"a": pa.array([1.0, 2.0]), "b": pa.array(["x", "y"])})
    >>> again.add({"a": pa.array([2.0]), "b": pa.array(["y"])})
    >>> again.add({"a": pa.array([1.0]), "b": pa.array(["x"])})
    >>> other.add({"a": pa.array([2.0, 1.0]), "b": pa.array(["x", "y"])})
    >>> first.value == again.value, first.value == other.value
    (True, False)
    """

    def __init__(self) -> None:
        self.value = 0

    def add(self, columns: Mapping[str, Any]) -> None:
        """Add rows, given as equally long columns: Arrow arrays, or arrays of Python objects."""
        result = [_cell_hashes(cells) for cells in columns.values()]
        n_rows = len(result[0])
        hashes, terms = np.empty((2, min(_ROWS_AT_A_TIME, n_rows)), np.uint64)
        for start in range(0, n_rows, _ROWS_AT_A_TIME):
            size, multiplier = min(_ROWS_AT_A_TIME, n_rows - start), 1
            hashes[:size] = 0
            for words in result:
                multiplier = multiplier * _STEP & _WORD
                np.multiply(words[start : start + size], np.uint64(multiplier), out=terms[:size])
                hashes[:size] += terms[:size]
            self.value = (self.value + int(np.add.reduce(mixed(hashes[:size])))) & _WORD


def _cell_hashes(cells: Any) -> HashArray:
    """Hash each value to 64 bits, shape (n,); equal values of one type get equal hashes."""
    if isinstance(cells, np.ndarray):
        return np.array(read_objects(cells, _object_word, 0), np.uint64)
    return gather(cells, _hash_words, _EMPTY)


def _object_word(cell: object) -> int:
    """Hash an object; one of a type that no reader knows, by its type only."""
    # Its text may be a memory address, or its own code.
    plain = plain_object(cell)
    known = plain is None or (isinstance(plain, _READ) and type(plain).__module__.partition(".")[0] in _OF_LIBRARIES)
    return zlib.crc32((repr(plain) if known else type(cell).__qualname__).encode(errors="backslashreplace"))


def _hash_words(cells: Any) -> HashArray:
    """Hash each value of a plain Arrow array, shape (n,)."""
    kind = cells.type
    if pa.types.is_boolean(kind):
        return _hash_words(cells.cast(pa.uint8()))
    if pa.types.is_temporal(kind):
        return _hash_words(cells.view(pa.int32() if kind.bit_width == 32 else pa.int64()))
    if pa.types.is_floating(kind):
        values = cells.to_numpy(zero_copy_only=False)  # NaN for nothing
        words: HashArray = np.ascontiguousarray(values, np.float64).view(np.uint64)
    elif pa.types.is_integer(kind):
        filled = pc.fill_null(cells, pa.scalar(0, kind)).to_numpy(zero_copy_only=False)
        words = filled.astype(np.uint64, casting="unsafe")
    else:
        try:
            texts = pc.fill_null(cells.cast(pa.large_binary()), b"").dictionary_encode()  # levels are few
            words = unit_hashes(texts.dictionary, 0)[texts.indices.to_numpy(zero_copy_only=False)]
        except pa.ArrowException:  # nested values
            words = _cell_hashes(np.array([*cells.to_pylist(), None], dtype=object)[:-1])
    return np.where(cells.is_null().to_numpy(zero_copy_only=False), _EMPTY, words) if cells.null_count else words


@dataclass(eq=False, repr=False)
class FirstPass:
    """Fingerprint of the first pass over a table, which later passes must match."""

    fingerprint: int | None = None

    def require_same(self, fingerprint: int, table: str) -> None:
        """Raise ValueError unless a pass met the rows of the first."""
        if self.fingerprint is not None and self.fingerprint != fingerprint:
            raise InputValueError(
                f"{table} returned different rows in this pass than in the one before: they are recomputed each time "
                "(from random numbers, a sample, or data that change). Write it to Parquet files once, and pass those"
            )
        self.fingerprint = fingerprint


# Sources on one machine: parts of the table are read in turn, encoded and summarized in threads.

Part = TypeVar("Part")


@dataclass(frozen=True, eq=False, repr=False)
class LocalSource(Source, Generic[Part]):
    """Table that this process reads itself; a ``fingerprint`` gets the rows of a pass."""

    fingerprint: Fingerprint | None = field(default=None, kw_only=True)

    @abstractmethod
    def parts(self) -> Iterator[Part]:
        """Iterate over parts of the table, before encoding; each has a length."""
        # The first part of each declared type has none, since types are refused before a value is read.

    def parts_for(self, summary: Summary[Any, Any]) -> Iterator[Part]:
        """Iterate over parts, of the size that suits a summary if possible."""
        return self.parts()

    def measured(self, parts: Iterator[Part]) -> Iterator[tuple[Part, int]]:
        """Iterate over parts with their share of :attr:`pass_length`."""
        for part in parts:
            if self.fingerprint is not None:
                self.fingerprint.add(self.cells(part))
            yield part, len(part)  # type: ignore[arg-type]

    @abstractmethod
    def written_cells(self, part: Part, name: str) -> Any:
        """Return a column of a part before any rule: an Arrow array, or one of Python objects."""
        # `name` is the column's name in the table.

    def cells(self, part: Part) -> Mapping[str, Any]:
        """Return the columns of a part, by their names in the schema and read by its kinds."""
        return {own: self.written_cells(part, name) for name, own in self.reading.names_read.items()}

    def encode(self, part: Part, memory: BlockMemory | None = None) -> npt.NDArray[Any]:
        """Return encoded rows, (n, d), read-only, NaN if dropped."""
        # With `memory` the next part overwrites them.
        return self.encode_levels(part, memory).encoded()

    def encode_levels(self, part: Part, memory: BlockMemory | None = None) -> CodedBlock:
        """Return the encoded rows with levels as codes."""
        return encode_levels(
            self.reading.counted(self.cells(part)), self.reading.encoded_schema, self.reading.layout, memory
        )

    @property
    def encodes_numbers(self) -> bool:
        """True if parts may be encoded in machine code."""
        return True

    def number_block(self, part: Part, memory: BlockMemory) -> NumberBlock:
        """Return a part that is encoded when a summary has chosen how."""
        columns = self.reading.counted(self.cells(part))

        schema, layout = self.reading.encoded_schema, self.reading.layout
        return NumberBlock(
            len(columns[schema.names[0]]),
            partial(read_numbers, columns, schema, memory),
            lambda: encode_levels(columns, schema, layout, memory).encoded(),
            self.encode_numbers,
        )

    def encode_numbers(self, values: npt.NDArray[Any]) -> FloatArray:
        """Encode some rows of :attr:`NumberBlock.numbers`, NaN if dropped."""
        return encode_numbers(values, self.reading.encoded_schema, self.reading.layout)

    def encode_units(self, part: Part) -> UnitBlock:
        """Return the kept encoded rows of a part and their units."""
        assert self.reading.privacy_unit is not None, "the table was opened for rows"
        columns = self.cells(part)
        encoded: FloatArray = encode_columns(columns, self.reading.schema, mean=self.reading.mean)
        return UnitBlock.of(columns[self.reading.privacy_unit.column], encoded, self.reading.privacy_unit)

    def unconverted(self, on_ragged_line: Callable[[], None]) -> Self:
        """Return the table with values as written, whatever the schema's kinds."""
        # Lines of a delimited file with more or fewer fields than the first are skipped, with a call for each.
        return self

    @property
    def text_of_cells(self) -> TextFormat | None:
        """Format of the values of :meth:`unconverted` if they are bytes of a text file, else None."""
        return None

    def one_by_one(self) -> list[Self]:
        """Return sources of the table's files, in order, which are read independently."""
        return [self]

    def blocks(self) -> Iterator[npt.NDArray[Any]]:
        """Iterate over encoded batches, shape (n_i, d), in table order."""
        for part in self.parts():
            if not len(part):  # type: ignore[arg-type]
                continue
            if self.reading.layout.columns:
                yield from self.encode_levels(part).encoded_blocks()
            else:
                yield self.encode(part)

    def summarize(
        self,
        summary: Summary[Running, Result],
        *,
        threads: int | None = None,
        on_block: Callable[[int], None] | None = None,
    ) -> Result:
        # `on_block` gets each part's share of `pass_length`. The schema and what is asked decide how parts are encoded.
        schema, layout, memory = self.reading.encoded_schema, self.reading.layout, BlockMemory()
        asked: Summary[Any, Any] = summary
        encode: Callable[..., Any] = partial(self.encode_levels, memory=memory)
        counting = None
        if summary.takes_units:
            encode = self.encode_units
        elif layout.columns and isinstance(summary, Weighted):
            asked = summary.by_levels(schema, layout)
            counting = asked.summary if isinstance(asked.summary, LevelSumsSummary) else None
        elif layout.columns:
            counting = counting_levels(summary, schema, layout)
            asked = counting or (summary if summary.takes_levels else OfEncodedRows(summary))
        else:
            rules = cell_rules(schema, layout) if self.encodes_numbers else None
            of_numbers = None if rules is None else summary.of_numbers(rules)
            asked = of_numbers or summary
            encode = partial(self.encode if of_numbers is None else self.number_block, memory=memory)
        result: Any = summarize_in_threads(asked, self._watched(asked, on_block), encode, threads)
        if counting is not None:
            several = isinstance(summary, Weighted)
            result = tuple(map(counting.result, result)) if several else counting.result(result)
        return cast("Result", result)

    def require_types(self, empty: Part) -> None:
        """Raise if a column of a part without rows has a type of which no value is usable."""
        if self.reading.privacy_unit is None:
            self.encode_levels(empty)
        else:
            self.encode_units(empty)

    def _watched(self, summary: Summary[Any, Any], on_block: Callable[[int], None] | None) -> Iterator[Part]:
        empty = True
        for part, length in self.measured(self.parts_for(summary)):
            if not len(part):  # type: ignore[arg-type]
                self.require_types(part)
                continue
            yield part
            empty = False
            if on_block is not None:
                on_block(length)
        if empty and on_block is not None:
            on_block(0)  # a pass over no row is a pass


# Readers' errors, told without the cells they quote.

DAMAGED_FILE = "damaged, truncated, or not what its name says"
UNCONVERTED = "In CSV column #"
"""Arrow's message for a value that cannot be converted to its column's type."""
LONG_LINE = "straddling object straddles two block boundaries"
"""Arrow's message for a line longer than one block, or than two, depending on its start."""
FAILED_QUERY = "its query fails, on the table or before it"


class ReadAgain(Exception):  # noqa: N818 (no error reaches a caller)
    """Request to read a delimited file again from its beginning, in the way of the argument."""


def read_each(
    parts: Iterable[Part],
    where: str | Path,
    why: str = DAMAGED_FILE,
    *,
    mended: Callable[[str], str | None] | None = None,
) -> Iterator[Part]:
    """Iterate over parts of a private table, and hide the text of any reader's error."""
    following = partial(next, iter(parts), None)
    while (part := read_quietly(following, where, why, mended=mended)) is not None:
        yield part


def read_quietly(
    step: Callable[[], Result],
    where: str | Path,
    why: str = DAMAGED_FILE,
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
        failure: Exception = InputValueError(f"{where} cannot be read: {error}")
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
                why = "one of its lines has a different number of fields than the first"
            failure = InputValueError(f"{where} cannot be read: {why} ({kind})")
    raise failure  # outside the handlers, where the original would become its context
