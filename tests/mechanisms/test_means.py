"""Estimators of means: accuracy, exact laws of their parts, units, and refusals."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from contracts.cases import run_plan
from dpmoments.mechanisms.means.base import NoisyMean
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, make_mean_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.mechanisms.coinpress_mean import CoinPressMean
from dpmoments.papers.mechanisms.coordinatewise import SymmetricQuantilesPlan
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from dpmoments.schema.schema import Schema
from dpmoments.spending.release import release_mean
from support.said import refused

pytestmark = pytest.mark.long(sets=None)

OPTIONS: dict[str, dict[str, Any]] = {
    "coinpress": {"radius": 100.0, "scale": 1.0},
    "karwa-vadhan": {"radius": 100.0, "scale": 1.0},
    "log-scale-histogram": {},
    "naive": {"radius": 100.0, "scale": 1.0},
    "symq": {"radius": 100.0},
    "variance-aware": {},
}
COORDINATEWISE = ("karwa-vadhan", "naive", "symq")
PUBLIC_NUMBERS = [
    (name, option)
    for name in sorted(MEAN_MECHANISMS)
    for option in ("radius", "scale")
    if option in make_mean_mechanism(name).options
]
ZCDP, PURE = PrivacyBudget.zcdp(0.5), PrivacyBudget.pure(1.0)
every_mechanism = pytest.mark.parametrize("name", sorted(OPTIONS))
"""Every estimator but ``bounded-sums``, which takes no rows without bounds: ``test_bounded_sums.py``."""


def rows_of(table: np.ndarray, neighbors: str = "replace_one") -> Rows:
    return Rows.of(table, dpm.Schema.unbounded(table.shape[1]), neighbors=neighbors, threads=1)


def run(
    name: str, table: np.ndarray, seed: int, rho: float = 0.5, neighbors: str = "replace_one", **options: Any
) -> NoisyMean:
    n, d = table.shape
    shape = MomentShape(d, n_rows=n if neighbors == "replace_one" else None, row_norm=None)
    plan = make_mean_mechanism(name, **options).plan(shape, PrivacyBudget.zcdp(rho), neighbors)
    return run_plan(plan, rows_of(table, neighbors), insecure_generator(seed))


def errors(name: str, n: int, d: int, trials: int, center: float = 0.0, **options: Any) -> tuple[float, float]:
    """Mean errors, private and not."""
    rng = np.random.default_rng(0)
    private, plain = [], []
    for trial in range(trials):
        table = rng.normal(center, 1.0, size=(n, d))
        private.append(np.linalg.norm(run(name, table, trial, **options).mean - center))
        plain.append(np.linalg.norm(table.mean(axis=0) - center))
    return float(np.mean(private)), float(np.mean(plain))


def test_coinpress_comes_close_to_no_privacy_whatever_the_radius() -> None:
    """Published at n = 1000, d = 50: 22 to 27 % over the non-private error; 0.277 at R = 10⁴√d with ten steps."""
    private, plain = errors("coinpress", 1000, 50, 8, radius=1e6 * math.sqrt(50), scale=1.0)
    assert private <= 1.16 * plain
    assert private <= 0.26


@pytest.mark.slow
def test_the_variance_aware_mean_needs_no_radius_and_beats_those_that_do() -> None:
    center, n, d = 40.0, 1000, 10
    found = {
        name: errors(name, n, d, 3, center, **OPTIONS[name])[0]
        for name in ("variance-aware", "naive", "karwa-vadhan", "symq")
    }
    assert found["variance-aware"] <= min(found[name] for name in found if name != "variance-aware")
    far, plain = errors("variance-aware", n, d, 4, 1e9)
    assert far <= 1.3 * plain


BUDGETS = [PURE, PrivacyBudget.approximate(1.0, 1e-6), ZCDP]
every_budget = pytest.mark.parametrize("budget", BUDGETS, ids=[str(budget.kind) for budget in BUDGETS])


def karwa_vadhan(table: np.ndarray, radius: float, seed: int, budget: PrivacyBudget) -> NoisyMean:
    shape = MomentShape(table.shape[1], n_rows=len(table), row_norm=None)
    plan = make_mean_mechanism("karwa-vadhan", radius=radius).plan(shape, budget, "replace_one")
    privacy_filter = PrivacyFilter(plan, insecure_generator(seed))
    noisy = plan.run(rows_of(table), privacy_filter)
    assert privacy_filter.close().exhausts
    return noisy


@every_budget
def test_karwa_vadhan_does_not_depend_on_the_order_of_rows(budget: PrivacyBudget) -> None:
    """Differences of paired rows did: sorted rows have small ones. One seed gives the same bits for every order."""
    rng = np.random.default_rng(19)
    table = rng.normal([3.0, -40.0], [1.0, 0.2], size=(501, 2))
    orders = [table[rng.permutation(len(table))], table[np.argsort(table[:, 0])], table[::-1]]
    first = karwa_vadhan(table, 100.0, 4, budget)
    for order in orders:
        again = karwa_vadhan(order, 100.0, 4, budget)
        assert again.mean.tobytes() == first.mean.tobytes()
        assert again.diagnostics == first.diagnostics


@pytest.mark.long
@every_budget
def test_karwa_vadhan_is_accurate_for_normal_rows(budget: PrivacyBudget) -> None:
    rng = np.random.default_rng(21)
    center, deviation = np.array([500.0, -3.0]), np.array([50.0, 1e-3])
    errors = []
    for seed in range(8):
        table = rng.normal(center, deviation, size=(4000, 2))
        errors.append((karwa_vadhan(table, 1e4, seed, budget).mean - table.mean(axis=0)) / deviation)
    # Noise alone: twice σ·√(2 ln n) over n·ε/4 (ε = 1/4 is a coordinate's mean under pure ε) is 0.04 standard deviations.
    assert np.sqrt(np.mean(np.square(errors))) < 0.08
    for end in (-1e4, 1e4):  # a mean at the end of its range
        table = rng.normal(end, 50.0, size=(4000, 1))
        assert abs(karwa_vadhan(table, 1e4, 0, budget).mean[0] - end) < 10.0
    few = [karwa_vadhan(rng.normal(5.0, 1.0, size=(20, 1)), 10.0, seed, budget).mean[0] for seed in range(20)]
    assert np.abs(few).max() <= 10.0


@every_mechanism
def test_an_option_that_an_estimator_does_not_have_is_refused_by_name(name: str) -> None:
    with pytest.raises(TypeError, match="wishful"):
        make_mean_mechanism(name, wishful=1.0)
    with pytest.raises(TypeError, match="wishful"):
        make_mean_mechanism(name, **OPTIONS[name], wishful=None)


@every_mechanism
def test_release_is_in_the_tables_own_units(name: str) -> None:
    rng = np.random.default_rng(11)
    schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Numeric("income", 0, 200_000))
    table = np.column_stack([rng.normal(40, 10, 5000).clip(0, 100), rng.normal(50_000, 20_000, 5000).clip(0, 2e5)])
    found = release_mean(table, schema, rho=1.0, neighbors="replace_one", mechanism=name, insecure_seed=0)
    assert found.feature_names == ("age", "income")
    assert abs(found.mean[0] - table[:, 0].mean()) < 2
    assert abs(found.mean[1] - table[:, 1].mean()) < 4000
    assert found.n_rows == 5000
    assert not found.privacy.private
    assert found.privacy.rho == 1.0
    assert "NOT PRIVATE" in repr(found)


@every_mechanism
def test_budgets_and_neighbors_a_mechanism_does_not_know_are_refused(name: str) -> None:
    mechanism = make_mean_mechanism(name, **OPTIONS[name])
    shape = MomentShape(2, n_rows=100, row_norm=None)
    for budget in BUDGETS:
        if budget.kind in mechanism.budget_kinds:
            # Of (ε, δ) one may spend ε alone, where that is the better way.
            assert mechanism.plan(shape, budget, "replace_one").cost in (
                budget,
                PrivacyBudget.of(epsilon=budget.epsilon or 1.0),
            )
        else:
            with refused("cannot spend a budget of"):
                mechanism.plan(shape, budget, "replace_one")
    if Neighbors.ADD_REMOVE not in mechanism.supported_neighbors:
        with refused("is not defined under"):
            mechanism.plan(shape, PrivacyBudget.zcdp(0.5), "add_remove")
    # Pure ε for coordinates alone; under (ε, δ) Gaussian draws alone may divide more ρ than a mechanism with choices.
    choosing, approximate = ("karwa-vadhan", "symq", "log-scale-histogram"), PrivacyBudget.approximate(1.0, 1e-6)
    assert (BudgetKind.PURE in mechanism.budget_kinds) == (name in (*COORDINATEWISE, "log-scale-histogram"))
    assert (mechanism.drawable_budget(approximate).rho > 1.05 * approximate.to_rho()) == (name not in choosing)
    assert not mechanism.needs_row_norm


def test_what_must_be_public_is_asked_for() -> None:
    table = np.zeros((10, 2))
    for name in ("coinpress", *COORDINATEWISE):
        with refused("need a public bound on the mean: give radius, or use"):
            release_mean(table, dpm.Schema.unbounded(2), rho=1.0, neighbors="replace_one", mechanism=name)
    with refused("need a public bound on the standard deviation: give scale"):
        release_mean(table, dpm.Schema.unbounded(2), rho=1.0, mechanism="coinpress", radius=1.0)
    with refused("the table has no rows: under replace_one there is nothing"):
        release_mean(np.zeros((0, 2)), dpm.Schema.unbounded(2), rho=1.0, neighbors="replace_one")
    with refused("must be", TypeError, parameter="schema"):
        release_mean(table, "people.yaml", rho=1.0)  # type: ignore[arg-type]
    with refused("is configured already: leave out"):
        release_mean(table, dpm.Schema.unbounded(2), rho=1.0, mechanism=make_mean_mechanism("symq"), radius=1.0)
    for name in COORDINATEWISE:  # the default relation is that of release()
        with refused("is not defined under"):
            release_mean(table, dpm.Schema.unbounded(2), rho=1.0, mechanism=name)


def test_a_known_covariance_whitens() -> None:
    rng = np.random.default_rng(13)
    root = np.array([[100.0, 0.0], [1.0, 0.01]])
    table = rng.normal(size=(2000, 2)) @ root.T + [500.0, 6.0]
    found = run("coinpress", table, 0, radius=1e4, covariance=(root @ root.T).tolist())
    standardized = np.linalg.solve(root, found.mean - [500.0, 6.0])
    assert np.linalg.norm(standardized) < 0.1


# Before a row is read: options at their bounds, defaults, budgets too small, plans for other rows.


def unbounded(n_features: int, n_rows: int | None = 100, **changes: Any) -> MomentShape:
    return MomentShape(n_features, n_rows=n_rows, row_norm=None, **changes)


@pytest.mark.parametrize(("name", "option"), PUBLIC_NUMBERS)
def test_public_numbers_are_positive_and_floating_point_holds_their_squares(name: str, option: str) -> None:
    for value in (0.0, -1.0, math.inf, math.nan, True, "1"):
        with refused("must be"):
            make_mean_mechanism(name, **{option: value})
    for value in (math.nextafter(1e-60, 0.0), math.nextafter(1e60, math.inf), 1e-300, 1e300):
        with refused("]: give the table in other units"):
            make_mean_mechanism(name, **{option: value})
    for value in (1e-60, 1e60, 3):
        assert make_mean_mechanism(name, **{option: value}).options[option] == value


def test_a_quantile_lies_strictly_between_0_and_a_half() -> None:
    for value in (0.0, 0.5, -0.1, 0.9, math.nan):
        with refused("must be", parameter="quantile"):
            make_mean_mechanism("symq", quantile=value)
    for value in (1e-9, 0.4999):
        assert make_mean_mechanism("symq", quantile=value).options["quantile"] == value


def test_defaults_in_the_unit_ball() -> None:
    """Of rows of norm 1 at most the mean is one too, and the root of the mean square deviation of a coordinate 1/√d."""
    shape = MomentShape(4, n_rows=100)
    naive, karwa, symq, coinpress = (
        make_mean_mechanism(name).plan(shape, ZCDP, "replace_one")
        for name in ("naive", "karwa-vadhan", "symq", "coinpress")
    )
    assert (naive.radius, naive.half_width) == (1.0, 1.0 + 3.0 / 2.0)
    assert (karwa.radius, karwa.scale, symq.radius) == (1.0, None, 1.0)
    assert coinpress.balls.schedule.scales[0] == 2.0
    np.testing.assert_array_equal(coinpress.mechanism.whitening(shape), 2.0 * np.eye(4))
    given = make_mean_mechanism("naive", radius=3.0, scale=0.1).plan(shape, ZCDP, "replace_one")
    assert given.half_width == pytest.approx(3.3)
    assert isinstance(symq, SymmetricQuantilesPlan)
    assert make_mean_mechanism("symq", radius=3.0).plan(shape, ZCDP, "replace_one").resolution == 3.0 * 2.0**-34


@every_mechanism
def test_a_table_of_one_row_has_a_mean_and_one_of_none_has_not(name: str) -> None:
    mechanism = make_mean_mechanism(name, **OPTIONS[name])
    with refused("a table that is publicly empty has no mean"):
        mechanism.plan(unbounded(2, 0), ZCDP, "replace_one")
    assert mechanism.plan(unbounded(2, 1), ZCDP, "replace_one").cost == ZCDP


@every_mechanism
def test_rows_of_another_shape_or_relation_are_refused(name: str) -> None:
    plan = make_mean_mechanism(name, **OPTIONS[name]).plan(unbounded(2), ZCDP, "replace_one")
    for d, neighbors, missing in ((3, "replace_one", "error"), (2, "add_remove", "error"), (2, "replace_one", "drop")):
        rows = Rows.of(np.zeros((100, d)), Schema.unbounded(d, missing=missing), neighbors=neighbors)  # type: ignore[arg-type]
        with refused(
            (
                "the schema has a rule that drops rows, but the plan is for",
                "features and the rows have",
                "which has other sensitivities: make both for the same",
            )
        ):
            run_plan(plan, rows, insecure_generator(0))


@pytest.mark.parametrize("name", COORDINATEWISE)
@every_budget
def test_a_private_number_of_rows_is_paid_for_and_then_divided_by(name: str, budget: PrivacyBudget) -> None:
    mechanism = make_mean_mechanism(name, **OPTIONS[name])
    public = mechanism.plan(unbounded(2), budget, "replace_one")
    assert (public.count_loss, public.expected_count_error) == (None, 0.0)
    private = mechanism.plan(unbounded(2, drops_rows=True), budget, "replace_one")
    assert private.count_loss is not None
    share = 0.1 if budget is PURE else 0.05
    whole = mechanism.drawable_budget(budget)
    spent, all_of_it = (
        (private.count_loss.epsilon, whole.epsilon) if budget is PURE else (private.count_loss.rho, whole.rho)
    )
    assert spent == pytest.approx(share * all_of_it)
    rows = Rows.of(np.zeros((100, 2)), Schema.unbounded(2, missing="drop"), neighbors="replace_one")
    with pytest.raises(AssertionError, match="no draw was planned for"):
        run_plan(replace(private, count_loss=None), rows, insecure_generator(0))


@pytest.mark.parametrize("name", ["coinpress", "variance-aware"])
def test_the_error_of_the_number_of_rows_is_that_of_a_hundredth_of_the_budget(name: str) -> None:
    mechanism = make_mean_mechanism(name, **OPTIONS[name])
    assert mechanism.plan(unbounded(2), ZCDP, "replace_one").expected_count_error == 0.0
    private = mechanism.plan(unbounded(2, None), ZCDP, "add_remove")
    assert private.expected_count_error == pytest.approx(1.0 / math.sqrt(2.0 * 0.01 * 0.5))


@pytest.mark.parametrize(
    ("name", "options", "share"),
    [
        ("naive", {"radius": 1.0, "scale": 1.0}, 1.0 / 3.0),
        ("karwa-vadhan", {"radius": 1.0, "scale": 1.0}, 0.75 / 3.0),
        ("karwa-vadhan", {"radius": 1.0}, 0.5 / 3.0),
    ],
    ids=["naive", "karwa-vadhan, public scale", "karwa-vadhan"],
)
def test_a_clamped_mean_is_refused_where_its_noise_passes_2_to_the_34(
    name: str, options: dict[str, Any], share: float
) -> None:
    """The coarsest lattice of rows has units of 2^−6, and noise of 2^46 units of 2^−12 at most."""
    mechanism = make_mean_mechanism(name, **options)
    least_epsilon = 2.0 * 2.0**-34 / (0.96 * share)
    least_rho = (2.0 * 2.0**-34) ** 2 / 2.0 / (0.96 * share)
    for of, least in ((PrivacyBudget.pure, least_epsilon), (PrivacyBudget.zcdp, least_rho)):
        with refused("per entry would hide a table of any size: give a larger"):
            mechanism.plan(unbounded(3), of(0.99 * least), "replace_one")
        mechanism.plan(unbounded(3), of(1.01 * least), "replace_one")


def test_ball_estimators_refuse_a_budget_of_which_a_step_cannot_be_paid() -> None:
    """6/√(2ρ) for a step is 2^34 at most: a run whose steps are not known beforehand may give one a ten-thousandth of ρ."""
    least = (6.0 * 2.0**-34) ** 2 / 2.0
    fixed = make_mean_mechanism("coinpress", **OPTIONS["coinpress"], split=(1.0, 3.0))
    for mechanism, n_rows, smallest in (
        (make_mean_mechanism("variance-aware"), 100, 1e-4),
        (fixed, 100, 0.25),
        (fixed, None, 1e-4),
    ):
        neighbors = "replace_one" if n_rows else "add_remove"
        with refused("per entry would hide a table of any size: give a larger"):
            mechanism.plan(unbounded(3, n_rows), PrivacyBudget.zcdp(0.99 * least / smallest), neighbors)
        mechanism.plan(unbounded(3, n_rows), PrivacyBudget.zcdp(1.01 * least / smallest), neighbors)


def test_a_covariance_whitens_and_belongs_to_a_number_of_features() -> None:
    covariance = np.array([[4.0, 1.0], [1.0, 9.0]])
    mechanism = CoinPressMean(radius=7.0, covariance=covariance)  # type: ignore[arg-type]
    assert mechanism.covariance == ((4.0, 1.0), (1.0, 9.0))  # of floats, so that plans compare and copy
    root = mechanism.whitening(unbounded(2))
    np.testing.assert_allclose(root @ covariance @ root.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(root, root.T, atol=1e-12)
    plan = mechanism.plan(unbounded(2), ZCDP, "replace_one")
    assert plan.balls is not None
    assert plan.balls.schedule.scales[0] == 7.0  # a radius of whitened rows
    with refused("covariance has"):
        mechanism.plan(unbounded(3), ZCDP, "replace_one")
    with refused("give scale or covariance, not both"):
        CoinPressMean(radius=7.0, scale=1.0, covariance=[[1.0]])
    no_root = "must be positive definite, but has an eigenvalue that is"
    for wrong, code in (
        ([1.0, 2.0], "must be a finite square matrix, got shape"),
        ([[1.0, 1.0]], "must be a finite square matrix, got shape"),
        ([[1.0, 0.5], [0.4, 1.0]], "is not symmetric: pass (M + Mᵀ)/2 if the difference is"),
        ([[1.0, 0.0], [0.0, 0.0]], no_root),
        ([[1.0, 0.0], [0.0, -1.0]], no_root),
    ):
        with refused(code):
            CoinPressMean(radius=1.0, covariance=wrong)  # type: ignore[arg-type]
