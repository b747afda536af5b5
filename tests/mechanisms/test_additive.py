"""What the mechanisms share that add noise to the whole Gram matrix: the constant beside each row, the variances, the sum."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.mechanisms.additive import augmented_dimension, augmented_gram, choose_augmentation, choose_bits
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.mechanisms.eigenvectors import EntrywiseGaussian, PaperLaplace
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.sensitivity import gram_entrywise_l1, gram_frobenius, gram_nuclear
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from dpmoments.schema import Schema

ADD_REMOVE, REPLACE_ONE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE
PURE, ZCDP = PrivacyBudget.pure(0.7), PrivacyBudget.zcdp(0.3)


def covariance_error(d: int, w: float, sensitivity: float, ratio: float, *, noisy_count: bool) -> float:
    """Mean square error of G/n − μμᵀ at ‖μ‖ = 1, first order in the noise, cell by cell.

    ``docs/evidence/derivations/additive.md`` has the proof.
    The noise of the Gram matrix is N_ij, that of wΣx is wE, that of w²n is w⁴F: G/n − μμᵀ moves by N − μEᵀ − Eμᵀ + Fμμᵀ.
    """
    mean = np.zeros(d)
    mean[0] = 1.0
    diagonal, off_diagonal = ratio, 1.0
    variance = off_diagonal * (1.0 - np.eye(d)) + diagonal * np.eye(d)
    of_sum = off_diagonal / w**2
    variance += of_sum * (mean[:, None] ** 2 + mean[None, :] ** 2 + 2.0 * np.diag(mean**2))
    of_count = diagonal / w**4 if noisy_count else 0.0
    variance += of_count * np.outer(mean, mean) ** 2
    return float(sensitivity**2 * variance.sum())


@pytest.mark.parametrize("noisy_count", [True, False])
@pytest.mark.parametrize("ratio", [1.0, 2.0])
@pytest.mark.parametrize("measured", [gram_frobenius, gram_nuclear, gram_entrywise_l1])
@pytest.mark.parametrize("d", [1, 2, 3, 7, 40])
def test_the_constant_gives_the_least_error_of_the_covariance(
    d: int, measured: Any, ratio: float, noisy_count: bool
) -> None:
    relation = ADD_REMOVE if noisy_count else REPLACE_ONE

    def sensitivity(w: float) -> float:
        return measured(relation, d, w).value

    chosen = choose_augmentation(MomentShape(d), sensitivity, noisy_count=noisy_count, diagonal_ratio=ratio)
    errors = {
        step / 64: covariance_error(d, step / 64, sensitivity(step / 64), ratio, noisy_count=noisy_count)
        for step in range(1, 65)
    }
    if ratio == 2.0:  # the default, for noise that is isotropic in Frobenius norm
        assert choose_augmentation(MomentShape(d), sensitivity, noisy_count=noisy_count) == chosen
    assert chosen in errors
    assert errors[chosen] <= min(errors.values()) * (1.0 + 1e-12)
    assert choose_augmentation(MomentShape(d, mean=False), sensitivity, noisy_count=noisy_count) == 0.0


def additive_plans(mean: bool, relation: Neighbors) -> list[Any]:
    shape, mechanisms = MomentShape(3, mean=mean), dpm.mechanisms
    return [
        mechanisms.Gaussian().plan(shape, ZCDP, relation),
        mechanisms.Laplace().plan(shape, PURE, relation),
        mechanisms.MatrixLaplace().plan(shape, PURE, relation),
        mechanisms.Isotropic().plan(shape, PURE, relation),
        mechanisms.AdditiveWishart(40).plan(shape, PrivacyBudget.approximate(1.0, 1e-6), relation),
    ]


@pytest.mark.parametrize("relation", list(Neighbors))
@pytest.mark.parametrize("mean", [True, False])
def test_variances_of_moments_are_those_of_cells_over_powers_of_the_constant(mean: bool, relation: Neighbors) -> None:
    for plan in additive_plans(mean, relation):
        w, (diagonal, off_diagonal) = plan.augmentation, plan.cell_variances
        stated = plan.model.to_dict()
        assert plan.dimension == augmented_dimension(3, w) == (4 if mean else 3)
        assert (stated["n_features"], stated["diagonal_variance"]) == (3, diagonal)
        assert stated["off_diagonal_variance"] == off_diagonal
        assert (w > 0) == mean
        assert stated["sum_variance"] == (off_diagonal / w**2 if mean else None)
        noisy_count = diagonal / w**4 if mean else None
        assert stated["count_variance"] == (0.0 if relation is REPLACE_ONE else noisy_count)


def test_variances_of_cells_are_those_of_the_laws() -> None:
    plans = additive_plans(True, ADD_REMOVE)
    gaussian, laplace, matrix_laplace, isotropic, wishart = plans
    sigma, b = gaussian.noise.noise_scale, laplace.noise.noise_scale
    rate, other_rate = matrix_laplace.noise.rate, isotropic.noise.rate
    k, square = wishart.noise.degrees, wishart.noise.scale
    expected = [
        (sigma**2, sigma**2 / 2.0),
        (2.0 * b**2, 2.0 * b**2),
        (5.0 / rate**2, 2.5 / rate**2),
        (11.0 / other_rate**2, 5.5 / other_rate**2),
        (2.0 * k * square**2, k * square**2),
    ]
    for plan, exact in zip(plans, expected, strict=True):
        assert plan.cell_variances == pytest.approx(exact, rel=1e-6)


@pytest.mark.parametrize("mean", [True, False])
@pytest.mark.parametrize("relation", list(Neighbors))
def test_noise_is_scaled_to_the_sensitivity_of_augmented_rows(relation: Neighbors, mean: bool) -> None:
    shape, mechanisms = MomentShape(3, mean=mean), dpm.mechanisms

    def of_paper(w: float) -> float:
        return 2.0 * (3 + (1 if w else 0)) * (1.0 + w * w)

    def measured(sensitivity: Any) -> Any:
        return lambda w: sensitivity(relation, 3, w).value

    for mechanism, budget, sensitivity, ratio, noise in (
        (mechanisms.Gaussian(), ZCDP, measured(gram_frobenius), 2.0, lambda one: one.noise_scale * math.sqrt(0.6)),
        (EntrywiseGaussian(), ZCDP, measured(gram_frobenius), 1.0, lambda one: one.off_diagonal_scale * math.sqrt(0.6)),
        (mechanisms.Laplace(), PURE, measured(gram_entrywise_l1), 1.0, lambda one: one.noise_scale * 0.7),
        (PaperLaplace(), PURE, of_paper, 1.0, lambda one: one.noise_scale * 0.7),
        (mechanisms.MatrixLaplace(), PURE, measured(gram_nuclear), 2.0, lambda one: 0.7 / one.rate),
        (mechanisms.Isotropic(), PURE, measured(gram_frobenius), 2.0, lambda one: 0.7 / one.rate),
    ):
        plan: Any = mechanism.plan(shape, budget, relation)
        noisy_count = relation is ADD_REMOVE
        assert plan.augmentation == choose_augmentation(
            shape, sensitivity, noisy_count=noisy_count, diagonal_ratio=ratio
        )
        assert noise(plan.noise) == pytest.approx(sensitivity(plan.augmentation), rel=1e-12)
        assert plan.cell_variances[0] == pytest.approx(ratio * plan.cell_variances[1], rel=1e-12)
        assert (plan.unspent_reason is not None) == (mechanism == PaperLaplace())


def test_the_lattice_of_a_plan_has_room_for_its_noise() -> None:
    """The finest for the standard deviation on the diagonal, or for the whole Wishart matrix before its mean is taken off."""
    for epsilon in np.geomspace(1e-7, 1e-4, 8).tolist():
        pure, approximate = PrivacyBudget.pure(epsilon), PrivacyBudget.approximate(epsilon, 1e-6)
        shape, mechanisms = MomentShape(3), dpm.mechanisms
        plans: list[Any] = [
            mechanisms.Laplace().plan(shape, pure, ADD_REMOVE),
            mechanisms.MatrixLaplace().plan(shape, pure, ADD_REMOVE),
            mechanisms.Isotropic().plan(shape, pure, ADD_REMOVE),
            mechanisms.Gaussian().plan(shape, PrivacyBudget.zcdp(epsilon**2), ADD_REMOVE),
        ]
        for plan in plans:
            assert plan.bits == choose_bits(math.sqrt(plan.cell_variances[0]) * (1.0 - 1e-9), 3)
        wishart: Any = mechanisms.AdditiveWishart(200).plan(shape, approximate, ADD_REMOVE)
        assert wishart.bits == choose_bits(wishart.noise.scale * (200.0 + math.sqrt(400.0)) * (1.0 - 1e-9), 3)
        assert max(plan.bits for plan in plans) < 20


def test_the_augmented_matrix_is_exact() -> None:
    table = np.random.default_rng(1).uniform(-0.5, 0.5, (50, 3))
    moments = Rows.of(table, Schema.unit_ball(3)).moments(bits=7)
    for w in (1 / 64, 0.75, 1.0):
        matrix = augmented_gram(moments, w)
        assert matrix[0, 0] == round(w * 128) ** 2 * 50
        assert matrix[0, 1:].tolist() == matrix[1:, 0].tolist() == [round(w * 128) * s for s in moments.sum.tolist()]
        assert (matrix[1:, 1:] == moments.gram).all()
        without = augmented_gram(moments, w, count=False)
        assert without[0, 0] == 0
        assert (without.ravel()[1:] == matrix.ravel()[1:]).all()
    assert (augmented_gram(moments, 0.0) == moments.gram).all()
    assert math.isclose(float(moments.sum[0]) / 128, table[:, 0].sum(), abs_tol=50 / 128)
