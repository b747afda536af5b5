"""What a fit and a prediction read: public columns from parameters, and tables by these columns, never changed."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import issparse
from sklearn.exceptions import DataConversionWarning
from sklearn.utils.validation import check_array

from dpmoments.plain_values import shown
from dpmoments.schema.columns import Boolean, Categorical, Column, Coordinate, Numeric
from dpmoments.schema.schema import Schema
from dpmoments.table_libraries import nw, pa

__all__ = [
    "array_of",
    "as_frame",
    "by_name",
    "class_column",
    "column_of",
    "feature_columns",
    "missing_cells_allowed",
    "names_alone",
    "names_for",
    "numeric_column",
    "public_schema",
    "require_same_length",
    "table_of",
    "target_column",
]

NO_BOUNDS = (
    "no public bounds were given (schema, bounds and row_norm are None): noise must hide a row wherever it may lie, and bounds "
    "read off the table would publish its extremes. Give schema=dpm.Schema(dpm.Numeric('age', 0, 100), …), or bounds=(low, high) "
    "of every column, known without looking at the table"
)


def public_schema(
    schema: object, bounds: object, row_norm: float | None, names: Sequence[str], target: Column | None = None
) -> Schema:
    """The schema that parameters state, for columns of these names; no cell is looked at.

    Parameters
    ----------
    schema : Schema or None
    bounds : pair of float or of array-like of shape (d,), or None
    row_norm : float or None
        One of the three is given.
    names : sequence of str
        Of the columns of X, for ``bounds`` and ``row_norm``.
    target : Column, optional
        One column more, beside ``bounds``.

    Raises
    ------
    ValueError, TypeError
        If none or several are given, or what is given makes no schema.
    """
    given = [
        name for name, value in (("schema", schema), ("bounds", bounds), ("row_norm", row_norm)) if value is not None
    ]
    if not given:
        raise ValueError(NO_BOUNDS)
    if len(given) > 1:
        raise ValueError(
            f"{' and '.join(given)} were given, and each says all that is public of the columns: keep one of them (a Schema has "
            "a row_norm of its own)"
        )
    if schema is not None:
        if not isinstance(schema, Schema):
            raise TypeError(
                f"schema must be a dpmoments.Schema, got {type(schema).__name__}: dpm.Schema(dpm.Numeric('age', 0, 100), …)"
            )
        return schema
    if row_norm is not None:
        return Schema(*(Coordinate(name) for name in names), row_norm=row_norm)
    numeric = [Numeric(name, low, high) for name, (low, high) in zip(names, _pairs(bounds, len(names)), strict=True)]
    return Schema(*numeric, *([] if target is None else [target]))


def _pairs(bounds: Any, n_columns: int) -> list[tuple[float, float]]:
    """A lower and an upper bound for every column."""
    if isinstance(bounds, str | bytes) or not hasattr(bounds, "__len__") or len(bounds) != 2:
        raise ValueError(
            f"bounds={shown(bounds)} are no pair: give (low, high), each a number or one number for every column"
        )
    ends = [np.asarray(end, dtype=np.float64) for end in bounds]
    if any(end.shape not in ((), (n_columns,)) for end in ends):
        shapes = " and ".join(str(end.shape) for end in ends)
        raise ValueError(
            f"bounds have shapes {shapes}, and X has {n_columns} columns: give a number, or one for every column"
        )
    low, high = (np.broadcast_to(end, n_columns).tolist() for end in ends)
    return list(zip(low, high, strict=True))


def feature_columns(schema: Schema, target: str | None) -> tuple[Column, ...]:
    """The schema's columns of the table that are not y."""
    return tuple(column for column in schema.table_columns if column.name != target)


def missing_cells_allowed(columns: Sequence[Column]) -> bool:
    """Whether the rule of every column takes an empty cell."""
    return all(column.missing != "error" for column in columns)


def as_frame(X: Any) -> nw.DataFrame[Any] | None:
    """X as a frame in memory (pandas, Polars, Arrow); None where it is an array, or a frame without names, which makes one.

    Raises
    ------
    TypeError
        If it is a table that is not in memory, or sparse.
    """
    if issparse(X):
        raise TypeError(
            "sparse input is not supported: noise is added to every cell of the moments all the same. Pass X.toarray()"
        )
    read = nw.from_native(X, pass_through=True)
    if isinstance(read, nw.LazyFrame) or isinstance(X, str) or hasattr(X, "__fspath__"):
        raise TypeError(
            f"fit takes arrays and frames in memory, got {type(X).__name__}: release it with dpm.release(table, schema, …), "
            "which reads files and engines, then call fit_release(release), which costs nothing"
        )
    named = isinstance(read, nw.DataFrame) and all(isinstance(name, str) for name in read.columns)
    return read if named else None


def names_for(columns: Sequence[str] | int, made_up: str = "x") -> tuple[str, ...]:
    """Names of the columns of X: its own, or ``x0``, ``x1``, … for so many without."""
    return tuple(f"{made_up}{place}" for place in range(columns)) if isinstance(columns, int) else tuple(columns)


def names_alone(names: Sequence[str]) -> pa.Table:
    """A table of no rows with columns of these names: a frame of which every scikit-learn reads the names, as of no Polars."""
    return pa.table({name: pa.array([], pa.null()) for name in names})


