"""Privacy statement of a release: budget, definition of privacy, basis of the proof."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from dpmoments.base.errors import InputValueError
from dpmoments.base.message import Message, lines_of, messages_of
from dpmoments.base.records import ABSENT_IF_NONE, ReadBy, Record, Rule
from dpmoments.base.wordings import RULES
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit

ARITHMETICS = ("exact-lattice", "lattice-rounded", "idealized")
"""Bases of a proof, codes of messages, from the weakest assumption to the strongest."""
_EXAMPLE_DELTA = 1e-6
"""δ of the example that a zCDP guarantee is translated to."""
ArithmeticName = Annotated[str, Rule(f"one of {', '.join(ARITHMETICS)}", ARITHMETICS.__contains__)]
Rules = Annotated[tuple[Message, ...], ReadBy(lambda values: messages_of(values, RULES, "rules"))]


@dataclass(frozen=True, slots=True)
class PrivacyStatement(Record):
    """Guarantee of a release.

    Attributes
    ----------
    budget : PrivacyBudget
        Budget of the run; its draws lose at most this.
    neighbors : Neighbors
    arithmetic : str
        ``exact-lattice``, ``lattice-rounded`` or ``idealized``.
    private : bool
        False with an insecure seed: the noise can be reproduced, and nothing is protected.
    rules : tuple of Message
        Bounds, clipping and missing rules; ``print(rule)`` prints one as text.
    version : str
        Version of the library that made the release.
    privacy_unit : PrivacyUnit or None
        Privacy unit of the guarantee, if it is not one row.
    """

    budget: PrivacyBudget
    neighbors: Neighbors
    arithmetic: ArithmeticName
    private: bool
    rules: Rules
    version: str
    privacy_unit: Annotated[PrivacyUnit | None, ABSENT_IF_NONE] = None

    def __post_init__(self) -> None:
        if self.privacy_unit is not None and self.neighbors is not Neighbors.ADD_REMOVE:
            raise InputValueError("a privacy unit of several rows is stated under another relation than add_remove")

    @property
    def rows_per_unit(self) -> int:
        """Contribution bound: rows for which a privacy unit pays."""
        return 1 if self.privacy_unit is None else self.privacy_unit.rows_per_unit

    @property
    def epsilon(self) -> float | None:
        """ε, or None for a zCDP budget."""
        return None if self.budget.kind is BudgetKind.ZCDP else self.budget.epsilon

    @property
    def delta(self) -> float | None:
        """δ, or None for a zCDP budget."""
        return None if self.budget.kind is BudgetKind.ZCDP else self.budget.delta

    @property
    def rho(self) -> float | None:
        """ρ, or None unless the budget is zCDP."""
        return self.budget.rho if self.budget.kind is BudgetKind.ZCDP else None

    def describe(self) -> str:
        """Return the statement as text, a paragraph and a list of rules."""
        lines = [message.text() for message in self.sentences]
        lines.extend(f"- {line}" for line in lines_of(self.rules))
        lines.append(f"Made by dpmoments {self.version}.")
        return "\n".join(lines)

    @property
    def sentences(self) -> tuple[Message, ...]:
        """Guarantee, privacy unit, and basis of the proof."""
        budget = self.budget
        about = {"neighbors": str(self.neighbors), **budget.facts}
        if self.privacy_unit is not None:
            about["unit"] = self.privacy_unit.column
        if budget.kind is BudgetKind.ZCDP:
            guarantee = Message("zcdp", epsilon=budget.to_epsilon(_EXAMPLE_DELTA), delta=_EXAMPLE_DELTA, **about)
        elif budget.kind is BudgetKind.PURE:
            del about["delta"]
            guarantee = Message("pure-dp", **about)
        else:
            guarantee = Message("approximate-dp", **about)
        insecure = () if self.private else (Message("not-private"),)
        return (*insecure, guarantee, self.unit_message, Message(self.arithmetic))

    @property
    def unit_message(self) -> Message:
        """Privacy unit, and what the guarantee becomes for a person with several of them."""
        unit, kind = self.privacy_unit, str(self.budget.kind)
        if unit is None:
            return Message("unit-is-row", kind=kind)
        bound = {} if unit.max_rows is None else {"max_rows": unit.max_rows}
        return Message("unit-is-rows", column=unit.column, missing=unit.missing, kind=kind, **bound)
