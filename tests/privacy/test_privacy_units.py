"""Units of several rows: what a run may spend on one of them, what a release states, and that no more than that leaves a run.

Which rows of a unit count is tested in ``test_unit_selection.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

import dpmoments as dpm
from contracts.cases import CASES, MEAN_CASES, Case
from dpmoments.audit.replay import replay
from dpmoments.audit.verification import checks
from dpmoments.cli import main
from dpmoments.mechanisms.base import UnitsPlan
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.privacy.accounting import Loss, LossUnit, allowance, allowance_for_rows, budget_for_rows, loss_for_units
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget, PrivacyRequest
from dpmoments.privacy.curves import gaussian_delta, zcdp_delta
from dpmoments.privacy.filter import PrivacyFilter, PrivacyFilterError
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.rows import units
from dpmoments.rows.rows import Rows
from support.forged_files import forge
from support.said import Said, refused, warned

ADD_REMOVE = Neighbors.ADD_REMOVE
UNIT = PrivacyUnit("person_id", 3)
BUDGETS = {
    "pure": PrivacyBudget.pure(1.0),
    "approximate": PrivacyBudget.approximate(1.0, 1e-6),
    "zcdp": PrivacyBudget.zcdp(0.5),
}
SCHEMA = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Boolean("smoker"))


def people(n_rows: int = 3000, seed: int = 1) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": rng.uniform(20, 60, n_rows),
            "smoker": rng.random(n_rows) < 0.3,
            "person_id": np.minimum(rng.zipf(1.5, n_rows), 500),
        }
    )


# What is left for one row ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [1, 2, 3, 20, 1000])
@pytest.mark.parametrize("loss_unit", list(LossUnit))
@pytest.mark.parametrize("cost", BUDGETS.values(), ids=BUDGETS)
def test_what_is_left_for_a_row_is_the_cost_for_a_unit_of_k_again(
    cost: PrivacyBudget, loss_unit: LossUnit, k: int
) -> None:
    """Group privacy, forwards and in exact arithmetic: ε k times, ρ k² times, δ by the sum of e^(iε)."""
    unit = PrivacyUnit("person_id", k)
    try:
        whole = allowance(cost, loss_unit)
    except ValueError:
        with refused("do not add up to a cost of"):
            allowance_for_rows(cost, loss_unit, unit)
        return
    row = allowance_for_rows(cost, loss_unit, unit)
    times = k**2 if loss_unit in (LossUnit.RHO, LossUnit.GAUSSIAN_RHO) else k
    assert row.amount * times == whole.amount
    if loss_unit is LossUnit.EPSILON_DELTA:
        with mpmath.workdps(50):
            epsilon = mpmath.mpf(row.amount.numerator) / row.amount.denominator
            delta = mpmath.mpf(row.delta.numerator) / row.delta.denominator
            of_unit = delta * sum(mpmath.e ** (i * epsilon) for i in range(k))
            assert of_unit <= cost.delta <= of_unit * (1 + 1e-11)
    budget = budget_for_rows(cost, loss_unit, unit)
    drawable_budget = allowance(budget, loss_unit)
    assert budget.kind is cost.kind
    assert drawable_budget.within(row)
    assert drawable_budget.amount >= row.amount * (1 - Fraction(1, 10**12))
    assert drawable_budget.delta >= row.delta * (1 - Fraction(1, 10**12))


@pytest.mark.parametrize("loss_unit", [LossUnit.RHO, LossUnit.GAUSSIAN_RHO])
@pytest.mark.parametrize(
    ("epsilon", "delta", "k"),
    [
        (1e-3, 1e-2, 5),
        (3.0, 0.2, 20),
        (1e-6, 0.5, 2),
        (1.0, 1e-6, 2**20),
    ],
)
def test_a_delta_that_the_rho_of_a_row_needs_no_epsilon_for_is_divided_too(
    epsilon: float, delta: float, k: int, loss_unit: LossUnit
) -> None:
    """What a row may lose in ρ is (0, δ)-private already: another δ states it, and all of it can be spent."""
    cost = PrivacyBudget.approximate(epsilon, delta)
    row = allowance_for_rows(cost, loss_unit, PrivacyUnit("person_id", k))
    budget = budget_for_rows(cost, loss_unit, PrivacyUnit("person_id", k))
    assert budget.kind is BudgetKind.APPROXIMATE
    assert 0 < budget.epsilon < epsilon
    assert 0 < budget.delta <= delta
    drawable = allowance(budget, loss_unit)
    assert drawable.within(row)
    assert drawable.amount >= row.amount * (1 - Fraction(1, 10**9))
    of_unit = float(drawable.amount) * k**2
    if loss_unit is LossUnit.RHO:
        assert zcdp_delta(of_unit, epsilon) <= delta * (1 + 1e-12)
    else:
        assert gaussian_delta(epsilon, math.sqrt(2.0 * of_unit), 1.0) <= delta * (1 + 1e-12)


@pytest.mark.parametrize("mechanism", ["gaussian", "coinpress"])
def test_a_small_epsilon_with_a_large_delta_is_released_for_units(mechanism: str, tmp_path: Path) -> None:
    job = partial(dpm.release, people(), SCHEMA, mechanism=mechanism, privacy_unit=UNIT, output=tmp_path / "r.json")
    with warned("delta-too-large", delta=0.01):  # of the stated δ, and not of what is left of it for a row
        released = job(epsilon=1e-3, delta=1e-2)
    assert (released.privacy.budget.epsilon, released.privacy.budget.delta) == (1e-3, 1e-2)
    assert all(check.passed is not False for check in checks(dpm.load(tmp_path / "r.json")))


@pytest.mark.parametrize(
    ("cost", "loss_unit", "k"),
    [
        (PrivacyBudget.approximate(1e15, 0.5), LossUnit.EPSILON_DELTA, 2),
        (PrivacyBudget.pure(5e-324), LossUnit.EPSILON, 3),
        (PrivacyBudget.zcdp(5e-324), LossUnit.RHO, 3),
    ],
)
def test_where_nothing_is_left_it_says_so(cost: PrivacyBudget, loss_unit: LossUnit, k: int) -> None:
    said = (
        "leaves no δ for a single row, since δ grows with",
        "leaves nothing for a single row that can be calculated",
    )
    with refused(said):
        budget_for_rows(cost, loss_unit, PrivacyUnit("person_id", k))


@pytest.mark.parametrize(
    ("options", "kind", "code"),
    [
        ({"column": "a", "max_rows": 0}, ValueError, "must be between 1 and"),
        ({"column": "a", "max_rows": -1}, ValueError, "must be between 1 and"),
        ({"column": "a", "max_rows": 10**400}, ValueError, "must be between 1 and"),
        ({"column": "a", "max_rows": True}, TypeError, "must be"),
        ({"column": "a", "max_rows": 2.0}, TypeError, "must be"),
        ({"column": "a", "max_rows": "5"}, TypeError, "must be"),
        ({"column": "", "max_rows": 1}, ValueError, "the column of a privacy unit has no name: give the column"),
        ({"column": 3, "max_rows": 1}, TypeError, "must be"),
        ({"column": "a", "max_rows": 1, "missing": "zero"}, ValueError, "must be"),
    ],
)
def test_a_unit_that_cannot_be_is_refused(options: dict[str, Any], kind: type[Exception], code: str) -> None:
    with refused(code, kind):
        PrivacyUnit(**options)


# Every mechanism -----------------------------------------------------------------------------------------------------------

UNIT_CASES = [case for case in CASES + MEAN_CASES if case.neighbors is ADD_REMOVE]


@lru_cache(maxsize=8)
def long_table(n_features: int) -> pa.Table:
    """1,200 rows of 150 persons in the unit ball."""
    rng = np.random.default_rng(11)
    cells = np.clip(rng.normal(0.05, 0.2, (1200, n_features)), -0.5, 0.5)
    return pa.table({f"x{i}": cells[:, i] for i in range(n_features)} | {"person_id": np.arange(1200) % 150})


def plan_of(case: Case, unit: PrivacyUnit = UNIT) -> UnitsPlan[Any]:
    plan = case.mechanism.plan_for(case.shape(), PrivacyRequest(case.budget(), case.neighbors, unit))
    return UnitsPlan.of(plan, case.budget(), unit)


@pytest.mark.long(sets=16)
@pytest.mark.parametrize("case", UNIT_CASES, ids=lambda case: case.id)
def test_every_mechanism_runs_for_units_and_spends_no_more_than_the_cost(case: Case) -> None:
    plan = plan_of(case)
    rows = Rows.of(
        long_table(case.n_features), dpm.Schema.unit_ball(case.n_features), mean=case.mean, threads=1, privacy_unit=UNIT
    )
    privacy_filter = PrivacyFilter(plan, insecure_generator(len(case.id)))
    plan.run(rows, privacy_filter)
    receipt = privacy_filter.close()
    assert case.budget().covers(plan.cost)
    assert receipt.privacy_unit == UNIT
    assert Receipt.from_dict(receipt.to_dict()) == receipt
    assert receipt.exhausts or plan.unspent_reason is not None
    whole, spent = allowance(plan.cost, receipt.unit), receipt.total
    if receipt.unit is LossUnit.EPSILON_DELTA:
        assert 3 * spent.amount <= whole.amount
        assert (
            float(spent.delta) * (math.expm1(float(whole.amount)) / math.expm1(float(whole.amount / 3))) <= whole.delta
        )
    else:
        times = 3 if receipt.unit is LossUnit.EPSILON else 9
        assert times * spent.amount <= whole.amount


ADDITIVE = [
    case for case in UNIT_CASES if case.mechanism.name in ("gaussian", "laplace", "matrix-laplace", "isotropic")
]


def test_auto_calibrates_what_it_chooses_to_what_is_left_for_that() -> None:
    """Under (ε, δ): pure noise at ε/k, Gaussian noise at a k-th of its μ; neither at the other's."""
    many, few = MomentShape(50), MomentShape(2)
    auto, cost = dpm.mechanisms.Auto(), PrivacyBudget.approximate(1.0, 1e-6)
    gaussian = auto.plan_for(many, PrivacyRequest(cost, ADD_REMOVE, UNIT))
    assert gaussian.mechanism.name == "gaussian"
    assert gaussian.cost == budget_for_rows(cost, LossUnit.GAUSSIAN_RHO, UNIT)
    assert gaussian.chosen_because is not None
    assert gaussian.chosen_because.facts["unit_rows"] == 3
    pure = auto.plan_for(few, PrivacyRequest(cost, ADD_REMOVE, UNIT))
    assert pure.cost == budget_for_rows(PrivacyBudget.pure(1.0), LossUnit.EPSILON, UNIT)
    assert UnitsPlan.of(pure, cost, UNIT).cost == PrivacyBudget.pure(1.0)


