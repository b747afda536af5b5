"""Batches streamed through Arrow: Parquet files or globs, Arrow datasets, DuckDB relations."""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any, Self
from urllib.parse import unquote

from dpmoments.base.table_files import open_ipc
from dpmoments.base.table_libraries import pa, pc, pq
from dpmoments.base.text_files import TextFormat
from dpmoments.rows.sources.memory import require_columns
from dpmoments.rows.sources.source import (
    DAMAGED_FILE,
    FAILED_QUERY,
    LocalSource,
    read_each,
    read_quietly,
    require_no_guess_of_arrow,
    require_no_guess_of_duckdb,
)
from dpmoments.schema.cell_reading import text_values
from dpmoments.schema.columns import Boolean, Categorical, Coordinate, Numeric
from dpmoments.schema.dates import Date

_ROWS_PER_BATCH = 65_536
_PARQUET_BUFFER_BYTES = 1 << 20
_BYTES_OF_BUFFERS = 1 << 26
"""Most bytes of the buffers of all columns of a Parquet file together."""
_MIN_ROWS_PER_PIECE = 1 << 18
"""Min rows of a Parquet file per worker, as far as its row groups allow."""
_SKIPPED = re.compile(r"parquet|arrow|iceberg|delta|ducklake|vortex|\blance", re.IGNORECASE)
"""Names in a DuckDB plan of data whose groups of rows state their range."""
_SKIPPING = ("filter_pushdown", "join_filter_pushdown", "row_group_pruner", "statistics_propagation")
"""DuckDB's optimizers that decide by these ranges."""
_BYTES_READ = b"dpmoments.bytes_read"
"""Metadata key of a batch: bytes read of its file since the batch before."""


@dataclass(frozen=True, eq=False, repr=False)
class ArrowSource(LocalSource["pa.RecordBatch"]):
    """Rows that arrive as record batches."""

    def without_rows(self, schema: Any) -> pa.RecordBatch:
        """Return the columns of a table without its rows."""
        fields = [schema.field(name) for name in self.reading.names if name in schema.names]
        return pa.RecordBatch.from_arrays([pa.nulls(0, field.type) for field in fields], schema=pa.schema(fields))

    def written_cells(self, part: pa.RecordBatch, name: str) -> Any:
        return part.column(name)

    def sliced(self, batches: Any, where: str | Path, why: str = DAMAGED_FILE) -> Iterator[pa.RecordBatch]:
        """Iterate over record batches, cut to at most the encoding batch size."""
        step = self.reading.largest_part
        for batch in read_each(batches, where, why):
            for start in range(0, batch.num_rows, step):
                yield batch.slice(start, step)


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


def values_as_cells(texts: Any, column: Numeric | Boolean | Coordinate, of_file: TextFormat | None = None) -> Any:
    """Parse text of a column as an Arrow array of numbers or of Booleans."""
    values = text_values(texts, column, of_file).values
    if isinstance(column, Boolean):  # whose codes are read: 0 and 1 are none
        return pc.equal(pa.array(values, from_pandas=True), 1.0)
    return pa.array(values)


