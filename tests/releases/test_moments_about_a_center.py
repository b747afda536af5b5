"""A covariance is not lost beside the square of a mean that is far away: moments are carried about the mean that a run found."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import dpmoments as dpm
from dpmoments.audit.verification import checks
from dpmoments.base.values import FloatArray
from dpmoments.moments.repair import Repair, repair_moments
from dpmoments.schema.constraints import Constraints
from support.noise_models import gaussian
from support.said import refused

N_ROWS = 4_000
SCALES = np.array([1.0, 5.0])
COVARIANCE = np.array([[1.0, 3.0], [3.0, 25.0]])
BALL = Constraints.of(dpm.Schema.unit_ball(2), mean=True)


def table(mean: FloatArray) -> FloatArray:
    """Correlated normal rows about a mean."""
    return np.random.default_rng(0).multivariate_normal([0.0, 0.0], COVARIANCE, N_ROWS) + mean


def released(distance: float) -> dpm.MomentRelease:
    """A release of rows whose mean is that many standard deviations away from 0."""
    schema = dpm.Schema(
        dpm.Numeric("a", scale=(0.1, 100.0), radius=2.0 * distance + 100.0),
        dpm.Numeric("b", scale=(0.1, 100.0), radius=10.0 * distance + 100.0),
    )
    frame = dict(zip("ab", table(distance * SCALES * [1.0, -1.0]).T, strict=True))
    import pandas as pd

    return dpm.release(pd.DataFrame(frame), schema, rho=2.0, insecure_seed=1)


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("distance", [0.0, 1e11])
def test_the_covariance_does_not_depend_on_how_far_the_mean_is(distance: float, tmp_path: Path) -> None:
    far = released(distance)
    assert_allclose(far.covariance, COVARIANCE, rtol=0.12)
    assert_allclose(far.mean, distance * SCALES * [1.0, -1.0], atol=0.5)
    slope = far.ridge("b", ["a"], alpha=0.0).coefficients
    assert_allclose(slope, 3.0, rtol=0.1)
    assert_allclose(far.describe().standard_deviation, SCALES, rtol=0.06)
    assert_allclose(far.pca(1).explained_variance_ratio, 0.98, atol=0.02)
    assert not far.warnings
    far.save(tmp_path / "far.json")
    again = dpm.load(tmp_path / "far.json")
    for name in ("covariance", "mean", "second_moment", "noisy_sum", "noisy_gram", "center"):
        assert_array_equal(getattr(again, name), getattr(far, name))
    assert all(check.passed is not False for check in checks(again))


@pytest.mark.parametrize("repair", list(Repair))
def test_moments_about_a_center_are_those_about_zero_moved(repair: Repair) -> None:
    rng, center = np.random.default_rng(0), np.array([0.3, -0.2])
    rows = rng.normal(0.0, 0.1, (500, 2)) + center + [0.01, 0.02]
    law = gaussian(2, 1e-4, 5e-5, 5e-5, 0.0).law()
    moved = rows - center
    mean, gram = repair_moments(500, moved.sum(axis=0), moved.T @ moved, law, repair, BALL, center)
    about_zero = repair_moments(500, rows.sum(axis=0), rows.T @ rows, law, repair, BALL)
    assert mean is not None
    assert about_zero[0] is not None
    assert_allclose(mean + center, about_zero[0])
    covariances = [(g / 500 - np.outer(m, m)) for m, g in ((mean, gram), about_zero)]
    assert_allclose(*covariances, rtol=1e-3, atol=2e-7)


def test_a_mean_moved_into_its_bounds_leaves_the_spread_about_a_center_as_it_is() -> None:
    center, spread = np.array([0.9, 0.0]), np.diag([0.01, 0.02])
    within = replace(BALL, lower=np.full(2, -0.5), upper=np.full(2, 0.5))
    mean, gram = repair_moments(100, np.zeros(2), 100 * spread, None, Repair.CLIP, within, center)
    assert mean is not None
    assert_allclose(center + mean, [0.5, 0.0])
    assert_allclose(gram / 100 - np.outer(mean, mean), spread)


def test_a_center_without_a_sum_is_refused() -> None:
    content = released(0.0).to_dict() | {"noisy_sum": None}
    with refused("moments about a center need the sum about it, else their"):
        dpm.MomentRelease.from_dict(content)
    with refused("finite numbers", name="center"):
        dpm.MomentRelease.from_dict(released(0.0).to_dict() | {"center": [0.0, float("nan")]})


@pytest.mark.parametrize("center", [[1e308, -1e308], [1e200, 0.0]])
def test_numbers_beyond_floating_point_about_a_center_are_refused_not_released(center: list[float]) -> None:
    hostile = dpm.MomentRelease.from_dict(released(0.0).to_dict() | {"center": center})
    for name in ("unit_ball_gram", "second_moment", "gram"):
        with refused("the numbers of this release exceed the range of floating"):
            getattr(hostile, name)
    assert_array_equal(hostile.covariance, released(0.0).covariance)
    assert any(check.passed is False for check in checks(hostile))


@pytest.mark.parametrize("distance", [0.0, 1e3])
def test_moments_about_zero_and_about_the_mean_are_of_one_table(distance: float) -> None:
    """E[v vᵀ] = Cov(v) + m mᵀ, in encoded and in the table's own units, wherever the center is, and the mean from it."""
    release = replace(released(distance), noisy_sum=np.array([900.0, -300.0]))
    encoded = release.unit_ball_covariance + np.outer(release.unit_ball_mean, release.unit_ball_mean)
    assert_allclose(release.unit_ball_gram / release.n_rows, encoded, rtol=1e-9)
    own = release.covariance + np.outer(release.mean, release.mean)
    assert_allclose(release.second_moment, own, rtol=1e-9)
    assert_allclose(release.gram, own * release.n_rows, rtol=1e-9)
