"""Privacy profiles: never below the truth, never above the stated budget; every comparison rejects a planted fault."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from scipy import stats

import dpmoments as dpm
from contracts.cases import CASES, N_ROWS, Case
from dpmoments.base.message import Message
from dpmoments.base.values import rounded_up
from dpmoments.papers.laws import EigenvalueBound
from dpmoments.privacy import curves as composed_module
from dpmoments.privacy.accounting import Loss, LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import (
    PrivacyCurve,
    bounded_range_delta,
    composed,
    discrete_laplace_delta,
    gaussian_delta,
    gaussian_noise_scale,
    laplace_delta,
    randomized_response_delta,
)
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import Choice, DiscreteGaussian, DiscreteLaplace
from dpmoments.privacy.receipt import Draw, PooledReceipt, Receipt
from dpmoments.privacy.sampling import insecure_generator, noised
from dpmoments.privacy.sensitivity import count, count_l1, histogram_l1, rank_score, smallest_eigenvalue
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.releases.profile import (
    _SETTLED,
    _SHARES,
    Bound,
    ProfilePoint,
    RunCurve,
    _mu_of,
    _proven_bounds,
)
from dpmoments.rows.rows import Rows
from dpmoments.schema import Schema
from support.said import refused

EPSILONS = (0.0, 0.05, 0.3, 0.7, 0.95)


def hockey_stick(ours: np.ndarray, theirs: np.ndarray, epsilon: float) -> float:
    """δ(ε) of two laws given as probabilities of the same outcomes, the larger of both orders."""
    pairs = ((ours, theirs), (theirs, ours))
    return max(float(np.maximum(one - math.exp(epsilon) * other, 0.0).sum()) for one, other in pairs)


def discrete_laplace(shift: int, scale: float, reach: int = 1200) -> np.ndarray:
    ratio = math.exp(-1.0 / scale)
    return (1.0 - ratio) / (1.0 + ratio) * ratio ** np.abs(np.arange(-reach, reach + 1) - shift)


def covers(bound: Callable[[float], float], exact: Callable[[float], float], epsilons: tuple[float, ...]) -> bool:
    """Whether a bound is nowhere below the truth, but for the last digits of the truth."""
    return all(bound(epsilon) >= exact(epsilon) - 1e-12 for epsilon in epsilons)


# One draw ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("shift", "scale"), [(1, 0.3), (3, 2.0), (20, 30.0)])
def test_discrete_laplace_is_exact_in_one_dimension(shift: int, scale: float) -> None:
    epsilons = tuple(share * shift / scale for share in (*EPSILONS, 1.0, 1.5))
    laws = discrete_laplace(shift, scale), discrete_laplace(0, scale)
    for epsilon in epsilons:
        assert discrete_laplace_delta(epsilon, shift, scale) == pytest.approx(hockey_stick(*laws, epsilon), abs=1e-12)
    assert not covers(
        lambda e: discrete_laplace_delta(e, shift, scale * 1.01), lambda e: hockey_stick(*laws, e), epsilons
    )


def radial_laws(loss: float, power: float) -> tuple[np.ndarray, np.ndarray]:
    """Density ∝ exp(−‖x‖_p) in the plane, moved by ``loss`` along an axis."""
    step = 0.05
    grid = np.arange(-16.0, 16.0, step)
    x, y = np.meshgrid(grid, grid, indexing="ij")

    def law(shift: float) -> np.ndarray:
        density = np.exp(-((np.abs(x - shift) ** power + np.abs(y) ** power) ** (1.0 / power)))
        return density / density.sum()

    return law(0.5 * loss), law(-0.5 * loss)


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_noise_that_is_lipschitz_in_a_norm_is_no_worse_than_laplace(power: float) -> None:
    laws = radial_laws(1.0, power)
    for epsilon in (0.0, 0.2, 0.5, 0.8):
        # The grid is good to 2e-4.
        assert hockey_stick(*laws, epsilon) <= laplace_delta(epsilon, 1.0) + 2e-4
    # faults: a smaller loss; in one norm the curve is attained, so that no smaller one would do
    assert hockey_stick(*laws, 0.0) > laplace_delta(0.0, 0.5)
    if power == 1.0:
        assert hockey_stick(*laws, 0.2) == pytest.approx(laplace_delta(0.2, 1.0), abs=2e-3)


def test_randomized_response_bounds_every_pure_pair_and_is_attained() -> None:
    rng, loss = np.random.default_rng(0), 1.3
    for _ in range(200):
        theirs = rng.dirichlet(np.ones(4))
        ours = theirs * np.exp(rng.uniform(-0.5 * loss, 0.5 * loss, 4))
        ours /= ours.sum()  # by a factor within e^{±loss/2}: ratios stay within e^{±loss}
        assert covers(
            lambda e: randomized_response_delta(e, loss), lambda e, p=ours, q=theirs: hockey_stick(p, q, e), EPSILONS
        )
    high = 1.0 / (1.0 + math.exp(-loss))
    worst = np.array([high, 1.0 - high]), np.array([1.0 - high, high])
    for epsilon in EPSILONS:
        assert randomized_response_delta(epsilon, loss) == pytest.approx(hockey_stick(*worst, epsilon), abs=1e-12)
    assert not covers(lambda e: laplace_delta(e, loss), lambda e: hockey_stick(*worst, e), EPSILONS)


def test_bounded_range_bounds_the_exponential_mechanism_and_is_attained() -> None:
    rng, width = np.random.default_rng(1), 1.5

    def law(scores: np.ndarray) -> np.ndarray:
        weights = np.exp(0.5 * width * scores)
        return weights / weights.sum()

    for _ in range(300):
        scores = rng.normal(0.0, 3.0, 5)
        laws = law(scores), law(scores + rng.choice([-1.0, 1.0], 5))
        assert covers(lambda e: bounded_range_delta(e, width), lambda e, pair=laws: hockey_stick(*pair, e), EPSILONS)
    for epsilon in EPSILONS:
        top = 0.5 * (width + epsilon)
        chance = (math.exp(-top) - math.exp(-width)) / -math.expm1(-width)
        theirs = np.array([chance, 1.0 - chance])
        worst = theirs * np.exp([top, top - width]), theirs
        assert bounded_range_delta(epsilon, width) == pytest.approx(hockey_stick(*worst, epsilon), abs=1e-12)
        assert bounded_range_delta(epsilon, width * 0.99) < hockey_stick(*worst, epsilon) - 1e-4  # fault


# Several draws -------------------------------------------------------------------------------------------------------


def curve_of_laplace(shift: int, scale: float) -> PrivacyCurve:
    return PrivacyCurve(lambda epsilon: discrete_laplace_delta(epsilon, shift, scale), shift / scale)


def exact_composition(shifts: tuple[int, ...], scale: float, epsilon: float) -> float:
    """δ(ε) of independent discrete Laplace draws, from the law of the sum of their losses."""
    losses: dict[int, float] = {0: 1.0}
    points = np.arange(-1200, 1201)
    for shift in shifts:
        own: dict[int, float] = {}
        gains = np.abs(points) - np.abs(points - shift)
        for gain, mass in zip(gains.tolist(), discrete_laplace(shift, scale).tolist(), strict=True):
            own[gain] = own.get(gain, 0.0) + mass
        sums: dict[int, float] = {}
        for (one, p), (other, q) in itertools.product(losses.items(), own.items()):
            sums[one + other] = sums.get(one + other, 0.0) + p * q
        losses = sums
    return math.fsum(mass * max(0.0, -math.expm1(epsilon - gain / scale)) for gain, mass in losses.items())


@pytest.mark.parametrize("shifts", [(1, 9), (2, 3, 5), (1,) * 8])
def test_composed_curves_are_exact_to_many_digits_and_never_below(shifts: tuple[int, ...]) -> None:
    scale = 10.0
    together = composed([curve_of_laplace(shift, scale) for shift in shifts])
    assert together is not None
    for share in EPSILONS:
        epsilon = share * sum(shifts) / scale
        exact = exact_composition(shifts, scale, epsilon)
        assert exact <= together.delta(epsilon) <= exact + 2e-5
    # fault: one draw is left out
    fewer = composed([curve_of_laplace(shift, scale) for shift in shifts[1:]])
    assert fewer is not None
    half = 0.61 * sum(shifts) / scale
    assert fewer.delta(half) < exact_composition(shifts, scale, half)


def test_a_bound_that_is_not_convex_is_joined_below() -> None:
    """A curve that is 1 up to ε = 0.1 says more at 0.05 by its chord."""
    curve = PrivacyCurve(lambda e: 1.0 if -0.1 < e < 0.1 else laplace_delta(e, 1.0), 1.0)
    alone = composed([curve])
    assert alone is not None
    assert laplace_delta(0.05, 1.0) <= alone.delta(0.05) < 0.5
    assert alone.delta(0.2) == pytest.approx(laplace_delta(0.2, 1.0), abs=1e-6)


def test_losses_beyond_floating_point_are_left_alone() -> None:
    assert composed([PrivacyCurve(lambda e: laplace_delta(e, 1e4), 1e4)]) is None
    assert composed([]) is None


# Runs ----------------------------------------------------------------------------------------------------------------


def receipt_of(case: Case, seed: int = 0, table: np.ndarray | None = None, size: str = "usual") -> tuple[str, Receipt]:
    plan = case.plan(size)
    privacy_filter = PrivacyFilter(plan, insecure_generator(seed))
    plan.run(case.rows(table), privacy_filter)
    return plan.mechanism.name, privacy_filter.close()


def implied(cost: PrivacyBudget, epsilon: float) -> float:
    """What a stated budget implies, by formulas of the test's own."""
    if cost.kind is BudgetKind.ZCDP:
        orders = 1.0 + np.geomspace(1e-3, 1e6, 20_000)
        logs = (orders - 1.0) * (orders * cost.rho - epsilon) - np.log(orders - 1.0) + orders * np.log1p(-1.0 / orders)
        return float(min(1.0, np.exp(logs.min())))
    pure = max(0.0, (math.exp(cost.epsilon) - math.exp(epsilon)) / (1.0 + math.exp(cost.epsilon)))
    return cost.delta + (1.0 - cost.delta) * pure


