"""The figures of Sheffet"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np

from benchmarks.papers.reproduce.claims import digits, factor, listed, never_above
from benchmarks.papers.reproduce.declaration import EXACT, Claim, Figure, Instead, Method, Outcome, Panel, question
from benchmarks.papers.reproduce.experiments.outputs_as_features import (
    BASE_ZEROS,
    CLIPPED,
    MOST,
    NEEDED,
    OTHER_ZEROS,
    SPURIOUS,
)
from benchmarks.papers.reproduce.results import Results, unmeasured
from benchmarks.papers.sheffet import techniques
from benchmarks.papers.sheffet.techniques import BASE

ROWS = tuple(2.0**power for power in (10, 12, 14, 16, 18, 20))
QUICK = ROWS[:5]
CALIBRATIONS = ("paper", "exact")
ERROR = "‖β̂ − β‖"
LEVEL = 0.05
"""Medians nearer than this are level: neither is ahead."""
ONE = tuple(Panel(f"ε = {epsilon:g}", {"model": "one", "epsilon": epsilon}, ROWS, QUICK) for epsilon in (0.1, 0.5, 1.0))
MANY = tuple(
    Panel(f"k = {others}", {"model": "many", "others": others, "epsilon": 0.5}, ROWS, QUICK) for others in (0, 1, 5, 9)
)


def both(name: str, color: str, settings: dict[str, Any]) -> tuple[Method, Method]:
    """A technique with the paper's constants (dotted), and calibrated exactly."""
    paper, exact = (
        Method(f"{name}, {calibration}", settings | {"calibration": calibration}, style={"color": color, "ls": line})
        for calibration, line in zip(CALIBRATIONS, (":", "-"), strict=True)
    )
    return paper, exact


ALGORITHM_1 = both("Algorithm 1", "tab:red", {"technique": "Algorithm 1", "degrees": "Algorithm 2"})
ALGORITHM_2 = both("Algorithm 2", "tab:blue", {"technique": techniques.JL_ADAPTIVE})
ALGORITHM_3 = both("Algorithm 3", "tab:pink", {"technique": techniques.ADDITIVE_AS_DRAWN})
ALGORITHM_3_LESS = both("Algorithm 3 less its mean", "tab:purple", {"technique": techniques.ADDITIVE})
ALGORITHM_4_N = both("Algorithm 4, ν = n", "tab:brown", {"technique": "inverse Wishart", "degrees": "n"})
ALGORITHM_5_N = both(
    "Algorithm 5, ν ≥ n", "tab:olive", {"technique": "inverse Wishart", "degrees": "n", "adaptive": True}
)
ALGORITHM_5 = both("Algorithm 5", "tab:cyan", {"technique": techniques.INVERSE_WISHART_ADAPTIVE})
ANALYZE_GAUSS = both("Analyze Gauss", "dimgrey", {"technique": "Gaussian noise, as drawn"})
SCALED_GAUSS = both("Analyze Gauss + cI", "tab:green", {"technique": "Gaussian noise, cI, c from the noise"})
DEFAULT = Method(
    "dpmoments", {"technique": techniques.ADAPTED, "calibration": "exact"}, style={"color": "black", "lw": 2.2}
)
LEAST_SQUARES = Method("least squares", {"knows": "rows"}, style={"color": "grey", "ls": "--"})
PROJECTION = Method(
    "projection, not private",
    {"knows": "projection", "degrees": "Algorithm 2", "calibration": "paper"},
    style={"color": "silver", "ls": "--"},
)
POSTERIOR = Method("posterior, not private", {"knows": "posterior"}, style={"color": "peru", "ls": "--"})
LOST = "The paper's settings are lost in our copy; these are ours."
regressions = partial(Figure, experiment="regressions", axis="n", error=ERROR, trials=60, reference=1.0, unknown=LOST)


def under_both(
    says: str, judge: Callable[[Results, int], Outcome], *, unknown: str = "", ours: bool = False
) -> tuple[Claim, Claim]:
    """Return the claim with the paper's constants, and under exact calibration."""
    return (
        Claim(says, lambda results: judge(results, 0), unknown=unknown, ours=ours),
        Claim(says + EXACT, lambda results: judge(results, 1), unknown=unknown, ours=ours),
    )


def below(
    first: Sequence[Method], *others: Sequence[Method], panels: Sequence[str] | None = None
) -> Callable[[Results, int], Outcome]:
    """One technique at most the others, in either calibration."""

    def judge(results: Results, which: int) -> Outcome:
        return never_above(first[which].label, *(other[which].label for other in others), panels=panels)(results)

    return judge


