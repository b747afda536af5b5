"""Bounds, losses and intervals of noise, against the formulas of their docstrings and derivations written once more."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from fractions import Fraction
from types import SimpleNamespace
from typing import Any

import mpmath
import numpy as np
import pytest
from scipy import stats

import dpmoments.papers.cells as papers_cells
from dpmoments.audit.exact import loss_dimension, shift_loss
from dpmoments.base.errors import InputValueError
from dpmoments.moments import extreme_eigenvalues
from dpmoments.moments.cells import (
    CellFamily,
    CountNoise,
    GaussianCells,
    IsotropicCells,
    LaplaceCells,
    MatrixLaplaceCells,
    cantelli_quantile,
    gamma_difference_quantile,
    sum_quantile,
)
from dpmoments.moments.extreme_eigenvalues import normal_norm_quantile
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.models import AdditiveModel, CenteredLevelsModel, MeanModel, PooledModel
from dpmoments.moments.terms import NoiseTerm
from dpmoments.papers.cells import WishartCells, gamma_quantile, wishart_eigenvalue_range, wishart_frobenius_quantile
from dpmoments.papers.models import InverseNormalModel, LastStepModel, ScaledWishartModel, WishartModel
from dpmoments.privacy import discrete
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


@pytest.mark.parametrize(
    ("family", "diagonal"), [(family, diagonal) for family in FAMILIES for diagonal in (False, True)]
)
def test_moments_of_a_cell_are_those_of_its_quantiles(family: CellFamily, diagonal: bool) -> None:
    """E exp(sX) = ∫ exp(s q(p)) dp: mean 0, variance 1, and the third cumulant, by both descriptions of one law."""
    scores = np.linspace(-7.0, 7.0, 141)
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


def test_a_sum_of_gamma_cells_has_the_quantiles_of_a_gamma() -> None:
    for shape, level in ((0.5, 0.9), (1.5, 0.02), (40.0, 0.5), (40.0, 1e-6)):
        exact = (stats.gamma(2 * shape).ppf(level) - 2 * shape) / sqrt(2 * shape)
        parts = ((WishartCells(2 * shape), 2.0, True),) * 2
        assert sum_quantile(level, parts) == pytest.approx(exact, abs=2e-6)
        # a part without deviation is none
        assert sum_quantile(level, (*parts, (LaplaceCells(), 0.0, True))) == pytest.approx(exact, abs=2e-6)
    three = ((GaussianCells(), 3.0, True), (GaussianCells(), 4.0, False))
    assert sum_quantile(0.8, three) == pytest.approx(stats.norm.ppf(0.8), rel=1e-12)
    # a small Laplace part beside a large normal one: twice the convolution by a grid
    grid = np.linspace(-30.0, 30.0, 24001)
    for one, other in ((1.0, 1.0), (0.3, 2.0), (2.0, 0.3)):
        tail = np.trapezoid(stats.laplace(scale=one / sqrt(2)).pdf(grid) * stats.norm.sf(2.5 - grid, scale=other), grid)
        total = math.hypot(one, other)
        parts = ((LaplaceCells(), one, False), (GaussianCells(), other, False))
        assert sum_quantile(1.0 - tail, parts) == pytest.approx(2.5 / total, rel=1e-5)
        assert sum_quantile(tail, parts) == pytest.approx(-2.5 / total, rel=1e-5)


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


@pytest.mark.parametrize(("failure", "size", "degrees"), [(0.2, 3, 12.0), (0.1, 2, 9.5), (0.3, 6, 80.0)])
def test_simulated_quantiles_are_order_statistics(failure: float, size: int, degrees: float) -> None:
    """Of the eigenvalues of all tridiagonal matrices that were drawn, and of their distances from the middle."""

    def extremes(main: np.ndarray, beside: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        matrices, at = np.zeros((main.shape[1], size, size)), np.arange(size)
        matrices[:, at, at] = main.T
        matrices[:, at[1:], at[:-1]] = matrices[:, at[:-1], at[1:]] = np.sqrt(beside).T
        values = np.linalg.eigvalsh(matrices)
        return values[:, 0], values[:, -1], np.linalg.norm(matrices - degrees * np.eye(size), axis=(1, 2))

    draws, beyond = extreme_eigenvalues.n_draws(size, failure / 2)
    lowest, highest, _ = extremes(*papers_cells._wishart_draws(size, degrees, draws))
    expected = np.sort(lowest)[beyond], np.sort(highest)[-1 - beyond]
    assert wishart_eigenvalue_range(size, degrees, failure) == pytest.approx(expected, rel=1e-9)
    draws, beyond = extreme_eigenvalues.n_draws(size, failure)
    *_, distances = extremes(*papers_cells._wishart_draws(size, degrees, draws))
    found = wishart_frobenius_quantile(size, degrees, failure)
    assert found == pytest.approx(np.sort(distances)[-1 - beyond], rel=1e-9)
    generator = np.random.default_rng([extreme_eigenvalues.SEED, size])
    main = generator.standard_normal((size, draws))
    beside = generator.chisquare(size - 1.0 - np.arange(size - 1), (draws, size - 1)).T / 2.0
    lowest, highest, _ = extremes(main, beside)
    norms = np.sort(np.maximum(-lowest, highest))
    assert normal_norm_quantile(size, failure) == pytest.approx(norms[-1 - beyond], rel=1e-9)


def test_one_row_has_exact_quantiles() -> None:
    for failure in (0.3, 1e-8):
        exact = stats.chi2(7).ppf(failure / 2), stats.chi2(7).isf(failure / 2)
        assert wishart_eigenvalue_range(1, 7.0, failure) == pytest.approx(exact, rel=1e-6)
        assert normal_norm_quantile(1, failure) == pytest.approx(stats.norm.isf(failure / 2))
        assert wishart_frobenius_quantile(1, 7.0, failure) == pytest.approx(max(exact[1] - 7, 7 - exact[0]), rel=1e-6)
    assert wishart_eigenvalue_range(1, 1.0, 0.3)[0] > 0.0
    for size, degrees, failure in ((0, 3.0, 0.1), (3, 2.9, 0.1), (3, 4.0, 0.0), (3, 4.0, 1.0)):
        with pytest.raises(InputValueError):
            wishart_eigenvalue_range(size, degrees, failure)
        if degrees >= size:
            with pytest.raises(InputValueError):
                normal_norm_quantile(size, failure)


def test_simulated_tails_keep_a_margin() -> None:
    draws, beyond = extreme_eigenvalues.n_draws(3, 0.1)
    assert (draws, beyond) == (20_000, math.floor(2000 - 5 * sqrt(2000)))
    assert extreme_eigenvalues.n_draws(30, 0.1)[0] == 6666
    assert extreme_eigenvalues.n_draws(100, 0.1) == (4000, 300)
    assert extreme_eigenvalues.n_draws(401, 0.1)[1] == 0
    assert extreme_eigenvalues.n_draws(400, 0.1)[1] == 300
    # 20 beyond: 58.7 expected of 20,000
    assert extreme_eigenvalues.n_draws(3, 0.00290)[1] == 0
    assert extreme_eigenvalues.n_draws(3, 0.00298)[1] == 20


def test_pivots_count_eigenvalues() -> None:
    rng = np.random.default_rng(0)
    main, beside = rng.normal(size=(4, 50)), rng.uniform(0.1, 1.0, (3, 50))
    for value in (-1.0, 0.2, 1.5):
        matrices = [
            np.diag(m) + np.diag(np.sqrt(b), 1) + np.diag(np.sqrt(b), -1) for m, b in zip(main.T, beside.T, strict=True)
        ]
        values = np.array([np.linalg.eigvalsh(matrix) for matrix in matrices])
        np.testing.assert_array_equal(extreme_eigenvalues.all_below(main, beside, value), (values < value).all(axis=1))
        np.testing.assert_array_equal(
            extreme_eigenvalues.all_below(-main, beside, -value), (values > value).all(axis=1)
        )


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


def test_as_many_values_are_noisy_as_have_noise() -> None:
    assert loss_dimension(gaussian(3, 2.0, 1.0, 4.0, 9.0)) == 10
    assert loss_dimension(gaussian(3, 2.0, 1.0, 4.0, 0.0)) == 9
    assert loss_dimension(gaussian(3, 2.0, 1.0, None, None)) == 6
    assert loss_dimension(replace(gaussian(3, 2.0, 1.0, None, None), count_scale=2.0)) == 7
    assert loss_dimension(replace(gaussian(3, 2.0, 1.0, None, None), count_scale=2.0, count_is_laplace=True)) is None
    assert loss_dimension(gaussian(3, 0.0, 0.0, None, None)) is None
    assert loss_dimension(additive("wishart", 3, 20.0, 10.0, None, None, 1.0)) is None


# --- errors and laws of models ------------------------------------------------------------------------------------------------

BLOCKS = CenteredLevelsModel(
    n_features=5, family="gaussian", diagonal_variance=2.0, off_diagonal_variance=1.0, sum_variance=3.0,
    count_variance=4.0, center=np.array([0.5, 0.5, 0.25, 0.25, 0.25]) / 2, block_sizes=np.array([2.0, 2.0, 3.0, 3.0, 3.0]),
)  # fmt: skip


def test_errors_of_models_are_those_of_their_cells() -> None:
    model = gaussian(3, 2.0, 1.5, 4.0, 9.0)
    assert model.frobenius_error == pytest.approx(sqrt(3 * 2.0 + 6 * 1.5))
    projection = np.eye(5)
    projection[:2, :2] -= 1 / 2
    projection[2:, 2:] -= 1 / 3
    np.testing.assert_allclose(BLOCKS.projection, projection)
    whole = np.eye(6)
    whole[1:, 0], whole[1:, 1:] = BLOCKS.center, projection
    np.testing.assert_allclose(BLOCKS.map_to_zero, whole)
    # E‖N‖_F² and E‖n‖² of N = L C Lᵀ, from all pairs of cells
    squares = np.zeros((6, 6))
    for i in range(6):
        for j in range(i + 1):
            unit = np.zeros((6, 6))
            unit[i, j] = unit[j, i] = 1.0
            variance = {0: 4.0 if i == 0 else 3.0}.get(j, 2.0 if i == j else 1.0)
            squares += variance * (whole @ unit @ whole.T) ** 2
    assert BLOCKS.frobenius_error == pytest.approx(sqrt(squares[1:, 1:].sum()))


def test_the_last_block_ends_with_the_features() -> None:
    for sizes in ([2.0, 2.0, 3.0, 3.0], [2.0, 2.0, 0.0, 2.0], [0.0, 0.0, 2.5, 2.5], [2.0, 1.0, 0.0, 0.0]):
        with refused("of the noise model must be", entry="block_sizes"):
            replace(BLOCKS, n_features=4, center=np.zeros(4), block_sizes=np.array(sizes))
    for change in ({"sum_variance": None}, {"count_variance": None}, {"center": np.full(5, 1.1)}):
        with refused("of the noise model must be"):
            replace(BLOCKS, **change)
    assert replace(BLOCKS, center=np.array([1.0, -1.0, 0.0, 0.0, 0.0])).n_features == 5


def test_arrays_of_another_shape_or_without_a_bound_are_refused() -> None:
    for center in (np.zeros(4), np.zeros((5, 1)), [0.0] * 5, np.array([0.0, 0.0, 0.0, 0.0, math.nan])):
        with refused("finite numbers", name="center"):
            replace(BLOCKS, center=center)
    for flag in (1, "yes", None):
        with refused("of the noise model must be", entry="count_is_laplace"):
            replace(BLOCKS, count_is_laplace=flag)
    for scale in (-1.0, math.nan):
        with pytest.raises(InputValueError):
            replace(BLOCKS, count_scale=scale)
    with pytest.raises(InputValueError):
        replace(BLOCKS, n_features=0)
    assert not BLOCKS.center.flags.writeable


def test_scaled_wishart_cells_are_those_of_normal_rows() -> None:
    """Of Σ (s/w, sx)(s/w, sx)ᵀ over k rows, x normal of covariance V: variances k s⁴(V_ii V_jj + V_ij²)."""
    root = np.array([[1.0, 0.0], [0.5, 2.0]])
    model = ScaledWishartModel(
        n_features=2, degrees=40.0, scale=0.3, scale_matrix=root @ root.T, augmentation=0.5, count_is_noisy=True
    )
    whole = np.zeros((3, 3))
    whole[0, 0], whole[1:, 1:] = 1 / 0.5**2, root @ root.T
    cells = 40.0 * 0.3**2 * (np.outer(np.diag(whole), np.diag(whole)) + whole**2)
    np.testing.assert_allclose(model.law().cell_variances(), cells, **EXACT)
    cells[0, 0] = 0.0
    np.testing.assert_allclose(replace(model, count_is_noisy=False).law().cell_variances(), cells, **EXACT)
    cells[0, :] = cells[:, 0] = 0.0
    alone = replace(model, augmentation=0.0)
    np.testing.assert_allclose(alone.law().cell_variances(), cells, **EXACT)
    for field, value in (("degrees", 0.0), ("scale", 0.0), ("scale_matrix", np.array([[1.0, 2.0], [1.0, 3.0]]))):
        with pytest.raises(InputValueError):
            replace(model, **{field: value})


def test_parts_of_a_pool_have_a_law_and_a_shift_of_as_many_features() -> None:
    def part(d: int, shift: np.ndarray) -> Any:
        model = gaussian(d, 2.0, 1.0, 4.0, 9.0)
        return model, model.law(), shift

    assert PooledModel(n_features=3, parts=(part(3, np.zeros(3)), part(3, np.ones(3)))).law().n_features == 3
    for parts in ((), (part(3, np.zeros(2)),), (part(4, np.zeros(3)),)):
        with refused("of the noise model must be", entry="parts"):
            PooledModel(n_features=3, parts=parts)


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


def test_the_interval_of_a_noisy_inverse_is_that_of_its_eigenvalues() -> None:
    model = InverseNormalModel(
        n_features=3, count_scale=1.5, inverse=np.linalg.inv(GRAM), inverse_scale=4e-4, smallest_eigenvalue=20.0, sum_scale=2.0
    )  # fmt: skip
    share = BETA / 3
    off = of_normal_count(1.5, share)
    reach_ = 4e-4 * normal_norm_quantile(3, share)
    values, vectors = np.linalg.eigh(np.linalg.inv(GRAM))
    assert values[0] - reach_ > 1 / (200 + off)
    low = vectors @ np.diag(1 / np.maximum(values + reach_, 1 / (200 + off))) @ vectors.T
    high = vectors @ np.diag(1 / (values - reach_)) @ vectors.T
    block = np.ix_(CHOSEN, CHOSEN)
    middle, half = ((high + low) / 2)[block], ((high - low) / 2)[block]
    length = 2.0 * (sqrt(2) + sqrt(2 * log(3 / BETA)))
    eta = sqrt(200 * 2 / np.trace(middle))
    found = model.interval(RELEASED, CHOSEN, BETA)
    assert found is not None
    assert found.constant
    assert found.count_error == pytest.approx(off)
    total = RELEASED.noisy_sum[CHOSEN]
    center = np.block([[np.array([[200.0]]), total[None]], [total[:, None], middle]])
    spread = np.zeros((3, 3))
    spread[0, 0], spread[1:, 1:] = off + length * eta, half + length / eta * np.eye(2)
    np.testing.assert_allclose(found.center, center, **EXACT)
    np.testing.assert_allclose(found.spread, spread, **EXACT)
    for e in RNG.normal(size=(20, 2)):  # an error of the sum of this length is within the spread
        shift = np.zeros((3, 3))
        shift[0, 1:] = shift[1:, 0] = e / np.linalg.norm(e) * length
        room = spread - off * np.diag([1.0, 0, 0]) - np.pad(half, ((1, 0), (1, 0)))
        assert np.linalg.eigvalsh(room - shift)[0] > -1e-9
    alone = replace(model, sum_scale=None, count_scale=0.0).interval(RELEASED, CHOSEN, BETA)
    assert alone is not None
    assert not alone.constant
    reach_ = 4e-4 * normal_norm_quantile(3, BETA)
    high = vectors @ np.diag(1 / (values - reach_)) @ vectors.T
    low = vectors @ np.diag(1 / (values + reach_)) @ vectors.T
    np.testing.assert_allclose(alone.center + alone.spread, high[block], **EXACT)
    np.testing.assert_allclose(alone.center - alone.spread, low[block], **EXACT)
    wide = replace(model, inverse_scale=1.0, sum_scale=None, count_scale=0.0).interval(RELEASED, CHOSEN, BETA)
    assert wide is not None  # noise hides the smallest eigenvalue: the trace, at most the rows, bounds the Gram matrix
    np.testing.assert_allclose(wide.center + wide.spread, 200.0 * np.eye(2), **EXACT)
    assert model.interval(SimpleNamespace(noisy_count=None, noisy_sum=total), CHOSEN, BETA) is None
    assert model.interval(SimpleNamespace(noisy_count=200.0, noisy_sum=None), CHOSEN, BETA) is None


@pytest.mark.parametrize("inverse", [False, True])
def test_the_interval_of_a_wishart_draw_is_that_of_its_eigenvalues(inverse: bool) -> None:
    model = WishartModel(
        n_features=3, degrees=300.0, padding=4.0, subtracted=True, inverse=inverse, augmentation=0.0, corner=0.0, raised=0.0,
        count_scale=2.5, count_is_laplace=True,
    )  # fmt: skip
    drawn = GRAM[np.ix_(CHOSEN, CHOSEN)] + 4.0 * np.eye(2)
    for scale, share in ((2.5, BETA / 2), (0.0, BETA)):
        found = replace(model, count_scale=scale).interval(RELEASED, CHOSEN, BETA)
        assert found is not None
        assert not found.constant
        if inverse:
            low, high = (end / 296.0 for end in wishart_eigenvalue_range(2, 299.0, share))
        else:
            high, low = (300.0 / end for end in wishart_eigenvalue_range(2, 300.0, share))
        np.testing.assert_allclose(found.center + found.spread, high * drawn - 4.0 * np.eye(2), **EXACT)
        np.testing.assert_allclose(found.center - found.spread, low * drawn - 4.0 * np.eye(2), **EXACT)
        assert found.count_error == pytest.approx(2.5 * log(2 / BETA) + 0.5 if scale else 0.0)
    whole = replace(model, augmentation=0.5, corner=60.0, count_scale=0.0)
    total = 0.5 * RELEASED.noisy_sum[CHOSEN]
    drawn = np.block([[np.array([[60.0]]), total[None]], [total[:, None], drawn]])
    found = whole.interval(RELEASED, CHOSEN, BETA)
    assert found is not None
    assert found.constant
    if inverse:
        low, high = (end / 295.0 for end in wishart_eigenvalue_range(3, 299.0, BETA))
    else:
        high, low = (300.0 / end for end in wishart_eigenvalue_range(3, 300.0, BETA))
    unit = np.diag([2.0, 1.0, 1.0])
    np.testing.assert_allclose(found.center + found.spread, unit @ (high * drawn - 4.0 * np.eye(3)) @ unit, **EXACT)
    np.testing.assert_allclose(found.center - found.spread, unit @ (low * drawn - 4.0 * np.eye(3)) @ unit, **EXACT)
    off = abs(200.0 - found.center[0, 0]) + found.spread[0, 0] + 0.5
    assert found.count_error == pytest.approx(off)
    without = whole.interval(SimpleNamespace(**vars(RELEASED) | {"noisy_count": None}), CHOSEN, BETA)
    assert without is not None
    assert without.count_error == 0.0
    assert whole.interval(SimpleNamespace(**vars(RELEASED) | {"noisy_sum": None}), CHOSEN, BETA) is None
    few = replace(whole, degrees=6.0 if inverse else 4.0).interval(RELEASED, CHOSEN, 1e-12)
    assert few is None or inverse  # no upper end: nothing is known


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


# --- derivatives and tables ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("with_matrix", [False, True])
@pytest.mark.parametrize("known", [False, True])
def test_mixed_derivatives_are_those_of_the_covariance_of_a_product(with_matrix: bool, known: bool) -> None:
    """Cov(N b)u is quadratic in b: a central difference is its derivative."""
    rng = np.random.default_rng(4)
    half = rng.uniform(0.5, 2.0, (4, 4))
    matrix = rng.normal(size=(4, 4)) if with_matrix else None
    exact = (rng.normal(size=4), rng.normal(size=4)) if known else None
    term = NoiseTerm(GaussianCells(), half + half.T, matrix, exact)
    u, b, step = rng.normal(size=4), rng.normal(size=4), 0.5
    columns = []
    for i in range(4):
        ahead, behind = b + step * np.eye(4)[i], b - step * np.eye(4)[i]
        difference = term.covariance_of_product(ahead) - term.covariance_of_product(behind)
        columns.append(difference @ u / (2.0 * step))
    np.testing.assert_allclose(term.mixed_derivative(u, b), np.array(columns).T, rtol=1e-9, atol=1e-9)


def test_exponentials_of_tables_are_exact() -> None:
    wholes, parts, coefficients = discrete._tables()
    assert coefficients == pytest.approx([(-1) ** k / math.factorial(k) for k in range(7)], rel=1e-15)
    assert wholes == pytest.approx([math.exp(-i) for i in range(len(wholes))], rel=4e-16)
    assert parts == pytest.approx([math.exp(-j / 64) for j in range(64)], rel=4e-16)
    assert len(wholes) == 48
    for x in (Fraction(0), Fraction(1, 3), Fraction(7, 2), Fraction(40)):
        for bits in (10, 60):
            low, high = discrete._exp_bounds(x, bits)
            with mpmath.workdps(60):
                exact = mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator) * 2**bits
            assert low <= exact <= high
            assert high - low <= 2


@pytest.mark.parametrize("inverse", [False, True])
def test_cells_of_a_wishart_draw_vary_by_the_matrix_that_was_drawn(inverse: bool) -> None:
    """(W_ii W_jj + W_ij²)/ν, or over ν − D − 3 degrees of an inverse; W may be next to singular."""
    half = np.array([[0.3, 0.1], [0.2, -0.5]])
    gram = half @ half.T
    model = WishartModel(
        n_features=2, degrees=50.0, padding=0.01, subtracted=True, inverse=inverse, augmentation=0.0, corner=0.0, raised=0.0,
        count_scale=3.0,
    )  # fmt: skip
    released: Any = SimpleNamespace(
        noisy_gram=gram, noisy_sum=np.zeros(2), noisy_count=9.0, center=None, count_is_public=False
    )
    law, drawn = model.law(released), gram + 0.01 * np.eye(2)
    assert law is not None
    cells = (np.outer(np.diag(drawn), np.diag(drawn)) + drawn**2) / (50.0 - 2 - 3 if inverse else 50.0)
    np.testing.assert_allclose(law.cell_variances()[1:, 1:], cells, **EXACT)
    assert law.count_variance == pytest.approx(9.0)
    assert "linearized" in law.caveats
    assert replace(model, subtracted=False).law(released) is None
    few = replace(model, degrees=5.0).law(released)
    assert (few is None) == inverse


# --- bounds of terms ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "family", [GaussianCells(), LaplaceCells(), WishartCells(5.0), MatrixLaplaceCells(7.0)], ids=str
)
def test_bounds_about_another_center_put_their_parts_together(family: CellFamily) -> None:
    """‖D N D‖ + ‖t‖(‖D e‖ + |uᵀD e|) + ‖t‖²|n|, each at a quarter of the failure; of a sum ‖D e‖ + ‖t‖|n|, at half."""
    rng, beta, law_of_one = np.random.default_rng(6), 0.1, family
    half = rng.uniform(0.5, 2.0, (4, 4))
    cells, scales, shift = half + half.T, np.array([0.5, 1.5, 0.8]), np.array([0.3, -0.2, 0.1])
    matrix = np.eye(4)
    matrix[1:, 1:], matrix[1:, 0] = np.diag(scales), shift

    def two_sided(failure: float) -> float:
        ends = family.quantile(failure / 2, diagonal=True), family.quantile(1 - failure / 2, diagonal=True)
        return max(abs(end) for end in ends)

    gram = np.outer(scales**2, scales**2) * cells[1:, 1:]
    length = float(np.linalg.norm(shift))
    of_sum = np.diag(scales**2 * cells[0, 1:])
    along = shift @ of_sum @ shift / length**2
    vectors = family.vector_bound(of_sum, beta / 4) + family.vector_bound(np.array([[along]]), beta / 4)
    of_count = sqrt(cells[0, 0]) * two_sided(beta / 4)
    parts = family.norm_bound(np.outer(scales, scales) ** 2 * cells[1:, 1:], beta / 4, 3)
    term, features = NoiseTerm(law_of_one, cells, matrix), np.arange(1, 4)
    expected = parts + length * vectors + length**2 * of_count
    assert term._shifted_bound(beta, matrix[1:]) == pytest.approx(expected)
    assert term.gram_bound(beta, features) <= expected * (1 + 1e-12)
    assert np.allclose(gram, np.outer(scales, scales) ** 2 * cells[1:, 1:])
    unmoved = matrix.copy()
    unmoved[1:, 0] = 0.0
    plainly = family.norm_bound(gram, beta, 3)
    assert NoiseTerm(family, cells, unmoved)._shifted_bound(beta, unmoved[1:]) == pytest.approx(plainly)
    assert term.gram_bound(beta, features) <= math.sqrt(term.energy(features) / beta) * (1 + 1e-12)
    covariance = term.covariance_of_product(np.eye(4)[0], features)
    found = term.sum_bound(beta, features)
    if isinstance(family, GaussianCells):
        assert found == pytest.approx(family.vector_bound(covariance, beta))
    else:
        apart = family.vector_bound(of_sum, beta / 2) + length * sqrt(cells[0, 0]) * two_sided(beta / 2)
        assert found == pytest.approx(apart)
    still = NoiseTerm(family, cells, unmoved)
    sums = still.covariance_of_product(np.eye(4)[0], features)
    assert still.sum_bound(beta, features) == pytest.approx(family.vector_bound(sums, beta))
    alone = NoiseTerm(family, cells)
    assert alone.gram_bound(beta, features) == pytest.approx(family.norm_bound(cells[1:, 1:], beta, 3))


@pytest.mark.parametrize("family", [GaussianCells(), LaplaceCells(), WishartCells(50.0)], ids=str)
@pytest.mark.parametrize("n_cells", [5, 6])
def test_a_bound_on_mixed_cells_is_that_of_even_ones_and_of_what_mixes_them(family: CellFamily, n_cells: int) -> None:
    """‖R C Rᵀ‖ ≤ ‖D⁻½ C D⁻½‖ ‖R D½‖², D from the row of the cell that varies most; Chebyshev's at large failures."""
    rng = np.random.default_rng(7)
    half = rng.uniform(0.2, 1.5, (n_cells, n_cells))
    cells = half + half.T
    cells[0, :] *= 3.0
    cells[:, 0] *= 3.0
    if n_cells == 6:
        cells[4, :] = cells[:, 4] = 0.0  # without noise of its own, and used
    matrix = rng.normal(size=(5, n_cells))
    matrix[:, 2] = 0.0  # not used
    term, features = NoiseTerm(family, cells, matrix), np.array([1, 2, 4])
    used = [k for k in range(n_cells) if k != 2]
    rows, own = matrix[np.ix_(features, used)], cells[np.ix_(used, used)]
    spread = np.array([sqrt(2 * entry / own[0, 0]) or 1.0 for entry in own[0]])
    spread[0] = 1.0
    size = min(3, len(used)) if not isinstance(family, LaplaceCells) else len(used)
    for failure in (1e-9, 0.9):
        even = family.norm_bound(own / np.outer(spread, spread), failure, size)
        mixed = even * np.linalg.norm(rows @ np.diag(np.sqrt(spread)), 2) ** 2
        chebyshev = sqrt(term.energy(features) / failure)
        assert term.gram_bound(failure, features) == pytest.approx(min(mixed, chebyshev))
        assert (mixed < chebyshev) == (failure < 0.5)
    assert NoiseTerm(family, 0.0 * cells, matrix).gram_bound(0.1, features) == 0.0
    known = NoiseTerm(family, cells, matrix, (matrix[:, 0], np.eye(n_cells)[0]))
    assert known.gram_bound(1e-9, features) == pytest.approx(sqrt(known.energy(features) / 1e-9))


