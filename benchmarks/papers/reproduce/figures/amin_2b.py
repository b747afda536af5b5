"""Amin et al., Figure 2(b): AD against Gaussian noise on synthetic rows."""

from __future__ import annotations

import itertools

from benchmarks.papers.reproduce.claims import digits
from benchmarks.papers.reproduce.declaration import Claim, Figure, Instead, Outcome, Verdict
from benchmarks.papers.reproduce.figures import amin
from benchmarks.papers.reproduce.figures.amin_2a import SIZES
from benchmarks.papers.reproduce.results import Results


def loses_ground_with_n(results: Results) -> Outcome:
    """G over AD falls as n grows."""
    gains = {(d, n): amin.mean_gap(results, "AD", "G-10", f"d = {d}, n = {n:,}") for d in (10, 100) for n in SIZES}
    falls = sum(gains[d, n] > gains[d, m] for d in (10, 100) for n, m in itertools.pairwise(SIZES))
    found = "; ".join(f"d = {d}: " + ", ".join(digits(gains[d, n]) for n in SIZES) for d in (10, 100))
    verdict = Verdict.REPRODUCED if falls == 4 else Verdict.CHANGED if falls == 3 else Verdict.FAILS
    return Outcome(verdict, f"G-10 / AD, mean over ε, by n: {found}")


def gains_with_d_at_small_epsilon(results: Results) -> Outcome:
    """G over AD at ε = 0.1 is larger at d = 100."""
    gains = {
        (d, n): amin.mean_gap(results, "AD", "G-10", f"d = {d}, n = {n:,}", at=0.1) for d in (10, 100) for n in SIZES
    }
    grows = sum(gains[100, n] > gains[10, n] for n in SIZES)
    found = ", ".join(f"{digits(gains[10, n])} → {digits(gains[100, n])}" for n in SIZES)
    lost = [
        results.center(panel, "AD", "error", 0.1) / results.center(panel, "(tr G/d)·I", "error", 0.1)
        for panel in (f"d = 100, n = {n:,}" for n in SIZES)
    ]
    verdict = Verdict.FAILS if grows < 2 else Verdict.REPRODUCED if grows == 3 and max(lost) < 1.0 else Verdict.CHANGED
    return Outcome(
        verdict,
        f"G-10 / AD at ε = 0.1, d = 10 → 100, by n: {found}; but AD at d = 100 has {digits(min(lost))} to "
        f"{digits(max(lost))} times "
        "the error of (tr G/d)·I",
    )


FIGURE = Figure(
    name="amin-2b",
    paper=amin.PAPER,
    number="2(b)",
    title="AD against Gaussian noise on synthetic rows",
    experiment="second_moments",
    axis="ε",
    error="‖Ĝ − G‖_F / n",
    panels=amin.SYNTHETIC,
    methods=amin.GAUSSIAN,
    trials=100,
    borrowed={"amin-2a": ("AD", "(tr G/d)·I")},
    claims=(
        Claim("AD has less error than Gaussian noise", amin.beaten_by_gaussian_noise, needs=amin.NEEDS_MORE_NOISE),
        Claim("against Gaussian noise AD loses ground as n grows", loses_ground_with_n),
        Claim("at small ε AD gains on Gaussian noise as d grows", gains_with_d_at_small_epsilon),
    ),
    instead=(Instead("AD", "dpmoments, δ = 1e-10", "the default under (ε, 10⁻¹⁰)"),),
)
