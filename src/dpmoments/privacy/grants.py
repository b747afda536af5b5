"""Grants: total privacy loss allowed for a dataset's releases, and its composition."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from fractions import Fraction
from numbers import Real
from types import MappingProxyType
from typing import Annotated, Any

from dpmoments.base.checks import check_one_of
from dpmoments.base.errors import InputValueError, shown, wrong_type
from dpmoments.base.records import ABSENT_IF_NONE, ReadBy, Record
from dpmoments.base.values import check_label, no_less, require_known
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import MAX_COMPOSED_COORDINATES, discrete_gaussian_rho, zcdp_rho
from dpmoments.privacy.origin import check_dataset
from dpmoments.privacy.unit import Neighbors, PrivacyUnit

# Exact numbers of a ledger: as they are written, as texts of a file, and as words.

_RATIO = re.compile(r"(0|[1-9][0-9]*)/([1-9][0-9]*)")
_MAX_RATIO_LENGTH = 2_500
"""Limit above the length of any sum of floats that a grant can hold."""


def as_written(number: float) -> Fraction:
    """Return the decimal number that a float is written as (0.1 is one tenth)."""
    # The float differs from it by at most one part in 2⁵³ (`docs/evidence/derivations/ledger.md`, Rounding).
    return Fraction(repr(float(number)))


def from_text(text: object) -> Fraction:
    """Parse a numerator and a denominator in lowest terms."""
    if isinstance(text, str) and len(text) <= _MAX_RATIO_LENGTH and (result := _RATIO.fullmatch(text)):
        number = Fraction(int(result[1]), int(result[2]))
        if (str(number.numerator), str(number.denominator)) == result.groups():
            return number
    raise InputValueError("an amount in the ledger is not a numerator and a denominator in lowest terms")


Exact = Annotated[Fraction, ReadBy(from_text)]


_PARTS = {"pure": ("epsilon",), "approximate": ("epsilon", "delta"), "zcdp": ("rho",), "gaussian": ("mu",)}


@dataclass(frozen=True, slots=True)
class Amount:
    """Amount of privacy loss in the kind of a grant; unlike a budget it may be zero.

    Attributes
    ----------
    kind : str
        ``pure``, ``approximate``, ``zcdp`` or ``gaussian``.
    epsilon, delta, rho, mu : float
        0 if the kind has none. The remainder of an (ε, δ) grant has three: see :meth:`dpmoments.Ledger.left`.
    """

    kind: str
    epsilon: float = 0.0
    delta: float = 0.0
    rho: float = 0.0
    mu: float = 0.0

    @property
    def budget(self) -> PrivacyBudget | None:
        """Privacy budget of this amount; None if it is zero or counted in μ."""
        if self.kind == BudgetKind.ZCDP:
            return PrivacyBudget.zcdp(self.rho) if self.rho else None
        if self.kind in (BudgetKind.PURE, BudgetKind.APPROXIMATE) and self.epsilon:
            return PrivacyBudget.of(epsilon=self.epsilon, delta=self.delta)
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return the kind and its numbers as plain values."""
        return {"kind": self.kind, **{name: getattr(self, name) for name in _PARTS[self.kind]}}

    def describe(self, *, most: bool = False) -> str:
        """Format the amount, rounded up, or down if it is the most that may be spent."""
        shown = no_more if most else no_less
        symbols = {"epsilon": "ε", "delta": "δ", "rho": "ρ", "mu": "μ"}
        return ", ".join(f"{symbols[name]} = {shown(getattr(self, name))}" for name in _PARTS[self.kind])

    def __str__(self) -> str:
        return self.describe()


def no_more(loss: float) -> str:
    """Format a loss to six significant digits, rounded down."""
    return no_less(-loss).removeprefix("-")


def upward(number: Fraction) -> float:
    """Return the smallest float that is written as no less than an exact amount."""
    near = math.nextafter(float(number), -math.inf)
    while as_written(near) < number:
        near = math.nextafter(near, math.inf)
    return near + 0.0  # never minus nothing


