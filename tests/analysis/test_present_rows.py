"""Counts, means and tests by group where values of the groups or of the target are missing."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
import scipy

import dpmoments as dpm
from dpmoments.analysis.group_means import PresentRows
from support.drawn_releases import without_bisection

RULE: Any = "available"
SCHEMA = dpm.Schema(
    dpm.Categorical("kind", ["a", "b", "c"], RULE),
    dpm.Boolean("smoker", RULE),
    dpm.Numeric("value", 0, 10, RULE, fill=5),
    dpm.Numeric("other", 0, 10, RULE, fill=5),
)


def people(seed: int = 0, n: int = 2_000, apart: float = 3.0, share: float = 0.4) -> pd.DataFrame:
    """Return a table in which each value is missing completely at random."""
    rng = np.random.default_rng([7, seed])
    kind = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    table = pd.DataFrame(
        {
            "kind": kind,
            "smoker": (rng.random(n) < np.where(kind == "a", 0.2, 0.6)).astype(object),
            "value": np.clip(rng.normal(3.5 + apart * (kind == "b"), 1.0), 0.0, 10.0),
            "other": np.clip(rng.normal(5.0, 1.0, n), 0.0, 10.0),
        }
    )
    for name in table:
        table.loc[rng.random(n) < share, name] = None
    return table


def with_gaps(columns: dict[str, np.ndarray], rng: np.random.Generator) -> pa.Table:
    """Return a table in which 40 % of the values of each column are missing."""
    return pa.table({name: pa.array(column, mask=rng.random(len(column)) < 0.4) for name, column in columns.items()})


def noiseless(*tables: pd.DataFrame) -> dpm.MomentRelease:
    parts = [
        dpm.release(table, SCHEMA, rho=1e9, mechanism="gaussian", dataset=f"t{i}", insecure_seed=i)
        for i, table in enumerate(tables)
    ]
    return parts[0] if len(parts) == 1 else dpm.pool(parts)


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_without_noise_groups_are_of_the_rows_that_have_both_values(seeds: tuple[int, ...]) -> None:
    tables = [people(seed) for seed in seeds]
    release, table = noiseless(*tables), pd.concat(tables)
    for by, levels in (("kind", ["a", "b", "c"]), ("smoker", [False, True])):
        both = table[table[by].notna() & table.value.notna()]
        groups = [both.value[both[by] == level].astype(float) for level in levels]
        found = release.group_means(by, ["value"])
        assert found.counts.tolist() == [int((table[by] == level).sum()) for level in levels]
        np.testing.assert_allclose(found.mean[0], [group.mean() for group in groups], atol=1e-3)
        np.testing.assert_allclose(release.anova("value", by).counts, [len(group) for group in groups], atol=0.05)
        answer = release.anova("value", by)
        assert answer.degrees[1] == answer.test.denominator
    pair = ["kind=a", "kind=c"]
    of_pair = [int((table.value.notna() & (table.kind == name[-1])).sum()) for name in pair]
    assert release.t_test("value", "kind", groups=pair).counts.tolist() == of_pair


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_without_noise_cross_tables_are_of_the_rows_that_have_both_values(seeds: tuple[int, ...]) -> None:
    tables = [people(seed) for seed in seeds]
    found, table = noiseless(*tables).cross_table("kind", "smoker"), pd.concat(tables)
    exact = pd.crosstab(table.kind, table.smoker).to_numpy()
    assert found.n_rows == exact.sum() == found.counts.sum()
    assert np.abs(found.counts - exact).max() <= 0.02 * exact.sum()  # margins are those of each column's own rows
    assert found.statistic == pytest.approx(scipy.stats.chi2_contingency(exact, correction=False)[0], rel=1e-3)
    cells = np.array([exact[0], exact[1:].sum(axis=0)])
    _, lower, upper = noiseless(*tables).odds_ratio("smoker", "kind=a")["oddsratio"]
    woolf = 1.96 * np.sqrt((1.0 / cells).sum())
    assert np.log(upper / lower) / 2.0 == pytest.approx(woolf, rel=0.05)


@cache
def _releases() -> list[dpm.MomentRelease]:
    """Return 100 releases of tables without any relation, 40 % of all values missing."""
    schema = dpm.Schema(
        dpm.Categorical("kind", ["a", "b"], RULE),
        dpm.Numeric("value", 0, 10, RULE, fill=5),
        dpm.Numeric("other", 0, 10, RULE, fill=5),
    )
    result = []
    for seed in range(100):
        rng = np.random.default_rng(seed)
        columns = rng.choice(["a", "b"], 2_000), *(np.clip(rng.normal(5.0, 1.0, (2, 2_000)), 0.0, 10.0))
        table = with_gaps(dict(zip(("kind", "value", "other"), columns, strict=True)), rng)
        result.append(dpm.release(table, schema, rho=1_000.0, mechanism="gaussian", insecure_seed=seed))
    return result


def _coverage() -> dict[str, float]:
    inside: dict[str, list[bool]] = {"mean": [], "difference": [], "correlation": [], "slope": []}
    for release in _releases():
        groups = release.group_means("kind", ["value"])
        inside["mean"] += ((groups.lower[0] <= 5.0) & (groups.upper[0] >= 5.0)).tolist()
        apart = groups.differences
        inside["difference"].append(bool(apart.lower[0, 0] <= 0.0 <= apart.upper[0, 0]))
        pairs = release.correlations(["value", "other"])
        inside["correlation"].append(bool(pairs.lower[1, 0] <= 0.0 <= pairs.upper[1, 0]))
        low, high = np.asarray(release.ols("value ~ other").conf_int())[1]
        inside["slope"].append(bool(low <= 0.0 <= high))
    return {name: float(np.mean(values)) for name, values in inside.items()}


@pytest.mark.slow
def test_intervals_hold_with_missing_groups_and_values(monkeypatch: pytest.MonkeyPatch) -> None:
    without_bisection(monkeypatch)
    for name, share in _coverage().items():
        assert 0.93 <= share <= 0.985, name


@pytest.mark.slow
def test_intervals_of_all_rows_are_too_short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: every row counts as one with both values."""
    without_bisection(monkeypatch)
    monkeypatch.setattr(PresentRows, "of", lambda *_: None)
    coverage = _coverage()
    assert max(coverage["mean"], coverage["difference"]) < 0.93


