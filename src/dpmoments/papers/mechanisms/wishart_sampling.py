"""Draws around the padded Gram matrix (Sheffet 2015, sections 3 and 5).

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

from dpmoments.base.checks import check_between, check_one_of, check_positive
from dpmoments.base.errors import InputValueError, shown
from dpmoments.base.values import FloatArray
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
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import DrawLaw
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.sensitivity import Sensitivity, gram_frobenius, row_norm_square, smallest_eigenvalue
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

MAX_DEGREES = 2**34
"""Upper limit on the degrees of freedom: more would bring no gain visible in floating point."""
_TYPICAL_ROWS = 10**6
"""Rows assumed if their number is private; privacy does not depend on it."""
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
            unit = self.row_norm_square.value
            floor = max(bound - unit, 0.0)
            if padding > floor:
                padding -= floor
            else:
                allowed = self.mechanism.most_degrees(self.parts[-1], floor / unit, self.neighbors)
                degrees, padding = max(allowed, degrees), 0.0
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
        kept = padding if self.mechanism.subtract_padding else 0.0
        corner = max(float(noisy[0, 0]) + kept, 0.0) if self.augmentation else 0.0
        result = taken_apart(noisy, self.augmentation, count, diagnostics)
        return replace(result, model=WishartModel(**self._planned_entries(degrees, padding), corner=corner))

    def model_entries(self, diagnostics: Mapping[str, Any], receipt: Receipt) -> Mapping[str, Any] | None:
        chosen = diagnostics if self.mechanism.adaptive else self.details
        entries = self._planned_entries(chosen.get("degrees_of_freedom"), chosen.get("padding"))
        return {"name": WishartModel.name, **entries}

    def _planned_entries(self, degrees: Any, padding: Any) -> dict[str, Any]:
        """Return the entries of a run's noise model that do not depend on its draw."""
        options, (scale, laplace) = self.mechanism, self.own_count_noise
        return dict(
            n_features=self.shape.n_features,
            count_scale=scale,
            count_is_laplace=laplace,
            degrees=degrees,
            padding=padding,
            subtracted=options.subtract_padding,
            inverse=options.inverse,
            augmentation=self.augmentation,
            raised=self.raised,
        )

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
            least = moves * raised_wishart_ratio(budget.epsilon, budget.delta, degrees)
            if self.calibration == "paper":
                least = max(least, unit * paper_padding(budget, degrees))
            missing = max(least - self.smallest_eigenvalue, 0.0)
            # If little is known, padding all of it by the exact curve needs less than raising and padding the rest.
            if missing < padding:
                padding, raised = missing, least - missing
        return PaddedGramPlan(self, shape, neighbors, budget, augmentation, degrees, padding, parts, raised=raised)

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
        # The smallest power of two that nearly minimizes the worst-case error.
        total = unit * (_TYPICAL_ROWS if shape.n_rows is None else shape.n_rows)
        fewest = dimension + self.fewest_beyond_dimension
        sensitivity = gram_frobenius(neighbors, max(dimension, 2))
        noise = gaussian_noise_scale(budget.epsilon, budget.delta, sensitivity.value)
        tail = -math.log(budget.delta) / budget.epsilon

        def mean_square_error(degrees: int) -> float:
            padding = unit * (noise * math.sqrt(0.5 * degrees) + tail)
            spread = (total + dimension * padding) ** 2 + (total + padding) ** 2 + (dimension - 1) * padding**2
            return spread / degrees + (0.0 if self.subtract_padding else dimension * padding**2)

        choices = [fewest, *(1 << power for power in range(1, MAX_DEGREES.bit_length()) if 1 << power > fewest)]
        errors = [mean_square_error(degrees) for degrees in choices]
        return next(d for d, error in zip(choices, errors, strict=True) if error <= _TOLERATED_EXCESS * min(errors))

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


