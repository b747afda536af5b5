"""Weighted releases: equal to weighted least squares where there is no noise, and honest about how many rows count."""

from __future__ import annotations

import re
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from dpmoments.audit.verification import checks
from dpmoments.releases.disclosed import ReleaseWarning
from dpmoments.releases.moment_release import WeightedRelease
from dpmoments.releases.statements import unprotected_quantities
from dpmoments.schema.columns import WEIGHT_BITS
from references import survey
from support.file_schema import schema_faults

N, CAP = 4000, 400.0
COLUMNS = (
    dpm.Numeric("income", 0, 100),
    dpm.Numeric("age", 0, 100),
    dpm.Boolean("smoker"),
    dpm.Categorical("region", ["north", "south", "east"]),
)
EXACT = dict(epsilon=1e11, insecure_seed=1)


def people(n: int = N, seed: int = 2) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    age, region = rng.uniform(20, 80, n), rng.choice(["north", "south", "east"], n)
    smoker = rng.random(n) < 0.3
    income = np.clip(20 + 0.3 * age - 5 * smoker + rng.normal(0, 8, n), 0, 100)
    weight = rng.gamma(2.0, 60.0, n) * np.where(region == "east", 0.4, 1.0)
    return pd.DataFrame({"income": income, "age": age, "smoker": smoker, "region": region, "weight": weight})


PEOPLE = people()
SHARES = np.rint(np.minimum(PEOPLE["weight"].to_numpy(), CAP) / CAP * 2**WEIGHT_BITS) / 2**WEIGHT_BITS


def weighted(**options: Any) -> dpm.Schema:
    return dpm.Schema(*COLUMNS, dpm.SamplingWeight("weight", CAP, **options))


@pytest.fixture(scope="module")
def exact() -> dpm.MomentRelease:
    return dpm.release(PEOPLE, weighted(), **EXACT)


@pytest.mark.parametrize("mechanism", ["standardized", "matrix-laplace", "isotropic", "laplace"])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_rows_weights_and_effective_rows(mechanism: str, neighbors: str) -> None:
    released = dpm.release(PEOPLE, weighted(), mechanism=mechanism, neighbors=neighbors, **EXACT)
    assert released.n_rows == N
    assert released.sum_of_weights == pytest.approx(SHARES.sum() * CAP, rel=1e-5)
    assert released.effective_n == pytest.approx(SHARES.sum() ** 2 / (SHARES**2).sum(), rel=3e-4)
    assert released.weight_clipped is None


def test_the_number_of_rows_is_exact_where_the_table_size_is_public() -> None:
    columns = [*COLUMNS[:3], dpm.Categorical("region", ["north", "south", "east"], other="zero")]
    schema = dpm.Schema(*columns, dpm.SamplingWeight("weight", CAP))
    released = dpm.release(PEOPLE, schema, epsilon=1.0, neighbors="replace_one", insecure_seed=1)
    assert (released.n_rows, released.rows_noise, released.describe().count_is_public) == (N, 0.0, True)
    assert not released.count_is_public
    assert released.noise is not None
    assert released.noise.count_variance > 0.0


def test_a_stated_design_effect_of_a_column_multiplies_its_sampling_variance(exact: dpm.MomentRelease) -> None:
    stated = dpm.release(PEOPLE, weighted(design_effect={"income": 9.0}), **EXACT)
    times = 9.0 * exact.effective_n / N
    plain, own = exact.describe(), stated.describe()
    np.testing.assert_allclose(own.sampling_variance[0], times * plain.sampling_variance[0], rtol=1e-3)
    np.testing.assert_allclose(own.sampling_variance[1], plain.sampling_variance[1], rtol=1e-3)
    errors = [r.ols("income", ["age"]).standard_errors for r in (stated, exact)]
    np.testing.assert_allclose(errors[0], np.sqrt(times) * errors[1], rtol=0.01)
    errors = [r.group_means("smoker", ["income"]).sampling_noise for r in (stated, exact)]
    np.testing.assert_allclose(errors[0], np.sqrt(times) * errors[1], rtol=0.01)
    of_term, own = stated.ols("I(income * 2) ~ age"), stated.ols("income ~ age")
    np.testing.assert_allclose(of_term.standard_errors, 2.0 * own.standard_errors, rtol=1e-6)
    of_all = dpm.release(PEOPLE, weighted(design_effect=2.0), **EXACT)
    assert of_all.effective_n == pytest.approx(N / 2.0, rel=1e-6)


