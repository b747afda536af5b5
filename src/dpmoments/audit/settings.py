"""Table of audits: every mechanism in everything it supports, with options and effort."""

from __future__ import annotations

import secrets
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np

from dpmoments.analysis.answers import Answer, Column
from dpmoments.audit.procedure import LEVEL, AuditEffort, AuditResult, audit
from dpmoments.base.errors import InputValueError
from dpmoments.mechanisms import CoinPress, InverseGaussian, PrivatePreconditioning
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.registry import MECHANISMS, make_mechanism
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.entropy import insecure_generator, secure_generator
from dpmoments.privacy.request import PrivacyRequest
from dpmoments.privacy.unit import Neighbors, PrivacyUnit

DEFAULT_BUDGETS = (PrivacyBudget.pure(1.0), PrivacyBudget.approximate(1.0, 0.01), PrivacyBudget.zcdp(0.5))
"""One budget of each kind; δ is large, so that its events are seen in ten thousand draws."""
_CHOSEN: Mapping[str, Mechanism] = {
    # Few steps, so that some thousand runs can be afforded.
    "coinpress": CoinPress(eigenvalue_bounds=(0.1, 1.0), steps=2),
    "private-preconditioning": PrivatePreconditioning(eigenvalue_bounds=(0.1, 1.0)),
    # It refuses without a bound. This one is the smallest eigenvalue of the tables that have many rows on every axis.
    "inverse-gaussian": InverseGaussian(smallest_eigenvalue=30.0),
}
"""Options for mechanisms whose defaults are slow or refuse."""
_ALWAYS_WITH_MEAN = ("auto", "standardized")
"""Mechanisms audited only with count and mean.

``standardized`` always releases them; ``auto`` runs one of the others, which are also audited without.
"""
_SLOW = ("iterative-eigenvectors", "kapralov-talwar", "log-scale-histogram")
"""Mechanisms with slow runs."""
_SLOW_EFFORT = AuditEffort(pilot=300, final=2500)
"""Default effort for slow mechanisms."""
_TYPICAL_ROWS = 100
"""Public number of rows for which a mechanism must have a plan under ``replace_one``."""


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
        """Audit this setting, with fewer features or less effort if the mechanism needs it."""
        if effort is None and self.mechanism.name in _SLOW:
            effort = _SLOW_EFFORT
        return audit(
            self.mechanism,
            self.budget,
            self.neighbors,
            generator,
            mean=self.mean,
            n_features=min(n_features, self.mechanism.most_features or n_features),
            effort=effort,
            level=level,
            privacy_unit=self.privacy_unit,
        )


@dataclass(frozen=True, eq=False, repr=False)
class Audits(Answer):
    """Results of audits as one table, with the mechanisms that could not be audited."""

    results: tuple[AuditResult, ...]
    refusals: Mapping[str, str]

    def _columns(self) -> list[Column]:
        rows = map(_row, self.results)
        return [Column(name, values, name) for name, values in zip(_HEADS, zip(*rows, strict=True), strict=True)]

    @property
    def remarks(self) -> tuple[str, ...]:
        return (
            *(f"not {name}: {refusal}" for name, refusal in self.refusals.items()),
            "'ε at least' is a lower bound, with 99.9 % confidence; 'exact ε' follows from the stated noise distributions on "
            "the worst pair, 'measured ε' with the scale of noise, or the temperature of directions, that fresh runs show at "
            "least (included in the 99.9 %). The pairs are in JSON.",
        )

    def to_dict(self) -> dict[str, Any]:
        return {"audits": [result.to_dict() for result in self.results], "refused": dict(self.refusals)}


_HEADS = ("mechanism", "neighbors", "mean", "budget", "at δ", "stated ε", "ε at least", "exact ε", "measured ε")


def _row(result: AuditResult) -> tuple[str, ...]:
    """Return the cells of an audit under ``_HEADS``."""
    options = ", ".join(f"{key}={value}" for key, value in result.options.items())
    measured = None if result.measured is None else result.measured.epsilon
    return (
        f"{result.mechanism} ({options})" if options else result.mechanism,
        str(result.neighbors),
        "yes" if result.mean else "no",
        str(result.cost),
        f"{result.delta:g}",
        f"{result.stated_epsilon:.3f}",
        f"{'EXCEEDED ' if result.exceeded else ''}{result.lower_bound:.3f}",
        *("–" if value is None else f"{value:.3f}" for value in (result.exact, measured)),
    )


def configuration(mechanism: Mechanism | str) -> Mechanism:
    """Return the mechanism with the options that it is audited with by default."""
    made = make_mechanism(mechanism)
    return _CHOSEN.get(made.name, made)


def audit_plan(
    mechanisms: Iterable[Mechanism] | None = None,
    *,
    budgets: Sequence[PrivacyBudget] = DEFAULT_BUDGETS,
    neighbors: Sequence[Neighbors] = tuple(Neighbors),
    n_features: int = 2,
    privacy_unit: PrivacyUnit | None = None,
) -> tuple[list[AuditSetting], dict[str, str]]:
    """List every setting of several mechanisms, and the reasons of those that support none."""
    # Default: all mechanisms of the registry.
    settings, refusals = list[AuditSetting](), dict[str, ValueError]()
    for mechanism in map(configuration, MECHANISMS) if mechanisms is None else mechanisms:
        supported, refusal = list[AuditSetting](), _unsupported(mechanism.name)
        means = (True,) if mechanism.name in _ALWAYS_WITH_MEAN else (True, False)
        features = min(n_features, mechanism.most_features or n_features)
        for budget, relation, mean in product(budgets, neighbors, means):
            if budget.kind not in mechanism.budget_kinds or relation not in mechanism.supported_neighbors:
                continue
            if privacy_unit is not None and relation is not Neighbors.ADD_REMOVE:
                continue
            n_rows = _TYPICAL_ROWS if relation.table_size_is_public else None
            try:
                shape = MomentShape(features, n_rows=n_rows, mean=mean)
                mechanism.plan_for(shape, PrivacyRequest(budget, relation, privacy_unit))
            except ValueError as error:
                refusal = error
            else:
                supported.append(AuditSetting(mechanism, budget, relation, mean, privacy_unit))
        settings += supported
        if not supported:
            refusals[mechanism.name] = refusal
    if not settings:
        raise next(iter(refusals.values())) if len(refusals) == 1 else _unsupported(*refusals)
    return settings, {name: str(refusal) for name, refusal in refusals.items()}


def _unsupported(*names: str) -> ValueError:
    return InputValueError(f"nothing to audit: no budget and relation given here is supported by {', '.join(names)}")


def audit_generator(index: int, *, seed: int | None = None, exact_noise: bool = False) -> np.random.Generator:
    """Return the random generator of the setting with this index."""
    # `exact_noise` uses the sampler of releases, about ten times slower; otherwise a fast substitute is seeded, with
    # the secret randomness of the operating system if `seed` is None.
    if exact_noise:
        if seed is not None:
            raise InputValueError(
                f"seed={seed}: exact noise comes from the operating system and has no seed; leave one out"
            )
        return secure_generator()
    return insecure_generator(secrets.randbits(64) if seed is None else seed + index)
