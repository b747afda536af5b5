"""Beside Figure 2 of Amin et al.: how the error grows with the dimension (section 5, appendix C.1)."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.papers.reproduce.declaration import Figure, Panel
from benchmarks.papers.reproduce.figures import amin, beside

DIMENSIONS = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
PANELS = tuple(
    Panel(
        f"ε = {epsilon:g}",
        {"table": "algorithm 3", "x": "d", "n": 10_000, "epsilon": epsilon},
        DIMENSIONS,
        DIMENSIONS[:5],
    )
    for epsilon in (0.1, 1.0)
)

FIGURE = Figure(
    name="beside-amin-dimensions",
    paper=beside.AMIN,
    number="",
    title="The error over the dimension, n = 10,000",
    experiment="moments_beside",
    axis="d",
    error="‖Ĝ − G‖_F / n",
    panels=PANELS,
    methods=(
        amin.AD,
        amin.UNIFORM,
        amin.KT,
        amin.LAPLACE,
        replace(beside.GAPS, most_trials=None),
        beside.MATRIX_LAPLACE,
        beside.GAUSSIAN,
        amin.NOTHING,
    ),
    trials=15,
    columns=2,
)
