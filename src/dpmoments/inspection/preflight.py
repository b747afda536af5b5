"""Preflight check of a private table, for its curator only, before anything is spent."""

from __future__ import annotations

import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, NoReturn, SupportsIndex, TextIO

from dpmoments.foundation.errors import InputTypeError
from dpmoments.foundation.progress import watched
from dpmoments.foundation.text_format import TextFormat
from dpmoments.inspection.facts import ColumnFacts, FoundValue, RuleFacts, TableFacts, UnitFacts, nearest_level
from dpmoments.inspection.messages import BLANK, Outcome, Seriousness, column_lines, row_lines, verdicts, visible
from dpmoments.inspection.survey import SurveyCounts, ValueSample, survey_table, survey_units
from dpmoments.privacy.unit import Neighbors, PrivacyUnit, require_unit
from dpmoments.rows.sources.opening import open_source
from dpmoments.rows.units import ROUNDS, UnitCounts
from dpmoments.schema.columns import Categorical, Column
from dpmoments.schema.schema import Schema

_MARK = "PRIVATE │ "
"""Mark of every line, so that a copied line stays marked."""
_HIDDEN = "Preflight(<private>: call .show())"
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
    data: Any,
    schema: Schema,
    *,
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
    its guarantee; bounds or levels chosen to fit the table do not (``docs/preflight.md``). No min, max, quantile or
    mean is computed.

    It takes one pass over the data, and with a privacy unit three (one more for every eight million rows of people with
    several). Comparisons are as in a release, so ``rows_kept`` is the count that a release uses. Memory does not
    grow with the number of rows.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from dpmoments import Numeric
    >>> found = preflight(pa.table({"height": [171.0, 183.0]}), Schema(Numeric("height", 0.3, 2.3)))
    >>> found
    Preflight(<private>: call .show())
    >>> found.private_facts()["columns"]["height"]["above"]
    2
    """
    if not isinstance(schema, Schema):
        raise InputTypeError(
            f"schema must be a dpmoments.Schema, got {type(schema).__name__}: dpm.Schema(dpm.Numeric('age', 0, 100), …) or "
            "dpm.Schema.load('people.yaml')"
        )
    if privacy_unit is not None:
        require_unit(privacy_unit, {column.name for column in schema.columns}, Neighbors.ADD_REMOVE)
    with watched(progress) as on_block:
        source = open_source(data, schema, mean, privacy_unit, text_format)
        with on_block.passing(source.pass_length):
            result, failures = survey_table(source, threads=threads, on_block=on_block)
        units = None
        if privacy_unit is not None:
            with on_block.passing(source.pass_length, ROUNDS):
                units = survey_units(source, threads=threads, on_block=on_block)
    unit = None if privacy_unit is None or units is None else _unit_facts(privacy_unit, result, units)
    return Preflight(_facts(schema, result, failures, unit))


class Preflight:
    """Findings of a preflight check; made by :func:`preflight`.

    Its ``str``, ``repr`` and notebook form show nothing of the table, and it can be neither pickled nor copied, so that
    it does not enter a log, cache or report by accident.

    Examples
    --------
    >>> import pyarrow as pa
    >>> from dpmoments import Categorical
    >>> found = preflight(pa.table({"ward": ["a", "b", "icu"]}), Schema(Categorical("ward", ["A", "B", "ICU"])))
    >>> str(found)
    'Preflight(<private>: call .show())'
    >>> found.stops_a_release
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
        for line in self._marked_lines(width):
            stream.write(line.encode(encoding, "replace").decode(encoding) + "\n")

    def private_facts(self) -> dict[str, Any]:
        """Return all findings as plain values for a program; private.

        Returns
        -------
        dict
            Counts of rows and values, rules, columns, unknown levels, and ``verdicts`` by severity.
        """
        return self._facts.to_plain() | {
            "verdicts": [verdict.words.replace(BLANK, " ") for verdict in verdicts(self._facts)]
        }

    def _marked_lines(self, width: int) -> Iterator[str]:
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
                yield (_MARK + piece.replace(_FILLER, "").replace(BLANK, " ")).rstrip()

    def _lines(self) -> Iterator[str]:
        facts = self._facts
        yield _WARNING
        yield ""
        result = verdicts(facts)
        reasons = [
            str(index)
            for index, verdict in enumerate(result, 1)
            if verdict.seriousness in (Seriousness.UNREAD, Seriousness.STOPS)
        ]
        if self.outcome is Outcome.STOPS:
            yield f"A release of this table STOPS with an error: see {' and '.join(reasons)} below."
        elif self.outcome is Outcome.WORTHLESS:
            yield (
                f"A release of this table would RUN, AND BE WORTHLESS in part or whole: it counts "
                f"{facts.kept:,} of {facts.rows:,} rows, and the first finding below causes no error."
            )
        else:
            yield f"A release of this table works: it counts {facts.kept:,} of {facts.rows:,} rows."
        if not result:
            yield "Every cell fits the schema."
        for place, verdict in enumerate(result, 1):
            yield f"  {place}. {verdict.words[0].upper()}{verdict.words[1:]}{'' if verdict.words.endswith('?') else '.'}"
        yield ""
        yield from row_lines(facts)
        yield ""
        yield "Columns:"
        yield from column_lines(facts)
        yield ""
        yield _ADVICE
        if facts.unit is not None:
            yield f"How many rows of a {visible(facts.unit.privacy_unit.column, quoted=False)} count is also such a bound."

    def __repr__(self) -> str:
        return _HIDDEN

    def _repr_html_(self) -> str:
        return "<code>Preflight(&lt;private&gt;: call .show())</code>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise InputTypeError("a Preflight holds private facts and is neither pickled nor copied: run preflight again")


