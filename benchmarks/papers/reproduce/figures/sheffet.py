"""What the figures of Sheffet share: settings, techniques under both calibrations, judgements under each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from benchmarks.papers.reproduce.claims import digits, factor, never_above
from benchmarks.papers.reproduce.declaration import EXACT, Claim, Method, Outcome, Panel, Verdict
from benchmarks.papers.reproduce.results import Results
from benchmarks.papers.sheffet import techniques

PAPER = "Sheffet 2015"
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
    "dpmoments",
    {"technique": techniques.ADAPTED, "calibration": "exact"},
    style={"color": "black", "lw": 2.2},
)
LEAST_SQUARES = Method("least squares", {"knows": "rows"}, style={"color": "grey", "ls": "--"})
PROJECTION = Method(
    "projection, not private",
    {"knows": "projection", "degrees": "Algorithm 2", "calibration": "paper"},
    style={"color": "silver", "ls": "--"},
)
POSTERIOR = Method("posterior, not private", {"knows": "posterior"}, style={"color": "peru", "ls": "--"})
LOST = "The paper's settings are lost in our copy; these are ours."
SETTINGS = (
    "The paper's numbers (features, noise, bound on the rows, ε, δ, n) are missing from the copy that we worked "
    "from: the task and the "
    "techniques are the paper's, the numbers ours. 10 standard normal features and an intercept, ‖β‖ = 1, noise of "
    "standard deviation ½, "
    "rows divided by a bound on their norm and clipped there; δ = 10⁻⁶, rows added or removed; n is public. A new "
    "table in every trial. An "
    "error of 1 is what β̂ = 0 gets.",
    "*Paper* is the formula of the theorem; *exact* is the same mechanism calibrated by its exact privacy curve "
    "([sheffet-calibration.md](sheffet-calibration.md)). Degrees of freedom that the paper sets, and our copy lost, "
    "are the library's.",
)


def under_both(
    says: str, judge: Callable[[int], Callable[[Results], Outcome]], *, unknown: str = "", ours: bool = False
) -> tuple[Claim, Claim]:
    """Return the claim with the paper's constants, and under exact calibration."""
    return (
        Claim(says, judge(0), unknown=unknown, ours=ours),
        Claim(says + EXACT, judge(1), unknown=unknown, ours=ours),
    )


def below(
    first: Sequence[Method], *others: Sequence[Method], limit: float = 1.0
) -> Callable[[int], Callable[[Results], Outcome]]:
    """One technique at most the others, in either calibration."""
    return lambda which: never_above(first[which].label, *(other[which].label for other in others), limit=limit)


def best_at_the_largest_n(
    first: Sequence[Method], *others: Sequence[Method]
) -> Callable[[int], Callable[[Results], Outcome]]:
    """Error over that of the best other technique, at the most rows; and the n from which on it is ahead."""

    def judge(which: int) -> Callable[[Results], Outcome]:
        def of(results: Results) -> Outcome:
            found, last = [], []
            for panel in results.panels:
                ahead, ratio = None, math.inf
                for x in panel.points:
                    errors = [
                        results.center(panel.title, other[which].label, "error", x)
                        for other in others
                        if len(results.values(panel.title, other[which].label, "error", x))
                    ]
                    if errors:
                        ratio = results.center(panel.title, first[which].label, "error", x) / min(errors)
                        ahead = (ahead or x) if ratio < 1.0 - LEVEL else None
                last.append(ratio)
                since = "not ahead at the largest n" if ahead is None else f"ahead from n = {ahead:,.0f} on"
                found.append(f"{panel.title}: {since}, error / best other {digits(ratio)} there")
            if max(last) < 1.0 - LEVEL:
                return Outcome(Verdict.REPRODUCED, "; ".join(found))
            return Outcome(Verdict.CHANGED if max(last) < 1.0 + LEVEL else Verdict.FAILS, "; ".join(found))

        return of

    return judge


def gaps(results: Results, first: Method, then: Method) -> str:
    """Error of ``first`` over that of ``then`` over all cells."""
    return (
        f"{first.label} / {then.label} {factor([ratio for _, _, ratio, _ in results.ratios(first.label, then.label)])}"
    )
