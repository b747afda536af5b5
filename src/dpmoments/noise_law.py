"""The public law of the noise in a release: what repairs, error bars and forecasts may know about it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from dpmoments.plain_values import is_finite_number

__all__ = ["NoiseLaw"]


@dataclass(frozen=True, slots=True)
class NoiseLaw:
    """Additive, zero-mean noise with uncorrelated entries on the moments of rows in the unit ball.

    Every variance is in unit-ball units, of sums over the table (not averages).

    Attributes
    ----------
    family : str
        ``"gaussian"``, ``"laplace"`` (entry by entry), ``"matrix-laplace"`` (the difference of two Wisharts) or ``"wishart"``
        (one Wishart less its mean).
    n_features : int
    diagonal_variance, off_diagonal_variance : float
        Of the cells of the Gram matrix. For a fixed vector b and a family whose diagonal variance is twice the other,
        Cov(N b) = off_diagonal_variance · (‖b‖² I + b bᵀ).
    sum_variance : float or None
        Of each entry of the sum of rows; None where the sum was not released.
    count_variance : float or None
        0 where the number of rows is public; None where it is private and was not released.
    rate : float or None
        c where the noise is made of Wisharts of scale matrix I/(2c); None for the other families.

    Examples
    --------
    >>> law = NoiseLaw("gaussian", 3, 2.0, 1.0, None, 0.0)
    >>> round(law.frobenius_error, 3)
    3.464
    """

    family: str
    n_features: int
    diagonal_variance: float
    off_diagonal_variance: float
    sum_variance: float | None
    count_variance: float | None
    rate: float | None = None

    @property
    def isotropic(self) -> bool:
        """Whether the noise on the Gram matrix is unchanged by rotations (in its first two moments)."""
        return math.isclose(self.diagonal_variance, 2.0 * self.off_diagonal_variance, rel_tol=1e-9)

    @property
    def frobenius_error(self) -> float:
        """Root mean square of ‖N‖_F, N the noise on the Gram matrix."""
        d = self.n_features
        return math.sqrt(d * self.diagonal_variance + d * (d - 1) * self.off_diagonal_variance)

    @property
    def sum_error(self) -> float | None:
        """Root mean square of the Euclidean norm of the noise on the sum of rows."""
        return None if self.sum_variance is None else math.sqrt(self.n_features * self.sum_variance)

    def operator_norm_bound(self, failure: float, size: int | None = None) -> float:
        """A bound on the spectral norm of the noise that fails with probability ≤ ``failure``.

        Parameters
        ----------
        failure : float
            β, between 0 and 1.
        size : int, optional
            Bound any one principal submatrix with so many rows (chosen without looking at the noise); default: the whole
            Gram matrix.

        Notes
        -----
        With m rows. Gaussian: σ(√(2m) + √(2 ln(2/β))) for the isotropic law (Gaussian concentration around
        E‖N‖_op ≤ σ√(2m), two-sided by symmetry), and the same with √2σ for equal variances. Matrix Laplace:
        N = (UᵀU − VᵀV)/(2c) with U, V ν × m standard normal, whose singular values leave √ν ± (√m + t) with probability
        ≤ e^{−t²/2} a side (Davidson & Szarek 2001); so ‖N‖ ≤ (√ν + √m + t)²/(2c) with two such events, and
        2√ν(√m + t)/c with four. One Wishart less its mean, (UᵀU − νI)/(2c): the same singular values, two events. Laplace
        entries: m times the largest of m(m+1)/2 entries, by a union bound. Any other family: Chebyshev's inequality on
        ‖N‖_F².
        """
        if not 0 < failure < 1:
            raise ValueError(f"failure={failure!r} is a probability, above 0 and below 1")
        m = self.n_features if size is None else size
        tail = math.sqrt(2.0 * math.log(2.0 / failure))
        if self.family == "gaussian":
            scale = math.sqrt(max(self.diagonal_variance, 2.0 * self.off_diagonal_variance))
            return scale * (math.sqrt(2.0 * m) + tail)
        if self.family == "laplace":
            return math.sqrt(self.diagonal_variance / 2.0) * math.log(m * (m + 1) / 2.0 / failure) * m
        if self.family == "matrix-laplace" and self.rate is not None:
            root = math.sqrt(self.diagonal_variance * self.rate**2)
            largest = (root + math.sqrt(m) + tail) ** 2 / (2.0 * self.rate)
            reach = math.sqrt(m) + math.sqrt(2.0 * math.log(4.0 / failure))
            return min(largest, 2.0 * root * reach / self.rate) if reach < root else largest
        if self.family == "wishart" and self.rate is not None:
            degrees = 2.0 * self.diagonal_variance * self.rate**2
            root, reach = math.sqrt(degrees), math.sqrt(m) + tail
            above, below = (root + reach) ** 2 - degrees, degrees - max(root - reach, 0.0) ** 2
            return max(above, below) / (2.0 * self.rate)
        square = m * self.diagonal_variance + m * (m - 1) * self.off_diagonal_variance
        return math.sqrt(square / failure)

    def sum_norm_bound(self, failure: float, size: int | None = None) -> float:
        """A bound on the Euclidean norm of the noise on ``size`` entries of the sum of rows (default: all).

        It fails with probability ≤ ``failure``. Gaussian: √(variance)·(√m + √(2 ln(1/β))). The other laws: Chebyshev's
        inequality on the squared norm.
        """
        if self.sum_variance is None:
            raise ValueError("no sum was released")
        m = self.n_features if size is None else size
        deviation = math.sqrt(self.sum_variance)
        if self.family == "gaussian":
            return deviation * (math.sqrt(m) + math.sqrt(2.0 * math.log(1.0 / failure)))
        return deviation * math.sqrt(m / failure)

    def count_bound(self, failure: float) -> float:
        """A bound on the absolute noise on the count that fails with probability ≤ ``failure`` (0 where it is public)."""
        if self.count_variance is None:
            raise ValueError("no count was released")
        deviation = math.sqrt(self.count_variance)
        if self.family == "gaussian":
            return deviation * math.sqrt(2.0 * math.log(2.0 / failure))
        return deviation / math.sqrt(failure)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        return asdict(self)

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> NoiseLaw:
        """The inverse of :meth:`to_dict`.

        Raises
        ------
        TypeError, ValueError
            If the values are not those of a noise law.
        """
        for name, value in values.items():
            if not (
                isinstance(value, str)
                if name == "family"
                else value is None or (is_finite_number(value) and value >= 0)
            ):
                raise ValueError(f"{name} of the noise law is not a finite number, 0 or above")
        law = cls(**values)
        if law.diagonal_variance is None or law.off_diagonal_variance is None:
            raise ValueError("the noise law has no variances")
        if law.family in ("matrix-laplace", "wishart") and not law.rate:
            raise ValueError("the noise law has no rate")
        return law
