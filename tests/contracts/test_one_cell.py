"""One odd cell never decides how another is read: for every source, type, rule and odd cell, and for what Hypothesis draws."""

from __future__ import annotations

import datetime as dt
import pkgutil
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmoments as dpm
from contracts.entrances import WORKERS_SOURCES, concrete
from contracts.typed_columns import ARROW, COLUMNS, DAYS, NUMPY, ODD, READ_BY_NO_RULE, Cells, NotHeldError, TypedColumn
from dpmoments.rows.encode import encode_levels
from dpmoments.rows.level_sums import LevelLayout
from dpmoments.rows.rows import Rows
from dpmoments.rows.sources.arrow import FileSource
from dpmoments.rows.sources.source import LocalSource
from dpmoments.rows.units import UnitBlock
from dpmoments.schema import Schema
from support.examples import examples

pytestmark = pytest.mark.long(sets=None)

Reading = Counter[bytes]
"""How often each encoded row, or unit, was kept."""
IDS = "ids"
MARKS = [99.9, 0.1, 1, 2**53, "north", "k.A."]
RULES: dict[str, Callable[[Any], Any]] = {
    "numbers": lambda missing: dpm.Numeric("c", -1000, 1e6, missing=missing),
    "missing marks": lambda missing: dpm.Numeric("c", -1000, 1e6, missing=missing, missing_values=MARKS),
    "numbers in text": lambda missing: dpm.Numeric("c", 0, 10, missing=missing, decimal=",", missing_values=MARKS),
    "codes": lambda missing: dpm.Boolean(
        "c", missing=missing, true_values=[0.1, 7, "ja"], false_values=[99.9, 2, 1e300, "north"], missing_values=[0.5]
    ),
    "levels": lambda missing: dpm.Categorical("c", ["7", "north", "99", "1"], missing=missing, other="zero"),
    "whole levels": lambda missing: dpm.Categorical("c", [7, 1, 2**11 + 1, 2**24 + 1], missing=missing, other="zero"),
    "aliases": lambda missing: dpm.Categorical(
        "c", ["7", "north"], aliases={"north": ["n", "2"], "7": [1, "seven"]}, strip=True, casefold=True,
        missing_values=[3, 0.5, "ja"], missing=missing, other="zero",
    ),
    "dates": lambda missing: dpm.Date("c", "2020-01-01", "2021-01-01", missing=missing, missing_values=["2020-03-02"]),
    "dates in a format": lambda missing: dpm.Date("c", "2020-01-01", "2021-01-01", missing=missing, format="%d.%m.%Y"),
    IDS: lambda _: dpm.Numeric("x", 0, 1),
}  # fmt: skip


@dataclass(frozen=True)
class Refusal:
    """An error, with all its words."""

    kind: type[Exception]
    words: str


@dataclass
class Reader:
    """Reads a table by one rule after another; its parts once for all, unless they are a file's, which asks for the rule."""

    data: Any
    parts: dict[str | None, list[Any]] = field(default_factory=dict)

    def read(self, rule: str, missing: str) -> Reading | Refusal:
        schema, layout = _laid_out(rule, missing)
        unit = dpm.PrivacyUnit("c", 1, missing) if rule == IDS else None  # type: ignore[arg-type]
        found: Reading = Counter()
        try:
            for columns in self.parts.get(None) or self.parts.get(rule) or self._read(rule, schema, unit):
                if unit is None:
                    rows = encode_levels(columns, schema, layout).encoded()
                    found.update(row.tobytes() for row in rows if np.isfinite(row).all())
                else:
                    found.update(UnitBlock.of(columns["c"], np.zeros((len(columns["c"]), 1)), unit).ids.to_pylist())
        except (TypeError, ValueError) as error:
            return Refusal(type(error), str(error))
        return found

    def _read(self, rule: str, schema: Schema, unit: Any) -> list[Any]:
        source = Rows.of(self.data, schema, privacy_unit=unit).source
        assert isinstance(source, LocalSource)
        every = [source.cells(part) for part in source.parts()]
        parts = [part for part in every if len(part["c"])] or every[:1]  # the first has no row
        self.parts[rule if isinstance(source, FileSource) else None] = parts
        return parts


@cache
def _laid_out(rule: str, missing: str) -> tuple[Schema, LevelLayout]:
    schema = Schema(RULES[rule](missing), row_norm=1)
    return schema, LevelLayout.of(schema, mean=True)


Readings = Mapping[tuple[str, str], Reading | Refusal]


