"""Numbers alone in the ball: levels stay where they are, no row is longer than stated, and nothing unpaid for leaves."""

from __future__ import annotations

import itertools
import math
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import dpmoments as dpm
from dpmoments.audit.replay import replay
from dpmoments.audit.verification import checks
from dpmoments.mechanisms.adaptive_ball import AdaptiveBall, AdaptiveBallPlan
from dpmoments.mechanisms.ball_of_numbers import BallOfNumbers
from dpmoments.mechanisms.ball_search import SMALLEST_INDEX, RowDistances, radius_at
from dpmoments.mechanisms.level_coordinates import LevelCoordinates
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.noise.entropy import insecure_generator
from dpmoments.noise.models import CenteredLevelsModel
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.sensitivity import gram_frobenius, gram_nuclear
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.lattice import Lattice
from dpmoments.rows.rows import Rows
from support.said import codes

BITS, W = 18, 0.25
REGIONS = ["north", "south", "east"]
SCHEMA = dpm.Schema(
    dpm.Numeric("age", 0, 100, missing="drop"),
    dpm.Categorical("region", ["north", "south", "east"]),
    dpm.Boolean("smoker"),
    dpm.Numeric("income", 0, 10),
    dpm.Categorical("job", ["a", "b"], missing="zero", other="zero"),
)
WITH_PRODUCT = dpm.Schema(*SCHEMA.columns, dpm.Product("smoker", "region"), dpm.Power("income", 2))
WEIGHTED = dpm.Schema(
    dpm.Numeric("age", 0, 100, weight=5.0), dpm.Categorical("region", ["north", "south", "east"], weight=0.3),
    dpm.Boolean("smoker"), dpm.Numeric("income", 0, 10),
)  # fmt: skip
SCHEMAS = {"mixed": SCHEMA, "weighted": WEIGHTED}
ENCODED = {**SCHEMAS, "derived": WITH_PRODUCT}
BOTH = pytest.mark.parametrize("neighbors", list(Neighbors))
BUDGETS = {
    "pure": PrivacyBudget.pure(3.0), "rho": PrivacyBudget.zcdp(0.8), "approximate": PrivacyBudget.approximate(3.0, 1e-6)
}  # fmt: skip


def ball_of(schema: dpm.Schema, bits: int = BITS) -> BallOfNumbers:
    found = BallOfNumbers.of(LevelCoordinates.of(schema), radius_at(SMALLEST_INDEX), bits)
    assert found is not None
    return found


def people(n: int, seed: int = 0) -> pa.Table:
    """Even levels, and numbers in a tenth of their bounds; one row in fifty is farther out."""
    rng = np.random.default_rng(seed)
    far = rng.random(n) < 0.02
    return pa.table(
        {
            "age": np.where(far, 58.0, rng.normal(40.0, 4.0, n)),
            "region": rng.choice(["north", "south", "east"], n),
            "smoker": rng.random(n) < 0.5,
            "income": np.where(far, 5.0, rng.normal(3.0, 0.4, n)),
            "job": rng.choice(["a", "b", None], n, p=[0.45, 0.45, 0.1]),
        }
    )


def every_row(schema: dpm.Schema) -> list[dict[str, Any]]:
    """All rows of bounds, midpoints and levels (or none)."""
    values = {
        "age": [0.0, 41.0, 100.0], "region": ["north", "south", "east"], "smoker": [True, False],
        "income": [0.0, 2.9, 10.0], "job": ["a", "b", None],
    }  # fmt: skip
    names = [column.name for column in schema.table_columns]
    return [dict(zip(names, row, strict=True)) for row in itertools.product(*(values[name] for name in names))]


