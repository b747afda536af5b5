"""What the figures of CoinPress share: methods, judgements, the published curves."""

from __future__ import annotations

import csv
import math
import os
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path

import numpy as np

from benchmarks.papers.reproduce.claims import digits
from benchmarks.papers.reproduce.declaration import Method, Outcome, Verdict
from benchmarks.papers.reproduce.results import Results

PAPER = "Biswas, Dong, Kamath & Ullman 2020 (CoinPress)"
NOT_PRIVATE = Method("non-private", {"knows": "rows"}, style={"color": "grey", "ls": "--"})
SHADES = {1: "tab:brown", 2: "tab:red", 3: "tab:orange", 4: "tab:green", 5: "tab:cyan", 10: "tab:blue"}
"""By the number of steps t."""
FEW = 50
"""Trials of estimators that work coordinate by coordinate, which take long."""
BASELINES = tuple(
    Method(label, {"estimator": name}, most_trials=FEW, style={"color": color, "ls": ":"})
    for label, name, color in (
        ("naive", "naive", "tab:pink"),
        ("KV", "karwa-vadhan", "tab:olive"),
        ("SYMQ", "symq", "tab:purple"),
    )
)
RHOS = tuple(float(rho) for rho in np.geomspace(0.005, 0.5, 10))
QUICK_RHOS = RHOS[::3]


def released(*steps: int) -> tuple[Method, ...]:
    """The released program's algorithm."""
    return tuple(Method(f"released, t = {t}", {"released": t}, style={"color": SHADES[t], "ls": ":"}) for t in steps)


def mended(*steps: int) -> tuple[Method, ...]:
    """The same without its mistakes."""
    return tuple(
        Method(f"mended, t = {t}", {"released": t, "mended": True}, style={"color": SHADES[t], "ls": "--"})
        for t in steps
    )


def means(*steps: int) -> tuple[Method, ...]:
    """The library's CoinPress for means with a set number of steps, and as it comes; and the estimator that is told nothing."""
    fixed = (
        Method(
            f"t = {t}",
            {"estimator": "coinpress", "options": {"steps": t, "split": "experiments"}},
            style={"color": SHADES[t]},
        )
        for t in steps
    )
    default = Method("dpmoments", {"estimator": "coinpress"}, style={"color": "black", "lw": 2.2})
    told_nothing = Method(
        "dpmoments, no radius", {"estimator": "variance-aware"}, most_trials=FEW, style={"color": "dimgrey", "lw": 2.0}
    )
    return (*fixed, default, told_nothing)


def covariances(*steps: int) -> tuple[Method, ...]:
    """The library's CoinPress for covariances with a set number of steps, and as it comes."""
    fixed = (
        Method(f"t = {t}", {"options": {"steps": t, "split": "experiments"}}, style={"color": SHADES[t]}) for t in steps
    )
    return (*fixed, Method("dpmoments", {}, style={"color": "black", "lw": 2.2}))


@cache
def published(name: str) -> Mapping[str, Mapping[float, float]] | None:
    """Curves that the authors published, by name and point; None where the folder of data has none."""
    folder = os.environ.get("DPMOMENTS_DATA")
    path = Path(folder or "") / "coinpress" / name
    if not folder or not path.is_file():
        return None
    with path.open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    first, *names = rows[0]
    return {curve: {float(row[first]): float(row[curve]) for row in rows} for curve in names}


def agrees_with_published(curves: Mapping[str, str]) -> Callable[[Results], Outcome | None]:
    """Ours (by label) over the published curve of that name, at the points of both."""

    def judge(results: Results) -> Outcome | None:
        ratios = []
        for panel in results.panels:
            theirs = None if panel.published is None else published(panel.published)
            if theirs is None:
                continue
            for label, name in curves.items():
                points = results.points.get((panel.title, label, "error"), {})
                for x in points:
                    near = [there for there in theirs.get(name, {}) if math.isclose(there, x, rel_tol=1e-3)]
                    ratios += [results.center(panel.title, label, "error", x) / theirs[name][there] for there in near]
        if not ratios:
            return None
        apart = [max(ratio, 1.0 / ratio) for ratio in ratios]
        middle, most = float(np.median(apart)), max(apart)
        verdict = Verdict.REPRODUCED if middle < 1.05 else Verdict.CHANGED if middle < 1.2 else Verdict.FAILS
        return Outcome(
            verdict,
            f"{len(ratios)} published points: ours over theirs is off by {100 * (middle - 1):.1f} % in the median, by "
            f"{digits(most)} times at most",
        )

    return judge
