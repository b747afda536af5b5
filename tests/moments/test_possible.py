"""The repair: what no repaired release may show, its steps against plain versions, and that nothing in it jumps."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from dpmoments import Boolean, Categorical, Numeric, Schema
from dpmoments.moments import possible
from dpmoments.moments.possible import _SPREADS, posterior_mean, posterior_variance
from dpmoments.moments.repair import Repair, repair_moments
from dpmoments.schema.constraints import Constraints
from references import plain_repair as plain
from support.noise_models import gaussian

pytestmark = pytest.mark.long(sets=None)

SCHEMA = Schema(
    Categorical("region", ["north", "south", "east"]),
    Numeric("age", 0, 100),
    Categorical("job", ["a", "b"], missing="zero"),
    Boolean("smoker"),
    Categorical("sex", ["f", "m"]),
)
LEVELS = {column.name: column.levels for column in SCHEMA.columns if isinstance(column, Categorical)}
CONSTRAINTS = Constraints.of(SCHEMA, mean=True)
FEATURES = possible._Features.of(CONSTRAINTS)


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


def impossible(release: dpm.MomentRelease) -> list[str]:
    """What a release shows that no table has, in words; computed from its public properties, in the table's units."""
    found = []
    constraints = Constraints.of(release.schema, mean=True)
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
    matrix = release.covariance
    eigenvalues = np.linalg.eigvalsh(matrix)
    if eigenvalues[0] < -1e-9 * max(1.0, float(eigenvalues[-1])):
        found.append("a negative variance")
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
    if (variance > (upper - mean) * (mean - lower) * (1 + 1e-9) + 1e-9).any():
        found.append("a variance above what bounds and mean allow")
    return found


@pytest.mark.long
@pytest.mark.parametrize(
    ("part", "weights", "mechanism"),
    [(0, [1], "auto"), (1, [1], "matrix-laplace"), (2, [1], "laplace"), (0, [16, 1, 1 / 16], "auto")],
)
def test_a_repaired_release_shows_nothing_impossible(part: int, weights: list[float], mechanism: str) -> None:
    checked = 0
    for seed in range(30 * part, 30 * (part + 1)):
        rng = np.random.default_rng(seed)
        table, plain = random_table(rng)
        columns = zip(plain.columns, itertools.cycle(weights))
        schema = Schema(*(replace(column, weight=float(weight)) for column, weight in columns))
        released = dpm.release(
            table,
            schema,
            epsilon=float(rng.choice([0.01, 0.3, 1.0, 10.0, 1e6])),
            delta=float(rng.choice([0.0, 1e-9])) if mechanism == "auto" else 0.0,
            mechanism=mechanism,
            neighbors=str(rng.choice(["add_remove", "replace_one"])),
            insecure_seed=seed,
        )
        assert impossible(released) == [], seed
        checked += Constraints.of(schema, mean=True).counts
    assert checked > 18


