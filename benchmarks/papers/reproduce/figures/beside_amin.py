"""Beside the figures of Amin et al."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import combinations
from statistics import median

from benchmarks.papers.reproduce.claims import (
    digits,
    factor,
    furthest,
    listed,
    never_above,
    slope,
    slopes_near,
    together,
)
from benchmarks.papers.reproduce.declaration import Claim, Figure, Instead, Method, Outcome, Panel, Verdict, question
from benchmarks.papers.reproduce.experiments.second_moments import SIDES
from benchmarks.papers.reproduce.experiments.tables import NORMALIZATIONS, SCALINGS, SYNTHETIC
from benchmarks.papers.reproduce.figures import amin
from benchmarks.papers.reproduce.results import Results, unmeasured

beside_moments = partial(Figure, experiment="second_moments", error="‖Ĝ − G‖_F / n")
DEPTH = 23
"""Trials of methods that are quick; slow ones on tables of a hundred columns have fewer."""
SLOW = 8

AD_TIGHT, UNIFORM_TIGHT, KT_TIGHT = (
    Method(
        f"{name}, tight",
        {"mechanism": mechanism, "options": options},
        most_trials=DEPTH,
        style={"color": color, "ls": "--"},
    )
    for name, mechanism, options, color in (
        ("AD", "iterative-eigenvectors", {"allocation": "adaptive"}, "tab:red"),
        ("IT-U", "iterative-eigenvectors", {"allocation": "uniform"}, "tab:orange"),
        ("KT", "kapralov-talwar", {}, "tab:green"),
    )
)
GAPS = Method(
    "iterative-eigenvectors", {"mechanism": "iterative-eigenvectors"}, most_trials=DEPTH, style={"color": "tab:brown"}
)
"""As the library has it: tight, the budget split by gaps."""
MATRIX_LAPLACE = Method("matrix Laplace, clipped", {"mechanism": "matrix-laplace"}, style={"color": "tab:purple"})
GAUSSIAN = replace(amin.EXACT_GAUSSIAN[1], style={"color": "tab:cyan"})
AD_PRINTED, UNIFORM_PRINTED = (
    Method(f"{name} as printed, not private", {"printed": split}, most_trials=DEPTH, style={"color": color, "ls": ":"})
    for name, split, color in (("AD", "adaptive", "tab:red"), ("IT-U", "uniform", "tab:orange"))
)


# Beside Figure 1 of Amin et al.: tight calibration, the default split, and the acceptance that the paper prints.

PRINTED = AD_PRINTED.label
DIRECTIONS = ("AD", AD_TIGHT.label, KT_TIGHT.label, GAPS.label)


def printed_errs_less(results: Results) -> Outcome:
    """AD by the right law over AD as printed, from ε = 1 on."""
    cells = {cell: ratio for cell, ratio in results.over("AD", PRINTED).items() if cell[1] >= 1.0}
    if not cells:
        return unmeasured(PRINTED)
    above = sum(ratio > 1.05 for ratio in cells.values())
    found = "; ".join(
        f"{panel.title} {', '.join(digits(ratio) for (title, _), ratio in cells.items() if title == panel.title)}"
        for panel in results.panels
    )
    return Outcome.graded(above == len(cells), above > len(cells) / 2, f"AD / AD as printed, by ε from 1 on: {found}")


def printed_changes_little(results: Results) -> Outcome:
    """How far the two are apart up to ε = 0.1."""
    ratios = [ratio for (_, x), ratio in results.over("AD", PRINTED).items() if x <= 0.1]
    if not ratios:
        return unmeasured(PRINTED)
    apart = furthest(ratios)
    return Outcome.graded(apart <= 1.1, apart <= 1.25, f"AD / AD as printed, up to ε = 0.1: {factor(ratios)}")


def tight_does_not_reach_it(results: Results) -> Outcome:
    """Tight and by gaps over the printed one, where that is ahead of AD."""
    ahead = {cell for cell, ratio in results.over("AD", PRINTED).items() if ratio > 1.05}
    found, reached, cells = [], 0, 0
    for method in (AD_TIGHT.label, GAPS.label):
        ratios = [ratio for cell, ratio in results.over(method, PRINTED).items() if cell in ahead]
        if not ratios:
            return unmeasured(method)
        cells += len(ratios)
        reached += sum(ratio < 1.0 / 1.05 for ratio in ratios)
        found.append(f"{method} / {PRINTED} {factor(ratios)}")
    return Outcome.by_share(reached, cells, f"where the printed law is ahead of AD by over 5 %: {'; '.join(found)}")


def laplace_is_overtaken_by_the_misprint(results: Results) -> Outcome:
    """Cells in which L has less error than AD, and than AD as printed."""
    behind = {
        method: [f"{panel}, ε = {x:g}" for (panel, x), ratio in results.over("L", method).items() if ratio < 1.0]
        for method in ("AD", PRINTED)
    }
    changed = [cell for cell in behind["AD"] if cell not in behind[PRINTED]]
    words = f"L is ahead of AD in {len(behind['AD'])} cells and of AD as printed in {len(behind[PRINTED])}"
    words += f"; turned round at {'; '.join(changed)}" if changed else ""
    return Outcome(Verdict.REPRODUCED if changed else Verdict.FAILS, words)


def knows_more_than_the_trace(results: Results) -> Outcome:
    """AD, tight, below a multiple of the identity."""
    found, below, cells = [], 0, 0
    for panel in results.panels:
        ratios = results.over(AD_TIGHT.label, "(tr G/d)·I", panel.title)
        useful = [x for (_, x), ratio in ratios.items() if ratio < 1.0]
        below, cells = below + len(useful), cells + len(ratios)
        found.append(f"{panel.title} from ε = {min(useful):g} on" if useful else f"{panel.title} at no ε")
    words = f"AD, tight, has less error than (tr G/d)·I in {below} of {cells} cells: {', '.join(found)}"
    return Outcome.by_share(cells - below, cells, words)


CALIBRATIONS = beside_moments(
    name="beside-amin-calibrations",
    title="Wine, Airfoil and Adult with twice the temperature, and with the acceptance that the paper prints",
    axis="ε",
    panels=tuple(replace(panel, slow_trials=SLOW) if panel.title == "Adult" else panel for panel in amin.REAL),
    methods=(AD_TIGHT, UNIFORM_TIGHT, KT_TIGHT, GAPS, MATRIX_LAPLACE, AD_PRINTED, UNIFORM_PRINTED),
    trials=DEPTH,
    borrowed={"amin-1a": ("AD", "IT-U", "KT", "L", "dpmoments", "(tr G/d)·I")},
    claims=(
        question(
            "twice the temperature, which a correct proof allows at the same ε, never has more error",
            together(
                never_above(AD_TIGHT.label, "AD"),
                never_above(UNIFORM_TIGHT.label, "IT-U"),
                never_above(KT_TIGHT.label, "KT"),
            ),
        ),
        question("the split by gaps never has more error than AD, tight", never_above(GAPS.label, AD_TIGHT.label)),
        question(
            "by the acceptance that the paper prints AD errs less than it can at its ε, from ε = 1 on",
            printed_errs_less,
        ),
        question(
            "up to ε = 0.1 the printed acceptance changes little, since no direction is found", printed_changes_little
        ),
        question("the tight calibrations win back a part of that, not all", tight_does_not_reach_it),
        question("the printed acceptance turns the order of AD and L round", laplace_is_overtaken_by_the_misprint),
        question("directions tell more of the table than its trace does", knows_more_than_the_trace),
        question(
            "from ε = 1 on clipped matrix Laplace noise has less error than any choice of directions",
            never_above(MATRIX_LAPLACE.label, *DIRECTIONS, at=lambda x: x >= 1.0),
        ),
        question("with its repair it has less error than they have at every ε", never_above("dpmoments", *DIRECTIONS)),
    ),
    instead=(Instead(AD_TIGHT.label, "dpmoments", "the default under pure ε"),),
)


# Beside Figure 1 of Amin et al.: the tables in other forms, which the paper does not tell apart.

WINE, AIRFOIL = "Wine with its target", "Airfoil without its target"
COMPLETE, REPLICATION = "Adult, complete rows with the target", "Adult as the replication has it"
FORM_PANELS = (
    Panel(WINE, {"table": "wine, target"}, amin.EPSILONS, amin.QUICK),
    Panel(AIRFOIL, {"table": "airfoil, no target"}, amin.EPSILONS, amin.QUICK),
    Panel(COMPLETE, {"table": "adult, complete"}, amin.EPSILONS, amin.QUICK, slow_trials=SLOW),
    Panel(REPLICATION, {"table": "adult, replication"}, amin.EPSILONS, amin.QUICK, slow_trials=SLOW),
)

COMPARED = ("AD", "IT-U", "KT", "L", "dpmoments")
LEVEL_OF_FORMS = 1.05
"""Errors nearer than this are level."""


def changes(results: Results, form: str, other: str, *methods: str) -> list[float]:
    """Errors in one form over those in the other, from ε = 0.1 on."""
    found = [
        results.center(form, method, "error", x) / results.center(other, method, "error", x)
        for method in methods
        for x in amin.EPSILONS[1:]
        if len(results.values(form, method, "error", x)) and len(results.values(other, method, "error", x))
    ]
    return found or unmeasured(f"{form} and {other}")  # type: ignore[return-value]


def reversals(results: Results, form: str, other: str) -> list[str]:
    """Pairs of methods that stand one way in one form and the other way in the other, neither level; and all pairs."""
    found = []
    for x in amin.EPSILONS[1:]:
        for first, then in combinations(COMPARED, 2):
            ratios = [
                results.center(title, first, "error", x) / results.center(title, then, "error", x)
                for title in (form, other)
                if len(results.values(title, first, "error", x)) and len(results.values(title, then, "error", x))
            ]
            if len(ratios) == 2 and (min(ratios) < 1.0 / LEVEL_OF_FORMS and max(ratios) > LEVEL_OF_FORMS):
                found.append(f"{first} and {then} at ε = {x:g}")
    return found


def only_rows_differ(results: Results) -> Outcome:
    """Adult: complete rows with the target against all rows without."""
    ratios = changes(results, COMPLETE, "Adult", *COMPARED)
    turned = reversals(results, COMPLETE, "Adult")
    most = furthest(ratios)
    words = f"errors with 45,222 complete rows and the target / with all 48,842 {factor(ratios)}"
    return Outcome.graded(most <= 1.1 and not turned, most <= 1.25, f"{words}; {len(turned)} orders turned round")


def targets_change_no_order(results: Results) -> Outcome:
    """Wine with its target, Airfoil without, against the forms of Figure 1."""
    found, turned, pairs = [], [], 0
    for form, other in ((WINE, "Wine"), (AIRFOIL, "Airfoil")):
        found.append(f"{form} / {other} {factor(changes(results, form, other, *COMPARED))}")
        turned += [f"{form}: {pair}" for pair in reversals(results, form, other)]
        pairs += (len(amin.EPSILONS) - 1) * len(COMPARED) * (len(COMPARED) - 1) // 2
    words = f"errors, from ε = 0.1 on: {'; '.join(found)}; turned round: {', '.join(turned) or 'nothing'}"
    return Outcome.by_share(len(turned), pairs, words)


def encoding_matters(results: Results) -> Outcome:
    """Adult in the replication's form against the two others."""
    rows = furthest(changes(results, COMPLETE, "Adult", "AD"))
    encoded = changes(results, REPLICATION, COMPLETE, "AD")
    apart = furthest(encoded)
    words = f"error of AD in the replication's form / with all levels standardised {factor(encoded)}"
    words += f"; with other rows at most {digits(rows)} times as large or as small"
    return Outcome.graded(apart > 1.5 > rows, apart > rows, words)


