"""Weights of columns: priorities that divide the unit ball, and change no sensitivity."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.base.errors import InputTypeError, InputValueError
from dpmoments.mechanisms.additive import MatrixLaplace
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.sensitivity import gram_frobenius, gram_nuclear
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from dpmoments.schema import schema as schema_module
from dpmoments.schema.encoding import column_weights
from support.said import refused

AGE, FLAG = dpm.Numeric("age", 0, 100), dpm.Boolean("flag")
HEAVY = dpm.Numeric("income", 0, 10, weight=16)
REGION = dpm.Categorical("region", ["a", "b", "c"], missing="zero", weight=4)
SCHEMA = dpm.Schema(HEAVY, FLAG, REGION, AGE)
W = 0.5


def corners(schema: dpm.Schema) -> np.ndarray:
    """Every row of bounds, midpoints and levels (or none), encoded by the affine map."""
    values = list(itertools.product([0.0, 5.0, 10.0], [0.0, 1.0], [*np.eye(3), np.zeros(3)], [0.0, 100.0]))
    cells = np.array([[income, flag, *level, age] for income, flag, level, age in values])
    encoding = schema.encoding()
    return np.column_stack([np.full(len(cells), W), (cells - encoding.offset) / encoding.scale])


def largest_changes(schema: dpm.Schema) -> dict[tuple[str, str], float]:
    """The largest change of Σzzᵀ over all pairs of neighboring rows, in both norms."""
    rows = corners(schema)
    change: dict[tuple[str, str], float] = {}
    for one in rows:
        for norm in ("fro", "nuc"):
            alone = float(np.linalg.norm(np.outer(one, one), norm))
            change["add_remove", norm] = max(change.get(("add_remove", norm), 0.0), alone)
        differences = np.einsum("i,j->ij", one, one) - np.einsum("ni,nj->nij", rows, rows)
        eigenvalues = np.abs(np.linalg.eigvalsh(differences))
        pairs = {"fro": np.sqrt((eigenvalues**2).sum(axis=1)).max(), "nuc": eigenvalues.sum(axis=1).max()}
        for norm, value in pairs.items():
            change["replace_one", norm] = max(change.get(("replace_one", norm), 0.0), float(value))
    return change


def broken_bounds(schema: dpm.Schema) -> set[tuple[str, str]]:
    """Relations and norms in which some pair of rows changes more than the sensitivity."""
    d = schema.n_features
    return {
        (relation, norm)
        for (relation, norm), change in largest_changes(schema).items()
        if change > (1 + 1e-9) * (gram_frobenius if norm == "fro" else gram_nuclear)(Neighbors.of(relation), d, W).value
    }


def test_no_pair_of_neighboring_rows_changes_more_than_the_sensitivity(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: a weight is doubled in the encoding and not in the sensitivity."""
    assert broken_bounds(SCHEMA) == set()
    reached = largest_changes(SCHEMA)["add_remove", "fro"]
    assert reached == pytest.approx(gram_frobenius(Neighbors.ADD_REMOVE, 6, W).value, rel=1e-3)

    def doubled(columns: tuple[object, ...], *, mean: bool) -> np.ndarray | None:
        weights = column_weights(columns, mean=mean)  # type: ignore[arg-type]
        return None if weights is None else weights * np.array([2.0, 1.0, 1.0, 1.0])

    monkeypatch.setattr(schema_module, "column_weights", doubled)
    faulty = dpm.Schema(HEAVY, FLAG, REGION, AGE)
    assert broken_bounds(faulty) == {(one, norm) for one in ("add_remove", "replace_one") for norm in ("fro", "nuc")}
    # The kernel keeps the promise all the same: it shortens such rows, in integers.
    table = {"income": [10.0], "flag": [True], "region": ["a"], "age": [100.0]}
    moments = Rows.of(_frame(table), faulty, mean=True, threads=1).moments(bits=20)
    assert int(np.trace(moments.gram.astype(object))) <= 4**20


def _frame(table: dict[str, list[object]]) -> object:
    import pandas as pd

    return pd.DataFrame(table)


