"""Mean-only release of a table."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from dpmoments.foundation.text_format import TextFormat
from dpmoments.ledger import Ledger
from dpmoments.mechanisms.means.base import MeanMechanism
from dpmoments.mechanisms.registry import automatic_mean, make_mean_mechanism
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.schema.constraints import require_no_available
from dpmoments.schema.schema import Schema
from dpmoments.spending.run import Request, cost_spent, keep, privacy_statement, spend, within_table


def release_mean(
    data: Any,
    schema: Schema,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors | str = "add_remove",
    mechanism: MeanMechanism | str = "auto",
    output: str | Path | None = None,
    dataset: str | None = None,
    privacy_unit: PrivacyUnit | None = None,
    text_format: TextFormat | None = None,
    ledger: Ledger | str | Path | None = None,
    threads: int | None = None,
    progress: bool | Callable[[float | None], None] = False,
    insecure_seed: int | None = None,
    **options: Any,
) -> MeanRelease:
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
    ValueError, TypeError
        Before any row is read, if budget, schema, options or output cannot work.
    BudgetExceededError, LedgerError
        As for :func:`dpmoments.release`.
    UnsavedReleaseError
        If the file cannot be written after all; its attribute ``release`` holds the release.

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
    request = Request.of(
        *(schema, epsilon, delta, rho, neighbors, output, dataset),
        *(privacy_unit, text_format, ledger, threads, progress, insecure_seed),
    )
    require_no_available(schema)
    chosen = (
        automatic_mean(schema, request.budget, **options)
        if mechanism == "auto"
        else make_mean_mechanism(mechanism, **options)
    )
    spent = spend(data, schema, chosen, request)
    with cost_spent(spent.rows):
        noisy = spent.result
        count, diagnostics = within_table(spent.plan, noisy.count, noisy.diagnostics, spent.public_rows)
        released = MeanRelease(
            schema=spent.rows.schema,
            privacy=privacy_statement(
                spent.plan, schema, spent.receipt, private=request.private, rules=spent.held.origin.rules
            ),
            receipt=spent.receipt,
            mechanism=chosen.name,
            mechanism_options=chosen.options,
            noisy_mean=noisy.mean,
            noisy_count=count,
            diagnostics=diagnostics,
            noise=noisy.noise,
            origin=spent.held.origin,
        )
        keep(released, output, spent.held)
    return released
