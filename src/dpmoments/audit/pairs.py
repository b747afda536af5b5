"""Neighboring tables that test mechanisms for moments hardest."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product

import numpy as np

from dpmoments.base.checks import check_at_least
from dpmoments.base.values import FloatArray
from dpmoments.privacy.unit import Neighbors, PrivacyUnit
from dpmoments.schema.schema import Schema

_SOME_ROWS = 16
_MANY_ROWS = 100
_ROWS_PER_AXIS = 30
_EVERYDAY_ROWS = 41
_TIMES_TOO_MANY = 3
"""Number of rows of a unit above its contribution bound, as a multiple of it."""
_FAR_OUT = 1000.0
"""Norm of a row that must be clipped to the unit ball."""


@dataclass(frozen=True, slots=True, eq=False)
class NeighboringPair:
    """Two tables that differ by one row or a few; both orders are audited."""

    name: str
    neighbors: Neighbors
    first: FloatArray  # with `second`: rows in the unit ball, of shape (n, d); a NaN row is one that the schema drops
    second: FloatArray
    same_rows: bool = False  # true if the second is the first in another order
    rows_apart: int = 1  # number k of rows by which they differ: ε-differential privacy allows a log-ratio of kε
    privacy_unit: PrivacyUnit | None = None  # if they differ by all rows of one unit
    first_units: tuple[str, ...] = ()  # unit of each row
    second_units: tuple[str, ...] = ()

    @property
    def n_features(self) -> int:
        """Number of features d."""
        return int(self.first.shape[1])

    @property
    def schema(self) -> Schema:
        """Schema of both tables; it drops rows only if one of them has a NaN row."""
        dropped = np.isnan(self.first).any() or np.isnan(self.second).any()
        return Schema.unit_ball(self.n_features, missing="drop" if dropped else "error")


def neighboring_pairs(n_features: int, neighbors: Neighbors | str) -> tuple[NeighboringPair, ...]:
    """Return pairs that attain or nearly attain the worst case of the known mechanisms.

    Canaries in a direction of no other row, with and without a heavy direction; equal or swapped leading eigenvalues; a
    lone row against none, its orthogonal, its opposite, or zero; rows on every axis (for mechanisms that use the
    inverse or the smallest eigenvalue); a row far outside the unit ball; a row that the schema drops. Pairs that need a
    second direction are omitted at d = 1.

    Examples
    --------
    >>> [pair.name for pair in neighboring_pairs(1, "add_remove")][:2]
    ['no row | one row', 'heavy axis | one row more along it']
    """
    neighbors = Neighbors.of(neighbors)
    check_at_least("n_features", n_features)
    axes, none = np.eye(n_features), np.zeros((0, n_features))
    first, last, zero = axes[0], axes[-1], np.zeros(n_features)
    some, many, dropped = _copies(first, _SOME_ROWS), _copies(first, _MANY_ROWS), np.full(n_features, np.nan)
    on_axes = np.repeat(axes, _ROWS_PER_AXIS, axis=0)
    if neighbors is Neighbors.ADD_REMOVE:
        added = [
            ("no row | one row", none, first),
            ("heavy axis | one row more along it", many, first),
            ("some rows | one more, far outside the ball", some, _FAR_OUT * last),
            ("some rows | one more, dropped", some, dropped),
        ]
        if n_features > 1:
            added += [
                ("no row | one row along the diagonal", none, np.full(n_features, 1.0 / math.sqrt(n_features))),
                ("some rows | a canary orthogonal to them", np.resize(axes[:-1], (_SOME_ROWS, n_features)), last),
                ("heavy axis | a canary orthogonal to it", many, last),
                ("equal leading eigenvalues | one row more", np.vstack([some, _copies(axes[1], _SOME_ROWS)]), first),
                ("one row on every axis | one more", axes, last),
                ("many rows on every axis | one more", on_axes, last),
            ]
        return tuple(NeighboringPair(name, neighbors, rows, np.vstack([rows, row])) for name, rows, row in added)

    replaced = [
        ("lone row | zero row", none, first, zero),
        ("lone row | its opposite", none, first, -first),
        ("row | one far outside the ball", some, zero, _FAR_OUT * last),
        ("row | one that is dropped", some, last, dropped),
    ]
    if n_features > 1:
        second = axes[1]
        half = 0.5 * math.atan(0.5)  # where the ℓ1 distance of two orthogonal rows' Gram matrices is largest, d = 2
        turned = math.cos(half) * first + math.sin(half) * second
        quarter = -math.sin(half) * first + math.cos(half) * second
        obtuse = -0.4 * first + math.sqrt(1.0 - 0.4**2) * second
        replaced += [
            ("lone row | its orthogonal", none, first, last),
            ("lone row | its orthogonal, turned", none, turned, quarter),
            ("lone row | one at an obtuse angle", none, first, obtuse),
            ("row | a canary orthogonal to all", np.resize(axes[:-1], (_SOME_ROWS, n_features)), first, last),
            ("heavy axis | a canary orthogonal to it", many, first, last),
            ("one row on every axis and one more | elsewhere", axes, first, last),
            ("many rows on every axis and one more | elsewhere", on_axes, first, last),
        ]
        for size in (8, 50):
            common = np.vstack([_copies(first, size - 1), _copies(second, size - 1)])
            replaced.append((f"leading eigenvalues {size}, {size - 1} | swapped", common, first, second))
    return tuple(
        NeighboringPair(name, neighbors, np.vstack([rows, row]), np.vstack([rows, other]))
        for name, rows, row, other in replaced
    )


def distant_pairs(n_features: int, neighbors: Neighbors | str, rows_apart: int) -> tuple[NeighboringPair, ...]:
    """Return pairs that differ by several rows, for pure ε."""
    # At a small ε two neighbors differ so little that it takes many runs to show. For tables k rows apart probabilities
    # may differ by a factor e^{kε}, and for some common events they nearly do: noise beyond k rows, or a direction that
    # is uniform on one table and determined by k rows on the other.
    neighbors = Neighbors.of(neighbors)
    check_at_least("n_features", n_features)
    check_at_least("rows_apart", rows_apart)
    axes, k = np.eye(n_features), rows_apart
    none, ours, theirs = np.zeros((0, n_features)), _copies(axes[0], k), _copies(axes[-1], k)
    if neighbors is Neighbors.ADD_REMOVE:
        cases = [(f"no row | {k} equal rows", none, ours)]
        if n_features > 1:
            cases.append((f"{k} rows on an axis | {k} more on another", ours, np.vstack([ours, theirs])))
    else:
        cases = [(f"{k} equal rows | their opposites", ours, -ours)]
        if n_features > 1:
            cases += [
                (f"{k} equal rows | {k} orthogonal to them", ours, theirs),
                (
                    f"{2 * k} equal rows | half of them on another axis",
                    np.vstack([ours, ours]),
                    np.vstack([ours, theirs]),
                ),
            ]
    return tuple(NeighboringPair(name, neighbors, first, second, rows_apart=k) for name, first, second in cases)


def unit_pairs(n_features: int, privacy_unit: PrivacyUnit) -> tuple[NeighboringPair, ...]:
    """Return pairs that differ by one unit.

    It has as many rows as its contribution bound, and more. Equal rows on an axis attain the maximum change by k rows.
    If a unit exceeds the bound, its rows are all equal, all different, or equal to those of others.
    """
    check_at_least("n_features", n_features)
    k = privacy_unit.rows_per_unit
    many = _TIMES_TOO_MANY * k
    axes, none = np.eye(n_features), np.zeros((0, n_features))
    some, last = _copies(axes[0], _SOME_ROWS), axes[-1]
    unlike = np.linspace(1.0, 0.9, many)[:, None] * last
    cases = [
        ("no row | a person of k equal rows", none, _copies(last, k)),
        ("no row | a person of more equal rows", none, _copies(last, many)),
        ("some people | one more, of k equal rows", some, _copies(last, k)),
        ("some people | one more, of more rows, no two alike", some, unlike),
        ("some people | one more, of more rows that others have", some, _copies(axes[0], many)),
    ]
    if n_features > 1:
        diagonal = np.full(n_features, 1.0 / math.sqrt(n_features))
        cases.append(("no row | a person of more equal rows along the diagonal", none, _copies(diagonal, many)))
    return tuple(
        NeighboringPair(
            name,
            Neighbors.ADD_REMOVE,
            others,
            np.vstack([others, theirs]),
            privacy_unit=privacy_unit,
            first_units=(people := tuple(f"person {index}" for index in range(len(others)))),
            second_units=(*people, *(len(theirs) * ("one more",))),
        )
        for name, others, theirs in cases
    )


def everyday_pairs(
    n_features: int, neighbors: Neighbors | str, generator: np.random.Generator
) -> tuple[NeighboringPair, ...]:
    """Return pairs of random tables that differ in one row, or only in the order of rows."""
    # The row is first, in the middle or last; it is ordinary, zero, a duplicate, far outside the ball, or dropped by
    # the schema. The tables also hold such rows; some are sorted.
    neighbors = Neighbors.of(neighbors)
    table = generator.normal(0.1, 0.4 / math.sqrt(n_features), (_EVERYDAY_ROWS, n_features))
    table[3], table[17] = _FAR_OUT, np.nan
    tables = {"random table": table, "sorted table": table[np.argsort(table[:, 0])]}
    rows = {
        "an ordinary row": generator.normal(0.0, 0.5 / math.sqrt(n_features), n_features),
        "a zero row": np.zeros(n_features),
        "a row that it holds": table[5],
        "a row far outside the ball": np.full(n_features, -_FAR_OUT),
        "a dropped row": np.full(n_features, np.nan),
    }
    pairs = []
    for index, ((of, whole), (what, row)) in enumerate(product(tables.items(), rows.items())):
        row_index = (0, _EVERYDAY_ROWS // 2, _EVERYDAY_ROWS - 1)[index % 3]
        second = np.insert(whole, row_index, row, axis=0)
        if neighbors is Neighbors.REPLACE_ONE:
            second = np.delete(second, row_index + 1, axis=0)
        pairs.append(NeighboringPair(f"{of} | {what} at row {row_index}", neighbors, whole, second))
    shuffled = NeighboringPair("sorted table | shuffled", neighbors, tables["sorted table"], table, same_rows=True)
    reversed_table = NeighboringPair("random table | reversed", neighbors, table, table[::-1].copy(), same_rows=True)
    return (*pairs, shuffled, reversed_table)


def _copies(row: FloatArray, n_rows: int) -> FloatArray:
    return np.tile(row, (n_rows, 1))


def unrelated_tables(n_rows: int, n_features: int, generator: np.random.Generator) -> dict[str, FloatArray]:
    """Return tables of one size with nothing else in common, by name."""
    shape = (n_rows, n_features)
    few = generator.random((n_rows, 1)) < 0.05
    half = generator.random((n_rows, 1)) < 0.5
    return {
        "normal rows": generator.normal(0.0, 0.2, shape),
        "zeros": np.zeros(shape),
        "one row again and again": np.full(shape, 0.9 / math.sqrt(n_features)),
        "heavy tails": 5.0 * generator.standard_cauchy(shape),
        "half of the rows dropped": np.where(half, np.nan, generator.normal(0.0, 0.3, shape)),
        "a few rows far out": np.where(few, _FAR_OUT, generator.normal(0.0, 1e-3, shape)),
        "nothing but dropped rows": np.full(shape, np.nan),
        "rows far out": generator.normal(0.0, 1e9, shape),
    }
