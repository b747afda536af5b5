"""The private look at a table before a release: exact, whole in one run, and hidden until it is shown."""

from __future__ import annotations

import copy
import datetime
import io
import math
import pickle
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

import dpmoments as dpm
from dpmoments.cli.entry import main
from dpmoments.planning.facts import _MAX_VALUES, ValueSample, nearest_level
from dpmoments.planning.survey import Survey, SurveyPart
from dpmoments.rows.rows import Rows
from dpmoments.rows.sources.opening import open_source
from references.plain_preflight import require_equal
from support.examples import examples
from support.said import Said, refused
from support.table_forms import EXPECTED, FILES, FORMS, SCHEMA, TABLE, a_third_of_forms, csv_text

MARK = "PRIVATE │"


def shown(found: dpm.Preflight) -> str:
    stream = io.StringIO()
    found.show(stream)
    return stream.getvalue()


def words(found: dpm.Preflight) -> str:
    """What is shown, without marks and line ends."""
    return " ".join(" ".join(line.removeprefix(MARK) for line in shown(found).splitlines()).split())


def facts_of(data: Any, schema: dpm.Schema, **options: Any) -> dict[str, Any]:
    return dpm.preflight(data, schema, threads=1, **options).private_facts()


# ---------------------------------------------------------------- counts are exact, on every form of table


@pytest.mark.long(sets=8)
@pytest.mark.parametrize("form", a_third_of_forms(1))
def test_every_form_of_a_table_gives_the_plain_counts(form: str, tmp_path: Path) -> None:
    data = FORMS[form]() if form in FORMS else FILES[form](tmp_path)
    found = dpm.preflight(data, SCHEMA)
    facts = found.private_facts()
    codes = facts["columns"]["code"]["unknown_values"]
    assert [(value["text"].removesuffix(".0"), value["nearest"]) for value in codes] == [("4", None)]
    codes[0]["text"] = "4"  # as the file writes it
    require_equal(facts, TABLE.to_pylist(), SCHEMA)
    assert facts["rows_kept"] == EXPECTED.count == Rows.of(data, SCHEMA).count()
    assert not found.stops_a_release


NUMBERS = [*(0.0, -0.0, 0.5, 1.0, 2.0, -2.0, 5e-324, 1e300, math.nan, math.inf, -math.inf), np.nextafter(2.0, 3.0)]
CELLS: dict[str, list[Any]] = {
    "x": [None, *NUMBERS, 0.3, 1.7, -0.9],
    "y": [None, 0.0, 1.0, 0.25, -0.5, math.inf],
    "f": [None, 0.0, 1.0, 1.0, 0.5],
    "g": [None, "a", "b", "b", "A", "", " a", "1"],
    "c": [None, -1, 1, 2, 2, 4],
}
ROUGH_X = dpm.Numeric("x", scale=(0.1, 1.0), radius=1.5, center=0.25, missing="drop")


def columns(missing: Any, other: Any, x: dpm.Numeric | None = None) -> list[Any]:
    of_level = "zero" if missing == "center" else missing
    return [
        dpm.Numeric("x", -1, 2, missing=missing) if x is None else x,
        dpm.Numeric("y", -1, 2, missing="drop") if x is None else replace(x, name="y"),
        dpm.Boolean("f", missing=missing),
        dpm.Categorical("g", ["a", "b", "1"], missing=of_level, other=other),
        dpm.Categorical("c", [1, 2], missing=of_level, other=other),
    ]


COUNTED = {
    "error": dpm.Schema(*columns("error", "drop"), row_norm=0.7),
    "center": dpm.Schema(*columns("center", "zero"), row_norm=0.7),
    "drop": dpm.Schema(*columns("drop", "drop")),
    "derived": dpm.Schema(dpm.Power("x", 2), *columns("drop", "zero"), dpm.Product("x", "g")),
    "rough": dpm.Schema(*columns("center", "zero", ROUGH_X)),
}


@pytest.mark.long(sets=5)
@pytest.mark.parametrize("rules", COUNTED)
def test_counts_are_those_of_plain_python_and_of_the_release(rules: str) -> None:
    rng, schema = np.random.default_rng(1), COUNTED[rules]
    kinds = {name: pa.string() if name == "g" else pa.int64() if name == "c" else pa.float64() for name in CELLS}
    for n_rows in (0, 12, 400):
        cells = {name: [known[place] for place in rng.integers(0, len(known), n_rows)] for name, known in CELLS.items()}
        table = pa.table({name: pa.array(cells[name], kinds[name]) for name in CELLS})
        objects = pd.DataFrame({name: pd.Series(of_column, dtype=object) for name, of_column in cells.items()})
        for data in (table, pl.from_arrow(table), objects):
            facts = facts_of(data, schema)
            require_equal(facts, table.to_pylist(), schema)
            require_release_agrees(facts, data, schema)
        assert facts_of(table, schema, mean=False)["rows_kept"] == facts["rows_kept"]


def require_release_agrees(facts: dict[str, Any], data: Any, schema: dpm.Schema) -> None:
    try:
        kept = Rows.of(data, schema, threads=1).count()
    except (TypeError, ValueError):
        assert facts["a_release_stops"]
    else:
        assert not facts["a_release_stops"]
        assert kept == facts["rows_kept"]


