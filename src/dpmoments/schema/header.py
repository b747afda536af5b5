"""Names and types of a table's columns as its file or frame declares them. No record is read, and nothing is read off one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dpmoments.foundation.header import first_line, names_in, other_delimiter
from dpmoments.foundation.table_files import (
    CSV_DELIMITERS,
    FEATHER_ENDINGS,
    PARQUET_ENDINGS,
    expand_paths,
    file_ending,
    fixed_folder,
    open_ipc,
)
from dpmoments.foundation.table_libraries import nw, pa, pq
from dpmoments.foundation.text_format import TextFormat

__all__ = ["Header", "HeaderColumn", "frame_header", "read_header"]

PANDAS_INDEX = "__index_level_"
"""What pandas calls an index without a name in a Parquet or Feather file."""


@dataclass(frozen=True, slots=True)
class HeaderColumn:
    """A column as a table declares it.

    Attributes
    ----------
    name : str
    type : pyarrow.DataType or None
        None where no type is declared: in a text file, or by objects of pandas.
    words : str or None
        What the table calls the type, where that is not Arrow's word.
    """

    name: str
    type: Any = None
    words: str | None = None

    @property
    def kind(self) -> str | None:
        """The kind of schema column that fits the declared type; None where none does or no type is declared."""
        declared = self.type
        if declared is None:
            return None
        if pa.types.is_dictionary(declared):
            declared = declared.value_type
        if pa.types.is_boolean(declared):
            return "boolean"
        if pa.types.is_integer(declared) or pa.types.is_floating(declared) or pa.types.is_decimal(declared):
            return "numeric"
        if pa.types.is_date(declared) or pa.types.is_timestamp(declared):
            return "date"
        texts = (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view)
        return "categorical" if any(is_text(declared) for is_text in texts) else None

    @property
    def declared(self) -> str | None:
        """The type in words, without what may have been read off cells: widths, digits, categories, names of fields."""
        if self.words is not None or self.type is None:
            return self.words
        kind = self.type
        if pa.types.is_dictionary(kind):
            return f"dictionary of {HeaderColumn('', kind.value_type).declared}"
        for is_kind, words in (
            (pa.types.is_nested, "nested values"),
            (pa.types.is_decimal, "decimal"),
            (pa.types.is_fixed_size_binary, "binary"),
        ):
            if is_kind(kind):
                return words
        return str(kind)


@dataclass(frozen=True)
class Header:
    """The columns of a table.

    Attributes
    ----------
    columns : tuple of HeaderColumn
    nameless : int
        How many are left out because they have no name, as the index that ``to_csv`` writes.
    """

    columns: tuple[HeaderColumn, ...]
    nameless: int = 0

    @classmethod
    def of(cls, found: Iterable[HeaderColumn], where: str) -> Header:
        """The columns that have names.

        Raises
        ------
        ValueError
            If there is none, or two have one name.
        """
        columns = list(found)
        named = [column for column in columns if column.name and not column.name.startswith(PANDAS_INDEX)]
        if not named:
            raise ValueError(f"{where} has no columns with names")
        if len({column.name for column in named}) < len(named):
            raise ValueError(f"{where} has two columns of one name: rename one")
        return cls(tuple(named), len(columns) - len(named))


def read_header(pattern: str | Path, text_format: TextFormat | None = None) -> Header:
    """The columns of the first of the files that a path, a glob or a folder names.

    Of a Parquet or Feather file by its footer, of a text file by its first line. Types are taken only where the file declares
    them. A type guessed from the cells of a text file is a fact about them (one word among numbers turns a column into text),
    and would be published with the schema. Columns that are in the names of folders (``year=2020``) come last, without a type.

    Raises
    ------
    ValueError
        If the file cannot be read, has no columns, repeats a name, or a text file's first line holds numbers.
    """
    path = expand_paths(pattern)[0]
    ending = file_ending(path)
    if text_format is not None and ending not in CSV_DELIMITERS:
        raise ValueError(f"a text format was given for {path}, which is no text file: leave it out")
    if ending in PARQUET_ENDINGS:
        columns = _declared(path, partial(pq.read_schema, path), "a Parquet file")
    elif ending in FEATHER_ENDINGS:
        columns = _declared(path, partial(_ipc_schema, path), "an Arrow IPC (Feather V2) file")
    elif ending in CSV_DELIMITERS:
        columns = [HeaderColumn(name) for name in _text_names(path, text_format or TextFormat())]
    else:
        raise ValueError(
            f"cannot tell how to read {path} by its ending {ending!r}: use a .parquet, .feather, .csv or .tsv file"
        )
    own = {column.name for column in columns}
    folder = fixed_folder(pattern)
    parts = path.relative_to(folder).parts[:-1] if folder is not None and path.is_relative_to(folder) else ()
    keys = [part.partition("=")[0] for part in parts if "=" in part]
    return Header.of([*columns, *(HeaderColumn(key) for key in keys if key not in own)], str(path))


def frame_header(data: Any) -> Header:
    """The columns of a frame, an Arrow table or dataset, or a DuckDB relation.

    Of pandas objects no cell is looked at, and of categories none is listed.

    Raises
    ------
    TypeError
        If it is none of these, or an array, whose columns have no names.
    """
    if isinstance(data, np.ndarray):
        raise TypeError(
            "an array's columns have no names, so that there is nothing to draft: write the schema by hand, its columns in the "
            "order of the array's, or use Schema.unit_ball(d)"
        )
    library = type(data).__module__.split(".")[0]
    if library == "pyarrow" and isinstance(getattr(data, "schema", None), pa.Schema):
        return Header.of([HeaderColumn(field.name, field.type) for field in data.schema], "the table")
    if library == "pandas" and hasattr(data, "dtypes") and hasattr(data, "columns"):
        pairs = zip(data.columns, data.dtypes, strict=True)
        return Header.of([_of_pandas(name, dtype) for name, dtype in pairs], "the frame")
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.DataFrame | nw.LazyFrame):
        return Header.of([_of_narwhals(name, dtype) for name, dtype in frame.collect_schema().items()], "the frame")
    raise TypeError(
        f"cannot draft a schema of {type(data).__name__}: pass a pandas, Polars or Arrow frame, a path or glob of Parquet, "
        "Feather or CSV files, an Arrow dataset, or a DuckDB relation"
    )


def _of_pandas(name: object, dtype: Any) -> HeaderColumn:
    """A column by its dtype; a name that is no text counts as none, since no schema can have it."""
    text = name if isinstance(name, str) else ""
    if isinstance(dtype, np.dtype):
        if dtype.kind == "O":
            return HeaderColumn(text, None, "object")
        kind = pa.timestamp("ns") if dtype.kind == "M" else pa.from_numpy_dtype(dtype)
        return HeaderColumn(text, kind, str(dtype))
    if (arrow := getattr(dtype, "pyarrow_dtype", None)) is not None:
        return HeaderColumn(text, arrow)
    plain = type(dtype).__name__
    known = {"CategoricalDtype": pa.string(), "StringDtype": pa.string(), "DatetimeTZDtype": pa.timestamp("ns", "UTC")}
    words = {"CategoricalDtype": "category", "StringDtype": "string", "DatetimeTZDtype": "datetime with a zone"}
    if plain in known:
        return HeaderColumn(text, known[plain], words[plain])
    numpy_dtype = getattr(dtype, "numpy_dtype", None)
    if isinstance(numpy_dtype, np.dtype) and numpy_dtype.kind in "biuf":
        return HeaderColumn(text, pa.from_numpy_dtype(numpy_dtype), str(numpy_dtype))
    return HeaderColumn(text, pa.binary(), plain)  # that no kind fits


def _of_narwhals(name: str, dtype: Any) -> HeaderColumn:
    words = type(dtype).__name__.lower()
    if isinstance(dtype, nw.Boolean):
        kind = pa.bool_()
    elif dtype.is_integer():
        kind = pa.int64()
    elif dtype.is_numeric():
        kind = pa.float64()
    elif isinstance(dtype, nw.String | nw.Categorical | nw.Enum):
        kind = pa.string()
    elif isinstance(dtype, nw.Date | nw.Datetime):
        kind = pa.timestamp("us")
    elif isinstance(dtype, nw.Object | nw.Unknown):
        return HeaderColumn(name, None, words)
    else:
        kind = pa.binary()  # that no kind fits
    return HeaderColumn(name, kind, words)


def _declared(path: Path, read: Any, what: str) -> list[HeaderColumn]:
    try:
        schema = read()
    except PermissionError:
        raise PermissionError(f"{path} cannot be read: permission denied") from None
    except (pa.ArrowException, OSError, ValueError):
        raise ValueError(f"{path} cannot be read: damaged, truncated, or not {what}") from None
    return [HeaderColumn(field.name, field.type) for field in schema]


def _ipc_schema(path: Path) -> Any:
    with open_ipc(path) as reader:
        return reader.schema


def _text_names(path: Path, text_format: TextFormat) -> list[str]:
    """Names in the first line. What is quoted in an error must not come from it: it may be a record."""
    line, delimiter = first_line(path, text_format), text_format.delimiter_for(file_ending(path))
    names = names_in(line, delimiter, text_format)
    if len(names) == 1 and text_format.delimiter is None:
        advice = other_delimiter(line, delimiter, text_format, lambda found: all(found))
        if advice is not None:
            raise ValueError(f"{path}: {advice}")
    if any(_is_number(name) for name in names):
        raise ValueError(
            f"the first line of {path} holds numbers where the names of columns should be: give the file a header line (for "
            "names that are numbers, save the table as Parquet or write the schema by hand)"
        )
    return names


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True
