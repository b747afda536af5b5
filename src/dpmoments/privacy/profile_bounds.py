"""What is proven of δ(ε) of the draws that two neighbours touch: every bound of which a privacy profile takes the least.

``docs/derivations/privacy-profile.md`` has the proofs, in the order of the functions here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial

from dpmoments.privacy.accounting import Loss, LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves.composed import PrivacyCurve, composed
from dpmoments.privacy.curves.discrete_gaussian import (
    LEAST_COMPOSED_SCALE,
    MOST_COMPOSED_COORDINATES,
    discrete_gaussian_log_delta,
)
from dpmoments.privacy.curves.pure import randomised_response_delta
from dpmoments.privacy.curves.zcdp import zcdp_delta
from dpmoments.privacy.group_privacy import loss_for_units
from dpmoments.privacy.laws import DiscreteGaussian, EigenvalueBound, GaussianDraw
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.profile_neighbors import worst_neighbors
from dpmoments.privacy.receipt import Draw, PooledReceipt, Receipt
from dpmoments.privacy.rounding import no_less, rounded_up

__all__ = ["Bound", "mu_of_run", "proven_bounds", "touched_draws"]

NOTHING_LEFT = Fraction(1, 10**9)
"""A run that has spent all but this share of what it may is taken to have spent it: what is left is added to ε."""
FINE_SCALE = 2.0**16
"""Discrete Gaussian noise of at least this scale has a δ within a millionth of its bound."""
FARTHEST = 40.0
"""Gaussian curves are followed to an ε of so many μ."""
LEAST_DELTA = 1e-15
"""Gaussian losses are followed to where so little is left of them that it counts as certain."""


@dataclass(frozen=True)
class Bound:
    """One proven bound on a curve."""

    how: str
    delta: Callable[[float], float]
    attained_by: str | None = None
    """The neighbouring tables that attain it; None where none are known."""


def touched_draws(receipt: Receipt) -> list[tuple[Draw, ...]]:
    """The draws whose queries may differ between two neighbours: those of no group, and of one group or two."""
    groups = list(dict.fromkeys(draw.group for draw in receipt.draws if draw.group is not None))
    stays = isinstance(receipt, PooledReceipt) or receipt.neighbors is Neighbors.ADD_REMOVE
    touched = min(1 if stays else 2, len(groups))
    return [
        tuple(draw for draw in receipt.draws if draw.group is None or draw.group in chosen)
        for chosen in itertools.combinations(groups, touched)
    ]


def proven_bounds(receipt: Receipt, draws: Sequence[Draw], settled: bool) -> tuple[Bound, ...]:
    """All that is proven of the draws that two neighbours touch.

    The curves of draws are those of one row. For units of several, group privacy says what the draws lose together, and no curve
    of a single draw is used.
    """
    bounds = [Bound("the stated budget", partial(_stated_delta, receipt.cost))]
    unit, allowed, one_row = receipt.unit, receipt.allowance, receipt.rows_per_unit == 1
    spent = sum((draw.loss for draw in draws), Loss.none(unit)) if settled else allowed
    lost = loss_for_units(spent, receipt.rows_per_unit)
    if lost is None or lost.amount == 0:
        return tuple(bounds)
    if unit is LossUnit.GAUSSIAN_RHO:
        known = draws if one_row else ()
        return (*bounds, _gaussian_bound(lost, known, LEAST_COMPOSED_SCALE, MOST_COMPOSED_COORDINATES))
    if unit is LossUnit.RHO:
        return (*bounds, *_concentrated_bounds(lost, draws, settled and one_row))
    if not one_row:
        any_draws = f"any draws that lose ε = {no_less(rounded_up(lost.amount))} together on a unit"
        return (*bounds, Bound(any_draws, partial(_approximate_delta, rounded_up(lost.amount), 0.0)))
    any_draws = f"any draws that lose ε = {no_less(rounded_up(spent.amount))} together"
    bounds.append(Bound(any_draws, partial(_approximate_delta, rounded_up(spent.amount), rounded_up(spent.delta))))
    # The first draw is settled by the plan alone, where no draw of another group came before it.
    known = tuple(draws) if settled else tuple(draws[:1]) if draws and draws[0] is receipt.draws[0] else ()
    found = _composition_bound(known, Loss.none(unit) if settled else _less(allowed, known))
    return tuple(bounds) if found is None else (*bounds, found)


def _stated_delta(cost: PrivacyBudget, epsilon: float) -> float:
    """What the stated budget alone implies."""
    if cost.kind is BudgetKind.ZCDP:
        return zcdp_delta(cost.rho, epsilon)
    return _approximate_delta(cost.epsilon, cost.delta, epsilon)


def _approximate_delta(loss: float, delta: float, epsilon: float) -> float:
    """δ(ε) of every (loss, delta)-private mechanism: with probability ``delta`` all is told, else it is randomised response."""
    pure = randomised_response_delta(epsilon, loss)
    return delta if pure == 0.0 else min(delta + (1.0 - delta) * pure + 2.0**-50, 1.0)


def _less(allowed: Loss, draws: Sequence[Draw]) -> Loss:
    spent = sum((draw.loss for draw in draws), Loss.none(allowed.unit))
    return allowed - spent


def _composition_bound(draws: Sequence[Draw], left: Loss) -> Bound | None:
    """By the curves of draws that are known, and any others that spend what is left."""
    curves = [curve for draw in draws for curve in draw.law.curves(draw.sensitivity)]
    if not curves or any(not draw.law.curves(draw.sensitivity) for draw in draws):
        return None
    failure, known = left.delta, Fraction(0)
    for draw in draws:
        known += draw.loss.amount
        failure += draw.loss.delta if isinstance(draw.law, EigenvalueBound) else 0
    rest, extra = rounded_up(left.amount), rounded_up(failure)
    names = " and ".join(dict.fromkeys(draw.law.name for draw in draws))
    if len(curves) == 1 and left.amount <= NOTHING_LEFT * (known + left.amount):
        (curve,) = curves
        attained_by = worst_neighbors(draws[0]) if extra <= NOTHING_LEFT * draws[0].loss.delta else None
        return Bound(f"the curve of one {names} draw", partial(_shifted_delta, curve, rest, extra), attained_by)
    if any(math.isinf(curve.reach) for curve in curves):
        return None
    others = [PrivacyCurve(partial(randomised_response_delta, loss=rest), rest)] if rest else []
    together = composed([*curves, *others])
    if together is None:
        return None
    how = f"{names} draws composed" + (", any others after them" if others else "")
    whole = rounded_up(known + left.amount)

    def delta(epsilon: float) -> float:
        return extra if epsilon >= whole else min(together.delta(epsilon) + extra, 1.0)

    return Bound(how, delta)


def _shifted_delta(curve: PrivacyCurve, rest: float, extra: float, epsilon: float) -> float:
    """δ of a draw and of (rest, extra)-private ones after it; at an ε below the rest, where the curve may not be asked, 1."""
    if epsilon < rest:
        return 1.0
    return min(curve.delta(math.nextafter(epsilon - rest, 0.0) if rest else epsilon) + extra, 1.0)


def _concentrated_bounds(spent: Loss, draws: Sequence[Draw], settled: bool) -> list[Bound]:
    """Of draws whose ρ add up."""
    if spent.amount == 0:
        return []
    rho = no_less(rounded_up(spent.amount))
    bounds = [Bound(f"any draws that are {rho}-zCDP together", partial(zcdp_delta, rounded_up(spent.amount)))]
    if not settled:
        return bounds
    normal = [draw for draw in draws if isinstance(draw.law, DiscreteGaussian | GaussianDraw)]
    others = [draw for draw in draws if draw not in normal]
    if not normal or any(not draw.law.curves(draw.sensitivity) for draw in others):
        return bounds
    loss = sum((draw.loss for draw in normal), Loss.none(spent.unit))
    gaussian = _gaussian_bound(loss, normal, _least_scale(normal), sum(draw.size for draw in normal))
    if not others:
        return [*bounds, gaussian]
    reach = _reach(gaussian.delta)
    curves = [curve for draw in others for curve in draw.law.curves(draw.sensitivity)]
    together = composed([PrivacyCurve(partial(_at_any_epsilon, gaussian.delta), reach), *curves])
    if together is not None:
        names = " and ".join(dict.fromkeys(draw.law.name for draw in draws))
        bounds.append(Bound(f"{names} draws composed", together.delta))
    return bounds


def _least_scale(draws: Sequence[Draw]) -> float:
    """Of the discrete Gaussian draws, in lattice units; infinite where there are none."""
    scales = [
        scale
        for draw in draws
        if isinstance(draw.law, DiscreteGaussian)
        for scale in (draw.law.scale, draw.law.off_diagonal_scale)
        if scale is not None
    ]
    return min(scales, default=LEAST_COMPOSED_SCALE)


def _gaussian_bound(loss: Loss, draws: Sequence[Draw], least_scale: float, n_coordinates: int) -> Bound:
    """One Gaussian mechanism of μ² = 2ρ, and the margin of discrete noise."""
    mu = _mu_of(loss)
    if mu == 0.0:
        return Bound("nothing was drawn", partial(_approximate_delta, 0.0, 0.0))

    def delta(epsilon: float) -> float:
        # A larger μ is on the safe side: of a far smaller one δ is below e^−700, and the margin of discrete noise has no end.
        sensitivity = max(mu, epsilon / FARTHEST) * least_scale * (1.0 + 2.0**-50)
        log_delta = discrete_gaussian_log_delta(epsilon, sensitivity, least_scale, n_coordinates)
        return min(math.exp(log_delta) * (1.0 + 1e-10), 1.0)

    whole = len(draws) == 1 and loss.amount <= draws[0].loss.amount * (1 + NOTHING_LEFT)
    attained_by = worst_neighbors(draws[0]) if whole and least_scale >= FINE_SCALE else None
    return Bound(f"one Gaussian mechanism of μ = {no_less(mu)}", delta, attained_by)


def _mu_of(loss: Loss) -> float:
    square = 2 * loss.amount
    mu = math.sqrt(rounded_up(square))
    while Fraction(mu) ** 2 < square:
        mu = math.nextafter(mu, math.inf)
    return mu


def mu_of_run(receipt: Receipt, settled: bool) -> float | None:
    """μ of a run whose draws are all Gaussian, whatever they told; None of any other."""
    if receipt.unit is LossUnit.GAUSSIAN_RHO:
        return _mu_of(_for_units(receipt.total if settled else receipt.allowance, receipt))
    gaussian = all(isinstance(draw.law, DiscreteGaussian | GaussianDraw) for draw in receipt.draws)
    return _mu_of(_for_units(receipt.total, receipt)) if settled and gaussian and receipt.unit is LossUnit.RHO else None


def _for_units(loss: Loss, receipt: Receipt) -> Loss:
    lost = loss_for_units(loss, receipt.rows_per_unit)
    assert lost is not None, "ρ is known for units"
    return lost


def _reach(delta: Callable[[float], float]) -> float:
    """An ε at which next to nothing is left."""
    reach = 1.0
    while delta(reach) > LEAST_DELTA and reach < 1e3:
        reach *= 1.25
    return reach


def _at_any_epsilon(delta: Callable[[float], float], epsilon: float) -> float:
    """δ at an ε that may be negative, of a pair of laws that is the same in either order."""
    if epsilon >= 0.0:
        return delta(epsilon)
    return min(-math.expm1(epsilon) + math.exp(epsilon) * delta(-epsilon), 1.0)
