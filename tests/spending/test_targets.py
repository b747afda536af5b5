"""Releases with targets: what their steps spend and find, what is refused, and what answers print of them."""

from __future__ import annotations

import json
import warnings
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.analysis.refined_regression import (
    TARGETS,
    ClippedResiduals,
    RefinedRegression,
    has_long_tails,
    refined_targets,
)
from dpmoments.audit.replay import replay_everywhere, replay_on_any_table
from dpmoments.audit.verification import checks
from dpmoments.ledger.accounts import losses_of
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.mechanisms.share_for_targets import RELEASE_SHARE
from dpmoments.noise import insecure_generator
from dpmoments.planning.imagined_release import ReleasePlan
from dpmoments.planning.refined_targets import refining
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.accounting import PURE_SHARE, Loss, LossUnit, allowance
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PartFilter, PrivacyFilter, PrivacyFilterError
from dpmoments.privacy.laws import DiscreteLaplace, GaussianDraw
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.sensitivity import count_l1, row_sum_l2
from dpmoments.privacy.unit import Neighbors
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.repair.repair import Repair
from dpmoments.rows.rows import Rows
from dpmoments.spending.targets import STEPS, TargetsPlan, WithTargets, signal_in
from support.drawn_releases import planted
from support.said import codes, refused, warned

RNG = np.random.default_rng(7)
N = 4000
AGE, SCORE = RNG.uniform(20.0, 80.0, N), RNG.uniform(0.0, 1.0, N)
REGION = RNG.choice(["north", "south", "east"], N)
FRAME = pd.DataFrame(
    {
        "age": AGE,
        "score": SCORE,
        "region": REGION,
        "income": AGE + 30.0 * SCORE + 5.0 * (REGION == "south") + RNG.normal(0.0, 4.0, N),
    }
)
SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100),
    dpm.Numeric("score", 0, 1),
    dpm.Categorical("region", ["north", "south", "east"]),
    dpm.Numeric("income", 0, 200),
)


def released(**options: Any) -> MomentRelease:
    chosen = {"rho": 0.5, "targets": ["income"], "insecure_seed": 0, **options}
    return dpm.release(FRAME, SCHEMA, **chosen)


RELEASE = released()


def test_the_receipt_holds_every_step_and_the_whole_budget() -> None:
    for release in (RELEASE, released(rho=None, epsilon=1.0, delta=1e-6, mechanism="gaussian")):
        steps = [draw for draw in release.receipt.draws if draw.what.code == "residual-products"]
        assert len(steps) == STEPS
        assert release.receipt.exhausts
        spent = sum(float(draw.loss.amount) for draw in steps) / float(release.receipt.allowance.amount)
        assert spent == pytest.approx(1.0 - RELEASE_SHARE)
        assert [check for check in checks(release) if check.passed is not True] == []


def test_without_noise_to_speak_of_they_are_least_squares() -> None:
    fit = released(rho=1e9, mechanism="gaussian").ridge("income")
    columns = [np.ones(N), AGE, SCORE, *(level == REGION for level in ("north", "south", "east"))]
    names = ["(intercept)", "age", "score", "region=north", "region=south", "region=east"]
    kept = [index for index, name in enumerate(names) if name in fit.names]
    exact = np.linalg.lstsq(np.column_stack(columns)[:, kept], FRAME["income"], rcond=None)[0]
    np.testing.assert_allclose(fit.params.to_numpy(), exact, rtol=2e-3, atol=2e-3)
    assert fit.refined
    assert fit.clipping.share < 1e-3


def test_they_are_nearer_than_those_of_the_moments() -> None:
    exact = np.linalg.lstsq(np.column_stack([np.ones(N), AGE, SCORE, REGION == "south"]), FRAME["income"], rcond=None)[
        0
    ]
    errors = {
        with_targets: [
            abs(
                released(insecure_seed=seed, targets=["income"] if with_targets else []).ridge("income").params["age"]
                - exact[1]
            )
            for seed in range(3)
        ]
        for with_targets in (True, False)
    }
    assert np.median(errors[True]) < 0.5 * np.median(errors[False])


def test_other_regressions_are_those_of_the_moments() -> None:
    moments = replace(RELEASE, diagnostics={key: value for key, value in RELEASE.diagnostics.items() if key != TARGETS})
    for formula in ("income ~ age", "income ~ 0 + age + score"):
        assert not RELEASE.ols(formula).refined
        np.testing.assert_array_equal(RELEASE.ols(formula).coefficients, moments.ols(formula).coefficients)
    assert str(RELEASE.lasso("income")) == str(moments.lasso("income"))
    assert str(RELEASE.ridge("income", alpha=0.1)) == str(moments.ridge("income", alpha=0.1))
    assert "refined" in RELEASE.ridge("income").heading[0]


