"""K-norm noise on a box times cross-polytopes: the parts of its sampler, and the distribution of a coordinate.

Its law over all points, and its price, are in ``tests/privacy/test_laws.py``.
"""

from __future__ import annotations

import itertools
import math

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpmoments.moments.cells import KNormCells, LaplaceCells, sum_quantile
from dpmoments.moments.models import MeanModel
from dpmoments.privacy.laws import KNorm
from dpmoments.privacy.sampling import (
    _below,
    _points_by_nonzeros,
    _uniform_integer,
    insecure_generator,
    k_norm,
    secure_generator,
)
from support.said import refused

RNG = np.random.default_rng(7)


def words(size: int) -> np.ndarray:
    return RNG.integers(0, 2**64, size, dtype=np.uint64)


@pytest.mark.parametrize("dimension", [1, 2, 3, 4])
def test_lattice_points_of_a_cross_polytope_are_counted_by_their_nonzeros(dimension: int) -> None:
    for size in range(6):
        points = np.array(list(itertools.product(range(-size, size + 1), repeat=dimension)))
        inside = points[np.abs(points).sum(axis=1) <= size]
        counts = np.bincount((inside != 0).sum(axis=1), minlength=dimension + 1)
        assert _points_by_nonzeros(dimension, size) == counts.tolist()
        # few enough for the size of a body to be proposed by geometric draws
        assert counts.sum() * math.factorial(dimension) <= 2**dimension * math.perm(size + dimension, dimension)


def test_large_integers_and_fractions_are_exact() -> None:
    assert {_uniform_integer(3, words) for _ in range(100)} == {0, 1, 2}
    assert _uniform_integer(1, words) == 0
    bound = 2**200 + 12345
    drawn = np.array([_uniform_integer(bound, words) / bound for _ in range(2000)])
    assert stats.kstest(drawn, stats.uniform.cdf).pvalue > 1e-3
    for numerator, denominator in ((1, 3), (2**300, 2**301 + 1), (7, 7), (0, 5)):
        hits = sum(_below(numerator, denominator, words) for _ in range(3000))
        assert stats.binomtest(hits, 3000, numerator / denominator).pvalue > 1e-3

    def first_digit_then(rest: int) -> bool:
        digits = iter([2**63, rest])
        return _below(2**64 + 1, 2**65, lambda size: np.array([next(digits)] * size, dtype=np.uint64))

    # The first word is that of the fraction: the next one decides.
    assert first_digit_then(2**63 - 1)
    assert not first_digit_then(2**63 + 1)


@pytest.mark.long
@pytest.mark.parametrize("secure", [True, False])
def test_at_scales_of_releases_each_coordinate_has_the_law_that_is_stated(secure: bool) -> None:
    generator, scale, blocks = secure_generator() if secure else insecure_generator(3), 2.0**44, (2, 3)
    draws = np.array([k_norm(scale, 8, blocks, generator) for _ in range(1500)]) / scale
    limit = 1e-7 if secure else 1e-3

    def p_value(index: int, block: int) -> float:
        cells = KNormCells(8, block)
        levels = np.linspace(0.02, 0.98, 49)
        edges = [cells.quantile(float(level), diagonal=False) * math.sqrt(cells.variance) for level in levels]
        return float(stats.chisquare(np.histogram(draws[:, index], [-np.inf, *edges, np.inf])[0]).pvalue)

    assert min(p_value(0, 1), p_value(3, 2), p_value(7, 3)) > limit
    assert max(p_value(0, 3), p_value(7, 1)) < 1e-7  # faults: the law of another block
    assert np.abs(np.corrcoef(draws.T) - np.eye(8)).max() < 5.0 / math.sqrt(1500)


def test_what_cannot_be_drawn_is_refused_before_it_is_drawn() -> None:
    KNorm(2.0**52 / 9).check_shape((8,))
    KNorm(2.0, (1, 3)).check_shape((8,))
    for scale in (math.nextafter(2.0**52 / 9, math.inf), 1.99):
        with refused("must be", parameter="scale"):
            KNorm(scale).check_shape((8,))
    for blocks in ((9,), (4, 5)):
        with refused("is not for a query of shape"):
            KNorm(3.0, blocks).check_shape((8,))
    for blocks in ((0,), (1.5,), (True,), (-2,)):
        with refused("blocks of a k-norm draw"):
            KNorm(3.0, blocks)  # type: ignore[arg-type]


SHAPES = [(1, 1), (2, 1), (9, 1), (9, 4), (9, 9), (120, 1), (120, 50)]


