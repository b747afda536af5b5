"""What an estimator reads of X and y: every cell by itself, whatever holds it, and no message that tells of the rows."""

from __future__ import annotations

import datetime as dt
import sys
import warnings
from collections import deque
from collections.abc import Callable
from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.estimators import DPPCA, DPCovariance, DPLinearDiscriminant, DPRidge
from dpmoments.estimators.base import column_of
from dpmoments.releases.release_warning import MessageWarning
from dpmoments.rows.rows import Rows
from support.said import refused

RELEASE = sys.modules["dpmoments.spending.release"]  # the function hides the module of its name
NEARLY_NO_NOISE: dict[str, Any] = {"epsilon": 1e9, "mechanism": "laplace", "insecure_seed": 0}

# One row and all others


def class_counts(x: Any, y: Any) -> list[float]:
    schema = dpm.Schema(dpm.Numeric("x", -1, 1), dpm.Categorical("y", ["0", "1"], other="zero"))
    model = DPLinearDiscriminant(schema, target="y", **NEARLY_NO_NOISE).fit(x, y)
    return [round(float(share * model.release_.n_rows), 1) for share in model.release_.mean[1:]]


@pytest.mark.parametrize("position", [0, 1000, 1999])
def test_a_class_label_of_text_leaves_all_other_labels_as_they_were(position: int) -> None:
    x = np.random.default_rng(0).uniform(-1, 1, (1999, 1)).tolist()
    y = [0.0, 1.0] * 999 + [0.0]
    odd_x, odd_y = list(x), list(y)
    odd_x.insert(position, [0.5])
    odd_y.insert(position, "q")
    np.testing.assert_allclose(class_counts(odd_x, odd_y), class_counts(x, y), atol=0.2)


@pytest.mark.parametrize("position", [0, 50, 99])
@pytest.mark.parametrize("as_list", [True, False])
def test_a_date_among_times_leaves_the_times_as_they_were(position: int, as_list: bool) -> None:
    day = dt.date(2020, 6, 1)
    moments: list[Any] = [dt.datetime(2020, 6, 1, 18, minute % 60) for minute in range(99)]
    moments.insert(position, day)
    x = np.linspace(0, 1, 100)[:, np.newaxis]
    y: Any = moments
    if not as_list:
        y = np.empty(100, dtype=object)
        y[:] = moments
    schema = dpm.Schema(dpm.Numeric("x", 0, 1), dpm.Date("y", "2020-01-01", "2021-01-01"))
    model = DPRidge(schema=schema, target="y", **NEARLY_NO_NOISE).fit(x, y)
    expected = [(moment - dt.datetime(2020, 1, 1)) / dt.timedelta(days=1) for moment in moments if moment is not day]
    mean = (sum(expected) + (day - dt.date(2020, 1, 1)).days) / 100
    assert model.release_.mean[1] == pytest.approx(mean, abs=1e-3)


@pytest.mark.parametrize("odd", [[[1.0]], [[1.0, 2.0, 3.0]], [3.0], ["ab"], [None]])
def test_a_ragged_row_tells_nothing_of_the_others(odd: Any) -> None:
    for rows in ([*[[0.5, 0.5]] * 137, *odd], [*odd, *[[0.5, 0.5]] * 137]):
        for model, data in (
            (DPCovariance(bounds=(0, 9), epsilon=1.0), (rows,)),
            (DPRidge(bounds=(0, 9), target_bounds=(0, 9), epsilon=1.0), (rows, [0.5] * 138)),
            (DPRidge(bounds=(0, 9), target_bounds=(0, 9), epsilon=1.0), (np.ones((138, 2)), rows)),
        ):
            with pytest.raises((ValueError, TypeError)) as raised:
                model.fit(*data)
            shown = str(raised.value) + str(raised.value.__context__) + str(raised.value.__cause__)
            assert "13" not in shown
            assert "ab" not in shown.replace("table", "")