@dataclass(frozen=True, eq=False, repr=False)
class FileSource(ArrowSource):
    """Rows of files of one kind, read one after the other, limited to the schema's columns.

    If ``folder`` is given, names of folders below it, such as ``year=2020``, are values of columns that the files lack.
    """

    paths: tuple[Path, ...]
    folder: Path | None = None

    def __post_init__(self) -> None:
        for path in self.paths:
            names = self.names_in(path)
            keys = folder_keys(path, self.folder)
            self.require_names(path, [*names, *(key for key in keys if key not in names)])

    def one_by_one(self) -> list[Self]:
        return [replace(self, paths=(path,)) for path in self.paths]

    def pieces(self) -> list[Self]:
        """Split the table into pieces that an engine's workers can read independently."""
        return self.one_by_one()

    @abstractmethod
    def names_in(self, path: Path) -> list[str]:
        """Return the column names of a file."""

    @abstractmethod
    def batches(self, path: Path, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        """Iterate over the named columns of a file, which it has."""

    def require_names(self, path: Path, names: Sequence[object]) -> None:
        """Raise unless ``names`` contains every column that is read."""
        require_columns(names, self.reading.names, str(path))

    def parts(self) -> Iterator[pa.RecordBatch]:
        for path in self.paths:
            keys = folder_keys(path, self.folder)
            if not any(name in keys for name in self.reading.names):
                yield from self.batches(path, self.reading.names)
                continue
            own = self.names_in(path)
            names = [name for name in self.reading.names if name in own]
            added = [name for name in self.reading.names if name not in own]
            columns = self.reading.schema.columns_by_source
            for batch in self.batches(path, names or own[:1]):  # of which the number of rows alone is wanted
                whole = [batch.column(name) for name in names]
                for name in added:  # text, or what the schema's column reads of it
                    text, column = pa.scalar(keys[name]), columns.get(name)
                    if text.is_valid and not (column is None or isinstance(column, Categorical | Date)):
                        text = values_as_cells(pa.array([keys[name]]), column)[0]
                    whole.append(pa.repeat(text, batch.num_rows))
                yield pa.RecordBatch.from_arrays(whole, [*names, *added], metadata=batch.schema.metadata)


@dataclass(frozen=True, eq=False, repr=False)
class BatchSource(ArrowSource):
    """Rows of record batches that come once, for example from a partition."""

    batches: Iterable[pa.RecordBatch]

    def parts(self) -> Iterator[pa.RecordBatch]:
        return self.sliced(self.batches, "a partition of the frame", why=FAILED_QUERY)


@dataclass(frozen=True, eq=False, repr=False)
class StreamedFileSource(FileSource):
    """Rows of files of unknown length: progress is in bytes, which :func:`with_bytes_read` adds."""

    @property
    def pass_length(self) -> int:
        """Size of all files."""
        return sum(read_quietly(path.stat, path).st_size for path in self.paths)

    def measured(self, parts: Iterator[pa.RecordBatch]) -> Iterator[tuple[pa.RecordBatch, int]]:
        for part in parts:
            yield part, int(part.schema.metadata[_BYTES_READ])


@dataclass(frozen=True, eq=False)
class ParquetSource(FileSource):
    """Rows of Parquet files, read batch by batch; ``row_groups`` limits them to some row groups."""

    row_groups: range | None = field(default=None, kw_only=True)

    def pieces(self) -> list[Self]:
        result: list[Self] = []
        for path in self.paths:
            footer = read_quietly(partial(pq.read_metadata, path), path)
            first, held = 0, 0
            for group in range(footer.num_row_groups):
                held += footer.row_group(group).num_rows
                if held >= _MIN_ROWS_PER_PIECE or group + 1 == footer.num_row_groups:
                    result.append(replace(self, paths=(path,), row_groups=range(first, group + 1)))
                    first, held = group + 1, 0
            if not footer.num_row_groups:
                result.append(replace(self, paths=(path,)))
        return result

    def names_in(self, path: Path) -> list[str]:
        return read_quietly(lambda: list(pq.read_schema(path).names), path)  # of which some may not be text

    @property
    def n_rows(self) -> int | None:
        """Number of rows, from the files' footers."""
        return sum(int(read_quietly(partial(pq.read_metadata, path), path).num_rows) for path in self.paths)

    def batches(self, path: Path, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        footer = read_quietly(partial(pq.read_metadata, path), path)
        held = read_quietly(footer.schema.to_arrow_schema, path)
        levels = [
            name
            for name, column in self.reading.schema.columns_by_source.items()
            if isinstance(column, Categorical) and name in names and pa.types.is_string(held.field(name).type)
        ]
        # Buffered reads keep a column chunk's pages out of memory until they are wanted.
        open_file = partial(
            pq.ParquetFile,
            path,
            metadata=footer,
            pre_buffer=False,
            buffer_size=max(min(_PARQUET_BUFFER_BYTES, _BYTES_OF_BUFFERS // len(names)), 1 << 13),
            page_checksum_verification=True,
            # Text whose levels are looked up comes as the codes it is stored as: each text is looked up once a batch.
            read_dictionary=levels,
        )
        yield self.without_rows(held)
        with read_quietly(open_file, path) as file:
            size = min(_ROWS_PER_BATCH, self.reading.largest_part)
            batches = file.iter_batches(size, row_groups=self.row_groups, columns=list(names), use_threads=False)
            yield from self.sliced(batches, path)


_NAME = "dpmoments_relation"
"""Name that settings are asked under: a relation has no other way to its connection."""


@dataclass(frozen=True, eq=False, repr=False)
class RelationSource(ArrowSource):
    """Rows of a DuckDB relation; every pass runs the query again.

    DuckDB skips groups of rows of a Parquet file by their least and largest number, which leave NaN out, though NaN is greater
    than every number in its comparisons: another row would decide whether a row of NaN is kept. Such optimizers are off during
    a pass.
    """

    relation: Any

    def __post_init__(self) -> None:
        names = read_quietly(lambda: list(self.relation.columns), "the relation", FAILED_QUERY)
        require_columns(names, self.reading.names, "the relation")
        with self._every_row_read():
            require_no_guess_of_duckdb(self._plan())

    def parts(self) -> Iterator[pa.RecordBatch]:
        # DuckDB opens no second result on a connection: the reader is closed however the pass ends.
        with self._every_row_read(), read_quietly(self._open, "the relation", FAILED_QUERY) as reader:
            yield self.without_rows(reader.schema)
            yield from self.sliced(reader, "the relation", why=FAILED_QUERY)

    @contextmanager
    def _every_row_read(self) -> Iterator[None]:
        """Stop DuckDB from skipping groups of rows meanwhile."""
        before = str(self._run("SELECT current_setting('disabled_optimizers')")[0])
        known = self._run("SELECT list(name) FROM duckdb_optimizers()")[0]
        try:
            self._disable(",".join(filter(None, [before, *(name for name in _SKIPPING if name in known)])))
            if not _SKIPPED.search(self._plan()):
                self._disable(before)
            yield
        finally:
            self._disable(before)

    def _disable(self, names: str) -> None:
        quoted = names.replace("'", "''")
        self._run(f"SET disabled_optimizers = '{quoted}'")

    def _run(self, query: str) -> Any:
        """Return the first row of an answer, which is read whole: else the query may not run."""

        def first_row() -> Any:
            answer = self.relation.query(_NAME, query)
            return None if answer is None else (answer.fetchall() or [None])[0]

        return read_quietly(first_row, "the relation", FAILED_QUERY)

    def _plan(self) -> str:
        return str(read_quietly(self.relation.explain, "the relation", FAILED_QUERY))

    def _open(self) -> Any:
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in self.reading.names)
        projected = self.relation.project(quoted)
        if hasattr(projected, "to_arrow_reader"):
            return projected.to_arrow_reader(_ROWS_PER_BATCH)
        return projected.fetch_record_batch(_ROWS_PER_BATCH)  # before DuckDB 1.4


@dataclass(frozen=True, eq=False, repr=False)
class DatasetSource(ArrowSource):
    """Rows of a ``pyarrow.dataset.Dataset``; every pass scans it again, with its own filter."""

    dataset: Any

    def __post_init__(self) -> None:
        require_columns(list(self.dataset.schema.names), self.reading.names, "the dataset")
        read_quietly(partial(require_no_guess_of_arrow, self.dataset, self.reading), "the dataset")

    def parts(self) -> Iterator[pa.RecordBatch]:
        scan = partial(
            self.dataset.to_batches,
            columns=list(self.reading.names),
            batch_size=_ROWS_PER_BATCH,
            batch_readahead=2,
            fragment_readahead=1,
            use_threads=False,
        )
        yield self.without_rows(self.dataset.schema)
        yield from self.sliced(read_quietly(scan, "the dataset"), "the dataset")


def with_bytes_read(batches: Iterator[pa.RecordBatch], position: Callable[[], int]) -> Iterator[pa.RecordBatch]:
    """Add the number of bytes read to each batch."""
    # `position` returns the reader's position in its file.
    before = 0
    for batch in batches:
        reached = max(position(), before)
        yield batch.replace_schema_metadata({_BYTES_READ: str(reached - before)})
        before = reached


# Feather and other Arrow IPC files, read batch by batch.


@dataclass(frozen=True, eq=False)
class FeatherSource(StreamedFileSource):
    """Rows of Arrow IPC files and streams (Feather V2), one of their own batches at a time."""

    def names_in(self, path: Path) -> list[str]:
        with read_quietly(partial(open_ipc, path), path) as reader:
            return read_quietly(lambda: list(reader.schema.names), path)

    def batches(self, path: Path, names: Sequence[str]) -> Iterator[pa.RecordBatch]:
        own = self.names_in(path)
        wanted = [own.index(name) for name in names]
        reached = [0]
        source = read_quietly(partial(pa.OSFile, str(path)), path)
        with read_quietly(partial(open_ipc, path, columns=wanted, source=source), path) as reader:
            batches = self.sliced(_validated(reader, source, reached), path)
            yield from with_bytes_read(chain([self.without_rows(reader.schema)], batches), lambda: reached[0])


def _validated(reader: Any, source: Any, reached: list[int]) -> Iterator[pa.RecordBatch]:
    """Iterate over the batches of a file or stream; refuse a damaged one before use."""
    # Its offsets may point anywhere.
    n_batches = getattr(reader, "num_record_batches", None)  # of a file; a stream is read in order
    for index, batch in enumerate(reader if n_batches is None else map(reader.get_batch, range(n_batches)), 1):
        batch.validate(full=True)
        reached[0] = source.tell() if n_batches is None else source.size() * index // n_batches
        yield batch