@pytest.mark.long(sets=7)
@pytest.mark.parametrize("case", CASES[::7], ids=lambda case: case.id)
def test_a_profile_says_no_less_than_the_stated_budget(case: Case) -> None:
    name, receipt = receipt_of(case)
    curve = RunCurve.of(receipt, name)
    points = curve.profile.points
    assert len(points) == len(_SHARES) == 5
    for point in points:
        assert 0.0 <= point.delta <= implied(receipt.cost, point.epsilon) * (1.0 + 1e-4) + 1e-14
        assert point.how
    assert all(first.delta >= second.delta for first, second in itertools.pairwise(points))
    if receipt.cost.kind is not BudgetKind.ZCDP:
        assert points[3].epsilon == receipt.cost.epsilon
        assert points[3].delta <= receipt.cost.delta
    else:
        assert 0.0 <= points[3].epsilon - receipt.cost.to_epsilon(1e-6) <= 1e-3
    if receipt.cost.kind is BudgetKind.PURE:
        assert points[3].delta == 0.0
        assert points[3].exact


@pytest.mark.long(sets=12)
@pytest.mark.parametrize("size", ["tiny", "unlimited"])
@pytest.mark.parametrize("case", CASES[::13], ids=lambda case: case.id)
def test_budgets_at_the_ends_of_what_is_accepted_have_profiles(case: Case, size: str) -> None:
    name, receipt = receipt_of(case, size=size)
    for point in RunCurve.of(receipt, name).profile.points:
        assert 0.0 <= point.delta <= 1.0


