"""Bad input through the main job: a clear error, no private value in it, nothing spent, nothing lost.

Every table here holds a value that stands for a person. It must not be in the error, in its traceback, in what it is chained
to, in a warning or on standard output; the table must be as it was; and there must be no output file.
"""

from __future__ import annotations

import gzip
import math
import os
import traceback
import warnings
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import duckdb
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm
from dpmoments.base.errors import InputError, InputValueError
from dpmoments.cli.entry import main
from dpmoments.privacy import filter as filter_module
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.rows.rows import Rows
from dpmoments.schema import Schema
from dpmoments.spending.run import NOTHING_SPENT
from support import said

NAME = "Smith-4711"
"""A cell of text that must not get out."""
PAY = 471147114711.25
"""A cell that is a number and must not get out; it is far outside all bounds."""
PRIVATE = (NAME, NAME.lower(), "471147114711", "4.711471147", "471_147", "47114711471125")

SCHEMA = Schema(dpm.Numeric("age", 0, 100), dpm.Categorical("region", ["north", "south"]))


def people(**replaced: Any) -> dict[str, list[Any]]:
    """A good table of twenty rows, one of them the person's, with columns replaced or added."""
    cells: dict[str, list[Any]] = {
        "age": [PAY, *map(float, range(19))],
        "region": [NAME, *["north", "south"] * 9, "north"],
        "name": [NAME] * 20,
    }
    return cells | replaced


def frame(**replaced: Any) -> pd.DataFrame:
    return pd.DataFrame(people(**replaced))


class Spent(np.random.Generator):
    """A generator that fails the test when noise is drawn."""

    def __init__(self) -> None:
        super().__init__(np.random.PCG64(0))

    def __getattribute__(self, name: str) -> Any:
        if not name.startswith("_"):
            pytest.fail("noise was drawn")
        return super().__getattribute__(name)


def snapshot(data: Any) -> Any:
    if isinstance(data, np.ndarray):
        return (data.dtype, data.shape, data.tobytes() if data.dtype != object else repr(data.tolist()))
    if isinstance(data, pd.DataFrame):
        return (data.to_csv(), list(data.dtypes), list(data.index))
    if isinstance(data, pl.DataFrame):
        return (data.schema, repr(data.rows()))
    if isinstance(data, pa.Table):
        return (data.schema, repr(data.to_pylist()))
    if isinstance(data, str | Path) and Path(data).exists():
        return Path(data).read_bytes() if Path(data).is_file() else sorted(Path(data).iterdir())
    return None


def everything_said(error: BaseException) -> str:
    """All text that hangs on an error: message, repr, notes, arguments, traceback, and that of its whole chain."""
    said, seen = [], set()
    waiting: list[BaseException | None] = [error]
    while waiting:
        link = waiting.pop()
        if link is None or id(link) in seen:
            continue
        seen.add(id(link))
        said += [str(link), repr(link), repr(link.args), repr(getattr(link, "__notes__", "")), repr(vars(link))]
        said += traceback.format_exception(link)
        waiting += [link.__cause__, link.__context__]
    return "\n".join(said)


def assert_no_private_value(text: str) -> None:
    for value in PRIVATE:
        assert value not in text, text


@pytest.fixture
def refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder
) -> Callable[..., str]:
    """Ask for a release that cannot be; return the message after checking all that must hold."""

    def check(
        data: Any, schema: Callable[[], Schema] | Schema = SCHEMA, *, kind: type[Exception] = ValueError, **options: Any
    ) -> str:
        before = snapshot(data)
        outputs = tmp_path / "outputs"
        outputs.mkdir(exist_ok=True)
        asked: dict[str, Any] = {"epsilon": 1.0, "output": outputs / "release.json"} | options
        with monkeypatch.context() as patch:
            for opened in ("secure_generator", "insecure_generator"):
                patch.setattr(filter_module, opened, lambda *_: Spent())
            with pytest.raises(kind) as caught:
                dpm.release(data, schema() if callable(schema) else schema, **asked)
        assert isinstance(caught.value, InputError)
        assert_no_private_value(everything_said(caught.value))
        assert snapshot(data) == before
        assert not outputs.exists() or os.listdir(outputs) == []
        captured = capfd.readouterr()
        assert captured.out == captured.err == ""
        assert not recwarn.list
        return "; ".join([str(caught.value), *getattr(caught.value, "__notes__", ())])

    return check


def parquet(path: Path, table: Any) -> Path:
    pq.write_table(table if isinstance(table, pa.Table) else pa.table(table), path)
    return path


