"""Groups of rows: from a private table to one release for each level of a column."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.progress import watched
from dpmoments.foundation.text_format import TextFormat
from dpmoments.ledger import Ledger
from dpmoments.ledger.charge import Charge
from dpmoments.mechanisms.base import CalibratedPlan, Mechanism, Plan
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.mechanisms.shape import MomentShape, RunResult
from dpmoments.privacy.accounting import LossUnit
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.origin import ReleaseOrigin, check_dataset
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.repair.repair import Repair
from dpmoments.rows.rows import Rows
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.constraints import Level, grouping_column, levels_of, schema_of_groups
from dpmoments.schema.schema import Schema
from dpmoments.spending.run import (
    cost_spent,
    execute_plan,
    keep,
    moment_release,
    nothing_spent,
    planned,
    require_schema,
    require_whole_numbers,
    warn_of_large_delta,
)

# One plan run on each of several disjoint groups of rows, by parallel composition.


def _group_label(by: str, level: Level) -> str:
    """What a group is called in receipts and messages."""
    return f"{by} = {level}"


@dataclass(frozen=True)
class GroupsPlan(CalibratedPlan[Mapping[Level, RunResult]]):
    """The same plan for the rows of every level of a column, none of which are in two groups.

    One filter serves the whole run. It counts the draws for each group apart and holds the largest of their sums to the cost:
    under add-remove a row moves the queries of one group at most (parallel composition, ``docs/derivations/composition.md``).
    """

    of_group: Plan
    by: Categorical | Boolean

    def __post_init__(self) -> None:
        if self.neighbors is not Neighbors.ADD_REMOVE:
            raise InputValueError(
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
    def unspent_reason(self) -> str | None:
        return self.of_group.unspent_reason

    @property
    def details(self) -> Mapping[str, Any]:
        return self.of_group.details

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> Mapping[Level, RunResult]:
        """Run the plan on every group in turn: as many times its passes over the table as there are levels.

        One more comes first, over all rows and columns as a release of the whole table reads them, wherever a rule may stop it:
        so a row of a later group, or of none, stops the run before any noise is drawn. Nothing else that a row holds can stop a
        pass (:mod:`dpmoments.rows.encode`); what the types of columns can, the first pass meets.
        """
        name = self.by.name
        if any(column.missing == "error" for column in rows.schema.table_columns):
            rows.count()
        return {
            level: self.of_group.run(rows.where(name, level), privacy_filter.for_group(_group_label(name, level)))
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
    """Release count, mean and second moment of every group of rows, once, spending the budget once.

    The groups are the levels of a column of the schema. They are public, and so every one is released, empty or not; a row of no
    level (an empty cell, another value) is in none. The column itself is no feature of the releases, since it is the same in all
    rows of a group.

    Parameters
    ----------
    data, schema
        As for :func:`dpmoments.release`.
    by : str
        The name of a Categorical or Boolean column of the schema.
    epsilon, delta, rho : float
        Budget, as for :func:`dpmoments.release`: spent on every group in full, and by parallel composition once in all.
    neighbors : {"add_remove"}
        The number of rows of a group is private: ``"replace_one"`` is refused.
    mechanism, mean, repair
        As for :func:`dpmoments.release`, the same for all groups.
    output : path, optional
        Where to save all groups, in one file; checked before anything is spent.
    privacy_unit : None
        Refused where it is given: a person may have rows in several groups.
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
        If the file cannot be written after all; the releases are its attribute ``release``.

    Warns
    -----
    ReleaseWarning
        As for :func:`dpmoments.release`, with the name of the group.

    Notes
    -----
    **Privacy.** Under ``add_remove`` a row that is added or removed is in one group at most, and every draw of noise is for the
    rows of one group: so the guarantee of all releases together is that of one (parallel composition, McSherry 2009;
    ``docs/derivations/composition.md``). One privacy filter serves the run and holds it to that.

    Under ``replace_one`` a row's new values may put it into another group: two releases change, at twice the budget, and the
    number of rows of a group would be as private as under ``add_remove``.

    **Cost.** Every group is a run of its own over the table: as many times the passes of one release as there are levels, and one
    pass before them where a column's rule is ``"error"``.

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
    require_schema(schema)
    if privacy_unit is not None:
        raise InputValueError(
            "groups cannot be released for a privacy unit: a person may have rows in several groups, so that several of their "
            "releases change at once, and not one. Release the whole table with privacy_unit=, the column of the groups being "
            "one of its features"
        )
    budget = PrivacyBudget.of(epsilon=epsilon, delta=delta, rho=rho)
    neighbors = Neighbors.of(neighbors)
    if neighbors is not Neighbors.ADD_REMOVE:
        raise InputValueError(
            f"groups cannot be released under neighbors={str(neighbors)!r}: a row that is replaced may leave one group for "
            "another, so that two releases change, at twice the budget, and groups' numbers of rows are private all the same. "
            "Use neighbors='add_remove'"
        )
    require_whole_numbers(threads=threads, insecure_seed=insecure_seed)
    check_dataset(dataset)
    charge = Charge.of(ledger, dataset, neighbors, insecure_seed=insecure_seed)
    column, of_groups = grouping_column(schema, by), schema_of_groups(schema, by)
    chosen = make_mechanism(mechanism)
    repair = Repair.of(repair)
    with watched(progress) as watch:
        with nothing_spent():
            rows = Rows.of(
                data,
                schema,
                mean=mean,
                neighbors=neighbors,
                threads=threads,
                on_block=watch,
                on_pass=watch.passing,
                text_format=text_format,
            )
            plan, _ = planned(chosen, rows, MomentShape.of(of_groups, mean=mean), budget, output)
        groups_plan = GroupsPlan.of(plan, column)
        warn_of_large_delta(plan, None)
        run = ReleaseOrigin.fresh(dataset, insecure_seed=insecure_seed)
        held = charge.reserve(groups_plan, plan.mechanism.name, run)
        noisy, receipt = execute_plan(groups_plan, rows, watch, insecure_seed, held, None)
    with cost_spent(rows):
        levels = groups_plan.levels
        releases = GroupReleases(
            column,
            tuple(
                moment_release(
                    plan,
                    noisy[level],
                    receipt.of_group(_group_label(by, level)),
                    of_groups,
                    repair=repair,
                    origin=held.origin.of_group(by, level, len(levels)),
                    private=insecure_seed is None,
                )
                for level in levels
            ),
        )
        keep(releases, output, held)
    return releases
