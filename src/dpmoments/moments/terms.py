"""Terms of the noise on released moments: carried cells, and columns of unknown scale."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, ClassVar, NamedTuple

import numpy as np
import scipy

from dpmoments.base.checks import check_finite
from dpmoments.base.errors import InputValueError
from dpmoments.base.values import FloatArray, IntegerArray
from dpmoments.moments.cells import CellFamily, GaussianCells

# Max columns of R, besides the first, in a row of a local R. A shifted, scaled feature or a contrast of two.
_MAX_LOCAL = 2
_MAX_BLOCKS = 4
_MAX_ENTRIES = 2**22
"""Max size of a temporary array of the dense path."""
# Max indices of a functional whose weights are split into pairs of vectors. Beyond it RᵀAR is made.
_MAX_PAIRED = 4
# Max indices of a functional whose cells are summed one after another. More take a temporary array.
_MAX_UNROLLED = 5
_ROUNDING = 1e-13
"""Relative size below which a difference of variances is rounding, and 0."""


class _Local(NamedTuple):
    """R by rows: the first column and a few others; column −1 and value 0 stand for none."""

    first: FloatArray  # (n,)
    columns: IntegerArray  # (n, q)
    values: FloatArray  # (n, q)


class _Blocks(NamedTuple):
    """C with equal variances in blocks.

    2 Σ_kl strength_kl tr(A S_k A S_l) = Var tr(A N), S_k = R_k R_kᵀ.
    """

    strengths: FloatArray  # (K, K)
    grams: FloatArray  # (K, n, n)


@dataclass(frozen=True, eq=False)
class NoiseTerm:
    """Noise N = R C Rᵀ, C symmetric of mean 0 with uncorrelated cells on and above its diagonal.

    Attributes
    ----------
    variances : ndarray of shape (m, m)
        Variances of the cells of C; symmetric.
    matrix : ndarray of shape (n, m) or None
        R; None for the identity.
    exact : tuple of two ndarrays, shapes (n,) and (m,), or None
        u and r: N is R C Rᵀ − (rᵀC r) u uᵀ. For a number of rows that is known although the draw had noise on it.

    Examples
    --------
    >>> term = NoiseTerm(GaussianCells(), np.array([[0.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, 2.0]]))
    >>> term.covariance_of_product(np.array([1.0, 0.0, 2.0]), [1, 2]).tolist()
    [[5.0, 0.0], [0.0, 9.0]]
    """

    family: CellFamily
    variances: FloatArray
    matrix: FloatArray | None = None
    exact: tuple[FloatArray, FloatArray] | None = None

    def __post_init__(self) -> None:
        m = len(self.variances)
        if self.variances.shape != (m, m) or (self.matrix is not None and self.matrix.shape[1:] != (m,)):
            shape = () if self.matrix is None else self.matrix.shape
            raise InputValueError(
                f"variances has shape {self.variances.shape} and matrix {shape}, which do not fit each other"
            )
        for array in (self.variances, *([] if self.matrix is None else [self.matrix]), *(self.exact or ())):
            check_finite("noise", array)
        if (self.variances < 0.0).any() or not (self.variances == self.variances.T).all():
            raise InputValueError("variances of the noise model must be symmetric, finite and not negative")
        assert self.exact is None or (self.exact[0].shape, self.exact[1].shape) == ((self.size,), (m,))

    @property
    def size(self) -> int:
        """n, rows and columns of N."""
        return len(self.variances) if self.matrix is None else len(self.matrix)

    # Construction of R and C --------------------------------------------------------------------------------------

    @cached_property
    def _local(self) -> _Local | None:
        if self.exact is not None or self.matrix is None:
            return None
        used = self.matrix[:, 1:] != 0.0
        width = int(used.sum(axis=1).max(initial=0))
        if width > _MAX_LOCAL:
            return None
        order = used.argmax(axis=1)[:, None] if width == 1 else np.argsort(~used, axis=1, kind="stable")[:, :width]
        values = np.take_along_axis(self.matrix[:, 1:], order, axis=1)
        return _Local(self.matrix[:, 0], np.where(values != 0.0, order + 1, -1), values)

    @cached_property
    def _rows(self) -> FloatArray:
        """R, and below it r if something is known: a further index n, for the weight −uᵀAu."""
        matrix = np.eye(self.size) if self.matrix is None else self.matrix
        return matrix if self.exact is None else np.vstack([matrix, self.exact[1]])

    @cached_property
    def _blocks(self) -> _Blocks | None:
        halved = self.variances.copy()
        halved[np.diag_indices(len(halved))] /= 2.0
        scale = float(halved.max(initial=0.0))
        alike = np.round(halved / scale, 12) if scale > 0.0 else halved
        _, first, block = np.unique(alike, axis=0, return_index=True, return_inverse=True)
        block = block.ravel()
        if len(first) > _MAX_BLOCKS:
            return None
        members = [self._rows[:, block == k] for k in range(len(first))]
        return _Blocks(halved[np.ix_(first, first)], np.array([part @ part.T for part in members]))

    def _with_known(self, indices: IntegerArray, weights: FloatArray) -> tuple[IntegerArray, FloatArray]:
        """Return indices (…, m) and weights (P, m, m), with one for what is known, if anything is."""
        if self.exact is None:
            return indices, weights
        u = self.exact[0][indices]
        corner = -np.einsum("...ij,...i,...j->...", weights, u, u)
        extended = np.zeros((len(weights), weights.shape[1] + 1, weights.shape[2] + 1))
        extended[:, :-1, :-1], extended[:, -1, -1] = weights, corner
        return np.concatenate([indices, np.full((*indices.shape[:-1], 1), self.size)], axis=-1), extended

    # Linear functionals of one term ---------------------------------------------------------------------------------------

    def variance(self, indices: IntegerArray, weights: FloatArray) -> FloatArray:
        """Return Var(Σ A_ij N_ij) of P functionals, shape (P,), each on m indices.

        (P, m) and (P, m, m).
        """
        indices, weights = self._with_known(indices, weights)
        if self.exact is None and self.matrix is None:
            return _of_cells(self.variances, indices, weights)
        if self._local is not None:
            return _of_cells(self.variances, *_spread(self._local, indices, weights))
        step = max(1, _MAX_ENTRIES // (indices.shape[1] * max(indices.shape[1], self._rows.shape[1])))
        result = np.empty(len(weights))
        for start in range(0, len(weights), step):
            part = slice(start, start + step)
            result[part] = self._of_part(indices[part], weights[part])
        return result

    def _of_part(self, indices: IntegerArray, weights: FloatArray) -> FloatArray:
        if self._blocks is not None:
            strengths, grams = self._blocks
            products = [weights @ gram[indices[:, :, None], indices[:, None, :]] for gram in grams]
            result = np.zeros(len(weights))
            for k, j in zip(*np.nonzero(strengths), strict=True):
                result += 2.0 * strengths[k, j] * np.einsum("pij,pji->p", products[k], products[j])
            return result
        if weights.shape[1] > _MAX_PAIRED:
            result = np.empty(len(weights))
            for index, (at, weight) in enumerate(zip(indices, weights, strict=True)):
                rows = self._rows[at]
                cells = (rows.T @ weight @ rows) ** 2 * self.variances
                result[index] = 2.0 * cells.sum() - np.trace(cells)
            return result
        # A = Σ λ_r w_r w_rᵀ, y_r = Rᵀ w_r: (RᵀAR)_ij² = Σ_rs λ_r λ_s q_i q_j, q = y_r ∘ y_s
        values, vectors = np.linalg.eigh(weights)
        images = np.einsum("pir,pim->rpm", vectors, self._rows[indices])
        result, diagonal = np.zeros(len(weights)), np.zeros(images.shape[1:])
        for r, first in enumerate(images):
            diagonal += values[:, r, None] * first**2
            for s, second in enumerate(images[: r + 1]):
                both = first * second
                twice = (2.0 if r == s else 4.0) * values[:, r] * values[:, s]
                result += twice * np.einsum("pm,pm->p", both @ self.variances, both)
        return np.asarray(result - diagonal**2 @ np.diag(self.variances))

    @cached_property
    def _own_cells(self) -> tuple[Any, IntegerArray, IntegerArray] | None:
        """S, i and j: N_ff is Σ S_fc C_{i_c j_c}, S sparse; None if rows of R have many entries."""
        n, m = self.size, len(self.variances)
        if self.exact is not None or (self.matrix is not None and self._local is None):
            return None
        columns, values = np.arange(n)[:, None], np.ones((n, 1))
        if self._local is not None:
            used = self._local.columns >= 0
            columns = np.column_stack([np.zeros(n, dtype=int), np.where(used, self._local.columns, 0)])
            values = np.column_stack([self._local.first, self._local.values])
        first, second = np.triu_indices(columns.shape[1])
        twice = np.where(first == second, 1.0, 2.0)
        cells = columns[:, first] * m + columns[:, second]
        found, position = np.unique(cells, return_inverse=True)
        entries = (values[:, first] * values[:, second] * twice).ravel()
        rows = np.repeat(np.arange(n), len(first))
        shape = (n, len(found))
        return scipy.sparse.csr_array((entries, (rows, position.ravel())), shape=shape), found // m, found % m

    def variance_of_squares(self, vectors: FloatArray, subtracted: FloatArray) -> FloatArray:
        """Return Var(aᵀN a − Σ s_f N_ff) of P vectors a and s, each (P, n), shape (P,)."""
        if self._own_cells is None:
            result, step = np.empty(len(vectors)), max(1, _MAX_ENTRIES // self.size**2)
            every = np.arange(self.size)
            for start in range(0, len(vectors), step):
                part = slice(start, start + step)
                weights = vectors[part, :, None] * vectors[part, None, :]
                weights[:, every, every] -= subtracted[part]
                result[part] = self.variance(np.broadcast_to(every, (len(weights), self.size)), weights)
            return np.maximum(result, 0.0)  # differences of large numbers may be below 0 by rounding
        cells, first, second = self._own_cells
        images = vectors if self.matrix is None else vectors @ self.matrix
        squares = images**2
        alone = 2.0 * np.einsum("pi,pi->p", squares @ self.variances, squares) - squares**2 @ np.diag(self.variances)
        less = np.asarray((cells.T @ subtracted.T).T)
        of_cells = self.variances[first, second]
        twice = np.where(first == second, 1.0, 2.0)
        both = (less * images[:, first] * images[:, second]) @ (of_cells * twice)
        of_less = less**2 @ of_cells
        result = alone - 2.0 * both + of_less
        return np.asarray(np.where(result > _ROUNDING * (alone + of_less), result, 0.0))

    def covariance(self, indices: IntegerArray, weights: FloatArray) -> FloatArray:
        """Return the covariance of P functionals on the same m indices, shape (P, P).

        (m,) and (P, m, m).
        """
        indices, weights = self._with_known(indices, weights)
        if self.matrix is None and self.exact is None:
            used = indices
        else:
            rows = self._rows[indices]
            used = np.flatnonzero(rows.any(axis=0))
            if len(used) > 4 * len(indices) and self._blocks is not None:
                strengths, grams = self._blocks
                products = [(weights @ gram[np.ix_(indices, indices)]).reshape(len(weights), -1) for gram in grams]
                turned = [np.swapaxes(p.reshape(weights.shape), 1, 2).reshape(len(weights), -1) for p in products]
                pairs = zip(*np.nonzero(strengths), strict=True)
                return np.asarray(sum(2.0 * strengths[k, j] * products[k] @ turned[j].T for k, j in pairs))
            rows = rows[:, used]
            weights = rows.T @ weights @ rows
        upper = np.triu_indices(len(used))
        deviations = np.sqrt(self.variances[used[upper[0]], used[upper[1]]])
        cells = weights[:, upper[0], upper[1]] * deviations * np.where(upper[0] == upper[1], 1.0, 2.0)
        return np.asarray(cells @ cells.T)

    def covariance_of_product(
        self, vector: FloatArray, chosen: Sequence[int] | IntegerArray | None = None
    ) -> FloatArray:
        """Return Cov(N b), or its block of some entries."""
        indices = np.arange(self.size) if chosen is None else np.asarray(chosen)
        if self.matrix is None and self.exact is None:
            return _of_products(self.variances, vector, vector, indices)
        rows = self._rows[: self.size]
        used = np.flatnonzero(rows[indices].any(axis=0))
        image, rows = rows.T @ vector, rows[indices]
        result = _conjugated(rows[:, used], _of_products(self.variances, image, image, used))
        if self.exact is not None:
            # − u (uᵀb) rᵀC r
            u, r = self.exact
            every = np.arange(len(r))
            of_known = rows @ _of_products(self.variances, image, r, every) @ r * float(u @ vector)
            square = float(r @ _of_products(self.variances, r, r, every) @ r) * float(u @ vector) ** 2
            shared = np.outer(of_known, u[indices])
            result = result - shared - shared.T + square * np.outer(u[indices], u[indices])
        return np.asarray(result)

    def mixed_derivative(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return ∂(Cov(N b) u)/∂b for u = ``left`` and b = ``right``, shape (n, n)."""
        rows = self._rows[: self.size]
        y, x = (left, right) if self.matrix is None else (rows.T @ left, rows.T @ right)
        cells, squares = self.variances, np.diag(self.variances)
        result = np.column_stack([2.0 * y, x]) @ np.vstack([x, y])
        result *= cells
        result[np.diag_indices(len(cells))] += cells @ (x * y) - 2.0 * squares * x * y
        result = result if self.matrix is None else _conjugated(rows, result)
        if self.exact is not None:
            # Var(uᵀN b) with the known part: − 2 s yᵀHx + s² rᵀHr, s = (wᵀu)(wᵀb), H the covariances with rᵀC r
            w, r = self.exact
            shared = cells * np.outer(r, r) * 2.0
            shared[np.diag_indices(len(cells))] /= 2.0
            of_left, of_right = float(w @ left), float(w @ right)
            both, known = float(y @ shared @ x), float(r @ shared @ r)
            result = result - np.outer(w, w) * (both - 2.0 * of_left * of_right * known)
            result = result - of_right * np.outer(w, rows @ (shared @ y)) - of_left * np.outer(rows @ (shared @ x), w)
            result = result - of_left * of_right * (rows @ shared @ rows.T)
        return np.asarray(result)

    def cell_variances(self, indices: IntegerArray) -> FloatArray:
        """Return variances of the cells of N of some indices, shape (k, k)."""
        if self.matrix is None and self.exact is None:
            return np.asarray(self.variances[np.ix_(indices, indices)])
        k = len(indices)
        if self.exact is None and self._local is None and k > _MAX_BLOCKS:
            # Var N_ij = Σ_kl V_kl (R_ik² R_jl² + R_ik R_jk R_il R_jl), V the variances, half as large on the diagonal
            halved, rows = self.variances - np.diag(np.diag(self.variances)) / 2.0, self._rows[indices]
            strengths, vectors = np.linalg.eigh(halved)
            used = np.abs(strengths) > _ROUNDING * np.abs(strengths).max(initial=0.0)
            if used.sum() <= _MAX_BLOCKS:
                alone = rows**2 @ halved @ (rows**2).T
                products = [(rows * vector) @ rows.T for vector in vectors.T[used]]
                both = alone + sum(s * product**2 for s, product in zip(strengths[used], products, strict=True))
                return np.asarray(np.where(both > _ROUNDING * alone, both, 0.0))
        first, second = np.triu_indices(k)
        pairs = np.stack([indices[first], indices[second]], axis=1)
        weights = np.zeros((len(pairs), 2, 2))
        weights[:, 0, 1] = weights[:, 1, 0] = 0.5
        result = np.empty((k, k))
        result[first, second] = result[second, first] = self.variance(pairs, weights)
        return result

    def energy(self, indices: IntegerArray) -> float:
        """Return E‖N‖_F² of a block, without forming its d² cells."""
        if self.exact is not None or self.matrix is None:
            return float(self.cell_variances(indices).sum())
        if (simple := self._single(indices)) is not None:
            # N_ij = s_i s_j C_ij + t_i s_j C_0j + t_j s_i C_0i + t_i t_j C_00
            columns, shift, own = simple
            of_first = self.variances[0, columns]
            beside = float(shift.sum() * (own @ of_first) + (shift * own) @ of_first)
            of_corner = float(shift.sum()) ** 2 * float(self.variances[0, 0])
            return float(own @ self.variances[np.ix_(columns, columns)] @ own) + 2.0 * beside + of_corner
        rows = self.matrix[indices]
        squares = (rows**2).sum(axis=0)
        shared = (rows.T @ rows) ** 2
        cells = self.variances
        return float(squares @ cells @ squares + (cells * shared).sum() - np.diag(cells) @ squares**2)

    def trace_variance(self, indices: IntegerArray) -> float:
        """Return Var(tr N) of a block."""
        if self.exact is None and self.matrix is None:
            return float(np.diag(self.variances)[indices].sum())
        if (simple := self._single(indices)) is not None:
            columns, shift, own = simple
            beside = float((shift * own) @ self.variances[0, columns])
            of_corner = float(shift.sum()) ** 2 * float(self.variances[0, 0])
            return float(own**2 @ np.diag(self.variances)[columns]) + 4.0 * beside + of_corner
        return float(self.variance(indices[None], np.eye(len(indices))[None])[0])

    def _single(self, indices: IntegerArray) -> tuple[IntegerArray, FloatArray, FloatArray] | None:
        """Return columns c, t² and s² of rows t e₀ + s e_c, each with a different column."""
        # None if some are not so.
        if self._local is None or self._local.columns.shape[1] != 1:
            return None
        columns = self._local.columns[indices, 0]
        if len(set(columns.tolist())) < len(columns):
            return None
        return columns, self._local.first[indices] ** 2, self._local.values[indices, 0] ** 2

    def carried(self, matrix: FloatArray) -> NoiseTerm:
        """Return the term of T N Tᵀ."""
        if self.exact is not None:
            return replace(self, matrix=matrix @ self._rows[:-1], exact=(matrix @ self.exact[0], self.exact[1]))
        moved = matrix.copy() if self.matrix is None else matrix @ self.matrix
        used = moved != 0.0
        column = used.argmax(axis=1)
        if (used.sum(axis=1) == 1).all() and len(np.unique(column)) == len(column):  # rows are taken, and scaled
            squares = moved[np.arange(len(moved)), column] ** 2
            return NoiseTerm(self.family, self.variances[np.ix_(column, column)] * np.outer(squares, squares))
        kept = used.any(axis=0)
        kept[0] = True  # the first column may be all rows' own
        return NoiseTerm(self.family, self.variances[np.ix_(kept, kept)], moved[:, kept])

    # Bounds ---------------------------------------------------------------------------------------------------------------

    def gram_bound(self, failure: float, indices: IntegerArray) -> float:
        """Bound the spectral norm of a block of N except with probability ≤ ``failure``."""
        if self.matrix is None and self.exact is None:
            return self.family.norm_bound(self.variances[np.ix_(indices, indices)], failure, len(indices))
        best = math.sqrt(self.energy(indices) / failure)
        if self.exact is not None:
            return best
        assert self.matrix is not None
        rows = self.matrix[indices]
        if self._local is not None and self._local.columns.shape[1] == 1 and not (indices == 0).any():
            best = min(best, self._shifted_bound(failure, rows))
        # cells below those of s_i s_j (1 + δ_ij) v: R diag(s) in place of R
        used = np.flatnonzero(rows.any(axis=0))
        cells, rows = self.variances[np.ix_(used, used)], rows[:, used]
        if not cells.any():
            return 0.0
        largest = int(np.argmax(np.diag(cells)))
        unit = float(cells[largest, largest]) / 2.0
        scales = np.sqrt(np.maximum(cells[largest] / unit, 0.0)) if unit > 0.0 else np.ones(len(cells))
        scales[largest] = 1.0
        scales = np.where(scales > 0.0, scales, 1.0)
        level = cells / np.outer(scales, scales)
        size = min(len(indices), len(used)) if self.family.rotation_invariant else len(used)
        reach = self.family.norm_bound(level, failure, size) * float(np.linalg.norm(rows * np.sqrt(scales), 2)) ** 2
        return min(best, reach)

    def _shifted_bound(self, failure: float, rows: FloatArray) -> float:
        """Bound rows t + D x by ‖D N D‖ + ‖t‖(‖D e‖ + |uᵀD e|) + ‖t‖²|n|."""
        # u = t/‖t‖, e and n the noise on sum and count.
        own = np.flatnonzero(rows[:, 1:].any(axis=0)) + 1
        scaled = rows[:, own]
        gram = scaled**2 @ self.variances[np.ix_(own, own)] @ scaled.T**2  # one entry a row
        length = float(np.linalg.norm(rows[:, 0]))
        if length == 0.0:
            return self.family.norm_bound(gram, failure, len(rows))
        part = failure / 4.0
        of_sum = scaled @ np.diag(self.variances[0, own]) @ scaled.T
        along = rows[:, 0] @ of_sum @ rows[:, 0] / length**2
        vectors = self.family.vector_bound(of_sum, part) + self.family.vector_bound(np.array([[along]]), part)
        of_count = math.sqrt(self.variances[0, 0]) * _two_sided(self.family, part)
        return self.family.norm_bound(gram, part, len(rows)) + length * vectors + length**2 * of_count

    def sum_bound(self, failure: float, indices: IntegerArray) -> float:
        """Bound the length of the noise on some entries of the sum of rows."""
        start = np.zeros(self.size)
        start[0] = 1.0
        covariance = self.covariance_of_product(start, indices)
        if self.matrix is None or isinstance(self.family, GaussianCells) or not covariance.any():
            return self.family.vector_bound(covariance, failure)
        first = self.matrix[0]
        if self.exact is not None or first[1:].any():  # several rows of C, or its diagonal, are in it
            return CellFamily.vector_bound(self.family, covariance, failure)
        if not self.matrix[indices, 0].any():
            return self.family.vector_bound(covariance, failure)
        # the count's own cell beside those of the sum is no linear image of one row of C
        alone = self.matrix[indices][:, 1:] * first[0]
        of_sum = alone @ np.diag(self.variances[0, 1:]) @ alone.T
        shift = float(np.linalg.norm(self.matrix[indices, 0] * first[0]))
        of_count = math.sqrt(self.variances[0, 0]) * _two_sided(self.family, failure / 2.0)
        return self.family.vector_bound(of_sum, failure / 2.0) + shift * of_count


