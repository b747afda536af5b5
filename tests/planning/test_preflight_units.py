"""A look at a table of people of many rows: how many there are, and which of their rows a release would leave out."""

from __future__ import annotations

import datetime
import io
import math
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm
from dpmoments.cli.entry import main
from dpmoments.privacy.unit import MissingUnit
from dpmoments.rows import units as unit_counts
from dpmoments.rows.rows import Rows
from support.said import refused

MARK = "PRIVATE │"
SCHEMA = dpm.Schema(dpm.Numeric("age", 0, 100, missing="drop"), dpm.Categorical("ward", ["a", "b"], missing="zero"))
KEY = (11, 12)


def words(found: dpm.Preflight) -> str:
    stream = io.StringIO()
    found.show(stream)
    assert all(line.startswith(MARK) for line in stream.getvalue().splitlines())
    return " ".join(" ".join(line.removeprefix(MARK) for line in stream.getvalue().splitlines()).split())


def facts_of(data: Any, unit: dpm.PrivacyUnit, schema: dpm.Schema = SCHEMA, **options: Any) -> dict[str, Any]:
    return dpm.preflight(data, schema, privacy_unit=unit, **{"threads": 1} | options).private_facts()


def require_plain(facts: dict[str, Any], rows: list[dict[str, Any]], unit: dpm.PrivacyUnit) -> None:
    """The numbers of plain Python, row by row."""
    people: Counter[Any] = Counter()
    nobodys = kept = 0
    for row in rows:
        nobody = row["person_id"] in (None, "", "NA")
        dropped = row["age"] is None or math.isnan(row["age"]) or row["ward"] not in ("a", "b", None)
        nobodys += nobody
        if not dropped and not nobody:
            people[row["person_id"]] += 1
        kept += not (dropped or (nobody and unit.missing == "drop"))
    over = [count for count in people.values() if count > unit.max_rows]
    found = facts["privacy_unit"]
    assert found["rows_without_a_unit"] == nobodys
    assert (found["units"], found["rows"]) == (len(people), sum(people.values()))
    assert (found["units_with_more_rows"], found["rows_of_units_with_more_rows"]) == (len(over), sum(over))
    assert found["rows_that_do_not_count"] == sum(over) - unit.max_rows * len(over)
    assert facts["rows_kept"] == kept - found["rows_that_do_not_count"]


def require_release_agrees(
    facts: dict[str, Any], data: Any, unit: dpm.PrivacyUnit, schema: dpm.Schema = SCHEMA, **options: Any
) -> None:
    try:
        kept = Rows.of(data, schema, threads=1, privacy_unit=unit, **options).bounded(KEY).count()
    except (TypeError, ValueError):
        assert facts["a_release_stops"]
    else:
        assert not facts["a_release_stops"]
        assert kept == facts["rows_kept"]


def visits(n_rows: int = 3_000, seed: int = 0) -> pa.Table:
    rng = np.random.default_rng(seed)
    person = np.minimum(rng.zipf(1.5, n_rows), 500)
    return pa.table(
        {
            "age": [None if place % 250 == 0 else 20.0 + place % 70 for place in range(n_rows)],
            "ward": rng.choice(["a", "b", "c"], n_rows, p=[0.6, 0.3, 0.1]),
            "person_id": [None if place % 700 == 0 else f"p{number}" for place, number in enumerate(person.tolist())],
        }
    )


def parquet(table: pa.Table, folder: Path) -> Path:
    for place in range(3):  # a person's rows stand in all of them
        pq.write_table(table.slice(place * 1_000, 1_000), folder / f"{place}.parquet", row_group_size=300)
    return folder


def csv(table: pa.Table, folder: Path) -> Path:
    for place in range(3):
        pa_csv.write_csv(table.slice(place * 1_000, 1_000), folder / f"{place}.csv")
    return folder


@pytest.mark.parametrize("form", [parquet, csv])
def test_files_of_any_kind_give_the_same(form: Callable[[pa.Table, Path], Path], tmp_path: Path) -> None:
    table, unit = visits(), dpm.PrivacyUnit("person_id", 5, "drop")
    data = form(table, tmp_path)
    facts = facts_of(data, unit)
    require_plain(facts, table.to_pylist(), unit)
    require_release_agrees(facts, data, unit)
    assert facts == facts_of(table, unit) == facts_of(data, unit, threads=3)


def test_what_fits_into_memory_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = dpm.PrivacyUnit("person_id", 5, "drop")
    whole = facts_of(visits(), unit)
    passes: list[int] = []
    asked = unit_counts._Candidates.start

    def counted(self: Any) -> Any:
        passes.append(1)
        return asked(self)

    monkeypatch.setattr(unit_counts, "_COLLECTED_BYTES", 64 * 100)
    monkeypatch.setattr(unit_counts._Candidates, "start", counted)
    assert facts_of(visits(), unit) == whole
    assert len(passes) > 5


