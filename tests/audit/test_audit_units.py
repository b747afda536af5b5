"""Audits of releases for people of many rows: what tables differ by, and that faults of group privacy are caught."""

from __future__ import annotations

import json
import shlex
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.audit import AuditEffort, AuditResult, audit
from dpmoments.audit.pairs import neighboring_pairs, unit_pairs
from dpmoments.audit.procedure import _worst_exact, audit_plan, make_trials
from dpmoments.cli import main
from dpmoments.mechanisms import Gaussian, Laplace
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.privacy.accounting import Loss, LossUnit, allowance
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.rows.units import UnitSelection
from support.said import refused

pytestmark = pytest.mark.long

UNIT = PrivacyUnit("person", 5)
PURE, APPROXIMATE, ZCDP = PrivacyBudget.pure(1.0), PrivacyBudget.approximate(1.0, 0.01), PrivacyBudget.zcdp(0.5)
LITTLE = AuditEffort(40, 200)


def audited(mechanism: str, budget: PrivacyBudget, effort: AuditEffort = LITTLE, **options: Any) -> AuditResult:
    return audit(mechanism, budget, "add_remove", insecure_generator(1), effort=effort, privacy_unit=UNIT, **options)


@pytest.mark.parametrize("d", [1, 2, 5])
def test_pairs_differ_by_one_person(d: int) -> None:
    pairs = unit_pairs(d, UNIT)
    assert len({pair.name for pair in pairs}) == len(pairs)
    sizes = set()
    for pair in pairs:
        n = len(pair.first)
        np.testing.assert_array_equal(pair.first, pair.second[:n])
        assert pair.first_units == pair.second_units[:n]
        [person] = set(pair.second_units[n:])
        assert person not in pair.first_units
        assert len(pair.second_units) == len(pair.second)
        assert (np.linalg.norm(pair.second, axis=1) <= 1.0 + 1e-12).all()
        sizes.add(len(pair.second) - n)
    assert sizes == {5, 15}
    with refused("must be a whole number", parameter="n_features"):
        unit_pairs(0, UNIT)


@pytest.mark.parametrize(
    ("mechanism", "budget"),
    [("matrix-laplace", PURE), ("laplace", PURE), ("gaussian", APPROXIMATE), ("gaussian", ZCDP)],
)
def test_what_k_rows_lose_is_the_stated_cost_and_no_more(mechanism: str, budget: PrivacyBudget) -> None:
    """The exact loss on a person of many rows is that of one row of a release for rows."""
    of_people = make_trials(make_mechanism(mechanism), budget, unit_pairs(2, UNIT), True)
    of_rows = make_trials(make_mechanism(mechanism), budget, neighboring_pairs(2, "add_remove"), True)
    assert {trial.cost for trial in of_people} == {budget}
    people, rows = _worst_exact(of_people), _worst_exact(of_rows)
    assert people is not None
    assert rows is not None
    assert people[0] == pytest.approx(rows[0], rel=1e-6)


def forgetful(power: int) -> Any:
    """Group privacy that divides by k to a power that is too small."""

    def rows_of(cost: PrivacyBudget, loss_unit: LossUnit, unit: PrivacyUnit | None) -> Loss:
        whole = allowance(cost, loss_unit)
        return Loss(loss_unit, whole.amount / (1 if unit is None else unit.max_rows**power), whole.delta)

    return rows_of


@pytest.mark.parametrize(
    ("mechanism", "budget", "power", "effort"),
    [
        ("matrix-laplace", PURE, 0, AuditEffort(60, 250)),
        pytest.param("gaussian", ZCDP, 1, AuditEffort(150, 1000), marks=pytest.mark.slow),
        pytest.param("gaussian", APPROXIMATE, 1, AuditEffort(150, 1000), marks=pytest.mark.slow),
    ],
)
def test_group_privacy_that_forgets_a_factor_is_caught(
    monkeypatch: pytest.MonkeyPatch, mechanism: str, budget: PrivacyBudget, power: int, effort: AuditEffort
) -> None:
    """In the filter as in the calibration, so that nothing but the outputs tells of it."""
    monkeypatch.setattr("dpmoments.privacy.accounting.allowance_for_rows", forgetful(power))
    monkeypatch.setattr("dpmoments.privacy.filter.allowance_for_rows", forgetful(power))
    found = audited(mechanism, budget, effort)
    assert found.exceeded
    assert found.exact is not None
    assert found.exact > 1.5 * found.stated_epsilon
    assert found.lower_bound > found.stated_epsilon  # seen in the draws, too


@pytest.mark.slow
def test_a_person_all_of_whose_rows_count_is_caught(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(UnitSelection, "kept", lambda _, block: block.rows)
    found = audited("gaussian", ZCDP)
    assert found.exceeded
    assert "more" in found.exact_pair


def test_what_cannot_be_is_refused() -> None:
    with refused("the number of kept rows depends on how many each"):
        audit("laplace", PURE, "replace_one", insecure_generator(0), privacy_unit=UNIT)
    with refused("must be", TypeError, parameter="privacy_unit"):
        audit("laplace", PURE, "add_remove", insecure_generator(0), privacy_unit="person")  # type: ignore[arg-type]


def test_a_plan_of_audits_for_people_is_for_add_remove_alone() -> None:
    settings, _ = audit_plan([Laplace(), Gaussian()], budgets=[PURE], privacy_unit=UNIT)
    assert {setting.neighbors for setting in settings} == {Neighbors.ADD_REMOVE}
    assert {setting.privacy_unit for setting in settings} == {UNIT}


@pytest.mark.slow
def test_the_command_audits_people_of_many_rows(capsys: Any) -> None:
    given = shlex.split("audit laplace --epsilon 1 --max-rows-per-unit 5 --draws 40 --seed 0 --json")
    assert main(given) == 0
    found = json.loads(capsys.readouterr().out)["audits"]
    assert [entry["neighbors"] for entry in found] == ["add_remove", "add_remove"]
    assert all(entry["privacy_unit"] == dpm.PrivacyUnit("person", 5).to_dict() for entry in found)
    assert main(["audit", "laplace", "--epsilon", "1", "--max-rows-per-unit", "0"]) != 0
