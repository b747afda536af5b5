"""One table in every form it can come in gives the same bits, again and again, and is left as it was."""

from __future__ import annotations

import copy
import gzip
from collections.abc import Callable
from decimal import Decimal
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmoments as dpm
from dpmoments.rows.kernel import exact_moments
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.rows import Rows
from dpmoments.schema import Coordinate, Schema
from support.encoded_blocks import encoded_blocks
from support.examples import examples
from support.said import refused
from support.table_forms import (
    EXPECTED,
    FILES,
    FORMS,
    N_ROWS,
    REGIONS,
    SCHEMA,
    TABLE,
    csv_text,
    duckdb_connection,
    parquet,
    reference_moments,
    write,
)

pytestmark = pytest.mark.long(sets=None)


@pytest.fixture(params=[*FORMS, *FILES])
def form(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    name = request.param
    return FORMS[name]() if name in FORMS else FILES[name](tmp_path)


def test_every_form_gives_the_same_bits(form: Any) -> None:
    rows = Rows.of(form, SCHEMA, neighbors="replace_one")
    blocks = encoded_blocks(rows)
    next(blocks)[:] = 7.0  # what is handed out is no view of the table
    blocks.close()  # nor does a pass that is stopped change the next
    assert rows.moments() == EXPECTED
    assert (rows.count(), rows.table_size()) == (EXPECTED.count, N_ROWS)


def ball_table(dtype: Any = np.float64) -> np.ndarray:
    """Multiples of 1/8 with a few longer rows: exact in float16 and up."""
    rng = np.random.default_rng(1)
    return (rng.integers(-9, 9, (300, 4)) / 8).astype(dtype)


ARRAYS: dict[str, Callable[[np.ndarray], Any]] = {
    "C": np.ascontiguousarray,
    "F": np.asfortranarray,
    "strided": lambda table: np.repeat(np.repeat(table, 3, axis=0), 2, axis=1)[1::3, ::2],
    "backwards": lambda table: np.ascontiguousarray(table[::-1, ::-1])[::-1, ::-1],
    "transposed": lambda table: np.ascontiguousarray(table.T).T,
    "read-only": lambda table: np.frombuffer(table.tobytes()).reshape(table.shape),
    "float32": lambda table: table.astype(np.float32),
    "float16": lambda table: table.astype(np.float16),
    "long double": lambda table: table.astype(np.longdouble),
    "big-endian": lambda table: table.astype(">f8"),
    "object": lambda table: table.astype(object),
    "object of many types": lambda table: np.array(
        [[np.float32(a), Decimal(b), np.float64(c), float(d)] for a, b, c, d in table.tolist()], dtype=object
    ),
    "unaligned": lambda table: np.frombuffer(b"x" + table.tobytes(), offset=1).reshape(table.shape),
}
INTEGERS: dict[str, Callable[[np.ndarray], Any]] = {
    "int64": lambda table: table.astype(np.int64),
    "int8": lambda table: table.astype(np.int8),
    "int16 big-endian, F": lambda table: np.asfortranarray(table.astype(">i2")),
    "objects": lambda table: table.astype(np.int64).astype(object),
}
ARRAY_SCHEMAS: dict[str, Schema] = {
    "unit ball": Schema.unit_ball(4),
    "unbounded": Schema.unbounded(4),
    "coordinates of norm 3": Schema(*(Coordinate(name) for name in "abcd"), row_norm=3),
    "coordinates of norm 1/3": Schema(*(Coordinate(name) for name in "abcd"), row_norm=1 / 3),
    "coordinates of two rules": Schema(*(Coordinate(n, missing="drop" if n < "c" else "center") for n in "abcd"), row_norm=1),
    "bounds": Schema(*(dpm.Numeric(name, -1, 3) for name in "abcd")),
    "bounds, longer rows clipped": Schema(*(dpm.Numeric(name, -1, 3) for name in "abcd"), row_norm=0.3),
}  # fmt: skip


@pytest.mark.long(sets=8)
@pytest.mark.parametrize("schema", ARRAY_SCHEMAS.values(), ids=ARRAY_SCHEMAS)
@pytest.mark.parametrize("layout", [*ARRAYS, *INTEGERS])
def test_layouts_and_types_of_an_array(layout: str, schema: Schema) -> None:
    table = np.rint(3 * ball_table()) if layout in INTEGERS else ball_table()
    frame = pl.DataFrame({name: table[:, index] for index, name in enumerate(schema.names)})
    array = (ARRAYS | INTEGERS)[layout](table)
    before = copy.deepcopy(array)
    for center in (None, np.full(4, 0.25)):
        assert Rows.of(array, schema).moments(center=center) == Rows.of(frame, schema).moments(center=center)
    assert (array == before).all()
    assert Rows.of(array, schema).count() == 300


def test_booleans_and_levels_in_an_array() -> None:
    flags = np.random.default_rng(2).random((100, 2)) < 0.3
    schema = Schema(dpm.Boolean("a"), dpm.Boolean("b"))
    assert Rows.of(flags, schema).moments() == Rows.of(flags.astype(float), schema).moments()
    levels = Schema(dpm.Categorical("a", [0, 1]), dpm.Categorical("b", ["0", "1"]))
    expected = Rows.of(
        pl.DataFrame({"a": flags[:, 0].astype(int), "b": flags[:, 1].astype(int).astype(str)}), levels
    ).moments()
    assert Rows.of(flags.astype(np.int8), levels).moments() == expected
    assert Rows.of(flags.astype(int).astype(object), levels).moments() == expected


def test_a_float32_array_is_not_divided_in_float32() -> None:
    """Planted fault: NumPy divides float32 by a Python number in float32, and the bits are others."""
    table = np.random.default_rng(0).random((50, 3)).astype(np.float32)
    schema = Schema(*(Coordinate(name) for name in "abc"), row_norm=3)
    fine = exact_moments([table.astype(float) / 3], 3, bits=24)
    assert Rows.of(table, schema).moments(bits=24) == fine
    assert exact_moments([table / 3], 3, bits=24) != fine


def test_huge_coordinates_keep_their_rule() -> None:
    """A finite cell is never taken for a missing one, though the division by a small row norm overflows."""
    schema = Schema(Coordinate("a", missing="drop"), Coordinate("b", missing="drop"), row_norm=0.01)
    table = np.array([[1e308, 0.0], [np.inf, 0.0]])
    moments = Rows.of(table, schema, neighbors="replace_one").moments()
    assert (moments.count, moments.dropped) == (1, 0)
    assert float(moments.gram[0, 0]) * moments.scale**2 == pytest.approx(1.0, abs=1e-5)


@st.composite
def small_tables(draw: st.DrawFn) -> pa.Table:
    n_rows = draw(st.integers(0, 25))

    def column(cells: st.SearchStrategy[Any], kind: pa.DataType) -> pa.Array:
        return pa.array(draw(st.lists(st.none() | cells, min_size=n_rows, max_size=n_rows)), kind)

    return pa.table(
        {
            "age": column(st.floats() | st.floats(0, 100), pa.float64()),
            "visits": column(st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5), pa.int64()).fill_null(0),
            "price": column(st.floats(-1, 30), pa.float64()),
            "member": column(st.booleans(), pa.bool_()),
            "region": column(st.sampled_from(REGIONS) | st.text(st.characters(codec="utf-8"), max_size=3), pa.string()),
            "code": column(st.sampled_from([1, 2, 30]) | st.integers(-(2**63), 2**63 - 1), pa.int64()),
        }
    )


