"""One column with no bound: found wherever it lies, clipped between noise and bias, and doubted where noise decides."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpmoments as dpm
from contracts.cases import run_plan
from dpmoments.audit.replay import Recorder, Replayer
from dpmoments.mechanisms import LogScaleHistogram
from dpmoments.mechanisms.means import LogScaleHistogramMean
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.mechanisms.log_scale_histogram import (
    _AUGMENTATION,
    _UPPER_QUARTILE,
    ColumnQueries,
    OctaveHistogram,
    _float_line,
    pure_if_less_noise,
)
from dpmoments.papers.mechanisms.mapped_rows import FALSE_TAIL
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.sensitivity import query_distance
from dpmoments.privacy.unit import Neighbors
from dpmoments.releases.disclosed import ReleaseWarning
from dpmoments.rows.rows import Rows
from support.opened_filter import filter_that_pays
from support.said import Said, refused, warned

ADD_REMOVE, REPLACE_ONE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
BUDGETS = [PrivacyBudget.pure(1.0), PrivacyBudget.approximate(1.0, 1e-6), PrivacyBudget.zcdp(0.5)]
every_budget = pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: str(budget.kind))
every_relation = pytest.mark.parametrize("neighbors", list(Neighbors))


def rows_of(values: np.ndarray, neighbors: Neighbors = ADD_REMOVE, missing: Any = "error") -> Rows:
    table = values if values.ndim == 2 else values[:, None]
    return Rows.of(table, dpm.Schema.unbounded(table.shape[1], missing=missing), neighbors=neighbors, threads=1)


def plan_for(
    values: np.ndarray, budget: PrivacyBudget, neighbors: Neighbors = ADD_REMOVE, *, mean: bool = True, of: Any = None
) -> Any:
    n_rows, d = (len(values) if neighbors is REPLACE_ONE else None), values.shape[1] if values.ndim == 2 else 1
    shape = MomentShape(d, n_rows=n_rows, mean=mean, row_norm=None)
    return (of or LogScaleHistogram()).plan(shape, budget, neighbors)


def run(
    values: np.ndarray, budget: PrivacyBudget, neighbors: Neighbors = ADD_REMOVE, seed: int = 0, **options: Any
) -> Any:
    return run_plan(
        plan_for(values, budget, neighbors, **options), rows_of(values, neighbors), insecure_generator(seed)
    )


@pytest.mark.long(sets=None)
@every_relation
@every_budget
@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1.0), (1e3, 1e-6), (-1e9, 1e6), (0.0, 1e40), (30.0, 1e-40)])
def test_a_normal_column_is_found_wherever_it_lies(
    budget: PrivacyBudget, neighbors: Neighbors, offset: float, scale: float
) -> None:
    """Without privacy the mean is known to 0.014 standard deviations and the standard deviation to 1 %; noise adds no more."""
    values = scale * (offset + np.random.default_rng(1).normal(size=5000))
    found = run(values, budget, neighbors)
    spread = np.std(values)
    assert abs(found.mean[0] - values.mean()) < 0.02 * spread
    assert found.covariance[0, 0] ** 0.5 == pytest.approx(spread, rel=0.03)
    assert found.diagnostics["warnings"] == ()
    assert 0.4 < found.diagnostics["scale"] / spread <= 1.0
    alone = run(values, budget, neighbors, of=LogScaleHistogramMean())
    assert abs(alone.mean[0] - values.mean()) < 0.02 * spread


@every_budget
def test_about_zero_it_is_the_second_moment_of_the_lecture(budget: PrivacyBudget) -> None:
    values = 3.0 + np.random.default_rng(2).normal(size=5000)
    found = run(values, budget, mean=False)
    assert (found.sum, found.center, found.count) == (None, None, None)
    assert found.gram[0, 0] / len(values) == pytest.approx(np.mean(values**2), rel=0.02)
    recorder = Recorder(plan_for(values, budget, mean=False), insecure_generator(0))
    plan_for(values, budget, mean=False).run(rows_of(values), recorder)
    assert [exchange.made.what.code for exchange in recorder.exchanges] == [
        "count",
        "log-scale-histogram",
        "clipped-rows-of-feature",
        "squares",
    ]


def test_columns_of_any_shape_and_number() -> None:
    """In several dimensions, each with its own place and scale; heavy tails widen the clip."""
    rng = np.random.default_rng(3)
    table = np.column_stack(
        [rng.normal(1e6, 1e-3, 20_000), rng.standard_t(3, 20_000), np.where(rng.random(20_000) < 0.1, 50.0, 0.0)]
    )
    for budget in BUDGETS:
        found = run(table, budget, of=LogScaleHistogramMean())
        np.testing.assert_allclose((found.mean - table.mean(axis=0)) / table.std(axis=0), 0.0, atol=0.05)
        assert found.diagnostics["half_widths"][2] >= 50.0


# What is drawn ----------------------------------------------------------------------------------------------------------------


class Measuring(Replayer):
    """Keeps, for every draw, the part of its stated sensitivity by which the query moved."""

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self.moved: dict[str, float] = {}

    def _answer(self, made: Any, query: Any) -> Any:
        before = self._recorded[len(self._draws) - 1].query
        distance = query_distance(made.sensitivity.norm, query, before, made.sensitivity.neighbors)
        self.moved[str(made.what)] = distance / made.sensitivity.value
        return super()._answer(made, query)


@every_relation
@every_budget
def test_every_sensitivity_is_attained_by_one_row(budget: PrivacyBudget, neighbors: Neighbors) -> None:
    values = np.append(np.random.default_rng(7).normal(1e5, 1.0, 600), 1e9)
    plan = plan_for(values, budget, neighbors)
    recorder = Recorder(plan, insecure_generator(1))
    found = plan.run(rows_of(values, neighbors), recorder)
    center, radius = found.diagnostics["center"], found.diagnostics["radius"]
    w = _AUGMENTATION  # where normal noise is added the worst pair is opposite, else it is not
    other = center - (w / 2.0 if plan.cost.kind is BudgetKind.PURE else 2.0) * radius
    second = values[:-1] if neighbors is ADD_REMOVE else np.append(values[:-1], other)
    replayer = Measuring(plan, recorder.exchanges)
    plan.run(rows_of(second, neighbors), replayer)
    assert replayer.faults == []
    if plan.cost.kind is not BudgetKind.PURE and neighbors is REPLACE_ONE:
        assert replayer.moved.pop("clipped rows of feature 1") == 0.0  # both are
    levels = [what for what in replayer.moved if what.startswith("median")]
    assert len(levels) > 1
    for what, share in replayer.moved.items():
        assert 0.9999 < share <= 1.0 + 1e-9 or what.startswith("rows far"), what


@pytest.mark.slow
@every_relation
@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("budget", [BUDGETS[0], BUDGETS[2]], ids=lambda budget: str(budget.kind))
def test_noise_is_what_the_diagnostics_say(budget: PrivacyBudget, neighbors: Neighbors, mean: bool) -> None:
    """Of two points no value is clipped, so that what is left is noise: its law, and a quarter or four times it is rejected."""
    values = np.where(np.arange(3000) % 2, 1.0, -1.0)
    runs = [run(values, budget, neighbors, seed, mean=mean) for seed in range(60)]
    law = stats.laplace(scale=math.sqrt(0.5)) if budget.kind is BudgetKind.PURE else stats.norm()
    centers = np.array([0.0 if one.center is None else one.center[0] for one in runs])
    exact = 3000 * (1.0 + centers**2)
    noise = np.array([one.gram[0, 0] for one in runs]) - exact
    # The variance's noise has that of the mean in it, which is little: the mean is near the center.
    n_rows = np.array([3000.0 if one.count is None or neighbors is REPLACE_ONE else one.count for one in runs])
    stated = np.array([one.diagnostics["noise_on_variance"] for one in runs]) * n_rows
    if mean:
        of_mean = np.array([one.diagnostics["noise_on_mean"] for one in runs])
        stated = of_mean * _AUGMENTATION * np.array([one.diagnostics["radius"] for one in runs]) * n_rows
        sums = np.array([one.sum[0] for one in runs]) + 3000 * centers
        assert stats.kstest(sums / (of_mean * n_rows), law.cdf).pvalue > 1e-3
    assert stats.kstest(noise / stated, law.cdf).pvalue > 0.01
    for wrong in (0.25, 4.0):
        assert stats.kstest(wrong * noise / stated, law.cdf).pvalue < 0.01


def test_of_epsilon_and_delta_epsilon_alone_is_spent_where_that_is_better() -> None:
    values = np.random.default_rng(9).normal(size=3000)
    for neighbors in Neighbors:
        first, second = (run(values, budget, neighbors) for budget in BUDGETS[:2])
        assert first.gram == second.gram
    whole = PrivacyBudget.approximate(1.0, 1e-6)
    for of, d, kind in (
        (LogScaleHistogram(), 1, BudgetKind.PURE),
        (LogScaleHistogramMean(), 2, BudgetKind.PURE),
        (LogScaleHistogramMean(), 30, BudgetKind.APPROXIMATE),
    ):
        assert of.plan(MomentShape(d, row_norm=None), whole, ADD_REMOVE).cost.kind is kind
    large = PrivacyBudget.approximate(0.1, 0.5)  # no protection, but normal noise is less there
    assert pure_if_less_noise(large, PrivacyBudget.zcdp(large.to_rho()), 1) == large


# The clip ---------------------------------------------------------------------------------------------------------------------


def octaves(distances: np.ndarray, noise: float = 1e-9, pure: bool = False) -> OctaveHistogram:
    edges = np.exp2(np.arange(-40.0, 41.0))
    counts = np.bincount(np.searchsorted(edges, distances, side="right"), minlength=len(edges) + 1)
    return OctaveHistogram(edges, counts.astype(np.float64), noise, FALSE_TAIL, pure)


def test_the_fullest_octave_and_the_quartile() -> None:
    distances = np.abs(np.random.default_rng(10).normal(0.0, 3.0, 100_000))
    found = octaves(distances)
    assert found.scale == 2.0
    assert found.upper_quartile(100_000.0) == pytest.approx(3.0 * _UPPER_QUARTILE, rel=0.08)
    constant = octaves(np.zeros(50))
    assert (constant.fullest, constant.scale, constant.upper_quartile(50.0)) == (0, 2.0**-40, 2.0**-40)


@pytest.mark.slow
def test_what_a_search_finds_is_near_the_median_as_often_as_the_exponential_mechanism_says() -> None:
    """Of two clusters the larger holds the median; a chance to choose the other is e^(−εs/2Δ), s the difference of scores."""
    values = np.concatenate([np.full(30, 8.0), np.full(10, 1.0)])
    epsilon, chosen = 0.2, []
    for seed in range(150):
        spent = filter_that_pays(PrivacyBudget.pure(100.0), REPLACE_ONE, insecure_generator(seed))
        queries = ColumnQueries(rows_of(values, REPLACE_ONE), spent, 0, n_rows=1e-9)
        chosen.append(queries.center(PrivacyBudget.pure(epsilon / 0.08)).value)
    places = np.searchsorted(_float_line(), chosen, side="right") - 1
    edges = _float_line()
    ranks = np.searchsorted(np.sort(values), edges)
    ranks[0], ranks[-1] = 0, 40
    scores = -np.maximum(np.maximum(2 * ranks[:-1] - 40, 40 - 2 * ranks[1:]), 0)
    weights = np.exp(epsilon * scores / 2.0 / 2.0)
    law = np.cumsum(weights) / weights.sum()
    bins = np.searchsorted(law, [0.1, 0.3, 0.5, 0.7, 0.9])
    counted = np.bincount(np.searchsorted(bins, places, side="left"), minlength=6)
    expected = 150 * np.diff(np.concatenate([[0.0], law[bins], [1.0]]))
    assert stats.chisquare(counted, expected).pvalue > 1e-3


# How it is offered ------------------------------------------------------------------------------------------------------------


@every_budget
def test_auto_takes_it_for_one_column_without_bounds(budget: PrivacyBudget) -> None:
    auto, shape = dpm.mechanisms.Auto(), MomentShape(1, row_norm=None)
    assert auto.plan(shape, budget, ADD_REMOVE).mechanism.name == "log-scale-histogram"
    rough = dpm.Schema(dpm.Numeric("income", scale=(1.0, 1e6)))
    named = auto.plan(MomentShape.of(rough, mean=True), budget, ADD_REMOVE).mechanism.name
    assert named == ("log-scale-histogram" if budget.kind is BudgetKind.PURE else "coinpress")
    two = MomentShape(2, row_norm=None)
    for mechanism, said in (
        (auto, Said("needs a bound on the norm of a row and the schema gives", mechanism="mechanism 'auto'")),
        (
            LogScaleHistogram(),
            Said("feature, and the table has", features=2, mechanism="mechanism 'log-scale-histogram'"),
        ),
    ):
        with refused(said):
            mechanism.plan(two, budget, ADD_REMOVE)


def test_a_release_of_a_column_in_its_own_units(tmp_path: Any) -> None:
    values = np.random.default_rng(13).normal(40_000.0, 9_000.0, (5000, 1))
    for schema in (dpm.Schema.unbounded(1, names=["income"]), dpm.Schema(dpm.Numeric("income", scale=(1.0, 1e6)))):
        released = dpm.release(values, schema, epsilon=1.0, output=tmp_path / schema.names[0], insecure_seed=0)
        assert released.mean[0] == pytest.approx(40_000.0, rel=0.02)
        assert released.covariance[0, 0] ** 0.5 == pytest.approx(9_000.0, rel=0.05)
        again = dpm.load(tmp_path / schema.names[0])
        assert again.to_dict() == released.to_dict()
        (tmp_path / schema.names[0]).unlink()
        with warned("location-lost"):
            dpm.release(values[:30], schema, epsilon=0.1, insecure_seed=0)


@pytest.mark.parametrize("kind", [dict(epsilon=2.0), dict(rho=0.5)])
def test_rows_that_a_rule_drops_are_left_out_and_their_number_is_paid_for(kind: dict[str, float]) -> None:
    values = np.random.default_rng(14).normal(50.0, 1.0, (5000, 1))
    values[:500] = np.nan
    for mean in (True, False):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReleaseWarning)
            released = dpm.release(
                values,
                dpm.Schema.unbounded(1, missing="drop"),
                neighbors="replace_one",
                mean=mean,
                insecure_seed=0,
                **kind,
            )
        assert [draw.what.code for draw in released.receipt.draws].count("count") == 1
        assert abs(released.n_rows - 4500) < 100
        assert not released.count_is_public
        assert released.second_moment[0, 0] == pytest.approx(2501.0, rel=0.03)


def test_a_public_number_of_rows_and_an_empty_table() -> None:
    values = np.random.default_rng(15).normal(size=(2000, 1))
    released = dpm.release(values, dpm.Schema.unbounded(1), rho=0.5, n_rows=2000, insecure_seed=0)
    assert released.n_rows == 2000
    assert "count" not in [draw.what.code for draw in released.receipt.draws]
    with refused("log-scale-histogram needs rows: this table is publicly empty"):
        LogScaleHistogram().plan(MomentShape(1, n_rows=0, row_norm=None), BUDGETS[0], REPLACE_ONE)
    with refused("per entry would hide a table of any size: give a larger"):
        LogScaleHistogram().plan(MomentShape(1, row_norm=None), PrivacyBudget.pure(1e-12), ADD_REMOVE)
