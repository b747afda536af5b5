"""Entry point of the command line: commands, error output and exit codes."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Sequence
from functools import cache
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from dpmoments.base import __version__
from dpmoments.base.errors import InputAttributeError
from dpmoments.cli.output import (
    OutputError,
    StoppedError,
    complain,
    drop_output,
    explain,
    print_text,
    printing,
    tell_steps,
    what_number_to_write,
)

_CURATOR = "With the table"
_ANALYST = "With a release: these cost no privacy"
_STOPPED = 130

_VERSION = f"dpmoments {__version__}"

_COMMANDS: dict[str, dict[str, str]] = {
    _CURATOR: {
        "init": "Write the schema of a table, with bounds and levels left blank.",
        "preflight": "Check a private table against its schema; the output is private.",
        "forecast": "Show the expected noise of every column, and how to lower it. Reads no data.",
        "forecast-mean": "Show the expected error of every mean-only estimator. Reads no data.",
        "forecast-counts": "Show the noise on the counts of contingency tables. Reads no data.",
        "release": "Release a table's count, mean and second moment, once: this spends budget.",
        "release-mean": "Release only the mean of a table, once: this spends budget.",
        "release-counts": "Release only contingency tables, once: this spends budget.",
        "mechanisms": "List the mechanisms and the estimators of means, or describe one.",
        "audit": "Test whether mechanisms have more privacy loss than they state. Reads no data.",
        "desk": "Open the steps of a release as pages in a browser on this machine.",
        "ledger": "Manage the privacy budgets of datasets: granted, spent and remaining.",
    },
    _ANALYST: {
        "show": "Show a release: its guarantee, the privacy loss of each noise draw, and its results.",
        "report": "Write a page about a release: its guarantee, its results, and what is noise.",
        "describe": "Describe the mean and spread of every feature with their noise: free of privacy cost.",
        "ols": "Fit least squares of a feature on others, with intervals: free of privacy cost.",
        "ridge": "Fit ridge regression of a feature on others.",
        "lasso": "Fit the lasso of a feature on others, most coefficients exactly 0: free of privacy cost.",
        "pca": "Compute principal components of a release: post-processing, free of privacy cost.",
        "correlations": "Compute correlations with noise, interval and verdict each: free of privacy cost.",
        "group-means": "Compute means over the rows of each group, with intervals and differences.",
        "anova": "Run a one-way analysis of variance of a feature by groups: free of privacy cost.",
        "t-test": "Run Welch's t-test of a feature by two groups: post-processing, free of privacy cost.",
        "cross-table": "Count rows by two columns and test their independence by chi-square: free of privacy cost.",
        "partial-correlation": "Compute partial correlations of two features given all others named: free of privacy cost.",
        "mahalanobis": "Compute Mahalanobis distances of rows from the released mean: free of privacy cost.",
        "lda": "Fit linear discriminant analysis of the groups of a column: free of privacy cost.",
        "graphical-lasso": "Fit a sparse dependence graph by the graphical lasso on released correlations.",
        "iv": "Fit two-stage least squares with instruments: free of privacy cost.",
        "odds-ratio": "Compute the odds ratio and the risk ratio of two Booleans: free of privacy cost.",
        "vif": "Compute variance inflation factors of regressors: free of privacy cost.",
        "mediation": "Split an effect into one through mediators and the rest: free of privacy cost.",
        "oaxaca": "Split the difference of two means by features and coefficients: free of privacy cost.",
        "cronbach-alpha": "Compute Cronbach's α of a sum of items: free of privacy cost.",
        "mcdonald-omega": "Compute McDonald's ω of a sum of items: free of privacy cost.",
        "factor-analysis": "Fit common factors to correlations: free of privacy cost.",
        "cancorr": "Compute canonical correlations of two groups of features: free of privacy cost.",
        "tetrachoric": "Compute tetrachoric correlations of Booleans: free of privacy cost.",
        "groups": "Write each group of a grouped release to its own file.",
        "pool": "Combine releases of several tables that have no row in common.",
        "synthetic": "Draw synthetic rows that have the moments of a release.",
        "export": "Write means and covariances as a script of lavaan, Stata or SPSS.",
        "verify": "Check that a release is complete and consistent. Exit code 1 if not.",
    },
}
"""Commands with their summaries, per section of the help page."""
_HOMES = {"mechanisms": "mechanisms", "audit": "mechanisms"}
"""Modules of commands that are in neither of their sections' modules, curator and analyses."""


