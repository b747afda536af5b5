"""Noise models: a name and numbers in a file, from which the noise distribution is made."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from types import MappingProxyType
from typing import Annotated, Any, ClassVar, Literal, Protocol, get_args

import numpy as np
import scipy

from dpmoments.base.checks import (
    check_at_least,
    check_between,
    check_not_negative,
    check_one_of,
    check_positive,
    check_probability,
    is_whole,
    not_one_of,
)
from dpmoments.base.errors import InputTypeError, InputValueError
from dpmoments.base.loaded_classes import LoadedClasses
from dpmoments.base.one_variable import brent_root
from dpmoments.base.records import ABSENT_IF_NONE, Record
from dpmoments.base.values import FloatArray, finite_numbers, require_known
from dpmoments.moments.cells import (
    CellFamily,
    GaussianCells,
    KNormCells,
    LaplaceCells,
    MatrixLaplaceCells,
)
from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.terms import NoiseTerm, ScaleTerm

_ROUNDING = 1e-9


class ReleasedMoments(Protocol):
    """Noisy (unrepaired) moments, from which a noise distribution may be made."""

    @property
    def noisy_sum(self) -> FloatArray | None:
        """Sum of encoded rows about the center; None if it was not released."""

    @property
    def noisy_gram(self) -> FloatArray:
        """Gram matrix of encoded rows about the center."""

    @property
    def noisy_count(self) -> float | None:
        """Number of rows; None if it was not released."""

    @property
    def center(self) -> FloatArray | None:
        """Center of the sum and Gram matrix; None is the origin."""

    @property
    def count_is_public(self) -> bool:
        """True if the number of rows is known without noise."""


@dataclass(frozen=True, slots=True, eq=False)
class MomentInterval:
    """All symmetric M with center − spread ⪯ M ⪯ center + spread, for M = Σ v vᵀ."""

    # with `spread`: (m, m): `spread` is positive semi-definite. v is (1, x) if `constant`, else x: the chosen features,
    # in their order, in encoded units.
    center: FloatArray
    spread: FloatArray
    constant: bool
    count_error: float  # largest difference of the released from the table's number of rows; 0 if it is exact

    def mapped(self, matrix: FloatArray) -> MomentInterval:
        """Return the interval for matrix·v, whose first entry is again the constant, if v has one."""
        center, spread = matrix @ self.center @ matrix.T, matrix @ self.spread @ matrix.T
        return MomentInterval(center, spread, self.constant, self.count_error)


@dataclass(frozen=True, kw_only=True, eq=False)
class NoiseModel(ABC):
    """Description of the noise of one run in a file.

    Subclasses form a closed table (:data:`_NOISE_MODELS`). Their fields are numbers, flags, or arrays whose shapes follow from
    ``n_features``; the base class writes, reads and checks them.
    """

    n_features: int

    arrays: ClassVar[Mapping[str, int]] = MappingProxyType({})
    """Dimensions of the fields that are arrays: 1 for d numbers, 2 for a d × d matrix."""
    about_levels: ClassVar[bool] = False
    """True if noise is added about a public center of levels, where rows are shorter than 1."""
    in_coordinates: ClassVar[bool] = False
    """True if noise is isotropic in coordinates of a run, in which levels are not moved."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Name in files."""

    def __post_init__(self) -> None:
        check_at_least("n_features", d := self.n_features)
        for entry in fields(self):
            value = getattr(self, entry.name)
            if value is None and "None" in str(entry.type):
                continue
            if entry.name in self.arrays:
                shape = (d,) * self.arrays[entry.name]
                if not isinstance(value, np.ndarray) or value.shape != shape or not np.isfinite(value).all():
                    raise InputValueError(f"{entry.name} must hold {d ** len(shape)} finite numbers")
                value.setflags(write=False)
            elif entry.type == "bool":
                require_entry(isinstance(value, bool), entry.name, "true or false")
            elif str(entry.type).startswith(("float", "int")):
                check_not_negative(entry.name, value)
                if entry.name != "n_features":
                    object.__setattr__(
                        self, entry.name, float(value) + 0.0
                    )  # a file may hold an integer beyond 64 bits

    @property
    def condition(self) -> str:
        """Code of a condition, beyond the release, of distribution and interval; empty for none."""
        return ""

    @abstractmethod
    def law(self, released: ReleasedMoments) -> NoiseLaw | None:
        """Return the noise distribution.

        None if the release is biased on purpose, or no run makes these numbers.
        """

    @property
    def fixed_law(self) -> NoiseLaw | None:
        """Noise distribution if no release changes it, so that a plan knows it; else None."""
        return None

    @property
    def units(self) -> FloatArray:
        """Encoded units in one unit of the lattice's unit ball, shape (d,)."""
        return np.ones(self.n_features)

    def interval(
        self,
        released: ReleasedMoments,
        chosen: Sequence[int],
        failure: float,
    ) -> MomentInterval | None:
        """Return an interval with the exact moments of ``chosen`` features, not linearized.

        It fails with probability ``failure`` at most.

        The features must be chosen without looking at the noise. None if the model gives no interval: a bound then follows from
        the distribution.
        """
        return None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file; no bit is lost."""
        values: dict[str, Any] = {"name": self.name}
        for entry in fields(self):
            value = getattr(self, entry.name)
            values[entry.name] = value.ravel().tolist() if isinstance(value, np.ndarray) else value
        return values

    @staticmethod
    def from_dict(values: Mapping[str, Any]) -> NoiseModel:
        """Return the model that :meth:`to_dict` wrote."""
        if not isinstance(values, Mapping):
            raise InputTypeError("noise_model must be a mapping")
        name = values.get("name")
        if not isinstance(name, str) or name not in _NOISE_MODELS:
            raise not_one_of("name", name, sorted(_NOISE_MODELS))
        given = {key: value for key, value in values.items() if key != "name"}
        return _NOISE_MODELS[name].read(name, given)

    @classmethod
    def read(cls, name: str, given: dict[str, Any]) -> NoiseModel:
        """Return the model of this name from the other entries of its file."""
        known = [entry.name for entry in fields(cls)]
        require_known(given, known, name)
        if absent := [key for key in known if key not in given]:
            raise InputValueError(f"{name} has no {', '.join(absent)}")
        d = given["n_features"]
        for key, dimensions in cls.arrays.items():
            if given[key] is None:
                continue
            check_at_least("n_features", d)
            given[key] = finite_numbers(given[key], d**dimensions, key).reshape((d,) * dimensions)
        return cls(**given)


def require_entry(holds: Any, entry: str, expected: str) -> None:
    """Raise ValueError unless an entry of a noise model is what is expected."""
    if not holds:
        raise InputValueError(f"{entry} of the noise model must be {expected}")


_ONE_PER_COORDINATE = "one number per coordinate, finite and not negative"


@dataclass(frozen=True, kw_only=True, eq=False)
class WithOwnCount(NoiseModel):
    """Model with separate noise on the number of rows.

    SD ``count_scale`` (scale of Laplace noise), 0 for none.
    """

    count_scale: float = 0.0
    count_is_laplace: bool = False

    def count_bound(self, failure: float) -> float:
        """Bound the error of the released number of rows, rounding included.

        It fails with probability ``failure`` at most.
        """
        if not self.count_scale:
            return 0.0
        if self.count_is_laplace:
            return self.count_scale * math.log(1.0 / failure) + 0.5
        return self.count_scale * math.sqrt(2.0 * math.log(2.0 / failure)) + 0.5

    def _with_count(
        self, terms: Sequence[NoiseTerm | ScaleTerm], caveats: Sequence[str], shift: FloatArray | None = None
    ) -> NoiseLaw:
        """Return the distribution of these terms and the count's noise."""
        # ``shift`` is the row part of the constant.
        law = NoiseLaw(tuple(terms), tuple(sorted(caveats)))
        if not self.count_scale:
            return law
        family: CellFamily = LaplaceCells() if self.count_is_laplace else GaussianCells()
        variance = self.count_scale**2 * (2.0 if self.count_is_laplace else 1.0)
        column = np.append(1.0, np.zeros(self.n_features) if shift is None else shift)[:, None]
        return replace(law, terms=(*law.terms, NoiseTerm(family, np.array([[variance]]), column)))


