"""What a description says of releases with and without a mean, a count, and a law of the noise."""

from __future__ import annotations

import datetime as dt
import math
from dataclasses import replace
from functools import cache
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from contracts.analyses import FEATURES, records, released
from contracts.cases import run_plan
from dpmoments.analysis.answers import rounded
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.privacy.entropy import insecure_generator
from dpmoments.rows.rows import Rows


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


def test_a_public_count() -> None:
    schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Boolean("employed"))
    told = dpm.release(records(), schema, epsilon=1.0, neighbors="replace_one")
    assert told.describe().rows_text == "4,000 (public, exact)"
    assert (told.describe().count_is_public, told.describe().count_noise) == (True, 0.0)
    # a rule of the schema can drop rows
    found = described(neighbors="replace_one")
    assert found.rows_text.startswith(f"{found.n_rows:,} ± ")
    # public from elsewhere than the table, beside a second moment alone
    found = described(mean=False, n_rows=4_000)
    assert found.rows_text == "4,000 (public, exact)"


def test_without_a_mean() -> None:
    release = released(epsilon=1.0, repair="auto", mean=False, neighbors="replace_one")
    found = release.describe()
    assert found.mean is None
    assert found.standard_deviation is None
    np.testing.assert_array_equal(found.root_mean_square, np.sqrt(np.diag(release.second_moment)))
    assert np.isnan(found.mean_noise).all()
    assert found.noise_text == ""
    assert found.table()[0][3] == "root mean square"
    assert found.to_dict()["mean_noise"] == [None] * len(FEATURES)


def test_without_a_count() -> None:
    found = described(mean=False)
    assert (found.n_rows, found.count_noise, found.count_is_public) == (None, None, False)
    assert found.rows_text.startswith("not released")
    assert {row[1:] for row in found.table()[1:]} == {("–", "–", "–", "–")}
    assert found.to_dict()["root_mean_square"] == [None] * len(FEATURES)


def test_without_a_law_of_the_noise() -> None:
    biased = dpm.mechanisms.JohnsonLindenstrauss(subtract_padding=False)
    found = described(mechanism=biased, delta=1e-6)
    assert found.count_noise is None
    assert found.rows_text.endswith("(noisy)")
    assert np.isfinite(found.mean).all()
    assert np.isnan(found.mean_noise).all()


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("options", [dict(epsilon=2.0), dict(rho=1.0)], ids=["matrix-laplace", "gaussian"])
def test_noise_on_the_mean_is_that_of_repeated_releases(neighbors: str, options: dict[str, Any]) -> None:
    """Rows far from the middle of their bounds, where the noise on the count moves the mean as much as that on the sum."""
    rng = np.random.default_rng(0)
    table = np.column_stack([rng.uniform(88.0, 90.0, 1000), rng.uniform(-1.0, 1.0, 1000), rng.uniform(9e4, 1e5, 1000)])
    schema = dpm.Schema(dpm.Numeric("age", 10, 90), dpm.Numeric("score", -1, 1), dpm.Numeric("income", 0, 1e5))
    additive = dpm.mechanisms.Auto(rule="least-error")
    released_once = dpm.release(
        table, schema, neighbors=neighbors, repair="none", mechanism=additive, insecure_seed=0, **options
    )
    n_rows = len(table) if neighbors == "replace_one" else None
    shape = MomentShape.of(schema, mean=True, n_rows=n_rows)
    plan = make_mechanism(released_once.mechanism).plan(shape, released_once.privacy.budget, neighbors)
    assert plan.model is not None
    assert released_once.noise_model is not None
    assert plan.model.to_dict() == released_once.noise_model.to_dict()
    rows, generator = Rows.of(table, schema, neighbors=neighbors), insecure_generator(1)
    read_once = SimpleNamespace(n_features=3, neighbors=rows.neighbors, schema=schema, moments=cache(rows.moments))
    releases = []
    for _ in range(1000):
        noisy = run_plan(plan, read_once, generator)  # type: ignore[arg-type]
        moments = dict(noisy_count=noisy.count, noisy_sum=noisy.sum, noisy_gram=noisy.gram)
        releases.append(replace(released_once, **moments))
    means = np.array([release.mean for release in releases])
    observed = means.std(axis=0, ddof=1)
    stated = np.mean([release.describe().mean_noise for release in releases[:100]], axis=0)
    np.testing.assert_allclose(stated, observed, rtol=0.1)
    standard_error = observed / np.sqrt(len(means)) + 1e-4 * released_once.encoding.scale
    assert (np.abs(means.mean(axis=0) - table.mean(axis=0)) < 4.5 * standard_error).all()
    law = releases[0].noise
    assert law is not None
    of_the_sum = np.sqrt(law.sum_variances) / 1000 * releases[0].encoding.scale
    if neighbors == "replace_one":
        np.testing.assert_allclose(stated, of_the_sum, rtol=1e-12)
    else:
        # planted fault: the noise of the count left out
        assert (observed[[0, 2]] > 1.25 * of_the_sum[[0, 2]]).all()


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
        (dict(neighbors="replace_one", mean=False), False),
        (dict(neighbors="add_remove"), False),
        (dict(neighbors="add_remove", mean=False), False),
        (dict(neighbors="add_remove", mean=False, n_rows=4_000), True),
    ],
)
def test_when_a_count_is_public(options: dict[str, Any], public: bool) -> None:
    release = released(epsilon=1.0, **options)
    assert release.count_is_public is public
    assert release.describe().count_is_public is public


