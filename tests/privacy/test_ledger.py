"""Releases charged to a ledger: the order of what happens, what each end leaves, and what is refused before a row is read."""

from __future__ import annotations

import contextlib
import copy
import dataclasses
import json
import os
import pickle
import re
import shlex
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.cli import main
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.accounts import Action
from dpmoments.privacy.filter import PrivacyFilter, PrivacyFilterError
from dpmoments.privacy.ledger import Ledger
from dpmoments.privacy.origin import LedgerEntry
from dpmoments.rows.rows import Rows
from dpmoments.spending.run import COST_SPENT, NOTHING_SPENT
from support.forged_files import forge
from support.ledger_processes import in_child, quick_folder
from support.said import Said, refused, warned

SCHEMA = dpm.Schema.unit_ball(2)
TABLE = np.random.default_rng(0).uniform(-0.5, 0.5, (50, 2))
NAMED = dpm.Schema(dpm.Numeric("x", -1, 1, missing="error"), dpm.Categorical("level", ["a", "b"], missing="error"))
ROWS = pa.table({"x": [0.1, 0.2] * 20, "level": ["a", "b"] * 20})
UNREAD = "no-such-table.parquet"
JOBS: dict[str, Callable[..., Any]] = {
    "release": lambda rows=ROWS, **options: dpm.release(rows, NAMED, **{"epsilon": 0.5, **options}),
    "release_mean": lambda rows=ROWS, **options: dpm.release_mean(rows, NAMED, **{"rho": 0.01, **options}),
    "release_counts": lambda rows=ROWS, **options: dpm.release_counts(
        rows, NAMED, by="level", **{"epsilon": 0.5, **options}
    ),
    "release_groups": lambda rows=ROWS, **options: dpm.release_groups(
        rows, NAMED, by="level", **{"epsilon": 0.5, **options}
    ),
}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with quick_folder(tmp_path) as found:
        yield found


@pytest.fixture
def ledger(folder: Path) -> dpm.Ledger:
    kept = dpm.Ledger(folder / "budget.db", timeout=0.2)
    kept.grant("people", epsilon=1.0, delta=1e-6)
    return kept


def actions(ledger: dpm.Ledger) -> list[str]:
    return [str(entry.action) for entry in ledger.history()[1:]]


def no_row_is_read(patch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any, **options: Any) -> Any:
        raise AssertionError(f"a row was read: {arguments}, {options}")

    for name in ("moments", "count", "histogram", "summarize", "table_size"):
        if hasattr(Rows, name):
            patch.setattr(Rows, name, fail)
    patch.setattr(PrivacyFilter, "draw", fail)