def text_file(path: Path, text: str) -> Path:
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


# ---------------------------------------------------------------------------------------------------------------------
# bounds


@pytest.mark.parametrize(
    ("lower", "upper", "words"),
    [
        (None, None, "column 'age' has no bounds: give lower and upper from public knowledge"),
        (0, None, "column 'age' has no bounds"),
        (None, 0, "column 'age' has no bounds"),
        (100, 0, "lower=100.0 must be below upper=0.0"),
        (5, 5, "lower=5.0 must be below upper=5.0"),
        (math.nan, 1, "lower=nan must be finite"),
        (-math.inf, math.inf, "lower=-inf must be finite"),
        (0, 1e300, "upper=1e+300 must be finite"),
    ],
)
def test_missing_or_reversed_bounds(refused: Callable[..., str], lower: Any, upper: Any, words: str) -> None:
    assert words in refused(frame(), lambda: Schema(dpm.Numeric("age", lower, upper)))


def test_bounds_left_blank_in_a_file(refused: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "people.yaml"
    path.write_text(
        "columns: [{name: age, kind: numeric, lower: , upper: }, {name: region, kind: categorical, levels: }]"
    )
    message = refused(frame(), lambda: Schema.load(path))
    assert "'age' has no bounds (lower, upper)" in message
    assert "'region' has no levels" in message


def test_rows_without_a_bound(refused: Callable[..., str]) -> None:
    message = refused(np.full((3, 2), PAY), Schema.unbounded(2))
    assert "needs a bound on the norm of a row and the schema gives none" in message


def test_something_else_for_a_schema(refused: Callable[..., str]) -> None:
    for schema in ({"age": (0, 100)}, "people.yaml", None, [dpm.Numeric("age", 0, 100)]):
        message = refused(frame(), lambda schema=schema: schema, kind=TypeError)
        assert "schema must be a dpmoments.Schema" in message


# ---------------------------------------------------------------------------------------------------------------------
# cells

UNREADABLE = "has a cell that is missing, not finite or not readable, and its rule for these is 'error'"
BAD_NUMBERS = [None, math.nan, math.inf, -math.inf]


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("cell", BAD_NUMBERS)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_non_finite_cells(refused: Callable[..., str], cell: float | None, neighbors: str, tmp_path: Path) -> None:
    schema = Schema(dpm.Numeric("age", 0, 100))
    ages = [PAY, 3.0, cell, 5.0]
    csv = "age,name\n" + "".join(f"{'' if age is None else age},{NAME}\n" for age in ages)
    for data in (
        pd.DataFrame({"age": ages}),
        pd.DataFrame({"age": pd.Series(ages, dtype=object)}),
        pl.DataFrame({"age": ages}),
        pl.DataFrame({"age": ages}).lazy(),
        np.array([[math.nan if age is None else age] for age in ages]),
        pa.table({"age": ages}),
        parquet(tmp_path / "t.parquet", {"age": ages}),
        text_file(tmp_path / "t.csv", csv),
        text_file(tmp_path / "t.csv.gz", csv),
        duckdb.connect().from_arrow(pa.table({"age": ages})),
    ):
        message = refused(data, schema, neighbors=neighbors)
        assert f"column 'age' {UNREADABLE}" in message
        assert NOTHING_SPENT in message.casefold()


def test_non_finite_cells_of_an_array_in_the_ball(refused: Callable[..., str]) -> None:
    for cell in (math.nan, math.inf, -math.inf):
        for dtype in (np.float64, np.float32):
            table = np.array([[PAY, 0.0], [0.1, cell]], dtype=dtype)
            assert "missing='error'" in refused(table, Schema.unit_ball(2))


def test_empty_text(refused: Callable[..., str], tmp_path: Path) -> None:
    schema = Schema(dpm.Categorical("region", ["north"]))
    for empty in (None, ""):
        cells = {"region": [NAME, empty, "north"]}
        for data in (pd.DataFrame(cells), pl.DataFrame(cells), parquet(tmp_path / "t.parquet", cells)):
            assert f"column 'region' {UNREADABLE}" in refused(data, schema)


# ---------------------------------------------------------------------------------------------------------------------
# columns


def test_unknown_columns(refused: Callable[..., str], tmp_path: Path) -> None:
    schema = Schema(dpm.Numeric("pay", 0, 1), dpm.Numeric("age", 0, 100))
    for data in (
        frame(), pl.DataFrame(people()), pl.DataFrame(people()).lazy(), pa.table(people()),
        duckdb.connect().from_arrow(pa.table(people())),
        parquet(tmp_path / "t.parquet", people()), text_file(tmp_path / "t.csv", f"age,name\n1,{NAME}\n"),
    ):  # fmt: skip
        message = refused(data, schema)
        assert "no column 'pay'" in message
        assert "'age'" not in message


def test_a_table_whose_header_line_is_a_record(refused: Callable[..., str], tmp_path: Path) -> None:
    """A file without its header line gives a person's cells the place of names, also in a frame made of it."""
    path = text_file(tmp_path / "people.csv", f"{PAY},{NAME}\n1,north\n")
    with_names = pd.read_csv(path)
    assert NAME in with_names.columns
    table = pa.Table.from_pandas(with_names)
    for data in (path, with_names, pl.read_csv(path), table, parquet(tmp_path / "p.parquet", table)):
        message = refused(data)
        assert "has no column 'age', 'region' among its 2" in message
    assert "among its 2: rename" in refused(text_file(tmp_path / "alike.csv", f"{PAY},Region\n1,north\n"))
    assert "it has 'Age'" in refused(frame().rename(columns={"age": "Age"}))  # a name that the schema gives away anyhow


def test_duplicate_names(refused: Callable[..., str], tmp_path: Path) -> None:
    twice = pd.concat([frame(), frame()[["age"]]], axis=1)
    table = pa.Table.from_arrays([pa.array([PAY])] * 2 + [pa.array([NAME])], ["age", "age", "region"])
    csv = text_file(tmp_path / "t.csv", f"age,region,age\n1,{NAME},2\n")
    for data in (twice, table, parquet(tmp_path / "t.parquet", table), csv):
        assert "more than one column named 'age'" in refused(data)
    assert "duplicate column names" in refused(frame(), lambda: Schema(dpm.Numeric("age", 0, 1), dpm.Boolean("age")))


@pytest.mark.parametrize(
    "column",
    [
        [NAME] * 20,
        pd.Series([NAME] * 20, dtype="category"),
        pd.Series(pd.to_datetime(["2020-01-01"] * 20)),
        pd.Series(pd.period_range("2020-01", periods=20, freq="M")),
        pd.Series([pd.Timedelta(days=4711)] * 20),
        pd.Series([complex(PAY)] * 20),
        pd.arrays.IntervalArray.from_breaks(np.arange(21) * PAY),
    ],
    ids=["text", "category", "dates", "periods", "durations", "complex", "intervals"],
)
def test_wrong_types_for_numbers(refused: Callable[..., str], column: Any) -> None:
    assert "column 'age'" in refused(frame(age=column), kind=TypeError)


@pytest.mark.parametrize("column", [[True] * 20, [Decimal("4711.4711")] * 20], ids=["flags", "decimals"])
def test_wrong_types_for_levels(refused: Callable[..., str], column: Any, tmp_path: Path) -> None:
    for data in (
        frame(region=pd.Series(column, dtype=None if column[0] is True else pd.ArrowDtype(pa.decimal128(8, 4)))),
        pl.DataFrame(people(region=column)),
        parquet(tmp_path / "t.parquet", people(region=column)),
    ):
        message = refused(data, kind=TypeError)
        assert "column 'region'" in message
        assert "4711" not in message
        assert "(8, 4)" not in message  # the digits of a decimal type are read off the cells


def test_wrong_types_in_files(refused: Callable[..., str], tmp_path: Path) -> None:
    nested = pa.table({"age": [{NAME: 1.0}], "region": ["north"]})
    assert "column 'age' has type nested values" in refused(parquet(tmp_path / "t.parquet", nested), kind=TypeError)
    lists = pa.table({"age": [1.0], "region": [[NAME]]})
    assert "column 'region' has type nested values" in refused(parquet(tmp_path / "l.parquet", lists), kind=TypeError)
    for cell in (NAME, f'"{NAME}"', "12 years", "1,5"):
        csv = text_file(
            tmp_path / "t.csv", f"name,age,region\n{NAME},1,north\n{NAME},{cell!s},north\n".replace("1,5", '"1,5"')
        )
        assert f"column 'age' {UNREADABLE}" in refused(csv)


def test_object_columns(refused: Callable[..., str]) -> None:
    """Objects that are numbers are read as numbers; one that is not stops the release by the column's rule, and is not shown."""
    good = frame(age=pd.Series([PAY, *map(Decimal, range(1, 19)), True], dtype=object))
    assert dpm.release(good, SCHEMA, epsilon=100.0).gram.shape == (3, 3)
    for bad in (NAME, NAME.encode(), [PAY], {NAME: 1}, object(), complex(PAY), pd.Timestamp("2020-01-01")):
        data = frame(age=pd.Series([PAY, 1, bad, *range(17)], dtype=object))
        assert f"column 'age' {UNREADABLE}" in refused(data)
    for bad in ([NAME], {NAME: 1}, True, NAME.encode()):
        data = frame(region=pd.Series([NAME, bad, *["north"] * 18], dtype=object))
        assert Rows.of(data, SCHEMA).count() == 18  # an unknown level, by its rule
    array = np.array([[PAY, NAME]], dtype=object)
    assert f"column 'x1' {UNREADABLE}" in refused(array, Schema.unit_ball(2))


@pytest.mark.parametrize(
    ("data", "kind", "words"),
    [
        (np.array([PAY, PAY]), ValueError, "an array of 1 dimensions is not a table"),
        (np.full((2, 2, 2), PAY), ValueError, "an array of 3 dimensions is not a table"),
        (np.full((2, 3), PAY), ValueError, "the array has 3 columns and the schema 2"),
        (np.array([[NAME, "north"]]), TypeError, "an array of type str_ is not a table of numbers"),
        (np.array([[NAME.encode(), b"north"]]), TypeError, "an array of type bytes_ is not a table"),
        (np.full((2, 2), complex(PAY)), TypeError, "an array of type complex128 is not a table"),
        (np.array([(PAY, 1.0)], dtype=[(NAME, float), ("b", float)]), ValueError, "1 dimensions"),
        (np.array([[(PAY, 1.0)] * 2], dtype=[(NAME, float), ("b", float)]), TypeError, "an array of type void is not"),
        (np.ma.masked_array(np.full((2, 2), PAY), mask=True), TypeError, "masked array"),
        ([[PAY, NAME]], TypeError, "cannot read a table from list"),
        ({"age": [PAY], "region": [NAME]}, TypeError, "cannot read a table from dict"),
        (pd.Series([PAY], name=NAME), TypeError, "cannot read a table from Series"),
        (pa.array([PAY]), TypeError, "cannot read a table from DoubleArray"),
        (pa.table({"age": [PAY]}).to_reader(), TypeError, "can be read once"),
        (NAME.encode(), TypeError, "cannot read a table from bytes"),
        (None, TypeError, "cannot read a table from NoneType"),
    ],
    ids=lambda value: type(value).__name__ if not isinstance(value, str | type) else str(value)[:20],
)
def test_what_is_no_table(refused: Callable[..., str], data: Any, kind: type[Exception], words: str) -> None:
    assert words in refused(data, kind=kind)


def test_a_connection_for_a_relation(refused: Callable[..., str]) -> None:
    assert "cannot read a table from DuckDBPyConnection" in refused(duckdb.connect(), kind=TypeError)


def test_a_sparse_matrix(refused: Callable[..., str]) -> None:
    from scipy.sparse import csr_array

    assert "sparse matrices are not supported" in refused(csr_array(np.full((2, 2), PAY)), kind=TypeError)


# ---------------------------------------------------------------------------------------------------------------------
# budgets


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(epsilon=0.0), "epsilon must be positive"),
        (dict(epsilon=-1.0), "epsilon must be positive"),
        (dict(epsilon=math.nan), "epsilon must be positive"),
        (dict(epsilon=math.inf), "epsilon must be positive"),
        (dict(epsilon=1.0, delta=1.0), "delta"),
        (dict(epsilon=1.0, delta=2.5), "delta"),
        (dict(epsilon=1.0, delta=-1e-9), "delta"),
        (dict(epsilon=1.0, delta=math.nan), "delta"),
        (dict(epsilon=None, rho=0.0), "rho must be positive"),
        (dict(epsilon=None, rho=-1.0), "rho must be positive"),
        (dict(epsilon=None), "epsilon"),
        (dict(epsilon=1.0, rho=1.0), "rho"),
        (dict(epsilon=1.0, delta=1e-9, mechanism="laplace"), "cannot spend a budget of ε = 1, δ = 1e-09"),
        (dict(epsilon=1.0, delta=1e-9, mechanism="matrix-laplace"), "give it epsilon only (delta = 0)"),
        (dict(epsilon=1.0, delta=0.0, mechanism="gaussian"), "give it epsilon and delta > 0 or rho"),
        (dict(epsilon=None, rho=0.5, mechanism="laplace"), "cannot spend a budget of 0.5-zCDP"),
        (dict(epsilon=1.0, mechanism="magic"), "Unknown mechanism 'magic'. Known: "),
        (dict(epsilon=1.0, neighbors="both"), "neighbors='both' is not a neighboring relation"),
        (dict(epsilon=1.0, repair="magic"), "repair='magic'"),
        (dict(epsilon=1.0, n_rows=0), "n_rows must be a positive whole number, got 0"),
        (dict(epsilon=1.0, n_rows=2.5), "n_rows must be a positive whole number, got 2.5"),
        (dict(epsilon=1.0, n_rows=7, neighbors="replace_one"), "number of rows is 7, and the table has another"),
        (dict(epsilon=1e-18), "the budget is too small: noise of"),
    ],
    ids=str,
)
def test_budgets_and_settings(refused: Callable[..., str], options: dict[str, Any], words: str, tmp_path: Path) -> None:
    for data in (frame(), parquet(tmp_path / "t.parquet", people())):
        message = refused(data, **options)
        assert words in message
        assert "20" not in message.replace("1e-20", "")  # nor the number of rows