def test_the_filter_refuses_a_run_that_spends_on_a_row_what_is_for_a_unit() -> None:
    for cost in BUDGETS.values():
        full = dpm.mechanisms.Auto().plan(MomentShape(2), cost, ADD_REMOVE)
        with refused("the plan for rows costs more than a row's part of the cost"):
            UnitsPlan.of(full, cost, UNIT)
        honest = dpm.mechanisms.Auto().plan_for(MomentShape(2), PrivacyRequest(cost, ADD_REMOVE, UNIT))
        plan = UnitsPlan.of(honest, cost, UNIT)
        object.__setattr__(plan, "inner", full)
        rows = Rows.of(long_table(2), dpm.Schema.unit_ball(2), privacy_unit=UNIT, threads=1)
        with refused("would spend more than the plan states", PrivacyFilterError):
            plan.run(rows, PrivacyFilter(plan, insecure_generator(0)))


def test_a_plan_for_units_takes_the_rows_of_its_own_unit_alone() -> None:
    plan = plan_of(ADDITIVE[0])
    for unit in (None, replace(UNIT, max_rows=4), replace(UNIT, missing="drop")):
        rows = Rows.of(long_table(3), dpm.Schema.unit_ball(3), privacy_unit=unit, threads=1)
        with refused("the rows were opened for another privacy unit than the"):
            plan.run(rows, PrivacyFilter(plan, insecure_generator(0)))