def _two_sided(family: CellFamily, failure: float) -> float:
    """Return the two-sided bound on a diagonal cell, in its standard deviations."""
    below = -family.quantile(failure / 2.0, diagonal=True)
    return max(family.quantile(1.0 - failure / 2.0, diagonal=True), below) if family.skewed else below


def _of_cells(variances: FloatArray, indices: IntegerArray, weights: FloatArray) -> FloatArray:
    """Return Var(Σ A_ij C_ij) of P functionals on uncorrelated cells."""
    # An index of −1 stands for none.
    size = indices.shape[1]
    twice = np.zeros(len(indices), dtype=bool)
    if size <= _MAX_UNROLLED:
        columns = np.ascontiguousarray(indices.T)
        result = np.zeros(len(indices))
        for i, first in enumerate(columns):
            for j, second in enumerate(columns[: i + 1]):
                share = variances[first, second] * weights[:, i, j] ** 2
                result += share if i == j else 4.0 * share
                if i != j:
                    twice |= (first == second) & (first >= 0)
    elif size == len(variances) and (indices == np.arange(size)).all():
        cells = variances * weights**2
        result = 2.0 * cells.sum(axis=(1, 2)) - np.einsum("pii->p", cells)
    else:
        ordered = np.sort(indices, axis=1)
        twice = ((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0)).any(axis=1)
        cells = variances[indices[:, :, None], indices[:, None, :]] * weights**2
        result = 2.0 * cells.sum(axis=(1, 2)) - np.einsum("pii->p", cells)
    if twice.any():
        # what stands at one index more than once is added up, and each of the copies counts for its share
        at, weight = indices[twice], weights[twice]
        same = (at[:, :, None] == at[:, None, :]).astype(float)
        share = 1.0 / same.sum(axis=2)
        squares = (same @ weight @ same) ** 2 * variances[at[:, :, None], at[:, None, :]]
        diagonal = np.einsum("pii,pi->p", squares, share)
        result[twice] = 2.0 * np.einsum("pij,pi,pj->p", squares, share, share) - diagonal
    return np.asarray(result)