_FAMILIES: Mapping[str, type[CellFamily]] = LoadedClasses(
    {
        "gaussian": "dpmoments.moments.cells:GaussianCells",
        "laplace": "dpmoments.moments.cells:LaplaceCells",
        "isotropic": "dpmoments.moments.cells:IsotropicCells",
        "matrix-laplace": "dpmoments.moments.cells:MatrixLaplaceCells",
        "wishart": "dpmoments.papers.models:WishartCells",
    }
)
"""Families of cells."""


_CENTERED_FAMILIES = ("gaussian", "matrix-laplace", "isotropic")
"""Families that are invariant under rotation, which noise about a center of levels needs."""


@dataclass(frozen=True, kw_only=True, eq=False)
class AdditiveModel(WithOwnCount):
    """Noise added entry by entry, with one distribution for all features.

    Attributes
    ----------
    family : str
        Name in :data:`_FAMILIES` and in files.
    diagonal_variance, off_diagonal_variance : float
        Variances of the entries of the Gram matrix.
    sum_variance : float or None
        Variance of each entry of the sum of rows; None if it was not released.
    count_variance : float or None
        Variance of the entry that holds the number of rows: 0 if that is public; None if there is no such entry.
    rate : float or None
        c of a family of whole matrices; None for the others.
    """

    family: str
    diagonal_variance: float
    off_diagonal_variance: float
    sum_variance: float | None
    count_variance: float | None
    rate: float | None = None

    @property
    def name(self) -> str:
        return self.name_before_family + self.family

    name_before_family: ClassVar[str] = ""

    @classmethod
    def read(cls, name: str, given: dict[str, Any]) -> NoiseModel:
        if "family" in given:
            raise InputValueError(f"{name} has unknown entries family")
        return super().read(name, {**given, "family": name.removeprefix(cls.name_before_family)})

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("family", self.family, _FAMILIES)
        if not _FAMILIES[self.family].of_matrices:
            require_entry(self.rate is None, "rate", "left out for this family")
            return
        require_entry(self.rate is not None, "rate", "a positive finite number")
        assert self.rate is not None
        check_positive("rate", self.rate)
        check_not_negative("diagonal_variance", self.diagonal_variance * self.rate * self.rate)
        self._require_rotation_invariance()

    def _require_rotation_invariance(self) -> None:
        twice = math.isclose(self.diagonal_variance, 2.0 * self.off_diagonal_variance, rel_tol=_ROUNDING)
        require_entry(twice, "diagonal_variance", "twice the variance off the diagonal")

    @property
    def cells(self) -> CellFamily:
        """Family of its cells."""
        family, square = _FAMILIES[self.family], self.diagonal_variance * float(self.rate or 0.0) ** 2
        return family.at_rate(square) if square > 0.0 or not family.of_matrices else GaussianCells()

    @property
    def frobenius_error(self) -> float:
        """RMS of ‖N‖_F, N the noise on the Gram matrix."""
        d = self.n_features
        return math.sqrt(d * self.diagonal_variance + d * (d - 1) * self.off_diagonal_variance)

    @property
    def fixed_law(self) -> NoiseLaw:
        law = NoiseLaw.additive(
            self.cells,
            self.n_features,
            diagonal=self.diagonal_variance,
            off_diagonal=self.off_diagonal_variance,
            of_sum=self.sum_variance or 0.0,
            of_count=self.count_variance or 0.0,
        )
        return self._with_count(law.terms, ())

    def law(self, released: ReleasedMoments | None = None) -> NoiseLaw:
        return self.fixed_law

    def to_dict(self) -> dict[str, Any]:
        return {key: value for key, value in super().to_dict().items() if key != "family"}


