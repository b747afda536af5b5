"""The figures of Amin et al."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from functools import partial

import numpy as np

from benchmarks.papers.reproduce.claims import digits, factor, furthest, never_above
from benchmarks.papers.reproduce.declaration import Claim, Figure, Instead, Method, Outcome, Panel, Verdict, question
from benchmarks.papers.reproduce.experiments.ridge import ALPHAS, metric
from benchmarks.papers.reproduce.results import Results, unmeasured

EPSILONS = (0.01, 0.1, 0.2, 0.5, 1.0, 2.0, 4.0)
QUICK = (0.01, 0.1, 0.5, 1.0, 4.0)
second_moments = partial(Figure, experiment="second_moments", axis="ε", error="‖Ĝ − G‖_F / n")
DELTAS = {"16": 1e-16, "10": 1e-10, "3": 1e-3}
"""By the numbers in the paper's legends."""

AD, UNIFORM = (
    Method(name, {"mechanism": "iterative-eigenvectors", "options": options}, style={"color": color})
    for name, options, color in (
        ("AD", {"allocation": "adaptive", "calibration": "paper"}, "tab:red"),
        ("IT-U", {"allocation": "uniform", "calibration": "paper"}, "tab:orange"),
    )
)
KT = Method("KT", {"mechanism": "kapralov-talwar", "options": {"calibration": "paper"}}, style={"color": "tab:green"})
LAPLACE = Method("L", {"mechanism": "laplace", "options": {"calibration": "paper"}}, style={"color": "tab:blue"})
DEFAULT = Method("dpmoments", {"mechanism": "auto", "repair": "auto"}, style={"color": "black", "lw": 2.2})
NOTHING = Method("(tr G/d)·I", {"knows": "trace"}, most_trials=1, style={"color": "grey", "ls": "--"})
"""A matrix of the right trace that knows nothing else of the table; not private."""
PURE = (AD, UNIFORM, KT, LAPLACE, DEFAULT, NOTHING)

COLORS = {"16": "tab:purple", "10": "tab:blue", "3": "tab:cyan"}
PUBLISHED_GAUSSIAN = tuple(
    Method(f"G-{name}", {"gaussian": "analyze gauss", "delta": delta}, style={"color": COLORS[name], "ls": ":"})
    for name, delta in DELTAS.items()
)
EXACT_GAUSSIAN = tuple(
    Method(f"G-{name}, exact", {"mechanism": "gaussian", "delta": delta}, style={"color": COLORS[name]})
    for name, delta in DELTAS.items()
)
APPROXIMATE_DEFAULT = tuple(
    Method(
        f"dpmoments, δ = 1e-{name}",
        {"mechanism": "auto", "repair": "auto", "delta": delta},
        style={"color": shade, "lw": 2.0},
    )
    for (name, delta), shade in zip(DELTAS.items(), ("black", "dimgrey", "darkgrey"), strict=True)
)
GAUSSIAN = (*PUBLISHED_GAUSSIAN, *EXACT_GAUSSIAN, *APPROXIMATE_DEFAULT)
"""Analyze Gauss with its published scale, Gaussian noise by its exact privacy curve, and the library's default."""

REAL = (
    Panel("Wine", {"table": "wine"}, EPSILONS, QUICK),
    Panel("Airfoil", {"table": "airfoil"}, EPSILONS, QUICK),
    Panel("Adult", {"table": "adult"}, EPSILONS, QUICK),
)
SYNTHETIC = tuple(
    Panel(f"d = {d}, n = {n:,}", {"table": "algorithm 3", "n": n, "d": d}, EPSILONS, QUICK)
    for d in (10, 100)
    for n in (1000, 10_000, 50_000)
)
NEEDS_MORE_NOISE = (
    "Tried: the published scale and the exact one, each at three δ; and three other readings of Algorithm 3's Normalize "
    "([beside-amin-normalize](beside-the-figures.md#beside-amin-normalize-the-tables-of-figure-2b-by-other-readings-of-normalize))."
)
SCALING = (
    "The paper says of these tables that rows have norm at most 1, and no more: with standardized columns and all rows divided "
    "by the longest norm AD has less error than Gaussian noise in most cells "
    "([beside-amin-scalings](beside-the-figures.md#beside-amin-scalings-the-tables-of-figure-1-brought-to-norm-1-in-other-ways))."
)