def split_matters_where_a_direction_stands_out(results: Results) -> Outcome:
    """AD over IT-U, at the ε where it is least."""
    least = {panel.title: min(results.over("AD", "IT-U", panel.title).values()) for panel in results.panels}
    others = [ratio for title, ratio in least.items() if title != REPLICATION]
    mine = least[REPLICATION]
    words = "least AD / IT-U: " + ", ".join(f"{title} {digits(ratio)}" for title, ratio in least.items())
    return Outcome.graded(mine < 0.75 < min(others), mine < min(others), words)


FORMS = beside_moments(
    name="beside-amin-forms",
    title="The same tables in other forms",
    axis="ε",
    panels=FORM_PANELS,
    methods=(
        *(replace(method, most_trials=DEPTH) for method in (amin.AD, amin.UNIFORM, amin.KT)),
        amin.LAPLACE,
        AD_TIGHT,
        GAPS,
        amin.DEFAULT,
        amin.NOTHING,
    ),
    trials=DEPTH,
    columns=2,
    borrowed={"amin-1a": ("AD", "IT-U", "KT", "L", "dpmoments", "(tr G/d)·I")},
    claims=(
        question("other rows of Adult, and its target, change nothing", only_rows_differ),
        question(
            "with or without a target the sizes of Wine's and Airfoil's errors change, not their order",
            targets_change_no_order,
        ),
        question("how Adult is encoded changes more than which rows it has", encoding_matters),
        question(
            "an adaptive split gains where a part of the trace lies along one direction, as in the replication's form",
            split_matters_where_a_direction_stands_out,
        ),
        Claim("(section 4) AD has less error than L in these forms too", never_above("AD", "L")),
        Claim(
            "(section 4) iterative eigenvectors have less error than KT, from ε = 0.1 on",
            never_above("IT-U", "KT", panels=[panel.title for panel in FORM_PANELS], at=lambda x: x >= 0.1),
        ),
        question(
            "the default has less error than all of them at every ε",
            never_above("dpmoments", "AD", "IT-U", "KT", "L", GAPS.label),
        ),
    ),
    instead=(Instead("AD", "dpmoments", "the default under pure ε", panels=[panel.title for panel in FORM_PANELS]),),
)