@pytest.mark.parametrize("option", ["epsilon", "delta", "rho"])
@pytest.mark.parametrize("value", ["1", True, [1.0]], ids=repr)
def test_budgets_that_are_no_numbers(refused: Callable[..., str], option: str, value: Any) -> None:
    options = {"epsilon": None if option == "rho" else 1.0} | {option: value}
    assert f"{option} must be a number" in refused(frame(), kind=TypeError, **options)


@pytest.mark.parametrize(
    "options", [dict(epsilon=0.0), dict(epsilon=1.0, mechanism="gaussian"), dict(mechanism="magic")]
)
def test_what_cannot_work_is_refused_before_a_row_is_read(
    refused: Callable[..., str], options: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object, **__: object) -> None:
        pytest.fail("a row was read")

    for source in ("ArraySource", "FrameSource"):
        monkeypatch.setattr(f"dpmoments.rows.sources.memory.{source}.blocks", fail)
    for neighbors in ("add_remove", "replace_one"):
        refused(frame(), neighbors=neighbors, **options)


# ---------------------------------------------------------------------------------------------------------------------
# small, empty and large tables: no errors, and nothing said


@pytest.fixture
def quiet(capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder) -> Callable[..., dpm.MomentRelease]:
    """Release without a word: a warning about the data would be a release without noise."""

    def run(data: Any, schema: Schema, **options: Any) -> dpm.MomentRelease:
        before = snapshot(data)
        warnings.simplefilter("always")  # else the same words are not said twice; recwarn puts the filters back
        released = dpm.release(data, schema, **({"epsilon": 1.0} | options))
        for array in (released.gram, released.covariance if released.noisy_sum is not None else released.gram):
            assert np.isfinite(array).all()
        assert snapshot(data) == before
        captured = capfd.readouterr()
        assert captured.out == captured.err == ""
        # What a release learned privately it says, as its file does; anything else would tell of the table.
        assert [found.message.message_data for found in recwarn.list] == list(released.warnings)
        recwarn.clear()
        return released

    return run


