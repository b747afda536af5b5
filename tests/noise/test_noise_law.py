"""The contract of a noise law: what it states of noise holds for draws of the mechanism's own, and files name it."""

from __future__ import annotations

import itertools
import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import ClassVar

import mpmath
import numpy as np
import pytest
from scipy import integrate, stats

import dpmoments as dpm
from dpmoments.audit.exact import privacy_loss
from dpmoments.audit.verification import _FALSE_ALARM, checks
from dpmoments.mechanisms.additive import AdditivePlan
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.noise import law as base
from dpmoments.noise.entropy import insecure_generator
from dpmoments.noise.families import (
    GaussianNoise,
    IsotropicNoise,
    LaplaceNoise,
    MatrixLaplaceNoise,
    WishartNoise,
    _gamma_difference_log_tail,
    gamma_difference_quantile,
    gamma_quantile,
)
from dpmoments.noise.law import NoiseLaw, noise_law_classes, register_noise_law
from dpmoments.noise.pooled import CarriedNoise, PooledNoise
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.repair.repair import Repair, repair_gram
from support.opened_filter import Unchecked

FAILURE = 0.1
PLANS = [
    (dpm.mechanisms.Gaussian(), PrivacyBudget.zcdp(0.5)),
    (dpm.mechanisms.Gaussian(variance="entrywise"), PrivacyBudget.zcdp(0.5)),
    (dpm.mechanisms.Laplace(), PrivacyBudget.pure(1.0)),
    (dpm.mechanisms.MatrixLaplace(), PrivacyBudget.pure(1.0)),
    (dpm.mechanisms.Isotropic(), PrivacyBudget.pure(1.0)),
    (dpm.mechanisms.AdditiveWishart(), PrivacyBudget.approximate(1.0, 1e-6)),
]
LAWS = {
    "gaussian": GaussianNoise(3, 2.0, 1.0, 1.5, 4.0),
    "isotropic": IsotropicNoise(3, 11.0, 5.5, 6.0, 12.0, rate=1.0),
    "laplace": LaplaceNoise(3, 2.0, 2.0, 3.0, 4.0),
    "matrix-laplace": MatrixLaplaceNoise(3, 5.0, 2.5, 3.0, 6.0, rate=1.0),
    "wishart": WishartNoise(3, 4.0, 2.0, 3.0, 6.0, rate=1.0),
}
LAWS["pooled"] = PooledNoise.of(
    [CarriedNoise(LAWS["gaussian"], (0.0, 0.0, 0.0)), CarriedNoise(LAWS["gaussian"], (0.2, -0.1, 0.4))]
)
"""One of every registered law."""


def normal_of_the_same_variances(law: NoiseLaw) -> GaussianNoise:
    return GaussianNoise(**{entry.name: getattr(law, entry.name) for entry in fields(GaussianNoise)})


def draws(plan: AdditivePlan, n_draws: int, seed: int = 0) -> np.ndarray:
    """Noise on the augmented matrix, unit-ball units, shape (n_draws, D, D)."""
    unchecked = Unchecked(plan, insecure_generator(seed))  # a filter would refuse the second draw, and price each anew
    no_rows = np.zeros((plan.dimension, plan.dimension), dtype=np.int64)
    return np.array([plan.add_noise(unchecked, "noise", no_rows) for _ in range(n_draws)])


