"""Reading back what releases were saved as."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dpmoments.foundation.documents import DocumentKind, read_document
from dpmoments.releases.group_releases import GROUPS_FILE, GroupReleases
from dpmoments.releases.mean_release import MEAN_RELEASE_FILE, MeanRelease
from dpmoments.releases.moment_release import RELEASE_FILE, MomentRelease
from dpmoments.releases.pooling import POOLED_FILE, PooledRelease


def load(path: str | Path) -> MomentRelease | Any:
    """Read a release, a mean release, a pooled release, or the releases of groups. No code in the file is ever run.

    Parameters
    ----------
    path : path
        A file that the method ``save`` of a release wrote.

    Returns
    -------
    MomentRelease, MeanRelease or GroupReleases
        What the file holds; to a type checker it may be any.

    Raises
    ------
    ValueError
        If the file is not a release, is of a version this library does not read, is truncated, differs from what was
        written (the checksum finds accidents and careless edits; it is not a signature), or its receipt does not add up.
    OSError
        If the file cannot be read.
    """
    builders: dict[DocumentKind, Callable[[Mapping[str, Any]], MomentRelease | MeanRelease | GroupReleases]] = {
        RELEASE_FILE: MomentRelease.from_dict,
        MEAN_RELEASE_FILE: MeanRelease.from_dict,
        GROUPS_FILE: GroupReleases.from_dict,
        POOLED_FILE: PooledRelease.from_dict,
    }
    return read_document(path, builders)
