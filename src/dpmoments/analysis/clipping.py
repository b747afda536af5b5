"""Bounds on what clipping rows to a ball hides, column by column.

``docs/evidence/derivations/clipped-rows.md``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
import scipy

from dpmoments.analysis.functionals import shows_shares
from dpmoments.analysis.normal_equations import NormalEquations
from dpmoments.analysis.released import Moments
from dpmoments.foundation.arrays import BoolArray, FloatArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.values import is_finite_number, no_less
from dpmoments.messages.message import Message
from dpmoments.schema.constraints import Constraints
from dpmoments.schema.encoding import farthest_distance

NAMED_RATIO = 1.3
"""Name a column if the table's SD may be more than this multiple of the one shown."""
_MAX_OUTSIDE = 0.5
"""A ball with more than this fraction of rows outside hides much: no search wants it."""
_SKEWED = 1.4
"""A column is skewed if its mean is nearer to a bound than this many SDs.

At their lower end.
"""
_GRAM_LEVEL = 0.95
"""One-sided confidence of the upper end of the clipped rows' sums of squares."""


@dataclass(frozen=True, eq=False)
class ClippingBounds:
    """Largest differences between the moments of a table and of its clipped rows.

    About the center, in encoded units.
    """

    excess: float  # clipped excess Σ(‖u‖² − r²), at most
    squares: FloatArray  # (d,), increase of Σu_j², at most: L_j
    sum_below: FloatArray  # with `sum_above`: (d,), decrease and increase of Σu_j, at most
    sum_above: FloatArray
    sum_norm: float  # norm of the change of Σu, at most

    @classmethod
    def of_ball(
        cls,
        radius: float,
        max_rows: float,
        max_excess: float,
        box: tuple[FloatArray, FloatArray],
        farthest: float,
        clipped_squares: FloatArray,
    ) -> Self:
        """Return the bounds that hold for every table."""
        # `max_rows` is K and `max_excess` E, the number of rows outside the ball and their clipped excess; `box` holds
        # the columns' bounds less the center.
        below, above = np.maximum(-box[0], 0.0), np.maximum(box[1], 0.0)
        if max_rows <= 0.0 or max_excess <= 0.0:
            none = np.zeros(len(below))
            return cls(0.0, none, none, none, 0.0)
        square = radius**2
        share = max_excess / max_rows
        norm = np.sqrt(square + share)
        # all three functions of a row's excess are concave, so that equal shares are the worst case
        squares = max_rows * share * np.minimum(1.0, np.maximum(below, above) ** 2 / norm**2)
        most = max(min(farthest**2, square + max_excess) - square, 0.0)
        squares = np.minimum(squares, np.maximum(clipped_squares, 0.0) * most / square)
        sum_below, sum_above = (
            max_rows * np.minimum(norm - radius, side * (1.0 - radius / norm)) for side in (below, above)
        )
        return cls(max_excess, squares, sum_below, sum_above, max_rows * float(norm - radius))

    def variance_change(self, mean: FloatArray, n_rows: float) -> tuple[FloatArray, FloatArray]:
        """Return by how much the table's variances are below and above the clipped rows', at most."""
        # `mean` is the clipped rows', about the center.
        least, most = -self.sum_below / n_rows, self.sum_above / n_rows
        nearest = np.clip(-mean, least, most)
        fall = np.maximum(2.0 * mean * least + least**2, 2.0 * mean * most + most**2)
        return np.maximum(fall, 0.0), self.squares / n_rows - 2.0 * mean * nearest - nearest**2

    def product_range(self, left: FloatArray, right: FloatArray) -> tuple[float, float]:
        """Return the lowest and highest change of leftᵀ G right, G the moments of (1, u)."""
        # Vectors of shape (d + 1,).
        weights, one, other = left[0] * right[1:] + right[0] * left[1:], left[1:], right[1:]
        up, down = (
            float(np.maximum(sign * weights, 0.0) @ self.sum_above + np.maximum(-sign * weights, 0.0) @ self.sum_below)
            for sign in (1.0, -1.0)
        )
        reach = self.sum_norm * float(np.linalg.norm(weights))
        middle, size = float(one @ other), float(np.linalg.norm(one) * np.linalg.norm(other))
        roots = np.sqrt(self.squares)
        most = float((np.abs(one) @ roots) * (np.abs(other) @ roots))
        low = max(self.excess * (middle - size) / 2.0, -most) - min(down, reach)
        return low, min(self.excess * (middle + size) / 2.0, most) + min(up, reach)

    def carried(self, matrix: FloatArray) -> Self:
        """Return the bounds for linear combinations of the features, a matrix of shape (k, d)."""
        # By Cauchy's inequality for squares, and the largest factor by which the matrix lengthens a combination
        # (`docs/evidence/derivations/missing-values.md`, section 6).
        size = float(np.linalg.norm(matrix, 2))
        up, down = np.maximum(matrix, 0.0), np.maximum(-matrix, 0.0)
        return replace(
            self,
            excess=self.excess * size**2,
            squares=(np.abs(matrix) @ np.sqrt(self.squares)) ** 2,
            sum_below=up @ self.sum_below + down @ self.sum_above,
            sum_above=up @ self.sum_above + down @ self.sum_below,
            sum_norm=self.sum_norm * size,
        )

    def of_features(self, features: Sequence[int]) -> Self:
        """Return the bounds of some features."""
        chosen = list(features)
        return replace(
            self, squares=self.squares[chosen], sum_below=self.sum_below[chosen], sum_above=self.sum_above[chosen]
        )

    def correlation_ends(
        self, ends: tuple[FloatArray, FloatArray], variances: FloatArray, mean: FloatArray, n_rows: float
    ) -> tuple[FloatArray, FloatArray]:
        """Return the lowest and highest correlations of the table, shape (d, d) each."""
        # `ends` are intervals of the clipped rows' correlations; `variances` and `mean` are theirs, the mean about the
        # center.
        shift = np.maximum(self.sum_below, self.sum_above) / n_rows
        size = np.abs(mean)
        own = 2.0 * size * shift + shift**2
        cross = np.outer(size, shift) + np.outer(shift, size) + np.outer(shift, shift)
        least, most = np.maximum(variances - own, 0.0), variances + 2.0 * size * shift
        low, high = ends
        root = np.sqrt(np.outer(variances, variances))
        top = _highest(_of_variances(high * root + cross, least, most), self.squares / n_rows, least)
        bottom = -_highest(_of_variances(-low * root + cross, least, most), self.squares / n_rows, least)
        return np.clip(bottom, -1.0, low), np.clip(top, high, 1.0)


