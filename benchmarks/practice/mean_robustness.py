"""Estimators of means where rows or radius are not as hoped: median error, and how often a release warns.

``python -m benchmarks.practice.mean_robustness [mechanism …]`` prints the tables of ``docs/evidence/mean-robustness.md``.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from dpmoments.base.arrays import FloatArray
from dpmoments.mechanisms.registry import make_mean_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.metrics import mahalanobis_mean_error
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.entropy import insecure_generator
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.rows.rows import Rows
from dpmoments.schema.schema import Schema

TRIALS = 50
RHO = PrivacyBudget.zcdp(0.5)
SIZES = {"0.01": (500, 5), "0.1": (100, 10), "0.3": (100, 30), "1": (30, 30)}
RADII = {"right": 1.0, "100 × too wide": 100.0, "10 × too narrow": 0.1}
COORDINATEWISE = ("naive", "karwa-vadhan", "symq")

Made = Callable[[np.random.Generator, int, int], FloatArray]


def sparse(rng: np.random.Generator, n: int, d: int) -> FloatArray:
    """98 % zeros, the others about 50."""
    values: FloatArray = np.where(rng.random((n, d)) < 0.02, rng.normal(50.0, 5.0, (n, d)), 0.0)
    return values


ROWS: dict[str, tuple[Made, float]] = {
    "normal": (lambda rng, n, d: rng.normal(3.0, 1.0, (n, d)), 1.0),
    "t, 3 degrees": (lambda rng, n, d: 3.0 + rng.standard_t(3, (n, d)), 3.0**0.5),
    "lognormal": (lambda rng, n, d: np.exp(rng.normal(size=(n, d))), 2.16),
    "constant": (lambda _, n, d: np.full((n, d), 3.0), 1.0),
    "98 % zeros": (sparse, 7.0),
}
"""Rows, and the standard deviation of a value that a curator would state."""


def cell(name: str, rows: str, n: int, d: int, widen: float, trials: int) -> str:
    """Median of ‖error‖/√d in ``trials`` releases; the share of them that warn; and of those that crash."""
    made, scale = ROWS[rows]
    options = {
        "variance-aware": {},
        "coinpress": {"radius": 5.0 * widen * d**0.5, "scale": scale},
        "symq": {"radius": 5.0 * widen},
    }.get(name, {"radius": 5.0 * widen, "scale": scale} if name == "naive" else {"radius": 5.0 * widen})
    plan = make_mean_mechanism(name, **options).plan(MomentShape(d, n_rows=n, row_norm=None), RHO, "replace_one")
    errors, warned, crashed = [], 0, 0
    for trial in range(trials):
        table = made(np.random.default_rng(trial), n, d)
        source = Rows.of(table, Schema.unbounded(d), neighbors="replace_one", threads=1)
        try:
            found = plan.run(source, PrivacyFilter(plan, insecure_generator(trial)))
        except ValueError:
            crashed += 1
            continue
        errors.append(mahalanobis_mean_error(found.mean, table.mean(axis=0)) / d**0.5)
        warned += bool(found.diagnostics.get("warnings"))
    stopped = f", {crashed / trials:.0%} stop" if crashed else ""
    return f"{np.median(errors):.2g} ({warned / trials:.0%}{stopped})" if errors else "all stop"


def lines(names: Sequence[str]) -> Iterator[str]:
    """One row a mechanism, kind of rows and radius; one column a size."""
    yield f"| mechanism | rows | radius | {' | '.join(f'd/n = {ratio}' for ratio in SIZES)} |"
    yield f"| --- | --- | --- |{' ---: |' * len(SIZES)}"
    for name in names:
        for rows in ROWS:
            for radius, widen in RADII.items() if name != "variance-aware" else (("none", 1.0),):
                sizes = [
                    "" if name in COORDINATEWISE and d > 5 else cell(name, rows, n, d, widen, TRIALS)
                    for n, d in SIZES.values()
                ]
                yield f"| {name} | {rows} | {radius} | {' | '.join(sizes)} |"


if __name__ == "__main__":
    for line in lines(sys.argv[1:] or ("variance-aware", "coinpress", *COORDINATEWISE)):
        print(line, flush=True)
