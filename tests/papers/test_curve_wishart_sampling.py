"""The exact curve of Wishart sampling, against many digits, against simulation and against other pairs."""

import math

import mpmath as mp
import numpy as np
import pytest

from dpmoments.papers import curves as wishart
from dpmoments.privacy import curves
from support.said import refused

RELATIONS = ["add_remove", "replace_one"]


def reference_add_remove(epsilon, degrees, padding):
    """The two directions, as differences of chi-square tails, in 50 digits."""
    with mp.workdps(50):
        epsilon, half, q = mp.mpf(epsilon), mp.mpf(degrees) / 2, 1 / mp.mpf(padding)
        k = q / (2 * (1 + q))
        above = lambda x: mp.gammainc(half, x / 2, mp.inf, regularized=True)  # noqa: E731
        below = lambda x: mp.gammainc(half, 0, x / 2, regularized=True)  # noqa: E731
        upper = (epsilon + half * mp.log1p(q)) / k
        lower = (half * mp.log1p(q) - epsilon) / k
        with_row = above(upper / (1 + q)) - mp.exp(epsilon) * above(upper)
        without_row = below(lower) - mp.exp(epsilon) * below(lower / (1 + q)) if lower > 0 else mp.mpf(0)
        return max(with_row, without_row)


def reference_replace_one(epsilon, degrees, padding):
    """P[(1+q) T1 - T2 > e/k] - e^e P[T1 - (1+q) T2 > e/k] by quadrature over T2, in 40 digits."""
    with mp.workdps(40):
        epsilon, half, q = mp.mpf(epsilon), mp.mpf(degrees) / 2, 1 / mp.mpf(padding)
        bound = epsilon / (q / (2 * (1 + q)))
        above = lambda x: mp.gammainc(half, x / 2, mp.inf, regularized=True)  # noqa: E731

        def integrand(t):
            density = t ** (half - 1) * mp.exp(-t / 2) / (2**half * mp.gamma(half))
            first = above((bound + t) / (1 + q))
            second = above(bound + (1 + q) * t)
            return density * (first - mp.exp(epsilon) * second)

        spread = mp.sqrt(2 * degrees)
        points = [0, *(degrees + j * spread for j in range(-6, 40, 2) if degrees + j * spread > 0), 40 * degrees + 400]
        return mp.quad(integrand, points, maxdegree=6)


def hockey_stick_by_simulation(epsilon, first, second, degrees, size, generator):
    """Mean and standard error of (1 - e^(epsilon - loss))+ over explicit projections of the first covariance.

    The loss is the log ratio of the two normal densities of the projected rows: nothing of the reduction to one
    dimension is used.
    """
    d = len(first)
    rows = generator.standard_normal((size, degrees, d)) @ np.linalg.cholesky(first).T
    gap = np.linalg.inv(second) - np.linalg.inv(first)
    logdets = np.linalg.slogdet(second)[1] - np.linalg.slogdet(first)[1]
    loss = 0.5 * np.einsum("sri,ij,srj->s", rows, gap, rows) + 0.5 * degrees * logdets
    value = np.maximum(-np.expm1(epsilon - loss), 0.0)
    return value.mean(), value.std() / math.sqrt(size)


def worst_pair(d, padding, neighbors):
    base = padding * np.eye(d)
    x, y = np.eye(d)[0], np.eye(d)[1]
    with_x = base + np.outer(x, x)
    return (with_x, base + np.outer(y, y)) if neighbors == "replace_one" else (with_x, base)


def agrees(curve_value, simulated, standard_error):
    return abs(curve_value - simulated) < 4.5 * standard_error


@pytest.mark.parametrize("degrees", [1, 2, 3, 50, 1000])
@pytest.mark.parametrize("epsilon", [1e-3, 0.1, 1.0, 10.0])
@pytest.mark.parametrize("delta", [1e-30, 1e-12, 1e-6, 0.1])
def test_add_remove_against_many_digits_and_inversion(degrees, epsilon, delta):
    padding = curves.wishart_sampling_padding(epsilon, delta, degrees, "add_remove")
    expected = reference_add_remove(epsilon, degrees, padding)
    assert curves.wishart_sampling_delta(epsilon, degrees, padding, "add_remove") == pytest.approx(
        float(expected), rel=1e-10, abs=0.0
    )
    assert expected <= delta
    assert reference_add_remove(epsilon, degrees, padding * (1 - 1e-6)) > delta


