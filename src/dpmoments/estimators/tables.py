"""Input of fits and predictions.

Public columns from parameters, and tables of these columns, never modified.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning

from dpmoments.cells.objects import ColumnTable, declared_array, declared_column, objects_of
from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.foundation.table_libraries import nw, pa
from dpmoments.messages.message import Message
from dpmoments.messages.wording import closest
from dpmoments.schema.columns import Boolean, Categorical, Column, Coordinate
from dpmoments.schema.numeric import Numeric
from dpmoments.schema.schema import Schema


def public_schema(
    schema: object, bounds: object, row_norm: float | None, names: Sequence[str], target: Column | None = None
) -> Schema:
    """Return the schema that ``schema``, ``bounds`` or ``row_norm`` states for these names.

    It reads no value.
    """
    given = [
        name for name, value in (("schema", schema), ("bounds", bounds), ("row_norm", row_norm)) if value is not None
    ]
    if not given:
        raise InputValueError(Message("public-bounds-needed"))
    if len(given) > 1:
        raise InputValueError(Message("several-descriptions", given=" and ".join(given)))
    if schema is not None:
        if not isinstance(schema, Schema):
            raise InputTypeError(
                Message(
                    "wrong-type",
                    parameter="schema",
                    expected="schema",
                    got=type(schema).__name__,
                )
            )
        return schema
    if row_norm is not None:
        return Schema(*(Coordinate(name) for name in names), row_norm=row_norm)
    numeric = [Numeric(name, low, high) for name, (low, high) in zip(names, _pairs(bounds, len(names)), strict=True)]
    return Schema(*numeric, *([] if target is None else [target]))


def _pairs(bounds: Any, n_columns: int) -> list[tuple[float, float]]:
    """Return a lower and an upper bound for every column."""
    if isinstance(bounds, str | bytes) or not hasattr(bounds, "__len__") or len(bounds) != 2:
        raise InputValueError(
            Message(
                "out-of-range",
                parameter="bounds",
                value=bounds,
                expected="low-and-high",
            )
        )
    ends = [np.asarray(end, dtype=np.float64) for end in bounds]
    if any(end.shape not in ((), (n_columns,)) for end in ends):
        shapes = " and ".join(str(end.shape) for end in ends)
        raise InputValueError(Message("bounds-shape", shapes=shapes, columns=n_columns))
    low, high = (np.broadcast_to(end, n_columns).tolist() for end in ends)
    return list(zip(low, high, strict=True))


def feature_columns(schema: Schema, target: str | None) -> tuple[Column, ...]:
    """Return the schema's table columns except y."""
    return tuple(column for column in schema.table_columns if column.name != target)


def missing_cells_allowed(columns: Sequence[Column]) -> bool:
    """Return True if every column's rule accepts missing values."""
    return all(column.missing != "error" for column in columns)


@dataclass(frozen=True, eq=False, repr=False)
class Features:
    """X as given, read only by its declared types.

    Attributes
    ----------
    given : frame or ndarray
        Accepted by :func:`dpmoments.release`: a frame with names, else an array of numbers or objects; None for a
        pandas frame without names.
    names : tuple of str or None
        Column names, if any.
    columns : tuple of ndarray or narwhals Series
        In order.
    """

    given: Any
    names: tuple[str, ...] | None
    columns: tuple[Any, ...]
    n_rows: int

    @classmethod
    def of(cls, X: Any, *, n_columns: int | None = None) -> Features:
        """Read a frame or array in memory, or a sequence of rows as objects.

        An empty sequence has ``n_columns``.
        """
        if issparse(X):
            raise InputTypeError(Message("sparse-input"))
        frame = _frame_of(X)
        if isinstance(frame, nw.LazyFrame) or isinstance(X, str) or hasattr(X, "__fspath__") or _is_of_dask(X):
            raise InputTypeError(Message("fit-in-memory", got=type(X).__name__))
        if not isinstance(frame, nw.DataFrame):
            array = _table_array(X, n_columns)
            return cls(array, None, tuple(array.T), len(array))
        if all(isinstance(name, str) for name in frame.columns):
            columns = tuple(frame[name] for name in frame.columns)
            return cls(frame.to_native(), tuple(frame.columns), columns, len(frame))
        columns = tuple(declared_column(X.iloc[:, index], f"x{index}") for index in range(X.shape[1]))
        return cls(None, None, columns, len(frame))

    def own_names(self, unit: str | None) -> tuple[str, ...]:
        """Return the column names without the privacy unit's.

        Unnamed columns are ``x0``, ``x1`` and so on.
        """
        if self.names is None:
            return tuple(f"x{index}" for index in range(len(self.columns)))
        return tuple(name for name in self.names if name != unit)

    def beside(self, names: Sequence[str], target: str | None = None, y: Any = None) -> Any:
        """Return the table to release: columns by the schema's names, and the target.

        Nothing is copied.
        """
        if target is None and self.given is not None:
            return self.given
        if target is not None and len(y) != self.n_rows:
            raise InputValueError(Message("lengths-differ"))
        columns = dict(zip(names if self.names is None else self.names, self.columns, strict=True))
        return ColumnTable(columns if target is None else columns | {target: y})

    def by_position(self, names: Sequence[str], unit: str | None) -> ColumnTable:
        """Return the columns in order under other names, without the privacy unit's."""
        kept = [column for index, column in enumerate(self.columns) if self.names is None or self.names[index] != unit]
        return ColumnTable(dict(zip(names, kept, strict=True)))


