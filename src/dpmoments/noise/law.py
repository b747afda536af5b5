"""What every noise law answers, and the register in which a file's noise law is found by its name."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from numbers import Integral
from types import MappingProxyType
from typing import Any, TypeVar

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.values import is_finite_number, require_known
from dpmoments.noise.chebyshev import cantelli_quantile, checked_level
from dpmoments.noise.uncorrelated_cells import UncorrelatedCells

__all__ = ["NoiseLaw", "noise_law_classes", "register_noise_law"]

NOT_RELEASED = ("sum_variance", "count_variance")
"""The entries that are None where there is nothing to have noise."""

LawClass = TypeVar("LawClass", bound="type[NoiseLaw]")


@dataclass(frozen=True)
class NoiseLaw(UncorrelatedCells):
    """Additive, zero-mean noise with uncorrelated entries on the moments of rows in the unit ball.

    Every variance is in unit-ball units, of sums over the table (not averages). The laws are small subclasses, registered by
    name (:func:`register_noise_law`); ``NoiseLaw.from_dict`` makes the one that a file names. A law from outside this
    package states its ``name``, fields of its own where it needs them (numbers, 0 or above), and may replace any method
    here: as they stand they hold for all noise of these variances, and are wide.

    Attributes
    ----------
    n_features : int
    diagonal_variance, off_diagonal_variance : float
        Of the cells of the Gram matrix. For a fixed vector b and a law whose diagonal variance is twice the other,
        Cov(N b) = off_diagonal_variance · (‖b‖² I + b bᵀ).
    sum_variance : float or None
        Of each entry of the sum of rows; None where the sum was not released.
    count_variance : float or None
        0 where the number of rows is public; None where it is private and was not released.

    Raises
    ------
    ValueError
        If an entry is absent, negative or not finite.
    """

    n_features: int
    diagonal_variance: float
    off_diagonal_variance: float
    sum_variance: float | None
    count_variance: float | None

    @property
    @abstractmethod
    def name(self) -> str:
        """The name in files; a constant of the class."""

    def __post_init__(self) -> None:
        for entry in fields(self):
            value = getattr(self, entry.name)
            if value is None:
                if entry.name not in NOT_RELEASED:
                    raise ValueError(f"the noise law has no {entry.name}")
            elif not (is_finite_number(value) and value >= 0):
                raise ValueError(f"{entry.name} of the noise law is not a finite number, 0 or above")
            elif entry.name != "n_features":
                # An integer beyond 64 bits, as a file may write a number, is nothing that arrays can hold.
                object.__setattr__(self, entry.name, float(value) + 0.0)
        if not isinstance(self.n_features, Integral) or self.n_features < 1:
            raise ValueError(f"n_features={self.n_features!r} of the noise law is not a whole number above 0")

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

    @property
    def spectral_skews(self) -> tuple[float, float]:
        """κ₊ and κ₋ of R(g) = v g/((1 − κ₊g)(1 + κ₋g)), the R-transform of the noise on the Gram matrix at a large d.

        v is d times the variance of a cell off the diagonal. This base class returns 0, 0: a semicircle.
        """
        return 0.0, 0.0

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
        Here Chebyshev's inequality on ‖N‖_F².
        """
        m = self._bounded_rows(failure, size)
        square = m * self.diagonal_variance + m * (m - 1) * self.off_diagonal_variance
        return math.sqrt(square / failure)

    def sum_norm_bound(self, failure: float, size: int | None = None) -> float:
        """A bound on the Euclidean norm of the noise on ``size`` entries of the sum of rows (default: all).

        It fails with probability ≤ ``failure``. Here Chebyshev's inequality on the squared norm.
        """
        if self.sum_variance is None:
            raise ValueError("no sum was released")
        return math.sqrt(self.sum_variance) * math.sqrt(self._bounded_rows(failure, size) / failure)

    def count_bound(self, failure: float) -> float:
        """A bound on the absolute noise on the count that fails with probability ≤ ``failure`` (0 where it is public).

        Here Chebyshev's inequality.
        """
        if self.count_variance is None:
            raise ValueError("no count was released")
        return math.sqrt(self.count_variance) / math.sqrt(failure)

    def cell_quantile(self, level: float, *, diagonal: bool) -> float:
        """The value that the noise on one cell of the Gram matrix stays at or below with probability ``level``.

        Parameters
        ----------
        level : float
            Between 0 and 1.
        diagonal : bool
            Whether the cell is on the diagonal.

        Returns
        -------
        float
            Exact for the laws of this package. For a law that does not know it: a value at least as far from 0 on
            that side (:meth:`standard_quantile`).
        """
        variance = self.diagonal_variance if diagonal else self.off_diagonal_variance
        return math.sqrt(variance) * self.standard_quantile(checked_level(level), diagonal=diagonal)

    def count_quantile(self, level: float) -> float:
        """The value that the noise on the count stays at or below with probability ``level`` (0 where it is public).

        The count is a diagonal cell of the augmented Gram matrix, so its noise has the law of that on the
        others but for its size.
        """
        if self.count_variance is None:
            raise ValueError("no count was released")
        return math.sqrt(self.count_variance) * self.standard_quantile(checked_level(level), diagonal=True)

    def standard_quantile(self, level: float, *, diagonal: bool) -> float:  # noqa: ARG002 - for laws that know more
        """The quantile of the noise on a cell, in its standard deviations: what a law from outside replaces.

        Here Cantelli's inequality, which holds for every law: the quantile lies between this value and 0, or beyond 0.
        """
        return cantelli_quantile(level)

    @property
    def cell_variances(self) -> FloatArray:
        """Variances of the noise on Σ z zᵀ, z = (1, x), shape (d + 1, d + 1): of the count, the sums, the Gram matrix.

        0 where there is no noise or nothing was released.
        """
        variances = np.full((self.n_features + 1, self.n_features + 1), self.off_diagonal_variance)
        np.fill_diagonal(variances, self.diagonal_variance)
        variances[0, :] = variances[:, 0] = self.sum_variance or 0.0
        variances[0, 0] = self.count_variance or 0.0
        return variances

    @property
    def about(self) -> str:
        """What the law is conditional on, a sentence; empty here: it holds as it stands."""
        return ""

    def direction_variance(self, direction: FloatArray) -> float:  # noqa: ARG002 - the same in all
        """Half the variance of uᵀN u for u of length 1: that of a cell off the diagonal, where the noise is isotropic."""
        return self.off_diagonal_variance

    def of_rows_in_ball(self, radius: float) -> NoiseLaw:
        """The law for rows in a ball of that radius, which was taken for 1 when the noise was added.

        Raises
        ------
        TypeError
            If the law has numbers of its own: it must then say how they change.
        """
        if len(fields(self)) != len(fields(NoiseLaw)):
            raise TypeError(f"{type(self).__name__} does not say what it is for rows in another ball")
        return replace(self, **self._scaled_variances(radius))

    def privacy_loss(
        self,
        gram_shift: FloatArray,
        sum_shift: FloatArray,
        count_shift: float,
        delta: float,  # noqa: ARG002 - for laws that know more
    ) -> float | None:
        """The least ε for which (ε, δ) holds between two tables whose exact moments lie so far apart.

        Parameters
        ----------
        gram_shift : ndarray of shape (d, d)
        sum_shift : ndarray of shape (d,)
        count_shift : float
            Moments of the one table less those of the other; those that are not released do not matter.
        delta : float
            δ; 0 for the laws that are pure, which do not look at it.

        Returns
        -------
        float or None
            Infinite where a cell that differs has no noise; else None where no closed form is known, as here.
        """
        cells = self._noisy_cells(gram_shift, sum_shift, count_shift)
        return math.inf if cells is None else None

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file: the name and the fields."""
        return {"name": self.name} | {entry.name: getattr(self, entry.name) for entry in fields(self)}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> NoiseLaw:
        """The law that :meth:`to_dict` wrote, whichever class it is called on.

        Raises
        ------
        TypeError, ValueError
            If the name is that of no registered law, or the other values are not those of this one.
        """
        if not isinstance(values, Mapping):
            raise TypeError("a noise law is a mapping of its name and its numbers")
        name = values.get("name")
        if not isinstance(name, str):
            raise ValueError("the name of the noise law must be given, as text")
        if name not in _LAWS:
            raise ValueError(f"there is no noise law {name!r}: known are {', '.join(sorted(_LAWS))}")
        known = [entry.name for entry in fields(_LAWS[name])]
        given = {key: value for key, value in values.items() if key != "name"}
        require_known(given, known, f"the noise law {name!r}")
        if absent := [key for key in known if key not in given]:
            raise ValueError(f"the noise law has no {', '.join(absent)}")
        return _LAWS[name](**given)

    def _bounded_rows(self, failure: float, size: int | None) -> int:
        """Rows of the block that a bound is for; the probability is checked."""
        if not 0 < failure < 1:
            raise ValueError(f"failure={failure!r} is a probability, above 0 and below 1")
        return self.n_features if size is None else size

    def _scaled_variances(self, radius: float) -> dict[str, Any]:
        return {
            "diagonal_variance": self.diagonal_variance * radius**4,
            "off_diagonal_variance": self.off_diagonal_variance * radius**4,
            "sum_variance": None if self.sum_variance is None else self.sum_variance * radius**2,
        }

    def _noisy_cells(
        self, gram_shift: FloatArray, sum_shift: FloatArray, count_shift: float
    ) -> list[tuple[float, float]] | None:
        """(shift, variance of its noise) of every released cell that has noise; None where one without noise moves."""
        size = len(gram_shift)
        cells = [(float(gram_shift[i, i]), self.diagonal_variance) for i in range(size)]
        cells += [(float(shift), self.off_diagonal_variance) for shift in gram_shift[np.triu_indices(size, 1)]]
        if self.sum_variance is not None:
            cells += [(float(shift), self.sum_variance) for shift in sum_shift]
        if self.count_variance is not None:
            cells.append((float(count_shift), self.count_variance))
        if any(variance == 0.0 and shift != 0.0 for shift, variance in cells):
            return None
        return [(shift, variance) for shift, variance in cells if variance > 0.0]


_LAWS: dict[str, type[NoiseLaw]] = {}


def register_noise_law(law_class: LawClass) -> LawClass:
    """Make a noise law known by its name, so that files that name it are read; a class decorator.

    Parameters
    ----------
    law_class : subclass of NoiseLaw
        A frozen dataclass with a constant ``name`` of its own.

    Returns
    -------
    type
        The class itself.

    Raises
    ------
    ValueError
        If it has no name, or another law has it.

    Examples
    --------
    >>> @register_noise_law
    ... @dataclass(frozen=True)
    ... class UniformNoise(NoiseLaw):
    ...     name = "gaussian"
    Traceback (most recent call last):
    ...
    ValueError: there is a noise law 'gaussian' already: give UniformNoise another name
    """
    name = vars(law_class).get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"{law_class.__name__} must state the name of its law, as a constant of the class")
    if name in _LAWS:
        raise ValueError(f"there is a noise law {name!r} already: give {law_class.__name__} another name")
    _LAWS[name] = law_class
    return law_class


def noise_law_classes() -> Mapping[str, type[NoiseLaw]]:
    """All registered laws by name, sorted.

    Examples
    --------
    >>> [*noise_law_classes()]
    ['gaussian', 'isotropic', 'laplace', 'matrix-laplace', 'pooled', 'wishart']
    """
    return MappingProxyType(dict(sorted(_LAWS.items())))
