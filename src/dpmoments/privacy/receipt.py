"""Receipt of a run: every draw with its loss, checked against the stated cost."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields, replace
from fractions import Fraction
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from dpmoments.base.errors import InputValueError, shown
from dpmoments.base.message import Message, lines_of, messages_of
from dpmoments.base.records import ABSENT_IF_NONE, AS_IT_IS, NUMBERED, ReadBy, Record, Rule, read_entries
from dpmoments.base.values import rounded_up, to_plain
from dpmoments.base.wordings import QUERIES, RULES
from dpmoments.privacy.accounting import Loss, LossUnit, allowance_for_rows
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import MAX_COMPOSED_COORDINATES
from dpmoments.privacy.laws import LAWS, DrawLaw
from dpmoments.privacy.sensitivity import Sensitivity, sensitivity_from_dict
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


# The receipt: every draw with its loss, checked against the stated cost.

_DRAW = {
    "what": Annotated[Message, ReadBy(lambda value: Message.from_dict(value, QUERIES))],
    "law": dict,
    "sensitivity": dict,
    "loss": float,
    "delta": float,
    "size": Annotated[int, NUMBERED],
    "claim": PrivacyBudget | None,
    "group": str | None,
}
_RECEIPT = {
    "protected_unit": Annotated[PrivacyUnit | None, ReadBy(PrivacyUnit.of_file)],
    "neighbors": Neighbors,
    "cost": PrivacyBudget,
    "loss_unit": LossUnit,
    "allowance": float,
    "draws": tuple[Annotated[Any, AS_IT_IS], ...],
    "before": Annotated[dict | None, ABSENT_IF_NONE],
}
"""Entries of a file, and their kinds."""
# Max number of different losses. Exact sums of more take minutes, as their denominators multiply.
_MAX_DIFFERENT_LOSSES = 10_000
_EXHAUSTED = 1.0 - 1e-9
"""Min spent fraction of the budget of a plan that says it exhausts it."""
_FINDS_LEVELS = ("level-names", "level-selection")
"""Query and distribution of every draw before a run."""


@dataclass(frozen=True)
class Draw:
    """One draw of noise."""

    what: Message  # the query that got noise
    law: DrawLaw
    sensitivity: Sensitivity
    loss: Loss
    size: int  # number of coordinates with separate noise
    claim: PrivacyBudget | None = None  # the (ε, δ) that the plan states for it, for a draw with an exact curve
    group: str | None = None  # the level of its group, if it is for one of several disjoint groups of rows

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return {
            "what": self.what.to_dict(),
            "law": to_plain(self.law.to_dict()),
            "sensitivity": to_plain(self.sensitivity.to_dict()),
            "loss": rounded_up(self.loss.amount),
            "delta": rounded_up(self.loss.delta),
            "size": self.size,
            "claim": None if self.claim is None else self.claim.to_dict(),
            "group": self.group,
        }

    @classmethod
    def from_dict(cls, values: Mapping[str, Any], unit: LossUnit) -> Draw:
        """Read a draw and recompute its sensitivity and loss."""
        # Refuse one that is stated as less than it is.
        given = read_entries(values, _DRAW, "receipt.draws")
        entries = given["law"]
        name = entries.pop("name")
        if not isinstance(name, str) or name not in LAWS:
            raise InputValueError(f"unknown noise distribution {shown(name)}: use one of {', '.join(LAWS)}")
        known = [entry.name for entry in fields(LAWS[name])]
        if set(entries) != set(known):
            raise InputValueError(f"the parameters of a {name} draw are {', '.join(known)}, and the file has others")
        law, sensitivity = LAWS[name](**entries), sensitivity_from_dict(given["sensitivity"])
        loss = law.loss(sensitivity, unit, given["claim"])
        if (given["loss"], given["delta"]) != (rounded_up(loss.amount), rounded_up(loss.delta)):
            query = shown(given["what"].text("short"))
            raise InputValueError(f"the loss of {query} is not the loss of its distribution at its sensitivity")
        return cls(given["what"], law, sensitivity, loss, given["size"], given["claim"], given["group"])


@dataclass(frozen=True)
class Receipt:
    """Privacy loss of a run, draw by draw.

    Attributes
    ----------
    neighbors : Neighbors
    cost : PrivacyBudget
        Budget of these draws: the stated one, less what was spent ``before``.
    unit : LossUnit
        Unit in which the losses add up.
    draws : tuple of Draw
        Each with the sensitivity of one row, and its loss on one row.
    privacy_unit : PrivacyUnit or None
        Privacy unit of the cost, if it is not one row.
    before : Receipt or None
        Receipt of the run that found levels before this one. Both costs add up.
    """

    neighbors: Neighbors
    cost: PrivacyBudget
    unit: LossUnit
    draws: tuple[Draw, ...]
    privacy_unit: PrivacyUnit | None = None
    before: Receipt | None = None

    def __post_init__(self) -> None:
        if self.before is not None and any(draw.group is not None for draw in self.before.draws):
            raise InputValueError("levels are found in all rows, and a draw of the receipt found them in a group")
        if not self.total.within(self.allowance):
            raise InputValueError("the draws of this receipt add up to more than the stated cost")
        if self.unit is LossUnit.GAUSSIAN_RHO and sum(draw.size for draw in self.draws) > MAX_COMPOSED_COORDINATES:
            raise InputValueError(
                "the draws of this receipt have more coordinates than their composition is proven for"
            )
        bounded = False
        for draw in self.draws:
            if draw.law.eigenvalue_floor > 0.0 and not bounded:
                raise InputValueError(
                    "a draw of this receipt relies on a bound on the smallest eigenvalue that was not drawn"
                )
            bounded |= draw.law.delta_is_of_bound

    @property
    def whole_cost(self) -> PrivacyBudget:
        """The stated budget, of these draws and of those before them."""
        return self.cost if self.before is None else self.before.cost + self.cost

    @property
    def found(self) -> Mapping[str, Draw]:
        """Draws that found the levels of columns, by column."""
        return {str(draw.what.facts["column"]): draw for draw in (() if self.before is None else self.before.draws)}

    def rules(self, of_schema: Iterable[Message]) -> tuple[Message, ...]:
        """Return the schema's rules, with how levels were found, and of which columns none were."""
        at = {
            name: {"epsilon": rounded_up(draw.loss.amount), "delta": rounded_up(draw.loss.delta)}
            for name, draw in self.found.items()
        }
        rules = []
        for rule in of_schema:
            how = at.pop(str(rule.facts["column"]), None) if rule.code == "public-levels" else None
            rules.append(rule if how is None else Message("found-levels", **rule.facts, **how))
        return (*rules, *(Message("no-levels-found", column=name) for name in at))

    @property
    def rows_per_unit(self) -> int:
        """Contribution bound: rows of a unit that are kept at most."""
        return 1 if self.privacy_unit is None else self.privacy_unit.rows_per_unit

    @property
    def allowance(self) -> Loss:
        """Largest total loss of the draws on one row."""
        return allowance_for_rows(self.cost, self.unit, self.privacy_unit)

    @cached_property
    def total(self) -> Loss:
        """Total loss of the draws on one row."""
        return total_loss(_loss_by_group(self.draws), self.unit, self.neighbors)

    @property
    def exhausts(self) -> bool:
        """True if all but a billionth of the stated cost was spent."""
        spent, allowed, share = self.total, self.allowance, Fraction(_EXHAUSTED)
        return spent.amount >= share * allowed.amount and spent.delta >= share * allowed.delta

    def require_for(self, statement: PrivacyStatement) -> None:
        """Raise ValueError unless relation and cost match this privacy statement."""
        if any(draw.group is not None for draw in self.draws):
            raise InputValueError("the receipt is of several groups of rows, and this release of all rows")
        self.require_within(statement)

    def require_within(self, statement: PrivacyStatement) -> None:
        """Raise ValueError unless relation, cost and unit fit a statement of several groups."""
        if self.neighbors is not statement.neighbors or self.whole_cost != statement.budget:
            raise InputValueError("the receipt is not for the stated budget and relation")
        unit = statement.privacy_unit
        if self.privacy_unit != unit:
            raise InputValueError("the receipt is not for the stated protected unit")
        of_levels = None if unit is None else replace(unit, max_rows=1)  # one name of each unit
        if self.before is not None and (self.before.neighbors, self.before.privacy_unit) != (self.neighbors, of_levels):
            raise InputValueError("the receipt of the levels that were found is for another relation or protected unit")

    def of_group(self, group: str) -> Receipt:
        """Return the draws of one of several disjoint groups of rows, and draws of no group."""
        draws = tuple(replace(draw, group=None) for draw in self.draws if draw.group in (None, group))
        return replace(self, draws=draws)

    def labeled(self, group: str) -> tuple[Draw, ...]:
        """Return the draws labeled with one of several disjoint groups of rows."""
        return tuple(replace(draw, group=group) for draw in self.draws)

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return {
            "protected_unit": "row" if self.privacy_unit is None else self.privacy_unit.to_dict(),
            "neighbors": str(self.neighbors),
            "cost": self.cost.to_dict(),
            "loss_unit": str(self.unit),
            "allowance": rounded_up(self.allowance.amount),
            "draws": [draw.to_dict() for draw in self.draws],
        } | ({} if self.before is None else {"before": self.before.to_dict()})

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> Receipt:
        """Read a receipt and recompute its total; raise KeyError, TypeError or ValueError."""
        try:
            with np.errstate(all="ignore"):  # a loss that comes out as NaN is refused
                return cls._read(values)
        except (ArithmeticError, IndexError) as reason:
            raise InputValueError("the receipt holds a number that is out of range") from reason

    @classmethod
    def _read(cls, values: Mapping[str, Any]) -> Receipt:
        given = read_entries(values, _RECEIPT, "receipt")
        unit, neighbors, cost, privacy_unit = (
            given[name] for name in ("loss_unit", "neighbors", "cost", "protected_unit")
        )
        if privacy_unit is not None and neighbors is not Neighbors.ADD_REMOVE:
            raise InputValueError("the receipt is for units of several rows under another relation than add_remove")
        allowed = allowance_for_rows(cost, unit, privacy_unit)
        draws = tuple(Draw.from_dict(draw, unit) for draw in given["draws"])
        if any(draw.sensitivity.neighbors is not neighbors for draw in draws):
            raise InputValueError("a draw of the receipt has the sensitivity of another relation")
        if given["allowance"] != rounded_up(allowed.amount):
            raise InputValueError("the receipt's allowance does not equal its cost")
        if len({draw.loss.amount for draw in draws}) > _MAX_DIFFERENT_LOSSES:
            raise InputValueError(
                f"the draws of the receipt have more than {_MAX_DIFFERENT_LOSSES:,} different losses, which no run has"
            )
        before = given.get("before")
        first = None if before is None else Receipt.from_dict(before)
        if first is not None and (
            first.before is not None or {(draw.what.code, draw.law.name) for draw in first.draws} != {_FINDS_LEVELS}
        ):
            raise InputValueError("the receipt of what was drawn before has other draws than those that find levels")
        return cls(neighbors, cost, unit, draws, privacy_unit, first)

    def lines(self) -> list[tuple[str, str, str, str]]:
        """Return query, distribution, sensitivity (in units of 1) and loss of draws, and the sum."""
        shown = [
            (
                (draw.what if draw.group is None else draw.what.within(draw.group)).text("short"),
                draw.law.name,
                f"{draw.sensitivity.name} = {draw.sensitivity.value / draw.sensitivity.units:.6g}",
                str(draw.loss),
            )
            for draw in self.draws
        ]
        together = "together" if self.before is None else "together, after levels were found"
        if self.privacy_unit is not None and self.privacy_unit.max_rows is not None:
            together += f", on one row of {self.rows_per_unit:,}"
        before = [] if self.before is None else self.before.lines()[:-1]
        return [*before, *shown, (together, "", f"of {self.allowance}", str(self.total))]

    @property
    def on_a_unit_text(self) -> str | None:
        """Total loss of the draws on a unit of several rows; None if it pays for one row."""
        if self.privacy_unit is None or self.privacy_unit.max_rows is None:
            return None
        return f"on a unit of {self.rows_per_unit:,} rows: no more than {self.whole_cost}"