# Replay -----------------------------------------------------------------------------------------------------------------------


def table_of(persons: list[tuple[str, np.ndarray]]) -> pa.Table:
    rows = np.concatenate([cells for _, cells in persons])
    names = [name for name, cells in persons for _ in range(len(cells))]
    return pa.table({f"x{i}": rows[:, i] for i in range(rows.shape[1])} | {"person_id": names})


def pairs(n_features: int) -> dict[str, tuple[pa.Table, pa.Table]]:
    """A table, and the same with a person of 40 rows: where they stand, and what they are."""
    rng = np.random.default_rng(5)
    ordinary = rng.normal(0.0, 0.4 / math.sqrt(n_features), (40, n_features))
    others = [(f"p{i}", rng.normal(0.1, 0.3 / math.sqrt(n_features), (1 + i % 5, n_features))) for i in range(40)]
    axis = np.eye(n_features)[-1]
    rows = {
        "ordinary rows": ordinary,
        "one row again and again": np.tile(axis, (40, 1)),
        "some rows twice": np.repeat(ordinary[:20], 2, axis=0),
        "rows far outside the ball": np.full((40, n_features), 1e6),
        "rows half of which are dropped": np.where(np.arange(40)[:, None] % 2 == 0, np.nan, ordinary),
        "dropped rows alone": np.full((40, n_features), np.nan),
        "a row that others have": np.tile(others[0][1], (40, 1)),
    }
    whole = table_of(others)
    found = {}
    for index, (name, cells) in enumerate(rows.items()):
        theirs = table_of([("x", cells)])
        with_all = pa.concat_tables([whole, theirs])
        n = len(whole)
        spread = np.argsort(np.concatenate([np.arange(n), np.linspace(0, n, 40)]), kind="stable")
        orders = {"last": np.arange(n + 40), "first": np.arange(n + 40)[::-1], "spread": spread}
        place = list(orders)[index % 3]
        found[f"{name}, {place}"] = (whole, with_all.take(pa.array(orders[place])))
    return found


