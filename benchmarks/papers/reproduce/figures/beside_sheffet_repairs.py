"""Beside Figure 4 of Sheffet: repairs of Gaussian noise, noise on the inverse, and pure ε on one regression."""

from __future__ import annotations

from benchmarks.papers.reproduce.declaration import Figure
from benchmarks.papers.reproduce.figures import beside, sheffet

FIGURE = Figure(
    name="beside-sheffet-repairs",
    paper=beside.SHEFFET,
    number="",
    title="Repairs of Gaussian noise, noise on the inverse and pure ε on one regression",
    experiment="regressions",
    axis="n",
    error=sheffet.ERROR,
    panels=sheffet.ONE,
    methods=(
        *beside.CLIPPED,
        *beside.LEAST_SHIFT,
        *beside.SHRUNK,
        beside.ADAPTED,
        *beside.PROJECTION_LESS,
        *beside.INVERSE,
        beside.PURE,
    ),
    trials=40,
    summary="median",
    reference=1.0,
    borrowed={
        "sheffet-1": ("dpmoments", "least squares"),
        "sheffet-2": tuple(method.label for method in sheffet.ALGORITHM_3_LESS),
        "sheffet-4": tuple(method.label for method in (*sheffet.ANALYZE_GAUSS, *sheffet.SCALED_GAUSS)),
    },
)
