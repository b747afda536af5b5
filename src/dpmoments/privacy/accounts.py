"""Accounts of datasets: what releases have spent, and which entries may follow.

Composed costs in each kind of grant (``docs/evidence/derivations/ledger.md``):

=================  ===========  =============  ===========================  ==============================
cost of a release  under ε      under ρ        under μ                      under (ε, δ)
=================  ===========  =============  ===========================  ==============================
pure ε             ε            ε tanh(ε/2)    2 Φ⁻¹(e^ε/(1+e^ε))           ε; or in ρ; or in μ
(ε, δ), Gaussian   refused      its ρ          √(2ρ)                        in μ; or in ρ; or basic
(ε, δ), zCDP       refused      its ρ          refused                      in ρ; or basic
(ε, δ), mixed      refused      both parts     refused                      in ρ; or basic
(ε, δ), others     refused      refused        refused                      basic
ρ-zCDP             refused      ρ              refused                      only in ρ
=================  ===========  =============  ===========================  ==============================
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from enum import StrEnum
from fractions import Fraction
from shlex import quote
from typing import Any

from dpmoments.base.errors import BudgetExceededError, InputValueError, LedgerError, listed, shown
from dpmoments.base.records import Record, read_entries
from dpmoments.base.values import require_known
from dpmoments.privacy.accounting import LossUnit, allowance
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.curves import (
    MAX_COMPOSED_COORDINATES,
    MIN_COMPOSED_SCALE,
    discrete_gaussian_log_delta,
    gaussian_epsilon,
    pure_to_gaussian,
    pure_to_zcdp,
    safe_root,
    zcdp_epsilon,
)
from dpmoments.privacy.grants import (
    MAX_GAUSSIAN_RELEASES,
    ROW,
    Amount,
    Composition,
    Exact,
    Grant,
    GrantKind,
    as_written,
    check_unit,
    downward,
    no_more,
    require_dataset,
    upward,
)
from dpmoments.privacy.origin import LedgerEntry
from dpmoments.privacy.unit import Neighbors

_AMOUNTS = ("epsilon", "delta", "rho", "mu_squared")
_MAX_EPSILON_TWICE = 700.0
"""Limit above which e^ε, the growth of δ if a cost counts twice, overflows."""


@dataclass(frozen=True)
class Losses(Record):
    """Privacy loss of one release in every unit in which it is known, exact or rounded up.

    The release is (``epsilon``, ``delta``)-private, ``rho``-zCDP and μ-Gaussian private with μ² = ``mu_squared``; if
    ``gaussian`` (all draws are discrete Gaussian), the last holds up to the margin of discrete noise.
    """

    epsilon: Exact | None
    delta: Exact | None
    rho: Exact | None
    mu_squared: Exact | None
    gaussian: bool

    def __post_init__(self) -> None:
        if (self.epsilon is None) != (self.delta is None) or not (self.epsilon or self.rho):
            raise InputValueError("the losses of a release have no unit that a ledger supports")


def losses_of(cost: PrivacyBudget, unit: LossUnit, neighbors: Neighbors, relation: Neighbors) -> Losses:
    """Return the loss of a release under the relation of a grant."""
    # `unit` is the one in which the losses of its draws add up. If the cost is for `add_remove` and the grant for
    # `replace_one`, it counts twice in ε and μ and four times in ρ, since a replaced row is one removed and one added.
    # There is no conversion the other way.
    steps = 1
    if neighbors is not relation:
        if neighbors is Neighbors.REPLACE_ONE:
            refused = "a cost under replace_one says nothing about a row present or absent: release with "
            advice = ", or grant a dataset of another name for replace_one"
            raise InputValueError(
                f"{refused}neighbors='add_remove'{advice}", shell=f"{refused}--neighbors add_remove{advice}"
            )
        if cost.kind is BudgetKind.APPROXIMATE and cost.epsilon > _MAX_EPSILON_TWICE:
            raise InputValueError(f"a cost of {cost} under add_remove says nothing about a row replaced")
        steps = 2
    epsilon = delta = rho = mu_squared = None
    if cost.kind is not BudgetKind.ZCDP:
        epsilon, delta = steps * as_written(cost.epsilon), as_written(cost.delta)
        if steps == 2 and delta:
            delta *= 1 + Fraction(math.exp(cost.epsilon) * (1.0 + 1e-12))
    if cost.kind is BudgetKind.ZCDP:
        rho = steps**2 * as_written(cost.rho)
    elif unit in (LossUnit.RHO, LossUnit.GAUSSIAN_RHO):
        rho = steps**2 * allowance(cost, unit).amount
    elif cost.kind is BudgetKind.PURE and epsilon is not None:
        above = upward(epsilon)
        rho, mu_squared = Fraction(pure_to_zcdp(above)), Fraction(pure_to_gaussian(above)) ** 2
    # A cost in ρ is one of zCDP, whatever was drawn: it is not known to be that of one Gaussian mechanism.
    gaussian = unit is LossUnit.GAUSSIAN_RHO and cost.kind is BudgetKind.APPROXIMATE
    if gaussian and rho is not None:
        mu_squared = 2 * rho
    return Losses(epsilon, delta, rho, mu_squared, gaussian)


@dataclass(frozen=True)
class Sums:
    """Total losses of several releases; unknown in a unit if one of them has no loss in it."""

    n_releases: int = 0
    n_gaussian: int = 0
    unknown: tuple[int, ...] = (0, 0, 0, 0)
    amounts: tuple[Fraction, ...] = (Fraction(0), Fraction(0), Fraction(0), Fraction(0))
    concentrated: bool = True
    """True if the first release is zCDP."""

    def __add__(self, losses: Losses) -> Sums:
        first = self if self.n_releases else replace(self, concentrated=losses.rho is not None)
        return first._moved(losses, 1)

    def __sub__(self, losses: Losses) -> Sums:
        return self._moved(losses, -1)

    def _moved(self, losses: Losses, sign: int) -> Sums:
        known = [getattr(losses, name) for name in _AMOUNTS]
        return replace(
            self,
            n_releases=self.n_releases + sign,
            n_gaussian=self.n_gaussian + sign * losses.gaussian,
            unknown=tuple(n + sign * (loss is None) for n, loss in zip(self.unknown, known, strict=True)),
            amounts=tuple(total + sign * (loss or 0) for total, loss in zip(self.amounts, known, strict=True)),
        )

    def total(self, name: str) -> Fraction | None:
        """Return the total in one unit, or None if a release has none or it is not proven."""
        index = _AMOUNTS.index("delta" if name == "half_delta" else name)
        if self.unknown[index] or (name == "mu_squared" and self.n_gaussian > MAX_GAUSSIAN_RELEASES):
            return None
        return self.amounts[index]

    def within(self, grant: Grant) -> bool:
        """Return True if the grant allows these releases."""

        def keeps(name: str) -> bool:
            total = self.total(name)
            return total is not None and total <= grant.bounds[name]

        return any(all(map(keeps, rule)) for rule in self.rules(grant))

    def rules(self, grant: Grant) -> tuple[tuple[str, ...], ...]:
        """Return the composition rules, each a set of sums that must be within the grant's limits."""
        # The rules together are one privacy filter: the shares of δ they may use add up to the grant's δ.
        if grant.kind is GrantKind.PURE:
            return (("epsilon",),) if self.amounts[1] == 0 else ()
        if grant.kind is GrantKind.ZCDP:
            return (("rho",),)
        if grant.kind is GrantKind.GAUSSIAN:
            return (("mu_squared",),)
        rules: list[tuple[str, ...]] = [("epsilon",)] if self.amounts[1] == 0 else []
        rule = grant.composition
        by_parts = rule is Composition.BASIC or (rule is Composition.AUTO and not self.concentrated)
        if by_parts or self.n_releases == 1:  # one release by itself is what it says it is
            rules.append(("epsilon", "delta"))
        elif rule is Composition.AUTO:
            rules.append(("epsilon", "half_delta"))
        if not by_parts and rule is not Composition.GAUSSIAN:
            rules.append(("rho",))
        if not by_parts and rule is not Composition.ZCDP:
            rules.append(("mu_squared",))
        return tuple(rules)


