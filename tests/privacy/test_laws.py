"""What a draw of each law costs, against the exact law; every comparison is shown to reject a planted fault.

The comparisons take a law as it is drawn from its parameters, and the price from its ``loss``. A planted fault is a law with the
price of another (:func:`charged_as`), or one whose sum is wrong.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, fields, replace
from fractions import Fraction
from functools import cache
from itertools import product
from typing import Any, ClassVar

import mpmath
import numpy as np
import pytest
from scipy import special, stats
from threadpoolctl import threadpool_limits

from dpmoments.base.message import Message
from dpmoments.papers.laws import (
    AdditiveWishartDraw,
    Directions,
    EigenvalueBound,
    GaussianDraw,
    RaisedWishartSampling,
    WishartSampling,
)
from dpmoments.privacy.accounting import Loss, LossUnit, allowance
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.curves import (
    MAX_COMPOSED_COORDINATES,
    MIN_COMPOSED_SCALE,
    additive_wishart_delta,
    bounded_range_delta,
    discrete_gaussian_rho,
    discrete_laplace_delta,
    laplace_delta,
    raised_wishart_delta,
    raised_wishart_ratio,
    wishart_sampling_delta,
)
from dpmoments.privacy.laws import (
    LAWS,
    Choice,
    DiscreteGaussian,
    DiscreteLaplace,
    DrawLaw,
    GaussianLaw,
    IsotropicDraw,
    KNorm,
    LevelSelection,
    MatrixLaplaceDraw,
)
from dpmoments.privacy.receipt import Draw
from dpmoments.privacy.sampling import (
    _KEPT_BITS,
    _add_integers,
    coordinates_of,
    insecure_generator,
    noised,
    without_low_bits,
)
from dpmoments.privacy.sensitivity import (
    Norm,
    Sensitivity,
    count,
    count_l1,
    gram_frobenius,
    gram_nuclear,
    histogram_l1,
    median_score,
    name_counts,
    quadratic_form,
    query_distance,
    rank_score,
    row_norm_square,
    row_sum_l1,
    smallest_eigenvalue,
    sorted_eigenvalues_l1,
    sum_and_count_l2,
    sums_in_body,
)
from dpmoments.privacy.unit import Neighbors
from dpmoments.releases.profile import _concentrated_bounds
from support.said import refused

pytestmark = pytest.mark.long(sets=None)

ORDERS = (1.01, 1.1, 1.5, 2.0, 3.0, 5.0, 10.0, 32.0, 100.0)
"""Rényi orders at which a zCDP price is compared; a price ρ must be ≥ D_α/α at each of them."""
ROUNDING = 1.0 + 1e-9
BOTH = tuple(Neighbors)

ONE = {
    Norm.L1: smallest_eigenvalue,
    Norm.L2: count,
    Norm.NUCLEAR: lambda neighbors: gram_nuclear(neighbors, 1),
    Norm.ROW: quadratic_form,
    Norm.SCORE: rank_score,
    Norm.BODY: lambda neighbors: replace(sums_in_body(neighbors, 3, (2,)), value=1.0),
    Norm.NAMES: lambda neighbors: replace(name_counts(neighbors), value=1.0),
}
"""In each norm a sensitivity of 1, whatever the relation."""


def moves_by(norm: Norm, distance: float, neighbors: Neighbors) -> Sensitivity:
    """The sensitivity of a query that moves by so much."""
    return replace(ONE[norm](neighbors), value=distance, units=distance)


def price(law: DrawLaw, sensitivity: Sensitivity, unit: LossUnit) -> float:
    return float(law.loss(sensitivity, unit).amount)


def charged_as(law: DrawLaw, other: DrawLaw) -> DrawLaw:
    """A planted fault: the noise of one law at the price of another."""

    class Faulty(type(law)):  # type: ignore[misc]
        def _loss(self, sensitivity: Sensitivity, unit: LossUnit) -> Loss:
            return other._loss(sensitivity, unit)

        def _claimed_loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget) -> Loss:
            return other._claimed_loss(sensitivity, unit, claim)

    return Faulty(**{field.name: getattr(law, field.name) for field in fields(law)})


LogLaws = list[tuple[np.ndarray, np.ndarray]]
"""For each independent coordinate: log probabilities (or log densities times the cell) of one outcome after another, under either
table."""


def log_of_sum(logs: np.ndarray) -> float:
    """log Σ e^x; the plain formula is ten times faster than SciPy's on the short arrays here."""
    largest = float(logs.max())
    return largest + math.log(float(np.exp(logs - largest).sum()))


def exact_rho(coordinates: LogLaws) -> float:
    """The least ρ for which D_α ≤ αρ both ways at all orders compared."""
    pairs = [coordinates, [(theirs, ours) for ours, theirs in coordinates]]
    return max(
        math.fsum(log_of_sum(order * ours + (1.0 - order) * theirs) for ours, theirs in pair) / ((order - 1.0) * order)
        for pair in pairs
        for order in ORDERS
    )


def exact_epsilon(coordinates: LogLaws) -> float:
    """The largest absolute log-ratio of the two laws over all outcomes compared."""
    ratios = [ours - theirs for ours, theirs in coordinates]
    return max(math.fsum(ratio.max() for ratio in ratios), -math.fsum(ratio.min() for ratio in ratios))


def hockey_stick(ours: np.ndarray, theirs: np.ndarray, epsilon: float) -> float:
    """δ(ε), the larger of both ways, of two laws given as probabilities of the same outcomes."""
    factor = math.exp(epsilon)
    return max(
        float(np.maximum(ours - factor * theirs, 0.0).sum()), float(np.maximum(theirs - factor * ours, 0.0).sum())
    )


# Integer lattices ----------------------------------------------------------------------------------------------------


def lattice_laws(log_weight: Callable[[np.ndarray], np.ndarray], shift: int, reach: int) -> tuple[np.ndarray, ...]:
    """Log probabilities of integers under a law ∝ exp(log_weight) about ``shift`` and about 0."""
    points = np.arange(-reach, reach + 1)
    normalizer = special.logsumexp(log_weight(points))
    return log_weight(points - shift) - normalizer, log_weight(points) - normalizer


def discrete_gaussian_laws(shift: int, scale: float) -> tuple[np.ndarray, ...]:
    # D_α is a sum about α times the shift: the outcomes must reach beyond it.
    reach = math.ceil(max(ORDERS) * abs(shift) + 40.0 * scale) + 10
    return lattice_laws(lambda k: -(k.astype(float) ** 2) / (2.0 * scale**2), shift, reach)


def discrete_gaussian_is_paid_for(law: DiscreteGaussian, shift: Any, unit: LossUnit, neighbors: Neighbors) -> bool:
    """Whether the price is at least the exact ρ of the noise on a query that moves by ``shift`` (integers)."""
    moved = np.asarray(shift)
    distance = query_distance(Norm.L2, moved, np.zeros_like(moved), neighbors)
    if law.off_diagonal_scale is None:
        cells = [(int(cell), law.scale) for cell in moved.ravel()]
    else:
        cells = [(int(cell), law.scale) for cell in np.diagonal(moved)]
        cells += [(int(cell), law.off_diagonal_scale) for cell in moved[np.triu_indices(len(moved), 1)]]
    exact = exact_rho([discrete_gaussian_laws(cell, scale) for cell, scale in cells])
    return exact <= price(law, moves_by(Norm.L2, distance, neighbors), unit) * ROUNDING


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("scale", [0.7, 1.5, 6.25])
@pytest.mark.parametrize("shift", [[1], [-2], [7], [1, -2, 3]])
def test_discrete_gaussian_on_a_vector(shift: list[int], scale: float, neighbors: Neighbors) -> None:
    law = DiscreteGaussian(scale)
    assert discrete_gaussian_is_paid_for(law, shift, LossUnit.RHO, neighbors)
    # faults: half the noise, and a price 1 % too low
    assert not discrete_gaussian_is_paid_for(
        charged_as(law, DiscreteGaussian(2.0 * scale)), shift, LossUnit.RHO, neighbors
    )
    slightly = charged_as(law, DiscreteGaussian(scale * 1.005))
    assert not discrete_gaussian_is_paid_for(slightly, shift, LossUnit.RHO, neighbors)


SYMMETRIC_SHIFTS = ([[1, 0], [0, 0]], [[0, 1], [1, 0]], [[2, -1], [-1, 1]], [[1, 0, 2], [0, -1, 1], [2, 1, 0]])


@pytest.mark.parametrize("shift", SYMMETRIC_SHIFTS)
@pytest.mark.parametrize("ratio", [math.nextafter(math.sqrt(0.5), 1.0), 0.9, 1.0, 1.7])
def test_discrete_gaussian_on_a_symmetric_matrix(shift: list[list[int]], ratio: float) -> None:
    scale = 3.0
    law = DiscreteGaussian(scale, scale * ratio)
    assert discrete_gaussian_is_paid_for(law, shift, LossUnit.RHO, Neighbors.REPLACE_ONE)
    assert not discrete_gaussian_is_paid_for(
        charged_as(law, DiscreteGaussian(6.0, 6.0)), [[1, 0], [0, 0]], LossUnit.RHO, Neighbors.REPLACE_ONE
    )


def test_less_noise_off_the_diagonal_than_the_price_allows() -> None:
    """σ/2 off the diagonal where the price is for σ/√2: refused, and found by the comparison where it is not."""
    off_diagonal_move = np.array([[0, 1], [1, 0]])
    least = math.nextafter(3.0 * math.sqrt(0.5), math.inf)
    one_row = count(Neighbors.ADD_REMOVE)
    for unit in (LossUnit.RHO, LossUnit.GAUSSIAN_RHO):
        for off_diagonal in (1.5, math.nextafter(math.nextafter(least, 0.0), 0.0)):
            with refused("noise off the diagonal must be at least 1/√2 of that on it"):
                DiscreteGaussian(3.0, off_diagonal).loss(one_row, unit)
    right, faulty = DiscreteGaussian(3.0, least), DiscreteGaussian(3.0, 1.5)
    assert discrete_gaussian_is_paid_for(right, off_diagonal_move, LossUnit.RHO, Neighbors.ADD_REMOVE)
    unchecked = charged_as(faulty, right)
    assert not discrete_gaussian_is_paid_for(unchecked, off_diagonal_move, LossUnit.RHO, Neighbors.ADD_REMOVE)


def composed_delta(epsilon: float, mu: float, shift: int) -> float:
    """Exact δ(ε) of one discrete Gaussian draw of ratio shift/scale = μ, summed where the loss is above ε."""
    scale = shift / mu
    # The loss at k, counted from the first mean, is shift·(shift − 2k)/(2·scale²): above ε for k up to this place.
    last = math.ceil(shift / 2.0 - epsilon * scale**2 / shift)
    points = np.arange(last, last - math.ceil(7.0 * scale) - 20.0, -1.0)
    own = np.exp(-(points**2) / (2.0 * scale**2))
    gain = -np.expm1(np.minimum(epsilon - shift * (shift - 2.0 * points) / (2.0 * scale**2), 0.0))
    # By Poisson's summation formula the sum over all integers is this integral, but for terms below 2e^(−2π²·scale²).
    terms = math.fsum(2.0 * math.exp(-2.0 * (math.pi * scale * j) ** 2) for j in range(1, 10))
    return float((own * gain).sum()) / (scale * math.sqrt(2.0 * math.pi) * (1.0 + terms))


