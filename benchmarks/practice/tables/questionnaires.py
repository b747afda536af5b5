"""Surveys of categories only: items of a few levels that share hidden attitudes, and columns on the person."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd

import dpmoments as dpm
from benchmarks.practice.tables.entry import Entry, Half, Made
from benchmarks.practice.tables.laws import FloatArray


def item_shares(rng: np.random.Generator, k: int, concentration: float) -> FloatArray:
    """Shares of k levels: the larger the concentration, the more alike."""
    return np.asarray(rng.dirichlet(np.full(k, concentration)), dtype=np.float64)


def questionnaire(
    n: int,
    levels: tuple[int, ...],
    seed: int,
    *,
    loading: float,
    concentration: float = 8.0,
    persons: tuple[int, ...] = (),
) -> Callable[[], Made]:
    """Items that grow with one of two hidden attitudes; ``persons`` are columns with few people in most levels."""

    def make() -> Made:
        rng = np.random.default_rng(seed)
        attitudes = rng.standard_normal((n, 2))
        cells, columns = {}, []
        for j, k in enumerate((*levels, *persons)):
            is_item = j < len(levels)
            weight = loading if is_item else loading / 2.0
            score = weight * attitudes[:, j % 2] + np.sqrt(1.0 - weight**2) * rng.standard_normal(n)
            ends = np.cumsum(item_shares(rng, k, concentration if is_item else 0.7))[:-1]
            places = (np.argsort(np.argsort(score)) + 0.5) / n
            known = tuple(f"answer{i}" for i in range(k))
            cells[f"q{j}"] = np.array(known)[np.searchsorted(ends, places)]
            columns.append(dpm.Categorical(f"q{j}", known))
        return pd.DataFrame(cells), dpm.Schema(*columns)

    return make


def entry(name: str, half: Half, make: Callable[[], Made]) -> Entry:
    return Entry(name, half, "questionnaires", False, make, None)


TABLES = (
    entry("items-12x4-5000", "design", questionnaire(5_000, (4,) * 12, 601, loading=0.5)),
    entry("items-8x5-3000", "design", questionnaire(3_000, (5,) * 8, 602, loading=0.7, concentration=3.0)),
    entry("items-and-persons-1500", "design", questionnaire(1_500, (3,) * 6, 603, loading=0.4, persons=(7, 5))),
    entry("items-10x5-4000", "judge", questionnaire(4_000, (5,) * 10, 611, loading=0.6)),
    entry("items-14x3-1000", "judge", questionnaire(1_000, (3,) * 14, 612, loading=0.4, concentration=4.0)),
    entry("items-6x6-20000", "judge", questionnaire(20_000, (6,) * 6, 613, loading=0.3)),
    entry(
        "items-and-persons-6000", "judge", questionnaire(6_000, (4, 4, 5, 5, 7), 614, loading=0.5, persons=(9, 4, 6))
    ),
)