# Beside Amin et al., Figure 1: the claims of section 4 on the same tables, brought to norm 1 in other ways.


def beaten(part: int, *labels: str) -> Callable[[Results], Outcome]:
    """Cells in which AD has more error than Gaussian noise, by one part of the panels' titles."""

    def judge(results: Results) -> Outcome:
        cells: dict[str, list[float]] = {}
        for label in labels:
            for (panel, _), ratio in results.over("AD", label).items():
                cells.setdefault(panel.split(": ")[part], []).append(ratio)
        found = "; ".join(
            f"{name} {sum(ratio > 1.0 for ratio in known)} of {len(known)}" for name, known in cells.items()
        )
        ratios = [ratio for known in cells.values() for ratio in known]
        words = f"AD has more error in: {found} cells; AD / G {factor(ratios)}"
        return Outcome.by_share(sum(ratio > 1.0 for ratio in ratios), len(ratios), words)

    return judge


PUBLISHED = [method.label for method in amin.PUBLISHED_GAUSSIAN]


NOT_STATED = "The paper says of these tables that rows have norm at most 1, and no more."

SCALED_TABLES = beside_moments(
    name="beside-amin-scalings",
    title="The tables of Figure 1, brought to norm 1 in other ways",
    axis="ε",
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
            beaten(1, *PUBLISHED),
            unknown=NOT_STATED,
        ),
        Claim(
            "(section 4) the gap between AD and KT is widest on Adult", amin.gap_is_widest_on_adult, unknown=NOT_STATED
        ),
    ),
)