def lattice_rows(schema: dpm.Schema, radius: float) -> tuple[np.ndarray, LevelCoordinates]:
    """(w, coordinates) of each row by itself, with its numbers in the ball, in unit-ball units."""
    numbers, found = ball_of(schema), []
    levels, center = numbers.coordinates(radius, BITS), np.array([0.03, -0.2, *[0.05] * 9])[: len(numbers.features)]
    for row in every_row(schema):
        rows = Rows.of(pa.table({name: [value] for name, value in row.items()}), schema, threads=1)
        moments = rows.moments_of_moved(numbers.features, center, numbers.limit(radius, BITS), bits=BITS)
        square = levels.augmented_gram(moments, W)
        first = [int(value) for value in square[0]]
        assert [[a * b for a in first] for b in first] == (square * square[0, 0]).tolist()  # of one row, exactly
        found.append(np.array(first) / (W * 2**BITS) / 2**BITS)
    return np.array(found), levels


@pytest.mark.parametrize("name", ENCODED)
@pytest.mark.parametrize("radius", [0.7, 0.21])
def test_no_pair_of_neighboring_rows_changes_more_than_the_sensitivity(name: str, radius: float) -> None:
    """Brute force over all pairs, both relations; the planted fault is a bound 1 % too small."""
    rows, levels = lattice_rows(ENCODED[name], radius)
    d, squares = ENCODED[name].n_features, (rows**2).sum(axis=1)
    largest = {"fro": 0.0, "nuc": 0.0}
    for one in rows:
        moved = np.linalg.eigvalsh(np.outer(one, one) - np.einsum("ni,nj->nij", rows, rows))
        largest["fro"] = max(largest["fro"], float(np.sqrt((moved**2).sum(axis=1)).max()))
        largest["nuc"] = max(largest["nuc"], float(np.abs(moved).sum(axis=1).max()))
    for norm, stated in (("fro", gram_frobenius), ("nuc", gram_nuclear)):
        assert squares.max() <= stated(Neighbors.ADD_REMOVE, d, W, levels.row_square).value
        assert largest[norm] <= stated(Neighbors.REPLACE_ONE, d, W, levels.row_square).value * (1 + 1e-12)
    assert squares.max() == pytest.approx(W**2 + levels.row_square, rel=1e-3)  # attained, but for rounding
    assert squares.max() > gram_frobenius(Neighbors.ADD_REMOVE, d, W, levels.row_square * 0.99).value
    assert levels.row_square < ball_of(ENCODED[name]).levels.row_square


@pytest.mark.parametrize("bits", [16, 20])
def test_levels_stay_and_numbers_are_those_of_a_plain_ball(bits: int) -> None:
    """Against rows moved in floating point; levels, Booleans and their sums to the last bit."""
    table, numbers = people(300), ball_of(SCHEMA)
    features, center = list(numbers.features), np.array([-0.09, -0.18])
    rows = Rows.of(table, SCHEMA, threads=1)
    limit = numbers.limit(0.15, bits)
    moved, plain = rows.moments_of_moved(features, center, limit, bits=bits), rows.moments(bits=bits)
    still = [feature for feature in range(SCHEMA.n_features) if feature not in features]
    assert moved.count == plain.count
    np.testing.assert_array_equal(moved.sum[still], plain.sum[still])
    np.testing.assert_array_equal(moved.gram[np.ix_(still, still)], plain.gram[np.ix_(still, still)])
    encoded = []
    for row in table.to_pylist():
        one = Rows.of(pa.table({name: [value] for name, value in row.items()}), SCHEMA, threads=1).moments(bits=24)
        encoded.append(one.sum * one.scale)
    x = np.array(encoded)
    u = x[:, features] - center
    u *= np.minimum(1.0, limit * 2.0**-bits / np.linalg.norm(u, axis=1))[:, None]
    assert 0.01 < np.mean(np.linalg.norm(x[:, features] - center, axis=1) > limit * 2.0**-bits) < 0.5
    within = 300 * 3.0 * math.sqrt(len(features)) * 2.0**-bits
    x[:, features] = u
    np.testing.assert_allclose(moved.sum * 2.0**-bits, x.sum(axis=0), atol=within)
    np.testing.assert_allclose(moved.gram.astype(float) * 4.0**-bits, x.T @ x, atol=within)


