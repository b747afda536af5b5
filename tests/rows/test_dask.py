"""Tables of Dask give the bits of a local pass: however they are cut, whoever reads them, and whatever becomes of the workers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from decimal import Decimal
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.fs
import pyarrow.orc
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm
from dpmoments.base.errors import InputError
from dpmoments.cli import main
from dpmoments.rows.histogram import RowCount
from dpmoments.rows.rows import Rows
from dpmoments.rows.sources.dask import DaskSource, open_dask
from dpmoments.rows.sources.engine import JobOutcome, PartitionJob, PassProgress, Seal, summarized
from dpmoments.rows.sources.opening import open_source
from dpmoments.rows.sources.source import Reading
from support.said import Said, refused
from support.table_forms import EXPECTED, N_ROWS, REGIONS, SCHEMA, TABLE, csv_text, decimals, make_table
from support.watched_files import WatchedFile, leaks, watched

dask = pytest.importorskip("dask", reason="Dask is not installed: pip install 'dpmoments[dask]'")
dd = pytest.importorskip("dask.dataframe", reason="Dask is not installed: pip install 'dpmoments[dask]'")
da = pytest.importorskip("dask.array", reason="Dask is not installed: pip install 'dpmoments[dask]'")

pytestmark = [
    pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::DeprecationWarning"),
    pytest.mark.long(sets=None),
]
FRAME = TABLE.to_pandas().convert_dtypes()  # Dask makes text of objects, true and false among them
NUMBERS = dpm.Schema(dpm.Numeric("x", 0, 1), dpm.Numeric("y", 0, 1))


def cut(frame: pd.DataFrame, places: list[int]) -> Any:
    """A Dask frame of these pieces, empty ones among them."""
    edges = [0, *places, len(frame)]
    with dask.config.set({"dataframe.convert-string": False}):
        pieces = [dd.from_pandas(frame.iloc[start:stop], npartitions=1) for start, stop in pairwise(edges)]
        return dd.concat(pieces)


def of_other_types_here_and_there(part: pd.DataFrame) -> pd.DataFrame:
    return part.astype({"code": "float32", "visits": "int8"}) if len(part) and part.index[0] == 0 else part


FORMS: dict[str, Any] = {
    "empty partitions": lambda: cut(FRAME, [0, 0, 3, 3, 300, 400, 400]),
    "categories": lambda: dd.from_pandas(FRAME.astype({"region": "category", "code": "category"}), npartitions=3),
    "objects": lambda: cut(FRAME.astype(object), [111]),
    "decimals": lambda: cut(FRAME.assign(price=pd.Series(decimals(), dtype=object)), [50, 60]),
    "filtered": lambda: dd.from_pandas(
        pd.concat([FRAME, FRAME.assign(unread="other")], ignore_index=True), npartitions=5
    ).query("unread != 'other'"),
    "shuffled": lambda: dd.from_pandas(FRAME, npartitions=4).shuffle("unread", npartitions=3),
    "of other types here and there": lambda: dd.from_pandas(FRAME, npartitions=4).map_partitions(
        of_other_types_here_and_there, meta=FRAME.iloc[:0]
    ),
}


@pytest.mark.long(sets=3)
@pytest.mark.parametrize("form", FORMS)
def test_every_form_gives_the_same_bits(form: str) -> None:
    rows = Rows.of(FORMS[form](), SCHEMA, neighbors="replace_one")
    assert rows.moments() == EXPECTED
    assert rows.moments() == EXPECTED  # and again
    assert (rows.count(), rows.table_size()) == (EXPECTED.count, N_ROWS)


@pytest.mark.parametrize("kind", ["parquet", "csv", "glob"])
def test_files_are_read_by_the_workers(kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmoments.rows.sources.arrow._MIN_ROWS_PER_PIECE", 100)
    for number, start in enumerate(range(0, N_ROWS, 200)):
        part = TABLE.slice(start, 200)
        if kind == "parquet":
            pq.write_table(part, tmp_path / f"{number}.parquet", row_group_size=30)
        else:
            (tmp_path / f"{number}.csv").write_bytes(csv_text(part))
    path = tmp_path / "*.csv" if kind == "glob" else tmp_path
    rows = Rows.of(dpm.EngineFiles(path, "dask"), SCHEMA, neighbors="replace_one")
    assert isinstance(rows.source, DaskSource)
    assert len(rows.source.pieces) == (4 if kind == "parquet" else 2)  # type: ignore[attr-defined]
    assert (rows.moments(), rows.table_size()) == (EXPECTED, N_ROWS)


def test_frames_of_files_give_the_bits_of_their_rows(tmp_path: Path) -> None:
    for number, start in enumerate(range(0, N_ROWS, 150)):
        pq.write_table(TABLE.slice(start, 150), tmp_path / f"{number}.parquet")
    frame = dd.read_parquet(tmp_path)
    some = Rows.of(TABLE.slice(150, 150), SCHEMA).moments()
    older = Rows.of(TABLE.filter(pc.greater(TABLE["age"], 40.0)), SCHEMA).moments()
    frames: dict[str, tuple[Any, Any]] = {
        "all": (frame, EXPECTED),
        "columns": (frame[list(SCHEMA.names)], EXPECTED),
        "groups": (dd.read_parquet(tmp_path, split_row_groups=True), EXPECTED),
        "filter": (frame[~(frame.age <= 40.0) & (frame.age > 0)], older),
        "filters": (dd.read_parquet(tmp_path, filters=[("age", ">", 40.0)]), older),
        "partition": (frame.partitions[1], some),
        "repartitioned": (frame.repartition(npartitions=2), EXPECTED),
        "partitions pushed into the reader": (frame.partitions[[1]].optimize(fuse=False), some),
        "options of the dataset": (dd.read_parquet(tmp_path, dataset={"partitioning": None}), EXPECTED),
    }
    for name, (data, expected) in frames.items():
        assert Rows.of(data, SCHEMA).moments() == expected, name


@pytest.mark.parametrize("order", [(2, 5), (5, 2)])
def test_of_two_failures_that_of_the_lower_partition_is_told(order: tuple[int, int]) -> None:
    count = RowCount("drop", keep_dropped=True)
    job = PartitionJob(Reading(SCHEMA, True), partial(summarized, count), count.merge, 0, fingerprinted=False)
    first, second = (JobOutcome(frozenset({n}), None, failure=InputError(f"of {n}")) for n in order)
    found = job.merged([first, second]).failure
    assert found is not None
    assert str(found) == "of 2"


ARRAY = np.random.default_rng(3).normal(0, 0.5, (300, 3))


@pytest.mark.parametrize("dtype", ["float64", "float32", "object"])
@pytest.mark.parametrize("chunks", [(37, 2), ((0, 1, 99, 0, 200), 1)])
def test_arrays_of_any_chunks_give_the_same_bits(chunks: Any, dtype: str) -> None:
    table = ARRAY.astype(dtype)
    for schema in (dpm.Schema.unit_ball(3), dpm.Schema(*(dpm.Numeric(name, -1, 1) for name in "abc"))):
        local, rows = Rows.of(table, schema), Rows.of(da.from_array(table, chunks=chunks), schema)
        assert rows.moments() == local.moments()
        assert (rows.count(), rows.source.missing, rows.source.n_rows) == (300, local.source.missing, 300)
    unknown = da.from_array(table, chunks=chunks)
    unknown = unknown[da.from_array(np.arange(300) >= 10, chunks=50)]
    assert Rows.of(unknown, schema, neighbors="replace_one").table_size() == 290
    assert Rows.of(unknown, schema).moments() == Rows.of(table[10:], schema).moments()


def test_units_groups_and_preflight_are_as_in_a_local_pass() -> None:
    rng = np.random.default_rng(0)
    table = make_table(400, 8).append_column("person", pa.array([f"p{i}" for i in rng.zipf(1.4, 400) % 100]))
    frame = dd.from_pandas(table.to_pandas().convert_dtypes().sample(frac=1, random_state=2), npartitions=3)
    unit = dpm.PrivacyUnit("person", max_rows=3)
    options: dict[str, Any] = dict(epsilon=1.0, privacy_unit=unit, insecure_seed=3)
    released, expected = (dpm.release(data, SCHEMA, **options) for data in (frame, table))
    assert released.noisy_gram.tobytes() == expected.noisy_gram.tobytes()
    of_groups = dpm.Schema(
        dpm.Numeric("visits", -5, 5), dpm.Categorical("region", REGIONS[:4], missing="drop", other="drop")
    )
    groups, wanted = (
        dpm.release_groups(data, of_groups, by="region", epsilon=1.0, insecure_seed=3) for data in (frame, table)
    )
    for one, other in zip(groups.releases, wanted.releases, strict=True):
        assert one.noisy_gram.tobytes() == other.noisy_gram.tobytes()
    found, facts = (dpm.preflight(data, SCHEMA).private_facts() for data in (frame, table))
    for column in (*found["columns"].values(), *facts["columns"].values()):
        column.pop("types", None)
    assert found == facts


def test_preflight_of_files_finds_lines_that_are_ragged(tmp_path: Path) -> None:
    for number in range(3):
        (tmp_path / f"{number}.csv").write_text("x,y\n0.5,0.5\n1,2,3\n5,0.1\n")
    facts = [dpm.preflight(data, NUMBERS).private_facts() for data in (tmp_path, dpm.EngineFiles(tmp_path, "dask"))]
    assert facts[0] == facts[1]
    assert facts[0]["columns"]["x"]["above"] == 3


# Types that were declared -----------------------------------------------------------------------------------------------------

CODES = dpm.Schema(dpm.Categorical("code", ["007", "7", "abc"], missing="drop", other="drop"))


def in_files(folder: Path, cells: list[list[str]]) -> Path:
    """A folder with one CSV file for each list of cells."""
    folder.mkdir()
    for number, column in enumerate(cells):
        (folder / f"{number}.csv").write_text("code\n" + "".join(f"{cell}\n" for cell in column))
    return folder


def hive(folder: Path, keys: list[str]) -> Path:
    for key in keys:
        (folder / f"region={key}").mkdir(parents=True)
        pq.write_table(pa.table({"code": ["007"]}), folder / f"region={key}" / "part.parquet")
    return folder


ONE_CODE = pd.DataFrame({"code": ["007", "7"]})
GUESSED: dict[str, Any] = {
    "read_csv": lambda folder: dd.read_csv(in_files(folder, [["007"], ["7"]]) / "*.csv"),
    "read_fwf": lambda folder: dd.read_fwf(in_files(folder, [["007"], ["7"]]) / "*.csv"),
    "from_delayed": lambda _: dd.from_delayed([dask.delayed(ONE_CODE)]),
    "from_dask_array, persisted by Dask": lambda _: dd.from_dask_array(da.ones((4, 1)), columns=["code"]),
    "one of several": lambda folder: dd.concat(
        [dd.from_pandas(ONE_CODE, npartitions=1), dd.read_csv(in_files(folder, [["007"]]) / "*.csv")]
    ),
    "behind a plan that was optimized": lambda folder: (
        dd.read_csv(in_files(folder, [["007"]]) / "*.csv").assign(z=1).optimize(fuse=True)
    ),
    "a column of another frame": lambda folder: dd.from_pandas(ONE_CODE, npartitions=1).assign(
        z=dd.read_csv(in_files(folder, [["007"]]) / "*.csv", dtype=str).code
    ),
    "a delayed argument": lambda _: dd.from_pandas(ONE_CODE, npartitions=1).map_partitions(
        lambda part, _other: part, dask.delayed(ONE_CODE), meta=ONE_CODE
    ),
}


class OnDisk:
    """Something that slices like an array, and is none."""

    def __init__(self, held: Any) -> None:
        self.held = held
        self.shape, self.dtype, self.ndim = held.shape, held.dtype, held.ndim

    def __getitem__(self, rows: Any) -> Any:
        return self.held[rows]

    def __len__(self) -> int:
        return len(self.held)


@pytest.mark.parametrize("form", GUESSED)
def test_a_frame_whose_types_were_not_declared_is_refused(form: str, tmp_path: Path) -> None:
    frame = GUESSED[form](tmp_path / "t")
    for data in (frame, frame[["code"]]):
        with refused("the Dask frame reads", TypeError):
            Rows.of(data, CODES)


def test_frames_whose_types_are_declared_are_accepted(tmp_path: Path) -> None:
    cells = ["007", "7", "7", "abc", "other"]
    table = pd.DataFrame({"code": cells})
    expected = Rows.of(table, CODES).moments()
    table.to_orc(tmp_path / "t.orc")
    table.to_parquet(tmp_path / "t.parquet")
    array = np.array(cells, dtype=object)[:, None]
    plain = dd.from_pandas(table, npartitions=2)
    frames = {
        "pandas": plain,
        "dict": dd.from_dict({"code": cells}, npartitions=2),
        "orc": dd.read_orc(str(tmp_path / "t.orc")),
        "parquet": dd.read_parquet(tmp_path / "t.parquet"),
        "parquet of Arrow": dd.read_parquet(str(tmp_path / "t.parquet"), filesystem=pa.fs.LocalFileSystem()),
        "array": dd.from_array(array, columns=["code"]),
        "steps": plain.assign(z=1).map_partitions(lambda part: part),
        "optimized": dd.read_parquet(tmp_path / "t.parquet").assign(z=1).optimize(fuse=True),
        "several": dd.concat([plain.partitions[0], plain.partitions[1]]),
        "repartitioned": plain.repartition(npartitions=1),
    }
    for name, frame in frames.items():
        assert Rows.of(frame, CODES).moments() == expected, name


def test_keys_in_the_names_of_folders_are_refused_unless_they_are_text(tmp_path: Path) -> None:
    folder = hive(tmp_path / "t", ["007", "8"])
    levels = dpm.Schema(dpm.Categorical("region", ["007", "8"]))
    numbers = dpm.Schema(dpm.Numeric("region", 0, 10))
    for filesystem in ("fsspec", pa.fs.LocalFileSystem()):
        frame = dd.read_parquet(str(folder), filesystem=filesystem)
        for data in (frame, frame.assign(z=1), frame.rename(columns={"code": "z"})):
            with refused("from the names of folders, whose type", TypeError, column="region"):
                Rows.of(data, levels)
        with refused("from the names of folders, whose type", TypeError, column="region"):
            Rows.of(frame[frame.region == 8], CODES)
        unit = dpm.PrivacyUnit("region", max_rows=1)
        with refused("from the names of folders, whose type", TypeError, column="region"):
            Rows.of(frame, CODES, privacy_unit=unit)
        assert Rows.of(frame, CODES).count() == 2  # it is not read
        assert Rows.of(frame, numbers).count() == 2  # a number is the same of whatever type it is
    with refused("from the names of folders, whose type", TypeError, column="region"):
        Rows.of(dd.read_parquet(str(folder), filters=[("region", "==", 8)]), CODES)
    text = ds.partitioning(pa.schema([("region", pa.string())]), flavor="hive")
    declared = dd.read_parquet(str(folder), dataset={"partitioning": text})
    assert Rows.of(declared, levels).moments() == Rows.of(pd.DataFrame({"region": ["007", "8"]}), levels).moments()


LONG = 2**60 + 1
"""Beyond 53 bits: pandas makes floating-point numbers of a partition's integers where one is lacking, and rounds them."""