ODD_CELLS: list[Any] = [
    *(None, 0.5, -2.0, math.nan, math.inf, 1, 4, "a", " a", "1", "12", "1,5", "n/a", "", "x" * 3000, "\ud800"),
    *(True, np.bool_(False), np.float32(0.5), 1j, float, {}, [1], b"a", 10**400, -(10**5000)),
    *(Decimal("1.5"), Decimal("NaN"), Decimal("sNaN"), pd.NA, pd.NaT, datetime.date(2026, 1, 1)),
]
ODD_SCHEMAS = [
    dpm.Schema(dpm.Date("v", "2020-01-01", "2026-12-31", missing="drop")),
    dpm.Schema(dpm.Date("v", "2020-01-01", "2026-12-31", format="%d.%m.%Y")),
    dpm.Schema(dpm.Numeric("v", 0, 1, missing="drop")),
    dpm.Schema(dpm.Numeric("v", 0, 1)),
    dpm.Schema(dpm.Boolean("v", missing="center")),
    dpm.Schema(dpm.Categorical("v", ["a", "1"], missing="zero")),
    dpm.Schema(dpm.Categorical("v", [1, 2], missing="drop", other="zero"), row_norm=0.5),
]


@pytest.mark.parametrize("schema", ODD_SCHEMAS)
def test_odd_objects_stop_a_preflight_never_and_each_is_counted_once(schema: dpm.Schema) -> None:
    column = pd.Series([None] * len(ODD_CELLS), dtype=object)
    for place, cell in enumerate(ODD_CELLS):
        column.iat[place] = cell
    found = dpm.preflight(pd.DataFrame({"v": column}), schema, threads=1)
    require_marked(shown(found))
    require_release_agrees(found.private_facts(), pd.DataFrame({"v": column}), schema)
    of_column = found.private_facts()["columns"]["v"]
    levels = sum(of_column.get("levels", {}).values())
    counted = sum(of_column.get(what, 0) for what in ("empty", "infinite", "unreadable", "unknown", "below", "above"))
    assert counted + levels <= len(ODD_CELLS)
    if "levels" in of_column:
        assert counted + levels == len(ODD_CELLS)


USUAL = dpm.TextFormat()


CSV_TEXTS = [
    *(*USUAL.null_markers, *USUAL.true_markers, *USUAL.false_markers, " NA", "NAN", "nan(1)", "yes", "", "a", "A"),
    *("1,5", "1.", ".5", ".", "0x1", "--1", "1e", "+1", "1e5", "1e400", "-inf", "Infinity", "٣", "−1", "1_0"),
    *(" 1", "1 ", "\t2", "\xa01", "1\xa0", "1\x0b", "\x0c1", "1\n", "1\r\n", "\u20031", " \t1\t "),
]
CSV_CELLS = st.one_of(
    st.sampled_from(CSV_TEXTS),
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\r\n\0"), max_size=4),
    st.text(" \t+-.0123456789eEinfaNI()_", max_size=6),
)


@pytest.mark.long
@given(st.sampled_from(ODD_SCHEMAS), st.lists(CSV_CELLS, min_size=1, max_size=5))
@settings(max_examples=examples(75), deadline=None)
def test_text_files_are_read_as_a_release_reads_them(
    tmp_path_factory: pytest.TempPathFactory, schema: dpm.Schema, cells: list[str]
) -> None:
    path = tmp_path_factory.mktemp("csv") / "t.csv"
    path.write_bytes(csv_text(pa.table({"v": cells, "w": ["x"] * len(cells)}), quote="all_valid"))
    facts = facts_of(path, schema)
    assert facts["rows"] == len(cells)
    assert facts["files_not_read_to_their_end"] == []
    require_release_agrees(facts, path, schema)


def test_a_file_that_is_not_utf8_is_told_by_its_column(tmp_path: Path) -> None:
    path = tmp_path / "latin.csv"
    path.write_bytes("ward,age\nGröße,1\nA,2\n".encode("latin-1"))
    schema = dpm.Schema(dpm.Categorical("ward", ["A"]), dpm.Numeric("age", 0, 9))
    found = dpm.preflight(path, schema)
    assert not found.stops_a_release
    assert found.private_facts()["columns"]["ward"]["unknown"] == 1
    assert "<text that is not UTF-8>" in words(found).replace("\0", " ")
    assert Rows.of(path, schema).count() == found.private_facts()["rows_kept"] == 1
    path.write_bytes("ward,age\nA,Größe\nA,2\n".encode("latin-1"))
    assert dpm.preflight(path, schema).stops_a_release
    with refused("has a cell that is missing, not finite or not readable, and", column="age"):
        Rows.of(path, schema).count()


def test_a_type_that_stops_a_release_does_so_without_any_cell() -> None:
    table, column = pa.table({"v": pa.array([None, None], pa.string())}), dpm.Boolean("v", missing="center")
    facts = facts_of(table, dpm.Schema(column))
    assert facts["a_release_stops"]
    assert (facts["columns"]["v"]["types"], facts["columns"]["v"]["unreadable"]) == (["string"], 0)
    require_release_agrees(facts, table, dpm.Schema(column))