def test_least_squares_of_a_target_has_the_intervals_of_its_steps() -> None:
    moments = replace(RELEASE, diagnostics={key: value for key, value in RELEASE.diagnostics.items() if key != TARGETS})
    fit, line, before = RELEASE.ols("income"), RELEASE.ridge("income"), moments.ols("income")
    assert fit.refined
    assert "refined" in fit.heading[0]
    assert (fit.standard_errors < before.standard_errors).all()
    assert fit.standard_errors[0] < 0.7 * before.standard_errors[0]
    np.testing.assert_allclose(fit.coefficients, line.coefficients, atol=0.7 * fit.standard_errors.max())
    assert (np.abs(fit.coefficients - line.coefficients) < fit.standard_errors).all()
    assert fit.p_value_of_fit == line.p_value_of_fit
    assert fit.r_squared == pytest.approx(line.r_squared, abs=0.02)
    exact = np.linalg.lstsq(
        np.column_stack([np.ones(N), AGE, SCORE, REGION == "north", REGION == "south"]), FRAME["income"], rcond=None
    )[0]
    assert (np.abs(fit.params - exact) < 2.5 * fit.bse).all()
    assert fit.t_test("age = 1").pvalue[0] > 0.01
    np.testing.assert_allclose(fit.get_prediction(FRAME[:5]).predicted_mean, fit.predict(FRAME[:5]))


def test_least_squares_leaves_out_levels_of_too_few_rows_that_the_steps_refined() -> None:
    """The answer is of all levels: it has the products with the others."""
    region = np.where(np.arange(N) < 6, "west", REGION)
    schema = dpm.Schema(*(column for column in SCHEMA.columns if column.name != "region"))
    schema = dpm.Schema(*schema.columns, dpm.Categorical("region", ["north", "south", "east", "west"]))
    frame = FRAME.assign(region=region)
    release = dpm.release(frame, schema, rho=0.5, targets=["income"], insecure_seed=0)
    fit, line = release.ols("income"), release.ridge("income")
    assert fit.too_few == ("region=west",)
    assert fit.refined
    assert line.refined
    assert set(line.features) - set(fit.features) == {"region=west"}
    assert fit.p_value_of_fit == line.p_value_of_fit
    without = replace(release, diagnostics={key: value for key, value in release.diagnostics.items() if key != TARGETS})
    assert (fit.bse < without.ols("income").bse).all()
    kept = [column for column in fit.features if "=" in column]
    design = np.column_stack([np.ones(N), AGE, SCORE, *(region == name.partition("=")[2] for name in kept)])
    exact = dict(zip(["age", "score", *kept], np.linalg.lstsq(design, FRAME["income"], rcond=None)[0][1:], strict=True))
    for name, value in exact.items():
        assert abs(fit.params[name] - value) < 3.0 * fit.bse[name]
    np.testing.assert_allclose(line.predict(frame[6:50]), fit.predict(frame[6:50]), atol=0.2)


def test_steps_that_clip_the_rows_that_decide_a_fit_are_taken_back() -> None:
    """A few far rows off the line: released moments have them whole, the steps clipped."""
    rng = np.random.default_rng(0)
    x = np.concatenate([rng.normal(0.0, 2.0, N), rng.uniform(60.0, 100.0, 40)])
    y = np.concatenate([0.5 * x[:N] + rng.normal(0.0, 2.0, N), rng.uniform(-100.0, 0.0, 40)])
    schema = dpm.Schema(*(dpm.Numeric(name, -100, 100) for name in "xyz"))
    table = pa.table({"x": x, "y": y, "z": rng.normal(0.0, 2.0, N + 40)})
    release = dpm.release(table, schema, rho=5.0, targets=["y"], mechanism="gaussian", insecure_seed=0)
    assert isinstance(release, MomentRelease)
    line, fit = release.ridge("y"), release.ols("y")
    moments = replace(release, diagnostics={})
    np.testing.assert_allclose(line.coefficients, moments.ridge("y").coefficients, rtol=1e-9)
    assert line.intercept == pytest.approx(moments.ridge("y").intercept)
    np.testing.assert_array_equal(fit.coefficients, moments.ols("y").coefficients)
    assert "rows that decide the fit" in " ".join(str(line).split())
    assert "rows that decide the fit" in fit.warning
    with planted(TargetsPlan._refined, "if refined.contradicts", "if False and refined.contradicts"):
        kept = dpm.release(table, schema, rho=5.0, targets=["y"], mechanism="gaussian", insecure_seed=0)
    assert abs(kept.ridge("y").params["x"] - line.params["x"]) > 0.1


def test_steps_that_show_only_noise_leave_the_fit_of_the_release_and_say_so() -> None:
    """Where refining does not pay the slopes are those of the release without it."""
    rng = np.random.default_rng(3)
    table = pa.table({name: rng.uniform(0, 1, 2_000) for name in ("a", "b", "c", "y")})
    schema = dpm.Schema(*(dpm.Numeric(name, 0, 1) for name in table.column_names))
    said: dict[float, list[str]] = {0.0: [], 0.5: [], 1.0: []}
    for seed in range(12):
        release = dpm.release(table, schema, rho=0.02, targets=["y"], insecure_seed=seed)
        assert isinstance(release, MomentRelease)
        kept = release.diagnostics[TARGETS][0]["kept"]
        fit = release.ridge("y")
        moments = replace(release, diagnostics={})
        same = np.allclose(fit.coefficients, moments.ridge("y").coefficients, rtol=1e-9, atol=1e-12)
        assert same is (kept == 0.0)
        assert fit.refined is (kept > 0.0)
        assert isinstance(fit.clipping, ClippedResiduals) is fit.refined
        said[0.0 if kept == 0.0 else 0.5 if kept < 0.995 else 1.0].append(str(fit))
    assert len(said[0.0]) >= 2
    assert len(said[0.5]) >= 2
    assert all("show nothing but noise" in " ".join(text.split()) for text in said[0.0])
    assert all("was taken back as noise" in " ".join(text.split()) for text in said[0.5])


