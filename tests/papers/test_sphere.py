"""Draws on the sphere: Bingham laws, frames drawn with deflation, and the deflation itself."""

import math

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, special, stats

from dpmoments.papers.sphere import (
    _deflate,
    _solve_secular_equation,
    envelope_parameter,
    sample_bingham,
    sample_bingham_diagonal,
    sample_orthonormal_frame,
)
from references.exact_bingham import mean_proposals, second_moments

pytestmark = pytest.mark.long(sets=None)

# The Bingham sampler against exact laws.

P_VALUE = 1e-4
Z_SCORE = 4.5


def fast(eigenvalues, size, rng):
    return sample_bingham_diagonal(eigenvalues, size, rng)[0]


def misprinted(eigenvalues, size, rng):
    """As printed in Amin et al. (2019), Algorithm 2: power −d/2, so e^{−s}(1 + 2s/b)^{−d} is drawn."""
    values = np.asarray(eigenvalues, dtype=float)
    gaps, d = values.max() - values, len(values)
    b = envelope_parameter(gaps)
    kept, missing = [], size
    while missing > 0:
        z = rng.standard_normal((10_000, d)) / np.sqrt(1.0 + 2.0 * gaps / b)
        u = z / np.linalg.norm(z, axis=1, keepdims=True)
        s = u**2 @ gaps
        kept.append(u[rng.random(len(u)) < np.exp(-s) * (1.0 + 2.0 * s / b) ** (-d / 2)][:missing])
        missing -= len(kept[-1])
    return np.concatenate(kept)


def slow(eigenvalues, size, rng):
    """The obvious exact sampler: uniform directions kept with probability e^{−s}."""
    values = np.asarray(eigenvalues, dtype=float)
    gaps, d = values.max() - values, len(values)
    kept, missing = [], size
    while missing > 0:
        z = rng.standard_normal((10_000, d))
        u = z / np.linalg.norm(z, axis=1, keepdims=True)
        kept.append(u[rng.random(len(u)) < np.exp(-(u**2) @ gaps)][:missing])
        missing -= len(kept[-1])
    return np.concatenate(kept)


def coordinate_law(eigenvalues):
    """The distribution function of u_0 in two or three dimensions, by numerical integration."""
    if len(eigenvalues) == 2:
        gap = eigenvalues[0] - eigenvalues[1]
        grid = np.linspace(0.0, math.pi, 20_001)  # u_0 = cos(angle), and the other half circle mirrors it
        density = np.exp(gap * np.cos(grid) ** 2 - max(gap, 0.0))
        mass = integrate.cumulative_simpson(density, x=grid, initial=0.0)
        return lambda u: 1.0 - np.interp(np.arccos(u), grid, mass / mass[-1])
    first, second, third = eigenvalues
    angle = np.linspace(math.pi, 0.0, 20_001)  # u_0 = cos(angle), area element sin(angle)
    grid, rest = np.cos(angle), np.sin(angle) ** 2  # the other two lie on a circle of squared radius `rest`
    log_density = first * grid**2 + rest * max(second, third)
    density = np.exp(log_density - log_density.max()) * special.ive(0, rest * abs(second - third) / 2)
    mass = integrate.cumulative_simpson(density * np.sin(angle), x=-angle, initial=0.0)
    return lambda u: np.interp(np.arccos(u), angle[::-1], mass[::-1] / mass[-1])


def check_coordinate_law(sampler, eigenvalues, size=20_000):
    draws = sampler(np.array(eigenvalues), size, np.random.default_rng(20))
    for axis in range(len(eigenvalues)):
        others = [value for index, value in enumerate(eigenvalues) if index != axis]
        law = coordinate_law([eigenvalues[axis], *others])
        p_value = stats.kstest(draws[:, axis], law).pvalue
        assert p_value > P_VALUE, f"axis {axis}: p = {p_value:.2g}"