# Beside Amin et al., Figure 2(b): the same tables by other readings of the subroutine that brings rows to norm 1.

WIDE_NOISE = Method(
    "G-3, d^1.5 on each entry", {"gaussian": "replication", "delta": 1e-3}, style={"color": "tab:brown", "ls": ":"}
)
"""The scale of the replication, which the paper's bound on Gaussian noise may have been read as."""


NORMALIZED = beside_moments(
    name="beside-amin-normalize",
    title="The tables of Figure 2(b) by other readings of Normalize",
    axis="ε",
    panels=tuple(
        Panel(
            f"{reading}: d = {d}, n = {n:,}",
            {"table": f"{SYNTHETIC}, {reading}", "n": n, "d": d},
            amin.EPSILONS,
            amin.QUICK,
        )
        for reading in NORMALIZATIONS
        for d in (10, 100)
        for n in amin.SIZES
    ),
    methods=(replace(amin.AD, most_trials=SLOW), *amin.PUBLISHED_GAUSSIAN, WIDE_NOISE, amin.NOTHING),
    trials=20,
    claims=(
        question("read in these ways, has AD less error than Gaussian noise as published?", beaten(0, *PUBLISHED)),
        question("than Gaussian noise of d^1.5 on each entry, the replication's scale?", beaten(0, WIDE_NOISE.label)),
    ),
)