def varies(case: Case) -> bool:
    """Whether the draws of a run are others on tables that have nothing in common."""
    tables = (None, np.zeros((N_ROWS, 3)), np.tile([[0.0, 0.0, 1.0]], (N_ROWS, 1)))
    receipts = [receipt_of(case, seed, table)[1] for seed, table in enumerate(tables)]
    return len({tuple((d.law, d.sensitivity.value, d.loss.amount, d.size) for d in r.draws) for r in receipts}) > 1


@pytest.mark.parametrize("case", [case for case in CASES if case.mechanism.name in _SETTLED], ids=lambda case: case.id)
def test_draws_that_are_called_settled_are_the_same_on_every_table(case: Case) -> None:
    assert not varies(case)


def test_draws_that_depend_on_results_are_found() -> None:
    adaptive = [case for case in CASES if case.mechanism.name in ("standardized", "iterative-eigenvectors")]
    assert any(varies(case) for case in adaptive)
    assert {case.mechanism.name for case in CASES} & {"gaussian", "laplace", "matrix-laplace", "isotropic"} <= _SETTLED


@pytest.mark.long
def test_the_first_draw_is_the_same_on_every_table() -> None:
    for case in CASES[::17]:
        firsts = {
            receipt_of(case, seed, table)[1].draws[0].law for seed, table in enumerate((None, np.zeros((N_ROWS, 3))))
        }
        assert len(firsts) == 1, case.id


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_an_exact_gaussian_profile_is_attained_by_explicit_neighbors(neighbors: Neighbors) -> None:
    """The shift of the exact integers between two tables, over the scale that was drawn."""
    case = next(c for c in CASES if c.id == f"gaussian()-approximate-{neighbors}-gram")
    name, receipt = receipt_of(case)
    (draw,) = receipt.draws
    assert isinstance(draw.law, DiscreteGaussian)
    first, second = np.eye(3)[:1], np.eye(3)[1:2] if neighbors is Neighbors.REPLACE_ONE else np.zeros((0, 3))
    bits = round(math.log2(draw.sensitivity.units) / 2)
    grams = [
        Rows.of(table, Schema.unit_ball(3), neighbors=neighbors).moments(bits=bits).gram.astype(object)
        for table in (first, second)
    ]
    shift = math.sqrt(float(((grams[0] - grams[1]) ** 2).sum()))
    for point in RunCurve.of(receipt, name).profile.points[:4]:
        truth = gaussian_delta(point.epsilon, shift, draw.law.scale)
        assert point.exact
        assert truth * (1.0 - 1e-9) <= point.delta <= truth * (1.0 + 2e-6)
        assert ("with and without one row" in point.how) == (neighbors is Neighbors.ADD_REMOVE)
        assert "norm" in point.how


