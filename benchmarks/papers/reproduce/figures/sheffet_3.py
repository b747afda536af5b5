"""Sheffet, Figure 3: draws from an inverse Wishart posterior."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.papers.reproduce.claims import factor
from benchmarks.papers.reproduce.declaration import Figure, Instead, Outcome, Verdict
from benchmarks.papers.reproduce.figures import sheffet
from benchmarks.papers.reproduce.results import Results


def stay_large(which: int) -> Callable[[Results], Outcome]:
    """Algorithms 4 and 5 with ν of the order of n, at the largest n."""

    def judge(results: Results) -> Outcome:
        found, all_errors = [], []
        for method in (sheffet.ALGORITHM_4_N[which], sheffet.ALGORITHM_5_N[which]):
            errors = [
                results.center(
                    panel.title, method.label, "error", max(results.points[panel.title, method.label, "error"])
                )
                for panel in results.panels
            ]
            all_errors += errors
            found.append(f"{method.label} {factor(errors)}")
        large = sum(error > 0.1 for error in all_errors)
        verdict = Verdict.REPRODUCED if large == len(all_errors) else Verdict.CHANGED if large else Verdict.FAILS
        return Outcome(verdict, f"error at the largest n measured: {'; '.join(found)}")

    return judge


FIGURE = Figure(
    name="sheffet-3",
    paper=sheffet.PAPER,
    number="3",
    title="Draws from an inverse Wishart posterior",
    experiment="regressions",
    axis="n",
    error=sheffet.ERROR,
    panels=sheffet.ONE,
    methods=(*sheffet.ALGORITHM_4_N, *sheffet.ALGORITHM_5_N, *sheffet.ALGORITHM_5, sheffet.POSTERIOR),
    trials=60,
    reference=1.0,
    borrowed={"sheffet-1": ("Algorithm 2, paper", "Algorithm 2, exact", "dpmoments", "least squares")},
    claims=(
        *sheffet.under_both("with ν of the order of n the errors of Algorithms 4 and 5 stay large", stay_large),
        *sheffet.under_both(
            "Algorithm 5's split of the budget costs more than it gains (ν of the order of n)",
            sheffet.below(sheffet.ALGORITHM_4_N, sheffet.ALGORITHM_5_N),
        ),
        *sheffet.under_both(
            "from the same least degrees of freedom Algorithm 5 is better than Algorithm 2",
            sheffet.below(sheffet.ALGORITHM_5, sheffet.ALGORITHM_2),
        ),
    ),
    instead=(
        Instead("Algorithm 4, ν = n, paper", "dpmoments", "the default under (ε, δ)"),
        Instead("Algorithm 5, paper", "dpmoments", "the same"),
    ),
    unknown=sheffet.LOST,
    notes=sheffet.SETTINGS,
)
