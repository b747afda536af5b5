"""Grouped release: one release for each level of a column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.text_format import TextFormat
from dpmoments.ledger import Ledger
from dpmoments.mechanisms.base import CalibratedPlan, Mechanism, Plan
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.mechanisms.shape import RunResult
from dpmoments.messages.message import Message
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.origin import group_label
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.repair.repair import Repair
from dpmoments.rows.rows import Rows
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.constraints import Level, grouping_column, levels_of, schema_of_groups
from dpmoments.schema.schema import Schema
from dpmoments.spending.run import Request, cost_spent, keep, moment_release, spend

# One plan run on each of several disjoint groups of rows, by parallel composition.


@dataclass(frozen=True)
class GroupsPlan(CalibratedPlan[Mapping[Level, RunResult]]):
    """Plan that runs one plan on the rows of every level of a column.

    One filter serves the whole run. It adds up the draws of each group separately and compares the largest sum with the cost:
    under add-remove a row changes the queries of at most one group (parallel composition,
    ``docs/evidence/derivations/composition.md``).
    """

    of_group: Plan
    by: Categorical | Boolean

    def __post_init__(self) -> None:
        if self.neighbors is not Neighbors.ADD_REMOVE:
            raise InputValueError(Message("groups-need-add-remove"))

    @classmethod
    def of(cls, plan: Plan, by: Categorical | Boolean) -> GroupsPlan:
        """Make the plan for all groups from that for one."""
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
        """Levels of the column, in the schema's order."""
        return levels_of(self.by)

    @property
    def loss_unit(self) -> LossUnit:
        return self.of_group.loss_unit

    @property
    def unspent_reason(self) -> str | None:
        return self.of_group.unspent_reason

    @property
    def details(self) -> Mapping[str, Any]:
        return self.of_group.details

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> Mapping[Level, RunResult]:
        """Run the plan on every group in turn.

        If a rule may raise an error, a pass over all rows comes first, so that a row of a later group, or of none, stops the run
        before any noise is drawn. Nothing else that a row holds can stop a pass (:mod:`dpmoments.rows.encode`), and errors about
        column types occur in the first pass.
        """
        name = self.by.name
        if any(column.missing == "error" for column in rows.schema.table_columns):
            rows.count()
        return {
            level: self.of_group.run(rows.where(name, level), privacy_filter.for_group(group_label(name, level)))
            for level in self.levels
        }


def release_groups(
    data: Any,
    schema: Schema,
    *,
    by: str,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors | str = "add_remove",
    mechanism: Mechanism | str = "auto",
    mean: bool = True,
    repair: Repair | str = "auto",
    output: str | Path | None = None,
    dataset: str | None = None,
    privacy_unit: PrivacyUnit | None = None,
    text_format: TextFormat | None = None,
    ledger: Ledger | str | Path | None = None,
    threads: int | None = None,
    progress: bool | Callable[[float | None], None] = False,
    insecure_seed: int | None = None,
) -> GroupReleases:
    """Release count, mean and second moment of every group of rows; spend the budget once.

    The groups are the levels of a column of the schema. They are public, so every group is released, empty or not; rows with a
    missing value or another value are in no group. The column itself is not a feature of the releases, since it is constant in
    each group.

    Parameters
    ----------
    data, schema
        As for :func:`dpmoments.release`.
    by : str
        Name of a categorical or Boolean column of the schema.
    epsilon, delta, rho : float
        Budget, as for :func:`dpmoments.release`: spent in full on every group, and by parallel composition only once in total.
    neighbors : {"add_remove"}
        The number of rows of a group is private: ``"replace_one"`` is refused.
    mechanism, mean, repair
        As for :func:`dpmoments.release`, the same for all groups.
    output : path, optional
        Where to save all groups, in one file; checked before anything is spent.
    privacy_unit : None
        Refused if given: a person may have rows in several groups.
    dataset, text_format, ledger, threads, progress, insecure_seed
        As for :func:`dpmoments.release`; a ledger is charged once for all groups.

    Returns
    -------
    GroupReleases
        A mapping of levels to releases, in the schema's order.

    Raises
    ------
    ValueError, TypeError, OSError
        As for :func:`dpmoments.release`; nothing is spent then.
    BudgetExceededError, LedgerError
        As for :func:`dpmoments.release`.
    UnsavedReleaseError
        If the file cannot be written after all; its attribute ``release`` holds the releases.

    Warns
    -----
    ReleaseWarning
        As for :func:`dpmoments.release`, with the name of the group.

    Notes
    -----
    **Privacy.** Under ``add_remove`` an added or removed row is in at most one group, and every noise draw is for the rows of
    one group, so all releases together have the guarantee of one (parallel composition, McSherry 2009;
    ``docs/evidence/derivations/composition.md``). One privacy filter serves the run and enforces this.

    ``replace_one`` is refused: a row's new values may put it into another group, so two releases would change, which costs
    twice the budget. Nor would the number of rows of a group be public.

    **Cost.** Every group needs the passes of one release over the data, and one pass comes first if a column's rule is
    ``"error"``.

    Examples
    --------
    >>> import dpmoments as dpm, pyarrow as pa
    >>> schema = dpm.Schema(dpm.Numeric("age", 0, 100), dpm.Categorical("region", ["north", "south", "east"]))
    >>> table = pa.table({"age": [30, 40] * 2000, "region": ["north", "south"] * 2000})
    >>> groups = dpm.release_groups(table, schema, by="region", epsilon=1.0, insecure_seed=0)
    >>> list(groups), groups["north"].mean.round(), groups["south"].feature_names
    (['north', 'south', 'east'], array([30.]), ('age',))
    >>> groups.privacy.budget
    PrivacyBudget.pure(epsilon=1.0)
    """
    if privacy_unit is not None:
        raise InputValueError(Message("groups-of-units"))
    request = Request.of(
        *(schema, epsilon, delta, rho, neighbors, output, dataset),
        *(privacy_unit, text_format, ledger, threads, progress, insecure_seed),
    )
    if request.neighbors is not Neighbors.ADD_REMOVE:
        raise InputValueError(Message("groups-of-relation", neighbors=str(request.neighbors)))
    column, of_groups = grouping_column(schema, by), schema_of_groups(schema, by)
    chosen = make_mechanism(mechanism)
    repair = Repair.of(repair)
    spent = spend(
        data,
        schema.with_indicators,
        chosen,
        request,
        mean=mean,
        planned_schema=of_groups,
        run_of=lambda plan: GroupsPlan.of(plan, column),
    )
    with cost_spent(spent.rows):
        levels = levels_of(column)
        releases = GroupReleases(
            column,
            tuple(
                moment_release(
                    spent.plan,
                    spent.result[level],
                    spent.receipt.of_group(group_label(by, level)),
                    of_groups.with_text_format(text_format).with_indicators,
                    repair=repair,
                    origin=spent.held.origin.of_group(by, level, len(levels)),
                    private=request.private,
                )
                for level in levels
            ),
        )
        keep(releases, output, spent.held)
    return releases