# Sheffet, Figure 1: the projection with a ridge, fixed or adaptive, and without privacy.


def wins_in_the_end(results: Results, which: int) -> Outcome:
    """Algorithm 1 over Algorithm 2 by n: below 1 first, above it at the largest."""
    first, then = ALGORITHM_1[which].label, ALGORITHM_2[which].label
    found = results.by_panel(first, then)
    late = [ratios[-1] > 1.05 for ratios in found.values()]
    return Outcome.graded(all(late), any(late), f"{first} / {then} by n: {listed(found)}")


MORE_ROWS = tuple(2.0**power for power in (21, 22, 23))
WITH_MORE_ROWS = tuple(
    replace(panel, points=(*panel.points, *MORE_ROWS), fewer=dict.fromkeys(MORE_ROWS, 12))
    if panel.title == "ε = 1"
    else panel
    for panel in ONE
)
"""The largest budget has more rows: the published constants ask for some 2²³ before Algorithm 2 pads nothing."""

FIGURE_1 = regressions(
    name="sheffet-1",
    number="1",
    title="The effect of regularisation: random projection with a ridge",
    panels=WITH_MORE_ROWS,
    methods=(*ALGORITHM_1, *ALGORITHM_2, PROJECTION, DEFAULT, LEAST_SQUARES),
    summary="mean",
    claims=(
        Claim(
            "the projection that is not private is the best throughout",
            never_above("projection, not private", "Algorithm 1, paper", "Algorithm 2, paper"),
        ),
        *under_both("Algorithm 2 loses to Algorithm 1 at first and wins at the largest n", wins_in_the_end),
    ),
    instead=(
        Instead("Algorithm 1, paper", "dpmoments", "the default under (ε, δ), Gaussian noise by its exact curve"),
        Instead("Algorithm 2, paper", "dpmoments", "the same"),
    ),
)


# Sheffet, Figure 2: additive Wishart noise, and less its mean.

FIGURE_2 = regressions(
    name="sheffet-2",
    number="2",
    title="Additive Wishart noise",
    panels=ONE,
    methods=(*ALGORITHM_3, *ALGORITHM_3_LESS),
    borrowed={"sheffet-1": ("dpmoments", "least squares")},
    claims=under_both("taking the mean of the noise off reduces the error", below(ALGORITHM_3_LESS, ALGORITHM_3)),
    instead=(Instead("Algorithm 3 less its mean, paper", "dpmoments", "the default under (ε, δ)"),),
)


# Sheffet, Figure 3: draws from an inverse Wishart posterior.


def stay_large(results: Results, which: int) -> Outcome:
    """Algorithms 4 and 5 with ν of the order of n, at the largest n."""
    found, all_errors = [], []
    for method in (ALGORITHM_4_N[which], ALGORITHM_5_N[which]):
        errors = [
            results.center(panel.title, method.label, "error", max(results.points[panel.title, method.label, "error"]))
            for panel in results.panels
        ]
        all_errors += errors
        found.append(f"{method.label} {factor(errors)}")
    large = sum(error > 0.1 for error in all_errors)
    return Outcome.graded(large == len(all_errors), large, f"error at the largest n measured: {'; '.join(found)}")


FIGURE_3 = regressions(
    name="sheffet-3",
    number="3",
    title="Draws from an inverse Wishart posterior",
    panels=ONE,
    methods=(*ALGORITHM_4_N, *ALGORITHM_5_N, *ALGORITHM_5, POSTERIOR),
    borrowed={"sheffet-1": ("Algorithm 2, paper", "Algorithm 2, exact", "dpmoments", "least squares")},
    claims=(
        *under_both("with ν of the order of n the errors of Algorithms 4 and 5 stay large", stay_large),
        *under_both(
            "Algorithm 5's split of the budget costs more than it gains (ν of the order of n)",
            below(ALGORITHM_4_N, ALGORITHM_5_N),
        ),
        *under_both(
            "from the same least degrees of freedom Algorithm 5 is better than Algorithm 2",
            below(ALGORITHM_5, ALGORITHM_2),
        ),
    ),
    instead=(
        Instead("Algorithm 4, ν = n, paper", "dpmoments", "the default under (ε, δ)"),
        Instead("Algorithm 5, paper", "dpmoments", "the same"),
    ),
)


# Sheffet, Figure 4: six techniques on one regression.

OTHERS = (ALGORITHM_2, ALGORITHM_3, ALGORITHM_5, ALGORITHM_3_LESS)


