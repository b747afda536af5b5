"""Assumed tables: public guesses of the second moment's eigenvalues, with synthetic rows.

A mechanism whose error depends on the table, without a closed form, is run on such rows. Nothing here is random: every plan
gets equal rows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache
from typing import Any

import numpy as np
import scipy

from dpmoments.foundation.arrays import FloatArray, IntegerArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.mechanisms.shape import RunResult
from dpmoments.messages.message import Message
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.histogram import Histogram, RowStatistic
from dpmoments.rows.moments import LIMB_BITS, ExactMoments
from dpmoments.rows.rows import Rows
from dpmoments.schema.schema import Schema

_DISTINCT_ROWS = 250
"""Max number of synthetic rows, or four per feature if that is more.

Each stands for an equal share of the table.
"""

_ROUNDING = 1.0 + 1e-12


@dataclass(frozen=True, slots=True)
class ErrorsOnTable:
    """RMS errors for rows in the unit ball, before any repair."""

    gram: float  # RMS of ‖Ĝ − G‖_F, about 0
    sum: float | None  # RMS norm of the error on the sum of rows; None if no mean is released
    gram_assumed: bool = False  # with `sum_assumed`: true if the number depends on the assumed table
    sum_assumed: bool = False
    # largest fraction of the assumed rows that one query of a run clipped: the errors then include the effect of
    # clipping
    clipped: float = 0.0


@dataclass(frozen=True, eq=False)
class SyntheticSpectrum:
    """Public guesses about a table."""

    n_rows: int
    # (d,), eigenvalues of the second moment E[x xᵀ] of the encoded rows, none negative, in any order. The mean is
    # assumed to be 0.
    spectrum: FloatArray
    # (d,), optional, units of the features in which `spectrum` and all errors are measured; default: 1
    units: FloatArray | None = None

    @cached_property
    def eigenvalues(self) -> FloatArray:
        """Eigenvalues of the Gram matrix, in descending order."""
        return np.asarray(self.n_rows * np.sort(self.spectrum)[::-1])

    def rows(self, neighbors: Neighbors, *, bounded: bool) -> _AssumedRows:
        """Return rows with these moments."""
        # `bounded` if the mechanism expects them in the unit ball.
        d = len(self.spectrum)
        scales = np.sqrt(np.sort(self.spectrum)[::-1]) * (1.0 if self.units is None else self.units)
        table = _normal_rows(min(max(_DISTINCT_ROWS, 4 * d), max(self.n_rows, 2)), d) * scales
        plain = Rows.of(table, Schema.unbounded(d), neighbors=neighbors, threads=1)
        assumed = self.eigenvalues if bounded else None
        return _AssumedRows(
            schema=plain.schema,
            neighbors=neighbors,
            source=plain.source,
            threads=1,
            size=self.n_rows,
            n_distinct=len(table),
            gram=assumed,
        )


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class _AssumedRows(Rows):
    """Synthetic rows, each of which counts ``size``/``n_distinct`` times."""

    size: int
    n_distinct: int
    gram: FloatArray | None
    clipped: list[float] = field(default_factory=list)

    def moments(
        self, center: FloatArray | None = None, linear: FloatArray | None = None, radius: float = 1.0, *, bits: int = 20
    ) -> ExactMoments:
        if self.gram is not None:
            mapped = np.eye(self.n_features) if linear is None else linear
            mean = np.zeros(len(mapped)) if center is None else -mapped @ center
            longest = 1.0 if linear is None else float(np.linalg.norm(linear, 2))
            farthest = longest * (1.0 + (0.0 if center is None else float(np.linalg.norm(center))))
            if farthest <= radius * _ROUNDING:
                gram = np.diag(self.gram) if linear is None else (linear * self.gram) @ linear.T
                gram = gram + self.size * np.outer(mean, mean)
                return self._of_stated(self.size * mean / radius, gram / radius**2, bits, radius)
        result = super().moments(center, linear, radius, bits=bits)
        if result.clipped:
            self.clipped.append(result.clipped / self.n_distinct)
        cells = np.vstack([result.sum[None, :], result.gram]).astype(object) * self.size // self.n_distinct
        return replace(
            result, count=self.size, clipped=result.clipped * self.size // self.n_distinct, limbs=_limbs(cells)
        )

    def _of_stated(self, total: FloatArray, gram: FloatArray, bits: int, radius: float) -> ExactMoments:
        """Return the moments, in units of the radius, on the lattice."""
        k = len(total)
        cells = np.rint(np.vstack([np.ldexp(total, bits), np.ldexp(gram, 2 * bits)]))
        fits = float(np.abs(cells).max()) < 2.0**63
        cells = cells.astype(np.int64) if fits else np.frompyfunc(int, 1, 1)(cells)
        return replace(ExactMoments.empty(k, bits=bits, radius=radius), count=self.size, limbs=_limbs(cells))

    def histogram(self, statistic: RowStatistic, edges: Iterable[float]) -> Histogram:
        result = super().histogram(statistic, edges)
        counts = [*result.counts.tolist(), result.below, result.above]
        *inside, below, above = (count * self.size // self.n_distinct for count in counts)
        return Histogram(np.array(inside, dtype=np.int64), below, above)

    def count(self) -> int:
        return self.size

    def table_size(self) -> int:
        return self.size


def measured_errors(
    run: Callable[[Rows, PrivacyFilter], RunResult],
    assumed: SyntheticSpectrum,
    neighbors: Neighbors,
    row_norm: float | None,
    privacy_filters: Iterable[PrivacyFilter],
) -> ErrorsOnTable:
    """Return RMS errors of runs on the assumed table, one run per filter."""
    rows = assumed.rows(neighbors, bounded=row_norm is not None)
    units = np.ones(len(assumed.spectrum)) if assumed.units is None else assumed.units
    of_gram, of_sum = list[float](), list[float]()
    for privacy_filter in privacy_filters:
        noisy = run(rows, privacy_filter)
        gram = noisy.second_moment_sum / np.outer(units, units)
        of_gram.append(float(np.linalg.norm(gram - np.diag(assumed.eigenvalues))) ** 2)
        if noisy.sum is not None and noisy.count is not None:
            of_sum.append(float(np.linalg.norm(noisy.mean * noisy.count / units)) ** 2)
    total = math.sqrt(math.fsum(of_sum) / len(of_sum)) if of_sum else None
    return ErrorsOnTable(
        math.sqrt(math.fsum(of_gram) / len(of_gram)),
        total,
        gram_assumed=True,
        sum_assumed=of_sum != [],
        clipped=max(rows.clipped, default=0.0),
    )


@lru_cache(maxsize=16)
def _normal_rows(n_rows: int, n_features: int) -> FloatArray:
    """Return rows of normal shape, mean 0 and second moment I, shape (n_rows, n_features)."""
    # Normal quantiles of a Weyl sequence, with mean and second moment then made exact; too few rows for that get a
    # second moment of trace d.
    primes = _first_primes(n_features)
    turns = np.outer(np.arange(1, n_rows + 1), np.sqrt(primes)) % 1.0
    rows = scipy.special.ndtri(np.clip(turns, 1e-9, 1.0 - 1e-9))
    rows = rows - rows.mean(axis=0)
    if n_rows > 2 * n_features:
        basis, _ = np.linalg.qr(rows)
        rows = basis
    rows = rows * math.sqrt(n_rows * n_features) / np.linalg.norm(rows)
    rows.setflags(write=False)
    return np.asarray(rows)


def _first_primes(how_many: int) -> FloatArray:
    result = list[int]()
    candidate = 2
    while len(result) < how_many:
        if all(candidate % prime for prime in result):
            result.append(candidate)
        candidate += 1
    return np.array(result, dtype=np.float64)


def _limbs(cells: IntegerArray) -> Any:
    """Return Python integers as the two limbs of :class:`ExactMoments`."""
    return np.stack([cells >> LIMB_BITS, cells & ((1 << LIMB_BITS) - 1)]).astype(np.int64)


# Assumption of a forecast about a table, if the error of a mechanism depends on it.

_DECAY = 1.0
"""Default exponent of eigenvalues 1/i^decay: roughly that of tables of standardized columns."""
_MEAN_SQUARE_NORM = 0.5
"""Assumed mean of ‖x‖² with bounded columns, since few tables reach their bounds.