def test_a_dropped_row_leaves_no_trace_and_batches_do_not_matter() -> None:
    table, numbers = people(400), ball_of(SCHEMA)
    lacking = pa.concat_tables([table, table.slice(0, 1).set_column(0, "age", pa.array([None], pa.float64()))])
    center, limit = np.full(len(numbers.features), 0.1), numbers.limit(0.2, BITS)

    def sums(data: pa.Table, threads: int = 1) -> Any:
        return Rows.of(data, SCHEMA, threads=threads).moments_of_moved(numbers.features, center, limit, bits=BITS)

    one, other, shuffled = sums(table), sums(lacking, 2), sums(table.take(np.arange(400)[::-1]))
    for moments in (other, shuffled):
        assert moments.count == one.count
        np.testing.assert_array_equal(moments.gram, one.gram)
        np.testing.assert_array_equal(moments.sum, one.sum)


@pytest.mark.parametrize("limit", [2**6 + 1, 1])
def test_a_limit_that_no_row_can_keep_is_a_defect(limit: int) -> None:
    with pytest.raises(AssertionError, match="defect"):
        Lattice(5, bits=6, radius=1.0, limit=limit)


def test_distances_are_of_numbers_in_their_unit() -> None:
    """A row at the edge of its numbers' bounds is at distance 1 from the middle, whatever its levels are."""
    numbers = ball_of(WEIGHTED)
    table = pa.table({"age": [100.0], "region": ["south"], "smoker": [True], "income": [0.0]})
    rows = Rows.of(table, WEIGHTED, threads=1)
    center = np.array([0.0, 0.9, -0.9, 0.5, 0.5, 0.0])
    distances = RowDistances.of(rows, center, numbers.features, numbers.unit)
    assert [distances.at(place) for place in (-1, -2)] == [1, 0]  # radii of .978 and 1.006


def plan_of(schema: dpm.Schema, budget: PrivacyBudget, neighbors: Neighbors, n_rows: int) -> AdaptiveBallPlan:
    public = None if neighbors is Neighbors.ADD_REMOVE or schema.drops_rows else n_rows
    plan = AdaptiveBall().plan(MomentShape.of(schema, mean=True, n_rows=public), budget, neighbors)
    assert isinstance(plan, AdaptiveBallPlan)
    return plan


@pytest.mark.parametrize(
    ("shares", "alone"),
    [([1 / 3, 1 / 3, 1 / 3], True), ([0.8, 0.1, 0.1], True), ([1.0, 0.0, 0.0], False), ([0.99, 0.01, 0.0], False)],
)
def test_numbers_are_alone_where_a_ball_would_have_to_hold_levels(shares: list[float], *, alone: bool) -> None:
    schema = dpm.Schema(
        *(dpm.Categorical(name, ["x", "y", "z"]) for name in "abc"), dpm.Numeric("n", 0, 1), dpm.Numeric("m", 0, 1)
    )
    numbers = ball_of(schema)
    center = np.concatenate([np.array(shares * 3) * numbers.levels.steps[0] / 2**16, [0.1, 0.1]])
    assert numbers.pays(center) is alone


def test_without_levels_or_numbers_there_is_no_such_ball() -> None:
    only_levels = dpm.Schema(dpm.Categorical("a", ["x", "y"]), dpm.Boolean("b"))
    beside = LevelCoordinates.of
    assert BallOfNumbers.of(beside(only_levels), 0.01, BITS) is None
    assert BallOfNumbers.of(beside(dpm.Schema(dpm.Numeric("a", 0, 1))), 0.01, BITS) is None
    assert beside(dpm.Schema(dpm.Numeric("a", 0, 1), dpm.Boolean("b"), row_norm=0.5)) is None
    assert BallOfNumbers.of(beside(SCHEMA), radius_at(SMALLEST_INDEX), 15) is None
    assert BallOfNumbers.of(beside(SCHEMA), 1e-5, 16) is None


