"""Privacy budgets, which can be checked, compared, split and added."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from typing import Annotated, Any

from dpmoments.base.errors import InputValueError, shown, wrong_type
from dpmoments.base.records import ABSENT_IF_NONE, Record
from dpmoments.base.values import no_less, rounded_down, rounded_up

MAX_LOSS = 1e100
"""Largest ε or ρ accepted: far beyond any protection, and its square is finite."""


class BudgetKind(StrEnum):
    """Definition of privacy that a budget is counted in."""

    PURE = "pure"
    APPROXIMATE = "approximate"
    ZCDP = "zcdp"


def _positive(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, Real):
        raise wrong_type(name, "a number", value)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not 0 < number <= MAX_LOSS:
        raise InputValueError(f"{name} must be positive and finite (at most {MAX_LOSS:g}), got {shown(number)}")
    return number


@dataclass(frozen=True, slots=True)
class PrivacyBudget(Record):
    """Amount of privacy loss: pure ε, approximate (ε, δ) or ρ-zCDP.

    Make one with :meth:`pure`, :meth:`approximate`, :meth:`zcdp`, or with :meth:`of` from a user's arguments.

    Attributes
    ----------
    kind : BudgetKind
    epsilon : float
        0 for a zCDP budget.
    delta : float
        0 for a pure or zCDP budget.
    rho : float
        0 unless the kind is zCDP.

    Examples
    --------
    >>> PrivacyBudget.of(epsilon=1.0)
    PrivacyBudget.pure(epsilon=1.0)
    >>> PrivacyBudget.of(epsilon=1.0, delta=1e-9)
    PrivacyBudget.approximate(epsilon=1.0, delta=1e-09)
    >>> PrivacyBudget.zcdp(0.5).split(3, 1)
    (PrivacyBudget.zcdp(rho=0.375), PrivacyBudget.zcdp(rho=0.125))
    """

    kind: BudgetKind
    epsilon: Annotated[float, ABSENT_IF_NONE] = 0.0
    delta: Annotated[float, ABSENT_IF_NONE] = 0.0
    rho: Annotated[float, ABSENT_IF_NONE] = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "kind", BudgetKind(self.kind))
        if self.kind is BudgetKind.ZCDP:
            object.__setattr__(self, "rho", _positive("rho", self.rho))
            if self.epsilon or self.delta:
                raise InputValueError("a zCDP budget has only rho: leave epsilon and delta out")
            return
        object.__setattr__(self, "epsilon", _positive("epsilon", self.epsilon))
        if self.rho:
            raise InputValueError(f"a {self.kind} budget has no rho")
        if isinstance(self.delta, bool) or not isinstance(self.delta, Real):
            raise wrong_type("delta", "a number", self.delta)
        object.__setattr__(self, "delta", float(self.delta))
        if self.kind is BudgetKind.PURE and self.delta != 0:
            raise InputValueError("a pure budget has delta = 0")
        if self.kind is BudgetKind.APPROXIMATE and not 0 < self.delta < 1:
            raise InputValueError(
                "delta must be a probability of failure, above 0 and below 1 (well below one over the number of rows), got "
                f"{shown(self.delta)}"
            )

    @classmethod
    def pure(cls, epsilon: float) -> PrivacyBudget:
        """Return a budget of ε-differential privacy."""
        return cls(BudgetKind.PURE, epsilon=epsilon)

    @classmethod
    def approximate(cls, epsilon: float, delta: float) -> PrivacyBudget:
        """Return a budget of (ε, δ)-differential privacy, 0 < δ < 1."""
        return cls(BudgetKind.APPROXIMATE, epsilon=epsilon, delta=delta)

    @property
    def nominal_epsilon(self) -> float:
        """ε, or √(2ρ), at which Gaussian noise is about as large as Laplace noise at ε."""
        return math.sqrt(2.0 * self.rho) if self.kind is BudgetKind.ZCDP else self.epsilon

    @classmethod
    def zcdp(cls, rho: float) -> PrivacyBudget:
        """Return a budget of ρ-zero-concentrated differential privacy (Bun & Steinke 2016)."""
        return cls(BudgetKind.ZCDP, rho=rho)

    @classmethod
    def of(cls, *, epsilon: float | None = None, delta: float = 0.0, rho: float | None = None) -> PrivacyBudget:
        """Return the budget of a user's arguments.

        Give ``epsilon`` with or without ``delta``, or ``rho``.

        Raises
        ------
        ValueError
            If neither or both of ``epsilon`` and ``rho`` are given, or a value is out of range.
        TypeError
            If a value is not a number.
        """
        if (epsilon is None) == (rho is None):
            wrong = "none was given" if rho is None else "not both"
            raise InputValueError(
                f"give the privacy budget as epsilon (with or without delta) or as rho, {wrong}",
                shell=f"give the privacy budget as --epsilon (with or without --delta) or as --rho, {wrong}",
            )
        if rho is not None:
            if delta != 0:
                none = "delta goes with epsilon: a rho-zCDP budget has none"
                raise InputValueError(f"{none}; zcdp(rho).to_epsilon(delta) shows it as (epsilon, delta)", shell=none)
            return cls.zcdp(rho)
        assert epsilon is not None
        if isinstance(delta, Real) and not isinstance(delta, bool) and delta == 0:
            return cls.pure(epsilon)
        return cls.approximate(epsilon, delta)

    def split(self, *weights: float) -> tuple[PrivacyBudget, ...]:
        """Split the budget in proportion to positive ``weights``.

        By basic composition the parts together cost no more than the whole: they are rounded down so that their exact sum never
        exceeds it.
        """
        if not weights or not all(math.isfinite(weight) and weight > 0 for weight in weights):
            raise InputValueError(f"weights {shown(weights)} must be positive numbers")
        parts = {name: _parts(amount, weights) for name, amount in self.facts.items() if amount}
        return tuple(replace(self, **dict(zip(parts, part, strict=True))) for part in zip(*parts.values(), strict=True))

    def covers(self, cost: PrivacyBudget) -> bool:
        """Return True if spending ``cost`` stays within this budget.

        A pure cost fits an approximate budget of the same ε; a pure cost ε fits a zCDP budget ρ ≥ ε²/2. For any other two
        different kinds the answer is False.

        Examples
        --------
        >>> PrivacyBudget.approximate(1.0, 1e-9).covers(PrivacyBudget.pure(1.0))
        True
        >>> PrivacyBudget.pure(1.0).covers(PrivacyBudget.approximate(0.5, 1e-9))
        False
        """
        if self.kind is BudgetKind.ZCDP:
            if cost.kind is BudgetKind.ZCDP:
                return cost.rho <= self.rho
            return cost.kind is BudgetKind.PURE and Fraction(cost.epsilon) ** 2 / 2 <= Fraction(self.rho)
        return cost.kind is not BudgetKind.ZCDP and cost.epsilon <= self.epsilon and cost.delta <= self.delta

    def to_epsilon(self, delta: float) -> float:
        """Return the least ε for which this budget is proven to imply (ε, δ)-privacy at this δ.

        Raises
        ------
        ValueError
            If the budget is approximate and its own δ is above ``delta``.
        """
        if self.kind is BudgetKind.ZCDP:
            from dpmoments.privacy.curves.zcdp import zcdp_epsilon

            return zcdp_epsilon(self.rho, delta)
        if self.delta > delta:
            raise InputValueError(f"the budget's own delta, {self.delta:g}, is above the delta asked for, {delta:g}")
        return self.epsilon

    def to_rho(self) -> float:
        """Return the largest ρ for which ρ-zCDP is proven to imply this budget.

        A zCDP budget has its own ρ.

        Raises
        ------
        ValueError
            If the budget is pure: no ρ implies a δ of 0.

        Examples
        --------
        >>> PrivacyBudget.zcdp(0.5).to_rho(), round(PrivacyBudget.approximate(1.0, 1e-6).to_rho(), 4)
        (0.5, 0.0244)
        """
        if self.kind is BudgetKind.ZCDP:
            return self.rho
        if self.kind is BudgetKind.PURE:
            raise InputValueError(f"no ρ implies a pure budget of {self}: give delta > 0 too, or rho")
        from dpmoments.privacy.curves.zcdp import zcdp_rho

        return zcdp_rho(self.epsilon, self.delta)

    @property
    def facts(self) -> dict[str, Any]:
        """Amounts by name, for a message."""
        names = ("rho",) if self.kind is BudgetKind.ZCDP else ("epsilon", "delta")
        return {name: getattr(self, name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return {"kind": str(self.kind)} | self.facts

    def __add__(self, other: PrivacyBudget) -> PrivacyBudget:
        """Add losses of one kind (basic composition)."""
        # A pure and an approximate loss add up to an approximate one.
        if not isinstance(other, PrivacyBudget):
            return NotImplemented
        if (self.kind is BudgetKind.ZCDP) != (other.kind is BudgetKind.ZCDP):
            raise InputValueError(
                f"a {self.kind} and a {other.kind} budget do not add up: convert one (see dpmoments.privacy.curves)"
            )
        ours, theirs = self.facts, other.facts
        return PrivacyBudget.of(**{name: rounded_up(Fraction(ours[name]) + Fraction(theirs[name])) for name in ours})

    def __repr__(self) -> str:
        amounts = ", ".join(f"{name}={amount!r}" for name, amount in self.facts.items() if amount)
        return f"PrivacyBudget.{self.kind}({amounts})"

    def __str__(self) -> str:
        if self.kind is BudgetKind.ZCDP:
            return f"{no_less(self.rho)}-zCDP"
        if self.kind is BudgetKind.PURE:
            return f"ε = {no_less(self.epsilon)}, pure"
        return f"ε = {no_less(self.epsilon)}, δ = {no_less(self.delta)}"


@lru_cache(maxsize=256)
def _parts(whole: float, weights: tuple[float, ...]) -> tuple[float, ...]:
    total = sum(Fraction(weight) for weight in weights)
    return tuple(rounded_down(Fraction(whole) * Fraction(weight) / total) for weight in weights)
