"""A ledger that several processes share, and processes that are killed: no budget is spent twice, the file stays whole."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

import dpmoments as dpm
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.accounts import Action
from support.ledger_processes import DATASET, quick_folder

pytestmark = [pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked"), pytest.mark.long(sets=None)]
PROGRAM = Path(__file__).parents[1] / "support" / "ledger_processes.py"
ALONE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    with quick_folder(tmp_path) as found:
        yield found


def run(action: str, ledger: Path, *arguments: float) -> dict[str, Any]:
    command = [sys.executable, str(PROGRAM), action, str(ledger), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **ALONE}, check=True)
    return json.loads(done.stdout)  # type: ignore[no-any-return]


def granted(path: Path, epsilon: float) -> dpm.Ledger:
    ledger = dpm.Ledger(path)
    ledger.grant(DATASET, epsilon=epsilon)
    return ledger


def exact_spent(ledger: dpm.Ledger) -> Fraction:
    return ledger.account(DATASET).sums.amounts[0]


def states(ledger: dpm.Ledger) -> Counter[Action]:
    return Counter(entry.action for entry in ledger.history())


def test_eight_processes_spend_exactly_what_was_granted(folder: Path) -> None:
    """64 spends of 1/32 are tried, and 32 of them fit."""
    ledger = granted(folder / "budget.db", 1.0)
    outcome = run("spend", folder / "budget.db", 8, 8, 0.03125)
    assert outcome["codes"] == [0] * 8
    assert sum(outcome["made"]) == 32
    assert exact_spent(ledger) == 1
    assert ledger.left(DATASET).epsilon == 0.0
    assert states(ledger) == {Action.GRANT: 1, Action.RESERVE: 32, Action.COMMIT: 32}
    assert all(check.passed for check in ledger.verify())


@pytest.mark.slow
def test_processes_that_release_together(folder: Path) -> None:
    ledger = granted(folder / "budget.db", 0.25)
    outcome = run("release", folder / "budget.db", 4, 10, 0.01)
    assert outcome["codes"] == [0] * 4
    assert sum(outcome["made"]) == 25 == len(list(folder.glob("*.json")))
    assert exact_spent(ledger) == Fraction(1, 4)
    releases = [dpm.load(path) for path in folder.glob("*.json")]
    assert all(check.passed for check in ledger.verify(releases))


def test_threads_share_one_ledger(folder: Path) -> None:
    ledger, allowed = granted(folder / "budget.db", 0.5), []

    def work() -> None:
        for place in range(20):
            try:
                cost = dpm.PrivacyBudget.pure(0.01)
                entry = ledger.reserve(DATASET, cost, LossUnit.EPSILON, neighbors="add_remove", release=str(place))
            except dpm.BudgetExceededError:
                continue
            allowed.append(entry.number)
            ledger.commit(entry)

    threads = [Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(allowed)) == len(allowed) == 50
    assert exact_spent(ledger) == Fraction(1, 2)


@pytest.mark.slow
@pytest.mark.parametrize(("kills", "seed"), [(12, 0), pytest.param(100, 1, marks=pytest.mark.slow)])
def test_kills_at_any_moment_never_let_budget_be_spent_twice(folder: Path, kills: int, seed: int) -> None:
    """Half of the kills are at calls of functions: some of them come between the two, however fast the machine is."""
    ledger = granted(folder / "budget.db", 1.0)
    assert run("kill", folder / "budget.db", kills, seed) == {"kills": 2 * kills}
    releases = [dpm.load(path) for path in folder.glob("*.json")]
    account, found = dpm.Ledger(folder / "budget.db").account(DATASET), states(ledger)
    print(
        f"{2 * kills} kills: {len(releases)} releases written, {found[Action.RESERVE]} reserved, "
        f"{found[Action.COMMIT]} committed, {account.n_open} left open, {found[Action.REFUND]} given back"
    )
    assert all(check.passed for check in ledger.verify(releases))
    assert account.sums.amounts[0] == Fraction(found[Action.RESERVE] - found[Action.REFUND], 10**6)
    assert found[Action.COMMIT] <= len(releases) <= found[Action.RESERVE] - found[Action.REFUND]
    assert len({release.origin.ledger for release in releases}) == len(releases) > kills / 5
    assert account.n_open > 0
