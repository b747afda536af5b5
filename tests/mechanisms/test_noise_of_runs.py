"""The law of the noise of runs that have no additive law: against runs, with faults that the checks find."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from dpmoments.audit.verification import checks
from dpmoments.mechanisms import (
    AdditiveWishart,
    InverseGaussian,
    IterativeEigenvectors,
    JohnsonLindenstrauss,
    KapralovTalwar,
)
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.mechanisms.eigenvectors import projected_cells, subtracted_cells
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.unit import Neighbors
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.rows.rows import Rows
from support.opened_filter import Unchecked

pytestmark = pytest.mark.long(sets=None)

N_ROWS = 5_000
SCHEMA = dpm.Schema(dpm.Numeric("a", 0, 1), dpm.Numeric("b", 0, 1), dpm.Boolean("c"), dpm.Numeric("y", 0, 1))
FEATURES = ["a", "b", "c"]


@cache
def table() -> pd.DataFrame:
    rng = np.random.default_rng(0)
    a, c = rng.random(N_ROWS), rng.random(N_ROWS) < 0.3
    b = 0.4 * a + 0.6 * rng.random(N_ROWS)
    y = 0.2 + 0.3 * a - 0.2 * b + 0.15 * c + rng.uniform(-0.15, 0.15, N_ROWS)
    return pd.DataFrame({"a": a, "b": b, "c": c, "y": y.clip(0, 1)})


SCALE = ((2.0, 0.5, 0.0, 0.0), (0.5, 2.0, 0.0, 0.0), (0.0, 0.0, 3.0, 0.0), (0.0, 0.0, 0.0, 1.5))


def moments_of(eigenvalues: list[float], n_rows: int) -> np.ndarray:
    """Rows in the unit ball whose Gram matrix has about these eigenvalues, in shares of the number of rows."""
    rng = np.random.default_rng(1)
    rows = rng.choice([-1.0, 1.0], (n_rows, len(eigenvalues))) * np.sqrt(eigenvalues)
    return np.asarray(rows @ np.linalg.qr(rng.normal(size=(len(eigenvalues),) * 2))[0])


SEPARATED, CROWDED = [0.5, 0.3, 0.15, 0.05], [0.3, 0.29, 0.21, 0.2]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("mechanism", "n_rows"),
    [(IterativeEigenvectors(), 5_000), (KapralovTalwar(), 100_000)],
    ids=["projected", "subtracted"],
)
def test_the_error_of_eigenvectors_is_that_of_runs_cell_by_cell(mechanism: Mechanism, n_rows: int) -> None:
    """Within chance of what is stated where eigenvalues are separated, and not above it where they are not."""
    ratio = found_over_stated(mechanism, moments_of(SEPARATED, n_rows))
    off = ratio[np.triu_indices(4, 1)]
    assert (np.abs(off - 1.0) < 0.35).all()
    assert 0.75 < off.mean() < 1.1
    assert ((np.diag(ratio) > 0.5) & (np.diag(ratio) < 1.5)).all()
    crowded = found_over_stated(mechanism, moments_of(CROWDED, 2_000))
    assert (crowded < 1.35).all()


def found_over_stated(mechanism: Mechanism, table: np.ndarray, runs: int = 150) -> np.ndarray:
    """Mean squares of the cells of V̂ᵀ(Ĝ − G)V̂ over what is stated of them."""
    d, exact = table.shape[1], table.T @ table
    rows = Rows.of(table, dpm.Schema.unit_ball(d), mean=False, neighbors=Neighbors.REPLACE_ONE)
    plan = mechanism.plan(MomentShape(d, n_rows=len(table), mean=False), PrivacyBudget.pure(1.0), "replace_one")
    unchecked, stated_of = Unchecked(plan, insecure_generator(2)), projected_cells
    if isinstance(mechanism, KapralovTalwar):
        stated_of = subtracted_cells
    found, stated = np.zeros((d, d)), np.zeros((d, d))
    for _ in range(runs):
        noisy = plan.run(rows, unchecked)  # type: ignore[arg-type]
        basis = np.linalg.eigh(noisy.gram)[1][:, ::-1]
        found += (basis.T @ (noisy.gram - exact) @ basis) ** 2
        record = (np.array(noisy.diagnostics[name]) for name in ("eigenvalues", "temperatures"))
        stated += stated_of(*record, 2.0 * plan.details["eigenvalue_scale"] ** 2)
    return np.asarray(found / stated)


# What is said, and what is not -------------------------------------------------------------------------------------------------


def test_a_fit_says_what_the_law_is_conditional_on_and_a_file_keeps_it() -> None:
    options: dict[str, Any] = dict(mechanism=IterativeEigenvectors(), rho=2.0, insecure_seed=0)
    release = dpm.release(table(), SCHEMA, **options)
    fit = release.ols("y", FEATURES)
    assert "linearized" in fit.summary()
    read = MomentRelease.from_dict(json.loads(json.dumps(release.to_dict())))
    np.testing.assert_array_equal(read.ols("y", FEATURES).standard_errors, fit.standard_errors)
    clipped = dpm.release(table(), SCHEMA, rho=2.0, mechanism="coinpress", insecure_seed=0).ols("y", FEATURES)
    assert "clipped-in-last-step" in clipped.summary()


def test_moments_biased_on_purpose_have_no_law() -> None:
    options: dict[str, Any] = dict(epsilon=1.0, delta=1e-6, insecure_seed=0)
    padded = dpm.release(table(), SCHEMA, mechanism=JohnsonLindenstrauss(subtract_padding=False), **options)
    assert padded.noise is None
    shifted = dpm.release(table(), SCHEMA, mechanism=AdditiveWishart(debias="positive-definite"), **options)
    assert (shifted.noise is None) == (shifted.diagnostics["kept_shift"] > 0.0)
    few = dpm.release(table()[:30], SCHEMA, mechanism=AdditiveWishart(debias="positive-definite"), **options)
    assert few.diagnostics["kept_shift"] > 0.0
    assert few.noise is None


@pytest.mark.parametrize("mechanism", [IterativeEigenvectors(), KapralovTalwar()])
def test_eigenvectors_of_an_unlimited_budget_have_a_law(mechanism: Mechanism) -> None:
    """Concentrations beyond what Bessel functions are computed for."""
    release = dpm.release(table(), SCHEMA, epsilon=1e13, mechanism=mechanism, insecure_seed=0)
    assert release.noise is not None
    assert 0.0 < release.noise.energy < 1e-6


# What verification ties to plan and record --------------------------------------------------------------------------------------

SCALE = np.diag([1.0, 2.0, 1.5]).tolist()
FORGED: list[tuple[Any, dict[str, Any], str]] = [
    ("coinpress", dict(rho=2.0), "count_scale"),
    (JohnsonLindenstrauss(), dict(epsilon=1.0, delta=1e-6), "degrees"),
    (JohnsonLindenstrauss(adaptive=True), dict(epsilon=1.0, delta=1e-6), "padding"),
    (InverseGaussian(smallest_eigenvalue=20.0), dict(rho=1.0), "inverse_scale"),
    (IterativeEigenvectors(), dict(rho=1.0), "cells"),
    (KapralovTalwar(), dict(epsilon=1.0), "sum_variance"),
    (AdditiveWishart(scale_matrix=SCALE), dict(epsilon=1.0, delta=1e-6), "scale_matrix"),
    (AdditiveWishart(debias="positive-definite"), dict(epsilon=1.0, delta=1e-6), "rate"),
]


def scaled(value: Any, factor: float) -> Any:
    return [scaled(entry, factor) for entry in value] if isinstance(value, list) else factor * value


@pytest.mark.parametrize(("mechanism", "budget", "entry"), FORGED, ids=lambda value: str(value)[:40])
def test_a_model_that_plan_and_record_contradict_is_found(mechanism: Any, budget: dict[str, Any], entry: str) -> None:
    rows = np.random.default_rng(0).uniform(-0.5, 0.5, (3_000, 3))
    release = dpm.release(rows, dpm.Schema.unit_ball(3), mechanism=mechanism, insecure_seed=0, **budget)
    content = json.loads(json.dumps(release.to_dict()))
    assert [check.what for check in checks(MomentRelease.from_dict(content)) if check.passed is False] == []
    content["noise"][entry] = scaled(content["noise"][entry], 0.9)
    if entry == "rate":
        content["noise"]["diagonal_variance"] *= 0.5
        content["noise"]["off_diagonal_variance"] *= 0.5
    assert checks(MomentRelease.from_dict(content))[-1].passed is False
    content["noise"] = None
    assert checks(MomentRelease.from_dict(content))[-1].passed is False
