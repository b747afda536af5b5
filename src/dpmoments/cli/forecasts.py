"""Forecast commands: expected noise of a release, before anything is spent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import dpmoments
from dpmoments.base.checks import not_one_of
from dpmoments.base.documents import KEEPS_A_FILE, check_output
from dpmoments.base.errors import shown
from dpmoments.cli.arguments import OPTIONS_EXCLUSIVE, budget_of, columns_of_table, given_twice, needs_option
from dpmoments.cli.options import OBJECTS, SPLIT, TABLES, Option, options_of
from dpmoments.cli.output import bad_option, print_answer, print_json, print_text
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
            "Assumed standard deviation in original units, from public knowledge; a pattern such as 'A*=1.4' is of all features "
            "that it matches. May be repeated (default: a quarter of the schema's typical range, else a tenth of the range).",
            ASSUMED,
            "FEATURE=NUMBER",
            list[str],
        ),
        "typical_mean": Option(
            "Assumed mean in original units, or share of a Boolean or a level; may be repeated (default: what the schema says).",
            ASSUMED,
            "FEATURE=NUMBER",
            list[str],
        ),
        "missing_share": Option(
            "Assumed fraction of missing values; may be repeated (default: missing_share of the schema, else 0).",
            ASSUMED,
            "COLUMN=NUMBER",
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
        "typical_sd": lambda typical_sd: _numbers_by_name(typical_sd, "--typical-sd"),
        "typical_mean": lambda typical_mean: _numbers_by_name(typical_mean, "--typical-mean"),
        "missing_share": lambda missing_share: _numbers_by_name(missing_share, "--missing-share"),
        "robust": lambda robust: None if robust is None else robust.split(","),
        "mechanism": lambda mechanism: mechanism,
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
    wanted = {"--rows-needed": rows_needed, "--epsilon-needed": epsilon_needed, "--rho-needed": rho_needed}
    page = _given({"--html": html is not None})
    for first, second in (
        (questions, [*page, *_given(wanted)]),
        (page, [*_given({"--json": as_json}), *_given(wanted)]),
    ):
        if first and second:
            raise bad_option(", ".join([*first, *second]), OPTIONS_EXCLUSIVE)
    if overwrite and html is None:
        raise needs_option("--overwrite", "--html")
    if html is not None:
        check_output(html, overwrite=overwrite, taken=KEEPS_A_FILE)
    budget = budget_of(options["epsilon"], options["delta"], options["rho"])
    result = dpmoments.forecast(**options)
    if questions:
        tables, regressions = (
            [columns_of_table(text, options["schema"]) for text in given or []] for given in (table, regression)
        )
        print_answer(result.ways(means=means, tables=tables, regressions=regressions), as_json)
        return
    if html is not None:
        dpmoments.report(result, html, overwrite=overwrite)
        print_text(f"Wrote {html}: open it in a browser.")
        return
    needed = {
        option: getattr(result, option.removeprefix("--").replace("-", "_"))(**_wanted(given, option))
        for option, given in wanted.items()
        if given
    }
    if as_json:
        names = {option.removeprefix("--").replace("-", "_"): value for option, value in needed.items()}
        print_json(result.to_dict() | names)
        return
    delta = f", δ = {result.budget.delta:g}" if result.budget.kind is BudgetKind.APPROXIMATE else ""
    with_rows, by = f"{options['n_rows']:,} {result.rows_text}", f"{options['neighbors']}, {result.mechanism}"
    for option, value in needed.items():
        if option == "--rows-needed":
            print_text(f"{result.rows_text} needed with {budget}, {by}: {value:,}")
        elif option == "--epsilon-needed":
            print_text(f"ε needed with {with_rows}{delta}, {by}: {value:.4g}")
        else:
            print_text(f"ρ needed with {with_rows}, {by}: {value:.4g}")
    if not needed:
        print_text(result.text())


def _given(options: Mapping[str, object]) -> list[str]:
    return [name for name, value in options.items() if value]


def _numbers_by_name(given: Sequence[str] | None, option: str) -> dict[str, float]:
    """Parse NAME=NUMBER, each name once."""
    result: dict[str, float] = {}
    for text in given or ():
        name, separator, digits = text.rpartition("=")
        try:
            value = float(digits)
        except ValueError:
            separator = ""
        if not (separator and name):
            raise bad_option(option, f"{shown(text)} is not NAME=NUMBER")
        if name in result:
            raise given_twice(option, name)
        result[name] = value
    return result


_ACCURACIES = ("correlation", "coefficient", "mean", "sd", "share")


def _wanted(given: Sequence[str], option: str) -> dict[str, Any]:
    """Parse wanted noise: ``correlation=0.02``, ``mean=0.5``, ``mean.age=0.5``."""
    result: dict[str, Any] = {}
    for what, value in _numbers_by_name(given, option).items():
        kind, dot, feature = what.partition(".")
        if kind not in _ACCURACIES:
            raise bad_option(option, not_one_of("NAME", kind, [*_ACCURACIES, "mean.FEATURE"]))
        if dot and isinstance(result.setdefault(kind, {}), dict):
            result[kind][feature] = value
        elif kind in result:
            raise given_twice(option, what)
        else:
            result[kind] = value
    return result


# What a release of a mean alone would be worth, before anything is spent: forecast-mean.


def _deviations(standard_deviation: list[str] | None) -> float | dict[str, float] | None:
    """Parse one number for all features, or one per named feature; None if nothing was given."""
    for text in standard_deviation or ():
        digits = text.rpartition("=")[2]
        try:
            value = float(digits)
        except ValueError:
            raise bad_option("--standard-deviation", f"{shown(text)} is neither a number nor feature=number") from None
        if digits == text:
            if standard_deviation == [text]:
                return value
            raise bad_option(
                "--standard-deviation",
                f"{shown(text)} is for all features: leave the others out, or name a feature with each",
            )
    return _numbers_by_name(standard_deviation, "--standard-deviation") or None


@options_of(
    dpmoments.forecast_mean,
    leave_out=("missing_unit",),
    own={
        "n_rows": _N_ROWS,
        "standard_deviation": Option(
            "Assumed standard deviation in original units, of all features or of one; may be repeated.",
            None,
            "[FEATURE=]NUMBER",
        ),
    },
    objects={**OBJECTS, "standard_deviation": _deviations},
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
    print_answer(dpmoments.forecast_mean(**options), as_json)


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
    print_answer(dpmoments.forecast_counts(**options), as_json)