def _of_survey(released: dpm.MomentRelease) -> dict[str, tuple[float, float]]:
    """Estimates and sampling errors by the names of the recorded ones."""
    described = released.describe()
    assert described.mean is not None
    found = dict(
        zip(
            described.feature_names, zip(described.mean, np.sqrt(described.sampling_variance), strict=True), strict=True
        )
    )
    for name, answer in (
        ("region=south - region=east", released.estimate(lambda mean, _: mean[2] - mean[0], ["region"])),
        *((name, released.estimate(lambda mean, _: mean[0], [name])) for name in ("smoker", "region=north")),
    ):
        found[name] = answer.value[0], answer.sampling_noise[0]
    ratio = released.odds_ratio("ill", "smoker")
    found["log odds ratio of ill by smoker"] = np.log(ratio.value[0]), ratio.sampling_noise[0] / ratio.value[0]
    for by, groups, name in (
        ("smoker", None, "pay by smoker"),
        ("ill", None, "pay by ill"),
        ("region", ["north", "east"], "pay by region: north - east"),
        ("region", ["south", "east"], "pay by region: south - east"),
    ):
        test = released.t_test("pay", by, groups)
        found[name] = -test.difference, test.sampling_noise
    for regressors, names in (
        (("age", "smoker"), ("pay ~ age", "pay ~ smoker", "pay ~ regionnorth", "pay ~ regionsouth")),
        ((), ("pay by region: north - east", "pay by region: south - east")),
    ):
        fit = released.ols("pay", [*regressors, "region=north", "region=south"])
        found |= dict(zip(names, zip(fit.coefficients, fit.standard_errors, strict=True), strict=True))
    return found


def test_sampling_errors_are_of_r_survey() -> None:
    """Shares within 1 %, means, differences and coefficients 5 %; 12 % of a column that follows the weight (r = .49)."""
    columns = [*(dpm.Numeric(name, 0, 100) for name in ("pay", "age", "heavy")), dpm.Boolean("smoker")]
    levels = dpm.Categorical("region", ["east", "north", "south"])
    schema = dpm.Schema(*columns, dpm.Boolean("ill"), levels, dpm.SamplingWeight("weight", survey.CAP))
    found, recorded = _of_survey(dpm.release(survey.rows(), schema, **EXACT)), survey.KEPT.answers
    assert found.keys() == recorded.keys()
    shares = ("smoker", "ill", "region=", "log odds")
    for name, (value, error) in found.items():
        tolerance = 0.01 if name.startswith(shares) else 0.12 if name == "heavy" else 0.05
        assert value == pytest.approx(recorded[name][0], rel=1e-4), name
        assert error == pytest.approx(recorded[name][1], rel=tolerance), name


@pytest.mark.slow
def test_a_test_of_independence_counts_cells_by_their_weights() -> None:
    """Without noise and without dependence χ² is 1 for each degree, on average over many tables."""
    statistics = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        table = pd.DataFrame({"a": rng.random(500) < 0.1, "b": rng.random(500) < 0.2})
        table["weight"] = np.where(table["a"], 4.0, 1.0) * np.where(table["b"], 1.0, 0.5)
        schema = dpm.Schema(dpm.Boolean("a"), dpm.Boolean("b"), dpm.SamplingWeight("weight", 4.0))
        statistics.append(dpm.release(table, schema, **EXACT).cross_table("a", "b").statistic)
    assert 0.7 <= np.mean(statistics) <= 1.2