# The history of a ledger: entries, each with a hash of itself and of all before it.


class Action(StrEnum):
    """Kind of a history entry."""

    GRANT = "grant"
    RESERVE = "reserve"
    COMMIT = "commit"
    REFUND = "refund"


_ENTRIES = {"number": int, "time": str, "action": Action, "dataset": str, "content": dict}


@dataclass(frozen=True, repr=False)
class HistoryEntry:
    """History entry, with a SHA-256 hash of its canonical JSON ``text`` and the hash before it.

    ``number`` counts from 1 without gaps and gives the order; ``time`` (UTC) is for people only. ``content`` is a grant, or the
    cost of a release, or ``reservation``: the number of the entry that reserved it.
    """

    number: int
    time: str
    action: Action
    dataset: str
    content: Mapping[str, Any]
    text: str
    hash: str

    @classmethod
    def after(cls, number: int, link: str, action: Action, dataset: str, content: Mapping[str, Any]) -> HistoryEntry:
        """Make the entry that follows the one with this number and hash."""
        time = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
        values = dict(number=number + 1, time=time, action=str(action), dataset=dataset, content=dict(content))
        text = json.dumps(values, ensure_ascii=True, sort_keys=True, separators=(",", ":"), allow_nan=False)
        return cls.read(number + 1, text, _linked(link, text), link)

    @classmethod
    def read(cls, number: int, text: str, digest: str, link: str) -> HistoryEntry:
        """Read an entry from the file, checking its number and the hash before it."""
        if digest != _linked(link, text):
            raise InputValueError(
                "its hash does not match: it, or an entry before it, was changed, removed or inserted"
            )
        given = read_entries(json.loads(text), _ENTRIES, "the entry")
        if given["number"] != number:
            raise InputValueError("its number is out of order")
        return cls(**given, text=text, hash=digest)

    def of(self, ledger: str) -> LedgerEntry:
        """Return the reference to this entry that a release stores."""
        return LedgerEntry(ledger, self.number, self.hash)

    @property
    def description(self) -> str:
        """Description of what was granted, reserved or ended, with rounded numbers."""
        if self.action is Action.GRANT:
            granted = Grant.from_dict(self.content)
            return f"{granted}, {granted.neighbors}, {granted.unit}{granted.why}"
        if self.action is Action.RESERVE:
            content = self.content
            return (
                f"{PrivacyBudget.from_dict(content['cost'])}, {content['mechanism']}, release {content['release'][:8]}…"
            )
        return f"entry {self.content['reservation']}"

    def __str__(self) -> str:
        return f"{self.number} {self.time} {self.dataset} {self.action}: {self.description} ({self.hash[:12]}…)"

    def __repr__(self) -> str:
        return f"HistoryEntry({str(self)!r})"

    def to_dict(self) -> dict[str, Any]:
        """Return the entry and its hash as plain values."""
        return {name: getattr(self, name) for name in _ENTRIES} | {"content": dict(self.content), "hash": self.hash}


