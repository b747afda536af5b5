"""The planning formulas of CoinPress against brute force and simulation."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence

import numpy as np
import pytest
from scipy import integrate, stats

from dpmoments.papers.mechanisms.coinpress_mean import mean_clip, mean_schedule, normal_norm_square
from dpmoments.papers.mechanisms.coinpress_schedule import (
    Schedule,
    last_step_shares,
    moment_clip_square,
    normal_norm_radius,
    spread_schedule,
)
from references.reference_coinpress import candidate_splits, clip_square, fewest, predicted

pytestmark = pytest.mark.long


def test_paper_clip_holds_normal_rows() -> None:
    for d, failure in itertools.product((1, 10, 100), (0.1, 1e-3)):
        assert stats.chi2.sf(normal_norm_square(d, failure), d) <= failure
    assert last_step_shares(1, 0.75) == (1.0,)
    assert last_step_shares(4, 0.75) == pytest.approx((1 / 12, 1 / 12, 1 / 12, 3 / 4))


@pytest.mark.parametrize("d", [1, 2, 9, 60])
def test_clips_are_where_noise_and_bias_balance(d: int) -> None:
    """To many digits; never below the median, where noise alone would have the clip at 0."""
    median = float(stats.chi2.median(d))
    for noise in (1e-9, 1e-4, 1e-2, 0.1):
        assert moment_clip_square(d, noise) == pytest.approx(clip_square(d, noise), rel=1e-5)

        def loss(c: float, noise: float = noise) -> float:
            beyond, _ = integrate.quad(lambda r: stats.chi.sf(r, d), c, math.inf)
            return (noise * c) ** 2 + (0.3 * beyond) ** 2

        chosen = normal_norm_radius(d, noise, 0.3)
        if noise > 1e-9 and chosen > math.sqrt(median):
            assert loss(chosen) < min(loss(chosen * factor) for factor in (1.0 - 1e-3, 1.0 + 1e-3))
    for noise in (1e3, 1e6):
        assert moment_clip_square(d, noise) == pytest.approx(median, rel=1e-12)
        assert normal_norm_radius(d, noise, 0.3) == pytest.approx(math.sqrt(median), rel=1e-12)
    # Without noise, or of no bias: as far out as floats reach, or as near as is allowed.
    assert stats.chi2.sf(moment_clip_square(d, 0.0), d) == 0.0
    assert stats.chi.sf(normal_norm_radius(d, 0.0, 0.3), d) == 0.0
    assert normal_norm_radius(d, 0.1, 0.0) == pytest.approx(math.sqrt(median), rel=1e-12)


@pytest.mark.parametrize("spread", [1.0, 1.7, 40.0, 1e5, 1e12])
@pytest.mark.parametrize(("noise", "ridge"), [(0.002, 0.0), (0.02, 0.0), (0.02, 0.01), (0.1, 0.3), (5.0, 0.0)])
def test_a_covariances_schedule_is_the_searchs(spread: float, noise: float, ridge: float) -> None:
    rho, final, sampling = 0.5, 0.03, 1e-3
    found = spread_schedule(spread, rho, noise=noise, ridge=ridge, final_noise=final, sampling_square=sampling)
    splits = candidate_splits(spread, rho, noise, ridge)
    errors = [predicted(one, spread, rho, noise, ridge, final, sampling) for one in splits]
    shares, error = fewest(splits, errors)
    assert found.shares == pytest.approx(tuple(shares), rel=1e-9)
    assert found.predicted_error == pytest.approx(error, rel=1e-9)
    scales = [spread]
    for share in shares[:-1]:
        scales.append(1.0 + (noise / math.sqrt(share * rho) + ridge) * scales[-1])
    assert found.scales == pytest.approx(tuple(scales), rel=1e-9)
    assert found.n_steps == len(found.shares)


def mean_splits(
    radius: float, rho: float, n: float, unit: float, clip: Callable[[float], float], ball: float
) -> list[list[float]]:
    """Every first ratio, every number of steps: ρ_s leaves a ball of ``ratio`` times the radius."""
    found = [[1.0]]
    for ratio in np.geomspace(0.02, 0.95, 80):
        current, spent = radius, list[float]()
        while len(spent) < 59 and (room := (ratio * current / ball) ** 2 - 1.0 / n) > 0.0:
            spent.append((unit * clip(current)) ** 2 / room / rho)
            if sum(spent) >= 1.0:
                break
            found.append([*spent, 1.0 - sum(spent)])
            current *= ratio
    return found


@pytest.mark.parametrize("radius", [0.05, 3.0, 1e3, 1e8])
@pytest.mark.parametrize(("n", "rho"), [(200.0, 0.02), (2000.0, 0.5), (1e5, 2.0)])
@pytest.mark.parametrize("shrinkage", [0.0, 0.05])
def test_a_means_schedule_is_the_searchs(radius: float, n: float, rho: float, shrinkage: float) -> None:
    d, ball, sensitivity = 12, 5.1, 2.0
    unit = sensitivity / (n * math.sqrt(2.0))

    def clip(distance: float) -> float:
        return mean_clip(distance, 4.4, 1.3)

    def follow(split: Sequence[float]) -> tuple[float, list[float]]:
        balls = [radius]
        for share in split[:-1]:
            balls.append(ball * math.sqrt(1.0 / n + (unit * clip(balls[-1])) ** 2 / (share * rho)))
        variance = 1.0 / n + (unit * clip(balls[-1])) ** 2 / (split[-1] * rho)
        distance = radius if len(split) == 1 else balls[-1] * math.sqrt(d) / ball
        return math.sqrt(d * variance + (shrinkage * distance) ** 2), balls

    found = mean_schedule(
        radius,
        rho,
        n_features=d,
        n_rows=n,
        sensitivity=sensitivity,
        spherical=clip,
        ball_factor=ball,
        shrinkage=shrinkage,
    )
    splits = mean_splits(radius, rho, n, unit, clip, ball)
    shares, error = fewest(splits, [follow(one)[0] for one in splits])
    assert found.shares == pytest.approx(tuple(shares), rel=1e-9)
    assert found.predicted_error == pytest.approx(error, rel=1e-9)
    assert found.scales == pytest.approx(tuple(follow(shares)[1]), rel=1e-9)


def test_sixty_steps_are_the_most_that_are_searched() -> None:
    """Beyond it, and where no split of that length can be paid for, the paper's split is taken."""
    kinds: list[Callable[[int], Schedule]] = [
        lambda steps: spread_schedule(
            1e30, 0.5, noise=1e-3, ridge=0.0, final_noise=0.02, sampling_square=0.01, n_steps=steps
        ),
        lambda steps: mean_schedule(
            1e30,
            0.5,
            n_features=5,
            n_rows=1e6,
            sensitivity=1.0,
            spherical=lambda radius: radius + 4.0,
            ball_factor=4.0,
            shrinkage=0.0,
            n_steps=steps,
        ),
    ]
    for schedule in kinds:
        for steps in (59, 60, 61, 62):
            found = schedule(steps)
            assert found.n_steps == steps
            assert (found.shares == last_step_shares(steps, 0.75)) == (steps > 60)
