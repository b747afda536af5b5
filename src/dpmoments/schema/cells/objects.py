"""Columns of frames and arrays as values, and Python objects read one by one.

A column of objects may hold anything. A type inferred for a whole batch would let one row's value decide how another's
is read, and so would an error: an unreadable object affects only itself, whatever its methods raise.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from dpmoments.base.arrays import BoolArray
from dpmoments.base.errors import InputTypeError, InputValueError
from dpmoments.base.table_libraries import nw, pa

ObjectArray = npt.NDArray[np.object_]
Found = TypeVar("Found")

NO_LEVEL = "\0 no level"
"""Text of a value that cannot be a level."""


def series_cells(series: nw.Series[Any], name: str) -> Any:
    """Return a frame column's values as Arrow arrays or an array of Python objects."""
    # Only its type decides which.
    native = series.to_native()
    native_type = getattr(native, "dtype", None)
    # Arrow cannot join chunks whose dictionaries hold nulls.
    if isinstance(native, pa.ChunkedArray):
        return native
    if hasattr(native_type, "pyarrow_dtype"):
        return native.array.__arrow_array__()
    # Of objects in pandas, narwhals would look at cells for a type; Python's texts may have halves of surrogate pairs.
    of_categories = getattr(getattr(native_type, "categories", None), "dtype", native_type)
    objects = isinstance(of_categories, np.dtype) and of_categories.kind == "O"
    objects |= of_categories is not native_type and getattr(of_categories, "storage", None) == "python"
    if objects or series.dtype == nw.Object:
        return np.asarray(native.to_numpy(), dtype=object)
    if isinstance(native_type, np.dtype) and (native_type.kind == "f" or not native_type.isnative):
        return array_cells(series.to_numpy())
    with suppress(Exception):  # whose message may quote a cell
        return series.to_arrow()
    if getattr(native_type, "storage", None) == "python":  # text, one of which has half of a surrogate pair
        held = [
            str.__str__(cell).encode(errors="surrogatepass") if isinstance(cell, str) else None
            for cell in series.to_list()
        ]
        return pa.array(held, pa.large_binary()).view(pa.large_string())
    raise InputTypeError(f"column '{name}' of the frame does not hold plain numbers or text: convert it first")


def array_cells(cells: npt.NDArray[Any]) -> Any:
    """Return an Arrow array of the declared width, NaN kept, or an array of Python objects."""
    if cells.dtype.kind == "O":
        return cells
    held = np.float64 if cells.dtype.char == "g" else cells.dtype.newbyteorder("=")
    with np.errstate(over="ignore", invalid="ignore"):  # a long double beyond float64 is infinite
        return pa.array(np.ascontiguousarray(cells, dtype=held))


def object_numbers(cells: ObjectArray) -> tuple[npt.NDArray[np.float64], BoolArray]:
    """Convert Python, NumPy and decimal numbers and Booleans to float64.

    NaN if missing or unreadable. The second result marks objects of other types. None, NaN and pandas' missing values
    are missing.
    """
    result = read_objects(cells, _number, None)
    unreadable = np.fromiter((number is None for number in result), np.bool_, len(result))
    return np.array(result, dtype=np.float64), unreadable  # None becomes NaN


def object_texts(cells: ObjectArray, *, integers: bool) -> Any:
    """Convert strings and integers to a large_string array.

    Null if missing, ``NO_LEVEL`` if they cannot be levels. If ``integers``, the column's levels are integers, and
    floats such as 3.0 are allowed.
    """
    texts: list[str | None] = read_objects(cells, lambda cell: _text(plain_object(cell), integers), NO_LEVEL)
    return pa.array(texts, pa.large_string())


def read_objects(cells: Iterable[object], read: Callable[[Any], Found], unreadable: Found) -> list[Found]:
    """Read each object; return ``unreadable`` for those whose methods raise."""
    with suppress(Exception):  # which is found again below
        return [read(cell) for cell in cells]
    result = []
    for cell in cells:
        try:
            result.append(read(cell))
        except Exception:  # told by the caller; what is raised may quote the cell
            result.append(unreadable)
    return result


def plain_object(cell: object) -> Any:
    """Return a value as a plain object, without the methods of its own type; None if missing."""
    # These may raise, or warn and quote the value. Floats of NumPy keep their width; what no reader accepts stays.
    kind = type(cell)
    if cell is None or kind.__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(cell, float):
        number = float.__float__(cell)
        return None if math.isnan(number) else number
    if isinstance(cell, str):
        return str.__str__(cell)
    if isinstance(cell, int):
        return cell if kind is bool else int.__int__(cell)
    if isinstance(cell, bytes):
        return bytes.__getitem__(cell, slice(None))
    if isinstance(cell, Decimal):
        return None if Decimal.is_nan(cell) else cell
    if isinstance(cell, np.generic) and kind.__module__ == "numpy":
        if isinstance(cell, np.datetime64):
            return None if np.isnat(cell) else cell
        if isinstance(cell, np.floating):
            return None if np.isnan(cell) else cell
        return cell.item() if isinstance(cell, np.integer | np.bool_) and kind is not np.timedelta64 else cell
    return cell


def utf8_text(plain: object) -> str | None:
    """Return a plain object if it is text of UTF-8, else None."""
    if type(plain) is str:
        with suppress(UnicodeEncodeError):
            plain.encode()
            return plain
    return None


