"""What a run can turn out to be: distances of typical rows, the ball that a search ends at, and the typical regression."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pyarrow as pa
import pytest
from dpmoments.mechanisms.adaptive_ball import AdaptiveBall, allowed_excess
from scipy import integrate, stats

import dpmoments as dpm
from dpmoments.analysis.group_sums import GroupSums, Levels
from dpmoments.mechanisms import ball_search
from dpmoments.mechanisms.registry import MECHANISMS
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.planning.changes import Wanted, _half_as_wide, _planned, budget_needed
from dpmoments.planning.imagined_release import (
    EXPLAINED,
    ImaginedRelease,
    ReleasePlan,
    _chosen_by_comparisons,
    _chosen_by_score,
    _Distances,
    _farthest,
    possible_runs,
)
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors
from support.said import refused

ROWS = dpm.Schema(dpm.Numeric("a", 0, 10), dpm.Numeric("b", -5, 40), dpm.Numeric("c", 0, 3))
BUDGETS = [PrivacyBudget.pure(1.0), PrivacyBudget.zcdp(0.3)]


def plan_of(
    budget: PrivacyBudget, neighbors: Neighbors = Neighbors.ADD_REMOVE, schema: dpm.Schema = ROWS
) -> ReleasePlan:
    return ReleasePlan(TypicalTable.of(schema), 5000, budget, neighbors, AdaptiveBall())


# Distances of rows from their center --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("size", "unevenness"), [(0.2, 0.4), (0.05, 1.7), (0.5, 0.02)])
def test_rows_beyond_a_radius_and_their_excess_are_integrals_of_a_gamma_density(size: float, unevenness: float) -> None:
    law = stats.gamma(1.0 / unevenness, scale=size * unevenness)
    distances = _Distances(size, unevenness, 300, 1.0)
    for radius in (0.1, 0.45, 0.8):
        beyond, _ = integrate.quad(law.pdf, radius**2, np.inf)
        excess, _ = integrate.quad(
            lambda square, least=radius**2: (square - least) * law.pdf(square), radius**2, np.inf
        )
        assert distances.rows_beyond(np.array([radius]))[0] == pytest.approx(300 * beyond, rel=1e-6, abs=1e-9)
        assert distances.excess(radius) == pytest.approx(300 * excess, rel=1e-6, abs=1e-9)


@pytest.mark.parametrize(("size", "unevenness"), [(0.25, 0.0), (0.0, 0.0), (0.0, 0.3)])
def test_rows_at_one_distance_are_all_beyond_or_none(size: float, unevenness: float) -> None:
    distances = _Distances(size, unevenness, 40, 1.0)
    assert distances.rows_beyond(np.array([0.4, 0.6])).tolist() == [40.0 if size > 0.16 else 0.0, 0.0]
    assert distances.excess(0.4) == pytest.approx(40 * max(0.0, size - 0.16))
    assert distances.excess(0.6) == 0.0


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind.value)
def test_a_ball_passes_as_often_as_its_noisy_excess_is_allowed(budget: PrivacyBudget) -> None:
    made = plan_of(budget).plan.budget  # type: ignore[attr-defined]
    rng = np.random.default_rng(0)
    for radius, rows_beyond, error in [(0.5, 30, 4.0), (0.3, 60, 1.0), (0.7, 20, 2.0)]:
        distances = _Distances(0.12, 0.5, 5000, 1.1)
        share = made.excess_share(radius)
        deviation = made.deviation(share) * (1.1**2 - radius**2)
        noise = rng.laplace(size=40_000) / math.sqrt(2.0) if made.pure else rng.normal(size=40_000)
        excess = distances.excess(radius)
        evidence = ball_search.BallEvidence(radius, math.nan, math.nan, excess, deviation, 1.1, made.pure)
        passed = np.mean(excess + deviation * noise <= allowed_excess(evidence, error, rows_beyond))
        assert distances.passes(radius, error, made, rows_beyond) == pytest.approx(passed, abs=0.01)


def test_a_ball_that_holds_every_row_passes_without_noise() -> None:
    made = plan_of(BUDGETS[1]).plan.budget  # type: ignore[attr-defined]
    assert _Distances(0.01, 0.5, 100, 0.5).passes(0.5, 1.0, made, 5) == 1.0
    assert _Distances(0.9, 0.0, 100, 0.5).passes(0.5, 1e-3, made, 1) == 0.0


def test_no_row_is_farther_from_the_mean_than_said_and_one_within_the_bounds_is_as_far() -> None:
    for means in ((1.0, 35.0, 2.9), (5.0, 17.5, 1.5), (9.0, -4.0, 0.2)):
        typical = TypicalTable.of(ROWS, typical_mean=dict(zip(ROWS.feature_names, means, strict=True)))
        low, high = typical.encoding.values_in_ball(*ROWS.feature_bounds)
        middle = typical.in_unit_ball[1]
        corners = [
            np.linalg.norm(np.array(corner) - middle) for corner in itertools.product(*zip(low, high, strict=True))
        ]
        assert _farthest(typical) == pytest.approx(min(max(corners), 1.0 + float(np.linalg.norm(middle))))
        assert means == (5.0, 17.5, 1.5) or max(corners) < 1.0 + float(np.linalg.norm(middle))


# The radius that a search ends at -----------------------------------------------------------------------------------------


def test_the_exponential_mechanism_has_the_odds_of_its_scores() -> None:
    beyond, indices = np.array([900.0, 41.4, 12.6, 0.0]), (3, 9, 10, 30)
    for epsilon in (0.05, 1.0):
        odds = [
            math.exp(epsilon / 2.0 * (ball_search.preference(index, epsilon) - abs(round(rows) - 20)))
            for rows, index in zip(beyond.tolist(), indices, strict=True)
        ]
        found = _chosen_by_score(beyond, 20, indices, epsilon)
        np.testing.assert_allclose(found, np.array(odds) / sum(odds), rtol=1e-12)


def test_noisy_comparisons_end_where_a_simulated_search_does() -> None:
    rng = np.random.default_rng(1)
    number = 2**ball_search.COMPARISONS
    beyond = 400.0 * np.arange(number) / number
    steps, half = np.zeros(60_000, dtype=int), number
    for _ in range(ball_search.COMPARISONS):
        half //= 2
        steps += half * (beyond[steps + half] + 25.0 * rng.normal(size=len(steps)) <= 120)
    found = _chosen_by_comparisons(beyond, 120, 25.0)
    assert found.sum() == pytest.approx(1.0)
    np.testing.assert_allclose(found, np.bincount(steps, minlength=number) / len(steps), atol=0.006)


@pytest.mark.parametrize("budget", BUDGETS, ids=lambda budget: budget.kind.value)
@pytest.mark.parametrize("neighbors", [Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE])
def test_runs_have_all_probability_and_never_more_budget_than_there_is(
    budget: PrivacyBudget, neighbors: Neighbors
) -> None:
    for n_rows in (40, 700, 5000, 10**6):
        setting = plan_of(budget, neighbors)
        plan = setting.plan
        runs = possible_runs(plan, setting.typical, n_rows)
        assert runs is not None
        assert 1.0 - 1.1e-2 <= math.fsum(run.probability for run in runs) <= 1.0 + 1e-9
        whole = plan.last_step(plan.budget.whole)  # type: ignore[attr-defined]
        least = whole.model.fixed_law.cell_variances()
        for run in runs:
            if not run.centered:
                assert (run.law.cell_variances() >= least * (1.0 - 1e-12)).all()


def test_missing_values_that_are_available_cases_are_carried_to_the_columns() -> None:
    complete = dpm.Schema(dpm.Numeric("a", 0, 10), dpm.Numeric("b", 0, 10))
    partly = dpm.Schema(dpm.Numeric("a", 0, 10, missing="available"), dpm.Numeric("b", 0, 10))
    sizes = []
    for schema in (complete, partly):
        shape = MomentShape.of(schema.with_indicators, mean=True)
        plan = MECHANISMS["gaussian"]().plan(shape, BUDGETS[1], "add_remove")
        runs = possible_runs(plan, TypicalTable.of(schema), 1000)
        assert runs is not None
        sizes.append(runs[0].law.cell_variances())
    assert sizes[0].shape == sizes[1].shape
    # the column whose cells may be missing pays for its indicator
    assert sizes[1][1, 1] > 2.0 * sizes[0][1, 1]


# The typical regression ---------------------------------------------------------------------------------------------------


def imagined(schema: dpm.Schema = ROWS) -> ImaginedRelease:
    setting = plan_of(BUDGETS[0], schema=schema)
    runs = possible_runs(setting.plan, setting.typical, setting.n_rows)
    assert runs is not None
    return ImaginedRelease.of(setting.plan, setting.typical, setting.n_rows, runs[-1:], centered=runs[-1].centered)


def test_regressors_explain_half_of_the_variance_equally() -> None:
    schema = dpm.Schema(*ROWS.columns, dpm.Categorical("d", ["x", "y", "z"]))
    for target, by in [(0, None), (1, ["a", "c"]), (2, ["b"])]:
        covariance = imagined(schema).explained_by_others(target, by).unit_ball_covariance
        names = schema.feature_names
        chosen = [names.index(name) for name in by] if by else [1, 2, 4, 5]
        slopes = np.linalg.solve(covariance[np.ix_(chosen, chosen)], covariance[chosen, target])
        standardized = slopes * np.sqrt(np.diag(covariance)[chosen] / covariance[target, target])
        np.testing.assert_allclose(standardized, standardized[0], rtol=1e-9)
        assert covariance[target, chosen] @ slopes / covariance[target, target] == pytest.approx(EXPLAINED)
        np.testing.assert_allclose(covariance, covariance.T)


def test_levels_of_a_typical_column_add_up_to_one() -> None:
    schema = dpm.Schema(dpm.Categorical("d", ["x", "y", "z"]), dpm.Numeric("a", 0, 1))
    made = imagined(schema)
    np.testing.assert_allclose(made.covariance[:3, :3].sum(axis=0), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.diag(made.covariance), made.typical.standard_deviations**2)
    assert not made.covariance[3, :3].any()


# Changes and what is needed -----------------------------------------------------------------------------------------------


def test_half_the_range_lies_about_the_mean_and_within_the_bounds() -> None:
    [column] = dpm.Schema(dpm.Numeric("a", 0, 8)).columns
    for mean, bounds in [(4.0, (2.0, 6.0)), (1.0, (0.0, 4.0)), (7.5, (4.0, 8.0)), (5.0, (3.0, 7.0))]:
        schema = dpm.Schema(column)
        tight = _half_as_wide(column, schema, TypicalTable.of(schema, typical_mean={"a": mean}, typical_sd={"a": 0.5}))  # type: ignore[arg-type]
        assert tight is not None
        assert tight.columns[0].bounds == bounds  # type: ignore[union-attr]
    wide = TypicalTable.of(schema, typical_mean={"a": 4.0}, typical_sd={"a": 1.1})
    assert _half_as_wide(column, schema, wide) is None  # type: ignore[arg-type]


def test_a_mechanism_that_refuses_does_not_hide_a_rival() -> None:
    setting = ReleasePlan(
        TypicalTable.of(ROWS),
        5000,
        BUDGETS[0],
        Neighbors.ADD_REMOVE,
        MECHANISMS["gaussian"](),
        (MECHANISMS["laplace"](),),
    )
    planned = _planned(setting)
    assert planned is not None
    assert planned[1] == ", with laplace"


def test_what_no_budget_reaches_is_refused_in_its_own_symbol() -> None:
    for budget, symbol in zip(BUDGETS, "ερ", strict=True):
        setting = ReleasePlan(TypicalTable.of(ROWS), 3, budget, Neighbors.ADD_REMOVE, MECHANISMS["isotropic"]())
        if budget.kind.value == "pure":
            setting = ReleasePlan(setting.typical, 3, budget, setting.neighbors, MECHANISMS["laplace"]())
        else:
            setting = ReleasePlan(setting.typical, 3, budget, setting.neighbors, MECHANISMS["gaussian"]())
        with refused("not-within-budget", symbol=symbol):
            budget_needed(setting, Wanted.of(setting.typical, mean={"a": 1e-9}))


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan, 0.0, -1.0])
def test_accuracies_are_positive_finite_numbers(value: float) -> None:
    with refused("not-positive", value=value) if not math.isnan(value) else refused("not-positive"):
        Wanted.of(TypicalTable.of(ROWS), mean={"a": value})


def test_a_share_with_the_largest_standard_deviation_is_a_half() -> None:
    typical = TypicalTable.of(dpm.Schema(dpm.Boolean("a")), typical_sd={"a": 0.5 + 1e-16})
    assert typical.means.tolist() == [0.5]


def test_coordinates_lie_evenly_in_the_ball_and_rough_scales_in_their_middle() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(200_000, 4))
    rows *= (rng.random(200_000) ** 0.25 / np.linalg.norm(rows, axis=1))[:, None]
    typical = TypicalTable.of(dpm.Schema.unit_ball(4))
    np.testing.assert_allclose(typical.standard_deviations, rows.std(axis=0), rtol=0.01)
    assert typical.words.startswith("~ assumes coordinates spread evenly")
    rough = TypicalTable.of(dpm.Schema(dpm.Numeric("x", scale=(1.0, 100.0), center=3.0)))
    assert (rough.standard_deviations[0], rough.means[0]) == (pytest.approx(10.0), 3.0)


def test_forecasts_of_counts_refuse_no_rows() -> None:
    schema = dpm.Schema(dpm.Boolean("a"))
    with refused("out-of-range", parameter="n_rows", value=0):
        dpm.forecast_counts(schema, by=["a"], epsilon=1.0, n_rows=0)
    found = dpm.forecast_counts(schema, by=[["a"]], epsilon=1.0, n_rows=500)
    [relative] = [column.values for column in found._columns() if column.name == "relative_noise"]
    assert list(relative) == pytest.approx([found.standard_errors[0] / 250.0])


def test_a_forecast_says_that_rows_with_both_values_are_counted_with_more_noise() -> None:
    """As a release states it; and says nothing of it where no value can be missing."""

    def schema(rule: str) -> dpm.Schema:
        numbers = (dpm.Numeric(name, 0, 10, missing=rule) for name in "ab")
        return dpm.Schema(dpm.Categorical("group", ["x", "y"], rule), *numbers)

    said = "tests of groups count the rows with both values"
    assert said in str(dpm.forecast(schema("available"), n_rows=900, epsilon=1.0))
    assert said not in str(dpm.forecast(schema("drop"), n_rows=900, epsilon=1.0))
    rows = pa.table({"group": ["x", "y"] * 450, "a": [3.0, 5.0] * 450, "b": [4.0] * 900})
    release = dpm.release(rows, schema("available"), epsilon=1.0, mechanism="matrix-laplace", insecure_seed=0)
    both = GroupSums.of(release, release.feature_names.index("a"), Levels.of(release, "group")).count_noise
    assert (2.0 * release.group_means("group", ["a"]).count_noise < both).all()