@pytest.mark.long(sets=1)
@pytest.mark.parametrize(("epsilon", "delta"), [(1.0, 1e-6), (0.1, 1e-9), (4.0, 1e-3)])
def test_composed_discrete_gaussians_keep_the_stated_curve(epsilon: float, delta: float) -> None:
    """One draw that spends all that (ε, δ) allows, at the least scale allowed and at smaller ones."""
    mu = math.sqrt(2.0 * float(allowance(PrivacyBudget.approximate(epsilon, delta), LossUnit.GAUSSIAN_RHO).amount))
    assert mu == math.sqrt(2.0 * discrete_gaussian_rho(epsilon, delta))

    def keeps_the_curve(deltas: list[float]) -> bool:
        return max(deltas) <= delta * ROUNDING

    at_least_scale = math.ceil(MIN_COMPOSED_SCALE * mu)
    exact = composed_delta(epsilon, mu, at_least_scale)
    assert keeps_the_curve([exact])
    assert exact > delta * (1.0 - 1e-3)  # nothing is given away
    # At a scale of some dozens of units or less the same ratio costs more than the curve: this is what is refused.
    assert not keeps_the_curve([composed_delta(epsilon, mu, shift) for shift in range(1, 8)])
    # fault: a ρ that is 1 % too large
    assert not keeps_the_curve([composed_delta(epsilon, mu * 1.005, at_least_scale)])


def test_scales_too_small_to_compose_are_refused() -> None:
    """Where Gaussian draws count as one, and nowhere else."""
    least, one_row = MIN_COMPOSED_SCALE, count(Neighbors.ADD_REMOVE)
    for small in (
        DiscreteGaussian(least * (1.0 - 2.0**-53)),
        DiscreteGaussian(1.0),
        DiscreteGaussian(least, math.nextafter(least, 0.0)),
        DiscreteGaussian(least * (1.0 - 2.0**-53), least),
    ):
        small.loss(one_row, LossUnit.RHO)
        with refused("the noise is too small in lattice units for its composition"):
            small.loss(one_row, LossUnit.GAUSSIAN_RHO)
    for law in (DiscreteGaussian(least), DiscreteGaussian(least * 1.5, least * 1.2)):
        law.loss(one_row, LossUnit.GAUSSIAN_RHO)
    assert LossUnit.GAUSSIAN_RHO.least_lattice_scale == MIN_COMPOSED_SCALE == 2.0**20
    assert MAX_COMPOSED_COORDINATES == 2**30


def discrete_laplace_is_paid_for(law: DiscreteLaplace, shift: list[int], unit: LossUnit, neighbors: Neighbors) -> bool:
    distance = float(np.abs(shift).sum())
    reach = math.ceil(60.0 * law.scale + max(map(abs, shift))) + 5
    # The factor in front of the exponential is the same for either table.
    laws = [lattice_laws(lambda k: -np.abs(k) / law.scale, cell, reach) for cell in shift]
    exact = exact_rho(laws) if unit is LossUnit.RHO else exact_epsilon(laws)
    stated = price(law, moves_by(Norm.L1, distance, neighbors), unit)
    return exact <= stated * ROUNDING


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("unit", [LossUnit.EPSILON, LossUnit.EPSILON_DELTA, LossUnit.RHO])
@pytest.mark.parametrize(("scale", "shift"), [(0.6, [1]), (2.0, [-3]), (10.0, [1, 4, -2]), (40.0, [1])])
def test_discrete_laplace(scale: float, shift: list[int], unit: LossUnit, neighbors: Neighbors) -> None:
    law = DiscreteLaplace(scale)
    assert discrete_laplace_is_paid_for(law, shift, unit, neighbors)
    twice = DiscreteLaplace(2.0 * scale)
    assert not discrete_laplace_is_paid_for(charged_as(law, twice), shift, unit, neighbors)
    if unit is not LossUnit.RHO:
        slightly = charged_as(law, DiscreteLaplace(scale * (1.0 + 1e-6)))
        assert not discrete_laplace_is_paid_for(slightly, shift, unit, neighbors)
        assert law.loss(moves_by(Norm.L1, 3.0, neighbors), unit) == Loss(unit, 3 / Fraction(scale))


def gauge(points: np.ndarray, blocks: tuple[int, ...]) -> np.ndarray:
    """The norm of K-norm noise: the largest of all |k| before the blocks and of Σ|k| over each."""
    sizes, end = np.abs(points), points.shape[-1]
    parts = []
    for size in reversed(blocks):
        parts.append(sizes[..., end - size : end].sum(axis=-1, keepdims=True))
        end -= size
    return np.asarray(np.concatenate([sizes[..., :end], *parts], axis=-1).max(axis=-1))


def lattice_points(dimension: int, reach: int) -> np.ndarray:
    axis = np.arange(-reach, reach + 1)
    return np.stack(np.meshgrid(*dimension * [axis], indexing="ij"), axis=-1).reshape(-1, dimension)


def k_norm_laws(law: KNorm, shift: list[int]) -> LogLaws:
    """On all points that the law reaches, and on the same points under the law about the shift."""
    points = lattice_points(len(shift), math.ceil(30.0 * law.scale) + 2)
    logs = [-gauge(points - move, law.blocks) / law.scale for move in (np.array(shift), np.zeros(len(shift)))]
    normalizer = log_of_sum(logs[1])
    return [(logs[0] - normalizer, logs[1] - normalizer)]


def k_norm_is_paid_for(law: KNorm, shift: list[int], unit: LossUnit, neighbors: Neighbors) -> bool:
    exact = (exact_rho if unit is LossUnit.RHO else exact_epsilon)(k_norm_laws(law, shift))
    moved = query_distance(Norm.BODY, shift, np.zeros(len(shift), dtype=int), neighbors, law.blocks)
    stated = replace(sums_in_body(neighbors, len(shift), law.blocks), value=moved, units=moved)
    return exact <= price(law, stated, unit) * ROUNDING


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("unit", [LossUnit.EPSILON, LossUnit.EPSILON_DELTA, LossUnit.RHO])
@pytest.mark.parametrize(
    ("scale", "blocks", "shift"),
    [(1.5, (), [1, -1, 1]), (2.0, (), [-3]), (1.2, (2,), [2, -1, 1]), (1.3, (3,), [0, -1, 1]), (0.9, (2,), [1, 2, 0])],
)
def test_k_norm(scale: float, blocks: tuple[int, ...], shift: list[int], unit: LossUnit, neighbors: Neighbors) -> None:
    law = KNorm(scale, blocks)
    assert k_norm_is_paid_for(law, shift, unit, neighbors)
    # In ρ a pure price is not attained in several dimensions; in ε it is, at every vertex of the body.
    share = 3.0 if unit is LossUnit.RHO else 1.0 + 1e-6
    assert not k_norm_is_paid_for(charged_as(law, KNorm(scale * share, blocks)), shift, unit, neighbors)


@pytest.mark.parametrize("unit", [LossUnit.EPSILON, LossUnit.RHO])
def test_k_norm_noise_needs_the_sensitivity_in_the_gauge_of_its_own_body(unit: LossUnit) -> None:
    law, of_box = KNorm(1.2, (2,)), sums_in_body(Neighbors.ADD_REMOVE, 3)
    for one, sensitivity in ((law, of_box), (KNorm(1.2), sums_in_body(Neighbors.ADD_REMOVE, 3, (2,)))):
        with refused("blocks of a k-norm draw is out of range"):
            one.loss(sensitivity, unit)
    # planted fault: a vertex of the box is longer in the gauge of the block, and would not be paid for
    assert exact_epsilon(k_norm_laws(law, [1, 1, 1])) > price(KNorm(1.2), of_box, LossUnit.EPSILON) * 1.9


@pytest.mark.parametrize("blocks", [(), (2,)])
@pytest.mark.parametrize("shift", [[1, 1, 1], [2, 0, -1], [2, 1, 1]])
def test_the_curve_of_k_norm_noise_is_not_exceeded(shift: list[int], blocks: tuple[int, ...]) -> None:
    law = KNorm(1.4, blocks)
    moved = int(gauge(np.array(shift), blocks))
    ours, theirs = (np.exp(part) for part in k_norm_laws(law, shift)[0])
    (curve,) = law.curves(replace(sums_in_body(Neighbors.ADD_REMOVE, 3, blocks), value=float(moved)))
    for epsilon in np.linspace(0.0, 1.2 * curve.reach, 9):
        exact = hockey_stick(ours, theirs, float(epsilon))
        assert exact <= curve.delta(float(epsilon)) + 1e-12
    assert hockey_stick(ours, theirs, 0.0) > discrete_laplace_delta(0.0, moved, 3.0 * law.scale)


# Normal noise --------------------------------------------------------------------------------------------------------


def gaussian_is_paid_for(law: GaussianDraw, shift: Any, unit: LossUnit, neighbors: Neighbors) -> bool:
    """Against quadrature of the densities of each cell."""
    moved = np.asarray(shift, dtype=float)
    distance = query_distance(Norm.L2, moved, np.zeros_like(moved), neighbors)
    cells = [(float(cell), law.scale) for cell in moved.ravel()]
    if law.symmetric:
        cells = [(float(cell), law.scale) for cell in np.diagonal(moved)]
        cells += [(float(cell), law.scale * math.sqrt(0.5)) for cell in moved[np.triu_indices(len(moved), 1)]]

    def laws(cell: float, scale: float) -> tuple[np.ndarray, np.ndarray]:
        reach = max(ORDERS) * abs(cell) + 12.0 * scale
        points = np.linspace(-reach, reach, 8_001)
        step = math.log(points[1] - points[0])
        return stats.norm.logpdf(points, cell, scale) + step, stats.norm.logpdf(points, 0.0, scale) + step

    stated = price(law, moves_by(Norm.L2, distance, neighbors), unit)
    return exact_rho([laws(*cell) for cell in cells]) <= stated * ROUNDING


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("unit", [LossUnit.RHO, LossUnit.GAUSSIAN_RHO])
@pytest.mark.parametrize(
    ("symmetric", "shift"),
    [(False, [0.3]), (False, [1.0, -0.2]), (True, [[1.0, 0.0], [0.0, -1.0]]), (True, [[0.2, 0.7], [0.7, 0.0]])],
)
def test_gaussian(symmetric: bool, shift: Any, unit: LossUnit, neighbors: Neighbors) -> None:
    law = GaussianDraw(0.8, symmetric)
    assert gaussian_is_paid_for(law, shift, unit, neighbors)
    for factor in (2.0, 1.001):
        faulty = charged_as(law, GaussianDraw(0.8 * factor, symmetric))
        assert not gaussian_is_paid_for(faulty, shift, unit, neighbors)


# Matrix Laplace ------------------------------------------------------------------------------------------------------


def matrix_laplace_in_one_dimension_is_paid_for(law: MatrixLaplaceDraw, unit: LossUnit, neighbors: Neighbors) -> bool:
    """At d = 1 the law is that of Laplace of scale 1/rate, in units of 2^(2·bits) of the query."""
    scale = 4.0**law.bits / law.rate
    shift = 0.7 * 4.0**law.bits
    points = np.linspace(-60.0 * scale, 60.0 * scale + shift, 150_001)
    step = math.log(points[1] - points[0])
    laws = [(stats.laplace.logpdf(points, shift, scale) + step, stats.laplace.logpdf(points, 0.0, scale) + step)]
    exact = exact_rho(laws) if unit is LossUnit.RHO else exact_epsilon(laws)
    # The quadrature of the kink is good to 1e-7.
    return exact <= price(law, moves_by(Norm.NUCLEAR, shift, neighbors), unit) * (1.0 + 1e-6)


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("unit", [LossUnit.EPSILON, LossUnit.EPSILON_DELTA, LossUnit.RHO])
@pytest.mark.parametrize(("rate", "bits"), [(0.3, 0), (2.0, 10)])
def test_matrix_laplace_in_one_dimension(rate: float, bits: int, unit: LossUnit, neighbors: Neighbors) -> None:
    law = MatrixLaplaceDraw(rate, bits)
    assert matrix_laplace_in_one_dimension_is_paid_for(law, unit, neighbors)
    for faulty in (MatrixLaplaceDraw(rate / 2.0, bits), MatrixLaplaceDraw(rate, bits + 1)):
        assert not matrix_laplace_in_one_dimension_is_paid_for(charged_as(law, faulty), unit, neighbors)


