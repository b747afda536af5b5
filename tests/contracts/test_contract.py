"""Every mechanism, in every setting it says it supports, obeys the same laws."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from contracts.cases import CASES, COMPARISONS, Case, run_plan, table_in_the_ball
from dpmoments.base.values import from_plain, to_plain
from dpmoments.mechanisms.registry import MECHANISMS, make_mechanism
from dpmoments.mechanisms.shape import MomentShape, RunResult
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.sampling import insecure_generator, secure_generator
from dpmoments.privacy.unit import Neighbors
from support.rows_read_once import RowsReadOnce
from support.said import refused

every_case = pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])


def run(case: Case, size: str, seed: int = 0) -> RunResult:
    return run_plan(case.plan(size), case.rows(), insecure_generator(seed))


def test_every_registered_mechanism_is_in_the_table() -> None:
    assert {case.mechanism.name for case in CASES} - COMPARISONS == set(MECHANISMS)


@pytest.mark.long(sets=None)
@every_case
def test_unlimited_budget_gives_the_exact_answer(case: Case) -> None:
    table = case.table()
    noisy = run(case, "unlimited")
    eigenvalues, eigenvectors = np.linalg.eigh(table.T @ table)
    leading = eigenvectors[:, -case.rank :]
    center = np.zeros(table.shape[1]) if noisy.center is None else noisy.center
    total, gram = np.zeros_like(center) if noisy.sum is None else noisy.sum, noisy.gram
    if case.mean:
        assert noisy.sum is not None
        assert noisy.count is not None
        assert noisy.count == pytest.approx(len(table), abs=case.tolerance)
        cross = np.outer(center, total)
        gram = gram + cross + cross.T + len(table) * np.outer(center, center)
        np.testing.assert_allclose(total + len(table) * center, table.sum(axis=0), atol=case.tolerance)
    np.testing.assert_allclose(gram, leading * eigenvalues[-case.rank :] @ leading.T, atol=case.tolerance)


@pytest.mark.long(sets=None)
@every_case
def test_tiny_budget_gives_noise_that_dwarfs_the_data(case: Case) -> None:
    table = case.table()
    gram = table.T @ table
    errors = [np.linalg.norm(run(case, "tiny", seed).gram - gram) for seed in range(3)]
    if case.noisy_when_tiny:
        assert min(errors) > 100 * len(table)
    else:
        assert np.median(errors) > 0.1 * np.linalg.norm(gram)


@every_case
def test_cost_is_what_was_asked_or_less(case: Case) -> None:
    for size in ("usual", "tiny", "unlimited"):
        budget, plan = case.budget(size), case.plan(size)
        assert budget.covers(plan.cost)
        spends = (plan.cost.rho, plan.cost.epsilon) == (budget.rho, budget.epsilon)
        assert spends, f"{plan.cost} leaves part of {budget} unspent"


@pytest.mark.long(sets=None)
@every_case
def test_a_run_leaves_its_table_as_it_was_and_has_the_promised_parts_and_the_bits_of_its_seed(case: Case) -> None:
    table = table_in_the_ball()
    before = table.tobytes()
    noisy = run_plan(case.plan(), case.rows(table), insecure_generator(3))
    assert table.tobytes() == before

    assert noisy.gram.shape == (case.n_features, case.n_features)
    assert np.isfinite(noisy.gram).all()
    np.testing.assert_array_equal(noisy.gram, noisy.gram.T)
    if case.neighbors is Neighbors.REPLACE_ONE:
        assert noisy.count == len(table)
    else:
        assert (noisy.count is None) == (not case.mean)
    assert (noisy.sum is not None) == case.mean
    if noisy.sum is not None:
        assert noisy.sum.shape == (case.n_features,)
        assert np.isfinite(noisy.sum).all()

    def bits(result: RunResult) -> tuple[Any, ...]:
        return result.gram.tobytes(), None if result.sum is None else result.sum.tobytes(), result.count

    assert bits(run(case, "usual", 3)) == bits(noisy)
    assert run(case, "usual", 4).gram.tobytes() != noisy.gram.tobytes()


@pytest.mark.long(sets=None)
@every_case
def test_secure_runs_differ(case: Case) -> None:
    plan = case.plan()
    first, second = (run_plan(plan, case.rows(), secure_generator()) for _ in range(2))
    assert first.gram.tobytes() != second.gram.tobytes()


@pytest.mark.long(sets=None)
@every_case
def test_empty_and_one_row_tables_run_where_n_is_private(case: Case) -> None:
    if case.neighbors is Neighbors.REPLACE_ONE:
        with refused("the table has no rows: under replace_one there is nothing"):
            dpm.release(np.zeros((0, 3)), dpm.Schema.unit_ball(3), epsilon=1.0, neighbors="replace_one")
        return
    for n_rows in (0, 1):
        noisy = run_plan(case.plan(), case.rows(table_in_the_ball()[:n_rows]), insecure_generator(1))
        assert np.isfinite(noisy.gram).all()


@pytest.mark.long(sets=None)
@every_case
def test_one_feature(case: Case) -> None:
    n_rows = 50 if case.neighbors is Neighbors.REPLACE_ONE else None
    shape = MomentShape(1, n_rows=n_rows, mean=case.mean, **case.shape_options)
    if case.only_features is not None:
        with refused("rows; the table has", features=1, rows=case.only_features):
            case.mechanism.plan(shape, case.budget(), case.neighbors)
        return
    plan = case.mechanism.plan(shape, case.budget(), case.neighbors)
    rows = dpm.rows.Rows.of(np.linspace(-1, 1, 50)[:, None], dpm.Schema.unit_ball(1), neighbors=case.neighbors)
    assert run_plan(plan, rows, insecure_generator(0)).gram.shape == (1, 1)


@pytest.mark.long(sets=None)
@every_case
def test_expected_error_matches_trials(case: Case) -> None:
    plan = case.plan()
    if plan.expected_error is None:
        assert plan.model is None
        return
    table = case.table()
    gram, rows = table.T @ table, RowsReadOnce(table, str(case.neighbors))
    generator = insecure_generator(11)
    squares = [np.sum((run_plan(plan, rows, generator).gram - gram) ** 2) for _ in range(150)]
    assert np.sqrt(np.mean(squares)) == pytest.approx(plan.expected_error, rel=0.2)
    # planted fault: an error half or twice what was forecast must not pass
    assert np.sqrt(np.mean(squares)) != pytest.approx(plan.expected_error * 2, rel=0.2)


@every_case
def test_wrong_budget_kind_is_refused(case: Case) -> None:
    for kind in set(BudgetKind) - case.mechanism.budget_kinds:
        budget = Case(case.mechanism, kind, case.neighbors, case.mean).budget()
        with refused("cannot spend a budget of"):
            case.mechanism.plan(case.shape(), budget, case.neighbors)


@every_case
def test_rows_of_another_shape_are_refused(case: Case) -> None:
    plan = case.plan()
    rows = dpm.rows.Rows.of(np.zeros((5, 4)), dpm.Schema.unit_ball(4), neighbors=case.neighbors)
    with refused("features and the rows have"):
        run_plan(plan, rows, insecure_generator(0))


@pytest.mark.parametrize(("planned", "opened"), [("replace_one", "add_remove"), ("add_remove", "replace_one")])
def test_rows_opened_for_another_relation_are_refused(planned: str, opened: str) -> None:
    plan = dpm.mechanisms.Gaussian().plan(MomentShape(3, n_rows=10), PrivacyBudget.zcdp(1.0), planned)
    rows = dpm.rows.Rows.of(np.zeros((10, 3)), dpm.Schema.unit_ball(3), neighbors=opened)
    with refused("which has other sensitivities: make both for the same"):
        run_plan(plan, rows, insecure_generator(0))


def test_options_for_a_configured_mechanism_are_refused() -> None:
    configured = dpm.mechanisms.Laplace()
    assert make_mechanism(configured) is configured
    with refused("is configured already: leave out"):
        make_mechanism(configured, calibration="paper")


@pytest.mark.parametrize("name", MECHANISMS)
def test_an_option_that_a_mechanism_does_not_have_is_refused_by_name(name: str) -> None:
    with pytest.raises(TypeError, match="wishful"):
        make_mechanism(name, wishful=1.0)


@every_case
def test_options_come_back_from_a_file_as_they_were(case: Case) -> None:
    """Sequences as tuples, so that the mechanism made of them is the same one."""
    read = from_plain(json.loads(json.dumps(to_plain(case.mechanism.options))))
    assert read == case.mechanism.options
    if case.mechanism.name not in COMPARISONS:  # which have no name for users
        assert make_mechanism(case.mechanism.name, **read) == case.mechanism


@pytest.mark.parametrize(
    "mechanism",
    [
        dpm.mechanisms.CoinPress(eigenvalue_bounds=[0.1, 2], split=[0.25, 0.75], anchor=[[2.0, 0.5], [0.5, 1.0]]),  # type: ignore[arg-type]
        dpm.mechanisms.PrivatePreconditioning(eigenvalue_bounds=[0.01, 1.0]),  # type: ignore[arg-type]
        dpm.mechanisms.means.CoinPressMean(radius=3.0, covariance=[[2.0, 0.5], [0.5, 1.0]], split=[0.5, 0.5]),  # type: ignore[arg-type]
    ],
    ids=lambda mechanism: type(mechanism).__name__,
)
def test_options_that_are_sequences_are_tuples_and_stay_tuples(mechanism: Any) -> None:
    options = mechanism.options
    read = from_plain(json.loads(json.dumps(to_plain(options))))
    assert read == options
    assert type(mechanism)(**read) == mechanism
    assert any(isinstance(value, tuple) for value in options.values())
    assert not any(isinstance(value, list) for value in read.values())


def test_support_is_checked_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Before a text file is read through to count its rows, and not again."""
    checked: list[str] = []
    original = dpm.mechanisms.Laplace.check_support

    def check_support(self: dpm.mechanisms.Laplace, *arguments: Any) -> None:
        checked.append(self.name)
        original(self, *arguments)

    monkeypatch.setattr(dpm.mechanisms.Laplace, "check_support", check_support)
    for neighbors in Neighbors:
        dpm.release(table_in_the_ball(), dpm.Schema.unit_ball(3), epsilon=1.0, neighbors=neighbors, mechanism="laplace")
    assert checked == ["laplace"] * 2
