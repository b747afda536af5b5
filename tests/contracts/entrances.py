"""The one list of entrances: every way in which a table reaches the library, as a function of its rows.

``test_entrances.py`` fails where a source, a branch of ``open_source``, an engine, a text option or an estimator is in none of
them.
"""

from __future__ import annotations

import bz2
import datetime as dt
import gzip
import inspect
import json
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any
from urllib.parse import quote
from uuid import UUID

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds
import pyarrow.parquet as pq
import scipy.sparse

import dpmoments as dpm
from contracts.odd_rows import COLUMNS, ODD_CELLS, RULES, NotHeldError, Row, cleaned_schema, same_cell, schema
from dpmoments.estimators import DPPCA, DPCovariance, DPLinearDiscriminant, DPRidge
from support.databases import postgres_table, postgres_url, sqlite_file
from support.table_forms import FILES, FORMS, duckdb_connection
from support.workbooks import workbook

__all__ = ["DASK", "ESTIMATORS", "LOCAL", "REFUSED", "SPARK", "WORKERS_SOURCES", "Entrance", "EstimatorEntrance"]

Make = Callable[[Sequence[Row], Path], Any]
Types = Mapping[str, Any]


@dataclass(frozen=True)
class Entrance:
    """A way in: ``make`` turns rows, and a folder of its own, into what is passed; it raises for a cell that is not held."""

    make: Make
    names: tuple[str, ...] = COLUMNS  # of the schema's columns those that it has
    unit: bool = False  # the property of privacy units is tested on it
    ids: str = "cells"  # how it holds them: as the cells are, all as "text", or each as a "UUID"
    text_format: dpm.TextFormat | None = None
    date_format: str | None = None  # how its dates are written
    cleaned: bool = False  # the schema has every cleaning rule
    coordinates: bool = False  # the schema is of coordinates, whose cells reach the kernel unencoded
    singly: bool = False  # every odd row is tested alone, in three places
    refused: type[Exception] | None = None  # what is raised for every table
    at_opening: bool = True  # by ``Rows.of``, or else by the first pass
    like: str | None = None  # the local entrance that holds the same cells: what each odd row is alone is read there
    holds: Callable[[Row], Any] | None = None  # raises NotHeldError for a row that a type of the engine does not hold
    odd: tuple[str, ...] = ()  # columns that get odd cells, where the others are as in another entrance

    def schema(self, rule: str) -> dpm.Schema:
        """The schema under one set of rules."""
        if self.cleaned:
            return cleaned_schema(rule, self.names)
        if self.coordinates:
            return dpm.Schema.unit_ball(len(self.names), names=list(self.names), missing=RULES[rule][0])
        return schema(rule, self.names, date_format=self.date_format)


# --- declared types ---------------------------------------------------------------------------------------------------

ARROW: Types = {
    "age": pa.float64(),
    "visits": pa.int64(),
    "price": pa.float64(),
    "member": pa.bool_(),
    "region": pa.string(),
    "code": pa.int64(),
    "day": pa.timestamp("us"),
    "person": pa.string(),
    "unread": pa.string(),
}
"""The types of ``table_forms.FORMS`` and ``FILES``."""


def _adapted(cell: Any, kind: Any) -> Any:
    """An ordinary cell as a column of the type holds it: an integer in one of floats, text or decimals, a day in one of dates."""
    whole = isinstance(cell, int) and not isinstance(cell, bool)
    if isinstance(cell, dt.datetime):
        if pa.types.is_date(kind) and cell.tzinfo is None:
            return cell.date()
        if pa.types.is_timestamp(kind) and kind.tz is not None and cell.tzinfo is None:
            return cell.replace(tzinfo=dt.UTC)
        return cell.isoformat() if pa.types.is_string(kind) else cell
    if whole and pa.types.is_floating(kind) and abs(cell) <= 2**1000 and int(float(cell)) == cell:
        return float(cell)
    if (whole or (isinstance(cell, float) and np.isfinite(cell))) and pa.types.is_decimal(kind):
        return Decimal(repr(cell))
    if whole and abs(cell) < 10**4000:
        if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
            return str(cell)
        if pa.types.is_fixed_size_binary(kind) or isinstance(kind, pa.BaseExtensionType):
            return UUID(int=cell).bytes if 0 <= cell < 2**128 else cell
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
            return str(cell).encode()
    return cell


_NOT_HELD: set[tuple[int, str]] = set()
"""Odd cells, which live as long as the list of them, and types that do not hold them."""
_ODD = {id(cell) for cell in ODD_CELLS.values()}
_HELD: dict[tuple[type, str, str], Any] = {}
"""Ordinary cells, by type and text (0.0 and -0.0 are equal), and their form in a column of a type."""


def held(cell: Any, kind: Any) -> Any:
    """The cell as a column of an Arrow type holds it.

    Raises
    ------
    NotHeldError
    """
    if id(cell) not in _ODD and type(cell) in (bool, int, float, str, dt.datetime):
        of_cell = type(cell), str(cell), str(kind)
        if of_cell not in _HELD:
            _HELD[of_cell] = _held(cell, kind)
        return _HELD[of_cell]
    known = (id(cell), str(kind))
    if known in _NOT_HELD:
        raise NotHeldError
    try:
        return _held(cell, kind)
    except NotHeldError:
        if id(cell) in _ODD:
            _NOT_HELD.add(known)
        raise


def _held(cell: Any, kind: Any) -> Any:
    cell = _adapted(cell, kind)
    if isinstance(cell, Decimal) and (not cell.is_finite() or abs(cell.adjusted()) > 100):
        raise NotHeldError  # Arrow writes all its digits
    if isinstance(cell, Decimal) and pa.types.is_integer(_value_type(kind)):
        raise NotHeldError  # an integer names a person, and a decimal nobody
    of_a_library = type(cell).__module__ not in ("builtins", "decimal", "datetime", "uuid")
    if of_a_library or isinstance(cell, complex | type) or (isinstance(cell, int) and abs(cell) > 2**1000):
        raise NotHeldError
    try:
        if pa.types.is_float16(kind):
            stored = None if cell is None else float(np.float16(cell))
        else:
            stored = pa.array([cell], kind)[0].as_py()
    except Exception as error:
        raise NotHeldError from error
    if isinstance(kind, pa.BaseExtensionType) and isinstance(stored, UUID):
        stored = stored.bytes
    if isinstance(cell, Decimal) and stored is not None and cell.is_finite():
        stored = stored if cell == stored else None
    elif not same_cell(stored, cell):
        raise NotHeldError
    return cell if isinstance(stored, float) else stored


