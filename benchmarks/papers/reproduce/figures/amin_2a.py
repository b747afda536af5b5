"""Amin et al., Figure 2(a): pure mechanisms on synthetic rows."""

from __future__ import annotations

import itertools

from benchmarks.papers.reproduce.claims import by_share, digits, never_above, unmeasured
from benchmarks.papers.reproduce.declaration import Claim, Figure, Instead, Outcome
from benchmarks.papers.reproduce.figures import amin
from benchmarks.papers.reproduce.results import Results

SIZES = (1000, 10_000, 50_000)


def gap_grows_with_d_and_shrinks_with_n(results: Results) -> Outcome:
    """KT over AD, compared between cells of one ε in which AD is not lost."""
    gaps = {
        (d, n, x): ratio
        for d in (10, 100)
        for n in SIZES
        for title, x, ratio, _ in results.ratios("KT", "AD", panels=[f"d = {d}, n = {n:,}"])
        if not amin.lost(results, title, x)
    }
    grows = [gap > gaps[10, n, x] for (d, n, x), gap in gaps.items() if d == 100 and (10, n, x) in gaps]
    shrinks = [
        gap > gaps[d, more, x]
        for (d, n, x), gap in gaps.items()
        for fewer, more in itertools.pairwise(SIZES)
        if n == fewer and (d, more, x) in gaps
    ]
    compared = [*grows, *shrinks]
    if not compared:
        return unmeasured("AD at two sizes")
    found = (
        f"where AD has less error than (tr G/d)·I, KT / AD grows with d in {sum(grows)} of {len(grows)} pairs of cells"
    )
    return by_share(
        len(compared) - sum(compared),
        len(compared),
        f"{found}, shrinks with n in {sum(shrinks)} of {len(shrinks)}; largest {digits(max(gaps.values()))}",
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