def test_noise_that_no_neighbors_are_known_to_attain_is_a_bound() -> None:
    for name in (
        "entrywise-gaussian()-approximate-add_remove-mean",
        "laplace()-pure-add_remove-mean",
    ):
        mechanism, receipt = receipt_of(next(case for case in CASES if case.id == name))
        assert not any(point.exact for point in RunCurve.of(receipt, mechanism).profile.points if point.delta > 1e-5)


@pytest.mark.parametrize(("scale", "exact"), [(2.0**16, True), (2.0**16 - 1.0, False)])
def test_normal_noise_is_exact_from_a_fine_lattice_on(scale: float, exact: bool) -> None:
    point = RunCurve.of(concentrated(DiscreteGaussian(scale)), "gaussian").at(0.5 / scale)
    assert point.exact == exact
    assert point.delta == pytest.approx(gaussian_delta(0.5 / scale, 1.0, scale), rel=1e-6)


@pytest.mark.parametrize(("rounding", "exact"), [(8e-6, True), (9e-6, False)])
def test_a_sensitivity_is_attained_but_for_a_millionth_of_rounding(rounding: float, exact: bool) -> None:
    law, sensitivity = DiscreteLaplace(32.0), count_l1(Neighbors.ADD_REMOVE).in_units(8.0, rounding=rounding)
    one = Draw(Message("count"), law, sensitivity, law.loss(sensitivity, LossUnit.EPSILON), 1)
    budget = PrivacyBudget.pure(0.2500001 + rounding)
    receipt = Receipt(Neighbors.ADD_REMOVE, budget, LossUnit.EPSILON, (one,))
    assert RunCurve.of(receipt, "laplace").at(0.1).exact == exact


def test_a_normal_draw_that_leaves_something_is_no_exact_profile() -> None:
    """Of a run whose later draws depend on results: what it left may have been spent by any other draw."""
    whole = receipt_of(next(c for c in CASES if c.id == "gaussian()-approximate-add_remove-gram"))[1]
    more = replace(whole, cost=PrivacyBudget.of(epsilon=1.1 * whole.cost.epsilon, delta=whole.cost.delta))
    (draw,) = whole.draws
    assert 0.5 * more.allowance.amount < draw.loss.amount < 0.9 * more.allowance.amount
    at = 0.5 * whole.cost.epsilon
    assert RunCurve.of(whole, "standardized").at(at).exact
    assert RunCurve.of(more, "gaussian").at(at).exact
    assert not RunCurve.of(more, "standardized").at(at).exact


