"""The proven margin of discrete over continuous Gaussian noise, against the exact delta by summation."""

import math

import mpmath as mp
import numpy as np
import pytest

from dpmoments.privacy import curves
from support.said import refused

pytestmark = pytest.mark.long(sets=None)


def exact_pmf(scale):
    support = np.arange(-int(14 * scale) - 80, int(14 * scale) + 81)
    weights = np.exp(-(support.astype(float) ** 2) / (2 * scale**2))
    return weights / weights.sum()


def shifted(pmf, shift):
    moved = np.zeros_like(pmf)
    moved[shift:] = pmf[: len(pmf) - shift] if shift else pmf
    return moved


def exact_delta(epsilon, shifts, scales):
    """Sum of (P - e^epsilon Q)+ over the lattice, in one or two dimensions."""
    p, q = np.ones(1), np.ones(1)
    for shift, scale in zip(shifts, scales, strict=True):
        pmf = exact_pmf(scale)
        p, q = np.multiply.outer(p, pmf), np.multiply.outer(q, shifted(pmf, shift))
    return float(np.maximum(p - math.exp(epsilon) * q, 0).sum())


def boundary_epsilons(shift, scale):
    """The epsilons at which the likelihood ratio crosses between integers: rounding loses nothing."""
    return [(shift / 2 + k + 0.5) * shift / (scale**2 - 1 / 12) for k in range(int(4 * scale))]


def violates(bound, shift, scale):
    """The test every claimed curve must survive: is the exact delta above the claim for some epsilon?"""
    crossings = boundary_epsilons(shift, scale)
    epsilons = [*crossings, *(1.1 * epsilon for epsilon in crossings)]
    return any(exact_delta(e, [shift], [scale]) > bound(e, shift, scale) * (1 + 1e-9) for e in epsilons)


@pytest.mark.parametrize("scale", [1.0, 1.5, 3.0, 6.5, 20.0])
@pytest.mark.parametrize("shift", [1, 2, 7])
def test_bound_holds_in_one_dimension(scale, shift):
    assert not violates(
        lambda epsilon, sensitivity, s: curves.discrete_gaussian_delta(epsilon, sensitivity, s, 1),
        shift,
        scale,
    )


@pytest.mark.parametrize("scale", [3.0, 20.0])
@pytest.mark.parametrize("less", [0.0, 1 / 24])
def test_planted_faults_continuous_curves_of_too_large_a_scale_are_rejected(less, scale):
    """Of the same variance, or of one that is smaller by half of a twelfth."""
    assert violates(lambda epsilon, moved, s: curves.gaussian_delta(epsilon, moved, math.sqrt(s * s - less)), 1, scale)


@pytest.mark.parametrize("scale", [3.0, 5.0, 9.0])
@pytest.mark.parametrize("shifts", [(1, 0), (0, 1), (1, 1), (3, 2)])
@pytest.mark.parametrize("epsilon", [0.05, 0.2, 0.5, 1.0, 2.0])
def test_bound_holds_in_two_dimensions_with_unequal_scales(scale, shifts, epsilon):
    ratios = (1.0, math.sqrt(0.5))
    sensitivity = math.hypot(*(shift / ratio for shift, ratio in zip(shifts, ratios, strict=True)))
    exact = exact_delta(epsilon, shifts, [scale * ratio for ratio in ratios])
    bound = curves.discrete_gaussian_delta(epsilon, sensitivity, scale, 2, ratios[1])
    assert exact <= bound * (1 + 1e-9)


