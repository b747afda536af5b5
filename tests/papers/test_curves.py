"""The privacy curves of Wishart draws: against brute force, against draws, and at their ends."""

import math

import mpmath as mp
import numpy as np
import pytest
from scipy import special

from dpmoments.papers import curves as wishart
from dpmoments.privacy import curves
from support.said import refused

# The exact curve of additive Wishart noise, against many digits, against simulation and against other pairs.

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


@pytest.mark.long
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


def test_refuses_nonsense():
    with refused("must be", parameter="excess_degrees"):
        curves.additive_wishart_delta(1.0, 0.5, 1.0, "add_remove")
    with refused("must be", parameter="scale"):
        curves.additive_wishart_degrees(1.0, 1e-6, 0.0, "add_remove")
    with refused("is not a neighboring relation: use 'add_remove' (the number"):
        curves.additive_wishart_scale(1.0, 1e-6, 5, "neither")
    with refused("must be", parameter="degrees_of_freedom"):
        curves.raised_wishart_delta(1.0, 0.5, 10.0)
    for ratio in (0.0, math.inf, math.nan):
        with refused("must be", parameter="ratio"):
            curves.raised_wishart_delta(1.0, 5, ratio)
    for arguments in ((1.0, 0.5, 10.0), (1.0, 5, 0.0), (-1.0, 5, 1.0), (math.nan, 5, 1.0)):
        with refused("must be"):
            curves.wishart_sampling_delta(*arguments, "add_remove")
    with refused("is not a neighboring relation: use 'add_remove' (the number"):
        curves.wishart_sampling_delta(1.0, 5, 1.0, "neither")


# The bound for Wishart draws around matrices with raised eigenvalues: its lemma, its formula, and other pairs.


def exponent(beta, epsilon, degrees, ratio):
    """The logarithm of the bound by one order, 1 + beta, as it is derived; 30 digits."""
    beta, kappa = mp.mpf(beta), 1 / mp.mpf(ratio)
    divergence = -mp.mpf(degrees) / 2 * (mp.log(1 + kappa) + mp.log(1 - beta * kappa) / beta)
    alpha = beta + 1
    return beta * (divergence - mp.mpf(epsilon)) - mp.log(alpha) + beta * mp.log(1 - 1 / alpha)


def reference_log_delta(epsilon, degrees, ratio):
    """The least exponent over orders of 2 and more, by ternary search: it is convex in the order."""
    with mp.workdps(30):
        low, high = mp.mpf(1), mp.mpf(ratio) * (1 - mp.mpf(2) ** -30)
        for _ in range(110):
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


@pytest.mark.long(sets=2)
@pytest.mark.parametrize(("epsilon", "degrees", "ratio"), [(0.4, 6, 4.0), (0.5, 16, 6.0), (1.0, 3, 2.0)])
def test_no_pair_is_worse(epsilon, degrees, ratio):
    generator = np.random.default_rng(32)
    bound, found = curves.raised_wishart_delta(epsilon, degrees, ratio), []
    for trial in range(12):
        d = 1 + trial % 4
        split = np.eye(d)[0] if trial < 4 else generator.standard_normal(d)
        # In this order alone: neighbors keep the constraint in the other order too, where these pairs need not.
        split /= np.linalg.norm(split) * ratio
        simulated, error = hockey_stick_by_simulation_of_sampling(
            epsilon, np.diag(1.0 + split), np.eye(d), degrees, 20_000, generator
        )
        assert simulated < bound + 4 * error
        found.append(simulated)
    assert max(found) > bound / 12  # and the bound is not idle


# The exact curve of Wishart sampling, against many digits, against simulation and against other pairs.


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
    """P[(1+q) T1 - T2 > e/k] - e^e P[T1 - (1+q) T2 > e/k] by quadrature over T2, in 25 digits."""
    with mp.workdps(25):
        epsilon, half, q = mp.mpf(epsilon), mp.mpf(degrees) / 2, 1 / mp.mpf(padding)
        bound = epsilon / (q / (2 * (1 + q)))
        above = lambda x: mp.gammainc(half, x / 2, mp.inf, regularized=True)  # noqa: E731

        def integrand(t):
            density = t ** (half - 1) * mp.exp(-t / 2) / (2**half * mp.gamma(half))
            first = above((bound + t) / (1 + q))
            second = above(bound + (1 + q) * t)
            return density * (first - mp.exp(epsilon) * second)

        spread = mp.sqrt(2 * degrees)
        points = [0, *(degrees + j * spread for j in range(-6, 40, 4) if degrees + j * spread > 0), 40 * degrees + 400]
        return mp.quad(integrand, points, maxdegree=6)


def hockey_stick_by_simulation_of_sampling(epsilon, first, second, degrees, size, generator):
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


@pytest.mark.long
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
    base, row, other = padding * np.eye(3), np.diag([1.0, 0.0, 0.0]), np.diag([0.0, 1.0, 0.0])
    pair = base + row, base + (other if neighbors == "replace_one" else 0.0)
    simulated, error = hockey_stick_by_simulation_of_sampling(epsilon, *pair, degrees, 100_000, generator)
    assert abs(curves.wishart_sampling_delta(epsilon, degrees, padding, neighbors) - simulated) < 4.5 * error


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("neighbors", RELATIONS)
def test_of_sampling_no_other_pair_is_worse(neighbors):
    generator = np.random.default_rng(23)
    epsilon, degrees, padding = 0.4, 6, 2.0
    bound = curves.wishart_sampling_delta(epsilon, degrees, padding, neighbors)
    for trial in range(12):
        d = 1 + trial % 3
        data = generator.standard_normal((d, d)) * generator.uniform(0, 1.5)
        base = padding * np.eye(d) + data.T @ data * (trial % 2)
        x, y = generator.standard_normal((2, d))
        x, y = x / np.linalg.norm(x) * generator.uniform(0.3, 1), y / np.linalg.norm(y) * generator.uniform(0.3, 1)
        first = base + np.outer(x, x)
        second = base + (np.outer(y, y) if neighbors == "replace_one" else 0)
        for pair in [(first, second), (second, first)]:
            simulated, error = hockey_stick_by_simulation_of_sampling(epsilon, *pair, degrees, 20_000, generator)
            assert simulated < bound + 4 * error


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
def test_of_sampling_the_direction_that_rarely_counts_against_many_digits(degrees, padding, threshold):
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
