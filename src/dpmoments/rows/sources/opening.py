"""Choice of the source for a user's table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy as np

from dpmoments.base.databases import DatabaseQuery
from dpmoments.base.errors import InputTypeError, InputValueError, wrong_type
from dpmoments.base.table_files import (
    EXCEL_ENDINGS,
    FEATHER_ENDINGS,
    PARQUET_ENDINGS,
    STATISTICS_ENDINGS,
    EngineFiles,
    expand_paths,
    file_ending,
    fixed_folder,
)
from dpmoments.base.table_libraries import nw, pa
from dpmoments.base.text_files import CSV_DELIMITERS, TextFormat
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.rows.sources.arrow import DatasetSource, FeatherSource, FileSource, ParquetSource, RelationSource
from dpmoments.rows.sources.dask import is_of_dask, open_dask, open_files_on_dask
from dpmoments.rows.sources.engine import EngineSource
from dpmoments.rows.sources.memory import ArraySource, ColumnSource, FrameSource, LazySource, require_columns
from dpmoments.rows.sources.office import DatabaseSource, ExcelSource, SeveralSource, StatisticsSource
from dpmoments.rows.sources.source import FirstPass, LocalSource, Reading
from dpmoments.rows.sources.spark import open_files_on_spark, open_spark
from dpmoments.rows.sources.text import CsvSource
from dpmoments.schema.cells import ColumnTable
from dpmoments.schema.schema import Schema

if TYPE_CHECKING:
    import numpy.typing as npt
    from narwhals.typing import IntoDataFrame, IntoLazyFrame

    class _ArrowStream(Protocol):
        """Arrow table or batch, or what gives one."""

        def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

    class _Scanned(Protocol):
        """Arrow dataset."""

        def scanner(self, *args: Any, **options: Any) -> Any: ...

    class _Blocks(Protocol):
        """Array of an engine."""

        def map_blocks(self, *args: Any, **options: Any) -> Any: ...

    Table: TypeAlias = (
        npt.NDArray[Any]
        | IntoDataFrame
        | IntoLazyFrame
        | _ArrowStream
        | _Scanned
        | _Blocks
        | ColumnTable
        | str
        | PathLike[str]
        | DatabaseQuery
        | EngineFiles
    )
else:
    Table: TypeAlias = Any  # the libraries are loaded only if a table is of one

_ENDINGS: Mapping[type[FileSource], tuple[str, ...]] = {
    ExcelSource: EXCEL_ENDINGS,
    FeatherSource: FEATHER_ENDINGS,
    ParquetSource: PARQUET_ENDINGS,
    StatisticsSource: STATISTICS_ENDINGS,
    CsvSource: tuple(CSV_DELIMITERS),
}
"""Endings of the files that each source reads."""


def open_source(
    data: Any,
    schema: Schema,
    mean: bool,
    privacy_unit: PrivacyUnit | None = None,
    text_format: TextFormat | None = None,
    neighbors: Neighbors = Neighbors.ADD_REMOVE,
) -> LocalSource[Any] | EngineSource:
    """Return the source of an array, frame, path, dataset or relation.

    Reads only names, types and footers. A ``text_format`` that is given takes the place of the schema's, which other
    tables than text files ignore. Tables of Dask or Spark, and files given to one of them, are read by that engine's
    workers.
    """
    if text_format is not None and not isinstance(text_format, TextFormat):
        raise wrong_type("text_format", "a dpmoments.TextFormat", text_format)
    reading = Reading(schema, mean, privacy_unit)
    if isinstance(data, str | PathLike):
        return _file_source(data if isinstance(data, str) else Path(data), reading, text_format, neighbors)
    if isinstance(data, EngineFiles):
        open_files = open_files_on_dask if data.engine == "dask" else open_files_on_spark
        return open_files(_file_source(data.path, reading, text_format, neighbors))
    if text_format is not None:
        raise InputTypeError(f"text_format applies to text files, but the table is {type(data).__name__}: leave it out")
    if isinstance(data, DatabaseQuery):
        return DatabaseSource(reading, data.opened(), FirstPass())
    if isinstance(data, np.ndarray):
        if privacy_unit is not None:
            raise InputTypeError(
                f"an array has no column '{privacy_unit.column}' in addition to the schema's: pass a pandas, Polars "
                "or Arrow frame, or files"
            )
        return ArraySource(reading, data)
    if isinstance(data, ColumnTable):
        return ColumnSource(reading, data)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        raise InputTypeError(
            "a RecordBatchReader can be read once, and some mechanisms need several passes: pass the Parquet "
            "files, a DuckDB relation, or reader.read_all()"
        )
    if is_of_dask(data):
        return open_dask(data, reading)
    library = type(data).__module__.split(".")[0]
    if library == "pyspark":
        return open_spark(data, reading)
    if library in ("duckdb", "_duckdb") and hasattr(data, "project"):
        return RelationSource(reading, data)
    if library == "pyarrow" and hasattr(data, "to_batches") and hasattr(data, "scanner"):
        return DatasetSource(reading, data)
    if library == "scipy" and hasattr(data, "toarray"):
        raise InputTypeError("sparse matrices are not supported: pass a dense array or a frame")
    if library == "polars" and hasattr(data, "collect_schema") and hasattr(data, "collect"):
        return LazySource(reading, data)
    # narwhals refuses a frame with repeated names, wanted or not, in a message that lists them.
    if isinstance(data, pa.Table):
        require_columns(data.column_names, reading.names, "the table")
        data = data.select(list(reading.names))
    if library == "pandas" and getattr(getattr(data, "columns", None), "has_duplicates", False):
        require_columns(list(data.columns), reading.names, "the frame")
        data = data.loc[:, list(reading.names)]
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return FrameSource(reading, frame)
    raise InputTypeError(
        f"cannot read a table from {type(data).__name__}: pass a NumPy array, a pandas, Polars or Arrow frame, a path "
        "or glob of Parquet, Feather or CSV files, an Arrow dataset, a DuckDB relation, or a Dask or Spark frame"
    )


def _file_source(
    pattern: str | Path, reading: Reading, text_format: TextFormat | None, neighbors: Neighbors
) -> FileSource | SeveralSource:
    """Return the source of the named files by their endings."""
    paths, folder = tuple(expand_paths(pattern)), fixed_folder(pattern)
    endings = {file_ending(path) for path in paths}
    if endings.difference(*_ENDINGS.values()):
        possible = ", ".join(ending for kind in _ENDINGS.values() for ending in kind)
        refused = f"Cannot read '{pattern}': endings must be of {possible}. "
        raise InputValueError(
            f"{refused}Or read the file and pass a frame.", shell=f"{refused}Convert the file to one of these."
        )
    if neighbors.table_size_is_public and not endings.isdisjoint(EXCEL_ENDINGS):
        raise InputValueError(
            "under replace_one the number of rows is public, and a workbook's rows without any value are left out, so that "
            "one row would change it: save the sheet as CSV or Parquet, or use add_remove"
        )
    stated = text_format or reading.schema.text_format or TextFormat()
    in_workbook = not endings.isdisjoint(EXCEL_ENDINGS) and not (text_format or TextFormat()).of_text
    if text_format is not None and endings.isdisjoint(_ENDINGS[CsvSource]) and not in_workbook:
        raise InputValueError(
            f"a text format was given for {', '.join(sorted(endings))} files, which state their own format: leave it out"
        )
    sources: list[FileSource] = []
    for kind, known in _ENDINGS.items():
        own = tuple(path for path in paths if file_ending(path) in known)
        # Workbooks, and files of Stata, SPSS and SAS, have no columns from the names of folders.
        if own and kind is CsvSource:
            sources.append(CsvSource(reading, own, folder, stated))
        elif own and kind is ExcelSource:
            sources.append(ExcelSource(reading, own, None, stated))
        elif own:
            sources.append(kind(reading, own, None if kind is StatisticsSource else folder))
    return sources[0] if len(sources) == 1 else SeveralSource(reading, tuple(sources))


def columns_of_array(data: Any, schema: Schema, names: Sequence[str]) -> Any:
    """Return these columns of an array that has all of the schema's; other tables unchanged."""
    # An array has no names: its columns are the schema's, in order. Frames and files are read by name.
    is_array = isinstance(data, np.ndarray) or (is_of_dask(data) and not hasattr(data, "columns"))
    if not is_array:
        return data
    open_source(data, schema, mean=True)  # refuses another number of columns
    return data[:, [schema.names.index(name) for name in names]]
