"""Repair of noisy counts: whole numbers, none negative, with a given total."""

from __future__ import annotations

import numpy as np

from dpmoments.foundation.arrays import FloatArray, IntegerArray


def possible_counts(noisy: FloatArray, total: int | None = None) -> IntegerArray:
    """Return the possible counts of this total nearest to noisy counts, as whole numbers.

    The least-squares projection on counts of 0 or above that sum to the total subtracts one number from all counts and sets
    what is negative to 0. The total is the public one, or else the sum of the noisy counts, which has no bias; setting each
    negative count to 0 by itself would add rows. Rounding keeps the total: the largest fractions are rounded up. A tie goes to
    the first cell.

    >>> possible_counts(np.array([-2.0, 1.0, 5.0])).tolist(), possible_counts(np.array([2.4, 3.4]), 6).tolist()
    ([0, 0, 4], [3, 3])
    """
    cells = noisy.ravel()
    wanted = max(0, round(float(cells.sum()))) if total is None else total
    ordered = np.sort(cells)[::-1]
    excess = (np.cumsum(ordered) - wanted) / np.arange(1, len(cells) + 1)
    kept = max(1, int(np.count_nonzero(ordered > excess)))
    exact = np.maximum(cells - excess[kept - 1], 0.0)
    whole = np.floor(exact).astype(np.int64)
    missing = wanted - int(whole.sum())
    by_fraction = np.argsort(-(exact - whole), kind="stable")
    whole[by_fraction[: max(0, missing)]] += 1
    counts: IntegerArray = whole.reshape(noisy.shape)
    return counts