def _of_variances(covariance: FloatArray, least: FloatArray, most: FloatArray) -> FloatArray:
    """Return the largest correlation that a covariance makes with variances between these."""
    # 1 if one of them may be 0.
    smallest, largest = np.sqrt(np.outer(least, least)), np.sqrt(np.outer(most, most))
    root = np.where(covariance > 0.0, smallest, largest)
    result = np.divide(covariance, root, out=np.ones_like(covariance), where=root > 0.0)
    return np.clip(np.where(smallest > 0.0, result, 1.0), -1.0, 1.0)


def _highest(correlation: FloatArray, added: FloatArray, least: FloatArray) -> FloatArray:
    """Return the maximum of (r + ab)/√((1 + a²)(1 + b²)) over a ≤ A_j and b ≤ A_k."""
    # A_j² = L_j/(n S_jj).
    size = np.sqrt(np.divide(added, least, out=np.full_like(added, np.inf), where=least > 0.0))
    first, second = np.broadcast_arrays(size[:, None], size[None, :])
    positive = correlation > 0.0
    slope = np.where(positive, correlation, 1.0)
    with np.errstate(invalid="ignore", over="ignore"):
        a = np.where(positive, np.minimum(first, second / slope), first)
        b = np.where(positive, np.minimum(second, first / slope), second)
        result = (correlation + a * b) / np.sqrt((1.0 + a**2) * (1.0 + b**2))
    return np.where(np.isfinite(a) & np.isfinite(b), np.nan_to_num(result, nan=1.0), 1.0)


