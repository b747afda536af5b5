"""Noise models of mechanisms of papers, whose noise is not added cell by cell."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmoments.base.arrays import FloatArray, bordered
from dpmoments.base.checks import check_between, check_positive
from dpmoments.moments.cells import CellFamily, GaussianCells, LaplaceCells
from dpmoments.moments.extreme_eigenvalues import normal_norm_quantile
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.models import (
    MomentInterval,
    NoiseModel,
    ReleasedMoments,
    WithOwnCount,
    require_entry,
    symmetric_cells,
)
from dpmoments.moments.terms import NoiseTerm
from dpmoments.papers.cells import WishartCells, wishart_eigenvalue_range

_CLIPPED_IN_LAST_STEP = "clipped-in-last-step"
"""Caveat: the distribution is for the rows as the last step clipped them.

It leaves out the effect of clipping.
"""
_LINEARIZED = "linearized"
"""Caveat: the noise distribution is linearized about the release.

It is good if noise is small relative to the moments.
"""
_ASSERTED_EIGENVALUE = "asserted-smallest-eigenvalue"
"""Caveat: the distribution holds if no eigenvalue is below the one that the caller asserted."""


def _gram_term(family: CellFamily, matrix: FloatArray, cells: FloatArray) -> NoiseTerm:
    """Return noise M C Mᵀ on the Gram matrix only."""
    return NoiseTerm(family, cells, np.vstack([np.zeros((1, matrix.shape[1])), matrix]))


@dataclass(frozen=True, kw_only=True, eq=False)
class LastStepModel(WithOwnCount):
    """Normal noise on the sums of the last step of a recursive estimator.

    It sums w = linear·(x − center), clipped to a ball.

    SDs are σ on and σ/√2 off the diagonal of Σ w wᵀ, and s on Σ w. With κ = σ/(√2 s) the moments of (κ, w) have the noise of a
    symmetric normal matrix except for its corner, which has none: that makes its spectral norm no larger at any level
    (``docs/evidence/derivations/utility-bounds-wishart.md``).
    """

    linear: FloatArray  # (d, d)
    center: FloatArray  # (d,)
    step_gram: FloatArray  # (d, d), as the step released it, in the units of w, before post-processing
    step_sum: FloatArray | None  # (d,) or None
    gram_scale: float  # with `sum_scale`: σ and s
    sum_scale: float

    name: ClassVar[str] = "last-step"
    arrays: ClassVar[Mapping[str, int]] = {"linear": 2, "center": 1, "step_gram": 2, "step_sum": 1}
    condition: ClassVar[str] = _CLIPPED_IN_LAST_STEP

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.step_sum is not None:
            check_positive("sum_scale", self.sum_scale)

    def law(self, released: ReleasedMoments) -> NoiseLaw | None:
        d = self.n_features
        shift = self.center if released.center is None else self.center - released.center
        matrix = np.eye(d + 1)
        try:
            matrix[1:, 1:] = np.linalg.inv(self.linear)
        except np.linalg.LinAlgError:
            return None
        matrix[1:, 0] = shift
        cells = np.zeros((d + 1, d + 1))
        cells[0, 1:] = cells[1:, 0] = self.sum_scale**2
        cells[1:, 1:] = symmetric_cells(d, self.gram_scale**2)
        return self._with_count([NoiseTerm(GaussianCells(), cells, matrix)], [self.condition], shift)

    def interval(self, released: ReleasedMoments, chosen: Sequence[int], failure: float) -> MomentInterval | None:
        # what the step released is used: the mechanism has repaired what was released of it
        back, count = np.linalg.inv(self.linear)[list(chosen)], released.noisy_count
        parts = 2.0 if self.count_scale else 1.0
        of_count = self.count_bound(failure / parts)
        if self.step_sum is None:
            reach = self.gram_scale * normal_norm_quantile(len(back), failure / parts)
            return MomentInterval(back @ self.step_gram @ back.T, reach * (back @ back.T), False, of_count)
        if count is None:
            return None
        kappa = self.gram_scale / (math.sqrt(2.0) * self.sum_scale)
        moments = bordered(kappa**2 * count, kappa * self.step_sum, self.step_gram)
        start = np.zeros((1, 1 + self.n_features))
        start[0, 0] = 1.0 / kappa
        matrix = np.block([[start], [self.center[list(chosen)][:, None] / kappa, back]])
        reach = self.gram_scale * normal_norm_quantile(len(matrix), failure / parts)
        constant = np.concatenate([[1.0], self.center[list(chosen)]])
        spread = reach * (matrix @ matrix.T) + of_count * np.outer(constant, constant)
        return MomentInterval(matrix @ moments @ matrix.T, spread, True, of_count)


@dataclass(frozen=True, kw_only=True, eq=False)
class InverseNormalModel(WithOwnCount):
    """Symmetric normal noise on the inverse of the Gram matrix; normal noise on the sum."""

    inverse: FloatArray  # (d, d), as released
    inverse_scale: float  # noise SD of its diagonal entries; 1/√2 of it off the diagonal
    smallest_eigenvalue: float  # lower bound that the caller asserted
    sum_scale: float | None  # noise SD of each entry of the sum; None if no sum was released

    name: ClassVar[str] = "inverse-normal"
    arrays: ClassVar[Mapping[str, int]] = {"inverse": 2}
    condition: ClassVar[str] = _ASSERTED_EIGENVALUE

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("smallest_eigenvalue", self.smallest_eigenvalue)

    def law(self, released: ReleasedMoments) -> NoiseLaw:
        # (G⁻¹ + Y)⁻¹ − G = −ĜYĜ to first order
        d, gram = self.n_features, released.noisy_gram
        terms = [_gram_term(GaussianCells(), gram, symmetric_cells(d, self.inverse_scale**2))]
        if self.sum_scale is not None:
            of_sum = np.zeros((d + 1, d + 1))
            of_sum[0, 1:] = of_sum[1:, 0] = self.sum_scale**2
            terms.append(NoiseTerm(GaussianCells(), of_sum))
        return self._with_count(terms, [self.condition, _LINEARIZED])

    def interval(self, released: ReleasedMoments, chosen: Sequence[int], failure: float) -> MomentInterval | None:
        count, total = released.noisy_count, released.noisy_sum
        parts = 1.0 + (self.sum_scale is not None) + (self.count_scale > 0.0)
        if count is None or (self.sum_scale is not None and total is None):
            return None
        of_count = self.count_bound(failure / parts)
        low, high = self._gram_between(count + of_count, failure / parts)
        block = np.ix_(chosen, chosen)
        center, spread = (high + low)[block] / 2.0, (high - low)[block] / 2.0
        if self.sum_scale is None or total is None:
            return MomentInterval(center, spread, False, of_count)
        m = len(chosen)
        of_sum = self.sum_scale * (math.sqrt(m) + math.sqrt(2.0 * math.log(parts / failure)))
        # ±(e₀eᵀ + ee₀ᵀ) ⪯ ‖e‖(η e₀e₀ᵀ + I/η) for every η > 0
        weight = math.sqrt(max(count, 1.0) * m / max(float(np.trace(center)), self.smallest_eigenvalue))
        return MomentInterval(
            bordered(count, total[list(chosen)], center),
            bordered(of_count + of_sum * weight, np.zeros(m), spread + of_sum / weight * np.eye(m)),
            True,
            of_count,
        )

    def _gram_between(self, most_rows: float, failure: float) -> tuple[FloatArray, FloatArray]:
        """Bound the Gram matrix on both sides."""
        # Its trace, and so each eigenvalue, is at most the number of rows.
        reach = self.inverse_scale * normal_norm_quantile(self.n_features, failure)
        eigenvalues, vectors = np.linalg.eigh(self.inverse)
        least = 1.0 / max(most_rows, self.smallest_eigenvalue)
        low = (vectors / np.maximum(eigenvalues + reach, least)) @ vectors.T
        if eigenvalues[0] - reach <= least:
            return low, np.eye(self.n_features) / least
        return low, (vectors / (eigenvalues - reach)) @ vectors.T


@dataclass(frozen=True, kw_only=True, eq=False)
class WishartModel(WithOwnCount):
    """One draw W around Σ = Σ z zᵀ + ψI, z = (w, x).

    Wishart(Σ, ν)/ν, or (ν − D − 1) times inverse Wishart(Σ, ν). The block of any features is of the same kind: m rows
    of the first have Wishart(Σ, ν)/ν, of the second inverse Wishart with ν − D + m degrees. So ν Σ^{−½}WΣ^{−½}, or (ν −
    D − 1) Σ^{½}W⁻¹Σ^{½}, is a Wishart matrix of scale I, and the range of its eigenvalues bounds Σ from both sides
    (``docs/evidence/derivations/utility-bounds-wishart.md``).
    """

    degrees: float  # ν
    padding: float  # ψ, in unit-ball units
    # true if the released moments are W less ψI; otherwise they are biased, with no noise distribution
    subtracted: bool
    inverse: bool
    augmentation: float  # w; 0 if only the Gram matrix was drawn
    corner: float  # the entry of W for the constant, or 0
    raised: float  # value to which smaller eigenvalues were raised before the draw; 0 for none

    name: ClassVar[str] = "wishart-sampling"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_between("degrees", self.degrees, self.dimension + (2.0 if self.inverse else 0.0), math.inf)

    @property
    def condition(self) -> str:
        return _ASSERTED_EIGENVALUE if self.raised else ""

    @property
    def dimension(self) -> int:
        """D, the rows of the whole matrix."""
        return self.n_features + (1 if self.augmentation else 0)

    def law(self, released: ReleasedMoments) -> NoiseLaw | None:
        # W = Σ^½(I + C)Σ^½, with Σ for its own draw W: any root does, since the law of C is that of all its rotations
        beyond = self.degrees - self.dimension - 3.0
        drawn = self._drawn(released, range(self.n_features))
        if not self.subtracted or drawn is None or (self.inverse and beyond <= 0.0):
            return None
        cells = symmetric_cells(len(drawn), 2.0 / (beyond if self.inverse else self.degrees))
        family: CellFamily = GaussianCells() if self.inverse else WishartCells(self.degrees)
        eigenvalues, vectors = np.linalg.eigh(drawn)
        root = vectors * np.sqrt(np.maximum(eigenvalues, 0.0))
        caveats = list(filter(None, [_LINEARIZED, self.condition]))
        if not self.augmentation:
            return self._with_count([_gram_term(family, root, cells)], caveats)
        root[0] /= self.augmentation
        known = None
        if released.count_is_public:
            known = np.append(1.0, np.zeros(self.n_features)), root[0]
        return NoiseLaw((NoiseTerm(family, cells, root, known),), tuple(sorted(caveats)))

    def _drawn(self, released: ReleasedMoments, chosen: Sequence[int]) -> FloatArray | None:
        """Return W of some features."""
        block, back = released.noisy_gram[np.ix_(chosen, chosen)], self.padding if self.subtracted else 0.0
        drawn: FloatArray = block + back * np.eye(len(chosen))
        if not self.augmentation:
            return drawn
        if released.noisy_sum is None:
            return None
        return bordered(self.corner, self.augmentation * released.noisy_sum[list(chosen)], drawn)

    def interval(self, released: ReleasedMoments, chosen: Sequence[int], failure: float) -> MomentInterval | None:
        parts, count = 2 if self.count_scale else 1, released.noisy_count
        drawn = self._drawn(released, chosen)
        if drawn is None:
            return None
        low, high = self.scale_factors(len(drawn), failure / parts)
        if not np.isfinite(high):
            return None
        size = np.eye(len(drawn))
        result = MomentInterval(
            drawn * (low + high) / 2.0 - self.padding * size,
            drawn * (high - low) / 2.0,
            False,
            self.count_bound(failure / 2.0),
        )
        if not self.augmentation:
            return result
        unit = np.ones(len(drawn))
        unit[0] = 1.0 / self.augmentation
        result = MomentInterval(result.center, result.spread, True, 0.0).mapped(np.diag(unit))
        if count is None:
            return result
        off = abs(count - float(result.center[0, 0])) + float(result.spread[0, 0]) + 0.5
        return MomentInterval(result.center, result.spread, True, off)

    def scale_factors(self, size: int, failure: float) -> tuple[float, float]:
        """Return a and b with aW ⪯ Σ ⪯ bW for a block of ``size`` rows; b may be inf."""
        # They fail with probability `failure` at most.
        if self.inverse:
            low, high = wishart_eigenvalue_range(size, self.degrees - self.dimension + size, failure)
            center = self.degrees - self.dimension - 1.0
            return low / center, high / center
        low, high = wishart_eigenvalue_range(size, self.degrees, failure)
        return self.degrees / high, self.degrees / low if low > 0.0 else float("inf")


@dataclass(frozen=True, kw_only=True, eq=False)
class ReleasedBasisModel(NoiseModel):
    """Errors of a mechanism that draws eigenvectors.

    Uncorrelated entries in the released eigenbasis.
    """

    cells: FloatArray  # (d, d), mean squares of the entries, eigenvalues in descending order
    # with `count_variance`: noise variances of each entry of the sum, and of the count; None if they were not released
    sum_variance: float | None
    count_variance: float | None
    laplace: bool  # true if that noise is Laplace, False if normal

    name: ClassVar[str] = "released-basis"
    arrays: ClassVar[Mapping[str, int]] = {"cells": 2}

    def __post_init__(self) -> None:
        super().__post_init__()
        require_entry(
            (self.cells >= 0.0).all() and (self.cells == self.cells.T).all(),
            "cells",
            "symmetric, finite and not negative",
        )

    def law(self, released: ReleasedMoments) -> NoiseLaw:
        d = self.n_features
        beside = np.zeros((d + 1, d + 1))
        beside[0, 1:] = beside[1:, 0] = self.sum_variance or 0.0
        beside[0, 0] = self.count_variance or 0.0
        basis = np.linalg.eigh(released.noisy_gram)[1][:, ::-1]
        family: CellFamily = LaplaceCells() if self.laplace else GaussianCells()
        terms = _gram_term(GaussianCells(), basis, self.cells), NoiseTerm(family, beside)
        return NoiseLaw(terms, (_LINEARIZED,))


@dataclass(frozen=True, kw_only=True, eq=False)
class ScaledWishartModel(WithOwnCount):
    """Sum of k normal rows of covariance s²V added to the table's, less their mean."""

    degrees: float  # k
    scale: float  # s²
    scale_matrix: FloatArray  # (d, d): V
    augmentation: float  # w; 0 if no sum was released
    count_is_noisy: bool  # true if the number of rows comes from the draw

    name: ClassVar[str] = "scaled-wishart"
    arrays: ClassVar[Mapping[str, int]] = {"scale_matrix": 2}

    def __post_init__(self) -> None:
        super().__post_init__()
        check_positive("degrees", self.degrees)
        check_positive("scale", self.scale)
        definite = (self.scale_matrix == self.scale_matrix.T).all() and np.linalg.eigvalsh(self.scale_matrix)[0] > 0.0
        require_entry(definite, "scale_matrix", "symmetric and positive definite")

    def law(self, released: ReleasedMoments | None = None) -> NoiseLaw:
        return self.fixed_law

    @property
    def fixed_law(self) -> NoiseLaw:
        d, w, variance = self.n_features, self.augmentation, self.degrees * self.scale**2
        matrix = np.eye(d + 1)
        matrix[1:, 1:] = np.linalg.cholesky(self.scale_matrix)
        cells = np.zeros((d + 1, d + 1))
        cells[1:, 1:] = symmetric_cells(d, 2.0 * variance)
        if w:
            cells[0, 1:] = cells[1:, 0] = variance / w**2
            cells[0, 0] = 2.0 * variance / w**4 if self.count_is_noisy else 0.0
        return self._with_count([NoiseTerm(WishartCells(self.degrees), cells, matrix)], ())
