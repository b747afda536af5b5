"""The law of the noise on moments that were added up over several releases, each carried to one centre."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.values import finite_numbers, require_kinds, require_known
from dpmoments.noise.families import GaussianNoise
from dpmoments.noise.law import NoiseLaw, cantelli_quantile, register_noise_law


@dataclass(frozen=True)
class CarriedNoise:
    """Noise N of one release on Σ z zᵀ, z = (1, x − cᵢ), carried to another centre: T N Tᵀ, T z = (1, x − c).

    Attributes
    ----------
    law : NoiseLaw
        Of N.
    shift : tuple of float
        δ = cᵢ − c, d entries: T = [[1, 0], [δ, I]].

    Raises
    ------
    ValueError
        If the shift is not finite or of another length, or moments without sum or count would be carried.
    """

    law: NoiseLaw
    shift: tuple[float, ...]

    def __post_init__(self) -> None:
        if len(self.shift) != self.law.n_features or not all(map(math.isfinite, self.shift)):
            raise ValueError(f"the shift of a part of the noise law must hold {self.law.n_features} finite numbers")
        if any(self.shift) and (self.law.sum_variance is None or self.law.count_variance is None):
            raise ValueError("moments that were released without a sum and a count cannot be carried to another centre")

    @property
    def delta(self) -> FloatArray:
        """δ, shape (d,)."""
        return np.array(self.shift)

    @property
    def map(self) -> FloatArray:
        """T, shape (d + 1, d + 1)."""
        carried = np.eye(len(self.shift) + 1)
        carried[1:, 0] = self.shift
        return carried

    @property
    def cell_variances(self) -> FloatArray:
        """Variances of T N Tᵀ, shape (d + 1, d + 1); the cells of N are uncorrelated."""
        variances = self.law.cell_variances.copy()
        delta, count = self.delta**2, variances[0, 0]
        of_sums = variances[0, 1:].copy()
        # N_jk + δ_j N_0k + δ_k N_0j + δ_j δ_k N_00; on the diagonal the two in the middle are one
        cross = np.outer(delta, of_sums)
        variances[1:, 1:] += cross + cross.T + count * np.outer(delta, delta)
        variances[1:, 1:][np.diag_indices(len(delta))] += 2.0 * delta * of_sums
        variances[0, 1:] += delta * count
        variances[1:, 0] = variances[0, 1:]
        return variances

    def product_covariance(self, vector: FloatArray, rows: npt.NDArray[Any]) -> FloatArray:
        """Cov(T N Tᵀ b), the entries ``rows`` of it."""
        needed = np.unique(np.append(rows, 0))
        covariance = self.law.product_covariance(self.map.T @ vector, needed.tolist())
        chosen = self.map[np.ix_(rows, needed)]
        return np.asarray(chosen @ covariance @ chosen.T)

    def operator_norm_bound(self, failure: float, size: int | None) -> float:
        """Of the noise on the Gram matrix: ‖N‖ + 2‖δ‖‖e‖ + ‖δ‖²|n|, e and n the noise on sum and count."""
        length = float(np.linalg.norm(self.delta))
        if length == 0.0:
            return self.law.operator_norm_bound(failure, size)
        third = failure / 3.0
        of_sum = 2.0 * length * self.law.sum_norm_bound(third, size)
        return self.law.operator_norm_bound(third, size) + of_sum + length**2 * self.law.count_bound(third)

    def sum_norm_bound(self, failure: float, size: int | None) -> float:
        """Of the noise on the sum: ‖e‖ + ‖δ‖|n|."""
        length = float(np.linalg.norm(self.delta))
        if length == 0.0:
            return self.law.sum_norm_bound(failure, size)
        return self.law.sum_norm_bound(failure / 2.0, size) + length * self.law.count_bound(failure / 2.0)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> CarriedNoise:
        """What :meth:`PooledNoise.to_dict` wrote of a part."""
        require_known(values, ("law", "shift"), "a part of the noise law")
        require_kinds(values, shift=list)
        law = NoiseLaw.from_dict(values["law"])
        return cls(law, tuple(finite_numbers(values["shift"], law.n_features, "the shift").tolist()))


@register_noise_law
@dataclass(frozen=True)
class PooledNoise(NoiseLaw):
    """The sum of independent parts, each carried to one centre.

    Covariances of products and variances of functionals and cells are exact. The four variances, which are of all cells of a
    kind, are averages over the cells: repairs go by them. Where all parts are normal, so are all cells, and quantiles are
    exact but for that average; else they are bounds (Cantelli, or for a count the parts' quantiles added up at a share of the
    level each). Norm bounds add up the parts', the failure probability divided among them.

    Attributes
    ----------
    parts : tuple of CarriedNoise

    Examples
    --------
    >>> site = GaussianNoise(2, 2.0, 1.0, 1.0, 1.0)
    >>> law = PooledNoise.of([CarriedNoise(site, (0.0, 0.0)), CarriedNoise(site, (0.5, 0.0))])
    >>> law.count_variance, law.cell_variances.round(3).tolist()
    (2.0, [[2.0, 2.25, 2.0], [2.25, 5.062, 2.25], [2.0, 2.25, 4.0]])
    """

    parts: tuple[CarriedNoise, ...]

    name: ClassVar[str] = "pooled"

    def __post_init__(self) -> None:
        # the checks of what all laws have: those of a normal law of these variances
        checked = GaussianNoise(*(getattr(self, entry.name) for entry in fields(NoiseLaw)))
        for entry in fields(NoiseLaw):
            object.__setattr__(self, entry.name, getattr(checked, entry.name))
        if not isinstance(self.parts, list | tuple) or not self.parts:
            raise ValueError("the noise law has no parts: a list of at least one is expected")
        parts = tuple(part if isinstance(part, CarriedNoise) else CarriedNoise.from_dict(part) for part in self.parts)
        if any(part.law.n_features != self.n_features for part in parts):
            raise ValueError(f"a part of the noise law is not for {self.n_features} features")
        object.__setattr__(self, "parts", parts)

    @classmethod
    def of(cls, parts: Sequence[CarriedNoise]) -> PooledNoise:
        """The law of the sum of these parts; the variances of cells of one kind are averaged."""
        size = parts[0].law.n_features
        cells = sum((part.cell_variances for part in parts), np.zeros((size + 1, size + 1)))
        diagonal = float(np.diag(cells)[1:].mean())
        off_diagonal = float(cells[1:, 1:][np.triu_indices(size, 1)].mean()) if size > 1 else diagonal / 2.0
        laws = [part.law for part in parts]
        with_sum = all(law.sum_variance is not None for law in laws)
        with_count = all(law.count_variance is not None for law in laws)
        of_sum, of_count = float(cells[0, 1:].mean()), float(cells[0, 0])
        return cls(
            size, diagonal, off_diagonal, of_sum if with_sum else None, of_count if with_count else None, tuple(parts)
        )

    @property
    def cell_variances(self) -> FloatArray:
        """Variances of the noise on Σ z zᵀ, z = (1, x − c), shape (d + 1, d + 1), cell by cell."""
        result: FloatArray = sum(
            (part.cell_variances for part in self.parts), np.zeros((self.n_features + 1, self.n_features + 1))
        )
        return result

    def product_covariance(self, vector: FloatArray, chosen: Sequence[int] | None = None) -> FloatArray:
        """Σ Tᵢ Cov(Nᵢ Tᵢᵀ b) Tᵢᵀ."""
        rows = np.arange(self.n_features + 1) if chosen is None else np.asarray(chosen)
        size = len(rows)
        result: FloatArray = sum((part.product_covariance(vector, rows) for part in self.parts), np.zeros((size, size)))
        return result

    def functional_variance(self, weights: FloatArray) -> float:
        """Σ Var(Σ (Tᵢᵀ A Tᵢ)ⱼₖ Nᵢⱼₖ)."""
        return math.fsum(part.law.functional_variance(part.map.T @ weights @ part.map) for part in self.parts)

    @property
    def spectral_skews(self) -> tuple[float, float]:
        """Averages of the parts', weighted by their variances: R-transforms add up, and so their third cumulants are met."""
        weights = [part.law.off_diagonal_variance for part in self.parts]
        total = math.fsum(weights)
        if total == 0.0:
            return 0.0, 0.0
        skews = [part.law.spectral_skews for part in self.parts]
        upper, lower = (math.fsum(w * skew[side] for w, skew in zip(weights, skews, strict=True)) for side in (0, 1))
        return upper / total, lower / total

    def operator_norm_bound(self, failure: float, size: int | None = None) -> float:
        self._bounded_rows(failure, size)
        share = failure / len(self.parts)
        return math.fsum(part.operator_norm_bound(share, size) for part in self.parts)

    def sum_norm_bound(self, failure: float, size: int | None = None) -> float:
        if self.sum_variance is None:
            raise ValueError("no sum was released")
        self._bounded_rows(failure, size)
        return math.fsum(part.sum_norm_bound(failure / len(self.parts), size) for part in self.parts)

    def count_bound(self, failure: float) -> float:
        if self.count_variance is None:
            raise ValueError("no count was released")
        return math.fsum(part.law.count_bound(failure / len(self.parts)) for part in self.parts)

    def count_quantile(self, level: float) -> float:
        result = super().count_quantile(level)
        if not self.count_variance or self._normal:
            return result
        # the sum is below the sum of quantiles only where one part is below its own
        k = len(self.parts)
        if level < 0.5:
            return max(result, math.fsum(part.law.count_quantile(level / k) for part in self.parts))
        return min(result, math.fsum(part.law.count_quantile(1.0 - (1.0 - level) / k) for part in self.parts))

    def standard_quantile(self, level: float, *, diagonal: bool) -> float:
        if self._normal:
            return self.parts[0].law.standard_quantile(level, diagonal=diagonal)
        return cantelli_quantile(level)

    def of_rows_in_ball(self, radius: float) -> NoiseLaw:
        """The law for rows in a ball of that radius, which was taken for 1: of every part, carried so much less or farther."""
        scaled = [
            CarriedNoise(part.law.of_rows_in_ball(radius), tuple(radius * entry for entry in part.shift))
            for part in self.parts
        ]
        return PooledNoise.of(scaled)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        parts = [{"law": part.law.to_dict(), "shift": list(part.shift)} for part in self.parts]
        return (
            {"name": self.name}
            | {entry.name: getattr(self, entry.name) for entry in fields(NoiseLaw)}
            | {"parts": parts}
        )

    @property
    def _normal(self) -> bool:
        return all(isinstance(part.law, GaussianNoise) for part in self.parts)
