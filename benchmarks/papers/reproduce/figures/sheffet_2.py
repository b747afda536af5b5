"""Sheffet, Figure 2: additive Wishart noise, and less its mean."""

from __future__ import annotations

from benchmarks.papers.reproduce.declaration import Figure, Instead
from benchmarks.papers.reproduce.figures import sheffet

FIGURE = Figure(
    name="sheffet-2",
    paper=sheffet.PAPER,
    number="2",
    title="Additive Wishart noise",
    experiment="regressions",
    axis="n",
    error=sheffet.ERROR,
    panels=sheffet.ONE,
    methods=(*sheffet.ALGORITHM_3, *sheffet.ALGORITHM_3_LESS),
    trials=60,
    reference=1.0,
    borrowed={"sheffet-1": ("dpmoments", "least squares")},
    claims=sheffet.under_both(
        "taking the mean of the noise off reduces the error",
        sheffet.below(sheffet.ALGORITHM_3_LESS, sheffet.ALGORITHM_3),
    ),
    instead=(Instead("Algorithm 3 less its mean, paper", "dpmoments", "the default under (ε, δ)"),),
    unknown=sheffet.LOST,
    notes=sheffet.SETTINGS,
)