@pytest.mark.parametrize("mechanism", ["auto", "laplace", "matrix-laplace"])
def test_an_empty_table(quiet: Callable[..., Any], refused: Callable[..., str], mechanism: str) -> None:
    for data in (
        frame().iloc[:0].astype({"age": float}),
        pl.DataFrame(people()).clear(),
        pa.table(people()).slice(0, 0),
    ):
        quiet(data, SCHEMA, mechanism=mechanism)
        assert "the table has no rows" in refused(data, mechanism=mechanism, neighbors="replace_one")
    quiet(np.zeros((0, 2)), Schema.unit_ball(2), mechanism=mechanism)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_one_row(quiet: Callable[..., Any], neighbors: str) -> None:
    released = quiet(frame().iloc[1:2], SCHEMA, neighbors=neighbors)
    assert released.n_rows >= 1
    assert not released.count_is_public
    if neighbors == "replace_one":
        dropping_none = dpm.Schema(dpm.Numeric("age", 0, 100), row_norm=1.0)
        assert quiet(frame().iloc[1:2], dropping_none, neighbors=neighbors).n_rows == 1


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize(
    "options", [dict(epsilon=1.0), dict(epsilon=1.0, delta=1e-9), dict(epsilon=None, rho=0.5)], ids=str
)
@pytest.mark.parametrize("mean", [True, False])
def test_one_feature(quiet: Callable[..., Any], neighbors: str, options: dict[str, Any], mean: bool) -> None:
    schema = Schema(dpm.Numeric("age", 0, 100))
    released = quiet(frame(), schema, neighbors=neighbors, mean=mean, **options)
    assert released.gram.shape == (1, 1)
    assert quiet(np.full((5, 1), 0.5), Schema.unit_ball(1), neighbors=neighbors, mean=mean, **options).gram.shape == (
        1,
        1,
    )