def gauss_is_best_in_the_end(results: Results, which: int) -> Outcome:
    """Error over that of the best other technique, at the most rows; and the n from which on it is ahead."""
    found, last = [], []
    for panel in results.panels:
        ahead, ratio = None, math.inf
        for x in panel.points:
            errors = results.errors(panel.title, [other[which] for other in OTHERS], x).values()
            if errors:
                ratio = results.center(panel.title, ANALYZE_GAUSS[which].label, "error", x) / min(errors)
                ahead = (ahead or x) if ratio < 1.0 - LEVEL else None
        last.append(ratio)
        since = "not ahead at the largest n" if ahead is None else f"ahead from n = {ahead:,.0f} on"
        found.append(f"{panel.title}: {since}, error / best other {digits(ratio)} there")
    return Outcome.graded(max(last) < 1.0 - LEVEL, max(last) < 1.0 + LEVEL, "; ".join(found))


def useless_at_first(results: Results, which: int) -> Outcome:
    """Analyze Gauss at the fewest rows, and the others."""
    gauss, rest = [], []
    for panel in results.panels:
        x = min(panel.points)
        gauss.append(results.center(panel.title, ANALYZE_GAUSS[which].label, "error", x))
        rest += [results.center(panel.title, other[which].label, "error", x) for other in OTHERS]
    words = f"errors at the least n: Analyze Gauss {factor(gauss)}, the others {factor(rest)}"
    return Outcome.graded(min(gauss) > 1.0 and min(rest) > 0.5, max(gauss) > 1.0, words)


def gap_closes(results: Results) -> Outcome:
    """Ours: what exact calibration leaves of the gap at the largest n."""
    found = []
    for other in OTHERS:
        ratios = [
            factor(results.at_the_end(other[which].label, ANALYZE_GAUSS[which].label).values()) for which in (0, 1)
        ]
        found.append(f"{other[0].label.removesuffix(', paper')}: {ratios[0]} → {ratios[1]}")
    least = min(
        ratio
        for panel in results.panels
        for _, x, ratio, _ in results.ratios(ALGORITHM_3_LESS[1].label, ANALYZE_GAUSS[1].label, panels=[panel.title])
        if x == max(results.points[panel.title, ANALYZE_GAUSS[1].label, "error"])
    )
    return Outcome.graded(
        least >= 1.2,
        False,
        f"error / Analyze Gauss's at the largest n, paper → exact: {'; '.join(found)} "
        f"(Algorithm 3 less its mean comes to {digits(least)} times it)",
    )


FIGURE_4 = regressions(
    name="sheffet-4",
    number="4",
    title="Six techniques on one regression",
    panels=ONE,
    methods=(*ANALYZE_GAUSS, *SCALED_GAUSS),
    summary="median",
    borrowed={
        "sheffet-1": ("Algorithm 2, paper", "Algorithm 2, exact", "dpmoments", "least squares"),
        "sheffet-2": tuple(method.label for method in (*ALGORITHM_3, *ALGORITHM_3_LESS)),
        "sheffet-3": tuple(method.label for method in ALGORITHM_5),
    },
    claims=(
        *under_both("Analyze Gauss is the best of all once n is large", gauss_is_best_in_the_end),
        *under_both("at small n Analyze Gauss is out of scale, and the others say little", useless_at_first),
        question("is the gap to Analyze Gauss the mechanisms' own?", gap_closes),
        *under_both("Algorithm 5 is better than Algorithm 2", below(ALGORITHM_5, ALGORITHM_2)),
    ),
    instead=(
        Instead("Analyze Gauss, paper", "dpmoments", "the default under (ε, δ)"),
        Instead("Algorithm 2, paper", "dpmoments", "the same"),
        Instead("Algorithm 3 less its mean, paper", "dpmoments", "the same"),
    ),
)


# Sheffet, Figure 5: one output regressed on the base features and k other outputs.

SIX = (ANALYZE_GAUSS, *OTHERS, SCALED_GAUSS)


C_IS_LOST = (
    "The paper's c is lost in our copy, and ours, a bound on the norm of the noise, is a kind that it says it tried and "
    "rejected. With the least c that makes the draw positive definite it is found where other outputs are many and rows few "
    "([beside-sheffet-outputs](beside-the-figures.md#beside-sheffet-outputs-figure-5-with-the-least-c))."
)


def one_output_is_enough(results: Results, which: int) -> Outcome:
    """Analyze Gauss with k above 0: the most of its medians."""
    label = ANALYZE_GAUSS[which].label
    worst = {
        panel.title: max(results.center(panel.title, label, "error", x) for x in results.points[panel.title, label, "error"]
                         if x >= 2.0**12)
        for panel in results.panels
    }  # fmt: skip
    hurt = [worst[title] > 2.0 for title in worst if title != "k = 0"]
    found = ", ".join(f"{title}: {digits(value)}" for title, value in worst.items())
    return Outcome.graded(all(hurt), any(hurt), f"largest median error of Analyze Gauss from n = 4,096 on: {found}")


