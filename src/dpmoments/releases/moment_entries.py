"""The numbers of a release's file: its noisy moments and the laws of their noise, written, and read with every check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.values import finite_numbers, is_finite_number
from dpmoments.noise.law import NoiseLaw
from dpmoments.noise.pivots import MomentPivot

__all__ = ["read_moments", "written_moments"]


class NoisyNumbers(Protocol):
    """What a release holds before any repair."""

    @property
    def noisy_count(self) -> float | None:
        """The number of rows."""

    @property
    def noisy_sum(self) -> FloatArray | None:
        """Their sum."""

    @property
    def noisy_gram(self) -> FloatArray:
        """Their Gram matrix."""

    @property
    def center(self) -> FloatArray | None:
        """What sum and Gram matrix are about."""

    @property
    def noise(self) -> NoiseLaw | None:
        """The law of the noise."""

    @property
    def pivot(self) -> MomentPivot | None:
        """The law of the run."""


def written_moments(release: NoisyNumbers) -> dict[str, Any]:
    """Plain values of count, sum, Gram matrix, centre, noise law and pivot for a file; no bit is lost."""
    noisy_sum, center = release.noisy_sum, release.center
    return {
        "noise": None if release.noise is None else release.noise.to_dict(),
        "noisy_count": release.noisy_count,
        "noisy_sum": None if noisy_sum is None else noisy_sum.tolist(),
        "noisy_gram_upper_triangle": release.noisy_gram[np.triu_indices(len(release.noisy_gram))].tolist(),
        "center": None if center is None else center.tolist(),
        "pivot": None if release.pivot is None else release.pivot.to_dict(),
    }


def read_moments(content: Mapping[str, Any], n_features: int) -> dict[str, Any]:
    """Count, sum, Gram matrix, centre, noise law and pivot of a release's file, under the names of the release's attributes.

    Raises
    ------
    KeyError, TypeError, ValueError
        If an entry is absent, is not what it must be, or is for another number of features.
    """
    d = n_features
    upper = finite_numbers(content["noisy_gram_upper_triangle"], d * (d + 1) // 2, "noisy_gram_upper_triangle")
    gram = np.empty((d, d))
    gram[np.triu_indices(d)] = upper
    gram.T[np.triu_indices(d)] = upper
    count, noisy_sum, center = content["noisy_count"], content["noisy_sum"], content["center"]
    if count is not None and not is_finite_number(count):
        raise ValueError("noisy_count is not a finite number")
    noise = None if content["noise"] is None else NoiseLaw.from_dict(content["noise"])
    if noise is not None and noise.n_features != d:
        raise ValueError(f"the noise law is for {noise.n_features} features and the schema has {d}")
    pivot = None if content["pivot"] is None else MomentPivot.from_dict(content["pivot"])
    if pivot is not None and pivot.n_features != d:
        raise ValueError(f"the pivot is for {pivot.n_features} features and the schema has {d}")
    return {
        "noisy_count": None if count is None else float(count),
        "noisy_sum": None if noisy_sum is None else finite_numbers(noisy_sum, d, "noisy_sum"),
        "noisy_gram": gram,
        "center": None if center is None else finite_numbers(center, d, "center"),
        "noise": noise,
        "pivot": pivot,
    }
