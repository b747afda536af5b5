"""Columns that give a rough scale in place of bounds: from the schema to the release and its file."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.schema.encoding import RoughScale
from support.doc_blocks import run_in_order
from support.said import refused, warned

SCALES = np.array([1e-3, 1.0, 50.0, 1e4])
MEANS = np.array([0.02, -3.0, 100.0, 2e5])


def normal_rows(n_rows: int = 4000, seed: int = 0, correlation: float = 0.8) -> np.ndarray:
    rng = np.random.default_rng(seed)
    d = len(SCALES)
    root = np.linalg.cholesky(np.full((d, d), correlation) + (1 - correlation) * np.eye(d))
    return rng.normal(size=(n_rows, d)) @ root.T * SCALES + MEANS


def rough_schema(width: float = 30.0, **options: Any) -> dpm.Schema:
    """Every true standard deviation off the middle of its range, by up to a factor of 10."""
    off = np.array([0.1, 1.0, 10.0, 3.0])
    columns = [
        dpm.Numeric(f"x{index}", scale=(scale / width, scale * width), **options)
        for index, scale in enumerate(SCALES * off)
    ]
    return dpm.Schema(*columns)


# ---------------------------------------------------------------- the release


def test_without_noise_the_moments_are_exact() -> None:
    """A center off zero, a missing cell that counts as the center, and a budget that leaves clipping alone."""
    rng = np.random.default_rng(3)
    table = np.sign(rng.normal(size=(501, 2))) * [3.0, 0.5] + [1e4, -7.0]
    table[0, 0] = np.nan
    schema = dpm.Schema(
        dpm.Numeric("a", scale=(1, 10), center=1e4, radius=5, missing="center"), dpm.Numeric("b", scale=(0.1, 1))
    )
    release = dpm.release(table, schema, rho=1e12, neighbors="replace_one", insecure_seed=0)
    table[0, 0] = 1e4
    np.testing.assert_allclose(release.mean, table.mean(axis=0), rtol=1e-6)
    np.testing.assert_allclose(release.covariance, np.cov(table.T, bias=True), atol=1e-4)
    np.testing.assert_allclose(release.second_moment, table.T @ table / 501, rtol=1e-6)


def test_the_second_moment_alone() -> None:
    table = normal_rows()
    schema = dpm.Schema(*[dpm.Numeric(f"x{i}", scale=(s / 9, s * 9), center=1) for i, s in enumerate(SCALES)])
    release = dpm.release(table, schema, rho=1.0, neighbors="replace_one", mean=False, insecure_seed=0)
    exact = table.T @ table / len(table)
    size = np.sqrt(np.diag(exact))
    np.testing.assert_allclose(release.second_moment / np.outer(size, size), exact / np.outer(size, size), atol=0.05)


def test_mixed_schemas() -> None:
    rng = np.random.default_rng(1)
    n_rows = 6000
    income, age = rng.lognormal(10, 0.4, n_rows), rng.uniform(18, 90, n_rows)
    region, employed = rng.choice(["n", "s"], n_rows), rng.random(n_rows) < 0.3
    table = pa.table({"income": income, "age": age, "region": region, "employed": employed})
    schema = dpm.Schema(
        dpm.Numeric("income", scale=(1, 1e6)),
        dpm.Numeric("age", 0, 120),
        dpm.Categorical("region", ["n", "s"]),
        dpm.Boolean("employed"),
    )
    plain = np.column_stack([income, age, region == "n", region == "s", employed]).astype(float)
    size = plain.std(axis=0)
    release = dpm.release(table, schema, rho=0.5, insecure_seed=0)
    assert (release.mechanism, release.warnings) == ("coinpress", ())
    np.testing.assert_allclose((release.mean - plain.mean(axis=0)) / size, 0, atol=0.05)
    difference = (release.covariance - np.cov(plain.T, bias=True)) / np.outer(size, size)
    assert float(np.linalg.norm(difference)) < 0.15


@pytest.mark.parametrize("factor", [1e6, 1e-6, 1e300])
def test_data_far_from_the_stated_scale(factor: float) -> None:
    """Above it: finite, and warned of, privately. Below: silent, with the absolute error of the least scale."""
    rng = np.random.default_rng(2)
    table = rng.normal(size=(3000, 3)) * factor
    schema = dpm.Schema(*[dpm.Numeric(f"x{index}", scale=(1, 10)) for index in range(3)])
    options: dict[str, Any] = dict(rho=0.5, insecure_seed=0)
    if factor < 1:
        release = dpm.release(table, schema, **options)
        assert release.warnings == ()
        assert float(np.abs(release.covariance).max()) < 0.1
        return
    with warned("rows-outside-bounds", dpm.ReleaseWarning) as caught:
        release = dpm.release(table, schema, **options)
    assert np.isfinite(release.covariance).all()
    assert isinstance(caught[0].message, dpm.ReleaseWarning)
    assert caught[0].message.release is release
    assert caught[0].filename == __file__


def test_what_the_schema_says_of_the_eigenvalues_holds() -> None:
    """Σ ⪯ spread·A for covariances of the stated variances, nearly attained by equal columns at the top of their ranges."""
    columns = [dpm.Numeric("a", scale=(1, 7)), dpm.Numeric("b", scale=(0.5, 40)), dpm.Numeric("c", scale=(2, 3))]
    rough = RoughScale.of(columns, mean=True)
    assert rough is not None
    anchor = np.array(rough.anchor)
    encoding = dpm.Schema(*columns).encoding()
    top = np.array([7.0, 40.0, 3.0]) / encoding.scale
    ratios = []
    for correlation in (0.0, 0.5, 1 - 1e-9):
        covariance = np.outer(top, top) * (np.full((3, 3), correlation) + (1 - correlation) * np.eye(3))
        ratios.append(float(np.linalg.eigvals(np.linalg.solve(anchor, covariance)).real.max()))
    assert max(ratios) <= rough.spread * (1 + 1e-9)
    assert max(ratios) > 0.999 * rough.spread
    np.testing.assert_allclose(np.diag(anchor), (np.array([1, 0.5, 2]) / encoding.scale) ** 2)
    assert rough.mean_radius == pytest.approx(math.sqrt(70**2 + 800**2 + 15**2))


# ---------------------------------------------------------------- refusals

REFUSALS = [
    (dict(scale=(0, 1)), ValueError, "must be a range of standard deviations (min, max),"),
    (dict(scale=(-1, 1)), ValueError, "must be a range of standard deviations (min, max),"),
    (dict(scale=(2, 1)), ValueError, "must be a range of standard deviations (min, max),"),
    (dict(scale=(1, math.inf)), ValueError, "must be finite, and at most"),
    (dict(scale=(math.nan, 1)), ValueError, "must be finite, and at most"),
    (dict(scale=(1, 1e13)), ValueError, "or above and span a factor of"),
    (dict(scale=(1e-150, 1e-149)), ValueError, "or above and span a factor of"),
    (dict(scale=(1, 2, 3)), ValueError, "must be a pair"),
    (dict(scale=5.0), ValueError, "must be a pair"),
    (dict(scale="12"), ValueError, "must be a pair"),
    (dict(scale=("1", 2)), TypeError, "must be a number, got the text"),
    (dict(scale=(True, 2)), TypeError, "must be a number, got bool"),
    (dict(lower=0, upper=1, scale=(1, 2)), ValueError, "has bounds and a scale: give lower and upper, or"),
    (dict(lower=0, scale=(1, 2)), ValueError, "has bounds and a scale: give lower and upper, or"),
    (dict(lower=0, upper=1, radius=3), ValueError, "center and radius need scale: with bounds they are"),
    (dict(center=3), ValueError, "center and radius need scale: with bounds they are"),
    (dict(scale=(1, 2), radius=-1), ValueError, "must not be negative"),
    (dict(scale=(1, 2), radius=1e16), ValueError, "which floating point does not resolve there:"),
    (dict(scale=(1, 2), center=-1e16), ValueError, "which floating point does not resolve there:"),
    (dict(), ValueError, "has no bounds: give lower and upper from public"),
]  # fmt: skip


@pytest.mark.parametrize(("options", "kind", "said"), REFUSALS, ids=lambda value: str(value)[:40])
def test_bad_input_is_refused(options: dict[str, Any], kind: type[Exception], said: str) -> None:
    with refused(said, kind):
        dpm.Numeric("income", **options)


def test_schemas_that_cannot_be() -> None:
    income = dpm.Numeric("income", scale=(1, 10))
    with refused("has a scale, in place of bounds: nothing bounds a row, so"):
        dpm.Schema(income, row_norm=1.0)
    with refused("has a scale, and coordinates have neither bounds nor a"):
        dpm.Schema(income, dpm.Coordinate("x"))
    assert dpm.Schema(income).row_norm is None


def test_what_cannot_be_spent_is_refused_before_a_row_is_read(tmp_path: Path) -> None:
    schema = rough_schema()
    absent_rows = tmp_path / "table.csv"
    absent_rows.write_text("x0,x1,x2,x3\nsecret,secret,secret,secret\n")
    with refused("needs bounds on every column, and some have a scale range"):
        dpm.release(absent_rows, schema, epsilon=1.0)
    with refused("cannot spend a budget of"):
        dpm.release(absent_rows, schema, epsilon=1.0, mechanism="coinpress")
    with refused("needs a bound on the norm of a row and the schema gives"):
        dpm.release(absent_rows, schema, rho=1.0, mechanism="gaussian")
    with refused("needs a bound on the norm of a row and the schema gives"):
        dpm.release(np.zeros((3, 2)), dpm.Schema.unbounded(2), rho=1.0)


def test_explicit_options_override_the_schema() -> None:
    shape = MomentShape.of(rough_schema(), mean=True, n_rows=1000)
    budget = dpm.PrivacyBudget.zcdp(0.5)
    spread = {
        options: dpm.mechanisms.CoinPress(**dict(options)).plan(shape, budget, "replace_one").details["spread"]
        for options in ((), (("mean_radius", 0.0),), (("eigenvalue_bounds", (1.0, 2.0)), ("mean_radius", 2.0)))
    }
    assert [*spread.values()] == pytest.approx([10 * 4 * 900**2 * 101, 10 * 4 * 900**2, 6.0])


@pytest.mark.slow
def test_the_page_on_bounds_runs(capsys: pytest.CaptureFixture[str]) -> None:
    run_in_order(Path(__file__).parents[2] / "docs" / "choose-bounds.md")
    assert "\ncoinpress\n[1. 1. 1.]\n" in capsys.readouterr().out