@pytest.mark.parametrize(
    ("epsilon", "delta", "degrees"), [(1.0, 1e-6, 50), (0.1, 1e-3, 8), (3.0, 1e-12, 2), (0.5, 1e-30, 40)]
)
def test_replace_one_against_many_digits_and_inversion(epsilon, delta, degrees):
    padding = curves.wishart_sampling_padding(epsilon, delta, degrees, "replace_one")
    expected = reference_replace_one(epsilon, degrees, padding)
    assert curves.wishart_sampling_delta(epsilon, degrees, padding, "replace_one") == pytest.approx(
        float(expected), rel=1e-9, abs=0.0
    )
    assert expected <= delta
    assert reference_replace_one(epsilon, degrees, padding * (1 - 1e-6)) > delta


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize(("epsilon", "degrees", "padding"), [(0.3, 5, 2.0), (0.5, 20, 6.0), (1.0, 3, 0.5)])
def test_worst_pair_by_explicit_projection(neighbors, epsilon, degrees, padding):
    generator = np.random.default_rng(20)
    pair = worst_pair(3, padding, neighbors)
    simulated = hockey_stick_by_simulation(epsilon, *pair, degrees, 100_000, generator)
    assert agrees(curves.wishart_sampling_delta(epsilon, degrees, padding, neighbors), *simulated)


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_no_other_pair_is_worse(neighbors):
    generator = np.random.default_rng(23)
    epsilon, degrees, padding = 0.4, 6, 2.0
    bound = curves.wishart_sampling_delta(epsilon, degrees, padding, neighbors)
    for trial in range(24):
        d = 1 + trial % 3
        data = generator.standard_normal((d, d)) * generator.uniform(0, 1.5)
        base = padding * np.eye(d) + data.T @ data * (trial % 2)
        x, y = generator.standard_normal((2, d))
        x, y = x / np.linalg.norm(x) * generator.uniform(0.3, 1), y / np.linalg.norm(y) * generator.uniform(0.3, 1)
        first = base + np.outer(x, x)
        second = base + (np.outer(y, y) if neighbors == "replace_one" else 0)
        for pair in [(first, second), (second, first)]:
            simulated, error = hockey_stick_by_simulation(epsilon, *pair, degrees, 20_000, generator)
            assert simulated < bound + 4 * error


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_monotone_in_padding_and_degrees(neighbors):
    paddings = np.geomspace(0.1, 500, 40)
    deltas = [curves.wishart_sampling_log_delta(0.7, 9, padding, neighbors) for padding in paddings]
    assert np.all(np.diff(deltas) < 0)
    deltas = [curves.wishart_sampling_log_delta(0.7, degrees, 20.0, neighbors) for degrees in range(1, 200, 5)]
    assert np.all(np.diff(deltas) > 0)


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("padding", [3.0, 30.0, 99.995, 1000.0])
def test_degrees_are_safe_and_largest(neighbors, padding):
    epsilon, delta = 1.0, 1e-4
    if padding == 3.0:
        with refused("not even one degree of freedom is private; pad more"):
            curves.wishart_sampling_degrees(epsilon, 1e-6, padding, neighbors)
        return
    degrees = curves.wishart_sampling_degrees(epsilon, delta, padding, neighbors)
    assert curves.wishart_sampling_delta(epsilon, degrees, padding, neighbors) <= delta
    assert curves.wishart_sampling_delta(epsilon, degrees + 1, padding, neighbors) > delta * (1 - 1e-8)


@pytest.mark.parametrize("neighbors", RELATIONS)
@pytest.mark.parametrize("degrees", [1, 2, 17, 400, 12_345])
def test_degrees_invert_padding(neighbors, degrees):
    padding = curves.wishart_sampling_padding(0.8, 1e-7, degrees, neighbors)
    assert curves.wishart_sampling_degrees(0.8, 1e-7, padding, neighbors) == degrees


def renyi_divergence(order, degrees, padding, neighbors):
    """Of the worst pair (``docs/evidence/derivations/johnson_lindenstrauss.md``); infinite for orders of 1 + w²/B² and above."""
    q = 1.0 / padding
    if (order - 1.0) * q >= 1.0:
        return math.inf
    with_row = -math.log1p(q) - math.log1p(-(order - 1.0) * q) / (order - 1.0)
    without_row = math.log1p(q) + (math.log1p(q) - math.log1p(order * q)) / (order - 1.0)
    either = max(with_row, without_row) if neighbors == "add_remove" else with_row + without_row
    return 0.5 * degrees * either


