"""The Gaussian privacy curve and its inverse, against 60-digit arithmetic."""

import math

import mpmath as mp
import pytest

from dpmoments.privacy import curves
from dpmoments.privacy.curves import require_delta, require_nonnegative, require_positive, safe_root
from support.said import refused

pytestmark = pytest.mark.long(sets=None)

EPSILONS = [1e-6, 1e-3, 0.1, 1.0, 4.0, 30.0, 1e4, 1e8, 1e12]
DELTAS = [1e-300, 1e-100, 1e-30, 1e-9, 1e-3, 0.1, 0.5, 0.9, 0.999]


def reference_delta(epsilon, sensitivity, noise_scale):
    """Balle & Wang (2018), Theorem 8, as printed, in 60 digits."""
    with mp.workdps(60):
        epsilon, sensitivity, noise_scale = map(mp.mpf, (epsilon, sensitivity, noise_scale))
        half, shift = sensitivity / (2 * noise_scale), epsilon * noise_scale / sensitivity
        normal_cdf = lambda x: mp.erfc(-x / mp.sqrt(2)) / 2  # noqa: E731
        return normal_cdf(half - shift) - mp.exp(epsilon) * normal_cdf(-half - shift)


def hockey_stick_by_quadrature(epsilon, sensitivity, noise_scale):
    """Integral of the positive part of (density at 0) - e^epsilon (density at the sensitivity)."""
    with mp.workdps(30):
        epsilon, sensitivity, noise_scale = map(mp.mpf, (epsilon, sensitivity, noise_scale))
        crossing = sensitivity / 2 - epsilon * noise_scale**2 / sensitivity
        integrand = lambda x: (  # noqa: E731
            mp.npdf(x, 0, noise_scale) - mp.exp(epsilon) * mp.npdf(x, sensitivity, noise_scale)
        )
        points = [crossing - k * noise_scale for k in (40, 20, 10, 5, 2, 1, 0)]
        return mp.quad(integrand, points)


def is_calibrated(noise_scale, epsilon, delta, sensitivity, tightness=1e-9):
    """The test that a calibration must pass: private, and a slightly smaller scale is not."""
    return (
        reference_delta(epsilon, sensitivity, noise_scale) <= delta
        and reference_delta(epsilon, sensitivity, noise_scale * (1 - tightness)) > delta
    )


@pytest.mark.parametrize("epsilon", [0.0, *EPSILONS])
@pytest.mark.parametrize("z", [-36.0, -12.0, -3.0, -0.5, 0.0, 0.5, 3.0])
@pytest.mark.parametrize("factor", [1e-6, 1e-3, 1.0, 50.0])
def test_relative_error_of_delta(epsilon, z, factor):
    # Scales that put the argument of Phi near z, and others well away from it.
    mu = (z + math.sqrt(z * z + 2 * epsilon)) * (factor if epsilon == 0.0 else 1.0)
    noise_scale = 1.7 / mu if mu > 0 else factor
    expected = reference_delta(epsilon, 1.7, noise_scale)
    actual = curves.gaussian_delta(epsilon, 1.7, noise_scale)
    if expected > 1e-300:
        assert abs(actual / expected - 1) < 1e-12
    else:
        assert actual < 1.01e-300


@pytest.mark.parametrize(("epsilon", "noise_scale"), [(0.3, 2.0), (5.0, 0.3)])
def test_delta_is_the_hockey_stick_divergence(epsilon, noise_scale):
    expected = hockey_stick_by_quadrature(epsilon, 1.0, noise_scale)
    assert curves.gaussian_delta(epsilon, 1.0, noise_scale) == pytest.approx(float(expected), rel=1e-12, abs=0.0)


def test_log_delta_beyond_underflow():
    log_delta = curves.gaussian_log_delta(1.0, 1.0, 1000.0)
    assert curves.gaussian_delta(1.0, 1.0, 1000.0) == 0.0
    with mp.workdps(500):
        expected = mp.log(reference_delta(1.0, 1.0, 1000.0))
    assert log_delta == pytest.approx(float(expected), rel=1e-12, abs=0.0)


@pytest.mark.parametrize("epsilon", EPSILONS)
@pytest.mark.parametrize("delta", DELTAS)
def test_noise_scale_is_private_and_smallest(epsilon, delta):
    noise_scale = curves.gaussian_noise_scale(epsilon, delta, 2.5)
    assert is_calibrated(noise_scale, epsilon, delta, 2.5)


def test_planted_fault_textbook_formula_is_rejected():
    def textbook(epsilon, delta, sensitivity):
        return sensitivity * math.sqrt(2 * math.log(1.25 / delta)) / epsilon

    # Not private at large epsilon, not smallest at small epsilon.
    assert reference_delta(30.0, 1.0, textbook(30.0, 1e-6, 1.0)) > 1e-6
    assert not is_calibrated(textbook(30.0, 1e-6, 1.0), 30.0, 1e-6, 1.0)
    assert not is_calibrated(textbook(0.5, 1e-6, 1.0), 0.5, 1e-6, 1.0)