def test_noise_is_taken_back_most_where_little_can_be_missing() -> None:
    """The law: signals of variance s·p in the coordinates, noise of variance 4 in each."""
    rng, noise, lacking = np.random.default_rng(0), 4.0, np.array([40.0] * 3 + [0.5] * 17)
    signals = rng.normal(0.0, np.sqrt(lacking), (500, 20))
    changes = signals + rng.normal(0.0, np.sqrt(noise), signals.shape)

    def error(profile: np.ndarray) -> float:
        left = np.array([signal_in(change, noise, profile) for change in changes])
        return float(np.mean(np.sum((left - signals) ** 2, axis=1)))

    least = float(np.sum(lacking * noise / (lacking + noise)))  # the posterior variances
    assert least < error(7.0 * lacking) < 1.3 * least
    assert error(np.ones(20)) > 2.0 * least  # one share for all
    assert error(1.0 / lacking) > 2.0 * least
    of_noise = np.array([signal_in(change, noise, lacking) for change in rng.normal(0.0, 2.0, (500, 20))])
    assert np.mean(np.sum(of_noise**2, axis=1)) < 0.15 * 20 * noise
    assert 0.3 < np.mean(~of_noise.any(axis=1)) < 0.9
    np.testing.assert_allclose(signal_in(1e6 * changes[0], noise, lacking), 1e6 * changes[0], rtol=1e-6)
    assert not signal_in(np.zeros(20), noise, lacking).any()


