"""Exact draws of directions (Bingham distribution) and of orthonormal frames.

**Bingham**, density ∝ exp(uᵀMu): rejection from an angular central Gaussian envelope (Kent, Ganeiber & Mardia 2018,
section 3), in the eigenbasis of M, with O(d) per proposal. The derivation, with the two misprints that spread through
public code, and the exact mean number of proposals are in docs/evidence/derivations/bingham.md.

**Frames** are drawn vector by vector by the exponential mechanism. The plain algorithm (Amin et al. 2019, Algorithm
1) decomposes a matrix at every step, O(d⁴) in all. Here each step works in the eigenbasis of the matrix restricted to
the complement of the vectors drawn so far, and finds the next eigenbasis by the secular equation in O(d²). Vectors
are mapped back block by block by matrix products, and the eigenbasis is recomputed between blocks.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpmoments.base.checks import check_at_least, check_finite, check_vector, symmetric_part
from dpmoments.base.errors import InputValueError
from dpmoments.base.values import FloatArray, IntegerArray

_BATCH_CELLS = 1 << 18
"""Normals drawn together: 2 MB, so that a batch stays in cache."""


def sample_bingham(
    matrix: npt.ArrayLike, size: int | None, rng: np.random.Generator, *, symmetry_tolerance: float = 1e-9
) -> FloatArray:
    """Draw unit vectors with density ∝ exp(uᵀ · matrix · u) on the sphere in R^d.

    This is the exponential mechanism for the direction of largest variance when ``matrix`` is a temperature times a
    Gram matrix.

    Parameters
    ----------
    matrix : array_like of shape (d, d)
        Symmetric and finite; definite or not. Adding a multiple of the identity changes nothing.
    size : int or None
        Number of independent draws, one per row of the result; None for one vector.
    rng : numpy.random.Generator
    symmetry_tolerance : float
        Largest |matrix − matrixᵀ| accepted, as a fraction of the largest entry; only the symmetric part counts.

    Notes
    -----
    ================================  =============================================
    matrix                            draws
    ================================  =============================================
    zero, or a multiple of I          uniform on the sphere
    1 × 1                             +1 or −1, each with probability one half
    gaps far beyond 1                 ± the leading eigenvector, to rounding
    repeated leading eigenvalue       uniform in the leading eigenspace as gaps grow
    ================================  =============================================

    On average a draw takes at most about 1.2 √d proposals, for any matrix. The distribution is exact in real
    arithmetic; in floating point no proof of privacy exists for draws on the sphere.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> draws = sample_bingham(np.diag([50.0, 0.0, 0.0]), 1000, rng)
    >>> draws.shape, bool((draws[:, 0] ** 2).mean() > 0.95)
    ((1000, 3), True)
    """
    symmetric = symmetric_part(matrix, tolerance=symmetry_tolerance)
    eigenvalues, eigenvectors = np.linalg.eigh(symmetric)
    draws, _ = sample_bingham_diagonal(eigenvalues, size, rng)
    return np.asarray(draws @ eigenvectors.T, dtype=np.float64)


def sample_bingham_diagonal(
    eigenvalues: npt.ArrayLike, size: int | None, rng: np.random.Generator
) -> tuple[FloatArray, int]:
    """Draw unit vectors with density ∝ exp(Σ eigenvalues_i · u_i²), and count the proposals.

    They are counted up to the last accepted draw. With λ_i = max(eigenvalues) − eigenvalues_i, p_i = 1/(b + 2λ_i) and
    iid standard normals g_i, the proposal is u ∝ (√p_i · g_i), accepted with probability (r e^{1−r})^{d/2}, r = Σ g_i²
    / (d Σ p_i g_i²): the ratio of Kent, Ganeiber & Mardia in a form where nothing overflows or cancels, at most 1 for
    every b > 0.
    """
    values = np.asarray(eigenvalues, dtype=np.float64)
    check_vector("eigenvalues", values)
    n_draws = 1 if size is None else operator.index(size)
    check_at_least("size", n_draws, 0)

    with np.errstate(over="ignore"):  # a gap past 1.8e308 is infinite, and its coordinate rightly 0
        gaps = values.max() - values
        weights = 1.0 / (envelope_parameter(gaps) + 2.0 * gaps)
    d = values.size
    scales = np.sqrt(weights)
    # Expected proposals per draw, to within 20 %: treats Σ p_i g_i² as normal and takes that density at the mean.
    guess = 1.2 * math.sqrt(d * float(weights @ weights))
    draws = np.empty((n_draws, d))
    n_accepted = 0
    n_proposals = 0
    while n_accepted < n_draws:
        # The size is fixed before the batch is drawn, so it cannot bias which proposals are accepted.
        batch = max(1, min(math.ceil(guess * (n_draws - n_accepted)), _BATCH_CELLS // d))
        normals = rng.standard_normal((batch, d))
        squares = normals * normals
        ratio = squares.sum(axis=1) / d
        with np.errstate(divide="ignore", invalid="ignore"):  # all normals 0: no direction, and NaN is a rejection
            ratio /= np.vecdot(squares, weights)
            log_acceptance = 0.5 * d * (np.log(ratio) + (1.0 - ratio))
        accepted = np.flatnonzero(rng.standard_exponential(batch) > -log_acceptance)[: n_draws - n_accepted]
        vectors = normals[accepted] * scales
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        draws[n_accepted : n_accepted + accepted.size] = vectors
        n_accepted += accepted.size
        n_proposals += int(accepted[-1]) + 1 if n_accepted == n_draws else batch
    return (draws[0] if size is None else draws), n_proposals


def envelope_parameter(gaps: FloatArray) -> float:
    """Return the b that makes rejection cheapest.

    The root of Σ 1/(b + 2 gaps_i) = 1, with gaps λ_i ≥ 0, the smallest 0. Newton's method on 1/S(b), S(b) = Σ 1/(b +
    2λ_i): concave and increasing, so the steps climb to the root from the left and cannot overshoot. At equal gaps the
    first step is exact.
    """
    root = float(np.count_nonzero(gaps == 0.0))
    for _ in range(100):
        inverse = 1.0 / (root + 2.0 * gaps)
        total = float(inverse.sum())
        step = total * (total - 1.0) / float(inverse @ inverse)
        if step <= 1e-15 * root:
            break
        root += step
    return root


# Roots of the secular equation Σ w_i/(λ_i − μ) = 0, and the eigenvectors that belong to them.

_CHUNK_CELLS = 1 << 17
"""Entries of a table processed together: 1 MB per array, so that the passes stay in cache."""


@dataclass(frozen=True, slots=True)
class SecularRoots:
    """Roots μ_j = poles[origins_j] + offsets_j, j = 0 … k−2, of Σ w_i/(λ_i − μ).

    μ_j is between poles j+1 and j.
    """

    poles: FloatArray  # (k,)
    origins: IntegerArray  # (k − 1,), int64, index of the pole nearest to each root
    offsets: FloatArray  # (k − 1,), distances from those poles, to full relative accuracy

    def values(self) -> FloatArray:
        """Return the roots, rounded; shape (k − 1,)."""
        return np.asarray(self.poles[self.origins] + self.offsets)

    def combine(self, weights: FloatArray, coordinates: FloatArray) -> FloatArray:
        """Return Σ_j coordinates_j · (eigenvector j), shape (k, m).

        Eigenvectors are normalized weights_i/(λ_i − μ_j). ``weights``, shape (k,), are signed square roots;
        ``coordinates`` have shape (k − 1, m).
        """
        total = np.zeros((weights.size, coordinates.shape[1]))
        chunks, workspace = _chunks(weights.size, 1)
        with _unbuffered():
            for first, last in chunks:
                origins = self.poles[self.origins[first:last], None]
                table = np.subtract(self.poles, origins, out=workspace[0, : last - first])
                table -= self.offsets[first:last, None]
                np.divide(weights, table, out=table)
                norms = np.sqrt(np.vecdot(table, table))
                total += table.T @ (coordinates[first:last] / norms[:, None])
        return total


def _solve_secular_equation(poles: FloatArray, squared_weights: FloatArray) -> tuple[SecularRoots, FloatArray]:
    """Find the root between each pair of neighboring poles, and weights that make them exact.

    The weights are Löwner's. ``poles`` are strictly descending with a range near 1 (third powers of the differences are
    formed), ``squared_weights`` positive. The exact weights are Π_j (μ_j − λ_i) / Π_{j≠i} (λ_j − λ_i): the given ones
    up to rounding, scaled to sum to 1. A third-order iteration in the manner of Gragg (Borges & Gragg 1993) inside a
    bracket, 2.4 evaluations per root on average. Sources: Bunch, Nielsen & Sorensen (1978), Numer. Math. 31; Gu &
    Eisenstat (1995), SIAM J. Matrix Anal. Appl. 16.
    """
    k = poles.size
    origins = np.empty(max(k - 1, 0), dtype=np.int64)
    offsets = np.empty(max(k - 1, 0))
    product = np.ones(k)
    chunks, workspace = _chunks(k, 4)
    with _unbuffered():
        for first, last in chunks:
            spacing = np.subtract(poles, poles[first : last + 1, None], out=workspace[0, : last - first + 1])
            nearest, result = _solve_chunk(spacing, squared_weights, first, workspace[1:])
            origins[first:last], offsets[first:last] = first + nearest, result
            table = np.take(spacing, nearest, axis=0, out=workspace[1, : last - first], mode="clip")
            table -= result[:, None]

            # Löwner's factors: Π over the chunk's roots of (λ_i − μ_j)/(λ_i − λ_far), λ_far the pole next to μ_j away from
            # λ_i. A pole i of the chunk itself has λ_far = λ_{j+1} for roots j ≥ i. Dividing by λ_i − λ_j for j > i, and by
            # the distance to the chunk's last pole for j = i, gives the same product.
            rows = np.arange(len(table))
            spacing[rows, first + rows] = spacing[-1, first + rows]
            table[:, :first] /= spacing[1:, :first]
            table[:, first:] /= spacing[:-1, first:]
            product *= table.prod(axis=0)
    return SecularRoots(poles, origins, offsets), product


def _solve_chunk(
    spacing: FloatArray, w: FloatArray, first: int, workspace: FloatArray
) -> tuple[IntegerArray, FloatArray]:
    """Return the roots below poles first, first + 1, …."""
    # Nearest poles as indices in the chunk, and distances above them.
    rows = np.arange(len(spacing) - 1)
    gaps = -spacing[rows, first + rows + 1]
    half = 0.5 * gaps
    table, inverse, power = workspace[:, : rows.size]
    np.add(spacing[:-1], half[:, None], out=inverse)
    at_middle = np.vecdot(np.divide(1.0, inverse, out=inverse), w)
    near_is_lower = at_middle > 0.0
    sign = np.where(near_is_lower, 1.0, -1.0)
    nearest = rows + near_is_lower
    near, far = w[first + nearest], w[first + 2 * rows + 1 - nearest]

    # First guess: the terms of the two enclosing poles exactly, the sum of all others as at the middle between them.
    rest = sign * at_middle - (far - near) / half
    x = np.clip(_first_guess(rest, near, far, gaps), np.finfo(np.float64).tiny, half)

    _poles_from(spacing, first, nearest, table)
    low, high = np.zeros_like(x), half
    result = np.empty_like(x)
    for _ in range(200):
        np.subtract(table, (sign * x)[:, None], out=inverse)
        value = sign * np.vecdot(np.divide(1.0, inverse, out=inverse), w)
        slope = np.vecdot(np.multiply(inverse, inverse, out=power), w)
        power *= inverse
        curvature = sign * np.vecdot(power, w)
        total = value - near / x
        low, high = np.where(total < 0.0, x, low), np.where(total > 0.0, x, high)
        moved = x + _third_order_step(value, slope, curvature, near, x)
        outside = ~((moved >= low) & (moved <= high))
        if outside.any():
            moved = np.where(outside, np.where(low > 0.0, 0.5 * (low + high), 0.01 * high), moved)
        result[rows] = sign * moved
        # After a third-order step the relative error is about the cube of the step's relative size.
        unfinished = (np.abs(moved - x) > 1e-5 * x) & (high - low > 1e-15 * high)
        x = moved
        if not unfinished.any():
            return nearest, result
        if not unfinished.all():
            x, low, high = x[unfinished], low[unfinished], high[unfinished]
            near, sign, rows = near[unfinished], sign[unfinished], rows[unfinished]
            table, inverse, power = workspace[:, : rows.size]
            _poles_from(spacing, first, nearest[rows], table)
    raise AssertionError("the secular equation did not converge: a defect, please report it")


def _poles_from(spacing: FloatArray, first: int, nearest: IntegerArray, out: FloatArray) -> None:
    """Write distances of all poles from each root's nearest one."""
    # ∞ for that one, whose large term would hide the others.
    np.take(spacing, nearest, axis=0, out=out, mode="clip")
    out[np.arange(nearest.size), first + nearest] = np.inf


