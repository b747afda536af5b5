"""Levels of categorical columns, each column completed by "no level" where a row may have none: shares then add up to 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.schema.constraints import Constraints

__all__ = ["CompletedLevels", "IndexArray", "LevelColumn", "level_shares", "possible_mean"]

IndexArray = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class LevelColumn:
    """The levels of one column.

    Attributes
    ----------
    features : ndarray of int
        Their places; "no level", where there is one, comes last.
    shares : ndarray
        Of the rows, adding up to 1.
    """

    features: IndexArray
    shares: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class CompletedLevels:
    """The features of a schema and, after them, "no level" of every block that is not complete.

    Attributes
    ----------
    constraints : Constraints
    mean : ndarray of shape (d,)
        Of the features, possible (:func:`possible_mean`), in column units.
    columns : tuple of LevelColumn
    is_level : ndarray of bool, shape (d + incomplete blocks,)
    flags : ndarray of int
        The Booleans of exactly two values.
    free : ndarray of int
        The features that are neither levels nor such Booleans.
    """

    constraints: Constraints
    mean: FloatArray
    columns: tuple[LevelColumn, ...]
    is_level: BoolArray
    flags: IndexArray
    free: IndexArray

    @classmethod
    def of(cls, constraints: Constraints, mean: FloatArray) -> CompletedLevels:
        """Those of a schema, with the shares that a possible mean gives them."""
        d = constraints.n_features
        size = d + sum(not block.complete for block in constraints.blocks)
        is_level = np.zeros(size, dtype=bool)
        is_level[d:] = True
        columns, hidden = [], d
        for block in constraints.blocks:
            is_level[block.features] = True
            features, shares = np.arange(block.start, block.stop), mean[block.features]
            if not block.complete:
                features, shares = np.append(features, hidden), np.append(shares, max(1.0 - float(shares.sum()), 0.0))
                hidden += 1
            columns.append(LevelColumn(features, shares))
        flags = np.array(constraints.flags, dtype=np.intp)
        free = ~is_level
        free[flags] = False
        return cls(constraints, mean, tuple(columns), is_level, flags, np.flatnonzero(free))

    @property
    def single(self) -> IndexArray:
        """Features that are no level."""
        return np.flatnonzero(~self.is_level)

    @property
    def hidden(self) -> tuple[LevelColumn, ...]:
        """Columns with a "no level"."""
        d = self.constraints.n_features
        return tuple(column for column in self.columns if column.features[-1] >= d)

    def extended(self, covariance: FloatArray) -> FloatArray:
        """A covariance of the features with those of "no level": minus the sums over the levels."""
        extension = self._extension
        return np.asarray(extension @ covariance @ extension.T)

    def extended_variances(self, variances: FloatArray) -> FloatArray:
        """Variances of independent cells of a covariance, and those of the sums over them."""
        extension = self._extension**2
        return np.asarray(extension @ variances @ extension.T)

    @property
    def _extension(self) -> FloatArray:
        d = self.constraints.n_features
        extension = np.vstack([np.eye(d), np.zeros((len(self.is_level) - d, d))])
        for column in self.hidden:
            extension[column.features[-1], column.features[:-1]] = -1.0
        return extension

    def with_known_blocks(self, covariance: FloatArray) -> FloatArray:
        """The same with diag(p) − ppᵀ as the covariance of a column's levels, and p(1 − p), in its units, for a Boolean."""
        known = covariance.copy()
        for column in self.columns:
            own = np.ix_(column.features, column.features)
            known[own] = np.diag(column.shares) - np.outer(column.shares, column.shares)
        known[self.flags, self.flags] = self.flag_variances
        return known

    @property
    def flag_variances(self) -> FloatArray:
        """(m − lower)(upper − m): the variance of a variable with two values and mean m."""
        mean = self.mean[self.flags]
        lower, upper = self.constraints.lower[self.flags], self.constraints.upper[self.flags]
        return np.asarray((mean - lower) * (upper - mean))


def possible_mean(mean: FloatArray, constraints: Constraints) -> FloatArray:
    """The nearest mean that a table can have: within bounds, shares of levels adding up; in column units, shape (d,)."""
    possible = np.clip(mean, constraints.lower, constraints.upper)
    for block in constraints.blocks:
        possible[block.features] = level_shares(mean[block.features], complete=block.complete)
    return np.asarray(possible)


def level_shares(shares: FloatArray, *, complete: bool) -> FloatArray:
    """The nearest shares of rows that the levels of a column can have: at least 0, with a sum of 1 (at most, if not complete).

    Examples
    --------
    >>> level_shares(np.array([0.7, 0.5, -0.1]), complete=True).round(2)
    array([0.6, 0.4, 0. ])
    >>> level_shares(np.array([0.7, -0.1]), complete=False)
    array([0.7, 0. ])
    """
    positive: FloatArray = np.maximum(shares, 0.0)
    if not complete and positive.sum() <= 1.0:
        return positive
    descending = np.sort(shares)[::-1]
    excess = (np.cumsum(descending) - 1.0) / np.arange(1, len(shares) + 1)
    kept = np.flatnonzero(descending > excess)
    nearest = np.maximum(shares - excess[kept[-1] if len(kept) else 0], 0.0)
    total = float(nearest.sum())  # 1 but for rounding, which large numbers leave much of
    return np.asarray(nearest / total if total > 0.0 else np.full(len(shares), 1.0 / len(shares)))
