"""‖Ĝ − G‖_F/n of a released second moment (Amin et al. 2019, section 4 and C.1; the replication, section 5), rows replaced.

Panel: ``table``; ``n``, ``d`` (where it is synthetic) and ``epsilon``, but what ``x`` names in their place (ε where it names
nothing); ``delta``, which a method may set otherwise. Method: ``mechanism`` with ``options`` and ``repair`` (eigenvalues into
[0, n], as the papers do, where none is given); or ``gaussian``, a published scale of the noise; or ``knows``, what needs no
table; or ``printed``, a split of the budget whose directions are drawn by the printed acceptance; or ``rule``, the rule of
regimes given the table's largest eigenvalue, which is **private**, or n in its place: it has the very error of the mechanism
that it takes.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

import dpmoments as dpm
from benchmarks.papers.reproduce.declaration import Method, Point
from benchmarks.papers.reproduce.experiments import tables
from benchmarks.papers.reproduce.experiments.printed_acceptance import Misprinted
from benchmarks.papers.summed_once import SummedOnce, repaired
from dpmoments.mechanisms.base import Plan
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.moments.repair import Repair, clip
from dpmoments.papers.mechanisms.eigenvectors import PaperLaplace, RegimeRule
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.sensitivity import gram_frobenius
from dpmoments.privacy.unit import Neighbors

SIDES = {
    "iterative-eigenvectors": Method("eigenvectors", {"mechanism": "iterative-eigenvectors", "delta": 0.0}),
    "gaussian": Method("Gaussian", {"mechanism": "gaussian"}),
}
"""Of the rule of regimes."""


def measure(point: Point, methods: Sequence[Method]) -> Iterator[tuple[str, str, float]]:
    panel = {name: value for name, value in point.settings.items() if name != "x"}
    panel[point.settings.get("x", "epsilon")] = point.x
    n, d = (None if panel.get(name) is None else int(panel[name]) for name in ("n", "d"))
    rows = tables.summed(panel["table"], n, d)
    for method in methods:
        estimate = estimated(rows, method, float(panel["epsilon"]), float(panel.get("delta", 0.0)), point)
        yield method.label, "error", dpm.metrics.normalized_frobenius_error(estimate, rows.gram, n_rows=rows.n_rows)


def estimated(rows: SummedOnce, method: Method, epsilon: float, delta: float, point: Point) -> np.ndarray:
    asked, n, d = method.settings, rows.n_rows, rows.n_features
    if asked.get("knows") == "trace":
        of_the_trace: np.ndarray = np.eye(d) * np.trace(rows.gram) / d
        return of_the_trace
    if "rule" in asked:
        return estimated(rows, taken(rows, asked["rule"], epsilon, delta), epsilon, delta, point)
    seed = point.seed(method.label, dict(asked))
    if "printed" in asked:
        budget = dpm.PrivacyBudget.pure(epsilon)
        mechanism = Misprinted(allocation=asked["printed"], calibration="paper")
        plan = mechanism.plan(MomentShape(d, n_rows=n, mean=False), budget, "replace_one")
        noisy = plan.run(rows, PrivacyFilter(plan, insecure_generator(seed)))
        return repaired(plan, noisy.gram, n, Repair.CLIP)
    return released_gram(rows, Method(method.label, {"delta": delta} | dict(asked)), epsilon, seed)


def taken(rows: SummedOnce, given: str, epsilon: float, delta: float) -> Method:
    largest = float(np.linalg.eigvalsh(rows.gram)[-1]) if given == "largest eigenvalue" else None
    shape = MomentShape(rows.n_features, n_rows=rows.n_rows, mean=False)
    plan = RegimeRule(largest).plan(shape, dpm.PrivacyBudget.of(epsilon=epsilon, delta=delta), "replace_one")
    return SIDES[plan.mechanism.name]


def released_gram(rows: SummedOnce, method: Method, epsilon: float, seed: int) -> np.ndarray:
    asked, n, d = method.settings, rows.n_rows, rows.n_features
    delta, repair = float(asked.get("delta", 0.0)), Repair(asked.get("repair", Repair.CLIP))
    if "gaussian" in asked:
        scale = published_scale(asked["gaussian"], epsilon, delta, d)
        noise = np.triu(np.random.default_rng(seed).normal(0.0, scale, (d, d)))
        noisy = rows.gram + noise + np.triu(noise, 1).T
        return noisy if repair is Repair.NONE else clip(noisy, upper=n)
    plan = planned(asked["mechanism"], tuple(sorted(asked.get("options", {}).items())), delta, epsilon, n, d)
    noisy = plan.run(rows, PrivacyFilter(plan, insecure_generator(seed)))
    return repaired(plan, noisy.gram, n, repair)


@lru_cache(maxsize=256)
def planned(
    mechanism: str, options: tuple[tuple[str, object], ...], delta: float, epsilon: float, n: int, d: int
) -> Plan:
    shape = MomentShape(d, n_rows=n, mean=False)
    budget = dpm.PrivacyBudget.of(epsilon=epsilon, delta=delta)
    if (mechanism, options) == ("laplace", (("calibration", "paper"),)):
        return PaperLaplace().plan(shape, budget, "replace_one")
    return make_mechanism(mechanism, **dict(options)).plan(shape, budget, "replace_one")


def published_scale(which: str, epsilon: float, delta: float, d: int) -> float:
    """Standard deviation of every entry of the upper triangle, in floating point, as the papers draw it."""
    if which == "analyze gauss":  # Dwork et al. 2014: Δ√(2 ln(1.25/δ))/ε, whose proof is for ε below 1
        return gram_frobenius(Neighbors.REPLACE_ONE, d).value * math.sqrt(2.0 * math.log(1.25 / delta)) / epsilon
    if which == "replication":  # its section 5.1 (ii)
        return d**1.5 * math.sqrt(math.log(1.0 / delta)) / epsilon
    raise ValueError(f"no published scale is called {which!r}: use 'analyze gauss' or 'replication'")
