"""Preflight findings as text: verdicts by severity, then rows, rules and columns.

Silent damage precedes what stops a release: an error is visible and spends nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

from dpmoments.analysis.answers import rounded
from dpmoments.planning.facts import ColumnFacts, FoundValue, ShiftFacts, TableFacts, UnitFacts
from dpmoments.schema.columns import Boolean, Categorical, Coordinate
from dpmoments.schema.dates import Date
from dpmoments.schema.numeric import Numeric

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


@dataclass(frozen=True, repr=False)
class Verdict:
    """Finding; ``share`` is the fraction of rows or values affected, ``column`` their column."""

    seriousness: Seriousness
    share: float
    words: str
    column: str | None = None


def verdicts(facts: TableFacts) -> list[Verdict]:
    """Return all findings, most severe first, then by number of values, then in schema order."""
    result = [*_of_rows(facts)]
    for column in facts.columns.values():
        result += (replace(verdict, column=column.column.name) for verdict in _of_column(column, facts.rows))
    if facts.unit is not None and facts.rows:
        result += _of_unit(facts.unit, facts.rows)
    return sorted(result, key=lambda verdict: (verdict.seriousness, -verdict.share))


def shown_as(text: str, *, quoted: bool = True) -> str:
    r"""Format text for printing.

    Control characters, line breaks and direction marks escaped, shortened to a phrase.

    >>> print(shown_as("ICU"), shown_as("a\x1b[2Jb\nc"), shown_as("height", quoted=False))
    'ICU' 'a\x1b[2Jb\nc' height
    """
    short = text[:_MAX_SHOWN_LENGTH]
    more = "…" if len(text) > _MAX_SHOWN_LENGTH else ""
    shown = short if not quoted and short.isprintable() else repr(short)
    return shown.replace(" ", BLANK) + more


def _of_rows(facts: TableFacts) -> Iterator[Verdict]:
    as_asked = 0 if facts.unit is None else facts.unit.counts.beyond  # rows beyond those of a unit that are to count
    for failure in facts.failures:
        words = f"{failure}. The following covers the {facts.rows:,} rows that could be read"
        yield Verdict(Seriousness.UNREAD, 1.0, words)
    for column in facts.absent:
        names = shown_as(column.name, quoted=False)
        if column.name != column.column:
            names += f", which is {shown_as(column.column, quoted=False)} in the schema"
        words = f"a release stops: the table has no column {names}"
        if column.close is not None:
            close = shown_as(column.close, quoted=False)
            words += f". Did you mean {close}? Then state source: {close} for it in the schema"
        elif column.others:
            shown = ", ".join(shown_as(name, quoted=False) for name in column.others[:_MAX_LISTED])
            more = f" and {len(column.others) - _MAX_LISTED} more" if len(column.others) > _MAX_LISTED else ""
            words += f". The schema does not use {shown}{more}: if it is one of these, state its name as source: for it"
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
                Seriousness.ROWS_LOST, 1.0, "the table has no rows: under replace_one there is nothing to release"
            )
    elif facts.kept + as_asked <= (1.0 - _MAX) * facts.rows:
        by_rows = sorted(facts.rules.values(), key=lambda rule: -rule.rows)[:_MAX_RULES]
        rules = ", ".join(f"{shown_as(rule.column, quoted=False)} ({rule.rule}: drop)" for rule in by_rows if rule.rows)
        words = f"{'most rows are' if facts.kept else 'every row is'} dropped, by the rules of {rules}"
        yield Verdict(Seriousness.ROWS_LOST, 1.0 - facts.kept / facts.rows, words)
    if facts.shortened:
        words = (
            f"{_of(facts.shortened, facts.whole, 'rows')} exceed the row-norm bound {facts.schema.row_norm:g} "
            f"and are scaled down to it: is every column in the schema's units?"
        )
        yield _graded(facts.shortened, facts.whole, words)


def _of_column(facts: ColumnFacts, n_rows: int) -> Iterator[Verdict]:
    column, name = facts.column, shown_as(facts.column.name, quoted=False)
    if not n_rows:
        return
    if facts.types or facts.unreadable:
        words = _unreadable(facts, name, n_rows)
        if facts.types or column.missing == "error":
            yield Verdict(Seriousness.STOPS, facts.unreadable / n_rows, words)
        else:
            yield _graded(facts.unreadable, n_rows, words)
    if facts.missing:
        words = f"{_of(facts.missing, n_rows, f'cells of {name}')} are missing" + (
            f" or infinite ({facts.infinite:,})" if facts.infinite else ""
        )
        if column.missing == "error":
            instead = "available (the rows count in the other columns)"
            words = (
                f"a release stops: {words}, and the column's rule is missing: error. Choose {instead} or drop in the schema, or "
                "clean the table"
            )
            yield Verdict(Seriousness.STOPS, facts.missing / n_rows, words)
        else:
            yield _graded(facts.missing, n_rows, f"{words}, and {_fate(column.missing, column)}")
    if facts.shift is not None:
        yield _of_shift(facts.shift, name, n_rows, " days" if isinstance(column, Date) else "")
    if isinstance(column, Categorical):
        yield from _of_levels(facts, column, name, n_rows)
    else:
        yield from _of_numbers(facts, column, name, n_rows - facts.missing - facts.unreadable)


def _of_shift(shift: ShiftFacts, name: str, n_rows: int, unit: str) -> Verdict:
    """Compare the shift of a mean with the noise that a release would add."""
    amount = f"{'+' if shift.mean >= 0.0 else ''}{rounded(shift.mean, shift.noise)}{unit}"
    words = f"values in place of missing ones shift the mean of {name} by {amount}"
    serious = True
    if shift.noise is not None:
        times = abs(shift.mean) / shift.noise
        serious = times >= _MIN_SHIFT
        shown = "under 0.1" if times < 0.1 else f"{times:.1f}" if times < 9.95 else f"{times:,.0f}"
        words += f": {shown} times the noise SD of a release with {shift.budget}"
    if serious:
        words += ". Under missing: available they shift nothing"
    return Verdict(Seriousness.PARTLY_LOST if serious else Seriousness.REMARK, shift.cells / n_rows, words)


def _of_unit(facts: UnitFacts, n_rows: int) -> Iterator[Verdict]:
    counts = facts.counts
    unit, name = facts.privacy_unit, shown_as(facts.privacy_unit.column, quoted=False)
    needs = "valid identifiers are integers, whole numbers, text, bytes or UUIDs: convert the column to text"
    if facts.types:
        types = ", ".join(shown_as(kind, quoted=False) for kind in sorted(facts.types))
        words = f"a release stops: {name}, which identifies privacy units, has type {types} in the table, and {needs}"
        yield Verdict(Seriousness.STOPS, facts.unreadable / n_rows, words)
    elif facts.unreadable:
        words = f"{_of(facts.unreadable, n_rows, f'cells of {name}')} are not valid identifiers; {needs}"
        if unit.missing == "error":
            yield Verdict(Seriousness.STOPS, facts.unreadable / n_rows, f"a release stops: {words}")
        else:
            yield _graded(facts.unreadable, n_rows, f"{words}. Their rows are dropped")
    if facts.missing:
        words = f"{_of(facts.missing, n_rows, 'rows')} have no {name}"
        if unit.missing == "error":
            words = (
                f"a release stops: {words}, and the privacy unit's rule is missing: error. Choose drop for it, or complete the "
                "table"
            )
            yield Verdict(Seriousness.STOPS, facts.missing / n_rows, words)
        else:
            yield _graded(facts.missing, n_rows, f"{words}, belong to no unit and are dropped")
    if counts.beyond:
        words = (
            f"{_of(counts.rows_of_units_over, counts.rows, 'rows')} are of a {name} with {facts.rule_text}: "
            f"{counts.beyond:,} {'row does' if counts.beyond == 1 else 'rows do'} not count. Is {unit.max_rows:,} what public "
            "knowledge says that a typical one has?"
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
        if outside >= _MAX * n_numbers:
            words += ": is the column in other units, or not the column that the schema describes?"
            yield Verdict(Seriousness.COLUMN_LOST, outside / n_numbers, words)
        elif column.rough is not None:
            words += ": values are not clipped, but the column's mean must not be there"
            yield Verdict(Seriousness.REMARK, outside / n_numbers, words)
        else:
            words += ", and are clipped to it"
            if codes := ", ".join(facts.codes):
                question = "are these codes" if len(facts.codes) > 1 else "is this a code"
                words += (
                    f". Nearly all of them are {codes}: {question} for a missing value in the codebook? Then state "
                    f"missing_values: [{codes}] in the schema"
                )
            yield Verdict(Seriousness.PARTLY_LOST, outside / n_numbers, words)
    if facts.between:
        words = f"{_of(facts.between, n_numbers, f'numbers of {name}')} are between 0 and 1: they count as fractions"
        yield _graded(facts.between, n_numbers, words)


def _spelling_advice(values: Sequence[FoundValue]) -> str:
    """Return advice on values that differ from levels in spelling only."""
    alike = [(value.value[1], str(value.nearest)) for value in values if value.same]
    if not alike:
        return ""
    strip = any(text.strip() != text and text.strip() == level.strip() for text, level in alike)
    folded = any(
        text.strip() != level.strip() and text.strip().casefold() == level.strip().casefold() for text, level in alike
    )
    rest = any(text.strip().casefold() != level.strip().casefold() for text, level in alike)
    rules = [rule for rule, needed in (("strip: true", strip), ("casefold: true", folded), ("aliases", rest)) if needed]
    others = (
        "" if rest or all(value.same for value in values) else "; other spellings of a level can be listed in aliases"
    )
    return (
        f". Some values and levels differ only in spelling: state {' and '.join(rules)} for the column in the schema, or use one "
        f"spelling{others}"
    )


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
        words += f", and {_fate(column.other, column)}: {listed}"
        words += _spelling_advice(unknown)
        yield _graded(facts.unknown, n_values, words)
    if facts.never_seen and facts.unknown < n_values:
        levels = ", ".join(
            shown_as(str(level)) if isinstance(level, str) else str(level) for level in facts.never_seen[:_MAX_LISTED]
        )
        more = f" and {len(facts.never_seen) - _MAX_LISTED} more" if len(facts.never_seen) > _MAX_LISTED else ""
        yield Verdict(Seriousness.REMARK, 0.0, f"no cell of {name} is {levels}{more}")


def _unreadable(facts: ColumnFacts, name: str, n_rows: int) -> str:
    needs = {"categorical": "text or integers", "date": "dates", "boolean": "true or false"}.get(
        facts.column.kind, "numbers"
    )
    if facts.types:
        types = ", ".join(shown_as(kind, quoted=False) for kind in sorted(facts.types))
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
        words += '; how dates are written can be stated for the column, such as format: "%d.%m.%Y"'
    values = facts.values("unreadable")
    if values:
        words += f". They hold {_listed(values, facts.all_values_listed, counted=not facts.types)}"
        if any(value.value[0] == "form" and "9" in value.value[1] for value in values):
            words += " (every digit is shown as 9)"
        texts = [value.value[1] for value in values if value.value[0] == "form" and "9" not in value.value[1]]
        if isinstance(facts.column, Numeric | Date) and facts.all_values_listed and 0 < len(texts) <= _MAX_LISTED:
            codes = ", ".join(map(shown_as, texts))
            words += f". If the codebook has {codes} for a missing value, state missing_values: [{codes}] in the schema"
    return words


def _listed(values: Sequence[FoundValue], complete: bool, *, counted: bool) -> str:
    """List values with their counts, but for a single one if their sum was ``counted`` before."""
    alone = counted and complete and len(values) == 1
    shown = [_value(value, counted=not alone) for value in values[:_MAX_LISTED]]
    left = len(values) - len(shown)
    if not complete:
        return f"{', '.join(shown)} and more than {left} other values (a sample)"
    return ", ".join(shown) + (f" and {left} other values" if left else "")


def _value(sample: FoundValue, *, counted: bool) -> str:
    kind, text = sample.value
    shown = {"number": text, "type": f"<{shown_as(text, quoted=False)}>"}.get(kind) or shown_as(text)
    near = ""
    if sample.nearest is not None:
        level = shown_as(sample.nearest) if isinstance(sample.nearest, str) else str(sample.nearest)
        near = f"; the level {level}?" if sample.same else f"; nearest level {level}"
    about = f"{sample.cells:,}{near}" if counted else near.removeprefix("; ")
    return f"{shown} ({about})" if about else shown


def _fate(rule: str, column: object) -> str:
    filled = "count as the middle of the bounds" if isinstance(column, Numeric | Boolean) else "count as 0"
    if isinstance(column, Numeric) and column.rough is not None:
        filled = "count as the center"
    if rule == "fill" and isinstance(column, Numeric | Date | Boolean):
        filled = f"count as {column.replacement:g}" if not isinstance(column, Date) else f"count as {column.fill}"
    fates = {
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
    percent = 100.0 * number / whole
    shown = "under 0.1%" if percent < 0.1 else "over 99.9%" if percent > 99.9 else f"{percent:.1f}%"
    return f"{number:,} of {whole:,} {what}".rstrip() + f" ({shown})"


def row_lines(facts: TableFacts) -> Iterator[str]:
    """Yield lines on rows: what no finding says."""
    dropping = [rule for rule in facts.rules.values() if rule.rows]
    if any(rule.alone < rule.rows for rule in dropping):
        alone = ", ".join(
            f"{shown_as(rule.column, quoted=False)} ({rule.rule}: drop) {rule.alone:,}" for rule in dropping
        )
        yield f"Rows that one rule drops and no other: {alone}"
    if facts.unit is not None:
        name, counts = shown_as(facts.unit.privacy_unit.column, quoted=False), facts.unit.counts
        with_rows = (
            f"{name} has {counts.units:,} {'value' if counts.units == 1 else 'values'} in rows that no rule drops"
        )
        yield f"{with_rows}; {counts.units_over:,} of them with {facts.unit.rule_text}"
    for name, rows in facts.derived.items():
        if rows:
            within = _of(rows, facts.rows, "rows")
            yield f"{shown_as(name, quoted=False)} uses a cell that was clipped, filled in or unknown in {within}"


def column_lines(facts: TableFacts, findings: Sequence[Verdict]) -> Iterator[str]:
    """Yield lines on every column, with the numbers of its findings."""
    fitting = []
    for column in facts.columns.values():
        kind = column.column
        what = f"{shown_as(kind.name, quoted=False)} ({kind.kind}{_limits(kind)})"
        numbers = [str(number) for number, finding in enumerate(findings, 1) if finding.column == kind.name]
        if numbers:
            yield f"  {what}: see {' and '.join(numbers)}"
        else:
            fitting.append(what)
    if fitting and findings:
        yield f"  every cell fits: {', '.join(fitting)}"
    else:
        yield from (f"  {what}" for what in fitting)


def _limits(column: object) -> str:
    if isinstance(column, Coordinate | Boolean):
        return ""
    if isinstance(column, Categorical):
        return f", {len(column.levels)} level{'s' if len(column.levels) > 1 else ''}"
    assert isinstance(column, Numeric | Date)
    return f", {column.public_values_text}"
