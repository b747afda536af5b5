"""Which rows of a unit count: against a slow reference, in every order and source, with ties, collisions and rows of nobody."""

from __future__ import annotations

import pickle
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats

import dpmoments as dpm
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.rows import units
from dpmoments.rows.rows import Rows
from dpmoments.rows.summary import Summary
from dpmoments.rows.units import selection_of_units
from dpmoments.schema.cell_reading import unit_ids
from support.said import Said, refused

KEY = (0x0123456789ABCDEF, 0xFEDCBA9876543210)
SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100, missing="drop"), dpm.Categorical("region", ["north", "south"], missing="drop")
)
WORD = 2**64 - 1
ODD = 0x9E3779B97F4A7C15


def people(n_rows: int = 900, n_people: int = 150, seed: int = 3) -> pa.Table:
    """Persons of one row and of a hundred, equal rows and dropped ones among them, in no order."""
    rng = np.random.default_rng(seed)
    person = np.minimum(rng.zipf(1.4, n_rows), n_people)
    ages = np.where(rng.random(n_rows) < 0.5, rng.integers(0, 4, n_rows), rng.uniform(0.0, 110.0, n_rows))
    return pa.table(
        {
            "age": pa.array(ages, mask=rng.random(n_rows) < 0.05),
            "person_id": pa.array(person, pa.int64()),
            "region": pa.array(rng.choice(["north", "south", "nowhere"], n_rows, p=[0.5, 0.4, 0.1])),
        }
    )


TABLE = people()


def bounded(data: Any, k: int = 3, schema: dpm.Schema = SCHEMA, key: tuple[int, int] = KEY, **options: Any) -> Rows:
    threads = options.pop("threads", 1)
    unit = dpm.PrivacyUnit("person_id", k, **options)
    return Rows.of(data, schema, privacy_unit=unit, threads=threads).bounded(key)


def counted(rows: Rows) -> Counter[tuple[float, ...]]:
    """The multiset of encoded rows that count."""
    assert rows.selection is not None
    source: Any = rows.source
    blocks = [*(rows.selection.kept(source.encode_units(part)) for part in source.parts()), rows.selection.repeated]
    return Counter(tuple(row) for block in blocks for row in block.tolist())


def encoded(data: Any, schema: dpm.Schema = SCHEMA) -> np.ndarray:
    return np.concatenate(list(Rows.of(data, schema).source.blocks()))


# The reference: plain integers, a dictionary of persons ------------------------------------------------------------------


def mixed(value: int) -> int:
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & WORD
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & WORD
    return value ^ (value >> 31)


def unit_hash(name: bytes, key: int) -> int:
    value = mixed(len(name) ^ key)
    for start in range(0, len(name), 8):
        value = mixed(value ^ int.from_bytes(name[start : start + 8], "little"))
    return value


def row_hash(row: tuple[float, ...], of_unit: int, key: int) -> int:
    value = mixed(of_unit ^ key)
    for cell in row:
        value = ((value ^ int(np.float64(cell + 0.0).view(np.uint64))) * ODD) & WORD
        value ^= value >> 32
    return mixed(value) >> 32


def kept_rows(
    candidates: list[tuple[float, ...]], name: bytes, k: int, key: tuple[int, int] = KEY
) -> Counter[tuple[float, ...]]:
    """Of one person's candidates, in any order."""
    if len(candidates) <= k:
        return Counter(candidates)
    of_unit = unit_hash(name, key[0])
    hashes = {row: row_hash(row, of_unit, key[1]) for row in candidates}
    if len(set(hashes.values())) == len(candidates):
        return Counter(sorted(candidates, key=hashes.__getitem__)[:k])
    ranked = []
    for row, copies in Counter(candidates).items():
        ranked += [
            (mixed(((hashes[row] << 32) + ODD * copy) & WORD) >> 32, hashes[row], copy, row) for copy in range(copies)
        ]
    return Counter(row for *_, row in sorted(ranked)[:k])


def reference(table: pa.Table, k: int) -> Counter[tuple[float, ...]]:
    candidates: dict[str, list[tuple[float, ...]]] = {}
    for person, row in zip(table["person_id"].to_pylist(), encoded(table).tolist(), strict=True):
        if not any(np.isnan(row)):
            candidates.setdefault(str(person), []).append(tuple(row))
    total: Counter[tuple[float, ...]] = Counter()
    for person, rows in candidates.items():
        total += kept_rows(rows, person.encode(), k)
    return total


