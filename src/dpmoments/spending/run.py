"""Steps that all release functions share: a request, the run that follows, and its end."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Generic, TypeVar

from dpmoments.base.checks import is_whole
from dpmoments.base.databases import DatabaseQuery
from dpmoments.base.documents import check_output
from dpmoments.base.errors import (
    InputError,
    InputTypeError,
    InputValueError,
    LedgerError,
    closest,
    out_of_range,
    shown,
    wrong_type,
)
from dpmoments.base.message import Message
from dpmoments.base.progress import log, watched
from dpmoments.base.text_files import TextFormat
from dpmoments.mechanisms.base import CalibratedPlan, ConfiguredMechanism, UnitsPlan
from dpmoments.mechanisms.counts import FindingPlan
from dpmoments.mechanisms.shape import MomentShape
from dpmoments.privacy.accounts import NoGrantError, OtherUnitError
from dpmoments.privacy.budget import AskedPrivacy, BudgetKind, PrivacyBudget, PrivacyRequest, all_options
from dpmoments.privacy.filter import PrivacyFilter, PrivacyFilterError
from dpmoments.privacy.grants import ROW, require_dataset, unit_name
from dpmoments.privacy.ledger import Ledger
from dpmoments.privacy.origin import LedgerEntry, ReleaseOrigin, check_dataset
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.releases.disclosed import MessageWarning, ReleaseWarning
from dpmoments.releases.loading import AnyRelease
from dpmoments.rows.rows import Rows
from dpmoments.rows.sources.memory import MissingColumnsError
from dpmoments.rows.summary import blas_threads
from dpmoments.schema.constraints import require_levels, schema_of_names, schema_with_found
from dpmoments.schema.schema import Schema, require_schema

PlanType = TypeVar("PlanType", bound=CalibratedPlan[Any])

NOTHING_SPENT = "nothing was spent"
COST_SPENT = "noise was drawn before this: the whole cost counts as spent"
NOTES = (NOTHING_SPENT, COST_SPENT)
"""Notes on errors that stop a release, which may occur before or after the first noise draw."""
_LARGE_DELTA = 1e-3
"""Warn of a larger δ if the row count is private.

