"""Loading of saved releases."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from dpmoments.foundation.documents import DocumentKind, read_document
from dpmoments.releases.counts_release import COUNTS_FILE, CountsRelease
from dpmoments.releases.group_releases import GROUPS_FILE, GroupReleases
from dpmoments.releases.mean_release import MEAN_RELEASE_FILE, MeanRelease
from dpmoments.releases.moment_release import RELEASE_FILE, MomentRelease
from dpmoments.releases.pooling import POOLED_FILE, PooledRelease

AnyRelease = MomentRelease | MeanRelease | CountsRelease | GroupReleases
"""A release of any kind."""


def load(path: str | Path) -> MomentRelease | Any:
    """Load a release of any kind; code in the file is never run.

    Parameters
    ----------
    path : path
        A file that the method ``save`` of a release wrote.

    Returns
    -------
    MomentRelease, MeanRelease, CountsRelease, GroupReleases or PooledRelease
        The content of the file; type checkers accept it as any of them.

    Raises
    ------
    ValueError
        If the file is not a release, has an unsupported version, is truncated, was changed (the checksum detects
        accidents and careless edits; it is not a signature), or its receipt does not add up.
    OSError
        If the file cannot be read.
    """
    builders: dict[DocumentKind, Callable[[Mapping[str, Any]], AnyRelease]] = {
        RELEASE_FILE: MomentRelease.from_dict,
        MEAN_RELEASE_FILE: MeanRelease.from_dict,
        COUNTS_FILE: CountsRelease.from_dict,
        GROUPS_FILE: GroupReleases.from_dict,
        POOLED_FILE: PooledRelease.from_dict,
    }
    return read_document(path, builders)
