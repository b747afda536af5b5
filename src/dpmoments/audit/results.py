"""How much an audit draws, and what it found."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from dpmoments.foundation.errors import InputValueError
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit

_TOLERANCE = 1e-6
"""Share by which an exact loss may exceed the stated ε: rounding of the noise to a lattice, and of sums here."""


@dataclass(frozen=True, slots=True)
class AuditEffort:
    """How much an audit draws.

    Attributes
    ----------
    pilot : int
        Runs on each table of each pair that a quarter of them has shown to be promising, to learn scores (half) and to choose
        events (half).
    final : int
        Fresh runs on each table of each finalist, which alone enter the reported bound; half as many again where a direction is
        measured.
    finalists : int
        Pairs that get final draws; the confidence is shared among them.
    """

    pilot: int = 500
    final: int = 6000
    finalists: int = 1

    def __post_init__(self) -> None:
        if self.pilot < 20 or self.final < 20 or self.finalists < 1:
            raise InputValueError(f"{self}: an audit needs at least 20 pilot and 20 final draws and one finalist")

    @classmethod
    def of_draws(cls, draws: int) -> AuditEffort:
        """The effort with so many final draws, and a tenth of them to choose events on."""
        return cls(pilot=max(20, draws // 10), final=draws)

    def for_passes(self, passes: int) -> AuditEffort:
        """Less of it for mechanisms that pass over the rows again and again in one run: as many passes in all."""
        share = max(1, min(passes * 2, 20))
        return AuditEffort(max(self.pilot // share, 20), max(self.final // share, 20), self.finalists)


@dataclass(frozen=True, slots=True)
class MeasuredDirection:
    """What the draws say of the temperature of the first direction, for mechanisms that pay for one.

    Attributes
    ----------
    pair : str
        The neighbours it was measured on: those between which a direction that is too hot loses most.
    stated, at_least : float
        The temperature that the plan states, and the lower confidence bound on the one that the directions were drawn at.
    epsilon : float
        The exact loss on that pair at the lower bound, all other draws as stated. It holds for directions that are Bingham
        draws; above the stated ε, it refutes that they are what the mechanism states, whatever they are.
    """

    pair: str
    stated: float
    at_least: float
    epsilon: float


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What an audit of one mechanism found.

    Attributes
    ----------
    mechanism : str
    options : dict
    neighbors : Neighbors
    cost : PrivacyBudget
        What the mechanism says a run spends.
    n_features : int
    mean : bool
    stated_epsilon, delta : float
        What is compared: for a zCDP cost, the ε it implies at ``delta``.
    lower_bound : float
        ε is at least this, with the stated confidence, if ``run`` was drawn from as it is.
    exact : float or None
        The loss on the worst pair by the stated laws of the draws; None where there is no closed form.
    direction : MeasuredDirection or None
        The exact loss at a temperature measured from the draws, for mechanisms that pay for one direction.
    pair, event : str
        Where the lower bound was found.
    exact_pair : str
        Where the exact loss is largest.
    draws : int
        Final draws on each table.
    level : float
        Confidence of the lower bounds, ``lower_bound`` and ``direction``, together.
    seconds : float
        Of processor time.
    privacy_unit : PrivacyUnit or None
        For whom the cost is, where that is not one row.
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
    direction: MeasuredDirection | None
    pair: str
    event: str
    exact_pair: str
    draws: int
    level: float
    seconds: float
    privacy_unit: PrivacyUnit | None = None

    @property
    def exceeded(self) -> bool:
        """Whether the mechanism was shown to spend more than it states."""
        exact = max(
            -math.inf if self.exact is None else self.exact,
            -math.inf if self.direction is None else self.direction.epsilon,
        )
        return self.lower_bound > self.stated_epsilon or exact > self.stated_epsilon * (1.0 + _TOLERANCE)

    def to_dict(self) -> dict[str, Any]:
        """The attributes by name, the cost as its own dictionary, and whether the stated ε is exceeded."""
        return asdict(self) | {"cost": self.cost.to_dict(), "exceeded": self.exceeded}
