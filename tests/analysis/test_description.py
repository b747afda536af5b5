"""What a description says of releases with and without a mean, a count, and a law of the noise."""

from __future__ import annotations

import datetime as dt
import math
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from contracts.analyses import FEATURES, released
from dpmoments.analysis.answers import rounded


def described(**options: Any) -> Any:
    return released(**(dict(epsilon=1.0, repair="auto") | options)).describe()


def test_with_mean_and_count() -> None:
    release = released(epsilon=1.0, repair="auto", mechanism="matrix-laplace")
    found = release.describe()
    assert release.noise is not None
    assert found.feature_names == FEATURES
    assert not found.count_is_public
    assert found.count_noise == np.sqrt(release.noise.count_variance)
    assert found.rows_text == f"{release.n_rows:,} ± {rounded(found.count_noise, found.count_noise)}"
    np.testing.assert_array_equal(found.standard_deviation, np.sqrt(np.diag(release.covariance)))
    assert found.root_mean_square is None
    assert "root_mean_square" not in found.to_dict()
    head, *rows = found.table()
    assert head == ("feature", "mean", "± noise", "standard deviation", "± noise")
    assert [row[0] for row in rows] == list(FEATURES)
    lines = found.summary().splitlines()
    assert lines[0] == f"rows: {found.rows_text}"
    assert lines[len(FEATURES) + 3 :] == ([found.warning] if found.warning else [])
    assert len({len(line) for line in lines[1 : len(FEATURES) + 2]}) == 1  # the columns are aligned
    assert lines[len(FEATURES) + 2].startswith("± noise")


def test_a_card_cuts_long_names_of_features() -> None:
    name, table = "income of the household before taxes in the year before", np.full((500, 1), 0.3)
    release = dpm.release(table, dpm.Schema(dpm.Numeric(name, 0, 1)), epsilon=1.0, insecure_seed=0)
    card = release._repr_html_()
    assert f">{name[:47]}…</td>" in card
    assert f"{name}</td>" not in card


def test_without_a_law_of_the_noise() -> None:
    biased = dpm.mechanisms.JohnsonLindenstrauss(subtract_padding=False)
    found = described(mechanism=biased, delta=1e-6)
    assert found.count_noise is None
    assert found.rows_text.endswith("(noisy)")
    assert np.isfinite(found.mean).all()
    assert np.isnan(found.mean_noise).all()


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
