"""Parts shared by the mechanisms that draw around the padded Gram matrix.

Source: Sheffet 2015, sections 3 and 5.

A row x is augmented to z = (w, x) as in ``additive.py``. Σ z zᵀ + ψI is the scale matrix of a Wishart or an inverse Wishart
distribution with ν degrees of freedom; the release is a draw rescaled to have that mean. The exact privacy curve gives the
padding ψ that ν degrees of freedom need (``docs/evidence/derivations/johnson_lindenstrauss.md``). With ``smallest_eigenvalue``
the eigenvalues below it are raised first, and only the rest is padded; the guarantee holds whether or not that number is right.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.checks import check_between, check_one_of, check_positive
from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.values import shown
from dpmoments.mechanisms.additive import augmented_dimension, augmented_gram, choose_augmentation, taken_apart
from dpmoments.mechanisms.base import Mechanism, Plan
from dpmoments.mechanisms.lattice_noise import noise_scale_for
from dpmoments.mechanisms.shape import Arithmetic, MomentShape, RunResult
from dpmoments.papers.curves import (
    raised_wishart_degrees,
    raised_wishart_delta,
    raised_wishart_ratio,
    wishart_sampling_degrees,
    wishart_sampling_delta,
    wishart_sampling_padding,
)
from dpmoments.papers.laws import EigenvalueBound, RaisedWishartSampling, WishartSampling
from dpmoments.papers.models import WishartModel
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import gaussian_noise_scale
from dpmoments.privacy.distances import Sensitivity
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import DrawLaw
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.sensitivity import gram_frobenius, row_norm_square, smallest_eigenvalue
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

MAX_DEGREES = 2**34
"""Upper limit on the degrees of freedom: more would bring no gain visible in floating point."""
_TYPICAL_ROWS = 10**6
"""Assumed rows if their number is private, for the default degrees of freedom.

Privacy does not depend on it.
"""
_TOLERATED_EXCESS = 1.05
"""Tolerated ratio of the default's worst-case mean square error to the minimum."""


@dataclass(frozen=True)
class PaddedGramPlan(Plan):
    """Calibrated :class:`PaddedGram`."""

    mechanism: PaddedGram
    augmentation: float  # w; 0 for a Gram matrix without count and mean
    degrees: int  # ν. In an adaptive plan the minimum: the data may allow more.
    # ψ, in unit-ball units: the smallest eigenvalue of the scale matrix that ν degrees of freedom need when any one row
    # is removed
    padding: float
    # (the draw's budget,), or (budget of the eigenvalue bound, budget of the draw) of an adaptive plan
    parts: tuple[PrivacyBudget, ...]
    # value to which smaller eigenvalues are raised before padding, in unit-ball units; 0 if `smallest_eigenvalue` is
    # not given, or saves no padding
    raised: float = 0.0

    arithmetic: ClassVar[Arithmetic] = Arithmetic.IDEALIZED

    @property
    def row_norm_square(self) -> Sensitivity:
        """B²: bound on ‖z‖², 1 + w²."""
        return row_norm_square(self.neighbors, self.augmentation)

    @property
    def details(self) -> Mapping[str, Any]:
        result = {"degrees_of_freedom": self.degrees, "padding": self.padding, "augmentation": self.augmentation}
        return result if self.mechanism.smallest_eigenvalue is None else result | {"raised_to": self.raised}

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> RunResult:
        self.check_rows(rows)
        moments = rows.moments()
        exact = augmented_gram(moments, self.augmentation).astype(np.float64) * moments.scale**2
        degrees, padding, floor, diagnostics = self.degrees, self.padding, 0.0, dict[str, Any]()
        if self.mechanism.adaptive:
            bound = self._eigenvalue_bound(exact, privacy_filter)
            degrees, padding, floor = self._adapt(bound)
            diagnostics = {"eigenvalue_bound": bound, "degrees_of_freedom": degrees, "padding": padding}
        law: DrawLaw = WishartSampling(degrees, padding, floor, self.mechanism.inverse)
        sensitivity = self.row_norm_square
        if self.raised > 0.0:
            law = RaisedWishartSampling(degrees, padding, self.raised, self.mechanism.inverse)
            sensitivity = gram_frobenius(self.neighbors, self.shape.n_features, self.augmentation)
        noisy = privacy_filter.draw("padded-gram", law, exact, sensitivity, self.parts[-1])
        if self.mechanism.subtract_padding:
            noisy = noisy - padding * np.eye(len(noisy))
        count = self.released_count(moments.count, privacy_filter)
        result = taken_apart(noisy, self.augmentation, count, diagnostics)
        return replace(result, model=self._model_of_run(noisy, degrees, padding))

    def _model_of_run(self, noisy: FloatArray, degrees: int, padding: float) -> WishartModel:
        options, (scale, laplace) = self.mechanism, self.own_count_noise
        kept = padding if options.subtract_padding else 0.0
        return WishartModel(
            n_features=self.shape.n_features,
            count_scale=scale,
            count_is_laplace=laplace,
            degrees=degrees,
            padding=padding,
            subtracted=options.subtract_padding,
            inverse=options.inverse,
            augmentation=self.augmentation,
            corner=max(float(noisy[0, 0]) + kept, 0.0) if self.augmentation else 0.0,
            raised=self.raised,
        )

    def model_entries(self, diagnostics: Mapping[str, Any], receipt: Receipt) -> Mapping[str, Any] | None:
        del receipt
        options, (scale, laplace) = self.mechanism, self.own_count_noise
        chosen = diagnostics if options.adaptive else self.details
        return {
            "name": WishartModel.name,
            "n_features": self.shape.n_features,
            "count_scale": scale,
            "count_is_laplace": laplace,
            "degrees": chosen.get("degrees_of_freedom"),
            "padding": chosen.get("padding"),
            "subtracted": options.subtract_padding,
            "inverse": options.inverse,
            "augmentation": self.augmentation,
            "raised": self.raised,
        }

    def _eigenvalue_bound(self, exact: FloatArray, privacy_filter: PrivacyFilter) -> float:
        """Return a private lower bound on the smallest eigenvalue."""
        # It fails with probability at most this part's δ.
        first = self.parts[0]
        sensitivity = smallest_eigenvalue(self.neighbors, self.augmentation)
        scale = noise_scale_for(PrivacyBudget.pure(first.epsilon), sensitivity.value)
        allowance = scale * max(math.log(0.5 / first.delta), 0.0) * (1.0 + 2.0**-40)
        smallest = float(np.linalg.eigvalsh(exact)[0])
        law = EigenvalueBound(scale, allowance)
        return float(privacy_filter.draw("eigenvalue-bound", law, smallest, sensitivity))

    def _adapt(self, bound: float) -> tuple[int, float, float]:
        """Return degrees of freedom, padding, and the smallest eigenvalue relied upon."""
        unit = self.row_norm_square.value
        floor = max(bound - unit, 0.0)
        if self.padding > floor:
            return self.degrees, self.padding - floor, floor
        allowed = self.mechanism.most_degrees(self.parts[-1], floor / unit, self.neighbors)
        return max(allowed, self.degrees), 0.0, floor


