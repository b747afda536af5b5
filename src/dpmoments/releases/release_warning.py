"""Warnings of jobs and of finished releases."""

from __future__ import annotations

from collections.abc import Mapping

from dpmoments.messages.codes import Fact
from dpmoments.messages.message import Message
from dpmoments.releases.counts_release import CountsRelease
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease

AnyRelease = MomentRelease | MeanRelease | CountsRelease | GroupReleases
"""A release of any kind."""


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

    def __init__(self, message: Message, release: AnyRelease) -> None:
        super().__init__(message)
        self.args = message, release  # a process that raises it as an error returns both
        self.release = release