def matrix_laplace_log_density(noise: np.ndarray, rate: float) -> float:
    """log f at d = 2 but for a constant: ∫ e^{−c tr(N + 2B)} over B ⪰ 0 and N + B ⪰ 0.

    With B = (s + u, v; v, s − u), which is positive semi-definite where s ≥ |(u, v)|, the integral over s is elementary.
    """
    middle = (noise[0, 0] + noise[1, 1]) / 2.0
    across = np.array([(noise[0, 0] - noise[1, 1]) / 2.0, noise[0, 1]])
    reach = 8.0 / rate + math.hypot(*across) + abs(middle)
    u, v = np.meshgrid(*2 * [np.linspace(-reach, reach, 401)])
    lowest = np.maximum(np.hypot(u, v), np.hypot(u + across[0], v + across[1]) - middle)
    return float(-2.0 * rate * middle + special.logsumexp(-4.0 * rate * lowest) + 2.0 * math.log(reach))


def matrix_laplace_is_paid_for(law: MatrixLaplaceDraw, neighbors: Neighbors) -> bool:
    """The largest log-ratio of the density at d = 2 over places that include those far along the move."""
    moves = [np.diag([1.0, 0.0])] if neighbors is Neighbors.ADD_REMOVE else [np.diag([1.0, -1.0])]
    moves.append(
        np.array([[0.5, 0.5], [0.5, 0.5]]) if neighbors is Neighbors.ADD_REMOVE else np.array([[0, 1], [1, 0]])
    )
    rng = np.random.default_rng(3)
    for move in moves:
        symmetric = [(part + part.T) / law.rate for part in rng.normal(size=(3, 2, 2))]
        places = [far * move / law.rate for far in (0.0, 5.0, -9.0)] + symmetric + [np.eye(2) * 9.0 / law.rate]
        exact = max(
            abs(matrix_laplace_log_density(place + move, law.rate) - matrix_laplace_log_density(place, law.rate))
            for place in places
        )
        distance = query_distance(Norm.NUCLEAR, move, np.zeros((2, 2)), neighbors)
        stated = price(law, moves_by(Norm.NUCLEAR, distance, neighbors), LossUnit.EPSILON)
        if exact > stated * (1.0 + 2e-3):
            return False
    return True


@pytest.mark.long
@pytest.mark.parametrize("neighbors", BOTH)
def test_matrix_laplace_in_two_dimensions(neighbors: Neighbors) -> None:
    law = MatrixLaplaceDraw(0.6, 0)
    assert matrix_laplace_is_paid_for(law, neighbors)
    # At 9/rate along the move the log-ratio is within 15 % of its limit.
    assert not matrix_laplace_is_paid_for(charged_as(law, MatrixLaplaceDraw(0.5, 0)), neighbors)
    assert not matrix_laplace_is_paid_for(charged_as(law, MatrixLaplaceDraw(0.3, 0)), neighbors)


# Isotropic -----------------------------------------------------------------------------------------------------------


def isotropic_is_paid_for(law: IsotropicDraw, unit: LossUnit, neighbors: Neighbors) -> bool:
    """On a grid of all 2 × 2 symmetric matrices, at the densities e^{−c‖N‖_F}, in units of 2^(2·bits) of the query.

    The moves are the worst of one row more and of one replaced; between them the price knows the length alone.
    """
    scale = 4.0**law.bits / law.rate
    move = (
        np.array([[1.0, 0.0], [0.0, 0.0]]) if neighbors is Neighbors.ADD_REMOVE else np.array([[1.0, 0.0], [0.0, -1.0]])
    )
    move = 0.6 * scale * move
    axis = np.linspace(-18.0 * scale, 18.0 * scale, 61)  # a multiple of 0.6: 0 is a point
    top, bottom, across = np.meshgrid(axis, axis, axis / math.sqrt(2.0), indexing="ij")
    lengths = [
        np.sqrt((top - k * move[0, 0]) ** 2 + (bottom - k * move[1, 1]) ** 2 + 2.0 * across**2) for k in (1.0, 0.0)
    ]
    logs = [-length.ravel() / scale for length in lengths]
    laws = [tuple(log - log_of_sum(logs[1]) for log in logs)]
    distance = query_distance(Norm.L2, move, np.zeros((2, 2)), neighbors)
    assert distance == pytest.approx(np.linalg.norm(move))
    stated = price(law, moves_by(Norm.L2, distance, neighbors), unit)
    return (exact_rho(laws) if unit is LossUnit.RHO else exact_epsilon(laws)) <= stated * (1.0 + 1e-6)


@pytest.mark.long(sets=2)
@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("unit", [LossUnit.EPSILON, LossUnit.EPSILON_DELTA, LossUnit.RHO])
@pytest.mark.parametrize(("rate", "bits"), [(0.3, 0), (2.0, 10)])
def test_isotropic_in_two_dimensions(rate: float, bits: int, unit: LossUnit, neighbors: Neighbors) -> None:
    law = IsotropicDraw(rate, bits)
    assert isotropic_is_paid_for(law, unit, neighbors)
    # In ρ a pure price is not attained: in three coordinates the exact one is below half of it.
    share = 4.0 if unit is LossUnit.RHO else 1.05
    for faulty in (IsotropicDraw(rate / share, bits), IsotropicDraw(rate, bits + 1)):
        assert not isotropic_is_paid_for(charged_as(law, faulty), unit, neighbors)


# The exponential mechanism -------------------------------------------------------------------------------------------


def choice_laws(law: Choice, moved_by: float) -> Iterator[LogLaws]:
    """Log probabilities for scores that each move by at most ``moved_by``: worst cases, two and three candidates."""
    for n_candidates, lead in product((2, 3), (-60.0, -1.0, 0.0, 2.0, 60.0)):
        scores = np.zeros(n_candidates)
        scores[0] = lead / law.epsilon
        for moves in product((-1.0, 0.0, 1.0), repeat=n_candidates):
            pair = [0.5 * law.epsilon * values for values in (scores, scores + moved_by * np.array(moves))]
            ours, theirs = (values - special.logsumexp(values) for values in pair)
            yield [(ours, theirs)]


@cache
def worst_of_choices(epsilon: float, moved_by: float, measured: Callable[[LogLaws], float]) -> float:
    return max(measured(laws) for laws in choice_laws(Choice(epsilon), moved_by))


def choice_is_paid_for(law: Choice, moved_by: float, unit: LossUnit, neighbors: Neighbors) -> bool:
    exact = worst_of_choices(law.epsilon, moved_by, exact_rho if unit is LossUnit.RHO else exact_epsilon)
    return exact <= price(law, moves_by(Norm.SCORE, moved_by, neighbors), unit) * ROUNDING


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("unit", [LossUnit.EPSILON, LossUnit.EPSILON_DELTA, LossUnit.RHO])
@pytest.mark.parametrize(("epsilon", "moved_by"), [(0.2, 1.0), (0.3, 2.0), (1.5, 1.0)])
def test_choice(epsilon: float, moved_by: float, unit: LossUnit, neighbors: Neighbors) -> None:
    law = Choice(epsilon)
    assert choice_is_paid_for(law, moved_by, unit, neighbors)
    # The price is attained by a leader against a far second under pure ε, and approached for small ε by two equals under ρ.
    below = 0.85 if unit is LossUnit.RHO else 0.9999
    assert not choice_is_paid_for(charged_as(law, Choice(epsilon * below)), moved_by, unit, neighbors)
    # fault: a price that does not know how far the scores move
    assert moved_by == 1.0 or not choice_is_paid_for(
        charged_as(law, Choice(epsilon / moved_by)), moved_by, unit, neighbors
    )


# Names of levels ----------------------------------------------------------------------------------------------------


def law_of_names(rows: int, law: LevelSelection, threshold: float = 1.0) -> dict[int | None, int]:
    """Whole weights of what comes out for a name that so many rows have: its noisy number, or None below the threshold."""
    weights = law.weights
    k, outcomes = len(weights) - 1, dict[int | None, int]()
    for noise in range(-k, k + 1):
        outcome = rows + noise if rows > 0 and rows + noise > threshold * k else None
        outcomes[outcome] = outcomes.get(outcome, 0) + weights[abs(noise)]
    return outcomes


def names_are_paid_for(drawn: LevelSelection, stated: LevelSelection, threshold: float = 1.0) -> bool:
    """Up to 400 rows and one more, both ways: Σ (P − e^ε·Q)₊ ≤ δ in whole numbers, e^ε rounded down."""
    with mpmath.workdps(60):
        factor, unit = int(mpmath.floor(mpmath.exp(mpmath.mpf(stated.epsilon)) * 10**30)), 10**30
    laws = [law_of_names(rows, drawn, threshold) for rows in range(401)]
    allowed = Fraction(stated.delta) * sum(laws[0].values()) * unit
    return all(
        sum(max(weight * unit - factor * two.get(outcome, 0), 0) for outcome, weight in one.items()) <= allowed
        for pair in itertools.pairwise(laws)
        for one, two in (pair, pair[::-1])
    )


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-6), (1.0, 1e-9), (4.0, 1e-3), (0.09, 1e-4)])
def test_level_selection(epsilon: float, delta: float) -> None:
    law = LevelSelection(epsilon, delta)
    assert names_are_paid_for(law, law)
    # faults: half the threshold, the noise of a larger ε, the threshold of a larger δ
    assert not names_are_paid_for(law, law, threshold=0.5)
    assert not names_are_paid_for(replace(law, epsilon=1.1 * epsilon), law)
    assert not names_are_paid_for(replace(law, delta=1.1 * math.exp(epsilon) * delta), law)
    both = law.loss(name_counts(Neighbors.REPLACE_ONE), LossUnit.EPSILON_DELTA)
    assert both == Loss(LossUnit.EPSILON_DELTA, 2 * Fraction(epsilon), 2 * Fraction(delta))


@pytest.mark.parametrize(("epsilon", "delta"), [(0.3, 1e-6), (1.0, 1e-9), (4.0, 1e-3)])
def test_names_are_published_with_the_largest_probability_that_privacy_allows(epsilon: float, delta: float) -> None:
    """The recursion of Desfontaines, Voss, Gipson & Mandayam (2022), at the δ that a whole threshold uses."""
    law, weights = LevelSelection(epsilon, delta), LevelSelection(epsilon, delta).weights
    k, whole = len(weights) - 1, 2 * sum(weights) - weights[0]
    with mpmath.workdps(60):
        spent, e = mpmath.mpf(weights[-1]) / whole, mpmath.exp(mpmath.mpf(epsilon))
        assert delta / math.exp(epsilon) < spent <= delta
        least = mpmath.mpf(0)
        for rows in range(1, 2 * k + 3):
            least = min(e * least + spent, 1 - (1 - least - spent) / e, mpmath.mpf(1))
            published = mpmath.mpf(whole - law_of_names(rows, law).get(None, 0)) / whole
            assert published == pytest.approx(least, rel=1e-15)
            assert abs(published - least) <= mpmath.mpf(2) ** -60
        assert published == 1
    for probability in (0.5, 0.95, 0.999):
        rows = law.rows_for(probability)
        below, from_there = (1 - Fraction(law_of_names(count, law).get(None, 0), whole) for count in (rows - 1, rows))
        assert below < probability <= from_there


# Directions ----------------------------------------------------------------------------------------------------------

ANGLES = np.linspace(0.0, np.pi, 4000, endpoint=False)
CIRCLE = np.stack([np.cos(ANGLES), np.sin(ANGLES)])
TABLES = [np.zeros((2, 2)), np.diag([4e3, 0.0]), np.diag([0.0, 4e3]), np.array([[3.0, 1.0], [1.0, 0.5]])]


