"""What docs/threat-model.md claims and no other test looks at; and that every test which the page names exists."""

from __future__ import annotations

import ast
import os
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq
import pytest

import dpmoments as dpm
from contracts.cases import CASES, COMPARISONS, MEAN_CASES
from dpmoments.audit.replay import Exchange, Recorder, Replayer
from dpmoments.cli import main
from dpmoments.privacy import origin, sampling
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sampling import discrete_gaussian, insecure_generator, secure_generator
from dpmoments.rows.rows import Rows
from support.forged_files import forge

ROOT = Path(__file__).parents[2]

# Tests that the pages name ---------------------------------------------------------------------------------------------------

PAGES = (ROOT / "docs" / "evidence" / "tables" / "claims.csv", ROOT / "docs" / "threat-model.md", ROOT / "SECURITY.md")
NAMED = re.compile(r"`((?:\w+/)*test_\w+\.py)(?:::(\w+(?:::\w+)?))?`")
"""A test as the pages name it: `test_file.py::test_function`, `test_file.py::TestClass::test_method`, or a whole file."""


@cache
def defined_tests(path: Path) -> set[str]:
    """Names of the tests that a file defines, methods after the name of their class."""
    found = set()
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            found.add(node.name)
        if isinstance(node, ast.ClassDef):
            found |= {f"{node.name}::{inner.name}" for inner in node.body if isinstance(inner, ast.FunctionDef)}
    return {name for name in found if name.rpartition("::")[2].startswith("test_")}


def missing_tests(text: str) -> list[str]:
    """Tests that a page names and that do not exist."""
    missing = []
    for file, name in NAMED.findall(text):
        path = ROOT / "tests" / file
        if not path.is_file() or (name and name not in defined_tests(path)):
            missing.append(f"{file}::{name}" if name else file)
    return missing


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_test_that_a_page_names_exists(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert missing_tests(text) == []
    # Whatever looks like a test's name is one in full, so that none escapes the check above.
    assert not re.findall(r"\btest_\w+", NAMED.sub("", text).replace("tests/", ""))


def test_a_test_that_is_gone_would_be_found() -> None:
    here = f"contracts/{Path(__file__).name}"
    good = f"`{here}::test_a_test_that_is_gone_would_be_found`, `{here}`, `papers/test_sphere.py::TestCoordinateLaw::test_exact`"
    assert missing_tests(good) == []
    for gone in (f"{here}::test_that_is_gone", "test_gone.py", "test_gone.py::test_a", f"{here}::missing_tests"):
        assert missing_tests(f"{good} and `{gone}`") == [gone]


@pytest.mark.long
def test_the_page_lists_every_mechanism_under_its_arithmetic() -> None:
    text = (ROOT / "docs" / "threat-model.md").read_text(encoding="utf-8")
    listed = {
        line.split("`")[1]: set(re.findall(r"`([a-z-]+)`", line)) for line in text.splitlines() if line[:3] == "- `"
    }
    for case in CASES + MEAN_CASES:
        name = case.mechanism.name
        found, arithmetic = {kind for kind, names in listed.items() if name in names}, str(case.plan().arithmetic)
        if name == "standardized":  # by the kind of its budget
            assert found == {"exact-lattice", "lattice-rounded"} >= {arithmetic}
        elif name != "auto" and name not in COMPARISONS:  # auto has that of the mechanism it takes
            assert found == {arithmetic}, f"docs/threat-model.md must name {name} under {arithmetic}"


# The whole job, replayed -----------------------------------------------------------------------------------------------------

SCHEMA = """
columns:
  - {name: age, kind: numeric, lower: 0, upper: 100, missing: MISSING}
  - {name: pay, kind: numeric, lower: -50, upper: 50, missing: center}
  - {name: region, kind: categorical, levels: [north, south], missing: drop}
  - {name: flag, kind: boolean, missing: center}
"""
ROUGH_SCHEMA = """
columns:
  - {name: age, kind: numeric, scale: [0.1, 100], missing: drop}
  - {name: pay, kind: numeric, scale: [0.1, 100], missing: center}
"""
Row = tuple[float | None, float | None, str | None, bool | None]
ORDINARY: Row = (44.0, 1.0, "north", True)
ODD_ROWS: dict[str, Row] = {
    "an ordinary row": ORDINARY,
    "far outside its bounds": (1e300, -1e300, "south", False),
    "a dropped row": (None, 3.0, "north", True),
    "an unknown level": (30.0, 3.0, "nowhere", True),
    "empty cells": (20.0, None, "north", None),
}


def some_rows(n_rows: int) -> list[Row]:
    rng = np.random.default_rng(n_rows)
    regions = rng.choice(["north", "south"], n_rows)
    return [
        (float(age), float(pay), str(region), bool(flag))
        for age, pay, region, flag in zip(
            rng.uniform(20, 70, n_rows), rng.normal(0, 9, n_rows), regions, rng.random(n_rows) < 0.3, strict=True
        )
    ]


def write_table(rows: Sequence[Row], path: str) -> None:
    kinds = (pa.float64(), pa.float64(), pa.string(), pa.bool_())
    columns = zip(*rows, strict=True) if rows else [()] * 4
    names = ("age", "pay", "region", "flag")
    table = pa.table({name: pa.array(cells, kind) for name, cells, kind in zip(names, columns, kinds, strict=True)})
    (pa_csv.write_csv if path.endswith(".csv") else pq.write_table)(table, path)


@dataclass(frozen=True)
class Seen:
    """All that leaves a command."""

    code: int
    out: str
    err: str
    files: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True)
