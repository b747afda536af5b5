"""Privacy filter, the only door to noise.

It prices a draw, refuses one that is not paid for, makes it, and records it.

A filter serves one run of one plan. The losses of all draws, however each was chosen from the results of those before it, never
exceed what the plan's stated cost allows (``docs/evidence/derivations/composition.md``).
"""

from __future__ import annotations

from functools import lru_cache
from threading import RLock
from typing import Any, NoReturn, Protocol

import numpy as np

from dpmoments.base.errors import InputRuntimeError, InputTypeError, InputValueError
from dpmoments.base.message import Message, Query
from dpmoments.privacy.accounting import Loss, LossUnit, allowance_for_rows
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.curves import MAX_COMPOSED_COORDINATES
from dpmoments.privacy.laws import DrawLaw
from dpmoments.privacy.receipt import Draw, Receipt, total_loss
from dpmoments.privacy.sampling import coordinates_of, insecure_generator, noised, secure_generator
from dpmoments.privacy.sensitivity import Sensitivity, sensitivity_from_dict
from dpmoments.privacy.unit import Neighbors, PrivacyUnit, SelectionKey


class PrivacyFilterError(InputRuntimeError):
    """Refusal of a draw that the plan does not pay for. The whole stated cost counts as spent."""


class PrivatePlan(Protocol):
    """Part of a plan that a filter needs: the budget of a run, and what it is about."""

    @property
    def cost(self) -> PrivacyBudget: ...
    @property
    def neighbors(self) -> Neighbors: ...
    @property
    def loss_unit(self) -> LossUnit: ...
    @property
    def privacy_unit(self) -> PrivacyUnit | None: ...


class PrivacyFilter:
    """Noise for one run of a plan; a private one needs a generator from ``secure_generator``."""

    def __init__(self, plan: PrivatePlan, generator: np.random.Generator, before: Receipt | None = None) -> None:
        self._plan, self._before = plan, before
        # Sensitivities are those of one row, and what draws may lose together is counted for one row too.
        self._allowance = allowance_for_rows(plan.cost, plan.loss_unit, plan.privacy_unit)
        self._generator = generator
        self._draws: list[Draw] = []
        self._spent: dict[str | None, Loss] = {}
        self._n_coordinates = 0
        self._closed = False
        self._refused = False
        self._lock = RLock()
        self._highest_bounds: dict[str | None, float] = {}

    @classmethod
    def open(
        cls, plan: PrivatePlan, *, insecure_seed: int | None = None, before: Receipt | None = None
    ) -> PrivacyFilter:
        """Return a filter with secure randomness, or with an insecure one that repeats itself.

        ``before`` is the receipt of a run whose cost is added to the plan's.
        """
        return cls(plan, secure_generator() if insecure_seed is None else insecure_generator(insecure_seed), before)

    @property
    def unit(self) -> LossUnit:
        """Unit in which losses are counted."""
        return self._allowance.unit

    def draw(
        self,
        what: Query,
        law: DrawLaw,
        query: Any,
        sensitivity: Sensitivity,
        claim: PrivacyBudget | None = None,
        *,
        group: str | None = None,
    ) -> Any:
        """Return the answer to a query with noise, see :func:`dpmoments.privacy.sampling.noised`."""
        # Neither the receipt nor any message depends on `query`, the exact answer; `sensitivity` is in its units.
        # `claim` is the (ε, δ) that the plan states for a draw with an exact curve, `group` the level of a group if
        # groups are disjoint.
        with self._lock:
            if self._closed:
                raise PrivacyFilterError("This run has ended: open a filter for each run of a plan.")
            query_text = what.text("short") if isinstance(what, Message) else str(what)
            if sensitivity.neighbors is not self._plan.neighbors:
                self._refuse(f"The sensitivity of '{query_text}' is for another relation than the plan's.")
            try:
                law.check_shape(np.shape(query))
                query_of_receipt = Message.of_query(what)
                # A sensitivity that no function of the library makes is no bound.
                _require_made_here(sensitivity)
                loss = law.loss(sensitivity, self.unit, claim)
            except (TypeError, ValueError, ArithmeticError) as reason:  # a price beyond floating point is none
                self._refuse(f"'{query_text}': {reason}.")
            made = Draw(query_of_receipt, law, sensitivity, loss, coordinates_of(query), claim, group)
            spent = self._spent | {group: self._spent.get(group, Loss.none(self.unit)) + loss}
            n_coordinates = self._n_coordinates + made.size
            if not total_loss(spent, self.unit, self._plan.neighbors).within(self._allowance):
                self._refuse(f"A draw for '{query_text}' would spend more than the plan states.")
            if self.unit is LossUnit.GAUSSIAN_RHO and n_coordinates > MAX_COMPOSED_COORDINATES:
                self._refuse(f"A draw for '{query_text}' has more coordinates than the composition is proven for.")
            # A bound for one group of rows, or for all of them, says nothing of the rows of another.
            bound = self._highest_bounds.get(group, 0.0)
            if law.eigenvalue_floor > max(bound - sensitivity.value, 0.0):
                self._refuse(f"'{query_text}' relies on a bound on the smallest eigenvalue that was not drawn.")
            if law.on_lattice and not _is_integral(query):
                self._refuse(
                    f"'{query_text}' is not in integers, and noise on a lattice hides nothing between its points."
                )
            self._draws.append(made)
            self._spent, self._n_coordinates = spent, n_coordinates
            try:
                answer = self._answer(made, query)
            except BaseException:
                self._closed = True
                raise
            if law.delta_is_of_bound:
                self._highest_bounds[group] = max(bound, answer)
            self._note(made, query, answer)
            return answer

    def close(self) -> Receipt:
        """Return the receipt of its draws, and end the run."""
        self._closed = True
        return self.receipt

    @property
    def receipt(self) -> Receipt:
        """Receipt of the draws so far."""
        plan = self._plan
        return Receipt(plan.neighbors, plan.cost, plan.loss_unit, tuple(self._draws), plan.privacy_unit, self._before)

    @property
    def spent(self) -> bool:
        """True once a draw was begun, or refused: the plan's whole cost then counts as spent."""
        return self._before is not None or bool(self._draws) or self._refused

    def selection_key(self) -> SelectionKey:
        """Return a key that selects the kept rows of a unit.

        128 random bits, independent of the table.

        The guarantee holds for any key; it is drawn so that no row is preferred, and leaves no trace in the release.
        """
        with self._lock:
            first, second = self._generator.integers(0, 2**64, size=2, dtype=np.uint64).tolist()
        return first, second

    def for_group(self, level: str) -> GroupFilter:
        """Return the filter for the rows of one of several disjoint groups."""
        return GroupFilter(self, level)

    @property
    def left(self) -> Loss:
        """Remaining loss of the run; public, since every loss is."""
        return self._allowance - total_loss(self._spent, self.unit, self._plan.neighbors)

    def left_for(self, level: str) -> Loss:
        """Return the remaining loss of the draws for one group."""
        counted = {group: loss for group, loss in self._spent.items() if group in (None, level)}
        others = {group: loss for group, loss in self._spent.items() if group not in counted}
        spent = total_loss(counted, self.unit, self._plan.neighbors)
        if self._plan.neighbors is Neighbors.REPLACE_ONE:
            spent = spent + total_loss(others, self.unit, Neighbors.ADD_REMOVE)
        return self._allowance - spent

    def __reduce__(self) -> NoReturn:
        raise InputTypeError(
            "a privacy filter is for one run and cannot be copied: its copies would each spend the whole budget"
        )

    def _refuse(self, reason: str) -> NoReturn:
        self._closed = self._refused = True
        raise PrivacyFilterError(
            f"{reason} Nothing was drawn for it; what was drawn before is spent, and the plan's whole cost counts as spent. "
            "This is a defect of the mechanism: please report it."
        )

    def _answer(self, made: Draw, query: Any) -> Any:
        return noised(made.law, query, self._generator)

    def _note(self, made: Draw, query: Any, answer: Any) -> None:
        """Record nothing; an audit overrides this to keep what it sees."""