@pytest.mark.parametrize("order", [1.3, 2.0, 5.0, 10.9])
@pytest.mark.parametrize("padding", [10.0, 40.0])
def test_renyi_divergence_by_quadrature(order, padding):
    with mp.workdps(30):
        q = 1 / mp.mpf(padding)

        def divergence(first, second):
            def integrand(z):
                return mp.npdf(z, 0, mp.sqrt(first)) ** order * mp.npdf(z, 0, mp.sqrt(second)) ** (1 - order)

            points = [0, 2, 5, 10, 20, 40, 80, 200]
            return mp.log(2 * mp.quad(integrand, points)) / (order - 1)

        directions = divergence(1 + q, 1), divergence(1, 1 + q)
    add_remove = renyi_divergence(order, 12, padding, "add_remove")
    replace_one = renyi_divergence(order, 12, padding, "replace_one")
    assert add_remove == pytest.approx(float(12 * max(directions)), rel=1e-10, abs=0.0)
    assert replace_one == pytest.approx(float(12 * sum(directions)), rel=1e-10, abs=0.0)


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_renyi_conversion_is_sound_and_not_far_off(neighbors):
    epsilon, degrees, padding = 1.0, 50, 40.0
    orders = np.linspace(1.05, 40.0, 300)
    divergences = [renyi_divergence(order, degrees, padding, neighbors) for order in orders]
    exact = curves.wishart_sampling_delta(epsilon, degrees, padding, neighbors)
    # Canonne, Kamath & Steinke (2020), Proposition 12.
    converted = min(
        math.exp((order - 1) * (divergence - epsilon)) / (order - 1) * (1 - 1 / order) ** order
        for order, divergence in zip(orders, divergences, strict=True)
    )
    assert exact < converted < 30 * exact
    assert renyi_divergence(1 + padding, degrees, padding, neighbors) == math.inf


@pytest.mark.parametrize("neighbors", RELATIONS)
def test_group_path_is_sound_and_wasteful(neighbors):
    step = 0.5, 1e-6 / (1 + math.exp(0.5))  # a replacement is a removal and an addition
    by_group = curves.wishart_sampling_padding(*step, 50, "add_remove")
    assert by_group == pytest.approx(54.3, abs=0.05)
    assert by_group > curves.wishart_sampling_padding(1.0, 1e-6, 50, neighbors)


@pytest.mark.parametrize("arguments", [(1.0, 0.5, 10.0), (1.0, 5, 0.0), (-1.0, 5, 1.0), (math.nan, 5, 1.0)])
def test_refuses_nonsense(arguments):
    with refused("must be"):
        curves.wishart_sampling_delta(*arguments, "add_remove")
    with refused("is not a neighboring relation: use 'add_remove' (the number"):
        curves.wishart_sampling_delta(1.0, 5, 1.0, "neither")


KNEES = [
    (0.1, 1.17, 0.004),
    (1.0, 3.0, 1e-3),
    (0.3, 2.0, 0.02),
    (1.0, 50.0, 0.01),
    (1.0, 2000.0, 5.0),
    (0.02, 400.0, 30.0),
]


@pytest.mark.parametrize(("epsilon", "degrees", "padding"), KNEES)
def test_the_curve_is_exact_beside_its_knee(epsilon, degrees, padding):
    """1 − exp(ε − loss) turns from a slope into a plateau where the sum of squares is 2(1 + padding) beyond the threshold.

    One integral over all of it was off by up to 1.2 % of δ.
    """
    expected = float(mp.log(reference_add_remove(epsilon, degrees, padding)))
    found = curves.wishart_sampling_log_delta(epsilon, degrees, padding, "add_remove")
    assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize(
    ("degrees", "padding", "threshold"),
    [
        (1.0, 0.02, 1e-3),
        (1.0, 0.02, 0.4),
        (3.0, 0.5, 0.999),
        (40.0, 10.0, 0.4),
        (40.0, 10.0, 30.0),
        (2000.0, 60.0, 1.7),
    ],
)
def test_the_direction_that_rarely_counts_against_many_digits(degrees, padding, threshold):
    """Without the row against with it, by the sum of squares below which the loss is larger than epsilon."""
    with mp.workdps(60):
        half, q = mp.mpf(degrees) / 2, 1 / mp.mpf(padding)
        k = q / (2 * (1 + q))
        epsilon = float(half * mp.log1p(q) - threshold * k)
        assert epsilon > 0.0
        exact = (half * mp.log1p(q) - epsilon) / k
        below = lambda x: mp.gammainc(half, 0, x / 2, regularized=True)  # noqa: E731
        expected = float(mp.log(below(exact) - mp.exp(epsilon) * below(exact / (1 + q))))
    # the threshold is a difference of numbers as large as epsilon: what is lost of it is lost of delta
    lost = 1e-15 * (epsilon + 1.0) / (threshold * float(k)) * (degrees + 2.0)
    assert wishart._without_row(epsilon, degrees, padding) == pytest.approx(expected, abs=1e-9 + 10.0 * lost)
    assert wishart._without_row(epsilon + threshold, degrees, padding) == -math.inf
