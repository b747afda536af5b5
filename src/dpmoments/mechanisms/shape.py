"""Public knowledge of a plan, before any row is read, and the result of a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.base.arrays import FloatArray
from dpmoments.base.errors import InputValueError, shown
from dpmoments.base.message import Message
from dpmoments.mechanisms.level_coordinates import LevelCoordinates
from dpmoments.mechanisms.row_coordinates import RowCoordinates
from dpmoments.moments.models import NoiseModel
from dpmoments.privacy.unit import Neighbors
from dpmoments.schema.columns import WEIGHT_BITS
from dpmoments.schema.constraints import require_mean_of_weighted
from dpmoments.schema.encoding import RoughScale
from dpmoments.schema.schema import Schema


@dataclass(frozen=True)
class MomentShape:
    """Public facts about the moments to release."""

    n_features: int  # d, after encoding
    # number of rows, if it is public. Under `replace_one` no plan uses it if a rule can drop a row: the number of kept
    # rows is then private.
    n_rows: int | None = None
    mean: bool = True  # true if count and mean are released with the second moment
    # bound on the Euclidean norm of an encoded row: 1 (the unit ball), or None if the schema gives no bound
    row_norm: float | None = 1.0
    rough_scale: RoughScale | None = None  # scale ranges of the encoded rows, if the schema has them in place of bounds
    drops_rows: bool = False  # true if a rule of the schema can drop a row
    # number of features of each column, of which one at most is not 0, and the largest |x| of each; default: one
    # feature a column, in [−1, 1]
    columns: tuple[tuple[int, float], ...] = ()
    schema: Schema | None = None  # what coordinates are made of; None: a table of numbers about 0
    # weight of squared errors of means relative to the default, in the choice of the appended constant
    mean_weight: float = 1.0
    # bits by which sums of weighted rows are on a finer lattice than rows; 0 without a sampling weight
    weight_bits: int = 0

    @classmethod
    def of(cls, schema: Schema, *, mean: bool, n_rows: int | None = None) -> MomentShape:
        """Return the shape of the moments of a table with this schema."""
        if schema.has_available and not mean:
            needs = "the rule 'available' for missing values of a column needs the mean, which is not released: "
            raise InputValueError(
                f"{needs}leave mean=False out, or use missing='drop' or 'fill'",
                shell=f"{needs}leave --no-mean out, or write missing: drop or fill in the schema",
            )
        if schema.mean_weight != 1.0 and not mean:
            raise InputValueError(
                f"the schema has a mean_weight, {shown(schema.mean_weight)}, and no mean is released: leave the weight out, "
                "or release the mean"
            )
        require_mean_of_weighted(schema, mean=mean)
        drawn = schema.with_indicators
        return cls(
            drawn.n_features,
            n_rows=n_rows,
            mean=mean,
            row_norm=None if schema.row_norm is None else 1.0,
            rough_scale=drawn.rough_scale(mean=mean),
            drops_rows=schema.drops_rows,
            columns=_columns(drawn),
            schema=schema,
            mean_weight=schema.mean_weight,
            weight_bits=0 if schema.sampling_weight is None else WEIGHT_BITS,
        )

    def __post_init__(self) -> None:
        if self.n_features < 1:
            raise InputValueError(f"n_features={self.n_features}: a table needs at least one feature")
        if not self.columns:
            object.__setattr__(self, "columns", ((1, 1.0),) * self.n_features)
        if self.n_rows is not None and self.n_rows < 0:
            raise InputValueError(f"n_rows={self.n_rows} must not be negative")

    @cached_property
    def levels(self) -> LevelCoordinates | None:
        """Coordinates about the public center of one-hot levels, if the schema has such columns."""
        return LevelCoordinates.of(self.schema.with_indicators) if self.schema is not None and self.mean else None

    @cached_property
    def coordinates(self) -> RowCoordinates | None:
        """Coordinates of ``standardized``, if columns have bounds and a mean is released."""
        return RowCoordinates.of(self.schema.with_indicators) if self.schema is not None and self.mean else None

    def count_is_public(self, neighbors: Neighbors) -> bool:
        """Return True if the exact number of kept rows, or their sum of weights, is public."""
        return neighbors.count_is_public(self.drops_rows) and not self.weight_bits  # a row's weight is its own


def _columns(schema: Schema) -> tuple[tuple[int, float], ...]:
    """Return the number of features of each column, and the largest |x| in them."""
    if schema.row_norm is None:
        return ()
    lower, upper = schema.encoding(mean=True).values_in_ball(*schema.feature_bounds)
    largest = np.minimum(np.maximum(np.abs(lower), np.abs(upper)), 1.0)
    sizes = [len(column.feature_names) for column in schema.columns]
    parts = np.split(largest, np.cumsum(sizes)[:-1])
    return tuple((size, float(part.max())) for size, part in zip(sizes, parts, strict=True))


# Result of a run.


@dataclass(frozen=True, slots=True)
class RunResult:
    """Result of a run, for rows in the unit ball."""

    count: float | None  # number of kept rows: exact if it is public, noisy if it was paid for, else None
    sum: FloatArray | None  # (d,) or None: Σ(x − center)
    gram: FloatArray  # (d, d): Σ(x − center)(x − center)ᵀ, symmetric; not repaired
    # other private results of the run (plain values and arrays); covered by the plan's cost
    diagnostics: Mapping[str, Any] = field(default_factory=dict)
    # (d,) or None, center of sum and Gram matrix, itself a private answer; None is the origin. Moments about 0 of rows
    # with a mean far from 0 hold no covariance: in float64 none is left if the mean is 10⁸ standard deviations away.
    center: FloatArray | None = None
    model: NoiseModel | None = None  # noise of this run, as stored in files; None if moments are biased on purpose
    rules: tuple[Message, ...] = ()  # treatment of rows in the run, for the privacy statement

    @property
    def mean(self) -> FloatArray:
        """E[x], not repaired, shape (d,); needs count and sum."""
        from_center = np.asarray(self.sum) / self.count
        return from_center if self.center is None else self.center + from_center

    @property
    def second_moment_sum(self) -> FloatArray:
        """Σ x xᵀ about 0, not repaired, shape (d, d)."""
        if self.center is None:
            return self.gram
        cross = np.outer(self.center, np.asarray(self.sum))
        return np.asarray(self.gram + cross + cross.T + float(self.count or 0.0) * np.outer(self.center, self.center))

    @property
    def covariance(self) -> FloatArray:
        """Cov(x), not repaired, shape (d, d); needs count and sum."""
        from_center = np.asarray(self.sum) / self.count
        return np.asarray(self.gram / np.asarray(self.count) - np.outer(from_center, from_center))


# Basis of the guarantee, as a mechanism runs.


class Arithmetic(StrEnum):
    """Basis of the stated guarantee.

    ``EXACT_LATTICE``: integer sums and exact discrete noise; the proof covers the program's arithmetic and assumes ideal random
    bits. ``LATTICE_ROUNDED``: integer sums; the noise is drawn in floating point and rounded to the lattice; the proof assumes
    that these draws have the ideal distribution. ``IDEALIZED``: the proof is for real numbers; the sampler works in floating
    point.
    """

    EXACT_LATTICE = "exact-lattice"
    LATTICE_ROUNDED = "lattice-rounded"
    IDEALIZED = "idealized"


# Matrices that a user gives as an option.


def positive_definite(value: npt.ArrayLike, what: str) -> tuple[tuple[float, ...], ...]:
    """Return the rows of a symmetric positive definite matrix as floats, for a frozen option."""
    matrix = np.array(value, dtype=np.float64)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1] or not np.isfinite(matrix).all():
        raise InputValueError(f"{what} must be a finite square matrix, got shape {matrix.shape}")
    if not np.allclose(matrix, matrix.T, rtol=1e-10, atol=0.0):
        raise InputValueError(f"{what} is not symmetric: pass (M + Mᵀ)/2 if the difference is intended")
    if not float(np.linalg.eigvalsh(matrix)[0]) > 0.0:
        raise InputValueError(f"{what} must be positive definite, but has an eigenvalue that is not positive")
    return tuple(tuple(row) for row in matrix.tolist())
