"""Sources on one machine, and tables whose guessed types they refuse.

Parts of the table read in turn, encoded and summarized in threads.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Generic, Self, TypeVar, cast
from urllib.parse import unquote

import numpy as np
import numpy.typing as npt

from dpmoments.cells.text_numbers import column_format, text_flags, text_numbers
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputTypeError
from dpmoments.foundation.table_libraries import pa
from dpmoments.foundation.text_format import TextFormat
from dpmoments.messages.message import Message
from dpmoments.messages.wording import listed
from dpmoments.privacy.unit import PrivacyUnit
from dpmoments.rows.encode import (
    Restriction,
    cell_rules,
    encode_columns,
    encode_levels,
    encode_numbers,
    largest_block,
    read_numbers,
)
from dpmoments.rows.kernel import NumberBlock
from dpmoments.rows.level_sums import CodedBlock, LevelLayout, OfEncodedRows, counting_levels
from dpmoments.rows.summary import BlockMemory, Missing, Summary
from dpmoments.rows.threads import summarize_in_threads
from dpmoments.rows.units import UnitBlock
from dpmoments.schema.columns import Boolean, Categorical, Column, Coordinate
from dpmoments.schema.dates import Date
from dpmoments.schema.numeric import Numeric
from dpmoments.schema.schema import Schema

_POLARS_SCANS = re.compile(r"^\s*(Csv|NDJson) SCAN ", re.MULTILINE | re.IGNORECASE)
_POLARS_FILTERS = re.compile(r"^\s*(FILTER|SELECTION)\b", re.MULTILINE)
_POLARS_KEYS = re.compile(r"^\s*\w+ SCAN \[([\s\S]*?)(?=^\s*PROJECT |\Z)", re.MULTILINE)
_DUCKDB_SCANS = re.compile(r"read_?\s?(csv|json|ndjson)", re.IGNORECASE)
_DUCKDB_MEMORY = re.compile(r"pandas[_ ]scan", re.IGNORECASE)
_NEGATING = re.compile(r"\w\(|\b(true|false|null|not)\b", re.IGNORECASE)
"""Functions and constants in a filter's text, by which a comparison can be negated."""
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
            f"the lazy frame's column {listed([*used])} is in the names of folders, whose types Polars guesses "
            "from all of them, and one row would decide how others are read: pass the folder's path, or scan "
            "the files with hive_partitioning=False and leave the column out"
        )


def require_no_guess_of_duckdb(plan: str) -> None:
    """Raise if a relation's plan reads CSV or JSON files, or pandas or NumPy data.

    The plan is not shown.

    DuckDB guesses types of objects, and the plan does not state which columns hold objects.
    """
    if match := _DUCKDB_SCANS.search(plan):
        raise InputTypeError(
            f"the relation reads {match[1].upper()} files, whose types DuckDB guesses from their cells, and one "
            "row would decide how others are read: pass the path of CSV files, or load them into a table of "
            "stated types, CREATE TABLE people (age DOUBLE, region VARCHAR); COPY people FROM 'people.csv', "
            "and pass that"
        )
    if _DUCKDB_MEMORY.search(plan):
        raise InputTypeError(
            "the relation reads a pandas frame or NumPy arrays, and types of objects DuckDB guesses from the "
            "cells, and one row would decide how others are read: pass the frame itself; or, for a query, make "
            "an Arrow table of stated types of it, pyarrow.Table.from_pandas(frame, schema=...)"
        )


def require_no_skipped_nan(dataset: Any) -> None:
    """Raise if another row may decide whether the filter of a dataset keeps a row of NaN."""
    for child in getattr(dataset, "children", None) or ():
        require_no_skipped_nan(child)
    filters = (getattr(dataset, "_scan_options", None) or {}).get("filter")
    if filters is not None and (columns := columns_of_skipped_nan(str(filters), dataset.schema)):
        raise InputTypeError(
            f"the filter negates a comparison of {listed(columns)}, or uses a function of it: Arrow skips "
            "groups of rows by their least and largest number, which leave NaN out, and one row would decide "
            "whether a row of NaN is kept: use <, <=, ==, >, >= joined by & and |, or filter the table in "
            "memory, dataset.to_table().filter(...)"
        )