def test_tables_are_of_the_population_with_errors_of_noise_and_sampling() -> None:
    """At huge ε errors are those of linearized shares, and of the cap; at ε = 1 the noise comes to them."""
    people = 500_000.0
    release = dpm.release(PEOPLE, weighted(population=people), **EXACT)
    exact = release.cross_table("region", "smoker")
    assert release.weight_clipped is not None
    assert exact.population_counts is not None
    assert exact.population_error is not None
    for i, region in enumerate(["north", "south", "east"]):
        inside = (PEOPLE["region"] == region).to_numpy()
        for j, rows in enumerate([inside & ~PEOPLE["smoker"], inside & PEOPLE["smoker"], inside]):
            share = np.average(rows, weights=SHARES)
            error = people * np.sqrt(((SHARES * (rows - share)) ** 2).sum()) / SHARES.sum()
            assert exact.population_counts[i, j] == pytest.approx(people * share, abs=people / 1500)
            hidden = people * 0.75 * release.weight_clipped * np.sqrt(share * (1.0 - share))
            assert exact.population_error[i, j] == pytest.approx(np.hypot(error, hidden), rel=0.05)
    assert exact.population_counts[-1, -1] == people
    noisy = dpm.release(PEOPLE, weighted(population=people), epsilon=1.0, insecure_seed=1).cross_table(
        "region", "smoker"
    )
    assert noisy.population_error is not None
    scaled = noisy.noise * people / noisy.n_rows
    assert (noisy.population_error[:-1, :-1] >= np.hypot(0.9 * exact.population_error[:-1, :-1], scaled)).all()
    assert "as shares of 500,000 people" in noisy.text()
    assert noisy.table()[-1][-1] == "500,000"
    plain = dpm.release(PEOPLE, weighted(), epsilon=1.0, insecure_seed=1).cross_table("region", "smoker")
    assert plain.population_counts is None
    assert "effective rows" in plain.text()


def test_weight_that_the_cap_took_widens_intervals(exact: dpm.MomentRelease) -> None:
    lost = 0.1
    released = dpm.release(PEOPLE, weighted(population=SHARES.sum() * CAP / (1.0 - lost)), **EXACT)
    assert released.weight_clipped == pytest.approx(lost, abs=1e-4)
    hidden = 1.5 * lost * released.describe().standard_deviation[:2]
    wider = np.ptp(released.describe().conf_int(), axis=1) - np.ptp(exact.describe().conf_int(), axis=1)
    np.testing.assert_allclose(wider[:2], 2 * hidden, rtol=0.01)
    widened, plain = (release.group_means("region", ["income"]) for release in (released, exact))
    np.testing.assert_allclose(plain.lower - widened.lower, hidden[0], rtol=0.02)
    np.testing.assert_allclose(widened.upper - plain.upper, hidden[0], rtol=0.02)


def test_the_public_rule_for_the_cap() -> None:
    schema = dpm.Schema(*COLUMNS, dpm.SamplingWeight("weight", population=100.0 * N, sample_size=N))
    for epsilon, cap in ((1.0, 300.0), (2.5, 500.0)):
        released = dpm.release(PEOPLE, schema, epsilon=epsilon, insecure_seed=1)
        assert released.schema.sampling_weight is not None
        assert released.schema.sampling_weight.upper == cap


def test_a_file_holds_what_was_drawn(tmp_path: Path) -> None:
    released = dpm.release(PEOPLE, weighted(population=120.0 * N), epsilon=1.0, insecure_seed=3)
    released.save(tmp_path / "r.json")
    read = dpm.load(tmp_path / "r.json")
    assert isinstance(read, dpm.MomentRelease)
    assert read.to_dict() == released.to_dict()
    assert (read.effective_n, read.n_rows, read.weight_clipped) == (
        released.effective_n,
        released.n_rows,
        released.weight_clipped,
    )
    assert all(check.passed for check in checks(read))
    np.testing.assert_array_equal(read.correlation, released.correlation)
    assert any("weight" in said for said in unprotected_quantities(read))
    stated = released.as_filed
    told = replace(stated, diagnostics={**stated.diagnostics, "n_rows_noise": 0.0})
    assert WeightedRelease.of(told).rows_noise == released.rows_noise > 0.0, "by the receipt, whatever else a file says"
    without = {name: value for name, value in stated.diagnostics.items() if name != "n_rows"}
    with pytest.raises(ValueError, match="the file was changed"):
        WeightedRelease.of(replace(stated, diagnostics=without))
    few = WeightedRelease.of(replace(stated, diagnostics={**stated.diagnostics, "n_rows": 1.0}))
    assert few.n_rows == round(released.rows_noise or 0.0)


