"""Releases of every kind, made here or by a worker of a pool."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import dpmoments as dpm
from dpmoments.releases.disclosed import ReleaseWarning
from dpmoments.releases.moment_release import MomentRelease

SCHEMA = dpm.Schema(
    dpm.Numeric("x", 0, 10, missing="drop"), dpm.Numeric("y", 0, 10), dpm.Categorical("g", ["a", "b"]), dpm.Boolean("f")
)
AVAILABLE = dpm.Schema(dpm.Numeric("x", 0, 10, missing="available", fill=5), dpm.Numeric("y", 0, 10))


def table(seed: int = 0, n_rows: int = 200) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    numbers = {name: rng.uniform(0, 10, n_rows) for name in "xy"}
    return pd.DataFrame({**numbers, "g": rng.choice(["a", "b"], n_rows), "f": rng.random(n_rows) < 0.5})


def pooled(**options: Any) -> Any:
    options = {"epsilon": 1.0, **options}
    seeds = [1, 2] if "insecure_seed" in options else [None, None]
    parts = [
        dpm.release(table(place), SCHEMA, **{**options, "dataset": f"part {place}", "insecure_seed": seed})
        for place, seed in enumerate(seeds)
    ]
    return dpm.pool(parts)


KINDS: dict[str, Callable[..., Any]] = {
    "moments": lambda **options: dpm.release(table(), SCHEMA, **{"epsilon": 1.0, **options}),
    "moments, zCDP": lambda **options: dpm.release(table(), SCHEMA, rho=0.5, mechanism="gaussian", **options),
    "available": lambda **options: dpm.release(table(), AVAILABLE, **{"epsilon": 1.0, **options}),
    "means": lambda **options: dpm.release_mean(table(), SCHEMA, **{"epsilon": 1.0, **options}),
    "counts": lambda **options: dpm.release_counts(table(), SCHEMA, by=["g", "f"], **{"epsilon": 1.0, **options}),
    "groups": lambda **options: dpm.release_groups(table(), SCHEMA, by="g", **{"epsilon": 1.0, **options}),
    "pooled": pooled,
}


def released(kind: str, ledger: str) -> Any:
    """A release that a ledger is charged for."""
    return KINDS[kind](ledger=ledger, **({} if kind == "pooled" else {"dataset": "people"}))


def unsaved(folder: str) -> Any:
    """A release that is made, and not written."""

    def fail(*_: Any) -> None:
        raise OSError(28, "No space left on device")

    MomentRelease.save = fail  # type: ignore[method-assign]
    return dpm.release(table(), SCHEMA, epsilon=1.0, insecure_seed=0, output=Path(folder) / "out.json")


def warned(_: str) -> Any:
    """A release whose warning is raised."""
    warnings.simplefilter("error", ReleaseWarning)
    return dpm.release(table(n_rows=20), SCHEMA, epsilon=0.01, insecure_seed=0)
