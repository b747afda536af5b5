"""Privacy statement of a release.

Its budget and definition of privacy, and the basis of the proof.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.foundation.values import require_kinds, require_known
from dpmoments.messages.codes import RULES
from dpmoments.messages.message import Message, messages_of
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit

ARITHMETICS = ("exact-lattice", "lattice-rounded", "idealized")
"""Bases of a proof, codes of messages, from the weakest assumption to the strongest."""
_EXAMPLE_DELTA = 1e-6
"""δ of the example that a zCDP guarantee is translated to."""


@dataclass(frozen=True, slots=True)
class PrivacyStatement:
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
    arithmetic: str
    private: bool
    rules: tuple[Message, ...]
    version: str
    privacy_unit: PrivacyUnit | None = None

    @property
    def rows_per_unit(self) -> int:
        """Contribution bound: rows of a privacy unit that are kept at most."""
        return 1 if self.privacy_unit is None else self.privacy_unit.max_rows

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
        lines.extend(f"- {rule.text()}" for rule in self.rules)
        lines.append(f"Made by dpmoments {self.version}.")
        return "\n".join(lines)

    @property
    def sentences(self) -> tuple[Message, ...]:
        """Guarantee, privacy unit, and basis of the proof."""
        insecure = () if self.private else (Message("not-private"),)
        return (*insecure, self._guarantee, self.unit_message, Message(self.arithmetic))

    @property
    def _guarantee(self) -> Message:
        budget, unit = self.budget, {} if self.privacy_unit is None else {"unit": self.privacy_unit.column}
        about = {"neighbors": str(self.neighbors), **unit}
        if budget.kind is BudgetKind.ZCDP:
            epsilon = budget.to_epsilon(_EXAMPLE_DELTA)
            return Message("zcdp", rho=budget.rho, epsilon=epsilon, delta=_EXAMPLE_DELTA, **about)
        if budget.kind is BudgetKind.PURE:
            return Message("pure-dp", epsilon=budget.epsilon, **about)
        return Message("approximate-dp", epsilon=budget.epsilon, delta=budget.delta, **about)

    @property
    def unit_message(self) -> Message:
        """Privacy unit, and what the guarantee becomes for a person with several of them."""
        unit, kind = self.privacy_unit, str(self.budget.kind)
        if unit is None:
            return Message("unit-is-row", kind=kind)
        return Message("unit-is-rows", column=unit.column, max_rows=unit.max_rows, missing=unit.missing, kind=kind)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        unit = {} if self.privacy_unit is None else {"privacy_unit": self.privacy_unit.to_dict()}
        return {
            "budget": self.budget.to_dict(),
            "neighbors": str(self.neighbors),
            "arithmetic": self.arithmetic,
            "private": self.private,
            "rules": [rule.to_dict() for rule in self.rules],
            "version": self.version,
            **unit,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PrivacyStatement:
        """Return the inverse of :meth:`to_dict`.

        Raises
        ------
        KeyError, TypeError, ValueError
            If an entry is absent, unknown, or invalid.
        """
        require_known(values, (entry.name for entry in fields(cls)), "the privacy statement")
        require_kinds(values, version=str)
        if values["arithmetic"] not in ARITHMETICS:
            raise InputValueError(f"unknown arithmetic '{values['arithmetic']}'")
        if not isinstance(values["private"], bool):
            raise InputTypeError("private must be true or false")
        of_file, neighbors = values.get("privacy_unit"), Neighbors.of(values["neighbors"])
        if of_file is not None and neighbors is not Neighbors.ADD_REMOVE:
            raise InputValueError("a privacy unit of several rows is stated under another relation than add_remove")
        return cls(
            budget=PrivacyBudget.from_dict(values["budget"]),
            neighbors=neighbors,
            arithmetic=values["arithmetic"],
            private=values["private"],
            rules=messages_of(values["rules"], RULES, "rules"),
            version=values["version"],
            privacy_unit=None if of_file is None else PrivacyUnit.from_dict(of_file),
        )
