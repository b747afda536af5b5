"""Blocks streamed through Arrow: Parquet and CSV files or globs, DuckDB relations. Never whole in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Self

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from dpmoments.array_types import FloatArray
from dpmoments.cells.csv_numbers import FALSE_TEXT, MISSING_TEXT, TRUE_TEXT
from dpmoments.rows.encode import encode_columns, largest_block
from dpmoments.rows.sources.local import LocalSource
from dpmoments.rows.sources.memory import require_columns
from dpmoments.rows.sources.reading import DAMAGED_FILE, FAILED_QUERY, read_quietly
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.schema import Schema
from dpmoments.table_files import CSV_DELIMITERS, PARQUET_ENDINGS, expand_paths, file_ending

__all__ = ["CsvSource", "ParquetSource", "RelationSource", "file_source"]

ROWS_PER_BATCH = 65_536
PARQUET_BUFFER_BYTES = 1 << 20
CSV_BLOCK_BYTES = 4 << 20
HEADER_BYTES = 1 << 20


def file_source(pattern: str | Path, schema: Schema, mean: bool) -> ParquetSource | CsvSource:
    """The source that reads the named files, told apart by their endings.

    Raises
    ------
    ValueError
        If an ending is unknown, the files mix formats, or a column of the schema is absent.
    """
    paths = expand_paths(pattern)
    endings = {file_ending(path) for path in paths}
    if endings <= set(PARQUET_ENDINGS):
        return ParquetSource(schema, mean, tuple(paths))
    if len(endings) == 1 and endings <= set(CSV_DELIMITERS):
        return CsvSource(schema, mean, tuple(paths), CSV_DELIMITERS[endings.pop()])
    raise ValueError(
        f"cannot tell how to read {str(pattern)!r} by its ending ({', '.join(sorted(endings)) or 'none'}): "
        "use .parquet, .csv or .tsv files, all of one kind, or pass a frame"
    )


@dataclass(frozen=True, eq=False, repr=False)
class ArrowSource(LocalSource[pa.RecordBatch]):
    """Rows that come as record batches."""

    def encode(self, part: pa.RecordBatch) -> FloatArray:
        by_name = dict(zip(part.schema.names, part.columns, strict=True))
        return encode_columns(self.counted(by_name), self.encoded_schema, mean=self.mean)

    def cells(self, part: pa.RecordBatch, name: str) -> Any:
        return part.column(name)

    def sliced(
        self, batches: Any, where: str | Path, columns: Sequence[str] = (), why: str = DAMAGED_FILE
    ) -> Iterator[pa.RecordBatch]:
        """The record batches of a reader or an iterator, none longer than a block."""
        step = largest_block(self.schema)
        following = partial(next, iter(batches), None)
        while (batch := read_quietly(following, where, why, columns=columns)) is not None:
            for start in range(0, batch.num_rows, step):
                yield batch.slice(start, step)


@dataclass(frozen=True, eq=False)
class ParquetSource(ArrowSource):
    """Rows of Parquet files, read batch by batch, only the schema's columns."""

    paths: tuple[Path, ...]

    def __post_init__(self) -> None:
        for path in self.paths:
            names = read_quietly(partial(_parquet_names, path), path)  # of which some may not be text
            require_columns(names, self.schema, str(path))

    @property
    def n_rows(self) -> int:
        """Number of rows, from the files' footers."""
        return sum(int(read_quietly(partial(pq.read_metadata, path), path).num_rows) for path in self.paths)

    def one_by_one(self) -> list[Self]:
        return [replace(self, paths=(path,)) for path in self.paths]

    def parts(self) -> Iterator[pa.RecordBatch]:
        for path in self.paths:
            # Buffered reads keep a column chunk's pages out of memory until they are wanted.
            open_file = partial(
                pq.ParquetFile,
                path,
                pre_buffer=False,
                buffer_size=PARQUET_BUFFER_BYTES,
                page_checksum_verification=True,
            )
            with read_quietly(open_file, path) as file:
                batches = file.iter_batches(ROWS_PER_BATCH, columns=list(self.schema.names), use_threads=False)
                yield from self.sliced(batches, path)


