"""Options that functions share, written once, and the guarantee that they request."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from fractions import Fraction
from types import MappingProxyType
from typing import Any, Self, TypedDict, TypeVar, get_type_hints

from dpmoments.base.errors import InputTypeError, InputValueError, closest, shown
from dpmoments.base.values import rounded_down
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit, require_unit
from dpmoments.schema.constraints import finding_columns, require_levels
from dpmoments.schema.schema import Schema

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
