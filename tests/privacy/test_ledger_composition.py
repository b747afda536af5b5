"""What releases come to together: tables of conversions, exact sums, and no composed curve above what the ledger says."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from scipy.special import erfc

import dpmoments as dpm
from dpmoments.privacy.accounting import LossUnit, allowance
from dpmoments.privacy.accounts import Account, Sums, _why_not_counted, losses_of
from dpmoments.privacy.curves import gaussian_delta, pure_to_gaussian, pure_to_zcdp, zcdp_delta, zcdp_rho
from dpmoments.privacy.grants import MAX_GAUSSIAN_RELEASES, Grant, GrantKind, as_written, from_text
from dpmoments.privacy.unit import Neighbors
from support.said import refused

ADD, REPLACE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
PURE, APPROXIMATE, ZCDP = dpm.PrivacyBudget.pure, dpm.PrivacyBudget.approximate, dpm.PrivacyBudget.zcdp
EPSILON, RHO, GAUSSIAN, PARTS = LossUnit.EPSILON, LossUnit.RHO, LossUnit.GAUSSIAN_RHO, LossUnit.EPSILON_DELTA
Release = tuple[dpm.PrivacyBudget, LossUnit]


def sums_of(*releases: Release) -> Sums:
    total = Sums()
    for cost, unit in releases:
        total += losses_of(cost, unit, ADD, ADD)
    return total


ONE_OF_EACH: dict[str, Release] = {
    "pure": (PURE(0.1), EPSILON),
    "Gaussian": (APPROXIMATE(0.1, 1e-8), GAUSSIAN),
    "zCDP of epsilon and delta": (APPROXIMATE(0.1, 1e-8), RHO),
    "epsilon and delta alone": (APPROXIMATE(0.1, 1e-8), PARTS),
    "rho": (ZCDP(1e-4), RHO),
}
GRANTS = {
    "epsilon": Grant.of(epsilon=1.0),
    "rho": Grant.of(rho=0.1),
    "mu": Grant.of(mu=0.5),
    "auto": Grant.of(epsilon=1.0, delta=1e-6),
    "basic": Grant.of(epsilon=1.0, delta=1e-6, composition="basic"),
    "zcdp": Grant.of(epsilon=1.0, delta=1e-6, composition="zcdp"),
    "gaussian": Grant.of(epsilon=1.0, delta=1e-6, composition="gaussian"),
}
COUNTED = {
    "epsilon": {"pure"},
    "rho": {"pure", "Gaussian", "zCDP of epsilon and delta", "rho"},
    "mu": {"pure", "Gaussian"},
    "auto": set(ONE_OF_EACH),
    "basic": set(ONE_OF_EACH) - {"rho"},
    "zcdp": {"pure", "Gaussian", "zCDP of epsilon and delta", "rho"},
    "gaussian": {"pure", "Gaussian"},
}
"""Twice the same release, under a grant that has room for it: the table of docs/ledger.md."""


@pytest.mark.parametrize("kind", GRANTS)
@pytest.mark.parametrize("what", ONE_OF_EACH)
def test_the_table_of_what_is_counted(kind: str, what: str) -> None:
    sums = sums_of(ONE_OF_EACH[what], ONE_OF_EACH[what])
    assert sums.within(GRANTS[kind]) == (what in COUNTED[kind])
    assert bool(_why_not_counted(GRANTS[kind], sums)) == (what not in COUNTED[kind])


def test_costs_of_several_kinds_are_added_part_by_part_and_rho_has_no_part() -> None:
    grant = GRANTS["auto"]
    concentrated, pure, alone, rho = (
        ONE_OF_EACH[name] for name in ("Gaussian", "pure", "epsilon and delta alone", "rho")
    )
    for order in itertools.permutations((concentrated, pure, alone)):
        assert sums_of(*order).within(grant)
    assert sums_of((PURE(0.5), EPSILON), (APPROXIMATE(0.5, 4e-7), GAUSSIAN)).within(grant)
    assert not sums_of((PURE(0.5), EPSILON), (APPROXIMATE(0.5, 6e-7), GAUSSIAN)).within(grant)  # half of δ
    assert sums_of((APPROXIMATE(0.5, 6e-7), PARTS), (PURE(0.5), EPSILON)).within(grant)  # all of it: the first has no ρ
    for order in itertools.permutations((concentrated, alone, rho)):
        assert _why_not_counted(grant, sums_of(*order)).startswith("a cost in ρ has no δ of its own")
    assert _why_not_counted(GRANTS["zcdp"], sums_of(concentrated, alone)).startswith("the grant counts in ρ")


@pytest.mark.parametrize("unit", [GAUSSIAN, RHO, PARTS])
@pytest.mark.parametrize("composition", ["auto", "basic", "zcdp", "gaussian"])
def test_one_release_of_the_whole_grant_is_allowed_and_nothing_after_it(unit: LossUnit, composition: str) -> None:
    grant = Grant.of(epsilon=1.0, delta=1e-6, composition=composition)
    whole = (APPROXIMATE(1.0, 1e-6), unit)
    assert sums_of(whole).within(grant)
    assert not sums_of(whole, (PURE(1e-9), EPSILON)).within(grant) or (composition, unit) == ("zcdp", GAUSSIAN)
    assert not sums_of((APPROXIMATE(1.0000001, 1e-6), unit)).within(grant)
    spent = Account("people", grant, sums_of(whole)).spent
    assert (spent.epsilon, spent.delta) == (1.0, 1e-6)


def test_decimals_add_up_as_they_are_written() -> None:
    """In binary, ten times 0.1 is more than 1."""
    grant = Grant.of(epsilon=1.0)
    ten = sums_of(*[(PURE(0.1), EPSILON)] * 10)
    assert ten.within(grant)
    assert ten.total("epsilon") == 1
    assert Account("people", grant, ten).spent.epsilon == 1.0
    assert Account("people", grant, ten).left.epsilon == 0.0
    assert not (ten + losses_of(PURE(1e-12), EPSILON, ADD, ADD)).within(grant)


@pytest.mark.parametrize("epsilon", [1e-9, 1e-4, 0.3, 0.999, 1.0, 3.0, 30.0, 300.0])
def test_pure_privacy_as_gaussian_is_the_least_mu_rounded_up(epsilon: float) -> None:
    """Φ(−μ/2) = 1/(1 + e^ε): the corner of randomized response lies on the curve of the normals."""
    mu = pure_to_gaussian(epsilon)
    with mpmath.workdps(160):
        corner = 1 / (1 + mpmath.exp(mpmath.mpf(epsilon)))
        assert mpmath.ncdf(-mpmath.mpf(mu) / 2) <= corner
        assert mpmath.ncdf(-mpmath.mpf(mu) / 2 * (1 - mpmath.mpf("1e-11"))) > corner


# Brute force: the privacy losses of real mechanisms, convolved ------------------------------------------------------------------

STEP = 5e-4
REACH = 16.384
GRID = np.arange(-round(REACH / STEP), round(REACH / STEP)) * STEP


def lower_losses_of_gaussian(mu: float) -> np.ndarray:
    """The law of the privacy loss N(μ²/2, μ²) under the first table, on a grid, every loss rounded down: δ comes out too low."""
    edges = np.append(GRID, GRID[-1] + STEP)
    cumulative = 0.5 * erfc(-(edges - 0.5 * mu * mu) / (mu * math.sqrt(2.0)))
    return np.diff(cumulative)


def lower_losses_of_laplace(epsilon: float) -> np.ndarray:
    """That of Laplace noise: ε with probability ½, −ε with ½e^{−ε}, between them a density."""
    edges = np.append(GRID, GRID[-1] + STEP)
    inside = np.clip(edges, -epsilon, epsilon)
    # The loss is ε − 2x for x ≤ ε in between; P[loss ≤ l] = ½ exp(−(ε − l)/2) for −ε ≤ l < ε, and 1 from ε on.
    cumulative = np.where(
        edges > epsilon, 1.0, np.where(edges >= -epsilon, 0.5 * np.exp(-0.5 * (epsilon - inside)), 0.0)
    )
    return np.diff(cumulative)


def lower_losses_of_response(epsilon: float) -> np.ndarray:
    losses = np.zeros(len(GRID))
    for loss, probability in ((epsilon, 1 / (1 + math.exp(-epsilon))), (-epsilon, 1 / (1 + math.exp(epsilon)))):
        losses[int(np.floor(loss / STEP + 1e-9)) + len(GRID) // 2] += probability
    return losses


def composed_delta(parts: list[np.ndarray], epsilon: float) -> float:
    """On a ring: what lies beyond the grid is less than rounding."""
    transformed = [np.fft.rfft(np.fft.ifftshift(part)) for part in parts]
    total = np.fft.fftshift(np.fft.irfft(np.prod(transformed, axis=0), len(GRID)))
    return float(np.sum(np.maximum(total, 0.0) * np.clip(-np.expm1(epsilon - GRID), 0.0, None)))


def gaussian_release(epsilon: float, delta: float) -> tuple[Release, np.ndarray]:
    rho = float(allowance(APPROXIMATE(epsilon, delta), GAUSSIAN).amount)
    return (APPROXIMATE(epsilon, delta), GAUSSIAN), lower_losses_of_gaussian(math.sqrt(2.0 * rho))


def zcdp_release(rho: float) -> tuple[Release, np.ndarray]:
    return (ZCDP(rho), RHO), lower_losses_of_gaussian(math.sqrt(2.0 * rho))


def laplace_release(epsilon: float) -> tuple[Release, np.ndarray]:
    return (PURE(epsilon), EPSILON), lower_losses_of_laplace(epsilon)


def response_release(epsilon: float) -> tuple[Release, np.ndarray]:
    return (PURE(epsilon), EPSILON), lower_losses_of_response(epsilon)


MIXTURES = {
    "four Gaussian": [gaussian_release(0.5, 1e-7)] * 4,
    "Gaussian of several sizes": [gaussian_release(e, d) for e, d in ((0.3, 1e-6), (1.0, 1e-9), (0.1, 1e-5))],
    "Gaussian and Laplace": [gaussian_release(0.7, 1e-6), *[laplace_release(0.2)] * 6],
    "Gaussian and responses": [gaussian_release(0.7, 1e-6), *[response_release(0.3)] * 5],
    "rho and Laplace": [zcdp_release(0.02), zcdp_release(0.05), laplace_release(0.4), laplace_release(0.1)],
    "rho and responses": [zcdp_release(0.05), *[response_release(0.25)] * 8],
    "many responses": [response_release(0.05)] * 40,
    "two large responses": [response_release(1.5)] * 2,
}


@pytest.mark.parametrize("mixture", MIXTURES)
@pytest.mark.parametrize("composition", ["auto", "zcdp", "gaussian"])
def test_no_composed_curve_is_above_what_the_ledger_says(mixture: str, composition: str) -> None:
    releases, losses = zip(*MIXTURES[mixture], strict=True)
    grant = Grant.of(epsilon=20.0, delta=1e-5, composition=composition)
    sums = sums_of(*releases)
    if composition == "gaussian" and mixture.startswith("rho"):
        assert not sums.within(grant)
        return
    assert sums.within(grant)
    spent = Account("people", grant, sums).spent
    assert spent.epsilon < 20.0
    assert composed_delta(list(losses), spent.epsilon) <= max(spent.delta, 1e-13)


def test_the_brute_force_finds_a_sum_that_is_too_low() -> None:
    """Planted: ε of half the releases."""
    releases, losses = zip(*MIXTURES["four Gaussian"], strict=True)
    grant = Grant.of(epsilon=20.0, delta=1e-5, composition="gaussian")
    low = Account("people", grant, sums_of(*releases[:3])).spent
    assert composed_delta(list(losses), low.epsilon) > low.delta


def test_gaussian_releases_in_mu_are_tighter_than_in_rho_and_part_by_part() -> None:
    releases = [(APPROXIMATE(0.5, 1e-7), GAUSSIAN)] * 4
    found = {
        rule: Account("people", Grant.of(epsilon=20.0, delta=1e-6, composition=rule), sums_of(*releases)).spent.epsilon
        for rule in ("gaussian", "zcdp", "auto", "basic")
    }
    assert found["gaussian"] < found["auto"] < found["zcdp"] < found["basic"] == 2.0


def test_what_is_left_can_be_spent_and_no_more() -> None:
    for name, start in itertools.product(GRANTS, [(), ("pure",), ("Gaussian",), ("epsilon and delta alone",)]):
        grant, sums = GRANTS[name], sums_of(*(ONE_OF_EACH[what] for what in start))
        if not sums.within(grant):
            continue
        left = Account("people", grant, sums).left
        for cost, unit, amount in (
            (PURE, EPSILON, left.epsilon),
            (ZCDP, RHO, left.rho),
            (partial(APPROXIMATE, 1e-9), PARTS, left.delta),
        ):
            if amount > 0.0:
                assert (sums + losses_of(cost(amount), unit, ADD, ADD)).within(grant), (name, start, unit)
            # where each kind is counted, nothing of it is left if that is said
            if amount > 0.0 or (grant.kind is GrantKind.APPROXIMATE and unit is not PARTS):
                more = cost(max(amount * 1.000001, 1e-12))
                assert not (sums + losses_of(more, unit, ADD, ADD)).within(grant), (name, start, unit)


def test_what_is_taken_back_is_as_if_it_had_never_been() -> None:
    releases = list(ONE_OF_EACH.values())
    whole = sums_of(*releases)
    for place, (cost, unit) in enumerate(releases):
        rest = whole - losses_of(cost, unit, ADD, ADD)
        anew = sums_of(*releases[:place], *releases[place + 1 :])
        assert (rest.amounts, rest.unknown, rest.n_releases) == (anew.amounts, anew.unknown, anew.n_releases)


def test_a_cost_for_one_row_more_or_less_counts_twice_for_a_row_replaced() -> None:
    pure = losses_of(PURE(0.1), EPSILON, ADD, REPLACE)
    assert pure.epsilon == Fraction(1, 5)
    assert pure.rho == Fraction(pure_to_zcdp(0.2))
    assert losses_of(ZCDP(0.1), RHO, ADD, REPLACE).rho == Fraction(4, 10)
    one = losses_of(APPROXIMATE(0.1, 1e-8), GAUSSIAN, ADD, ADD)
    two = losses_of(APPROXIMATE(0.1, 1e-8), GAUSSIAN, ADD, REPLACE)
    assert (two.rho, two.mu_squared) == (4 * one.rho, 4 * one.mu_squared)  # type: ignore[operator]
    assert two.epsilon == 2 * as_written(0.1)
    assert float(two.delta) == pytest.approx(1e-8 * (1 + math.exp(0.1)))  # type: ignore[arg-type]
    assert two.delta > as_written(1e-8) * (1 + Fraction(math.exp(0.1)))  # type: ignore[operator]
    with refused("a cost under replace_one says nothing about a row"):
        losses_of(PURE(0.1), EPSILON, REPLACE, ADD)


def test_so_many_gaussian_releases_have_a_proven_margin() -> None:
    grant = Grant.of(mu=10.0)
    sums = sums_of(*[(APPROXIMATE(0.01, 1e-8), GAUSSIAN)] * MAX_GAUSSIAN_RELEASES)
    assert sums.within(grant)
    one_more = sums + losses_of(APPROXIMATE(0.01, 1e-8), GAUSSIAN, ADD, ADD)
    assert _why_not_counted(grant, one_more).startswith("the margin of discrete noise is proven for")
    assert one_more.within(Grant.of(rho=50.0))


def test_limits_of_an_epsilon_and_delta_grant_are_on_the_safe_side() -> None:
    for epsilon, delta in ((0.1, 1e-9), (1.0, 1e-6), (10.0, 1e-3)):
        grant = Grant.of(epsilon=epsilon, delta=delta)
        assert zcdp_delta(float(grant.limits["rho"]), epsilon) <= delta / 4
        assert gaussian_delta(epsilon, math.sqrt(grant.limits["mu_squared"]), 1.0) <= delta / 4
        assert float(grant.limits["rho"]) == zcdp_rho(epsilon, delta / 4)
        assert 2 * grant.limits["rho"] < grant.limits["mu_squared"]


@pytest.mark.parametrize("text", ["1", "1/0", "2/4", "-1/2", "01/2", "1/2 ", 0.5, None, "1/" + "1" * 3000])
def test_texts_that_are_no_amounts(text: object) -> None:
    with refused("an amount in the ledger is not a numerator and a"):
        from_text(text)
