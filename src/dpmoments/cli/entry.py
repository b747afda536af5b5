"""Entry point of the command line: commands, error output and exit codes."""

from __future__ import annotations

import io
import sys
import warnings
from collections.abc import Sequence
from typing import Annotated, Protocol, TextIO, runtime_checkable

import typer
import typer.main

from dpmoments.cli.analyses import analyses, command_of
from dpmoments.cli.analyst import groups, pool, report, show, synthetic, verify
from dpmoments.cli.audit import audit
from dpmoments.cli.catalogue import mechanisms
from dpmoments.cli.curator import init, preflight
from dpmoments.cli.errors import StoppedError, explain, in_options, what_number_to_write
from dpmoments.cli.forecasts import forecast, forecast_mean
from dpmoments.cli.ledger import ledger
from dpmoments.cli.spending import release, release_mean
from dpmoments.cli.tables import OutputError, complain, drop_output, print_page, print_text, printing, tell_steps
from dpmoments.foundation.version import __version__
from dpmoments.releases.release_warning import MessageWarning

_CURATOR = "With the table"
_ANALYST = "With a release: these cost no privacy"
_STOPPED = 130

_app = typer.Typer(
    add_completion=False, rich_markup_mode="rich", context_settings={"help_option_names": ["-h", "--help"]}
)


@runtime_checkable
class _UsageError(Protocol):
    """Error of the command-line parser, from whichever package this version of typer uses."""

    exit_code: int

    def format_message(self) -> str: ...


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
        print_text(f"dpmoments {__version__}")
    elif context.invoked_subcommand is None:
        print_page(f"{context.get_help()}\n")


_app.command("init", rich_help_panel=_CURATOR)(init)
_app.command("preflight", rich_help_panel=_CURATOR)(preflight)
_app.command("forecast", rich_help_panel=_CURATOR)(forecast)
_app.command("forecast-mean", rich_help_panel=_CURATOR)(forecast_mean)
_app.command("release", rich_help_panel=_CURATOR)(release)
_app.command("release-mean", rich_help_panel=_CURATOR)(release_mean)
_app.add_typer(ledger, name="ledger", rich_help_panel=_CURATOR)
_app.command("mechanisms", rich_help_panel=_CURATOR)(mechanisms)
_app.command("audit", rich_help_panel=_CURATOR)(audit)
_app.command("show", rich_help_panel=_ANALYST)(show)
_app.command("report", rich_help_panel=_ANALYST)(report)
for method, analysis in analyses().items():
    name = method.replace("_", "-")
    _app.command(name, rich_help_panel=_ANALYST)(command_of(name, analysis))
_app.command("groups", rich_help_panel=_ANALYST)(groups)
_app.command("pool", rich_help_panel=_ANALYST)(pool)
_app.command("synthetic", rich_help_panel=_ANALYST)(synthetic)
_app.command("verify", rich_help_panel=_ANALYST)(verify)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line on ``arguments`` (default: those of the process) and return the exit code.

    0: success. 1: the request cannot be met, or a file is invalid. 2: an error in the command. 130: stopped by the
    keyboard.

    >>> main(["--version"])
    dpmoments ...
    0
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal without ε shows a question mark instead of failing
    command, stopped = typer.main.get_command(_app), "dpmoments: stopped"
    given = sys.argv[1:] if arguments is None else list(arguments)
    with warnings.catch_warnings():
        warnings.filterwarnings("always", category=UserWarning)
        warnings.showwarning = _show_warning
        try:
            outcome = command.main(
                args=given,
                prog_name="dpmoments",
                standalone_mode=False,
            )
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
    code = outcome if isinstance(outcome, int) else 0
    return code if _flushed() else 1


def _flushed() -> bool:
    """Flush standard output; return True on success. A reader that closed early (``| head``) is not an error."""
    try:
        with printing():
            sys.stdout.flush()
    except BrokenPipeError:
        drop_output()
        return False
    except OutputError as error:
        complain(f"dpmoments: {explain(error)}")
        drop_output()
        return False
    return True


def _fail(error: Exception, given: Sequence[str]) -> int:
    if isinstance(error, _UsageError):
        path = getattr(getattr(error, "ctx", None), "command_path", "dpmoments")
        message = " ".join(error.format_message().split())
        options = list(getattr(getattr(error, "param", None), "opts", []))
        if number := what_number_to_write(message, options, given):
            message = f"{'/'.join(options)} {number}"
        complain(f"{path}: {in_options(message)}\n'{path} --help' shows how")
        return error.exit_code
    complain(f"dpmoments: {explain(error)}")
    if isinstance(error, OutputError):
        drop_output()
    return 1


def _show_warning(
    message: Warning | str,
    category: type[Warning],
    filename: str,
    lineno: int,
    file: TextIO | None = None,
    line: str | None = None,
) -> None:
    """Print one line, without the source line that Python adds."""
    del category, filename, lineno, file, line
    text = message.message_data.text("shell") if isinstance(message, MessageWarning) else str(message)
    complain(f"Warning: {' '.join(text.split())}")
