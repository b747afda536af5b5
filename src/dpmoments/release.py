"""The main job: from a private table to a release."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from numbers import Integral
from pathlib import Path
from typing import Any, TypeVar

from dpmoments.documents import check_output
from dpmoments.mean_release import MeanRelease
from dpmoments.mechanisms.base import CalibratedPlan, ConfiguredMechanism, Mechanism, MomentShape, Plan
from dpmoments.mechanisms.registry import make_mechanism
from dpmoments.moment_release import MomentRelease
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.statement import PrivacyStatement
from dpmoments.progress import Watch, watched
from dpmoments.repair.count_floor import few_rows_in_words
from dpmoments.repair.repair import Repair
from dpmoments.rows.rows import Rows
from dpmoments.schema.schema import Schema
from dpmoments.version import __version__

__all__ = ["ReleaseWarning", "UnsavedReleaseError", "release"]

PlanType = TypeVar("PlanType", bound=CalibratedPlan[Any])
Noisy = TypeVar("Noisy")
Count = TypeVar("Count", float, float | None)

SHARE_LEFT_OUT = 0.02
NOISE_DEVIATIONS = 4.0
"""More dropped rows than this share of a table, and this many standard deviations of the noise on their number, are warned
of."""
LITTLE_KNOWN = 0.1
"""Noise on the number of rows kept above this share of it is warned of."""


class ReleaseWarning(UserWarning):
    """What a mechanism learned privately, and paid for, speaks against trusting its release.

    Attributes
    ----------
    release : MomentRelease or MeanRelease
        Not lost where warnings are turned into errors.
    """

    def __init__(self, text: str, release: MomentRelease | MeanRelease) -> None:
        super().__init__(text)
        self.release = release


class UnsavedReleaseError(OSError):
    """A release was made, and its budget spent, but its file could not be written.

    Attributes
    ----------
    release : MomentRelease or MeanRelease
        What was made: ``error.release.save("elsewhere.json")`` keeps it.
    """

    def __init__(self, path: str | Path, reason: OSError, release: MomentRelease | MeanRelease) -> None:
        super().__init__(
            f"the release was made and its budget is spent, but {path} could not be written "
            f"({reason.strerror or type(reason).__name__}): keep it with error.release.save(another_path)"
        )
        self.release = release


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
    n_rows: int | None = None,
    output: str | Path | None = None,
    threads: int | None = None,
    progress: bool | Callable[[float | None], None] = False,
    insecure_seed: int | None = None,
) -> MomentRelease:
    """Release a table's count, mean and second moment once, under differential privacy.

    Parameters
    ----------
    data : array, frame, path or relation
        A NumPy array (its columns are the schema's, in order, without derived features), a pandas, Polars or Arrow frame, a path,
        glob or folder of Parquet or CSV files (streamed in batches), or a DuckDB relation. Never modified.
    schema : Schema
        Public bounds (or rough scales) and categories.
    epsilon, delta : float
        Budget: pure ε, or (ε, δ) with 0 < δ < 1.
    rho : float
        Budget in zero-concentrated differential privacy, instead of ``epsilon``.
    neighbors : {"add_remove", "replace_one"}
        What is hidden: one row's presence (the number of rows is private), or one row's values (it is public; the number of
        rows that the schema's rules do not drop is private under both).
    mechanism : str or Mechanism
        A registry name (``dpmoments mechanisms`` lists them) or a configured mechanism.
    mean : bool
        False: second moment alone, all of the budget on it; rows are then encoded without centring, and under
        ``add_remove`` no count is released. (Where ``replace_one`` leaves a count private, a tenth of ε or a twentieth of ρ
        is for it.)
    repair : str
        Post-processing of the noisy moments: ``auto``, ``structured``, ``spectral``, ``none``, ``clip``, ``shift``,
        ``noise-shift``, ``shrink`` or ``rotation-invariant``.
    n_rows : int, optional
        The number of rows, where it is public knowledge. Under ``replace_one`` it is counted if not given. Under
        ``add_remove`` give it only if it is known from elsewhere than the table, without rows that a rule drops.
    output : path, optional
        Where to save the release; checked before anything is spent.
    threads : int, optional
        Threads of the summation; default: the usable cores. The result does not depend on it.
    progress : bool or callable
        True for a progress bar on standard error; a callable gets the fraction done, in hundredths, in every pass over the
        table (None now and then, where the number of rows is not known beforehand).
    insecure_seed : int, optional
        For tests: repeats the noise, and marks the release not private.

    Returns
    -------
    MomentRelease

    Raises
    ------
    ValueError, TypeError, OSError
        Before any row is read: for a budget, schema, mechanism or output that cannot work. While rows are read: for a
        cell whose rule is ``"error"`` or a damaged file. Nothing is spent in either case.
    UnsavedReleaseError
        If the file cannot be written after all; the release is its attribute ``release``.

    Warns
    -----
    ReleaseWarning
        Where the mechanism found, privately, that the schema does not fit the table, or that the table has too few rows for the
        budget. Shown after the release is saved.

    Notes
    -----
    **Privacy.** The release as a whole satisfies the stated budget for the stated neighbours, one row being the protected
    unit; ``release.privacy.in_words()`` says it in full. The order is: schema checked, plan made, output checked, rows read,
    noise drawn, release written.

    Examples
    --------
    >>> import numpy as np
    >>> table = np.random.default_rng(0).uniform(-0.5, 0.5, (1000, 3))
    >>> released = release(table, Schema.unit_ball(3), epsilon=1.0, insecure_seed=0)
    >>> released.covariance.shape, released.privacy.private
    ((3, 3), False)
    """
    require_schema(schema)
    budget = PrivacyBudget.of(epsilon=epsilon, delta=delta, rho=rho)
    neighbors = Neighbors.of(neighbors)
    require_whole_numbers(threads=threads, insecure_seed=insecure_seed)
    chosen = make_mechanism(mechanism)
    repair = Repair.of(repair)
    with watched(progress) as on_block:
        rows = Rows.of(
            data,
            schema,
            mean=mean,
            neighbors=neighbors,
            threads=threads,
            on_block=on_block,
        )
        plan, public_rows = planned(chosen, rows, MomentShape.of(schema, mean=mean), budget, output, n_rows)
        _warn_of_large_delta(plan, public_rows)
        noisy, receipt = carried_out(plan, rows, on_block, insecure_seed)
    if noisy.count is None and not neighbors.table_size_is_public:
        noisy = replace(noisy, count=n_rows)
    count, diagnostics = within_table(plan, noisy.count, noisy.diagnostics, public_rows)
    noise = plan.noise if noisy.noise is None else noisy.noise
    few_rows = "" if neighbors.table_size_is_public else few_rows_in_words(count, noise)
    if few_rows:
        diagnostics = {**diagnostics, "warnings": [*diagnostics.get("warnings", ()), few_rows]}
    released = MomentRelease(
        schema=schema,
        privacy=privacy_statement(plan, schema, private=insecure_seed is None, rules=noisy.rules),
        receipt=receipt,
        noise=noise,
        mechanism=plan.mechanism.name,
        mechanism_options=plan.mechanism.options,
        details=plan.details,
        repair=repair,
        noisy_count=count,
        noisy_sum=noisy.sum,
        noisy_gram=noisy.gram,
        center=noisy.center,
        pivot=noisy.pivot,
        chosen_because=plan.chosen_because,
        diagnostics=diagnostics,
    )
    keep(released, output)
    return released


def planned(
    chosen: ConfiguredMechanism[PlanType],
    rows: Rows,
    shape: MomentShape,
    budget: PrivacyBudget,
    output: str | Path | None,
    n_rows: int | None = None,
) -> tuple[PlanType, int | None]:
    """The plan, and the number of rows of the table where it is public; refuses all that can be refused before a row is read."""
    chosen.check_support(shape, budget, rows.neighbors)
    if output is not None:
        check_output(output)
    # A text file is read through to count its rows, so whatever needs no count was refused before.
    public_rows = public_row_count(rows, rows.neighbors, n_rows)
    return chosen.supported_plan(replace(shape, n_rows=public_rows), budget, rows.neighbors), public_rows


def carried_out(
    plan: CalibratedPlan[Noisy], rows: Rows, on_block: Watch, insecure_seed: int | None
) -> tuple[Noisy, Receipt]:
    """What a run of the plan gives, and its receipt: the one step that spends."""
    on_block.expect(rows.source.n_rows)
    privacy_filter = PrivacyFilter.open(plan, insecure_seed=insecure_seed)
    noisy = plan.run(rows, privacy_filter)
    return noisy, privacy_filter.close()


def require_schema(schema: object) -> None:
    """Raise TypeError unless it is a schema."""
    if not isinstance(schema, Schema):
        raise TypeError(
            f"schema must be a dpmoments.Schema, got {type(schema).__name__}: dpm.Schema(dpm.Numeric('age', 0, 100), …) or "
            "dpm.Schema.load('people.yaml')"
        )


def require_whole_numbers(**values: object) -> None:
    """Raise TypeError unless every value is a whole number or None."""
    for name, value in values.items():
        if value is not None and (isinstance(value, bool) or not isinstance(value, Integral)):
            raise TypeError(f"{name} must be a whole number, got {type(value).__name__}")


def privacy_statement(
    plan: CalibratedPlan[Any], schema: Schema, *, private: bool, rules: tuple[str, ...] = ()
) -> PrivacyStatement:
    """What a release by this plan guarantees; ``rules`` says what the run did to rows beside the schema's rules."""
    return PrivacyStatement(
        budget=plan.cost,
        neighbors=plan.neighbors,
        arithmetic=str(plan.arithmetic),
        private=private,
        rules=(*schema.rules_in_words(), *rules),
        version=__version__,
    )


def keep(released: MomentRelease | MeanRelease, output: str | Path | None) -> None:
    """Save a release where it is wanted, then show its warnings.

    Raises
    ------
    UnsavedReleaseError
        If the file cannot be written.
    """
    if output is not None:
        try:
            released.save(output)
        except OSError as reason:
            raise UnsavedReleaseError(output, reason, released) from reason
    for text in released.warnings:
        warnings.warn(ReleaseWarning(text, released), stacklevel=3)


def public_row_count(rows: Rows, neighbors: Neighbors, n_rows: int | None = None) -> int | None:
    """The number of rows of the table where it is public, counted or as given; None where it is private.

    Raises
    ------
    ValueError
        If the number given cannot be, or a table whose number of rows is public has none.
    """
    if n_rows is not None and (isinstance(n_rows, bool) or not isinstance(n_rows, Integral) or n_rows < 1):
        raise ValueError(f"n_rows={n_rows!r} must be a positive whole number")
    if not neighbors.table_size_is_public:
        return n_rows
    counted = rows.table_size()
    if counted == 0:
        raise ValueError(
            "the table has no rows: under replace_one there is nothing to release (under add_remove the number of rows is "
            "private, and an empty table is released like any other)"
        )
    if n_rows is not None and n_rows != counted:
        raise ValueError(f"n_rows={n_rows} and the table has another number of rows: leave n_rows out")
    return counted


def within_table(
    plan: CalibratedPlan[Any], noisy_count: Count, diagnostics: Mapping[str, Any], table_size: int | None
) -> tuple[Count, Mapping[str, Any]]:
    """What the public size of a table says of the rows kept: their number is no larger, and warnings are given.

    They are for many rows dropped, and for a number of rows that is little known.
    """
    if noisy_count is None or table_size is None or plan.count_is_public or not plan.neighbors.table_size_is_public:
        return noisy_count, diagnostics
    error = plan.expected_count_error
    allowed = SHARE_LEFT_OUT * table_size + NOISE_DEVIATIONS * error if error is not None else 0.5 * table_size
    found: list[str] = []
    if table_size - noisy_count > allowed:
        share = min(1.0 - noisy_count / table_size, 1.0)
        found.append(
            f"about {share:.0%} of the table's {table_size:,} rows were dropped by the schema's rules (missing cells, or levels "
            "that it does not list): the release is of the others"
        )
    if error is not None and error > LITTLE_KNOWN * max(noisy_count, 1.0):
        found.append(
            f"the number of rows that the schema's rules keep is known to ± {error:,.0f} only, and means and second moments are "
            "divided by it: more rows, a larger budget, or rules that drop no row"
        )
    if found:
        diagnostics = {**diagnostics, "warnings": [*diagnostics.get("warnings", ()), *found]}
    return min(noisy_count, float(table_size)), diagnostics


def _warn_of_large_delta(plan: Plan, public_rows: int | None) -> None:
    delta = plan.cost.delta if plan.cost.kind is BudgetKind.APPROXIMATE else 0.0
    if public_rows is not None and delta * public_rows >= 1:
        warnings.warn(
            f"delta={delta:g} is not below one over the number of rows: such a delta allows whole rows to be published",
            stacklevel=3,
        )
