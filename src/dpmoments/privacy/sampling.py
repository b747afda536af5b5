"""Sampling: noise is drawn, rounded and dithered here, as the filter priced it."""

from __future__ import annotations

import math
import os
import weakref
from bisect import bisect
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from functools import cache, lru_cache, singledispatch
from importlib import import_module
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpmoments.base.checks import check_at_least, check_positive
from dpmoments.base.errors import InputArithmeticError, InputTypeError, out_of_range
from dpmoments.base.values import BoolArray, FloatArray, IntegerArray
from dpmoments.privacy.laws import (
    Choice,
    DiscreteGaussian,
    DiscreteLaplace,
    DrawLaw,
    IsotropicDraw,
    KNorm,
    LevelSelection,
    MatrixLaplaceDraw,
)

if TYPE_CHECKING:
    from randomgen import AESCounter


# Sources of randomness: the operating system, through a cryptographic bit generator.


class SecureGenerator(np.random.Generator):
    """``numpy.random.Generator`` keyed by the operating system.

    Its type marks a release as private.

    Only :func:`secure_generator` makes one. Noise with an exact integer sampler (``privacy/sampling.py``) is then drawn with bits
    of the operating system itself.
    """

    def __init__(self) -> None:
        # All 128 bits of the AES key come from the operating system; `seed=` would go through a 64-bit mixer first.
        super().__init__(_fresh_bits())
        _living.add(self)

    def __reduce__(self) -> Any:
        raise InputTypeError("a SecureGenerator cannot be copied or stored: two releases would share their noise")


_living: weakref.WeakSet[SecureGenerator] = weakref.WeakSet()


def _fresh_bits() -> AESCounter:
    from randomgen import AESCounter

    return AESCounter(key=np.frombuffer(os.urandom(16), dtype=np.uint64))


def _rekey_after_fork() -> None:
    """Draw a new key: otherwise a forked process would draw the same noise as its parent."""
    for generator in list(_living):
        generator.bit_generator.state = _fresh_bits().state


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_rekey_after_fork)


def secure_generator() -> SecureGenerator:
    """Return a generator with a fresh 128-bit key from the operating system."""
    return SecureGenerator()


def insecure_generator(seed: int) -> np.random.Generator:
    """Return a generator that repeats itself, for tests and benchmarks.

    Its releases are not private.

    Examples
    --------
    >>> float(insecure_generator(1).random()) == float(insecure_generator(1).random())
    True
    """
    return np.random.default_rng(seed)


# Exact discrete Gaussian and discrete Laplace noise on the integers.
#
# With a ``SecureGenerator`` the draws are exact, from bits of the operating system. With any
# other generator they are a seeded stand-in for tests (a rounded normal, a
# difference of two geometrics), and the release is marked not private.
#
# The algorithms are by Canonne, Kamath & Steinke (2020): rejection sampling in which every probability is exp(−x) for a
# rational x. Each decision compares a uniform number U, a row of fair bits, with exp(−x). Its first 53 bits and a
# floating-point value within 2^−42 of exp(−x) settle nearly all decisions; the others (about one in 2^38, and one in 10^10
# geometric draws) read more bits of the same U until integer bounds on exp(−x) settle them. So every draw has the exact
# distribution, whatever the mathematical library computes (``docs/evidence/derivations/discrete-sampler.md``).

Words = npt.NDArray[np.uint64]
WordSource = Callable[[int], Words]
"""Source of independent uniform 64-bit words."""

_SMALL_SCALE = 2.0**-8
"""Scale of Laplace draws below which denominators would not fit in int64."""

_SLACK = 2.0**-39
"""Distance of U from exp(−x) beyond which floating point settles a decision."""
_UNIFORM_BITS = 53
"""Bits of U that are drawn at once."""
_MAX_EXPONENT = 47.0
"""x above which exp(−x) counts as exp(−47), below 2^−67."""
# Number of powers e^−1, e^−2, … that floating point compares. Below the last, and within the slack of one, integer
# bounds decide: probability 25·2·2^−39 + e^−25, about 1e-10.
_COMPARED_POWERS = 25
# Bound on a geometric draw, reached with probability e^−512. Noise of smaller draws is below 2^62.
_MAX_COUNT = 512
_BATCH = 1 << 15
"""Candidates that take all steps together, in the processor's cache."""


