"""Commands about mechanisms.

They list mechanisms, describe one, and search for a privacy loss above the stated one.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import MISSING, fields
from typing import Any, Literal, get_args, get_origin, get_type_hints

import typer

from dpmoments.audit import AuditEffort, AuditResult
from dpmoments.audit.settings import DEFAULT_BUDGETS, audit_generator, audit_plan, configuration
from dpmoments.cli.arguments import budget_of, mechanism_of, needs_option
from dpmoments.cli.options import Option, with_options
from dpmoments.cli.output import bad_option, complain, print_command, print_json, print_page, print_table, print_text
from dpmoments.mechanisms.base import ConfiguredMechanism
from dpmoments.mechanisms.means.base import MeanMechanism
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, MECHANISMS, unknown_mechanism
from dpmoments.privacy.budget import BudgetKind
from dpmoments.privacy.unit import Neighbors, PrivacyUnit

Configured = type[ConfiguredMechanism[Any]]

_WITHOUT_A_PROOF = {"auto"}
"""Mechanisms without an own derivation: ``auto`` chooses among the others."""
_PAGE_HEAD = """\
# Mechanisms

Written from the registry by `dpmoments mechanisms --markdown > docs/mechanisms.md`; `dpmoments mechanisms NAME` describes one
with its options. Each page has its formula, guarantee and options, and a picture of when it has the smallest error.

| name | what it does | budgets | neighbors | needs a row norm | source | |
| --- | --- | --- | --- | --- | --- | --- |
"""
_MEANS_HEAD = """
## Mean-only estimators

For `dpmoments.release_mean` and `dpmoments release-mean`. If rows need a bound, a schema with bounds implies it; otherwise it is
an option, `radius`, and for some `scale`.