def proven_log_delta(epsilon, sensitivity, scale, m, ratio):
    """The result (8) of the derivation in 60 digits, without the allowances for rounding."""
    with mp.workdps(60):
        epsilon, sensitivity, scale, ratio = map(mp.mpf, (epsilon, sensitivity, scale, ratio))

        def normal(epsilon, scale):
            half, tilt = sensitivity / (2 * scale), epsilon * scale / sensitivity
            return mp.ncdf(half - tilt) - mp.exp(epsilon) * mp.ncdf(-half - tilt)

        least = scale * ratio
        shrink = mp.sqrt(1 - 1 / (12 * least**2))
        tau, eta = shrink * least, 2 / mp.expm1(2 * mp.pi**2 * least**2)
        t = 30 - mp.log(normal(epsilon, shrink * scale))
        reach = mp.sqrt(m + 2 * mp.sqrt(m * t) + 2 * t) + mp.sqrt(m) / (2 * least) + sensitivity / scale
        square = (reach / shrink) ** 2
        a = m / (576 * tau**4) + square / (3456 * tau**6) + square**2 / (2880 * tau**4)
        b = m * (eta + 1 / (640 * tau**4)) + square / (288 * tau**4)
        if a + b >= epsilon:
            return mp.mpf(0)
        inside = mp.exp(a) * normal(epsilon - a - b, shrink * scale)
        return min(mp.log(inside + mp.exp(m / (24 * least**2) - t)), mp.mpf(0))


@pytest.mark.parametrize(
    ("epsilon", "sensitivity", "scale", "m", "ratio"),
    [
        (12.0, 1.0, 3.0, 1, 1.0),
        (25.0, 4.0, 2.0, 2, 1.0),
        (1.0, 1.0, 9.0, 1, 1.0),
        (1.0, 2.0, 8.0, 3, math.sqrt(0.5)),
        (5.0, 4.0, 6.0, 2, 1.0),
        (30.0, 3.0, 2.5, 1, 1.0),
        (0.3, 100.0, 500.0, 40, 0.9),
        (0.05, 2.0**16, 2.0**18, 500_000, math.sqrt(0.5)),
    ],
)
def test_the_bound_is_the_one_of_the_derivation(epsilon, sensitivity, scale, m, ratio):
    bound = curves.discrete_gaussian_log_delta(epsilon, sensitivity, scale, m, ratio)
    proven = proven_log_delta(epsilon, sensitivity, scale, m, ratio)
    assert proven < 0
    assert 0 <= bound - proven <= 1e-8 * (1 + abs(proven))


def test_where_the_margin_takes_all_of_epsilon_nothing_is_claimed():
    for epsilon, sensitivity, scale, m in ((0.01, 1.0, 3.0, 1), (1.0, 1.0, 2.0, 1000), (1e-6, 1.0, 20.0, 1)):
        assert curves.discrete_gaussian_log_delta(epsilon, sensitivity, scale, m) == 0.0
        assert proven_log_delta(epsilon, sensitivity, scale, m, 1.0) == 0
    assert curves.discrete_gaussian_log_delta(1.0, 1e80, 1.5, 1) == 0.0
    assert curves.discrete_gaussian_delta(1.0, 1.0, 0.9, 1) == 1.0  # below one step of the lattice
    assert curves.discrete_gaussian_delta(1.0, 1.0, 1.3, 1, math.sqrt(0.5)) == 1.0


@pytest.mark.parametrize(("epsilon", "delta"), [(0.01, 1e-12), (1.0, 1e-6), (6.0, 1e-3)])
def test_composed_draws_may_spend_what_the_derivation_allows(epsilon, delta):
    rho = curves.discrete_gaussian_rho(epsilon, delta)

    def proven(rho):
        scale = 2.0**20
        return proven_log_delta(epsilon, math.sqrt(2.0 * rho) * scale, scale, 2**30, 1.0)

    assert proven(rho) <= math.log(delta)
    assert proven(rho * (1.0 + 1e-8)) > math.log(delta)


def test_a_bound_is_for_one_coordinate_or_more_and_numbers_that_mean_something():
    faults = (
        (1.0, 1.0, 10.0, 0),
        (1.0, 0.0, 10.0, 1),
        (1.0, 1.0, 0.0, 1),
        (-1.0, 1.0, 10.0, 1),
        (1.0, 1.0, 9.0, 1, 0.0),
    )
    for arguments in faults:
        with refused("must be"):
            curves.discrete_gaussian_log_delta(*arguments)
    assert curves.discrete_gaussian_log_delta(20.0, 1.0, 1.0, 1) == 0.0  # the allowance for rounding takes it below 1
    for epsilon, delta in ((0.0, 1e-6), (1.0, 0.0), (1.0, 1.0)):
        with refused(("For delta = 0 use a mechanism for pure differential privacy", "must be")):
            curves.discrete_gaussian_rho(epsilon, delta)