@pytest.mark.parametrize("size", [1e9, 1e100, 1.7e308])
def test_enormous_cells_count_for_one_row(quiet: Callable[..., Any], size: float) -> None:
    rows = np.zeros((20, 2))
    rows[3] = [size, 0.0]
    rows[4] = [0.0, -size]
    exact: dict[str, Any] = dict(epsilon=1e13, neighbors="replace_one", mean=False, repair="none")
    np.testing.assert_allclose(quiet(rows, Schema.unit_ball(2), **exact).gram, np.eye(2), atol=1e-5)
    bounded = Schema(dpm.Numeric("a", -1, 1), dpm.Numeric("b", -1, 1))
    np.testing.assert_allclose(quiet(rows, bounded, **exact).gram, np.eye(2), atol=1e-5)
    whole = quiet(np.array([[10**9, 0]], dtype=np.int64), Schema.unit_ball(2), **exact)
    np.testing.assert_allclose(whole.gram, np.diag([1.0, 0.0]), atol=1e-5)


def test_a_table_with_bounds_of_a_billion(quiet: Callable[..., Any]) -> None:
    rng = np.random.default_rng(0)
    table = rng.uniform(-1e9, 1e9, (1000, 2))
    schema = Schema(dpm.Numeric("a", -1e9, 1e9), dpm.Numeric("b", -2e9, 1e9))
    released = quiet(table, schema, epsilon=1e13, neighbors="replace_one", repair="none")
    np.testing.assert_allclose(released.mean, table.mean(axis=0), atol=1e9 * 1e-5)
    np.testing.assert_allclose(released.covariance, np.cov(table.T, bias=True), atol=1e18 * 1e-4)


