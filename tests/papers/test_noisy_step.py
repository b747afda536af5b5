"""One noisy step and the number of rows before it: units, noise scales, shares, and budgets that are too small."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.audit.replay import Recorder
from dpmoments.base.message import Message
from dpmoments.mechanisms.base import _LOSS_UNITS
from dpmoments.mechanisms.lattice_noise import COUNT_SHARE, count_error, count_scale, noisy_count, split_for_count
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.mechanisms.mapped_rows import (
    FALSE_TAIL,
    MappedRows,
    NoisyStep,
    NormHistogram,
    StepNoise,
    count_first,
    first_count_error,
    norm_edges,
    require_workable_budget,
    tail_edges,
)
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from dpmoments.schema.encoding import RoughScale
from references.reference_coinpress import augmentation, occupied, sensitivity
from support.opened_filter import Allowance, filter_that_pays
from support.said import refused

both_relations = pytest.mark.parametrize("neighbors", list(Neighbors))
PURE, ZCDP, APPROXIMATE = PrivacyBudget.pure(0.8), PrivacyBudget.zcdp(0.5), PrivacyBudget.approximate(0.8, 1e-6)


def recorder(cost: PrivacyBudget, neighbors: Neighbors, seed: int = 0) -> Recorder:
    unit = dpm.mechanisms.base._LOSS_UNITS[cost.kind]
    return Recorder(Allowance(cost, neighbors, unit), insecure_generator(seed))


@both_relations
@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("d", [1, 2, 6])
def test_a_step_is_its_answer_in_the_units_of_w(neighbors: Neighbors, mean: bool, d: int) -> None:
    rng, rho, radius = np.random.default_rng(d), 0.3, 2.5
    table, center, linear = rng.normal(size=(30, d)) * 5.0, rng.normal(size=d), rng.normal(size=(d, d))
    noise = StepNoise.calibrated(d, rho, neighbors, mean=mean)
    replace = neighbors is Neighbors.REPLACE_ONE
    w = augmentation(d, replace) if mean else 0.0
    scale = sensitivity(d, w, replace) / math.sqrt(2 * rho)
    assert noise.augmentation == w
    assert noise.sensitivity.value == pytest.approx(sensitivity(d, w, replace), rel=1e-12)
    assert noise.noise_scale == pytest.approx(scale, rel=1e-12)
    assert noise.off_diagonal_scale == pytest.approx(scale * math.sqrt(0.5), rel=1e-12)
    kept = recorder(PrivacyBudget.zcdp(rho), neighbors)
    rows = Rows.of(table, dpm.Schema.unbounded(d), neighbors=neighbors)
    found = MappedRows(rows, kept, center, linear).moments({"step": 1}, rho, radius, mean=mean)
    (exchange,) = kept.exchanges
    assert exchange.made.what == Message("sum-and-gram" if mean else "gram", step=1)
    assert exchange.made.sensitivity.units == 4.0**noise.bits
    answer = exchange.answer.astype(float) / 4.0**noise.bits
    query = exchange.query.astype(float) / 4.0**noise.bits
    images = (table - center) @ linear.T
    images *= np.minimum(1.0, radius / np.linalg.norm(images, axis=1))[:, None] / radius
    gram = images.T @ images
    if mean:
        assert query[0, 0] == 0.0
        np.testing.assert_allclose(query[0, 1:], w * images.sum(axis=0), atol=1e-4)
        np.testing.assert_allclose(query[1:, 1:], gram, atol=1e-4)
        assert found.sum is not None
        np.testing.assert_allclose(found.sum, answer[0, 1:] * radius / w, rtol=1e-14)
        np.testing.assert_allclose(found.gram, answer[1:, 1:] * radius**2, rtol=1e-14)
        assert found.sum_scale == pytest.approx(scale * math.sqrt(0.5) * radius / w, rel=1e-12)
    else:
        np.testing.assert_allclose(query, gram, atol=1e-4)
        np.testing.assert_allclose(found.gram, answer * radius**2, rtol=1e-14)
        assert (found.sum, found.sum_scale) == (None, 0.0)
    assert isinstance(found, NoisyStep)
    assert found.gram_scale == pytest.approx(scale * radius**2, rel=1e-12)


def test_the_lattice_of_a_step_is_as_fine_as_its_noise_and_its_width_allow() -> None:
    """20 bits, 19 for more than 2^13 entries a row; fewer only where the noise would pass 2^46 units of 2^(−2·bits)."""

    def bits(d: int, rho: float) -> int:
        return StepNoise.calibrated(d, rho, Neighbors.ADD_REMOVE, mean=False).bits

    assert [bits(d, 1.0) for d in (1, 5, 2**13, 2**13 + 1)] == [20, 20, 20, 19]
    at = 0.5 * (2.0**-6) ** 2  # noise of 2^6 = 2^46 units of 2^−40
    assert [bits(3, at * factor) for factor in (1 + 1e-9, 1 - 1e-9)] == [20, 19]


@both_relations
def test_a_public_number_of_rows_costs_nothing_and_a_private_one_a_hundredth(neighbors: Neighbors) -> None:
    rows = Rows.of(np.zeros((70, 2)), dpm.Schema.unbounded(2), neighbors=neighbors)
    kept = recorder(ZCDP, neighbors)
    assert count_first(rows, kept, 0.5, 30) == (30.0, 0.5)
    assert kept.exchanges == []
    assert COUNT_SHARE == 0.01
    counted, rest = count_first(rows, kept, 0.5, None)
    (exchange,) = kept.exchanges
    assert rest == pytest.approx(0.495, rel=1e-12)
    assert exchange.made.loss.amount <= Fraction(0.5) - Fraction(rest)
    assert float(exchange.made.loss.amount) == pytest.approx(0.005, rel=1e-9)
    assert exchange.query.tolist() == [70]
    assert counted == max(1.0, exchange.answer[0])
    assert exchange.made.law.scale == pytest.approx(10.0, rel=1e-9)
    assert first_count_error(0.5, True) == pytest.approx(10.0, rel=1e-9)
    assert first_count_error(0.5, False) == 0.0


@both_relations
@pytest.mark.parametrize("loss", [PURE, ZCDP], ids=str)
def test_a_count_is_whole_and_at_least_one(neighbors: Neighbors, loss: PrivacyBudget) -> None:
    generator, found = insecure_generator(0), []
    for _ in range(60):
        one = filter_that_pays(loss, neighbors, generator)
        found.append(noisy_count(0, one, loss, neighbors))
        (draw,) = one.close().draws
        assert draw.what.code == "count"
        assert one.close().exhausts
    assert {1.0, 2.0} <= set(found)
    assert all(count == round(count) >= 1.0 for count in found)
    exact = PrivacyBudget.pure(1e9) if loss is PURE else PrivacyBudget.zcdp(1e9)
    for n_rows in (1, 2, 3, 1000):
        assert noisy_count(n_rows, filter_that_pays(exact, neighbors, generator), exact, neighbors) == n_rows


def test_a_count_under_jointly_counted_losses_is_whole_though_its_lattice_is_finer() -> None:
    """Its noise has 2^20 units at least, so that an answer has a fraction."""
    plan = dpm.mechanisms.CoinPress((1.0, 10.0)).plan(
        MomentShape(2, mean=False, row_norm=None), APPROXIMATE, "add_remove"
    )
    kept = Recorder(plan, insecure_generator(3))
    rows = Rows.of(np.zeros((500, 2)), dpm.Schema.unbounded(2))
    n_rows, _ = count_first(rows, kept, plan.rho, None)
    (exchange,) = kept.exchanges
    answer = exchange.answer[0] / exchange.made.sensitivity.units
    assert answer != round(answer)
    assert n_rows == round(answer)


@pytest.mark.parametrize("share", [None, 0.25])
def test_the_part_for_the_count(share: float | None) -> None:
    """5 % of ρ, or 10 % of ε; under (ε, δ) it needs no δ. Its noise is of sensitivity 1."""
    assert (count_scale(PURE), count_error(PURE)) == pytest.approx((1 / 0.8, math.sqrt(2) / 0.8), rel=1e-12)
    assert count_scale(ZCDP) == count_error(ZCDP) == pytest.approx(1.0, rel=1e-12)
    part, rest = split_for_count(ZCDP, share)
    wanted = 0.05 if share is None else share
    assert (part.rho, rest.rho) == (pytest.approx(0.5 * wanted), pytest.approx(0.5 * (1 - wanted)))
    assert Fraction(part.rho) + Fraction(rest.rho) <= Fraction(0.5)
    wanted = 0.1 if share is None else share
    for whole in (PURE, APPROXIMATE):
        part, rest = split_for_count(whole, share)
        assert (part.kind, rest.kind) == (PURE.kind, whole.kind)
        assert (part.epsilon, part.delta) == (pytest.approx(0.8 * wanted), 0.0)
        assert (rest.epsilon, rest.delta) == (pytest.approx(0.8 * (1 - wanted)), whole.delta)


def test_a_budget_must_buy_every_step_a_noise_that_the_lattice_can_hold() -> None:
    """As if of sensitivity 6: below 2^46 units of 2^−12. Of unknown shares the least is taken to be 1/10,000."""
    least = 0.5 * (6.0 / 2.0**34) ** 2
    for shares, smallest in (((1.0,), 1.0), ((0.25, 0.75), 0.25), ((0.9, 0.1), 0.1), (None, 1e-4)):
        require_workable_budget(least / smallest * (1 + 1e-9), shares)
        with refused("per entry would hide a table of any size: give a larger"):
            require_workable_budget(least / smallest * (1 - 1e-9), shares)
    shape = MomentShape(3, n_rows=1000, mean=False)
    for mechanism in (dpm.mechanisms.CoinPress(), dpm.mechanisms.PrivatePreconditioning()):
        with refused("per entry would hide a table of any size: give a larger"):
            mechanism.plan(shape, PrivacyBudget.zcdp(1e-24), "replace_one")


def test_what_a_shape_says_and_refuses() -> None:
    assert MomentShape(1, n_rows=0) == MomentShape(1, 0)
    for d in (0, -1):
        with refused("a table needs at least one feature"):
            MomentShape(d)
    with refused("must not be negative"):
        MomentShape(1, n_rows=-1)
    for drops, public in ((False, True), (True, False)):
        assert MomentShape(1, drops_rows=drops).count_is_public(Neighbors.REPLACE_ONE) is public
        assert not MomentShape(1, drops_rows=drops).count_is_public(Neighbors.ADD_REMOVE)


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("missing", ["drop", "center"])
def test_a_shape_is_that_of_its_schema(mean: bool, missing: Any) -> None:
    scaled = dpm.Schema(
        dpm.Numeric("a", scale=(1, 100), radius=50, missing=missing), dpm.Numeric("b", 0, 8, missing=missing)
    )
    found = MomentShape.of(scaled, mean=mean, n_rows=7)
    rough = RoughScale.of(scaled.columns, mean=mean)
    assert rough is not None
    assert replace(found, schema=None) == MomentShape(2, 7, mean, None, rough, missing == "drop")
    assert MomentShape(3) == MomentShape(3, None, True, 1.0, None, False)
    ball = dpm.Schema.unit_ball(4, missing=missing)
    shape = MomentShape.of(ball, mean=mean)
    assert replace(shape, schema=None) == MomentShape(4, None, mean, 1.0, None, missing == "drop")
    # A bound of any size is 1 in the units in which rows are encoded.
    bounded = dpm.Schema(dpm.Numeric("a", 0, 8, missing=missing), dpm.Numeric("b", -9, 900, missing=missing))
    assert MomentShape.of(bounded, mean=mean).row_norm == 1.0


# The private histogram of norms: its noise, what it takes for occupied, and the radius it leads to.


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
