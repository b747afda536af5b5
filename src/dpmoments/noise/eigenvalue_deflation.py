"""Spectrum and eigenvectors of a diagonal matrix restricted to the complement of one vector, in O(k²).

The step between two draws of the sequential eigenvector sampler. With Λ = diag(λ_1 ≥ … ≥ λ_k) and a unit vector u, the
restriction of Λ to u^⊥ has as eigenvalues the roots μ of the secular equation Σ u_i²/(λ_i − μ) = 0, one between each pair
of neighbouring poles, and as eigenvectors the vectors u_i/(λ_i − μ), normalised (Golub 1973; the limit ρ → ∞ of
the rank-one update of Bunch, Nielsen & Sorensen 1978). Three things make it safe in floating point:

- a root is kept as its distance from the nearer pole, so that every λ_i − μ has full relative accuracy;
- the weights are then recomputed from the roots (Gu & Eisenstat 1995), which makes the computed eigenvectors orthogonal
  to rounding however clustered the poles are;
- equal poles are merged by a reflection, and poles whose weight is negligible are left out: both persist as eigenvalues.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

__all__ = ["Deflation", "deflate"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

RELATIVE_GAP = 1e-30
"""Poles nearer than this share of the spectrum's range count as equal; far below rounding, so nothing is lost."""

NEGLIGIBLE = 1e-20
"""Coordinates of u below this count as zero."""

CHUNK_CELLS = 1 << 17
"""Entries of the pole–root table worked on at a time: 1 MB an array, so that the passes stay in cache."""


@dataclass(frozen=True, slots=True)
class Deflation:
    """The restriction of diag(λ) to the complement of a unit vector.

    Attributes
    ----------
    eigenvalues : ndarray of shape (k − 1,)
        Of the restriction, in descending order; they interlace λ.
    direction : ndarray of shape (k,)
        The removed unit vector, equal to the one given up to rounding and orthogonal to rounding to what
        :meth:`lift` returns.
    """

    eigenvalues: FloatArray
    direction: FloatArray
    _order: IntArray
    _poles: IntArray
    _persistent: IntArray
    _roots: _Roots
    _weights: FloatArray
    _reflection: _Reflection | None

    def lift(self, coordinates: FloatArray) -> FloatArray:
        """Map vectors from the restriction's eigenbasis back to the coordinates λ lives in.

        Parameters
        ----------
        coordinates : ndarray of shape (k − 1, m)

        Returns
        -------
        ndarray of shape (k, m)
            An isometry of its argument, orthogonal to ``direction``.
        """
        unsorted = np.empty_like(coordinates)
        unsorted[self._order] = coordinates
        n_roots = self._roots.offsets.size
        lifted = np.zeros((self.direction.size, coordinates.shape[1]))
        lifted[self._persistent] = unsorted[n_roots:]
        lifted[self._poles] = self._roots.combine(self._weights, unsorted[:n_roots])
        return lifted if self._reflection is None else self._reflection.apply(lifted)


