"""Commands of the analyses, derived from their signatures, type hints and docstrings."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from shlex import quote
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

import typer
from rich.markup import escape

import dpmoments
from dpmoments.analysis.answers import Answer, aligned
from dpmoments.cli.options import AsJson, ReleaseFile
from dpmoments.cli.output import print_json, print_lines, print_text
from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.table_files import CSV_DELIMITERS, FEATHER_ENDINGS, PARQUET_ENDINGS, file_ending, open_ipc
from dpmoments.foundation.values import shown

# What a numpydoc docstring says of the parameters: the command line and the pages of the mechanisms read it.


class ParameterWords(NamedTuple):
    """Documentation of one parameter: the text after its name, and the text below it."""

    kind: str
    text: str


def describe_parameters(documented: Any) -> dict[str, ParameterWords]:
    """Parse a docstring's parameter section, by name, with lines joined; empty without one.

    >>> def area(width, height):
    ...     '''An area.
    ...
    ...     Parameters
    ...     ----------
    ...     width, height : float
    ...         In meters.
    ...     '''
    >>> describe_parameters(area)["height"]
    ParameterWords(kind='float', text='In meters.')
    """
    section = re.search(r"^Parameters\n-+\n(.*?)(?=^\S[^\n]*\n-+$|\Z)", inspect.getdoc(documented) or "", re.S | re.M)
    kinds: dict[str, str] = {}
    lines: dict[str, list[str]] = {}
    names: list[str] = []
    for line in (section[1] if section else "").splitlines():
        if line and not line.startswith(" "):
            listed, _, kind = line.partition(" : ")
            names = listed.split(", ")
            kinds |= dict.fromkeys(names, kind)
        else:
            for name in names:
                lines.setdefault(name, []).append(line.strip())
    return {name: ParameterWords(kind, " ".join(filter(None, lines.get(name, [])))) for name, kind in kinds.items()}


_SHORT_NAMES = {"n_components": ("-k", "--components")}
"""Options with other names than their parameters."""
_NUMBERS = (int, float)
_SEQUENCES = (Sequence, list, tuple)
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


def _described_counts(released: dpmoments.CountsRelease, columns: Sequence[str] = ()) -> Answer:
    return released.describe(*columns)


_OF_COUNTS: Mapping[Analysis, Callable[..., Answer]] = {
    dpmoments.MomentRelease.describe: _described_counts,
    dpmoments.MomentRelease.cross_table: dpmoments.CountsRelease.cross_table,
}
"""Analyses that contingency tables have too."""


def command_of(name: str, analysis: Analysis) -> Callable[..., None]:
    """Build the command of an analysis: a function that typer reads.

    Parameters without a default become arguments, all others options, with help from the docstring.
    """
    _, *parameters = inspect.signature(analysis).parameters.values()
    hints, words = get_type_hints(analysis), _describe_parameters(analysis)
    made = {parameter.name: _declared(parameter, hints[parameter.name], words) for parameter in parameters}

    def command(release_file: Any, *, as_json: bool, **given: Any) -> None:
        # what was not given is left to the analysis: an empty list and None are not what a person wrote
        chosen = {key: _as_declared(value) for key, value in given.items() if value is not None and value != []}
        released = dpmoments.load(release_file)
        if isinstance(released, dpmoments.CountsRelease) and analysis in _OF_COUNTS:
            answer = _OF_COUNTS[analysis](released, **chosen)
        else:
            released = moments_in(release_file, name)
            answer = analysis(
                released, **{key: _read_frame(value) if hints[key] is Any else value for key, value in chosen.items()}
            )
        if as_json:
            print_json(answer.to_dict())
        else:
            _print_answer(answer)

    keyword = inspect.Parameter.KEYWORD_ONLY
    shown = [
        inspect.Parameter("release_file", keyword, annotation=ReleaseFile),
        *(parameter.replace(kind=keyword, annotation=made[parameter.name]) for parameter in parameters),
        inspect.Parameter("as_json", keyword, annotation=AsJson, default=False),
    ]
    # typer reads the first, and looks names up in the second
    command.__signature__ = inspect.Signature(shown)  # type: ignore[attr-defined]
    command.__annotations__ = {parameter.name: parameter.annotation for parameter in shown}
    arguments = [_metavar(parameter) for parameter in parameters if parameter.default is parameter.empty]
    example = " ".join(["dpmoments", name, "people.json", *arguments])
    command.__doc__ = f"{_summary(analysis)}\n\nExample:\n\n  {example}\n"
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


def _declared(parameter: inspect.Parameter, hint: Any, words: dict[str, str]) -> Any:
    """Return typer's annotation of a parameter: its type, and an argument or a named option."""
    kind, several, parser = _kind(parameter, hint)
    repeated = " May be repeated." if several else ""
    shown: dict[str, Any] = {"help": escape(words.get(parameter.name, "")) + repeated}
    if parser is not None:
        shown["parser"] = parser
    if kind is int and parameter.name.startswith("n_"):
        shown["min"] = 1  # a number of things
    optional = parameter.default is None
    annotation: Any = list[kind] if several else kind  # type: ignore[valid-type]  # made here, for typer alone
    if parameter.default is parameter.empty:
        return Annotated[annotation, typer.Argument(metavar=_metavar(parameter), show_default=False, **shown)]
    return Annotated[
        annotation | None if optional else annotation,
        typer.Option(*_flags(parameter.name, kind, several), show_default=not optional, **shown),
    ]


