"""Weighted tables and their neighbors replayed, and a fault planted for each decision on weights."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from dpmoments.audit.replay import replay
from dpmoments.mechanisms.additive import Gaussian, Isotropic, Laplace, MatrixLaplace
from dpmoments.mechanisms.base import Mechanism, UnitsPlan
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.mechanisms.standardized import Standardized
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.histogram import LengthSummary
from dpmoments.rows.rows import Rows
from dpmoments.rows.units import UnitSelection, WeightCells
from dpmoments.schema.schema import Schema

ADD_REMOVE, REPLACE_ONE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
CAP = 80.0
PURE, RHO = PrivacyBudget.pure(1.0), PrivacyBudget.zcdp(0.5)
AGE, SMOKER = dpm.Numeric("age", 0, 100), dpm.Boolean("smoker")
REGION = dpm.Categorical("region", ["north", "south", "east"], other="zero")


def schema_of(design_effect: float | None, missing: Any = "error", *, numbers: bool = True) -> Schema:
    columns = [AGE, SMOKER, REGION] if numbers else [SMOKER, REGION]
    weight = dpm.SamplingWeight("weight", CAP, missing=missing, design_effect=design_effect)
    return dpm.Schema(*columns, weight).with_indicators


def people(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame(
        {
            "age": rng.uniform(0, 100, n),
            "smoker": rng.random(n) < 0.3,
            "region": rng.choice(["north", "south", "east"], n),
            "weight": rng.uniform(1, CAP, n),
        }
    )


EVERYBODY = people(60, 5)
ODD_ROWS = [
    [100.0, True, "south", weight] for weight in (CAP, 1.9 * CAP, CAP / 3, 0.0)
] + [[0.0, False, "east", CAP], [50.0, False, "north", 1e-9]]  # fmt: skip


def pairs(neighbors: Neighbors, *, droppable: bool) -> list[tuple[pd.DataFrame, pd.DataFrame]]:
    """Tables that differ by a row with its weight: added, or in place of another."""
    odd = ODD_ROWS + ([[100.0, True, "south", float("nan")], [3.0, True, "south", -2.0]] if droppable else [])
    tables = [pd.concat([EVERYBODY, pd.DataFrame([row], columns=EVERYBODY.columns)]) for row in odd]
    if neighbors is ADD_REMOVE:
        return [(EVERYBODY, table) for table in tables]
    return [(one, other) for index, one in enumerate(tables) for other in tables[index + 1 :]]


def findings(mechanism: Mechanism, budget: PrivacyBudget, neighbors: Neighbors, schema: Schema) -> list[str]:
    droppable = schema.sampling_weight is not None and schema.sampling_weight.missing == "drop"
    shape, result = MomentShape.of(schema, mean=True), []
    for index, pair in enumerate(pairs(neighbors, droppable=droppable)):
        plan = mechanism.plan(shape, budget, neighbors)
        first, second = (Rows.of(table, schema, neighbors=neighbors, threads=1) for table in pair)
        result += replay(plan, first, second, insecure_generator(index))
    return result


@pytest.mark.long
@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize(
    ("mechanism", "budget"),
    [
        (Standardized(), PURE),
        (Standardized(), RHO),
        (MatrixLaplace(), PURE),
        (Isotropic(), PURE),
        (Laplace(), PURE),
        (Gaussian(), RHO),
    ],
    ids=lambda given: getattr(given, "name", str(given)),
)
@pytest.mark.parametrize(("design_effect", "missing"), [(None, "error"), (1.5, "drop")])
def test_a_row_with_its_weight_changes_no_more_than_is_paid_for(
    mechanism: Mechanism, budget: PrivacyBudget, neighbors: Neighbors, design_effect: float | None, missing: str
) -> None:
    assert findings(mechanism, budget, neighbors, schema_of(design_effect, missing)) == []


@pytest.mark.long
@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_a_table_without_numbers_changes_no_more(neighbors: Neighbors) -> None:
    assert findings(Standardized(), RHO, neighbors, schema_of(None, numbers=False)) == []


@pytest.mark.long
def test_tables_that_share_nothing_differ_in_their_answers_only() -> None:
    schema = schema_of(None)
    for neighbors, budget in product(Neighbors, (PURE, RHO)):
        other = people(60 if neighbors is REPLACE_ONE else 31, 6)
        plan = Standardized().plan(MomentShape.of(schema, mean=True), budget, neighbors)
        rows = [Rows.of(table, schema, neighbors=neighbors, threads=1) for table in (EVERYBODY, other)]
        assert replay(plan, *rows, insecure_generator(1), any_table=True) == ()


UNIT = dpm.PrivacyUnit("household")


def unit_findings(mechanism: Mechanism, budget: PrivacyBudget, schema: Schema) -> list[str]:
    """Replay tables that differ by a unit of one to thirty rows."""
    household = EVERYBODY.assign(household=np.arange(60) // 2)
    far = [100.0, True, "south"]
    units = [[[*far, CAP]], 30 * [[*far, CAP]], 30 * [[*far, CAP / 35]], [[*far, CAP / 2], [0.0, False, "east", CAP]]]
    units.append([[*row, weight] for row in (far, [0.0, False, "east"]) for weight in np.linspace(1.0, CAP, 9)])
    result = []
    for index, unit in enumerate(units):
        added = pd.DataFrame(unit, columns=EVERYBODY.columns).assign(household=99)
        tables = household, pd.concat([added[:1], household, added[1:]])
        plan = UnitsPlan.of(mechanism.plan(MomentShape.of(schema, mean=True), budget, ADD_REMOVE), budget, UNIT)
        first, second = (Rows.of(table, schema, threads=1, privacy_unit=UNIT) for table in tables)
        result += replay(plan, first, second, insecure_generator(index))
    return result


@pytest.mark.long
@pytest.mark.parametrize("design_effect", [None, 1.5])
@pytest.mark.parametrize(
    ("mechanism", "budget"),
    [(Standardized(), PURE), (Standardized(), RHO), (MatrixLaplace(), PURE), (Laplace(), PURE), (Gaussian(), RHO)],
    ids=lambda given: getattr(given, "name", str(given)),
)
def test_a_unit_of_any_number_of_rows_changes_no_more_than_a_row(
    mechanism: Mechanism, budget: PrivacyBudget, design_effect: float | None
) -> None:
    assert unit_findings(mechanism, budget, schema_of(design_effect)) == []


class TestFaultsOfUnits:
    @pytest.mark.long
    def test_weights_that_are_not_reduced(self, monkeypatch: pytest.MonkeyPatch) -> None:
        within = WeightCells.within_units

        def of_rows(self: WeightCells, rows: Any, _: Any) -> Any:
            return within(self, rows, self.whole(rows[:, self.feature]))

        monkeypatch.setattr(WeightCells, "within_units", of_rows)
        assert unit_findings(Gaussian(), RHO, schema_of(None))

    @pytest.mark.long
    def test_a_histogram_of_all_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(UnitSelection, "kept", lambda _, block: block.rows)
        assert unit_findings(Standardized(), RHO, schema_of(None))

    @pytest.mark.long
    def test_a_histogram_of_weights(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(LengthSummary, "is_weighted", True)
        assert unit_findings(Standardized(), RHO, schema_of(None))


class TestFaults:
    @pytest.mark.long
    def test_a_weight_above_the_cap_that_counts_in_full(self, monkeypatch: pytest.MonkeyPatch) -> None:
        # an encoded weight cannot be beyond the cap, so that its bounds go, too
        for module in ("units", "encode"):
            monkeypatch.setattr(f"dpmoments.rows.{module}.np", _Unclipped())
        assert findings(Gaussian(), RHO, ADD_REMOVE, schema_of(1.5))

    @pytest.mark.long
    def test_a_histogram_of_weights(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(LengthSummary, "is_weighted", True)
        assert findings(Standardized(), RHO, ADD_REMOVE, schema_of(None))

    @pytest.mark.long
    def test_a_sum_of_weights_that_counts_as_public(self, monkeypatch: pytest.MonkeyPatch) -> None:
        def like_a_number_of_rows(self: MomentShape, neighbors: Neighbors) -> bool:
            return neighbors.count_is_public(self.drops_rows)

        monkeypatch.setattr(MomentShape, "count_is_public", like_a_number_of_rows)
        for mechanism in (Standardized(), Gaussian()):
            assert findings(mechanism, RHO, REPLACE_ONE, schema_of(None))

    def test_a_lattice_of_sums_as_coarse_as_that_of_rows(self, monkeypatch: pytest.MonkeyPatch) -> None:
        of = MomentShape.of

        def without_bits(*given: Any, **options: Any) -> MomentShape:
            shape = of(*given, **options)
            object.__setattr__(shape, "weight_bits", 0)
            return shape

        monkeypatch.setattr(MomentShape, "of", without_bits)
        assert findings(Gaussian(), RHO, ADD_REMOVE, schema_of(None))


class _Unclipped:
    """NumPy whose clip changes nothing."""

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def clip(self, values: Any, *_: Any, out: Any = None) -> Any:
        if out is not None:
            out[:] = values
        return values
