"""CoinPress written once more, slow and plain: what a run must ask, and what it must make of the answers it was given.

Written from ``docs/evidence/derivations/coinpress.md`` alone, with every constant spelled out. What earlier steps saw is kept in
the coordinates of the rows, where it need not be moved from step to step.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy import optimize, stats

from dpmoments.audit.replay import Exchange


def edge(d: int) -> float:
    """Of the spectrum of symmetric normal noise with deviation 1 on the diagonal."""
    return math.sqrt(2 * d) if d > 1 else 1.0


def augmentation(d: int, replace: bool) -> float:
    """The constant beside the row: least error of the covariance, over multiples of 1/64."""
    grid = np.arange(1, 65) / 64
    square = 2 * (1 + grid**2) ** 2 if replace else 1 + 2 * grid**2
    return float(grid[np.argmin(square * (2 * d + d * (d - 1) + 2 * (d + 1) / grid**2))])


def sensitivity(d: int, w: float, replace: bool) -> float:
    """Of Σ of (√2·w·x, x xᵀ), rows of the unit ball; of two squares in [0, 1] it is 1."""
    if d == 1 and not w:
        return 1.0
    return math.sqrt(2) * (1 + w * w) if replace else math.sqrt(1 + 2 * w * w)


def clip_square(d: int, noise: float) -> float:
    """The best squared radius for the second moment of normal rows, from the median on."""

    def loss(t: float) -> float:
        excess = d * stats.chi2.sf(t, d + 2) - t * stats.chi2.sf(t, d)
        return math.log((noise * t) ** 2 + excess**2 / d)

    least = float(stats.chi2.median(d))
    best = optimize.minimize_scalar(loss, bounds=(least, d + 900), method="bounded", options={"xatol": 1e-9})
    return max(least, float(best.x))


def candidate_splits(k: float, rho: float, noise: float, ridge: float) -> list[list[float]]:
    """Of every first ratio, every number of steps: ρ_s = (noise·k/(k′ − 1 − ridge·k))², the last step takes the rest."""
    found = [[1.0]]
    for ratio in np.geomspace(0.02, 0.95, 80):
        scales, spent = [k, 1 + ratio * k], []
        while len(spent) < 59 and scales[-1] - 1 - ridge * scales[-2] > 0:
            spent.append((noise * scales[-2] / (scales[-1] - 1 - ridge * scales[-2])) ** 2 / rho)
            if sum(spent) >= 1:
                break
            found.append([*spent, 1 - sum(spent)])
            scales.append(1 + math.sqrt(scales[-1] * (scales[-1] - 1) ** 3) / scales[-2])
            if scales[-1] - 1 < 1e-9:
                break
    return found


def predicted(
    split: Sequence[float], k: float, rho: float, noise: float, ridge: float, final: float, sampling: float
) -> float:
    """Root mean square error of a split."""
    for share in split[:-1]:
        k = min(1 + (noise / math.sqrt(share * rho) + ridge) * k, 1e150)
    return math.sqrt(sampling + (final * k) ** 2 / (split[-1] * rho))


def fewest(splits: Sequence[Sequence[float]], errors: Sequence[float]) -> tuple[Sequence[float], float]:
    """The fewest steps within 0.3 % of the least error; of those the least."""
    near = [
        (len(split), error, split) for split, error in zip(splits, errors, strict=True) if error <= 1.003 * min(errors)
    ]
    _, error, split = min(near, key=lambda one: one[:2])
    return split, error


def upper(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """``first`` plus the positive part of ``second − first``."""
    values, vectors = np.linalg.eigh(second - first)
    return first + (vectors * np.maximum(values, 0)) @ vectors.T


@dataclass
class Run:
    """One run on ``table``, checked draw by draw against what was recorded, ``exchanges``.

    ``steps`` are those that the run published. After :meth:`play` the covariance, mean and last clip are what they should be, and
    ``seen`` names the rules that came into play.
    """

    table: np.ndarray
    exchanges: list[Exchange]
    steps: list[dict[str, Any]]
    n: float
    replace: bool
    mean: bool
    shares: Sequence[float]
    rho: float
    radius: float
    last_radius: float
    largest: float
    anchor: np.ndarray | None = None
    held: np.ndarray | None = None
    paper: tuple[float, float] | None = None
    """(ridge of sampling, failure) with the paper's constants."""
    adaptive: bool = True
    seen: set[str] = field(default_factory=set)
    outside: float | None = None
    unseen: float = 0.0
    left_out: bool = False

    def play(self) -> None:
        d = self.table.shape[1]
        self.w = augmentation(d, self.replace) if self.mean else 0.0
        root = np.eye(d) if self.anchor is None else np.linalg.inv(np.linalg.cholesky(self.anchor))
        metric, self.center = root.T @ root / self.largest, np.zeros(d)
        self.observed: list[tuple[np.ndarray, np.ndarray]] = []
        held = np.zeros((d, d)) if self.held is None else self.held
        self.unchecked = np.full(d, False)
        draws = iter(self.exchanges)
        for index, share in enumerate(self.shares):
            last, rho = index == len(self.shares) - 1, self.rho * share
            spent, radius = rho, self.last_radius if last else self.radius
            step = self.steps[index]
            self.linear = np.array(step["linear"])
            np.testing.assert_allclose(self.linear.T @ self.linear, metric, rtol=1e-6, atol=1e-9 * np.abs(metric).max())
            np.testing.assert_allclose(step["center"], self.center, rtol=1e-9, atol=1e-12)
            if last and self.adaptive and self.paper is None:
                radius, rho = self.widened(next(draws), rho)
            gram, total, noise, of_gram = self.moments(next(draws), rho, radius)
            np.testing.assert_allclose(step["radius"], radius, rtol=1e-9)
            np.testing.assert_allclose(step["rho"], spent, rtol=1e-12)
            np.testing.assert_allclose(step["noise_scale"], of_gram, rtol=1e-9)
            np.testing.assert_allclose(step["fill"], np.trace(gram) / radius**2, rtol=1e-9)
            back = np.linalg.inv(self.linear)
            measured = gram
            if self.mean:
                measured = (
                    gram - np.outer(total, total) + (of_gram * math.sqrt(0.5) / (radius * self.w)) ** 2 * np.eye(d)
                )
                self.center = self.center + back @ total
            if last:
                break
            if self.paper is not None:
                values, vectors = np.linalg.eigh(measured)
                bound = math.sqrt(2 * d) + math.sqrt(2 * math.log(2 / self.paper[1]))
                outer = (vectors * (np.maximum(values, 0) + self.paper[0] + bound * of_gram)) @ vectors.T
            else:
                outer, held = self.floored(measured, noise, of_gram, held, last=index == len(self.shares) - 2)
                self.notice(measured, outer, np.array(self.steps[index + 1]["linear"]) @ back)
                self.observed = [(back @ measured @ back.T, noise * back @ back.T), *self.observed][:2]
            metric = self.linear.T @ np.linalg.inv(outer) @ self.linear
        assert next(draws, None) is None
        raised = upper(measured, self.bound()) if self.observed else measured
        values, vectors = np.linalg.eigh(raised)
        self.covariance = back @ (vectors * np.maximum(values, 0)) @ vectors.T @ back.T
        holding = np.diag(self.linear @ held @ self.linear.T)
        variances = np.diag(measured)
        self.half_seen = bool((self.unchecked & (holding < 0.5) & (variances > 4 * noise) & (variances < 0.25)).any())
        self.seen |= {"half seen"} if self.half_seen else set()

    def moments(self, exchange: Exchange, rho: float, radius: float) -> tuple[np.ndarray, np.ndarray, float, float]:
        """Noisy second moment and mean of w, and the deviations of the noise on a variance and on a diagonal cell."""
        d, units = self.table.shape[1], exchange.made.sensitivity.units
        rows = (self.table - self.center) @ self.linear.T
        rows = rows * np.minimum(1, radius / np.maximum(np.linalg.norm(rows, axis=1), 1e-300))[:, None] / radius
        scale = sensitivity(d, self.w, self.replace) / math.sqrt(2 * rho)
        np.testing.assert_allclose(exchange.made.law.scale / units, scale, rtol=1e-9)
        np.testing.assert_allclose(exchange.made.law.off_diagonal_scale / units, scale * math.sqrt(0.5), rtol=1e-9)
        query, answer = (np.array(one, dtype=float) / units for one in (exchange.query, exchange.answer))
        expected = np.zeros((d + 1, d + 1))
        expected[1:, 1:], expected[0, 1:] = rows.T @ rows, self.w * rows.sum(axis=0)
        expected[1:, 0] = expected[0, 1:]
        np.testing.assert_allclose(query, expected if self.mean else expected[1:, 1:], atol=1e-4 * len(rows))
        gram = (answer[1:, 1:] if self.mean else answer) * radius**2 / self.n
        total = answer[0, 1:] * radius / self.w / self.n if self.mean else np.zeros(d)
        of_gram = scale * radius**2 / self.n
        of_mean = scale * math.sqrt(0.5) * radius / self.w / self.n if self.mean else 0.0
        return gram, total, math.sqrt(of_gram**2 + (2 * np.linalg.norm(total) * of_mean) ** 2), of_gram

    def bound(self) -> np.ndarray:
        """What the last step saw, less its noise's edge and two deviations."""
        d = self.table.shape[1]
        covariance, noise = self.observed[0]
        return self.linear @ (covariance - (math.sqrt(2 * d) + 2) * noise) @ self.linear.T

    def floored(
        self, measured: np.ndarray, noise: float, of_gram: float, held: np.ndarray, *, last: bool
    ) -> tuple[np.ndarray, np.ndarray]:
        """U, and what is held from now on, in the coordinates of the rows."""
        d = len(measured)
        values, vectors = np.linalg.eigh(measured)
        raised = np.maximum(values, 0.5 * edge(d) * of_gram)
        if len(self.observed) == 2:
            scores = np.zeros(d)
            for covariance, deviation in self.observed:
                for j, v in enumerate(vectors.T @ self.linear):
                    scores[j] += (v @ covariance @ v) / (v @ deviation @ v) / 2
            for j in range(d):
                if scores[j] > 0.75 * math.sqrt(2 * d) and (not last or values[j] < 0.5):
                    self.seen |= {"not enlarged"} if values[j] < 1 else set()
                    raised[j] = max(values[j], 1.0)
        outer = (vectors * raised) @ vectors.T
        mine = self.linear @ held @ self.linear.T
        if self.observed:
            excess, lost = np.linalg.eigh(self.bound() - measured - math.sqrt(2 * d) * noise * np.eye(d))
            before = self.linear @ self.observed[0][0] @ self.linear.T
            fitting = np.zeros((d, d))
            for v in lost.T[excess > 0]:
                self.seen.add("held")
                fitting += (v @ before @ v) / max(v @ measured @ v, 0.5 * math.sqrt(2 * d) * noise) * np.outer(v, v)
            mine = upper(mine, fitting)
            outer = upper(outer, self.bound())
        back = np.linalg.inv(self.linear)
        return upper(outer, mine), back @ mine @ back.T

    def notice(self, measured: np.ndarray, outer: np.ndarray, step: np.ndarray) -> None:
        """Which of the next coordinates are unchecked: enlarged by more than √2, or half of the variance lost."""
        found = []
        for row in step:
            u, v = 1 / (row @ row), row / np.linalg.norm(row)
            np.testing.assert_allclose(outer @ v, u * v, rtol=1e-5, atol=1e-5 * np.abs(outer).max())
            found.append(u < 0.5 or v @ measured @ v < 0.5 * u)
        self.unchecked = np.array(found) if not all(found) else np.full(len(found), False)
        if self.unchecked.any():
            self.seen.add("unchecked")

    def widened(self, exchange: Exchange, rho: float) -> tuple[float, float]:
        """The last radius and what is left of ρ, after the histogram of norms."""
        d = self.table.shape[1]
        share = min(0.1, 0.02 * max(1.0, (10 / d) ** 1.5))
        powers = [*(i / 4 for i in range(4)), *(i / 2 for i in range(2, 12)), *range(6, 25)]
        edges = self.radius * 2.0 ** np.array(powers)
        rows = (self.table - self.center) @ self.linear.T
        squares, k = (rows**2).sum(axis=1), int(self.unchecked.sum())
        along = (rows[:, self.unchecked] ** 2).sum(axis=1)
        far = along > (0.5 + 0.5 * k / d) * squares if k else np.full(len(rows), False)
        m = len(edges)
        units = exchange.made.sensitivity.units
        query, answer = (np.array(one, dtype=float) / units for one in (exchange.query, exchange.answer))
        whole, apart = self.taken_apart(query, m, apart=k > 0)
        # Norms are computed to a fraction of 2^−8 of the radius, or of 2^−20 of themselves.
        slack = np.maximum(math.sqrt(d) * self.radius / 512, 1e-5 * edges)
        for counts, norms in ((whole, np.sqrt(squares[~far])), (apart, np.sqrt(squares[far]))):
            beyond = counts[:0:-1].cumsum()[::-1]
            assert ((norms[:, None] >= edges + slack).sum(axis=0) <= beyond).all()
            assert (beyond <= (norms[:, None] >= edges - slack).sum(axis=0)).all()
        assert query.sum() == len(rows)
        assert query.shape == answer.shape == ((2 * m + 1,) if k else (m + 1,))
        deviation = (math.sqrt(2) if self.replace else 1.0) / math.sqrt(2 * rho * share)
        np.testing.assert_allclose(exchange.made.law.scale / units, deviation, rtol=1e-9)
        whole, apart = self.taken_apart(answer, m, apart=k > 0)
        threshold = float(stats.norm.isf(1e-4 / (2 * (m + 1)))) * deviation
        apart = occupied(apart, threshold)
        norms = np.concatenate([edges[:1], np.sqrt(edges[:-1] * edges[1:]), edges[-1:]])
        rest = rho * (1 - share)
        error = sensitivity(d, self.w, self.replace) / math.sqrt(2 * rest) * math.sqrt(d * (d + 1) / 2) / self.n
        near = (norms <= 4 * self.radius) | (norms <= math.sqrt(0.1 * math.sqrt(d) / error))
        self.left_out = bool((apart[~near] > 0).any())
        self.seen |= {"left out"} if self.left_out else set()
        self.seen |= {"apart but near"} if (apart[near] > 0).any() else set()
        # Found rows that are near add their noisy number to the others' bin, which is tested after that.
        counts = occupied(whole + np.where(near, apart, 0.0), threshold)
        total = float(counts.sum())
        self.outside = float(counts[norms > self.radius].sum()) / total if total else 0.0
        self.unseen = 2 * threshold / self.n
        best, least = 0.0, math.inf
        for j in range(m):
            for quarter in range(4 if j < m - 1 else 1):
                r = edges[j] * (edges[min(j + 1, m - 1)] / edges[j]) ** (quarter / 4)
                bias = float((np.maximum(norms**2 - r**2, 0) * counts).sum()) / total / math.sqrt(d) if total else 0.0
                if (loss := (error * r * r) ** 2 + bias**2) < least:
                    best, least = float(r), loss
        self.seen |= {"widened"} if best > self.radius else set()
        return max(self.radius, best if total else 0.0), rest

    @staticmethod
    def taken_apart(cells: np.ndarray, m: int, *, apart: bool) -> tuple[np.ndarray, np.ndarray]:
        """Counts of the rows that are not along unchecked directions, and of those that are, by norm."""
        if not apart:
            return cells, np.zeros(m + 1)
        return cells[m:], np.concatenate([[0.0], cells[:m][::-1]])