def readings(column: TypedColumn, cells: Cells, folder: Path) -> Readings:
    """What is kept of a table by each rule, if missing values drop their row or stop."""
    reader = Reader(column.table(cells, folder))
    rules = [rule for rule in RULES if rule != IDS or column.unit]
    return {(rule, missing): reader.read(rule, missing) for rule, missing in product(rules, ("drop", "error"))}


@dataclass
class Examined:
    """What became of some tables."""

    combinations: int = 0
    faults: list[str] = field(default_factory=list)
    refusals: dict[str, set[Refusal]] = field(default_factory=lambda: defaultdict(set))

    def check(self, rule: str, table: str, n_cells: int, told: Readings, expected: Reading | Refusal) -> None:
        """A table is read as expected; where a missing value stops, it is refused exactly if a row would be dropped."""
        self.combinations += 1
        kept, stopped = told[rule, "drop"], told[rule, "error"]
        lost = isinstance(kept, Counter) and kept.total() < n_cells
        if isinstance(stopped, Refusal):
            self.refusals[rule].add(stopped)
        if kept != expected or not (isinstance(stopped, Refusal) if lost else stopped == kept):
            self.faults.append(f"{rule}: {table}")


def examine(column: TypedColumn, ordinary: Cells, odd: Mapping[str, Any], folder: Path) -> Examined:
    """Read a column without and with each odd cell, alone and among ordinary ones, by every rule."""
    result = Examined()
    plain, empty = (readings(column, cells, folder) for cells in (ordinary, []))
    kept = {rule: told for (rule, missing), told in plain.items() if missing == "drop"}
    nothing: dict[str, Reading | Refusal] = {
        rule: told if isinstance(told, Refusal) else Counter() for rule, told in kept.items()
    }
    for rule in kept:
        result.check(rule, "ordinary cells", len(ordinary), plain, kept[rule])
        result.check(rule, "no row", 0, empty, nothing[rule])
    for place, (name, cell) in enumerate(odd.items()):
        place %= len(ordinary) + 1
        try:
            alone = readings(column, [cell], folder)
            among = readings(column, [*ordinary[:place], cell, *ordinary[place:]], folder)
        except NotHeldError:
            continue
        for rule, others in kept.items():
            own = alone[rule, "drop"]
            if isinstance(others, Refusal) or isinstance(own, Refusal):
                own = together = nothing[rule]  # by its type, which every table is refused by or none
            else:
                together = others + own
            result.check(rule, f"{name}, alone", 1, alone, own)
            result.check(rule, name, len(ordinary) + 1, among, together)
    result.faults += [f"{rule}: refused as {told}" for rule, told in result.refusals.items() if len(told) > 1]
    return result


@pytest.mark.long(sets=12)
@pytest.mark.parametrize("name", COLUMNS)
def test_an_odd_cell_changes_no_other(name: str, tmp_path: Path) -> None:
    examined = examine(COLUMNS[name], COLUMNS[name].cells, ODD, tmp_path)
    assert not examined.faults, "\n".join(examined.faults[:20])


ALIKE = (
    ("arrow double", [7, 1, 0]),
    ("arrow string", ["7", "north"]),
    ("arrow timestamp[ns]", [DAYS[1]]),
    ("arrow bool", [True, False]),
)


@pytest.mark.long(sets=23)
@pytest.mark.parametrize("name", COLUMNS)
def test_equal_cells_are_read_alike_by_every_type(name: str, tmp_path: Path) -> None:
    for usual, cells in ALIKE:
        try:
            found = readings(COLUMNS[name], cells, tmp_path)
        except NotHeldError:
            continue
        expected = readings(COLUMNS[usual], cells, tmp_path)
        for rule, told in found.items():
            if not isinstance(told, Refusal) and not isinstance(expected[rule], Refusal):
                assert told == expected[rule], (rule, cells)
        told = found["missing marks", "drop"]
        if isinstance(told, Counter):
            facts = dpm.preflight(
                COLUMNS[name].table(cells, tmp_path), _laid_out("missing marks", "drop")[0], threads=1
            )
            assert facts.private_facts()["rows_kept"] == told.total()


CELLS = (
    *(st.none(), st.booleans(), st.floats(), st.floats(width=32), st.floats(width=16), st.integers()),
    *(st.integers(-200, 200), st.sampled_from([2**power + one for power in (11, 24, 53) for one in (-1, 0, 1)])),
    *(st.text(max_size=5), st.from_regex(r"[-+ ]?[0-9]{0,3}[,.]?[0-9]{0,2}", fullmatch=True), st.sampled_from(MARKS)),
    *(
        st.datetimes(),
        st.dates(),
        st.decimals(-1000, 1000, places=2),
        st.binary(max_size=16),
        st.sampled_from([*ODD][:-1]).map(ODD.get),
    ),
)


