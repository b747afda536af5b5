"""Preflight check of a private table, for its curator only, before anything is spent.

The table is compared with its schema, value by value and rule by rule, as in :mod:`dpmoments.rows.encode`. Nothing here enters a
release.
"""

from __future__ import annotations

import shutil
import sys
import textwrap
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any, NoReturn, SupportsIndex, TextIO

from dpmoments.base.errors import InputTypeError, closest
from dpmoments.base.progress import watched
from dpmoments.base.text_format import TextFormat
from dpmoments.mechanisms.counts import Counts
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.planning.facts import (
    AbsentColumn,
    ShiftFacts,
    TableFacts,
)
from dpmoments.planning.forecast_noise import ReleasePlan
from dpmoments.planning.preflight_messages import (
    BLANK,
    Outcome,
    Seriousness,
    Verdict,
    column_lines,
    row_lines,
    shown_as,
    verdicts,
)
from dpmoments.planning.survey import STEPS, survey_table, survey_units
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.request import PrivacyRequest
from dpmoments.privacy.unit import Neighbors, PrivacyUnit, require_unit
from dpmoments.rows.sources.opening import Table, columns_of_array, open_source
from dpmoments.rows.units import ROUNDS
from dpmoments.schema.columns import Boolean
from dpmoments.schema.constraints import schema_of_tables
from dpmoments.schema.dates import Date
from dpmoments.schema.derived import DerivedColumn
from dpmoments.schema.drafting import draft
from dpmoments.schema.numeric import Numeric
from dpmoments.schema.schema import Schema, require_schema

_USUAL_EPSILON = 1.0
"""ε of the noise that shifts are compared with, if no budget is given."""

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
        counted = schema_of_tables(schema, Counts.of(schema, by, None).by)
        data, schema = columns_of_array(data, schema, counted.names), counted
    usual = epsilon is None and rho is None
    budget = PrivacyBudget.of(epsilon=_USUAL_EPSILON if usual else epsilon, delta=delta, rho=rho)
    if privacy_unit is not None:
        require_unit(privacy_unit, schema.reserved_names, Neighbors.ADD_REMOVE)
    with watched(progress) as on_block:
        schema, absent = _without_absent(data, schema, privacy_unit, text_format)
        source = open_source(data, schema, mean, privacy_unit, text_format)
        with on_block.passing(source.pass_length):
            facts = survey_table(source, threads=threads, on_block=on_block)
        facts.absent = absent
        if privacy_unit is not None:
            with on_block.passing(source.pass_length, ROUNDS):
                facts.limit_units(survey_units(source, threads=threads, on_block=on_block))

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
        typical, mechanism = TypicalTable.of(facts.schema), make_mechanism("auto")
        noise = ReleasePlan(typical, facts.kept, PrivacyRequest(budget, Neighbors.ADD_REMOVE, unit), mechanism).noise
    except (ValueError, OverflowError):  # a refusal, which the forecast shows, or numbers beyond all tables
        return {}
    return {} if noise is None else dict(zip(facts.schema.feature_names, noise.mean.tolist(), strict=True))


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
            column["verdicts"] = [_verdict_as_dict(verdict) for verdict in result if verdict.column == name]
        return plain | {"verdicts": [*map(_verdict_as_dict, result)]}

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
            numbers = " and ".join(filter(None, [", ".join(reasons[:-1]), reasons[-1]]))
            left = f"The table has {facts.rows:,} rows"
            if facts.kept < facts.rows:
                left = f"Its rules leave {facts.kept:,} of {facts.rows:,} rows"
            if facts.stopping and facts.whole:
                left += f"; {facts.whole:,} without those that stop it"
            yield f"A release of this table STOPS with an error: see {numbers} below. {left}."
        elif self.outcome is Outcome.WORTHLESS:
            yield (
                f"A release of this table would RUN, AND BE WORTHLESS in part or whole: it counts "
                f"{facts.kept:,} of {facts.rows:,} rows, and the first finding below causes no error."
            )
        else:
            yield f"A release of this table works: it counts {facts.kept:,} of {facts.rows:,} rows."
        if not result:
            yield "Every cell fits the schema."
        for number, verdict in enumerate(result, 1):
            yield f"  {number}. {verdict.words[0].upper()}{verdict.words[1:]}{'' if verdict.words.endswith('?') else '.'}"
        yield ""
        if lines := [*row_lines(facts)]:
            yield from lines
            yield ""
        yield "Columns:"
        yield from column_lines(facts, result)
        yield ""
        yield _ADVICE
        if facts.unit is not None:
            yield f"How many rows of a {shown_as(facts.unit.privacy_unit.column, quoted=False)} count is also such a bound."

    def __repr__(self) -> str:
        return _HIDDEN

    def _repr_html_(self) -> str:
        return "<code>Preflight(&lt;private&gt;: call .show())</code>"

    def __reduce_ex__(self, protocol: SupportsIndex) -> NoReturn:
        raise InputTypeError("a Preflight holds private facts and is neither pickled nor copied: run preflight again")


def _verdict_as_dict(verdict: Verdict) -> str:
    return verdict.words.replace(BLANK, " ")


def _as_wide_as_shown(character: str) -> str:
    """Return a displayable character, padded to its width, so that the terminal breaks no line."""
    if not character.isprintable() and character != BLANK:
        return character.encode("unicode_escape", "backslashreplace").decode()
    return character + _FILLER if unicodedata.east_asian_width(character) in "WF" else character
