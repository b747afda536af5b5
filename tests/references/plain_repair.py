"""The repairs once more, entry by entry, as ``docs/evidence/derivations/repairs.md`` states them: slow and without tricks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy import special

Matrix = Any


def ascending(values: Matrix) -> Matrix:
    """The nearest ascending values: the max over starts of the min over ends of means."""
    d = len(values)
    return np.array([max(min(np.mean(values[i : j + 1]) for j in range(k, d)) for i in range(k + 1)) for k in range(d)])


def at_most(values: Matrix, upper: float | None) -> Matrix:
    """The nearest values ≥ 0 with a sum of at most ``upper``, by bisection for what is taken off each."""
    low = 0.0
    if upper is not None and np.maximum(values, 0.0).sum() > upper:
        high = float(np.max(values))
        for _ in range(200):
            middle = (low + high) / 2
            low, high = (middle, high) if np.maximum(values - middle, 0.0).sum() > upper else (low, middle)
    return np.maximum(values - low, 0.0)


def rotation_invariant(eigenvalues: Matrix, noise: Any) -> Matrix:
    """λ − Im[R(g)g]/Im g, with a Gaussian kernel of 1.3 √v d^(−1/3)."""
    v, width = (
        noise.size * noise.cell_variance,
        1.3 * math.sqrt(noise.size * noise.cell_variance) * noise.size ** (-1 / 3),
    )
    found = []
    for value in eigenvalues:
        scores = (value - eigenvalues) / (math.sqrt(2) * width)
        # the integral of the kernel over 1/(z − x), z just below the real line, by the Faddeeva function
        g = np.mean(1j * math.sqrt(math.pi) * np.conj(special.wofz(scores))) / (math.sqrt(2) * width)
        product = v * g * g / ((1 - noise.upper_skew * g) * (1 + noise.lower_skew * g))
        found.append(value - product.imag / g.imag)
    return np.clip(ascending(np.array(found)), eigenvalues[0], eigenvalues[-1])


def trace(noisy: float, deviation: float, upper: float | None, attained: float) -> float:
    nearest = min(max(noisy, 0.0), math.inf if upper is None else upper)
    if upper is None or upper <= 0 or deviation == 0:
        return nearest
    if attained == 0:
        if noisy > 20 * deviation:
            return nearest
        traces = upper * np.exp(np.linspace(math.log(1e-4), 0, 240))
        logs = [-((noisy - t) ** 2) / (2 * deviation**2) for t in traces]
        weights = [math.exp(each - max(logs)) for each in logs]
        return sum(w * t for w, t in zip(weights, traces, strict=True)) / sum(weights)
    density = math.exp(-(((upper - noisy) / deviation) ** 2) / 2) / (math.sqrt(2 * math.pi) * deviation)
    inside = (special.ndtr((upper - noisy) / deviation) - special.ndtr(-noisy / deviation)) / upper
    at, below = attained * density, (1 - attained) * inside
    return nearest if at + below == 0 else (at * upper + below * nearest) / (at + below)


def pooled(deviations: Matrix, energy: float, largest_trace: float) -> Matrix:
    observed = sum(x * x for x in deviations)
    possible = largest_trace**2 * (1 - 1 / len(deviations))
    return deviations if observed == 0 else deviations * min(max(observed - energy, 0), possible) / observed


def bulk_and_outliers(eigenvalues: Matrix, noise: Any, upper: float | None, attained: float) -> Matrix:
    """Averaged over the sizes b of the bulk, from all values down, until what is left weighs less than .001."""
    d, v = len(eigenvalues), noise.size * noise.cell_variance
    alone = rotation_invariant(eigenvalues, noise) if v else eigenvalues
    if v == 0 or d < 2:
        return at_most(ascending(alone), upper)
    deviation = math.sqrt(noise.trace_variance)
    whole = trace(float(sum(eigenvalues)), deviation, upper, attained)
    total, assigned, left = np.zeros(d), 0.0, 1.0
    for b in range(d, 0, -1):
        room = max(whole - sum(max(value, 0.0) for value in alone[b:]), 0.0)
        mean, part = float(np.mean(eigenvalues[:b])), b / d
        cell, dimensions = noise.cell_variance, (b - 1) * (b + 2) / 2
        out = 0.0
        if b > 1:
            within = noise.block(b)
            unit = math.sqrt(b * cell) * b ** (-2 / 3)
            odds = ((eigenvalues[b - 1] - mean - within.edge) / unit - 1.5) / 2
            fits = min(1.0, max(0.0, 2 * (room / within.threshold - 1))) if within.threshold > 0 else 1.0
            out = fits / (1 + math.exp(-odds)) if odds > -700 else 0.0
            assert (within.upper_skew, within.lower_skew) == (noise.upper_skew * part, noise.lower_skew * part)
        weight, left = left * (1 - out), left * out
        if weight > 1e-3:
            estimate = alone.copy()
            if b > 1:
                largest = room + 2 * deviation
                largest = largest if upper is None else min(largest, upper)
                spread = pooled(eigenvalues[:b] - mean, 2 * cell * dimensions, largest)
                local = min(1.0, 2 / dimensions)
                estimate[:b] = [
                    (1 - local) * (room / b + s) + local * a for s, a in zip(spread, alone[:b], strict=True)
                ]
            total += weight * at_most(ascending(estimate), upper)
            assigned += weight
        if left < 1e-3:
            break
    return total / assigned


def with_margins(joint: Matrix, rows: Matrix, columns: Matrix) -> Matrix:
    joint = np.array(joint, dtype=float)
    joint[joint < 0] = 0
    for i in range(len(rows)):
        if joint[i].sum() > rows[i]:
            joint[i] *= rows[i] / joint[i].sum()
    for j in range(len(columns)):
        if joint[:, j].sum() > columns[j]:
            joint[:, j] *= columns[j] / joint[:, j].sum()
    lack_rows, lack_columns = np.maximum(rows - joint.sum(axis=1), 0), np.maximum(columns - joint.sum(axis=0), 0)
    return joint + np.outer(lack_rows, lack_columns) / lack_rows.sum() if lack_rows.sum() > 0 else joint


def possible(covariance: Matrix, levels: Any, *, exact: bool) -> Matrix:
    """Blocks that shares determine; sums over a level, and joint counts, that bounds and counts allow."""
    moved, constraints = np.array(covariance), levels.constraints
    single = [f for f in range(len(levels.is_level)) if not levels.is_level[f]]
    for column in levels.columns:
        for f in single:
            low, high = constraints.lower[f] - levels.mean[f], constraints.upper[f] - levels.mean[f]
            cells = [moved[f, level] for level in column.features]
            if math.isfinite(low) and math.isfinite(high):
                cells = [min(max(c, low * p), high * p) for c, p in zip(cells, column.shares, strict=True)]
                left = -sum(cells)
                room = [high * p - c if left > 0 else c - low * p for c, p in zip(cells, column.shares, strict=True)]
                if sum(room) > 0:
                    cells = [c + left * r / sum(room) for c, r in zip(cells, room, strict=True)]
            else:
                cells = [c - sum(cells) * p for c, p in zip(cells, column.shares, strict=True)]
            for level, cell in zip(column.features, cells, strict=True):
                moved[f, level] = moved[level, f] = cell
    for f in levels.flags:
        for g in levels.flags:
            steps = [constraints.upper[each] - constraints.lower[each] for each in (f, g)]
            p, q = (
                (levels.mean[each] - constraints.lower[each]) / step for each, step in zip((f, g), steps, strict=True)
            )
            unit = steps[0] * steps[1]
            moved[f, g] = min(max(moved[f, g], unit * (max(0, p + q - 1) - p * q)), unit * (min(p, q) - p * q))
    before = moved.copy()
    for a, column in enumerate(levels.columns):
        for other in levels.columns[:a]:
            block = np.ix_(column.features, other.features)
            independent = np.outer(column.shares, other.shares)
            if exact:
                cells = with_margins(moved[block] + independent, column.shares, other.shares) - independent
            else:
                cells = before[block] - np.outer(column.shares, before[block].sum(axis=0))
                cells = np.maximum(cells - np.outer(cells.sum(axis=1), other.shares), -independent)
            moved[block] = cells
            moved[np.ix_(other.features, column.features)] = cells.T
    for column in levels.columns:
        moved[np.ix_(column.features, column.features)] = np.diag(column.shares) - np.outer(
            column.shares, column.shares
        )
    for f in levels.flags:
        moved[f, f] = (levels.mean[f] - constraints.lower[f]) * (constraints.upper[f] - levels.mean[f])
    return moved


def possible_covariance(extended: Matrix, levels: Any) -> Matrix:
    constraints, size = levels.constraints, len(levels.is_level)
    d = constraints.n_features
    largest = (constraints.upper - constraints.lower) / 2
    deviations = np.sqrt(np.maximum(np.diag(extended), 0))
    deviations[:d] = np.minimum(deviations[:d], largest)
    for column in levels.columns:
        deviations[column.features] = np.sqrt(column.shares)
    for f in levels.flags:
        deviations[f] = math.sqrt((levels.mean[f] - constraints.lower[f]) * (constraints.upper[f] - levels.mean[f]))

    def scaled(matrix: Matrix, by: Matrix) -> Matrix:
        return np.array(
            [[matrix[i, j] / (by[i] * by[j]) if by[i] * by[j] else 0.0 for j in range(size)] for i in range(size)]
        )

    # What varies little beside the levels is projected as if it varied by a quarter of their root mean square.
    least = 0.25 * math.sqrt(np.mean([deviations[f] ** 2 for f in range(size) if levels.is_level[f]]))
    wide = np.array([deviations[f] if levels.is_level[f] else max(deviations[f], least) for f in range(size)])
    units, wide_units = np.outer(deviations, deviations), np.outer(wide, wide)
    matrix = scaled(possible(extended, levels, exact=False), wide)
    for _ in range(30):
        values, vectors = np.linalg.eigh(matrix)
        if values[0] >= -1e-3:
            break
        definite = vectors @ np.diag(np.maximum(values, 0)) @ vectors.T
        matrix = scaled(possible(definite * wide_units, levels, exact=False), wide)
    matrix = scaled(possible(matrix * wide_units, levels, exact=True), deviations)
    lack = max(0.0, -np.linalg.eigvalsh(matrix)[0])
    mixed = (1 - lack / (1 + lack)) * matrix * units
    free = [int(f) for f in levels.free]
    for f in free:
        for g in free:
            mixed[f, g] = matrix[f, g] * units[f, g] + (lack / (1 + lack) * deviations[f] ** 2 if f == g else 0)
    for column in levels.columns:
        mixed[np.ix_(column.features, column.features)] = np.diag(column.shares) - np.outer(
            column.shares, column.shares
        )
    for f in levels.flags:
        mixed[f, f] = deviations[f] ** 2
    mixed = mixed[:d, :d]
    for f in free:
        root = math.sqrt(max(mixed[f, f], 0))
        if root > largest[f]:
            mixed[f, :] *= largest[f] / root
            mixed[:, f] *= largest[f] / root
    return mixed


def posterior(cells: Matrix, noise: Matrix, scales: Matrix) -> tuple[Matrix, Matrix]:
    """Empirical Bayes with a mixture of nine normal priors, after 40 steps."""
    spreads = [0.0, 0.01, 0.02, 0.04, 0.08, 0.15, 0.3, 0.5, 0.8]
    used = [i for i in range(len(cells)) if scales[i] > 0]
    means, variances = np.zeros(len(cells)), np.zeros(len(cells))
    if not used:
        return means, variances
    prior = np.array([[(scales[i] * s) ** 2 for s in spreads] for i in used])
    whole = np.array(
        [[max(noise[i] + p, 1e-40 * scales[i] ** 2) for p in row] for i, row in zip(used, prior, strict=True)]
    )
    x = np.array([cells[i] for i in used])[:, None]
    logs = -np.log(whole) / 2 - x**2 / whole / 2
    likelihood = np.exp(logs - logs.max(axis=1, keepdims=True))
    weights = np.full(9, 1 / 9)
    for _ in range(40):
        responsible = likelihood * weights
        weights = (responsible / responsible.sum(axis=1, keepdims=True)).mean(axis=0)
    responsible = likelihood * weights
    responsible /= responsible.sum(axis=1, keepdims=True)
    for row, i in enumerate(used):
        parts = [prior[row, k] / whole[row, k] for k in range(9)]
        mean = sum(responsible[row, k] * parts[k] * cells[i] for k in range(9))
        second = sum(responsible[row, k] * (parts[k] * noise[i] + (parts[k] * cells[i]) ** 2) for k in range(9))
        means[i], variances[i] = mean, max(second - mean**2, 0.0)
    return means, variances


def second_moment(gram: Matrix, count: float | None, constraints: Any, project: Any) -> Matrix:
    """``possible_second_moment``, with the projection of shares given."""
    d = constraints.n_features
    block_of = {f: b for b in constraints.blocks for f in range(b.start, b.stop)}
    diagonal = np.maximum(np.diag(gram), 0.0)
    if count is not None:
        for block in constraints.blocks:
            diagonal[block.features] = count * project(diagonal[block.features] / count, complete=block.complete)

    def ends(i: int, j: int) -> tuple[float, float]:
        if diagonal[i] == 0 or diagonal[j] == 0:
            return 0.0, 0.0
        if i == j:
            return diagonal[i], diagonal[i] if i in block_of else math.inf
        if i in block_of and block_of[i] is block_of.get(j):
            return 0.0, 0.0
        low, high = -math.inf, math.inf
        for feature, level in ((i, j), (j, i)):
            if level in block_of:
                low = max(low, constraints.lower[feature] * diagonal[level])
                high = min(high, constraints.upper[feature] * diagonal[level])
        return low, high

    def clipped(matrix: Matrix) -> Matrix:
        return np.array([[min(max(matrix[i, j], ends(i, j)[0]), ends(i, j)[1]) for j in range(d)] for i in range(d)])

    roots = np.array([math.sqrt(each) if each > 0 else 1.0 for each in diagonal])
    units, found = np.outer(roots, roots), clipped(gram)
    for _ in range(30):
        values, vectors = np.linalg.eigh(found / units)
        if values[0] >= -1e-4:
            break
        found = clipped(vectors @ np.diag(np.maximum(values, 0)) @ vectors.T * units)
    lack = max(0.0, -np.linalg.eigvalsh(found / units)[0])
    mixed = found / (1 + lack)
    for i in constraints.free:
        for j in constraints.free:
            mixed[i, j] = found[i, j]
    for i in range(d):
        mixed[i, i] = diagonal[i] if i in block_of else (1 + lack / (1 + lack)) * found[i, i]
    return mixed