@given(name=st.sampled_from([*COLUMNS]), cells=st.lists(st.one_of(CELLS), max_size=12), odd=st.one_of(CELLS))
@settings(max_examples=examples(80), deadline=None)
def test_a_drawn_cell_changes_no_other(
    tmp_path_factory: pytest.TempPathFactory, name: str, cells: list[Any], odd: Any
) -> None:
    column, folder = COLUMNS[name], tmp_path_factory.mktemp("t")

    def held(cell: Any) -> bool:
        with suppress(NotHeldError):
            return column.table([cell], folder) is not None
        return False

    examined = examine(column, [*column.cells[:3], *filter(held, cells)], {"drawn": odd}, folder)
    assert not examined.faults, examined.faults


# The list is whole


def test_every_source_and_type_is_in_the_list(tmp_path: Path) -> None:
    schema = _laid_out("levels", "drop")[0]
    opened = [Rows.of(column.table(column.cells, tmp_path), schema) for column in COLUMNS.values() if column.unit]
    assert {type(rows.source).__name__ for rows in opened} | {"ArraySource", *WORKERS_SOURCES} == concrete(LocalSource)
    codes = "".join(np.typecodes[kind] for kind in ("AllInteger", "Float")) + "?O"
    assert {np.dtype(code) for code in codes} == {np.dtype(name) for name in NUMPY if np.dtype(name).isnative}
    kinds = {name.removeprefix("Type_"): getattr(pa.lib, name) for name in dir(pa.lib) if name.startswith("Type_")}
    listed = {kind.id for kind in (*ARROW, *READ_BY_NO_RULE)}
    assert {name for name, kind in kinds.items() if kind not in listed} == {
        "INTERVAL_DAY_TIME",
        "INTERVAL_MONTHS",
    }  # not of Python


@pytest.mark.parametrize("kind", READ_BY_NO_RULE, ids=str)
def test_a_type_that_is_in_no_list_is_refused_without_a_row(kind: Any) -> None:
    reader = Reader(pa.table({"c": pa.nulls(0, kind), "x": pa.array([], pa.float64())}))
    assert all(isinstance(reader.read(rule, "drop"), Refusal) for rule in RULES)


# Engines, whose partitions are blocks: what each worker reads is what this process reads of the whole


def moments(data: Any, rule: str, missing: str) -> Any:
    unit = dpm.PrivacyUnit("c", 1, missing) if rule == IDS else None  # type: ignore[arg-type]
    try:
        rows = Rows.of(data, _laid_out(rule, missing)[0], privacy_unit=unit, threads=1)
        return (rows if unit is None else rows.bounded((1, 2))).moments()
    except (TypeError, ValueError) as error:
        return Refusal(type(error), str(error))


@pytest.mark.long
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("name", ["pandas f4", "pandas O", "pandas of arrow large_string"])
def test_a_partition_of_dask_is_read_as_the_whole(name: str, tmp_path: Path) -> None:
    dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'dpmoments[dask]'")
    import dask.dataframe as dd

    odd = {"large_string": "abc", "O": "\udcff"}.get(name.split()[-1], float("nan"))
    column = COLUMNS[name]
    with dask.config.set({"scheduler": "synchronous", "dataframe.convert-string": False}):
        for cells in ([], column.cells, [*column.cells, odd]):
            frame = column.table(cells, tmp_path)
            for rule, missing in product(("missing marks", "codes", IDS), ("drop", "error")):
                assert moments(dd.from_pandas(frame, npartitions=3), rule, missing) == moments(frame, rule, missing)


# Planted faults: branches on what a block holds, each of which the property finds