def _value_type(kind: Any) -> Any:
    return kind.value_type if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind) else kind


def arrow(rows: Sequence[Row], types: Types | None = None) -> pa.Table:
    """A table of declared Arrow types, those of ``ARROW`` where none is given."""
    if len(rows) == 1:  # an odd row, which few types hold
        for name, usual in ARROW.items():
            if id(rows[0][name]) in _ODD:
                held(rows[0][name], _value_type((types or {}).get(name, usual)))
    columns = {}
    for name, usual in ARROW.items():
        kind = (types or {}).get(name, usual)
        value_type = _value_type(kind)
        cells = [held(row[name], value_type) for row in rows]
        if pa.types.is_float16(value_type):
            cells = [None if cell is None else np.float16(cell) for cell in cells]
        if isinstance(value_type, pa.BaseExtensionType):
            columns[name] = pa.ExtensionArray.from_storage(value_type, pa.array(cells, value_type.storage_type))
        elif pa.types.is_run_end_encoded(kind):
            columns[name] = pa.compute.run_end_encode(pa.array(cells, value_type))
        elif pa.types.is_dictionary(kind):
            columns[name] = pa.array(cells, value_type).dictionary_encode().cast(kind)
        else:
            columns[name] = pa.array(cells, value_type)
    return pa.table(columns)


def objects(rows: Sequence[Row], name: str) -> Any:
    """A column as an array of Python objects."""
    cells = np.empty(len(rows), dtype=object)
    for place, row in enumerate(rows):
        cells[place] = row[name]
    return cells


def array(rows: Sequence[Row], dtype: Any, names: Sequence[str]) -> Any:
    """An array of a declared NumPy type."""
    made = np.empty((len(rows), len(names)), dtype)
    for place, name in enumerate(names):
        if made.dtype.kind == "O":
            made[:, place] = objects(rows, name)
        else:
            made[:, place] = [_scalar(row[name], made.dtype) for row in rows]
    return made


def _scalar(cell: Any, dtype: Any) -> Any:
    if dtype.kind == "f" and cell is None:
        return float("nan")
    kinds = {"f": (int, float, np.floating), "i": (int,), "u": (int,), "b": (bool,)}[dtype.kind]
    if not isinstance(cell, kinds) or (isinstance(cell, bool) and dtype.kind != "b"):
        raise NotHeldError
    try:
        with np.errstate(all="ignore"):
            stored = np.array(cell).astype(dtype) if isinstance(cell, np.floating) else np.array([cell], dtype)[0]
    except OverflowError as error:
        raise NotHeldError from error
    if not (stored == cell or (stored != stored and cell != cell)):
        raise NotHeldError
    return stored


def pandas(rows: Sequence[Row], types: Mapping[str, tuple[Any, Any]]) -> pd.DataFrame:
    """A frame whose columns have declared types, each with the Arrow type that holds the same cells; objects else."""
    columns = {}
    for name in ARROW:
        if name not in types:
            columns[name] = pd.Series(objects(rows, name), dtype=object)
            continue
        dtype, kind = types[name]
        cells = [held(row[name], kind) for row in rows]
        of_numpy = _numpy_kind(dtype)
        if of_numpy in ("i", "u", "b") and None in cells:
            raise NotHeldError
        if of_numpy == "f":
            cells = [float("nan") if cell is None else cell for cell in cells]
        try:
            columns[name] = pd.Series(cells, dtype=dtype)
        except (ValueError, TypeError, OverflowError) as error:
            raise NotHeldError from error
    return pd.DataFrame(columns)


def _numpy_kind(dtype: Any) -> str | None:
    """The kind of a plain type of NumPy; None of a type of pandas."""
    try:
        return np.dtype(dtype).kind
    except TypeError:
        return None


def frame_of_objects(rows: Sequence[Row], names: Iterable[str] = ARROW) -> pd.DataFrame:
    """A pandas frame whose columns hold Python objects."""
    return pd.DataFrame({name: pd.Series(objects(rows, name), dtype=object) for name in names})


# --- text files -------------------------------------------------------------------------------------------------------


def _text(cell: Any, form: dpm.TextFormat, date_format: str | None) -> str | bytes:
    if cell is None:
        return ""
    if type(cell) is str or type(cell) is bytes:
        return cell
    if isinstance(cell, bool):
        return (form.true or ("true",))[0] if cell else (form.false or ("false",))[0]
    if type(cell) is int and abs(cell) < 10**4000:
        return str(cell)
    if type(cell) is float:
        return repr(cell).replace(".", form.decimal)
    if type(cell) is dt.datetime or type(cell) is dt.date:
        return cell.isoformat() if date_format is None else f"{cell:%d.%m.}{cell.year:04}"
    raise NotHeldError


def csv_bytes(
    rows: Sequence[Row],
    form: dpm.TextFormat | None = None,
    *,
    names: Sequence[str] = tuple(ARROW),
    date_format: str | None = None,
    delimiter: str = ",",
    line_end: str = "\n",
) -> bytes:
    """A delimited file in the format, its header line included."""
    form = form or dpm.TextFormat()
    delimiter = form.delimiter or delimiter
    pieces: list[str | bytes] = ["skipped\n" * form.skip_lines, delimiter.join(names), line_end]
    pieces += [delimiter.join("units" for _ in names), line_end] * form.skip_below
    for row in rows:
        for place, name in enumerate(names):
            text = _text(row[name], form, date_format)
            if isinstance(text, str) and any(mark in text for mark in (delimiter, form.quote or "\n", "\n", "\r")):
                if form.quote is None:
                    raise NotHeldError
                text = form.quote + text.replace(form.quote, 2 * form.quote) + form.quote
            if isinstance(text, bytes) and (not form.is_utf8 or any(mark in text for mark in b",\"'\n\r")):
                raise NotHeldError
            pieces += [delimiter if place else "", text]
        pieces.append(line_end)
    try:
        if any(isinstance(piece, bytes) for piece in pieces):
            return b"".join(piece if isinstance(piece, bytes) else piece.encode(form.encoding) for piece in pieces)
        return "".join(pieces).encode(form.encoding)  # type: ignore[arg-type]
    except UnicodeEncodeError as error:
        raise NotHeldError from error


