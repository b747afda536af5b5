"""Levels of categorical columns, each column completed by "no level" where a row may have none: shares then add up to 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.schema.constraints import Constraints

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
    mean : ndarray of shape (d,)
        Of the features, possible (:func:`possible_mean`), in column units.
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


# The last step of the structured repair: a covariance near a given one that no count, mean or correlation contradicts.

_ROUNDS = 30
"""Alternating projections at most; what they leave undone costs a share λ/(1 + λ) of all dependence."""
_NEGLIGIBLE = 1e-3
"""Negative eigenvalues of a correlation matrix down to this are left to the mixture."""


def possible_covariance(extended: FloatArray, levels: CompletedLevels) -> FloatArray:
    """A covariance that a table with these means can have, as far as counts, means, correlations and definiteness say.

    What comes out is positive semi-definite; p(1 − p) is the variance of every Boolean and level of share p, and −p_l p_m the
    covariance of two levels of a column; joint counts of levels and Booleans are at least 0, and add up to their margins (so that
    they are at most those); the mean of any feature over the rows of any level is within the feature's bounds.

    Parameters
    ----------
    extended : ndarray of shape (d + incomplete blocks, the same)
        A covariance of the features and of "no level" of each incomplete block, in column units; symmetric.

    Returns
    -------
    ndarray of shape (d, d)
        Of the features.

    Notes
    -----
    Alternating projections (for correlation matrices Higham 2002), in units of standard deviations, onto the positive
    semi-definite matrices and onto those with possible counts. They end on the second set; the mixture (1 − t)·Σ̂ + t·(columns
    independent), t = λ/(1 + λ), is then in both, −λ the least eigenvalue: independence has possible counts, too, and its
    eigenvalues are 1 wherever those of Σ̂ can be negative (``docs/derivations/repairs.md``).

    Examples
    --------
    >>> from dpmoments import Boolean, Schema
    >>> from dpmoments.schema.constraints import Constraints
    >>> constraints = Constraints.of(Schema(Boolean("a"), Boolean("b")), mean=True)
    >>> levels = CompletedLevels.of(constraints, np.array([0.0, -0.8]))
    >>> possible_covariance(np.array([[1.3, 0.5], [0.5, 0.2]]), levels).round(3)
    array([[1.  , 0.2 ],
           [0.2 , 0.36]])
    """
    cells = _Cells.of(extended, levels)
    scaled = cells.scaled(cells.possible(extended, exact=False))
    for _ in range(_ROUNDS):
        eigenvalues, eigenvectors = np.linalg.eigh(scaled)
        if eigenvalues[0] >= -_NEGLIGIBLE:
            break
        definite = (eigenvectors * np.maximum(eigenvalues, 0.0)) @ eigenvectors.T
        scaled = cells.scaled(cells.possible(cells.unscaled(definite), exact=False))
    scaled = cells.scaled(cells.possible(cells.unscaled(scaled), exact=True))
    lack = max(0.0, -float(np.linalg.eigvalsh(scaled)[0]))
    return cells.mixed(scaled, lack / (1.0 + lack))


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """What is possible in the cells of a covariance with known shares of levels and means."""

    levels: CompletedLevels
    deviations: FloatArray
    largest: FloatArray

    @classmethod
    def of(cls, extended: FloatArray, levels: CompletedLevels) -> _Cells:
        """With √p as the unit of a level, and standard deviations as that of the other features."""
        largest = (levels.constraints.upper - levels.constraints.lower) / 2.0  # no bounded variable deviates more
        deviations = np.sqrt(np.maximum(np.diag(extended), 0.0))
        deviations[: len(largest)] = np.minimum(deviations[: len(largest)], largest)
        for column in levels.columns:
            deviations[column.features] = np.sqrt(column.shares)
        deviations[levels.flags] = np.sqrt(levels.flag_variances)
        return cls(levels, deviations, largest)

    def scaled(self, covariance: FloatArray) -> FloatArray:
        """In those units; a feature that does not deviate has zeros."""
        deviates = self.deviations > 0.0
        factor = np.where(deviates, 1.0 / np.where(deviates, self.deviations, 1.0), 0.0)
        return np.asarray(covariance * np.outer(factor, factor))

    def unscaled(self, scaled: FloatArray) -> FloatArray:
        return np.asarray(scaled * np.outer(self.deviations, self.deviations))

    def possible(self, covariance: FloatArray, *, exact: bool) -> FloatArray:
        """With the known blocks as they are, and cells moved to what counts and bounds allow."""
        columns = self.levels.columns
        moved = covariance.copy()
        single = self.levels.single
        for column in columns:
            cells = self._within_levels(moved[np.ix_(single, column.features)], column)
            moved[np.ix_(single, column.features)] = cells
            moved[np.ix_(column.features, single)] = cells.T
        self._bound_flags(moved)
        if exact:
            for index, column in enumerate(columns):
                for other in columns[:index]:
                    independent = np.outer(column.shares, other.shares)
                    joint = moved[np.ix_(column.features, other.features)] + independent
                    cells = _with_margins(joint, column.shares, other.shares) - independent
                    moved[np.ix_(column.features, other.features)] = cells
                    moved[np.ix_(other.features, column.features)] = cells.T
        elif columns:
            every = np.concatenate([column.features for column in columns])
            shares = np.concatenate([column.shares for column in columns])
            sizes = [len(column.features) for column in columns]
            start, which = np.cumsum([0, *sizes])[:-1], np.repeat(np.arange(len(sizes)), sizes)
            cells = moved[np.ix_(every, every)]
            cells = cells - shares[:, None] * np.add.reduceat(cells, start, axis=0)[which]
            cells = cells - np.add.reduceat(cells, start, axis=1)[:, which] * shares[None, :]
            moved[np.ix_(every, every)] = np.maximum(cells, -np.outer(shares, shares))
        return self.levels.with_known_blocks(moved)

    def mixed(self, scaled: FloatArray, share: float) -> FloatArray:
        """(1 − t)·Σ̂ + t·(columns independent), of the features alone."""
        free = np.ix_(self.levels.free, self.levels.free)
        mixed = self.levels.with_known_blocks(self.unscaled((1.0 - share) * scaled))
        mixed[free] = self.unscaled(scaled)[free] + share * np.diag(self.deviations[self.levels.free] ** 2)
        d = len(self.largest)
        mixed = mixed[:d, :d]
        result = np.sqrt(np.maximum(np.diag(mixed), 0.0))
        too_large = result > self.largest
        held = np.where(too_large, self.largest / np.where(too_large, result, 1.0), 1.0)
        held[~np.isin(np.arange(d), self.levels.free)] = 1.0
        mixed = mixed * np.outer(held, held)
        return np.asarray((mixed + mixed.T) / 2.0)

    def _within_levels(self, cells: FloatArray, column: LevelColumn) -> FloatArray:
        """Cells of single features and a column's levels, moved to where the mean over each level's rows is within bounds."""
        single, constraints = self.levels.single, self.levels.constraints
        mean = self.levels.mean[single]
        lower, upper = constraints.lower[single] - mean, constraints.upper[single] - mean
        bounded = np.isfinite(lower) & np.isfinite(upper)
        centred = cells - np.outer(cells.sum(axis=1), column.shares)
        least = np.outer(np.where(bounded, lower, 0.0), column.shares)
        most = np.outer(np.where(bounded, upper, 0.0), column.shares)
        clipped = np.clip(cells, least, most)
        left = -clipped.sum(axis=1, keepdims=True)
        room = np.where(left > 0.0, most - clipped, clipped - least)
        total = room.sum(axis=1, keepdims=True)
        share = np.divide(left, total, out=np.zeros_like(left), where=total > 0.0)
        return np.where(bounded[:, None], np.clip(clipped + share * room, least, most), centred)

    def _bound_flags(self, moved: FloatArray) -> None:
        """Joint counts of two Booleans between 0, p + q − 1 and the lesser of p and q (Fréchet's bounds)."""
        flags, constraints = self.levels.flags, self.levels.constraints
        low = constraints.lower[flags]
        step = constraints.upper[flags] - low
        shares = (self.levels.mean[flags] - low) / step
        independent = np.outer(shares, shares)
        units = np.outer(step, step)
        least = units * (np.maximum(0.0, shares[:, None] + shares[None, :] - 1.0) - independent)
        most = units * (np.minimum(shares[:, None], shares[None, :]) - independent)
        both = np.ix_(flags, flags)
        moved[both] = np.clip(moved[both], least, most)


def _with_margins(joint: FloatArray, rows: FloatArray, columns: FloatArray) -> FloatArray:
    """Non-negative shares with the given margins, near to given ones (Altschuler, Weed & Rigollet 2017, algorithm 2)."""
    joint = np.maximum(joint, 0.0)
    joint = joint * _at_most_one(rows, joint.sum(axis=1))[:, None]
    joint = joint * _at_most_one(columns, joint.sum(axis=0))[None, :]
    missing_rows = np.maximum(rows - joint.sum(axis=1), 0.0)
    missing_columns = np.maximum(columns - joint.sum(axis=0), 0.0)
    total = missing_rows.sum()
    return joint if total <= 0.0 else joint + np.outer(missing_rows, missing_columns / total)


def _at_most_one(wanted: FloatArray, found: FloatArray) -> FloatArray:
    return np.minimum(1.0, np.divide(wanted, found, out=np.ones_like(wanted), where=found > 0.0))
