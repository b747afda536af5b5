"""The warning that comes with a release that was made."""

from __future__ import annotations

from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease


class ReleaseWarning(UserWarning):
    """A reason not to trust a release as it stands.

    It is one that a mechanism learned privately, and paid for; a ledger that could not record the release; or that releases were
    pooled though nothing shows that their tables are disjoint.

    Attributes
    ----------
    release : MomentRelease, MeanRelease or GroupReleases
        Not lost where warnings are turned into errors.
    """

    def __init__(self, text: str, release: MomentRelease | MeanRelease | GroupReleases) -> None:
        super().__init__(text)
        self.release = release
