"""What tests of several files share because it takes long to start, and which tests are in which suite."""

from __future__ import annotations

import gc
from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Any
from zlib import crc32

import pytest
from hypothesis.internal.conjecture import providers

from support import network, scheduling

collect_ignore = ["contracts/user_script.py"]  # checked by its types, never run

MAX_SETS = 4
"""Of a test of more sets of parameters, by default so many are run that each value of each parameter occurs."""


network.forbid()


def pytest_configure(config: pytest.Config) -> None:
    """Keep Hypothesis from drawing constants of modules that happen to be loaded: a process would have examples of its own."""
    if config.getoption("--hypothesis-profile") == "ci":
        providers._get_local_constants = lambda: providers._local_constants  # which are none


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    return scheduling.FilesTogether(config, log) if config.getoption("dist") == "loadfile" else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Twenty thousand tests stay to the end: nothing looks for garbage while they are made, nor among them afterwards."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.set_threshold(50_000, 20, 50)
        gc.enable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave sets of parameters to ``make test-slow``: all but a cover, and all but one, or ``sets``, of a ``long`` test."""
    items.sort(key=lambda item: place_of(item.nodeid.partition("::")[0]))
    tests: dict[str, list[Any]] = defaultdict(list)
    for item in items:
        if hasattr(item, "callspec") and item.get_closest_marker("slow") is None:
            tests[item.nodeid.partition("[")[0]].append(item)
    for sets in tests.values():
        order = [crc32(item.nodeid.encode()) for item in sets]
        long = sets[0].get_closest_marker("long")
        most = None if long is None else long.kwargs.get("sets", 1)
        if most is not None:
            kept = set(sorted(range(len(sets)), key=order.__getitem__)[:most])
        elif len(sets) > MAX_SETS:
            kept = cover([factors(item) for item in sets], order)
        else:
            continue
        for place in set(range(len(sets))).difference(kept):
            sets[place].add_marker("slow")


def place_of(file: str) -> int:
    return scheduling.FIRST.index(file) if file in scheduling.FIRST else len(scheduling.FIRST)


def factors(item: Any) -> tuple[Any, ...]:
    """What a set of parameters is made of: a value from each ``parametrize``, of a case its ``factors``."""
    given = dict(item.callspec.params)
    named = [mark.args[0] for mark in item.iter_markers("parametrize")]
    together = [[name.strip() for name in (names.split(",") if isinstance(names, str) else names)] for names in named]
    found: list[Any] = []
    for names in together:
        values = [given.pop(name) for name in names]
        found += [factor for value in values for factor in getattr(value, "factors", ())]
        found.append(tuple(id(value) for value in values if not hasattr(value, "factors")))
    return (*found, *(id(value) for value in given.values()))


def cover(sets: Sequence[tuple[Any, ...]], order: Sequence[int]) -> set[int]:
    """Places of sets in which each value of each factor is found: of all that add most, the first in order."""
    missing = [set(enumerate(values)) for values in sets]
    left = set().union(*missing)
    kept: set[int] = set()
    while left:
        place = max(range(len(sets)), key=lambda place: (len(missing[place] & left), -order[place]))
        kept.add(place)
        left -= missing[place]
    return kept


@pytest.fixture(scope="session")
def spark() -> Iterator[Any]:
    """A session of two threads; for tests that are marked ``of_spark``."""
    pytest.importorskip("pyspark", reason="PySpark is not installed: pip install 'dpmoments[spark]'")
    from support.spark_session import start

    session = start("local[2,4]")  # a task may fail three times
    yield session
    session.stop()
