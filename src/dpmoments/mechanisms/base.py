"""Contract of a mechanism: frozen options, a plan made without data, then one run.

``config.plan(shape, budget, neighbors)`` calibrates and refuses, reading no data; the plan states its exact cost, its noise
model and its expected error; ``plan.run(rows, privacy_filter)`` asks the filter for noise. The class attributes state what a
mechanism supports, for the registry, the command line, the forecast, the docs table and the contract tests.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, Generic, Self, TypeVar

from dpmoments.base.errors import InputValueError
from dpmoments.base.message import Message
from dpmoments.mechanisms.lattice_noise import COUNT_SHARE, count_error, count_scale, noisy_count, split_for_count
from dpmoments.mechanisms.shape import Arithmetic, MomentShape, RunResult
from dpmoments.moments.models import NoiseModel
from dpmoments.privacy.accounting import LossUnit, allowance, budget_for_rows
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget, PrivacyRequest
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.rows.rows import Rows
from dpmoments.rows.units import ROUNDS

# Units in which the losses of a mechanism's draws add up, by the kind of budget.

_LOSS_UNITS: Mapping[BudgetKind, LossUnit] = MappingProxyType(
    {BudgetKind.PURE: LossUnit.EPSILON, BudgetKind.ZCDP: LossUnit.RHO, BudgetKind.APPROXIMATE: LossUnit.EPSILON_DELTA}
)
GAUSSIAN_LOSS_UNITS = MappingProxyType({**_LOSS_UNITS, BudgetKind.APPROXIMATE: LossUnit.GAUSSIAN_RHO})
"""Loss units of mechanisms whose every draw under (ε, δ) is Gaussian."""
ZCDP_LOSS_UNITS = MappingProxyType({**_LOSS_UNITS, BudgetKind.APPROXIMATE: LossUnit.RHO})
"""Loss units of mechanisms whose draws under (ε, δ) are of several kinds, all of them zCDP."""

Noisy = TypeVar("Noisy")
PlanType = TypeVar("PlanType", bound="CalibratedPlan[Any]", covariant=True)


@dataclass(frozen=True)
class CalibratedPlan(ABC, Generic[Noisy]):
    """Calibrated mechanism of any kind, made without data."""

    mechanism: ConfiguredMechanism[Any]
    shape: MomentShape
    neighbors: Neighbors
    cost: PrivacyBudget  # exact privacy loss of `run`
    # part of it for the number of rows, if that is private and has its own planned draw
    count_loss: PrivacyBudget | None = field(default=None, kw_only=True)
    # part of it for the number of rows of a weighted table, which no moment holds; None if that is public
    rows_loss: PrivacyBudget | None = field(default=None, kw_only=True)
    # reason for the choice by `auto`, and how to do better; None if the mechanism was named
    chosen_because: Message | None = field(default=None, kw_only=True)

    arithmetic: ClassVar[Arithmetic] = Arithmetic.IDEALIZED

    @property
    def expected_count_error(self) -> float | None:
        """RMSE of the number of rows: 0 if it is public, None if unknown or not released."""
        if self.count_loss is not None:
            return count_error(self.count_loss)
        return 0.0 if self.count_is_public else None

    @property
    def details(self) -> Mapping[str, Any]:
        """Calibrated numbers (noise scale, degrees of freedom, …), for the record of the release."""
        return {}

    @property
    def loss_unit(self) -> LossUnit:
        """Unit in which the losses of its draws add up to the cost."""
        return self.mechanism.loss_units[self.cost.kind]

    @property
    def privacy_unit(self) -> PrivacyUnit | None:
        """Privacy unit of the cost, if it is not one row."""
        return None

    @property
    def passes(self) -> int | None:
        """Number of passes over the data, or None if it depends on the run."""
        return None

    @property
    def most_passes(self) -> int | None:
        """Most passes over the data, or None if unknown."""
        return self.passes

    @property
    def unspent_reason(self) -> str | None:
        """Reason why a run may spend less than the stated cost; None if it spends all of it."""
        return self.mechanism.unspent_reason

    @abstractmethod
    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> Noisy:
        """Read the rows and ask for noise."""
        # The one step that spends the budget, by a filter opened for this run.

    @property
    def count_is_public(self) -> bool:
        """True if the exact number of kept rows is released; else it has noise, or is not released."""
        return self.shape.count_is_public(self.neighbors)

    def noisy_rows(self, rows: Rows, privacy_filter: PrivacyFilter) -> dict[str, float]:
        """Return the noisy number of rows of a weighted table, if it is drawn."""
        if self.rows_loss is None:
            return {}
        return {"n_rows": noisy_count(rows.count(), privacy_filter, self.rows_loss, self.neighbors)}

    def released_count(self, count: int, privacy_filter: PrivacyFilter) -> float | None:
        """Return the number of rows."""
        # Exact if public, noisy if a separate draw was planned, else None.
        if self.count_loss is not None:
            return noisy_count(count, privacy_filter, self.count_loss, self.neighbors)
        return float(count) if self.count_is_public else None

    @property
    def own_count_noise(self) -> tuple[float, bool]:
        """Noise scale of a separate draw for the row count (0: none), and True if it is Laplace."""
        if self.count_loss is None:
            return 0.0, False
        return count_scale(self.count_loss), self.count_loss.kind is BudgetKind.PURE

    def check_rows(self, rows: Rows) -> None:
        """Raise for rows without the shape, the rules, or the relation of this plan."""
        if rows.n_features != self.shape.n_features:
            raise InputValueError(
                f"the plan is for {self.shape.n_features} features and the rows have {rows.n_features}: make the "
                "plan from the same schema"
            )
        if rows.neighbors is not self.neighbors:
            raise InputValueError(
                f"the plan is for neighbors='{self.neighbors!s}' and the rows were opened for '"
                f"{rows.neighbors!s}', which has other sensitivities: make both for the same relation"
            )
        if rows.schema.drops_rows and self.count_is_public:
            raise InputValueError(
                "the schema has a rule that drops rows, but the plan is for a schema without one, whose row count "
                "is public: make the plan from the same schema"
            )


@dataclass(frozen=True)
class ConfiguredMechanism(ABC, Generic[PlanType]):
    """Frozen options of one published algorithm: subclasses are dataclasses of options."""

    budget_kinds: ClassVar[frozenset[BudgetKind]]
    supported_neighbors: ClassVar[frozenset[Neighbors]] = frozenset(Neighbors)
    loss_units: ClassVar[Mapping[BudgetKind, LossUnit]] = _LOSS_UNITS
    """Unit in which the losses of its draws add up, by the kind of budget."""
    needs_row_norm: ClassVar[bool] = True
    most_features: ClassVar[int | None] = None
    """Maximum number of features, if any."""
    unspent_reason: ClassVar[str | None] = None
    """Reason why a run may spend less than its cost, if it may."""
    counts_rows: ClassVar[bool] = False
    """True if a run pays for a private number of rows even if no mean is released."""
    summary: ClassVar[str]
    source: ClassVar[str]
    takes_weights: ClassVar[bool] = False
    """True if it sums rows times their sampling weights."""
    noun: ClassVar[str] = "mechanism"
    """Name of its kind in messages."""
    public_name: ClassVar[str | None] = None
    """Registry name, if it is not the class name with hyphens."""

    @classmethod
    def registry_name(cls) -> str:
        """Return the name that users write: ``MatrixLaplace`` → ``matrix-laplace``."""
        return cls.public_name or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower()

    @property
    def name(self) -> str:
        """Registry name."""
        return self.registry_name()

    @property
    def options(self) -> dict[str, Any]:
        """Options as plain values."""
        return {option.name: getattr(self, option.name) for option in fields(self)}

    def plan(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors | str) -> PlanType:
        """Calibrate to ``budget`` without reading data.

        Returns
        -------
        CalibratedPlan
            A plan with a ``cost`` of at most ``budget``.
        """
        neighbors = Neighbors.of(neighbors)
        self.check_support(shape, budget, neighbors)
        return self.supported_plan(shape, budget, neighbors)

    def plan_for(self, shape: MomentShape, request: PrivacyRequest, *, supported: bool = False) -> PlanType:
        """Return the plan for rows whose run costs a privacy unit no more than the request's budget.

        The loss per row depends on how losses add up, which is settled when ``auto`` chooses a mechanism: it chooses at its own
        loss per row, and the chosen mechanism is calibrated to the one that follows from its loss units. ``supported`` is True
        if the arguments have passed :meth:`check_support`.
        """
        budget, neighbors, unit = request.budget, request.neighbors, request.privacy_unit
        if not supported:
            self.check_support(shape, budget, neighbors)
        if unit is None or unit.rows_per_unit == 1:
            return self.supported_plan(shape, budget, neighbors)
        loss_unit = self.loss_units[budget.kind]
        first = self.supported_plan(shape, budget_for_rows(budget, loss_unit, unit), neighbors)
        left = budget_for_rows(spent_by_units(first.cost, budget), first.loss_unit, unit)
        plan = first
        if first.cost != left:
            plan = replace(first.mechanism.plan(shape, left, neighbors), chosen_because=first.chosen_because)
        if plan.chosen_because is None:
            return plan
        reason = plan.chosen_because
        return replace(plan, chosen_because=Message(reason.code, **reason.facts, unit_rows=unit.rows_per_unit))

    def supported_plan(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> PlanType:
        """Return the plan; arguments must already have passed :meth:`check_support`."""
        count_loss, rest = None, budget
        if neighbors.table_size_is_public and not shape.count_is_public(neighbors):
            shape = replace(shape, n_rows=None)
            if not (shape.mean or self.counts_rows):
                count_loss, rest = split_for_count(self.drawable_budget(budget))
        plan = self.calibrate(shape, rest, neighbors)
        if count_loss is not None:
            plan = replace(plan, cost=budget, count_loss=count_loss)
        if not budget.covers(plan.cost):
            raise AssertionError(f"{self.name} planned to spend {plan.cost} of {budget}: a defect, please report it")
        return plan

    def check_support(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> None:
        """Raise for arguments that cannot work for any number of rows, and say what to use instead."""
        who = f"{self.noun} {self.name!r}"
        if budget.kind not in self.budget_kinds:
            refused, advice = f"{who} cannot spend a budget of {budget}", self.budget_advice()
            in_options = re.sub(r"\b(epsilon|delta|rho)\b", r"--\1", advice)
            raise InputValueError(f"{refused}: {advice}", shell=f"{refused}: {in_options}")
        if neighbors not in self.supported_neighbors:
            known = " or ".join(sorted(map(str, self.supported_neighbors)))
            raise InputValueError(f"{who} is not defined under {neighbors}: use {known}")
        if shape.weight_bits and not self.takes_weights:
            raise InputValueError(
                f"{who} does not take sampling weights: its steps are for rows that count alike. Leave the mechanism out, or use "
                "'standardized' or an additive mechanism such as 'gaussian' or 'matrix-laplace'"
            )
        if self.most_features is not None and shape.n_features > self.most_features:
            refused = (
                f"{who} takes at most {self.most_features} feature, and the table has {shape.n_features}. Give columns "
                "bounds or scale ranges and leave the mechanism out, or use coinpress"
            )
            raise InputValueError(f"{refused}; dpm.release_mean takes any number of columns.", shell=f"{refused}.")
        if self.needs_row_norm and shape.row_norm is None:
            raise InputValueError(
                f"{who} needs a bound on the norm of a row and the schema gives none: give every column bounds, or "
                "use a mechanism that needs none (dpmoments mechanisms lists them)"
            )

    def drawable_budget(self, budget: PrivacyBudget) -> PrivacyBudget:
        """Return the total loss (ε, ρ or (ε, δ)) that a budget allows its draws, to divide."""
        return allowance(budget, self.loss_units[budget.kind]).as_budget

    def budget_advice(self) -> str:
        """Return the budgets to use, for a refusal."""
        pure, approximate, zcdp = (kind in self.budget_kinds for kind in BudgetKind)
        of_epsilon = "epsilon, with or without delta" if pure else "epsilon and delta > 0"
        if not approximate:
            of_epsilon = "epsilon only (delta = 0)" if pure else ""
        separator = ", or " if pure and approximate else " or "
        return f"give it {separator.join(filter(None, [of_epsilon, 'rho' if zcdp else '']))}"

    @abstractmethod
    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> PlanType:
        """Make the plan; ``plan`` has already checked the class attributes."""


def split_for_rows(
    whole: PrivacyBudget, shape: MomentShape, neighbors: Neighbors
) -> tuple[PrivacyBudget | None, PrivacyBudget]:
    """Return the budget of a weighted table's number of rows, if it is drawn, and the rest."""
    if not shape.weight_bits or neighbors.count_is_public(shape.drops_rows):
        return None, whole
    of_rows, rest = whole.split(COUNT_SHARE, 1.0 - COUNT_SHARE)
    return of_rows, rest


