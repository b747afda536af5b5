"""Commands about mechanisms.

They list mechanisms, describe one, and search for a privacy loss above the stated one.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Mapping
from dataclasses import MISSING, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import typer

from dpmoments.analysis.answers import aligned
from dpmoments.audit import AuditEffort, AuditResult
from dpmoments.audit.procedure import DEFAULT_BUDGETS, Audits, audit_generator, audit_plan, configuration
from dpmoments.cli.options import Option, mechanism_of, with_options
from dpmoments.cli.output import bad_option, complain, naming, needs_option, print_answer, print_command, print_text
from dpmoments.mechanisms.base import ConfiguredMechanism
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS, unknown_mechanism
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit

Configured = type[ConfiguredMechanism[Any]]

BUDGETS_SHOWN = {BudgetKind.PURE: "ε", BudgetKind.APPROXIMATE: "(ε, δ)", BudgetKind.ZCDP: "ρ"}


@with_options(name=Option("Describe this mechanism in full.", metavar="NAME", argument=True))
def mechanisms(name: str | None = None) -> None:
    """List the mechanisms and the estimators of means, or describe one.

    Examples:

      dpmoments mechanisms
      dpmoments mechanisms matrix-laplace
    """
    if name is None:
        print_text(_listed("mechanism", MECHANISMS))
        print_text(f"Means only, for release-mean:\n{_listed('estimator', MEAN_MECHANISMS)}")
        print_text("Described in full, and compared at your budget:")
        for command in ("mechanisms NAME", "forecast --help", "forecast-mean --help"):
            print_command(f"dpmoments {command}")
        return
    found = [classes[name] for classes in (MECHANISMS, MEAN_MECHANISMS) if name in classes]
    if not found:
        refusal = unknown_mechanism(name, dict.fromkeys([*MECHANISMS, *MEAN_MECHANISMS]), of_means=False)
        raise bad_option("NAME", refusal)
    for kind in found:
        print_text("For means only:" if kind is MEAN_MECHANISMS.get(name) else "")
        print_text(_described(kind))


def _listed(noun: str, classes: Mapping[str, Configured]) -> str:
    """Return a table of what the mechanisms support, and a line on each."""
    table = [(noun, "budget", "neighbors", "bound on rows")]
    table += [(name, *_supports(mechanism)) for name, mechanism in classes.items()]
    lines = (f"  {name}: {mechanism.summary}. Source: {mechanism.source}." for name, mechanism in classes.items())
    return "\n".join([aligned(table, numbers=False), "", *lines, ""])


def needs_bound(mechanism: Configured) -> bool:
    """Return True if rows need a public bound: on their norm, or on their mean."""
    return mechanism.needs_row_norm or "radius" in mechanism.__dataclass_fields__


def _supports(mechanism: Configured) -> tuple[str, str, str]:
    """Return budgets, neighboring relations, and whether rows need a public bound."""
    budgets = " ".join(shown for kind, shown in BUDGETS_SHOWN.items() if kind in mechanism.budget_kinds)
    both = mechanism.supported_neighbors >= set(Neighbors)
    relations = "both" if both else ", ".join(sorted(mechanism.supported_neighbors))
    return budgets, relations, "needed" if needs_bound(mechanism) else "not needed"


def _described(mechanism: Configured) -> str:
    """Return what a mechanism supports, its options, and its documentation."""
    budgets, relations, bound = _supports(mechanism)
    facts = [f"source: {mechanism.source}", f"budget: {budgets}", f"neighbors: {relations}", f"bound on rows: {bound}"]
    hints = get_type_hints(mechanism)
    for option in fields(mechanism):
        hint = hints[option.name]
        takes = " | ".join(map(str, get_args(hint))) if get_origin(hint) is Literal else str(option.type)
        default = "" if option.default is MISSING else f" (default {option.default})"
        facts.append(f"option {option.name}={takes}{default}")
    text = (inspect.getdoc(mechanism) or "").partition("\nExamples\n---")[0]
    text = re.sub(r"(?m)^ *-{3,}\n", "", text)
    while text != (text := re.sub(r"(?m)^( *)(\S.*)\n\1(?![\s*=-])", r"\1\2 ", text)):
        pass
    stated = "\n".join(f"  {fact}" for fact in facts)
    return f"{mechanism.registry_name()}: {mechanism.summary}\n\n{stated}\n\n{text.rstrip()}"


@with_options(
    mechanism=Option("Mechanism; default: all.", metavar="[MECHANISM]...", argument=True),
    neighbors=Option("Neighboring relation; default: both."),
    option=Option("An option of the named mechanism; may be repeated.", metavar="KEY=VALUE"),
    features=Option("Number of features.", least=1, flags=("--features",)),
    max_rows_per_unit=Option(
        "Audit people with many rows and contribution bound K; only under add_remove.", metavar="K", least=1
    ),
    draws=Option("Runs per table for each bound; default: 6000, fewer for slow mechanisms.", least=20),
    exact_noise=Option("Draw integer noise as in releases, about ten times slower.", flags=("--exact-noise",)),
    seed=Option("Seed, to repeat an audit.", least=0),
)
def audit(
    mechanism: list[str] | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors | None = None,
    option: list[str] | None = None,
    features: int = 2,
    max_rows_per_unit: int | None = None,
    draws: int | None = None,
    exact_noise: bool = False,
    seed: int | None = None,
    as_json: bool = False,
) -> None:
    """Test whether mechanisms have more privacy loss than they state. Reads no data.

    Runs each mechanism on worst-case neighboring tables, and computes a lower bound,
    with 99.9 % confidence, on its actual ε. A bound above the stated ε is a defect:
    the exit code is then 1. A bound below it proves nothing. Without --option a
    mechanism has its defaults, except those whose defaults are slow or refused;
    the options are shown.

    Examples:

      dpmoments audit matrix-laplace --epsilon 1
      dpmoments audit
    """
    with naming("--seed"):
        audit_generator(0, seed=seed, exact_noise=exact_noise)
    if option and len(mechanism or ()) != 1:
        raise bad_option("--option", "options belong to one mechanism: name one")
    budgets = [*DEFAULT_BUDGETS]
    if epsilon is not None or rho is not None:
        with naming("--epsilon, --delta, --rho"):
            budgets = [PrivacyBudget.of(epsilon=epsilon, delta=delta, rho=rho)]
    elif delta:
        raise needs_option("--delta", "--epsilon")
    with naming("MECHANISM, --option" if option else "MECHANISM"):
        named = [mechanism_of(name, option or ()) for name in mechanism or MECHANISMS]
    settings, refusals = audit_plan(
        named if option else map(configuration, named),
        budgets=budgets,
        neighbors=tuple(Neighbors) if neighbors is None else (neighbors,),
        n_features=features,
        privacy_unit=None if max_rows_per_unit is None else PrivacyUnit("person", max_rows_per_unit),
    )
    effort = None if draws is None else AuditEffort.of_draws(draws)
    results = list[AuditResult]()
    for index, setting in enumerate(settings):
        complain(f"{index + 1} of {len(settings)}: {setting.mechanism.name}, {setting.budget}, {setting.neighbors}")
        generator = audit_generator(index, seed=seed, exact_noise=exact_noise)
        results.append(setting.run(generator, n_features=features, effort=effort))
    exceeded = [result for result in results if result.exceeded]
    print_answer(Audits(tuple(results), refusals), as_json)
    if exceeded:
        names = ", ".join(sorted({result.mechanism for result in exceeded}))
        complain(f"dpmoments: privacy loss above the stated one: {names}")
        raise typer.Exit(1)