@pytest.mark.parametrize("kind", [pa.int64(), pa.uint64()], ids=str)
def test_an_empty_cell_never_merges_two_long_numbers(kind: Any, tmp_path: Path) -> None:
    """Levels or ids: of every plan of a Parquet or ORC file the reader that rounds is refused."""
    cells = {
        "long": pa.array([LONG - 1, LONG, None, 7], kind),
        "x": [7, 8, 9, 3],
        "keep": [True] * 4,
        "name": list("abca"),
    }
    table = pa.table(cells)
    pq.write_table(table, tmp_path / "t.parquet")
    read = dd.read_parquet(tmp_path / "t.parquet")
    frames = [
        *(read, read[read.keep], dd.read_parquet(str(tmp_path / "t.parquet"), filesystem="arrow")),
        *(
            read.rename(columns={"x": "z", "keep": "x"}),
            read.rename(columns={"long": "id"}).rename(columns={"id": "long"}),
        ),
    ]
    if kind == pa.int64():
        pyarrow.orc.write_table(table.drop_columns("keep"), str(tmp_path / "t.orc"))
        of_orc = dd.read_orc(str(tmp_path / "t.orc"))
        frames += [of_orc, of_orc[of_orc.x > 0]]
    numbers = dpm.Schema(dpm.Numeric("x", 0, 10))
    of_text = dpm.PrivacyUnit("name", max_rows=1)
    assert Rows.of(frames[-1], numbers).count() == 4
    assert Rows.of(frames[1], numbers, privacy_unit=of_text).bounded((1, 2)).count() == 3
    levels = dpm.Schema(dpm.Categorical("long", [str(LONG - 1), str(LONG)], missing="zero", other="zero"))
    unit = dpm.PrivacyUnit("long", max_rows=1, missing="drop")
    for frame in frames:
        for schema, options in ((levels, {}), (numbers, {"privacy_unit": unit})):
            with refused("levels or ids from 64-bit integers, which pandas rounds", TypeError):
                Rows.of(frame, schema, **options)
    short = dpm.Schema(dpm.Categorical("long", ["7", "8"], missing="zero", other="zero"))
    assert Rows.of(read[read.keep], short).moments() == Rows.of(table, short).moments()
    for backend in ("numpy_nullable", "pyarrow"):
        nullable = dd.read_parquet(tmp_path / "t.parquet", dtype_backend=backend)
        kept = nullable[nullable.keep]
        assert Rows.of(kept, levels).moments() == Rows.of(table, levels).moments()
        assert Rows.of(kept, numbers, privacy_unit=unit).bounded((1, 2)).count() == 3


