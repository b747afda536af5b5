"""Typical ranges: what they may be, how they divide the unit ball, and that all moments come back in the table's units."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.cli.entry import main
from dpmoments.rows.encode import encode_columns
from dpmoments.schema import encoding as typical_ranges
from dpmoments.schema.encoding import DOUBT, TRUST, column_weights
from support.said import Said, codes, refused

SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 120, typical=(20, 75)),
    dpm.Numeric("income", -1_000, 1e6, typical=(0, 90_000)),
    dpm.Numeric("score", -1, 1),
    dpm.Categorical("region", ["north", "south", "west"]),
    dpm.Boolean("member"),
)
WITHOUT = dpm.Schema(
    *(replace(column, typical=None) if isinstance(column, dpm.Numeric) else column for column in SCHEMA.columns)
)


def people(n_rows: int = 400, seed: int = 3) -> pa.Table:
    rng = np.random.default_rng(seed)
    return pa.table(
        {
            "age": rng.normal(45, 14, n_rows),
            "income": rng.lognormal(10, 0.7, n_rows),
            "score": rng.uniform(-1.2, 1.2, n_rows),
            "region": rng.choice(["north", "south", "west"], n_rows),
            "member": rng.random(n_rows) < 0.3,
        }
    )


def in_the_tables_units(table: pa.Table) -> np.ndarray:
    region = np.array(table["region"].to_pylist())
    columns = [
        np.clip(table[name].to_numpy(), *SCHEMA.columns[place].bounds) for place, name in enumerate(SCHEMA.names[:3])
    ]
    columns += [(region == level).astype(float) for level in ("north", "south", "west")]
    return np.column_stack([*columns, table["member"].to_numpy(zero_copy_only=False).astype(float)])


# ---------------------------------------------------------------- what may be said


@pytest.mark.parametrize(
    ("typical", "said"),
    [
        ((75, 20), Said("must be a range (low, high) with low < high")),
        ((20, 20), Said("must be a range (low, high) with low < high")),
        ((130, 150), Said("to which every value is clipped: one of the two is wrong", lower=0.0, upper=120.0)),
        ((-20, 0), Said("to which every value is clipped: one of the two is wrong", lower=0.0, upper=120.0)),
        ((120, 200), Said("to which every value is clipped: one of the two is wrong", lower=0.0, upper=120.0)),
        ((20, math.inf), Said("must be finite, and at most")),
        ((math.nan, 75), Said("must be finite, and at most")),
        ((20, 10**400), Said("must be finite, and at most")),
        ((20,), Said("must be a pair", parameter="typical")),
        ((20, 30, 75), Said("must be a pair", parameter="typical")),
        ("20", Said("must be a pair", parameter="typical")),
        (20, Said("must be a pair", parameter="typical")),
        ((True, 75), Said("must be", expected="a number", got="bool", parameter="typical[0]")),
        ((20, "75"), Said("must be a number, got the text", parameter="typical[1]")),
        ((None, 75), Said("must be", expected="a number", got="NoneType", parameter="typical[0]")),
    ],
)
def test_a_range_that_cannot_be_is_refused(typical: Any, said: Said) -> None:
    with refused(said, (TypeError, ValueError), column="age"):
        dpm.Numeric("age", 0, 120, typical=typical)


def test_a_typical_range_needs_bounds() -> None:
    with refused("has a typical range and a scale: a typical range goes with"):
        dpm.Numeric("income", scale=(1, 1e6), typical=(0, 90_000))
    age = dpm.Numeric("age", 0, 120, typical=(20, 75))
    with refused("has no bounds: typical ranges need bounds on every column", column="age"):
        dpm.Schema(age, dpm.Numeric("income", scale=(1, 1e6)))
    with refused("has no bounds: typical ranges need bounds on every column", column="age"):
        dpm.Schema(age, *dpm.Schema.unit_ball(1).columns, row_norm=2.0)


def test_a_row_norm_of_equal_columns_does_not_hold_for_unequal_ones() -> None:
    columns = [dpm.Numeric("age", 0, 120, typical=(20, 75)), dpm.Numeric("score", -1, 1)]
    with refused("has a typical range: the norm bound does not apply to rows", column="age"):
        dpm.Schema(*columns, row_norm=1.2)
    assert dpm.Schema(*columns, row_norm=5.0) == dpm.Schema(*columns) == dpm.Schema(*columns, row_norm=math.sqrt(2.0))


def test_what_lies_outside_the_bounds_counts_for_nothing() -> None:
    def weights(typical: tuple[float, float]) -> list[float]:
        columns = [dpm.Numeric("age", 0, 120, typical=typical), dpm.Numeric("score", -1, 1)]
        found = column_weights(columns, mean=True)
        assert found is not None
        return found.tolist()

    assert weights((-500, 8)) == weights((0, 8)) == pytest.approx(weights((112, 1e9)))
    assert weights((-500, 8)) != weights((0, 60))
    assert weights((-1e99, 1e99)) == [1.0, 1.0]


def test_the_range_is_stated_wherever_the_bounds_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "typical=(20.0, 75.0)" in repr(SCHEMA)
    released = dpm.release(people(), SCHEMA, epsilon=1.0, insecure_seed=0, output=tmp_path / "people.json")
    told = released.privacy.describe()
    assert "age: values clipped to [0, 120]; missing values: error. Typical range: 20 to 75." in told
    assert "score: values clipped to [-1, 1]; missing" in told
    assert "noise-by-typical-range" in codes(released.privacy.rules)
    assert "noise-by-typical-range" not in codes(WITHOUT.rules)
    read = dpm.load(tmp_path / "people.json")
    assert read.schema == SCHEMA
    np.testing.assert_array_equal(read.covariance, released.covariance)
    assert main(["verify", str(tmp_path / "people.json")]) == 0
    assert main(["show", str(tmp_path / "people.json")]) == 0
    assert "0 to 120, typically 20 to 75" in capsys.readouterr().out


# ---------------------------------------------------------------- the unit ball


@pytest.mark.parametrize("mean", [True, False])
def test_without_typical_ranges_all_columns_are_alike_to_the_last_bit(mean: bool) -> None:
    encoding = WITHOUT.encoding(mean=mean)
    assert encoding.weight is None
    np.testing.assert_array_equal(encoding.scale, encoding.unit * WITHOUT.row_norm)
    block = np.linspace(-1.0, 1.0, 14).reshape(2, 7)
    expected = block / (2**16 / 29308)  # next above √5
    encoding.scale_into_ball(block)
    np.testing.assert_array_equal(block, expected)


def extreme_rows(schema: dpm.Schema) -> pa.Table:
    """Every corner of the box, beyond it in the numeric columns."""
    choices: list[Any] = []
    for column in schema.columns:
        if isinstance(column, dpm.Categorical):
            choices.append(column.levels)
        else:
            choices.append([False, True] if isinstance(column, dpm.Boolean) else [-1e9, 1e9])
    return pa.table(dict(zip(schema.names, map(list, zip(*product(*choices), strict=True)), strict=True)))


@pytest.mark.parametrize("mean", [True, False])
def test_no_row_is_longer_than_one_and_some_are_as_long(mean: bool) -> None:
    corners = extreme_rows(SCHEMA)
    rows = encode_columns({name: corners[name] for name in SCHEMA.names}, SCHEMA, mean=mean)
    lengths = np.linalg.norm(rows, axis=1)
    assert 1.0 - 1e-4 < lengths.max() <= 1.0  # weights are rounded down, so that a level is a multiple of 2⁻¹⁶
    if mean:  # about the midpoints every corner is as far
        np.testing.assert_allclose(lengths, lengths.max(), atol=1e-15)
    wrong = rows * np.where(np.arange(7) == 0, 1.001, 1.0)  # planted fault: one column's weight a thousandth too large
    assert np.linalg.norm(wrong, axis=1).max() > 1.0 + 1e-5


def test_the_weights_make_the_noise_least_that_they_are_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Σ over pairs of columns of (noise/typical size)² ∝ (Σ k/(V w²))², least over weights whose squares add up alike."""
    monkeypatch.setattr(typical_ranges, "TRUST", 1.0)
    monkeypatch.setattr(typical_ranges, "DOUBT", 1.0)
    monkeypatch.setattr(typical_ranges, "MAX", math.inf)
    # V of the typical ranges by hand: sd 13.75 of 60, 22,500 of 500,500, ½ of 1; levels (3 − 1)/(3 + 1); E[4p(1 − p)] = ⅔
    relative = np.array([1 / (13.75 / 60) ** 2, 1 / (22_500 / 500_500) ** 2, 4.0, 3 / 0.5, 1.5])
    weights = column_weights(SCHEMA.columns, mean=True)
    assert weights is not None

    def noise(squares: np.ndarray) -> float:
        return float((relative / squares).sum() * squares.sum())

    assert (weights**2).sum() == pytest.approx(5.0)
    rng = np.random.default_rng(0)
    for _ in range(200):
        assert noise(weights**2) <= noise(weights**2 * np.exp(0.1 * rng.normal(size=5)))
    assert noise(weights**2) < 0.5 * noise(np.ones(5))


