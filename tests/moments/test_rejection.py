"""Batched exact sampler: its arithmetic against high precision, its branches one by one, its law against the exact one."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpmoments.base.errors import InputArithmeticError
from dpmoments.privacy import sampling
from dpmoments.privacy.laws import Choice
from dpmoments.privacy.sampling import (
    _SMALL_SCALE,
    _accepted,
    _accepted_exactly,
    _exp_bounds,
    _exp_minus,
    _geometric,
    _geometric_exactly,
    _uniform_below,
    choose_by_score,
    gaussian_draws,
    insecure_generator,
    laplace_draws,
    noised,
    secure_generator,
)
from support.said import refused

LIMIT = 1e-4
"""p-value below which a law is rejected, at fixed seeds."""


def seeded(seed: int) -> sampling.WordSource:
    generator = np.random.default_rng(seed)
    return lambda size: generator.integers(0, 2**64, size, dtype=np.uint64)


def told(*words: int) -> sampling.WordSource:
    """A source of these words, and of no others."""
    rest: Iterator[int] = iter(words)
    return lambda size: np.array([next(rest) for _ in range(size)], dtype=np.uint64)


def exact_exp(x: Fraction, bits: int) -> mpmath.mpf:
    return mpmath.ldexp(mpmath.exp(-mpmath.mpf(x.numerator) / x.denominator), bits)


# exp(−x) -----------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("bits", [1, 53, 117, 500])
def test_integer_bounds_hold_and_are_tight(bits: int) -> None:
    generator = np.random.default_rng(bits)
    numbers = [Fraction(0), Fraction(1, 2), Fraction(1), Fraction(512), Fraction(1, 3**200), Fraction(10**6)]
    numbers += [Fraction(int(a), int(b)) for a, b in generator.integers(1, 10**9, (60, 2))]
    with mpmath.workprec(bits + 300):
        for x in numbers:
            low, high = _exp_bounds(x, bits)
            assert low <= exact_exp(x, bits) <= high
            assert high - low <= 2


@pytest.mark.long
def test_floating_point_is_as_near_as_the_proof_says() -> None:
    generator = np.random.default_rng(3)
    edges = np.arange(0, 47 * 64, 3) / 64.0
    x = np.concatenate(
        [edges, np.nextafter(edges[1:], 0.0), generator.uniform(0, 47, 600), 10.0 ** generator.uniform(-320, 1.6, 200)]
    )

    def farthest(values: np.ndarray) -> float:
        with mpmath.workprec(200):
            return max(
                float(abs(mpmath.mpf(v) - mpmath.exp(-mpmath.mpf(e))))
                for e, v in zip(x.tolist(), values.tolist(), strict=True)
            )

    assert farthest(_exp_minus(x)) < 2.0**-50
    # planted fault: a polynomial without its last term
    assert farthest(_exp_minus(x) - np.exp(-np.floor(x * 64) / 64) * (x - np.floor(x * 64) / 64) ** 6 / 720) > 2.0**-50
    assert (_exp_minus(np.array([47.0, 48.0, 1e300, np.inf])) == _exp_minus(np.array([47.0]))).all()


def test_exponents_of_a_gaussian_are_as_near_as_the_proof_says(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the candidates hand to the decision, against the rational number it stands for."""
    seen: list[tuple[np.ndarray, Callable[[int], Fraction]]] = []

    def decide(exponents: np.ndarray, exact: Callable[[int], Fraction], words: sampling.WordSource) -> np.ndarray:
        seen.append((exponents, exact))
        return _accepted(exponents, exact, words)

    monkeypatch.setattr(sampling, "_accepted", decide)
    for seed, scale in enumerate((1e-300, _SMALL_SCALE, 0.3, 1.0, 1.7, 1e3 / 3, 2.0**40 / 3, 2.0**52)):
        seen.clear()
        gaussian_draws(scale, 200, seeded(seed))
        compared = 0
        for exponents, exact in seen:
            for index, x in enumerate(exponents.tolist()):
                true = exact(index)
                assert (x >= 46.0 and true >= 46) or abs(Fraction(x) - true) <= Fraction(1, 2**44)
                compared += 1
        assert compared > 200