def _third_order_step(
    value: FloatArray, slope: FloatArray, curvature: FloatArray, near: FloatArray, x: FloatArray
) -> FloatArray:
    """Return the step y to the root of −near/(x + y) + (v + (s − κv)y)/(1 − κy)."""
    # κ = curvature/slope.
    ratio = curvature / slope
    bend = slope - ratio * value
    linear = -(value + near * ratio + x * bend)
    constant = x * value - near
    root = np.sqrt(np.maximum(linear * linear - 4.0 * bend * constant, 0.0))
    return np.asarray(2.0 * constant / (linear + np.copysign(root, linear)))


def _first_guess(rest: FloatArray, near: FloatArray, far: FloatArray, gaps: FloatArray) -> FloatArray:
    """Return the root in (0, gap) of rest − near/x + far/(gap − x), without cancellation."""
    linear = rest * gaps + near + far
    root = np.sqrt(np.maximum(linear * linear - 4.0 * rest * near * gaps, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(linear >= 0.0, 2.0 * near * gaps / (linear + root), (linear - root) / (2.0 * rest))


def _chunks(n_poles: int, n_tables: int) -> tuple[list[tuple[int, int]], FloatArray]:
    """Return ranges of roots to process together, and memory for tables of roots × poles."""
    # Its shape is (n_tables, rows, n_poles).
    n_roots = max(n_poles - 1, 0)
    rows = max(1, _CHUNK_CELLS // max(n_poles, 1))
    ranges = [(first, min(first + rows, n_roots)) for first in range(0, n_roots, rows)]
    return ranges, np.empty((n_tables, min(rows, n_roots) + 1, n_poles))


@contextmanager
def _unbuffered() -> Iterator[None]:
    """Make NumPy's buffer tiny."""
    # Otherwise it copies broadcast operands through it, which doubles the time.
    with np.errstate():  # leaving it restores the buffer size too
        np.setbufsize(16)
        yield


# Spectrum and eigenvectors of a diagonal matrix restricted to the complement of one vector, in O(k²).


_RELATIVE_GAP = 1e-30
"""Gap, as a fraction of the spectrum's range, below which poles count as equal."""

_NEGLIGIBLE = 1e-20
"""Size below which coordinates of the removed vector count as zero."""


@dataclass(frozen=True, slots=True)
class _Deflation:
    """Restriction of diag(λ) to the complement of a unit vector."""

    eigenvalues: FloatArray
    direction: FloatArray
    _order: IntegerArray
    _poles: IntegerArray
    _persistent: IntegerArray
    _roots: SecularRoots
    _weights: FloatArray
    _reflection: _Reflection | None

    def lift(self, coordinates: FloatArray) -> FloatArray:
        """Map vectors from the restriction's eigenbasis back to the coordinates of λ."""
        unsorted = np.empty_like(coordinates)
        unsorted[self._order] = coordinates
        n_roots = self._roots.offsets.size
        lifted = np.zeros((self.direction.size, coordinates.shape[1]))
        lifted[self._persistent] = unsorted[n_roots:]
        lifted[self._poles] = self._roots.combine(self._weights, unsorted[:n_roots])
        return lifted if self._reflection is None else self._reflection.apply(lifted)


def _deflate(eigenvalues: FloatArray, direction: FloatArray) -> _Deflation:
    """Restrict diag(eigenvalues) to the complement of a unit vector, in O(k²).

    Eigenvalues are in descending order. The new eigenvalues solve the secular equation. Equal poles are first merged by
    a reflection, and poles with negligible weight are skipped; both persist as eigenvalues (Dongarra & Sorensen 1987).
    See docs/evidence/derivations/iterative_eigenvectors.md.
    """
    # Dividing by a power of two near the range changes no significant digit and keeps cubes of differences finite.
    exponent = int(np.frexp(eigenvalues[0] - eigenvalues[-1])[1])
    scaled = np.ldexp(eigenvalues, -exponent)
    starts = np.flatnonzero(np.r_[True, scaled[:-1] - scaled[1:] > _RELATIVE_GAP])
    reflection = None
    if starts.size < scaled.size:
        reflection = _Reflection.onto_first(direction, starts)
        direction = reflection.apply(direction[:, None])[:, 0]
    is_pole = np.zeros(scaled.size, dtype=bool)
    is_pole[starts] = np.abs(direction[starts]) > _NEGLIGIBLE
    poles, persistent = np.flatnonzero(is_pole), np.flatnonzero(~is_pole)

    roots, squared_weights = _solve_secular_equation(scaled[poles], direction[poles] ** 2)
    weights = np.copysign(np.sqrt(squared_weights), direction[poles])
    weights /= np.linalg.norm(weights)
    values = np.concatenate([np.ldexp(roots.values(), exponent), eigenvalues[persistent]])
    order = np.argsort(-values, kind="stable")
    cleaned = np.zeros((scaled.size, 1))
    cleaned[poles, 0] = weights
    return _Deflation(
        eigenvalues=values[order],
        direction=(cleaned if reflection is None else reflection.apply(cleaned))[:, 0],
        _order=order,
        _poles=poles,
        _persistent=persistent,
        _roots=roots,
        _weights=weights,
        _reflection=reflection,
    )


@dataclass(frozen=True, slots=True)
class _Reflection:
    """Householder reflections, one in each group of equal poles; they commute with diag(λ)."""

    starts: IntegerArray
    sizes: IntegerArray
    vector: FloatArray

    @classmethod
    def onto_first(cls, direction: FloatArray, starts: IntegerArray) -> _Reflection:
        """Return the reflection of each group of ``direction`` onto its first coordinate."""
        sizes = np.diff(np.r_[starts, direction.size])
        norms = np.sqrt(np.add.reduceat(direction**2, starts))
        vector = direction.copy()
        vector[starts] += np.copysign(norms, direction[starts])
        lengths = np.sqrt(np.add.reduceat(vector**2, starts))
        lengths[(sizes == 1) | (lengths == 0.0)] = np.inf  # nothing to reflect
        return cls(starts, sizes, np.sqrt(2.0) * vector / np.repeat(lengths, sizes))

    def apply(self, columns: FloatArray) -> FloatArray:
        products = np.add.reduceat(self.vector[:, None] * columns, self.starts, axis=0)
        return np.asarray(columns - self.vector[:, None] * np.repeat(products, self.sizes, axis=0))


def sample_orthonormal_frame(
    matrix: npt.ArrayLike, temperatures: npt.ArrayLike, rng: np.random.Generator, *, block_size: int | None = None
) -> tuple[FloatArray, IntegerArray]:
    """Draw orthonormal θ_1, …, θ_rank, θ_i with density ∝ exp(t_i θᵀCθ).

    The density is on the sphere of (θ_1, …, θ_{i−1})^⊥. The vectors are columns, in the order drawn, with the proposals
    made for each. A temperature of 0 draws uniformly; a negative one favors small eigenvalues. ``block_size``, the
    steps between two fresh eigendecompositions, affects speed and rounding, not the distribution.
    """
    symmetric = symmetric_part(matrix)
    schedule = np.asarray(temperatures, dtype=np.float64)
    d = len(symmetric)
    if schedule.ndim != 1 or schedule.size > d:
        raise InputValueError(
            f"temperatures have shape {schedule.shape}: give a vector of at most {d}, one per eigenvector"
        )
    check_finite("temperatures", schedule)
    if block_size is not None:
        check_at_least("block_size", block_size)

    eigenvalues, basis = _descending(*np.linalg.eigh(symmetric))
    vectors = np.empty((d, schedule.size))
    n_proposals = np.empty(schedule.size, dtype=np.int64)
    done = 0
    while done < schedule.size:
        length = block_size or max(16, eigenvalues.size // 10)
        block = slice(done, min(done + length, schedule.size))
        left, deflations = eigenvalues, list[_Deflation]()
        for index in range(block.start, block.stop):
            direction, n_proposals[index] = sample_bingham_diagonal(schedule[index] * left, None, rng)
            deflations.append(_deflate(left, direction))
            left = deflations[-1].eigenvalues
        # Vector i was drawn in the i-th eigenbasis: carry all later ones back together, one basis at a time.
        coordinates = np.empty((left.size, 0))
        for deflation in reversed(deflations):
            coordinates = np.column_stack([deflation.direction, deflation.lift(coordinates)])
        vectors[:, block] = basis @ coordinates
        done = block.stop
        if done < schedule.size:
            # Restricted to the complement of the vectors drawn.
            complement = np.linalg.qr(coordinates, mode="complete").Q[:, coordinates.shape[1] :]
            restricted = (complement.T * eigenvalues) @ complement
            eigenvalues, rotation = _descending(*np.linalg.eigh(0.5 * (restricted + restricted.T)))
            basis = basis @ (complement @ rotation)
    return vectors, n_proposals


def _descending(values: FloatArray, vectors: FloatArray) -> tuple[FloatArray, FloatArray]:
    return values[::-1].copy(), vectors[:, ::-1].copy()
