"""Bounds, losses and intervals of noise, against the formulas of their docstrings and derivations written once more."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpmoments.audit.exact import shift_loss
from dpmoments.base.errors import InputValueError
from dpmoments.moments.cells import (
    CellFamily,
    CountNoise,
    GaussianCells,
    IsotropicCells,
    LaplaceCells,
    MatrixLaplaceCells,
    cantelli_quantile,
    gamma_difference_quantile,
)
from dpmoments.moments.models import AdditiveModel, MeanModel
from dpmoments.moments.spectral import normal_norm_quantile
from dpmoments.papers.models import (
    LastStepModel,
    WishartCells,
    gamma_quantile,
    wishart_eigenvalue_range,
    wishart_frobenius_quantile,
)
from support.noise_models import additive, gaussian, laplace
from support.said import refused

EXACT = dict(rtol=1e-9, atol=1e-12)
log, sqrt = math.log, math.sqrt

# --- bounds on norms and lengths ----------------------------------------------------------------------------------------------

CELLS = np.array([[3.0, 1.0, 4.0], [1.0, 5.0, 0.5], [4.0, 0.5, 2.0]])
LARGEST = 8.0
"""The largest of diagonal cells and doubled cells off the diagonal."""
COVARIANCE = np.array([[4.0, 1.0], [1.0, 2.0]])


def below(shape: float, failure: float) -> float:
    """What a gamma variable stays below (Laurent & Massart)."""
    return shape + sqrt(2 * shape * -log(failure)) - log(failure)


def reach(size: int, failure: float) -> float:
    return sqrt(size) + sqrt(2 * log(1 / failure))


def mixture_length(shape: float, beta: float) -> float:
    normal = sqrt(6.0) + sqrt(2 * np.linalg.eigvalsh(COVARIANCE)[-1] * log(2 / beta))
    return min(sqrt(below(shape, beta / 2) / shape) * normal, sqrt(6.0 / beta))


def wishart_norm(nu: float, size: int, beta: float) -> float:
    s = reach(size, beta / 2)
    outside = max((sqrt(nu) + s) ** 2 - nu, nu - max(sqrt(nu) - s, 0.0) ** 2)
    return outside * sqrt(LARGEST / (2 * nu))


def matrix_laplace_norm(nu: float, size: int, beta: float) -> float:
    one = sqrt(LARGEST / nu)
    whole = (sqrt(nu) + reach(size, beta / 2)) ** 2 * one / 2
    t = reach(size, beta / 4)
    return min(whole, 2 * sqrt(nu) * t * one) if t < sqrt(nu) else whole


def isotropic_norm(a: float, size: int, beta: float) -> float:
    normal = sqrt(2 * size) + sqrt(2 * log(4 / beta))
    by_mixture = sqrt(LARGEST) * sqrt(below(a, beta / 2) / a) * normal
    return min(by_mixture, below(max(2 * a - 1, 1), beta) * sqrt(LARGEST) / sqrt(2 * a))


NORMS: list[tuple[CellFamily, Callable[[int, float], float], Callable[[float], float]]] = [
    (
        GaussianCells(),
        lambda size, beta: sqrt(LARGEST) * (sqrt(2 * size) + sqrt(2 * log(2 / beta))),
        lambda beta: sqrt(6.0) + sqrt(2 * np.linalg.eigvalsh(COVARIANCE)[-1] * log(1 / beta)),
    ),
    (LaplaceCells(), lambda _, beta: sqrt(5.0 / 2) * log(6 / beta) * 3, lambda beta: sqrt(6.0 / beta)),
    *(
        (
            IsotropicCells(a),
            lambda size, beta, a=a: isotropic_norm(a, size, beta),
            lambda beta, a=a: mixture_length(a, beta),
        )
        for a in (0.75, 1.5, 9.0, 400.0)
    ),
    *(
        (
            MatrixLaplaceCells(nu),
            lambda size, beta, nu=nu: matrix_laplace_norm(nu, size, beta),
            lambda beta, nu=nu: mixture_length(nu, beta),
        )
        for nu in (3.0, 30.0, 60.0, 4000.0)
    ),
    *(
        (
            WishartCells(nu),
            lambda size, beta, nu=nu: wishart_norm(nu, size, beta),
            lambda beta, nu=nu: mixture_length(nu / 2, beta),
        )
        for nu in (2.0, 25.0, 4000.0)
    ),
]


@pytest.mark.parametrize(("family", "norm", "length"), NORMS)
def test_bounds_are_those_of_their_formulas(
    family: CellFamily, norm: Callable[[int, float], float], length: Callable[[float], float]
) -> None:
    for beta in (0.9, 0.05, 1e-7):
        assert family.vector_bound(COVARIANCE, beta) == pytest.approx(length(beta))
        for size in (1, 3):
            assert family.norm_bound(CELLS, beta, size) == pytest.approx(norm(size, beta))
    assert family.norm_bound(np.zeros((3, 3)), 0.05, 3) == 0.0
    assert family.vector_bound(np.zeros((2, 2)), 0.05) == 0.0


def test_skews_are_those_of_the_limiting_laws() -> None:
    """Of c·(UᵀU − kI), v = 2kc²: R(g) = kmc g/(1 − …), a Marchenko–Pastur law; of two of them one on either side."""
    size, degrees, unit = 20, 50.0, 0.3
    assert WishartCells(degrees).skews(size, 2 * degrees * unit**2) == pytest.approx((size * unit, 0.0))
    # the difference of two halves: v = (ν/2)·4·c² with C = c(UᵀU − VᵀV)
    assert MatrixLaplaceCells(degrees).skews(size, 4 * degrees * unit**2) == pytest.approx((size * unit, size * unit))
    assert GaussianCells().skews(size, 3.0) == (0.0, 0.0)


# --- cells --------------------------------------------------------------------------------------------------------------------

FAMILIES = [
    GaussianCells(),
    LaplaceCells(),
    IsotropicCells(1.5),
    MatrixLaplaceCells(5.0),
    WishartCells(3.0),
    WishartCells(80.0),
]


@pytest.mark.long(sets=9)
@pytest.mark.parametrize(
    ("family", "diagonal"), [(family, diagonal) for family in FAMILIES for diagonal in (False, True)]
)
def test_moments_of_a_cell_are_those_of_its_quantiles(family: CellFamily, diagonal: bool) -> None:
    """E exp(sX) = ∫ exp(s q(p)) dp: mean 0, variance 1, and the third cumulant, by both descriptions of one law."""
    scores = np.linspace(-7.0, 7.0, 71)
    weights = stats.norm.pdf(scores) * (scores[1] - scores[0])
    quantiles = np.array([family.quantile(float(level), diagonal=diagonal) for level in stats.norm.cdf(scores)])
    assert (np.diff(quantiles) > 0.0).all()
    assert weights @ quantiles == pytest.approx(0.0, abs=1e-4)
    assert weights @ quantiles**2 == pytest.approx(1.0, abs=1e-3)
    pole = family.pole(diagonal=diagonal)
    for s in (0.2, -0.2):
        moment = np.log(weights @ np.exp(s * quantiles))
        stated = family.log_moment(np.array([s + 0j]), diagonal=diagonal)[0]
        assert stated.real == pytest.approx(moment, abs=1e-4)
        assert stated.imag == 0.0
    if math.isfinite(pole):
        inside, outside = (
            family.log_moment(np.array([factor * pole + 0j]), diagonal=diagonal)[0] for factor in (1 - 1e-9, 1 + 1e-9)
        )
        assert inside.imag == 0.0
        assert inside.real > 5.0
        assert outside.imag != 0.0


def test_below_half_a_degree_only_cantelli_is_known() -> None:
    for level in (0.01, 0.5, 0.9):
        bound = sqrt(level / (1 - level)) if level >= 0.5 else -sqrt((1 - level) / level)
        assert cantelli_quantile(level) == pytest.approx(bound)
        assert gamma_quantile(level, 0.49) == gamma_difference_quantile(level, 0.49) == cantelli_quantile(level)
        exact = (stats.chi2(1).ppf(level) / 2 - 0.5) / sqrt(0.5)
        assert gamma_quantile(level, 0.5) == pytest.approx(exact, rel=1e-9)
    assert abs(gamma_difference_quantile(0.9, 0.5)) < cantelli_quantile(0.9)


# --- counts -------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("law", "scale", "step"),
    [
        (law, scale, step)
        for law in ("laplace", "gaussian")
        for scale, step in ((0.4, 1.0), (1.7, 1.0), (6.0, 1.0), (0.9, 0.25), (5.0, 8.0))
    ],
)
def test_the_noise_of_counts_is_that_of_its_probabilities(law: str, scale: float, step: float) -> None:
    points = np.arange(-400, 401)
    weights = np.exp(-np.abs(points * step) / scale if law == "laplace" else -0.5 * (points * step / scale) ** 2)
    weights /= weights.sum()
    noise, several = CountNoise(law, scale, step), weights
    for cells in (1, 2, 3):
        whole = noise.of_sum(cells)
        places = np.arange(len(several)) - len(several) // 2
        assert whole.standard_deviation == pytest.approx(step * sqrt(several @ places**2), rel=1e-9)
        for level in (0.3, 0.5, 0.9, 0.999):
            within = [several[np.abs(places) <= k].sum() for k in range(200)]
            smallest = next(k for k, share in enumerate(within) if share >= level)
            if abs(within[smallest] - level) > 1e-9:
                assert whole.half_width(level) == pytest.approx(step * smallest)
                upper = whole.quantile(0.5 + level / 2)
                assert upper == pytest.approx(step * smallest / max(whole.standard_deviation, 1e-300))
        several = np.convolve(several, weights)
    assert noise.of_sum(2).of_sum(3).cells == 6


def test_a_fine_lattice_is_rounded_up_by_a_step_at_most() -> None:
    noise = CountNoise("gaussian", scale=1e6)
    for level in (0.5, 0.95):
        exact = stats.norm.ppf(0.5 + level / 2) * 1e6
        assert exact <= noise.half_width(level) <= exact + 2 * 1e6 / 1024
    with refused("must be", parameter="level"):
        noise.half_width(1.0)


# --- extreme eigenvalues ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("failure", "size", "degrees"), [(0.2, 3, 12.0), (0.2, 2, 80.0), (1e-9, 3, 12.0)])
def test_ranges_of_wishart_eigenvalues_are_quantiles_or_the_closed_form(
    failure: float, size: int, degrees: float
) -> None:
    s = reach(size, failure / 2)
    low, high = wishart_eigenvalue_range(size, degrees, failure)
    widest = max(sqrt(degrees) - s, 0.0) ** 2, (sqrt(degrees) + s) ** 2
    if failure < 1e-6:
        assert (low, high) == pytest.approx(widest)
        assert wishart_frobenius_quantile(size, degrees, failure) == pytest.approx(
            sqrt(size) * max(high - degrees, degrees - low)
        )
        assert normal_norm_quantile(size, failure) == pytest.approx(sqrt(2 * size) + sqrt(2 * log(2 / failure)))
        return
    assert low >= widest[0]
    assert high <= widest[1]
    rng = np.random.default_rng(5)
    rows = rng.normal(size=(20_000, int(degrees), size))
    draws = np.swapaxes(rows, 1, 2) @ rows
    values = np.linalg.eigvalsh(draws)
    frobenius = np.linalg.norm(draws - degrees * np.eye(size), axis=(1, 2))
    normal = rng.normal(size=(20_000, size, size))
    norms = np.abs(np.linalg.eigvalsh((normal + np.swapaxes(normal, 1, 2)) / 2.0)).max(axis=1)
    # Each end has half of it, kept by five deviations of the 20,000 simulated, and held here by 20,000 others.
    for beyond, share in (
        (values[:, 0] < low, failure / 2),
        (values[:, -1] > high, failure / 2),
        (frobenius > wishart_frobenius_quantile(size, degrees, failure), failure),
        (norms > normal_norm_quantile(size, failure), failure),
    ):
        deviation = sqrt(share * (1 - share) / 20_000)
        assert share - 12 * deviation < beyond.mean() < share + 2 * deviation


# --- losses -------------------------------------------------------------------------------------------------------------------

RNG = np.random.default_rng(3)
SHIFT = RNG.normal(size=(3, 3))
SHIFT = SHIFT + SHIFT.T
OF_SUM, OF_COUNT = RNG.normal(size=3), 1.7
RATE = 0.7


def lengths(model: AdditiveModel) -> np.ndarray:
    """The shift of every noisy value in deviations of its noise."""
    found = [SHIFT[i, i] / sqrt(model.diagonal_variance) for i in range(3)]
    found += [SHIFT[i, j] / sqrt(model.off_diagonal_variance) for i in range(3) for j in range(i)]
    if model.sum_variance:
        found += [shift / sqrt(model.sum_variance) for shift in OF_SUM]
    if model.count_variance:
        found.append(OF_COUNT / sqrt(model.count_variance))
    return np.array(found)


def test_losses_of_shifts_are_those_of_the_densities() -> None:
    for of_sum, of_count in ((4.0, 9.0), (1.0, None), (None, None)):
        model = gaussian(3, 2.0, 1.0, of_sum, of_count)
        loss = shift_loss(model, SHIFT, OF_SUM, OF_COUNT)
        assert loss == pytest.approx((np.linalg.norm(lengths(model)), True))
        own = shift_loss(replace(model, count_scale=0.6), SHIFT, OF_SUM, OF_COUNT)
        assert own == pytest.approx((math.hypot(loss.size, OF_COUNT / 0.6), True))
        assert shift_loss(replace(model, count_scale=0.6, count_is_laplace=True), SHIFT, OF_SUM, OF_COUNT) is None
        model = laplace(3, 2.0, 1.0, of_sum, of_count)
        loss = shift_loss(model, SHIFT, OF_SUM, OF_COUNT)
        assert loss == pytest.approx((np.abs(lengths(model)).sum() * sqrt(2.0), False))
        own = shift_loss(replace(model, count_scale=0.6, count_is_laplace=True), SHIFT, OF_SUM, -OF_COUNT)
        assert own == pytest.approx((loss.size + OF_COUNT / 0.6, False))
        assert shift_loss(replace(model, count_scale=0.6), SHIFT, OF_SUM, OF_COUNT) is None
    # whole matrices: c‖S‖_F and c‖S‖_*, S about a constant whose weight the variances of the sum give
    weight = 0.5
    whole = np.block([[np.array([[weight**2 * OF_COUNT]]), weight * OF_SUM[None]], [weight * OF_SUM[:, None], SHIFT]])
    for family, size in (("isotropic", np.linalg.norm), ("matrix-laplace", lambda s: np.linalg.norm(s, "nuc"))):
        of = (20 / RATE**2, 10 / RATE**2)
        model = additive(family, 3, *of, of[1] / weight**2, of[0] / weight**4, RATE)
        assert shift_loss(model, SHIFT, OF_SUM, OF_COUNT) == pytest.approx((RATE * size(whole), False))
        model = additive(family, 3, *of, None, None, RATE)
        assert shift_loss(model, SHIFT, OF_SUM, OF_COUNT) == pytest.approx((RATE * size(SHIFT), False))
    public = additive("matrix-laplace", 3, *of, of[1] / weight**2, 0.0, RATE)
    assert shift_loss(public, SHIFT, OF_SUM, 0.0) is None
    assert shift_loss(additive("wishart", 3, *of, None, None, RATE), SHIFT, OF_SUM, OF_COUNT) is None


@pytest.mark.parametrize("variance", [1.0, 2.0])
def test_what_moves_without_noise_is_an_infinite_loss(variance: float) -> None:
    zero, none = np.zeros((3, 3)), np.zeros(3)
    model = gaussian(3, variance, variance, variance, 0.0)
    assert shift_loss(model, zero, none, 1.0) == (math.inf, False)
    found = shift_loss(model, zero, np.array([1.0, 0.0, 0.0]), 0.0)
    assert found == pytest.approx((1.0 / sqrt(variance), True))
    assert shift_loss(replace(model, sum_variance=0.0), zero, np.array([1.0, 0.0, 0.0]), 0.0) == (math.inf, False)
    assert shift_loss(replace(model, off_diagonal_variance=0.0), SHIFT, none, 0.0) == (math.inf, False)
    assert shift_loss(replace(model, diagonal_variance=0.0), SHIFT, none, 0.0) == (math.inf, False)


# --- intervals ----------------------------------------------------------------------------------------------------------------

GRAM = np.array([[90.0, 10.0, 5.0], [10.0, 60.0, -8.0], [5.0, -8.0, 40.0]])
RELEASED: Any = SimpleNamespace(
    noisy_gram=GRAM, noisy_sum=np.array([20.0, -10.0, 5.0]), noisy_count=200.0, center=None, count_is_public=False
)
LAST = LastStepModel(
    n_features=3, count_scale=2.0, count_is_laplace=False, linear=np.array([[2.0, 0.1, 0.0], [0.1, 1.0, 0.3], [0.0, 0.3, 1.5]]),
    center=np.array([0.1, -0.2, 0.3]), step_gram=GRAM, step_sum=np.array([3.0, 1.0, -2.0]), gram_scale=3.0, sum_scale=0.8,
)  # fmt: skip
CHOSEN, BETA = [2, 0], 0.1


def of_normal_count(scale: float, failure: float) -> float:
    return scale * sqrt(2 * log(2 / failure)) + 0.5


def test_the_interval_of_a_last_step_is_that_of_its_noise() -> None:
    """Of (κ, w): ±σ‖Z‖ as a multiple of I, without noise on the corner but for the count's own."""
    kappa, back = 3.0 / (sqrt(2) * 0.8), np.linalg.inv(LAST.linear)[CHOSEN]
    to_units = np.vstack([[1 / kappa, 0, 0, 0], np.column_stack([LAST.center[CHOSEN] / kappa, back])])
    about = np.zeros((4, 4))
    about[0, 0], about[0, 1:], about[1:, 0], about[1:, 1:] = (
        kappa**2 * 200,
        kappa * LAST.step_sum,
        kappa * LAST.step_sum,
        GRAM,
    )
    off = of_normal_count(2.0, BETA / 2)
    constant = np.append(1.0, LAST.center[CHOSEN])
    found = LAST.interval(RELEASED, CHOSEN, BETA)
    assert found is not None
    assert found.constant
    assert found.count_error == pytest.approx(off)
    np.testing.assert_allclose(found.center, to_units @ about @ to_units.T, **EXACT)
    norm = 3.0 * normal_norm_quantile(3, BETA / 2)
    np.testing.assert_allclose(found.spread, norm * to_units @ to_units.T + off * np.outer(constant, constant), **EXACT)
    alone = replace(LAST, step_sum=None, sum_scale=0.0).interval(RELEASED, CHOSEN, BETA)
    assert alone is not None
    assert not alone.constant
    np.testing.assert_allclose(alone.center, back @ GRAM @ back.T, **EXACT)
    np.testing.assert_allclose(alone.spread, 3.0 * normal_norm_quantile(2, BETA / 2) * back @ back.T, **EXACT)
    assert alone.count_error == pytest.approx(off)
    public = replace(LAST, count_scale=0.0).interval(RELEASED, CHOSEN, BETA)
    assert public is not None
    assert public.count_error == 0.0
    np.testing.assert_allclose(public.spread, 3.0 * normal_norm_quantile(3, BETA) * to_units @ to_units.T, **EXACT)
    assert LAST.interval(SimpleNamespace(noisy_count=None), CHOSEN, BETA) is None
    mapped = found.mapped(np.array([[1.0, 0.0, 0.0], [0.5, 2.0, 1.0]]))
    np.testing.assert_allclose(mapped.center[0, 0], found.center[0, 0])
    assert (mapped.constant, mapped.count_error) == (True, off)