@BOTH
@pytest.mark.parametrize("budget", BUDGETS)
@pytest.mark.parametrize("name", SCHEMAS)
def test_nothing_unpaid_for_leaves_a_run(name: str, budget: str, neighbors: Neighbors) -> None:
    """Replayed on neighbors, and on an unrelated table, with the same answers."""
    schema, table = SCHEMAS[name], people(1500)
    plan = plan_of(schema, BUDGETS[budget], neighbors, table.num_rows)

    def rows(data: pa.Table) -> Rows:
        return Rows.of(data, schema, neighbors=neighbors, threads=1)

    odd = [row | {"job": None} for row in every_row(WEIGHTED)[::7]]
    for place, row in enumerate(odd, start=3):
        rest = pa.concat_tables([table.slice(0, place), table.slice(place + 1)])
        added = pa.table({field.name: pa.array([row[field.name]], field.type) for field in table.schema})
        if neighbors is Neighbors.REPLACE_ONE:
            other = pa.concat_tables([rest, added])
        else:
            other = rest if place % 2 else pa.concat_tables([table, added])
        assert replay(plan, rows(table), rows(other), insecure_generator(place)) == ()
    unrelated = people(1500, seed=9).take(np.arange(1500)[::-1])
    assert replay(plan, rows(table), rows(unrelated), insecure_generator(1), any_table=True) == ()
    assert replay(plan, rows(unrelated), rows(table), insecure_generator(2), any_table=True) == ()
    released = release(schema, table, budget, neighbors, seed=1)
    assert released.diagnostics.get("numbers_alone") is True


def release(
    schema: dpm.Schema, table: pa.Table, budget: str, neighbors: Neighbors, seed: int, **options: Any
) -> dpm.MomentRelease:
    stated = BUDGETS[budget]
    spent = {"rho": stated.rho} if budget == "rho" else {"epsilon": stated.epsilon, "delta": stated.delta}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpm.ReleaseWarning)
        return dpm.release(
            table, schema, neighbors=str(neighbors), mechanism="adaptive-ball", insecure_seed=seed, threads=1,
            **spent, **options,
        )  # fmt: skip


