"""Estimators of means before a row is read: options at their bounds, defaults, budgets too small, plans for other rows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from contracts.cases import run_plan
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, make_mean_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.mechanisms.coinpress_mean import CoinPressMean
from dpmoments.papers.mechanisms.coordinatewise import SymmetricQuantilesPlan
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.rows.rows import Rows
from dpmoments.schema.schema import Schema
from support.said import refused

pytestmark = pytest.mark.long(sets=None)

ZCDP, PURE = PrivacyBudget.zcdp(0.5), PrivacyBudget.pure(1.0)
PUBLIC_NUMBERS = [
    (name, option)
    for name in sorted(MEAN_MECHANISMS)
    for option in ("radius", "scale")
    if option in make_mean_mechanism(name).options
]
OPTIONS: dict[str, dict[str, Any]] = {
    "coinpress": {"radius": 10.0, "scale": 1.0},
    "karwa-vadhan": {"radius": 10.0, "scale": 1.0},
    "log-scale-histogram": {},
    "naive": {"radius": 10.0, "scale": 1.0},
    "symq": {"radius": 10.0},
    "variance-aware": {},
}
COORDINATEWISE = ("karwa-vadhan", "naive", "symq")
every_mechanism = pytest.mark.parametrize("name", sorted(OPTIONS))
"""Every estimator but ``bounded-sums``, which takes no rows without bounds: ``test_bounded_sums.py``."""


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
@pytest.mark.parametrize(
    "budget", [ZCDP, PURE, PrivacyBudget.approximate(1.0, 1e-6)], ids=["zcdp", "pure", "approximate"]
)
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


@pytest.mark.parametrize(
    ("covariance", "code"),
    [
        ([1.0, 2.0], "must be a finite square matrix, got shape"),
        ([[1.0, 1.0]], "must be a finite square matrix, got shape"),
        ([[1.0, 0.5], [0.4, 1.0]], "is not symmetric: pass (M + Mᵀ)/2 if the difference is"),
        ([[1.0, 0.0], [0.0, 0.0]], "must be positive definite, but has an eigenvalue that is"),
        ([[1.0, 0.0], [0.0, -1.0]], "must be positive definite, but has an eigenvalue that is"),
    ],
    ids=["a vector", "not square", "not symmetric", "singular", "indefinite"],
)
def test_a_covariance_that_is_none_is_refused(covariance: Any, code: str) -> None:
    with refused(code):
        CoinPressMean(radius=1.0, covariance=covariance)


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


@every_mechanism
def test_which_budgets_are_served_and_how_their_losses_add_up(name: str) -> None:
    """Pure ε for coordinates alone; under (ε, δ) a mechanism of Gaussian draws alone may divide more ρ than one with choices."""
    mechanism, budget = make_mean_mechanism(name, **OPTIONS[name]), PrivacyBudget.approximate(1.0, 1e-6)
    choosing = ("karwa-vadhan", "symq", "log-scale-histogram")
    assert (BudgetKind.PURE in mechanism.budget_kinds) == (name in (*COORDINATEWISE, "log-scale-histogram"))
    assert (mechanism.drawable_budget(budget).rho > 1.05 * budget.to_rho()) == (name not in choosing)
    assert not mechanism.needs_row_norm
