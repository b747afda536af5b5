"""Private components of twenty genetic components of 1,387 Europeans (CoinPress, section 4.2): |dot products| with the
exact ones.

Panel: ``rho``; x is t, the number of steps; K = 30, rows enlarged twentyfold and turned at random in every trial, so that the
coordinates tell nothing of the components. Method: ``released`` for the released program, ``options`` of the library's
CoinPress, to which t is told where ``steps`` is true.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache

import numpy as np

from benchmarks.papers import datasets as papers_datasets
from benchmarks.papers.reproduce.declaration import Method, Point
from benchmarks.papers.reproduce.experiments.covariances import estimate, rotation

ENLARGED, SPREAD = 20.0, 30.0


@cache
def people() -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Rows, exact first two components, and the colour of each person's country."""
    known = papers_datasets.popres()
    table = ENLARGED * known.components * known.eigenvalues
    exact = np.linalg.eigh(np.cov(table.T, bias=True))[1][:, ::-1][:, :2]
    return table, exact, known.colors


def private_components(point: Point, method: Method) -> np.ndarray:
    """The first two, in the coordinates of the table, their signs those of the exact ones."""
    table, exact, _ = people()
    turn = rotation(table.shape[1], point.rng("rotation"))
    asked, rho, seed = method.settings, float(point.settings["rho"]), point.seed(method.label, dict(method.settings))
    if "released" in asked:
        at_t = {"released": int(point.x)}
    else:
        at_t = {"options": {"steps": int(point.x), "split": "experiments"}} if asked.get("steps") else {}
    found = estimate(table @ turn, Method(method.label, at_t), SPREAD, rho, seed)
    vectors = turn @ np.linalg.eigh((found + found.T) / 2.0)[1][:, ::-1][:, :2]
    signed: np.ndarray = vectors * np.sign((vectors * exact).sum(axis=0))
    return signed


def measure(point: Point, methods: Sequence[Method]) -> Iterator[tuple[str, str, float]]:
    exact = people()[1]
    for method in methods:
        products = (private_components(point, method) * exact).sum(axis=0)
        yield method.label, "first component", float(products[0])
        yield method.label, "second component", float(products[1])
