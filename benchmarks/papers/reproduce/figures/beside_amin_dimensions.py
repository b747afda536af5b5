"""Beside Figure 2 of Amin et al.: how the error grows with the dimension (section 5, appendix C.1)."""

from __future__ import annotations

import math
from dataclasses import replace

from benchmarks.papers.reproduce.claims import digits, slope, slopes_near, unmeasured
from benchmarks.papers.reproduce.declaration import Claim, Figure, Outcome, Panel, Verdict
from benchmarks.papers.reproduce.figures import amin, beside
from benchmarks.papers.reproduce.results import Results

DIMENSIONS = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
PANELS = tuple(
    Panel(
        f"ε = {epsilon:g}",
        {"table": "algorithm 3", "x": "d", "n": 10_000, "epsilon": epsilon},
        DIMENSIONS,
        DIMENSIONS[:5],
    )
    for epsilon in (0.1, 1.0)
)


def lost(results: Results, panel: str, x: float) -> bool:
    """Whether AD has more error than what knows the trace alone."""
    return results.center(panel, "AD", "error", x) > results.center(panel, "(tr G/d)·I", "error", x)


def no_faster_than_guaranteed(results: Results) -> Outcome:
    """AD's slope where it is not lost: at most that of its guarantee."""
    found, slopes = [], []
    for panel in results.panels:
        kept = {
            x
            for x in panel.points
            if len(results.values(panel.title, "AD", "error", x)) and not lost(results, panel.title, x)
        }
        known = slope(results, panel.title, "AD", at=kept.__contains__)
        if math.isfinite(known):
            slopes.append(known)
            found.append(f"{panel.title}: {known:.2f} over d up to {max(kept):g}")
    if not slopes:
        return unmeasured("AD at two d")
    most = max(slopes)
    verdict = Verdict.REPRODUCED if most <= 1.5 else Verdict.CHANGED if most <= 1.65 else Verdict.FAILS
    return Outcome(
        verdict, f"slope of log error of AD on log d, where it has less error than (tr G/d)·I: {'; '.join(found)}"
    )


def gap_grows(results: Results) -> Outcome:
    """KT over AD by d, up to where AD is lost."""
    found, grows = [], 0
    for panel in results.panels:
        ratios = {x: ratio for _, x, ratio, _ in results.ratios("KT", "AD", panels=[panel.title])}
        kept = [ratio for x, ratio in ratios.items() if not lost(results, panel.title, x)]
        if len(kept) < 2:
            return unmeasured("KT and AD at two d")
        grows += kept[-1] > kept[0]
        found.append(
            f"{panel.title}: {', '.join(map(digits, ratios.values()))}, the last of them that is not lost {digits(kept[-1])}"
        )
    verdict = Verdict.REPRODUCED if grows == len(found) else Verdict.CHANGED if grows else Verdict.FAILS
    return Outcome(verdict, f"KT / AD by d: {'; '.join(found)}")


def gains_on_gaussian_noise(results: Results) -> Outcome:
    """G-10 over AD at the smaller ε."""
    panel = results.panels[0].title
    ratios = [ratio for _, _, ratio, _ in results.ratios(beside.GAUSSIAN.label, "AD", panels=[panel])]
    if not ratios:
        return unmeasured(beside.GAUSSIAN.label)
    last = max(results.points[panel, "AD", "error"])
    verdict = (
        Verdict.FAILS
        if ratios[-1] <= ratios[0]
        else Verdict.CHANGED
        if lost(results, panel, last)
        else Verdict.REPRODUCED
    )
    words = f"{beside.GAUSSIAN.label} / AD at {panel} by d: {', '.join(map(digits, ratios))}"
    return Outcome(verdict, f"{words}; at d = {last:g} AD is {'lost' if lost(results, panel, last) else 'not lost'}")


FIGURE = Figure(
    name="beside-amin-dimensions",
    paper=beside.AMIN,
    number="",
    title="The error over the dimension, n = 10,000",
    experiment="moments_beside",
    axis="d",
    error="‖Ĝ − G‖_F / n",
    panels=PANELS,
    methods=(
        amin.AD,
        amin.UNIFORM,
        amin.KT,
        amin.LAPLACE,
        replace(beside.GAPS, most_trials=None),
        beside.MATRIX_LAPLACE,
        beside.GAUSSIAN,
        amin.NOTHING,
    ),
    trials=15,
    columns=2,
    claims=(
        Claim(
            "(section 5) the guarantee of AD grows as d to the power 3/2: its error grows no faster",
            no_faster_than_guaranteed,
        ),
        Claim(
            "the noise of matrix Laplace grows as d to the power 3/2",
            slopes_near(1.5, (beside.MATRIX_LAPLACE.label,), within=0.1, changed=0.25),
            ours=True,
        ),
        Claim(
            "symmetric Gaussian noise grows as d",
            slopes_near(1.0, (beside.GAUSSIAN.label,), within=0.1, changed=0.25),
            ours=True,
        ),
        Claim("(appendix C.1) the gap between AD and KT grows with d", gap_grows),
        Claim("(appendix C.1) at small ε AD gains on Gaussian noise as d grows", gains_on_gaussian_noise),
    ),
    notes=(
        "Tables by Algorithm 3 of the paper; all estimates have their eigenvalues moved into [0, n], which lowers "
        "the errors of additive noise and so their slopes. AD is called lost where it has more error than (tr G/d)·I.",
    ),
)
