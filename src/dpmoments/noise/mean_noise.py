"""The law of the noise on a mean released alone, coordinate by coordinate."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.values import finite_numbers, is_finite_number, require_kinds, require_known, shown

__all__ = ["MeanNoise"]

LAWS = ("gaussian", "laplace")
ALIKE = 1e-6
"""Laplace scales that differ by less than this share are taken for equal, where the general formula would lose all digits."""
STANDARD_LAPLACE = math.sqrt(0.5)
"""The scale of a Laplace variable of variance 1."""


@dataclass(frozen=True, eq=False)
class MeanNoise:
    """Noise on every coordinate of a mean, in the units in which rows are encoded: that of the last step, and of the count.

    A sum with noise of standard deviation s is divided by the number of rows n. Where n is itself noisy, with standard
    deviation s_n, the mean of the clipped rows, ``m`` away from the last centre, is wrong by (s·Z + m·s_n·Z′)/n to first
    order; Z and Z′ are independent and both of the law named.

    **It is the noise alone.** What clipping moves the mean by is not in it, nor that rows are a sample.

    Attributes
    ----------
    law : {"gaussian", "laplace"}
    deviations : ndarray of shape (d,)
        s/n.
    count_deviations : ndarray of shape (d,)
        |m|·s_n/n; 0 where the number of rows is public.
    clipped : float or None
        Noisy share of the rows that the last step clipped, 0 where none stood out of the noise (of coordinates clipped one by one
        the largest share); None where nothing was spent on it.
    bias_suspected : bool
        Whether, by what the run saw of its rows, clipping may have moved the mean by more than the noise.

    Examples
    --------
    >>> law = MeanNoise("gaussian", np.array([3.0]), np.array([4.0]))
    >>> law.standard_deviations, law.half_widths(0.95).round(3)
    (array([5.]), array([9.8]))
    """

    law: str
    deviations: FloatArray
    count_deviations: FloatArray
    clipped: float | None = None
    bias_suspected: bool = False

    def __post_init__(self) -> None:
        if self.law not in LAWS:
            raise ValueError(f"the noise of a mean is {' or '.join(LAWS)}, not {shown(self.law)}")
        if self.deviations.shape != self.count_deviations.shape or self.deviations.ndim != 1:
            raise ValueError("the noise of a mean has deviations and count_deviations, one of each a coordinate")
        for values in (self.deviations, self.count_deviations):
            if not (np.isfinite(values).all() and (values >= 0.0).all()):
                raise ValueError("the noise of a mean has standard deviations that are no finite numbers, 0 or above")
            values.setflags(write=False)
        if self.clipped is not None and not 0.0 <= self.clipped <= 1.0:
            raise ValueError(f"the noise of a mean has clipped={self.clipped!r}, which is no share of rows")

    @property
    def standard_deviations(self) -> FloatArray:
        """Of the noise of both kinds together, shape (d,)."""
        together: FloatArray = np.hypot(self.deviations, self.count_deviations)
        return together

    def half_widths(self, level: float) -> FloatArray:
        """What the size of the noise on a coordinate stays below with probability ``level``, shape (d,).

        Each coordinate by itself: of d of them together fewer are below.

        Raises
        ------
        ValueError
            If ``level`` is not above 0 and below 1.
        """
        if not (is_finite_number(level) and 0.0 < level < 1.0):
            raise ValueError(f"level={level!r} is a probability, above 0 and below 1")
        if self.law == "gaussian":
            return self.standard_deviations * float(scipy.special.ndtri(0.5 + 0.5 * level))
        larger = np.maximum(self.deviations, self.count_deviations)
        smaller = np.minimum(self.deviations, self.count_deviations)
        pairs = zip(larger.tolist(), smaller.tolist(), strict=True)
        widths: FloatArray = larger * np.array([_laplace_half_width(level, *pair) for pair in pairs])
        return widths

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file; no bit is lost."""
        return {
            "law": self.law,
            "deviations": self.deviations.tolist(),
            "count_deviations": self.count_deviations.tolist(),
            "clipped": self.clipped,
            "bias_suspected": self.bias_suspected,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any], n_features: int) -> MeanNoise:
        """The inverse of :meth:`to_dict`.

        Raises
        ------
        KeyError, TypeError, ValueError
            If an entry is absent, unknown, or not what it must be.
        """
        require_known(content, cls.__dataclass_fields__, "noise")
        require_kinds(content, law=str, bias_suspected=bool)
        clipped = content["clipped"]
        if not (clipped is None or is_finite_number(clipped)):
            raise ValueError(f"the noise of a mean has clipped={shown(clipped)}, which is no share of rows")
        deviations, of_count = (
            finite_numbers(content[name], n_features, name) for name in ("deviations", "count_deviations")
        )
        return cls(content["law"], deviations, of_count, clipped, content["bias_suspected"])


def _laplace_half_width(level: float, larger: float, smaller: float) -> float:
    """Below which |X + Y| is with probability ``level``, in units of ``larger``.

    X and Y are independent Laplace variables of these standard deviations. For scales a > b,
    P(|X + Y| > t) = (a²e^{−t/a} − b²e^{−t/b})/(a² − b²), and (1 + t/(2a))e^{−t/a} for a = b. Both are below 2e^{−t/(2a)}, which
    bounds the search.

    Examples
    --------
    >>> round(_laplace_half_width(0.95, 1.0, 0.0), 4), round(math.log(20.0) / math.sqrt(2.0), 4)
    (2.1183, 2.1183)
    """
    left = 1.0 - level
    ratio = smaller / larger if larger > 0.0 else 0.0
    if ratio == 0.0:
        return -math.log(left) * STANDARD_LAPLACE

    def excess(t: float) -> float:
        """Beyond t of the larger scale, less what may be."""
        if ratio > 1.0 - ALIKE:
            return (1.0 + 0.5 * t) * math.exp(-t) - left
        return (math.exp(-t) - ratio * ratio * math.exp(-t / ratio)) / (1.0 - ratio * ratio) - left

    found = scipy.optimize.brentq(excess, 0.0, 2.0 * math.log(2.0 / left) + 1.0)
    return float(found) * STANDARD_LAPLACE