def test_parts_merge_to_the_whole_in_any_order() -> None:
    source = open_source(TABLE, SCHEMA, True)
    survey = Survey(SCHEMA)

    def surveyed(table: pa.Table) -> Any:
        running = survey.start()
        for part in open_source(table, SCHEMA, True).parts():
            survey.add(running, SurveyPart.of(source, part))
        return survey.finish(running)

    whole = surveyed(TABLE)
    pieces = [surveyed(TABLE.slice(start, 37)) for start in range(0, TABLE.num_rows, 37)]
    for order in (pieces, pieces[::-1]):
        merged = survey.finish(survey.start())
        for piece in order:
            merged = survey.merge(merged, piece)
        assert merged.to_plain() == survey.merge(survey.start(), whole).to_plain()


# ---------------------------------------------------------------- values that are no level


@pytest.mark.parametrize("distinct", [_MAX_VALUES, _MAX_VALUES + 1])
def test_a_sample_of_values_does_not_depend_on_order_or_parts(distinct: int) -> None:
    rng = np.random.default_rng(distinct)
    cells = np.concatenate([np.arange(distinct), rng.integers(0, distinct, 3_000)])
    totals = np.bincount(cells)
    samples = []
    for n_parts in (1, 40):
        merged = ValueSample()
        for part in np.array_split(rng.permutation(cells), n_parts):
            one = ValueSample()
            for piece in np.array_split(part, 2):
                one.add(
                    {
                        ("text", str(value)): int(times)
                        for value, times in zip(*np.unique(piece, return_counts=True), strict=True)
                    }
                )
            merged = one + merged if rng.random() < 0.5 else merged + one
        samples.append(merged)
    for sample in samples:
        assert sample.counts == samples[0].counts
        assert all(totals[int(value[1])] == times for value, times in sample.counts.values())
        assert len(sample.counts) == min(distinct, _MAX_VALUES)
        assert sample.complete == (distinct <= _MAX_VALUES)
    assert set(samples[0].counts) == set(sorted(all_hashes(distinct))[:_MAX_VALUES])


def all_hashes(distinct: int) -> list[bytes]:
    hashes = []
    for value in range(distinct):
        one = ValueSample()
        one.add({("text", str(value)): 1})
        hashes += one.counts
    return hashes


@pytest.mark.parametrize(
    "cells",
    [
        pa.array(np.array([1.0, 7.0, 7.0], dtype=np.float16)),
        pa.array(np.array([1.0, 7.0, 7.0], dtype=np.float16)).dictionary_encode(),
        pa.array(["1", "7", "7"], pa.string_view()),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 1, None], pa.uint8()), pa.array([1, 7], pa.uint64())),
        pa.DictionaryArray.from_arrays(pa.array([0, 1, 2]), pa.array(["1", "7", "7"], pa.string_view())),
        pa.RunEndEncodedArray.from_arrays([1, 3], pa.array(["1", "7"])),
    ],
    ids=lambda cells: str(cells.type),
)
def test_unknown_values_are_found_in_arrays_of_any_type(cells: pa.Array) -> None:
    schema = dpm.Schema(dpm.Categorical("v", [1, 2], missing="zero"))
    of_column = facts_of(pa.table({"v": cells}), schema)["columns"]["v"]
    assert [(value["text"], value["cells"]) for value in of_column["unknown_values"]] == [("7", 2)]


def test_many_unknown_values_are_sampled_and_counted_exactly() -> None:
    table = pa.table({"ward": [f"name {i % 5000}" for i in range(20_000)]})
    found = dpm.preflight(table, dpm.Schema(dpm.Categorical("ward", ["A"])))
    of_column = found.private_facts()["columns"]["ward"]
    assert of_column["unknown"] == 20_000
    assert len(of_column["unknown_values"]) == _MAX_VALUES
    assert {value["cells"] for value in of_column["unknown_values"]} == {4}
    assert not of_column["all_values_listed"]
    assert "a sample" in words(found)
    assert len(shown(found)) < 4_000


@pytest.mark.parametrize(
    ("value", "levels", "nearest"),
    [
        (("text", "a"), ["A", "B"], ("A", True)),
        (("text", " ICU "), ["A", "ICU"], ("ICU", True)),
        (("text", "intensive\xa0care"), ["Intensive care"], ("Intensive care", True)),
        (("text", "1"), [1, 2], (1, True)),
        (("number", "1.0"), ["1", "2"], ("1", True)),
        (("text", "001"), [1, 2], (1, True)),
        (("text", "nrth"), ["north", "south"], ("north", False)),
        (("number", "1.5"), [1, 2], (None, False)),
        (("text", "zebra"), ["north", "south"], (None, False)),
        (("type", "list"), ["list"], (None, False)),
        (("text", "nan"), ["1"], (None, False)),
    ],
)
def test_the_nearest_level(value: Any, levels: Any, nearest: Any) -> None:
    found = nearest_level(value, levels)
    assert found == nearest or (found[1] is nearest[1] and found[0] == nearest[0])


# ---------------------------------------------------------------- what it says, and first


def hospital(n_rows: int = 3_000) -> tuple[pa.Table, dpm.Schema]:
    """The three classic mistakes: centimeters against meters, levels in another case, gaps under missing: error."""
    rng = np.random.default_rng(0)
    ages = rng.uniform(18, 95, n_rows).tolist()
    ages[::250] = [None] * len(ages[::250])
    wards = rng.choice(["a", "b", "icu"], n_rows).tolist()
    wards[:2] = ["A", "B"]
    table = pa.table({"age": ages, "height": rng.normal(170, 9, n_rows), "ward": wards})
    schema = dpm.Schema(
        dpm.Numeric("age", 0, 120), dpm.Numeric("height", 0.3, 2.3), dpm.Categorical("ward", ["A", "B", "ICU"])
    )
    return table, schema


