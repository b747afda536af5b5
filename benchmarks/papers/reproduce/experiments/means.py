"""Errors of means (CoinPress, section 3): ‖μ̂ − μ‖₂, rows replaced, ρ-zCDP, a new table in every trial.

Panel: ``d``, ``n``, ``rho``, ``radius`` in units of √d, ``law`` of the rows and ``center`` of each coordinate; ``varies`` names
the one that x is; or ``steps``, of one run of which every ball is shown. Method: ``estimator`` of the library with ``options``,
``released`` for the step of the released program, or ``knows``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

import dpmoments as dpm
from benchmarks.papers import datasets as papers_datasets
from benchmarks.papers.reproduce.declaration import Method, Point

KNOWN_SCALE = ("coinpress", "naive", "karwa-vadhan")
KNOWN_RADIUS = (*KNOWN_SCALE, "symq")
"""What estimators are told: rows of unit variance, and the radius; coordinatewise ones have it for every coordinate."""
LAWS: Mapping[str, Callable[[int, int, np.random.Generator], np.ndarray]] = {
    "normal": lambda n, d, rng: rng.normal(size=(n, d)),
    "multivariate Laplace": papers_datasets.multivariate_laplace,
    "multivariate t, 3 df": lambda n, d, rng: papers_datasets.multivariate_student(n, d, rng, degrees=3.0),
    "independent Laplace": lambda n, d, rng: rng.laplace(0.0, math.sqrt(0.5), size=(n, d)),
    "independent t, 3 df": lambda n, d, rng: rng.standard_t(3, (n, d)) / math.sqrt(3.0),
}
"""All of unit covariance: the laws that the section names, and the independent coordinates of the released program."""


MEAN = (5.0, -3.0)
"""Of the rows of one run."""


def one_run(point: Point, methods: Sequence[Method]) -> Iterator[tuple[str, str, float]]:
    """Centre and radius of every ball of CoinPress in two dimensions (Figure 1), with ``steps`` from the first of ``radius``.

    Metrics of ball i: ``radius i``, ``distance i`` of the mean from the centre, and the centre, ``first i`` and ``second i``; the
    last distance is that of the estimate.
    """
    settings, mean = point.settings, np.array(MEAN)
    table = mean + point.rng("table").normal(size=(int(point.x), 2))
    for method in methods:
        released = dpm.release_mean(
            table, dpm.Schema.unbounded(2), rho=settings["rho"], neighbors="replace_one", mechanism="coinpress",
            radius=settings["radius"], scale=1.0, steps=settings["steps"], insecure_seed=point.seed(method.label), threads=1,
            **method.settings.get("options", {}),
        )  # fmt: skip
        for number, step in enumerate(released.diagnostics["steps"], start=1):
            center = np.array(step["center"])
            yield method.label, f"radius {number}", float(step["mean_radius"])
            yield method.label, f"distance {number}", float(np.linalg.norm(center - mean))
            yield method.label, f"first {number}", float(center[0])
            yield method.label, f"second {number}", float(center[1])
        yield method.label, "error", float(np.linalg.norm(released.mean - mean))


def measure(point: Point, methods: Sequence[Method]) -> Iterator[tuple[str, str, float]]:
    if "steps" in point.settings:
        yield from one_run(point, methods)
        return
    known: dict[str, Any] = {"law": "normal", "center": 0.0, "radius": 10.0, "rho": 0.5} | dict(point.settings)
    known[known["varies"]] = point.x
    n, d, rho = int(known["n"]), int(known["d"]), float(known["rho"])
    radius = float(known["radius"]) * (1.0 if known["varies"] == "radius" else math.sqrt(d))
    table = known["center"] + LAWS[known["law"]](n, d, point.rng("table"))
    truth = np.full(d, known["center"])
    for method in methods:
        seed = point.seed(method.label, dict(method.settings))
        yield method.label, "error", float(np.linalg.norm(estimate(table, method, radius, rho, seed) - truth))


def estimate(table: np.ndarray, method: Method, radius: float, rho: float, seed: int) -> np.ndarray:
    asked = method.settings
    if asked.get("knows") == "rows":
        mean: np.ndarray = table.mean(axis=0)
        return mean
    if "released" in asked:
        return released_mean(table, radius, rho, asked["released"], np.random.default_rng(seed))
    name = asked["estimator"]
    options = dict(asked.get("options", {}))
    options |= {"radius": radius} if name in KNOWN_RADIUS else {}
    options |= {"scale": 1.0} if name in KNOWN_SCALE else {}
    schema = dpm.Schema.unbounded(table.shape[1])
    released = dpm.release_mean(
        table, schema, rho=rho, neighbors="replace_one", mechanism=name, insecure_seed=seed, threads=1, **options
    )
    return released.mean


def tail(d: int, failure: float) -> float:
    """γ: a normal row is longer with at most this probability."""
    logarithm = math.log(1.0 / failure)
    return math.sqrt(d + 2.0 * math.sqrt(d * logarithm) + 2.0 * logarithm)


def released_mean(table: np.ndarray, radius: float, rho: float, steps: int, rng: np.random.Generator) -> np.ndarray:
    """MVMRec with the radii of the experiments: clip to min(√(r² + 6r + γ²), r + γ), ¾ of ρ for the last step."""
    n, d = table.shape
    shares = [1.0] if steps == 1 else [0.25 / (steps - 1)] * (steps - 1) + [0.75]
    center, gamma = np.zeros(d), tail(d, 0.01)
    for share in shares:
        clip = min(math.sqrt(radius**2 + 6.0 * radius + gamma**2), radius + gamma)
        moved = table - center
        lengths = np.linalg.norm(moved, axis=1)
        moved *= np.minimum(1.0, clip / np.maximum(lengths, 1e-300))[:, None]
        scale = 2.0 * clip / n / math.sqrt(2.0 * share * rho)
        center = center + moved.mean(axis=0) + rng.normal(0.0, scale, size=d)
        radius = gamma * math.sqrt(1.0 / n + scale**2)
    return center