def deflate(eigenvalues: FloatArray, direction: FloatArray) -> Deflation:
    """Restrict diag(eigenvalues) to the complement of a unit vector.

    Parameters
    ----------
    eigenvalues : ndarray of shape (k,)
        Finite, in descending order; repeats and zeros are welcome.
    direction : ndarray of shape (k,)
        A unit vector.

    Returns
    -------
    Deflation

    Notes
    -----
    Sources: Bunch, Nielsen & Sorensen (1978), Numer. Math. 31; Gragg's third-order iteration as in Borges & Gragg (1993);
    Gu & Eisenstat (1995), SIAM J. Matrix Anal. Appl. 16. See docs/derivations/iterative_eigenvectors.md.

    Examples
    --------
    >>> deflation = deflate(np.array([3.0, 1.0]), np.array([0.6, 0.8]))
    >>> deflation.eigenvalues, deflation.lift(np.eye(1)).ravel() @ [0.6, 0.8]
    (array([2.28]), ...)
    """
    # A power of two near the range changes no significant digit and keeps third powers of differences finite.
    exponent = int(np.frexp(eigenvalues[0] - eigenvalues[-1])[1])
    scaled = np.ldexp(eigenvalues, -exponent)
    starts = np.flatnonzero(np.r_[True, scaled[:-1] - scaled[1:] > RELATIVE_GAP])
    reflection = None
    if starts.size < scaled.size:
        reflection = _Reflection.onto_first(direction, starts)
        direction = reflection.apply(direction[:, None])[:, 0]
    is_pole = np.zeros(scaled.size, dtype=bool)
    is_pole[starts] = np.abs(direction[starts]) > NEGLIGIBLE
    poles, persistent = np.flatnonzero(is_pole), np.flatnonzero(~is_pole)

    roots = _solve(scaled[poles], direction[poles] ** 2)
    weights = np.copysign(np.sqrt(roots.squared_weights()), direction[poles])
    weights /= np.linalg.norm(weights)
    values = np.concatenate([np.ldexp(roots.values(), exponent), eigenvalues[persistent]])
    order = np.argsort(-values, kind="stable")
    cleaned = np.zeros((scaled.size, 1))
    cleaned[poles, 0] = weights
    return Deflation(
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
    """One Householder reflection in each group of equal poles: symmetric, orthogonal, and diag(λ) does not see it."""

    starts: IntArray
    sizes: IntArray
    vector: FloatArray

    @classmethod
    def onto_first(cls, direction: FloatArray, starts: IntArray) -> _Reflection:
        """Reflect each group of ``direction`` onto the first coordinate of the group."""
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


@dataclass(frozen=True, slots=True)
class _Roots:
    """Roots μ_j = λ_origin(j) + offset_j of Σ w_i/(λ_i − μ), j = 0 … k−2, μ_j between poles j+1 and j."""

    poles: FloatArray
    origins: IntArray
    offsets: FloatArray

    def values(self) -> FloatArray:
        return np.asarray(self.poles[self.origins] + self.offsets)

    def differences(self, first: int, last: int) -> FloatArray:
        """λ_i − μ_j for roots ``first`` to ``last``, shape (last − first, k), each to full relative accuracy."""
        table = self.poles - self.poles[self.origins[first:last], None]
        table -= self.offsets[first:last, None]
        return table

    def squared_weights(self) -> FloatArray:
        """The weights for which these are the exact roots: Π_j (μ_j − λ_i) / Π_{j≠i} (λ_j − λ_i) (Löwner).

        Each root is paired with the pole next to it on the far side from i, so every factor is between 0 and 1.
        """
        k = self.poles.size
        product = np.ones(k)
        for first, last in _chunks(k - 1, k):
            ratio = self.differences(first, last)
            far = np.where(
                np.arange(k) <= np.arange(first, last)[:, None],
                self.poles[first + 1 : last + 1, None],
                self.poles[first:last, None],
            )
            ratio /= self.poles - far
            product *= ratio.prod(axis=0)
        return product

    def combine(self, weights: FloatArray, coordinates: FloatArray) -> FloatArray:
        """Σ_j coordinates_j · (eigenvector j), the eigenvectors being weights_i/(λ_i − μ_j), normalised."""
        k = self.poles.size
        total = np.zeros((k, coordinates.shape[1]))
        for first, last in _chunks(k - 1, k):
            vectors = self.differences(first, last)
            np.divide(weights, vectors, out=vectors)
            norms = np.sqrt(np.einsum("ji,ji->j", vectors, vectors))
            total += vectors.T @ (coordinates[first:last] / norms[:, None])
        return total


def _solve(poles: FloatArray, squared_weights: FloatArray) -> _Roots:
    """Solve Σ w_i/(λ_i − μ) = 0 between each pair of neighbouring poles."""
    k = poles.size
    origins = np.empty(max(k - 1, 0), dtype=np.int64)
    offsets = np.empty(max(k - 1, 0))
    chunks = _chunks(k - 1, k)
    # Fresh temporaries of this size would cost more in page faults than the arithmetic done on them.
    workspace = np.empty((3, max((last - first for first, last in chunks), default=0), k))
    for first, last in chunks:
        found = _solve_chunk(poles, squared_weights, first, last, workspace)
        origins[first:last], offsets[first:last] = found
    return _Roots(poles, origins, offsets)


def _solve_chunk(
    poles: FloatArray, w: FloatArray, first: int, last: int, workspace: FloatArray
) -> tuple[IntArray, FloatArray]:
    """Roots first … last−1. Each is sought as x > 0, its distance from the nearer pole, towards the other one.

    Measured so, F(x) = Σ w_i/(e_i − x) increases from −∞ at the near pole (e = 0) to +∞ at the far one (e = gap).
    """
    upper = np.arange(first, last)
    gaps = poles[upper] - poles[upper + 1]
    half = 0.5 * gaps
    table, inverse, power = workspace[:, : last - first]
    np.subtract(poles, poles[upper, None], out=inverse)
    inverse += half[:, None]
    at_middle = np.divide(1.0, inverse, out=inverse) @ w
    near_is_lower = at_middle > 0.0
    sign = np.where(near_is_lower, 1.0, -1.0)
    origins = upper + near_is_lower
    near, far = w[origins], w[2 * upper + 1 - origins]

    # First guess: the two nearest poles exactly, all others as at the middle.
    rest = sign * at_middle - (far - near) / half
    linear = rest * gaps + near + far
    x = np.minimum(_quadratic_root(rest, linear, near * gaps), half)
    x = np.maximum(x, np.finfo(np.float64).tiny)

    np.subtract(poles, poles[origins, None], out=table)
    table *= sign[:, None]
    low, high = np.zeros_like(x), half.copy()
    open_rows = np.arange(x.size)
    for _ in range(200):
        now = x[open_rows]
        np.subtract(table, now[:, None], out=inverse)
        value = np.divide(1.0, inverse, out=inverse) @ w
        slope = np.multiply(inverse, inverse, out=power) @ w
        power *= inverse
        curvature = power @ w
        low[open_rows] = np.where(value < 0.0, now, low[open_rows])
        high[open_rows] = np.where(value > 0.0, now, high[open_rows])
        step = _third_order_step(value, slope, curvature, -now, gaps[open_rows] - now)
        moved = now + step
        below, above = low[open_rows], high[open_rows]
        outside = ~((moved >= below) & (moved <= above))
        moved = np.where(outside, np.where(below > 0.0, 0.5 * (below + above), 0.01 * above), moved)
        x[open_rows] = moved
        # The error after a third-order step is of the order of the step's relative size cubed.
        unfinished = (np.abs(moved - now) > 1e-6 * now) & (above - below > 1e-15 * above)
        if not unfinished.any():
            return origins, sign * x
        if not unfinished.all():
            open_rows, kept = open_rows[unfinished], table[unfinished]
            table, inverse, power = workspace[:, : open_rows.size]
            table[:] = kept
    raise FloatingPointError("the secular equation did not converge: a defect, please report it")


def _third_order_step(
    value: FloatArray, slope: FloatArray, curvature: FloatArray, near: FloatArray, far: FloatArray
) -> FloatArray:
    """Step to the root of c + p/(near − y) + q/(far − y), fitted to F, F′ and F″/2 at y = 0 (Gragg).

    With P = p/near² and Q = q/far²: P + Q = F′ and P/near + Q/far = F″/2. Both are positive for a sum of poles.
    """
    near_part = (curvature - slope / far) * near * far / (far - near)
    far_part = slope - near_part
    constant = value - near_part * near - far_part * far
    linear = constant * (near + far) + near_part * near**2 + far_part * far**2
    return _quadratic_root(constant, linear, near * far * value)


def _quadratic_root(a: FloatArray, b: FloatArray, c: FloatArray) -> FloatArray:
    """The root of a·y² − b·y + c continuous in a through y = c/b at a = 0, without cancellation."""
    root = np.sqrt(np.maximum(b * b - 4.0 * a * c, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(b >= 0.0, 2.0 * c / (b + root), (b - root) / (2.0 * a))


def _chunks(n_rows: int, n_columns: int, cells: int = CHUNK_CELLS) -> list[tuple[int, int]]:
    step = max(1, cells // max(n_columns, 1))
    return [(first, min(first + step, n_rows)) for first in range(0, n_rows, step)]