def occupied(counts: np.ndarray, threshold: float) -> np.ndarray:
    """Counts above the threshold; of 2, 4, 8 neighbors none of which is, their mean where the sum is above √width of it."""
    found = [count if count > threshold else 0.0 for count in counts]
    for width in (2, 4, 8):
        for start in range(0, len(found) - width + 1, width):
            if not any(found[start : start + width]) and sum(counts[start : start + width]) > threshold * math.sqrt(
                width
            ):
                found[start : start + width] = [sum(counts[start : start + width]) / width] * width
    return np.array(found)


@dataclass(frozen=True)
class Rules:
    """Radii, ridge and shares of a run; and what error they are planned to leave."""

    radius: float
    last_radius: float
    ridge: float
    failure: float
    shares: Sequence[float]
    error: float


def rules(
    d: int,
    n: float,
    rho: float,
    spread: float,
    *,
    replace: bool,
    mean: bool,
    paper: bool = False,
    beta: float = 0.05,
    steps: int | None = None,
    split: Sequence[float] | None = None,
) -> Rules:
    """What a run plans from public numbers."""
    unit = sensitivity(d, augmentation(d, replace) if mean else 0.0, replace) / math.sqrt(2) / n
    frobenius, sampling = unit * math.sqrt(d * (d + 1) / 2), d * (d + 1) / n
    if paper:
        found: list[Rules] = []
        for t in range(1, 61) if split is None and steps is None else [steps or len(split or [1.0])]:
            failure = beta / 4 / max(t - 1, 1) / 3
            early, last = (
                d + 2 * math.sqrt(d * log) + 2 * log for log in (math.log(n / failure), math.log(4 * n / beta))
            )
            deviation = math.sqrt(2 * math.log(2 / failure))
            a = math.sqrt(d / n) + deviation / math.sqrt(n)
            ridge, noise = 2 * a + a * a, 2 * (math.sqrt(2 * d) + deviation) * unit * early
            shares = [0.25 / (t - 1)] * (t - 1) + [0.75] if t > 1 else [1.0]
            if split is not None:
                shares = [share / sum(split) for share in split]
            error = predicted(shares, spread, rho, noise, ridge, frobenius * last, sampling)
            found.append(Rules(math.sqrt(early), math.sqrt(last), ridge, failure, shares, error))
        chosen, _ = fewest([one.shares for one in found], [one.error for one in found])
        return next(one for one in found if one.shares == chosen)
    square = clip_square(d, frobenius / math.sqrt(0.75 * rho))
    noise = 0.7 * edge(d) * unit * square
    splits = candidate_splits(spread, rho, noise, 0.0)
    if split is not None:
        splits = [[share / sum(split) for share in split]]
    elif steps is not None:
        of_paper = [0.25 / max(steps - 1, 1)] * (steps - 1) + [0.75 if steps > 1 else 1.0]
        splits = [one for one in splits if len(one) == steps] or [of_paper]
    errors = [predicted(one, spread, rho, noise, 0.0, frobenius * square, sampling) for one in splits]
    return Rules(math.sqrt(square), math.sqrt(square), 0.0, 0.0, *fewest(splits, errors))
