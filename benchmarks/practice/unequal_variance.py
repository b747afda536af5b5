"""How far textbook errors of coefficients and correlations are off on real tables.

Residuals do not have one variance there, and rows are not normal. No release is made: the errors are those of the table itself.
``pip install --group benchmarks`` has most of the tables, and statsmodels.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator

import numpy as np
import pandas as pd
import statsmodels.api as sm

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, head, write_part
from benchmarks.practice.tables import chosen, made
from dpmoments.base.values import FloatArray

PAGE = EVIDENCE / "regression-coverage.md"
LEAST_ROWS = 200
LEAST_OTHERS = 30
"""Fewer rows in which a column differs from its median have residuals that the fit makes small."""
SAME_ROWS = ("wine-cultivar", "adult", "adult-2000")
"""Tables of rows that another one has."""
MOST = 0.9999
"""Columns of a larger correlation are one column."""
OFF = 1.19
"""Ratio at which an interval of 95 % covers 90 %."""


def design(frame: pd.DataFrame, schema: dpm.Schema, target: str) -> tuple[FloatArray, FloatArray]:
    """Return a constant with all columns but the target, and the target.

    The most frequent level of each categorical is left out, and so is what fewer than ``LEAST_OTHERS`` rows differ in.
    """
    rows = frame.dropna()
    named = [column for column in schema.table_columns if column.name != target]
    levels = [column.name for column in named if isinstance(column, dpm.Categorical)]
    most = [f"{name}={rows[name].value_counts().index[0]}" for name in levels]
    columns = pd.get_dummies(rows[[column.name for column in named]], columns=levels, prefix_sep="=", dtype=float)
    columns = columns.drop(columns=most).astype(float)
    kept = columns.loc[:, (columns != columns.median()).sum() >= LEAST_OTHERS]
    return np.column_stack([np.ones(len(rows)), kept]), rows[target].to_numpy(dtype=float)


def ratios(z: FloatArray, y: FloatArray) -> FloatArray:
    """Return robust (HC1) over textbook standard errors of the slopes, shape (k − 1,)."""
    fit = sm.OLS(y, z / np.sqrt((z**2).mean(axis=0))).fit()
    return np.asarray((fit.HC1_se / fit.bse)[1:])


def of_correlations(frame: pd.DataFrame, schema: dpm.Schema) -> FloatArray:
    """Return sampling errors of the correlations of numbers over those of normal rows."""
    rows = frame.dropna()[[column.name for column in schema.table_columns if isinstance(column, dpm.Numeric)]]
    values = rows.to_numpy(dtype=float)
    values = values[:, (values != np.median(values, axis=0)).sum(axis=0) >= LEAST_OTHERS]
    u = (values - values.mean(axis=0)) / values.std(axis=0)
    result = []
    for i, j in zip(*np.tril_indices(u.shape[1], -1), strict=True):
        r = float(u[:, i] @ u[:, j]) / len(u)
        if abs(r) < MOST:
            psi = u[:, i] * u[:, j] - r * (u[:, i] ** 2 + u[:, j] ** 2) / 2.0
            result.append(np.sqrt((psi**2).mean()) / (1.0 - r**2))
    return np.array(result)


def measured() -> dict[str, tuple[int, FloatArray, FloatArray]]:
    """Return rows, ratios of slopes and of correlations of every real table that this machine has."""
    result = {}
    for entry in chosen():
        if not entry.real or entry.target is None or entry.name in SAME_ROWS:
            continue
        table = made(entry)
        if table is None:
            continue
        frame, schema = table
        frame = frame if isinstance(frame, pd.DataFrame) else frame.to_pandas()
        if entry.target in schema.names and len(frame.dropna()) >= LEAST_ROWS:
            z, y = design(frame, schema, entry.target)
            result[entry.name] = len(z), ratios(z, y), of_correlations(frame, schema)
    return result


def lines_of(found: dict[str, tuple[int, FloatArray, FloatArray]]) -> Iterator[str]:
    shares = (
        (1, "robust errors were {:.1f} to {:.1f} times these for 80 % of coefficients"),
        (2, "the error without this assumption was {:.1f} to {:.1f} times it for 80 % of pairs"),
    )
    for place, said in shares:
        every = np.concatenate([each[place] for each in found.values()])
        words = said.format(*np.quantile(every, [0.1, 0.9]))
        yield f"In short, on {len(found)} real tables, {words} ({len(every):,} in all)."
        yield ""
    off = [sum(bool((each[place] > OFF).any()) for each in found.values()) for place in (1, 2)]
    tables = " and ".join(map(str, off))
    yield f"In {tables} of the tables one is over {OFF} times the textbook error: its interval covers less than 90 %."
    yield ""
    yield from head("table | rows | coefficients | least | median | largest", "lrrrrr")
    for name, (n_rows, ratio, _) in found.items():
        quantiles = " | ".join(f"{value:.2f}" for value in np.quantile(ratio, [0.0, 0.5, 1.0]))
        yield f"| {name} | {n_rows:,} | {len(ratio)} | {quantiles} |"


if __name__ == "__main__":
    warnings.simplefilter("ignore")  # levels that follow from others
    write_part(PAGE, "unequal", lines_of(measured()))
