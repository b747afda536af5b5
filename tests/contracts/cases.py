"""One table of mechanisms × neighbors × budget kinds; `test_contract.py` runs every row.

A new mechanism adds its rows here; those of its noise stand in `test_noise_contract.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import product
from typing import Any

import numpy as np

import dpmoments as dpm
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.means.base import MeanMechanism
from dpmoments.mechanisms.registry import make_mean_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.mechanisms.coinpress_mean import PaperCoinPress
from dpmoments.papers.mechanisms.eigenvectors import EntrywiseGaussian, PaperLaplace, RegimeRule
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from dpmoments.schema import Schema

N_ROWS = 400
N_FEATURES = 3

BUDGETS = {
    BudgetKind.PURE: {"usual": dict(epsilon=1.0), "tiny": dict(epsilon=1e-7), "unlimited": dict(epsilon=1e13)},
    BudgetKind.APPROXIMATE: {
        "usual": dict(epsilon=1.0, delta=1e-6),
        "tiny": dict(epsilon=1e-6, delta=1e-12),
        "unlimited": dict(epsilon=1e15, delta=0.5),
    },
    BudgetKind.ZCDP: {"usual": dict(rho=0.5), "tiny": dict(rho=1e-14), "unlimited": dict(rho=1e20)},
}


@dataclass(frozen=True)
class Case:
    """One mechanism as it is held to the contract.

    With an unlimited budget the Gram matrix must be exact to ``tolerance`` (absolute, for sums of 400 rows), or be its best
    approximation of ``rank``. ``noisy_when_tiny``: with a tiny budget the error must dwarf the data; False for mechanisms
    whose output is bounded (eigenvector samplers clipped to [0, n]). ``only_features``: the one number of features that the
    mechanism's options are for; None for any number.
    """

    mechanism: Mechanism | MeanMechanism
    kind: BudgetKind
    neighbors: Neighbors
    mean: bool
    tolerance: float = 1e-3
    rank: int = N_FEATURES
    noisy_when_tiny: bool = True
    only_features: int | None = None
    shape_options: dict[str, Any] = field(default_factory=dict)

    @property
    def n_features(self) -> int:
        """Three, or as many as the mechanism takes."""
        return min(N_FEATURES, self.mechanism.most_features or N_FEATURES)

    @property
    def id(self) -> str:
        options = ",".join(f"{key}={value}" for key, value in self.mechanism.options.items())
        mean = "means" if isinstance(self.mechanism, MeanMechanism) else "mean" if self.mean else "gram"
        return f"{self.mechanism.name}({options})-{self.kind}-{self.neighbors}-{mean}"

    @property
    def factors(self) -> tuple[Any, ...]:
        """Of the table; by default the suite runs each of them once (``tests/conftest.py``)."""
        return str(self.mechanism), self.kind, self.neighbors, self.mean

    def budget(self, size: str = "usual") -> PrivacyBudget:
        return PrivacyBudget.of(**BUDGETS[self.kind][size])

    def shape(self) -> MomentShape:
        n_rows = N_ROWS if self.neighbors is Neighbors.REPLACE_ONE else None
        return MomentShape(self.n_features, n_rows=n_rows, mean=self.mean, **self.shape_options)

    def rows(self, table: np.ndarray | None = None) -> Rows:
        given = self.table() if table is None else table[:, : self.n_features]
        return Rows.of(given, Schema.unit_ball(self.n_features), neighbors=self.neighbors)

    def table(self) -> np.ndarray:
        """Of 400 rows in the unit ball."""
        return table_in_the_ball()[:, : self.n_features]

    def plan(self, size: str = "usual") -> Any:
        return self.mechanism.plan(self.shape(), self.budget(size), self.neighbors)


def run_plan(plan: Any, rows: Rows, generator: np.random.Generator) -> Any:
    """One run, through a filter of its own."""
    return plan.run(rows, PrivacyFilter(plan, generator))


def table_in_the_ball(n_rows: int = N_ROWS, seed: int = 7) -> np.ndarray:
    """Rows of norm below 1 with an uneven spectrum and a mean off zero."""
    rng = np.random.default_rng(seed)
    table = rng.normal(0.0, [0.3, 0.15, 0.05], (n_rows, N_FEATURES)) + [0.1, -0.2, 0.05]
    return table / np.maximum(1.0, np.linalg.norm(table, axis=1, keepdims=True) * 1.001)


def rows_of_the_table(mechanism: Mechanism | MeanMechanism, **options: Any) -> list[Case]:
    """Every budget kind and relation the mechanism supports, with and without the mean."""
    return [
        Case(mechanism, kind, neighbors, mean, **options)
        for kind, neighbors, mean in product(
            sorted(mechanism.budget_kinds), sorted(mechanism.supported_neighbors), [True, False]
        )
    ]


COMPARISONS = frozenset({"entrywise-gaussian", "paper-coinpress", "paper-laplace", "regime-rule"})
"""Mechanisms of papers that are in no registry."""

CASES: list[Case] = [
    *rows_of_the_table(dpm.mechanisms.Gaussian()),
    *rows_of_the_table(EntrywiseGaussian()),
    *rows_of_the_table(dpm.mechanisms.Laplace()),
    *rows_of_the_table(PaperLaplace()),
    *rows_of_the_table(dpm.mechanisms.MatrixLaplace()),
    *rows_of_the_table(dpm.mechanisms.Isotropic()),
    *rows_of_the_table(dpm.mechanisms.Auto()),
    *[case for case in rows_of_the_table(dpm.mechanisms.Standardized()) if case.mean],
    *[case for case in rows_of_the_table(dpm.mechanisms.Standardized(clip=False)) if case.mean],
    *[  # it has no rule for zCDP
        case
        for largest in (1.0, 1e6)
        for case in rows_of_the_table(RegimeRule(largest_eigenvalue=largest), noisy_when_tiny=False)
        if case.kind is not BudgetKind.ZCDP
    ],
    *rows_of_the_table(dpm.mechanisms.IterativeEigenvectors(), noisy_when_tiny=False),
    *rows_of_the_table(dpm.mechanisms.IterativeEigenvectors(allocation="adaptive"), noisy_when_tiny=False),
    *rows_of_the_table(
        dpm.mechanisms.IterativeEigenvectors(allocation="uniform", calibration="paper"), noisy_when_tiny=False
    ),
    *rows_of_the_table(dpm.mechanisms.IterativeEigenvectors(rank=1), rank=1, noisy_when_tiny=False),
    *rows_of_the_table(dpm.mechanisms.KapralovTalwar(), noisy_when_tiny=False),
    *rows_of_the_table(dpm.mechanisms.KapralovTalwar(calibration="paper"), noisy_when_tiny=False),
    *rows_of_the_table(dpm.mechanisms.CoinPress()),
    *rows_of_the_table(PaperCoinPress()),
    *rows_of_the_table(PaperCoinPress(split="theorems", steps=3, failure=0.2), noisy_when_tiny=False),
    *[  # rows of mean zero alone
        case
        for case in rows_of_the_table(dpm.mechanisms.PrivatePreconditioning(eigenvalue_bounds=(0.01, 1.0)))
        if not case.mean
    ],
    # Without a bound on a row a tiny budget does not find the scale, and noise is in proportion to what it finds.
    *rows_of_the_table(dpm.mechanisms.LogScaleHistogram(), noisy_when_tiny=False),
    *rows_of_the_table(dpm.mechanisms.JohnsonLindenstrauss(), tolerance=0.1),
    *rows_of_the_table(dpm.mechanisms.JohnsonLindenstrauss(adaptive=True, calibration="paper"), tolerance=0.1),
    # More than the table has: its smallest eigenvalue, about 1, is raised to what the mechanism relies on, 2 at most there.
    *rows_of_the_table(dpm.mechanisms.JohnsonLindenstrauss(smallest_eigenvalue=200.0), tolerance=1.2),
    *rows_of_the_table(dpm.mechanisms.InverseWishart(), tolerance=0.1),
    *rows_of_the_table(dpm.mechanisms.InverseWishart(adaptive=True, calibration="paper"), tolerance=0.1),
    *rows_of_the_table(dpm.mechanisms.InverseWishart(smallest_eigenvalue=200.0), tolerance=1.2),
    *rows_of_the_table(dpm.mechanisms.AdditiveWishart(), tolerance=0.01),
    *rows_of_the_table(dpm.mechanisms.AdditiveWishart(debias="positive-definite"), tolerance=0.01),
    *rows_of_the_table(
        dpm.mechanisms.AdditiveWishart(scale_matrix=((3.0, 0.5, 0.0), (0.5, 2.0, 0.0), (0.0, 0.0, 1.0))),
        tolerance=0.01,
        only_features=3,
    ),
    *rows_of_the_table(dpm.mechanisms.InverseGaussian(1.05), noisy_when_tiny=False),
    *rows_of_the_table(dpm.mechanisms.InverseGaussian(1.05, calibration="paper"), noisy_when_tiny=False),
]

MEAN_CASES: list[Case] = [
    case
    for mechanism in (
        make_mean_mechanism("bounded-sums"),
        make_mean_mechanism("coinpress"),
        make_mean_mechanism("coinpress", constants="paper"),
        make_mean_mechanism("coinpress", constants="paper", split="theorems", steps=3, failure=0.2),
        make_mean_mechanism("karwa-vadhan"),
        make_mean_mechanism("karwa-vadhan", scale=0.3),
        make_mean_mechanism("log-scale-histogram"),
        make_mean_mechanism("naive"),
        make_mean_mechanism("symq"),
        make_mean_mechanism("variance-aware"),
    )
    for case in rows_of_the_table(mechanism)
    if case.mean
]
"""Estimators of means."""
