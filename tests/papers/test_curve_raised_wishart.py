"""The bound for Wishart draws around matrices with raised eigenvalues: its lemma, its formula, and other pairs."""

import math

import mpmath as mp
import numpy as np
import pytest

from dpmoments.privacy import curves
from papers.test_curve_wishart_sampling import hockey_stick_by_simulation
from support.said import refused


def exponent(beta, epsilon, degrees, ratio):
    """The logarithm of the bound by one order, 1 + beta, as it is derived; 40 digits."""
    beta, kappa = mp.mpf(beta), 1 / mp.mpf(ratio)
    divergence = -mp.mpf(degrees) / 2 * (mp.log(1 + kappa) + mp.log(1 - beta * kappa) / beta)
    alpha = beta + 1
    return beta * (divergence - mp.mpf(epsilon)) - mp.log(alpha) + beta * mp.log(1 - 1 / alpha)


def reference_log_delta(epsilon, degrees, ratio):
    """The least exponent over orders of 2 and more, by ternary search: it is convex in the order."""
    with mp.workdps(40):
        low, high = mp.mpf(1), mp.mpf(ratio) * (1 - mp.mpf(2) ** -30)
        for _ in range(220):
            first, second = (2 * low + high) / 3, (low + 2 * high) / 3
            if exponent(first, epsilon, degrees, ratio) < exponent(second, epsilon, degrees, ratio):
                high = second
            else:
                low = first
        return float(min(exponent(low, epsilon, degrees, ratio), mp.mpf(0)))


@pytest.mark.parametrize("degrees", [1, 3, 50, 10_000, 2**34])
@pytest.mark.parametrize(("epsilon", "delta"), [(1e-3, 1e-6), (0.1, 1e-12), (1.0, 1e-6), (1.0, 0.1), (30.0, 1e-30)])
def test_against_many_digits_and_inversion(degrees, epsilon, delta):
    ratio = curves.raised_wishart_ratio(epsilon, delta, degrees)
    expected = reference_log_delta(epsilon, degrees, ratio)
    assert curves.raised_wishart_log_delta(epsilon, degrees, ratio) == pytest.approx(expected, abs=1e-10)
    assert expected <= math.log(delta)
    assert reference_log_delta(epsilon, degrees, ratio * (1 - 1e-6)) > math.log(delta)


@pytest.mark.parametrize("degrees", [1, 5, 50, 1000])
@pytest.mark.parametrize("epsilon", [0.1, 1.0, 4.0])
@pytest.mark.parametrize("delta", [1e-9, 1e-3])
def test_above_the_exact_curve_of_the_pair_that_one_row_makes(epsilon, delta, degrees):
    """That pair is one of those bounded, with ratio as padding; the bound costs little at usual budgets."""
    ratio = curves.raised_wishart_ratio(epsilon, delta, degrees)
    exact = curves.wishart_sampling_padding(epsilon, delta, degrees, "add_remove")
    assert exact < ratio < (1.3 if delta < 1e-6 else 2.0) * exact
    assert curves.wishart_sampling_delta(epsilon, degrees, ratio, "add_remove") < delta


def raised(matrix, least):
    eigenvalues, eigenvectors = np.linalg.eigh(matrix)
    return (eigenvectors * np.maximum(eigenvalues, least)) @ eigenvectors.T


def eigenvalue_distance(first, second):
    """√Σ(μ_i − 1)² over the generalized eigenvalues of a pair."""
    root = np.linalg.cholesky(second)
    whitened = np.linalg.solve(root, np.linalg.solve(root, first).T)
    return float(np.linalg.norm(np.linalg.eigvalsh(whitened) - 1.0))


def pairs_of_neighbors(size):
    """(G, G + zzᵀ) or (S + xxᵀ, S + yyᵀ) with F, of tables with eigenvalues on both sides of the bound."""
    generator = np.random.default_rng(30)
    for trial in range(size):
        d = 1 + trial % 5
        root = generator.standard_normal((d, d)) * generator.choice([0.0, 0.1, 1.0, 3.0], size=d)[:, None]
        base = root.T @ root
        x, y = (z / np.linalg.norm(z) for z in generator.standard_normal((2, d)))
        if trial % 2:
            y = y - (x @ y) * x if d > 1 else y
            norm = np.linalg.norm(y)
            yield base + np.outer(x, x), base + np.outer(y, y) / norm**2, math.sqrt(2.0)
        else:
            yield base + np.outer(x, x), base, 1.0


