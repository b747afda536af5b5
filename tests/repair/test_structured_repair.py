"""The structured repair: its steps against brute force, and what no repaired release may show, on random schemas."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from dpmoments import Boolean, Categorical, Numeric, Schema
from dpmoments.repair import structured
from dpmoments.repair.levels import CompletedLevels, _with_margins, level_shares, possible_covariance, possible_mean
from dpmoments.repair.repair import _FEW_ROWS, Repair, few_rows_message, floored_count, repair_moments
from dpmoments.repair.structured import (
    _SPREADS,
    CellVariances,
    NoisySums,
    _posterior_moments,
    _steadied,
    implied_count,
    project,
    relative_noise,
    structured_moments,
)
from dpmoments.schema.columns import changed
from dpmoments.schema.constraints import Constraints
from support.noise_models import gaussian
from support.said import codes

SCHEMA = Schema(
    Categorical("region", ["north", "south", "east"]),
    Numeric("age", 0, 100),
    Categorical("job", ["a", "b"], missing="zero"),
    Boolean("smoker"),
    Categorical("sex", ["f", "m"]),
)


def random_table(rng: np.random.Generator) -> tuple[pd.DataFrame, Schema]:
    """A table of up to six columns of all kinds, some constant, some with rules that drop rows or count them as no level."""
    n = int(rng.choice([1, 2, 5, 40, 300, 3000]))
    cells: dict[str, Any] = {}
    columns: list[Any] = []
    for index in range(rng.integers(1, 7)):
        name, kind = f"x{index}", rng.integers(3)
        if kind == 0:
            k = int(rng.integers(1, 9))
            missing, other = rng.choice(["error", "zero", "drop"]), rng.choice(["drop", "zero"])
            levels = [f"l{level}" for level in range(k)]
            values = np.array(levels, dtype=object)[rng.choice(k, n, p=rng.dirichlet(np.full(k, 0.4)))]
            if other == "zero":
                values[rng.random(n) < 0.1] = "elsewhere"
            if missing != "error":
                values[rng.random(n) < 0.1] = None
            columns.append(Categorical(name, levels, missing=missing, other=other))
        elif kind == 1:
            missing = rng.choice(["error", "center", "drop"])
            values = (rng.random(n) < rng.choice([0.0, 0.02, 0.5, 1.0])).astype(float)
            if missing != "error":
                values[rng.random(n) < 0.1] = np.nan
            columns.append(Boolean(name, missing=missing))
        else:
            shapes = [rng.normal(0, 1, n), np.full(n, -3.0), np.exp(rng.normal(size=n))]
            values = shapes[rng.integers(3)]
            columns.append(Numeric(name, -3, 7))
        cells[name] = values
    return pd.DataFrame(cells), Schema(*columns)


def impossible(release: dpm.MomentRelease, constraints: Constraints | None = None) -> list[str]:
    """What a release shows that no table has, in words; computed from its public properties, in the table's units."""
    found = []
    with_mean = release.noisy_sum is not None
    constraints = Constraints.of(release.schema, mean=with_mean) if constraints is None else constraints
    gram, lower, upper = release.gram, *release.schema.feature_bounds
    tolerance = 1e-9 * max(1.0, float(np.abs(gram).max()))
    counts = np.diag(gram)
    levels = [feature for block in constraints.blocks for feature in range(block.start, block.stop)]
    for block in constraints.blocks:
        own = gram[block.features, block.features]
        if np.abs(own - np.diag(np.diag(own))).max() > tolerance:
            found.append("rows with two levels of one column")
    for i, j in itertools.product([*levels, *constraints.flags], repeat=2):
        if not -tolerance <= gram[i, j] <= min(counts[i], counts[j]) + tolerance:
            found.append("a joint count below 0 or above its margin")
    matrix = release.covariance if with_mean else gram
    eigenvalues = np.linalg.eigvalsh(matrix)
    if eigenvalues[0] < -1e-9 * max(1.0, float(eigenvalues[-1])):
        found.append("a negative variance")
    if not with_mean:
        return found
    mean, n, variance = release.mean, release.n_rows, np.diag(matrix)
    if (mean < lower - 1e-9).any() or (mean > upper + 1e-9).any():
        found.append("a mean outside its bounds")
    for block in constraints.blocks:
        total = float(mean[block.features].sum())
        if (mean[block.features] < -1e-9).any() or total > 1 + 1e-9 or (block.complete and total < 1 - 1e-9):
            found.append("counts that do not add up")
        if np.abs(counts[block.features] - n * mean[block.features]).max() > tolerance:
            found.append("a count and a sum that differ")
        rest = np.setdiff1d(np.arange(len(mean)), np.arange(block.start, block.stop))
        within = gram[np.ix_(rest, np.arange(block.start, block.stop))]
        least = lower[rest, None] * counts[None, block.features] - tolerance
        most = upper[rest, None] * counts[None, block.features] + tolerance
        if len(rest) and ((within < least) | (within > most)).any():
            found.append("a mean of some rows outside its bounds")
        if len(rest) and block.complete and np.abs(within.sum(axis=1) - n * mean[rest]).max() > 10 * tolerance:
            found.append("sums over levels that are not the sum")
    shares = mean[list(constraints.flags)]
    if np.abs(variance[list(constraints.flags)] - shares * (1 - shares)).max(initial=0.0) > 1e-9:
        found.append("a variance that is not p(1 − p)")
    deviations = np.sqrt(np.where(variance > 1e-9, variance, np.inf))
    if (np.abs(matrix) > np.outer(deviations, deviations) * (1 + 1e-6)).any() and np.isfinite(deviations).all():
        found.append("a correlation above 1")
    if constraints.counts and (variance > ((upper - lower) / 2) ** 2 + 1e-9).any():  # else the repair is spectral
        found.append("a variance above that of any bounded column")
    return found