def lost(results: Results, panel: str, x: float) -> bool:
    """True if AD has more error than a matrix that knows nothing of the table but its trace."""
    return results.center(panel, "AD", "error", x) > results.center(panel, NOTHING.label, "error", x)


def mean_gap(results: Results, method: str, other: str, panel: str, *, at: float | None = None) -> float:
    """Geometric mean over ε of the error of ``other`` over that of ``method``."""
    ratios = [ratio for (_, x), ratio in results.over(other, method, panel).items() if at is None or x == at]
    return math.exp(float(np.mean(np.log(ratios)))) if ratios else math.nan


def noise_that_the_claim_needs(results: Results, names: tuple[str, ...]) -> float:
    """By how much Gaussian errors would have to grow for AD to be below them in every cell."""
    return max(max(results.over("AD", name).values()) for name in names)


def splits_differ_little(results: Results) -> Outcome:
    ratios = results.over("AD", "IT-U")
    apart = furthest(ratios.values())
    panel, x = max(ratios, key=lambda cell: furthest([ratios[cell]]))
    words = f"AD / IT-U {factor(ratios.values())}; furthest apart at {panel}, ε = {x:g}"
    return Outcome.graded(apart <= 1.15, apart <= 1.5, words)


def beaten_by_gaussian_noise(results: Results) -> Outcome:
    found, against, cells = [], 0, 0
    for kind in (PUBLISHED_GAUSSIAN, EXACT_GAUSSIAN):
        ratios = [ratio for method in kind for ratio in results.over("AD", method.label).values()]
        label = "as published" if kind is PUBLISHED_GAUSSIAN else "exact"
        found.append(
            f"G {label}: AD has more error in {sum(ratio > 1.0 for ratio in ratios)} of {len(ratios)} cells, "
            f"AD / G {factor(ratios)}"
        )
        if kind is PUBLISHED_GAUSSIAN:
            against, cells = sum(ratio > 1.0 for ratio in ratios), len(ratios)
    needed = noise_that_the_claim_needs(results, tuple(method.label for method in PUBLISHED_GAUSSIAN))
    words = f"for the claim to hold the error of G as published would have to be {digits(needed)} times what it is"
    return Outcome.by_share(against, cells, f"{'; '.join(found)}; {words}")


# Amin et al., Figure 1(a): pure mechanisms on Wine, Airfoil and Adult.


def gap_is_widest_on_adult(results: Results) -> Outcome:
    """KT over AD by table, in cells in which AD is not lost; in groups of panels that differ in the table alone."""
    groups: dict[str, dict[str, list[float]]] = {}
    for panel in results.panels:
        table, _, form = panel.title.partition(": ")
        known = results.over("KT", "AD", panel.title)
        groups.setdefault(form, {})[table] = [ratio for cell, ratio in known.items() if not lost(results, *cell)]
    found, comparable, widest = [], 0, 0
    for form, tables in groups.items():
        gaps = {table: math.exp(float(np.mean(np.log(ratios)))) for table, ratios in tables.items() if ratios}
        words = ", ".join(f"{table} {digits(gaps[table]) if table in gaps else 'lost'}" for table in tables)
        found.append(f"{form}: {words}" if form else words)
        if "Adult" in gaps and len(gaps) > 1:
            comparable += 1
            widest += max(gaps, key=lambda table: gaps[table]) == "Adult"
    words = "KT / AD, mean over the ε at which AD has less error than (tr G/d)·I: "
    if not comparable:
        why = "on Adult at none: where both errors pass that of a matrix that knows the trace alone, their ratio says nothing"
        return Outcome(Verdict.INCOMPARABLE, f"{words}{'; '.join(found)}; {why}")
    return Outcome.by_share(comparable - widest, comparable, words + "; ".join(found))


FIGURE_1A = second_moments(
    name="amin-1a",
    number="1(a)",
    title="Pure ε mechanisms on Wine, Airfoil and Adult",
    panels=REAL,
    methods=PURE,
    trials=50,
    claims=(
        Claim(
            "AD has less error than KT and L everywhere but on Wine at ε = 0.01",
            never_above("AD", "KT", "L", except_for=[("Wine", 0.01)]),
        ),
        Claim("adaptive and uniform splits of the budget differ little", splits_differ_little),
        Claim("the gap between AD and KT is widest on the table of highest dimension", gap_is_widest_on_adult),
    ),
    instead=(
        Instead("AD", "dpmoments", "the default under pure ε, matrix Laplace noise and its repair"),
        Instead("L", "dpmoments", "the same"),
    ),
)


