"""Numbers of rows with two values, and their noise, against loops over the pairs."""

from __future__ import annotations

import numpy as np
import pytest

from dpmoments.analysis.available_cases import _of_counts, _rows_with_both, _variances
from support.noise_models import gaussian


def test_rows_with_both_values_are_fixed_by_margins_without_noise() -> None:
    """Where margins leave no room and nothing has noise, 0/0 is no weight."""
    law = gaussian(3, 0.0, 0.0, 0.0, 0.0).law()
    present = np.array([40.0, 40.0, 12.0])
    indicators = np.vstack([np.eye(4)[0], np.full((2, 4), 0.3)])
    with np.errstate(all="raise"):
        found = _rows_with_both(indicators, np.full((4, 4), 7.0), present, law)
    np.testing.assert_array_equal(found, [[40.0, 40.0, 12.0], [40.0, 40.0, 12.0], [12.0, 12.0, 12.0]])


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


def test_variances_of_products_need_no_index_where_both_are_zero() -> None:
    """Var(aᵀ N b) of sparse a and b, against weights on every cell."""
    rng, law = np.random.default_rng(9), gaussian(4, 3.0, 2.0, 1.0, 5.0).law()
    first, second = rng.normal(size=(12, 5)), rng.normal(size=(12, 5)).round(0)
    first[rng.random((12, 5)) < 0.5] = 0.0
    first[0], second[0] = np.eye(5)[1], np.eye(5)[0]
    whole = np.einsum("ki,kj->kij", first, second)
    expected = law.variance(None, (whole + np.swapaxes(whole, 1, 2)) / 2.0)
    np.testing.assert_allclose(_variances(law, first, second), expected, rtol=1e-9, atol=1e-9)