def replay_units(case: Case, generator: np.random.Generator, turn: int = 0) -> list[str]:
    """On every other pair, from the first or the second on in turn."""
    plan, schema = plan_of(case), dpm.Schema.unit_ball(case.n_features, missing="drop")
    found = []
    for index, (name, tables) in list(enumerate(pairs(case.n_features).items()))[turn % 2 :: 2]:
        rows = [Rows.of(table, schema, mean=case.mean, threads=1, privacy_unit=UNIT) for table in tables]
        findings = replay(plan, *rows[:: 1 if index % 4 < 2 else -1], generator)
        found += [f"{name}: {finding}" for finding in findings]
    return found


REPLAYED = list(
    {
        case.mechanism.name: case
        for case in UNIT_CASES
        if case.mean
        and not any(
            option in case.id for option in ("paper", "smallest", "entrywise", "dominant", "scale", "allocation")
        )
    }.values()
)
"""One case a mechanism."""


@pytest.fixture
def small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that a person's rows are in many blocks, and at their edges."""
    monkeypatch.setattr("dpmoments.rows.sources.memory._rows_per_part", lambda *_: 16)


@pytest.mark.long
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("case", REPLAYED, ids=lambda case: case.id)
def test_nothing_leaves_a_run_for_units_that_is_not_paid_for(case: Case) -> None:
    assert replay_units(case, insecure_generator(len(case.id)), REPLAYED.index(case)) == []


def by_place(rows: np.ndarray, of_units: np.ndarray, key: int) -> np.ndarray:
    del of_units, key
    return np.arange(len(rows), dtype=np.uint64)


def all_copies(rows: np.ndarray, codes: np.ndarray, hashes: np.ndarray, k: int) -> np.ndarray:
    del codes, hashes, k
    return rows


FAULTS: dict[str, tuple[str, Any]] = {
    "rows are chosen by their place": ("_row_hashes", by_place),
    "all copies of a row count": ("_cut_with_copies", all_copies),
}


