"""The repairs of eigenvalues against their plain versions (``references/plain_repair.py``), on matrices of every kind."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from dpmoments.moments import repair as repairs
from dpmoments.moments.law import NoiseLaw, Rounding
from dpmoments.moments.repair import Repair, repair_gram
from dpmoments.moments.spectral import (
    SpectralNoise,
    _ascending,
    bulk_and_outlier_eigenvalues,
    pooled_spread,
    possible_eigenvalues,
    rotation_invariant_eigenvalues,
)
from references import plain_repair as plain
from support.noise_models import gaussian
from support.said import refused

EXACT: dict[str, Any] = dict(rtol=1e-9, atol=1e-9)


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("seed", range(2))
def test_eigenvalues_are_repaired_as_derived(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for d in (1, 2, 3, 7, 20):
        for skews in ((0.0, 0.0), (0.3, 0.3), (0.4, 0.0), (0.2, 0.5)):
            noise = SpectralNoise(d, 2.0, 4.0 * d, *skews)
            spread = np.sort(rng.normal(scale=math.sqrt(2.0 * d), size=d))
            signal = np.zeros(d)
            signal[-2:] = rng.choice([0.0, 6.0, 40.0], min(d, 2))
            eigenvalues = np.sort(spread + signal * math.sqrt(d))
            np.testing.assert_allclose(
                rotation_invariant_eigenvalues(eigenvalues, noise),
                plain.rotation_invariant(eigenvalues, noise),
                **EXACT,
            )
            for upper in (None, 3.0, 60.0, 500.0):
                np.testing.assert_allclose(
                    bulk_and_outlier_eigenvalues(eigenvalues, noise, upper),
                    plain.bulk_and_outliers(eigenvalues, noise, upper),
                    err_msg=f"{d} {skews} {upper}",
                    **EXACT,
                )
    exact = SpectralNoise(3, 0.0, 0.0)
    np.testing.assert_array_equal(
        bulk_and_outlier_eigenvalues(np.array([-1.0, 2.0, 5.0]), exact, None), [0.0, 2.0, 5.0]
    )


def test_ascending_values_and_simplices() -> None:
    rng = np.random.default_rng(0)
    for _ in range(30):
        values = rng.normal(size=rng.integers(1, 9)).round(1)
        np.testing.assert_allclose(_ascending(values), plain.ascending(values), **EXACT)
        for upper in (None, 0.5, 3.0):
            expected = plain.at_most(plain.ascending(values), upper)
            np.testing.assert_allclose(possible_eigenvalues(values, upper), expected, **EXACT)


def test_what_noise_explains_of_a_spread() -> None:
    noise = SpectralNoise(4, 1.5, 3.0)
    assert noise.dimensions == 9.0
    assert noise.energy == 2 * 1.5 * 9
    assert noise.variance == 6.0
    for deviations, largest in (
        ([-5.0, 1.0, 1.0, 3.0], 100.0),
        ([-5.0, 1.0, 1.0, 3.0], 1.5),
        ([-1.0, 0.0, 0.0, 1.0], 9.0),
    ):
        expected = plain.pooled(np.array(deviations), 27.0, largest)
        np.testing.assert_allclose(pooled_spread(np.array(deviations), noise, largest), expected)
    assert not pooled_spread(np.zeros(4), noise, 1.0).any()


def test_spectral_noise_is_that_of_the_cells() -> None:
    """E‖N‖² − E(tr N)²/d over the (d − 1)(d + 2) halves of traceless squares; of one cell half of its variance."""
    law = gaussian(4, 3.0, 1.0, None, None).law()
    noise = SpectralNoise.of(law)
    assert noise.trace_variance == pytest.approx(12.0)
    assert noise.cell_variance == pytest.approx((12 + 12 * 1.0 - 12 / 4) / (3 * 6))
    assert SpectralNoise.of(gaussian(1, 3.0, 1.0, None, None).law()).cell_variance == pytest.approx(1.5)
    block = replace(noise, upper_skew=0.8, lower_skew=0.4).block(2)
    assert (block.size, block.trace_variance, block.upper_skew, block.lower_skew) == pytest.approx((2, 6.0, 0.4, 0.2))
    assert block.cell_variance == noise.cell_variance


def from_eigen(values: np.ndarray, vectors: np.ndarray) -> np.ndarray:
    return vectors @ np.diag(values) @ vectors.T


def test_each_repair_of_a_gram_matrix() -> None:
    rng = np.random.default_rng(1)
    law = gaussian(4, 2.0, 1.0, None, None).law()
    noise = SpectralNoise.of(law)
    for upper, lower in ((None, 0.0), (8.0, 0.0), (40.0, 0.0), (None, 9.0)):
        half = rng.normal(size=(4, 4)) * 3
        gram = (half + half.T) / 2 + np.diag([9.0, 4.0, 1.0, 0.0]) - lower * np.eye(4)
        values, vectors = np.linalg.eigh(gram)
        cap = math.inf if upper is None else upper
        trace = min(max(values.sum(), 0.0), cap)
        largest = min(max(values.sum(), 0.0) + 2 * math.sqrt(noise.trace_variance), cap)
        shrunk = trace / 4 + plain.pooled(values - values.mean(), noise.energy, largest)
        expected = {
            Repair.NONE: values,
            Repair.CLIP: np.clip(values, 0, cap),
            Repair.SHIFT: values - min(values[0], 0),
            Repair.NOISE_SHIFT: values + (max(law.gram_bound(0.05), -values[0]) if values[0] < 0 else 0),
            Repair.SHRINK: plain.at_most(shrunk, upper),
            Repair.ROTATION_INVARIANT: plain.at_most(plain.rotation_invariant(values, noise), upper),
            Repair.SPECTRAL: plain.bulk_and_outliers(values, noise, upper),
        }
        for repair, repaired in expected.items():
            found = repair_gram(gram, law, repair, upper)
            np.testing.assert_allclose(found, from_eigen(repaired, vectors), err_msg=repair, **EXACT)
        np.testing.assert_allclose(
            repair_gram(gram, None, Repair.SHRINK, upper), from_eigen(np.clip(values, 0, cap), vectors)
        )
    sure = np.diag([1.0, 2.0, 3.0, 4.0])
    for repair in (Repair.SHIFT, Repair.NOISE_SHIFT):
        np.testing.assert_array_equal(repair_gram(sure, law, repair, None), sure)
    np.testing.assert_allclose(repair_gram(np.diag([0.5, 2.0, 3.0, 4.0]), law, Repair.SHIFT, None)[0, 0], 0.5)


@pytest.mark.parametrize(("count", "variance", "expected"), [(0.2, 0.09, 1.0), (3.0, 16.0, 4.0), (30.0, 16.0, 30.0)])
def test_counts_are_floored_by_their_noise(count: float, variance: float, expected: float) -> None:
    law = gaussian(2, 1.0, 1.0, 1.0, variance).law()
    assert repairs.floored_count(count, law) == pytest.approx(expected)
    assert repairs.floored_count(count, None) == max(1.0, count)
    message = repairs.few_rows_message(count, law)
    assert (message is not None) == (count < 10 * math.sqrt(variance))
    assert repairs.few_rows_message(10 * math.sqrt(variance), law) is None
    assert repairs.few_rows_message(None, law) is None


def test_repairs_have_names() -> None:
    assert [Repair.of(str(each)) for each in Repair] == list(Repair)
    with refused(": use '", parameter="repair", value="mend"):
        Repair.of("mend")


def test_a_law_about_another_center_reaches_every_repair() -> None:
    law = gaussian(3, 2.0, 1.0, 4.0, 9.0).law()
    assert isinstance(law, NoiseLaw)
    alone = repairs.exact_law(replace(law, rounding=Rounding.of(np.ones(3), np.eye(4))))
    assert alone is not None
    assert alone.terms is law.terms
    assert alone.rounding is None
    assert repairs.exact_law(replace(law, caveats=("linearized",))) is None
    assert repairs.exact_law(None) is None


@pytest.mark.parametrize("skews", [(0.0, 0.0), (0.7, 0.0), (0.0, 0.3), (0.5, 0.5), (0.2, 0.9)])
def test_the_threshold_is_where_the_edge_turns(skews: tuple[float, float]) -> None:
    """At g = 1/threshold the slope of 1/g + R(g) is 0, and the edge is its value."""
    noise = SpectralNoise(9, 3.0, 5.0, *skews)

    def height(g: float) -> float:
        return 1 / g + noise.variance * g / ((1 - skews[0] * g) * (1 + skews[1] * g))

    g, step = 1 / noise.threshold, 1e-5
    assert height(g + step) - height(g - step) == pytest.approx(0.0, abs=1e-8)
    assert noise.edge == pytest.approx(height(g))
    assert height(g) < min(height(0.9 * g), height(1.05 * g))
