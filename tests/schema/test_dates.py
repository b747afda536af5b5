"""Columns of dates: cells of every type as numbers since an origin, by Python's own calendar, and what is refused."""

from __future__ import annotations

import datetime as dt
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import dpmoments as dpm
from dpmoments.rows.rows import Rows
from dpmoments.schema import Date, Schema
from dpmoments.schema.cell_reading import numbers
from dpmoments.schema.cells import text_dates
from support.examples import examples
from support.said import refused

UTC = dt.UTC
SECONDS = Date("t", "0001-01-01", "9999-12-31", unit="seconds", origin="1970-01-01")
FORMATS = [
    "%d.%m.%Y",
    "%Y%m%d",
    "%m/%d/%y",
    "%d %b %Y",
    "%B %d, %Y",
    "%d-%m-%Y %H:%M",
    "%Y-%m-%dT%H:%M:%S.%f%z",
    "%d.%m.%Y %H:%M:%S",
    "100%% %Y (%m) [%d]",
]


def python_seconds(text: str, date_format: str) -> float | None:
    """By Python's strptime; None where it refuses."""
    try:
        found = dt.datetime.strptime(text, date_format)
    except ValueError:
        return None
    return (
        (found if found.tzinfo else found.replace(tzinfo=UTC)) - dt.datetime(1970, 1, 1, tzinfo=UTC)
    ) / dt.timedelta(seconds=1)


@pytest.mark.long
@given(
    date_format=st.sampled_from(FORMATS),
    moment=st.datetimes(dt.datetime(1000, 1, 2), dt.datetime(9998, 12, 30)),
    minutes=st.integers(-1439, 1439),
    change=st.none() | st.tuples(st.integers(0, 30), st.sampled_from("0123456789 .-xZ")),
)
@settings(max_examples=examples(300), deadline=None)
@example(date_format="%d.%m.%Y", moment=dt.datetime(2020, 2, 29), minutes=0, change=None)
@example(date_format="%d.%m.%Y", moment=dt.datetime(2020, 2, 29), minutes=0, change=(3, "1"))
@example(date_format="%d.%m.%y", moment=dt.datetime(1969, 2, 1), minutes=0, change=None)
@example(date_format="%Y%m%d", moment=dt.datetime(2001, 2, 1), minutes=0, change=(0, " "))
@example(date_format="%Y%m%d", moment=dt.datetime(2001, 2, 1), minutes=0, change=(6, " "))
def test_text_is_read_as_python_reads_it(
    date_format: str, moment: dt.datetime, minutes: int, change: tuple[int, str] | None
) -> None:
    if "%z" in date_format:
        moment = moment.replace(tzinfo=dt.timezone(dt.timedelta(minutes=minutes)))
    cell = moment.strftime(date_format)
    if change is not None and change[0] < len(cell):
        cell = cell[: change[0]] + change[1] + cell[change[0] + 1 :]
    column = Date("t", "0001-01-01", "9999-12-31", unit="seconds", origin="1970-01-01", format=date_format)
    found = text_dates(pa.array([cell]), column, dpm.TextFormat())
    expected = python_seconds(cell.strip(" \t"), date_format)
    assert found.unparsable[0] == (expected is None)
    assert expected is None or abs(found.values[0] - expected) < 1e-4


