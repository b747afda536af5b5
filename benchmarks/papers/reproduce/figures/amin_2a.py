"""Amin et al., Figure 2(a): pure mechanisms on synthetic rows."""

from __future__ import annotations

import itertools

from benchmarks.papers.reproduce.claims import digits, never_above
from benchmarks.papers.reproduce.declaration import Claim, Figure, Instead, Outcome, Verdict
from benchmarks.papers.reproduce.figures import amin
from benchmarks.papers.reproduce.results import Results

SIZES = (1000, 10_000, 50_000)


def gap_grows_with_d_and_shrinks_with_n(results: Results) -> Outcome:
    """KT over AD by panel."""
    gaps = {(d, n): amin.mean_gap(results, "AD", "KT", f"d = {d}, n = {n:,}") for d in (10, 100) for n in SIZES}
    grows = sum(gaps[100, n] > gaps[10, n] for n in SIZES)
    shrinks = sum(gaps[d, n] > gaps[d, m] for d in (10, 100) for n, m in itertools.pairwise(SIZES))
    found = "; ".join(f"d = {d}: " + ", ".join(digits(gaps[d, n]) for n in SIZES) for d in (10, 100))
    against = 3 - grows + 4 - shrinks
    verdict = Verdict.REPRODUCED if not against else Verdict.CHANGED if against <= 3 else Verdict.FAILS
    return Outcome(
        verdict,
        f"KT / AD, mean over ε, n = 1,000, 10,000, 50,000: {found}; grows with d at {grows} of 3 n, "
        f"shrinks with n in {shrinks} of 4 steps",
    )


FIGURE = Figure(
    name="amin-2a",
    paper=amin.PAPER,
    number="2(a)",
    title="Pure ε mechanisms on synthetic rows",
    experiment="second_moments",
    axis="ε",
    error="‖Ĝ − G‖_F / n",
    panels=amin.SYNTHETIC,
    methods=amin.PURE,
    trials=100,
    claims=(
        Claim("AD has less error than KT and L", never_above("AD", "KT", "L")),
        Claim("the gap between AD and KT grows with d and shrinks with n", gap_grows_with_d_and_shrinks_with_n),
    ),
    instead=(Instead("AD", "dpmoments", "the default under pure ε"),),
    notes=(amin.MISPRINT, amin.CALIBRATION),
)