RIVALS = (ALGORITHM_2, ALGORITHM_5, ALGORITHM_3_LESS)


def over_the_best(results: Results, label: str, rivals: Sequence[Method]) -> list[float]:
    """The error of one over the least of the rivals', k above 0."""
    ratios = []
    for panel in results.panels:
        for x in panel.points if panel.title != "k = 0" else ():
            errors = results.errors(panel.title, rivals, x).values()
            if errors and len(results.values(panel.title, label, "error", x)):
                ratios.append(results.center(panel.title, label, "error", x) / min(errors))
    return ratios or unmeasured(label)


def scaled_is_worse(results: Results, which: int) -> Outcome:
    """Analyze Gauss + cI over the best of Algorithms 2, 5 and 3 less its mean, k above 0."""
    ratios = over_the_best(results, SCALED_GAUSS[which].label, [rival[which] for rival in RIVALS])
    worse = sum(ratio > 1.05 for ratio in ratios)
    share = worse / len(ratios)
    words = f"Analyze Gauss + cI / best of Algorithms 2, 5 and 3 less its mean {factor(ratios)}"
    return Outcome.graded(share > 0.9, share > 0.5, f"{words}; worse by over 5 % in {worse} of {len(ratios)} cells")


def best_without_other_outputs(results: Results, which: int) -> Outcome:
    label, title = ANALYZE_GAUSS[which].label, "k = 0"
    ratios = {
        x: results.center(title, label, "error", x)
        / min(results.center(title, other[which].label, "error", x) for other in OTHERS)
        for x in results.points[title, label, "error"]
    }
    last = ratios[max(ratios)]
    words = f"Analyze Gauss / best of the Wishart techniques by n: {', '.join(map(digits, ratios.values()))}"
    return Outcome.graded(last < 1.0 - LEVEL, last < 1.0 + LEVEL, words)


LAST = f"k = {MOST}"
"""The panel with the most other outputs, of which the lasso is asked as well."""


def ridge_is_put_on_the_others(results: Results, which: int) -> Outcome:
    """Norm of the coefficients that should be 0, Algorithms 2 and 5 over Analyze Gauss + cI, at the largest n."""
    gauss, found, ratios = SCALED_GAUSS[which].label, [], []
    for technique in (ALGORITHM_2, ALGORITHM_5):
        label = technique[which].label
        xs = [x for x in results.points.get((LAST, label, SPURIOUS), {}) if x >= 2.0**16]
        norms = [(results.center(LAST, label, SPURIOUS, x), results.center(LAST, gauss, SPURIOUS, x)) for x in xs]
        ratios += [ours / theirs for ours, theirs in norms[-1:]]
        found.append(f"{label} {', '.join(digits(ours) for ours, _ in norms)}")
        found.append(f"{gauss} {', '.join(digits(theirs) for _, theirs in norms)}")
    if not ratios:
        return unmeasured(f"{LAST} at large n")
    words = f"norm on the {MOST} other outputs from n = 2^16 on: {'; '.join(dict.fromkeys(found))}"
    return Outcome.graded(min(ratios) > 2.0, max(ratios) > 2.0, words)


def ridge_and_not_projection(results: Results) -> Outcome:
    """Algorithm 2 over the projection with the same r and no ridge, at the largest n."""
    private, free = ALGORITHM_2[0].label, PROJECTION.label
    last = results.at_the_end(private, free)
    found = ", ".join(f"{panel}: {digits(ratio)}" for panel, ratio in last.items())
    words = f"error of {private} / that of the projection with its r and no ridge, at the largest n: {found}"
    return Outcome.graded(min(last.values()) > 2.0, max(last.values()) > 2.0, words)


def told_apart(results: Results, method: str, x: float) -> float:
    """Share of the other outputs that the lasso sets to 0, less that of the base features: 1 where it tells them apart."""
    base, others = (results.values(LAST, method, zeros, x) for zeros in (BASE_ZEROS, OTHER_ZEROS))
    return float(np.mean(others)) / MOST - float(np.mean(base)) / BASE


