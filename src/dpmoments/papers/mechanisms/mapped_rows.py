"""Private questions about mapped rows w = A(x − c): norms, sums and moments; warnings.

Derivations: ``docs/evidence/derivations/means.md``, "What a release says against itself".
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.base.message import Message, Query
from dpmoments.base.values import FloatArray
from dpmoments.mechanisms.additive import augmented_gram, choose_augmentation, choose_bits
from dpmoments.mechanisms.base import Plan
from dpmoments.mechanisms.lattice_noise import (
    COUNT_SHARE,
    count_scale,
    noisy_count,
    off_diagonal,
    split_for_count,
    with_gaussian_noise,
)
from dpmoments.mechanisms.shape import Arithmetic, MomentShape
from dpmoments.moments.law import with_rounding
from dpmoments.moments.models import MeanModel
from dpmoments.papers.models import LastStepModel
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.curves import zcdp_noise_scale
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.receipt import Receipt
from dpmoments.privacy.sensitivity import Sensitivity, gram_frobenius, histogram_l2, row_sum_l2, sum_and_gram_frobenius
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.kernel import transformed_norms
from dpmoments.rows.rows import Rows

_FALSE_BIN = 1e-6
"""Bound on the probability that noise makes some empty bin count as occupied."""
FALSE_TAIL = 1e-4
"""Smaller bound for a tail, where a missed bin costs more than a false one."""


@dataclass(frozen=True, slots=True, eq=False)
class TransformedNorm:
    """Row statistic ‖linear·(x − center)‖, resolved to 2^−20 of ``resolution``, or of itself.

    With ``apart`` it is negative for rows with more than ``share`` of the squared norm in ‖apart·(x − center)‖².
    """

    center: FloatArray
    linear: FloatArray
    resolution: float
    apart: FloatArray | None = None
    share: float = 1.0

    def __call__(self, block: FloatArray) -> FloatArray:
        """Return norms of a batch of rows, shape (m, d) → (m,)."""
        norms = transformed_norms(block, radius=self.resolution, center=self.center, linear=self.linear)
        if self.apart is None:
            return norms
        part = transformed_norms(block, radius=self.resolution, center=self.center, linear=self.apart)
        return np.where(part > math.sqrt(self.share) * norms, -norms, norms)


@dataclass(frozen=True, slots=True, eq=False)
class NormHistogram:
    """Noisy counts of rows by norm."""

    edges: FloatArray  # (m,), increasing
    # (m + 1,), noisy numbers of rows below the first edge, between consecutive edges, and at or above the last
    counts: FloatArray
    noise_scale: float  # noise SD of a count
    false_bin: float = _FALSE_BIN  # bound on the probability that noise makes some empty bin count as occupied
    pure: bool = False  # true for Laplace noise, False for normal noise

    @property
    def occupied(self) -> FloatArray:
        """Noisy counts of bins that hold rows; 0 for bins whose count noise could explain.

        Groups of two, four and eight neighboring bins, none of them occupied so far, are tested by their sum, which is
        then spread evenly over the group: rows of a long thin tail can show in the sum though in no single bin. Shape
        (m + 1,).
        """
        threshold = self.least_seen
        result = np.where(self.counts > threshold, self.counts, 0.0)
        for width in (2, 4, 8):
            whole = len(result) // width * width
            totals = self.counts[:whole].reshape(-1, width).sum(axis=1)
            groups = result[:whole].reshape(-1, width)
            seen = (totals > threshold * math.sqrt(width)) & ~groups.any(axis=1)
            groups[seen] = totals[seen, None] / width
        return result

    @property
    def least_seen(self) -> float:
        """Number of rows in one bin that noise does not explain."""
        tail = self.false_bin / (2 * len(self.counts))
        return self.noise_scale * (
            -math.log(2.0 * tail) / math.sqrt(2.0) if self.pure else -float(scipy.special.ndtri(tail))
        )

    @property
    def typical_norms(self) -> FloatArray:
        """Representative norm of each bin."""
        # Its geometric middle, or its edge for the first and last bin. Shape (m + 1,).
        middle = np.sqrt(self.edges[:-1] * self.edges[1:])
        return np.concatenate([self.edges[:1], middle, self.edges[-1:]])

    def share_above(self, radius: float) -> float:
        """Estimate the fraction of rows of norm above ``radius``."""
        return self._mean(self.typical_norms > radius)

    def mean_excess(self, radius: float) -> float:
        """Estimate the mean of (‖w‖² − radius²)₊."""
        return self._mean(np.maximum(self.typical_norms**2 - radius**2, 0.0))

    def _mean(self, of_bins: npt.NDArray[Any]) -> float:
        """Return the mean over the rows of occupied bins; 0 without any."""
        occupied = self.occupied
        total = float(occupied.sum())
        return 0.0 if total == 0 else float(of_bins @ occupied) / total

    def best_radius(self, power: int, noise_error: float, bias_weight: float) -> float | None:
        """Return the clipping radius that balances noise against bias; None if no bin is occupied.

        Minimizes (noise_error·r^p)² + (bias_weight·E(‖w‖^p − r^p)₊)² over the occupied bins, p = ``power``: 1 for
        means, 2 for second moments.
        """
        occupied = self.occupied
        total = float(occupied.sum())
        if total == 0:
            return None
        steps = np.linspace(0.0, 1.0, 4, endpoint=False)
        logs = np.log(self.edges)
        between = (logs[:-1, None] + np.diff(logs)[:, None] * steps).ravel()
        candidates = np.exp(np.append(between, logs[-1]))
        present = occupied > 0
        excess = self.typical_norms[present][None, :] ** power - candidates[:, None] ** power
        bias = bias_weight * (np.maximum(excess, 0.0) @ occupied[present]) / total
        loss = (noise_error * candidates**power) ** 2 + bias**2
        return float(candidates[int(np.argmin(loss))])


def norm_edges(typical: float, *, octaves: int = 24) -> FloatArray:
    """Return edges from typical·2^−octaves to typical·2^octaves."""
    # Eight bins per octave within a factor of 2, else two.
    outer = np.arange(2, 2 * octaves + 1) / 2.0
    inner = np.arange(-7, 8) / 8.0
    exponents = np.concatenate([-outer[::-1], inner, outer])
    return np.asarray(typical * np.exp2(exponents))


def tail_edges(radius: float, *, octaves: int = 24) -> FloatArray:
    """Return edges for norms beyond ``radius``: four, two and then one bin per octave.

    Fewer bins than :func:`norm_edges` has: noise has fewer to look occupied in.
    """
    exponents = np.concatenate([np.arange(4) / 4.0, np.arange(2, 12) / 2.0, np.arange(6, octaves + 1)])
    return np.asarray(radius * np.exp2(exponents))


def resolution(edges: FloatArray) -> float:
    """Return the radius of which norms are computed to 2^-20."""
    # Larger norms to 2^-20 of themselves.
    return float(min(max(edges[0] * 2.0**12, 1e-140), 1e140))


# One step of the recursive estimators.

_MIN_SHARE = 1e-4
"""Min share of ρ of a step, for runs whose shares are not known beforehand."""


@dataclass(frozen=True, slots=True)
class NoisyStep:
    """Noisy sums of the clipped rows w, in the units of w."""

    gram: FloatArray  # (k, k): Σ w wᵀ plus symmetric normal noise
    sum: FloatArray | None  # (k,) or None: Σ w plus normal noise, if requested
    gram_scale: float  # noise SD of a diagonal entry of `gram` (1/√2 of it off the diagonal)
    sum_scale: float  # noise SD of an entry of `sum`; 0 without it

    def model(self, linear: FloatArray, center: FloatArray, count_scale: float) -> LastStepModel:
        """Return the noise model of a run that ends with this step."""
        # `count_scale` is the row count's noise SD.
        return LastStepModel(
            n_features=len(center),
            count_scale=count_scale,
            linear=linear,
            center=center,
            step_gram=self.gram,
            step_sum=self.sum,
            gram_scale=self.gram_scale,
            sum_scale=self.sum_scale,
        )


@dataclass(frozen=True)
class RecursivePlan(Plan):
    """Plan of a mechanism that releases its last step."""

    rho: float  # budget of all draws

    arithmetic: ClassVar[Arithmetic] = Arithmetic.EXACT_LATTICE

    @property
    def expected_count_error(self) -> float:
        return first_count_error(self.rho, self.shape.n_rows is None)

    def model_entries(self, diagnostics: Mapping[str, Any], receipt: Receipt) -> Mapping[str, Any]:
        entries = {"n_features": self.shape.n_features, "count_scale": self.expected_count_error}
        return {"name": LastStepModel.name, **entries, "count_is_laplace": False}


@dataclass(frozen=True, slots=True)
class StepNoise:
    """Exact isotropic Gaussian noise for the moments of rows clipped to the unit ball.

    It is made without data. The count is known when a step is made, so its entry gets no noise and costs nothing.
    """

    augmentation: float  # w of the augmented rows (w, x); 0 for the Gram matrix only
    sensitivity: Sensitivity
    noise_scale: float  # standard deviation σ on the diagonal; `off_diagonal_scale`, σ/√2, off it
    off_diagonal_scale: float
    bits: int  # lattice exponent

    @classmethod
    def calibrated(cls, n_outputs: int, rho: float, neighbors: Neighbors, *, mean: bool) -> StepNoise:
        """Return noise that costs ρ."""
        augmentation = _step_augmentation(n_outputs, neighbors, mean=mean)
        sensitivity = sum_and_gram_frobenius(neighbors, n_outputs, augmentation)
        scale = zcdp_noise_scale(rho, sensitivity.value)
        return cls(augmentation, sensitivity, scale, off_diagonal(scale), choose_bits(scale, n_outputs))


@lru_cache(maxsize=64)
def _step_augmentation(n_outputs: int, neighbors: Neighbors, *, mean: bool) -> float:
    """Return the appended constant w of a step; it does not depend on the step's budget."""

    def sensitivity(w: float) -> float:
        return sum_and_gram_frobenius(neighbors, n_outputs, w).value

    return choose_augmentation(MomentShape(n_outputs, mean=mean), sensitivity, noisy_count=False)