def csv(name: str = "t.csv", form: dpm.TextFormat | None = None, **how: Any) -> Make:
    """A delimited file, compressed as its name says."""

    def make(rows: Sequence[Row], folder: Path) -> Path:
        content = csv_bytes(rows, form, delimiter="\t" if ".tsv" in name else ",", **how)
        path = folder / name
        if path.suffix in (".zst", ".lz4"):
            with pa.CompressedOutputStream(str(path), {".zst": "zstd", ".lz4": "lz4"}[path.suffix]) as stream:
                stream.write(content)
        else:
            path.write_bytes({".gz": gzip.compress, ".bz2": bz2.compress}.get(path.suffix, bytes)(content))
        return path

    return make


def text_entrance(
    name: str = "t.csv", *, date_format: str | None = None, singly: bool = False, **options: Any
) -> Entrance:
    """An entrance of delimited files in a stated format."""
    form = dpm.TextFormat(**options)
    return Entrance(
        csv(name, form, date_format=date_format),
        text_format=form if options else None,
        date_format=date_format,
        singly=singly,
        unit=True,
        ids="text",
    )


def csv_folder(rows: Sequence[Row], folder: Path) -> Path:
    """A folder of several delimited files, one of them compressed."""
    cut = len(rows) // 2
    csv("a.csv")(rows[:cut], folder)
    csv("b.csv.gz")(rows[cut:], folder)
    return folder


def _key_text(cell: Any) -> Any:
    if type(cell) is dt.datetime:
        return cell.isoformat()
    return str(cell) if type(cell) in (float, bool) or (type(cell) is int and abs(cell) < 10**100) else cell


def keyed(key: str, ending: str = ".parquet") -> Make:
    """A folder of files by the text of a column, which the files do not have."""

    def make(rows: Sequence[Row], folder: Path) -> Path:
        for place, row in enumerate(rows):
            cell = row[key]
            text = _key_text(cell)
            if text is None:
                text = "__HIVE_DEFAULT_PARTITION__"
            if not isinstance(text, str) or "\0" in text:
                raise NotHeldError
            try:
                inside = folder / f"{key}={quote(text, safe='')}"
                inside.mkdir(exist_ok=True)
            except (OSError, UnicodeEncodeError) as error:
                raise NotHeldError from error
            if ending == ".csv":
                (inside / f"{place}.csv").write_bytes(csv_bytes([row], names=[name for name in ARROW if name != key]))
            else:
                pq.write_table(arrow([row | {key: None}]).drop_columns([key]), inside / f"{place}.parquet")
        return folder

    return make


# --- local entrances --------------------------------------------------------------------------------------------------


def _form(form: Callable[..., Any]) -> Make:
    return lambda rows, _: form(arrow(rows))


def _file(form: Callable[..., Any]) -> Make:
    return lambda rows, folder: form(folder, arrow(rows))


def _typed(types: Types, form: Callable[[pa.Table], Any] = lambda table: table) -> Make:
    return lambda rows, _: form(arrow(rows, types))


def _array(dtype: Any, names: tuple[str, ...], change: Callable[[Any], Any] = lambda made: made) -> Make:
    return lambda rows, _: change(array(rows, dtype, names))


def _categories_of_objects(rows: Sequence[Row], _: Path) -> pd.DataFrame:
    """Categories of any text or integers, which are objects whatever they are."""
    frame = frame_of_objects(rows)
    for name in ("region", "code", "person"):
        if any(type(cell) not in (str, int, type(None)) for cell in frame[name]):
            raise NotHeldError
        distinct = dict.fromkeys(cell for cell in frame[name] if cell is not None)
        frame[name] = pd.Series(pd.Categorical(list(frame[name]), categories=pd.Index(list(distinct), dtype=object)))
    return frame


def _without_returns(row: Row) -> None:
    """Refuse what pandas writes into a file as two lines."""
    if any(isinstance(cell, str) and "\r" in cell for cell in row.values()):
        raise NotHeldError


def _polars_objects(rows: Sequence[Row], _: Path) -> Any:
    columns = [pl.Series(name, [row[name] for row in rows], dtype=pl.Object) for name in (*COLUMNS, "person")]
    return pl.DataFrame(columns)


STATISTICS = ("age", "visits", "price", "member", "region", "code")
"""Columns of the files of Stata, SPSS and SAS."""


def _folder_of_two(rows: Sequence[Row], folder: Path) -> Path:
    """Delimited text and Parquet, each of which holds every row."""
    whole, cut = arrow(rows), len(rows) // 2
    csv_bytes(rows)
    csv("a.csv")(rows[:cut], folder)
    pq.write_table(whole.slice(cut), folder / "b.parquet")
    return folder


def _workbook_beside_text(rows: Sequence[Row], folder: Path) -> Path:
    """A workbook and delimited text, each of which holds every row."""
    csv_bytes(rows)
    _workbook(rows, folder).unlink()
    cut = len(rows) // 2
    _workbook(rows[:cut], folder)
    csv("b.csv")(rows[cut:], folder)
    return folder


def _workbook(rows: Sequence[Row], folder: Path, *, titled: bool = False) -> Path:
    """A workbook; with titles above the names, and units below them, where it is titled."""
    head = [["A title"], ["Another"], list(COLUMNS), ["units" for _ in COLUMNS]] if titled else [list(COLUMNS)]
    try:
        return workbook(folder / "t.xlsx", [*head, *([row[name] for name in COLUMNS] for row in rows)])
    except ValueError as error:
        raise NotHeldError from error


def _statistics(name: str) -> Make:
    """A file of Stata, SPSS or SAS: numbers, and text; truths are 0 and 1."""

    def make(rows: Sequence[Row], folder: Path) -> Path:
        import pyreadstat

        def cell(value: Any, column: str) -> Any:
            if column == "region":
                if value is not None and (
                    type(value) is not str or not value.isprintable() or not 0 < len(value) < 200
                ):
                    raise NotHeldError
                return value or ""
            if value is None:
                return float("nan")
            if type(value) not in (int, float, bool) or not abs(value) < 2**31:
                raise NotHeldError
            return float(value)

        columns = [one for one in STATISTICS if not (name.endswith("xpt") and one in ("member", "region"))]
        frame = pd.DataFrame({one: [cell(row[one], one) for row in rows] for one in columns})
        write = {".dta": pyreadstat.write_dta, ".sav": pyreadstat.write_sav, ".xpt": pyreadstat.write_xport}
        write[Path(name).suffix](frame, str(folder / name))
        return folder / name

    return make


