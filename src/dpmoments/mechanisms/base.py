"""The contract of a mechanism: frozen options, a plan made without data, then one run.

``config.plan(shape, budget, neighbors)`` calibrates and refuses whatever cannot be done, reading no data; the plan states its
exact cost, its noise model and its expected error; ``plan.run(rows, privacy_filter)`` asks the filter for noise. The class
attributes say what a mechanism supports: the registry, the command line, the forecast, the docs table and the contract tests
read them.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any, ClassVar, Generic, TypeVar

from dpmoments.foundation.errors import InputValueError
from dpmoments.mechanisms.lattice_noise import count_error, count_scale, noisy_count, split_for_count
from dpmoments.mechanisms.shape import Arithmetic, MomentShape, RunResult
from dpmoments.mechanisms.synthetic_spectrum import ErrorsOnTable, SyntheticSpectrum, measured_errors
from dpmoments.messages.message import Message
from dpmoments.noise.models import NoiseModel
from dpmoments.privacy.accounting import LossUnit, allowance
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.rows.rows import Rows

# In which unit the losses of a mechanism's draws add up, by the kind of budget.

_LOSS_UNITS: Mapping[BudgetKind, LossUnit] = MappingProxyType(
    {
        BudgetKind.PURE: LossUnit.EPSILON,
        BudgetKind.ZCDP: LossUnit.RHO,
        BudgetKind.APPROXIMATE: LossUnit.EPSILON_DELTA,
    }
)
GAUSSIAN_LOSS_UNITS = MappingProxyType({**_LOSS_UNITS, BudgetKind.APPROXIMATE: LossUnit.GAUSSIAN_RHO})
"""For mechanisms whose every draw under (ε, δ) is Gaussian."""
ZCDP_LOSS_UNITS = MappingProxyType({**_LOSS_UNITS, BudgetKind.APPROXIMATE: LossUnit.RHO})
"""For mechanisms whose draws under (ε, δ) are of several kinds, all of them zCDP."""

Noisy = TypeVar("Noisy")
PlanType = TypeVar("PlanType", bound="CalibratedPlan[Any]", covariant=True)


@dataclass(frozen=True)
class CalibratedPlan(ABC, Generic[Noisy]):
    """A calibrated mechanism of any kind, made without data.

    Attributes
    ----------
    shape : MomentShape
    cost : PrivacyBudget
        Exactly what :meth:`run` spends.
    count_loss : PrivacyBudget or None
        The part of it for the number of rows, where that is private and has a draw of its own that was planned beforehand.
    chosen_because : Message or None
        Why ``auto`` chose the mechanism, and what it would take to do better; None where it was named.
    """

    mechanism: ConfiguredMechanism[Any]
    shape: MomentShape
    neighbors: Neighbors
    cost: PrivacyBudget
    count_loss: PrivacyBudget | None = field(default=None, kw_only=True)
    chosen_because: Message | None = field(default=None, kw_only=True)

    arithmetic: ClassVar[Arithmetic] = Arithmetic.IDEALIZED

    @property
    def expected_count_error(self) -> float | None:
        """Root mean square error of the number of rows: 0 where it is public, None where it is not known or not released."""
        if self.count_loss is not None:
            return count_error(self.count_loss)
        return 0.0 if self.count_is_public else None

    @property
    def details(self) -> Mapping[str, Any]:
        """The calibrated numbers (noise scale, degrees of freedom, …), for the record of the release."""
        return {}

    @property
    def loss_unit(self) -> LossUnit:
        """In which the losses of its draws add up to the cost."""
        return self.mechanism.loss_units[self.cost.kind]

    @property
    def privacy_unit(self) -> PrivacyUnit | None:
        """For whom the cost is, where that is not one row."""
        return None

    @property
    def passes(self) -> int | None:
        """How often a run goes over the table, where that is known before it; else None."""
        return None

    @property
    def unspent_reason(self) -> str | None:
        """Why a run may spend less than the stated cost; None where it spends all of it."""
        return None

    @abstractmethod
    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> Noisy:
        """Read the rows and ask for noise: the one step that spends the budget.

        Parameters
        ----------
        privacy_filter : PrivacyFilter
            Opened for this plan and this run.
        """

    @property
    def count_is_public(self) -> bool:
        """Whether the number of rows that count is released as it is; else it has noise, or is not released."""
        return self.shape.count_is_public(self.neighbors)

    def released_count(self, count: int, privacy_filter: PrivacyFilter) -> float | None:
        """The number of rows: exact where it is public, noisy where that was planned for it alone, else None."""
        if self.count_loss is not None:
            return noisy_count(count, privacy_filter, self.count_loss, self.neighbors)
        return float(count) if self.count_is_public else None

    @property
    def own_count_noise(self) -> tuple[float, bool]:
        """Scale of the noise of a draw that is for the number of rows alone, and whether it is Laplace; 0 where there is none."""
        if self.count_loss is None:
            return 0.0, False
        return count_scale(self.count_loss), self.count_loss.kind is BudgetKind.PURE

    def check_rows(self, rows: Rows) -> None:
        """Refuse rows that do not have the shape, the rules, or the relation that this plan was made for."""
        if rows.n_features != self.shape.n_features:
            raise InputValueError(
                f"the plan is for {self.shape.n_features} features and the rows have {rows.n_features}: "
                "make the plan from the same schema"
            )
        if rows.neighbors is not self.neighbors:
            raise InputValueError(
                f"the plan is for neighbors={str(self.neighbors)!r} and the rows were opened for {str(rows.neighbors)!r}, which "
                "has other sensitivities: make both for the same relation"
            )
        if rows.schema.drops_rows and self.count_is_public:
            raise InputValueError(
                "the schema has a rule that drops rows, and the plan is for one that has none, so that it may tell their number: "
                "make the plan from the same schema"
            )


@dataclass(frozen=True)
class ConfiguredMechanism(ABC, Generic[PlanType]):
    """Frozen options of one published algorithm. Subclasses are dataclasses whose fields are the options."""

    budget_kinds: ClassVar[frozenset[BudgetKind]]
    supported_neighbors: ClassVar[frozenset[Neighbors]] = frozenset(Neighbors)
    loss_units: ClassVar[Mapping[BudgetKind, LossUnit]] = _LOSS_UNITS
    """In which unit the losses of its draws add up, by the kind of budget."""
    needs_row_norm: ClassVar[bool] = True
    most_features: ClassVar[int | None] = None
    """The most features that it takes, where there is a most."""
    counts_rows: ClassVar[bool] = False
    """Whether a run pays for the number of rows, where it is private, even if no mean is wanted."""
    summary: ClassVar[str]
    source: ClassVar[str]
    noun: ClassVar[str] = "mechanism"
    """What messages call it."""
    public_name: ClassVar[str | None] = None
    """The registry name where it is not the class name with hyphens."""

    @classmethod
    def registry_name(cls) -> str:
        """The name users write: ``MatrixLaplace`` → ``matrix-laplace``."""
        return cls.public_name or re.sub(r"(?<=[a-z])(?=[A-Z])", "-", cls.__name__).lower()

    @property
    def name(self) -> str:
        """The registry name."""
        return self.registry_name()

    @property
    def options(self) -> dict[str, Any]:
        """The options as plain values."""
        return {option.name: getattr(self, option.name) for option in fields(self)}

    def plan(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors | str) -> PlanType:
        """Calibrate to ``budget`` without reading data.

        Returns
        -------
        CalibratedPlan
            Whose ``cost`` never exceeds ``budget``.
        """
        neighbors = Neighbors.of(neighbors)
        self.check_support(shape, budget, neighbors)
        return self.supported_plan(shape, budget, neighbors)

    def supported_plan(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> PlanType:
        """As :meth:`plan`, for arguments that :meth:`check_support` has let pass."""
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
        """Refuse what no number of rows would make possible, and say what to use instead."""
        who = f"{self.noun} {self.name!r}"
        if budget.kind not in self.budget_kinds:
            raise InputValueError(f"{who} cannot spend a budget of {budget}: {self.budget_advice()}")
        if neighbors not in self.supported_neighbors:
            known = " or ".join(repr(str(relation)) for relation in sorted(self.supported_neighbors))
            raise InputValueError(f"{who} is not defined for neighbors={str(neighbors)!r}: use {known}")
        if self.most_features is not None and shape.n_features > self.most_features:
            raise InputValueError(
                f"{who} takes {self.most_features} feature at most and the table has {shape.n_features}: give columns bounds or "
                "rough scales and leave the mechanism out, or use coinpress; dpm.release_mean takes any number of columns"
            )
        if self.needs_row_norm and shape.row_norm is None:
            raise InputValueError(
                f"{who} needs a bound on the norm of a row and the schema gives none: "
                "give every column bounds, or use a mechanism that needs none (dpmoments mechanisms lists them)"
            )

    def drawable_budget(self, budget: PrivacyBudget) -> PrivacyBudget:
        """What a budget allows its draws to lose together, as a budget to divide among them: ε, ρ or (ε, δ)."""
        return allowance(budget, self.loss_units[budget.kind]).as_budget

    def budget_advice(self) -> str:
        """What a refusal of a budget says to give instead."""
        words = {
            BudgetKind.PURE: "epsilon alone (delta = 0)",
            BudgetKind.APPROXIMATE: "epsilon and delta > 0",
            BudgetKind.ZCDP: "rho",
        }
        return "give it " + " or ".join(words[kind] for kind in BudgetKind if kind in self.budget_kinds)

    @abstractmethod
    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> PlanType:
        """Make the plan; ``plan`` has already checked what the class attributes promise."""


@dataclass(frozen=True)
class Plan(CalibratedPlan[RunResult]):
    """A calibrated :class:`Mechanism`."""

    mechanism: Mechanism

    @property
    def measured_runs(self) -> int:
        """How many runs measure the error on an assumed table well enough to plan by."""
        return 3

    @property
    def model(self) -> NoiseModel | None:
        """The noise model that every run states; None if it depends on what a run draws."""
        return None

    def model_entries(self, diagnostics: Mapping[str, Any], receipt: Receipt) -> Mapping[str, Any] | None:
        """What plan and record of a run say of the noise model that it stated: entries of its file.

        Returns
        -------
        mapping or None
            Fewer entries than the file has if some were drawn; None if the run states no model.
        """
        del diagnostics, receipt
        return None if self.model is None else self.model.to_dict()

    def has_center(self, diagnostics: Mapping[str, Any]) -> bool | None:
        """Whether the moments of one run are about a centre that it found; None where its record does not say."""
        del diagnostics
        return None

    def rules_of_run(self, diagnostics: Mapping[str, Any]) -> tuple[Message, ...]:
        """Return what one run did to rows, a message for each rule."""
        del diagnostics
        return ()

    @property
    def expected_error(self) -> float | None:
        """Root mean square of ‖Ĝ − G‖_F in unit-ball units before any repair, or None where it is not known."""
        return None

    @property
    def guaranteed_error(self) -> float | None:
        """What the expected error does not pass in any table, for a plan whose error depends on it and that knows; else None."""
        return None

    @property
    def expected_sum_error(self) -> float | None:
        """Root mean square of the error on the sum of rows (‖·‖₂, unit ball), or None."""
        return None

    def exact_errors_on(self, assumed: SyntheticSpectrum) -> ErrorsOnTable | None:
        """As :meth:`errors_on`, by closed form; None where there is none."""
        del assumed
        return None if self.expected_error is None else ErrorsOnTable(self.expected_error, self.expected_sum_error)

    def errors_on(self, assumed: SyntheticSpectrum, privacy_filters: Iterable[PrivacyFilter]) -> ErrorsOnTable:
        """Root mean square errors on a table that is assumed: by closed form, or from runs on made-up rows.

        Parameters
        ----------
        assumed : AssumedTable
            Public guesses. No private row is read, so that a fixed seed is no harm.
        privacy_filters : iterable of PrivacyFilter
            Opened for this plan, one a run; none is used where there is a closed form.
        """
        exact = self.exact_errors_on(assumed)
        if exact is not None:
            return exact
        measured = measured_errors(self.run, assumed, self.neighbors, self.shape.row_norm, privacy_filters)
        known = self.expected_sum_error
        return measured if known is None else replace(measured, sum=known, sum_assumed=False)


@dataclass(frozen=True)
class Mechanism(ConfiguredMechanism[Plan]):
    """Frozen options of one published algorithm for the second moment, with count and mean where they are wanted."""