@dataclass(frozen=True, eq=False)
class TableBounds:
    """Limits on the columns of the table itself if its rows were clipped to a ball.

    In the table's units.

    They combine bounds that hold with 95 % confidence each, and leave out the noise.
    """

    share: float  # fraction of the rows that were clipped, at most
    clearly: bool  # true if the clipped excess is distinguishable from noise, or most rows lie outside the ball
    n_rows: float
    bounds: ClippingBounds
    # with `center_mean`: (d,), of the clipped rows before repair, the mean about the center, both in encoded units
    variance: FloatArray
    center_mean: FloatArray
    # with `mean_above`: (d,), how far the table's mean is below and above the mean of the clipped rows, at most
    mean_below: FloatArray
    mean_above: FloatArray
    variance_below: FloatArray  # with `variance_above`: (d,), the same for variances
    variance_above: FloatArray
    # (d,), standard deviations of the table over those of the clipped rows, at most, noise included; 0 if the latter
    # are noise
    largest_ratio: FloatArray
    skewed: BoolArray  # (d,), numbers so near to one bound that a long tail towards the other is likely

    @property
    def likely(self) -> BoolArray:
        """True for columns of which clipping is likely to hide much, shape (d,)."""
        # A bound that is wide only because of noise makes no column likely. The description compares the bound with the
        # standard deviation that it shows.
        return np.asarray((self.largest_ratio > NAMED_RATIO) & (self.skewed | self.clearly))

    @property
    def description(self) -> str:
        """Sentence on clipping: answers are about the clipped rows."""
        share = f"{float(no_less(100.0 * self.share, 2)):g} %"
        return (
            f"Answers are about the clipped rows: at most {share} of the rows were clipped to a ball "
            "(95 % confidence). Intervals do not include the effect of clipping; the description of the features limits it."
        )

    @classmethod
    def of(cls, release: Moments) -> TableBounds | None:
        """Return the limits; None if they are unknown."""
        # No row was clipped to a ball, or nothing was spent on knowing how many were.
        names = "radius", "share_beyond_bound", "trace_bias_bound", "excess_beyond", "rows_beyond"
        stated = [release.diagnostics.get(name) for name in names]
        center, law = release.center, release.noise
        if center is None or law is None or release.noisy_sum is None or release.schema.row_norm is None:
            return None
        if not all(map(is_finite_number, stated)):
            return None
        radius, share, trace, excess, rows = (float(value) for value in stated)  # type: ignore[arg-type]
        if not (radius > 0.0 and share > 0.0 and trace > 0.0):
            return None
        n_rows, scale, gram = float(release.n_rows), release.encoding.scale, np.diag(release.noisy_gram)
        lower, upper = release.encoding.values_in_ball(*release.schema.feature_bounds)
        noise = np.sqrt(np.diag(law.cell_variances())[1:])
        bounds = _bounds_of_drawn(release, radius, share * n_rows, trace * n_rows)
        mean = np.clip(release.noisy_sum / n_rows, lower - center, upper - center)
        variance = gram / n_rows - mean**2
        fall, rise = bounds.variance_change(mean, n_rows)
        value, below, above = center + mean, bounds.sum_below / n_rows, bounds.sum_above / n_rows
        shares = _shown_by_shares(release)
        low, high = np.maximum(value - below, lower), np.minimum(value + above, upper)
        variance = np.where(shares, (upper - value) * (value - lower), variance)
        ends = np.minimum((upper - low) * (low - lower), (upper - high) * (high - lower))
        fall = np.where(shares, np.maximum(variance - ends, 0.0), fall)
        rise = np.clip(largest_variance(low, high, (lower, upper)) - variance, 0.0, rise)
        shown = np.sqrt(np.maximum(variance, 0.0))
        own_noise = np.divide(noise / n_rows, 2.0 * shown, out=np.full_like(shown, np.inf), where=shown > 0.0)
        most = np.sqrt((shown + float(scipy.special.ndtri((1.0 + _GRAM_LEVEL) / 2.0)) * own_noise) ** 2 + rise)
        least = shown - float(scipy.special.ndtri(_GRAM_LEVEL)) * own_noise
        skewed = (np.minimum(value - lower, upper - value) < _SKEWED * least) & ~shares
        return cls(
            share=share,
            n_rows=n_rows,
            bounds=bounds,
            variance=variance,
            center_mean=mean,
            mean_below=scale * below,
            mean_above=scale * above,
            variance_below=scale**2 * fall,
            variance_above=scale**2 * rise,
            clearly=2.0 * excess > bounds.excess or rows > _MAX_OUTSIDE * n_rows,
            largest_ratio=np.where(own_noise < shown, most / np.maximum(shown, np.finfo(float).tiny), 0.0),
            skewed=skewed,
        )

    def of_features(self, features: Sequence[int]) -> Self:
        """Return the limits of some features."""
        chosen = list(features)
        names = (
            "variance",
            "center_mean",
            "mean_below",
            "mean_above",
            "variance_below",
            "variance_above",
            "largest_ratio",
            "skewed",
        )
        parts = {name: getattr(self, name)[chosen] for name in names}
        return replace(self, bounds=self.bounds.of_features(chosen), **parts)

    def correlation_ends(
        self, lower: FloatArray, upper: FloatArray, features: Sequence[int]
    ) -> tuple[FloatArray, FloatArray]:
        """Return limits of the correlations of the table, shape (k, k) each."""
        # From intervals for the clipped rows.
        part = self.of_features(features)
        variances = np.maximum(part.variance, 0.0)
        return part.bounds.correlation_ends((lower, upper), variances, part.center_mean, self.n_rows)


