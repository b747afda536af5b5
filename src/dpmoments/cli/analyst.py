"""Analyst's commands in addition to the analyses: show, verify, groups, pool, synthetic.

They cost no privacy.
"""

from __future__ import annotations

from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Annotated, Any

import typer

import dpmoments
from dpmoments.cli.analyses import moments_in
from dpmoments.cli.options import AsJson, Overwrite, ReleaseFile
from dpmoments.cli.output import bad_option, complain, print_json, print_lines, print_table, print_text
from dpmoments.foundation.documents import check_output
from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.table_files import write_table
from dpmoments.messages.message import Message
from dpmoments.releases.counts_release import CountsRelease
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.releases.release_warning import AnyRelease
from dpmoments.repair.repair import Repair

if TYPE_CHECKING:
    from dpmoments.audit.verification import Check

_DESCRIBED = ("n_rows", "feature_names", "mean", "mean_noise", "standard_deviation", "root_mean_square")


def show(
    file: ReleaseFile,
    as_json: AsJson = False,
    for_audit: Annotated[
        bool, typer.Option("--audit", help="Show an auditor's statement instead, after NIST SP 800-226.")
    ] = False,
    ledger: Annotated[
        Path | None,
        typer.Option("--ledger", help="Ledger that was charged, for --audit: adds the total loss of all its releases."),
    ] = None,
) -> None:
    """Show a release: its guarantee, the privacy loss of each noise draw, and its results.

    Values are in original units. Mean-only releases are shown, as well.

    Examples:

      dpmoments show people.json
      dpmoments show --audit people.json
    """
    if ledger is not None and not for_audit:
        raise bad_option("--ledger", Message("option-needs-option", option="--audit"))
    released = dpmoments.load(file)
    if for_audit:
        statement = released.auditor_statement(ledger=ledger)
        if as_json:
            print_json(statement.to_dict())
        else:
            print_text(statement.describe())
        return
    if as_json:
        print_json(_shown_as_dict(released))
        return
    print_text(released.privacy.describe())
    print_text(f"Release {released.id}{'' if released.dataset is None else f' of {released.dataset}'}.")
    print_text()
    print_text("Receipt: each query and its privacy loss; then the total, and the stated budget.")
    print_table(("noised", "law", "sensitivity", "loss"), released.receipt.lines())
    if (on_a_unit := released.receipt.on_a_unit_text) is not None:
        print_text(on_a_unit, indent=2)
    print_text()
    if isinstance(released, GroupReleases):
        _show_groups(released)
    elif isinstance(released, CountsRelease):
        _show_counts(released)
    elif isinstance(released, MeanRelease):
        _show_mean(released)
    else:
        _show_moments(released)
    for message in released.warnings:
        print_text()
        print_text(f"Warning: {message.text()}")


def _show_moments(released: MomentRelease) -> None:
    print_text(f"{_mechanism(released)}; repair: {released.repair}")
    if released.chosen_because is not None:
        print_text(f"Chosen: {released.chosen_because.text()}")
    description = released.describe()
    print_text(f"rows: {description.rows_text}")
    print_text()
    _show_schema(released)
    head, *features = description.table()
    print_table(head, map(tuple, features), numbers=head[1:])
    if description.noise_text:
        print_text(description.noise_text)


def _show_groups(groups: GroupReleases) -> None:
    first = groups.releases[0]
    print_text(_mechanism(first))
    print_text()
    _show_schema(first)
    print_table(
        (groups.by.name, "rows"), ((str(level), release.describe().rows_text) for level, release in groups.items())
    )
    print_text("'dpmoments groups' writes each of them to its own file.")


def groups(
    file: ReleaseFile,
    into: Annotated[Path, typer.Option("--into", help="An existing folder; no file in it is overwritten.")],
) -> None:
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