def _as_wide_as_shown(character: str) -> str:
    """Return a displayable character, padded to its width, so that the terminal breaks no line."""
    if not character.isprintable() and character != BLANK:
        return character.encode("unicode_escape", "backslashreplace").decode()
    return character + _FILLER if unicodedata.east_asian_width(character) in "WF" else character


def _facts(schema: Schema, found: SurveyCounts, failures: list[str], unit: UnitFacts | None) -> TableFacts:
    counts = found.counts
    dropping = [pair for column in schema.table_columns for pair in _dropping_rules(column)]
    if unit is not None and unit.privacy_unit.missing == "drop":
        dropping.append((unit.privacy_unit.column, "missing"))
    rules = [
        RuleFacts(name, rule, *(counts["rule", name, rule, what] for what in ("rows", "first", "alone")))
        for name, rule in dropping
    ]
    if unit is not None:  # only of rows that no rule drops
        rules.append(RuleFacts(unit.privacy_unit.column, unit.rule_text, *(3 * [unit.beyond])))
    return TableFacts(
        schema=schema,
        rows=counts["rows", "read"],
        kept=counts["rows", "kept"] - (0 if unit is None else unit.beyond),
        stopping=counts["rows", "stopping"],
        whole=counts["rows", "whole"],
        shortened=counts["rows", "shortened"],
        columns=tuple(_column_facts(column, found) for column in schema.table_columns),
        rules=tuple(rules),
        derived={column.name: counts["derived", column.name] for column in schema.derived_columns},
        ragged=counts["rows", "ragged"],
        failures=tuple(failures),
        unit=unit,
    )


def _unit_facts(privacy_unit: PrivacyUnit, found: SurveyCounts, units: UnitCounts) -> UnitFacts:
    return UnitFacts(
        privacy_unit,
        missing=found.counts["unit", "missing"],
        unreadable=found.counts["unit", "unreadable"],
        types=tuple(sorted(str(key[1]) for key in found.counts if key[0] == "unit type")),
        units=units.units,
        rows=units.rows,
        units_over=units.units_over,
        rows_of_units_over=units.rows_of_units_over,
        beyond=units.beyond,
    )


def _dropping_rules(column: Column) -> Iterator[tuple[str, str]]:
    if column.missing == "drop":
        yield column.name, "missing"
    if isinstance(column, Categorical) and column.other == "drop":
        yield column.name, "other"


def _column_facts(column: Column, found: SurveyCounts) -> ColumnFacts:
    name = column.name

    def cells(what: str) -> int:
        return found.counts["column", name, what]

    levels = column.levels if isinstance(column, Categorical) else ()
    unknown, unreadable = (found.values.get((name, what), ValueSample()) for what in ("unknown", "unreadable"))
    return ColumnFacts(
        column=column,
        empty=cells("empty"),
        infinite=cells("infinite"),
        below=cells("below"),
        above=cells("above"),
        between=cells("between"),
        unreadable=cells("unreadable"),
        like_numbers=cells("like numbers"),
        types=tuple(sorted(str(key[2]) for key in found.counts if key[:2] == ("type", name))),
        unreadable_values=tuple(FoundValue(value, times) for value, times in unreadable.most_frequent_first()),
        unknown=cells("unknown"),
        unknown_values=tuple(
            FoundValue(value, times, *nearest_level(value, levels)) for value, times in unknown.most_frequent_first()
        ),
        complete=unknown.complete and unreadable.complete,
        levels=tuple(found.counts["level", name, index] for index in range(len(levels))),
    )