@pytest.mark.parametrize("k", [1, 3, 20, 10_000])
def test_as_many_rows_of_each_person_count_as_a_plain_reference_counts(k: int) -> None:
    rows = bounded(TABLE, k)
    assert counted(rows) == reference(TABLE, k)
    whole = encoded(TABLE)
    of_person = Counter(np.array(TABLE["person_id"])[np.isfinite(whole).all(axis=1)].tolist())
    assert rows.count() == rows.moments().count == sum(min(k, n) for n in of_person.values())


def test_every_question_is_of_the_rows_that_count() -> None:
    rows = bounded(TABLE, 2)
    kept = np.array([row for row, n in reference(TABLE, 2).items() for _ in range(n)])
    moments = rows.moments()
    assert np.allclose(moments.gram * moments.scale**2, kept.T @ kept, atol=1e-3)
    histogram = rows.histogram(_first_cell, [-2.0, 0.0, 2.0])
    assert histogram.counts.tolist() == [np.sum(kept[:, 0] < 0.0), np.sum(kept[:, 0] >= 0.0)]
    assert np.array_equal(rows.in_unit_ball().moments().gram, rows.moments().gram)


def _first_cell(rows: np.ndarray) -> np.ndarray:
    return rows[:, 0].copy()


# One selection, however the table comes ----------------------------------------------------------------------------------


def in_order(order: np.ndarray) -> pa.Table:
    return TABLE.take(pa.array(order))


TEXTS = TABLE.set_column(1, "person_id", TABLE["person_id"].cast(pa.string()))


def parquet_parts(folder: Path) -> Path:
    """The rows of a person are in several files, in one of them as text."""
    for index, start in enumerate(range(0, 900, 250)):
        pq.write_table(
            (TEXTS if index == 2 else TABLE).slice(start, 250), folder / f"{index}.parquet", row_group_size=37
        )
    return folder


def csv_parts(folder: Path) -> Path:
    """As pandas writes them: floats for persons in one file, since one is missing there."""
    frame = TABLE.to_pandas()
    frame[:500].to_csv(folder / "a.csv", index=False)
    frame[500:].astype({"person_id": float}).to_csv(folder / "b.csv", index=False)
    return folder


FORMS: dict[str, Callable[[Path], Any]] = {
    "shuffled": lambda _: in_order(np.random.default_rng(8).permutation(len(TABLE))),
    "chunks": lambda _: pa.concat_tables([TABLE.slice(0, 1), TABLE.slice(1, 0), TABLE.slice(1, 77), TABLE.slice(78)]),
    "text": lambda _: TEXTS.to_pandas(),
    "lazy": lambda _: pl.from_arrow(TABLE).lazy(),
    "parquet": parquet_parts,
    "csv": csv_parts,
}


@pytest.mark.parametrize("form", FORMS)
def test_no_order_source_partition_or_thread_changes_a_bit(tmp_path: Path, form: str) -> None:
    expected = bounded(TABLE).moments()
    found = bounded(FORMS[form](tmp_path), threads=3).moments()
    assert np.array_equal(found.gram, expected.gram)
    assert np.array_equal(found.sum, expected.sum)
    assert (found.count, found.clipped) == (expected.count, expected.clipped)


def test_neither_does_what_fits_into_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    expected = counted(bounded(TABLE))
    passes = []
    monkeypatch.setattr(units, "_COLLECTED_BYTES", 2_000)
    original = units._ranked
    monkeypatch.setattr(units, "_ranked", lambda *given: passes.append(1) or original(*given))
    assert counted(bounded(TABLE)) == expected
    assert len(passes) > 3
    monkeypatch.setattr(units, "_BUCKET_BITS", 1)
    assert counted(bounded(TABLE)) == expected


def sent(thing: Any) -> Any:
    return pickle.loads(pickle.dumps(thing))


@dataclass
class Cluster:
    """An engine that sends summaries to where the partitions are, and what they come to back, in any order."""

    order: tuple[int, ...]

    def summarize(self, summary: Summary[Any, Any], *, threads: int | None = None, on_block: Any = None) -> Any:
        del threads, on_block
        parts = [TABLE.slice(0, 300), TABLE.slice(300, 0), TABLE.slice(300, 1), TABLE.slice(301)]
        unit = dpm.PrivacyUnit("person_id", 3)
        results = [
            sent(Rows.of(parts[place], SCHEMA, privacy_unit=unit).source.summarize(sent(summary), threads=1))
            for place in self.order
        ]
        return reduce(summary.merge, results, summary.finish(summary.start()))


