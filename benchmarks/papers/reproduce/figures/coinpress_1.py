"""CoinPress, Figure 1: the balls of one run of the mean estimator."""

from __future__ import annotations

import itertools

import numpy as np

from benchmarks.papers.reproduce.claims import digits
from benchmarks.papers.reproduce.declaration import Claim, Figure, Method, Outcome, Panel, Verdict
from benchmarks.papers.reproduce.figures import coinpress
from benchmarks.papers.reproduce.results import Results

STEPS, RADIUS = 3, 20.0
PANEL = Panel("n = 160, ρ = 0.1", {"rho": 0.1, "steps": STEPS, "radius": RADIUS}, (160.0,), (160.0,))


def balls_shrink_about_the_mean(results: Results) -> Outcome:
    """Of all trials: radii, and how often the mean is in a ball."""
    found, inside, shrinking = [], [], []
    for method in ("practical", "paper"):
        radii = [results.values(PANEL.title, method, f"radius {i}", 160.0) for i in range(1, STEPS + 1)]
        distances = [results.values(PANEL.title, method, f"distance {i}", 160.0) for i in range(1, STEPS + 1)]
        held = [float(np.mean(far <= radius)) for far, radius in zip(distances, radii, strict=True)]
        inside.append(min(held))
        shrinking.append(all((then < first).all() for first, then in itertools.pairwise(radii)))
        error = results.center(PANEL.title, method, "error", 160.0)
        shown = ", ".join(digits(float(radius.mean())) for radius in radii)
        found.append(f"{method} constants: radii {shown}; the mean lies in each ball in {100 * min(held):.0f} % of "
            f"the runs or more; "
                     f"median error {digits(error)}")  # fmt: skip
    good = all(shrinking) and min(inside) >= 0.9
    return Outcome(
        Verdict.REPRODUCED if good else Verdict.CHANGED if all(shrinking) else Verdict.FAILS, "; ".join(found)
    )


FIGURE = Figure(
    name="coinpress-1",
    paper=coinpress.PAPER,
    number="1",
    title="One run of the mean estimator, t = 3",
    experiment="one_run",
    drawing="balls",
    axis="first coordinate",
    error="second coordinate",
    panels=(PANEL,),
    methods=(
        Method("practical", {"options": {"split": "experiments"}}),
        Method("paper", {"options": {"constants": "paper"}}),
    ),
    trials=100,
    summary="median",
    log_axis=False,
    log_error=False,
    claims=(Claim("each ball is smaller than the last and holds the mean", balls_shrink_about_the_mean),),
    notes=(
        f"The caption has n, ρ and t; the first ball is of radius {RADIUS:g} about 0 here. The paper's Figure 2 "
        f"passes the budget of the "
        "last step to every step of its loop: here each step has its own.",
    ),
)
