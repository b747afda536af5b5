"""Order of sizes, and bordered matrices."""

from __future__ import annotations

import numpy as np

from dpmoments.base.values import first_largest, largest_first, leading_positive


def test_sizes_that_differ_by_rounding_keep_their_order() -> None:
    half = 0.5
    close = [half, np.nextafter(half, 1.0), 3.0, np.nextafter(half, 0.0), 0.0, 2e-300, 0.49]
    assert largest_first(np.array(close)).tolist() == [2, 0, 1, 3, 6, 5, 4]
    assert np.argsort(-np.array(close), kind="stable").tolist() != [2, 0, 1, 3, 6, 5, 4]
    apart = np.random.default_rng(0).uniform(size=50)
    np.testing.assert_array_equal(largest_first(apart), np.argsort(-apart, kind="stable"))
    assert largest_first(np.array([])).tolist() == []


def test_of_sizes_that_differ_by_rounding_the_first_is_the_largest() -> None:
    sizes = np.array([[0.5, np.nextafter(0.5, 1.0), 0.1], [-2.0, -1.0, np.nextafter(-1.0, 0.0)], [0.0, 0.0, 1e-300]])
    assert first_largest(sizes).tolist() == [0, 1, 2]
    assert np.argmax(sizes, axis=1).tolist() != [0, 1, 2]
    assert first_largest(np.array([1.0, 1.0 + 1e-6])) == 1
    rows = np.array([[-0.5, np.nextafter(0.5, 1.0), 0.1], [0.2, -0.9, 0.3]])
    np.testing.assert_array_equal(leading_positive(rows), -rows)