def _spread(local: _Local, indices: IntegerArray, weights: FloatArray) -> tuple[IntegerArray, FloatArray]:
    """Return functionals on rows of R as functionals on its columns."""
    # The first, then those of each row.
    first = local.first[indices]
    on_first = np.einsum("pij,pj->pi", weights, first)
    corner = np.einsum("pi,pi->p", on_first, first)
    if (local.columns[0] < 0).all() and (indices[:, 0] == 0).all():  # the constant has no column of its own
        indices, weights, on_first = indices[:, 1:], weights[:, 1:, 1:], on_first[:, 1:]
    columns, values = local.columns[indices], local.values[indices]
    p, m, q = columns.shape
    flat = values.reshape(p, m * q)
    result = np.empty((p, 1 + m * q, 1 + m * q))
    result[:, 0, 0] = corner
    result[:, 0, 1:] = (on_first[:, :, None] * values).reshape(p, m * q)
    result[:, 1:, 0] = result[:, 0, 1:]
    repeated = weights if q == 1 else np.repeat(np.repeat(weights, q, axis=1), q, axis=2)
    np.multiply(repeated * flat[:, :, None], flat[:, None, :], out=result[:, 1:, 1:])
    return np.concatenate([np.zeros((p, 1), dtype=columns.dtype), columns.reshape(p, m * q)], axis=1), result


