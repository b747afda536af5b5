"""CoinPress, Figure 4: means in 2 and in 500 dimensions, and over ρ; and over d, which the paper describes and does not draw."""

from __future__ import annotations

from benchmarks.papers.reproduce.claims import never_above, within_factor
from benchmarks.papers.reproduce.declaration import Claim, Figure, Instead, Panel
from benchmarks.papers.reproduce.figures import coinpress

TWO, FIVE_HUNDRED, OVER_RHO, OVER_D = "d = 2", "d = 500", "over ρ, d = 50, n = 2,000", "over d, n = 4,000"
TWO_ROWS = (50.0, 100.0, 200.0, 400.0, 800.0, 1600.0, 3200.0)
MANY_ROWS = (1000.0, 1500.0, 1900.0, 4000.0, 8000.0)
DIMENSIONS = (2.0, 10.0, 50.0, 200.0, 500.0)
SLOW = 12
"""Trials of estimators that go through 500 coordinates one after another, half a minute each."""

FIGURE = Figure(
    name="coinpress-4",
    paper=coinpress.PAPER,
    number="4",
    title="Means in low and high dimension, and over ρ",
    experiment="means",
    axis="n",
    error="‖μ̂ − μ‖₂",
    panels=(
        Panel(TWO, {"varies": "n", "d": 2}, TWO_ROWS, TWO_ROWS[1::3]),
        Panel(FIVE_HUNDRED, {"varies": "n", "d": 500}, MANY_ROWS, MANY_ROWS[2:3], slow_trials=SLOW),
        Panel(OVER_RHO, {"varies": "rho", "d": 50, "n": 2000}, coinpress.RHOS, coinpress.QUICK_RHOS, axis="ρ"),
        Panel(OVER_D, {"varies": "d", "n": 4000}, DIMENSIONS, DIMENSIONS[:3], axis="d", slow_trials=SLOW // 2),
    ),
    methods=(
        *coinpress.released(1, 2, 4),
        *coinpress.means(2),
        *coinpress.BASELINES,
        coinpress.NOT_PRIVATE,
    ),
    trials=100,
    quick_trials=2,
    block=14,
    summary="trimmed mean",
    columns=2,
    claims=(
        Claim(
            "at d = 2 CoinPress with t = 2 has the best performance",
            never_above("released, t = 2", "naive", "KV", "SYMQ", "released, t = 1", panels=[TWO]),
        ),
        Claim(
            "at d = 500 and n below 4d (here n = 1,900) privacy costs t = 2 less than a factor of 2",
            within_factor("released, t = 2", "non-private", 2.0, panels=[FIVE_HUNDRED], at=lambda n: n == 1900),
        ),
        Claim(
            "at d = 500 the library's default costs less than a factor of 2 from n = 1,000 on",
            within_factor("dpmoments", "non-private", 2.0, panels=[FIVE_HUNDRED]),
            ours=True,
        ),
        Claim(
            "CoinPress is ahead of the coordinatewise methods at every ρ",
            never_above("released, t = 2", "naive", "KV", "SYMQ", panels=[OVER_RHO]),
        ),
    ),
    instead=(
        Instead("released, t = 2", "dpmoments", '`release_mean(…, mechanism="coinpress")`'),
        Instead("SYMQ", "dpmoments", "the same"),
        Instead("KV", "dpmoments", "the same"),
    ),
    notes=(
        "The caption of the third panel has n = 2,000, the text 1,000: the caption's. R = 10√d and ρ = 0.5 where "
        "not varied. The fourth panel "
        "is not in the paper. At d = 500 coordinatewise methods have "
        f"{SLOW} trials, {SLOW // 2} in the fourth panel, elsewhere {coinpress.FEW}.",
    ),
)
