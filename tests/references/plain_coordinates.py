"""The estimators that take a coordinate at a time, written a second time: see plain_answers.

They follow `docs/evidence/derivations/means.md`. Every constant is a number here, so that none can change unseen.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from scipy.stats import norm

from dpmoments.base.message import Message
from references.plain_answers import Answers, finest_bits


def naive(
    table: np.ndarray, loss: float, answers: Answers, *, radius: float, scale: float, drops: bool = False
) -> dict[str, Any]:
    """Every coordinate clamped to ±(R + 3σ)."""
    n_rows, loss = _counted(len(table), loss, answers, drops)
    d = table.shape[1]
    found = [
        _examined(column, j, 0.0, radius + 3.0 * scale, n_rows, loss / d, answers, d) for j, column in _columns(table)
    ]
    means = np.array([one["mean"] for one in found])
    noise = np.array([one["noise"] for one in found])
    inside = np.abs(means) <= radius + 4.0 * noise
    return {
        "mean": np.where(inside, np.clip(means, -radius, radius), means),
        "count": n_rows,
        "noise_scales": noise,
        "shares_clamped": [one["clamped"] for one in found],
        "warnings": _said(found, radius, answers),
    }


def karwa_vadhan(
    table: np.ndarray, loss: float, answers: Answers, *, radius: float, scale: float | None = None, drops: bool = False
) -> dict[str, Any]:
    """Scale (a quarter of the budget where it is not public), bin (a quarter), mean (the rest)."""
    n_rows, loss = _counted(len(table), loss, answers, drops)
    d = table.shape[1]
    share = loss / d
    found, scales, centers, widths, names = [], [], [], [], []
    for j, column in _columns(table):
        if scale is None:
            for_mean = 0.5 * share
            width = _scale(column, j, radius, 0.25 * share, answers)
        else:
            for_mean, width = 0.75 * share, max(scale, radius * 2.0**-40)
        center, sees = _located(column, j, radius, width, 0.25 * share, n_rows, answers)
        half = width * (0.5 + math.sqrt(2.0 * math.log(max(n_rows, 3.0))))
        found.append(_examined(column, j, center, half, n_rows, for_mean, answers, d))
        scales.append(width)
        centers.append(center)
        widths.append(half)
        if not sees:
            names.append(answers.names[j])
    warnings = _said(found, radius, answers, least_noise=radius * 2.0**-40)
    if names:
        warnings.append(Message("location-lost", names=names))
    return {
        "mean": np.clip([one["mean"] for one in found], -radius, radius),
        "count": n_rows,
        "scales": scales,
        "centers": centers,
        "half_widths": widths,
        "noise_scales": [one["noise"] for one in found],
        "shares_clamped": [one["clamped"] for one in found],
        "warnings": warnings,
    }


def symmetric_quantiles(
    table: np.ndarray, loss: float, answers: Answers, *, radius: float, quantile: float = 0.35, drops: bool = False
) -> dict[str, Any]:
    """The middle between the quantiles b and 1 − b."""
    n_rows, loss = _counted(len(table), loss, answers, drops)
    d = table.shape[1]
    pairs = np.array(
        [
            [_quantile(column, j, level, radius, loss / (2.0 * d), answers) for level in (quantile, 1.0 - quantile)]
            for j, column in _columns(table)
        ]
    )
    middle = pairs.mean(axis=1)
    # Four times the radius in cells of 2^−34 of it: three levels of 2^12.
    sees = answers.epsilon(loss / (2.0 * d) / 3.0) * quantile * n_rows / 2.0 >= 2.0 * math.log(4096.0)
    outside = np.abs(np.where(np.diff(np.sign(pairs))[:, 0] == 0.0, pairs, 0.0)).min(axis=1) > radius
    warnings = []
    if sees and outside.any():
        names = [name for name, one in zip(answers.names, outside, strict=True) if one]
        warnings.append(Message("values-beyond-radius", names=names))
    if not sees:
        warnings.append(Message("mean-lost"))
    return {
        "mean": np.where(outside & sees, middle, np.clip(middle, -radius, radius)),
        "count": n_rows,
        "quantiles": pairs,
        "scales": (pairs.max(axis=1) - middle) / norm.isf(quantile),
        "warnings": warnings,
    }


def _columns(table: np.ndarray) -> list[tuple[int, np.ndarray]]:
    return list(enumerate(table.T))


def _counted(n_rows: int, loss: float, answers: Answers, drops: bool) -> tuple[float, float]:
    """The number of rows and the loss that is left: a private number costs 5 % of ρ, or a tenth of ε."""
    if not drops:
        return float(n_rows), loss
    share = 0.1 if answers.pure else 0.05
    return answers.count(n_rows, share * loss), (1.0 - share) * loss


def _examined(
    column: np.ndarray, j: int, center: float, half: float, n_rows: float, loss: float, answers: Answers, d: int
) -> dict[str, Any]:
    """A clamped mean for 96 % of the loss, and two counts."""
    bits = finest_bits(answers.scale(0.96 * loss, 2.0), 1)
    clamped = np.clip((column - center) / half, -1.0, 1.0)[:, None]
    total = answers.of_rows(Message("coordinate-mean", feature=j + 1), clamped, 0.96 * loss, 2.0, bits)
    noise = answers.deviation(0.96 * loss, 2.0) * half / n_rows
    beyond = []
    for code, far in (
        ("clamped-values", np.abs(column - center) > half),
        ("values-beyond-noise", np.abs(column - center) >= noise),
    ):
        signed = [np.where(far, 1, -1).sum()]
        noisy = answers.noisy(Message(code, feature=j + 1), signed, 0.02 * loss, 2.0)
        beyond.append(0.5 + float(noisy[0]) / (2.0 * n_rows))
    count_noise = answers.deviation(0.02 * loss, 2.0) / (2.0 * n_rows)
    tail = 0.001 / d
    margin = count_noise * (-math.log(2.0 * tail) / math.sqrt(2.0) if answers.pure else float(norm.isf(tail)))
    mean = center + float(total[0]) * half / n_rows
    return {
        "mean": mean,
        "noise": noise,
        "clamped": min(max(beyond[0], 0.0), 1.0),
        "shows": beyond[0] > 0.01 + margin,
        "lost": beyond[1] < 0.5 and abs(mean - center) < 3.0 * noise,
    }


def _said(found: list[dict[str, Any]], radius: float, answers: Answers, least_noise: float = 0.0) -> list[Message]:
    """The warnings of clamped means."""
    shares = [one["clamped"] for one in found if one["shows"] and one["clamped"] <= 0.5]
    largest = {"share": max(shares)} if shares else {}
    kinds: list[tuple[str, dict[str, float], list[bool]]] = [
        ("mean-beyond-radius", {}, [abs(one["mean"]) > radius + 4.0 * one["noise"] for one in found]),
        ("mostly-clipped", {}, [one["shows"] and one["clamped"] > 0.5 for one in found]),
        ("values-clipped", largest, [one["shows"] and one["clamped"] <= 0.5 for one in found]),
        ("mean-lost", {}, [one["lost"] and one["noise"] > least_noise for one in found]),
    ]
    return [
        Message(code, **facts, names=[name for name, one in zip(answers.names, which, strict=True) if one])
        for code, facts, which in kinds
        if any(which)
    ]


def _levels(width: float, cell: float) -> np.ndarray:
    """Cell widths of a search, level by level, 4096 cells in each at most."""
    n_levels = 1
    while 4096.0**n_levels < width / cell * (1.0 - 1e-8):
        n_levels += 1
    return np.geomspace(max(width, cell), cell, n_levels + 1)[1:]


def _quantile(column: np.ndarray, j: int, level: float, radius: float, loss: float, answers: Answers) -> float:
    """Searched in ±2R; the middle of a cell of 2^−34 R."""
    lower, upper = -2.0 * radius, 2.0 * radius
    inside = np.sort(np.clip(column, lower, np.nextafter(upper, lower)))
    widths = _levels(upper - lower, radius * 2.0**-34)
    for index, width in enumerate(widths):
        edges = np.linspace(lower, upper, round((upper - lower) / width) + 1)
        # How many values are below each edge; those beyond the range are put at its ends.
        ranks = np.searchsorted(inside, edges)
        target = level * len(column)
        distance = np.clip(np.maximum(ranks[:-1] - target, target - ranks[1:]), 0.0, None)
        what = Message("coordinate-quantile", quantile=level, feature=j + 1, level=index + 1)
        place = answers.choice(what, -distance, loss / len(widths))
        lower, upper = edges[place], edges[place + 1]
    return float(lower + upper) / 2.0


def _scale(column: np.ndarray, j: int, radius: float, loss: float, answers: Answers) -> float:
    """The upper edge of the power of two that most distances from a private median lie in."""
    median = _quantile(column, j, 0.5, radius, loss / 2.0, answers)
    powers = np.arange(-40, 2)
    distances = np.abs(column - median) / radius
    places = np.floor(np.log2(np.maximum(distances, 2.0**-40)))
    counts = [(np.clip(places, -40, 1) == power).sum() for power in powers]
    chosen = answers.choice(Message("coordinate-scale", feature=j + 1), counts, loss / 2.0)
    return radius * 2.0 ** float(powers[chosen] + 1)


def _located(
    column: np.ndarray, j: int, radius: float, width: float, loss: float, n_rows: float, answers: Answers
) -> tuple[float, bool]:
    """The middle of a bin as wide as the scale, and whether one with 0.3 of the rows would be found."""
    lower, upper = -radius - width / 2.0, radius + width / 2.0
    widths = _levels(upper - lower, min(width, upper - lower))
    cells = (upper - lower) / widths[0]
    sees = answers.epsilon(loss / len(widths)) * 0.3 * n_rows / 2.0 >= 2.0 * math.log(max(cells, 1.0))
    for index, cell in enumerate(widths):
        edges = np.linspace(lower, upper, max(1, round((upper - lower) / cell)) + 1)
        counts = np.histogram(column[column < edges[-1]], edges)[0]
        place = answers.choice(Message("coordinate-bin", feature=j + 1, level=index + 1), counts, loss / len(widths))
        lower, upper = edges[place], edges[place + 1]
    return float(min(max((lower + upper) / 2.0, -radius), radius)), bool(sees)