@dataclass(frozen=True, slots=True)
class ClippedSums:
    """Noisy sums of clipped rows w, noise SD ``sum_scale``, and of their w_j² if asked for."""

    sum: FloatArray
    sum_scale: float
    rounding: float  # largest error of an entry of a row
    squares: FloatArray | None = None
    squares_scale: float = 0.0


@dataclass(frozen=True, slots=True, eq=False)
class MappedRows:
    """Rows w = linear·(x − center) of a table, and the filter that answers questions about them.

    ``center``, ``linear``, of shape (k, d), and clipping radii may depend on the rows only through earlier noisy outputs.
    Clipped rows are rounded to the lattice of spacing radius·2^−bits, and their norms are checked there in exact integers, so
    that sums are exact integers of known sensitivity.
    """

    rows: Rows
    privacy_filter: PrivacyFilter
    center: FloatArray
    linear: FloatArray

    def norms(self, what: Query, rho: float, edges: FloatArray) -> NormHistogram:
        """Return a histogram of ‖w‖ plus discrete Gaussian noise on every bin.

        **Privacy.** ρ-zCDP: a row is in one bin, so the counts move by at most 1 (add-remove) or √2 (replace-one) in ℓ2. The
        computed norm of a row depends on that row only, to the last bit, so a row cannot move another one to a different bin.
        """
        return self._histogram(what, rho, TransformedNorm(self.center, self.linear, resolution(edges)), edges)

    def _histogram(self, what: Query, rho: float, norm: TransformedNorm, edges: FloatArray) -> NormHistogram:
        exact = self.rows.histogram(norm, edges)
        sensitivity = histogram_l2(self.rows.neighbors)
        scale = zcdp_noise_scale(rho, sensitivity.value)
        query = np.concatenate([[exact.below], exact.counts, [exact.above]])
        counts = with_gaussian_noise(self.privacy_filter, what, query, sensitivity, scale, bits=0)
        return NormHistogram(np.asarray(edges), counts, scale)

    def tails(
        self, what: Query, rho: float, edges: FloatArray, apart: FloatArray
    ) -> tuple[NormHistogram, NormHistogram]:
        """Return two histograms of long rows from one draw: those that ``apart`` accounts for last.

        A row is in the second if ‖apart·(x − center)‖² has more of its squared norm than halfway from its share by dimension
        to 1. The first bin of the first holds all rows shorter than edges[0]; the one of the second is empty.
        """
        share, m = 0.5 * (1.0 + len(apart) / len(self.linear)), len(edges)
        norm = TransformedNorm(self.center, self.linear, resolution(edges), apart if len(apart) else None, share)
        signed = np.concatenate([-edges[::-1], edges]) if len(apart) else edges
        both = self._histogram(what, rho, norm, signed)
        if not len(apart):
            empty = NormHistogram(edges, np.zeros(m + 1), both.noise_scale, FALSE_TAIL)
            return replace(both, false_bin=FALSE_TAIL), empty
        far_apart = np.concatenate([[0.0], both.counts[:m][::-1]])
        by_others, by_apart = (
            NormHistogram(edges, counts, both.noise_scale, FALSE_TAIL) for counts in (both.counts[m:], far_apart)
        )
        return by_others, by_apart

    def moments(self, step: Mapping[str, int | bool], rho: float, radius: float, *, mean: bool) -> NoisyStep:
        """Release the moments of w clipped to ‖w‖ ≤ radius.

        **Privacy.** ``rho``. ``step`` names the step in the receipt: ``step``, ``round`` or ``last``.
        """
        noise = StepNoise.calibrated(len(self.linear), rho, self.rows.neighbors, mean=mean)
        moments = self.rows.moments(self.center, self.linear, radius, bits=noise.bits)
        weight = noise.augmentation
        values = with_gaussian_noise(
            self.privacy_filter,
            Message("sum-and-gram" if weight else "gram", **step),
            augmented_gram(moments, weight, count=False),
            noise.sensitivity,
            noise.noise_scale,
            bits=2 * noise.bits,
            off_diagonal_scale=noise.off_diagonal_scale,
        )
        gram_scale = noise.noise_scale * radius**2
        if not weight:
            return NoisyStep(values * radius**2, None, gram_scale, 0.0)
        sum_scale = noise.off_diagonal_scale * radius / weight
        gram = np.ascontiguousarray(values[1:, 1:]) * radius**2
        return NoisyStep(gram, values[0, 1:] * (radius / weight), gram_scale, sum_scale)

    def sums(self, step: int, rho: float, radius: float, squares_rho: float = 0.0) -> ClippedSums:
        """Release Σw of w clipped to ‖w‖ ≤ radius; with ``squares_rho``, also the sums of w_j².

        **Privacy.** (rho + squares_rho)-zCDP. Σw moves by at most radius (add-remove) or 2·radius. The squares are the
        diagonal of the Gram matrix, so they move by no more in ℓ2 than it does in Frobenius norm.
        """
        neighbors, k = self.rows.neighbors, len(self.linear)
        of_sum, of_squares = row_sum_l2(neighbors), gram_frobenius(neighbors, k)
        scale = zcdp_noise_scale(rho, of_sum.value)
        squares_scale = zcdp_noise_scale(squares_rho, of_squares.value) if squares_rho else 0.0
        bits = choose_bits(max(scale, squares_scale), k)
        moments = self.rows.moments(self.center, self.linear, radius, bits=bits)
        what = Message("sum", step=step)
        total = with_gaussian_noise(self.privacy_filter, what, moments.sum, of_sum, scale, bits=bits) * radius
        rounding = 0.5 * radius * 2.0**-bits
        if not squares_rho:
            return ClippedSums(total, scale * radius, rounding)
        exact, what = np.diagonal(moments.gram), Message("squares", step=step)
        squares = with_gaussian_noise(self.privacy_filter, what, exact, of_squares, squares_scale, bits=2 * bits)
        return ClippedSums(total, scale * radius, rounding, squares * radius**2, squares_scale * radius**2)


