"""Releases of a table: moments, means, moments of groups, and contingency tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar, Unpack, cast

from dpmoments.base import __version__
from dpmoments.base.errors import InputValueError
from dpmoments.base.message import Message
from dpmoments.mechanisms.base import CalibratedPlan, Mechanism, OuterPlan, Plan
from dpmoments.mechanisms.counts import Counts, shape_of
from dpmoments.mechanisms.means.base import MeanMechanism
from dpmoments.mechanisms.registry import automatic_mean, make_mean_mechanism, make_mechanism
from dpmoments.mechanisms.shape import RunResult
from dpmoments.moments.repair import Repair, few_rows_message
from dpmoments.privacy.budget import takes_request
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.origin import ReleaseOrigin, group_label
from dpmoments.privacy.receipt import PrivacyStatement, Receipt
from dpmoments.privacy.unit import Neighbors
from dpmoments.releases.counts_release import CountsRelease, rules_of_counts
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease, noise_of_rows, of_present_values
from dpmoments.rows.rows import Rows
from dpmoments.rows.sources.opening import Table, columns_of_array
from dpmoments.schema.columns import Boolean, Categorical
from dpmoments.schema.constraints import (
    Level,
    every_row_has_levels,
    grouping_column,
    levels_of,
    may_lack_levels,
    require_no_available,
    require_unweighted,
    schema_of_groups,
    schema_of_tables,
)
from dpmoments.schema.schema import Schema
from dpmoments.spending.run import Asked, Request, cost_spent, keep, nothing_spent, spend

Count = TypeVar("Count", float, float | None)

_SHARE_LEFT_OUT = 0.02
_NOISE_DEVIATIONS = 4.0
"""Warn if more rows are dropped than this fraction of the table plus this many noise SDs."""
_LITTLE_KNOWN = 0.1
"""Warn if the noise on the number of kept rows exceeds this fraction of it."""


@takes_request(Asked)
def release(
    data: Table,
    schema: Schema,
    *,
    mechanism: Mechanism | str = "auto",
    mean: bool = True,
    repair: Repair | str = "auto",
    n_rows: int | None = None,
    **asked: Unpack[Asked],
) -> MomentRelease:
    """Release a table's count, mean and second moment once, under differential privacy.

    Parameters
    ----------
    data : array, frame, path or relation
        A NumPy array (its columns are the schema's, in order, without derived features), a pandas, Polars or Arrow frame, a
        path, glob or folder of Parquet, Feather or CSV files, an Arrow dataset, a DuckDB relation or
        :class:`dpmoments.DatabaseQuery` (all streamed in batches); a Dask DataFrame or array, a Spark DataFrame, or
        :class:`dpmoments.EngineFiles` (``docs/scale.md``). Never modified.
    schema : Schema
        Public bounds (or scale ranges) and categories.
    epsilon, delta : float
        Privacy budget: pure ε, or (ε, δ) with 0 < δ < 1.
    rho : float
        Budget in zero-concentrated differential privacy, instead of ``epsilon``.
    neighbors : {"add_remove", "replace_one"}
        What is hidden: one row's presence (the table size is private), or one row's values (it is public). The number of kept
        rows is private under both if rules of the schema drop rows.
    mechanism : str or Mechanism
        A registry name (``dpmoments mechanisms`` lists them) or a configured mechanism.
    mean : bool
        If False, only the second moment is released: rows are encoded without centering, and under ``add_remove`` no count is
        released. (If ``replace_one`` leaves a count private, it gets a tenth of ε or a twentieth of ρ.)
    repair : str
        Post-processing of the noisy moments: ``auto``, ``structured``, ``spectral``, ``none``, ``clip``, ``shift``,
        ``noise-shift``, ``shrink`` or ``rotation-invariant``.
    n_rows : int, optional
        The number of rows, if it is public. Under ``replace_one`` it is counted if not given. Under ``add_remove`` give it only
        if it is known from another source than the table; dropped rows do not count.
    output : path, optional
        Where to save the release; checked before anything is spent.
    dataset : str, optional
        Name of the dataset, such as ``"people-2026"``, stored in the release. Releases of the same dataset cannot be pooled.
    privacy_unit : PrivacyUnit, optional
        Privacy unit if one person may have several rows: ``PrivacyUnit("person_id", max_rows=5)``. The guarantee then covers
        all rows of a person together, and noise is about ``max_rows`` times that for rows; for rows with a sampling weight it
        does not grow. Only under ``add_remove``.
    text_format : TextFormat, optional
        Format of CSV files, if it is unusual: delimiter, encoding, decimal mark, ….
    ledger : Ledger or path, optional
        Where the cost is charged: reserved on disk before a row is read, and refused beyond the grant of ``dataset``
        (:class:`dpmoments.Ledger`).
    threads : int, optional
        Threads of a pass and of linear algebra; default: the environment variable ``DPMOMENTS_THREADS``, else the usable cores.
        The result does not depend on it. An engine has its own.
    progress : bool or callable
        True for a bar on standard error, with the remaining time of a pass; a callable gets the fraction done, in hundredths,
        in every pass over the data (sometimes None, if the length of the first pass is unknown).
    insecure_seed : int, optional
        For tests: repeats the noise, and marks the release as not private.

    Returns
    -------
    MomentRelease

    Raises
    ------
    ValueError, TypeError, OSError
        Before any row is read: if budget, schema, mechanism or output cannot work. While rows are read: for a damaged file, or
        a value whose rule is ``"error"``. Nothing is spent in either case, unless a note on the error says that noise was drawn
        before it (a table that changed between two passes).
    BudgetExceededError, LedgerError
        Before any row is read: if the ledger does not allow the release, or cannot be used.
    UnsavedReleaseError
        If the file cannot be written after all; its attribute ``release`` holds the release.

    Warns
    -----
    ReleaseWarning
        If the mechanism found, privately, that the schema does not fit the table, or that the table has too few rows for the
        budget. Shown after the release is saved.

    Notes
    -----
    **Privacy.** The release as a whole satisfies the stated budget for the stated neighbors, if no ``insecure_seed`` is given
    and the schema does not depend on the table. The privacy unit is one row, or all rows with one value of the privacy unit's
    column; ``release.privacy.describe()`` states it in full. The order is: schema checked, output checked, plan made, budget
    reserved (if there is a ledger), rows read, noise drawn, release written, budget committed.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.random.default_rng(0).uniform(-0.5, 0.5, (1000, 3))
    >>> released = release(table, Schema.unit_ball(3), epsilon=1.0, insecure_seed=0)
    >>> released.covariance.shape, released.privacy.private
    ((3, 3), False)
    """
    request = Request.of(schema, asked, finds_levels=True)
    chosen, repair = make_mechanism(mechanism), Repair.of(repair)
    schema = schema.capped(request.budget.nominal_epsilon).with_indicators
    spent = spend(data, schema, chosen, request, mean=mean, n_rows=n_rows)
    with cost_spent(spent.rows):
        released = moment_release(
            spent.plan,
            spent.result,
            spent.receipt,
            spent.rows.schema,
            repair=repair,
            origin=spent.origin,
            private=request.private,
            n_rows=n_rows,
            table_size=spent.public_rows,
        )
        keep(released, spent)
    return released


# What the result of a run becomes.


def moment_release(
    plan: Plan,
    noisy: RunResult,
    receipt: Receipt,
    schema: Schema,
    *,
    repair: Repair,
    origin: ReleaseOrigin,
    private: bool,
    n_rows: int | None = None,
    table_size: int | None = None,
) -> MomentRelease:
    """Build the release from the result of a run."""
    # `private` is True if the noise came from the operating system, `n_rows` a public number of rows that does not come
    # from the table, and `table_size` the public table size, including dropped rows.
    if noisy.count is None and not plan.neighbors.table_size_is_public:
        noisy = replace(noisy, count=n_rows)
    in_coordinates = noisy.model is not None and noisy.model.in_coordinates
    of_run = getattr(noisy.model, "count_variance", None) if in_coordinates else None
    error = plan.expected_count_error if of_run is None else math.sqrt(of_run)
    weight = schema.sampling_weight
    if weight is None:
        count, diagnostics = within_table(plan, noisy.count, noisy.diagnostics, table_size, error)
    else:
        count, diagnostics = noisy.count, noisy.diagnostics
        error, rows = noise_of_rows(receipt), diagnostics.get("n_rows", float(table_size or 0))
        rows, diagnostics = within_table(plan, rows, {**diagnostics, "n_rows": rows}, table_size, error)
        diagnostics = {**diagnostics, "n_rows": rows}
    release = MomentRelease(
        schema=schema,
        privacy=privacy_statement(plan, schema, receipt, private=private, rules=(*noisy.rules, *origin.rules)),
        receipt=receipt,
        noise_model=noisy.model,
        mechanism=plan.mechanism.name,
        mechanism_options=plan.mechanism.options,
        details=plan.details,
        repair=repair,
        noisy_count=count,
        noisy_sum=noisy.sum,
        noisy_gram=noisy.gram,
        center=noisy.center,
        chosen_because=plan.chosen_because,
        diagnostics=diagnostics,
        origin=origin,
    )
    counted = of_present_values(release) if weight is not None else release
    few_rows = None if plan.neighbors.table_size_is_public else few_rows_message(counted.noisy_count, counted.noise)
    lost = [
        Message("levels-not-found", **rule.facts) for rule in release.privacy.rules if rule.code == "no-levels-found"
    ]
    if weight is not None and weight.computed_from == "table":
        lost.append(Message("weights-from-table", column=weight.name))
    if said := [*filter(None, (few_rows, *lost))]:
        release = replace(release, diagnostics={**diagnostics, "warnings": (*diagnostics.get("warnings", ()), *said)})
    return of_present_values(release)


def privacy_statement(
    plan: CalibratedPlan[Any], schema: Schema, receipt: Receipt, *, private: bool, rules: tuple[Message, ...] = ()
) -> PrivacyStatement:
    """Return the guarantee of a release; ``rules`` adds what the run did to rows."""
    return PrivacyStatement(
        budget=receipt.whole_cost,
        neighbors=plan.neighbors,
        arithmetic=str(plan.arithmetic),
        private=private,
        rules=(*receipt.rules(schema.rules), *rules),
        version=__version__,
        privacy_unit=receipt.privacy_unit,
    )


def within_table(
    plan: CalibratedPlan[Any],
    noisy_count: Count,
    diagnostics: Mapping[str, Any],
    table_size: int | None,
    error: float | None,
) -> tuple[Count, Mapping[str, Any]]:
    """Limit the noisy count to the public table size, and add warnings."""
    # They are for many dropped rows, and for a row count with large noise, of SD `error`.
    if noisy_count is None or table_size is None or plan.count_is_public or not plan.neighbors.table_size_is_public:
        return noisy_count, diagnostics
    said: tuple[Message, ...] = warnings_of_count(noisy_count, error, table_size)
    if said:
        diagnostics = {**diagnostics, "warnings": (*diagnostics.get("warnings", ()), *said)}
    return min(noisy_count, float(table_size)), diagnostics


def warnings_of_count(noisy_count: float, error: float | None, table_size: int) -> tuple[Message, ...]:
    """Return warnings of many dropped rows, and of a row count with large noise."""
    # `error` is the noise SD of the count, None if unknown.
    allowed = _SHARE_LEFT_OUT * table_size + _NOISE_DEVIATIONS * error if error is not None else 0.5 * table_size
    result: list[Message] = []
    if table_size - noisy_count > allowed:
        share = min(1.0 - noisy_count / table_size, 1.0)
        result.append(Message("rows-dropped", share=share, rows=table_size))
    if error is not None and error > _LITTLE_KNOWN * max(noisy_count, 1.0):
        result.append(Message("row-count-uncertain", noise=error, rows=max(noisy_count, 1.0)))
    return tuple(result)


@takes_request(Asked, others="options")
def release_mean(data: Table, schema: Schema, *, mechanism: MeanMechanism | str = "auto", **asked: Any) -> MeanRelease:
    """Release the mean of a table, with or without bounds on its rows.

    Parameters
    ----------
    data, schema
        As for :func:`dpmoments.release`; ``Schema.unbounded(d)`` for rows without bounds.
    epsilon, delta, rho : float
        Budget, as for :func:`dpmoments.release`.
    neighbors : {"add_remove", "replace_one"}
        As for :func:`dpmoments.release`. ``naive``, ``karwa-vadhan`` and ``symq`` divide by a public number of rows and need
        ``"replace_one"``.
    mechanism : str or MeanMechanism
        ``"auto"``: ``"bounded-sums"`` if the schema has bounds, else ``"variance-aware"``, or ``"log-scale-histogram"`` under
        pure ε. By name also ``"coinpress"``, ``"naive"``, ``"karwa-vadhan"``, ``"symq"``.
    output : path, optional
        Where to save the release; checked before anything is spent.
    dataset, privacy_unit, text_format, ledger, threads, progress, insecure_seed
        As for :func:`dpmoments.release`.
    **options
        Options of the named mechanism: ``radius``, ``scale``, ….

    Returns
    -------
    MeanRelease

    Raises
    ------
    ValueError, TypeError, OSError, LedgerError, UnsavedReleaseError
        As for :func:`dpmoments.release`.

    Warns
    -----
    ReleaseWarning
        If the estimator found, privately, that its bounds do not fit the table. Shown after the release is saved.

    Notes
    -----
    **Privacy.** The release satisfies the stated budget for the stated neighbors. The privacy unit is one row, or all rows with
    one value of the privacy unit's column.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.random.default_rng(0).normal([1e5, -3.0], [100.0, 0.1], (5000, 2))
    >>> released = release_mean(table, Schema.unbounded(2), rho=0.5, insecure_seed=0)
    >>> bool(abs(released.mean[0] - 1e5) < 10), bool(abs(released.mean[1] + 3.0) < 0.1)
    (True, True)
    """
    options = {name: asked.pop(name) for name in [*asked] if name not in Asked.__optional_keys__}
    request = Request.of(schema, cast(Asked, asked))
    require_no_available(schema)
    require_unweighted(schema)
    chosen = (
        automatic_mean(schema, request.budget, **options)
        if mechanism == "auto"
        else make_mean_mechanism(mechanism, **options)
    )
    spent = spend(data, schema, chosen, request)
    with cost_spent(spent.rows):
        noisy = spent.result
        error = spent.plan.expected_count_error
        count, diagnostics = within_table(spent.plan, noisy.count, noisy.diagnostics, spent.public_rows, error)
        released = MeanRelease(
            schema=spent.rows.schema,
            privacy=privacy_statement(
                spent.plan, schema, spent.receipt, private=request.private, rules=spent.origin.rules
            ),
            receipt=spent.receipt,
            mechanism=chosen.name,
            mechanism_options=chosen.options,
            noisy_mean=noisy.mean,
            noisy_count=count,
            diagnostics=diagnostics,
            noise=noisy.noise,
            origin=spent.origin,
        )
        keep(released, spent)
    return released


# One plan run on each of several disjoint groups of rows, by parallel composition.


@dataclass(frozen=True)
class GroupsPlan(OuterPlan[Mapping[Level, RunResult]]):
    """Plan that runs one plan on the rows of every level of a column.

    One filter serves the whole run. It adds up the draws of each group separately and compares the largest sum with the cost:
    under add-remove a row changes the queries of at most one group (parallel composition,
    ``docs/evidence/derivations/composition.md``).
    """

    by: Categorical | Boolean

    def __post_init__(self) -> None:
        if self.neighbors is not Neighbors.ADD_REMOVE:
            raise InputValueError("groups of rows are planned for add_remove: a replaced row may change its group")

    @classmethod
    def of(cls, plan: Plan, by: Categorical | Boolean) -> GroupsPlan:
        """Make the plan for all groups from that for one."""
        return cls.around(plan, plan.cost, by=by)

    def run(self, rows: Rows, privacy_filter: PrivacyFilter) -> Mapping[Level, RunResult]:
        """Run the plan on every group in turn."""
        # If a rule may raise an error, a pass over all rows comes first, so that a row of a later group, or of none,
        # stops the run before any noise is drawn. Nothing else that a row holds can stop a pass
        # (`dpmoments.rows.encode`), and errors about column types occur in the first pass.
        name = self.by.name
        if any(column.missing == "error" for column in rows.schema.as_read.table_columns):
            rows.count()
        return {
            level: self.inner.run(rows.where(name, level), privacy_filter.for_group(group_label(name, level)))
            for level in levels_of(self.by)
        }


def groups_of_units() -> InputValueError:
    """Return the error of groups for a privacy unit."""
    refused = (
        "groups cannot be released for a privacy unit: a person may have rows in several groups, so several releases would "
        "change at once. Release the whole table with "
    )
    advice = " and the grouping column as one of its features"
    return InputValueError(f"{refused}privacy_unit={advice}", shell=f"{refused}--privacy-unit{advice}")


@takes_request(Asked)
def release_groups(
    data: Table,
    schema: Schema,
    *,
    by: str,
    mechanism: Mechanism | str = "auto",
    mean: bool = True,
    repair: Repair | str = "auto",
    **asked: Unpack[Asked],
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
    ValueError, TypeError, OSError, LedgerError, UnsavedReleaseError
        As for :func:`dpmoments.release`.

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
    if asked.get("privacy_unit") is not None:
        raise groups_of_units()
    request = Request.of(schema, asked)
    if request.neighbors is not Neighbors.ADD_REMOVE:
        refused = (
            f"groups cannot be released under {request.neighbors}: a replaced row may change its group, so that two "
            "releases would change, at twice the budget. Use "
        )
        raise InputValueError(f"{refused}neighbors='add_remove'", shell=f"{refused}--neighbors add_remove")
    schema = schema.capped(request.budget.nominal_epsilon)
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
                    of_groups.with_text_format(request.text_format).with_indicators,
                    repair=repair,
                    origin=spent.origin.of_group(by, level, len(levels)),
                    private=request.private,
                )
                for level in levels
            ),
        )
        keep(releases, spent)
    return releases


@takes_request(Asked)
def release_counts(
    data: Table,
    schema: Schema,
    *,
    by: str | Sequence[str] | Sequence[Sequence[str]],
    split: Sequence[float] | None = None,
    **asked: Unpack[Asked],
) -> CountsRelease:
    """Release contingency tables: counts of rows by the levels of some columns.

    Use it if a few counts are all that is wanted: each has less noise than the cross tables of :func:`dpmoments.release`, which
    pays for sums and squares as well. Every combination of levels is released, empty or not.

    Parameters
    ----------
    data
        As for :func:`dpmoments.release`.
    schema : Schema
        Only the columns of the tables are read, so that no rule of another column drops a row.
    by : list of str, or list of lists of str
        Categorical or Boolean columns of one table, or of each of several.
    split : sequence of float, optional
        Budget shares of several tables, in proportion; default: equal.
    epsilon, delta, rho : float
        Budget, as for :func:`dpmoments.release`.
    neighbors : {"add_remove", "replace_one"}
        As for :func:`dpmoments.release`. A replaced row changes two counts, so that ``"replace_one"`` has more noise: twice
        under pure ε, √2 times under ρ.
    output : path, optional
        Where to save the release; checked before anything is spent.
    dataset, privacy_unit, text_format, ledger, threads, progress, insecure_seed
        As for :func:`dpmoments.release`.

    Returns
    -------
    CountsRelease

    Raises
    ------
    ValueError, TypeError, OSError, LedgerError, UnsavedReleaseError
        As for :func:`dpmoments.release`.

    Notes
    -----
    **Privacy.** The release satisfies the stated budget for the stated neighbors. A row is in at most one cell of a table: it
    changes one count by 1, or two counts if it is replaced. Every count gets independent noise: discrete Laplace under pure
    ε, discrete Gaussian under ρ, and whichever is smaller under (ε, δ). The tables share the budget by ``split``.

    **Rows.** Each row is read by itself, by the rules of the tables' columns: a missing value stops the release, drops its
    row, or leaves it without a level (``missing="zero"``, or ``"center"`` of a Boolean). A row without a level in a column of
    a table is in no cell of that table; a dropped row is in no table. A Boolean number between 0 and 1 counts as the nearer
    of the two.

    Examples
    --------
    >>> import dpmoments as dpm, pyarrow as pa
    >>> schema = dpm.Schema(dpm.Categorical("region", ["north", "south"]), dpm.Boolean("smoker"))
    >>> people = pa.table({"region": ["north", "south"] * 500, "smoker": [True, True, False, False] * 250})
    >>> released = release_counts(people, schema, by=["region", "smoker"], epsilon=1.0, insecure_seed=0)
    >>> released.counts.tolist(), round(released.standard_error, 2)
    ([[250, 248], [250, 249]], 1.36)
    """
    request = Request.of(schema, asked)
    require_unweighted(schema)
    chosen = Counts.of(schema, by, split)
    counted = schema_of_tables(schema, chosen.by)
    with nothing_spent():
        read = columns_of_array(data, schema, counted.names)
    spent = spend(read, counted, chosen, request)
    public_rows = spent.public_rows
    with cost_spent(spent.rows):
        released = CountsRelease(
            schema=spent.rows.schema,
            privacy=replace(
                privacy_statement(spent.plan, counted, spent.receipt, private=request.private),
                rules=(*rules_of_counts(counted), *spent.origin.rules),
            ),
            receipt=spent.receipt,
            mechanism=chosen.name,
            mechanism_options=chosen.options,
            origin=spent.origin,
            by=chosen.by,
            noisy=tuple(
                counts.reshape(shape_of(counted, names)) for names, counts in zip(chosen.by, spent.result, strict=True)
            ),
            public_rows=public_rows if every_row_has_levels(counted) else None,
        )
        if public_rows is not None and not may_lack_levels(counted):
            known = min(released.tables, key=lambda table: table.total_error)
            said = warnings_of_count(float(known.noisy_counts.sum()), known.total_error, public_rows)
            released = replace(released, diagnostics={"warnings": said})
        keep(released, spent)
    return released
