"""The privacy statement of a release: what was spent, in which sense, resting on what."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.foundation.values import no_less, require_kinds, require_known, shown
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit

ARITHMETIC_WORDS = {
    "exact-lattice": "Sums are exact integers and the noise is drawn exactly from a discrete law, so the proof holds for the "
    "program as it ran.",
    "lattice-rounded": "Sums are exact integers; the noise was drawn in floating point and rounded to the integer lattice, so "
    "the proof takes the normal generator as ideal.",
    "idealized": "The proof is for real numbers; the sampler worked in floating point.",
}


@dataclass(frozen=True, slots=True)
class PrivacyStatement:
    """What a release guarantees.

    Attributes
    ----------
    budget : PrivacyBudget
        What was spent.
    neighbors : Neighbors
    arithmetic : str
        ``exact-lattice``, ``lattice-rounded`` or ``idealized``.
    private : bool
        False where an insecure seed was used: the noise can be reproduced and nothing is protected.
    rules : tuple of str
        Bounds, clipping and missing rules, in words.
    version : str
        Version of the library that made the release.
    privacy_unit : PrivacyUnit or None
        Whom the guarantee is for, where that is not one row.
    """

    budget: PrivacyBudget
    neighbors: Neighbors
    arithmetic: str
    private: bool
    rules: tuple[str, ...]
    version: str
    privacy_unit: PrivacyUnit | None = None

    @property
    def rows_per_unit(self) -> int:
        """How many rows of one protected unit count at most."""
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

    def in_words(self) -> str:
        """The statement as text, a paragraph and a list of rules."""
        lines = []
        if not self.private:
            lines.append("NOT PRIVATE: the noise came from an insecure seed and can be reproduced and removed.")
        if self.privacy_unit is not None:
            unit = (
                f"tables that differ by all rows with one value of {self.privacy_unit.column} present or absent (add-remove; the "
                "numbers of units and of rows are private)"
            )
        elif self.neighbors is Neighbors.ADD_REMOVE:
            unit = "tables that differ by one row present or absent (add-remove; the number of rows is private)"
        else:
            unit = "tables that differ in one row's values (replace-one; the number of rows of the table is public)"
        budget = self.budget
        if budget.kind is BudgetKind.ZCDP:
            rho, epsilon = no_less(budget.rho), no_less(budget.to_epsilon(1e-6), 4)
            guarantee = (
                f"The Rényi divergence of order α between the outputs on any two {unit} is at most {rho}·α for every α > 1 "
                f"(ρ-zero-concentrated differential privacy, ρ = {rho}); for example it implies ε = {epsilon} at δ = 1e-06."
            )
        elif budget.kind is BudgetKind.PURE:
            epsilon = no_less(budget.epsilon)
            guarantee = (
                f"The probability of any set of outputs differs by a factor of at most e^{epsilon} (ε-differential privacy, "
                f"ε = {epsilon}) between any two {unit}."
            )
        else:
            epsilon, delta = no_less(budget.epsilon), no_less(budget.delta)
            guarantee = (
                f"The probability of any set of outputs differs by a factor of at most e^{epsilon}, but for an added {delta} "
                f"((ε, δ)-differential privacy, ε = {epsilon}, δ = {delta}), between any two {unit}."
            )
        lines.append(guarantee)
        lines.append(self._protected_unit)
        lines.append(ARITHMETIC_WORDS[self.arithmetic])
        lines.extend(f"- {rule}" for rule in self.rules)
        lines.append(f"Made by dpmoments {self.version}.")
        return "\n".join(lines)

    @property
    def _protected_unit(self) -> str:
        if self.privacy_unit is None:
            return "The protected unit is one row. A person with several rows is protected less: the loss adds up over the rows."
        column, rule = self.privacy_unit.column, self.privacy_unit.missing
        no_unit = "is left out" if rule == "drop" else "is refused"
        return (
            f"The protected unit is {self.privacy_unit.in_words}, chosen at random. A row without a {column} {no_unit}. A person "
            f"with several values of {column} is protected less: the loss adds up over them."
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        unit = {} if self.privacy_unit is None else {"privacy_unit": self.privacy_unit.to_dict()}
        return {
            "budget": self.budget.to_dict(),
            "neighbors": str(self.neighbors),
            "arithmetic": self.arithmetic,
            "private": self.private,
            "rules": list(self.rules),
            "version": self.version,
            **unit,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PrivacyStatement:
        """The inverse of :meth:`to_dict`.

        Raises
        ------
        KeyError, TypeError, ValueError
            If an entry is absent, unknown, or not what it must be.
        """
        require_known(values, (entry.name for entry in fields(cls)), "the privacy statement")
        require_kinds(values, rules=list, version=str)
        if not all(isinstance(rule, str) for rule in values["rules"]):
            raise InputTypeError("the rules of the privacy statement must be texts")
        if values["arithmetic"] not in tuple(ARITHMETIC_WORDS):
            raise InputValueError(f"unknown arithmetic {shown(values['arithmetic'])}")
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
            rules=tuple(values["rules"]),
            version=values["version"],
            privacy_unit=None if of_file is None else PrivacyUnit.from_dict(of_file),
        )
