"""Privacy profile of a run: the least proven δ(ε), at every ε, from its receipt.

A stated budget is one point of the profile. The receipt adds the kinds of draws and their sensitivities. Everything before the
first draw is public, so the first draw is known beforehand; the draws after it may have been chosen from results, and count as
*any* draws that spend the remaining loss, unless all draws of the mechanism are *settled* before the first.
``docs/evidence/derivations/privacy-profile.md`` has the proofs.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import partial
from typing import Any

from dpmoments.base.errors import out_of_range
from dpmoments.base.values import no_less, rounded_up
from dpmoments.privacy.accounting import Loss, LossUnit, loss_for_units
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import (
    MAX_COMPOSED_COORDINATES,
    MIN_COMPOSED_SCALE,
    PrivacyCurve,
    composed,
    discrete_gaussian_log_delta,
    randomized_response_delta,
    zcdp_delta,
)
from dpmoments.privacy.receipt import Draw, PooledReceipt, Receipt
from dpmoments.privacy.unit import Neighbors

# Neighboring tables that attain the curve of a draw, if any do: then the curve is exact.

_ROUNDING = 1e-6
"""Max fraction that rounding adds to a sensitivity that two tables are said to attain."""


def _worst_neighbors(draw: Draw) -> str | None:
    """Describe two neighboring tables between which a draw has all the loss that it can have."""
    # None if none are known.
    sensitivity = draw.sensitivity
    if sensitivity.rounding > _ROUNDING * sensitivity.value or not draw.law.is_attained(sensitivity, draw.size):
        return None
    rest = ", and no other row" if draw.law.attained_alone else ""
    if sensitivity.neighbors is Neighbors.ADD_REMOVE:
        return f"a table with and without one row of the largest norm{rest}"
    if draw.size == 1:
        return "tables that differ in one row, of norm 0 or the largest"
    return f"tables that differ in one row, of the largest norm and as far from the other as can be{rest}"


# Proven bounds on δ(ε) of the draws that two neighbors touch; a privacy profile takes the least.

# Remaining fraction of the loss below which a run counts as having spent it all. The rest is added to ε.
_NOTHING_LEFT = Fraction(1, 10**9)
_FINE_SCALE = 2.0**16
"""Scale from which discrete Gaussian noise has a δ within a millionth of its bound."""
_FARTHEST = 40.0
"""Largest ε, in μ, to which Gaussian curves are followed."""
_LEAST_DELTA = math.ulp(0.0)
"""Least δ where losses have no end: it is never 0, however small."""
_MIN_DELTA = 1e-15
"""Probability below which Gaussian losses count as certain."""


@dataclass(frozen=True)
class Bound:
    """One proven bound on a curve."""

    how: str
    delta: Callable[[float], float]
    attained_by: str | None = None
    """Neighboring tables that attain it; None if none are known."""


def _proven_bounds(receipt: Receipt, draws: Sequence[Draw], settled: bool) -> tuple[Bound, ...]:
    """Return all proven bounds for the draws that two neighbors touch."""
    bounds = [Bound("the stated budget", partial(_stated_delta, receipt.cost))]
    unit, allowed, one_row = receipt.unit, receipt.allowance, receipt.rows_per_unit == 1
    spent = Loss.total((draw.loss for draw in draws), unit) if settled else allowed
    lost = loss_for_units(spent, receipt.rows_per_unit)
    if lost is None or lost.amount == 0:
        return tuple(bounds)
    if unit is LossUnit.GAUSSIAN_RHO:
        known = draws if one_row else ()
        return (*bounds, _gaussian_bound(lost, known, MIN_COMPOSED_SCALE, MAX_COMPOSED_COORDINATES))
    if unit is LossUnit.RHO:
        return (*bounds, *_concentrated_bounds(lost, draws, settled and one_row))
    if not one_row:
        any_draws = f"any draws that lose ε = {no_less(rounded_up(lost.amount))} together on a unit"
        return (*bounds, Bound(any_draws, partial(_approximate_delta, rounded_up(lost.amount), 0.0)))
    any_draws = f"any draws that lose ε = {no_less(rounded_up(spent.amount))} together"
    bounds.append(Bound(any_draws, partial(_approximate_delta, rounded_up(spent.amount), rounded_up(spent.delta))))
    # The first draw is settled by the plan alone, where no draw of another group came before it.
    known = tuple(draws) if settled else tuple(draws[:1]) if draws and draws[0] is receipt.draws[0] else ()
    left = Loss.none(unit) if settled else allowed - Loss.total((draw.loss for draw in known), unit)
    result = _composition_bound(known, left)
    return tuple(bounds) if result is None else (*bounds, result)


def _stated_delta(cost: PrivacyBudget, epsilon: float) -> float:
    """Return the δ that the stated budget by itself implies."""
    if cost.kind is BudgetKind.ZCDP:
        return _zcdp_delta(cost.rho, epsilon)
    return _approximate_delta(cost.epsilon, cost.delta, epsilon)


def _zcdp_delta(rho: float, epsilon: float) -> float:
    return max(zcdp_delta(rho, epsilon), _LEAST_DELTA)


def _approximate_delta(loss: float, delta: float, epsilon: float) -> float:
    """Return δ(ε) of every (loss, delta)-private mechanism."""
    # Randomized response, except with probability ``delta``.
    pure = randomized_response_delta(epsilon, loss)
    return delta if pure == 0.0 else min(delta + (1.0 - delta) * pure + 2.0**-50, 1.0)


def _composition_bound(draws: Sequence[Draw], left: Loss) -> Bound | None:
    """Return the bound by the known curves of draws, and any others that spend the rest."""
    curves = [curve for draw in draws for curve in draw.law.curves(draw.sensitivity)]
    if not curves or any(not draw.law.curves(draw.sensitivity) for draw in draws):
        return None
    failure, known = left.delta, Fraction(0)
    for draw in draws:
        known += draw.loss.amount
        failure += draw.loss.delta if draw.law.delta_is_of_bound else 0
    rest, extra = rounded_up(left.amount), rounded_up(failure)
    names = " and ".join(dict.fromkeys(draw.law.name for draw in draws))
    if len(curves) == 1 and left.amount <= _NOTHING_LEFT * (known + left.amount):
        (curve,) = curves
        attained_by = _worst_neighbors(draws[0]) if extra <= _NOTHING_LEFT * draws[0].loss.delta else None
        return Bound(f"the curve of one {names} draw", partial(_shifted_delta, curve, rest, extra), attained_by)
    if any(math.isinf(curve.reach) for curve in curves):
        return None
    others = [PrivacyCurve(partial(randomized_response_delta, loss=rest), rest)] if rest else []
    together = composed([*curves, *others])
    if together is None:
        return None
    how = f"the composition of {names} draws" + (" with any others after them" if others else "")
    whole = rounded_up(known + left.amount)

    def delta(epsilon: float) -> float:
        return extra if epsilon >= whole else min(together.delta(epsilon) + extra, 1.0)

    return Bound(how, delta)


def _shifted_delta(curve: PrivacyCurve, rest: float, extra: float, epsilon: float) -> float:
    """Return δ of a draw and of (rest, extra)-private ones after it."""
    # 1 at an ε below the rest, outside the curve.
    if epsilon < rest:
        return 1.0
    return min(curve.delta(math.nextafter(epsilon - rest, 0.0) if rest else epsilon) + extra, 1.0)


def _concentrated_bounds(spent: Loss, draws: Sequence[Draw], settled: bool) -> list[Bound]:
    """Return bounds for draws whose ρ add up."""
    rho = no_less(rounded_up(spent.amount))
    bounds = [Bound(f"any draws that are {rho}-zCDP together", partial(_zcdp_delta, rounded_up(spent.amount)))]
    if not settled:
        return bounds
    normal = [draw for draw in draws if draw.law.is_gaussian]
    others = [draw for draw in draws if draw not in normal]
    if not normal or any(not draw.law.curves(draw.sensitivity) for draw in others):
        return bounds
    loss = Loss.total((draw.loss for draw in normal), spent.unit)
    least_scale = min((scale for draw in normal for scale in draw.law.lattice_scales), default=MIN_COMPOSED_SCALE)
    gaussian = _gaussian_bound(loss, normal, least_scale, sum(draw.size for draw in normal))
    if not others:
        return [*bounds, gaussian]
    reach = _reach(gaussian.delta)
    curves = [curve for draw in others for curve in draw.law.curves(draw.sensitivity)]
    together = composed([PrivacyCurve(partial(_at_any_epsilon, gaussian.delta), reach), *curves])
    if together is not None:
        names = " and ".join(dict.fromkeys(draw.law.name for draw in draws))
        bounds.append(Bound(f"the composition of {names} draws", together.delta))
    return bounds


def _gaussian_bound(loss: Loss, draws: Sequence[Draw], least_scale: float, n_coordinates: int) -> Bound:
    """Return the bound by one Gaussian mechanism of μ² = 2ρ, and the margin of discrete noise."""
    mu = _mu_of(loss)
    if mu == 0.0:
        return Bound("nothing was drawn", partial(_approximate_delta, 0.0, 0.0))

    def delta(epsilon: float) -> float:
        # A larger μ is on the safe side: of a far smaller one δ is below e^−700, and the margin of discrete noise has no end.
        sensitivity = max(mu, epsilon / _FARTHEST) * least_scale * (1.0 + 2.0**-50)
        log_delta = discrete_gaussian_log_delta(epsilon, sensitivity, least_scale, n_coordinates)
        return max(min(math.exp(log_delta) * (1.0 + 1e-10), 1.0), _LEAST_DELTA)

    whole = len(draws) == 1 and loss.amount <= draws[0].loss.amount * (1 + _NOTHING_LEFT)
    attained_by = _worst_neighbors(draws[0]) if whole and least_scale >= _FINE_SCALE else None
    return Bound(f"one Gaussian mechanism of μ = {no_less(mu)}", delta, attained_by)


def _mu_of(loss: Loss) -> float:
    square = 2 * loss.amount
    mu = math.sqrt(rounded_up(square))
    while Fraction(mu) ** 2 < square:
        mu = math.nextafter(mu, math.inf)
    return mu


def _reach(delta: Callable[[float], float]) -> float:
    """Return an ε at which next to nothing is left."""
    reach = 1.0
    while delta(reach) > _MIN_DELTA and reach < 1e3:
        reach *= 1.25
    return reach


def _at_any_epsilon(delta: Callable[[float], float], epsilon: float) -> float:
    """Return δ at an ε that may be negative, for a pair that is the same in either order."""
    if epsilon >= 0.0:
        return delta(epsilon)
    return min(-math.expm1(epsilon) + math.exp(epsilon) * delta(-epsilon), 1.0)


# ε of a profile, as multiples of the stated one. For a zCDP budget, of the ε that it implies at REFERENCE_DELTA.
_SHARES = (0.25, 0.5, 0.75, 1.0, 2.0)
REFERENCE_DELTA = 1e-6
# Points of the curve, from ε = 0 on, that bound an attacker's power. Each is a bound by itself.
_TESTED_POINTS = 400
# Mechanisms whose plan fixes every draw and its loss before the first. No table changes their receipt.
_SETTLED = frozenset(
    {
        "additive-wishart",
        "counts",
        "gaussian",
        "inverse-gaussian",
        "isotropic",
        "kapralov-talwar",
        "laplace",
        "matrix-laplace",
    }
)


@dataclass(frozen=True)
class ProfilePoint:
    """Point of a privacy profile."""

    epsilon: float  # with `delta`: the run is (epsilon, delta)-differentially private; delta is rounded up
    delta: float
    # true if `delta` is the least possible, up to a millionth part of it, for the ideal noise distribution and rows
    # anywhere in the unit ball: some two neighbors attain it
    exact: bool
    how: str  # reason; if exact, the neighbors that attain it

    @property
    def mark(self) -> str:
        """``exact`` or ``bound``."""
        return "exact" if self.exact else "bound"

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {"epsilon": self.epsilon, "delta": self.delta, "mark": self.mark, "how": self.how}


@dataclass(frozen=True)
class PrivacyProfile:
    """Tightest known privacy profile of a run, at five ε.

    Attributes
    ----------
    points : tuple of ProfilePoint
        At a quarter, half, three quarters of the stated ε, at it and at twice it; for a zCDP budget, of the ε that it implies
        at δ = 10⁻⁶.
    mu : float or None
        The run is μ-Gaussian differentially private; None if it is not known to be.
    epsilon_at_reference : float or None
        The least ε known at δ = 10⁻⁶; None if the run has a larger δ at every ε.
    """

    points: tuple[ProfilePoint, ...]
    mu: float | None
    epsilon_at_reference: float | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "points": [point.to_dict() for point in self.points],
            "mu": self.mu,
            "reference_delta": REFERENCE_DELTA,
            "epsilon_at_reference_delta": self.epsilon_at_reference,
        }

    def table(self) -> list[tuple[str, str, str, str]]:
        """Return rows of ε, δ (rounded up), mark and reason, after a header."""
        lines = [(no_less(point.epsilon, 4), no_less(point.delta, 3), point.mark, point.how) for point in self.points]
        return [("ε", "δ", "", "from"), *lines]


@dataclass(frozen=True)
class RunCurve:
    """Known δ(ε) of a run, or of several runs if a row is in only one of them."""

    # for every two neighbors that touch other draws, the bounds of which the least counts; of the parts the largest
    # does
    parts: tuple[tuple[Bound, ...], ...]
    cost: PrivacyBudget  # the stated budget
    mu: float | None

    @classmethod
    def of(cls, receipt: Receipt, mechanism: str) -> RunCurve:
        """Return the curve of one run from its receipt."""
        # `mechanism` determines if its draws were settled before the first.
        if receipt.before is not None:  # no more is known of both runs than that their budgets add up
            stated = Bound("the stated budget", partial(_stated_delta, receipt.whole_cost))
            return cls(((stated,),), receipt.whole_cost, None)
        settled, unit = mechanism in _SETTLED, receipt.unit

        # The draws whose queries may differ between two neighbors: those of no group, and of one group or two.
        groups = list(dict.fromkeys(draw.group for draw in receipt.draws if draw.group is not None))
        stays = isinstance(receipt, PooledReceipt) or receipt.neighbors is Neighbors.ADD_REMOVE
        seen: dict[tuple[object, ...], tuple[Bound, ...]] = {}
        for touched in itertools.combinations(groups, min(1 if stays else 2, len(groups))):
            draws = tuple(draw for draw in receipt.draws if draw.group is None or draw.group in touched)
            # The bounds depend on whether the first of these draws is the run's.
            first = bool(draws) and draws[0] is receipt.draws[0]
            key = (first, *((draw.law, draw.loss.amount, draw.loss.delta, draw.size) for draw in draws))
            if key not in seen:
                seen[key] = _proven_bounds(receipt, draws, settled)

        mu = None
        if unit is LossUnit.GAUSSIAN_RHO or (
            settled and unit is LossUnit.RHO and all(draw.law.is_gaussian for draw in receipt.draws)
        ):
            lost = loss_for_units(receipt.total if settled else receipt.allowance, receipt.rows_per_unit)
            assert lost is not None, "ρ is known for units"
            mu = _mu_of(lost)
        return cls(tuple(seen.values()), receipt.cost, mu)

    @classmethod
    def worst(cls, curves: Iterable[RunCurve], cost: PrivacyBudget) -> RunCurve:
        """Return the curve of runs on disjoint tables: a row is in any one of them."""
        runs = list(curves)
        mus = [curve.mu for curve in runs if curve.mu is not None]
        parts = tuple(part for curve in runs for part in curve.parts)
        return cls(parts, cost, max(mus) if len(mus) == len(runs) else None)

    def at(self, epsilon: float) -> ProfilePoint:
        """Return the least δ known at an ε of 0 or more, and why."""
        worst: ProfilePoint | None = None
        for bounds in self.parts:
            result = [(bound.delta(epsilon), bound) for bound in bounds]
            delta, best = min(result, key=lambda pair: pair[0])
            if worst is None or delta > worst.delta:
                # An attained bound is exact, up to the last digits, for any other knowledge.
                attained = [b for d, b in result if b.attained_by is not None and d <= delta * (1.0 + 1e-6)]
                exact = next((b for b in attained if delta != _LEAST_DELTA), None)
                how = best.how if exact is None else f"{exact.how}; attained by {exact.attained_by}"
                worst = ProfilePoint(epsilon, delta, exact is not None, how)
        if worst is None:
            return ProfilePoint(epsilon, 0.0, True, "nothing was drawn")
        return replace(worst, exact=True) if worst.delta == 0.0 else worst

    def epsilon_at(self, delta: float) -> float | None:
        """Return the least ε known at a δ, on the safe side."""
        # None if the run has a larger δ at every ε.
        if self.at(0.0).delta <= delta:
            return 0.0
        low, high = 0.0, 2.0 * _reference_epsilon(self.cost)
        for _ in range(8):
            if self.at(high).delta <= delta:
                break
            low, high = high, 4.0 * high
        else:
            return None
        while high - low > 1e-6 * high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.at(middle).delta <= delta else (middle, high)
        return high

    def attacker_power(self, false_positives: float) -> float:
        """Bound the power of a test of whether a person is in the table, all other rows known."""
        # The least of δ + e^ε·`false_positives` and 1 − e^{−ε}(1 − `false_positives` − δ) over many points of the curve
        # (Dong, Roth & Su 2022, Proposition 2.5).
        if not 0.0 <= false_positives <= 1.0:
            raise out_of_range("false_positives", false_positives, "a share, between 0 and 1")
        last = 2.0 * _reference_epsilon(self.cost)
        least = 1.0
        for index in range(_TESTED_POINTS + 1):
            epsilon = last * index / _TESTED_POINTS
            delta, factor = self.at(epsilon).delta, math.exp(min(epsilon, 700.0))
            missed = 1.0 - false_positives - delta
            least = min(least, delta + factor * false_positives, 1.0 - max(missed, 0.0) / factor)
        return least

    @property
    def profile(self) -> PrivacyProfile:
        """Profile at the five ε that the stated budget gives, in this order."""
        # A rule that depends on no table.
        stated = _reference_epsilon(self.cost)
        points = tuple(self.at(share * stated) for share in _SHARES)
        return PrivacyProfile(points, self.mu, self.epsilon_at(REFERENCE_DELTA))


def _reference_epsilon(cost: PrivacyBudget) -> float:
    """Return the stated ε."""
    # For a zCDP budget it is the one implied at REFERENCE_DELTA, rounded up to four digits.
    if cost.kind is not BudgetKind.ZCDP:
        return cost.epsilon
    return float(no_less(max(cost.to_epsilon(REFERENCE_DELTA), 1e-300), 4))
