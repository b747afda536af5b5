"""Amin et al., Figure 3: the first column predicted from the others, synthetic rows."""

from __future__ import annotations

from benchmarks.papers.reproduce.declaration import Claim, Figure, Instead, Outcome, Panel, Verdict
from benchmarks.papers.reproduce.figures import amin, amin_regression
from benchmarks.papers.reproduce.results import Results

PANELS = tuple(
    Panel(panel.title, dict(panel.settings) | {"targets": "first"}, panel.points, panel.quick)
    for panel in amin.SYNTHETIC
)


def alpha_100_is_best_for_ad(results: Results) -> Outcome:
    """At d = 10, n = 10,000, whatever ε; that of P moves."""
    panel = "d = 10, n = 10,000"
    found = {
        method: [
            amin_regression.best_alpha(results, panel, method, x)
            for x in amin.EPSILONS
            if len(results.values(panel, method, "α = 1", x))
        ]
        for method in ("AD", "P")
    }
    fixed = len(set(found["AD"])) == 1
    verdict = (
        Verdict.REPRODUCED
        if fixed and found["AD"][0] == "100"
        else Verdict.CHANGED
        if len(set(found["AD"])) <= 2
        else Verdict.FAILS
    )
    words = "; ".join(f"{method}: {', '.join(alphas)}" for method, alphas in found.items())
    return Outcome(verdict, f"best α by ε, {words}")


FIGURE = Figure(
    name="amin-3",
    paper=amin.PAPER,
    number="3",
    title="Ridge regression of the first column, synthetic rows",
    experiment="ridge",
    axis="ε",
    error="mean squared residual",
    panels=PANELS,
    drawing="best",
    methods=amin_regression.METHODS,
    trials=50,
    claims=(
        Claim(
            "at its best α, P is about as good as AD at its own",
            amin_regression.best_are_alike,
            unknown=amin_regression.NOISE_OF_P,
        ),
        Claim("AD is much steadier over the choice of α", amin_regression.ad_is_the_steadier),
        Claim("at d = 10, n = 10,000 the best α of AD is 100 at every ε; that of P moves", alpha_100_is_best_for_ad),
        amin_regression.USEFUL,
    ),
    instead=(Instead("AD", "dpmoments", "ridge regression from a default release", metric="least"),),
    notes=amin_regression.NOTES,
)
