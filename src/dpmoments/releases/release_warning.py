"""Warning emitted with a finished release."""

from __future__ import annotations

from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease


class ReleaseWarning(UserWarning):
    """Reason not to trust a release without further thought.

    A mechanism found it privately and paid for it; or a ledger could not record the release; or releases were pooled
    although nothing shows that their tables are disjoint.

    Attributes
    ----------
    release : MomentRelease, MeanRelease or GroupReleases
        The release, which is not lost if warnings are turned into errors.
    """

    def __init__(self, text: str, release: MomentRelease | MeanRelease | GroupReleases) -> None:
        super().__init__(text)
        self.release = release
