"""What an estimator reads of X and y: every cell by itself, whatever holds it, and no message that tells of the rows."""

from __future__ import annotations

import datetime as dt
import sys
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.estimators import DPCovariance, DPLinearDiscriminant, DPRidge

RELEASE = sys.modules["dpmoments.release"]  # the function hides the module of its name
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
    with pytest.raises(ValueError, match="0 feature") as raised:
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

    model = DPCovariance(bounds=(0, 1), epsilon=1.0, mechanism="adaptive-ball")
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
