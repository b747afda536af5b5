"""The noise that is stated beside standard deviations, against releases; a fault in it is found."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.analysis.functionals import LocalMoments

pytestmark = pytest.mark.long

RUNS, N_ROWS = 300, 900
SCHEMA = dpm.Schema(
    dpm.Numeric("a", 0, 1), dpm.Numeric("b", 0, 10), dpm.Boolean("c"), dpm.Categorical("d", ["x", "y", "z"])
)


@cache
def table() -> pa.Table:
    """Two columns of numbers at the ends of their bounds that go together, so that noise on the count tells; a flag; levels."""
    rng = np.random.default_rng(0)
    a = np.where(rng.random(N_ROWS) < 0.75, 0.97, 0.02)
    b = 10.0 * np.clip(a + rng.normal(0.0, 0.05, N_ROWS), 0.0, 1.0)
    c = rng.random(N_ROWS) < 0.2 + 0.5 * a
    return pa.table({"a": a, "b": b, "c": c, "d": rng.choice(["x", "y", "z"], N_ROWS, p=[0.55, 0.3, 0.15])})


def released(mechanism: str, neighbors: str, seed: int) -> dpm.MomentRelease:
    options: dict[str, Any] = dict(neighbors=neighbors, repair="none")
    if mechanism == "pooled":
        parts = ((0, N_ROWS // 3, "laplace"), (N_ROWS // 3, N_ROWS, "matrix-laplace"))
        return dpm.pool(
            [
                dpm.release(
                    table()[start:stop], SCHEMA, epsilon=8.0, mechanism=name, insecure_seed=2 * seed + place, **options
                )
                for place, (start, stop, name) in enumerate(parts)
            ],
            repair="none",
        )
    budget = {"rho": 2.0} if mechanism == "gaussian" else {"epsilon": 4.0}
    return dpm.release(table(), SCHEMA, mechanism=mechanism, insecure_seed=seed, **budget, **options)


CASES = [
    ("gaussian", "add_remove"),
    ("matrix-laplace", "replace_one"),
    ("laplace", "add_remove"),
    ("pooled", "replace_one"),
]


@cache
def releases(mechanism: str, neighbors: str) -> tuple[dpm.MomentRelease, ...]:
    return tuple(released(mechanism, neighbors, seed) for seed in range(RUNS))


@cache
def exact() -> np.ndarray:
    return dpm.release(table(), SCHEMA, epsilon=1e6, neighbors="replace_one", insecure_seed=0).covariance


def require_right(mechanism: str, neighbors: str) -> None:
    described = [release.describe() for release in releases(mechanism, neighbors)]
    errors = np.array([one.standard_deviation for one in described]) - np.sqrt(np.diag(exact()))
    noise = np.median([one.standard_deviation_noise for one in described], axis=0)
    np.testing.assert_allclose(errors.std(axis=0) / noise, 1.0, atol=0.15)


@pytest.mark.slow
@pytest.mark.parametrize(("mechanism", "neighbors"), CASES[:3])
def test_the_noise_of_standard_deviations_is_that_of_what_is_shown(mechanism: str, neighbors: str) -> None:
    require_right(mechanism, neighbors)


@pytest.mark.slow
def test_noise_of_another_size_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    right = LocalMoments.of

    def louder(release: Any, *given: Any, **options: Any) -> LocalMoments:
        moments = right(release, *given, **options)
        assert moments.law is not None
        terms = tuple(replace(term, variances=1.6 * term.variances) for term in moments.law.terms)
        return replace(moments, law=replace(moments.law, terms=terms))

    monkeypatch.setattr(LocalMoments, "of", louder)
    with pytest.raises(AssertionError):
        require_right(*CASES[0])
