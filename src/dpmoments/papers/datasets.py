"""Rows of norm at most 1 as the papers made them, by statistics of the rows: for benchmarks on public data alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dpmoments.datasets.tables import Dataset
from dpmoments.foundation.table_libraries import pa, pc
from dpmoments.schema.schema import Boolean, Categorical, Column, Coordinate, Numeric


def standardized_unit_rows(
    data: Dataset, *, include_target: bool = False, unknown_is_a_level: bool = False
) -> NDArray[np.float64]:
    """Standardise every encoded column, then scale every row to norm 1, as for the tables of Amin et al. 2019.

    They say so of their synthetic tables (Algorithm 3); of Wine, Adult and Airfoil only that rows have norm at most 1.

    **Not private.** The means, the standard deviations and the columns left out are read off the rows, and no
    budget pays for them. This is for comparing mechanisms on public tables; a release encodes rows by their
    public schema.

    Every numeric column gives one feature and every other column one feature a level, in the order of the
    schema; a boolean column has two levels, false and true. Features that are constant on these rows (a level
    that never occurs) cannot be standardised and are left out.

    ====================================  =======  ========  ===============
    table                                    rows  features  with the target
    ====================================  =======  ========  ===============
    ``wine(cultivar=True)``                   178        13               16
    ``airfoil()``                           1,503         5                6
    ``adult("train")``                     30,162       104              106
    ``adult("all")``                       45,222       104              106
    ``adult("all", complete=False)`` [1]   48,842       108              110
    ====================================  =======  ========  ===============

    [1] With `unknown_is_a_level`: the form in which Amin et al. have it, by their counts of rows and features.

    Parameters
    ----------
    data
        A table without missing cells, or with `unknown_is_a_level` one whose numeric columns have none.
    include_target
        Whether ``data.target`` is a column like the others, or left out. State it, and the subset, beside any
        error measured on Adult: both change n or d.
    unknown_is_a_level
        Whether a missing cell of a column with levels is a level of its own, the last ("?" in the published
        file of Adult).

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        Standardised (population standard deviation) and then divided by the row's norm. A row that equals the
        mean in every feature is left at zero.

    Raises
    ------
    ValueError
        If a cell is missing that is no level, or no feature varies.

    Examples
    --------
    >>> from dpmoments.datasets import standardized_unit_rows, wine
    >>> standardized_unit_rows(wine()).shape
    (178, 13)
    """
    left_out = set() if include_target else {data.target}
    features = []
    for column, cells in _columns(data, left_out, unknown_is_a_level=unknown_is_a_level):
        if not isinstance(column, Categorical | Boolean):
            features.append(_array(cells).astype(np.float64))
        else:
            features.extend(_indicators(cells, _levels(column)))
            if unknown_is_a_level:
                features.append(_array(pc.is_null(cells)).astype(np.float64))
    varying = [feature for feature in features if np.any(feature != feature[0])]
    if not varying:
        raise ValueError(f"no column of {data.name} varies, so none can be standardised")
    rows = _standardized(np.column_stack(varying))
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    result: NDArray[np.float64] = rows / np.where(norms > 0.0, norms, 1.0)
    return result


def replication_rows(data: Dataset, *, standardize: bool) -> NDArray[np.float64]:
    """Encode a table without its target as the student replication of Amin et al. 2019 does, longer rows shrunk to norm 1.

    Numeric columns come first, then the others with one feature a level but the first, levels in alphabetical
    order. A level of the schema that never occurs has a feature, which is zero: so Adult, whose codebook has
    people who never worked and whose complete rows have none, comes to 97 features. (The report does not say how
    it comes to 97; its program does. Which level of a column is left out depends on the version of what it reads
    Adult with; the number of features does not.)

    **Not private** where it standardises, as `standardized_unit_rows`.

    ================  ===========  ======  ========
    table             standardize    rows  features
    ================  ===========  ======  ========
    ``wine()``        False           178        13
    ``airfoil()``     False         1,503         5
    ``adult("all")``  True         45,222        97
    ================  ===========  ======  ========

    Parameters
    ----------
    data
        A table without missing cells.
    standardize
        Whether numeric columns are brought to mean 0 and variance 1 (population) first: in the replication those
        of Adult are, those of Wine and Airfoil not. Features of levels stay 0 and 1.

    Returns
    -------
    ndarray of shape (n_rows, n_features)
        Rows of norm at most 1: longer ones divided by their norm, the others as they are.

    Raises
    ------
    ValueError
        If a cell is missing, or a numeric column to be standardised is constant.

    Examples
    --------
    >>> from dpmoments.datasets import adult, replication_rows
    >>> replication_rows(adult(), standardize=True).shape
    (45222, 97)
    """
    numeric, indicators = [], []
    for column, cells in _columns(data, {data.target}, unknown_is_a_level=False):
        if not isinstance(column, Categorical | Boolean):
            feature = _array(cells).astype(np.float64)
            if standardize and not np.any(feature != feature[0]):
                raise ValueError(f"column {column.name!r} of {data.name} is constant, so it cannot be standardised")
            numeric.append(feature)
        else:
            indicators += _indicators(cells, sorted(_levels(column), key=str)[1:])
    rows = np.column_stack(numeric + indicators)
    if standardize:
        rows[:, : len(numeric)] = _standardized(rows[:, : len(numeric)])
    result: NDArray[np.float64] = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1.0)
    return result


def _columns(
    data: Dataset, left_out: set[str | None], *, unknown_is_a_level: bool
) -> Iterator[tuple[Column, pa.ChunkedArray]]:
    """Columns and their cells; ValueError where a cell is missing that is no level."""
    for column in data.schema.table_columns:
        if column.name in left_out:
            continue
        cells = data.frame[column.name]
        if cells.null_count and isinstance(column, Numeric | Coordinate):
            raise ValueError(f"numeric column {column.name!r} of {data.name} has missing cells; load the complete rows")
        if cells.null_count and not unknown_is_a_level:
            raise ValueError(
                f"column {column.name!r} of {data.name} has missing cells; load the complete rows, or state that "
                "unknown is a level where the encoding has that choice"
            )
        yield column, cells


def _levels(column: Categorical | Boolean) -> tuple[str | int, ...]:
    return tuple(column.levels) if isinstance(column, Categorical) else (False, True)


def _indicators(cells: pa.ChunkedArray, levels: Sequence[str | int]) -> list[NDArray[np.float64]]:
    values = _array(cells)
    return [(values == level).astype(np.float64) for level in levels]


def _standardized(columns: NDArray[np.float64]) -> NDArray[np.float64]:
    centred = columns - columns.mean(axis=0)
    result: NDArray[np.float64] = centred / centred.std(axis=0)
    return result


def _array(cells: pa.ChunkedArray) -> NDArray[np.generic]:
    array: NDArray[np.generic] = cells.to_numpy()
    return array
