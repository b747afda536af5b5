"""The one list of types: every library, file and declared type that a column of cells can come in.

``test_one_cell.py`` fails where a source, or a type that some library holds, is in none of them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.dataset as ds

import dpmoments as dpm
from contracts.odd_rows import NotHeldError
from dpmoments.schema.cells import ColumnTable, declared_column
from support.databases import sqlite_file
from support.table_forms import arrow_file, duckdb_connection, parquet
from support.workbooks import workbook

__all__ = ["COLUMNS", "ODD", "Cells", "NotHeldError", "TypedColumn"]

Cells = Sequence[Any]


class _Failing:
    """An object that fails at whatever is asked of it."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError("secret cell")


DAY = dt.datetime(2020, 3, 1, 12)
NUMBERS = (99.9, 0.1, 0.5, 3.0, 7.0, 1.0, 0.0, 2.0**11, 2.0**24 + 2, 2.0**53 - 1)
"""Missing marks and codes that no float holds exactly, and IDs at the limits of each width."""
INTEGERS = (7, 1, 0, 3, 2, 99, 2**11 + 1, 2**24 + 1, 2**53 + 1)
TEXTS = ("7", " 7", "99.9", "0,1", "north", " N ", "ja", "1", "2020-03-01", "01.03.2020", "p7")
DAYS = (DAY, DAY.replace(day=2, hour=0), DAY.replace(month=6))
OBJECTS = (
    *(*NUMBERS[:6], 7, True, np.float32(0.1), np.float32(99.9), np.float16(0.1), Decimal("0.1"), "ja", "north", DAY),
)
ODD: dict[str, Any] = {
    "NaN": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "null": None,
    "-0.0": -0.0,
    "largest": np.finfo(np.float64).max,
    "smallest": np.finfo(np.float64).tiny / 2**52,
    "fraction": 0.3,
    "text": "abc",
    "empty text": "",
    "half of a surrogate pair": "nor\udcffth",
    "integer": 5,
    "huge integer": 10**400,
    "first integer": -(2**63),
    "last integer": 2**64 - 1,
    "true": True,
    "date": DAY,
    "decimal": Decimal("7.5"),
    "bytes": b"north",
    "list": [7],
    "object that fails": _Failing(),
}


@dataclass(frozen=True)
class TypedColumn:
    """A declared type of one library or file.

    ``make`` turns cells, and a folder for files, into a table with a column ``c`` of this type, and ``x`` of zeros beside it
    if it may hold a privacy ``unit``; it raises for cells that the type cannot hold. ``cells`` are ordinary ones.
    """

    make: Callable[[Cells, Path], Any]
    cells: Cells
    unit: bool = True

    def table(self, cells: Cells, folder: Path) -> Any:
        try:
            return self.make(cells, folder)
        except Exception as error:
            raise NotHeldError from error


def _cells_of(kind: Any) -> Cells:
    """Ordinary cells of an Arrow type."""
    kind = kind.value_type if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind) else kind
    if pa.types.is_floating(kind):
        return NUMBERS[:8] if pa.types.is_float16(kind) else NUMBERS
    if pa.types.is_integer(kind):
        return [cell for cell in INTEGERS if cell < 2 ** (kind.bit_width - pa.types.is_signed_integer(kind))]
    if pa.types.is_decimal(kind):
        return [Decimal(str(cell)) for cell in NUMBERS[:7]]
    if pa.types.is_temporal(kind):
        return [day.date() for day in DAYS] if pa.types.is_date(kind) else DAYS
    if pa.types.is_boolean(kind):
        return [True, False]
    if pa.types.is_null(kind):
        return [None, None]
    return TEXTS if "string" in str(kind) else [bytes(16), b"north" * 3 + b"n"]


def _plain(cell: Any) -> Any:
    if isinstance(cell, list | dict):
        raise NotHeldError
    return cell


