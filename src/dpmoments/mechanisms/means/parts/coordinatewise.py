"""Parts shared by estimators that treat one coordinate after another: budget, clamped means, private choices."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.array_types import FloatArray
from dpmoments.mechanisms.parts.additive import choose_bits
from dpmoments.noise.lattice import discrete_gaussian, discrete_laplace
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import zcdp_noise_scale
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.sensitivity import row_sum_l2
from dpmoments.rows.rows import Rows

__all__ = ["CELLS", "Coordinate", "choose", "clamped_mean", "divide", "zoom"]

CELLS = 4096
"""Most cells of one level of a search; a range that needs more is searched in several levels."""


def divide(budget: PrivacyBudget, n_features: int) -> PrivacyBudget:
    """The share of one coordinate: ε/d under pure composition; ρ/d under zCDP, to which (ε, δ) budgets are converted.

    Examples
    --------
    >>> divide(PrivacyBudget.zcdp(0.5), 2), divide(PrivacyBudget.pure(1.0), 4)
    (PrivacyBudget.zcdp(rho=0.25), PrivacyBudget.pure(epsilon=0.25))
    """
    whole = PrivacyBudget.zcdp(budget.to_rho()) if budget.kind is BudgetKind.APPROXIMATE else budget
    return whole.split(*[1.0] * n_features)[0]


def clamped_mean(
    rows: Rows,
    generator: np.random.Generator,
    loss: PrivacyBudget,
    *,
    feature: int,
    center: float,
    half_width: float,
    n_rows: float,
) -> float:
    """Noisy mean of one coordinate clamped to [center − half_width, center + half_width].

    **Privacy.** ``loss`` under replace-one, for a public number of rows. The integer sum moves by at most twice the half width;
    its noise is discrete Gaussian for a zCDP loss, discrete Laplace for a pure one. It is divided by the public n, since the
    number of rows in range is private.
    """
    linear, offset = np.zeros((1, rows.n_features)), np.zeros(rows.n_features)
    linear[0, feature], offset[feature] = 1.0, center
    sensitivity = row_sum_l2(Neighbors.REPLACE_ONE)
    pure = loss.kind is BudgetKind.PURE
    scale = math.nextafter(sensitivity / loss.epsilon, math.inf) if pure else zcdp_noise_scale(loss.rho, sensitivity)
    bits = choose_bits(scale)
    total = rows.moments(offset, linear, half_width, bits=bits).sum
    draw = discrete_laplace if pure else discrete_gaussian
    noisy = float((total + draw(math.ldexp(scale, bits), 1, generator))[0])
    return center + noisy * 2.0**-bits * half_width / n_rows


def choose(scores: FloatArray, loss: PrivacyBudget, generator: np.random.Generator) -> int:
    """Exponential mechanism: an index with probability ∝ exp(ε·score/2), for scores of sensitivity 1.

    **Privacy.** ε-DP, with bounded range ε, hence ε²/8-zCDP (Cesar & Rogers 2021): a zCDP loss ρ allows ε = √(8ρ).

    Drawn by the Gumbel trick, in log space, so that no weight overflows.
    """
    epsilon = loss.epsilon if loss.kind is BudgetKind.PURE else math.nextafter(math.sqrt(8.0 * loss.rho), 0.0)
    return int(np.argmax(0.5 * epsilon * scores + generator.gumbel(size=len(scores))))


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
