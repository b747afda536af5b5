"""Chunks streamed through Arrow: Parquet and CSV files or globs, DuckDB relations. Never whole in memory."""

from __future__ import annotations

import glob
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

from dpmoments.columns import Boolean, Categorical
from dpmoments.rows.encode import encode_columns
from dpmoments.rows.memory import require_columns
from dpmoments.schema import Schema

__all__ = ["CsvSource", "ParquetSource", "RelationSource", "expand_paths", "file_source"]

FloatArray = npt.NDArray[np.float64]
ROWS_PER_BATCH = 65_536
CSV_BLOCK_BYTES = 4 << 20
CSV_ENDINGS = {".csv": ",", ".tsv": "\t", ".txt": ","}
COMPRESSIONS = (".gz", ".bz2", ".zst", ".lz4")
MISSING_TEXT = ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "none", "n/a", "#N/A", "-NaN", "-nan"]


def expand_paths(pattern: str | Path) -> list[Path]:
    """The files a path, glob or folder of Parquet files names, in sorted order.

    Raises
    ------
    FileNotFoundError
        If there is none.
    """
    path = Path(pattern).expanduser()
    if path.is_dir():
        paths = sorted(path.rglob("*.parquet"))
    elif path.exists():
        paths = [path]
    else:
        paths = sorted(map(Path, glob.glob(str(path), recursive=True)))
    if not paths:
        raise FileNotFoundError(f"no file matches {str(pattern)!r}")
    return paths


def file_source(pattern: str | Path, schema: Schema, centered: bool) -> ParquetSource | CsvSource:
    """The source that reads the named files, told apart by their endings.

    Raises
    ------
    ValueError
        If an ending is unknown, the files mix formats, or a column of the schema is absent.
    """
    paths = expand_paths(pattern)
    endings = {_ending(path) for path in paths}
    if endings <= {".parquet", ".pq"}:
        return ParquetSource(tuple(paths), schema, centered)
    if len(endings) == 1 and endings <= set(CSV_ENDINGS):
        return CsvSource(tuple(paths), schema, centered, CSV_ENDINGS[endings.pop()])
    raise ValueError(
        f"cannot tell how to read {str(pattern)!r} by its ending ({', '.join(sorted(endings))}): "
        "use .parquet, .csv or .tsv files, or pass a frame"
    )


def _ending(path: Path) -> str:
    name = path.with_suffix("") if path.suffix.lower() in COMPRESSIONS else path
    return name.suffix.lower()


@dataclass(frozen=True, eq=False)
class ParquetSource:
    """Rows of Parquet files, read batch by batch, only the schema's columns."""

    paths: tuple[Path, ...]
    schema: Schema
    centered: bool

    raw = False

    def __post_init__(self) -> None:
        for path in self.paths:
            with _reading(path):
                names = pq.read_schema(path).names
            require_columns(names, self.schema, str(path))

    @property
    def n_rows(self) -> int:
        """Number of rows, from the files' footers."""
        total = 0
        for path in self.paths:
            with _reading(path):
                total += pq.read_metadata(path).num_rows
        return total

    def blocks(self) -> Iterator[FloatArray]:
        """Encoded blocks, shape (≤ 65,536, d)."""
        for path in self.paths:
            with _reading(path):
                # buffered reads keep a column chunk's pages out of memory until they are wanted
                file = pq.ParquetFile(path, pre_buffer=False, buffer_size=1 << 20)
                batches = file.iter_batches(ROWS_PER_BATCH, columns=list(self.schema.names), use_threads=False)
            while True:
                with _reading(path):
                    batch = next(batches, None)
                if batch is None:
                    break
                yield encode_columns(_by_name(batch), self.schema, centered=self.centered)


@dataclass(frozen=True, eq=False)
class CsvSource:
    """Rows of delimited text files with a header line, read block by block, only the schema's columns."""

    paths: tuple[Path, ...]
    schema: Schema
    centered: bool
    delimiter: str

    raw = False
    n_rows = None

    def __post_init__(self) -> None:
        for path in self.paths:
            with _reading(path), pa_csv.open_csv(path, parse_options=self._parse) as reader:
                names = reader.schema.names
            require_columns(names, self.schema, str(path), from_first_line=True)

    @property
    def _parse(self) -> Any:
        return pa_csv.ParseOptions(delimiter=self.delimiter)

    def blocks(self) -> Iterator[FloatArray]:
        """Encoded blocks, shape (≤ a few ten thousand, d)."""
        convert = pa_csv.ConvertOptions(
            column_types={column.name: _csv_type(column) for column in self.schema.columns},
            include_columns=list(self.schema.names),
            null_values=MISSING_TEXT,
            strings_can_be_null=False,
        )
        for path in self.paths:
            with _reading(path):
                reader = pa_csv.open_csv(
                    path,
                    read_options=pa_csv.ReadOptions(block_size=CSV_BLOCK_BYTES, use_threads=False),
                    parse_options=self._parse,
                    convert_options=convert,
                )
            while True:
                with _reading(path):
                    batch = next(reader, None)
                if batch is None:
                    break
                yield encode_columns(_by_name(batch), self.schema, centered=self.centered)


@dataclass(frozen=True, eq=False)
class RelationSource:
    """Rows of a DuckDB relation; the query runs anew for every pass."""

    relation: Any
    schema: Schema
    centered: bool

    raw = False
    n_rows = None

    def __post_init__(self) -> None:
        require_columns(list(self.relation.columns), self.schema, "the relation")

    def blocks(self) -> Iterator[FloatArray]:
        """Encoded blocks, shape (≤ 65,536, d)."""
        quoted = ", ".join('"' + name.replace('"', '""') + '"' for name in self.schema.names)
        with _reading("the relation"):
            reader = self.relation.project(quoted).fetch_record_batch(ROWS_PER_BATCH)
        while True:
            with _reading("the relation"):
                batch = next(reader, None)
            if batch is None:
                return
            yield encode_columns(_by_name(batch), self.schema, centered=self.centered)


def _by_name(batch: Any) -> dict[str, Any]:
    return dict(zip(batch.schema.names, batch.columns, strict=True))


def _csv_type(column: Any) -> Any:
    if isinstance(column, Categorical):
        return pa.string()
    return pa.bool_() if isinstance(column, Boolean) else pa.float64()


class _reading:  # noqa: N801 - reads as the statement `with _reading(path):`
    """Turn a reader's errors into ones that quote no cell."""

    def __init__(self, where: Path | str) -> None:
        self.where = where

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is None or isinstance(error, FileNotFoundError | IsADirectoryError):
            return
        if isinstance(error, PermissionError):
            raise PermissionError(f"{self.where} cannot be read: permission denied") from None
        if isinstance(error, pa.ArrowException | OSError | UnicodeDecodeError) or _from_duckdb(error):
            column = re.search(r"In CSV column #(\d+)", str(error))
            place = (
                f" (in its column number {int(column[1]) + 1}: a cell does not have the column's type)"
                if column
                else ""
            )
            raise ValueError(
                f"{self.where} cannot be read: damaged, truncated, or not what its name says{place}; nothing was spent"
            ) from None


def _from_duckdb(error: BaseException) -> bool:
    return type(error).__module__.split(".")[0] in ("duckdb", "_duckdb")
