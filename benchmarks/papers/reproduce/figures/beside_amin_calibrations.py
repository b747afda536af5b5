"""Beside Figure 1 of Amin et al.: tight calibration, the default split, and the acceptance that the paper prints."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.papers.reproduce.declaration import Figure
from benchmarks.papers.reproduce.figures import amin, beside

FIGURE = Figure(
    name="beside-amin-calibrations",
    paper=beside.AMIN,
    number="",
    title="Wine, Airfoil and Adult with twice the temperature, and with the acceptance that the paper prints",
    experiment="moments_beside",
    axis="ε",
    error="‖Ĝ − G‖_F / n",
    panels=tuple(replace(panel, slow_trials=beside.SLOW) if panel.title == "Adult" else panel for panel in amin.REAL),
    methods=(
        beside.AD_TIGHT,
        beside.UNIFORM_TIGHT,
        beside.KT_TIGHT,
        beside.GAPS,
        beside.MATRIX_LAPLACE,
        beside.AD_PRINTED,
        beside.UNIFORM_PRINTED,
    ),
    trials=beside.DEPTH,
    borrowed={"amin-1a": ("AD", "IT-U", "KT", "L", "dpmoments", "(tr G/d)·I")},
)