@pytest.mark.long
@pytest.mark.usefixtures("small_blocks")
@pytest.mark.parametrize("fault", list(FAULTS))
def test_replay_sees_a_selection_that_is_no_function_of_a_persons_rows(
    monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    monkeypatch.setattr(units, *FAULTS[fault])
    assert any("moved by" in finding for finding in replay_units(REPLAYED[0], insecure_generator(1)))


# What a release states ------------------------------------------------------------------------------------------------------


def test_a_release_states_its_unit_and_stands_every_check(tmp_path: Path) -> None:
    budget = dict(epsilon=1.0, delta=1e-6, privacy_unit=UNIT)
    released = dpm.release(people(), SCHEMA, mechanism="johnson-lindenstrauss", **budget)
    words = released.privacy.describe()
    assert "all rows with one value of person_id, present or absent" in words
    assert "all rows with one value of person_id, of which at most 3, chosen at random, are used" in words
    assert "one row" not in words
    assert "person_id" not in str(released.to_dict()["schema"])
    assert "together, on one row of 3" in released.receipt.lines()[-1]
    mean = dpm.release_mean(people(), SCHEMA, rho=0.5, privacy_unit=UNIT)
    for name, made in (("moments", released), ("mean", mean)):
        assert made.privacy.privacy_unit == made.receipt.privacy_unit == UNIT
        made.save(tmp_path / f"{name}.json")
        loaded = dpm.load(tmp_path / f"{name}.json")
        assert loaded.to_dict() == made.to_dict()
        assert all(check.passed is not False for check in checks(loaded))


def test_a_unit_of_one_row_is_no_row() -> None:
    """One row of each person counts: the noise is that for rows, and the guarantee is for persons."""
    unit = PrivacyUnit("person_id", 1)
    released = dpm.release(people(), SCHEMA, epsilon=50.0, mechanism="laplace", privacy_unit=unit, insecure_seed=1)
    of_rows = dpm.release(people(), SCHEMA, epsilon=50.0, mechanism="laplace", insecure_seed=1)
    assert released.noise_model is not None
    assert of_rows.noise_model is not None
    assert released.noise_model.to_dict() == of_rows.noise_model.to_dict()
    assert abs(released.n_rows - len(set(people()["person_id"].to_pylist()))) < 5
    assert "of which one, chosen at random, is used" in released.privacy.describe()


Edit = Callable[[dict[str, Any]], object]


def in_both(name: str, value: Any) -> Edit:
    def edit(content: dict[str, Any]) -> None:
        content["privacy"]["privacy_unit"][name] = value
        content["receipt"]["protected_unit"][name] = value

    return edit


FORGED: dict[str, tuple[Edit, Said]] = {
    "more rows in the receipt": (lambda c: c["receipt"]["protected_unit"].update(max_rows=4),
            Said("the receipt's allowance does not equal its cost")),
    "more rows in the statement": (lambda c: c["privacy"]["privacy_unit"].update(max_rows=4),
            Said("the receipt is not for the stated protected unit")),
    "more rows in both": (in_both("max_rows", 4), Said("the receipt's allowance does not equal its cost")),
    "more rows, and the allowance that goes with it": (
        lambda c: (in_both("max_rows", 4)(c), c["receipt"].update(allowance=0.25)),
        Said("the draws of this receipt add up to more than the stated"),
    ),
    "another column in the statement": (lambda c: c["privacy"]["privacy_unit"].update(column="x"),
            Said("the receipt is not for the stated protected unit")),
    "no unit in the statement": (lambda c: c["privacy"].update(privacy_unit=None),
            Said("the receipt is not for the stated protected unit")),
    "no unit at all in the statement": (lambda c: c["privacy"].pop("privacy_unit"),
            Said("the receipt is not for the stated protected unit")),
    "a row in the receipt": (lambda c: c["receipt"].update(protected_unit="row"),
            Said("the receipt's allowance does not equal its cost")),
    "units under another relation": (
        lambda c: c["receipt"].update(neighbors="replace_one"), Said("the receipt is for units of several rows under another"),
    ),
    "a statement of units under another relation": (
        lambda c: c["privacy"].update(neighbors="replace_one"), Said("a privacy unit of several rows is stated under another"),
    ),
}  # fmt: skip


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("forgery", list(FORGED))
def test_a_forged_unit_is_refused(tmp_path: Path, forgery: str) -> None:
    path = tmp_path / "r.json"
    dpm.release(people(), SCHEMA, epsilon=1.0, mechanism="matrix-laplace", privacy_unit=UNIT, output=path)
    edit, said = FORGED[forgery]
    forge(path, edit)
    with refused("does not hold a consistent", failure=said):
        dpm.load(path)


def test_fewer_rows_than_paid_for_are_found_by_verify(tmp_path: Path) -> None:
    """They make a receipt that adds up, and noise that is not what the mechanism calibrates to."""
    path = tmp_path / "r.json"
    dpm.release(people(), SCHEMA, epsilon=1.0, mechanism="matrix-laplace", privacy_unit=UNIT, output=path)

    def fewer(content: dict[str, Any]) -> None:
        in_both("max_rows", 2)(content)
        content["receipt"]["allowance"] = 0.5

    forge(path, fewer)
    assert not all(check.passed for check in checks(dpm.load(path)))


# Refusals ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"neighbors": "replace_one"}, ": the number of kept rows depends on how many each"),
        ({"n_rows": 100}, "the number of rows cannot be public with a privacy unit, since the"),
        ({"privacy_unit": PrivacyUnit("age", 3)}, "is in the schema, so it would be a feature of the release"),
        ({"privacy_unit": PrivacyUnit("person", 3)}, "rename the column in the table or, if every file has"),
        ({"privacy_unit": "person_id"}, "must be"),
    ],
)
def test_what_cannot_be_is_refused_before_a_row_is_read(changes: dict[str, Any], code: str) -> None:
    with refused(code, (ValueError, TypeError)):
        dpm.release(people(), SCHEMA, **({"epsilon": 1.0, "privacy_unit": UNIT} | changes))


