"""A row times its weight over the cap: no sensitivity grows, and those of rows without weights are attained."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from dpmoments.privacy.sensitivity import (
    ROUGH_CENTER,
    ROUGH_WEIGHT,
    gram_frobenius,
    gram_nuclear,
    rough_sums_l2,
    sums_in_body,
)
from dpmoments.privacy.unit import Neighbors

D, W = 3, 0.5
SHARES = (0.0, 0.25, 0.5, 1.0)


def rows(seed: int) -> list[np.ndarray]:
    """Augmented rows of the unit ball: axes, their opposites, the worst in place of one, and random ones."""
    random = np.random.default_rng(seed).standard_normal((12, D))
    random *= (np.random.default_rng(seed + 1).random(12) / np.linalg.norm(random, axis=1))[:, None]
    axes = [sign * axis for axis in np.eye(D) for sign in (1.0, -1.0)]
    orthogonal = np.array([-(W**2), np.sqrt(1.0 - W**4), 0.0])  # to an axis, with the constant
    return [np.append(W, x) for x in (*axes, orthogonal, *random)]


def largest(norm: str, neighbors: Neighbors, *, cap: float = 1.0) -> float:
    """The largest change of Σ t z zᵀ over pairs of rows with weights, t up to ``cap``."""
    weighted = [cap * t * np.outer(z, z) for z in rows(1) for t in SHARES]
    others = weighted if neighbors is Neighbors.REPLACE_ONE else [np.zeros((D + 1, D + 1))]
    return max(float(np.linalg.norm(one - other, norm)) for one, other in itertools.product(weighted, others))


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize(("norm", "stated"), [("fro", gram_frobenius), ("nuc", gram_nuclear)])
def test_weighted_gram_matrices_move_no_more_and_attain_it(neighbors: Neighbors, norm: str, stated: object) -> None:
    allowed = stated(neighbors, D, W).value  # type: ignore[operator]
    reached = largest(norm, neighbors)
    assert reached <= allowed * (1 + 1e-12)
    assert reached >= allowed * (1 - 1e-9)
    assert largest(norm, neighbors, cap=1.1) > allowed  # a weight above the cap would move it further


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_weighted_sums_stay_in_the_body_and_in_the_ball(neighbors: Neighbors) -> None:
    one = neighbors is Neighbors.ADD_REMOVE
    gamma, center = float(ROUGH_WEIGHT), float(ROUGH_CENTER)
    values = np.linspace(-1.0, 1.0, 21)
    in_body = [t * np.array([1.0, x, 2 * x**2 - 1]) for x in values for t in SHARES]
    in_ball = [t * np.array([1.0, x, gamma * (x**2 - center)]) for x in values for t in SHARES]
    body = max(float(np.abs(a - b).max()) for a in in_body for b in ([0 * a] if one else in_body))
    ball = max(float(np.linalg.norm(a - b)) for a in in_ball for b in ([0 * a] if one else in_ball))
    assert body == pytest.approx(sums_in_body(neighbors, 3).value, rel=1e-12)
    assert 0.99 * rough_sums_l2(neighbors, 1, 0).value <= ball <= rough_sums_l2(neighbors, 1, 0).value
