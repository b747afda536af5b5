"""Preflight check of a private table, for its curator only, before anything is spent.

The table is compared with its schema, value by value and rule by rule, as in :mod:`dpmoments.rows.encode`. Nothing here enters a
release. Findings are ordered by severity; silent damage precedes what stops a release: an error is visible and spends nothing.
"""

from __future__ import annotations

import re
import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Container, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum
from os import PathLike
from pathlib import Path
from typing import Any, NoReturn, SupportsIndex, TextIO

from dpmoments.analysis.answers import rounded
from dpmoments.base.errors import InputTypeError, closest
from dpmoments.base.progress import watched
from dpmoments.base.table_files import STATISTICS_ENDINGS, statistics_columns
from dpmoments.base.text_files import TextFormat
from dpmoments.base.wordings import percent
from dpmoments.mechanisms.counts import Counts
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.planning.facts import AbsentColumn, ColumnFacts, FoundValue, ShiftFacts, TableFacts, UnitFacts
from dpmoments.planning.forecast_noise import ReleasePlan, joined
from dpmoments.planning.survey import STEPS, survey_table, survey_units
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import PrivacyBudget, PrivacyRequest
from dpmoments.privacy.unit import Neighbors, PrivacyUnit, require_unit
from dpmoments.rows.sources.opening import Table, columns_of_array, open_source
from dpmoments.rows.units import ROUNDS
from dpmoments.schema.columns import Boolean, Categorical, Coordinate, Numeric, WeightColumn
from dpmoments.schema.constraints import require_unweighted, schema_of_tables
from dpmoments.schema.dates import Date
from dpmoments.schema.derived import DerivedColumn
from dpmoments.schema.drafting import draft
from dpmoments.schema.schema import Schema, require_schema

_USUAL_EPSILON = 1.0
"""ε of the noise that shifts are compared with, if no budget is given."""

_MARK = "PRIVATE │ "
"""Mark of every line, so that a copied line stays marked."""
_FILLER = "\1"
"""Filler after a character that takes two terminal columns."""
_WIDTH = 100
_MIN_WIDTH = 40
_WARNING = (
    "For the curator only: exact facts about the table, without a privacy guarantee. A notebook, log or "
    "terminal history that stores these lines stores private facts. No budget was spent, nothing was written."
)
_ADVICE = (
    "Change the schema only from public knowledge (a codebook, legislation, how the column was recorded): units "
    "of measurement, spellings of levels, a wrong column. A bound or a level chosen because of these facts is "
    "read from the table, and a release's guarantee requires a schema that is not."
)


def preflight(
    data: Table,
    schema: Schema,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    by: str | Sequence[str] | Sequence[Sequence[str]] | None = None,
    mean: bool = True,
    privacy_unit: PrivacyUnit | None = None,
    text_format: TextFormat | None = None,
    threads: int | None = None,
    progress: bool | Callable[[float | None], None] = False,
) -> Preflight:
    """Check a private table as a release would read it, and report what does not fit its schema.

    Parameters
    ----------
    data : array, frame, path or relation
        As for :func:`dpmoments.release`.
    schema : Schema
    epsilon, delta, rho : float
        Budget of the planned release, whose noise the shift by a rule for missing values is compared with. Default:
        ε = 1. Nothing is spent.
    by : list of str, or list of lists of str, optional
        Columns of contingency tables, as for :func:`dpmoments.release_counts`: only these are read and checked.
    mean : bool
        As for the planned release.
    privacy_unit : PrivacyUnit, optional
        As for the planned release: adds the number of units, of those above the contribution bound, and of the rows
        that it leaves out.
    text_format : TextFormat, optional
        As for :func:`dpmoments.release`.
    threads : int, optional
        Default: the usable cores. Findings do not depend on it.
    progress : bool or callable
        As for :func:`dpmoments.release`.

    Returns
    -------
    Preflight
        Private: its text form shows nothing; ``.show()`` prints.

    Raises
    ------
    ValueError, TypeError, FileNotFoundError
        If the table does not have the schema's columns or cannot be opened at all, or the privacy unit's column is
        missing or has an unusable type.

    Notes
    -----
    **Privacy.** It spends no budget and has no guarantee: it is exact, for those who may see the table anyway.
    Decisions made because of it depend on the table. Corrections of units of measurement, spellings of levels or a
    wrong column, according to public knowledge, leave a schema that public knowledge gives, and a release with it keeps
    its guarantee; bounds or levels chosen to fit the table do not (``docs/preflight.md``). No min, max or quantile is
    computed; of a column whose rule fills in missing values, by how much that shifts its mean.

    It takes one pass over the data, and with a privacy unit three (one more for every eight million rows of people with
    several). Comparisons are as in a release, so ``rows_kept`` is the count that a release uses. Memory does not
    grow with the number of rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from dpmoments import Numeric
    >>> checked = preflight(pa.table({"height": [171.0, 183.0]}), Schema(Numeric("height", 0.3, 2.3)))
    >>> checked
    Preflight(<private>: call .show())
    >>> checked.private_facts()["columns"]["height"]["above"]
    2
    """
    require_schema(schema)
    if by is not None:
        require_unweighted(schema)
        counted = schema_of_tables(schema, Counts.of(schema, by, None).by)
        data, schema = columns_of_array(data, schema, counted.names), counted
    usual = epsilon is None and rho is None
    budget = PrivacyBudget.of(epsilon=_USUAL_EPSILON if usual else epsilon, delta=delta, rho=rho)
    if privacy_unit is not None:
        require_unit(privacy_unit, schema, Neighbors.ADD_REMOVE)
    schema = schema.capped(budget.nominal_epsilon).as_read
    with watched(progress) as on_block:
        schema, absent = _without_absent(data, schema, privacy_unit, text_format)
        source = open_source(data, schema, mean, privacy_unit, text_format)
        with on_block.passing(source.pass_length):
            facts = survey_table(source, threads=threads, on_block=on_block)
        facts.absent = absent
        if (
            isinstance(data, str | PathLike)
            and Path(data).suffix.lower() in STATISTICS_ENDINGS
            and Path(data).is_file()
        ):
            for stated in statistics_columns(Path(data), Path(data).suffix.lower()):
                if own := schema.columns_by_source.get(stated.name):
                    labels = {code: label for code, label in stated.labels.items() if isinstance(code, int | float)}
                    facts.columns[own.name].labels = {f"{code:g}": label for code, label in labels.items()}
        if privacy_unit is not None:
            with on_block.passing(source.pass_length, ROUNDS):
                facts.limit_units(survey_units(source, threads=threads, on_block=on_block))

        else:
            facts.repeated = _repeated_identifier(data, schema, mean, text_format, threads)

    # The shift of the means of columns in which a value replaces missing ones.
    shifted = [column for column in facts.columns.values() if column.filled and column.present]
    noise = _noise_of_means(facts, budget, mean=mean) if shifted else {}
    for column in shifted:
        kind = column.column
        assert isinstance(kind, Numeric | Date | Boolean)
        lower, upper = kind.bounds
        share = column.steps / column.present / STEPS
        there = lower * (1.0 - share) + upper * share
        shift = (kind.replacement - there) * (column.filled / (column.filled + column.present))
        column.shift = ShiftFacts(column.filled, shift, noise.get(kind.name), budget)
    return Preflight(facts)