@dataclass(frozen=True)
class JohnsonLindenstrauss(PaddedGram):
    """Release (RA′)ᵀ(RA′)/r.

    A′ is the table with w·I appended, and R an r-row matrix of standard normals. That is one draw from Wishart(G + w²I,
    r)/r, so no projection is formed. With ``subtract_padding=False`` the output is always positive definite, and every
    regression on it is a ridge regression on a sketch of the table.

    **Privacy.** (ε, δ)-DP. w² is found by inverting the exact privacy curve of the mechanism, under add-remove or
    replace-one (``docs/evidence/derivations/johnson_lindenstrauss.md``); it is 5 to 12 times smaller than by the
    paper's bound. Normals are drawn in floating point (``idealized``).

    The error depends on the data: its mean square is ((tr Σ)² + ‖Σ‖_F²)/r with Σ = G + w²I, exact for a spectrum that a
    forecast assumes. w² grows like √r. With the padding subtracted, many degrees of freedom are better than few; in the
    limit the error is symmetric Gaussian noise with the same guarantee.

    Parameters
    ----------
    degrees_of_freedom : int, optional
        r, the number of rows of the projection, at least the dimension of the matrix; the adaptive variant may use
        more. Default: the smallest r whose mean square error is within 5 % of the minimum, in the worst case over
        tables with the public number of rows (a million if it is private).
    adaptive : bool
        Algorithm 2 instead of 1: half of the budget finds a lower bound on the table's own smallest eigenvalue. If the
        bound is large enough nothing is padded, and r is as large as the bound allows; otherwise only the difference is
        padded. The diagnostics of the result state the bound, r and w²; the cost covers them.
    subtract_padding : bool
        Subtract w²I again, so that the release is unbiased (and may have negative eigenvalues). False keeps the ridge.
    calibration : {"exact", "paper"}
        ``"paper"``: w² = (4B²/ε)(√(2r ln(4/δ)) + 2 ln(4/δ)), Theorem 3.1.
    smallest_eigenvalue : float, optional
        A lower bound m on the smallest eigenvalue of the matrix drawn around, publicly known without the table, in
        unit-ball units: of Σ x xᵀ, or with count and mean of Σ z zᵀ, z = (w, x), w the plan's ``augmentation``. r is
        then the largest that needs no padding, if that is enough for the matrix; if more is required, only the
        difference to m is padded. **The caller asserts m, and accuracy rests on it; privacy does not**: eigenvalues
        below it are raised, and the bound on the privacy curve holds for every table (it needs 5 to 12 % more than
        padding by the exact curve, more under ``replace_one`` with few degrees of freedom). If m is false the release
        is biased, short directions appear longer, and no diagnostic shows it. Not with ``adaptive``.

    Examples
    --------
    >>> from dpmoments.mechanisms.base import MomentShape
    >>> from dpmoments.privacy.budget import PrivacyBudget
    >>> shape, budget = MomentShape(10, mean=False), PrivacyBudget.approximate(1.0, 1e-6)
    >>> round(JohnsonLindenstrauss(50).plan(shape, budget, "add_remove").padding, 2)
    26.86
    >>> round(JohnsonLindenstrauss(50, calibration="paper").plan(shape, budget, "add_remove").padding, 1)
    277.6
    >>> plan = JohnsonLindenstrauss(50, smallest_eigenvalue=40.0).plan(shape, budget, "add_remove")
    >>> plan.padding, round(plan.raised, 2)
    (0.0, 29.86)
    """

    inverse: ClassVar[bool] = False
    fewest_beyond_dimension: ClassVar[int] = 0
    summary: ClassVar[str] = (
        "random projection of the table with a ridge appended; positive definite before the subtraction"
    )
    source: ClassVar[str] = "Sheffet 2015, Algorithms 1 and 2; exact calibration"


@dataclass(frozen=True)
class InverseWishart(PaddedGram):
    """Release one inverse Wishart draw, times ν − D − 1.

    Its scale matrix is G + ψI, and it has ν degrees of freedom. D is the dimension of the matrix; the factor makes the
    mean G + ψI. With ν = n + ν₀ it is a draw from the posterior of the covariance of normal rows of mean zero under the
    prior Wishart⁻¹(ψI, ν₀).

    **Privacy.** (ε, δ)-DP. The inverse of the draw is a Wishart matrix whose scale is (G + ψI)⁻¹; so it has the privacy
    curve of ``johnson-lindenstrauss`` with ν for r and ψ for w² (``docs/evidence/derivations/inverse_wishart.md``). ν
    must not depend on private data: ``prior_degrees`` therefore needs a public number of rows.

    Parameters
    ----------
    degrees_of_freedom : int, optional
        ν, at least D + 4 (so that the draw has a variance); a minimum with ``adaptive``. Default: as for
        ``johnson-lindenstrauss``.
    adaptive : bool
        Algorithm 5: half of the budget finds a lower bound on the smallest eigenvalue, as in Algorithm 2.
    subtract_padding : bool
        Subtract ψI. False keeps it, and the release positive definite.
    calibration : {"exact", "paper"}
        ``"paper"``: the bound of Theorem 3.1 with ν for r.
    smallest_eigenvalue : float, optional
        As for :class:`JohnsonLindenstrauss`.
    prior_degrees : int, optional
        ν₀: use ν = n + ν₀, the posterior. Under replace-one only.

    Examples
    --------
    >>> shape, budget = MomentShape(10, n_rows=990, mean=False), PrivacyBudget.approximate(1.0, 1e-6)
    >>> plan = InverseWishart(prior_degrees=10).plan(shape, budget, "replace_one")
    >>> plan.degrees, round(plan.padding, 2)
    (1000, 133.66)
    """

    prior_degrees: int | None = None

    inverse: ClassVar[bool] = True
    fewest_beyond_dimension: ClassVar[int] = 4
    summary: ClassVar[str] = "one draw from an inverse-Wishart posterior; positive definite before the subtraction"
    source: ClassVar[str] = "Sheffet 2015, Algorithms 4 and 5; exact calibration"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.prior_degrees is not None and self.degrees_of_freedom is not None:
            raise InputValueError("give degrees_of_freedom or prior_degrees, not both: they set the same number")
        if self.prior_degrees is not None and self.prior_degrees < 0:
            raise InputValueError(f"prior_degrees={shown(self.prior_degrees)} must not be negative")

    @property
    def degrees_are_free(self) -> bool:
        return super().degrees_are_free and self.prior_degrees is None

    def chosen_degrees(
        self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors, dimension: int, unit: float
    ) -> int:
        if self.prior_degrees is None:
            return super().chosen_degrees(shape, budget, neighbors, dimension, unit)
        if not shape.count_is_public(neighbors) or shape.n_rows is None:
            refused = "prior_degrees makes the degrees of freedom depend on the number of rows, which must then be public: use "
            advice = " and a schema none of whose rules drops a row, and state n; or give degrees_of_freedom"
            raise InputValueError(
                f"{refused}neighbors='replace_one'{advice}", shell=f"{refused}--neighbors replace_one{advice}"
            )
        return min(shape.n_rows + self.prior_degrees, MAX_DEGREES)