def columns_of_skipped_nan(filters: str, schema: Any) -> list[str]:
    """Return the columns that a filter names and whose NaN it may keep by chance."""
    # Groups of rows are skipped by their least and largest number, which leave NaN out. Comparisons that NaN fails,
    # joined by and and or, keep no NaN; what negates them may. Nested columns may hold NaN.
    if not ("!" in filters or _NEGATING.search(filters)):
        return []
    return [field.name for field in schema if field.name in filters and _may_hold_nan(field.type)]


def _may_hold_nan(kind: Any) -> bool:
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return bool(pa.types.is_floating(kind) or pa.types.is_nested(kind))


def require_keys_of_text(dataset: Any, names: tuple[str, ...], columns: Mapping[str, Column]) -> None:
    """Raise if a column comes from folder names of an Arrow dataset and is no longer text.

    Only columns that are read are checked.

    A number is the same whatever its type; a level or a unit is not.
    """
    for child in getattr(dataset, "children", None) or ():
        require_keys_of_text(child, names, columns)
    for key in _keys(dataset):
        kind = key.type.value_type if pa.types.is_dictionary(key.type) else key.type
        text = pa.types.is_string(kind) or pa.types.is_large_string(kind)
        if key.name in names and not text and not isinstance(columns.get(key.name), Numeric | Coordinate):
            raise InputTypeError(
                f"the dataset's column '{key.name}' is in the names of folders and was made of type {kind}, which "
                "Arrow guesses from all of them, and one row would decide how others are read: pass the folder's "
                f"path, or ds.dataset(..., partitioning=ds.partitioning(pa.schema([('{key.name}', pa.string())]), "
                "flavor='hive'))"
            )


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


def differing_types(dataset: Any, names: tuple[str, ...]) -> Message | None:
    """Describe a file of an Arrow dataset whose types differ so that a cast may fail or round.

    None without one.

    Only footers are read. For a dataset with a filter every column is checked.
    """
    filters = bool(getattr(dataset, "_scan_options", None))
    for held in _schemas_of_files(dataset):
        for column in dataset.schema:
            index = held.get_field_index(column.name)
            if index < 0 or not (filters or column.name in names) or _widens(held.field(index).type, column.type):
                continue
            return Message(
                "types-of-files-differ", name=column.name, type=str(held.field(index).type), other=str(column.type)
            )
    return None


def _schemas_of_files(dataset: Any) -> Iterator[Any]:
    """Iterate over the files' schemas; a dataset with a filter does not expose its fragments."""
    for child in getattr(dataset, "children", None) or ():
        yield from _schemas_of_files(child)
    for path in getattr(dataset, "files", None) or ():
        yield dataset.format.make_fragment(path, filesystem=dataset.filesystem).physical_schema


def _widens(held: Any, wanted: Any) -> bool:
    """Return True if every value of one Arrow type is a value of the other."""
    held, wanted = (kind.value_type if pa.types.is_dictionary(kind) else kind for kind in (held, wanted))
    if held == wanted or pa.types.is_null(held):
        return True
    for of_kind in (pa.types.is_signed_integer, pa.types.is_unsigned_integer, pa.types.is_floating):
        if of_kind(held) and of_kind(wanted):
            return bool(held.bit_width <= wanted.bit_width)
    return all(pa.types.is_string(kind) or pa.types.is_large_string(kind) for kind in (held, wanted))


def guessed_formats(dataset: Any) -> list[str]:
    """Return the file formats in a dataset that declare no types."""
    children = getattr(dataset, "children", None)
    if children is not None:
        return sorted({kind for child in children for kind in guessed_formats(child)})
    kind = getattr(getattr(dataset, "format", None), "default_extname", "")
    return [kind] if kind in ("csv", "json") else []


# Cells that the names of folders hold, as in ``year=2020/region=north/part.parquet`` (hive partitioning).

_NOTHING = ("", "__HIVE_DEFAULT_PARTITION__")