def angle_law(matrix: np.ndarray, temperature: float) -> np.ndarray:
    """Log probability of each angle of a direction with density ∝ exp(t uᵀCu) on the circle (exact for a periodic law)."""
    heights = temperature * np.sum(CIRCLE * (matrix @ CIRCLE), axis=0)
    return np.asarray(heights - special.logsumexp(heights))


def directions_are_paid_for(law: Directions, unit: LossUnit, neighbors: Neighbors) -> bool:
    """At d = 2, all tables and worst rows: with projection the second direction is the first turned by a right angle.

    Without projection each is drawn on the whole circle, given the ones before it.
    """
    row, other = np.diag([1.0, 0.0]), np.diag([0.0, 1.0])
    drawn = law.temperatures[:1] if law.projected else law.temperatures
    measured = exact_rho if unit is LossUnit.RHO else exact_epsilon
    added = [(table, table + row) for table in TABLES]
    replaced = [(table + other, table + row) for table in TABLES]
    exact = max(
        measured([(angle_law(ours, t), angle_law(theirs, t)) for t in drawn])
        for ours, theirs in (added if neighbors is Neighbors.ADD_REMOVE else replaced)
    )
    return exact <= price(law, quadratic_form(neighbors), unit) * ROUNDING


class ForgetsTheSecondRow(Directions):
    """A planted fault: the price of add-remove under either relation."""

    def _loss(self, sensitivity: Sensitivity, unit: LossUnit) -> Loss:
        return super()._loss(replace(sensitivity, neighbors=Neighbors.ADD_REMOVE), unit)


class TakesTheLastForFree(Directions):
    """A planted fault: the last of d directions costs nothing even where it is not fixed by the others."""

    @property
    def n_paid(self) -> int:
        return min(len(self.temperatures), self.n_features - 1)


@pytest.mark.parametrize("unit", [LossUnit.EPSILON, LossUnit.EPSILON_DELTA, LossUnit.RHO])
@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize(
    ("temperatures", "projected"),
    [((0.3,), True), ((0.3,), False), ((0.4, 0.4), True), ((0.4, 0.4, 0.4), False), ((-0.2,), True), ((-0.2,), False)],
)
def test_directions_on_the_circle(
    temperatures: tuple[float, ...], projected: bool, neighbors: Neighbors, unit: LossUnit
) -> None:
    law = Directions(temperatures, 2, projected)
    assert directions_are_paid_for(law, unit, neighbors)
    # In ρ the price is twice what the circle attains: (η/8)·η is for laws whose log-ratio has two values alone.
    below = 0.7 if unit is LossUnit.RHO else 0.99
    cooler = Directions(tuple(below * t for t in temperatures), 2, projected)
    assert not directions_are_paid_for(charged_as(law, cooler), unit, neighbors)
    forgetful = ForgetsTheSecondRow(temperatures, 2, projected)
    assert directions_are_paid_for(forgetful, unit, neighbors) == (neighbors is Neighbors.ADD_REMOVE)
    generous = TakesTheLastForFree(temperatures, 2, projected)
    assert directions_are_paid_for(generous, unit, neighbors) == (projected or len(temperatures) == 1)


def test_which_directions_are_paid_for() -> None:
    one_row = quadratic_form(Neighbors.REPLACE_ONE)
    temperatures = (0.5, 0.25, 0.125)
    for unit, power, factor in ((LossUnit.EPSILON, 1, 1), (LossUnit.RHO, 2, Fraction(1, 8))):
        paid = [(2 * Fraction(t)) ** power * factor for t in temperatures]

        def amount(law: Directions, unit: LossUnit = unit) -> Fraction:
            return law.loss(one_row, unit).amount

        assert amount(Directions(temperatures, 3)) <= sum(paid[:2]) * Fraction(ROUNDING)
        assert amount(Directions(temperatures, 3)) < amount(Directions(temperatures, 4))
        assert amount(Directions(temperatures, 4)) == amount(Directions(temperatures, 3, projected=False)) >= sum(paid)
        assert amount(Directions(temperatures[:1], 1)) == amount(Directions(temperatures, 1, projected=False)) == 0


# A bound on the smallest eigenvalue ----------------------------------------------------------------------------------


def eigenvalue_bound_is_paid_for(law: EigenvalueBound, neighbors: Neighbors) -> bool:
    """ε against the log-ratio of two Laplace laws; δ against the probability that the bound is above the truth."""
    loss = law.loss(smallest_eigenvalue(neighbors), LossUnit.EPSILON_DELTA)
    points = np.linspace(-30.0 * law.scale, 30.0 * law.scale + 1.0, 4001)
    ratio = stats.laplace.logpdf(points, 1.0, law.scale) - stats.laplace.logpdf(points, 0.0, law.scale)
    too_high = float(stats.laplace.sf(law.allowance, scale=law.scale))
    return float(np.abs(ratio).max()) <= float(loss.amount) * ROUNDING and too_high <= float(loss.delta)


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize(("scale", "allowance"), [(4.0, 50.0), (0.5, 0.0), (100.0, 900.0)])
def test_eigenvalue_bound(scale: float, allowance: float, neighbors: Neighbors) -> None:
    law = EigenvalueBound(scale, allowance)
    assert eigenvalue_bound_is_paid_for(law, neighbors)
    assert float(law.loss(smallest_eigenvalue(neighbors), LossUnit.EPSILON_DELTA).delta) == pytest.approx(
        0.5 * math.exp(-allowance / scale), rel=1e-12
    )
    more_noise = EigenvalueBound(1.001 * scale, 1.001 * allowance)
    longer_allowance = EigenvalueBound(scale, allowance + 0.001 * scale)
    for faulty in (more_noise, longer_allowance):
        assert not eigenvalue_bound_is_paid_for(charged_as(law, faulty), neighbors)


def test_the_failure_of_a_bound_is_never_stated_as_less_than_it_is() -> None:
    rng = np.random.default_rng(6)
    with mpmath.workdps(40):
        for scale, ratio in zip(
            rng.uniform(0.1, 9.0, 100).tolist(), rng.uniform(0.0, 740.0, 100).tolist(), strict=True
        ):
            law = EigenvalueBound(scale, scale * ratio)
            stated = law.loss(smallest_eigenvalue(Neighbors.ADD_REMOVE), LossUnit.EPSILON_DELTA).delta
            exact = mpmath.exp(-mpmath.mpf(law.allowance) / mpmath.mpf(scale)) / 2
            stated_here = mpmath.mpf(stated.numerator) / stated.denominator
            assert exact <= stated_here
            assert ratio > 700.0 or stated_here <= exact * (1 + mpmath.mpf(2) ** -41)
    beyond = EigenvalueBound(1.0, 900.0).loss(smallest_eigenvalue(Neighbors.ADD_REMOVE), LossUnit.EPSILON_DELTA)
    assert 0 < beyond.delta < Fraction(1, 10**322)


# Laws with a claim ---------------------------------------------------------------------------------------------------


def checks_claims(law: DrawLaw, sensitivity: Sensitivity, exact: Callable[[float], float]) -> bool:
    """Whether the law takes a claim that is just enough for its exact curve, and refuses one that is 1 % too small."""
    for epsilon in (0.1, 0.5, 1.0):
        delta = exact(epsilon)
        assert 1e-9 < delta < 0.5, "choose parameters for which the comparison can tell something"
        enough = PrivacyBudget.approximate(epsilon, delta * 1.0005)
        try:
            loss = law.loss(sensitivity, LossUnit.EPSILON_DELTA, enough)
        except ValueError:
            return False
        if loss != Loss(LossUnit.EPSILON_DELTA, Fraction(enough.epsilon), Fraction(enough.delta)):
            return False
        try:
            law.loss(sensitivity, LossUnit.EPSILON_DELTA, PrivacyBudget.approximate(epsilon, delta * 0.99))
        except ValueError:
            continue
        return False
    return True


def trusting(law: DrawLaw) -> DrawLaw:
    """A planted fault: any claim is taken."""

    class Trusting(type(law)):  # type: ignore[misc]
        def _claimed_loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget) -> Loss:
            del sensitivity
            return Loss(unit, Fraction(claim.epsilon), Fraction(claim.delta))

    return Trusting(**asdict(law))


def with_row_of_one(law: DrawLaw) -> DrawLaw:
    """A planted fault: a row's square is taken as 1 in the units of the query, without the 1 + w² of a constant beside it."""

    class ForgetsTheConstant(type(law)):  # type: ignore[misc]
        def _claimed_loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget) -> Loss:
            return super()._claimed_loss(replace(sensitivity, value=sensitivity.units), unit, claim)

    return ForgetsTheConstant(**asdict(law))


def with_add_remove_curve(law: DrawLaw) -> DrawLaw:
    """A planted fault: the curve of add-remove under either relation."""

    class OneRowAlone(type(law)):  # type: ignore[misc]
        def _claimed_loss(self, sensitivity: Sensitivity, unit: LossUnit, claim: PrivacyBudget) -> Loss:
            return super()._claimed_loss(replace(sensitivity, neighbors=Neighbors.ADD_REMOVE), unit, claim)

    return OneRowAlone(**asdict(law))


def additive_wishart_of_one_cell(degrees: int, scale: float, row: float) -> Callable[[float], float]:
    """Exact δ(ε) at d = 1: s²χ²_k against the same moved by ‖z‖²."""
    points = np.linspace(0.0, scale * stats.chi2.isf(1e-18, degrees) + row, 200_001)
    step = points[1] - points[0]
    ours = stats.chi2.pdf(points, degrees, scale=scale) * step
    theirs = stats.chi2.pdf(points - row, degrees, scale=scale) * step
    return lambda epsilon: hockey_stick(ours, theirs, epsilon)


@pytest.mark.parametrize("augmentation", [0.0, 0.75])
def test_additive_wishart_of_one_cell(augmentation: float) -> None:
    bits, scale, degrees = 6, 1.2, 16
    sensitivity = row_norm_square(Neighbors.ADD_REMOVE, augmentation).in_units(4.0**bits)
    exact = additive_wishart_of_one_cell(degrees, scale, 1.0 + augmentation**2)
    law = AdditiveWishartDraw(1, degrees, scale, bits)
    assert checks_claims(law, sensitivity, exact)
    assert not checks_claims(trusting(law), sensitivity, exact)
    for faulty in (
        AdditiveWishartDraw(1, degrees, 2.0 * scale, bits),
        AdditiveWishartDraw(1, degrees + 1, scale, bits),
        AdditiveWishartDraw(1, degrees, scale, bits + 1),
    ):
        assert not checks_claims(charged_as(law, faulty), sensitivity, exact)
    assert checks_claims(with_row_of_one(law), sensitivity, exact) == (augmentation == 0.0)


def test_additive_wishart_of_a_replaced_row() -> None:
    """Against the curve of the worst pair, which ``tests/papers/test_curves.py`` holds against explicit noise."""
    degrees, scale = 61, 0.8
    law, sensitivity = AdditiveWishartDraw(2, degrees, scale, 0), row_norm_square(Neighbors.REPLACE_ONE)

    def exact(epsilon: float) -> float:
        return additive_wishart_delta(epsilon, degrees - 2, scale, Neighbors.REPLACE_ONE)

    assert checks_claims(law, sensitivity, exact)
    assert not checks_claims(with_add_remove_curve(law), sensitivity, exact)
    assert not checks_claims(trusting(law), sensitivity, exact)
    assert not checks_claims(charged_as(law, AdditiveWishartDraw(1, degrees, scale, 0)), sensitivity, exact)


