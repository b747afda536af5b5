"""Every mechanism replayed on neighboring tables, and mechanisms with planted faults: nothing unpaid for leaves a run unseen."""

from __future__ import annotations

import warnings
from collections import Counter
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest

from contracts.cases import CASES, MEAN_CASES, Case
from contracts.faulty_mechanisms import (
    KeptCount,
    PrivateCountClip,
    TellingDiagnostic,
    TellingError,
    UnclippedRows,
    as_a,
)
from dpmoments.audit.replay import replay_everywhere, replay_on_any_table
from dpmoments.base.message import Message
from dpmoments.mechanisms.additive import AdditivePlan, Gaussian, GaussianNoise, MatrixLaplace
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.shape import RunResult
from dpmoments.papers.mechanisms.wishart_sampling import JohnsonLindenstrauss, PaddedGramPlan
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.sensitivity import gram_frobenius
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows

ADD_REMOVE, REPLACE_ONE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


MOST_PARTS = 5
"""A row replays one pair of five; the rows of its mechanism, under its relation, replay all of them together."""


def parts_of_rows(cases: list[Case]) -> list[tuple[Case, int, int]]:
    """Each row with one of how many parts of the pairs, and with the first pair of its part."""
    rows = Counter((type(case.mechanism), case.neighbors) for case in cases)
    met = Counter[tuple[type, Neighbors]]()
    found = []
    for case in cases:
        key = type(case.mechanism), case.neighbors
        every = min(MOST_PARTS, rows[key])
        found.append((case, every, met[key] % every))
        met[key] += 1
    return found


PARTS = parts_of_rows(CASES + MEAN_CASES)
SOME_AND_ALL = [pytest.param(*part, id=part[0].id) for part in PARTS] + [
    pytest.param(case, 1, 0, id=f"{case.id}-all", marks=pytest.mark.slow) for case, *_ in PARTS
]


def test_rows_of_a_mechanism_replay_every_pair_together() -> None:
    for case, every, _ in PARTS:
        key = type(case.mechanism), case.neighbors
        alike = {first for other, _, first in PARTS if (type(other.mechanism), other.neighbors) == key}
        assert alike == set(range(every))


def given(case: Case) -> dict[str, Any]:
    setting = dict(mechanism=case.mechanism, budget=case.budget(), neighbors=case.neighbors, mean=case.mean)
    return setting | dict(generator=insecure_generator(len(case.id)), n_features=case.n_features)


@pytest.mark.long(sets=None)
@pytest.mark.parametrize(("case", "every", "first_pair"), SOME_AND_ALL)
def test_nothing_leaves_a_run_that_its_plan_does_not_pay_for(case: Case, every: int, first_pair: int) -> None:
    assert replay_everywhere(**given(case), every=every, first_pair=first_pair) == ()


@pytest.mark.long(sets=None)
@pytest.mark.parametrize(("case", "every", "first_pair"), SOME_AND_ALL)
def test_what_leaves_a_run_follows_from_its_answers_alone(case: Case, every: int, first_pair: int) -> None:
    sizes = (3, 700) if every == 1 else ((3, 700)[first_pair % 2],)
    assert replay_on_any_table(**given(case), sizes=sizes) == ()


# Planted faults ---------------------------------------------------------------------------------------------------------------


def twice(noise: Any) -> GaussianNoise:
    """Noise of twice the standard deviation."""
    return GaussianNoise(2 * noise.noise_scale, 2 * noise.off_diagonal_scale)