@pytest.mark.long
def test_missing_values_and_groups() -> None:
    table = PEOPLE.assign(score=np.where(np.arange(N) % 5 == 0, np.nan, PEOPLE["age"]))
    score = dpm.Numeric("score", 0, 100, missing="available")
    schema = dpm.Schema(*COLUMNS, score, dpm.SamplingWeight("weight", CAP, population=1e6))
    released, known = dpm.release(table, schema, **EXACT), table["score"].notna()
    assert released.mean[-1] == pytest.approx(np.average(table["score"][known], weights=SHARES[known]), rel=1e-5)
    assert released.n_rows == N
    groups = dpm.release_groups(PEOPLE, weighted(population=1e6), by="region", **EXACT)
    east = PEOPLE["region"] == "east"
    assert groups["east"].mean[0] == pytest.approx(np.average(PEOPLE["income"][east], weights=SHARES[east]), rel=1e-5)
    assert groups["east"].weight_clipped is None


@pytest.mark.long
def test_every_answer_says_that_rows_count_as_independent() -> None:
    released = dpm.release(PEOPLE, weighted(), epsilon=5.0, insecure_seed=3)
    answers = (
        released.describe(),
        released.correlations(),
        released.ols("income", ["age"]),
        released.group_means("region", ["income"]),
        released.t_test("income", "smoker"),
        released.anova("income", "region"),
        released.cross_table("region", "smoker"),
        released.pca(),
    )
    for answer in answers:
        assert "as if rows were drawn independently" in answer.text()


def test_weights_of_the_table_are_warned_of() -> None:
    with pytest.warns(ReleaseWarning, match="computed from the table"):
        released = dpm.release(PEOPLE, weighted(computed_from="table"), epsilon=1.0, insecure_seed=3)
    stated = "the weights of other rows stay"
    assert any(stated in rule.text() for rule in released.privacy.rules)
    assert any("not protected" in rule.text() for rule in released.privacy.rules)


@pytest.mark.slow
def test_a_forecast_says_what_a_stated_design_effect_would_gain() -> None:
    columns = [dpm.Numeric(f"x{index}", 0, 1) for index in range(12)]
    for effect, named in ((None, True), (1.4, False)):
        weight = dpm.SamplingWeight("w", population=3e6, sample_size=3_000, design_effect=effect)
        changes = dpm.forecast(dpm.Schema(*columns, weight), n_rows=3_000, epsilon=1.0).changes
        assert ("design_effect" in [change.kind for change in changes]) is named


def test_preflight_advises_only_rules_that_a_weight_has() -> None:
    lacking = PEOPLE.assign(weight=PEOPLE["weight"].where(PEOPLE.index > 2))
    [said, *_] = dpm.preflight(lacking, weighted()).private_facts()["verdicts"]
    assert "are missing" in said
    assert "Choose drop in the schema" in said


