"""Beside Amin et al., Figure 2(b): the same tables by other readings of the subroutine that brings rows to norm 1."""

from __future__ import annotations

from dataclasses import replace

from benchmarks.papers.reproduce.claims import by_share, factor, unmeasured
from benchmarks.papers.reproduce.declaration import Claim, Figure, Method, Outcome, Panel
from benchmarks.papers.reproduce.experiments.tables import NORMALIZATIONS, SYNTHETIC
from benchmarks.papers.reproduce.figures import amin, beside
from benchmarks.papers.reproduce.figures.amin_2a import SIZES
from benchmarks.papers.reproduce.results import Results

WIDE_NOISE = Method(
    "G-3, d^1.5 on each entry", {"gaussian": "replication", "delta": 1e-3}, style={"color": "tab:brown", "ls": ":"}
)
"""The scale of the replication, which the paper's bound on Gaussian noise may have been read as."""


def _beaten(results: Results, *labels: str) -> Outcome:
    cells: dict[str, list[float]] = {reading: [] for reading in NORMALIZATIONS}
    for label in labels:
        for panel, _, ratio, _ in results.ratios("AD", label):
            cells[panel.partition(": ")[0]].append(ratio)
    ratios = [ratio for known in cells.values() for ratio in known]
    if not ratios:
        return unmeasured("AD and Gaussian noise")
    found = "; ".join(
        f"{reading} {sum(ratio > 1.0 for ratio in known)} of {len(known)}" for reading, known in cells.items()
    )
    against = sum(ratio > 1.0 for ratio in ratios)
    return by_share(against, len(ratios), f"AD has more error in: {found} cells; AD / G {factor(ratios)}")


def beaten_as_published(results: Results) -> Outcome:
    """By reading, at the published scale."""
    return _beaten(results, *(method.label for method in amin.PUBLISHED_GAUSSIAN))


def beaten_by_wide_noise(results: Results) -> Outcome:
    """By reading, at the scale of the replication."""
    return _beaten(results, WIDE_NOISE.label)


FIGURE = Figure(
    name="beside-amin-normalize",
    paper=beside.AMIN,
    number="",
    title="The tables of Figure 2(b) by other readings of Normalize",
    experiment="second_moments",
    axis="ε",
    error="‖Ĝ − G‖_F / n",
    panels=tuple(
        Panel(
            f"{reading}: d = {d}, n = {n:,}",
            {"table": f"{SYNTHETIC}, {reading}", "n": n, "d": d},
            amin.EPSILONS,
            amin.QUICK,
        )
        for reading in NORMALIZATIONS
        for d in (10, 100)
        for n in SIZES
    ),
    methods=(replace(amin.AD, most_trials=beside.SLOW), *amin.PUBLISHED_GAUSSIAN, WIDE_NOISE, amin.NOTHING),
    trials=20,
    claims=(
        Claim(
            "read in these ways, has AD less error than Gaussian noise as published?", beaten_as_published, ours=True
        ),
        Claim("than Gaussian noise of d^1.5 on each entry, the replication's scale?", beaten_by_wide_noise, ours=True),
    ),
    notes=(
        "The paper asks of a column, which is a person, mean 0, variance 1 and norm 1, which no column can have. Figure 2 "
        "standardizes features and divides each person by their own norm.",
    ),
)