def _noise_of_means(facts: TableFacts, budget: PrivacyBudget, *, mean: bool) -> dict[str, float]:
    """Forecast the noise SD of each feature's mean; empty if it is not known beforehand."""
    if not (mean and facts.kept):
        return {}
    unit = None if facts.unit is None else facts.unit.privacy_unit
    try:
        typical, mechanism = TypicalTable.of(facts.schema.without_weight), make_mechanism("auto")
        noise = ReleasePlan(typical, facts.kept, PrivacyRequest(budget, Neighbors.ADD_REMOVE, unit), mechanism).noise
    except (ValueError, OverflowError):  # a refusal, which the forecast shows, or numbers beyond all tables
        return {}
    return {} if noise is None else dict(zip(typical.schema.feature_names, noise.mean.tolist(), strict=True))


_IDENTIFIER = re.compile(
    r"(.*[_ .])?(id|pid|uid|(person|patient|subject|respondent|participant|customer|household|case)([_ ]?(id|nr|no|number))?)",
    re.IGNORECASE,
)


def _repeated_identifier(
    data: Any, schema: Schema, mean: bool, text_format: TextFormat | None, threads: int | None
) -> tuple[str, int, int] | None:
    """Return an identifier-like column that repeats, with its numbers of values and rows."""
    try:
        if isinstance(data, str | PathLike):
            names: Sequence[Any] = draft(data, text_format or schema.text_format).names
        elif hasattr(data, "collect_schema"):
            names = data.collect_schema().names()
        else:
            names = list(getattr(data, "column_names", getattr(data, "columns", ())))
        free = [
            name
            for name in names
            if isinstance(name, str) and _IDENTIFIER.fullmatch(name) and name not in schema.reserved_names
        ]
        if not free:
            return None
        source = open_source(data, schema, mean, PrivacyUnit(free[0], 1, "drop"), text_format)
        counts = survey_units(source, threads=threads)
    except (TypeError, ValueError, OSError):  # a table without a header, or values that identify nothing
        return None
    return (free[0], counts.units, counts.rows) if counts.units < counts.rows else None