def pool(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Releases of tables that have no row in common.", show_default=False),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write the pooled release; never overwritten.")
    ],
    repair: Annotated[Repair, typer.Option("--repair", help="Post-processing of the noisy moments.")] = Repair.AUTO,
) -> None:
    """Combine releases of several tables that have no row in common.

    Adds counts, sums, second moments and noise variances. The tables must have the
    same schema. It costs no privacy: the budget is the largest of those spent,
    since each row is in one table.

    Example:

      dpmoments pool north.json south.json --output all.json
    """
    check_output(output)
    released = [dpmoments.load(file) for file in files]
    for file, one in zip(files, released, strict=True):
        if isinstance(one, GroupReleases):
            raise InputValueError(
                f"{file} holds several releases, and this command takes one. "
                f"'dpmoments groups {quote(str(file))} --into FOLDER' writes each to its own file."
            )
    pooled = dpmoments.pool(released, repair=repair)
    pooled.save(output)
    print_text(f"Wrote {output}: {len(pooled.parts)} releases pooled.")
    print_text()
    print_text(pooled.privacy.describe())


def synthetic(
    file: ReleaseFile,
    n_rows: Annotated[int, typer.Option("--n-rows", "-n", min=1, help="How many rows.", show_default=False)],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Where to write them, as .csv or .parquet; never overwritten.")
    ],
    seed: Annotated[int, typer.Option("--seed", min=0, help="Seed of the synthetic rows; not secret.")] = 0,
    raw_text: Annotated[
        bool,
        typer.Option(
            "--raw-text", help="In CSV, write levels such as =A1 unchanged: a spreadsheet may run them as formulas."
        ),
    ] = False,
) -> None:
    """Draw synthetic rows that have the moments of a release.

    They have the schema's types, levels and bounds. No row is a person's, and
    everything that the release does not contain is invented: tails, skewness,
    dependence beyond correlation. It costs no privacy.

    Example:

      dpmoments synthetic people.json -n 1000 -o rows.csv
    """
    check_output(output)
    released = moments_in(file, "synthetic")
    escaped = write_table(released.synthetic(n_rows, seed, format="arrow"), output, raw_text=raw_text)
    if not released.privacy.private:
        complain("Warning: NOT PRIVATE: the release was made with an insecure seed, and its rows protect nobody.")
    print_text(f"Wrote {output}: {n_rows:,} synthetic rows of {len(released.schema.columns)} columns.")
    if escaped:
        print_text(
            "Text that a spreadsheet would run as a formula has an apostrophe before it, and is then not a "
            "level of the schema. To read the rows with the schema, write Parquet, or use --raw-text."
        )


def _show_mean(released: MeanRelease) -> None:
    print_text("Mean only: no second moment was released, so analyses do not work on it.")
    print_text(_mechanism(released))
    exactness = "public, exact" if released.count_is_public else "noisy"
    print_text(f"rows: {released.n_rows:,} ({exactness})")
    print_text()
    _show_schema(released)
    head, *means = released.table()
    print_table(head, means, numbers=head[1:])
    print_text(released.noise_text)


def _show_counts(released: CountsRelease) -> None:
    print_text("Contingency tables only: no mean or second moment was released.")
    print_text()
    _show_schema(released)
    for table in released.tables:
        print_lines(table.summary())
        print_text()


def _mechanism(released: MomentRelease | MeanRelease) -> str:
    options = ", ".join(f"{key}={value}" for key, value in released.mechanism_options.items())
    return f"mechanism: {released.mechanism}{f' ({options})' if options else ''}"


def _show_schema(released: MomentRelease | MeanRelease | CountsRelease) -> None:
    print_table(
        ("column", "kind", "public values", "missing"),
        ((column.name, column.kind, column.public_values_text, column.missing) for column in released.schema.columns),
    )
    for column in released.schema.columns:
        if column.description is not None:
            print_text(f"{column.name}: {column.description}")
    print_text()


def verify(file: ReleaseFile) -> None:
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
    outcomes = checks(released)
    for check in outcomes:
        print_text(f"{_mark(check)}{check.what}: {check.detail}")
    if not released.privacy.private:
        complain("Warning: NOT PRIVATE: this release was made with an insecure seed and protects nobody.")
    failed = [check for check in outcomes if check.passed is False]
    if failed:
        complain(f"dpmoments: {file} is inconsistent: {'; '.join(check.what for check in failed)}")
        raise typer.Exit(1)


def _mark(check: Check) -> str:
    return "unknown   " if check.passed is None else "ok        " if check.passed else "FAILED    "


