"""Contract of a mechanism for mean-only releases: options, a plan without data, one run."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from dpmoments.base.arrays import FloatArray
from dpmoments.base.errors import InputValueError, out_of_range, shown
from dpmoments.base.message import Message
from dpmoments.mechanisms.additive import choose_bits
from dpmoments.mechanisms.base import GAUSSIAN_LOSS_UNITS, CalibratedPlan, ConfiguredMechanism
from dpmoments.mechanisms.lattice_noise import split_for_count, with_gaussian_noise
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.moments.models import MeanModel
from dpmoments.moments.rounding import with_rounding
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import zcdp_noise_scale
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sensitivity import gram_frobenius, row_sum_l2
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


# One step of a multivariate mean: noisy sums of rows clipped to a ball, and of the squares of their coordinates.


@dataclass(frozen=True, slots=True)
class ClippedSums:
    """Noisy sums of clipped rows w, noise SD ``sum_scale``, and of their w_j² if asked for."""

    sum: FloatArray
    sum_scale: float
    rounding: float  # largest error of an entry of a row
    squares: FloatArray | None = None
    squares_scale: float = 0.0


def noisy_clipped_sums(
    rows: Rows,
    privacy_filter: PrivacyFilter,
    step: int,
    *,
    rho: float,
    center: FloatArray,
    linear: FloatArray,
    radius: float,
    squares_rho: float = 0.0,
) -> ClippedSums:
    """Release Σw of w = linear·(x − center) clipped to ‖w‖ ≤ radius.

    With ``squares_rho``, also the sums of w_j².

    **Privacy.** (rho + squares_rho)-zCDP: discrete Gaussian noise on exact integer sums. Σw moves by at most radius
    (add-remove) or 2·radius. The squares are the diagonal of the Gram matrix, so they move by no more in ℓ2 than it does in
    Frobenius norm.
    """
    k, neighbors = len(linear), rows.neighbors
    of_sum, of_squares = row_sum_l2(neighbors), gram_frobenius(neighbors, k)
    scale = zcdp_noise_scale(rho, of_sum.value)
    squares_scale = zcdp_noise_scale(squares_rho, of_squares.value) if squares_rho else 0.0
    bits = choose_bits(max(scale, squares_scale), k)
    moments = rows.moments(center, linear, radius, bits=bits)
    total = (
        with_gaussian_noise(privacy_filter, Message("sum", step=step), moments.sum, of_sum, scale, bits=bits) * radius
    )
    rounding = 0.5 * radius * 2.0**-bits
    if not squares_rho:
        return ClippedSums(total, scale * radius, rounding)
    exact_squares = np.diagonal(moments.gram)
    squares = with_gaussian_noise(
        privacy_filter, Message("squares", step=step), exact_squares, of_squares, squares_scale, bits=2 * bits
    )
    return ClippedSums(total, scale * radius, rounding, squares * radius**2, squares_scale * radius**2)


# Noise distribution of a mean, from its last step and the count: noisy values and public numbers only.


def noise_of_last_step(
    back: FloatArray,
    sums: ClippedSums,
    count_error: float | None,
    n_rows: float,
    *,
    clipped: float | None,
    bias_suspected: bool,
) -> MeanModel:
    """Return the noise of center + back·m̂.

    m̂ = ``sums.sum``/n is the noisy mean of w = back⁻¹·(x − center) clipped to a ball.

    ``clipped`` is the noisy fraction of clipped rows (None if not queried). ``bias_suspected`` is True if the norms
    seen have heavier tails than normal rows, or too few were seen: clipping is planned to keep the mean of normal rows, and
    moves others as far as noise does, or further.
    """
    return MeanModel(
        "gaussian",
        with_rounding(
            sums.sum_scale / n_rows * np.sqrt((back * back).sum(axis=1)), sums.rounding * np.abs(back).sum(axis=1)
        ),
        np.abs(back @ (sums.sum / n_rows)) * ((count_error or 0.0) / n_rows),
        clipped=clipped,
        bias_suspected=bias_suspected,
    )
