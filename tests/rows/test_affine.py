"""The reproducible matrix product: the same bits for a row wherever it stands, and accurate."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmoments.rows.rounding import SlicedMatrix, row_peaks
from references.reference_lattice import reference_image
from support.examples import examples
from support.said import refused

cells = st.one_of(
    st.floats(-2, 2),
    st.floats(-1e300, 1e300),
    st.sampled_from([0.0, 5e-324, 1e-310, 1e-300, 1.7976931348623157e308, 1.0 - 2.0**-53]),
)
entries = st.one_of(st.floats(-3, 3), st.floats(-1e120, 1e120), st.sampled_from([0.0, 1e-300, 5e-324]))


@st.composite
def products(draw: st.DrawFn) -> tuple[list[list[float]], list[list[float]]]:
    n_inner = draw(st.integers(1, 6))
    values = st.lists(st.lists(cells, min_size=n_inner, max_size=n_inner), min_size=1, max_size=5)
    matrices = st.lists(st.lists(entries, min_size=n_inner, max_size=n_inner), min_size=1, max_size=4)
    return draw(values), draw(matrices)


@pytest.mark.long
@settings(deadline=None, max_examples=examples(300))
@given(products())
def test_image_equals_the_reference(case: tuple[list[list[float]], list[list[float]]]) -> None:
    rows, matrix = case
    values = np.array(rows)
    image, exponents = SlicedMatrix.of(matrix).image(values.copy(), row_peaks(values))
    for row, found, exponent in zip(rows, image.tolist(), exponents.tolist(), strict=True):
        assert (found, exponent) == reference_image(row, matrix)


def reproducible_product(rows: NDArray[np.float64], matrix: NDArray[np.float64]) -> NDArray[np.float64]:
    """rows @ matrix.T as the kernel computes it."""
    values = np.array(rows, dtype=np.float64, order="C")
    image, exponents = SlicedMatrix.of(matrix).image(values, row_peaks(values))
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(image, exponents[:, None])


def relative_error(rows: NDArray[np.float64], matrix: NDArray[np.float64]) -> float:
    """Largest error of an entry over max|v|·max|a|·d, against exact rationals."""
    found = reproducible_product(rows, matrix)
    worst = 0.0
    for row, image in zip(rows.tolist(), found.tolist(), strict=True):
        for entries_of_row, value in zip(matrix.tolist(), image, strict=True):
            exact = sum(Fraction(v) * Fraction(a) for v, a in zip(row, entries_of_row, strict=True))
            size = len(row) * max(map(abs, row)) * max(map(abs, entries_of_row))
            worst = max(worst, float(abs(Fraction(value) - exact) / Fraction(size)))
    return worst


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("n_inner", [1, 2, 500])
def test_error_bound(n_inner: int) -> None:
    """|ŵ − w| ≤ 3·d·2^(−2p)·max|v|·max|a| (and the two additions' rounding), about 2^-40 at worst."""
    rng = np.random.default_rng(n_inner)
    rows = rng.standard_normal((5, n_inner)) * 10.0 ** rng.uniform(-150, 150, (5, 1))
    rows *= 10.0 ** rng.uniform(-8, 0, rows.shape)
    matrix = rng.standard_normal((4, n_inner)) * 10.0 ** rng.uniform(-100, 100, (4, 1))
    sliced = SlicedMatrix.of(matrix)
    assert n_inner * 4**sliced.slice_bits <= 2**53
    bound = 3.0 * 4.0**-sliced.slice_bits + 2.0**-51
    assert bound < 2.0**-39.4
    assert relative_error(rows, matrix) <= bound
    # Planted fault: the leading slices alone are far outside the bound.
    coarse = np.rint(rows / np.abs(rows).max(axis=1, keepdims=True) * 2.0**sliced.slice_bits)
    if n_inner > 1:
        coarse *= np.abs(rows).max(axis=1, keepdims=True) / 2.0**sliced.slice_bits
        error = np.abs(coarse @ matrix.T - reproducible_product(rows, matrix))
        size = np.abs(rows).max(axis=1)[:, None] * np.abs(matrix).max(axis=1) * n_inner
        assert np.max(error / size) > 8 * bound


def test_special_rows() -> None:
    matrix = np.array([[2.0, 0.0], [1.0, 1.0]])
    assert reproducible_product(np.array([[0.0, 0.0], [1e300, 1e300], [1e308, 0.0]]), matrix).tolist() == [
        [0.0, 0.0],
        [2e300, 2e300],
        [math.inf, 1e308],
    ]
    assert reproducible_product(np.array([[1.0]]), np.array([[0.0]])).tolist() == [[0.0]]
    assert reproducible_product(np.empty((0, 2)), matrix).shape == (0, 2)


def test_refusals() -> None:
    with refused("the matrix must be two-dimensional and not empty, got shape"):
        SlicedMatrix.of([1.0])
    for shape in ((0, 3), (3, 0), (1, 1, 1)):
        with refused("the matrix must be two-dimensional and not empty, got shape"):
            SlicedMatrix.of(np.ones(shape))
    assert SlicedMatrix.of(np.zeros((1, 8192))).slice_bits == 20
    with refused("columns are too many for an accurate exact product; at most"):
        SlicedMatrix.of(np.zeros((1, 8193)))
    with refused("the matrix must have finite entries of magnitude at most"):
        SlicedMatrix.of([[1e121]])
    with refused("the matrix must have finite entries of magnitude at most"):
        SlicedMatrix.of([[-1e121]])