It allows publishing rows of a small table.
"""


class Asked(AskedPrivacy, total=False):
    """Options of every function that makes a release: see :func:`dpmoments.release`."""

    output: str | Path | None
    """Path to save the release to; checked before anything is spent."""
    dataset: str | None
    """Name of the dataset, stored in the release."""
    text_format: TextFormat | None
    """Format of CSV files, if it is unusual."""
    ledger: Ledger | str | Path | None
    """Ledger that the cost is charged to."""
    threads: int | None
    """Threads of a pass and of linear algebra."""
    progress: bool | Callable[[float | None], None]
    """True for a bar on standard error; or what gets the fraction done."""
    insecure_seed: int | None
    """Seed for tests, which repeats the noise and marks the release as not private."""


@dataclass(frozen=True, eq=False)
class Request(PrivacyRequest):
    """Checked options that all release functions share."""

    output: str | Path | None = None
    dataset: str | None = None
    text_format: TextFormat | None = None
    ledger: Ledger | None = None
    threads: int | None = None
    progress: bool | Callable[[float | None], None] = False
    insecure_seed: int | None = None
    # the ledger's reason to refuse a privacy unit, whose column may be a slip: the table is asked for the column first
    refusal: LedgerError | None = None

    @classmethod
    def of(cls, schema: Schema, asked: Asked, *, finds_levels: bool = False) -> Request:
        """Check the options before the table is opened."""
        require_schema(schema)
        if not finds_levels:
            require_levels(schema)
        given = all_options(asked, Asked)
        budget = PrivacyBudget.of(**{name: given.pop(name) for name in ("epsilon", "delta", "rho")})
        neighbors = Neighbors.of(given.pop("neighbors"))
        require_whole_numbers(threads=given["threads"], insecure_seed=given["insecure_seed"])
        check_dataset(given["dataset"])
        ledger = given["ledger"]
        if isinstance(ledger, str | os.PathLike):
            given["ledger"] = Ledger(ledger)
        elif ledger is not None and not isinstance(ledger, Ledger):
            raise InputTypeError(f"ledger must be a dpmoments.Ledger or the path of its file, got {shown(ledger)}")
        request = cls(budget, neighbors, **given)
        return request if request.ledger is None else replace(request, refusal=request._ask(request.ledger))

    @property
    def unit(self) -> str:
        """Ledger's name of the privacy unit, without its bound: the guarantee covers all its rows."""
        # Whatever else is passed as a privacy unit is refused when the table is opened.
        return unit_name(self.privacy_unit if isinstance(self.privacy_unit, PrivacyUnit) else None)

    @property
    def private(self) -> bool:
        """True if the noise comes from the operating system."""
        return self.insecure_seed is None

    def _ask(self, ledger: Ledger) -> LedgerError | None:
        """Return the ledger's refusal of a privacy unit; raise any other."""
        dataset = require_dataset(self.dataset)
        if self.insecure_seed is not None:
            raise InputValueError(
                "a release with an insecure seed is not private and cannot be charged to a ledger: leave one of them out"
            )
        if self.privacy_unit is not None and self.unit == ROW:
            raise InputValueError(
                f"the privacy unit's column is called '{ROW}', which in a ledger means single rows: rename it"
            )
        try:
            ledger.account(dataset).require_for(self.neighbors, self.unit)
        except LedgerError as error:
            refusal = error
            if isinstance(error, NoGrantError):
                refusal = NoGrantError.of(
                    error.wrong,
                    error.advice,
                    path=error.path or str(ledger.path),
                    dataset=dataset,
                    neighbors=self.neighbors,
                    unit=self.unit,
                )
            if self.unit == ROW:
                raise refusal from None
            return refusal
        return None

    @contextmanager
    def refused_by_ledger(self) -> Iterator[None]:
        """Raise the ledger's refusal once the table is open and has the unit's column."""
        if self.refusal is None:
            yield
            return
        try:
            yield
        except (InputError, OSError) as error:
            if not isinstance(error, MissingColumnsError) or self.unit not in error.names:
                raise self.refusal from None
            granted = self.refusal.granted if isinstance(self.refusal, OtherUnitError) else ""
            if error.hint or not closest(self.unit, [granted] if granted else []):
                raise
            # The budget's unit is public, and may be the one that was meant.
            hint = f" (did you mean '{granted}'?)"
            raise MissingColumnsError.of(error.table, error.names, error.n_columns, hint) from None
        raise self.refusal


@dataclass(eq=False)
class Reservation(Generic[PlanType]):
    """One run: its cost, reserved if there is a ledger, and its result once it has ended."""

    request: Request
    rows: Rows
    plan: PlanType  # for rows
    public_rows: int | None
    origin: ReleaseOrigin
    privacy_filter: PrivacyFilter
    result: Any = None

    @cached_property
    def receipt(self) -> Receipt:
        """Receipt of the ended run: nothing is drawn after it."""
        return self.privacy_filter.close()

    def end(self, how: Callable[[Ledger, LedgerEntry], None]) -> Message | None:
        """Commit or refund the cost in the ledger; return a warning to the curator if that failed."""
        ledger, entry = self.request.ledger, self.origin.ledger
        if ledger is None or entry is None:
            return None
        try:
            how(ledger, entry)
        except (LedgerError, OSError) as reason:
            return Message("not-in-ledger", entry=entry.number, reason=str(reason))
        log.info("ledger: entry %d %s", entry.number, "committed" if how is Ledger.commit else "refunded")
        return None


_RECORDS: ContextVar[tuple[list[Reservation[Any]], ...]] = ContextVar("records of the runs of this context", default=())


@contextmanager
def recorded_runs() -> Iterator[list[Reservation[Any]]]:
    """Record the runs of a block that begin to read rows, also inside other records."""
    record: list[Reservation[Any]] = []
    token = _RECORDS.set((*_RECORDS.get(), record))
    try:
        yield record
    finally:
        _RECORDS.reset(token)


@contextmanager
def nothing_spent() -> Iterator[None]:
    """Add the note "nothing was spent" to errors of the steps before a run."""
    try:
        yield
    except BaseException as error:
        _note(error, NOTHING_SPENT)
        raise