def system_words(size: int) -> Words:
    """Return ``size`` words from the operating system."""
    return np.frombuffer(os.urandom(8 * size), dtype=np.uint64)


def gaussian_draws(scale: float, size: int, words: WordSource = system_words) -> IntegerArray:
    """Draw integers k with probability ∝ exp(−k²/(2·scale²)), shape (size,)."""
    # `scale`, at most 2^52, is used as the exact rational number that the float is.
    proposal = int(scale) + 1

    def candidates(n: int) -> IntegerArray:
        proposed = _laplace_candidates(proposal, 1, n, words)
        distance = np.abs(proposed)
        with np.errstate(over="ignore"):  # infinity is refused like anything above 47
            deviations = distance / scale - scale / proposal
            exponents = 0.5 * (deviations * deviations)

        def exponent(index: int) -> Fraction:
            square = Fraction(scale) ** 2
            return (int(distance[index]) - square / proposal) ** 2 / (2 * square)

        return proposed[_accepted(exponents, exponent, words)]

    return _first(size, candidates)


def laplace_draws(scale: float, size: int, words: WordSource = system_words) -> IntegerArray:
    """Draw integers k with probability ∝ exp(−|k|/scale)."""
    # Arguments as in `gaussian_draws`.
    if scale < _SMALL_SCALE:
        return _first(size, lambda n: _small_laplace_candidates(1 / Fraction(scale), n, words))
    numerator, denominator = scale.as_integer_ratio()
    return _first(size, lambda n: _laplace_candidates(numerator, denominator, n, words))


def _first(size: int, candidates: Callable[[int], IntegerArray]) -> IntegerArray:
    """Return the first ``size`` accepted draws; ``candidates(n)`` returns those accepted of n."""
    draws, filled = np.empty(size, dtype=np.int64), 0
    while filled < size:
        accepted = candidates(min(_BATCH, 3 * (size - filled) + 16))[: size - filled]
        draws[filled : filled + len(accepted)] = accepted
        filled += len(accepted)
    return draws


def _laplace_candidates(numerator: int, denominator: int, n: int, words: WordSource) -> IntegerArray:
    """Return the draws accepted in n tries: P(k) ∝ exp(−|k|·denominator/numerator)."""
    remainders = _uniform_below(numerator, n, words)
    # Both integers are at most 2^53, so that only the quotient is rounded.
    kept = _accepted(remainders / numerator, lambda index: Fraction(int(remainders[index]), numerator), words)
    drawn = words(int(np.count_nonzero(kept)))
    # A word's high 53 bits make the geometric draw, its lowest bit the sign.
    magnitudes = remainders[kept] + numerator * _geometric(drawn, words)
    magnitudes >>= denominator.bit_length() - 1  # the denominator of a float is a power of two
    return _with_signs(magnitudes, drawn)


def _small_laplace_candidates(exponent: Fraction, n: int, words: WordSource) -> IntegerArray:
    """Return the draws accepted in n tries: P(k) ∝ exp(−|k|·exponent), for exponents above 46."""
    magnitudes, growing = np.zeros(n, dtype=np.int64), np.arange(n)
    while len(growing):
        growing = growing[_accepted(np.full(len(growing), _MAX_EXPONENT), lambda _: exponent, words)]
        magnitudes[growing] += 1
    return _with_signs(magnitudes, words(n))


def _with_signs(magnitudes: IntegerArray, words: Words) -> IntegerArray:
    """Return the magnitudes with signs by the lowest bits of words; −0 is left out."""
    negative = (words & np.uint64(1)).astype(bool)
    signed: IntegerArray = np.where(negative, -magnitudes, magnitudes)
    counted: IntegerArray = signed[~(negative & (magnitudes == 0))]
    return counted


def _uniform_below(bound: int, n: int, words: WordSource) -> IntegerArray:
    """Return uniform integers from 0 to bound − 1: n, or fewer where words are refused."""
    drawn = words(n)
    incomplete = (1 << 64) % bound
    if incomplete:
        drawn = drawn[drawn < np.uint64((1 << 64) - incomplete)]
    return (drawn % np.uint64(bound)).astype(np.int64)


