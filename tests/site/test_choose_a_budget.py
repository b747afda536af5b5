"""The page on choosing a budget: its tables are current, its blocks run, its figures are those of independent formulas."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from benchmarks.practice.choose_a_budget import COMPUTED, EPSILONS, PAGE, PRACTICE, curve
from scipy.stats import norm

import dpmoments as dpm
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.curves import gaussian_noise_scale
from dpmoments.privacy.curves.composed import laplace_delta, randomized_response_delta
from dpmoments.privacy.curves.gaussian import gaussian_delta
from support.said import refused

SEVERAL_SECONDS = {"kinds", "split"}


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] if name in SEVERAL_SECONDS else []) for name in COMPUTED]
)
def test_the_tables_are_current(name: str) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (written,) = re.findall(f"<!-- {name}: begin -->\n\n(.*?)\n\n<!-- {name}: end -->", text, re.S)
    assert written.splitlines() == list(COMPUTED[name]()), "run python -m benchmarks.practice.choose_a_budget"


def test_the_blocks_of_the_page_run(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They continue one another."""
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.S):
        exec(compile(block, str(PAGE), "exec"), names)
    printed = capsys.readouterr().out
    assert "power at 5 %: 0.136" in printed
    assert "SP 800-226" in printed
    assert "matrix-laplace" in printed
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("epsilon", EPSILONS)
def test_an_attackers_power_is_that_of_the_best_test(epsilon: float) -> None:
    """Randomized response and Gaussian noise have their power in closed form; that of Laplace noise is its trade-off function."""
    wrong, pure = 0.05, PrivacyBudget.pure(epsilon)
    any_pure = curve(lambda at: randomized_response_delta(at, epsilon), pure).attacker_power(wrong)
    assert any_pure == pytest.approx(min(math.exp(epsilon) * wrong, 1.0 - math.exp(-epsilon) * (1.0 - wrong)), rel=1e-6)
    scale = gaussian_noise_scale(epsilon, 1e-6, 1.0)
    gaussian = curve(lambda at: gaussian_delta(at, 1.0, scale), PrivacyBudget.approximate(epsilon, 1e-6))
    truth = float(norm.cdf(norm.ppf(wrong) + 1.0 / scale))
    assert truth <= gaussian.attacker_power(wrong) <= truth * (1.0 + 1e-3)
    threshold = -math.log(2.0 * wrong)  # of a Laplace number about 0
    found = 0.5 * math.exp(epsilon - threshold) if epsilon < threshold else 1.0 - 0.5 * math.exp(threshold - epsilon)
    laplace = curve(lambda at: laplace_delta(at, epsilon), pure).attacker_power(wrong)
    assert found - 1e-9 <= laplace <= found * (1.0 + 1e-3)


def test_an_attackers_power_of_a_release_is_below_that_of_its_budget() -> None:
    import numpy as np

    release = dpm.release(np.zeros((100, 2)), dpm.Schema.unit_ball(2), epsilon=3.0, mechanism="matrix-laplace")
    stated = curve(lambda at: randomized_response_delta(at, 3.0), PrivacyBudget.pure(3.0))
    assert release.privacy_curve.attacker_power(0.05) < stated.attacker_power(0.05) - 0.1
    for share in (-0.1, 1.1, math.nan):
        with refused("out-of-range", parameter="false_positives"):
            release.privacy_curve.attacker_power(share)


def test_values_of_others_name_their_entries() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"`{entry}`" in text for *_, entry in PRACTICE)
