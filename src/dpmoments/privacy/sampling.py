"""Sampling: noise is drawn, rounded and dithered here, as the filter priced it."""

from __future__ import annotations

import math
from functools import lru_cache, singledispatch
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.base.arrays import FloatArray, IntegerArray
from dpmoments.base.errors import InputArithmeticError, InputTypeError
from dpmoments.privacy.discrete import (
    choose_by_score,
    discrete_gaussian,
    discrete_laplace,
    k_norm,
    names_above_threshold,
)
from dpmoments.privacy.laws import (
    Choice,
    DiscreteGaussian,
    DiscreteLaplace,
    DrawLaw,
    IsotropicDraw,
    KNorm,
    LevelSelection,
    MatrixLaplaceDraw,
)
from dpmoments.privacy.matrices import isotropic, matrix_laplace

_KEPT_BITS = 30
# Bits per SD to which floating-point noise is resolved. Uniform integers replace the bits below.
_DITHER_SHARE = 10


def coordinates_of(query: npt.ArrayLike) -> int:
    """Return the number of coordinates of a query with separate noise."""
    # The upper triangle of a symmetric matrix.
    shape = np.shape(query)
    return shape[0] * (shape[0] + 1) // 2 if len(shape) == 2 else math.prod(shape)


@singledispatch
def noised(law: DrawLaw, query: Any, generator: np.random.Generator) -> Any:
    """Draw the answer to a query under a noise distribution."""
    # Returns an ndarray, float or int of the query's shape: integers for draws on a lattice, else values without low
    # bits; the index of the chosen score.
    import_module("dpmoments.papers.sampling")  # registers the samplers of its laws
    if (sampler := noised.dispatch(type(law))) is noised.dispatch(object):
        raise InputTypeError(f"no sampler for noise {type(law).__name__}")
    return sampler(law, query, generator)


