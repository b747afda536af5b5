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
    _histogram_share,
    _LastClip,
    _run_diagnostics,
    _upper,
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
    return Observation.now(np.diag(variances), noise)


def test_an_observation_bounds_the_covariance_below_its_noise() -> None:
    """By the noise's edge, √(2d), and two standard deviations."""
    one = seen(1.0, 0.5, noise=0.1)
    np.testing.assert_array_equal(one.noise, 0.1 * EYE)
    np.testing.assert_allclose(one.bound, np.diag([1.0 - 0.4, 0.5 - 0.4]))
    step = np.array([[2.0, 1.0], [0.0, 3.0]])
    moved = one.moved(step)
    np.testing.assert_allclose(moved.covariance, step @ np.diag([1.0, 0.5]) @ step.T)
    np.testing.assert_allclose(moved.noise, 0.1 * step @ step.T)
    np.testing.assert_allclose(moved.bound, step @ one.bound @ step.T)


def test_the_upper_matrix_adds_what_is_missing_and_nothing_else() -> None:
    np.testing.assert_allclose(_upper(np.diag([1.0, 2.0]), np.diag([3.0, 1.0])), np.diag([3.0, 2.0]))
    first = np.diag([1.0, 2.0])
    assert _upper(first, first) is first
    level = _upper(np.diag([1.0, 2.0, 2.0]), np.diag([2.0, 3.0, 2.0]))  # one eigenvalue of the difference is 0
    np.testing.assert_allclose(level, np.diag([2.0, 3.0, 2.0]))
    assert _upper(first, first - 1e-300 * EYE) is first
    assert _upper(first, np.diag([1.0, 2.0 + 1e-9])) is not first


def test_evidence_keeps_the_last_two_observations_the_last_one_first() -> None:
    step, evidence = np.diag([2.0, 1.0]), Evidence()
    for variance in (1.0, 2.0, 3.0):
        evidence = evidence.moved(step, seen(variance, 1.0))
    assert [one.covariance[0, 0] for one in evidence.observations] == [3.0 * 4.0, 2.0 * 16.0]
    covariance = np.diag([1.0, 1.0])
    assert Evidence().raised(covariance) is covariance
    before = Evidence((seen(5.0, 0.1, noise=0.25), seen(100.0, 100.0)))
    np.testing.assert_allclose(before.raised(covariance), np.diag([4.0, 1.0]))


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


def test_the_floor_is_a_fraction_of_the_noises_edge() -> None:
    """√(2d) = 2 at d = 2; 1 at d = 1."""
    assert scales(ellipsoid().floored(step(0.9, 1e-5), 1000.0, 0.25, final=False)) == pytest.approx([0.9, 0.25 * 2e-3])
    single = Ellipsoid(np.zeros(1), np.eye(1), Evidence(), np.zeros((1, 1)), np.array([False]))
    release = NoisyStep(np.array([[1e-5]]), None, 1.0, 0.0)
    assert single.floored(release, 1000.0, 0.25, final=False).linear[0, 0] ** -2 == pytest.approx(0.25e-3)


def test_what_was_resolved_keeps_its_scale_but_before_the_last_step_only_below_a_half() -> None:
    twice = (seen(0.05, 0.0), seen(0.05, 0.0))
    for variance, final, expected in (
        (0.2, False, 1.0),
        (0.9, False, 1.0),
        (1.7, False, 1.7),
        (0.5 * DOWN, True, 1.0),
        (0.5, True, 0.5),
        (0.9, True, 0.9),
    ):
        found = ellipsoid(*twice).floored(step(variance, 0.3), 1000.0, 0.5, final=final)
        assert scales(found) == pytest.approx([expected, 0.3]), (variance, final)


def test_held_and_seen_variance_is_no_floor_for_other_directions() -> None:
    found = ellipsoid(held=(3.0, 0.0)).floored(step(0.4, 0.4), 1000.0, 0.5, final=False)
    assert scales(found) == pytest.approx([3.0, 0.4])
    np.testing.assert_allclose(sorted(np.diag(found.held)), [0.0, 1.0], atol=1e-12)
    found = ellipsoid(seen(0.8, 0.0, noise=0.05)).floored(step(0.599, 0.4), 1000.0, 0.5, final=False)
    assert scales(found) == pytest.approx([0.6, 0.4])  # 0.8 − (2 + 2)·0.05, where the measurement is within its noise