def _without_absent(
    data: Any, schema: Schema, privacy_unit: PrivacyUnit | None, text_format: TextFormat | None
) -> tuple[Schema, tuple[AbsentColumn, ...]]:
    """Return the schema of the columns that the table has, so that the others hide nothing."""
    # If the table cannot be opened for another reason, the schema is returned as it is.
    try:
        open_source(data, schema, True, privacy_unit, text_format)
    except ValueError:
        try:
            names = draft(data, text_format or schema.text_format if isinstance(data, str | PathLike) else None).names
        except (TypeError, ValueError, OSError):
            return schema, ()
    else:
        return schema, ()
    absent = {column.name: name for name, column in schema.columns_by_source.items() if name not in names}
    kept = [
        column
        for column in schema.columns
        if column.name not in absent
        and not (isinstance(column, DerivedColumn) and absent.keys() & set(column.stated.factors))
    ]
    if not absent or not kept or (privacy_unit is not None and privacy_unit.column not in names):
        return schema, ()
    free = [name for name in names if name not in schema.columns_by_source]
    if privacy_unit is not None:
        free.remove(privacy_unit.column)
    columns = tuple(AbsentColumn(own, name, closest(name, free) or None, tuple(free)) for own, name in absent.items())
    return schema.with_columns(kept, row_norm=False), columns


class Preflight:
    """Findings of a preflight check; made by :func:`preflight`.

    Its ``str``, ``repr`` and notebook form show nothing of the table, and it can be neither pickled nor copied, so that
    it does not enter a log, cache or report by accident.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from dpmoments import Categorical
    >>> checked = preflight(pa.table({"ward": ["a", "b", "icu"]}), Schema(Categorical("ward", ["A", "B", "ICU"])))
    >>> str(checked)
    'Preflight(<private>: call .show())'
    >>> checked.stops_a_release
    False
    """

    __slots__ = ("_facts",)

    def __init__(self, facts: TableFacts) -> None:
        self._facts = facts

    @property
    def stops_a_release(self) -> bool:
        """True if a release of this table stops with an error; private."""
        return self._facts.stops

    @property
    def outcome(self) -> Outcome:
        """Outcome of a release of this table; private.

        Worthless: most rows, or most values of a column, are lost.
        """
        if self._facts.stops:
            return Outcome.STOPS
        lost = any(verdict.seriousness <= Seriousness.COLUMN_LOST for verdict in verdicts(self._facts))
        return Outcome.WORTHLESS if lost else Outcome.WORKS

    def show(self, file: TextIO | None = None) -> None:
        """Print the findings, every line marked as private. Notebooks and logs keep printed text.

        Parameters
        ----------
        file : text stream, optional
            Default: standard output.

        Examples
        --------
        >>> import pyarrow as pa
        >>> from dpmoments import Numeric
        >>> preflight(pa.table({"age": [44.0, 130.0]}), Schema(Numeric("age", 0, 120))).show()
        PRIVATE │ For the curator only: ...
        """
        stream = sys.stdout if file is None else file
        width = _WIDTH
        if stream.isatty():
            width = max(min(shutil.get_terminal_size((_WIDTH, 24)).columns, _WIDTH), _MIN_WIDTH)
        encoding = getattr(stream, "encoding", None) or "utf-8"
        for line in self._lines():
            indent = len(line) - len(line.lstrip())
            wrapped = textwrap.wrap(
                "".join(map(_as_wide_as_shown, line.strip())),
                width - len(_MARK),
                initial_indent=" " * indent,
                subsequent_indent=" " * (indent + 2 if indent else 0),
                break_on_hyphens=False,
            )
            for piece in wrapped or [""]:
                marked = (_MARK + piece.replace(_FILLER, "").replace(BLANK, " ")).rstrip()
                stream.write(marked.encode(encoding, "replace").decode(encoding) + "\n")

    def private_facts(self) -> dict[str, Any]:
        """Return all findings as plain values for a program; private.

        Returns
        -------
        dict
            Counts of rows and values, rules, columns, unknown levels, and ``verdicts`` by severity: all, and each column's.
        """
        plain, result = self._facts.to_plain(), verdicts(self._facts)
        for name, column in plain["columns"].items():
            column["verdicts"] = [verdict.plain for verdict in result if verdict.column == name]
        return plain | {"verdicts": [verdict.plain for verdict in result]}

    def _lines(self) -> Iterator[str]:
        facts = self._facts
        yield _WARNING
        yield ""
        every = verdicts(facts)
        result = _grouped([verdict for verdict in every if verdict.seriousness is not Seriousness.AS_ASKED])
        outcome, stopping = self.outcome, (Seriousness.UNREAD, Seriousness.STOPS)
        if outcome is Outcome.STOPS:
            reasons = [str(index) for index, (verdict, _) in enumerate(result, 1) if verdict.seriousness in stopping]
            left = f"The table has {facts.rows:,} rows"
            if facts.kept < facts.rows:
                left = f"Its rules leave {facts.kept:,} of {facts.rows:,} rows"
            if facts.stopping and facts.whole:
                left += f"; {facts.whole:,} without those that stop it"
            yield f"A release of this table STOPS with an error: see {joined(reasons)} below. {left}."
        elif outcome is Outcome.WORTHLESS:
            yield (
                f"A release of this table would RUN, AND BE WORTHLESS in part or whole: it counts "
                f"{facts.kept:,} of {facts.rows:,} rows, and the first finding below causes no error."
            )
        else:
            yield f"A release of this table works: it counts {facts.kept:,} of {facts.rows:,} rows."
        if not every:
            yield "Every cell fits the schema."
        for number, (verdict, names) in enumerate(result, 1):
            words = f"{verdict.words[0].upper()}{verdict.words[1:]}{'' if verdict.words.endswith('?') else '.'}"
            alike = [shown_as(name) for name in names[1:] if name is not None]
            yield f"  {number}. {words}{f' The same is found in {_first_of(alike)}.' if alike else ''}"
        if asked := [verdict for verdict in every if verdict.seriousness is Seriousness.AS_ASKED]:
            cells = [f"{shown_as(each.column or '')} ({each.words})" for each in asked]
            yield f"As the schema asks, missing cells are left out of the moments of {_first_of(cells)}."
        yield ""
        if lines := [*row_lines(facts)]:
            yield from lines
            yield ""
        yield "Columns:"
        yield from column_lines(facts, result, {verdict.column for verdict in every})
        yield ""
        yield _ADVICE
        if facts.unit is not None and facts.unit.privacy_unit.max_rows is not None:
            yield f"How many rows of a {shown_as(facts.unit.privacy_unit.column)} count is also such a bound."

    def __repr__(self) -> str:
        return "Preflight(<private>: call .show())"

    def _repr_html_(self) -> str:
        return "<code>Preflight(&lt;private&gt;: call .show())</code>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise InputTypeError("a Preflight holds private facts and is neither pickled nor copied: run preflight again")


