"""Commands of those who hold a release, which cost no privacy.

They are the analyses, derived from their signatures, and show, report, pool, ….
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import Any, get_origin, get_type_hints

import typer
from rich.markup import escape

import dpmoments
from dpmoments.analysis.answers import Answer, aligned
from dpmoments.base.documents import check_output
from dpmoments.base.errors import InputValueError, shown
from dpmoments.base.table_files import FEATHER_ENDINGS, PARQUET_ENDINGS, file_ending, open_ipc, write_table
from dpmoments.base.text_files import CSV_DELIMITERS
from dpmoments.cli.options import (
    Option,
    column_and_feature,
    describe_parameters,
    documented_option,
    options_of,
    with_options,
    without_marks,
)
from dpmoments.cli.output import complain, needs_option, print_answer, print_checks, print_json, print_text
from dpmoments.releases.counts_release import CountsRelease
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.loading import AnyRelease
from dpmoments.releases.mean_release import MeanRelease

Analysis = Callable[..., Answer]


class Program(StrEnum):
    """Programs that a script can be exported for."""

    LAVAAN = "lavaan"
    STATA = "stata"
    SPSS = "spss"


def analyses(release_class: type = dpmoments.MomentRelease) -> dict[str, Analysis]:
    """Return every analysis by name, in the order of the release class.

    They are its attributes that are functions from a module of ``dpmoments.analysis`` and return an answer; one of a function
    that a reader writes is for Python.

    >>> "ridge" in analyses()
    True
    """
    return {
        name: value
        for name, value in vars(release_class).items()
        if not name.startswith("_")
        and inspect.isfunction(value)
        and value.__module__.startswith("dpmoments.analysis.")
        and isinstance(kind := get_type_hints(value)["return"], type)
        and issubclass(kind, Answer)
        and "function" not in inspect.signature(value).parameters
    }


_OF_COUNTS: Mapping[Analysis, Callable[..., Answer]] = {
    dpmoments.MomentRelease.describe: lambda released, columns=(): released.describe(*columns),
    dpmoments.MomentRelease.cross_table: dpmoments.CountsRelease.cross_table,
}
"""Analyses that contingency tables have too."""


def command_of(name: str, analysis: Analysis) -> Callable[..., None]:
    """Build the command of an analysis: a function that typer reads.

    Parameters without a default become arguments, all others options, with help from the docstring.
    """
    released_name, *names = (parameters := inspect.signature(analysis).parameters)
    hints, words = get_type_hints(analysis), describe_parameters(analysis)
    own = {
        key: documented_option(parameters[key], hints[key], words[key].text if key in words else "") for key in names
    }
    lists = [key for key, option in own.items() if option.argument and get_origin(hints[key]) is Sequence]
    if len(lists) > 1:  # a shell cannot tell where one ends
        own |= {key: replace(own[key], argument=False, metavar=None) for key in lists}

    @options_of(analysis, leave_out=(released_name,), own=own, objects={})
    def command(written: dict[str, Any], file: Path, as_json: bool = False) -> None:
        # what was not given is left to the analysis: an empty list and None are not what a person wrote
        chosen = {key: _as_declared(value) for key, value in written.items() if value is not None and value != []}
        released = dpmoments.load(file)
        if isinstance(released, dpmoments.CountsRelease) and analysis in _OF_COUNTS:
            answer = _OF_COUNTS[analysis](released, **chosen)
        else:
            moments = moments_in(released, file, name)
            answer = analysis(
                moments, **{key: _read_frame(value) if hints[key] is Any else value for key, value in chosen.items()}
            )
        print_answer(answer, as_json)

    example = " ".join(
        ["dpmoments", name, "people.json", *(option.metavar for option in own.values() if option.metavar)]
    )
    summary = escape(without_marks((inspect.getdoc(analysis) or "").partition("\n\n")[0]))
    command.__doc__ = f"{summary}\n\nExample:\n\n  {example}\n"
    return command


def moments_in(released: AnyRelease, release_file: Path, name: str) -> dpmoments.MomentRelease:
    """Return the release of a file, if it can be analyzed."""
    for kind, held, shown_by in (
        (dpmoments.MeanRelease, "a mean", "the mean"),
        (dpmoments.CountsRelease, "contingency tables", "the tables"),
    ):
        if isinstance(released, kind):
            raise InputValueError(
                f"{release_file} holds only {held}, and '{name}' needs count, mean and second moment, which 'dpmoments "
                f"release' makes. 'dpmoments show {quote(str(release_file))}' prints {shown_by}."
            )
    moments: dpmoments.MomentRelease = _one_release(release_file, released, f"'{name}'")
    return moments


def _one_release(file: Path, released: AnyRelease, taker: str) -> Any:
    """Return a release that is not one of groups."""
    if isinstance(released, GroupReleases):
        raise InputValueError(
            f"{file} holds a release for each level of {released.by.name}, and {taker} takes one. "
            f"'dpmoments groups {quote(str(file))} --into FOLDER' writes each to its own file."
        )
    return released


def _read_frame(path: Path) -> Any:
    """Read the analyst's own rows: a Parquet, Feather, CSV or TSV file as an Arrow table."""
    from pyarrow import ArrowInvalid, csv, parquet

    ending = file_ending(path)
    if not path.is_file():
        raise InputValueError(
            f"there is no file {shown(str(path))}: rows to analyze are read from a .parquet, .csv or .tsv file"
        )
    try:
        if ending in PARQUET_ENDINGS:
            return parquet.read_table(path)
        if ending in FEATHER_ENDINGS:
            with open_ipc(path) as reader:
                return reader.read_all()
        if ending in CSV_DELIMITERS:
            return csv.read_csv(path, parse_options=csv.ParseOptions(delimiter=CSV_DELIMITERS[ending]))
    except (ArrowInvalid, ValueError):
        raise InputValueError(f"{path} does not read as {ending}") from None
    raise InputValueError(f"{path} is no .parquet, .csv or .tsv file: rows to analyze are read from one")


