"""Judgements that claims of several figures share: one method against others in every cell, against a factor, over a grid."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence

import numpy as np

from benchmarks.papers.reproduce.declaration import Outcome, Verdict
from benchmarks.papers.reproduce.results import Results, unmeasured

SURE = 2.0
"""Standard errors from 1 at which a ratio is told from it."""

Judge = Callable[[Results], Outcome]


def digits(value: float) -> str:
    if value >= 1e5:
        return f"{value:.1e}".replace("e+0", "e").replace("e+", "e")
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}" if value >= 10 else f"{value:.2g}"


def listed(curves: Mapping[str, Sequence[float]]) -> str:
    """Ratios along each curve, by its name."""
    return "; ".join(f"{name}: {', '.join(map(digits, ratios))}" for name, ratios in curves.items())


def factor(ratios: Collection[float]) -> str:
    mean = math.exp(float(np.mean(np.log(list(ratios)))))
    return f"{digits(mean)} ({digits(min(ratios))} to {digits(max(ratios))})"


def furthest(ratios: Collection[float]) -> float:
    """How far from 1, as a factor, in either direction."""
    return max(max(ratio, 1.0 / ratio) for ratio in ratios)


def never_above(
    method: str, *others: str, panels: Sequence[str] | None = None, limit: float = 1.0,
    except_for: Sequence[tuple[str, float]] = (), at: Callable[[float], bool] = lambda _: True,
) -> Judge:  # fmt: skip
    """The error of ``method`` is at most ``limit`` times those of the others in every cell but the exceptions."""

    def judge(results: Results) -> Outcome:
        against, found, cells, worst = 0, [], 0, (0.0, "")
        for other in others:
            ratios = []
            for panel, x, ratio, spread in results.ratios(method, other, panels=panels):
                if (panel, x) in except_for or not at(x):
                    continue
                cells += 1
                ratios.append(ratio)
                against += ratio > limit * (1.0 + (SURE * spread if math.isfinite(spread) else 1.0))
                worst = max(worst, (ratio, f"{panel}, x = {x:g}, {other}"))
            if ratios:
                found.append(f"{method} / {other} {factor(ratios)}")
        if not cells:
            return unmeasured(f"{method} against {', '.join(others)}")
        words = f"{against} of {cells} cells against it; {'; '.join(found)}"
        return Outcome.by_share(against, cells, f"{words}; most at {worst[1]}" if against else words)

    return judge


def within_factor(
    method: str, reference: str, limit: float, *, changed: float | None = None, panels: Sequence[str] | None = None,
    at: Callable[[float], bool] = lambda _: True,
) -> Judge:  # fmt: skip
    """The error of ``method`` is at most ``limit`` times the reference's; up to ``changed`` times it is so with changes."""

    def judge(results: Results) -> Outcome:
        cells = [
            (ratio, f"{panel}, x = {x:g}")
            for panel, x, ratio, _ in results.ratios(method, reference, panels=panels)
            if at(x)
        ]
        if not cells:
            return unmeasured(f"{method} against {reference}")
        most, where = max(cells)
        words = f"{method} / {reference} {factor([ratio for ratio, _ in cells])}, most at {where}"
        return Outcome.graded(most <= limit, changed is not None and most <= changed, words)

    return judge


def spread_of(methods: Sequence[str], *, panels: Sequence[str], limit: float, changed: float) -> Judge:
    """The largest error among the methods is at most ``limit`` times the least, at every point."""

    def judge(results: Results) -> Outcome:
        found = []
        for panel in panels:
            for x in next(known for known in results.figure.panels if known.title == panel).points:
                errors = [
                    results.center(panel, method, "error", x)
                    for method in methods
                    if len(results.values(panel, method, "error", x))
                ]
                if len(errors) == len(methods):
                    found.append((max(errors) / min(errors), f"{panel}, x = {x:g}"))
        if not found:
            return unmeasured(", ".join(methods))
        most, where = max(found)
        ratios = [ratio for ratio, _ in found]
        words = f"largest / least error of {methods[0]} … {methods[-1]} {factor(ratios)}, most at {where}"
        return Outcome.graded(most <= limit, most <= changed, words)

    return judge


def together(*judges: Judge) -> Judge:
    """The worst verdict of several judgements, and all that they found."""

    def judge(results: Results) -> Outcome:
        outcomes = [known(results) for known in judges]
        order = list(Verdict)
        return Outcome(
            max((outcome.verdict for outcome in outcomes), key=order.index),
            "; ".join(outcome.found for outcome in outcomes),
        )

    return judge


def slope(results: Results, panel: str, method: str, *, at: Callable[[float], bool] = lambda _: True) -> float:
    """Of log error on log x, by least squares."""
    xs = [x for x in results.points.get((panel, method, "error"), {}) if at(x)]
    if len(xs) < 2:
        return math.nan
    errors = [results.center(panel, method, "error", x) for x in xs]
    return float(np.polyfit(np.log(xs), np.log(errors), 1)[0])


def slopes_near(
    expected: float,
    methods: Sequence[str],
    *,
    within: float,
    changed: float,
    at: Callable[[float], bool] = lambda _: True,
) -> Judge:
    """The error goes as that power of x, for each of the methods in every panel."""

    def judge(results: Results) -> Outcome:
        found, apart = [], []
        for method in methods:
            slopes = [slope(results, panel.title, method, at=at) for panel in results.panels]
            apart += [abs(known - expected) for known in slopes if math.isfinite(known)]
            found.append(f"{method} {', '.join(f'{known:.2f}' for known in slopes)}")
        if not apart:
            return unmeasured(", ".join(methods))
        most = max(apart)
        panels = ", ".join(panel.title for panel in results.panels)
        words = f"slopes of log error on log x ({panels}): {'; '.join(found)}"
        return Outcome.graded(most <= within, most <= changed, words)

    return judge
