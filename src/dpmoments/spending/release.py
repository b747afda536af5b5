"""Release of a table's moments."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from dpmoments.foundation.text_format import TextFormat
from dpmoments.ledger import Ledger
from dpmoments.mechanisms.base import Mechanism
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.repair.repair import Repair
from dpmoments.schema.schema import Schema
from dpmoments.spending.run import Request, cost_spent, keep, moment_release, spend
from dpmoments.spending.targets import WithTargets


def release(
    data: Any,
    schema: Schema,
    *,
    epsilon: float | None = None,
    delta: float = 0.0,
    rho: float | None = None,
    neighbors: Neighbors | str = "add_remove",
    mechanism: Mechanism | str = "auto",
    mean: bool = True,
    repair: Repair | str = "auto",
    targets: Sequence[str] = (),
    n_rows: int | None = None,
    output: str | Path | None = None,
    dataset: str | None = None,
    privacy_unit: PrivacyUnit | None = None,
    text_format: TextFormat | None = None,
    ledger: Ledger | str | Path | None = None,
    threads: int | None = None,
    progress: bool | Callable[[float | None], None] = False,
    insecure_seed: int | None = None,
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
    targets : sequence of str
        Features to predict from all other features: a quarter of ρ refines their coefficients, which ``ridge`` prints, without
        errors (``docs/noise-and-regression.md``). It needs ``rho`` or ``delta``; all noise is Gaussian.
    n_rows : int, optional
        The number of rows, if it is public. Under ``replace_one`` it is counted if not given. Under ``add_remove`` give it only
        if it is known from another source than the table; dropped rows do not count.
    output : path, optional
        Where to save the release; checked before anything is spent.
    dataset : str, optional
        Name of the dataset, such as ``"people-2026"``, stored in the release. Releases of the same dataset cannot be pooled.
    privacy_unit : PrivacyUnit, optional
        Privacy unit if one person may have several rows: ``PrivacyUnit("person_id", max_rows=5)``. The guarantee then covers
        all rows of a person together, and noise is about ``max_rows`` times that for rows. Only under ``add_remove``.
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
    column; ``release.privacy.in_words()`` states it in full. The order is: schema checked, output checked, plan made, budget
    reserved (if there is a ledger), rows read, noise drawn, release written, budget committed.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.random.default_rng(0).uniform(-0.5, 0.5, (1000, 3))
    >>> released = release(table, Schema.unit_ball(3), epsilon=1.0, insecure_seed=0)
    >>> released.covariance.shape, released.privacy.private
    ((3, 3), False)
    """
    request = Request.of(
        *(schema, epsilon, delta, rho, neighbors, output, dataset),
        *(privacy_unit, text_format, ledger, threads, progress, insecure_seed),
    )
    chosen, repair = make_mechanism(mechanism), Repair.of(repair)
    if targets:
        chosen = WithTargets.of(chosen, schema, targets, repair)
    spent = spend(data, schema.with_indicators, chosen, request, mean=mean, n_rows=n_rows)
    with cost_spent(spent.rows):
        released = moment_release(
            spent.plan,
            spent.result,
            spent.receipt,
            spent.rows.schema,
            repair=repair,
            origin=spent.held.origin,
            private=request.private,
            n_rows=n_rows,
            table_size=spent.public_rows,
        )
        keep(released, output, spent.held)
    return released