def test_failures_of_bounds_are_added_up_and_rounded_up() -> None:
    laws = [EigenvalueBound(3.0, 40.0), EigenvalueBound(4.0, 21.0), EigenvalueBound(5.0, 61.0)]
    sensitivity, unit = smallest_eigenvalue(Neighbors.ADD_REMOVE), LossUnit.EPSILON_DELTA
    draws = tuple(Draw(Message("query", name="part"), law, sensitivity, law.loss(sensitivity, unit), 1) for law in laws)
    exact = sum((draw.loss.delta for draw in draws), Fraction(0))
    assert Fraction(float(exact)) < exact
    curve = RunCurve.of(
        Receipt(Neighbors.ADD_REMOVE, PrivacyBudget.approximate(2.0, 0.9), unit, draws), "additive-wishart"
    )
    delta = curve.at(1.5).delta
    assert isinstance(delta, float)
    assert delta == rounded_up(exact)


def test_outcomes_of_draws_keep_the_profile() -> None:
    """An audit: how often a set is hit on one table and on its neighbor, 200,000 times each."""
    n_draws, scale = 200_000, 4.0
    law, epsilon = DiscreteLaplace(scale), 1.0 / scale
    ours, theirs = (
        noised(law, np.full(n_draws, count), insecure_generator(seed)) for seed, count in enumerate((101, 100))
    )

    def keeps(loss: float) -> bool:
        """Whether no set {answer ≥ a} is hit more often than a curve allows, with confidence 1 − 1e-6."""
        curve = RunCurve.of(count_receipt(1.0 / loss), "laplace")
        slack = stats.norm.isf(1e-6 / 20) * math.sqrt(0.25 / n_draws)
        return all(
            float((ours >= place).mean()) - math.exp(share * epsilon) * float((theirs >= place).mean())
            <= curve.at(share * epsilon).delta + slack * (1.0 + math.exp(share * epsilon))
            for share in (0.0, 0.5)
            for place in range(96, 106)
        )

    assert keeps(epsilon)
    assert not keeps(epsilon * 0.9)  # fault: noise that is a tenth too small for what is said of it


def count_receipt(scale: float) -> Receipt:
    sensitivity, law = count_l1(Neighbors.ADD_REMOVE), DiscreteLaplace(scale)
    loss = law.loss(sensitivity, LossUnit.EPSILON)
    draw = Draw(Message("count"), law, sensitivity, loss, 1)
    return Receipt(Neighbors.ADD_REMOVE, PrivacyBudget.pure(1.001 / scale), LossUnit.EPSILON, (draw,))


def test_the_order_of_bounds_never_hides_a_better_one() -> None:
    """One count that leaves half of a budget: a settled run has the count's curve, any other that of all it might do."""
    half = replace(count_receipt(2.0), cost=PrivacyBudget.pure(1.0))
    settled, other = RunCurve.of(half, "laplace"), RunCurve.of(half, "standardized")
    assert settled.at(0.25).delta == pytest.approx(discrete_laplace_delta(0.25, 1, 2.0), abs=1e-12)
    assert settled.at(0.25).exact
    assert settled.at(0.5).delta == 0.0
    assert settled.at(0.25).delta < other.at(0.25).delta <= randomized_response_delta(0.25, 1.0)
    assert other.at(0.75).delta > 0.0
    assert other.at(1.0).delta == 0.0


def test_what_follows_the_first_draw_may_be_anything() -> None:
    """Two counts: of a settled run both are known, of any other the second might have been randomized response."""
    law, sensitivity = DiscreteLaplace(32.0), count_l1(Neighbors.ADD_REMOVE).in_units(8.0)
    one = Draw(Message("count"), law, sensitivity, law.loss(sensitivity, LossUnit.EPSILON), 1)
    receipt = Receipt(Neighbors.ADD_REMOVE, PrivacyBudget.pure(0.5), LossUnit.EPSILON, (one, one))
    known = composed([curve_of_laplace(8, 32.0)] * 2)
    anything = composed([curve_of_laplace(8, 32.0), PrivacyCurve(lambda e: randomized_response_delta(e, 0.25), 0.25)])
    assert known is not None
    assert anything is not None
    settled, other = RunCurve.of(receipt, "laplace").at(0.1).delta, RunCurve.of(receipt, "standardized").at(0.1).delta
    assert settled == pytest.approx(known.delta(0.1), abs=1e-9)
    assert other == pytest.approx(anything.delta(0.1), abs=1e-9)
    assert settled < other - 1e-4


def discrete_gaussian(shift: int, scale: float) -> np.ndarray:
    weights = np.exp(-((np.arange(-200, 201) - shift) ** 2) / (2.0 * scale**2))
    return weights / weights.sum()


