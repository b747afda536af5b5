"""Beside Amin et al. (section 3.1): the rule that takes eigenvectors or Gaussian noise, and the replication's “hybrid”."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.papers.reproduce.declaration import Figure, Method, Panel
from benchmarks.papers.reproduce.experiments.moments_beside import SIDES
from benchmarks.papers.reproduce.figures import amin, beside

TABLES = (
    ("Wine", {"table": "wine"}, None),
    ("Airfoil", {"table": "airfoil"}, None),
    ("Adult", {"table": "adult"}, beside.SLOW),
    ("d = 10, n = 1,000", {"table": "algorithm 3", "n": 1000, "d": 10}, None),
    ("d = 10, n = 10,000", {"table": "algorithm 3", "n": 10_000, "d": 10}, None),
)
PANELS = tuple(
    Panel(f"{title}, δ = 1e-{name}", settings | {"delta": delta}, amin.EPSILONS, amin.QUICK, slow_trials=slow)
    for title, settings, slow in TABLES
    for name, delta in amin.DELTAS.items()
)
EIGENVECTORS, GAUSSIAN = (
    replace(side, most_trials=20, style={"color": color, "lw": 3.5, "alpha": 0.4})
    for side, color in zip(SIDES.values(), ("tab:red", "tab:blue"), strict=True)
)
BY_EIGENVALUE, BY_ROWS = (
    Method(label, {"rule": rule}, most_trials=20, style={"color": "black", "ls": line, "lw": 1.0})
    for label, rule, line in (
        ("the rule, λ₁ of the table (not private)", "largest eigenvalue", "--"),
        ("the rule, n for λ₁", "n", ":"),
    )
)

FIGURE = Figure(
    name="beside-amin-regimes",
    paper=beside.AMIN,
    number="",
    title="The rule of regimes, beside its two sides and the default",
    experiment="moments_beside",
    axis="ε",
    error="‖Ĝ − G‖_F / n",
    panels=PANELS,
    methods=(EIGENVECTORS, GAUSSIAN, BY_EIGENVALUE, BY_ROWS, amin.DEFAULT),
    trials=20,
)
