"""Beside Figure 1 of Amin et al.: the tables in other forms, which the paper does not tell apart."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.papers.reproduce.declaration import Figure, Panel
from benchmarks.papers.reproduce.figures import amin, beside

WINE, AIRFOIL = "Wine with its target", "Airfoil without its target"
COMPLETE, REPLICATION = "Adult, complete rows with the target", "Adult as the replication has it"
PANELS = (
    Panel(WINE, {"table": "wine, target"}, amin.EPSILONS, amin.QUICK),
    Panel(AIRFOIL, {"table": "airfoil, no target"}, amin.EPSILONS, amin.QUICK),
    Panel(COMPLETE, {"table": "adult, complete"}, amin.EPSILONS, amin.QUICK, slow_trials=beside.SLOW),
    Panel(REPLICATION, {"table": "adult, replication"}, amin.EPSILONS, amin.QUICK, slow_trials=beside.SLOW),
)

FIGURE = Figure(
    name="beside-amin-forms",
    paper=beside.AMIN,
    number="",
    title="The same tables in other forms",
    experiment="moments_beside",
    axis="ε",
    error="‖Ĝ − G‖_F / n",
    panels=PANELS,
    methods=(
        *(replace(method, most_trials=beside.DEPTH) for method in (amin.AD, amin.UNIFORM, amin.KT)),
        amin.LAPLACE,
        beside.AD_TIGHT,
        beside.GAPS,
        amin.DEFAULT,
        amin.NOTHING,
    ),
    trials=beside.DEPTH,
    columns=2,
    borrowed={"amin-1a": ("AD", "IT-U", "KT", "L", "dpmoments", "(tr G/d)·I")},
)