@contextmanager
def cost_spent(rows: Rows) -> Iterator[None]:
    """Add a note that the cost counts as spent to an interruption after a run."""
    try:
        with blas_threads(rows.threads):
            yield
    except KeyboardInterrupt as error:
        _note(error, COST_SPENT)
        raise


def spend(
    data: Any,
    schema: Schema,
    mechanism: ConfiguredMechanism[PlanType],
    request: Request,
    *,
    mean: bool = True,
    n_rows: int | None = None,
    planned_schema: Schema | None = None,
    run_of: Callable[[PlanType], CalibratedPlan[Any]] | None = None,
) -> Reservation[PlanType]:
    """Open the table, plan, check the output, reserve, and run: only this spends budget.

    ``planned_schema`` has the features of the plan if they are not those of ``schema``; ``run_of`` makes the plan to run from
    that for rows, by default the same plan or that for privacy units.
    """
    finding, (main, _) = FindingPlan.of(schema, request), request.divided(schema)

    def planned(shape: MomentShape) -> tuple[PlanType, CalibratedPlan[Any]]:
        plan = mechanism.plan_for(replace(shape, n_rows=public_rows), main, supported=True)
        if run_of is not None:
            return plan, run_of(plan)
        if main.privacy_unit is not None:
            return plan, UnitsPlan.of(plan, main.budget, main.privacy_unit)
        return plan, plan

    with watched(request.progress) as watch:
        reading: dict[str, Any] = {"threads": request.threads, "on_block": watch, "on_pass": watch.passing}
        reading |= {"mean": mean, "neighbors": request.neighbors, "text_format": request.text_format}
        with nothing_spent():
            with request.refused_by_ledger():
                if finding is None:
                    rows = Rows.of(data, schema, privacy_unit=request.privacy_unit, **reading)
                else:
                    rows = Rows.of(data, schema_of_names(schema), privacy_unit=finding.privacy_unit, **reading)
            if rows.privacy_unit is not None and n_rows is not None:
                raise InputValueError(
                    "the number of rows cannot be public with a privacy unit, since the number of counted rows depends on each "
                    "unit's rows: leave it out"
                )
            shape = MomentShape.of(planned_schema or schema, mean=mean)
            mechanism.check_support(shape, main.budget, request.neighbors)
            if request.output is not None:
                check_output(request.output)

            # A text file is read through to count its rows, so whatever needs no count was refused before.
            public_rows = _public_row_count(rows, n_rows)
            if finding is not None:  # a mechanism for one number of features is refused before names are drawn
                none = {column.name: () for column in finding.columns}
                planned(MomentShape.of(schema_with_found(schema, none), mean=mean))
            plan, run = planned(shape)
            log.info(
                "planned: %s, %d features, %s, %s",
                plan.mechanism.name,
                shape.n_features,
                request.budget,
                rows.neighbors,
            )
        # A δ that allows publishing whole rows.
        delta = run.cost.delta if run.cost.kind is BudgetKind.APPROXIMATE else 0.0
        if public_rows is not None and delta * public_rows >= 1:
            warnings.warn(MessageWarning(Message("delta-too-large", delta=delta, rows=public_rows)), stacklevel=3)
        elif public_rows is None and delta > _LARGE_DELTA:
            warnings.warn(MessageWarning(Message("delta-too-large", delta=delta)), stacklevel=3)

        clauses = data.clauses if isinstance(data, DatabaseQuery) else None
        origin = ReleaseOrigin.fresh(request.dataset, insecure_seed=request.insecure_seed, query=clauses)
        if request.ledger is not None:
            # How the release is planned for the levels found, and in which unit, is not known yet.
            entry = request.ledger.reserve(
                require_dataset(request.dataset),
                run.cost if finding is None else request.budget,
                run.loss_unit if finding is None else finding.loss_unit,
                neighbors=run.neighbors,
                unit=request.unit,
                release=origin.id,
                mechanism=plan.mechanism.name,
            )
            log.info("ledger: entry %d reserved for %s", entry.number, request.dataset)
            origin = replace(origin, ledger=entry)

        passes, most = (None, None) if finding is not None else (run.passes, run.most_passes)
        watch.plan(passes, public_rows)
        privacy_filter = PrivacyFilter.open(finding or run, insecure_seed=request.insecure_seed)
        reservation = Reservation(request, rows, plan, public_rows, origin, privacy_filter)
        for record in _RECORDS.get():
            record.append(reservation)

        log.info("the run begins%s", "" if most is None else f": at most {most} passes over the table")
        try:
            with blas_threads(rows.threads):
                if finding is not None:
                    found = schema_with_found(schema, finding.run(rows, privacy_filter))
                    before = privacy_filter.close()
                    rows = Rows.of(data, found, privacy_unit=request.privacy_unit, **reading)
                    plan, run = planned(MomentShape.of(found, mean=mean))
                    privacy_filter = PrivacyFilter.open(run, insecure_seed=request.insecure_seed, before=before)
                    reservation.rows, reservation.plan, reservation.privacy_filter = rows, plan, privacy_filter
                reservation.result = run.run(rows, privacy_filter)
        except PrivacyFilterError:
            raise  # a defect of the mechanism: its whole cost counts as spent, as the message says
        except BaseException as error:
            privacy_filter.close()
            outcome = COST_SPENT if privacy_filter.spent else NOTHING_SPENT
            _note(error, outcome)
            log.info("the run was stopped: %s", outcome)
            if not privacy_filter.spent:
                # The error that ended the run is what its caller must see; a reservation that stays counts as spent.
                reservation.end(Ledger.refund)
            raise
        log.info("the run ended, with %d draws of noise", len(reservation.receipt.draws))
    return reservation


