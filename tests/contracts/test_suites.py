"""Which tests are in which suite, and in which process."""

from __future__ import annotations

import importlib.util
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from support.scheduling import FIRST, OF_SPARK, FilesTogether

TESTS = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def suites() -> Any:
    spec = importlib.util.spec_from_file_location("suites", TESTS / "conftest.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("sizes", [(5,), (3, 7), (4, 3, 2), (9, 3, 2, 2)])
def test_a_cover_has_every_value_in_as_few_sets_as_can_be(suites: Any, sizes: tuple[int, ...]) -> None:
    sets = [*product(*map(range, sizes))]
    kept = [sets[place] for place in suites.cover(sets, order=[*range(len(sets))])]
    assert all({one[at] for one in kept} == {*range(size)} for at, size in enumerate(sizes))
    assert len(kept) == max(sizes)


def test_files_that_share_a_session_of_spark_go_to_one_process() -> None:
    """The file that is left out starts sessions in a program of its own."""
    assert all((TESTS.parent / name).exists() for name in FIRST)
    asking = {
        path.relative_to(TESTS.parent).as_posix()
        for path in TESTS.rglob("test_*.py")
        if "\nfrom support.spark_session import of_spark\n" in path.read_text()
    }
    assert asking == {*OF_SPARK, "tests/rows/test_spark_disk.py"}
    scheduler = FilesTogether.__new__(FilesTogether)
    assert len({scheduler._split_scope(f"{file}::test_x[a::b]") for file in OF_SPARK}) == 1
    assert len({scheduler._split_scope(f"{file}::test_x") for file in FIRST}) == len(FIRST) - len(OF_SPARK) + 1
