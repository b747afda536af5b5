"""Possible means and covariances of categorical levels and Boolean columns.

A column that may have rows without a level is completed by a feature "no level", so that its shares add up to 1.
Derivation: ``docs/evidence/derivations/repairs.md``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.schema.constraints import Constraints

IndexArray = npt.NDArray[np.intp]


@dataclass(frozen=True, slots=True, eq=False)
class LevelShares:
    """Feature indices of a column's levels ("no level" last) and their shares, with sum 1."""

    features: IndexArray
    shares: FloatArray


@dataclass(frozen=True, slots=True, eq=False)
class CompletedLevels:
    """Features of a schema, followed by "no level" of every incomplete block.

    ``mean`` must be possible; ``flags`` are the Boolean columns with exactly two values, ``free`` the features that are neither
    levels nor flags.
    """

    constraints: Constraints
    mean: FloatArray
    columns: tuple[LevelShares, ...]
    is_level: BoolArray
    flags: IndexArray
    free: IndexArray

    @classmethod
    def of(cls, constraints: Constraints, mean: FloatArray) -> CompletedLevels:
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
            columns.append(LevelShares(features, shares))
        flags = np.array(constraints.flags, dtype=np.intp)
        free = ~is_level
        free[flags] = False
        return cls(constraints, mean, tuple(columns), is_level, flags, np.flatnonzero(free))

    @property
    def single(self) -> IndexArray:
        """Indices of the features that are not levels."""
        return np.flatnonzero(~self.is_level)

    @property
    def hidden(self) -> tuple[LevelShares, ...]:
        """Columns with a "no level"."""
        d = self.constraints.n_features
        return tuple(column for column in self.columns if column.features[-1] >= d)

    def extended(self, covariance: FloatArray) -> FloatArray:
        """Return the covariance with "no level" included (minus the sums over the levels)."""
        extension = self._extension
        return np.asarray(extension @ covariance @ extension.T)

    def extended_variances(self, variances: FloatArray) -> FloatArray:
        """Return variances of independent cells, extended by those of their sums over levels."""
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
        """Return a copy with the blocks that shares determine."""
        # diag(p) − ppᵀ, and p(1 − p) for a flag.
        known = covariance.copy()
        for column in self.columns:
            own = np.ix_(column.features, column.features)
            known[own] = np.diag(column.shares) - np.outer(column.shares, column.shares)
        known[self.flags, self.flags] = self.flag_variances
        return known

    @property
    def flag_variances(self) -> FloatArray:
        """Variances (m − lower)(upper − m) of the two-valued columns."""
        mean = self.mean[self.flags]
        lower, upper = self.constraints.lower[self.flags], self.constraints.upper[self.flags]
        return np.asarray((mean - lower) * (upper - mean))


def possible_mean(mean: FloatArray, constraints: Constraints) -> FloatArray:
    """Return the nearest possible mean: within bounds, shares of levels adding up to 1."""
    possible = np.clip(mean, constraints.lower, constraints.upper)
    for block in constraints.blocks:
        possible[block.features] = level_shares(mean[block.features], complete=block.complete)
    return np.asarray(possible)


def level_shares(shares: FloatArray, *, complete: bool) -> FloatArray:
    """Project shares of levels onto the simplex (sum at most 1 if the block is not complete)."""
    positive: FloatArray = np.maximum(shares, 0.0)
    if not complete and positive.sum() <= 1.0:
        return positive
    descending = np.sort(shares)[::-1]
    excess = (np.cumsum(descending) - 1.0) / np.arange(1, len(shares) + 1)
    kept = np.flatnonzero(descending > excess)
    nearest = np.maximum(shares - excess[kept[-1] if len(kept) else 0], 0.0)
    total = float(
        nearest.sum()
    )  # 1 but for rounding, which large numbers leave much of, and all is left of the largest
    largest = shares == shares.max()
    return np.asarray(nearest / total if total > 0.0 else largest / largest.sum())


# The last step of the structured repair: a covariance near a given one that no count, mean or correlation contradicts.

_ROUNDS = 30
"""Maximum number of projections; an unfinished search shrinks dependence by λ/(1 + λ)."""
_NEGLIGIBLE = 1e-3
"""Negative eigenvalues of a correlation matrix below this size are left to the mixture."""
_LEAST_DEVIATION = 0.25
"""Least standard deviation of a number in projections.

It is a fraction of the root mean square of those of levels.
"""