def test_other_repairs_do_show_it() -> None:
    """The planted fault of the test above: without the structure its checks fail."""
    table, schema = people(300)
    released = dpm.release(table, schema, epsilon=0.3, mechanism="matrix-laplace", insecure_seed=1)
    assert impossible(released) == []
    for repair in ("none", "spectral", "clip"):
        assert {"rows with two levels of one column", "a count and a sum that differ"} <= set(
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


def own_moments(n: int) -> tuple[np.ndarray, np.ndarray]:
    """Mean and covariance of ``people``, in column units, with "no job"."""
    table, _ = people(n)
    levels = [(column, level) for column in ("region", "job", "sex") for level in LEVELS[column]]
    cells = {f"{column}={level}": table[column] == level for column, level in levels}
    cells |= {"age": table.age / 50 - 1, "smoker": 2.0 * table.smoker - 1, "none": table.job.isna()}
    rows = np.column_stack([cells[name] for name in (*SCHEMA.feature_names, "none")]).astype(float)
    return rows.mean(axis=0), np.cov(rows.T, bias=True)


def independent(covariance: np.ndarray) -> np.ndarray:
    return np.where(FEATURES.column[:, None] == FEATURES.column, covariance, 0.0)


@pytest.mark.parametrize("size", [0.0, 0.01, 0.3, 100.0])
def test_the_last_step_has_all_constraints_at_once(size: float) -> None:
    """Known blocks, margins, joint counts, means of groups and definiteness, whatever comes in."""
    mean, covariance = own_moments(500)
    known, rng = independent(covariance), np.random.default_rng(2)
    ends = (mean - FEATURES.lower, FEATURES.upper - mean)
    least = -np.minimum(np.outer(ends[0], ends[0]), np.outer(ends[1], ends[1]))
    most = np.minimum(np.outer(ends[0], ends[1]), np.outer(ends[1], ends[0]))
    for _ in range(20):
        half = size * rng.normal(size=covariance.shape)
        noisy = np.where(known != 0.0, known, covariance + half + half.T)
        found = possible.nearest_possible(noisy, known, mean, np.full(len(mean), size), FEATURES)
        np.testing.assert_allclose(independent(found), known, atol=1e-12)
        for block in FEATURES.blocks:
            np.testing.assert_allclose(found[block].sum(axis=0), 0.0, atol=1e-12)
        assert (found >= least - 1e-12).all()
        assert (found <= most + 1e-12).all()
        assert np.linalg.eigvalsh(found)[0] > -1e-12
        if size == 0.0:  # nothing that it claims is false of a table
            np.testing.assert_allclose(found, covariance, atol=1e-12)
        assert size < 0.1 or np.linalg.eigvalsh(possible._with_possible_counts(noisy, known, mean, FEATURES))[0] < -0.01


def test_joint_counts_are_those_of_transport_pair_by_pair() -> None:
    """Each pair of columns by itself, from both sides; a number counts as the two levels of its bounds."""
    mean, covariance = own_moments(500)
    half = 0.1 * np.random.default_rng(3).normal(size=covariance.shape)
    noisy, known = covariance + half + half.T, independent(covariance)
    found = possible._with_possible_counts(noisy, known, mean, FEATURES)
    columns = [list(block) for block in FEATURES.blocks] + [
        [i] for i in np.flatnonzero(FEATURES.kind != possible._LEVEL)
    ]
    for first, second in itertools.combinations(columns, 2):
        maps = [np.eye(len(each)) if len(each) > 1 else np.array([[0.5], [-0.5]]) for each in (first, second)]
        shares = [
            mean[each] if len(each) > 1 else np.array([(mean[each[0]] + 1) / 2, (1 - mean[each[0]]) / 2])
            for each in (first, second)
        ]
        joint = maps[0] @ noisy[np.ix_(first, second)] @ maps[1].T + np.outer(*shares)
        one = plain.possible_counts(joint, *shares)
        other = plain.possible_counts(joint.T, *shares[::-1]).T
        expected = (one + other) / 2 - np.outer(*shares)
        scale = [1.0 if len(each) > 1 else 2.0 for each in (first, second)]
        shown = found[np.ix_(first, second)] / (scale[0] * scale[1])
        np.testing.assert_allclose(shown, expected[: len(first), : len(second)], atol=1e-12)


def test_posterior_means_are_those_of_the_mixture() -> None:
    rng = np.random.default_rng(4)
    scales, variances = rng.uniform(0.1, 1.0, 30), rng.uniform(0.001, 0.01, 30)
    values = scales * rng.choice([0.0, 0.3], 30) * rng.normal(size=30) + np.sqrt(variances) * rng.normal(size=30)
    spreads = np.maximum(_SPREADS, 1e-9)
    expected = plain.posterior(values, variances, scales, spreads)
    np.testing.assert_allclose(posterior_mean(values, variances, scales), expected, rtol=1e-6, atol=1e-12)
    assert not posterior_mean(values, variances, np.zeros(30)).any()
    np.testing.assert_array_equal(posterior_variance(np.array([]), np.array([]), np.array([])), [])


def test_posteriors_of_variances_lose_less_than_what_was_measured() -> None:
    rng = np.random.default_rng(5)
    sizes = np.exp(rng.uniform(-2.0, 4.0, 300))
    observed = sizes + rng.normal(size=300)
    variances = posterior_variance(observed, np.ones(300), np.full(300, 60.0))
    assert (variances > 0.0).all()
    np.testing.assert_array_equal(variances[observed > 8.0], np.minimum(observed, 60.0)[observed > 8.0])
    faint = sizes < 3.0
    off = [np.mean(np.abs(np.log(np.maximum(each, 0.01) / sizes))[faint]) for each in (variances, observed)]
    assert off[0] < 0.75 * off[1]


def test_shares_of_levels_are_weighed_between_sums_and_squares() -> None:
    """Of independent noise by precision; squares are not heard where their noise is that of the sums, or far larger."""
    schema = Schema(Categorical("a", list("abc"), missing="zero"))
    constraints = Constraints.of(schema, mean=True)
    count, shares = 100.0, np.array([0.5, 0.2, 0.1])
    for of_sum, of_square in ((4.0, 1.0), (1.0, 4.0), (1.0, 1e9)):
        law = gaussian(3, of_square, of_square / 2.0, of_sum, 0.0).law()
        sums, squares = shares + [0.02, 0.0, 0.0], shares + [-0.02, 0.01, 0.0]
        trust = of_sum / (of_sum + of_square)
        found = possible._possible_mean(sums, squares, np.zeros(3), law, constraints)
        np.testing.assert_allclose(found, (1 - trust) * sums + trust * squares, rtol=1e-6)
        same = possible._possible_mean(sums, squares, np.zeros(3), None, constraints)
        np.testing.assert_array_equal(same, sums)
    assert count * constraints.units[0] > 0.0


@pytest.mark.parametrize("mechanism", ["standardized", "matrix-laplace", "laplace"])
@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_nothing_in_the_repair_jumps(mechanism: str, epsilon: float) -> None:
    """Released numbers that differ in their last digits give repaired ones that do: no digit decides a choice."""
    table, schema = people(2_000)
    released = dpm.release(table, schema, epsilon=epsilon, mechanism=mechanism, insecure_seed=0)
    rng, law = np.random.default_rng(6), released.noise
    scale = math.sqrt(law.energy) / released.n_rows  # type: ignore[union-attr]

    def repaired(size: float) -> np.ndarray:
        half = size * rng.normal(size=released.noisy_gram.shape)
        gram = released.noisy_gram + (half + half.T) * np.abs(released.noisy_gram)
        return replace(released, noisy_gram=gram).unit_ball_covariance

    exact = released.unit_ball_covariance
    for size in (1e-10, 1e-8):
        assert max(np.abs(repaired(size) - exact).max() for _ in range(5)) < 1e4 * size * (scale + np.abs(exact).max())


def test_a_mean_and_trace_of_rows_in_the_unit_ball() -> None:
    """Rows of norm 1 at most have E‖x‖² ≤ 1, which no bound of a column says."""
    law = gaussian(5, 1e4, 5e3, 1e3, 0.0).law()
    rng, constraints = np.random.default_rng(8), Constraints.of(Schema.unit_ball(5), mean=True)
    for _ in range(10):
        half = 100.0 * rng.normal(size=(5, 5))
        mean, gram = repair_moments(100, 100.0 * rng.normal(size=5), half + half.T, law, Repair.AUTO, constraints)
        assert mean is not None
        assert np.linalg.norm(mean) <= 1.0 + 1e-12
        assert np.trace(gram) <= 100.0 * (1.0 + 1e-12)
        assert np.linalg.eigvalsh(gram / 100 - np.outer(mean, mean))[0] > -1e-12


def test_without_a_mean_auto_is_spectral() -> None:
    table, schema = people(300)
    released = dpm.release(table, schema, epsilon=1.0, mean=False, insecure_seed=0)
    for repair in ("auto", "structured"):
        np.testing.assert_array_equal(released.with_repair(repair).gram, released.with_repair("spectral").gram)


def test_a_column_that_most_rows_lack_leaves_the_others_as_they_are() -> None:
    """The order is: moments of present values from what was drawn, then the repair, in coordinates of their own noise."""
    rng, n = np.random.default_rng(0), 3_000
    a = rng.uniform(20, 80, n)
    b = 0.5 * a + rng.normal(0, 10, n)
    y = np.where(rng.random(n) < 0.97, np.nan, rng.integers(1, 6, n))
    schema = Schema(Numeric("a", 0, 100), Numeric("b", -50, 120), Numeric("y", 1, 5, missing="available", fill=3))
    table = pd.DataFrame({"a": a, "b": b, "y": y})
    several = [dpm.release(table, schema, epsilon=3.0, insecure_seed=seed).covariance for seed in range(4)]
    deviations = np.sqrt([np.diag(covariance) for covariance in several])
    np.testing.assert_allclose(deviations.mean(axis=0)[:2], [a.std(), b.std()], rtol=0.05)


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


def test_a_mechanism_without_a_noise_law_shows_nothing_impossible_either() -> None:
    rng = np.random.default_rng(0)
    table = pd.DataFrame(
        {"pay": rng.lognormal(3, 1, 3000), "sex": rng.choice(["f", "m"], 3000), "old": rng.random(3000) < 0.1}
    )
    schema = Schema(Numeric("pay", scale=(0.1, 1e3)), Categorical("sex", ["f", "m"]), Boolean("old"))
    released = dpm.release(table, schema, epsilon=2.0, delta=1e-6, insecure_seed=0)
    assert released.mechanism == "coinpress"
    assert released.noise is None or released.noise.caveats
    found = {what for what in impossible(released) if what != "a variance above what bounds and mean allow"}
    assert found == set()


def gain(table: Any, schema: Schema, epsilon: float, trials: int) -> float:
    """Mean error of the covariance after the spectral repair over that after the structured one."""
    exact = dpm.release(
        table, schema, epsilon=1e9, mechanism="matrix-laplace", neighbors="replace_one", repair="none", insecure_seed=0
    )
    errors = np.zeros(2)
    for seed in range(trials):
        released = dpm.release(table, schema, epsilon=epsilon, mechanism="matrix-laplace", insecure_seed=seed)
        for place, repair in enumerate(("spectral", "structured")):
            off = released.with_repair(repair).unit_ball_covariance - exact.unit_ball_covariance
            errors[place] += np.linalg.norm(off)
    return float(errors[0] / errors[1])


def test_a_narrow_number_takes_nothing_from_levels() -> None:
    """A number of a fiftieth of its bounds beside dependent levels (×0.7 if projections weigh it in its own scale)."""
    rng = np.random.default_rng(73)
    codes = [rng.integers(0, 3, 1200)]
    for _ in range(5):
        codes.append(np.where(rng.random(1200) < 0.7, codes[-1], rng.integers(0, 3, 1200)))
    table = pd.DataFrame({f"c{i}": code for i, code in enumerate(codes)} | {"x": codes[0] + rng.exponential(1.0, 1200)})
    schema = Schema(*[Categorical(f"c{i}", [0, 1, 2]) for i in range(6)], Numeric("x", 0, 50))
    assert gain(table, schema, 10.0, 4) > 1.1