# Beside Figure 2 of Amin et al.: how the error falls with the number of rows (section 5).

ROWS = (1000.0, 3162.0, 10_000.0, 31_623.0, 100_000.0, 316_228.0, 1_000_000.0)
RATE_PANELS = tuple(
    Panel(f"ε = {epsilon:g}", {"table": "algorithm 3", "x": "n", "d": 10, "epsilon": epsilon}, ROWS, ROWS[:5])
    for epsilon in (0.1, 1.0)
)

MANY = ROWS[3]
"""From here on the budget is enough for either ε."""


def gap_closes(results: Results) -> Outcome:
    found = results.by_panel("KT", "AD")
    closes = [ratios[-1] < ratios[0] or ratios[-1] < max(ratios) - 0.1 for ratios in found.values()]
    return Outcome.graded(all(closes), any(closes), f"KT / AD by n: {listed(found)}")


RATES = beside_moments(
    name="beside-amin-rates",
    title="The error over the number of rows, d = 10",
    axis="n",
    panels=RATE_PANELS,
    methods=(amin.AD, AD_TIGHT, amin.KT, amin.LAPLACE, MATRIX_LAPLACE, GAUSSIAN),
    trials=DEPTH,
    columns=2,
    claims=(
        Claim(
            "(section 5) the error of AD falls as 1/√n, once n is large enough for the budget",
            slopes_near(-0.5, ("AD", AD_TIGHT.label), within=0.06, changed=0.1, at=lambda n: n >= MANY),
        ),
        Claim(
            "(section 5) the error of Gaussian and Laplace noise falls as 1/n",
            slopes_near(
                -1.0, ("L", MATRIX_LAPLACE.label, GAUSSIAN.label), within=0.06, changed=0.1, at=lambda n: n >= MANY
            ),
        ),
        Claim("(appendix C.1) the gap between AD and KT closes as n grows", gap_closes),
    ),
)


# Beside Figure 2 of Amin et al.: how the error grows with the dimension (section 5, appendix C.1).

DIMENSIONS = (5.0, 10.0, 20.0, 40.0, 80.0, 160.0)
DIMENSION_PANELS = tuple(
    Panel(
        f"ε = {epsilon:g}",
        {"table": "algorithm 3", "x": "d", "n": 10_000, "epsilon": epsilon},
        DIMENSIONS,
        DIMENSIONS[:5],
    )
    for epsilon in (0.1, 1.0)
)


def no_faster_than_guaranteed(results: Results) -> Outcome:
    """AD's slope where it is not lost: at most that of its guarantee."""
    found, slopes = [], []
    for panel in results.panels:
        kept = {
            x
            for x in panel.points
            if len(results.values(panel.title, "AD", "error", x)) and not amin.lost(results, panel.title, x)
        }
        known = slope(results, panel.title, "AD", at=kept.__contains__)
        if math.isfinite(known):
            slopes.append(known)
            found.append(f"{panel.title}: {known:.2f} over d up to {max(kept):g}")
    if not slopes:
        return unmeasured("AD at two d")
    most = max(slopes)
    words = f"slope of log error of AD on log d, where it has less error than (tr G/d)·I: {'; '.join(found)}"
    return Outcome.graded(most <= 1.5, most <= 1.65, words)


