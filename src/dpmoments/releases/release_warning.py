"""The warnings of jobs and of releases that were made."""

from __future__ import annotations

from collections.abc import Mapping

from dpmoments.messages.codes import Fact
from dpmoments.messages.message import Message
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease


class MessageWarning(UserWarning):
    """A warning to a curator, as data: its text is made when it is shown.

    Attributes
    ----------
    message_data : Message
        What is said; ``code`` and ``facts`` are its own.
    """

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
    """A reason not to trust a release.

    It is one that a mechanism learned privately, and paid for; a ledger that could not record the release; or that releases were
    pooled though nothing shows that their tables are disjoint.

    Attributes
    ----------
    release : MomentRelease, MeanRelease or GroupReleases
        Not lost where warnings are turned into errors.
    """

    def __init__(self, message: Message, release: MomentRelease | MeanRelease | GroupReleases) -> None:
        super().__init__(message)
        self.release = release