@pytest.mark.parametrize("delta", [1e-200, 1e-9, 0.01, 0.5])
@pytest.mark.parametrize("noise_scale", [1e-5, 0.3, 1.0, 50.0])
def test_epsilon_is_safe_and_smallest(delta, noise_scale):
    epsilon = curves.gaussian_epsilon(delta, 1.0, noise_scale)
    assert reference_delta(epsilon, 1.0, noise_scale) <= delta
    if epsilon > 0:
        assert reference_delta(epsilon * (1 - 1e-9), 1.0, noise_scale) > delta


def test_epsilon_is_zero_when_delta_covers_everything():
    assert curves.gaussian_epsilon(0.5, 1.0, 10.0) == 0.0


@pytest.mark.parametrize(
    "arguments",
    [
        *((epsilon, 1e-6, 1.0) for epsilon in (0.0, -1.0, math.nan, math.inf)),
        *((1.0, delta, 1.0) for delta in (0.0, 1.0, -1e-9, math.nan)),
        *((1.0, 1e-6, sensitivity) for sensitivity in (0.0, -1.0, math.inf)),
    ],
)
def test_refuses_what_is_not_a_budget(arguments):
    with refused(("For delta = 0 use a mechanism for pure differential privacy", "must be")):
        curves.gaussian_noise_scale(*arguments)


# Inversion ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("safe", ["above", "below"])
@pytest.mark.parametrize("power", [1, 3])
@pytest.mark.parametrize("root", [1e-250, 1e-3, 1.0, math.pi, 1e250])
def test_a_root_is_found_from_anywhere_on_the_safe_side(root, power, safe):
    side = 1.0 if safe == "above" else -1.0
    evaluated = {}

    def excess(x):
        evaluated[x] = side * power * (math.log(root) - math.log(x))
        return evaluated[x]

    for start in (root, root * (1 + 1e-15), root / 2, root * 7, 1e-250, 1.0, 1e250):
        evaluated.clear()
        found = safe_root(excess, start, safe=safe)
        assert evaluated[found] <= 0
        assert found == pytest.approx(root, rel=2e-13, abs=0.0)
        assert len(evaluated) < 120


@pytest.mark.parametrize("safe", ["above", "below"])
def test_a_root_of_a_curve_that_is_rounded_or_infinite_in_places_is_safe(safe):
    side = 1.0 if safe == "above" else -1.0

    def rounded(x):
        """Jumps about within 1e-10 of its root, as a curve does that is added up in floating point."""
        return side * (1.0 - x) + 1e-10 * math.cos(1e13 * x)

    def with_cliffs(x):
        return side * math.inf if x < 0.5 else -side * math.inf if x > 2.0 else side * (1.0 - x)

    for start in (0.01, 0.9, 1.0, 1.1, 40.0):
        for curve in (rounded, with_cliffs):
            found = safe_root(curve, start, safe=safe)
            assert curve(found) <= 0.0
            assert found == pytest.approx(1.0, abs=3e-10)


def test_no_root_is_made_up():
    with refused("no boundary between safe and unsafe parameters within", ArithmeticError):
        safe_root(lambda _: 1.0, 1.0, safe="above")
    with refused("no boundary between safe and unsafe parameters within", ArithmeticError):
        safe_root(lambda _: -1.0, 1.0, safe="below")
    for at_the_end in (lambda x: 1.0 if x < math.inf else -1.0, lambda x: 1.0 if x > 0.0 else -1.0):
        with refused("no boundary between safe and unsafe parameters within", ArithmeticError):
            safe_root(at_the_end, 1.0, safe="above" if at_the_end(math.inf) < 0.0 else "below")
    with refused("the privacy curve is not a number at", ArithmeticError):
        safe_root(lambda _: math.nan, 1.0, safe="above")
    # Safe at the one point at which the root finder is not: the walk to the safe side goes on for ever.
    with refused("the privacy curve is not monotone near its root", ArithmeticError):
        safe_root(lambda x: -1.0 if x == 1.0 else 1.0, 1.0, safe="below")


def test_arguments_of_curves():
    for check, allowed in ((require_positive, 5e-324), (require_nonnegative, 0.0), (require_nonnegative, 0)):
        assert check("x", allowed) == allowed
        assert check("x", 1e308) == 1e308
        for value in (-5e-324, -1.0, math.inf, -math.inf, math.nan):
            with refused("must be", parameter="x"):
                check("x", value)
    with refused("must be", parameter="x"):
        require_positive("x", 0.0)
    for value in (5e-324, 0.5, 1.0 - 2.0**-53):
        assert require_delta(value) == value
    for value in (0.0, 1.0, -0.1, 1.1, math.nan, math.inf):
        with refused("For delta = 0 use a mechanism for pure differential privacy"):
            require_delta(value)
