"""The file of a ledger: what is refused in plain words, what tampering shows, and that a full disk loses nothing."""

from __future__ import annotations

import datetime as dt
import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.cli import main
from dpmoments.privacy import accounts
from dpmoments.privacy import ledger as ledger_file
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.grants import Grant
from support.ledger_processes import quick_folder
from support.said import refused

SCHEMA = dpm.Schema.unit_ball(2)
TABLE = np.random.default_rng(0).uniform(-0.5, 0.5, (50, 2))
COST = dpm.PrivacyBudget.pure(0.1)


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with quick_folder(tmp_path) as found:
        yield found


@pytest.fixture
def ledger(folder: Path) -> dpm.Ledger:
    kept = dpm.Ledger(folder / "budget.db", timeout=0.2)
    kept.grant("people", epsilon=1.0)
    return kept


def spend(ledger: dpm.Ledger, n: int = 1) -> None:
    for place in range(n):
        ledger.commit(ledger.reserve("people", COST, LossUnit.EPSILON, neighbors="add_remove", release=f"{place:032x}"))


def release(ledger: dpm.Ledger | str | Path, **options: Any) -> dpm.MomentRelease:
    options = dict(epsilon=0.1, mechanism="laplace", dataset="people", threads=1) | options
    return dpm.release(TABLE, SCHEMA, ledger=ledger, **options)


@contextmanager
def edited(path: str | Path) -> Iterator[sqlite3.Connection]:
    """The file as someone who can write it sees it, without its triggers."""
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for name in ("history_is_never_cut", "history_is_never_changed"):
            connection.execute(f"DROP TRIGGER {name}")
        connection.execute("PRAGMA foreign_keys = OFF")
        yield connection
        for statement in ledger_file._OBJECTS:
            if statement.startswith("CREATE TRIGGER"):
                connection.execute(statement)


# What cannot be used ---------------------------------------------------------------------------------------------------------


def of_another_program(path: Path) -> None:
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TABLE patients (name TEXT)")
        connection.commit()


def newer(path: Path) -> None:
    dpm.Ledger(path).grant("people", epsilon=1.0)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute(f"PRAGMA user_version = {ledger_file._VERSION + 1}")


def in_another_mode(path: Path) -> None:
    dpm.Ledger(path).grant("people", epsilon=1.0)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")


def with_another_table(path: Path) -> None:
    dpm.Ledger(path).grant("people", epsilon=1.0)
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("CREATE TRIGGER gone AFTER INSERT ON history BEGIN SELECT 1; END")


def overwritten(path: Path) -> None:
    kept = dpm.Ledger(path)
    kept.grant("people", epsilon=1.0)
    spend(kept, 5)
    content = bytearray(path.read_bytes())
    content[4096 : 4096 + 2000] = b"\xff" * 2000
    path.write_bytes(content)


BAD_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "absent": (lambda _: None, "does not exist"),
    "no SQLite": (lambda path: path.write_text("date;cell\n" * 1000), "is not an SQLite file"),
    "empty": (lambda path: path.write_bytes(b""), "is not a ledger but an empty file"),
    "of another program": (of_another_program, "is not a ledger but an SQLite file of another program"),
    "newer": (newer, "is a ledger of file version 2, and this library knows version 1"),
    "in another journal mode": (in_another_mode, "is in journal mode 'wal'"),
    "with a trigger of another": (with_another_table, "its tables are not a ledger's"),
    "overwritten": (overwritten, "is damaged"),
    "a folder": (lambda path: path.mkdir(), "is a folder: name the ledger's file"),
}


