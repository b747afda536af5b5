"""Sheffet, Figure 6: the spread of the errors of Figure 5."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from benchmarks.papers.reproduce.claims import digits
from benchmarks.papers.reproduce.declaration import Outcome, Verdict
from benchmarks.papers.reproduce.figures import sheffet
from benchmarks.papers.reproduce.figures.sheffet_5 import FIGURE as FIGURE_5
from benchmarks.papers.reproduce.figures.sheffet_5 import SIX
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
    claims=sheffet.under_both("scaled Analyze Gauss has the least spread", steadiest),
    instead=(),
    notes=(),
)
