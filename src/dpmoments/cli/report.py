"""The command of whoever holds a release and wants to read it: report."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import dpmoments
from dpmoments.cli.options import Overwrite, ReleaseFile
from dpmoments.cli.tables import complain, print_text
from dpmoments.reporting.report import group_asked_for


def report(
    file: ReleaseFile,
    output: Annotated[Path, typer.Option("--output", "-o", help="Where to write the page, as .html.")],
    regression: Annotated[
        list[str] | None,
        typer.Option(
            "--regression",
            metavar="FORMULA",
            help="An R formula: 'income ~ age + C(sex)', names with other signs in `backticks`. May be repeated.",
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
    level: Annotated[float, typer.Option("--level", help="Confidence of intervals.")] = 0.95,
    overwrite: Overwrite = False,
) -> None:
    """Write one page to read a release by: what it guarantees, what it says, and
    what is noise.

    The page is one file that needs no network and no script, for a browser or
    the printer. Of a release by groups it has a part for each. It costs no privacy.

    Example:

      dpmoments report people.json -o report.html \\
        --regression "income ~ age + C(sex)" --groups sex:income
    """
    released = dpmoments.load(file)
    schema = released.runs[0].schema
    dpmoments.report(
        released,
        output,
        regressions=regression or [],
        groups=[group_asked_for(text, schema) for text in groups or []],
        level=level,
        overwrite=overwrite,
    )
    if not released.privacy.private:
        complain(
            "WARNING: NOT PRIVATE: the release was made with an insecure seed and protects nobody; its page says so."
        )
    print_text(f"Wrote {output}: open it in a browser.")