def check_second_moments(sampler, eigenvalues, size):
    draws = sampler(np.asarray(eigenvalues, dtype=float), size, np.random.default_rng(21))
    squares = draws**2
    error = (squares.mean(axis=0) - second_moments(eigenvalues)) / (squares.std(axis=0) / math.sqrt(size))
    assert np.abs(error).max() < Z_SCORE, f"z-scores {error}"
    products = np.stack([draws[:, i] * draws[:, j] for i in range(len(eigenvalues)) for j in range(i)], axis=1)
    error = products.mean(axis=0) / (products.std(axis=0) / math.sqrt(size))
    assert np.abs(error).max() < Z_SCORE, "coordinates of a draw are correlated"


CONCENTRATED = [[6.0, 0.0], [-2.0, 5.0], [6.0, 2.0, 0.0], [0.0, 0.0, -8.0], [9.0, -1.0, -1.0]]


class TestCoordinateLaw:
    @pytest.mark.parametrize("eigenvalues", [*CONCENTRATED, [0.0, 0.0], [1.0, 1.0, 1.0], [0.0, 1e4], [3e3, 0.0, -3e3]])
    def test_exact(self, eigenvalues):
        check_coordinate_law(fast, eigenvalues)

    @pytest.mark.parametrize("eigenvalues", CONCENTRATED)
    def test_the_misprinted_formula_is_rejected(self, eigenvalues):
        with pytest.raises(AssertionError, match="p ="):
            check_coordinate_law(misprinted, eigenvalues, size=5_000)


@pytest.mark.long
class TestSecondMoments:
    SPECTRUM = np.array([40.0, 20.0, 10.0, 5.0, 0.0]) / 4.0

    @pytest.mark.parametrize(
        "eigenvalues",
        [
            SPECTRUM,
            -SPECTRUM[::-1],
            np.r_[30.0, np.zeros(49)],
            np.linspace(-20.0, 60.0, 25),
            np.r_[7.0, 7.0, 1e12, 1e12 - 2.0],
        ],
        ids=["amin", "indefinite", "half-mass", "linear", "huge-gap"],
    )
    def test_exact(self, eigenvalues):
        check_second_moments(fast, eigenvalues, 40_000)

    @pytest.mark.parametrize(
        "eigenvalues", [SPECTRUM, -SPECTRUM[::-1], np.array([1.0, 0.5, 0.0, 0.0])], ids=["amin", "indefinite", "weak"]
    )
    def test_the_misprinted_formula_is_rejected(self, eigenvalues):
        with pytest.raises(AssertionError, match="z-scores"):
            check_second_moments(misprinted, eigenvalues, 4_000)


