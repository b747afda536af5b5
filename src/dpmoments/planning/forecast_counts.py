"""Forecast of the noise of contingency tables, without data or budget."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from dpmoments.analysis.answers import Answer, Column, format_level, number
from dpmoments.mechanisms.counts import Counts, CountsPlan, shape_of
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.mechanisms.units import plan_before_release
from dpmoments.noise.cells import CountNoise
from dpmoments.planning.forecast import require_row_count
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors, PrivacyUnit, require_unit
from dpmoments.schema.constraints import schema_of_tables
from dpmoments.schema.schema import Schema

_LEVEL = 0.95


@dataclass(frozen=True, eq=False, repr=False)
class CountsForecast(Answer):
    """Noise of contingency tables, which depends on public numbers only.

    Attributes
    ----------
    by : tuple of tuples of str
        Columns of every table.
    cells : tuple of int
        Number of cells of every table.
    noise : tuple of CountNoise
        Noise distribution of a count of every table.
    n_rows : int or None
        Expected number of rows.
    """

    by: tuple[tuple[str, ...], ...]
    cells: tuple[int, ...]
    noise: tuple[CountNoise, ...]
    budget: PrivacyBudget
    neighbors: Neighbors
    n_rows: int | None = None
    privacy_unit: PrivacyUnit | None = None

    facts = ("budget: budget.to_dict", "neighbors: relation", "n_rows", "tables: *")

    @property
    def relation(self) -> str:
        """Name of the neighboring relation."""
        return str(self.neighbors)

    @property
    def standard_errors(self) -> tuple[float, ...]:
        """Noise SD of a count of every table, in rows."""
        return tuple(noise.standard_deviation for noise in self.noise)

    @property
    def half_widths(self) -> tuple[float, ...]:
        """Half-width of the 95 % interval of a count of every table, in rows."""
        return tuple(noise.half_width(_LEVEL) for noise in self.noise)

    @property
    def heading(self) -> tuple[str, ...]:
        unit = "" if self.privacy_unit is None else f", {self.privacy_unit.rows_text}"
        return (f"Noise of counts in rows, {self.budget}, {self.neighbors}{unit}; no data read",)

    @property
    def remarks(self) -> tuple[str, ...]:
        return (
            "The noise on a count does not depend on the table; a repair keeps the total and makes no count negative.",
        )

    def _columns(self) -> list[Column]:
        totals = [noise.of_sum(cells).standard_deviation for noise, cells in zip(self.noise, self.cells, strict=True)]
        columns = [
            Column("table", [" by ".join(by) for by in self.by], "table", label=True),
            Column("cells", np.array(self.cells), "cells", [f"{cells:,}" for cells in self.cells]),
            Column("noise", np.array(self.standard_errors), "± a count"),
            Column(
                "half_width",
                np.array(self.half_widths),
                f"{format_level(_LEVEL)} interval",
                [f"± {number(half)}" for half in self.half_widths],
            ),
            Column("noise_of_total", np.array(totals), "± all rows"),
        ]
        if self.n_rows is None:
            return columns
        typical = [self.n_rows / cells for cells in self.cells]
        relative = np.array([error / count for error, count in zip(self.standard_errors, typical, strict=True)])
        return [
            *columns,
            Column("typical_count", np.array(typical), "rows per cell"),
            Column("relative_noise", relative, "± relative", [f"{share:.2%}" for share in relative]),
        ]


def forecast_counts(
    schema: Schema,
    *,
    by: str | Sequence[str] | Sequence[Sequence[str]],
    split: Sequence[float] | None = None,
    n_rows: int | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors | str = "add_remove",
    privacy_unit: PrivacyUnit | None = None,
) -> CountsForecast:
    """Forecast the noise of contingency tables: it is known exactly before any data is read.

    Parameters
    ----------
    schema : Schema
    by, split, epsilon, delta, rho, neighbors, privacy_unit
        As for :func:`dpmoments.release_counts`.
    n_rows : int, optional
        Expected number of rows, for the noise relative to the count of an average cell. With a privacy unit, of rows that
        count.

    Returns
    -------
    CountsForecast
        ``print`` shows it; ``forecast_counts(…).standard_errors`` are the noise SDs of the tables.

    Raises
    ------
    ValueError, TypeError
        As :func:`dpmoments.release_counts` does before a row is read.

    Examples
    --------
    >>> from dpmoments import Boolean, Categorical
    >>> schema = Schema(Categorical("region", ["north", "south", "east"]), Boolean("smoker"))
    >>> print(forecast_counts(schema, by=[["region", "smoker"], ["region"]], split=[2, 1], n_rows=3000, epsilon=1.0))
    Noise of counts in rows, ε = 1, pure, add_remove; no data read
    table             cells  ± a count  95 % interval  ± all rows  rows per cell  ± relative
    region by smoker      6     2.0825            ± 4      5.1012            500       0.42%
    region                3     4.2231            ± 9      7.3146           1000       0.42%
    The noise on a count does not depend on the table; a repair keeps the total and makes no count negative.
    """
    if n_rows is not None:
        require_row_count(n_rows)
    budget, relation = PrivacyBudget.of(epsilon=epsilon, delta=delta, rho=rho), Neighbors.of(neighbors)
    if privacy_unit is not None:
        require_unit(privacy_unit, {column.name for column in schema.columns}, relation)
    chosen = Counts.of(schema, by, split)
    counted = schema_of_tables(schema, chosen.by)
    plan: CountsPlan = plan_before_release(chosen, MomentShape.of(counted, mean=True), budget, relation, privacy_unit)
    cells = tuple(math.prod(shape_of(schema, names)) for names in chosen.by)
    return CountsForecast(chosen.by, cells, plan.noise, budget, relation, n_rows, privacy_unit)
