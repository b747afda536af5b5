"""Queries on databases: types, passes over one state, the curator's promise, and no password anywhere."""

from __future__ import annotations

import datetime as dt
import logging
import pickle
import sqlite3
import traceback
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.audit.verification import checks
from dpmoments.base.errors import InputValueError
from dpmoments.rows.rows import Rows
from support.databases import PASSWORD, on_postgres, postgres_table, postgres_url, sqlite_file
from support.said import refused

SCHEMA = dpm.Schema(dpm.Numeric("age", 0, 100, missing="drop"))
PEOPLE = [{"age": float(age)} for age in range(20, 80)]


def people(tmp_path: Path) -> str:
    return sqlite_file(tmp_path / "t.db", PEOPLE)


@pytest.mark.long
def test_types_of_postgresql_are_those_of_the_columns() -> None:
    on_postgres(
        """DO $$ BEGIN CREATE TYPE mood AS ENUM ('low', 'high'); EXCEPTION WHEN duplicate_object THEN NULL; END $$"""
    )
    cells = """VALUES (1.25::numeric, 'a'::char(3), 'low'::mood, 350.5::money, '2020-01-02'::date,
            '2020-01-02 12:00+02'::timestamptz, true, 0.5::float4),
        ('NaN', 'b', 'high', NULL, 'infinity', '-infinity', NULL, 'NaN'),
        ('-Infinity', 'c', NULL, 3::money, NULL, 'infinity', false, '-Infinity'),
        (1e300, NULL, 'high', 3::money, '-infinity', NULL, false, 2)"""
    query = f"SELECT * FROM ({cells}) AS v(exact, padded, mood, cost, day, seen, member, ratio)"
    schema = dpm.Schema(
        dpm.Numeric("exact", 0, 2, missing="center"),
        dpm.Categorical("padded", ["a", "b"], missing="zero", other="zero"),
        dpm.Categorical("mood", ["low", "high"], missing="zero"),
        dpm.Numeric("cost", 0, 1000, missing="center"),
        dpm.Date("day", "2020-01-01", "2020-12-31", missing="center"),
        dpm.Date("seen", "2020-01-01", "2020-12-31", missing="center"),
        dpm.Boolean("member", missing="center"),
        dpm.Numeric("ratio", 0, 4, missing="center"),
    )
    noon = dt.datetime(2020, 1, 2, 10)
    plain = pa.table(
        {
            "exact": [1.25, None, None, 1e300],
            "padded": ["a", "b", "c", None],
            "mood": ["low", "high", None, "high"],
            "cost": [350.5, None, 3, 3],
            "day": pa.array([dt.date(2020, 1, 2), None, None, None], pa.date32()),
            "seen": pa.array([noon, None, None, None], pa.timestamp("us")),
            "member": [True, None, False, False],
            "ratio": [0.5, None, None, 2],
        }
    )
    asked_for = dpm.DatabaseQuery(postgres_url(), query)
    assert Rows.of(asked_for, schema).moments() == Rows.of(plain, schema).moments()
    kinds = [line.split()[1] for line in str(dpm.Schema.draft(asked_for)).splitlines() if line.startswith("    kind:")]
    assert kinds == ["numeric", "categorical", "categorical", "numeric", "date", "date", "boolean", "numeric"]


@pytest.mark.long
def test_a_decimal_is_the_nearest_float() -> None:
    digits = ["0.1", "123456789.123456789012345678901", "1e-400", "9" * 400, "4.35"]
    rows = ", ".join(f"('{text}'::numeric)" for text in digits)
    session = dpm.DatabaseQuery(postgres_url(), f"SELECT * FROM (VALUES {rows}) AS v(x)").opened()
    read = [value for batch in session.batches(["x"], 2) for value in batch["x"].to_pylist()]
    assert read == [float(text) for text in digits]
    assert read[4] == float(Decimal("4.35"))