# --- means --------------------------------------------------------------------------------------------------------------------


def test_half_widths_of_a_mean_are_quantiles_of_two_independent_parts() -> None:
    for larger, smaller in ((3.0, 0.5), (0.5, 3.0), (2.0, 2.0), (2.0, 2.0 * (1 - 1e-9)), (1.0, 0.0), (0.0, 0.0)):
        noise = MeanModel("laplace", np.array([larger]), np.array([smaller]))
        assert noise.standard_deviations[0] == pytest.approx(math.hypot(larger, smaller))
        for level in (0.1, 0.9, 0.9999):
            t = float(noise.half_widths(level)[0])
            a, b = max(larger, smaller) / sqrt(2), min(larger, smaller) / sqrt(2)
            if a == 0.0:
                assert t == 0.0
                continue
            if b == 0.0:
                beyond = math.exp(-t / a)
            elif abs(a - b) < 1e-6:
                beyond = (1 + t / (2 * a)) * math.exp(-t / a)
            else:
                beyond = (a**2 * math.exp(-t / a) - b**2 * math.exp(-t / b)) / (a**2 - b**2)
            assert beyond == pytest.approx(1 - level, rel=1e-5)
        normal = MeanModel("gaussian", np.array([larger]), np.array([smaller])).half_widths(0.9)[0]
        assert normal == pytest.approx(math.hypot(larger, smaller) * stats.norm.ppf(0.95))
    for arguments in (("cauchy", np.ones(1), np.ones(1)), ("gaussian", -np.ones(1), np.ones(1))):
        with pytest.raises(InputValueError):
            MeanModel(*arguments)
    for other in (np.ones(2), np.ones((1, 1)), np.array([math.inf])):
        with refused("of the noise model must be", entry="count_deviations"):
            MeanModel("gaussian", np.ones(1), other)
    for clipped in (0.0, 1.0):
        model = MeanModel("gaussian", np.ones(1), np.ones(1), clipped=clipped)
        with refused("must be", parameter="clipped"):
            replace(model, clipped=clipped + math.copysign(1e-9, clipped - 0.5))