def test_short_ids_beside_an_empty_cell_are_read(tmp_path: Path) -> None:
    short = pa.table({"person": pa.array([None, 1, 2, 3], pa.int32()), "x": [7] * 4, "keep": [True] * 4})
    pq.write_table(short, tmp_path / "t.parquet")
    read = dd.read_parquet(tmp_path / "t.parquet")
    unit = dpm.PrivacyUnit("person", max_rows=1, missing="drop")
    rows = Rows.of(read[read.keep], dpm.Schema(dpm.Numeric("x", 0, 10)), privacy_unit=unit)
    assert rows.bounded((1, 2)).count() == 3


ODD_CELLS = [None, True, Decimal("1.50"), b"007", "\ud800", 2**70]


@pytest.mark.long(sets=4)
@pytest.mark.parametrize("odd", ODD_CELLS, ids=[f"{number}" for number in range(len(ODD_CELLS))])
def test_an_odd_cell_in_a_column_of_objects_is_as_in_a_local_pass(odd: Any) -> None:
    """Dask's conversion of objects to text is left out: it would stop at text that is no UTF-8, and make "True" of True."""

    def outcome(data: Any) -> Any:
        try:
            return Rows.of(data, CODES).moments()
        except (ValueError, TypeError) as error:
            return type(error)

    table = pd.DataFrame({"code": pd.Series(["007", "7", odd, "abc"], dtype=object), "unread": [1, "\ud800", 2, 3]})
    frame = dd.from_pandas(table, npartitions=2)
    for data in (frame, frame[["code"]], frame[["code", "unread"]][["code"]]):
        assert outcome(data) == outcome(table)


