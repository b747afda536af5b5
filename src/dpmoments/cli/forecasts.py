"""Forecast commands: expected noise of a release, before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dpmoments
from dpmoments.cli.arguments import budget_of, columns_of_table
from dpmoments.cli.options import OBJECTS, SPLIT, TABLES, Option, options_of
from dpmoments.cli.output import bad_option, print_json, print_lines, print_text
from dpmoments.foundation.documents import KEEPS_A_FILE, check_output
from dpmoments.messages.message import Message
from dpmoments.planning.forecast_table import Forecast
from dpmoments.privacy.budget import BudgetKind

ASSUMED = "Assumptions about the table"
QUESTIONS = "Questions: which release answers them best"
TURNED_ROUND = "Requirements for a given noise, as a standard deviation"
_N_ROWS = Option("Expected number of rows, which scales the errors. With --privacy-unit: of kept rows.", least=1)


def _wanted_option(text: str) -> Option:
    return Option(text, TURNED_ROUND, "WHAT=NUMBER", list[str])


@options_of(
    dpmoments.forecast,
    leave_out=("missing_unit",),
    own={
        "n_rows": _N_ROWS,
        "typical_sd": Option(
            "Assumed standard deviation in original units, from public knowledge; may be repeated (default: a "
            "tenth of the range).",
            ASSUMED,
            "FEATURE=NUMBER",
            list[str],
        ),
        "typical_mean": Option(
            "Assumed mean in original units, or share of a Boolean or a level; may be repeated.",
            ASSUMED,
            "FEATURE=NUMBER",
            list[str],
        ),
        "robust": Option(
            "Show what robust standard errors would cost: the columns of a regression, the target among them, separated by "
            "commas.",
            metavar="COLUMNS",
            kind=str,
        ),
        "rows_needed": _wanted_option(
            "Show the number of rows needed for this noise: correlation=0.02, coefficient=0.05, mean=NUMBER or "
            "mean.FEATURE=NUMBER, sd and share likewise; repeat the option for several."
        ),
        "epsilon_needed": _wanted_option("Show the epsilon needed, with --n-rows rows."),
        "rho_needed": _wanted_option("Show the rho needed, if --rho is given."),
        "mechanism": Option("Show the noise of this mechanism, such as gaussian; default: auto."),
        "means": Option("Compare the ways to release the means: one release, or release-mean.", QUESTIONS, kind=bool),
        "table": Option(
            "Compare the ways to release a contingency table, region:sex: one release, or release-counts. May be repeated.",
            QUESTIONS,
            "COLUMN[:COLUMN…]",
            list[str],
        ),
        "regression": Option(
            "Compare the ways to fit a regression, income:age:sex with the target first: a release of all columns, or of these. "
            "May be repeated.",
            QUESTIONS,
            "TARGET:COLUMN…",
            list[str],
        ),
        "html": Option("Write a page instead, with forecasts for a few budgets and numbers of rows."),
    },
    objects={
        **OBJECTS,
        "typical_sd": (("typical_sd",), lambda given: _by_feature(given or [], "--typical-sd")),
        "typical_mean": (("typical_mean",), lambda given: _by_feature(given or [], "--typical-mean")),
        "robust": (("robust",), lambda text: None if text is None else text.split(",")),
        "mechanism": (("mechanism",), lambda name: name),
    },
)
def forecast(
    options: dict[str, Any],
    rows_needed: list[str] | None = None,
    epsilon_needed: list[str] | None = None,
    rho_needed: list[str] | None = None,
    means: bool = False,
    table: list[str] | None = None,
    regression: list[str] | None = None,
    html: Path | None = None,
    overwrite: bool = False,
    as_json: bool = False,
) -> None:
    """Show the expected noise of every column, and how to lower it. Reads no data.

    Numbers are standard deviations of privacy noise in original units, before the
    repair (which lowers large errors). They depend on each column's standard
    deviation: state it with --typical-sd, from public knowledge; else a tenth of
    the range is assumed, and marked with ~.

    A second table compares all mechanisms by the root mean square errors of
    correlations, and of means in standard deviations.

    With --privacy-unit the budget covers all rows of a unit together, and --n-rows
    is the number of kept rows, at most --max-rows-per-unit of each unit.

    Example:

      dpmoments forecast --schema people.yaml --n-rows 50000 \\
        --epsilon 1 --neighbors add_remove --typical-sd age=15

      dpmoments forecast --schema people.yaml --n-rows 50000 \\
        --epsilon 1 --neighbors add_remove --rows-needed correlation=0.02

      dpmoments forecast --schema people.yaml --n-rows 50000 \\
        --epsilon 1 --neighbors add_remove --means --table region:sex

      dpmoments forecast --schema people.yaml --n-rows 50000 \\
        --epsilon 1 --neighbors add_remove --html plan.html
    """
    questions = _given({"--means": means, "--table": table, "--regression": regression})
    needs = _given({"--rows-needed": rows_needed, "--epsilon-needed": epsilon_needed, "--rho-needed": rho_needed})
    page = _given({"--html": html is not None})
    for first, second in ((questions, [*page, *needs]), (page, [*_given({"--json": as_json}), *needs])):
        if first and second:
            raise bad_option(", ".join([*first, *second]), Message("options-exclusive"))
    if overwrite and html is None:
        raise bad_option("--overwrite", Message("option-needs-option", option="--html"))
    if html is not None:
        check_output(html, overwrite=overwrite, taken=KEEPS_A_FILE)
    budget, n_rows = budget_of(options["epsilon"], options["delta"], options["rho"]), options["n_rows"]
    neighbors = options["neighbors"]
    result = dpmoments.forecast(**options)
    if questions:
        tables, regressions = (
            [columns_of_table(text, options["schema"]) for text in given or []] for given in (table, regression)
        )
        ways = result.ways(means=means, tables=tables, regressions=regressions)
        if as_json:
            print_json(ways.to_dict())
        else:
            print_lines(ways.summary())
        return
    if html is not None:
        dpmoments.report(result, html, overwrite=overwrite)
        print_text(f"Wrote {html}: open it in a browser.")
        return
    needed: dict[str, Any] = {}
    if rows_needed:
        needed["rows_needed"] = result.rows_needed(**_wanted(rows_needed, "--rows-needed"))
    if epsilon_needed:
        wanted = _wanted(epsilon_needed, "--epsilon-needed")
        needed["epsilon_needed"] = result.epsilon_needed(**wanted)
    if rho_needed:
        needed["rho_needed"] = result.rho_needed(**_wanted(rho_needed, "--rho-needed"))
    if as_json:
        print_json(result.to_dict() | needed)
        return
    if needed:
        by = result.mechanism
        lines = {
            "rows_needed": f"{result.rows_text} needed with {budget}, {neighbors}, {by}",
            "epsilon_needed": f"ε needed with {n_rows:,} {result.rows_text}{_beside(result)}, {neighbors}, {by}",
            "rho_needed": f"ρ needed with {n_rows:,} {result.rows_text}, {neighbors}, {by}",
        }
        for name, value in needed.items():
            print_text(f"{lines[name]}: {value:,}" if name == "rows_needed" else f"{lines[name]}: {value:.4g}")
        return
    print_lines(result.summary())


def _beside(table: Forecast) -> str:
    return f", δ = {table.budget.delta:g}" if table.budget.kind is BudgetKind.APPROXIMATE else ""


_ACCURACIES = ("correlation", "coefficient", "mean", "sd", "share")


def _given(options: Mapping[str, object]) -> list[str]:
    return [name for name, value in options.items() if value]


def _wanted(given: Sequence[str], option: str) -> dict[str, Any]:
    """Parse wanted noise: ``correlation=0.02``, ``mean=0.5``, ``mean.age=0.5``."""
    result: dict[str, Any] = {}
    for text in given:
        what, value = _assigned(text, option)
        kind, dot, feature = what.partition(".")
        if kind not in _ACCURACIES:
            raise bad_option(
                option, Message("not-one-of", parameter="NAME", value=kind, choices=[*_ACCURACIES, "mean.FEATURE"])
            )
        if not dot:
            if kind in result:
                raise bad_option(option, Message("value-twice", value=kind))
            result[kind] = value
        elif not isinstance(result.setdefault(kind, {}), dict) or feature in result[kind]:
            raise bad_option(option, Message("value-twice", value=what))
        else:
            result[kind][feature] = value
    return result


def _assigned(text: str, option: str) -> tuple[str, float]:
    """Parse NAME=NUMBER."""
    name, separator, digits = text.rpartition("=")
    try:
        value = float(digits)
    except ValueError:
        separator = ""
    if not (separator and name):
        raise bad_option(option, Message("option-form", value=text, form="NAME=NUMBER"))
    return name, value


def _by_feature(given: Sequence[str], option: str) -> dict[str, float]:
    result: dict[str, float] = {}
    for text in given:
        name, value = _assigned(text, option)
        if name in result:
            raise bad_option(option, Message("value-twice", value=name))
        result[name] = value
    return result


# What a release of a mean alone would be worth, before anything is spent: forecast-mean.


@options_of(
    dpmoments.forecast_mean,
    leave_out=("missing_unit",),
    own={
        "n_rows": _N_ROWS,
        "standard_deviation": Option(
            "Assumed standard deviation in original units, of all features or of one; may be repeated.",
            None,
            "[FEATURE=]NUMBER",
            list[str],
        ),
    },
    objects={**OBJECTS, "standard_deviation": (("standard_deviation",), lambda given: _deviations(given or []))},
)
def forecast_mean(options: dict[str, Any], as_json: bool = False) -> None:
    """Show the expected error of every mean-only estimator. Reads no data.

    The error is the root mean square of its length, and of each feature, in original
    units. Errors marked ~ are for assumed rows: normal, with the given standard
    deviations (default: --scale, or the largest that the bounds allow).

    Example:

      dpmoments forecast-mean --schema people.yaml --n-rows 50000 \\
        --rho 0.5 --neighbors replace_one --standard-deviation age=15
    """
    budget_of(options["epsilon"], options["delta"], options["rho"])
    table = dpmoments.forecast_mean(**options)
    if as_json:
        print_json(table.to_dict())
        return
    print_lines(table.summary())


# What a release of tables alone would be worth: forecast-counts.


@options_of(
    dpmoments.forecast_counts,
    leave_out=("missing_unit",),
    own={
        "n_rows": Option("Expected number of rows, for the noise relative to an average cell.", least=1),
        "by": TABLES,
        "split": SPLIT,
    },
)
def forecast_counts(options: dict[str, Any], as_json: bool = False) -> None:
    """Show the noise on the counts of contingency tables. Reads no data.

    It does not depend on the table, so that it is known exactly: the standard
    deviation of the noise on each count, and the 95 % interval.

    Example:

      dpmoments forecast-counts --schema people.yaml --by region:sex \\
        --epsilon 1 --neighbors add_remove
    """
    budget_of(options["epsilon"], options["delta"], options["rho"])
    options["by"] = [columns_of_table(text, options["schema"]) for text in options["by"]]
    result = dpmoments.forecast_counts(**options)
    if as_json:
        print_json(result.to_dict())
        return
    print_lines(result.summary())


def _deviations(given: list[str]) -> float | dict[str, float] | None:
    """Parse one number for all features, or one per named feature; None if nothing was given."""
    named: dict[str, float] = {}
    for text in given:
        name, separator, digits = text.rpartition("=")
        try:
            value = float(digits)
        except ValueError:
            raise bad_option("--standard-deviation", Message("deviation-form", value=text)) from None
        if not separator:
            if len(given) > 1:
                raise bad_option("--standard-deviation", Message("deviation-for-all", value=text))
            return value
        if name in named:
            raise bad_option("--standard-deviation", Message("value-twice", value=name))
        named[name] = value
    return named or None