def test_colliding_hashes_make_no_two_people_one(monkeypatch: pytest.MonkeyPatch) -> None:
    unit = dpm.PrivacyUnit("person_id", 5, "drop")
    whole = facts_of(visits(), unit)
    monkeypatch.setattr("dpmoments.rows.units.unit_hashes", lambda ids, key: np.full(len(ids), key, dtype=np.uint64))
    assert facts_of(visits(), unit) == whole


# ---------------------------------------------------------------- what cannot be read


ODD: dict[str, Any] = {
    "flags": pa.array([True, False, None, True]),
    "lists": pa.array([[1], [2], [], None]),
    "fractions": pa.array([1.0, 2.5, None, 3.0]),
    "large": pa.array([1.0, 2.0**60, None, 3.0]),
    "objects": np.array([1, datetime.date(2020, 1, 1), None, 2.5], dtype=object),
}


@pytest.mark.parametrize("rule", ["error", "drop"])
@pytest.mark.parametrize("name", ODD)
def test_what_cannot_name_a_person_is_told_and_stops_a_release_by_its_type_or_rule(name: str, rule: Any) -> None:
    unit = dpm.PrivacyUnit("person_id", 5, rule)
    cells = ODD[name]
    data: Any = {"age": [1.0] * 4, "ward": ["a"] * 4, "person_id": cells}
    data = pd.DataFrame(data) if isinstance(cells, np.ndarray) else pa.table(data)
    found = dpm.preflight(data, SCHEMA, privacy_unit=unit, threads=1)
    facts = found.private_facts()
    require_release_agrees(facts, data, unit)
    unreadable = {"fractions": 1, "large": 1, "objects": 2}.get(name, 4)
    assert found.stops_a_release == (unreadable == 4 or rule == "error")
    assert "convert the column to text" in words(found)
    assert facts["privacy_unit"]["unreadable"] == unreadable
    assert bool(facts["privacy_unit"]["types"]) is (unreadable == 4)
    of_rule = unreadable + 1 if rule == "error" else 0  # and the one that is missing
    assert facts["rows_with_a_cell_at_which_a_release_stops"] == (4 if unreadable == 4 else of_rule)
    assert facts["rows_kept"] == (3 - unreadable if unreadable < 4 and rule == "drop" else 4)
    assert facts["columns"]["age"]["empty"] == 0  # others are looked at all the same


def test_bytes_of_a_file_that_are_no_text_name_nobody(tmp_path: Path) -> None:
    (tmp_path / "t.csv").write_bytes(b"age,ward,person_id\n1,a,x\n2,a,\xff\n3,b,x\n")
    unit = dpm.PrivacyUnit("person_id", 5)
    facts = facts_of(tmp_path / "t.csv", unit)
    require_release_agrees(facts, tmp_path / "t.csv", unit)
    assert facts["privacy_unit"]["unreadable"] == 1
    assert facts["privacy_unit"]["rows"] == 2


# ---------------------------------------------------------------- words that stand for nothing in text files


HOSPITAL = "age;ward;person_id\n1;a;x\n2;a;k.A.\n3;b;k.A.\n4;b;NA\n5;b;x\n6;a;7.0\n7;a;7\n"


@pytest.mark.parametrize(("nulls", "nobodys", "units"), [((), 1, 3), (("k.A.",), 3, 2), (("k.A.", "7"), 4, 2)])
def test_words_that_stand_for_nothing_name_nobody(
    nulls: tuple[str, ...], nobodys: int, units: int, tmp_path: Path
) -> None:
    """A cell is compared with them as it stands, before whole floats are integers."""
    (tmp_path / "t.csv").write_text(HOSPITAL)
    written = dpm.TextFormat(delimiter=";", nulls=nulls)
    for missing in ("drop", "error"):
        unit = dpm.PrivacyUnit("person_id", 1, missing)  # type: ignore[arg-type]
        facts = facts_of(tmp_path / "t.csv", unit, text_format=written)
        assert facts["privacy_unit"]["rows_without_a_unit"] == nobodys
        assert facts["privacy_unit"]["units"] == units
        require_release_agrees(facts, tmp_path / "t.csv", unit, text_format=written)
    dropping = dpm.PrivacyUnit("person_id", 1, "drop")
    rows = Rows.of(tmp_path / "t.csv", SCHEMA, privacy_unit=dropping, text_format=written)
    assert rows.bounded(KEY).count() == units  # one row of each


# ---------------------------------------------------------------- words


def table_of(persons: list[Any]) -> pa.Table:
    return pa.table({"age": [5.0] * len(persons), "ward": ["a"] * len(persons), "person_id": persons})


