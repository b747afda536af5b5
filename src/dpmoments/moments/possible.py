"""The repair: moments of a possible table near noisy ones.

See ``docs/evidence/derivations/repairs.md``. Units are the columns'.
During the repair all columns with levels are complete: one whose rows may have no level gets
the feature "no level".

1. Means within bounds; shares of levels, by their sums and squares, on the simplex.
2. What means determine: diag(p) − ppᵀ of a column's levels, and the variance of a Boolean. Variances of numbers are posterior.
3. A covariance of two columns is its posterior mean, with one prior for each pair of kinds. That of two numbers or Booleans is
   joined with the spectral repair of all features in coordinates of equal noise.
4. The nearest possible covariance (:func:`nearest_possible`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from dpmoments.base.values import FloatArray, IntegerArray
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.spectral import SpectralNoise, bulk_and_outlier_eigenvalues, on_simplex
from dpmoments.schema.constraints import Constraints

# Posterior moments of many noisy numbers under a prior that fits all of them.
#
# Numbers of one kind (the correlations of two kinds of columns, the variances of numbers) have a common prior, a mixture whose
# weights are found by expectation maximization. What noise hides moves to what the others show; what is clear stays.

_SPREADS = np.array([0.0, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.5, 0.8])
"""SDs of the normal distributions that the prior of a correlation mixes."""
_STEPS = 40
_FOUND, _CLEAR = 6.0, 8.0
"""Noise SDs above 0 up to which a variance is its posterior, and from which it is unchanged."""
_SIZES = np.exp(np.linspace(np.log(1e-4), 0.0, 34))
"""Grid of variances, as shares of the largest possible one."""
_ALIKE = 20.0
"""Variances that the prior counts as seen evenly over the grid: wide with few columns."""
_FRACTIONS = 6.0
"""Noise SDs by which a Boolean's variance falls short if it surely holds fractions."""


def posterior_mean(values: FloatArray, variances: FloatArray, scales: FloatArray) -> FloatArray:
    """Return E[θ | values], values ~ N(θ, variances).

    θ is the scale times a draw from one mixture of normals about 0.
    """
    prior = (scales[:, None] * _SPREADS) ** 2
    total = np.maximum(variances[:, None] + prior, 1e-300)
    weights, likelihood = _fitted(-0.5 * (np.log(total) + values[:, None] ** 2 / total), 0.0)
    posterior = likelihood * weights / (likelihood @ weights)[:, None]
    return np.asarray((posterior * prior / total).sum(axis=1) * values)


def posterior_variance(values: FloatArray, noise: FloatArray, largest: FloatArray) -> FloatArray:
    """Return √E[v² | values] of variances v in (0, largest], values ~ N(v, noise²).

    The root mean square rather than the mean: a scale that is too small costs more than one that is too large.
    """
    if not len(values):
        return values
    sizes = largest[:, None] * _SIZES
    deviations = np.maximum(noise, 1e-300)[:, None]
    weights, likelihood = _fitted(-0.5 * ((values[:, None] - sizes) / deviations) ** 2, _ALIKE)
    posterior = likelihood * weights / (likelihood @ weights)[:, None]
    found = np.sqrt((posterior * sizes**2).sum(axis=1))
    clear = np.clip((values / deviations[:, 0] - _FOUND) / (_CLEAR - _FOUND), 0.0, 1.0)
    return np.asarray(found + clear * (np.minimum(values, largest) - found))


def surety_of_fractions(lacking: FloatArray, noise: FloatArray) -> FloatArray:
    """Return how surely Booleans hold fractions: 0 to 1, by the lack of their variances.

    ``lacking`` is p(1 − p) less the variance and what clipping or rounding may take, ``noise`` its SD. The result is 0 up
    to 3 SDs, and 1 from 6 SDs.
    """
    return np.asarray(np.clip(2.0 * (lacking / (_FRACTIONS * noise + 1e-9)) - 1.0, 0.0, 1.0))


def _fitted(logarithms: FloatArray, alike: float) -> tuple[FloatArray, FloatArray]:
    """Return the mixture's weights and likelihoods, (n, components), each row up to a factor."""
    likelihood = np.exp(logarithms - logarithms.max(axis=1, keepdims=True))
    n, m = likelihood.shape
    weights = np.full(m, 1.0 / m)
    for _ in range(_STEPS):
        weights = (weights * (likelihood.T @ (1.0 / (likelihood @ weights))) + alike / m) / (n + alike)
    return weights, likelihood


# The repair: moments of a possible table near noisy ones.

_HALF = 20.0
"""Number of singles at which the spectral repair has half the weight of the two …"""
_TURN = 0.15
"""… if the noise of a correlation is far below this."""
_LARGEST = 32.0
"""Least upper end of the prior of a number's variance, in noise SDs of a covariance."""
_MOVED, _ROUNDED = 0.5, 1e-4
"""Largest part of a Boolean's squares that clipping, or rounding, may take."""
_NUMBER, _FLAG, _LEVEL = 1, 2, 3
"""Kinds of features; the product identifies a pair of kinds."""