def _warn_if_not_private(released: AnyRelease) -> None:
    if not released.privacy.private:
        complain("Warning: NOT PRIVATE: the release was made with an insecure seed and protects nobody.")


def _as_declared(value: Any) -> Any:
    """Return text for typer's enumeration members."""
    if isinstance(value, list):
        return [_as_declared(entry) for entry in value]
    return str(value) if isinstance(value, StrEnum) else value


_DESCRIBED = ("n_rows", "feature_names", "mean", "mean_noise", "standard_deviation", "root_mean_square")


@with_options(
    for_audit=Option("Show an auditor's statement instead, after NIST SP 800-226.", flags=("--audit",)),
    ledger=Option("Ledger that was charged, for --audit: adds the total loss of all its releases."),
)
def show(file: Path, as_json: bool = False, for_audit: bool = False, ledger: Path | None = None) -> None:
    """Show a release: its guarantee, the privacy loss of each noise draw, and its results.

    Values are in original units. Mean-only releases are shown, as well.

    Examples:

      dpmoments show people.json
      dpmoments show --audit people.json
    """
    if ledger is not None and not for_audit:
        raise needs_option("--ledger", "--audit")
    released = dpmoments.load(file)
    if for_audit:
        statement = released.auditor_statement(ledger=ledger)
        if as_json:
            print_json(statement.to_dict())
        else:
            print_text(statement.describe())
        return
    if as_json:
        print_json(_as_dict(released))
        return
    schema = released.runs[0].schema
    columns = [(column.name, column.kind, column.public_values_text, column.missing) for column in schema.columns]
    print_text(released.privacy.describe())
    print_text(f"Release {released.id}{'' if released.dataset is None else f' of {released.dataset}'}.\n")
    print_text("Receipt: each query and its privacy loss; then the total, and the stated budget.")
    print_text(aligned([("noised", "law", "sensitivity", "loss"), *released.receipt.lines()], numbers=False))
    print_text(f"{released.receipt.on_a_unit_text}\n" if released.receipt.on_a_unit_text else "")
    print_text(aligned([("column", "kind", "public values", "missing"), *columns], numbers=False))
    print_text("\n".join(f"{one.name}: {one.description}" for one in schema.columns if one.description))
    print_text(released.summary())
    if isinstance(released, GroupReleases):
        print_text("'dpmoments groups' writes each of them to its own file.")