def wishart_of_one_cell(law: WishartSampling, row: float) -> Callable[[float], float]:
    """Exact δ(ε) at d = 1, both tables empty but for the floor: vχ²_ν, or v/χ²_ν, for v = ψ + floor and v + ‖z‖²."""
    least = law.padding + law.floor
    if law.inverse:
        # In the logarithm of the draw: its density is that of the draw times the draw.
        logs = np.linspace(math.log(least) - 12.0, math.log(least) + 12.0, 200_001)
        laws = [stats.invgamma(law.degrees / 2.0, scale=v / 2.0) for v in (least, least + row)]
        ours, theirs = (one.pdf(np.exp(logs)) * np.exp(logs) * (logs[1] - logs[0]) for one in laws)
    else:
        points = np.linspace(0.0, (least + row) * stats.chi2.isf(1e-18, law.degrees), 200_001)
        step = points[1] - points[0]
        ours, theirs = (stats.chi2.pdf(points, law.degrees, scale=v) * step for v in (least, least + row))
    return lambda epsilon: hockey_stick(ours, theirs, epsilon)


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize(("augmentation", "floor"), [(0.0, 0.0), (1.0, 0.0), (0.5, 2.5)])
def test_wishart_sampling_of_one_cell(augmentation: float, floor: float, inverse: bool) -> None:
    law = WishartSampling(8, 9.0, floor, inverse)
    sensitivity = row_norm_square(Neighbors.ADD_REMOVE, augmentation)
    exact = wishart_of_one_cell(law, sensitivity.value)
    assert checks_claims(law, sensitivity, exact)
    assert not checks_claims(trusting(law), sensitivity, exact)
    for faulty in (replace(law, padding=9.3), replace(law, floor=floor + 0.3), replace(law, degrees=7)):
        assert not checks_claims(charged_as(law, faulty), sensitivity, exact)
    assert checks_claims(with_row_of_one(law), sensitivity, exact) == (augmentation == 0.0)


@pytest.mark.parametrize("inverse", [False, True])
def test_wishart_sampling_of_a_replaced_row(inverse: bool) -> None:
    """At d = 2, x ⊥ y: normal vectors whose two coordinates have variances (v + 1, v) against (v, v + 1)."""
    law = WishartSampling(6, 5.0, 0.5, inverse)
    sensitivity = row_norm_square(Neighbors.REPLACE_ONE)
    points = np.linspace(0.0, 6.5 * stats.chi2.isf(1e-13, law.degrees), 1501)
    step = points[1] - points[0]
    large, small = (stats.chi2.pdf(points, law.degrees, scale=v) * step for v in (6.5, 5.5))
    ours, theirs = np.outer(large, small), np.outer(small, large)

    def exact(epsilon: float) -> float:
        return hockey_stick(ours, theirs, epsilon)

    assert checks_claims(law, sensitivity, exact)
    assert not checks_claims(with_add_remove_curve(law), sensitivity, exact)
    assert not checks_claims(trusting(law), sensitivity, exact)
    assert not checks_claims(charged_as(law, replace(law, padding=5.2)), sensitivity, exact)


@pytest.mark.parametrize("inverse", [False, True])
@pytest.mark.parametrize("augmentation", [0.0, 0.5])
def test_raised_wishart_sampling_of_one_cell(augmentation: float, inverse: bool) -> None:
    """The row joins what lies at the bound: its price is above that of the exact law, and not far above."""
    law = RaisedWishartSampling(8, 4.0, 7.0, inverse)
    sensitivity = gram_frobenius(Neighbors.ADD_REMOVE, 2, augmentation)
    exact = wishart_of_one_cell(WishartSampling(8, 11.0, 0.0, inverse), sensitivity.value)

    def takes(priced: DrawLaw, epsilon: float, delta: float) -> bool:
        try:
            priced.loss(sensitivity, LossUnit.EPSILON_DELTA, PrivacyBudget.approximate(epsilon, delta))
        except ValueError:
            return False
        return True

    for epsilon in (0.5, 1.0, 2.0):
        delta = exact(epsilon)
        assert 1e-9 < delta < 0.1
        assert not takes(law, epsilon, 1.001 * delta)
        assert takes(law, epsilon, 12.0 * delta)
        # Planted faults: the bound, or the padding, counted twice; no check at all.
        for faulty in (replace(law, raised=14.0), replace(law, padding=11.0)):
            assert takes(charged_as(law, faulty), epsilon, 0.999 * delta)
        assert takes(trusting(law), epsilon, 1e-12)


def test_raised_wishart_sampling_of_replaced_rows() -> None:
    """Both rows at the bound: the Frobenius distance is √2, and the price that of a law with this much less padding."""
    one, other = (gram_frobenius(neighbors, 2) for neighbors in (Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE))
    root = other.value / one.value
    points = np.linspace(0.0, 6.5 * stats.chi2.isf(1e-13, 6), 1501)
    large, small = (stats.chi2.pdf(points, 6, scale=v) * (points[1] - points[0]) for v in (6.5, 5.5))
    for epsilon in (0.5, 1.0):
        delta = hockey_stick(np.outer(large, small), np.outer(small, large), epsilon)
        claim = PrivacyBudget.approximate(epsilon, 1.001 * delta)
        with refused("costs more than the plan claims: its exact δ is above the"):
            RaisedWishartSampling(6, 5.0, 0.5).loss(other, LossUnit.EPSILON_DELTA, claim)
        ratio = raised_wishart_ratio(epsilon, delta, 6)
        for sensitivity, padding in ((one, ratio), (other, root * ratio)):
            RaisedWishartSampling(6, padding, 1e-6).loss(sensitivity, LossUnit.EPSILON_DELTA, claim)
            with refused("costs more than the plan claims: its exact δ is above the"):
                RaisedWishartSampling(6, padding * 0.99, 1e-6).loss(sensitivity, LossUnit.EPSILON_DELTA, claim)


# Units and norms -----------------------------------------------------------------------------------------------------

CLAIM = PrivacyBudget.approximate(1.0, 1e-6)
GAUSSIAN = {LossUnit.RHO, LossUnit.GAUSSIAN_RHO}
PURE = {LossUnit.EPSILON, LossUnit.RHO, LossUnit.EPSILON_DELTA}
ONE_OF_EACH: dict[str, tuple[DrawLaw, set[LossUnit]]] = {
    law.name: (law, units)
    for law, units in [
        (DiscreteGaussian(2.0**21), GAUSSIAN),
        (GaussianDraw(3.0), GAUSSIAN),
        (DiscreteLaplace(3.0), PURE),
        (IsotropicDraw(0.5, 2), PURE),
        (KNorm(3.0, (2,)), PURE),
        (MatrixLaplaceDraw(0.5, 2), PURE),
        (Choice(0.5), PURE),
        (LevelSelection(0.5, 1e-4), {LossUnit.EPSILON_DELTA}),
        (Directions((0.5, 0.5), 3), PURE),
        (EigenvalueBound(2.0, 30.0), {LossUnit.EPSILON_DELTA}),
        (AdditiveWishartDraw(2, 80, 1.0, 0), {LossUnit.EPSILON_DELTA}),
        (RaisedWishartSampling(50, 0.0, 30.0), {LossUnit.EPSILON_DELTA}),
        (WishartSampling(50, 26.9), {LossUnit.EPSILON_DELTA}),
    ]
}


@dataclass(frozen=True)
class UnevenGaussian(GaussianLaw):
    """A new law whose author checks nothing: one scale a coordinate."""

    scales: tuple[float, ...] = ()

    name: ClassVar[str] = "uneven"
    dimensions: ClassVar = (1, 2)

    def is_attained(self, sensitivity: Sensitivity, size: int) -> bool:
        del sensitivity, size
        return False


MEANINGLESS: dict[str, tuple[Callable[[], DrawLaw], str]] = {
    "a negative ε, whose loss would pay for others": (lambda: Choice(-0.5), "0 or above"),
    "a negative scale that the price squares": (lambda: GaussianDraw(-3.0), "above 0"),
    "no noise": (lambda: DiscreteLaplace(0.0), "above 0"),
    "endless noise": (lambda: DiscreteLaplace(math.inf), "a finite number"),
    "noise of NaN": (lambda: DiscreteGaussian(math.nan), "a finite number"),
    "no noise off the diagonal": (lambda: DiscreteGaussian(1.0, 0.0), "above 0"),
    "scale of true": (lambda: DiscreteGaussian(True), "a finite number"),
    "a rate of 0": (lambda: MatrixLaplaceDraw(0.0, 3), "above 0"),
    "negative bits": (lambda: MatrixLaplaceDraw(1.0, -1), "out of range"),
    "bits beyond any lattice": (lambda: MatrixLaplaceDraw(1.0, 65), "out of range"),
    "bits of true": (lambda: MatrixLaplaceDraw(1.0, True), "a whole number"),
    "bits of a float": (lambda: MatrixLaplaceDraw(1.0, 1.0), "a whole number"),  # type: ignore[arg-type]
    "no dimension": (lambda: AdditiveWishartDraw(0, 80, 1.0, 0), "out of range"),
    "no degrees": (lambda: AdditiveWishartDraw(1, 0, 1.0, 1), "out of range"),
    "half a degree": (lambda: WishartSampling(9.5, 20.0), "a whole number"),  # type: ignore[arg-type]
    "negative padding": (lambda: WishartSampling(9, -1.0, 20.0), "0 or above"),
    "a temperature of NaN": (lambda: Directions((math.nan,), 3), "finite numbers"),
    "projected of text": (lambda: Directions((0.5,), 3, "no"), "true or false"),  # type: ignore[arg-type]
    "a list of a new law": (lambda: UnevenGaussian(1.0, [1.0]), "a tuple"),  # type: ignore[arg-type]
    "NaN of a new law": (lambda: UnevenGaussian(1.0, (1.0, math.nan)), "finite numbers"),
    "0 of a new law": (lambda: UnevenGaussian(1.0, (0.0,)), "above 0"),
    "a negative number of a new law": (lambda: UnevenGaussian(1.0, (-1.0,)), "above 0"),
}


def test_parameters_that_mean_nothing_are_refused() -> None:
    for name, (make, said) in MEANINGLESS.items():
        with pytest.raises((ValueError, TypeError), match=f"must be {said}|is {said}"):
            print(name, make())
    assert MatrixLaplaceDraw(1.0, 0).bits + MatrixLaplaceDraw(1.0, 64).bits == 64
    assert AdditiveWishartDraw(1, 1, 1.0, 1).degrees < AdditiveWishartDraw(1, 2**70, 1.0, 1).degrees
    assert EigenvalueBound(1.0, 0.0).allowance == WishartSampling(3, 0.0).padding == 0.0


def test_a_law_is_for_queries_of_its_shape() -> None:
    for law, shape in (
        (UnevenGaussian(1.0, (1.0,) * 4), (3, 3)),
        (UnevenGaussian(1.0), (3, 3)),
        (Directions((1.0,) * 4, 3), (3, 3)),
        (Directions((), 3), (3, 3)),
        (Directions((1.0,), 2), (3, 3)),
        (AdditiveWishartDraw(2, 80, 1.0, 0), (3, 3)),
        (KNorm(3.0, blocks=(2, 2)), (3,)),
        (DiscreteLaplace(3.0), (0,)),
        (Choice(1.0), (0,)),
        (MatrixLaplaceDraw(1.0, 3), (0, 0)),
        *((DiscreteLaplace(3.0), shape) for shape in ((2, 3), (3, 2), (2, 2, 2), ())),
    ):
        with refused("is not for a query of shape"):
            law.check_shape(shape)
    UnevenGaussian(1.0, (1.0, 2.0, 3.0)).check_shape((3,))
    for law in (Directions((1.0,), 2), AdditiveWishartDraw(2, 80, 1.0, 0)):
        law.check_shape((2, 2))