def lasso_is_not_sparse_where_it_should_be(results: Results, which: int) -> Outcome:
    """Cells in which a release tells the useless outputs from the base features half as well as the table itself does."""
    methods = [technique[which].label for technique in SIX] + [DEFAULT.label] * which
    exact, told, cells = [], [], 0
    for x in results.points.get((LAST, LEAST_SQUARES.label, OTHER_ZEROS), {}):
        without = told_apart(results, LEAST_SQUARES.label, x)
        exact.append(without)
        for method in methods:
            cells += 1
            if told_apart(results, method, x) >= without / 2.0:
                told.append(f"{method} at n = {x:,.0f}")
    if not cells:
        return unmeasured("the lasso")
    projected = [told_apart(results, PROJECTION.label, x)
                 for x in results.points[LAST, PROJECTION.label, OTHER_ZEROS]]  # fmt: skip
    words = (
        f"share of the other outputs set to 0, less that of the base features: {digits(min(exact))} to "
        f"{digits(max(exact))} on the table itself; half of it or more from {len(told)} of {cells} releases"
    )
    named = f" ({', '.join(told)})" if told else ""
    least = f"; the projection that is not private comes to {digits(max(projected))} at most"
    return Outcome.by_share(len(told), cells, f"{words}{named}{least}")


FIGURE_5 = Figure(
    name="sheffet-5",
    number="5",
    title="Many regressions: other outputs as features",
    experiment="outputs_as_features",
    axis="n",
    error=ERROR,
    panels=MANY,
    methods=(*(method for technique in SIX for method in technique), DEFAULT, LEAST_SQUARES, PROJECTION, POSTERIOR),
    trials=60,
    summary="median",
    reference=1.0,
    columns=4,
    drawn=("error",),
    claims=(
        *under_both("with k = 0 Analyze Gauss is the best once n is large", best_without_other_outputs),
        *under_both("k = 1 is enough to make Analyze Gauss useless", one_output_is_enough),
        *under_both(
            "with k above 0 Analyze Gauss + cI is worse than the projections and scaled additive Wishart noise",
            scaled_is_worse,
            unknown=C_IS_LOST,
        ),
        *under_both(
            "does what keeps a ridge put its error on the outputs that tell nothing, at the largest n too?",
            ridge_is_put_on_the_others,
            ours=True,
        ),
        question("is it the ridge that costs, not the projection?", ridge_and_not_projection),
        *under_both(
            f"(section 6.2) the lasso on a release is not sparse where it should be (k = {MOST})",
            lasso_is_not_sparse_where_it_should_be,
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
    unknown=LOST,
)


# Sheffet, Figure 6: the spread of the errors of Figure 5.


def steadiest(results: Results, which: int) -> Outcome:
    """Which of the six has the least standard deviation, by cell."""
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
    ranked = sorted(counts.items(), key=lambda pair: -pair[1])
    found = ", ".join(f"{label} {digits(count)}" for label, count in ranked)
    words = f"least standard deviation of the six, by number of cells: {found}"
    return Outcome.graded(of_scaled > 0.8 * cells, of_scaled == max(counts.values()), words)


SPIKE = 1.2
"""A spread this many times that at the n before, where it falls with n otherwise."""


def spikes_are_of_clipped_rows(results: Results, which: int) -> Outcome:
    """Where the spread of Analyze Gauss + cI rises with n, and whether rows are clipped there more than elsewhere."""
    label, spikes, mixed, clipped, elsewhere = SCALED_GAUSS[which].label, [], 0, [], []
    for panel in results.panels:
        for before, x in pairwise(results.points[panel.title, label, "error"]):
            share = float(results.values(panel.title, LEAST_SQUARES.label, CLIPPED, x).mean())
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
        return Outcome.graded(False, False, f"the spread of {label} nowhere rises with n by more than {SPIKE:g}")
    apart = float(np.mean(clipped)) / float(np.mean(elsewhere))
    words = (
        f"rows are clipped {digits(apart)} times as often there; in {mixed} of {len(spikes)} some draws were positive "
    )
    words = f"{len(spikes)} spikes ({'; '.join(spikes)}); {words}definite, so that they were left as they are"
    return Outcome.graded(apart > 2.0, mixed == len(spikes), words)


FIGURE_6 = replace(
    FIGURE_5,
    name="sheffet-6",
    number="6",
    title="The spread of the errors of Figure 5",
    error=f"standard deviation of {ERROR}",
    summary="standard deviation",
    methods=(),
    reference=None,
    borrowed={"sheffet-5": tuple(method.label for method in FIGURE_5.methods)},
    claims=(
        *under_both("scaled Analyze Gauss has the least spread", steadiest, unknown=C_IS_LOST),
        *under_both(
            "scaled Analyze Gauss has spikes at some n, which come of clipped rows", spikes_are_of_clipped_rows
        ),
    ),
    instead=(),
)

FIGURES = (FIGURE_1, FIGURE_2, FIGURE_3, FIGURE_4, FIGURE_5, FIGURE_6)