@pytest.mark.parametrize(("mechanism", "budget"), PLANS)
@pytest.mark.parametrize("d", [1, 4, 12])
def test_stated_bounds_hold(mechanism: Mechanism, budget: PrivacyBudget, d: int) -> None:
    plan = mechanism.plan(MomentShape(d), budget, "add_remove")
    law = plan.noise
    assert law is not None
    noise = draws(plan, 400)
    gram = noise[:, 1:, 1:]
    norms = np.linalg.norm(gram, 2, axis=(1, 2))
    block = np.linalg.norm(gram[:, : (d + 1) // 2, : (d + 1) // 2], 2, axis=(1, 2))
    sums = np.linalg.norm(noise[:, 0, 1:], axis=1) / plan.augmentation
    counts = np.abs(noise[:, 0, 0]) / plan.augmentation**2
    for found, bound in [
        (norms, law.operator_norm_bound(FAILURE)),
        (block, law.operator_norm_bound(FAILURE, (d + 1) // 2)),
        (sums, law.sum_norm_bound(FAILURE)),
        (counts, law.count_bound(FAILURE)),
    ]:
        assert (
            np.mean(found > bound) <= 1.4 * FAILURE
        )  # four standard deviations of 400 draws, where the bound is exact
        # planted fault: a tenth of the bound is exceeded far too often
        assert np.mean(found > bound / 10) > FAILURE
    assert law.operator_norm_bound(FAILURE, (d + 1) // 2) <= law.operator_norm_bound(FAILURE)


@pytest.mark.parametrize(("mechanism", "budget"), PLANS)
def test_stated_variances_are_those_of_the_draws(mechanism: Mechanism, budget: PrivacyBudget) -> None:
    plan = mechanism.plan(MomentShape(3), budget, "replace_one")
    law = plan.noise
    assert law is not None
    noise = draws(plan, 3000)
    assert np.var(noise[:, 1, 1]) == pytest.approx(law.diagonal_variance, rel=0.15)
    assert np.var(noise[:, 1, 2]) == pytest.approx(law.off_diagonal_variance, rel=0.15)
    assert law.sum_variance is not None
    assert np.var(noise[:, 0, 1]) / plan.augmentation**2 == pytest.approx(law.sum_variance, rel=0.15)
    assert law.count_variance == 0.0
    assert np.var(noise[:, 1, 1]) != pytest.approx(2 * law.diagonal_variance, rel=0.15)


# --- quantiles --------------------------------------------------------------------------------------------------------

BINS = 20
LEVELS = np.arange(1, BINS) / BINS
UNLIKELY = 1e-6


def quantiles(law: NoiseLaw, cell: str) -> np.ndarray:
    if cell == "count":
        return np.array([law.count_quantile(float(level)) for level in LEVELS])
    return np.array([law.cell_quantile(float(level), diagonal=cell == "diagonal") for level in LEVELS])


def p_value(noise: np.ndarray, edges: np.ndarray) -> float:
    """Of the numbers of independent draws between quantiles, which are equally likely: χ² with 19 degrees."""
    return float(stats.chisquare(np.bincount(np.searchsorted(edges, noise), minlength=BINS)).pvalue)


@pytest.fixture(scope="module")
def drawn() -> dict[str, tuple[AdditivePlan, dict[str, np.ndarray]]]:
    """By mechanism: its plan, and draws of its noise on cells that are independent of each other.

    Diagonal cells are, and cells off the diagonal that share no row or column.
    """
    found = {}
    for number, (mechanism, budget) in enumerate(PLANS):
        plan = mechanism.plan(MomentShape(6), budget, "add_remove")
        noise = draws(plan, 20_000, seed=number)
        found[str(mechanism)] = (
            plan,
            {
                "diagonal": noise[:, range(1, 7), range(1, 7)].ravel(),
                "off the diagonal": noise[:, [1, 3, 5], [2, 4, 6]].ravel(),
                "count": noise[:, 0, 0] / plan.augmentation**2,
            },
        )
    return found


@pytest.mark.parametrize("mechanism", [str(mechanism) for mechanism, _ in PLANS])
@pytest.mark.parametrize("cell", ["diagonal", "off the diagonal", "count"])
def test_quantiles_are_those_of_the_draws(drawn: dict, mechanism: str, cell: str) -> None:
    plan, noise = drawn[mechanism]
    law = plan.noise
    assert p_value(noise[cell], quantiles(law, cell)) > UNLIKELY
    # planted faults: a variance 10 % off (a fifth for the fewer draws of a count), and that of the other cells
    for factor in (0.8, 1.2) if cell == "count" else (0.9, 1.1):
        assert p_value(noise[cell], math.sqrt(factor) * quantiles(law, cell)) < UNLIKELY
    if cell != "count" and law.diagonal_variance != law.off_diagonal_variance:
        other = {"diagonal": "off the diagonal", "off the diagonal": "diagonal"}[cell]
        assert p_value(noise[cell], quantiles(law, other)) < UNLIKELY


@pytest.mark.parametrize("law", ["matrix-laplace", "laplace"])
def test_a_quantile_of_the_right_variance_and_another_law_is_found(drawn: dict, law: str) -> None:
    plan, noise = drawn[{"laplace": "Laplace(calibration='tight')", "matrix-laplace": "MatrixLaplace()"}[law]]
    assert plan.noise.name == law
    normal = normal_of_the_same_variances(plan.noise)
    for cell in ("diagonal", "off the diagonal"):
        assert p_value(noise[cell], quantiles(normal, cell)) < UNLIKELY


def test_the_skew_of_one_wishart_is_in_its_quantiles() -> None:
    """χ²_k less its mean on the diagonal, from few degrees of freedom; turned over it is another law."""
    law = WishartNoise(2, 3 / 2.0, 3 / 4.0, None, None, rate=1.0)  # k = 3
    rng = np.random.default_rng(0)
    noise = (rng.chisquare(3, 20_000) - 3) / 2
    assert p_value(noise, quantiles(law, "diagonal")) > UNLIKELY
    assert p_value(-noise, quantiles(law, "diagonal")) < UNLIKELY
    product = np.sum(rng.normal(size=(20_000, 3)) * rng.normal(size=(20_000, 3)), axis=1) / 2
    assert p_value(product, quantiles(law, "off the diagonal")) > UNLIKELY
    assert p_value(noise, quantiles(law, "off the diagonal")) < UNLIKELY


@pytest.mark.parametrize("shape", [0.5, 1.0, 2.5, 40.0, 1e4])
@pytest.mark.parametrize("deviations", [0.003, 0.7, 3.0, 8.0])
def test_the_tail_of_a_gamma_difference_is_that_of_its_definition(shape: float, deviations: float) -> None:
    x = deviations * math.sqrt(2 * shape)
    law = stats.gamma(shape)
    centre, reach = shape + x, 14 * math.sqrt(shape) + 40 + x
    low = max(shape - reach, 0.0)
    pieces = np.unique(np.clip([low, shape, shape + x / 2, centre, shape + reach], low, None))
    reference = sum(
        integrate.quad(lambda y: law.pdf(y) * law.sf(y + x), a, b, epsabs=0, epsrel=1e-9, limit=500)[0]
        for a, b in itertools.pairwise(pieces)
    )
    assert math.exp(_gamma_difference_log_tail(x, shape)) == pytest.approx(reference, rel=1e-6)


@pytest.mark.parametrize("shape", [2.0, 7.0, 0.99e4, 1.01e4, 2.0**25, 1e10])
@pytest.mark.parametrize("level", [1e-15, 5e-10, 0.2, 0.7, 1 - 1e-9])
def test_a_gamma_quantile_has_its_level_below_it(shape: float, level: float) -> None:
    """By integrals of the density in 30 digits: the incomplete gamma function itself is off at large shapes."""
    with mpmath.workdps(30):
        a = mpmath.mpf(shape)
        point = a + mpmath.sqrt(a) * mpmath.mpf(gamma_quantile(level, shape))

        def density(y: mpmath.mpf) -> mpmath.mpf:
            return mpmath.exp((a - 1) * mpmath.log(y) - y - mpmath.loggamma(a))

        if shape < 1e3:
            below = mpmath.gammainc(a, 0, point, regularized=True)
            found = below if level < 0.5 else 1 - below
        else:
            side = -1 if level < 0.5 else 1
            steps = [point + side * mpmath.sqrt(a) * step / 4 for step in range(33)]
            found = side * mpmath.quad(density, steps)
        assert float(found) == pytest.approx(min(level, 1 - level), rel=1e-6 if shape < 1e9 else 1e-5)


@pytest.mark.parametrize("level", [1e-300, 5e-10, 0.3, 0.5, 0.9, 1 - 1e-9])
def test_quantiles_at_the_ends_of_what_there_is(level: float) -> None:
    laplace = LaplaceNoise(1, 2.0, 2.0, 2.0, 2.0)
    assert gamma_difference_quantile(level, 1.0) == pytest.approx(
        laplace.standard_quantile(level, diagonal=True), rel=1e-9
    )
    if level > 1e-100:
        normal = stats.norm.ppf(level)
        for shape in (0.99e8, 1e9):
            assert gamma_difference_quantile(level, shape) == pytest.approx(normal, abs=1e-6)
        for degrees in (0.99e12, 1.01e12):
            law = WishartNoise(1, degrees / 2, degrees / 4, None, None, rate=1.0)
            assert law.standard_quantile(level, diagonal=True) == pytest.approx(normal, abs=2e-5)


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_quantiles_of_any_law_are_within_its_bounds_and_those_of_cantelli(law: NoiseLaw) -> None:
    levels = [1e-12, 0.01, 0.3, 0.7, 0.99]
    for diagonal in (True, False):
        found = [law.cell_quantile(level, diagonal=diagonal) for level in levels]
        assert found == sorted(found)
        for level, quantile in zip(levels, found, strict=True):
            bound = NoiseLaw.standard_quantile(law, level, diagonal=diagonal)
            size = math.sqrt(law.diagonal_variance if diagonal else law.off_diagonal_variance)
            assert quantile <= bound * size if level > 0.5 else quantile >= bound * size
    assert law.count_quantile(0.01) == pytest.approx(
        law.cell_quantile(0.01, diagonal=True) * math.sqrt(law.count_variance / law.diagonal_variance)
    )
    assert -law.count_quantile(FAILURE / 2) <= law.count_bound(FAILURE)
    assert law.count_quantile(1 - FAILURE / 2) <= law.count_bound(FAILURE)
    assert replace(law, count_variance=0.0).count_quantile(1e-9) == 0.0
    assert replace(law, diagonal_variance=0.0).cell_quantile(1e-9, diagonal=True) == 0.0
    for level in (0.0, 1.0, math.nan):
        with pytest.raises(ValueError, match="level"):
            law.cell_quantile(level, diagonal=True)
    with pytest.raises(ValueError, match="no count"):
        replace(law, count_variance=None).count_quantile(0.5)


# --- names and files --------------------------------------------------------------------------------------------------


def test_the_tables_here_hold_every_registered_law() -> None:
    assert set(LAWS) == set(noise_law_classes())
    of_mechanisms = {plan.plan(MomentShape(2), budget, "add_remove").noise.name for plan, budget in PLANS}
    assert of_mechanisms == set(LAWS) - {"pooled"}


@pytest.mark.parametrize("name", LAWS)
def test_a_law_comes_back_from_its_plain_values(name: str) -> None:
    law = LAWS[name]
    assert law.name == name
    for entries in (law, replace(law, sum_variance=None, count_variance=None), replace(law, count_variance=0.0)):
        loaded = NoiseLaw.from_dict(json.loads(json.dumps(entries.to_dict())))
        assert loaded == entries
        assert type(loaded) is type(law)
    assert law not in [other for other in LAWS.values() if other is not law]


@pytest.mark.parametrize("name", LAWS)
def test_plain_values_that_are_no_law_are_refused(name: str) -> None:
    values = LAWS[name].to_dict()
    for key, value, words in [
        (
            "name",
            "gausian",
            "no noise law 'gausian': known are gaussian, isotropic, laplace, matrix-laplace, pooled, wishart",
        ),
        ("name", None, "name of the noise law"),
        ("skew", 1.0, "unknown entries 'skew'"),
        ("diagonal_variance", None, "no diagonal_variance"),
        ("diagonal_variance", -1.0, "diagonal_variance of the noise law"),
        ("off_diagonal_variance", math.inf, "off_diagonal_variance of the noise law"),
        ("sum_variance", math.nan, "sum_variance of the noise law"),
        ("count_variance", "1", "count_variance of the noise law"),
        ("count_variance", True, "count_variance of the noise law"),
        ("n_features", 0, "whole number"),
        ("n_features", 2.0, "whole number"),
        *([("rate", wrong, "rate") for wrong in (0.0, -1.0, None, math.nan, 1e200)] if "rate" in values else []),
    ]:
        with pytest.raises(ValueError, match=words):
            NoiseLaw.from_dict(values | {key: value})
    for key in values:
        with pytest.raises(ValueError, match=key):
            NoiseLaw.from_dict({other: value for other, value in values.items() if other != key})
    with pytest.raises(TypeError, match="mapping"):
        NoiseLaw.from_dict("gaussian")  # type: ignore[arg-type]


def test_a_law_of_no_name_is_not_made() -> None:
    with pytest.raises(TypeError, match="abstract"):
        NoiseLaw(2, 2.0, 1.0, None, None)  # type: ignore[abstract]


# --- a law from outside the package -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class StepNoise(NoiseLaw):
    """Independent cells of ±σ with equal chances, as a package of someone else might register."""

    name: ClassVar[str] = "steps"
    fairness: float

    def standard_quantile(self, level: float, *, diagonal: bool) -> float:  # noqa: ARG002
        return 1.0 if level > 0.5 else -1.0


@pytest.fixture
def step_noise(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[StepNoise]]:
    monkeypatch.setattr(base, "_LAWS", dict(base._LAWS))  # what a test registers goes with the test
    return register_noise_law(StepNoise)


@pytest.fixture
def released(step_noise: type[StepNoise], monkeypatch: pytest.MonkeyPatch) -> MomentRelease:
    """A release of a mechanism whose noise has the outside law."""
    plan_class = type(dpm.mechanisms.Gaussian().plan(MomentShape(1), PrivacyBudget.zcdp(1.0), "add_remove"))
    monkeypatch.setattr(plan_class, "noise", property(lambda plan: step_noise(**plan.moment_variances, fairness=0.5)))
    table = np.random.default_rng(0).uniform(-0.4, 0.4, (200, 4))
    return dpm.release(table, dpm.Schema.unit_ball(4), rho=0.5, mechanism="gaussian", insecure_seed=3)


def test_a_law_from_outside_is_saved_loaded_verified_and_repaired(released: MomentRelease, tmp_path: Path) -> None:
    released.save(tmp_path / "release.json")
    loaded = dpm.load(tmp_path / "release.json")
    assert isinstance(loaded.noise, StepNoise)
    assert loaded.noise == released.noise
    assert loaded.noise.fairness == 0.5
    assert all(check.passed for check in checks(loaded)), checks(loaded)
    # its quantiles are those that the check of the count asks for
    deviation = math.sqrt(loaded.noise.count_variance)
    for count, passed in ((-0.9 * deviation, True), (-1.1 * deviation, False)):
        assert checks(replace(loaded, noisy_count=count))[3].passed is passed
    other = replace(loaded, noise=replace(loaded.noise, fairness=0.4))
    assert checks(other)[-1].passed is False, "another noise than is calibrated anew"
    for repair in (Repair.SHRINK, Repair.ROTATION_INVARIANT, Repair.AUTO):
        repaired = loaded.with_repair(repair)
        assert np.linalg.eigvalsh(repaired.covariance).min() > -1e-9
        assert not np.allclose(repaired.covariance, loaded.with_repair("none").covariance)
    noisy = np.diag([30.0, 2.0, -3.0, 1.0])
    semicircle = normal_of_the_same_variances(loaded.noise)
    np.testing.assert_array_equal(
        repair_gram(noisy, loaded.noise, Repair.AUTO, None), repair_gram(noisy, semicircle, Repair.AUTO, None)
    )
    assert loaded.ridge("x0", ["x1"], alpha=0.1).coefficients is not None


def test_a_law_that_is_not_registered_is_refused_by_load(released: MomentRelease, tmp_path: Path, monkeypatch) -> None:
    released.save(tmp_path / "release.json")
    monkeypatch.delitem(base._LAWS, "steps")
    with pytest.raises(ValueError, match="no noise law 'steps': known are gaussian"):
        dpm.load(tmp_path / "release.json")


def test_a_law_without_methods_of_its_own_falls_back_to_what_holds_for_all() -> None:
    law = StepNoise(2, 2.0, 1.0, 4.0, 9.0, 0.5)
    assert law.operator_norm_bound(0.25) == pytest.approx(np.sqrt(6.0 / 0.25))
    assert law.sum_norm_bound(0.25) == pytest.approx(np.sqrt(2 * 4.0 / 0.25))
    assert law.count_bound(0.25) == pytest.approx(3.0 / 0.5)
    assert law.spectral_skews == (0.0, 0.0)
    assert NoiseLaw.standard_quantile(law, 0.9, diagonal=True) == pytest.approx(3.0)
    shift = np.eye(2), np.zeros(2), 1.0
    assert privacy_loss(law, *shift, 0.0) is None
    assert privacy_loss(replace(law, count_variance=0.0), *shift, 0.0) == math.inf
    with pytest.raises(ValueError, match="failure"):
        law.operator_norm_bound(1.0)
    law = replace(law, sum_variance=None, count_variance=None)
    with pytest.raises(ValueError, match="sum"):
        law.sum_norm_bound(0.1)
    with pytest.raises(ValueError, match="count"):
        law.count_bound(0.1)


@pytest.mark.usefixtures("step_noise")
def test_a_taken_name_and_none_are_refused() -> None:
    assert "steps" in noise_law_classes()
    with pytest.raises(ValueError, match="'steps' already"):
        register_noise_law(StepNoise)

    @dataclass(frozen=True)
    class Nameless(GaussianNoise):
        """It would be written under the name of another law."""

    with pytest.raises(ValueError, match="Nameless must state the name"):
        register_noise_law(Nameless)


# --- the check of a count -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("mechanism", "budget"), PLANS)
def test_a_count_is_doubted_from_where_noise_hardly_reaches(mechanism: Mechanism, budget: PrivacyBudget) -> None:
    """A count as low as noise makes it once in ten million is passed; one that it makes once in 10¹² is not."""
    table = np.zeros((0, 3))
    arguments = {"rho": budget.rho} if budget.rho else {"epsilon": budget.epsilon, "delta": budget.delta}
    made = dpm.release(table, dpm.Schema.unit_ball(3), mechanism=mechanism, insecure_seed=0, **arguments)
    for level, passed in ((1e-7, True), (_FALSE_ALARM, True), (1e-12, False)):
        count = made.noise.count_quantile(level)
        assert checks(replace(made, noisy_count=count))[3].passed is passed


@pytest.mark.parametrize("law", LAWS.values(), ids=LAWS)
def test_a_variance_written_as_an_integer_beyond_64_bits_is_a_float(law: NoiseLaw) -> None:
    """As a file may write it; arrays would hold it as an object."""
    for name in ("diagonal_variance", "off_diagonal_variance"):
        read = NoiseLaw.from_dict(law.to_dict() | {name: 2**64})
        assert getattr(read, name) == 2.0**64
        assert isinstance(getattr(read, name), float)
