"""Targets named before the release: a share of the budget refines their coefficients.

``docs/evidence/derivations/refined-regression.md`` has the derivation, the proofs and the measurements.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, ClassVar

import numpy as np

from dpmoments.analysis.answers import in_floating_point
from dpmoments.analysis.refined_regression import TARGETS, RefinedRegression, StepsAnswer
from dpmoments.analysis.regression import PenalizedFit
from dpmoments.analysis.regressors import PenalizedLevels, Regressors
from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.values import rounded_down
from dpmoments.mechanisms.base import GAUSSIAN_LOSS_UNITS, MIXED_LOSS_UNITS, Mechanism, Plan, Recorded
from dpmoments.mechanisms.lattice_noise import with_gaussian_noise
from dpmoments.mechanisms.shape import Arithmetic, MomentShape, RunResult
from dpmoments.mechanisms.share_for_targets import (
    KEPT,
    STEPS,
    budget_of_moments,
    budgets_of_steps,
    check_targets,
    clip_of_products,
    noise_of_average,
    plan_of_moments,
    require_steps,
    signal_of_steps,
)
from dpmoments.mechanisms.synthetic_spectrum import ErrorsOnTable, SyntheticSpectrum
from dpmoments.messages.message import Message
from dpmoments.noise.models import NoiseModel
from dpmoments.planning.imagined_release import ReleasePlan
from dpmoments.planning.refined_targets import ASSUMED_ROWS, not_refined, refining
from dpmoments.planning.typical_table import TypicalTable
from dpmoments.privacy.accounting import Loss, LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import zcdp_noise_scale
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.origin import ReleaseOrigin
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.sensitivity import row_sum_l2
from dpmoments.privacy.unit import Neighbors, require_unit
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.repair.repair import Repair
from dpmoments.rows.kernel import LONGEST, SHARE_WEIGHT
from dpmoments.rows.rows import Rows
from dpmoments.schema.schema import Schema
from dpmoments.spending.run import Request, moment_release

_RIDGE = 0.6
"""Added to the variances of the regressors, in σ√k, σ the noise of a covariance."""
_LEAST_RESIDUAL = 0.02
"""Least residual variance that a release is believed to show, as a share of the target's."""
_BEST_KNOWN = 8.0
"""Variance of regressors, in σ√k, around which steps add most to the release's coefficients."""
_SCALES = np.append(0.0, np.geomspace(1e-3, 1e12, 140))
"""Candidates for the largest variance of a signal, in variances of the steps' noise."""
_STATED = 1e-2
"""Largest relative error of a file's clips and noise, by rounding."""
_MAX_BITS = 20