def _number(cell: object) -> float | None:
    """Convert an object to a number: NaN if missing, None if unreadable."""
    if type(cell) is float:  # as most of them are
        return cell
    plain = plain_object(cell)
    if plain is None:
        return math.nan
    kind = type(plain)
    try:
        if kind in (float, int, bool, Fraction) or (isinstance(plain, np.floating) and kind.__module__ == "numpy"):
            return float(plain)
        return Decimal.__float__(plain) if isinstance(plain, Decimal) else None
    except OverflowError:  # an integer or a fraction beyond the range of float64
        return math.inf if plain > 0 else -math.inf


def _text(plain: Any, integers: bool) -> str | None:
    if plain is None:
        return None
    if type(plain) is int:
        # Python refuses to write out integers of thousands of digits, and none of them is a level.
        return str(plain) if abs(plain) < 10**1000 else NO_LEVEL
    if isinstance(plain, float | np.floating):
        number = float(plain)
        if integers:
            return str(number + 0.0)  # −0.0 becomes 0.0
        # Whole numbers as their integers, as in a column of floats; no other number is a level.
        return str(int(number)) if number.is_integer() and abs(number) < 2.0**63 else NO_LEVEL
    text = utf8_text(plain)
    return NO_LEVEL if text is None else text


_READABLE_KINDS = "biufOUSTM"
"""Kinds of NumPy types that a column may have; the column's reader decides about bytes."""
_ARROW_TIMES = ("D", "s", "ms", "us", "ns")


@dataclass(frozen=True, eq=False, repr=False)
class ColumnTable:
    """Table of equally long columns that do not share a library or a type.

    Columns come from :func:`declared_column`.
    """

    columns: Mapping[str, Any]

    def __post_init__(self) -> None:
        if len({len(column) for column in self.columns.values()}) > 1:
            raise InputValueError("the columns of the table have different lengths: each needs one value per row")

    @property
    def n_rows(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def cells(self, name: str, part: slice = slice(0, None)) -> Any:  # narwhals 2.0 refuses slice(None)
        """Return the values of some rows of a column: an Arrow array, or an array of Python objects."""
        column = self.columns[name][part]
        if isinstance(column, nw.Series):
            return series_cells(column, name)
        if column.dtype.kind in "UT":  # Arrow would refuse all cells for half of a surrogate pair in one
            texts = (
                cell.encode(errors="replace").decode() if isinstance(cell, str) else None for cell in column.tolist()
            )
            return pa.array(texts, pa.large_string())
        if column.dtype.kind == "M" and np.datetime_data(column.dtype)[0] not in _ARROW_TIMES:
            return objects_of(column, len(column))
        with suppress(pa.ArrowException, TypeError, ValueError):  # whose message may quote a cell
            return array_cells(column)
        raise InputTypeError(f"column '{name}' cannot be converted to plain numbers or text: convert it first")


def declared_column(values: Any, name: str) -> Any:
    """Return a column as a NumPy array or a narwhals Series, of its declared type.

    The array has one dimension. Lists, tuples and other sequences declare no type: they become arrays of objects, so
    that no value decides how another is read.
    """
    library = type(values).__module__.split(".")[0]
    if library == "pyarrow" and isinstance(values, pa.Array):
        values = pa.chunked_array([values])
    elif library == "pandas" and hasattr(values, "dtype") and not hasattr(values, "iloc"):  # an index, or bare cells
        import pandas

        values = pandas.Series(values, dtype=values.dtype)
    series = nw.from_native(values, allow_series=True, pass_through=True)
    if isinstance(series, nw.Series):
        return series
    cells = declared_array(values, name)
    if cells.ndim != 1:
        raise InputValueError(f"column '{name}' must have one dimension, one value per row, and has {cells.ndim}")
    if cells.dtype.kind not in _READABLE_KINDS:
        raise InputTypeError(
            f"column '{name}' has NumPy's type {cells.dtype.type.__name__}, which is not a type of numbers, "
            "text or dates: convert it"
        )
    return cells


def declared_array(values: Any, name: str) -> npt.NDArray[Any]:
    """Return an array of the values' declared type; a sequence becomes an array of objects."""
    if isinstance(values, np.ma.MaskedArray):
        raise InputTypeError(
            f"'{name}' is a masked array, whose mask would be lost: fill it, array.filled(np.nan), and choose "
            "each column's missing rule"
        )
    if isinstance(values, list | tuple):
        return objects_of(values, len(values))
    elsewhere = type(values).__module__.split(".")[0] in ("dask", "pyspark")
    if not elsewhere and (isinstance(values, memoryview | array) or hasattr(values, "__array__")):
        return np.asarray(values)
    if isinstance(values, Sequence) and not isinstance(values, str | bytes | bytearray):
        return objects_of(values, len(values))
    raise InputTypeError(
        f"'{name}' must be an array, a list, or a column of a frame in memory, got {type(values).__name__}: "
        "convert it, for instance to a NumPy array"
    )


def objects_of(cells: Iterable[object], n_cells: int) -> npt.NDArray[np.object_]:
    """Return an array of objects, shape (n_cells,); a list among them is one value."""
    return np.fromiter(cells, dtype=object, count=n_cells)