def concentrated(*laws: DiscreteGaussian | Choice) -> Receipt:
    """Draws under zCDP that move by 1."""
    draws = []
    for law in laws:
        sensitivity = (count if isinstance(law, DiscreteGaussian) else rank_score)(Neighbors.ADD_REMOVE)
        draws.append(Draw(Message("query", name="part"), law, sensitivity, law.loss(sensitivity, LossUnit.RHO), 1))
    return Receipt(Neighbors.ADD_REMOVE, PrivacyBudget.zcdp(1.0), LossUnit.RHO, tuple(draws))


@pytest.mark.parametrize("scale", [6.0, 12.0])
def test_coarse_gaussian_noise_has_its_margin(scale: float) -> None:
    """Noise of a few lattice units is told apart better than continuous noise is, at some ε."""
    laws = discrete_gaussian(1, scale), discrete_gaussian(0, scale)
    curve = RunCurve.of(concentrated(DiscreteGaussian(scale)), "gaussian")
    epsilons = tuple(np.linspace(0.0, 5.0 / scale, 41).tolist())
    assert covers(lambda e: curve.at(e).delta, lambda e: hockey_stick(*laws, e), epsilons)
    assert not covers(lambda e: gaussian_delta(e, 1.0, scale), lambda e: hockey_stick(*laws, e), epsilons)  # fault
    assert not any(curve.at(epsilon).exact for epsilon in epsilons)


@pytest.mark.long
def test_gaussian_draws_beside_others_are_composed_with_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(composed_module, "_N_STEPS", 500)
    scale, width = 8.0, 0.3
    curve = RunCurve.of(concentrated(DiscreteGaussian(scale), Choice(width)), "kapralov-talwar")
    assert curve.mu is None
    normal = discrete_gaussian(1, scale), discrete_gaussian(0, scale)
    for epsilon in (0.05, 0.3):
        largest = 0.0
        for top in np.linspace(0.0, width, 31)[1:-1]:
            chance = (math.exp(-top) - math.exp(-width)) / -math.expm1(-width)
            own = np.array([chance, 1.0 - chance])
            moved = own * np.exp([top, top - width])
            pair = (np.multiply.outer(one, other) for one, other in zip(normal, (moved, own), strict=True))
            largest = max(largest, hockey_stick(*pair, epsilon))
        assert largest <= curve.at(epsilon).delta <= 1.5 * largest
        # faults: the Gaussian alone, or the choice alone
        assert bounded_range_delta(epsilon, width) < largest
        assert hockey_stick(*normal, epsilon) < largest


def in_groups(neighbors: Neighbors, kind: type[Receipt]) -> Receipt:
    """A histogram of each of two groups, and a choice for both."""
    unit, budget = LossUnit.EPSILON, PrivacyBudget.pure(4.0)
    draws = []
    for group in (None, "north", "south"):
        law = Choice(0.5) if group is None else DiscreteLaplace(4.0)
        sensitivity = rank_score(neighbors) if group is None else histogram_l1(neighbors)
        draws.append(Draw(Message("query", name="part"), law, sensitivity, law.loss(sensitivity, unit), 5, None, group))
    return kind(neighbors, budget, unit, tuple(draws))


def test_a_row_touches_one_group_or_two() -> None:
    choice = PrivacyCurve(lambda e: bounded_range_delta(e, 0.5), 0.5)
    one = composed([choice, curve_of_laplace(1, 4.0)])
    two = composed([choice, curve_of_laplace(2, 4.0), curve_of_laplace(2, 4.0)])
    single = composed([choice, curve_of_laplace(2, 4.0)])
    assert one is not None
    assert two is not None
    assert single is not None
    added = RunCurve.of(in_groups(Neighbors.ADD_REMOVE, Receipt), "laplace").at(0.2).delta
    replaced = RunCurve.of(in_groups(Neighbors.REPLACE_ONE, Receipt), "laplace").at(0.2).delta
    stays = RunCurve.of(in_groups(Neighbors.REPLACE_ONE, PooledReceipt), "laplace").at(0.2).delta
    assert added == pytest.approx(one.delta(0.2), abs=1e-9)
    assert replaced == pytest.approx(two.delta(0.2), abs=1e-9)
    assert stays == pytest.approx(single.delta(0.2), abs=1e-9)


