"""Forecast: what every mechanism's error would be, before any data is read or any budget is spent.

Where the error depends on the table, it is that on a table that is assumed (:mod:`dpmoments.mechanisms.parts.assumption`), by
closed form or from a few runs on made-up rows; such numbers are marked.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any

import numpy as np

from dpmoments.mechanisms.base import Mechanism, MomentShape
from dpmoments.mechanisms.parts.assumed_table import AssumedTable
from dpmoments.mechanisms.parts.assumption import Assumption
from dpmoments.mechanisms.registry import MECHANISMS
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.schema.schema import Schema

__all__ = ["DerivedCost", "Forecast", "ForecastRow", "forecast", "require_row_count"]


@dataclass(frozen=True, slots=True)
class ForecastRow:
    """One mechanism at one budget.

    Attributes
    ----------
    mechanism : str
    second_moment_error : float or None
        Root mean square of ‖Ĝ − G‖_F/n for encoded rows in the unit ball, before any repair; None where the mechanism cannot run.
    mean_error : float or None
        Root mean square of ‖mean error‖₂ in the unit ball; None where no mean is wanted or the mechanism cannot run.
    arithmetic : str or None
        What the guarantee rests on.
    refusal : str or None
        Why the mechanism cannot run, where it cannot.
    assumed : bool
        Whether ``second_moment_error`` depends on the table, and is that on the forecast's ``assumption``.
    mean_assumed : bool
        The same for ``mean_error``.
    guaranteed_error : float or None
        What ``second_moment_error`` does not pass in any table, for a mechanism that adapts to the table; None for others.
    chosen_because : str or None
        Why ``auto`` chose what it did.
    """

    mechanism: str
    second_moment_error: float | None = None
    mean_error: float | None = None
    arithmetic: str | None = None
    refusal: str | None = None
    assumed: bool = False
    mean_assumed: bool = False
    guaranteed_error: float | None = None
    chosen_because: str | None = None

    @property
    def second_moment_shown(self) -> str:
        """``second_moment_error`` to three digits, or to two and marked with ~ where it is assumed."""
        return shown(self.second_moment_error, self.assumed)

    @property
    def mean_shown(self) -> str:
        """``mean_error`` in the same way."""
        return shown(self.mean_error, self.mean_assumed)


@dataclass(frozen=True, slots=True)
class DerivedCost:
    """What the derived features of a schema cost the others, in noise of one mechanism at the public bounds.

    Attributes
    ----------
    names : tuple of str
        The derived features: ``age^2``.
    mechanism : str
        The one of least error whose noise has a law.
    second_moment : float
        By what share the standard deviation of the noise on a cell of two other features, in the table's units, is above what it
        is without the derived features: 0.5 is half as much again. The largest, where typical ranges make cells differ.
    mean : float or None
        The same for the mean of another feature; None where no mean is wanted.
    """

    names: tuple[str, ...]
    mechanism: str
    second_moment: float
    mean: float | None

    def __str__(self) -> str:
        means = "" if self.mean is None else f", on means by {self.mean:.0%}"
        return (
            f"derived features {', '.join(self.names)} raise the noise on every second moment of other features by "
            f"{self.second_moment:.0%}{means} ({self.mechanism})"
        )

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {
            "names": list(self.names),
            "mechanism": self.mechanism,
            "second_moment": self.second_moment,
            "mean": self.mean,
        }


@dataclass(frozen=True, slots=True)
class Forecast:
    """A table of :class:`ForecastRow`, the least expected error first, refusals last.

    Attributes
    ----------
    rows : tuple of ForecastRow
    n_rows : int
    budget : PrivacyBudget
    neighbors : Neighbors
    assumption : Assumption
        What the marked numbers assume of the table.
    derived_cost : DerivedCost or None
        None where the schema has no derived feature, or no mechanism with a law of its noise can run.
    """

    rows: tuple[ForecastRow, ...]
    n_rows: int
    budget: PrivacyBudget
    neighbors: Neighbors
    assumption: Assumption
    derived_cost: DerivedCost | None = None

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

    @property
    def units(self) -> str:
        """What errors are measured in."""
        return "unit-ball units" if self.assumption.units is None else "in assumed standard deviations"

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the numbers do not say: the cost of derived features, how far an adaptive error can move, why ``auto`` chose."""
        adaptive = [
            f"{row.mechanism} adapts to the table: its error is at most {row.guaranteed_error:.3g}, and the less the smaller the "
            "ball is that most rows lie in; on the table assumed rows fill their bounds, as real ones seldom do"
            for row in self.rows
            if row.guaranteed_error is not None and row.chosen_because is None
        ]
        derived = () if self.derived_cost is None else (str(self.derived_cost),)
        return (
            *derived,
            *adaptive,
            *(f"{row.mechanism}: {row.chosen_because}" for row in self.rows if row.chosen_because),
        )

    def __str__(self) -> str:
        lines = [
            f"Expected error for {self.n_rows:,} rows, {self.budget}, {self.neighbors} ({self.units}, before repair)",
            *([f"~ assumes: {self.assumption.words}"] if any(row.assumed for row in self.rows) else []),
            f"{'mechanism':<26}{'second moment':>14}{'mean':>12}  arithmetic",
        ]
        for row in self.rows:
            if row.refusal is None:
                errors = f"{row.second_moment_shown:>14}{row.mean_shown:>12}"
                lines.append(f"{row.mechanism:<26}{errors}  {row.arithmetic}")
        lines.extend(self.remarks)
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
    spectrum: Sequence[float] | None = None,
    decay: float | None = None,
) -> Forecast:
    """Expected error of every mechanism, from public numbers alone.

    The error of additive noise does not depend on the table. That of the others does: it is stated for a table that is assumed,
    and marked. Where it has no closed form, it is the root mean square over a few runs on made-up rows, at fixed seeds.

    Parameters
    ----------
    schema : Schema
    n_rows : int
        The number of rows expected; it only scales the errors.
    epsilon, delta, rho, neighbors, mean
        As for :func:`dpmoments.release`.
    spectrum : sequence of float, optional
        A public guess of the eigenvalues of the second moment E[x xᵀ] of the encoded rows, one for every feature after encoding.
        **Never computed from the table.** Default: proportional to 1/i, with sum 1 where rows are given in the unit ball and
        ½ where columns have bounds (``docs/utility-bounds-eigenvectors.md`` says how near that is on public tables); for
        columns with rough scales, standard deviations in the geometric middle of their ranges.
    decay : float, optional
        Eigenvalues proportional to i^−decay in place of 1/i.

    Returns
    -------
    Forecast
        ``print`` shows it as a table; ``forecast["gaussian"].second_moment_error`` is one of its numbers.

    Raises
    ------
    ValueError
        If the budget, the number of rows or the spectrum is not possible.

    Examples
    --------
    >>> table = forecast(Schema.unit_ball(13), n_rows=178, epsilon=1.0, neighbors="replace_one", mean=False)
    >>> round(table["matrix-laplace"].second_moment_error, 3)
    0.401
    >>> eigenvectors = table["iterative-eigenvectors"]
    >>> eigenvectors.assumed, eigenvectors.second_moment_shown
    (True, '~0.41')
    >>> print(table.assumption.words)
    normal rows, eigenvalues of their second moment as 1/i with sum 1

    Derived features take their part of the ball from the columns:

    >>> from dpmoments import Numeric, Power
    >>> schema = Schema(Numeric("age", 0, 100), Numeric("hours", 0, 80), Power("age", 2))
    >>> print(forecast(schema, n_rows=1000, epsilon=1.0, delta=1e-6).derived_cost)
    derived features age^2 raise the noise on every second moment of other features by 55%, on means by 39% (auto)
    """
    require_row_count(n_rows)
    budget = PrivacyBudget.of(epsilon=epsilon, delta=delta, rho=rho)
    relation = Neighbors.of(neighbors)
    # Where the number of rows is private a release plans without it, and so does its forecast.
    shape = MomentShape.of(schema, mean=mean, n_rows=n_rows if relation.table_size_is_public else None)
    assumption = Assumption.of(schema, mean=mean, spectrum=spectrum, decay=decay)
    assumed = assumption.table(n_rows)
    rows = [_row(name, kind(), shape, budget, relation, assumed) for name, kind in MECHANISMS.items()]
    rows.sort(key=lambda row: (row.refusal is not None, row.second_moment_error or math.inf))
    possible = [row.mechanism for row in rows if row.refusal is None]
    derived = _derived_cost(schema, shape, budget, relation, possible) if schema.derived_columns else None
    return Forecast(tuple(rows), n_rows, budget, relation, assumption, derived)