def _as_wide_as_shown(character: str) -> str:
    """Return a displayable character, padded to its width, so that the terminal breaks no line."""
    if not character.isprintable() and character != BLANK:
        return character.encode("unicode_escape", "backslashreplace").decode()
    return character + _FILLER if unicodedata.east_asian_width(character) in "WF" else character


_MAX_LISTED = 8
"""Max values listed per column."""
_MAX_SHOWN_LENGTH = 40
BLANK = "\0"
"""Substitute for a space inside a value, where lines must not break.

:func:`repr` leaves none.
"""
_MAX_RULES = 3
"""Max rules named in the verdict on rows; all of them are listed below it."""
_MIN_SHIFT = 0.3
"""Shift of a mean, in noise SDs, from which another rule is advised: 4 % more error."""
_MAX = 0.5
"""Fraction of values or rows from which most of them are affected."""


class Outcome(IntEnum):
    """Outcome of a release of the table; the exit codes of the command."""

    WORKS = 0
    STOPS = 1
    WORTHLESS = 3


class Seriousness(IntEnum):
    """Severity: how much a release would lose by a fault, and how silently."""

    UNREAD = 0
    ROWS_LOST = 1
    COLUMN_LOST = 2
    STOPS = 3
    PARTLY_LOST = 4
    REMARK = 5
    AS_ASKED = 6


@dataclass(frozen=True, repr=False)
class Verdict:
    """Finding; ``share`` is the fraction of rows or values affected, ``column`` their column."""

    seriousness: Seriousness
    share: float
    words: str
    column: str | None = None

    @property
    def plain(self) -> str:
        """Words in which lines may break anywhere."""
        return self.words.replace(BLANK, " ")


def verdicts(facts: TableFacts) -> list[Verdict]:
    """Return all findings, most severe first, then by number of values, then in schema order."""
    result = [*_of_rows(facts)]
    for column in facts.columns.values():
        result += (replace(verdict, column=column.column.name) for verdict in _of_column(column, facts.rows))
    if facts.unit is not None and facts.rows:
        result += _of_unit(facts.unit, facts.rows)
    return sorted(result, key=lambda verdict: (verdict.seriousness, -verdict.share))


def _grouped(found: Sequence[Verdict]) -> list[tuple[Verdict, list[str | None]]]:
    """Group findings that differ only in column and numbers, each with its columns."""
    groups: dict[tuple[Seriousness, str], tuple[Verdict, list[str | None]]] = {}
    for verdict in found:
        name = "" if verdict.column is None else shown_as(verdict.column)
        words = re.sub(rf"(?<!\w){re.escape(name)}(?!\w)", "the column", verdict.words) if name else verdict.words
        form = re.sub(r"[\d.,]+", "0", words)
        groups.setdefault((verdict.seriousness, form), (verdict, []))[1].append(verdict.column)
    return [*groups.values()]


def shown_as(text: str) -> str:
    r"""Format a name for printing.

    Control characters, line breaks and direction marks escaped, shortened to a phrase.

    >>> print(shown_as("height"), shown_as("a\x1b[2Jb\nc"))
    height 'a\x1b[2Jb\nc'
    """
    short = text[:_MAX_SHOWN_LENGTH]
    return short.replace(" ", BLANK) + "…" * (len(text) > len(short)) if short.isprintable() else _quoted(text)


def _quoted(value: str | int) -> str:
    """Format a value for printing, text in quotes and escaped like a name."""
    text = repr(value[:_MAX_SHOWN_LENGTH] if isinstance(value, str) else value)
    return text.replace(" ", BLANK) + "…" * (isinstance(value, str) and len(value) > _MAX_SHOWN_LENGTH)