def _conjugated(rows: FloatArray, matrix: FloatArray) -> FloatArray:
    """Return R C Rᵀ; R is often that of shifted and scaled features, with two entries in a row."""
    if rows.size < _MANY_ENTRIES or np.count_nonzero(rows) * 10 > rows.size:
        return np.asarray(rows @ matrix @ rows.T)
    sparse = scipy.sparse.csr_array(rows)
    return np.asarray((sparse @ (sparse @ matrix).T).T)


_MANY_ENTRIES = 5_000
"""Number of entries from which a matrix of few nonzero ones is multiplied as sparse."""


def _of_products(variances: FloatArray, first: FloatArray, second: FloatArray, rows: IntegerArray) -> FloatArray:
    """Return the entries ``rows`` of E[(C v)(C w)ᵀ]."""
    # Cells are uncorrelated, and two entries of C v share one cell.
    k = len(rows)
    if k and int(rows[-1]) - int(rows[0]) == k - 1 and (np.diff(rows) == 1).all():
        part = slice(int(rows[0]), int(rows[-1]) + 1)
        of_rows, result = variances[part], np.outer(second[part], first[part])
        result *= of_rows[:, part]
    else:
        of_rows = variances[rows]
        result = of_rows[:, rows] * np.outer(second[rows], first[rows])
    result[np.diag_indices(k)] = of_rows @ (first * second)
    return np.asarray(result)