def _linked(link: str, text: str) -> str:
    return hashlib.sha256(f"{link}\n{text}".encode()).hexdigest()


# What releases come to in the kind of their dataset's grant, what is left of it, and why a cost cannot be counted.

_STEPS = 60


def _gaussian_epsilon(mu: float, delta: float) -> float:
    """Return ε of μ-Gaussian privacy, with the margin of discrete noise, rounded up."""
    mu *= 1.0 + 2.0**-50
    coordinates = MAX_GAUSSIAN_RELEASES * MAX_COMPOSED_COORDINATES

    def excess(epsilon: float) -> float:
        log_delta = discrete_gaussian_log_delta(epsilon, mu * MIN_COMPOSED_SCALE, MIN_COMPOSED_SCALE, coordinates)
        return log_delta - math.log(delta)

    return safe_root(excess, gaussian_epsilon(delta, mu, 1.0) + 1e-5, safe="above")


def _most(allowed: Callable[[float], bool], likely: float, most: float) -> float:
    """Return the largest allowed value: ``likely`` or a larger one up to ``most``; 0 if none is."""
    low, high = 0.0, most
    if likely > 0.0 and allowed(likely):
        low = likely
    if high <= low or allowed(high):
        return max(low, high)
    for _ in range(_STEPS):
        middle = 0.5 * (low + high)
        if not low < middle < high:
            break
        low, high = (middle, high) if allowed(middle) else (low, middle)
    return low