@pytest.mark.parametrize(
    ("variances", "unchecked"),
    [
        ((0.5 * UP, 0.9), ()),
        ((0.5 * DOWN, 0.9), (0.5 * DOWN,)),
        ((1e-6, 0.9), (1e-3,)),
        ((0.1, 0.2), ()),  # all of them: none stands out
    ],
)
def test_a_direction_enlarged_by_more_than_two_in_variance_is_unchecked(
    variances: tuple[float, float], unchecked: tuple[float, ...]
) -> None:
    found = ellipsoid().floored(step(*variances), 1000.0, 0.5, final=False)
    radii = 1.0 / (found.linear**2).sum(axis=1)
    np.testing.assert_allclose(radii[found.unchecked], unchecked)


def test_a_direction_that_lost_half_of_what_it_is_scaled_for_is_unchecked() -> None:
    for variance, lost in ((1.0, False), (DOWN, True)):
        found = ellipsoid(held=(2.0, 0.0)).floored(step(variance, 0.9), 1000.0, 0.5, final=False)
        radii = 1.0 / (found.linear**2).sum(axis=1)
        np.testing.assert_allclose(radii[found.unchecked], [2.0] if lost else [])


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


def test_noise_on_a_mean_is_taken_off_its_square_and_added_to_the_noise() -> None:
    """m̂ = (3, 4)/10 ± 0.02; the second moment ± 0.005."""
    n = 500.0
    release = NoisyStep(n * np.diag([2.0, 3.0]), n * np.array([0.3, 0.4]), n * 0.005, n * 0.02)
    moved = Ellipsoid(np.array([1.0, 2.0]), np.diag([2.0, 5.0]), Evidence(), np.zeros((2, 2)), np.array([False, False]))
    covariance, center = moved.estimate(release, n)
    np.testing.assert_allclose(covariance, [[2.0 - 0.09 + 0.0004, -0.12], [-0.12, 3.0 - 0.16 + 0.0004]])
    np.testing.assert_allclose(center, [1.0 + 0.3 / 2.0, 2.0 + 0.4 / 5.0])
    assert moved.noise(release, n) == pytest.approx(math.hypot(0.005, 2 * 0.5 * 0.02))
    assert moved.noise(step(2.0, 3.0, noise=0.005), 1000.0) == pytest.approx(0.005)
    np.testing.assert_allclose(moved.covariance(release, n)[0], covariance / np.outer([2.0, 5.0], [2.0, 5.0]))
    recorded = moved.record(4.0, 0.25, release, n)
    assert recorded == {
        "center": [1.0, 2.0],
        "linear": [[2.0, 0.0], [0.0, 5.0]],
        "radius": 4.0,
        "rho": 0.25,
        "noise_scale": pytest.approx(0.005),
        "fill": pytest.approx(5.0 / 16.0),
    }


def test_the_papers_next_ellipsoid_adds_the_ridge_and_the_noises_bound() -> None:
    failure, sampling = 1e-3, 0.07
    found = ridged(ellipsoid(), step(0.9, -0.2, noise=0.01), 1000.0, sampling, failure)
    ridge = sampling + 0.01 * (2.0 + math.sqrt(2.0 * math.log(2000.0)))
    assert scales(found) == pytest.approx([0.9 + ridge, ridge])


def test_negative_variances_are_released_as_none() -> None:
    found, _ = ellipsoid().covariance(step(0.9, -0.2), 1000.0)
    np.testing.assert_allclose(found, np.diag([0.9, 0.0]), atol=1e-12)
    found, _ = ellipsoid(seen(1.0, 0.5, noise=0.05)).covariance(step(0.9, -0.2), 1000.0)
    np.testing.assert_allclose(found, np.diag([0.9, 0.3]), atol=1e-12)


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


def test_a_clip_is_as_planned_where_no_rows_are_seen() -> None:
    for radius in (1e-3, 0.5, 3.0):
        found = widened(np.ones((3, 2)), 1e-3, radius, 3.0, unchecked=(False, False))
        assert (found.radius, found.outside, found.left_out) == (radius, 0.0, False)
        seen = 1.0 / math.sqrt(2.0 * 1e-4) * 4.6748854
        assert found.unseen_tail == pytest.approx(2.0 * seen / 3.0, rel=1e-6)
    assert _LastClip(0.5, 2.0) == _LastClip(0.5, 2.0, outside=None, left_out=False, unseen_tail=0.0)


def test_the_histograms_share_falls_with_the_features_from_a_tenth_to_a_fiftieth() -> None:
    assert [_histogram_share(d) for d in (1, 2, 3, 10, 11, 1000)] == [0.1, 0.1, 0.1, 0.02, 0.02, 0.02]
    for d in (4, 5, 9):
        assert _histogram_share(d) == pytest.approx(0.02 * (10.0 / d) ** 1.5, rel=1e-12)


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