def test_a_cluster_finds_the_same() -> None:
    """Both rounds travel, and so does what they find: the next passes are made where the partitions are."""
    expected = bounded(TABLE)
    cluster = Cluster((3, 1, 0, 2))
    found = sent(selection_of_units(cluster, dpm.PrivacyUnit("person_id", 3), SCHEMA.n_features, KEY))
    assert counted(replace(expected, selection=found)) == counted(expected)


def test_another_key_makes_another_selection() -> None:
    assert counted(bounded(TABLE)) != counted(bounded(TABLE, key=(KEY[0], KEY[1] + 1)))


def test_a_person_leaves_the_rows_of_all_others_as_they_were() -> None:
    """What group privacy rests on: two tables that differ by a unit differ by its own rows that count."""
    whole, person = counted(bounded(TABLE)), np.array(TABLE["person_id"])
    for left_out in (1, 2, 3, 150):
        without = counted(bounded(TABLE.filter(pa.array(person != left_out))))
        own = counted(bounded(TABLE.filter(pa.array(person == left_out))))
        assert without + own == whole
        assert sum(own.values()) <= 3


# Ties and collisions -------------------------------------------------------------------------------------------------------


def one_person(rows: list[float], person: str = "a") -> pa.Table:
    return pa.table({"age": rows, "region": ["north"] * len(rows), "person_id": [person] * len(rows)})


@pytest.mark.parametrize("k", [1, 7])
def test_of_equal_rows_exactly_as_many_count(k: int) -> None:
    assert bounded(one_person([40.0] * 50), k).count() == k
    assert bounded(one_person([40.0] * 5 + [50.0] * 5), k).count() == k


@pytest.mark.parametrize("k", [1, 3])
@pytest.mark.parametrize(("of", "distinct"), [("_row_hashes", 3), ("_copy_hashes", 2)])
def test_colliding_hashes_change_which_rows_count_and_not_how_many(
    monkeypatch: pytest.MonkeyPatch, of: str, distinct: int, k: int
) -> None:
    own = getattr(units, of)
    monkeypatch.setattr(units, of, lambda *given: own(*given) % np.uint64(distinct))
    expected = counted(bounded(TABLE, k))
    assert sum(expected.values()) == sum(reference(TABLE, k).values())
    for seed in range(2):
        assert counted(bounded(in_order(np.random.default_rng(seed).permutation(len(TABLE))), k)) == expected


def test_colliding_hashes_of_units_make_no_two_people_one(monkeypatch: pytest.MonkeyPatch) -> None:
    own = units.unit_hashes
    monkeypatch.setattr(units, "unit_hashes", lambda *given: own(*given) % np.uint64(2))
    assert sum(counted(bounded(TABLE)).values()) == sum(reference(TABLE, 3).values())
    rows = bounded(TABLE)
    assert rows.selection is not None
    assert len(set(rows.selection.of_units.tolist())) == 2 < len(rows.selection.ids)


