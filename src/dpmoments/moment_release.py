"""MomentRelease: the one thing that leaves the curator's hands, and all that an analysis ever sees."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from dpmoments.noise_law import NoiseLaw
from dpmoments.privacy.statement import PrivacyStatement
from dpmoments.repair.repair import Repair, repair_moments
from dpmoments.schema.encoding import Encoding
from dpmoments.schema.schema import Schema

if TYPE_CHECKING:
    from dpmoments.analysis.components import PrincipalComponents
    from dpmoments.analysis.regression import RidgeRegression

__all__ = ["MomentRelease"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class MomentRelease:
    """Count, mean and second moment of a table, released under differential privacy.

    Made by :func:`dpmoments.release` or :func:`dpmoments.load`. Whatever is computed from it costs no further privacy.

    Attributes
    ----------
    schema : Schema
    privacy : PrivacyStatement
        What was spent; ``print(release.privacy.in_words())``.
    noise : NoiseLaw or None
        The law of the noise on the unit-ball moments, where it has a closed form.
    mechanism : str
        Name of the mechanism that ran.
    mechanism_options, calibration : mapping
        Its options, and the numbers that its plan settled on.
    repair : Repair
        The post-processing that the properties below apply to the noisy moments.
    centered : bool
        Whether rows were encoded about the midpoints of their bounds.
    noisy_count : float or None
    noisy_sum : ndarray of shape (d,) or None
    noisy_gram : ndarray of shape (d, d)
        What the mechanism returned, in unit-ball units, before any repair.
    diagnostics : mapping
        What else the mechanism learned privately.
    """

    schema: Schema
    privacy: PrivacyStatement
    noise: NoiseLaw | None
    mechanism: str
    mechanism_options: Mapping[str, Any]
    calibration: Mapping[str, Any]
    repair: Repair
    centered: bool
    noisy_count: float | None
    noisy_sum: FloatArray | None
    noisy_gram: FloatArray
    diagnostics: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for array in (self.noisy_sum, self.noisy_gram):
            if array is not None:
                array.setflags(write=False)

    @property
    def feature_names(self) -> tuple[str, ...]:
        """Names of the features, in the order of every array."""
        return self.schema.feature_names

    @property
    def encoding(self) -> Encoding:
        """The affine map between the table's units and the unit ball."""
        return self.schema.encoding(centered=self.centered)

    @property
    def n_rows(self) -> int:
        """The number of rows: exact where it is public, else the noisy count, rounded, at least 1.

        Raises
        ------
        ValueError
            If no count was released.
        """
        if self.noisy_count is None:
            raise ValueError(
                "no count was released: under add_remove the number of rows is private, and mean=False spends nothing on it. "
                "Use release.gram, release with mean=True, or pass a public n_rows to release()"
            )
        return max(1, round(self.noisy_count))

    @cached_property
    def _repaired(self) -> tuple[FloatArray | None, FloatArray]:
        """Mean and Gram matrix in the unit ball after the repair."""
        count = None if self.noisy_count is None else self.n_rows
        mean, gram = repair_moments(count, self.noisy_sum, self.noisy_gram, self.noise, self.repair, box=self._mean_box)
        for array in (mean, gram):
            if array is not None:
                array.setflags(write=False)  # kept, and handed out
        return mean, gram

    @property
    def _mean_box(self) -> tuple[FloatArray, FloatArray] | None:
        """Public bounds on the mean of the encoded rows; None without a bound on a row."""
        if self.schema.row_norm is None:
            return None
        lower, upper = self.schema.feature_bounds
        encoding = self.encoding
        return (lower - encoding.offset) / encoding.scale, (upper - encoding.offset) / encoding.scale

    @property
    def unit_ball_mean(self) -> FloatArray:
        """E[x] of the encoded rows, repaired, shape (d,)."""
        mean = self._repaired[0]
        if mean is None:
            raise ValueError("no mean was released (mean=False): release with mean=True")
        return mean

    @property
    def unit_ball_gram(self) -> FloatArray:
        """Σ x xᵀ of the encoded rows, repaired, shape (d, d)."""
        return self._repaired[1]

    @property
    def unit_ball_covariance(self) -> FloatArray:
        """Cov(x) of the encoded rows, repaired, shape (d, d)."""
        mean = self.unit_ball_mean
        return self.unit_ball_gram / self.n_rows - np.outer(mean, mean)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the mechanism found, privately, that speaks against trusting the release; mostly nothing."""
        found = self.diagnostics.get("warnings", ())
        return tuple(map(str, found)) if isinstance(found, list | tuple) else ()

    @property
    def has_mean(self) -> bool:
        """Whether a mean was released."""
        return self.noisy_sum is not None

    @property
    def mean(self) -> FloatArray:
        """E[value], shape (d,), in the table's units."""
        return self.encoding.decode_mean(self.unit_ball_mean)

    @property
    def second_moment(self) -> FloatArray:
        """E[value valueᵀ], not centred, shape (d, d), in the table's units."""
        mean = self.unit_ball_mean if self.has_mean else None
        return self.encoding.decode_second_moment(self.unit_ball_gram / self.n_rows, mean)

    @property
    def gram(self) -> FloatArray:
        """Σ value valueᵀ, shape (d, d), in the table's units."""
        if self.encoding.offset.any():
            return self.second_moment * self.n_rows
        return self.encoding.decode_covariance(self.unit_ball_gram)

    @property
    def covariance(self) -> FloatArray:
        """Cov(value), centred, shape (d, d), in the table's units."""
        return self.encoding.decode_covariance(self.unit_ball_covariance)

    def ridge(
        self,
        target: str,
        features: list[str] | None = None,
        *,
        alpha: float = 0.0,
        intercept: bool | None = None,
    ) -> RidgeRegression:
        """Ridge regression of one feature on others; see :func:`dpmoments.analysis.regression.ridge`."""
        from dpmoments.analysis.regression import ridge

        return ridge(self, target, features, alpha=alpha, intercept=intercept)

    def pca(self, n_components: int | None = None, *, scaling: str = "units") -> PrincipalComponents:
        """Principal components; see :func:`dpmoments.analysis.components.pca`."""
        from dpmoments.analysis.components import pca

        return pca(self, n_components, scaling=scaling)

    def with_repair(self, repair: Repair | str) -> MomentRelease:
        """The same release read with another repair: post-processing, free of privacy cost."""
        from dataclasses import replace

        return replace(self, repair=Repair.of(repair))

    def save(self, path: str | Path, *, overwrite: bool = False) -> None:
        """Write the release as JSON; see :func:`dpmoments.documents.save_release`."""
        from dpmoments.documents import save_release

        save_release(self, path, overwrite=overwrite)

    def __repr__(self) -> str:
        count = "" if self.noisy_count is None else f", n_rows={self.n_rows}"
        flag = "" if self.privacy.private else ", NOT PRIVATE"
        return (
            f"MomentRelease({len(self.feature_names)} features{count}, mechanism={self.mechanism!r}, "
            f"{self.privacy.budget}, neighbors={str(self.privacy.neighbors)!r}{flag})"
        )
