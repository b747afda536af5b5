"""Commands of the analyses, derived from their signatures, type hints and docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from enum import StrEnum
from pathlib import Path
from shlex import quote
from typing import Any, get_type_hints

from rich.markup import escape

import dpmoments
from dpmoments.analysis.answers import Answer, aligned
from dpmoments.cli.options import (
    describe_parameters,
    documented_option,
    options_of,
    without_marks,
)
from dpmoments.cli.output import print_json, print_lines, print_text
from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.table_files import CSV_DELIMITERS, FEATHER_ENDINGS, PARQUET_ENDINGS, file_ending, open_ipc
from dpmoments.foundation.values import shown

Analysis = Callable[..., Answer]


def analyses(release_class: type = dpmoments.MomentRelease) -> dict[str, Analysis]:
    """Return every analysis by name, in the order of the release class.

    They are its attributes that are functions from a module of ``dpmoments.analysis``.

    >>> "ridge" in analyses()
    True
    """
    return {
        name: value
        for name, value in vars(release_class).items()
        if not name.startswith("_") and inspect.isfunction(value) and value.__module__.startswith("dpmoments.analysis.")
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

    @options_of(analysis, leave_out=(released_name,), own=own, objects={})
    def command(written: dict[str, Any], file: Path, as_json: bool = False) -> None:
        # what was not given is left to the analysis: an empty list and None are not what a person wrote
        chosen = {key: _as_declared(value) for key, value in written.items() if value is not None and value != []}
        released = dpmoments.load(file)
        if isinstance(released, dpmoments.CountsRelease) and analysis in _OF_COUNTS:
            answer = _OF_COUNTS[analysis](released, **chosen)
        else:
            released = moments_in(file, name)
            answer = analysis(
                released, **{key: _read_frame(value) if hints[key] is Any else value for key, value in chosen.items()}
            )
        if as_json:
            print_json(answer.to_dict())
            return
        for part in filter(None, [*answer.heading, aligned(answer.table()), *answer.remarks]):
            (print_lines if "\n" in part else print_text)(part)  # only tables keep their lines

    example = " ".join(
        ["dpmoments", name, "people.json", *(option.metavar for option in own.values() if option.metavar)]
    )
    summary = escape(without_marks((inspect.getdoc(analysis) or "").partition("\n\n")[0]))
    command.__doc__ = f"{summary}\n\nExample:\n\n  {example}\n"
    return command


def moments_in(release_file: Path, name: str) -> dpmoments.MomentRelease:
    """Load the release in a file, if it can be analyzed."""
    released = dpmoments.load(release_file)
    if isinstance(released, dpmoments.MeanRelease):
        raise InputValueError(
            f"{release_file} holds only a mean, and '{name}' needs count, mean and second moment, which "
            f"'dpmoments release' makes. 'dpmoments show {quote(str(release_file))}' prints the mean."
        )
    if isinstance(released, dpmoments.CountsRelease):
        raise InputValueError(
            f"{release_file} holds only contingency tables, and '{name}' needs count, mean and second moment, "
            f"which 'dpmoments release' makes. 'dpmoments show {quote(str(release_file))}' prints the tables."
        )
    if isinstance(released, dpmoments.GroupReleases):
        raise InputValueError(
            f"{release_file} holds a release for each level of {released.by.name}, and '{name}' takes one. "
            f"'dpmoments groups {quote(str(release_file))} --into FOLDER' writes each to its own file."
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


def _as_declared(value: Any) -> Any:
    """Return text for typer's enumeration members."""
    if isinstance(value, list):
        return [_as_declared(entry) for entry in value]
    return str(value) if isinstance(value, StrEnum) else value
