"""The bounded part of `make fuzz`: some inputs of every reader, and planted faults that they find."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.csv as pa_csv
import pytest
import yaml

import fuzz
from dpmoments.base import records
from dpmoments.base import values as plain_values
from dpmoments.releases import counts_release
from dpmoments.rows.sources import arrow, text
from dpmoments.schema import document

pytestmark = pytest.mark.long(sets=None)

BOUNDED = {
    "release": 46, "several": 12, "mean-release": 20, "counts-release": 19, "schema": 40, "csv": 15, "frame": 25, "parquet": 10,
}  # fmt: skip


def test_changed_files_and_tables_are_refused_or_sound() -> None:
    outcomes = fuzz.run(BOUNDED)
    assert [outcome.faults for outcome in outcomes] == [()] * len(BOUNDED)
    for outcome in outcomes:
        assert 0 < outcome.accepted < outcome.inputs  # some of either kind, or nothing was tried


def number_of_any_kind(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def parse_options(**options: Any) -> Any:
    return pa_csv.ParseOptions(**options | {"newlines_in_values": False})


def told_as_it_is(step: Callable[[], Any], *_: Any, **__: Any) -> Any:
    return step()


def sliced_short(_: Any, batches: Any, *__: Any, **___: Any) -> Any:
    for batch in batches:
        yield batch.slice(0, max(batch.num_rows - 1, 1))


UNSAFE = {name: getattr(yaml.UnsafeLoader, name) for name in ("yaml_constructors", "yaml_multi_constructors")}
"""The tags of a loader that makes any object."""


class ArrowCsv:
    """pyarrow.csv, but for its options."""

    ParseOptions = staticmethod(parse_options)

    def __getattr__(self, name: str) -> Any:
        return getattr(pa_csv, name)


PLANTED: dict[str, tuple[str, dict[tuple[Any, str], Any]]] = {
    "numbers that are not finite": (
        "release",
        {(module, "is_finite_number"): number_of_any_kind for module in (records, plain_values)},
    ),
    "counts of any size": ("counts-release", {(counts_release, "_MAX_COUNT"): float("inf")}),
    "values of any depth": ("release", {(plain_values, "_MAX_DEPTH"): 10**9}),
    "objects in YAML": (
        "schema",
        {(document, "_CoreLoader"): type("Loader", (document._CoreLoader, yaml.UnsafeLoader), UNSAFE)},
    ),
    "line breaks end records": ("csv", {(text, "pa_csv"): ArrowCsv()}),
    "errors that quote cells": ("csv", {(text, "read_quietly"): told_as_it_is}),
    "a row lost at the end of a batch": ("parquet", {(arrow.ArrowSource, "sliced"): sliced_short}),
}


def first_fault(reader: str, folder: Path) -> str | None:
    faults = (fuzz.tried(reader, 0, number, folder)[1] for number in range(BOUNDED[reader]))
    return next(filter(None, faults), None)


@pytest.mark.long
@pytest.mark.parametrize("name", PLANTED)
def test_the_inputs_find_a_planted_fault(name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reader, planted = PLANTED[name]
    for (module, attribute), value in planted.items():
        monkeypatch.setattr(module, attribute, value)
    assert first_fault(reader, tmp_path) is not None


EATS_MEMORY = (
    "calls = []\ndef fuzz_schema(*_):\n    calls.append(1)\n    return len(calls) > 1 and bytearray(1 << 31) is None"
)
DIES = "def fuzz_schema(random, folder): __import__('os').abort()"
HANGS = "def fuzz_schema(*_):\n    while True: pass"


@pytest.mark.long
@pytest.mark.parametrize(("reader", "words"), [(EATS_MEMORY, "MemoryError"), (DIES, "died"), (HANGS, "more than 20 s")])
def test_the_child_finds_what_a_process_can_do(
    reader: str, words: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    alarm, soon = "signal.alarm(SECONDS_PER_INPUT)", "signal.setitimer(signal.ITIMER_REAL, 0.2)"
    source = Path(fuzz.__file__).read_text().replace(alarm, soon)
    (tmp_path / "fuzz.py").write_text(source)
    (tmp_path / "support").mkdir()
    (tmp_path / "support" / "fuzzed_documents.py").write_text(
        f"fuzz_release = fuzz_several = fuzz_mean_release = fuzz_counts_release = None\n{reader}\n"
    )
    (tmp_path / "support" / "fuzzed_tables.py").write_text("fuzz_csv = fuzz_frame = fuzz_parquet = None\n")
    monkeypatch.setattr(fuzz, "__file__", str(tmp_path / "fuzz.py"))
    (outcome,) = fuzz.run({"schema": 2})
    assert len(outcome.faults) == 2
    assert all(words in fault for fault in outcome.faults)