def where(holds: Callable[[Any], Any], change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A reader that changes all of its cells if one of them is such."""

    def planted(honest: Any) -> Any:
        return lambda cells, *more, **options: honest(change(cells) if holds(cells) else cells, *more, **options)

    return planted


def result(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A reader whose result is changed."""
    return lambda honest: lambda *cells, **options: change(honest(*cells, **options))


def among(*odd: Any) -> Callable[[Any], bool]:
    return lambda cells: any(type(cell) is type(one) and cell == one for cell in cells.tolist() for one in odd)


def without(*kinds: type) -> Callable[[Any], Any]:
    """Objects without those of some types."""
    return lambda cells: np.fromiter((None if isinstance(cell, kinds) else cell for cell in cells), object, len(cells))


def widened(cells: Any) -> Any:
    floats = not isinstance(cells, np.ndarray) and pa.types.is_floating(cells.type)
    return cells.cast(pa.float64()) if floats and not pc.any(pc.is_nan(cells)).as_py() else cells


def all_or_none(cells: Any, read: Any, unreadable: Any) -> list[Any]:
    try:
        return [read(cell) for cell in cells]
    except Exception:
        return [unreadable] * len(cells)


FAULTS: dict[str, tuple[str, Callable[[Any], Any], str]] = {
    "floats of a frame without NaN are widened": ("rows.sources.memory.series_cells", result(widened), "pandas f4"),
    "floats of an array without NaN are widened": ("rows.sources.memory.array_cells", result(widened), "array of f2"),
    "floats of a column without NaN are widened": ("schema.cells.array_cells", result(widened), "columns of >f4"),
    "floats of Stata without NaN are widened": ("rows.sources.office._cells", result(widened), "t.dta, f4"),
    "ids without NaN are widened": (
        "schema.cell_reading._chunk_ids", lambda honest: lambda cells, name: honest(widened(cells), name), "arrow float"),
    "marks beside an infinite number are not rounded": (
        "schema.cell_reading._cleaned",
        lambda honest: lambda values, column, kind=None: honest(values, column, None if np.isinf(values).any() else kind),
        "polars float"),
    "numbers beside a fraction are rounded": ("schema.cell_reading._cleaned", where(among(0.3), np.rint), "columns of f8"),
    "whole numbers beside a fraction are no levels": ("schema.cell_reading._whole_number_texts", where(
        lambda chunk: 0.3 in chunk.to_pylist(), lambda chunk: pc.add(chunk, 0.5)), "arrow double"),
    "true beside text is missing": ("schema.cell_reading.object_numbers", where(among("abc"), without(bool)), "columns of O"),
    "floats beside None are no levels": (
        "schema.cell_reading.object_texts", where(lambda cells: None in [*cells], without(float)), "columns of O"),
    "times beside null are days": (
        "schema.cell_reading.date_numbers", where(lambda chunk: chunk.null_count,
            lambda chunk: chunk.cast(pa.date32(), safe=False) if pa.types.is_timestamp(chunk.type) else chunk),
        "arrow timestamp[ns]"),
    "times beside text are missing": ("schema.cell_reading.object_dates", where(among("abc"), without(dt.datetime)), "pandas O"),
    "text beside other text has a point": ("schema.cell_reading.text_numbers", where(
        lambda texts: "abc" in texts.to_pylist(), lambda texts: pc.replace_substring(texts, ",", "2")), "arrow large_string"),
    "bytes beside those of no text are folded": ("rows.sources.text.decoded_levels", where(
        lambda cells: b"nor\xffth" in cells.to_pylist(), lambda cells: pc.binary_replace_slice(cells, 0, 1, b"x")), "csv"),
    "a level beside an unknown one is stripped": ("rows.encode.level_codes", where(
        lambda cells: "abc" in cells.to_pylist(), pc.utf8_trim_whitespace), "pandas of arrow large_string"),
    "an id beside an empty one is stripped": ("schema.cell_reading._plain_texts", where(
        lambda texts: "" in texts.to_pylist(), pc.utf8_trim_whitespace), "arrow string"),
    "whole ids beside text are nobody's": ("rows.units.unit_ids", where(among("abc"), without(float)), "excel"),
    "all is unreadable beside an object that fails": ("schema.cells.read_objects", lambda _: all_or_none, "columns of O"),
    "a refusal counts cells": ("rows.encode.dropped_by_missing", lambda honest: lambda missing, rule, name, _: honest(
        missing, rule, name, str(np.count_nonzero(missing))), "arrow double"),
    "a refusal is of another class beside text": ("rows.encode.numbers", lambda honest: lambda cells, column: int("x") if (
        column.missing == "error" and among("abc")(cells)) else honest(cells, column), "columns of O"),
    "types of no row are not looked at": ("rows.sources.memory.FrameSource.parts", lambda honest: lambda source: [
        part for part in honest(source) if len(part)], "pandas f4"),
}  # fmt: skip
SEEN_BY = (
    *("NaN", "inf", "null", "fraction", "text", "empty text", "half of a surrogate pair", "true", "object that fails"),
)


@pytest.mark.long(sets=4)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_branch_on_what_a_block_holds_is_found(fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target, planted, name = FAULTS[fault]
    module, _, attribute = target.rpartition(".")
    owner = pkgutil.resolve_name(f"dpmoments.{module}")
    monkeypatch.setattr(owner, attribute, planted(getattr(owner, attribute)))
    column = COLUMNS[name]
    assert examine(column, column.cells, {kind: ODD[kind] for kind in SEEN_BY}, tmp_path).faults
