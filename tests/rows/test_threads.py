"""How many threads a pass takes, by whom that is said, and what linear algebra beside it takes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.mechanisms.additive import AdditivePlan
from dpmoments.rows import summary as passes
from dpmoments.rows.kernel import exact_moments
from dpmoments.rows.summary import _blas_libraries, blas_threads
from dpmoments.spending.run import NOTHING_SPENT
from support.said import refused

TABLE = np.random.default_rng(0).uniform(-0.5, 0.5, (40, 2))


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many threads each pool was made for; a pass in one thread makes none."""
    found: list[int] = []

    class Pool(passes.ThreadPoolExecutor):
        def __init__(self, n_threads: int, *arguments: Any) -> None:
            found.append(n_threads)
            super().__init__(n_threads, *arguments)

    monkeypatch.setattr(passes, "ThreadPoolExecutor", Pool)
    return found


def blas() -> int:
    return max(library.num_threads for library in _blas_libraries())


@pytest.fixture
def four_usual() -> Iterator[None]:
    before = [library.num_threads for library in _blas_libraries()]
    for library in _blas_libraries():
        library.set_num_threads(4)
    yield
    for library, number in zip(_blas_libraries(), before, strict=True):
        library.set_num_threads(number)


def test_the_environment_says_how_many(monkeypatch: pytest.MonkeyPatch, started: list[int]) -> None:
    monkeypatch.setattr(passes, "usable_cores", lambda: 7)
    for written, expected in ((None, [7]), ("", [7]), (" 3 ", [3]), ("1", [])):
        monkeypatch.setenv("DPMOMENTS_THREADS", written) if written is not None else None
        exact_moments([TABLE, TABLE], 2)
        assert started == expected
        started.clear()
    exact_moments([TABLE, TABLE], 2, threads=2)  # whoever calls knows better
    assert started == [2]
    exact_moments([TABLE], 2, threads=2)  # one batch is read in the calling thread
    assert started == [2]


@pytest.mark.parametrize("written", ["0", "-1", "two", "1.5", "9" * 30, "²"])
def test_what_is_no_number_of_threads_is_refused_before_anything_is_reserved(
    written: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ledger = dpm.Ledger(tmp_path / "budget.db")
    ledger.grant("people", epsilon=1.0)
    monkeypatch.setenv("DPMOMENTS_THREADS", written)
    options: dict[str, Any] = dict(epsilon=1.0, ledger=ledger, dataset="people")
    with refused("is not a number of threads: set it to a whole number from 1", variable="DPMOMENTS_THREADS") as caught:
        dpm.release(TABLE, dpm.Schema.unit_ball(2), **options)
    assert caught.value.__notes__ == [NOTHING_SPENT]
    monkeypatch.delenv("DPMOMENTS_THREADS")
    with refused("must be", parameter="threads"):
        dpm.release(TABLE, dpm.Schema.unit_ball(2), threads=0, **options)
    assert [str(entry.action) for entry in ledger.history()] == ["grant"]


@pytest.mark.usefixtures("four_usual")
@pytest.mark.parametrize(("written", "expected"), [("", 4), ("2", 2), ("9", 4)])
def test_linear_algebra_of_a_run_takes_no_more(
    written: str, expected: int, monkeypatch: pytest.MonkeyPatch, started: list[int]
) -> None:
    seen: list[int] = []
    original = AdditivePlan.run

    def run(self: AdditivePlan, *arguments: Any) -> Any:
        seen.append(blas())
        return original(self, *arguments)

    monkeypatch.setattr(AdditivePlan, "run", run)
    monkeypatch.setenv("DPMOMENTS_THREADS", written)
    several_batches = np.tile(TABLE, (5_000, 1))
    dpm.release(several_batches, dpm.Schema.unit_ball(2), epsilon=1.0, mechanism="laplace")
    assert (seen, blas()) == ([expected], 4)
    assert started == ([int(written)] if written else started)


@pytest.mark.usefixtures("four_usual")
def test_limits_that_overlap_leave_what_was_set() -> None:
    """Two callers in two threads may leave in any order."""
    first, second, third = blas_threads(3), blas_threads(1), blas_threads(2)
    seen = []
    for step in (first.__enter__, second.__enter__, third.__enter__):
        step()
        seen.append(blas())
    for limit in (first, second, third):
        limit.__exit__(None, None, None)
        seen.append(blas())
    assert seen == [3, 1, 1, 1, 2, 4]
    with blas_threads(None), blas_threads(64):
        assert blas() == 4
    with pytest.raises(KeyError), blas_threads(1):
        raise KeyError
    assert blas() == 4
