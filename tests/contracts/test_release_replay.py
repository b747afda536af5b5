"""A whole release replayed where a row is dropped in one of two neighbors alone: what is made after the run tells no more."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.audit.replay import Recorder, Replayer
from dpmoments.audit.verification import checks
from dpmoments.base.message import Message
from dpmoments.privacy import origin
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.releases.disclosed import MessageWarning
from support.said import codes

N_ROWS = 100
SCHEMA = dpm.Schema(
    dpm.Numeric("x", 0, 100, missing="drop"),
    dpm.Boolean("flag", missing="drop"),
    dpm.Categorical("level", ["a", "b"], missing="zero", other="drop"),
    dpm.Numeric("y", 0, 100),
    dpm.Power("x", 2),
    dpm.Product("y", "flag"),
    dpm.Product("level", "y"),
)
AVAILABLE = dpm.Schema(
    dpm.Numeric("x", 0, 100, missing="available", fill=40),
    dpm.Boolean("flag", missing="available"),
    dpm.Categorical("level", ["a", "b"], missing="available", other="drop"),
    dpm.Numeric("y", 0, 100),
    dpm.Power("x", 2),
)
PAIRS = {"x": (10.0, None), "flag": (True, None), "level": ("a", "else")}
JOBS: dict[str, Callable[..., Any]] = {
    "gaussian": lambda table: dpm.release(table, SCHEMA, rho=5.0, neighbors="replace_one", mechanism="gaussian"),
    "present values": lambda table: dpm.release(
        table, AVAILABLE, rho=5.0, neighbors="replace_one", mechanism="gaussian"
    ),
    "present values, standardized": lambda table: dpm.release(
        table, AVAILABLE, rho=5.0, neighbors="replace_one", mechanism="standardized"
    ),
    "gram alone": lambda table: dpm.release(table, SCHEMA, epsilon=50.0, neighbors="replace_one", mean=False),
    "coinpress": lambda table: dpm.release(table, SCHEMA, rho=5.0, neighbors="replace_one", mechanism="coinpress"),
    "mean": lambda table: dpm.release_mean(table, SCHEMA, rho=5.0, neighbors="replace_one"),
    "mean by naive": lambda table: dpm.release_mean(
        table, SCHEMA, epsilon=50.0, neighbors="replace_one", mechanism="naive"
    ),
}


def table(column: str, cell: Any, n_dropped: int) -> pa.Table:
    """Ordinary rows of which some are dropped; the last has that cell."""
    rng = np.random.default_rng(0)
    cells: dict[str, list[Any]] = {
        "x": rng.uniform(0.0, 100.0, N_ROWS).tolist(),
        "flag": (rng.random(N_ROWS) < 0.5).tolist(),
        "level": rng.choice(["a", "b"], N_ROWS).tolist(),
        "y": rng.uniform(0.0, 100.0, N_ROWS).tolist(),
    }
    cells["x"][:n_dropped] = [None] * n_dropped
    cells[column][-1] = cell
    return pa.table(cells)


def message_of(warning: Warning | str) -> Message | None:
    """The message of a warning that has one as data."""
    return warning.message_data if isinstance(warning, MessageWarning) else None


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("column", list(PAIRS))
@pytest.mark.parametrize("job", list(JOBS))
def test_a_release_tells_nothing_of_a_row_dropped_in_one_neighbor_alone(
    job: str, column: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """30 or 31 of 100 rows are dropped. The warning gives their share from the noisy count, and an exact one would differ."""
    filters: list[Any] = []

    def opened(plan: Any, *, insecure_seed: int | None = None) -> PrivacyFilter:
        del insecure_seed
        seen = Replayer(plan, filters[0].exchanges) if filters else Recorder(plan, insecure_generator(2))
        filters.append(seen)
        return seen

    monkeypatch.setattr(PrivacyFilter, "open", staticmethod(opened))
    monkeypatch.setattr(
        origin, "secrets", SimpleNamespace(token_hex=lambda _: "0" * 32)
    )  # the one thing in a release that is random and no answer
    told = []
    for cell in PAIRS[column]:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            released = JOBS[job](table(column, cell, 30))
        said = [(repr(message_of(warning.message)), str(warning.message)) for warning in caught]
        if not job.startswith("present values"):  # which drop hardly any row
            assert "rows-dropped" in codes(released.warnings)
            assert "rows-dropped" in codes(filter(None, (message_of(warning.message) for warning in caught)))
        told.append((json.dumps(released.to_dict()), said, repr(released), checks(released)))
    assert filters[1].faults == []
    assert told[0] == told[1]
