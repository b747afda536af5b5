"""A row is read by itself, whichever way it comes in: sums add up, and whether a table is accepted does not depend on a row."""

from __future__ import annotations

import datetime as dt
import inspect
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cache, reduce
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID

import duckdb
import numpy as np
import polars as pl
import pyarrow as pa
import pytest

import dpmoments as dpm
from contracts.entrances import (
    DASK,
    ESTIMATORS,
    LOCAL,
    REFUSED,
    SPARK,
    WORKERS_SOURCES,
    Entrance,
    EstimatorEntrance,
    cleared,
    concrete,
    csv,
    of_engine,
)
from contracts.odd_rows import (
    COLUMNS,
    ODD_UNITS,
    RULES,
    USUAL_ROW,
    NotHeldError,
    OddRow,
    Row,
    odd_rows,
    odd_units,
    schema,
    table,
)
from dpmoments import estimators
from dpmoments.base.table_files import _COMPRESSIONS, ENGINES, FEATHER_ENDINGS, PARQUET_ENDINGS
from dpmoments.base.text_files import CSV_DELIMITERS, TextFormat
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.rows import Rows
from dpmoments.rows.sources import opening
from dpmoments.rows.sources.engine import _PACKAGES, EngineSource
from dpmoments.rows.sources.source import LocalSource
from support.spark_session import of_spark

pytestmark = pytest.mark.long(sets=None)

KEY = (0x5EED, 0xCAFE)
UNIT = {"drop": dpm.PrivacyUnit("person", 2, "drop"), "error": dpm.PrivacyUnit("person", 2, "error")}
ROWS_AT_A_TIME = 14
ODD_ROWS_AT_A_TIME = 8
CSV_BLOCK_BYTES = 1500
BUCKET_BITS = 10
MOST_SHOWN = 60
SOME_ODD_ROWS = 3
"""At an entrance in the default suite, and under one rule, of those that it holds; the slow tests try all."""
SOME_ODD_UNITS = 2
SOME_ON_AN_ENGINE = 50
"""An engine gets them in one pass, and each is read alone besides."""


# --- what is asked of an entrance -------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Stop:
    """A table was refused, by an error of this type."""

    kind: type[Exception]


Outcome = ExactMoments | Stop
Ask = Callable[[Sequence[Row]], Outcome]


class CrashError(AssertionError):
    """Something else than a refusal in this library's words."""


@contextmanager
def refusals() -> Iterator[list[Stop]]:
    """Errors of the kinds that refuse a table; any other is a fault of the reader."""
    found: list[Stop] = []
    try:
        yield found
    except NotHeldError:
        raise
    except (TypeError, ValueError, FileNotFoundError) as error:
        if type(error).__module__.partition(".")[0] not in ("builtins", "dpmoments"):
            raise CrashError(f"{type(error).__module__}.{type(error).__name__}") from None
        found.append(Stop(next(kind for kind in (TypeError, FileNotFoundError, ValueError) if isinstance(error, kind))))
    except Exception as error:
        raise CrashError(type(error).__name__) from None


def asked(entrance: Entrance, rule: str, folder: Path, *, unit: bool = False) -> Ask:
    """Exact moments of rows that come by an entrance; of two rows of each unit, where asked for."""
    privacy_unit = UNIT["error" if rule == "error" else "drop"] if unit else None

    def ask(rows: Sequence[Row]) -> Outcome:
        data = made(entrance, rows, folder)
        with refusals() as stopped:
            opened = Rows.of(
                data, entrance.schema(rule), threads=1, privacy_unit=privacy_unit, text_format=entrance.text_format
            )
            return (opened.bounded(KEY) if unit else opened).moments()
        return stopped[0]

    return ask


def made(entrance: Entrance, rows: Sequence[Row], folder: Path) -> Any:
    """What is passed. A row of which nothing can be made, by the library that would hold it, is not held."""
    if len(rows) != 1:
        return entrance.make(rows, cleared(folder))
    try:
        data = entrance.make(rows, cleared(folder))
        if isinstance(data, pl.LazyFrame):
            data.collect()
        if isinstance(data, duckdb.DuckDBPyRelation):
            data.project("*").fetchall()
    except Exception as error:
        raise NotHeldError from error
    return data


def ordinary(ask: Ask, rule: str) -> tuple[list[Row], Outcome]:
    """A table that the entrance holds, with missing cells where it holds these and the rules take them, and its outcome."""
    if rule != "error":
        try:
            return table(gaps=True), ask(table(gaps=True))
        except NotHeldError:
            pass
    return table(gaps=False), ask(table(gaps=False))