def test_sampling_error_of_a_correlation_is_of_the_rows_with_both_values() -> None:
    """Without noise and at a correlation of 0 it is 1/√n, n the rows with both values: 0.65 of it if all rows counted."""
    table = people(5)
    found = noiseless(table).correlations(["value", "other"])
    both = int((table.value.notna() & table.other.notna()).sum())
    assert abs(found.correlation[1, 0]) < 0.1
    assert found.sampling_noise[1, 0] ** 2 * both == pytest.approx(1.0, abs=0.03)


@pytest.mark.parametrize("seeds", [(0,), (0, 1)])
def test_regressions_state_the_rows_that_have_all_values(seeds: tuple[int, ...]) -> None:
    tables = [people(seed) for seed in seeds]
    release, table = noiseless(*tables), pd.concat(tables)
    pair = int(table[["value", "other"]].notna().all(axis=1).sum())
    fits = [release.ols("value ~ other"), release.ridge("value", ["other"])]
    for fit in fits:
        assert fit.nobs == fit.n_rows == pair
        assert f"about {pair:,} of {len(table):,}" in str(fit)
    assert fits[0].df_resid == pytest.approx(pair - 2, abs=0.5)
    assert f"F(1, {pair - 2:,})" in str(fits[0])
    assert release.anova("value", "kind").degrees[1] == pytest.approx(release.ols("value ~ kind").df_resid, abs=0.01)

    names = ["value", "other", "smoker"]
    fewest = min(int(table[[one, other]].notna().all(axis=1).sum()) for one in names for other in names)
    several = release.ols("value ~ other + smoker")
    assert several.nobs == release.iv("value ~ [other ~ smoker]").nobs == fewest
    assert f"at most {fewest:,} of" in str(several)
    assert any("rows with all values" in remark for remark in several.remarks)


def test_the_sampling_error_of_an_explained_share_is_that_of_draws() -> None:
    """The error of complete rows is a third of it."""
    schema = dpm.Schema(dpm.Numeric("value", 0, 10, RULE, fill=5), dpm.Numeric("other", 0, 10, RULE, fill=5))
    shares, stated = np.zeros(25), np.zeros(25)
    for seed in range(25):
        rng = np.random.default_rng([3, seed])
        other = rng.normal(5.0, 1.0, 1_000)
        value = 5.0 + 0.7 * (other - 5.0) + rng.normal(0.0, 0.7, 1_000)
        table = with_gaps({"value": np.clip(value, 0.0, 10.0), "other": np.clip(other, 0.0, 10.0)}, rng)
        release = dpm.release(table, schema, rho=1e6, mechanism="gaussian", insecure_seed=seed)
        explained = release.ols("value ~ other").explained
        assert explained is not None
        shares[seed], stated[seed] = explained.share, explained.sampling_error
    of_draws = shares.std(ddof=1)
    assert 0.7 * of_draws < stated.mean() < 1.4 * of_draws
    assert 2.0 * np.sqrt(0.5) * 0.5 / np.sqrt(1_000) < 0.4 * of_draws


def test_means_say_whether_they_are_repaired() -> None:
    complete = dpm.Schema(dpm.Categorical("kind", ["a", "b", "c"]), dpm.Numeric("value", 0, 10))
    table = people(share=0.0)[["kind", "value"]].astype({"value": float})
    release = dpm.release(table, complete, epsilon=0.2, mechanism="matrix-laplace", insecure_seed=0)
    as_released = release.with_repair("none")
    assert "means are after repair" in str(release.group_means("kind"))
    assert "after repair" not in str(as_released.group_means("kind"))
    assert "after repair" not in str(noiseless(people()).group_means("kind", ["value"]))
    first, second = (each.group_means("kind") for each in (release, as_released))
    assert not np.allclose(first.mean, second.mean)  # so that it has to be said
    np.testing.assert_array_equal(first.privacy_noise, second.privacy_noise)


def test_standardized_moments_know_rows_without_a_level() -> None:
    release = dpm.release(people(), SCHEMA, epsilon=1e9, mechanism="standardized", insecure_seed=0)
    shares = people()["kind"].value_counts(normalize=True).sort_index()
    np.testing.assert_allclose(release.mean[:3], shares, atol=1e-4)


def test_shares_of_present_values_are_at_most_one() -> None:
    schema = dpm.Schema(dpm.Boolean("smoker", RULE), dpm.Numeric("value", 0, 10, RULE, fill=5))
    table = people(share=0.0, n=200)[["smoker", "value"]]
    for seed in range(6):
        available = dpm.release(table, schema, rho=0.05, mechanism="gaussian", insecure_seed=seed).available
        assert available is not None
        assert (available.shares <= 1.0).all()
