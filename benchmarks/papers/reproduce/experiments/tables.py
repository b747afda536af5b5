"""The tables of the papers, by the names that declarations have for them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, lru_cache

import numpy as np

from benchmarks.papers.amin.acceptance_counts import algorithm_3
from benchmarks.papers.summed_once import SummedOnce
from dpmoments import datasets
from dpmoments.papers import datasets as papers_datasets

__all__ = ["LOADERS", "summed", "table"]

LOADERS: Mapping[str, Callable[[], np.ndarray]] = {
    "wine": lambda: papers_datasets.standardized_unit_rows(datasets.wine()),
    "airfoil": lambda: papers_datasets.standardized_unit_rows(datasets.airfoil(), include_target=True),
    "adult": lambda: papers_datasets.standardized_unit_rows(datasets.adult(complete=False), unknown_is_a_level=True),
    "wine, replication": lambda: papers_datasets.replication_rows(datasets.wine(), standardize=False),
    "airfoil, replication": lambda: papers_datasets.replication_rows(datasets.airfoil(), standardize=False),
    "adult, replication": lambda: papers_datasets.replication_rows(datasets.adult(), standardize=True),
}
"""Rows of Amin et al. standardised, then of norm 1; the replication standardises the numeric columns of Adult alone, and shrinks
rows to norm 1."""
SYNTHETIC = "algorithm 3"


@cache
def loaded(name: str) -> np.ndarray:
    """A table read once a process."""
    return LOADERS[name]()


@lru_cache(maxsize=2)
def table(name: str, n_rows: int | None = None, n_features: int | None = None) -> np.ndarray:
    """A table of the papers; Algorithm 3's of a size."""
    if name == SYNTHETIC:
        if n_rows is None or n_features is None:
            raise ValueError("a table by Algorithm 3 needs its size: give n and d in the panel's settings")
        return algorithm_3(n_rows, n_features)
    return loaded(name)


@lru_cache(maxsize=6)
def summed(name: str, n_rows: int | None = None, n_features: int | None = None) -> SummedOnce:
    """The same, summed once a process."""
    return SummedOnce(table(name, n_rows, n_features))
