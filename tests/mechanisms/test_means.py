"""Estimators of means: accuracy, exact laws of their parts, units, and refusals."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpmoments as dpm
from contracts.cases import run_plan
from dpmoments.mechanisms.means.base import NoisyMean
from dpmoments.mechanisms.registry import make_mean_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.mechanisms.log_scale_histogram import ColumnQueries, choose
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.sensitivity import rank_score
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from dpmoments.spending.release import release_mean
from support.opened_filter import filter_that_pays
from support.said import Said, refused

pytestmark = pytest.mark.long(sets=None)

OPTIONS: dict[str, dict[str, Any]] = {
    "coinpress": {"radius": 100.0, "scale": 1.0},
    "karwa-vadhan": {"radius": 100.0, "scale": 1.0},
    "log-scale-histogram": {},
    "naive": {"radius": 100.0, "scale": 1.0},
    "symq": {"radius": 100.0},
    "variance-aware": {},
}
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
    for radius, seeds in ((math.sqrt(50), 8), (1e6 * math.sqrt(50), 8)):
        private, plain = errors("coinpress", 1000, 50, seeds, radius=radius, scale=1.0)
        assert private <= 1.16 * plain, radius
        assert private <= 0.26, radius


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


@pytest.mark.slow
def test_choice_has_the_law_of_the_exponential_mechanism() -> None:
    scores, generator = np.array([5.0, 4.0, 1.0, 0.0]), insecure_generator(5)

    def chosen(scores: np.ndarray, loss: PrivacyBudget) -> int:
        one_choice = filter_that_pays(loss, Neighbors.REPLACE_ONE, generator)
        return choose(scores, rank_score(Neighbors.REPLACE_ONE), loss, one_choice, "choice")

    for loss, epsilon in ((PrivacyBudget.pure(0.8), 0.8), (PrivacyBudget.zcdp(0.08), 0.8)):
        drawn = np.bincount([chosen(scores, loss) for _ in range(4_000)], minlength=4)
        weights = np.exp(epsilon * scores / 2)
        assert stats.chisquare(drawn, 4_000 * weights / weights.sum()).pvalue > 1e-3
        faulty = np.exp(epsilon * scores)  # planted fault: twice the ε that was paid for
        assert stats.chisquare(drawn, 4_000 * faulty / faulty.sum()).pvalue < 1e-6
    assert chosen(np.array([-1e9, 1e9]), PrivacyBudget.pure(10.0)) == 1


@pytest.mark.long
@pytest.mark.parametrize("loss", [PrivacyBudget.pure(0.7), PrivacyBudget.zcdp(0.1)], ids=["pure", "zcdp"])
def test_clamped_mean_divides_by_the_public_count(loss: PrivacyBudget) -> None:
    """All rows but one far outside: dividing by the number in range would leave the mean near that row."""
    table = np.array([[1e9]] * 99 + [[0.3]])
    rows, generator = rows_of(table), insecure_generator(8)
    draws = np.array(
        [
            ColumnQueries(rows, filter_that_pays(loss, Neighbors.REPLACE_ONE, generator), 0, 100.0).clamped_mean(
                loss, center=0.0, half_width=1.0
            )
            for _ in range(500)
        ]
    )
    noise = (draws - (99 + 0.3) / 100) * 100
    law = stats.laplace(scale=2 / 0.7) if loss.epsilon else stats.norm(scale=2 / math.sqrt(0.2))
    assert stats.kstest(noise, law.cdf).pvalue > 1e-3
    assert stats.kstest(noise * 2, law.cdf).pvalue < 1e-6  # planted fault: half the sensitivity


KARWA_VADHAN_BUDGETS = [PrivacyBudget.pure(1.0), PrivacyBudget.approximate(1.0, 1e-6), PrivacyBudget.zcdp(0.5)]


def karwa_vadhan(
    table: np.ndarray, radius: float, seed: int, budget: PrivacyBudget = KARWA_VADHAN_BUDGETS[2], **options: Any
) -> NoisyMean:
    shape = MomentShape(table.shape[1], n_rows=len(table), row_norm=None)
    plan = make_mean_mechanism("karwa-vadhan", radius=radius, **options).plan(shape, budget, "replace_one")
    privacy_filter = PrivacyFilter(plan, insecure_generator(seed))
    noisy = plan.run(rows_of(table), privacy_filter)
    assert privacy_filter.close().exhausts
    return noisy


@pytest.mark.parametrize("budget", KARWA_VADHAN_BUDGETS, ids=[str(budget.kind) for budget in KARWA_VADHAN_BUDGETS])
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
@pytest.mark.parametrize("budget", KARWA_VADHAN_BUDGETS, ids=[str(budget.kind) for budget in KARWA_VADHAN_BUDGETS])
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
    for budget in (PrivacyBudget.pure(1.0), PrivacyBudget.approximate(1.0, 1e-6), PrivacyBudget.zcdp(0.5)):
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
    with refused("a table that is publicly empty has no mean"):
        mechanism.plan(MomentShape(2, n_rows=0), PrivacyBudget.zcdp(0.5), "replace_one")


def test_what_must_be_public_is_asked_for() -> None:
    table = np.zeros((10, 2))
    for name, said in (
        ("coinpress", Said("need a public bound on the mean: give radius, or use")),
        ("naive", Said("need a public bound on the mean: give radius, or use")),
        ("symq", Said("need a public bound on the mean: give radius, or use")),
        ("karwa-vadhan", Said("need a public bound on the mean: give radius, or use")),
    ):
        with refused(said):
            release_mean(table, dpm.Schema.unbounded(2), rho=1.0, neighbors="replace_one", mechanism=name)
    with refused("need a public bound on the standard deviation: give scale"):
        release_mean(table, dpm.Schema.unbounded(2), rho=1.0, mechanism="coinpress", radius=1.0)
    with refused("the table has no rows: under replace_one there is nothing"):
        release_mean(np.zeros((0, 2)), dpm.Schema.unbounded(2), rho=1.0, neighbors="replace_one")
    with refused("must be", TypeError, parameter="schema"):
        release_mean(table, "people.yaml", rho=1.0)  # type: ignore[arg-type]
    with refused("is configured already: leave out"):
        release_mean(table, dpm.Schema.unbounded(2), rho=1.0, mechanism=make_mean_mechanism("symq"), radius=1.0)
    for name in ("naive", "symq", "karwa-vadhan"):  # the default relation is that of release()
        with refused("is not defined under"):
            release_mean(table, dpm.Schema.unbounded(2), rho=1.0, mechanism=name)


def test_a_known_covariance_whitens() -> None:
    rng = np.random.default_rng(13)
    root = np.array([[100.0, 0.0], [1.0, 0.01]])
    table = rng.normal(size=(2000, 2)) @ root.T + [500.0, 6.0]
    found = run("coinpress", table, 0, radius=1e4, covariance=(root @ root.T).tolist())
    standardized = np.linalg.solve(root, found.mean - [500.0, 6.0])
    assert np.linalg.norm(standardized) < 0.1
