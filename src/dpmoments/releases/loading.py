"""Loading of saved releases."""

from __future__ import annotations

from pathlib import Path
from typing import Any, TypeVar, overload

from dpmoments.base.documents import read_document
from dpmoments.base.errors import InputTypeError
from dpmoments.releases.counts_release import CountsRelease
from dpmoments.releases.group_releases import GroupReleases
from dpmoments.releases.mean_release import MeanRelease
from dpmoments.releases.moment_release import MomentRelease
from dpmoments.releases.pooling import PooledRelease

AnyRelease = MomentRelease | MeanRelease | CountsRelease | GroupReleases
"""A release of any kind."""


Kind = TypeVar("Kind", MomentRelease, MeanRelease, CountsRelease, GroupReleases, PooledRelease)


@overload
def load(path: str | Path) -> MomentRelease: ...


@overload
def load(path: str | Path, kind: type[Kind]) -> Kind: ...


def load(path: str | Path, kind: type[Any] = object) -> Any:
    """Load a release of any kind; code in the file is never run.

    Parameters
    ----------
    path : path
        A file that the method ``save`` of a release wrote.
    kind : type, optional
        The expected class, such as ``dpm.MeanRelease``, which tells type checkers and editors what is returned; without it
        they assume a MomentRelease. Any kind is loaded without it.

    Returns
    -------
    MomentRelease, MeanRelease, CountsRelease, GroupReleases or PooledRelease
        The content of the file.

    Raises
    ------
    ValueError
        If the file is not a release, has an unsupported version, is truncated, was changed (the checksum detects
        accidents and careless edits; it is not a signature), or its receipt does not add up.
    TypeError
        If the release is of another kind.
    OSError
        If the file cannot be read.
    """
    kinds: tuple[Any, ...] = MomentRelease, MeanRelease, CountsRelease, GroupReleases, PooledRelease
    released = read_document(path, {each.file_kind: each.from_dict for each in kinds})
    if not isinstance(released, kind):
        raise InputTypeError(f"{path} holds a {type(released).__name__}: load it with that kind, or without one")
    return released