@settings(max_examples=examples(40), deadline=None)
@given(table=small_tables(), group=st.integers(1, 9), data=st.data())
def test_any_order_and_partition_of_any_table_and_its_files(
    table: pa.Table, group: int, data: st.DataObject, tmp_path_factory: pytest.TempPathFactory
) -> None:
    expected = reference_moments(table)
    shuffled = table.take(pa.array(data.draw(st.permutations(range(len(table)))), pa.int64()))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=4)))
    pieces = [shuffled.slice(a, b - a) for a, b in zip([0, *cuts], [*cuts, len(table)], strict=True)]
    parts = [Rows.of(piece, SCHEMA, neighbors="replace_one").moments() for piece in pieces]
    assert reduce(ExactMoments.merge, parts) == expected
    folder = tmp_path_factory.mktemp("files")
    quote = data.draw(st.sampled_from(["needed", "all_valid"]))
    forms = (
        pa.concat_tables(pieces),
        shuffled.to_pandas(types_mapper=pd.ArrowDtype),
        pl.from_arrow(shuffled),
        parquet(folder / "t.parquet", shuffled, row_group_size=group),
        write(folder / "t.csv", csv_text(shuffled, quote=quote)),
        duckdb_connection().from_arrow(shuffled),
    )
    for form in forms:
        assert Rows.of(form, SCHEMA, neighbors="replace_one").moments() == expected


