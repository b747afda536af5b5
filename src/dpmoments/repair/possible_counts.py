"""The last step of the structured repair: a covariance near a given one that no count, mean or correlation contradicts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.repair.levels import CompletedLevels, LevelColumn

__all__ = ["possible_covariance"]


ROUNDS = 30
"""Alternating projections at most; what they leave undone costs a share λ/(1 + λ) of all dependence."""
NEGLIGIBLE = 1e-3
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
    levels : CompletedLevels

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
    for _ in range(ROUNDS):
        eigenvalues, eigenvectors = np.linalg.eigh(scaled)
        if eigenvalues[0] >= -NEGLIGIBLE:
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
        """With the known blocks as they are, and cells moved to what counts and bounds allow.

        Without ``exact`` the cells of two categorical columns are made to add up, and then to be possible, which they need not
        be both.
        """
        columns = self.levels.columns
        moved = covariance.copy()
        single = self.levels.single
        for column in columns:
            cells = self._within_levels(moved[np.ix_(single, column.features)], column)
            moved[np.ix_(single, column.features)] = cells
            moved[np.ix_(column.features, single)] = cells.T
        self._bound_flags(moved)
        if exact:
            for place, column in enumerate(columns):
                for other in columns[:place]:
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
        """(1 − t)·Σ̂ + t·(columns independent), of the features alone.

        Variances that are not known grow by the share t, and covariances among such features stay.
        """
        free = np.ix_(self.levels.free, self.levels.free)
        mixed = self.levels.with_known_blocks(self.unscaled((1.0 - share) * scaled))
        mixed[free] = self.unscaled(scaled)[free] + share * np.diag(self.deviations[self.levels.free] ** 2)
        d = len(self.largest)
        mixed = mixed[:d, :d]
        found = np.sqrt(np.maximum(np.diag(mixed), 0.0))
        too_large = found > self.largest
        held = np.where(too_large, self.largest / np.where(too_large, found, 1.0), 1.0)
        held[~np.isin(np.arange(d), self.levels.free)] = 1.0
        mixed = mixed * np.outer(held, held)
        return np.asarray((mixed + mixed.T) / 2.0)

    def _within_levels(self, cells: FloatArray, column: LevelColumn) -> FloatArray:
        """Cells of single features and a column's levels, moved to where the mean over each level's rows is within bounds.

        That mean is m + C_l/p_l, and Σ_l C_l = 0, since the rows of all levels are all rows.
        """
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
    """Non-negative shares with the given margins, near to given ones (Altschuler, Weed & Rigollet 2017, algorithm 2).

    Negative shares become 0, rows and columns that add up to too much are scaled down, and what is then missing is spread as
    independence would.
    """
    joint = np.maximum(joint, 0.0)
    joint = joint * _at_most_one(rows, joint.sum(axis=1))[:, None]
    joint = joint * _at_most_one(columns, joint.sum(axis=0))[None, :]
    missing_rows = np.maximum(rows - joint.sum(axis=1), 0.0)
    missing_columns = np.maximum(columns - joint.sum(axis=0), 0.0)
    total = missing_rows.sum()
    return joint if total <= 0.0 else joint + np.outer(missing_rows, missing_columns / total)


def _at_most_one(wanted: FloatArray, found: FloatArray) -> FloatArray:
    return np.minimum(1.0, np.divide(wanted, found, out=np.ones_like(wanted), where=found > 0.0))