@noised.register
def _(law: DiscreteGaussian, query: Any, generator: np.random.Generator) -> IntegerArray:
    if law.off_diagonal_scale is None:
        exact = np.asarray(query)
        return _add_integers(exact, discrete_gaussian(law.scale, exact.size, generator))
    exact = _upper_triangle_mirrored(query)
    size = len(exact)
    diagonal = discrete_gaussian(law.scale, size, generator)
    off_diagonal = discrete_gaussian(law.off_diagonal_scale, size * (size - 1) // 2, generator)
    return _add_integers(exact, _symmetric_from_triangle(diagonal, off_diagonal))


@noised.register
def _(law: DiscreteLaplace, query: Any, generator: np.random.Generator) -> IntegerArray:
    draws = discrete_laplace(law.scale, coordinates_of(query), generator)
    if np.ndim(query) == 1:
        return _add_integers(np.asarray(query), draws)
    exact = _upper_triangle_mirrored(query)
    return _add_integers(exact, _symmetric_from_triangle(draws[: len(exact)], draws[len(exact) :]))


@noised.register
def _(law: KNorm, query: Any, generator: np.random.Generator) -> IntegerArray:
    exact = np.asarray(query)
    return _add_integers(exact, k_norm(law.scale, exact.size, law.blocks, generator))


@noised.register
def _(law: LevelSelection, query: Any, generator: np.random.Generator) -> dict[str, int]:
    return names_above_threshold(query, law.weights, generator)


@noised.register
def _(law: MatrixLaplaceDraw, query: Any, generator: np.random.Generator) -> IntegerArray:
    size = len(query)
    noise, deviation = matrix_laplace(size, law.rate, generator), math.sqrt((size + 1) / 2.0) / law.rate
    return with_rounded(noise, deviation, law.bits, query, generator)


@noised.register
def _(law: IsotropicDraw, query: Any, generator: np.random.Generator) -> IntegerArray:
    size = len(query)
    noise, deviation = isotropic(size, law.rate, generator), math.sqrt((coordinates_of(query) + 1) / 2.0) / law.rate
    return with_rounded(noise, deviation, law.bits, query, generator)


def with_rounded(
    noise: FloatArray, deviation: float, bits: int, query: Any, generator: np.random.Generator
) -> IntegerArray:
    """Return a symmetric query plus floating-point noise rounded to its lattice."""
    # ``deviation`` is the off-diagonal SD.
    return _add_integers(_upper_triangle_mirrored(query), _round_to_lattice(noise, bits, deviation, generator))


@noised.register
def _(law: Choice, query: Any, generator: np.random.Generator) -> int:
    return choose_by_score(np.asarray(query), 0.5 * law.epsilon, generator)


def _upper_triangle_mirrored(query: npt.ArrayLike) -> IntegerArray:
    """Return the symmetric matrix with this upper triangle."""
    # Nothing below the diagonal comes out without noise.
    mirrored: IntegerArray = np.array(query)
    rows, columns = _above_diagonal(len(mirrored))
    mirrored[columns, rows] = mirrored[rows, columns]
    return mirrored


@lru_cache(maxsize=8)
def _above_diagonal(size: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return rows and columns of the entries above the diagonal, row by row."""
    rows, columns = np.triu_indices(size, 1)
    rows.setflags(write=False)
    columns.setflags(write=False)
    return rows, columns


def _add_integers(matrix: IntegerArray, noise: npt.NDArray[np.int64]) -> IntegerArray:
    """Return the exact sum of two integer arrays, in int64 or in Python integers."""
    # Not by the largest absolute value: that of −2^63 is itself in int64.
    fits = matrix.dtype != object and int(matrix.min(initial=0)) > -(2**62) and int(matrix.max(initial=0)) < 2**62
    return (matrix if fits else matrix.astype(object)) + noise


def _symmetric_from_triangle(
    diagonal: npt.NDArray[np.int64], off_diagonal: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the symmetric matrix with this diagonal and, row by row, the entries above it."""
    size = len(diagonal)
    matrix = np.zeros((size, size), dtype=np.int64)
    rows, columns = _above_diagonal(size)
    matrix[rows, columns] = off_diagonal
    matrix[columns, rows] = off_diagonal
    np.fill_diagonal(matrix, diagonal)
    return matrix


def _round_to_lattice(
    noise: FloatArray, bits: int, noise_scale: float, generator: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Round symmetric noise in unit-ball units to integers in units of 2^(−2·bits)."""
    scaled = noise * 4.0**bits
    if not float(np.abs(scaled).max()) < 2.0**52:
        raise InputArithmeticError("a noise draw left the lattice: nothing was released; run again")
    rounded = np.rint(scaled).astype(np.int64)
    uniform_bits = math.frexp(math.ldexp(noise_scale, 2 * bits))[1] - 1 - _DITHER_SHARE
    if uniform_bits < 1:
        return rounded
    size = len(rounded)
    half = 1 << (uniform_bits - 1)
    dither = generator.integers(-half, half, size * (size + 1) // 2, dtype=np.int64)
    return rounded + _symmetric_from_triangle(dither[:size], dither[size:])


def without_low_bits(values: FloatArray, *, down: bool = False) -> FloatArray:
    """Round a floating-point sampler's result to 2^−30 of its largest entry, or down."""
    # The last bits of such a draw follow the arithmetic that made it, and that depends on the exact table: an
    # eigenvalue of 1 or of 1 − 2^−53 revealed which of two tables it was. Rounded so coarsely, the output equals that
    # of real arithmetic except if a value falls within rounding error of a boundary of the grid.
    largest = float(np.abs(values).max(initial=0.0))
    if not 0.0 < largest < np.inf:
        return values
    exponent = int(np.frexp(largest)[1]) - _KEPT_BITS
    rounding = np.floor if down else np.rint
    return np.asarray(np.ldexp(rounding(np.ldexp(values, -exponent)), exponent))
