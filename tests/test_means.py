"""Estimators of means: accuracy, exact laws of their parts, units, and refusals."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import dpmoments as dpm
from dpmoments.mechanisms.base import MomentShape
from dpmoments.mechanisms.means.base import NoisyMean
from dpmoments.mechanisms.means.karwa_vadhan import _paired_differences, private_scales
from dpmoments.mechanisms.means.parts.clipped_mean import noisy_clipped_sums
from dpmoments.mechanisms.means.parts.coordinatewise import choose, clamped_mean, zoom
from dpmoments.mechanisms.means.symmetric_quantiles import private_quantile
from dpmoments.mechanisms.means.variance_aware import _Run
from dpmoments.mechanisms.registry import MEAN_MECHANISMS, make_mean_mechanism
from dpmoments.noise.entropy import insecure_generator, secure_generator
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.release_mean import release_mean
from dpmoments.rows.rows import Rows

OPTIONS: dict[str, dict[str, Any]] = {
    "coinpress": {"radius": 100.0, "scale": 1.0},
    "karwa-vadhan": {"radius": 100.0, "scale": 1.0},
    "naive": {"radius": 100.0, "scale": 1.0},
    "symq": {"radius": 100.0},
    "variance-aware": {},
}
every_mechanism = pytest.mark.parametrize("name", sorted(MEAN_MECHANISMS))


def rows_of(table: np.ndarray, neighbors: str = "replace_one") -> Rows:
    return Rows.of(table, dpm.Schema.unbounded(table.shape[1]), neighbors=neighbors, threads=1)


def run(
    name: str, table: np.ndarray, seed: int, rho: float = 0.5, neighbors: str = "replace_one", **options: Any
) -> NoisyMean:
    n, d = table.shape
    shape = MomentShape(d, n_rows=n if neighbors == "replace_one" else None, row_norm=None)
    plan = make_mean_mechanism(name, **options).plan(shape, PrivacyBudget.zcdp(rho), neighbors)
    return plan.run(rows_of(table, neighbors), insecure_generator(seed))


def errors(name: str, n: int, d: int, trials: int, center: float = 0.0, **options: Any) -> tuple[float, float]:
    """Mean errors, private and not."""
    rng = np.random.default_rng(0)
    private, plain = [], []
    for trial in range(trials):
        table = rng.normal(center, 1.0, size=(n, d))
        private.append(np.linalg.norm(run(name, table, trial, **options).mean - center))
        plain.append(np.linalg.norm(table.mean(axis=0) - center))
    return float(np.mean(private)), float(np.mean(plain))


def test_coinpress_comes_close_to_no_privacy_whatever_the_radius() -> None:
    """Published at n = 1000, d = 50: 22 to 27 % over the non-private error; 0.277 at R = 10⁴√d with ten steps."""
    for radius, seeds in ((math.sqrt(50), 8), (1e6 * math.sqrt(50), 8)):
        private, plain = errors("coinpress", 1000, 50, seeds, radius=radius, scale=1.0)
        assert private <= 1.16 * plain, radius
        assert private <= 0.26, radius


def test_the_variance_aware_mean_needs_no_radius_and_beats_those_that_do() -> None:
    center, n, d = 40.0, 1000, 10
    found = {
        name: errors(name, n, d, 3, center, **OPTIONS[name])[0]
        for name in ("variance-aware", "naive", "karwa-vadhan", "symq")
    }
    assert found["variance-aware"] <= min(found[name] for name in found if name != "variance-aware")
    far, plain = errors("variance-aware", n, d, 4, 1e9)
    assert far <= 1.3 * plain


def test_the_variance_aware_mean_shapes_its_noise() -> None:
    """Scales from 1 to 10⁻⁴: spherical noise would add √d · √Σσ² where this adds Σσ."""
    rng, scales = np.random.default_rng(1), np.geomspace(1.0, 1e-4, 40)
    excess: dict[str, list[float]] = {"variance-aware": [], "coinpress": []}
    for trial in range(4):
        table = 3.0 + rng.normal(size=(1000, 40)) * scales
        plain = np.linalg.norm(table.mean(axis=0) - 3.0)
        excess["variance-aware"].append(np.linalg.norm(run("variance-aware", table, trial).mean - 3.0) / plain)
        spherical = run("coinpress", table, trial, radius=100.0, scale=1.0)
        excess["coinpress"].append(np.linalg.norm(spherical.mean - 3.0) / plain)
    assert np.mean(excess["variance-aware"]) < 1.25
    assert np.mean(excess["coinpress"]) > 1.5


@pytest.mark.parametrize("name", ["coinpress", "variance-aware"])
def test_add_remove_hides_the_number_of_rows(name: str) -> None:
    table = np.random.default_rng(2).normal(5.0, 1.0, size=(2000, 4))
    noisy = run(name, table, 0, neighbors="add_remove", **OPTIONS[name])
    assert noisy.count != 2000
    assert noisy.count == pytest.approx(2000, abs=100)
    np.testing.assert_allclose(noisy.mean, 5.0, atol=0.2)


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_noise_of_clipped_sums_is_that_of_the_radius(neighbors: Neighbors) -> None:
    table, radius = np.random.default_rng(3).normal(size=(30, 2)) * 1e6, 3.0
    rows, generator = rows_of(table), insecure_generator(0)
    clipped = table / np.linalg.norm(table, axis=1, keepdims=True) * radius
    draws = [
        noisy_clipped_sums(
            rows,
            generator,
            neighbors,
            rho=0.2,
            squares_rho=0.1,
            center=np.zeros(2),
            linear=np.eye(2),
            radius=radius,
        )
        for _ in range(300)
    ]
    sums = np.concatenate([draw.sum - clipped.sum(axis=0) for draw in draws])
    squares = np.concatenate([draw.squares - (clipped**2).sum(axis=0) for draw in draws])
    replace_one = neighbors is Neighbors.REPLACE_ONE
    sum_scale = (2.0 if replace_one else 1.0) * radius / math.sqrt(2 * 0.2)
    squares_scale = (math.sqrt(2.0) if replace_one else 1.0) * radius**2 / math.sqrt(2 * 0.1)
    for sample, scale in ((sums, sum_scale), (squares, squares_scale)):
        assert stats.kstest(sample / scale, "norm").pvalue > 1e-3
        assert stats.kstest(sample / scale * 2, "norm").pvalue < 1e-6  # planted fault


def test_squares_move_by_no_more_than_the_gram_matrix() -> None:
    rng = np.random.default_rng(4)
    worst = 0.0
    for _ in range(5000):
        one, other = rng.normal(size=(2, 3)) * (rng.random((2, 3)) < 0.6)
        one, other = (row / max(np.linalg.norm(row), 1e-9) for row in (one, other))
        worst = max(worst, float(np.linalg.norm(one**2 - other**2)))
    assert math.sqrt(2) * 0.99 <= worst <= math.sqrt(2) + 1e-12


def test_choice_has_the_law_of_the_exponential_mechanism() -> None:
    scores, generator = np.array([5.0, 4.0, 1.0, 0.0]), insecure_generator(5)
    for loss, epsilon in ((PrivacyBudget.pure(0.8), 0.8), (PrivacyBudget.zcdp(0.08), 0.8)):
        drawn = np.bincount([choose(scores, loss, generator) for _ in range(20_000)], minlength=4)
        weights = np.exp(epsilon * scores / 2)
        assert stats.chisquare(drawn, 20_000 * weights / weights.sum()).pvalue > 1e-3
        faulty = np.exp(epsilon * scores)  # planted fault: twice the ε that was paid for
        assert stats.chisquare(drawn, 20_000 * faulty / faulty.sum()).pvalue < 1e-6
    assert choose(np.array([-1e9, 1e9]), PrivacyBudget.pure(10.0), generator) == 1


def test_private_quantile_has_the_law_of_its_cells() -> None:
    """One level: the probabilities of all cells against the definition, row by row."""
    table, level, radius, loss = (
        np.array([[-1.5], [-0.2], [-0.1], [0.4], [1.1], [1.9]]),
        0.35,
        1.0,
        PrivacyBudget.pure(2.0),
    )
    generator = insecure_generator(6)
    drawn = [
        private_quantile(rows_of(table), generator, loss, feature=0, level=level, radius=radius, width=0.5)
        for _ in range(3000)
    ]
    edges = np.linspace(-2.0, 2.0, 9)
    scores = []
    for lower, upper in itertools.pairwise(edges):
        first, last = (table < lower).sum(), (table < upper).sum()
        scores.append(-max(first - level * 6, level * 6 - last, 0.0))
    weights = np.exp(np.array(scores))
    counts = np.histogram(drawn, edges)[0]
    assert stats.chisquare(counts, 3000 * weights / weights.sum()).pvalue > 1e-3


def test_quantile_scores_move_by_at_most_one() -> None:
    rng, edges, level = np.random.default_rng(7), np.linspace(-3, 3, 30), 0.35

    def scores(values: np.ndarray) -> np.ndarray:
        ranks = np.searchsorted(np.sort(values), edges)
        target = level * len(values)
        return -np.maximum(np.maximum(ranks[:-1] - target, target - ranks[1:]), 0.0)

    worst = 0.0
    for _ in range(2000):
        values = rng.normal(size=20)
        other = values.copy()
        other[0] = rng.normal() * 5
        worst = max(worst, float(np.abs(scores(values) - scores(other)).max()))
    assert worst == pytest.approx(1.0)


@pytest.mark.parametrize("loss", [PrivacyBudget.pure(0.7), PrivacyBudget.zcdp(0.1)], ids=["pure", "zcdp"])
def test_clamped_mean_divides_by_the_public_count(loss: PrivacyBudget) -> None:
    """All rows but one far outside: dividing by the number in range would leave the mean near that row."""
    table = np.array([[1e9]] * 99 + [[0.3]])
    generator = insecure_generator(8)
    draws = np.array(
        [
            clamped_mean(rows_of(table), generator, loss, feature=0, center=0.0, half_width=1.0, n_rows=100.0)
            for _ in range(500)
        ]
    )
    noise = (draws - (99 + 0.3) / 100) * 100
    law = stats.laplace(scale=2 / 0.7) if loss.epsilon else stats.norm(scale=2 / math.sqrt(0.2))
    assert stats.kstest(noise, law.cdf).pvalue > 1e-3
    assert stats.kstest(noise * 2, law.cdf).pvalue < 1e-6  # planted fault: half the sensitivity


def test_scales_come_from_pairs_whatever_the_blocks() -> None:
    rng = np.random.default_rng(9)
    table = rng.normal([1e6, -5.0, 0.0], [100.0, 1.0, 1e-3], size=(4001, 3))
    found = private_scales(rows_of(table), insecure_generator(0), PrivacyBudget.zcdp(0.05))
    assert (found / [100.0, 1.0, 1e-3] > 0.5).all()
    assert (found / [100.0, 1.0, 1e-3] < 4.0).all()

    class Blocks:
        def encoded_blocks(self) -> Any:
            return iter(np.split(table, [1, 4, 4, 1001, 3000]))

    pairs = np.concatenate(list(_paired_differences(Blocks())))  # type: ignore[arg-type]
    np.testing.assert_array_equal(pairs, table[1:4000:2] - table[0:4000:2])


def test_search_levels_end_at_the_width_asked_for() -> None:
    for upper, width in ((1.0, 1.0), (1.0, 1e-3), (1e9, 1.0), (1e30, 1e-3)):
        widths = zoom(0.0, upper, width)
        assert widths[-1] == pytest.approx(width)
        parents = [upper, *widths[:-1]]
        assert all(parent / child <= 4096 * (1 + 1e-9) for parent, child in zip(parents, widths, strict=True))


def test_the_variance_aware_run_never_overspends(monkeypatch: pytest.MonkeyPatch) -> None:
    spent: list[float] = []
    original = _Run.spend

    def spend(self: _Run, rho: float) -> float:
        spent.append(rho)
        return original(self, rho)

    monkeypatch.setattr(_Run, "spend", spend)
    rng = np.random.default_rng(10)
    tables = [
        rng.normal(size=(1000, 5)),
        np.zeros((300, 3)),
        rng.normal(size=(50, 20)) * 10.0 ** rng.uniform(-30, 30, size=(50, 1)),
        rng.normal(size=(3, 2)),
        rng.normal(size=(20_000, 1)) + 1e12,
    ]
    for table in tables:
        for rho in (1e-6, 0.5, 50.0):
            spent.clear()
            mean = run("variance-aware", table, 0, rho).mean
            assert np.isfinite(mean).all()
            assert 0.7 * rho < math.fsum(spent) <= rho


@every_mechanism
def test_release_is_in_the_tables_own_units(name: str) -> None:
    rng = np.random.default_rng(11)
    schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Numeric("income", 0, 200_000))
    table = np.column_stack([rng.normal(40, 10, 5000).clip(0, 100), rng.normal(50_000, 20_000, 5000).clip(0, 2e5)])
    found = release_mean(table, schema, rho=1.0, neighbors="replace_one", mechanism=name, insecure_seed=0)
    assert found.feature_names == ("age", "income")
    assert abs(found.mean[0] - table[:, 0].mean()) < 2
    assert abs(found.mean[1] - table[:, 1].mean()) < 4000
    assert found.n_rows == 5000
    assert not found.privacy.private
    assert found.privacy.rho == 1.0
    assert "NOT PRIVATE" in repr(found)


@every_mechanism
def test_same_seed_same_bits_and_secure_runs_differ(name: str) -> None:
    table = np.random.default_rng(12).normal(size=(400, 3))
    before = table.tobytes()
    first, again, other = (run(name, table, seed, **OPTIONS[name]).mean for seed in (1, 1, 2))
    assert first.tobytes() == again.tobytes() != other.tobytes()
    assert table.tobytes() == before
    shape = MomentShape(3, n_rows=400, row_norm=None)
    plan = make_mean_mechanism(name, **OPTIONS[name]).plan(shape, PrivacyBudget.zcdp(0.5), "replace_one")
    secure = [plan.run(rows_of(table), secure_generator()).mean.tobytes() for _ in range(2)]
    assert secure[0] != secure[1]


@every_mechanism
def test_budgets_and_neighbours_a_mechanism_does_not_know_are_refused(name: str) -> None:
    mechanism = make_mean_mechanism(name, **OPTIONS[name])
    shape = MomentShape(2, n_rows=100, row_norm=None)
    for budget in (PrivacyBudget.pure(1.0), PrivacyBudget.approximate(1.0, 1e-6), PrivacyBudget.zcdp(0.5)):
        if budget.kind in mechanism.budget_kinds:
            assert mechanism.plan(shape, budget, "replace_one").cost == budget
        else:
            with pytest.raises(ValueError, match="budget"):
                mechanism.plan(shape, budget, "replace_one")
    if Neighbors.ADD_REMOVE not in mechanism.supported_neighbors:
        with pytest.raises(ValueError, match="add_remove"):
            mechanism.plan(shape, PrivacyBudget.zcdp(0.5), "add_remove")
    with pytest.raises(ValueError, match="empty"):
        mechanism.plan(MomentShape(2, n_rows=0), PrivacyBudget.zcdp(0.5), "replace_one")


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("nonsense", {}, "no estimator"),
        ("coinpress", {"radius": -1.0}, "positive"),
        ("coinpress", {"radius": 1.0, "scale": 1.0, "covariance": [[1.0]]}, "not both"),
        ("coinpress", {"covariance": [[1.0, 2.0], [2.0, 1.0]]}, "positive definite"),
        ("coinpress", {"steps": 0}, "steps"),
        ("coinpress", {"split": ()}, "positive share"),
        ("symq", {"quantile": 0.6}, "between 0 and 0.5"),
    ],
)
def test_impossible_options_are_refused(name: str, options: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        make_mean_mechanism(name, **options)


def test_what_must_be_public_is_asked_for() -> None:
    table = np.zeros((10, 2))
    for name, words in (("coinpress", "radius"), ("naive", "radius"), ("symq", "radius"), ("karwa-vadhan", "radius")):
        with pytest.raises(ValueError, match=words):
            release_mean(table, dpm.Schema.unbounded(2), rho=1.0, neighbors="replace_one", mechanism=name)
    with pytest.raises(ValueError, match="scale"):
        release_mean(table, dpm.Schema.unbounded(2), rho=1.0, mechanism="coinpress", radius=1.0)
    with pytest.raises(ValueError, match="no rows"):
        release_mean(np.zeros((0, 2)), dpm.Schema.unbounded(2), rho=1.0, neighbors="replace_one")
    with pytest.raises(TypeError, match="Schema"):
        release_mean(table, "people.yaml", rho=1.0)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="configured already"):
        release_mean(table, dpm.Schema.unbounded(2), rho=1.0, mechanism=make_mean_mechanism("symq"), radius=1.0)
    for name in ("naive", "symq", "karwa-vadhan"):  # the default relation is that of release()
        with pytest.raises(ValueError, match="not defined for neighbors='add_remove': use 'replace_one'"):
            release_mean(table, dpm.Schema.unbounded(2), rho=1.0, mechanism=name)


def test_a_known_covariance_whitens() -> None:
    rng = np.random.default_rng(13)
    root = np.array([[100.0, 0.0], [1.0, 0.01]])
    table = rng.normal(size=(2000, 2)) @ root.T + [500.0, 6.0]
    found = run("coinpress", table, 0, radius=1e4, covariance=(root @ root.T).tolist())
    standardised = np.linalg.solve(root, found.mean - [500.0, 6.0])
    assert np.linalg.norm(standardised) < 0.1


def test_rows_far_outside_are_warned_of() -> None:
    table = np.random.default_rng(14).normal(1e5, 1.0, size=(2000, 3))
    found = run("coinpress", table, 0, radius=10.0, scale=1.0)
    assert any("most rows were clipped" in text for text in found.diagnostics["warnings"])
    starved = run("variance-aware", table, 0, rho=1e-8)
    assert any("budget is too small" in text for text in starved.diagnostics["warnings"])
