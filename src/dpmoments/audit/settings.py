"""What is audited: every mechanism in everything it says it supports, with which options, effort and randomness."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.audit.procedure import LEVEL, audit
from dpmoments.audit.results import AuditEffort, AuditResult
from dpmoments.foundation.errors import InputValueError
from dpmoments.mechanisms import CoinPress, InverseGaussian, PrivatePreconditioning
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.registry import MECHANISMS, make_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.mechanisms.units import plan_before_release
from dpmoments.noise.entropy import insecure_generator, secure_generator
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit

DEFAULT_BUDGETS = (PrivacyBudget.pure(1.0), PrivacyBudget.approximate(1.0, 0.01), PrivacyBudget.zcdp(0.5))
"""One of each kind. δ is large so that the events it allows for are seen among some ten thousand draws."""
_CHOSEN: Mapping[str, Mechanism] = {
    # Few steps, so that some thousand runs can be afforded.
    "coinpress": CoinPress(eigenvalue_bounds=(0.1, 1.0), steps=2),
    "private-preconditioning": PrivatePreconditioning(eigenvalue_bounds=(0.1, 1.0)),
    # It refuses without a bound. This one is the smallest eigenvalue of the tables that have many rows on every axis.
    "inverse-gaussian": InverseGaussian(smallest_eigenvalue=30.0),
}
"""Options for mechanisms whose defaults are slow or refuse; all others have their defaults."""
_ALWAYS_WITH_MEAN = ("adaptive-ball", "auto")
"""Mechanisms audited only with count and mean: ``adaptive-ball`` has no release without; ``auto`` runs one of the others, and
those are audited without the mean too."""
_SLOW = ("iterative-eigenvectors", "kapralov-talwar", "log-scale-histogram")
"""Mechanisms of which a run takes several times as long as of the others."""
_SLOW_EFFORT = AuditEffort(pilot=300, final=2500)
"""The default effort for the mechanisms in ``_SLOW``."""
_TYPICAL_ROWS = 100
"""The public number of rows for which a mechanism must have a plan to be audited under ``replace_one``."""


@dataclass(frozen=True, slots=True)
class AuditSetting:
    """One row of the table of audits."""

    mechanism: Mechanism
    budget: PrivacyBudget
    neighbors: Neighbors
    mean: bool
    privacy_unit: PrivacyUnit | None = None

    def run(
        self,
        generator: np.random.Generator,
        *,
        n_features: int = 2,
        effort: AuditEffort | None = None,
        level: float = LEVEL,
    ) -> AuditResult:
        """The audit of this setting; with less effort for mechanisms that are slow, where none is given.

        With fewer features where the mechanism takes no more.
        """
        if effort is None and self.mechanism.name in _SLOW:
            effort = _SLOW_EFFORT
        return audit(
            self.mechanism,
            self.budget,
            self.neighbors,
            generator,
            mean=self.mean,
            n_features=_features_of(self.mechanism, n_features),
            effort=effort,
            level=level,
            privacy_unit=self.privacy_unit,
        )


@dataclass(frozen=True, slots=True)
class AuditPlan:
    """A table of audits to run.

    Attributes
    ----------
    refusals : mapping of str to str
        Mechanisms that support none of what was asked, each with its own words.
    """

    settings: tuple[AuditSetting, ...]
    refusals: Mapping[str, str]


def configuration(mechanism: Mechanism | str) -> Mechanism:
    """The mechanism with the options that it is audited with where nobody names others.

    Examples
    --------
    >>> configuration("inverse-gaussian").options["smallest_eigenvalue"]
    30.0
    """
    made = make_mechanism(mechanism)
    return _CHOSEN.get(made.name, made)


def audit_plan(
    mechanisms: Iterable[Mechanism] | None = None,
    *,
    budgets: Sequence[PrivacyBudget] = DEFAULT_BUDGETS,
    neighbors: Sequence[Neighbors] = tuple(Neighbors),
    n_features: int = 2,
    privacy_unit: PrivacyUnit | None = None,
) -> AuditPlan:
    """Every setting of several mechanisms.

    Parameters
    ----------
    mechanisms : iterable of Mechanism, optional
        Default: all of the registry, each in its :func:`configuration`.
    budgets, neighbors, n_features, privacy_unit
        As for :func:`_audit_settings`.

    Examples
    --------
    >>> from dpmoments.mechanisms import Gaussian, Laplace
    >>> plan = audit_plan([Gaussian(), Laplace()], budgets=[PrivacyBudget.pure(1.0)])
    >>> len(plan.settings), list(plan.refusals)
    (4, ['gaussian'])
    """
    result, refusals = list[AuditSetting](), dict[str, str]()
    for mechanism in map(configuration, MECHANISMS) if mechanisms is None else mechanisms:
        try:
            result += _audit_settings(
                mechanism, budgets=budgets, neighbors=neighbors, n_features=n_features, privacy_unit=privacy_unit
            )
        except ValueError as refusal:
            refusals[mechanism.name] = str(refusal)
    if not result:
        raise InputValueError(f"nothing to audit: {'; '.join(refusals.values())}")
    return AuditPlan(tuple(result), refusals)


def audit_generator(index: int, *, seed: int | None = None, exact_noise: bool = False) -> np.random.Generator:
    """The randomness of one setting, ``index`` its place in the plan.

    Parameters
    ----------
    seed : int, optional
        Of the whole plan, to repeat it.
    exact_noise : bool
        Draw integer noise with the sampler that releases use, about ten times slower. Otherwise a seed, if only one that nobody
        knows, selects the fast stand-in.
    """
    if exact_noise:
        if seed is not None:
            raise InputValueError(
                f"seed={seed}: exact noise comes from the operating system and has no seed; leave one out"
            )
        return secure_generator()
    return insecure_generator(secrets.randbits(64) if seed is None else seed + index)


def _audit_settings(
    mechanism: Mechanism,
    *,
    budgets: Sequence[PrivacyBudget] = DEFAULT_BUDGETS,
    neighbors: Sequence[Neighbors] = tuple(Neighbors),
    means: Sequence[bool] | None = None,
    n_features: int = 2,
    privacy_unit: PrivacyUnit | None = None,
) -> tuple[AuditSetting, ...]:
    """Every combination that the mechanism supports and plans for, of budget, relation, and count and mean or not.

    Parameters
    ----------
    means : sequence of bool, optional
        Whether count and mean are released; default: with and without, for those in ``_ALWAYS_WITH_MEAN`` with them alone.
    n_features : int
        As many of them as the mechanism takes.
    privacy_unit : PrivacyUnit, optional
        Whom to protect, where that is not one row; under ``add_remove`` alone.

    Examples
    --------
    >>> from dpmoments.mechanisms import Laplace
    >>> [(str(setting.neighbors), setting.mean) for setting in _audit_settings(Laplace(), means=[False])]
    [('add_remove', False), ('replace_one', False)]
    """
    if means is None:
        means = (True,) if mechanism.name in _ALWAYS_WITH_MEAN else (True, False)
    features = _features_of(mechanism, n_features)
    result: list[AuditSetting] = []
    refusal: ValueError = InputValueError(f"mechanism {mechanism.name!r} supports none of these budgets and relations")
    for budget in budgets:
        for relation in neighbors:
            if budget.kind not in mechanism.budget_kinds or relation not in mechanism.supported_neighbors:
                continue
            if privacy_unit is not None and relation is not Neighbors.ADD_REMOVE:
                continue
            n_rows = _TYPICAL_ROWS if relation.table_size_is_public else None
            for mean in means:
                try:
                    shape = MomentShape(features, n_rows=n_rows, mean=mean)
                    plan_before_release(mechanism, shape, budget, relation, privacy_unit)
                except ValueError as error:
                    refusal = error
                else:
                    result.append(AuditSetting(mechanism, budget, relation, mean, privacy_unit))
    if not result:
        raise refusal
    return tuple(result)


def _features_of(mechanism: Mechanism, n_features: int) -> int:
    """No more than the mechanism takes."""
    return n_features if mechanism.most_features is None else min(n_features, mechanism.most_features)
