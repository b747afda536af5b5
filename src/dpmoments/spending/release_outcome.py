"""What becomes of a release that was made: its file, and its warnings."""

from __future__ import annotations

import warnings
from pathlib import Path

from dpmoments.foundation.log import log
from dpmoments.ledger.charge import Held
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.releases.release_warning import ReleaseWarning

__all__ = ["UnsavedReleaseError", "keep"]


class UnsavedReleaseError(OSError):
    """A release was made, and its budget spent, but its file could not be written.

    Attributes
    ----------
    release : MomentRelease, MeanRelease or GroupReleases
        What was made: ``error.release.save("elsewhere.json")`` keeps it.
    """

    def __init__(self, path: str | Path, reason: OSError, release: MomentRelease | MeanRelease | GroupReleases) -> None:
        super().__init__(
            f"the release was made and its budget is spent, but {path} could not be written "
            f"({reason.strerror or type(reason).__name__}): keep it with error.release.save(another_path)"
        )
        self.release = release


def keep(released: MomentRelease | MeanRelease | GroupReleases, output: str | Path | None, held: Held) -> None:
    """Save a release where it is wanted, have the ledger record that it was made, then show its warnings.

    Raises
    ------
    UnsavedReleaseError
        If the file cannot be written. The budget is spent all the same.
    """
    if output is not None:
        try:
            released.save(output)
        except OSError as reason:
            unsaved = UnsavedReleaseError(output, reason, released)
            if uncommitted := held.commit():
                unsaved.add_note(uncommitted)
            raise unsaved from reason
        log.info("written: %s", output)
    uncommitted = held.commit()
    for text in filter(None, (*released.warnings, uncommitted)):
        warnings.warn(ReleaseWarning(text, released), stacklevel=3)
