"""The private histogram of norms: its noise, what it takes for occupied, and the radius it leads to."""

from __future__ import annotations

import math

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.audit.replay import Recorder
from dpmoments.mechanisms.base import _LOSS_UNITS
from dpmoments.papers.mechanisms.mapped_rows import (
    FALSE_TAIL,
    MappedRows,
    NormHistogram,
    norm_edges,
    tail_edges,
)
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from references.reference_coinpress import occupied
from support.opened_filter import Allowance, filter_that_pays


def test_counts_are_those_of_the_norms() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(500, 3)) * 10.0 ** rng.uniform(-12, 12, size=(500, 1))
    rows = Rows.of(table, dpm.Schema.unbounded(3), neighbors="replace_one")
    paying = filter_that_pays(dpm.PrivacyBudget.zcdp(1e30), "replace_one", insecure_generator(0))
    mapped = MappedRows(rows, paying, np.zeros(3), np.eye(3))
    found = mapped.norms("histogram of norms", 1e30, norm_edges(math.sqrt(3)))
    exact = np.bincount(
        np.searchsorted(found.edges, np.linalg.norm(table, axis=1), side="right"), minlength=len(found.counts)
    )
    np.testing.assert_array_equal(found.counts, exact)
    assert found.counts[0] > 0
    assert found.counts[-1] > 0


def test_nothing_found_is_said() -> None:
    empty = NormHistogram(norm_edges(1.0), np.zeros(len(norm_edges(1.0)) + 1), 10.0)
    assert empty.best_radius(1, 0.1, 0.1) is None
    assert empty.share_above(1.0) == 0.0


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
        paying = filter_that_pays(dpm.PrivacyBudget.zcdp(rho), "add_remove", insecure_generator(0))
        return MappedRows(rows, paying, center, np.eye(4)).tails("histogram of norms", rho, edges, apart)

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


@pytest.mark.parametrize(("neighbors", "sensitivity"), [("add_remove", 1.0), ("replace_one", math.sqrt(2.0))])
def test_all_of_rho_is_spent_on_one_draw_for_one_row_in_one_bin(neighbors: str, sensitivity: float) -> None:
    budget = dpm.PrivacyBudget.zcdp(0.2)
    recorder = Recorder(Allowance(budget, Neighbors.of(neighbors), _LOSS_UNITS[budget.kind]), insecure_generator(0))
    rows = Rows.of(np.ones((3, 2)), dpm.Schema.unbounded(2), neighbors=neighbors)
    MappedRows(rows, recorder, np.zeros(2), np.eye(2)).norms("norms", 0.2, np.array([1.0, 2.0]))
    (exchange,) = recorder.exchanges
    assert (str(exchange.made.what), exchange.query.tolist()) == ("norms", [0, 3, 0])
    assert exchange.made.law.scale / exchange.made.sensitivity.units == pytest.approx(sensitivity / math.sqrt(0.4))
    assert recorder.close().exhausts
