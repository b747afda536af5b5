"""Warnings of a release to the curator, and its guarantee for auditors and registries."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from dpmoments.base.message import Message
from dpmoments.base.wordings import Fact

if TYPE_CHECKING:
    from dpmoments.privacy.ledger import Ledger
    from dpmoments.releases.profile import PrivacyProfile, RunCurve
    from dpmoments.releases.statements import AuditedRelease, AuditorStatement, RegistryEntry


class Disclosed:
    """Methods of releases for auditors."""

    @property
    def runs(self) -> Sequence[Any]:
        """Releases of one run each that this one consists of; itself if it is one run."""
        return (self,)

    @property
    def notes(self) -> tuple[Message, ...]:
        """Notes for the curator: ``no-ledger`` if no ledger counted the budget."""
        return () if any(run.origin.ledger for run in self.runs) else (Message("no-ledger"),)

    @property
    def _warned(self: AuditedRelease) -> list[str]:
        """Lines of warnings below the text of a release."""
        return [f"Warning: {message.text()}" for message in self.warnings]

    @property
    def privacy_curve(self: AuditedRelease) -> RunCurve:
        """Smallest proven δ at any ε: ``release.privacy_curve.at(0.5)``."""
        from dpmoments.releases.profile import RunCurve

        return RunCurve.of(self.receipt, self.runs[0].mechanism)

    @property
    def privacy_profile(self: AuditedRelease) -> PrivacyProfile:
        """Tightest known privacy profile at five ε, each marked exact or bound.

        See ``docs/evidence/derivations/privacy-profile.md``.
        """
        return self.privacy_curve.profile

    def auditor_statement(
        self: AuditedRelease, *, ledger: Ledger | str | os.PathLike[str] | None = None
    ) -> AuditorStatement:
        """Return a statement for an auditor, by the levels of NIST SP 800-226.

        ``print(release.auditor_statement().describe())`` shows it.

        Parameters
        ----------
        ledger : Ledger or path, optional
            The ledger that the release was charged to, for the total over all releases of the dataset.
        """
        from dpmoments.releases.statements import auditor_statement

        return auditor_statement(self, ledger=ledger)

    def registry_entry(self: AuditedRelease, **known: Any) -> RegistryEntry:
        """Draft an entry for the public registry of deployments of differential privacy, tier 3.

        Parameters
        ----------
        **known
            Facts that only the curator knows, by name: see :func:`dpmoments.releases.statements.registry_entry`.
            Those not given become marked blanks.
        """
        from dpmoments.releases.statements import registry_entry

        return registry_entry(self, **known)


class MessageWarning(UserWarning):
    """Warning to a curator, as data: its text is made when it is shown."""

    def __init__(self, message: Message) -> None:
        super().__init__(message)
        self.message_data = message

    @property
    def code(self) -> str:
        """The code of the message."""
        return self.message_data.code

    @property
    def facts(self) -> Mapping[str, Fact]:
        """The facts of the message, by name."""
        return self.message_data.facts

    def __str__(self) -> str:
        return self.message_data.text("curator")


class ReleaseWarning(MessageWarning):
    """Reason not to trust a release without further thought.

    A mechanism found it privately and paid for it; or a ledger could not record the release; or releases were pooled
    although nothing shows that their tables are disjoint.

    Attributes
    ----------
    release : MomentRelease, MeanRelease, CountsRelease or GroupReleases
        The release, which is not lost if warnings are turned into errors.
    """

    def __init__(self, message: Message, release: Disclosed) -> None:
        super().__init__(message)
        self.args = message, release  # a process that raises it as an error returns both
        self.release = release