@pytest.mark.long(sets=3)
@pytest.mark.parametrize(("dimension", "block"), SHAPES)
def test_a_coordinate_is_a_mixture_of_gammas(dimension: int, block: int) -> None:
    """Against E max(1 − x/r, 0)^m over r ~ Gamma(D + 1), and the moments by the hypergeometric function, in 40 digits."""
    cells = KNormCells(dimension, block)
    deviation = math.sqrt(cells.variance)
    with mpmath.workdps(40):
        for level in (0.6, 1.0 - 1e-6):
            x = mpmath.mpf(cells.quantile(level, diagonal=False)) * deviation
            middle = max(x, dimension + 1)
            tail = mpmath.quad(
                lambda r, x=x: (1 - x / r) ** block * r**dimension * mpmath.exp(-r) / mpmath.factorial(dimension),
                [x, (x + middle) / 2, middle, middle + 10, 2 * middle + 30, 4 * middle + 200],
            )
            assert float(tail / 2) == pytest.approx(1.0 - level, rel=1e-7)
        for s in (0.1, 0.9):
            of_sides = [mpmath.hyp2f1(dimension + 1, 1, block + 1, side * mpmath.mpf(s)) for side in (1, -1)]
            found = cells.log_moment(np.array([s * deviation + 0j]), diagonal=False)[0]
            assert found.real == pytest.approx(float(mpmath.log(sum(of_sides) / 2)), rel=1e-9)
    small = cells.log_moment(np.array([1e-3 + 0j]), diagonal=False)[0].real
    assert small == pytest.approx(0.5e-6, rel=1e-4)  # variance 1
    assert cells.pole(diagonal=False) == pytest.approx(deviation)
    assert cells.quantile(0.1, diagonal=False) == pytest.approx(-cells.quantile(0.9, diagonal=False), rel=1e-12)


def test_alone_in_its_block_a_coordinate_has_laplace_noise() -> None:
    for level in (0.2, 0.9, 0.999):
        of_laplace = LaplaceCells().quantile(level, diagonal=False)
        assert KNormCells(7, 7).quantile(level, diagonal=False) == pytest.approx(of_laplace, rel=1e-9)
        assert KNormCells(7, 1).quantile(level, diagonal=False) != pytest.approx(of_laplace, rel=1e-2)


@pytest.mark.parametrize("ratio", [0.0, 1e-5, 0.3, 1.0, 4.0])
@pytest.mark.parametrize(("dimension", "block"), [(2, 1), (9, 4), (40, 1)])
def test_a_coordinate_and_the_count_of_one_draw(dimension: int, block: int, ratio: float) -> None:
    rng, size = np.random.default_rng(5), 200_000
    radius = rng.gamma(dimension + 1.0, size=size)
    own = radius * rng.beta(1.0, block, size) * rng.choice([-1.0, 1.0], size)
    count = radius * rng.uniform(-1.0, 1.0, size)
    cells, of_count = KNormCells(dimension, block), KNormCells(dimension)
    total = np.abs(own / math.sqrt(cells.variance) + ratio * count / math.sqrt(of_count.variance))
    for level in (0.5, 0.95, 0.999):
        held = float(np.mean(total <= cells.half_width(level, ratio)))
        assert abs(held - level) < 4.5 * math.sqrt(level * (1.0 - level) / size)
    # fault: the two as independent
    if ratio == 1.0 and dimension == 40:
        parts = ((cells, 1.0, False), (of_count, 1.0, False))
        wrong = math.sqrt(2.0) * sum_quantile(0.975, parts)
        assert abs(float(np.mean(total <= wrong)) - 0.95) > 4.5 * math.sqrt(0.95 * 0.05 / size)


def test_norms_are_bounded_by_the_largest_cells() -> None:
    rng, m, runs = np.random.default_rng(2), 3, 3000
    cells = KNormCells(6)
    radius = rng.gamma(7.0, size=(runs, 1))
    entries = radius * rng.uniform(-1.0, 1.0, (runs, 6)) / math.sqrt(cells.variance)
    matrices = np.zeros((runs, m, m))
    matrices[:, *np.triu_indices(m)] = entries
    matrices += np.triu(matrices, 1).transpose(0, 2, 1)
    bound = cells.norm_bound(np.ones((m, m)), 0.01, m)
    assert (np.linalg.norm(matrices, 2, axis=(1, 2)) > bound).mean() <= 0.01


def test_a_file_states_what_the_noise_of_a_mean_needs() -> None:
    model = MeanModel(
        "k-norm", np.array([1.0, 2.0, 2.0]), np.array([0.5, 0.0, 0.1]), dimension=4, block_sizes=(1, 2, 2)
    )
    read = MeanModel.from_dict(model.to_dict())
    np.testing.assert_array_equal(read.half_widths(0.9), model.half_widths(0.9))
    assert model.half_widths(0.95)[1] == pytest.approx(2.0 * KNormCells(4, 2).quantile(0.975, diagonal=False))
    for changes in (
        {"dimension": 2},
        {"dimension": 10**9},
        {"dimension": 4.0},
        {"dimension": None},
        {"block_sizes": [1, 2]},
        {"block_sizes": [1, 2, 0]},
        {"block_sizes": [1, 2, 5]},
        {"block_sizes": (1, 2, 2)},
        {"block_sizes": None},
        {"law": "laplace"},
    ):
        with refused(("of the noise model must be", "must be"), (ValueError, TypeError)):
            MeanModel.from_dict(model.to_dict() | changes)
    assert set(MeanModel("laplace", np.ones(1), np.ones(1)).to_dict()).isdisjoint({"dimension", "block_sizes"})
