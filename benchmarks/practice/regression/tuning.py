"""Peers with their parameters set by what is best on the table itself: more than any analyst can know, and not paid for."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product

import numpy as np

from benchmarks.practice.regression.methods import NoisyGradientDescent, OutputPerturbation
from benchmarks.practice.regression.single_regression import Regression, SingleRegression
from dpmoments.base.values import FloatArray
from dpmoments.privacy.budget import PrivacyBudget

Place = tuple[int, ...]

PENALTIES = tuple(10.0 ** (power / 2.0) for power in range(-10, 3))  # times n
BOUNDS = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0, 16.0)
STEPS, CLIPS, RATES = (3, 10, 30, 100, 300, 1000), (0.01, 0.03, 0.1, 0.3, 1.0), (0.5, 1.5, 5.0)
MOST_STEPS_OF_LARGE, LARGE = 300, 20_000
"""From so many rows on, steps take too long to try more of them."""
MIDDLE = NoisyGradientDescent(steps=100, clip=0.3, rate=1.5)
"""One setting for all tables."""
TRIALS = 4
"""Runs by which a setting is judged, at seeds of their own."""
SEED = 1_000_003


def climb(score: Callable[[Place], float], sizes: Sequence[int], start: Place) -> Place:
    """The place of least score that steps of one along one axis of a grid lead to."""
    scores: dict[Place, float] = {}

    def of(place: Place) -> float:
        if place not in scores:
            scores[place] = score(place)
        return scores[place]

    best = start
    while True:
        near = [
            tuple(index + step * (axis == moved) for axis, index in enumerate(best))
            for moved in range(len(sizes))
            for step in (-1, 1)
            if 0 <= best[moved] + step < sizes[moved]
        ]
        found = min(near, key=of)
        if of(found) >= of(best):
            return best
        best = found


def mean_excess(weights: FloatArray, single: SingleRegression, truth: Regression) -> float:
    found = float(np.mean([single.excess(run, truth) for run in weights.T]))
    return found if np.isfinite(found) else np.inf


def tuned_perturbation(single: SingleRegression, truth: Regression, budget: PrivacyBudget) -> OutputPerturbation:
    """The best of the whole grid."""
    gram, cross = single.moments()
    settings = [OutputPerturbation(share * single.n_rows, bound) for share, bound in product(PENALTIES, BOUNDS)]

    def score(setting: OutputPerturbation) -> float:
        runs = setting.fits(gram, cross, budget, 4 * TRIALS, np.random.default_rng(SEED))
        return mean_excess(runs, single, truth)

    return min(settings, key=score)


def tuned_descent(
    single: SingleRegression,
    truth: Regression,
    budget: PrivacyBudget,
    largest_eigenvalue: float,
    start: NoisyGradientDescent = MIDDLE,
) -> NoisyGradientDescent:
    """Where climbing leads from ``start``, or from the middle of the grid where that is better."""
    most = MOST_STEPS_OF_LARGE if single.n_rows >= LARGE else max(STEPS)
    axes: list[Sequence[float]] = [[steps for steps in STEPS if steps <= most], CLIPS, RATES]

    def at(place: Place) -> NoisyGradientDescent:
        steps, clip, rate = (axis[index] for axis, index in zip(axes, place, strict=True))
        return NoisyGradientDescent(int(steps), clip, rate)

    def score(place: Place) -> float:
        with np.errstate(over="ignore", invalid="ignore"):
            runs = at(place).fits(
                single.rows, single.target, budget, TRIALS, np.random.default_rng(SEED), largest_eigenvalue
            )
            return mean_excess(runs, single, truth)

    starts = [
        tuple(axis.index(value) for axis, value in zip(axes, (one.steps, one.clip, one.rate), strict=True))
        for one in dict.fromkeys([start, MIDDLE])
    ]
    return at(climb(score, [len(axis) for axis in axes], min(starts, key=score)))