@pytest.mark.slow
@pytest.mark.parametrize("batch", [7, 100_000])
def test_block_sizes_do_not_matter(batch: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("dpmoments.rows.sources.arrow._ROWS_PER_BATCH", batch)
    monkeypatch.setattr("dpmoments.rows.sources.text._CSV_BLOCK_BYTES", 300 if batch < 100_000 else 4 << 20)
    monkeypatch.setattr("dpmoments.rows.level_sums._MAX_ROWS_PER_BLOCK", batch)
    monkeypatch.setattr("dpmoments.rows.sources.memory._RAW_ROWS_PER_BLOCK", batch)
    for data in (parquet(tmp_path / "t.parquet", row_group_size=50), write(tmp_path / "t.csv", csv_text(TABLE)), TABLE):
        rows = Rows.of(data, SCHEMA, neighbors="replace_one")
        assert rows.moments() == EXPECTED
        assert max(map(len, encoded_blocks(rows))) <= batch
    table = ball_table()
    assert Rows.of(table, Schema.unit_ball(4)).moments() == exact_moments([table], 4)


EMPTY: dict[str, Callable[[Path], Any]] = {
    "arrow": lambda _: TABLE.slice(0, 0),
    "arrow no chunks": lambda _: pa.table({name: pa.chunked_array([], TABLE[name].type) for name in SCHEMA.names}),
    "pandas": lambda _: TABLE.slice(0, 0).to_pandas(),
    "polars": lambda _: pl.from_arrow(TABLE.slice(0, 0)),
    "lazy": lambda _: pl.from_arrow(TABLE).lazy().filter(pl.lit(False)),
    "parquet": lambda tmp: parquet(tmp / "t.parquet", TABLE.slice(0, 0)),
    "csv": lambda tmp: write(tmp / "t.csv", csv_text(TABLE.slice(0, 0))),
    "csv one open line": lambda tmp: write(tmp / "t.csv", csv_text(TABLE.slice(0, 0)).rstrip(b"\n")),
    "csv gz one open line": lambda tmp: write(
        tmp / "t.csv.gz", gzip.compress(csv_text(TABLE.slice(0, 0)).rstrip(b"\n"))
    ),
    "duckdb": lambda _: duckdb_connection().from_arrow(TABLE).filter("false"),
}


@pytest.mark.parametrize("name", EMPTY)
def test_an_empty_table_is_a_table_where_n_is_private(name: str, tmp_path: Path) -> None:
    empty = EMPTY[name](tmp_path)
    assert Rows.of(empty, SCHEMA, neighbors="replace_one").moments() == exact_moments([], SCHEMA.n_features)
    assert np.isfinite(dpm.release(empty, SCHEMA, epsilon=1.0, insecure_seed=0).gram).all()
    with refused("the table has no rows: under replace_one there is nothing"):
        dpm.release(empty, SCHEMA, epsilon=1.0, neighbors="replace_one")


def test_which_files_a_folder_means(tmp_path: Path) -> None:
    with refused("' holds no .parquet, .feather, .arrow, .csv, .tsv,", FileNotFoundError):
        Rows.of(tmp_path, SCHEMA, neighbors="replace_one")
    with refused("the path is empty: name a file, a glob or a folder", FileNotFoundError):
        Rows.of("", SCHEMA, neighbors="replace_one")
    with refused("no file matches", FileNotFoundError):
        Rows.of(tmp_path / "absent-*.parquet", SCHEMA, neighbors="replace_one")
    parquet(tmp_path / "a.parquet")
    write(tmp_path / "a.csv", csv_text(TABLE))
    assert Rows.of(tmp_path, SCHEMA, neighbors="replace_one").table_size() == 2 * N_ROWS  # of both kinds
    assert Rows.of(str(tmp_path / "a.*"), SCHEMA, neighbors="replace_one").table_size() == 2 * N_ROWS
    with refused("endings must be", path=str(tmp_path / "t.docx"), endings=(".docx",)):
        Rows.of(write(tmp_path / "t.docx", b""), SCHEMA, neighbors="replace_one")
    assert (
        Rows.of(parquet(tmp_path / "odd[1]*.parquet"), SCHEMA).table_size() == N_ROWS
    )  # a name before it is a pattern


@pytest.mark.parametrize("name", ["a.b", 'a"b', "a b", "Ä", "select", "a'b", "a\nb", "a,b"])
def test_odd_column_names(name: str, tmp_path: Path) -> None:
    table = pa.table({"a": [{"b": 1}], "z": ["text"]}).append_column(name, pa.array([1.5]))
    schema = Schema(dpm.Numeric(name, 0, 2))
    expected = Rows.of(np.array([[1.5]]), schema).moments()
    flat = table.drop_columns(["a"])
    for data in (
        table, flat.to_pandas(), pl.from_arrow(flat), duckdb_connection().from_arrow(table),
        parquet(tmp_path / "t.parquet", table), write(tmp_path / "t.csv", csv_text(flat)),
    ):  # fmt: skip
        assert Rows.of(data, schema).moments() == expected


@pytest.mark.long
@pytest.mark.parametrize("block_bytes", [200, 333, 1001])
@pytest.mark.parametrize("ending", ["\r\n", "\n", "\r"])
def test_a_line_break_in_quotes_on_the_edge_of_a_block_is_kept(
    block_bytes: int, ending: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Arrow's reader lost the LF of a CR LF that a block ended in, so that one row changed the levels of others."""
    schema = Schema(dpm.Categorical("c", ["a\r\nb", "a\nb", "a\rb", "z"]), dpm.Numeric("x", 0, 10))
    for shift in range(block_bytes % 60 + 5):
        text = f"c,x\r\nz,1.{'0' * shift}\r\n" + f'"a{ending}b",2\r\n' * 60
        path = tmp_path / f"{shift}.csv"
        path.write_bytes(text.encode())
        whole = Rows.of(str(path), schema).moments()
        with monkeypatch.context() as patch:
            patch.setattr("dpmoments.rows.sources.text._CSV_BLOCK_BYTES", block_bytes)
            assert Rows.of(str(path), schema).moments() == whole
        level = schema.feature_names.index(f"c=a{ending}b")
        assert whole.gram[level, level] > 59 * 4**19