def test_a_term_without_noise_has_none_and_no_warning() -> None:
    rng = np.random.default_rng(8)
    half = rng.normal(size=(2, 3, 3))
    weights, indices = half + np.swapaxes(half, 1, 2), np.arange(3)
    for matrix in (rng.normal(size=(3, 6)), None):
        term = NoiseTerm(GaussianCells(), np.zeros((3, 3)) if matrix is None else np.zeros((6, 6)), matrix)
        with np.errstate(all="raise"):
            assert not term.variance(np.tile(indices, (2, 1)), weights).any()
            assert not term.covariance(indices, weights).any()
            assert not term.covariance_of_product(rng.normal(size=3)).any()
            assert term.energy(indices) == term.trace_variance(indices) == 0.0


def test_skews_of_a_sum_are_weighed_by_energy_and_none_without_noise() -> None:
    def law(*parts: tuple[CellFamily, float]) -> NoiseLaw:
        return NoiseLaw(tuple(NoiseTerm(family, size * (np.ones((4, 4)) + np.eye(4))) for family, size in parts))

    one, other = (WishartCells(5.0), 2.0), (MatrixLaplaceCells(9.0), 3.0)
    energies = [size * (6 + 6) for _, size in (one, other)]
    skews = [family.skews(3, 2 * energy / 12) for (family, _), energy in zip((one, other), energies, strict=True)]
    expected = np.average(np.array(skews), axis=0, weights=energies)
    assert law(one, other).spectral_skews == pytest.approx(tuple(expected))
    assert law((WishartCells(5.0), 0.0)).spectral_skews == (0.0, 0.0)


def test_an_inverse_wishart_draw_has_a_covariance_as_soon_as_it_has_one() -> None:
    """The covariance of an inverse Wishart matrix exists beyond D + 3 degrees, D rows (von Rosen 1988)."""
    model = WishartModel(
        n_features=3, degrees=7.5, padding=4.0, subtracted=True, inverse=True, augmentation=0.0, corner=0.0, raised=0.0,
        count_scale=2.5, count_is_laplace=True,
    )  # fmt: skip
    assert model.dimension == 3
    for degrees, known in ((7.5, True), (6.5, True), (6.0, False), (5.0, False)):
        assert (replace(model, degrees=degrees).law(RELEASED) is not None) is known