def _public_row_count(rows: Rows, n_rows: int | None) -> int | None:
    """Return the table size if it is public, counted or as given, else None."""
    if n_rows is not None and not (is_whole(n_rows) and n_rows >= 1):
        raise out_of_range("n_rows", n_rows, "a positive whole number")
    if not rows.neighbors.table_size_is_public:
        return n_rows
    counted = rows.table_size()
    if counted == 0:
        raise InputValueError(
            "the table has no rows: under replace_one there is nothing to release (under add_remove the number "
            "of rows is private, and an empty table is released like any other)"
        )
    if n_rows is not None and n_rows != counted:
        raise InputValueError(f"the stated number of rows is {n_rows}, and the table has another: leave it out")
    return counted


def _note(error: BaseException, note: str) -> None:
    """Add a note unless the message contains it."""
    if note not in str(error):
        error.add_note(note)


def require_whole_numbers(**values: object) -> None:
    """Raise TypeError unless every value is a whole number or None."""
    for name, value in values.items():
        if value is not None and not is_whole(value):
            raise wrong_type(name, "a whole number", value)


# What becomes of a release that was made: its file, and its warnings.


class UnsavedReleaseError(InputError, OSError):
    """Error for a release that was made and paid for, but could not be written.

    Attributes
    ----------
    release : MomentRelease, MeanRelease, CountsRelease or GroupReleases
        The release: ``error.release.save("elsewhere.json")`` saves it.
    """

    def __init__(self, path: str | Path, reason: OSError, release: AnyRelease) -> None:
        super().__init__(
            f"the release was made and its budget is spent, but {path} could not be written "
            f"({reason.strerror or type(reason).__name__}): keep it with error.release.save(another_path)"
        )
        self.release = release
        self._given = path, reason, release

    def __reduce__(self) -> tuple[Any, ...]:
        """Return the error with its release from another process."""
        return type(self), self._given, self.__dict__


def keep(released: AnyRelease, reservation: Reservation[Any]) -> None:
    """Save a finished release, commit its cost in the ledger, then emit its warnings."""
    output = reservation.request.output
    if output is not None:
        try:
            released.save(output)
        except OSError as reason:
            unsaved = UnsavedReleaseError(output, reason, released)
            if uncommitted := reservation.end(Ledger.commit):
                unsaved.add_note(str(uncommitted))
            raise unsaved from reason
        log.info("written: %s", output)
    uncommitted = reservation.end(Ledger.commit)
    for message in filter(None, (*released.warnings, uncommitted)):
        warnings.warn(ReleaseWarning(message, released), stacklevel=3)
