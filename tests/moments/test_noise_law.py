"""What mechanisms state of their noise holds for draws of their own: variances, quantiles, bounds."""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from functools import cache

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

import dpmoments as dpm
from dpmoments.audit.verification import _FALSE_ALARM, checks
from dpmoments.mechanisms.additive import AdditivePlan
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.moments.cells import (
    GaussianCells,
    LaplaceCells,
    _gamma_difference_log_tail,
    cantelli_quantile,
    gamma_difference_quantile,
)
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.models import AdditiveModel, NoiseModel
from dpmoments.papers.mechanisms.eigenvectors import EntrywiseGaussian
from dpmoments.papers.models import WishartCells, gamma_quantile
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.sampling import insecure_generator
from support.noise_models import additive, gaussian, laplace
from support.opened_filter import Unchecked
from support.said import refused

pytestmark = pytest.mark.long(sets=None)

FAILURE = 0.1
PLANS = [
    (dpm.mechanisms.Gaussian(), PrivacyBudget.zcdp(0.5)),
    (EntrywiseGaussian(), PrivacyBudget.zcdp(0.5)),
    (dpm.mechanisms.Laplace(), PrivacyBudget.pure(1.0)),
    (dpm.mechanisms.MatrixLaplace(), PrivacyBudget.pure(1.0)),
    (dpm.mechanisms.Isotropic(), PrivacyBudget.pure(1.0)),
    (dpm.mechanisms.AdditiveWishart(), PrivacyBudget.approximate(1.0, 1e-6)),
]
MODELS = {
    "gaussian": gaussian(3, 2.0, 1.0, 1.5, 4.0),
    "isotropic": additive("isotropic", 3, 11.0, 5.5, 6.0, 12.0, 1.0),
    "laplace": laplace(3, 2.0, 2.0, 3.0, 4.0),
    "matrix-laplace": additive("matrix-laplace", 3, 5.0, 2.5, 3.0, 6.0, 1.0),
    "wishart": additive("wishart", 3, 4.0, 2.0, 3.0, 6.0, 1.0),
}
"""One of every family."""


def law_of(plan: AdditivePlan) -> NoiseLaw:
    return plan.model.law()


def draws(plan: AdditivePlan, n_draws: int, seed: int = 0) -> np.ndarray:
    """Noise on the augmented matrix, unit-ball units, shape (n_draws, D, D)."""
    unchecked = Unchecked(plan, insecure_generator(seed))  # a filter would refuse the second draw, and price each anew
    no_rows = np.zeros((plan.dimension, plan.dimension), dtype=np.int64)
    return np.array([plan.add_noise(unchecked, "noise", no_rows) for _ in range(n_draws)])


# --- quantiles --------------------------------------------------------------------------------------------------------

BINS = 20
LEVELS = np.arange(1, BINS) / BINS
UNLIKELY = 1e-6


def quantiles(law: NoiseLaw, cell: str) -> np.ndarray:
    cells = law.cell_variances()
    variance = {"count": law.count_variance, "diagonal": cells[1, 1], "cell": cells[1, 2]}[cell]
    return math.sqrt(variance) * np.array([law.quantile(float(level), of=cell) for level in LEVELS])


def p_value(noise: np.ndarray, edges: np.ndarray) -> float:
    """Of the numbers of independent draws between quantiles, which are equally likely: χ² with 19 degrees."""
    return float(stats.chisquare(np.bincount(np.searchsorted(edges, noise), minlength=BINS)).pvalue)


@cache
def drawn(mechanism: str) -> tuple[AdditivePlan, dict[str, np.ndarray]]:
    """A mechanism's plan, and draws of its noise on cells that are independent of each other.

    Diagonal cells are, and cells off the diagonal that share no row or column.
    """
    number, (made, budget) = next(item for item in enumerate(PLANS) if str(item[1][0]) == mechanism)
    plan = made.plan(MomentShape(6), budget, "add_remove")
    noise = draws(plan, 15_000, seed=number)
    return plan, {
        "diagonal": noise[:, range(1, 7), range(1, 7)].ravel(),
        "cell": noise[:, [1, 3, 5], [2, 4, 6]].ravel(),
        "count": noise[:, 0, 0] / plan.augmentation**2,
    }


