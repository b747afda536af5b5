"""Beside Figure 2 of Amin et al.: how the error falls with the number of rows (section 5)."""

from __future__ import annotations

from benchmarks.papers.reproduce.declaration import Figure, Panel
from benchmarks.papers.reproduce.figures import amin, beside

ROWS = (1000.0, 3162.0, 10_000.0, 31_623.0, 100_000.0, 316_228.0, 1_000_000.0)
PANELS = tuple(
    Panel(f"ε = {epsilon:g}", {"table": "algorithm 3", "x": "n", "d": 10, "epsilon": epsilon}, ROWS, ROWS[:5])
    for epsilon in (0.1, 1.0)
)

FIGURE = Figure(
    name="beside-amin-rates",
    paper=beside.AMIN,
    number="",
    title="The error over the number of rows, d = 10",
    experiment="moments_beside",
    axis="n",
    error="‖Ĝ − G‖_F / n",
    panels=PANELS,
    methods=(amin.AD, beside.AD_TIGHT, amin.KT, amin.LAPLACE, beside.MATRIX_LAPLACE, beside.GAUSSIAN),
    trials=beside.DEPTH,
    columns=2,
)