def test_a_cell_of_sqlite_has_its_own_type(tmp_path: Path) -> None:
    cells = [1.5, "2", b"3", None, 40, "x", 2**62]
    url = sqlite_file(tmp_path / "t.db", [{"age": cell} for cell in cells])
    objects = np.array(cells, dtype=object)[:, None]
    query = dpm.DatabaseQuery(url, "SELECT age FROM people UNION ALL SELECT CAST(x'ff31' AS TEXT)")
    assert Rows.of(query, SCHEMA).moments() == Rows.of(objects, SCHEMA).moments()


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
def test_all_passes_read_one_state(kind: str, tmp_path: Path) -> None:
    if kind == "sqlite":
        path = tmp_path / "t.db"
        query = dpm.DatabaseQuery(sqlite_file(path, PEOPLE), "SELECT age FROM people")
        writer = sqlite3.connect(path)
        writer.execute("PRAGMA journal_mode = WAL")
        add = lambda: (writer.execute("INSERT INTO people VALUES (50)"), writer.commit())  # noqa: E731
    else:
        name = postgres_table(pa.Table.from_pylist(PEOPLE))
        query = dpm.DatabaseQuery(postgres_url(), f"SELECT age FROM {name}")
        add = lambda: on_postgres(f"INSERT INTO {name} VALUES (50)")  # noqa: E731
    rows = Rows.of(query, SCHEMA)
    first = rows.moments()
    add()
    assert rows.moments() == first
    assert Rows.of(query, SCHEMA).moments().count == first.count + 1
    if kind == "sqlite":
        writer.close()


def test_rows_that_differ_between_passes_are_refused(tmp_path: Path) -> None:
    query = dpm.DatabaseQuery(people(tmp_path), "SELECT age FROM people ORDER BY random() LIMIT 9")
    rows = Rows.of(query, SCHEMA)
    rows.moments()
    with refused("returned different rows in this pass than in the one"):
        rows.moments()


def test_rows_are_read_in_batches(tmp_path: Path) -> None:
    generated = "WITH RECURSIVE n(age) AS (SELECT 1 UNION ALL SELECT age + 1 FROM n WHERE age < 1000) SELECT age FROM n"
    session = dpm.DatabaseQuery(people(tmp_path), generated).opened()
    assert [len(batch["age"]) for batch in session.batches(["age"], 300)] == [300, 300, 300, 100]
    session = dpm.DatabaseQuery(postgres_url(), "SELECT generate_series(1, 1000) AS age").opened()
    assert max(len(batch["age"]) for batch in session.batches(["age"], 300)) == 300


@pytest.mark.long
def test_a_query_changes_nothing(tmp_path: Path) -> None:
    url = people(tmp_path)
    with refused("); the database's own message may quote a password"):
        dpm.DatabaseQuery(url, "DELETE FROM people RETURNING age").opened()
    name = postgres_table(pa.Table.from_pylist(PEOPLE))
    for query in (
        f"DELETE FROM {name} RETURNING age",
        f"WITH gone AS (DELETE FROM {name} RETURNING age) SELECT * FROM gone",
    ):
        with refused("); the database's own message may quote a password"):
            dpm.DatabaseQuery(postgres_url(), query).opened()
    assert Rows.of(dpm.DatabaseQuery(postgres_url(), f"TABLE {name}"), SCHEMA).moments().count == len(PEOPLE)


CLAUSES = {
    "SELECT age FROM people -- JOIN": (),
    "SELECT 'LIMIT 1', \"JOIN\" FROM people /* DISTINCT */": (),
    "SELECT DISTINCT age FROM people": ("DISTINCT",),
    "SELECT a.age FROM a, b": ("several tables",),
    "SELECT a.age FROM a LEFT JOIN b USING (id)": ("JOIN",),
    "SELECT avg(age) AS age FROM people GROUP BY region": ("aggregates", "GROUP BY"),
    "SELECT age - avg(age) OVER () AS age FROM people": ("aggregates", "OVER"),
    "SELECT age FROM people ORDER BY age LIMIT 9": ("LIMIT", "ORDER BY"),
    "SELECT age FROM people WHERE age > (SELECT 3)": ("subquery",),
    "SELECT age FROM a UNION SELECT age FROM b": ("subquery", "UNION"),
}


@pytest.mark.parametrize("query", CLAUSES)
def test_clauses_that_connect_rows_are_found(query: str) -> None:
    assert dpm.DatabaseQuery("sqlite:///t.db", query).clauses == CLAUSES[query]


