"""What the mechanisms that add noise to the whole Gram matrix share: the augmented row, the lattice, the sum.

A row x of the unit ball is augmented to z = (w, x), so that one symmetric matrix Σ z zᵀ holds the count, the sum and the
Gram matrix (``docs/derivations/additive.md``). The matrix is an exact integer on the lattice of spacing 2^(−2·bits); noise
is added to it as integers, and only then is anything converted to floating point.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypedDict

import numpy as np
import numpy.typing as npt

from dpmoments.array_types import FloatArray, IntegerArray
from dpmoments.mechanisms.base import MomentShape, NoisyMoments, Plan
from dpmoments.noise_law import NoiseLaw
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.rows.moments import Moments
from dpmoments.rows.rows import Rows

__all__ = ["AdditivePlan", "MomentVariances", "choose_augmentation", "choose_bits"]

FINEST_BITS = 20
COARSEST_BITS = 6
LARGEST_NOISE = 2.0**46
"""Standard deviations of noise in lattice units stay below this: far inside int64, and float64 draws below 2^52."""
DITHER_SHARE = 10
"""Floating-point noise is resolved to 2^-10 standard deviations; below that, uniform integers replace its bits."""
AUGMENTATION_STEPS = 64
"""w is a multiple of 1/64, so that w·2^bits is an integer on every lattice in use."""


def choose_bits(noise_scale: float, n_features: int = 1) -> int:
    """Lattice exponent b for noise of standard deviation ``noise_scale`` (unit ball) on the Gram matrix.

    The finest lattice, b ≤ 20, on which the noise stays below 2^46 units of 2^(−2b): coarser only where the noise is so
    large that the rounding of rows disappears in it, or where rows of ``n_features`` entries need it for exact products.

    Examples
    --------
    >>> choose_bits(1.0), choose_bits(1e6)
    (20, 13)
    """
    if noise_scale * 4.0**COARSEST_BITS > LARGEST_NOISE:
        raise ValueError(
            f"the budget is so small that the noise, {noise_scale:.3g} per entry, would drown a table of any size: "
            "give a larger budget"
        )
    bits = min(FINEST_BITS, (53 - (n_features - 1).bit_length()) // 2)
    while noise_scale * 4.0**bits > LARGEST_NOISE:
        bits -= 1
    return bits


def choose_augmentation(
    shape: MomentShape,
    neighbors: Neighbors,
    sensitivity: Callable[[float], float],
    diagonal_ratio: float = 2.0,
) -> float:
    """The appended constant w, by the rule: least error of the covariance in the worst case over public knowledge.

    To first order the error of G/n − μμᵀ has mean square (1/n²)·s(w)²·[d·r + d(d−1) + 2(d+1)‖μ‖²/w² + r/w⁴] times the
    off-diagonal variance at unit sensitivity, r the ratio of diagonal to off-diagonal variance; the last term stands
    only where the count is private. w minimises it at ‖μ‖ = 1 over the multiples of 1/64.

    Parameters
    ----------
    shape : MomentShape
    neighbors : Neighbors
    sensitivity : callable
        w ↦ the sensitivity the noise scale is proportional to.
    diagonal_ratio : float
        r above.

    Returns
    -------
    float
        In (0, 1]; 0 where no count and mean are wanted.
    """
    if not shape.mean:
        return 0.0
    d = shape.n_features
    private_count = diagonal_ratio if neighbors is Neighbors.ADD_REMOVE else 0.0

    def mean_square_error(w: float) -> float:
        terms = d * diagonal_ratio + d * (d - 1) + 2 * (d + 1) / w**2 + private_count / w**4
        return sensitivity(w) ** 2 * terms

    return min((step / AUGMENTATION_STEPS for step in range(1, AUGMENTATION_STEPS + 1)), key=mean_square_error)


class MomentVariances(TypedDict):
    """The entries that all noise laws have."""

    n_features: int
    diagonal_variance: float
    off_diagonal_variance: float
    sum_variance: float | None
    count_variance: float | None


@dataclass(frozen=True)
class AdditivePlan(Plan):
    """Noise with uncorrelated entries on the augmented Gram matrix.

    Attributes
    ----------
    augmentation : float
        w, a multiple of 1/64; 0 where the Gram matrix goes alone.
    bits : int
        The lattice exponent: rows are multiples of 2^−bits, the Gram matrix of 2^(−2·bits).
    """

    augmentation: float
    bits: int

    @property
    def dimension(self) -> int:
        """Rows of the matrix that noise is added to: d, or d + 1 with count and mean."""
        return self.shape.n_features + (1 if self.augmentation else 0)

    @property
    @abstractmethod
    def cell_variances(self) -> tuple[float, float]:
        """Variance of the noise on and off the diagonal of the augmented Gram matrix, unit-ball units."""

    @property
    @abstractmethod
    def noise(self) -> NoiseLaw:
        """The noise law: its class with the :attr:`moment_variances`, and what else it needs."""

    @property
    def moment_variances(self) -> MomentVariances:
        """What the variances of the cells come to for the Gram matrix, the sum and the count."""
        diagonal, off_diagonal = self.cell_variances
        w = self.augmentation
        count_variance = diagonal / w**4 if w else None
        return MomentVariances(
            n_features=self.shape.n_features,
            diagonal_variance=diagonal,
            off_diagonal_variance=off_diagonal,
            sum_variance=off_diagonal / w**2 if w else None,
            count_variance=0.0 if self.neighbors is Neighbors.REPLACE_ONE else count_variance,
        )

    @abstractmethod
    def draw(self, generator: np.random.Generator) -> npt.NDArray[np.int64]:
        """Draw the symmetric integer noise, shape (dimension, dimension), in units of 2^(−2·bits)."""

    def run(self, rows: Rows, generator: np.random.Generator) -> NoisyMoments:
        self.check_rows(rows)
        moments = rows.moments(bits=self.bits)
        noisy = add_integers(augmented_gram(moments, self.augmentation), self.draw(generator))
        unit = 4.0**-self.bits
        values = noisy.astype(np.float64) * unit
        public_count = self.neighbors.public_count(moments.count)
        if not self.augmentation:
            return NoisyMoments(count=public_count, sum=None, gram=values)
        w = self.augmentation
        return NoisyMoments(
            count=public_count if public_count is not None else float(values[0, 0]) / w**2,
            sum=values[0, 1:] / w,
            gram=np.ascontiguousarray(values[1:, 1:]),
        )


def augmented_gram(moments: Moments, augmentation: float) -> IntegerArray:
    """Σ z zᵀ for z = (w, x) in exact integers, shape (d + 1, d + 1); (d, d) where ``augmentation`` is 0."""
    if not augmentation:
        return moments.gram
    lattice_w = round(augmentation * 2**moments.bits)
    d = len(moments.sum)
    # Python integers: w²·n·2^(2·bits) passes int64 at a few million rows.
    matrix = np.empty((d + 1, d + 1), dtype=object)
    matrix[0, 0] = lattice_w**2 * moments.count
    matrix[0, 1:] = matrix[1:, 0] = moments.sum.astype(object) * lattice_w
    matrix[1:, 1:] = moments.gram
    return matrix


def add_integers(matrix: IntegerArray, noise: npt.NDArray[np.int64]) -> IntegerArray:
    """Exact sum of two integer matrices, in int64 where it cannot overflow and in Python integers elsewhere."""
    fits = matrix.dtype != object and (matrix.size == 0 or int(np.abs(matrix).max()) < 2**62)
    total: IntegerArray = (matrix if fits else matrix.astype(object)) + noise
    return total


def symmetric_from_triangle(
    diagonal: npt.NDArray[np.int64], off_diagonal: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """The symmetric matrix with the given diagonal and, row by row, the cells above it."""
    size = len(diagonal)
    matrix = np.zeros((size, size), dtype=np.int64)
    matrix[np.triu_indices(size, 1)] = off_diagonal
    matrix += matrix.T
    matrix[np.diag_indices(size)] = diagonal
    return matrix


def round_to_lattice(
    noise: FloatArray, bits: int, noise_scale: float, generator: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Symmetric noise in unit-ball units, as integers in units of 2^(−2·bits).

    Rounding the noise equals rounding the noisy sum, since the sum is an integer. But a float64 of size 2^l lies on a
    grid of 2^(l−52), and ties round to even: the low bits of the rounded noise are not fair coins, and over many cells their
    bias would show the low bits of the sum. So an independent uniform integer of k bits, k = ⌊log₂ σ⌋ − 10, is added to
    every cell: the low k bits of the result are then exactly uniform, whatever the sum's are, and the noise grows by a relative
    10⁻⁷. On the idealised law it is post-processing (``docs/derivations/additive.md``).

    Parameters
    ----------
    noise : ndarray of shape (D, D)
    bits : int
    noise_scale : float
        σ: the public, calibrated standard deviation of an entry, unit-ball units.
    generator : numpy.random.Generator

    Raises
    ------
    ArithmeticError
        If a draw is beyond 2^52 units (over 64 standard deviations).
    """
    scaled = noise * 4.0**bits
    if not float(np.abs(scaled).max()) < 2.0**52:
        raise ArithmeticError("a noise draw left the lattice: nothing was released; run again")
    rounded = np.rint(scaled).astype(np.int64)
    uniform_bits = math.frexp(lattice_scale(noise_scale, bits))[1] - 1 - DITHER_SHARE
    if uniform_bits < 1:
        return rounded
    size = len(rounded)
    half = 1 << (uniform_bits - 1)
    dither = generator.integers(-half, half, size * (size + 1) // 2, dtype=np.int64)
    return rounded + symmetric_from_triangle(dither[:size], dither[size:])


def lattice_scale(noise_scale: float, bits: int) -> float:
    """A noise scale in units of 2^(−2·bits); exact, as a power of two."""
    return math.ldexp(noise_scale, 2 * bits)
