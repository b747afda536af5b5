"""Least squares of a target: errors against draws of the answer of its steps and of the release's noise, with planted faults."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pyarrow as pa
import pytest
import scipy

import dpmoments as dpm
from dpmoments.analysis import refined_regression
from dpmoments.analysis.refined_regression import TARGETS, RefinedRegression, StepsAnswer
from dpmoments.analysis.regressors import Regressors
from support.drawn_releases import drawn, planted

SCHEMA = dpm.Schema(*(dpm.Numeric(name, -1.2, 3.2) for name in "abcy"))
MIXING = np.array([[1.0, 0.0, 0.0], [0.5, 0.8, 0.0], [0.3, -0.4, 0.7]])
SLOPES, DEVIATION, N = np.array([0.8, -0.5, 0.3]), 0.5, 2_000


@cache
def template(rho: float) -> dpm.MomentRelease:
    rows = np.random.default_rng(0).standard_normal((50, 4))
    return dpm.release(rows, SCHEMA, mechanism="gaussian", rho=rho, insecure_seed=0)


def rows_of(rng: np.random.Generator) -> np.ndarray:
    x = 1.0 + rng.standard_normal((N, 3)) @ MIXING.T
    return np.column_stack([x, 2.0 + x @ SLOPES + DEVIATION * rng.standard_normal(N)])


def released(
    rng: np.random.Generator, rho: float, *, lacking: float, error: float, clipped_error: float = 1e-6
) -> dpm.MomentRelease:
    """A release of fresh rows with the answer that unclipped steps would have.

    Their average line lacks ``lacking`` residual deviations in each whitened coordinate, and the answer has noise of ``error``
    times its sampling error.
    """
    release, rows = template(rho), rows_of(rng)
    encoded = (rows - release.encoding.offset) / release.encoding.scale
    scale = float(release.encoding.scale[0])
    center = np.append(np.full(3, 1.2), 2.5) / scale
    whitening = np.linalg.inv(MIXING) * scale
    regressors = np.column_stack([np.ones(N), (encoded[:, :3] - center[:3]) @ whitening.T])
    target = encoded[:, 3] - center[3]
    exact = np.linalg.lstsq(regressors, target, rcond=None)[0]
    unit = DEVIATION / scale
    line = exact + lacking * unit * np.array([0.3, 1.0, -1.0, 1.0])
    noise = error * unit * math.sqrt(N)
    products = regressors.T @ (target - regressors @ line) + noise * rng.standard_normal(4)
    entry = RefinedRegression(
        "y",
        ("a", "b", "c"),
        center,
        whitening,
        line,
        clipped=clipped_error * float(rng.standard_normal()),
        clipped_error=clipped_error,
        kept=1.0,
        answer=StepsAnswer(line, products, noise, 5.0 * unit),
    )
    return replace(drawn(release, rows, rng), diagnostics={TARGETS: [entry.to_dict()]})


def of_delta_method() -> np.ndarray:
    """Squared errors of slopes over their stated variances, where noise on moments is small."""
    squares = []
    for seed in range(80):
        fit = released(np.random.default_rng(seed), 3.0, lacking=1.7, error=0.7).ols("y")
        assert fit.refined
        assert fit.equations is not None
        assert fit.equations.delta_method_valid
        squares.append(((fit.coefficients - SLOPES) / fit.standard_errors) ** 2)
    return np.array(squares)


FAULTS = (
    ("self.answer.error**2 + ", ""),
    ("whole.noise.carried(of_regressors) +", "whole.noise.carried(0.01 * of_regressors) +"),
    ("self._most_squares(release, whole) +", "0.0 +"),
)


def test_stated_errors_are_those_of_draws_and_faults_in_them_are_found() -> None:
    def off() -> float:
        means = of_delta_method().mean(axis=1)
        return float(abs(means.mean() - 1.0) / (means.std(ddof=1) / math.sqrt(len(means))))

    assert off() < 2.5
    for before, after in FAULTS:
        with planted(RefinedRegression.equations, before, after):
            assert off() > 3.5, after


def test_intervals_are_shorter_than_those_of_the_moments_and_hold_their_estimate() -> None:
    for seed in range(3):
        release = released(np.random.default_rng(seed), 1.8, lacking=0.2, error=0.5)
        fit, moments = release.ols("y"), replace(release, diagnostics={}).ols("y")
        assert fit.refined
        assert ((fit.upper - fit.lower) < 0.9 * (moments.upper - moments.lower)).all()
        assert (fit.lower <= fit.coefficients).all()
        assert (fit.coefficients <= fit.upper).all()


def rows_lost(z: float) -> float:
    """What intervals allow for in clips and SDs of the count, of z SDs of clipped rows."""
    rng = np.random.default_rng(0)
    release = released(rng, 40.0, lacking=0.0, error=1.0)
    entry = RefinedRegression.from_dict(release.diagnostics[TARGETS][0])
    lost = replace(entry, clipped=2.0 * z, clipped_error=2.0)._lost_to_clipping
    return lost / (2.0 * entry.answer.clip * refined_regression._LOST)


def test_what_clipping_may_have_taken_is_of_a_number_of_rows_above_zero() -> None:
    grid = np.linspace(0.0, 20.0, 200_001)
    for z in (-2.0, 0.0, 0.5, 4.0):
        weights = np.exp(-0.5 * (grid - z) ** 2)
        expected = math.sqrt(float(weights @ grid**2 / weights.sum()))
        assert rows_lost(z) == pytest.approx(expected, rel=1e-3)
        with planted(RefinedRegression._lost_to_clipping, "1.0 + z * z", "2.0 + z * z"):
            assert rows_lost(z) != pytest.approx(expected, rel=0.01)


def test_where_clipping_may_have_taken_more_than_noise_the_moments_answer() -> None:
    release = released(np.random.default_rng(0), 5.0, lacking=0.0, error=0.5, clipped_error=100.0)
    fit = release.ols("y")
    assert not fit.refined
    assert "not refined" in fit.warning
    assert release.ridge("y").refined
    few = released(np.random.default_rng(0), 5.0, lacking=0.0, error=0.5, clipped_error=1.0)
    assert few.ols("y").refined


def test_without_noise_they_are_the_textbooks() -> None:
    rng = np.random.default_rng(5)
    fit = released(rng, 1e12, lacking=0.3, error=1e-6).ols("y")
    rows = rows_of(np.random.default_rng(5))
    design = np.column_stack([np.ones(N), rows[:, :3]])
    coefficients, (squares,), *_ = np.linalg.lstsq(design, rows[:, 3], rcond=None)
    errors = np.sqrt(np.diag(np.linalg.inv(design.T @ design)) * squares / (N - 4))
    np.testing.assert_allclose(fit.params, coefficients, rtol=1e-4)
    np.testing.assert_allclose(fit.bse, errors, rtol=1e-3)
    np.testing.assert_allclose(
        fit.predict({"a": [1.0], "b": [2.0], "c": [-1.0]}), [[1.0, 1.0, 2.0, -1.0] @ coefficients], rtol=1e-4
    )
    low, high = fit.conf_int().loc["a"]
    assert high - low == pytest.approx(2.0 * scipy.special.stdtrit(N - 4, 0.975) * errors[1], rel=1e-3)


def test_where_noise_hides_how_the_regressors_vary_the_moments_answer() -> None:
    release = released(np.random.default_rng(0), 0.004, lacking=0.0, error=0.5)
    fit = release.ols("y")
    assert fit.equations is not None
    assert not fit.equations.identified
    assert not fit.refined
    assert "not refined" in fit.warning
    with planted(RefinedRegression.reason_against_intervals, " or not plain.identified", ""):
        assert release.ols("y").refined


def share_of_contradictions(monkeypatch: pytest.MonkeyPatch) -> float:
    """Share of agreeing steps and moments that are said to differ, at a probability of a tenth."""
    monkeypatch.setattr(refined_regression, "_CONTRADICTION", 0.1)
    found = []
    for seed in range(300):
        release = released(np.random.default_rng(seed), 3.0, lacking=3.0, error=2.0)
        chosen = Regressors.chosen(release, "y", None, True, None)
        found.append(RefinedRegression.from_dict(release.diagnostics[TARGETS][0]).contradicts(release, chosen))
    return float(np.mean(found))


def test_steps_that_agree_with_the_moments_rarely_seem_to_contradict_them(monkeypatch: pytest.MonkeyPatch) -> None:
    assert 0.065 < share_of_contradictions(monkeypatch) < 0.135  # ±2 standard errors
    for before, after in (
        ("covariance += self.answer.error**2", "covariance += 2.0 * self.answer.error**2"),
        ("regressors @ whole.noise_covariance(residual) @ regressors.T", "0.0 * regressors"),
        ("chdtrc(len(difference)", "chdtrc(1 + len(difference)"),
    ):
        with planted(RefinedRegression.contradicts, before, after):
            assert not 0.065 < share_of_contradictions(monkeypatch) < 0.135, after


def test_a_difference_that_noise_does_not_explain_leaves_the_moments_answer() -> None:
    release = released(np.random.default_rng(0), 5.0, lacking=1.7, error=1.0)
    assert release.ols("y").refined
    [entry] = release.diagnostics[TARGETS]
    products = np.array(entry["answer"]["products"])
    products[2] *= 0.5  # as if rows had been clipped
    other = replace(
        release, diagnostics={TARGETS: [entry | {"answer": entry["answer"] | {"products": products.tolist()}}]}
    )
    assert not other.ols("y").refined
    assert "rows that decide the fit" in other.ols("y").warning


def test_where_rows_of_a_level_are_few_the_moments_answer_and_name_it() -> None:
    """Their products with the residuals are long, and the steps clip most of them."""
    rng, n = np.random.default_rng(0), 20_000
    for share, refined in ((0.004, False), (0.3, True)):
        flag, x = rng.random(n) < share, rng.uniform(0.0, 1.0, (n, 4))
        table = pa.table(
            {f"x{i}": x[:, i] for i in range(4)}
            | {"flag": flag, "y": 0.3 + 0.2 * x[:, 0] + 0.1 * flag + rng.normal(0, 0.05, n)}
        )
        schema = dpm.Schema(
            *(dpm.Numeric(f"x{i}", 0, 1) for i in range(4)), dpm.Boolean("flag"), dpm.Numeric("y", 0, 1)
        )
        release = dpm.release(table, schema, rho=0.05, targets=["y"], insecure_seed=0)
        fit = release.ols("y")
        assert fit.refined is refined, fit
        assert ("the steps may clip most rows with flag" in fit.warning) is not refined
        assert not release.ols("y", ["x0", "x1", "x2", "x3"]).refined
        with planted(RefinedRegression._clipped_level, "> _LONGEST_TYPICAL", "> 50.0 * _LONGEST_TYPICAL"):
            assert release.ols("y").refined


def test_where_the_noise_is_not_known_nothing_contradicts() -> None:
    release = released(np.random.default_rng(0), 5.0, lacking=1.7, error=1.0)
    chosen = Regressors.chosen(release, "y", None, True, None)
    entry = RefinedRegression.from_dict(release.diagnostics[TARGETS][0])
    moved = replace(entry, answer=replace(entry.answer, products=2.0 * entry.answer.products))
    assert moved.contradicts(release, chosen)
    unknown = replace(release, noise_model=None)
    assert unknown.noise is None
    assert not moved.contradicts(unknown, chosen)
    assert not unknown.ols("y").refined
