"""Registry of mechanisms by name, for the command line, forecasts, pages and tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import fields
from typing import Any, TypeVar

from dpmoments.base.errors import InputTypeError, InputValueError, meant, shown
from dpmoments.base.loaded_classes import LoadedClasses
from dpmoments.mechanisms.base import ConfiguredMechanism, Mechanism
from dpmoments.mechanisms.entries import MEANS, MOMENTS
from dpmoments.mechanisms.means.base import MeanMechanism
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.schema.schema import Schema

Configured = TypeVar("Configured", bound=ConfiguredMechanism[Any])


MECHANISMS: Mapping[str, type[Mechanism]] = LoadedClasses(MOMENTS)
"""All mechanism classes by registry name, sorted."""

MEAN_MECHANISMS: Mapping[str, type[MeanMechanism]] = LoadedClasses(MEANS)
"""All estimators of means by registry name, sorted."""


def make_mechanism(mechanism: Mechanism | str, **options: Any) -> Mechanism:
    """Return the mechanism of this name with its options."""
    # A configured one is returned unchanged.
    if isinstance(mechanism, Mechanism):
        return _as_configured(mechanism, options)
    return _made(mechanism, MECHANISMS, "mechanism", options)


def make_mean_mechanism(mechanism: MeanMechanism | str, **options: Any) -> MeanMechanism:
    """Return the estimator of means of this name with its options."""
    # A configured one is returned unchanged.
    if isinstance(mechanism, MeanMechanism):
        return _as_configured(mechanism, options)
    return _made(mechanism, MEAN_MECHANISMS, "estimator of means", options)


def automatic_mean(schema: Schema, budget: PrivacyBudget, **options: Any) -> MeanMechanism:
    """Return the estimator of means that ``"auto"`` stands for."""
    # Sums within public bounds where the schema has them.
    if options:
        raise InputValueError(
            f"the mechanism 'auto' has no options: leave out {', '.join(map(str, options))}, or name an estimator"
        )
    if schema.row_norm is not None:
        return make_mean_mechanism("bounded-sums")
    return make_mean_mechanism("log-scale-histogram" if budget.kind is BudgetKind.PURE else "variance-aware")


def _as_configured(mechanism: Configured, options: Mapping[str, Any]) -> Configured:
    if options:
        raise InputValueError(f"'{mechanism.name}' is configured already: leave out {', '.join(map(str, options))}")
    return mechanism


def unknown_mechanism(name: str, known: Iterable[str], *, of_means: bool) -> InputValueError:
    """Return the error of a name that is not known."""
    names = tuple(known)
    unknown = f"Unknown {'estimator of means' if of_means else 'mechanism'} '{name}'.{meant(name, names)}"
    return InputValueError(
        f"{unknown} Known: {', '.join(names)}.", shell=f"{unknown} 'dpmoments mechanisms' lists all."
    )


def _made(name: object, classes: Mapping[str, type[Configured]], noun: str, options: Mapping[str, Any]) -> Configured:
    if not isinstance(name, str):
        raise InputTypeError(f"mechanism must be a name or a configured {noun}, got {type(name).__name__}")
    if name not in classes:
        raise unknown_mechanism(name, classes, of_means=noun != "mechanism")
    known = [option.name for option in fields(classes[name])]
    if unknown := [key for key in options if key not in known]:
        advice = f"its options are {', '.join(known)}" if known else "it takes no options"
        raise InputTypeError(f"mechanism '{name}' has no option {shown(unknown[0])}: {advice}")
    return classes[name](**options)
