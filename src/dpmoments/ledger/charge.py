"""What a release asks of a ledger: is there a budget, set its cost aside, and say how it ended."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, replace

from dpmoments.foundation.errors import InputTypeError, InputValueError, LedgerError
from dpmoments.foundation.progress import log
from dpmoments.foundation.values import shown
from dpmoments.ledger.grants import ROW, require_dataset, unit_name
from dpmoments.ledger.ledger import Ledger
from dpmoments.messages.message import Message
from dpmoments.privacy.filter import PrivatePlan
from dpmoments.privacy.origin import ReleaseOrigin
from dpmoments.privacy.unit import Neighbors, PrivacyUnit


@dataclass(frozen=True)
class Held:
    """A release whose cost is set aside, if in a ledger.

    Attributes
    ----------
    origin : ReleaseOrigin
        Of the release, with its entry.
    """

    origin: ReleaseOrigin
    ledger: Ledger | None = None

    def refund(self) -> None:
        """Give the cost back: for a run that ended before it drew noise."""
        if self.ledger is not None and self.origin.ledger is not None:
            # The error that ended the run is what its caller must see; a reservation that stays counts as spent.
            with suppress(LedgerError, OSError):
                self.ledger.refund(self.origin.ledger)
                log.info("ledger: entry %d given back", self.origin.ledger.number)

    def commit(self) -> Message | None:
        """Record that the release was made; return a warning if that failed. The release must not be lost for it."""
        if self.ledger is None or self.origin.ledger is None:
            return None
        try:
            self.ledger.commit(self.origin.ledger)
        except (LedgerError, OSError) as reason:
            return Message("not-in-ledger", entry=self.origin.ledger.number, reason=str(reason))
        log.info("ledger: entry %d committed", self.origin.ledger.number)
        return None


@dataclass(frozen=True)
class Charge:
    """Where a release is charged, if in a ledger.

    Attributes
    ----------
    unit : str
        Whom the release protects: ``row``, or the column that tells units apart. How many rows of a unit count is no part of it:
        the guarantee is for all of them.
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
        """What a caller's arguments ask for; refuses what can be refused before the plan is made."""
        # Whatever else is passed as a privacy unit is refused when the table is opened.
        unit = unit_name(privacy_unit if isinstance(privacy_unit, PrivacyUnit) else None)
        if ledger is None:
            return cls(None, dataset, unit)
        if not isinstance(ledger, Ledger):
            if not isinstance(ledger, str | os.PathLike):
                raise InputTypeError(f"ledger must be a dpmoments.Ledger or the path of its file, got {shown(ledger)}")
            ledger = Ledger(ledger)
        name = require_dataset(dataset)
        if insecure_seed is not None:
            raise InputValueError(
                "a release with an insecure seed protects nobody, and a ledger is of private releases: leave ledger out, or "
                "insecure_seed"
            )
        if privacy_unit is not None and unit == ROW:
            raise InputValueError(
                f"a column called {ROW!r} that tells people apart would be taken for the rows themselves in a ledger: rename it"
            )
        ledger.account(name).require_for(neighbors, unit)
        return cls(ledger, name, unit)

    def reserve(self, plan: PrivatePlan, mechanism: str, origin: ReleaseOrigin) -> Held:
        """Set aside the plan's cost, on the disk, for a release of that origin."""
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
