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
from urllib.parse import unquote
from uuid import UUID

import numpy as np
import numpy.typing as npt

from dpmoments.base.errors import (
    InputError,
    InputFileNotFoundError,
    InputPermissionError,
    InputTypeError,
    InputValueError,
    listed,
    shown,
)
from dpmoments.base.table_libraries import pa, pc
from dpmoments.base.text_files import EncodingError, LongLineError, TextFormat
from dpmoments.base.values import FloatArray
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
from dpmoments.rows.summary import BlockMemory, Missing, Result, Running, Summary, summarize_in_threads
from dpmoments.rows.units import HashArray, UnitBlock, Weighted, mixed, unit_hashes
from dpmoments.schema.cell_reading import gather
from dpmoments.schema.cells import plain_object, read_objects
from dpmoments.schema.columns import Categorical, Coordinate, Numeric
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


# Refusals of tables whose library guesses types from cells, or skips rows by other rows.

_POLARS_SCANS = re.compile(r"^\s*(Csv|NDJson) SCAN ", re.MULTILINE | re.IGNORECASE)
_POLARS_FILTERS = re.compile(r"^\s*(FILTER|SELECTION)\b", re.MULTILINE)
_POLARS_KEYS = re.compile(r"^\s*\w+ SCAN \[([\s\S]*?)(?=^\s*PROJECT |\Z)", re.MULTILINE)
_DUCKDB_SCANS = re.compile(r"read_?\s?(csv|json|ndjson)", re.IGNORECASE)
_DUCKDB_MEMORY = re.compile(r"pandas[_ ]scan", re.IGNORECASE)
_NEGATING = re.compile(r"\w\(|\b(true|false|null|not)\b", re.IGNORECASE)
"""Functions and constants in a filter's text, by which a comparison can be negated."""
_STATING_TYPES = {"", "parquet", "arrow", "feather", "orc"}
"""Formats of an Arrow dataset that state types; "" is a table in memory."""
_KEY = re.compile(r"(?:^|[/\\ ])([^/\\=]+)=[^/\\]*(?=[/\\])")


def require_no_guess_of_polars(plan: str, names: list[str]) -> None:
    """Raise if the plan of a LazyFrame reads text files or folder names."""
    # The plan may quote values and is not shown.
    if match := _POLARS_SCANS.search(plan):
        raise InputTypeError(
            f"the lazy frame scans {match[1].upper()} files, whose types Polars guesses from the first cells, "
            "and one row would decide how others are read: pass the path of CSV files, or write the table to "
            "Parquet with stated types"
        )
    if "PYTHON SCAN" in plan and _POLARS_FILTERS.search(plan):
        raise InputTypeError(
            "the lazy frame filters rows that another library scans, such as an Arrow dataset, which may skip "
            "groups of rows so that one row decides whether a row of NaN is kept: use pl.scan_parquet(...), or "
            "collect() before the filter"
        )
    keys = {unquote(key) for paths in _POLARS_KEYS.findall(plan) for key in _KEY.findall(paths)}
    if used := sorted(key for key in keys if key in names or f'"{key}"' in plan):
        raise InputTypeError(
            f"the lazy frame's column {listed(used)} is in the names of folders, whose types Polars guesses "
            "from all of them, and one row would decide how others are read: pass the folder's path, or scan "
            "the files with hive_partitioning=False and leave the column out"
        )


def require_no_guess_of_duckdb(plan: str) -> None:
    """Raise if a relation's plan reads CSV or JSON files, or pandas or NumPy data."""
    # It is not shown. DuckDB guesses types of objects, and the plan does not state which columns hold objects.
    if match := _DUCKDB_SCANS.search(plan):
        raise InputTypeError(
            f"the relation reads {match[1].upper()} files, whose types DuckDB guesses from their cells, and one row "
            "would decide how others are read: pass the path of CSV files, or load them into a table of stated types, "
            "CREATE TABLE people (age DOUBLE, region VARCHAR); COPY people FROM 'people.csv', and pass that"
        )
    if _DUCKDB_MEMORY.search(plan):
        raise InputTypeError(
            "the relation reads a pandas frame or NumPy arrays, and types of objects DuckDB guesses from the "
            "cells, and one row would decide how others are read: pass the frame itself; or, for a query, make "
            "an Arrow table of stated types of it, pyarrow.Table.from_pandas(frame, schema=...)"
        )


