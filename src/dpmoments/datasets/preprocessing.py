"""Standardised rows of norm 1: for benchmarks on public data alone."""

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from dpmoments.datasets.tables import Dataset
from dpmoments.schema.schema import Categorical, Coordinate, Numeric


def standardized_unit_rows(data: Dataset, *, include_target: bool = False) -> NDArray[np.float64]:
    """Standardise every encoded column, then scale every row to norm 1, as for the tables of Amin et al. 2019.

    They say so of their synthetic tables (Algorithm 3); of Wine, Adult and Airfoil only that rows have norm at most 1.

    **Not private.** The means, the standard deviations and the columns left out are read off the rows, and no
    budget pays for them. This is for comparing mechanisms on public tables; a release encodes rows by their
    public schema.

    Every numeric column gives one feature and every other column one feature a level, in the order of the
    schema; a boolean column has two levels, false and true. Features that are constant on these rows (a level
    that never occurs) cannot be standardised and are left out.

    ==================================  =======  ========  =================
    table                                  rows  features  with the target
    ==================================  =======  ========  =================
    ``wine()``                              178        13  no target
    ``airfoil()``                         1,503         5                 6
    ``adult("train")``                   30,162       104               106
    ``adult("all")``                     45,222       104               106
    ==================================  =======  ========  =================

    Parameters
    ----------
    data
        A table without missing cells.
    include_target
        Whether ``data.target`` is a column like the others, or left out. State it, and the subset, beside any
        error measured on Adult: both change n or d.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        Standardised (population standard deviation) and then divided by the row's norm. A row that equals the
        mean in every feature is left at zero.

    Raises
    ------
    ValueError
        If a cell is missing, or no feature varies.

    Examples
    --------
    >>> from dpmoments.datasets import standardized_unit_rows, wine
    >>> standardized_unit_rows(wine()).shape
    (178, 13)
    """
    left_out = set() if include_target else {data.target}
    features = []
    for column in data.schema.columns:
        if column.name in left_out:
            continue
        cells = data.frame[column.name]
        if cells.null_count:
            raise ValueError(f"column {column.name!r} of {data.name} has missing cells; load the complete rows")
        if isinstance(column, Numeric | Coordinate):
            features.append(_array(cells).astype(np.float64))
        else:
            levels = column.levels if isinstance(column, Categorical) else (False, True)
            features.extend((_array(cells) == level).astype(np.float64) for level in levels)
    varying = [feature for feature in features if np.any(feature != feature[0])]
    if not varying:
        raise ValueError(f"no column of {data.name} varies, so none can be standardised")
    rows = np.column_stack(varying)
    rows -= rows.mean(axis=0)
    rows /= rows.std(axis=0)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    result: NDArray[np.float64] = rows / np.where(norms > 0.0, norms, 1.0)
    return result


def _array(cells: pa.ChunkedArray) -> NDArray[np.generic]:
    array: NDArray[np.generic] = cells.to_numpy()
    return array
