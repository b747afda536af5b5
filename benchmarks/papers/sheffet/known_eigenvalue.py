"""What a publicly known smallest eigenvalue brings: ``python -m benchmarks.papers.sheffet.known_eigenvalue`` prints the table.

The table is in ``docs/evidence/derivations/johnson_lindenstrauss.md``.
"""

from __future__ import annotations

import numpy as np

import dpmoments as dpm
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.noise import insecure_generator
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

BUDGET = PrivacyBudget.approximate(1.0, 1e-6)
D, RUNS = 5, 60


def table_of(n: int) -> np.ndarray:
    """Normal rows, clipped to norm 1."""
    rows = np.random.default_rng(0).normal(size=(n, D)) * [1.0, 0.9, 0.8, 0.7, 0.6] / 4.0
    clipped: np.ndarray = rows / np.maximum(1.0, 1.0001 * np.linalg.norm(rows, axis=1, keepdims=True))
    return clipped


def measured(mechanism: Mechanism, table: np.ndarray) -> tuple[float, int]:
    """Root mean square relative error in Frobenius norm, and the median degrees of freedom (0 where there are none)."""
    plan = mechanism.plan(MomentShape(D, n_rows=len(table), mean=False), BUDGET, Neighbors.ADD_REMOVE)
    rows, generator = Rows.of(table, dpm.Schema.unit_ball(D), neighbors=plan.neighbors), insecure_generator(1)
    exact, squares, degrees = table.T @ table, [], []
    for _ in range(RUNS):
        noisy = plan.run(rows, PrivacyFilter(plan, generator))
        squares.append(np.sum((noisy.gram - exact) ** 2) / np.sum(exact**2))
        degrees.append((plan.details | dict(noisy.diagnostics)).get("degrees_of_freedom", 0))
    return float(np.sqrt(np.mean(squares))), int(np.median(degrees))


if __name__ == "__main__":
    projection = dpm.mechanisms.JohnsonLindenstrauss
    for power in (12, 14, 16, 18):
        table = table_of(2**power)
        smallest = float(np.linalg.eigvalsh(table.T @ table)[0])
        mechanisms = (
            projection(64),
            projection(64, adaptive=True),
            projection(smallest_eigenvalue=0.5 * smallest),
            projection(smallest_eigenvalue=0.9 * smallest),
            projection(),
            dpm.mechanisms.Gaussian(),
        )
        cells = [f"{error:.2g} ({degrees:,})" for error, degrees in (measured(one, table) for one in mechanisms)]
        print(f"| 2^{power} | {' | '.join(cells)} |")