@with_options(into=Option("An existing folder; no file in it is overwritten."))
def groups(file: Path, into: Path) -> None:
    """Write each group of a grouped release to its own file.

    Every command accepts these files. The groups cost no privacy beyond what was
    spent on all of them together.

    Example:

      dpmoments groups regions.json --into regions
    """
    released = dpmoments.load(file)
    if not isinstance(released, GroupReleases):
        raise InputValueError(
            f"{file} holds one release, and this command takes a release for each level of a column. "
            "'dpmoments release --by COLUMN' releases every level of a column."
        )
    if not into.is_dir():
        raise InputValueError(f"{into} is not a folder: make it first")
    released.save(into)
    print_text(f"Wrote {len(released)} releases into the folder {into}")


@options_of(
    dpmoments.pool,
    leave_out=("releases",),
    own={
        "files": Option("Releases of tables that have no row in common.", metavar="FILE...", argument=True),
        "output": Option("Where to write the pooled release; never overwritten.", flags=("--output", "-o")),
    },
)
def pool(options: dict[str, Any], files: list[Path], output: Path) -> None:
    """Combine releases of several tables that have no row in common.

    Adds counts, sums, second moments and noise variances. The tables must have the
    same schema. It costs no privacy: the budget is the largest of those spent,
    since each row is in one table.

    Example:

      dpmoments pool north.json south.json --output all.json
    """
    check_output(output)
    released = [_one_release(file, dpmoments.load(file), "this command") for file in files]
    pooled = dpmoments.pool(released, **options)
    pooled.save(output)
    print_text(f"Wrote {output}: {len(pooled.parts)} releases pooled.")
    print_text()
    print_text(pooled.privacy.describe())


@with_options(
    n_rows=Option("How many rows.", least=1, flags=("--n-rows", "-n")),
    output=Option("Where to write them, as .csv or .parquet; never overwritten.", flags=("--output", "-o")),
    seed=Option("Seed of the synthetic rows; not secret.", least=0),
    raw_text=Option(
        "In CSV, write levels such as =A1 unchanged: a spreadsheet may run them as formulas.", flags=("--raw-text",)
    ),
)
def synthetic(file: Path, n_rows: int, output: Path, seed: int = 0, raw_text: bool = False) -> None:
    """Draw synthetic rows that have the moments of a release.

    They have the schema's types, levels and bounds. No row is a person's, and
    everything that the release does not contain is invented: tails, skewness,
    dependence beyond correlation. It costs no privacy.

    Example:

      dpmoments synthetic people.json -n 1000 -o rows.csv
    """
    check_output(output)
    released = moments_in(dpmoments.load(file), file, "synthetic")
    escaped = write_table(released.synthetic(n_rows, seed, format="arrow"), output, raw_text=raw_text)
    _warn_if_not_private(released)
    print_text(f"Wrote {output}: {n_rows:,} synthetic rows of {len(released.schema.columns)} columns.")
    if escaped:
        print_text(
            "Text that a spreadsheet would run as a formula has an apostrophe before it, and is then not a "
            "level of the schema. To read the rows with the schema, write Parquet, or use --raw-text."
        )


@with_options(
    to=Option("Program that reads the script.", flags=("--to",)),
    columns=Option("A column or feature; repeat it for several. Default: all.", flags=("--column",)),
    output=Option("Where to write the script; never overwritten.", flags=("--output", "-o")),
)
def export(file: Path, to: Program, output: Path, columns: list[str] | None = None) -> None:
    """Write means and covariances as a script of lavaan, Stata or SPSS.

    In lavaan errors and tests hold the privacy noise; Stata and SPSS know none of
    it. It costs no privacy.

    Example:

      dpmoments export people.json --to lavaan -o people.R
    """
    check_output(output)
    released = moments_in(dpmoments.load(file), file, "export")
    script = released.export(to.value, columns or None)
    output.write_text(script, encoding="utf-8")
    _warn_if_not_private(released)
    print_text(f"Wrote {output}: a script of {to.value}.")