def test_the_worst_of_several_tables_counts() -> None:
    strict, lax = (RunCurve.of(count_receipt(scale), "laplace") for scale in (10.0, 1.0))
    both = RunCurve.worst([strict, lax], PrivacyBudget.pure(1.001))
    assert both.at(0.5) == lax.at(0.5)
    assert both.at(0.5).delta > strict.at(0.5).delta


@pytest.mark.parametrize("gaussian", [True, False])
def test_units_of_several_rows_lose_what_their_rows_lose_together(gaussian: bool) -> None:
    """Against exact curves of a count that a unit of three rows moves by three."""
    if gaussian:
        of_row = receipt_of(next(c for c in CASES if c.id == "gaussian()-approximate-add_remove-gram"))[1]
        law, moved = of_row.draws[0].law, of_row.draws[0].sensitivity.value
        assert isinstance(law, DiscreteGaussian)
        truth, cost = partial(gaussian_delta, sensitivity=3.0 * moved, noise_scale=law.scale), (40.0, 1e-6)
    else:
        of_row, cost = count_receipt(10.0), (0.3001, 0.0)
        ours, theirs = discrete_laplace(0, 10.0), discrete_laplace(3, 10.0)
        truth = partial(hockey_stick, ours, theirs)
    for_units = replace(of_row, cost=PrivacyBudget.of(epsilon=cost[0], delta=cost[1]), privacy_unit=PrivacyUnit("p", 3))
    curve, row_curve = (RunCurve.of(one, "laplace" if not gaussian else "gaussian") for one in (for_units, of_row))
    for epsilon in (0.05, 0.1, 0.2):
        exact = truth(epsilon=epsilon)
        assert exact * (1.0 - 1e-9) <= curve.at(epsilon).delta <= (1.001 if gaussian else 1.3) * exact
        assert row_curve.at(epsilon).delta < exact  # what forgetting the unit would say
        assert not curve.at(epsilon).exact
    if gaussian:
        assert curve.mu == pytest.approx(3.0 * row_curve.mu)


def test_mu_is_stated_of_gaussian_runs_alone() -> None:
    receipt = concentrated(DiscreteGaussian(2.0**20))
    mu = RunCurve.of(receipt, "gaussian").mu
    assert mu is not None
    assert math.nextafter(mu, 0.0) < 2.0**-20 <= mu
    assert RunCurve.of(receipt, "standardized").mu is None
    for rho in (Fraction(1, 3), Fraction(2, 7) / 10**12, Fraction(9, 8), Fraction(10**9, 7)):
        least = _mu_of(Loss(LossUnit.RHO, rho))
        assert Fraction(math.nextafter(least, 0.0)) ** 2 < 2 * rho <= Fraction(least) ** 2


def test_epsilon_at_a_delta_is_on_the_safe_side() -> None:
    """Also where it is far above the stated ε, 0, or none at all."""
    gaussian = receipt_of(next(c for c in CASES if c.id == "gaussian()-approximate-add_remove-gram"))[1]
    for receipt, name, delta in (
        (gaussian, "gaussian", 1e-4),
        (gaussian, "gaussian", 1e-300),
        (concentrated(DiscreteGaussian(12.0)), "gaussian", 1e-4),
        (count_receipt(4.0), "laplace", 1e-4),
        (count_receipt(1e6), "laplace", 1e-4),
    ):
        curve = RunCurve.of(receipt, name)
        epsilon = curve.epsilon_at(delta)
        assert epsilon is not None
        assert curve.at(epsilon).delta <= delta
        assert epsilon == 0.0 or curve.at(epsilon * (1.0 - 1e-5)).delta > delta
    failing = RunCurve(((Bound("", lambda _: 0.01),),), PrivacyBudget.approximate(1.0, 0.01), None)
    assert failing.epsilon_at(1e-4) is None


def power_of(delta: Callable[[float], float], cost: PrivacyBudget, wrong: float) -> float:
    return RunCurve(((Bound("", delta),),), cost, None).attacker_power(wrong)


