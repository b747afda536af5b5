"""The methods of every release by which an auditor and a registry are told what it guarantees."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dpmoments.ledger import Ledger
from dpmoments.privacy.profile import PrivacyProfile, RunCurve
from dpmoments.releases.auditor_statement import AuditorStatement, auditor_statement
from dpmoments.releases.facts import Told

if TYPE_CHECKING:
    from dpmoments.releases.registry_entry import RegistryEntry


class Disclosed:
    """What a release is to an auditor; :class:`dpmoments.MomentRelease` and the others have these methods."""

    @property
    def runs(self) -> Sequence[Any]:
        """The releases of one run each that it is made of; itself where it is of one run."""
        return (self,)

    @property
    def privacy_curve(self: Told) -> RunCurve:
        """δ(ε), the least that is proven of it, at any ε: ``release.privacy_curve.at(0.5)``."""
        return RunCurve.of(self.receipt, self.runs[0].mechanism)

    @property
    def privacy_profile(self: Told) -> PrivacyProfile:
        """The tightest known privacy profile, at five ε, each marked exact or bound (``docs/derivations/privacy-profile.md``)."""
        return self.privacy_curve.profile

    def auditor_statement(self: Told, *, ledger: Ledger | str | os.PathLike[str] | None = None) -> AuditorStatement:
        """What an auditor asks for, level by level of NIST SP 800-226; ``print(release.auditor_statement().in_words())``.

        Parameters
        ----------
        ledger : Ledger or path, optional
            That the release was charged to: what it says of all releases of the table so far is told.
        """
        return auditor_statement(self, ledger=ledger)

    def registry_entry(self: Told, **known: Any) -> RegistryEntry:
        """A draft of an entry for the public registry of deployments of differential privacy, tier 3.

        Parameters
        ----------
        **known
            What only the curator knows, by name: see :func:`dpmoments.releases.registry_entry.registry_entry`. What is
            not given is left as a marked blank.
        """
        from dpmoments.releases.registry_entry import registry_entry

        return registry_entry(self, **known)
