"""Everything a mechanism says it supports, as settings to audit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.audit.procedure import audit
from dpmoments.audit.results import AuditEffort, AuditResult
from dpmoments.mechanisms.base import Mechanism, MomentShape
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.neighbors import Neighbors

__all__ = ["DEFAULT_BUDGETS", "AuditSetting", "audit_settings"]

DEFAULT_BUDGETS = (PrivacyBudget.pure(1.0), PrivacyBudget.approximate(1.0, 0.01), PrivacyBudget.zcdp(0.5))
"""One of each kind. δ is large so that the events it allows for are seen among some ten thousand draws."""
TYPICAL_ROWS = 100


@dataclass(frozen=True, slots=True)
class AuditSetting:
    """One row of the table of audits.

    Attributes
    ----------
    mechanism : Mechanism
    budget : PrivacyBudget
    neighbors : Neighbors
    mean : bool
    """

    mechanism: Mechanism
    budget: PrivacyBudget
    neighbors: Neighbors
    mean: bool

    def run(
        self, generator: np.random.Generator, *, n_features: int = 2, effort: AuditEffort | None = None
    ) -> AuditResult:
        """The audit of this setting."""
        return audit(
            self.mechanism,
            self.budget,
            self.neighbors,
            generator,
            mean=self.mean,
            n_features=n_features,
            effort=effort,
        )


def audit_settings(
    mechanism: Mechanism,
    *,
    budgets: Sequence[PrivacyBudget] = DEFAULT_BUDGETS,
    neighbors: Sequence[Neighbors] = tuple(Neighbors),
    means: Sequence[bool] = (True, False),
    n_features: int = 2,
) -> tuple[AuditSetting, ...]:
    """Every combination that the mechanism supports and plans for, of budget, relation, and count and mean or not.

    Raises
    ------
    ValueError
        The mechanism's own refusal, if it plans for none of them.

    Examples
    --------
    >>> from dpmoments.mechanisms import Laplace
    >>> [(str(setting.neighbors), setting.mean) for setting in audit_settings(Laplace(), means=[False])]
    [('add_remove', False), ('replace_one', False)]
    """
    found, refusal = [], ValueError(f"mechanism {mechanism.name!r} supports none of these budgets and relations")
    for budget in budgets:
        for relation in neighbors:
            if budget.kind not in mechanism.budget_kinds or relation not in mechanism.supported_neighbors:
                continue
            n_rows = TYPICAL_ROWS if relation is Neighbors.REPLACE_ONE else None
            for mean in means:
                try:
                    mechanism.plan(MomentShape(n_features, n_rows=n_rows, mean=mean), budget, relation)
                except ValueError as error:
                    refusal = error
                else:
                    found.append(AuditSetting(mechanism, budget, relation, mean))
    if not found:
        raise refusal
    return tuple(found)
