"""Beside Figure 2 of Amin et al.: how the error falls with the number of rows (section 5)."""

from __future__ import annotations

from benchmarks.papers.reproduce.claims import digits, slopes_near, unmeasured
from benchmarks.papers.reproduce.declaration import Claim, Figure, Outcome, Panel, Verdict
from benchmarks.papers.reproduce.figures import amin, beside
from benchmarks.papers.reproduce.results import Results

ROWS = (1000.0, 3162.0, 10_000.0, 31_623.0, 100_000.0, 316_228.0, 1_000_000.0)
PANELS = tuple(
    Panel(f"ε = {epsilon:g}", {"table": "algorithm 3", "x": "n", "d": 10, "epsilon": epsilon}, ROWS, ROWS[:5])
    for epsilon in (0.1, 1.0)
)

MANY = ROWS[3]
"""From here on the budget is enough for either ε."""


def gap_closes(results: Results) -> Outcome:
    """KT over AD by n."""
    found, closes = [], 0
    for panel in results.panels:
        ratios = [ratio for _, _, ratio, _ in results.ratios("KT", "AD", panels=[panel.title])]
        if not ratios:
            return unmeasured("KT and AD")
        closes += ratios[-1] < ratios[0] or ratios[-1] < max(ratios) - 0.1
        found.append(f"{panel.title}: {', '.join(map(digits, ratios))}")
    verdict = Verdict.REPRODUCED if closes == len(found) else Verdict.CHANGED if closes else Verdict.FAILS
    return Outcome(verdict, f"KT / AD by n: {'; '.join(found)}")


FIGURE = Figure(
    name="beside-amin-rates",
    paper=beside.AMIN,
    number="",
    title="The error over the number of rows, d = 10",
    experiment="moments_beside",
    axis="n",
    error="‖Ĝ − G‖_F / n",
    panels=PANELS,
    methods=(amin.AD, beside.AD_TIGHT, amin.KT, amin.LAPLACE, beside.MATRIX_LAPLACE, beside.GAUSSIAN),
    trials=beside.DEPTH,
    columns=2,
    claims=(
        Claim(
            "(section 5) the error of AD falls as 1/√n, once n is large enough for the budget",
            slopes_near(-0.5, ("AD", beside.AD_TIGHT.label), within=0.06, changed=0.1, at=lambda n: n >= MANY),
        ),
        Claim(
            "(section 5) the error of Gaussian and Laplace noise falls as 1/n",
            slopes_near(
                -1.0,
                ("L", beside.MATRIX_LAPLACE.label, beside.GAUSSIAN.label),
                within=0.06,
                changed=0.1,
                at=lambda n: n >= MANY,
            ),
        ),
        Claim("(appendix C.1) the gap between AD and KT closes as n grows", gap_closes),
    ),
    notes=(
        "Tables by Algorithm 3 of the paper, eigenvalues moved into [0, n]; δ = 10⁻¹⁰ of Gaussian noise. The slopes "
        "are over n from 31,623 on.",
    ),
)
