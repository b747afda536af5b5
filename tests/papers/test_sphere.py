"""The Bingham sampler against exact laws.

The planted fault is the misprinted acceptance formula: it must fail every test that can tell it apart.
"""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, special, stats

from dpmoments.base.errors import InputValueError
from dpmoments.papers.sphere import envelope_parameter, sample_bingham, sample_bingham_diagonal
from references.exact_bingham import mean_proposals, second_moments
from support.said import refused

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


class TestSecondMoments:
    SPECTRUM = np.array([40.0, 20.0, 10.0, 5.0, 0.0]) / 4.0

    def test_known_value(self):
        assert_allclose(second_moments(self.SPECTRUM)[0], 0.68763, atol=1e-5)

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
        "eigenvalues",
        [SPECTRUM, -SPECTRUM[::-1], np.array([1.0, 0.5, 0.0, 0.0])],
        ids=["amin", "indefinite", "weak"],
    )
    def test_the_misprinted_formula_is_rejected(self, eigenvalues):
        with pytest.raises(AssertionError, match="z-scores"):
            check_second_moments(misprinted, eigenvalues, 4_000)

    def test_misprinted_value(self):
        """The planted fault is the published one: it moves E[u_0²] from 0.688 to 0.944."""
        draws = misprinted(self.SPECTRUM, 4_000, np.random.default_rng(0))
        assert_allclose((draws[:, 0] ** 2).mean(), 0.944, atol=0.005)

    def test_not_diagonal(self):
        rng = np.random.default_rng(22)
        basis = np.linalg.qr(rng.standard_normal((5, 5)))[0]
        matrix = (basis * self.SPECTRUM) @ basis.T
        draws = sample_bingham((matrix + matrix.T) / 2.0, 40_000, rng)
        in_eigenbasis = draws @ basis
        check_second_moments(lambda *_: in_eigenbasis, self.SPECTRUM, 40_000)
        with pytest.raises(AssertionError, match="z-scores"):  # planted: the basis applied from the wrong side
            check_second_moments(lambda *_: draws @ basis.T, self.SPECTRUM, 40_000)


class TestUniform:
    """The misprint changes nothing at the zero matrix; the planted fault here is a cube's directions."""

    @staticmethod
    def check(sampler, d):
        draws = sampler(np.zeros(d), 20_000, np.random.default_rng(23))
        assert_allclose(np.linalg.norm(draws, axis=1), 1.0, rtol=1e-14)
        skew = np.random.default_rng(24).standard_normal(d)
        for direction in (np.eye(d)[0], skew / np.linalg.norm(skew), np.ones(d) / math.sqrt(d)):
            p_value = stats.kstest(0.5 + 0.5 * draws @ direction, stats.beta((d - 1) / 2, (d - 1) / 2).cdf).pvalue
            assert p_value > P_VALUE, f"p = {p_value:.2g}"

    @pytest.mark.parametrize("d", [2, 3, 10])
    def test_zero_matrix(self, d):
        self.check(fast, d)

    def test_every_proposal_is_accepted(self):
        assert sample_bingham_diagonal(np.full(40, 3.0), 500, np.random.default_rng(0))[1] == 500

    def test_almost_uniform(self):
        """A weak matrix: where the misprinted formula does differ, its fault is seen here too."""
        check_second_moments(fast, np.linspace(0.0, 0.8, 6), 40_000)
        with pytest.raises(AssertionError, match="z-scores"):
            check_second_moments(misprinted, np.linspace(0.0, 0.8, 6), 40_000)


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
    @pytest.mark.parametrize("d", [2, 3, 5, 10, 50, 200])
    def test_mean_is_small_for_every_spectrum(self, d):
        """Exact means: 1.17 √d at worst, reached as one direction is left far above all others."""
        worst = max(mean_proposals(spectrum) for spectrum in hard_spectra(d))
        assert worst <= min(2.0 * math.sqrt(d) + 4.0, math.sqrt(math.e * d / 2.0))

    @pytest.mark.slow
    def test_mean_is_small_at_500(self):
        worst = max(mean_proposals(spectrum) for spectrum in hard_spectra(500))
        assert worst <= math.sqrt(math.e * 500 / 2.0)

    @staticmethod
    def check_mean(eigenvalues, size):
        n_proposals = sample_bingham_diagonal(eigenvalues, size, np.random.default_rng(25))[1]
        exact = mean_proposals(eigenvalues)
        deviation = math.sqrt(exact * (exact - 1.0) / size)  # proposals a draw are geometric
        assert abs(n_proposals / size - exact) < Z_SCORE * deviation

    SPECTRA = (
        np.r_[2.0, 0.0],
        np.linspace(0.0, 1e4, 100),
        np.r_[30.0, np.zeros(49)],
        np.r_[1e12, np.zeros(199)],
    )

    @pytest.mark.parametrize("eigenvalues", SPECTRA, ids=["2", "linear-100", "half-mass-50", "huge-200"])
    def test_measured_mean_is_the_exact_one(self, eigenvalues):
        self.check_mean(eigenvalues, 4_000)

    @pytest.mark.parametrize("d", [1, 2, 7, 100, 1000])
    def test_envelope_parameter_is_the_root(self, d):
        for spectrum in hard_spectra(d) if d > 1 else [np.zeros(1)]:
            gaps = spectrum.max() - spectrum
            assert_allclose((1.0 / (envelope_parameter(gaps) + 2.0 * gaps)).sum(), 1.0, rtol=1e-12)


