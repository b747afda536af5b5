"""Sheffet, Figure 5: one output regressed on the base features and k other outputs."""

from __future__ import annotations

from collections.abc import Callable

from benchmarks.papers.reproduce.claims import digits, factor
from benchmarks.papers.reproduce.declaration import Figure, Instead, Outcome, Verdict
from benchmarks.papers.reproduce.figures import sheffet
from benchmarks.papers.reproduce.figures.sheffet_4 import OTHERS
from benchmarks.papers.reproduce.results import Results

SIX = (sheffet.ANALYZE_GAUSS, *OTHERS, sheffet.SCALED_GAUSS)


def one_output_is_enough(which: int) -> Callable[[Results], Outcome]:
    """Analyze Gauss with k above 0: the most of its medians."""

    def judge(results: Results) -> Outcome:
        label = sheffet.ANALYZE_GAUSS[which].label
        worst = {
            panel.title: max(results.center(panel.title, label, "error", x) for x in results.points[panel.title, label, "error"]
                             if x >= 2.0**12)
            for panel in results.panels
        }  # fmt: skip
        hurt = [worst[title] > 2.0 for title in worst if title != "k = 0"]
        verdict = Verdict.REPRODUCED if all(hurt) else Verdict.CHANGED if any(hurt) else Verdict.FAILS
        found = ", ".join(f"{title}: {digits(value)}" for title, value in worst.items())
        return Outcome(verdict, f"largest median error of Analyze Gauss from n = 4,096 on: {found}")

    return judge


def scaled_is_worse(which: int) -> Callable[[Results], Outcome]:
    """Analyze Gauss + cI over the best of Algorithms 2, 5 and 3 less its mean, k above 0."""

    def judge(results: Results) -> Outcome:
        rivals = (sheffet.ALGORITHM_2, sheffet.ALGORITHM_5, sheffet.ALGORITHM_3_LESS)
        ratios = []
        for panel in results.panels:
            if panel.title == "k = 0":
                continue
            for x in panel.points:
                errors = [results.center(panel.title, rival[which].label, "error", x) for rival in rivals
                          if len(results.values(panel.title, rival[which].label, "error", x))]  # fmt: skip
                if errors:
                    ratios.append(
                        results.center(panel.title, sheffet.SCALED_GAUSS[which].label, "error", x) / min(errors)
                    )
        worse = sum(ratio > 1.05 for ratio in ratios)
        share = worse / len(ratios)
        verdict = Verdict.REPRODUCED if share > 0.9 else Verdict.CHANGED if share > 0.5 else Verdict.FAILS
        return Outcome(
            verdict,
            f"Analyze Gauss + cI / best of Algorithms 2, 5 and 3 less its mean {factor(ratios)}; worse by over 5 % in {worse} of "
            f"{len(ratios)} cells",
        )

    return judge


def best_without_other_outputs(which: int) -> Callable[[Results], Outcome]:
    """k = 0 alone."""

    def judge(results: Results) -> Outcome:
        label, title = sheffet.ANALYZE_GAUSS[which].label, "k = 0"
        ratios = {
            x: results.center(title, label, "error", x)
            / min(results.center(title, other[which].label, "error", x) for other in OTHERS)
            for x in results.points[title, label, "error"]
        }
        last = ratios[max(ratios)]
        verdict = (
            Verdict.REPRODUCED
            if last < 1.0 - sheffet.LEVEL
            else Verdict.CHANGED
            if last < 1.0 + sheffet.LEVEL
            else Verdict.FAILS
        )
        return Outcome(
            verdict, f"Analyze Gauss / best of the Wishart techniques by n: {', '.join(map(digits, ratios.values()))}"
        )

    return judge


FIGURE = Figure(
    name="sheffet-5",
    paper=sheffet.PAPER,
    number="5",
    title="Many regressions: other outputs as features",
    experiment="outputs_as_features",
    axis="n",
    error=sheffet.ERROR,
    panels=sheffet.MANY,
    methods=(
        *(method for technique in SIX for method in technique),
        sheffet.DEFAULT,
        sheffet.LEAST_SQUARES,
        sheffet.PROJECTION,
        sheffet.POSTERIOR,
    ),
    trials=60,
    summary="median",
    reference=1.0,
    columns=4,
    claims=(
        *sheffet.under_both("with k = 0 Analyze Gauss is the best once n is large", best_without_other_outputs),
        *sheffet.under_both("k = 1 is enough to make Analyze Gauss useless", one_output_is_enough),
        *sheffet.under_both(
            "with k above 0 Analyze Gauss + cI is worse than the projections and scaled additive Wishart noise",
            scaled_is_worse,
        ),
    ),
    instead=(
        Instead("Analyze Gauss, paper", "dpmoments", "the default under (ε, δ)"),
        Instead(
            "Analyze Gauss, paper",
            "Analyze Gauss + cI, exact",
            '`repair="noise-shift"` before a regression on near copies',
        ),
        Instead("Algorithm 3 less its mean, paper", "Analyze Gauss + cI, exact", "the same"),
        Instead("Algorithm 2, paper", "dpmoments", "the default under (ε, δ)"),
    ),
    notes=(
        *sheffet.SETTINGS,
        "10 outputs of the same 10 features are released together, 21 columns with the intercept; the coefficients "
        "of the k other outputs "
        "should come out 0. The lasso on the same releases is in [sheffet-outputs.md](sheffet-outputs.md).",
    ),
)