def folder_keys(path: Path, folder: Path | None) -> dict[str, str | None]:
    """Return the column values in the folder names between a file and ``folder``.

    None means null.

    >>> folder_keys(Path("data/year=2020/region=a%20b/part.parquet"), Path("data"))
    {'year': '2020', 'region': 'a b'}
    """
    if folder is None or not path.is_relative_to(folder):
        return {}
    pairs = [part.partition("=") for part in path.relative_to(folder).parts[:-1] if "=" in part]
    return {unquote(name): None if text in _NOTHING else unquote(text) for name, _, text in pairs}


def key_cells(text: str | None, column: Column | None, n_rows: int) -> Any:
    """Return a constant Arrow column of a type that the schema column accepts."""
    # It is text without a schema column.
    if text is None:
        return pa.nulls(n_rows)
    if column is None or isinstance(column, Categorical | Date):
        return pa.repeat(pa.scalar(text), n_rows)
    read = text_flags if isinstance(column, Boolean) else text_numbers
    value = read(pa.array([text]), column_format(column)).values[0]
    if isinstance(column, Boolean):  # whose codes are read: 0 and 1 are none
        return pa.array([None if np.isnan(value) else bool(value)] * n_rows, pa.bool_())
    return pa.array(np.full(n_rows, value))


Part = TypeVar("Part")
Running = TypeVar("Running")
Result = TypeVar("Result")