@pytest.mark.parametrize(("part", "weights"), [(0, [1]), (1, [1]), (2, [1]), (0, [16, 1, 1 / 16])])
def test_a_repaired_release_shows_nothing_impossible(part: int, weights: list[float]) -> None:
    checked = 0
    for seed in range(50 * part, 50 * (part + 1)):
        rng = np.random.default_rng(seed)
        table, plain = random_table(rng)
        columns = zip(plain.columns, itertools.cycle(weights))
        schema = Schema(*(changed(column, weight=float(weight)) for column, weight in columns))
        released = dpm.release(
            table,
            schema,
            epsilon=float(rng.choice([0.01, 0.3, 1.0, 10.0, 1e6])),
            delta=float(rng.choice([0.0, 1e-9])),
            neighbors=str(rng.choice(["add_remove", "replace_one"])),
            mean=bool(rng.random() < 0.75),
            insecure_seed=seed,
        )
        assert impossible(released) == [], seed
        checked += Constraints.of(schema, mean=released.noisy_sum is not None).counts
    assert checked > 30


def test_other_repairs_do_show_it() -> None:
    """The planted fault of the test above: without the structure its checks fail."""
    table, schema = people(300)
    released = dpm.release(table, schema, epsilon=0.3, insecure_seed=1)
    assert impossible(released) == []
    for repair in ("none", "spectral", "clip"):
        assert {"rows with two levels of one column", "a joint count below 0 or above its margin"} <= set(
            impossible(released.with_repair(repair))
        )
    assert "a variance that is not p(1 − p)" in impossible(released.with_repair("spectral"))


def people(n: int, seed: int = 0) -> tuple[pd.DataFrame, Schema]:
    rng = np.random.default_rng(seed)
    table = pd.DataFrame(
        {
            "region": rng.choice(["north", "south", "east"], n, p=[0.6, 0.3, 0.1]),
            "age": rng.uniform(20, 70, n),
            "job": rng.choice(np.array(["a", "b", None], dtype=object), n),
            "smoker": rng.random(n) < 0.2,
            "sex": rng.choice(["f", "m"], n),
        }
    )
    return table, SCHEMA


