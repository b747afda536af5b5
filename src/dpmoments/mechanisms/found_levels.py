"""Names of levels that a table has, found before a release: optimal partition selection.

Proof: ``docs/evidence/derivations/found-levels.md``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, ClassVar

from dpmoments.base.message import Message
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.laws import LevelSelection
from dpmoments.privacy.request import PrivacyRequest
from dpmoments.privacy.sensitivity import name_counts
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.rows.rows import Rows
from dpmoments.schema.columns import Categorical
from dpmoments.schema.constraints import finding_columns
from dpmoments.schema.schema import Schema


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