_KNOWN_IN_MU = "known only for pure ε, and for epsilon with delta if all draws are Gaussian"
_RELEASE_IN_RHO = "Release with rho, with epsilon only, or with a mechanism whose draws are Gaussian."


def _why_not_counted(grant: Grant, sums: Sums) -> str:
    """Return why no composition rule covers these releases, and what to do; empty if one does."""
    if any(all(sums.total(name) is not None for name in rule) for rule in sums.rules(grant)):
        return ""
    if grant.kind is GrantKind.PURE:
        return "a pure budget has no δ to spend. Release with epsilon only, or grant epsilon and delta."
    if grant.kind is GrantKind.ZCDP:
        return f"its noise draws are not zCDP, so it has no ρ. {_RELEASE_IN_RHO}"
    if sums.n_gaussian > MAX_GAUSSIAN_RELEASES:
        return f"the margin of discrete noise is proven for {MAX_GAUSSIAN_RELEASES} releases only."
    if grant.kind is GrantKind.GAUSSIAN:
        return f"μ is {_KNOWN_IN_MU}. Release with one of these."
    if grant.composition is Composition.GAUSSIAN:
        return f"the grant counts in μ, which is {_KNOWN_IN_MU}. Release with one of these."
    if sums.unknown[0]:
        return (
            "a cost in ρ has no δ of its own, and releases here are counted by basic composition in ε and δ. Release with "
            "epsilon, and delta if needed."
        )
    return f"the grant counts in ρ, and a release that is only (ε, δ)-private has none. {_RELEASE_IN_RHO}"


class NoGrantError(LedgerError):
    """Ledger that does not exist, or has no budget for a dataset; it says how to grant one."""

    wrong: str
    advice: str  # with the call or the command in braces
    path: str | None

    @classmethod
    def of(
        cls,
        wrong: str,
        advice: str,
        *,
        path: str | None = None,
        dataset: str = "people-2026",
        neighbors: Neighbors = Neighbors.ADD_REMOVE,
        unit: str = ROW,
    ) -> NoGrantError:
        """Return the error with the call, and the command, that grants what a release needs."""
        call = f"ledger.grant({dataset!r}, epsilon=1.0"
        call += "" if neighbors is Neighbors.ADD_REMOVE else f", neighbors={str(neighbors)!r}"
        call += ")" if unit == ROW else f", unit={unit!r})"
        command = (
            f"'dpmoments ledger grant {quote(path or 'LEDGER')} {quote(dataset)} --epsilon 1 --neighbors {neighbors}"
        )
        command += "" if unit == ROW else f" --privacy-unit {quote(unit)}"
        command += "'"
        error = cls(f"{wrong} {advice.format(call)}", shell=f"{wrong} {advice.format(command)}")
        error.wrong, error.advice, error.path = wrong, advice, path
        return error


class OtherUnitError(LedgerError):
    """Grant for another privacy unit than the release has."""

    granted: str


_AGREEMENT = 1e-9
"""Relative tolerance when losses are recomputed; they are added up as recorded."""


@dataclass(frozen=True)
class ReservedCost(Record):
    """Cost reserved for one release, or one run of groups, as its entry holds it."""

    release: str
    mechanism: str
    cost: PrivacyBudget
    loss_unit: LossUnit
    neighbors: Neighbors
    unit: str
    losses: Losses

    def __post_init__(self) -> None:
        check_unit(self.unit)


_FIXED = ("kind", "neighbors", "unit", "composition")
"""Attributes of a grant that cannot change once some of it is spent."""


