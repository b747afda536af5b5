"""Contract of a mechanism for mean-only releases: options, a plan without data, one run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dpmoments.base.arrays import FloatArray
from dpmoments.base.errors import InputValueError, out_of_range, shown
from dpmoments.mechanisms.base import GAUSSIAN_LOSS_UNITS, CalibratedPlan, ConfiguredMechanism
from dpmoments.mechanisms.lattice_noise import split_for_count
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.moments.models import MeanModel
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

_MIN, _MAX = 1e-60, 1e60
"""Limits of public radii and scales: the squares of their ratios are finite."""


@dataclass(frozen=True, slots=True)
class NoisyMean:
    """Result of a run, in encoded units."""

    mean: FloatArray  # (d,)
    count: float  # exact if the number of rows is public, else noisy
    # other private results of the run; covered by the plan's cost
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    # noise distribution of the mean, from public numbers and noisy results; None without a closed form
    noise: MeanModel | None = None


@dataclass(frozen=True, slots=True, eq=False)
class NormalRows:
    """Rows that a forecast assumes: independent normal coordinates, SDs of shape (d,)."""

    n_rows: int
    standard_deviations: FloatArray


@dataclass(frozen=True)
class MeanPlan(CalibratedPlan[NoisyMean]):
    """Calibrated :class:`MeanMechanism`."""

    mechanism: MeanMechanism

    error_needs_rows: ClassVar[bool] = True
    """True if :meth:`expected_errors` depends on more of the assumed rows than their number."""

    def expected_errors(self, assumed: NormalRows) -> FloatArray | None:
        """Return the RMS noise of every coordinate on such rows, shape (d,), or None if unknown."""
        return None

    def count_of(self, rows: Rows, privacy_filter: PrivacyFilter) -> float:
        """Return the number of rows to divide by."""
        # Exact if public, else paid for by `count_loss`.
        if self.count_loss is None and not self.count_is_public:
            raise AssertionError("no draw was planned for the private number of rows: a defect, please report it")
        n_rows = self.released_count(rows.count(), privacy_filter)
        assert n_rows is not None
        return n_rows


@dataclass(frozen=True)
class MeanMechanism(ConfiguredMechanism[MeanPlan]):
    """Frozen options of one published estimator of means."""

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.ZCDP, BudgetKind.APPROXIMATE})
    loss_units: ClassVar[Mapping[BudgetKind, LossUnit]] = GAUSSIAN_LOSS_UNITS
    needs_row_norm: ClassVar[bool] = False
    noun: ClassVar[str] = "estimator of means"

    def budget_advice(self) -> str:
        advice = super().budget_advice()
        return advice if BudgetKind.PURE in self.budget_kinds else f"{advice}; or leave the mechanism out"

    def check_support(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> None:
        super().check_support(shape, budget, neighbors)
        if shape.n_rows == 0:
            raise InputValueError("a table that is publicly empty has no mean")

    def divide_for_count(
        self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors
    ) -> tuple[PrivacyBudget | None, PrivacyBudget]:
        """Return the budgets of the number of rows (None if it is public) and of the rest."""
        whole = self.drawable_budget(budget)
        return (None, whole) if shape.count_is_public(neighbors) else split_for_count(whole)

    def require_positive(self, *names: str) -> None:
        """Raise unless the named options are positive numbers with finite squares, or None."""
        for name in names:
            value = getattr(self, name)
            if value is None:
                continue
            if not (not isinstance(value, bool) and isinstance(value, int | float) and 0.0 < value < math.inf):
                raise out_of_range(name, value, "a positive finite number")
            if not _MIN <= value <= _MAX:
                raise InputValueError(
                    f"{name}={shown(value)} must be in [{_MIN:g}, {_MAX:g}]: give the table in other units"
                )

    def known_radius(self, radius: float | None, shape: MomentShape) -> float:
        """Return the public bound on the mean: as given, or 1 for rows in the unit ball."""
        if radius is not None:
            return radius
        if shape.row_norm is None:
            raise InputValueError(
                f"means by '{self.name}' need a public bound on the mean: give radius, or use variance-aware"
            )
        return shape.row_norm

    def known_scale(self, scale: float | None, shape: MomentShape) -> float:
        """Return the public bound on an SD: as given, or 1/√d for rows in the unit ball."""
        if scale is not None:
            return scale
        if shape.row_norm is None:
            raise InputValueError(
                f"means by '{self.name}' need a public bound on the standard deviation: give scale, or use "
                "variance-aware"
            )
        return shape.row_norm / math.sqrt(shape.n_features)