def gap_grows(results: Results) -> Outcome:
    """KT over AD by d, up to where AD is lost."""
    found, grows = [], 0
    for panel in results.panels:
        ratios = results.over("KT", "AD", panel.title)
        kept = [ratio for cell, ratio in ratios.items() if not amin.lost(results, *cell)]
        if len(kept) < 2:
            return unmeasured("KT and AD at two d")
        grows += kept[-1] > kept[0]
        found.append(
            f"{panel.title}: {', '.join(map(digits, ratios.values()))}, the last of them that is not lost {digits(kept[-1])}"
        )
    return Outcome.graded(grows == len(found), grows, f"KT / AD by d: {'; '.join(found)}")


def gains_on_gaussian_noise(results: Results) -> Outcome:
    """G-10 over AD at the smaller ε."""
    panel = results.panels[0].title
    ratios = list(results.over(GAUSSIAN.label, "AD", panel).values())
    last = max(results.points[panel, "AD", "error"])
    lost, grows = amin.lost(results, panel, last), ratios[-1] > ratios[0]
    words = f"{GAUSSIAN.label} / AD at {panel} by d: {', '.join(map(digits, ratios))}"
    return Outcome.graded(grows and not lost, grows, f"{words}; at d = {last:g} AD is {'lost' if lost else 'not lost'}")


OVER_D = beside_moments(
    name="beside-amin-dimensions",
    title="The error over the dimension, n = 10,000",
    axis="d",
    panels=DIMENSION_PANELS,
    methods=(
        amin.AD,
        amin.UNIFORM,
        amin.KT,
        amin.LAPLACE,
        replace(GAPS, most_trials=None),
        MATRIX_LAPLACE,
        GAUSSIAN,
        amin.NOTHING,
    ),
    trials=15,
    columns=2,
    claims=(
        Claim(
            "(section 5) the guarantee of AD grows as d to the power 3/2: its error grows no faster",
            no_faster_than_guaranteed,
        ),
        question(
            "the noise of matrix Laplace grows as d to the power 3/2",
            slopes_near(1.5, (MATRIX_LAPLACE.label,), within=0.1, changed=0.25),
        ),
        question("symmetric Gaussian noise grows as d", slopes_near(1.0, (GAUSSIAN.label,), within=0.1, changed=0.25)),
        Claim("(appendix C.1) the gap between AD and KT grows with d", gap_grows),
        Claim("(appendix C.1) at small ε AD gains on Gaussian noise as d grows", gains_on_gaussian_noise),
    ),
)


# Beside Amin et al. (section 3.1): the rule that takes eigenvectors or Gaussian noise, and the replication's “hybrid”.

REGIME_TABLES = (
    ("Wine", {"table": "wine"}, None),
    ("Airfoil", {"table": "airfoil"}, None),
    ("Adult", {"table": "adult"}, SLOW),
    ("d = 10, n = 1,000", {"table": "algorithm 3", "n": 1000, "d": 10}, None),
    ("d = 10, n = 10,000", {"table": "algorithm 3", "n": 10_000, "d": 10}, None),
)
REGIME_PANELS = tuple(
    Panel(f"{title}, δ = 1e-{name}", settings | {"delta": delta}, amin.EPSILONS, amin.QUICK, slow_trials=slow)
    for title, settings, slow in REGIME_TABLES
    for name, delta in amin.DELTAS.items()
)
EIGENVECTORS, GAUSSIAN_SIDE = (
    replace(side, most_trials=20, style={"color": color, "lw": 4.0})
    for side, color in zip(SIDES.values(), ("lightcoral", "lightblue"), strict=True)
)
BY_EIGENVALUE, BY_ROWS = (
    Method(label, {"rule": rule}, most_trials=20, style={"color": "black", "ls": line, "lw": 1.0})
    for label, rule, line in (
        ("the rule, λ₁ of the table (not private)", "largest eigenvalue", "--"),
        ("the rule, n for λ₁", "n", ":"),
    )
)

