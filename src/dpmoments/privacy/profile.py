"""The privacy profile of a run: the least δ(ε) that is proven of it, at every ε, from its receipt.

A stated budget is one point of the profile. The receipt says more: which laws were drawn from, and with what sensitivities.
What a run did before its first draw is public, so that its first draw is known beforehand; the draws after it may have been
chosen from results, and count as *any* draws that spend what is left, unless the mechanism is one whose draws are all *settled*
before the first. ``docs/derivations/privacy-profile.md`` has the proofs.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.profile_bounds import Bound, mu_of_run, proven_bounds, touched_draws
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.rounding import no_less

__all__ = ["PrivacyProfile", "ProfilePoint", "RunCurve"]

SHARES = (0.25, 0.5, 0.75, 1.0, 2.0)
"""The ε of a profile, as multiples of the stated one; for a zCDP budget, of the ε that it implies at REFERENCE_DELTA."""
REFERENCE_DELTA = 1e-6
TESTED_POINTS = 400
"""Points of the curve, from ε = 0 on, that bound an attacker's power; each is a bound by itself."""
SETTLED = frozenset(
    {"additive-wishart", "gaussian", "inverse-gaussian", "isotropic", "kapralov-talwar", "laplace", "matrix-laplace"}
)
"""Mechanisms whose plan fixes every draw, its law and its loss, before the first: no table changes their receipt."""


@dataclass(frozen=True)
class ProfilePoint:
    """One point of a privacy profile.

    Attributes
    ----------
    epsilon, delta : float
        The run is (epsilon, delta)-differentially private; delta is rounded up.
    exact : bool
        Whether ``delta`` is the least possible, up to a millionth part of it: some two neighbours attain it.
    how : str
        What it follows from; where it is exact, which neighbours attain it.
    """

    epsilon: float
    delta: float
    exact: bool
    how: str

    @property
    def mark(self) -> str:
        """``exact`` or ``bound``."""
        return "exact" if self.exact else "bound"

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"epsilon": self.epsilon, "delta": self.delta, "mark": self.mark, "how": self.how}


@dataclass(frozen=True)
class PrivacyProfile:
    """The tightest known privacy profile of a run, at five ε.

    Attributes
    ----------
    points : tuple of ProfilePoint
        At a quarter, half, three quarters of the stated ε, at it and at twice it; for a zCDP budget, of the ε that it implies at
        δ = 10⁻⁶.
    mu : float or None
        The run is μ-Gaussian differentially private; None where it is not known to be.
    epsilon_at_reference : float or None
        The least ε known at δ = 10⁻⁶; None where the run has a larger δ at every ε.
    """

    points: tuple[ProfilePoint, ...]
    mu: float | None
    epsilon_at_reference: float | None

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "points": [point.to_dict() for point in self.points],
            "mu": self.mu,
            "reference_delta": REFERENCE_DELTA,
            "epsilon_at_reference_delta": self.epsilon_at_reference,
        }

    def table(self) -> list[tuple[str, str, str, str]]:
        """ε, δ, mark and reason, a line each, after a head; δ is rounded up."""
        lines = [(no_less(point.epsilon, 4), no_less(point.delta, 3), point.mark, point.how) for point in self.points]
        return [("ε", "δ", "", "from"), *lines]