def test_arrays_of_objects_come_from_memory() -> None:
    table = np.array([[0.5, 1.0], [0.25, None], [1.0, 0.0]], dtype=object)
    expected = Rows.of(table, NUMBERS_OR_NOTHING).moments()
    held = da.from_array(table, chunks=(2, 1))
    for array in (held, da.concatenate([held[:1], held[1:]]), held.map_blocks(lambda block: block, dtype=object)):
        assert Rows.of(array, NUMBERS_OR_NOTHING).moments() == expected
    made = da.from_delayed(dask.delayed(lambda: table)(), table.shape, object)
    read = da.from_array(OnDisk(table), chunks=(2, 2), asarray=False)
    text = da.from_delayed(dask.delayed(np.array)(dask.delayed("a path")), table.shape, object)
    for array in (made, read, text):
        with refused("the Dask array holds Python objects and is not made of a", TypeError):
            Rows.of(array, NUMBERS_OR_NOTHING)


NUMBERS_OR_NOTHING = dpm.Schema(dpm.Numeric("x", 0, 1), dpm.Numeric("y", 0, 1, missing="center"))


# What is refused, and in which words ------------------------------------------------------------------------------------------


def raises_on_a_cell(frame: pd.DataFrame) -> pd.DataFrame:
    if len(frame):
        raise ValueError(f"cannot parse {frame['unread'].iloc[0]}")
    return frame


def private_words(error: BaseException) -> str:
    """All that a traceback of an error shows."""
    words = ""
    waiting: list[BaseException | None] = [error]
    while waiting:
        one = waiting.pop()
        if one is not None:
            words += repr(one)
            waiting += [one.__cause__, None if one.__suppress_context__ else one.__context__]
    return words


def test_no_cell_is_in_any_error() -> None:
    frame = dd.from_pandas(FRAME, npartitions=3)
    with refused(
        Said("; the message is withheld, because it may quote the", kind="ValueError", where=Said(" at "))
    ) as caught:
        Rows.of(frame.map_partitions(raises_on_a_cell, meta=FRAME.iloc[:0]), SCHEMA).moments()
    assert "secret" not in private_words(caught.value)
    cells = cut(FRAME.astype(object).assign(age=[*["1"] * 399, "secret 7"]), [20])
    with refused(
        "column needs numbers: convert it, or describe it as", (ValueError, TypeError), column="age"
    ) as caught:
        Rows.of(cells, SCHEMA).moments()
    assert "secret" not in private_words(caught.value)
    strict = dpm.Schema(dpm.Numeric("age", 0, 100, missing="error"))
    with refused("has a cell that is missing, not finite or not readable, and", column="age"):
        Rows.of(frame, strict).moments()