def test_odd_cells_bring_no_warning(quiet: Callable[..., Any]) -> None:
    """NumPy's warnings on overflow and invalid values would tell that such cells exist."""
    cells = [math.nan, math.inf, -math.inf, 1.7e308, -1.7e308, 5e-324, -0.0, PAY, 0.5, None]
    schema = Schema(dpm.Numeric("a", 0, 1, missing="center"), dpm.Numeric("b", -1, 0, missing="drop"))
    quiet(pd.DataFrame({"a": cells, "b": cells}, dtype=float), schema)
    quiet(pd.DataFrame({"a": cells, "b": cells}, dtype=object), schema)
    floats = np.array([[math.nan if cell is None else cell] * 2 for cell in cells])
    for missing in ("center", "drop"):
        quiet(floats, Schema.unit_ball(2, missing=missing))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            narrow = floats.astype(np.float32)
        quiet(narrow, Schema.unit_ball(2, missing=missing))
        quiet(floats.astype(np.longdouble) * 1e10, Schema.unit_ball(2, missing=missing))


# ---------------------------------------------------------------------------------------------------------------------
# files


def test_truncated_and_damaged_parquet(refused: Callable[..., str], tmp_path: Path) -> None:
    path = parquet(tmp_path / "people.parquet", {name: cells * 500 for name, cells in people().items()})
    whole = path.read_bytes()
    for size in (0, 3, 4, 100, len(whole) // 2, len(whole) - 1, len(whole) - 9):
        path.write_bytes(whole[:size])
        for neighbors in ("add_remove", "replace_one"):
            message = refused(path, neighbors=neighbors)
            assert "people.parquet cannot be read: damaged, truncated, or not what its name says" in message
            assert NOTHING_SPENT in message.casefold()
    for content in (f"age,region\n{PAY},{NAME}\n".encode(), whole[:4] + NAME.encode() * 40 + whole[-4:]):
        path.write_bytes(content)
        refused(path)


def test_a_page_that_was_changed_is_found_by_its_checksum(refused: Callable[..., str], tmp_path: Path) -> None:
    path = tmp_path / "people.parquet"
    ages = {"age": [PAY, *map(float, range(999))], "region": ["north"] * 1000}
    pq.write_table(pa.table(ages), path, write_page_checksum=True, compression="none", use_dictionary=False)
    whole = bytearray(path.read_bytes())
    place = whole.index(np.float64(500.0).tobytes())
    whole[place + 6] ^= 1
    path.write_bytes(whole)
    assert "damaged" in refused(path)


def test_truncated_and_damaged_text(refused: Callable[..., str], tmp_path: Path) -> None:
    text = "age,region\n" + f"{PAY},{NAME}\n" * 3000
    packed = gzip.compress(text.encode())
    path = tmp_path / "people.csv.gz"
    for size in (0, 5, len(packed) // 2, len(packed) - 5):
        path.write_bytes(packed[:size])
        assert "people.csv.gz cannot be read" in refused(path)
    path.write_bytes(text.encode())
    refused(path)
    ragged = text_file(tmp_path / "ragged.csv", f"age,region\n1,north\n{PAY}\n{NAME},1,2,3\n")
    assert "one of its lines has a different number of fields than the first" in refused(ragged)
    long = text_file(tmp_path / "long.csv", "age,region,note\n1,north," + NAME * 1_000_000 + "\n")
    assert "one of its lines is longer than 8,388,608 bytes" in refused(long)
    latin = tmp_path / "latin.csv"
    latin.write_bytes(f"age,region\n{NAME} M\xfcller,north\n".encode("latin-1"))
    assert f"column 'age' {UNREADABLE}" in refused(latin)
    for empty in ("", "\n", "\n\n"):
        assert "cannot be read" in refused(text_file(tmp_path / "empty.csv", empty))


def test_files_that_are_not_there_or_of_another_kind(refused: Callable[..., str], tmp_path: Path) -> None:
    assert "no file matches" in refused(tmp_path / "absent.parquet", kind=FileNotFoundError)
    assert "no file matches" in refused(str(tmp_path / "*.csv"), kind=FileNotFoundError)
    (tmp_path / "folder").mkdir()
    assert "holds no" in refused(tmp_path / "folder", kind=FileNotFoundError)
    assert ".sas7bdat" in refused(text_file(tmp_path / "people.docx", NAME))
    assert "damaged" in refused(text_file(tmp_path / "people.feather", NAME))


def test_a_file_that_goes_missing_between_two_looks(
    refused: Callable[..., str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = parquet(tmp_path / "people.parquet", people())
    monkeypatch.setattr("dpmoments.rows.sources.arrow.require_columns", lambda *_: path.unlink())
    with pytest.raises(AssertionError):  # the snapshot of the input, which is gone
        refused(path, kind=FileNotFoundError)


@pytest.mark.long
def test_queries_that_fail_on_a_cell(refused: Callable[..., str]) -> None:
    connection = duckdb.connect()
    relation = connection.from_arrow(pa.table(people())).project("region::int as age, region")
    message = refused(relation)
    assert "the relation cannot be read: its query fails" in message
    assert connection.sql("select 1").fetchall() == [(1,)]  # the connection is free again
    late = connection.sql(
        f"select case when i = 1000000 then '{NAME}' else '1' end::int as age, 'north' as region from range(1000001) t(i)"
    )
    refused(late)
    assert connection.sql("select 1").fetchall() == [(1,)]
    lazy = pl.DataFrame(people()).lazy().with_columns(pl.col("region").cast(pl.Int64).alias("age"))
    assert "the lazy frame cannot be read: its query fails" in refused(lazy)
    absent = pl.DataFrame(people()).lazy().select(pl.col(NAME + "s"))
    with said.refused(" cannot be read: ", table="the lazy frame"):
        dpm.release(absent, SCHEMA, epsilon=1.0)


def test_a_busy_connection() -> None:
    """DuckDB holds one result at a time: a user's own open one stops the release, and is not disturbed."""
    connection = duckdb.connect()
    relation = connection.from_arrow(pa.table(people())).project("age, region")
    own = connection.from_arrow(pa.table(people())).to_arrow_reader(5)
    next(own)
    stopped = said.Said(" (", kind="ResourceInUseException")
    with said.refused(" cannot be read: ", reason=stopped) as caught:
        dpm.release(relation, SCHEMA, epsilon=1.0)
    assert_no_private_value(everything_said(caught.value))
    assert next(own).num_rows == 5
    own.close()
    assert dpm.release(relation, SCHEMA, epsilon=1.0).gram.shape == (3, 3)


# ---------------------------------------------------------------------------------------------------------------------
# outputs


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_no_permission_to_write(
    refused: Callable[..., str], tmp_path: Path, neighbors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Checked before a row is read, also where rows are read to be counted."""
    csv = text_file(tmp_path / "t.csv", f"age,region\n{PAY},{NAME}\n")
    monkeypatch.setattr("dpmoments.rows.sources.text.CsvSource.blocks", lambda _: pytest.fail("a row was read"))
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    if os.geteuid() == 0:  # permission bits do not hold root up; a file system that cannot be written to does
        locked = Path("/proc")
        if not locked.is_dir():
            pytest.skip("no folder that root cannot write to")
    message = refused(csv, kind=PermissionError, output=locked / "release.json", neighbors=neighbors)
    assert f"cannot write in {locked}" in message
    assert NOTHING_SPENT in message.casefold()


def test_outputs_that_cannot_be(refused: Callable[..., str], tmp_path: Path) -> None:
    taken = text_file(tmp_path / "taken.json", "a release that cost its budget")
    assert "choose another name" in refused(frame(), kind=FileExistsError, output=taken)
    assert taken.read_text() == "a release that cost its budget"
    assert "make it first" in refused(frame(), kind=FileNotFoundError, output=tmp_path / "absent" / "release.json")
    assert "is a folder" in refused(frame(), kind=IsADirectoryError, output=tmp_path)
    assert "make it first" in refused(frame(), kind=FileNotFoundError, output=taken / "release.json")


# ---------------------------------------------------------------------------------------------------------------------
# planted faults: these checks do find what they look for


def test_the_checks_find_noise_that_was_drawn(refused: Callable[..., str]) -> None:
    """Planted fault: a table with nothing wrong with it, for which noise is drawn."""
    for seed in (None, 0):
        with pytest.raises(pytest.fail.Exception, match="noise was drawn"):
            refused(frame(age=[1.0] * 20, region=["north"] * 20), insecure_seed=seed)


def test_the_checks_find_a_leak(refused: Callable[..., str], monkeypatch: pytest.MonkeyPatch) -> None:
    def quoting(step: Callable[[], Any], where: Any, *_: object, **__: object) -> Any:
        try:
            return step()
        except Exception as error:
            raise InputValueError(f"{where} cannot be read") from error  # as one would write it

    relation = duckdb.connect().from_arrow(pa.table(people())).project("region::int as age, region")
    refused(relation)
    monkeypatch.setattr("dpmoments.rows.sources.arrow.read_quietly", quoting)
    relation = duckdb.connect().from_arrow(pa.table(people())).project("region::int as age, region")
    with pytest.raises(AssertionError, match=NAME):
        refused(relation)


def spoilt_after_a_draw(path: Path, content: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process writes to the file once the first noise is drawn."""
    draw = PrivacyFilter.draw

    def drawn(*arguments: Any, **options: Any) -> Any:
        path.write_bytes(content)
        return draw(*arguments, **options)

    monkeypatch.setattr(PrivacyFilter, "draw", drawn)


@pytest.mark.parametrize("content", [b"PAR1", b"", b"x,y\n,\n", b"x,y\n0.5,NAME\n"])
@pytest.mark.parametrize("ending", ["parquet", "csv"])
def test_an_error_in_a_later_pass_does_not_say_that_nothing_was_spent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], ending: str, content: bytes
) -> None:
    path = tmp_path / f"t.{ending}"
    cells = {name: np.linspace(-0.5, 0.5, 3000) for name in "xy"}
    parquet(path, cells) if ending == "parquet" else pd.DataFrame(cells).to_csv(path, index=False)
    whole = path.read_bytes()
    schema = Schema(dpm.Numeric("x", -1, 1), dpm.Numeric("y", -1, 1))
    spoilt_after_a_draw(path, content, monkeypatch)
    with pytest.raises((ValueError, OSError)) as caught:
        dpm.release(path, schema, rho=0.5, mechanism="coinpress")
    assert NOTHING_SPENT not in str(caught.value).casefold()
    assert caught.value.__notes__ == ["noise was drawn before this: the whole cost counts as spent"]
    path.write_bytes(whole)
    schema.save(tmp_path / "s.yaml")
    out = ["--neighbors", "add_remove", "--output", str(tmp_path / "r.json"), "--mechanism", "coinpress", "--yes"]
    assert main(["release", str(path), "--schema", str(tmp_path / "s.yaml"), "--rho", "0.5", *out]) == 1
    shown = capsys.readouterr().err
    assert "the whole cost counts as spent" in shown
    assert NOTHING_SPENT not in shown.casefold()


def test_the_checks_find_a_hidden_context() -> None:
    def hide() -> None:
        try:
            float(NAME)
        except ValueError:
            raise TypeError("not a number") from None

    with pytest.raises(TypeError) as caught:
        hide()
    assert NAME not in "".join(traceback.format_exception(caught.value))
    assert NAME in everything_said(caught.value)