ISO_DATES = {
    "2020-01-31": dt.datetime(2020, 1, 31),
    "1950-02-28": dt.datetime(1950, 2, 28),
    "2000-02-29": dt.datetime(2000, 2, 29),
    "0001-01-01": dt.datetime(1, 1, 1),
    "9999-12-31": dt.datetime(9999, 12, 31),
    "2020-01-31T23:59": dt.datetime(2020, 1, 31, 23, 59),
    "2020-01-31 23:59:59.5": dt.datetime(2020, 1, 31, 23, 59, 59, 500000),
    "2020-01-31T00:30+01:00": dt.datetime(2020, 1, 30, 23, 30),
    "2020-01-31T12:00:00Z": dt.datetime(2020, 1, 31, 12),
    "2020-01-31T12:00:00-0530": dt.datetime(2020, 1, 31, 17, 30),
    " 2020-01-31 ": dt.datetime(2020, 1, 31),
}
NO_ISO_DATES = [
    *("1900-02-29", "2019-02-29", "2020-13-01", "2020-00-10", "2020-01-32", "2020-1-3", "20200131", "31.01.2020"),
    *("2020-01-31T24:00", "2020-01-31T12:60", "2020-01-31T12:00+24:00", "0000-01-01", "today", "2020-01-31x"),
    *("٢٠٢٠-01-31", "43861"),
]


def test_iso_dates() -> None:
    for cells, unparsable in ((list(ISO_DATES), False), (NO_ISO_DATES, True)):
        for cell in cells:  # by itself, and below among all
            assert text_dates(pa.array([cell]), SECONDS, dpm.TextFormat()).unparsable.tolist() == [unparsable], cell
    found = text_dates(pa.array([*NO_ISO_DATES, *ISO_DATES]), SECONDS, dpm.TextFormat())
    moments = [(moment - dt.datetime(1970, 1, 1)).total_seconds() for moment in ISO_DATES.values()]
    assert found.unparsable.tolist() == [True] * len(NO_ISO_DATES) + [False] * len(moments)
    assert found.values[len(NO_ISO_DATES) :].tolist() == moments


DAY = Date("t", "1960-01-01", "2030-01-01")
MOMENT = dt.datetime(1969, 12, 31, 12)
"""Before 1970, and half a day."""


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([MOMENT, None]),
        *(pa.array([MOMENT, None], pa.timestamp(unit)) for unit in ("s", "ms", "us", "ns")),
        pa.array([MOMENT, None], pa.timestamp("us", "UTC")),
        pa.array(["1969-12-31T12:00", None]),
        pa.array(["1969-12-31T13:00+01:00", ""]),
        pa.array([MOMENT, None]).dictionary_encode(),
        pa.array(["1969-12-31 12:00", None], pa.large_string()),
        pa.array([dt.datetime(1969, 12, 31, 7, tzinfo=dt.timezone(dt.timedelta(hours=-5))), None]),
        np.array([MOMENT, pd.NaT], dtype=object),
        np.array([pd.Timestamp("1969-12-31 13:00", tz="Europe/Berlin"), None], dtype=object),
        np.array([np.datetime64("1969-12-31T12"), np.datetime64("NaT", "s")], dtype=object),
        np.array(["1969-12-31T12:00", pd.NA], dtype=object),
        np.array([MOMENT.replace(tzinfo=UTC), float("nan")], dtype=object),
        np.array(["1969-12-31T12:00Z", ""], dtype=object),
    ],
    ids=lambda cells: f"{getattr(cells, 'type', 'objects')}",
)
def test_cells_of_every_type(cells: Any) -> None:
    assert np.array_equal(numbers(cells, DAY)[0], [3652.5, np.nan], equal_nan=True)


def test_dates_far_away_stay_far_away() -> None:
    far = pa.array([2**31 - 1, -(2**31)], pa.int32()).cast(pa.date32())
    assert (np.abs(numbers(far, DAY)[0]) > 1e7).all()
    assert (np.abs(numbers(pa.array([2**62, -(2**62)], pa.timestamp("s")), DAY)[0]) > 1e7).all()
    whole = pa.array([86_400_000, None]).cast(pa.date64())
    assert np.array_equal(numbers(whole, DAY)[0], [3654.0, np.nan], equal_nan=True)


def table(n_rows: int = 200, seed: int = 0) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    days = pd.Series(pd.Timestamp("2014-06-01") + pd.to_timedelta(rng.integers(0, 4000, n_rows), unit="D"))
    days[rng.random(n_rows) < 0.1] = pd.NaT
    return pd.DataFrame({"admitted": days, "age": rng.uniform(0, 100, n_rows), "late": rng.random(n_rows) < 0.3})


