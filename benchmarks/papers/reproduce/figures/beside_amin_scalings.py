"""Beside Amin et al., Figure 1: the claims of section 4 on the same tables, brought to norm 1 in other ways."""

from __future__ import annotations

from benchmarks.papers.reproduce.claims import by_share, factor, never_above, unmeasured
from benchmarks.papers.reproduce.declaration import Claim, Figure, Outcome, Panel
from benchmarks.papers.reproduce.experiments.tables import SCALINGS
from benchmarks.papers.reproduce.figures import amin, beside
from benchmarks.papers.reproduce.figures.amin_1a import gap_is_widest_on_adult
from benchmarks.papers.reproduce.results import Results


def beaten_by_gaussian_noise(results: Results) -> Outcome:
    """Cells in which AD has more error, by scaling."""
    cells: dict[str, list[float]] = {}
    for method in amin.PUBLISHED_GAUSSIAN:
        for panel, _, ratio, _ in results.ratios("AD", method.label):
            cells.setdefault(panel.partition(": ")[2], []).append(ratio)
    if not cells:
        return unmeasured("AD and Gaussian noise")
    against = {scaling: sum(ratio > 1.0 for ratio in ratios) for scaling, ratios in cells.items()}
    found = "; ".join(f"{scaling} {number} of {len(cells[scaling])}" for scaling, number in against.items())
    ratios = [ratio for known in cells.values() for ratio in known]
    words = f"AD has more error in: {found} cells; AD / G {factor(ratios)}"
    return by_share(sum(against.values()), len(ratios), words)


NOT_STATED = "The paper says of these tables that rows have norm at most 1, and no more."

FIGURE = Figure(
    name="beside-amin-scalings",
    paper=beside.AMIN,
    number="",
    title="The tables of Figure 1, brought to norm 1 in other ways",
    experiment="second_moments",
    axis="ε",
    error="‖Ĝ − G‖_F / n",
    panels=tuple(
        Panel(f"{table}: {scaling}", {"table": f"{table.lower()}, {scaling}"}, amin.EPSILONS, amin.QUICK)
        for scaling in SCALINGS
        for table in ("Wine", "Airfoil", "Adult")
    ),
    methods=(amin.AD, amin.KT, amin.LAPLACE, *amin.PUBLISHED_GAUSSIAN, amin.NOTHING),
    trials=10,
    claims=(
        Claim("(section 4) AD has less error than KT and L", never_above("AD", "KT", "L"), unknown=NOT_STATED),
        Claim(
            "(section 4) AD has less error than Gaussian noise as published, at δ = 10⁻³ too",
            beaten_by_gaussian_noise,
            unknown=NOT_STATED,
        ),
        Claim("(section 4) the gap between AD and KT is widest on Adult", gap_is_widest_on_adult, unknown=NOT_STATED),
    ),
    notes=(
        "Columns are standardized, brought to [0, 1] (*ranges*), centered and divided by their range, or left in their "
        "*units*; then all rows are divided by the norm of the longest, or every row by its own. Figure 1 has standardized "
        "columns and every row of norm 1.",
    ),
)