def _as_german_text(rows: Sequence[Row]) -> list[Row]:
    """The rows with numbers and truths as text, in German but for prices; odd texts stay."""

    def text(cell: Any, *, point: str = ",") -> Any:
        if isinstance(cell, bool) or cell is None:
            return {True: "ja", False: "nein", None: None}[cell]
        return str(cell).replace(".", point) if type(cell) in (int, float) and abs(cell) < 10**400 else cell

    return [
        row | {"age": text(row["age"]), "price": text(row["price"], point="."), "member": text(row["member"])}
        for row in rows
    ]


_SEMICOLONS = dpm.TextFormat(delimiter=";", decimal=",", nulls=["k.A."])
_GERMAN_TYPES: Types = {"age": pa.string(), "price": pa.large_string(), "member": pa.string(), "code": pa.string()}


SEVERAL_LIBRARIES = "columns of several libraries"
"""Has neither a day nor, of integers with gaps, a declared type."""
NUMBERS = ("age", "visits", "price", "code")
PANDAS_TYPES: dict[str, dict[str, tuple[Any, Any]]] = {
    "of NumPy": {
        "age": ("float64", pa.float64()),
        "visits": ("int64", pa.int64()),
        "price": ("float32", pa.float32()),
        "member": ("bool", pa.bool_()),
        "code": ("int64", pa.int64()),
        "day": ("datetime64[ns]", pa.timestamp("ns")),
        "person": ("int32", pa.int32()),
    },
    "nullable": {
        "age": ("Float64", pa.float64()),
        "visits": ("Int64", pa.int64()),
        "price": ("Float32", pa.float32()),
        "member": ("boolean", pa.bool_()),
        "region": ("string[python]", pa.string()),
        "code": ("Int64", pa.int64()),
        "day": ("datetime64[us, UTC]", pa.timestamp("us", "UTC")),
        "person": ("Int64", pa.int64()),
    },
}


def _sqlite(rows: Sequence[Row], folder: Path) -> dpm.DatabaseQuery:
    """A file whose cells have types one by one; dates are text, and truth values integers."""

    def stored(name: str, cell: Any) -> Any:
        if not isinstance(cell, str | bytes | float | int | dt.date | None) or (
            name == "person" and isinstance(cell, bool | dt.date)
        ):
            raise NotHeldError
        return cell.isoformat() if isinstance(cell, dt.date) else cell

    written = [{name: stored(name, cell) for name, cell in row.items()} for row in rows]
    declared = dict.fromkeys(ARROW, "")
    return dpm.DatabaseQuery(sqlite_file(folder / "t.db", written, declared), "SELECT * FROM people -- all of them")


def _postgres(rows: Sequence[Row], _: Path) -> dpm.DatabaseQuery:
    """A table of a server; prices are decimals."""
    name = postgres_table(arrow(rows))
    columns = ", ".join("price::numeric AS price" if name == "price" else name for name in ARROW)
    return dpm.DatabaseQuery(postgres_url(), f"SELECT {columns} FROM {name};")