def require_no_guess_of_arrow(dataset: Any, reading: Reading) -> None:
    """Raise if one row may decide how an Arrow dataset reads or keeps others, from footers only."""
    parts = list(_with_children(dataset))
    formats = {getattr(getattr(part, "format", None), "default_extname", "") for part in parts}
    if guessed := sorted(formats - _STATING_TYPES):
        raise InputTypeError(
            f"the dataset is of {' and '.join(guessed)} files, whose types Arrow guesses from the first cells, and one "
            "row would decide how others are read: pass the path of CSV files, or a dataset of Parquet or Feather files"
        )
    for part in parts:
        filters = (getattr(part, "_scan_options", None) or {}).get("filter")
        if filters is not None and (columns := columns_of_skipped_nan(str(filters), part.schema)):
            raise InputTypeError(
                f"the filter negates a comparison of {listed(columns)}, or uses a function of it: Arrow skips "
                "groups of rows by their least and largest number, which leave NaN out, and one row would decide "
                "whether a row of NaN is kept: use <, <=, ==, >, >= joined by & and |, or filter the table in "
                "memory, dataset.to_table().filter(...)"
            )
        for key in _keys(part):  # a number is the same whatever its type; a level or a unit is not
            kind = key.type.value_type if pa.types.is_dictionary(key.type) else key.type
            text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
            is_number = isinstance(reading.schema.columns_by_source.get(key.name), Numeric | Coordinate)
            if key.name in reading.names and not text and not is_number:
                raise InputTypeError(
                    f"the dataset's column '{key.name}' is in the names of folders and was made of type {kind}, which "
                    "Arrow guesses from all of them, and one row would decide how others are read: pass the folder's "
                    f"path, or ds.dataset(..., partitioning=ds.partitioning(pa.schema([('{key.name}', pa.string())]), "
                    "flavor='hive'))"
                )
    _require_same_types(dataset, parts, reading.names)


def _with_children(dataset: Any) -> Iterator[Any]:
    yield dataset
    for child in getattr(dataset, "children", None) or ():
        yield from _with_children(child)


def _require_same_types(dataset: Any, parts: list[Any], names: tuple[str, ...]) -> None:
    """Raise if the types of a file differ from the dataset's so that a cast may fail or round."""
    # A dataset with a filter may read every column, and does not expose its fragments.
    filtered = any(getattr(part, "_scan_options", None) for part in parts)
    columns = [column for column in dataset.schema if filtered or column.name in names]
    files = ((part, path) for part in parts for path in getattr(part, "files", None) or ())
    for part, path in files:
        held = part.format.make_fragment(path, filesystem=part.filesystem).physical_schema
        for column in columns:
            index = held.get_field_index(column.name)
            if index >= 0 and not _widens(held.field(index).type, column.type):
                raise InputTypeError(
                    f"a file of the dataset has the column {shown(column.name)} as {held.field(index).type}, and the "
                    f"dataset has it as {column.type}, the type of another file: one cell would decide whether the cast "
                    "succeeds. For files of several types pass the folder's path"
                )


def columns_of_skipped_nan(filters: str, schema: Any) -> list[str]:
    """Return the columns that a filter names and whose NaN it may keep by chance."""
    # Groups of rows are skipped by their least and largest number, which leave NaN out. Comparisons that NaN fails,
    # joined by and and or, keep no NaN; what negates them may. Nested columns may hold NaN.
    if not ("!" in filters or _NEGATING.search(filters)):
        return []
    named = [(field.name, field.type) for field in schema if field.name in filters]
    held = [(name, kind.value_type if pa.types.is_dictionary(kind) else kind) for name, kind in named]
    return [name for name, kind in held if pa.types.is_floating(kind) or pa.types.is_nested(kind)]


def _keys(dataset: Any) -> list[Any]:
    """Return the fields of a dataset that come from folder names."""
    partitioning = getattr(dataset, "partitioning", None)
    if partitioning is not None:
        return list(partitioning.schema)
    import pyarrow.dataset as ds  # imports pandas where it is installed, which takes as long as all else here

    if not isinstance(dataset, ds.FileSystemDataset):
        return []
    # The parts of a dataset made of several no longer know; their files do.
    names = {name for part in dataset.get_fragments() for name in ds.get_partition_keys(part.partition_expression)}
    return [field for field in dataset.schema if field.name in names]


def _widens(held: Any, wanted: Any) -> bool:
    """Return True if every value of one Arrow type is a value of the other."""
    held, wanted = (kind.value_type if pa.types.is_dictionary(kind) else kind for kind in (held, wanted))
    if held == wanted or pa.types.is_null(held):
        return True
    for of_kind in (pa.types.is_signed_integer, pa.types.is_unsigned_integer, pa.types.is_floating):
        if of_kind(held) and of_kind(wanted):
            return bool(held.bit_width <= wanted.bit_width)
    return all(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in (held, wanted))