@dataclass(frozen=True, eq=False)
class ScaleTerm:
    """Noise of columns of a matrix R of unknown scale: N = ½(L U Rᵀ + R U Lᵀ), U = diag(u).

    The entries of u are normal of mean 0, with the covariance V = diag(v) + c f fᵀ. With L = I and R a covariance, the
    covariance is known but for the lengths of its columns: N_ij = R_ij (u_i + u_j)/2. To first order no correlation has this
    noise. With v = 0 and f = 1, a multiple of R is unknown.

    Attributes
    ----------
    variances : ndarray of shape (m,)
        v.
    left, right : ndarray of shape (n, m)
        L and R.
    common : ndarray of shape (m,)
        f.
    common_variance : float
        c; below 0 where the entries of u together are known better than each.
    """

    variances: FloatArray
    left: FloatArray
    right: FloatArray
    common: FloatArray
    common_variance: float = 0.0

    family: ClassVar[CellFamily] = GaussianCells()

    def __post_init__(self) -> None:
        for array in (self.variances, self.left, self.right, self.common):
            check_finite("noise", array)

    @property
    def size(self) -> int:
        """n, rows and columns of N."""
        return len(self.left)

    # Each of these is the method of a term of cells (``NoiseTerm``): tr(A N) is Σ q_j u_j, q = diag(Lᵀ A R).

    def _between(self, first: FloatArray, second: FloatArray) -> FloatArray:
        """Return A V Bᵀ."""
        together = np.outer(first @ self.common, second @ self.common)
        return np.asarray(first * self.variances @ second.T + self.common_variance * together)

    def _squares(self, images: FloatArray) -> FloatArray:
        """Return the diagonal of A V Aᵀ."""
        return np.asarray(images**2 @ self.variances + self.common_variance * (images @ self.common) ** 2)

    def variance(self, indices: IntegerArray, weights: FloatArray) -> FloatArray:
        """Return Var(Σ A_ij N_ij) of P functionals, shape (P,)."""
        step = max(1, _MAX_ENTRIES // (indices.shape[1] * len(self.variances)))
        result = np.empty(len(weights))
        for start in range(0, len(weights), step):
            part = slice(start, start + step)
            images = weights[part] @ self.right[indices[part]]
            result[part] = self._squares((self.left[indices[part]] * images).sum(axis=1))
        return result

    def variance_of_squares(self, vectors: FloatArray, subtracted: FloatArray) -> FloatArray:
        """Return Var(aᵀN a − Σ s_f N_ff) of P vectors a and s, shape (P,)."""
        images = (vectors @ self.left) * (vectors @ self.right) - subtracted @ (self.left * self.right)
        return self._squares(images)

    def covariance(self, indices: IntegerArray, weights: FloatArray) -> FloatArray:
        """Return the covariance of P functionals on the same indices, shape (P, P)."""
        images = (self.left[indices] * (weights @ self.right[indices])).sum(axis=1)
        return self._between(images, images)

    def covariance_of_product(
        self, vector: FloatArray, chosen: Sequence[int] | IntegerArray | None = None
    ) -> FloatArray:
        """Return Cov(N b), or its block of some entries."""
        images = self._of_product(vector)
        images = images if chosen is None else images[np.asarray(chosen)]
        return self._between(images, images)

    def _of_product(self, vector: FloatArray) -> FloatArray:
        """Return F, N b = F u, shape (n, m)."""
        return (self.left * (vector @ self.right) + self.right * (vector @ self.left)) / 2.0

    def mixed_derivative(self, left: FloatArray, right: FloatArray) -> FloatArray:
        """Return ∂(Cov(N b) u)/∂b for u = ``left`` and b = ``right``, shape (n, n)."""
        of_right, of_left = self._of_product(right), self._of_product(left)
        both = (self.left * self._between((left @ of_right)[None] / 2.0, np.eye(len(self.variances)))) @ self.right.T
        return np.asarray(both + both.T + self._between(of_right, of_left))

    def cell_variances(self, indices: IntegerArray) -> FloatArray:
        """Return variances of the cells of N of some indices, shape (k, k)."""
        left, right = self.left[indices], self.right[indices]
        alone = left**2 * self.variances @ (right**2).T
        products = left * right
        together = (left * self.common) @ right.T
        of_own = alone + alone.T + 2.0 * products * self.variances @ products.T
        return np.asarray((of_own + self.common_variance * (together + together.T) ** 2) / 4.0)

    def energy(self, indices: IntegerArray) -> float:
        """Return E‖N‖_F² of a block."""
        return float(self.cell_variances(indices).sum())

    def trace_variance(self, indices: IntegerArray) -> float:
        """Return Var(tr N) of a block."""
        return float(self._squares((self.left[indices] * self.right[indices]).sum(axis=0)))

    def carried(self, matrix: FloatArray) -> ScaleTerm:
        """Return the term of T N Tᵀ."""
        return replace(self, left=matrix @ self.left, right=matrix @ self.right)

    def gram_bound(self, failure: float, indices: IntegerArray) -> float:
        """Bound the spectral norm of a block of N except with probability ≤ ``failure``."""
        left, right, deviations = self.left[indices], self.right[indices], np.sqrt(self.variances)
        reach = _two_sided(self.family, failure / (len(deviations) + 1))
        together = (left * self.common) @ right.T
        of_common = math.sqrt(max(self.common_variance, 0.0)) * np.linalg.norm(together + together.T, 2) / 2.0
        return float(reach * (np.linalg.norm(left * deviations, 2) * np.linalg.norm(right, 2) + of_common))

    def sum_bound(self, failure: float, indices: IntegerArray) -> float:
        """Bound the length of the noise on some entries of the sum of rows."""
        start = np.zeros(self.size)
        start[0] = 1.0
        return math.sqrt(float(np.trace(self.covariance_of_product(start, indices))) / failure)
