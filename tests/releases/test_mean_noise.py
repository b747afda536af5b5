"""The noise that a mean release states is the noise it has: its law, its intervals, its file, and its words."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpmoments as dpm
from dpmoments.mechanisms.means.base import NoisyMean
from dpmoments.mechanisms.registry import make_mean_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.moments.models import MeanModel
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.rows.rows import Rows
from support.forged_files import forge
from support.said import codes, refused

ZCDP, PURE = PrivacyBudget.zcdp(0.5), PrivacyBudget.pure(1.0)
N_ROWS = 300
D = 3


def law_of(law: str, deviations: list[float], of_count: list[float]) -> MeanModel:
    return MeanModel(law, np.array(deviations), np.array(of_count))


# ---------------------------------------------------------------------------------------------------------------------
# every estimator states the law of its noise: rows of which none is clipped, so that noise is all of the error

ESTIMATORS: dict[str, tuple[str, dict[str, Any], PrivacyBudget, str, str]] = {
    "naive, ρ": ("naive", dict(radius=3.0, scale=1.0), ZCDP, "replace_one", "error"),
    "naive, pure": ("naive", dict(radius=3.0, scale=1.0), PURE, "replace_one", "error"),
    "naive, pure, rows dropped": ("naive", dict(radius=3.0, scale=1.0), PURE, "replace_one", "drop"),
    "naive, ρ, rows dropped": ("naive", dict(radius=3.0, scale=1.0), ZCDP, "replace_one", "drop"),
    "karwa-vadhan, ρ": ("karwa-vadhan", dict(radius=3.0, scale=4.0), ZCDP, "replace_one", "error"),
    "karwa-vadhan, pure": ("karwa-vadhan", dict(radius=3.0, scale=4.0), PURE, "replace_one", "error"),
    "coinpress, one step": ("coinpress", dict(radius=5.0, scale=1.0, steps=1), ZCDP, "replace_one", "error"),
    "coinpress, one step, private count": ("coinpress", dict(radius=5.0, steps=1, scale=1.0), ZCDP, "add_remove", "error"),
    "coinpress": ("coinpress", dict(radius=5.0, scale=1.0), ZCDP, "replace_one", "error"),
    "coinpress, a covariance": (
        "coinpress", dict(radius=9.0, covariance=[[1.0, 0.4, 0.0], [0.4, 0.5, 0.0], [0.0, 0.0, 0.3]], clip="gaussian"),
        ZCDP, "replace_one", "error",
    ),
}  # fmt: skip


def runs_of(name: str, trials: int) -> tuple[np.ndarray, list[NoisyMean]]:
    """Errors of means of rows of which none is clipped, (trials, d); and what the runs said."""
    mechanism, options, budget, neighbors, missing = ESTIMATORS[name]
    schema = dpm.Schema(*(dpm.Numeric(f"x{j}", scale=(1.0, 1.0), radius=9.0, missing=missing) for j in range(D)))
    # A mean far from the center makes the noise on the count show.
    table = np.array([2.0, -1.0, 0.0]) + np.random.default_rng(0).uniform(-0.2, 0.2, (N_ROWS, D))
    rows = Rows.of(table, schema, neighbors=neighbors, threads=1)
    shape = replace(MomentShape.of(schema, mean=True), n_rows=N_ROWS if neighbors == "replace_one" else None)
    plan = make_mean_mechanism(mechanism, **options).plan(shape, budget, neighbors)
    found = [plan.run(rows, PrivacyFilter(plan, insecure_generator(seed))) for seed in range(trials)]
    return np.array([noisy.mean for noisy in found]) - table.mean(axis=0), found


def probabilities(errors: np.ndarray, found: list[NoisyMean], factor: float = 1.0) -> np.ndarray:
    """P(|noise| below what it was) by the stated law, each of them uniform if it is the right one."""
    values = []
    for error, noisy in zip(errors, found, strict=True):
        law = noisy.noise
        assert law is not None
        for j in range(D):
            x = abs(error[j]) * factor
            if law.law == "gaussian":
                values.append(2.0 * stats.norm.cdf(x / law.standard_deviations[j]) - 1.0)
                continue
            a, b = sorted((law.deviations[j] / math.sqrt(2.0), law.count_deviations[j] / math.sqrt(2.0)), reverse=True)
            outside = (
                math.exp(-x / a) if b == 0 else (a**2 * math.exp(-x / a) - b**2 * math.exp(-x / b)) / (a**2 - b**2)
            )
            values.append(1.0 - outside)
    return np.array(values)


@pytest.mark.long
@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_stated_law_is_that_of_the_noise(name: str) -> None:
    errors, found = runs_of(name, 60)
    assert stats.kstest(probabilities(errors, found), "uniform").pvalue > 1e-3
    for factor in (0.6, 1.6):  # planted faults: noise stated as too large, or too small
        assert stats.kstest(probabilities(errors, found, factor), "uniform").pvalue < 1e-2


@pytest.mark.parametrize(
    "name", ["naive, pure, rows dropped", "naive, ρ, rows dropped", "coinpress, one step, private count"]
)
def test_the_noise_of_the_count_is_part_of_it(name: str) -> None:
    """The coordinate whose mean is farthest from the center has most of it, and the one at the center next to none."""
    _, [noisy] = runs_of(name, 1)
    assert noisy.noise is not None
    share = noisy.noise.count_deviations / noisy.noise.deviations
    assert share[0] > share[1] > share[2] >= 0.0


@pytest.mark.long
def test_the_variance_aware_noise_is_that_of_its_last_step() -> None:
    """Proportional to the roots of the scales that it found; most of its intervals hold, normal rows being clipped but little."""
    deviations, held = np.array([1.0, 0.1, 0.01]), []
    for seed in range(5):
        table = np.random.default_rng(seed).normal(5.0, deviations, (3000, 3))
        found = dpm.release_mean(
            table, dpm.Schema.unbounded(3), rho=0.5, neighbors="replace_one", insecure_seed=seed, threads=1
        )
        assert found.noise is not None
        spread = np.array(found.diagnostics["spread"])
        assert found.noise.deviations / np.sqrt(spread) == pytest.approx(
            np.full(3, found.noise.deviations[0] / spread[0] ** 0.5)
        )
        low, high = found.conf_int(0.95).T
        held.append((low <= table.mean(axis=0)) & (table.mean(axis=0) <= high))
    assert np.mean(held) > 0.8


def test_symq_states_no_law() -> None:
    table = np.random.default_rng(0).normal(size=(500, 2))
    found = dpm.release_mean(
        table, dpm.Schema.unbounded(2), rho=2.0, neighbors="replace_one", mechanism="symq", radius=5.0, insecure_seed=0
    )
    assert found.noise is None
    assert np.isnan(found.standard_errors).all()
    with refused("no interval is available"):
        found.conf_int()
    assert "± noise: not known" in str(found)


# ---------------------------------------------------------------------------------------------------------------------
# clipping, which no law of noise covers


@pytest.mark.long
def test_heavy_tails_are_warned_of_and_normal_ones_are_not() -> None:
    def released(make: Any, name: str) -> dpm.MeanRelease:
        options = {"radius": 20.0, "scale": 1.0} if name == "coinpress" else {}
        return dpm.release_mean(
            make(np.random.default_rng(0)), dpm.Schema.unbounded(5), rho=0.5, neighbors="replace_one",
            mechanism=name, insecure_seed=0, threads=1, **options,
        )  # fmt: skip

    for name in ("coinpress", "variance-aware"):
        skewed = released(lambda rng: np.exp(rng.normal(size=(10_000, 5))) / 2.16, name)
        assert "noise-incomplete" in codes(skewed.warnings), name
        assert f"Warning: {skewed.warnings[0]}" in str(skewed)
        assert released(lambda rng: rng.normal(size=(10_000, 5)), name).warnings == ()


def test_too_few_rows_to_see_their_tails_are_warned_of() -> None:
    table = np.random.default_rng(0).normal(size=(1000, 1))
    options = dict(rho=0.1, neighbors="replace_one", mechanism="coinpress", radius=5.0, scale=1.0, insecure_seed=0)
    found = dpm.release_mean(table, dpm.Schema.unbounded(1), **options)
    assert found.noise is not None
    assert found.noise.bias_suspected
    untold = dpm.release_mean(table, dpm.Schema.unbounded(1), clip="gaussian", **options)
    assert untold.noise is not None
    assert (untold.noise.clipped, untold.noise.bias_suspected) == (None, False)  # nothing was spent on looking


# ---------------------------------------------------------------------------------------------------------------------
# the release: units, words, file


@pytest.fixture(scope="module")
def release() -> dpm.MeanRelease:
    rng = np.random.default_rng(0)
    table = np.c_[rng.uniform(20, 60, 4000), rng.uniform(0, 1e5, 4000)]
    schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Numeric("income", 0, 1e5))
    return dpm.release_mean(table, schema, rho=0.5, neighbors="replace_one", mechanism="naive", insecure_seed=3)


def test_errors_are_in_the_tables_units(release: dpm.MeanRelease) -> None:
    assert release.noise is not None
    scale = release.schema.encoding(mean=True).scale
    assert (release.standard_errors == scale * release.noise.standard_deviations).all()
    low, high = release.conf_int(0.9).T
    assert (high - low) / 2.0 == pytest.approx(release.standard_errors * stats.norm.ppf(0.95))
    assert (low + high) / 2.0 == pytest.approx(release.mean)
    assert release.standard_errors[1] / release.standard_errors[0] == pytest.approx(1000.0)
    with refused("must be", parameter="level"):
        release.conf_int(95)
    with pytest.raises(ValueError, match="read-only"):
        release.noise.deviations[0] = 0.0


def test_the_summary_has_a_line_a_feature(release: dpm.MeanRelease) -> None:
    text = str(release)
    assert text == release.summary()
    assert "rows: 4,000 (public, exact)" in text
    for (name, mean, noise), exact, error in zip(
        release.table()[1:], release.mean, release.standard_errors, strict=True
    ):
        assert f"{name}" in text
        assert f"{mean}  " in text
        assert float(noise.replace(",", "")) == pytest.approx(error, rel=0.05)  # two digits
        assert abs(float(mean.replace(",", "")) - exact) <= 0.05 * error
    assert "NOT PRIVATE" in text
    assert "It does not include the effect of clipping (the number of clipped rows is not" in text


@pytest.mark.parametrize(
    ("entry", "value", "cause"),
    [
        ("law", "normal", "noise.law must be one of gaussian"),
        ("deviations", [1.0], "of the noise model must be"),
        ("deviations", [1.0, -1.0], "of the noise model must be"),
        ("clipped", 1.5, "must be between"),
    ],
)
def test_a_law_that_is_none_is_refused(
    release: dpm.MeanRelease, tmp_path: Path, entry: str, value: Any, cause: str
) -> None:
    release.save(tmp_path / "mean.json")
    forge(tmp_path / "mean.json", lambda content: content["noise"].update({entry: value}))
    with refused("does not hold a consistent", cause=cause):
        dpm.load(tmp_path / "mean.json")


def test_intervals_beyond_floating_point_are_refused(release: dpm.MeanRelease) -> None:
    for law in ("gaussian", "laplace"):
        huge = replace(release, noise=law_of(law, [1e308, 1e308], [1e308, 0.0]))
        with refused("the numbers of this release exceed the range of floating"):
            huge.conf_int()
