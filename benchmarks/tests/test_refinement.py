"""The refinement of a regression: where it ends, and the law of its noise."""

from __future__ import annotations

import numpy as np
import pytest
from benchmarks.practice.regression.excess_risk import Regression
from benchmarks.practice.regression.refinement import Refinement, refined

import dpmoments as dpm

TABLE = np.random.default_rng(3).uniform(-0.4, 0.4, (4000, 4)) @ np.array(
    [[1.0, 0.6, 0.0, 0.3], [0.0, 0.5, 0.3, 0.3], [0.0, 0.0, 0.4, -0.4], [0.0, 0.0, 0.0, 0.2]]
)
SCHEMA = dpm.Schema.unit_ball(4)
TRUTH = Regression.of(TABLE, SCHEMA, "x3")
NO_CLIP = Refinement(clip=1e4, clip_power=0.0)


@pytest.fixture(scope="module")
def release() -> dpm.MomentRelease:
    return dpm.release(TABLE, SCHEMA, rho=200.0, insecure_seed=0)


def test_without_clip_or_noise_it_ends_at_least_squares(release: dpm.MomentRelease) -> None:
    found = refined(release, TABLE, TRUTH, 1e14, np.random.default_rng(0), NO_CLIP)
    np.testing.assert_allclose(found.unpenalized, TRUTH.least_squares, atol=1e-5)
    assert TRUTH.excess(found.slopes, found.constant) < 1e-8
    assert found.clipped == 0.0


@pytest.mark.parametrize(("stated", "holds"), [(1.0, True), (1.3, False)])
def test_deviations_are_those_of_the_noise(release: dpm.MomentRelease, stated: float, holds: bool) -> None:
    # With hardly any noise in the release, only the noise of the steps is left; a deviation off by 30 % is found out.
    runs = [refined(release, TABLE, TRUTH, 1e3, np.random.default_rng(seed), NO_CLIP) for seed in range(300)]
    scores = np.array([(run.unpenalized - TRUTH.least_squares) / (stated * run.deviations) for run in runs])
    # 900 squares, whose mean has a standard deviation of at most √(2/300) where slopes are correlated.
    assert (abs(np.mean(scores**2) - 1.0) < 3.0 * np.sqrt(2.0 / 300.0)) == holds


def test_a_clip_bounds_what_a_far_row_does(release: dpm.MomentRelease) -> None:
    far = np.vstack([TABLE, [0.5, 0.5, 0.5, -0.5]])
    near, moved = (
        refined(release, rows, TRUTH, 1e12, np.random.default_rng(0), Refinement(clip_power=0.0)).slopes
        for rows in (TABLE, far)
    )
    assert np.linalg.norm(moved - near) < 0.01
