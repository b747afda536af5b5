"""The privacy filter: the only door to noise. It prices a draw, refuses one that is not paid for, makes it, and writes it down.

A filter serves one run of one plan, in one thread. The losses of all draws, however each was chosen from the results of those
before it, never pass what the plan's stated cost allows (``docs/derivations/composition.md``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from threading import RLock
from typing import Any, NoReturn, Protocol

import numpy as np

from dpmoments.noise.entropy import insecure_generator, secure_generator
from dpmoments.privacy.accounting import Loss, LossUnit, allowance
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.curves.discrete_gaussian import MOST_COMPOSED_COORDINATES
from dpmoments.privacy.distances import Sensitivity, query_distance
from dpmoments.privacy.laws import DrawLaw, EigenvalueBound, WishartSampling
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.receipt import Draw, Receipt, total_loss
from dpmoments.privacy.sampling import coordinates_of, noised
from dpmoments.privacy.sensitivity import sensitivity_from_dict

__all__ = ["Exchange", "PrivacyFilter", "PrivacyFilterError", "PrivatePlan", "Recorder", "Replayer"]


TOLERANCE = 1e-9
"""Relative rounding error allowed where the distance of two queries is measured in floating point."""


class PrivacyFilterError(RuntimeError):
    """A run asked for a draw that its plan does not pay for. The whole stated cost counts as spent."""


class PrivatePlan(Protocol):
    """What a filter needs to know of a plan."""

    @property
    def cost(self) -> PrivacyBudget:
        """What the run may spend."""

    @property
    def neighbors(self) -> Neighbors:
        """For which relation."""

    @property
    def loss_unit(self) -> LossUnit:
        """In which its losses add up."""


class PrivacyFilter:
    """Noise for one run of a plan.

    Parameters
    ----------
    plan : PrivatePlan
    generator : numpy.random.Generator
        From :func:`dpmoments.noise.secure_generator` for a private release.

    Examples
    --------
    >>> from dpmoments.mechanisms import Gaussian, MomentShape
    >>> from dpmoments.privacy import laws, sensitivity
    >>> plan = Gaussian().plan(MomentShape(2), PrivacyBudget.zcdp(0.5), "add_remove")
    >>> privacy_filter = PrivacyFilter.open(plan, insecure_seed=0)
    >>> law, one_row = laws.DiscreteGaussian(10.0), sensitivity.count(Neighbors.ADD_REMOVE)
    >>> noisy = privacy_filter.draw("count", law, np.array([100]), one_row)
    >>> [draw.what for draw in privacy_filter.close().draws]
    ['count']
    """

    def __init__(self, plan: PrivatePlan, generator: np.random.Generator) -> None:
        self._plan = plan
        self._allowance = allowance(plan.cost, plan.loss_unit)
        self._generator = generator
        self._draws: list[Draw] = []
        self._closed = False
        self._lock = RLock()
        self._highest_bounds: dict[str | None, float] = {}

    @classmethod
    def open(cls, plan: PrivatePlan, *, insecure_seed: int | None = None) -> PrivacyFilter:
        """A filter with randomness from the operating system, or one that repeats itself and protects nothing."""
        return cls(plan, secure_generator() if insecure_seed is None else insecure_generator(insecure_seed))

    @property
    def unit(self) -> LossUnit:
        """In which losses are counted."""
        return self._allowance.unit

    def draw(
        self,
        what: str,
        law: DrawLaw,
        query: Any,
        sensitivity: Sensitivity,
        claim: PrivacyBudget | None = None,
        *,
        group: str | None = None,
    ) -> Any:
        """The answer to a query with noise.

        Parameters
        ----------
        what : str
            What is noised, for the receipt.
        law : DrawLaw
        query : array_like
            The exact answer. What depends on it is not seen by the receipt or any message.
        sensitivity : Sensitivity
            From :mod:`dpmoments.privacy.sensitivity`, in the units of the query.
        claim : PrivacyBudget, optional
            For laws that have an exact curve: the (ε, δ) that the plan says the draw costs.
        group : str, optional
            The level of a group of rows, where rows are in one of several disjoint groups each.

        Returns
        -------
        ndarray, float or int
            See :func:`dpmoments.privacy.sampling.noised`.

        Raises
        ------
        PrivacyFilterError
            If the draw would pass what the plan may lose, its sensitivity is not for the plan's relation, its law cannot be
            counted, or the run has ended. Nothing is drawn, and the filter closes.
        """
        with self._lock:
            return self._draw(what, law, query, sensitivity, claim, group)

    def _draw(
        self,
        what: str,
        law: DrawLaw,
        query: Any,
        sensitivity: Sensitivity,
        claim: PrivacyBudget | None,
        group: str | None,
    ) -> Any:
        if self._closed:
            raise PrivacyFilterError("this run has ended: open a filter for each run of a plan")
        if sensitivity.neighbors is not self._plan.neighbors:
            self._refuse(f"the sensitivity of {what} is for another relation than the plan's")
        try:
            law.check_shape(np.shape(query))
            # A sensitivity that no function of the library makes is no bound.
            sensitivity_from_dict(sensitivity.to_dict())
            loss = law.loss(sensitivity, self.unit, claim)
        except (TypeError, ValueError, ArithmeticError) as reason:  # a price beyond the range of floating point is none
            self._refuse(f"{what}: {reason}")
        made = Draw(what, law, sensitivity, loss, coordinates_of(query), claim, group)
        draws = [*self._draws, made]
        if not total_loss(draws, self.unit, self._plan.neighbors).within(self._allowance):
            self._refuse(f"a draw for {what} would spend more than the plan states")
        if self.unit is LossUnit.GAUSSIAN_RHO and sum(draw.size for draw in draws) > MOST_COMPOSED_COORDINATES:
            self._refuse(f"a draw for {what} has more coordinates than the composition is proven for")
        # A bound for one group of rows, or for all of them, says nothing of the rows of another.
        bound = self._highest_bounds.get(group, 0.0)
        if isinstance(law, WishartSampling) and law.floor > max(bound - sensitivity.value, 0.0):
            self._refuse(f"{what} relies on a bound on the smallest eigenvalue that was not drawn")
        if law.on_lattice and not _is_integral(query):
            self._refuse(f"{what} is not in integers, and noise on a lattice hides nothing between its points")
        self._draws = draws
        try:
            answer = self._answer(made, query)
        except BaseException:
            self._closed = True
            raise
        if isinstance(law, EigenvalueBound):
            self._highest_bounds[group] = max(bound, answer)
        return answer

    def close(self) -> Receipt:
        """End the run: the receipt of its draws."""
        self._closed = True
        return Receipt(self._plan.neighbors, self._plan.cost, self._plan.loss_unit, tuple(self._draws))

    def for_group(self, level: str) -> GroupFilter:
        """The door for the rows of one of several disjoint groups."""
        return GroupFilter(self, level)

    @property
    def left(self) -> Loss:
        """What the run may still lose; public, since every loss is."""
        spent = total_loss(self._draws, self.unit, self._plan.neighbors)
        return Loss(self.unit, self._allowance.amount - spent.amount, self._allowance.delta - spent.delta)

    def left_for(self, level: str) -> Loss:
        """What the draws for one group may still lose."""
        others = [draw for draw in self._draws if draw.group is not None and draw.group != level]
        spent = total_loss([draw for draw in self._draws if draw not in others], self.unit, self._plan.neighbors)
        if self._plan.neighbors is Neighbors.REPLACE_ONE:
            spent = spent + total_loss(others, self.unit, Neighbors.ADD_REMOVE)
        return Loss(self.unit, self._allowance.amount - spent.amount, self._allowance.delta - spent.delta)

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "a privacy filter is for one run and cannot be copied: its copies would each spend the whole budget"
        )

    def _refuse(self, words: str) -> NoReturn:
        self._closed = True
        raise PrivacyFilterError(
            f"{words}. Nothing was drawn for it; what was drawn before is spent, and the plan's whole cost counts as spent. "
            "This is a defect of the mechanism: please report it"
        )

    def _answer(self, made: Draw, query: Any) -> Any:
        return noised(made.law, query, self._generator)


def _is_integral(query: Any) -> bool:
    """Whether a query is of integers by its type alone, or of Python integers."""
    cells = np.asarray(query)
    if cells.dtype == object:
        return all(type(cell) is int for cell in cells.ravel().tolist())
    return bool(np.issubdtype(cells.dtype, np.integer))


class GroupFilter(PrivacyFilter):
    """The part of a filter that serves one of several disjoint groups of rows."""

    def __init__(self, whole: PrivacyFilter, level: str) -> None:
        self._whole, self._level = whole, level

    @property
    def unit(self) -> LossUnit:
        return self._whole.unit

    @property
    def left(self) -> Loss:
        return self._whole.left_for(self._level)

    def left_for(self, level: str) -> Loss:
        return self._whole.left_for(level)

    def draw(
        self,
        what: str,
        law: DrawLaw,
        query: Any,
        sensitivity: Sensitivity,
        claim: PrivacyBudget | None = None,
        *,
        group: str | None = None,
    ) -> Any:
        """As :meth:`PrivacyFilter.draw`, counted to the group."""
        if group is not None:
            raise ValueError("groups within groups are not supported")
        return self._whole.draw(what, law, query, sensitivity, claim, group=self._level)

    def close(self) -> Receipt:
        """Refused: the whole run is closed at once."""
        raise TypeError("close the filter of the whole run")


@dataclass(frozen=True)
class Exchange:
    """A query as a run made it, and what it was answered: private data, for tests and audits alone."""

    made: Draw
    query: Any = field(repr=False)
    answer: Any = field(repr=False)


class Recorder(PrivacyFilter):
    """A filter that keeps every query with its answer."""

    def __init__(self, plan: PrivatePlan, generator: np.random.Generator) -> None:
        super().__init__(plan, generator)
        self.exchanges: list[Exchange] = []

    def _answer(self, made: Draw, query: Any) -> Any:
        answer = super()._answer(made, query)
        self.exchanges.append(Exchange(made, np.array(query), np.array(answer)))
        return answer


class Replayer(PrivacyFilter):
    """A filter that gives the answers of another run, and measures how far its queries are from that run's.

    Parameters
    ----------
    plan : PrivatePlan
    recorded : iterable of Exchange
        Of a run on a neighbouring table.
    same_rows : bool
        Whether that table had the same rows in another order, so that no query may move.

    Attributes
    ----------
    faults : list of str
        A query of another law or shape, or farther from the recorded one than its sensitivity.
    """

    def __init__(self, plan: PrivatePlan, recorded: Iterable[Exchange], *, same_rows: bool = False) -> None:
        super().__init__(plan, insecure_generator(0))
        self._same_rows = same_rows
        self._recorded = list(recorded)
        self.faults: list[str] = []

    def _answer(self, made: Draw, query: Any) -> Any:
        place = len(self._draws) - 1
        if place >= len(self._recorded):
            fault = f"draw {place}, {made.what}: the other run did not make it"
            self.faults.append(fault)
            raise PrivacyFilterError(fault)
        before = self._recorded[place]
        if (made.what, made.law, made.sensitivity, made.claim, made.group) != (
            before.made.what,
            before.made.law,
            before.made.sensitivity,
            before.made.claim,
            before.made.group,
        ):
            self.faults.append(
                f"draw {place}: {made.what} under {made.law}, before {before.made.what} under {before.made.law}"
            )
        moved = query_distance(made.sensitivity.norm, query, before.query, made.sensitivity.neighbors)
        paid_for = 0.0 if self._same_rows else made.sensitivity.value * (1.0 + TOLERANCE)
        if not moved <= paid_for:
            self.faults.append(f"draw {place}, {made.what}: moved by {moved!r} where {paid_for!r} is paid for")
        answer = before.answer
        return answer.copy() if answer.ndim else answer.item()

    def check_all_made(self) -> None:
        """Note draws of the other run that this one did not make."""
        if len(self._draws) < len(self._recorded):
            self.faults.append(f"{len(self._recorded) - len(self._draws)} draws of the other run were not made")