def test_squared_weights_sum_to_the_number_of_columns() -> None:
    for columns in ((HEAVY, FLAG, AGE), (HEAVY, dpm.Numeric("x", 0, 8, typical=(3, 4), weight=0.25), FLAG)):
        weights = column_weights(columns, mean=True)
        assert weights is not None
        assert float(weights @ weights) == pytest.approx(len(columns), rel=1e-12)
    without = column_weights((AGE, dpm.Numeric("x", 0, 8, typical=(3, 4))), mean=True)
    with_weight = column_weights(
        (dpm.Numeric("age", 0, 100, weight=16), dpm.Numeric("x", 0, 8, typical=(3, 4))), mean=True
    )
    assert without is not None
    assert with_weight is not None
    ratio = (with_weight / without) ** 2
    assert ratio[0] / ratio[1] == pytest.approx(4.0)
    assert column_weights((AGE, FLAG), mean=True) is None
    assert column_weights((dpm.Numeric("age", 0, 100, weight=1), FLAG), mean=True) is None


@pytest.mark.parametrize("weight", [0, -1, 1e9, float("nan"), float("inf"), True, "4"])
def test_what_is_no_weight_is_refused(weight: Any) -> None:
    with refused(("1 is the default", "weight must be a number"), (TypeError, ValueError), column="b"):
        dpm.Boolean("b", weight=weight)
    with pytest.raises((InputValueError, InputTypeError), match="mean_weight"):
        dpm.Schema(AGE, mean_weight=weight)


def test_a_weight_needs_bounds_on_rows() -> None:
    with refused("weights divide the norm bound that follows from bounds on", column="a"):
        dpm.Schema(dpm.Numeric("a", scale=(1, 10), weight=4), row_norm=None)
    with refused("weights divide the norm bound that follows from bounds on"):
        dpm.Schema(HEAVY, AGE, row_norm=0.5)


# The weight of means against covariances: one public number, in the choice of the appended constant alone.

SURVEY = (dpm.Categorical("party", ["a", "b", "c"]), dpm.Boolean("flag"), dpm.Numeric("age", 0, 100))


def errors_of(schema: dpm.Schema, mechanism: str, epsilon: float = 1.0, delta: float = 0.0) -> tuple[float, float]:
    """Noise of a plan on the Gram matrix and on the sum of rows."""
    budget = PrivacyBudget.of(epsilon=epsilon, delta=delta)
    plan = make_mechanism(mechanism).plan(MomentShape.of(schema, mean=True), budget, "add_remove")
    assert plan.expected_error is not None
    assert plan.model is not None
    assert plan.model.fixed_law is not None
    return plan.expected_error, float(np.sqrt(plan.model.fixed_law.sum_variances.sum()))


@pytest.mark.parametrize(("mechanism", "delta"), [("matrix-laplace", 0.0), ("gaussian", 1e-9), ("laplace", 0.0)])
@pytest.mark.parametrize("columns", [SURVEY, SURVEY[1:]], ids=["levels", "no levels"])
def test_a_weight_of_means_moves_noise_from_means_to_covariances(
    columns: tuple[dpm.Column, ...], mechanism: str, delta: float
) -> None:
    plain, heavy, light = (
        errors_of(dpm.Schema(*columns, mean_weight=weight), mechanism, delta=delta) for weight in (1, 64, 1 / 64)
    )
    assert heavy[1] < plain[1] < light[1]
    assert light[0] < plain[0] < heavy[0]
    assert errors_of(dpm.Schema(*columns), mechanism, delta=delta) == plain


def test_a_weight_of_means_changes_the_constant_and_its_sensitivity() -> None:
    """The sensitivity is that of the constant in use."""
    schema = dpm.Schema(*SURVEY, mean_weight=64)
    shape, budget = MomentShape.of(schema, mean=True), PrivacyBudget.pure(1.0)
    heavy = MatrixLaplace().plan(shape, budget, "replace_one")
    plain = MatrixLaplace().plan(MomentShape.of(dpm.Schema(*SURVEY), mean=True), budget, "replace_one")
    assert heavy.augmentation > plain.augmentation
    assert shape.levels is not None
    assert heavy.sensitivity.value == pytest.approx(2.0 * (heavy.augmentation**2 + shape.levels.row_square))


def test_a_weight_of_means_needs_means_and_bounds() -> None:
    with refused("divides noise between means and covariances of rows with", weight=2.0):
        dpm.Schema(dpm.Numeric("a", scale=(1, 10)), mean_weight=2)
    with refused("and no mean is released: leave the weight out", weight=2.0):
        MomentShape.of(dpm.Schema(AGE, mean_weight=2), mean=False)