SCHEMA = Schema(
    dpm.Date("admitted", "2015-01-01", "2024-12-31", missing="center"),
    dpm.Power("admitted", 2),
    dpm.Numeric("age", 0, 100),
    dpm.Boolean("late"),
    dpm.Product("admitted", "late"),
)
"""With what is derived of a date: bounds of 0 and 3652 days."""


def test_a_prediction_takes_dates_and_rows_drawn_hold_them() -> None:
    released = dpm.release(table(5000), SCHEMA.without_derived, epsilon=50.0, insecure_seed=1)
    fit = released.ridge("age", ["admitted", "late"])
    days = {"admitted": [dt.date(2015, 1, 2), dt.date(2020, 1, 1)], "late": [True, False]}
    texts = {"admitted": ["2015-01-02", "2020-01-01"], "late": [True, False]}
    assert np.array_equal(fit.predict(days), fit.predict(texts))
    drawn = released.synthetic(300, format="arrow")
    assert pa.types.is_date32(drawn["admitted"].type)
    found = drawn["admitted"].to_numpy()
    assert found.min() >= np.datetime64("2015-01-01")
    assert found.max() <= np.datetime64("2024-12-31")
    assert Rows.of(drawn, SCHEMA).count() == 300
    hours = Schema(dpm.Date("t", "2015-01-01T00:30:00", "2015-01-03", unit="hours"))
    made = dpm.release(pa.table({"t": [dt.datetime(2015, 1, 2)] * 50}), hours, epsilon=50.0, insecure_seed=1)
    assert pa.types.is_timestamp(made.synthetic(5, format="arrow")["t"].type)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (("2015-01-01", None), "has no bounds: give lower and upper from public knowledge"),
        (("2015-01-01", "2014-01-01"), "must be below upper="),
        (("2015-01-01", "2015-01-01"), "must be below upper="),
        ((2015, 2020), "must be"),
        (("01.02.2015", "2020-01-01"), "must be"),
        (("2015-02-30", "2020-01-01"), "must be"),
        ((True, False), "must be"),
    ],
)
def test_bounds_that_are_no_dates(options: tuple[Any, Any], code: str) -> None:
    with refused(code):
        Date("t", *options)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        (dict(unit="fortnights"), ": use '"),
        (dict(origin="soon"), "must be"),
        (dict(format="%d.%m"), "column"),
        (dict(format="%d.%m.%Y %Q"), "column"),
        (dict(format="%Y%m%d%d"), "column"),
        (dict(format="%Y%y%m%d"), "column"),
        (dict(format="%d%m%Y%"), "column"),
        (dict(format=3), "must be"),
        (dict(missing="zero"), ": use '"),
        (dict(description="two\nlines"), "its description must be one line of printable characters"),
        (dict(description=" "), "must be"),
    ],
)
def test_options_that_cannot_be(options: dict[str, Any], code: str) -> None:
    with refused(code, (TypeError, ValueError)):
        Date("t", "2015-01-01", "2020-01-01", **options)


@pytest.mark.parametrize(
    "cells",
    [
        pa.array([1.0]),
        pa.array([4711]),
        pa.array([4711]).cast(pa.time64("us")),
        pa.array([True]),
        pa.array([4711], pa.duration("us")),
    ],
    ids=str,
)
def test_a_type_without_dates_is_told_and_no_cell(cells: Any) -> None:
    with refused("has a type without dates; a date column needs dates", TypeError, column="t") as caught:
        numbers(cells, DAY)
    assert "4711" not in str(caught.value)
    with refused("column needs numbers: describe it as Date, with dates for", TypeError):
        numbers(pa.array([MOMENT]), dpm.Numeric("t", 0, 1))
