"""The tables of the papers, by the names that declarations have for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache, partial

import numpy as np

import dpmoments as dpm
from benchmarks.papers import datasets as papers_datasets
from benchmarks.papers.summed_once import SummedOnce, summed_once
from dpmoments import datasets
from dpmoments.datasets import Dataset


def features(data: Dataset, *, include_target: bool) -> np.ndarray:
    """Numeric columns in their units, other columns as indicators of the values that occur, a missing one among them."""
    columns = []
    for column in data.schema.columns:
        if column.name != data.target or include_target:
            cells = np.asarray(data.frame[column.name].to_pylist())
            if isinstance(column, dpm.Numeric):
                columns.append(cells.astype(np.float64))
            else:
                columns += [(cells == value).astype(np.float64) for value in sorted(set(cells), key=str)]
    return np.column_stack(columns)


def scaled(rows: np.ndarray, columns: str, norm: str) -> np.ndarray:
    """Rows of norm at most 1: columns standardized, in [0, 1] or centered; then each row, or the longest, has norm 1."""
    if columns == "standardized":
        rows = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    elif columns == "ranges":
        rows = (rows - rows.min(axis=0)) / np.ptp(rows, axis=0)
    elif columns == "centered ranges":
        rows = (rows - rows.mean(axis=0)) / np.ptp(rows, axis=0)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    longest = norms.max() * (1.0 + 1e-12)
    result: np.ndarray = rows / (longest if norm == "longest" else np.where(norms > 0.0, norms, 1.0))
    return result


SCALINGS = {
    "standardized, longest row": ("standardized", "longest"),
    "ranges, longest row": ("ranges", "longest"),
    "ranges, every row": ("ranges", "every"),
    "centered ranges, longest row": ("centered ranges", "longest"),
    "units, longest row": ("units", "longest"),
}
"""Ways to bring rows to norm at most 1, where a paper says no more."""
RAW: Mapping[str, Callable[[], np.ndarray]] = {
    "wine": lambda: features(datasets.wine(), include_target=False),
    "airfoil": lambda: features(datasets.airfoil(), include_target=True),
    "adult": lambda: features(datasets.adult(complete=False), include_target=False),
}
LOADERS: Mapping[str, Callable[[], np.ndarray]] = {
    **{
        f"{name}, {scaling}": lambda raw=raw, how=how: scaled(raw(), *how)  # type: ignore[misc]
        for name, raw in RAW.items()
        for scaling, how in SCALINGS.items()
    },
    "wine": lambda: papers_datasets.standardized_unit_rows(datasets.wine()),
    "wine, target": lambda: papers_datasets.standardized_unit_rows(datasets.wine(cultivar=True), include_target=True),
    "airfoil": lambda: papers_datasets.standardized_unit_rows(datasets.airfoil(), include_target=True),
    "airfoil, no target": lambda: papers_datasets.standardized_unit_rows(datasets.airfoil()),
    "adult": lambda: papers_datasets.standardized_unit_rows(datasets.adult(complete=False), unknown_is_a_level=True),
    "adult, complete": lambda: papers_datasets.standardized_unit_rows(datasets.adult(), include_target=True),
    "wine, replication": lambda: papers_datasets.replication_rows(datasets.wine(), standardize=False),
    "airfoil, replication": lambda: papers_datasets.replication_rows(datasets.airfoil(), standardize=False),
    "adult, replication": lambda: papers_datasets.replication_rows(datasets.adult(), standardize=True),
}
"""Rows of Amin et al. standardised, then of norm 1; the replication standardises the numeric columns of Adult alone, and shrinks
rows to norm 1."""
SYNTHETIC = "algorithm 3"


def _points_centered(n_rows: int, n_features: int, rng: np.random.Generator) -> np.ndarray:
    rows = papers_datasets.amin_synthetic(n_rows, n_features, rng, columns="drawn")
    rows -= rows.mean(axis=1, keepdims=True)
    return rows / np.linalg.norm(rows, axis=1, keepdims=True)


NORMALIZATIONS: Mapping[str, Callable[[int, int, np.random.Generator], np.ndarray]] = {
    "longest row": partial(papers_datasets.amin_synthetic, scaling="largest"),
    "features centered": partial(papers_datasets.amin_synthetic, columns="centered"),
    "points centered": _points_centered,
}
"""Other readings of Algorithm 3's last step."""


@cache
def loaded(name: str) -> np.ndarray:
    return LOADERS[name]()


@lru_cache(maxsize=2)
def table(name: str, n_rows: int | None = None, n_features: int | None = None) -> np.ndarray:
    """A table of the papers; Algorithm 3's of a size."""
    if name.startswith(SYNTHETIC):
        if n_rows is None or n_features is None:
            raise ValueError("a table by Algorithm 3 needs its size: give n and d in the panel's settings")
        if reading := name.partition(", ")[2]:
            return NORMALIZATIONS[reading](n_rows, n_features, np.random.default_rng([n_rows, n_features]))
        return papers_datasets.algorithm_3(n_rows, n_features)
    return loaded(name)


@lru_cache(maxsize=6)
def summed(name: str, n_rows: int | None = None, n_features: int | None = None) -> SummedOnce:
    return summed_once(table(name, n_rows, n_features))
