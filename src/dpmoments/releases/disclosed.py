"""What every release has: what it states of itself, and what an auditor and a registry are told of it."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from dpmoments.foundation.documents import DocumentKind
from dpmoments.foundation.values import plain_mapping, require_kinds, to_plain
from dpmoments.ledger import Ledger
from dpmoments.privacy.origin import ReleaseOrigin
from dpmoments.privacy.profile import PrivacyProfile, RunCurve
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.statement import PrivacyStatement
from dpmoments.releases.auditor_statement import AuditorStatement, auditor_statement
from dpmoments.releases.facts import Told
from dpmoments.schema.schema import Schema

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

        Raises
        ------
        ValueError, LedgerError
            If the ledger does not hold the release, or cannot be used.
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


@dataclass(frozen=True, eq=False, kw_only=True)
class Release(Disclosed, ABC):
    """What a release of a table states, whatever it holds: what is public, what was spent, and what ran.

    Attributes
    ----------
    schema : Schema
    privacy : PrivacyStatement
        What was spent; ``print(release.privacy.in_words())``.
    receipt : Receipt
        Every draw of noise, and what it cost.
    mechanism : str
        Name of the mechanism that ran.
    mechanism_options : mapping
    diagnostics : mapping
        What else the mechanism learned privately.
    origin : ReleaseOrigin
        Which release this is: ``release.id``, ``release.dataset``, and the group of rows it is of.
    """

    schema: Schema
    privacy: PrivacyStatement
    receipt: Receipt
    mechanism: str
    mechanism_options: Mapping[str, Any]
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    origin: ReleaseOrigin = field(default_factory=ReleaseOrigin.fresh)

    file_kind: ClassVar[DocumentKind]

    def __post_init__(self) -> None:
        self.receipt.require_for(self.privacy)

    @property
    def id(self) -> str:
        """128 bits in hexadecimal digits that no other release has."""
        return self.origin.id

    @property
    def dataset(self) -> str | None:
        """What the curator calls the table; None where it was not named."""
        return self.origin.dataset

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of every array."""
        return self.schema.feature_names

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the mechanism found, privately, that speaks against trusting the release; mostly nothing."""
        result = self.diagnostics.get("warnings", ())
        return tuple(map(str, result)) if isinstance(result, list | tuple) else ()

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release as JSON, all of it or nothing; :func:`dpmoments.load` reads it.

        Raises
        ------
        FileExistsError
            If there is a file already and ``overwrite`` is False.
        OSError
            If the file cannot be written.
        """
        self.file_kind.write(self.to_dict(), path, overwrite=overwrite)

    @abstractmethod
    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file; no bit is lost."""

    def _statements(self) -> dict[str, Any]:
        return {
            "origin": self.origin.to_dict(),
            "schema": self.schema.to_dict(),
            "privacy": self.privacy.to_dict(),
            "receipt": self.receipt.to_dict(),
            "mechanism": self.mechanism,
            "mechanism_options": to_plain(self.mechanism_options),
            "diagnostics": to_plain(self.diagnostics),
        }

    @staticmethod
    def _read_statements(content: Mapping[str, Any]) -> dict[str, Any]:
        require_kinds(content, mechanism=str, mechanism_options=dict, diagnostics=dict)
        require_kinds(content, privacy=dict, receipt=dict, origin=dict)
        return {
            "origin": ReleaseOrigin.from_dict(content["origin"]),
            "schema": Schema.from_dict(content["schema"]),
            "privacy": PrivacyStatement.from_dict(content["privacy"]),
            "receipt": Receipt.from_dict(content["receipt"]),
            "mechanism": content["mechanism"],
            "mechanism_options": plain_mapping(content, "mechanism_options"),
            "diagnostics": plain_mapping(content, "diagnostics"),
        }

    def _described(self, size: str) -> str:
        flag = "" if self.privacy.private else ", NOT PRIVATE"
        return (
            f"{type(self).__name__}({size}, mechanism={self.mechanism!r}, "
            f"{self.privacy.budget}, neighbors={str(self.privacy.neighbors)!r}{flag})"
        )