def downward(number: Fraction) -> float:
    """Return the largest float that is written as no more than an exact amount."""
    return -upward(-number) + 0.0  # never minus nothing


ROW = "row"
"""Ledger's name for the privacy unit "one row"; other units are named by their id column."""

MAX_GAUSSIAN_RELEASES = 128
"""Number of releases of a dataset for which the margin of discrete noise is proven."""
_MAX_MU = 1e50


class GrantKind(StrEnum):
    """Privacy definition of a grant."""

    PURE = "pure"
    APPROXIMATE = "approximate"
    ZCDP = "zcdp"
    GAUSSIAN = "gaussian"


class Composition(StrEnum):
    """Rule for adding up costs under an (ε, δ) grant (``docs/evidence/derivations/ledger.md``).

    ``AUTO``: if the first release is zCDP, basic composition with half of δ, or in ρ or μ with a quarter each, whichever
    suffices; otherwise basic composition with all of δ. ``BASIC``: ε and δ each add up. ``ZCDP``: in ρ, with all of δ.
    ``GAUSSIAN``: in μ, with all of δ. Pure releases whose ε add up to the grant's are allowed under every rule.
    """

    AUTO = "auto"
    BASIC = "basic"
    ZCDP = "zcdp"
    GAUSSIAN = "gaussian"


_LIMITS = {
    GrantKind.PURE: ("epsilon",),
    GrantKind.APPROXIMATE: ("delta", "epsilon", "mu_squared", "rho"),
    GrantKind.ZCDP: ("rho",),
    GrantKind.GAUSSIAN: ("mu_squared",),
}
"""Names of the limits of each kind."""


def _read_limits(values: Any) -> Mapping[str, Fraction]:
    require_known(values, _LIMITS[GrantKind.APPROXIMATE], "the limits of a grant")
    return {name: from_text(limit) for name, limit in values.items()}