def test_what_is_no_table_is_refused_before_it_is_read() -> None:
    frame = dd.from_pandas(FRAME, npartitions=2)
    with refused("rename the column in the table or, if every file has"):
        Rows.of(frame, dpm.Schema(dpm.Numeric("height", 0, 1)))
    with refused("pass a Dask DataFrame or a two-dimensional Dask array", TypeError):
        Rows.of(frame["age"], SCHEMA)
    with refused("an array's columns are the schema's, in order, without"):
        Rows.of(da.from_array(ARRAY, chunks=10), dpm.Schema.unit_ball(4))
    with refused("dimensions is not a table: pass shape (rows, columns)"):
        Rows.of(da.from_array(ARRAY[:, 0], chunks=10), dpm.Schema.unit_ball(1))
    with refused("in addition to the schema's: pass a Dask DataFrame, or files", TypeError, column="person"):
        Rows.of(
            da.from_array(ARRAY, chunks=10), dpm.Schema.unit_ball(3), privacy_unit=dpm.PrivacyUnit("person", max_rows=2)
        )
    nested = dd.from_pandas(
        pd.DataFrame({"age": pd.Series([[1], [2]], dtype=pd.ArrowDtype(pa.list_(pa.int64())))}), npartitions=1
    )
    with refused("column needs numbers: convert it, or describe it as", TypeError, column="age"):
        Rows.of(nested, dpm.Schema(dpm.Numeric("age", 0, 1)))


def test_partitions_that_are_not_as_declared_are_refused() -> None:
    lacking = dd.from_pandas(FRAME, npartitions=2).map_partitions(lambda part: part.drop(columns="age"), meta=FRAME)
    with refused(Said("; the message is withheld, because it may quote the", kind="ValueError")):
        Rows.of(lacking, SCHEMA).moments()
    block = da.from_delayed(dask.delayed(ARRAY.astype(np.float32)), ARRAY.shape, np.float64)
    with refused("a block of the array is not of the type that the array says", TypeError):
        Rows.of(block, dpm.Schema.unit_ball(3)).moments()


def random_rows(frame: pd.DataFrame) -> pd.DataFrame:
    return frame.assign(x=np.random.default_rng().random(len(frame)))


def test_a_frame_that_gives_other_rows_at_every_pass_is_refused() -> None:
    """Also behind a restriction and a selection."""
    plain = pd.DataFrame(
        {"x": 0.5, "y": np.linspace(0, 1, 50), "g": np.arange(50) % 2 == 0, "person": np.arange(50) % 9}
    )
    random = dd.from_pandas(plain, npartitions=3).map_partitions(random_rows, meta=plain.iloc[:0])
    array = da.from_delayed(dask.delayed(np.random.default_rng().random, pure=False)((50, 2)), (50, 2), float)
    for data, schema in ((random, NUMBERS), (array, dpm.Schema.unit_ball(2))):
        rows = Rows.of(data, schema)
        rows.moments()
        with refused("returned different rows in this pass than in the one"):
            rows.moments()
    schema = dpm.Schema(dpm.Numeric("x", 0, 1), dpm.Boolean("g"))
    with refused("returned different rows in this pass than in the one"):
        dpm.release_groups(random, schema, by="g", epsilon=1.0)
    with refused("returned different rows in this pass than in the one"):
        dpm.release(random, NUMBERS, epsilon=1.0, privacy_unit=dpm.PrivacyUnit("person", max_rows=2))


def test_a_result_that_came_back_twice_or_not_at_all_is_never_merged() -> None:
    """What no scheduler should do: each partition's number vouches for its result."""
    source = open_source(dd.from_pandas(FRAME, npartitions=3), SCHEMA, True)
    summary = RowCount(missing="drop", keep_dropped=True)
    job = PartitionJob(Reading(SCHEMA, True), partial(summarized, summary), summary.merge, 0, fingerprinted=True)
    outcomes = [job.outcome(FRAME.iloc[start : start + 100], start // 100) for start in range(0, N_ROWS, 100)]
    whole = job.merged(outcomes)
    assert (whole.result, whole.failure, whole.partitions) == (N_ROWS, None, {0, 1, 2, 3})
    assert job.merged(outcomes[::-1]).fingerprint == whole.fingerprint
    again = job.outcome(FRAME.iloc[100:200], 1)  # a task that ran twice gives the same, and is refused all the same
    assert (again.result, again.fingerprint) == (outcomes[1].result, outcomes[1].fingerprint)
    twice = job.merged([*outcomes, again])
    assert twice.failure is not None
    assert "the engine returned a partition's result twice" in str(twice.failure)

    @dataclass(frozen=True, eq=False, repr=False)
    class Losing(type(source)):  # type: ignore[misc]
        def outcome(self, job: PartitionJob, progress: PassProgress) -> Any:
            del job, progress
            return outcomes[0], 2

    losing = Losing(source.reading, source.frame)  # type: ignore[union-attr]
    with refused("the engine lost a partition's result: the sums would be"):
        Rows(SCHEMA, dpm.Neighbors.ADD_REMOVE, losing).count()


@pytest.mark.slow
def test_the_example_runs() -> None:
    script = Path(__file__).parents[2] / "examples" / "dask_job.py"
    ran = subprocess.run([sys.executable, "-W", "ignore", str(script)], capture_output=True, text=True, check=False)
    assert "the same bits as a local pass: True" in ran.stdout, ran.stderr


# Progress, interruption, lost workers -----------------------------------------------------------------------------------------


def interrupts_once(frame: pd.DataFrame, thread: int, marker: str) -> pd.DataFrame:
    """The first partition that is read stops a thread as Ctrl-C does; the others take their time."""
    with suppress(FileExistsError):
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL))
        signal.pthread_kill(thread, signal.SIGINT)
    time.sleep(0.2)
    return frame


