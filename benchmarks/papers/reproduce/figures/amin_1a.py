"""Amin et al., Figure 1(a): pure mechanisms on Wine, Airfoil and Adult."""

from __future__ import annotations

import math

import numpy as np

from benchmarks.papers.reproduce.claims import by_share, digits, never_above
from benchmarks.papers.reproduce.declaration import Claim, Figure, Instead, Outcome, Verdict
from benchmarks.papers.reproduce.figures import amin
from benchmarks.papers.reproduce.results import Results


def gap_is_widest_on_adult(results: Results) -> Outcome:
    """KT over AD by table, in cells in which AD is not lost; in groups of panels that differ in the table alone."""
    groups: dict[str, dict[str, list[float]]] = {}
    for panel in results.panels:
        table, _, form = panel.title.partition(": ")
        known = results.ratios("KT", "AD", panels=[panel.title])
        groups.setdefault(form, {})[table] = [
            ratio for _, x, ratio, _ in known if not amin.lost(results, panel.title, x)
        ]
    found, comparable, widest = [], 0, 0
    for form, tables in groups.items():
        gaps = {table: math.exp(float(np.mean(np.log(ratios)))) for table, ratios in tables.items() if ratios}
        words = ", ".join(f"{table} {digits(gaps[table]) if table in gaps else 'lost'}" for table in tables)
        found.append(f"{form}: {words}" if form else words)
        if "Adult" in gaps and len(gaps) > 1:
            comparable += 1
            widest += max(gaps, key=lambda table: gaps[table]) == "Adult"
    words = "KT / AD, mean over the ε at which AD has less error than (tr G/d)·I: "
    if not comparable:
        why = "on Adult at none: where both errors pass that of a matrix that knows the trace alone, their ratio says nothing"
        return Outcome(Verdict.INCOMPARABLE, f"{words}{'; '.join(found)}; {why}")
    return by_share(comparable - widest, comparable, words + "; ".join(found))


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