def hard_spectra(d):
    """One to many leading directions, linear, geometric, heavy-tailed, near condensation, gaps to 1e12."""
    yield np.zeros(d)
    for share in (0.2, 0.4, 0.5, 0.55, 0.6, 0.8, 1.0, 2.0):
        yield np.r_[share * d, np.zeros(d - 1)]
    for scale in (1.0, 1e2, 1e4, 1e12):
        yield np.linspace(0.0, scale, d)
        yield scale * 0.8 ** np.arange(d)
        yield scale * 0.98 ** np.arange(d)
        for count in (1, 2, d // 2, d - 1):
            yield np.r_[np.full(count, scale), np.zeros(d - count)]
        yield np.r_[scale, np.linspace(0.0, 1.0, d - 1)]
        yield scale * np.abs(np.random.default_rng(d).standard_cauchy(d))


class TestProposals:
    @pytest.mark.long(sets=2)
    @pytest.mark.parametrize("d", [2, 3, 5, 10, 50, 200])
    def test_mean_is_small_for_every_spectrum(self, d):
        """Exact means: 1.17 √d at worst, reached as one direction is left far above all others."""
        worst = max(mean_proposals(spectrum) for spectrum in hard_spectra(d))
        assert worst <= min(2.0 * math.sqrt(d) + 4.0, math.sqrt(math.e * d / 2.0))

    @staticmethod
    def check_mean(eigenvalues, size):
        n_proposals = sample_bingham_diagonal(eigenvalues, size, np.random.default_rng(25))[1]
        exact = mean_proposals(eigenvalues)
        deviation = math.sqrt(exact * (exact - 1.0) / size)  # proposals a draw are geometric
        assert abs(n_proposals / size - exact) < Z_SCORE * deviation

    SPECTRA = (np.r_[2.0, 0.0], np.linspace(0.0, 1e4, 100), np.r_[30.0, np.zeros(49)], np.r_[1e12, np.zeros(199)])

    @pytest.mark.parametrize("eigenvalues", SPECTRA, ids=["2", "linear-100", "half-mass-50", "huge-200"])
    def test_measured_mean_is_the_exact_one(self, eigenvalues):
        self.check_mean(eigenvalues, 4_000)

    @pytest.mark.parametrize("d", [1, 2, 7, 100, 1000])
    def test_envelope_parameter_is_the_root(self, d):
        for spectrum in hard_spectra(d) if d > 1 else [np.zeros(1)]:
            gaps = spectrum.max() - spectrum
            assert_allclose((1.0 / (envelope_parameter(gaps) + 2.0 * gaps)).sum(), 1.0, rtol=1e-12)


class TestEdges:
    @pytest.mark.parametrize("gap", [1e12, 1e300, 1.7e308])
    def test_huge_gaps(self, gap):
        draws = sample_bingham_diagonal([-gap, 0.0, gap], 50, np.random.default_rng(0))[0]
        assert_allclose(np.abs(draws), np.tile([0.0, 0.0, 1.0], (50, 1)), atol=1e-5)

    def test_a_repeated_leading_eigenvalue_is_uniform_in_its_plane(self):
        draws = sample_bingham_diagonal([1e14, 0.0, 1e14], 10_000, np.random.default_rng(1))[0]
        angle = np.arctan2(draws[:, 0], draws[:, 2])
        assert stats.kstest(angle, stats.uniform(-math.pi, 2 * math.pi).cdf).pvalue > P_VALUE

    def test_a_multiple_of_the_identity_changes_nothing(self):
        matrix = np.diag([3.0, 1.0, 0.0])
        plain = sample_bingham(matrix, 100, np.random.default_rng(2))
        assert_allclose(sample_bingham(matrix - 8.0 * np.eye(3), 100, np.random.default_rng(2)), plain, atol=1e-12)


# Frames drawn with deflation against the plain per-step algorithm and against exact conditional laws.

MATRIX = np.diag([4.0, 2.0, 1.0, 0.0, -1.5])
TEMPERATURES = np.array([0.3, 0.9, 1.5, 2.5, 7.0])


def many(sampler, matrix, temperatures, n_frames, seed, **options):
    rng = np.random.default_rng(seed)
    frames = [sampler(matrix, temperatures, rng, **options) for _ in range(n_frames)]
    return np.stack([frame[0] if isinstance(frame, tuple) else frame for frame in frames])


def conditional_uniforms(frames, matrix, temperatures, remaining):
    """Where the first vector drawn in a space of 2 or 3 dimensions falls in its exact law, given those before it.

    Two columns, for its coordinates along the leading and the last eigenvector of the restriction: each uniform on
    (0, 1) if, and only if, every draw used the right restriction and the right temperature.
    """
    step = matrix.shape[0] - remaining
    before = frames[:, :, :step]
    complement = np.linalg.svd(before @ np.swapaxes(before, 1, 2)).U[:, :, step:]
    restricted = np.swapaxes(complement, 1, 2) @ matrix @ complement
    values, vectors = np.linalg.eigh(restricted)
    values = temperatures[step] * values
    coordinates = np.einsum("nij,nik,nk->nj", vectors, complement.swapaxes(1, 2), frames[:, :, step])
    angle = np.linspace(0.0, math.pi / 2, 801)  # |coordinate| = cos(angle)
    columns = []
    for axis in (-1, 0):
        others = np.delete(values, axis % remaining, axis=1)
        least, most = others.min(axis=1, keepdims=True), others.max(axis=1, keepdims=True)
        squares, rest = np.cos(angle) ** 2, np.sin(angle) ** 2
        density = np.exp(values[:, axis, None] * squares + most * rest)
        if remaining == 3:  # the two others lie on a circle of squared radius `rest`
            density *= special.ive(0, rest * (most - least) / 2) * np.sin(angle)
        mass = integrate.cumulative_simpson(density, x=angle, axis=1, initial=0.0)
        at = np.arccos(np.minimum(np.abs(coordinates[:, axis]), 1.0))
        columns.append([np.interp(a, angle, m / m[-1]) for a, m in zip(at, mass, strict=True)])
    return np.array(columns).T


def check_conditional_laws(frames, temperatures=TEMPERATURES):
    for remaining in (3, 2):
        for column in conditional_uniforms(frames, MATRIX, temperatures, remaining).T:
            p_value = stats.kstest(column, "uniform").pvalue
            assert p_value > P_VALUE, f"{remaining} dimensions left: p = {p_value:.2g}"


@pytest.mark.long
class TestLaw:
    @pytest.mark.slow
    @pytest.mark.parametrize("block_size", [None, 2])
    def test_conditional_laws(self, block_size):
        frames = many(sample_orthonormal_frame, MATRIX, TEMPERATURES, 700, 1, block_size=block_size)
        check_conditional_laws(frames)

    def test_strong_temperatures_give_the_eigenvectors(self):
        rng = np.random.default_rng(7)
        basis = np.linalg.qr(rng.standard_normal((40, 40))).Q
        matrix = (basis * np.arange(40.0, 0.0, -1.0)) @ basis.T
        vectors = sample_orthonormal_frame((matrix + matrix.T) / 2.0, np.full(40, 1e14), rng)[0]
        assert_allclose(np.abs(basis.T @ vectors), np.eye(40), atol=1e-5)


def hard_matrices(d):
    rng = np.random.default_rng(d)
    basis = np.linalg.qr(rng.standard_normal((d, d))).Q
    factor = rng.standard_normal((d, 3))
    spectra = {
        "repeats": rng.integers(0, 3, d).astype(float),
        "geometric": 0.7 ** np.arange(d),
        "huge-gap": np.r_[1e12, rng.random(d - 1)],
        "graded": 10.0 ** np.linspace(12, -12, d),
        "indefinite": rng.standard_normal(d),
    }
    yield "zero", np.zeros((d, d))
    yield "identity", np.eye(d)
    yield "diagonal-repeats", np.diag(spectra["repeats"])
    yield "low-rank", factor @ factor.T
    for name, spectrum in spectra.items():
        matrix = (basis * spectrum) @ basis.T
        yield name, (matrix + matrix.T) / 2.0


class TestRobustness:
    @pytest.mark.parametrize("d", [1, 2, 5, 60])
    @pytest.mark.parametrize("temperature", [0.0, 1.0, 1e-12, 1e12, -3.0])
    def test_orthonormal_for_every_spectrum(self, d, temperature):
        for name, matrix in hard_matrices(max(d, 3)):
            part = matrix[:d, :d]
            rng = np.random.default_rng(8)
            vectors, n_proposals = sample_orthonormal_frame(part, np.full(d, temperature), rng, block_size=17)
            assert_allclose(vectors.T @ vectors, np.eye(d), atol=1e-12, err_msg=name)
            assert (n_proposals >= 1).all()

    @pytest.mark.slow
    def test_a_thousand_dimensions(self):
        rng = np.random.default_rng(11)
        root = rng.standard_normal((1000, 1500))
        vectors, n_proposals = sample_orthonormal_frame(root @ root.T, np.full(1000, 0.1), rng)
        assert_allclose(vectors.T @ vectors, np.eye(1000), atol=1e-12)
        assert n_proposals.mean() <= 2.0 * math.sqrt(1000) + 4.0


# Deflation by the secular equation against dense eigendecompositions and multiple precision, on hard spectra.


def restricted_eigenvalues(eigenvalues, direction, rng):
    """The obvious way: an orthonormal basis of the complement, then a dense eigendecomposition."""
    k = len(eigenvalues)
    basis = np.linalg.qr(np.column_stack([direction, rng.standard_normal((k, k - 1))])).Q[:, 1:]
    return np.linalg.eigvalsh((basis.T * eigenvalues) @ basis)[::-1]


def hard_cases(k):
    rng = np.random.default_rng(k)
    normal = rng.standard_normal(k)
    yield "spread", rng.standard_normal(k), normal
    yield "geometric", 0.9 ** np.arange(k), normal
    yield "tiny-coordinates", rng.standard_normal(k), normal * 10.0 ** -rng.uniform(0, 30, k)
    yield "zero-coordinates", rng.standard_normal(k), np.where(rng.random(k) < 0.5, 0.0, normal) + np.eye(k)[0]
    yield "repeats", rng.integers(0, 3, k).astype(float), normal
    yield "repeats-and-zero-coordinates", rng.integers(0, 3, k).astype(float), np.eye(k)[k // 2]
    yield "all-equal", np.full(k, -4.0), normal
    yield "rank-one", np.r_[1.0, 1e-17 * rng.standard_normal(k - 1)], normal
    yield "huge-gap", np.r_[1e12, rng.standard_normal(k - 1)], normal
    yield "huger-gap", np.r_[1e300, 1e200 * rng.standard_normal(k - 1)], normal
    yield "tiny", 1e-290 * rng.standard_normal(k), normal
    yield "units-in-the-last-place", 1.0 + np.arange(k) * 2.3e-16, normal
    yield "nearly-an-axis", rng.standard_normal(k), np.r_[1.0, 1e-8 * normal[1:]]


CASES = [
    pytest.param(np.sort(case[1])[::-1].copy(), case[2] / np.linalg.norm(case[2]), id=f"{case[0]}-{k}")
    for k in (2, 3, 10, 150)
    for case in hard_cases(k)
]


@pytest.mark.parametrize(("eigenvalues", "direction"), CASES)
def test_deflation_is_the_restriction_to_the_complement_of_a_direction(eigenvalues, direction):
    deflation, scale, k = _deflate(eigenvalues, direction), np.abs(eigenvalues).max(), len(direction)
    found = deflation.eigenvalues
    reference = restricted_eigenvalues(eigenvalues / scale, direction, np.random.default_rng(1))
    assert_allclose(found / scale, reference, atol=2e-14)
    assert (found <= eigenvalues[:-1]).all(), "eigenvalues must interlace"
    assert (found >= eigenvalues[1:]).all(), "eigenvalues must interlace"

    lifted = deflation.lift(np.eye(k - 1))
    basis = np.column_stack([deflation.direction, lifted])
    assert_allclose(deflation.direction, direction, atol=5e-15)
    assert_allclose(basis.T @ basis, np.eye(k), atol=1e-14)
    assert_allclose((lifted.T * (eigenvalues / scale)) @ lifted, np.diag(found / scale), atol=1e-14)
    coordinates = np.random.default_rng(2).standard_normal((k - 1, 3))
    assert_allclose(deflation.lift(coordinates), lifted @ coordinates, atol=1e-12)


@pytest.mark.parametrize("seed", range(5))
def test_offsets_have_full_relative_accuracy(seed):
    """Roots that all but touch a pole, against 60 digits: their distance from it is right, not only their place."""
    rng = np.random.default_rng(seed)
    k = 12
    poles = np.sort(rng.random(k))[::-1].copy()
    squared_weights = 10.0 ** -rng.uniform(0, 35, k)
    squared_weights /= squared_weights.sum()
    roots, recomputed = _solve_secular_equation(poles, squared_weights)
    with mpmath.workdps(60):
        p, w = [mpmath.mpf(x) for x in poles], [mpmath.mpf(x) for x in squared_weights]
        for j in range(k - 1):
            origin, offset = p[roots.origins[j]], mpmath.mpf(roots.offsets[j])

            def secular(x, origin=origin):
                return mpmath.fsum(b / ((a - origin) - x) for a, b in zip(p, w, strict=True))

            exact = mpmath.findroot(
                secular,
                (offset * (1 - mpmath.mpf(10) ** -9), offset * (1 + mpmath.mpf(10) ** -9)),
                solver="anderson",
                tol=1e-80,
                verify=False,
            )
            assert abs(offset / exact - 1) < 1e-13
    assert_allclose(recomputed / recomputed.sum(), squared_weights, rtol=1e-12)
