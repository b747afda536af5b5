"""The variance-aware mean, written a second time from `docs/evidence/derivations/means.md`: see plain_answers.

Every constant is a number here, so that none can change unseen.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import norm

from dpmoments.base.message import Message
from dpmoments.mechanisms.means.base import NoisyMean
from dpmoments.papers.mechanisms.mapped_rows import NormHistogram, norm_edges
from references.plain_answers import Answers, finest_bits, lengths
from references.plain_balls import clipped_size, clipped_sum, shortened, spread_of


def variance_aware(table: np.ndarray, rho: float, answers: Answers, found: NoisyMean) -> dict[str, Any]:
    """Search, scales, mean; of what was ``found``, the centers are looked at, each when its own is known."""
    run = PlainRun(table, rho, answers, found)
    run.search()
    run.find_scales()
    return run.finish()


def limited(number: float) -> float:
    """In the range that the lattice takes."""
    return min(max(number, 1e-100), 1e100)


def median_of(histogram: NormHistogram) -> float | None:
    """The upper edge of the bin with the middle row, of rows that stand out; the last edge for what is beyond."""
    counts = histogram.occupied
    if not counts.sum():
        return None
    place = next(index for index, below in enumerate(np.cumsum(counts)) if below >= 0.5 * counts.sum())
    return float([*histogram.edges, histogram.edges[-1]][place])


class PlainRun:
    """One run."""

    def __init__(self, table: np.ndarray, rho: float, answers: Answers, found: NoisyMean) -> None:
        self.table, self.answers, self.d, self.n_rows = table, answers, table.shape[1], float(len(table))
        self.total = rho
        if not answers.replace_one:
            self.n_rows, self.total = answers.count(len(table), 0.01 * rho), 0.99 * rho
        self.left = self.total
        self.center, self.spread = np.zeros(self.d), np.ones(self.d)
        self.radius: float | None = None
        self.steps: list[dict[str, Any]] = []
        self.settled, self.moved = False, 0.0
        self._told = [np.array(step["center"]) for step in found.diagnostics["steps"][1:]] + [found.mean]

    def error(self, rho: float) -> float:
        """Of a mean, from noise, at clipping radius 1."""
        return self.answers.of_sum * math.sqrt(self.d / (2.0 * rho)) / self.n_rows

    def look(self, rho: float, scales: np.ndarray, typical: float, octaves: int) -> NormHistogram:
        """The norms about the center."""
        self.left -= rho
        what = Message("norm-histogram", histogram=len(self.steps) + 1)
        norms = lengths((self.table - self.center) / scales)
        return self.answers.histogram(what, norms, norm_edges(typical, octaves=octaves), rho)

    def step(
        self, rho: float, scales: np.ndarray, radius: float, *, squares_rho: float = 0.0, shrink: bool = True
    ) -> Any:
        """Move the center to a noisy clipped mean; the noisy sums, and their noise."""
        self.left -= rho + squares_rho
        w, step = (self.table - self.center) / scales, len(self.steps) + 1
        total, noise = clipped_sum(step, w, radius, rho, self.answers, squares_rho=squares_rho)
        squares, squares_noise = None, 0.0
        if squares_rho:
            squares_noise = self.answers.scale(squares_rho, self.answers.of_squares)
            bits = finest_bits(max(noise / radius, squares_noise), self.d)
            squares = self.answers.of_rows(
                Message("squares", step=step),
                shortened(w, radius),
                squares_rho,
                self.answers.of_squares,
                bits,
                squares=True,
            )
            squares, squares_noise = squares * radius**2, squares_noise * radius**2
        self.steps.append({"center": self.center, "scales": scales, "radius": radius, "rho": rho + squares_rho})
        move = total / self.n_rows
        self.moved = float(lengths(move[None])[0])
        if shrink and self.d > 2:  # James and Stein
            share = (self.d - 2) * (noise / self.n_rows / self.moved) ** 2
            move = move * max(0.0, 1.0 - share)
        own, told = np.clip(self.center + scales * move, -1e100, 1e100), self._told[len(self.steps) - 1]
        np.testing.assert_allclose(told, own, rtol=1e-12, atol=1e-14 * np.abs(self.center).max())
        self.center = told  # to the last place: rows that are all alike may be no farther from it
        return total, noise, squares, squares_noise

    def search(self) -> None:
        """For the center, with a quarter of the budget."""
        bin_cost = min((self.answers.of_bin / (0.06 * self.n_rows)) ** 2 / 2.0, 0.02 * self.total)
        cost = 16.0 * self.error(1.0) ** 2  # the error is a quarter of the radius then
        cost = min(cost, (0.04 if self.error(0.04 * self.total) <= 0.5 else 0.1) * self.total)
        unseen = 0.0
        for _ in range(40):
            round_cost = 4.0 * cost if self.settled else cost
            worth_it = self.error(round_cost) <= 0.5
            room = self.left - 0.75 * self.total - (round_cost if worth_it else 0.0)
            if bin_cost > room and (self.radius is not None or room <= unseen):
                return
            bin_cost = min(bin_cost, room)
            histogram = self.look(bin_cost, np.ones(self.d), self.radius or 1.0, 120)
            best = histogram.best_radius(1, self.error(round_cost), 1.0)
            if best is None:
                unseen, bin_cost = bin_cost, 4.0 * bin_cost
                continue
            before, self.radius = self.radius, limited(best)
            if not worth_it:
                median = median_of(histogram)
                assert median is not None
                self.radius = limited(median)
                return
            self.step(round_cost, np.ones(self.d), self.radius)
            if self.settled or self.radius <= max(2e-100, 2.0**-40 * np.abs(self.center).max()):
                self.settled = True
                return
            self.settled = before is not None and self.radius > 0.6 * before

    def find_scales(self) -> None:
        """From noisy squares, with a twentieth of the budget."""
        if self.d == 1 or self.radius is None:
            return
        self.spread = np.full(self.d, self.radius / math.sqrt(self.d))
        for share in (0.05 / 3.0, 0.1 / 3.0):
            cost = share * self.total
            if self.answers.scale(0.5 * cost, self.answers.of_squares) * self.d / self.n_rows > 1.0:
                continue
            histogram = self.look(0.2 * cost, self.spread, math.sqrt(self.d), 24)
            radius = histogram.best_radius(1, self.error(0.3 * cost), 1.0) or 1.5 * math.sqrt(self.d)
            spread = self.spread
            total, noise, squares, squares_noise = self.step(0.3 * cost, spread, radius, squares_rho=0.5 * cost)
            variance = squares / self.n_rows - (total / self.n_rows) ** 2 + (noise / self.n_rows) ** 2
            self.spread = np.clip(spread * np.sqrt(np.maximum(variance, squares_noise / self.n_rows)), 1e-100, 1e100)

    def finish(self) -> dict[str, Any]:
        """The mean of rows in units of the roots of the scales, with all that is left."""
        scales = np.sqrt(self.spread)
        typical = self.radius if self.d == 1 and self.radius is not None else math.sqrt(self.spread.sum())
        histogram = self.look(0.02 * self.left, scales, typical, 120)
        best = histogram.best_radius(1, self.error(self.left), math.sqrt(1.0 / self.d))
        median = median_of(histogram)
        seen = best is not None and median is not None
        radius = limited(max(best, median) if seen else 1.5 * typical)
        far, far_shows = self.far_rows(scales, radius)
        noise, outside = self.error(self.left) * radius, histogram.share_above(radius)
        self.step(self.left, scales, radius, shrink=False)
        warnings, nothing_seen = [], self.radius is None and median is None
        if nothing_seen:
            warnings.append(Message("rows-unseen"))
        if outside > 0.75:
            warnings.append(Message("rows-mostly-clipped"))
        elif far_shows:
            warnings.append(Message("outlying-rows-clipped", share=far))
        size = clipped_size(histogram, radius) or typical
        if not nothing_seen and noise > 0.5 * spread_of(size, self.moved, noise):
            warnings.append(Message("mean-lost"))
        elif not nothing_seen and not self.settled and self.moved**2 > (0.5 * size) ** 2 + noise**2:
            warnings.append(Message("search-unsettled", names=()))
        return {
            "mean": self.center,
            "count": self.n_rows,
            "steps": self.steps,
            "spread": None if self.d == 1 else self.spread,
            "share_outside": outside,
            "share_far": far,
            "warnings": warnings,
        }

    def far_rows(self, scales: np.ndarray, radius: float) -> tuple[float, bool]:
        """The share of rows four radii out, and whether it is more than 1 % and noise."""
        cost = min((self.answers.of_bin / (0.003 * self.n_rows)) ** 2 / 2.0, 0.02 * self.total)
        self.left -= cost
        norms = lengths((self.table - self.center) / scales)
        counted = self.answers.histogram("outlying-rows", norms, np.array([4.0, 8.0]) * radius, cost)
        share = (counted.counts[1] + counted.counts[2]) / self.n_rows
        noise = math.sqrt(2.0) * self.answers.scale(cost, self.answers.of_bin) / self.n_rows
        return float(np.clip(share, 0.0, 1.0)), bool(share > 0.01 + norm.isf(1e-3) * noise)
