"""How far textbook standard errors are off on real tables, whose residuals do not have one variance.

No release is made: both errors are those of the table itself. ``pip install dpmoments[benchmarks]`` has most of the tables.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pandas as pd

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, write_part
from benchmarks.practice.tables import chosen, made

FloatArray = npt.NDArray[np.float64]

PAGE = EVIDENCE / "regression-coverage.md"
LEAST_ROWS = 200
LEAST_OTHERS = 30
"""Fewer rows in which a column differs from its median have residuals that the fit makes small."""
SAME_ROWS = ("wine-cultivar", "adult", "adult-2000")
"""Tables of rows that another one has."""
OFF = 1.19
"""Ratio at which an interval of 95 % covers 90 %."""


def design(frame: pd.DataFrame, schema: dpm.Schema, target: str) -> tuple[FloatArray, FloatArray]:
    """Return a constant with all columns but the target, and the target.

    The most frequent level of each categorical is left out, and so is what fewer than ``LEAST_OTHERS`` rows differ in.
    """
    rows = frame.dropna()
    y = rows[target].to_numpy(dtype=float)
    columns: dict[str, FloatArray] = {"": np.ones(len(rows))}
    for column in schema.table_columns:
        if column.name == target:
            continue
        values = rows[column.name]
        if isinstance(column, dpm.Categorical):
            most = values.value_counts().index[0]
            columns |= {
                f"{column.name}={level}": (values == level).to_numpy(dtype=float)
                for level in values.unique()
                if level != most
            }
        else:
            columns[column.name] = values.to_numpy(dtype=float)
    kept = [
        values for name, values in columns.items() if not name or (values != np.median(values)).sum() >= LEAST_OTHERS
    ]
    return np.column_stack(kept), y


def ratios(z: FloatArray, y: FloatArray) -> FloatArray:
    """Return robust (HC1) over textbook standard errors of the slopes, shape (k − 1,)."""
    n, k = z.shape
    scale = np.sqrt((z**2).mean(axis=0))
    z = z / scale
    inverse = np.linalg.inv(z.T @ z)
    residual = y - z @ (inverse @ (z.T @ y))
    scores = z * residual[:, None]
    robust = n / (n - k) * np.diag(inverse @ scores.T @ scores @ inverse)
    textbook = float(residual @ residual) / (n - k) * np.diag(inverse)
    return np.asarray(np.sqrt(robust / textbook)[1:])


def measured() -> dict[str, tuple[int, FloatArray]]:
    """Return the rows, and the ratios of the slopes, of every real table that this machine has."""
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
            result[entry.name] = len(z), ratios(z, y)
    return result


def summary(found: dict[str, tuple[int, FloatArray]]) -> str:
    """Return the sentence that answers without products quote."""
    every = np.concatenate([ratio for _, ratio in found.values()])
    low, high = np.quantile(every, [0.1, 0.9])
    return (
        f"on {len(found)} real tables, robust errors were {low:.1f} to {high:.1f} times these for 80 % of coefficients"
    )


def lines_of(found: dict[str, tuple[int, FloatArray]]) -> Iterator[str]:
    """Return the page's part."""
    off = sum(bool((ratio > OFF).any()) for _, ratio in found.values())
    yield (
        f"In short, {summary(found)} ({sum(len(ratio) for _, ratio in found.values())} in all). In {off} of the tables the "
        f"robust error of a coefficient is over {OFF} times the textbook one: its interval of 95 % covers less than 90 %."
    )
    yield ""
    yield "| table | rows | coefficients | least | median | largest |"
    yield "| --- | ---: | ---: | ---: | ---: | ---: |"
    for name, (n_rows, ratio) in found.items():
        quantiles = " | ".join(f"{value:.2f}" for value in np.quantile(ratio, [0.0, 0.5, 1.0]))
        yield f"| {name} | {n_rows:,} | {len(ratio)} | {quantiles} |"


def main() -> None:
    """Measure, and write the page's part."""
    write_part(PAGE, "unequal", lines_of(measured()))


if __name__ == "__main__":
    main()
