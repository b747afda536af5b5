"""The contract of a mechanism for means alone: frozen options, a plan made without data, then one run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.mechanisms.base import GAUSSIAN_LOSS_UNITS, CalibratedPlan, ConfiguredMechanism
from dpmoments.mechanisms.lattice_noise import split_for_count
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.noise.models import MeanModel
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

_MIN, _MAX = 1e-60, 1e60
"""Public radii and scales: the squares of their ratios are finite."""


@dataclass(frozen=True, slots=True)
class NoisyMean:
    """What a run releases, in the units in which rows are encoded.

    Attributes
    ----------
    mean : ndarray of shape (d,)
    count : float
        Exact where the number of rows is public, else noisy.
    diagnostics : mapping
        What else the run learned privately; covered by the plan's cost.
    noise : MeanModel or None
        The law of the noise on the mean, from public numbers and what the run learned; None where it has no closed form.
    """

    mean: FloatArray
    count: float
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    noise: MeanModel | None = None


@dataclass(frozen=True, slots=True, eq=False)
class NormalRows:
    """Rows that a forecast assumes: independent normal coordinates, in the units in which rows are encoded.

    Attributes
    ----------
    standard_deviations : ndarray of shape (d,)
    """

    n_rows: int
    standard_deviations: FloatArray


@dataclass(frozen=True)
class MeanPlan(CalibratedPlan[NoisyMean]):
    """A calibrated :class:`MeanMechanism`."""

    mechanism: MeanMechanism

    error_needs_rows: ClassVar[bool] = True
    """Whether :meth:`expected_errors` rests on more of the rows assumed than their number."""

    def expected_errors(self, assumed: NormalRows) -> FloatArray | None:  # noqa: ARG002 - no error is known of an estimator that states none
        """Root mean square error of every coordinate about the rows' own mean, shape (d,), before any row is read.

        Of the noise that such rows would get; None where it is not known.
        """
        return None

    def count_of(self, rows: Rows, privacy_filter: PrivacyFilter) -> float:
        """The number of rows to divide by: exact where it is public, else as :attr:`count_loss` pays for it."""
        if self.count_loss is None and not self.count_is_public:
            raise AssertionError("a private number of rows is divided by, and nothing was planned for it: a defect")
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
        others = (
            "" if BudgetKind.PURE in self.budget_kinds else "; or take log-scale-histogram, which spends epsilon alone"
        )
        return super().budget_advice() + others

    def check_support(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> None:
        super().check_support(shape, budget, neighbors)
        if shape.n_rows == 0:
            raise InputValueError("a table that is publicly empty has no mean")

    def divide_for_count(
        self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors
    ) -> tuple[PrivacyBudget | None, PrivacyBudget]:
        """What is spent on the number of rows (None where it is public), and what is left."""
        whole = self.drawable_budget(budget)
        return (None, whole) if shape.count_is_public(neighbors) else split_for_count(whole)

    def require_positive(self, *names: str) -> None:
        """Raise unless the options named are positive numbers whose squares floating point can hold, or None."""
        for name in names:
            value = getattr(self, name)
            if value is None:
                continue
            if not (not isinstance(value, bool) and isinstance(value, int | float) and 0.0 < value < math.inf):
                raise InputValueError(f"{name}={value!r} must be a positive finite number")
            if not _MIN <= value <= _MAX:
                raise InputValueError(f"{name}={value!r} is beyond [{_MIN:g}, {_MAX:g}]: give the table in other units")

    def known_radius(self, radius: float | None, shape: MomentShape) -> float:
        """The public bound on the mean: as given, or 1 for rows in the unit ball."""
        if radius is not None:
            return radius
        if shape.row_norm is None:
            raise InputValueError(
                f"means by {self.name!r} need a public bound on the mean: give radius, or use variance-aware"
            )
        return shape.row_norm

    def known_scale(self, scale: float | None, shape: MomentShape) -> float:
        """The public bound on a standard deviation: as given, or 1/√d for rows in the unit ball."""
        if scale is not None:
            return scale
        if shape.row_norm is None:
            raise InputValueError(
                f"means by {self.name!r} need a public bound on the standard deviation: give scale, or use variance-aware"
            )
        return shape.row_norm / math.sqrt(shape.n_features)