def test_every_copy_of_a_row_is_as_likely_as_any_other_row() -> None:
    """A person's 9 equal rows and 1 other: 9 times in 10 one of the 9 counts. By content alone it would be every other time."""
    n = 3000
    table = pa.table(
        {"age": [10.0] * 9 * n + [90.0] * n, "region": ["north"] * 10 * n, "person_id": np.tile(np.arange(n), 10)}
    )
    kept = counted(bounded(table, 1))
    assert sum(kept.values()) == n
    common = max(kept.values())
    assert stats.binomtest(common, n, 0.9).pvalue > 1e-3
    assert stats.binomtest(n // 2, n, 0.9).pvalue < 1e-9


def test_distinct_rows_are_taken_alike_and_not_the_same_in_all_units() -> None:
    n, m = 2000, 6
    table = pa.table(
        {"age": np.repeat(np.arange(m) * 10.0, n), "region": ["south"] * n * m, "person_id": np.tile(np.arange(n), m)}
    )
    kept = counted(bounded(table, 2))
    assert stats.chisquare(list(kept.values())).pvalue > 1e-3
    assert len(kept) == m


# Units ---------------------------------------------------------------------------------------------------------------------

SAME = uuid.UUID(int=5)
ODD_TEXTS = ["7.0\n", "\n7.0", "-7.0", "-0.0", "-0", "a\n7.0"]
ODD_UNITS = [b"7.0\n", b"\n7.0", b"-7", b"0", b"-0", b"a\n7.0"]
IDS: dict[str, tuple[Any, list[bytes | None]]] = {
    "integers": (pa.array([7, -3, None]), [b"7", b"-3", None]),
    "wide integers": (pa.array([2**64 - 1], pa.uint64()), [b"18446744073709551615"]),
    "whole floats": (pa.array([7.0, None, float("nan"), -0.0]), [b"7", None, None, b"0"]),
    "text": (pa.array(["a", "", " a", "7.0", "7.00", "nan", None]), [b"a", None, b" a", b"7", b"7.00", None, None]),
    "whole floats as text": (pa.array(ODD_TEXTS), ODD_UNITS),
    "whole floats as objects of text": (np.array(ODD_TEXTS, dtype=object), ODD_UNITS),
    "objects of floats": (np.array([-0.0, 7.0], dtype=object), [b"0", b"7"]),
    "views": (pa.array(["a", "", None], pa.string_view()), [b"a", None, None]),
    "bytes": (pa.array([b"\x00a", b"", None]), [b"\x00a", None, None]),
    "fixed bytes": (pa.array([SAME.bytes, None], pa.binary(16)), [SAME.bytes, None]),
    "dictionary": (pa.array(["a", "", "a", None]).dictionary_encode(), [b"a", None, b"a", None]),
    "a null in a dictionary": (pa.DictionaryArray.from_arrays(pa.array([0, 1, None]), pa.array(["p", None])), [b"p", None, None]),
    "nulls": (pa.nulls(2), [None, None]),
    "no chunks": (pa.chunked_array([], pa.string()), []),
    "chunks": (pa.chunked_array([[1], [2, 1]]), [b"1", b"2", b"1"]),
    "objects": (
        np.array([7, 7.0, "7", "7.0", b"x", SAME, None, float("nan"), "", pd.NA, np.int8(4)], dtype=object),
        [b"7", b"7", b"7", b"7", b"x", SAME.bytes, None, None, None, None, b"4"],
    ),
    # A cell that two people may share names nobody.
    "fractions": (pa.array([4711.5, float("inf")]), [None, None]),
    "large floats": (pa.array([2.0**53]), [None]),
    "large single floats": (pa.array([2.0**24], pa.float32()), [None]),
    "large half floats": (pa.array(np.array([2.0**11], np.float16)), [None]),
    "objects that name nobody": (np.array([4711.5, True, (4711, 1), None], dtype=object), [None] * 4),
}  # fmt: skip


@pytest.mark.parametrize("name", list(IDS))
def test_a_unit_is_named_alike_however_its_column_is_held(name: str) -> None:
    cells, expected = IDS[name]
    found = unit_ids(cells, "person_id")
    assert found.type == pa.large_binary()
    assert found.to_pylist() == expected


@pytest.mark.parametrize("cells", [pa.array([True, False]), pa.array([4711], pa.date32()), pa.array([[4711]])])
def test_a_type_that_cannot_name_a_person_is_refused_and_not_shown(cells: Any) -> None:
    with refused("identifies privacy units and holds", TypeError, column="person_id") as caught:
        unit_ids(cells, "person_id")
    assert "4711" not in str(caught.value)


def test_names_of_any_length_are_hashed_by_all_their_bytes() -> None:
    names = [b"", b"\0", b"\0\0", b"a" * 8, b"a" * 9, b"a" * 8 + b"\0", b"a" * 100, b"a" * 99 + b"b"]
    ids = pa.array([b"skipped", *names], pa.large_binary()).slice(1)
    assert units.unit_hashes(ids, 9).tolist() == [unit_hash(name, 9) for name in names]
    assert len({unit_hash(name, 9) for name in names}) == len(names)


def test_a_row_without_a_unit_is_an_error_or_left_out() -> None:
    person = [*TABLE["person_id"].to_pylist()[:-2], None, None]
    table = TABLE.set_column(1, "person_id", pa.array(person))
    with refused("which identifies privacy units, or one that two units may", column="person_id"):
        bounded(table)
    assert counted(bounded(table, missing="drop")) == counted(bounded(TABLE.slice(0, len(TABLE) - 2)))
    nobody = TABLE.set_column(1, "person_id", pa.nulls(len(TABLE), pa.string()))
    assert bounded(nobody, missing="drop").count() == 0


def test_a_table_without_rows_is_as_good_as_any(tmp_path: Path) -> None:
    assert bounded(TABLE.slice(0, 0)).moments().count == 0
    pq.write_table(TABLE.slice(0, 0), tmp_path / "t.parquet")
    assert bounded(tmp_path / "t.parquet").count() == 0


def test_rows_of_units_answer_nothing_before_they_are_bounded() -> None:
    rows = Rows.of(TABLE, SCHEMA, privacy_unit=dpm.PrivacyUnit("person_id", 3))
    with refused("the rows of units are not bounded yet: call"):
        rows.count()
    with refused("rows of units cannot be divided into groups: a unit may"):
        rows.where("region", "north")
    with refused("the rows have no privacy unit: use Rows.of(..."):
        Rows.of(TABLE, SCHEMA).bounded(KEY)


def test_progress_does_not_tell_how_often_the_table_was_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def told() -> list[float | None]:
        seen: list[float | None] = []
        unit = dpm.PrivacyUnit("person_id", 3)
        dpm.release(TABLE, SCHEMA, rho=1.0, mechanism="gaussian", privacy_unit=unit, progress=seen.append)
        return seen

    passes_of_rows: list[float | None] = []
    dpm.release(TABLE, SCHEMA, rho=1.0, mechanism="gaussian", progress=passes_of_rows.append)
    usual = told()
    monkeypatch.setattr(units, "_COLLECTED_BYTES", 2_000)
    assert told() == usual
    assert len(usual) == len(passes_of_rows) + 200  # the rounds of the selection


# A table that does not stand still -------------------------------------------------------------------------------------------

MOVED = Said("the table changed between passes: rows were added, removed")
ONE_COLUMN = dpm.Schema(dpm.Numeric("x", 0, 10))
CHANGES = {
    "rows of one person more": lambda text: text + "P,10\n" * 500,
    "one row more": lambda text: text + "new,1\n",
    "a row fewer": lambda text: text.replace("Q,3\n", "", 1),
    "another cell": lambda text: text.replace("Q,3\n", "Q,4\n", 1),
    "another person": lambda text: text.replace("Q,3\n", "R,3\n", 1),
    "a cell of a person over the limit": lambda text: text.replace("over,5\n", "over,6\n", 1),
}


@pytest.mark.parametrize("after", [1, 2, 3], ids=["between the rounds", "before the first pass", "between two passes"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_table_that_changes_between_two_passes_is_refused(tmp_path: Path, change: str, after: int) -> None:
    text = "id,x\nP,10\nQ,3\n" + "".join(f"over,{x}\n" for x in range(10))
    path = tmp_path / "table.csv"
    path.write_text(text)
    passes = 0

    def on_block(_: int) -> None:
        nonlocal passes
        passes += 1
        if passes == after:
            path.write_text(CHANGES[change](text))

    rows = Rows.of(path, ONE_COLUMN, privacy_unit=dpm.PrivacyUnit("id", 1), on_block=on_block, threads=1)

    def passed_over() -> None:
        selected = rows.bounded(KEY)
        assert selected.count() == 3
        selected.moments()

    with refused(MOVED):
        passed_over()


@pytest.mark.slow
def test_a_person_over_the_limit_whose_rows_all_become_ones_that_count_is_refused() -> None:
    """As many rows as before, each with the hash of the one that counts."""
    table = one_person([float(age) for age in range(50)])
    rows = bounded(table, 1)
    (kept,) = (age for age in range(50) if counted(bounded(one_person([float(age)]), 1)) == counted(rows))
    moved = replace(bounded(one_person([float(kept)] * 50), 1), selection=rows.selection)
    with refused(MOVED):
        moved.count()


def test_rows_that_no_rule_keeps_may_come_and_go() -> None:
    rows = bounded(TABLE)
    more = pa.concat_tables(
        [TABLE, pa.table({"age": [None], "person_id": [1], "region": ["north"]}, schema=TABLE.schema)]
    )
    assert replace(bounded(more), selection=rows.selection).moments().gram.tolist() == rows.moments().gram.tolist()


def test_a_query_that_samples_anew_is_refused() -> None:
    connection = duckdb.connect()
    connection.execute(
        "CREATE TABLE t AS SELECT i // 9 AS person_id, i % 90 AS age, 'north' AS region FROM range(900) r(i)"
    )
    with refused(MOVED):
        bounded(connection.sql("SELECT * FROM t WHERE random() < 0.5")).moments()


def test_nothing_is_drawn_of_what_was_found_in_another_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[object] = []
    draw = PrivacyFilter.draw
    monkeypatch.setattr(PrivacyFilter, "draw", lambda *args: (drawn.append(args[1]), draw(*args))[1])
    path = tmp_path / "table.csv"
    path.write_text("id,x\nP,10\n")

    def bounded_in_time(*args: Any, **options: Any) -> Any:
        found = selection_of_units(*args, **options)
        path.write_text("id,x\n" + "P,10\n" * 500)
        return found

    monkeypatch.setattr("dpmoments.rows.rows.selection_of_units", bounded_in_time)
    unit = dpm.PrivacyUnit("id", 1)
    with refused(MOVED):
        dpm.release(path, ONE_COLUMN, epsilon=1.0, mechanism="laplace", privacy_unit=unit)
    assert not drawn