@pytest.fixture
def pythons_own_interrupt() -> Iterator[None]:
    """Spark puts its own in place for as long as the process lives."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("pythons_own_interrupt", "threads")
def test_an_interrupted_pass_leaves_nothing_spent_and_nothing_written(tmp_path: Path) -> None:
    ledger = dpm.Ledger(tmp_path / "ledger.json")
    ledger.grant("people", epsilon=1.0, neighbors="add_remove")
    plain = pd.DataFrame({"x": np.linspace(0, 1, 40), "y": 0.5})
    stopped = threading.main_thread().ident, str(tmp_path / "marker")
    slow = dd.from_pandas(plain, npartitions=20).map_partitions(interrupts_once, *stopped, meta=plain.iloc[:0])
    output = tmp_path / "people.json"
    with pytest.raises(KeyboardInterrupt):
        dpm.release(slow, NUMBERS, epsilon=1.0, dataset="people", ledger=ledger, output=output, neighbors="add_remove")
    assert not output.exists()
    released = dpm.release(
        plain, NUMBERS, epsilon=1.0, dataset="people", ledger=ledger, output=output, neighbors="add_remove"
    )
    assert released.privacy.private


@pytest.fixture(scope="module")
def client() -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


def dies_once(frame: pd.DataFrame, marker: str) -> pd.DataFrame:
    """The worker that reads this partition first is killed while it does."""
    if len(frame) and frame["age"].iloc[0] is not None and not os.path.exists(marker):
        with open(marker, "w"):
            pass
        os.kill(os.getpid(), signal.SIGKILL)
    return frame


@pytest.mark.slow
def test_a_killed_worker_changes_no_bit(client: Any, tmp_path: Path) -> None:
    frame = dd.from_pandas(FRAME, npartitions=12)
    told: list[float | None] = []
    assert Rows.of(frame, SCHEMA).moments() == EXPECTED
    deadly = frame.map_partitions(dies_once, str(tmp_path / "marker"), meta=FRAME.iloc[:0])
    local, released = (
        dpm.release(data, SCHEMA, epsilon=1.0, insecure_seed=2, progress=told.append) for data in (TABLE, deadly)
    )
    assert (tmp_path / "marker").exists()
    assert released.noisy_gram.tobytes() == local.noisy_gram.tobytes()
    assert told[len(told) // 2 :] == told[: len(told) // 2]
    assert told[:100] == [step / 100 for step in range(1, 101)]
    require_no_future(client)


def require_no_future(client: Any) -> None:
    """What a pass leaves on a cluster; the client lets go of a future in a thread of its own."""
    until = time.monotonic() + 10
    while client.futures and time.monotonic() < until:
        time.sleep(0.05)
    assert client.futures == {}


def dies(frame: pd.DataFrame) -> pd.DataFrame:
    if len(frame):
        os.kill(os.getpid(), signal.SIGKILL)
    return frame


@pytest.mark.slow
def test_a_cluster_whose_workers_all_die_spends_nothing(client: Any, tmp_path: Path) -> None:
    ledger = dpm.Ledger(tmp_path / "ledger.json")
    ledger.grant("people", epsilon=1.0, neighbors="add_remove")
    frame = dd.from_pandas(FRAME, npartitions=3).map_partitions(dies, meta=FRAME.iloc[:0])
    options: dict[str, Any] = dict(epsilon=1.0, dataset="people", ledger=ledger, neighbors="add_remove")
    with refused(" cannot be read: ", table="the Dask frame", reason=Said(" (", kind="KilledWorker")):
        dpm.release(frame, SCHEMA, **options)
    assert dpm.release(TABLE, SCHEMA, **options).privacy.private
    require_no_future(client)


# What workers write to their disks ---------------------------------------------------------------------------------------------

SPILLING: dict[str, Any] = {
    "distributed.worker.memory.target": 1e-7,
    "distributed.worker.memory.spill": 1e-7,
    "distributed.worker.memory.pause": False,
    "distributed.worker.memory.terminate": False,
    "distributed.worker.memory.spill-compression": False,
}
"""Every result of a task is written to the disk at once."""
NEVER_SPILLING = {**SPILLING, "distributed.worker.memory.target": False, "distributed.worker.memory.spill": False}


@pytest.fixture
def threads() -> Iterator[None]:
    """Dask's threads run tasks, also while a client of another test is open."""
    with dask.config.set(scheduler="threads"):
        yield


@contextmanager
def spilling_cluster(folder: Path, settings: dict[str, Any]) -> Iterator[Any]:
    distributed = pytest.importorskip("distributed")
    options: dict[str, Any] = dict(n_workers=2, threads_per_worker=1, memory_limit="2GB", dashboard_address=":0")
    with (
        dask.config.set(settings),
        distributed.LocalCluster(local_directory=str(folder), **options) as cluster,
        distributed.Client(cluster) as found,
    ):
        yield found