def _kind(parameter: inspect.Parameter, hint: Any) -> tuple[Any, bool, Callable[[str], Any] | None]:
    """Return the type of one value, True if several are allowed, and a parser if typer has none."""
    if hint is Any:  # a frame, read once it is known that the release can be analyzed
        return Path, False, None
    # a mapping is for programs: every analysis that takes one takes a list of names too
    members = [member for member in _members(hint) if member is not NoneType and get_origin(member) is not Mapping]
    words = [word for member in members if get_origin(member) is Literal for word in get_args(member)]
    plain = [member for member in members if get_origin(member) is None]
    if all(isinstance(word, str) for word in words):
        if not words and len(members) == 1 and plain and plain[0] in (str, bool, *_NUMBERS):
            return plain[0], False, None
        if words and not plain and len(members) == 1:
            return StrEnum(parameter.name.title(), {word: word for word in words}), False, None
        if words and len(members) == 2 and plain and plain[0] in _NUMBERS:
            return Any, False, lambda text: text if text in words else plain[0](text)
    if len(members) == 1 and get_origin(members[0]) in _SEQUENCES:
        kind, several, parser = _kind(parameter, get_args(members[0])[0])
        if not several:
            return kind, True, parser
    raise AssertionError(
        f"parameter {parameter.name!r} is of type {hint}, which no option has: use str, bool, int, float, a Literal of words, "
        "a number or such a Literal, or a sequence of one of them, each or None; or Any, for a frame"
    )


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


def _print_answer(answer: Answer) -> None:
    """Print text wrapped at the terminal's width, and tables unchanged."""
    for part in filter(None, [*answer.heading, aligned(answer.table()), *answer.remarks]):
        (print_lines if "\n" in part else print_text)(part)


def _members(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)


def _flags(name: str, kind: Any, several: bool) -> tuple[str, ...]:
    """Return the option names."""
    # ``features`` is a repeatable ``--feature``, and Booleans also have ``--no-``.
    if name in _SHORT_NAMES:
        return _SHORT_NAMES[name]
    dashed = name.replace("_", "-")
    if several:
        return (f"--{dashed.removesuffix('s')}",)
    return (f"--{dashed}/--no-{dashed}",) if kind is bool else (f"--{dashed}",)


def _metavar(parameter: inspect.Parameter) -> str:
    return parameter.name.upper()


def _as_declared(value: Any) -> Any:
    """Return text for typer's enumeration members."""
    if isinstance(value, list):
        return [_as_declared(entry) for entry in value]
    return str(value) if isinstance(value, StrEnum) else value


def _summary(analysis: Analysis) -> str:
    return escape(_without_marks((inspect.getdoc(analysis) or "").partition("\n\n")[0]))


def _describe_parameters(analysis: Analysis) -> dict[str, str]:
    return {name: _without_marks(words.text) for name, words in describe_parameters(analysis).items()}


def _without_marks(text: str) -> str:
    """Remove markup that only documentation pages show: ``code`` and :class:`references`."""
    return re.sub(r":\w+:`~?([^`]*)`|``([^`]*)``", lambda match: match[1] or match[2], text)
