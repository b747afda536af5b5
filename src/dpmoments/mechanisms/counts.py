"""Contingency tables: exact counts with discrete Laplace or discrete Gaussian noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar

import numpy as np

from dpmoments.base.errors import InputTypeError, InputValueError
from dpmoments.base.message import Message
from dpmoments.base.values import FloatArray, is_finite_number
from dpmoments.mechanisms.base import GAUSSIAN_LOSS_UNITS, CalibratedPlan, ConfiguredMechanism
from dpmoments.mechanisms.lattice_noise import finer_bits, noise_scale_for, with_noise
from dpmoments.mechanisms.shape import Arithmetic, MomentShape
from dpmoments.moments.cells import CountNoise
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget, PrivacyRequest
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import LevelSelection
from dpmoments.privacy.sensitivity import Sensitivity, histogram_l1, histogram_l2, name_counts
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.rows.rows import Rows
from dpmoments.schema.columns import Categorical
from dpmoments.schema.constraints import finding_columns, grouping_column, levels_of
from dpmoments.schema.schema import Schema

MAX_CELLS = 1_000_000
"""Most cells of all tables together."""

NoisyCounts = tuple[FloatArray, ...]
"""Noisy counts of every table, flattened row by row."""


@dataclass(frozen=True)
class CountsPlan(CalibratedPlan[NoisyCounts]):
    """Calibrated :class:`Counts`."""

    mechanism: Counts
    whole: PrivacyBudget

    arithmetic: ClassVar[Arithmetic] = Arithmetic.EXACT_LATTICE
    passes = 1

    @property
    def noise(self) -> tuple[CountNoise, ...]:
        """Noise of a cell of every table, known before any data is read."""
        scales = [self._scale(loss) for loss in self._losses]
        if self._pure:
            return tuple(CountNoise("laplace", scale) for scale in scales)
        least = self.loss_unit.least_lattice_scale
        return tuple(CountNoise("gaussian", scale, 2.0 ** -finer_bits(scale, least)) for scale in scales)

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> NoisyCounts:
        self.check_rows(rows)
        exact = rows.cell_counts(self.mechanism.by).tables
        return tuple(
            with_noise(
                privacy_filter,
                Message("cell-counts", names=by),
                counts,
                self._sensitivity,
                self._scale(loss),
                bits=0,
                pure=self._pure,
            )
            for by, counts, loss in zip(self.mechanism.by, exact, self._losses, strict=True)
        )

    @property
    def _losses(self) -> tuple[PrivacyBudget, ...]:
        return self.whole.split(*self.mechanism.split)

    def _scale(self, loss: PrivacyBudget) -> float:
        return noise_scale_for(loss, self._sensitivity.value)

    @property
    def _sensitivity(self) -> Sensitivity:
        return histogram_l1(self.neighbors) if self._pure else histogram_l2(self.neighbors)

    @property
    def _pure(self) -> bool:
        return self.whole.kind is BudgetKind.PURE


@dataclass(frozen=True)
class Counts(ConfiguredMechanism[CountsPlan]):
    """Noisy counts of contingency tables.

    Every cell gets independent noise: discrete Laplace under pure ε, discrete Gaussian under ρ. An (ε, δ) budget is spent on
    whichever has less noise.

    **Privacy.** ε, ρ or (ε, δ): a row is in at most one cell of a table, so that one count changes by 1, or two do if the row is
    replaced (``histogram_l1``, ``histogram_l2``). The tables' losses add up to the budget.

    Parameters
    ----------
    by : tuple of tuples of str
        Columns of each table.
    split : tuple of float
        Budget shares of the tables, in proportion.

    Examples
    --------
    >>> plan = Counts((("region", "sex"),)).plan(MomentShape(3), PrivacyBudget.pure(1.0), "add_remove")
    >>> plan.noise[0].law, round(plan.noise[0].scale, 6)
    ('laplace', 1.0)
    """

    by: tuple[tuple[str, ...], ...]
    split: tuple[float, ...] = (1.0,)

    budget_kinds: ClassVar[frozenset[BudgetKind]] = frozenset(BudgetKind)
    loss_units: ClassVar[Mapping[BudgetKind, Any]] = GAUSSIAN_LOSS_UNITS
    needs_row_norm: ClassVar[bool] = False
    summary: ClassVar[str] = "noisy counts of the cells of contingency tables"
    source: ClassVar[str] = "Laplace and Gaussian mechanisms (Dwork et al. 2006)"
    noun: ClassVar[str] = "mechanism of tables"

    def __post_init__(self) -> None:
        object.__setattr__(self, "by", tuple(map(tuple, self.by)))
        object.__setattr__(self, "split", tuple(map(float, self.split)))

    @classmethod
    def of(
        cls, schema: Schema, by: str | Sequence[str] | Sequence[Sequence[str]], split: Sequence[float] | None
    ) -> Counts:
        """Return the mechanism for named tables; refuse unknown columns and too many cells."""
        tables = _tables(by)
        for names in tables:
            if len(set(names)) < len(names):
                twice = next(name for index, name in enumerate(names) if name in names[:index])
                raise InputValueError(f"a table names '{twice}' twice: {', '.join(names)}")
        if len({frozenset(names) for names in tables}) < len(tables):
            raise InputValueError("two tables have the same columns: one of them is enough, at twice the budget")
        cells = [math.prod(shape_of(schema, names)) for names in tables]
        if sum(cells) > MAX_CELLS:
            raise InputValueError(
                f"the tables have {sum(cells):,} cells together, and {MAX_CELLS:,} are the most: name fewer columns"
            )
        if split is None:
            return cls(tables, (1.0,) * len(tables))
        if isinstance(split, str | Mapping) or not all(is_finite_number(share) and share > 0.0 for share in split):
            raise InputValueError("split must be positive numbers, one for each table, such as 2 and 1")
        if len(split) != len(tables):
            raise InputValueError(f"split has {len(split)} numbers for {len(tables)} tables: give one for each")
        total = math.fsum(split)
        return cls(tables, tuple(share / total for share in split))

    def calibrate(self, shape: MomentShape, budget: PrivacyBudget, neighbors: Neighbors) -> CountsPlan:
        plan = CountsPlan(self, shape, neighbors, budget, self.drawable_budget(budget))
        if budget.kind is BudgetKind.APPROXIMATE:
            pure = PrivacyBudget.pure(budget.epsilon)
            other = CountsPlan(self, shape, neighbors, pure, self.drawable_budget(pure))
            if _mean_square(other) < _mean_square(plan):
                return other
        return plan


def shape_of(schema: Schema, by: Sequence[str]) -> tuple[int, ...]:
    """Return the numbers of levels of a table's columns."""
    return tuple(len(levels_of(grouping_column(schema, name))) for name in by)


