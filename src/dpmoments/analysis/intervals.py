"""Confidence intervals with labels, and what a fit identifies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dpmoments.analysis.answers import TableAnswer, finite_or_none, number
from dpmoments.foundation.arrays import FloatArray

__all__ = ["Identification", "Intervals"]


@dataclass(frozen=True, eq=False, repr=False)
class Intervals(TableAnswer):
    """Confidence intervals, read as an array of shape (k, 2) or by name.

    Attributes
    ----------
    names : tuple of str
    limits : ndarray of shape (k, 2)
    level : float
    beside : mapping of str to (float, float)
        Found by name alone: the intercept's.

    Examples
    --------
    >>> found = Intervals(("age", "smoker"), np.array([[0.0, 1.0], [2.0, 3.0]]), 0.95)
    >>> found["smoker"], found[:, 0].tolist()
    ((2.0, 3.0), [0.0, 2.0])
    """

    names: tuple[str, ...]
    limits: FloatArray
    level: float
    beside: Mapping[str, tuple[float, float]] = field(default_factory=dict)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> FloatArray:
        return np.array(self.limits, dtype=dtype) if copy else np.asarray(self.limits, dtype=dtype)

    def __len__(self) -> int:
        return len(self.names)

    def __iter__(self) -> Iterator[FloatArray]:
        return iter(self.limits)

    def __getitem__(self, key: Any) -> Any:
        if not isinstance(key, str):
            return self.limits[key]
        if key in self.beside:
            return self.beside[key]
        if key not in self.names:
            raise KeyError(f"there is no interval of {key!r}: there are those of {', '.join(map(repr, self.names))}")
        lower, upper = self.limits[self.names.index(key)]
        return float(lower), float(upper)

    @property
    def shape(self) -> tuple[int, ...]:
        """(k, 2)."""
        return self.limits.shape

    def table(self) -> list[tuple[str, ...]]:
        """Rows of text, the head first."""
        rows = zip(self.names, self.limits, strict=True)
        return [(f"{self.level:.0%}", "lower", "upper"), *((name, *map(number, limits)) for name, limits in rows)]

    def columns(self) -> dict[str, list[Any]]:
        """Columns for frames."""
        return {"feature": list(self.names), "lower": self.limits[:, 0].tolist(), "upper": self.limits[:, 1].tolist()}

    def to_dict(self) -> dict[str, Any]:
        """As JSON holds them; an infinite end is None."""
        return {"level": self.level} | {
            name: finite_or_none(limits) for name, limits in zip(self.names, self.limits, strict=True)
        }


@dataclass(frozen=True)
class Identification:
    """Which coefficients a release identifies; as a truth value, whether the whole fit is identified.

    Attributes
    ----------
    names : tuple of str
    coefficients : tuple of bool
    whole : bool

    Examples
    --------
    >>> found = Identification(("age", "smoker"), (True, False), False)
    >>> bool(found), found["age"], list(found)
    (False, True, [True, False])
    """

    names: tuple[str, ...]
    coefficients: tuple[bool, ...]
    whole: bool

    def __bool__(self) -> bool:
        return self.whole

    def __len__(self) -> int:
        return len(self.coefficients)

    def __iter__(self) -> Iterator[bool]:
        return iter(self.coefficients)

    def __getitem__(self, key: int | str) -> bool:
        return self.coefficients[self.names.index(key) if isinstance(key, str) else key]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        del copy
        return np.array(self.coefficients, dtype=dtype)