def count_first(rows: Rows, privacy_filter: PrivacyFilter, rho: float, public_rows: int | None) -> tuple[float, float]:
    """Return the number of rows, and the remaining ρ."""
    # All of it if the number is public, else all but COUNT_SHARE.
    if public_rows is not None:
        return float(public_rows), rho
    for_count, _ = split_for_count(PrivacyBudget.zcdp(rho), COUNT_SHARE)
    return noisy_count(rows.count(), privacy_filter, for_count, rows.neighbors), left_after_count(rho)


def left_after_count(rho: float) -> float:
    """Return the ρ that remains after :func:`count_first` for a private number of rows."""
    return split_for_count(PrivacyBudget.zcdp(rho), COUNT_SHARE)[1].rho


def first_count_error(rho: float, private: bool) -> float:
    """Return the noise SD of :func:`count_first`; 0 if the number of rows is public."""
    return count_scale(split_for_count(PrivacyBudget.zcdp(rho), COUNT_SHARE)[0]) if private else 0.0


def require_workable_budget(rho: float, shares: Sequence[float] | None) -> None:
    """Raise for a budget (and shares, if known) whose noise exceeds the lattice."""
    # Before any row is read.
    smallest = rho * (min(shares) if shares is not None else _MIN_SHARE)
    # 6 is a little above twice the largest sensitivity of a step, 2√2 for rows augmented by w = 1.
    choose_bits(zcdp_noise_scale(smallest, 6.0))