@dataclass(frozen=True, eq=False)
class _Features:
    """The D features: a schema's, then "no level" of each incomplete column of levels."""

    extension: FloatArray  # (D, d), the map from the schema's features less their means
    kind: IntegerArray  # (D,)
    column: IntegerArray  # (D,), the first feature of the column
    blocks: tuple[IntegerArray, ...]  # features of each column of levels
    lower: FloatArray  # (D,), with `upper`: bounds
    upper: FloatArray

    @classmethod
    def of(cls, constraints: Constraints) -> _Features:
        d, hidden = constraints.n_features, [block for block in constraints.blocks if not block.complete]
        size = d + len(hidden)
        kind, column, extension = np.full(size, _NUMBER), np.arange(size), np.eye(size, d)
        kind[list(constraints.flags)] = _FLAG
        blocks = []
        for block in constraints.blocks:
            features = np.arange(block.start, block.stop)
            if not block.complete:
                features = np.append(features, d + hidden.index(block))
                extension[features[-1], block.features] = -1.0
            kind[features], column[features] = _LEVEL, block.start
            extension[features] -= extension[features].mean(axis=0)
            blocks.append(features)
        lower, upper = np.append(constraints.lower, np.zeros(size - d)), np.append(constraints.upper, np.ones(size - d))
        return cls(extension, kind, column, tuple(blocks), lower, upper)

    def means(self, mean: FloatArray) -> FloatArray:
        """Return means of all D, in which the shares of each column add up to 1."""
        result = np.append(mean, np.zeros(len(self.kind) - len(mean)))
        for features in self.blocks:
            if features[-1] >= len(mean):
                result[features[-1]] = max(1.0 - float(result[features].sum()), 0.0)
        return result


def possible_moments(
    count: float,
    total: FloatArray,
    gram: FloatArray,
    law: NoiseLaw | None,
    constraints: Constraints,
    center: FloatArray,
) -> tuple[FloatArray, FloatArray]:
    """Return mean and Gram matrix about the center, in encoded units.

    Without known noise only what is impossible is moved.
    """
    units, d, features = constraints.units, constraints.n_features, _Features.of(constraints)
    square, middle = gram / count * np.outer(units, units), center * units
    mean = _possible_mean(middle + total * units / count, np.diag(square), middle, law, constraints)
    about, extension, means = mean - middle, features.extension, features.means(mean)
    raw = extension @ (square - np.outer(about, about)) @ extension.T
    noise = np.zeros_like(raw)
    if law is not None:  # to first order that of the covariance
        carried = np.eye(len(raw) + 1, d + 1)
        carried[1:, 0], carried[1:, 1:] = -extension @ about, extension * units
        law = law.carried(carried)
        noise = law.cell_variances()[1:, 1:] / count**2
    known = _independent(raw, means, noise, features, _MOVED if center.any() else _ROUNDED)
    if constraints.row_norm is not None and not constraints.counts:  # E‖x‖² ≤ 1
        room, used = max(1.0 - float(np.sum((mean / units) ** 2)), 0.0), float(np.sum(np.diag(known) / units**2))
        known *= min(1.0, room / used) if used > 0.0 else 1.0
    estimate = np.where(features.column[:, None] == features.column, known, raw)
    if law is not None:
        estimate = _shrunk(estimate, count, noise, law, features)
    covariance = nearest_possible(estimate, known, means, np.sqrt(np.diag(noise) / 2.0), features)[:d, :d]
    return about / units, count * (covariance + np.outer(about, about)) / np.outer(units, units)


def _possible_mean(
    noisy: FloatArray, squares: FloatArray, middle: FloatArray, law: NoiseLaw | None, constraints: Constraints
) -> FloatArray:
    """Return means within bounds; shares of levels by their sums and squares about the middle."""
    units, mean = constraints.units, noisy.copy()
    for block in constraints.blocks:
        at, shares = block.features, mean[block.features]
        if law is not None:
            # E(u − c)² = c² + p(1 − 2c): the diagonal of the block is a second answer for its shares
            slope = 1.0 - 2.0 * middle[at]
            tells = np.abs(slope) > 1e-9
            slope[~tells] = 1.0
            other = (squares[at] - middle[at] ** 2) / slope
            of_sum, of_square = np.zeros((2, block.size, 2, 2))
            of_sum[:, 0, 1] = of_sum[:, 1, 0] = units[at] / 2.0
            of_square[:, 1, 1] = units[at] ** 2 / slope
            pairs = np.stack([np.zeros(block.size, dtype=np.intp), np.arange(block.start, block.stop) + 1], axis=1)
            first, second, apart = (law.variance(pairs, each) for each in (of_sum, of_square, of_square - of_sum))
            trust = np.clip((first + apart - second) / np.maximum(2.0 * apart, 1e-9 * first + 1e-300), 0.0, 1.0)
            if block.complete:
                shares, other = (each + (1.0 - each.sum()) / block.size for each in (shares, other))
            shares = np.where(tells, (1.0 - trust) * shares + trust * other, shares)
        positive = np.maximum(shares, 0.0)
        mean[at] = on_simplex(shares, 1.0) if block.complete or positive.sum() > 1.0 else positive
    mean = np.clip(mean, constraints.lower, constraints.upper)
    if constraints.row_norm is not None and not constraints.counts:
        mean = mean / max(1.0, float(np.linalg.norm(mean / units)))
    return np.asarray(mean)