def names_alone(names: Sequence[str]) -> pa.Table:
    """Return an empty table with these column names.

    Every scikit-learn version can read its names.
    """
    return pa.table({name: pa.array([], pa.null()) for name in names})


def _frame_of(X: Any) -> Any:
    """Wrap a frame with narwhals, return anything else."""
    # Refuse duplicate names, which can be values of a record.
    if isinstance(X, pa.RecordBatch):
        X = pa.Table.from_batches([X])
    twice = hasattr(X, "iloc") and getattr(getattr(X, "columns", None), "has_duplicates", False)  # pandas
    if twice or (isinstance(X, pa.Table) and len(set(X.column_names)) < X.num_columns):
        raise InputValueError(Message("frame-columns-twice"))
    return nw.from_native(X, pass_through=True)


def _is_of_dask(X: Any) -> bool:
    return type(X).__module__.split(".")[0] == "dask"


def _table_array(X: Any, n_columns: int | None) -> npt.NDArray[Any]:
    """Convert X to an array of shape (n, d), of its declared type."""
    array = _rows_one_by_one(X, n_columns) if isinstance(X, list | tuple) else np.asarray(declared_array(X, "X"))
    if array.ndim != 2:
        raise InputValueError(Message("not-two-dimensional", ndim=array.ndim))
    if array.dtype.kind == "c":
        raise InputValueError(Message("complex-table"))
    if array.dtype.names is not None or array.dtype.kind not in "biufO":
        raise InputTypeError(Message("table-not-of-numbers", type=array.dtype.type.__name__))
    if array.shape[1] == 0:
        raise InputValueError(Message("no-table-features"))
    return array


def _rows_one_by_one(X: Sequence[Any], n_columns: int | None) -> npt.NDArray[Any]:
    """Convert a sequence of rows to an array of objects, values unchanged."""
    if not X and n_columns is not None:
        return np.empty((0, n_columns), dtype=object)
    rows = [_cells_of(row) for row in X]
    whole = [row for row in rows if row is not None]
    if not whole or len(whole) < len(rows):
        raise InputValueError(Message("not-all-rows"))
    width = len(whole[0])
    if any(len(row) != width for row in whole):
        raise InputValueError(Message("rows-of-other-lengths"))
    return objects_of((cell for row in whole for cell in row), width * len(whole)).reshape(len(whole), width)


def _cells_of(row: Any) -> Any | None:
    """Return the values of a row as a sized iterable; None if it is not a row."""
    try:
        cells = row if isinstance(row, list | tuple) else declared_array(row, "a row of X")
    except TypeError:
        return None
    return cells if isinstance(cells, list | tuple) or cells.ndim == 1 else None


def column_of(y: Any, *, of: Any) -> Any:
    """Convert y to an array or series of n values.

    Shape (n, 1) is accepted with scikit-learn's warning.
    """
    if y is None:
        raise InputValueError(Message("target-required", estimator=type(of).__name__))
    column = y
    if isinstance(_frame_of(y), nw.DataFrame):
        columns = Features.of(y).columns
        column = columns[0] if len(columns) == 1 else np.empty((0, len(columns)))
    elif isinstance(y, np.ndarray) and y.ndim == 2 and y.shape[1] == 1:
        column = y.reshape(-1) if isinstance(y, np.ma.MaskedArray) else np.asarray(y).reshape(-1)
    if column is not y:
        warnings.warn(
            DataConversionWarning("A column-vector y was passed when a 1d array was expected: pass y.ravel()"),
            stacklevel=4,
        )
    if isinstance(column, np.ndarray) and column.ndim != 1:
        raise InputValueError(Message("target-dimensions", ndim=column.ndim))
    if isinstance(column, np.ndarray) and column.dtype.kind == "c":
        raise InputValueError(Message("complex-target"))
    return declared_column(column, "y")


def target_column(schema: Schema, target: str | None, kinds: tuple[type, ...], what: str) -> Column:
    """Return the schema column of y."""
    if target is None:
        raise InputValueError(Message("target-needed", columns=schema.names))
    result = [column for column in schema.table_columns if column.name == target]
    if not result or not isinstance(result[0], kinds):
        facts = {"name": str(target), "kind": what, "columns": schema.names}
        raise InputValueError(Message("target-not-a-column", **facts, **closest(target, schema.names)))
    return result[0]


def numeric_column(name: str, bounds: Any) -> Numeric:
    """Return the column of a y between two numbers."""
    ((low, high),) = _pairs(bounds, 1)
    return Numeric(name, low, high)


def class_column(name: str, classes: object) -> Column:
    """Return the column of the listed classes."""
    if classes is None:
        raise InputValueError(Message("classes-needed"))
    levels = _listed(classes)
    flags = [isinstance(level, bool) for level in levels]
    if not all(isinstance(level, str | Integral) for level in levels) or (any(flags) and not all(flags)):
        raise InputValueError(Message("unknown-label-type", classes=classes))
    return Boolean(name) if levels and all(flags) else Categorical(name, tuple(levels))


def _listed(classes: Any) -> list[Any]:
    """Convert public levels to a list, NumPy types to Python's."""
    listed = classes if isinstance(classes, list | tuple) or not hasattr(classes, "__array__") else np.asarray(classes)
    if isinstance(listed, str) or not hasattr(listed, "__iter__") or np.ndim(listed) > 1:
        return [classes]
    return [level.item() if isinstance(level, np.generic) else level for level in listed]
