"""A table of the collection, its rows as they are within its bounds, and their exact moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

import dpmoments as dpm
from dpmoments.base.values import FloatArray
from dpmoments.rows.rows import Rows
from dpmoments.rows.sources.source import LocalSource

Half = Literal["design", "judge"]
"""Constants of the library may be chosen on the design half; the judge half is run when they are frozen."""
Made = tuple[Any, dpm.Schema]
"""A frame (or an array) and its public schema: round bounds that someone could have written without seeing the rows."""


@dataclass(frozen=True)
class Entry:
    """One table, made anew and always alike by `make`."""

    name: str
    half: Half
    family: str  # what it is an example of; the file it is in
    real: bool  # observed, not drawn from a law
    # What this machine does not have raises an OSError.
    make: Callable[[], Made]
    # The feature that a regression on this table predicts; None where every feature is a level of a category.
    target: str | None


LATTICE_BITS = 22


def encoded_rows(data: Any, schema: dpm.Schema) -> FloatArray:
    """Rows about the midpoints of their bounds, in half-widths; those that the schema drops are left out."""
    source = Rows.of(data, schema, mean=True).source
    if not isinstance(source, LocalSource):
        raise TypeError("the table must be one that is read on this machine")
    encoded, encoding = np.concatenate(list(source.blocks())), schema.encoding(mean=True)
    return np.asarray(encoded[np.isfinite(encoded).all(axis=1)] * (encoding.scale / encoding.unit))


def plain_rows(data: Any, schema: dpm.Schema) -> FloatArray:
    """The same in the table's units; levels are 0 or 1."""
    encoding = schema.encoding(mean=True)
    return np.asarray(encoded_rows(data, schema) * encoding.unit + encoding.offset)


def exact_moments(data: Any, schema: dpm.Schema) -> tuple[int, FloatArray, FloatArray]:
    """Number, mean and covariance of the encoded rows that the schema does not drop, in the ball: half-widths over a norm."""
    moments = Rows.of(data, schema, mean=True, threads=1).moments(bits=LATTICE_BITS)
    n_rows = moments.count - moments.dropped
    mean = np.asarray(moments.sum, dtype=np.float64) * moments.scale / n_rows
    second = np.asarray(moments.gram, dtype=np.float64) * moments.scale**2 / n_rows
    return n_rows, mean, second - np.outer(mean, mean)


def root_mean_square(values: Any) -> float:
    return float(np.sqrt(np.mean(np.square(values)))) if len(values) else np.nan


def correlations(covariance: FloatArray) -> FloatArray:
    """Within −1 and 1; 0 beside a variance that is not positive."""
    variances = np.diagonal(covariance)
    deviations = np.sqrt(np.where(variances > 0.0, variances, np.inf))
    return np.asarray(np.clip(covariance / np.outer(deviations, deviations), -1.0, 1.0), dtype=np.float64)