@dataclass(frozen=True, eq=False)
class CsvSource(ArrowSource):
    """Rows of delimited text files with a header line, read block by block, only the schema's columns."""

    cells_are_text: ClassVar[bool] = True

    paths: tuple[Path, ...]
    delimiter: str
    on_ragged_line: Callable[[], None] | None = field(default=None, kw_only=True)
    """Where it is given, cells are not converted; see :meth:`unconverted`."""

    def __post_init__(self) -> None:
        for path in self.paths:
            require_columns(self._header(path), self.schema, str(path))

    def unconverted(self, on_ragged_line: Callable[[], None]) -> Self:
        return replace(self, on_ragged_line=on_ragged_line)

    def one_by_one(self) -> list[Self]:
        return [replace(self, paths=(path,)) for path in self.paths]

    def parts(self) -> Iterator[pa.RecordBatch]:
        types = {
            column.name: _csv_type(column) if self.on_ragged_line is None else pa.binary()
            for column in self.schema.table_columns
        }
        convert = pa_csv.ConvertOptions(
            column_types=types,
            include_columns=list(self.schema.names),
            null_values=MISSING_TEXT,
            true_values=TRUE_TEXT,
            false_values=FALSE_TEXT,
            strings_can_be_null=False,
        )
        for path in self.paths:
            header = self._header(path)
            shown = [name if name in self.schema.names else "" for name in header]
            ragged = None if self.on_ragged_line is None else _skipping(self.on_ragged_line)
            open_file = partial(self._open, path, convert, one_column=len(header) == 1, ragged=ragged)
            with read_quietly(open_file, path, columns=shown) as reader:
                yield from self.sliced(reader, path, shown)

    def _header(self, path: Path) -> list[str]:
        # A line with too many cells is no fault of the header: the pass over the table tells of it.
        with read_quietly(partial(self._open, path, ragged=_skipping(lambda: None)), path) as reader:
            return read_quietly(lambda: list(reader.schema.names), path)  # of which some may not be text

    def _open(self, path: Path, convert: Any = None, *, one_column: bool = False, ragged: Any = None) -> Any:
        # Cells may hold line breaks, in quotes. In a file of one column an empty line is an empty cell.
        parse = pa_csv.ParseOptions(
            delimiter=self.delimiter,
            newlines_in_values=True,
            ignore_empty_lines=not one_column,
            invalid_row_handler=ragged,
        )
        return pa_csv.open_csv(
            pa.PythonFile(WholeLineEnds(_with_line_end(path)), mode="r"),
            read_options=pa_csv.ReadOptions(block_size=CSV_BLOCK_BYTES, use_threads=False),
            parse_options=parse,
            convert_options=convert,
        )


@dataclass(frozen=True, eq=False, repr=False)
class RelationSource(ArrowSource):
    """Rows of a DuckDB relation; the query runs anew for every pass."""

    relation: Any

    def __post_init__(self) -> None:
        names = read_quietly(lambda: list(self.relation.columns), "the relation", FAILED_QUERY)
        require_columns(names, self.schema, "the relation")

    def parts(self) -> Iterator[pa.RecordBatch]:
        # DuckDB opens no second result on a connection: the reader is closed however the pass ends.
        with read_quietly(self._open, "the relation", FAILED_QUERY) as reader:
            yield from self.sliced(reader, "the relation", why=FAILED_QUERY)

    def _open(self) -> Any:
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in self.schema.names)
        projected = self.relation.project(quoted)
        if hasattr(projected, "to_arrow_reader"):
            return projected.to_arrow_reader(ROWS_PER_BATCH)
        return projected.fetch_record_batch(ROWS_PER_BATCH)  # before DuckDB 1.4

    def __repr__(self) -> str:
        return "RelationSource()"  # a relation's own repr prints rows


class WholeLineEnds:
    """A binary stream, no read of which ends between the CR and the LF of one line end.

    Arrow's reader loses the LF of a quoted cell whose CR is the last byte of a block. Where blocks end depends on the rows
    before, so that one row would change how others are read.
    """

    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self._held = b""
        self.closed = False

    def read(self, size: int = -1) -> bytes:
        """At most ``size`` bytes, 2 or more; none at the end of the stream alone.

        The byte after a CR is read with it. To hold the CR back would leave a block without a line end, which Arrow refuses.
        """
        if size is None or size < 0:
            block, self._held = self._held + bytes(self._stream.read()), b""
            return block
        block, self._held = self._held + bytes(self._stream.read(max(size - 1 - len(self._held), 1))), b""
        if block.endswith(b"\r"):
            following = bytes(self._stream.read(1))
            if following == b"\r":  # which may have an LF of its own
                self._held = following
            else:
                block += following
        return block

    def close(self) -> None:
        """Close the stream."""
        self.closed = True
        self._stream.close()


def _with_line_end(path: Path) -> Any:
    """What Arrow's reader is to open: the file, or its one line with an end, without which Arrow finds no columns in it.

    Nor does it where the end is a CR. A table without rows may be such a file, and must be as good a table as any.
    """
    with pa.input_stream(str(path), compression="detect") as stream:
        head = stream.read(HEADER_BYTES)
    line = head.removesuffix(b"\r")
    if len(head) < HEADER_BYTES and line.strip() and b"\n" not in line and b"\r" not in line:
        return pa.BufferReader(line + b"\n")
    return pa.input_stream(str(path), compression="detect")


def _skipping(note: Callable[[], None]) -> Callable[[Any], str]:
    """What Arrow's reader is to do with a line of another number of cells than the first."""

    def skip(line: Any) -> str:
        del line
        note()
        return "skip"

    return skip


def _parquet_names(path: Path) -> list[str]:
    return list(pq.read_schema(path).names)


def _csv_type(column: Any) -> Any:
    if isinstance(column, Categorical):
        return pa.string()
    return pa.bool_() if isinstance(column, Boolean) else pa.float64()
