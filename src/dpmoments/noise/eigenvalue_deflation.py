"""Spectrum and eigenvectors of a diagonal matrix restricted to the complement of one vector, in O(k²).

The step between two draws of the sequential eigenvector sampler (:mod:`dpmoments.noise.orthonormal_frame`).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.secular_equation import SecularRoots, solve_secular_equation

__all__ = ["Deflation", "deflate"]

IntArray = npt.NDArray[np.int64]

RELATIVE_GAP = 1e-30
"""Poles nearer than this share of the spectrum's range count as equal; far below rounding, so nothing is lost."""

NEGLIGIBLE = 1e-20
"""Coordinates of the removed vector below this count as zero."""


@dataclass(frozen=True, slots=True)
class Deflation:
    """The restriction of diag(λ) to the complement of a unit vector.

    Attributes
    ----------
    eigenvalues : ndarray of shape (k − 1,)
        Of the restriction, in descending order; they interlace λ.
    direction : ndarray of shape (k,)
        The removed unit vector. It differs from the one given by rounding, and is orthogonal, to rounding, to
        everything that :meth:`lift` returns.
    """

    eigenvalues: FloatArray
    direction: FloatArray
    _order: IntArray
    _poles: IntArray
    _persistent: IntArray
    _roots: SecularRoots
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
            Orthogonal to ``direction``; the map is an isometry.
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
    O(k²): the new eigenvalues solve the secular equation (:mod:`dpmoments.noise.secular_equation`). Equal poles are first
    merged by a reflection, and poles whose weight is negligible left out; both persist as eigenvalues (Dongarra &
    Sorensen 1987). See docs/derivations/iterative_eigenvectors.md.

    Examples
    --------
    >>> deflation = deflate(np.array([3.0, 1.0]), np.array([0.6, 0.8]))
    >>> deflation.eigenvalues, deflation.lift(np.eye(1)).ravel() @ [0.6, 0.8]
    (array([2.28]), ...)
    """
    # Dividing by a power of two near the range changes no significant digit and keeps cubes of differences finite.
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

    roots, squared_weights = solve_secular_equation(scaled[poles], direction[poles] ** 2)
    weights = np.copysign(np.sqrt(squared_weights), direction[poles])
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
    """One Householder reflection in each group of equal poles: symmetric, orthogonal, and commuting with diag(λ)."""

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
