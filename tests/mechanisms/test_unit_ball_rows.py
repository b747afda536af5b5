"""What fresh eyes found in the ball and the repairs: long rows, missing cells, impossible variances, forged records."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from dpmoments.audit.verification import checks
from dpmoments.rows.rows import _rows_in_unit_ball

pytestmark = pytest.mark.filterwarnings("ignore::dpmoments.ReleaseWarning")


def test_a_row_is_shortened_the_same_alone_and_in_company() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(500, 7)) * 10.0 ** rng.integers(-3, 3, (500, 1))
    rows[0], rows[1], rows[2] = 1e300, 0.0, [3e300, 4e300, 0, 0, 0, 0, 0]
    rows[3, 2] = np.nan
    together = _rows_in_unit_ball(rows, "drop")
    for start, stop in ((0, 1), (1, 5), (5, 500)):
        np.testing.assert_array_equal(together[start:stop], _rows_in_unit_ball(rows[start:stop], "drop"))
    lengths = np.linalg.norm(together, axis=1)
    assert np.nanmax(lengths) <= 1.0 + 1e-15
    short = np.linalg.norm(np.where(np.isfinite(rows) & (np.abs(rows) < 10), rows, 10.0), axis=1) < 1.0
    np.testing.assert_array_equal(together[short], rows[short])
    assert np.isnan(together[3, 2])
    np.testing.assert_allclose(together[2, :2], [0.6, 0.8])
    assert _rows_in_unit_ball(rows, "center")[3, 2] == 0.0


def test_a_missing_cell_that_counts_as_zero_does_so_about_a_center() -> None:
    rng = np.random.default_rng(1)
    table = rng.normal(0.4, 0.01, (60_000, 5))
    table[rng.random(table.shape) < 0.05] = np.nan
    schema = dpm.Schema.unit_ball(5, missing="center")
    released = dpm.release(table, schema, epsilon=20.0, mechanism="standardized", insecure_seed=0)
    np.testing.assert_allclose(released.mean, np.nan_to_num(table).mean(axis=0), atol=5e-3)
    np.testing.assert_allclose(np.diag(released.covariance), np.nan_to_num(table).var(axis=0), rtol=0.2)


def test_long_rows_are_shortened_before_a_center_is_taken_off() -> None:
    rng = np.random.default_rng(2)
    table = np.column_stack([rng.uniform(1.0, 1.15, 60_000), rng.normal(0.0, 0.01, (60_000, 4))])
    released = dpm.release(table, dpm.Schema.unit_ball(5), epsilon=20.0, mechanism="standardized", insecure_seed=0)
    assert released.mean[0] == pytest.approx(1.0, abs=2e-3)
    assert released.covariance[0, 0] < 1e-4  # 1.9e-3 of the rows as they are


@pytest.mark.slow
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_no_variance_is_above_what_bounds_and_mean_allow(epsilon: float) -> None:
    for seed in range(10):
        rng = np.random.default_rng(seed)
        rare, usual = (rng.random((3000, 3)) < 0.003).astype(float), rng.normal(0.5, 0.02, (3000, 3)).clip(0.0, 1.0)
        frame = pd.DataFrame(np.column_stack([rare, usual]), columns=[f"c{i}" for i in range(6)])
        frame["flag"] = rng.random(3000) < 0.5
        columns = [dpm.Numeric(f"c{i}", 0, 1) for i in range(6)]
        for schema in (dpm.Schema(*columns), dpm.Schema(*columns, dpm.Boolean("flag"))):
            released = dpm.release(frame, schema, epsilon=epsilon, insecure_seed=seed)
            variances, mean = np.diag(released.covariance), released.mean
            assert (variances <= mean * (1.0 - mean) * (1.0 + 1e-9) + 1e-12).all()
            assert np.linalg.eigvalsh(released.covariance)[0] > -1e-10


@pytest.mark.slow
def test_small_tables_never_lose_what_was_drawn() -> None:
    table = np.random.default_rng(0).normal(0.15, 0.025, (150, 5))
    schema = dpm.Schema(*[dpm.Numeric(f"x{i}", -1, 1) for i in range(5)])
    for seed in range(60):
        released = dpm.release(
            pd.DataFrame(table, columns=[f"x{i}" for i in range(5)]), schema, epsilon=1.0, insecure_seed=seed
        )
        assert [check.what for check in checks(released) if check.passed is False] == []


def forged(released: dpm.MomentRelease, **changes: Any) -> dpm.MomentRelease:
    return dataclasses.replace(released, **changes)
