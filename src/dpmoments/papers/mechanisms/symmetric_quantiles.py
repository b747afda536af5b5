"""SYMQ (Du et al. 2020): mean and scale from two private quantiles around the median."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import scipy

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import out_of_range
from dpmoments.mechanisms.base import ZCDP_LOSS_UNITS
from dpmoments.mechanisms.coordinatewise import MAX_BINS, CoordinateValue, choice_epsilon, choose, zoom
from dpmoments.mechanisms.means.base import MeanMechanism, MeanPlan, NoisyMean, NormalRows
from dpmoments.mechanisms.reliability import marked_names
from dpmoments.mechanisms.shape import Arithmetic, MomentShape
from dpmoments.messages.message import Message
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sensitivity import rank_score
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

RESOLUTION = 2.0**-34
"""Width of the finest bin of a quantile search, as a fraction of the radius."""
CERTAIN = 2.0
"""Min ratio of the right bin's score to what many wrong bins gain by their number."""


@dataclass(frozen=True)
class SymmetricQuantilesPlan(MeanPlan):
    """Calibrated :class:`SymmetricQuantiles`.

    The range, the bin width, and the privacy loss of one quantile.
    """

    radius: float
    resolution: float
    loss: PrivacyBudget

    arithmetic: ClassVar[Arithmetic] = Arithmetic.IDEALIZED

    def expected_errors(self, assumed: NormalRows) -> FloatArray:
        low, n = self.mechanism.options["quantile"], assumed.n_rows
        height = math.exp(-(float(scipy.special.ndtri(low)) ** 2) / 2.0) / math.sqrt(2.0 * math.pi)
        # The midpoint of exact quantiles has variance b/(2f²n), and its difference from the mean does not depend on the mean.
        sampling = low / (2.0 * height**2 * n) - 1.0 / n
        # Only one level of the search resolves rows. Its choice is off by a Laplace number of ranks, of variance 8/ε².
        ranks = 2.0 / choice_epsilon(self.level_loss)
        return assumed.standard_deviations * math.sqrt(sampling + (ranks / (height * n)) ** 2)

    @property
    def level_loss(self) -> PrivacyBudget:
        """Privacy loss of one level of the search for a quantile."""
        part, *_ = self.loss.split(*[1.0] * len(zoom(-2.0 * self.radius, 2.0 * self.radius, self.resolution)))
        return part

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> NoisyMean:
        self.check_rows(rows)
        n_rows = self.count_of(rows, privacy_filter)
        low = self.mechanism.options["quantile"]
        pairs = np.array(
            [
                [
                    private_quantile(
                        rows,
                        privacy_filter,
                        self.loss,
                        feature=j,
                        level=level,
                        radius=self.radius,
                        width=self.resolution,
                    )
                    for level in (low, 1.0 - low)
                ]
                for j in range(self.shape.n_features)
            ]
        )
        means = pairs.mean(axis=1)
        scales = (pairs.max(axis=1) - means) / -float(scipy.special.ndtri(low))
        # Both quantiles beyond the radius, and not by noise: two thirds of the values lie there.
        beyond = np.abs(pairs).min(axis=1) > self.radius
        beyond &= pairs[:, 0] * pairs[:, 1] > 0.0
        resolves = self._resolves(low, n_rows)
        beyond &= resolves
        warnings: list[Message] = []
        if beyond.any():
            names = marked_names(rows.schema.feature_names, beyond.tolist())
            warnings.append(Message("values-beyond-radius", names=names))
        if not resolves:
            warnings.append(Message("mean-lost"))
        diagnostics = {"quantiles": pairs.tolist(), "scales": scales.tolist(), "warnings": tuple(warnings)}
        return NoisyMean(np.where(beyond, means, np.clip(means, -self.radius, self.radius)), n_rows, diagnostics)

    def _resolves(self, level: float, n_rows: float) -> bool:
        """Return True if the right bin outweighs all others."""
        # e^(ε·level·n/2) against their number, with a margin.
        return choice_epsilon(self.level_loss) * level * n_rows / 2.0 >= CERTAIN * math.log(MAX_BINS)


