"""Releases of every kind that pictures are drawn of."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pyarrow as pa

import dpmoments as dpm
from contracts.analyses import records, released

SEED = dict(insecure_seed=3)
COORDINATES = np.random.default_rng(5).normal(0.2, [0.15, 0.1, 0.05], (4_000, 3))


@cache
def release_of(kind: str) -> Any:
    """One release of each kind; some are of a mean alone."""
    unbounded, replace_one = dpm.Schema.unbounded(3), dict(neighbors="replace_one", **SEED)
    coinpress = dpm.mechanisms.CoinPress(eigenvalue_bounds=(1e-4, 1.0), mean_radius=2.0)
    match kind:
        case "moments":
            return released(epsilon=1.0, mechanism="matrix-laplace", **SEED)
        case "few rows":
            return dpm.release(records()[:150], released(epsilon=1e3, **SEED).schema, epsilon=0.15, **SEED)
        case "all noise":
            schema = dpm.Schema(*(dpm.Numeric(name, 0, 1) for name in "abcd"))
            table = pa.table({name: np.random.default_rng(0).random(40) for name in "abcd"})
            return dpm.release(table, schema, epsilon=0.05, insecure_seed=1)
        case "second moment":
            return dpm.release(COORDINATES, dpm.Schema.unit_ball(3), epsilon=1.0, mean=False, **replace_one)
        case "no count":
            return dpm.release(COORDINATES, dpm.Schema.unit_ball(3), epsilon=1.0, mean=False, **SEED)
        case "unit ball":
            return dpm.release(
                COORDINATES, dpm.Schema.unit_ball(3), epsilon=1.0, mechanism="gaussian", delta=1e-6, **SEED
            )
        case "coinpress":
            return dpm.release(COORDINATES, unbounded, rho=1.0, mechanism=coinpress, **replace_one)
        case "group":
            schema = released(epsilon=1e3, **SEED).schema
            return dpm.release_groups(records(), schema, by="employed", epsilon=1.0, **SEED)[True]
        case "pooled":
            parts = [
                dpm.release(
                    records()[start:],
                    release_of("moments").schema,
                    epsilon=1.0,
                    mechanism="laplace",
                    insecure_seed=seed,
                )
                for seed, start in ((1, 0), (2, 2_000))
            ]
            return dpm.pool(parts)
        case "mean":
            mechanism = dpm.mechanisms.means.CoinPressMean(radius=5.0, scale=0.2, steps=3)
            return dpm.release_mean(COORDINATES, unbounded, rho=0.5, mechanism=mechanism, **replace_one)
        case "naive mean":
            return dpm.release_mean(COORDINATES, dpm.Schema.unit_ball(3), rho=0.5, mechanism="naive", **replace_one)
    raise LookupError(kind)


KINDS = (
    *("moments", "few rows", "second moment", "no count", "unit ball", "coinpress", "group", "pooled"),
    *("mean", "naive mean"),
)