def with_rows(rows: Sequence[Row], odd: Sequence[Row], first: int) -> list[Row]:
    """The odd rows among the others: at the front, in the middle and at the end in turn."""
    places = (0, len(rows) // 2, len(rows))
    found = [list(rows[: len(rows) // 2]), list(rows[len(rows) // 2 :])]
    for number, row in enumerate(odd, first):
        place = places[number % 3]
        if place == 0:
            found[0].insert(0, row)
        else:
            found[0 if place < len(rows) else 1].append(row)
    return [*found[0], *found[1]]


def added(first: Outcome, *others: Outcome) -> ExactMoments:
    return reduce(ExactMoments.merge, others, first)  # type: ignore[arg-type]


@dataclass
class Report:
    """What became of the odd rows at an entrance."""

    applicable: int = 0
    not_applicable: int = 0
    faults: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        return "\n".join([f"{len(self.faults)} faults of {self.applicable} odd rows", *self.faults[:MOST_SHOWN]])


EXTENT = pytest.mark.parametrize(
    "every", [pytest.param(False, id="some"), pytest.param(True, id="every", marks=pytest.mark.slow)]
)


SOME_RULES = [
    "drop",
    "error",
    *(pytest.param(rule, marks=pytest.mark.slow) for rule in RULES if rule not in ("drop", "error")),
]


def spread(odd: Sequence[OddRow], first: int, some: int) -> list[OddRow]:
    """Odd rows in another order at each entrance, so that any ``some`` in turn are of many kinds."""
    step = -(-len(odd) // some)
    return [one for turn in range(step) for one in odd[(first + turn) % step :: step]]


def turn_of(name: str, entrances: Iterable[str], rule: str) -> int:
    """A number that differs between entrances and rules, from which :func:`spread` starts."""
    return 3 * list(entrances).index(name) + list(RULES).index(rule)


def examine(ask: Ask, rule: str, odd: Sequence[OddRow], *, singly: bool, most: int | None = None) -> Report:
    """Hold an entrance to the property, under one set of rules, by the first ``most`` odd rows that it holds.

    Under rules that drop or fill, every table is accepted. Under rules that stop, a table with an odd row is if that row alone
    is. Wherever tables are accepted their moments add up.
    """
    report = Report()
    rows, base = ordinary(ask, rule)
    if isinstance(base, Stop):
        report.faults.append(f"an ordinary table is refused: {base.kind.__name__}")
        return report
    alone: list[tuple[OddRow, ExactMoments]] = []
    for number, one in enumerate(odd):
        if report.applicable == most:
            break
        try:
            outcome = ask([one.row])
        except NotHeldError:
            report.not_applicable += 1
            continue
        except CrashError as crash:
            outcome = crash
        report.applicable += 1
        if isinstance(outcome, CrashError):
            report.faults.append(f"{one}: alone, {outcome}")
        elif isinstance(outcome, ExactMoments):
            alone.append((one, outcome))
        elif rule != "error":
            report.faults.append(f"{one}: refused, {outcome.kind.__name__}")
        else:
            told = tried(ask, with_rows(rows, [one.row], number))
            if told != outcome:
                report.faults.append(f"{one}: refused alone, and not with others: {shown(told)}")
    step = 1 if singly else ODD_ROWS_AT_A_TIME
    for start in range(0, len(alone), step):
        together = alone[start : start + step]
        for place in range(3) if singly and rule == "drop" and start % 3 == 0 else (start,):
            report.faults += interference(ask, rows, base, together, place)
    return report


def tried(ask: Ask, rows: Sequence[Row]) -> Outcome | str:
    try:
        return ask(rows)
    except (CrashError, NotHeldError) as error:
        return f"{type(error).__name__} {error}"


def shown(outcome: Outcome | str) -> str:
    return (
        outcome if isinstance(outcome, str) else outcome.kind.__name__ if isinstance(outcome, Stop) else "other moments"
    )


def interference(
    ask: Ask, rows: Sequence[Row], base: ExactMoments, together: Sequence[tuple[OddRow, ExactMoments]], place: int
) -> list[str]:
    """Which of some odd rows change how other rows are read, or are read otherwise among them."""
    told = tried(ask, with_rows(rows, [one.row for one, _ in together], place))
    if isinstance(told, ExactMoments) and told == added(base, *(moments for _, moments in together)):
        return []
    if len(together) == 1:
        where = ("first", "in the middle", "last")[place % 3]
        return [f"{together[0][0]}: {where}, {shown(told)}"]
    singles = [fault for one in together for at in range(3) for fault in interference(ask, rows, base, [one], at)]
    return singles or [f"{[one for one, _ in together]}: together, {shown(told)}"]


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tables of forty rows are read in three blocks; few buckets of units are enough for them."""
    monkeypatch.setattr("dpmoments.rows.sources.arrow._ROWS_PER_BATCH", ROWS_AT_A_TIME)
    monkeypatch.setattr("dpmoments.rows.sources.arrow._MIN_ROWS_PER_PIECE", ROWS_AT_A_TIME)
    monkeypatch.setattr("dpmoments.rows.sources.memory._MIN_ROWS_PER_PART", ROWS_AT_A_TIME)
    monkeypatch.setattr("dpmoments.rows.sources.memory._RAW_ROWS_PER_BLOCK", ROWS_AT_A_TIME)
    monkeypatch.setattr("dpmoments.rows.level_sums._MAX_ROWS_PER_BLOCK", ROWS_AT_A_TIME)
    monkeypatch.setattr("dpmoments.rows.sources.text._CSV_BLOCK_BYTES", CSV_BLOCK_BYTES)
    monkeypatch.setattr("dpmoments.rows.units._BUCKET_BITS", BUCKET_BITS)


# --- rows, one by one -------------------------------------------------------------------------------------------------


@pytest.mark.long(sets=12)
@EXTENT
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", LOCAL)
def test_a_row_is_read_by_itself(name: str, rule: str, every: bool, tmp_path: Path) -> None:
    report = examined(name, rule, tmp_path, every=every)
    assert not report.faults, str(report)
    assert report.applicable


def examined(name: str, rule: str, folder: Path, *, every: bool) -> Report:
    entrance = LOCAL[name]
    if entrance.like is not None:
        return examine_alike(name, LOCAL, rule, folder, every=every)
    odd = spread(list(odd_rows(entrance.odd or entrance.names)), turn_of(name, LOCAL, rule), SOME_ODD_ROWS)
    singly = entrance.singly and rule != "center"
    return examine(asked(entrance, rule, folder / "t"), rule, odd, singly=singly, most=None if every else SOME_ODD_ROWS)


@pytest.mark.long(sets=8)
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("name", LOCAL)
def test_an_ordinary_table_is_the_same_by_every_entrance(name: str, tmp_path: Path) -> None:
    entrance = LOCAL[name]
    if entrance.coordinates:
        pytest.skip("a schema of coordinates has other units")
    _, moments = ordinary(asked(entrance, "drop", tmp_path / "t"), "error")
    assert moments in usual_moments(entrance.schema("drop") if entrance.cleaned else schema("drop", entrance.names))


@cache
def usual_moments(read_by: dpm.Schema) -> list[ExactMoments]:
    """Of the ordinary table in Arrow's types, and with days in place of times."""
    usual = pa.table({name: [row[name] for row in table(gaps=False)] for name in COLUMNS})
    of_days = usual.set_column(usual.column_names.index("day"), "day", usual["day"].cast(pa.date32()))
    return [Rows.of(one, read_by).moments() for one in (usual, of_days)]


@pytest.mark.parametrize(
    "name", ["t.csv", *(pytest.param(name, marks=pytest.mark.slow) for name in ("t.csv.gz", "t.tsv"))]
)
def test_a_line_longer_than_a_block_is_refused_wherever_it_stands(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where blocks end depends on the rows before: that must not decide which tables are accepted."""
    monkeypatch.setattr("dpmoments.rows.sources.text._CSV_BLOCK_BYTES", CSV_BLOCK_BYTES)
    ask = asked(Entrance(csv(name)), "drop", tmp_path / "t")
    rows = table(gaps=True)
    for length in (*range(CSV_BLOCK_BYTES - 90, CSV_BLOCK_BYTES + 90, 36), 3 * CSV_BLOCK_BYTES):
        odd = USUAL_ROW | {"unread": "x" * length}
        found = {
            shown(ask(with_rows(rows[:n_rows], [odd], place)))
            for n_rows, place in ((0, 0), *product((7, 40), range(3)))
        }
        assert len(found) == 1, length
    assert found == {"ValueError"}


# --- privacy units ----------------------------------------------------------------------------------------------------


def unit_of(row: Row, ids: str) -> bytes | None:
    """Whose an ordinary row is at an entrance that holds ids as it does."""
    return UUID(int=row["person"]).bytes if ids == "UUID" else str(row["person"]).encode()


def unit_of_odd(one: OddRow, ids: str) -> bytes | None:
    """Whose an odd row is. A number, a truth value and a date that name nobody name somebody once they are written as text."""
    if one.column != "person":
        return unit_of(one.row, ids)
    cell, unit = ODD_UNITS[one.kind]
    if ids == "UUID" and isinstance(cell, int) and 0 <= cell < 2**128:
        return unit_of(one.row, ids)
    written = ids == "text" and isinstance(cell, float | bool | dt.date) and cell == cell
    return str(cell).encode() if written and unit is None else unit


def examine_units(ask: Ask, rule: str, odd: Sequence[OddRow], ids: str = "cells", most: int | None = None) -> Report:
    """The rows of a unit that count depend on its own rows alone: sums over units add up, with the odd row's unit apart."""
    report = Report()
    rows, base = ordinary(ask, rule)
    if isinstance(base, Stop):
        report.faults.append(f"an ordinary table is refused: {base.kind.__name__}")
        return report
    for number, one in enumerate(odd):
        if report.applicable == most:
            break
        unit = unit_of_odd(one, ids)
        try:
            alone = tried_unless_not_held(ask, [one.row])
        except NotHeldError:
            report.not_applicable += 1
            continue
        report.applicable += 1
        told = tried(ask, with_rows(rows, [one.row], number))
        if rule == "error" and isinstance(alone, Stop):
            if told != alone:
                report.faults.append(f"{one}: refused alone, and not with others: {shown(told)}")
            continue
        if not isinstance(alone, ExactMoments) or not isinstance(told, ExactMoments):
            report.faults.append(f"{one}: alone, {shown(alone)}; with others, {shown(told)}")
            continue
        own = [row for row in rows if unit_of(row, ids) == unit]
        others = [row for row in rows if unit_of(row, ids) != unit]
        if one.column == "person" and unit is None and alone.count:
            report.faults.append(f"{one}: counts, and is nobody's")
        apart = [tried(ask, part) for part in (others, [*own, one.row])] if own else [base, alone]
        if not all(isinstance(part, ExactMoments) for part in apart) or told != added(*apart):
            report.faults.append(f"{one}: changes the rows of other people that count")
    return report


def tried_unless_not_held(ask: Ask, rows: Sequence[Row]) -> Outcome | str:
    try:
        return ask(rows)
    except CrashError as error:
        return f"CrashError {error}"


def units_of(entrance: Entrance) -> list[OddRow]:
    return [one for one in odd_units() if one.column == "person" or one.column in entrance.names]


@pytest.mark.long(sets=4)
@EXTENT
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("rule", ["drop", "error"])
@pytest.mark.parametrize("name", [name for name, entrance in LOCAL.items() if entrance.unit])
def test_the_rows_of_a_unit_depend_on_its_own_rows(name: str, rule: str, every: bool, tmp_path: Path) -> None:
    entrance = LOCAL[name]
    ask = asked(entrance, rule, tmp_path / "t", unit=True)
    odd = spread(units_of(entrance), turn_of(name, LOCAL, rule), SOME_ODD_UNITS)
    report = examine_units(ask, rule, odd, entrance.ids, None if every else SOME_ODD_UNITS)
    assert not report.faults, str(report)
    assert report.applicable


# --- estimators -------------------------------------------------------------------------------------------------------


class AuditedRelease(BaseException):
    """Carries exact moments out of a fit, before noise is drawn."""

    def __init__(self, moments: ExactMoments) -> None:
        super().__init__()
        self.moments = moments


@pytest.fixture
def fits_end_at_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    of_rows = Rows.moments

    def tell(rows: Rows, *arguments: Any, **options: Any) -> Any:
        raise AuditedRelease(of_rows(rows, *arguments, **options))

    monkeypatch.setattr(Rows, "moments", tell)


def fitted(entrance: EstimatorEntrance, rule: str) -> Ask:
    """The moments that a fit asks for."""
    stated = schema(rule, entrance.columns)

    def ask(rows: Sequence[Row]) -> Outcome:
        try:
            x = entrance.make_x(rows, entrance.names)
            y = () if entrance.target is None else (entrance.make_y(rows, entrance.target),)
        except Exception as error:
            if len(rows) != 1:
                raise
            raise NotHeldError from error
        model = entrance.estimator(stated, epsilon=1.0, mechanism="gaussian", delta=1e-6, insecure_seed=0)
        with refusals() as stopped:
            try:
                model.fit(x, *y)
            except AuditedRelease as told:
                return told.moments
            raise CrashError("the fit asked for no moments")
        return stopped[0]

    return ask


@pytest.mark.long(sets=4)
@EXTENT
@pytest.mark.usefixtures("small_blocks", "fits_end_at_moments")
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", ESTIMATORS)
def test_an_estimator_reads_a_row_by_itself(name: str, rule: str, every: bool) -> None:
    entrance = ESTIMATORS[name]
    of_y = ", y " in name and ", X " not in name
    names = entrance.names if not of_y else (entrance.target or "",)
    singly = name == "DPCovariance, X lists"
    odd = spread(list(odd_rows(names)), turn_of(name, ESTIMATORS, rule), SOME_ODD_ROWS)
    report = examine(
        fitted(entrance, rule), rule, odd, singly=singly and rule != "center", most=None if every else SOME_ODD_ROWS
    )
    assert not report.faults, str(report)
    assert report.applicable or rule != "drop" or not every  # of a typed y few rows are left


# --- engines ----------------------------------------------------------------------------------------------------------


def examine_alike(name: str, entrances: dict[str, Entrance], rule: str, folder: Path, *, every: bool) -> Report:
    """As :func:`examine`; what each odd row is alone comes from the local entrance that holds the same cells.

    An engine gets all odd rows in one pass.
    """
    entrance = entrances[name]
    like = LOCAL[entrance.like or "arrow"]
    ask, by_itself = asked(entrance, rule, folder / "engine"), asked(like, rule, folder / "local")
    report = Report()
    rows, base = ordinary(by_itself, rule)
    alone: list[tuple[OddRow, ExactMoments]] = []
    refused: list[OddRow] = []
    some = SOME_ODD_ROWS if entrances is LOCAL else SOME_ON_AN_ENGINE
    for one in spread(odd_rows_of(entrance.like or "arrow"), turn_of(name, entrances, rule), some):
        if report.applicable == some and not every:
            break
        outcome = alone_at(entrance.like or "arrow", one, rule, folder)
        try:
            if outcome is None:
                raise NotHeldError
            if entrance.holds is not None:
                entrance.holds(one.row)
            if entrances is LOCAL:
                made(entrance, [one.row], folder / "engine")
        except NotHeldError:
            report.not_applicable += 1
            continue
        report.applicable += 1
        if isinstance(outcome, ExactMoments):
            alone.append((one, outcome))
        elif rule == "error":
            refused.append(one)
        else:
            report.faults.append(f"{one}: {shown(outcome)}")
    step = ODD_ROWS_AT_A_TIME if entrances is LOCAL else len(alone) or 1
    for start in range(0, len(alone), step):
        report.faults += by_halves(ask, rows, base, alone[start : start + step], start)
    for number, one in enumerate(refused[:2]):
        told, wanted = tried(ask, with_rows(rows, [one.row], number)), by_itself([one.row])
        if told != wanted:
            report.faults.append(f"{one}: refused in a local table, and not here: {shown(told)}")
    return report


@cache
def odd_rows_of(name: str) -> list[OddRow]:
    return list(odd_rows(LOCAL[name].names))


_ALONE: dict[tuple[str, str, str], Outcome | str | None] = {}


def alone_at(name: str, one: OddRow, rule: str, folder: Path) -> Outcome | str | None:
    """What an odd row is alone at a local entrance, read once; None where it cannot be there."""
    key = name, rule, one.name
    if key not in _ALONE:
        try:
            _ALONE[key] = tried_unless_not_held(asked(LOCAL[name], rule, folder / "alone"), [one.row])
        except NotHeldError:
            _ALONE[key] = None
    return _ALONE[key]


def by_halves(
    ask: Ask,
    rows: Sequence[Row],
    base: Outcome,
    together: Sequence[tuple[OddRow, ExactMoments]],
    first: int,
    most: int = 4,
) -> list[str]:
    """A few of the odd rows that change how others are read, in as few passes as find them."""
    told = tried(ask, with_rows(rows, [one.row for one, _ in together], first))
    if isinstance(told, ExactMoments) and told == added(base, *(moments for _, moments in together)):
        return []
    if len(together) <= 1:
        return [f"{[one for one, _ in together]}: {shown(told)}"]
    half = len(together) // 2
    found = by_halves(ask, rows, base, together[:half], first, most)
    if len(found) < most:
        found += by_halves(ask, rows, base, together[half:], first + half, most - len(found))
    return found or [f"{len(together)} odd rows together: {shown(told)}"]


def examine_units_together(name: str, engine: dict[str, Entrance], rule: str, folder: Path) -> list[str]:
    """The rows of units that count are those of the local entrance that holds the same cells, odd rows among them."""
    entrance, like = engine[name], LOCAL[engine[name].like or "arrow"]
    by_itself, ask = (
        asked(one, rule, folder / where, unit=True) for one, where in ((like, "local"), (entrance, "engine"))
    )
    rows, _ = ordinary(by_itself, rule)
    odd = []
    for one in units_of(entrance):
        try:
            outcome = tried_unless_not_held(by_itself, [one.row])
        except NotHeldError:
            continue
        if isinstance(outcome, ExactMoments):
            odd.append(one)
        elif rule != "error":
            return [f"{one}: {shown(outcome)}"]
    every = with_rows(rows, [one.row for one in odd], 0)
    told = tried(ask, every)
    return [] if odd and told == by_itself(every) else [f"{len(odd)} odd rows: {shown(told)}"]


@pytest.fixture
def dask_here() -> Iterator[None]:
    """Dask runs its tasks in this thread."""
    dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'dpmoments[dask]'")
    with dask.config.set(scheduler="synchronous"):
        yield


of_dask = pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")


@pytest.mark.long(sets=2)
@of_dask
@pytest.mark.usefixtures("small_blocks", "dask_here")
@EXTENT
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("name", DASK)
def test_a_row_is_read_by_itself_on_dask(name: str, rule: str, every: bool, tmp_path: Path) -> None:
    report = examine_alike(name, DASK, rule, tmp_path, every=every)
    assert not report.faults, str(report)
    assert report.applicable


@pytest.mark.long
@of_dask
@pytest.mark.usefixtures("small_blocks", "dask_here")
@pytest.mark.parametrize("rule", ["drop", "error"])
@pytest.mark.parametrize("name", [name for name, entrance in DASK.items() if entrance.unit])
def test_the_rows_of_a_unit_depend_on_its_own_rows_on_dask(name: str, rule: str, tmp_path: Path) -> None:
    assert examine_units_together(name, DASK, rule, tmp_path) == []


def on_spark(test: Any) -> Any:
    return reduce(lambda marked, mark: mark(marked), of_spark, test)


@pytest.mark.long
@on_spark
@pytest.mark.usefixtures("spark")
@EXTENT
@pytest.mark.parametrize("rule", SOME_RULES)
@pytest.mark.parametrize("name", SPARK)
def test_a_row_is_read_by_itself_on_spark(name: str, rule: str, every: bool, tmp_path: Path) -> None:
    report = examine_alike(name, SPARK, rule, tmp_path, every=every)
    assert not report.faults, str(report)
    assert report.applicable


@pytest.mark.slow
@on_spark
@pytest.mark.usefixtures("spark")
@pytest.mark.parametrize("rule", ["drop", pytest.param("error", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", [name for name, entrance in SPARK.items() if entrance.unit])
def test_the_rows_of_a_unit_depend_on_its_own_rows_on_spark(name: str, rule: str, tmp_path: Path) -> None:
    assert examine_units_together(name, SPARK, rule, tmp_path) == []


# --- refused entrances ------------------------------------------------------------------------------------------------


def refusals_of(entrance: Entrance, folder: Path, ran: Callable[[], int]) -> tuple[set[Stop | str], int, int]:
    """How tables with and without odd rows are refused; how many tables; how many computations of an engine that took."""
    rows = table(gaps=False)
    kinds = {("text", "age"), ("digits after zeros", "code"), ("nothing", "day")}
    odd = [one.row for one in odd_rows() if (one.kind, one.column) in kinds]
    tables = [rows, *([row] for row in odd), *(with_rows(rows, [row], place) for place, row in enumerate(odd))]
    found: set[Stop | str] = set()
    n_tables = n_runs = 0
    for each in tables:
        try:
            data = entrance.make(each, cleared(folder))
        except NotHeldError:
            continue
        n_tables += 1
        before = ran()
        try:
            with refusals() as stopped:
                unit = UNIT["drop"] if entrance.unit else None
                opened = Rows.of(data, entrance.schema("drop"), privacy_unit=unit, text_format=entrance.text_format)
                if not entrance.at_opening:
                    (opened.bounded(KEY) if unit else opened).moments()
                found.add("accepted")
        except CrashError as crash:
            found.add(str(crash))
        found |= set(stopped)
        n_runs += ran() - before
    return found, n_tables, n_runs


@pytest.mark.long(sets=8)
@pytest.mark.parametrize("name", [name for name in REFUSED if of_engine(name) == "local"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_what_is_refused_is_refused_whatever_it_holds(name: str, tmp_path: Path) -> None:
    found, n_tables, _ = refusals_of(REFUSED[name], tmp_path / "t", lambda: 0)
    assert found == {Stop(REFUSED[name].refused or Exception)}
    assert n_tables >= 3


@pytest.mark.long(sets=2)
@of_dask
@pytest.mark.parametrize("name", [name for name in REFUSED if of_engine(name) == "dask"])
def test_what_is_refused_of_dask_is_refused_whatever_it_holds(name: str, tmp_path: Path) -> None:
    dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'dpmoments[dask]'")
    runs = []

    def counting(graph: Any, keys: Any, **options: Any) -> Any:
        runs.append(keys)
        return dask.get(graph, keys, **options)

    with dask.config.set(scheduler=counting):
        found, n_tables, n_runs = refusals_of(REFUSED[name], tmp_path / "t", lambda: len(runs))
    assert found == {Stop(REFUSED[name].refused or Exception)}
    assert n_tables >= 3
    assert n_runs == 0


@pytest.mark.long
@on_spark
@pytest.mark.parametrize("name", [name for name in REFUSED if of_engine(name) == "spark"])
def test_what_is_refused_of_spark_is_refused_whatever_it_holds(name: str, spark: Any, tmp_path: Path) -> None:
    jobs = spark.sparkContext._jsc.sc().dagScheduler().numTotalJobs
    found, n_tables, n_runs = refusals_of(REFUSED[name], tmp_path / "t", lambda: int(jobs()))
    assert found == {Stop(REFUSED[name].refused or Exception)}
    assert n_tables >= 3
    assert n_runs == 0


# --- the list is whole ------------------------------------------------------------------------------------------------

BESIDE_SPARK = LOCAL | DASK | {name: entrance for name, entrance in REFUSED.items() if of_engine(name) != "spark"}


def opened(
    entrance: Entrance, folder: Path, trace: Any = None, neighbors: str = "add_remove"
) -> tuple[str | None, list[Path]]:
    """The class of source that reads an ordinary table, None where it is refused, and the files it is in."""
    data = entrance.make(table(gaps=False), cleared(folder))
    unit = UNIT["drop"] if entrance.unit else None
    before = sys.gettrace()
    sys.settrace(trace or before)
    try:
        options: dict[str, Any] = dict(privacy_unit=unit, text_format=entrance.text_format, neighbors=neighbors)
        rows = Rows.of(data, entrance.schema("drop"), **options)
    except Exception:
        assert entrance.refused is not None or neighbors == "replace_one"
        return None, []
    finally:
        sys.settrace(before)
    return type(rows.source).__name__, opening.expand_paths(data) if isinstance(data, str | Path) else []


@of_dask
@pytest.mark.usefixtures("dask_here")
def test_every_source_branch_and_ending_is_in_the_list(tmp_path: Path) -> None:
    """A line of ``opening.py`` that no entrance reaches is a way in that is in no list."""
    reached: set[int] = set()

    def trace(frame: Any, *_: Any) -> Any:
        if frame.f_code.co_filename != opening.__file__:
            return None
        reached.add(frame.f_lineno)
        return trace

    found, files = set[str | None](), set[Path]()
    for entrance in BESIDE_SPARK.values():
        source, paths = opened(entrance, tmp_path / "t", trace)
        found.add(source)
        files.update(paths)
    assert opened(LOCAL["excel"], tmp_path / "t", trace, "replace_one") == (None, [])
    of_spark_alone = {name for name in concrete(EngineSource) if name.lstrip("_").startswith("Spark")}
    assert concrete(LocalSource) | concrete(EngineSource) == {*found, *WORKERS_SOURCES, *of_spark_alone} - {None}
    assert set(WORKERS_SOURCES.values()) <= {*DASK, *SPARK}
    lines = Path(opening.__file__).read_text().splitlines()
    for function in (opening.open_source, opening._file_source):
        code = function.__code__
        missed = {
            line for _, _, line in code.co_lines() if line not in reached and line not in (None, code.co_firstlineno)
        }
        assert {lines[line - 1].strip() for line in missed} <= {"return open_spark(data, reading)"}
    columnar = {*PARQUET_ENDINGS, *FEATHER_ENDINGS, *CSV_DELIMITERS}
    assert {opening.file_ending(path) for path in files} == {*columnar, ".xlsx", ".dta", ".sav", ".xpt"}
    assert {path.suffix for path in files} >= set(_COMPRESSIONS)


@on_spark
@pytest.mark.usefixtures("spark")
def test_every_source_of_spark_is_in_the_list(tmp_path: Path) -> None:
    found = {opened(entrance, tmp_path / "t")[0] for entrance in SPARK.values()}
    assert found == {name for name in concrete(EngineSource) if name.lstrip("_").startswith("Spark")}


def test_every_option_engine_and_estimator_is_in_the_list() -> None:
    formats = [entrance.text_format for entrance in LOCAL.values() if entrance.text_format is not None]
    options, usual = fields(TextFormat), TextFormat()
    for option in options:
        assert any(getattr(form, option.name) != getattr(usual, option.name) for form in formats), option.name
    engines = {"dask": DASK, "spark": SPARK}
    assert set(engines) == set(ENGINES) == set(_PACKAGES)
    assert all(any(f"{name} files" in one for one in entrances) for name, entrances in engines.items())
    listed = {name.split(",")[0] for name in ESTIMATORS}
    assert listed == {name for name in estimators.__all__ if inspect.isclass(getattr(estimators, name))}


def test_every_kind_of_numpy_array_is_in_the_list(tmp_path: Path) -> None:
    entrances = {**LOCAL, **REFUSED}
    kinds = Counter(
        held.dtype.kind
        for name, entrance in entrances.items()
        if name.startswith(("array", "coordinates"))
        and isinstance(held := entrance.make(table(gaps=False), cleared(tmp_path / "t")), np.ndarray)
    )
    assert set(kinds) == {np.dtype(code).kind for code in np.typecodes["All"]} | {"T"}


def test_every_odd_row_is_held_by_some_entrance() -> None:
    """And every row of the list is another."""
    names = [one.name for one in odd_rows()]
    assert len(names) == len(set(names)) > 500
    objects = LOCAL["pandas of objects"].make([one.row for one in odd_rows()], Path())
    assert len(objects) == len(names)


# --- planted faults ---------------------------------------------------------------------------------------------------


def by_arrow(series: Any, name: str) -> Any:
    """As a reader that lets Arrow choose one type for all cells, by the first of them."""
    del name
    cells = series.to_list()
    try:
        return pa.array(cells, from_pandas=True)
    except (ValueError, TypeError, OverflowError, pa.ArrowException):
        made = np.empty(len(cells), dtype=object)
        made[:] = cells
        return made


def test_a_reader_that_infers_is_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    ask = asked(Entrance(LOCAL["pandas of objects"].make, ("day",)), "drop", tmp_path / "t")
    odd = [one for one in odd_rows(("day",)) if one.kind in ("date", "time", "nothing")]
    odd.sort(key=lambda one: one.kind != "date")  # the first is tried in every place
    assert examine(ask, "drop", odd, singly=True).faults == []
    monkeypatch.setattr("dpmoments.rows.sources.memory.series_cells", by_arrow)
    assert examine(ask, "drop", odd, singly=True).faults


def test_units_told_apart_by_the_whole_column_are_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from dpmoments.schema.cell_reading import unit_ids

    def by_looks(cells: Any, column: str, **how: Any) -> Any:
        found = unit_ids(cells, column, **how)
        names = found.to_pylist()
        if all(name is None or name.isdigit() for name in names):
            return pa.array([None if name is None else str(int(name)).encode() for name in names], pa.large_binary())
        return found

    entrance = LOCAL["arrow"]
    ask = asked(entrance, "drop", tmp_path / "t", unit=True)
    odd = [
        one for one in odd_units() if one.column == "person" and one.kind in ("digits after zeros", "letters", "padded")
    ]
    assert examine_units(ask, "drop", odd).faults == []
    monkeypatch.setattr("dpmoments.rows.units.unit_ids", by_looks)
    assert examine_units(ask, "drop", odd).faults
