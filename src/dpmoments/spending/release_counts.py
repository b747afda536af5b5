"""Release of contingency tables."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from dpmoments.foundation.text_format import TextFormat
from dpmoments.ledger import Ledger
from dpmoments.mechanisms.counts import Counts, shape_of
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.releases.counts_release import CountsRelease, rules_of_counts
from dpmoments.rows.sources.opening import columns_of_array
from dpmoments.schema.constraints import every_row_has_levels, may_lack_levels, schema_of_tables
from dpmoments.schema.schema import Schema
from dpmoments.spending.run import Request, cost_spent, keep, nothing_spent, privacy_statement, spend, warnings_of_count


def release_counts(
    data: Any,
    schema: Schema,
    *,
    by: str | Sequence[str] | Sequence[Sequence[str]],
    split: Sequence[float] | None = None,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors | str = "add_remove",
    output: str | Path | None = None,
    dataset: str | None = None,
    privacy_unit: PrivacyUnit | None = None,
    text_format: TextFormat | None = None,
    ledger: Ledger | str | Path | None = None,
    threads: int | None = None,
    progress: bool | Callable[[float | None], None] = False,
    insecure_seed: int | None = None,
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
    ValueError, TypeError
        Before any row is read, if a column has no levels, or budget, split or output cannot work.
    BudgetExceededError, LedgerError
        As for :func:`dpmoments.release`.
    UnsavedReleaseError
        If the file cannot be written after all; its attribute ``release`` holds the release.

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
    request = Request.of(
        *(schema, epsilon, delta, rho, neighbors, output, dataset),
        *(privacy_unit, text_format, ledger, threads, progress, insecure_seed),
    )
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
                rules=(*rules_of_counts(counted), *spent.held.origin.rules),
            ),
            receipt=spent.receipt,
            mechanism=chosen.name,
            mechanism_options=chosen.options,
            origin=spent.held.origin,
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
        keep(released, output, spent.held)
    return released