def largest_variance(low: FloatArray, high: FloatArray, box: tuple[FloatArray, FloatArray]) -> FloatArray:
    """Return the largest variance of values in the box with such a mean, shape (d,).

    The mean is between ``low`` and ``high``.

    Bhatia & Davis (2000): (upper − mean)(mean − lower), which a column of two values attains.
    """
    lower, upper = box
    mean = np.clip((lower + upper) / 2.0, low, high)
    return np.asarray((upper - mean) * (mean - lower))


def _bounds_of_drawn(release: Moments, radius: float, max_rows: float, max_excess: float) -> ClippingBounds:
    """Return the bounds for the drawn features, carried to those of the release."""
    drawn = release.as_drawn
    center, law = drawn.center, drawn.noise
    assert center is not None
    assert law is not None
    lower, upper = drawn.encoding.values_in_ball(*drawn.schema.feature_bounds)
    if release.numbers_alone:
        still = np.ones(len(center), dtype=bool)
        still[list(Constraints.of(drawn.schema, mean=True).free)] = False
        lower, upper = np.where(still, center, lower), np.where(still, center, upper)
    noise = np.sqrt(np.diag(law.cell_variances())[1:])
    bounds = ClippingBounds.of_ball(
        radius,
        max_rows,
        max_excess,
        (lower - center, upper - center),
        farthest_distance(center, lower, upper),
        np.diag(drawn.noisy_gram) + float(scipy.special.ndtri(_GRAM_LEVEL)) * noise,
    )
    return bounds if release.available is None else bounds.carried(release.available.noise_map[1:, 1:])