_ADDED = {
    Composition.AUTO: "loss by loss, in ρ or in μ, whichever is sufficient",
    Composition.BASIC: "part by part",
    Composition.ZCDP: "in ρ",
    Composition.GAUSSIAN: "in μ",
}


@dataclass(frozen=True)
class Account:
    """Budget of one dataset."""

    dataset: str
    grant: Grant  # the latest grant
    sums: Sums
    # with `n_open` and `n_refunded`: committed reservations; reservations neither committed nor refunded, which count
    # as spent forever; refunded ones
    n_released: int = 0
    n_open: int = 0
    n_refunded: int = 0
    changes: tuple[str, ...] = ()  # what each later grant changed while something was spent, why, and who decided it

    @property
    def spent(self) -> Amount:
        """Total loss of the releases, in the grant's kind: the smallest proven ε under (ε, δ)."""
        grant, sums = self.grant, self.sums
        if not sums.n_releases:
            return Amount(grant.kind)
        if grant.kind is GrantKind.PURE:
            return Amount(grant.kind, epsilon=upward(sums.total("epsilon") or Fraction(0)))
        if grant.kind is GrantKind.ZCDP:
            return Amount(grant.kind, rho=upward(sums.total("rho") or Fraction(0)))
        if grant.kind is GrantKind.GAUSSIAN:
            mu = math.sqrt(upward(sums.total("mu_squared") or Fraction(0))) * (1.0 + 2.0**-52)
            return Amount(grant.kind, mu=min(mu, grant.amount.mu))

        # The total (ε, δ) under each rule of composition.
        ways = []
        for rule in sums.rules(grant):
            if None in [sums.total(name) for name in rule]:
                continue
            if "epsilon" in rule:
                if len(rule) == 1 or sums.amounts[1] <= grant.bounds[rule[1]]:
                    ways.append((upward(sums.amounts[0]), upward(sums.amounts[1])))
            elif rule == ("rho",):
                ways.append((zcdp_epsilon(upward(sums.amounts[2]), grant.share), grant.amount.delta))
            else:
                ways.append((_gaussian_epsilon(math.sqrt(upward(sums.amounts[3])), grant.share), grant.amount.delta))
        epsilon, delta = min(ways, default=(grant.amount.epsilon, grant.amount.delta))
        return Amount(grant.kind, epsilon=min(epsilon, grant.amount.epsilon), delta=delta)

    @property
    def left(self) -> Amount:
        """Maximum cost of one more release, rounded down."""
        grant, sums = self.grant, self.sums
        if grant.kind is GrantKind.PURE:
            return Amount(grant.kind, epsilon=downward(grant.limits["epsilon"] - sums.amounts[0]))
        if grant.kind is GrantKind.ZCDP:
            return Amount(grant.kind, rho=downward(grant.limits["rho"] - sums.amounts[2]))
        mu_squared, mu = sums.total("mu_squared"), 0.0
        if mu_squared is not None and mu_squared < grant.limits["mu_squared"]:
            mu = math.sqrt(downward(grant.limits["mu_squared"] - mu_squared)) * (1.0 - 2.0**-52)
        if grant.kind is GrantKind.GAUSSIAN:
            return Amount(grant.kind, mu=mu)

        def allowed(cost: PrivacyBudget, unit: LossUnit) -> bool:
            return (sums + losses_of(cost, unit, grant.neighbors, grant.neighbors)).within(grant)

        exact = downward(max(grant.limits["epsilon"] - sums.amounts[0], Fraction(0)))
        rho = downward(max(grant.limits["rho"] - sums.amounts[2], Fraction(0)))
        return Amount(
            grant.kind,
            epsilon=_most(
                lambda size: allowed(PrivacyBudget.pure(size), LossUnit.EPSILON), exact, grant.amount.epsilon
            ),
            delta=self._left_by_parts[1],
            rho=_most(lambda size: allowed(PrivacyBudget.zcdp(size), LossUnit.RHO), rho, rho),
            mu=mu if ("mu_squared",) in sums.rules(grant) else 0.0,
        )

    @property
    def _left_by_parts(self) -> tuple[float, float]:
        """The ε and δ that basic composition leaves to one more release, else zeros."""
        grant, sums = self.grant, self.sums
        nothing = 0.0, 0.0
        if grant.kind is not GrantKind.APPROXIMATE or grant.composition in (Composition.ZCDP, Composition.GAUSSIAN):
            return nothing
        epsilon, delta = sums.total("epsilon"), sums.total("delta")
        if epsilon is None or delta is None or epsilon >= grant.limits["epsilon"]:
            return nothing
        halved = grant.composition is Composition.AUTO and sums.concentrated and sums.n_releases > 0
        bound = grant.bounds["half_delta" if halved else "delta"]
        return (downward(grant.limits["epsilon"] - epsilon), downward(bound - delta)) if delta < bound else nothing

    @property
    def left_text(self) -> str:
        """Kinds of cost that one more release may have, each with its maximum, rounded down."""
        left = self.left
        if left.kind != GrantKind.APPROXIMATE:
            return left.describe(most=True)
        epsilon, delta = self._left_by_parts
        ways = [
            (left.epsilon, f"ε = {no_more(left.epsilon)} (pure)"),
            (epsilon, f"ε = {no_more(epsilon)}, δ = {no_more(delta)} (ε and δ)"),
            (left.rho, f"ρ = {no_more(left.rho)} (zCDP)"),
            (left.mu, f"μ = {no_more(left.mu)} (Gaussian)"),
        ]
        return " or ".join(words for amount, words in ways if amount) or "nothing"

    def __str__(self) -> str:
        lines = [f"{self.dataset} ({self.grant.neighbors}, privacy unit: {self.grant.unit})"]
        if self.grant.kind is GrantKind.APPROXIMATE:
            by_parts = self.grant.composition is Composition.AUTO and not self.sums.concentrated
            lines.append(f"costs are added {_ADDED[Composition.BASIC if by_parts else self.grant.composition]}")
        lines += [f"granted  {self.grant}", f"spent    {self.spent}", f"left     {self.left_text}"]
        lines += [f"changed from {change}" for change in self.changes]
        lines.append(f"{self.n_released} {'release' if self.n_released == 1 else 'releases'}")
        if self.n_refunded:
            lines.append(
                f"{self.n_refunded} refunded: runs that an error stopped before they drew noise. The occurrence of the error, "
                "which is visible to those who started them, is a fact about the table."
            )
        if self.n_open:
            lines.append(
                f"{self.n_open} reserved and uncommitted: a release that is running now, or one that was stopped. They stay "
                "spent, since it is unknown whether noise was drawn and seen."
            )
        return "\n  ".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Return grant, spent and remaining budget, and the number of releases, as plain values."""
        left = self.left
        return {
            "dataset": self.dataset,
            "grant": self.grant.amount.to_dict(),
            "neighbors": str(self.grant.neighbors),
            "unit": self.grant.unit,
            "composition": str(self.grant.composition),
            "spent": self.spent.to_dict(),
            "left": {"epsilon": left.epsilon, "delta": left.delta, "rho": left.rho, "mu": left.mu},
            "released": self.n_released,
            "reserved": self.n_open,
            "refunded": self.n_refunded,
            "changes": list(self.changes),
        }

    def require_for(self, neighbors: Neighbors, unit: str) -> None:
        """Raise LedgerError unless releases with this relation and unit can be charged."""
        if unit != self.grant.unit:
            # The remedy is never rows for people, nor a second budget.
            granted = self.grant.unit
            refused = (
                f"The budget of '{self.dataset}' is for the privacy unit '{granted}', but this release protects '{unit}': a "
                "guarantee for one does not imply the other. "
            )
            if unit != ROW and not self.sums.n_releases:
                again = f"{refused}Nothing of it is spent yet: grant it again with "
                error = OtherUnitError(
                    f"{again}unit={shown(unit)}. Nothing was spent.",
                    shell=f"{again}--privacy-unit {quote(unit)}. Nothing was spent.",
                )
            else:
                never = (
                    "Do not grant a second budget to the same people under another name: their losses would add up, and no "
                    "budget would count them together. Nothing was spent."
                )
                in_python = f"Release with privacy_unit=PrivacyUnit({shown(granted)}, max_rows=…). "
                option = f"Release with --privacy-unit {quote(granted)} --max-rows-per-unit K. "
                error = OtherUnitError(
                    f"{refused}{'' if granted == ROW else in_python}{never}",
                    shell=f"{refused}{'' if granted == ROW else option}{never}",
                )
            error.granted = granted
            raise error
        try:
            losses_of(PrivacyBudget.pure(1.0), LossUnit.EPSILON, neighbors, self.grant.neighbors)
        except ValueError:
            refused = (
                f"The budget of '{self.dataset}' is for {self.grant.neighbors}, but this release is for {neighbors}: a cost "
                "under replace_one says nothing about a row present or absent. Release with "
            )
            advice = ", or grant a dataset of another name for replace_one. Nothing was spent."
            raise LedgerError(
                f"{refused}neighbors='add_remove'{advice}", shell=f"{refused}--neighbors add_remove{advice}"
            ) from None

    def with_charge(self, cost: PrivacyBudget, losses: Losses) -> Account:
        """Return the account with one more release, or raise BudgetExceededError."""
        sums = self.sums + losses
        if sums.within(self.grant):
            return replace(self, sums=sums, n_open=self.n_open + 1)
        if reason := _why_not_counted(self.grant, sums):
            raise BudgetExceededError(
                f"A release that costs {cost} cannot be counted under the budget of '{self.dataset}', {self.grant}: {reason} "
                "Nothing was read and nothing was spent."
            )
        refused = (
            f"The budget of '{self.dataset}' does not allow this release, which would cost {cost}: granted {self.grant}, "
            f"spent {self.spent} by {self.sums.n_releases:,} release{'s' if self.sums.n_releases != 1 else ''}, remaining: "
            f"{self.left_text}. Nothing was read and nothing was spent. Ask for less, or grant more with "
        )
        advice = " if more may be spent on this dataset."
        raise BudgetExceededError(f"{refused}ledger.grant{advice}", shell=f"{refused}'dpmoments ledger grant'{advice}")

    def is_raised_by(self, grant: Grant) -> bool:
        """Return True if a grant of the same kind allows more than the present one."""
        # Only if some of it is spent.
        alike = all(getattr(grant, what) == getattr(self.grant, what) for what in _FIXED)
        if not self.sums.n_releases or not alike:
            return False
        return any(grant.limits[name] > limit for name, limit in self.grant.limits.items())

    def with_grant(self, grant: Grant) -> Account:
        """Return the account with its grant replaced."""
        changes = self.changes
        if self.sums.n_releases:
            if grant != self.grant:
                changes = (*changes, f"{self.grant} to {grant}{grant.why}")
            for what in _FIXED:
                old, new = getattr(self.grant, what), getattr(grant, what)
                if old != new:
                    raise LedgerError(
                        f"'{self.dataset}' was granted a budget with {what} '{old}', and some of it is spent: it cannot become "
                        f"one with {what} '{new}'. Only its amount can be changed."
                    )
            if not self.sums.within(grant):
                raise LedgerError(
                    f"{self.spent} of the budget of '{self.dataset}' is spent: a grant cannot be lowered to {grant}, below what "
                    "is spent already."
                )
        return replace(self, grant=grant, changes=changes)


class Accounts:
    """Accounts of all datasets, built entry by entry."""

    def __init__(self, ledger: str) -> None:
        self.ledger = ledger
        self.number = 0
        self.link = hashlib.sha256(f"dpmoments ledger {ledger}".encode()).hexdigest()  # before the first entry
        self.by_dataset: dict[str, Account] = {}
        # by the number of their entry: reservations, and how they ended
        self.reservations: dict[int, ReservedCost] = {}
        self.ended: dict[int, Action] = {}
        self.history: list[HistoryEntry] = []

    @property
    def head(self) -> LedgerEntry | None:
        """Last entry, or None."""
        return LedgerEntry(self.ledger, self.number, self.link) if self.number else None

    def account(self, dataset: object) -> Account:
        """Return the account of a dataset, or raise LedgerError."""
        name = require_dataset(dataset)
        if name not in self.by_dataset:
            known = f"it has {listed(self.by_dataset)}" if self.by_dataset else "it has none yet"
            wrong = f"The ledger has no budget for dataset '{name}' ({known})."
            raise NoGrantError.of(wrong, "Grant one first: {}. Nothing was spent.", dataset=name)
        return self.by_dataset[name]

    def read(self, number: int, text: str, digest: str) -> None:
        """Apply the next entry of a file."""
        try:
            if number != self.number + 1:
                raise InputValueError(f"entry {self.number + 1} is missing")
            self.apply(HistoryEntry.read(number, text, digest, self.link))
        except (KeyError, TypeError, ValueError, ArithmeticError, RecursionError, LedgerError) as reason:
            why = f"it has no entry {shown(reason.args[0])}" if isinstance(reason, KeyError) else str(reason)
            raise LedgerError(f"The history is broken at entry {number}: {why}") from None

    def apply(self, entry: HistoryEntry) -> None:
        """Apply an entry whose number and hash were checked; all or nothing."""
        dataset, content = require_dataset(entry.dataset), entry.content
        if entry.action is Action.GRANT:
            grant = Grant.from_dict(content)
            known = self.by_dataset.get(dataset)
            account = Account(dataset, grant, Sums()) if known is None else known.with_grant(grant)
        elif entry.action is Action.RESERVE:
            reservation = ReservedCost.from_dict(content, "a reservation")
            account = self.account(dataset)
            account.require_for(reservation.neighbors, reservation.unit)
            account = account.with_charge(reservation.cost, reservation.losses)
            self.reservations[entry.number] = reservation
        else:
            require_known(content, ("reservation",), f"a {entry.action}")
            number = content["reservation"]
            held, account = self.reservations.get(number), self.account(dataset)
            if held is None or self.history[number - 1].dataset != dataset:
                raise LedgerError(f"Entry {shown(number)} reserves nothing for '{dataset}'.")
            if number in self.ended:
                raise LedgerError(f"Entry {number} already has a {self.ended[number]}.")
            self.ended[number] = entry.action
            account = replace(account, n_open=account.n_open - 1)
            if entry.action is Action.COMMIT:
                account = replace(account, n_released=account.n_released + 1)
            else:
                account = replace(account, n_refunded=account.n_refunded + 1, sums=account.sums - held.losses)
        self.by_dataset[dataset] = account
        self.number, self.link = entry.number, entry.hash
        self.history.append(entry)

    def faults(self) -> list[str]:
        """List recorded losses and limits that do not follow from their cost or grant."""
        result, grants = [], dict[str, Grant]()
        for entry in self.history:
            content = entry.content
            if entry.action is Action.GRANT:
                grant = grants[entry.dataset] = Grant.from_dict(content)
                if grant.kind is GrantKind.APPROXIMATE:
                    amount = grant.amount
                    anew = Grant.of(epsilon=amount.epsilon, delta=amount.delta, composition=grant.composition)
                    if not _nearly(content["limits"], anew.to_dict()["limits"]):
                        result.append(f"the limits of entry {entry.number} do not follow from its grant")
            if entry.action is Action.RESERVE:
                held = self.reservations[entry.number]
                losses = losses_of(held.cost, held.loss_unit, held.neighbors, grants[entry.dataset].neighbors)
                if not _nearly(content["losses"], losses.to_dict()):
                    result.append(f"the losses of entry {entry.number} do not follow from its cost")
        return result


def _nearly(recorded: Mapping[str, Any], anew: Mapping[str, Any]) -> bool:
    def same(one: Any, other: Any) -> bool:
        if not isinstance(one, str) or not isinstance(other, str):
            return bool(one == other)
        return math.isclose(Fraction(one), Fraction(other), rel_tol=_AGREEMENT)

    return all(same(recorded[name], anew[name]) for name in anew)