@dataclass(frozen=True)
class PaddedGram(Mechanism):
    """Options of the mechanisms that draw around the padded Gram matrix."""

    degrees_of_freedom: int | None = None
    adaptive: bool = False
    subtract_padding: bool = True
    calibration: Literal["exact", "paper"] = "exact"
    smallest_eigenvalue: float | None = None

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.APPROXIMATE})
    inverse: ClassVar[bool]
    """True if the draw is inverse Wishart."""
    fewest_beyond_dimension: ClassVar[int]
    """Minimum of the degrees of freedom minus the dimension."""

    def __post_init__(self) -> None:
        check_one_of("calibration", self.calibration, ("exact", "paper"))
        if self.degrees_of_freedom is not None:
            check_between("degrees_of_freedom", self.degrees_of_freedom, 1, MAX_DEGREES)
        if self.smallest_eigenvalue is not None:
            check_positive("smallest_eigenvalue", self.smallest_eigenvalue)
        if self.smallest_eigenvalue is not None and self.adaptive:
            raise InputValueError(
                "give smallest_eigenvalue or adaptive=True, not both: the one is known without the table, the "
                "other spends half of the budget to find it"
            )

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> PaddedGramPlan:
        def unit_for(w: float) -> float:
            return row_norm_square(neighbors, w).value

        augmentation = choose_augmentation(shape, unit_for, noisy_count=not shape.count_is_public(neighbors))
        dimension = augmented_dimension(shape.n_features, augmentation)
        unit = unit_for(augmentation)
        parts = budget.split(1.0, 1.0) if self.adaptive else (budget,)
        degrees = self.chosen_degrees(shape, parts[-1], neighbors, dimension, unit)
        moves = gram_frobenius(neighbors, shape.n_features, augmentation).value
        fewest = dimension + self.fewest_beyond_dimension
        if self.smallest_eigenvalue is not None and self.degrees_are_free:
            unpadded = self.degrees_without_padding(budget, self.smallest_eigenvalue, moves, unit)
            degrees = unpadded if unpadded >= fewest else degrees
        if degrees < fewest:
            raise InputValueError(
                f"{self.name} needs at least {fewest:g} degrees of freedom for a matrix of {dimension} rows "
                f"(features, and one more for count and mean), got {shown(degrees)}"
            )
        padding, raised = unit * self.padding(parts[-1], degrees, neighbors), 0.0
        if self.smallest_eigenvalue is not None:
            least = self.least_eigenvalue(budget, degrees, moves, unit)
            missing = max(least - self.smallest_eigenvalue, 0.0)
            # If little is known, padding all of it by the exact curve needs less than raising and padding the rest.
            if missing < padding:
                padding, raised = missing, least - missing
        return PaddedGramPlan(
            mechanism=self,
            shape=shape,
            neighbors=neighbors,
            cost=budget,
            augmentation=augmentation,
            degrees=degrees,
            padding=padding,
            parts=parts,
            raised=raised,
        )

    @property
    def degrees_are_free(self) -> bool:
        """True if no option sets the degrees of freedom."""
        return self.degrees_of_freedom is None

    def chosen_degrees(
        self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors, dimension: int, unit: float
    ) -> int:
        """Return the given degrees of freedom, or the default."""
        if self.degrees_of_freedom is not None:
            return self.degrees_of_freedom
        total = unit * (_TYPICAL_ROWS if shape.n_rows is None else shape.n_rows)
        return _default_degrees(
            budget,
            neighbors,
            dimension + self.fewest_beyond_dimension,
            dimension,
            total,
            unit,
            not self.subtract_padding,
        )

    def padding(self, budget: PrivacyBudget, degrees: int, neighbors: Neighbors) -> float:
        """Return ψ/B² for these degrees of freedom."""
        exact = wishart_sampling_padding(budget.epsilon, budget.delta, degrees, neighbors)
        if self.calibration == "exact":
            return exact
        # The paper's bound is far above the exact value; the larger of the two is private whatever its proof covers.
        return max(exact, paper_padding(budget, degrees))

    def most_degrees(self, budget: PrivacyBudget, padding: float, neighbors: Neighbors) -> int:
        """Return the most private degrees of freedom if the smallest eigenvalue is ``padding``.

        In units of B².
        """
        allowed = self._published_degrees(budget, padding)
        if wishart_sampling_delta(budget.epsilon, max(allowed, 1), padding, neighbors) <= budget.delta * (1.0 - 1e-9):
            return allowed
        return min(allowed, wishart_sampling_degrees(budget.epsilon, budget.delta, padding, neighbors))

    def _published_degrees(self, budget: PrivacyBudget, padding: float) -> int:
        """Return the maximum of the paper's bound with its calibration, else MAX_DEGREES."""
        if self.calibration == "exact":
            return MAX_DEGREES
        log_term = math.log(4.0 / budget.delta)
        root = max(padding * budget.epsilon / 4.0 - 2.0 * log_term, 0.0)
        return min(MAX_DEGREES, math.floor(root**2 / (2.0 * log_term)))

    def least_eigenvalue(self, budget: PrivacyBudget, degrees: int, moves: float, unit: float) -> float:
        """Return the value to raise small eigenvalues to.

        From the Frobenius sensitivity ``moves`` and ``unit`` B².
        """
        least = moves * raised_wishart_ratio(budget.epsilon, budget.delta, degrees)
        return least if self.calibration == "exact" else max(least, unit * paper_padding(budget, degrees))

    def degrees_without_padding(self, budget: PrivacyBudget, least: float, moves: float, unit: float) -> int:
        """Return the most degrees of freedom for which raising to ``least`` suffices, or 0.

        Sheffet 2015, Corollary B.2.
        """
        allowed = self._published_degrees(budget, least / unit)
        ratio = least / moves
        if raised_wishart_delta(budget.epsilon, max(allowed, 1), ratio) <= budget.delta * (1.0 - 1e-9):
            return allowed
        return min(allowed, raised_wishart_degrees(budget.epsilon, budget.delta, ratio))


