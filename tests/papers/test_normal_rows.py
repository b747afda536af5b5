"""Bounds for normal rows of a known covariance."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

import dpmoments as dpm
from dpmoments.papers.bounds import normal_smallest_eigenvalue
from support.said import refused

COVARIANCE = np.array([[0.02, 0.01, 0.0], [0.01, 0.03, 0.0], [0.0, 0.0, 0.01]])


@pytest.mark.parametrize("mean", [0.0, 0.2])
def test_it_fails_no_more_often_than_it_says(mean: float) -> None:
    rng, n, failure, runs = np.random.default_rng(4), 200, 0.3, 1000
    rows = rng.multivariate_normal(np.full(3, mean), COVARIANCE, (runs, n))
    least = np.linalg.eigvalsh(np.swapaxes(rows, 1, 2) @ rows)[:, 0]
    failed = int((least < normal_smallest_eigenvalue(COVARIANCE, n, failure=failure)).sum())
    assert stats.binomtest(failed, runs, failure, alternative="greater").pvalue > 1e-3
    # Planted fault: without √d and the quantile it would fail in most runs of rows about 0.
    planted = float(np.linalg.eigvalsh(COVARIANCE)[0]) * n
    assert mean or stats.binomtest(int((least < planted).sum()), runs, failure, alternative="greater").pvalue < 1e-6


def test_it_is_what_it_says() -> None:
    root = math.sqrt(499) - math.sqrt(3) - math.sqrt(2 * math.log(1e4))
    expected = float(np.linalg.eigvalsh(COVARIANCE)[0]) * root**2
    assert normal_smallest_eigenvalue(COVARIANCE, 500, failure=1e-4) == pytest.approx(expected, rel=1e-12)
    assert normal_smallest_eigenvalue(COVARIANCE, 20) == normal_smallest_eigenvalue(COVARIANCE, 0) == 0.0


def test_it_saves_the_projection_its_padding() -> None:
    """Sheffet, Corollary B.2, second part: the projection of normal rows needs no w²."""
    shape, budget = (
        dpm.mechanisms.shape.MomentShape(3, n_rows=50_000, mean=False),
        dpm.PrivacyBudget.approximate(1.0, 1e-6),
    )
    known = normal_smallest_eigenvalue(COVARIANCE, 50_000)
    plain = dpm.mechanisms.JohnsonLindenstrauss(50).plan(shape, budget, "replace_one")
    told = dpm.mechanisms.JohnsonLindenstrauss(50, smallest_eigenvalue=known).plan(shape, budget, "replace_one")
    assert told.details["padding"] == 0.0 < plain.details["padding"]


@pytest.mark.parametrize(
    ("covariance", "failure", "code"),
    [
        (np.ones((2, 3)), 0.1, "covariance must be a symmetric matrix, got shape"),
        ([[1.0, 0.5], [0.0, 1.0]], 0.1, "covariance must be a symmetric matrix, got shape"),
        ([[1.0, 2.0], [2.0, 1.0]], 0.1, "covariance must be positive semi-definite: it has a"),
        (np.eye(2), 1.0, "must be"),
    ],
)
def test_what_is_no_covariance(covariance: np.ndarray, failure: float, code: str) -> None:
    with refused(code):
        normal_smallest_eigenvalue(covariance, 100, failure=failure)
