"""Amin et al., Figure 4: every column predicted from the others, synthetic rows; P divides ε among them."""

from __future__ import annotations

from benchmarks.papers.reproduce.declaration import Claim, Figure, Instead, Panel
from benchmarks.papers.reproduce.figures import amin, amin_regression

PANELS = tuple(
    Panel(panel.title, dict(panel.settings) | {"targets": "all"}, panel.points, panel.quick) for panel in amin.SYNTHETIC
)

FIGURE = Figure(
    name="amin-4",
    paper=amin.PAPER,
    number="4",
    title="Ridge regressions of every column on the others, synthetic rows",
    experiment="ridge",
    axis="ε",
    error="mean squared residual",
    panels=PANELS,
    drawing="best",
    methods=amin_regression.METHODS,
    trials=50,
    claims=(
        Claim(
            "where every column is a target AD is far ahead of P",
            amin_regression.ad_beats_p,
            unknown=amin_regression.NOISE_OF_P,
        ),
        amin_regression.USEFUL,
    ),
    instead=(
        Instead("P", "dpmoments", "ridge regressions from one default release", metric="least"),
        Instead("AD", "dpmoments", "the same", metric="least"),
    ),
    notes=amin_regression.NOTES,
)