# Decisions ------------------------------------------------------------------------------------------------------------------


def test_the_slow_branch_decides_as_the_fast_one(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(5)
    x = np.append(generator.uniform(0, 3, 2000), [0.0, 30.0, 100.0])

    def decided() -> np.ndarray:
        return _accepted(x, lambda index: Fraction(float(x[index])), seeded(6))

    fast = decided()
    monkeypatch.setattr(sampling, "_SLACK", 2.0)
    asked: list[int] = []
    exactly = sampling._accepted_exactly

    def counted(known: int, of: Fraction, words: sampling.WordSource) -> bool:
        asked.append(known)
        return exactly(known, of, words)

    monkeypatch.setattr(sampling, "_accepted_exactly", counted)
    assert (decided() == fast).all()
    assert len(asked) == len(x)
    # planted fault: exp of something else
    assert (_accepted(x, lambda index: Fraction(float(x[index])) * 2, seeded(6)) != fast).any()


def test_a_decision_at_the_edge_reads_on() -> None:
    """53 bits that are those of exp(−1): the next word decides, and a word that is again the next bits reads one more."""
    low = _exp_bounds(Fraction(1), 53)[0]
    next_bits = _exp_bounds(Fraction(1), 117)[0] - (low << 64)
    assert _accepted_exactly(low - 1, Fraction(1), told())
    assert not _accepted_exactly(low + 1, Fraction(1), told())
    assert _accepted_exactly(low, Fraction(1), told(next_bits - 1))
    assert not _accepted_exactly(low, Fraction(1), told(next_bits + 1))
    assert _accepted_exactly(low, Fraction(1), told(next_bits, 0))
    assert not _accepted_exactly(low, Fraction(1), told(next_bits, 2**64 - 1))
    first = np.uint64(low << 11)
    for word, accepted in ((next_bits - 1, True), (next_bits + 1, False)):
        assert _accepted(np.array([1.0]), lambda _: Fraction(1), told(int(first), word)).tolist() == [accepted]
    assert _accepted(np.array([0.0]), lambda _: Fraction(0), told(2**64 - 1)).tolist() == [True]


def test_far_geometric_draws_are_counted_bit_by_bit() -> None:
    assert _geometric_exactly(2**53 - 1, told()) == 0
    for count in (1, 24, 25, 26, 40):
        known = _exp_bounds(Fraction(count), 53 + 64 * 3)[0] - 1
        words = [known >> 64 * k & (2**64 - 1) for k in (2, 1, 0)]
        drawn = np.array([(known >> 192) << 11], dtype=np.uint64)
        used: Iterator[int] = iter(words)
        assert (
            _geometric(drawn, lambda size, used=used: np.array([next(used) for _ in range(size)], np.uint64))[0]
            == count
        )
        above = known + 2
        words = [above >> 64 * k & (2**64 - 1) for k in (2, 1, 0)]
        assert _geometric_exactly(above >> 192, told(*words)) == count - 1
    with refused("a noise draw left the lattice: nothing was released; run", InputArithmeticError):
        _geometric_exactly(0, lambda size: np.zeros(size, dtype=np.uint64))


def test_geometric_draws_have_their_law_on_either_branch(monkeypatch: pytest.MonkeyPatch) -> None:
    words = seeded(11)(20_000)
    fast = _geometric(words, seeded(0))
    counts = np.bincount(fast, minlength=8)
    expected = np.exp(-np.arange(8.0)) * (1 - math.exp(-1)) * len(words)
    expected[7] = len(words) - expected[:7].sum()
    observed = np.append(counts[:7], counts[7:].sum())
    assert stats.chisquare(observed, expected).pvalue > LIMIT
    assert stats.chisquare(np.roll(observed, 1), expected).pvalue < LIMIT
    monkeypatch.setattr(sampling, "_SLACK", 2.0)
    assert (_geometric(words[:500], seeded(0)) == fast[:500]).all()


def test_uniform_integers_are_not_biased() -> None:
    """A modulus that does not divide 2^64, so large that plain remainders would be visibly uneven."""
    bound = 3 * 2**61
    drawn = seeded(7)(20_000)

    def p_value(values: np.ndarray) -> float:
        return float(stats.kstest(values.astype(float) / bound, "uniform").pvalue)

    kept = _uniform_below(bound, len(drawn), lambda _: drawn)
    assert 0.73 < len(kept) / len(drawn) < 0.77
    assert p_value(kept) > LIMIT
    # planted fault: no word is refused
    assert p_value((drawn % np.uint64(bound)).astype(np.int64)) < LIMIT
    edge = (2**64 // bound) * bound
    assert _uniform_below(bound, 2, told(edge - 1, edge)).tolist() == [bound - 1]
    assert _uniform_below(1, 3, seeded(1)).tolist() == [0, 0, 0]


# Laws -----------------------------------------------------------------------------------------------------------------------


def chi_square(draws: np.ndarray, log_weight: Callable[[np.ndarray], np.ndarray], reach: int) -> float:
    """p-value of integer draws against the law ∝ exp(log_weight(k)), the rest beyond ±reach in one cell."""
    support = np.arange(-60 * reach, 60 * reach + 1)
    weights = np.exp(log_weight(support.astype(float)))
    expected = weights[np.abs(support) <= reach] / weights.sum() * len(draws)
    observed = np.array([np.count_nonzero(draws == k) for k in range(-reach, reach + 1)])
    expected, observed = (np.append(v, len(draws) - v.sum()) for v in (expected, observed))
    few = expected < 5
    expected, observed = (np.append(v[~few], v[few].sum()) for v in (expected, observed))
    return float(stats.chisquare(observed[expected > 0], expected[expected > 0]).pvalue)


@pytest.mark.long
@pytest.mark.parametrize("slack", [None, 2.0], ids=["fast", "slow"])
@pytest.mark.parametrize("scale", [0.3, 1.0, 1.7, 6.25])
def test_exact_laws(scale: float, slack: float | None, monkeypatch: pytest.MonkeyPatch) -> None:
    if slack is not None:
        monkeypatch.setattr(sampling, "_SLACK", slack)
    size = 40_000 if slack is None else 4000
    reach = math.ceil(4 * scale)
    normal, laplace = gaussian_draws(scale, size, seeded(1)), laplace_draws(scale, size, seeded(2))
    assert chi_square(normal, lambda k: -(k**2) / (2 * scale**2), reach) > LIMIT
    assert chi_square(laplace, lambda k: -np.abs(k) / scale, reach) > LIMIT
    # planted faults: another scale, and 0 drawn with either sign
    assert chi_square(normal, lambda k: -(k**2) / (2 * (1.35 * scale) ** 2), reach) < LIMIT
    assert chi_square(laplace, lambda k: -np.abs(k) / (1.35 * scale), reach) < LIMIT
    assert chi_square(laplace, lambda k: -np.abs(k) / scale + math.log(2) * (k == 0), reach) < LIMIT


def opendp_draws(kind: str, scale: float, size: int) -> np.ndarray:
    from opendp import domains, measurements, metrics, mod

    mod.enable_features("contrib")
    domain = domains.vector_domain(domains.atom_domain(T="i64"))
    metric = metrics.l2_distance(T="i64") if kind == "gaussian" else metrics.l1_distance(T="i64")
    measurement = getattr(measurements, f"make_{kind}")(domain, metric, scale=scale)
    return np.array(measurement([0] * size))  # type: ignore[operator]


@pytest.mark.long(sets=3)
@pytest.mark.parametrize("scale", [2.3, 2.0**33 / 3])
@pytest.mark.parametrize(("kind", "ours"), [("gaussian", gaussian_draws), ("laplace", laplace_draws)])
def test_the_law_is_that_of_opendp(kind: str, ours: Callable[..., np.ndarray], scale: float) -> None:
    """OpenDP's draws have no seed: the right law fails here once in 10⁹ runs."""
    theirs, size = opendp_draws(kind, scale, 10_000), 10_000
    same, fault = ours(scale, size, seeded(21)), ours(1.35 * scale, size, seeded(21))
    edges = np.quantile(theirs, np.linspace(0, 1, 12)[1:-1]) + 0.25

    def p_values(draws: np.ndarray) -> tuple[float, float]:
        table = [np.bincount(np.searchsorted(edges, one), minlength=11) for one in (draws, theirs)]
        occupied = np.array(table)[:, np.sum(table, axis=0) > 0]
        return float(stats.ks_2samp(draws, theirs).pvalue), float(stats.chi2_contingency(occupied).pvalue)

    assert min(p_values(same)) > 1e-9
    assert max(p_values(fault)) < 1e-9


@pytest.mark.parametrize("draw", [gaussian_draws, laplace_draws])
def test_draws_are_independent_of_their_place_and_of_each_other(draw: Callable[..., np.ndarray]) -> None:
    """Neighbors in one batch, both sides of the border of two batches, and signs against magnitudes."""
    draws = draw(1e9 / 3, 80_000, seeded(31)) / (1e9 / 3)
    for lag in (1, 2, 32_768):
        assert stats.pearsonr(draws[lag:], draws[:-lag]).pvalue > LIMIT
        assert stats.pearsonr(np.abs(draws[lag:]), np.abs(draws[:-lag])).pvalue > LIMIT
    assert stats.binomtest(int(np.count_nonzero(draws > 0)), len(draws)).pvalue > LIMIT
    assert stats.ks_2samp(draws[draws > 0], -draws[draws < 0]).pvalue > LIMIT
    assert stats.ks_2samp(draws[:40_000], draws[40_000:]).pvalue > LIMIT
    # planted fault: two draws share bits
    assert stats.pearsonr(draws[1:] + 0.1 * draws[:-1], draws[:-1]).pvalue < LIMIT


def test_low_bits_of_large_draws_are_fair() -> None:
    for draw in (gaussian_draws, laplace_draws):
        draws = draw(2.0**44 / 3, 20_000, seeded(41))
        for bit in range(24):
            assert stats.binomtest(int(np.count_nonzero(draws >> bit & 1)), len(draws)).pvalue > LIMIT
        assert stats.binomtest(int(np.count_nonzero(2 * draws & 1)), len(draws)).pvalue < LIMIT  # planted fault


def test_no_bit_of_the_source_is_read_twice() -> None:
    """As many words are asked for as decisions, uniform integers and geometric draws are made of."""
    asked: list[int] = []
    source = seeded(51)

    def counted(size: int) -> np.ndarray:
        asked.append(size)
        return source(size)

    draws = gaussian_draws(1e6, 1000, counted)
    candidates, decided, proposed, last = asked[:4]
    assert candidates == 3016
    assert candidates >= decided > proposed >= last > len(draws)


def test_the_largest_draws_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    """The largest scale, and numerators just below 2^53, with the largest geometric draw there is."""
    monkeypatch.setattr(sampling, "_geometric", lambda drawn, _: np.full(len(drawn), sampling._MAX_COUNT - 1))
    for scale in (2.0**52, math.nextafter(2.0**52, 0.0), math.nextafter(1.0, 0.0), math.nextafter(_SMALL_SCALE, 1.0)):
        draws = laplace_draws(scale, 100, seeded(61))
        ratio = np.abs(draws.astype(float)) / scale
        assert (np.abs(ratio - 511.5) <= 0.5 + 1 / scale).all()
        assert np.abs(draws).max() < 2**62


def test_scales_are_rational_numbers() -> None:
    """A scale whose denominator matters: rounding it to an integer would be another law."""
    draws = partial(laplace_draws, size=40_000)
    assert chi_square(draws(2.5, words=seeded(71)), lambda k: -np.abs(k) / 2.5, 10) > LIMIT
    assert chi_square(draws(3.0, words=seeded(71)), lambda k: -np.abs(k) / 2.5, 10) < LIMIT
    for scale in (_SMALL_SCALE, 1e-3, 1e-300):
        assert (gaussian_draws(scale, 500, seeded(72)) == 0).all()
        assert (laplace_draws(scale, 500, seeded(72)) == 0).all()


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("exponent", [Fraction(1, 3), Fraction(2)])
def test_small_scales_have_the_same_law(exponent: Fraction, monkeypatch: pytest.MonkeyPatch) -> None:
    """At exponents that can be told from 0 in a few thousand draws, every decision by integer bounds."""
    monkeypatch.setattr(sampling, "_SLACK", 2.0)
    draws = sampling._small_laplace_candidates(exponent, 5000, seeded(73))
    rate, reach = float(exponent), math.ceil(4 / float(exponent))
    assert chi_square(draws, lambda k: -rate * np.abs(k), reach) > LIMIT
    # planted faults: another scale, and 0 drawn with either sign
    assert chi_square(draws, lambda k: -1.35 * rate * np.abs(k), reach) < LIMIT
    assert chi_square(draws, lambda k: -rate * np.abs(k) + math.log(2) * (k == 0), reach) < LIMIT


# The exponential mechanism over integer scores: frequencies against exact probabilities, drawn exactly and with a seed.

UNSEEDED_LIMIT = 1e-7
"""Bits of the operating system cannot be seeded."""
SCORES = np.array([0, -3, 5, 5, 2, -40, 4])


def p_value(draws: list[int], log_weights: np.ndarray) -> float:
    """Of chosen places against probability ∝ exp(log weight)."""
    weights = np.exp(log_weights - log_weights.max())
    expected = weights / weights.sum() * len(draws)
    observed = np.bincount(draws, minlength=len(weights)).astype(float)
    rare = expected < 5.0
    if rare.any():
        expected = np.append(expected[~rare], expected[rare].sum())
        observed = np.append(observed[~rare], observed[rare].sum())
    if expected[-1] < 1e-3:
        assert observed[-1] == 0
        expected, observed = expected[:-1], observed[:-1]
    return float(stats.chisquare(observed, expected * observed.sum() / expected.sum()).pvalue)


@pytest.mark.long
@pytest.mark.parametrize("secure", [True, False])
@pytest.mark.parametrize("rate", [0.15, 0.4, 1.3])
def test_a_choice_has_the_probabilities_of_its_scores(rate: float, secure: bool) -> None:
    generator = secure_generator() if secure else insecure_generator(11)
    limit = UNSEEDED_LIMIT if secure else LIMIT
    draws = [noised(Choice(2.0 * rate), SCORES, generator) for _ in range(3000)]  # ∝ exp(ε·score/2)
    assert p_value(draws, rate * SCORES) > limit
    # planted faults: twice the rate (ε in place of ε/2), permute-and-flip's exponential noise
    assert p_value(draws, 2.0 * rate * SCORES) < limit
    flipped = insecure_generator(3).exponential(1.0 / rate, (3000, len(SCORES)))
    if rate == 0.4:
        assert p_value(np.argmax(SCORES + flipped, axis=1).tolist(), rate * SCORES) < LIMIT


@pytest.mark.parametrize("secure", [True, False])
def test_scores_far_apart_and_rates_far_from_one(secure: bool) -> None:
    generator = secure_generator() if secure else insecure_generator(0)
    far = np.array([-(2**40), 0, -(2**40)])
    assert {choose_by_score(far, 1.0, generator) for _ in range(20)} == {1}
    assert {choose_by_score(np.array([0, 1, 0]), 1e12, generator) for _ in range(20)} == {1}
    assert len({choose_by_score(np.array([0, 1, 0]), 1e-12, generator) for _ in range(60)}) == 3
    assert choose_by_score(np.array([7]), 1.0, generator) == 0
    assert choose_by_score(np.array([-(2**62), 2**62, 0]), 1e300 if secure else 1.0, generator) == 1


def test_the_exact_sampler_is_used_for_integers_and_the_operating_system(monkeypatch: pytest.MonkeyPatch) -> None:
    """Gumbel noise in floating point is only for seeds and for scores that are no integers."""
    generator = secure_generator()
    monkeypatch.setattr(type(generator), "gumbel", None, raising=False)
    assert choose_by_score(np.array([0, 50]), 1.0, generator) == 1
    with pytest.raises(TypeError):
        choose_by_score(np.array([0.0, 50.0]), 1.0, generator)
