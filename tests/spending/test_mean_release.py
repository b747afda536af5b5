"""A mean release: its file, exact to the bit and refused where it is not as written, and what becomes of it when it is made."""

from __future__ import annotations

import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.audit.verification import Check, checks
from dpmoments.base.message import Message
from support.forged_files import Edit, forge, smaller_budget_everywhere
from support.said import codes, refused

SCHEMA = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Categorical("region", ["north", "south"], other="zero"))
CASES: dict[str, dict[str, Any]] = {
    "variance-aware, private count": dict(rho=0.5),
    "variance-aware, public count": dict(rho=0.5, neighbors="replace_one"),
    "variance-aware, (ε, δ)": dict(epsilon=1.0, delta=1e-6),
    "coinpress": dict(rho=0.5, mechanism="coinpress"),
    "coinpress, (ε, δ), a known covariance": dict(
        epsilon=1.0, delta=1e-6, mechanism="coinpress", radius=50.0, covariance=np.diag([0.2, 0.3, 0.3]).tolist()
    ),
    "karwa-vadhan, pure": dict(epsilon=1.0, neighbors="replace_one", mechanism="karwa-vadhan"),
    "naive, pure": dict(epsilon=1.0, neighbors="replace_one", mechanism="naive"),
    "symq, (ε, δ)": dict(epsilon=1.0, delta=1e-6, neighbors="replace_one", mechanism="symq", quantile=0.4),
}


def release_mean(**options: Any) -> dpm.MeanRelease:
    rng = np.random.default_rng(0)
    frame = {"age": rng.uniform(0, 100, 400), "region": rng.choice(["north", "south"], 400)}
    return dpm.release_mean(pa.table(frame), SCHEMA, **(options or {"rho": 0.5}))


def bits(made: dpm.MeanRelease) -> tuple[object, ...]:
    """All of a release; what it holds of floats, to the bit."""
    values = (made.schema, made.privacy, made.receipt, made.mechanism, repr(made.mechanism_options))
    return *values, made.noisy_mean.tobytes(), float(made.noisy_count).hex(), repr(made.diagnostics)


@pytest.fixture
def saved(tmp_path: Path) -> Path:
    release_mean().save(tmp_path / "mean.json")
    return tmp_path / "mean.json"


