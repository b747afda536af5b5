"""What the law of one run says of the table's moments where the noise is not added cell by cell: a pivot, and what follows.

A pivot is a function of released and exact moments whose law does not depend on the table. From it follows an interval of
matrices that holds the exact moments with a stated probability, made of what was released alone.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.values import finite_numbers, is_finite_number, require_known

__all__ = ["MomentInterval", "MomentPivot", "moment_pivot_classes", "register_moment_pivot"]

PivotClass = TypeVar("PivotClass", bound="type[MomentPivot]")


@dataclass(frozen=True, slots=True, eq=False)
class MomentInterval:
    """All symmetric M with center − spread ⪯ M ⪯ center + spread, for M = Σ v vᵀ.

    Attributes
    ----------
    center, spread : ndarray of shape (m, m)
        ``spread`` is positive semi-definite. v is (1, x) where ``constant``, else x: the features that were asked for, in
        their order, in units of the encoded rows.
    constant : bool
    count_error : float
        How far the released number of rows may be from that of the table's; 0 where it is exact.
    """

    center: FloatArray
    spread: FloatArray
    constant: bool
    count_error: float

    def mapped(self, matrix: FloatArray) -> MomentInterval:
        """The same for matrix·v, whose first entry is again the constant, if v has one."""
        center, spread = matrix @ self.center @ matrix.T, matrix @ self.spread @ matrix.T
        return MomentInterval(center, spread, self.constant, self.count_error)


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentPivot(ABC):
    """The law of one run, with what is needed to use it beside count, sum and Gram matrix.

    Small subclasses, registered by name (:func:`register_moment_pivot`); ``MomentPivot.from_dict`` makes the one that a file
    names. Their fields are numbers, or arrays whose shapes follow from ``n_features``.

    Attributes
    ----------
    n_features : int
    count_scale : float
        Standard deviation of normal noise on the number of rows, or the scale of Laplace noise (``count_is_laplace``); 0 where
        it is exact, or where the interval itself bounds it.
    count_is_laplace : bool
    """

    n_features: int
    count_scale: float = 0.0
    count_is_laplace: bool = False

    name: ClassVar[str]
    arrays: ClassVar[Mapping[str, int]] = MappingProxyType({})
    """Dimensions of the fields that are arrays: 1 for d numbers, 2 for a d × d matrix."""

    def __post_init__(self) -> None:
        d = self.n_features
        if isinstance(d, bool) or not isinstance(d, int) or d < 1:
            raise ValueError(f"n_features={d!r} of the pivot is not a whole number above 0")
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name in self.arrays:
                self._check_array(entry.name, value)
            elif entry.type == "bool":
                if not isinstance(value, bool):
                    raise ValueError(f"{entry.name} of the pivot must be true or false")
            elif value is None and entry.type == "float | None":
                continue
            elif not (is_finite_number(value) and value >= 0):
                raise ValueError(f"{entry.name} of the pivot is not a finite number, 0 or above")

    def _check_array(self, name: str, value: object) -> None:
        shape = (self.n_features,) * self.arrays[name]
        if value is None:
            return
        if not isinstance(value, np.ndarray) or value.shape != shape or not np.isfinite(value).all():
            raise ValueError(f"{name} of the pivot must hold finite numbers, shape {shape}")
        value.setflags(write=False)

    @property
    def covers(self) -> str:
        """What the interval is about, beyond the table's own moments, in words; empty where there is nothing to add."""
        return ""

    @abstractmethod
    def interval(
        self, count: float | None, total: FloatArray | None, gram: FloatArray, chosen: Sequence[int], failure: float
    ) -> MomentInterval | None:
        """An interval that holds the exact moments of some features but with probability ``failure``.

        Parameters
        ----------
        count, total, gram
            What was released, before any repair, in unit-ball units; sum and Gram matrix about the release's centre.
        chosen : sequence of int
            Features, chosen without looking at the noise.
        failure : float
            Above 0, below 1.

        Returns
        -------
        MomentInterval or None
            None where the law bounds nothing.
        """

    def count_bound(self, failure: float) -> float:
        """How far the released number of rows may be off, but with probability ``failure``; half a row more for its rounding."""
        if not self.count_scale:
            return 0.0
        if self.count_is_laplace:
            return self.count_scale * math.log(1.0 / failure) + 0.5
        return self.count_scale * math.sqrt(2.0 * math.log(2.0 / failure)) + 0.5

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        values: dict[str, Any] = {"name": self.name}
        for entry in fields(self):
            value = getattr(self, entry.name)
            values[entry.name] = value.ravel().tolist() if isinstance(value, np.ndarray) else value
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> MomentPivot:
        """The pivot that :meth:`to_dict` wrote, whichever class it is called on.

        Raises
        ------
        TypeError, ValueError
            If the name is that of no registered pivot, or the other values are not those of this one.
        """
        if not isinstance(values, Mapping):
            raise TypeError("a pivot is a mapping of its name and its numbers")
        name = values.get("name")
        if not isinstance(name, str) or name not in _PIVOTS:
            raise ValueError(f"the name of the pivot must be one of {', '.join(sorted(_PIVOTS))}")
        made = _PIVOTS[name]
        known = [entry.name for entry in fields(made)]
        given = {key: value for key, value in values.items() if key != "name"}
        require_known(given, known, f"the pivot {name!r}")
        if absent := [key for key in known if key not in given]:
            raise ValueError(f"the pivot has no {', '.join(absent)}")
        d = given["n_features"]
        for key, dimensions in made.arrays.items():
            if given[key] is None:
                continue
            if not isinstance(given[key], list) or not isinstance(d, int) or len(given[key]) != d**dimensions:
                raise ValueError(f"{key} of the pivot is no list of as many numbers as n_features asks for")
            given[key] = finite_numbers(given[key], d**dimensions, key).reshape((d,) * dimensions)
        return made(**given)


_PIVOTS: dict[str, type[MomentPivot]] = {}


def register_moment_pivot(pivot_class: PivotClass) -> PivotClass:
    """Make a pivot known by its name, so that files that name it are read; a class decorator.

    Raises
    ------
    ValueError
        If it has no name, or another pivot has it.
    """
    name = vars(pivot_class).get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"{pivot_class.__name__} must state the name of its pivot, as a constant of the class")
    if name in _PIVOTS:
        raise ValueError(f"there is a pivot {name!r} already: give {pivot_class.__name__} another name")
    _PIVOTS[name] = pivot_class
    return pivot_class


def moment_pivot_classes() -> Mapping[str, type[MomentPivot]]:
    """All registered pivots by name, sorted.

    Examples
    --------
    >>> import dpmoments.noise
    >>> [*moment_pivot_classes()]
    ['inverse-normal', 'last-step', 'wishart-sampling']
    """
    return MappingProxyType(dict(sorted(_PIVOTS.items())))
