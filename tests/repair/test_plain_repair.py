"""The repairs against their plain versions (``references/plain_repair.py``), on matrices of every kind."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmoments import Boolean, Categorical, Numeric, Schema
from dpmoments.noise.terms import NoiseLaw
from dpmoments.repair import repair as repairs
from dpmoments.repair import structured as structured_module
from dpmoments.analysis.available_cases import _of_counts, _rows_with_both, _variances
from dpmoments.repair.levels import CompletedLevels, _with_margins, level_shares, possible_covariance, possible_mean
from dpmoments.repair.repair import Repair, _clip_to_bounds, repair_gram, repair_moments
from dpmoments.repair.spectral import (
    SpectralNoise,
    _isotonic,
    _trace_estimate,
    bulk_and_outlier_eigenvalues,
    pooled_spread,
    possible_eigenvalues,
    rotation_invariant_eigenvalues,
)
from dpmoments.repair.structured import (
    CellVariances,
    CenteredVariances,
    NoisySums,
    _cell_variances,
    _count_about_center,
    _deviations,
    _make_margins_agree,
    _posterior_moments,
    _shrunk_to_independence,
    _spectral,
    _steadied,
    _without_fractions,
    center_of_levels,
    implied_count,
    possible_second_moment,
    project,
    project_about_center,
    relative_noise,
    structured_second_moment,
)
from dpmoments.schema.constraints import Constraints
from references import plain_repair as plain
from support.noise_models import gaussian
from support.said import refused

EXACT: dict[str, Any] = dict(rtol=1e-9, atol=1e-9)
SCHEMA = Schema(
    Categorical("region", ["north", "south", "east"]),
    Numeric("age", 0, 100),
    Categorical("job", ["a", "b"], missing="zero"),
    Boolean("smoker"),
    Categorical("sex", ["f", "m"], other="zero"),
    Boolean("owner"),
    Numeric("income", 0, 10),
)
CONSTRAINTS = Constraints.of(SCHEMA, mean=True)
D = CONSTRAINTS.n_features


# --- eigenvalues --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(4))
def test_eigenvalues_are_repaired_as_derived(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for d in (1, 2, 3, 7, 20):
        for skews in ((0.0, 0.0), (0.3, 0.3), (0.4, 0.0), (0.2, 0.5)):
            noise = SpectralNoise(d, 2.0, 4.0 * d, *skews)
            spread = np.sort(rng.normal(scale=math.sqrt(2.0 * d), size=d))
            signal = np.zeros(d)
            signal[-2:] = rng.choice([0.0, 6.0, 40.0], min(d, 2))
            eigenvalues = np.sort(spread + signal * math.sqrt(d))
            np.testing.assert_allclose(
                rotation_invariant_eigenvalues(eigenvalues, noise),
                plain.rotation_invariant(eigenvalues, noise),
                **EXACT,
            )
            for upper, attained in ((None, 0.0), (3.0, 0.0), (60.0, 0.2), (500.0, 0.0), (500.0, 0.2)):
                np.testing.assert_allclose(
                    bulk_and_outlier_eigenvalues(eigenvalues, noise, upper, attained),
                    plain.bulk_and_outliers(eigenvalues, noise, upper, attained),
                    err_msg=f"{d} {skews} {upper}",
                    **EXACT,
                )
    exact = SpectralNoise(3, 0.0, 0.0)
    np.testing.assert_array_equal(
        bulk_and_outlier_eigenvalues(np.array([-1.0, 2.0, 5.0]), exact, None), [0.0, 2.0, 5.0]
    )


def test_ascending_values_and_simplices() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        values = rng.normal(size=rng.integers(1, 9)).round(1)
        np.testing.assert_allclose(_isotonic(values), plain.ascending(values), **EXACT)
        for upper in (None, 0.5, 3.0):
            expected = plain.at_most(plain.ascending(values), upper)
            np.testing.assert_allclose(possible_eigenvalues(values, upper), expected, **EXACT)


def test_traces_are_posterior_means() -> None:
    for noisy, deviation, upper, attained in (
        *((5.0, 2.0, 10.0, 0.0), (-3.0, 2.0, 10.0, 0.0), (12.0, 0.5, 10.0, 0.0), (9.0, 0.5, 10.0, 0.0)),
        *((9.999, 0.5, 20.0, 0.0), (10.001, 0.5, 20.0, 0.0), (9.0, 2.0, 10.0, 0.2), (-40.0, 1.0, 10.0, 0.2)),
        *((5.0, 2.0, None, 0.0), (5.0, 0.0, 4.0, 0.2), (5.0, 2.0, 0.0, 0.0), (-1.0, 2.0, None, 0.2)),
    ):
        expected = plain.trace(noisy, deviation, upper, attained)
        assert _trace_estimate(noisy, deviation, upper, attained) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_what_noise_explains_of_a_spread() -> None:
    noise = SpectralNoise(4, 1.5, 3.0)
    assert noise.dimensions == 9.0
    assert noise.energy == 2 * 1.5 * 9
    assert noise.variance == 6.0
    for deviations, largest in (
        ([-5.0, 1.0, 1.0, 3.0], 100.0),
        ([-5.0, 1.0, 1.0, 3.0], 1.5),
        ([-1.0, 0.0, 0.0, 1.0], 9.0),
    ):
        expected = plain.pooled(np.array(deviations), 27.0, largest)
        np.testing.assert_allclose(pooled_spread(np.array(deviations), noise, largest), expected)
    assert not pooled_spread(np.zeros(4), noise, 1.0).any()


def test_spectral_noise_is_that_of_the_cells() -> None:
    """E‖N‖² − E(tr N)²/d over the (d − 1)(d + 2) halves of traceless squares; of one cell half of its variance."""
    law = gaussian(4, 3.0, 1.0, None, None).law()
    noise = SpectralNoise.of(law)
    assert noise.trace_variance == pytest.approx(12.0)
    assert noise.cell_variance == pytest.approx((12 + 12 * 1.0 - 12 / 4) / (3 * 6))
    assert SpectralNoise.of(gaussian(1, 3.0, 1.0, None, None).law()).cell_variance == pytest.approx(1.5)
    block = replace(noise, upper_skew=0.8, lower_skew=0.4).block(2)
    assert (block.size, block.trace_variance, block.upper_skew, block.lower_skew) == pytest.approx((2, 6.0, 0.4, 0.2))
    assert block.cell_variance == noise.cell_variance


# --- whole matrices -----------------------------------------------------------------------------------------------------------


def from_eigen(values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return vectors @ np.diag(values) @ vectors.T


def test_each_repair_of_a_gram_matrix() -> None:
    rng = np.random.default_rng(1)
    law = gaussian(4, 2.0, 1.0, None, None).law()
    noise = SpectralNoise.of(law)
    for upper, lower in ((None, 0.0), (8.0, 0.0), (40.0, 0.0), (None, 9.0)):
        half = rng.normal(size=(4, 4)) * 3
        gram = (half + half.T) / 2 + np.diag([9.0, 4.0, 1.0, 0.0]) - lower * np.eye(4)
        values, vectors = np.linalg.eigh(gram)
        cap = math.inf if upper is None else upper
        trace = min(max(values.sum(), 0.0), cap)
        largest = min(max(values.sum(), 0.0) + 2 * math.sqrt(noise.trace_variance), cap)
        shrunk = trace / 4 + plain.pooled(values - values.mean(), noise.energy, largest)
        expected = {
            Repair.NONE: values,
            Repair.CLIP: np.clip(values, 0, cap),
            Repair.SHIFT: values - min(values[0], 0),
            Repair.NOISE_SHIFT: values + (max(law.gram_bound(0.05), -values[0]) if values[0] < 0 else 0),
            Repair.SHRINK: plain.at_most(shrunk, upper),
            Repair.ROTATION_INVARIANT: plain.at_most(plain.rotation_invariant(values, noise), upper),
            Repair.SPECTRAL: plain.bulk_and_outliers(values, noise, upper, 0.3),
        }
        for repair, repaired in expected.items():
            found = repair_gram(gram, law, repair, upper, 0.3)
            np.testing.assert_allclose(found, from_eigen(repaired, vectors), err_msg=repair, **EXACT)
        np.testing.assert_allclose(
            repair_gram(gram, None, Repair.SHRINK, upper), from_eigen(np.clip(values, 0, cap), vectors)
        )
    sure = np.diag([1.0, 2.0, 3.0, 4.0])
    for repair in (Repair.SHIFT, Repair.NOISE_SHIFT):
        np.testing.assert_array_equal(repair_gram(sure, law, repair, None), sure)
    np.testing.assert_allclose(repair_gram(np.diag([0.5, 2.0, 3.0, 4.0]), law, Repair.SHIFT, None)[0, 0], 0.5)


def test_moments_are_repaired_about_their_mean() -> None:
    rng = np.random.default_rng(2)
    rows = rng.uniform(-0.4, 0.4, (50, 3)) + [0.1, 0.2, -0.1]
    law = gaussian(3, 0.5, 0.25, 2.0, None).law()
    box = np.full(3, -0.5), np.full(3, 0.5)
    total = rows.sum(axis=0) + [30.0, 0.0, -3.0]
    half = rng.normal(size=(3, 3))
    gram = rows.T @ rows + half + half.T
    for center in (None, np.array([0.05, 0.0, 0.1])):
        origin = np.zeros(3) if center is None else center
        for repair in (Repair.NONE, Repair.CLIP, Repair.SPECTRAL, Repair.AUTO):
            mean = total / 50
            if repair is not Repair.NONE:
                inside = np.clip(origin + mean, *box)
                mean = inside / max(1.0, np.linalg.norm(inside)) - origin
            about = mean if center is None else total / 50
            spread = gram - 50 * np.outer(about, about)
            expected = gram
            if repair is not Repair.NONE:
                values, vectors = np.linalg.eigh(spread)
                noise = SpectralNoise.of(law.about(-mean))
                values = (
                    np.clip(values, 0, 50) if repair is Repair.CLIP else plain.bulk_and_outliers(values, noise, 50, 0.0)
                )
                expected = from_eigen(values, vectors) + 50 * np.outer(mean, mean)
            if repair is Repair.AUTO:
                expected = clipped_to_bounds(mean, expected, 50, box, origin)
            found = repair_moments(50, total, gram, law, repair, box=box, center=center)
            np.testing.assert_allclose(found[0], mean, **EXACT)
            np.testing.assert_allclose(found[1], expected, **EXACT)
    without = repair_moments(50, None, gram, law, Repair.SPECTRAL, box=box)
    values, vectors = np.linalg.eigh(gram)
    expected = from_eigen(plain.bulk_and_outliers(values, SpectralNoise.of(law), 50, 0.2), vectors)
    assert without[0] is None
    np.testing.assert_allclose(without[1], expected, **EXACT)
    unbounded = repair_moments(50, None, gram * 9, law, Repair.CLIP, box=None)[1]
    np.testing.assert_allclose(unbounded, from_eigen(np.maximum(values * 9, 0), vectors), **EXACT)


def clipped_to_bounds(mean: Any, gram: np.ndarray, count: int, box: Any, origin: np.ndarray) -> np.ndarray:
    """(u − μ)(μ − l), entry by entry."""
    spread, position = gram / count - np.outer(mean, mean), origin + mean
    ends = zip(box[0], position, box[1], strict=True)
    most = [max((upper - at) * (at - lower), 0.0) for lower, at, upper in ends]
    shares = [math.sqrt(m / v) if v > m else 1.0 for m, v in zip(most, np.diag(spread), strict=True)]
    return count * (spread * np.outer(shares, shares) + np.outer(mean, mean))


def test_variances_are_clipped_to_bounds() -> None:
    box, origin = (np.array([-1.0, -1.0, 0.0]), np.ones(3)), np.array([0.0, 0.2, 0.1])
    mean = np.array([0.9, 0.1, 0.3])
    spread = np.array([[0.5, 0.2, 0.1], [0.2, 0.4, 0.0], [0.1, 0.0, 0.3]])
    gram = 7 * (spread + np.outer(mean, mean))
    found = _clip_to_bounds(mean, gram, 7, box, origin)[1]
    np.testing.assert_allclose(found, clipped_to_bounds(mean, gram, 7, box, origin))
    assert found[0, 0] < gram[0, 0]
    assert found[1, 1] == pytest.approx(gram[1, 1])
    assert found[2, 2] < gram[2, 2]
    assert _clip_to_bounds(mean, gram, 7, (-9 * np.ones(3), 9 * np.ones(3)), None)[1] is gram
    for missing in ((None, gram, 7, box), (mean, gram, None, box), (mean, gram, 7, None)):
        assert _clip_to_bounds(*missing, origin)[1] is gram


@pytest.mark.parametrize(("count", "variance", "expected"), [(0.2, 0.09, 1.0), (3.0, 16.0, 4.0), (30.0, 16.0, 30.0)])
def test_counts_are_floored_by_their_noise(count: float, variance: float, expected: float) -> None:
    law = gaussian(2, 1.0, 1.0, 1.0, variance).law()
    assert repairs.floored_count(count, law) == pytest.approx(expected)
    assert repairs.floored_count(count, None) == max(1.0, count)
    message = repairs.few_rows_message(count, law)
    assert (message is not None) == (count < 10 * math.sqrt(variance))
    assert repairs.few_rows_message(10 * math.sqrt(variance), law) is None
    assert repairs.few_rows_message(None, law) is None


# --- levels -------------------------------------------------------------------------------------------------------------------


def noisy_levels(rng: np.random.Generator) -> tuple[CompletedLevels, np.ndarray]:
    """A noisy covariance of one-hot rows, with what is missing beside it."""
    size = rng.choice([0.05, 0.4, 1.5])
    mean = possible_mean(rng.normal(0.3, 0.3, D), CONSTRAINTS)
    levels = CompletedLevels.of(CONSTRAINTS, mean)
    half = rng.normal(scale=size, size=(D, D))
    variances = np.diag(rng.uniform(0.0 if size > 0.05 else 0.05, 0.3, D))
    return levels, levels.extended(half + half.T + variances)


@pytest.mark.parametrize("seed", range(16))
def test_covariances_become_possible_as_derived(seed: int) -> None:
    levels, extended = noisy_levels(np.random.default_rng(seed))
    np.testing.assert_allclose(
        possible_covariance(extended, levels), plain.possible_covariance(extended, levels), **EXACT
    )


def test_levels_are_completed() -> None:
    mean = np.array([0.5, 0.3, 0.2, 0.1, 0.2, 0.3, 0.4, 0.25, 0.25, -0.2, 0.0])
    levels = CompletedLevels.of(CONSTRAINTS, mean)
    assert [column.features.tolist() for column in levels.columns] == [[0, 1, 2], [4, 5, 11], [7, 8, 12]]
    np.testing.assert_allclose(
        np.concatenate([column.shares for column in levels.columns]), [0.5, 0.3, 0.2, 0.2, 0.3, 0.5, 0.25, 0.25, 0.5]
    )
    assert levels.single.tolist() == [3, 6, 9, 10]
    assert levels.free.tolist() == [3, 10]
    assert levels.flags.tolist() == [6, 9]
    assert [column.features[-1] for column in levels.hidden] == [11, 12]
    np.testing.assert_allclose(levels.flag_variances, [1 - 0.16, 1 - 0.04])
    rows = np.random.default_rng(0).normal(size=(20, D))
    whole = np.column_stack([rows, -rows[:, 4] - rows[:, 5], -rows[:, 7] - rows[:, 8]])
    np.testing.assert_allclose(levels.extended(rows.T @ rows), whole.T @ whole, **EXACT)
    cells = np.arange(1.0, 1.0 + D * D).reshape(D, D)
    cells = cells + cells.T
    found = levels.extended_variances(cells)
    assert found[11, 3] == cells[4, 3] + cells[5, 3]
    assert found[11, 12] == cells[np.ix_([4, 5], [7, 8])].sum()
    np.testing.assert_array_equal(found[:D, :D], cells)


def test_margins_and_means() -> None:
    rng = np.random.default_rng(3)
    for _ in range(20):
        joint, rows, columns = rng.normal(0.1, 0.2, (3, 2)), rng.dirichlet(np.ones(3)), rng.dirichlet(np.ones(2))
        np.testing.assert_allclose(
            _with_margins(joint, rows, columns), plain.with_margins(joint, rows, columns), **EXACT
        )
        shares = rng.normal(0.3, 0.5, 4)
        expected = plain.at_most(shares, 1.0)
        np.testing.assert_allclose(level_shares(shares, complete=False), expected, **EXACT)
        lifted = plain.at_most(shares + 9.0, 1.0)
        np.testing.assert_allclose(level_shares(shares, complete=True), lifted, **EXACT)
    mean = np.array([0.5, 0.9, -0.3, 1.7, 0.8, 0.8, -1.5, 0.1, 0.2, 0.4, -0.2])
    expected = mean.copy()
    expected[:3], expected[3], expected[4:6], expected[6] = [0.3, 0.7, 0.0], 1.0, [0.5, 0.5], -1.0
    np.testing.assert_allclose(possible_mean(mean, CONSTRAINTS), expected, **EXACT)


@pytest.mark.parametrize(
    ("shares", "nearest"),
    [
        ([1e20], [1.0]),
        ([3.0, 1e20, -5.0], [0.0, 1.0, 0.0]),
        ([1e20, 0.0, 1e20], [0.5, 0.0, 0.5]),
        ([-1e20, 0.0], [0.0, 1.0]),
    ],
)
def test_shares_in_whose_rounding_a_whole_is_lost_go_to_the_largest(shares: list[float], nearest: list[float]) -> None:
    assert level_shares(np.array(shares), complete=True).tolist() == nearest


def test_rows_with_both_values_are_fixed_by_margins_without_noise() -> None:
    """Where margins leave no room and nothing has noise, 0/0 is no weight."""
    law = gaussian(3, 0.0, 0.0, 0.0, 0.0).law()
    present = np.array([40.0, 40.0, 12.0])
    indicators = np.vstack([np.eye(4)[0], np.full((2, 4), 0.3)])
    with np.errstate(all="raise"):
        found = _rows_with_both(indicators, np.full((4, 4), 7.0), present, law)
    np.testing.assert_array_equal(found, [[40.0, 40.0, 12.0], [40.0, 40.0, 12.0], [12.0, 12.0, 12.0]])


@pytest.mark.parametrize("seed", range(8))
def test_second_moments_become_possible_as_derived(seed: int) -> None:
    rng = np.random.default_rng(seed)
    constraints = Constraints.of(SCHEMA, mean=False)
    half = rng.normal(size=(D, D))
    gram = half @ half.T * 3 + rng.normal(scale=2.0) * np.eye(D)
    if seed % 2:
        gram[1, 1] = -1.0
    for count in (None, 60.0, 10.0):
        expected = plain.second_moment(gram, count, constraints, level_shares)
        np.testing.assert_allclose(possible_second_moment(gram, count, constraints), expected, **EXACT)


# --- the structured repair, step by step --------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", [0.0, 0.02, 0.3])
def test_posteriors_are_those_of_the_mixture(noise: float) -> None:
    rng = np.random.default_rng(4)
    scales = np.where(rng.random(40) < 0.2, 0.0, rng.uniform(0.1, 0.6, 40))
    cells, variances = rng.normal(scale=0.1, size=40), noise**2 * rng.uniform(0.5, 2.0, 40)
    for found, expected in zip(
        _posterior_moments(cells, variances, scales), plain.posterior(cells, variances, scales), strict=True
    ):
        np.testing.assert_allclose(found, expected, rtol=1e-7, atol=1e-12)


VARIANCES = CellVariances(3.0, 2.0, np.linspace(0.5, 1.5, D))
RNG = np.random.default_rng(5)
HALF = RNG.normal(scale=20, size=(D, D))
NOISY = NoisySums(80.0, RNG.normal(10.0, 5.0, D), HALF + HALF.T, RNG.uniform(1, 4, D))


def test_noise_on_covariances_is_that_of_cells_and_means() -> None:
    mean, relative = NOISY.sum / 80, np.linspace(0.5, 1.5, D)
    for projected in (False, True):
        found = _cell_variances(NOISY, mean, VARIANCES, CONSTRAINTS, projected=projected)
        left = np.ones(D)
        left[:3] = 2 / 3 if projected else 1.0
        for i in range(D):
            for j in range(D):
                cells = 2.0 * relative[i] * relative[j] * left[i] * left[j]
                means = mean[i] ** 2 * NOISY.sum_variance[j] + mean[j] ** 2 * NOISY.sum_variance[i]
                assert found[i, j] == pytest.approx((cells + means) / 6400)


def test_mean_variances_of_cells_are_those_of_the_law() -> None:
    law = gaussian(D, 2.0, 0.5, None, None).law()
    found = CellVariances.of(law, 3.0)
    assert (found.diagonal, found.off_diagonal) == pytest.approx((2.0 * 81, 0.5 * 81))
    one = CellVariances.of(gaussian(1, 2.0, 0.5, None, None).law(), 1.0)
    assert (one.diagonal, one.off_diagonal) == pytest.approx((2.0, 1.0))
    np.testing.assert_array_equal(found.each(3), np.ones(3))
    assert found.of_block(CONSTRAINTS.blocks[1]) == 1.0
    assert VARIANCES.of_block(CONSTRAINTS.blocks[1]) == pytest.approx(0.9)
    assert relative_noise(CONSTRAINTS) is None
    heavier = Constraints.of(Schema(Numeric("a", 0, 1, weight=2.0), Numeric("b", 0, 1)), mean=True)
    relative = relative_noise(heavier)
    assert relative is not None
    assert heavier.row_norm is not None
    np.testing.assert_allclose(relative, (heavier.units / heavier.row_norm) ** 2)


def test_shares_are_steadied_by_james_and_stein() -> None:
    schema = Schema(Categorical("a", list("abcde")), Categorical("b", list("xyz")), Numeric("c", 0, 1))
    constraints = Constraints.of(schema, mean=True)
    mean = np.array([0.5, 0.2, 0.1, 0.1, 0.1, 0.6, 0.3, 0.1, 0.0])
    for variance in (0.5, 40.0, 4000.0):
        noisy = NoisySums(40.0, mean * 40, np.zeros((9, 9)), variance * np.arange(1.0, 10.0))
        deviations = mean[:5] - 0.2
        kept = max(0.0, 1 - 2 * variance * 3.0 / 1600 / (deviations @ deviations))
        expected = mean.copy()
        expected[:5] = 0.2 + kept * deviations
        np.testing.assert_allclose(_steadied(mean, noisy, constraints), expected, **EXACT)


def test_a_flag_of_fractions_is_dropped_from_six_deviations_on() -> None:
    law = gaussian(D, 3.0, 2.0, 1.0, 5.0).law()
    for origin in (np.zeros(D), np.full(D, 0.3)):
        for tolerance in (0.1, 1e-4):
            of_sums = 0.09 * NOISY.sum_variance[6] if origin.any() else 0.0
            about = origin[6]
            variance = 3.0 * VARIANCES.each(D)[6] ** 2 + 4 * of_sums + (1 - about**2) ** 2 * 5.0
            most = 6 * math.sqrt(variance) + 1 + tolerance * 80
            for short, kept in ((most - 1e-6, True), (most + 1e-6, False)):
                gram = NOISY.gram.copy()
                gram[6, 6] = 80 - short - 2 * about * NOISY.sum[6] - 80 * about**2
                gram[9, 9] = 80 - 2 * about * NOISY.sum[9] - 80 * about**2
                found = _without_fractions(replace(NOISY, gram=gram), law, VARIANCES, CONSTRAINTS, origin, tolerance)
                assert found.flags == ((6, 9) if kept else (9,))


def test_single_features_are_repaired_alone() -> None:
    single, law, about = np.array([3, 6, 9, 10]), gaussian(D, 3.0, 1.5, 2.0, None).law(), NOISY.sum / 80
    spread = NOISY.gram[np.ix_(single, single)] - 80 * np.outer(about[single], about[single])
    values, vectors = np.linalg.eigh(spread / 4.0)
    noise = SpectralNoise.of(law.about(-about / 2.0).restricted(single.tolist()))
    expected = from_eigen(plain.bulk_and_outliers(values, noise, 80 * 4 / 4.0, 0.0), vectors) * 4.0 / 80
    np.testing.assert_allclose(_spectral(NOISY, single, about, law, 2.0), expected, **EXACT)
    assert _spectral(NOISY, single[:0], about, law, 2.0).shape == (0, 0)


def test_dependence_shrinks_by_kinds_of_pairs_and_margins_agree() -> None:
    rng = np.random.default_rng(6)
    levels = CompletedLevels.of(CONSTRAINTS, possible_mean(rng.uniform(0.1, 0.4, D), CONSTRAINTS))
    size = D + 2
    half = rng.normal(scale=0.1, size=(size, size))
    spread, of_cells = half + half.T, np.outer(rng.uniform(0.02, 0.1, size), np.ones(size))
    of_cells = of_cells * of_cells.T
    of_single = np.diag([0.2, 0.3, 0.4, 0.1]) + 0.01
    deviations = _deviations(np.diag(of_single), levels)
    shares = np.zeros(size)
    for column in levels.columns:
        shares[column.features] = column.shares
    expected = np.sqrt(shares * (1 - shares))
    expected[[3, 10]] = np.sqrt(np.diag(of_single)[[0, 3]])
    expected[levels.flags] = np.sqrt(levels.flag_variances)
    np.testing.assert_allclose(deviations, expected, **EXACT)
    column_of = {f: 3 * k + 100 for k, column in enumerate(levels.columns) for f in column.features.tolist()}
    kind = dict.fromkeys(column_of, "level") | {3: "single", 10: "single", 6: "flag", 9: "flag"}
    pairs: dict[frozenset[str], list[tuple[int, int]]] = {}
    for i in range(size):
        for j in range(i + 1, size):
            if column_of.get(i, i) != column_of.get(j, j):
                pairs.setdefault(frozenset((kind[i], kind[j])), []).append((i, j))
    plainly, uncertain = np.zeros((size, size)), np.zeros((size, size))
    plainly[np.ix_(levels.single, levels.single)] = of_single
    for kinds, of_kind in pairs.items():
        if kinds == {"single"}:
            continue
        i, j = map(list, zip(*of_kind, strict=True))
        means, variances = plain.posterior(spread[i, j], of_cells[i, j], deviations[i] * deviations[j])
        if "level" not in kinds:
            means = (means + plainly[i, j]) / 2
        plainly[i, j] = plainly[j, i] = means
        uncertain[i, j] = uncertain[j, i] = variances
    estimate, uncertainty = _shrunk_to_independence(spread, of_cells, of_single, deviations, levels)
    np.testing.assert_allclose(estimate, plainly, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(uncertainty, uncertain, rtol=1e-6, atol=1e-12)
    for _ in range(5):
        for column in levels.columns:
            for f in range(size):
                weights = uncertain[f, column.features]
                if weights.sum() > 0:
                    cells = plainly[f, column.features] - weights * plainly[f, column.features].sum() / weights.sum()
                    plainly[f, column.features] = cells
            plainly[column.features] = plainly[:, column.features].T
    _make_margins_agree(estimate, uncertainty, levels)
    np.testing.assert_allclose(estimate, plainly, rtol=1e-6, atol=1e-9)


def test_repairs_have_names() -> None:
    assert [Repair.of(str(each)) for each in Repair] == list(Repair)
    with refused("not-one-of", parameter="repair", value="mend"):
        Repair.of("mend")


def test_a_law_about_another_center_reaches_every_repair() -> None:
    law = gaussian(3, 2.0, 1.0, 4.0, 9.0).law()
    assert isinstance(law, NoiseLaw)
    assert repairs.exact_law(law) is law
    assert repairs.exact_law(replace(law, caveats=("linearized",))) is None
    assert repairs.exact_law(None) is None


def test_an_implied_count_weighs_every_pair_of_complete_blocks() -> None:
    schema = Schema(
        Categorical("a", list("xyz")), Categorical("b", ["p", "q"]), Numeric("c", 0, 1), Categorical("d", list("uvwx"))
    )
    constraints, relative = Constraints.of(schema, mean=True), np.linspace(0.5, 1.4, 10)
    half = np.random.default_rng(8).normal(20.0, 4.0, (10, 10))
    gram = half + half.T
    blocks = [(0, 3), (3, 5), (6, 10)]
    for cells, q in ((CellVariances(3.0, 2.0, relative), relative), (CellVariances(3.0, 0.5), np.ones(10))):
        weights, counts = [], []
        for place, (start, stop) in enumerate(blocks):
            weights.append(1 / ((stop - start) * 3.0 * q[start] ** 2))
            counts.append(np.trace(gram[start:stop, start:stop]))
            for low, high in blocks[:place]:
                weights.append(1 / ((stop - start) * (high - low) * cells.off_diagonal * q[start] * q[low]))
                counts.append(gram[start:stop, low:high].sum())
        assert implied_count(gram, cells, constraints) == pytest.approx(np.average(counts, weights=weights))
    assert implied_count(gram, cells, Constraints.of(Schema(Numeric("c", 0, 1)), mean=True)) is None


def test_a_count_about_the_center_is_weighed_with_traces_and_flags() -> None:
    relative = np.linspace(0.5, 1.5, D)
    for of_count, sums, scale in ((400.0, NOISY, 1.0), (4.0, NOISY, 1.0), (1e6, replace(NOISY, count=-500.0), 1e4)):
        cell = 2.0 * scale
        variances = CenteredVariances(CellVariances(2 * cell, cell, relative), 3.0, of_count)
        # The trace of a block about its center is n(1 − 1/k), of noise variance 2·cell·(k − 1)q²; a flag's square is n.
        found = [(sums.count, of_count)]
        found.append((np.trace(sums.gram[:3, :3]) / (2 / 3), 2 * cell * 2 * relative[0] ** 2 / (2 / 3) ** 2))
        found += [(sums.gram[f, f], 2 * cell * relative[f] ** 2) for f in (6, 9)]
        precision = sum(1 / variance for _, variance in found)
        count = sum(value / variance for value, variance in found) / precision
        expected = max(1.0, count, math.sqrt(1 / precision))
        assert _count_about_center(sums, variances, CONSTRAINTS) == pytest.approx(expected)


def test_variances_of_products_need_no_index_where_both_are_zero() -> None:
    """Var(aᵀ N b) of sparse a and b, against weights on every cell."""
    rng, law = np.random.default_rng(9), gaussian(4, 3.0, 2.0, 1.0, 5.0).law()
    first, second = rng.normal(size=(12, 5)), rng.normal(size=(12, 5)).round(0)
    first[rng.random((12, 5)) < 0.5] = 0.0
    first[0], second[0] = np.eye(5)[1], np.eye(5)[0]
    whole = np.einsum("ki,kj->kij", first, second)
    expected = law.variance(None, (whole + np.swapaxes(whole, 1, 2)) / 2.0)
    np.testing.assert_allclose(_variances(law, first, second), expected, **EXACT)


@pytest.mark.parametrize("seed", range(3))
def test_a_table_about_the_center_of_levels_is_left_as_it_is(seed: int) -> None:
    """Sums, blocks and squares of rows that are one-hot; what is wrong of them comes back, and variances are those left."""
    rng, n = np.random.default_rng(seed), 60
    lacking = Categorical("b", ["p", "q"], missing="zero")
    others = Boolean("c"), Numeric("e", 0, 1), Categorical("f", ["s", "t"])
    schema = Schema(Categorical("a", list("xyz")), lacking, *others)
    constraints = Constraints.of(schema, mean=True)
    rows = np.zeros((n, 9))
    rows[np.arange(n), rng.integers(0, 3, n)] = 1.0
    some = rng.random(n) < 0.7
    rows[some, 3 + rng.integers(0, 2, n)[some]] = 1.0
    rows[:, 5], rows[:, 6] = rng.choice([-1.0, 1.0], n), rng.random(n)
    rows[np.arange(n), 7 + rng.integers(0, 2, n)] = 1.0
    center = np.array([1 / 3] * 3 + [1 / 2] * 2 + [0.0, 0.0] + [1 / 2] * 2)
    np.testing.assert_allclose(center_of_levels(constraints), center)
    about = rows - center
    relative = rng.uniform(0.5, 1.5, 9)
    relative[:3], relative[3:5], relative[7:] = relative[0], relative[3], relative[7]
    exact = NoisySums(float(n), about.sum(axis=0), about.T @ about, np.full(9, 5.0))
    variances = CenteredVariances(CellVariances(4.0, 2.0, relative), 3.0, 5.0)
    found = project_about_center(exact, variances, constraints)
    assert found.count == pytest.approx(n)
    np.testing.assert_allclose(found.sum, exact.sum, **EXACT)
    np.testing.assert_allclose(found.gram, exact.gram, **EXACT)
    wrong = exact.gram.copy()
    wrong[0, 1] = wrong[1, 0] = wrong[5, 5] = 99.0
    mended = project_about_center(replace(exact, gram=wrong), variances, constraints)
    assert mended.gram[5, 5] == mended.count
    np.testing.assert_allclose(mended.gram[:3, :3].sum(axis=0), 0.0, atol=1e-9)
    np.testing.assert_allclose(found.sum_variance[5:7], 3.0 * relative[5:7])
    of_sum, of_cells = 1 / (3.0 * relative[0]), 1 / (4.0 * relative[0] ** 2)
    np.testing.assert_allclose(found.sum_variance[:3], (2 / 3) / (of_sum + of_cells / 3))
    np.testing.assert_allclose(found.sum_variance[7:], 3.0 * relative[7] / 2)
    # An incomplete block, about 1/2: its cells are ℓ_i δ_ij − (ℓ_i + ℓ_j)/2 + n/4, least squares in the ℓ.
    of_sum, of_cells = 1 / (3.0 * relative[3]), 1 / (4.0 * relative[3] ** 2)
    design = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 0.0], [0.0, 0.0], [-0.5, -0.5]])
    precision = np.diag([of_sum, of_sum, of_cells, of_cells, 2 * of_cells])
    left = np.linalg.inv(design.T @ precision @ design)
    np.testing.assert_allclose(found.sum_variance[3:5], np.diag(left))


@pytest.mark.parametrize(
    ("numbers", "levels", "noise", "structured"),
    [(3, 3, 0.1, True), (4, 3, 0.1, False), (3, 3, 900.0, False), (0, 3, 900.0, True)],
)
def test_second_moments_are_structured_unless_numbers_or_noise_outweigh(
    numbers: int, levels: int, noise: float, structured: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    kinds = [Categorical("g", list("abcdef")[:levels]), *(Numeric(f"n{i}", 0, 1) for i in range(numbers))]
    schema = Schema(*kinds)
    constraints = Constraints.of(schema, mean=False)
    d = numbers + levels
    law = gaussian(d, 2 * noise, noise, None, None).law()
    rng = np.random.default_rng(0)
    half = rng.normal(size=(d, d))
    gram = half @ half.T + 40.0 * np.eye(d)
    seen: list[Any] = []

    def recorded(noisy: NoisySums, *_: Any, **how: Any) -> Any:
        seen.append((noisy, how))
        return np.full(d, 0.1), np.eye(d)

    monkeypatch.setattr(structured_module, "structured_moments", recorded)
    found = structured_second_moment(gram, 50.0, law, constraints, gram + 1.0)
    if not structured:
        assert not seen
        np.testing.assert_allclose(found, possible_second_moment(gram + 1.0, 50.0, constraints))
        return
    ((noisy, how),) = seen
    assert how["rows_moved"] is False
    np.testing.assert_allclose(found, 50.0 * (np.eye(d) + 0.01))
    np.testing.assert_allclose(noisy.sum[levels:], (gram + 1.0)[:levels, levels:].sum(axis=0))
    assert not noisy.sum[:levels].any()
    assert np.isinf(noisy.sum_variance[:levels]).all()
    scale = 1.0 if constraints.row_norm is None else constraints.row_norm
    np.testing.assert_allclose(noisy.sum_variance[levels:], noise * scale**4)
    assert noisy.count == 50.0
    structured_second_moment(gram, None, law, constraints, gram)
    cells = CellVariances(2 * noise * scale**4, noise * scale**4)
    assert seen[-1][0].count == pytest.approx(implied_count(gram, cells, constraints))


@pytest.mark.parametrize(("moved", "tolerance"), [(True, 0.1), (False, 1e-4)])
def test_flags_may_fall_short_by_clipping_or_rounding(
    moved: bool, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    law, seen = gaussian(D, 3.0, 1.5, 2.0, 1.0).law(), []
    plainly = structured_module._without_fractions

    def recorded(*given: Any) -> Constraints:
        seen.append(given[-1])
        return plainly(*given)

    monkeypatch.setattr(structured_module, "_without_fractions", recorded)
    structured_module.structured_moments(NOISY, law, CONSTRAINTS, None, rows_moved=moved)
    assert seen == [tolerance]


def test_equal_shares_are_left_as_they_are() -> None:
    constraints = Constraints.of(Schema(Categorical("a", list("abcde"))), mean=True)
    mean = np.full(5, 0.2)
    noisy = NoisySums(40.0, mean * 40, np.zeros((5, 5)), np.ones(5))
    np.testing.assert_array_equal(_steadied(mean, noisy, constraints), mean)


@pytest.mark.parametrize("noisy", [False, True])
def test_rows_with_two_values_lie_between_independence_and_what_was_counted(noisy: bool) -> None:
    """By the variance of a number spread evenly over what margins allow, and that of the noise; at least one row."""
    rng = np.random.default_rng(10)
    law = gaussian(3, 30.0, 20.0, 10.0, 5.0).law() if noisy else None
    indicators = np.vstack([np.eye(4)[0], rng.uniform(0.0, 1.0, (3, 4))])
    half = rng.uniform(0.0, 20.0, (4, 4))
    moments = half + half.T
    for present in (
        np.array([40.0, 30.0, 12.0, 5.0]),
        np.array([40.0, 39.0, 1.2, 0.5]),
        np.array([0.5, 0.4, 0.3, 0.2]),
    ):
        found = _rows_with_both(indicators, moments, present, law)
        count = present[0]
        for i in range(4):
            for j in range(4):
                low, high = max(present[i] + present[j] - count, 0.0), min(present[i], present[j])
                expected = present[i] * present[j] / count
                if noisy and i > 0 and j > 0 and i != j:
                    weights = np.outer(indicators[i], indicators[j])
                    variance = float(law.variance(None, (weights + weights.T)[None] / 2)[0]) if law else 0.0
                    width = (high - low) ** 2 / 12.0
                    counted = indicators[i] @ moments @ indicators[j]
                    expected += (width / (width + variance) if width else 0.0) * (counted - expected)
                expected = min(max(expected, low, min(1.0, count)), high) if i != j else present[i]
                assert found[i, j] == pytest.approx(expected), (i, j)


def test_noise_of_numbers_of_rows_is_in_covariances() -> None:
    """Cov(j, k) is over n_jk: relative to it, the noise of n_jk/n to first order, as of independent gaps."""
    rng = np.random.default_rng(11)
    law = gaussian(3, 3.0, 2.0, 1.0, 5.0).law()
    indicators = np.vstack([np.eye(4)[0], rng.uniform(-0.5, 1.0, (2, 4))])
    groups, present = np.array([0, 1, 2, 1]), np.array([50.0, 40.0, 20.0])
    both = np.array([[50.0, 40.0, 20.0], [40.0, 40.0, 17.0], [20.0, 17.0, 20.0]])
    half = rng.normal(size=(4, 4))
    covariance = half @ half.T
    found = _of_counts(covariance, indicators, groups, present, both, law)
    assert found is not None
    cells = found.cell_variances()
    assert not cells[0].any()
    share = present / 50.0
    for a in range(4):
        for b in range(4):
            i, j = groups[a], groups[b]
            gaps = [indicators[k] - share[k] * np.eye(4)[0] for k in (i, j)]
            shift = share[j] * gaps[0] + share[i] * gaps[1]
            weights = np.outer(shift, np.eye(4)[0])
            variance = float(law.variance(None, (weights + weights.T)[None] / 2)[0]) if i != j else 0.0
            assert cells[a + 1, b + 1] == pytest.approx((50.0 * covariance[a, b]) ** 2 * variance / both[i, j] ** 2)
    assert _of_counts(covariance, indicators[:1], groups * 0, present[:1], both[:1, :1], law) is None


@pytest.mark.parametrize("skews", [(0.0, 0.0), (0.7, 0.0), (0.0, 0.3), (0.5, 0.5), (0.2, 0.9)])
def test_the_threshold_is_where_the_edge_turns(skews: tuple[float, float]) -> None:
    """At g = 1/threshold the slope of 1/g + R(g) is 0, and the edge is its value."""
    noise = SpectralNoise(9, 3.0, 5.0, *skews)

    def height(g: float) -> float:
        return 1 / g + noise.variance * g / ((1 - skews[0] * g) * (1 + skews[1] * g))

    g, step = 1 / noise.threshold, 1e-5
    assert height(g + step) - height(g - step) == pytest.approx(0.0, abs=1e-8)
    assert noise.edge == pytest.approx(height(g))
    assert height(g) < min(height(0.9 * g), height(1.05 * g))


def test_sums_that_nothing_measures_have_no_precision() -> None:
    """Without a mean and without a complete block only levels have sums: those of their own squares."""
    schema = Schema(Categorical("a", ["x", "y"], missing="zero"), Numeric("b", 0, 1))
    constraints = Constraints.of(schema, mean=True)
    gram = np.array([[20.0, 3.0, 4.0], [3.0, 10.0, 5.0], [4.0, 5.0, 9.0]])
    noisy = NoisySums(40.0, np.zeros(3), gram, np.full(3, np.inf))
    found = project(noisy, CellVariances(3.0, 2.0), constraints)
    np.testing.assert_array_equal(found.sum, [20.0, 10.0, 0.0])
    np.testing.assert_allclose(found.sum_variance, [3.0, 3.0, np.inf])
    np.testing.assert_array_equal(found.gram, [[20.0, 0.0, 4.0], [0.0, 10.0, 5.0], [4.0, 5.0, 9.0]])


@pytest.mark.parametrize(("moved", "loud"), [(False, 0.05), (False, 3.0), (True, 0.05)])
def test_the_structured_repair_is_its_steps_one_after_another(
    moved: bool, loud: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The spectral repair of all features weighs by kinds of pairs, and alone where noise is more than all rows."""
    rng, scale = np.random.default_rng(12), CONSTRAINTS.row_norm or 1.0
    law = gaussian(D, 2 * loud, loud, loud, 1.0).law()
    rows = np.clip(rng.normal(0.2, 0.4, (80, D)), -1.0, 1.0)
    rows[:, [6, 9]] = np.sign(rows[:, [6, 9]])
    noisy = NoisySums(80.0, rows.sum(axis=0), rows.T @ rows, np.full(D, loud))
    whole = np.cov(rng.normal(size=(200, D)).T)
    seen: list[np.ndarray] = []
    monkeypatch.setattr(structured_module, "possible_covariance", lambda estimate, _: seen.append(estimate))
    mean, _ = structured_module.structured_moments(noisy, law, CONSTRAINTS, whole, rows_moved=moved)
    variances = CellVariances.of(law, scale)
    assert _without_fractions(noisy, law, variances, CONSTRAINTS, np.zeros(D), 1e-4).flags == (6, 9)
    sums = noisy if moved else project(noisy, variances, CONSTRAINTS)
    from_origin = sums.sum / 80
    np.testing.assert_allclose(mean, possible_mean(_steadied(from_origin, sums, CONSTRAINTS), CONSTRAINTS))
    levels = CompletedLevels.of(CONSTRAINTS, mean)
    of_single = _spectral(sums, levels.single, mean, law, scale)
    spread = levels.extended(sums.gram / 80 - np.outer(from_origin, from_origin))
    of_cells = levels.extended_variances(
        _cell_variances(sums, from_origin, variances, CONSTRAINTS, projected=not moved)
    )
    deviations = _deviations(np.diag(of_single), levels)
    estimate, uncertainty = _shrunk_to_independence(spread, of_cells, of_single, deviations, levels)
    noise = math.sqrt(law.energy) * scale**2
    single = set(levels.single.tolist())
    for i in range(D):
        for j in range(D):
            weight = 0.5 * len(single) / D
            if i not in single and j not in single:
                weight = 0.05
            if i in single and j in single:
                weight = max(weight, 1 - 80 / noise if noise > 80 else 0.0)
            estimate[i, j] += weight * (whole[i, j] - estimate[i, j])
    _make_margins_agree(estimate, uncertainty, levels)
    np.testing.assert_allclose(seen[0], estimate, **EXACT)
    assert (noise > 80) == (loud > 1)
