"""The commands of whoever holds the table: init, forecast, release."""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path
from typing import Annotated

import typer

import dpmoments
from dpmoments.analysis.answers import number
from dpmoments.cli.options import (
    AsJson,
    Delta,
    Epsilon,
    Mean,
    NeighborsOption,
    Rho,
    SchemaFile,
    budget_of,
    mechanism_of,
)
from dpmoments.cli.tables import complain, print_command, print_json, print_table, print_text
from dpmoments.documents import check_output
from dpmoments.moment_release import MomentRelease
from dpmoments.repair.repair import Repair
from dpmoments.schema.schema import Schema
from dpmoments.schema.template import default_output, read_header, schema_template
from dpmoments.table_files import expand_paths

__all__ = ["forecast", "init", "release"]


def init(
    table: Annotated[
        str, typer.Argument(help="A Parquet or CSV file, a quoted glob, or a folder.", show_default=False)
    ],
    output: Annotated[
        Path | None,
        typer.Option("--output", help="Where to write; default: the table's name, .yaml.", show_default=False),
    ] = None,
) -> None:
    """Write the schema of a table, with bounds and levels left blank.

    Only the header of the file is looked at: names of columns, and types where
    the file declares them (Parquet). The blanks are yours to fill in, from public
    knowledge; comments in the file say how.

    Example:

      dpmoments init people.parquet --output people.yaml
    """
    path = default_output(table) if output is None else output
    text = schema_template(read_header(expand_paths(table)[0]), table)
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        raise FileExistsError(
            f"{path} exists already and is not overwritten: name another file with --output"
        ) from None
    print_text(f"{path}: fill in its blanks from public knowledge, delete the columns that are not wanted, then")
    print_command(f"dpmoments forecast --schema {path} --n-rows ROWS --epsilon 1 --neighbors add_remove")


def forecast(
    schema: SchemaFile,
    n_rows: Annotated[
        int, typer.Option("--n-rows", min=1, help="The number of rows you expect; it scales the errors.")
    ],
    neighbors: NeighborsOption,
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    rho: Rho = None,
    mean: Mean = True,
    as_json: AsJson = False,
) -> None:
    """Show the expected error of every mechanism. Reads no data, spends nothing.

    The error of the second moment is the root mean square of its Frobenius norm,
    that of the mean the root mean square of its length: for rows encoded to length
    1 at most, and before the repair, which lowers large errors.

    Example:

      dpmoments forecast --schema people.yaml --n-rows 50000 \\
        --epsilon 1 --neighbors add_remove
    """
    budget = budget_of(epsilon, delta, rho)
    table = dpmoments.forecast(
        Schema.load(schema), n_rows=n_rows, epsilon=epsilon, delta=delta, rho=rho, neighbors=neighbors, mean=mean
    )
    if as_json:
        rows = [
            {
                "mechanism": row.mechanism,
                "second_moment_error": row.second_moment_error,
                "mean_error": row.mean_error,
                "arithmetic": row.arithmetic,
                "refusal": row.refusal,
            }
            for row in table
        ]
        print_json({"n_rows": n_rows, "budget": budget.to_dict(), "neighbors": str(neighbors), "mechanisms": rows})
        return
    print_text(f"Expected error for {n_rows:,} rows, {budget}, {neighbors}; encoded rows, before repair")
    print_table(
        ("mechanism", "second moment", "mean", "arithmetic"),
        (
            (row.mechanism, number(row.second_moment_error), number(row.mean_error), row.arithmetic or "–")
            for row in table
            if row.refusal is None
        ),
        numbers=("second moment", "mean"),
    )
    for row in table:
        if row.refusal is not None:
            print_text(f"not {row.mechanism}: {row.refusal}")


