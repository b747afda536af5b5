"""Beside Figure 5 of Sheffet: regressions on nearly collinear features, and what is well posed from the same release; ours."""

from __future__ import annotations

from benchmarks.papers.reproduce.declaration import Figure, Method, Panel
from benchmarks.papers.reproduce.figures import beside, sheffet

TEN, FIVE = "ten features", "five features"
PANELS = tuple(
    Panel(f"{title}, ε = {epsilon:g}", {"features": features, "epsilon": epsilon}, sheffet.ROWS, sheffet.QUICK)
    for title, features in ((TEN, "all"), (FIVE, "independent"))
    for epsilon in (0.1, 0.5, 1.0)
)
SAMPLING = Method("least squares on other rows", {"knows": "covariance"}, style={"color": "grey", "ls": "--"})

FIGURE = Figure(
    name="beside-sheffet-collinear",
    paper=beside.SHEFFET,
    number="",
    title="Four regressions on ten nearly collinear features, and on the five that are independent",
    experiment="collinear",
    axis="n",
    error="error against least squares on the table",
    panels=PANELS,
    methods=(
        *sheffet.ANALYZE_GAUSS,
        *beside.CLIPPED,
        *beside.LEAST_SHIFT,
        *sheffet.SCALED_GAUSS,
        *beside.SHRUNK,
        beside.ADAPTED,
        sheffet.DEFAULT,
        *beside.PROJECTION_LESS,
        *sheffet.ALGORITHM_2,
        *sheffet.ALGORITHM_3,
        *sheffet.ALGORITHM_3_LESS,
        beside.PURE,
        SAMPLING,
    ),
    trials=40,
    summary="median",
    reference=1.0,
)