@pytest.mark.parametrize(("epsilon", "wrong"), [(0.1, 0.4), (1.0, 0.05), (3.0, 0.01), (1.0, 0.0), (3.0, 1.0)])
def test_an_attackers_power_is_that_of_the_best_test(epsilon: float, wrong: float) -> None:
    """Randomized response and Gaussian noise have it in closed form; that of Laplace noise is its trade-off function."""
    pure, gaussian = PrivacyBudget.pure(epsilon), PrivacyBudget.approximate(epsilon, 1e-6)
    of_any = min(math.exp(epsilon) * wrong, 1.0 - math.exp(-epsilon) * (1.0 - wrong))
    found = power_of(lambda at: randomized_response_delta(at, epsilon), pure, wrong)
    assert found == pytest.approx(of_any, rel=1e-6, abs=1e-12)

    scale = gaussian_noise_scale(epsilon, 1e-6, 1.0)
    truth = float(stats.norm.cdf(stats.norm.ppf(wrong) + 1.0 / scale))
    found = power_of(lambda at: gaussian_delta(at, 1.0, scale), gaussian, wrong)
    assert truth - 1e-12 <= found <= truth * (1.0 + 1e-3) + 1e-6

    if wrong in (0.01, 0.05):
        threshold = -math.log(2.0 * wrong)  # of a Laplace number about 0
        hit = 0.5 * math.exp(epsilon - threshold) if epsilon < threshold else 1.0 - 0.5 * math.exp(threshold - epsilon)
        assert hit - 1e-9 <= power_of(lambda at: laplace_delta(at, epsilon), pure, wrong) <= hit * (1.0 + 1e-3)


def test_the_power_of_a_run_is_below_that_of_its_budget() -> None:
    law, sensitivity = DiscreteLaplace(32.0), count_l1(Neighbors.ADD_REMOVE).in_units(96.0)
    one = Draw(Message("count"), law, sensitivity, law.loss(sensitivity, LossUnit.EPSILON), 1)
    curve = RunCurve.of(Receipt(Neighbors.ADD_REMOVE, PrivacyBudget.pure(3.0), LossUnit.EPSILON, (one,)), "laplace")
    stated = min(math.exp(3.0) * 0.05, 1.0 - math.exp(-3.0) * 0.95)
    assert curve.attacker_power(0.05) < stated - 0.1
    for share in (-0.1, 1.1, math.nan):
        with refused("must be", parameter="false_positives"):
            curve.attacker_power(share)


def test_groups_after_the_first_have_bounds_of_their_own() -> None:
    """Only the first draw of the run is known beforehand; that of another group came after results."""
    rows = {"x": np.linspace(-0.5, 0.5, 60), "y": np.linspace(0.5, -0.5, 60), "level": ["a", "b"] * 30}
    schema = dpm.Schema(dpm.Numeric("x", -1, 1), dpm.Numeric("y", -1, 1), dpm.Categorical("level", ["a", "b"]))
    released = dpm.release_groups(
        pa.table(rows), schema, by="level", epsilon=1.0, mechanism="iterative-eigenvectors", insecure_seed=0
    )
    groups = dict.fromkeys(draw.group for draw in released.receipt.draws)
    parts = [[draw for draw in released.receipt.draws if draw.group == group] for group in groups]
    bounds = [_proven_bounds(released.receipt, draws, False) for draws in parts]
    deltas = [min(bound.delta(0.5) for bound in found) for found in bounds]
    assert len(deltas) == 2
    assert released.privacy_curve.at(0.5).delta >= max(deltas)


def test_infinite_losses_of_composed_draws_are_all_counted() -> None:
    """Two draws that fail with probability .01 and .02, of loss 1 and 2 otherwise."""

    def failing(loss: float, failure: float) -> Any:
        def delta(epsilon: float) -> float:
            return failure + (1.0 - failure) * max(-math.expm1(epsilon - loss), 0.0) * 0.5

        return SimpleNamespace(reach=loss, delta=delta)

    found = composed_module.composed([failing(1.0, 0.01), failing(2.0, 0.02)])
    assert found is not None
    assert found.infinite == pytest.approx(1.0 - 0.99 * 0.98, rel=1e-9)
    assert found.delta(4.0) == pytest.approx(1.0 - 0.99 * 0.98, rel=1e-6)


def test_rounding_up_adds_more_than_the_rounding_of_a_few_operations() -> None:
    for delta in (0.0, 1e-9, 0.25, 0.9):
        assert composed_module._rounded_up(delta) - delta >= 2.0**-51
    assert composed_module._rounded_up(1.0) == 1.0


def test_a_point_is_marked_by_whether_it_is_exact() -> None:
    assert [ProfilePoint(1.0, 1e-6, exact, "").mark for exact in (True, False)] == ["exact", "bound"]
