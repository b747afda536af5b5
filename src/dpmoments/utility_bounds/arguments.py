"""Arguments that bounds on accuracy share, and what refuses impossible ones."""

from __future__ import annotations

import math
from typing import Literal

import numpy as np
import numpy.typing as npt

from dpmoments.array_types import FloatArray

__all__ = [
    "Constants",
    "NoiseKind",
    "check_dimension",
    "check_draw",
    "check_positive",
    "check_probability",
    "descending",
]

Constants = Literal["sharp", "paper"]
"""Whose constants: ours, or those of the paper's own proof."""
NoiseKind = Literal["laplace", "gaussian"]


def descending(eigenvalues: npt.ArrayLike) -> FloatArray:
    values = np.asarray(eigenvalues, dtype=np.float64)
    if values.ndim != 1 or values.size == 0 or not np.isfinite(values).all() or (values < 0.0).any():
        raise ValueError("eigenvalues must be a vector of finite numbers, none negative: those of a Gram matrix")
    return np.asarray(np.sort(values)[::-1])


def check_draw(temperature: float, spread: float, n_features: int) -> None:
    check_positive("temperature", temperature, or_zero=True)
    check_positive("spread", spread, or_zero=True)
    check_dimension(n_features)


def check_dimension(n_features: int) -> None:
    if n_features < 1:
        raise ValueError(f"n_features={n_features!r}: a sphere needs at least one dimension")


def check_positive(name: str, value: float, *, or_zero: bool = False) -> None:
    if not (0.0 < value < math.inf or (or_zero and value == 0.0)):
        raise ValueError(f"{name}={value!r} must be finite and {'not negative' if or_zero else 'positive'}")


def check_probability(failure: float) -> None:
    if not 0.0 < failure < 1.0:
        raise ValueError(f"failure={failure!r} is a probability, above 0 and below 1")
