"""The rules of a CoinPress run one at a time, at their edges: evidence, ellipsoids, the last clip, what a run says of itself."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.papers.mechanisms.coinpress import (
    _FAR,
    Ellipsoid,
    Evidence,
    Observation,
    StepRules,
    _LastClip,
    _run_diagnostics,
    _widened_clip,
)
from dpmoments.papers.mechanisms.coinpress_mean import ridged
from dpmoments.papers.mechanisms.coinpress_schedule import Schedule
from dpmoments.papers.mechanisms.noisy_step import NoisyStep
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.entropy import insecure_generator
from dpmoments.rows.rows import Rows
from support.opened_filter import filter_that_pays
from support.said import codes

EYE = np.eye(2)
UP, DOWN = 1 + 1e-9, 1 - 1e-9


def seen(*variances: float, noise: float = 0.01) -> Observation:
    return Observation(np.diag(variances), noise * np.eye(len(variances)))


@pytest.mark.parametrize("scores", [(1.5, 1.5), (0.5, 2.5), (3.0, 0.0)])
def test_a_direction_is_resolved_above_three_quarters_of_the_edge_on_average(scores: tuple[float, float]) -> None:
    """√(2d) = 2 at d = 2: an average of 1.5 standard deviations."""

    def evidence(factor: float) -> Evidence:
        observed = [seen(0.02 * score * factor, 0.0, noise=0.02) for score in scores]
        return Evidence((observed[0], observed[1]))

    assert evidence(UP).resolved(EYE).tolist() == [True, False]
    assert evidence(DOWN).resolved(EYE).tolist() == [False, False]
    assert evidence(UP).resolved(EYE[:, ::-1]).tolist() == [False, True]
    assert Evidence(evidence(UP).observations[:1]).resolved(EYE).tolist() == [False, False]
    assert Evidence().resolved(EYE[:, :1]).tolist() == [False]
    exactly = Evidence((seen(1.5, 0.0, noise=1.0), seen(1.5, 0.0, noise=1.0)))
    assert not exactly.resolved(EYE).any()
    # along (1, 1)/√2 half of it is seen
    assert not evidence(1.9).resolved(np.full((2, 1), math.sqrt(0.5))).any()
    assert evidence(2.1).resolved(np.full((2, 1), math.sqrt(0.5))).all()


def test_a_direction_has_lost_rows_where_it_is_beyond_the_noise_of_both_below_what_was_seen() -> None:
    """Before: 4 noises below what was seen; now: 2 above what is seen, the edge √(2d) = 2 without deviations."""
    noise, after = 0.01, 0.002
    limit = 1.0 - 4.0 * noise - 2.0 * after
    evidence = Evidence((seen(1.0, 1.0, noise=noise),))
    for now, lost in ((limit - 1e-6, True), (limit + 1e-6, False)):
        held = evidence.held(seen(now, 1.0, noise=after))
        np.testing.assert_allclose(held, np.diag([1.0 / now if lost else 0.0, 0.0]), atol=1e-12)
    # What is measured within the noise's edge counts as half of that.
    np.testing.assert_allclose(
        evidence.held(seen(1e-5, 1.0, noise=after)), np.diag([1.0 / after, 0.0]), rtol=1e-9, atol=1e-9
    )
    np.testing.assert_allclose(
        evidence.held(seen(-1.0, 1.0, noise=after)), np.diag([1.0 / after, 0.0]), rtol=1e-9, atol=1e-9
    )
    assert Evidence().held(seen(0.1, 0.1)).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def step(*variances: float, noise: float = 1e-3, n: float = 1000.0) -> NoisyStep:
    """A step that measured these variances."""
    return NoisyStep(n * np.diag(variances), None, n * noise, 0.0)


def ellipsoid(
    *observed: Observation, held: tuple[float, float] = (0.0, 0.0), unchecked: tuple[bool, bool] = (False, False)
) -> Ellipsoid:
    return Ellipsoid(np.zeros(2), EYE, Evidence(observed), np.diag(held), np.array(unchecked))


def scales(found: Ellipsoid) -> list[float]:
    """U, diagonal here, of the axes in turn."""
    return np.linalg.inv(found.linear.T @ found.linear).diagonal().tolist()


def test_a_direction_is_half_seen_between_its_noise_and_a_quarter() -> None:
    """Above four deviations of the noise, below half of a half, enlarged and not held."""
    for variance, expected in ((0.004 * DOWN, False), (0.004 * UP, True), (0.25 * DOWN, True), (0.25, False)):
        assert ellipsoid(unchecked=(True, False)).half_seen(step(variance, 0.1), 1000.0) is expected, variance
        assert not ellipsoid(unchecked=(False, False)).half_seen(step(variance, 0.1), 1000.0)
        assert not ellipsoid(unchecked=(False, True)).half_seen(step(variance, 0.9), 1000.0)
        for held, still in ((0.5 * DOWN, True), (0.5, False)):
            one = ellipsoid(held=(held, 0.0), unchecked=(True, False))
            assert one.half_seen(step(variance, 0.1), 1000.0) is (expected and still)
    assert ellipsoid(unchecked=(True, True)).half_seen(step(0.1, 0.9), 1000.0)


def test_the_papers_next_ellipsoid_adds_the_ridge_and_the_noises_bound() -> None:
    failure, sampling = 1e-3, 0.07
    found = ridged(ellipsoid(), step(0.9, -0.2, noise=0.01), 1000.0, sampling, failure)
    ridge = sampling + 0.01 * (2.0 + math.sqrt(2.0 * math.log(2000.0)))
    assert scales(found) == pytest.approx([0.9 + ridge, ridge])


def widened(table: np.ndarray, rho: float, radius: float, n_rows: float, *, unchecked: tuple[bool, ...]) -> _LastClip:
    d = table.shape[1]
    place = Ellipsoid(np.zeros(d), np.eye(d), Evidence(), np.zeros((d, d)), np.array(unchecked))
    rows = Rows.of(table, dpm.Schema.unbounded(d), neighbors="add_remove")
    paying = filter_that_pays(PrivacyBudget.zcdp(rho), "add_remove", insecure_generator(0))
    return _widened_clip(rows, paying, _LastClip(rho, radius), place, n_rows=n_rows, mean=False)


def rows_that_afford(radius: float, rho: float) -> float:
    """n at which noise on a radius is a tenth of every variance of two: √3·r²/(n√(2·0.9ρ)) = √2/10."""
    return math.sqrt(3.0) * radius**2 / math.sqrt(1.8 * rho) / (0.1 * math.sqrt(2.0))


@pytest.mark.parametrize(
    ("distance", "typical"), [(6.0, math.sqrt(2.0**2.5 * 8.0)), (9.0, math.sqrt(8.0 * 2.0**3.5)), (100.0, 2.0**6.75)]
)
def test_rows_along_unchecked_directions_widen_the_clip_to_four_radii_or_where_noise_is_a_tenth(
    distance: float, typical: float
) -> None:
    """The bin they are in stands for its geometric middle."""
    assert _FAR == 4.0
    table, rho = np.zeros((1200, 2)), 1e4
    table[:1000, 0], table[1000:, 1] = 1.0, distance
    for afford, near in ((1.0, typical <= 8.0), (typical * DOWN, typical <= 8.0), (typical * UP, True)):
        found = widened(table, rho, 2.0, rows_that_afford(afford, rho), unchecked=(False, True))
        assert found.left_out is not near
        assert found.outside == pytest.approx(1.0 / 6.0 if near else 0.0, abs=1e-3)
        assert found.rho == pytest.approx(0.9 * rho, rel=1e-12)
        if not near:
            assert found.radius == 2.0
    one = np.vstack([np.ones((1000, 2)), [[0.0, distance]]])
    assert widened(one, rho, 2.0, rows_that_afford(1.0, rho), unchecked=(False, True)).left_out is (typical > 8.0)
    # Checked, they are rows like others, however far.
    far = widened(table, rho, 2.0, rows_that_afford(1.0, rho), unchecked=(False, False))
    assert (far.left_out, far.outside) == (False, pytest.approx(1.0 / 6.0, abs=1e-3))


def warned(
    *,
    d: int = 4,
    n_rows: float = 100.0,
    predicted: float = 0.1,
    planned: float = 3.0,
    radius: float = 3.0,
    noise: float = 0.01,
    fill: float = 0.1,
    half_seen: bool = False,
    **clip: Any,
) -> list[str]:
    schedule = Schedule((1.0,), (1.0,), predicted)
    steps = [{"radius": radius, "noise_scale": noise, "fill": fill, "center": [0.0] * d}]
    rules, last = StepRules(n_rows, planned, planned, schedule), _LastClip(1.0, radius, **clip)
    found = _run_diagnostics(steps, rules, last, half_seen)
    assert found["steps"] is steps
    assert found["predicted_mahalanobis"] == predicted
    assert (found["share_outside"], found["share_unseen"]) == (last.outside, last.unseen_tail)
    return codes(found["warnings"])


def test_every_warning_begins_where_it_should() -> None:
    assert warned() == []
    assert [warned(outside=share) for share in (None, 0.5, 0.5 * UP)] == [[], [], ["rows-outside-bounds"]]
    assert [warned(predicted=2.0 * f) for f in (1.0, UP)] == [[], ["small-eigenvalues-lost"]]  # √d
    assert [warned(radius=12.0 * f) for f in (1.0, UP)] == [[], ["clip-widened"]]  # four times as wide
    assert [warned(unseen_tail=0.06 * f) for f in (1.0, UP)] == [[], ["rows-unseen-tail"]]
    assert [warned(lost=0.5 * f) for f in (1.0, UP)] == [[], ["variance-of-outlying-rows"]]  # √d / 4
    assert [warned(n_rows=n) for n in (4.0, 4.0 * DOWN)] == [[], ["fewer-rows-than-features"]]
    assert [warned(left_out=out, half_seen=half) for out in (False, True) for half in (False, True)] == [
        [],
        ["variance-of-few-rows"],
        ["variance-of-few-rows"],
        ["variance-of-few-rows"],
    ]


def test_noise_is_most_of_a_release_where_it_is_above_the_signal() -> None:
    """√(d(d + 1)/2) deviations against √d, or more where the clip had to be widened and is filled."""
    limit = 2.0 / math.sqrt(10.0)
    assert [warned(noise=limit * f) for f in (DOWN, UP)] == [[], ["noise-above-covariance"]]
    assert [warned(noise=limit * f, radius=4.0, fill=0.25) for f in (DOWN, UP)] == [[], ["noise-above-covariance"]]
    assert [warned(noise=3.0 * limit * f, radius=4.0, fill=0.75) for f in (DOWN, UP)] == [
        [],
        ["noise-above-covariance"],
    ]


def test_a_ball_that_is_full_is_warned_of_where_the_clip_is_the_planned_one() -> None:
    """From halfway between d and radius² on, and four deviations of the noise on the trace."""
    limit = (4 + 9) / (2 * 9) + 4 * 0.05 * 2 / 9
    assert [warned(fill=limit * f, noise=0.05) for f in (DOWN, UP)] == [[], ["rows-outside-bounds"]]
    assert [warned(fill=limit * f, noise=0.05, outside=0.5) for f in (DOWN, UP)] == [[], ["rows-outside-bounds"]]
    assert warned(fill=1.0, noise=0.05, radius=3.0 * UP) == []
    narrow = (4 + 9) / (2 * 9) + 4 * 0.05 * 2 / 4
    assert [warned(fill=narrow * f, noise=0.05, radius=2.0) for f in (DOWN, UP)] == [[], ["rows-outside-bounds"]]