def _accepted(exponents: FloatArray, exact: Callable[[int], Fraction], words: WordSource) -> BoolArray:
    """Return independent draws, shape (n,), that are True with probability exp(−x)."""
    # `exponents` are within 2^−44 of x, or both are at least 46; `exact(index)` is x.
    first_bits = words(len(exponents)) >> np.uint64(64 - _UNIFORM_BITS)
    uniform = first_bits * 2.0**-_UNIFORM_BITS
    probability = _exp_minus(exponents)
    accepted = uniform < probability - _SLACK
    undecided = ~accepted & (uniform <= probability + _SLACK)
    for index in np.flatnonzero(undecided).tolist():
        accepted[index] = _accepted_exactly(int(first_bits[index]), exact(index), words)
    return accepted


def _accepted_exactly(known: int, x: Fraction, words: WordSource) -> bool:
    """Return True if U < exp(−x), reading bits of U after its first 53, ``known``, as needed."""
    bits = _UNIFORM_BITS
    while True:
        low, high = _exp_bounds(x, bits)
        if known + 1 <= low:
            return True
        if known >= high:
            return False
        known, bits = known << 64 | int(words(1)[0]), bits + 64


def _geometric(drawn: Words, words: WordSource) -> IntegerArray:
    """Return the number of powers e^−1, e^−2, … above each U: draws of P(V ≥ k) = e^−k."""
    first_bits = drawn >> np.uint64(64 - _UNIFORM_BITS)
    uniform = first_bits * 2.0**-_UNIFORM_BITS
    powers = _powers()
    counts = np.searchsorted(powers, uniform - _SLACK, side="right")
    undecided = (counts != np.searchsorted(powers, uniform + _SLACK, side="right")) | (counts == 0)
    result = (len(powers) - counts).astype(np.int64)
    for index in np.flatnonzero(undecided).tolist():
        result[index] = _geometric_exactly(int(first_bits[index]), words)
    return result


def _geometric_exactly(known: int, words: WordSource) -> int:
    """Return the number of powers e^−1, e^−2, … above U, reading bits of U as needed."""
    bits, count = _UNIFORM_BITS, 0
    while count < _MAX_COUNT:
        low, high = _exp_bounds(Fraction(count + 1), bits)
        if known + 1 <= low:
            count += 1
        elif known >= high:
            return count
        else:
            known, bits = known << 64 | int(words(1)[0]), bits + 64
    raise InputArithmeticError("a noise draw left the lattice: nothing was released; run again")


# exp(−x): in floating point by a table and a polynomial, and between integers.


def _exp_minus(exponents: FloatArray) -> FloatArray:
    """Compute exp(−x) within 2^−50, for x ≥ 0; above 47, exp(−47)."""
    of_wholes, of_parts, coefficients = _tables()
    x = np.minimum(exponents, _MAX_EXPONENT)
    wholes = x.astype(np.int64)
    rest: FloatArray = x - wholes
    parts = (rest * 64.0).astype(np.int64)
    rest -= parts / 64.0
    polynomial: FloatArray = np.full_like(rest, coefficients[-1])
    for coefficient in coefficients[-2::-1]:
        polynomial *= rest
        polynomial += coefficient
    polynomial *= of_parts[parts]
    polynomial *= of_wholes[wholes]
    return polynomial


@cache
def _tables() -> tuple[FloatArray, FloatArray, tuple[float, ...]]:
    """Return exp(−i) for i ≤ 47, exp(−j/64) for j < 64, and coefficients of exp(−r)."""
    wholes = np.array([_exp_float(Fraction(i)) for i in range(int(_MAX_EXPONENT) + 1)])
    parts = np.array([_exp_float(Fraction(j, 64)) for j in range(64)])
    return wholes, parts, (1.0, -1.0, 1.0 / 2.0, -1.0 / 6.0, 1.0 / 24.0, -1.0 / 120.0, 1.0 / 720.0)


@cache
def _powers() -> FloatArray:
    """Return e^−25, …, e^−1, ascending."""
    return np.array([_exp_float(Fraction(k)) for k in range(_COMPARED_POWERS, 0, -1)])


def _exp_float(x: Fraction) -> float:
    """Compute exp(−x) to the last bit or two, for x ≤ 47."""
    low, _ = _exp_bounds(x, 200)
    return low / (1 << 200)