def _mean_square(plan: CountsPlan) -> float:
    return float(np.mean([noise.standard_deviation**2 for noise in plan.noise]))


def _tables(by: Any) -> tuple[tuple[str, ...], ...]:
    """Return the columns of every table; one name, and one list of names, are one table."""
    if isinstance(by, str):
        return ((by,),)
    names = list(by) if isinstance(by, Sequence) else None
    if not names:
        raise InputTypeError("by must be a list of columns, or a list of such lists: by=['region', 'sex']")
    if all(isinstance(name, str) for name in names):
        return (tuple(names),)
    tables = [(table,) if isinstance(table, str) else table for table in names]
    if not all(
        isinstance(table, Sequence) and table and all(isinstance(name, str) for name in table) for table in tables
    ):
        raise InputTypeError(
            "by must be a list of columns, or a list of such lists: by=[['region', 'sex'], ['age_band']]"
        )
    return tuple(map(tuple, tables))


# Names of levels that a table has, found before a release: optimal partition selection.
#
# Proof: ``docs/evidence/derivations/found-levels.md``.


@dataclass(frozen=True)
class FindingPlan:
    """Plan that finds the levels of columns, a draw for each.

    Of a unit of several rows one counts, so that it has one name in a column.
    """

    columns: tuple[Categorical, ...]
    laws: tuple[LevelSelection, ...]
    cost: PrivacyBudget
    neighbors: Neighbors
    privacy_unit: PrivacyUnit | None
    loss_unit: ClassVar[LossUnit] = LossUnit.EPSILON_DELTA
    details: ClassVar[Mapping[str, Any]] = MappingProxyType({})

    @classmethod
    def of(cls, schema: Schema, request: PrivacyRequest) -> FindingPlan | None:
        """Return the plan at its share of the budget; None if the schema has all levels."""
        cost = request.divided(schema)[1]
        if cost is None:
            return None
        columns, unit = finding_columns(schema), request.privacy_unit
        # Where a row is replaced two numbers change, and each loses half.
        changes = int(name_counts(request.neighbors).value)
        parts = cost.split(*((column.levels_share or 0.0) for column in columns for _ in range(changes)))[::changes]
        laws = tuple(LevelSelection(part.epsilon, part.delta) for part in parts)
        return cls(columns, laws, cost, request.neighbors, None if unit is None else replace(unit, max_rows=1))

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> Mapping[str, tuple[str, ...]]:
        """Return the names found for each column, in alphabetical order."""
        if self.privacy_unit is not None:
            rows = rows.bounded(privacy_filter.selection_key())
        found = {}
        for column, law, counts in zip(self.columns, self.laws, rows.name_counts(), strict=True):
            what = Message("level-names", column=column.name, max_levels=column.max_levels)
            noisy: dict[str, int] = privacy_filter.draw(what, law, dict(counts), name_counts(self.neighbors))
            # If more pass than the release is planned for, those with the largest noisy numbers stay.
            largest = sorted(noisy, key=lambda name: (-noisy[name], name))[: column.max_levels]
            found[column.name] = tuple(sorted(largest))
        return found