# Amin et al., Figure 1(b): AD against Gaussian noise on Wine, Airfoil and Adult.

FIGURE_1B = second_moments(
    name="amin-1b",
    number="1(b)",
    title="AD, which is pure, against Gaussian noise at three δ",
    panels=REAL,
    methods=GAUSSIAN,
    trials=50,
    borrowed={"amin-1a": ("AD", "(tr G/d)·I")},
    claims=(
        Claim(
            "AD has less error than Gaussian noise everywhere, at δ = 10⁻³ too",
            beaten_by_gaussian_noise,
            unknown=SCALING,
        ),
    ),
    instead=(
        Instead("AD", "dpmoments, δ = 1e-10", "the default under (ε, 10⁻¹⁰)"),
        Instead("G-10", "dpmoments, δ = 1e-10", "the same"),
    ),
)


# Amin et al., Figure 2(a): pure mechanisms on synthetic rows.

SIZES = (1000, 10_000, 50_000)


def gap_grows_with_d_and_shrinks_with_n(results: Results) -> Outcome:
    """KT over AD, compared between cells of one ε in which AD is not lost."""
    gaps = {
        (d, n, x): ratio
        for d in (10, 100)
        for n in SIZES
        for (title, x), ratio in results.over("KT", "AD", f"d = {d}, n = {n:,}").items()
        if not lost(results, title, x)
    }
    grows = [gap > gaps[10, n, x] for (d, n, x), gap in gaps.items() if d == 100 and (10, n, x) in gaps]
    shrinks = [
        gap > gaps[d, more, x]
        for (d, n, x), gap in gaps.items()
        for fewer, more in itertools.pairwise(SIZES)
        if n == fewer and (d, more, x) in gaps
    ]
    compared = [*grows, *shrinks]
    if not compared:
        return unmeasured("AD at two sizes")
    found = (
        f"where AD has less error than (tr G/d)·I, KT / AD grows with d in {sum(grows)} of {len(grows)} pairs of cells"
    )
    words = f"{found}, shrinks with n in {sum(shrinks)} of {len(shrinks)}; largest {digits(max(gaps.values()))}"
    return Outcome.by_share(len(compared) - sum(compared), len(compared), words)


FIGURE_2A = second_moments(
    name="amin-2a",
    number="2(a)",
    title="Pure ε mechanisms on synthetic rows",
    panels=SYNTHETIC,
    methods=PURE,
    trials=100,
    claims=(
        Claim("AD has less error than KT and L", never_above("AD", "KT", "L")),
        Claim("the gap between AD and KT grows with d and shrinks with n", gap_grows_with_d_and_shrinks_with_n),
    ),
    instead=(Instead("AD", "dpmoments", "the default under pure ε"),),
)


# Amin et al., Figure 2(b): AD against Gaussian noise on synthetic rows.


def loses_ground_with_n(results: Results) -> Outcome:
    """G over AD falls as n grows."""
    gains = {(d, n): mean_gap(results, "AD", "G-10", f"d = {d}, n = {n:,}") for d in (10, 100) for n in SIZES}
    falls = sum(gains[d, n] > gains[d, m] for d in (10, 100) for n, m in itertools.pairwise(SIZES))
    found = "; ".join(f"d = {d}: " + ", ".join(digits(gains[d, n]) for n in SIZES) for d in (10, 100))
    return Outcome.graded(falls == 4, falls == 3, f"G-10 / AD, mean over ε, by n: {found}")


def gains_with_d_at_small_epsilon(results: Results) -> Outcome:
    """G over AD at ε = 0.1 is larger at d = 100."""
    gains = {(d, n): mean_gap(results, "AD", "G-10", f"d = {d}, n = {n:,}", at=0.1) for d in (10, 100) for n in SIZES}
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
        f"{digits(max(lost))} times the error of (tr G/d)·I",
    )


FIGURE_2B = second_moments(
    name="amin-2b",
    number="2(b)",
    title="AD against Gaussian noise on synthetic rows",
    panels=SYNTHETIC,
    methods=GAUSSIAN,
    trials=100,
    borrowed={"amin-2a": ("AD", "(tr G/d)·I")},
    claims=(
        Claim("AD has less error than Gaussian noise", beaten_by_gaussian_noise, needs=NEEDS_MORE_NOISE),
        Claim("against Gaussian noise AD loses ground as n grows", loses_ground_with_n),
        Claim("at small ε AD gains on Gaussian noise as d grows", gains_with_d_at_small_epsilon),
    ),
    instead=(Instead("AD", "dpmoments, δ = 1e-10", "the default under (ε, 10⁻¹⁰)"),),
)


