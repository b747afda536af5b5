"""Sums of clipped residual products: their value, their exactness, and how far one row moves them."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from dpmoments.rows.kernel import LONGEST, SHARE_WEIGHT, ClippedProducts
from dpmoments.rows.rows import Rows
from dpmoments.schema.schema import Schema

BITS, CLIP = 20, 0.3
RNG = np.random.default_rng(4)
LINEAR = np.array([[1.5, 0.2, 0.0], [0.0, -2.0, 0.0], [-0.4, 0.3, 1.0]])
CENTER = np.array([0.1, -0.05, 0.2])
TABLE = RNG.uniform(-0.55, 0.55, (500, 3))


def sums(table: np.ndarray) -> np.ndarray:
    """Integer sums over the kept rows of a table."""
    rows = Rows.of(table, Schema.unit_ball(3, missing="drop"))
    return rows.clipped_products(LINEAR, CENTER, 0.05, CLIP, bits=BITS).sum


def reference(table: np.ndarray) -> np.ndarray:
    total = np.zeros(4)
    for row in table[np.isfinite(table).all(axis=1)]:
        values = LINEAR @ (row - CENTER)
        product = (values[-1] - 0.05) * np.array([1.0, *values[:-1]])
        length = float(np.linalg.norm(product))
        total[:3] += product * min(1.0, CLIP / length)
        total[3] += SHARE_WEIGHT * CLIP * (length > CLIP)
    return total


def test_they_are_the_sums_of_the_clipped_products_of_kept_rows() -> None:
    table = np.vstack([TABLE, [[np.nan, 0.1, 0.2]]])
    found = sums(table) * LONGEST * CLIP * 2.0**-BITS
    np.testing.assert_allclose(found, reference(TABLE), atol=len(TABLE) * LONGEST * CLIP * 2.0**-BITS)
    np.testing.assert_array_equal(sums(table), sums(TABLE))  # a dropped row has no term
    assert 0.1 < found[3] / (SHARE_WEIGHT * CLIP * len(TABLE)) < 0.9


def test_parts_and_their_order_change_no_bit() -> None:
    summary = pickle.loads(pickle.dumps(ClippedProducts.of(LINEAR, CENTER, 0.05, CLIP, BITS, "drop")))
    result = summary.finish(summary.start())
    for part in (TABLE[400:], TABLE[:1], TABLE[1:37][::-1], TABLE[37:400]):
        running = summary.start()
        summary.add(running, np.asfortranarray(part))
        result = summary.merge(result, summary.finish(running))
    np.testing.assert_array_equal(result.sum, sums(TABLE))


ROWS = [
    *RNG.uniform(-1.0, 1.0, (30, 3)) / np.sqrt(3.0),
    *([x, y, z] for x in (0.5, -0.5) for y in (0.0, 0.5) for z in (0.7, -0.7)),
    [np.nan, 0.0, 0.0],
    CENTER.tolist(),
]


def moved(first: np.ndarray, second: np.ndarray) -> float:
    return float(np.linalg.norm((sums(first) - sums(second)).astype(float))) / 2.0**BITS


@pytest.mark.parametrize("index", range(0, len(ROWS), 3))
def test_a_row_moves_them_by_at_most_its_longest_and_a_replaced_one_by_twice_that(index: int) -> None:
    one = np.vstack([TABLE[:9], ROWS[index]])
    assert moved(one, TABLE[:9]) <= 1.0
    for other in ROWS:
        replaced = moved(one, np.vstack([TABLE[:9], other]))
        assert replaced <= (1.0 if np.isnan(ROWS[index][0]) or np.isnan(other[0]) else 2.0)


def opposite_of_length(length: float) -> np.ndarray:
    """Row with the features of a far one, on the other side of the line, and a product of this length."""
    row = np.array([0.5, 0.5, 0.0])
    regressors = np.append(1.0, (LINEAR @ (row - CENTER))[:-1])
    row[2] -= (LINEAR @ (row - CENTER))[-1] - 0.05 + length / float(np.linalg.norm(regressors))
    return row[None]


def test_the_bounds_are_nearly_attained() -> None:
    high, low = np.array([[0.5, 0.5, 0.7]]), np.array([[0.5, 0.5, -0.7]])
    assert moved(high, np.empty((0, 3))) > 0.9999
    inside = opposite_of_length(0.999 * CLIP)
    # Two clipped rows have the same last coordinate; the most is one clipped row against one of nearly that length.
    assert moved(high, low) == pytest.approx(2.0 / LONGEST, abs=1e-3)
    assert moved(high, inside) > 2.0 * np.sqrt(1.0 + SHARE_WEIGHT**2 / 4.0) / LONGEST - 2e-3
    assert moved(np.vstack([high, high]), np.empty((0, 3))) > 1.9999  # two rows of one unit