def _first_of(names: Sequence[str]) -> str:
    """List the first names, and the number of the others."""
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return f"{', '.join(names[:_MAX_LISTED])}{more}"


def _by_rule(rule: str, number: int, whole: int, words: str, stopped: str, otherwise: str) -> Verdict:
    """Return a verdict: a release stops by the rule "error", or treats the values."""
    if rule == "error":
        return Verdict(Seriousness.STOPS, number / whole, f"a release stops: {words}{stopped}")
    return _graded(number, whole, f"{words}{otherwise}")


def _of_rows(facts: TableFacts) -> Iterator[Verdict]:
    as_asked = 0 if facts.unit is None else facts.unit.counts.beyond  # rows beyond those of a unit that are to count
    for failure in facts.failures:
        words = f"{failure}. The following covers the {facts.rows:,} rows that could be read"
        yield Verdict(Seriousness.UNREAD, 1.0, words)
    for column in facts.absent:
        names = shown_as(column.name)
        if column.name != column.column:
            names += f", which is {shown_as(column.column)} in the schema"
        words = f"a release stops: the table has no column {names}"
        if column.close is not None:
            close = shown_as(column.close)
            words += f". Did you mean {close}? Then state source: {close} for it in the schema"
        elif column.others:
            others = _first_of([*map(shown_as, column.others)])
            words += f". The schema does not use {others}: if it is one of these, state its name as source: for it"
        yield Verdict(Seriousness.STOPS, 1.0, words)
    if facts.ragged:
        lines = "line has" if facts.ragged == 1 else "lines have"
        words = (
            f"a release stops: {facts.ragged:,} {lines} more or fewer fields than the first; the following "
            f"covers the others. Is a value that contains a delimiter not in quotes, or is the delimiter wrong?"
        )
        yield Verdict(Seriousness.STOPS, facts.ragged / (facts.ragged + facts.rows), words)
    if facts.rows == 0:
        if not facts.failures:
            yield Verdict(
                Seriousness.ROWS_LOST,
                1.0,
                "the table has no rows: a release is only noise, and stops under replace_one",
            )
    elif facts.kept + as_asked <= (1.0 - _MAX) * facts.rows:
        by_rows = sorted(facts.rules.values(), key=lambda rule: -rule.rows)[:_MAX_RULES]
        rules = ", ".join(f"{shown_as(rule.column)} ({rule.rule}: drop)" for rule in by_rows if rule.rows)
        words = f"{'most rows are' if facts.kept else 'every row is'} dropped, by the rules of {rules}"
        yield Verdict(Seriousness.ROWS_LOST, 1.0 - facts.kept / facts.rows, words)
    if facts.weights > 0.0 and facts.squared_weights > 0.0:
        lost, total = percent(1.0 - facts.capped_weights / facts.weights), rounded(facts.weights, 1e-5 * facts.weights)
        effective = facts.capped_weights**2 / facts.squared_weights
        words = (
            f"weights: the cap takes {lost} of their sum of {total}; the effective sample size is {effective:,.0f} of "
            f"{facts.kept:,} rows"
        )
        yield Verdict(Seriousness.REMARK, 1.0, words)
    if facts.text_rows:
        rows = "row holds" if facts.text_rows == 1 else "rows hold"
        words = (
            f"{facts.text_rows:,} {rows} text in every column of numbers, dates and Booleans: is it a second line of the header, "
            f"such as units? Then state skip_below: {facts.text_rows} in text_format (init: --first-line)"
        )
        yield Verdict(Seriousness.STOPS if facts.stops else Seriousness.PARTLY_LOST, 1.0, words)
    if facts.repeated is not None:
        name, n_values, n_rows = facts.repeated
        words = (
            f"the column {shown_as(name)} has {n_values:,} values in {n_rows:,} rows: if it identifies people, rows are "
            f"protected, and people are not. Then name it as the privacy unit, --privacy-unit {shown_as(name)}"
        )
        yield Verdict(Seriousness.REMARK, 1.0, words)
    if facts.shortened:
        words = (
            f"{_of(facts.shortened, facts.whole, 'rows')} exceed the row-norm bound {facts.schema.row_norm:g} "
            f"and are scaled down to it: is every column in the schema's units?"
        )
        yield _graded(facts.shortened, facts.whole, words)


