"""CoinPress, Figure 5: means of rows that are not normal."""

from __future__ import annotations

import numpy as np

from benchmarks.papers.reproduce.claims import within_factor
from benchmarks.papers.reproduce.declaration import Claim, Figure, Instead, Panel
from benchmarks.papers.reproduce.experiments.means import LAWS
from benchmarks.papers.reproduce.figures import coinpress

ROWS = tuple(float(round(n)) for n in np.linspace(1000, 10_000, 7))
PANELS = tuple(
    Panel(law, {"varies": "n", "d": 50, "law": law, "center": 10.0}, ROWS, (ROWS[0], ROWS[-1])) for law in LAWS
)

FIGURE = Figure(
    name="coinpress-5",
    paper=coinpress.PAPER,
    number="5",
    title="Means of rows with heavier tails, d = 50, ρ = 0.5",
    experiment="means",
    axis="n",
    error="‖μ̂ − μ‖₂",
    panels=PANELS,
    methods=(*coinpress.released(2), *coinpress.means(2)[:-1], coinpress.NOT_PRIVATE),
    trials=100,
    summary="trimmed mean",
    claims=(
        Claim(
            "with t = 2 the error in excess of no privacy is well behaved for heavier tails (here: at most half of it)",
            within_factor("released, t = 2", "non-private", 1.5, changed=2.0),
        ),
        Claim(
            "the same of the library's default, whose last clip widens for heavy tails",
            within_factor("dpmoments", "non-private", 1.5, changed=2.0),
            ours=True,
        ),
    ),
    instead=(Instead("released, t = 2", "dpmoments", '`release_mean(…, mechanism="coinpress")`'),),
    notes=(
        "All laws have mean 10 in every coordinate, the edge of the first ball, and covariance I. The section names "
        "multivariate Laplace and "
        "Student laws; the released program draws independent coordinates. Both are here.",
    ),
)