def _derived_cost(
    schema: Schema, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors, mechanisms: Sequence[str]
) -> DerivedCost | None:
    """By the plans with and without the derived features, of the first mechanism that states a law of its noise for both."""
    less = schema.without_derived
    own = [name in less.feature_names for name in schema.feature_names]
    encodings = schema.encoding(mean=shape.mean), less.encoding(mean=shape.mean)
    units = float(np.max(encodings[0].scale[own] / encodings[1].scale))
    for mechanism in mechanisms:
        shapes = shape, MomentShape.of(less, mean=shape.mean, n_rows=shape.n_rows)
        try:
            laws = [MECHANISMS[mechanism]().plan(either, budget, neighbors).noise for either in shapes]
        except (ValueError, OverflowError):  # one column may be too few for it
            continue
        if laws[0] is None or laws[1] is None:
            continue
        cells = math.sqrt(laws[0].off_diagonal_variance / laws[1].off_diagonal_variance)
        sums = [law.sum_variance for law in laws if law is not None and law.sum_variance is not None]
        means = units * math.sqrt(sums[0] / sums[1]) - 1.0 if len(sums) == 2 else None
        names = tuple(column.name for column in schema.derived_columns)
        return DerivedCost(names, mechanism, units**2 * cells - 1.0, means)
    return None