# Noise distribution of a mean, from its last step and the count: noisy values and public numbers only.


def noise_of_last_step(
    back: FloatArray,
    sums: ClippedSums,
    count_error: float,
    n_rows: float,
    *,
    clipped: float | None,
    bias_suspected: bool,
) -> MeanModel:
    """Return the noise of center + back·m̂.

    m̂ = ``sums.sum``/n is the noisy mean of w = back⁻¹·(x − center) clipped to a ball.

    ``clipped`` is the noisy fraction of clipped rows (None if not queried). ``bias_suspected`` is True if the norms
    seen have heavier tails than normal rows, or too few were seen: clipping is planned to keep the mean of normal rows, and
    moves others as far as noise does, or further.
    """
    return MeanModel(
        "gaussian",
        with_rounding(
            sums.sum_scale / n_rows * np.sqrt((back * back).sum(axis=1)), sums.rounding * np.abs(back).sum(axis=1)
        ),
        np.abs(back @ (sums.sum / n_rows)) * (count_error / n_rows),
        clipped=clipped,
        bias_suspected=bias_suspected,
    )


# What a run says against itself.

_FALSE_ALARM = 1e-3
"""Probability that noise raises one kind of warning in a run, all coordinates together."""
MAX_CLIPPED = 0.75
"""Max plausible clipped part: half of normal rows within the bounds, and room for noise."""
MAX_SEEN = 0.75
"""Fraction of rows that a histogram must see to show how heavy their tails are."""
NOISE_DECIDES = 0.5
"""RMS noise over the rows' RMS distance from their mean, above which noise dominates."""
FROM_EDGE = 4.0
"""SDs by which neither noise of an entry exceeds a radius, nor its norm the norm's RMS."""