def test_a_replay_finds_a_center_that_is_not_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: numbers are moved about their exact mean."""
    table = people(1500)
    plan = plan_of(SCHEMA, BUDGETS["pure"], Neighbors.ADD_REMOVE, 1500)
    whole = BallOfNumbers.center

    def leaking(self: BallOfNumbers, center: np.ndarray) -> np.ndarray:
        return whole(self, center) + exact[0]

    monkeypatch.setattr(BallOfNumbers, "center", leaking)
    made = AdaptiveBallPlan.run

    def run(self: AdaptiveBallPlan, rows: Rows, privacy_filter: Any) -> Any:
        moments = rows.moments(bits=20)
        exact[0] = float(moments.sum[0]) * moments.scale / moments.count
        return made(self, rows, privacy_filter)

    exact = [0.0]
    monkeypatch.setattr(AdaptiveBallPlan, "run", run)
    one, other = (Rows.of(data, SCHEMA, threads=1) for data in (table, table.slice(1)))
    assert replay(plan, one, other, insecure_generator(1)) != ()


@BOTH
@pytest.mark.parametrize("budget", BUDGETS)
def test_a_file_says_all_of_it_and_a_forged_one_is_found(budget: str, neighbors: Neighbors, tmp_path: Path) -> None:
    table = people(1500)
    made = release(SCHEMA, table, budget, neighbors, seed=1)
    made.save(tmp_path / "release.json")
    loaded = dpm.load(tmp_path / "release.json")
    assert isinstance(loaded, dpm.MomentRelease)
    assert [check for check in checks(loaded) if check.passed is False] == []
    assert loaded.numbers_alone
    assert isinstance(loaded.noise_model, CenteredLevelsModel)
    assert "numbers-clipped-to-ball" in codes(loaded.privacy.rules)
    np.testing.assert_array_equal(loaded.covariance, made.covariance)
    numbers = ball_of(SCHEMA, loaded.details["lattice_bits"])
    assert not np.delete(loaded.center, list(numbers.features)).any()
    last = loaded.receipt.draws[-1]
    square = dict(last.sensitivity.arguments)["row_square"]
    assert isinstance(square, float)
    index = next(i for i in range(SMALLEST_INDEX + 1) if radius_at(i) * numbers.unit == loaded.diagnostics["radius"])
    assert square == numbers.coordinates(radius_at(index), loaded.details["lattice_bits"]).row_square
    smaller = {**loaded.diagnostics, "radius": radius_at(index + 3 if budget == "rho" else index + 12) * numbers.unit}
    larger = {**loaded.diagnostics, "radius": radius_at(max(index - 12, 0)) * numbers.unit}
    plain = {key: value for key, value in loaded.diagnostics.items() if key != "numbers_alone"}
    for forged in (smaller, larger, plain, {**loaded.diagnostics, "radius": 0.5}):
        false = replace(loaded, diagnostics=forged)
        assert any(check.passed is False for check in checks(false)), forged
    moved = replace(loaded, center=np.full(SCHEMA.n_features, 0.1))
    assert np.isfinite(moved.covariance).all()


@pytest.mark.parametrize("budget", ["pure", "rho"])
def test_the_stated_law_is_that_of_the_noise(budget: str) -> None:
    """Squared errors of functionals over 160 runs against their stated variance, about the exact moved rows."""
    table, runs = people(1200), 160
    rows = Rows.of(table, SCHEMA, threads=1)
    d = SCHEMA.n_features
    rng = np.random.default_rng(5)
    weights = rng.normal(size=(6, d + 1, d + 1))
    weights = (weights + weights.transpose(0, 2, 1)) / 2.0
    weights[0], weights[0, 0, 0] = 0.0, 1.0
    indices = np.tile(np.arange(d + 1), (6, 1))
    ratios = []
    for seed in range(runs):
        one = release(SCHEMA, table, budget, Neighbors.ADD_REMOVE, seed, repair="none")
        if not one.numbers_alone:
            continue
        numbers = ball_of(SCHEMA, one.details["lattice_bits"])
        index = next(i for i in range(SMALLEST_INDEX + 1) if radius_at(i) * numbers.unit == one.diagnostics["radius"])
        limit = numbers.limit(radius_at(index), one.details["lattice_bits"])
        assert one.center is not None
        exact = rows.moments_of_moved(
            numbers.features, one.center[list(numbers.features)], limit, bits=one.details["lattice_bits"]
        )
        assert one.noisy_sum is not None
        assert one.noisy_count is not None
        error = np.zeros((d + 1, d + 1))
        error[0, 0] = one.noisy_count - exact.count
        error[0, 1:] = error[1:, 0] = one.noisy_sum - exact.sum * exact.scale
        error[1:, 1:] = one.noisy_gram - exact.gram.astype(float) * exact.scale**2
        assert one.noise is not None
        found = np.einsum("kij,ij->k", weights, error)
        ratios.append(found**2 / one.noise.variance(indices, weights))
    assert len(ratios) > 0.9 * runs
    means = np.mean(ratios, axis=0)
    # the mean of n squared standardized errors has a standard error of √(2/n) for normal noise, more for pure noise
    np.testing.assert_allclose(means, 1.0, atol=5.0 * math.sqrt((4.0 if budget == "pure" else 2.0) / len(ratios)))


@BOTH
def test_shares_and_margins_are_those_of_the_table(neighbors: Neighbors) -> None:
    """With much to spend, levels are exact though numbers are clipped."""
    table = people(4000)
    rows = Rows.of(table, WEIGHTED, threads=1)
    budget = PrivacyBudget.pure(300.0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", dpm.ReleaseWarning)
        one = dpm.release(
            table, WEIGHTED, epsilon=budget.epsilon, neighbors=str(neighbors), mechanism="adaptive-ball",
            insecure_seed=3, threads=1,
        )  # fmt: skip
    assert one.numbers_alone
    moments = rows.moments(bits=20)
    exact = WEIGHTED.encoding().decode_mean(moments.sum * moments.scale / moments.count)
    levels = [1, 2, 3, 4]
    np.testing.assert_allclose(one.mean[levels], exact[levels], atol=2e-4)
    assert abs(one.mean[[1, 2, 3]].sum() - 1.0) < 1e-9
    np.testing.assert_allclose(one.covariance[:, [1, 2, 3]].sum(axis=1), 0.0, atol=1e-9)
    counts = one.cross_table("region", "smoker").counts
    regions, smokers = np.array(table["region"].to_pylist()), np.array(table["smoker"].to_pylist())
    seen = [[np.sum((regions == level) & (smokers == flag)) for flag in (False, True)] for level in REGIONS]
    np.testing.assert_allclose(counts, seen, atol=3.0)
    description = one.describe()
    assert description.clipping is not None
    assert not description.clipping.bounds.squares[levels].any()
    assert description.clipping.bounds.squares[[0, 5]].all()


@pytest.mark.parametrize("budget", ["pure", "rho"])
def test_bounds_on_clipping_hold(budget: str) -> None:
    """In at least 19 of 20 runs, for the change of the mean and of second moments."""
    table, held, runs = people(1500), list[bool](), 50
    rows = Rows.of(table, WEIGHTED, threads=1)
    whole, largest, slack = rows.moments(bits=20), 0.0, 1e-5
    for seed in range(runs):
        one = release(WEIGHTED, table, budget, Neighbors.ADD_REMOVE, seed)
        if not one.numbers_alone:
            continue
        assert one.center is not None
        numbers = ball_of(WEIGHTED, one.details["lattice_bits"])
        features, bits = list(numbers.features), one.details["lattice_bits"]
        index = next(i for i in range(SMALLEST_INDEX + 1) if radius_at(i) * numbers.unit == one.diagnostics["radius"])
        center = one.center[features]
        moved = rows.moments_of_moved(features, center, numbers.limit(radius_at(index), bits), bits=bits)
        mean = (whole.sum * whole.scale / whole.count)[features]
        second = (np.diag(whole.gram).astype(float) * whole.scale**2 / whole.count)[features]
        about = second - 2.0 * center * mean + center**2
        squares = (np.diag(moved.gram).astype(float) * moved.scale**2 / moved.count)[features]
        shift = mean - center - (moved.sum * moved.scale / moved.count)[features]
        [said] = [rule for rule in one.privacy.rules if rule.code == "numbers-clipped-to-ball"]
        lost, moved_by = float((about - squares).sum()), float(np.linalg.norm(shift))
        largest = max(largest, lost)
        held.append(lost <= said.facts["trace"] + slack and moved_by <= said.facts["mean"] + slack)
    assert len(held) > 0.8 * runs
    assert largest > (100.0 * slack if budget == "pure" else -slack)
    assert np.mean(held) >= 0.95


@pytest.mark.parametrize("budget", ["pure", "rho"])
def test_a_forecast_is_of_numbers_alone(budget: str) -> None:
    """Its errors of means are those that releases state, from .7 to 1.3 times."""
    table = people(3000)
    typical = {"age": float(np.std(table["age"])), "income": float(np.std(table["income"]))}
    middle = {"age": float(np.mean(table["age"])), "income": float(np.mean(table["income"])), "smoker": 0.5}
    stated = BUDGETS[budget]
    spent = {"rho": stated.rho} if budget == "rho" else {"epsilon": stated.epsilon}
    forecast = dpm.forecast(WEIGHTED, n_rows=3000, typical_sd=typical, typical_mean=middle, **spent)
    foreseen = forecast.noise_of("adaptive-ball").release.describe()
    found = [release(WEIGHTED, table, budget, Neighbors.ADD_REMOVE, seed) for seed in range(12)]
    assert sum(one.numbers_alone for one in found) > 9
    told = np.median([one.describe().to_pandas()["mean_noise"] for one in found if one.numbers_alone], axis=0)
    ratio = foreseen.to_pandas()["mean_noise"].to_numpy() / told
    assert (ratio > 0.7).all(), ratio
    assert (ratio < 1.3).all(), ratio