class TestEdges:
    def test_one_dimension_is_a_fair_sign(self):
        draws = sample_bingham([[5.0]], 10_000, np.random.default_rng(0))
        assert set(np.unique(draws)) == {-1.0, 1.0}
        assert stats.binomtest(int((draws > 0).sum()), 10_000).pvalue > P_VALUE

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

    def test_sizes(self):
        rng = np.random.default_rng(3)
        assert sample_bingham(np.eye(4), None, rng).shape == (4,)
        assert sample_bingham(np.eye(4), 1, rng).shape == (1, 4)
        assert sample_bingham(np.eye(4), 0, rng).shape == (0, 4)
        assert sample_bingham_diagonal(np.zeros(4), 0, rng)[1] == 0

    def test_a_thousand_dimensions(self):
        rng = np.random.default_rng(4)
        root = rng.standard_normal((1000, 1000))
        draws = sample_bingham(root + root.T, 5, rng)
        assert_allclose(np.linalg.norm(draws, axis=1), 1.0, rtol=1e-12)

    def test_the_input_is_not_changed(self):
        matrix = np.diag([1.0, 2.0])
        matrix.flags.writeable = False
        sample_bingham(matrix, 3, np.random.default_rng(5))

    @pytest.mark.parametrize(
        ("matrix", "code"),
        [
            (np.zeros((2, 3)), "has shape"),
            (np.zeros(3), "has shape"),
            (np.zeros((0, 0)), "has shape"),
            ([[0.0, 1.0], [0.0, 0.0]], "is not symmetric: pass (M + Mᵀ)/2 if the difference is"),
            ([[math.nan, 0.0], [0.0, 0.0]], "holds NaN or infinity: use finite numbers"),
            ([[math.inf, 0.0], [0.0, 0.0]], "holds NaN or infinity: use finite numbers"),
        ],
    )
    def test_bad_matrices(self, matrix, code):
        with refused(code):
            sample_bingham(matrix, 1, np.random.default_rng(0))

    @pytest.mark.parametrize("eigenvalues", [[], [[1.0]], [math.nan, 0.0], [math.inf, 0.0]])
    def test_bad_eigenvalues(self, eigenvalues):
        with pytest.raises(InputValueError):
            sample_bingham_diagonal(eigenvalues, 1, np.random.default_rng(0))

    def test_bad_size(self):
        with refused("must be a whole number", parameter="size"):
            sample_bingham(np.eye(2), -1, np.random.default_rng(0))
        with pytest.raises(TypeError):
            sample_bingham(np.eye(2), 2.5, np.random.default_rng(0))