LOCAL: dict[str, Entrance] = {
    "array of objects": Entrance(_array(object, COLUMNS), singly=True),
    **{
        f"array of {np.dtype(dtype).str[1:]}{' swapped' if not np.dtype(dtype).isnative else ''}": Entrance(
            _array(dtype, names), names
        )
        for dtype, names in {
            np.float64: NUMBERS,
            np.float32: NUMBERS,
            np.int64: ("visits", "code"),
            np.uint64: ("code",),
            np.bool_: ("member",),
        }.items()
    },
    "array in columns": Entrance(_array(np.float64, NUMBERS, np.asfortranarray), NUMBERS),
    "array sliced": Entrance(_array(np.float64, NUMBERS, lambda made: np.repeat(made, 2, axis=0)[::2]), NUMBERS),
    "coordinates": Entrance(_array(np.float64, NUMBERS), NUMBERS, coordinates=True),
    "coordinates of float32": Entrance(_array(np.float32, NUMBERS), NUMBERS, coordinates=True),
    "coordinates of integers": Entrance(_array(np.int32, ("visits", "code")), ("visits", "code"), coordinates=True),
    "coordinates of objects": Entrance(_array(object, NUMBERS), NUMBERS, coordinates=True),
    "pandas of objects": Entrance(lambda rows, _: frame_of_objects(rows), singly=True, unit=True),
    "pandas of objects, with a column twice": Entrance(
        lambda rows, _: pd.concat([frame_of_objects(rows), frame_of_objects(rows, ["unread"])], axis=1)
    ),
    **{
        f"pandas typed, {name}": Entrance(
            lambda rows, _, types=types: pandas(rows, types), unit=True, odd=tuple(set(types) & set(COLUMNS))
        )
        for name, types in PANDAS_TYPES.items()
    },
    "pandas categories of objects": Entrance(_categories_of_objects),
    "polars of objects": Entrance(_polars_objects, singly=True, unit=True),
    "folder of csv and parquet": Entrance(_folder_of_two),
    "excel": Entrance(_workbook, singly=True),
    "excel sheet": Entrance(
        lambda rows, folder: _workbook(rows, folder, titled=True),
        text_format=dpm.TextFormat(sheet="people", skip_lines=2, skip_below=1),
    ),
    "excel beside csv": Entrance(_workbook_beside_text),
    "sqlite": Entrance(_sqlite, unit=True, singly=True),
    "postgresql": Entrance(_postgres, unit=True),
    "stata": Entrance(_statistics("t.dta"), STATISTICS),
    "spss": Entrance(_statistics("t.sav"), STATISTICS),
    "sas transport": Entrance(_statistics("t.xpt"), ("age", "visits", "price", "code")),
    "cleaned, pandas of objects": Entrance(
        lambda rows, _: frame_of_objects(rows), singly=True, unit=True, cleaned=True
    ),
    "cleaned, arrow": Entrance(_typed({}), cleaned=True, unit=True),
    "cleaned, arrow text": Entrance(lambda rows, _: arrow(_as_german_text(rows), _GERMAN_TYPES), cleaned=True),
    "cleaned, arrow dictionaries": Entrance(
        lambda rows, _: (
            made := arrow(_as_german_text(rows), _GERMAN_TYPES),
            pa.table(
                {name: made[name].combine_chunks().dictionary_encode() for name in ("age", "member", "region", "code")}
            ),
        )[1],
        ("age", "member", "region", "code"),
        cleaned=True,
    ),
    "cleaned, parquet of text": Entrance(
        lambda rows, folder: (
            pq.write_table(arrow(_as_german_text(rows), _GERMAN_TYPES), folder / "t.parquet"),
            folder / "t.parquet",
        )[1],
        cleaned=True,
    ),
    "cleaned, array of objects": Entrance(_array(object, COLUMNS), cleaned=True),
    "cleaned, csv": Entrance(
        lambda rows, folder: csv()(_as_german_text(rows), folder), cleaned=True, singly=True, unit=True, ids="text"
    ),
    "cleaned, csv of one format": Entrance(
        csv("t.csv", _SEMICOLONS),
        cleaned=True,
        text_format=_SEMICOLONS,
        names=("visits", "member", "region", "code", "day"),
    ),
    "cleaned, folders of regions": Entrance(keyed("region"), cleaned=True),
    "cleaned, folders of members": Entrance(keyed("member"), cleaned=True),
    "polars lazy, with a step": Entrance(
        lambda rows, _: (
            pl.from_arrow(arrow(rows)).lazy().filter(pl.col("unread") != "").with_columns(pl.col("age") * 1.0)
        ),
        unit=True,
    ),
    **{
        name: Entrance(
            _form(form),
            like=None if name == "arrow" else "arrow",
            unit=name in ("polars lazy", "duckdb", "arrow chunked"),
        )
        for name, form in FORMS.items()
        if name != SEVERAL_LIBRARIES
    },
    SEVERAL_LIBRARIES: Entrance(_form(FORMS[SEVERAL_LIBRARIES]), ("age", "price", "member", "region")),
    **{
        name: Entrance(
            _file(form),
            like="arrow",
            unit=name in ("parquet folder", "feather"),
            holds=_without_returns if name in ("csv with an index", "csv of pandas") else None,
        )
        for name, form in FILES.items()
    },
    "csv text": text_entrance(singly=True),
    "csv with CR LF": Entrance(csv(line_end="\r\n")),
    "csv zst": text_entrance("t.csv.zst"),
    "csv lz4": text_entrance("t.csv.lz4"),
    "csv semicolons": text_entrance(delimiter=";", decimal=","),
    "csv thousands": text_entrance(delimiter=";", decimal=",", thousands="."),
    "csv apostrophes": text_entrance(thousands="'"),
    "csv narrow blanks": text_entrance("t.tsv", thousands="\u202f", decimal="\u066b"),
    "csv nulls": text_entrance(nulls=["k.A.", "abc", "-inf", "north "]),
    "csv truth": text_entrance(true=["ja"], false=["nein"]),
    "csv latin-1": text_entrance(encoding="latin-1"),
    "csv utf-16": text_entrance(encoding="utf-16"),
    "csv cp1252 gz": text_entrance("t.csv.gz", encoding="cp1252"),
    "csv without quotes": text_entrance(quote=None, delimiter=";"),
    "csv single quotes": text_entrance("t.txt", quote="'"),
    "csv skipped lines": text_entrance(skip_lines=2),
    "csv skipped lines below": text_entrance(skip_below=2),
    "csv German dates": text_entrance(date_format="%d.%m.%Y"),
    "csv folder of text": Entrance(csv_folder),
    **{
        f"folders by {key}": Entrance(
            keyed(key), unit=key == "person", ids="text", odd=(key,) if key in COLUMNS else ("code",)
        )
        for key in (*COLUMNS, "person")
        if key != "price"
    },
    "csv folders by region": Entrance(keyed("region", ".csv"), odd=("region", "age")),
}
"""Tables that this process reads."""


# --- engines ----------------------------------------------------------------------------------------------------------


@cache
def dd() -> Any:
    """Dask's data frames, imported once they are asked for."""
    import dask.dataframe

    return dask.dataframe


def _engine_files(make: Make, engine: str) -> Make:
    return lambda rows, folder: dpm.EngineFiles(make(rows, folder), engine)


def _dask_frame(frame: pd.DataFrame, pieces: int = 4, *, convert: bool = True) -> Any:
    import dask

    with dask.config.set({"dataframe.convert-string": convert}):
        return dd().from_pandas(frame, npartitions=pieces)