@dataclass(frozen=True)
class SymmetricQuantiles(MeanMechanism):
    """Midpoint of the private quantiles b and 1 − b of each coordinate.

    The mean of a symmetric distribution.

    Quantiles are searched in twice the radius. A midpoint beyond the radius is clipped to it, unless both of its quantiles are
    beyond it.

    **Privacy.** Half of a coordinate's budget for each quantile, an exponential mechanism over a grid (several levels of 4096
    bins if the range is wide), pure ε or ε²/8-zCDP.

    Parameters
    ----------
    radius : float, optional
        Bound on the mean of every coordinate. Default: 1 for rows in the unit ball; otherwise required.
    quantile : float
        b; 0.35 in the paper.

    Examples
    --------
    >>> shape = MomentShape(1, n_rows=1000, row_norm=None)
    >>> SymmetricQuantiles(radius=10.0).plan(shape, PrivacyBudget.zcdp(0.5), "replace_one").loss
    PrivacyBudget.zcdp(rho=0.25)
    """

    radius: float | None = None
    quantile: float = 0.35

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset(BudgetKind)
    loss_units: ClassVar[Mapping[BudgetKind, LossUnit]] = ZCDP_LOSS_UNITS
    supported_neighbors: ClassVar[frozenset[Neighbors]] = frozenset({Neighbors.REPLACE_ONE})
    public_name: ClassVar[str | None] = "symq"
    summary: ClassVar[str] = "each coordinate: midpoint of two private quantiles"
    source: ClassVar[str] = "Du, Foot, Moniot, Bray & Groce 2020 (SYMQ)"

    def __post_init__(self) -> None:
        self.require_positive("radius")
        if not 0.0 < self.quantile < 0.5:
            raise out_of_range("quantile", self.quantile, "below-half")

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> SymmetricQuantilesPlan:
        radius = self.known_radius(self.radius, shape)
        count_loss, rest = self.divide_for_count(shape, budget, neighbors)
        half, *_ = rest.split(*[1.0] * (2 * shape.n_features))
        return SymmetricQuantilesPlan(
            self, shape, neighbors, budget, radius, radius * RESOLUTION, half, count_loss=count_loss
        )


def private_quantile(
    rows: Rows,
    privacy_filter: PrivacyFilter,
    loss: PrivacyBudget,
    *,
    feature: int,
    level: float,
    radius: float,
    width: float,
) -> float:
    """Return a value near the ``level`` quantile of one coordinate, to within ``width``.

    It is in [−2·radius, 2·radius].

    Exponential mechanism over bins: a bin's score is minus the distance from level·n to the interval of ranks the bin covers,
    which one replaced row changes by at most 1; values outside the range count at its ends. The chosen bin is divided into
    smaller bins at the next level.
    """
    lower, upper = -2.0 * radius, 2.0 * radius
    widths = zoom(lower, upper, width)
    for index, (cell, part) in enumerate(zip(widths, loss.split(*[1.0] * len(widths)), strict=True)):
        edges = np.linspace(lower, upper, round((upper - lower) / cell) + 1)
        histogram = rows.histogram(CoordinateValue(feature), edges)
        ranks = histogram.below + np.concatenate([[0], np.cumsum(histogram.counts)])
        # Values outside the range count at its ends: else all bins would be alike if most values were outside.
        ranks[0] = 0 if lower <= -2.0 * radius else ranks[0]
        ranks[-1] = histogram.total if upper >= 2.0 * radius else ranks[-1]
        target = level * histogram.total
        distance = np.maximum(np.maximum(ranks[:-1] - target, target - ranks[1:]), 0.0)
        what = Message("coordinate-quantile", quantile=level, feature=feature + 1, level=index + 1)
        chosen = choose(-distance, rank_score(rows.neighbors), part, privacy_filter, what)
        lower, upper = float(edges[chosen]), float(edges[chosen + 1])
    return (lower + upper) / 2.0