def test_the_classic_mistakes_come_first_and_all_at_once() -> None:
    found = dpm.preflight(*hospital())
    verdicts = found.private_facts()["verdicts"]
    assert verdicts[0] == "most rows are dropped, by the rules of ward (other: drop)"
    assert verdicts[1].startswith(
        "all 3,000 numbers of height are above its upper bound 2.3: is the column in other units"
    )
    assert verdicts[2].startswith("2,998 of 3,000 cells of ward (over 99.9%) are not levels of the schema")
    assert "'icu' (" in verdicts[2]
    assert "the level 'ICU'?" in verdicts[2]
    assert verdicts[3].startswith("a release stops: 12 of 3,000 cells of age (0.4%) are missing")
    assert verdicts[4] == "no cell of ward is 'ICU'"
    said = words(found)
    assert said.index("STOPS with an error: see 4 below") < said.index("1. Most rows are dropped")
    assert said.index("3. 2,998") < said.index("4. A release stops")


NUMERIC = dpm.Schema(dpm.Numeric("v", 0, 1))
DROPS = dpm.Schema(dpm.Numeric("v", 0, 1, missing="drop"))
ROUGH = dpm.Schema(dpm.Numeric("v", scale=(1, 2)))
LEVEL = dpm.Schema(dpm.Categorical("v", ["a"]))
FINDINGS: list[tuple[dpm.Schema, list[Any], str]] = [
    (NUMERIC, [], "the table has no rows: a release is only noise, and stops under replace_one"),
    (DROPS, [None, None], "every row is dropped, by the rules of v (missing: drop)"),
    (DROPS, [None, None], "all 2 cells of v are missing, and their rows are dropped"),
    (
        dpm.Schema(dpm.Numeric("v", 0, 1, missing="center")),
        [None, 1.0],
        "1 of 2 cells of v (50.0%) are missing, and count as the middle",
    ),
    (NUMERIC, [-1.0, 0.5, 0.5], "1 of 3 numbers of v (33.3%) are below its lower bound 0, and are clipped"),
    (ROUGH, [1e9, 1e9], "all 2 numbers of v are more than the radius 20 above the center 0: is the"),
    (ROUGH, [1e9, 0.0, 0.0], "values are not clipped"),
    (dpm.Schema(dpm.Boolean("v")), [0.25, 1.0, 0.0], "1 of 3 numbers of v (33.3%) are between 0 and 1"),
    (LEVEL, ["b", "b"], "no cell of v is a level of the schema, and their rows are dropped: 'b' (2)"),
    (
        dpm.Schema(dpm.Categorical("v", ["a", "b"], other="zero")),
        ["b", "b", "c"],
        "1 of 3 cells of v (33.3%) are not levels of the schema, and count as no level",
    ),
    (dpm.Schema(dpm.Categorical("v", [1, 2])), [1, 1, 1], "no cell of v is 2"),
    (dpm.Schema.unit_ball(1, names=["v"]), [3.0, 1.0, 0.5], "1 of 3 rows (33.3%) exceed the row-norm bound 1"),
    (dpm.Schema.unit_ball(1, names=["v"], missing="drop"), [math.inf, 1.0], "(50.0%) are missing or infinite (1)"),
    (NUMERIC, [datetime.date(2026, 1, 1)], "a release stops: v has type date32[day] in the table and a numeric"),
    (NUMERIC, ["1", "2,5", "n/a"], "1 of 3 of these cells (33.3%) are text that could be read as a number"),
    (NUMERIC, ["1", "2,5", "n/a"], "has 'n/a' for a missing value, state missing_values: ['n/a'] in the schema"),
    (NUMERIC, ["1", "2,5", "n/a"], "They hold '9,9' (1), 'n/a' (1) (every digit is shown as 9)"),
    (LEVEL, [[1], [2]], "a release stops: v has type nested values in the table and a categorical column needs text"),
]


@pytest.mark.parametrize(("schema", "cells", "said"), FINDINGS)
def test_each_finding_in_words(schema: dpm.Schema, cells: list[Any], said: str) -> None:
    table = pa.table({"v": pa.array(cells, pa.float64() if not cells else None)})
    found = dpm.preflight(table, schema)
    assert any(said in verdict for verdict in found.private_facts()["verdicts"]), found.private_facts()["verdicts"]
    require_marked(shown(found))
    require_release_agrees(found.private_facts(), table, schema)


def test_rows_of_length_one_are_not_told_to_be_longer() -> None:
    rows = np.random.default_rng(0).normal(size=(500, 7))
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    assert facts_of(rows, dpm.Schema.unit_ball(7))["rows_shortened"] == 0
    rows[::5] *= 1.0 + 1e-6
    rows[1, 0] = 1e300
    assert facts_of(rows, dpm.Schema.unit_ball(7))["rows_shortened"] == 101


def numbers_shown(found: dpm.Preflight) -> list[str]:
    """Counts of 100 and more among the findings, the rows and the columns."""
    body = words(found).split("A release of this table", 1)[1].split("Change the schema only", 1)[0]
    return re.findall(r"(?<![\w.,])\d{1,3}(?:,\d{3})+|(?<![\w.,])\d{3,}", body)


