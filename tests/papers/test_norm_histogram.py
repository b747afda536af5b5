"""The private histogram of norms: its noise, what it takes for occupied, and the radius it leads to."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

import dpmoments as dpm
from dpmoments.audit.replay import Recorder
from dpmoments.mechanisms.base import _LOSS_UNITS
from dpmoments.papers.mechanisms.row_norm_histogram import (
    FALSE_TAIL,
    NormHistogram,
    TransformedNorm,
    noisy_norm_histogram,
    noisy_tail_histograms,
    norm_edges,
    tail_edges,
)
from dpmoments.privacy.entropy import insecure_generator
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from references.reference_coinpress import occupied
from support.opened_filter import Allowance, filter_that_pays


def histogram_of(
    table: np.ndarray, rho: float, seed: int, neighbors: Neighbors = Neighbors.REPLACE_ONE
) -> NormHistogram:
    d = table.shape[1]
    return noisy_norm_histogram(
        Rows.of(table, dpm.Schema.unbounded(d), neighbors=neighbors),
        filter_that_pays(dpm.PrivacyBudget.zcdp(rho), neighbors, insecure_generator(seed)),
        "histogram of norms",
        rho,
        edges=norm_edges(math.sqrt(d)),
        center=np.zeros(d),
        linear=np.eye(d),
    )


def test_counts_are_those_of_the_norms() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(500, 3)) * 10.0 ** rng.uniform(-12, 12, size=(500, 1))
    found = histogram_of(table, 1e30, 0)
    exact = np.bincount(
        np.searchsorted(found.edges, np.linalg.norm(table, axis=1), side="right"), minlength=len(found.counts)
    )
    np.testing.assert_array_equal(found.counts, exact)
    assert found.counts[0] > 0
    assert found.counts[-1] > 0


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_noise_is_calibrated_to_one_row_in_one_bin(neighbors: Neighbors) -> None:
    table, rho = np.zeros((10, 2)), 1e-4
    noise = np.concatenate([histogram_of(table, rho, seed, neighbors).counts[1:] for seed in range(60)])
    scale = (math.sqrt(2) if neighbors is Neighbors.REPLACE_ONE else 1.0) / math.sqrt(2 * rho)
    assert stats.kstest(noise / scale, "norm").pvalue > 1e-3
    # planted fault: half the sensitivity
    assert stats.kstest(2 * noise / scale, "norm").pvalue < 1e-6


def test_nothing_found_is_said() -> None:
    empty = NormHistogram(norm_edges(1.0), np.zeros(len(norm_edges(1.0)) + 1), 10.0)
    assert empty.best_radius(1, 0.1, 0.1) is None
    assert empty.share_above(1.0) == 0.0


def test_edges_are_close_together_where_norms_are_expected() -> None:
    """Eight an octave within a factor of 2, two further out; of a tail four, two and then one."""
    eighths = [2.0 ** (i / 8) for i in range(-8, 9)]
    halves = [2.0 ** (i / 2) for i in (-6, -5, -4, -3, 3, 4, 5, 6)]
    np.testing.assert_allclose(norm_edges(1.0, octaves=3), sorted([*eighths, *halves]), rtol=1e-14)
    np.testing.assert_allclose(norm_edges(7.0, octaves=3), 7.0 * norm_edges(1.0, octaves=3), rtol=1e-14)
    wide = norm_edges(1.0)
    assert (wide[0], wide[-1], len(wide)) == (2.0**-24, 2.0**24, 2 * (2 * 24 - 1) + 15)
    tail = [2.0**i for i in (0, 0.25, 0.5, 0.75, 1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5, 5, 5.5, 6, 7, 8)]
    np.testing.assert_allclose(tail_edges(3.0, octaves=8), 3.0 * np.array(tail), rtol=1e-14)
    assert (tail_edges(1.0)[-1], len(tail_edges(1.0))) == (2.0**24, 33)


@pytest.mark.parametrize(("false_bin", "deviations"), [(1e-6, None), (FALSE_TAIL, 4.675)])
def test_least_seen_leaves_noise_a_small_chance_in_any_bin(false_bin: float, deviations: float | None) -> None:
    """Half of ``false_bin`` is for single bins, half for groups; 34 bins of a tail."""
    found = NormHistogram(tail_edges(1.0), np.zeros(34), 20.0, false_bin).least_seen
    assert found == pytest.approx(20.0 * stats.norm.isf(false_bin / 68), rel=1e-9)
    if deviations is not None:
        assert (FALSE_TAIL, found) == (1e-4, pytest.approx(20.0 * deviations, rel=1e-3))
    assert NormHistogram(tail_edges(1.0), np.zeros(34), 20.0).false_bin == 1e-6


def test_occupied_bins_are_the_references() -> None:
    rng, edges = np.random.default_rng(5), norm_edges(1.0, octaves=8)
    joined = 0
    for trial in range(300):
        counts = rng.normal(0.0, 10.0, len(edges) + 1)
        start = rng.integers(0, len(counts))
        counts[start : start + rng.integers(1, 12)] += rng.choice([20.0, 35.0, 50.0, 100.0])
        histogram = NormHistogram(edges, counts, 10.0)
        expected = occupied(counts, histogram.least_seen)
        np.testing.assert_allclose(histogram.occupied, expected, rtol=1e-12, err_msg=str(trial))
        joined += int((expected > 0).sum() > (counts > histogram.least_seen).sum())
    assert joined > 20


def test_a_bin_or_a_group_is_occupied_above_its_threshold_not_at_it() -> None:
    edges = norm_edges(1.0, octaves=8)
    threshold = NormHistogram(edges, np.zeros(len(edges) + 1), 10.0).least_seen
    for first, width in ((0, 1), (7, 1), (6, 2), (8, 4), (8, 8), (len(edges) - 1, 1)):
        for factor in (1.0 - 1e-12, 1.0 + 1e-12):
            counts = np.zeros(len(edges) + 1)
            counts[first : first + width] = threshold / math.sqrt(width) * factor
            found = NormHistogram(edges, counts, 10.0).occupied
            np.testing.assert_allclose(found, counts if factor > 1.0 else 0.0, rtol=1e-9)
    at = np.zeros(len(edges) + 1)
    at[5] = threshold
    assert not NormHistogram(edges, at, 10.0).occupied.any()
    at[5], at[8:12] = 0.0, threshold / 2.0  # four together are at twice the threshold
    assert not NormHistogram(edges, at, 10.0).occupied.any()


def test_norms_of_bins_and_the_share_above_a_radius() -> None:
    edges = np.array([1.0, 4.0, 9.0])
    histogram = NormHistogram(edges, np.array([100.0, 200.0, 3.0, 700.0]), 1.0)
    assert histogram.typical_norms.tolist() == [1.0, 2.0, 6.0, 9.0]
    # 3 rows are not seen.
    for radius, share in ((0.5, 1.0), (1.0, 0.9), (1.9, 0.9), (2.0, 0.7), (8.9, 0.7), (9.0, 0.0)):
        assert histogram.share_above(radius) == pytest.approx(share)
    assert [histogram.mean_excess(radius) for radius in (1.0, 2.0, 9.0)] == pytest.approx([56.6, 53.9, 0.0])
    one = NormHistogram(edges, np.array([0.0, 50.0, 0.0, 0.0]), 1.0)
    assert (one.share_above(1.0), one.share_above(3.0)) == (1.0, 0.0)
    half = NormHistogram(edges, np.array([0.0, 0.5, 0.5, 0.0]), 0.01)
    assert half.share_above(3.0) == 0.5


@pytest.mark.parametrize("power", [1, 2])
def test_best_radius_is_the_best_of_the_edges_and_three_between_each_two(power: int) -> None:
    rng, edges, radii = np.random.default_rng(6), np.array([1.0, 2.0, 3.0, 8.0, 64.0]), set[float]()
    candidates = [low * (high / low) ** (i / 4) for low, high in pairwise(edges) for i in range(4)]
    norms = [1.0, *np.sqrt(edges[:-1] * edges[1:]), 64.0]
    for _ in range(200):
        counts = np.floor(10.0 ** rng.uniform(-1.0, 4.0, 6))
        noise, weight = 10.0 ** rng.uniform(-4.0, 0.0, 2)
        seen = occupied(counts, NormHistogram(edges, counts, 1.0).least_seen)
        best, least = None, math.inf
        for radius in [*candidates, 64.0]:
            mean = (
                math.fsum(n * max(x**power - radius**power, 0.0) for n, x in zip(seen, norms, strict=True)) / seen.sum()
            )
            loss = (noise * radius**power) ** 2 + (weight * mean) ** 2
            if loss < least:
                best, least = radius, loss
        assert NormHistogram(edges, counts, 1.0).best_radius(power, noise, weight) == pytest.approx(best, rel=1e-12)
        radii.add(best or 0.0)
    assert len(radii) > 8


def test_an_unseen_bin_weighs_nothing() -> None:
    edges = np.array([1.0, 2.0, 4.0])
    counts = np.array([0.0, 100.0, 0.0, 2.0])
    alone = np.array([0.0, 100.0, 0.0, 0.0])
    assert NormHistogram(edges, counts, 1.0).best_radius(2, 1e-3, 1.0) == NormHistogram(edges, alone, 1.0).best_radius(
        2, 1e-3, 1.0
    )
    few = NormHistogram(edges, np.array([0.0, 0.4, 0.0, 0.0]), 0.01)
    assert few.best_radius(2, 1e-3, 1.0) == pytest.approx(2.0**0.5)


@pytest.mark.parametrize("scale", [1e-144, 1e-100, 1.0, 1e100, 1e144])
def test_a_histogram_has_any_unit(scale: float) -> None:
    """Where no norm can be resolved any more, all are in the first bin or the last."""
    table = np.array([[0.5], [3.0], [40.0], [40.0]])
    found = noisy_norm_histogram(
        Rows.of(table, dpm.Schema.unbounded(1), neighbors="add_remove"),
        filter_that_pays(dpm.PrivacyBudget.zcdp(1e20), "add_remove", insecure_generator(0)),
        "histogram",
        1e20,
        edges=np.array([1.0, 10.0, 100.0]) * scale,
        center=np.zeros(1),
        linear=np.eye(1) * min(max(scale, 1e-118), 1e118),
    )
    assert found.counts.sum() == 4.0
    if 1e-118 <= scale <= 1e118:
        assert found.counts.tolist() == [1.0, 1.0, 2.0, 0.0]
    else:
        assert found.counts.tolist() == ([0.0, 0.0, 0.0, 4.0] if scale < 1.0 else [4.0, 0.0, 0.0, 0.0])


def test_norms_are_resolved_to_a_256th_of_the_first_edge() -> None:
    """And those far beyond it to 2^−20 of themselves."""
    made = TransformedNorm(np.zeros(1), np.eye(1), 1.0)
    np.testing.assert_allclose(
        made(np.array([[3.0 * 2.0**-22], [1.0 + 2.0**-22], [2e9 + 1.0]])), [2.0**-20, 1.0, 2e9], rtol=1e-6
    )
    all_of_it = TransformedNorm(np.zeros(1), np.eye(1), 1.0, apart=np.eye(1), share=1.0)
    assert all_of_it(np.array([[3.0]])) == [3.0]  # no more than its share
    table = np.array([[1.0 - 1e-3], [1.0 - 4e-3]])
    for edge in (1.0, 7.0):
        rows = Rows.of(table * edge, dpm.Schema.unbounded(1), neighbors="add_remove")
        found = noisy_norm_histogram(
            rows,
            filter_that_pays(dpm.PrivacyBudget.zcdp(1e20), "add_remove", insecure_generator(0)),
            "histogram",
            1e20,
            edges=np.array([1.0, 10.0]) * edge,
            center=np.zeros(1),
            linear=np.eye(1),
        )
        assert found.counts.tolist() == [1.0, 1.0, 0.0]


def test_a_row_is_apart_where_its_share_is_halfway_from_its_dimensions_to_one() -> None:
    """Two of four coordinates: beyond ¾ of the squared norm."""
    rng, edges = np.random.default_rng(7), tail_edges(1.0, octaves=6)
    share = np.array([0.0, 0.3, 0.74, 0.76, 1.0])
    angle = rng.uniform(0.0, 2.0 * math.pi, (2, 5))
    table = 5.0 * np.column_stack(
        [
            np.sqrt(1.0 - share) * np.cos(angle[0]),
            np.sqrt(share) * np.cos(angle[1]),
            np.sqrt(1.0 - share) * np.sin(angle[0]),
            np.sqrt(share) * np.sin(angle[1]),
        ]
    )
    center = np.array([1.0, -2.0, 3.0, 0.5])
    rows = Rows.of(table + center, dpm.Schema.unbounded(4), neighbors="add_remove")
    rho = 1e20

    def histograms(apart: np.ndarray) -> tuple[NormHistogram, NormHistogram]:
        return noisy_tail_histograms(
            rows,
            filter_that_pays(dpm.PrivacyBudget.zcdp(rho), "add_remove", insecure_generator(0)),
            "histogram of norms",
            rho,
            edges=edges,
            center=center,
            linear=np.eye(4),
            apart=apart,
        )

    bin_of_5 = int(np.searchsorted(edges, 5.0))
    whole, apart = histograms(np.eye(4)[[1, 3]])
    assert (whole.counts[bin_of_5], whole.counts.sum()) == (3.0, 3.0)
    assert (apart.counts[bin_of_5], apart.counts.sum()) == (2.0, 2.0)
    for one in (whole, apart):
        assert one.noise_scale == pytest.approx(1.0 / math.sqrt(2.0 * rho))
        assert one.false_bin == FALSE_TAIL
        assert one.edges is edges
        assert one.counts.shape == (len(edges) + 1,)
    whole, apart = histograms(np.empty((0, 4)))
    assert (whole.counts[bin_of_5], whole.counts.sum(), apart.counts.sum()) == (5.0, 5.0, 0.0)
    assert (whole.false_bin, apart.false_bin, apart.counts.shape) == (FALSE_TAIL, FALSE_TAIL, (len(edges) + 1,))
    assert apart.noise_scale == whole.noise_scale == pytest.approx(1.0 / math.sqrt(2.0 * rho))


def test_all_of_rho_is_spent_on_one_draw() -> None:
    recorder = Recorder(
        Allowance(dpm.PrivacyBudget.zcdp(0.2), Neighbors.ADD_REMOVE, _LOSS_UNITS[dpm.PrivacyBudget.zcdp(0.2).kind]),
        insecure_generator(0),
    )
    rows = Rows.of(np.ones((3, 2)), dpm.Schema.unbounded(2))
    place = dict(edges=np.array([1.0, 2.0]), center=np.zeros(2), linear=np.eye(2))
    noisy_norm_histogram(rows, recorder, "norms", 0.2, **place)
    (exchange,) = recorder.exchanges
    assert (str(exchange.made.what), exchange.query.tolist()) == ("norms", [0, 3, 0])
    assert recorder.close().exhausts
