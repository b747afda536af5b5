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


def pooled(deviations: Matrix, energy: float, largest_trace: float) -> Matrix:
    observed = sum(x * x for x in deviations)
    possible = largest_trace**2 * (1 - 1 / len(deviations))
    return deviations if observed == 0 else deviations * min(max(observed - energy, 0), possible) / observed


def bulk_and_outliers(eigenvalues: Matrix, noise: Any, upper: float | None) -> Matrix:
    """Averaged over the sizes b of the bulk, from all values down, until what is left weighs less than .001."""
    d, v = len(eigenvalues), noise.size * noise.cell_variance
    alone = rotation_invariant(eigenvalues, noise) if v else eigenvalues
    if v == 0 or d < 2:
        return at_most(ascending(alone), upper)
    deviation = math.sqrt(noise.trace_variance)
    whole = min(max(float(sum(eigenvalues)), 0.0), math.inf if upper is None else upper)
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


def possible_counts(joint: Matrix, rows: Matrix, columns: Matrix) -> Matrix:
    """Shares ≥ 0 with these margins near given ones: rows scaled down, then columns, and what lacks as if independent."""
    found = np.maximum(joint, 0.0)
    for i, share in enumerate(rows):
        found[i] *= min(1.0, share / found[i].sum()) if found[i].sum() > 0 else 1.0
    for j, share in enumerate(columns):
        found[:, j] *= min(1.0, share / found[:, j].sum()) if found[:, j].sum() > 0 else 1.0
    lacking = rows - found.sum(axis=1), columns - found.sum(axis=0)
    total = lacking[0].sum()
    return found + np.outer(*lacking) / total if total > 1e-15 else found


def posterior(values: Matrix, variances: Matrix, scales: Matrix, spreads: Matrix) -> Matrix:
    """E[θ | values] for θ ~ scale·Σ π_k N(0, spread_k²), π after forty steps of expectation maximization."""
    weights = np.full(len(spreads), 1.0 / len(spreads))

    def density(value: float, variance: float) -> float:
        return math.exp(-(value**2) / (2 * variance)) / math.sqrt(variance)

    def shares(value: float, variance: float, scale: float) -> Matrix:
        each = np.array(
            [w * density(value, variance + (scale * s) ** 2) for w, s in zip(weights, spreads, strict=True)]
        )
        return each / each.sum()

    numbers = list(zip(values, variances, scales, strict=True))
    for _ in range(40):
        weights = np.mean([shares(*number) for number in numbers], axis=0)
    kept = [[(c * s) ** 2 / (v + (c * s) ** 2) for s in spreads] for _, v, c in numbers]
    return np.array([x * (shares(x, v, c) @ k) for (x, v, c), k in zip(numbers, kept, strict=True)])
