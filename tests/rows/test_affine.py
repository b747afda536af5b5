"""The reproducible matrix product: bit for bit the reference, whose products are exact rationals."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

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
