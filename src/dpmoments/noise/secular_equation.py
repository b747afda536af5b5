"""Roots of the secular equation Σ w_i/(λ_i − μ) = 0, and the eigenvectors that belong to them.

With poles λ_1 > … > λ_k and positive weights there is one root between each pair of neighbours. They are the eigenvalues of
diag(λ) restricted to the complement of the vector √w, with eigenvectors √w_i/(λ_i − μ), normalised (Golub 1973;
the limit ρ → ∞ of the rank-one update of Bunch, Nielsen & Sorensen 1978). Two things make this safe in floating point:

- a root is kept as its distance from the nearer pole, so that every λ_i − μ has full relative accuracy;
- the weights are then recomputed from the roots (Gu & Eisenstat 1995), which makes the computed eigenvectors orthogonal
  to rounding however clustered the poles are.

The work is a few passes over tables of roots × poles; all loops run in NumPy.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.arrays import FloatArray

__all__ = ["SecularRoots", "solve_secular_equation"]

IntArray = npt.NDArray[np.int64]

CHUNK_CELLS = 1 << 17
"""Entries of a table worked on at a time: 1 MB an array, so that the passes stay in cache."""


@dataclass(frozen=True, slots=True)
class SecularRoots:
    """Roots μ_j = poles[origins_j] + offsets_j, j = 0 … k−2, of Σ w_i/(λ_i − μ); μ_j is between poles j+1 and j.

    Attributes
    ----------
    poles : ndarray of shape (k,)
    origins : ndarray of shape (k − 1,), int64
        Index of the pole nearest to each root.
    offsets : ndarray of shape (k − 1,)
        Distances from those poles, to full relative accuracy.
    """

    poles: FloatArray
    origins: IntArray
    offsets: FloatArray

    def values(self) -> FloatArray:
        """The roots, rounded; shape (k − 1,)."""
        return np.asarray(self.poles[self.origins] + self.offsets)

    def combine(self, weights: FloatArray, coordinates: FloatArray) -> FloatArray:
        """Σ_j coordinates_j · (eigenvector j), the eigenvectors being weights_i/(λ_i − μ_j), normalised.

        Parameters
        ----------
        weights : ndarray of shape (k,)
            Signed square roots of the weights.
        coordinates : ndarray of shape (k − 1, m)

        Returns
        -------
        ndarray of shape (k, m)
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


def solve_secular_equation(poles: FloatArray, squared_weights: FloatArray) -> tuple[SecularRoots, FloatArray]:
    """Find the root between each pair of neighbouring poles.

    Parameters
    ----------
    poles : ndarray of shape (k,)
        Strictly descending, with a range near 1 (third powers of the differences are formed).
    squared_weights : ndarray of shape (k,)
        Positive.

    Returns
    -------
    roots : SecularRoots
    squared_weights : ndarray of shape (k,)
        The weights for which the roots found are exact, Π_j (μ_j − λ_i) / Π_{j≠i} (λ_j − λ_i) (Löwner): those given, up to
        rounding, scaled to sum to 1.

    Notes
    -----
    A third-order iteration in the manner of Gragg (Borges & Gragg 1993) inside a bracket, 2.4 evaluations a root on
    average. Sources: Bunch, Nielsen & Sorensen (1978), Numer. Math. 31; Gu & Eisenstat (1995), SIAM J. Matrix Anal. Appl. 16.

    Examples
    --------
    >>> roots, _ = solve_secular_equation(np.array([1.0, 0.0]), np.array([0.25, 0.75]))
    >>> roots.values()
    array([0.75])
    """
    k = poles.size
    origins = np.empty(max(k - 1, 0), dtype=np.int64)
    offsets = np.empty(max(k - 1, 0))
    product = np.ones(k)
    chunks, workspace = _chunks(k, 4)
    with _unbuffered():
        for first, last in chunks:
            spacing = np.subtract(poles, poles[first : last + 1, None], out=workspace[0, : last - first + 1])
            nearest, found = _solve_chunk(spacing, squared_weights, first, workspace[1:])
            origins[first:last], offsets[first:last] = first + nearest, found
            table = np.take(spacing, nearest, axis=0, out=workspace[1, : last - first], mode="clip")
            table -= found[:, None]
            product *= _loewner_factors(table, spacing, first)
    return SecularRoots(poles, origins, offsets), product


