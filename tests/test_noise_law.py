"""The bounds a noise law states hold as often as they say, for draws of the mechanism's own noise."""

from __future__ import annotations

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.mechanisms.base import Mechanism, MomentShape
from dpmoments.mechanisms.parts.additive import AdditivePlan
from dpmoments.noise.entropy import insecure_generator
from dpmoments.noise_law import NoiseLaw
from dpmoments.privacy.budget import PrivacyBudget

FAILURE = 0.1
PLANS = [
    (dpm.mechanisms.Gaussian(), PrivacyBudget.zcdp(0.5)),
    (dpm.mechanisms.Gaussian(variance="entrywise"), PrivacyBudget.zcdp(0.5)),
    (dpm.mechanisms.Laplace(), PrivacyBudget.pure(1.0)),
    (dpm.mechanisms.MatrixLaplace(), PrivacyBudget.pure(1.0)),
    (dpm.mechanisms.AdditiveWishart(), PrivacyBudget.approximate(1.0, 1e-6)),
]


def draws(plan: AdditivePlan, n_draws: int, seed: int = 0) -> np.ndarray:
    """Noise on the augmented matrix, unit-ball units, shape (n_draws, D, D)."""
    generator = insecure_generator(seed)
    return np.array([plan.draw(generator) for _ in range(n_draws)]) * 4.0**-plan.bits


@pytest.mark.parametrize(("mechanism", "budget"), PLANS)
@pytest.mark.parametrize("d", [1, 4, 12])
def test_stated_bounds_hold(mechanism: Mechanism, budget: PrivacyBudget, d: int) -> None:
    plan = mechanism.plan(MomentShape(d), budget, "add_remove")
    law = plan.noise
    assert law is not None
    noise = draws(plan, 400)
    gram = noise[:, 1:, 1:]
    norms = np.linalg.norm(gram, 2, axis=(1, 2))
    block = np.linalg.norm(gram[:, : (d + 1) // 2, : (d + 1) // 2], 2, axis=(1, 2))
    sums = np.linalg.norm(noise[:, 0, 1:], axis=1) / plan.augmentation
    counts = np.abs(noise[:, 0, 0]) / plan.augmentation**2
    for found, bound in [
        (norms, law.operator_norm_bound(FAILURE)),
        (block, law.operator_norm_bound(FAILURE, (d + 1) // 2)),
        (sums, law.sum_norm_bound(FAILURE)),
        (counts, law.count_bound(FAILURE)),
    ]:
        assert (
            np.mean(found > bound) <= 1.4 * FAILURE
        )  # four standard deviations of 400 draws, where the bound is exact
        # planted fault: a tenth of the bound is exceeded far too often
        assert np.mean(found > bound / 10) > FAILURE
    assert law.operator_norm_bound(FAILURE, (d + 1) // 2) <= law.operator_norm_bound(FAILURE)


@pytest.mark.parametrize(("mechanism", "budget"), PLANS)
def test_stated_variances_are_those_of_the_draws(mechanism: Mechanism, budget: PrivacyBudget) -> None:
    plan = mechanism.plan(MomentShape(3), budget, "replace_one")
    law = plan.noise
    assert law is not None
    noise = draws(plan, 3000)
    assert np.var(noise[:, 1, 1]) == pytest.approx(law.diagonal_variance, rel=0.15)
    assert np.var(noise[:, 1, 2]) == pytest.approx(law.off_diagonal_variance, rel=0.15)
    assert law.sum_variance is not None
    assert np.var(noise[:, 0, 1]) / plan.augmentation**2 == pytest.approx(law.sum_variance, rel=0.15)
    assert law.count_variance == 0.0
    assert np.var(noise[:, 1, 1]) != pytest.approx(2 * law.diagonal_variance, rel=0.15)


def test_a_family_without_a_bound_of_its_own_falls_back_to_chebyshev() -> None:
    law = NoiseLaw("other", 2, 2.0, 1.0, None, None)
    assert law.operator_norm_bound(0.25) == pytest.approx(np.sqrt(6.0 / 0.25))
    with pytest.raises(ValueError, match="failure"):
        law.operator_norm_bound(1.0)
    with pytest.raises(ValueError, match="sum"):
        law.sum_norm_bound(0.1)
    with pytest.raises(ValueError, match="count"):
        law.count_bound(0.1)