@pytest.mark.parametrize("name", sorted(LAWS))
def test_no_law_falls_back_to_a_looser_profile(name: str) -> None:
    """Its losses add up as those of normal noise, or a draw has a curve: a new law must say which."""
    law, _ = ONE_OF_EACH[name]
    assert law.is_gaussian != bool(law.curves(ONE[law.norm](Neighbors.ADD_REMOVE)))
    assert law.is_gaussian or not law.lattice_scales
    assert law.on_lattice == bool(law.lattice_scales) or not law.is_gaussian


def test_a_new_gaussian_law_composes_as_the_others() -> None:
    one = count(Neighbors.ADD_REMOVE)
    laws = GaussianDraw(3.0), UnevenGaussian(3.0, (3.0,))
    draws = [Draw(Message("count"), law, one, law.loss(one, LossUnit.RHO), 1) for law in laws]
    known, new = (_concentrated_bounds(draw.loss, [draw], settled=True) for draw in draws)
    assert [bound.how for bound in known] == [bound.how for bound in new]
    assert known[-1].delta(0.1) == new[-1].delta(0.1) < known[0].delta(0.1)


def test_a_claim_of_exactly_what_the_curve_says_is_taken() -> None:
    delta = wishart_sampling_delta(1.0, 50, 30.0, Neighbors.ADD_REMOVE)
    law, one_row = WishartSampling(50, 30.0), row_norm_square(Neighbors.ADD_REMOVE)
    law.loss(one_row, LossUnit.EPSILON_DELTA, PrivacyBudget.approximate(1.0, delta))
    with refused("costs more than the plan claims: its exact δ is above the"):
        law.loss(one_row, LossUnit.EPSILON_DELTA, PrivacyBudget.approximate(1.0, math.nextafter(delta, 0.0)))


def test_what_queries_each_law_is_for() -> None:
    vectors = {"choice", "discrete-gaussian", "gaussian", "k-norm"}
    either, numbers = {"discrete-laplace"}, {"eigenvalue-bound", "level-selection"}
    for name, (law, _) in ONE_OF_EACH.items():
        dimensions = {1} if name in vectors else {1, 2} if name in either else {0} if name in numbers else {2}
        assert {number for number in range(4) if law.fits(number)} == dimensions
        assert law.on_lattice == (
            name
            in {"additive-wishart", "discrete-gaussian", "discrete-laplace", "isotropic", "k-norm", "matrix-laplace"}
        )
    for law in (DiscreteGaussian(2.0, 2.0), GaussianDraw(2.0, symmetric=True)):
        assert [number for number in range(4) if law.fits(number)] == [2]


BY_CLAIM = ("additive-wishart", "raised-wishart-sampling", "wishart-sampling")


PRICED: dict[str, tuple[Callable[..., None], ...]] = {
    "additive-wishart": (test_additive_wishart_of_one_cell, test_additive_wishart_of_a_replaced_row),
    "choice": (test_choice,),
    "directions": (test_directions_on_the_circle, test_which_directions_are_paid_for),
    "discrete-gaussian": (test_discrete_gaussian_on_a_vector, test_discrete_gaussian_on_a_symmetric_matrix),
    "discrete-laplace": (test_discrete_laplace,),
    "eigenvalue-bound": (test_eigenvalue_bound,),
    "gaussian": (test_gaussian,),
    "isotropic": (test_isotropic_in_two_dimensions,),
    "k-norm": (test_k_norm,),
    "level-selection": (test_level_selection,),
    "matrix-laplace": (test_matrix_laplace_in_one_dimension, test_matrix_laplace_in_two_dimensions),
    "raised-wishart-sampling": (
        test_raised_wishart_sampling_of_one_cell,
        test_raised_wishart_sampling_of_replaced_rows,
    ),
    "wishart-sampling": (test_wishart_sampling_of_one_cell, test_wishart_sampling_of_a_replaced_row),
}
"""For every law, the tests above that compare its price with its exact law.

No other test finds a price that is too low where the noise is too small to match: whoever adds a law derives its exact loss here.
"""


def test_every_law_is_priced_against_its_exact_law() -> None:
    assert set(PRICED) == set(ONE_OF_EACH) == set(LAWS)
    assert all(tests for tests in PRICED.values())


@pytest.mark.parametrize("neighbors", BOTH)
@pytest.mark.parametrize("name", sorted(LAWS))
def test_a_loss_that_does_not_add_up_or_is_of_another_norm_is_refused(name: str, neighbors: Neighbors) -> None:
    law, units = ONE_OF_EACH[name]
    sensitivity, by_claim = ONE[law.norm](neighbors), name in BY_CLAIM
    claim = PrivacyBudget.approximate(1.0, 1e-4) if by_claim else None  # enough for both relations
    for unit in set(LossUnit) - units:
        with refused("is not counted in"):
            law.loss(sensitivity, unit, claim)
    for unit in units:
        loss = law.loss(sensitivity, unit, claim)
        assert loss.unit is unit
        assert loss.amount > 0
        assert (loss.delta > 0) == (
            unit is LossUnit.EPSILON_DELTA and name in ("eigenvalue-bound", "level-selection", *BY_CLAIM)
        )
        for wrong in (None, PrivacyBudget.pure(1.0), PrivacyBudget.zcdp(0.5)) if by_claim else (CLAIM,):
            with refused("is not counted in" if by_claim else "has a price of its own and takes no claim"):
                law.loss(sensitivity, unit, wrong)
        for norm in set(Norm) - {law.norm}:
            with refused("noise needs a sensitivity in"):
                law.loss(ONE[norm](neighbors), unit, CLAIM)


def test_prices_are_exact_fractions_or_rounded_up() -> None:
    third = moves_by(Norm.L1, 1.0, Neighbors.ADD_REMOVE)
    assert DiscreteLaplace(3.0).loss(third, LossUnit.EPSILON).amount == Fraction(1, 3)
    assert DiscreteGaussian(3.0).loss(count(Neighbors.ADD_REMOVE), LossUnit.RHO).amount == Fraction(1, 18)
    # ε·tanh(ε/2) at ε = 1/3, which is no float: not below the true value
    rho = DiscreteLaplace(3.0).loss(third, LossUnit.RHO).amount
    exact = Fraction(1, 3) * Fraction("0.16514041292462935642")  # tanh(1/6), to 20 digits
    assert 0 <= rho - exact < Fraction(2) ** -50


# What is drawn is what is paid for -----------------------------------------------------------------------------------

LIKELY, IMPOSSIBLE = 1e-3, 1e-6
"""p-values: a right sampler at its fixed seed is above the first, one with 0.9 of the noise below the second."""


def p_value_of_integers(draws: np.ndarray, log_weight: Callable[[np.ndarray], np.ndarray], reach: int) -> float:
    """χ² against the law on integers ∝ exp(log_weight); cells of fewer than ten expected draws are put together."""
    support = np.arange(-20 * reach, 20 * reach + 1)
    weights = np.exp(log_weight(support))
    expected = weights / weights.sum() * len(draws)
    counts = np.bincount(np.clip(draws, -20 * reach, 20 * reach) + 20 * reach, minlength=len(support))
    enough = expected >= 10.0
    observed, expected = (np.append(values[enough], values[~enough].sum()) for values in (counts, expected))
    if expected[-1] < 1e-6:
        observed, expected = observed[:-1], expected[:-1]
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


def repeated(law: DrawLaw, query: Any, size: int, generator: np.random.Generator) -> np.ndarray:
    return np.array([noised(law, query, generator) for _ in range(size)])


def p_of_vector(law: DiscreteGaussian, stated: DiscreteGaussian, generator: np.random.Generator) -> float:
    draws = noised(law, np.full(40_000, 17), generator) - 17
    return p_value_of_integers(draws, lambda k: -(k**2) / (2.0 * stated.scale**2), math.ceil(4 * stated.scale))


def p_of_discrete_laplace(law: DiscreteLaplace, stated: DiscreteLaplace, generator: np.random.Generator) -> float:
    """Of a vector, and above the diagonal of a matrix."""
    matrix = noised(law, np.zeros((200, 200), dtype=int), generator)
    draws = np.append(noised(law, np.full(20_000, -3), generator) + 3, matrix[np.triu_indices(200)])
    return p_value_of_integers(draws, lambda k: -np.abs(k) / stated.scale, math.ceil(8 * stated.scale))


def p_of_gaussian(law: GaussianDraw, stated: GaussianDraw, generator: np.random.Generator) -> float:
    draws = noised(law, np.full(40_000, 2.0), generator)
    return float(stats.kstest(draws, stats.norm(2.0, stated.scale).cdf).pvalue)


def p_of_symmetric_gaussian(law: GaussianDraw, stated: GaussianDraw, generator: np.random.Generator) -> float:
    noisy = np.array([noised(law, np.zeros((40, 40)), generator) for _ in range(600)])
    assert (noisy == noisy.transpose(0, 2, 1)).all()
    diagonal = noisy[:, *np.diag_indices(40)].ravel()
    above = noisy[:, *np.triu_indices(40, 1)].ravel()[:40_000]
    scaled = [diagonal / stated.scale, above / (stated.scale * math.sqrt(0.5))]
    # Twice the smaller of the two p-values is a p-value of both.
    return min(1.0, 2.0 * min(float(stats.kstest(part, stats.norm.cdf).pvalue) for part in scaled))


def p_of_matrix_laplace(law: MatrixLaplaceDraw, stated: MatrixLaplaceDraw, generator: np.random.Generator) -> float:
    """Trace at d = 2: of two χ² of d(d + 1) = 6 degrees of freedom each, the difference over 2c."""
    query = np.array([[5, 1], [1, 3]])
    draws = np.trace(repeated(law, query, 16_000, generator) - query, axis1=1, axis2=2).astype(float)
    gamma = stats.gamma(3.0, scale=4.0**stated.bits / stated.rate)
    parts = gamma.rvs((2, 400_000), random_state=np.random.default_rng(11))
    return float(stats.ks_2samp(draws, parts[0] - parts[1]).pvalue)


def p_of_isotropic_length(law: IsotropicDraw, stated: IsotropicDraw, generator: np.random.Generator) -> float:
    """‖N‖_F of 2 × 2 matrices is Gamma(3)/c, whatever the direction."""
    query = np.array([[5, 1], [1, 3]])
    lengths = np.linalg.norm((repeated(law, query, 16_000, generator) - query).astype(float), axis=(1, 2))
    return float(stats.kstest(lengths, stats.gamma(3.0, scale=4.0**stated.bits / stated.rate).cdf).pvalue)


def p_of_cells(observed: np.ndarray, expected: np.ndarray) -> float:
    """χ² of cells; those of fewer than ten expected draws are put together."""
    enough = expected >= 10.0
    return float(
        stats.chisquare(*(np.append(part[enough], part[~enough].sum()) for part in (observed, expected))).pvalue
    )


@cache
def points_but_for_signs(dimension: int) -> tuple[np.ndarray, np.ndarray]:
    """All of up to 14 in each coordinate, and how many points each stands for."""
    points = np.stack(np.meshgrid(*dimension * [np.arange(15)], indexing="ij"), axis=-1).reshape(-1, dimension)
    return points, 2 ** np.count_nonzero(points, axis=1)


def p_of_k_norm(law: KNorm, stated: KNorm, generator: np.random.Generator) -> float:
    """χ² in four dimensions: of all points but for signs, of the signs, and of sizes, which tell most of the scale."""
    query = np.array([5, -7, 0, 2**40])
    draws = repeated(law, query, 1_300, generator) - query
    points, copies = points_but_for_signs(4)
    expected = copies * np.exp(-gauge(points, stated.blocks) / stated.scale)
    counts = np.bincount(np.ravel_multi_index(tuple(np.abs(draws).clip(max=14).T), 4 * (15,)), minlength=15**4)
    signs = np.bincount((draws < 0)[(draws != 0).all(axis=1)] @ [1, 2, 4, 8], minlength=16)
    values = [
        p_of_cells(counts, expected * (len(draws) / expected.sum())),
        float(stats.chisquare(signs).pvalue),
        p_of_sizes(draws, stated),
    ]
    return min(1.0, len(values) * min(values))