@pytest.mark.long
@pytest.mark.parametrize("mechanism", [str(mechanism) for mechanism, _ in PLANS])
@pytest.mark.parametrize("cell", ["diagonal", "cell", "count"])
def test_quantiles_are_those_of_the_draws(mechanism: str, cell: str) -> None:
    plan, noise = drawn(mechanism)
    law = law_of(plan)
    assert p_value(noise[cell], quantiles(law, cell)) > UNLIKELY
    # planted faults: a variance 10 % off (a fifth for the fewer draws of a count), and that of the other cells
    for factor in (0.8, 1.2) if cell == "count" else (0.9, 1.1):
        assert p_value(noise[cell], math.sqrt(factor) * quantiles(law, cell)) < UNLIKELY
    if cell != "count" and plan.model.diagonal_variance != plan.model.off_diagonal_variance:
        other = {"diagonal": "cell", "cell": "diagonal"}[cell]
        assert p_value(noise[cell], quantiles(law, other)) < UNLIKELY
    # and a law of the right variance that is normal
    if cell != "count" and plan.model.family in ("laplace", "matrix-laplace"):
        normal = replace(plan.model, family="gaussian", rate=None).law()
        assert p_value(noise[cell], quantiles(normal, cell)) < UNLIKELY


def test_the_skew_of_one_wishart_is_in_its_quantiles() -> None:
    """χ²_k less its mean on the diagonal, from few degrees of freedom; turned over it is another law."""
    law = additive("wishart", 2, 3 / 2.0, 3 / 4.0, None, None, 1.0).law()  # k = 3
    rng = np.random.default_rng(0)
    noise = (rng.chisquare(3, 20_000) - 3) / 2
    assert p_value(noise, quantiles(law, "diagonal")) > UNLIKELY
    assert p_value(-noise, quantiles(law, "diagonal")) < UNLIKELY
    product = np.sum(rng.normal(size=(20_000, 3)) * rng.normal(size=(20_000, 3)), axis=1) / 2
    assert p_value(product, quantiles(law, "cell")) > UNLIKELY
    assert p_value(noise, quantiles(law, "cell")) < UNLIKELY


@pytest.mark.parametrize("shape", [0.5, 1.0, 2.5, 40.0, 1e4])
@pytest.mark.parametrize("deviations", [0.003, 0.7, 3.0, 8.0])
def test_the_tail_of_a_gamma_difference_is_that_of_its_definition(shape: float, deviations: float) -> None:
    x = deviations * math.sqrt(2 * shape)
    law = stats.gamma(shape)
    center, reach = shape + x, 14 * math.sqrt(shape) + 40 + x
    low = max(shape - reach, 0.0)
    pieces = np.unique(np.clip([low, shape, shape + x / 2, center, shape + reach], low, None))
    reference = sum(
        integrate.quad(lambda y: law.pdf(y) * law.sf(y + x), a, b, epsabs=0, epsrel=1e-9, limit=500)[0]
        for a, b in itertools.pairwise(pieces)
    )
    assert math.exp(_gamma_difference_log_tail(x, shape)) == pytest.approx(reference, rel=1e-6)


@pytest.mark.long(sets=4)
@pytest.mark.parametrize("shape", [2.0, 7.0, 0.99e4, 1.01e4, 2.0**25, 1e10])
@pytest.mark.parametrize("level", [1e-15, 0.2, 1 - 1e-9])
def test_a_gamma_quantile_has_its_level_below_it(shape: float, level: float) -> None:
    """By integrals of the density in 30 digits: the incomplete gamma function itself is off at large shapes."""
    with mpmath.workdps(30):
        a = mpmath.mpf(shape)
        point = a + mpmath.sqrt(a) * mpmath.mpf(gamma_quantile(level, shape))

        def density(y: mpmath.mpf) -> mpmath.mpf:
            return mpmath.exp((a - 1) * mpmath.log(y) - y - mpmath.loggamma(a))

        if shape < 1e3:
            below = mpmath.gammainc(a, 0, point, regularized=True)
            found = below if level < 0.5 else 1 - below
        else:
            side = -1 if level < 0.5 else 1
            steps = [point + side * mpmath.sqrt(a) * step / 4 for step in range(33)]
            found = side * mpmath.quad(density, steps)
        assert float(found) == pytest.approx(min(level, 1 - level), rel=1e-6 if shape < 1e9 else 1e-5)


