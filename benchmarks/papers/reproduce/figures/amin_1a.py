"""Amin et al., Figure 1(a): pure mechanisms on Wine, Airfoil and Adult."""

from __future__ import annotations

from benchmarks.papers.reproduce.claims import digits, never_above
from benchmarks.papers.reproduce.declaration import Claim, Figure, Instead, Outcome, Verdict
from benchmarks.papers.reproduce.figures import amin
from benchmarks.papers.reproduce.results import Results


def gap_is_widest_on_adult(results: Results) -> Outcome:
    """KT over AD by table."""
    gaps = {panel.title: amin.mean_gap(results, "AD", "KT", panel.title) for panel in results.panels}
    widest = max(gaps, key=lambda title: gaps[title])
    found = ", ".join(f"{title} {digits(gap)}" for title, gap in gaps.items())
    return Outcome(Verdict.REPRODUCED if widest == "Adult" else Verdict.FAILS, f"KT / AD, mean over ε: {found}")


FIGURE = Figure(
    name="amin-1a",
    paper=amin.PAPER,
    number="1(a)",
    title="Pure ε mechanisms on Wine, Airfoil and Adult",
    experiment="second_moments",
    axis="ε",
    error="‖Ĝ − G‖_F / n",
    panels=amin.REAL,
    methods=amin.PURE,
    trials=50,
    claims=(
        Claim(
            "AD has less error than KT and L everywhere but on Wine at ε = 0.01",
            never_above("AD", "KT", "L", except_for=[("Wine", 0.01)]),
        ),
        Claim("adaptive and uniform splits of the budget differ little", amin.splits_differ_little),
        Claim("the gap between AD and KT is widest on the table of highest dimension", gap_is_widest_on_adult),
    ),
    instead=(
        Instead("AD", "dpmoments", "the default under pure ε, matrix Laplace noise and its repair"),
        Instead("L", "dpmoments", "the same"),
    ),
    notes=(amin.MISPRINT, amin.CALIBRATION, amin.ENCODING),
)