NEAR = 1.02
"""An error within this of the better one's is as good."""


def errors(results: Results) -> list[dict[str, float]]:
    """The errors of all methods, in cells that all have."""
    cells = [results.errors(panel.title, REGIMES.methods, x) for panel in results.panels for x in panel.points]
    return [cell for cell in cells if len(cell) == len(REGIMES.methods)]


def takes_the_better(rule: Method) -> Callable[[Results], Outcome]:
    def judge(results: Results) -> Outcome:
        lost = [cell[rule.label] / min(cell[EIGENVECTORS.label], cell[GAUSSIAN_SIDE.label]) for cell in errors(results)]
        if not lost:
            return unmeasured(rule.label)
        wrong = sum(ratio > NEAR for ratio in lost)
        words = f"takes the better of its two in {len(lost) - wrong} of {len(lost)} cells"
        return Outcome.by_share(wrong, len(lost), f"{words}, at most {digits(max(lost))} times its error otherwise")

    return judge


def errs_on_one_side(results: Results) -> Outcome:
    """Which side is taken where the other is better."""
    wrong = [
        (cell[rule.label] > NEAR * cell[GAUSSIAN_SIDE.label], cell[rule.label] > NEAR * cell[EIGENVECTORS.label])
        for rule in (BY_EIGENVALUE, BY_ROWS)
        for cell in errors(results)
    ]
    eigenvectors, gaussian = (sum(each[side] for each in wrong) for side in (0, 1))
    words = f"with either guess: Gaussian noise taken wrongly {gaussian} times, eigenvectors {eigenvectors} times"
    return Outcome.graded(gaussian and not eigenvectors, gaussian > 9 * eigenvectors, words)


def gains_little(results: Results) -> Outcome:
    """The better of the two sides over the default, at its least."""
    ratios = [min(cell[EIGENVECTORS.label], cell[GAUSSIAN_SIDE.label]) / cell["dpmoments"] for cell in errors(results)]
    against = sum(ratio < 1.0 / 1.05 for ratio in ratios)
    spread = f"{digits(min(ratios))} at least, {digits(median(ratios))} in the middle, {digits(max(ratios))} at most"
    return Outcome.by_share(against, len(ratios), f"error of the better of the two / of dpmoments: {spread}")


REGIMES = beside_moments(
    name="beside-amin-regimes",
    title="The rule of regimes, beside its two sides and the default",
    axis="ε",
    panels=REGIME_PANELS,
    methods=(EIGENVECTORS, GAUSSIAN_SIDE, BY_EIGENVALUE, BY_ROWS, amin.DEFAULT),
    trials=20,
    claims=(
        Claim(
            "(section 3.1) eigenvectors are ahead where λ₁ log λ₁ ≤ log(1/δ)/ε, Gaussian noise elsewhere",
            takes_the_better(BY_EIGENVALUE),
        ),
        question("the rule serves as well with n in place of λ₁, which is private", takes_the_better(BY_ROWS)),
        question("the rule errs on one side: it takes Gaussian noise too early", errs_on_one_side),
        question(
            "additive noise with a repair that knows its law has no more error than the better of the two", gains_little
        ),
        question(
            "is the rule, a hybrid as the replication proposes one, ahead of one mechanism?",
            never_above(BY_EIGENVALUE.label, "dpmoments"),
        ),
    ),
    instead=(Instead(BY_EIGENVALUE.label, "dpmoments", "the default under (ε, δ)"),),
)

FIGURES = (CALIBRATIONS, FORMS, SCALED_TABLES, NORMALIZED, RATES, OVER_D, REGIMES)