@dataclass(frozen=True)
class RunCurve:
    """What is known of δ(ε) of a run, or of several of which a row is in one.

    Attributes
    ----------
    parts : tuple
        For every two neighbours that touch other draws, the bounds of which the least counts; of the parts the largest does.
    cost : PrivacyBudget
        What is stated.
    mu : float or None

    Examples
    --------
    >>> from dpmoments.mechanisms import Gaussian, MomentShape
    >>> from dpmoments.privacy import laws, sensitivity
    >>> from dpmoments.privacy.filter import PrivacyFilter
    >>> from dpmoments.privacy.neighbors import Neighbors
    >>> plan = Gaussian().plan(MomentShape(2), PrivacyBudget.approximate(1.0, 1e-6), "add_remove")
    >>> privacy_filter = PrivacyFilter.open(plan, insecure_seed=0)
    >>> _ = privacy_filter.draw("count", laws.DiscreteGaussian(2.0**30), [0], sensitivity.count(Neighbors.ADD_REMOVE))
    >>> curve = RunCurve.of(privacy_filter.close(), "gaussian")
    >>> curve.at(0.25).delta < 1e-9
    True
    """

    parts: tuple[tuple[Bound, ...], ...]
    cost: PrivacyBudget
    mu: float | None

    @classmethod
    def of(cls, receipt: Receipt, mechanism: str) -> RunCurve:
        """That of the run which a receipt is of.

        Parameters
        ----------
        receipt : Receipt
            Of one run; of a pooled release, take :meth:`worst` of the runs'.
        mechanism : str
            The mechanism that ran. Its name says whether its draws were settled before the first.
        """
        settled = mechanism in SETTLED
        seen: dict[tuple[object, ...], tuple[Bound, ...]] = {}
        for draws in touched_draws(receipt):
            # What is proven of draws depends on whether the first of them is the run's.
            first = bool(draws) and draws[0] is receipt.draws[0]
            key = (first, *((draw.law, draw.loss.amount, draw.loss.delta, draw.size) for draw in draws))
            if key not in seen:
                seen[key] = proven_bounds(receipt, draws, settled)
        return cls(tuple(seen.values()), receipt.cost, mu_of_run(receipt, settled))

    @classmethod
    def worst(cls, curves: Iterable[RunCurve], cost: PrivacyBudget) -> RunCurve:
        """That of runs on disjoint tables: a row is in one of them, whichever that is."""
        runs = list(curves)
        mus = [curve.mu for curve in runs if curve.mu is not None]
        parts = tuple(part for curve in runs for part in curve.parts)
        return cls(parts, cost, max(mus) if len(mus) == len(runs) else None)

    def at(self, epsilon: float) -> ProfilePoint:
        """The least δ known at an ε of 0 or more, and why."""
        worst: ProfilePoint | None = None
        for bounds in self.parts:
            found = [(bound.delta(epsilon), bound) for bound in bounds]
            delta, best = min(found, key=lambda pair: pair[0])
            if worst is None or delta > worst.delta:
                # What is attained is so whatever else is known, but for the last digits.
                exact = next((b for d, b in found if b.attained_by is not None and d <= delta * (1.0 + 1e-6)), None)
                how = best.how if exact is None else f"{exact.how}; attained by {exact.attained_by}"
                worst = ProfilePoint(epsilon, delta, exact is not None, how)
        if worst is None:
            return ProfilePoint(epsilon, 0.0, True, "nothing was drawn")
        return replace(worst, exact=True) if worst.delta == 0.0 else worst

    def epsilon_at(self, delta: float) -> float | None:
        """The least ε known at a δ, on the safe side; None where the run has a larger δ at every ε."""
        if self.at(0.0).delta <= delta:
            return 0.0
        low, high = 0.0, 2.0 * _reference_epsilon(self.cost)
        for _ in range(8):
            if self.at(high).delta <= delta:
                break
            low, high = high, 4.0 * high
        else:
            return None
        while high - low > 1e-6 * high:
            middle = 0.5 * (low + high)
            low, high = (low, middle) if self.at(middle).delta <= delta else (middle, high)
        return high

    def attacker_power(self, false_positives: float) -> float:
        """Most that a test can find of the truth that errs so often: whether a person is in the table, all other rows known.

        Parameters
        ----------
        false_positives : float
            How often the test says "in the table" of a table without the person; between 0 and 1.

        Returns
        -------
        float
            A bound on how often it says so where it is true: the least of δ + e^ε·``false_positives`` and
            1 − e^{−ε}(1 − ``false_positives`` − δ) over many points of the curve.

        Raises
        ------
        ValueError
            If ``false_positives`` is no share.

        References
        ----------
        Dong, Roth & Su (2022), Proposition 2.5: the trade-off function of a privacy profile.

        Examples
        --------
        >>> nothing = RunCurve((), PrivacyBudget.pure(1.0), None)
        >>> nothing.attacker_power(0.05)
        0.05
        """
        if not 0.0 <= false_positives <= 1.0:
            raise ValueError(f"false_positives={false_positives!r} must be a share, between 0 and 1")
        last = 2.0 * _reference_epsilon(self.cost)
        least = 1.0
        for place in range(TESTED_POINTS + 1):
            epsilon = last * place / TESTED_POINTS
            delta, factor = self.at(epsilon).delta, math.exp(min(epsilon, 700.0))
            missed = 1.0 - false_positives - delta
            least = min(least, delta + factor * false_positives, 1.0 - max(missed, 0.0) / factor)
        return least

    @property
    def profile(self) -> PrivacyProfile:
        """At the five ε that the stated budget gives, in this order: a rule that no table has a part in."""
        stated = _reference_epsilon(self.cost)
        points = tuple(self.at(share * stated) for share in SHARES)
        return PrivacyProfile(points, self.mu, self.epsilon_at(REFERENCE_DELTA))


def _reference_epsilon(cost: PrivacyBudget) -> float:
    """The ε stated; of a zCDP budget the one implied at REFERENCE_DELTA, rounded up to four digits."""
    if cost.kind is not BudgetKind.ZCDP:
        return cost.epsilon
    return float(no_less(max(cost.to_epsilon(REFERENCE_DELTA), 1e-300), 4))
