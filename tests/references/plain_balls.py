"""The CoinPress and variance-aware means, written a second time from `docs/evidence/derivations/`: see plain_answers.

Every constant is a number here, so that none can change unseen. Schedules and histograms are the library's own, which have
their own tests.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.linalg
from scipy.stats import chi, chi2, norm

from dpmoments.base.message import Message
from dpmoments.papers.mechanisms.coinpress_mean import clip_shrinkage, mean_schedule
from dpmoments.papers.mechanisms.coinpress_schedule import Schedule, last_step_shares, normal_norm_radius
from dpmoments.papers.mechanisms.mapped_rows import NormHistogram, norm_edges
from references.plain_answers import Answers, finest_bits, lengths


def coinpress(
    table: np.ndarray,
    rho: float,
    answers: Answers,
    *,
    radius: float,
    scale: float | None = None,
    covariance: Sequence[Sequence[float]] | None = None,
    constants: str = "practical",
    clip: str = "adaptive",
    steps: int | None = None,
    split: Sequence[float] | None = None,
) -> dict[str, Any]:
    """Balls that shrink about the last center, rows whitened."""
    d, n_rows = table.shape[1], float(len(table))
    if not answers.replace_one:
        n_rows, rho = answers.count(len(table), 0.01 * rho), 0.99 * rho
    whiten = np.eye(d) / scale if scale else np.linalg.inv(scipy.linalg.sqrtm(np.array(covariance)))
    bound = radius / scale if scale else radius
    schedule, clips = coinpress_clips(
        d, n_rows, bound, rho, answers.of_sum, constants=constants, steps=steps, split=split
    )
    center, made, outside, last = np.zeros(d), [], None, None
    for index, (share, ball) in enumerate(zip(schedule.shares, schedule.scales, strict=True)):
        cost, clipped_at, w = share * rho, clips[index], (table - center) @ whiten.T
        if index == len(clips) - 1 and clip == "adaptive" and constants == "practical":
            histogram = answers.histogram("norm-histogram", lengths(w), norm_edges(math.sqrt(d)), 0.02 * cost)
            error = answers.of_sum * math.sqrt(d / (2.0 * 0.98 * cost)) / n_rows
            best = histogram.best_radius(1, error, math.sqrt(1.0 / (2.0 * d))) or 0.0
            outside = histogram.share_above(clipped_at)
            if best > 1.06 * normal_norm_radius(d, error, math.sqrt(1.0 / (2.0 * d))):
                clipped_at = max(clipped_at, best)
            cost, last = 0.98 * cost, histogram
        noisy, entry = clipped_sum(index + 1, w, clipped_at, cost, answers)
        made.append(
            {
                "center": center,
                "radius": clipped_at,
                "mean_radius": ball,
                "rho": share * rho,
                "noise_scale": entry / n_rows,
            }
        )
        moved, entry = noisy / n_rows, entry / n_rows
        center = center + np.linalg.solve(whiten, moved)
    warnings = coinpress_doubts(last, outside, moved, schedule, entry, n_rows, clipped_at)
    length, noise = float(np.linalg.norm(whiten @ center)), math.sqrt(d) * entry
    if length > math.sqrt(bound**2 + noise**2) + 4.0 * entry:
        warnings.append(Message("mean-beyond-radius"))
    elif length > bound:
        center = center * bound / length
    return {
        "mean": center,
        "count": n_rows,
        "steps": made,
        "linear": whiten,
        "predicted_error": schedule.predicted_error,
        "share_outside": outside,
        "warnings": warnings,
    }


def coinpress_clips(
    d: int,
    n_rows: float,
    bound: float,
    rho: float,
    of_sum: float,
    *,
    constants: str,
    steps: int | None,
    split: Sequence[float] | None,
) -> tuple[Schedule, list[float]]:
    """The schedule, and the clipping radius of every step."""
    if constants == "paper":
        return by_theory(d, n_rows, bound, rho, of_sum, steps=steps, split=split)
    shares: Sequence[Sequence[float]] | None = None
    weight = math.sqrt(1.0 / (2.0 * d)) * max(0.25, 1.0 / math.sqrt(d))
    shell = normal_norm_radius(d, of_sum * math.sqrt(d / (1.8 * rho)) / n_rows, weight)
    factor, shrinkage = math.sqrt(chi2.isf(0.01, d)), clip_shrinkage(shell, d)
    tail = max(0.0, float(norm.isf(chi.sf(shell, d))))
    if split is not None:
        shares = [[part / sum(split) for part in split]]

    def clipped_at(distance: float) -> float:
        """Rows are within the shell of their mean, and that within the distance of the center."""
        return min(math.sqrt(distance**2 + 2 * tail * distance + shell**2), distance + shell)

    schedule = mean_schedule(
        bound,
        rho,
        n_features=d,
        n_rows=n_rows,
        sensitivity=of_sum,
        spherical=clipped_at,
        ball_factor=factor,
        shrinkage=shrinkage,
        shares=shares,
        n_steps=steps,
    )
    return schedule, [clipped_at(distance) for distance in schedule.scales]


def by_theory(
    d: int, n_rows: float, bound: float, rho: float, of_sum: float, *, steps: int | None, split: Sequence[float] | None
) -> tuple[Schedule, list[float]]:
    """Figure 2: γ of β/4(t − 1) for each step but the last, β/4 for that, β = 0.05; the fewest steps near the least error."""
    found: list[tuple[Schedule, list[float]]] = []
    for t in [len(split)] if split is not None else range(1, 61) if steps is None else [steps]:
        early, last = (
            math.sqrt(d + 2.0 * math.sqrt(d * log) + 2.0 * log)
            for log in (math.log(n_rows * 4 * max(t - 1, 1) / 0.05), math.log(n_rows * 4 / 0.05))
        )
        shares = last_step_shares(t, 0.75) if split is None else [part / sum(split) for part in split]
        scales, clips = [bound], list[float]()
        for share in shares[:-1]:
            clips.append(scales[-1] + early)
            scales.append(early * math.sqrt(1 / n_rows + (of_sum * clips[-1] / n_rows) ** 2 / (2 * share * rho)))
        clips.append(scales[-1] + last)
        error = math.sqrt(d * (1 / n_rows + (of_sum * clips[-1] / n_rows) ** 2 / (2 * shares[-1] * rho)))
        found.append((Schedule(tuple(shares), tuple(scales), error), clips))
    least = min(one.predicted_error for one, _ in found)
    return next(pair for pair in found if pair[0].predicted_error <= 1.003 * least)


def coinpress_doubts(
    last: NormHistogram | None,
    outside: float | None,
    moved: np.ndarray,
    schedule: Schedule,
    entry: float,
    n_rows: float,
    clipped_at: float,
) -> list[Message]:
    """What the last step says against the answer."""
    d, noise, length, warnings = len(moved), math.sqrt(len(moved)) * entry, float(np.linalg.norm(moved)), []
    far = length > math.sqrt((1.5 * schedule.scales[-1]) ** 2 + noise**2) + 4.0 * entry
    seen = 0.0 if last is None else last.occupied.sum() / n_rows
    if far or (outside is not None and seen >= 0.5 and outside > 0.75):
        warnings.append(Message("rows-mostly-clipped"))
    size = clipped_size(last, clipped_at) if last is not None else None
    spread = math.sqrt(d) if size is None else spread_of(size, length, noise)
    if noise > 0.5 * spread:
        warnings.append(Message("mean-lost"))
    return warnings


def clipped_size(histogram: NormHistogram, radius: float) -> float | None:
    """Root mean square of clipped norms, each at its bin's upper edge."""
    counts = histogram.occupied
    if not counts.sum():
        return None
    sizes = np.minimum([*histogram.edges, math.inf], radius)
    return radius * math.sqrt(float(np.average((sizes / radius) ** 2, weights=counts)))


def spread_of(size: float, moved: float, noise: float) -> float:
    """Of rows about their mean, from their size and how far that mean is."""
    return size * math.sqrt(max(0.0, 1.0 - max(0.0, (moved / size) ** 2 - (noise / size) ** 2)))


def clipped_sum(
    step: int, w: np.ndarray, radius: float, rho: float, answers: Answers, *, squares_rho: float = 0.0
) -> tuple[np.ndarray, float]:
    """The noisy sum of rows clipped to a radius, and the deviation of its noise."""
    short = shortened(w, radius)
    scales = [answers.scale(rho, answers.of_sum)]
    scales += [answers.scale(squares_rho, answers.of_squares)] if squares_rho else []
    bits = finest_bits(max(scales), w.shape[1])
    noisy = answers.of_rows(Message("sum", step=step), short, rho, answers.of_sum, bits)
    return noisy * radius, scales[0] * radius


def shortened(w: np.ndarray, radius: float) -> np.ndarray:
    """Rows clipped to a radius, in units of it."""
    norms = np.maximum(lengths(w), radius)
    return np.asarray(w / norms[:, None])
