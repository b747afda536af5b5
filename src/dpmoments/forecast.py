"""Forecast: what every mechanism's error would be, before any data is read or any budget is spent."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from dpmoments.mechanisms.base import Mechanism, MomentShape
from dpmoments.mechanisms.registry import MECHANISMS
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.schema.schema import Schema

__all__ = ["Forecast", "ForecastRow", "forecast", "require_row_count"]


@dataclass(frozen=True, slots=True)
class ForecastRow:
    """One mechanism at one budget.

    Attributes
    ----------
    mechanism : str
    second_moment_error : float or None
        Root mean square of ‖Ĝ − G‖_F/n for encoded rows in the unit ball, before any repair; None where it has no closed form.
    mean_error : float or None
        Root mean square of ‖mean error‖₂ in the unit ball; None where no mean is wanted or it has no closed form.
    arithmetic : str or None
        What the guarantee rests on.
    refusal : str or None
        Why the mechanism cannot run, where it cannot.
    """

    mechanism: str
    second_moment_error: float | None = None
    mean_error: float | None = None
    arithmetic: str | None = None
    refusal: str | None = None


@dataclass(frozen=True, slots=True)
class Forecast:
    """A table of :class:`ForecastRow`, the least expected error first, refusals last."""

    rows: tuple[ForecastRow, ...]
    n_rows: int
    budget: PrivacyBudget
    neighbors: Neighbors

    def __iter__(self) -> Iterator[ForecastRow]:
        return iter(self.rows)

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, mechanism: str) -> ForecastRow:
        """The row of the mechanism named."""
        for row in self.rows:
            if row.mechanism == mechanism:
                return row
        raise KeyError(mechanism)

    def __str__(self) -> str:
        lines = [
            f"Expected error for {self.n_rows:,} rows, {self.budget}, {self.neighbors} (unit-ball units, before repair)",
            f"{'mechanism':<26}{'second moment':>14}{'mean':>12}  arithmetic",
        ]
        for row in self.rows:
            if row.refusal is None:
                errors = f"{_shown(row.second_moment_error):>14}{_shown(row.mean_error):>12}"
                lines.append(f"{row.mechanism:<26}{errors}  {row.arithmetic}")
        lines.extend(f"{row.mechanism:<26}not possible: {row.refusal}" for row in self.rows if row.refusal)
        return "\n".join(lines)


def forecast(
    schema: Schema,
    *,
    n_rows: int,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors | str = "add_remove",
    mean: bool = True,
) -> Forecast:
    """Expected error of every mechanism, from public numbers alone.

    Parameters
    ----------
    schema : Schema
    n_rows : int
        The number of rows expected; it only scales the errors.
    epsilon, delta, rho, neighbors, mean
        As for :func:`dpmoments.release`.

    Returns
    -------
    Forecast
        ``print`` shows it as a table; ``forecast["gaussian"].second_moment_error`` is one of its numbers.

    Raises
    ------
    ValueError
        If the budget or the number of rows is not possible.

    Examples
    --------
    >>> table = forecast(Schema.unit_ball(13), n_rows=178, epsilon=1.0, neighbors="replace_one", mean=False)
    >>> round(table["matrix-laplace"].second_moment_error, 3)
    0.401
    """
    require_row_count(n_rows)
    budget = PrivacyBudget.of(epsilon=epsilon, delta=delta, rho=rho)
    relation = Neighbors.of(neighbors)
    # Where the number of rows is private a release plans without it, and so does its forecast.
    shape = MomentShape.of(schema, mean=mean, n_rows=n_rows if relation.table_size_is_public else None)
    rows = [_row(name, kind(), shape, budget, relation, n_rows) for name, kind in MECHANISMS.items()]
    rows.sort(key=lambda row: (row.refusal is not None, row.second_moment_error or math.inf))
    return Forecast(tuple(rows), n_rows, budget, relation)


def require_row_count(n_rows: int) -> None:
    """Raise ValueError unless it is a possible number of rows."""
    if isinstance(n_rows, bool) or not isinstance(n_rows, int) or n_rows < 1:
        raise ValueError(f"n_rows={n_rows!r} must be a positive whole number")


def _row(
    name: str,
    mechanism: Mechanism,
    shape: MomentShape,
    budget: PrivacyBudget,
    neighbors: Neighbors,
    n_rows: int,
) -> ForecastRow:
    try:
        plan = mechanism.plan(shape, budget, neighbors)
    except ValueError as refusal:
        return ForecastRow(name, refusal=str(refusal))
    error, sum_error = plan.expected_error, plan.expected_sum_error
    return ForecastRow(
        mechanism=name,
        second_moment_error=None if error is None else error / n_rows,
        mean_error=None if sum_error is None else sum_error / n_rows,
        arithmetic=str(plan.arithmetic),
    )


def _shown(error: float | None) -> str:
    return "–" if error is None else f"{error:.3g}"