def test_arrays_and_groups_are_not_released_for_units() -> None:
    with refused("in addition to the schema's: pass a pandas, Polars or Arrow", TypeError):
        dpm.release(np.zeros((5, 2)), SCHEMA, epsilon=1.0, privacy_unit=UNIT)
    with refused("groups cannot be released for a privacy unit: a"):
        dpm.release_groups(people(), SCHEMA, by="smoker", epsilon=1.0, privacy_unit=UNIT)  # type: ignore[arg-type]


def test_releases_for_different_units_are_not_pooled() -> None:
    first, second = people(), people(seed=2)
    options = dict(epsilon=1.0, mechanism="matrix-laplace")
    rows = dpm.release(first, SCHEMA, **options)
    threes, fours = (dpm.release(second, SCHEMA, privacy_unit=PrivacyUnit("person_id", k), **options) for k in (3, 4))
    for other in (rows, fours):
        with refused("so that no one guarantee covers both: release all tables"):
            dpm.pool([threes, other])
    pooled = dpm.pool([threes, dpm.release(first, SCHEMA, privacy_unit=UNIT, **options)])
    assert pooled.privacy.privacy_unit == UNIT
    assert "person_id" in [rule.facts.get("unit") for rule in pooled.privacy.rules]
    assert all(check.passed for check in checks(pooled))


# Command line ----------------------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    pq.write_table(people(), "visits.parquet")
    columns = [{"name": "age", "kind": "numeric", "lower": 0, "upper": 100}, {"name": "smoker", "kind": "boolean"}]
    Path("visits.yaml").write_text(yaml.safe_dump({"columns": columns}))
    return tmp_path


def command(name: str, *extra: str) -> list[str]:
    files = ("visits.parquet", "--schema", "visits.yaml", "--output", "r.json")
    return [name, *files, "--rho", "0.5", "--neighbors", "add_remove", *extra]


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("name", ["release", "release-mean"])
def test_the_command_line_protects_units(capsys: pytest.CaptureFixture[str], name: str) -> None:
    assert main(command(name, "--privacy-unit", "person_id", "--max-rows-per-unit", "5", "--missing-unit", "drop")) == 0
    printed = " ".join(capsys.readouterr().out.split())
    assert "of which at most 5, chosen at random, are used" in printed
    assert dpm.load("r.json").privacy.privacy_unit == PrivacyUnit("person_id", 5, "drop")
    assert main(["verify", "r.json"]) == 0


@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize(
    ("extra", "words"),
    [
        (["--privacy-unit", "person_id"], "state the contribution bound"),
        (["--max-rows-per-unit", "5"], "it goes with --privacy-unit"),
        (["--missing-unit", "drop"], "it goes with --privacy-unit"),
        (["--privacy-unit", "person_id", "--max-rows-per-unit", "5", "--by", "smoker"], "rows in several groups"),
    ],
)
def test_the_command_line_refuses_what_cannot_be(
    capsys: pytest.CaptureFixture[str], extra: list[str], words: str
) -> None:
    assert main(command("release", *extra)) != 0
    assert words in " ".join(capsys.readouterr().err.replace("│", " ").split())
    assert not Path("r.json").exists()


def test_a_unit_of_k_rows_loses_k_times_epsilon_and_k_squared_times_rho() -> None:
    for unit in LossUnit:
        loss, times = Loss(unit, Fraction(1, 2)), 3 if unit is LossUnit.EPSILON else 9
        expected = None if unit is LossUnit.EPSILON_DELTA else Loss(unit, Fraction(times, 2))
        assert loss_for_units(loss, 3) == expected
        assert loss_for_units(loss, 1) == loss