def _of_column(facts: ColumnFacts, n_rows: int) -> Iterator[Verdict]:
    column, name = facts.column, shown_as(facts.column.name)
    if not n_rows:
        return
    if facts.types or facts.unreadable:
        words = _unreadable(facts, name, n_rows)
        if facts.types or column.missing == "error":
            yield Verdict(Seriousness.STOPS, facts.unreadable / n_rows, words)
        else:
            yield _graded(facts.unreadable, n_rows, words)
    if facts.missing:
        words = f"{_of(facts.missing, n_rows, f'cells of {name}')} are missing"
        words += f" or infinite ({facts.infinite:,})" if facts.infinite else ""
        others = "" if isinstance(column, WeightColumn) else "available (the rows count in the other columns) or "
        stopped = f", and the column's rule is missing: error. Choose {others}drop in the schema, or clean the table"
        if column.missing == "available" and not facts.infinite and facts.missing < _MAX * n_rows:
            yield Verdict(Seriousness.AS_ASKED, facts.missing / n_rows, f"{facts.missing:,} of {n_rows:,}")
        else:
            yield _by_rule(
                column.missing, facts.missing, n_rows, words, stopped, f", and {_fate(column.missing, column)}"
            )
    if facts.shift is not None:
        shift, serious = facts.shift, True
        amount = f"{'+' if shift.mean >= 0.0 else ''}{rounded(shift.mean, shift.noise)}"
        unit = " days" if isinstance(column, Date) else ""
        words = f"values in place of missing ones shift the mean of {name} by {amount}{unit}"
        if shift.noise is not None:  # compared with the noise that a release would add
            times = abs(shift.mean) / shift.noise
            serious = times >= _MIN_SHIFT
            shown = "under 0.1" if times < 0.1 else f"{times:.1f}" if times < 9.95 else f"{times:,.0f}"
            words += f": {shown} times the noise SD of a release with {shift.budget}"
        words += ". Under missing: available they shift nothing" if serious else ""
        yield Verdict(Seriousness.PARTLY_LOST if serious else Seriousness.REMARK, shift.cells / n_rows, words)
    if isinstance(column, Categorical):
        if not column.finds_levels:
            yield from _of_levels(facts, column, name, n_rows)
    else:
        yield from _of_numbers(facts, column, name, n_rows - facts.missing - facts.unreadable)


def _of_unit(facts: UnitFacts, n_rows: int) -> Iterator[Verdict]:
    counts = facts.counts
    unit, name = facts.privacy_unit, shown_as(facts.privacy_unit.column)
    needs = "valid identifiers are integers, whole numbers, text, bytes or UUIDs: convert the column to text"
    if facts.types:
        types = ", ".join(shown_as(kind) for kind in sorted(facts.types))
        words = f"a release stops: {name}, which identifies privacy units, has type {types} in the table, and {needs}"
        yield Verdict(Seriousness.STOPS, facts.unreadable / n_rows, words)
    elif facts.unreadable:
        words = f"{_of(facts.unreadable, n_rows, f'cells of {name}')} are not valid identifiers; {needs}"
        yield _by_rule(unit.missing, facts.unreadable, n_rows, words, "", ". Their rows are dropped")
    if facts.missing:
        words = f"{_of(facts.missing, n_rows, 'rows')} have no {name}"
        stopped = ", and the privacy unit's rule is missing: error. Choose drop for it, or complete the table"
        yield _by_rule(unit.missing, facts.missing, n_rows, words, stopped, ", belong to no unit and are dropped")
    if counts.beyond:
        words = (
            f"{_of(counts.rows_of_units_over, counts.rows, 'rows')} are of a {name} with {facts.rule_text}: "
            f"{counts.beyond:,} {'row does' if counts.beyond == 1 else 'rows do'} not count. Is {unit.rows_per_unit:,} what "
            "public knowledge says that a typical one has?"
        )
        yield Verdict(Seriousness.PARTLY_LOST, counts.beyond / counts.rows, words)  # as was asked for
    elif counts.units == counts.rows > 1:
        words = f"no two rows have the same {name}: does it identify people, or only number the rows?"
        yield Verdict(Seriousness.REMARK, 1.0, words)
    if counts.units == 1 < counts.rows:
        words = f"all rows have the same {name}: does it identify people?"
        yield Verdict(Seriousness.COLUMN_LOST, 1.0, words)


def _of_numbers(
    facts: ColumnFacts, column: Numeric | Date | Boolean | Coordinate, name: str, n_numbers: int
) -> Iterator[Verdict]:
    outside = facts.below + facts.above
    if outside and not isinstance(column, Coordinate):
        held = "dates" if isinstance(column, Date) else "numbers"
        sides = [
            f"{_of(cells, n_numbers, f'{held} of {name}')} are {where}"
            for cells, where in ((facts.above, _edge(column, "above")), (facts.below, _edge(column, "below")))
            if cells
        ]
        words = "; ".join(sides)
        if outside >= _MAX * n_numbers and facts.midnight < facts.above:
            words += ": is the column in other units, or not the column that the schema describes?"
            yield Verdict(Seriousness.COLUMN_LOST, outside / n_numbers, words)
        elif column.rough is not None:
            words += ": values are not clipped, but the column's mean must not be there"
            yield Verdict(Seriousness.REMARK, outside / n_numbers, words)
        else:
            words += ", and are clipped to it"
            if facts.midnight and isinstance(column, Date):
                words += (
                    f". {facts.midnight:,} of them are later on {column.upper}, since a date as a bound is its midnight: state "
                    f"upper: {column.upper}T23:59:59 to count them as they are"
                )
            if codes := ", ".join(facts.codes):
                labels = [facts.labels.get(code) for code in facts.codes]
                question = "are these codes" if len(labels) > 1 else "is this a code"
                if all(labels):
                    words += f". The file labels {codes} as {', '.join(map(str, labels))}."
                else:
                    words += f". Nearly all of them are {codes}: {question} for a missing value in the codebook?"
                words += f" Then state missing_values: [{codes}] in the schema"
            yield Verdict(Seriousness.PARTLY_LOST, outside / n_numbers, words)
    if facts.between:
        words = f"{_of(facts.between, n_numbers, f'numbers of {name}')} are between 0 and 1: they count as fractions"
        yield _graded(facts.between, n_numbers, words)