@dataclass(frozen=True)
class PooledReceipt(Receipt):
    """Receipts of releases of disjoint tables together; a draw's group is its table.

    A row is in one of the tables, and stays in it if it is replaced: of the tables' totals the largest counts.
    """

    @classmethod
    def of(cls, receipts: Mapping[str, Receipt], cost: PrivacyBudget) -> PooledReceipt:
        """Return the receipt of these tables by name, whose losses are counted in one unit."""
        first = next(iter(receipts.values()))
        draws = tuple(draw for table, receipt in receipts.items() for draw in receipt.labeled(table))
        return cls(first.neighbors, cost, first.unit, draws, first.privacy_unit)

    @cached_property
    def total(self) -> Loss:
        """Total loss of the draws for the table that lost most."""
        return total_loss(_loss_by_group(self.draws), self.unit, Neighbors.ADD_REMOVE)

    def require_for(self, statement: PrivacyStatement) -> None:
        """Check like :meth:`require_within`, since the release covers all tables."""
        self.require_within(statement)


def _loss_by_group(draws: Iterable[Draw]) -> dict[str | None, Loss]:
    """Return the total loss of the draws for each group of rows; under None for no group."""
    losses: dict[str | None, Loss] = {}
    for draw in draws:
        losses[draw.group] = losses[draw.group] + draw.loss if draw.group in losses else draw.loss
    return losses


def total_loss(by_group: Mapping[str | None, Loss], unit: LossUnit, neighbors: Neighbors) -> Loss:
    """Return the total loss over disjoint groups.

    Losses of no group count in full; of the groups the largest counts, or the two largest.

    A row that is added or removed is in one group, so that the other groups' queries do not change; a row that is replaced may
    leave one group for another (``docs/evidence/derivations/composition.md``).
    """
    alone = by_group.get(None, Loss.none(unit))
    if by_group.keys() <= {None}:
        return alone + Loss.none(unit)
    groups = [loss for group, loss in by_group.items() if group is not None]
    touched = 1 if neighbors is Neighbors.ADD_REMOVE else 2
    parts = [[loss.amount for loss in groups], [loss.delta for loss in groups]]
    largest = [sum(sorted(part, reverse=True)[:touched], Fraction(0)) for part in parts]
    return alone + Loss(unit, *largest)
