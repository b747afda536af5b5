"""Composed costs of releases in each kind of grant: ``docs/evidence/derivations/ledger.md``.

=================  ===========  =============  ===========================  ==============================
cost of a release  under ε      under ρ        under μ                      under (ε, δ)
=================  ===========  =============  ===========================  ==============================
pure ε             ε            ε tanh(ε/2)    2 Φ⁻¹(e^ε/(1+e^ε))           ε; or in ρ; or in μ
(ε, δ), Gaussian   refused      its ρ          √(2ρ)                        in μ; or in ρ; or basic
(ε, δ), zCDP       refused      its ρ          refused                      in ρ; or basic
(ε, δ), others     refused      refused        refused                      basic
ρ-zCDP             refused      ρ              refused                      only in ρ
=================  ===========  =============  ===========================  ==============================
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.foundation.values import require_known
from dpmoments.ledger.grants import (
    MAX_GAUSSIAN_RELEASES,
    Composition,
    Grant,
    GrantKind,
    as_text,
    as_written,
    from_text,
    upward,
)
from dpmoments.messages.message import Message
from dpmoments.privacy.accounting import LossUnit, allowance
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves.gaussian import pure_to_gaussian
from dpmoments.privacy.curves.zcdp import pure_to_zcdp
from dpmoments.privacy.unit import Neighbors

_AMOUNTS = ("epsilon", "delta", "rho", "mu_squared")
_MAX_EPSILON_TWICE = 700.0
"""Limit above which e^ε, the growth of δ if a cost counts twice, overflows."""


@dataclass(frozen=True)
class Losses:
    """Privacy loss of one release in every unit in which it is known, exact or rounded up.

    The release is (``epsilon``, ``delta``)-private, ``rho``-zCDP and μ-Gaussian private with μ² = ``mu_squared``; if
    ``gaussian`` (all draws are discrete Gaussian), the last holds up to the margin of discrete noise.
    """

    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None
    mu_squared: Fraction | None
    gaussian: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for the history."""
        known = {name: getattr(self, name) for name in _AMOUNTS}
        return {name: None if loss is None else as_text(loss) for name, loss in known.items()} | {
            "gaussian": self.gaussian
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Losses:
        """Build the object from :meth:`to_dict`."""
        require_known(values, (*_AMOUNTS, "gaussian"), "the losses of a release")
        known = {name: None if values[name] is None else from_text(values[name]) for name in _AMOUNTS}
        if not isinstance(values["gaussian"], bool):
            raise InputTypeError(Message("entry-of-other-type", name="gaussian", expected="flag"))
        losses = cls(**known, gaussian=values["gaussian"])
        if (losses.epsilon is None) != (losses.delta is None) or not (losses.epsilon or losses.rho):
            raise InputValueError(Message("losses-without-unit"))
        return losses


def losses_of(cost: PrivacyBudget, unit: LossUnit, neighbors: Neighbors, relation: Neighbors) -> Losses:
    """Return the loss of a release under the relation of a grant.

    ``unit`` is the one in which the losses of its draws add up. If the cost is for ``add_remove`` and the grant for
    ``replace_one``, it counts twice in ε and μ and four times in ρ, since a replaced row is one removed and one added. There is
    no conversion the other way.

    Examples
    --------
    >>> one = losses_of(PrivacyBudget.pure(0.1), LossUnit.EPSILON, Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE)
    >>> one.epsilon, round(float(one.rho), 4)
    (Fraction(1, 5), 0.0199)
    """
    steps = 1
    if neighbors is not relation:
        if neighbors is Neighbors.REPLACE_ONE:
            raise InputValueError(Message("cost-of-other-relation"))
        if cost.kind is BudgetKind.APPROXIMATE and cost.epsilon > _MAX_EPSILON_TWICE:
            raise InputValueError(Message("cost-under-add-remove", cost=cost))
        steps = 2
    epsilon = delta = rho = mu_squared = None
    if cost.kind is not BudgetKind.ZCDP:
        epsilon, delta = steps * as_written(cost.epsilon), as_written(cost.delta)
        if steps == 2 and delta:
            delta *= 1 + Fraction(math.exp(cost.epsilon) * (1.0 + 1e-12))
    if cost.kind is BudgetKind.ZCDP:
        rho = steps**2 * as_written(cost.rho)
    elif unit in (LossUnit.RHO, LossUnit.GAUSSIAN_RHO):
        rho = steps**2 * allowance(cost, unit).amount
    elif cost.kind is BudgetKind.PURE and epsilon is not None:
        above = upward(epsilon)
        rho, mu_squared = Fraction(pure_to_zcdp(above)), Fraction(pure_to_gaussian(above)) ** 2
    # A cost in ρ is one of zCDP, whatever was drawn: it is not known to be that of one Gaussian mechanism.
    gaussian = unit is LossUnit.GAUSSIAN_RHO and cost.kind is BudgetKind.APPROXIMATE
    if gaussian and rho is not None:
        mu_squared = 2 * rho
    return Losses(epsilon, delta, rho, mu_squared, gaussian)


@dataclass(frozen=True)
class Sums:
    """Total losses of several releases; unknown in a unit if one of them has no loss in it."""

    n_releases: int = 0
    n_gaussian: int = 0
    unknown: tuple[int, ...] = (0, 0, 0, 0)
    amounts: tuple[Fraction, ...] = (Fraction(0), Fraction(0), Fraction(0), Fraction(0))
    concentrated: bool = True
    """True if the first release is zCDP."""

    def __add__(self, losses: Losses) -> Sums:
        first = self if self.n_releases else replace(self, concentrated=losses.rho is not None)
        return first._moved(losses, 1)

    def __sub__(self, losses: Losses) -> Sums:
        return self._moved(losses, -1)

    def _moved(self, losses: Losses, sign: int) -> Sums:
        known = [getattr(losses, name) for name in _AMOUNTS]
        return replace(
            self,
            n_releases=self.n_releases + sign,
            n_gaussian=self.n_gaussian + sign * losses.gaussian,
            unknown=tuple(n + sign * (loss is None) for n, loss in zip(self.unknown, known, strict=True)),
            amounts=tuple(total + sign * (loss or 0) for total, loss in zip(self.amounts, known, strict=True)),
        )

    def total(self, name: str) -> Fraction | None:
        """Return the total in one unit, or None if a release has none or it is not proven."""
        index = _AMOUNTS.index("delta" if name == "half_delta" else name)
        if self.unknown[index] or (name == "mu_squared" and self.n_gaussian > MAX_GAUSSIAN_RELEASES):
            return None
        return self.amounts[index]

    def within(self, grant: Grant) -> bool:
        """Return True if the grant allows these releases."""
        return any(all(self._keeps(name, grant.bounds) for name in rule) for rule in self.rules(grant))

    def rules(self, grant: Grant) -> tuple[tuple[str, ...], ...]:
        """Return the composition rules, each a set of sums that must be within the grant's limits.

        The rules together are one privacy filter: the shares of δ they may use add up to the grant's δ.
        """
        if grant.kind is GrantKind.PURE:
            return (("epsilon",),) if self.amounts[1] == 0 else ()
        if grant.kind is GrantKind.ZCDP:
            return (("rho",),)
        if grant.kind is GrantKind.GAUSSIAN:
            return (("mu_squared",),)
        rules: list[tuple[str, ...]] = [("epsilon",)] if self.amounts[1] == 0 else []
        rule = grant.composition
        by_parts = rule is Composition.BASIC or (rule is Composition.AUTO and not self.concentrated)
        if by_parts or self.n_releases == 1:  # one release by itself is what it says it is
            rules.append(("epsilon", "delta"))
        elif rule is Composition.AUTO:
            rules.append(("epsilon", "half_delta"))
        if not by_parts and rule is not Composition.GAUSSIAN:
            rules.append(("rho",))
        if not by_parts and rule is not Composition.ZCDP:
            rules.append(("mu_squared",))
        return tuple(rules)

    def _keeps(self, name: str, bounds: Mapping[str, Fraction]) -> bool:
        total = self.total(name)
        return total is not None and total <= bounds[name]
