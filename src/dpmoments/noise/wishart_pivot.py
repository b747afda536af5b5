"""The pivot of a draw around the padded Gram matrix: a Wishart matrix of scale I, whatever the table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.noise.extreme_eigenvalues import wishart_eigenvalue_range
from dpmoments.noise.pivots import MomentInterval, MomentPivot, register_moment_pivot

__all__ = ["WishartPivot"]


@register_moment_pivot
@dataclass(frozen=True, kw_only=True, eq=False)
class WishartPivot(MomentPivot):
    """One draw W around Σ = Σ z zᵀ + ψI, z = (w, x): Wishart(Σ, ν)/ν, or (ν − D − 1) times inverse Wishart(Σ, ν).

    Of any features the block is of the same kind: m rows of the first have Wishart(Σ, ν)/ν, of the second inverse Wishart with
    ν − D + m degrees. So ν Σ^{−½}WΣ^{−½}, or (ν − D − 1) Σ^{½}W⁻¹Σ^{½}, is a Wishart matrix of scale I, and the range of its
    eigenvalues bounds Σ from both sides (``docs/derivations/utility-bounds-wishart.md``).

    Attributes
    ----------
    degrees : float
        ν.
    padding : float
        ψ, in unit-ball units.
    subtracted : bool
        Whether the released moments are W less ψI.
    inverse : bool
    augmentation : float
        w; 0 where the Gram matrix went alone.
    corner : float
        The cell of W that belongs to the constant; 0 where there is none.
    raised : float
        What smaller eigenvalues were raised to before the draw; 0 where none were.
    """

    degrees: float
    padding: float
    subtracted: bool
    inverse: bool
    augmentation: float
    corner: float
    raised: float

    name: ClassVar[str] = "wishart-sampling"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.degrees < self.dimension + (2.0 if self.inverse else 0.0):
            raise ValueError(f"degrees={self.degrees!r} of the pivot are too few for {self.dimension} rows")

    @property
    def dimension(self) -> int:
        """D, the rows of the whole matrix."""
        return self.n_features + (1 if self.augmentation else 0)

    @property
    def covers(self) -> str:
        return "where no eigenvalue is below the stated smallest_eigenvalue" if self.raised else ""

    def interval(
        self, count: float | None, total: FloatArray | None, gram: FloatArray, chosen: Sequence[int], failure: float
    ) -> MomentInterval | None:
        parts = 2 if self.count_scale else 1
        back = self.padding if self.subtracted else 0.0
        drawn = gram[np.ix_(chosen, chosen)] + back * np.eye(len(chosen))
        if self.augmentation:
            if total is None:
                return None
            beside = self.augmentation * total[list(chosen)]
            drawn = np.block([[np.array([[self.corner]]), beside[None, :]], [beside[:, None], drawn]])
        low, high = self.scale_factors(len(drawn), failure / parts)
        if not np.isfinite(high):
            return None
        size = np.eye(len(drawn))
        found = MomentInterval(
            drawn * (low + high) / 2.0 - self.padding * size,
            drawn * (high - low) / 2.0,
            False,
            self.count_bound(failure / 2.0),
        )
        if not self.augmentation:
            return found
        unit = np.ones(len(drawn))
        unit[0] = 1.0 / self.augmentation
        found = MomentInterval(found.center, found.spread, True, 0.0).mapped(np.diag(unit))
        if count is None:
            return found
        off = abs(count - float(found.center[0, 0])) + float(found.spread[0, 0]) + 0.5
        return MomentInterval(found.center, found.spread, True, off)

    def scale_factors(self, size: int, failure: float) -> tuple[float, float]:
        """a and b with aW ⪯ Σ ⪯ bW for a block of ``size`` rows, but with probability ``failure``; b may be infinite.

        Examples
        --------
        >>> law = dict(padding=0.0, subtracted=True, augmentation=0.0, corner=0.0, raised=0.0)
        >>> [round(end, 2) for end in WishartPivot(n_features=4, degrees=1000, inverse=False, **law).scale_factors(4, 0.05)]
        [0.86, 1.18]
        """
        if self.inverse:
            low, high = wishart_eigenvalue_range(size, self.degrees - self.dimension + size, failure)
            center = self.degrees - self.dimension - 1.0
            return low / center, high / center
        low, high = wishart_eigenvalue_range(size, self.degrees, failure)
        return self.degrees / high, self.degrees / low if low > 0.0 else float("inf")