def constraint_rows(constraints: Constraints, n: float) -> tuple[np.ndarray, np.ndarray, list[tuple[int, int]]]:
    """A and b of the linear constraints A x = b, x the sums and then the upper triangle of the Gram matrix."""
    d = constraints.n_features
    cells = [(i, j) for i in range(d) for j in range(i, d)]
    place = {cell: d + index for index, cell in enumerate(cells)}

    def at(i: int, j: int) -> int:
        return place[min(i, j), max(i, j)]

    rows, right = [], []

    def add(entries: dict[int, float], value: float) -> None:
        row = np.zeros(d + len(cells))
        for index, weight in entries.items():
            row[index] += weight
        rows.append(row)
        right.append(value)

    for block in constraints.blocks:
        inside = range(block.start, block.stop)
        for first, second in itertools.combinations(inside, 2):
            add({at(first, second): 1.0}, 0.0)
        for level in inside:
            add({at(level, level): 1.0, level: -1.0}, 0.0)
        if block.complete:
            add(dict.fromkeys(inside, 1.0), n)
            for other in set(range(d)) - set(inside):
                add({at(other, level): 1.0 for level in inside} | {other: -1.0}, 0.0)
    for flag in constraints.flags:
        add({at(flag, flag): 1.0}, n)
    return np.array(rows), np.array(right), cells


UNEQUAL = np.array([0.5, 0.5, 0.5, 1.5, 1.0, 1.0, 0.7, 2.0, 2.0])
"""Relative noise q of the features of ``SCHEMA``, one number for a column."""


@pytest.mark.parametrize("relative", [None, UNEQUAL], ids=["equal", "unequal"])
@pytest.mark.parametrize("mean", [True, False])
def test_the_projection_is_the_weighted_least_squares_one(mean: bool, relative: np.ndarray | None) -> None:
    """x − VAᵀ(AVAᵀ)⁺(Ax − b), with A written out: no sum is known but through the margins where no mean was released."""
    rng = np.random.default_rng(3)
    constraints = Constraints.of(SCHEMA, mean=mean)
    d, n = constraints.n_features, 500.0
    gram = rng.normal(size=(d, d)) * 30
    gram = gram + gram.T
    sums = rng.normal(size=d) * 40
    variances = CellVariances(2.0, 1.3, relative)
    q = np.ones(d) if relative is None else relative
    found = project(NoisySums(n, sums, gram, 9.0 * q if mean else np.full(d, math.inf)), variances, constraints)
    rows, right, cells = constraint_rows(constraints, n)
    x = np.concatenate([sums if mean else np.zeros(d), [gram[cell] for cell in cells]])
    of_cells = [q[i] * q[j] * (variances.diagonal if i == j else variances.off_diagonal) for i, j in cells]
    v = np.array([*(9.0 * q if mean else np.full(d, 1e7)), *of_cells])
    nearest = x - v * (rows.T @ np.linalg.lstsq((rows * v) @ rows.T, rows @ x - right, rcond=1e-13)[0])
    np.testing.assert_allclose(rows @ nearest, right, atol=1e-4)
    expected = np.array([found.gram[cell] for cell in cells])
    np.testing.assert_allclose(found.sum, nearest[:d], atol=1e-4 if mean else 0.02)
    np.testing.assert_allclose(expected, nearest[d:], atol=1e-4 if mean else 0.02)


def test_the_projection_leaves_a_table_as_it_is() -> None:
    table, schema = people(200)
    exact = dpm.release(table, schema, epsilon=1e13, repair="none", neighbors="replace_one", insecure_seed=0)
    constraints, scale = Constraints.of(schema, mean=True), float(schema.row_norm or 1.0)
    sums, gram = np.asarray(exact.noisy_sum) * scale, exact.noisy_gram * scale**2
    noisy = NoisySums(200.0, sums, gram, np.full(len(gram), 1.0))
    found = project(noisy, CellVariances(2.0, 1.0), constraints)
    np.testing.assert_allclose(found.gram, gram, atol=0.01)
    np.testing.assert_allclose(found.sum, sums, atol=0.01)
    assert implied_count(gram, CellVariances(2.0, 1.0), constraints) == pytest.approx(200.0, abs=0.01)


