"""Frames given to an analysis, read by column name into the release's features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from dpmoments.base.errors import InputTypeError, InputValueError, listed
from dpmoments.base.table_libraries import nw, pa
from dpmoments.base.values import FloatArray
from dpmoments.schema.cell_reading import MISSING, UNKNOWN, level_codes, numbers
from dpmoments.schema.cells import ColumnTable, declared_column, series_cells
from dpmoments.schema.columns import Categorical
from dpmoments.schema.derived import DerivedColumn
from dpmoments.schema.schema import Schema, derived_values

_SHOWN_LEVELS = 6
"""Max number of levels named in a message."""


def feature_values(schema: Schema, frame: Any, features: Sequence[int]) -> FloatArray:
    """Read values of features in original units from a frame, by column name; none is clipped."""
    # An array is accepted if every column of the schema is a coordinate: its columns are the schema's, in order. NaN
    # stands for missing values, and for features that are not requested.
    wanted = set(features)
    slices = {column.name: index for column, index in schema.columns_with_slices}
    asked = [column for column in schema.columns if wanted & set(range(schema.n_features)[slices[column.name]])]
    named = {
        factor.name
        for column in asked
        for factor in (column.factors if isinstance(column, DerivedColumn) else [column])
    }
    if isinstance(frame, np.ndarray):
        if not schema.is_coordinates:
            raise InputTypeError(
                "an array has no column names, and rows are read by name: pass a pandas, Polars or Arrow frame, or "
                "a dict of columns"
            )
        if frame.ndim != 2 or frame.shape[1] != schema.n_features or frame.dtype.kind not in "biuf":
            raise InputValueError(
                f"an array of shape {frame.shape} is not one of rows of this release: its columns are the schema's "
                f"{schema.n_features}, in order"
            )
        return np.asarray(frame, dtype=np.float64)
    columns = [column for column in schema.columns if column.name in named and not isinstance(column, DerivedColumn)]
    cells = _cells_by_name(frame, [column.name for column in columns])
    n_rows = len(next(iter(cells.values()))) if cells else 0
    values = np.full((n_rows, schema.n_features), np.nan)
    for column in columns:
        if isinstance(column, Categorical):
            values[:, slices[column.name]] = _one_hot(cells[column.name], column)
        else:
            read, unreadable = numbers(cells[column.name], column)
            if unreadable.any():
                raise InputTypeError(
                    f"column '{column.name}' holds a value that a {column.kind} column of this schema cannot read"
                )
            values[:, slices[column.name]] = read[:, np.newaxis]
    return derived_values(schema, values)


def named_values(
    schema: Schema,
    frame: Any,
    names: Sequence[str],
    terms: Mapping[str, Mapping[str, FloatArray]] = MappingProxyType({}),
) -> FloatArray:
    """Read values of the named features and columns of terms, in their order, shape (m, k)."""
    # Like `feature_values`.
    own = {name: weights for term in terms.values() for name, weights in term.items()}
    every = np.eye(schema.n_features, schema.n_features + 1, 1)
    weights = np.array([own[name] if name in own else every[schema.feature_names.index(name)] for name in names])
    used = np.flatnonzero(weights[:, 1:].any(axis=0)).tolist()
    return np.asarray(weights[:, 0] + feature_values(schema, frame, used)[:, used] @ weights[:, 1:][:, used].T)


def _cells_by_name(frame: Any, names: Sequence[str]) -> dict[str, Any]:
    if hasattr(frame, "to_frame") and hasattr(frame, "index"):  # one row of a pandas frame
        frame = frame.to_frame().T
    refusal = InputTypeError(
        "rows are read from a pandas, Polars or Arrow frame, or from a dict of columns, not from "
        f"{type(frame).__name__}"
    )
    if isinstance(frame, Mapping):
        given = {name: frame[name] for name in names if name in frame}
        for name, values in given.items():
            if isinstance(values, str | bytes) or not hasattr(values, "__len__") or getattr(values, "ndim", 1) == 0:
                raise InputTypeError(
                    f"a dict of columns holds a list of values for each, and '{name}' holds none: give [value]"
                )
        frame = ColumnTable({name: declared_column(values, name) for name, values in given.items()})
    elif not isinstance(frame, ColumnTable) and not hasattr(frame, "columns") and not isinstance(frame, pa.RecordBatch):
        raise refusal
    if isinstance(frame, pa.RecordBatch):
        frame = pa.Table.from_batches([frame])
    present = [str(name) for name in getattr(frame, "column_names", getattr(frame, "columns", ()))]
    if absent := [name for name in names if name not in present]:
        alike = {name.strip().casefold(): name for name in present}
        close = [alike[key] for name in absent if (key := name.strip().casefold()) in alike]
        hint = f"; it has {listed(close)}" if close else ""
        raise InputValueError(f"the frame has no column {listed(absent)}{hint}: the names must be the release's")
    if repeated := [name for name in names if present.count(name) > 1]:
        raise InputValueError(f"the frame has more than one column named {listed(repeated)}: rename them")
    if isinstance(frame, ColumnTable):
        return {name: frame.cells(name) for name in names}
    native = frame.select(list(names)) if isinstance(frame, pa.Table) else frame
    if hasattr(native, "loc"):
        native = native.loc[:, list(names)]  # narwhals refuses repeated names, wanted or not
    read = nw.from_native(native, pass_through=True)
    if not isinstance(read, nw.DataFrame):
        raise refusal
    return {name: series_cells(read[name], name) for name in names}


def _one_hot(cells: Any, column: Categorical) -> FloatArray:
    codes = level_codes(cells, column)
    if n_unknown := int(np.count_nonzero(codes == UNKNOWN)):
        levels = ", ".join(map(repr, column.levels[:_SHOWN_LEVELS])) + (
            ", …" if len(column.levels) > _SHOWN_LEVELS else ""
        )
        raise InputValueError(
            f"{n_unknown} of the frame's {len(codes)} rows hold a value of '{column.name}' outside its levels, "
            f"{levels}: leave those rows out, or give them a level"
        )
    values = np.zeros((len(codes), len(column.levels)))
    values[np.arange(len(codes)), np.where(codes == MISSING, 0, codes)] = 1.0
    values[codes == MISSING] = np.nan
    return values