def numpy_column(cells: Cells, dtype: str) -> Any:
    """An array of a declared NumPy type: floats are rounded to it, and hold no null."""
    kind = np.dtype(dtype).kind
    if kind == "O":
        made = np.empty(len(cells), object)
        for place, cell in enumerate(cells):
            made[place] = cell
        return made
    wanted = {"f": (float, int), "i": int, "u": int, "b": bool, "U": str, "T": str, "M": dt.datetime, "S": bytes}[kind]
    if any(not isinstance(_plain(cell), wanted) or isinstance(cell, bool) != (kind == "b") for cell in cells):
        raise NotHeldError
    with np.errstate(all="ignore"):
        return np.array(cells, dtype)


def arrow_column(cells: Cells, kind: Any) -> Any:
    """An array of a declared Arrow type: floats are rounded to it, and NaN is no null."""
    if pa.types.is_dictionary(kind) or pa.types.is_run_end_encoded(kind):
        values = arrow_column(cells, kind.value_type)
        return pa.compute.run_end_encode(values) if "run_end" in str(kind) else values.dictionary_encode().cast(kind)
    if isinstance(kind, pa.BaseExtensionType):
        return pa.ExtensionArray.from_storage(kind, arrow_column(cells, kind.storage_type))
    if any(isinstance(cell, bool) for cell in cells) and not pa.types.is_boolean(kind):
        raise NotHeldError  # Arrow makes a number of it
    if pa.types.is_float16(kind):
        with np.errstate(all="ignore"):
            cells = [None if cell is None else np.float16(_plain(cell)) for cell in cells]
    return pa.array(list(map(_plain, cells)), kind, from_pandas=False)


def arrow_table(cells: Cells, kind: Any) -> Any:
    column = arrow_column(cells, kind)
    return pa.table({"c": column, "x": np.zeros(len(column))})


def _frame(column: Any) -> pd.DataFrame:
    return pd.DataFrame({"c": pd.Series(column, dtype=column.dtype), "x": np.zeros(len(column))})


def _series(cells: Cells, dtype: Any, kind: Any) -> pd.Series:
    if _numpy_or_none(dtype) is not None:
        return pd.Series(numpy_column(cells, dtype))
    if kind is not None:
        arrow_column([cell for cell in cells if cell is not None], kind)  # pandas would convert other cells
    return pd.Series(list(map(_plain, cells)), dtype=dtype)


def _numpy_or_none(dtype: Any) -> Any:
    try:
        return np.dtype(dtype)
    except TypeError:
        return None