def p_of_sizes(draws: np.ndarray, stated: KNorm) -> float:
    """χ² of ‖k‖, whose probability is that of points by their number."""
    points, copies = points_but_for_signs(draws.shape[1])
    expected = np.bincount(gauge(points, stated.blocks), copies)[:15] * np.exp(-np.arange(15) / stated.scale)
    observed = np.bincount(gauge(draws, stated.blocks).clip(max=14), minlength=15)
    return p_of_cells(observed, expected * (len(draws) / expected.sum()))


def p_of_additive_wishart(
    law: AdditiveWishartDraw, stated: AdditiveWishartDraw, generator: np.random.Generator
) -> float:
    """uᵀWu of a unit vector is s²χ²_k, less its mean."""
    query = np.array([[4, -1], [-1, 2]])
    noise = (repeated(law, query, 12_000, generator) - query).astype(float) * 4.0**-stated.bits
    along = (noise[:, 0, 0] + noise[:, 1, 1]) / 2.0 + noise[:, 0, 1]  # u = (1, 1)/√2
    return float(stats.kstest(along / stated.scale + stated.degrees, stats.chi2(stated.degrees).cdf).pvalue)


def p_of_wishart(law: WishartSampling, stated: WishartSampling, generator: np.random.Generator) -> float:
    """uᵀWu over uᵀ(G + ψI)u is χ²_ν, and the inverse of that for an inverse Wishart, with ν − d + 1 degrees of freedom."""
    query = np.array([[0.5, 0.2], [0.2, 0.1]])
    direction = np.array([1.0, 2.0]) / math.sqrt(5.0)
    with threadpool_limits(1, user_api="blas"):  # threads make a small triangular system a hundred times slower
        draws = repeated(law, query, 3_000, generator)
    along = np.einsum("i,nij,j->n", direction, draws, direction) / (direction @ query @ direction + stated.padding)
    if stated.inverse:
        freedom = stated.degrees - 1
        return float(stats.kstest((stated.degrees - 3) / along, stats.chi2(freedom).cdf).pvalue)
    return float(stats.kstest(along * stated.degrees, stats.chi2(stated.degrees).cdf).pvalue)


def p_of_raised_wishart(
    law: RaisedWishartSampling, stated: RaisedWishartSampling, generator: np.random.Generator
) -> float:
    """As for a Wishart draw around the matrix with raised eigenvalues: one of three is below the bound, one negative."""
    axes = np.array([[1.0, 2.0, 2.0], [2.0, 1.0, -2.0], [2.0, -2.0, 1.0]]) / 3.0
    query = (axes * [40.0, 3.0, -1.0]) @ axes.T
    with threadpool_limits(1, user_api="blas"):
        draws = repeated(law, query, 3_000, generator)
    least = stated.raised + stated.padding
    values = []
    for axis, scale in zip(axes.T, (40.0 + stated.padding, least, least), strict=True):
        along = np.einsum("i,nij,j->n", axis, draws, axis) / scale
        statistic = (stated.degrees - 4) / along if stated.inverse else along * stated.degrees
        freedom = stated.degrees - 2 if stated.inverse else stated.degrees
        values.append(float(stats.kstest(statistic, stats.chi2(freedom).cdf).pvalue))
    return min(1.0, len(values) * min(values))


def p_of_eigenvalue_bound(law: EigenvalueBound, stated: EigenvalueBound, generator: np.random.Generator) -> float:
    draws = repeated(law, 1000.0, 40_000, generator)
    return float(stats.kstest(draws, stats.laplace(1000.0 - stated.allowance, stated.scale).cdf).pvalue)


def p_of_choice(law: Choice, stated: Choice, generator: np.random.Generator) -> float:
    scores = np.array([3.0, 0.0, 7.0, 5.5])
    counts = np.bincount(repeated(law, scores, 40_000, generator), minlength=4)
    return float(stats.chisquare(counts, special.softmax(0.5 * stated.epsilon * scores) * 40_000).pvalue)


def p_of_level_selection(law: LevelSelection, stated: LevelSelection, generator: np.random.Generator) -> float:
    """Names of 20 rows among others that no or many rows have: each comes out with its noisy number, or does not."""
    counts = {f"name {index}": 20 for index in range(20_000)} | {"rare": 0, "common": 10_000}
    noisy = noised(law, counts, generator)
    assert "rare" not in noisy
    assert abs(noisy.pop("common") - 10_000) < len(law.weights)
    expected = law_of_names(20, stated)
    seen = Counter(noisy.values()) + Counter({None: 20_000 - len(noisy)})
    shares = np.array([float(Fraction(weight, sum(expected.values()))) for weight in expected.values()])
    common = shares > 1e-3
    drawn = np.array([seen[outcome] for outcome in expected])
    return float(
        stats.chisquare(
            [*drawn[common], 20_000 - drawn[common].sum()],
            20_000 * np.append(shares[common], 1.0 - shares[common].sum()),
        ).pvalue
    )


def p_of_angles(law: Directions, stated: Directions, generator: np.random.Generator) -> float:
    """At d = 2 twice the angle from the leading axis follows von Mises with κ = t·gap/2: its size, over 0 to π."""
    draws = repeated(law, np.diag([4.0, 1.0]), 3_000, generator)
    kappas = 1.5 * np.array(stated.temperatures)
    twice = 2.0 * np.arctan2(draws[:, 1], draws[:, 0])
    twice = (twice + np.pi) % (2.0 * np.pi) - np.pi
    if stated.projected:
        crossed = np.abs(np.sum(draws[:, :, 0] * draws[:, :, 1], axis=1))
        assert crossed.max() < 2.0**-28
        twice, kappas = twice[:, :1], kappas[:1]
    # Uniform where the angles, in −π to π, follow von Mises.
    uniform = [2.0 * stats.vonmises.cdf(np.abs(twice[:, i]), kappa) - 1.0 for i, kappa in enumerate(kappas)]
    values = [float(stats.kstest(one, stats.uniform.cdf).pvalue) for one in uniform]
    return min(1.0, len(values) * min(values))


SAMPLED: dict[str, tuple[Callable[..., float], DrawLaw, dict[str, Any]]] = {
    "discrete-gaussian": (p_of_vector, DiscreteGaussian(30.0), {"scale": 27.0}),
    "discrete-laplace": (p_of_discrete_laplace, DiscreteLaplace(7.0), {"scale": 6.3}),
    "gaussian": (p_of_gaussian, GaussianDraw(1.5), {"scale": 1.35}),
    "gaussian on a symmetric matrix": (p_of_symmetric_gaussian, GaussianDraw(1.5, symmetric=True), {"scale": 1.35}),
    "k-norm": (p_of_k_norm, KNorm(1.1, (2,)), {"scale": 0.99}),
    "k-norm of three levels": (p_of_k_norm, KNorm(1.1, (3,)), {"blocks": (2,)}),
    "matrix-laplace": (p_of_matrix_laplace, MatrixLaplaceDraw(0.7, 10), {"rate": 0.7 / 0.9}),
    "isotropic": (p_of_isotropic_length, IsotropicDraw(0.7, 10), {"rate": 0.7 / 0.9}),
    "additive-wishart": (p_of_additive_wishart, AdditiveWishartDraw(2, 12, 0.8, 10), {"scale": 0.72}),
    "wishart-sampling": (p_of_wishart, WishartSampling(60, 20.0), {"padding": 18.0}),
    "wishart-sampling inverse": (p_of_wishart, WishartSampling(60, 20.0, inverse=True), {"padding": 18.0}),
    "raised-wishart-sampling": (p_of_raised_wishart, RaisedWishartSampling(60, 2.0, 18.0), {"raised": 16.2}),
    "raised-wishart-sampling inverse": (
        p_of_raised_wishart,
        RaisedWishartSampling(60, 2.0, 18.0, inverse=True),
        {"raised": 16.2},
    ),
    "eigenvalue-bound": (p_of_eigenvalue_bound, EigenvalueBound(2.0, 30.0), {"scale": 1.8}),
    "choice": (p_of_choice, Choice(0.8), {"epsilon": 0.8 / 0.9}),
    "level-selection": (p_of_level_selection, LevelSelection(0.5, 1e-4), {"epsilon": 0.5 / 0.9}),
    "level-selection, its threshold": (p_of_level_selection, LevelSelection(0.5, 1e-4), {"delta": 1e-3}),
    "directions": (p_of_angles, Directions((2.0, 2.0), 2), {"temperatures": (2.0 / 0.81, 2.0 / 0.81)}),
    "directions unprojected": (
        p_of_angles,
        Directions((2.0, 1.0), 2, False),
        {"temperatures": (2.0 / 0.81, 1.0 / 0.81)},
    ),
}
"""For each law a test of its draws, the law drawn and paid for, and a planted fault: nine tenths of its noise.

The samplers behind them, cell by cell, are in ``tests/moments/test_noise_laws.py`` and ``tests/papers/test_sphere.py``.

Directions spread by 1/√t about the leading one, so that nine tenths of that is t/0.81.
"""


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("name", sorted(SAMPLED))
def test_what_is_drawn_has_the_law_that_is_paid_for(name: str) -> None:
    p_value, law, fault = SAMPLED[name]
    assert p_value(law, law, insecure_generator(2024)) > LIKELY
    assert p_value(replace(law, **fault), law, insecure_generator(2024)) < IMPOSSIBLE


def test_every_law_is_sampled() -> None:
    assert {law.name for _, law, _ in SAMPLED.values()} == set(LAWS)


def test_a_draw_has_noise_on_every_coordinate_that_is_counted() -> None:
    """No two cells share their noise, none is without."""
    generator = insecure_generator(5)
    vector, matrix = np.zeros(50, dtype=np.int64), np.zeros((9, 9), dtype=np.int64)
    draws = [
        (noised(DiscreteGaussian(2.0**40), vector, generator), vector),
        (noised(DiscreteGaussian(2.0**40, 2.0**40), matrix, generator), matrix),
        (noised(DiscreteLaplace(2.0**40), matrix, generator), matrix),
        (noised(KNorm(2.0**40, (20,)), vector, generator), vector),
        (noised(MatrixLaplaceDraw(0.1, 20), matrix, generator), matrix),
        (noised(IsotropicDraw(0.1, 20), matrix, generator), matrix),
        (noised(AdditiveWishartDraw(9, 30, 1.0, 20), matrix, generator), matrix),
    ]
    for noisy, query in draws:
        cells = noisy[np.triu_indices(9)] if noisy.ndim == 2 else noisy
        assert len(set(cells.tolist())) == len(cells) == coordinates_of(query)
    assert coordinates_of(3.0) == 1


def test_nothing_below_the_diagonal_of_a_query_comes_out() -> None:
    """Noise is drawn for the upper triangle: what a query holds below it would come out as a difference."""
    symmetric = np.array([[5, 2, 7], [2, 1, 3], [7, 3, 9]])
    garbled = symmetric + np.tril(np.full((3, 3), 10**6), -1)
    for law in (
        DiscreteGaussian(2.0**30, 2.0**30),
        DiscreteLaplace(2.0**30),
        MatrixLaplaceDraw(0.1, 10),
        IsotropicDraw(0.1, 10),
        AdditiveWishartDraw(3, 30, 1.0, 10),
    ):
        for query in (symmetric, symmetric.astype(object)):
            expected = noised(law, query, insecure_generator(2))
            assert (expected == expected.T).all()
            assert (noised(law, garbled.astype(query.dtype), insecure_generator(2)) == expected).all()
    # Beside noise of less than a unit the query is there, cell by cell.
    for law in (DiscreteGaussian(1e-3, 1e-3), DiscreteLaplace(1e-3), MatrixLaplaceDraw(1e9, 3), IsotropicDraw(1e9, 3)):
        assert (noised(law, garbled, insecure_generator(2)) == symmetric).all()
    assert (noised(AdditiveWishartDraw(3, 30, 1e-9, 3), garbled, insecure_generator(2)) == symmetric).all()