def noise_margin(standard_deviation: float, trials: int, *, pure: bool) -> float:
    """Return the margin that noise exceeds in none of ``trials`` draws."""
    # It fails with probability _FALSE_ALARM.
    tail = _FALSE_ALARM / trials
    return standard_deviation * (-math.log(2.0 * tail) / math.sqrt(2.0) if pure else -float(scipy.special.ndtri(tail)))


def clipped_norm(histogram: NormHistogram, radius: float) -> float | None:
    """Return the RMS of norms clipped at ``radius``, at upper bin edges."""
    # None if no bin holds more than noise.
    occupied = histogram.occupied
    total = float(occupied.sum())
    if total == 0.0:
        return None
    relative = np.minimum(np.append(histogram.edges, math.inf) / radius, 1.0)
    return radius * math.sqrt(float(occupied @ relative**2) / total)


def spread_about_mean(norm: float, moved: float, noise: float) -> float:
    """Return the rows' RMS distance from their mean."""
    # Their RMS distance from a point `moved` ± `noise` away from it is `norm`.
    ratio, doubt = moved / norm, noise / norm  # of squares, norm² may be beyond floating point
    return norm * math.sqrt(max(1.0 - max(ratio**2 - doubt**2, 0.0), 0.0))


def warning_of(code: str, names: Sequence[str], marked: Sequence[bool], **facts: Any) -> list[Message]:
    """Return the warning that names the marked features; none if no feature is marked."""
    chosen = tuple(name for name, one in zip(names, marked, strict=True) if one)
    return [Message(code, **facts, names=chosen)] if chosen else []