@with_options()
def verify(file: Path) -> None:
    """Check that a release is complete and consistent. Exit code 1 if not.

    The checksum detects accidents and careless edits; it is not a signature. The
    receipt is summed again from the file, which shows that the file is consistent.
    It does not prove that the noise was drawn.

    Example:

      dpmoments verify people.json
    """
    from dpmoments.audit.verification import checks

    released = dpmoments.load(file)
    print_text("ok        a complete release of a known version, unchanged (checksum)")
    failed = print_checks(checks(released))
    _warn_if_not_private(released)
    if failed:
        complain(f"dpmoments: {file} is inconsistent: {failed}")
        raise typer.Exit(1)


def _as_dict(released: AnyRelease) -> dict[str, Any]:
    """Return what ``show --json`` prints, arrays among it."""
    privacy = released.privacy.to_dict() | {"description": released.privacy.describe()}
    spent = {"privacy": privacy, "receipt": released.receipt.to_dict()}
    if isinstance(released, GroupReleases):
        return {"by": released.by.to_dict(), **spent, "groups": [*map(_as_dict, released.releases)]}

    stated: dict[str, Any] = {
        "origin": released.origin.to_dict(),
        **spent,
        "mechanism": released.mechanism,
        "mechanism_options": dict(released.mechanism_options),
        "warnings": [message.to_dict() | {"description": message.text()} for message in released.warnings],
        "schema": released.schema.to_dict(),
    }
    if isinstance(released, CountsRelease):
        return stated | {"tables": [table.to_dict() for table in released.tables]}
    noise: Any
    if isinstance(released, MeanRelease):
        noise, names = released.noise, ("n_rows", "feature_names", "mean")
        stated |= {name: getattr(released, name) for name in names} | {"mean_noise": released.standard_errors}
    else:
        noise, described = released.noise_model, Answer.to_dict(released.describe())  # of all features, as the moments
        stated |= {"repair": str(released.repair), "gram": released.gram}
        stated |= {name: described[name] for name in _DESCRIBED if name in described}
        stated["covariance"] = None if released.noisy_sum is None else released.covariance
        stated["second_moment"] = None if released.noisy_count is None else released.second_moment
    return stated | {"noise": None if noise is None else noise.to_dict()}


@options_of(
    dpmoments.report,
    leave_out=("subject",),
    own={
        "path": Option("Where to write the page, as .html.", flags=("--output", "-o")),
        "regressions": Option(
            "An R formula: 'income ~ age + C(sex)', names with special characters in `backticks`. May be repeated.",
            metavar="FORMULA",
        ),
        "groups": Option(
            "Means of a feature by the levels of a column: sex:hours-per-week. May be repeated.",
            metavar="COLUMN:OF",
            kind=list[str],
            flags=("--groups",),
        ),
        "summary": Option(
            "Only whether it is safe, of use, the findings, what stays open, limits: one printed page.",
            flags=("--summary",),
        ),
        "title": Option("Name of the table at the head of the page; default: its name in the release."),
        "headline": Option("The main finding in words, above the chart of findings."),
    },
    objects={},
)
def report(options: dict[str, Any], file: Path) -> None:
    """Write a page about a release: its guarantee, its results, and what is noise.

    The page is one file without network access or scripts, for a browser or a
    printer. For a grouped release it has a section per group. It costs no privacy.

    Example:

      dpmoments report people.json -o report.html \\
        --regression "income ~ age + C(sex)" --groups sex:income
    """
    released = dpmoments.load(file)
    schema = released.runs[0].schema
    options["groups"] = [column_and_feature(text, schema) for text in options["groups"]]
    dpmoments.report(released, **options)
    _warn_if_not_private(released)
    print_text(f"Wrote {options['path']}: open it in a browser.")