def _shown_by_shares(release: Moments) -> BoolArray:
    """Return True for levels and Booleans whose SD follows from their share, shape (d,)."""
    result = np.zeros(len(release.feature_names), dtype=bool)
    if shows_shares(release):
        constraints = Constraints.of(release.schema, mean=True)
        for block in constraints.blocks:
            result[block.features] = True
        result[list(constraints.flags)] = True
    return result


ABOUT_TABLE = (
    "Intervals hold for the table itself: they allow for what clipping its rows to a ball hides (95 % confidence)."
)
"""Remark below intervals that were asked for the table."""


def is_of_table(of: str) -> bool:
    """Return True for ``"table"`` and False for ``"clipped rows"``.

    Raise ValueError for anything else.

    >>> is_of_table("table"), is_of_table("clipped rows")
    (True, False)
    """
    if of not in ("table", "clipped rows"):
        raise InputValueError(Message("intervals-of", of=of))
    return of == "table"


def describe_clipping(release: Moments) -> str:
    """Return a sentence on clipping: answers are about the clipped rows."""
    # Empty if no row was clipped to a ball.
    bounds = TableBounds.of(release)
    return "" if bounds is None else bounds.description


# What clipping may hide of the coefficients of a regression.

_LARGE_FRACTION = 0.25
"""Warn if more than this fraction of the rows may have been clipped."""
_MAX_USEFUL_ERRORS = 3.0
"""Bounds on coefficients of more standard errors are not stated."""


@dataclass(frozen=True, eq=False)
class ClippingEffect:
    """Largest differences between the coefficients of the table and of its clipped rows.

    To first order.
    """

    # fraction of the rows that were clipped, at most (95 % confidence); None if nothing was spent on knowing it
    share: float | None
    # with `upper`: (k,) or None, slopes of the table less those shown, in the table's units; None if they are not known
    lower: FloatArray | None = None
    upper: FloatArray | None = None
    standard_errors: FloatArray | None = None  # (k,) or None, the larger of the two, in standard errors of the slope
    has_bounds: bool = True  # False if a column has no public bounds: far rows were clipped instead

    @classmethod
    def of(cls, release: Moments, equations: NormalEquations | None) -> Self:
        """Return the effect on a fit (``docs/evidence/derivations/clipped-rows.md``, M5)."""
        table = TableBounds.of(release)
        if table is None:
            return cls(None, has_bounds=release.schema.row_norm is not None)
        if equations is None or not equations.identified:
            return cls(table.share)
        first = 1 if equations.with_constant else 0
        solved = (equations.units_map @ np.linalg.inv(equations.gram))[first:]
        left = solved @ equations.design_map[:-1]
        right = equations.beyond @ equations.design_map
        ends = np.array([table.bounds.product_range(row, right) for row in left]).reshape(-1, 2)
        errors = np.maximum(equations.standard_errors[first:], np.finfo(float).tiny)
        return cls(table.share, ends[:, 0], ends[:, 1], np.abs(ends).max(axis=1) / errors)

    @property
    def description(self) -> str:
        """Text of one or two sentences."""
        if self.share is None:
            what = (
                "values beyond the public bounds were clipped to them" if self.has_bounds else "far rows were clipped"
            )
            return f"Clipping: {what}; how many was not measured."
        if self.share > _LARGE_FRACTION:
            return (
                f"Warning: up to {self.share:.0%} of rows were clipped. Coefficients and intervals are of the clipped rows, and "
                "may be far from the table's."
            )
        about = (
            f"Coefficients are of the clipped rows: at most {self.share:.2%} of the rows were clipped (95 % confidence)"
        )
        if self.standard_errors is None or not len(self.standard_errors):
            return f"{about}."
        largest = float(self.standard_errors.max())
        if largest <= _MAX_USEFUL_ERRORS:
            return f"{about}. No coefficient of the table differs by more than {largest:.2g} of its standard errors."
        return f"{about}. Coefficients of the table may differ by more than {_MAX_USEFUL_ERRORS:g} standard errors."