def _shown_as_dict(released: AnyRelease) -> dict[str, Any]:
    if isinstance(released, GroupReleases):
        return {
            "by": released.by.to_dict(),
            "privacy": released.privacy.to_dict() | {"description": released.privacy.describe()},
            "receipt": released.receipt.to_dict(),
            "groups": [_as_dict(release) for release in released.releases],
        }
    if isinstance(released, CountsRelease):
        return _counts_as_dict(released)
    return _mean_as_dict(released) if isinstance(released, MeanRelease) else _as_dict(released)


def _as_dict(released: MomentRelease) -> dict[str, Any]:
    described = released.describe().to_dict()
    return {
        **_spent(released),
        "repair": str(released.repair),
        "warnings": [message.to_dict() | {"description": message.text()} for message in released.warnings],
        "noise": None if released.noise_model is None else released.noise_model.to_dict(),
        "schema": released.schema.to_dict(),
        **{key: described[key] for key in _DESCRIBED if key in described},
        "covariance": None if released.noisy_sum is None else released.covariance,
        "second_moment": None if released.noisy_count is None else released.second_moment,
        "gram": released.gram,
    }


def _mean_as_dict(released: MeanRelease) -> dict[str, Any]:
    return {
        **_spent(released),
        "warnings": [message.to_dict() | {"description": message.text()} for message in released.warnings],
        "schema": released.schema.to_dict(),
        "n_rows": released.n_rows,
        "feature_names": list(released.feature_names),
        "mean": released.mean,
        "mean_noise": released.standard_errors,
        "noise": None if released.noise is None else released.noise.to_dict(),
    }


def _counts_as_dict(released: CountsRelease) -> dict[str, Any]:
    return {
        **_spent(released),
        "warnings": [message.to_dict() | {"description": message.text()} for message in released.warnings],
        "schema": released.schema.to_dict(),
        "tables": [table.to_dict() for table in released.tables],
    }


def _spent(released: MomentRelease | MeanRelease | CountsRelease) -> dict[str, Any]:
    return {
        "origin": released.origin.to_dict(),
        "privacy": released.privacy.to_dict() | {"description": released.privacy.describe()},
        "receipt": released.receipt.to_dict(),
        "mechanism": released.mechanism,
        "mechanism_options": dict(released.mechanism_options),
    }


# The command of whoever holds a release and wants to read it: report.


def report(
    file: ReleaseFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the page, as .html.")],
    regression: Annotated[
        list[str] | None,
        typer.Option(
            "--regression",
            metavar="FORMULA",
            help="An R formula: 'income ~ age + C(sex)', names with special characters in `backticks`. May be repeated.",
        ),
    ] = None,
    groups: Annotated[
        list[str] | None,
        typer.Option(
            "--groups",
            metavar="COLUMN:OF",
            help="Means of a feature by the levels of a column: sex:hours-per-week. May be repeated.",
        ),
    ] = None,
    level: Annotated[float, typer.Option("--level", help="Confidence level of intervals.")] = 0.95,
    summary: Annotated[
        bool,
        typer.Option(
            "--summary", help="Only guarantee, findings, first and requested tables, limits: one or two printed pages."
        ),
    ] = False,
    overwrite: Overwrite = False,
) -> None:
    """Write a page about a release: its guarantee, its results, and what is noise.

    The page is one file without network access or scripts, for a browser or a
    printer. For a grouped release it has a section per group. It costs no privacy.

    Example:

      dpmoments report people.json -o report.html \\
        --regression "income ~ age + C(sex)" --groups sex:income
    """
    from dpmoments.reporting.report import group_asked_for

    released = dpmoments.load(file)
    schema = released.runs[0].schema
    dpmoments.report(
        released,
        output,
        regressions=regression or [],
        groups=[group_asked_for(text, schema) for text in groups or []],
        level=level,
        summary=summary,
        overwrite=overwrite,
    )
    if not released.privacy.private:
        complain(
            "Warning: NOT PRIVATE: the release was made with an insecure seed and protects nobody; its page says so."
        )
    print_text(f"Wrote {output}: open it in a browser.")