@pytest.mark.parametrize("level", [1e-300, 5e-10, 0.3, 0.5, 0.9, 1 - 1e-9])
def test_quantiles_at_the_ends_of_what_there_is(level: float) -> None:
    assert gamma_difference_quantile(level, 1.0) == pytest.approx(
        LaplaceCells().quantile(level, diagonal=True), rel=1e-9
    )
    if level > 1e-100:
        normal = stats.norm.ppf(level)
        assert GaussianCells().quantile(level, diagonal=True) == pytest.approx(normal)
        for shape in (0.99e8, 1e9):
            assert gamma_difference_quantile(level, shape) == pytest.approx(normal, abs=1e-6)
        for degrees in (0.99e12, 1.01e12):
            assert WishartCells(2 * degrees).quantile(level, diagonal=True) == pytest.approx(normal, abs=2e-5)


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_quantiles_of_any_law_are_within_its_bounds_and_those_of_cantelli(model: AdditiveModel) -> None:
    law, levels = model.law(), [1e-12, 0.01, 0.3, 0.7, 0.99]
    for of in ("diagonal", "cell"):
        found = [law.quantile(level, of=of) for level in levels]
        assert found == sorted(found)
        for level, quantile in zip(levels, found, strict=True):
            bound = cantelli_quantile(level)
            assert quantile <= bound if level > 0.5 else quantile >= bound
    assert law.quantile(0.01, of="count") == pytest.approx(law.quantile(0.01, of="diagonal"))
    deviation = math.sqrt(law.count_variance)
    assert -law.quantile(FAILURE / 2, of="count") * deviation <= law.count_bound(FAILURE)
    assert law.quantile(1 - FAILURE / 2, of="count") * deviation <= law.count_bound(FAILURE)
    assert replace(model, count_variance=0.0).law().count_bound(1e-9) == 0.0
    for level in (0.0, 1.0, math.nan):
        with refused("must be", parameter="level"):
            law.quantile(level, of="diagonal")


# --- the check of a count -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mechanism", "budget"), PLANS)
def test_a_count_is_doubted_from_where_noise_hardly_reaches(mechanism: Mechanism, budget: PrivacyBudget) -> None:
    """A count as low as noise makes it once in ten million is passed; one that it makes once in 10¹² is not."""
    table = np.zeros((0, 3))
    arguments = {"rho": budget.rho} if budget.rho else {"epsilon": budget.epsilon, "delta": budget.delta}
    made = dpm.release(table, dpm.Schema.unit_ball(3), mechanism=mechanism, insecure_seed=0, **arguments)
    for level, passed in ((1e-7, True), (_FALSE_ALARM, True), (1e-12, False)):
        count = math.sqrt(made.noise.count_variance) * made.noise.quantile(level, of="count")
        assert checks(replace(made, noisy_count=count))[3].passed is passed


@pytest.mark.parametrize("model", MODELS.values(), ids=MODELS)
def test_a_variance_written_as_an_integer_beyond_64_bits_is_a_float(model: AdditiveModel) -> None:
    """As a file may write it; arrays would hold it as an object."""
    sizes = {"diagonal_variance": 2**65, "off_diagonal_variance": 2**64}
    read = NoiseModel.from_dict(model.to_dict() | sizes)
    assert isinstance(read, AdditiveModel)
    for name, value in sizes.items():
        assert getattr(read, name) == float(value)
        assert isinstance(getattr(read, name), float)
