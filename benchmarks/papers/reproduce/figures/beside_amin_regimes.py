"""Beside Amin et al. (section 3.1): the rule that takes eigenvectors or Gaussian noise, and the replication's “hybrid”."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from statistics import median

from benchmarks.papers.reproduce.claims import by_share, digits, never_above, unmeasured
from benchmarks.papers.reproduce.declaration import Claim, Figure, Instead, Method, Outcome, Panel, Verdict
from benchmarks.papers.reproduce.experiments.moments_beside import SIDES
from benchmarks.papers.reproduce.figures import amin, beside
from benchmarks.papers.reproduce.results import Results

TABLES = (
    ("Wine", {"table": "wine"}, None),
    ("Airfoil", {"table": "airfoil"}, None),
    ("Adult", {"table": "adult"}, beside.SLOW),
    ("d = 10, n = 1,000", {"table": "algorithm 3", "n": 1000, "d": 10}, None),
    ("d = 10, n = 10,000", {"table": "algorithm 3", "n": 10_000, "d": 10}, None),
)
PANELS = tuple(
    Panel(f"{title}, δ = 1e-{name}", settings | {"delta": delta}, amin.EPSILONS, amin.QUICK, slow_trials=slow)
    for title, settings, slow in TABLES
    for name, delta in amin.DELTAS.items()
)
EIGENVECTORS, GAUSSIAN = (
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

LEVEL = 1.02
"""An error within this of the better one's is as good."""


def errors(results: Results) -> list[tuple[str, float, dict[str, float]]]:
    """Panel, ε, and the errors of all methods, of cells that all have."""
    labels = [method.label for method in FIGURE.methods]
    return [
        (panel.title, x, {label: results.center(panel.title, label, "error", x) for label in labels})
        for panel in results.panels
        for x in panel.points
        if all(len(results.values(panel.title, label, "error", x)) for label in labels)
    ]


def takes_the_better(rule: Method) -> Callable[[Results], Outcome]:
    """Of its two sides."""

    def judge(results: Results) -> Outcome:
        lost = [
            cell[rule.label] / min(cell[EIGENVECTORS.label], cell[GAUSSIAN.label]) for _, _, cell in errors(results)
        ]
        if not lost:
            return unmeasured(rule.label)
        wrong = sum(ratio > LEVEL for ratio in lost)
        words = f"takes the better of its two in {len(lost) - wrong} of {len(lost)} cells"
        return by_share(wrong, len(lost), f"{words}, at most {digits(max(lost))} times its error otherwise")

    return judge


def errs_on_one_side(results: Results) -> Outcome:
    """Which side is taken where the other is better."""
    wrong = [
        (cell[rule.label] > LEVEL * cell[GAUSSIAN.label], cell[rule.label] > LEVEL * cell[EIGENVECTORS.label])
        for rule in (BY_EIGENVALUE, BY_ROWS)
        for _, _, cell in errors(results)
    ]
    eigenvectors, gaussian = (sum(each[side] for each in wrong) for side in (0, 1))
    verdict = (
        Verdict.REPRODUCED
        if gaussian and not eigenvectors
        else Verdict.CHANGED
        if gaussian > 9 * eigenvectors
        else Verdict.FAILS
    )
    return Outcome(
        verdict, f"with either guess: Gaussian noise taken wrongly {gaussian} times, eigenvectors {eigenvectors} times"
    )


def gains_little(results: Results) -> Outcome:
    """The better of the two sides over the default, at its least."""
    ratios = [min(cell[EIGENVECTORS.label], cell[GAUSSIAN.label]) / cell["dpmoments"] for _, _, cell in errors(results)]
    against = sum(ratio < 1.0 / 1.05 for ratio in ratios)
    spread = f"{digits(min(ratios))} at least, {digits(median(ratios))} in the middle, {digits(max(ratios))} at most"
    return by_share(against, len(ratios), f"error of the better of the two / of dpmoments: {spread}")


FIGURE = Figure(
    name="beside-amin-regimes",
    paper=beside.AMIN,
    number="",
    title="The rule of regimes, beside its two sides and the default",
    experiment="moments_beside",
    axis="ε",
    error="‖Ĝ − G‖_F / n",
    panels=PANELS,
    methods=(EIGENVECTORS, GAUSSIAN, BY_EIGENVALUE, BY_ROWS, amin.DEFAULT),
    trials=20,
    claims=(
        Claim(
            "(section 3.1) eigenvectors are ahead where λ₁ log λ₁ ≤ log(1/δ)/ε, Gaussian noise elsewhere",
            takes_the_better(BY_EIGENVALUE),
        ),
        Claim("the rule serves as well with n in place of λ₁, which is private", takes_the_better(BY_ROWS), ours=True),
        Claim("the rule errs on one side: it takes Gaussian noise too early", errs_on_one_side, ours=True),
        Claim(
            "additive noise with a repair that knows its law has no more error than the better of the two",
            gains_little,
            ours=True,
        ),
        Claim(
            "is the rule, a hybrid as the replication proposes one, ahead of one mechanism?",
            never_above(BY_EIGENVALUE.label, "dpmoments"),
            ours=True,
        ),
    ),
    instead=(Instead(BY_EIGENVALUE.label, "dpmoments", "the default under (ε, δ)"),),
    notes=(
        "The rule is `papers.mechanisms.comparisons.RegimeRule(largest_eigenvalue=…)`. The eigenvalue is a public guess; "
        "without one the rule takes n, which it cannot pass. Both sides are as the library has them, tight, split by "
        "gaps, by the exact Gaussian curve; the rule compares two bounds without their constants, reads no data, and has the "
        "very error of the side that it takes. `auto` does not use it.",
    ),
)
