"""Refined coefficients of targets, forecast: their noise, and whether refining pays.

``docs/evidence/derivations/refined-regression.md`` has the formulas and the tables on which the constants were chosen.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dpmoments.analysis.answers import plain
from dpmoments.analysis.regressors import Regressors
from dpmoments.mechanisms.base import GAUSSIAN_LOSS_UNITS
from dpmoments.mechanisms.share_for_targets import clip_of_products, noise_of_average, rho_of_steps, signal_of_steps
from dpmoments.messages.message import Message
from dpmoments.planning.imagined_release import (
    EXPLAINED,
    MANY_TIMES,
    ForecastNoise,
    ImaginedRelease,
    ReleasePlan,
    typical_regression,
)
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.accounting import LossUnit, budget_for_rows
from dpmoments.privacy.budget import BudgetKind

ASSUMED_ROWS, _ASSUMED_SIGNAL = 10_000, 30.0
"""Number of rows, and signal over noise, that the decision to refine assumes."""
_LARGEST_RISK = 2.1
"""Excess risk of the steps, over that of the moments, above which a target is not refined."""
_LOSS_OF_MOMENTS = 1.15
"""Noise of Gaussian moments, over that without targets, above which pure ones stay pure."""


@dataclass(frozen=True)
class Refining:
    """Targets that a release refines, and how its losses add up."""

    targets: tuple[str, ...]
    loss_unit: LossUnit


def refining(setting: ReleasePlan, targets: Sequence[str]) -> Refining:
    """Return the targets to refine, from public numbers."""
    # These are the schema, the budget and the noise of the plan. If that is not known beforehand, all are refined. A release
    # has no guesses of its caller: a forecast with some must say what the release will do.
    setting = replace(setting, typical=TypicalTable.of(setting.typical.schema), refines=None)
    release, unit = _imagined(setting), _loss_unit(setting)
    if release is None:
        return Refining(tuple(targets), unit)
    setting = replace(setting, refines=unit)
    risks = {name: _risk(release, setting, name, len(targets)) for name in targets}
    return Refining(tuple(name for name, risk in risks.items() if not risk > _LARGEST_RISK), unit)


def _loss_unit(setting: ReleasePlan) -> LossUnit:
    """Return how losses add up: pure moments stay pure if Gaussian noise is clearly larger."""
    gaussian = GAUSSIAN_LOSS_UNITS[setting.budget.kind]
    plain = replace(setting, n_rows=ASSUMED_ROWS, refines=None)
    if setting.budget.kind is not BudgetKind.APPROXIMATE or plain.plan.cost.kind is not BudgetKind.PURE:
        return gaussian
    pure, beside = plain.noise, replace(plain, refines=gaussian).noise
    if pure is None or beside is None:
        return LossUnit.PURE_AND_GAUSSIAN
    larger = _cell_variance(beside.release) > _LOSS_OF_MOMENTS**2 * _cell_variance(pure.release)
    return LossUnit.PURE_AND_GAUSSIAN if larger else gaussian


def not_refined(targets: Sequence[str], refined: Sequence[str]) -> Message | None:
    """Return which targets are not refined, and why; None if all are."""
    lost = [name for name in targets if name not in refined]
    return Message("targets-not-refined", names=lost) if lost else None


@dataclass(frozen=True)
class TargetForecast:
    """Forecast of a target before a release."""

    target: str
    pays: bool  # false if the release would not refine it
    # with `unrefined`: noise SDs of a standardized coefficient, one half explained: refined, and of a release without
    # targets. Infinite if noise hides it, NaN if it is not known beforehand.
    refined: float
    unrefined: float

    @classmethod
    def of(cls, setting: ReleasePlan, targets: Sequence[str], chosen: Refining) -> tuple[TargetForecast, ...]:
        """Forecast all targets of a release."""
        plain, refined = replace(setting, refines=None).noise, refined_noise(setting, targets, chosen)
        return tuple(
            cls(name, name in chosen.targets, noise, _unrefined_noise(plain, name))
            for name, noise in zip(targets, refined, strict=True)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        numbers = {name: plain(getattr(self, name), finite=True) for name in ("refined", "unrefined")}
        return {"target": self.target, "pays": self.pays, **numbers}


def _risk(release: ImaginedRelease, setting: ReleasePlan, target: str, n_targets: int) -> float:
    """Return the excess risk of refined coefficients, over those of the moments."""
    # To first order. A number is explained to one half, a share not at all.
    features, index = _regression(release, target)
    deviations, _ = setting.typical.in_unit_ball
    own, k = deviations[index] ** 2, len(features)
    inverse = np.linalg.pinv(release.unit_ball_covariance[np.ix_(features, features)], hermitian=True)
    # The typical regressor: a ridge hardly pays for directions of little variance.
    typical = float(np.median(np.diag(inverse)))
    explained = 0.0 if setting.typical.shares[index] else EXPLAINED
    cell = _cell_variance(release)
    clip = clip_of_products(_ASSUMED_SIGNAL, (1.0 - explained) * own, 1.0 + k)
    steps = noise_of_average(clip, _rho_of_steps(setting, n_targets), setting.neighbors)
    return float(steps**2 / (cell * (1.0 + explained * own * typical) * typical))


def refined_noise(setting: ReleasePlan, targets: Sequence[str], chosen: Refining) -> list[float]:
    """Return noise SDs of refined standardized coefficients of each target, one half explained."""
    # NaN if the noise is not known beforehand.
    setting = replace(setting, refines=chosen.loss_unit)
    release = _imagined(setting)
    if release is None:
        return [math.nan] * len(targets)
    rho, result = _rho_of_steps(setting, len(chosen.targets) or 1), []
    for target in targets:
        features, index = _regression(release, target)
        own, size = setting.typical.in_unit_ball[0][index] ** 2, 1.0 + len(features)
        clip = clip_of_products(signal_of_steps(setting.n_rows, size, rho), (1.0 - EXPLAINED) * own, size)
        noise = noise_of_average(clip, rho, setting.neighbors)
        result.append(float(noise / (setting.n_rows * math.sqrt(own))) if own > 0.0 else math.inf)
    return result


def _unrefined_noise(noise: ForecastNoise | None, target: str) -> float:
    if noise is None:
        return math.nan
    fit = typical_regression(noise.release, noise.release.feature_names.index(target))
    return math.inf if fit is None else fit.noise


def _rho_of_steps(setting: ReleasePlan, n_targets: int) -> float:
    """Return the ρ of all steps of a target, for one row of a privacy unit."""
    unit = setting.refines or GAUSSIAN_LOSS_UNITS[setting.budget.kind]
    return rho_of_steps(budget_for_rows(setting.budget, unit, setting.privacy_unit), unit) / n_targets


def _imagined(setting: ReleasePlan) -> ImaginedRelease | None:
    """Return the likeliest release without targets; None if its noise is not known beforehand."""
    noise = replace(setting, n_rows=ASSUMED_ROWS, refines=None).noise
    return None if noise is None else noise.release


def _cell_variance(release: ImaginedRelease) -> float:
    """Return the median variance of the noise on a cell off the Gram matrix's diagonal."""
    variances = release.noise.cell_variances(np.arange(1, len(release.feature_names) + 1))
    return float(np.median(variances[~np.eye(len(variances), dtype=bool)]))


def _regression(release: ImaginedRelease, target: str) -> tuple[list[int], int]:
    """Return the indices of the regressors, no level left out as too rare, and of the target."""
    many = replace(release, n_rows=release.n_rows * MANY_TIMES)
    chosen = Regressors.chosen(many, target, None, True, None)
    return list(chosen.features), chosen.target