def test_refined_coefficients_start_at_those_of_all_levels(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rare ones too. If nothing is kept of what the steps changed, they are those of ridge."""
    rng = np.random.default_rng(2)
    kind = rng.choice(["a", "b", "c", "rare"], 3_000, p=[0.6, 0.3, 0.0985, 0.0015])
    frame = pd.DataFrame({"kind": kind, "x": rng.uniform(0, 1, 3_000), "y": rng.uniform(0, 1, 3_000)})
    kinds = dpm.Categorical("kind", ["a", "b", "c", "rare"])
    schema = dpm.Schema(kinds, dpm.Numeric("x", 0, 1), dpm.Numeric("y", 0, 1))
    for keeps in (True, False):
        if not keeps:
            monkeypatch.setattr("dpmoments.spending.targets.signal_in", lambda change, *_: 0.0 * change)
        release = dpm.release(frame, schema, rho=0.02, targets=["y"], insecure_seed=0)
        fit, moments = release.ridge("y"), replace(release, diagnostics={}).ridge("y")
        assert moments.too_few == ("kind=rare",)
        assert fit.refined is keeps
        assert ("average level" in str(fit)) is not keeps
        assert fit.features == moments.features
        assert np.allclose(fit.coefficients, moments.coefficients, rtol=1e-9) is not keeps


def test_where_columns_have_long_tails_intervals_are_those_of_the_moments() -> None:
    """Most of what clipping takes from the answer would be in the longest rows."""
    rng, n = np.random.default_rng(8), 20_000
    columns = {f"x{i}": np.where(rng.random(n) < 0.8, 0.0, rng.lognormal(0, 1, n)).clip(0, 100) for i in range(4)}
    columns["y"] = (0.1 * sum(columns.values()) + rng.normal(0.5, 0.1, n)).clip(0, 100)
    schema = dpm.Schema(*(dpm.Numeric(name, 0, 100) for name in columns))
    release = dpm.release(pa.table(columns), schema, rho=0.5, targets=["y"], insecure_seed=0)
    far = 10.0 * rng.standard_normal((n, 5)) / np.sqrt(rng.chisquare(3, (n, 1)))
    together = pa.table({name: np.clip(column, -100, 100) for name, column in zip(columns, far.T, strict=True)})
    schema = dpm.Schema(*(dpm.Numeric(name, -100, 100) for name in columns))
    unmarked = dpm.release(together, schema, rho=0.5, targets=["y"], insecure_seed=0)
    assert any(release.describe().clipped)
    assert not any(unmarked.describe().clipped)
    for each in (release, unmarked):
        fit = each.ols("y")
        assert has_long_tails(each)
        assert not fit.refined
        assert "long tails" in fit.warning
        assert each.ridge("y").refined
    assert not has_long_tails(RELEASE)


def test_features_in_another_order_have_the_same_coefficients() -> None:
    fit = RELEASE.ridge("income")
    order = RELEASE.ridge("income", ["region", *(name for name in fit.features if "=" not in name)][::-1])
    assert order.refined
    pd.testing.assert_series_equal(order.params[fit.params.index], fit.params, rtol=1e-6)
    fit, order = RELEASE.ols("income"), RELEASE.ols("income", order.features)
    assert order.refined
    for name in ("params", "bse", "pvalues"):
        pd.testing.assert_series_equal(getattr(order, name)[fit.params.index], getattr(fit, name), rtol=1e-4)


def test_the_file_holds_them(tmp_path: Path) -> None:
    RELEASE.save(tmp_path / "release.json")
    loaded = dpm.load(tmp_path / "release.json")
    assert isinstance(loaded, MomentRelease)
    assert str(loaded.ridge("income")) == str(RELEASE.ridge("income"))
    assert str(loaded.ols("income")) == str(RELEASE.ols("income"))
    assert [check for check in checks(loaded) if check.passed is not True] == []


@pytest.mark.parametrize(
    ("entry", "value", "code"),
    [
        ("features", ["age"], "refined-whitening"),
        ("features", [], "refined-features"),
        ("target", "age", "refined-features"),
        ("clipped_error", 0.0, "refined-number"),
        ("clipped", None, "refined-number"),
        ("kept", 1.5, "refined-number"),
        ("moved", 0.0, "unknown-entries"),
        ("answer", None, "refined-features"),
        ("answer.line", [1.0], "not-finite-numbers"),
        ("answer.products", None, "not-finite-numbers"),
        ("answer.error", 0.0, "refined-number"),
        ("answer.clip", -1.0, "refined-number"),
        ("answer.other", 1.0, "unknown-entries"),
        ("center", [1.0], "not-finite-numbers"),
        ("square", 1.0, "unknown-entries"),
    ],
)
def test_a_file_with_another_entry_is_refused(entry: str, value: object, code: str) -> None:
    content = json.loads(json.dumps(RELEASE.to_dict()))
    place = content["diagnostics"][TARGETS][0]
    for key in entry.split(".")[:-1]:
        place = place[key]
    place[entry.split(".")[-1]] = value
    with refused(code):
        MomentRelease.from_dict(content)


@pytest.mark.parametrize("smaller", [("error",), ("clip",), ("error", "clip", "clipped_error"), ("clipped_error",)])
def test_a_file_that_states_less_noise_than_its_steps_drew_fails_verification(smaller: tuple[str, ...]) -> None:
    diagnostics = json.loads(json.dumps({TARGETS: RELEASE.diagnostics[TARGETS]}))
    for entry in smaller:
        place = diagnostics[TARGETS][0]
        place = place if entry in place else place["answer"]
        place[entry] *= 0.9
    edited = replace(RELEASE, diagnostics={**RELEASE.diagnostics, **diagnostics})
    failed = [check.what for check in checks(edited) if check.passed is False]
    assert failed == ["noise as the stated budget calls for"]


def test_a_file_without_the_steps_of_its_target_fails_verification() -> None:
    lost = replace(RELEASE, diagnostics={key: value for key, value in RELEASE.diagnostics.items() if key != TARGETS})
    assert any(check.passed is False for check in checks(lost))


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"rho": None, "epsilon": 1.0}, "targets-need-delta"),
        ({"targets": ["incme"]}, "unknown-feature"),
        ({"targets": ["income", "income"]}, "feature-twice"),
        ({"mean": False}, "targets-need-mean"),
        *(
            ({"mechanism": name, "rho": None, "epsilon": 1.0, "delta": 1e-6}, "targets-need-gaussian-noise")
            for name in ("additive-wishart", "laplace", "isotropic")
        ),
    ],
)
def test_what_cannot_be_refined_is_refused_before_a_row_is_read(options: dict[str, Any], code: str) -> None:
    with refused(code):
        released(**options)


@pytest.mark.parametrize(
    "options",
    [
        {"rho": 0.5},
        {"epsilon": 1.0, "delta": 1e-6},
        {"epsilon": 1.0, "delta": 1e-6, "neighbors": "replace_one"},
        {"epsilon": 3.0, "delta": 1e-6, "privacy_unit": dpm.PrivacyUnit("person", max_rows=2)},
    ],
)
def test_a_forecast_has_the_noise_of_the_moments_that_the_release_will_have(options: dict[str, Any]) -> None:
    table = dpm.forecast(SCHEMA, n_rows=N, targets=["income"], mechanism="gaussian", **options)
    release = dpm.release(
        FRAME.assign(person=np.arange(N) // 2) if "privacy_unit" in options else FRAME,
        SCHEMA, targets=["income"], mechanism="gaussian", insecure_seed=0, **options,
    )  # fmt: skip
    assert release.noise is not None
    expected = release.noise.cell_variances()
    np.testing.assert_allclose(table.noise_of("gaussian").release.noise.cell_variances(), expected, rtol=1e-6)
    without = dpm.forecast(SCHEMA, n_rows=N, **options).noise_of("gaussian").release.noise.cell_variances()
    np.testing.assert_allclose(RELEASE_SHARE * expected, without, rtol=1e-6)
    assert "25% of ρ refines coefficients of income" in table.text()
    assert table["laplace"].short_refusal == "targets need Gaussian noise"
    assert table.to_dict()["targets"] == ["income"]


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"epsilon": 1.0}, "targets-need-delta"),
        ({"rho": 1.0, "targets": ["incme"]}, "unknown-feature"),
        ({"rho": 1.0, "mean": False}, "targets-need-mean"),
    ],
)
def test_a_forecast_refuses_what_the_release_would(options: dict[str, Any], code: str) -> None:
    with refused(code):
        dpm.forecast(SCHEMA, **{"n_rows": N, "targets": ["income"], **options})


FLAGS = pa.table({f"flag{i}": RNG.random(2_000) < 0.4 for i in range(10)} | {"age": RNG.uniform(20, 80, 2_000)})
SCHEMA_OF_FLAGS = dpm.Schema(*(dpm.Boolean(f"flag{i}") for i in range(10)), dpm.Numeric("age", 0, 100))


@pytest.mark.parametrize("budget", [{"epsilon": 1.0, "delta": 1e-6}, {"rho": 0.1, "neighbors": "replace_one"}])
def test_where_refining_would_not_pay_it_is_the_plain_release_and_says_so(budget: dict[str, Any]) -> None:
    with warned("targets-not-refined", names=("flag0",)):
        release = dpm.release(FLAGS, SCHEMA_OF_FLAGS, targets=["flag0"], insecure_seed=1, **budget)
    plain = dpm.release(FLAGS, SCHEMA_OF_FLAGS, insecure_seed=1, **budget)
    assert "targets-not-refined" in codes(release.warnings)
    np.testing.assert_array_equal(release.noisy_gram, plain.noisy_gram)
    assert release.receipt.draws == plain.receipt.draws
    assert str(release.privacy.describe()) == str(plain.privacy.describe())
    assert not release.ridge("flag0").refined
    assert [check for check in checks(release) if check.passed is not True] == []
    table = dpm.forecast(SCHEMA_OF_FLAGS, n_rows=2_000, targets=["flag0"], **budget)
    assert [one.pays for one in table.targets] == [False]
    same = dpm.forecast(SCHEMA_OF_FLAGS, n_rows=2_000, **budget)
    assert [row.second_moment_error for row in table] == [row.second_moment_error for row in same]
    assert "Not refined, since it would not pay: flag0" in table.text()


def test_only_targets_that_pay_are_refined() -> None:
    budget = {"epsilon": 1.0, "delta": 1e-6, "targets": ["flag0", "age"]}
    with warned("targets-not-refined", names=("flag0",)):
        release = dpm.release(FLAGS, SCHEMA_OF_FLAGS, insecure_seed=1, **budget)
    assert refined_targets(release) == ("age",)
    assert [check for check in checks(release) if check.passed is not True] == []
    table = dpm.forecast(SCHEMA_OF_FLAGS, n_rows=2_000, **budget)
    assert [(one["target"], one["pays"]) for one in table.to_dict()["target_forecasts"]] == [
        ("flag0", False),
        ("age", True),
    ]


def test_a_table_of_one_column_is_refused_before_it_is_read() -> None:
    with refused("no-features"):
        dpm.release(FRAME, dpm.Schema(dpm.Numeric("income", 0, 200)), rho=1.0, targets=["income"], insecure_seed=0)


@pytest.mark.parametrize(
    "budget",
    [{"epsilon": 1.0, "delta": 1e-6, "mechanism": "gaussian"}, {"rho": 0.05, "neighbors": "replace_one"}],
)
def test_a_forecast_has_the_noise_of_refined_coefficients(
    budget: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where the regressors explain half the variance, as the forecast assumes, and no noise is taken back."""
    monkeypatch.setattr("dpmoments.spending.targets.signal_in", lambda change, *_: change)
    rng, n, k = np.random.default_rng(5), 10_000, 4
    features = np.clip(rng.normal(50, 10, (n, k)), 0, 100)
    shared = (features - 50) @ np.full(k, 1 / np.sqrt(2 * k))
    columns = {f"x{i}": features[:, i] for i in range(k)} | {"y": 50 + shared + rng.normal(0, np.sqrt(50), n)}
    schema = dpm.Schema(*(dpm.Numeric(name, 0, 100) for name in columns))
    exact = np.linalg.lstsq(np.column_stack([np.ones(n), features]), columns["y"], rcond=None)[0][1:]
    (forecast,) = dpm.forecast(schema, n_rows=n, targets=["y"], **budget).targets
    found = [
        dpm.release(pa.table(columns), schema, targets=["y"], insecure_seed=seed, **budget).ridge("y").params[1:]
        for seed in range(12)
    ]
    assert np.sqrt(np.mean((np.array(found) - exact) ** 2)) == pytest.approx(forecast.refined, rel=0.3)
    assert forecast.refined < forecast.unrefined


@pytest.mark.parametrize(("rho", "guess"), [(0.5, 0.3), (1e-4, 0.02)])
def test_guesses_do_not_change_what_a_forecast_says_is_refined(rho: float, guess: float) -> None:
    """Whatever standard deviations its caller states: a release is not told."""
    rng = np.random.default_rng(3)
    names = ["a", "b", "c"]
    schema = dpm.Schema(*(dpm.Numeric(name, 0, 10) for name in names), dpm.Boolean("flag"), dpm.Numeric("y", 0, 100))
    columns = {**{name: rng.uniform(0.0, 10.0, 2000) for name in names}, "flag": rng.random(2000) < 0.05}
    targets = ["a", "flag", "y"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        release = dpm.release(
            pa.table({**columns, "y": rng.uniform(0.0, 100.0, 2000)}), schema, rho=rho, targets=targets, insecure_seed=0
        )
    sizes = {**dict.fromkeys(names, 10.0 * guess), "y": 100.0 * guess}
    table = dpm.forecast(schema=schema, n_rows=2000, rho=rho, targets=targets, typical_sd=sizes)
    assert [one.target for one in table.targets if one.pays] == list(refined_targets(release))


@pytest.mark.parametrize("targets", ["income", 5, iter(["income"])], ids=["text", "number", "iterator"])
def test_what_is_no_list_of_names_is_refused(targets: Any) -> None:
    with refused("names-one-text", TypeError):
        released(targets=targets)


def test_missing_values_by_pairs_are_refused() -> None:
    schema = dpm.Schema(dpm.Numeric("age", 0, 100, missing="available"), dpm.Numeric("income", 0, 200))
    with refused("targets-of-present-values"):
        dpm.release(FRAME, schema, rho=1.0, targets=["income"], insecure_seed=0)


@pytest.mark.parametrize("mechanism", ["gaussian", "adaptive-ball"])
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("budget", [PrivacyBudget.approximate(1.0, 1e-6), PrivacyBudget.zcdp(1e6)])
def test_replay_finds_nothing(mechanism: str, neighbors: str, budget: PrivacyBudget) -> None:
    plan = WithTargets.of(make_mechanism(mechanism), dpm.Schema.unit_ball(3), ["x1"], Repair.AUTO)
    assert replay_everywhere(plan, budget, neighbors, insecure_generator(0), every=9) == ()
    assert replay_on_any_table(plan, budget, neighbors, insecure_generator(0), sizes=(40,)) == ()


def test_replay_finds_a_step_that_reads_more_than_it_pays_for(monkeypatch: pytest.MonkeyPatch) -> None:
    from dpmoments.spending import targets

    monkeypatch.setattr(targets, "LONGEST", 1.0)
    whole = targets.Rows.clipped_products

    def doubled(*arguments: Any, **options: Any) -> Any:
        moments = whole(*arguments, **options)
        return moments.merge(moments)

    monkeypatch.setattr(targets.Rows, "clipped_products", doubled)
    plan = WithTargets.of(make_mechanism("gaussian"), dpm.Schema.unit_ball(3), ["x1"], Repair.AUTO)
    assert replay_everywhere(plan, PrivacyBudget.zcdp(1.0), "add_remove", insecure_generator(0), every=5)


def test_units_of_several_rows_pay_for_them() -> None:
    frame = FRAME.assign(person=np.arange(N) // 2)
    unit = dpm.PrivacyUnit("person", max_rows=2)
    release = dpm.release(frame, SCHEMA, rho=2.0, targets=["income"], privacy_unit=unit, insecure_seed=0)
    assert release.receipt.exhausts
    assert float(release.receipt.total.amount) == pytest.approx(0.5)
    assert [check for check in checks(release) if check.passed is not True] == []


def test_two_targets_share_what_is_left() -> None:
    release = released(targets=["income", "age"])
    assert release.ridge("income").refined
    assert release.ridge("age").refined
    assert release.receipt.exhausts


def test_an_entry_is_what_was_written() -> None:
    (entry,) = RELEASE.diagnostics[TARGETS]
    assert RefinedRegression.from_dict(entry).to_dict() == entry


# Pure moments, and Gaussian steps with what they leave ---------------------------------------------------------------------

NUMBERS = [f"x{index}" for index in range(5)]
SCHEMA_OF_NUMBERS = dpm.Schema(*(dpm.Numeric(name, 0, 1) for name in NUMBERS), dpm.Numeric("y", 0, 2))
ADD_REMOVE, MIXED = Neighbors.ADD_REMOVE, LossUnit.PURE_AND_GAUSSIAN
MIXED_BUDGET = {"epsilon": 1.0, "delta": 1e-6}


def numbers(n: int = 3_000) -> pa.Table:
    rng = np.random.default_rng(11)
    x = rng.uniform(0.0, 1.0, (n, len(NUMBERS)))
    columns = dict(zip(NUMBERS, x.T, strict=True))
    return pa.table(columns | {"y": np.clip(0.8 * x[:, 0] + 0.6 * x[:, 1] + rng.normal(0.2, 0.02, n), 0.0, 2.0)})


@cache
def mixed() -> MomentRelease:
    """A release whose default moments are pure, with a target that pays beside them."""
    return dpm.release(numbers(), SCHEMA_OF_NUMBERS, targets=["y"], insecure_seed=0, **MIXED_BUDGET)


def test_where_the_default_moments_are_pure_they_stay_so_beside_targets() -> None:
    plain = dpm.release(numbers(), SCHEMA_OF_NUMBERS, insecure_seed=0, **MIXED_BUDGET)
    assert plain.receipt.unit is LossUnit.EPSILON
    release = mixed()
    assert release.receipt.unit is MIXED
    assert release.privacy.budget == PrivacyBudget.approximate(1.0, 1e-6)
    assert release.receipt.exhausts
    *moments, steps = release.receipt.draws[:-STEPS], release.receipt.draws[-STEPS:]
    assert {draw.what.code for draw in steps} == {"residual-products"}
    assert all(draw.loss.rho == 0 for draws in moments for draw in draws)
    assert all(draw.loss.amount == 0 for draw in steps)
    assert release.ridge("y").refined
    assert [check for check in checks(release) if check.passed is not True] == []


def test_moments_are_gaussian_where_that_costs_them_little() -> None:
    """They would be pure without targets, but the steps have twelve times the ρ beside Gaussian ones."""
    schema = dpm.Schema(*(dpm.Numeric(f"x{j}", 0.0, 1.0) for j in range(12)))
    budget = PrivacyBudget.approximate(1.0, 1e-6)
    loss_units = {}
    for chosen in (SCHEMA_OF_NUMBERS, schema):
        setting = ReleasePlan(TypicalTable.of(chosen), 10_000, budget, ADD_REMOVE, make_mechanism("auto"), (), None)
        assert setting.plan.cost.kind is BudgetKind.PURE
        unit = refining(setting, chosen.feature_names[:1]).loss_unit
        gaussian, plain = (replace(setting, refines=refines).noise for refines in (LossUnit.GAUSSIAN_RHO, None))
        assert gaussian is not None
        assert plain is not None
        cells = np.arange(1, len(chosen.feature_names) + 1)
        larger = [one.release.noise.cell_variances(cells)[0, 1] ** 0.5 for one in (gaussian, plain)]
        assert (unit is MIXED) == (larger[0] > 1.15 * larger[1])
        loss_units[len(cells)] = unit
    assert loss_units == {6: MIXED, 12: LossUnit.GAUSSIAN_RHO}


def test_correlations_lose_no_more_than_the_share_of_epsilon() -> None:
    """The noise of pure moments falls with ε; of Gaussian ones it would be a multiple."""
    plain = dpm.release(
        numbers(), SCHEMA_OF_NUMBERS, mechanism="adaptive-ball", insecure_seed=0, epsilon=float(PURE_SHARE)
    )
    pure = mixed()
    np.testing.assert_array_equal(pure.noisy_gram, plain.noisy_gram)
    gaussian = WithTargets.of(make_mechanism("adaptive-ball"), SCHEMA_OF_NUMBERS, ["y"], Repair.AUTO)
    shape, budget = MomentShape.of(SCHEMA_OF_NUMBERS, mean=True), PrivacyBudget.approximate(1.0, 1e-6)
    errors = [
        replace(gaussian, pure=share).plan(shape, budget, "add_remove").guaranteed_error for share in (True, False)
    ]
    assert errors[0] < 0.9 * errors[1]


def test_the_file_holds_both_parts(tmp_path: Path) -> None:
    release = mixed()
    release.save(tmp_path / "mixed.json")
    loaded = dpm.load(tmp_path / "mixed.json")
    assert isinstance(loaded, MomentRelease)
    assert loaded.receipt == release.receipt
    assert str(loaded.ridge("y")) == str(release.ridge("y"))
    assert [check for check in checks(loaded) if check.passed is not True] == []


@pytest.mark.parametrize("place", [0, -1])
def test_a_draw_of_the_wrong_kind_is_that_of_no_run(place: int) -> None:
    """A Gaussian draw among those for the moments, or a pure one in a step: the sums alone would not show it."""
    release = mixed()
    plan = WithTargets.of(make_mechanism("adaptive-ball"), SCHEMA_OF_NUMBERS, ["y"], Repair.AUTO, pure=True).plan(
        MomentShape.of(SCHEMA_OF_NUMBERS, mean=True), release.privacy.budget, ADD_REMOVE
    )
    assert plan.model_entries(release.diagnostics, release.receipt) is not None
    law: Any = DiscreteLaplace(1e12) if place else GaussianDraw(1e9)
    sensitivity = count_l1(ADD_REMOVE) if place else row_sum_l2(ADD_REMOVE)
    draws = [replace(draw, loss=Loss.none(MIXED)) for draw in release.receipt.draws]
    draws[place] = replace(draws[place], law=law, sensitivity=sensitivity, loss=law.loss(sensitivity, MIXED))
    with refused("steps-of-other-targets"):
        plan.model_entries(release.diagnostics, replace(release.receipt, draws=tuple(draws)))


@pytest.mark.parametrize(
    ("mechanism", "neighbors"), [("matrix-laplace", "add_remove"), ("adaptive-ball", "replace_one")]
)
def test_replay_of_pure_moments_and_steps_finds_nothing(mechanism: str, neighbors: str) -> None:
    plan = WithTargets.of(make_mechanism(mechanism), dpm.Schema.unit_ball(3), ["x1"], Repair.AUTO, pure=True)
    budget = PrivacyBudget.approximate(1.0, 1e-6)
    assert replay_everywhere(plan, budget, neighbors, insecure_generator(0), every=20) == ()
    assert replay_on_any_table(plan, budget, neighbors, insecure_generator(0), sizes=(40,)) == ()


def mixed_plan() -> TargetsPlan:
    plan = WithTargets.of(make_mechanism("matrix-laplace"), dpm.Schema.unit_ball(3), ["x1"], Repair.AUTO, pure=True)
    return plan.plan(
        MomentShape.of(dpm.Schema.unit_ball(3), mean=True), PrivacyBudget.approximate(1.0, 1e-6), "add_remove"
    )


def run(plan: TargetsPlan) -> Receipt:
    rows = Rows.of(RNG.uniform(-0.5, 0.5, (60, 3)), dpm.Schema.unit_ball(3), mean=True)
    privacy_filter = PrivacyFilter.open(plan, insecure_seed=0)
    plan.run(rows, privacy_filter)
    return privacy_filter.close()


def moments_with_all_of_epsilon(patch: pytest.MonkeyPatch, plan: TargetsPlan) -> TargetsPlan:
    del patch
    return replace(plan, moments=plan.targets.inner.plan(plan.shape, PrivacyBudget.pure(1.0), plan.neighbors))


def steps_with_all_of_rho(patch: pytest.MonkeyPatch, plan: TargetsPlan) -> TargetsPlan:
    rho = allowance(plan.cost, LossUnit.GAUSSIAN_RHO)
    patch.setattr(PartFilter, "left", property(lambda self: rho if self.unit is rho.unit else self._share))
    return plan


@pytest.mark.parametrize("fault", [moments_with_all_of_epsilon, steps_with_all_of_rho])
def test_a_plan_that_overspends_either_part_is_refused(fault: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    assert run(mixed_plan()).exhausts
    with refused("draw-over-budget", PrivacyFilterError):
        run(fault(monkeypatch, mixed_plan()))


def test_units_of_several_rows_pay_for_both_parts() -> None:
    frame = numbers().append_column("person", pa.array(np.arange(3_000) // 2))
    unit = dpm.PrivacyUnit("person", max_rows=2)
    release = dpm.release(frame, SCHEMA_OF_NUMBERS, targets=["y"], privacy_unit=unit, insecure_seed=0, **MIXED_BUDGET)
    assert release.receipt.unit is MIXED
    assert release.receipt.exhausts
    whole = allowance(PrivacyBudget.approximate(1.0, 1e-6), MIXED)
    assert float(release.receipt.total.amount) == pytest.approx(float(whole.amount) / 2)
    assert float(release.receipt.total.rho) == pytest.approx(float(whole.rho) / 4)
    assert [check for check in checks(release) if check.passed is not True] == []


def test_a_ledger_charges_both_parts(tmp_path: Path) -> None:
    ledger = dpm.Ledger(tmp_path / "budget.db")
    ledger.grant("people", epsilon=2.0, delta=1e-5, composition="zcdp")
    release = dpm.release(
        numbers(300), SCHEMA_OF_NUMBERS, targets=["y"], ledger=ledger, dataset="people", **MIXED_BUDGET
    )
    assert release.receipt.unit is MIXED
    (reserved,) = [entry for entry in ledger.history("people") if entry.action == "reserve"]
    assert reserved.content["loss_unit"] == "pure-and-gaussian"
    expected = losses_of(release.privacy.budget, release.receipt.unit, ADD_REMOVE, ADD_REMOVE)
    assert reserved.content["losses"] == expected.to_dict()
    assert [check for check in ledger.verify() if not check.passed] == []


def test_a_forecast_says_what_pure_moments_keep() -> None:
    table = dpm.forecast(SCHEMA_OF_NUMBERS, n_rows=3_000, targets=["y"], **MIXED_BUDGET)
    assert [one.pays for one in table.targets] == [True]
    assert "12.5% of ε refines coefficients of y" in table.text()
    plain = dpm.forecast(SCHEMA_OF_NUMBERS, n_rows=3_000, epsilon=float(PURE_SHARE))
    assert table["auto"].second_moment_error == plain["auto"].second_moment_error


def test_another_reference_level_is_said_to_leave_the_refined_coefficients() -> None:
    default = RELEASE.ridge("income")
    [level] = {"north", "south", "east"} - {name.partition("=")[2] for name in default.features if "=" in name}
    other = next(name for name in ("north", "south", "east") if name != level)
    for fit in (
        RELEASE.ridge("income", reference={"region": other}),
        RELEASE.ols("income", reference={"region": other}),
    ):
        assert not fit.refined
        assert "relative to other reference levels" in fit.warning
    assert "reference levels" not in RELEASE.ridge("income", reference={"region": level}).warning
    assert "reference levels" not in RELEASE.ridge("income", ["age"]).warning
    assert "reference levels" not in RELEASE.ridge("income", alpha=0.1).warning


def test_a_power_of_a_number_is_no_level() -> None:
    rng = np.random.default_rng(0)
    x = rng.uniform(0.0, 2.0, 20_000)
    table = pa.table({"x": x, "y": 0.2 * x + 0.1 * x**2 + rng.normal(0.0, 0.1, 20_000)})
    schema = dpm.Schema(dpm.Numeric("x", 0, 2), dpm.Numeric("y", -1, 2), dpm.Power("x", 2))
    release = dpm.release(table, schema, rho=0.5, targets=["y"], insecure_seed=0)
    assert "clip most rows" not in release.ols("y").warning