def _independent(
    raw: FloatArray, means: FloatArray, noise: FloatArray, features: _Features, taken: float
) -> FloatArray:
    """Return the covariance of independent columns: blocks of levels, variances within bounds."""
    observed, deviations = np.diag(raw), np.sqrt(np.diag(noise))
    most = np.maximum((features.upper - means) * (means - features.lower), 0.0)
    found, seen = np.maximum(observed, 0.0), (features.kind == _NUMBER) & (deviations > 0.0)
    unit = deviations[seen] / math.sqrt(2.0)
    signal, one = observed[seen] / unit, np.full(len(unit), math.sqrt(2.0))
    found[seen] = posterior_variance(signal, one, np.maximum(signal, _LARGEST)) * unit
    known, flags = np.diag(np.minimum(found, most)), np.flatnonzero(features.kind == _FLAG)
    short = most[flags] - known[flags, flags]  # Booleans that hold no fractions have all there is
    fractions = surety_of_fractions(np.minimum(short - taken, found[flags]), deviations[flags])
    known[flags, flags] = most[flags] - short * fractions
    for block in features.blocks:
        known[np.ix_(block, block)] = np.diag(means[block]) - np.outer(means[block], means[block])
    return known


def _shrunk(raw: FloatArray, count: float, noise: FloatArray, law: NoiseLaw, features: _Features) -> FloatArray:
    """Return posterior means of the covariances of two columns."""
    # Covariances of two singles are joined with the spectral repair.
    kind, variances, single = features.kind, np.maximum(np.diag(raw), 0.0), features.kind != _LEVEL
    i, j = np.nonzero(np.triu(features.column[:, None] != features.column, 1))
    result, entries, scales, kinds = raw.copy(), raw[i, j], np.sqrt(variances[i] * variances[j]), kind[i] * kind[j]
    for pair in np.unique(kinds):
        at = kinds == pair
        entries[at] = posterior_mean(entries[at], noise[i, j][at], scales[at])
    if single.sum() > 1:
        relative = np.diag(noise)[single] / (2.0 * np.maximum(variances[single], 1e-12) ** 2)
        of_correlation = math.exp(float(np.log(np.maximum(relative, 1e-300)).mean()) / 2.0)
        weight = single.sum() / (single.sum() + _HALF) / (1.0 + (of_correlation / _TURN) ** 2)
        spectral = _spectral(raw, count, law, features)[i, j]
        entries = np.where(single[i] & single[j], (1.0 - weight) * entries + weight * spectral, entries)
    result[i, j] = result[j, i] = entries
    for block in features.blocks:  # covariances with a column's levels add up to 0
        result[block] -= result[block].mean(axis=0)
        result[:, block] -= result[:, block].mean(axis=1, keepdims=True)
    return result


def _spectral(covariance: FloatArray, count: float, law: NoiseLaw, features: _Features) -> FloatArray:
    """Return the covariance after the spectral repair, in coordinates of equal noise."""
    # These are singles, and contrasts of levels.
    rows = [np.eye(len(covariance))[features.kind != _LEVEL]]
    for block in features.blocks:
        j, k = np.arange(1.0, len(block))[:, None], len(block)
        rows.append(np.zeros((k - 1, len(covariance))))
        rows[-1][:, block] = (np.tri(k - 1, k) - j * np.eye(k - 1, k, 1)) / np.sqrt(j * (j + 1.0))
    size = 1 + sum(map(len, rows))
    to_equal = np.eye(size, len(covariance) + 1)
    to_equal[1:, 1:] = np.vstack(rows)
    of_squares = law.carried(to_equal).variance(np.arange(1, size)[:, None], np.ones((size - 1, 1, 1)))
    if not of_squares.any():
        return covariance
    to_equal[1:] /= np.maximum(of_squares, 1e-12 * of_squares.max())[:, None] ** 0.25
    forth = to_equal[1:, 1:]
    back = np.linalg.pinv(forth)
    eigenvalues, vectors = np.linalg.eigh(forth @ covariance @ forth.T)
    spectral = SpectralNoise.of(law.carried(to_equal))
    repaired = bulk_and_outlier_eigenvalues(eigenvalues * count, spectral, None) / count
    return np.asarray(back @ (vectors * repaired) @ vectors.T @ back.T)


