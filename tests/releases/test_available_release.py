"""Releases with ``missing="available"``: moments of the rows whose values are present."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from dpmoments.audit.verification import checks
from dpmoments.releases.moment_release import AvailableRelease
from dpmoments.rows.encode import encode_columns
from support.said import refused

pytestmark = pytest.mark.long(sets=None)

RULE = "available"


@cache
def people(n: int = 4_000, seed: int = 0, share: float = 0.2) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return a complete table, and one whose values are missing completely at random."""
    rng = np.random.default_rng(seed)
    scores = rng.multivariate_normal(np.zeros(4), np.full((4, 4), 0.6) + 0.4 * np.eye(4), n)
    whole = pd.DataFrame(
        {
            "age": np.clip(35.0 + 10.0 * scores[:, 0], 0.0, 120.0),
            "pay": np.clip(30_000.0 + 8_000.0 * scores[:, 1], 0.0, 100_000.0),
            "smoker": (scores[:, 2] > 0.3).astype(float),
            "region": np.where(scores[:, 3] > 0.5, "north", np.where(scores[:, 3] > -0.5, "south", "east")),
            "height": np.clip(170.0 + 8.0 * scores[:, 0] * scores[:, 1] / 2.0, 120.0, 220.0),
        }
    )
    lacking = whole.copy()
    for name in ("age", "pay", "smoker", "region"):
        lacking.loc[rng.random(n) < share, name] = None
    return whole, lacking


def schema(*more: Any, fill: bool = True, rule: str = RULE) -> dpm.Schema:
    stand_in: dict[str, Any] = {"fill": 28_000.0} if fill and rule == RULE else {}
    return dpm.Schema(
        dpm.Numeric("age", 0, 120, rule, typical=(10, 60)),
        dpm.Numeric("pay", 0, 100_000, rule, weight=2, **stand_in),
        dpm.Boolean("smoker", rule),
        dpm.Categorical("region", ["north", "south", "east"], rule),
        dpm.Numeric("height", 120, 220),
        *more,
    )


def frame_of(table: pd.DataFrame) -> pd.DataFrame:
    """Return the table with a number for each level, NaN where the region is missing."""
    levels = {f"region={name}": (table.region == name).astype(float) for name in ("north", "south", "east")}
    of_levels = pd.DataFrame(levels)
    of_levels[table.region.isna()] = np.nan
    return pd.concat([table[["age", "pay", "smoker"]].astype(float), of_levels, table[["height"]]], axis=1)


def pairwise_covariance(table: pd.DataFrame) -> np.ndarray:
    """Return the covariance of each pair of columns over the rows that have both values."""
    values = table.to_numpy(dtype=float)
    result = np.empty((values.shape[1],) * 2)
    for i, first in enumerate(values.T):
        for j, second in enumerate(values.T):
            both = ~np.isnan(first + second)
            result[i, j] = np.mean((first[both] - first[both].mean()) * (second[both] - second[both].mean()))
    return result


@pytest.mark.parametrize("fill", [True, False])
def test_without_noise_the_moments_are_those_of_complete_pairs(fill: bool) -> None:
    _, lacking = people(400)
    release = dpm.release(lacking, schema(fill=fill), rho=1e9, mechanism="gaussian", repair="none", insecure_seed=0)
    assert isinstance(release, AvailableRelease)
    expected = frame_of(lacking)
    assert release.feature_names == tuple(expected.columns)
    scale = expected.std().to_numpy()
    np.testing.assert_allclose(release.mean / scale, expected.mean() / scale, atol=1e-3)
    covariance = pairwise_covariance(expected)
    np.testing.assert_allclose(
        release.covariance / np.outer(scale, scale), covariance / np.outer(scale, scale), atol=2e-3
    )
    shares = release.available.shares
    np.testing.assert_allclose(shares, expected.notna().mean(), atol=1e-3)


def test_derived_features_are_left_out_with_their_factor() -> None:
    _, lacking = people(500)
    made = schema(dpm.Power("age", 2), dpm.Product("height", "smoker"), dpm.Product("height", "region"))
    release = dpm.release(lacking, made, rho=1e9, mechanism="gaussian", repair="none", insecure_seed=0)
    values = frame_of(lacking)
    expected = [values.age**2, values.height * values.smoker]
    expected += [values.height * values[f"region={name}"] for name in ("north", "south", "east")]
    np.testing.assert_allclose(release.mean[-5:], [each.mean() for each in expected], rtol=1e-3)


@pytest.mark.parametrize("stand_in", [None, 0.0, 100_000.0])
def test_no_encoded_row_is_longer_than_1(stand_in: float | None) -> None:
    """Corners of the bounds with every pattern of missing values."""
    columns = [
        dpm.Numeric("a", 0, 100_000, RULE, fill=stand_in, weight=4),
        dpm.Numeric("b", 0, 1, RULE, typical=(0.9, 1.0)),
        dpm.Boolean("c", RULE),
        dpm.Categorical("d", ["x"], RULE),
        dpm.Power("b", 2),
    ]
    drawn = dpm.Schema(*columns).with_indicators
    corners = np.array(np.meshgrid([0.0, 1e5, np.nan], [0.0, 1.0, np.nan], [0.0, 1.0, np.nan], [0.0, np.nan])).reshape(
        4, -1
    )
    cells = dict(zip("abc", corners, strict=False)) | {"d": np.where(np.isnan(corners[3]), None, "x").astype(object)}
    rows = encode_columns(cells, drawn, mean=True)
    assert np.isfinite(rows).all()
    assert np.linalg.norm(rows, axis=1).max() <= 1.0 + 1e-12
    # and it is attained: no noise is wasted
    assert np.linalg.norm(rows, axis=1).max() >= 0.99


