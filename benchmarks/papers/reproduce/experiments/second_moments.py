"""‖Ĝ − G‖_F/n of a released second moment (Amin et al. 2019, section 4 and C.1; the replication, section 5), rows replaced.

Panel: ``table``, with ``n`` and ``d`` where it is synthetic; x is ε. Method: ``mechanism`` with ``options``, ``delta``, and
``repair`` (eigenvalues into [0, n], as the papers do, where none is given); or ``gaussian``, a published scale of the noise; or
``knows``, what needs no table.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

import dpmoments as dpm
from benchmarks.papers.amin.table import repaired
from benchmarks.papers.reproduce.declaration import Method, Point
from benchmarks.papers.reproduce.experiments import tables
from benchmarks.papers.summed_once import SummedOnce
from dpmoments.mechanisms.base import Plan
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.moments.repair import Repair, clip
from dpmoments.papers.mechanisms.eigenvectors import PaperLaplace
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.sensitivity import gram_frobenius
from dpmoments.privacy.unit import Neighbors

__all__ = ["measure", "planned", "released_gram"]


def measure(point: Point, methods: Sequence[Method]) -> Iterator[tuple[str, str, float]]:
    settings = point.settings
    rows = tables.summed(settings["table"], settings.get("n"), settings.get("d"))
    exact = rows.gram
    for method in methods:
        if method.settings.get("knows") == "trace":
            estimate = np.eye(rows.n_features) * np.trace(exact) / rows.n_features
        else:
            estimate = released_gram(rows, method, point.x, point.seed(method.label, dict(method.settings)))
        yield method.label, "error", dpm.metrics.normalized_frobenius_error(estimate, exact, n_rows=rows.n_rows)


def released_gram(rows: SummedOnce, method: Method, epsilon: float, seed: int) -> np.ndarray:
    asked, n, d = method.settings, rows.n_rows, rows.n_features
    delta, repair = float(asked.get("delta", 0.0)), Repair(asked.get("repair", Repair.CLIP))
    if "gaussian" in asked:
        scale = published_scale(asked["gaussian"], epsilon, delta, d)
        noise = np.triu(np.random.default_rng(seed).normal(0.0, scale, (d, d)))
        noisy = rows.gram + noise + np.triu(noise, 1).T
        return noisy if repair is Repair.NONE else clip(noisy, upper=n)
    plan = planned(asked["mechanism"], tuple(sorted(asked.get("options", {}).items())), delta, epsilon, n, d)
    noisy = plan.run(rows, PrivacyFilter(plan, insecure_generator(seed)))  # type: ignore[arg-type]
    return repaired(plan, noisy.gram, n, repair)


@lru_cache(maxsize=256)
def planned(
    mechanism: str, options: tuple[tuple[str, object], ...], delta: float, epsilon: float, n: int, d: int
) -> Plan:
    shape = dpm.mechanisms.shape.MomentShape(d, n_rows=n, mean=False)
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