def _require_made_here(sensitivity: Sensitivity) -> None:
    """Raise unless a function of the library makes this sensitivity, or a smaller one."""
    # The error is a KeyError, TypeError or ValueError.
    stated = sensitivity.to_dict()
    given = stated.pop("arguments").items()
    arguments = [part for name, value in given for part in (name, tuple(value) if isinstance(value, list) else value)]
    if _made_anew(*stated.values(), *arguments).norm is not sensitivity.norm:
        raise InputValueError(f"the bound that {sensitivity.name} makes is in another norm")


# The draws of a run have the same few sensitivities. ``typed``: 3 and 3.0 are one key else, and one of them is refused.
@lru_cache(maxsize=256, typed=True)
def _made_anew(name: str, neighbors: str, units: float, rounding: float, value: float, *arguments: Any) -> Sensitivity:
    stated = {"name": name, "neighbors": neighbors, "units": units, "rounding": rounding, "value": value}
    values = [list(value) if isinstance(value, tuple) else value for value in arguments[1::2]]
    return sensitivity_from_dict({**stated, "arguments": dict(zip(arguments[::2], values, strict=True))})


def _is_integral(query: Any) -> bool:
    """Return True if a query consists of integers by its type, or of Python integers."""
    cells = np.asarray(query)
    if cells.dtype == object:
        return set(map(type, cells.ravel().tolist())) <= {int}
    return bool(np.issubdtype(cells.dtype, np.integer))


class GroupFilter(PrivacyFilter):
    """Part of a filter that serves one of several disjoint groups of rows."""

    def __init__(self, whole: PrivacyFilter, level: str) -> None:
        self._whole, self._level = whole, level

    @property
    def unit(self) -> LossUnit:
        return self._whole.unit

    @property
    def left(self) -> Loss:
        return self._whole.left_for(self._level)

    @property
    def spent(self) -> bool:
        return self._whole.spent

    def left_for(self, level: str) -> Loss:
        return self._whole.left_for(level)

    def draw(
        self,
        what: Query,
        law: DrawLaw,
        query: Any,
        sensitivity: Sensitivity,
        claim: PrivacyBudget | None = None,
        *,
        group: str | None = None,
    ) -> Any:
        """Draw like :meth:`PrivacyFilter.draw`, counted to the group."""
        if group is not None:
            raise InputValueError("groups within groups are not supported")
        return self._whole.draw(what, law, query, sensitivity, claim, group=self._level)

    def selection_key(self) -> SelectionKey:
        """Raise: a unit may have rows in several groups."""
        raise InputTypeError("rows of units are not divided into groups")

    def close(self) -> Receipt:
        """Raise: the whole run is closed at once."""
        raise InputTypeError("close the filter of the whole run")
