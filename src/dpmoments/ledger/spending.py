"""What releases come to in the kind of their dataset's grant, what is left of it, and why a cost cannot be counted."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

from dpmoments.ledger.amounts import Amount, downward, upward
from dpmoments.ledger.composition import Sums, losses_of
from dpmoments.ledger.grants import MOST_GAUSSIAN_RELEASES, Composition, Grant, GrantKind
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.curves.discrete_gaussian import (
    LEAST_COMPOSED_SCALE,
    MOST_COMPOSED_COORDINATES,
    discrete_gaussian_log_delta,
)
from dpmoments.privacy.curves.gaussian import gaussian_epsilon
from dpmoments.privacy.curves.inversion import safe_root
from dpmoments.privacy.curves.zcdp import zcdp_epsilon

__all__ = ["amount_left", "amount_spent", "left_by_parts", "why_not_counted"]

STEPS = 60


def amount_spent(grant: Grant, sums: Sums) -> Amount:
    """The least that releases within a grant come to, in its kind: under (ε, δ), the least ε.

    It says how much of the grant is used; the guarantee is the grant's.
    """
    if not sums.n_releases:
        return Amount(grant.kind)
    if grant.kind is GrantKind.PURE:
        return Amount(grant.kind, epsilon=upward(sums.total("epsilon") or Fraction(0)))
    if grant.kind is GrantKind.ZCDP:
        return Amount(grant.kind, rho=upward(sums.total("rho") or Fraction(0)))
    if grant.kind is GrantKind.GAUSSIAN:
        mu = math.sqrt(upward(sums.total("mu_squared") or Fraction(0))) * (1.0 + 2.0**-52)
        return Amount(grant.kind, mu=min(mu, grant.amount.mu))
    epsilon, delta = min(_ways(grant, sums))
    return Amount(grant.kind, epsilon=min(epsilon, grant.amount.epsilon), delta=delta)


def _ways(grant: Grant, sums: Sums) -> list[tuple[float, float]]:
    """The (ε, δ) that each rule comes to."""
    granted, bounds, found = grant.amount.delta, grant.bounds, []
    for rule in sums.rules(grant):
        totals = [sums.total(name) for name in rule]
        if None in totals:
            continue
        if "epsilon" in rule:
            if len(rule) == 1 or sums.amounts[1] <= bounds[rule[1]]:
                found.append((upward(sums.amounts[0]), upward(sums.amounts[1])))
        elif rule == ("rho",):
            found.append((zcdp_epsilon(upward(sums.amounts[2]), grant.share), granted))
        else:
            found.append((_gaussian_epsilon(math.sqrt(upward(sums.amounts[3])), grant.share), granted))
    return found or [(grant.amount.epsilon, granted)]


def _gaussian_epsilon(mu: float, delta: float) -> float:
    """ε of μ-Gaussian privacy, with the margin of discrete noise; rounded up."""
    mu *= 1.0 + 2.0**-50
    coordinates = MOST_GAUSSIAN_RELEASES * MOST_COMPOSED_COORDINATES

    def excess(epsilon: float) -> float:
        log_delta = discrete_gaussian_log_delta(epsilon, mu * LEAST_COMPOSED_SCALE, LEAST_COMPOSED_SCALE, coordinates)
        return log_delta - math.log(delta)

    return safe_root(excess, gaussian_epsilon(delta, mu, 1.0) + 1e-5, safe="above")


def amount_left(grant: Grant, sums: Sums) -> Amount:
    """What one more release may cost, rounded down.

    Under (ε, δ): ``epsilon`` is the most that a pure release may cost, ``rho`` a ρ-zCDP one, ``mu`` one of Gaussian draws, each
    taken alone; ``delta`` the most of one that is counted part by part.
    """
    if grant.kind is GrantKind.PURE:
        return Amount(grant.kind, epsilon=downward(grant.limits["epsilon"] - sums.amounts[0]))
    if grant.kind is GrantKind.ZCDP:
        return Amount(grant.kind, rho=downward(grant.limits["rho"] - sums.amounts[2]))
    mu = _mu_left(grant, sums)
    if grant.kind is GrantKind.GAUSSIAN:
        return Amount(grant.kind, mu=mu)

    def pure(epsilon: float) -> bool:
        cost = PrivacyBudget.pure(epsilon)
        return (sums + losses_of(cost, LossUnit.EPSILON, grant.neighbors, grant.neighbors)).within(grant)

    def zcdp(rho: float) -> bool:
        cost = PrivacyBudget.zcdp(rho)
        return (sums + losses_of(cost, LossUnit.RHO, grant.neighbors, grant.neighbors)).within(grant)

    exact = downward(max(grant.limits["epsilon"] - sums.amounts[0], Fraction(0)))
    rho = downward(max(grant.limits["rho"] - sums.amounts[2], Fraction(0)))
    return Amount(
        grant.kind,
        epsilon=_most(pure, exact, grant.amount.epsilon),
        delta=left_by_parts(grant, sums)[1],
        rho=_most(zcdp, rho, rho),
        mu=mu if ("mu_squared",) in sums.rules(grant) else 0.0,
    )


def left_by_parts(grant: Grant, sums: Sums) -> tuple[float, float]:
    """The ε and δ of one more release that are left where they are added part by part; zeros where they are not."""
    nothing = 0.0, 0.0
    if grant.kind is not GrantKind.APPROXIMATE or grant.composition in (Composition.ZCDP, Composition.GAUSSIAN):
        return nothing
    epsilon, delta = sums.total("epsilon"), sums.total("delta")
    if epsilon is None or delta is None or epsilon >= grant.limits["epsilon"]:
        return nothing
    halved = grant.composition is Composition.AUTO and sums.concentrated and sums.n_releases > 0
    bound = grant.bounds["half_delta" if halved else "delta"]
    return (downward(grant.limits["epsilon"] - epsilon), downward(bound - delta)) if delta < bound else nothing


def _mu_left(grant: Grant, sums: Sums) -> float:
    spent = sums.total("mu_squared")
    if spent is None or spent >= grant.limits["mu_squared"]:
        return 0.0
    return math.sqrt(downward(grant.limits["mu_squared"] - spent)) * (1.0 - 2.0**-52)


def _most(allowed: Callable[[float], bool], likely: float, most: float) -> float:
    """The most that is allowed: the likely value if it is, or a larger one up to ``most``; 0 where none is."""
    low, high = 0.0, most
    if likely > 0.0 and allowed(likely):
        low = likely
    if high <= low or allowed(high):
        return max(low, high)
    for _ in range(STEPS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


def why_not_counted(grant: Grant, sums: Sums) -> str:
    """Why no rule counts these releases together, and what would do; empty where one does."""
    if any(all(sums.total(name) is not None for name in rule) for rule in sums.rules(grant)):
        return ""
    if grant.kind is GrantKind.PURE:
        return "a budget in ε alone has no δ to spend. Release with epsilon alone, or grant epsilon and delta"
    if grant.kind is GrantKind.ZCDP:
        return (
            "its draws of noise are not zCDP, so that it has no ρ. Release with rho, with epsilon alone, or with a mechanism "
            "whose draws are Gaussian"
        )
    if sums.n_gaussian > MOST_GAUSSIAN_RELEASES:
        return f"the margin of discrete noise is proven for {MOST_GAUSSIAN_RELEASES} releases"
    if grant.kind is GrantKind.GAUSSIAN:
        return (
            "only pure ε, and epsilon with delta for a mechanism of Gaussian draws alone, come to a μ; ρ-zCDP in general to "
            "none. Release with one of these"
        )
    if grant.composition is Composition.GAUSSIAN:
        return (
            "the grant counts in μ, to which only pure ε, and epsilon with delta for a mechanism of Gaussian draws alone, come. "
            "Release with one of these"
        )
    if sums.unknown[0]:
        return (
            "a cost in ρ has no δ of its own, and some of the releases, or all by the grant's composition, are counted in ε and "
            "δ part by part. Release with epsilon, and delta if need be"
        )
    return (
        "the grant counts in ρ, and a release that is (ε, δ)-private alone has none. Release with rho, with epsilon alone, or "
        "with a mechanism whose draws are Gaussian"
    )
