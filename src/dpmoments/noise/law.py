"""What every noise law answers, and the register in which a file's noise law is found by its name."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from numbers import Integral
from types import MappingProxyType
from typing import Any, ClassVar, TypeVar

import numpy as np

from dpmoments.foundation.arrays import FloatArray
from dpmoments.foundation.values import finite_numbers, is_finite_number, require_known

# Quantiles that hold for every law.


def cantelli_quantile(level: float) -> float:
    """What no standardised variable passes with more than the probability left: ±√(p/(1 − p)), p the larger side.

    Examples
    --------
    >>> cantelli_quantile(0.8), cantelli_quantile(0.1)
    (2.0, -3.0)
    """
    return math.sqrt(level / (1.0 - level)) if level >= 0.5 else -math.sqrt((1.0 - level) / level)


def checked_level(level: float) -> float:
    """The level, if it is a probability above 0 and below 1; else a ValueError."""
    if not 0.0 < level < 1.0:
        raise ValueError(f"level={level!r} is a probability, above 0 and below 1")
    return level


# What follows from the variances of cells of a symmetric matrix of noise that are uncorrelated.


def _covariance_of_product(
    variances: FloatArray, vector: FloatArray, chosen: Sequence[int] | None = None
) -> FloatArray:
    """Cov(C b), or that of some entries, for a symmetric C of uncorrelated cells with these variances."""
    rows = np.arange(len(vector)) if chosen is None else np.asarray(chosen)
    of_rows = variances[rows]
    # two entries of C b share one cell of C
    covariance = of_rows[:, rows] * np.outer(vector[rows], vector[rows])
    covariance[np.diag_indices(len(rows))] = of_rows @ vector**2
    return covariance


def _variance_of_functional(variances: FloatArray, weights: FloatArray) -> float:
    """Var(Σ Aᵢⱼ Cᵢⱼ) for symmetric A and C, the cells of C uncorrelated with these variances."""
    squares = variances * weights**2
    return float(2.0 * squares.sum() - np.trace(squares))


class UncorrelatedCells(ABC):
    """Noise N on Σ z zᵀ, z = (1, x), whose cells on and above the diagonal are uncorrelated and of mean 0."""

    @property
    @abstractmethod
    def cell_variances(self) -> FloatArray:
        """Variances of the cells, shape (d + 1, d + 1)."""

    def product_covariance(self, vector: FloatArray, chosen: Sequence[int] | None = None) -> FloatArray:
        """Cov(N b).

        Parameters
        ----------
        vector : ndarray of shape (d + 1,)
            b.
        chosen : sequence of int, optional
            Entries of N b that are wanted (0 is that of the constant); default: all.
        """
        return _covariance_of_product(self.cell_variances, vector, chosen)

    def functional_variance(self, weights: FloatArray) -> float:
        """Var(Σ Aᵢⱼ Nᵢⱼ) for a symmetric A of shape (d + 1, d + 1)."""
        return _variance_of_functional(self.cell_variances, weights)


_NOT_RELEASED = ("sum_variance", "count_variance")
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
                if entry.name not in _NOT_RELEASED:
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


PivotClass = TypeVar("PivotClass", bound="type[MomentPivot]")


@dataclass(frozen=True, slots=True, eq=False)
class MomentInterval:
    """All symmetric M with center − spread ⪯ M ⪯ center + spread, for M = Σ v vᵀ.

    Attributes
    ----------
    center, spread : ndarray of shape (m, m)
        ``spread`` is positive semi-definite. v is (1, x) where ``constant``, else x: the features that were asked for, in
        their order, in units of the encoded rows.
    constant : bool
    count_error : float
        How far the released number of rows may be from that of the table's; 0 where it is exact.
    """

    center: FloatArray
    spread: FloatArray
    constant: bool
    count_error: float

    def mapped(self, matrix: FloatArray) -> MomentInterval:
        """The same for matrix·v, whose first entry is again the constant, if v has one."""
        center, spread = matrix @ self.center @ matrix.T, matrix @ self.spread @ matrix.T
        return MomentInterval(center, spread, self.constant, self.count_error)


@dataclass(frozen=True, kw_only=True, eq=False)
class MomentPivot(ABC):
    """The law of one run, with what is needed to use it beside count, sum and Gram matrix.

    Small subclasses, registered by name (:func:`register_moment_pivot`); ``MomentPivot.from_dict`` makes the one that a file
    names. Their fields are numbers, or arrays whose shapes follow from ``n_features``.

    Attributes
    ----------
    n_features : int
    count_scale : float
        Standard deviation of normal noise on the number of rows, or the scale of Laplace noise (``count_is_laplace``); 0 where
        it is exact, or where the interval itself bounds it.
    count_is_laplace : bool
    """

    n_features: int
    count_scale: float = 0.0
    count_is_laplace: bool = False

    name: ClassVar[str]
    arrays: ClassVar[Mapping[str, int]] = MappingProxyType({})
    """Dimensions of the fields that are arrays: 1 for d numbers, 2 for a d × d matrix."""

    def __post_init__(self) -> None:
        d = self.n_features
        if isinstance(d, bool) or not isinstance(d, int) or d < 1:
            raise ValueError(f"n_features={d!r} of the pivot is not a whole number above 0")
        for entry in fields(self):
            value = getattr(self, entry.name)
            if entry.name in self.arrays:
                self._check_array(entry.name, value)
            elif entry.type == "bool":
                if not isinstance(value, bool):
                    raise ValueError(f"{entry.name} of the pivot must be true or false")
            elif value is None and entry.type == "float | None":
                continue
            elif not (is_finite_number(value) and value >= 0):
                raise ValueError(f"{entry.name} of the pivot is not a finite number, 0 or above")

    def _check_array(self, name: str, value: object) -> None:
        shape = (self.n_features,) * self.arrays[name]
        if value is None:
            return
        if not isinstance(value, np.ndarray) or value.shape != shape or not np.isfinite(value).all():
            raise ValueError(f"{name} of the pivot must hold finite numbers, shape {shape}")
        value.setflags(write=False)

    @property
    def covers(self) -> str:
        """What the interval is about, beyond the table's own moments, in words; empty where there is nothing to add."""
        return ""

    @abstractmethod
    def interval(
        self, count: float | None, total: FloatArray | None, gram: FloatArray, chosen: Sequence[int], failure: float
    ) -> MomentInterval | None:
        """An interval that holds the exact moments of some features but with probability ``failure``.

        Parameters
        ----------
        count, total, gram
            What was released, before any repair, in unit-ball units; sum and Gram matrix about the release's centre.
        chosen : sequence of int
            Features, chosen without looking at the noise.
        failure : float
            Above 0, below 1.

        Returns
        -------
        MomentInterval or None
            None where the law bounds nothing.
        """

    def count_bound(self, failure: float) -> float:
        """How far the released number of rows may be off, but with probability ``failure``; half a row more for its rounding."""
        if not self.count_scale:
            return 0.0
        if self.count_is_laplace:
            return self.count_scale * math.log(1.0 / failure) + 0.5
        return self.count_scale * math.sqrt(2.0 * math.log(2.0 / failure)) + 0.5

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        values: dict[str, Any] = {"name": self.name}
        for entry in fields(self):
            value = getattr(self, entry.name)
            values[entry.name] = value.ravel().tolist() if isinstance(value, np.ndarray) else value
        return values

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> MomentPivot:
        """The pivot that :meth:`to_dict` wrote, whichever class it is called on.

        Raises
        ------
        TypeError, ValueError
            If the name is that of no registered pivot, or the other values are not those of this one.
        """
        if not isinstance(values, Mapping):
            raise TypeError("a pivot is a mapping of its name and its numbers")
        name = values.get("name")
        if not isinstance(name, str) or name not in _PIVOTS:
            raise ValueError(f"the name of the pivot must be one of {', '.join(sorted(_PIVOTS))}")
        made = _PIVOTS[name]
        known = [entry.name for entry in fields(made)]
        given = {key: value for key, value in values.items() if key != "name"}
        require_known(given, known, f"the pivot {name!r}")
        if absent := [key for key in known if key not in given]:
            raise ValueError(f"the pivot has no {', '.join(absent)}")
        d = given["n_features"]
        for key, dimensions in made.arrays.items():
            if given[key] is None:
                continue
            if not isinstance(given[key], list) or not isinstance(d, int) or len(given[key]) != d**dimensions:
                raise ValueError(f"{key} of the pivot is no list of as many numbers as n_features asks for")
            given[key] = finite_numbers(given[key], d**dimensions, key).reshape((d,) * dimensions)
        return made(**given)


_PIVOTS: dict[str, type[MomentPivot]] = {}


def register_moment_pivot(pivot_class: PivotClass) -> PivotClass:
    """Make a pivot known by its name, so that files that name it are read; a class decorator.

    Raises
    ------
    ValueError
        If it has no name, or another pivot has it.
    """
    name = vars(pivot_class).get("name")
    if not isinstance(name, str) or not name:
        raise ValueError(f"{pivot_class.__name__} must state the name of its pivot, as a constant of the class")
    if name in _PIVOTS:
        raise ValueError(f"there is a pivot {name!r} already: give {pivot_class.__name__} another name")
    _PIVOTS[name] = pivot_class
    return pivot_class


def moment_pivot_classes() -> Mapping[str, type[MomentPivot]]:
    """All registered pivots by name, sorted.

    Examples
    --------
    >>> import dpmoments.noise
    >>> [*moment_pivot_classes()]
    ['inverse-normal', 'last-step', 'wishart-sampling']
    """
    return MappingProxyType(dict(sorted(_PIVOTS.items())))