@dataclass(frozen=True)
class WithTargets(Mechanism):
    """A mechanism for moments, and steps that refine coefficients of targets."""

    inner: Mechanism  # releases the moments, with `RELEASE_SHARE` of ρ or `PURE_SHARE` of ε
    targets: tuple[str, ...]  # features, each regressed on all others with an intercept
    repair: Repair = Repair.AUTO
    pure: bool = False  # true if the draws for the moments are pure under (ε, δ)

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset({BudgetKind.ZCDP, BudgetKind.APPROXIMATE})
    summary: ClassVar[str] = "moments, and refined coefficients of targets"
    source: ClassVar[str] = "this library (docs/evidence/derivations/refined-regression.md)"

    @classmethod
    def of(
        cls, inner: Mechanism, schema: Schema, targets: Sequence[str], repair: Repair, *, pure: bool = False
    ) -> WithTargets:
        """Return the mechanism; refuse targets that are not features."""
        check_targets(schema, targets)
        return cls(inner, tuple(targets), repair, pure)

    @classmethod
    def if_it_pays(
        cls, inner: Mechanism, schema: Schema, targets: Sequence[str], repair: Repair, request: Request, *, mean: bool
    ) -> tuple[Mechanism, Message | None]:
        """Return the mechanism for the targets that pay, and what to say of the others."""
        # The inner one if none does. The choice reads no data, and no number of rows.
        check_targets(schema, targets)
        if request.privacy_unit is not None:
            require_unit(request.privacy_unit, schema.reserved_names, request.neighbors)
        require_steps(MomentShape.of(schema, mean=mean), request.budget)
        options = (ASSUMED_ROWS, request.budget, request.neighbors, inner, (), request.privacy_unit)
        setting = ReleasePlan(TypicalTable.of(schema), *options)
        _ = replace(setting, refines=GAUSSIAN_LOSS_UNITS[request.budget.kind]).plan  # or its refusal
        chosen = refining(setting, targets)
        pure = chosen.loss_unit is LossUnit.PURE_AND_GAUSSIAN
        refined = cls(inner, chosen.targets, repair, pure) if chosen.targets else inner
        return refined, not_refined(targets, chosen.targets)

    @property
    def loss_units(self) -> Mapping[BudgetKind, LossUnit]:  # type: ignore[override]
        return MIXED_LOSS_UNITS if self.pure else GAUSSIAN_LOSS_UNITS

    @property
    def name(self) -> str:
        return self.inner.name

    @property
    def options(self) -> dict[str, Any]:
        return self.inner.options

    def check_support(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> None:
        self.inner.check_support(shape, budget_of_moments(shape, budget, self.loss_units[budget.kind]), neighbors)

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> TargetsPlan:
        moments = plan_of_moments(self.inner, shape, budget, neighbors, self.loss_units[budget.kind])
        chosen = replace(self, inner=moments.mechanism)
        return TargetsPlan(
            chosen, shape, neighbors, budget, moments=moments, targets=chosen, chosen_because=moments.chosen_because
        )


@dataclass(frozen=True)
class TargetsPlan(Plan):
    """Calibrated :class:`WithTargets`: the plan of the moments, then the steps."""

    moments: Plan
    targets: WithTargets

    @property
    def arithmetic(self) -> Arithmetic:  # type: ignore[override]
        return self.moments.arithmetic

    @property
    def details(self) -> Mapping[str, Any]:
        return self.moments.details

    @property
    def passes(self) -> int | None:
        passes = self.moments.passes
        return None if passes is None else passes + STEPS * len(self.targets.targets)

    @property
    def unspent_reason(self) -> str | None:
        return self.moments.unspent_reason

    @property
    def expected_count_error(self) -> float | None:
        return self.moments.expected_count_error

    @property
    def expected_error(self) -> float | None:
        return self.moments.expected_error

    @property
    def guaranteed_error(self) -> float | None:
        return self.moments.guaranteed_error

    @property
    def expected_sum_error(self) -> float | None:
        return self.moments.expected_sum_error

    @property
    def model(self) -> NoiseModel | None:
        return self.moments.model

    def exact_errors_on(self, assumed: SyntheticSpectrum) -> ErrorsOnTable | None:
        return self.moments.exact_errors_on(assumed)

    def has_center(self, diagnostics: Mapping[str, Any]) -> bool | None:
        return self.moments.has_center(diagnostics)

    def bounds_of_run(self, release: Recorded) -> Mapping[str, float]:
        return self.moments.bounds_of_run(release)

    def rules_of_run(self, diagnostics: Mapping[str, Any]) -> tuple[Message, ...]:
        return self.moments.rules_of_run(diagnostics)

    def model_entries(self, diagnostics: Mapping[str, Any], receipt: Receipt) -> Mapping[str, Any] | None:
        """Return the model's entries from the draws for the moments. Refuse steps that no run makes."""
        count = len(receipt.draws) - STEPS * len(self.targets.targets)
        steps = [draw.what for draw in receipt.draws[max(count, 0) :]]
        if steps != [Message("residual-products", target=name, step=step) for name, step in self._steps()]:
            raise InputValueError(Message("steps-of-other-targets"))
        refined = [RefinedRegression.from_dict(entry).target for entry in diagnostics.get(TARGETS, ())]
        if refined != list(self.targets.targets):
            raise InputValueError(Message("steps-of-other-targets"))
        plan, unit, draws = self.moments, self.moments.loss_unit, receipt.draws[:count]
        if any(draw.loss.rho for draw in draws) or any(
            draw.loss.rho == 0 for draw in receipt.draws[count:] if self._mixed
        ):
            raise InputValueError(Message("steps-of-other-targets"))
        draws = tuple(replace(draw, loss=Loss(unit, draw.loss.amount)) for draw in draws)
        return plan.model_entries(diagnostics, Receipt(plan.neighbors, plan.cost, unit, draws))

    def states_its_noise(self, release: MomentRelease) -> bool:
        """Return True if stated clips and noise of the steps fit the draws."""
        of_targets: dict[str, Fraction] = dict.fromkeys(self.targets.targets, Fraction(0))
        for draw in release.receipt.draws[-STEPS * len(of_targets) :]:
            of_targets[str(draw.what.facts["target"])] += draw.loss.rho if self._mixed else draw.loss.amount
        for refined in map(RefinedRegression.from_dict, release.diagnostics.get(TARGETS, ())):
            rho = float(of_targets[refined.target])
            clip = _Start.of(release, refined.target, rho).clip
            noise = noise_of_average(clip, rho, self.neighbors)
            stated = refined.answer.clip, refined.answer.error, refined.clipped_error
            made = clip, noise, noise / (SHARE_WEIGHT * clip)
            if not np.allclose(stated, made, rtol=_STATED, atol=0.0):
                return False
        return True

    def _steps(self) -> list[tuple[str, int]]:
        return [(name, step + 1) for name in self.targets.targets for step in range(STEPS)]

    @property
    def _mixed(self) -> bool:
        return self.loss_unit is LossUnit.PURE_AND_GAUSSIAN

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> RunResult:
        """Release the moments, then refine one target after the other."""
        result = self.moments.run(rows, privacy_filter.for_part(self.moments.cost))
        release = moment_release(
            self.moments,
            result,
            privacy_filter.receipt,
            rows.schema,
            repair=self.targets.repair,
            origin=ReleaseOrigin.fresh(None, insecure_seed=0),
            private=False,
            table_size=self.shape.n_rows if self.neighbors.table_size_is_public else None,
        )
        if self._mixed:
            privacy_filter = privacy_filter.for_part(PrivacyBudget.zcdp(rounded_down(privacy_filter.left.rho)))
        rho = privacy_filter.left.as_budget.rho / len(self.targets.targets)
        rows = rows.in_unit_ball()
        refined = [self._refined(release, name, rho, rows, privacy_filter).to_dict() for name in self.targets.targets]
        return replace(result, diagnostics={**result.diagnostics, TARGETS: refined})

    @in_floating_point
    def _refined(
        self, release: MomentRelease, target: str, rho: float, rows: Rows, privacy_filter: PrivacyFilter
    ) -> RefinedRegression:
        """Return coefficients refined with this ρ, from the ridge fit of the moments."""
        start = _Start.of(release, target, rho)
        features, y = list(start.chosen.features), start.chosen.target
        k, n_rows, clip = len(features), float(max(release.n_rows, 1)), start.clip
        regressors = np.zeros((k + 1, len(release.feature_names)))
        regressors[:k, features] = start.whitening
        weights, center = start.coefficients, np.zeros(len(release.feature_names))
        center[[*features, y]] = start.center
        sensitivity, bits = row_sum_l2(self.neighbors), min(_MAX_BITS, (53 - (k + 1).bit_length()) // 2)
        average, answer, total, variance = np.zeros(k + 1), np.zeros(k + 2), 0.0, 0.0
        for step, share in enumerate(budgets_of_steps(rho), start=1):
            spent = min(float(share) * (1.0 - 1e-12), privacy_filter.left.as_budget.rho)
            regressors[k] = -weights[1:] @ regressors[:k]
            regressors[k, y] = 1.0
            exact = rows.clipped_products(regressors, center, float(weights[0]), clip, bits=bits)
            scale = zcdp_noise_scale(spent, sensitivity.value)
            what = Message("residual-products", target=target, step=step)
            noisy = with_gaussian_noise(privacy_filter, what, exact.sum, sensitivity, scale, bits=bits)
            total = KEPT * total + spent
            new = spent / total
            average = average + new * (weights - average)
            answer = answer + new * (LONGEST * clip * noisy - answer)
            variance = (1.0 - new) ** 2 * variance + (new * LONGEST * clip * scale) ** 2
            weights = average + answer[: k + 1] / n_rows
        change = weights[1:] - start.coefficients[1:]
        signal = signal_in(change, variance / n_rows**2, start.lacking)
        kept = float(np.linalg.norm(signal) / max(float(np.linalg.norm(change)), 1e-300))
        slopes = start.coefficients[1:] + signal
        refined = RefinedRegression(
            target=target,
            features=tuple(release.feature_names[index] for index in features),
            center=start.center,
            whitening=start.whitening,
            coefficients=np.append(weights[0], slopes) if kept > 0.0 else start.coefficients,
            clipped=float(answer[k + 1]) / (SHARE_WEIGHT * clip),
            clipped_error=math.sqrt(variance) / (SHARE_WEIGHT * clip),
            kept=kept,
            answer=StepsAnswer(average, answer[: k + 1], math.sqrt(variance), clip),
        )
        if refined.contradicts(release, start.chosen):
            return replace(refined, coefficients=start.coefficients, kept=0.0)
        return refined


def signal_in(change: FloatArray, noise: float, lacking: FloatArray) -> FloatArray:
    """Return what the steps changed less its noise, of this variance in each coordinate."""
    # What the first line lacks has these variances times a factor: that of least unbiased estimate of risk (Stein 1981).
    variances = _SCALES[:, None] * lacking / max(float(lacking.max()), 1e-300)
    shares = variances / (variances + 1.0)
    risks = ((1.0 - shares) ** 2 * change**2 + 2.0 * noise * shares).sum(axis=1)
    return np.asarray(shares[int(risks.argmin())] * change)


@dataclass(frozen=True, eq=False)
class _Start:
    """Features, preconditioner, first coefficients and clip, from the released moments."""

    chosen: Regressors  # levels of few rows too
    center: FloatArray
    whitening: FloatArray
    coefficients: FloatArray
    clip: float
    lacking: FloatArray  # (k,): variances of what the coefficients lack, up to a factor

    @classmethod
    def of(cls, release: MomentRelease, target: str, rho: float) -> _Start:
        chosen = Regressors.chosen(release, target, None, True, None)
        first = PenalizedFit.of(release, chosen, None)
        chosen = chosen.with_rare_levels
        features, y, k = list(chosen.features), chosen.target, len(chosen.features)
        # no level is set apart: slopes relative to reference levels have the length of all levels' coefficients
        relative = PenalizedLevels.of(release, chosen, rare=True).relative
        root = np.linalg.cholesky(relative @ relative.T)
        n_rows = float(max(release.n_rows, 1))
        mean, covariance = release.unit_ball_mean, release.unit_ball_covariance
        noise = _noise_off_diagonal(release) / n_rows
        block = root.T @ covariance[np.ix_(features, features)] @ root
        values, vectors = np.linalg.eigh(block)
        values = np.maximum(values, 0.0)
        raised = np.maximum(values + _RIDGE * noise * math.sqrt(k), 1e-30)
        factors = raised**-0.5
        cross, variance = root.T @ covariance[features, y], max(float(covariance[y, y]), 1e-30)
        slopes = np.linalg.solve(root, first.slopes)
        fitted = 2.0 * slopes @ cross - slopes @ block @ slopes
        error = noise**2 * float(np.sum(values * factors**4)) * (1.0 + float(slopes @ slopes))
        residual = min(max(max(variance - float(fitted), 0.0) + error, _LEAST_RESIDUAL * variance), variance)
        size = 1.0 + float(np.sum(values * factors**2))
        return cls(
            chosen=chosen,
            center=mean[[*features, y]],
            whitening=(root @ (vectors * factors)).T,
            coefficients=np.append(0.0, (vectors.T @ slopes) / factors),
            clip=clip_of_products(signal_of_steps(n_rows, size, rho), residual, size),
            lacking=raised / (values**2 + max(_BEST_KNOWN * noise * math.sqrt(k), 1e-30) ** 2),
        )


def _noise_off_diagonal(release: MomentRelease) -> float:
    """Return the median SD of the noise on a cell off the Gram matrix's diagonal."""
    if release.noise is None:
        return 0.0
    variances = release.noise.cell_variances(np.arange(1, len(release.feature_names) + 1))
    return float(np.sqrt(np.median(variances[~np.eye(len(variances), dtype=bool)])))