def test_the_promise_is_a_rule_of_every_release(tmp_path: Path) -> None:
    schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Boolean("old"))
    secret = "SELECT age, age > 50 AS old FROM people WHERE age <> 23.75 ORDER BY age"
    query = dpm.DatabaseQuery(people(tmp_path), secret)
    made: list[Any] = [
        dpm.release(query, schema, epsilon=1.0, insecure_seed=0),
        dpm.release_mean(query, schema, epsilon=1.0, insecure_seed=0),
        dpm.release_counts(query, schema, by=["old"], epsilon=1.0, insecure_seed=0),
        *dpm.release_groups(query, schema, by="old", epsilon=1.0, insecure_seed=0).values(),
    ]
    for number, released in enumerate(made):
        said = [rule for rule in released.privacy.rules if rule.code == "rows-of-query"]
        assert [rule.facts["clauses"] for rule in said] == [("ORDER BY",)]
        released.save(tmp_path / f"{number}.json")
        assert dpm.load(tmp_path / f"{number}.json").origin == released.origin
        assert "23.75" not in (tmp_path / f"{number}.json").read_text()
        assert all(check.passed is not False for check in checks(released))
    assert not [
        rule for rule in dpm.release(PEOPLE_FRAME, SCHEMA, epsilon=1.0).privacy.rules if rule.code == "rows-of-query"
    ]


PEOPLE_FRAME = pa.Table.from_pylist(PEOPLE)


@pytest.mark.parametrize(
    ("change", "cause"),
    [
        (("/postgres", "/nowhere"), "no such database or user"),
        (("ada:", "eve:"), "the server refused user or password"),
        (("p%20ss", "%zz%20ss"), ""),
        (("@127.0.0.1", "@nowhere.invalid"), "no such host"),
    ],
)
def test_no_password_is_shown(change: tuple[str, str], cause: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    url = postgres_url().replace(*change)
    query = dpm.DatabaseQuery(url, "SELECT 1 AS age")
    with pytest.raises(InputValueError) as stopped:
        dpm.release(query, SCHEMA, epsilon=1.0)
    told = "".join(traceback.format_exception(stopped.value)) + caplog.text + repr(query) + str(query)
    assert cause in told
    assert not [part for part in (*PASSWORD.split("/"), url, url.split("@")[0][-12:]) if part in told]


@pytest.mark.long
def test_no_password_is_in_a_release(tmp_path: Path) -> None:
    ledger = dpm.Ledger(tmp_path / "budget.db")
    ledger.grant("people", epsilon=2.0)
    query = dpm.DatabaseQuery(postgres_url(), f"SELECT age FROM {postgres_table(PEOPLE_FRAME)}")
    dpm.release(query, SCHEMA, epsilon=1.0, ledger=ledger, dataset="people", output=tmp_path / "r.json")
    with refused("rename the column in the table or, if every file has"):
        dpm.release(query, dpm.Schema(dpm.Numeric("pay", 0, 1)), epsilon=1.0)
    for path in tmp_path.iterdir():
        assert not [part for part in PASSWORD.split("/") if part.encode() in path.read_bytes()]


@pytest.mark.parametrize("url", ["mysql://ada:geheim@host/x", "people.db", "sqlite://people.db", ""])
def test_another_database_is_refused(url: str) -> None:
    with refused("a database's URL begins with sqlite:/// or postgresql://") as stopped:
        dpm.DatabaseQuery(url, "SELECT 1")
    assert "geheim" not in str(stopped.value)


@pytest.mark.long
def test_causes_are_told(tmp_path: Path) -> None:
    url = people(tmp_path)
    (tmp_path / "no.db").write_text("not a database, and long enough to be read as one" * 30)
    causes = {
        "no such table": (url, "SELECT age FROM persons"),
        "no such column": (url, "SELECT agee FROM people"),
        "a syntax error": (url, "SELECT age FRO people"),
        "no such file": (f"sqlite:///{tmp_path}/absent.db", "SELECT 1"),
        "not an SQLite database": (f"sqlite:///{tmp_path}/no.db", "SELECT 1 AS x"),
    }
    for cause, (where, query) in causes.items():
        with refused("); the database's own message may quote a password", cause=cause, database="SQLite"):
            dpm.DatabaseQuery(where, query).opened()
    for cause, query in (
        ("no such table", "SELECT 1 FROM nope"),
        ("no such column", "SELECT nope"),
        ("a syntax error", "SELEC"),
    ):
        with refused("); the database's own message may quote a password", cause=cause, database="PostgreSQL"):
            dpm.DatabaseQuery(postgres_url(), query).opened()
    assert pickle.loads(pickle.dumps(dpm.DatabaseQuery(url, "SELECT 1"))).url == url