def test_about_zero_a_range_counts_with_its_distance_from_zero() -> None:
    near, far = dpm.Numeric("near", 0, 10, typical=(0, 1)), dpm.Numeric("far", 0, 10, typical=(9, 10))
    others = [dpm.Numeric(f"x{place}", 0, 10) for place in range(4)]
    about_mean, about_zero = (column_weights([near, far, *others], mean=mean) for mean in (True, False))
    assert about_mean is not None
    assert about_zero is not None
    assert about_mean[0] == pytest.approx(about_mean[1])
    assert about_zero[0] > 1.2 * about_zero[1]


def test_no_guess_doubles_the_noise_of_a_cell() -> None:
    rng = np.random.default_rng(1)
    worst = 0.0
    for trial in range(60):
        n_columns = int(rng.integers(2, 30))
        columns: list[Any] = [dpm.Categorical("levels", list(range(int(rng.integers(1, 60))))), dpm.Boolean("flag")]
        for place in range(n_columns):
            width = float(10.0 ** rng.uniform(-12, 2))
            columns.append(
                dpm.Numeric(f"x{place}", 0, 100, typical=(50.0, 50.0 + width) if rng.random() < 0.7 else None)
            )
        if (weights := column_weights(columns, mean=bool(trial % 2))) is not None:
            assert (weights**2).sum() == pytest.approx(len(columns))
            worst = max(worst, 1.0 / float(weights.min()) ** 2)
    assert worst < 1.0 / (1.0 - TRUST)
    assert worst > 1.5


