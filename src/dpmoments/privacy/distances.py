"""Distances of a query on two neighbors, and bounds on them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.base.errors import InputValueError
from dpmoments.base.values import rounded_up
from dpmoments.privacy.unit import Neighbors

Argument = float | tuple[float, ...]
"""Public number, or public weights."""


class Norm(StrEnum):
    """Distance of a query on two neighbors.

    ``L1``, ``L2``: of the vector of its entries; of a symmetric matrix, ``L1`` of the upper triangle with the diagonal and
    ``L2`` the Frobenius norm. ``NUCLEAR``: sum of absolute eigenvalues. ``ROW``: the matrices differ by rows z zᵀ removed or
    added, and the number bounds ‖z‖²; a difference determines it exactly only if one row is added or the two are orthogonal.
    ``SCORE``: largest change of any one score. ``BODY``: gauge of a box times cross-polytopes, the largest absolute entry and ℓ1
    norm of any block of last entries. ``NAMES``: of numbers of rows by name, how many of them change, each by 1; infinite if one
    changes by more.
    """

    L1 = "l1"
    L2 = "l2"
    NUCLEAR = "nuclear"
    ROW = "row"
    SCORE = "score"
    BODY = "body"
    NAMES = "names"


@dataclass(frozen=True)
class Sensitivity:
    """Bound on the change of a query between neighbors, made by ``sensitivity.py`` only."""

    name: str  # function that made it
    # names and values of its arguments, without `neighbors`: numbers, and weights as a tuple, which a file holds as a list
    arguments: tuple[tuple[str, Argument], ...]
    neighbors: Neighbors
    norm: Norm
    value: float  # in units of the query, rounded up
    units: float = 1.0  # units of the query in one unit of the encoded rows: a power of two, or a radius's
    rounding: float = 0.0  # effect of rounding the query to a lattice, in units of the query; part of `value`

    @property
    def blocks(self) -> tuple[float, ...]:
        """Sizes of the blocks of last entries of the query (``BODY``)."""
        blocks = dict(self.arguments).get("blocks", ())
        assert isinstance(blocks, tuple)
        return blocks

    def in_units(self, units: float, *, rounding: float = 0.0) -> Sensitivity:
        """Return the bound for a query in smaller units, ``units`` new ones in one old one."""
        # `rounding` is the largest change of the distance of two queries by rounding to whole units, in new units.
        if units < 1.0 or rounding < 0.0:
            raise InputValueError(
                "a query is counted in smaller units, 1 or more in one, and rounding adds to its distance"
            )
        return Sensitivity(
            self.name,
            self.arguments,
            self.neighbors,
            self.norm,
            _value_in_units(self.value, units, rounding),
            self.units * units,
            self.rounding * units + rounding,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return {
            "name": self.name,
            "arguments": {
                name: list(map(float, value)) if isinstance(value, tuple) else value for name, value in self.arguments
            },
            "neighbors": str(self.neighbors),
            "units": self.units,
            "rounding": self.rounding,
            "value": self.value,
        }


@lru_cache(maxsize=256)
def _value_in_units(value: float, units: float, rounding: float) -> float:
    return rounded_up(Fraction(value) * Fraction(units) + Fraction(rounding))


def query_distance(
    norm: Norm, first: npt.ArrayLike, second: npt.ArrayLike, neighbors: Neighbors, blocks: Sequence[float] = ()
) -> float:
    """Return the distance of a query on two neighboring tables in this norm.

    Infinite if the shapes differ.

    The queries are vectors or symmetric matrices, of exact integers or floats, or numbers of rows by name (``NAMES``);
    ``blocks`` are the sizes of blocks of last entries (``BODY``).
    """
    ours, theirs = np.asarray(first), np.asarray(second)
    if norm is Norm.NAMES:
        one, two = Counter(ours.item()), Counter(theirs.item())
        changes = [abs(one[name] - two[name]) for name in one | two]
        return float(sum(changes)) if max(changes, default=0) <= 1 else math.inf
    if ours.shape != theirs.shape:
        return math.inf
    if norm is Norm.L1:
        if ours.ndim == 2:
            upper = np.triu_indices(len(ours))
            ours, theirs = ours[upper], theirs[upper]
        return float(sum(abs(entry) for entry in _moved(ours, theirs)))
    if norm is Norm.L2:
        return math.sqrt(sum(entry * entry for entry in _moved(ours, theirs)))
    if norm is Norm.SCORE:
        return float(max(map(abs, _moved(ours, theirs)), default=0))
    if norm is Norm.BODY:
        ends = np.cumsum([len(ours) - int(sum(blocks)), *map(int, blocks)])
        moved = np.abs(_difference(ours, theirs).astype(object))
        parts = [part.sum() for part in np.split(moved, ends[:-1])[1:]]
        return float(max([*moved[: ends[0]], *parts], default=0))
    eigenvalues = np.linalg.eigvalsh(_difference(ours, theirs).astype(np.float64))
    added, removed = float(eigenvalues[eigenvalues > 0].sum()), -float(eigenvalues[eigenvalues < 0].sum())
    # Under add-remove one of the two is zero; a replaced row takes one z zᵀ away and brings another.
    both = norm is Norm.NUCLEAR or neighbors is Neighbors.ADD_REMOVE
    return added + removed if both else max(added, removed)


def _in_integers(part: npt.NDArray[Any]) -> bool:
    return bool(part.dtype == object or np.issubdtype(part.dtype, np.integer))


def _within_62_bits(part: npt.NDArray[np.int64]) -> bool:
    return bool(part.min(initial=0) >= -(2**62) and part.max(initial=0) <= 2**62 - 1)


def _difference(ours: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if ours.dtype == theirs.dtype == np.int64 and _within_62_bits(ours) and _within_62_bits(theirs):
        within: npt.NDArray[Any] = ours - theirs
        return within
    # Python integers: a difference of two int64 may not be one.
    integers = _in_integers(ours) and _in_integers(theirs)
    difference: npt.NDArray[Any] = ours.astype(object) - theirs.astype(object) if integers else ours - theirs
    return difference


def _moved(ours: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> list[Any]:
    """Return the entries of the difference."""
    # Of integers only the nonzero ones, which are few for one row of many.
    if ours.dtype == theirs.dtype and _in_integers(ours):
        indices = np.asarray(ours != theirs)
        ours, theirs = ours[indices], theirs[indices]
    return _difference(ours, theirs).ravel().tolist()
