"""Charging a release to a ledger: reserve its cost, then commit or refund it."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import Any

from dpmoments.foundation.errors import InputTypeError, InputValueError, LedgerError
from dpmoments.foundation.progress import log
from dpmoments.ledger.grants import ROW, require_dataset, unit_name
from dpmoments.ledger.ledger import Ledger
from dpmoments.messages.message import Message
from dpmoments.privacy.filter import PrivatePlan
from dpmoments.privacy.origin import ReleaseOrigin
from dpmoments.privacy.unit import Neighbors, PrivacyUnit


@dataclass(frozen=True)
class Held:
    """Release whose cost is reserved, if a ledger was given.

    ``content`` is what the fingerprint of the table is made of, once it was read: private.
    """

    origin: ReleaseOrigin
    ledger: Ledger | None = None
    content: bytes | None = field(default=None, repr=False)

    def refund(self) -> None:
        """Refund the cost of a run that ended before it drew noise."""
        if self.ledger is not None and self.origin.ledger is not None:
            # The error that ended the run is what its caller must see; a reservation that stays counts as spent.
            with suppress(LedgerError, OSError):
                self.ledger.refund(self.origin.ledger)
                log.info("ledger: entry %d refunded", self.origin.ledger.number)

    def commit(self) -> Message | None:
        """Commit the release; return a warning to the curator, if there is one.

        It tells that the commit failed, or that the table has another name.
        """
        if self.ledger is None or self.origin.ledger is None or self.origin.dataset is None:
            return None
        try:
            names = set() if self.content is None else self.ledger._other_names(self.origin.dataset, self.content)
            self.ledger.commit(self.origin.ledger)
        except (LedgerError, OSError) as reason:
            return Message("not-in-ledger", entry=self.origin.ledger.number, reason=str(reason))
        log.info("ledger: entry %d committed", self.origin.ledger.number)
        return Message("table-of-other-dataset", names=sorted(names)) if names else None


@dataclass(frozen=True)
class Charge:
    """Ledger, dataset and privacy unit that a release is charged to.

    A unit's contribution bound is not part of it, since the guarantee covers all its rows.
    """

    ledger: Ledger | None
    dataset: str | None
    unit: str

    @classmethod
    def of(
        cls,
        ledger: Ledger | str | os.PathLike[str] | None,
        dataset: str | None,
        neighbors: Neighbors,
        *,
        privacy_unit: PrivacyUnit | None = None,
        insecure_seed: int | None = None,
    ) -> Charge:
        """Check a caller's arguments before the plan is made."""
        # Whatever else is passed as a privacy unit is refused when the table is opened.
        unit = unit_name(privacy_unit if isinstance(privacy_unit, PrivacyUnit) else None)
        if ledger is None:
            return cls(None, dataset, unit)
        if not isinstance(ledger, Ledger):
            if not isinstance(ledger, str | os.PathLike):
                raise InputTypeError(Message("not-a-ledger", ledger=ledger))
            ledger = Ledger(ledger)
        name = require_dataset(dataset)
        if insecure_seed is not None:
            raise InputValueError(Message("ledger-with-insecure-seed"))
        if privacy_unit is not None and unit == ROW:
            raise InputValueError(Message("unit-named-row", column=ROW))
        try:
            account = ledger.account(name)
        except LedgerError as error:
            known = error.message_data
            if known is None or error.code not in ("ledger-missing", "no-grant"):
                raise
            missing: Any = {"dataset": name, "unit": unit, "neighbors": str(neighbors), "path": ledger.path}
            failure = Message(error.code, **{**missing, **known.facts})
        else:
            account.require_for(neighbors, unit)
            return cls(ledger, name, unit)
        raise LedgerError(failure)

    def reserve(self, plan: PrivatePlan, mechanism: str, origin: ReleaseOrigin) -> Held:
        """Reserve the plan's cost on disk."""
        if self.ledger is None or self.dataset is None:
            return Held(origin)
        entry = self.ledger.reserve(
            self.dataset,
            plan.cost,
            plan.loss_unit,
            neighbors=plan.neighbors,
            unit=self.unit,
            release=origin.id,
            mechanism=mechanism,
        )
        log.info("ledger: entry %d reserved for %s", entry.number, self.dataset)
        return Held(replace(origin, ledger=entry), self.ledger)