def _ratios(made: list[dpm.MomentRelease], law: Any) -> np.ndarray:
    """Return actual over stated noise SDs of means, variances and covariances, over releases of one table."""
    d = len(made[0].feature_names)
    about = np.array([release.noisy_sum / release.noisy_count for release in made]).mean(axis=0)
    first, second = np.triu_indices(d)
    columns = np.array([name.partition("=")[0] for name in made[0].feature_names])
    apart = (columns[first] != columns[second]) | (columns[first] != "region")  # one level is where another is not
    first, second = first[apart], second[apart]
    actual = np.array(
        [
            [
                *(release.noisy_sum - about * release.noisy_count),
                *(
                    release.noisy_gram
                    - np.outer(about, release.noisy_sum)
                    - np.outer(release.noisy_sum, about)
                    + release.noisy_count * np.outer(about, about)
                )[first, second],
            ]
            for release in made
        ]
    )
    stated = law.about(-about)
    sizes = np.sqrt(np.append(stated.sum_variances, stated.cell_variances()[1:, 1:][first, second]))
    return actual.std(axis=0) / sizes


def test_noise_is_as_large_as_stated() -> None:
    _, lacking = people(500, seed=5, share=0.1)
    options: dict[str, Any] = dict(rho=0.45, mechanism="gaussian", repair="none")
    made = [dpm.release(lacking, schema(), insecure_seed=seed, **options) for seed in range(100)]
    ratios = _ratios(made, made[0].noise)
    assert 0.85 < np.median(ratios) < 1.1
    assert ratios.min() > 0.65  # variances: stated too large by the share of missing values
    assert ratios.max() < 1.3
    # planted fault: the noise on the numbers of missing values is forgotten
    assert _ratios(made, made[0].drawn.noise.restricted(range(len(made[0].feature_names)))).max() > 1.3


def test_file_holds_what_was_drawn(tmp_path: Any) -> None:
    _, lacking = people(500)
    release = dpm.release(lacking, schema(), epsilon=1.0, insecure_seed=0)
    path = tmp_path / "people.json"
    release.save(path)
    content = release.to_dict()
    assert content["features"]["names"][-3:] == ["age (missing)", "pay (missing)", "smoker (missing)"]
    assert [column["name"] for column in content["schema"]["columns"]] == list(release.schema.names)
    again = dpm.load(path)
    assert isinstance(again, AvailableRelease)
    assert np.array_equal(again.covariance, release.covariance)
    assert again.to_dict() == release.to_dict()
    assert all(check.passed is not False for check in checks(again))
    assert np.array_equal(again.with_repair("clip").with_repair("auto").mean, release.mean)


def test_groups_and_pools_have_moments_of_present_values() -> None:
    _, lacking = people(3_000)
    groups = dpm.release_groups(lacking, schema(), by="region", epsilon=500.0, insecure_seed=0)
    pooled = dpm.pool(list(groups.values()))
    assert isinstance(groups["north"], AvailableRelease)
    np.testing.assert_allclose(groups["north"].mean[0], lacking[lacking.region == "north"].age.mean(), rtol=0.01)
    assert pooled.present is not None
    np.testing.assert_allclose(
        pooled.present[:2], lacking[lacking.region.notna()][["age", "pay"]].notna().mean(), atol=0.02
    )
    np.testing.assert_allclose(pooled.mean[0], lacking[lacking.region.notna()].age.mean(), rtol=0.01)


def test_refusals_before_anything_is_spent() -> None:
    _, lacking = people(50)
    with refused("the rule 'available' for missing values of a column needs the mean"):
        dpm.release(lacking, schema(), epsilon=1.0, mean=False)
    with refused("has missing='available', which needs the number of present"):
        dpm.release_mean(lacking, schema(), epsilon=1.0)
    for bad in (
        lambda: dpm.Schema(dpm.Numeric("a", 0, 1, RULE), dpm.Numeric("b", 0, 1), row_norm=1.1),
        lambda: dpm.Numeric("a", scale=(1, 10), missing=RULE),
        lambda: dpm.Boolean("a", RULE, fill=True),
        lambda: dpm.Schema(dpm.Numeric("a", 0, 1, RULE), dpm.Numeric("b", 0, 1, RULE), dpm.Product("a", "b")),
        lambda: dpm.Schema(dpm.Numeric("a", 0, 1, RULE), dpm.Numeric("a (missing)", 0, 1)).with_indicators,
    ):
        with pytest.raises(ValueError):
            bad()