def possible_covariance(extended: FloatArray, levels: CompletedLevels) -> FloatArray:
    """Return a covariance that counts, means, correlations and definiteness allow, shape (d, d).

    The result is positive semi-definite; Boolean columns and levels have variance p(1 − p), two levels of a column covariance
    −p_l p_m; joint counts of levels and flags are at least 0 and add up to their margins; each feature's mean over the rows of
    a level is within the feature's bounds. Computed by alternating projections (Higham 2002), which end on the possible counts,
    and the mixture (1 − t)·Σ̂ + t·(independent columns), t = λ/(1 + λ), where −λ is the smallest eigenvalue: independence also
    has possible counts (``docs/evidence/derivations/repairs.md``).
    """
    cells = _Cells.of(extended, levels)
    metric = cells.with_narrow_features_enlarged()
    scaled = metric.scaled(metric.possible(extended, exact=False))
    for _ in range(_ROUNDS):
        eigenvalues, eigenvectors = np.linalg.eigh(scaled)
        if eigenvalues[0] >= -_NEGLIGIBLE:
            break
        definite = (eigenvectors * np.maximum(eigenvalues, 0.0)) @ eigenvectors.T
        scaled = metric.scaled(metric.possible(metric.unscaled(definite), exact=False))
    scaled = cells.scaled(cells.possible(metric.unscaled(scaled), exact=True))
    lack = max(0.0, -float(np.linalg.eigvalsh(scaled)[0]))
    return cells.mixed(scaled, lack / (1.0 + lack))


@dataclass(frozen=True, slots=True, eq=False)
class _Cells:
    """Limits on the entries of a covariance with known means and shares of levels."""

    levels: CompletedLevels
    deviations: FloatArray
    largest: FloatArray

    @classmethod
    def of(cls, extended: FloatArray, levels: CompletedLevels) -> _Cells:
        """Scale a level by √p, and every other feature by its standard deviation."""
        largest = (levels.constraints.upper - levels.constraints.lower) / 2.0  # no bounded variable deviates more
        deviations = np.sqrt(np.maximum(np.diag(extended), 0.0))
        deviations[: len(largest)] = np.minimum(deviations[: len(largest)], largest)
        for column in levels.columns:
            deviations[column.features] = np.sqrt(column.shares)
        deviations[levels.flags] = np.sqrt(levels.flag_variances)
        return cls(levels, deviations, largest)

    def with_narrow_features_enlarged(self) -> _Cells:
        """Return the cells with enlarged deviations of narrow numbers, as units of projections."""
        # Noise is alike in all column units: in its own scale a number that varies little is nearly all noise, which a
        # projection would move into the entries of levels.
        if not self.levels.is_level.any():
            return self
        least = _LEAST_DEVIATION * math.sqrt(float(np.mean(self.deviations[self.levels.is_level] ** 2)))
        wide = np.where(self.levels.is_level, self.deviations, np.maximum(self.deviations, least))
        return replace(self, deviations=wide)

    def scaled(self, covariance: FloatArray) -> FloatArray:
        """Scale a covariance; constant features get zeros."""
        deviates = self.deviations > 0.0
        factor = np.where(deviates, 1.0 / np.where(deviates, self.deviations, 1.0), 0.0)
        return np.asarray(covariance * np.outer(factor, factor))

    def unscaled(self, scaled: FloatArray) -> FloatArray:
        return np.asarray(scaled * np.outer(self.deviations, self.deviations))

    def possible(self, covariance: FloatArray, *, exact: bool) -> FloatArray:
        """Set known blocks, and clip the other entries to what counts and bounds allow."""
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
        """Return (1 − share)·Σ̂ + share·(independent columns), without "no level"."""
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

    def _within_levels(self, cells: FloatArray, column: LevelShares) -> FloatArray:
        """Clip covariances with a column's levels so that each level's mean is within bounds."""
        single, constraints = self.levels.single, self.levels.constraints
        mean = self.levels.mean[single]
        lower, upper = constraints.lower[single] - mean, constraints.upper[single] - mean
        bounded = np.isfinite(lower) & np.isfinite(upper)
        centered = cells - np.outer(cells.sum(axis=1), column.shares)
        least = np.outer(np.where(bounded, lower, 0.0), column.shares)
        most = np.outer(np.where(bounded, upper, 0.0), column.shares)
        clipped = np.clip(cells, least, most)
        left = -clipped.sum(axis=1, keepdims=True)
        room = np.where(left > 0.0, most - clipped, clipped - least)
        total = room.sum(axis=1, keepdims=True)
        share = np.divide(left, total, out=np.zeros_like(left), where=total > 0.0)
        return np.where(bounded[:, None], np.clip(clipped + share * room, least, most), centered)

    def _bound_flags(self, moved: FloatArray) -> None:
        """Clip joint counts of two flags to Fréchet's bounds max(0, p + q − 1) and min(p, q)."""
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
    """Return nonnegative shares with given margins (Altschuler et al. 2017, algorithm 2)."""
    joint = np.maximum(joint, 0.0)
    joint = joint * _at_most_one(rows, joint.sum(axis=1))[:, None]
    joint = joint * _at_most_one(columns, joint.sum(axis=0))[None, :]
    missing_rows = np.maximum(rows - joint.sum(axis=1), 0.0)
    missing_columns = np.maximum(columns - joint.sum(axis=0), 0.0)
    total = missing_rows.sum()
    return joint if total <= 0.0 else joint + np.outer(missing_rows, missing_columns / total)


def _at_most_one(wanted: FloatArray, actual: FloatArray) -> FloatArray:
    return np.minimum(1.0, np.divide(wanted, actual, out=np.ones_like(wanted), where=actual > 0.0))
