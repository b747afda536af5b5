"""The planning formulas of CoinPress against brute force and simulation."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from scipy import stats

from dpmoments.mechanisms.parts.coinpress_schedule import (
    clip_shrinkage,
    mean_clip,
    mean_schedule,
    moment_clip_square,
    paper_clip_square,
    paper_shares,
    shell_quantile,
    shell_radius,
    spread_schedule,
)


def normal_norms(d: int, size: int = 400_000, shift: float = 0.0) -> np.ndarray:
    rng = np.random.default_rng(d)
    rows = rng.normal(size=(size, d))
    rows[:, 0] += shift
    return np.linalg.norm(rows, axis=1)


@pytest.mark.parametrize("d", [1, 10, 50])
@pytest.mark.parametrize("noise", [1e-2, 1e-3, 1e-4])
def test_clip_of_a_second_moment_is_the_best_of_a_grid(d: int, noise: float) -> None:
    noise /= d
    squares = normal_norms(d) ** 2
    grid = np.linspace(stats.chi2.median(d), d + 60 * math.sqrt(d), 400)
    loss = [(noise * t) ** 2 + np.maximum(squares - t, 0).mean() ** 2 / d for t in grid]
    chosen = moment_clip_square(d, noise)
    at_chosen = (noise * chosen) ** 2 + np.maximum(squares - chosen, 0).mean() ** 2 / d
    assert at_chosen <= min(loss) * 1.02
    assert chosen >= stats.chi2.median(d) * (1 - 1e-12)


@pytest.mark.parametrize("d", [1, 10, 50])
def test_shell_radius_is_the_best_of_a_grid(d: int) -> None:
    norms, noise, weight = normal_norms(d), 0.02 / math.sqrt(d), math.sqrt(0.5 / d)
    grid = np.linspace(math.sqrt(stats.chi2.median(d)), math.sqrt(d) + 8, 400)
    loss = [(noise * c) ** 2 + (weight * np.maximum(norms - c, 0).mean()) ** 2 for c in grid]
    chosen = shell_radius(d, noise, weight)
    assert (noise * chosen) ** 2 + (weight * np.maximum(norms - chosen, 0).mean()) ** 2 <= min(loss) * 1.02


@pytest.mark.parametrize(("d", "radius"), [(1, 1.0), (3, 2.0), (50, 7.0)])
def test_shrinkage_is_that_of_clipped_normal_rows(d: int, radius: float) -> None:
    rng = np.random.default_rng(1)
    rows, step = rng.normal(size=(400_000, d)), 0.1

    def clipped_mean(shift: float) -> float:
        moved = rows + shift * np.eye(d)[0]
        norms = np.linalg.norm(moved, axis=1)
        return float((moved[:, 0] * np.minimum(1.0, radius / norms)).mean())

    slope = (clipped_mean(step / 2) - clipped_mean(-step / 2)) / step
    assert clip_shrinkage(radius, d) == pytest.approx(1.0 - slope, abs=2e-3)
    # planted fault: counting clipped rows as if they stopped moving altogether
    if d > 1:
        assert stats.chi2.sf(radius**2, d) != pytest.approx(1.0 - slope, abs=2e-2)


@pytest.mark.parametrize("distance", [0.1, 1.0, 5.0, 1e3])
def test_clip_about_a_distant_centre_cuts_about_as_many_rows(distance: float) -> None:
    shell = 8.5
    share = stats.chi2.sf(shell**2, 50)
    radius = mean_clip(distance, shell, shell_quantile(shell, 50))
    assert (normal_norms(50, shift=distance) > radius).mean() <= 1.2 * share
    assert radius <= distance + shell
    # planted fault: the shell alone, forgetting the distance
    if distance >= 1.0:
        assert (normal_norms(50, shift=distance) > shell).mean() > 1.2 * share


def test_paper_clip_holds_normal_rows() -> None:
    for d, failure in itertools.product((1, 10, 100), (0.1, 1e-3)):
        assert stats.chi2.sf(paper_clip_square(d, failure), d) <= failure
    assert paper_shares(1) == (1.0,)
    assert paper_shares(4) == pytest.approx((1 / 12, 1 / 12, 1 / 12, 3 / 4))


@pytest.mark.parametrize("spread", [3.0, 30.0, 1e4])
def test_searched_covariance_schedule_is_nearly_the_best_split(spread: float) -> None:
    noise, final, sampling, rho = 0.03, 0.05, 0.01, 0.5
    found = spread_schedule(spread, rho, noise=noise, ridge=0.0, final_noise=final, sampling_square=sampling, n_steps=4)
    rng = np.random.default_rng(0)
    best = math.inf
    for _ in range(4000):
        split = rng.dirichlet(np.full(4, 0.4)) + 1e-9
        split /= split.sum()
        scale = spread
        for share in split[:-1]:
            scale = 1 + noise * scale / math.sqrt(share * rho)
        best = min(best, math.sqrt(sampling + (final * scale) ** 2 / (split[-1] * rho)))
    assert found.predicted_error <= best * 1.01
    assert math.fsum(found.shares) == pytest.approx(1.0)


def test_searched_mean_schedule_is_nearly_the_best_split() -> None:
    quantile = shell_quantile(8.0, 50)

    def spherical(distance: float) -> float:
        return mean_clip(distance, 8.0, quantile)

    def schedule(**options: object) -> float:
        return mean_schedule(
            1e4,
            0.5,
            n_features=50,
            n_rows=2000,
            sensitivity=2.0,
            spherical=spherical,
            ball_factor=8.7,
            shrinkage=0.01,
            **options,  # type: ignore[arg-type]
        ).predicted_error

    rng = np.random.default_rng(0)
    splits = [tuple((share := rng.dirichlet(np.full(4, 0.4)) + 1e-9) / share.sum()) for _ in range(3000)]
    assert schedule(n_steps=4) <= schedule(shares=splits) * 1.01
    assert schedule() <= schedule(shares=[paper_shares(steps) for steps in range(1, 15)])


def test_steps_follow_from_the_range() -> None:
    steps = [
        spread_schedule(k, 0.5, noise=0.02, ridge=0.0, final_noise=0.02, sampling_square=0.01).n_steps
        for k in (1.0, 1e2, 1e4, 1e8)
    ]
    assert steps == sorted(steps)
    assert steps[0] == 1 < steps[-1]


def test_hopeless_budgets_still_give_a_schedule() -> None:
    hopeless = spread_schedule(1e12, 1e-300, noise=1.0, ridge=0.0, final_noise=1.0, sampling_square=0.1, n_steps=7)
    assert hopeless.n_steps == 7
    assert not math.isnan(hopeless.predicted_error)