def spent_by_units(row_cost: PrivacyBudget, budget: PrivacyBudget) -> PrivacyBudget:
    """Return what a run spends of a budget for units: pure ε if its rows spend no δ."""
    pure = row_cost.kind is BudgetKind.PURE and budget.kind is BudgetKind.APPROXIMATE
    return PrivacyBudget.pure(budget.epsilon) if pure else budget


@dataclass(frozen=True)
class Plan(CalibratedPlan[RunResult]):
    """Calibrated :class:`Mechanism`."""

    mechanism: Mechanism

    @property
    def model(self) -> NoiseModel | None:
        """Noise model that every run states; None if it depends on a run's draws."""
        return None

    def model_entries(self, diagnostics: Mapping[str, Any], receipt: Receipt) -> Mapping[str, Any] | None:
        """Return the entries of a run's noise model that its record implies."""
        # None if the run states no model.
        return None if self.model is None else self.model.to_dict()

    def rules_of_run(self, diagnostics: Mapping[str, Any]) -> tuple[Message, ...]:
        """Return the treatment of rows in one run, one message per rule."""
        return ()

    @property
    def expected_error(self) -> float | None:
        """RMS of ‖Ĝ − G‖_F in unit-ball units before any repair, or None if unknown."""
        return None


@dataclass(frozen=True)
class Mechanism(ConfiguredMechanism[Plan]):
    """Frozen options of one algorithm for the second moment. Count and mean are optional."""