def _parquet_files(rows: Sequence[Row], folder: Path) -> Path:
    """Three Parquet files in a folder."""
    inside = folder / "parts"
    inside.mkdir()
    step = -(-max(len(rows), 1) // 3)
    for start in range(0, max(len(rows), 1), step):
        pq.write_table(arrow(rows[start : start + step]), inside / f"{start}.parquet")
    return inside


def _csv_files(rows: Sequence[Row], folder: Path) -> str:
    inside = folder / "texts"
    inside.mkdir()
    step = -(-max(len(rows), 1) // 3)
    for start in range(0, max(len(rows), 1), step):
        (inside / f"{start}.csv").write_bytes(csv_bytes(rows[start : start + step]))
    return str(inside / "*.csv")


def _json_line(row: Row) -> str:
    return json.dumps({name: None if row[name] is None else _plain(row[name]) for name in ARROW})


def _json_files(rows: Sequence[Row], folder: Path) -> str:
    """One file of a JSON object a line."""
    lines = [_json_line(row) for row in rows]
    (folder / "t.json").write_text("".join(line + "\n" for line in lines))
    return str(folder / "t.json")


def _arrow_json(rows: Sequence[Row], folder: Path) -> Any:
    """Arrow itself opens no file whose first block mixes kinds."""
    try:
        return ds.dataset(_json_files(rows, folder), format="json")
    except pa.ArrowInvalid as error:
        raise NotHeldError from error


def _plain(cell: Any) -> Any:
    """A cell as JSON has it."""
    if type(cell) is dt.datetime:
        return cell.isoformat()
    if type(cell) in (str, int, bool) or (type(cell) is float and np.isfinite(cell)):
        return cell
    raise NotHeldError


def _dask_numbers(rows: Sequence[Row], _: Path) -> Any:
    import dask.array

    return dask.array.from_array(array(rows, np.float64, NUMBERS), chunks=(13, 2))


def _dask_array_of_objects(rows: Sequence[Row], _: Path) -> Any:
    import dask.array

    return dask.array.from_array(array(rows, object, COLUMNS), chunks=(9, -1))


DASK: dict[str, Entrance] = {
    "dask from_pandas, typed": Entrance(
        lambda rows, _: _dask_frame(pandas(rows, PANDAS_TYPES["nullable"])), unit=True, like="pandas typed, nullable"
    ),
    "dask from_pandas, of Arrow": Entrance(
        lambda rows, _: _dask_frame(arrow(rows).to_pandas(types_mapper=pd.ArrowDtype)), unit=True
    ),
    "dask from_pandas, of objects": Entrance(
        lambda rows, _: _dask_frame(frame_of_objects(rows), convert=False), unit=True, like="pandas of objects"
    ),
    "dask from_pandas, with a step": Entrance(
        lambda rows, _: (
            _dask_frame(arrow(rows).to_pandas(types_mapper=pd.ArrowDtype))
            .query("unread != ''")
            .repartition(npartitions=2)
        )
    ),
    "dask read_parquet": Entrance(lambda rows, folder: dd().read_parquet(_parquet_files(rows, folder)), unit=True),
    "dask read_parquet, with a step": Entrance(
        lambda rows, folder: dd().read_parquet(_parquet_files(rows, folder)).query("unread != ''"), unit=True
    ),
    "dask from_array": Entrance(_dask_numbers, NUMBERS, like="array of f8"),
    "dask from_array, of coordinates": Entrance(_dask_numbers, NUMBERS, coordinates=True, like="coordinates"),
    "dask from_array, of objects": Entrance(_dask_array_of_objects, like="array of objects"),
    "dask files, parquet": Entrance(_engine_files(_parquet_files, "dask"), unit=True),
    "dask files, csv": Entrance(_engine_files(_csv_files, "dask"), unit=True, like="csv text"),
    "dask files, semicolons": Entrance(
        _engine_files(csv(form=dpm.TextFormat(delimiter=";", decimal=",")), "dask"),
        text_format=dpm.TextFormat(delimiter=";", decimal=","),
        like="csv semicolons",
    ),
    "dask files, feather": Entrance(_engine_files(_file(FILES["arrow folder"]), "dask")),
}
"""Tables that the workers of Dask read."""


def _spark() -> Any:
    from pyspark.sql import SparkSession

    session = SparkSession.getActiveSession()
    assert session is not None, "the fixture starts it"
    return session


def _spark_schema() -> Any:
    from pyspark.sql import types

    kinds = {
        "age": types.DoubleType(),
        "visits": types.LongType(),
        "price": types.DoubleType(),
        "member": types.BooleanType(),
        "region": types.StringType(),
        "code": types.LongType(),
        "day": types.TimestampNTZType(),
        "person": types.StringType(),
        "unread": types.StringType(),
    }
    return types.StructType([types.StructField(name, kind) for name, kind in kinds.items()])


def _spark_typed(rows: Sequence[Row], _: Path) -> Any:
    table = arrow(rows)
    return _spark().createDataFrame([tuple(row.values()) for row in table.to_pylist()], _spark_schema()).repartition(4)


def _spark_csv(rows: Sequence[Row], folder: Path) -> Any:
    return _spark().read.schema(_spark_schema()).csv(_csv_files(rows, folder), header=True, escape='"', multiLine=True)


def _spark_json(rows: Sequence[Row], folder: Path) -> Any:
    return _spark().read.schema(_spark_schema()).json(_json_files(rows, folder))


def _spark_parquet(rows: Sequence[Row], folder: Path) -> Any:
    return _spark().read.parquet(str(_parquet_files(rows, folder)))


SPARK: dict[str, Entrance] = {
    "spark createDataFrame with a schema": Entrance(_spark_typed, unit=True),
    "spark createDataFrame of Arrow": Entrance(lambda rows, _: _spark().createDataFrame(arrow(rows))),
    "spark parquet": Entrance(_spark_parquet, unit=True),
    "spark parquet, with a step": Entrance(
        lambda rows, folder: _spark_parquet(rows, folder).filter("unread != ''").repartition(3), unit=True
    ),
    "spark files, parquet": Entrance(_engine_files(_parquet_files, "spark")),
    "spark files, csv": Entrance(_engine_files(_csv_files, "spark"), like="csv text"),
    "spark files, feather": Entrance(_engine_files(_file(FILES["feather"]), "spark")),
}
"""Tables that the workers of Spark read, on the active session."""

WORKERS_SOURCES = {"BatchSource": "spark createDataFrame with a schema"}
"""Sources that only workers of an engine open, and an entrance that makes them."""


# --- refused ----------------------------------------------------------------------------------------------------------


def _hive(rows: Sequence[Row], folder: Path, key: str = "region") -> Path:
    return keyed(key)(rows, folder)


def _dask_csv(rows: Sequence[Row], folder: Path) -> Any:
    return dd().read_csv(_csv_files(rows, folder), dtype_backend="pyarrow")


def _dask_pieces(rows: Sequence[Row]) -> list[pd.DataFrame]:
    return [frame_of_objects(rows[start : start + 15]) for start in range(0, max(len(rows), 1), 15)]


def _dask_delayed(rows: Sequence[Row], _: Path) -> Any:
    import dask

    pieces = _dask_pieces(rows)
    with dask.config.set({"dataframe.convert-string": False}):
        return dd().from_delayed([dask.delayed(piece) for piece in pieces], meta=pieces[0].iloc[:0], verify_meta=False)


def _dask_map(rows: Sequence[Row], _: Path) -> Any:
    import dask

    pieces = _dask_pieces(rows)
    with dask.config.set({"dataframe.convert-string": False}):
        return dd().from_map(lambda place: pieces[place], range(len(pieces)), meta=pieces[0].iloc[:0])


def _dask_array_of_delayed(rows: Sequence[Row], _: Path) -> Any:
    import dask.array

    return dask.array.from_delayed(dask.delayed(array)(rows, object, COLUMNS), (len(rows), len(COLUMNS)), object)


def _spark_inferred(rows: Sequence[Row], folder: Path) -> Any:
    return _spark().read.csv(_csv_files(rows, folder), header=True, inferSchema=True, escape='"')


def _spark_folders(rows: Sequence[Row], folder: Path) -> Any:
    return _spark().read.parquet(str(_hive(rows, folder, "code")))


def _arrow_csv(rows: Sequence[Row], folder: Path) -> Any:
    return ds.dataset(csv()(rows, folder), format="csv")


def _with_type(name: str, kind: Any) -> Make:
    """A table in which one column has a type that the schema's column does not take, whatever its cells."""

    def make(rows: Sequence[Row], _: Path) -> pa.Table:
        made = arrow(rows)
        return made.set_column(made.column_names.index(name), name, pa.nulls(len(made), kind))

    return make


def _refused(make: Make, error: type[Exception] = TypeError, **how: Any) -> Entrance:
    return Entrance(make, refused=error, **how)


REFUSED: dict[str, Entrance] = {
    # what is no table
    "list of rows": _refused(lambda rows, _: [[row[name] for name in COLUMNS] for row in rows]),
    "list of mappings": _refused(lambda rows, _: list(rows)),
    "tuple": _refused(lambda rows, _: tuple(tuple(row.values()) for row in rows)),
    "mapping": _refused(lambda rows, _: {name: [row[name] for row in rows] for name in COLUMNS}),
    "generator": _refused(lambda rows, _: (row for row in rows)),
    "series": _refused(lambda rows, _: pd.Series(objects(rows, "age"), dtype=object)),
    "reader of batches": _refused(lambda rows, _: arrow(rows).to_reader()),
    "sparse": _refused(lambda rows, _: scipy.sparse.csr_matrix(np.ones((len(rows), 7)))),
    "array of one dimension": _refused(lambda rows, _: objects(rows, "age"), ValueError),
    "array of three dimensions": _refused(lambda rows, _: array(rows, object, COLUMNS)[:, :, None], ValueError),
    "array of other columns": _refused(lambda rows, _: array(rows, object, COLUMNS[:3]), ValueError),
    "array with a mask": _refused(lambda rows, _: np.ma.masked_array(array(rows, object, COLUMNS))),
    **{
        f"array of {kind}": _refused(lambda rows, _, dtype=dtype: np.zeros((len(rows), 7), dtype))
        for kind, dtype in {
            "text": "U9",
            "bytes": "S9",
            "complex numbers": np.complex128,
            "times": "M8[s]",
            "differences of times": "m8[s]",
            "records": [("a", float)],
            "bare bytes": "V4",
            "text of any length": np.dtypes.StringDType(),
        }.items()
    },
    "array with a privacy unit": _refused(_array(object, COLUMNS), unit=True),
    "frame with a text format": _refused(
        lambda rows, _: frame_of_objects(rows), text_format=dpm.TextFormat(decimal=",")
    ),
    "parquet with a text format": _refused(
        _file(FILES["parquet"]), ValueError, text_format=dpm.TextFormat(decimal=",")
    ),
    "file of another ending": _refused(csv("t.doc"), ValueError),
    "folder of a known and an unknown kind": _refused(
        lambda rows, folder: (csv()(rows, folder), csv("t.doc")(rows, folder), str(folder / "*"))[2], ValueError
    ),
    "file that is not there": _refused(lambda _, folder: folder / "absent.csv", FileNotFoundError),
    "wrong text format": _refused(csv(), text_format={"decimal": ","}),  # type: ignore[arg-type]
    # what has its types guessed
    "polars scan_csv": _refused(lambda rows, folder: pl.scan_csv(csv()(rows, folder))),
    "polars scan_csv, with steps": _refused(
        lambda rows, folder: pl.scan_csv(csv()(rows, folder)).filter(pl.col("unread") != "").sort("unread")
    ),
    "polars scan_ndjson": _refused(lambda rows, folder: pl.scan_ndjson(_json_files(rows, folder), schema=None)),
    "polars folders": _refused(lambda rows, folder: pl.scan_parquet(_hive(rows, folder), hive_partitioning=True)),
    "duckdb read_csv": _refused(lambda rows, folder: duckdb_connection().read_csv(str(csv()(rows, folder)))),
    "duckdb query of csv": _refused(
        lambda rows, folder: duckdb_connection().sql(
            f"SELECT * FROM '{csv()(rows, folder)}' WHERE unread != '' ORDER BY unread"
        )
    ),
    "duckdb read_json": _refused(lambda rows, folder: duckdb_connection().read_json(_json_files(rows, folder))),
    "duckdb pandas": _refused(lambda rows, _: duckdb_connection().from_df(frame_of_objects(rows, COLUMNS))),
    "arrow dataset of csv": _refused(_arrow_csv),
    "arrow dataset of json": _refused(_arrow_json),
    "arrow dataset of csv and more": _refused(
        lambda rows, folder: ds.dataset([_arrow_csv(rows, folder), _arrow_csv(rows, folder)])
    ),
    "arrow folders": _refused(lambda rows, folder: ds.dataset(_hive(rows, folder, "code"), partitioning="hive")),
    # what has types that no rule reads, whatever the cells
    **{
        f"{name} of {kind}": _refused(_with_type(name, kind), at_opening=False)
        for name, kind in {
            "age": pa.string(),
            "visits": pa.timestamp("us"),
            "price": pa.list_(pa.float64()),
            "member": pa.binary(),
            "region": pa.bool_(),
            "code": pa.decimal128(9, 0),
            "day": pa.int64(),
        }.items()
    },
    "polars of long integers": _refused(
        lambda rows, _: pl.from_arrow(arrow(rows)).with_columns(pl.col("visits").cast(pl.Int128)), at_opening=False
    ),
    **{
        f"person of {kind}": _refused(_with_type("person", kind), at_opening=False, unit=True)
        for kind in (pa.bool_(), pa.decimal128(9, 0), pa.date32(), pa.list_(pa.int64()))
    },
    # Dask
    "dask read_csv": _refused(_dask_csv),
    "dask read_csv, with steps": _refused(
        lambda rows, folder: _dask_csv(rows, folder).query("unread != ''").assign(age=1.0).repartition(npartitions=2)
    ),
    "dask read_csv, joined": _refused(
        lambda rows, folder: _dask_frame(arrow(rows).to_pandas(types_mapper=pd.ArrowDtype)[["unread"]]).merge(
            _dask_csv(rows, folder), on="unread"
        )
    ),
    "dask read_table": _refused(
        lambda rows, folder: dd().read_table(csv("t.tsv")(rows, folder), dtype_backend="pyarrow")
    ),
    "dask read_json": _refused(lambda rows, folder: dd().read_json(_json_files(rows, folder), lines=True)),
    "dask from_delayed": _refused(_dask_delayed),
    "dask from_map": _refused(_dask_map),
    "dask persisted": _refused(lambda rows, folder: _dask_csv(rows, folder).persist()),
    "dask array of read_csv": _refused(lambda rows, folder: _dask_csv(rows, folder)[list(COLUMNS)].to_dask_array()),
    "dask array from_delayed": _refused(_dask_array_of_delayed),
    "dask bag": _refused(lambda rows, _: __import__("dask.bag").bag.from_sequence([row["age"] for row in rows])),
    # Spark
    "spark csv, inferred": _refused(_spark_inferred),
    "spark csv, inferred, with steps": _refused(
        lambda rows, folder: _spark_inferred(rows, folder).filter("unread != ''").repartition(3)
    ),
    "spark csv, inferred, cached": _refused(lambda rows, folder: _spark_inferred(rows, folder).cache()),
    "spark csv, inferred, joined": _refused(
        lambda rows, folder: _spark_parquet(rows, folder).select("unread").join(_spark_inferred(rows, folder), "unread")
    ),
    "spark csv, inferred, in a union": _refused(
        lambda rows, folder: _spark_inferred(rows, folder).union(_spark_inferred(rows, _emptied(folder)))
    ),
    "spark csv, inferred, checkpointed": _refused(lambda rows, folder: _spark_inferred(rows, folder).localCheckpoint()),
    "spark csv with a schema": _refused(_spark_csv),
    "spark json with a schema": _refused(_spark_json),
    "spark json": _refused(lambda rows, folder: _spark().read.json(_json_files(rows, folder))),
    "spark folders": _refused(_spark_folders),
    "spark grouped": _refused(lambda rows, folder: _spark_parquet(rows, folder).groupBy("code")),
}
"""Entrances that no table passes."""


def _emptied(folder: Path) -> Path:
    """A folder for a second copy of the files."""
    again = folder / "again"
    again.mkdir()
    return again


def of_engine(name: str) -> str:
    """``"dask"``, ``"spark"`` or ``"local"``."""
    return next((engine for engine in ("dask", "spark") if name.startswith(engine + " ")), "local")


# --- estimators -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class EstimatorEntrance:
    """X and y of an estimator."""

    estimator: Callable[..., Any]  # of a schema and more options
    names: tuple[str, ...]  # the columns of X
    target: str | None  # the column of y
    make_x: Callable[[Sequence[Row], tuple[str, ...]], Any]
    make_y: Callable[[Sequence[Row], str], Any] = lambda rows, name: [row[name] for row in rows]

    @property
    def columns(self) -> tuple[str, ...]:
        """Of the schema."""
        return self.names if self.target is None else (*self.names, self.target)


def _dtyped(dtype: Any) -> Callable[[Sequence[Row], tuple[str, ...]], Any]:
    return lambda rows, names: array(rows, dtype, names)


def _of_arrow(form: Callable[[pa.Table], Any]) -> Callable[[Sequence[Row], tuple[str, ...]], Any]:
    return lambda rows, names: form(arrow(rows).select(list(names)))


X_FORMS: dict[str, Callable[[Sequence[Row], tuple[str, ...]], Any]] = {
    "lists": lambda rows, names: [[row[name] for name in names] for row in rows],
    "tuples": lambda rows, names: tuple(tuple(row[name] for name in names) for row in rows),
    "array of objects": lambda rows, names: array(rows, object, names),
    "pandas of objects": frame_of_objects,
    "pandas without names": lambda rows, names: frame_of_objects(rows, names).set_axis(range(len(names)), axis=1),
    "pandas typed": lambda rows, names: pandas(rows, PANDAS_TYPES["nullable"])[list(names)],
    "pandas of NumPy": lambda rows, names: pandas(rows, PANDAS_TYPES["of NumPy"])[list(names)],
    "polars": _of_arrow(pl.from_arrow),
    "arrow": _of_arrow(lambda table: table),
}
Y_FORMS: dict[str, Callable[[Sequence[Row], str], Any]] = {
    "list": lambda rows, name: [row[name] for row in rows],
    "tuple": lambda rows, name: tuple(row[name] for row in rows),
    "objects": objects,
    "pandas of objects": lambda rows, name: frame_of_objects(rows, [name])[name],
    "pandas typed": lambda rows, name: pandas(rows, PANDAS_TYPES["nullable"])[name],
    "polars": lambda rows, name: pl.from_arrow(arrow(rows))[name],
    "arrow": lambda rows, name: arrow(rows)[name],
}
OF_X = {"DPCovariance": (DPCovariance, {}), "DPPCA": (DPPCA, {"n_components": 2})}
OF_X_AND_Y = {
    "DPRidge": (DPRidge, ("price", "member", "day")),
    "DPLinearDiscriminant": (DPLinearDiscriminant, ("region", "code")),
}


def _estimator(made: Any, **options: Any) -> Callable[..., Any]:
    return lambda schema, **more: made(schema=schema, **options, **more)


def _rest(target: str) -> tuple[str, ...]:
    return tuple(name for name in COLUMNS if name != target)


ESTIMATORS: dict[str, EstimatorEntrance] = {
    **{
        f"{name}, X {form}": EstimatorEntrance(_estimator(made, **options), COLUMNS, None, make)
        for name, (made, options) in OF_X.items()
        for form, make in X_FORMS.items()
        if name == "DPCovariance" or form in ("lists", "array of objects")
    },
    **{
        f"DPCovariance, X {form}": EstimatorEntrance(_estimator(DPCovariance), NUMBERS, None, _dtyped(dtype))
        for form, dtype in {"float32": np.float32, "swapped floats": ">f8"}.items()
    },
    **{
        f"{name}, X {form}, y {targets[0]}": EstimatorEntrance(
            _estimator(made, target=targets[0]), _rest(targets[0]), targets[0], make
        )
        for name, (made, targets) in OF_X_AND_Y.items()
        for form, make in X_FORMS.items()
        if form in ("lists", "array of objects", "pandas of objects", "arrow")
    },
    **{
        f"{name}, y {form} of {target}": EstimatorEntrance(
            _estimator(made, target=target), ("age", "visits"), target, _dtyped(np.float64), make
        )
        for name, (made, targets) in OF_X_AND_Y.items()
        for target in targets
        for form, make in Y_FORMS.items()
    },
}
"""X and y in every form, for every estimator."""


def cleared(folder: Path) -> Path:
    """The folder, empty."""
    if folder.is_dir() and next(folder.iterdir(), None) is None:
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


def concrete(base: type) -> set[str]:
    """Names of the library's classes below another that can be made."""
    found = set() if inspect.isabstract(base) else {base.__name__}
    below = (child for child in base.__subclasses__() if child.__module__.startswith("dpmoments."))
    return found.union(*map(concrete, below))
