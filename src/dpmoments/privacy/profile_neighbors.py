"""Which neighbouring tables attain the curve of a draw, where some do: then the curve is exact."""

from __future__ import annotations

import math

from dpmoments.privacy.laws import (
    AdditiveWishartDraw,
    DiscreteGaussian,
    DiscreteLaplace,
    GaussianDraw,
    IsotropicDraw,
    MatrixLaplaceDraw,
    WishartSampling,
)
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.receipt import Draw

__all__ = ["worst_neighbors"]

ROUNDING = 1e-6
"""Where rounding rows to the lattice adds more than this share to a sensitivity, no two tables are claimed to attain it."""
WHOLE_LENGTH = {"count", "count_l1", "gram_frobenius", "gram_nuclear"}
"""Sensitivities that some two neighbours attain: ``tests/test_sensitivity.py`` has them."""


def worst_neighbors(draw: Draw) -> str | None:
    """Two neighbouring tables between which a draw has all the loss that its law and sensitivity allow, in words.

    None where none are known. They are of encoded rows, which may be any of the unit ball: a schema of few levels may have no
    such rows, and then the true δ of its tables is smaller.
    """
    law, sensitivity = draw.law, draw.sensitivity
    adds = sensitivity.neighbors is Neighbors.ADD_REMOVE
    if sensitivity.rounding > ROUNDING * sensitivity.value:
        return None
    if isinstance(law, DiscreteGaussian | GaussianDraw):
        # Off the diagonal no more noise than the Frobenius norm asks for, or no such cells.
        full = draw.size == 1 or (isinstance(law, GaussianDraw) and law.symmetric)
        if isinstance(law, DiscreteGaussian) and law.off_diagonal_scale is not None:
            full = draw.size == 1 or law.off_diagonal_scale <= law.scale * math.sqrt(0.5) * (1.0 + ROUNDING)
        found = full and sensitivity.name in WHOLE_LENGTH
    elif isinstance(law, DiscreteLaplace | MatrixLaplaceDraw | IsotropicDraw):
        found = draw.size == 1 and sensitivity.name in WHOLE_LENGTH
    elif isinstance(law, WishartSampling):
        found = law.floor == 0.0 and (adds or draw.size > 1)
    else:
        found = isinstance(law, AdditiveWishartDraw) and (adds or draw.size > 1)
    if not found:
        return None
    if adds:
        rest = ", no other row beside it" if isinstance(law, WishartSampling) else ""
        return f"a table with and without one row of the largest norm{rest}"
    if draw.size == 1:
        return "tables that differ in one row, of norm 0 or the largest"
    rest = ", no other row beside it" if isinstance(law, WishartSampling) else ""
    return f"tables that differ in one row, of the largest norm and as far from the other as can be{rest}"