# What Figures 3 to 5 of Amin et al. share: methods of the regression task, and judgements of them.

P = Method("P", {"perturbation": "bounded"}, style={"color": "tab:green"})
REGRESSIONS = (
    AD,
    P,
    Method("P, slope 1", {"perturbation": "slope 1"}, style={"color": "tab:green", "ls": ":"}),
    LAPLACE,
    Method("G-10, exact", {"mechanism": "gaussian", "delta": 1e-10}, style={"color": "tab:purple"}),
    DEFAULT,
    Method("not private", {"knows": "rows"}, most_trials=1, style={"color": "grey", "ls": "--"}),
    Method("w = 0", {"knows": "nothing"}, most_trials=1, style={"color": "silver", "ls": "-."}),
)
PUBLISHED_FIRST = ("P, slope 1", "P")
"""A verdict on P is on the noise that the paper had, as far as one can tell; P with noise that is private stands beside it."""
NOISE_OF_P = (
    "Which noise its output perturbation had the paper does not say: Chaudhuri et al.'s is for losses of slope at most 1, which "
    "squared loss is not. Tried: that noise, which is not private here, and noise for ‖w‖ ≤ 1, which is; the best α of each, "
    "and the same α."
)


def least(results: Results, method: str, cell: tuple[str, float]) -> float:
    """The least loss over the α, in a panel at an ε."""
    return min(results.center(cell[0], method, metric(alpha), cell[1]) for alpha in ALPHAS)


def cells(results: Results, method: str) -> list[tuple[str, float]]:
    """Panels and ε that were measured of a method and of AD."""
    name = metric(ALPHAS[0])
    found = [
        (panel.title, x)
        for panel in results.panels
        for x in panel.points
        if len(results.values(panel.title, method, name, x)) and len(results.values(panel.title, "AD", name, x))
    ]
    return found or unmeasured(f"AD and {method}")  # type: ignore[return-value]


def best_are_alike(results: Results) -> Outcome:
    found, apart = [], 0.0
    for other in PUBLISHED_FIRST:
        ratios = [least(results, "AD", cell) / least(results, other, cell) for cell in cells(results, other)]
        found.append(f"AD / {other} {factor(ratios)}")
        if other == PUBLISHED_FIRST[0]:
            apart = furthest(ratios)
    return Outcome.graded(apart <= 1.5, apart <= 3.0, f"losses, each at its best α: {'; '.join(found)}")


def spread_over_alphas(results: Results, method: str, cell: tuple[str, float]) -> float:
    """Largest loss over the least, over α."""
    losses = [results.center(cell[0], method, metric(alpha), cell[1]) for alpha in ALPHAS]
    return max(losses) / min(losses)


def ad_is_the_steadier(results: Results) -> Outcome:
    asked = cells(results, "P")
    spreads = {
        method: [spread_over_alphas(results, method, cell) for cell in asked] for method in ("AD", *PUBLISHED_FIRST)
    }
    against = sum(ours > theirs for ours, theirs in zip(spreads["AD"], spreads[PUBLISHED_FIRST[0]], strict=True))
    found = "; ".join(f"{method} {factor(values)}" for method, values in spreads.items())
    words = f"largest / least loss over α: {found}; AD is the less steady in {against} of {len(asked)} cells"
    return Outcome.by_share(against, len(asked), words)


def ad_beats_p(results: Results) -> Outcome:
    """Each at its best α, and at every one."""
    found, against, asked = [], 0, 0
    for other in PUBLISHED_FIRST:
        each = [
            results.center(panel, "AD", metric(alpha), x) / results.center(panel, other, metric(alpha), x)
            for panel, x in cells(results, other)
            for alpha in ALPHAS
        ]
        best = [least(results, "AD", cell) / least(results, other, cell) for cell in cells(results, other)]
        worse = sum(ratio > 1.05 for ratio in best)
        if other == PUBLISHED_FIRST[0]:
            against, asked = worse, len(best)
        found.append(
            f"AD / {other}: each at its best α {factor(best)}, above 1.05 in {worse} of {len(best)} cells; at the "
            f"same α {factor(each)}"
        )
    return Outcome.by_share(against, asked, "; ".join(found))


