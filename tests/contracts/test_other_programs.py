"""Formulas, instruments, scales and ratios are those of other programs where there is no noise.

Their values are kept in a file (``references/other_programs.py``). An exported script is run by R with lavaan there, with noise.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd
import pytest

import dpmoments as dpm
from dpmoments.analysis import formula as formulas
from dpmoments.analysis import scales
from references.other_programs import BOOLEANS, EXPORTED, FORMULAS, ITEMS, KEPT, LEVELS, NUMBERS, table
from support.drawn_releases import drawn, planted
from support.noise_models import gaussian

BOUNDS = {"x": (0, 80), "a": (0, 8), "b": (0, 8), "y": (-8, 24)}
SCHEMA = dpm.Schema(
    *(dpm.Numeric(name, *BOUNDS.get(name, (-8, 8))) for name in NUMBERS),
    *(dpm.Categorical(name, levels) for name, levels in LEVELS.items()),
    *(dpm.Boolean(name) for name in BOOLEANS),
    *(dpm.Power("x", 2), dpm.Product("x", "sex"), dpm.Product("a", "b"), dpm.Product("x", "s")),
    item_lists={"first": ITEMS[:3], "second": ITEMS[3:]},
)
UNEQUAL = {
    "ratios": (1e-4, "intervals are by Student's distribution, theirs are by the normal one"),
    "semopy": (3e-4, "it stops early: 'one factor' has more digits"),
    "uniquenesses": (2e-5, "factor_analyzer stops early: 'factanal' has more digits"),
    "communalities": (2e-5, "factor_analyzer stops early"),
}
"""Answers that are not equal to six digits, and why."""


@cache
def released() -> dpm.MomentRelease:
    return dpm.release(table(), SCHEMA, epsilon=1e13, repair="none", mechanism="laplace", insecure_seed=0)


@cache
def exact() -> dpm.MomentRelease:
    """The release with the table's own moments, and no noise."""
    data = pd.get_dummies(table(), columns=[*LEVELS], prefix_sep="=").astype(float)
    names = [re.sub(r"(\w+)\^2", r"\1:\1", name).split(":") for name in released().feature_names]
    of_table = drawn(
        released(), np.column_stack([np.prod([data[each] for each in name], axis=0) for name in names]), None
    )
    return replace(of_table, noise_model=gaussian(len(names), 0.0, 0.0, 0.0, 0.0))


def fitted(release: dpm.MomentRelease, formula: str) -> list[float]:
    """Parameters in the order of patsy, which has levels first."""
    fit = release.ols(formula, cov_type="nonrobust")
    order = sorted(
        fit.names,
        key=lambda name: (name != "(intercept)", not re.match(r"g=|sex=\w+$|s$|C\([^:]*$", name), ":" in name),
    )
    return [*fit.params[order], *fit.bse[order], fit.rsquared, *fit.predict(table().iloc[:3])]


def ours(release: dpm.MomentRelease) -> dict[str, Sequence[float]]:
    instruments = release.iv("w ~ 1 + a + [d ~ z1 + z2]")
    assert instruments.sargan is not None
    ratios = release.cross_table("s", "ill")
    loadings = release.factor_analysis(1, ITEMS[:4]).loadings_[:, 0]
    found: dict[str, Any] = {formula: fitted(release, formula) for formula in FORMULAS}
    found |= {
        "condition_number": [release.ols("y ~ x + a").condition_number],
        "vif": release.ols("y ~ x + z1 + d").vif.value,
        "ratios": [ratios.oddsratio, ratios.riskratio, *ratios.oddsratio_confint(), *ratios.riskratio_confint()],
        "cancorr": release.cancorr("first", "second").cancorr.value[:2],  # the third is not estimable
        "oaxaca": release.oaxaca("y", ["x"], by="s").value[[1, 2, 3, 0]],
        "iv": [*instruments.params, *instruments.std_errors],
        "partial_r2": [instruments.first_stage["d"]["partial_r2"]],
        "sargan": [instruments.sargan.statistic],
        "wu_hausman": [instruments.wu_hausman.statistic],
        "alpha": release.cronbach_alpha("first").value,
        "mediation": release.mediation("w", "a", "y", ["b"]).value[[0, 2, 3, 4]],
        "semopy": loadings,
        "one factor": loadings,
        "factanal": release.factor_analysis(2, ITEMS).get_uniquenesses(),
    }
    for method in ("ml", "minres"):
        fit = release.factor_analysis(2, ["first", "second"], method, "none")  # type: ignore[arg-type]
        found |= {f"uniquenesses {method}": fit.get_uniquenesses(), f"communalities {method}": fit.get_communalities()}
    return found


def differing(release: dpm.MomentRelease, least: float) -> list[str]:
    """Return the answers that are not those of the other program; numbers near 0 beside others agree to digits of these."""
    expected, found = {name: each for name, each in KEPT.answers.items() if name != "lavaan"}, ours(release)
    assert set(found) == set(expected)
    tolerances = {name: max(least, UNEQUAL.get(name.split()[0], (0.0, ""))[0]) for name in found}
    return [
        f"{name}: {np.asarray(found[name])} is not {np.asarray(values)}"
        for name, values in expected.items()
        if len(found[name]) != len(values)
        or not np.allclose(found[name], values, tolerances[name], tolerances[name] * 1e-2 * np.abs(values).max())
    ]


@pytest.mark.long
def test_without_noise_answers_are_those_of_other_programs() -> None:
    assert differing(exact(), 1e-6) == []


@pytest.mark.slow
def test_at_a_huge_epsilon_answers_are_those_of_the_table() -> None:
    assert differing(released(), 1e-4) == []


def test_errors_of_lavaan_with_an_exported_script_are_ours() -> None:
    """Its estimates and robust errors, made of NACOV, hold the noise as the errors of `factor_analysis` do."""
    schema = dpm.Schema(*(dpm.Numeric(name, -8, 8) for name in ITEMS[:4]))
    release = dpm.release(table(), schema, rho=20.0, mechanism="gaussian", repair="none", insecure_seed=1)
    script = release.export("lavaan", ITEMS[:4])
    assert script.splitlines()[1:] == EXPORTED.read_text(encoding="utf-8").splitlines()[1:]
    found = release.factor_analysis(1, ITEMS[:4]).estimates
    errors = np.hypot(found.privacy_noise, found.sampling_noise)
    assert list(found.value[:4]) == pytest.approx(KEPT.answers["lavaan"][:4], rel=1e-6)
    assert list(errors[:4]) == pytest.approx(KEPT.answers["lavaan"][4:], rel=1e-2)  # theirs are at the model's moments
    assert (errors > 1.05 * found.sampling_noise)[:4].all()


@pytest.mark.long
@pytest.mark.parametrize(
    ("function", "before", "after", "found"),
    [
        (formulas._contrasts, "-np.ones(k - 1)", "-0.99 * np.ones(k - 1)", "Sum"),
        (formulas._Reader.product, "result[0] -= one[0] * other[0]", "result[0] -= 0.99 * one[0] * other[0]", "40)**2"),
        (scales.Factors.fitted, "unique[free] = solved", "unique[free] = 0.999 * solved", "uniquenesses"),
    ],
)
def test_a_fault_is_found(function: Any, before: str, after: str, found: str) -> None:
    with planted(function, before, after):
        assert any(found in name for name in differing(exact(), 1e-6))