@dataclass(frozen=True)
class Marked:
    """A table whose cells are recognized wherever they are."""

    table: pd.DataFrame

    @classmethod
    def of(cls, n_rows: int) -> Marked:
        rng = np.random.default_rng(11)
        people = [f"person-{number:06d}-ångström" for number in rng.permutation(n_rows // 2).repeat(2)]
        table = {
            "x": rng.random(n_rows),
            "y": rng.integers(2**40, 2**41, n_rows),
            "level": [f"level-{number % 3}-of-the-secret" for number in range(n_rows)],
            "person": people,
        }
        return cls(pd.DataFrame(table))

    @property
    def schema(self) -> dpm.Schema:
        levels = [f"level-{number}-of-the-secret" for number in range(3)]
        return dpm.Schema(dpm.Numeric("x", 0, 1), dpm.Numeric("y", 2**40, 2**41), dpm.Categorical("level", levels))

    def secrets(self) -> list[str | float]:
        """Ids and cells, not the levels, which the schema names; exact sums of the whole table and of halves of it."""
        half = len(self.table) // 2
        parts = (self.table, self.table.iloc[:half], self.table.iloc[half:])
        sums = {cell for part in parts for cell in Rows.of(part, self.schema).moments().gram.ravel().tolist()}
        cells = [cell for name in ("person", "x", "y") for cell in self.table[name].tolist()]
        return [*cells, *(one for one in sums if abs(one) >= 2**30)]


def spilled(files: list[WatchedFile]) -> list[Path]:
    return [file.path for file in files if file.path.parent.name == "storage" and file.contents]


def watched_passes(
    marked: Marked, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> tuple[list[WatchedFile], list[bytes]]:
    """What is on the disk while workers that keep nothing in memory run all kinds of passes; and the keys."""
    keys: list[bytes] = []

    def seal() -> Seal:
        keys.append(os.urandom(32))
        return Seal(keys[-1])

    monkeypatch.setattr("dpmoments.rows.sources.dask.Seal", seal)
    for name in ("files", "scratch", "temporary", "current"):
        (folder / name).mkdir()
    monkeypatch.setenv("TMPDIR", str(folder / "temporary"))
    monkeypatch.setattr("tempfile.tempdir", None)
    monkeypatch.chdir(folder / "current")
    table, schema = marked.table, marked.schema
    for number in range(10):
        table.iloc[number::10].to_parquet(folder / "files" / f"{number}.parquet")
    expected = Rows.of(table, schema).moments()
    unit = dpm.PrivacyUnit("person", max_rows=1)
    options: dict[str, Any] = dict(epsilon=1.0, privacy_unit=unit, insecure_seed=3)
    folders = [folder / name for name in ("scratch", "temporary", "current")]
    with watched(*folders) as files_seen, spilling_cluster(folder / "scratch", SPILLING):
        frame = dd.from_pandas(table, npartitions=10)
        files = dd.read_parquet(folder / "files")
        for data in (frame, files, files[files.x >= 0], dpm.EngineFiles(folder / "files", "dask")):
            assert Rows.of(data, schema).moments() == expected
        array = da.from_array(table[["x", "y"]].to_numpy(float), chunks=(97, 1))
        assert Rows.of(array, dpm.Schema(*schema.columns[:2])).count() == len(table)
        few = frame.repartition(npartitions=3)
        released, local = (dpm.release(data, schema, **options) for data in (few, table))
        assert released.noisy_gram.tobytes() == local.noisy_gram.tobytes()
    return files_seen, keys


@pytest.mark.slow
def test_nothing_that_workers_write_to_a_disk_shows_a_row_or_a_sum(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    marked = Marked.of(1000)
    seen, keys = watched_passes(marked, tmp_path, monkeypatch)
    assert len(spilled(seen)) >= 50
    assert len(keys) >= 6
    assert leaks(seen, marked.secrets()) == []
    assert not any(key in file.contents for key in keys for file in seen)


@pytest.mark.usefixtures("threads")
def test_no_task_needs_another_that_holds_rows(tmp_path: Path) -> None:
    """Seen on the graphs: what ours need is the sealed job, and nothing of the table's."""
    table = Marked.of(100).table
    table.to_parquet(tmp_path / "t.parquet")
    frame, read = dd.from_pandas(table, npartitions=4), dd.read_parquet(tmp_path / "t.parquet")
    schema = Marked.of(100).schema
    whole = {
        "pandas": frame,
        "filter": frame[frame.x > 0.5],
        "columns": frame.assign(z=frame.x * 2)[["x", "y", "z", "level"]],
        "function": frame.map_partitions(lambda part: part),
        "some": frame.partitions[[0, 2]],
        "several": dd.concat([frame, read]),
        "fewer partitions": frame.repartition(npartitions=2),
        "files after a filter": read[read.x > 0.5],
    }
    for name, data in whole.items():
        cut = open_dask(data, Reading(schema, True)).cut()
        assert (len(cut.stored), sum(len(task.dependencies) for task in cut.partitions)) == (0, 0), name
    stored = {
        "more partitions": frame[frame.x >= 0].repartition(npartitions=9),
        "twice": dd.concat([frame[frame.x > 0]] * 2),
        "mean": frame.assign(x=frame.x - frame.x.mean()),
        "shuffle": frame.shuffle("level"),
    }
    for name, data in stored.items():
        assert open_dask(data, Reading(schema, True)).cut().stored, name
    array = da.from_array(table[["x", "y"]].to_numpy(float), chunks=(33, 1))
    numbers = dpm.Schema(*schema.columns[:2])
    assert not open_dask(array, Reading(numbers, True)).cut().stored
    assert open_dask((array * 1.0).rechunk((10, 1)), Reading(numbers, True)).cut().stored


STORING: dict[str, Any] = {
    "shuffle": lambda frame: frame.shuffle("level"),
    "set_index": lambda frame: frame.set_index("x", drop=False, divisions=[0.0, 0.5, 1.0]),
    "merge": lambda frame: frame.merge(frame[["x"]], on="x"),
    "mean": lambda frame: frame.assign(x=frame.x - frame.x.mean()),
    "grouped": lambda frame: frame.groupby("person").first().reset_index(),
    "more partitions": lambda frame: frame[frame.x >= 0].repartition(npartitions=9),
    "twice": lambda frame: dd.concat([frame[frame.x > 0]] * 2),
}


def test_plans_that_store_rows_are_refused_on_a_cluster_that_may_spill(tmp_path: Path) -> None:
    marked = Marked.of(200)
    frame = dd.from_pandas(marked.table, npartitions=4)
    array = da.from_array(marked.table[["x", "y"]].to_numpy(float), chunks=(33, 1))
    numbers = dpm.Schema(*marked.schema.columns[:2])
    with spilling_cluster(tmp_path / "spills", SPILLING) as client:
        with watched(tmp_path / "spills") as seen:
            for step in STORING.values():
                with refused("so that workers keep rows between tasks and may write them", TypeError):
                    Rows.of(step(frame), marked.schema).moments()
            with refused("so that workers keep rows between tasks and may write them", TypeError):
                Rows.of((array * 1.0).rechunk((10, 1)), numbers).moments()
        assert spilled(seen) == []
        kept = array.persist()
        client.gather(client.futures_of(kept))
        with refused("the Dask array is kept on a cluster, whose workers may", TypeError):
            Rows.of(kept, numbers).moments()
        del kept


@pytest.mark.slow
def test_plans_that_store_rows_are_read_on_a_cluster_that_never_spills(tmp_path: Path) -> None:
    marked = Marked.of(200)
    frame = dd.from_pandas(marked.table, npartitions=4)
    array = da.from_array(marked.table[["x", "y"]].to_numpy(float), chunks=(33, 1))
    numbers = dpm.Schema(*marked.schema.columns[:2])
    with dask.config.set(scheduler="threads"):
        expected = {name: Rows.of(step(frame), marked.schema).moments() for name, step in STORING.items()}
        counted = Rows.of((array * 1.0).rechunk((10, 1)), numbers).moments()
    with spilling_cluster(tmp_path, NEVER_SPILLING):
        for name, step in STORING.items():
            assert Rows.of(step(frame), marked.schema).moments() == expected[name], name
        assert Rows.of((array * 1.0).rechunk((10, 1)), numbers).moments() == counted
        with refused("has a P2PShuffle, which writes rows to a disk", TypeError):
            Rows.of(frame.shuffle("level", shuffle_method="p2p"), marked.schema).moments()


@pytest.mark.usefixtures("threads")
def test_shuffles_by_way_of_a_disk_are_refused_wherever_they_run() -> None:
    marked = Marked.of(200)
    frame = dd.from_pandas(marked.table, npartitions=4)
    with refused("has a DiskShuffle, which writes rows to a disk", TypeError):
        Rows.of(frame.shuffle("level", shuffle_method="disk"), marked.schema).moments()
    assert Rows.of(frame.shuffle("level"), marked.schema).moments() == Rows.of(marked.table, marked.schema).moments()


@pytest.mark.slow
def test_no_log_of_a_worker_quotes_a_cell(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """An error of reading is caught within our task: Dask would log it, and what it was called with."""
    marked = Marked.of(20)
    frame = dd.from_pandas(marked.table, npartitions=2).map_partitions(fails_with_an_id, meta=marked.table.iloc[:0])
    with spilling_cluster(tmp_path, SPILLING), refused("; the message is withheld, because it may quote the"):
        Rows.of(frame, marked.schema).moments()
    assert "person-" not in "".join(capfd.readouterr())


def fails_with_an_id(part: pd.DataFrame) -> pd.DataFrame:
    raise ValueError(f"cannot read {part['person'].iloc[0] if len(part) else ''}")


# Other ways to run -----------------------------------------------------------------------------------------------------------


def test_the_command_line_reads_files_with_an_engine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pq.write_table(TABLE, tmp_path / "t.parquet")
    SCHEMA.save(tmp_path / "t.yaml")
    common = [str(tmp_path / "t.parquet"), "--schema", str(tmp_path / "t.yaml")]
    spend = [*common, "--neighbors", "add_remove", "--rho", "0.5", "--insecure-seed", "3", "--output"]
    for command, released in (("release", "noisy_gram"), ("release-mean", "noisy_mean")):
        for engine in ([], ["--engine", "dask"], ["--engine", "local"]):
            assert main([command, *spend, str(tmp_path / f"{command}{len(engine) and engine[1]}.json"), *engine]) == 0
        first, second, third = (dpm.load(tmp_path / f"{command}{name}.json") for name in ("0", "dask", "local"))
        assert np.array_equal(getattr(first, released), getattr(second, released))
        assert np.array_equal(getattr(first, released), getattr(third, released))
    capsys.readouterr()
    shown = []
    for engine in ([], ["--engine", "dask"]):
        main(["preflight", *common, *engine])
        shown.append(capsys.readouterr().out)
    assert shown[0] == shown[1]
    assert main([*["release", *spend], str(tmp_path / "x.json"), "--engine", "ray"]) == 2


def test_an_engine_that_is_not_installed_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dpmoments.rows.sources.engine.find_spec", lambda _: None)
    pq.write_table(TABLE, tmp_path / "t.parquet")
    for engine in ("dask", "spark"):
        with refused("is not installed here: pip install 'dpmoments[", ModuleNotFoundError):
            Rows.of(dpm.EngineFiles(tmp_path / "t.parquet", engine), SCHEMA)
    with refused("unknown engine 'ray': use one of dask, spark"):
        dpm.EngineFiles(tmp_path, "ray")