def _of_levels(facts: ColumnFacts, column: Categorical, name: str, n_rows: int) -> Iterator[Verdict]:
    n_values = n_rows - facts.missing - facts.unreadable
    if facts.unknown:
        unknown = facts.values("unknown")
        none = facts.unknown == n_values
        words = (
            f"no cell of {name} is a level of the schema"
            if none
            else f"{_of(facts.unknown, n_values, f'cells of {name}')} are not levels of the schema"
        )
        listed = _listed(unknown, facts.all_values_listed, counted=not none)
        words += f", and {_fate(str(column.other), column)}: {listed}"
        if alike := [(value.value[1], str(value.nearest)) for value in unknown if value.same]:  # but for their spelling
            stripped = [(text.strip(), level.strip(), text) for text, level in alike]
            rest = any(text.casefold() != level.casefold() for text, level, _ in stripped)
            rules = {
                "strip: true": any(text == level and text != whole for text, level, whole in stripped),
                "casefold: true": any(
                    text != level and text.casefold() == level.casefold() for text, level, _ in stripped
                ),
                "aliases": rest,
            }
            words += (
                f". Some values and levels differ only in spelling: state {' and '.join(filter(rules.get, rules))} for the "
                "column in the schema, or use one spelling"
            )
            if not rest and len(alike) < len(unknown):
                words += "; other spellings of a level can be listed in aliases"
        yield _graded(facts.unknown, n_values, words)
    if facts.never_seen and facts.unknown < n_values:
        levels = _first_of([*map(_quoted, facts.never_seen)])
        yield Verdict(Seriousness.REMARK, 0.0, f"no cell of {name} is {levels}")


def _unreadable(facts: ColumnFacts, name: str, n_rows: int) -> str:
    needs = {"categorical": "text or integers", "date": "dates", "boolean": "true or false"}.get(
        facts.column.kind, "numbers"
    )
    if facts.types:
        types = ", ".join(shown_as(kind) for kind in sorted(facts.types))
        words = f"a release stops: {name} has type {types} in the table "
        words += f"and a {facts.column.kind} column needs {needs}: convert it, or describe it differently"
    else:
        words = f"{_of(facts.unreadable, n_rows, f'cells of {name}')} are not {needs}"
        if facts.column.missing == "error":
            words = f"a release stops: {words}, and the column's rule is missing: error"
        else:
            words += f", and {_fate(facts.column.missing, facts.column)}, as for missing ones"
    if facts.like_numbers:
        words += (
            f". {_of(facts.like_numbers, facts.unreadable, 'of these cells')} are text that could be read as a number"
        )
        if facts.types and isinstance(facts.column, Numeric):
            words += ', and is if the schema states decimal: "." for the column'
    if facts.marks and (most := max(facts.marks.items(), key=lambda mark: (mark[1], not mark[0][1])))[1]:
        (decimal, thousands), cells = most
        marks = f'decimal: "{decimal}"' + (f' and thousands: "{thousands}"' if thousands else "")
        words += (
            f"; {_of(cells, facts.unreadable, 'of these cells')} can be read with {marks}, which can be stated for the column in "
            "the schema"
        )
    if isinstance(facts.column, Boolean):
        words += '; texts that mean true and false can be stated for the column: true_values: ["yes"] and false_values: ["no"]'
    if isinstance(facts.column, Date) and not facts.types:
        if facts.formats:
            form, cells = max(facts.formats.items(), key=lambda each: each[1])
            stated = f'format: "{form}"' if form else "no format, for they are in ISO 8601"
            words += f"; {_of(cells, facts.unreadable, 'of these cells')} can be read with {stated}"
        else:
            words += "; how dates are written can be stated for the column, in format"
    values = facts.values("unreadable")
    if values:
        words += f". They hold {_listed(values, facts.all_values_listed, counted=not facts.types)}"
        if any(value.value[0] == "form" and "9" in value.value[1] for value in values):
            words += " (every digit is shown as 9)"
        texts = [value.value[1] for value in values if value.value[0] == "form" and "9" not in value.value[1]]
        if isinstance(facts.column, Numeric | Date) and facts.all_values_listed and 0 < len(texts) <= _MAX_LISTED:
            codes = ", ".join(map(_quoted, texts))
            words += f". If the codebook has {codes} for a missing value, state missing_values: [{codes}] in the schema"
    return words


