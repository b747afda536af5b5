"""Noise by the Frobenius norm: its constants, its marginal laws, its exact loss, and where it is the best there is."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dpmoments.mechanisms import Auto, Isotropic, MatrixLaplace
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.moments.models import AdditiveModel
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors
from support.noise_models import additive

ADD_REMOVE, REPLACE_ONE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
ONE = PrivacyBudget.pure(1.0)
LEVELS = (1e-9, 0.01, 0.2, 0.5, 0.9, 0.999)


def law_of(d: int, rate: float = 0.8) -> AdditiveModel:
    """Alone on a d × d matrix."""
    diagonal = (d * (d + 1) // 2 + 1) / rate**2
    return additive("isotropic", d, diagonal, diagonal / 2.0, None, None, rate)


@pytest.mark.parametrize("neighbors", Neighbors)
@pytest.mark.parametrize("d", [2, 3, 7])
def test_constants_without_the_mean(d: int, neighbors: Neighbors) -> None:
    plan = Isotropic().plan(MomentShape(d, mean=False), PrivacyBudget.pure(0.7), neighbors)
    m = d * (d + 1) / 2
    moved = 1.0 if neighbors is ADD_REMOVE else math.sqrt(2.0)
    assert plan.expected_error == pytest.approx(math.sqrt(m * (m + 1)) * moved / 0.7, rel=1e-12)
    assert plan.noise.rate * plan.sensitivity.value <= 0.7


def test_in_one_dimension_it_is_the_laplace_law() -> None:
    law = law_of(1)
    for level in LEVELS:
        reference = stats.laplace(scale=1.0 / law.rate).ppf(level)
        found = math.sqrt(law.diagonal_variance) * law.law().quantile(level, of="diagonal")
        assert found == pytest.approx(reference, rel=1e-9, abs=1e-12)


@pytest.mark.long
@pytest.mark.parametrize("d", [1, 2, 3, 6, 20])
def test_quantiles_are_those_of_a_direction_and_a_radius(d: int) -> None:
    """Another derivation: u₁² is Beta(1/2, (m − 1)/2) and the radius Gamma(m), one integral over the radius."""
    law, m = law_of(d), d * (d + 1) // 2
    radii = stats.gamma(m).isf((np.arange(20_000) + 0.5) / 20_000)

    def tail(x: float) -> float:
        share = np.minimum((x / radii) ** 2, 1.0)
        of_one = stats.beta(0.5, (m - 1) / 2.0).sf(share) if m > 1 else (radii > x).astype(float)
        return float(np.mean(of_one)) / 2.0

    for level in (0.6, 0.9, 0.99):
        for of in ("diagonal", "cell"):
            x = law.law().quantile(level, of=of) * math.sqrt(law.diagonal_variance) * law.rate  # in svec coordinates
            assert tail(x) == pytest.approx(1.0 - level, rel=2e-3)
            # planted fault: 5 % less
            assert tail(0.95 * x) != pytest.approx(1.0 - level, rel=2e-3)


# Where it is the best -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("neighbors", Neighbors)
@pytest.mark.parametrize("dimension", range(2, 8))
@pytest.mark.parametrize("mean", [True, False])
def test_auto_takes_it_where_it_is_the_best(dimension: int, neighbors: Neighbors, mean: bool) -> None:
    shape = MomentShape(dimension - mean, mean=mean)
    chosen = Auto().plan(shape, ONE, neighbors).mechanism.name
    best = neighbors is REPLACE_ONE and dimension in (2, 3)
    # Independent noise leaves the public count out, a third of the cells of one feature with its mean.
    assert (chosen == "isotropic") == (best and not (mean and dimension == 2))
    ours, theirs = (
        mechanism.plan(shape, ONE, neighbors).expected_error for mechanism in (Isotropic(), MatrixLaplace())
    )
    assert (ours < theirs) == best