def test_integers_at_the_ends_of_int64_and_beyond_are_added_exactly() -> None:
    """In int64 such a sum would wrap around, and the noise with it."""
    ends = np.array([2**63 - 1, -(2**63) + 1, -(2**63), 2**62, -(2**62), 0], dtype=np.int64)
    for query in (ends, *ends.reshape(-1, 1)):
        for noise in (2**62 - 1, -(2**62) + 1):
            total = _add_integers(query, np.full(query.size, noise))
            assert total.tolist() == [cell + noise for cell in query.tolist()]
    assert _add_integers(ends[3:] // 2, np.ones(3, dtype=np.int64)).dtype == np.int64
    assert _add_integers(ends[:0], ends[:0]).size == 0
    query = np.array([3 * 2**70, -(2**80)], dtype=object)
    noisy = noised(DiscreteGaussian(1000.0), query, insecure_generator(0))
    assert noisy.dtype == object
    assert all(0 <= abs(int(cell)) < 10**4 for cell in noisy - query)


# Rounding ------------------------------------------------------------------------------------------------------------


def bits_of(value: float) -> int:
    """Significant binary digits."""
    numerator, _ = abs(float(value)).as_integer_ratio()
    return (numerator >> ((numerator & -numerator).bit_length() - 1)).bit_length() if numerator else 0


def carries_few_bits(rounding: Callable[[np.ndarray], np.ndarray]) -> bool:
    rng = np.random.default_rng(8)
    arrays = [rng.normal(size=(4, 4)) * 2.0**power for power in (-1000, -30, 0, 40, 900)]
    arrays += [np.array([1.0 - 2.0**-53]), np.array([1.0, 1e-12, -3e-5]), np.array(2.0**31 - 1.0), rng.normal(size=500)]
    return all(bits_of(value) <= _KEPT_BITS for array in arrays for value in rounding(array).ravel())


def test_outputs_carry_thirty_bits_at_most() -> None:
    assert _KEPT_BITS == 30
    assert carries_few_bits(without_low_bits)
    assert carries_few_bits(lambda array: without_low_bits(array, down=True))
    assert not carries_few_bits(lambda array: array)
    assert not carries_few_bits(lambda array: np.asarray(np.round(array, 9)))


def test_rounding_is_to_the_nearest_multiple_or_down() -> None:
    values = np.random.default_rng(1).normal(size=1000)
    unit = 2.0 ** (math.frexp(np.abs(values).max())[1] - _KEPT_BITS)
    assert np.abs(without_low_bits(values) - values).max() <= unit / 2.0
    lower = without_low_bits(values, down=True)
    assert ((lower <= values) & (values - lower < unit)).all()
    assert (without_low_bits(-values, down=True) != -lower).any()  # down, not towards zero


@pytest.mark.parametrize(
    ("law", "query"),
    [
        (GaussianDraw(0.3), np.array([1.0, -2.0, 1e-3])),
        (GaussianDraw(0.3, symmetric=True), np.eye(3)),
        (WishartSampling(7, 2.0), np.eye(3)),
        (WishartSampling(7, 2.0, inverse=True), np.eye(3)),
        (RaisedWishartSampling(7, 1.0, 2.0), np.eye(3)),
        (RaisedWishartSampling(7, 1.0, 2.0, inverse=True), np.eye(3)),
        (Directions((1.0, 2.0), 3), np.diag([3.0, 2.0, 1.0])),
        (Directions((1.0, 2.0), 3, projected=False), np.diag([3.0, 2.0, 1.0])),
    ],
)
def test_floating_point_draws_carry_few_bits(law: DrawLaw, query: np.ndarray) -> None:
    generator = insecure_generator(6)
    assert all(bits_of(value) <= _KEPT_BITS for _ in range(20) for value in noised(law, query, generator).ravel())


def bounds_from_below(law: EigenvalueBound, draw: Callable[..., float] = noised) -> bool:
    """Whether no draw is above the unrounded noisy value of the same seed, less the allowance."""
    for seed in range(300):
        exact = Fraction(7.0 + insecure_generator(seed).laplace(0.0, law.scale))
        if Fraction(draw(law, 7.0, insecure_generator(seed))) > max(exact - Fraction(law.allowance), Fraction(0)):
            return False
    return True


def test_a_bound_on_an_eigenvalue_is_rounded_down_and_never_negative() -> None:
    law = EigenvalueBound(0.25, 2.0)
    assert bounds_from_below(law)
    assert bounds_from_below(EigenvalueBound(0.25, 9.0))
    assert noised(EigenvalueBound(0.25, 9.0), 7.0, insecure_generator(0)) == 0.0

    def to_the_nearest(law: EigenvalueBound, query: float, generator: np.random.Generator) -> float:
        noisy = without_low_bits(np.array(query + generator.laplace(0.0, law.scale)))
        return max(0.0, float(noisy) - law.allowance)

    assert not bounds_from_below(law, to_the_nearest)
    law = EigenvalueBound(0.25, 0.5)
    noisy = [noised(law, 7.0 + 1e-9 * seed, insecure_generator(seed)) + law.allowance for seed in range(50)]
    assert all(bits_of(value) <= _KEPT_BITS for value in noisy)
    assert any(bits_of(value - 1e-9) > _KEPT_BITS for value in noisy)


# What is said to be exact ---------------------------------------------------------------------------------------------

ADDED, REPLACED = BOTH
MATRIX = gram_frobenius(ADDED, 3)
UNATTAINED = sum_and_count_l2(ADDED)


@pytest.mark.parametrize(
    ("law", "sensitivity", "sizes"),
    [
        (DiscreteGaussian(3.0), count(ADDED), {1}),
        (DiscreteGaussian(3.0), UNATTAINED, set()),
        (DiscreteGaussian(3.0, 3.0 * math.sqrt(0.5)), MATRIX, {1, 2, 6}),
        (DiscreteGaussian(3.0, 3.0 * math.sqrt(0.5) * (1.0 + 0.9e-6)), MATRIX, {1, 2, 6}),
        (DiscreteGaussian(3.0, 3.0 * math.sqrt(0.5) * (1.0 + 1.1e-6)), MATRIX, {1}),
        (DiscreteGaussian(3.0, 3.0), MATRIX, {1}),
        (GaussianDraw(3.0), count(ADDED), {1}),
        (GaussianDraw(3.0, symmetric=True), MATRIX, {1, 2, 6}),
        (GaussianDraw(3.0, symmetric=True), UNATTAINED, set()),
        (DiscreteLaplace(3.0), count_l1(ADDED), {1}),
        (DiscreteLaplace(3.0), row_sum_l1(ADDED, 1), set()),
        (MatrixLaplaceDraw(0.5, 4), gram_nuclear(ADDED, 3), {1}),
        (MatrixLaplaceDraw(0.5, 4), sorted_eigenvalues_l1(ADDED, 3), set()),
        (IsotropicDraw(0.5, 4), MATRIX, {1}),
        (IsotropicDraw(0.5, 4), UNATTAINED, set()),
        (Choice(0.5), rank_score(ADDED), set()),
        (Directions((1.0,), 3), quadratic_form(ADDED), set()),
        (EigenvalueBound(3.0, 9.0), smallest_eigenvalue(ADDED), set()),
        (AdditiveWishartDraw(3, 40, 1.0, 4), row_norm_square(ADDED), {1, 2, 6}),
        (AdditiveWishartDraw(3, 40, 1.0, 4), row_norm_square(REPLACED), {2, 6}),
        (WishartSampling(40, 3.0), row_norm_square(ADDED), {1, 2, 6}),
        (WishartSampling(40, 3.0), row_norm_square(REPLACED), {2, 6}),
        (WishartSampling(40, 3.0, 0.1), row_norm_square(ADDED), set()),
        (RaisedWishartSampling(40, 3.0, 1.0), MATRIX, set()),
    ],
)
def test_a_loss_is_called_attained_where_neighbors_attain_it(
    law: DrawLaw, sensitivity: Sensitivity, sizes: set[int]
) -> None:
    assert {size for size in (1, 2, 6) if law.is_attained(sensitivity, size)} == sizes
    assert law.attained_alone == isinstance(law, WishartSampling)


@pytest.mark.parametrize("neighbors", BOTH)
def test_the_curves_of_a_draw_are_those_of_its_parts(neighbors: Neighbors) -> None:
    """The reach is the loss, and δ that of the law's own curve, at the loss of the sensitivity in units of the query."""
    sides = 2.0 if neighbors is REPLACED else 1.0
    nuclear = gram_nuclear(neighbors, 3).in_units(4.0**4)
    frobenius, moved = gram_frobenius(neighbors, 3), histogram_l1(neighbors).in_units(8.0, rounding=0.9)
    shift = int(8 * sides)
    width, temperatures = 0.5 * median_score(neighbors).value, (1.5, -0.25, 2.0)
    row, w = row_norm_square(neighbors, 0.5), frobenius.value / 4.0
    expected: list[tuple[DrawLaw, Sensitivity, list[tuple[float, Callable[[float], float]]]]] = [
        (DiscreteLaplace(5.0), moved, [(shift / 5.0, lambda e: discrete_laplace_delta(e, shift, 5.0))]),
        (MatrixLaplaceDraw(0.7, 4), nuclear, [(0.7 * sides, lambda e: laplace_delta(e, 0.7 * sides))]),
        (IsotropicDraw(0.7, 1), frobenius, [(0.7 * w, lambda e: laplace_delta(e, 0.7 * w))]),
        (Choice(0.5), median_score(neighbors), [(width, lambda e: bounded_range_delta(e, width))]),
        (
            Directions(temperatures, 3),
            quadratic_form(neighbors),
            [(abs(t) * sides, lambda e, t=t: bounded_range_delta(e, abs(t) * sides)) for t in temperatures[:2]],
        ),
        (Directions((2.0,), 1), quadratic_form(neighbors), []),
        (EigenvalueBound(3.0, 9.0), smallest_eigenvalue(neighbors), [(1 / 3, lambda e: laplace_delta(e, 1 / 3))]),
        (GaussianDraw(3.0), count(neighbors), []),
        *(
            (law, sensitivity, [(math.inf, delta)])
            for law, sensitivity, delta in (
                (
                    AdditiveWishartDraw(3, 40, 1.3, 0),
                    row,
                    lambda e: additive_wishart_delta(e, 37.0, 1.3 / 1.25, neighbors),
                ),
                (
                    WishartSampling(40, 30.0, 2.0),
                    row,
                    lambda e: wishart_sampling_delta(e, 40.0, 32.0 / 1.25, neighbors),
                ),
                (RaisedWishartSampling(40, 30.0, 5.0), frobenius, lambda e: raised_wishart_delta(e, 40.0, 8.75 / w)),
            )
        ),
    ]
    for law, sensitivity, parts in expected:
        found = law.curves(sensitivity)
        assert [curve.reach for curve in found] == pytest.approx([reach for reach, _ in parts])
        for curve, (reach, delta) in zip(found, parts, strict=True):
            for share in (0.1, 0.6, 0.95):
                epsilon = share * (reach if math.isfinite(reach) else 1.0)
                assert curve.delta(epsilon) == pytest.approx(delta(epsilon), rel=1e-9)