| name | what it does | budgets | neighbors | rows need a bound | source | |
| --- | --- | --- | --- | --- | --- | --- |
"""
BUDGETS_SHOWN = {BudgetKind.PURE: "ε", BudgetKind.APPROXIMATE: "(ε, δ)", BudgetKind.ZCDP: "ρ"}


@with_options(
    name=Option("Describe this mechanism in full.", metavar="NAME", argument=True),
    markdown=Option("Print the list as a page of documentation, docs/mechanisms.md.", flags=("--markdown",)),
)
def mechanisms(name: str | None = None, markdown: bool = False) -> None:
    """List the mechanisms and the estimators of means, or describe one.

    Examples:

      dpmoments mechanisms
      dpmoments mechanisms matrix-laplace
    """
    if markdown and name is not None:
        raise bad_option("--markdown", "the page lists all mechanisms: leave the name out")
    if markdown:
        print_page(_mechanisms_page())
    elif name is None:
        _list("mechanism", MECHANISMS)
        print_text()
        print_text("Means only, for release-mean:")
        _list("estimator", MEAN_MECHANISMS)
        print_text()
        print_text("Described in full, and compared at your budget:")
        print_command("dpmoments mechanisms NAME")
        print_command("dpmoments forecast --help")
        print_command("dpmoments forecast-mean --help")
    elif result := [classes[name] for classes in (MECHANISMS, MEAN_MECHANISMS) if name in classes]:
        for index, kind in enumerate(result):
            if index:
                print_text()
            if kind is MEAN_MECHANISMS.get(name):
                print_text("For means only:")
            _describe(name, kind)
    else:
        refusal = unknown_mechanism(name, dict.fromkeys([*MECHANISMS, *MEAN_MECHANISMS]), of_means=False)
        raise bad_option("NAME", refusal)


def _list(noun: str, classes: Mapping[str, Configured]) -> None:
    """Print a table of what the mechanisms support, and a line on each."""
    headers = (noun, "budget", "neighbors", "bound on rows")
    print_table(headers, ((known, *_supports(mechanism)) for known, mechanism in classes.items()))
    print_text()
    for known, mechanism in classes.items():
        print_text(f"{known}: {mechanism.summary}. Source: {mechanism.source}.", indent=2)


def _mechanisms_page() -> str:
    """Return the documentation page with a line on every mechanism, in Markdown."""
    rows = (_page_row(mechanism, "proof") for mechanism in MECHANISMS.values())
    of_means = (_page_row(mechanism, "derivation") for mechanism in MEAN_MECHANISMS.values())
    return "".join([_PAGE_HEAD, *rows, _MEANS_HEAD, *of_means])


def own_page(mechanism: Configured) -> str:
    """Return the documentation page of one mechanism, relative to docs/.

    >>> own_page(MECHANISMS["coinpress"]), own_page(MEAN_MECHANISMS["coinpress"])
    ('evidence/mechanisms/coinpress.md', 'evidence/mechanisms/mean-coinpress.md')
    """
    kind = "mean-" if issubclass(mechanism, MeanMechanism) else ""
    return f"evidence/mechanisms/{kind}{mechanism.registry_name()}.md"


def derivation_page(mechanism: Configured) -> str | None:
    """Return the page with its derivation, relative to docs/; None without one.

    Estimators of means share a page, except those derived with a mechanism of the same name.

    >>> derivation_page(MECHANISMS["matrix-laplace"]), derivation_page(MEAN_MECHANISMS["naive"])
    ('evidence/derivations/matrix_laplace.md', 'evidence/derivations/means.md')
    """
    name = mechanism.registry_name()
    if name in _WITHOUT_A_PROOF:
        return None
    of_means = issubclass(mechanism, MeanMechanism) and name not in MECHANISMS
    return f"evidence/derivations/{'means' if of_means else name.replace('-', '_')}.md"


def _page_row(mechanism: Configured, label: str) -> str:
    derivation = derivation_page(mechanism)
    cells = (
        f"[`{mechanism.registry_name()}`]({own_page(mechanism)})",
        mechanism.summary,
        ", ".join(shown for kind, shown in BUDGETS_SHOWN.items() if kind in mechanism.budget_kinds),
        ", ".join(f"`{relation}`" for relation in sorted(mechanism.supported_neighbors)),
        "yes" if _needs_bound(mechanism) else "no",
        mechanism.source,
        "" if derivation is None else f"[{label}]({derivation})",
    )
    return f"| {' | '.join(cells)} |\n"


def _needs_bound(mechanism: Configured) -> bool:
    """Return True if rows need a public bound: on their norm, or on their mean."""
    return mechanism.needs_row_norm or "radius" in mechanism.__dataclass_fields__


def _supports(mechanism: Configured) -> tuple[str, str, str]:
    """Return budgets, neighboring relations, and whether rows need a public bound."""
    budgets = " ".join(shown for kind, shown in BUDGETS_SHOWN.items() if kind in mechanism.budget_kinds)
    both = mechanism.supported_neighbors >= set(Neighbors)
    relations = "both" if both else ", ".join(sorted(mechanism.supported_neighbors))
    return budgets, relations, "needed" if _needs_bound(mechanism) else "not needed"


def _describe(name: str, mechanism: Configured) -> None:
    budgets, relations, bound = _supports(mechanism)
    print_text(f"{name}: {mechanism.summary}")
    print_text()
    print_table(
        ("", ""),
        (
            ("source", mechanism.source),
            ("budget", budgets),
            ("neighbors", relations),
            ("bound on rows", bound),
            *_options(mechanism),
        ),
    )
    print_text()

    # The lines of a paragraph are joined, so that the terminal wraps them.
    narrative = (inspect.getdoc(mechanism) or "").partition("\nExamples\n---")[0].rstrip()
    indent, lines = 0, list[str]()
    for line in narrative.splitlines():
        text = line.strip()
        own = len(line) - len(line.lstrip())
        underline = bool(text) and not text.strip("-")
        if lines and (not text or own != indent or underline or text.startswith(("* ", "- ", "==="))):
            print_text(" ".join(lines), indent=indent)
            lines = []
        if not text:
            print_text()
        elif not underline:
            indent, lines = own, [*lines, text]
    if lines:
        print_text(" ".join(lines), indent=indent)


def _options(mechanism: Configured) -> Iterator[tuple[str, str]]:
    hints = get_type_hints(mechanism)
    for option in fields(mechanism):
        hint = hints[option.name]
        takes = " | ".join(map(str, get_args(hint))) if get_origin(hint) is Literal else str(option.type)
        default = "" if option.default is MISSING else f" (default {option.default})"
        yield "option", f"{option.name}={takes}{default}"


# The search for a mechanism with more privacy loss than it states.

_HEADERS = ("neighbors", "mean", "budget", "at δ", "stated ε", "ε at least", "exact ε", "measured ε")


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
    if seed is not None and exact_noise:
        raise bad_option(
            "--seed", f"seed={seed}: exact noise comes from the operating system and has no seed; leave one out"
        )
    if option and len(mechanism or ()) != 1:
        raise bad_option("--option", "options belong to one mechanism: name one")
    budgets = [*DEFAULT_BUDGETS] if epsilon is None and rho is None else [budget_of(epsilon, delta, rho)]
    if epsilon is None and rho is None and delta:
        raise needs_option("--delta", "--epsilon")
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
            print_table(
                _HEADERS, (_row(result) for result in results if result.mechanism == name), numbers=_HEADERS[3:]
            )
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