@pytest.mark.parametrize("least", [0.3, 1.0, 4.0])
def test_raised_neighbors_are_as_near_as_the_proof_says(least):
    shares = []
    for first, second, moves in pairs_of_neighbors(600):
        pair = raised(first, least), raised(second, least)
        shares += [eigenvalue_distance(*order) * least / moves for order in (pair, pair[::-1])]
        assert np.linalg.norm(pair[0] - pair[1]) <= moves * (1 + 1e-12)
    assert max(shares) <= 1.0 + 1e-9
    assert max(shares) > 0.8
    # Attained where a row joins what lies at the bound: no larger distance over the least eigenvalue would do.
    assert eigenvalue_distance(np.diag([least + 1.0, least]), least * np.eye(2)) * least == pytest.approx(1.0)


def test_more_than_one_direction_moves():
    """Planted fault: were raising a monotone function of matrices, one generalized eigenvalue alone would leave 1."""
    moved = []
    for first, second, moves in pairs_of_neighbors(200):
        if moves == 1.0 and len(first) > 2:
            values = np.linalg.eigvals(np.linalg.solve(raised(second, 1.0), raised(first, 1.0))).real
            moved.append((np.abs(values - 1.0) > 1e-6).sum())
            assert values.max() <= 2.0 + 1e-9
    assert max(moved) > 1


def log_moment(x, beta):
    """β times the Rényi divergence of order 1 + β of N(0, 1 + x) from N(0, 1)."""
    return -0.5 * (beta * np.log1p(x) + np.log1p(-beta * x))


@pytest.mark.parametrize("beta", [1.0, 2.0, 9.0])
def test_one_direction_that_takes_it_all_is_the_worst_of_orders_above_two(beta):
    generator = np.random.default_rng(31)
    for kappa in (0.01, 0.5 / beta, 0.95 / beta):
        splits = generator.standard_normal((2000, 4)) * generator.choice([0.0, 1.0], size=(2000, 4), p=[0.4, 0.6])
        splits = kappa * splits / np.maximum(np.linalg.norm(splits, axis=1, keepdims=True), 1e-9)
        assert (log_moment(splits, beta).sum(axis=1) <= log_moment(kappa, beta) * (1 + 1e-9) + 1e-15).all()
    # Below order 2 a direction that shrinks has the larger divergence: the bound must not be used there.
    assert log_moment(-0.5, 0.3) > log_moment(0.5, 0.3)


@pytest.mark.parametrize(("epsilon", "degrees", "ratio"), [(0.4, 6, 4.0), (0.5, 16, 6.0), (1.0, 3, 2.0)])
def test_no_pair_is_worse(epsilon, degrees, ratio):
    generator = np.random.default_rng(32)
    bound, found = curves.raised_wishart_delta(epsilon, degrees, ratio), []
    for trial in range(24):
        d = 1 + trial % 4
        split = np.eye(d)[0] if trial < 4 else generator.standard_normal(d)
        # In this order alone: neighbors keep the constraint in the other order too, where these pairs need not.
        split /= np.linalg.norm(split) * ratio
        simulated, error = hockey_stick_by_simulation(
            epsilon, np.diag(1.0 + split), np.eye(d), degrees, 20_000, generator
        )
        assert simulated < bound + 4 * error
        found.append(simulated)
    assert max(found) > bound / 12  # and the bound is not idle


def test_monotone_and_bounded():
    deltas = [curves.raised_wishart_log_delta(0.7, 9, ratio) for ratio in np.geomspace(0.5, 500, 60)]
    assert np.all(np.diff(deltas) <= 0)
    assert deltas[0] == 0.0
    deltas = [curves.raised_wishart_log_delta(0.7, degrees, 25.0) for degrees in range(1, 200, 5)]
    assert np.all(np.diff(deltas) > 0)


@pytest.mark.parametrize("degrees", [1, 2, 17, 400, 12_345])
def test_degrees_invert_the_ratio(degrees):
    ratio = curves.raised_wishart_ratio(0.8, 1e-7, degrees)
    assert curves.raised_wishart_degrees(0.8, 1e-7, ratio) == degrees
    assert curves.raised_wishart_delta(0.8, degrees + 1, ratio) > 1e-7 * (1 - 1e-8)
    assert curves.raised_wishart_degrees(0.8, 1e-7, 1.5) == 0


def test_arguments_are_checked():
    with refused("must be", parameter="degrees_of_freedom"):
        curves.raised_wishart_delta(1.0, 0.5, 10.0)
    for ratio in (0.0, math.inf, math.nan):
        with refused("must be", parameter="ratio"):
            curves.raised_wishart_delta(1.0, 5, ratio)
