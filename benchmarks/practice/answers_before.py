"""Answers before the verdict layer and now, on Adult: contradictions in a regression with products, and shares of rare levels.

What was before is quoted from the trial that asked for the change; the same was not measured on the old version here.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Iterator

import numpy as np
import pyarrow as pa

import dpmoments as dpm
from benchmarks.pages import EVIDENCE, write_part
from benchmarks.practice.tables import chosen

PAGE = EVIDENCE / "regression-coverage.md"
NAMES = ("age", "education-num", "hours-per-week", "sex", "income")
PRODUCTS = (("age", "sex"), ("education-num", "sex"), ("age", "income"), ("education-num", "income"))
FACTOR = 1.5
"""A share is about right if it is within this factor of the table's."""


def adult() -> tuple[pa.Table, dpm.Schema]:
    frame, schema = chosen(names=["adult"])[0].make()
    return frame, schema


def of_regressions(epsilon: float, releases: int) -> np.ndarray:
    """Return the number of coefficients, of values outside their intervals, and of p < 0.05 beside an unbounded one."""
    frame, schema = adult()
    columns = [column for column in schema.table_columns if column.name in NAMES]
    with_products = dpm.Schema(*columns, *(dpm.Product(*pair) for pair in PRODUCTS))
    total = np.zeros(3, dtype=int)
    for seed in range(releases):
        release = dpm.release(frame.select(list(NAMES)), with_products, epsilon=epsilon, insecure_seed=seed)
        fit = release.ols("hours-per-week")
        limits, values = fit.conf_int().to_numpy()[1:], fit.params.to_numpy()[1:]
        outside = (values < limits[:, 0]) | (values > limits[:, 1])
        unbounded = ~np.isfinite(limits).all(axis=1)
        total += [len(values), int(outside.sum()), int((unbounded & (fit.pvalues.to_numpy()[1:] < 0.05)).sum())]
    return total


def of_shares(epsilon: float, releases: int) -> np.ndarray:
    """Return means over releases: levels, numbers, numbers within the factor, and bare zeros of levels that have rows."""
    frame, schema = adult()
    exact = dpm.release(frame, schema, epsilon=1e13, delta=1e-9, mechanism="gaussian", insecure_seed=0)
    levels = [index for index, name in enumerate(exact.feature_names) if "=" in name]
    shares, found = exact.mean[levels], []
    for seed in range(releases):
        answer = dpm.release(frame, schema, epsilon=epsilon, insecure_seed=seed).describe()
        cells = [row[1] for row in answer.table()[1:]]
        shown = np.array([float(cells[index]) if cells[index][:1].isdigit() else np.nan for index in levels])
        known = np.isfinite(shown)
        right = (shown <= FACTOR * shares) & (shown >= shares / FACTOR)
        found.append([len(levels), known.sum(), right.sum(), ((shown == 0.0) & (shares > 0.0)).sum()])
    return np.mean(found, axis=0)


def lines_of(releases: int) -> Iterator[str]:
    """Return the page's part."""
    fits = [of_regressions(epsilon, releases) for epsilon in (0.5, 1.0)]
    shares = [of_shares(epsilon, max(releases // 2, 2)) for epsilon in (1.0, 3.0)]
    right = "; ".join(f"{within / known:.2f} of {known:.0f} shown" for _, known, within, _ in shares)
    yield "| question | ε | before | now |"
    yield "| --- | --- | --- | --- |"
    outside, beside = ("; ".join(str(fit[place]) for fit in fits) for place in (1, 2))
    yield f"| coefficients outside their own 95 % interval | 0.5; 1 | 3 %; 38 % | {outside} of {fits[0][0]} |"
    yield f"| p < 0.05 with an unbounded interval | 0.5; 1 | 116; 37 of 280 | {beside} of {fits[0][0]} |"
    yield f"| shares of levels within a factor {FACTOR:g} | 1; 3 | 0.66; 0.79 of 99 | {right} |"
    yield f"| levels with rows that are shown as 0 | 1 | 12.5 of 99 | {shares[0][3]:.1f} |"


def main() -> None:
    """Measure, and write the page's part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--releases", type=int, default=16)
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    write_part(PAGE, "before", lines_of(options.releases))


if __name__ == "__main__":
    main()