def array_of(X: Any, *, numeric: bool, allow_nan: bool, estimator: Any, at_least: int) -> Any:
    """X as an array of shape (n, d), by scikit-learn's checks; messages quote no cell and no number of rows.

    Raises
    ------
    ValueError, TypeError
        If it is none, is complex, or has a cell that may not be missing and is.
    """
    cells = _native(np.asarray(X))
    if cells.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {cells.ndim}D array instead: a table has rows and columns. Reshape your data using "
            "X.reshape(-1, 1) for a single column, or X.reshape(1, -1) for a single row"
        )
    try:
        return check_array(
            cells,
            dtype="numeric" if numeric else None,
            ensure_all_finite="allow-nan" if allow_nan else numeric,
            ensure_min_samples=at_least,
            estimator=estimator,
            input_name="X",
        )
    except ValueError as error:
        if "convert" not in str(error):
            raise
    raise ValueError(
        "X has a cell that is no number, and the columns were said to hold numbers: convert it, or describe its column as "
        "Categorical in a schema"
    )


def _native(values: Any) -> Any:
    """In this machine's order of bytes, which Arrow asks for."""
    return values if values.dtype.isnative else values.astype(values.dtype.newbyteorder("="))


def column_of(y: Any, *, of: Any) -> Any:
    """Y as an array of shape (n,); a column of shape (n, 1) is taken too, with scikit-learn's warning.

    Raises
    ------
    ValueError
        If there is none, it has more columns, or is complex.
    """
    if y is None:
        raise ValueError(f"This {type(of).__name__} estimator requires y to be passed, but the target y is None")
    values = _native(np.asarray(y))
    if values.ndim == 2 and values.shape[1] == 1:
        warnings.warn(
            DataConversionWarning("A column-vector y was passed when a 1d array was expected: pass y.ravel()"),
            stacklevel=4,
        )
        values = values[:, 0]
    if values.ndim != 1:
        raise ValueError(f"y should be a 1d array, one value a row, and has {values.ndim} dimensions")
    if values.dtype.kind == "c":
        raise ValueError("Complex data not supported: y must hold numbers or levels")
    return values


def by_name(frame: nw.DataFrame[Any] | None, array: Any, names: Sequence[str]) -> Any:
    """Rows by the schema's column names, as analyses read them: a frame that has these names, else a mapping by position."""
    if frame is None:
        return {name: array[:, place] for place, name in enumerate(names)}
    if frame.columns == list(names):
        return frame.to_native()
    return {name: frame[own].to_numpy() for name, own in zip(names, frame.columns, strict=True)}


def table_of(rows: Any, target: str | None, y: Any) -> Any:
    """The table that is released: rows by name and the target beside them; a new table, which shares what it can."""
    if isinstance(rows, Mapping):
        cells = dict(rows) if target is None else dict(rows) | {target: y}
        return pa.table({name: _arrow_column(name, column) for name, column in cells.items()})
    if target is None:
        return rows
    frame = nw.from_native(rows, eager_only=True)
    return frame.with_columns(nw.new_series(target, y, backend=frame.implementation)).to_native()


def _arrow_column(name: str, column: Any) -> pa.Array:
    try:
        return pa.array(column, from_pandas=True)
    except (pa.ArrowException, ValueError, TypeError):  # its message quotes a cell
        pass
    raise TypeError(f"column {name!r} holds cells of more than one type: convert it to numbers, or to text")


def require_same_length(n_rows: int, y: Any) -> None:
    """Raise ValueError, which says no number, unless y has as many values as X has rows."""
    if len(y) != n_rows:
        raise ValueError("X and y have different numbers of rows: y must have one value for each row of X")


def target_column(schema: Schema, target: str | None, kinds: tuple[type, ...], what: str) -> Column:
    """The column of a schema that y is.

    Raises
    ------
    ValueError
        If none is named, or it is not in the schema or of another kind.
    """
    if target is None:
        raise ValueError(
            f"target=None, and a schema names the column that y is: give target=…, one of {', '.join(map(repr, schema.names))}"
        )
    found = [column for column in schema.table_columns if column.name == target]
    if not found or not isinstance(found[0], kinds):
        raise ValueError(
            f"target={target!r} is no {what} column of the schema ({', '.join(map(repr, schema.names))}): name one, which y is"
        )
    return found[0]


def numeric_column(name: str, bounds: Any) -> Numeric:
    """The column of y between two numbers.

    Raises
    ------
    ValueError
        If they are no pair of bounds.
    """
    ((low, high),) = _pairs(bounds, 1)
    return Numeric(name, low, high)


def class_column(name: str, classes: object) -> Column:
    """The column of the classes that are listed.

    Raises
    ------
    ValueError
        If none are listed, or they are neither texts, whole numbers nor true and false.
    """
    if classes is None:
        raise ValueError(
            "classes=None: which classes there are must be public, and y is not looked at for them. Give classes=[…], or a "
            "schema with a Categorical column and target=…"
        )
    levels = np.asarray(classes)
    if levels.ndim != 1 or levels.dtype.kind not in "biuUSTO":
        raise ValueError(
            f"Unknown label type: classes={shown(classes)} must be a list of texts, whole numbers, or true and false"
        )
    if levels.dtype.kind == "b":
        return Boolean(name)
    return Categorical(name, levels.tolist())