@dataclass(frozen=True, eq=False, repr=False)
class LocalSource(ABC, Generic[Part]):
    """Table that this process reads itself, repeatedly.

    If ``mean``, rows are encoded about the midpoints of their bounds (:meth:`dpmoments.Schema.encoding`).
    ``restriction`` limits the rows to some levels of a column. The column of ``privacy_unit`` is read in addition to
    the schema's.
    """

    schema: Schema
    mean: bool
    restriction: Restriction | None = field(default=None, kw_only=True)
    privacy_unit: PrivacyUnit | None = field(default=None, kw_only=True)

    @property
    def largest_part(self) -> int:
        """Number of rows encoded at a time."""
        return largest_block(self.schema, whole_rows=self.privacy_unit is not None)

    @property
    def names(self) -> tuple[str, ...]:
        """Columns that are read, by their names in the table."""
        names = self.schema.names_in_table
        return names if self.privacy_unit is None else (*names, self.privacy_unit.column)

    @property
    def names_read(self) -> Mapping[str, str]:
        """Names of the columns that are read: in the table → in the schema."""
        return dict(zip(self.names, (*self.schema.names, self.names[-1]), strict=False))

    def restricted(self, restriction: Restriction) -> Self:
        """Return the table limited to some rows."""
        return replace(self, restriction=restriction)

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

    @property
    def n_rows(self) -> int | None:
        """Number of rows if known without a pass."""
        return None

    @property
    def pass_length(self) -> int | None:
        """Length of a pass in rows, unless a source has a better unit."""
        return self.n_rows

    @property
    def missing(self) -> Missing:
        """Rule for non-finite values of an encoded batch."""
        # In a batch encoded by columns, a dropped row.
        return "drop"

    @abstractmethod
    def parts(self) -> Iterator[Part]:
        """Iterate over parts of the table, before encoding; each has a length.

        The first part of each declared type has none, since types are refused before a value is read.
        """

    def parts_for(self, summary: Summary[Any, Any]) -> Iterator[Part]:
        """Iterate over parts, of the size that suits a summary if possible."""
        del summary
        return self.parts()

    def measured(self, parts: Iterator[Part]) -> Iterator[tuple[Part, int]]:
        """Iterate over parts with their share of :attr:`pass_length`."""
        for part in parts:
            yield part, len(part)  # type: ignore[arg-type]

    @abstractmethod
    def written_cells(self, part: Part, name: str) -> Any:
        """Return a column of a part before any rule: an Arrow array, or one of Python objects."""
        # `name` is the column's name in the table.

    def cells(self, part: Part) -> Mapping[str, Any]:
        """Return the columns of a part, by their names in the schema and read by its kinds."""
        return {own: self.written_cells(part, name) for name, own in self.names_read.items()}

    def encode(self, part: Part, memory: BlockMemory | None = None) -> npt.NDArray[Any]:
        """Return encoded rows, (n, d), read-only, NaN if dropped."""
        # With `memory` the next part overwrites them.
        return self.encode_levels(part, memory).encoded()

    def encode_levels(self, part: Part, memory: BlockMemory | None = None) -> CodedBlock:
        """Return the encoded rows with levels as codes."""
        return encode_levels(self.counted(self.cells(part)), self.encoded_schema, self.layout, memory)

    @property
    def encodes_numbers(self) -> bool:
        """True if parts may be encoded in machine code."""
        return True

    def _of_numbers(self, summary: Summary[Running, Result]) -> Summary[Running, Result] | None:
        rules = cell_rules(self.encoded_schema, self.layout) if self.encodes_numbers else None
        return None if rules is None else cast("Summary[Running, Result] | None", summary.of_numbers(rules))

    def number_block(self, part: Part, memory: BlockMemory) -> NumberBlock:
        """Return a part that is encoded when a summary has chosen how."""
        columns = self.counted(self.cells(part))

        def encoded() -> FloatArray:
            return encode_levels(columns, self.encoded_schema, self.layout, memory).encoded()

        def numbers() -> FloatArray:
            return read_numbers(columns, self.encoded_schema, memory)

        n_rows = len(columns[self.encoded_schema.names[0]])
        return NumberBlock(n_rows, numbers, encoded, self.encode_numbers)

    def encode_numbers(self, values: npt.NDArray[Any]) -> FloatArray:
        """Encode some rows of :attr:`NumberBlock.numbers`, NaN if dropped."""
        return encode_numbers(values, self.encoded_schema, self.layout)

    def encode_units(self, part: Part) -> UnitBlock:
        """Return the kept encoded rows of a part and their units."""
        assert self.privacy_unit is not None, "the table was opened for rows"
        columns = self.cells(part)
        encoded: FloatArray = encode_columns(columns, self.schema, mean=self.mean)
        return UnitBlock.of(columns[self.privacy_unit.column], encoded, self.privacy_unit)

    def unconverted(self, on_ragged_line: Callable[[], None]) -> Self:
        """Return the table with values as written, whatever the schema's kinds."""
        # Lines of a delimited file with more or fewer fields than the first are skipped, with a call for each.
        del on_ragged_line
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
            if self.layout.columns:
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
        """Map a summary over the table in threads."""
        # `on_block` gets each part's share of `pass_length`.
        memory = BlockMemory()
        if not self.layout.columns:
            numbers = self._of_numbers(summary)
            if numbers is not None:
                encode_later: Callable[[Part], Any] = partial(self.number_block, memory=memory)
                return summarize_in_threads(numbers, self._watched(numbers, on_block), encode_later, threads)
            encode = partial(self.encode, memory=memory)
            return summarize_in_threads(summary, self._watched(summary, on_block), encode, threads)
        levels: Callable[[Part], Any] = partial(self.encode_levels, memory=memory)
        # What follows is decided by the schema and what is asked: levels are counted where that is possible, and less work.
        counting = counting_levels(summary, self.encoded_schema, self.layout)
        if counting is not None:
            sums = summarize_in_threads(counting, self._watched(counting, on_block), levels, threads)
            return cast("Result", counting.result(sums))
        asked = summary if summary.takes_levels else OfEncodedRows(summary)
        return summarize_in_threads(asked, self._watched(asked, on_block), levels, threads)

    def summarize_units(
        self, summary: Summary[Any, Any], *, threads: int | None = None, on_block: Callable[[int], None] | None = None
    ) -> Any:
        """Summarize like :meth:`summarize`, in :class:`~dpmoments.rows.units.UnitBlock` batches."""
        blocks: Callable[[Part], Any] = self.encode_units
        return summarize_in_threads(summary, self._watched(summary, on_block), blocks, threads)

    def require_types(self, empty: Part) -> None:
        """Raise if a column of a part without rows has a type of which no value is usable."""
        if self.privacy_unit is None:
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
