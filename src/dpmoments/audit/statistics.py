"""Statistics of outputs, learned scores, and lower bounds on ε from event counts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.foundation.arrays import FloatArray

Record = dict[str, float]

_MAX = 1e300
_N_BINS = 24
_TAILS = 0.005
_RIDGE = 1e-3


def raw_statistics(
    records: Sequence[Record], names: tuple[str, ...], first: FloatArray, second: FloatArray
) -> tuple[FloatArray, tuple[str, ...]]:
    """Return every number of N outputs, and functions of the noisy Gram matrices, shape (N, S).

    A number that a record lacks counts as smaller than any number; ``first`` and ``second`` are the exact Gram
    matrices.
    """
    values = np.array([[record.get(name, -np.inf) for name in names] for record in records], dtype=np.float64)
    values = values.reshape(len(records), len(names))
    made = _gram_statistics(noisy_grams(records, len(first)), first, second)
    together = np.column_stack([values, *made.values()])
    return np.nan_to_num(together, nan=-_MAX, posinf=_MAX, neginf=-_MAX), (*names, *made)


def noisy_grams(records: Sequence[Record], n_features: int) -> FloatArray:
    """Return the released Gram matrices, shape (N, d, d); 0 if missing or not finite."""
    grams = np.zeros((len(records), n_features, n_features))
    for i, j in zip(*np.triu_indices(n_features), strict=True):
        name = f"gram[{i},{j}]"
        grams[:, i, j] = grams[:, j, i] = [record.get(name, 0.0) for record in records]
    return np.where(np.isfinite(grams), grams, 0.0)


def _gram_statistics(grams: FloatArray, first: FloatArray, second: FloatArray) -> dict[str, FloatArray]:
    """Return functions of noisy Gram matrices that separate two exact ones."""
    eigenvalues, eigenvectors = np.linalg.eigh(grams)
    result = {f"eigenvalue {index} of Ĝ": eigenvalues[:, index] for index in range(grams.shape[1])}
    result["tr Ĝ"] = eigenvalues.sum(axis=1)
    with np.errstate(divide="ignore"):
        result["log |det Ĝ|"] = np.log(np.abs(eigenvalues)).sum(axis=1)
    difference = second - first
    result["⟨Ĝ, difference⟩"] = np.einsum("nij,ij->n", grams, difference)
    shifts, directions = np.linalg.eigh(difference)
    moved = np.flatnonzero(np.abs(shifts) > 1e-6)
    for label, index in zip("uv", moved, strict=False):
        u = directions[:, index]
        overlaps = np.einsum("nij,i->nj", eigenvectors, u) ** 2
        result[f"{label}ᵀĜ{label}"] = np.einsum("nij,i,j->n", grams, u, u)
        with np.errstate(divide="ignore", invalid="ignore"):
            result[f"{label}ᵀĜ⁻¹{label}"] = (overlaps / eigenvalues).sum(axis=1)
        for column, name in ((-1, "leading"), (0, "last")):
            result[f"overlap of {label} and the {name} eigenvector"] = overlaps[:, column]
    for label, matrix in (("G₁", first), ("G₂", second)):
        spread = np.linalg.eigvalsh(grams - matrix)
        result[f"smallest eigenvalue of Ĝ − {label}"] = spread[:, 0]
        result[f"largest eigenvalue of Ĝ − {label}"] = spread[:, -1]
    return result


@dataclass(frozen=True, slots=True, eq=False)
class LearnedScores:
    """Two approximations of the log likelihood ratio of the second table against the first.

    ``linear`` is Fisher's discriminant on the statistics, ``additive`` the discriminant on log-ratios of their binned
    frequencies.
    """

    lower: FloatArray
    upper: FloatArray
    linear_weights: FloatArray
    edges: tuple[FloatArray, ...]
    log_ratios: tuple[FloatArray, ...]
    additive_weights: FloatArray

    names = ("linear discriminant", "additive log-ratio score")

    def __call__(self, statistics: FloatArray) -> FloatArray:
        """Return scores of draws, shape (N, 2)."""
        linear = _trimmed(statistics, self.lower, self.upper) @ self.linear_weights
        binned = _binned(statistics, self.edges, self.log_ratios) @ self.additive_weights
        return np.column_stack([linear, binned])


def learn_scores(first: FloatArray, second: FloatArray) -> LearnedScores:
    """Fit both scores to draws on two tables, each of shape (N, S)."""
    pooled = np.vstack([first, second])
    lower, upper = np.quantile(pooled, [_TAILS, 1.0 - _TAILS], axis=0)
    linear = _fisher(_trimmed(first, lower, upper), _trimmed(second, lower, upper))
    edges, log_ratios = [], []
    for ours, theirs, together in zip(first.T, second.T, pooled.T, strict=True):
        inner = np.unique(np.quantile(together, np.linspace(0.0, 1.0, _N_BINS + 1)[1:-1], method="lower"))
        counts = [
            np.bincount(np.searchsorted(inner, part, side="left"), minlength=len(inner) + 1) for part in (ours, theirs)
        ]
        edges.append(inner)
        log_ratios.append(np.log((counts[1] + 0.5) / (counts[0] + 0.5)))
    additive = _fisher(*(_binned(part, tuple(edges), tuple(log_ratios)) for part in (first, second)))
    return LearnedScores(lower, upper, linear, tuple(edges), tuple(log_ratios), additive)


def _trimmed(statistics: FloatArray, lower: FloatArray, upper: FloatArray) -> FloatArray:
    """Scale outer quantiles to [0, 1] and clip, so that heavy tails do not set the weights."""
    width = np.where(upper > lower, upper - lower, 1.0)
    trimmed: FloatArray = np.clip((statistics - lower) / width, 0.0, 1.0)
    return trimmed


def _binned(statistics: FloatArray, edges: Sequence[FloatArray], log_ratios: Sequence[FloatArray]) -> FloatArray:
    columns = [
        table[np.searchsorted(inner, column, side="left")]
        for column, inner, table in zip(statistics.T, edges, log_ratios, strict=True)
    ]
    return np.column_stack(columns)


def _fisher(first: FloatArray, second: FloatArray) -> FloatArray:
    """Return Σ⁻¹(mean of second − mean of first), with a small ridge on the mean covariance Σ."""
    covariance = np.atleast_2d(np.cov(first.T) + np.cov(second.T)) / 2.0
    scale = float(np.trace(covariance)) / len(covariance)
    ridge = _RIDGE * (scale if scale > 0.0 else 1.0)
    weights: FloatArray = np.linalg.solve(
        covariance + ridge * np.eye(len(covariance)), second.mean(axis=0) - first.mean(axis=0)
    )
    return weights


# Lower bounds on ε that hold with stated confidence, from how often an event was seen.


def _probability_above(successes: npt.ArrayLike, trials: int, failure: float) -> FloatArray:
    """Return Clopper–Pearson lower bounds on probabilities, each with this failure probability.

    Examples
    --------
    >>> _probability_above([0, 10], 10, 0.05).round(3).tolist()
    [0.0, 0.741]
    """
    count = np.asarray(successes, dtype=np.float64)
    return np.where(count > 0, scipy.special.betaincinv(np.maximum(count, 1.0), trials - count + 1.0, failure), 0.0)


def _probability_below(successes: npt.ArrayLike, trials: int, failure: float) -> FloatArray:
    """Return Clopper–Pearson upper bounds on probabilities.

    Examples
    --------
    >>> _probability_below([0, 10], 10, 0.05).round(3).tolist()
    [0.259, 1.0]
    """
    return 1.0 - _probability_above(trials - np.asarray(successes), trials, failure)


def epsilon_lower_bound(
    hits: npt.ArrayLike, other_hits: npt.ArrayLike, trials: int, delta: float, failure: float
) -> FloatArray:
    """Bound ε from below by the counts of an event on two neighboring tables.

    ε ≥ log((p − δ)/q) for the probabilities p and q of any event; p is taken at its lower and q at its upper
    Clopper–Pearson bound, each with half of ``failure``. The event must have been fixed without these draws. The result
    is 0 if nothing can be concluded.

    Examples
    --------
    >>> float(epsilon_lower_bound(5000, 1800, 10_000, 0.0, 0.001).round(3))
    0.919
    """
    p = _probability_above(hits, trials, failure / 2.0) - delta
    q = _probability_below(other_hits, trials, failure / 2.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.where(p > q, np.log(np.maximum(p, 0.0) / q), 0.0)
