"""Karwa & Vadhan (2018), coordinate by coordinate: find the scale, a bin near the mean, and the mean of values near that bin."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dpmoments.array_types import FloatArray
from dpmoments.mechanisms.base import Arithmetic, MomentShape
from dpmoments.mechanisms.means.base import MeanMechanism, MeanPlan, NoisyMean
from dpmoments.mechanisms.means.parts.coordinatewise import Coordinate, choose, clamped_mean, divide, zoom
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.rows.rows import Rows

__all__ = ["KarwaVadhan", "KarwaVadhanPlan", "private_scales"]

LARGEST_EXPONENT = 200
"""Scales are searched from 2^−200 to 2^200."""


@dataclass(frozen=True)
class KarwaVadhanPlan(MeanPlan):
    """A calibrated :class:`KarwaVadhan`: the privacy loss of each step for one coordinate (None for a public scale)."""

    radius: float
    scale: float | None
    scale_loss: PrivacyBudget | None
    location_loss: PrivacyBudget
    mean_loss: PrivacyBudget

    arithmetic: ClassVar[Arithmetic] = Arithmetic.IDEALIZED

    def run(self, rows: Rows, generator: np.random.Generator) -> NoisyMean:
        self.check_rows(rows)
        n_rows, d = float(rows.count()), self.shape.n_features
        if self.scale_loss is None:
            assert self.scale is not None
            scales = np.full(d, self.scale)
        else:
            scales = private_scales(rows, generator, self.scale_loss)
        centers = np.array([self._locate(rows, generator, j, float(scales[j])) for j in range(d)])
        # Half a bin, plus √(2 ln n) standard deviations: of n normal values about one at most lies farther from its mean.
        widths = scales * (0.5 + math.sqrt(2.0 * math.log(max(n_rows, 3.0))))
        means = [
            clamped_mean(
                rows,
                generator,
                self.mean_loss,
                feature=j,
                center=float(centers[j]),
                half_width=float(widths[j]),
                n_rows=n_rows,
            )
            for j in range(d)
        ]
        diagnostics = {"scales": scales.tolist(), "centers": centers.tolist(), "half_widths": widths.tolist()}
        return NoisyMean(np.array(means), n_rows, diagnostics)

    def _locate(self, rows: Rows, generator: np.random.Generator, feature: int, scale: float) -> float:
        """Middle of a bin of width ``scale`` that holds many rows: exponential mechanism on the counts."""
        lower, upper = -self.radius - scale / 2.0, self.radius + scale / 2.0
        widths = zoom(lower, upper, min(scale, upper - lower))
        for width, loss in zip(widths, self.location_loss.split(*[1.0] * len(widths)), strict=True):
            n_cells = max(1, round((upper - lower) / width))
            edges = np.linspace(lower, upper, n_cells + 1)
            counts = rows.histogram(Coordinate(feature), edges).counts.astype(np.float64)
            chosen = choose(counts, loss, generator)
            lower, upper = float(edges[chosen]), float(edges[chosen + 1])
        return (lower + upper) / 2.0


@dataclass(frozen=True)
class KarwaVadhan(MeanMechanism):
    """Per coordinate: private scale, private location, noisy clamped mean.

    Where no scale is given, it comes from a log-scale histogram of paired differences (bins [2^i, 2^{i+1})), a quarter of the
    budget; a quarter finds a bin of width σ near the mean; the rest is the noisy mean, clamped to that bin ± σ√(2 ln n).

    **Privacy.** The budget is divided among coordinates and steps. Both searches are exponential mechanisms over a finite range,
    pure ε or ε²/8-zCDP; the mean is an exact discrete release, divided by the public n. A row is in one pair, so a histogram of
    pairs is no more sensitive than one of rows. Pairs are formed by position, so the mechanism supports replace-one only: a row
    added or removed would shift all pairs after it.

    Parameters
    ----------
    radius : float, optional
        Bound on the mean of every coordinate. Default: 1 for rows in the unit ball; else it must be given.
    scale : float, optional
        Standard deviation of every coordinate, if it is public.

    Examples
    --------
    >>> shape = MomentShape(2, n_rows=1000, row_norm=None)
    >>> plan = KarwaVadhan(radius=1e6, scale=1.0).plan(shape, PrivacyBudget.zcdp(0.5), "replace_one")
    >>> plan.location_loss, plan.mean_loss
    (PrivacyBudget.zcdp(rho=0.0625), PrivacyBudget.zcdp(rho=0.1875))
    """

    radius: float | None = None
    scale: float | None = None

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset(BudgetKind)
    supported_neighbors: ClassVar[frozenset[Neighbors]] = frozenset({Neighbors.REPLACE_ONE})
    summary: ClassVar[str] = "each coordinate: private scale, private bin, clamped mean"
    source: ClassVar[str] = "Karwa & Vadhan 2018; finite range, exponential mechanism"

    def __post_init__(self) -> None:
        self.require_positive("radius", "scale")

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> KarwaVadhanPlan:
        share = divide(budget, shape.n_features)
        scale_loss = None
        if self.scale is None:
            scale_loss, location, mean = share.split(0.25, 0.25, 0.5)
        else:
            location, mean = share.split(0.25, 0.75)
        radius = self.known_radius(self.radius, shape)
        return KarwaVadhanPlan(self, shape, neighbors, budget, radius, self.scale, scale_loss, location, mean)


def private_scales(rows: Rows, generator: np.random.Generator, loss: PrivacyBudget) -> FloatArray:
    """Standard deviation of every coordinate to a factor of about 2, from paired differences; ``loss`` for each coordinate.

    |x − x′| of two normal values most often lies in [σ, 2σ) or close to it; the upper edge of the chosen bin is returned.
    """
    edges = np.exp2(np.arange(-LARGEST_EXPONENT, LARGEST_EXPONENT + 1, dtype=np.float64))
    d = rows.n_features
    counts = np.zeros((d, len(edges) + 1))
    for differences in _paired_differences(rows):
        bins = np.searchsorted(edges, np.abs(differences), side="right")
        for j in range(d):
            counts[j] += np.bincount(bins[:, j], minlength=len(edges) + 1)
    chosen = [choose(counts[j, 1:-1], loss, generator) for j in range(d)]
    scales: FloatArray = edges[1:][chosen]
    return scales


def _paired_differences(rows: Rows) -> Iterator[FloatArray]:
    """Differences of rows 0 and 1, 2 and 3, …, however the rows are cut into blocks; an unpaired last row is left out."""
    waiting: list[Any] = []
    for block in rows.encoded_blocks():
        joined = np.concatenate([*waiting, block])
        paired = len(joined) // 2 * 2
        waiting = [joined[paired:]] if paired < len(joined) else []
        yield joined[1:paired:2] - joined[0:paired:2]