FLOATS = ["f2", "f4", "f8", "g", ">f4"]
NUMPY = [*FLOATS, ">f2", ">f8", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", ">i4", "?", "O"]
NUMPY_ALONE = ["U9", "T", "S9", "M8[D]", "M8[h]", "M8[m]", "M8[s]", "M8[ms]", "M8[us]", "M8[ns]"]
PANDAS: dict[Any, Any] = {
    "Float32": pa.float32(),
    "Float64": pa.float64(),
    "Int8": pa.int8(),
    "Int64": pa.int64(),
    "UInt64": pa.uint64(),
    "boolean": pa.bool_(),
    "string[python]": pa.string(),
    "string[pyarrow]": pa.string(),
    "str": pa.string(),
    "datetime64[us, UTC]": pa.timestamp("us"),
    "datetime64[s]": pa.timestamp("s"),
    pd.CategoricalDtype(np.array([0.1, 0.5, 7.0, 99.9, 0.3], np.float32)): pa.float32(),
    pd.CategoricalDtype([7, 1, 0, 2**53 + 1, 5]): pa.int64(),
    pd.CategoricalDtype([*TEXTS, "abc", ""]): pa.string(),
    pd.CategoricalDtype(pd.Index([*TEXTS, "abc", 5, True], dtype=object)): None,
}
ARROW = [
    *(pa.float16(), pa.float32(), pa.float64(), pa.int8(), pa.int16(), pa.int32(), pa.int64()),
    *(pa.uint8(), pa.uint16(), pa.uint32(), pa.uint64(), pa.bool_(), pa.decimal128(18, 2), pa.decimal256(60, 20)),
    *(pa.decimal32(9, 2), pa.decimal64(18, 2), pa.string(), pa.large_string(), pa.string_view(), pa.null()),
    *(pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(16), pa.uuid()),
    *(pa.date32(), pa.date64(), pa.timestamp("s"), pa.timestamp("ns"), pa.timestamp("us", "Asia/Tokyo")),
    *(pa.dictionary(pa.int8(), pa.float32()), pa.dictionary(pa.int32(), pa.string())),
    *(pa.run_end_encoded(pa.int32(), pa.float32()), pa.run_end_encoded(pa.int32(), pa.string())),
]
READ_BY_NO_RULE = [
    *(pa.time32("s"), pa.time64("us"), pa.duration("s"), pa.month_day_nano_interval(), pa.map_("i1", "i1")),
    *(pa.list_(pa.int8()), pa.large_list(pa.int8()), pa.list_(pa.int8(), 2), pa.list_view(pa.int8())),
    *(pa.large_list_view(pa.int8()), pa.struct([("a", pa.int8())])),
    *(union([pa.field("a", pa.int8())]) for union in (pa.dense_union, pa.sparse_union)),
]
SOME_ARROW = [
    *(pa.float16(), pa.float32(), pa.float64(), pa.int64(), pa.string(), pa.timestamp("us"), pa.decimal128(18, 2)),
]
"""Of files and engines, whose tables take longer to make."""
OF_FRAMES = [
    *(pa.float16(), pa.float32(), pa.float64(), pa.int8(), pa.uint64(), pa.bool_(), pa.decimal128(18, 2)),
    *(pa.large_string(), pa.binary(), pa.null(), pa.date32(), pa.timestamp("ns")),
    pa.dictionary(pa.int32(), pa.string()),
]


def _chunks(table: pa.Table) -> pa.Table:
    """Pieces of no row, of one, and of the rest."""
    return pa.concat_tables([table.slice(0, 0), table.slice(0, 1), table.slice(1)])


LIBRARIES: dict[str, tuple[Callable[[pa.Table, Path], Any], list[Any]]] = {
    "arrow": (lambda table, _: table, ARROW),
    "arrow, in chunks": (lambda table, _: _chunks(table), ARROW[:3]),
    "pandas of arrow": (lambda table, _: table.to_pandas(types_mapper=pd.ArrowDtype), OF_FRAMES),
    "polars": (lambda table, _: pl.from_arrow(table), OF_FRAMES),
    "polars lazy": (lambda table, _: pl.from_arrow(table).lazy(), ARROW[:3]),
    "dataset": (lambda table, _: ds.dataset(table), SOME_ARROW),
    "duckdb": (lambda table, _: duckdb_connection().from_arrow(table), SOME_ARROW[1:]),
    "parquet": (lambda table, folder: parquet(folder / "t.parquet", table), SOME_ARROW),
    "feather": (lambda table, folder: arrow_file(folder / "t.arrow", table), SOME_ARROW),
    "parquet beside feather": (
        lambda table, folder: (
            parquet(folder / "t.parquet", table.slice(0, 1)),
            arrow_file(folder / "t.arrow", table.slice(1)),
            folder,
        )[-1],
        [pa.float32()],
    ),
}


def _csv(cells: Cells, folder: Path) -> Path:
    if any(not isinstance(cell, str | float | int | None) or isinstance(cell, bool) for cell in cells):
        raise NotHeldError
    texts = ["" if cell is None else cell if isinstance(cell, str) else str(cell) for cell in cells]
    lines = ['"' + text.replace('"', '""') + '",0\n' for text in texts]
    (folder / "t.csv").write_bytes("".join(["c,x\n", *lines]).encode(errors="surrogateescape"))
    return folder / "t.csv"


def _sqlite(cells: Cells, folder: Path) -> Any:
    if any(
        not isinstance(cell, str | bytes | float | int | None) or isinstance(cell, np.floating | bool) for cell in cells
    ):
        raise NotHeldError
    (folder / "t.db").unlink(missing_ok=True)
    rows = [{"c": cell, "x": 0.0} for cell in cells]
    return dpm.DatabaseQuery(sqlite_file(folder / "t.db", rows, {"c": "", "x": ""}), "SELECT * FROM people")


def _statistics(name: str, dtype: str) -> Callable[[Cells, Path], Path]:
    def make(cells: Cells, folder: Path) -> Path:
        import pyreadstat

        frame = _frame(numpy_column([float("nan") if cell is None else cell for cell in cells], dtype))
        if not np.abs(frame["c"].dropna()).lt(1e30).all():
            raise NotHeldError
        path = folder / name
        if name.endswith("dta"):
            frame.to_stata(path, write_index=False)
        else:
            {"sav": pyreadstat.write_sav, "xpt": pyreadstat.write_xport}[name[-3:]](frame, str(path))
        return path

    return make


def _columns(column: Any) -> ColumnTable:
    return ColumnTable({"c": declared_column(column, "c"), "x": np.zeros(len(column))})


def _of_numpy(dtype: str) -> Cells:
    if dtype == "O":
        return OBJECTS
    return {"U": TEXTS, "T": TEXTS, "S": [b"7"], "M": DAYS}.get(np.dtype(dtype).kind) or _cells_of(
        pa.float64() if dtype == "g" else pa.from_numpy_dtype(np.dtype(dtype).newbyteorder("="))
    )


COLUMNS: dict[str, TypedColumn] = {
    **{
        f"array of {dtype}": TypedColumn(
            lambda cells, _, dtype=dtype: numpy_column(cells, dtype)[:, None], _of_numpy(dtype), unit=False
        )
        for dtype in (*FLOATS, "i8", "O")
    },
    **{
        f"columns of {dtype}": TypedColumn(
            lambda cells, _, dtype=dtype: _columns(numpy_column(cells, dtype)), _of_numpy(dtype)
        )
        for dtype in (*NUMPY, *NUMPY_ALONE)
    },
    **{
        f"pandas {dtype}": TypedColumn(
            lambda cells, _, dtype=dtype: _frame(numpy_column(cells, dtype)), _of_numpy(dtype)
        )
        for dtype in (*FLOATS, "u1", "i8", ">i4", "?", "O", "M8[s]", "M8[ns]")
    },
    **{
        f"pandas {number}, {dtype}": TypedColumn(
            lambda cells, _, dtype=dtype, kind=kind: _frame(_series(cells, dtype, kind)),
            dtype.categories.tolist()[:-1] if isinstance(dtype, pd.CategoricalDtype) else _cells_of(kind),
        )
        for number, (dtype, kind) in enumerate(PANDAS.items())
    },
    **{
        f"{library} {kind}": TypedColumn(
            lambda cells, folder, form=form, kind=kind: form(arrow_table(cells, kind), folder), _cells_of(kind)
        )
        for library, (form, kinds) in LIBRARIES.items()
        for kind in kinds
    },
    "polars objects": TypedColumn(
        lambda cells, _: pl.DataFrame(
            [pl.Series("c", list(cells), dtype=pl.Object), pl.Series("x", [0.0] * len(cells))]
        ),
        OBJECTS,
    ),
    "csv": TypedColumn(_csv, TEXTS),
    "excel": TypedColumn(
        lambda cells, folder: workbook(folder / "t.xlsx", [["c", "x"], *([_plain(cell), 0.0] for cell in cells)]),
        [*NUMBERS[:6], "ja", "north", True, DAY],
    ),
    "sqlite": TypedColumn(_sqlite, [*NUMBERS, *TEXTS[:6], 7]),
    **{
        f"{name}, {dtype}": TypedColumn(_statistics(name, dtype), NUMBERS if dtype != "i4" else INTEGERS[:6])
        for name, dtypes in {"t.dta": ("f4", "f8", "i4"), "t.sav": ("f8",), "t.xpt": ("f8",)}.items()
        for dtype in dtypes
    },
}
"""Every column that this process reads."""
