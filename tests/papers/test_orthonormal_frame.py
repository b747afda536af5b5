"""Frames drawn with deflation against the plain per-step algorithm and against exact conditional laws."""

import math

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import integrate, special, stats

from dpmoments.papers.sphere import sample_bingham, sample_orthonormal_frame
from support.said import refused

P_VALUE = 1e-4
Z_SCORE = 4.5
MATRIX = np.diag([4.0, 2.0, 1.0, 0.0, -1.5])
TEMPERATURES = np.array([0.3, 0.9, 1.5, 2.5, 7.0])


def plain_frame(matrix, temperatures, rng):
    """Amin et al. (2019), Algorithm 1 as written: restrict, draw, map back, project; a dense decomposition a step."""
    d = len(matrix)
    complement, vectors = np.eye(d), np.empty((d, 0))
    for temperature in temperatures:
        direction = sample_bingham(temperature * (complement.T @ matrix @ complement), None, rng)
        vectors = np.column_stack([vectors, complement @ direction])
        complement = np.linalg.qr(vectors, mode="complete").Q[:, vectors.shape[1] :]
    return vectors


def many(sampler, matrix, temperatures, n_frames, seed, **options):
    rng = np.random.default_rng(seed)
    frames = [sampler(matrix, temperatures, rng, **options) for _ in range(n_frames)]
    return np.stack([getattr(frame, "vectors", frame) for frame in frames])


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


def check_same_law(first, second):
    """Means of all squared coordinates, and all coordinates along one skew direction."""
    squares = [(frames**2).reshape(len(frames), -1) for frames in (first, second)]
    error = (squares[0].mean(axis=0) - squares[1].mean(axis=0)) / np.sqrt(
        squares[0].var(axis=0) / len(first) + squares[1].var(axis=0) / len(second)
    )
    assert np.abs(error).max() < Z_SCORE, f"z-scores {np.abs(error).max():.2g}"
    skew = np.array([3.0, -1.0, 4.0, 1.0, -5.0])[: first.shape[1]]
    for step in range(first.shape[2]):
        p_value = stats.ks_2samp(first[:, :, step] @ skew, second[:, :, step] @ skew).pvalue
        assert p_value > P_VALUE, f"vector {step}: p = {p_value:.2g}"


