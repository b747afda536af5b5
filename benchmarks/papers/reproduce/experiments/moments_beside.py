"""‖Ĝ − G‖_F/n where the papers' figures do not look: over n and d, on tables in other forms, by the rule of regimes.

As ``second_moments``, rows replaced. Panel: ``table``, of those of the papers or in another form; ``n``, ``d`` and
``epsilon``, but what ``x`` names in their place (ε where it names nothing); ``delta``, which a method may set otherwise.
Method: as there; or ``printed``, a split of the budget whose directions are drawn by the printed acceptance; or ``rule``, the
rule of regimes given the table's largest eigenvalue, which is **private**, or n in its place: it has the very error of the
mechanism that it takes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache

import numpy as np

import dpmoments as dpm
from benchmarks.papers import datasets as papers_datasets
from benchmarks.papers.amin.table import repaired
from benchmarks.papers.reproduce.declaration import Method, Point
from benchmarks.papers.reproduce.experiments import tables
from benchmarks.papers.reproduce.experiments.printed_acceptance import Misprinted
from benchmarks.papers.reproduce.experiments.second_moments import released_gram
from benchmarks.papers.summed_once import SummedOnce
from dpmoments import datasets
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.moments.repair import Repair
from dpmoments.papers.mechanisms.eigenvectors import RegimeRule
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import insecure_generator

__all__ = ["FORMS", "SIDES", "measure", "taken"]

FORMS: Mapping[str, Callable[[], np.ndarray]] = {
    "wine, target": lambda: papers_datasets.standardized_unit_rows(datasets.wine(cultivar=True), include_target=True),
    "airfoil, no target": lambda: papers_datasets.standardized_unit_rows(datasets.airfoil()),
    "adult, complete": lambda: papers_datasets.standardized_unit_rows(datasets.adult(), include_target=True),
}
"""Beside those that all experiments have."""
SIDES = {
    "iterative-eigenvectors": Method("eigenvectors", {"mechanism": "iterative-eigenvectors", "delta": 0.0}),
    "gaussian": Method("Gaussian", {"mechanism": "gaussian"}),
}
"""Of the rule of regimes."""


def measure(point: Point, methods: Sequence[Method]) -> Iterator[tuple[str, str, float]]:
    panel = {name: value for name, value in point.settings.items() if name != "x"}
    panel[point.settings.get("x", "epsilon")] = point.x
    n, d = (None if panel.get(name) is None else int(panel[name]) for name in ("n", "d"))
    rows = summed(panel["table"], n, d)
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
        noisy = plan.run(rows, PrivacyFilter(plan, insecure_generator(seed)))  # type: ignore[arg-type]
        return repaired(plan, noisy.gram, n, Repair.CLIP)
    return released_gram(rows, Method(method.label, {"delta": delta} | dict(asked)), epsilon, seed)


def taken(rows: SummedOnce, given: str, epsilon: float, delta: float) -> Method:
    largest = float(np.linalg.eigvalsh(rows.gram)[-1]) if given == "largest eigenvalue" else None
    shape = MomentShape(rows.n_features, n_rows=rows.n_rows, mean=False)
    plan = RegimeRule(largest).plan(shape, dpm.PrivacyBudget.of(epsilon=epsilon, delta=delta), "replace_one")
    return SIDES[plan.mechanism.name]


@lru_cache(maxsize=8)
def summed(name: str, n_rows: int | None, n_features: int | None) -> SummedOnce:
    """A table in one of its forms, summed once a process."""
    return SummedOnce(FORMS[name]()) if name in FORMS else tables.summed(name, n_rows, n_features)