1 for rows in the unit ball.
"""


@dataclass(frozen=True, slots=True)
class Assumption:
    """Assumption of a forecast about a table, for the mechanisms whose error depends on it."""

    # eigenvalues of the second moment E[x xᵀ] of the encoded rows, in descending order; the mean is assumed to be 0
    spectrum: tuple[float, ...]
    # assumed SD of every encoded feature with scale ranges in place of bounds (the geometric middle of its range), in
    # which `spectrum` and errors are measured
    units: tuple[float, ...] | None
    words: str  # text of the assumption

    @classmethod
    def of(
        cls, schema: Schema, *, mean: bool = True, spectrum: Sequence[float] | None = None, decay: float | None = None
    ) -> Assumption:
        """Return the assumption for a schema: the caller's, or the default."""
        d, rough = schema.n_features, schema.rough_scale(mean=mean)
        units = (
            None
            if rough is None
            else tuple(math.sqrt(low * high) for low, high in zip(rough.least, rough.largest, strict=True))
        )
        if spectrum is not None and decay is not None:
            raise InputValueError(Message("spectrum-and-decay"))
        if spectrum is not None:
            values = sorted((float(value) for value in spectrum), reverse=True)
            _check_spectrum(values, d, bounded=schema.row_norm is not None)
            return cls(
                tuple(values), units, f"normal rows, eigenvalues of their second moment {_few(values)}, as given"
            )
        if decay is not None and not 0.0 <= decay < math.inf:
            raise InputValueError(Message("decay-out-of-range", decay=decay))
        if schema.row_norm is None and decay is None:
            return cls((1.0,) * d, units, "normal rows, standard deviations in the middle of their ranges")
        power = _DECAY if decay is None else decay
        weights = [float(index) ** -power for index in range(1, d + 1)]
        total = float(d) if schema.row_norm is None else 1.0 if schema.is_coordinates else _MEAN_SQUARE_NORM
        scale = total / math.fsum(weights)
        falls = "1/i" if power == 1.0 else f"i^−{power:g}"
        words = f"normal rows, eigenvalues of their second moment as {falls} with sum {total:g}"
        return cls(tuple(scale * weight for weight in weights), units, words)

    def table(self, n_rows: int) -> SyntheticSpectrum:
        """Return the assumed table with this number of rows."""
        return SyntheticSpectrum(n_rows, np.array(self.spectrum), None if self.units is None else np.array(self.units))


def _check_spectrum(values: Sequence[float], n_features: int, *, bounded: bool) -> None:
    if len(values) != n_features:
        raise InputValueError(Message("spectrum-of-other-length", eigenvalues=len(values), features=n_features))
    if not all(0.0 <= value < math.inf for value in values):
        raise InputValueError(Message("spectrum-negative"))
    if bounded and math.fsum(values) > 1.0 + 1e-9:
        raise InputValueError(Message("spectrum-too-large", sum=math.fsum(values)))


def _few(values: Sequence[float]) -> str:
    first = ", ".join(f"{value:.2g}" for value in values[:3])
    return first if len(values) <= 3 else f"{first}, …"
