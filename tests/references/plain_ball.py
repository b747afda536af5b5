"""Adaptive ball, written a second time from `docs/evidence/derivations/adaptive_ball.md`: see plain_answers.

Every constant is a number here, so that none can change unseen. Nothing of the mechanism, its budget, search or evidence is
imported; the loss that an (ε, δ) budget allows and the quantile of one cell of matrix Laplace noise are the library's, which
have their own tests.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from scipy.stats import norm

from dpmoments.audit.replay import Exchange
from dpmoments.messages.message import Message, Query
from dpmoments.noise.cells import gamma_difference_quantile
from dpmoments.privacy.accounting import LossUnit, allowance
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.laws import DiscreteGaussian, MatrixLaplaceDraw
from references.plain_answers import Answers, finest_bits

FILLS = "rows-fill-bounds"
TOO_FEW = "few-rows-for-ball"
TOO_FAR = "ball-clips-too-much"
TOO_FEW_HELD = "ball-holds-few-rows"


class BallAnswers(Answers):
    """Answers with noise of 2^20 units or more where that is asked for, and joint releases among them."""

    def __init__(self, exchanges: Iterable[Exchange], *, replace_one: bool, pure: bool, coarse: bool) -> None:
        super().__init__(exchanges, replace_one=replace_one, pure=pure, names=())
        self._coarse = coarse

    def units(self, scale: float, bits: int) -> float:
        """How many units 1 has."""
        while not self.pure and not self._coarse and scale * 2.0**bits < 2.0**20:
            bits += 1
        return 2.0**bits

    def number(self, what: Query, exact: float, loss: float, bits: int = 0) -> float:
        """One noisy number that a row moves by 1."""
        return float(self.noisy(what, [exact], loss, 1.0, units=self.units(self.scale(loss, 1.0), bits))[0])

    def joint(self, rows: np.ndarray, noise: JointNoise) -> np.ndarray:
        """Σ zzᵀ of rows in the unit ball, with noise."""
        made, exchange = self._left[0].made, self._left.pop(0)
        assert made.what == Message("count-sum-gram")
        z = np.column_stack([np.full(len(rows), noise.w), rows])
        scale = min(noise.cell, noise.off_diagonal)
        units = self.units(scale, 2 * noise.bits)
        assert made.sensitivity.units == units
        assert made.sensitivity.name == ("gram_nuclear" if self.pure else "gram_frobenius")
        assert made.sensitivity.value / units == pytest.approx(noise.sensitivity, rel=1e-12)
        if self.pure:
            assert isinstance(made.law, MatrixLaplaceDraw)
            assert made.law.bits == noise.bits
            assert made.law.rate == pytest.approx(noise.rate, rel=1e-9)
        else:
            assert isinstance(made.law, DiscreteGaussian)
            assert made.law.scale / units == pytest.approx(noise.cell, rel=1e-9)
            assert made.law.off_diagonal_scale is not None
            assert made.law.off_diagonal_scale / units == pytest.approx(noise.off_diagonal, rel=1e-9)
        within = 8.0 * max(len(rows), 1) * math.sqrt(rows.shape[1]) * 2.0**-noise.bits
        np.testing.assert_allclose(exchange.query.astype(float) / units, z.T @ z, rtol=0.0, atol=within)
        return np.asarray(exchange.answer.astype(float) / units)


@dataclass(frozen=True)
class JointNoise:
    """The noise of a joint release with a loss, at radius 1."""

    d: int
    loss: float
    pure: bool
    replace_one: bool
    noisy_count: bool
    in_ball: bool = False
    bits: int = 0

    @property
    def w(self) -> float:
        """The constant that is appended, of 64."""
        mean, spread = (0.3, 0.4) if self.in_ball else (1.0, 1.0)
        d, size = self.d, 2.0 * spread if self.noisy_count else 0.0

        def error(w: float) -> float:
            return float((1 + w**2) ** 2 * (2 * d + d * (d - 1) + 2 * (d + 1) * mean / w**2 + size / w**4))

        return min((k / 64 for k in range(1, 65)), key=error)

    @property
    def sensitivity(self) -> float:
        both = 2.0 if self.pure else math.sqrt(2.0)
        return (1.0 + self.w**2) * (both if self.replace_one else 1.0)

    @property
    def rate(self) -> float:
        return self.loss / self.sensitivity

    @property
    def cell(self) -> float:
        """Standard deviation of a cell on the diagonal of the (d + 1) × (d + 1) matrix."""
        return math.sqrt(self.d + 2) / self.rate if self.pure else self.sensitivity / math.sqrt(2.0 * self.loss)

    @property
    def off_diagonal(self) -> float:
        return self.cell / math.sqrt(2.0)

    @property
    def of_gram(self) -> float:
        """Root mean square of the Frobenius norm of the noise on the Gram matrix."""
        return self.cell * math.sqrt(self.d * (self.d + 1) / 2.0)

    def count_reach(self, failure: float) -> float:
        """What the noise on the count passes with that probability."""
        if not self.noisy_count:
            return 0.0
        of_one = gamma_difference_quantile(1 - failure, (self.d + 2) / 2.0) if self.pure else float(norm.isf(failure))
        return self.cell / self.w**2 * of_one


@dataclass
class Found:
    """What a plain run comes to."""

    count: float
    sum: np.ndarray
    gram: np.ndarray
    variances: tuple[float, float, float]
    diagnostics: dict[str, Any]
    center: np.ndarray | None = None
    warning: tuple[Message, ...] = ()
    said: tuple[Message, ...] = ()
    path: str = field(default="ball")


def r(i: int) -> float:
    return 0.95 * 2.0 ** (-i / 24)


def within(value: float, low: float, high: float) -> float:
    return min(max(value, low), high)


def loss_of(budget: PrivacyBudget, d: int, *, replace_one: bool, noisy_count: bool) -> tuple[float, bool, bool]:
    """The whole loss, whether it is pure, and whether it is zCDP as stated, so that noise may be of a few units."""
    if budget.kind is BudgetKind.PURE:
        return budget.epsilon, True, True
    if budget.kind is BudgetKind.ZCDP:
        return budget.rho, False, True
    rho = float(allowance(budget, LossUnit.GAUSSIAN_RHO).amount)
    pure, gaussian = (
        JointNoise(d, loss, is_pure, replace_one, noisy_count, in_ball=True).of_gram
        for loss, is_pure in ((budget.epsilon, True), (rho, False))
    )
    return (rho, False, False) if gaussian <= 1.05 * pure else (budget.epsilon, True, True)


def adaptive_ball(
    table: np.ndarray,
    loss: float,
    answers: BallAnswers,
    *,
    count_is_public: bool,
    box: tuple[np.ndarray, np.ndarray] | None = None,
) -> Found:
    """One run on encoded rows, dropped ones taken out."""
    table = shortened(table)
    n, d = table.shape
    pure, replace_one = answers.pure, answers.replace_one
    lower, upper = (-np.ones(d), np.ones(d)) if box is None else box
    left = loss
    root = math.sqrt(2.0) if pure else 1.0
    kappa = 10.0 if pure else 6.0

    def share_for(scale: float) -> float:
        return 1.0 / (scale * loss) if pure else 1.0 / (2.0 * loss * scale**2)

    def joint(loss: float, bits: int = 0, *, in_ball: bool = False) -> JointNoise:
        return JointNoise(d, loss, pure, replace_one, not count_is_public, in_ball, bits)

    least = joint(0.61 * loss)
    bits = finest_bits(least.cell, d)
    nu = joint(0.9 * loss, in_ball=True).of_gram

    def at_the_bounds(reason: str, path: str) -> Found:
        noise = joint(left, bits)
        matrix = answers.joint(shortened(table), noise)
        answers.check_all_used()
        return taken(matrix, noise, 1.0, {"public_bounds": reason}, path=path)

    def taken(matrix: np.ndarray, noise: JointNoise, radius: float, said: dict[str, Any], **others: Any) -> Found:
        w = noise.w
        count = float(n) if count_is_public else matrix[0, 0] / w**2
        variances = (
            noise.cell**2 * radius**4,
            noise.off_diagonal**2 / w**2 * radius**2,
            0.0 if count_is_public else noise.cell**2 / w**4,
        )
        return Found(count, matrix[0, 1:] / w * radius, matrix[1:, 1:] * radius**2, variances, said, **others)

    # The count.
    n_hat = n_low = float(n)
    if not count_is_public:
        part = 0.008 * loss
        left -= part
        units = answers.units(answers.scale(part, 1.0), 0)
        n_hat = max(1.0, float(round(float(answers.noisy("count", [n], part, 1.0, units=units)[0]))))
        n_low = n_hat - answers.deviation(part, 1.0)

    # K.
    if n_low < 1.0:
        return at_the_bounds(TOO_FEW, "few")
    search = within(
        max(
            share_for(max(3.0 * nu, 0.004 * n_low) / kappa),
            share_for(0.25 * n_low / kappa),
            min(0.04, share_for(3.0 * nu / kappa)),
        ),
        0.01,
        0.12,
    )
    scale = answers.scale(search * loss, 1.0)
    if kappa * scale > 0.25 * n_low:
        return at_the_bounds(TOO_FEW, "few")
    beyond = math.floor(max(kappa * scale, min(3.0 * nu, 0.25 * n_low)))

    # The center.
    of_sum = math.sqrt(d) * answers.of_sum if pure else answers.of_sum
    ratio = root * answers.scale(loss, of_sum) * math.sqrt(d) / (0.1 * n_low)
    share = within(ratio if pure else ratio**2, 0.005, 0.08)
    part = share * loss
    left -= part
    on_entry = answers.scale(part, of_sum)
    units = answers.units(on_entry, bits)
    off = 2.0 * max(n, 1) * math.sqrt(d) * 2.0**-bits
    mean = answers.noisy("ball-center", shortened(table).sum(axis=0), part, of_sum, units=units, within=off) / n_hat
    if d >= 3:
        noise_square = d * (root * on_entry / n_hat) ** 2
        mean = mean * max(0.0, 1.0 - (d - 2) / d * noise_square / float(mean @ mean))
    center = np.clip(mean, lower, upper)
    farthest = min(
        math.sqrt(sum(max(abs(lower[j] - center[j]), abs(upper[j] - center[j])) ** 2 for j in range(d))),
        1.0 + float(np.linalg.norm(center)),
    )
    # Distances are those of rows rounded to 2^-20.
    distances = np.linalg.norm(np.rint((table - center) * 2.0**20) / 2.0**20, axis=1)

    def rows_beyond(i: int) -> int:
        return int((distances >= r(i)).sum())

    # The first look.
    first = share_for(0.01 * n_low / 4.0)
    if first <= 0.045:
        part = max(first, 0.0025) * loss
        left -= part
        if answers.number("ball-screening", rows_beyond(5), part) > max(beyond, 0.01 * n_low):
            return at_the_bounds(FILLS, "screened")

    # The radius.
    part = search * loss
    left -= part
    if pure:
        preferences = [round(8.0 * math.log(2.0) * min(i, 64) / 24 / part) for i in range(-4, 160, 4)]
        outside = [0] + [rows_beyond(i) for i in range(0, 160, 4)]
        scores = [p - abs(number - beyond) for number, p in zip(outside, preferences, strict=True)]
        place = 4 * answers.choice("ball-radius", scores, part) - 4
    else:
        low, high = 0, 64
        for number in range(1, 7):
            middle = (low + high) // 2
            if answers.number(Message("ball-radius", comparison=number), rows_beyond(3 * middle), part / 6) <= beyond:
                low = middle
            else:
                high = middle
        place = 3 * low
    radius = r(place)
    if radius >= 0.9:
        return at_the_bounds(FILLS, "full")

    # The evidence.
    q = farthest**2 - radius**2
    excess = deviation = 0.0
    if q > 0.0:
        part = min(0.12, 0.02 / radius**2) * loss
        left -= part
        total = sum(share_of(distance, radius, farthest) for distance in distances if distance >= radius)
        excess = q * answers.number("ball-excess", total / 2.0**20, part, bits=20)
        deviation = q * answers.deviation(part, 1.0)
    saved = joint(left).of_gram * math.sqrt(1.0 - radius**4)
    near = 1.25 * radius**2 * beyond
    room = max(0.0, 1.0 - (1.5 * radius / farthest) ** 4)
    usual = max((1.0 + 2.5 * room) * deviation, near) * max(0.0, 1.0 - (radius / 0.9) ** 2)
    if excess > max((3.0 - 2.5 * room) * saved, usual):
        found = at_the_bounds(TOO_FAR, "guard")
        if excess > near + 3.0 * deviation:
            found.warning = (Message("no-ball", spent=0.39),)
        return found
    part = (within(share_for(n_low / 16.0), 0.01, 0.05) if first > 0.045 else 0.01) * loss
    left -= part
    rows_found = answers.number("ball-outside", rows_beyond(place), part)
    if rows_found > 0.5 * n_hat:
        return at_the_bounds(TOO_FEW_HELD, "emptied")
    rows_deviation = answers.deviation(part, 1.0)

    # The release in the ball.
    noise = joint(left, bits, in_ball=True)
    matrix = answers.joint(shortened((table - center) / radius), noise)
    answers.check_all_used()
    found = taken(matrix, noise, radius, {}, center=center)
    failure = 0.05 / 3.0
    reach = -math.log(2.0 * failure) / math.sqrt(2.0) if pure else float(norm.isf(failure))
    return with_bounds(found, noise, radius, (rows_found, rows_deviation), (excess, deviation), q, reach, failure)


def with_bounds(
    found: Found,
    noise: JointNoise,
    radius: float,
    rows: tuple[float, float],
    excess: tuple[float, float],
    q: float,
    reach: float,
    failure: float,
) -> Found:
    """The bounds on what clipping did, and the sentence for the statement."""
    n = max(1.0, found.count - noise.count_reach(failure))
    most_rows = max(0.0, rows[0]) + reach * rows[1]
    most = min(max(0.0, excess[0]) + reach * excess[1], most_rows * max(0.0, q))
    found.diagnostics = {
        "radius": radius,
        "rows_beyond": rows[0],
        "excess_beyond": excess[0],
        "share_beyond_bound": min(1.0, most_rows / n),
        "trace_bias_bound": most / n,
        "mean_bias_bound": most / (2.0 * radius * n),
    }
    share = found.diagnostics["share_beyond_bound"]
    moved = most / (2.0 * radius * n)
    found.said = (Message("rows-clipped-to-ball", radius=radius, outside=share, trace=most / n, mean=moved),)
    return found


def share_of(distance: float, radius: float, farthest: float) -> int:
    """A row's part of the excess, of 2^20: that of the outer edge of its bin."""
    edge = next((r(i - 1) for i in range(200, -26, -1) if r(i) <= distance < r(i - 1)), math.inf)
    whole = farthest**2 - radius**2
    return math.ceil(min(1.0, math.nextafter((min(edge, farthest) ** 2 - radius**2) / whole, math.inf)) * 2**20)


def shortened(rows: np.ndarray) -> np.ndarray:
    """Rows clipped to norm 1."""
    return np.asarray(rows / np.maximum(1.0, np.linalg.norm(rows, axis=1, keepdims=True)))
