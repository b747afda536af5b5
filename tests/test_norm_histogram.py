"""The private histogram of norms: its noise, what it takes for occupied, and the radius it leads to."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import dpmoments as dpm
from dpmoments.mechanisms.parts.norm_histogram import NormHistogram, noisy_norm_histogram, norm_edges
from dpmoments.noise.entropy import insecure_generator
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.rows.rows import Rows
from opened_filter import filter_that_pays


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


def test_noise_alone_occupies_no_bin() -> None:
    rng = np.random.default_rng(3)
    edges = norm_edges(1.0)
    false_bins = 0
    for _ in range(2000):
        counts = rng.normal(0.0, 50.0, size=len(edges) + 1)
        false_bins += int((NormHistogram(edges, counts, 50.0).occupied > 0).any())
    assert false_bins <= 1
    # planted fault: a threshold of two standard deviations finds rows everywhere
    assert (rng.normal(size=(200, len(edges))) > 2.0).any(axis=1).mean() > 0.5


def test_a_thin_tail_is_found_by_joining_bins() -> None:
    edges = norm_edges(1.0)
    counts = np.zeros(len(edges) + 1)
    counts[40:48] = 40.0  # each below the threshold of 5.7 · 10, together 320 above 5.7 · 10 · √8
    assert NormHistogram(edges, counts, 10.0).occupied.sum() == pytest.approx(320.0)
    assert NormHistogram(edges, counts / 8, 10.0).occupied.sum() == 0.0


@pytest.mark.parametrize("power", [1, 2])
def test_best_radius_balances_noise_and_clipping(power: int) -> None:
    rng = np.random.default_rng(4)
    d, n = 10, 200_000
    norms = np.linalg.norm(rng.normal(size=(n, d)), axis=1)
    edges = norm_edges(math.sqrt(d))
    counts = np.bincount(np.searchsorted(edges, norms), minlength=len(edges) + 1).astype(float)
    noise, weight = 0.002, 1 / math.sqrt(d)

    def loss(radius: float) -> float:
        excess = np.maximum(norms**power - radius**power, 0).mean()
        return float((noise * radius**power) ** 2 + (weight * excess) ** 2)

    best = NormHistogram(edges, counts, 1e-6).best_radius(power, noise, weight)
    assert best is not None
    assert loss(best) <= 1.1 * min(loss(r) for r in np.linspace(1.0, 12.0, 600))


def test_nothing_found_is_said() -> None:
    empty = NormHistogram(norm_edges(1.0), np.zeros(len(norm_edges(1.0)) + 1), 10.0)
    assert empty.best_radius(1, 0.1, 0.1) is None
    assert empty.share_above(1.0) == 0.0
