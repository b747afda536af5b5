"""Numbers of rows with two values, and their noise, against loops over the pairs."""

from __future__ import annotations

import numpy as np
import pytest

from dpmoments.analysis.available_cases import _rows_with_both
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