def _loewner_factors(differences: FloatArray, spacing: FloatArray, first: int) -> FloatArray:
    """Π over a chunk of roots of (λ_i − μ_j)/(λ_i − λ_far), λ_far the pole next to μ_j on the side away from λ_i.

    Every factor is then between 0 and 1. Both tables are overwritten.
    """
    # A pole i of the chunk itself has λ_far = λ_{j+1} for roots j ≥ i. Dividing by λ_i − λ_j for j > i, and by the distance to
    # the chunk's last pole for j = i, gives the same product.
    rows = np.arange(len(differences))
    spacing[rows, first + rows] = spacing[-1, first + rows]
    differences[:, :first] /= spacing[1:, :first]
    differences[:, first:] /= spacing[:-1, first:]
    return np.asarray(differences.prod(axis=0))


def _solve_chunk(spacing: FloatArray, w: FloatArray, first: int, workspace: FloatArray) -> tuple[IntArray, FloatArray]:
    """Roots below poles first, first + 1, …: the nearest pole of each, as an index in the chunk, and its distance above that.

    Row j of ``spacing`` is λ − λ_{first+j}. Each root is sought as x > 0, its distance from the nearer pole towards the
    other one: then F(x) = ±Σ w_i/(λ_i − μ) increases from −∞ at the near pole to +∞ at the far one.
    """
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
    found = np.empty_like(x)
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
        found[rows] = sign * moved
        # After a third-order step the relative error is about the cube of the step's relative size.
        unfinished = (np.abs(moved - x) > 1e-5 * x) & (high - low > 1e-15 * high)
        x = moved
        if not unfinished.any():
            return nearest, found
        if not unfinished.all():
            x, low, high = x[unfinished], low[unfinished], high[unfinished]
            near, sign, rows = near[unfinished], sign[unfinished], rows[unfinished]
            table, inverse, power = workspace[:, : rows.size]
            _poles_from(spacing, first, nearest[rows], table)
    raise FloatingPointError("the secular equation did not converge: a defect, please report it")


def _poles_from(spacing: FloatArray, first: int, nearest: IntArray, out: FloatArray) -> None:
    """Distances of all poles from each root's nearest one; ∞ for that one, whose large term would drown the sum of the others."""
    np.take(spacing, nearest, axis=0, out=out, mode="clip")
    out[np.arange(nearest.size), first + nearest] = np.inf


def _third_order_step(
    value: FloatArray, slope: FloatArray, curvature: FloatArray, near: FloatArray, x: FloatArray
) -> FloatArray:
    """Step y to the root of −near/(x + y) + (v + (s − κv)y)/(1 − κy), κ = curvature/slope.

    The nearest pole enters exactly; the others by the one fraction with their value v, slope s and half second derivative
    at x. Cleared of denominators: h y² − b y + x·F = 0, h = s − κv, b = −(v + near·κ + x·h).
    """
    ratio = curvature / slope
    bend = slope - ratio * value
    linear = -(value + near * ratio + x * bend)
    constant = x * value - near
    root = np.sqrt(np.maximum(linear * linear - 4.0 * bend * constant, 0.0))
    return np.asarray(2.0 * constant / (linear + np.copysign(root, linear)))


def _first_guess(rest: FloatArray, near: FloatArray, far: FloatArray, gaps: FloatArray) -> FloatArray:
    """The root in (0, gap) of rest − near/x + far/(gap − x), without cancellation."""
    linear = rest * gaps + near + far
    root = np.sqrt(np.maximum(linear * linear - 4.0 * rest * near * gaps, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(linear >= 0.0, 2.0 * near * gaps / (linear + root), (linear - root) / (2.0 * rest))


def _chunks(n_poles: int, n_tables: int) -> tuple[list[tuple[int, int]], FloatArray]:
    """Ranges of roots to work on together, and memory for tables of roots × poles, shape (n_tables, rows, n_poles).

    Fresh temporaries of this size would cost as much in page faults as the arithmetic done on them.
    """
    n_roots = max(n_poles - 1, 0)
    rows = max(1, CHUNK_CELLS // max(n_poles, 1))
    ranges = [(first, min(first + rows, n_roots)) for first in range(0, n_roots, rows)]
    return ranges, np.empty((n_tables, min(rows, n_roots) + 1, n_poles))


@contextmanager
def _unbuffered() -> Iterator[None]:
    """Make NumPy's buffer tiny: otherwise it copies broadcast operands through it, which doubles the time of the tables."""
    with np.errstate():  # leaving it restores the buffer size too
        np.setbufsize(16)
        yield
