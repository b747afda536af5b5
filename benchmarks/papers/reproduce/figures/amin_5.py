"""Amin et al., Figure 5: the regression task on Wine, Airfoil and Adult."""

from __future__ import annotations

from benchmarks.papers.reproduce.declaration import Claim, Figure, Instead, Panel
from benchmarks.papers.reproduce.figures import amin, amin_regression

PANELS = tuple(
    Panel(panel.title, dict(panel.settings) | {"targets": "first"}, panel.points, panel.quick) for panel in amin.REAL
)

FIGURE = Figure(
    name="amin-5",
    paper=amin.PAPER,
    number="5",
    title="Ridge regression of the first column of Wine, Airfoil and Adult",
    experiment="ridge",
    axis="ε",
    error="mean squared residual of the test rows",
    panels=PANELS,
    drawing="best",
    methods=amin_regression.METHODS,
    trials=50,
    claims=(
        Claim(
            "regressions from AD beat output perturbation (section 4)",
            amin_regression.ad_beats_p,
            unknown=amin_regression.NOISE_OF_P,
        ),
        Claim("AD is much steadier over the choice of α", amin_regression.ad_is_the_steadier),
        amin_regression.USEFUL,
    ),
    instead=(Instead("AD", "dpmoments", "ridge regression from a default release", metric="least"),),
    notes=(
        *amin_regression.NOTES,
        "The first column is alcohol of Wine, frequency of Airfoil, age of Adult: which one the paper has is not said.",
    ),
)
