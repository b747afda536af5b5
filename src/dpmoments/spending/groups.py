"""One plan run on each of several disjoint groups of rows, by parallel composition."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dpmoments.mechanisms.base import CalibratedPlan, NoisyMoments, Plan
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.rows.rows import Rows
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.grouping import Level, levels_of

__all__ = ["GroupsPlan", "group_label"]


def group_label(by: str, level: Level) -> str:
    """What a group is called in receipts and messages."""
    return f"{by} = {level}"


@dataclass(frozen=True)
class GroupsPlan(CalibratedPlan[Mapping[Level, NoisyMoments]]):
    """The same plan for the rows of every level of a column, none of which are in two groups.

    One filter serves the whole run. It counts the draws for each group apart and holds the largest of their sums to the cost:
    under add-remove a row moves the queries of one group at most (parallel composition, ``docs/derivations/composition.md``).

    Attributes
    ----------
    of_group : Plan
    by : Categorical or Boolean
    """

    of_group: Plan
    by: Categorical | Boolean

    def __post_init__(self) -> None:
        if self.neighbors is not Neighbors.ADD_REMOVE:
            raise ValueError(
                "groups of rows are planned for add_remove: a row that is replaced may leave one for another"
            )

    @classmethod
    def of(cls, plan: Plan, by: Categorical | Boolean) -> GroupsPlan:
        """The plan for all groups, from that for one."""
        return cls(
            plan.mechanism,
            plan.shape,
            plan.neighbors,
            plan.cost,
            of_group=plan,
            by=by,
            chosen_because=plan.chosen_because,
        )

    @property
    def levels(self) -> tuple[Level, ...]:
        """What the groups are, in the schema's order."""
        return levels_of(self.by)

    @property
    def loss_unit(self) -> LossUnit:
        return self.of_group.loss_unit

    @property
    def leaves_unspent(self) -> str | None:
        return self.of_group.leaves_unspent

    @property
    def details(self) -> Mapping[str, Any]:
        return self.of_group.details

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> Mapping[Level, NoisyMoments]:
        """Run the plan on every group in turn: as many times its passes over the table as there are levels.

        One more comes first, over all rows and columns as a release of the whole table reads them, wherever a rule may stop it:
        so a row of a later group, or of none, stops the run before any noise is drawn. Nothing else that a row holds can stop a
        pass (:mod:`dpmoments.rows.encode`); what the types of columns can, the first pass meets.
        """
        name = self.by.name
        if any(column.missing == "error" for column in rows.schema.table_columns):
            rows.count()
        return {
            level: self.of_group.run(rows.where(name, level), privacy_filter.for_group(group_label(name, level)))
            for level in self.levels
        }
