"""Noise of counts: discrete Laplace or Gaussian noise on a cell, or on a sum of cells."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.checks import check_probability

_STEPS_PER_SD = 2048
"""Grid points in one SD of a sum: a finer lattice is coarsened, and quantiles rounded up."""
_FAR = 800.0
"""Scales from 0 beyond which the probability of noise is 0 in floating point."""
_SMALL_SCALE = 8.0
"""Lattice units below which a discrete Gaussian's variance is not its parameter's square."""


@dataclass(frozen=True, slots=True)
class CountNoise:
    """Sum of ``cells`` independent draws on the multiples of ``step``.

    P(z) ∝ exp(−|z|/scale) for ``laplace``, exp(−z²/(2·scale²)) for ``gaussian``.

    Examples
    --------
    >>> noise = CountNoise("laplace", scale=1.0)
    >>> round(noise.standard_deviation, 4), noise.half_width(0.95)
    (1.357, 3.0)
    >>> round(noise.of_sum(100).half_width(0.95) / noise.of_sum(100).standard_deviation, 2)
    1.99
    """

    law: str
    scale: float
    step: float = 1.0
    cells: int = 1

    def of_sum(self, cells: int) -> CountNoise:
        """Return the noise of a sum of several such counts."""
        return replace(self, cells=self.cells * cells)

    @property
    def standard_deviation(self) -> float:
        """SD of the noise, in rows."""
        return math.sqrt(self.cells * self._variance_of_cell)

    @property
    def _variance_of_cell(self) -> float:
        if self.law == "laplace":
            tail = math.exp(-self.step / self.scale)
            return 2.0 * tail * (self.step / math.expm1(-self.step / self.scale)) ** 2
        if self.scale >= _SMALL_SCALE * self.step:
            return self.scale**2
        points = np.arange(-100.0, 101.0)
        weights = np.exp(-0.5 * (points * min(self.step / self.scale, _FAR)) ** 2)
        return float(self.step**2 * (weights @ points**2) / weights.sum())

    def half_width(self, level: float) -> float:
        """Return the smallest bound on the noise with probability ``level`` or more, in rows."""
        check_probability("level", level)
        step, within = _distribution(self)
        reached = int(np.searchsorted(within, level))
        return step * (reached + (step != self.step))

    def quantile(self, level: float, *, of: str = "cell") -> float:
        """Return the quantile at ``level``, above one half, in SDs; ``of`` makes no difference."""
        del of
        return self.half_width(2.0 * level - 1.0) / max(self.standard_deviation, 1e-300)


@lru_cache(maxsize=64)
def _distribution(noise: CountNoise) -> tuple[float, FloatArray]:
    """Return a step, and the probabilities of noise of at most 0, 1, 2, … steps."""
    # The characteristic function of one draw on a grid, to the power of the number of draws; the grid is so wide that
    # what wraps around has probability below 1e-18.
    deviation = noise.standard_deviation
    step = max(noise.step, deviation / _STEPS_PER_SD)
    reach = 45.0 * noise.scale + 12.0 * deviation
    size = 1 << max(4, math.ceil(math.log2(2.0 * reach / step + 2.0)))
    distance = np.minimum(np.arange(size), size - np.arange(size)) * min(step / noise.scale, _FAR)
    weights = np.exp(-distance if noise.law == "laplace" else -0.5 * distance**2)
    weights /= weights.sum()
    if noise.cells > 1:
        weights = np.maximum(np.fft.irfft(np.fft.rfft(weights) ** noise.cells, size), 0.0)
    within = weights[: size // 2].copy()
    within[1:] *= 2.0
    within = np.cumsum(within)
    within.setflags(write=False)
    return step, within