@pytest.mark.parametrize(
    ("persons", "k", "missing", "said"),
    [
        ([1] * 6 + [2, 3], 5, "error", "6 of 8 rows (75.0%) are of a person_id with more than 5 rows: 1 row does not"),
        ([1] * 6 + [2, 3], 1, "error", "6 of 8 rows (75.0%) are of a person_id with more than 1 row: 5 rows do not"),
        ([1, 1, None, 2], 5, "drop", "1 of 4 rows (25.0%) have no person_id, belong to no unit and are dropped"),
        ([1, 1, None, 2], 5, "error", "1 of 4 rows (25.0%) have no person_id, and the privacy unit's rule is missing"),
        ([1, 2, 3], 5, "error", "No two rows have the same person_id: does it identify people, or"),
        ([1, 1, 1], 5, "error", "All rows have the same person_id"),
        ([1, 1, 2], 5, "error", "person_id has 2 values in rows that no rule drops; 0 of them with more than 5 rows"),
        (
            [1.5, 1.0],
            5,
            "error",
            "1 of 2 cells of person_id (50.0%) are not valid identifiers; valid identifiers are integers",
        ),
        ([True, False], 5, "error", "person_id, which identifies privacy units, has type bool in the table"),
    ],
)
def test_each_finding_in_words(persons: list[Any], k: int, missing: MissingUnit, said: str) -> None:
    unit = dpm.PrivacyUnit("person_id", k, missing)
    found = dpm.preflight(table_of(persons), SCHEMA, privacy_unit=unit, threads=1)
    assert said in words(found)
    assert "most rows are" not in words(found)  # as was asked for
    assert "How many rows of a person_id count is also such a bound." in words(found)
    assert repr(found) == "Preflight(<private>: call .show())"


def test_a_table_without_rows_is_as_good_as_any() -> None:
    empty = visits().slice(0, 0)
    facts = facts_of(empty, dpm.PrivacyUnit("person_id", 5))
    assert facts["privacy_unit"]["units"] == 0
    assert facts["rows_kept"] == 0


def test_without_a_unit_a_column_that_may_name_people_and_repeats_is_named() -> None:
    found = dpm.preflight(visits(), SCHEMA, threads=1)
    facts = found.private_facts()
    assert facts["privacy_unit"] is None
    name, n_units, n_rows = facts["repeated_identifier"]
    counted = dpm.preflight(
        visits(), SCHEMA, privacy_unit=dpm.PrivacyUnit("person_id", 1, "drop"), threads=1
    ).private_facts()
    assert (name, n_units, n_rows) == ("person_id", counted["privacy_unit"]["units"], counted["privacy_unit"]["rows"])
    assert "--privacy-unit person_id" in words(found)
    numbered = visits().set_column(2, "person_id", pa.array(range(3_000)))
    assert dpm.preflight(numbered, SCHEMA, threads=1).private_facts()["repeated_identifier"] is None


@pytest.mark.parametrize(
    ("data", "unit", "kind", "code"),
    [
        (visits(), "person_id", TypeError, "must be"),
        (visits(), dpm.PrivacyUnit("age", 5), ValueError, "is in the schema, so it would be a feature of the release"),
        (visits(), dpm.PrivacyUnit("patient", 5), ValueError, "rename the column in the table or, if every file has"),
        (
            np.zeros((3, 2)),
            dpm.PrivacyUnit("person_id", 5),
            TypeError,
            "in addition to the schema's: pass a pandas, Polars or Arrow",
        ),
    ],
)
def test_a_unit_that_a_release_refuses_is_refused(data: Any, unit: Any, kind: type[Exception], code: str) -> None:
    with refused(code, kind):
        dpm.preflight(data, SCHEMA, privacy_unit=unit)


def test_progress_is_a_fraction() -> None:
    told: list[float | None] = []
    dpm.preflight(visits(), SCHEMA, privacy_unit=dpm.PrivacyUnit("person_id", 5, "drop"), progress=told.append)
    assert told[-1] == 1.0
    assert len(told) == 300  # three passes


def test_the_command_counts_units(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any) -> None:
    monkeypatch.chdir(tmp_path)
    pq.write_table(visits(), "visits.parquet")
    SCHEMA.save("visits.yaml")
    common = ["preflight", "visits.parquet", "--schema", "visits.yaml", "--privacy-unit", "person_id"]
    assert main([*common, "--max-rows-per-unit", "5", "--missing-unit", "drop"]) == 0
    out = capsys.readouterr().out
    assert all(line.startswith(MARK) for line in out.splitlines())
    assert "are of a person_id with more than 5 rows" in " ".join(out.replace(MARK, " ").split())
    assert main([*common, "--max-rows-per-unit", "5"]) == 1  # rows without a person
    assert "have no person_id, and the privacy unit's rule is" in " ".join(
        capsys.readouterr().out.replace(MARK, " ").split()
    )
    assert main(common) != 0
    assert "state the contribution bound" in " ".join(capsys.readouterr().err.replace("│", " ").split())