def better_than_nothing(results: Results) -> Outcome:
    """Not a claim of the paper, but what its plots cannot show: whether w = 0 would have done."""
    ratios = {
        method: [least(results, method, cell) / least(results, "w = 0", cell) for cell in cells(results, "w = 0")]
        for method in ("AD", "P", "dpmoments")
    }
    useful = sum(ratio < 0.95 for ratio in ratios["AD"])
    found = "; ".join(f"{method} {factor(values)}" for method, values in ratios.items())
    words = f"least loss over α / loss of w = 0: {found}; AD is below 0.95 in {useful} of {len(ratios['AD'])} cells"
    return Outcome.graded(useful == len(ratios["AD"]), useful >= len(ratios["AD"]) / 2, words)


USEFUL = question("are the regressions better than w = 0?", better_than_nothing)


def best_alpha(results: Results, panel: str, method: str, x: float) -> str:
    return digits(min(ALPHAS, key=lambda alpha: results.center(panel, method, metric(alpha), x)))


regressions_by_alpha = partial(Figure, experiment="ridge", axis="ε", drawing="best", methods=REGRESSIONS, trials=50)


# Amin et al., Figure 3: the first column predicted from the others, synthetic rows.


def with_targets(targets: str, panels: Sequence[Panel]) -> tuple[Panel, ...]:
    return tuple(
        Panel(panel.title, dict(panel.settings) | {"targets": targets}, panel.points, panel.quick) for panel in panels
    )


def alpha_100_is_best_for_ad(results: Results) -> Outcome:
    """At d = 10, n = 10,000, whatever ε; that of P moves."""
    panel = "d = 10, n = 10,000"
    found = {
        method: [
            best_alpha(results, panel, method, x) for x in EPSILONS if len(results.values(panel, method, "α = 1", x))
        ]
        for method in ("AD", "P")
    }
    fixed = len(set(found["AD"])) == 1
    words = "; ".join(f"{method}: {', '.join(alphas)}" for method, alphas in found.items())
    return Outcome.graded(fixed and found["AD"][0] == "100", len(set(found["AD"])) <= 2, f"best α by ε, {words}")


FIGURE_3 = regressions_by_alpha(
    name="amin-3",
    number="3",
    title="Ridge regression of the first column, synthetic rows",
    error="mean squared residual",
    panels=with_targets("first", SYNTHETIC),
    claims=(
        Claim("at its best α, P is about as good as AD at its own", best_are_alike, unknown=NOISE_OF_P),
        Claim("AD is much steadier over the choice of α", ad_is_the_steadier),
        Claim("at d = 10, n = 10,000 the best α of AD is 100 at every ε; that of P moves", alpha_100_is_best_for_ad),
        USEFUL,
    ),
    instead=(Instead("AD", "dpmoments", "ridge regression from a default release", metric="least"),),
)


# Amin et al., Figure 4: every column predicted from the others, synthetic rows; P divides ε among them.

FIGURE_4 = regressions_by_alpha(
    name="amin-4",
    number="4",
    title="Ridge regressions of every column on the others, synthetic rows",
    error="mean squared residual",
    panels=with_targets("all", SYNTHETIC),
    claims=(Claim("where every column is a target AD is far ahead of P", ad_beats_p, unknown=NOISE_OF_P), USEFUL),
    instead=(
        Instead("P", "dpmoments", "ridge regressions from one default release", metric="least"),
        Instead("AD", "dpmoments", "the same", metric="least"),
    ),
)


# Amin et al., Figure 5: the regression task on Wine, Airfoil and Adult.

FIGURE_5 = regressions_by_alpha(
    name="amin-5",
    number="5",
    title="Ridge regression of the first column of Wine, Airfoil and Adult",
    error="mean squared residual of the test rows",
    panels=with_targets("first", REAL),
    claims=(
        Claim("regressions from AD beat output perturbation (section 4)", ad_beats_p, unknown=NOISE_OF_P),
        Claim("AD is much steadier over the choice of α", ad_is_the_steadier),
        USEFUL,
    ),
    instead=(Instead("AD", "dpmoments", "ridge regression from a default release", metric="least"),),
)

FIGURES = (FIGURE_1A, FIGURE_1B, FIGURE_2A, FIGURE_2B, FIGURE_3, FIGURE_4, FIGURE_5)
