"""The exact curve of additive Wishart noise, against many digits, against simulation and against other pairs."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from dpmoments.papers import curves as wishart
from dpmoments.privacy import curves
from support.said import refused

RELATIONS = ["add_remove", "replace_one"]


def reference_row(epsilon, m, a):
    """Both directions of chi^2_{m+1} against chi^2_{m+1} + a, in 60 digits."""
    with mp.workdps(60):
        epsilon, m, a = map(mp.mpf, (epsilon, m, a))
        below = lambda x: mp.gammainc((m + 1) / 2, 0, x / 2, regularized=True)  # noqa: E731
        above = lambda x: mp.gammainc((m + 1) / 2, x / 2, mp.inf, regularized=True)  # noqa: E731
        last = a if m == 1 else -a / mp.expm1(-(2 * epsilon + a) / (m - 1))
        without_row = below(last) - mp.exp(epsilon) * below(last - a)
        if a <= 2 * epsilon:
            return without_row
        first = 0 if m == 1 else a / mp.expm1((a - 2 * epsilon) / (m - 1))
        return max(without_row, above(first) - mp.exp(epsilon) * above(first + a))


def reference_orthogonal(epsilon, m, a):
    """Mean over the geometric mean p of two chi-squares of the curve of a symmetric beta law, on a dense grid.

    The inner curve is a plain difference of tails; the grid is cut where the laws stop overlapping, at p = a / 2.
    """
    power, n = (m - 1) / 2, m + 2
    nodes, weights = np.polynomial.legendre.leggauss(20)
    edges = np.concatenate(
        [np.linspace(0, a / 2, 200) ** 2 * (2 / a), a / 2 + np.linspace(0, math.sqrt(9 * n + 200), 900) ** 2]
    )
    edges = np.unique(edges)
    p = (edges[:-1, None] + np.diff(edges)[:, None] * 0.5 * (nodes + 1)).ravel()
    weight = (np.diff(edges)[:, None] * 0.5 * weights).ravel()
    log_density = (n - 1) * np.log(p) + np.log(special.k0e(p)) - p - (n - 2) * math.log(2) - 2 * math.lgamma(n / 2)
    h = np.minimum(a / p, 2.0)
    ratio = math.expm1(epsilon / power)
    root = np.sqrt((ratio + 2) ** 2 * h * h + 4 * ratio**2 * (1 - h * h / 4))
    edge = (root - (ratio + 2) * h) / (2 * ratio)
    above = lambda c: special.betainc(power + 1, power + 1, np.clip((1 - c) / 2, 0, 1))  # noqa: E731
    delta = np.where(h == 2.0, 1.0, above(edge - h / 2) - math.exp(epsilon) * above(edge + h / 2))
    return float(np.sum(weight * np.exp(log_density) * delta))


def hockey_stick_by_simulation(epsilon, first, second, degrees, scale, size, generator):
    """Mean and standard error of (1 - e^(epsilon - loss))+ for Wishart noise added to two matrices.

    Only the Wishart density is used: nothing of the reduction to one dimension.
    """
    d = len(first)
    factors = generator.standard_normal((size, degrees, d)) * math.sqrt(scale)
    noise = np.einsum("sri,srj->sij", factors, factors)
    moved = noise + (first - second)
    inside = np.linalg.eigvalsh(moved)[:, 0] > 0
    power = 0.5 * (degrees - d - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        logdets = np.linalg.slogdet(noise)[1] - np.linalg.slogdet(moved)[1]
    loss = power * logdets + np.trace(first - second) / (2 * scale)
    loss = np.where(inside, loss, np.inf)
    value = np.maximum(-np.expm1(epsilon - loss), 0.0)
    return value.mean(), value.std() / math.sqrt(size)


def agrees(curve_value, simulated, standard_error):
    return abs(curve_value - simulated) < 4.5 * standard_error


def unit(d, i):
    return np.outer(np.eye(d)[i], np.eye(d)[i])


@pytest.mark.parametrize("m", [1, 2, 3, 10, 42, 1000])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("scale", [1e-3, 0.1, 1.0, 30.0])
def test_add_remove_against_many_digits(m, epsilon, scale):
    expected = float(mp.log(reference_row(epsilon, m, 1 / mp.mpf(scale))))
    actual = curves.additive_wishart_log_delta(epsilon, m, scale, "add_remove")
    assert actual == pytest.approx(expected, abs=1e-10)


@pytest.mark.parametrize("m", [1.0, 1.5, 3.0, 42.0, 1000.0])
@pytest.mark.parametrize("epsilon", [1e-2, 1.0, 5.0])
@pytest.mark.parametrize("factor", [1.0, 2.0, 2.01, 3.0, 20.0, 400.0])
def test_the_direction_that_rarely_counts_against_many_digits(m, epsilon, factor):
    """chi^2 + a against chi^2: the smaller direction but where delta is nearly 1, so that no curve would show a fault in it."""
    a = factor * epsilon
    actual = wishart._with_row_of_additive_wishart(epsilon, m, a)
    if a <= 2 * epsilon:
        assert actual == -math.inf
        return
    with mp.workdps(60):
        above = lambda x: mp.gammainc((mp.mpf(m) + 1) / 2, x / 2, mp.inf, regularized=True)  # noqa: E731
        a_exact, e = mp.mpf(a), mp.mpf(epsilon)
        first = 0 if m == 1 else a_exact / mp.expm1((a_exact - 2 * e) / (mp.mpf(m) - 1))
        expected = float(mp.log(above(first) - mp.exp(e) * above(first + a_exact)))
    assert actual == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("epsilon", "m", "a"),
    [(1.0, 2, 1.0), (0.1, 3, 0.5), (1.0, 42, 1.0), (3.0, 9, 20.0), (1.0, 200, 1.0), (3.0, 43, 1.0)],
)
def test_replace_one_against_a_dense_grid(epsilon, m, a):
    expected = max(reference_orthogonal(epsilon, m, a), reference_row(epsilon, m, a))
    actual = curves.additive_wishart_delta(epsilon, m, 1 / a, "replace_one")
    assert actual == pytest.approx(float(expected), rel=1e-9, abs=0.0)
    # The grid knows the law: a slightly longer row is told from it.
    assert actual != pytest.approx(reference_orthogonal(epsilon, m, a * 1.0001), rel=1e-9, abs=0.0)


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 5.0])
@pytest.mark.parametrize("delta", [1e-30, 1e-12, 1e-6, 0.1])
@pytest.mark.parametrize("m", [1, 4, 60, 2000])
def test_add_remove_scale_is_safe_and_smallest(epsilon, delta, m):
    scale = curves.additive_wishart_scale(epsilon, delta, m, "add_remove")
    assert reference_row(epsilon, m, 1 / mp.mpf(scale)) <= delta
    assert reference_row(epsilon, m, 1 / (mp.mpf(scale) * (1 - 1e-6))) > delta


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("scale", [0.02, 0.3, 1.0, 7.0, 1e7])
def test_degrees_are_safe_smallest_and_invert_the_scale(neighbors, scale):
    m = curves.additive_wishart_degrees(0.7, 1e-6, scale, neighbors)
    assert curves.additive_wishart_delta(0.7, m, scale, neighbors) <= 1e-6
    assert m == 1 or curves.additive_wishart_delta(0.7, m - 1, scale, neighbors) > 1e-6 * (1 - 1e-8)
    smallest = curves.additive_wishart_scale(0.7, 1e-6, m, neighbors)
    assert smallest <= scale * (1 + 1e-12)
    assert curves.additive_wishart_degrees(0.7, 1e-6, smallest, neighbors) == m


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("m", [1, 2, 3])
def test_few_degrees_invert_the_scale(neighbors, m):
    """Where fewer would not do: the curve of one degree is not taken for that of two."""
    scale = curves.additive_wishart_scale(0.7, 0.05, m, neighbors)
    assert curves.additive_wishart_degrees(0.7, 0.05, scale, neighbors) == m
    assert curves.additive_wishart_degrees(0.7, 0.05, scale * (1 - 1e-6), neighbors) == m + 1


@pytest.mark.parametrize(("epsilon", "m", "scale"), [(0.3, 2, 1.0), (0.5, 6, 0.4), (0.1, 12, 1.0)])
@pytest.mark.parametrize("d", [2, 4])
def test_worst_pairs_by_explicit_noise(d, epsilon, m, scale):
    generator = np.random.default_rng(30)
    zero = np.zeros((d, d))
    simulate = lambda p, q: hockey_stick_by_simulation(epsilon, p, q, d + m, scale, 60_000, generator)  # noqa: E731
    without_row, with_row = simulate(zero, unit(d, 0)), simulate(unit(d, 0), zero)
    replaced = simulate(unit(d, 0), unit(d, 1))
    add_remove = curves.additive_wishart_delta(epsilon, m, scale, "add_remove")
    replace_one = curves.additive_wishart_delta(epsilon, m, scale, "replace_one")
    assert agrees(add_remove, *max(without_row, with_row))
    assert agrees(replace_one, *max(without_row, with_row, replaced))


@pytest.mark.parametrize(("epsilon", "m", "scale"), [(0.3, 1, 1.0), (0.3, 3, 0.5), (0.8, 12, 0.3)])
def test_no_other_pair_is_worse(epsilon, m, scale):
    generator = np.random.default_rng(32)
    bounds = {name: curves.additive_wishart_delta(epsilon, m, scale, name) for name in RELATIONS}
    for trial in range(16):
        d = 1 + trial % 3
        x, y = generator.standard_normal((2, d))
        x, y = x / np.linalg.norm(x) * generator.uniform(0.2, 1), y / np.linalg.norm(y) * generator.uniform(0.2, 1)
        pairs = {"add_remove": (np.outer(x, x), np.zeros((d, d))), "replace_one": (np.outer(x, x), np.outer(y, y))}
        for name, (first, second) in pairs.items():
            for pair in [(first, second), (second, first)]:
                simulated, error = hockey_stick_by_simulation(epsilon, *pair, d + m, scale, 8_000, generator)
                assert simulated < bounds[name] + 4 * error


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_tends_to_the_gaussian_mechanism(neighbors):
    sensitivity = math.sqrt(2.0) if neighbors == "replace_one" else 1.0
    gaussian = curves.gaussian_noise_scale(1.0, 1e-6, sensitivity)
    ratios = [
        curves.additive_wishart_scale(1.0, 1e-6, m, neighbors) * math.sqrt(2 * m) / gaussian
        for m in (100, 10_000, 1_000_000)
    ]
    assert ratios[0] > ratios[1] > ratios[2] > 1.0
    assert ratios[2] < 1.005


def test_refuses_nonsense():
    with refused("must be", parameter="excess_degrees"):
        curves.additive_wishart_delta(1.0, 0.5, 1.0, "add_remove")
    with refused("must be", parameter="scale"):
        curves.additive_wishart_degrees(1.0, 1e-6, 0.0, "add_remove")
    with refused("is not a neighboring relation: use 'add_remove' (the number"):
        curves.additive_wishart_scale(1.0, 1e-6, 5, "neither")


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("epsilon", [0.0, 1e-9, 1.0, 1e3, 1e15])
def test_extreme_arguments_give_a_probability(neighbors, epsilon):
    for m in (1, 1.5, 2, 1e3, 2.0**26):
        for scale in (1e-12, 1e-3, 1.0, 1e9):
            for log_delta in (
                curves.additive_wishart_log_delta(epsilon, m, scale, neighbors),
                curves.wishart_sampling_log_delta(epsilon, m, scale, neighbors),
            ):
                assert log_delta <= 0.0
