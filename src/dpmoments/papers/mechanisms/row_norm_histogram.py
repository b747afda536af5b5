"""Private histogram of row norms: the clipping radius chosen from it, and warnings.

Derivations: ``docs/evidence/derivations/means.md``, "What a release says against itself".
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy

from dpmoments.base.arrays import FloatArray
from dpmoments.base.message import Message, Query
from dpmoments.mechanisms.lattice_noise import with_gaussian_noise
from dpmoments.privacy.curves import zcdp_noise_scale
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.sensitivity import histogram_l2
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


def noisy_norm_histogram(
    rows: Rows, privacy_filter: PrivacyFilter, what: Query, rho: float, norm: TransformedNorm, edges: FloatArray
) -> NormHistogram:
    """Return a histogram of a norm of rows plus discrete Gaussian noise on every bin.

    **Privacy.** ρ-zCDP: a row is in one bin, so the counts move by at most 1 (add-remove) or √2 (replace-one) in ℓ2. The
    computed norm of a row depends on that row only, to the last bit, so a row cannot move another one to a different bin.
    """
    exact = rows.histogram(norm, edges)
    sensitivity = histogram_l2(rows.neighbors)
    scale = zcdp_noise_scale(rho, sensitivity.value)
    query = np.concatenate([[exact.below], exact.counts, [exact.above]])
    counts = with_gaussian_noise(privacy_filter, what, query, sensitivity, scale, bits=0)
    return NormHistogram(np.asarray(edges), counts, scale)


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
