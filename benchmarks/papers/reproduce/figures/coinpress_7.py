"""CoinPress, Figure 7: covariances over ρ; and skewed ones, which the paper has not."""

from __future__ import annotations

from benchmarks.papers.reproduce.claims import digits, factor
from benchmarks.papers.reproduce.declaration import Claim, Figure, Instead, Outcome, Panel, Verdict
from benchmarks.papers.reproduce.figures import coinpress
from benchmarks.papers.reproduce.results import Results

ISOTROPIC, SKEWED = "isotropic", "skewed"
STEPS = (1, 2, 3, 4)


def performs_well(results: Results) -> Outcome:
    """Over no privacy, by ρ."""
    found = []
    for method in ("released, t = 3", "dpmoments"):
        ratios = [(x, ratio) for _, x, ratio, _ in results.ratios(method, "non-private", panels=[ISOTROPIC])]
        words = ", ".join(f"{digits(ratio)} at ρ = {x:.3g}" for x, ratio in (ratios[0], ratios[-1]))
        found.append((ratios[-1][1], f"{method} / non-private {words}"))
    against_one = [ratio for _, _, ratio, _ in results.ratios("released, t = 3", "released, t = 1", panels=[ISOTROPIC])]
    verdict = (
        Verdict.REPRODUCED
        if found[0][0] < 1.5 and max(against_one) < 1.0
        else Verdict.CHANGED
        if found[0][0] < 2.0
        else Verdict.FAILS
    )
    return Outcome(verdict, f"{'; '.join(words for _, words in found)}; released, t = 3 / t = 1 {factor(against_one)}")


FIGURE = Figure(
    name="coinpress-7",
    paper=coinpress.PAPER,
    number="7",
    title="Covariances in 10 dimensions over ρ, n = 8,000",
    experiment="covariances",
    axis="ρ",
    error="Mahalanobis error",
    panels=(
        Panel(
            ISOTROPIC, {"varies": "rho", "n": 8000}, coinpress.RHOS, coinpress.QUICK_RHOS, "cov_isotropic_vary_rho.csv"
        ),
        Panel(SKEWED, {"varies": "rho", "n": 8000, "skewed": True}, coinpress.RHOS, coinpress.QUICK_RHOS),
    ),
    methods=(
        *coinpress.released(*STEPS),
        *coinpress.mended(*STEPS),
        *coinpress.covariances(*STEPS),
        coinpress.NOT_PRIVATE,
    ),
    trials=100,
    summary="trimmed mean",
    columns=2,
    claims=(
        Claim(
            "the published curves",
            coinpress.agrees_with_published(
                {"non-private": "non_private"} | {f"released, t = {t}": f"t{t}" for t in STEPS}
            ),
        ),
        Claim("the method performs well as the privacy level varies", performs_well),
    ),
    instead=(
        Instead("released, t = 3", "dpmoments", '`release(…, mechanism="coinpress")`', panels=(ISOTROPIC,)),
        Instead("released, t = 2", "dpmoments", "the same", panels=(SKEWED,)),
    ),
    notes=(
        "The caption has d = 10, the text 50: the caption's, as the published curves. The second panel is not in the paper.",
    ),
)