def require_row_count(n_rows: int) -> None:
    """Raise ValueError unless it is a possible number of rows."""
    if isinstance(n_rows, bool) or not isinstance(n_rows, Integral) or n_rows < 1:
        raise ValueError(f"n_rows={n_rows!r} must be a positive whole number")


def _row(
    name: str,
    mechanism: Mechanism,
    shape: MomentShape,
    budget: PrivacyBudget,
    neighbors: Neighbors,
    assumed: AssumedTable,
) -> ForecastRow:
    try:
        plan = mechanism.plan(shape, budget, neighbors)
        errors = plan.errors_on(
            assumed, (PrivacyFilter.open(plan, insecure_seed=seed) for seed in range(plan.measured_runs))
        )
    except (ValueError, OverflowError) as refusal:  # of the plan, or of numbers beyond all tables
        return ForecastRow(name, refusal=str(refusal))
    return ForecastRow(
        mechanism=name,
        second_moment_error=errors.gram / assumed.n_rows,
        mean_error=None if errors.sum is None else errors.sum / assumed.n_rows,
        arithmetic=str(plan.arithmetic),
        assumed=errors.gram_assumed,
        mean_assumed=errors.sum_assumed,
        guaranteed_error=plan.guaranteed_error / assumed.n_rows if plan.guaranteed_error is not None else None,
        chosen_because=plan.chosen_because,
    )


def shown(error: float | None, assumed: bool) -> str:
    """An error for people.

    Examples
    --------
    >>> shown(0.12345, False), shown(0.12345, True), shown(None, False)
    ('0.123', '~0.12', '–')
    """
    if error is None:
        return "–"
    return f"~{error:.2g}" if assumed else f"{error:.3g}"