class Job:
    """A command and the table's file that it reads."""

    arguments: str
    table: str = "people.parquet"
    schema: str = SCHEMA.replace("MISSING", "drop")


JOBS = {
    "pure": Job("release --epsilon 1"),
    "pure, from text": Job("release --epsilon 1", "people.csv"),
    "gaussian, no mean": Job("release --epsilon 1 --delta 1e-6 --no-mean"),
    "eigenvectors": Job("release --epsilon 1 --mechanism iterative-eigenvectors"),
    "Wishart": Job("release --epsilon 1 --delta 1e-6 --mechanism johnson-lindenstrauss --option adaptive=true"),
    "rough scales": Job("release --rho 0.5", schema=ROUGH_SCHEMA),
    "a mean alone": Job("release-mean --rho 0.5"),
    "a table of counts": Job("release-counts --epsilon 1 --by region:flag"),
}


@contextmanager
def filters_that(make: Callable[[Any], PrivacyFilter], monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """Every run opens the filter that ``make`` makes for its plan; they are listed."""
    opened: list[Any] = []

    def open_one(plan: Any, **_: object) -> PrivacyFilter:
        opened.append(make(plan))
        return opened[-1]

    with monkeypatch.context() as patch:
        patch.setattr(PrivacyFilter, "open", open_one)
        # the one thing in a release that is random and no answer
        patch.setattr(origin, "secrets", SimpleNamespace(token_hex=lambda _: "0" * 32))
        yield opened


class Stage:
    """Runs commands on tables, each in a folder of its own, where all files have the same names."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
        self.folder, self.monkeypatch, self.capfd, self.n_runs = folder, monkeypatch, capfd, 0

    def run(self, job: Job, rows: Sequence[Row], neighbors: str) -> Seen:
        self.n_runs += 1
        folder = self.folder / str(self.n_runs)
        folder.mkdir()
        self.monkeypatch.chdir(folder)
        write_table(rows, job.table)
        Path("people.yaml").write_text(job.schema)
        given = {path.name for path in folder.iterdir()}
        self.capfd.readouterr()
        command, *options = job.arguments.split()
        files = ["--schema", "people.yaml", "--output", "people.json"]
        code = main([command, job.table, "--neighbors", neighbors, *files, *options])
        said = self.capfd.readouterr()
        left = sorted(path for path in folder.iterdir() if path.name not in given)
        return Seen(code, said.out, said.err, tuple((path.name, path.read_bytes()) for path in left))

    def recorded(self, job: Job, rows: Sequence[Row], neighbors: str) -> tuple[Seen, list[Exchange]]:
        with filters_that(lambda plan: Recorder(plan, insecure_generator(7)), self.monkeypatch) as opened:
            seen = self.run(job, rows, neighbors)
        return seen, [exchange for recorder in opened for exchange in recorder.exchanges]

    def replayed(
        self, job: Job, rows: Sequence[Row], neighbors: str, answers: list[Exchange]
    ) -> tuple[Seen, list[str]]:
        with filters_that(lambda plan: Replayer(plan, answers), self.monkeypatch) as opened:
            seen = self.run(job, rows, neighbors)
        for replayer in opened:
            replayer.check_all_made()
        return seen, [fault for replayer in opened for fault in replayer.faults]


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Stage:
    return Stage(tmp_path, monkeypatch, capfd)


def neighbors_of(rows: list[Row], odd: Row, neighbors: str) -> list[Row]:
    """The row added in the middle of the table, or in place of the one there."""
    place = len(rows) // 2
    return [*rows[:place], odd, *rows[place + (neighbors == "replace_one") :]]


@pytest.mark.long
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("name", JOBS)
def test_a_command_shows_no_more_than_its_noisy_answers(name: str, neighbors: str, stage: Stage) -> None:
    """Two neighboring tables and the same answers: the same exit code, output, error output and files, bit for bit."""
    job = JOBS[name]
    tables = [some_rows(60)] if neighbors == "replace_one" else [some_rows(60), []]
    for rows in tables:
        seen, answers = stage.recorded(job, rows, neighbors)
        assert (seen.code, [file for file, _ in seen.files]) == (0, ["people.json"]), seen.err
        assert answers
        for odd in ODD_ROWS.values():
            assert stage.replayed(job, neighbors_of(rows, odd, neighbors), neighbors, answers) == (seen, [])


@pytest.mark.long
def test_a_command_that_tells_the_number_of_rows_is_found(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted faults: the count of the rows on standard error, and in the file."""
    job, rows = JOBS["pure"], some_rows(60)
    more = neighbors_of(rows, ORDINARY, "add_remove")
    honest = Rows.moments_of_moved

    def telling(self: Rows, *arguments: Any, **options: Any) -> Any:
        print(self.table_size(), file=sys.stderr)
        return honest(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Rows, "moments_of_moved", telling)
        seen, answers = stage.recorded(job, rows, "add_remove")
        assert stage.replayed(job, more, "add_remove", answers)[0] != seen

    def in_diagnostics(_: Any, count: Any, diagnostics: Any, *__: Any) -> Any:
        return count, {**diagnostics, "rows": counted[-1]}

    counted: list[int] = []

    def counting(self: Rows, *arguments: Any, **options: Any) -> Any:
        counted.append(self.table_size())
        return honest(self, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Rows, "moments_of_moved", counting)
        patch.setattr("dpmoments.spending.release.within_table", in_diagnostics)
        seen, answers = stage.recorded(job, rows, "add_remove")
        assert stage.replayed(job, more, "add_remove", answers)[0].files != seen.files


def test_a_stop_by_a_rule_is_seen_by_whoever_sees_exit_codes(stage: Stage) -> None:
    """What the page says is outside the guarantee: under missing="error" one row decides whether a release is made."""
    job = Job("release --epsilon 1", schema=SCHEMA.replace("MISSING", "error"))
    seen, answers = stage.recorded(job, some_rows(60), "add_remove")
    stopped, faults = stage.replayed(
        job, neighbors_of(some_rows(60), ODD_ROWS["a dropped row"], "add_remove"), "add_remove", answers
    )
    assert (seen.code, stopped.code, stopped.files) == (0, 1, ())
    assert "A preflight check counts such cells" in stopped.err
    assert faults == [f"{len(answers)} draws of the other run were not made"]


@pytest.mark.long
def test_a_release_file_tells_no_path_time_format_or_order(stage: Stage) -> None:
    """The same rows in another order and format, in another folder and at another time: the same bytes."""
    seeded = "release --epsilon 1 --insecure-seed 5"
    rows = some_rows(60)
    first = stage.run(Job(seeded), rows, "add_remove")
    assert stage.run(Job(seeded), rows[::-1], "add_remove").files == first.files
    assert stage.run(Job(seeded, "people.csv"), rows[30:] + rows[:30], "add_remove").files == first.files
    assert stage.run(Job(seeded), rows[1:], "add_remove").files != first.files


# Where the noise comes from ----------------------------------------------------------------------------------------------------


def bits_that_count(draw_with: Callable[[bytes], bytes]) -> int:
    """How many of the 128 bits that the operating system gives change what is drawn."""
    key = bytes(range(100, 116))
    usual = draw_with(key)
    assert draw_with(key) == usual
    turned = [(int.from_bytes(key, "big") ^ (1 << bit)).to_bytes(16, "big") for bit in range(128)]
    return len({draw_with(other) for other in turned} - {usual})


def test_every_bit_of_the_key_comes_from_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    def drawn(key: bytes) -> bytes:
        asked: list[int] = []

        def urandom(size: int) -> bytes:
            asked.append(size)
            return key

        monkeypatch.setattr(sampling.os, "urandom", urandom)
        noise = secure_generator().standard_normal(4).tobytes()
        assert asked == [16]
        return noise

    assert bits_that_count(drawn) == 128
    # planted fault: a key of 16 bits
    assert bits_that_count(lambda key: drawn(key[:2] * 8)) == 16


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_exact_noise_differs_after_a_fork() -> None:
    """Its bits come from the operating system, whatever key the generator has."""
    generator = secure_generator()

    def drawn() -> bytes:
        return discrete_gaussian(2.0**40, 8, generator).tobytes()

    drawn()
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.write(writer, drawn())
        os._exit(0)
    os.waitpid(child, 0)
    childs, ours = os.read(reader, 64), drawn()
    assert len(childs) == len(ours)
    assert childs != ours


# A file from a stranger ------------------------------------------------------------------------------------------------------

ESCAPES = "\x1b[2J\x1b]0;title\x07\x9b31m\r\u202e"


@pytest.mark.long
def test_a_file_cannot_steer_the_terminal(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names, rules and warnings of a release are printed without control characters, on both streams."""
    monkeypatch.chdir(tmp_path)
    name = f"age{ESCAPES}"
    schema = dpm.Schema(dpm.Numeric(name, 0, 1), dpm.Numeric("pay", 0, 1))
    dpm.release(np.full((9, 2), 0.5), schema, epsilon=1.0, insecure_seed=0, output="plain.json")
    dpm.release(np.full((9, 2), 0.5), schema, epsilon=1.0, insecure_seed=0, output="told.json")

    def edit(content: dict[str, Any]) -> None:
        content["privacy"]["rules"][0]["facts"]["column"] += ESCAPES
        content["mechanism"] += ESCAPES
        content["warnings"] = [{"code": "location-lost", "facts": {"names": [f"look{ESCAPES}"]}}]

    forge(Path("told.json"), edit)
    Path("schema.yaml").write_text(f'columns: [{{name: "{ESCAPES.encode("unicode_escape").decode()}", kind: numeric}}]')
    said = []
    for command in (
        ["show", "told.json"],
        ["verify", "told.json"],
        ["describe", "plain.json"],
        ["ridge", "plain.json", name],
        ["ridge", "plain.json", "pay"],
        ["pca", "plain.json"],
        ["forecast", "--schema", "schema.yaml", "--n-rows", "9", "--epsilon", "1"],
        ["show", f"absent{ESCAPES}.json"],
    ):
        main(command)
        said += capfd.readouterr()
    steering = {"\x1b", "\x07", "\x9b", "\r", "\u202e"}
    assert [text for text in said if steering & set(text)] == []
    assert sum("age\\x1b" in text for text in said) >= 3  # the names were printed