def nearest_possible(
    covariance: FloatArray, known: FloatArray, means: FloatArray, noise: FloatArray, features: _Features
) -> FloatArray:
    """Return a possible covariance near this one, with the blocks of ``known``.

    ``known`` has independent columns.
    The result is positive semi-definite, joint counts of levels are not negative and have their margins, and means over the rows
    of a level are within bounds: projected on the possible counts, on the definite matrices (in units of variance plus noise, and
    scaled back to the known blocks), and on the counts again, of which the mixture (Σ + λ·known)/(1 + λ) is definite; −λ is the
    smallest eigenvalue of Σ in units in which the known blocks are projectors.
    """
    single, variances = features.kind != _LEVEL, np.diag(known)
    roots = np.sqrt(np.where(single, variances, means))
    factor = np.divide(1.0, roots, out=np.zeros_like(roots), where=roots > 0.0)
    columns = (*(np.array([i]) for i in np.flatnonzero(single)), *features.blocks)
    slack = np.ones_like(roots)
    for column in columns:
        added, own = float(noise[column].sum()), float(variances[column].sum())
        slack[column] = math.sqrt(1.0 + added / max(own, 1e-200 * added, 1e-300))  # a variance may be 0
    covariance = _with_possible_counts(covariance, known, means, features)
    eigenvalues, vectors = np.linalg.eigh(covariance * np.outer(factor / slack, factor / slack))
    definite = (vectors * np.maximum(eigenvalues, 0.0)) @ vectors.T * np.outer(slack, slack)
    back = np.zeros_like(definite)
    for column in columns:  # its block is a projector, or 1, plus what was added to it
        sizes, axes = np.linalg.eigh(definite[np.ix_(column, column)])
        back[np.ix_(column, column)] = (axes * np.where(sizes > 0.5, np.maximum(sizes, 0.5) ** -0.5, 0.0)) @ axes.T
    covariance = back @ definite @ back.T * np.outer(roots, roots)
    covariance = _with_possible_counts(covariance, known, means, features)
    lack = max(0.0, -float(np.linalg.eigvalsh(covariance * np.outer(factor, factor))[0]))
    return np.asarray((covariance + covariance.T + 2.0 * lack * known) / (2.0 + 2.0 * lack))


def _with_possible_counts(
    covariance: FloatArray, known: FloatArray, means: FloatArray, features: _Features
) -> FloatArray:
    """Return a near covariance with the known blocks and possible counts of bounded features."""
    # A number in [l, u] is as two levels with shares (m − l)/(u − l) and (u − m)/(u − l): that their joint counts are not
    # negative is E(x − l)(y − l) ≥ 0, E(x − l)(u − y) ≥ 0, … Margins by Altschuler, Weed & Rigollet (2017, algorithm 2).
    width = features.upper - features.lower
    bounded = np.flatnonzero(np.isfinite(width) & (width > 0.0))
    halves = bounded[features.kind[bounded] != _LEVEL]
    index = np.concatenate([bounded, halves])
    scale = np.concatenate([1.0 / width[bounded], -1.0 / width[halves]])
    shares = np.maximum((means[index] - np.append(features.lower[bounded], features.upper[halves])) * scale, 0.0)
    _, which = np.unique(features.column[index], return_inverse=True)
    member = np.eye(len(means))[which]  # levels by column
    joint = np.maximum(covariance[np.ix_(index, index)] * np.outer(scale, scale) + np.outer(shares, shares), 0.0)
    joint *= _at_most_one(shares[:, None], joint @ member)[:, which]
    joint *= _at_most_one(shares[:, None], joint.T @ member)[:, which].T
    rows, columns = (np.maximum(shares[:, None] - each @ member, 0.0) for each in (joint, joint.T))
    lacking = member.T @ rows
    share = np.divide(1.0, lacking, out=np.zeros_like(lacking), where=lacking > 0.0)
    joint += rows[:, which] * columns.T[which] * share[np.ix_(which, which)]
    moved = ((joint + joint.T) / 2.0 - np.outer(shares, shares)) / np.outer(scale, scale)
    result, k = covariance.copy(), len(bounded)
    result[np.ix_(bounded, bounded)] = moved[:k, :k]
    return np.where(features.column[:, None] == features.column, known, result)


def _at_most_one(wanted: FloatArray, actual: FloatArray) -> FloatArray:
    return np.minimum(1.0, np.divide(wanted, actual, out=np.ones_like(actual), where=actual > 0.0))
