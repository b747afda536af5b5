"""Coordinates about the public center of levels: exact, never longer than stated, and with the stated noise."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.audit.replay import replay
from dpmoments.audit.verification import Check, checks
from dpmoments.mechanisms import Gaussian, Isotropic, Laplace, MatrixLaplace
from dpmoments.mechanisms.shape import _COUNT_WEIGHT, _MEAN_SHARE, MEAN_WEIGHT, LevelCoordinates, MomentShape
from dpmoments.moments.models import CenteredLevelsModel
from dpmoments.papers.mechanisms.eigenvectors import EntrywiseGaussian
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.laws import attains
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.privacy.sensitivity import gram_frobenius, gram_nuclear
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from support.forged_files import forge, with_true_losses
from support.said import refused

pytestmark = pytest.mark.long(sets=None)

W = 0.25
SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100),
    dpm.Categorical("region", ["north", "south", "east"]),
    dpm.Boolean("smoker"),
    dpm.Categorical("job", ["a", "b", "c", "d"], missing="zero", other="zero"),
    dpm.Categorical("alone", ["only"], missing="zero"),
    dpm.Categorical("sex", ["f", "m"]),
    dpm.Product("smoker", "region"),
)
WEIGHTED = dpm.Schema(
    dpm.Numeric("age", 0, 100, weight=3.0), dpm.Categorical("region", ["north", "south", "east"], weight=2.0),
    dpm.Boolean("smoker"), dpm.Categorical("sex", ["f", "m"]),
)  # fmt: skip
SCHEMAS = {"mixed": SCHEMA, "weighted": WEIGHTED}
PURE, RHO = PrivacyBudget.pure(1.0), PrivacyBudget.zcdp(0.1)
MECHANISMS = {
    "gaussian": (Gaussian(), RHO),
    "matrix-laplace": (MatrixLaplace(), PURE),
    "isotropic": (Isotropic(), PURE),
}


def coordinates(schema: dpm.Schema) -> LevelCoordinates:
    found = LevelCoordinates.of(schema)
    assert found is not None
    return found


@cache
def every_row(name: str) -> pa.Table:
    """All rows whose numbers are at or between their bounds."""
    values = {
        "age": [0.0, 33.3, 100.0], "region": ["north", "south", "east"], "smoker": [True, False],
        "job": ["a", "b", "c", "d", None], "alone": ["only", None], "sex": ["f", "m"],
    }  # fmt: skip
    names = [column.name for column in SCHEMAS[name].table_columns]
    rows = list(itertools.product(*(values[column] for column in names)))
    return pa.table({column: [row[index] for row in rows] for index, column in enumerate(names)})


@cache
def lattice_rows(name: str) -> np.ndarray:
    """(w, coordinates) of every seventh of these rows by itself, in unit-ball units: each value of each column occurs."""
    table, levels, found = every_row(name), coordinates(SCHEMAS[name]), []
    for index in range(0, table.num_rows, 7):
        moments = Rows.of(table.slice(index, 1), SCHEMAS[name], threads=1).moments(bits=20)
        square = levels.augmented_gram(moments, W)
        first = [int(value) for value in square[0]]
        assert all(type(value) is int for value in square.ravel())
        assert [[a * b for a in first] for b in first] == (square * square[0, 0]).tolist()  # of one row, exactly
        found.append(np.array(first) / (W * 2**20) / 2**20)
    return np.array(found)


@pytest.mark.long
@pytest.mark.parametrize("name", SCHEMAS)
def test_no_pair_of_neighboring_rows_changes_more_than_the_sensitivity(name: str) -> None:
    rows, levels = lattice_rows(name), coordinates(SCHEMAS[name])
    squares = (rows**2).sum(axis=1)
    assert squares.max() == pytest.approx(W**2 + levels.row_square, rel=1e-12)  # attained
    d = SCHEMAS[name].n_features
    largest = {"fro": 0.0, "nuc": 0.0}
    for one in rows[:: max(1, len(rows) // 40)]:
        moved = np.linalg.eigvalsh(np.outer(one, one) - np.einsum("ni,nj->nij", rows, rows))
        largest["fro"] = max(largest["fro"], float(np.sqrt((moved**2).sum(axis=1)).max()))
        largest["nuc"] = max(largest["nuc"], float(np.abs(moved).sum(axis=1).max()))
    for norm, stated in (("fro", gram_frobenius), ("nuc", gram_nuclear)):
        alone = stated(Neighbors.ADD_REMOVE, d, W, levels.row_square).value
        assert squares.max() <= alone * (1 + 1e-12)
        assert largest[norm] <= stated(Neighbors.REPLACE_ONE, d, W, levels.row_square).value * (1 + 1e-12)
    # planted fault: a bound that is 1 % too small
    assert squares.max() > gram_frobenius(Neighbors.ADD_REMOVE, d, W, levels.row_square * 0.99).value


@pytest.mark.parametrize("name", SCHEMAS)
@pytest.mark.parametrize("bits", [16, 20])
def test_the_map_back_is_exact(name: str, bits: int) -> None:
    rows = Rows.of(every_row(name), SCHEMAS[name], threads=1)
    moments, levels = rows.moments(bits=bits), coordinates(SCHEMAS[name])
    exact = levels.augmented_gram(moments, W).astype(float) / 4.0**bits
    count, total, gram = levels.about_zero(exact, W, None)
    assert count == pytest.approx(moments.count, rel=1e-12)
    np.testing.assert_allclose(total, moments.sum * moments.scale, rtol=1e-10, atol=1e-9)
    np.testing.assert_allclose(gram, moments.gram * moments.scale**2, rtol=1e-10, atol=1e-9)


def test_long_blocks_keep_their_dimensions_and_lose_the_noise_along_ones() -> None:
    schema = dpm.Schema(dpm.Categorical("a", range(400)), *(dpm.Categorical(f"b{i}", ["x", "y"]) for i in range(11)))
    levels = coordinates(schema)
    assert levels.n_coordinates == 400 + 11
    assert levels.row_square == pytest.approx((399 / 400 + 5.5) / 12, rel=1e-3)
    np.testing.assert_allclose(levels.directions[:400].sum(axis=0), 0.0, atol=1e-12)
    table = pa.table({"a": [3, 3, 7], **{f"b{i}": ["x", "y", "x"] for i in range(11)}})
    moments = Rows.of(table, schema, threads=1).moments(bits=20)
    count, total, gram = levels.about_zero(levels.augmented_gram(moments, W).astype(float) / 4.0**20, W, None)
    assert count == pytest.approx(3.0)
    np.testing.assert_allclose(total, moments.sum * moments.scale, atol=1e-4)
    np.testing.assert_allclose(gram, moments.gram * moments.scale**2, atol=1e-4)


@pytest.mark.parametrize("k", [200, 258, 500, 512, 513, 1000])
def test_no_level_of_a_long_block_is_longer_than_stated(k: int) -> None:
    schema = dpm.Schema(dpm.Categorical("c", range(k)))
    levels = coordinates(schema)
    assert levels.n_coordinates == (k - 1 if k <= 512 else k)
    step = levels.steps[0]
    rows = np.vstack([np.ones((1, k), dtype=int), step * np.eye(k, dtype=int)]).astype(object)  # each level once
    squares = (levels._mapped(rows, 1, 0)[1:] ** 2).sum(axis=0)
    assert levels.row_square == max(squares) / 2**32 < 1.0
    if levels.n_coordinates < k:
        assert max(squares) * k <= step**2 * (k - 1)
        # planted fault: steps to nearest
        nearest = [round(step / math.sqrt(j * (j + 1))) for j in range(1, k)]
        of_last = [sum(size**2 for size in nearest[j:]) + (j * nearest[j - 1]) ** 2 for j in range(1, k)]
        assert max(of_last) * k > step**2 * (k - 1)
        largest = (levels.directions**2).sum(axis=0).max()
        assert 1.0 <= largest * 1.0000001 < 1.02  # noise 1 % larger at most, squared


def test_a_level_between_0_and_its_step_is_a_defect() -> None:
    levels = coordinates(WEIGHTED)
    column = np.array([[1], *([step] for step in levels.steps)], dtype=object)
    levels._mapped(column, 1, 1)
    column[2] -= 1
    with pytest.raises(AssertionError, match="neither 0 nor its step"):
        levels._mapped(column, 1, 1)


def about_zero(content: dict[str, Any]) -> None:
    """Shorter rows stated for noise on rows about 0, at the price of less noise."""
    (draw,) = content["receipt"]["draws"]
    square = coordinates(WEIGHTED).row_square
    draw["sensitivity"]["arguments"]["row_square"] = square
    for key in ("scale", "off_diagonal_scale"):
        draw["law"][key] *= square
    with_true_losses(content)


def about_zero_by_its_model(content: dict[str, Any]) -> None:
    noise = content["noise"]
    noise["name"] = noise["name"].removeprefix(CenteredLevelsModel.name_before_family)
    for key in CenteredLevelsModel.arrays:
        del noise[key]


def of_another_query(content: dict[str, Any]) -> None:
    content["receipt"]["draws"][0]["what"] = {"code": "gram"}


@pytest.mark.parametrize(
    ("edit", "mean"), [(about_zero, False), (about_zero_by_its_model, True), (of_another_query, True)]
)
def test_a_receipt_of_rows_about_the_center_is_for_them_alone(
    edit: Callable[[dict[str, Any]], None], mean: bool, tmp_path: Path
) -> None:
    path = tmp_path / "release.json"
    dpm.release(every_row("weighted"), WEIGHTED, mechanism="gaussian", rho=5.0, mean=mean).save(path)
    assert receipt_check(path).passed
    forge(path, edit)
    found = receipt_check(path)
    assert found.passed is False
    assert "rows that are shorter than the schema's" in found.detail


def receipt_check(path: Path) -> Check:
    """What is found of the receipt in a file."""
    return next(check for check in checks(dpm.load(path)) if check.what.startswith("receipt"))


def test_schemas_without_exact_levels_have_no_coordinates(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = dpm.Numeric("x", 0, 1), dpm.Numeric("y", 0, 1)
    region = dpm.Categorical("region", ["a", "b"])
    assert LevelCoordinates.of(dpm.Schema(*numbers)) is None
    assert LevelCoordinates.of(dpm.Schema(*numbers, region, row_norm=1.2)) is None  # rows are scaled down
    assert LevelCoordinates.of(dpm.Schema(dpm.Categorical("one", ["a"]))) is None
    assert MomentShape.of(dpm.Schema(*numbers, region), mean=False).levels is None
    assert LevelCoordinates.of(dpm.Schema(region)) is not None
    monkeypatch.setattr(LevelCoordinates, "row_square", 1.0)  # rows as long as about zero
    assert LevelCoordinates.of(dpm.Schema(region)) is None


def test_a_plan_of_other_levels_is_refused() -> None:
    plan = MatrixLaplace().plan(MomentShape.of(WEIGHTED, mean=True), PURE, "add_remove")
    other = dpm.Schema.unit_ball(WEIGHTED.n_features)
    with refused("the plan is for a schema with other levels, on which its"):
        plan.check_rows(Rows.of(np.zeros((2, WEIGHTED.n_features)), other))


@pytest.mark.parametrize("mechanism", MECHANISMS)
@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
def test_nothing_but_noisy_answers_leaves_a_run(mechanism: str, neighbors: str) -> None:
    chosen, budget = MECHANISMS[mechanism]
    table = every_row("mixed")
    for schema, dropped in ((SCHEMA, None), (replace_rule(SCHEMA), "elsewhere")):
        first = table.slice(0, 40)
        other = (
            first.slice(0, 39)
            if neighbors == "add_remove"
            else pa.concat_tables([first.slice(0, 39), table.slice(700, 1)])
        )
        if dropped:
            cells = ["elsewhere", *first["region"].to_pylist()[1:]]
            other = first.set_column(1, "region", pa.array(cells))
        plan = chosen.plan(
            MomentShape.of(schema, mean=True, n_rows=40 if neighbors == "replace_one" else None), budget, neighbors
        )
        assert plan.levels is not None
        one, another = (Rows.of(rows, schema, neighbors=neighbors, threads=1) for rows in (first, other))
        assert replay(plan, one, another, insecure_generator(1)) == ()
        # planted fault: the sensitivity of rows half as long
        faulty = replace(plan, levels=_Shorter(**vars_of(plan.levels)))
        assert replay(faulty, one, another, insecure_generator(1)) != ()


class _Shorter(LevelCoordinates):
    row_square = 0.05


def vars_of(levels: LevelCoordinates) -> dict[str, Any]:
    return {name: getattr(levels, name) for name in LevelCoordinates.__dataclass_fields__}


def replace_rule(schema: dpm.Schema) -> dpm.Schema:
    """The same with a rule that drops rows."""
    region = dpm.Categorical("region", ["north", "south", "east"], other="drop")
    return dpm.Schema(*(region if column.name == "region" else column for column in schema.columns))


@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_law_is_that_of_the_noise(mechanism: str) -> None:
    """Each noisy cell by itself through the map that a run uses: about zero, and about the center."""
    chosen, budget = MECHANISMS[mechanism]
    plan = chosen.plan(MomentShape.of(WEIGHTED, mean=True), budget, "add_remove")
    levels, size = plan.levels, plan.dimension
    diagonal, off_diagonal = plan.cell_variances
    back = np.eye(WEIGHTED.n_features + 1)
    back[1:, 0] = -levels.center
    exact, about = np.zeros((2, *back.shape))
    for i, j in itertools.combinations_with_replacement(range(size), 2):
        cell = np.zeros((size, size))
        cell[i, j] = cell[j, i] = math.sqrt(diagonal if i == j else off_diagonal)
        count, total, gram = levels.about_zero(cell, plan.augmentation, None)
        whole = np.block([[np.array([[count]]), total[None]], [total[:, None], gram]])
        exact += whole**2
        about += (back @ whole @ back.T) ** 2
    law, m = plan.model.fixed_law, levels.n_coordinates
    for found, stated in ((exact, law), (about, law.about(-levels.center))):
        np.testing.assert_allclose(found, stated.cell_variances(), rtol=2e-3, atol=1e-9)
    assert plan.expected_error == pytest.approx(np.sqrt(exact[1:, 1:].sum()), rel=1e-3)
    assert law.about(-levels.center).energy == pytest.approx(off_diagonal * m * (m + 1), rel=1e-3)


def test_other_mechanisms_and_tables_of_numbers_are_as_they_were() -> None:
    shape = MomentShape.of(SCHEMA, mean=True)
    for mechanism, budget in ((Laplace(), PURE), (EntrywiseGaussian(), RHO)):
        assert mechanism.plan(shape, budget, "add_remove").levels is None
    tiny = Gaussian().plan(shape, PrivacyBudget.zcdp(1e-12), "add_remove")
    assert tiny.bits < 16
    assert tiny.levels is None
    numbers = MomentShape.of(dpm.Schema(dpm.Numeric("x", 0, 1), dpm.Boolean("b")), mean=True)
    assert numbers.levels is None


@pytest.mark.parametrize(("k", "numbers"), [(3, 0), (8, 0), (5, 1), (5, 3)])
def test_the_constant_beside_levels_has_the_least_error(k: int, numbers: int) -> None:
    """Of second moments, means and the number of rows; the block tells of its own shares."""
    one = 1.0 / (1 + numbers)  # of each column, about zero
    of_block, m = one * (1.0 - 1.0 / k), k - 1 + numbers
    square = of_block + numbers * one

    def error(w: float) -> float:
        far = 2.0 * _MEAN_SHARE
        shares = (k - 1) * (one + far * (square - of_block)) / (w**2 + one * (0.5 - 1.0 / k))
        means, count = numbers * far * (square - one) / w**2, (far * square) ** 2 / (2.0 * w**4)
        return (w**2 + square) ** 2 * (m * (m + 1) + MEAN_WEIGHT * (shares + means) + _COUNT_WEIGHT * count)

    schema = dpm.Schema(dpm.Categorical("a", range(k)), *(dpm.Numeric(f"x{j}", 0, 1) for j in range(numbers)))
    plan = Gaussian().plan(MomentShape.of(schema, mean=True), RHO, "add_remove")
    assert plan.augmentation == min(np.arange(1, 65) / 64.0, key=error)


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_the_number_of_rows_of_one_column_is_not_thrown_away(
    mechanism: str, neighbors: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    configured, budget = MECHANISMS[mechanism]

    def ratio(k: int) -> float:
        """The noise of the count over that about zero."""
        shape = MomentShape.of(dpm.Schema(dpm.Categorical("a", [f"l{i}" for i in range(k)])), mean=True)
        about, plain = (configured.plan(each, budget, neighbors) for each in (shape, replace(shape, schema=None)))
        assert about.expected_count_error
        assert plain.expected_count_error
        return about.expected_count_error / plain.expected_count_error

    assert all(ratio(k) < 3.0 for k in (2, 3, 8, 20, 60))
    # planted fault: the number of rows as if blocks told it
    monkeypatch.setattr("dpmoments.mechanisms.shape._COUNT_WEIGHT", 0.0)
    assert ratio(8) > 100.0


@pytest.mark.parametrize("mechanism", ["gaussian", "isotropic", "matrix-laplace"])
def test_a_file_with_the_bound_of_before_is_read_and_not_called_attained(
    mechanism: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    schema = dpm.Schema(dpm.Categorical("sex", ["f", "m"]), mean_weight=20.0)
    table = pa.table({"sex": ["f", "m", "m"] * 300})
    budget: dict[str, Any] = {"rho": 0.5} if mechanism == "gaussian" else {"epsilon": 1.0}

    def read(name: str) -> dpm.MomentRelease:
        release = dpm.release(
            table, schema, mechanism=mechanism, neighbors="replace_one", insecure_seed=1, repair="none", **budget
        )
        release.save(tmp_path / name)
        found = dpm.load(tmp_path / name, dpm.MomentRelease)
        assert found.receipt == release.receipt
        assert not attains(found.receipt.draws[0].sensitivity)
        assert mechanism != "gaussian" or not found.privacy_profile.points[0].exact
        return found

    after = read("after.json")
    assert after.details["augmentation"] ** 2 > 0.5
    passed = {check.what: check.passed for check in checks(after)}
    assert False not in passed.values()
    assert passed["noise as the stated budget calls for"]
    for kind, of_before in ((Gaussian, gram_frobenius), (Isotropic, gram_frobenius), (MatrixLaplace, gram_nuclear)):
        monkeypatch.setattr(kind, "sensitivity", staticmethod(of_before))
    before = read("before.json")
    assert before.receipt.draws[0].sensitivity.name.startswith("gram_")
    monkeypatch.undo()
    assert {check.what: check.passed for check in checks(before)} == {
        **passed,
        "noise as the stated budget calls for": None,
    }
