"""Private preconditioning.

Halve the directions of large variance, round by round, until variances are similar.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpmoments.base.checks import check_between, check_positive, check_probability
from dpmoments.base.errors import InputValueError
from dpmoments.base.message import Message
from dpmoments.base.values import FloatArray
from dpmoments.mechanisms.base import GAUSSIAN_LOSS_UNITS, Mechanism
from dpmoments.mechanisms.shape import MomentShape, RunResult
from dpmoments.papers.bounds.normal_rows import CONTRACTION, RESCALE, ROUNDS_SHARE, n_rounds
from dpmoments.papers.mechanisms.coinpress import spectral_edge
from dpmoments.papers.mechanisms.coinpress_schedule import checked_eigenvalue_bounds
from dpmoments.papers.mechanisms.mapped_rows import MappedRows, RecursivePlan, count_first, require_workable_budget
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

_SHRINK = 0.5
"""Factor for directions of large variance."""
_MIN_STOP = 8.0
"""Minimum κ for another round: a halved direction keeps variance ≥ 1 from κ = 8 on."""


@dataclass(frozen=True)
class PrivatePreconditioningPlan(RecursivePlan):
    """Calibrated :class:`PrivatePreconditioning`; ``n_rounds`` excludes the last step."""

    mechanism: PrivatePreconditioning
    n_rounds: int

    @property
    def details(self) -> Mapping[str, Any]:
        return {"rho": self.rho, "rounds": self.n_rounds}

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> RunResult:
        self.check_rows(rows)
        d, rho, options = self.shape.n_features, self.rho, self.mechanism
        n_rows, rho = count_first(rows, privacy_filter, rho, self.shape.n_rows)
        lowest, highest = options.bounds(self.shape)
        kappa, linear = highest / lowest, np.eye(d) / math.sqrt(lowest)
        steps: list[dict[str, Any]] = []
        for budget in PrivacyBudget.zcdp(rho).split(*_shares(self.n_rounds)):
            # Rows are clipped to {x : ‖linear·x‖ ≤ radius}.
            radius = math.sqrt(options.clip_constant * kappa * d * math.log(n_rows / options.failure))
            is_last = len(steps) == self.n_rounds
            which: Mapping[str, int | bool] = {"last": True} if is_last else {"round": len(steps) + 1}
            mapped = MappedRows(rows, privacy_filter, np.zeros(d), linear)
            release = mapped.moments(which, budget.rho, radius, mean=False)
            noise = release.gram_scale / n_rows
            steps.append({"linear": linear.tolist(), "radius": radius, "kappa": kappa, "noise_scale": noise})
            if not is_last:
                linear = RESCALE * _shrink_long(release.gram / n_rows, kappa / 2.0) @ linear
                kappa *= CONTRACTION
        # P⁻¹ M P⁻ᵀ: P, a product of symmetric matrices, is not symmetric itself.
        half = np.linalg.solve(linear, release.gram)
        gram = np.linalg.solve(linear, half.T)
        edge = spectral_edge(d)
        warnings: list[Message] = []
        if any(step["noise_scale"] * edge > step["kappa"] / 10.0 for step in steps[:-1]):
            warnings.append(Message("rounds-too-noisy"))
        if n_rows < d:
            warnings.append(Message("fewer-rows-than-features"))
        return RunResult(
            count=n_rows if self.neighbors.table_size_is_public else None,
            sum=None,
            gram=(gram + gram.T) / 2.0,
            diagnostics={"steps": steps, "warnings": tuple(warnings)},
            model=release.model(linear, np.zeros(d), self.expected_count_error),
        )


@dataclass(frozen=True)
class PrivatePreconditioning(Mechanism):
    """Release the second moment by recursive private preconditioning.

    Source: Kamath, Li, Singhal & Ullman 2019.

    As in lecture 18, section 2.2. For rows of mean zero with lo·I ⪯ Σ ⪯ hi·I and κ = hi/lo, in units where lo = 1: each round
    clips to ‖x‖² ≤ Cκd ln(n/τ), releases the noisy second moment, multiplies the directions whose noisy eigenvalue is at least
    κ/2 by ½, and goes on with 0.9κ (Theorem 2.3 of the lecture). When κ reaches ``stop_at``, the other half of the budget pays
    for a plain noisy second moment (section 2.1), which is mapped back to the original units. The lecture drops long rows
    instead of clipping them, and ends at κ ≤ 1000.

    Its constants are loose. A round reduces κ by a tenth only, and the noise at a clip of Cκd ln(n/τ) must be well below κ/2,
    so n must be of the order of 10⁵ at d = 10, where CoinPress needs 10³. It is here because the guarantee is simple
    (``docs/evidence/derivations/private_preconditioning.md``).

    **Privacy.** ρ-zCDP by composition of exact discrete Gaussian releases; under (ε, δ) they lose at most what one Gaussian
    mechanism loses (``docs/evidence/derivations/composition.md``). The guarantee assumes nothing about the rows.

    Parameters
    ----------
    eigenvalue_bounds : (lo, hi), optional
        Range of the eigenvalues, in encoded units. Default: (1e-6, 1) for rows in the unit ball.
    stop_at : float
        κ at which preconditioning ends, at least 8.
    clip_constant : float
        C above.
    failure : float
        τ above: the probability that a normal row is clipped in some round.

    Examples
    --------
    >>> shape = MomentShape(5, n_rows=10**6, mean=False, row_norm=None)
    >>> PrivatePreconditioning((1.0, 1e4)).plan(shape, PrivacyBudget.zcdp(0.5), "replace_one").n_rounds
    68
    """

    eigenvalue_bounds: tuple[float, float] | None = None
    stop_at: float = _MIN_STOP
    clip_constant: float = 2.0
    failure: float = 0.05

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.ZCDP, BudgetKind.APPROXIMATE})
    loss_units: ClassVar[Mapping[BudgetKind, LossUnit]] = GAUSSIAN_LOSS_UNITS
    needs_row_norm: ClassVar[bool] = False
    counts_rows: ClassVar[bool] = True
    summary: ClassVar[str] = "second moment from a rough eigenvalue range, with loose constants; for large tables"
    source: ClassVar[str] = "Kamath, Li, Singhal & Ullman 2019, recursive private preconditioning, as in lecture 18"

    def __post_init__(self) -> None:
        if self.eigenvalue_bounds is not None:
            object.__setattr__(self, "eigenvalue_bounds", checked_eigenvalue_bounds(self.eigenvalue_bounds))
        check_between("stop_at", self.stop_at, _MIN_STOP, math.inf)
        check_positive("clip_constant", self.clip_constant)
        check_probability("failure", self.failure)

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> PrivatePreconditioningPlan:
        if shape.mean:
            refused = "private-preconditioning estimates the second moment of rows of mean zero: release "
            advice = ", or use coinpress, which finds the mean too"
            raise InputValueError(f"{refused}with mean=False{advice}", shell=f"{refused}with --no-mean{advice}")
        if shape.n_rows == 0:
            raise InputValueError("private-preconditioning needs rows: this table is publicly empty")
        lowest, highest = self.bounds(shape)
        rounds, rho = n_rounds(highest / lowest, self.stop_at), self.drawable_budget(budget).rho
        require_workable_budget(rho, _shares(rounds))
        return PrivatePreconditioningPlan(self, shape, neighbors, budget, rho, n_rounds=rounds)

    def bounds(self, shape: MomentShape) -> tuple[float, float]:
        """Return the range of eigenvalues that a run assumes."""
        bounds = self.eigenvalue_bounds or ((1e-6, 1.0) if shape.row_norm is not None else None)
        if bounds is None:
            raise InputValueError(
                "private-preconditioning needs a range of eigenvalues of the second moment: "
                "PrivatePreconditioning(eigenvalue_bounds=(lowest, highest))"
            )
        return bounds


def _shares(rounds: int) -> list[float]:
    return [*[ROUNDS_SHARE / rounds] * rounds, 1.0 - ROUNDS_SHARE] if rounds else [1.0]


def _shrink_long(second_moment: FloatArray, threshold: float) -> FloatArray:
    """Return (I − Π) + ½Π, where Π projects on the eigenvectors of eigenvalue ≥ threshold."""
    eigenvalues, eigenvectors = np.linalg.eigh(second_moment)
    factors = np.where(eigenvalues >= threshold, _SHRINK, 1.0)
    return np.asarray((eigenvectors * factors) @ eigenvectors.T)
