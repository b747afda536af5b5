"""The regressions of the peers' table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

import dpmoments as dpm
from benchmarks.papers import datasets as papers_datasets
from benchmarks.practice.tables import Made, chosen, made


def of_collection(name: str) -> Callable[[], Made | None]:
    """A table of ``benchmarks/practice/tables``; None where this machine does not have it."""

    def make() -> Made | None:
        (entry,) = chosen(None, [name])
        return made(entry)

    return make


def algorithm_3() -> Made:
    """10,000 correlated rows of norm 1 with 20 features."""
    rows = papers_datasets.amin_synthetic(10_000, 20, np.random.default_rng(3))
    return rows, dpm.Schema.unit_ball(20)


@dataclass(frozen=True)
class Case:
    """A table, and the targets that are regressed on all its other columns.

    Attributes
    ----------
    name : str
    make : callable
    targets : tuple of str
    """

    name: str
    make: Callable[[], Made | None]
    targets: tuple[str, ...]

    def table(self) -> Iterator[Made]:
        found = self.make()
        if found is not None:
            yield found


CASES = (
    Case("Wine", of_collection("wine"), ("alcohol",)),
    Case("Diabetes", of_collection("diabetes"), ("target",)),
    Case("Airfoil", of_collection("airfoil"), ("sound_pressure_level",)),
    Case("Algorithm 3", algorithm_3, ("x0",)),
    Case("Adult", of_collection("adult"), ("hours-per-week", "income")),
    Case("Digits", of_collection("digits"), ("pixel_4_4",)),
    Case("Flower", of_collection("flower-pixels"), ("blue",)),
)
"""No constant of the library was chosen on Algorithm 3, Digits (scikit-learn's) or Flower (the pixels of a photograph)."""