def _exp_bounds(x: Fraction, bits: int) -> tuple[int, int]:
    """Return integers with low ≤ 2^bits·exp(−x) ≤ high, for x ≥ 0; they differ by 1 or 2."""
    # exp(−x) = exp(−y)^(2^halvings) with y ≤ 1/2, whose series alternates and falls; low ends are rounded down, high ends up.
    halvings = (2 * x.numerator // x.denominator).bit_length()
    precision = bits + halvings + 16
    shifted = x.numerator << (precision - halvings)
    y_low, y_high = shifted // x.denominator, -(-shifted // x.denominator)
    low = high = term_low = term_high = 1 << precision
    order = 0
    while True:
        order += 1
        term_low, term_high = _next_terms(term_low, term_high, y_low, y_high, precision, order)
        if term_high <= 1:
            low -= term_high  # the sum of odd order is a lower bound, the one of even order before it an upper bound
            break
        low, high = low - term_high, high - term_low
        order += 1
        term_low, term_high = _next_terms(term_low, term_high, y_low, y_high, precision, order)
        low, high = low + term_low, high + term_high
    for _ in range(halvings):
        low, high = low * low >> precision, -(-high * high >> precision)
    spare = precision - bits
    return low >> spare, -(-high >> spare)


def _next_terms(low: int, high: int, y_low: int, y_high: int, precision: int, order: int) -> tuple[int, int]:
    """Return bounds on y^order/order! from those on the term before, in units of 2^−precision."""
    return (low * y_low >> precision) // order, -((-high * y_high >> precision) // order)


_MAX_SCALE = 2.0**52
"""Largest scale: beyond it a draw could overflow int64, so the lattice must be coarser."""


def discrete_gaussian(scale: float, size: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw integers k with probability ∝ exp(−k²/(2·scale²)), shape (size,).

    ``scale`` is in lattice units, at most ``_MAX_SCALE``, and used as the exact rational number that the float is. Added to an
    integer query of ℓ2 sensitivity Δ, the noise is Δ²/(2·scale²)-zCDP exactly (Canonne, Kamath & Steinke 2020, Theorem 4).
    """
    scale = _checked(scale)
    if isinstance(generator, SecureGenerator):
        return gaussian_draws(scale, size)
    return np.rint(scale * generator.standard_normal(size)).astype(np.int64)


def discrete_laplace(scale: float, size: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """Draw integers k with probability ∝ exp(−|k|/scale).

    Parameters and result as in :func:`discrete_gaussian`.

    Added to an integer query of ℓ1 sensitivity Δ, it is Δ/scale-DP exactly (Ghosh, Roughgarden & Sundararajan 2012).
    """
    scale = _checked(scale)
    if isinstance(generator, SecureGenerator):
        return laplace_draws(scale, size)
    success = -math.expm1(-1.0 / scale)
    return generator.geometric(success, size) - generator.geometric(success, size)


def _checked(scale: float) -> float:
    if not 0 < scale <= _MAX_SCALE:
        raise out_of_range("scale", scale, f"between 0 and {_MAX_SCALE:g}")
    return float(scale)


# K-norm noise (Hardt & Talwar 2010): a uniform lattice point of a body of random size. The body of size t has N(t) = (2t + 1)^a
# · Π C(m, t) lattice points, a the number of single coordinates and C(m, t) = Σ_j 2^j binom(m, j) binom(t, j) those of a
# cross-polytope of m dimensions. P(k) ∝ Σ_{t ≥ ‖k‖} e^{−t/scale}, so that a size t of weight N(t)·e^{−t/scale} and a uniform
# point of its body have the law ∝ e^{−‖k‖/scale}. Both have rational probabilities, but for geometric draws
# (``docs/evidence/derivations/k-norm.md``).


def k_norm(scale: float, size: int, blocks: Sequence[int], generator: np.random.Generator) -> IntegerArray:
    """Draw one vector of ``size`` integers with probability ∝ exp(−‖k‖/scale).

    ``blocks`` are the sizes of blocks of the last coordinates. ‖k‖ is the largest of |k| over the coordinates before them and of
    Σ|k| over each block. Exact with every generator, if its bits are fair.
    Sizes are below 2^62 if (size + 1)·scale ≤ 2^52.
    """
    if isinstance(generator, SecureGenerator):
        return k_norm_draw(scale, size, blocks)
    return k_norm_draw(scale, size, blocks, lambda n: generator.integers(0, 2**64, n, dtype=np.uint64))


def k_norm_draw(scale: float, size: int, blocks: Sequence[int], words: WordSource = system_words) -> IntegerArray:
    """Draw as :func:`k_norm`, from uniform words."""
    singles = size - sum(blocks)

    def geometric(n: int) -> IntegerArray:
        draws = laplace_draws(scale, n, words)
        return draws[draws >= 0]

    # The size t of the body has weight N(t)·e^{−t/scale}. A sum of size + 1 geometric draws has weight
    # binom(t + size, size)·e^{−t/scale}, and N(t)·Π m! ≤ 2^size·(t + size)!/t!, equal in the limit.
    while True:
        body = int(sum(_first(size + 1, geometric).tolist()))
        points = (2 * body + 1) ** singles
        for dimension in blocks:
            points *= sum(_points_by_nonzeros(dimension, body)) * math.factorial(dimension)
        if _below(points, math.perm(body + size, size) << size, words):
            break
    parts = [_uniform_below_all(2 * body + 1, singles, words) - body]
    parts += [_point_of_cross_polytope(dimension, body, words) for dimension in blocks]
    return np.concatenate(parts)


def _points_by_nonzeros(dimension: int, size: int) -> list[int]:
    """Return 2^j binom(m, j) binom(t, j) for j = 0, …, m."""
    # The number of lattice points of a cross-polytope by their number of nonzero coordinates.
    factors = (2 * (dimension - j) * max(size - j, 0) for j in range(dimension))
    return list(accumulate(enumerate(factors, 1), lambda points, step: points * step[1] // step[0] ** 2, initial=1))


def _point_of_cross_polytope(dimension: int, size: int, words: WordSource) -> IntegerArray:
    """Draw a uniform lattice point with Σ|k| ≤ ``size``."""
    # How many coordinates are nonzero, which, how large, and their signs.
    by_nonzeros = _points_by_nonzeros(dimension, size)
    rank, nonzeros = _uniform_integer(sum(by_nonzeros), words), dimension
    while rank >= by_nonzeros[nonzeros]:
        rank -= by_nonzeros[nonzeros]
        nonzeros -= 1
    point = np.zeros(dimension, dtype=np.int64)
    # Positive integers whose sum is at most t are the gaps of a subset of 1, …, t.
    gaps = np.diff(np.sort(_subset(nonzeros, size, words)), prepend=-1)
    signs = 1 - 2 * _uniform_below_all(2, nonzeros, words)
    point[_subset(nonzeros, dimension, words)] = signs * gaps
    return point


def _subset(size: int, bound: int, words: WordSource) -> IntegerArray:
    """Draw a uniform subset of 0, …, bound − 1, in random order."""
    # The first different ones of independent draws.
    different = dict[int, None]()
    while len(different) < size:
        different |= dict.fromkeys(_uniform_below(bound, size, words).tolist())
    return np.array(list(different)[:size], dtype=np.int64)


def _uniform_below_all(bound: int, size: int, words: WordSource) -> IntegerArray:
    """Draw ``size`` uniform integers from 0 to bound − 1."""
    return _first(size, lambda n: _uniform_below(bound, n, words))


def _uniform_integer(bound: int, words: WordSource) -> int:
    """Draw a uniform integer from 0 to bound − 1, of any size."""
    bits = (bound - 1).bit_length()
    while True:
        drawn = int.from_bytes(words(bits // 64 + 1).tobytes(), "little") & ((1 << bits) - 1)
        if drawn < bound:
            return drawn


def _below(numerator: int, denominator: int, words: WordSource) -> bool:
    """Return True with probability numerator/denominator."""
    # Bits of one uniform number are read as needed.
    while True:
        digit, (expected, numerator) = int(words(1)[0]), divmod(numerator << 64, denominator)
        if digit != expected:
            return digit < expected


# Names of levels: noise on −k, …, k, with probabilities that are whole numbers over their sum.


def names_above_threshold(
    counts: Mapping[str, int], weights: Sequence[int], generator: np.random.Generator
) -> dict[str, int]:
    """Return the names whose count plus noise is above k, with this sum.

    ``weights`` are in proportion to the probabilities of the noise 0, …, k.
    """
    above, k = list(accumulate((*weights[:0:-1], *weights))), len(weights) - 1

    def words(size: int) -> Words:
        return generator.integers(0, 2**64, size, dtype=np.uint64)

    source = system_words if isinstance(generator, SecureGenerator) else words
    noisy = {name: counts[name] + bisect(above, _uniform_integer(above[-1], source)) - k for name in sorted(counts)}
    return {name: count for name, count in noisy.items() if count > k}


# One of finitely many things, with probabilities by their scores.


def choose_by_score(
    scores: npt.NDArray[np.float64] | npt.NDArray[np.int64], rate: float, generator: np.random.Generator
) -> int:
    """Draw an index i with probability ∝ exp(rate·scores[i])."""
    # With a `SecureGenerator` and integer scores the draw is exact; otherwise it is the floating-point Gumbel trick, in log
    # space: no weight overflows.
    if scores.dtype == object:
        raise AssertionError("scores must be float64 or integers that fit in int64")
    if isinstance(generator, SecureGenerator) and np.issubdtype(scores.dtype, np.integer) and rate > 0.0:
        return _chosen_exactly([int(score) for score in scores], rate, system_words)
    return int(np.argmax(rate * scores.astype(np.float64) + generator.gumbel(size=len(scores))))


def _chosen_exactly(scores: Sequence[int], rate: float, words: WordSource) -> int:
    """Draw an index i with probability ∝ exp(rate·scores[i])."""
    # A uniform index is kept with probability exp(−rate·(best − scores[i])).
    best = max(scores)
    short = [best - score for score in scores]
    with np.errstate(over="ignore"):
        exponents = rate * np.array(short, dtype=np.float64)

    def candidates(n: int) -> IntegerArray:
        tried = _uniform_below(len(scores), n, words)
        return tried[_accepted(exponents[tried], lambda index: Fraction(rate) * short[int(tried[index])], words)]

    while not len(kept := candidates(min(_BATCH, 4 * len(scores)))):
        pass
    return int(kept[0])


# Random symmetric matrices in floating point: normal, matrix Laplace, isotropic, Wishart.


def symmetric_gaussian(n_features: int, noise_scale: float, rng: np.random.Generator) -> FloatArray:
    """Draw a symmetric matrix of normal noise, SD σ = ``noise_scale`` on the diagonal.

    Shape (n_features, n_features). Off the diagonal the variance is σ²/2, so that the noise is isotropic in svec, the Frobenius
    geometry in which the sensitivity is measured.
    """
    noise = np.triu(noise_scale / math.sqrt(2.0) * rng.standard_normal((n_features, n_features)), 1)
    noise += noise.T
    noise[np.diag_indices(n_features)] = noise_scale * rng.standard_normal(n_features)
    return noise


def matrix_laplace(d: int, rate: float, rng: np.random.Generator) -> FloatArray:
    """Draw the difference of two Wisharts, N = (W₁ − W₂)/(2·rate).

    W₁, W₂ ~ Wishart_d(I, d+1) are independent.

    Its density f satisfies |log f(N + X) − log f(N)| ≤ rate·‖X‖_* for every symmetric X (‖·‖_* the nuclear norm), so added to a
    query of nuclear sensitivity Δ it is rate·Δ-DP; at d = 1 it is the Laplace distribution of scale 1/rate. Proof in
    ``docs/evidence/derivations/matrix_laplace.md``. Entries are uncorrelated, with variance (d+1)/rate² on and (d+1)/(2 rate²)
    off the diagonal.

    Parameters
    ----------
    d : int
        Dimension.
    rate : float
        c above; noise is proportional to 1/rate.
    rng : numpy.random.Generator

    Returns
    -------
    ndarray of shape (d, d), symmetric

    Examples
    --------
    >>> noise = matrix_laplace(4, 0.5, np.random.default_rng(0))
    >>> noise.shape, bool((noise == noise.T).all())
    ((4, 4), True)
    """
    _check_size_and_rate(d, rate)
    # The same distribution by one product: with U = (P+Q)/√2 and V = (P−Q)/√2, UᵀU − VᵀV = PᵀQ + QᵀP.
    product = rng.standard_normal((d + 1, d)).T @ rng.standard_normal((d + 1, d))
    return (product + product.T) / (2.0 * rate)


def isotropic(d: int, rate: float, rng: np.random.Generator) -> FloatArray:
    """Draw a symmetric matrix N of density ∝ exp(−rate·‖N‖_F), shape (d, d).

    In svec coordinates, the diagonal and √2 times the entries above it, m = d(d+1)/2 in all: a uniform direction times a
    Gamma(m, 1/rate) radius. Added to a query of Frobenius sensitivity Δ it is rate·Δ-DP; at d = 1 it is the Laplace
    distribution of scale 1/rate. Proof in ``docs/evidence/derivations/isotropic.md``. Entries are uncorrelated, not independent,
    with variance (m+1)/rate² on and (m+1)/(2 rate²) off the diagonal.
    """
    _check_size_and_rate(d, rate)
    # An isotropic normal matrix has a uniform direction; its norm is 0 with probability 2^−50 at most, and then refused.
    direction = symmetric_gaussian(d, 1.0, rng)
    norm = float(np.linalg.norm(direction))
    if norm == 0.0:
        raise InputArithmeticError("a noise draw was zero: nothing was released; run again")
    return (rng.standard_gamma(d * (d + 1) / 2) / rate / norm) * direction


def _check_size_and_rate(d: int, rate: float) -> None:
    check_at_least("d", d)
    check_positive("rate", rate)


# Draws as the filter priced them: by the law, rounded and dithered.

_KEPT_BITS = 30
# Bits per SD to which floating-point noise is resolved. Uniform integers replace the bits below.
_DITHER_SHARE = 10


def coordinates_of(query: npt.ArrayLike) -> int:
    """Return the number of coordinates of a query with separate noise."""
    # The upper triangle of a symmetric matrix.
    shape = np.shape(query)
    return shape[0] * (shape[0] + 1) // 2 if len(shape) == 2 else math.prod(shape)


@singledispatch
def noised(law: DrawLaw, query: Any, generator: np.random.Generator) -> Any:
    """Draw the answer to a query under a noise distribution."""
    # Returns an ndarray, float or int of the query's shape: integers for draws on a lattice, else values without low
    # bits; the index of the chosen score.
    import_module("dpmoments.papers.sampling")  # registers the samplers of its laws
    if (sampler := noised.dispatch(type(law))) is noised.dispatch(object):
        raise InputTypeError(f"no sampler for noise {type(law).__name__}")
    return sampler(law, query, generator)


@noised.register
def _(law: DiscreteGaussian, query: Any, generator: np.random.Generator) -> IntegerArray:
    if law.off_diagonal_scale is None:
        exact = np.asarray(query)
        return _add_integers(exact, discrete_gaussian(law.scale, exact.size, generator))
    exact = _upper_triangle_mirrored(query)
    size = len(exact)
    diagonal = discrete_gaussian(law.scale, size, generator)
    off_diagonal = discrete_gaussian(law.off_diagonal_scale, size * (size - 1) // 2, generator)
    return _add_integers(exact, _symmetric_from_triangle(diagonal, off_diagonal))


@noised.register
def _(law: DiscreteLaplace, query: Any, generator: np.random.Generator) -> IntegerArray:
    draws = discrete_laplace(law.scale, coordinates_of(query), generator)
    if np.ndim(query) == 1:
        return _add_integers(np.asarray(query), draws)
    exact = _upper_triangle_mirrored(query)
    return _add_integers(exact, _symmetric_from_triangle(draws[: len(exact)], draws[len(exact) :]))


@noised.register
def _(law: KNorm, query: Any, generator: np.random.Generator) -> IntegerArray:
    exact = np.asarray(query)
    return _add_integers(exact, k_norm(law.scale, exact.size, law.blocks, generator))


@noised.register
def _(law: LevelSelection, query: Any, generator: np.random.Generator) -> dict[str, int]:
    return names_above_threshold(query, law.weights, generator)


@noised.register
def _(law: MatrixLaplaceDraw, query: Any, generator: np.random.Generator) -> IntegerArray:
    size = len(query)
    noise, deviation = matrix_laplace(size, law.rate, generator), math.sqrt((size + 1) / 2.0) / law.rate
    return with_rounded(noise, deviation, law.bits, query, generator)


@noised.register
def _(law: IsotropicDraw, query: Any, generator: np.random.Generator) -> IntegerArray:
    size = len(query)
    noise, deviation = isotropic(size, law.rate, generator), math.sqrt((coordinates_of(query) + 1) / 2.0) / law.rate
    return with_rounded(noise, deviation, law.bits, query, generator)


def with_rounded(
    noise: FloatArray, deviation: float, bits: int, query: Any, generator: np.random.Generator
) -> IntegerArray:
    """Return a symmetric query plus floating-point noise rounded to its lattice."""
    # ``noise`` is in unit-ball units, the lattice in units of 2^(−2·bits); ``deviation`` is the off-diagonal SD.
    scaled = noise * 4.0**bits
    if not float(np.abs(scaled).max()) < 2.0**52:
        raise InputArithmeticError("a noise draw left the lattice: nothing was released; run again")
    rounded = np.rint(scaled).astype(np.int64)
    uniform_bits = math.frexp(math.ldexp(deviation, 2 * bits))[1] - 1 - _DITHER_SHARE
    if uniform_bits >= 1:
        size, half = len(rounded), 1 << (uniform_bits - 1)
        dither = generator.integers(-half, half, size * (size + 1) // 2, dtype=np.int64)
        rounded += _symmetric_from_triangle(dither[:size], dither[size:])
    return _add_integers(_upper_triangle_mirrored(query), rounded)


@noised.register
def _(law: Choice, query: Any, generator: np.random.Generator) -> int:
    return choose_by_score(np.asarray(query), 0.5 * law.epsilon, generator)


def _upper_triangle_mirrored(query: npt.ArrayLike) -> IntegerArray:
    """Return the symmetric matrix with this upper triangle."""
    # Nothing below the diagonal comes out without noise.
    mirrored: IntegerArray = np.array(query)
    rows, columns = _above_diagonal(len(mirrored))
    mirrored[columns, rows] = mirrored[rows, columns]
    return mirrored


@lru_cache(maxsize=8)
def _above_diagonal(size: int) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
    """Return rows and columns of the entries above the diagonal, row by row."""
    rows, columns = np.triu_indices(size, 1)
    rows.setflags(write=False)
    columns.setflags(write=False)
    return rows, columns


def _add_integers(matrix: IntegerArray, noise: npt.NDArray[np.int64]) -> IntegerArray:
    """Return the exact sum of two integer arrays, in int64 or in Python integers."""
    # Not by the largest absolute value: that of −2^63 is itself in int64.
    fits = matrix.dtype != object and int(matrix.min(initial=0)) > -(2**62) and int(matrix.max(initial=0)) < 2**62
    return (matrix if fits else matrix.astype(object)) + noise


def _symmetric_from_triangle(
    diagonal: npt.NDArray[np.int64], off_diagonal: npt.NDArray[np.int64]
) -> npt.NDArray[np.int64]:
    """Return the symmetric matrix with this diagonal and, row by row, the entries above it."""
    size = len(diagonal)
    matrix = np.zeros((size, size), dtype=np.int64)
    rows, columns = _above_diagonal(size)
    matrix[rows, columns] = off_diagonal
    matrix[columns, rows] = off_diagonal
    np.fill_diagonal(matrix, diagonal)
    return matrix


def without_low_bits(values: FloatArray, *, down: bool = False) -> FloatArray:
    """Round a floating-point sampler's result to 2^−30 of its largest entry, or down."""
    # The last bits of such a draw follow the arithmetic that made it, and that depends on the exact table: an
    # eigenvalue of 1 or of 1 − 2^−53 revealed which of two tables it was. Rounded so coarsely, the output equals that
    # of real arithmetic except if a value falls within rounding error of a boundary of the grid.
    largest = float(np.abs(values).max(initial=0.0))
    if not 0.0 < largest < np.inf:
        return values
    exponent = int(np.frexp(largest)[1]) - _KEPT_BITS
    rounding = np.floor if down else np.rint
    return np.asarray(np.ldexp(rounding(np.ldexp(values, -exponent)), exponent))
