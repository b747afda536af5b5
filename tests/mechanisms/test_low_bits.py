"""The low bits of released integers say nothing of the exact sum, which rounding float64 noise alone would not ensure."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from contracts.cases import run_plan
from dpmoments.mechanisms.additive import MAX_NOISE, AdditivePlan, choose_bits
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.papers.laws import AdditiveWishartDraw
from dpmoments.papers.mechanisms.eigenvectors import IterativeEigenvectorsPlan
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import IsotropicDraw, MatrixLaplaceDraw
from dpmoments.privacy.sampling import insecure_generator, matrix_laplace, noised, with_rounded
from support.drawn_releases import planted
from support.rows_read_once import RowsReadOnce
from support.said import refused

D = 400
LIMIT = 5.0
"""Standard deviations from fair coins: a right sampler stays below at these seeds, the planted fault is far above."""


def even_share_score(integers: np.ndarray) -> float:
    """How many standard deviations the share of even cells is from one half."""
    cells = integers[np.triu_indices(len(integers))]
    return float((np.mean(cells % 2 == 0) - 0.5) * 2 * math.sqrt(len(cells)))


def integer_noise(plan: AdditivePlan, generator: np.random.Generator) -> np.ndarray:
    """What the privacy filter adds to the lattice sums, in lattice units: below 2^53, so exact in floating point."""
    nothing = np.zeros((plan.dimension, plan.dimension), dtype=np.int64)
    noise = plan.add_noise(PrivacyFilter(plan, generator), "noise alone", nothing) * 4.0**plan.bits
    assert (noise == np.rint(noise)).all()
    assert np.abs(noise).max() < 2.0**53
    return noise.astype(np.int64)


def test_parity_of_matrix_laplace_noise_is_fair() -> None:
    plan = dpm.mechanisms.MatrixLaplace().plan(MomentShape(D, mean=False), PrivacyBudget.pure(0.32), "add_remove")
    assert isinstance(plan, AdditivePlan)
    generator, rate = insecure_generator(0), plan.noise.rate
    scores = [even_share_score(integer_noise(plan, generator)) for _ in range(12)]
    assert abs(sum(scores)) / math.sqrt(12) < LIMIT
    # planted fault: rounding alone
    rounded = [np.rint(matrix_laplace(D, rate, generator) * 4.0**plan.bits).astype(np.int64) for _ in range(12)]
    assert sum(map(even_share_score, rounded)) / math.sqrt(12) > LIMIT


@pytest.mark.parametrize("epsilon", [0.1, 1.0])
def test_higher_low_bits_are_fair_too(epsilon: float) -> None:
    plan = dpm.mechanisms.MatrixLaplace().plan(MomentShape(D), PrivacyBudget.pure(epsilon), "replace_one")
    assert isinstance(plan, AdditivePlan)
    noise = integer_noise(plan, insecure_generator(3))
    for shift in range(0, 30, 3):
        assert abs(even_share_score(noise >> shift)) < LIMIT


class Watched:
    """A generator, and between which integers it was asked for uniform ones."""

    def __init__(self, seed: int) -> None:
        self.generator, self.asked = insecure_generator(seed), []

    def __getattr__(self, name: str) -> object:
        return getattr(self.generator, name)

    def integers(self, low: int, high: int, size: int, **kinds: object) -> object:
        self.asked.append((low, high, size))
        return self.generator.integers(low, high, size, **kinds)


def test_uniform_bits_reach_ten_below_the_noise() -> None:
    """For every law that is drawn in floating point: k = ⌊log₂ σ⌋ − 10 bits, σ that of a cell off the diagonal."""
    rng, query = np.random.default_rng(5), np.zeros((4, 4), dtype=np.int64)
    for seed in range(60):
        rate, bits, degrees = float(np.exp(rng.uniform(-5.0, 2.0))), int(rng.integers(6, 21)), int(rng.integers(5, 90))
        for law, deviation in (
            (MatrixLaplaceDraw(rate, bits), math.sqrt(5.0 / 2.0) / rate),
            (IsotropicDraw(rate, bits), math.sqrt(11.0 / 2.0) / rate),
            (AdditiveWishartDraw(4, degrees, rate, bits), math.sqrt(degrees) * rate),
        ):
            watched: Any = Watched(seed)
            noised(law, query, watched)
            uniform_bits = math.floor(math.log2(deviation * 4.0**bits)) - 10
            expected = [(-(2 ** (uniform_bits - 1)), 2 ** (uniform_bits - 1), 10)] if uniform_bits > 0 else []
            assert watched.asked == expected


def test_noise_is_rounded_to_the_lattice_and_refused_where_it_leaves_it() -> None:
    generator = insecure_generator(0)
    noise, nothing = np.array([[0.3, -0.7], [-0.7, 1.9]]), np.zeros((2, 2), np.int64)
    # So little noise that no bit of it is replaced.
    assert (with_rounded(noise, 2.0**2, 4, nothing, generator) == np.rint(noise * 256.0)).all()
    for size in (1.0, -1.0):
        at_the_end = np.array([[size * 2.0**52 * 4.0**-9]])
        assert with_rounded(np.nextafter(at_the_end, 0.0), 1e-3, 9, nothing[:1, :1], generator).shape == (1, 1)
        for beyond in (at_the_end, 2.0 * at_the_end, at_the_end * np.nan):
            with refused("a noise draw left the lattice: nothing was released; run", ArithmeticError):
                with_rounded(beyond, 1e-3, 9, nothing[:1, :1], generator)


def test_a_lattice_is_the_finest_on_which_the_noise_has_room() -> None:
    """Below 2^46 units, whatever the noise: a draw stays 64 standard deviations from what int64 and float64 hold exactly."""
    for power in range(-20, 35):
        for mantissa in (1.0, 1.0 + 2.0**-52, 1.5, 2.0 - 2.0**-52):
            scale = math.ldexp(mantissa, power)
            if scale > 2.0**34:
                with refused("per entry would hide a table of any size: give a larger"):
                    choose_bits(scale)
                continue
            bits = choose_bits(scale)
            assert scale * 4.0**bits <= 2.0**46
            assert 6 <= bits <= 20
            assert bits == 20 or scale * 4.0 ** (bits + 1) > 2.0**46
    assert MAX_NOISE == 2.0**46
    assert [choose_bits(1.0, d) for d in (8192, 8193)] == [20, 19]  # of wide rows one that they can be summed on


def share_above_one(row: list[float], n_runs: int = 600) -> float:
    """How often the largest eigenvalue of a release of one row exceeds 1 by three last bits or more."""
    plan = dpm.mechanisms.IterativeEigenvectors().plan(
        MomentShape(2, n_rows=1, mean=False), PrivacyBudget.pure(1.0), "replace_one"
    )
    rows, generator = RowsReadOnce([row], "replace_one"), insecure_generator(5)
    return float(
        np.mean(
            [np.linalg.eigvalsh(run_plan(plan, rows, generator).gram)[-1] > 1.0 + 2.5 * 2.0**-52 for _ in range(n_runs)]
        )
    )


@pytest.mark.slow
def test_last_bits_of_a_direction_tell_no_tables_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """An eigenvalue clipped at n = 1 came out as 1 or a few last bits more, as the table's own eigenbasis rounds."""
    lone, zero = share_above_one([1.0, 0.0]), share_above_one([0.0, 0.0])
    allowed = math.e * 1.3
    assert lone <= allowed * zero + 0.02
    assert zero <= allowed * lone + 0.02
    # planted fault: the draw with all its bits, released as it came
    monkeypatch.setattr("dpmoments.papers.sampling.without_low_bits", lambda values: values)
    with planted(
        IterativeEigenvectorsPlan.draw_directions, "basis * np.where(np.diagonal(triangle) < 0.0, -1.0, 1.0)", "drawn"
    ):
        lone, zero = share_above_one([1.0, 0.0]), share_above_one([0.0, 0.0])
    assert max(lone, zero) > allowed * min(lone, zero) + 0.02
