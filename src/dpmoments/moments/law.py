"""Noise on released moments: a sum of independent terms that answers linear functionals.

To first order, every analysis is a linear functional of Σ z zᵀ, z = (1, x − center). Its gradient is a symmetric matrix of
weights on a few indices: 0 for the constant, f + 1 for feature f. The noise distribution computes the variances of such
functionals. It is never stored: a file holds a noise model, which makes it from what was released.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Literal

import numpy as np
import numpy.typing as npt

from dpmoments.base.checks import check_probability
from dpmoments.base.errors import InputValueError
from dpmoments.base.values import FloatArray, IntegerArray
from dpmoments.moments.cells import CellFamily, GaussianCells, sum_quantile
from dpmoments.moments.terms import NoiseTerm, ScaleTerm

# Error of rounding rows to the lattice, as noise that covers it.

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


Indices = npt.ArrayLike


@dataclass(frozen=True, eq=False)
class NoiseLaw:
    """Noise N on Σ z zᵀ, z = (1, x − center), of mean 0: a sum of independent terms.

    Attributes
    ----------
    terms : tuple of NoiseTerm or ScaleTerm
        At least one, all of one size.
    caveats : tuple of str
        Codes of conditions, sorted; empty for none.
    rounding : Rounding or None
        Covers the error of rounding rows to the lattice, in variances, covariances and bounds; not in quantiles and energies.
    drawn_part : NoiseLaw or None
        Noise that was drawn, if the terms also cover what clipping hides; else None.

    Raises
    ------
    ValueError
        Without terms, or if two differ in size.

    Examples
    --------
    Noise on the count, the sums and the Gram matrix of two features:

    >>> noise = NoiseLaw.additive(GaussianCells(), 2, diagonal=2.0, off_diagonal=1.0, of_sum=1.0, of_count=1.0)
    >>> pooled = noise + noise.carried(np.array([[1.0, 0.0, 0.0], [0.5, 1.0, 0.0], [0.0, 0.0, 1.0]]))
    >>> pooled.count_variance, pooled.cell_variances().round(3).tolist()
    (2.0, [[2.0, 2.25, 2.0], [2.25, 5.062, 2.25], [2.0, 2.25, 4.0]])
    """

    terms: tuple[NoiseTerm | ScaleTerm, ...]
    caveats: tuple[str, ...] = ()
    rounding: Rounding | None = None
    drawn_part: NoiseLaw | None = None

    def __post_init__(self) -> None:
        if not self.terms:
            raise InputValueError("terms of the noise model must be a list of at least one")
        if len({term.size for term in self.terms}) > 1:
            raise InputValueError(f"the terms of noise have sizes {[term.size for term in self.terms]}: use one size")

    @classmethod
    def additive(
        cls,
        family: CellFamily,
        n_features: int,
        *,
        diagonal: float,
        off_diagonal: float,
        of_sum: float | FloatArray,
        of_count: float,
    ) -> NoiseLaw:
        """Return noise that is added entry by entry; ``of_sum`` may hold one variance per feature."""
        cells = np.full((n_features + 1, n_features + 1), off_diagonal)
        np.fill_diagonal(cells, diagonal)
        cells[0, 1:] = cells[1:, 0] = of_sum
        cells[0, 0] = of_count
        return cls((NoiseTerm(family, cells),))

    @property
    def drawn(self) -> NoiseLaw:
        """Noise that was drawn, without what clipping hides: moments are repaired by it."""
        return self if self.drawn_part is None else self.drawn_part

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return self.terms[0].size - 1

    @property
    def _parts(self) -> tuple[NoiseTerm | ScaleTerm | Rounding, ...]:
        return self.terms if self.rounding is None else (*self.terms, self.rounding)

    # Linear functionals -----------------------------------------------------------------------------------------------------

    def variance(self, indices: Indices | None, weights: FloatArray) -> FloatArray:
        """Return the variances of linear functionals Σ A_ij N_ij, shape (P,).

        Parameters
        ----------
        indices : integer array of shape (P, m) or (m,), or None
            Indices of each functional: 0 for the constant, f + 1 for feature f. One row serves all. None: everything, in order.
        weights : ndarray of shape (P, m, m)
            A, symmetric.
        """
        at = self._indices(indices)
        if at.ndim == 1:
            at = np.broadcast_to(at, (len(weights), len(at)))
        # about the public center some functionals have no noise, and rounding makes that of either sign
        return np.asarray(np.maximum(sum(part.variance(at, weights) for part in self._parts), 0.0))

    def variance_of_squares(self, vectors: FloatArray, subtracted: FloatArray) -> FloatArray:
        """Return Var(aᵀN a − Σ sᵢ Nᵢᵢ) of P vectors a and s, each (P, d + 1), shape (P,)."""
        return np.asarray(sum(part.variance_of_squares(vectors, subtracted) for part in self._parts))

    def covariance(self, indices: Indices | None, weights: FloatArray) -> FloatArray:
        """Return the covariance, shape (P, P), of functionals with weights (P, m, m).

        All have the same m indices.
        """
        at = self._indices(indices)
        return np.asarray(sum(part.covariance(at, weights) for part in self._parts))

    def covariance_of_product(
        self, vector: FloatArray, chosen: Sequence[int] | IntegerArray | None = None
    ) -> FloatArray:
        """Return Cov(N b), b of shape (d + 1,), or its block of ``chosen`` entries.

        Entry 0 is the constant.
        """
        return np.asarray(sum(part.covariance_of_product(vector, chosen) for part in self._parts))

    def mixed_derivative(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return ∂(Cov(N b) u)/∂b for u = ``left`` and b = ``right``, shape (d + 1, d + 1)."""
        return np.asarray(sum(part.mixed_derivative(left, right) for part in self._parts))

    def variance_of_square(self, vector: FloatArray) -> float:
        """Return Var(bᵀN b).

        For a b of length 1, half of it is the variance of an entry off the diagonal.
        """
        used = np.flatnonzero(vector)
        return float(vector[used] @ self.covariance_of_product(vector, used) @ vector[used])

    def cell_variances(self, indices: Indices | None = None) -> FloatArray:
        """Return variances of the entries of N, or of a block of it."""
        at = self._indices(indices)
        return np.asarray(sum(part.cell_variances(at) for part in self._parts))

    @cached_property
    def count_variance(self) -> float:
        """Noise variance of the number of rows; 0 for none."""
        return max(float(self.cell_variances([0])[0, 0]), 0.0)

    @cached_property
    def sum_variances(self) -> FloatArray:
        """Noise variances of the sum of rows, shape (d,)."""
        start = np.zeros(self.n_features + 1)
        start[0] = 1.0
        return np.diag(self.covariance_of_product(start))[1:]

    @cached_property
    def energy(self) -> float:
        """E‖N‖_F² of the noise on the Gram matrix."""
        return math.fsum(self._energies)

    @cached_property
    def _energies(self) -> list[float]:
        return [term.energy(self._features) for term in self.terms]

    @cached_property
    def trace_variance(self) -> float:
        """Variance of the trace of the noise on the Gram matrix."""
        return math.fsum(term.trace_variance(self._features) for term in self.terms)

    # The distribution of a cell ---------------------------------------------------------------------------------------------

    def quantile(self, level: float, *, of: Literal["cell", "diagonal", "count"]) -> float:
        """Return the ``level`` quantile of the noise on one entry, in its standard deviations.

        Parameters
        ----------
        level : float
            Between 0 and 1.
        of : {"cell", "diagonal", "count"}
            An entry of the Gram matrix off the diagonal, one on it, or the number of rows.

        Returns
        -------
        float
            Exact for one term, and for the count; for a sum of terms that differ from entry to entry, that of their mean
            shares.
        """
        check_probability("level", level)
        if of == "count":
            deviations = [math.sqrt(float(term.cell_variances(np.array([0]))[0, 0])) for term in self.terms]
        else:
            deviations = self._deviations[of == "diagonal"]
        if not any(deviations):
            return GaussianCells().quantile(level, diagonal=True)
        parts = zip(self.terms, deviations, strict=True)
        return sum_quantile(level, tuple((term.family, deviation, of != "cell") for term, deviation in parts))

    @cached_property
    def _deviations(self) -> tuple[list[float], list[float]]:
        """SDs of a mean entry off the diagonal and on it, term by term."""
        d = self.n_features
        pairs = np.arange(1, d + 1)[:, None]
        on = [float(term.variance(pairs, np.ones((d, 1, 1))).sum()) for term in self.terms]
        off = [max(energy - square, 0.0) for energy, square in zip(self._energies, on, strict=True)]
        diagonal = [math.sqrt(square / d) for square in on]
        return ([math.sqrt(square / (d * (d - 1))) for square in off] if d > 1 else diagonal), diagonal

    @cached_property
    def spectral_skews(self) -> tuple[float, float]:
        """κ₊ and κ₋ of the noise on a large Gram matrix: of the terms, by their share of its energy."""
        d = self.n_features
        energies = self._energies
        total = math.fsum(energies)
        if total == 0.0:
            return 0.0, 0.0
        result = [
            term.family.skews(d, 2.0 * energy / (d * (d + 1)))
            for term, energy in zip(self.terms, energies, strict=True)
        ]
        upper, lower = (
            math.fsum(e * skew[side] for e, skew in zip(energies, result, strict=True)) / total for side in (0, 1)
        )
        return upper, lower

    # Bounds -----------------------------------------------------------------------------------------------------------------

    def gram_bound(self, failure: float, indices: Indices | None = None) -> float:
        """Bound the spectral norm of the noise on the Gram matrix.

        It fails with probability ≤ ``failure``.

        ``indices`` is a block, chosen without looking at the noise; default: all features.
        """
        at = self._features if indices is None else np.asarray(indices)
        terms = [term for term in self.terms if term.energy(at) > 0.0]
        share = self._share(failure, len(terms))
        rounding = 0.0 if self.rounding is None else self.rounding.gram_bound(at)
        return math.fsum(term.gram_bound(share, at) for term in terms) + rounding

    def sum_bound(self, failure: float, indices: Indices | None = None) -> float:
        """Bound the length of the noise on the sum of rows, or on some entries of it.

        Feature f has entry f + 1.
        """
        at, start = self._features if indices is None else np.asarray(indices), np.zeros(self.n_features + 1)
        start[0] = 1.0
        terms = [term for term in self.terms if term.covariance_of_product(start, at).any()]
        share = self._share(failure, len(terms))
        rounding = 0.0 if self.rounding is None else self.rounding.sum_bound(at)
        return math.fsum(term.sum_bound(share, at) for term in terms) + rounding

    def count_bound(self, failure: float) -> float:
        """Bound the absolute noise on the count; 0 for none."""
        check_probability("failure", failure)
        if self.count_variance == 0.0:
            return 0.0
        reach = -self.quantile(failure / 2.0, of="count")
        if any(term.family.skewed for term in self.terms):
            reach = max(reach, self.quantile(1.0 - failure / 2.0, of="count"))
        return math.sqrt(self.count_variance) * reach

    def _share(self, failure: float, n_terms: int) -> float:
        check_probability("failure", failure)
        return failure / max(n_terms, 1)

    # Other distributions ---------------------------------------------------------------------------------------------------

    def carried(self, matrix: FloatArray) -> NoiseLaw:
        """Return the noise T N Tᵀ, T of shape (k, d + 1).

        Another center, other units, another ball, combined features.
        """
        if matrix.shape[1:] != (self.n_features + 1,) or not np.isfinite(matrix).all():
            raise InputValueError(
                f"a matrix of shape {matrix.shape} does not carry this noise: give finite numbers in "
                f"{self.n_features + 1} columns"
            )
        rounding = None if self.rounding is None else self.rounding.carried(matrix)
        drawn = None if self.drawn_part is None else self.drawn_part.carried(matrix)
        terms = tuple(term.carried(matrix) for term in self.terms)
        return replace(self, terms=terms, rounding=rounding, drawn_part=drawn)

    def about(self, shift: FloatArray) -> NoiseLaw:
        """Return the noise for moments of x + shift: about another center."""
        matrix = np.eye(self.n_features + 1)
        matrix[1:, 0] = shift
        return self.carried(matrix)

    def restricted(self, features: Sequence[int]) -> NoiseLaw:
        """Return the noise of some features."""
        return self.carried(np.eye(self.n_features + 1)[[0, *(feature + 1 for feature in features)]])

    def __add__(self, other: NoiseLaw) -> NoiseLaw:
        """Return the sum of independent noise."""
        rounding = (
            self.rounding + other.rounding if self.rounding and other.rounding else self.rounding or other.rounding
        )
        caveats = tuple(sorted({*self.caveats, *other.caveats}))
        drawn = self.drawn + other.drawn if self.drawn_part or other.drawn_part else None
        terms = [*self.terms, *other.terms]
        plain = [
            term
            for term in terms
            if isinstance(term, NoiseTerm)
            and isinstance(term.family, GaussianCells)
            and term.matrix is None
            and term.exact is None
        ]
        if len(plain) > 1:  # normal terms without a matrix become one: their variances add up
            rest = [term for term in terms if all(term is not one for one in plain)]
            terms = [NoiseTerm(plain[0].family, np.asarray(sum(term.variances for term in plain))), *rest]
        return NoiseLaw(tuple(terms), caveats, rounding, drawn)

    @property
    def _features(self) -> IntegerArray:
        return np.arange(1, self.n_features + 1)

    def _indices(self, indices: Indices | None) -> IntegerArray:
        return np.arange(self.n_features + 1) if indices is None else np.asarray(indices, dtype=np.int64)
