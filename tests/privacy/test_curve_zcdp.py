"""zCDP noise scales and conversions, against direct minimisation in many digits and against exact curves."""

import math
from fractions import Fraction

import mpmath as mp
import pytest

from dpmoments.privacy import curves
from support.said import refused

pytestmark = pytest.mark.long(sets=None)

EPSILONS = [1e-6, 1e-3, 0.1, 1.0, 10.0, 1e3, 1e8, 1e12]
DELTAS = [1e-300, 1e-30, 1e-9, 1e-3, 0.5, 0.999]


def reference_log_delta(rho, epsilon, order):
    """Canonne, Kamath & Steinke (2020), Proposition 12, as printed, in digits enough for orders near 1."""
    with mp.workdps(320):
        rho, epsilon, a = mp.mpf(rho), mp.mpf(epsilon), mp.mpf(order)
        return (a - 1) * (a * rho - epsilon) - mp.log(a - 1) + a * mp.log(1 - 1 / a)


def smallest_log_delta(rho, epsilon):
    """Golden-section search for the best order, on its logarithm less one."""
    low, high = -600.0, 600.0
    golden = (math.sqrt(5) - 1) / 2

    def value(t):
        with mp.workdps(320):
            return reference_log_delta(rho, epsilon, 1 + mp.exp(mp.mpf(t)))

    left, right = high - golden * (high - low), low + golden * (high - low)
    f_left, f_right = value(left), value(right)
    for _ in range(90):
        if f_left <= f_right:
            high, right, f_right = right, left, f_left
            left = high - golden * (high - low)
            f_left = value(left)
        else:
            low, left, f_left = left, right, f_right
            right = low + golden * (high - low)
            f_right = value(right)
    return min(f_left, f_right)


def randomized_response_divergence(epsilon, order):
    """Rényi divergence between the two laws of randomized response."""
    with mp.workdps(40):
        epsilon, a = mp.mpf(epsilon), mp.mpf(order)
        p = mp.exp(epsilon) / (1 + mp.exp(epsilon))
        return mp.log(p**a * (1 - p) ** (1 - a) + (1 - p) ** a * p ** (1 - a)) / (a - 1)


@pytest.mark.parametrize("rho", [1e-8, 1e-3, 0.1, 0.5, 3.0, 1e5])
@pytest.mark.parametrize("ratio", [0.01, 0.9, 1.1, 3.0, 30.0])
def test_delta_is_the_minimum_over_orders(rho, ratio):
    epsilon = max(rho, math.sqrt(rho)) * ratio
    expected = smallest_log_delta(rho, epsilon)
    actual = curves.zcdp_log_delta(rho, epsilon)
    # Rounded up, and by no more than rounding.
    assert actual >= expected - mp.mpf(1e-15)
    assert actual <= expected + max(abs(expected), rho, epsilon, 1.0) * 1e-12


@pytest.mark.parametrize(("rho", "delta"), [(0.01, 1e-9), (0.5, 1e-6), (2.0, 1e-3), (20.0, 1e-12)])
def test_conversion_covers_the_gaussian_mechanism_and_improves_on_the_first_one(rho, delta):
    # The Gaussian mechanism is rho-zCDP, so its own epsilon is a lower bound on the conversion's ...
    epsilon = curves.zcdp_epsilon(rho, delta)
    assert epsilon > curves.gaussian_epsilon(delta, 1.0, curves.zcdp_noise_scale(rho, 1.0))
    # ... and Bun & Steinke's Proposition 1.3 is an upper bound.
    assert epsilon < rho + 2 * math.sqrt(rho * math.log(1 / delta))


@pytest.mark.parametrize("epsilon", [*EPSILONS, 1e-17])  # the last is lost beside log(1/δ)
@pytest.mark.parametrize("delta", DELTAS)
def test_rho_is_safe_and_largest(epsilon, delta):
    rho = curves.zcdp_rho(epsilon, delta)
    assert curves.zcdp_delta(rho, epsilon) <= delta
    assert curves.zcdp_delta(rho * (1 + 1e-7), epsilon) > delta


@pytest.mark.parametrize("rho", [1e-10, 1e-3, 0.5, 10.0, 1e6])
@pytest.mark.parametrize("delta", DELTAS)
def test_epsilon_is_safe_and_smallest(rho, delta):
    epsilon = curves.zcdp_epsilon(rho, delta)
    assert curves.zcdp_delta(rho, epsilon) <= delta
    if epsilon > 0:
        assert curves.zcdp_delta(rho, epsilon * (1 - 1e-6)) > delta


@pytest.mark.parametrize("rho", [1e-300, 1e-9, 0.1, 1.0 / 3.0, 7.0, 1e12])
@pytest.mark.parametrize("sensitivity", [1e-3, 1.0, math.sqrt(2), 3.0e7])
def test_noise_scale_is_the_smallest_float_that_is_enough(rho, sensitivity):
    noise_scale = curves.zcdp_noise_scale(rho, sensitivity)
    below = math.nextafter(noise_scale, 0.0)
    least = Fraction(sensitivity) ** 2 / (2 * Fraction(rho))
    assert Fraction(below) ** 2 < least <= Fraction(noise_scale) ** 2


@pytest.mark.parametrize("epsilon", [1e-9, 1e-3, 0.3, 1.0, 4.0, 30.0])
def test_pure_to_zcdp_bounds_randomized_response_and_is_attained(epsilon):
    rho = curves.pure_to_zcdp(epsilon)
    assert rho <= epsilon**2 / 2 * (1 + 1e-15)
    for order in [1 + 1e-6, 1.1, 1.5, 2, 3, 8, 50, 1000]:
        assert randomized_response_divergence(epsilon, order) <= order * mp.mpf(rho)
    attained = randomized_response_divergence(epsilon, 1 + mp.mpf(10) ** -10) / (1 + mp.mpf(10) ** -10)
    assert float(attained / rho) == pytest.approx(1.0, abs=1e-8)


def test_edges():
    assert curves.pure_to_zcdp(0.0) == 0.0
    assert curves.zcdp_delta(1e5, 0.0) == 1.0
    assert curves.zcdp_epsilon(1e-6, 0.5) == 0.0
    for call in (curves.zcdp_noise_scale, curves.zcdp_delta, curves.zcdp_epsilon, curves.zcdp_rho):
        with refused("must be"):
            call(-1.0, 0.5)
        with refused(("For delta = 0 use a mechanism for pure differential privacy", "must be")):
            call(0.5, math.nan)