def test_a_table_without_columns_tells_no_number_of_rows() -> None:
    with refused("no-table-features") as raised:
        DPCovariance(bounds=(0, 9), epsilon=1.0).fit(np.empty((137, 0)))
    assert "137" not in str(raised.value)


# The one fit


TELLS_A_LIE = "nothing was spent"


@pytest.mark.parametrize("error", [ValueError(TELLS_A_LIE), RuntimeError(TELLS_A_LIE), KeyboardInterrupt(TELLS_A_LIE)])
def test_no_words_of_an_error_give_a_spent_fit_back(error: BaseException, monkeypatch: pytest.MonkeyPatch) -> None:
    def stopped(*_: Any, **__: Any) -> None:
        raise error

    model = DPCovariance(bounds=(0, 1), epsilon=1.0, mechanism="laplace")
    monkeypatch.setattr(RELEASE, "moment_release", stopped)  # after the draws
    with pytest.raises(type(error), match=TELLS_A_LIE):
        model.fit(np.full((50, 2), 0.5))
    monkeypatch.undo()
    with pytest.raises(dpm.BudgetExceededError):
        model.fit(np.full((50, 2), 0.5))


@pytest.mark.parametrize("error", [ValueError("odd"), KeyboardInterrupt()])
@pytest.mark.parametrize("n_before", [0, 1])
def test_a_fit_is_given_back_if_it_stopped_before_the_first_draw(
    error: BaseException, n_before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dpmoments.privacy.filter import PrivacyFilter

    drawn: list[Any] = []
    answer = PrivacyFilter.draw

    def stopped(self: Any, *data: Any, **more: Any) -> Any:
        if len(drawn) == n_before:
            raise error
        drawn.append(None)
        return answer(self, *data, **more)

    model = DPCovariance(bounds=(0, 1), epsilon=1.0, mechanism="standardized")
    monkeypatch.setattr(PrivacyFilter, "draw", stopped)
    with pytest.raises(type(error)):
        model.fit(np.full((500, 2), 0.5))
    assert len(drawn) == n_before
    monkeypatch.undo()
    if n_before:
        with pytest.raises(dpm.BudgetExceededError):
            model.fit(np.full((500, 2), 0.5))
    else:
        model.fit(np.full((500, 2), 0.5))


def test_a_note_of_the_caller_decides_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    error = ValueError("odd")
    error.add_note(TELLS_A_LIE)

    def stopped(*_: Any, **__: Any) -> None:
        raise error

    model = DPCovariance(bounds=(0, 1), epsilon=1.0, mechanism="laplace", dataset=TELLS_A_LIE)
    monkeypatch.setattr(RELEASE, "keep", stopped)
    with pytest.raises(ValueError, match="odd"):
        model.fit(np.full((50, 2), 0.5))
    monkeypatch.undo()
    with pytest.raises(dpm.BudgetExceededError):
        model.fit(np.full((50, 2), 0.5))


def test_what_ends_before_a_run_gives_the_fit_back(tmp_path: Path) -> None:
    model = DPCovariance(bounds=(0, 1), epsilon=1.0, mechanism="laplace")
    rows = np.full((50, 2), 0.5)
    with pytest.raises(dpm.LedgerError):  # nothing was granted
        model.set_params(ledger=tmp_path / "budget.db", dataset="people").fit(rows)
    model.set_params(ledger=None, dataset=None, mechanism="gaussian", delta=0.5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(MessageWarning) as caught:  # shown between the plan and the run
            model.fit(rows)
    assert (caught.value.code, dict(caught.value.facts)) == ("delta-too-large", {"delta": 0.5})
    model.set_params(mechanism="laplace", delta=0.0).fit(rows)
    with pytest.raises(dpm.BudgetExceededError):
        model.fit(rows)


def test_a_draw_that_the_filter_refuses_counts_as_spent(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpmoments.messages.message import Message
    from dpmoments.privacy.filter import PrivacyFilter, PrivacyFilterError

    def refused(self: Any, *_: Any, **__: Any) -> Any:
        self._refuse(Message("draw-invalid", query="count", reason=Message("run-ended")))

    model = DPCovariance(bounds=(0, 1), epsilon=1.0, mechanism="laplace")
    monkeypatch.setattr(PrivacyFilter, "_draw", refused)
    with pytest.raises(PrivacyFilterError):
        model.fit(np.full((50, 2), 0.5))
    monkeypatch.undo()
    with pytest.raises(dpm.BudgetExceededError):
        model.fit(np.full((50, 2), 0.5))


def test_another_run_that_spent_nothing_gives_no_spent_fit_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def releases_more(*_: Any, **__: Any) -> None:
        schema = dpm.Schema(dpm.Numeric("x", 0, 1))
        dpm.release(np.full((50, 1), np.nan), schema, epsilon=1.0, mechanism="laplace")

    model = DPCovariance(bounds=(0, 1), epsilon=1.0, mechanism="laplace")
    monkeypatch.setattr(RELEASE, "keep", releases_more)  # after the draws
    with refused("cell-missing") as raised:
        model.fit(np.full((50, 2), 0.5))
    assert any(TELLS_A_LIE in note for note in raised.value.__notes__)  # true of the inner run alone
    monkeypatch.undo()
    with pytest.raises(dpm.BudgetExceededError):
        model.fit(np.full((50, 2), 0.5))


# Exact moments are sums over rows, whatever one of them holds

FEATURES = (
    dpm.Numeric("a", -10, 10, missing="drop"),
    dpm.Date("d", "2020-01-01", "2021-01-01", missing="center"),
    dpm.Categorical("c", ["1", "b", "true"], missing="zero", other="zero"),
    dpm.Boolean("f", missing="center"),
)
TARGETS = {
    "DPCovariance": (),
    "DPPCA": (),
    "DPRidge": (dpm.Numeric("y", -10, 10, missing="drop"),),
    "DPLinearDiscriminant": (dpm.Categorical("y", ["0", "1", "b"], missing="zero", other="drop"),),
}
PLACES_OF = {"DPCovariance": (0, 1), "DPPCA": (2, 3), "DPRidge": (0, 1, 4), "DPLinearDiscriminant": (2, 3, 4, 0)}
"""Where odd cells are put, by estimator: every column of X with and without a y, and y itself."""
PLAIN_ROWS = [
    (1.0, dt.datetime(2020, 3, 1, 18), "b", True, 1.0),
    (2, dt.datetime(2020, 4, 1, 6, 30), "1", False, 0.0),
    (-3.25, dt.date(2020, 5, 1), "true", 1, 1),
]
ODD_CELLS = {
    "text": "abc",
    "digits": "007",
    "date": dt.date(2020, 6, 1),
    "time": dt.datetime(2020, 6, 1, 23, 59),
    "time of NumPy": np.datetime64("2020-06-01T13"),
    "time in a zone": dt.datetime(2020, 6, 1, 1, tzinfo=dt.timezone(dt.timedelta(hours=3))),
    "huge": 2**70,
    "astronomic": -(10**400),
    "decimal": Decimal("1.5"),
    "decimal NaN": Decimal("NaN"),
    "minus zero": -0.0,
    "NaN": float("nan"),
    "inf": float("inf"),
    "-inf": float("-inf"),
    "None": None,
    "NA": pd.NA,
    "NaT": pd.NaT,
    "NaT of NumPy": np.datetime64("NaT", "s"),
    "true": True,
    "single": np.float32(1.5),
    "flag of NumPy": np.True_,
    "surrogate": "\ud800",
    "padded": " b",
    "other case": "B",
    "empty": "",
    "list": [1, 2],
    "nested": [[1.0]],
    "tuple": (1.0,),
    "dict": {"b": 1},
    "array": np.ones(2),
    "bytes": b"b",
    "complex": 1j,
    "object": object(),
}


def objects(cells: Any) -> Any:
    column = np.empty(len(cells), dtype=object)
    for index, cell in enumerate(cells):
        column[index] = cell
    return column


def object_rows(rows: Any) -> Any:
    return objects([cell for row in rows for cell in row]).reshape(len(rows), len(FEATURES))


OBJECT_FORMS: dict[str, Callable[[Any], Any]] = {
    "lists": lambda rows: [list(row) for row in rows],
    "tuple of tuples": tuple,
    "list of arrays": lambda rows: [objects(row) for row in rows],
    "list of pandas rows": lambda rows: [pd.Series(objects(row), dtype=object) for row in rows],
    "array": object_rows,
    "array in columns": lambda rows: np.asfortranarray(object_rows(rows)),
    "pandas": lambda rows: pd.DataFrame(
        {
            name: pd.Series(objects(cells), dtype=object)
            for name, cells in zip("adcf", zip(*rows, strict=True), strict=True)
        }
    ),
    "pandas without names": lambda rows: pd.DataFrame(
        {place: pd.Series(objects(cells), dtype=object) for place, cells in enumerate(zip(*rows, strict=True))}
    ),
    "polars": lambda rows: pl.DataFrame(
        [
            pl.Series(name, list(cells), dtype=pl.Object)
            for name, cells in zip("adcf", zip(*rows, strict=True), strict=True)
        ]
    ),
}
OBJECT_COLUMNS: dict[str, Callable[[Any], Any]] = {
    "lists": list,
    "tuple of tuples": tuple,
    "list of arrays": deque,
    "list of pandas rows": lambda cells: pd.Index(objects(cells), dtype=object),
    "array": objects,
    "array in columns": lambda cells: objects(cells)[:, np.newaxis],
    "pandas": lambda cells: pd.Series(objects(cells), dtype=object, index=range(len(cells), 0, -1)),
    "pandas without names": lambda cells: pd.DataFrame({0: pd.Series(objects(cells), dtype=object)}),
    "polars": lambda cells: pl.Series(list(cells), dtype=pl.Object),
}


def estimator_of(name: str, features: Any = FEATURES, targets: Any = TARGETS) -> Any:
    schema = dpm.Schema(*features, *targets[name])
    more = {"target": "y"} if targets[name] else {}
    return {each.__name__: each for each in (DPCovariance, DPPCA, DPRidge, DPLinearDiscriminant)}[name](
        schema=schema, epsilon=1.0, **more
    )


def exact(model: Any, X: Any, y: Any) -> tuple[int, Any, Any] | None:
    """Exact moments of the table that reaches the release; None if it is refused."""
    y = column_of(y, of=model) if getattr(model, "target", None) else None
    refusal = ""
    try:
        table, schema, _ = model._table(X, y)
        found = Rows.of(table, schema, threads=1).moments()
    except (ValueError, TypeError) as error:
        refusal = str(error)
    assert not [told for told in ("abc", "007", "surrogate", "000000") if told in refusal]
    return None if refusal else (found.count, found.sum.astype(object), found.gram.astype(object))


def require_sum(whole: Any, parts: list[Any]) -> None:
    """The whole is refused if and only if a part is; else its moments are those of its parts."""
    if None in [part if part is None else 0 for part in parts]:
        assert whole is None
        return
    assert whole is not None
    for found, *expected in zip(whole, *parts, strict=True):
        np.testing.assert_array_equal(found, sum(expected[1:], expected[0]))


@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
@pytest.mark.parametrize("form", OBJECT_FORMS)
@pytest.mark.parametrize("name", TARGETS)
def test_a_row_of_objects_adds_its_own_moments_wherever_it_is(name: str, form: str) -> None:
    def moments(rows: list[Any]) -> Any:
        X = OBJECT_FORMS[form]([row[:-1] for row in rows])
        return exact(estimator_of(name), X, OBJECT_COLUMNS[form]([row[-1] for row in rows]))

    plain = moments(PLAIN_ROWS)
    assert plain is not None
    assert plain[0] == len(PLAIN_ROWS)
    readable: list[Any] = []
    each: list[Any] = []
    for turn, (odd, place) in enumerate(product(ODD_CELLS.values(), PLACES_OF[name])):
        row = (*PLAIN_ROWS[0][:place], odd, *PLAIN_ROWS[0][place + 1 :])
        alone = moments([row])
        position = (0, 1, len(PLAIN_ROWS))[(turn + turn // 3) % 3]
        require_sum(moments([*PLAIN_ROWS[:position], row, *PLAIN_ROWS[position:]]), [plain, alone])
        if alone is not None:
            readable.append(row)
            each.append(alone)
    assert len(readable) > len(ODD_CELLS) / 2
    for rows in ([*PLAIN_ROWS, *readable], [*readable[::-1], *PLAIN_ROWS]):
        require_sum(moments(rows), [plain, *each])


NUMBERS = (dpm.Numeric("a", -10, 10, missing="drop"), dpm.Numeric("b", -10, 10, missing="center"))
NUMBER_TARGETS = TARGETS | {"DPLinearDiscriminant": (dpm.Categorical("y", [0, 1, 7], missing="drop", other="zero"),)}
PLAIN_NUMBERS = [(1.0, 2.0, 1), (-3.0, 0.5, 0), (4.0, -1.0, 1)]
FLOATS = [float("nan"), float("inf"), float("-inf"), -0.0, 1e308, 1e-310, 7.0]


def polars_or_arrow(rows: Any, kind: Any) -> Any:
    columns = dict(zip("ab", zip(*rows, strict=True), strict=True))
    if isinstance(kind, pa.DataType):
        return pa.table({name: pa.array(cells, kind, from_pandas=False) for name, cells in columns.items()})
    return pl.DataFrame(columns, schema=dict.fromkeys("ab", kind))


DECLARED: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any], list[Any]]] = {
    "float64": (lambda rows: np.array(rows, "f8"), lambda y: np.array(y, "f8"), FLOATS),
    "swapped": (lambda rows: np.array(rows, ">f8"), lambda y: np.array(y, ">f8"), FLOATS),
    "float32": (lambda rows: np.array(rows, "f4"), lambda y: np.array(y, "f4"), [*FLOATS[:4], 7.0]),
    "float16": (lambda rows: np.array(rows, "f2"), lambda y: np.array(y, "f2"), [*FLOATS[:4], 7.0]),
    "longdouble": (
        lambda rows: np.array(rows, np.longdouble),
        lambda y: np.array(y, np.longdouble),
        [*FLOATS, np.longdouble("1e4000")],
    ),
    "int64": (lambda rows: np.array(rows, "i8"), lambda y: np.array(y, ">i8"), [7, -(2**62), 2**63 - 1]),
    "matrix": (lambda rows: np.asmatrix(rows), lambda y: np.asmatrix(y).T, FLOATS),
    "memoryview": (lambda rows: memoryview(np.array(rows)), lambda y: memoryview(np.array(y, "f8")), FLOATS),
    "numbers, list": (lambda rows: np.array(rows), lambda y: list(y), FLOATS),
    "numbers, objects": (lambda rows: np.array(rows), objects, [*FLOATS, None, pd.NA]),
    "lists, numbers": (lambda rows: [list(row) for row in rows], lambda y: np.array(y, "f8"), FLOATS),
    "pandas": (
        lambda rows: pd.DataFrame(rows, columns=list("ab"), dtype="f8"),
        lambda y: pd.Series(y, dtype="f8"),
        FLOATS,
    ),
    "pandas without names": (lambda rows: pd.DataFrame(rows, dtype="f8"), lambda y: pd.Index(y, dtype="f8"), FLOATS),
    "nullable": (
        lambda rows: pd.DataFrame(rows, columns=list("ab"), dtype="Float64"),
        lambda y: pd.array(y, dtype="Float64"),
        [pd.NA, -0.0, 7.0, 1e308],
    ),
    "pandas of Arrow": (
        lambda rows: pd.DataFrame(rows, columns=list("ab"), dtype=pd.ArrowDtype(pa.float64())),
        lambda y: pd.Series(y, dtype=pd.ArrowDtype(pa.float64())),
        [pd.NA, -0.0, 7.0, 1e308],
    ),
    "polars": (
        lambda rows: polars_or_arrow(rows, pl.Float64),
        lambda y: pl.Series(y, dtype=pl.Float64, strict=False),
        [None, *FLOATS],
    ),
    "arrow": (
        lambda rows: polars_or_arrow(rows, pa.float64()),
        lambda y: pa.array([None if cell is None else float(cell) for cell in y], pa.float64(), from_pandas=False),
        [None, *FLOATS],
    ),
}


@pytest.mark.filterwarnings("ignore:A column-vector y was passed", "ignore:the matrix subclass", "ignore:overflow")
@pytest.mark.parametrize("form", DECLARED)
@pytest.mark.parametrize("name", TARGETS)
def test_a_row_of_a_declared_type_adds_its_own_moments_wherever_it_is(name: str, form: str) -> None:
    features, column, odd_cells = DECLARED[form]

    def moments(rows: list[Any]) -> Any:
        model = estimator_of(name, NUMBERS, NUMBER_TARGETS)
        return exact(model, features([row[:-1] for row in rows]), column([row[-1] for row in rows]))

    plain = moments(PLAIN_NUMBERS)
    assert plain is not None
    assert plain[0] == len(PLAIN_NUMBERS)
    for odd in odd_cells:
        for place in range(3 if TARGETS[name] else 2):
            row = (*PLAIN_NUMBERS[0][:place], odd, *PLAIN_NUMBERS[0][place + 1 :])
            alone = moments([row])
            assert alone is not None
            for position in (0, 1, len(PLAIN_NUMBERS)):
                require_sum(moments([*PLAIN_NUMBERS[:position], row, *PLAIN_NUMBERS[position:]]), [plain, alone])


TEXTS: dict[str, Callable[[Any], Any]] = {
    "NumPy": lambda y: np.array(y, "U9"),
    "NumPy, wide": lambda y: np.array(y, ">U99"),
    "NumPy's strings": lambda y: np.array(y, np.dtypes.StringDType()),
    "pandas": lambda y: pd.Series(y, dtype="str"),
    "pandas string": lambda y: pd.Series(y, dtype="string"),
    "categories": lambda y: pd.Series(pd.Categorical(y, categories=["0", "1", "b", " b", "B", "007", "", "abc"])),
    "bare categories": lambda y: pd.Categorical(y, categories=["0", "1", "b", " b", "B", "007", "", "abc"]),
    "polars": lambda y: pl.Series(y, dtype=pl.String),
    "enum": lambda y: pl.Series(y, dtype=pl.Enum(["0", "1", "b", " b", "B", "007", "", "abc"])),
    "arrow": lambda y: pa.chunked_array([pa.array(y[:1], pa.string()), pa.array(y[1:], pa.string())]),
    "arrow views": lambda y: pa.array(y, pa.string_view()),
    "list": list,
}


@pytest.mark.parametrize("form", TEXTS)
def test_a_label_adds_its_own_moments_wherever_it_is(form: str) -> None:
    def moments(y: list[str]) -> Any:
        model = estimator_of("DPLinearDiscriminant", NUMBERS)
        return exact(model, np.ones((len(y), 2)), TEXTS[form](y))

    surrogates = ["\ud800"] if form in ("NumPy", "NumPy, wide", "list") else []
    plain = moments(["1", "b"])
    for odd in [" b", "B", "007", "", "abc", "1", *surrogates]:
        alone = moments([odd])
        assert alone is not None
        for position in (0, 1, 2):
            y = ["1", "b"]
            y.insert(position, odd)
            require_sum(moments(y), [plain, alone])


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.array([["1", "2"]]), [1]),
        (np.array([[b"1", b"2"]]), [1]),
        (np.array([[1j, 2]]), [1]),
        (np.array([["2020-01-01"] * 2], "M8[D]"), [1]),
        (np.array([[1, 2]], "m8[s]"), [1]),
        (np.array([[(1, 2.0)] * 2], dtype=[("secret", int), ("b", float)]), [1]),
        (np.ma.masked_array(np.ones((1, 2)), mask=True), [1]),
        (np.array(np.array([["1", "2"]]), np.dtypes.StringDType()), [1]),
        ({"a": [1], "b": [2]}, [1]),
        ({(1, 2)}, [1]),
        (iter([[1, 2]]), [1]),
        (b"ab", [1]),
        ([{"a": 1, "b": 2}], [1]),
        (["ab"], [1]),
        (da.ones((1, 2)), [1]),
        (np.ones((1, 2)), da.ones(1)),
        (np.ones((1, 2)), "1"),
        (np.ones((1, 2)), {1}),
        (np.ones((1, 2)), {"a": 1}),
        (np.ones((1, 2)), iter([1])),
        (np.ones((1, 2)), np.ones((1, 2))),
        (np.ones((1, 2)), pd.DataFrame([[1, 2]])),
        (np.ones((1, 2)), np.array([1j])),
        (np.ones((1, 2)), np.array([1], "m8[s]")),
        (np.ones((1, 2)), np.array([(1, 2.0)], dtype=[("secret", int), ("b", float)])),
        (np.ones((1, 2)), np.ma.masked_array([1.0], mask=True)),
        (np.ones((1, 2)), np.ma.masked_array([[1.0]], mask=True)),
        (np.ones((1, 2)), np.float64(1.0)),
        (pd.DataFrame([[1, 2]], columns=["secret", "secret"]), [1]),
        (pa.table([[1], [2]], names=["secret", "secret"]), [1]),
    ],
    ids=lambda value: str(getattr(value, "dtype", type(value).__name__))[:12],
)
@pytest.mark.filterwarnings("ignore:A column-vector y was passed")
def test_what_declares_no_table_is_refused_by_its_type_alone(X: Any, y: Any) -> None:
    with pytest.raises((ValueError, TypeError)) as raised:
        DPRidge(bounds=(0, 9), target_bounds=(0, 9), epsilon=1.0).fit(X, y)
    assert "secret" not in str(raised.value) + str(raised.value.__context__)