class OrderedQueryPlan(AdditivePlan):
    """Releases the Gram matrix of differences of neighboring rows, as if it moved no more than that of the rows."""

    def run(self, rows: Rows, privacy_filter: Any) -> RunResult:
        table = np.concatenate([*rows.source.blocks(), np.zeros((0, self.shape.n_features))])
        pairs = (table[1::2] - table[: len(table) // 2 * 2 : 2]) / 2.0
        exact = np.rint(pairs.T @ pairs * 4.0**self.bits).astype(np.int64)
        return RunResult(None, None, self.add_noise(privacy_filter, "Gram matrix", exact))


class NumberOfDrawsPlan(AdditivePlan):
    """Asks once more where the table has more than 16 rows; the second draw is paid for."""

    most_rows = 16

    def run(self, rows: Rows, privacy_filter: Any) -> RunResult:
        noisy = replace(self, noise=twice(self.noise))
        gram = rows.moments(bits=self.bits).gram
        for _ in range(2 if rows.count() > self.most_rows else 1):
            values = noisy.add_noise(privacy_filter, "Gram matrix", gram)
        return RunResult(None, None, values)


class TwoDrawsPlan(NumberOfDrawsPlan):
    """The same without the fault: two draws, whatever the table."""

    most_rows = -1


class NumberOfPassesPlan(AdditivePlan):
    """Looks at a table of more than 16 rows once more, for nothing: progress and time tell."""

    def run(self, rows: Rows, privacy_filter: Any) -> RunResult:
        if rows.count() > 16:
            rows.moments()
        return super().run(rows, privacy_filter)


class TellingShapePlan(AdditivePlan):
    def run(self, rows: Rows, privacy_filter: Any) -> RunResult:
        noisy = super().run(rows, privacy_filter)
        return replace(noisy, diagnostics={"spare": np.zeros(rows.count())})


class TellingWarningPlan(AdditivePlan):
    def run(self, rows: Rows, privacy_filter: Any) -> RunResult:
        if rows.moments().clipped:
            warnings.warn("rows were clipped", stacklevel=2)
        return super().run(rows, privacy_filter)


class TellingReceiptPlan(AdditivePlan):
    """Names a draw after the number of rows."""

    def run(self, rows: Rows, privacy_filter: Any) -> RunResult:
        gram = rows.moments(bits=self.bits).gram
        return RunResult(None, None, self.add_noise(privacy_filter, f"Gram matrix of {rows.count()} rows", gram))


class RelabeledSensitivityPlan(AdditivePlan):
    """The add-remove sensitivity under a label that says replace-one, so that the filter takes it."""

    def add_noise(self, privacy_filter: Any, what: Any, query: Any) -> Any:
        right = gram_frobenius(ADD_REMOVE, self.shape.n_features, self.augmentation)
        relabeled = replace(right, neighbors=self.neighbors)
        return self.noise.added(privacy_filter, what, query, relabeled, self.bits)


class WrongQueryPlan(AdditivePlan):
    """Pays for the sensitivity of the Gram matrix and asks for twice that matrix."""

    def run(self, rows: Rows, privacy_filter: Any) -> RunResult:
        gram = rows.moments(bits=self.bits).gram
        return RunResult(None, None, self.add_noise(privacy_filter, "Gram matrix", 2 * gram) / 2.0)


class DroppedRowPlan(AdditivePlan):
    """Adds to the Gram matrix, for every row that its column rules drop, a row of ones that nobody clipped."""

    def run(self, rows: Rows, privacy_filter: Any) -> RunResult:
        moments = rows.moments(bits=self.bits)
        gram = moments.gram.astype(object) + (rows.table_size() - moments.count) * 4**self.bits * 2
        return RunResult(None, None, self.add_noise(privacy_filter, "Gram matrix", gram))


class OwnNoisePlan(AdditivePlan):
    """Spends nothing at the filter and draws noise elsewhere."""

    def run(self, rows: Rows, privacy_filter: Any) -> RunResult:
        del privacy_filter
        noise = insecure_generator(0).normal(0.0, 2.0, (self.shape.n_features,) * 2)
        return RunResult(None, None, rows.moments().gram * rows.moments().scale ** 2 + noise + noise.T)


class TellingDetailsPlan(AdditivePlan):
    """Keeps what it saw in its plan, whose numbers a release publishes after the run."""

    def run(self, rows: Rows, privacy_filter: Any) -> RunResult:
        object.__setattr__(self, "seen", rows.moments().clipped)
        return super().run(rows, privacy_filter)

    @property
    def details(self) -> Any:
        return {**super().details, "clipped": getattr(self, "seen", None)}


class RememberingPlan(AdditivePlan):
    """Reads the first table it is run on, and answers of that for ever: with a query a thousand times too long."""

    def run(self, rows: Rows, privacy_filter: Any) -> RunResult:
        if not hasattr(self, "kept"):
            object.__setattr__(self, "kept", rows.moments(bits=self.bits).gram * 1000)
        return RunResult(None, None, self.add_noise(privacy_filter, "Gram matrix", self.kept))


class BetweenLatticePointsPlan(AdditivePlan):
    """Forgets to round before it asks for noise on a lattice."""

    def run(self, rows: Rows, privacy_filter: Any) -> RunResult:
        gram = rows.moments(bits=self.bits).gram.astype(np.float64) + 0.25
        return RunResult(None, None, self.add_noise(privacy_filter, "Gram matrix", gram))


@dataclass(frozen=True)
class BoundOfAnother(JohnsonLindenstrauss):
    """Bounds the largest eigenvalue where the draw relies on the smallest."""

    adaptive: bool = True

    def calibrate(self, shape: Any, budget: Any, neighbors: Any) -> Any:
        return as_a(super().calibrate(shape, budget, neighbors), BoundOfAnotherPlan)


class BoundOfAnotherPlan(PaddedGramPlan):
    def _eigenvalue_bound(self, exact: Any, privacy_filter: Any) -> float:
        return super()._eigenvalue_bound(np.eye(1) * np.linalg.eigvalsh(exact)[-1], privacy_filter)


def faulty(plan: type[AdditivePlan]) -> type[Mechanism]:
    """A mechanism with the plan of its base, run by another class."""
    base = MatrixLaplace if plan is WrongQueryPlan else Gaussian

    @dataclass(frozen=True)
    class Faulty(base):  # type: ignore[misc,valid-type]
        def calibrate(self, shape: Any, budget: Any, neighbors: Any) -> Any:
            return as_a(super().calibrate(shape, budget, neighbors), plan)

    Faulty.__name__ = plan.__name__
    return Faulty


class TellingOfManyPlan(AdditivePlan):
    """Says aloud where the rows' squares add up to less than 100: no two neighbors of a few rows differ in it."""

    def run(self, rows: Rows, privacy_filter: Any) -> RunResult:
        noisy = super().run(rows, privacy_filter)
        short = rows.moments().gram.trace() < 100.0 * 4.0**20
        return replace(noisy, diagnostics={"warnings": (Message("rows-unseen"),) if short else ()})


def test_a_decision_from_an_exact_number_is_seen_on_tables_that_are_no_neighbors() -> None:
    given: Any = (faulty(TellingOfManyPlan)(), PrivacyBudget.zcdp(0.5), ADD_REMOVE, insecure_generator(3))
    assert replay_everywhere(*given) == ()
    assert any("diagnostics" in finding for finding in replay_on_any_table(*given))


ZCDP, PURE, APPROXIMATE = PrivacyBudget.zcdp(0.5), PrivacyBudget.pure(1.0), PrivacyBudget.approximate(20.0, 0.1)
FAULTS: list[tuple[str, Mechanism, PrivacyBudget, Neighbors, str]] = [
    ("the wrong neighbor", faulty(RelabeledSensitivityPlan)(), ZCDP, REPLACE_ONE, "is stated as less than it is"),
    ("a query of twice the sensitivity", faulty(WrongQueryPlan)(), PURE, ADD_REMOVE, "is paid for"),
    ("a query that depends on the order of rows", faulty(OrderedQueryPlan)(), ZCDP, REPLACE_ONE, "is paid for"),
    ("a dropped row that reaches a query", faulty(DroppedRowPlan)(), ZCDP, REPLACE_ONE, "is paid for"),
    ("the exact number of rows kept", KeptCount(), ZCDP, REPLACE_ONE, "outcome.result.count"),
    ("rows that are not clipped", UnclippedRows(), PURE, ADD_REMOVE, "is paid for"),
    ("a data-dependent number of draws", faulty(NumberOfDrawsPlan)(), ZCDP, ADD_REMOVE, "were not made"),
    ("the same, seen from the other table", faulty(NumberOfDrawsPlan)(), ZCDP, ADD_REMOVE, "did not make"),
    ("a data-dependent number of passes", faulty(NumberOfPassesPlan)(), ZCDP, ADD_REMOVE, "outcome.asked has"),
    ("an exact value among the diagnostics", TellingDiagnostic(), PURE, ADD_REMOVE, "outcome.result.diagnostics"),
    ("the shape of a diagnostic", faulty(TellingShapePlan)(), ZCDP, ADD_REMOVE, "outcome.result.diagnostics"),
    ("an exact value used after the noise", PrivateCountClip(), PURE, ADD_REMOVE, "outcome.result.gram differs"),
    ("a value in the receipt", faulty(TellingReceiptPlan)(), ZCDP, ADD_REMOVE, "outcome.receipt"),
    ("a warning on one side", faulty(TellingWarningPlan)(), ZCDP, ADD_REMOVE, "outcome.warnings"),
    ("an error on one side", TellingError(), PURE, REPLACE_ONE, "outcome.error"),
    ("a value in the plan's details", faulty(TellingDetailsPlan)(), ZCDP, ADD_REMOVE, "outcome.details"),
    ("a plan that remembers a table", faulty(RememberingPlan)(), ZCDP, ADD_REMOVE, "is paid for"),
    ("a query between lattice points", faulty(BetweenLatticePointsPlan)(), ZCDP, ADD_REMOVE, "not in integers"),
    ("a bound on another eigenvalue", BoundOfAnother(), APPROXIMATE, ADD_REMOVE, "for another matrix"),
    ("noise from elsewhere", faulty(OwnNoisePlan)(), ZCDP, ADD_REMOVE, "outcome.result.gram differs"),
]


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault[0])
def test_a_planted_fault_is_found(fault: tuple[str, Mechanism, PrivacyBudget, Neighbors, str]) -> None:
    words, mechanism, budget, neighbors, finding = fault
    found: list[str] = []
    for first in range(3):  # of the pairs a third, and the others where it shows nothing
        part: Any = dict(n_features=2, mean="count" in words, every=3, first_pair=first)
        found += replay_everywhere(mechanism, budget, neighbors, insecure_generator(1), **part)
        if any(finding in text for text in found):
            return
    pytest.fail(f"not found: {found[:5]}")


def test_the_same_without_a_fault_is_clean() -> None:
    mechanism = faulty(TwoDrawsPlan)()
    assert replay_everywhere(mechanism, ZCDP, ADD_REMOVE, insecure_generator(1), n_features=2, mean=False) == ()
