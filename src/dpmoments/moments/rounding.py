"""Error of rounding rows to the lattice, as noise that covers it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.base.arrays import FloatArray, IntegerArray

COVER = 1.5
"""SD that covers an error of at most 1.

Intervals of 50 % and more keep their level, with any noise added.
"""


# Share of the noise variance (3 % of the SD) up to which errors are left out. Coverage of 95 % falls by less than 10⁻⁴.
_NEGLIGIBLE = 1e-3


def with_rounding(deviations: FloatArray | float, errors: FloatArray | float) -> Any:
    """Return SDs of noise, and of errors of at most these sizes."""
    noise, squares = np.square(deviations), np.square(COVER * np.asarray(errors))
    return np.where(squares <= _NEGLIGIBLE * noise, deviations, np.sqrt(noise + squares))


@dataclass(frozen=True, eq=False)
class Rounding:
    """Noise N = S + Sᵀ, S = √E Ω √G with independent standard normal Ω.

    If rows z = (1, x) are off by at most h_f in feature f, a linear functional Σ A_ij N_ij of Σ z zᵀ is off by at most
    2 Σ |eᵀAz| ≤ 2(n Σh Σ h_f (AGA)_ff)^½, the root of 4 tr(A E A G) for E = n (Σh) diag(h) and G = Σ z zᵀ. That is the
    variance of the noise, for all functionals at once (``docs/evidence/derivations/exact-sums.md``, section 9).
    """

    errors: FloatArray  # (d + 1, d + 1): E, 0 for the constant
    rows: FloatArray  # (d + 1, d + 1): G as released, made positive semi-definite

    @classmethod
    def of(cls, steps: FloatArray, moments: FloatArray) -> Rounding:
        """Return the noise for errors of a row of at most ``steps``, shape (d,), and noisy moments."""
        bound = np.append(0.0, steps) * COVER**2 * steps.sum() * moments[0, 0]
        eigenvalues, vectors = np.linalg.eigh(moments)
        return cls(np.diag(bound), (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T)

    def __add__(self, other: Rounding) -> Rounding:
        """Return the noise for errors that may have one sign in both parts of a table."""
        return Rounding(self.errors + other.errors, self.rows + other.rows)

    def carried(self, matrix: FloatArray) -> Rounding:
        """Return the noise T N Tᵀ."""
        return Rounding(matrix @ self.errors @ matrix.T, matrix @ self.rows @ matrix.T)

    def is_negligible(self, cells: FloatArray) -> bool:
        """Return True if noise of these variances hides it."""
        with np.errstate(over="ignore"):  # numbers of a hostile file
            own = self.cell_variances(np.arange(len(cells)))
        return bool((own <= _NEGLIGIBLE * cells)[cells > 0.0].all())

    # Each of these is the method of a term of the noise (``NoiseTerm``).

    def variance(self, indices: IntegerArray, weights: FloatArray) -> FloatArray:
        """Return Var(Σ A_ij N_ij) of P functionals, shape (P,)."""
        block = indices[:, :, None], indices[:, None, :]
        return np.asarray(4.0 * np.einsum("pij,pji->p", weights @ self.errors[block], weights @ self.rows[block]))

    def variance_of_squares(self, vectors: FloatArray, subtracted: FloatArray) -> FloatArray:
        """Return Var(aᵀN a − Σ s_f N_ff) of P vectors a and s, shape (P,)."""
        of_errors, of_rows = vectors @ self.errors, vectors @ self.rows
        alone = np.einsum("pi,pi->p", of_errors, vectors) * np.einsum("pi,pi->p", of_rows, vectors)
        both = np.einsum("pi,pi,pi->p", subtracted, of_errors, of_rows)
        of_less = np.einsum("pi,pi->p", subtracted @ (self.errors * self.rows), subtracted)
        return np.asarray(np.maximum(4.0 * (alone - 2.0 * both + of_less), 0.0))

    def covariance(self, indices: IntegerArray, weights: FloatArray) -> FloatArray:
        """Return the covariance of P functionals on the same indices, shape (P, P)."""
        block = np.ix_(indices, indices)
        image = self.rows[block] @ weights @ self.errors[block]
        return np.asarray(4.0 * image.reshape(len(weights), -1) @ weights.reshape(len(weights), -1).T)

    def covariance_of_product(self, vector: FloatArray, chosen: npt.ArrayLike | None = None) -> FloatArray:
        """Return Cov(N b), or its block of some entries."""
        at = np.arange(len(vector)) if chosen is None else np.asarray(chosen)
        of_errors, of_rows, block = self.errors @ vector, self.rows @ vector, np.ix_(at, at)
        cross = np.outer(of_errors[at], of_rows[at])
        own = float(of_rows @ vector) * self.errors[block] + float(of_errors @ vector) * self.rows[block]
        return np.asarray(own + cross + cross.T)

    def mixed_derivative(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return ∂(Cov(N b) u)/∂b for u = ``left`` and b = ``right``."""
        e, g, e_of_left, g_of_left = self.errors, self.rows, self.errors @ left, self.rows @ left
        first = 2.0 * np.outer(e_of_left, g @ right) + np.outer(e @ right, g_of_left) + float(g_of_left @ right) * e
        second = 2.0 * np.outer(g_of_left, e @ right) + np.outer(g @ right, e_of_left) + float(e_of_left @ right) * g
        return np.asarray(first + second)

    def cell_variances(self, indices: IntegerArray) -> FloatArray:
        """Return variances of the cells of N of some indices, shape (k, k)."""
        block = np.ix_(indices, indices)
        own = np.outer(np.diag(self.errors)[indices], np.diag(self.rows)[indices])
        return np.asarray(own + own.T + 2.0 * self.errors[block] * self.rows[block])

    def gram_bound(self, indices: IntegerArray) -> float:
        """Bound the spectral norm of the error in a block of the Gram matrix."""
        block = np.ix_(indices, indices)
        return float(2.0 * np.sqrt(np.linalg.norm(self.errors[block], 2) * np.linalg.norm(self.rows[block], 2)))

    def sum_bound(self, indices: IntegerArray) -> float:
        """Bound the length of the error in some entries of the sum of rows."""
        return float(np.sqrt(self.rows[0, 0] * np.diag(self.errors)[indices].sum()))