# One plan run on the bounded rows of each privacy unit.
#
# Group privacy extends its guarantee to units of at most k rows; units of a bounded total weight are as one row.
#
# No mechanism knows about units. Its sensitivities are for one row, and it is calibrated to the loss per row that the cost for k
# rows leaves (``docs/evidence/derivations/privacy-units.md``).


@dataclass(frozen=True)
class OuterPlan(CalibratedPlan[Noisy]):
    """Plan that runs another, ``inner``, on chosen rows."""

    inner: CalibratedPlan[Any]

    @classmethod
    def around(cls, inner: CalibratedPlan[Any], cost: PrivacyBudget, **own: Any) -> Self:
        """Make the plan of this cost."""
        because = inner.chosen_because
        return cls(inner.mechanism, inner.shape, inner.neighbors, cost, inner=inner, chosen_because=because, **own)

    @property
    def loss_unit(self) -> LossUnit:
        return self.inner.loss_unit

    @property
    def unspent_reason(self) -> str | None:
        return self.inner.unspent_reason

    @property
    def details(self) -> Mapping[str, Any]:
        return self.inner.details


@dataclass(frozen=True)
class UnitsPlan(OuterPlan[Noisy]):
    """Plan of ``inner``, which is for rows, for bounded units, as is the cost."""

    unit: PrivacyUnit

    def __post_init__(self) -> None:
        if self.neighbors is not Neighbors.ADD_REMOVE:
            raise InputValueError("privacy units need add_remove: under replace_one the number of kept rows is private")
        if not budget_for_rows(self.cost, self.inner.loss_unit, self.unit).covers(self.inner.cost):
            raise InputValueError("the plan for rows costs more than a row's part of the cost for units")

    @classmethod
    def of(cls, plan: CalibratedPlan[Noisy], budget: PrivacyBudget, unit: PrivacyUnit) -> UnitsPlan[Noisy]:
        """Return the plan for units."""
        # From the plan for rows that `plan_for` made with this budget.
        return UnitsPlan.around(plan, spent_by_units(plan.cost, budget), unit=unit)

    @property
    def privacy_unit(self) -> PrivacyUnit:
        return self.unit

    @property
    def passes(self) -> int | None:
        return None if self.inner.passes is None else ROUNDS + self.inner.passes

    @property
    def most_passes(self) -> int | None:
        return None if self.inner.most_passes is None else ROUNDS + self.inner.most_passes

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> Noisy:
        """Bound units by a key drawn for this run, and run the plan for rows on them."""
        if rows.privacy_unit != self.unit:
            raise InputValueError("the rows were opened for another privacy unit than the plan's, or for none")
        noisy: Noisy = self.inner.run(rows.bounded(privacy_filter.selection_key()), privacy_filter)
        return noisy
