"""Exact numbers of a ledger: as they are written, as texts of a file, and as words."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from fractions import Fraction
from typing import Any

from dpmoments.foundation.errors import InputValueError
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.rounding import no_less

_RATIO = re.compile(r"(0|[1-9][0-9]*)/([1-9][0-9]*)")
_MAX_RATIO_LENGTH = 2_500
"""Longer than any sum of floats that a grant can hold."""


def as_written(number: float) -> Fraction:
    """The decimal number that a float is written as: 0.1 is one tenth, and ten of them are one.

    The float itself differs from it by at most one part in 2⁵³ (``docs/derivations/ledger.md``, Rounding).

    Examples
    --------
    >>> as_written(0.1) * 10 == 1
    True
    """
    return Fraction(repr(float(number)))


def as_text(number: Fraction) -> str:
    """An exact number for a file.

    Examples
    --------
    >>> as_text(as_written(0.3)), from_text("3/10")
    ('3/10', Fraction(3, 10))
    """
    return f"{number.numerator}/{number.denominator}"


def from_text(text: object) -> Fraction:
    """The inverse of :func:`as_text`."""
    if not isinstance(text, str) or len(text) > _MAX_RATIO_LENGTH or not (result := _RATIO.fullmatch(text)):
        raise InputValueError("an amount in the ledger is not a numerator and a denominator")
    number = Fraction(int(result[1]), int(result[2]))
    if as_text(number) != text:
        raise InputValueError("an amount in the ledger is not in lowest terms")
    return number


@dataclass(frozen=True, slots=True)
class Amount:
    """An amount of privacy loss in the kind of a grant; unlike a :class:`~dpmoments.PrivacyBudget` it may be nothing.

    Attributes
    ----------
    kind : str
        ``pure``, ``approximate``, ``zcdp`` or ``gaussian``.
    epsilon, delta, rho, mu : float
        0 where the kind has none. Of a grant under (ε, δ), what is left has three: see :meth:`dpmoments.Ledger.left`.
    """

    kind: str
    epsilon: float = 0.0
    delta: float = 0.0
    rho: float = 0.0
    mu: float = 0.0

    @property
    def budget(self) -> PrivacyBudget | None:
        """As a budget; None where it is nothing, or is counted in μ."""
        if self.kind == BudgetKind.ZCDP:
            return PrivacyBudget.zcdp(self.rho) if self.rho else None
        if self.kind in (BudgetKind.PURE, BudgetKind.APPROXIMATE) and self.epsilon:
            return PrivacyBudget.of(epsilon=self.epsilon, delta=self.delta)
        return None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a program: the kind and what it has."""
        parts = {"pure": ("epsilon",), "approximate": ("epsilon", "delta"), "zcdp": ("rho",), "gaussian": ("mu",)}
        return {"kind": self.kind, **{name: getattr(self, name) for name in parts[self.kind]}}

    def in_words(self, *, most: bool = False) -> str:
        """The amount, never less than it is; where ``most`` may be spent, never more."""
        shown = no_more if most else no_less
        if self.kind == BudgetKind.ZCDP:
            return f"ρ = {shown(self.rho)}"
        if self.kind == BudgetKind.PURE:
            return f"ε = {shown(self.epsilon)}"
        if self.kind == BudgetKind.APPROXIMATE:
            return f"ε = {shown(self.epsilon)}, δ = {shown(self.delta)}"
        return f"μ = {shown(self.mu)}"

    def __str__(self) -> str:
        return self.in_words()


def no_more(loss: float, digits: int = 6) -> str:
    """A loss in so many significant digits, never more than it is.

    Examples
    --------
    >>> no_more(0.1), no_more(1.0000096)
    ('0.1', '1')
    """
    rounded = Context(prec=digits, rounding=ROUND_FLOOR).create_decimal(repr(float(loss)))
    return f"{float(rounded):.{digits}g}"


def upward(number: Fraction) -> float:
    """An exact amount as the least float that is written as no less."""
    near = math.nextafter(float(number), -math.inf)
    while as_written(near) < number:
        near = math.nextafter(near, math.inf)
    return near + 0.0  # never minus nothing


def downward(number: Fraction) -> float:
    """An exact amount as the greatest float that is written as no more."""
    return -upward(-number) + 0.0  # never minus nothing