def test_the_relation_says_whether_the_count_is_public() -> None:
    for relation in dpm.Neighbors:
        assert not relation.count_is_public(drops_rows=True)
        assert relation.count_is_public(drops_rows=False) == relation.table_size_is_public
    assert dpm.Neighbors.REPLACE_ONE.table_size_is_public
    assert not dpm.Neighbors.ADD_REMOVE.table_size_is_public


def test_a_deviation_is_noise_if_no_more_is_known_than_its_bounds_say() -> None:
    """A deviation is at most half of what is between the bounds; a variance below 0 is a deviation of 0."""
    found = dpm.release(np.zeros((50, 1)), dpm.Schema(dpm.Numeric("x", 0, 8)), epsilon=1e6, insecure_seed=0).describe()
    for deviation, noise, hidden in (
        (2.0, 1.9, False),
        (2.0, 2.1, False),
        (9.0, 3.9, False),
        (9.0, 4.1, True),
        (math.nan, 0.5, False),
        (math.nan, 4.0, True),
        (0.0, 0.0, False),
    ):
        numbers = {"standard_deviation": deviation, "standard_deviation_noise": noise, "deviation_below": 0.0}
        changed = replace(found, **{name: np.array([number]) for name, number in numbers.items()})
        assert changed.standard_deviation_is_noise == [hidden]


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


def test_a_share_that_noise_hides_is_shown_as_below_its_largest_value() -> None:
    """Not as a bare 0; among many empty levels none is called a number by chance."""
    rng = np.random.default_rng(0)
    levels = [f"l{index}" for index in range(40)]
    few = rng.choice(levels, 20_000, p=[0.5, 0.3, *[0.2 / 8] * 8, *[0.0] * 30])
    schema = dpm.Schema(dpm.Categorical("level", levels), dpm.Numeric("x", 0, 1))
    shown_as_numbers = 0
    for seed in range(12):
        release = dpm.release(
            pa.table({"level": few, "x": rng.random(20_000)}), schema, epsilon=0.5, insecure_seed=seed
        )
        found = release.describe()
        cells = [row[1] for row in found.table()[1:-1]]
        upper = np.maximum(found.conf_int()[:, 1], found.mean_noise)[:-1]
        below = np.array([cell.startswith("below ") for cell in cells])
        assert not below[:2].any()
        hidden = np.array(found.mean_is_noise)[:-1]
        np.testing.assert_array_equal(below, found.share_is_unclear[:-1] & ~hidden)
        assert all(
            float(cell[6:]) == pytest.approx(end, rel=0.06)
            for cell, end in zip(cells, upper, strict=True)
            if cell[0] == "b"
        )
        shown_as_numbers += int((~below[10:]).any())
        assert "“below”: noise does not distinguish" in str(found)
        assert found["level=l39"].table()[1][1] == cells[39]
    assert shown_as_numbers <= 2