def paper_padding(budget: PrivacyBudget, degrees: int) -> float:
    """Return w²/B² of Sheffet (2015), Theorem 3.1: (4/ε)(√(2r ln(4/δ)) + 2 ln(4/δ))."""
    log_term = math.log(4.0 / budget.delta)
    return 4.0 / budget.epsilon * (math.sqrt(2.0 * degrees * log_term) + 2.0 * log_term)


def _default_degrees(
    budget: PrivacyBudget,
    neighbors: Neighbors,
    fewest: int,
    dimension: int,
    total: float,
    unit: float,
    padding_stays: bool,
) -> int:
    """Return the smallest power of two that nearly minimizes the worst-case error."""
    sensitivity = gram_frobenius(neighbors, max(dimension, 2))
    noise = gaussian_noise_scale(budget.epsilon, budget.delta, sensitivity.value)
    tail = -math.log(budget.delta) / budget.epsilon

    def mean_square_error(degrees: int) -> float:
        padding = unit * (noise * math.sqrt(0.5 * degrees) + tail)
        spread = (total + dimension * padding) ** 2 + (total + padding) ** 2 + (dimension - 1) * padding**2
        return spread / degrees + (dimension * padding**2 if padding_stays else 0.0)

    choices = [fewest, *(1 << power for power in range(1, MAX_DEGREES.bit_length()) if 1 << power > fewest)]
    errors = [mean_square_error(degrees) for degrees in choices]
    return next(d for d, error in zip(choices, errors, strict=True) if error <= _TOLERATED_EXCESS * min(errors))