def _blocks(sizes: FloatArray) -> Iterator[slice]:
    """Yield the complete blocks, in order."""
    # Raise ValueError unless each feature of a block has its size.
    start = 0
    while start < len(sizes):
        stop = start + max(sizes[start], 1.0)
        fits = stop % 1.0 == 0.0 and stop <= len(sizes) and (sizes[start : int(stop)] == sizes[start]).all()
        require_entry(fits, "block_sizes", "sizes of blocks that follow each other")
        if sizes[start] >= 1.0:
            yield slice(start, int(stop))
        start = int(stop)


def _projection(sizes: FloatArray) -> FloatArray:
    """Return the projection that takes its mean off each complete block, shape (d, d)."""
    result = np.eye(len(sizes))
    for block in _blocks(sizes):
        result[block, block] -= 1.0 / (block.stop - block.start)
    return result


@dataclass(frozen=True, kw_only=True, eq=False)
class CenteredLevelsModel(AdditiveModel):
    """Noise added in coordinates about a public center of one-hot levels.

    The moments are about 0.

    With c the center and P the projection that takes its mean off each complete block, the noise on Σ (1, x)(1, x)ᵀ is
    L C Lᵀ, C noise with one distribution for all cells as in :class:`AdditiveModel` and L = [[1, 0], [c, P]]
    (``docs/evidence/derivations/public-center.md``).
    """

    center: FloatArray  # (d,), c, in unit-ball units; 0 for features outside blocks
    block_sizes: FloatArray  # (d,), size of the feature's complete block, 0 for other features

    arrays: ClassVar[Mapping[str, int]] = {"center": 1, "block_sizes": 1}
    about_levels: ClassVar[bool] = True
    name_before_family: ClassVar[str] = "centered-levels-"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_entry(
            self.family in _CENTERED_FAMILIES, "family", "a family that can be added about a center of levels"
        )
        self._require_rotation_invariance()
        for name in ("sum_variance", "count_variance"):
            require_entry(getattr(self, name) is not None, name, "given, since noise is about a center of levels")
        require_entry((np.abs(self.center) <= 1.0).all(), "center", "in the unit ball")
        list(_blocks(self.block_sizes))

    @property
    def projection(self) -> FloatArray:
        """P, shape (d, d)."""
        return _projection(self.block_sizes)

    @property
    def map_to_zero(self) -> FloatArray:
        """L, shape (d + 1, d + 1)."""
        matrix = np.eye(self.n_features + 1)
        matrix[1:, 0], matrix[1:, 1:] = self.center, self.projection
        return matrix

    @property
    def frobenius_error(self) -> float:
        return math.sqrt(self.fixed_law.energy)

    @property
    def fixed_law(self) -> NoiseLaw:
        return super().fixed_law.carried(self.map_to_zero)


