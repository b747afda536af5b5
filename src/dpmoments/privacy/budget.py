"""Privacy budgets, which can be checked, compared, split and added."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from numbers import Real
from types import MappingProxyType
from typing import Annotated, Any, Self, TypedDict, TypeVar, get_type_hints

from dpmoments.base.errors import InputTypeError, InputValueError, closest, shown, wrong_type
from dpmoments.base.records import ABSENT_IF_NONE, Record
from dpmoments.base.values import no_less, rounded_down, rounded_up
from dpmoments.privacy.unit import Neighbors, PrivacyUnit, require_unit
from dpmoments.schema.constraints import finding_columns, require_levels
from dpmoments.schema.schema import Schema

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
            from dpmoments.privacy.curves import zcdp_epsilon

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
        from dpmoments.privacy.curves import zcdp_rho

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


# Options that functions share, written once, and the guarantee that they request.

Function = TypeVar("Function", bound=Callable[..., Any])


class AskedPrivacy(TypedDict, total=False):
    """Options of a guarantee, of every function that plans, forecasts or makes a release."""

    epsilon: float | None
    """Privacy budget: pure ε, or ε of (ε, δ)."""
    delta: float
    """δ of (ε, δ), between 0 and 1."""
    rho: float | None
    """Budget in zero-concentrated differential privacy, instead of ``epsilon``."""
    neighbors: Neighbors | str
    """Neighboring relation: one row's presence is hidden, or one row's values."""
    privacy_unit: PrivacyUnit | None
    """Privacy unit, if one person may have several rows."""


DEFAULTS: Mapping[str, Any] = MappingProxyType({"delta": 0.0, "neighbors": "add_remove", "progress": False})
"""Defaults of shared options that are not None."""


@dataclass(frozen=True)
class PrivacyRequest:
    """Guarantee that was asked for."""

    budget: PrivacyBudget
    neighbors: Neighbors
    privacy_unit: PrivacyUnit | None = None

    @classmethod
    def of_options(cls, asked: AskedPrivacy, schema: Schema, *, finds_levels: bool = False) -> PrivacyRequest:
        """Check the options of a guarantee for tables of a schema."""
        if not finds_levels:
            require_levels(schema)
        given = all_options(asked, AskedPrivacy)
        budget = PrivacyBudget.of(epsilon=given["epsilon"], delta=given["delta"], rho=given["rho"])
        neighbors, unit = Neighbors.of(given["neighbors"]), given["privacy_unit"]
        if unit is not None:
            require_unit(unit, schema, neighbors)
        return PrivacyRequest(budget, neighbors, unit)

    def divided(self, schema: Schema) -> tuple[Self, PrivacyBudget | None]:
        """Return the request for the release itself, and the budget that finds levels before it.

        It is None if the schema has all levels. Both add up to the budget of this request.
        """
        finding = finding_columns(schema)
        if not finding:
            return self, None
        name, budget = finding[0].name, self.budget
        if budget.kind is not BudgetKind.APPROXIMATE:
            raise InputValueError(
                f"column '{name}' has levels='discover', and the budget is {budget}: a name that one table has and its neighbor "
                "lacks can be published only with some probability δ. Give epsilon and delta, or list the levels"
            )
        share = sum(column.levels_share or 0.0 for column in finding)
        if not share <= 0.5:
            raise InputValueError(f"levels_share of all columns is {share:g} together: make it 0.5 or less")
        if len(finding) == len(schema.table_columns):
            raise InputValueError(
                f"column '{name}' has levels='discover', and so have all others: if no name is found there is nothing to "
                "release. Add a column of numbers, or one whose levels are public"
            )
        found = budget.split(share, 1.0 - share)[0]
        rest = {
            part: rounded_down(Fraction(whole) - Fraction(found.facts[part])) for part, whole in budget.facts.items()
        }
        return replace(self, budget=PrivacyBudget.approximate(**rest)), found


def all_options(asked: Mapping[str, Any], known: type) -> dict[str, Any]:
    """Return the options of ``known``, as asked or by default; raise TypeError for others."""
    names = get_type_hints(known)
    for name in asked:
        if name not in names:
            close = closest(name, names)
            meant = f": did you mean {close!r}?" if close else ""
            raise InputTypeError(f"unknown option {shown(name)}{meant}")
    return {name: asked.get(name, DEFAULTS.get(name)) for name in names}


def takes_request(asked: type, *, others: str | None = None) -> Callable[[Function], Function]:
    """Show the options of ``asked``, in place of ``**asked``, in a function's signature.

    The signature is what help and the commands read. The guarantee's options stand before those of the function that have a
    default, all others after them; ``others`` names any further ones.
    """
    shared = {
        name: inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=DEFAULTS.get(name), annotation=hint)
        for name, hint in get_type_hints(asked).items()
    }
    further = [] if others is None else [inspect.Parameter(others, inspect.Parameter.VAR_KEYWORD, annotation=Any)]

    def with_options(function: Function) -> Function:
        signature = inspect.signature(function, eval_str=True)
        own = [entry for entry in signature.parameters.values() if entry.kind is not entry.VAR_KEYWORD]
        parameters = [
            *(entry for entry in own if entry.default is entry.empty),
            *(entry for name, entry in shared.items() if name in AskedPrivacy.__annotations__),
            *(entry for entry in own if entry.default is not entry.empty),
            *(entry for name, entry in shared.items() if name not in AskedPrivacy.__annotations__),
            *further,
        ]
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        function.__annotations__ = {entry.name: entry.annotation for entry in parameters} | {
            "return": signature.return_annotation
        }
        return function

    return with_options