@pytest.mark.parametrize(
    ("attempt", "reason"),
    [
        (lambda s: dpm.release(PEOPLE, s, epsilon=1.0, mean=False), "released with their mean"),
        (lambda s: dpm.release(PEOPLE, s, rho=1.0, mechanism="coinpress"), "does not take sampling weights"),
        (lambda s: dpm.release_mean(PEOPLE, s, epsilon=1.0), "only releases of moments are weighted"),
        (lambda s: dpm.release_counts(PEOPLE, s, by="region", epsilon=1.0), "only releases of moments are weighted"),
        (lambda s: dpm.forecast_mean(s, n_rows=N, epsilon=1.0), "only releases of moments are weighted"),
        (
            lambda s: dpm.release(PEOPLE, s, epsilon=1.0, insecure_seed=1).ols("income ~ weight"),
            "is the sampling weight",
        ),
        (
            lambda s: dpm.pool([dpm.release(PEOPLE, s, epsilon=1.0)] * 1 + [dpm.release(PEOPLE, s, epsilon=1.0)]),
            "pooled",
        ),
    ],
)
def test_what_weights_do_not_go_with_is_refused(attempt: Any, reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        attempt(weighted())


@pytest.mark.long
def test_intervals_hold_the_means_of_the_population() -> None:
    """In 12 releases of samples drawn with unequal chances, 95 % intervals hold nearly as often as they say."""
    population, held = people(60_000, 9), []
    chances = 1.0 / population["weight"].to_numpy()
    chances /= chances.sum()
    weight = dpm.SamplingWeight("weight", population=6e4, sample_size=N)
    truth = population[["income", "age", "smoker"]].to_numpy(float).mean(axis=0)
    for seed in range(12):
        chosen = np.random.default_rng(seed).choice(60_000, N, p=chances)
        sample = population.iloc[chosen].assign(weight=1.0 / (N * chances[chosen]))
        released = dpm.release(sample, dpm.Schema(*COLUMNS, weight), epsilon=2.0, insecure_seed=seed)
        ends = released.describe().conf_int()[:3]
        held.append((ends[:, 0] <= truth) & (truth <= ends[:, 1]))
    assert 0.9 <= np.mean(held) <= 1.0


def test_what_noise_made_negative_stops_no_answer() -> None:
    """The mean weight with one seed, and a variance with the other."""
    columns = (dpm.Numeric("age", 0, 100), dpm.Numeric("income", 0, 100), dpm.Boolean("smoker"))
    schema = dpm.Schema(*columns, dpm.SamplingWeight("weight", CAP))
    raw = dpm.release(people(300), schema, epsilon=0.1, insecure_seed=1).with_repair("none")
    assert isinstance(raw, WeightedRelease)
    assert raw.drawn.mean[-1] < 0.0
    assert np.isfinite(raw.noise.cell_variances()).all()  # type: ignore[union-attr]
    raw.with_repair("auto").ols("income", ["age"])

    raw = dpm.release(people(300), weighted(population=1e5), epsilon=0.1, insecure_seed=0).with_repair("none")
    assert (raw.covariance.diagonal() < 0.0).any()
    found = raw.group_means("region", ["income", "age"])
    assert (found.upper >= found.lower).all()


# Units of a bounded total weight.

UNIT = dpm.PrivacyUnit("household")


def households(n: int, seed: int) -> pd.DataFrame:
    """Households of one to eight members who are alike in age, and less so in income and smoking."""
    rng = np.random.default_rng(seed)
    members = rng.choice(np.arange(1, 9), n, p=[0.3, 0.3, 0.15, 0.12, 0.06, 0.04, 0.02, 0.01])
    of_row = np.repeat(np.arange(n), members)
    shared, weight = rng.normal(0, 1, n)[of_row], rng.gamma(3.0, 30.0, n)[of_row]
    age = np.clip(45 + 12 * shared + 6 * rng.normal(0, 1, len(of_row)), 0, 100)
    income = np.clip(20 + 0.3 * age + rng.normal(0, 8, len(of_row)), 0, 100)
    smoker = rng.random(len(of_row)) < 1 / (1 + np.exp(0.8 - shared))
    return pd.DataFrame(
        {"income": income, "age": age, "smoker": smoker, "region": "north", "weight": weight, "household": of_row}
    )


@pytest.fixture(scope="module")
def of_households() -> tuple[pd.DataFrame, dpm.MomentRelease]:
    table = households(3000, 3)
    schema = dpm.Schema(*COLUMNS[:3], dpm.SamplingWeight("weight", CAP))
    return table, dpm.release(table, schema, privacy_unit=UNIT, **EXACT)


def test_errors_are_those_of_units_whose_rows_are_alike(of_households: tuple[pd.DataFrame, dpm.MomentRelease]) -> None:
    table, released = of_households
    whole = table.groupby("household")["weight"].transform("sum")
    weight = table["weight"] * np.minimum(CAP / whole, 1.0)
    of_unit = weight.groupby(table["household"]).sum()
    assert (whole > CAP).mean() > 0.1
    assert released.n_rows == len(of_unit)
    assert released.sum_of_weights == pytest.approx(weight.sum(), rel=1e-3)
    assert released.effective_n == pytest.approx(of_unit.sum() ** 2 / (of_unit**2).sum(), rel=1e-3)

    found = released.describe()
    for index, name in enumerate(["income", "age", "smoker"]):
        mean = np.average(table[name], weights=weight)
        assert found.mean[index] == pytest.approx(mean, rel=1e-3)
        scores = (weight * (table[name] - mean)).groupby(table["household"]).sum()
        clustered = np.sqrt((scores**2).sum()) / weight.sum()
        stated = np.sqrt(found.sampling_variance[index])
        assert 0.97 * clustered <= stated  # rows of a unit that differ have a smaller error
        assert name != "age" or stated <= 1.2 * clustered
        independent = np.sqrt((weight**2 * (table[name] - mean) ** 2).sum()) / weight.sum()
        assert independent < 0.85 * stated


def test_text_and_file_name_the_unit(of_households: tuple[pd.DataFrame, dpm.MomentRelease], tmp_path: Path) -> None:
    _, released = of_households
    assert "one of each household" in str(released.describe())
    assert "each household were drawn independently" in str(released.ols("income", ["age"]))
    assert "whose weights together count as the cap" in released.privacy.describe()
    path = tmp_path / "release.json"
    released.save(path)
    again = dpm.load(path)
    assert again.privacy.privacy_unit == UNIT
    assert schema_faults(path) == []
    unit = dpm.PrivacyUnit("household", max_rows=1)
    privacy, receipt = replace(again.privacy, privacy_unit=unit), replace(again.receipt, privacy_unit=unit)
    with pytest.raises(ValueError, match="bounded by its weights"):
        replace(again.as_filed, privacy=privacy, receipt=receipt)
    assert str(again.describe()) == str(released.describe())


def test_a_unit_pays_for_one_row(of_households: tuple[pd.DataFrame, dpm.MomentRelease]) -> None:
    table, _ = of_households
    schema = dpm.Schema(*COLUMNS[:3], dpm.SamplingWeight("weight", CAP))
    of_rows = dpm.release(table, schema, epsilon=1.0, insecure_seed=0)
    of_units = dpm.release(table, schema, epsilon=1.0, privacy_unit=UNIT, insecure_seed=0)
    assert of_units.receipt.allowance == of_rows.receipt.allowance


def test_preflight_says_what_rounding_takes_of_units_of_many_rows() -> None:
    table = pd.DataFrame({"age": 50.0, "weight": 1.0, "household": np.repeat(np.arange(20), 3000)})
    schema, shown = dpm.Schema(COLUMNS[1], dpm.SamplingWeight("weight", 1500.0)), StringIO()
    dpm.preflight(table, schema, privacy_unit=UNIT).show(shown)
    released = dpm.release(table, schema, privacy_unit=UNIT, **EXACT)
    lost = re.search(r"the cap takes (\d+)%", shown.getvalue())
    assert lost is not None
    assert released.sum_of_weights == pytest.approx((1 - int(lost[1]) / 100) * 60_000, rel=0.03)
    assert released.sum_of_weights < 0.9 * 20 * 1500


def test_preflight_counts_units_above_the_cap(of_households: tuple[pd.DataFrame, dpm.MomentRelease]) -> None:
    table, released = of_households
    shown = StringIO()
    dpm.preflight(table, dpm.Schema(*COLUMNS[:3], dpm.SamplingWeight("weight", CAP)), privacy_unit=UNIT).show(shown)
    words = " ".join(shown.getvalue().replace("PRIVATE │", "").split())
    whole = table.groupby("household")["weight"].sum()
    assert f"{(whole > CAP).sum():,} of them with a total weight above the cap" in words
    lost = re.search(r"the cap takes (\d+)%", words)
    assert lost is not None
    assert float(lost[1]) == pytest.approx(
        100 * (1 - np.minimum(whole, CAP).sum() / whole.sum()), abs=1.0
    )  # rounded up
    assert f"the effective sample size is {released.effective_n:,.0f}"[:-2] in words
    assert "is also such a bound" not in words