_OF_ONE_COLUMN = 0.08
"""Share of the variance of what clipping hides of a column.

Other columns have no part in this share.
"""
_MOST_IN_COMMON = 1.0 - 1e-9
"""Most of the other share that a known total may take off.

With all of it a variance of 0 may be rounded to below 0.
"""


@dataclass(frozen=True, kw_only=True, eq=False)
class StandardizedModel(NoiseModel):
    """Isotropic noise in coordinates of one size, carried back, means and count of two draws.

    With P the projection that takes its mean off each complete block and S = diag(``scales``), the noise on the Gram matrix
    about the center is P S C S P, C isotropic. Means and count have noise of their own: of the last draw, in the coordinates,
    and of the rough sums, in encoded units (``docs/evidence/derivations/standardized.md``).
    """

    family: str
    variance: float  # of a diagonal cell of C; half of it off the diagonal
    rate: float | None  # c of matrix Laplace noise
    scales: FloatArray  # (d,), encoded units in one unit of a coordinate
    block_sizes: FloatArray  # (d,), size of the feature's complete block, 0 for other features
    sum_variances: FloatArray  # (d,), of sums by the last draw, in coordinates
    rough_variances: FloatArray  # (d,), of sums by the rough ones and by clipping, in encoded units
    clipping: FloatArray  # (d,), SD of what clipping hides of Σx² about the center, in encoded units
    clipping_total: float | None  # SD of what it hides of all squares, in coordinates; None: columns are independent
    clipping_along: float  # SD of what it hides along the first directions beyond that, in coordinates
    count_variance: float

    name: ClassVar[str] = "standardized"
    in_coordinates: ClassVar[bool] = True
    arrays: ClassVar[Mapping[str, int]] = dict.fromkeys(
        ("scales", "block_sizes", "sum_variances", "rough_variances", "clipping"), 1
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("family", self.family, ("gaussian", "matrix-laplace"))
        require_entry((self.rate is None) == (self.family == "gaussian"), "rate", "left out for this family")
        if self.rate is not None:
            check_positive("rate", self.rate)
        rate = self.rate or 1.0
        check_not_negative("variance", self.variance * rate * rate)
        for name in ("scales", "sum_variances", "rough_variances", "clipping"):
            require_entry((getattr(self, name) >= 0.0).all(), name, "0 or above")
        list(_blocks(self.block_sizes))

    @classmethod
    def read(cls, name: str, given: dict[str, Any]) -> NoiseModel:
        if "clipping_total" not in given and "clipping_along" not in given:  # a file of before, column by column
            given = {**given, "clipping_total": None, "clipping_along": 0.0}
        return super().read(name, given)

    @property
    def cells(self) -> CellFamily:
        """Family of its cells."""
        return GaussianCells() if self.rate is None else MatrixLaplaceCells(self.variance * self.rate**2)

    @property
    def units(self) -> FloatArray:
        return self.scales

    @property
    def fixed_law(self) -> NoiseLaw:
        d = self.n_features
        matrix, plain = np.zeros((d + 1, d + 1)), np.zeros((d + 1, d + 1))
        matrix[0, 0], matrix[1:, 1:] = 1.0, _projection(self.block_sizes) * self.scales
        isotropic = np.zeros((d + 1, d + 1))
        isotropic[1:, 1:] = symmetric_cells(d, self.variance)
        of_sums = np.zeros((d + 1, d + 1))
        of_sums[0, 1:] = of_sums[1:, 0] = self.sum_variances
        plain[0, 1:] = plain[1:, 0] = self.rough_variances
        plain[0, 0] = self.count_variance
        terms = NoiseTerm(self.cells, isotropic, matrix), NoiseTerm(self.cells, of_sums, matrix)
        of_rough = NoiseTerm(LaplaceCells() if self.rate else GaussianCells(), plain)
        drawn = NoiseLaw((*terms, of_rough))
        if not self.clipping.any():
            return drawn
        return NoiseLaw((*drawn.terms, self._of_one_column(1.0)), drawn_part=drawn)

    def _of_one_column(self, share: float) -> NoiseTerm:
        """Return the term of what clipping hides of one column only, a share of its variances."""
        d = self.n_features
        hidden = np.zeros((d + 1, d + 1))
        hidden[1:, 1:] = symmetric_cells(d, share)
        return NoiseTerm(GaussianCells(), hidden, np.diag(np.sqrt(np.append(0.0, self.clipping))))

    def law(self, released: ReleasedMoments | None = None) -> NoiseLaw:
        total = None if released is None else released.noisy_sum
        if released is None or total is None or not released.noisy_count or not self.clipping.any():
            return self.fixed_law
        # rows that are shortened as a whole lose of all their columns alike, and most along the first directions
        gram, d = np.asarray(released.noisy_gram - np.outer(total, total) / released.noisy_count), self.n_features
        clipped = np.flatnonzero(self.clipping)
        own = np.maximum(gram.diagonal(), self.clipping)
        np.fill_diagonal(gram, own)
        unit, below = self.scales[clipped], np.zeros((1, len(clipped)))
        squares = (self.clipping[clipped] / unit**2) ** 2
        together = squares.sum() if self.clipping_total is None else self.clipping_total**2
        of_rows = ScaleTerm(
            (1.0 - _OF_ONE_COLUMN) * (self.clipping[clipped] / own[clipped]) ** 2,
            np.vstack([below, np.eye(d)[:, clipped]]),
            np.vstack([below, gram[:, clipped]]),
            common=squares / squares.sum() * unit**2 / own[clipped],
            common_variance=max(together / squares.sum() - 1.0, -_MOST_IN_COMMON * (1.0 - _OF_ONE_COLUMN))
            * squares.sum(),
        )
        tilt, block = np.zeros((d, len(clipped))), np.ix_(clipped, clipped)
        tilt[clipped] = lost_along(gram[block] / np.outer(unit, unit)) * np.outer(unit, unit)
        along = replace(
            of_rows,
            variances=np.zeros(len(clipped)),
            right=np.vstack([below, tilt]),
            common=np.ones(len(clipped)),
            common_variance=self.clipping_along**2,
        )
        drawn = self.fixed_law.drawn
        return NoiseLaw((*drawn.terms, self._of_one_column(_OF_ONE_COLUMN), of_rows, along), drawn_part=drawn)


def lost_along(covariance: FloatArray) -> FloatArray:
    """Return the shape of what long normal rows lose, less what longer columns give of it."""
    square, own = covariance @ covariance, covariance.diagonal()
    longer = square.diagonal() / own
    return np.asarray((square - covariance * (longer + longer[:, None]) / 2.0) / np.trace(square))


@dataclass(frozen=True, kw_only=True, eq=False)
class PooledModel(NoiseModel):
    """Sum of the independent noise of releases, each carried to one center.

    No file names it: a file of a pooled release holds the releases, each with its model. ``parts`` are, for each release, its
    model, its noise distribution, and cᵢ − c, shape (d,).
    """

    parts: tuple[tuple[NoiseModel | None, NoiseLaw, FloatArray], ...]

    name: ClassVar[str] = "pooled"

    def __post_init__(self) -> None:
        super().__post_init__()
        require_entry(self.parts, "parts", "a list of at least one")
        for _, law, shift in self.parts:
            fits = law.n_features == self.n_features and shift.shape == (self.n_features,)
            require_entry(fits, "parts", "known for the features of each part")
            shift.setflags(write=False)

    @property
    def fixed_law(self) -> NoiseLaw | None:
        fixed = all(model is not None and model.fixed_law is not None for model, *_ in self.parts)
        return self.law() if fixed else None

    def law(self, released: ReleasedMoments | None = None) -> NoiseLaw:
        first, *rest = (law.about(shift) for _, law, shift in self.parts)
        return sum(rest, first)

    def to_dict(self) -> dict[str, Any]:
        parts = [
            {"model": model.to_dict() if model else None, "shift": shift.tolist()} for model, _, shift in self.parts
        ]
        return {"name": self.name, "n_features": self.n_features, "parts": parts}


# Noise that is not added cell by cell -------------------------------------------------------------------------------------------


def symmetric_cells(size: int, diagonal: float) -> FloatArray:
    """Return variances that no rotation changes: half as large off the diagonal."""
    cells = np.full((size, size), 0.5 * diagonal)
    np.fill_diagonal(cells, diagonal)
    return cells


_NOISE_MODELS: Mapping[str, type[NoiseModel]] = LoadedClasses(
    dict.fromkeys(_FAMILIES, "dpmoments.moments.models:AdditiveModel")
    | {
        CenteredLevelsModel.name_before_family + family: "dpmoments.moments.models:CenteredLevelsModel"
        for family in _CENTERED_FAMILIES
    }
    | {
        "inverse-normal": "dpmoments.papers.models:InverseNormalModel",
        "last-step": "dpmoments.papers.models:LastStepModel",
        "released-basis": "dpmoments.papers.models:ReleasedBasisModel",
        "scaled-wishart": "dpmoments.papers.models:ScaledWishartModel",
        "standardized": "dpmoments.moments.models:StandardizedModel",
        "wishart-sampling": "dpmoments.papers.models:WishartModel",
    }
)
"""Closed table of models that a file may name. Those of papers are loaded on first use."""


# The law of the noise on a mean released alone, coordinate by coordinate.

MeanLaw = Literal["gaussian", "k-norm", "laplace"]
# Relative difference of Laplace scales below which they count as equal. The general formula would lose all digits.
_ALIKE = 1e-6
_STANDARD_LAPLACE = math.sqrt(0.5)
"""Scale of a Laplace variable of variance 1."""


@dataclass(frozen=True, eq=False)
class MeanModel(Record):
    """Noise of a mean-only release in a file, coordinate by coordinate, in encoded units.

    A sum with noise SD s is divided by the number of rows n. If n is noisy, with SD s_n, the mean of the clipped rows, ``m``
    away from the last center, has error (s·Z + m·s_n·Z′)/n to first order; Z and Z′ have the named distribution, and are
    independent, or of the same draw of K-norm noise.

    **Only noise is included**, neither the bias of clipping nor the sampling error.
    """

    law: MeanLaw
    deviations: FloatArray  # (d,), s/n
    count_deviations: FloatArray  # (d,): |m|·s_n/n; 0 if the number of rows is public
    # noisy fraction of the rows that the last step clipped, 0 if it is within noise (of coordinates clipped separately,
    # the largest); None if nothing was spent on it
    clipped: float | None = None
    # true if, by the noisy evidence of the run, clipping may have moved the mean by more than the noise
    bias_suspected: bool = False
    # of K-norm noise: the coordinates of the draw, and for each mean the size of its block, 1 for a coordinate of the box
    dimension: Annotated[int | None, ABSENT_IF_NONE] = None
    block_sizes: Annotated[tuple[int, ...] | None, ABSENT_IF_NONE] = None

    def __post_init__(self) -> None:
        check_one_of("law", self.law, get_args(MeanLaw))
        sizes, dimension = self.block_sizes, self.dimension
        require_entry(
            (sizes is None) == (dimension is None) == (self.law != "k-norm"), "block_sizes", _ONE_PER_COORDINATE
        )
        if sizes is not None and dimension is not None:
            whole = len(sizes) == len(self.deviations) and all(map(is_whole, (*sizes, dimension)))
            require_entry(whole and dimension - len(sizes) in (0, 1), "dimension", _ONE_PER_COORDINATE)
            require_entry(1 <= min(sizes) <= max(sizes) <= len(sizes), "block_sizes", _ONE_PER_COORDINATE)
        for name, values in (("deviations", self.deviations), ("count_deviations", self.count_deviations)):
            fits = values.ndim == 1 and values.shape == self.deviations.shape
            require_entry(fits and np.isfinite(values).all() and (values >= 0.0).all(), name, _ONE_PER_COORDINATE)
            values.setflags(write=False)
        if self.clipped is not None:
            check_between("clipped", self.clipped, 0.0, 1.0)

    @property
    def standard_deviations(self) -> FloatArray:
        """SDs of both kinds of noise together, shape (d,)."""
        return np.asarray(np.hypot(self.deviations, self.count_deviations))

    def half_widths(self, level: float) -> FloatArray:
        """Return bounds within which each coordinate's noise stays with probability ``level``."""
        # Separately, shape (d,).
        check_probability("level", level)
        if self.law == "gaussian":
            return self.standard_deviations * float(scipy.special.ndtri(0.5 + 0.5 * level))
        if self.dimension is not None and self.block_sizes is not None:
            ratios = self.count_deviations / np.maximum(self.deviations, 1e-300)
            cells = [KNormCells(self.dimension, size) for size in self.block_sizes]
            of_each = zip(cells, ratios.tolist(), strict=True)
            return np.asarray(self.deviations * [cell.half_width(level, ratio) for cell, ratio in of_each])
        larger = np.maximum(self.deviations, self.count_deviations)
        smaller = np.minimum(self.deviations, self.count_deviations)
        pairs = zip(larger.tolist(), smaller.tolist(), strict=True)
        return np.asarray(larger * np.array([_laplace_half_width(level, *pair) for pair in pairs]))


def _laplace_half_width(level: float, larger: float, smaller: float) -> float:
    """Return the t with P(|X + Y| ≤ t) = ``level``, in units of ``larger``."""
    # X and Y are independent Laplace of these SDs. For scales a > b, P(|X + Y| > t) = (a²e^{−t/a} − b²e^{−t/b})/(a² − b²), and
    # (1 + t/(2a))e^{−t/a} for a = b. Both are below 2e^{−t/(2a)}, which bounds the search.
    left = 1.0 - level
    ratio = smaller / larger if larger > 0.0 else 0.0
    if ratio == 0.0:
        return -math.log(left) * _STANDARD_LAPLACE

    def excess(t: float) -> float:
        """Return P(|X + Y| > t) less its target, t in larger scales."""
        if ratio > 1.0 - _ALIKE:
            return (1.0 + 0.5 * t) * math.exp(-t) - left
        return (math.exp(-t) - ratio * ratio * math.exp(-t / ratio)) / (1.0 - ratio * ratio) - left

    result = brent_root(excess, 0.0, 2.0 * math.log(2.0 / left) + 1.0)
    return float(result) * _STANDARD_LAPLACE
