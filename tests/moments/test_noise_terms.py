"""The noise law as a sum of terms: against the laws it replaces, against draws, with faults that the checks find."""

from __future__ import annotations

import ast
import json
import math
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from dpmoments.audit.exact import loss_dimension, shift_loss
from dpmoments.base.errors import InputValueError
from dpmoments.moments import models
from dpmoments.moments import terms as terms_module
from dpmoments.moments.cells import (
    CellFamily,
    GaussianCells,
    IsotropicCells,
    LaplaceCells,
    MatrixLaplaceCells,
    _tail_at,
    sum_quantile,
)
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.models import AdditiveModel, CenteredLevelsModel, NoiseModel, PooledModel
from dpmoments.moments.spectral import SpectralNoise
from dpmoments.moments.terms import NoiseTerm, ScaleTerm
from dpmoments.papers.models import (
    InverseNormalModel,
    LastStepModel,
    ReleasedBasisModel,
    ScaledWishartModel,
    WishartCells,
    WishartModel,
)
from dpmoments.privacy.sampling import matrix_laplace, symmetric_gaussian
from references.plain_rotated_noise import RotatedNoise, plain_law
from support.noise_models import additive, gaussian, laplace
from support.said import refused

D, RATE = 4, 0.7

ADDITIVE: dict[str, AdditiveModel] = {
    "gaussian": gaussian(D, 2.0, 1.0, 4.0, 9.0),
    "gaussian, public count": gaussian(D, 2.0, 1.0, 4.0, 0.0),
    "gaussian, equal": gaussian(D, 1.0, 1.0, None, None),
    "laplace": laplace(D, 1.5, 1.5, 3.0, 6.0),
    "isotropic": additive("isotropic", D, 16 / RATE**2, 8 / RATE**2, 8 / RATE**2 / 0.25, 16 / RATE**2 / 0.0625, RATE),
    "matrix-laplace": additive("matrix-laplace", D, 6 / RATE**2, 3 / RATE**2, 12 / RATE**2, 96 / RATE**2, RATE),
    "wishart": additive("wishart", D, 20 / RATE**2, 10 / RATE**2, 10 / RATE**2, 20 / RATE**2, RATE),
}
REFERENCE: dict[str, dict[str, Any]] = json.loads((Path(__file__).parent / "reference_laws.json").read_text())
"""Of these laws, as the classes that stated them family by family gave it."""


def plain_of(model: AdditiveModel, shift: tuple[float, ...] = (0.0,) * D) -> RotatedNoise:
    """The law about another center, from whole matrices."""
    cells = np.full((D + 1, D + 1), model.off_diagonal_variance)
    np.fill_diagonal(cells, model.diagonal_variance)
    cells[0, 1:] = cells[1:, 0] = model.sum_variance or 0.0
    cells[0, 0] = model.count_variance or 0.0
    matrix = np.eye(D + 1)
    matrix[1:, 0] = shift
    return RotatedNoise(matrix, cells)


@dataclass(frozen=True)
class Sum:
    """Independent noise, added up."""

    parts: tuple[RotatedNoise, ...]

    def product_covariance(self, vector: np.ndarray, chosen: list[int] | None = None) -> np.ndarray:
        return np.asarray(sum(part.product_covariance(vector, chosen) for part in self.parts))

    def covariance(self, weights: np.ndarray) -> np.ndarray:
        return np.asarray(sum(part.covariance(weights) for part in self.parts))


def symmetric(rng: np.random.Generator, *shape: int) -> np.ndarray:
    weights = rng.normal(size=shape)
    return weights + np.swapaxes(weights, -1, -2)


def same_answers(law: NoiseLaw, plain: Any, rng: np.random.Generator) -> None:
    """Everything linear that both can answer."""
    n = law.n_features + 1
    for _ in range(3):
        vector, weights = rng.normal(size=n), symmetric(rng, 5, n, n)
        stated = plain.product_covariance(vector)
        np.testing.assert_allclose(law.covariance_of_product(vector), stated, rtol=1e-12, atol=1e-12 * stated.max())
        chosen = [2, 0, n - 1]
        expected = plain.product_covariance(vector, chosen)
        found = law.covariance_of_product(vector, chosen)
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * stated.max())
        expected = plain.covariance(weights)
        variances = np.diag(expected)
        np.testing.assert_allclose(law.variance(None, weights), variances, rtol=1e-12, atol=1e-300)
        np.testing.assert_allclose(law.covariance(None, weights), expected, rtol=1e-11, atol=1e-11 * variances.max())
        [square] = plain.covariance(np.outer(vector, vector)[None])
        assert law.variance_of_square(vector) == pytest.approx(square[0], rel=1e-12)


def few_indices_are_as_good_as_all(law: NoiseLaw, rng: np.random.Generator) -> None:
    """Functionals given by a few indices, some of them twice, are those of the whole matrix of weights."""
    n = law.n_features + 1
    indices = np.array([[0, 1, 3], [0, 2, 2], [1, 1, 1], [3, 0, 1], [0, 0, 2]])
    weights = symmetric(rng, 5, 3, 3)
    whole = np.zeros((5, n, n))
    for place, at in enumerate(indices):
        np.add.at(whole[place], np.ix_(at, at), weights[place])
    np.testing.assert_allclose(law.variance(indices, weights), law.variance(None, whole), rtol=1e-11)
    one = np.array([0, 3, 1])
    whole = np.zeros((5, n, n))
    whole[np.ix_(range(5), one, one)] = weights
    np.testing.assert_allclose(law.covariance(one, weights), law.covariance(None, whole), rtol=1e-11, atol=1e-12)
    np.testing.assert_allclose(np.diag(law.covariance(one, weights)), law.variance(one, weights), rtol=1e-11)
    cells = law.cell_variances()
    units = np.eye(n * n).reshape(n * n, n, n)
    of_units = law.variance(None, (units + units.transpose(0, 2, 1)) / 2.0).reshape(n, n)
    np.testing.assert_allclose(cells, of_units, rtol=1e-10, atol=1e-12 * cells.max())
    assert law.energy == pytest.approx(cells[1:, 1:].sum(), rel=1e-11)
    trace = np.diag(np.append(0.0, np.ones(n - 1)))
    assert law.trace_variance == pytest.approx(float(law.variance(None, trace[None])[0]), rel=1e-11)
    np.testing.assert_allclose(law.sum_variances, cells[0, 1:], rtol=1e-11, atol=1e-14)
    vectors, less = rng.normal(size=(2, 4, n))
    whole = vectors[:, :, None] * vectors[:, None, :] - less[:, :, None] * np.eye(n)
    np.testing.assert_allclose(law.variance_of_squares(vectors, less), law.variance(None, whole), rtol=1e-11)


