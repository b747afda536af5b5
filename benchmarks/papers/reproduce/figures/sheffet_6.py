"""Sheffet, Figure 6: the spread of the errors of Figure 5."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import pairwise

import numpy as np

from benchmarks.papers.reproduce.claims import digits
from benchmarks.papers.reproduce.declaration import Outcome, Verdict
from benchmarks.papers.reproduce.experiments.outputs_as_features import CLIPPED, NEEDED
from benchmarks.papers.reproduce.figures import sheffet
from benchmarks.papers.reproduce.figures.sheffet_5 import C_IS_LOST, SIX
from benchmarks.papers.reproduce.figures.sheffet_5 import FIGURE as FIGURE_5
from benchmarks.papers.reproduce.results import Results


def steadiest(which: int) -> Callable[[Results], Outcome]:
    """Which of the six has the least standard deviation, by cell."""

    def judge(results: Results) -> Outcome:
        counts: dict[str, int] = {}
        for panel in results.panels:
            for x in panel.points:
                spreads = {
                    technique[which].label.rpartition(",")[0]: results.center(
                        panel.title, technique[which].label, "error", x
                    )
                    for technique in SIX
                    if len(results.values(panel.title, technique[which].label, "error", x)) > 1
                }
                if spreads:
                    least = min(spreads, key=lambda label: spreads[label])
                    counts[least] = counts.get(least, 0) + 1
        cells, of_scaled = sum(counts.values()), counts.get("Analyze Gauss + cI", 0)
        verdict = (
            Verdict.REPRODUCED
            if of_scaled > 0.8 * cells
            else Verdict.CHANGED
            if of_scaled == max(counts.values())
            else Verdict.FAILS
        )
        ranked = sorted(counts.items(), key=lambda pair: -pair[1])
        found = ", ".join(f"{label} {digits(count)}" for label, count in ranked)
        return Outcome(verdict, f"least standard deviation of the six, by number of cells: {found}")

    return judge


SPIKE = 1.2
"""A spread this many times that at the n before, where it falls with n otherwise."""


def spikes_are_of_clipped_rows(which: int) -> Callable[[Results], Outcome]:
    """Where the spread of Analyze Gauss + cI rises with n, and whether rows are clipped there more than elsewhere."""

    def judge(results: Results) -> Outcome:
        label, spikes, mixed, clipped, elsewhere = sheffet.SCALED_GAUSS[which].label, [], 0, [], []
        for panel in results.panels:
            for before, x in pairwise(results.points[panel.title, label, "error"]):
                share = float(results.values(panel.title, sheffet.LEAST_SQUARES.label, CLIPPED, x).mean())
                spread, earlier = (results.center(panel.title, label, "error", at) for at in (x, before))
                if spread <= SPIKE * earlier:
                    elsewhere.append(share)
                    continue
                clipped.append(share)
                needed = results.values(panel.title, label, NEEDED, x) > 0.0
                mixed += bool(not needed.all())
                errors = results.values(panel.title, label, "error", x)
                medians = [digits(float(np.median(errors[part]))) if part.any() else "–" for part in (needed, ~needed)]
                spikes.append(
                    f"{panel.title}, n = {x:,.0f}: {100.0 * needed.mean():.0f} % of the draws got cI, errors {medians[0]} with "
                    f"it and {medians[1]} without"
                )
        if not spikes:
            return Outcome(Verdict.FAILS, f"the spread of {label} nowhere rises with n by more than {SPIKE:g}")
        apart = float(np.mean(clipped)) / float(np.mean(elsewhere))
        verdict = Verdict.REPRODUCED if apart > 2.0 else Verdict.CHANGED if mixed == len(spikes) else Verdict.FAILS
        words = f"rows are clipped {digits(apart)} times as often there; in {mixed} of {len(spikes)} some draws were positive "
        return Outcome(
            verdict, f"{len(spikes)} spikes ({'; '.join(spikes)}); {words}definite, so that they were left as they are"
        )

    return judge


FIGURE = replace(
    FIGURE_5,
    name="sheffet-6",
    number="6",
    title="The spread of the errors of Figure 5",
    error=f"standard deviation of {sheffet.ERROR}",
    summary="standard deviation",
    methods=(),
    reference=None,
    borrowed={"sheffet-5": tuple(method.label for method in FIGURE_5.methods)},
    claims=(
        *sheffet.under_both("scaled Analyze Gauss has the least spread", steadiest, unknown=C_IS_LOST),
        *sheffet.under_both(
            "scaled Analyze Gauss has spikes at some n, which come of clipped rows", spikes_are_of_clipped_rows
        ),
    ),
    instead=(),
    notes=(),
)