@pytest.mark.parametrize("fault", BAD_FILES)
def test_a_file_that_cannot_be_used_is_told_of_in_a_line(
    fault: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    make, said = BAD_FILES[fault]
    path = folder / "budget.db"
    make(path)
    before = path.read_bytes() if path.is_file() else None
    with refused(said, dpm.LedgerError):
        release(path)
    with refused(said, dpm.LedgerError):
        dpm.Ledger(path).verify()
    if fault in ("of another program", "newer", "overwritten"):
        with refused(said, dpm.LedgerError):
            dpm.Ledger(path).grant("people", epsilon=1.0)
    for command in ("show", "history", "verify"):
        assert main(["ledger", command, str(path)]) == 1
        captured = capsys.readouterr()
        assert said in " ".join(captured.err.split())
        assert "Traceback" not in captured.err
    assert before == (path.read_bytes() if path.is_file() else None)


def test_a_locked_file_is_waited_for_and_then_told_of(ledger: dpm.Ledger) -> None:
    with closing(sqlite3.connect(ledger.path, isolation_level=None)) as connection:
        connection.execute("BEGIN EXCLUSIVE")
        with refused("is locked", dpm.LedgerError, seconds=0.2):
            release(ledger)
    assert release(ledger).privacy.private
    assert ledger.spent("people").epsilon == 0.1


@contextmanager
def without_privileges() -> Iterator[None]:
    """As a user who owns nothing, where the tests run as root, whom permissions do not bind."""
    if os.geteuid():
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


@pytest.mark.skipif(sys.platform == "win32", reason="permissions are other ones there")
@pytest.mark.parametrize("what", ["file", "folder"])
def test_what_is_read_only_can_be_shown_and_not_spent(what: str, folder: Path) -> None:
    try:
        kept = dpm.Ledger(folder / "budget.db", timeout=0.2)
        kept.grant("people", epsilon=1.0)
        (folder / "budget.db").chmod(0o444 if what == "file" else 0o666)
        folder.chmod(0o555 if what == "folder" else 0o777)
        with without_privileges():
            assert kept.left("people").epsilon == 1.0
            with refused("cannot be", dpm.LedgerError, cause="read-only"):
                spend(kept)
            if what == "folder":
                with refused("cannot be opened", dpm.LedgerError):
                    dpm.Ledger(folder / "other.db").grant("people", epsilon=1.0)
        assert kept.spent("people").epsilon == 0.0
    finally:
        folder.chmod(0o777)


def test_a_folder_that_vanishes(folder: Path) -> None:
    (folder / "gone").mkdir()
    kept = dpm.Ledger(folder / "gone" / "budget.db")
    kept.grant("people", epsilon=1.0)
    (folder / "gone").rename(folder / "elsewhere")
    for use in (lambda: release(kept), lambda: kept.spent("people"), lambda: kept.grant("people", epsilon=2.0)):
        with refused("of the ledger does not exist", dpm.LedgerError):
            use()
    (folder / "gone").mkdir()
    with refused("does not exist", dpm.LedgerError):  # and no new one takes its place
        kept.grant("people", epsilon=2.0)


@pytest.mark.parametrize("path", ["a\0b", "no-such-folder/budget.db"])
def test_names_that_no_file_can_have(path: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    with refused(("of the ledger does not exist", "cannot be the name of a file"), (ValueError, dpm.LedgerError)):
        dpm.Ledger(path).grant("people", epsilon=1.0)


@pytest.mark.parametrize("name", ["budget ü.db", "a?b#c%20.db", "-"])
def test_names_that_a_file_can_have(name: str, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(folder)
    dpm.Ledger(name).grant("people", epsilon=1.0)
    spend(dpm.Ledger(folder / name))
    assert [path.name for path in folder.iterdir()] == [name]
    assert dpm.Ledger(name).spent("people").epsilon == 0.1


# A full disk ------------------------------------------------------------------------------------------------------------------

FULL = """
import resource, signal, sys
import numpy as np
import dpmoments as dpm
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
ledger = dpm.Ledger(sys.argv[1])
schema, table = dpm.Schema.unit_ball(2), np.zeros((10, 2))
dpm.release(table, schema, epsilon=1e-6, mechanism="laplace", threads=1)
size = __import__("os").path.getsize(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
for made in range(100):
    try:
        dpm.release(table, schema, epsilon=1e-6, mechanism="laplace", threads=1, ledger=ledger, dataset="people")
    except dpm.LedgerError as error:
        print(made, error)
        break
"""


@pytest.mark.long
def test_a_full_disk_refuses_before_noise_and_leaves_the_file_whole(ledger: dpm.Ledger) -> None:
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    # Without -B Python would write compiled modules under the same limit, and leave broken ones to every later process.
    command = [sys.executable, "-B", "-W", "ignore", "-c", FULL, ledger.path]
    done = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    made, words = done.stdout.split(maxsplit=1)
    assert "the disk" in words
    kept = dpm.Ledger(ledger.path)
    assert all(check.passed for check in kept.verify())
    account = kept.account("people")
    assert int(made) == account.n_released + account.n_open
    spend(kept)  # once there is room again


def test_a_full_database_is_the_same(ledger: dpm.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    check = ledger_file.LedgerFile._check

    def small(self: Any, connection: sqlite3.Connection) -> None:
        connection.execute("PRAGMA max_page_count = 4")
        check(self, connection)

    monkeypatch.setattr(ledger_file.LedgerFile, "_check", small)
    with refused("cannot be", dpm.LedgerError, cause="full"):
        spend(ledger, 9)
    monkeypatch.undo()
    assert all(check.passed for check in ledger.verify())
    assert all(check.passed for check in dpm.Ledger(ledger.path).verify())


# Tampering --------------------------------------------------------------------------------------------------------------------


def change(connection: sqlite3.Connection) -> None:
    (text,) = connection.execute("SELECT entry FROM history WHERE number = 4").fetchone()
    connection.execute("UPDATE history SET entry = ? WHERE number = 4", (text.replace("1/10", "1/20"),))


def change_and_sign(connection: sqlite3.Connection) -> None:
    """The changed entry has a hash that is right; the next does not follow from it."""
    change(connection)
    (link,) = connection.execute("SELECT hash FROM history WHERE number = 3").fetchone()
    (text,) = connection.execute("SELECT entry FROM history WHERE number = 4").fetchone()
    connection.execute("UPDATE history SET hash = ? WHERE number = 4", (accounts._linked(link, text),))


def reorder(connection: sqlite3.Connection) -> None:
    connection.execute("UPDATE history SET number = 100 WHERE number = 4")
    connection.execute("UPDATE history SET number = 4 WHERE number = 6")
    connection.execute("UPDATE history SET number = 6 WHERE number = 100")


def close_gap(connection: sqlite3.Connection) -> None:
    connection.execute("DELETE FROM history WHERE number = 4")
    connection.execute("UPDATE history SET number = number - 1 WHERE number > 4")


TAMPERING: dict[str, Callable[[sqlite3.Connection], object]] = {
    "changed": change,
    "changed and signed": change_and_sign,
    "deleted": lambda connection: connection.execute("DELETE FROM history WHERE number = 4"),
    "deleted, and no gap": close_gap,
    "the first deleted": lambda connection: connection.execute("DELETE FROM history WHERE number = 1"),
    "reordered": reorder,
    "appended": lambda connection: connection.execute(
        "INSERT INTO history SELECT 10, entry, hash FROM history WHERE number = 9"
    ),
    "another id": lambda connection: connection.execute("UPDATE identity SET id = ?", ("0" * 32,)),
    "no JSON": lambda connection: connection.execute("UPDATE history SET entry = '{' WHERE number = 9"),
    "bytes": lambda connection: connection.execute("UPDATE history SET entry = x'ff00' WHERE number = 9"),
}


@pytest.mark.parametrize("way", TAMPERING)
def test_tampering_shows(way: str, ledger: dpm.Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    spend(ledger, 4)
    assert all(check.passed for check in ledger.verify())
    with edited(ledger.path) as connection:
        TAMPERING[way](connection)
    assert not all(check.passed for check in dpm.Ledger(ledger.path).verify())
    assert main(["ledger", "verify", ledger.path]) == 1
    assert "FAILED" in capsys.readouterr().out
    for kept in (ledger, dpm.Ledger(ledger.path)):
        if way == "another id" or kept is not ledger:
            with refused(
                ("The history is broken at entry", "is no longer the ledger that was opened"), dpm.LedgerError
            ):
                release(kept)


def entry_of(text: str, link: str) -> tuple[str, str]:
    return text, accounts._linked(link, text)


def forged(ledger: dpm.Ledger, action: str, dataset: str, content: dict[str, Any]) -> None:
    """Append an entry whose hash is right."""
    head = ledger.head
    assert head is not None
    values = {"number": head.number + 1, "time": "", "action": action, "dataset": dataset, "content": content}
    text = json.dumps(values)
    with closing(sqlite3.connect(ledger.path)) as connection:
        connection.execute("INSERT INTO history VALUES (?, ?, ?)", (head.number + 1, *entry_of(text, head.hash)))
        connection.commit()


def reservation(ledger: dpm.Ledger) -> dict[str, Any]:
    return json.loads(json.dumps(dict(ledger.history()[1].content)))  # type: ignore[no-any-return]


def with_losses(content: dict[str, Any], **losses: Any) -> dict[str, Any]:
    return content | {"losses": content["losses"] | losses}


FORGED: dict[str, tuple[str, Callable[[dict[str, Any]], dict[str, Any]], str]] = {
    "a spend beyond the grant": ("reserve", lambda content: with_losses(content, epsilon="3/1"), "does not allow"),
    "a negative spend": ("reserve", lambda content: with_losses(content, epsilon="-1/1"), "numerator"),
    "a fraction not in lowest terms": ("reserve", lambda content: with_losses(content, epsilon="2/20"), "lowest terms"),
    "no amount": ("reserve", lambda content: with_losses(content, epsilon=None, delta=None, rho=None), "no unit"),
    "half an amount": ("reserve", lambda content: with_losses(content, delta=None), "no unit"),
    "less than the cost": (
        "reserve",
        lambda content: with_losses(content, epsilon="1/100"),
        "do not follow from its cost",
    ),
    "for another unit": ("reserve", lambda content: content | {"unit": "person"}, "privacy unit"),
    "an unknown entry": ("reserve", lambda content: content | {"note": "x"}, "unknown entries"),
    "a second commit": ("commit", lambda _: {"reservation": 2}, "already has a commit"),
    "a refund after a commit": ("refund", lambda _: {"reservation": 2}, "already has a commit"),
    "a commit of nothing": ("commit", lambda _: {"reservation": 1}, "reserves nothing"),
    "a grant below what is spent": (
        "grant",
        lambda _: Grant.of(epsilon=0.05).to_dict(),
        "lowered",
    ),
    "an action that is none": ("forget", lambda _: {}, "action must be one of"),
}


@pytest.mark.parametrize("way", FORGED)
def test_entries_that_cannot_follow_are_found_though_their_hashes_are_right(way: str, ledger: dpm.Ledger) -> None:
    spend(ledger)
    action, make, words = FORGED[way]
    forged(ledger, action, "people", make(reservation(ledger)))
    failed = [check.detail for check in dpm.Ledger(ledger.path).verify() if not check.passed]
    assert len(failed) == 1
    assert words in failed[0]


def test_a_restored_copy_shows_by_the_releases_made_since(ledger: dpm.Ledger, folder: Path) -> None:
    first = release(ledger)
    shutil.copy(ledger.path, folder / "copy.db")
    head = ledger.head
    second = release(ledger, output=folder / "second.json")
    assert all(check.passed for check in ledger.verify([first, second], head=head))
    shutil.copy(folder / "copy.db", ledger.path)
    restored = dpm.Ledger(ledger.path)
    assert all(check.passed for check in restored.verify([first], head=head))  # nothing in the file itself shows it
    *_, found = restored.verify([first, second])
    assert not found.passed
    assert "was cut, or restored from an older copy" in found.detail
    with refused("is no longer the ledger that was opened", dpm.LedgerError):  # who had it open knows too
        release(ledger)
    spend(restored, 2)
    *_, found = restored.verify([second])
    assert "differs: the ledger was restored" in found.detail
    assert main(["ledger", "verify", ledger.path, "--release", str(folder / "second.json")]) == 1


def test_a_cut_ledger_shows_by_a_head_kept_elsewhere(ledger: dpm.Ledger, capsys: pytest.CaptureFixture[str]) -> None:
    spend(ledger, 2)
    head = ledger.head
    assert head is not None
    with edited(ledger.path) as connection:
        connection.execute("DELETE FROM history WHERE number > 3")
    cut = dpm.Ledger(ledger.path)
    assert all(check.passed for check in cut.verify())
    assert not cut.verify(head=head)[-1].passed
    assert main(["ledger", "verify", ledger.path, "--head", f"{head.number}:{head.hash}"]) == 1
    assert "was cut" in capsys.readouterr().out


def test_releases_that_were_not_charged_as_they_say(ledger: dpm.Ledger, folder: Path) -> None:
    made, other = release(ledger), dpm.Ledger(folder / "other.db")
    other.grant("people", epsilon=1.0)
    content = made.to_dict()

    def verdict(**origin: Any) -> str:
        changed = dpm.MomentRelease.from_dict({**content, "origin": content["origin"] | origin})
        found = ledger.verify([changed])[-1]
        return "passed" if found.passed else found.detail

    assert verdict() == "passed"
    assert "to another ledger" in other.verify([made])[-1].detail
    assert "not charged to a ledger" in verdict(ledger=None)
    assert "another release" in verdict(id="0" * 32)
    assert "another release" in verdict(dataset="firms")
    assert "differs" in verdict(ledger=content["origin"]["ledger"] | {"hash": "0" * 64})
    assert "another release" in verdict(
        ledger=content["origin"]["ledger"] | {"number": 1, "hash": ledger.history()[0].hash}
    )
    uncharged = dpm.release(TABLE, SCHEMA, epsilon=0.2, mechanism="laplace", dataset="people")
    cheaper = {**uncharged.to_dict(), "origin": content["origin"]}
    assert "another cost" in ledger.verify([dpm.MomentRelease.from_dict(cheaper)])[-1].detail


def test_triggers_stop_mistakes(ledger: dpm.Ledger) -> None:
    with closing(sqlite3.connect(ledger.path)) as connection:
        for statement in ("DELETE FROM history", "UPDATE history SET entry = ''"):
            with pytest.raises(sqlite3.IntegrityError, match="is never"):
                connection.execute(statement)


def test_the_clock_is_shown_and_orders_nothing(ledger: dpm.Ledger, monkeypatch: pytest.MonkeyPatch) -> None:
    times = iter([dt.datetime(year, 1, 1, tzinfo=dt.UTC) for year in (2030, 1970, 2029, 1999)])
    monkeypatch.setattr(accounts, "datetime", SimpleNamespace(now=lambda _: next(times)))
    spend(ledger, 2)
    kept = dpm.Ledger(ledger.path)
    assert [entry.time[:4] for entry in kept.history()[1:]] == ["2030", "1970", "2029", "1999"]
    assert [entry.number for entry in kept.history()] == [1, 2, 3, 4, 5]
    assert kept.spent("people").epsilon == 0.2
    assert all(check.passed for check in kept.verify())


def test_an_abandoned_transaction_is_rolled_back(ledger: dpm.Ledger) -> None:
    """A journal that a killed process left is played back by whoever opens the file next."""
    program = (
        "import os, signal, sqlite3, sys\n"
        "c = sqlite3.connect(sys.argv[1], isolation_level=None)\n"
        "c.execute('PRAGMA cache_size = 1'); c.execute('PRAGMA cache_spill = 1'); c.execute('BEGIN IMMEDIATE')\n"
        "c.executemany('INSERT INTO history VALUES (?, ?, ?)', [(n, 'x' * 3000, '') for n in range(2, 400)])\n"
        "os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, ledger.path], check=False)
    assert done.returncode == -signal.SIGKILL
    assert Path(f"{ledger.path}-journal").exists()
    assert Path(ledger.path).stat().st_size > 10**6
    assert len(ledger.history()) == 1
    spend(ledger)
    assert all(check.passed for check in ledger.verify())


def test_transactions_wait_for_the_disk(ledger: dpm.Ledger) -> None:
    """EXTRA: data, journal and the folder's entry of the journal are flushed before a transaction ends."""
    with ledger._file.opened(writing=True) as connection:
        assert connection.execute("PRAGMA synchronous").fetchone() == (3,)
        assert connection.execute("PRAGMA journal_mode").fetchone() == ("delete",)
        assert connection.in_transaction


# One file under several names -------------------------------------------------------------------------------------------------


def test_a_ledger_with_a_second_hard_link_is_refused_under_both_names(ledger: dpm.Ledger, folder: Path) -> None:
    """SQLite names its journal after the path: what is in flight under one name is not seen under the other."""
    other = folder / "other.db"
    os.link(ledger.path, other)
    for kept in (ledger, dpm.Ledger(other)):
        for use in (lambda kept=kept: release(kept), kept.history, lambda kept=kept: kept.spent("people"), kept.verify):
            with refused("names (hard links)", dpm.LedgerError, names=2):
                use()
    other.unlink()
    release(ledger)
    assert all(check.passed for check in ledger.verify())


def test_a_name_that_a_crash_left_while_the_ledger_was_made_is_none(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A ledger gets its name by a hard link: between that and the end of the first name there are two."""
    during, unlink = [], Path.unlink

    def watched(path: Path, **options: Any) -> None:
        if path.suffix == ".part":
            during.append(dpm.Ledger(folder / "budget.db").history())
        else:
            unlink(path, **options)

    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", watched)  # which does not unlink, as a process that was killed does not
        ledger = dpm.Ledger(folder / "budget.db")
        ledger.grant("people", epsilon=1.0)
    assert during == [()]
    assert Path(ledger.path).stat().st_nlink == 2
    release(ledger)
    assert all(check.passed for check in ledger.verify())


@pytest.mark.parametrize("of", ["the file", "its folder"])
def test_a_symbolic_link_shares_the_journal_of_the_file(of: str, ledger: dpm.Ledger, folder: Path) -> None:
    elsewhere = folder / "elsewhere"
    if of == "the file":
        elsewhere.mkdir()
        (elsewhere / "budget.db").symlink_to(Path(ledger.path).resolve())
    else:
        elsewhere.symlink_to(folder, target_is_directory=True)
    linked = dpm.Ledger(elsewhere / "budget.db", timeout=0.1)
    with linked._writing() as (known, append):
        append(accounts.Action.GRANT, "firms", known.account("people").grant.to_dict())
        assert Path(f"{ledger.path}-journal").exists()
        with refused("is locked", dpm.LedgerError):
            release(dpm.Ledger(ledger.path, timeout=0.1))
    release(linked)
    release(ledger)
    assert all(check.passed for check in ledger.verify())
    assert all(check.passed for check in linked.verify())