@pytest.mark.parametrize("name", ADDITIVE)
def test_additive_laws_answer_as_they_did(name: str) -> None:
    model, rng, known = ADDITIVE[name], np.random.default_rng(0), REFERENCE[name]
    law = model.law()
    same_answers(law, plain_of(model), rng)
    few_indices_are_as_good_as_all(law, rng)
    np.testing.assert_array_equal(law.cell_variances(), plain_of(model).variances)
    assert math.sqrt(law.energy) == pytest.approx(known["frobenius_error"], rel=1e-13)
    assert model.frobenius_error == pytest.approx(known["frobenius_error"], rel=1e-13)
    for level in (0.001, 0.3, 0.975, 1.0 - 1e-9):
        for of in ("cell", "diagonal"):
            assert law.quantile(level, of=of) == pytest.approx(known[f"{of} quantile {level!r}"], rel=1e-12)
        if model.count_variance:
            assert law.quantile(level, of="count") == law.quantile(level, of="diagonal")
    for failure in (0.05, 1e-6):
        whole, block = known[f"gram bound {failure!r}"]
        assert law.gram_bound(failure) == pytest.approx(whole, rel=1e-12)
        assert law.gram_bound(failure, [1, 3]) == pytest.approx(block, rel=1e-12)
        if model.sum_variance is not None:
            bounds = law.sum_bound(failure), law.sum_bound(failure, [2])
            family, variance = law.terms[0].family, model.sum_variance
            exact = [family.vector_bound(variance * np.eye(size), failure) for size in (D, 1)]
            assert bounds == pytest.approx(exact, rel=1e-12)
    spectral = SpectralNoise.of(law)
    assert spectral.cell_variance == pytest.approx(known["cell_variance"], rel=1e-12)
    assert spectral.trace_variance == pytest.approx(known["trace_variance"], rel=1e-12)
    assert law.spectral_skews == pytest.approx(known["spectral_skews"], rel=1e-12)


SHIFTS = ((0.0, 0.0, 0.0, 0.0), (0.5, 0.0, -0.2, 1.0))


@pytest.mark.parametrize("name", [name for name in ADDITIVE if ADDITIVE[name].count_variance is not None])
def test_pooled_laws_are_those_of_carried_parts(name: str) -> None:
    site, rng = ADDITIVE[name], np.random.default_rng(2)
    law = PooledModel(n_features=D, parts=tuple((site, site.law(), np.array(shift)) for shift in SHIFTS)).law()
    same_answers(law, Sum(tuple(plain_of(site, shift) for shift in SHIFTS)), rng)
    few_indices_are_as_good_as_all(law, rng)


def test_a_count_with_a_draw_of_its_own_is_in_the_law() -> None:
    model = replace(ADDITIVE["gaussian, equal"], count_scale=3.0, count_is_laplace=True)
    law, without = model.law(), ADDITIVE["gaussian, equal"].law()
    assert law.count_variance == 18.0
    assert without.count_variance == 0.0
    assert law.quantile(0.99, of="count") == LaplaceCells().quantile(0.99, diagonal=True)
    assert law.gram_bound(0.01) == without.gram_bound(0.01), "the draw of the count takes no share of the failure"
    assert law.count_bound(0.01) == pytest.approx(3.0 * math.log(1.0 / 0.01))


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize("cells", ["mixed", "alike", "of the constant"])
def test_rotated_laws_answer_as_they_did(exact: bool, cells: str) -> None:
    rng = np.random.default_rng(3)
    matrix, variances = rng.normal(size=(D + 1, D + 3)), symmetric(rng, D + 3, D + 3) ** 2
    if cells == "alike":
        variances = np.full((D + 3, D + 3), 0.5) + 0.5 * np.eye(D + 3)
    if cells == "of the constant":
        variances[1:, 1:] = variances[0, 0] = 0.0
    plain = RotatedNoise(matrix, variances, count_is_exact=exact)
    known = (np.eye(D + 1)[0], matrix[0]) if exact else None
    law = NoiseLaw((NoiseTerm(GaussianCells(), variances, matrix, known),))
    assert law.terms[0]._blocks is not None or cells != "alike"
    assert law.terms[0]._blocks is None or cells != "mixed"
    same_answers(law, plain, rng)
    few_indices_are_as_good_as_all(law, rng)
    about = np.eye(D + 1)
    about[1:, 0] = rng.normal(size=D)
    vector, weights = rng.normal(size=D + 1), symmetric(rng, 2, D + 1, D + 1)
    carried = law.carried(about)
    stated = about @ plain.product_covariance(about.T @ vector) @ about.T
    np.testing.assert_allclose(carried.covariance_of_product(vector), stated, rtol=1e-11, atol=1e-11 * stated.max())
    expected = np.diag(plain.covariance(about.T @ weights @ about))
    np.testing.assert_allclose(carried.variance(None, weights), expected, rtol=1e-11)


