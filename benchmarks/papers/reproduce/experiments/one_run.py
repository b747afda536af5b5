"""A run of CoinPress for a mean in two dimensions (Biswas et al. 2020, Figure 1): centre and radius of every ball.

Panel: ``rho``, ``steps``, ``radius`` of the first ball; x is n. Metrics of ball i: ``radius i``, ``distance i`` of the
mean from the centre, and the centre, ``first i`` and ``second i``; the last distance is that of the estimate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

import dpmoments as dpm
from benchmarks.papers.reproduce.declaration import Method, Point

MEAN = (5.0, -3.0)


def measure(point: Point, methods: Sequence[Method]) -> Iterator[tuple[str, str, float]]:
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
