"""Command that tries to detect a mechanism with more privacy loss than it states."""

from __future__ import annotations

from typing import Annotated

import typer

from dpmoments.audit import AuditEffort, AuditResult
from dpmoments.audit.settings import DEFAULT_BUDGETS, audit_generator, audit_plan, configuration
from dpmoments.cli.arguments import budget_of, mechanism_of
from dpmoments.cli.options import AsJson, Delta, Epsilon, Rho
from dpmoments.cli.output import bad_option, complain, print_json, print_table, print_text
from dpmoments.mechanisms.registry import MECHANISMS
from dpmoments.messages.message import Message
from dpmoments.privacy.unit import Neighbors, PrivacyUnit

_HEADERS = ("neighbors", "mean", "budget", "at δ", "stated ε", "ε at least", "exact ε", "measured ε")
_NUMBERS = _HEADERS[3:]


def audit(
    mechanism: Annotated[
        list[str] | None, typer.Argument(metavar="[MECHANISM]...", help="Mechanism; default: all.", show_default=False)
    ] = None,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    rho: Rho = None,
    neighbors: Annotated[
        Neighbors | None, typer.Option("--neighbors", help="Neighboring relation; default: both.", show_default=False)
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="An option of the named mechanism; may be repeated."),
    ] = None,
    features: Annotated[int, typer.Option("--features", min=1, help="Number of features.")] = 2,
    max_rows_per_unit: Annotated[
        int | None,
        typer.Option(
            "--max-rows-per-unit",
            metavar="K",
            min=1,
            help="Audit people with many rows and contribution bound K; only under add_remove.",
            show_default=False,
        ),
    ] = None,
    draws: Annotated[
        int | None,
        typer.Option(
            "--draws",
            min=20,
            help="Runs per table for each bound; default: 6000, fewer for slow mechanisms.",
            show_default=False,
        ),
    ] = None,
    exact_noise: Annotated[
        bool, typer.Option("--exact-noise", help="Draw integer noise as in releases, about ten times slower.")
    ] = False,
    seed: Annotated[
        int | None, typer.Option("--seed", min=0, help="Seed, to repeat an audit.", show_default=False)
    ] = None,
    as_json: AsJson = False,
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
    if seed is not None and exact_noise:
        raise bad_option("--seed", Message("exact-noise-has-no-seed", seed=seed))
    if option and len(mechanism or ()) != 1:
        raise bad_option("--option", Message("options-of-one-mechanism"))
    budgets = [*DEFAULT_BUDGETS] if epsilon is None and rho is None else [budget_of(epsilon, delta, rho)]
    if epsilon is None and rho is None and delta:
        raise bad_option("--delta", Message("option-needs-option", option="--epsilon"))
    named = [mechanism_of(name, option or ()) for name in mechanism or MECHANISMS]
    plan = audit_plan(
        named if option else map(configuration, named),
        budgets=budgets,
        neighbors=tuple(Neighbors) if neighbors is None else (neighbors,),
        n_features=features,
        privacy_unit=None if max_rows_per_unit is None else PrivacyUnit("person", max_rows_per_unit),
    )
    effort = None if draws is None else AuditEffort.of_draws(draws)
    results = list[AuditResult]()
    for index, setting in enumerate(plan.settings):
        complain(
            f"{index + 1} of {len(plan.settings)}: {setting.mechanism.name}, {setting.budget}, {setting.neighbors}"
        )
        generator = audit_generator(index, seed=seed, exact_noise=exact_noise)
        results.append(setting.run(generator, n_features=features, effort=effort))
    exceeded = [result for result in results if result.exceeded]
    if as_json:
        print_json({"audits": [result.to_dict() for result in results], "refused": dict(plan.refusals)})
    else:
        for name, options in {result.mechanism: result.options for result in results}.items():
            shown = ", ".join(f"{key}={value}" for key, value in options.items())
            print_text(f"{name} ({shown})" if shown else name)
            print_table(_HEADERS, (_row(result) for result in results if result.mechanism == name), numbers=_NUMBERS)
            print_text()
        for name, words in plan.refusals.items():
            print_text(f"not {name}: {words}")
        print_text(
            "'ε at least' is a lower bound, with 99.9 % confidence; 'exact ε' follows from the stated noise "
            "distributions on the worst pair, 'measured ε' with the scale of noise, or the temperature of directions, that fresh "
            "runs show at least (included in the 99.9 %). "
            "--json names the pairs."
        )
    if exceeded:
        names = ", ".join(sorted({result.mechanism for result in exceeded}))
        complain(f"dpmoments: privacy loss above the stated one: {names}")
        raise typer.Exit(1)


def _row(result: AuditResult) -> tuple[str, ...]:
    measured = None if result.measured is None else result.measured.epsilon
    return (
        str(result.neighbors),
        "yes" if result.mean else "no",
        str(result.cost),
        f"{result.delta:g}",
        f"{result.stated_epsilon:.3f}",
        f"{'EXCEEDED ' if result.exceeded else ''}{result.lower_bound:.3f}",
        *("–" if value is None else f"{value:.3f}" for value in (result.exact, measured)),
    )