def test_each_count_is_shown_once() -> None:
    """Every kind of cell that does not fit has a count of its own, which stands in one line."""
    n = 10_000
    age, ward, income = [30.0] * n, ["a"] * n, [1.0] * n
    for start, number, cells, cell in (
        (0, 301, age, None),
        (301, 302, age, math.inf),
        (603, 303, age, -1.0),
        (906, 304, age, 500.0),
        (2_000, 305, ward, "x"),
        (2_305, 306, ward, None),
        (3_000, 307, income, None),
    ):
        cells[start : start + number] = [cell] * number
    schema = dpm.Schema(
        dpm.Numeric("age", 0, 120, missing="drop"),
        dpm.Categorical("ward", ["a", "b"], missing="zero"),
        dpm.Numeric("income", 0, 2, missing="fill", fill=0.5),
    )
    found = dpm.preflight(pa.table({"age": age, "ward": ward, "income": income}), schema)
    shown_numbers = numbers_shown(found)
    for number in ("303", "304", "305", "306", "307", "603", "302", "9,092"):
        assert shown_numbers.count(number) == 1, (number, shown(found))
    assert "Rows that one rule drops" not in words(found)  # the counts of the findings again
    age[2_000:2_010] = [None] * 10  # rows that two rules drop
    found = dpm.preflight(pa.table({"age": age, "ward": ward, "income": income}), schema)
    assert "Rows that one rule drops and no other: age (missing: drop) 603, ward (other: drop) 295" in words(found)


@pytest.mark.slow
def test_a_shift_is_compared_with_the_noise_of_a_release() -> None:
    """3 % of the incomes are missing; the noise is that of the forecast, whatever the budget."""
    rng = np.random.default_rng(5)
    incomes = rng.uniform(20_000, 40_000, 20_000)
    incomes[::33] = math.nan
    smoker = np.where(np.arange(20_000) % 50 == 0, None, rng.random(20_000) < 0.1)
    table = pa.table({"income": incomes, "smoker": pa.array(smoker, pa.bool_())})
    schema = dpm.Schema(dpm.Numeric("income", 0, 200_000, missing="center"), dpm.Boolean("smoker", missing="center"))
    for budget in ({"epsilon": 1.0}, {"epsilon": 0.2, "delta": 1e-6}, {"rho": 0.01}):
        expected = dpm.forecast(schema, n_rows=20_000, mechanism="auto", **budget).noise_of("auto").mean
        found = dpm.preflight(table, schema, **budget)
        columns = found.private_facts()["columns"]
        shifts = [columns[name]["shift"] for name in ("income", "smoker")]
        assert [shift["noise"] for shift in shifts] == pytest.approx(expected.tolist(), rel=1e-12)
        true = np.where(np.isnan(incomes), 100_000, incomes).mean() - np.nanmean(incomes)
        assert shifts[0]["mean"] == pytest.approx(true, rel=1e-6)
        times = true / expected[0]
        shown = f"{times:.1f}" if times < 9.95 else f"{times:,.0f}"
        assert f": {shown} times the noise SD of a release with" in words(found)
    assert dpm.preflight(table, schema).private_facts() == dpm.preflight(table, schema, epsilon=1).private_facts()
    without = dpm.preflight(table, schema, mean=False).private_facts()["columns"]["income"]["shift"]
    assert (without["noise"], without["mean"]) == (None, shifts[0]["mean"])  # no mean is released
    near = dpm.Schema(
        dpm.Numeric("income", 0, 200_000, missing="fill", fill=30_000), dpm.Boolean("smoker", missing="available")
    )
    found = dpm.preflight(table, near)
    assert "Under missing: available" not in words(found)
    assert found.private_facts()["columns"]["smoker"]["shift"] is None
    with refused("give the privacy budget as epsilon (with or without"):
        dpm.preflight(table, schema, epsilon=1.0, rho=0.1)


def test_no_statistic_of_a_column_is_shown() -> None:
    """Cells changed for others on the same side of the bounds change not a letter."""
    schema = dpm.Schema(dpm.Numeric("x", 0, 10), dpm.Numeric("y", -5, 5, missing="center"), dpm.Boolean("z"))
    rng = np.random.default_rng(1)

    def table() -> pa.Table:
        side = np.arange(300) % 3
        x = np.where(
            side == 0,
            rng.uniform(-99, -1, 300),
            np.where(side == 1, rng.uniform(0, 10, 300), rng.uniform(11, 1e6, 300)),
        )
        return pa.table({"x": x, "y": rng.uniform(-5, 5, 300), "z": rng.uniform(0.1, 0.9, 300)})

    first, second = dpm.preflight(table(), schema), dpm.preflight(table(), schema)
    assert shown(first) == shown(second)
    assert first.private_facts() == second.private_facts()


# ---------------------------------------------------------------- hidden until it is shown


def require_marked(text: str) -> None:
    lines = text.split("\n")
    assert lines.pop() == ""
    assert all(line.startswith(MARK) for line in lines)
    assert all(character.isprintable() for line in lines for character in line)
    assert max(map(cell_len, lines)) <= 100


