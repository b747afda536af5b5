"""Weights of columns: priorities that divide the unit ball, and change no sensitivity."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.privacy.sensitivity import gram_frobenius, gram_nuclear
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from dpmoments.schema import schema as schema_module
from dpmoments.schema.typical import column_weights
from support.said import codes, refused

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


def test_rows_are_encoded_whole() -> None:
    """No row of the bounds is shortened: exact sums give the table's mean."""
    table = {"income": [10.0, 0.0], "flag": [True, False], "region": ["a", "c"], "age": [100.0, 100.0]}
    moments = Rows.of(_frame(table), SCHEMA, mean=True, threads=1).moments(bits=20)
    mean = SCHEMA.encoding().decode_mean(np.asarray(moments.sum, dtype=float) * moments.scale / moments.count)
    np.testing.assert_allclose(mean, [5.0, 0.5, 0.5, 0.0, 0.5, 100.0], rtol=1e-4, atol=1e-4)


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


def test_noise_falls_as_the_fourth_root() -> None:
    """Noise on a sum is the same in every encoded unit, so that it is proportional to what such a unit is worth."""
    flags = [dpm.Boolean(f"b{j}") for j in range(12)]
    equal, weighted = dpm.Schema(*flags), dpm.Schema(dpm.Boolean("b0", weight=16), *flags[1:])
    ratio = weighted.encoding().scale / equal.encoding().scale
    t = (11 + 4) / 12
    np.testing.assert_allclose(ratio, np.sqrt(t) * np.array([16**-0.25, *[1.0] * 11]), rtol=1e-12)


def test_a_weight_is_in_files_and_in_the_privacy_statement(tmp_path: Path) -> None:
    path = tmp_path / "schema.yaml"
    path.write_text(
        "format: dpmoments-schema\nversion: 1\ncolumns:\n- {name: income, kind: numeric, lower: 0, upper: 10, weight: 16}\n"
        "- {name: region, kind: categorical, levels: [a, b], weight: 4}\n"
        "- {name: flag, kind: boolean, weight: 0.5}\n"
        "- {name: day, kind: date, lower: '2020-01-01', upper: '2021-01-01', weight: 2}\n",
        encoding="utf-8",
    )
    schema = dpm.Schema.load(path)
    assert [column.weight for column in schema.table_columns if not isinstance(column, dpm.schema.columns.Coordinate)] == [
        16.0, 4.0, 0.5, 2.0,
    ]  # fmt: skip
    assert dpm.Schema.from_dict(schema.to_dict()) == schema
    assert eval(repr(HEAVY), {"Numeric": dpm.Numeric}) == HEAVY
    assert eval(repr(REGION), {"Categorical": dpm.Categorical}) == REGION
    assert dpm.Numeric("income", 0, 10) != HEAVY
    assert "weight" not in AGE.to_dict()
    [said] = [rule for rule in schema.rules if rule.code == "noise-by-weight"]
    assert said.facts == {"names": ("income", "region", "flag", "day"), "weights": (16.0, 4.0, 0.5, 2.0)}
    assert "noise-by-weight" not in codes(dpm.Schema(AGE, FLAG).rules)


@pytest.mark.parametrize("weight", [0, -1, 1e9, float("nan"), float("inf"), True, "4"])
def test_what_is_no_weight_is_refused(weight: object) -> None:
    with pytest.raises((ValueError, TypeError), match="weight"):
        dpm.Boolean("b", weight=weight)  # type: ignore[arg-type]


def test_a_weight_needs_bounds_on_rows() -> None:
    with refused("row-norm-and-weight", column="a"):
        dpm.Schema(dpm.Numeric("a", scale=(1, 10), weight=4), row_norm=None)
    with refused("row-norm-and-weight"):
        dpm.Schema(HEAVY, AGE, row_norm=0.5)