def test_a_date_target_in_every_unit_of_numpy() -> None:
    schema = dpm.Schema(NUMBERS[0], dpm.Date("y", "2020-01-01", "2021-01-01", missing="drop"))
    expected = None
    for unit in ("D", "h", "m", "s", "ms", "us", "ns"):
        y = np.array(["2020-02-01", "NaT", "2020-03-01"], f"M8[{unit}]")
        found = exact(DPRidge(schema=schema, target="y", epsilon=1.0), np.ones((3, 1)), y)
        assert found is not None
        expected = found if expected is None else expected
        require_sum(found, [expected])
    assert expected[0] == 2


@pytest.mark.parametrize("form", OBJECT_FORMS)
def test_a_prediction_reads_cells_as_a_fit_does(form: str) -> None:
    rows = [
        (1.0, dt.date(2020, 3, 1), "b", True),
        (2, dt.datetime(2020, 3, 1, 12), "1", 0),
        (3, "2020-06-01", "true", 1.0),
    ]
    schema = dpm.Schema(*FEATURES, *TARGETS["DPRidge"])
    X = OBJECT_FORMS[form](rows * 50)
    model = DPRidge(schema=schema, target="y", **NEARLY_NO_NOISE).fit(X, [1.0, 2.0, 3.0] * 50)
    np.testing.assert_allclose(model.predict(X), [1.0, 2.0, 3.0] * 50, atol=1e-2)
    moved = OBJECT_FORMS[form]([rows[0], (None, *rows[1][1:])])
    assert np.isnan(model.predict(moved)).tolist() == [False, True]