def release(
    data: Annotated[
        list[str],
        typer.Argument(metavar="DATA", help="A Parquet or CSV file, a quoted glob, or a folder.", show_default=False),
    ],
    schema: SchemaFile,
    neighbors: NeighborsOption,
    output: Annotated[Path, typer.Option("--output", help="Where to write the release; never overwritten.")],
    epsilon: Epsilon = None,
    delta: Delta = 0.0,
    rho: Rho = None,
    n_rows: Annotated[
        int | None,
        typer.Option(
            "--n-rows",
            min=1,
            help="The number of rows, only if it is public from elsewhere than the table.",
            rich_help_panel="Privacy: what is spent, and on what",
        ),
    ] = None,
    mechanism: Annotated[
        str, typer.Option("--mechanism", help="A name that 'dpmoments mechanisms' lists.", rich_help_panel="Method")
    ] = "auto",
    option: Annotated[
        list[str] | None,
        typer.Option(
            "--option",
            metavar="KEY=VALUE",
            help="An option of the mechanism; may be repeated.",
            rich_help_panel="Method",
        ),
    ] = None,
    mean: Mean = True,
    repair: Annotated[
        Repair, typer.Option("--repair", help="Post-processing of the noisy moments.", rich_help_panel="Method")
    ] = Repair.AUTO,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask before spending.")] = False,
    progress: Annotated[
        bool | None,
        typer.Option("--progress/--no-progress", help="A bar while rows are read; default: in a terminal."),
    ] = None,
    insecure_seed: Annotated[
        int | None,
        typer.Option(
            "--insecure-seed", min=0, help="FOR TESTS ALONE: repeat the noise. Such a release protects nobody."
        ),
    ] = None,
) -> None:
    """Release count, mean and second moment of a table, once: this spends budget.

    All that can be refused is refused before a row is read. In a terminal you are
    asked before anything is spent, unless --yes is given; in a script the
    command itself is the answer. Quote a glob, so that the shell leaves it alone.

    Example:

      dpmoments release 'people/*.parquet' --schema people.yaml \\
        --epsilon 1 --neighbors add_remove --output people.json
    """
    if len(data) > 1:
        raise typer.BadParameter("one path is read: put a glob in quotes, 'people/*.parquet'", param_hint="DATA")
    budget = budget_of(epsilon, delta, rho)
    configured = mechanism_of(mechanism, option or [])
    description = Schema.load(schema)
    check_output(output)
    if insecure_seed is not None:
        complain(
            "WARNING: NOT PRIVATE. --insecure-seed makes noise that anyone can repeat and subtract: the release will protect "
            "nobody. Never publish it."
        )
    if not yes and sys.stdin.isatty() and sys.stderr.isatty():
        question = (
            f"Spend {budget} ({neighbors}) on {data[0]}: {description.n_features} features, mechanism {mechanism}, written to "
            f"{output}?"
        )
        if not typer.confirm(question, err=True):
            complain("dpmoments: nothing was spent")
            raise typer.Exit(1)
    try:
        released = dpmoments.release(
            data[0],
            description,
            epsilon=epsilon,
            delta=delta,
            rho=rho,
            neighbors=neighbors,
            mechanism=configured,
            mean=mean,
            repair=repair,
            n_rows=n_rows,
            output=output,
            progress=sys.stderr.isatty() if progress is None else progress,
            insecure_seed=insecure_seed,
        )
    except dpmoments.UnsavedReleaseError as error:
        # The budget is spent: the release must not be lost with the disk that was to hold it.
        refuge = Path(tempfile.mkdtemp(prefix="dpmoments-")) / output.name
        error.release.save(refuge)
        complain(f"dpmoments: {output} could not be written after all; the release is kept in {refuge}")
        raise typer.Exit(1) from None
    print_text(_released(released, output))
    print_text()
    print_text(released.privacy.in_words())
    print_text()
    print_text("Next:")
    print_command(f"dpmoments show {output}")


def _released(released: MomentRelease, output: Path) -> str:
    exactness = "exact" if released.count_is_public else "noisy"
    count = "" if released.noisy_count is None else f" of {released.n_rows:,} rows ({exactness})"
    what = "count, mean and second moment" if released.noisy_sum is not None else "the second moment"
    columns = len(released.schema.columns)
    return (
        f"Wrote {output}: {what}{count}, {len(released.feature_names)} features from {columns} columns, by "
        f"{released.mechanism}; repair {released.repair}."
    )