class _Commands(typer.core.TyperGroup):
    """Group whose commands are imported when run; the help page needs only their summaries."""

    def resolve_command(self, ctx: Any, args: list[str]) -> tuple[str | None, Any, list[str]]:
        if args and args[0] not in self.commands:
            from dpmoments.releases.moment_release import NOT_IN_MOMENTS

            if args[0] in NOT_IN_MOMENTS:
                raise InputAttributeError(f"a release has no {args[0]}: {NOT_IN_MOMENTS[args[0]]}")
        name, summarized, rest = super().resolve_command(ctx, args)
        return name, None if name is None or summarized is None else _loaded(name), rest


def load_command(arguments: Sequence[str]) -> None:
    names = {name for commands in _COMMANDS.values() for name in commands}
    for name in [word for word in arguments if word in names][:1]:
        _loaded(name)


@cache
def _loaded(name: str) -> Any:
    """Return the parser's object of a command, imported."""
    home = _HOMES.get(name, "curator" if name in _COMMANDS[_CURATOR] else "analyses")
    module, attribute = import_module(f"dpmoments.cli.{home}"), name.replace("-", "_")
    function = getattr(module, attribute, None) or module.command_of(name, module.analyses()[attribute])
    if isinstance(function, typer.Typer):
        return typer.main.get_command(function)
    made = typer.Typer(add_completion=False, rich_markup_mode="rich")
    made.command(name)(function)
    return typer.main.get_command(made)


_app = typer.Typer(
    cls=_Commands,
    add_completion=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@_app.callback(invoke_without_command=True)
def dpmoments_command(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Show the version.")] = False,
    verbose: Annotated[bool, typer.Option("--verbose", help="Log each step with its time to standard error.")] = False,
) -> None:
    """Release a table's count, mean and covariance once under differential
    privacy; then analyze the release as often as you like.

    The order is init → preflight → forecast → release → show:

      dpmoments init people.parquet    # writes people.yaml: fill in its blanks
      dpmoments preflight people.parquet --schema people.yaml    # private output
      dpmoments forecast --schema people.yaml --n-rows 50000 \\
        --epsilon 1 --neighbors add_remove
      dpmoments release people.parquet --schema people.yaml \\
        --epsilon 1 --neighbors add_remove --output people.json
      dpmoments show people.json

    Exit codes: 0 success; 1 the request cannot be met, or a file is invalid; 2 an
    error in the command. Budget is spent when noise is drawn, after all checks; an
    error before that spends nothing.
    """
    tell_steps(verbose)
    if version:
        print_text(_VERSION)
    elif context.invoked_subcommand is None:
        with printing():
            print(context.get_help())


for section, commands in _COMMANDS.items():
    for name, summary in commands.items():
        _app.command(name, help=summary, rich_help_panel=section)(lambda: None)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line on ``arguments`` and return the exit code.

    By default, the arguments of the process.

    0: success. 1: the request cannot be met, or a file is invalid. 2: an error in the command. 130: stopped by the
    keyboard.

    >>> main(["--version"])
    dpmoments ...
    0
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ε shows a question mark instead of failing
    given = sys.argv[1:] if arguments is None else list(arguments)
    stopped = "dpmoments: stopped"
    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=UserWarning)
        warnings.showwarning = _show_warning
        try:
            outcome: Any = None
            if given == ["--version"]:  # the parser takes longer to load its checks of values
                print_text(_VERSION)
            else:
                outcome = typer.main.get_command(_app).main(args=given, prog_name="dpmoments", standalone_mode=False)
        except StoppedError as stop:
            stopped, outcome = "; ".join(filter(None, [stopped, str(stop)])), _STOPPED
        except (typer.Abort, KeyboardInterrupt):
            outcome = _STOPPED
        except Exception as error:
            return _fail(error, given)
        finally:
            tell_steps(False)
    if outcome == _STOPPED:
        complain(stopped)
    try:
        with printing():
            sys.stdout.flush()
    except BrokenPipeError:  # a reader that closed early (``| head``) is not an error
        drop_output()
        return 1
    except OutputError as error:
        return _fail(error, given)
    return outcome if isinstance(outcome, int) else 0


def _fail(error: Any, given: Sequence[str]) -> int:
    if hasattr(error, "format_message"):  # an error of the parser, from whichever package this typer uses
        path = getattr(getattr(error, "ctx", None), "command_path", "dpmoments")
        message = " ".join(error.format_message().replace(" Value error,", "").split())
        options = list(getattr(getattr(error, "param", None), "opts", []))
        if number := what_number_to_write(message, options, given):
            message = f"{'/'.join(options)} {number}"
        complain(f"{path}: {message}\n'{path} --help' shows how")
        return int(error.exit_code)
    complain(f"dpmoments: {explain(error)}")
    if isinstance(error, OutputError):
        drop_output()
    return 1


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print one line, without the source line that Python adds."""
    from dpmoments.releases.disclosed import MessageWarning

    text = message.message_data.text("shell") if isinstance(message, MessageWarning) else str(message)
    complain(f"Warning: {' '.join(text.split())}")
