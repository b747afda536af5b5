"""The numbers of a release's file: its noisy moments and the laws of their noise, read with every check."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dpmoments.noise_law import MomentPivot, NoiseLaw
from dpmoments.plain_values import finite_numbers, is_finite_number

__all__ = ["read_moments"]


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
