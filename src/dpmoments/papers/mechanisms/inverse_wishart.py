"""Inverse-Wishart mechanism.

One draw from the posterior of a covariance under a conjugate prior.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.values import shown
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.messages.message import Message
from dpmoments.papers.mechanisms.padded_gram import MAX_DEGREES, PaddedGram
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors


@dataclass(frozen=True)
class InverseWishart(PaddedGram):
    """Release one inverse Wishart draw, times ν − D − 1.

    Its scale matrix is G + ψI, and it has ν degrees of freedom.

    D is the dimension of the matrix; the factor makes the mean G + ψI. With ν = n + ν₀ it is a draw from the posterior of the
    covariance of normal rows of mean zero under the prior Wishart⁻¹(ψI, ν₀).

    **Privacy.** (ε, δ)-DP. The inverse of the draw is a Wishart matrix whose scale is (G + ψI)⁻¹; so the privacy curve is that
    of ``johnson-lindenstrauss`` with ν for r and ψ for w² (``docs/evidence/derivations/inverse_wishart.md``). ν must not depend
    on private data: ``prior_degrees`` therefore needs a public number of rows.

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
        A lower bound m on the smallest eigenvalue of the matrix drawn around, publicly known without the table, in unit-ball
        units: of Σ x xᵀ, or with count and mean of Σ z zᵀ, z = (w, x), w the plan's ``augmentation``. ν is then the largest
        that needs no padding, if that is enough for the matrix; if more is required, only the difference to m is padded. **The
        caller asserts m, and accuracy rests on it; privacy does not**: eigenvalues below it are raised, and the bound on the
        privacy curve holds for every table (it needs 5 to 12 % more than padding by the exact curve, more under ``replace_one``
        with few degrees of freedom). If m is false the release is biased, short directions appear longer, and no diagnostic
        shows it. Not with ``adaptive``.
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
            raise InputValueError(Message("prior-needs-public-rows"))
        return min(shape.n_rows + self.prior_degrees, MAX_DEGREES)