class TestLaw:
    @pytest.mark.parametrize("block_size", [None, 2])
    def test_conditional_laws(self, block_size):
        frames = many(sample_orthonormal_frame, MATRIX, TEMPERATURES, 700, 1, block_size=block_size)
        check_conditional_laws(frames)

    @pytest.mark.parametrize("block_size", [None, 1])
    def test_same_law_as_the_plain_algorithm(self, block_size):
        matrix = np.array([[2.0, 1.0, 0.0, 0.5], [1.0, 0.0, -1.0, 0.0], [0.0, -1.0, 3.0, 0.2], [0.5, 0.0, 0.2, 0.0]])
        temperatures = np.array([0.4, 1.0, 3.0, 1.0])
        plain = many(plain_frame, matrix, temperatures, 900, 3)
        check_same_law(many(sample_orthonormal_frame, matrix, temperatures, 700, 4, block_size=block_size), plain)

    def test_the_last_vector_is_a_fair_sign_of_the_only_one_left(self):
        frames = many(sample_orthonormal_frame, np.diag([3.0, 1.0, 0.0]), np.array([1.0, 1.0, 50.0]), 600, 5)
        crossed = np.cross(frames[:, :, 0], frames[:, :, 1])
        signs = np.einsum("ni,ni->n", crossed, frames[:, :, 2])
        assert_allclose(np.abs(signs), 1.0, rtol=1e-13)
        assert stats.binomtest(int((signs > 0).sum()), 600).pvalue > P_VALUE

    @pytest.mark.slow
    def test_zero_temperature_is_the_haar_measure(self):
        frames = many(sample_orthonormal_frame, np.diag([5.0, 1.0, 0.0, -9.0]), np.zeros(4), 1500, 6)
        for step in range(4):
            uniform = 0.5 + 0.5 * frames[:, :, step] @ np.array([0.5, -0.5, 0.5, 0.5])
            assert stats.kstest(uniform, stats.beta(1.5, 1.5).cdf).pvalue > P_VALUE

    def test_strong_temperatures_give_the_eigenvectors(self):
        rng = np.random.default_rng(7)
        basis = np.linalg.qr(rng.standard_normal((40, 40))).Q
        matrix = (basis * np.arange(40.0, 0.0, -1.0)) @ basis.T
        vectors = sample_orthonormal_frame((matrix + matrix.T) / 2.0, np.full(40, 1e14), rng).vectors
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
            frame = sample_orthonormal_frame(part, np.full(d, temperature), np.random.default_rng(8), block_size=17)
            assert_allclose(frame.vectors.T @ frame.vectors, np.eye(d), atol=1e-12, err_msg=name)
            assert (frame.n_proposals >= 1).all()

    def test_mixed_temperatures(self):
        rng = np.random.default_rng(9)
        matrix = np.diag(np.r_[1e12, rng.random(99)])
        frame = sample_orthonormal_frame(matrix, 10.0 ** rng.uniform(-12, 12, 100), rng)
        assert_allclose(frame.vectors.T @ frame.vectors, np.eye(100), atol=1e-12)

    def test_subspaces_of_a_block_do_not_leak(self):
        """A two-block spectrum: strong draws exhaust the leading eigenspace before touching the other."""
        matrix = np.diag(np.r_[np.ones(30), np.zeros(30)])
        frame = sample_orthonormal_frame(matrix, np.full(60, 1e9), np.random.default_rng(10), block_size=7)
        assert_allclose(frame.vectors[:30, 30:], 0.0, atol=1e-3)

    @pytest.mark.slow
    def test_a_thousand_dimensions(self):
        rng = np.random.default_rng(11)
        root = rng.standard_normal((1000, 1500))
        frame = sample_orthonormal_frame(root @ root.T, np.full(1000, 0.1), rng)
        assert_allclose(frame.vectors.T @ frame.vectors, np.eye(1000), atol=1e-12)
        assert frame.n_proposals.mean() <= 2.0 * math.sqrt(1000) + 4.0


class TestArguments:
    def test_rank(self):
        frame = sample_orthonormal_frame(np.eye(6), np.ones(2), np.random.default_rng(0))
        assert frame.vectors.shape == (6, 2)
        assert frame.n_proposals.shape == (2,)
        assert sample_orthonormal_frame(np.eye(6), [], np.random.default_rng(0)).vectors.shape == (6, 0)

    def test_the_input_is_not_changed(self):
        matrix, temperatures = np.diag([2.0, 1.0]), np.ones(2)
        matrix.flags.writeable = temperatures.flags.writeable = False
        sample_orthonormal_frame(matrix, temperatures, np.random.default_rng(0))

    @pytest.mark.parametrize(
        ("matrix", "temperatures", "code"),
        [
            (np.eye(2), np.ones(3), "give a vector of at most"),
            (np.eye(2), np.ones((1, 2)), "give a vector of at most"),
            (np.eye(2), [1.0, math.nan], "holds NaN or infinity: use finite numbers"),
            ([[0.0, 1.0], [0.0, 0.0]], [1.0], "is not symmetric: pass (M + Mᵀ)/2 if the difference is"),
            (np.zeros((2, 3)), [1.0], "has shape"),
        ],
    )
    def test_bad_arguments(self, matrix, temperatures, code):
        with refused(code):
            sample_orthonormal_frame(matrix, temperatures, np.random.default_rng(0))

    def test_bad_block_size(self):
        with refused("must be a whole number", parameter="block_size"):
            sample_orthonormal_frame(np.eye(2), [1.0], np.random.default_rng(0), block_size=0)