# ---------------------------------------------------------------------------------------------------------------------
# what was written comes back


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("options", CASES.values(), ids=CASES)
def test_a_mean_release_comes_back_to_the_bit_and_verifies(options: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "mean.json"
    made = release_mean(**options, output=path)
    loaded = dpm.load(str(path))
    assert isinstance(loaded, dpm.MeanRelease)
    assert bits(loaded) == bits(made)
    assert loaded.mean.tobytes() == made.mean.tobytes()
    assert (loaded.n_rows, loaded.feature_names, loaded.warnings) == (made.n_rows, made.feature_names, made.warnings)
    assert loaded.privacy.describe() == made.privacy.describe()
    assert [check for check in checks(loaded) if not check.passed] == []
    first = path.read_bytes()
    loaded.save(path, overwrite=True)
    assert path.read_bytes() == first


def test_unusual_numbers_come_back(tmp_path: Path) -> None:
    path = tmp_path / "mean.json"
    diagnostics = {
        "steps": [math.nan, -0.0, math.inf],
        "grid": np.array([[1.0, math.nan]]),
        "$tag": (1, (2,)),
    }
    made = replace(
        release_mean(), noisy_mean=np.array([-0.0, 5e-324, 0.1 + 0.2]), noisy_count=-0.0, diagnostics=diagnostics
    )
    made.save(path)
    loaded = dpm.load(path)
    assert bits(loaded) == bits(made)
    assert loaded.n_rows == 1
    assert type(loaded.diagnostics["$tag"]) is tuple


# ---------------------------------------------------------------------------------------------------------------------
# damage and edits


@pytest.mark.parametrize(
    "edit",
    [
        lambda content: content.update(noisy_mean=[1.0]),
        lambda content: content["noise"].update(deviations=[1.0], count_deviations=[0.0]),
    ],
)
def test_numbers_of_other_features_are_refused(saved: Path, edit: Edit) -> None:
    forge(saved, edit)
    with refused("does not hold a consistent"):
        dpm.load(saved)


INCONSISTENT: dict[str, tuple[Edit, str]] = {
    "no draws": (lambda content: content["receipt"].update(draws=[]), "receipt adds up to the stated budget"),
    "not all spent": (
        lambda content: content["receipt"].update(draws=content["receipt"]["draws"][:-1]),
        "known mechanism that spends the stated budget",
    ),
    "a mechanism for second moments": (lambda content: content.update(mechanism="gaussian"), "known mechanism"),
    "unknown options": (lambda content: content.update(mechanism_options={"x": 1}), "known mechanism"),
    "a mechanism that cannot spend it": (lambda content: content.update(mechanism="naive"), "known mechanism"),
    "better arithmetic": (lambda content: content["privacy"].update(arithmetic="idealized"), "known mechanism"),
    "other rules": (lambda content: content["privacy"]["rules"].pop(), "rules of the statement"),
    "no rows": (lambda content: content.update(noisy_count=0.0), "number of rows"),
}  # fmt: skip


@pytest.mark.parametrize("edit", INCONSISTENT)
def test_verify_finds_what_loading_does_not_look_for(saved: Path, edit: str) -> None:
    assert all(check.passed for check in checks(dpm.load(saved)))
    change, words = INCONSISTENT[edit]
    forge(saved, change)
    failed = [check.what for check in checks(dpm.load(saved)) if check.passed is False]
    assert any(words in what for what in failed), failed


def test_a_public_number_of_rows_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "mean.json"
    release_mean(rho=0.5, neighbors="replace_one", output=path)
    forge(path, lambda content: content.update(noisy_count=400.5))
    assert [check.what for check in checks(dpm.load(path)) if not check.passed] == ["number of rows"]


def test_the_receipt_shows_consistency_and_verify_says_that_it_shows_no_more(saved: Path) -> None:
    """A forger who writes ten times the noise everywhere is not found out, and the check does not claim it."""

    def of_receipt() -> Check:
        (found,) = [check for check in checks(dpm.load(saved)) if check.what == "receipt adds up to the stated budget"]
        return found

    forge(saved, smaller_budget_everywhere)
    assert dpm.load(saved).privacy.rho == 0.05
    assert of_receipt().passed
    assert "does not show that the draws took place" in of_receipt().detail


def test_versions_may_calibrate_otherwise(saved: Path) -> None:
    forge(saved, lambda content: [content["privacy"].update(version="0.0.1"), content.update(mechanism="magic")])
    outcomes = checks(dpm.load(saved))
    assert [check.passed for check in outcomes] == [True, True, True, True, None]
    assert "made by dpmoments 0.0.1" in outcomes[-1].detail


# ---------------------------------------------------------------------------------------------------------------------
# making and writing


def test_a_warning_comes_after_the_file_and_carries_the_release(tmp_path: Path) -> None:
    path = tmp_path / "mean.json"
    table = np.random.default_rng(1).normal(50.0, 1.0, (2000, 2))
    options = {"rho": 0.5, "mechanism": "coinpress", "radius": 1.0, "scale": 0.01}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(dpm.ReleaseWarning) as caught:
            dpm.release_mean(table, dpm.Schema.unbounded(2), output=path, **options)
    assert isinstance(caught.value.release, dpm.MeanRelease)
    loaded = dpm.load(path)
    assert bits(loaded) == bits(caught.value.release)
    assert loaded.warnings[0] == caught.value.message_data == Message("rows-mostly-clipped")
    assert "mean-beyond-radius" in codes(loaded.warnings)
