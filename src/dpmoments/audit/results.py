"""Effort and result of an audit."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from dpmoments.foundation.errors import InputValueError
from dpmoments.messages.message import Message
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit

_TOLERANCE = 1e-6
"""Relative excess of an exact loss over ε that lattice rounding and sums here may cause."""


@dataclass(frozen=True, slots=True)
class AuditEffort:
    """Number of draws of an audit.

    Attributes
    ----------
    pilot : int
        Runs on each table of the promising pairs, half to learn scores and half to choose events.
    final : int
        Fresh runs on each table of each finalist, the only ones in the reported bound; half as many more if a parameter
        of the noise is measured.
    finalists : int
        Pairs with final draws; they share the failure probability.
    """

    pilot: int = 500
    final: int = 6000
    finalists: int = 1

    def __post_init__(self) -> None:
        if self.pilot < 20 or self.final < 20 or self.finalists < 1:
            raise InputValueError(
                Message("audit-too-small", pilot=self.pilot, final=self.final, finalists=self.finalists)
            )

    @classmethod
    def of_draws(cls, draws: int) -> AuditEffort:
        """Make the effort with this many final draws and a tenth as pilot draws."""
        return cls(pilot=max(20, draws // 10), final=draws)

    def for_passes(self, passes: int) -> AuditEffort:
        """Reduce the effort for mechanisms with several passes per run."""
        share = max(1, min(passes * 2, 20))
        return AuditEffort(max(self.pilot // share, 20), max(self.final // share, 20), self.finalists)


@dataclass(frozen=True, slots=True)
class MeasuredLaw:
    """Parameter of the distribution of the draws, measured from fresh runs.

    Attributes
    ----------
    parameter : str
        ``"noise rate"``: one over the scale of additive noise, in units of the stated one; or ``"temperature"`` of the first
        direction, for mechanisms that pay for one.
    pair : str
        The pair it was measured on: that with the largest exact loss, or on which a direction that is too hot loses most.
    stated, at_least : float
        The parameter that the plan states, and the lower confidence bound on that of the draws.
    epsilon : float
        Exact loss on that pair at the lower bound, all other draws as stated. It assumes the stated family of distributions;
        if it exceeds the stated ε, the draws are not what the mechanism states, whatever their distribution.
    """

    parameter: str
    pair: str
    stated: float
    at_least: float
    epsilon: float


@dataclass(frozen=True, slots=True)
class AuditResult:
    """Result of an audit of one mechanism.

    Attributes
    ----------
    mechanism : str
    options : dict
    neighbors : Neighbors
    cost : PrivacyBudget
        The stated privacy loss of a run.
    n_features : int
    mean : bool
    stated_epsilon, delta : float
        The compared promise: for a zCDP cost, the ε it implies at ``delta``.
    lower_bound : float
        Lower bound on ε at the stated confidence level, if ``run`` drew its noise as implemented.
    exact : float or None
        Exact loss on the worst pair under the stated noise distributions; None if no closed form is known.
    measured : MeasuredLaw or None
        Exact loss at a measured parameter of what was drawn: the scale of additive noise, or the temperature of a direction.
    pair, event : str
        Pair and event of the lower bound.
    exact_pair : str
        Pair with the largest exact loss.
    draws : int
        Final draws on each table.
    level : float
        Joint confidence level of ``lower_bound`` and ``measured``.
    seconds : float
        Processor time.
    privacy_unit : PrivacyUnit or None
        The privacy unit, if it is not one row.
    """

    mechanism: str
    options: dict[str, object]
    neighbors: Neighbors
    cost: PrivacyBudget
    n_features: int
    mean: bool
    stated_epsilon: float
    delta: float
    lower_bound: float
    exact: float | None
    measured: MeasuredLaw | None
    pair: str
    event: str
    exact_pair: str
    draws: int
    level: float
    seconds: float
    privacy_unit: PrivacyUnit | None = None

    @property
    def exceeded(self) -> bool:
        """True if the mechanism was shown to spend more than it states."""
        exact = max(
            -math.inf if self.exact is None else self.exact,
            -math.inf if self.measured is None else self.measured.epsilon,
        )
        return self.lower_bound > self.stated_epsilon or exact > self.stated_epsilon * (1.0 + _TOLERANCE)

    def to_dict(self) -> dict[str, Any]:
        """Return the attributes by name, and whether the stated ε is exceeded."""
        return asdict(self) | {"cost": self.cost.to_dict(), "exceeded": self.exceeded}
