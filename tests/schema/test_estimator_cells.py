"""What an estimator reads of X and y: every cell by itself, whatever holds it, and no message that tells of the rows."""

from __future__ import annotations

import datetime as dt
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import dask.array as da
import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.estimators import DPCovariance, DPRidge
from dpmoments.privacy.filter import PrivacyFilter, PrivacyFilterError
from dpmoments.releases.disclosed import MessageWarning
from support.said import refused

RELEASE = sys.modules["dpmoments.spending.release"]  # the function hides the module of its name
NEARLY_NO_NOISE: dict[str, Any] = {"epsilon": 1e9, "mechanism": "laplace", "insecure_seed": 0}

# What is refused


@pytest.mark.parametrize("odd", [[[1.0]], [[1.0, 2.0, 3.0]], [3.0], ["q7z"], [None]])
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
            assert "q7z" not in shown


def test_a_table_without_columns_tells_no_number_of_rows() -> None:
    with refused("X has 0 feature(s) (shape=(, 0)) while a minimum of 1 is") as raised:
        DPCovariance(bounds=(0, 9), epsilon=1.0).fit(np.empty((137, 0)))
    assert "137" not in str(raised.value)


# The one fit


TELLS_A_LIE = "nothing was spent"


ROWS = np.full((50, 2), 0.5)


def raises(error: BaseException) -> Callable[..., None]:
    def stopped(*_: Any, **__: Any) -> None:
        raise error

    return stopped


def with_a_note(error: Exception) -> Exception:
    error.add_note(TELLS_A_LIE)
    return error


def releases_more(*_: Any, **__: Any) -> None:
    """Another run, of which it is true that nothing was spent."""
    schema = dpm.Schema(dpm.Numeric("x", 0, 1))
    with refused("has a cell that is missing, not finite or not readable, and") as raised:
        dpm.release(np.full((50, 1), np.nan), schema, epsilon=1.0, mechanism="laplace")
    assert any(TELLS_A_LIE in note for note in raised.value.__notes__)
    raise raised.value


STOPS: dict[str, tuple[Any, str, Callable[..., Any], type[BaseException]]] = {
    **{
        type(error).__name__: (RELEASE, "moment_release", raises(error), type(error))
        for error in (ValueError(TELLS_A_LIE), RuntimeError(TELLS_A_LIE), KeyboardInterrupt(TELLS_A_LIE))
    },
    "a note": (RELEASE, "keep", raises(with_a_note(ValueError("odd"))), ValueError),
    "another run": (RELEASE, "keep", releases_more, ValueError),
    "a draw that is refused": (
        PrivacyFilter,
        "draw",
        lambda self, *_, **__: self._refuse("'count' is not paid for."),
        PrivacyFilterError,
    ),
}
"""What raises which error, after the draws or in the first of them."""


@pytest.mark.parametrize("stop", STOPS)
def test_no_words_of_an_error_or_of_the_caller_give_a_spent_fit_back(
    stop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    holder, name, stopped, error = STOPS[stop]
    model = DPCovariance(bounds=(0, 1), epsilon=1.0, mechanism="laplace", dataset=TELLS_A_LIE)
    monkeypatch.setattr(holder, name, stopped)
    with pytest.raises(error):
        model.fit(ROWS)
    monkeypatch.undo()
    with pytest.raises(dpm.BudgetExceededError):
        model.fit(ROWS)


@pytest.mark.parametrize("error", [ValueError("odd"), KeyboardInterrupt()])
@pytest.mark.parametrize("n_before", [0, 1])
def test_a_fit_is_given_back_if_it_stopped_before_the_first_draw(
    error: BaseException, n_before: int, monkeypatch: pytest.MonkeyPatch
) -> None:
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


# Tables of objects, and what is none

FEATURES = (
    dpm.Numeric("a", -10, 10, missing="drop"),
    dpm.Date("d", "2020-01-01", "2021-01-01", missing="center"),
    dpm.Categorical("c", ["1", "b", "true"], missing="zero", other="zero"),
    dpm.Boolean("f", missing="center"),
)


def objects(cells: Any) -> Any:
    column = np.empty(len(cells), dtype=object)
    for index, cell in enumerate(cells):
        column[index] = cell
    return column


def object_rows(rows: Any) -> Any:
    return objects([cell for row in rows for cell in row]).reshape(len(rows), len(FEATURES))


OBJECT_FORMS: dict[str, Callable[[Any], Any]] = {
    "lists": lambda rows: [list(row) for row in rows],
    "list of pandas rows": lambda rows: [pd.Series(objects(row), dtype=object) for row in rows],
    "array in columns": lambda rows: np.asfortranarray(object_rows(rows)),
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


@pytest.mark.parametrize("form", OBJECT_FORMS)
def test_a_prediction_reads_cells_as_a_fit_does(form: str) -> None:
    rows = [
        (1.0, dt.date(2020, 3, 1), "b", True),
        (2, dt.datetime(2020, 3, 1, 12), "1", 0),
        (3, "2020-06-01", "true", 1.0),
    ]
    schema = dpm.Schema(*FEATURES, dpm.Numeric("y", -10, 10, missing="drop"))
    X = OBJECT_FORMS[form](rows * 50)
    model = DPRidge(schema=schema, target="y", **NEARLY_NO_NOISE).fit(X, [1.0, 2.0, 3.0] * 50)
    np.testing.assert_allclose(model.predict(X), [1.0, 2.0, 3.0] * 50, atol=1e-2)
    moved = OBJECT_FORMS[form]([rows[0], (None, *rows[1][1:])])
    assert np.isnan(model.predict(moved)).tolist() == [False, True]
