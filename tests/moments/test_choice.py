"""The exponential mechanism over integer scores: frequencies against exact probabilities, drawn exactly and with a seed."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from dpmoments.privacy.sampling import choose_by_score, insecure_generator, secure_generator

LIMIT, UNSEEDED_LIMIT = 1e-4, 1e-7
"""As in `tests/moments/test_noise_laws.py`: bits of the operating system cannot be seeded."""
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
    draws = [choose_by_score(SCORES, rate, generator) for _ in range(3000)]
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
