"""Samplers of the draws that only mechanisms of papers make; in floating point.

The privacy filter loads them through :func:`dpmoments.privacy.sampling.noised`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy

from dpmoments.base.errors import InputValueError, shown
from dpmoments.base.values import FloatArray, IntegerArray
from dpmoments.papers.laws import (
    AdditiveWishartDraw,
    Directions,
    EigenvalueBound,
    GaussianDraw,
    RaisedWishartSampling,
    WishartSampling,
)
from dpmoments.papers.sphere import sample_bingham, sample_orthonormal_frame
from dpmoments.privacy.sampling import noised, symmetric_gaussian, with_rounded, without_low_bits


@noised.register
def _(law: GaussianDraw, query: Any, generator: np.random.Generator) -> FloatArray:
    exact = np.asarray(query, dtype=np.float64)
    if law.symmetric:
        noisy = exact + symmetric_gaussian(len(exact), law.scale, generator)
        return without_low_bits((noisy + noisy.T) / 2.0)
    return without_low_bits(exact + law.scale * generator.standard_normal(exact.shape))


@noised.register
def _(law: AdditiveWishartDraw, query: Any, generator: np.random.Generator) -> IntegerArray:
    identity = np.eye(law.dimension)
    noise = wishart(math.sqrt(law.scale) * identity, law.degrees, generator) - law.degrees * law.scale * identity
    return with_rounded(noise, math.sqrt(law.degrees * law.scale**2), law.bits, query, generator)


@noised.register
def _(law: WishartSampling | RaisedWishartSampling, query: Any, generator: np.random.Generator) -> FloatArray:
    # Eigenvalues below ``least`` are raised to it, and the matrix is padded.
    least = law.raised if isinstance(law, RaisedWishartSampling) else 0.0
    eigenvalues, eigenvectors = np.linalg.eigh(np.asarray(query, dtype=np.float64))
    # Any square root of the scale matrix serves; this one exists for singular matrices too.
    root = eigenvectors * np.sqrt(np.maximum(eigenvalues, least) + law.padding)
    if law.inverse:
        return without_low_bits(inverse_wishart(root, law.degrees, generator) * (law.degrees - len(root) - 1))
    return without_low_bits(wishart(root, law.degrees, generator) / law.degrees)


@noised.register
def _(law: EigenvalueBound, query: Any, generator: np.random.Generator) -> float:
    noisy = float(without_low_bits(np.array(float(query) + generator.laplace(0.0, law.scale)), down=True))
    return max(0.0, noisy - law.allowance)


@noised.register
def _(law: Directions, query: Any, generator: np.random.Generator) -> FloatArray:
    matrix = np.asarray(query, dtype=np.float64)
    if law.projected:
        return without_low_bits(sample_orthonormal_frame(matrix, law.temperatures, generator)[0])
    return without_low_bits(np.column_stack([sample_bingham(t * matrix, None, generator) for t in law.temperatures]))


def wishart(scale_factor: FloatArray, degrees_of_freedom: float, rng: np.random.Generator) -> FloatArray:
    """Draw from Wishart_d(L Lᵀ, ν), ν > d − 1, by the Bartlett decomposition.

    L is a Cholesky factor, shape (d, d).
    """
    factor = scale_factor @ _bartlett(len(scale_factor), degrees_of_freedom, rng)
    return factor @ factor.T


def inverse_wishart(scale_factor: FloatArray, degrees_of_freedom: float, rng: np.random.Generator) -> FloatArray:
    """Draw from the inverse Wishart with scale matrix L Lᵀ.

    The inverse of a Wishart_d((L Lᵀ)⁻¹, ν) draw, shape (d, d). Its mean is L Lᵀ/(ν − d − 1) for ν > d + 1. Parameters
    as in :func:`wishart`.
    """
    # W = L⁻ᵀ B Bᵀ L⁻¹ with B Bartlett's factor, so W⁻¹ = (L B⁻ᵀ)(L B⁻ᵀ)ᵀ.
    bartlett = _bartlett(len(scale_factor), degrees_of_freedom, rng)
    factor = scale_factor @ scipy.linalg.solve_triangular(bartlett, np.eye(len(bartlett)), lower=True).T
    return factor @ factor.T


def _bartlett(d: int, degrees_of_freedom: float, rng: np.random.Generator) -> FloatArray:
    if not degrees_of_freedom > d - 1:
        raise InputValueError(f"degrees_of_freedom={shown(degrees_of_freedom)} must be above {d - 1:g}")
    factor = np.tril(rng.standard_normal((d, d)), -1)
    factor[np.diag_indices(d)] = np.sqrt(rng.chisquare(degrees_of_freedom - np.arange(d)))
    return factor