@dataclass(frozen=True)
class Grant(Record):
    """Privacy budget of a dataset.

    Attributes
    ----------
    limits : mapping of str to Fraction
        Exact limits of the sums ``epsilon``, ``delta``, ``rho`` and ``mu_squared`` that the kind has. Under (ε, δ), ``rho`` and
        ``mu_squared`` are what ε and δ allow, computed when it was granted.
    unit : str
        Privacy unit: ``row``, or the id column of units with several rows.
    reason, by : str or None
        Why the amount was changed, and who decided it.
    """

    kind: GrantKind
    limits: Annotated[Mapping[str, Fraction], ReadBy(_read_limits)]
    neighbors: Neighbors = Neighbors.ADD_REMOVE
    unit: str = "row"
    composition: Composition = field(default=Composition.AUTO, kw_only=True)
    reason: Annotated[str | None, ABSENT_IF_NONE] = field(default=None, kw_only=True, compare=False)
    by: Annotated[str | None, ABSENT_IF_NONE] = field(default=None, kw_only=True, compare=False)

    def __post_init__(self) -> None:
        check_unit(self.unit)
        if sorted(self.limits) != list(_LIMITS[self.kind]):
            raise InputValueError(f"the limits of a {self.kind} grant are {', '.join(_LIMITS[self.kind])}")
        object.__setattr__(self, "limits", MappingProxyType(dict(self.limits)))

    @classmethod
    def of(
        cls,
        *,
        epsilon: float | None = None,
        delta: float = 0.0,
        rho: float | None = None,
        mu: float | None = None,
        neighbors: Neighbors | str = "add_remove",
        unit: str = "row",
        composition: Composition | str = "auto",
    ) -> Grant:
        """Make the grant that a curator's arguments ask for.

        Examples
        --------
        >>> str(Grant.of(epsilon=3.0, delta=1e-6)), str(Grant.of(mu=0.5).amount)
        ('ε = 3, δ = 1e-06', 'μ = 0.5')
        """
        relation = Neighbors.of(neighbors)
        check_one_of("composition", composition, list(Composition))
        rule = Composition(str(composition))
        if mu is not None:
            if epsilon is not None or rho is not None or delta != 0:
                raise InputValueError("give only one of epsilon (with or without delta), rho and mu")
            if isinstance(mu, bool) or not isinstance(mu, Real):
                raise wrong_type("mu", "a number", mu)
            if not 0 < float(mu) <= _MAX_MU:
                raise InputValueError(f"mu must be positive and finite (at most {_MAX_MU:g}), got {shown(float(mu))}")
            kind, limits = GrantKind.GAUSSIAN, {"mu_squared": as_written(mu) ** 2}
        elif epsilon is None and rho is None:
            raise InputValueError("give one of epsilon (with or without delta), rho and mu; none was given")
        else:
            budget = PrivacyBudget.of(epsilon=epsilon, delta=delta, rho=rho)
            kind = GrantKind(str(budget.kind))
            limits = {"rho": as_written(budget.rho)}
            if kind is not GrantKind.ZCDP:
                limits = {"epsilon": as_written(budget.epsilon)}
            if kind is GrantKind.APPROXIMATE:
                share, coordinates = _share(budget.delta, rule), MAX_GAUSSIAN_RELEASES * MAX_COMPOSED_COORDINATES
                if share == 0.0:
                    raise InputValueError(f"the delta {shown(budget.delta)} is too small")
                try:
                    gaussian = discrete_gaussian_rho(budget.epsilon, share, coordinates)
                except ArithmeticError:
                    gaussian = (
                        0.0  # at so small an ε the margin of discrete noise is larger than what there is to spend
                    )
                limits |= {"delta": as_written(budget.delta), "rho": Fraction(zcdp_rho(budget.epsilon, share))}
                limits["mu_squared"] = 2 * Fraction(gaussian)
        if kind is not GrantKind.APPROXIMATE and rule is not Composition.AUTO:
            raise InputValueError(f"the composition {shown(str(rule))} needs a budget of epsilon and delta")
        return cls(kind, limits, relation, unit, composition=rule)

    @property
    def amount(self) -> Amount:
        """Budget in numbers."""
        mu = math.sqrt(self.limits["mu_squared"]) if self.kind is GrantKind.GAUSSIAN else 0.0
        known = {name: upward(self.limits[name]) for name in ("epsilon", "delta") if name in self.limits}
        rho = upward(self.limits["rho"]) if self.kind is GrantKind.ZCDP else 0.0
        return Amount(self.kind, rho=rho, mu=mu, **known)

    @property
    def bounds(self) -> Mapping[str, Fraction]:
        """Limits; half of δ for basic composition if another rule may use the other half."""
        return self.limits if "delta" not in self.limits else {**self.limits, "half_delta": self.limits["delta"] / 2}

    @property
    def share(self) -> float:
        """Maximum δ of a conversion from ρ or μ, rounded down."""
        return _share(upward(self.limits["delta"]), self.composition)

    def __str__(self) -> str:
        return str(self.amount)

    @property
    def why(self) -> str:
        """Text of the reason, and of who decided it, if they are stated."""
        stated = [f"{label}{shown(text)}" for label, text in (("reason: ", self.reason), ("by ", self.by)) if text]
        return f"; {', '.join(stated)}" if stated else ""


def unit_name(privacy_unit: PrivacyUnit | None) -> str:
    """Return the ledger's name of a privacy unit (the contribution bound is not part of it)."""
    return ROW if privacy_unit is None else privacy_unit.column


def check_unit(unit: object) -> None:
    """Raise ValueError or TypeError unless ``unit`` can name a privacy unit."""
    check_label("unit", unit, "the privacy unit", "a privacy unit", "row")


def require_dataset(dataset: object) -> str:
    """Return the name of a dataset, checked."""
    if dataset is None:
        refused = "a ledger keeps a budget for each dataset: name it with "
        raise InputValueError(f"{refused}dataset='people-2026'", shell=f"{refused}--dataset people-2026")
    check_dataset(dataset)
    assert isinstance(dataset, str)
    return dataset


def _share(delta: float, rule: Composition) -> float:
    return delta / 4 if rule is Composition.AUTO else delta