def test_nothing_of_it_gets_out_by_accident() -> None:
    found = dpm.preflight(*hospital())
    hidden = "Preflight(<private>: call .show())"
    assert [repr(found), str(found), f"{found}", f"{found!r:>3}", f"{[found]}"[1:-1]] == [hidden] * 5
    assert "icu" not in found._repr_html_()
    assert "3,000" not in found._repr_html_()
    for copied in (pickle.dumps, copy.copy, copy.deepcopy):
        with refused("a Preflight holds private facts and is neither pickled nor", TypeError):
            copied(found)
    assert not hasattr(found, "__dict__")
    assert "icu" not in repr(found._facts)
    assert "icu" not in repr(found._facts.columns)
    assert "2998" not in repr(found._facts.rules)
    assert "icu" not in repr([*found._facts.columns.values()][2].values("unknown"))


def test_it_prints_where_it_is_told_to_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    found = dpm.preflight(*hospital())
    assert capsys.readouterr() == ("", "")
    found.show()
    out, err = capsys.readouterr()
    assert (out, err) == (shown(found), "")
    assert out.startswith(f"{MARK} For the curator only")
    require_marked(out)
    assert list(tmp_path.iterdir()) == []
    narrow = io.TextIOWrapper(io.BytesIO(), encoding="ascii")
    found.show(narrow)
    narrow.seek(0)
    assert all(line.startswith("PRIVATE ?") for line in narrow.read().splitlines())


@pytest.mark.parametrize(
    "cells",
    [
        [*("\x1b[2J\x1b]0;gone\x07", "[bold red]ICU[/]", "two\nlines\r\nthree", "\u202egnp.exe", "a\u2028b")],
        [*("\0", "PRIVATE │", "{0} %s", "x" * 100_000)],
        [f"{'東京' * 15} {place}" for place in range(6)],
    ],
    ids=["control", "marks", "wide"],
)
def test_hostile_names_and_values_are_shown_harmlessly_on_lines_that_no_terminal_breaks(cells: list[str]) -> None:
    name = "ward\x1b[2J\nx"
    schema = dpm.Schema(
        dpm.Categorical(name, ["A\x1b"], missing="zero"), dpm.Power("y\x1b", 2), dpm.Numeric("y\x1b", 0, 1, "center")
    )
    frame = pd.DataFrame({name: cells, "y\x1b": cells})
    found = dpm.preflight(frame, schema)
    require_marked(shown(found))
    assert len(shown(found)) < 6_000
    columns = found.private_facts()["columns"]
    kept = [*columns[name]["unknown_values"], *columns["y\x1b"]["unreadable_values"]]
    assert max(len(value["text"]) for value in kept) < 100
    if "[bold red]ICU[/]" in cells:
        assert "[bold red]ICU[/]" in " ".join(shown(found).split())


# ---------------------------------------------------------------- files that are damaged, tables that are none


