"""What a description says of releases with and without a mean, a count, and a law of the noise."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from contracts.analyses import released


def test_a_card_cuts_long_names_of_features() -> None:
    name, table = "income of the household before taxes in the year before", np.full((500, 1), 0.3)
    release = dpm.release(table, dpm.Schema(dpm.Numeric(name, 0, 1)), epsilon=1.0, insecure_seed=0)
    card = release._repr_html_()
    assert f">{name[:47]}…</td>" in card
    assert f"{name}</td>" not in card


def test_a_negative_variance_has_no_root() -> None:
    release = released(epsilon=0.001, repair="none", neighbors="replace_one")
    negative = np.diag(release.covariance) < 0
    assert negative.any()
    found = release.describe()
    np.testing.assert_array_equal(np.isnan(found.standard_deviation), negative)
    assert [value is None for value in found.to_dict()["standard_deviation"]] == negative.tolist()


@pytest.mark.parametrize(
    ("options", "public"),
    [
        (dict(neighbors="replace_one"), False),
        (dict(neighbors="add_remove", mean=False), False),
        (dict(neighbors="add_remove", mean=False, n_rows=4_000), True),
    ],
)
def test_when_a_count_is_public(options: dict[str, Any], public: bool) -> None:
    release = released(epsilon=1.0, **options)
    assert release.count_is_public is public
    assert release.describe().count_is_public is public


def test_a_date_ends_with_the_longest_unit_that_its_noise_exceeds() -> None:
    days = dpm.Date("day", "2015-01-01", "2021-01-01")
    for noise, text in (
        (400.0, "2015"),
        (40.0, "2015-04"),
        (4.0, "2015-04-11"),
        (0.01, "2015-04-11"),
        (math.nan, "2015-04-11"),
    ):
        assert days.date_text(100.2, noise) == text
    seconds = dpm.Date("at", "2015-01-01T00:00", "2021-01-01", unit="seconds")
    for noise, text in ((7200.0, "2015-01-01T01"), (70.0, "2015-01-01T01:23"), (0.1, "2015-01-01T01:23:20")):
        assert seconds.date_text(5000.4, noise) == text


@pytest.mark.parametrize(
    ("unit", "mean", "noise"), [("days", "2020-01-11", " days"), ("years", "2020-01-11", " years")]
)
def test_means_of_dates_are_dates(unit: Any, mean: str, noise: str) -> None:
    """The tenth day after the origin of 2020; durations have the column's unit."""
    table = pa.table({"day": [dt.date(2020, 1, 1), dt.date(2020, 1, 21)] * 5_000, "age": [30.0, 50.0] * 5_000})
    schema = dpm.Schema(
        dpm.Date("day", "2019-01-01", "2022-01-01", unit=unit, origin="2020-01-01"), dpm.Numeric("age", 0, 99)
    )
    release = dpm.release(table, schema, epsilon=1e7, delta=1e-6, mechanism="gaussian", insecure_seed=0)
    described = release.describe()
    day, age = described.table()[1:]
    assert day[1] == mean
    assert all(cell.endswith(noise) for cell in day[2:5])
    assert not any(cell.endswith(noise) for cell in age)
    assert described.mean is not None
    assert described.to_pandas().loc["day", "mean"] == described.mean[0]  # numbers stay numbers


def test_a_mean_of_a_date_that_noise_dominates_is_no_date() -> None:
    table = pa.table({"day": [dt.date(2020, 1, 1)] * 20})
    release = dpm.release(table, dpm.Schema(dpm.Date("day", "1900-01-01", "2022-01-01")), epsilon=0.01, insecure_seed=0)
    assert release.describe().table()[1][1] == "noise"
