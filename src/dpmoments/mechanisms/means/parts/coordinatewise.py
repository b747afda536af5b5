"""Parts shared by estimators that treat one coordinate after another: clamped means, private choices, searches."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.array_types import FloatArray
from dpmoments.mechanisms.parts.additive import choose_bits
from dpmoments.mechanisms.parts.lattice_noise import noise_scale_for, with_noise
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.distances import Sensitivity
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import Choice
from dpmoments.privacy.sensitivity import row_sum_l1, row_sum_l2
from dpmoments.rows.rows import Rows

__all__ = ["CELLS", "Coordinate", "choose", "clamped_mean", "zoom"]

CELLS = 4096
"""Most cells of one level of a search; a range that needs more is searched in several levels."""


def clamped_mean(
    rows: Rows,
    privacy_filter: PrivacyFilter,
    loss: PrivacyBudget,
    *,
    feature: int,
    center: float,
    half_width: float,
    n_rows: float,
) -> float:
    """Noisy mean of one coordinate clamped to [center − half_width, center + half_width].

    **Privacy.** ``loss`` under replace-one. The integer sum moves by at most twice the half width; its noise is discrete Gaussian
    for a zCDP loss, discrete Laplace for a pure one. It is divided by ``n_rows``, public or noisy.
    """
    linear, offset = np.zeros((1, rows.n_features)), np.zeros(rows.n_features)
    linear[0, feature], offset[feature] = 1.0, center
    pure = loss.kind is BudgetKind.PURE
    sensitivity = row_sum_l1(rows.neighbors, 1) if pure else row_sum_l2(rows.neighbors)
    scale = noise_scale_for(loss, sensitivity.value)
    bits = choose_bits(scale)
    total = rows.moments(offset, linear, half_width, bits=bits).sum
    what = f"mean of coordinate {feature + 1}"
    noisy = with_noise(privacy_filter, what, total, sensitivity, scale, bits=bits, pure=pure)
    return center + float(noisy[0]) * half_width / n_rows


def choose(
    scores: npt.NDArray[Any], sensitivity: Sensitivity, loss: PrivacyBudget, privacy_filter: PrivacyFilter, what: str
) -> int:
    """Exponential mechanism: an index with probability ∝ exp(ε·score/(2Δ)), Δ the sensitivity of the scores.

    **Privacy.** ε-DP, with bounded range ε, hence ε²/8-zCDP (Cesar & Rogers 2021): a zCDP loss ρ allows ε = √(8ρ).
    """
    epsilon = loss.epsilon if loss.kind is BudgetKind.PURE else math.sqrt(8.0 * loss.rho)
    # Two units in the last place down: the square root and the quotient may round up.
    law = Choice(math.nextafter(math.nextafter(epsilon / sensitivity.value, 0.0), 0.0))
    return int(privacy_filter.draw(what, law, scores, sensitivity))


def zoom(lower: float, upper: float, width: float) -> Sequence[float]:
    """Cell widths, level by level, of a search of [lower, upper] down to ``width``, with at most CELLS cells a level.

    Examples
    --------
    >>> zoom(0.0, 8.0, 1.0), [round(width, 6) for width in zoom(0.0, 4096.0**2, 1.0)]
    ([1.0], [4096.0, 1.0])
    """
    ratio = max((upper - lower) / width, 1.0)
    levels = max(1, math.ceil(math.log(ratio) / math.log(CELLS) - 1e-9))
    factor = ratio ** (1.0 / levels)
    return [width * factor ** (levels - 1 - level) for level in range(levels)]


@dataclass(frozen=True, slots=True)
class Coordinate:
    """The statistic that is one coordinate of a row."""

    feature: int

    def __call__(self, block: FloatArray) -> FloatArray:
        """One column of a block, shape (m, d) → (m,)."""
        return block[:, self.feature]
