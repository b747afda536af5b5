"""Johnson–Lindenstrauss mechanism: a random projection of the table with a ridge appended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from dpmoments.papers.mechanisms.padded_gram import PaddedGram


@dataclass(frozen=True)
class JohnsonLindenstrauss(PaddedGram):
    """Release (RA′)ᵀ(RA′)/r.

    A′ is the table with w·I appended, and R an r-row matrix of standard normals.

    That is one draw from Wishart(G + w²I, r)/r, so no projection is formed. With ``subtract_padding=False`` the output is
    always positive definite, and every regression on it is a ridge regression on a sketch of the table.

    **Privacy.** (ε, δ)-DP. w² is found by inverting the exact privacy curve of the mechanism, under add-remove or replace-one
    (``docs/evidence/derivations/johnson_lindenstrauss.md``); it is 5 to 12 times smaller than by the paper's bound. Normals are
    drawn in floating point (``idealized``).

    The error depends on the data: its mean square is ((tr Σ)² + ‖Σ‖_F²)/r with Σ = G + w²I, exact for a spectrum that a
    forecast assumes. w² grows like √r. With the padding subtracted, many degrees of freedom are better than few; in the limit
    the error is symmetric Gaussian noise with the same guarantee.

    Parameters
    ----------
    degrees_of_freedom : int, optional
        r, the number of rows of the projection, at least the dimension of the matrix; the adaptive variant may use more.
        Default: the smallest r whose mean square error is within 5 % of the minimum, in the worst case over tables with the
        public number of rows (a million if it is private).
    adaptive : bool
        Algorithm 2 instead of 1: half of the budget finds a lower bound on the table's own smallest eigenvalue. If the bound is
        large enough nothing is padded, and r is as large as the bound allows; otherwise only the difference is padded. The
        diagnostics of the result state the bound, r and w²; the cost covers them.
    subtract_padding : bool
        Subtract w²I again, so that the release is unbiased (and may have negative eigenvalues). False keeps the ridge.
    calibration : {"exact", "paper"}
        ``"paper"``: w² = (4B²/ε)(√(2r ln(4/δ)) + 2 ln(4/δ)), Theorem 3.1.
    smallest_eigenvalue : float, optional
        A lower bound m on the smallest eigenvalue of the matrix drawn around, publicly known without the table, in unit-ball
        units: of Σ x xᵀ, or with count and mean of Σ z zᵀ, z = (w, x), w the plan's ``augmentation``. r is then the largest
        that needs no padding, if that is enough for the matrix; if more is required, only the difference to m is padded. **The
        caller asserts m, and accuracy rests on it; privacy does not**: eigenvalues below it are raised, and the bound on the
        privacy curve holds for every table (it needs 5 to 12 % more than padding by the exact curve, more under ``replace_one``
        with few degrees of freedom). If m is false the release is biased, short directions appear longer, and no diagnostic
        shows it. Not with ``adaptive``.

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