def test_features_are_restricted_and_combined() -> None:
    rng = np.random.default_rng(4)
    law = ADDITIVE["matrix-laplace"].law()
    some = law.restricted([3, 1])
    assert some.terms[0].matrix is None
    np.testing.assert_array_equal(some.cell_variances(), law.cell_variances([0, 4, 2]))
    halves, mixed = np.eye(D + 1), np.eye(D + 1)
    halves[1, 1], halves[1, 2], halves[1, 0] = 0.5, -0.5, 0.25  # (x₁ − x₂)/2 + 1/4
    mixed[0, 2], mixed[3, 0] = 0.5, -0.3  # the constant is mixed with a feature
    for matrix in (halves, mixed):
        contrast = law.carried(matrix)
        assert contrast.terms[0]._local is not None
        weights = symmetric(rng, 3, D + 1, D + 1)
        expected = [law.variance(None, (matrix.T @ weight @ matrix)[None])[0] for weight in weights]
        np.testing.assert_allclose(contrast.variance(None, weights), expected, rtol=1e-12)
        few_indices_are_as_good_as_all(contrast, rng)


def test_a_difference_of_squares_without_noise_is_zero_to_the_digit() -> None:
    law = ADDITIVE["gaussian"].law()
    vector = 0.3 * np.eye(D + 1)[[2]]
    assert law.variance_of_squares(vector, vector**2).tolist() == [0.0]
    assert law.variance_of_squares(vector, 0.9 * vector**2)[0] > 0.0


def test_bounds_of_a_shift_and_of_a_sum_are_put_together_as_they_were() -> None:
    public = ADDITIVE["gaussian, public count"].law()
    length = math.sqrt(0.5**2 + 0.2**2 + 1.0)
    [term] = public.about(np.array(SHIFTS[1])).terms
    assert term.matrix is not None
    part = 0.01 / 4.0
    expected = public.gram_bound(part) + length * (public.sum_bound(part) + public.sum_bound(part, [1]))
    assert term._shifted_bound(0.01, term.matrix[1:]) == pytest.approx(expected, rel=1e-12)
    one, other = ADDITIVE["matrix-laplace"].law(), ADDITIVE["wishart"].law()
    both = one + other
    assert both.gram_bound(0.01) == one.gram_bound(0.005) + other.gram_bound(0.005)
    assert both.sum_bound(0.01) == one.sum_bound(0.005) + other.sum_bound(0.005)
    normal = public
    assert (normal + normal).gram_bound(0.01) == pytest.approx(math.sqrt(2.0) * normal.gram_bound(0.01), rel=1e-12)


# Against draws ------------------------------------------------------------------------------------------------------------------

DRAWS = 30_000


def wishart(degrees: int, rng: np.random.Generator, size: int = D + 1) -> np.ndarray:
    rows = rng.normal(size=(DRAWS, degrees, size))
    return np.swapaxes(rows, 1, 2) @ rows


def unit_cells(family: CellFamily, rng: np.random.Generator) -> np.ndarray:
    """C of the family with variances 1 off and 2 on the diagonal, shape (draws, D + 1, D + 1)."""
    n = D + 1
    if isinstance(family, GaussianCells | LaplaceCells):
        draw = rng.normal if isinstance(family, GaussianCells) else rng.laplace
        noise = draw(size=(DRAWS, n, n)) * np.sqrt((1.0 + np.eye(n)) / (1.0 if draw == rng.normal else 2.0))
        return np.triu(noise) + np.swapaxes(np.triu(noise, 1), 1, 2)
    if isinstance(family, IsotropicCells):
        normal = unit_cells(GaussianCells(), rng)
        return normal * np.sqrt(rng.gamma(family.shape, 1.0 / family.shape, DRAWS))[:, None, None]
    degrees = round(family.degrees)
    if isinstance(family, WishartCells):
        return (wishart(degrees, rng) - degrees * np.eye(n)) / math.sqrt(degrees)
    return (wishart(degrees, rng) - wishart(degrees, rng)) / math.sqrt(2.0 * degrees)


@dataclass(frozen=True)
class Drawn:
    law: NoiseLaw
    noise: np.ndarray


FAMILIES: dict[str, CellFamily] = {
    "gaussian": GaussianCells(),
    "laplace": LaplaceCells(),
    "isotropic": IsotropicCells(8.0),
    "matrix-laplace": MatrixLaplaceCells(6.0),
    "wishart": WishartCells(9.0),
}
SCALES = np.array([3.0, 1.0, 1.0, 1.0, 1.0])


@cache
def drawn(name: str) -> Drawn:
    """A family with more noise on the constant; sums of terms, of which one may have a matrix."""
    rng = np.random.default_rng(5)
    cells = (1.0 + np.eye(D + 1)) * np.outer(SCALES, SCALES) ** 2
    if name in FAMILIES:
        noise = unit_cells(FAMILIES[name], rng) * np.outer(SCALES, SCALES)
        return Drawn(NoiseLaw((NoiseTerm(FAMILIES[name], cells),)), noise)
    if name == "summed":
        some = drawn("matrix-laplace"), drawn("wishart"), drawn("gaussian")
        ball = np.diag([1.0, 1.3, 1.3, 1.3, 1.3])
        law = some[0].law + some[1].law.carried(ball) + some[2].law
        return Drawn(law, some[0].noise + ball @ some[1].noise @ ball + some[2].noise)
    first, second = drawn("matrix-laplace"), drawn("laplace" if name == "shifted" else "wishart")
    matrix = rng.normal(size=(D + 1, D + 1)) if name == "rotated" else np.eye(D + 1)
    if name == "shifted":
        matrix[1:, 0] = [0.5, 0.0, -0.2, 1.0]
    return Drawn(first.law + second.law.carried(matrix), first.noise + matrix @ second.noise @ matrix.T)


NAMES = [*FAMILIES, "summed", "shifted", "rotated"]


def off_by(found: np.ndarray, stated: np.ndarray) -> float:
    """The largest difference; of covariances beside the deviations of the two."""
    if found.ndim == 1:
        return float(np.abs(found / stated - 1.0).max())
    deviations = np.sqrt(np.diag(stated))
    return float(np.abs((found - stated) / np.outer(deviations, deviations)).max())


def doubled_off_the_diagonal(law: NoiseLaw) -> NoiseLaw:
    def fault(term: NoiseTerm) -> NoiseTerm:
        cells = 2.0 * term.variances
        cells[np.diag_indices(len(cells))] /= 2.0
        return replace(term, variances=cells)

    return replace(law, terms=tuple(map(fault, law.terms)))