def _listed(values: Sequence[FoundValue], complete: bool, *, counted: bool) -> str:
    """List values with their counts, but for a single one if their sum was ``counted`` before."""
    shown = []
    for found in values[:_MAX_LISTED]:
        kind, text = found.value
        near = "" if found.nearest is None else _quoted(found.nearest)
        near = near and (f"the level {near}?" if found.same else f"nearest level {near}")
        about = "" if counted and complete and len(values) == 1 else f"{found.cells:,}"
        about = "; ".join(filter(None, [about, near]))
        value = {"number": text, "type": f"<{shown_as(text)}>"}.get(kind) or _quoted(text)
        shown.append(f"{value} ({about})" if about else value)
    left = len(values) - len(shown)
    if not complete:
        return f"{', '.join(shown)} and more than {left} other values (a sample)"
    return ", ".join(shown) + (f" and {left} other values" if left else "")


def _fate(rule: str, column: object) -> str:
    filled = "count as the middle of the bounds" if isinstance(column, Numeric | Boolean) else "count as 0"
    if isinstance(column, Numeric) and column.rough is not None:
        filled = "count as the center"
    if rule == "fill" and isinstance(column, Numeric | Date | Boolean):
        filled = f"count as {column.replacement:g}" if not isinstance(column, Date) else f"count as {column.fill}"
    fates = {
        "error": "",
        "available": "are left out of the column's moments",
        "drop": "their rows are dropped",
        "zero": "count as no level",
        "center": filled,
        "fill": filled,
    }
    return fates[rule]


def _edge(column: Numeric | Date | Boolean, side: str) -> str:
    if isinstance(column, Date):
        return f"after its upper bound {column.upper}" if side == "above" else f"before its lower bound {column.lower}"
    if column.rough is not None:
        _, _, center, radius = column.rough
        return f"more than the radius {radius:g} {side} the center {center:g}"
    lower, upper = column.bounds
    return f"above its upper bound {upper:g}" if side == "above" else f"below its lower bound {lower:g}"


def _graded(number: int, whole: int, words: str) -> Verdict:
    serious = number >= _MAX * whole
    return Verdict(Seriousness.COLUMN_LOST if serious else Seriousness.PARTLY_LOST, number / whole, words)


def _of(number: int, whole: int, what: str) -> str:
    """Format counts: ``all 3,000 cells``, ``12 of 3,000 cells (0.4%)``."""
    if number == whole:
        return f"all {number:,} {what}".rstrip()
    percentage = 100.0 * number / whole
    shown = "under 0.1%" if percentage < 0.1 else "over 99.9%" if percentage > 99.9 else f"{percentage:.1f}%"
    return f"{number:,} of {whole:,} {what}".rstrip() + f" ({shown})"


def row_lines(facts: TableFacts) -> Iterator[str]:
    """Yield lines on rows: what no finding says."""
    dropping = [rule for rule in facts.rules.values() if rule.rows]
    if any(rule.alone < rule.rows for rule in dropping):
        alone = ", ".join(f"{shown_as(rule.column)} ({rule.rule}: drop) {rule.alone:,}" for rule in dropping)
        yield f"Rows that one rule drops and no other: {alone}"
    if facts.unit is not None:
        name, counts = shown_as(facts.unit.privacy_unit.column), facts.unit.counts
        with_rows = (
            f"{name} has {counts.units:,} {'value' if counts.units == 1 else 'values'} in rows that no rule drops"
        )
        yield f"{with_rows}; {counts.units_over:,} of them with {facts.unit.rule_text}"
    for name, rows in facts.derived.items():
        if rows:
            within = _of(rows, facts.rows, "rows")
            yield f"{shown_as(name)} uses a cell that was clipped, filled in or unknown in {within}"


def column_lines(
    facts: TableFacts, findings: Sequence[tuple[Verdict, Sequence[str | None]]], found: Container[str | None]
) -> Iterator[str]:
    """Yield lines on every column, with the numbers of its findings."""
    fitting, left_out = [], list[str]()
    for column in facts.columns.values():
        kind = column.column
        limits = f", {kind.public_values_text}" if isinstance(kind, Numeric | Date) else ""
        if isinstance(kind, Categorical):
            limits = f", {len(kind.levels)} level{'s' if len(kind.levels) > 1 else ''}"
            limits = f", {kind.public_values_text}" if kind.finds_levels else limits
        what = f"{shown_as(kind.name)} ({kind.kind}{limits})"
        numbers = [str(number) for number, (_, names) in enumerate(findings, 1) if kind.name in names]
        if numbers:
            yield f"  {what}: see {' and '.join(numbers)}"
        elif kind.name in found:
            left_out.append(what)
        else:
            fitting.append(what)
    if left_out:
        yield f"  only missing cells, which are left out: {', '.join(left_out)}"
    if fitting and (findings or left_out):
        yield f"  every cell fits: {', '.join(fitting)}"
    else:
        yield from (f"  {what}" for what in fitting)
