"""The rule of resolvability: p-values that agree with intervals, Holm's correction, effects seen in advance."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
import scipy

import dpmoments as dpm
from dpmoments.analysis import confidence
from dpmoments.analysis.confidence import deviations_for
from dpmoments.moments.cells import CellFamily, GaussianCells, IsotropicCells, LaplaceCells, MatrixLaplaceCells
from dpmoments.moments.law import NoiseLaw


def _law(family: CellFamily) -> NoiseLaw:
    return NoiseLaw.additive(family, 3, diagonal=2.0, off_diagonal=1.0, of_sum=1.0, of_count=2.0)


@pytest.mark.parametrize("size", [3, 14])
def test_the_monotone_interpolant_is_that_of_scipy(size: int) -> None:
    rng = np.random.default_rng(size)
    for values in (np.cumsum(rng.exponential(size=size)), np.maximum(rng.normal(size=size), 0.0)):
        x = np.sort(rng.normal(size=size))
        at = np.concatenate([x, rng.uniform(x[0], x[-1], 50)])
        expected = scipy.interpolate.PchipInterpolator(x, values)(at)
        np.testing.assert_allclose(confidence._monotone(x, values)(at), expected, atol=1e-13)


FAMILIES = [GaussianCells(), LaplaceCells(), MatrixLaplaceCells(4), IsotropicCells(4)]


@pytest.mark.parametrize("family", FAMILIES, ids=lambda family: type(family).__name__)
@pytest.mark.parametrize("level", [0.5, 0.95, 1 - 1e-6])
def test_p_is_what_the_interval_that_touches_zero_leaves(family: CellFamily, level: float) -> None:
    law = _law(family)
    privacy = np.array([0.0, 0.3, 0.7, 1.0])
    sampling = 1.0 - privacy
    reach = deviations_for(level, law, privacy, sampling)
    found = confidence.p_values(reach, privacy, sampling, law)
    np.testing.assert_allclose(found, 1.0 - level, rtol=0.02)
    if level == 0.95:  # a p-value below .05 and an interval without 0 are the same statement
        outside = confidence.p_values(reach * (1 + 1e-6), privacy, sampling, law)
        inside = confidence.p_values(reach * (1 - 1e-6), privacy, sampling, law)
        assert (outside < 0.05).all()
        assert (inside > 0.05).all()


def test_unknown_noise_has_no_p() -> None:
    assert np.isnan(confidence.p_values(np.ones(2), np.ones(2), np.ones(2), None)).all()


def _holds(p: np.ndarray, counts_as: np.ndarray | None = None) -> np.ndarray:
    return confidence.holds_among_all(p, np.ones(p.shape) if counts_as is None else counts_as, 0.95)


def _holm_by_steps(p: np.ndarray, counts_as: np.ndarray, rate: float = 0.05) -> np.ndarray:
    """The weighted step-down procedure as Holm (1979) states it."""
    rejected, left = np.zeros(len(p), dtype=bool), float(counts_as.sum())
    for index in np.argsort(p / counts_as):
        if p[index] >= rate * counts_as[index] / left:
            break
        rejected[index], left = True, left - counts_as[index]
    return rejected


def test_holm_is_the_step_down_procedure() -> None:
    rng = np.random.default_rng(0)
    for _ in range(200):
        p = rng.uniform(size=rng.integers(1, 12)) ** rng.integers(1, 6)
        for counts_as in (np.ones(len(p)), rng.uniform(0.1, 1.0, len(p))):
            np.testing.assert_array_equal(_holds(p, counts_as), _holm_by_steps(p, counts_as))
            with_unknown = _holds(np.insert(p, 0, np.nan), np.insert(counts_as, 0, 0.5))
            np.testing.assert_array_equal(with_unknown[1:], _holm_by_steps(p, counts_as))


def test_what_is_forecast_is_seen_in_four_of_five() -> None:
    m, deviation, tables = 20, 0.3, 4_000
    none, sampling, normal = np.zeros(1), np.array([deviation**2]), _law(GaussianCells())
    effect = float(confidence.smallest_seen(none, sampling, m, normal)[0])
    rng = np.random.default_rng(2)
    estimate = rng.normal(0.0, deviation, (tables, m))
    estimate[:, 0] += effect
    p = 2.0 * scipy.stats.norm.sf(np.abs(estimate) / deviation)
    seen = np.mean([_holds(row)[0] for row in p])
    assert 0.78 < seen < 0.83
    alone = float(confidence.smallest_seen(none, sampling, 1, normal)[0])
    assert confidence.smallest_seen(none, sampling, 0, normal)[0] == alone
    assert alone == pytest.approx(deviation * (1.959964 + 0.841621), rel=1e-6)
    heavy = confidence.smallest_seen(sampling, none, m, _law(LaplaceCells()))
    assert heavy[0] > 1.2 * effect  # Laplace tails reach further


def test_the_reason_is_the_larger_part() -> None:
    verdicts = confidence.sign_verdicts(
        np.array([0.4, -0.4, 0.01, 0.01, 0.2, 0.9]),
        np.array([0.04, 1e-9, 0.5, 0.5, np.nan, 0.5]),
        np.array([1.0, 1.0, 2.0, 1.0, 1.0, 1.0]),
        np.array([1.0, 1.0, 1.0, 2.0, 1.0, 1.0]),
        np.array([True, True, True, True, True, False]),
        0.95,
    )
    reasons = ["not clear (noise)", "not clear (too few rows)", "noise unknown", "not estimable at this budget"]
    assert verdicts == ["positive", "negative", *reasons]


def test_equal_parts_are_called_noise() -> None:
    assert confidence.not_clear(1.0, 1.0) == confidence.not_clear(1.0 + 1e-9, 1.0) == confidence.NOT_CLEAR_NOISE
    assert confidence.not_clear(1.0, 1.0 + 1e-9) == confidence.NOT_CLEAR_ROWS


def test_estimable_is_half_of_what_was_public() -> None:
    lower, upper = np.array([-0.49, -0.5, -np.inf, np.nan]), np.array([0.49, 0.5, 0.0, 0.1])
    assert confidence.estimable(lower, upper, -1.0, 1.0).tolist() == [True, False, False, False]


def _groups(seed: int, epsilon: float = 1.0, *, differ: bool = False) -> dpm.MomentRelease:
    rng = np.random.default_rng(seed)
    levels = [f"r{index}" for index in range(5)]
    region = rng.choice(levels, 5_000)
    value = rng.normal(50.0, 10.0, (5_000, 2)).clip(0.0, 100.0)
    value[:, 0] += 8.0 * differ * (region == "r0")
    frame = pa.table({"region": region, "a": value[:, 0].clip(0.0, 100.0), "b": value[:, 1]})
    schema = dpm.Schema(dpm.Categorical("region", levels), dpm.Numeric("a", 0, 100), dpm.Numeric("b", 0, 100))
    return dpm.release(frame, schema, epsilon=epsilon, mechanism="matrix-laplace", insecure_seed=seed)


def test_groups_that_differ_are_named() -> None:
    found = _groups(0, 3.0, differ=True).group_means("region", ["a"]).differences
    named = [word for pair, word in zip(found.pairs, found.verdict[0], strict=True) if "region=r0" in pair]
    assert named == ["region=r0 higher"] * 4
    assert found.holds_among_all.sum() >= 4
    assert found.comparisons[1].sum() == pytest.approx(4.0)  # ten pairs of five groups


def test_a_column_of_many_levels_takes_little_from_the_others() -> None:
    """Its k levels count as k − 1 comparisons, and nothing that is printed of another pair changes with them."""
    rng, levels = np.random.default_rng(0), [f"s{index}" for index in range(12)]
    frame = pa.table({"x": rng.normal(0, 1, 4_000), "y": rng.normal(0, 1, 4_000), "state": rng.choice(levels, 4_000)})
    schema = dpm.Schema(dpm.Numeric("x", -4, 4), dpm.Numeric("y", -4, 4), dpm.Categorical("state", levels))
    release = dpm.release(frame, schema, epsilon=3.0, insecure_seed=0)
    whole, two = release.correlations(), release.correlations(["x", "y"])
    assert whole.comparisons[1].sum() == pytest.approx(1 + 2 * 11)
    assert whole.verdict[1][0] == two.verdict[1][0]
    assert release.group_means("state").differences.comparisons[1].sum() == pytest.approx(2 * 11)


def test_features_of_one_column_are_not_compared() -> None:
    rng = np.random.default_rng(0)
    frame = pa.table({"age": rng.uniform(0, 100, 3_000), "sex": rng.random(3_000) < 0.5})
    schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Boolean("sex"), dpm.Power("age", 2), dpm.Product("age", "sex"))
    found = dpm.release(frame, schema, epsilon=10.0, insecure_seed=0).correlations()
    names = found.feature_names
    said = {(names[j], names[i]) for i in range(4) for j in range(i) if found.verdict[i][j]}
    assert said == {("age", "sex"), ("sex", "age^2")}
    assert "of 2 pairs" in found.heading[0]