@pytest.mark.parametrize(("n_columns", "most"), [(4, 1.3), (8, 1.2), (20, 1.1)])
def test_one_silly_guess_costs_the_other_columns_little(n_columns: int, most: float) -> None:
    columns = [dpm.Numeric(f"x{place}", 0, 100, typical=(30, 70)) for place in range(1, n_columns)]
    weights = column_weights([dpm.Numeric("x0", 0, 100, typical=(50, 50.04)), *columns], mean=True)
    assert weights is not None
    assert 1.0 < 1.0 / weights[1:].min() ** 2 < most
    assert weights[0] > 1.0


def test_guesses_that_are_off_within_the_doubt_tell_no_columns_apart() -> None:
    rng = np.random.default_rng(2)

    def weights(off: float) -> np.ndarray:
        halves = 10.0 * off ** rng.uniform(-1, 1, 8)
        columns = [dpm.Numeric(f"x{j}", -100, 100, typical=(-half, half)) for j, half in enumerate(halves.tolist())]
        found = column_weights(columns, mean=True)
        assert found is not None
        return found

    for _ in range(20):
        np.testing.assert_allclose(weights(DOUBT), 1.0, atol=1e-12)
    assert any(np.ptp(weights(3.0 * DOUBT)) > 0.1 for _ in range(20))


# ---------------------------------------------------------------- back to the table's units


@pytest.mark.parametrize("neighbors", ["add_remove", "replace_one"])
@pytest.mark.parametrize("mean", [True, False])
def test_moments_come_back_in_the_tables_units(neighbors: str, mean: bool) -> None:
    table = people()
    released = dpm.release(
        table, SCHEMA, epsilon=1e13, neighbors=neighbors, mean=mean, n_rows=400, repair="none", insecure_seed=1
    )
    own = in_the_tables_units(table)
    size = np.sqrt((own**2).mean(axis=0))

    def relative_error(scale: np.ndarray) -> float:
        second = (
            released.second_moment / np.outer(released.encoding.scale, released.encoding.scale) * np.outer(scale, scale)
        )
        return float(np.abs((second - own.T @ own / 400) / np.outer(size, size)).max())

    assert relative_error(released.encoding.scale) < 1e-3
    unweighted = released.encoding.unit * math.sqrt(5.0)  # planted fault: the weights forgotten on the way back
    assert relative_error(unweighted) > 0.01
    if mean:
        np.testing.assert_allclose(released.mean, own.mean(axis=0), rtol=1e-4)
        np.testing.assert_allclose(
            released.covariance, np.cov(own.T, bias=True), atol=1e-2 * np.outer(size, size).max()
        )