@pytest.mark.parametrize("relative", [None, UNEQUAL], ids=["equal", "unequal"])
def test_variances_left_on_the_sum_are_those_of_draws(relative: np.ndarray | None) -> None:
    rng = np.random.default_rng(4)
    constraints = Constraints.of(SCHEMA, mean=True)
    d, variances = constraints.n_features, CellVariances(2.0, 1.3, relative)
    lengths = np.sqrt(np.ones(d) if relative is None else relative)
    draws = []
    for _ in range(4000):
        gram = np.triu(rng.normal(size=(d, d)) * math.sqrt(variances.off_diagonal), 1)
        gram = gram + gram.T + np.diag(rng.normal(size=d) * math.sqrt(variances.diagonal))
        gram *= np.outer(lengths, lengths)
        sums = rng.normal(size=d) * 3.0 * lengths
        found = project(NoisySums(0.0, sums, gram, 9.0 * lengths**2), variances, constraints)
        draws.append(found.sum)
    np.testing.assert_allclose(np.var(draws, axis=0), found.sum_variance, rtol=0.12)


def test_an_implied_count_is_that_of_the_columns_with_little_noise() -> None:
    constraints = Constraints.of(Schema(Categorical("region", ["n", "s"]), Categorical("sex", ["f", "m"])), mean=False)
    gram = np.diag([60.0, 40.0, 150.0, 250.0])
    gram[:2, 2:] = gram[2:, :2] = 75.0
    unequal = CellVariances(2.0, 1.0, np.array([1.0, 1.0, 1e3, 1e3]))
    assert implied_count(gram, unequal, constraints) == pytest.approx(100.0, abs=0.5)
    assert implied_count(gram, CellVariances(2.0, 1.0), constraints) == pytest.approx((100.0 + 400.0 + 300.0) / 3.0)


def test_noise_of_weighted_columns_is_that_of_the_law() -> None:
    """Variances of all cells, in column units, against those of the noise; not so if columns were taken as alike."""
    schema = Schema(
        Categorical("region", ["north", "south", "east"], weight=16),
        Numeric("age", 0, 100),
        Categorical("job", ["a", "b"], missing="zero", weight=1 / 4),
        Boolean("smoker", weight=4),
    )
    constraints = Constraints.of(schema, mean=True)
    relative = relative_noise(constraints)
    assert relative is not None
    in_ball = gaussian(7, 2.0, 1.0, 1.0, 0.0).fixed_law
    squares = np.outer(constraints.units, constraints.units) ** 2
    expected = in_ball.cell_variances()[1:, 1:] * squares
    scale = float(constraints.row_norm or 1.0)
    variances = CellVariances.of(in_ball, scale, relative)
    cells = variances.off_diagonal * np.outer(relative, relative)
    np.fill_diagonal(cells, variances.diagonal * relative**2)
    np.testing.assert_allclose(cells, expected, rtol=1e-9)
    assert abs(CellVariances.of(in_ball, scale).off_diagonal / expected[0, 1] - 1.0) > 0.5
    assert relative_noise(Constraints.of(SCHEMA, mean=True)) is None