@pytest.mark.parametrize("name", NAMES)
def test_functionals_vary_as_draws_do_and_not_with_a_factor_two_off_the_diagonal(name: str) -> None:
    rng = np.random.default_rng(6)
    law, noise = drawn(name).law, drawn(name).noise
    weights = symmetric(rng, 6, D + 1, D + 1) / np.outer(SCALES, SCALES)
    found = np.cov(np.einsum("nij,pij->pn", noise, weights))
    assert off_by(found, law.covariance(None, weights)) < 0.04
    assert off_by(np.diag(found), law.variance(None, weights)) < 0.04
    assert off_by(np.diag(found), doubled_off_the_diagonal(law).variance(None, weights)) > 0.1
    assert off_by(found, doubled_off_the_diagonal(law).covariance(None, weights)) > 0.1


@pytest.mark.parametrize("name", NAMES)
def test_products_vary_as_draws_do_and_not_without_the_shared_cells(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    law, noise = drawn(name).law, drawn(name).noise
    vector = np.array([0.4, 1.0, 1.0, 1.0, 1.0])
    found = np.cov((noise @ vector).T)
    assert off_by(found, law.covariance_of_product(vector)) < 0.05
    few = law.covariance_of_product(vector, [4, 0])
    np.testing.assert_allclose(few, law.covariance_of_product(vector)[np.ix_([4, 0], [4, 0])], rtol=1e-12)

    def without(variances: np.ndarray, first: np.ndarray, second: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return np.diag(variances[rows] @ (first * second))

    monkeypatch.setattr(terms_module, "_of_products", without)
    assert off_by(found, law.covariance_of_product(vector)) > 0.1


def test_what_is_known_of_a_draw_is_taken_out_of_it() -> None:
    rng = np.random.default_rng(7)
    matrix, shift = rng.normal(size=(D + 1, D + 1)), np.eye(D + 1)
    shift[1:, 0] = 0.7
    law = NoiseLaw((NoiseTerm(MatrixLaplaceCells(6.0), 1.0 + np.eye(D + 1), matrix, (np.eye(D + 1)[0], matrix[0])),))
    noise = matrix @ unit_cells(MatrixLaplaceCells(6.0), rng) @ matrix.T
    noise[:, 0, 0] = 0.0
    weights, vector = symmetric(rng, 4, D + 1, D + 1), rng.normal(size=D + 1)
    for moved, of_moved in ((noise, law), (shift @ noise @ shift.T, law.carried(shift))):
        assert off_by(np.cov(np.einsum("nij,pij->pn", moved, weights)), of_moved.covariance(None, weights)) < 0.05
        assert off_by(np.cov((moved @ vector).T), of_moved.covariance_of_product(vector)) < 0.05
        assert of_moved.count_variance == pytest.approx(0.0, abs=1e-9)
    forgotten = replace(law, terms=(replace(law.terms[0], exact=None),))
    assert off_by(np.cov((noise @ vector).T), forgotten.covariance_of_product(vector)) > 0.1


FAMILY_LIST = [GaussianCells(), LaplaceCells(), IsotropicCells(3.0), MatrixLaplaceCells(6.0), WishartCells(9.0)]


@pytest.mark.parametrize("family", FAMILY_LIST, ids=lambda family: family.name)
@pytest.mark.parametrize("diagonal", [False, True])
def test_the_integral_for_a_tail_is_the_familys_own(family: CellFamily, diagonal: bool) -> None:
    for side in (1.0, -1.0):
        pole = math.inf if side < 0.0 and diagonal and family.skewed else family.pole(diagonal=diagonal)
        for place in (0.3, 0.5, 0.7):
            at, log_tail = _tail_at(place * min(pole, 4.0), pole, side, ((family, 1.0, diagonal),))
            level = -math.expm1(log_tail) if side > 0.0 else math.exp(log_tail)
            assert side * at == pytest.approx(family.quantile(level, diagonal=diagonal), abs=1e-5)


def test_quantiles_of_sums() -> None:
    rng = np.random.default_rng(8)
    parts: tuple[tuple[CellFamily, float, bool], ...] = ((WishartCells(9.0), 2.0, True), (LaplaceCells(), 1.4, True))
    draws = 2.0 * (rng.chisquare(9, 400_000) - 9.0) / math.sqrt(18.0) + 1.4 * rng.laplace(size=400_000) / math.sqrt(2.0)
    standard = draws / math.sqrt(2.0**2 + 1.4**2)
    for level in (0.01, 0.3, 0.5, 0.7, 0.99):
        at = sum_quantile(level, parts)
        assert np.mean(standard <= at) == pytest.approx(level, abs=5.0 * math.sqrt(level * (1.0 - level) / 400_000))
    unmirrored = ((WishartCells(9.0), 2.0, False), parts[1])  # the skew forgotten
    assert abs(np.mean(standard <= sum_quantile(0.01, unmirrored)) - 0.01) > 0.001


@pytest.mark.parametrize("name", NAMES)
def test_bounds_hold(name: str) -> None:
    law, noise = drawn(name).law, drawn(name).noise[:4_000]
    for failure in (0.2, 0.01):
        norms = np.linalg.norm(noise[:, 1:, 1:], 2, axis=(1, 2))
        assert np.mean(norms > law.gram_bound(failure)) <= failure
        some = np.array([2, 4])
        norms = np.linalg.norm(noise[:, some[:, None], some], 2, axis=(1, 2))
        assert np.mean(norms > law.gram_bound(failure, some)) <= failure
        assert np.mean(np.linalg.norm(noise[:, 0, 1:], axis=1) > law.sum_bound(failure)) <= failure
        assert np.mean(np.abs(noise[:, 0, 0]) > law.count_bound(failure)) <= failure + 0.01


@pytest.mark.parametrize(("name", "d"), [("gaussian", 20), ("matrix-laplace", 3), ("matrix-laplace", 12)])
def test_bounds_about_a_mean_hold(name: str, d: int) -> None:
    """Against draws of the exact noise, carried to a center at 0.9 of the longest row."""
    rng, n_draws, shift = np.random.default_rng(4), 600, np.full(d, 0.9 / math.sqrt(d))
    draw, v, rate = (symmetric_gaussian, 2.0, None) if name == "gaussian" else (matrix_laplace, d + 2.0, 1.0)
    noise = np.array([draw(d + 1, rate or math.sqrt(2.0), rng) for _ in range(n_draws)])
    model = additive(name, d, v, v / 2.0, 5.0 * v / 2.0, 25.0 * v, rate)
    carried = np.eye(d + 1)
    carried[0, 0], carried[1:, 0] = math.sqrt(5.0), shift * math.sqrt(5.0)  # the constant was 1/√5
    noise = carried @ noise @ carried.T
    law = model.law().about(shift)
    np.testing.assert_allclose(noise.var(axis=0), law.cell_variances(), rtol=0.5)
    norms = np.linalg.norm(noise[:, 1:, 1:], 2, axis=(1, 2))
    assert np.mean(norms > law.gram_bound(0.05)) <= 0.05
    assert np.mean(norms > law.gram_bound(0.05) / 10.0) > 0.5
    assert np.mean(np.linalg.norm(noise[:, 0, 1:], axis=1) > law.sum_bound(0.05)) <= 0.05
    # planted fault: the bound of a law of the same energy that no rotation changes does not hold
    spectral = SpectralNoise.of(law)
    level = np.full((d, d), spectral.cell_variance) * (1.0 + np.eye(d))
    if name == "gaussian":
        assert np.mean(norms > law.terms[0].family.norm_bound(level, 0.05, d)) > 0.1


# Models and files ---------------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Moments:
    noisy_gram: np.ndarray
    noisy_sum: np.ndarray | None
    noisy_count: float | None = 500.0
    center: np.ndarray | None = None
    count_is_public: bool = False


GRAM = 100.0 * np.eye(D) + 20.0 * np.ones((D, D))
RELEASED = Moments(GRAM, np.array([5.0, -3.0, 1.0, 0.0]))
LINEAR = np.array([[2.0, 0.1, 0.0, 0.0], [0.1, 1.0, 0.0, 0.2], [0.0, 0.0, 1.5, 0.0], [0.0, 0.2, 0.0, 3.0]])
LAST_STEP: dict[str, Any] = dict(
    n_features=D, count_scale=2.0, count_is_laplace=True, linear=LINEAR, center=np.array([0.1, 0.0, -0.2, 0.3]),
    step_gram=GRAM, step_sum=np.ones(D), gram_scale=3.0, sum_scale=0.8,
)  # fmt: skip
WISHART: dict[str, Any] = dict(
    n_features=D, degrees=900.0, padding=4.0, subtracted=True, inverse=False, augmentation=0.5, corner=130.0, raised=0.0
)  # fmt: skip
INVERSE: dict[str, Any] = dict(
    n_features=D, count_scale=1.5, inverse=np.linalg.inv(GRAM), inverse_scale=1e-4, smallest_eigenvalue=50.0, sum_scale=2.0
)  # fmt: skip
OWN_COUNT = WISHART | dict(augmentation=0.0, corner=0.0, count_scale=2.5, count_is_laplace=True)
MODELS: dict[str, Any] = {
    "last step": LastStepModel(**LAST_STEP),
    "last step, no mean": LastStepModel(**LAST_STEP | dict(step_sum=None, sum_scale=0.0)),
    "wishart": WishartModel(**WISHART),
    "wishart, own count": WishartModel(**OWN_COUNT),
    "inverse wishart": WishartModel(**WISHART | dict(inverse=True)),
    "inverse normal": InverseNormalModel(**INVERSE),
}


@pytest.mark.parametrize("public", [False, True])
@pytest.mark.parametrize("centered", [False, True])
@pytest.mark.parametrize("name", MODELS)
def test_models_of_runs_answer_as_they_did(name: str, centered: bool, public: bool) -> None:
    model = MODELS[name]
    released: Any = replace(RELEASED, count_is_public=public, center=np.full(D, 0.05) if centered else None)
    law, plain = model.law(released), plain_law(released, model)
    assert law is not None
    assert plain is not None
    same_answers(law, plain, np.random.default_rng(9))
    few_indices_are_as_good_as_all(law, np.random.default_rng(10))
    assert model.condition in {"", *law.caveats}


def test_noise_left_in_on_purpose_has_no_law() -> None:
    assert WishartModel(**WISHART | dict(subtracted=False)).law(RELEASED) is None
    assert LastStepModel(**LAST_STEP | dict(linear=np.zeros((D, D)))).law(RELEASED) is None
    assert WishartModel(**WISHART).law(replace(RELEASED, noisy_sum=None)) is None


CELLS = np.array([[1.0, 2.0, 3.0, 4.0], [2.0, 2.0, 1.0, 1.0], [3.0, 1.0, 5.0, 2.0], [4.0, 1.0, 2.0, 9.0]])
BASIS = ReleasedBasisModel(n_features=D, cells=CELLS, sum_variance=2.0, count_variance=2.0, laplace=True)
SCALED = ScaledWishartModel(
    n_features=D, degrees=50.0, scale=0.5, scale_matrix=LINEAR @ LINEAR.T, augmentation=0.5, count_is_noisy=True
)
CENTERED = CenteredLevelsModel(
    n_features=D, family="matrix-laplace", diagonal_variance=6 / RATE**2, off_diagonal_variance=3 / RATE**2,
    sum_variance=12 / RATE**2, count_variance=96 / RATE**2, rate=RATE,
    center=np.array([0.25, 0.25, 0.0, 0.125]), block_sizes=np.array([2.0, 2.0, 0.0, 0.0]),
)  # fmt: skip
CENTERED_GAUSSIAN = replace(CENTERED, family="gaussian", rate=None)
STANDARDIZED = models.StandardizedModel(
    n_features=D, family="matrix-laplace", variance=(D + 2.0) / 0.25, rate=0.5, scales=np.array([0.2, 0.3, 0.4, 0.4]),
    block_sizes=np.array([0.0, 0.0, 2.0, 2.0]), sum_variances=np.full(D, 3.0), rough_variances=np.array([0.2, 0.1, 0.0, 0.0]),
    clipping=np.array([0.4, 0.1, 0.0, 0.0]), clipping_total=12.0, clipping_along=2.0, count_variance=9.0,
)  # fmt: skip


EVERY: list[NoiseModel] = [
    CENTERED,
    CENTERED_GAUSSIAN,
    *ADDITIVE.values(),
    *MODELS.values(),
    BASIS,
    SCALED,
    STANDARDIZED,
]


def test_noise_about_a_center_of_levels_is_carried_to_zero() -> None:
    rng, matrix = np.random.default_rng(4), CENTERED.map_to_zero
    cells = plain_of(CENTERED).variances
    same_answers(CENTERED.fixed_law, RotatedNoise(matrix, cells), rng)
    few_indices_are_as_good_as_all(CENTERED.fixed_law, rng)
    assert CENTERED.frobenius_error == pytest.approx(math.sqrt(CENTERED.fixed_law.energy))
    row = matrix @ np.array([0.5, 0.3, -0.3, 0.1, -0.2])
    shift = np.outer(row, row)
    loss = shift_loss(CENTERED, shift[1:, 1:], shift[0, 1:], float(shift[0, 0]))
    assert loss is not None
    assert loss.size == pytest.approx(RATE * (0.25**2 + 2 * 0.3**2 + 0.1**2 + 0.2**2))
    outside = shift_loss(CENTERED, np.diag([1.0, 0.0, 0.0, 0.0]), np.zeros(D), 0.0)
    assert outside is not None
    assert math.isinf(outside.size)


@pytest.mark.long
def test_noise_about_a_center_of_levels_has_as_many_values_as_its_coordinates() -> None:
    model, rng = replace(CENTERED, family="gaussian", rate=None), np.random.default_rng(0)
    size, matrix = np.sqrt(plain_of(model).variances), model.map_to_zero
    squares = []
    for _ in range(1000):
        cells = np.tril(rng.standard_normal(size.shape) * size)
        noise = matrix @ (cells + np.tril(cells, -1).T) @ matrix.T
        loss = shift_loss(model, noise[1:, 1:], noise[0, 1:], float(noise[0, 0]))
        assert loss is not None
        squares.append(loss.size**2)
    # chi-squared of three coordinates: 6 + 3 + 1 values, not the 15 of four features; one standard error is .14
    assert loss_dimension(model) == 10
    assert np.mean(squares) == pytest.approx(10.0, abs=0.6)


def test_every_model_of_the_closed_table_is_tested() -> None:
    assert {type(model) for model in EVERY} == set(models._NOISE_MODELS.values())


@pytest.mark.parametrize("model", EVERY, ids=lambda model: model.name)
def test_files_keep_every_bit_and_refuse_forgeries(model: NoiseModel) -> None:
    content = json.loads(json.dumps(model.to_dict()))
    read = NoiseModel.from_dict(content)
    assert read.to_dict() == model.to_dict()
    first, second = read.law(RELEASED), model.law(RELEASED)
    assert first is not None
    assert second is not None
    np.testing.assert_array_equal(first.cell_variances(), second.cell_variances())
    for entry in content:
        with pytest.raises((ValueError, TypeError)):
            NoiseModel.from_dict({key: value for key, value in content.items() if key != entry})
        for forged in ("many", -1.0, math.nan, [[]], {}, 10**400):
            if forged == -1.0 and entry in ("augmentation",):
                continue
            with pytest.raises((ValueError, TypeError)):
                NoiseModel.from_dict(content | {entry: forged})
    with refused("has unknown entries"):
        NoiseModel.from_dict(content | {"color": 1.0})
    with refused(": use '", parameter="name"):
        NoiseModel.from_dict(content | {"name": "cauchy"})


@pytest.mark.parametrize(
    ("model", "forged"),
    [
        (ADDITIVE["matrix-laplace"], {"off_diagonal_variance": 1.0}),
        (ADDITIVE["matrix-laplace"], {"rate": 0.0}),
        (ADDITIVE["wishart"], {"rate": 1e200}),
        (ADDITIVE["gaussian"], {"rate": 1.0}),
        (ADDITIVE["gaussian"], {"family": "laplace"}),
        (BASIS, {"cells": [1.0] * 15 + [-1.0]}),
        (SCALED, {"scale_matrix": [1.0] * 16}),
        (CENTERED, {"block_sizes": [2.0, 2.0, 2.0, 0.0]}),
        (CENTERED, {"block_sizes": [0.0, 0.0, 0.0, 2.0]}),
        (CENTERED, {"block_sizes": [1.5, 0.0, 0.0, 0.0]}),
        (CENTERED, {"center": [2.0, 0.0, 0.0, 0.0]}),
        (CENTERED, {"sum_variance": None}),
        (CENTERED, {"name": "centered-levels-wishart"}),
        (CENTERED_GAUSSIAN, {"off_diagonal_variance": 1.0}),  # unequal noise does not survive the projection
        (MODELS["wishart"], {"degrees": 3.0}),
        (MODELS["inverse normal"], {"smallest_eigenvalue": 0.0}),
        (MODELS["last step"], {"sum_scale": 0.0}),
    ],
)
def test_numbers_that_are_those_of_no_run_are_refused(model: Any, forged: dict[str, Any]) -> None:
    with refused(("must be", "has unknown entries", ": use '", "finite numbers")):
        NoiseModel.from_dict(model.to_dict() | forged)


def test_a_wishart_matrix_has_as_many_degrees_as_rows() -> None:
    for least, inverse in ((float(D), False), (D + 2.0, True)):
        model = WishartModel(**OWN_COUNT | dict(degrees=least, inverse=inverse))
        with refused("must be", parameter="degrees"):
            replace(model, degrees=least - 0.1)


def test_terms_that_do_not_fit_are_refused() -> None:
    cells = np.ones((3, 3))
    for arguments in ((np.ones((3, 2)),), (cells, np.ones((4, 2))), (-cells,), (cells * math.nan,), (np.triu(cells),)):
        with pytest.raises(InputValueError):
            NoiseTerm(GaussianCells(), *arguments)
    with refused("terms of the noise model must be a list of at least one"):
        NoiseLaw(())
    with refused("the terms of noise have sizes"):
        NoiseLaw((NoiseTerm(GaussianCells(), cells), NoiseTerm(GaussianCells(), np.ones((4, 4)))))
    law = NoiseLaw((NoiseTerm(GaussianCells(), cells),))
    with refused("must be", parameter="level"):
        law.quantile(1.0, of="cell")
    with refused("must be", parameter="failure"):
        law.gram_bound(0.0)
    with refused("does not carry this noise: give finite numbers in"):
        law.carried(np.eye(2))


def test_draws_of_the_released_basis_and_of_scaled_wishart_rows() -> None:
    rng = np.random.default_rng(11)
    basis = np.linalg.eigh(GRAM)[1][:, ::-1]
    cells = rng.normal(size=(DRAWS, D, D)) * np.sqrt(CELLS)
    noise = basis @ (np.triu(cells) + np.swapaxes(np.triu(cells, 1), 1, 2)) @ basis.T
    weights = symmetric(rng, 3, D, D)
    found = np.var(np.einsum("nij,pij->pn", noise, weights), axis=1)
    assert off_by(found, BASIS.law(RELEASED).variance(np.arange(1, D + 1), weights)) < 0.04
    root = np.linalg.cholesky(SCALED.scale_matrix) * math.sqrt(SCALED.scale)
    matrix = np.eye(D + 1)
    matrix[0, 0] = math.sqrt(SCALED.scale) / SCALED.augmentation
    matrix[1:, 1:] = root
    noise = matrix @ (wishart(50, rng) - 50.0 * np.eye(D + 1)) @ matrix.T
    weights = symmetric(rng, 3, D + 1, D + 1)
    found = np.var(np.einsum("nij,pij->pn", noise, weights), axis=1)
    assert off_by(found, SCALED.law().variance(None, weights)) < 0.04


def test_a_matrix_of_few_entries_is_multiplied_as_any_other() -> None:
    rng = np.random.default_rng(0)
    rows = np.eye(90) * rng.uniform(1.0, 2.0, 90)
    rows[1:, 0] = rng.normal(size=89)
    matrix = rng.normal(size=(90, 90))
    np.testing.assert_allclose(terms_module._conjugated(rows, matrix), rows @ matrix @ rows.T, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("inverse", [False, True])
def test_intervals_of_wishart_draws_hold_the_moments_of_the_table(inverse: bool) -> None:
    rng = np.random.default_rng(0)
    rows, weight, degrees, padding = rng.uniform(-0.5, 0.5, (400, D)) + 0.2, 0.5, 900.0, 4.0
    augmented = np.hstack([np.full((400, 1), weight), rows])
    scale = augmented.T @ augmented + padding * np.eye(D + 1)
    chosen, failure, held, held_by_half = [2, 0], 0.1, 0, 0
    moments = np.hstack([np.ones((400, 1)), rows[:, chosen]])
    exact = moments.T @ moments
    for _ in range(200):
        normal = rng.multivariate_normal(np.zeros(D + 1), np.eye(D + 1), size=int(degrees))
        root = np.linalg.cholesky(scale)
        if inverse:
            drawn = (degrees - D - 2.0) * root @ np.linalg.inv(normal.T @ normal) @ root.T
        else:
            drawn = root @ (normal.T @ normal) @ root.T / degrees
        released = Moments(
            drawn[1:, 1:] - padding * np.eye(D), drawn[0, 1:] / weight, (drawn[0, 0] - padding) / weight**2
        )
        model = WishartModel(**WISHART | dict(inverse=inverse, corner=float(drawn[0, 0])))
        interval = model.interval(released, chosen, failure)
        assert interval is not None
        assert interval.constant
        if _within(interval, exact, 1.0):
            held += 1
            assert abs((drawn[0, 0] - padding) / weight**2 - 400.0) <= interval.count_error
        held_by_half += _within(interval, exact, 0.3)
    assert held >= 200 * (1.0 - failure) - 12
    assert held_by_half < 200 * (1.0 - failure) - 12  # planted fault: less than a third of the spread


def _within(interval: Any, exact: np.ndarray, share: float) -> bool:
    """Whether center − share·spread ⪯ exact ⪯ center + share·spread."""
    away, reach = exact - interval.center, share * interval.spread
    return bool(np.linalg.eigvalsh(reach - away)[0] >= -1e-9 and np.linalg.eigvalsh(reach + away)[0] >= -1e-9)


def test_bounds_on_a_count_of_its_own_are_quantiles() -> None:
    for failure in (0.3, 0.01):
        laplace = replace(MODELS["last step"], count_is_laplace=True)
        assert laplace.count_bound(failure) == pytest.approx(stats.laplace(scale=2.0).ppf(1.0 - failure / 2.0) + 0.5)
        normal = replace(laplace, count_is_laplace=False).count_bound(failure) - 0.5
        assert (
            stats.norm.ppf(1.0 - failure / 2.0) * 2.0 <= normal <= 2.0 * math.sqrt(2.0 * math.log(2.0 / failure)) + 1e-9
        )
    assert replace(laplace, count_scale=0.0).count_bound(0.1) == 0.0


def test_a_known_row_is_the_same_with_and_without_an_identity_as_matrix() -> None:
    rng = np.random.default_rng(0)
    variances = rng.uniform(1.0, 2.0, (3, 3))
    variances = variances + variances.T
    known = (rng.normal(size=3), rng.normal(size=3))
    bare = NoiseTerm(GaussianCells(), variances, exact=known)
    mapped = NoiseTerm(GaussianCells(), variances, np.eye(3), exact=known)
    indices, weights = np.array([[0, 1], [1, 2]]), rng.normal(size=(2, 2, 2))
    np.testing.assert_allclose(bare.variance(indices, weights), mapped.variance(indices, weights))
    without = NoiseTerm(GaussianCells(), variances)
    assert not np.allclose(bare.variance(indices, weights), without.variance(indices, weights))


def test_a_bound_on_skewed_noise_holds_on_its_longer_side() -> None:
    family = WishartCells(5.0)
    above, below = family.quantile(1.0 - 0.025, diagonal=True), -family.quantile(0.025, diagonal=True)
    assert above > 1.2 * below
    assert terms_module._two_sided(family, 0.05) == above
    assert terms_module._two_sided(GaussianCells(), 0.05) == pytest.approx(stats.norm.ppf(0.975))


# Columns of unknown scale.


@pytest.mark.parametrize("along", [0.8, -0.25])
def test_columns_of_unknown_scale_answer_as_written_out(along: float) -> None:
    """A term about another center, from its matrices H, N = Σ u_j H_j, and the covariance of u; bounds against draws of u."""
    rng = np.random.default_rng(3)
    covariance = np.cov(rng.normal(size=(30, D)).T)
    below = np.vstack([np.zeros(D), np.eye(D)]), np.vstack([np.zeros(D), covariance])
    shifted = np.eye(D + 1)
    shifted[1:, 0] = rng.normal(size=D)
    carry = np.vstack([shifted[0], rng.normal(size=(D, D + 1))])
    variances = rng.uniform(0.5, 2.0, D)
    common = variances / np.linalg.norm(variances)
    term = ScaleTerm(variances, *below, common, along).carried(shifted).carried(carry)
    products = np.einsum("ij,kj->jik", carry @ shifted @ below[0], carry @ shifted @ below[1])
    together, basis = (
        np.diag(variances) + along * np.outer(common, common),
        (products + products.transpose(0, 2, 1)) / 2.0,
    )

    indices = np.array([0, 1, 3])
    weights = rng.normal(size=(5, 3, 3))
    weights += weights.transpose(0, 2, 1)
    of_basis = np.einsum("pik,jik->pj", weights, basis[:, indices[:, None], indices])
    covariance = of_basis @ together @ of_basis.T
    np.testing.assert_allclose(term.covariance(indices, weights), covariance, rtol=1e-12)
    np.testing.assert_allclose(term.variance(np.tile(indices, (5, 1)), weights), np.diag(covariance), rtol=1e-12)
    cells = np.einsum("jik,lik,jl->ik", basis, basis, together)
    np.testing.assert_allclose(term.cell_variances(np.arange(D + 1)), cells, rtol=1e-12)
    np.testing.assert_allclose(term.energy(indices), cells[np.ix_(indices, indices)].sum(), rtol=1e-12)
    trace = np.trace(basis[:, indices[:, None], indices], axis1=1, axis2=2)
    np.testing.assert_allclose(term.trace_variance(indices), trace @ together @ trace, rtol=1e-12)

    first, second = rng.normal(size=(2, D + 1))
    covariance = np.einsum("ji,lk,jl->ik", basis @ first, basis @ first, together)
    np.testing.assert_allclose(term.covariance_of_product(first), covariance, rtol=1e-12)
    np.testing.assert_allclose(
        term.covariance_of_product(first, [2, 0]), covariance[np.ix_([2, 0], [2, 0])], rtol=1e-12
    )
    step = 1e-6
    moved = [
        (term.covariance_of_product(first + d) - term.covariance_of_product(first - d)) @ second / (2.0 * step)
        for d in step * np.eye(D + 1)
    ]
    np.testing.assert_allclose(term.mixed_derivative(second, first), np.array(moved).T, rtol=1e-6, atol=1e-8)
    square = np.einsum("i,jik,k->j", first, basis, first) - np.einsum("i,jii->j", second, basis)
    expected = square @ together @ square
    np.testing.assert_allclose(term.variance_of_squares(first[None], second[None]), [expected], rtol=1e-12)

    scales = np.random.default_rng(6).multivariate_normal(np.zeros(D), together, 2000)
    draws = np.einsum("sj,jik->sik", scales, basis)
    indices = np.arange(1, D + 1)
    norms = np.linalg.norm(draws[:, 1:, 1:], 2, axis=(1, 2))
    lengths = np.linalg.norm(draws[:, 0, 1:], axis=1)
    assert (norms > term.gram_bound(0.05, indices)).mean() <= 0.05
    assert (lengths > term.sum_bound(0.05, indices)).mean() <= 0.05


def test_a_file_of_before_knows_what_clipping_hides_column_by_column() -> None:
    content = STANDARDIZED.to_dict()
    del content["clipping_total"], content["clipping_along"]
    law, columns = NoiseModel.from_dict(content).law(RELEASED), STANDARDIZED.clipping > 0.0
    together = replace(
        STANDARDIZED,
        clipping_total=float(np.linalg.norm((STANDARDIZED.clipping / STANDARDIZED.scales**2)[columns])),
        clipping_along=0.0,
    )
    expected = together.law(RELEASED)
    assert law is not None
    assert expected is not None
    np.testing.assert_allclose(law.cell_variances(), expected.cell_variances(), rtol=1e-12)


def test_nothing_outside_asks_for_the_class_of_a_model() -> None:
    """What a model can do is a property or a method of it: a new one is pooled and forecast as the others are.

    The closed forms of a privacy loss are those of the audit, which measures the noise of any other model.
    """
    names = {each.__name__ for each in models._NOISE_MODELS.values()} | {"PooledModel", "NoiseModel"}
    root = Path(models.__file__).parents[1]
    asked = []
    for path in set(root.rglob("*.py")) - {root / "audit" / "exact.py"}:
        text = path.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(text)) if any(name in text for name in names) else ():
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("isinstance", "issubclass", "type"):
                used = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
                asked += [f"{path.name}:{node.lineno}" for name in used & names if path.parent.name != "moments"]
    assert not asked
