"""Releases leave the process that paid for them: pickled in memory, deep-copied, and returned from a pool."""

from __future__ import annotations

import copy
import multiprocessing
import pickle
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import dpmoments as dpm
from dpmoments.releases.disclosed import ReleaseWarning
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.spending.run import UnsavedReleaseError
from support.releases_of_workers import KINDS, released, unsaved, warned


@cache
def release_of(kind: str) -> Any:
    return KINDS[kind](insecure_seed=0)


def parts_of(kind: str) -> dict[str, Any]:
    """What one keeps of a release, with the release itself."""
    release = release_of(kind)
    result = {"release": release, "receipt": release.receipt, "profile": release.privacy_profile}
    if kind in ("moments", "available", "pooled"):
        result |= {"noise": release.noise, "table": release.describe(), "fit": release.ols("y", ["x"])}
    return result


def survives(value: Any) -> bool:
    """True if copies by either way print, and write to a file, what the value does."""
    copies = (pickle.loads(pickle.dumps(value)), copy.deepcopy(value))
    return all(
        str(each) == str(value) and getattr(each, "to_dict", list)() == getattr(value, "to_dict", list)()
        for each in copies
    )


@pytest.mark.long(sets=3)
@pytest.mark.parametrize("kind", KINDS)
def test_copies_are_the_same_release(kind: str) -> None:
    for name, value in parts_of(kind).items():
        assert survives(value), name


@pytest.mark.long
def test_a_pool_returns_what_a_ledger_was_charged_for(tmp_path: Path) -> None:
    ledger = dpm.Ledger(tmp_path / "budget.db")
    for dataset in ("people", "part 0", "part 1"):
        ledger.grant(dataset, epsilon=100.0, delta=1e-3, neighbors="add_remove")
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.starmap_async(released, [(kind, str(ledger.path)) for kind in KINDS]).get(timeout=300)
        for work, error in ((unsaved, UnsavedReleaseError), (warned, ReleaseWarning)):
            with pytest.raises(error) as caught:  # type: ignore[var-annotated]
                pool.apply_async(work, (str(tmp_path),)).get(timeout=60)
            assert isinstance(caught.value.release, MomentRelease)
            assert str(caught.value)
    assert [type(each) for each in found] == [type(release_of(kind)) for kind in KINDS]
    assert ledger.spent("people").epsilon > 0
    for release in found:
        release.save(tmp_path / "kept.json")
        assert dpm.load(tmp_path / "kept.json").to_dict() == release.to_dict()
        (tmp_path / "kept.json").unlink()