@pytest.mark.parametrize("mean", [True, False])
def test_sums_of_weighted_columns_come_with_their_own_variances(mean: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """In column units, what reaches the repair; without a mean only free features have sums."""
    table, _ = people(300)
    schema = Schema(
        *(changed(one, weight=weight) for one, weight in zip(SCHEMA.columns, [16, 4, 1, 1 / 4, 1], strict=True))
    )
    found: list[np.ndarray] = []

    def read(noisy: NoisySums, *rest: Any, **options: Any) -> Any:
        found.append(noisy.sum_variance)
        return structured_moments(noisy, *rest, **options)

    for module in ("repair", "structured"):
        monkeypatch.setattr(f"dpmoments.repair.{module}.structured_moments", read)
    release = dpm.release(
        table, schema, mechanism="gaussian", rho=5.0, neighbors="replace_one", mean=mean, insecure_seed=1
    )
    assert np.isfinite(release.gram).all()
    constraints = Constraints.of(schema, mean=mean)
    law, relative = release.noise, relative_noise(constraints)
    assert law is not None
    assert relative is not None
    free = list(constraints.free)
    assert len(free) == 1 + (not mean)
    if mean:
        np.testing.assert_allclose(found[0], law.sum_variances * constraints.units**2, rtol=1e-9)
    else:
        cell = CellVariances.of(law, float(constraints.row_norm or 1.0)).off_diagonal
        np.testing.assert_allclose(found[0][free], cell * relative[free], rtol=1e-9)


def test_a_heavy_boolean_of_fractions_is_no_flag() -> None:
    """Its squares fall short by six of its own deviations, but by no six of a mean column's."""
    constraints = Constraints.of(Schema(Boolean("a"), Boolean("b")), mean=True)
    law = gaussian(2, 2.0, 1.0, 1.0, 0.0).fixed_law
    gram = np.diag([95.0, 95.0])
    noisy = NoisySums(100.0, np.zeros(2), gram, np.zeros(2))
    kept = structured._without_fractions(
        noisy, law, CellVariances(2.0, 1.0, np.array([0.1, 10.0])), constraints, np.zeros(2), 0.0
    )
    assert kept.flags == (1,)
    alike = structured._without_fractions(noisy, law, CellVariances(2.0, 1.0), constraints, np.zeros(2), 0.0)
    assert alike.flags == (0, 1)


def test_a_weighted_column_keeps_more_of_its_dependence(monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of its pairs and of all others over those with columns taken as alike, in the same noise."""
    rng = np.random.default_rng(5)
    n, m, k = 5000, 12, 4
    hidden = rng.normal(size=(n, 1))
    answers = np.digitize(0.4 * hidden + rng.normal(size=(n, m)), [-0.8, 0.1, 0.9])
    frame = pd.DataFrame({f"q{j}": np.array(list("abcd"))[answers[:, j]] for j in range(m)})
    schema = Schema(*[Categorical(f"q{j}", list("abcd"), weight=16 if j == 0 else 1) for j in range(m)])
    truth = np.cov(np.eye(k)[answers].reshape(n, m * k).T, bias=True)

    def errors() -> np.ndarray:
        result = []
        for seed in range(8):
            release = dpm.release(frame, schema, epsilon=1.0, insecure_seed=seed)
            squares = (release.covariance - truth) ** 2
            result.append([squares[:k, k:].sum(), squares[k:, k:].sum()])
        return np.sqrt(np.mean(result, axis=0))

    own = errors()
    monkeypatch.setattr(structured, "relative_noise", lambda _: None)
    alike = errors()
    assert own[0] < 0.95 * alike[0]
    assert own[1] < alike[1]


def test_posterior_moments_are_those_of_the_mixture() -> None:
    """Their stated variances are the errors that they make, on cells drawn from such a mixture."""
    rng = np.random.default_rng(5)
    scales, noise = rng.uniform(0.1, 0.5, 5000), np.full(5000, 0.02**2)
    truth = scales * rng.choice([0.0, 0.3], 5000, p=[0.8, 0.2]) * rng.normal(size=5000)
    cells = truth + rng.normal(size=5000) * 0.02
    means, variances = _posterior_moments(cells, noise, scales)
    assert np.mean((means - truth) ** 2) < 0.6 * np.mean((cells - truth) ** 2)
    assert ((means * cells >= 0) & (np.abs(means) <= np.abs(cells))).all()
    assert np.mean((means - truth) ** 2) == pytest.approx(np.mean(variances), rel=0.15)
    same = _posterior_moments(cells * 7.0, noise * 49.0, scales * 7.0)
    np.testing.assert_allclose(same[0], means * 7.0, rtol=1e-9)
    exact = _posterior_moments(cells, np.zeros(5000), scales)[0]
    np.testing.assert_allclose(exact[np.abs(cells) > 0], cells[np.abs(cells) > 0], rtol=1e-6)
    assert _SPREADS[0] == 0.0
    assert not _posterior_moments(cells, noise, np.zeros(5000))[0].any()


def test_level_shares_are_the_projection_on_the_simplex() -> None:
    rng = np.random.default_rng(6)
    grid = np.array([p for p in itertools.product(np.linspace(0, 1, 51), repeat=3) if sum(p) <= 1 + 1e-9])
    for _ in range(20):
        shares = rng.normal(0.3, 0.5, 3)
        for complete in (True, False):
            allowed = grid[np.isclose(grid.sum(axis=1), 1.0)] if complete else grid
            found = level_shares(shares, complete=complete)
            assert found.min() >= 0
            assert found.sum() <= 1 + 1e-12
            best = np.min(((allowed - shares) ** 2).sum(axis=1))
            assert ((found - shares) ** 2).sum() <= best + 1e-12


def test_a_possible_covariance_stays() -> None:
    """Moments of a table are not moved, but for the rounding of a lattice: nothing that is claimed is false of them."""
    table, schema = people(500)
    encoded = np.column_stack(
        [table.region == level for level in ("north", "south", "east")]
        + [
            table.age / 50 - 1,
            table.job == "a",
            table.job == "b",
            2.0 * table.smoker - 1,
            table.sex == "f",
            table.sex == "m",
        ]
    ).astype(float)
    constraints = Constraints.of(schema, mean=True)
    mean, covariance = encoded.mean(axis=0), np.cov(encoded.T, bias=True)
    levels = CompletedLevels.of(constraints, possible_mean(mean, constraints))
    np.testing.assert_allclose(possible_covariance(levels.extended(covariance), levels), covariance, atol=1e-12)
    moved = covariance.copy()
    moved[0, 4] = moved[4, 0] = -0.9
    changed = possible_covariance(levels.extended(moved), levels)
    assert np.linalg.eigvalsh(changed)[0] > -1e-12
    assert -mean[0] * mean[4] - 1e-12 <= changed[0, 4] <= covariance[0, 4]


def test_without_noise_the_repair_finds_the_table() -> None:
    table, schema = people(400)
    for neighbors, mean in itertools.product(("replace_one", "add_remove"), (True, False)):
        exact = dpm.release(table, schema, epsilon=1e13, neighbors=neighbors, mean=mean, insecure_seed=0)
        np.testing.assert_allclose(exact.gram, exact.with_repair("none").gram, atol=0.05)


def test_a_boolean_of_fractions_is_no_flag() -> None:
    """Nothing in the schema says so; the squares do, where they stand out of the noise."""
    table, schema = people(3000)
    table["smoker"] = np.where(table.smoker, 0.7, 0.2)
    released = dpm.release(table, schema, epsilon=100.0, insecure_seed=0)
    flag = released.feature_names.index("smoker")
    assert released.covariance[flag, flag] == pytest.approx(table.smoker.var(), rel=0.1)
    assert released.covariance[flag, flag] < 0.5 * released.mean[flag] * (1 - released.mean[flag])


def test_constraints_claim_only_what_is_true() -> None:
    clipped = Schema(*SCHEMA.columns, row_norm=1.5)
    assert not Constraints.of(clipped, mean=True).counts
    assert Constraints.of(SCHEMA, mean=False).flags == ()
    assert not Constraints.of(Schema(Boolean("a", missing="center")), mean=True).counts
    assert not Constraints.of(Schema.unit_ball(3), mean=True).counts
    assert not Constraints.of(Schema(Categorical("a", ["x"], other="zero")), mean=True).certain
    only = Schema(Numeric("age", 0, 1), Categorical("a", ["x"]))
    assert Constraints.of(only, mean=True).certain == (1,)
    described = dpm.release(
        pd.DataFrame({"age": [0.5] * 9, "a": ["x"] * 9}), only, epsilon=1.0, insecure_seed=0
    ).describe()
    assert described.mean_noise[1] == 0.0 < described.mean_noise[0]
    assert described.mean is not None
    assert described.mean[1] == 1.0


def test_auto_is_structured_where_there_are_counts() -> None:
    table, schema = people(300)
    released = dpm.release(table, schema, epsilon=1.0, insecure_seed=0)
    np.testing.assert_array_equal(released.covariance, released.with_repair("structured").covariance)
    assert not np.allclose(released.covariance, released.with_repair("spectral").covariance)
    numeric = dpm.release(
        table[["age"]].assign(b=table.age), Schema(Numeric("age", 0, 100), Numeric("b", 0, 100)), epsilon=1.0
    )
    for repair in ("structured", "spectral"):
        np.testing.assert_array_equal(numeric.covariance, numeric.with_repair(repair).covariance)


def test_moved_rows_use_inequalities_alone() -> None:
    """About a private center: the equations are not used, and what comes out is possible all the same."""
    table, schema = people(400)
    released = dpm.release(table, schema, epsilon=2.0, insecure_seed=3)
    constraints, center = Constraints.of(schema, mean=True), np.full(released.schema.n_features, 0.05)
    count, noise, box = released.n_rows, released.noise, released._mean_box
    sums = np.asarray(released.noisy_sum) - count * center
    cross = np.outer(center, released.noisy_sum)
    gram = released.noisy_gram - cross - cross.T + count * np.outer(center, center)
    found = {}
    for moved in (True, False):
        mean, about = repair_moments(
            count, sums, gram, noise, Repair.AUTO, box=box, center=center, constraints=constraints, rows_moved=moved
        )
        assert mean is not None
        found[moved] = about / count - np.outer(mean, mean)
        scale = float(schema.row_norm or 1.0)
        levels = (center + mean) * scale
        for block in constraints.blocks:
            shares = levels[block.features]
            expected = np.diag(shares) - np.outer(shares, shares)
            np.testing.assert_allclose(found[moved][block.features, block.features] * scale**2, expected, atol=1e-9)
        assert np.linalg.eigvalsh(found[moved])[0] > -1e-9
    np.testing.assert_array_equal(found[True], found[False])
    about_zero = repair_moments(
        count,
        released.noisy_sum,
        released.noisy_gram,
        noise,
        Repair.AUTO,
        box=box,
        constraints=constraints,
        rows_moved=True,
    )[1]
    assert not np.allclose(about_zero, released.with_repair("structured")._repaired[1])


def test_a_mechanism_without_a_noise_law_shows_nothing_impossible_either() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"pay": rng.lognormal(3, 1, 3000), "sex": rng.choice(["f", "m"], 3000), "old": rng.random(3000) < 0.1}
    )
    schema = Schema(Numeric("pay", scale=(0.1, 1e3)), Categorical("sex", ["f", "m"]), Boolean("old"))
    released = dpm.release(table, schema, epsilon=2.0, delta=1e-6, insecure_seed=0)
    assert released.mechanism == "coinpress"
    assert released.noise is None or released.noise.caveats
    found = {what for what in impossible(released) if what != "a variance above that of any bounded column"}
    assert found == set()


def test_the_count_is_floored() -> None:
    law = gaussian(2, 2.0, 1.0, 1.0, 400.0).law()
    assert floored_count(5.0, law) == 20.0
    assert floored_count(-1e9, law) == 20.0
    assert floored_count(21.5, law) == 21.5
    public = gaussian(2, 2.0, 1.0, 1.0, 0.0).law()
    assert floored_count(3.0, public) == 3.0
    assert few_rows_message(3.0, public) is None
    assert few_rows_message(_FEW_ROWS * 20.0, law) is None is not few_rows_message(_FEW_ROWS * 20.0 - 1.0, law)


def test_few_rows_do_not_explode_and_are_said_aloud() -> None:
    """178 rows at ε = 0.1, where the noisy count is often next to 0 or below."""
    wine = dpm.datasets.wine()
    exact = dpm.release(
        wine.frame, wine.schema, epsilon=1e13, neighbors="replace_one", insecure_seed=0
    ).unit_ball_covariance
    errors = []
    for seed in range(30):
        released = dpm.release(
            wine.frame, wine.schema, epsilon=0.1, mechanism="matrix-laplace", insecure_seed=seed, repair="none"
        )
        errors.append(np.linalg.norm(released.unit_ball_covariance - exact) / np.linalg.norm(exact))
        assert released.n_rows >= math.sqrt(released.noise.count_variance) - 0.5  # type: ignore[union-attr]
        words = "too-few-rows"
        assert words in codes(released.warnings)
        repaired = released.with_repair("auto")
        assert str(released.warnings[0]) in repaired.describe().summary()
        answers = (repaired.pca(2), repaired.ridge("proline", alpha=1.0))
        assert all(words in answer.summary() and words in answer.to_dict()["warning"] for answer in answers)
    assert np.mean(errors) < 200
    enough = dpm.release(wine.frame, wine.schema, epsilon=100.0, mechanism="matrix-laplace", insecure_seed=0)
    assert enough.warnings == ()
    assert enough.describe().warning == ""


def test_joint_shares_get_their_margins() -> None:
    rng = np.random.default_rng(7)
    for _ in range(50):
        rows, columns = rng.dirichlet(np.ones(4)), rng.dirichlet(np.ones(3))
        joint = _with_margins(np.outer(rows, columns) + 0.1 * rng.normal(size=(4, 3)), rows, columns)
        assert joint.min() >= 0.0
        np.testing.assert_allclose(joint.sum(axis=0), columns, atol=1e-14)
        np.testing.assert_allclose(joint.sum(axis=1), rows, atol=1e-14)
        np.testing.assert_allclose(_with_margins(joint, rows, columns), joint, atol=1e-14)


def test_noisy_shares_are_pulled_to_their_average() -> None:
    """By what noise explains: to the average itself where it explains everything, not at all where there is none."""
    schema = Schema(Categorical("a", list("abcdef"), missing="zero"), Numeric("x", 0, 1))
    constraints = Constraints.of(schema, mean=True)
    rng = np.random.default_rng(8)
    truth, errors = np.array([0.3, 0.25, 0.15, 0.1, 0.05, 0.05, 0.2]), []
    for deviation in (0.0, 0.05, 100.0):
        for _ in range(200):
            shares = truth + deviation * rng.normal(size=7)
            noisy = NoisySums(10.0, 10.0 * shares, np.zeros((7, 7)), np.full(7, (10.0 * deviation) ** 2))
            found = _steadied(shares, noisy, constraints)
            assert found[:6].sum() == pytest.approx(shares[:6].sum())
            assert found[6] == shares[6]
            if deviation == 0.0:
                np.testing.assert_array_equal(found, shares)
            errors.append((deviation, np.sum((found - truth)[:6] ** 2), np.sum((shares - truth)[:6] ** 2)))
    for deviation, most in ((0.05, 0.97), (100.0, 0.6)):
        after, before = np.mean([error[1:] for error in errors if error[0] == deviation], axis=0)
        assert after < most * before


def gain(table: Any, schema: Schema, epsilon: float, trials: int) -> float:
    """Mean error of the covariance after the spectral repair over that after the structured one."""
    exact = dpm.release(table, schema, epsilon=1e13, neighbors="replace_one", repair="none", insecure_seed=0)
    errors = np.zeros(2)
    for seed in range(trials):
        released = dpm.release(table, schema, epsilon=epsilon, mechanism="matrix-laplace", insecure_seed=seed)
        for place, repair in enumerate(("spectral", "structured")):
            off = released.with_repair(repair).unit_ball_covariance - exact.unit_ball_covariance
            errors[place] += np.linalg.norm(off)
    return float(errors[0] / errors[1])


@pytest.mark.slow
def test_adult_gains_what_is_documented() -> None:
    """docs/evidence/practice.md; without the agreement of margins it is 1.55 at ε = 3.

    It was 1.85 before noise was added about the public center of levels, which took 9 % off the spectral repair's error and
    4 % off this one's.
    """
    adult = dpm.datasets.adult()
    assert gain(adult.frame, adult.schema, 3.0, 2) > 1.72
    assert gain(adult.frame, adult.schema, 0.3, 2) > 2.0


def test_a_narrow_number_takes_nothing_from_levels() -> None:
    """A number of a fiftieth of its bounds beside dependent levels (×0.7 if projections weigh it in its own scale)."""
    rng = np.random.default_rng(73)
    codes = [rng.integers(0, 3, 1200)]
    for _ in range(5):
        codes.append(np.where(rng.random(1200) < 0.7, codes[-1], rng.integers(0, 3, 1200)))
    table = pd.DataFrame({f"c{i}": code for i, code in enumerate(codes)} | {"x": codes[0] + rng.exponential(1.0, 1200)})
    schema = Schema(*[Categorical(f"c{i}", [0, 1, 2]) for i in range(6)], Numeric("x", 0, 50))
    assert gain(table, schema, 10.0, 4) > 1.1


def test_few_rows_lose_nothing() -> None:
    """Noise above all rows: a few single columns beside many levels follow the repair of the whole (else ×0.9)."""
    rng = np.random.default_rng(72)
    lean = rng.normal(size=500)
    answers = {f"q{i}": np.clip(np.round(3 + 0.7 * lean + rng.normal(size=500)), 1, 5).astype(int) for i in range(6)}
    amounts = {f"x{i}": np.where(rng.random(500) < 0.5, 0.0, np.exp(rng.normal(3, 1, 500))) for i in range(6)}
    columns = [Categorical(name, [1, 2, 3, 4, 5]) for name in answers] + [Numeric(name, 0, 1000) for name in amounts]
    assert gain(pd.DataFrame(answers | amounts), Schema(*columns), 0.3, 10) > 1.1
