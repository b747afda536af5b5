"""Deflation by the secular equation against dense eigendecompositions and multiple precision, on hard spectra."""

import mpmath
import numpy as np
import pytest
from numpy.testing import assert_allclose

from dpmoments.papers.sphere import _deflate, _solve_secular_equation


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
class TestDeflation:
    def test_eigenvalues_are_those_of_the_restriction(self, eigenvalues, direction):
        found = _deflate(eigenvalues, direction).eigenvalues
        scale = np.abs(eigenvalues).max()
        reference = restricted_eigenvalues(eigenvalues / scale, direction, np.random.default_rng(1))
        assert_allclose(found / scale, reference, atol=2e-14)
        assert (found <= eigenvalues[:-1]).all(), "eigenvalues must interlace"
        assert (found >= eigenvalues[1:]).all(), "eigenvalues must interlace"

    def test_eigenvectors_are_orthonormal_and_diagonalise(self, eigenvalues, direction):
        deflation = _deflate(eigenvalues, direction)
        lifted = deflation.lift(np.eye(len(direction) - 1))
        basis = np.column_stack([deflation.direction, lifted])
        assert_allclose(basis.T @ basis, np.eye(len(direction)), atol=1e-14)
        scale = np.abs(eigenvalues).max()
        assert_allclose((lifted.T * (eigenvalues / scale)) @ lifted, np.diag(deflation.eigenvalues / scale), atol=1e-14)

    def test_the_direction_removed_is_the_one_given(self, eigenvalues, direction):
        removed = _deflate(eigenvalues, direction).direction
        assert_allclose(removed, direction, atol=5e-15)

    def test_columns_are_lifted_one_by_one(self, eigenvalues, direction):
        coordinates = np.random.default_rng(2).standard_normal((len(direction) - 1, 3))
        deflation = _deflate(eigenvalues, direction)
        dense = deflation.lift(np.eye(len(direction) - 1)) @ coordinates
        assert_allclose(deflation.lift(coordinates), dense, atol=1e-12)


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


def test_one_dimension_leaves_nothing():
    deflation = _deflate(np.array([3.0]), np.array([-1.0]))
    assert deflation.eigenvalues.shape == (0,)
    assert deflation.lift(np.empty((0, 2))).shape == (1, 2)
    assert deflation.direction == [-1.0]


def test_many_chunks(monkeypatch):
    """The tables are worked on in pieces: as many as there are rows gives the same result."""
    rng = np.random.default_rng(3)
    eigenvalues = np.sort(rng.standard_normal(40))[::-1].copy()
    direction = rng.standard_normal(40)
    direction /= np.linalg.norm(direction)
    whole = _deflate(eigenvalues, direction)
    for cells in (1, 7 * 40):  # one row at a time; seven, and four at the end
        monkeypatch.setattr("dpmoments.papers.sphere._CHUNK_CELLS", cells)
        pieces = _deflate(eigenvalues, direction)
        assert_allclose(pieces.eigenvalues, whole.eigenvalues, rtol=1e-14)
        assert_allclose(pieces.lift(np.eye(39)), whole.lift(np.eye(39)), atol=1e-14)


def test_the_buffer_size_of_the_caller_is_left_alone():
    before = np.getbufsize()
    _deflate(np.array([2.0, 1.0, 0.0]), np.full(3, 3**-0.5)).lift(np.eye(2))
    assert np.getbufsize() == before