@pytest.mark.long
def test_a_damaged_page_is_told_with_what_was_read_before(tmp_path: Path) -> None:
    table, schema = hospital(6_000)
    for name in ("1.parquet", "2.parquet", "3.parquet"):
        pq.write_table(table, tmp_path / name, row_group_size=1_000, compression="none", write_page_checksum=True)
    whole = (tmp_path / "2.parquet").read_bytes()
    damaged = bytearray(whole)
    damaged[len(whole) // 2 : len(whole) // 2 + 400] = bytes(400)
    (tmp_path / "2.parquet").write_bytes(damaged)
    found = dpm.preflight(tmp_path, schema)
    facts = found.private_facts()
    (failure,) = facts["files_not_read_to_their_end"]
    assert "2.parquet cannot be read" in failure
    assert 12_000 <= facts["rows"] < 18_000
    assert facts["columns"]["height"]["above"] == facts["rows"]  # what else is wrong is told all the same
    assert facts["verdicts"][0].startswith(failure)
    assert found.stops_a_release
    with refused(" cannot be read: ", reason=Said(" (", reason=Said("damaged, truncated, or not what its name says"))):
        Rows.of(tmp_path, schema).count()


def test_a_line_with_too_many_cells_is_told(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("age,ward\n1,A\n2,B,C\n3,A\n4\n12,A\n" + "5,A\n" * 1_100_000)
    schema = dpm.Schema(dpm.Numeric("age", 0, 9))
    found = dpm.preflight(path, schema)
    assert found.stops_a_release
    assert "A release stops: 2 lines have more or fewer fields than the first" in words(found)
    facts = found.private_facts()
    assert (facts["rows"], facts["lines_with_more_or_fewer_cells"]) == (1_100_003, 2)
    assert facts["columns"]["age"]["above"] == 1
    with refused(
        " cannot be read: ", reason=Said(" (", reason=Said("one of its lines has a different number of fields"))
    ):
        Rows.of(path, schema).count()


def test_what_cannot_be_opened_is_refused_as_by_a_release(tmp_path: Path) -> None:
    schema = dpm.Schema(dpm.Numeric("age", 0, 9), dpm.Numeric("height", 0, 9))
    with refused("rename the column in the table or, if every file has"):
        dpm.preflight(pa.table({"weight": [1.0]}), schema)
    with refused("has more than one column named"):
        dpm.preflight(pd.DataFrame([[1.0, 2.0, 3.0]], columns=["age", "age", "height"]), schema)
    with pytest.raises(FileNotFoundError):
        dpm.preflight(tmp_path / "none.csv", schema)
    with refused("must be", TypeError, parameter="schema"):
        dpm.preflight(pa.table({"age": [1.0]}), {"age": (0, 9)})  # type: ignore[arg-type]


def probable_causes(**columns: object) -> dict[str, Any]:
    """What preflight finds of a table under a schema of four columns, one of them renamed."""
    schema = dpm.Schema(
        dpm.Numeric("age", 0, 120, missing="drop"),
        dpm.Numeric("income", 0, 9_999, missing="drop", decimal=".", source="INC_TOT"),
        dpm.Categorical("region", ["north", "south"]),
        dpm.Boolean("smoker"),
        dpm.Product("age", "smoker"),
    )
    return dpm.preflight(pa.table(columns), schema).private_facts()


def test_a_column_that_is_absent_hides_no_other_finding() -> None:
    facts = probable_causes(age=[200.0, 30.0], INC_TOT=["1.5", "x"], region=["north", "west"], Smoker=[True, False])
    assert facts["a_release_stops"]
    absent = {"column": "smoker", "name": "smoker", "close": "Smoker", "others": ["Smoker"]}
    assert facts["absent_columns"] == [absent]
    assert facts["columns"]["age"]["above"] == facts["columns"]["region"]["unknown"] == 1
    assert facts["columns"]["income"]["unreadable"] == 1
    assert list(facts["derived"]) == []


def test_columns_that_the_schema_does_not_use_are_named_if_none_is_similar() -> None:
    schema = dpm.Schema(dpm.Numeric("income", 0, 9), dpm.Numeric("age", 0, 99))
    table = pa.table({"INC_TOT": [1.0], "person": [1], "age": [30.0]})
    said = words(dpm.preflight(table, schema, privacy_unit=dpm.PrivacyUnit("person", 1)))
    assert "no column income. The schema does not use INC_TOT: if it is one of these, state its name as source:" in said


def test_a_number_that_is_repeated_outside_the_bounds_is_probably_a_code() -> None:
    def codes(*ages: float) -> list[str]:
        n = len(ages)
        facts = probable_causes(age=ages, INC_TOT=["1"] * n, region=["north"] * n, smoker=[True] * n)
        codes: list[str] = facts["columns"]["age"]["probable_codes"]
        return codes

    assert codes(*[999.0] * 20, *[-9.0] * 3, *range(100)) == ["-9", "999"]
    assert codes(*range(100, 200)) == []  # values of people
    assert codes(999.0, *range(100)) == []  # may be one of them
    assert codes(*[999.0] * 20, *range(120, 150)) == []


def test_values_just_beyond_a_bound_are_no_codes() -> None:
    years = [2015.0] * 30 + [2016.0] * 20 + [float(2000 + place % 15) for place in range(100)]
    schema = dpm.Schema(dpm.Numeric("year", 2000, 2014))
    assert facts_of(pa.table({"year": years}), schema)["columns"]["year"]["probable_codes"] == []
    answers = [9.0] * 30 + [float(1 + place % 6) for place in range(100)]
    facts = facts_of(pa.table({"year": answers}), dpm.Schema(dpm.Numeric("year", 1, 6)))
    assert facts["columns"]["year"]["probable_codes"] == ["9"]


def test_codes_are_recognized_by_their_labels(tmp_path: Path) -> None:
    pyreadstat = pytest.importorskip("pyreadstat")
    frame = pd.DataFrame({"q": [1.0, 2.0, 7.0, 8.0, 6.5, 3.0, 4.0, 5.0]})
    pyreadstat.write_sav(frame, str(tmp_path / "t.sav"), variable_value_labels={"q": {1: "a", 7: "Refused"}})
    found = dpm.preflight(tmp_path / "t.sav", dpm.Schema(dpm.Numeric("q", 1, 6)))
    assert found.private_facts()["columns"]["q"]["probable_codes"] == ["7"]
    assert "The file labels 7 as Refused. Then state missing_values: [7] in the schema" in words(found)


def test_a_second_line_of_the_header_is_named(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_text("age,pay,seen\nyears,eur,\n30,5,2020-01-01\nx,7,2020-01-02\n")
    columns = (
        dpm.Numeric("age", 0, 120, "drop"),
        dpm.Numeric("pay", 0, 9, "drop"),
        dpm.Date("seen", "2020-01-01", "2021-01-01", "drop"),
    )
    found = dpm.preflight(tmp_path / "t.csv", dpm.Schema(*columns))
    assert found.private_facts()["rows_of_text"] == 1
    assert "state skip_below: 1 in text_format" in words(found)
    below = dpm.Schema(*columns, text_format=dpm.TextFormat(skip_below=1))
    assert dpm.preflight(tmp_path / "t.csv", below).private_facts()["rows_of_text"] == 0


def test_what_was_asked_for_is_apart_and_alike_findings_are_one() -> None:
    table = pa.table({f"q{place}": [None] * (1 + place) + [1.0] * (20 - place) for place in range(4)})
    asked = words(
        dpm.preflight(table, dpm.Schema(*(dpm.Numeric(f"q{place}", 0, 2, "available") for place in range(4))))
    )
    assert "As the schema asks, missing cells are left out of the moments of q3 (4 of 21), q2 (3 of 21)" in asked
    assert "1." not in asked.split("As the schema asks")[0]
    stopped = words(dpm.preflight(table, dpm.Schema(*(dpm.Numeric(f"q{place}", 0, 2) for place in range(4)))))
    assert "The same is found in q2, q1, q0." in stopped
    assert "2." not in stopped.split("Columns:")[0]
    assert "q0 (numeric, 0 to 2): see 1" in stopped


def test_a_date_format_that_would_do_is_named() -> None:
    table = pa.table({"seen": ["31.01.2020", "05.02.2020", "?"]})
    said = words(dpm.preflight(table, dpm.Schema(dpm.Date("seen", "2020-01-01", "2021-01-01", format="%m/%d/%Y"))))
    assert '2 of 3 of these cells (66.7%) can be read with format: "%d.%m.%Y"' in said


def test_times_on_the_day_of_an_upper_bound_are_after_its_midnight() -> None:
    times = pa.array([datetime.datetime(2020, 12, 31, hour) for hour in (0, 9, 17)] + [datetime.datetime(2021, 1, 2)])
    schema = dpm.Schema(dpm.Date("seen", "2020-01-01", "2020-12-31"))
    found = dpm.preflight(pa.table({"seen": times}), schema)
    assert found.private_facts()["columns"]["seen"]["later_on_the_day_of_the_upper_bound"] == 2
    with_time = dpm.Schema(dpm.Date("seen", "2020-01-01", "2020-12-31T23:59:59"))
    assert "midnight" not in words(dpm.preflight(pa.table({"seen": times}), with_time))


def test_numbers_that_parse_with_the_other_decimal_mark_are_counted() -> None:
    def marks(*incomes: str) -> dict[tuple[str, str | None], int]:
        n = len(incomes)
        facts = probable_causes(age=[1.0] * n, INC_TOT=incomes, region=["north"] * n, smoker=[True] * n)
        found = facts["columns"]["income"]["numbers_with_other_marks"]
        return {(entry["decimal"], entry["thousands"]): entry["cells"] for entry in found}

    assert marks("1,5", "1.234,5", "x", "7") == {(",", None): 1, (",", "."): 2}
    assert marks("1.5", "7") == {}


# ---------------------------------------------------------------- the command


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    table, schema = hospital()
    pq.write_table(table, tmp_path / "people.parquet")
    schema.save(tmp_path / "people.yaml")
    right = dpm.Schema(dpm.Numeric("age", 0, 120, missing="drop"), dpm.Numeric("height", 30, 230))
    right.save(tmp_path / "right.yaml")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_prints_marked_lines_and_ends_as_a_release_would(folder: Path, capsys: Any) -> None:
    before = sorted(folder.iterdir())
    assert main(["preflight", "people.parquet", "--schema", "people.yaml"]) == 1
    out, err = capsys.readouterr()
    require_marked(out)
    assert "All 3,000 numbers of height are above" in out
    assert "standard output is not a terminal" in err
    assert "3,000" not in err
    assert main(["preflight", "people.parquet", "--schema", "right.yaml"]) == 0
    assert "it counts 2,988 of 3,000 rows" in " ".join(capsys.readouterr().out.split())
    filled = dpm.Schema(dpm.Numeric("age", 0, 120, missing="center"), dpm.Numeric("height", 30, 230))
    filled.save("filled.yaml")
    assert main(["preflight", "people.parquet", "--schema", "filled.yaml", "--rho", "0.01"]) == 0
    assert "times the noise SD of a release with 0.01-zCDP" in " ".join(
        capsys.readouterr().out.replace(MARK, "").split()
    )
    (folder / "filled.yaml").unlink()
    assert main(["preflight", "none.parquet", "--schema", "right.yaml"]) == 1
    assert main(["preflight", "people.parquet"]) == 2
    assert sorted(folder.iterdir()) == before


@pytest.mark.parametrize(
    ("levels", "upper", "code", "said"),
    [
        (["A", "B"], 230.0, 0, "Every cell fits the schema."),
        (["a", "b"], 230.0, 3, "WORTHLESS"),
        (["A", "B"], 2.3, 3, "WORTHLESS"),
    ],
)
def test_a_release_that_would_run_for_nothing_does_not_pass(
    levels: list[str],
    upper: float,
    code: int,
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Levels in another case, and a column in other units: no error, and nothing left to release."""
    monkeypatch.chdir(tmp_path)
    pq.write_table(pa.table({"ward": ["A", "B"] * 50, "height": [150.0, 190.0] * 50}), "visits.parquet")
    schema = dpm.Schema(dpm.Categorical("ward", levels), dpm.Numeric("height", 0.3, upper))
    schema.save("visits.yaml")
    assert main(["preflight", "visits.parquet", "--schema", "visits.yaml"]) == code
    assert said in capsys.readouterr().out
    assert not dpm.preflight("visits.parquet", schema).stops_a_release


def test_unreadable_texts_and_other_spellings_are_met_with_the_rules_that_read_them() -> None:
    table = pa.table({"smoker": ["ja", "nein"], "day": ["31.01.2020", "01.02.2020"], "region": ["nord", "Zentrum"]})
    schema = dpm.Schema(
        dpm.Boolean("smoker"),
        dpm.Date("day", "2020-01-01", "2021-01-01"),
        dpm.Categorical("region", ["Nord", "Zentral"]),
    )
    said = " ".join(dpm.preflight(table, schema).private_facts()["verdicts"])
    assert 'true_values: ["yes"]' in said
    assert 'format: "%d.%m.%Y"' in said
    assert "casefold: true" in said
    assert "listed in aliases" in said