# What a release does ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("job", JOBS)
def test_a_release_is_reserved_made_written_and_committed_in_this_order(
    job: str, ledger: dpm.Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As another process sees the file at each step."""
    steps: list[tuple[str, list[str]]] = []

    def watched(owner: Any, name: str, step: str) -> None:
        original = getattr(owner, name)

        def call(*arguments: Any, **options: Any) -> Any:
            steps.append((step, actions(dpm.Ledger(ledger.path))))
            return original(*arguments, **options)

        monkeypatch.setattr(owner, name, call)

    watched(PrivacyFilter, "draw", "draw")
    for kind in (dpm.MomentRelease, dpm.MeanRelease, dpm.CountsRelease, dpm.GroupReleases):
        watched(kind, "save", "save")
    made = JOBS[job](ledger=ledger, dataset="people", output=folder / "made.json")
    seen = [step for step, _ in steps]
    assert seen[0] == "draw"
    assert seen[-1] == "save"
    assert all(found == ["reserve"] for _, found in steps)
    assert actions(ledger) == ["reserve", "commit"]
    assert all(check.passed for check in ledger.verify([made, dpm.load(folder / "made.json")]))
    (held,) = (entry for entry in ledger.history() if entry.action is Action.RESERVE)
    assert held.content["cost"] == made.privacy.budget.to_dict()
    assert held.content["release"] == made.id


def test_groups_are_charged_once_and_pools_and_copies_not_at_all(ledger: dpm.Ledger, folder: Path) -> None:
    groups = JOBS["release_groups"](ledger=ledger, dataset="people")
    groups.save(folder / "groups.json")
    ledger.grant("others", epsilon=1.0)
    one = dpm.release(TABLE, SCHEMA, epsilon=0.5, ledger=ledger, dataset="people")
    two = dpm.release(TABLE, SCHEMA, epsilon=0.5, ledger=ledger, dataset="others")
    before = ledger.head
    pooled = dpm.pool([one, two])
    copy = one.with_repair("none")
    assert ledger.head == before
    assert ledger.spent("people").epsilon == 1.0
    assert all(check.passed for check in ledger.verify([groups, dpm.load(folder / "groups.json"), pooled, copy]))
    assert len(ledger.verify([groups, pooled])) == 3 + 2 + 2


def test_next_month_s_release_fits_and_the_one_after_does_not(
    ledger: dpm.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    for spent in ("ε = 0.5, δ = 0 by 1 release", "ε = 1, δ = 0 by 2 releases"):
        JOBS["release"](ledger=Path(ledger.path), dataset="people")
        with refused(f"spent {spent}, remaining", dpm.BudgetExceededError):
            JOBS["release"](ledger=str(ledger.path), dataset="people", epsilon=0.6)
    no_row_is_read(monkeypatch)
    amounts = {"granted": "ε = 1, δ = 1e-06", "spent": "ε = 1, δ = 0", "remaining": "nothing", "releases": 2}
    with refused("does not allow this release", dpm.BudgetExceededError, dataset="people", **amounts) as error:
        JOBS["release"](ledger=str(ledger.path), dataset="people", epsilon=0.6)
    assert "would cost ε = 0.6" in str(error.value)
    assert actions(ledger) == ["reserve", "commit"] * 2


# What is refused before a row is read -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("job", JOBS)
@pytest.mark.parametrize(
    ("options", "error", "code"),
    [
        ({"dataset": None}, ValueError, "a ledger keeps a budget for each dataset: name it"),
        ({"dataset": "firms"}, dpm.LedgerError, "The ledger has no budget for dataset"),
        ({"dataset": " "}, ValueError, "printable characters, such as 'people-2026"),
        ({"insecure_seed": 0}, ValueError, "a release with an insecure seed is not private and cannot"),
        ({"ledger": 7}, TypeError, "ledger must be a dpmoments.Ledger or the path of its file"),
        ({"ledger": "no-such-ledger.db"}, dpm.LedgerError, "does not exist"),
        ({"dataset": "of persons"}, dpm.LedgerError, "is for the privacy unit"),
    ],
)
def test_a_ledger_refuses_before_the_table_is_opened(
    job: str, options: dict[str, Any], error: type[Exception], code: str, ledger: dpm.Ledger
) -> None:
    ledger.grant("of persons", epsilon=1.0, unit="person")
    with refused(code, error):
        JOBS[job](UNREAD, **{"ledger": ledger, "dataset": "people", **options})
    assert actions(ledger) == ["grant"]


@pytest.mark.parametrize("dataset", ["people", "of persons", "firms"])
def test_an_unknown_unit_column_is_refused_before_the_ledger_advises(dataset: str, ledger: dpm.Ledger) -> None:
    ledger.grant("of persons", epsilon=1.0, unit="number")
    kept, options = actions(ledger), {"ledger": ledger, "dataset": dataset, "epsilon": 0.5}
    table = pa.table({**ROWS.to_pydict(), "number": range(len(ROWS))})
    with refused("rename the column in the table or, if every file has", names=("Numbers",)) as caught:
        dpm.release(table, NAMED, privacy_unit=dpm.PrivacyUnit("Numbers", 1), **options)
    assert ("did you mean" in str(caught.value)) == (dataset == "of persons")  # the budget's unit is public
    with refused("rename the column in the table or, if every file has", hint=Said("; it has ", names=("number",))):
        dpm.release(table, NAMED, privacy_unit=dpm.PrivacyUnit("Num-ber", 1), **options)
    if dataset != "of persons":
        with refused(
            "The ledger has no budget for dataset" if dataset == "firms" else "is for the privacy unit", dpm.LedgerError
        ):
            dpm.release(table, NAMED, privacy_unit=dpm.PrivacyUnit("number", 1), **options)
    assert actions(ledger) == kept


def test_a_release_for_another_relation_is_refused(ledger: dpm.Ledger) -> None:
    for job in ("release", "release_mean"):
        with refused("a cost under replace_one says", dpm.LedgerError, granted="add_remove", neighbors="replace_one"):
            JOBS[job](UNREAD, ledger=ledger, dataset="people", neighbors="replace_one")


def test_an_output_that_cannot_be_is_refused_before_anything_is_reserved(ledger: dpm.Ledger, folder: Path) -> None:
    for job in JOBS.values():
        with pytest.raises(FileNotFoundError):
            job(ledger=ledger, dataset="people", output=folder / "gone" / "a.json")
    assert actions(ledger) == []


BAD_GRANTS: dict[str, tuple[dict[str, Any], Said]] = {
    "none": ({}, Said("give one of epsilon (with or without delta), rho and mu")),
    "two": ({"epsilon": 1.0, "rho": 1.0}, Said("give the privacy budget as epsilon (with or without", given="not both")),
    "mu and delta": ({"mu": 1.0, "delta": 1e-6}, Said("give only one of epsilon (with or without delta), rho and mu")),
    "NaN": ({"mu": float("nan")}, Said("mu must be positive and finite (at")),
    "mu of zero": ({"mu": 0}, Said("mu must be positive and finite (at", value=0)),
    "a text": ({"mu": "1"}, Said("must be", expected="a number", got="str", parameter="mu")),
    "an unknown composition": (
        {"epsilon": 1.0, "delta": 1e-6, "composition": "best"}, Said(": use '", parameter="composition", value="best"),
    ),
    "a composition of a pure budget": (
        {"epsilon": 1.0, "composition": "zcdp"}, Said("needs a budget of epsilon and delta", composition="zcdp"),
    ),
    "no unit": ({"epsilon": 1.0, "unit": ""}, Said("printable characters, such as 'row", unit="")),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD_GRANTS)
def test_what_is_no_grant(what: str, folder: Path) -> None:
    arguments, said = BAD_GRANTS[what]
    with refused(said, (ValueError, TypeError)):
        dpm.Ledger(folder / "new.db").grant("people", **arguments)
    with refused("a ledger keeps a budget for each dataset: name it"):
        dpm.Ledger(folder / "new.db").grant(None, epsilon=1.0)  # type: ignore[arg-type]
    assert not list(folder.iterdir())


def test_a_grant_is_raised_and_lowered_but_not_below_what_is_spent(ledger: dpm.Ledger) -> None:
    ledger.grant("people", epsilon=2.0)  # nothing is spent: anything may change
    JOBS["release"](ledger=ledger, dataset="people")
    ledger.grant("people", epsilon=0.5)
    assert ledger.left("people").epsilon == 0.0
    with refused("a grant cannot be lowered", dpm.LedgerError, dataset="people", spent="ε = 0.5"):
        ledger.grant("people", epsilon=0.4)
    for change in ({"epsilon": 3.0, "delta": 1e-6}, {"rho": 3.0}, {"mu": 3.0}):
        with refused("was granted a budget with", dpm.LedgerError, what="kind", granted="pure"):
            ledger.grant("people", **change)
    with refused("was granted a budget with", dpm.LedgerError, what="unit", granted="row", asked="person"):
        ledger.grant("people", epsilon=3.0, unit="person")
    with refused(
        "was granted a budget with", dpm.LedgerError, what="neighbors", granted="add_remove", asked="replace_one"
    ):
        ledger.grant("people", epsilon=3.0, neighbors="replace_one")
    for said in (
        {},
        {"reason": "second wave"},
        {"by": "board"},
        {"reason": "two\nlines", "by": "board"},
        {"reason": "", "by": "x"},
    ):
        with refused((", and some of it is spent: to make it", "must be one line of at most")):
            ledger.grant("people", epsilon=3.0, **said)
    ledger.grant("people", epsilon=3.0, reason="second wave", by="data board")
    assert ledger.account("people").changes == (
        "ε = 2 to ε = 0.5",
        "ε = 0.5 to ε = 3; reason: 'second wave', by 'data board'",
    )
    assert dpm.Ledger(ledger.path).account("people").changes == ledger.account("people").changes
    assert "reason: 'second wave', by 'data board'" in str(ledger.history("people")[-1])
    assert all(check.passed for check in ledger.verify())
    assert ledger.left("people").epsilon == 2.5
    left = ledger.left("people")  # what its kind has not is 0
    assert (left.delta, left.rho, left.mu) == (0.0, 0.0, 0.0)


# What an end leaves -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("job", JOBS)
def test_an_error_before_the_first_draw_is_given_back_and_said_so(job: str, ledger: dpm.Ledger) -> None:
    bad = pa.table({"x": [0.1, None], "level": ["a", None]})
    with refused("has a cell that is missing, not finite or not readable, and") as caught:
        JOBS[job](bad, ledger=ledger, dataset="people")
    assert caught.value.__notes__ == [NOTHING_SPENT]
    assert actions(ledger) == ["reserve", "refund"]
    assert ledger.spent("people").epsilon == 0.0
    assert all(check.passed for check in ledger.verify())


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt, MemoryError])
def test_an_error_after_a_draw_is_spent(
    error: type[BaseException], ledger: dpm.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = PrivacyFilter.draw

    def broken(self: PrivacyFilter, *arguments: Any, **options: Any) -> Any:
        original(self, *arguments, **options)
        raise error

    monkeypatch.setattr(PrivacyFilter, "draw", broken)
    with pytest.raises(error) as caught:
        JOBS["release"](ledger=ledger, dataset="people", mechanism="laplace")
    assert caught.value.__notes__ == [COST_SPENT]
    assert actions(ledger) == ["reserve"]
    assert ledger.spent("people").epsilon == 0.5
    assert ledger.account("people").n_open == 1


def test_a_run_that_its_filter_refuses_is_spent(ledger: dpm.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    """As its message says, though nothing was drawn."""
    monkeypatch.setattr(PrivacyFilter, "draw", lambda self, *_: self._refuse("This run has ended."))
    with refused("This run has ended", PrivacyFilterError):
        JOBS["release"](ledger=ledger, dataset="people", mechanism="laplace")
    assert actions(ledger) == ["reserve"]


def test_a_refund_that_cannot_be_written_leaves_the_error_and_the_reservation(
    ledger: dpm.Ledger, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Ledger, entry: Any) -> None:
        raise dpm.LedgerError(f"{self.path}: {entry} cannot be given back, the disk is full")

    monkeypatch.setattr(Ledger, "refund", full)
    monkeypatch.setattr(PrivacyFilter, "draw", lambda *_, **__: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        JOBS["release"](ledger=ledger, dataset="people", mechanism="laplace")
    assert actions(ledger) == ["reserve"]


def test_a_release_whose_file_cannot_be_written_is_spent_and_kept(
    ledger: dpm.Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(self: Any, path: Any) -> None:
        raise OSError(28, f"No space left on device for {self.mechanism}", str(path))

    monkeypatch.setattr(dpm.MomentRelease, "save", full)
    with pytest.raises(dpm.UnsavedReleaseError) as error:
        JOBS["release"](ledger=ledger, dataset="people", output=folder / "a.json")
    monkeypatch.undo()
    assert actions(ledger) == ["reserve", "commit"]
    error.value.release.save(folder / "b.json")
    assert all(check.passed for check in ledger.verify([dpm.load(folder / "b.json")]))


def test_a_commit_that_fails_loses_no_release(
    ledger: dpm.Ledger, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ledger's disk vanishes while the release is written."""
    original = dpm.MomentRelease.save

    def save(self: dpm.MomentRelease, path: Any) -> None:
        original(self, path)
        Path(ledger.path).rename(folder / "elsewhere.db")

    monkeypatch.setattr(dpm.MomentRelease, "save", save)
    with warned("not-in-ledger", entry=2):
        made = JOBS["release"](ledger=ledger, dataset="people", output=folder / "a.json")
    found = dpm.Ledger(folder / "elsewhere.db")
    assert actions(found) == ["reserve"]
    assert found.spent("people").epsilon == 0.5
    *_, check = found.verify([made])
    assert check.passed
    assert "never committed: it counts as spent" in check.detail


def test_a_warning_turned_into_an_error_comes_after_the_commit(ledger: dpm.Ledger) -> None:
    table = dpm.Schema(dpm.Numeric("x", 0, 1), dpm.Numeric("y", 0, 1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(dpm.ReleaseWarning) as error:
            dpm.release(np.zeros((1, 2)), table, epsilon=0.01, ledger=ledger, dataset="people")
    assert actions(ledger) == ["reserve", "commit"]
    assert error.value.release.origin.ledger is not None  # type: ignore[union-attr]


def reserved(
    ledger: dpm.Ledger, epsilon: float = 0.1, dataset: str = "people", unit: LossUnit = LossUnit.EPSILON
) -> LedgerEntry:
    cost = dpm.PrivacyBudget.pure(epsilon) if unit is LossUnit.EPSILON else dpm.PrivacyBudget.zcdp(0.001)
    return ledger.reserve(dataset, cost, unit, neighbors="add_remove", release="a")


def test_reservations_end_once_and_in_the_ledger_that_made_them(ledger: dpm.Ledger, folder: Path) -> None:
    other = dpm.Ledger(folder / "other.db")
    other.grant("people", epsilon=1.0)
    entry = reserved(ledger)
    with refused("is not the ledger in which entry", dpm.LedgerError, entry=2):
        other.commit(entry)
    ledger.refund(entry)
    for end in (ledger.refund, ledger.commit):
        with refused("already has a", dpm.LedgerError, entry=2, state="refund"):
            end(entry)
    assert ledger.spent("people").epsilon == 0.0


@pytest.mark.parametrize(
    "other", [lambda kept: dpm.Ledger(kept.path), copy.copy, lambda kept: pickle.loads(pickle.dumps(kept))]
)
def test_only_the_object_that_reserved_may_refund(
    other: Callable[[dpm.Ledger], dpm.Ledger], ledger: dpm.Ledger
) -> None:
    entry = reserved(ledger)
    with refused("This object did not reserve entry", dpm.LedgerError, entry=2):
        other(ledger).refund(entry)
    assert ledger.spent("people").epsilon == 0.1
    assert actions(ledger) == ["reserve"]
    ledger.refund(dataclasses.replace(entry))  # an equal entry will do: the right is the object's
    assert ledger.spent("people").epsilon == 0.0
    committed = reserved(ledger)
    other(ledger).commit(committed)  # which only ever leaves more spent


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_a_fork_may_not_refund_what_its_parent_reserved(ledger: dpm.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    entry, parent = reserved(ledger), os.getpid()

    def work() -> int:
        monkeypatch.setattr(os, "getpid", lambda: parent)  # ids are used again, so that they prove nothing
        for kept in (ledger, copy.deepcopy(ledger)):
            with refused("This object did not reserve entry", dpm.LedgerError, entry=2):
                kept.refund(entry)
        own = reserved(ledger)
        ledger.refund(own)
        return own.number

    child, reader = in_child(work)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    os.close(reader)
    assert actions(ledger) == ["reserve", "reserve", "refund"]
    ledger.refund(entry)
    assert ledger.spent("people").epsilon == 0.0


# The command line -------------------------------------------------------------------------------------------------------------


def test_a_session_on_the_command_line(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    import pyarrow.parquet as pq

    monkeypatch.chdir(folder)
    pq.write_table(ROWS, "people.parquet")
    NAMED.save("people.yaml")

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(arguments)
        captured = capsys.readouterr()
        assert "Traceback" not in captured.err
        return code, captured.out, " ".join(captured.err.split())

    def charged(output: str, *more: str) -> tuple[int, str, str]:
        usual = ("people.parquet", "--schema", "people.yaml", "--neighbors", "add_remove", "--output", output)
        return run("release", *usual, "--ledger", "budget.db", "--dataset", "people", *more)

    assert run("ledger", "grant", "budget.db", "people", "--epsilon", "1", "--neighbors", "add_remove")[0] == 0
    assert charged("one.json", "--epsilon", "0.6")[0] == 0
    code, _, error = charged("two.json", "--epsilon", "0.6")
    assert code == 1
    assert "remaining: ε = 0.4" in error
    assert charged("two.json", "--epsilon", "0.4", "--by", "level")[0] == 0
    usual = ("people.parquet", "--schema", "people.yaml", "--neighbors", "add_remove")
    mean = ("release-mean", *usual, "--output", "m.json")
    assert run(*mean, "--rho", "0.1", "--ledger", "budget.db", "--dataset", "people")[0] == 1
    assert run(*mean, "--rho", "0.1", "--ledger", "budget.db")[0] == 1
    code, out, _ = run("ledger", "show", "budget.db", "--json")
    (shown,) = json.loads(out)["datasets"]
    assert (shown["spent"], shown["left"]["epsilon"], shown["released"]) == ({"kind": "pure", "epsilon": 1.0}, 0.0, 2)
    code, out, _ = run("ledger", "show", "budget.db", "people")
    assert "2 releases" in out
    code, out, _ = run("ledger", "history", "budget.db", "--json")
    assert [entry["action"] for entry in json.loads(out)["entries"]] == ["grant", *["reserve", "commit"] * 2]
    assert run("ledger", "history", "budget.db", "people")[0] == 0
    code, out, _ = run("ledger", "verify", "budget.db", "--release", "one.json", "--release", "two.json")
    assert (code, out.count("ok  "), "FAILED" in out) == (0, 6, False)
    for bad in (("--epsilon", "0"), ("--mu", "1", "--rho", "1"), ("--epsilon", "1", "--composition", "zcdp")):
        assert run("ledger", "grant", "budget.db", "people", "--neighbors", "add_remove", *bad)[0] == 2
    code, _, error = run("ledger", "grant", "budget.db", "people", "--neighbors", "add_remove", "--epsilon", "0.5")
    assert code == 1
    assert "cannot be lowered" in error


def test_show_says_what_a_stopped_release_left(ledger: dpm.Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    reserved(ledger)
    assert main(["ledger", "show", str(ledger.path)]) == 0
    assert "stay spent" in " ".join(capsys.readouterr().out.split())


@pytest.mark.long
def test_the_page_on_the_ledger_runs_as_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Python prints what its comments say; commands end with 0 and print the lines that are shown."""
    page = Path(__file__).parents[2] / "docs" / "ledger.md"
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for language, block in re.findall(r"(?ms)^```(\w+)\n(.*?)^```$", page.read_text(encoding="utf-8")):
        printed: list[str] = []
        if language == "python":
            exec(compile(block, str(page), "exec"), names)
            out = capsys.readouterr().out
            for expected in re.findall(r"print\((?:ledger\.spent|restored\.left|ledger\.left\(.visits).*# (.*)", block):
                assert expected.split(",")[0] in out
            assert "print(refusal)" not in block or "Nothing was read and nothing was spent" in out
        for line in block.splitlines() if language == "console" else ():
            if line.startswith("$ dpmoments "):
                assert main(shlex.split(line)[2:]) == 0, line
                printed = [" ".join(shown.split()) for shown in capsys.readouterr().out.splitlines()]
            else:
                assert " ".join(line.split()) in printed, line
    assert names["ledger"].left("people-2026").epsilon > 1.0
    assert names["ledger"].account("visits-2026").grant.unit == "patient_id"
    assert (names["monthly"].left("clinic").epsilon, names["restored"].left("clinic").epsilon) == (1.5, 1.5)


def test_a_release_that_claims_another_unit_than_was_charged_is_found(ledger: dpm.Ledger, folder: Path) -> None:
    rows = ROWS.append_column("id", pa.array(np.arange(len(ROWS)) // 2))
    ledger.grant("units", epsilon=3.0, unit="id")
    unit = dpm.PrivacyUnit("id", max_rows=1)
    of_unit = dpm.release(rows, NAMED, epsilon=1.0, ledger=ledger, dataset="units", privacy_unit=unit)
    of_row = dpm.release(rows, NAMED, epsilon=1.0, ledger=ledger, dataset="people")
    assert all(check.passed for check in ledger.verify([of_unit, of_row]))

    def claim(column: str) -> Callable[[dict[str, Any]], None]:
        def edit(content: dict[str, Any]) -> None:
            stated = {"column": column, "max_rows": 1, "missing": "error"}
            content["receipt"]["protected_unit"] = content["privacy"]["privacy_unit"] = stated

        return edit

    for name, release, column in (("row", of_row, "id"), ("unit", of_unit, "household")):
        path = folder / f"{name}.json"
        release.save(path)
        forge(path, claim(column))
        (failed,) = [check for check in ledger.verify([dpm.load(path)]) if not check.passed]
        assert "and the unit" in failed.detail


def test_a_unit_whose_column_is_called_row_is_refused(ledger: dpm.Ledger) -> None:
    rows = ROWS.append_column("row", pa.array(np.arange(len(ROWS))))
    with refused("which in a ledger means single rows: rename it"):
        dpm.release(
            rows, NAMED, epsilon=1.0, ledger=ledger, dataset="people", privacy_unit=dpm.PrivacyUnit("row", max_rows=1)
        )
    assert ledger.spent("people").epsilon == 0.0


def test_a_cost_in_rho_is_never_one_of_a_gaussian_mechanism(ledger: dpm.Ledger) -> None:
    ledger.grant("g", epsilon=1.0, delta=1e-6, composition="gaussian")
    with refused(
        "cannot be counted under the budget of", dpm.BudgetExceededError, dataset="g", reason="the grant counts in μ"
    ):
        reserved(ledger, dataset="g", unit=LossUnit.GAUSSIAN_RHO)


def test_nothing_left_is_not_minus_nothing(ledger: dpm.Ledger) -> None:
    ledger.grant("small", epsilon=1.0)
    dpm.release(ROWS, NAMED, epsilon=1.0, ledger=ledger, dataset="small")
    assert ledger.left("small").describe(most=True) == "ε = 0"


def test_where_there_are_no_hard_links_the_first_ledger_stays(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A second process that found no file grants after the first has spent."""

    def no_links(*_: Any) -> None:
        raise OSError("not supported")

    monkeypatch.setattr(os, "link", no_links)
    path, first = folder / "linkless.db", Ledger(folder / "linkless.db")
    take_place, done = os.replace, []

    def late(source: Any, target: Any) -> None:  # the other process does all of its work before this step of ours
        monkeypatch.setattr(os, "replace", take_place)
        with contextlib.suppress(dpm.LedgerError):
            first.grant("people", epsilon=3.0)
            done.append(reserved(first, 1.0))
        take_place(source, target)

    monkeypatch.setattr(os, "replace", late)
    second = Ledger(path)
    second.grant("people", epsilon=3.0)
    assert second.spent("people").epsilon == len(done)


@pytest.mark.parametrize(
    ("path", "said"), [("absent.db", "does not exist"), ("budget.db", "The ledger has no budget for dataset 'clinic'")]
)
def test_a_missing_grant_is_advised_for_the_dataset_and_unit(path: str, said: str, tmp_path: Path) -> None:
    dpm.Ledger(tmp_path / "budget.db").grant("people", epsilon=1.0)
    unit = dpm.PrivacyUnit("patient id", 3)
    with refused(said, dpm.LedgerError) as stopped:
        dpm.release(TABLE, SCHEMA, epsilon=1.0, privacy_unit=unit, ledger=tmp_path / path, dataset="clinic")
    message = stopped.value
    assert (
        f"grant {tmp_path / path} clinic --epsilon 1 --neighbors add_remove --privacy-unit 'patient id'"
        in message.text("shell")
    )
    assert "ledger.grant('clinic', epsilon=1.0, unit='patient id')" in message.text("curator")
