"""A ledger against a plain model of it, operation by operation: lists of decimals, added up anew each time."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from tempfile import gettempdir

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

import dpmoments as dpm
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.origin import LedgerEntry
from support.ledger_processes import quick_folder

pytestmark = pytest.mark.long

DATASETS = ("people", "firms")
AMOUNTS = st.sampled_from([0.1, 0.2, 0.3, 0.7, 1.0, 1.1, 2.5, 1e-9, 1 / 3])
KINDS = st.sampled_from(["pure", "zcdp", "basic"])


def exact(amount: float) -> Fraction:
    return Fraction(Decimal(repr(amount)))


class LedgerModel(RuleBasedStateMachine):
    """``granted`` has the kind and limits of each dataset; ``held`` every reservation: dataset, kind, ε or ρ, δ, state."""

    def __init__(self) -> None:
        super().__init__()
        self.place = quick_folder(Path(gettempdir()))
        self.path = self.place.__enter__() / "budget.db"
        self.ledger = dpm.Ledger(self.path)
        self.granted: dict[str, tuple[str, Fraction, Fraction]] = {}
        self.held: dict[LedgerEntry, tuple[str, Fraction, Fraction, str]] = {}
        self.own: set[LedgerEntry] = set()
        self.n_entries = 0

    def teardown(self) -> None:
        self.place.__exit__(None, None, None)

    def sums(self, dataset: str) -> tuple[Fraction, Fraction]:
        spent = [held for held in self.held.values() if held[0] == dataset and held[3] != "refund"]
        return sum((held[1] for held in spent), Fraction(0)), sum((held[2] for held in spent), Fraction(0))

    @initialize(amount=AMOUNTS)
    def first(self, amount: float) -> None:
        self.granting("people", "pure", amount, 1e-6)

    @rule(dataset=st.sampled_from(DATASETS), kind=KINDS, amount=AMOUNTS, delta=st.sampled_from([1e-6, 3e-6]))
    def granting(self, dataset: str, kind: str, amount: float, delta: float) -> None:
        total, deltas = self.sums(dataset)
        limits = kind, exact(amount), exact(delta) if kind == "basic" else Fraction(0)
        fits = not total or (self.granted[dataset][0] == kind and total <= limits[1] and deltas <= limits[2])
        arguments = {
            "pure": {"epsilon": amount},
            "zcdp": {"rho": amount},
            "basic": {"epsilon": amount, "delta": delta, "composition": "basic"},
        }[kind]
        if fits:
            self.ledger.grant(dataset, reason="test", by="model", **arguments)  # type: ignore[arg-type]
            self.granted[dataset] = limits
            self.n_entries += 1
        else:
            with pytest.raises(dpm.LedgerError):
                self.ledger.grant(dataset, reason="test", by="model", **arguments)  # type: ignore[arg-type]

    @rule(dataset=st.sampled_from(DATASETS), amount=AMOUNTS, delta=st.sampled_from([1e-6, 2e-6]))
    def reserve(self, dataset: str, amount: float, delta: float) -> None:
        kind, limit, most_delta = self.granted.get(dataset, ("none", Fraction(0), Fraction(0)))
        cost, unit = {
            "pure": (dpm.PrivacyBudget.pure(amount), LossUnit.EPSILON),
            "none": (dpm.PrivacyBudget.pure(amount), LossUnit.EPSILON),
            "zcdp": (dpm.PrivacyBudget.zcdp(amount), LossUnit.RHO),
            "basic": (dpm.PrivacyBudget.approximate(amount, delta), LossUnit.EPSILON_DELTA),
        }[kind]
        total, deltas = self.sums(dataset)
        asked = exact(amount), exact(delta) if kind == "basic" else Fraction(0)
        if total + asked[0] <= limit and deltas + asked[1] <= most_delta:
            entry = self.ledger.reserve(dataset, cost, unit, neighbors="add_remove", release="x")
            self.held[entry] = (dataset, *asked, "reserve")
            self.own.add(entry)
            self.n_entries += 1
        else:
            with pytest.raises(dpm.LedgerError):
                self.ledger.reserve(dataset, cost, unit, neighbors="add_remove", release="x")

    @precondition(lambda self: self.held)
    @rule(data=st.data(), end=st.sampled_from(["commit", "refund"]))
    def end(self, data: st.DataObject, end: str) -> None:
        entry = data.draw(st.sampled_from(sorted(self.held, key=lambda entry: entry.number)))
        dataset, amount, delta, state = self.held[entry]
        if state == "reserve" and (end == "commit" or entry in self.own):
            getattr(self.ledger, end)(entry)
            self.held[entry] = (dataset, amount, delta, end)
            self.n_entries += 1
        else:
            with pytest.raises(dpm.LedgerError):
                getattr(self.ledger, end)(entry)

    @rule()
    def open_anew(self) -> None:
        self.ledger, self.own = dpm.Ledger(self.path), set()
        assert all(check.passed for check in self.ledger.verify())

    @invariant()
    def says_what_the_model_says(self) -> None:
        assert len(self.ledger.history() if self.granted else ()) == self.n_entries
        for dataset, (kind, limit, _) in self.granted.items():
            total, deltas = self.sums(dataset)
            account = self.ledger.account(dataset)
            assert account.sums.total("rho" if kind == "zcdp" else "epsilon") == total <= limit
            assert account.sums.amounts[1] == deltas
            states = [held[3] for held in self.held.values() if held[0] == dataset]
            assert (account.n_open, account.n_released, account.n_refunded) == tuple(
                map(states.count, ("reserve", "commit", "refund"))
            )


TestLedgerModel = LedgerModel.TestCase
TestLedgerModel.settings = settings(max_examples=15, stateful_step_count=30, deadline=None)
