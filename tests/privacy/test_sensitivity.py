"""Every sensitivity: attained by explicit neighbors, exceeded by none that a search finds."""

from __future__ import annotations

import itertools
import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cache
from typing import Any

import mpmath
import numpy as np
import pytest

from dpmoments.mechanisms.additive import augmented_gram
from dpmoments.privacy import sensitivity as sensitivity_module
from dpmoments.privacy.laws import attains
from dpmoments.privacy.sensitivity import (
    ROUGH_CENTER,
    ROUGH_WEIGHT,
    SENSITIVITIES,
    Norm,
    Sensitivity,
    count,
    gram_entrywise_l1,
    gram_frobenius,
    gram_nuclear,
    histogram_l1,
    histogram_l2,
    inverse_gram_frobenius,
    median_score,
    name_counts,
    quadratic_form,
    query_distance,
    rank_score,
    rough_sums_l2,
    row_norm_square,
    row_sum_l1,
    row_sum_l2,
    sensitivity_from_dict,
    short_rows_frobenius,
    short_rows_nuclear,
    smallest_eigenvalue,
    sorted_eigenvalues_l1,
    sorted_eigenvalues_l2,
    sum_and_count_l1,
    sum_and_count_l2,
    sum_and_gram_frobenius,
    sum_and_square_l1,
    sum_and_square_l2,
    sums_in_body,
)
from dpmoments.privacy.unit import Neighbors
from dpmoments.rows.rows import Rows
from dpmoments.schema import Schema
from support.said import refused

AUGMENTATIONS = [0.0, 0.25, 0.5, 1.0]
MatrixNorm = Callable[[np.ndarray], np.ndarray]
"""Of each matrix of a stack."""
Query = Callable[[np.ndarray], Any]
ADD_REMOVE, REPLACE_ONE = Neighbors.ADD_REMOVE, Neighbors.REPLACE_ONE


def frobenius(matrix: np.ndarray) -> np.ndarray:
    return np.linalg.norm(matrix, axis=(-2, -1))


def nuclear(matrix: np.ndarray) -> np.ndarray:
    return np.abs(np.linalg.eigvalsh(matrix)).sum(axis=-1)


def entrywise(matrix: np.ndarray) -> np.ndarray:
    return np.abs(matrix[..., *np.triu_indices(matrix.shape[-1])]).sum(axis=-1)


def outer(w: float, x: np.ndarray) -> np.ndarray:
    z = np.concatenate([np.full((*x.shape[:-1], 1), w), x], axis=-1) if w else x
    return z[..., :, None] * z[..., None, :]


def worst_replacement(d: int, w: float) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors with inner product −w²."""
    x, y = np.zeros(d), np.zeros(d)
    x[0] = 1.0
    y[0], y[1] = -(w**2), math.sqrt(1 - w**4)
    return x, y


def found_by_search(norm: MatrixNorm, w: float, d: int, replace: bool, seed: int = 0) -> float:
    """The largest change that random rows (full norm, short, sparse, dropped) give."""
    rng, trials = np.random.default_rng(seed), 3000
    rows = rng.normal(size=(2, trials, d)) * (rng.random((2, trials, d)) < rng.choice([0.3, 1.0], (trials, 1)))
    rows[:, ::5] = np.sign(rows[:, ::5])
    rows /= np.maximum(np.linalg.norm(rows, axis=2, keepdims=True), 1e-12)
    rows[:, ::3] *= rng.random((2, len(rows[0, ::3]), 1))
    first, second = outer(w, rows[0]), outer(w, rows[1])
    return float(norm(first - second if replace else first).max())


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("w", AUGMENTATIONS)
@pytest.mark.parametrize("d", [2, 3, 7])
def test_gram_under_replace_one_is_attained_and_not_exceeded(d: int, w: float) -> None:
    x, y = worst_replacement(d, w)
    worst, flat = outer(w, x) - outer(w, y), outer(w, np.full(d, 1 / math.sqrt(d)))
    for norm, sensitivity in [(frobenius, gram_frobenius), (nuclear, gram_nuclear), (entrywise, gram_entrywise_l1)]:
        replaced, added = (sensitivity(neighbors, d, w).value for neighbors in (REPLACE_ONE, ADD_REMOVE))
        for stated, replace_one in ((replaced, True), (added, False)):
            assert found_by_search(norm, w, d, replace=replace_one) <= stated * (1 + 1e-12)
        assert norm(flat) == pytest.approx(added, rel=1e-12)
        if norm is not entrywise:
            assert norm(worst) == pytest.approx(replaced, rel=1e-12)
    # planted fault: the add-remove value is exceeded by the same pair
    assert frobenius(worst) > gram_frobenius(ADD_REMOVE, d, w).value * 1.2


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_entrywise_under_replace_one_covers_every_sign_matrix(d: int) -> None:
    cells = [(i, j) for i in range(d) for j in range(i, d)]
    largest = 0.0
    for pattern in range(2 ** len(cells)):
        matrix = np.zeros((d, d))
        for bit, (i, j) in enumerate(cells):
            matrix[i, j] = matrix[j, i] = (1 if pattern >> bit & 1 else -1) * (1.0 if i == j else 0.5)
        eigenvalues = np.linalg.eigvalsh(matrix)
        largest = max(largest, eigenvalues[-1] - (eigenvalues[0] if d > 1 else 0.0))
    assert largest <= gram_entrywise_l1(Neighbors.REPLACE_ONE, d).value * (1 + 1e-12)


@pytest.mark.parametrize("w", [0.75, 0.875, 1.0])
@pytest.mark.parametrize(("d", "square"), [(1, 0.5), (2, 0.5), (3, 0.25), (7, 0.0625)])
def test_rows_shorter_than_the_constant_are_farthest_apart_if_opposite(d: int, square: float, w: float) -> None:
    def changed(x: np.ndarray, y: np.ndarray, norm: MatrixNorm) -> float:
        return norm(outer(w, x) - outer(w, y))

    rng, root = np.random.default_rng(d), math.sqrt(square)
    pairs = rng.normal(size=(600, 2, d)) / np.sqrt(d)
    pairs[::3, 1] = -pairs[::3, 0] * rng.random((200, 1))
    pairs *= (root * rng.choice([1.0, 0.9], (600, 2)) / np.linalg.norm(pairs, axis=2))[..., None]
    for norm, made, plain, factor in (
        (frobenius, short_rows_frobenius, gram_frobenius, math.sqrt(8.0)),
        (nuclear, short_rows_nuclear, gram_nuclear, 4.0),
    ):
        stated, x = made(REPLACE_ONE, d, w, square).value, root * axis(d)
        one_dropped, found = norm(outer(w, x)), max(changed(one, other, norm) for one, other in pairs)
        assert max(found, changed(x, -x, norm), one_dropped) <= stated * (1 + 1e-12)
        assert stated == pytest.approx(max(factor * w * root, one_dropped), rel=1e-12)  # attained
        assert changed(x, -x, norm) == pytest.approx(factor * w * root, rel=1e-12)
        # what files of before state: larger, read as it is, and attained by no pair (planted fault: by name, it would be)
        before = plain(REPLACE_ONE, d, w, square)
        assert stated < before.value * (1 - 1e-3)
        assert sensitivity_from_dict(before.to_dict()) == before
        assert not attains(before)
        assert attains(plain(REPLACE_ONE, max(d, 2), root * 0.99, square))
        assert not attains(plain(REPLACE_ONE, 1, root * 0.99, square))
        # nothing else changes
        for relation, constant in ((ADD_REMOVE, w), (REPLACE_ONE, root * 0.99), (REPLACE_ONE, 0.0)):
            assert made(relation, d, constant, square) == plain(relation, d, constant, square)


def rows_with_drops(table: np.ndarray, neighbors: Neighbors) -> Rows:
    return Rows.of(table, Schema.unit_ball(table.shape[1], missing="drop"), neighbors=neighbors, threads=1)


@pytest.mark.parametrize("w", AUGMENTATIONS)
@pytest.mark.parametrize("d", [1, 2, 5])
def test_a_row_that_the_schema_drops_is_covered_under_both_relations(d: int, w: float) -> None:
    """Through the rows as mechanisms see them, some of those in common dropped too; x has norm 1, exact on the lattice."""
    bits, x, dropped = 12, axis(d, d - 1), np.full((1, d), np.nan)
    rest = np.vstack([axis(d), 0.5 * axis(d), dropped, dropped, -axis(d)])

    def gram(table: np.ndarray, neighbors: Neighbors) -> np.ndarray:
        return augmented_gram(rows_with_drops(table, neighbors).moments(bits=bits), w)

    kept, lost = np.vstack([rest, [x]]), np.vstack([rest, dropped])
    for neighbors in Neighbors:
        rows = [rows_with_drops(table, neighbors) for table in (rest, lost, kept)]
        assert [each.count() for each in rows] == [each.moments().count for each in rows] == [3, 3, 4]
        np.testing.assert_array_equal(gram(rest, neighbors), gram(lost, neighbors))  # a dropped row leaves no trace
        change = gram(kept, neighbors) - gram(lost, neighbors)
        np.testing.assert_array_equal(change.astype(float) / 4.0**bits, outer(w, x))
        for norm, made in ((Norm.L2, gram_frobenius), (Norm.NUCLEAR, gram_nuclear), (Norm.L1, gram_entrywise_l1)):
            assert query_distance(norm, change, 0 * change, neighbors) / 4.0**bits <= made(neighbors, d, w).value
    # Under add-remove it is the worst case; under replace-one another pair is.
    moved = query_distance(Norm.L2, gram(kept, ADD_REMOVE), gram(rest, ADD_REMOVE), ADD_REMOVE) / 4.0**bits
    assert moved == pytest.approx(gram_frobenius(ADD_REMOVE, d, w).value, rel=1e-12)


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_sums_and_quadratic_forms(neighbors: Neighbors) -> None:
    x = np.array([0.6, 0.8])
    replaced = -x if neighbors is Neighbors.REPLACE_ONE else np.zeros(2)
    assert np.linalg.norm(x - replaced) == pytest.approx(row_sum_l2(neighbors).value)
    rng = np.random.default_rng(0)
    pairs = rng.normal(size=(2000, 3, 2))
    pairs /= np.linalg.norm(pairs, axis=2, keepdims=True)
    change = np.abs((pairs[:, 0] * pairs[:, 2]).sum(1) ** 2 - (pairs[:, 1] * pairs[:, 2]).sum(1) ** 2)
    assert change.max() <= quadratic_form(neighbors).value
    assert quadratic_form(neighbors).value == 1.0  # attained: u = x, the other row orthogonal
    assert abs((x @ x) ** 2 - (np.array([-0.8, 0.6]) @ x) ** 2) == pytest.approx(1.0)


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("d", [2, 5])
def test_sorted_eigenvalues(neighbors: Neighbors, d: int) -> None:
    """Of random tables, and of one whose eigenvalues are further apart than a row moves them: two axes trade places."""
    rng, replaced = np.random.default_rng(1), neighbors is REPLACE_ONE
    x, y = rng.normal(size=(2, 200, d))
    x, y = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in (x, y))
    tables = rng.normal(size=(200, 6, d)) * (rng.random((200, 6, d)) < 0.5)
    rests = [*(table.T @ table for table in tables), np.diag(np.arange(d, dtype=float) * 3)]
    pairs = [*zip(x, y, strict=True), (axis(d), axis(d, 1))]
    gaps = [
        np.linalg.eigvalsh(rest + np.outer(one, one)) - np.linalg.eigvalsh(rest + replaced * np.outer(other, other))
        for rest, (one, other) in zip(rests, pairs, strict=True)
    ]
    for made, order in ((sorted_eigenvalues_l1, 1), (sorted_eigenvalues_l2, 2)):
        stated, sizes = made(neighbors, d).value, np.linalg.norm(gaps, order, axis=1)
        assert sizes.max() <= stated * (1 + 1e-9)
        assert sizes[-1] == pytest.approx(stated)


# ---------------------------------------------------------------- queries of whole tables


def moments_of(w: float, *, count_cell: bool = True) -> Query:
    """Σ z zᵀ of a table, z = (w, x); x alone where w is 0."""

    def query(table: np.ndarray) -> np.ndarray:
        z = np.column_stack([np.full(len(table), w), table]) if w else table
        matrix = z.T @ z
        if not count_cell:
            matrix[0, 0] = 0.0
        return matrix

    return query


def least_eigenvalue_of(w: float) -> Query:
    return lambda table: [float(np.linalg.eigvalsh(moments_of(w)(table))[0])]


def sum_and_count(table: np.ndarray) -> np.ndarray:
    return np.append(table.sum(axis=0), len(table))


def bin_counts(table: np.ndarray) -> np.ndarray:
    return np.histogram(table[:, 0], np.linspace(-1.0, 1.0, 8))[0]


def distances_from_a_number(table: np.ndarray) -> np.ndarray:
    """What a radius is chosen by: minus the distance of the number of rows beyond it from 5, and a public preference."""
    norms, radii = np.linalg.norm(table + [0.5, 0.0], axis=1), np.array([1.0, 0.5, 0.25])
    return -np.abs((norms >= radii[:, None]).sum(axis=1) - 5) + np.array([0, 7, 14])


def rank_distances(table: np.ndarray) -> np.ndarray:
    """Minus the distance of each cell's interval of ranks from 0.35·n: what private quantiles are chosen by."""
    ranks = np.searchsorted(np.sort(table[:, 0]), np.linspace(-1.0, 1.0, 9))
    target = 0.35 * len(table)
    return -np.maximum(np.maximum(ranks[:-1] - target, target - ranks[1:]), 0.0)


def median_distances(table: np.ndarray) -> np.ndarray:
    """Minus the distance of 0 from 2·rank − n over each cell: what a private median is chosen by."""
    ranks = np.searchsorted(np.sort(table[:, 0]), np.linspace(-1.0, 1.0, 9))
    return -np.maximum(np.maximum(2 * ranks[:-1] - len(table), len(table) - 2 * ranks[1:]), 0)


def sum_and_square(w: float) -> Query:
    """(wΣx, Σx²) of one column; Σx² alone where w is 0."""
    return lambda table: np.array([w * table.sum(), (table**2).sum()])


def worst_other(w: float, norm: Norm) -> float:
    """The row that 1 is replaced by at the most change of :func:`sum_and_square`."""
    if norm is Norm.L1:
        return -w / 2.0
    t = (1.0 - math.sqrt(max(1.0 - 2.0 * w**2, 0.0))) / 2.0
    return min((-1.0, -t), key=lambda x: -((w * (1.0 - x)) ** 2 + (1.0 - x**2) ** 2))


@dataclass(frozen=True)
class Worst:
    """A query, what is stated of it, and tables of d columns that attain it."""

    made: Callable[[Neighbors], Sensitivity]
    query: Query
    d: int
    added: list[np.ndarray]
    """A row more, ..."""
    replaced: tuple[list[np.ndarray], list[np.ndarray]]
    """... or one row for another."""
    rest: tuple[np.ndarray, ...] = ()
    """Rows of both tables."""

    def tables(self, neighbors: Neighbors) -> tuple[np.ndarray, np.ndarray]:
        pair = (self.added, []) if neighbors is ADD_REMOVE else self.replaced
        first, second = (np.array([*self.rest, *rows]).reshape(-1, self.d) for rows in pair)
        return first, second


def axis(d: int, place: int = 0) -> np.ndarray:
    return np.eye(d)[place]


def orthogonal_rows(d: int, w: float) -> list[np.ndarray]:
    """Rows whose augmented rows span all that is orthogonal to (w, e_1)."""
    inside = -(w**2) * axis(d)
    return [inside] * bool(w) + [inside + math.sqrt(1.0 - w**4) * axis(d, j) for j in range(1, d)]


def names_by_sign(table: np.ndarray) -> dict[str, int]:
    """Rows by a name that follows from their first value."""
    return dict(Counter("high" if value > 0 else "low" for value in table[:, 0]))


def worst_cases() -> Iterator[tuple[str, Worst]]:
    for w in AUGMENTATIONS:
        x, y = worst_replacement(3, w)
        yield (
            f"sum_and_gram_frobenius w={w}",
            Worst(
                lambda neighbors, w=w: sum_and_gram_frobenius(neighbors, 3, w),  # type: ignore[misc]
                moments_of(w, count_cell=not w),
                3,
                [x],
                ([x], [y]),
            ),
        )
        yield (
            f"row_norm_square w={w}",
            Worst(
                lambda neighbors, w=w: row_norm_square(neighbors, w),  # type: ignore[misc]
                moments_of(w),
                3,
                [x],
                ([x], [y]),
            ),
        )
        # With w = 1 and more than one feature only −e_1 is orthogonal to e_1, so the bound is not attained.
        for d in (1, 3) if w < 1 else (1,):
            rest = orthogonal_rows(d, w)
            # At d = 1 without the constant nothing is orthogonal to a row, and a row of zeros stands for the other.
            other = rest[0] if rest else np.zeros(d)
            yield (
                f"smallest_eigenvalue d={d} w={w}",
                Worst(
                    lambda neighbors, w=w: smallest_eigenvalue(neighbors, w),  # type: ignore[misc]
                    least_eigenvalue_of(w),
                    d,
                    [axis(d)],
                    ([axis(d)], [other]),
                    tuple(rest * 200),
                ),
            )
        for made in (sum_and_square_l1, sum_and_square_l2):
            other_row = np.array([worst_other(w, made(ADD_REMOVE, w).norm)])
            yield (
                f"{made.__name__} w={w}",
                Worst(
                    lambda neighbors, made=made, w=w: made(neighbors, w),  # type: ignore[misc]
                    sum_and_square(w),
                    1,
                    [axis(1)],
                    ([axis(1)], [other_row]),
                ),
            )
    for d in (1, 2, 9):
        flat = np.full(d, 1.0 / math.sqrt(d))
        for name, made, query in [
            ("row_sum_l1", row_sum_l1, lambda table: table.sum(axis=0)),
            ("sum_and_count_l1", sum_and_count_l1, sum_and_count),
        ]:
            yield (
                f"{name} d={d}",
                Worst(lambda neighbors, made=made, d=d: made(neighbors, d), query, d, [flat], ([flat], [-flat])),  # type: ignore[misc]
            )
    e, f = axis(2), -axis(2)
    yield "sum_and_count_l2", Worst(sum_and_count_l2, sum_and_count, 2, [e], ([e], [f]))
    yield "count of rows", Worst(count, lambda table: [int((table[:, 0] > 0).sum())], 2, [e], ([e], [f]))
    yield "histogram_l1", Worst(histogram_l1, bin_counts, 2, [e], ([e], [f]))
    yield "name_counts", Worst(name_counts, names_by_sign, 2, [e], ([e], [f]))
    yield "histogram_l2", Worst(histogram_l2, bin_counts, 2, [e], ([e], [f]))
    yield "rank_score of counts", Worst(rank_score, bin_counts, 2, [e], ([e], [f]))
    yield "rank_score of numbers beyond", Worst(rank_score, distances_from_a_number, 2, [e], ([e], [0.5 * f]))
    middle = tuple(np.array([[-0.9, 0.0]] * 7))
    yield "median_score", Worst(median_score, median_distances, 2, [e], ([e], [f]), middle)
    yield "rank_score of ranks", Worst(rank_score, rank_distances, 2, [e], ([e], [f]), middle)


WORST = dict(worst_cases())
BELOW_IN_ONE_RELATION = {"rank_score of ranks": ADD_REMOVE}
"""A row that is added moves the rank that is looked for too, so the distance of any rank by less than 1."""


def distance_between(case: Worst, neighbors: Neighbors, first: np.ndarray, second: np.ndarray) -> float:
    return query_distance(case.made(neighbors).norm, case.query(first), case.query(second), neighbors)


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("name", WORST)
def test_worst_neighbors_attain_what_is_stated(name: str, neighbors: Neighbors) -> None:
    case = WORST[name]
    first, second = case.tables(neighbors)
    assert (np.linalg.norm(np.vstack([first, second]), axis=1) <= 1 + 1e-15).all()
    reached, stated = distance_between(case, neighbors, first, second), case.made(neighbors)
    assert stated.neighbors is neighbors
    assert reached <= stated.value * (1 + 1e-12)
    assert distance_between(case, neighbors, second, first) == pytest.approx(reached, rel=1e-12)
    if BELOW_IN_ONE_RELATION.get(name) is not neighbors:
        assert reached == pytest.approx(stated.value, rel=1e-12)
    if neighbors is REPLACE_ONE and stated.value > 1.01 * case.made(ADD_REMOVE).value:
        # planted fault: a mechanism that takes the other relation's value
        assert reached > 1.01 * case.made(ADD_REMOVE).value


@cache
def random_neighbors(neighbors: Neighbors, d: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """Tables of up to six rows, dense, sparse, short and of norm 1, repeated and opposite ones among them."""
    rng, pairs = np.random.default_rng(3), []
    for trial in range(400):
        rows = rng.normal(size=(int(rng.integers(0, 6)) + 2, d)) * (rng.random(d) < rng.choice([0.4, 1.0]))
        sizes = np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
        rows = rows / sizes * (1.0 if trial % 3 else rng.random((len(rows), 1)))
        x, y, rest = rows[0], rows[1], rows[2:]
        if trial % 5 == 0:
            y = -x
        if trial % 7 == 0:
            rest = np.repeat(rest, 3, axis=0)
        pairs.append((np.vstack([rest, [x]]), np.vstack([rest, [y]]) if neighbors is REPLACE_ONE else rest))
    return pairs


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("name", WORST)
def test_no_neighbors_exceed_what_is_stated(name: str, neighbors: Neighbors) -> None:
    case = WORST[name]
    stated = case.made(neighbors).value
    found = max(distance_between(case, neighbors, *pair) for pair in random_neighbors(neighbors, case.d))
    assert found <= stated * (1 + 1e-12)
    assert found > 0.2 * stated, "the search is too weak to say anything"


# ---------------------------------------------------------------- sums over a box times cross-polytopes


def rows_in_body(n: int, singles: int, blocks: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Corners of the box with one level of each block, a row of zeros among them."""
    rows = rng.choice([-1.0, 1.0], size=(n, singles))
    levels = [np.eye(size)[rng.integers(0, size, n)] * rng.choice([-1.0, 1.0], size=(n, 1)) for size in blocks]
    rows = np.hstack([rows, *levels])
    rows[0] = 0.0
    return rows


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("blocks", [(), (2,), (3, 1), (2, 2)])
def test_sums_in_a_body_are_covered_and_attained(neighbors: Neighbors, blocks: tuple[int, ...]) -> None:
    singles, rng = 2, np.random.default_rng(9)
    stated = sums_in_body(neighbors, singles + sum(blocks), blocks)
    rows = rows_in_body(60, singles, blocks, rng)
    moves = rows if neighbors is ADD_REMOVE else (rows[:, None] - rows).reshape(-1, rows.shape[1])
    moved = [query_distance(stated.norm, move, 0.0 * move, neighbors, stated.blocks) for move in moves]
    assert max(moved) == stated.value
    if neighbors is REPLACE_ONE:  # planted fault: the other relation's value
        assert max(moved) > sums_in_body(ADD_REMOVE, rows.shape[1], blocks).value


def test_the_gauge_of_a_body_counts_each_block_by_itself() -> None:
    move = np.array([2, -3, 1, 1, 2, -2, 0])
    for blocks, expected in (((), 3), ((1,), 3), ((3,), 4), ((2, 3), 4), ((4,), 5), ((7,), 11)):
        for moved in (move, move.astype(float), move.astype(object)):
            assert query_distance(Norm.BODY, moved, 0 * moved, ADD_REMOVE, blocks) == expected
    far = np.full(3, 2**62 - 1)
    assert query_distance(Norm.BODY, far, 0 * far, ADD_REMOVE, (3,)) == float(3 * (2**62 - 1))
    for n_features, blocks in ((2, (3,)), (3, (0,)), (3, (1.5,)), (3, (-1, 2))):
        with refused("must be a finite number, and n_features a whole one", TypeError):
            sums_in_body(ADD_REMOVE, n_features, blocks)


# ---------------------------------------------------------------- count, sums and centered squares


def rough_answer(x: int, bits: int, *, flag: bool, center: int | None = None) -> list[Fraction]:
    """What a row adds to the query of ``standardized``, whose numbers are multiples of 2^−bits, in units of 1."""
    one = 1 << bits
    center = int(ROUGH_CENTER * one**2) if center is None else center
    answer = [Fraction(x, one)]
    return answer if flag else [*answer, ROUGH_WEIGHT * Fraction(x**2 - center, one**2)]


@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("flag", [False, True])
def test_rough_sums_are_covered_by_every_pair_of_lattice_values(neighbors: Neighbors, flag: bool) -> None:
    bits = 5  # the coarsest lattice, on which y₀ is a whole number of units
    values = range(-(1 << bits), (1 << bits) + 1)
    rows = [rough_answer(x, bits, flag=flag) for x in values]
    nothing = [Fraction(0)] * len(rows[0])
    pairs = [(row, other) for row in rows for other in (rows if neighbors is REPLACE_ONE else [nothing])]
    largest = max(sum((a - b) ** 2 for a, b in zip(*pair, strict=True)) for pair in pairs)
    for counted in (0.0, 1.0):
        made = rough_sums_l2(neighbors, int(not flag), int(flag), counted)
        square = largest + (int(counted) if neighbors is ADD_REMOVE else 0)
        assert square <= Fraction(made.value) ** 2 <= square * (1 + Fraction(1, 2**48))  # attained
        assert max(sum(a**2 for a in row) for row in rows) + int(counted) <= Fraction(made.value) ** 2  # a dropped row
    if neighbors is ADD_REMOVE and not flag:  # planted fault: a center that is rounded to a coarser lattice
        coarse = max(sum(a**2 for a in rough_answer(x, 1, flag=False, center=3)) for x in (-2, 0, 2))
        assert coarse > Fraction(rough_sums_l2(ADD_REMOVE, 1, 0, 0.0).value) ** 2


# ---------------------------------------------------------------- the inverse


def raised_inverse(gram: np.ndarray, least: float) -> np.ndarray:
    eigenvalues, eigenvectors = np.linalg.eigh(gram)
    return (eigenvectors / np.maximum(eigenvalues, least)) @ eigenvectors.T


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("neighbors", list(Neighbors))
@pytest.mark.parametrize("least", [0.3, 1.05, 4.0])
def test_the_inverse_is_not_exceeded_whether_the_bound_holds_or_not(neighbors: Neighbors, least: float) -> None:
    published = [0.0, 1.0] if least > 1.0 else [0.0]
    for d in (1, 2, 4):
        stated = [inverse_gram_frobenius(neighbors, d, least, value) for value in published]
        assert [one.value for one in stated] == sorted(one.value for one in stated)
        for first, second in random_neighbors(neighbors, d):
            inverses = [raised_inverse(table.T @ table, least) for table in (first, second)]
            assert query_distance(stated[0].norm, *inverses, neighbors) <= stated[0].value * (1 + 1e-12)


@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_the_inverse_is_attained_in_the_limit_of_a_large_bound(neighbors: Neighbors) -> None:
    """m copies of every axis and one row more: 1/m − 1/(m + 1) on a line, m/(m + 1) of what is stated."""
    for m in (10, 1000):
        rest = np.repeat(np.eye(3), m, axis=0)
        first = np.vstack([rest, axis(3)])
        second = np.vstack([rest, axis(3, 1)]) if neighbors is REPLACE_ONE else rest
        stated = inverse_gram_frobenius(neighbors, 3, float(m))
        inverses = [raised_inverse(table.T @ table, float(m)) for table in (first, second)]
        reached = query_distance(stated.norm, *inverses, neighbors)
        assert reached == pytest.approx(stated.value * m / (m + 1), rel=1e-9)
    # planted fault: the value of the other relation
    if neighbors is REPLACE_ONE:
        assert reached > inverse_gram_frobenius(ADD_REMOVE, 3, 1000.0).value


# ---------------------------------------------------------------- rounding, units, files


def test_no_value_is_rounded_below_what_is_proved() -> None:
    """In exact arithmetic, for every constant w in use."""
    for step in range(65):
        w = Fraction(step, 64)
        square = 1 + w**2
        for d in (1, 2, 3, 50):
            of = {made: [Fraction(made(relation, d, float(w)).value) for relation in Neighbors] for made in AUGMENTED}
            (added, replaced), (added_rest, _) = of[gram_frobenius], of[sum_and_gram_frobenius]
            assert added == square
            assert replaced**2 >= 2 * square**2 or (d, w) == (1, 0)
            assert added_rest**2 >= 1 + 2 * w**2
            triangle, _ = of[gram_entrywise_l1]
            assert w == 0 or ((triangle - w**2 - Fraction(d + 1, 2)) / w) ** 2 >= d
    for d in range(1, 200):
        for relation, of_sum, counted in ((ADD_REMOVE, 1, 1), (REPLACE_ONE, 2, 0)):
            assert Fraction(row_sum_l1(relation, d).value) ** 2 >= of_sum**2 * d
            assert (Fraction(sum_and_count_l1(relation, d).value) - counted) ** 2 >= of_sum**2 * d
    assert Fraction(sum_and_count_l2(ADD_REMOVE).value) ** 2 >= 2
    assert Fraction(histogram_l2(REPLACE_ONE).value) ** 2 >= 2
    rng = np.random.default_rng(8)
    for least in map(float, 1.0 + rng.exponential(size=300) * 10.0 ** rng.integers(-3, 4, size=300)):
        for published in (0.0, 1.0):
            exact = 1 / (Fraction(least) * (Fraction(least) - Fraction(published)))
            assert Fraction(inverse_gram_frobenius(ADD_REMOVE, 3, least, published).value) >= exact
            assert Fraction(inverse_gram_frobenius(REPLACE_ONE, 3, least, published).value) ** 2 >= 2 * exact**2


@pytest.mark.parametrize("size", [1.0, 0.25])
def test_distances_of_matrices_count_every_eigenvalue(size: float) -> None:
    turn = np.linalg.qr(np.random.default_rng(2).normal(size=(3, 3)))[0]
    nothing = np.zeros((3, 3))
    for eigenvalues in ((3.0, 0.5, 0.25), (-3.0, -0.5, -0.25), (3.0, -0.5, -0.25), (0.25, 0.5, -3.0)):
        moved = turn @ np.diag(size * np.array(eigenvalues)) @ turn.T
        up, down = size * sum(max(e, 0.0) for e in eigenvalues), size * sum(max(-e, 0.0) for e in eigenvalues)
        for first, second in ((moved, nothing), (nothing, moved)):
            for neighbors in Neighbors:
                assert query_distance(Norm.NUCLEAR, first, second, neighbors) == pytest.approx(up + down, rel=1e-12)
            assert query_distance(Norm.ROW, first, second, ADD_REMOVE) == pytest.approx(up + down, rel=1e-12)
            assert query_distance(Norm.ROW, first, second, REPLACE_ONE) == pytest.approx(max(up, down), rel=1e-12)
    assert query_distance(Norm.SCORE, [], [], ADD_REMOVE) == 0.0
    table = np.array([[1, -2], [-2, 5]])
    for cells in (table, table.astype(float)):
        assert query_distance(Norm.L1, cells, 0 * cells, ADD_REMOVE) == 8.0  # the upper triangle
        assert query_distance(Norm.L2, cells, 0 * cells, ADD_REMOVE) == math.sqrt(1 + 4 + 4 + 25)
        assert query_distance(Norm.SCORE, cells, 0 * cells, ADD_REMOVE) == 5.0
    assert query_distance(Norm.L1, [1, -2, 5], [0, 0, 0], ADD_REMOVE) == 8.0
    ends = np.array([2**63 - 1]), np.array([-(2**63)])
    assert query_distance(Norm.L1, *ends, REPLACE_ONE) == 2.0**64
    assert query_distance(Norm.SCORE, [1, 5, 2], [3, 1, 2], REPLACE_ONE) == 4.0
    assert query_distance(Norm.L1, nothing, nothing[:2], ADD_REMOVE) == math.inf
    assert query_distance(Norm.NAMES, {"a": 2, "b": 1}, {"a": 1, "c": 1}, REPLACE_ONE) == 3.0
    assert query_distance(Norm.NAMES, {"a": 3}, {"a": 1}, REPLACE_ONE) == math.inf


def proved(name: str, neighbors: Neighbors, d: int, w: mpmath.mpf) -> mpmath.mpf:
    """Every sensitivity as ``docs/evidence/derivations/sensitivities.md`` has it, to as many digits as mpmath is told."""
    root, square, added = mpmath.sqrt, 1 + w**2, neighbors is ADD_REMOVE
    frobenius = square if added else 1 if d == 1 and w == 0 else root(2) * square
    nuclear = 1 if d == 1 and w == 0 else square * (1 if added else 2)
    turn = (1 - root(max(1 - 2 * w**2, mpmath.mpf(0)))) / 2
    signs = 1 if d == 1 else min(d / root(2) + 1, root(mpmath.mpf(d * (d + 3)) / 2))
    return {
        "gram_frobenius": frobenius,
        "sum_and_gram_frobenius": root(1 + 2 * w**2) if added else frobenius,
        "gram_nuclear": nuclear,
        "short_rows_frobenius": frobenius,  # of rows of norm 1
        "short_rows_nuclear": nuclear,
        "gram_entrywise_l1": ((w + root(d)) ** 2 + w**2 + 1) / 2 if added else signs + 2 * w * root(d),
        "row_norm_square": square,
        "smallest_eigenvalue": square,
        "row_sum_l2": 1 if added else 2,
        "row_sum_l1": root(d) * (1 if added else 2),
        "sum_and_count_l2": root(2) if added else 2,
        "sum_and_count_l1": root(d) + 1 if added else 2 * root(d),
        "histogram_l1": 1 if added else 2,
        "histogram_l2": 1 if added else root(2),
        "median_score": 1 if added else 2,
        "name_counts": 1 if added else 2,
        "sum_and_square_l1": 1 + w if added else (1 + w / 2) ** 2,
        "sum_and_square_l2": root(1 + w**2) if added else max(2 * w, (1 + turn) * root(w**2 + (1 - turn) ** 2)),
        "sorted_eigenvalues_l1": 1 if added or d == 1 else 2,
        "sorted_eigenvalues_l2": 1 if added or d == 1 else root(2),
        "count": 1,
        "count_l1": 1,
        "quadratic_form": 1,
        "rank_score": 1,
        "rough_sums_l2": root(2 + d * mpmath.mpf(783 * 11) ** 2 / 2**26) if added else root(mpmath.mpf(4 * (d + 1))),
        "sums_in_body": 1 if added else 2,
    }[name]


OF_AUGMENTED_ROWS = ("gram_frobenius", "sum_and_gram_frobenius", "gram_nuclear", "gram_entrywise_l1")
OF_SHORT_ROWS = ("short_rows_frobenius", "short_rows_nuclear")
OF_NORMS = ("row_norm_square", "smallest_eigenvalue", "sum_and_square_l1", "sum_and_square_l2")
OF_WIDTHS = ("row_sum_l1", "sum_and_count_l1", "sorted_eigenvalues_l1", "sorted_eigenvalues_l2", "sums_in_body")
BY_NAME = {made.__name__: made for made in SENSITIVITIES}
PROVED = [name for name in BY_NAME if name != "inverse_gram_frobenius"]


def arguments_of(name: str, d: int, w: float) -> tuple[float, ...]:
    if name in (*OF_AUGMENTED_ROWS, *OF_SHORT_ROWS):
        return (d, w) if name in OF_AUGMENTED_ROWS else (d, w, 1.0)
    if name == "rough_sums_l2":
        return (d, 1)
    return (w,) if name in OF_NORMS else (d,) if name in OF_WIDTHS else ()


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("neighbors", list(Neighbors))
def test_every_value_is_the_proved_one_and_a_few_last_places_more_at_most(neighbors: Neighbors) -> None:
    """In floating point some sums are rounded up by up to four last places; none further."""
    seen = set()
    places = itertools.product(PROVED, (1, 2, 3, 5, 11, 12, 13, 2000), (0.0, 1 / 64, 0.25, 1 / 3, 0.7, 0.9375, 1.0))
    for name, d, w in places:
        arguments = arguments_of(name, d, w)
        if (name, arguments) in seen:
            continue
        seen.add((name, arguments))
        with mpmath.workdps(60):
            exact = proved(name, neighbors, d, mpmath.mpf(w))
            value = mpmath.mpf(BY_NAME[name](neighbors, *arguments).value)
            assert exact * (1 - mpmath.mpf(10) ** -50) <= value, (name, d, w)
            assert value <= exact * (1 + 6 * mpmath.mpf(2) ** -52), (name, d, w)


AUGMENTED = (gram_frobenius, sum_and_gram_frobenius, gram_entrywise_l1)

OTHER_ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "inverse_gram_frobenius": (3, 4.5, 1.0),
    "rough_sums_l2": (3, 2, 0.0),
    "short_rows_frobenius": (3, 0.75, 0.5),
    "short_rows_nuclear": (3, 0.75, 0.5),
    "sums_in_body": (7, (3, 2)),
}
EVERY_SENSITIVITY = [
    made(neighbors, *OTHER_ARGUMENTS.get(name, arguments_of(name, 3, 0.625)))
    for neighbors in Neighbors
    for name, made in BY_NAME.items()
]


@pytest.mark.parametrize("made", EVERY_SENSITIVITY, ids=lambda made: f"{made.name}-{made.neighbors}")
def test_a_sensitivity_in_other_units_and_files_is_never_less(made: Sensitivity) -> None:
    """Exact for powers of two and rounded up elsewhere; what a file states as less than it is is refused."""
    for bits in (0, 6, 40):
        finer = made.in_units(2.0**bits)
        assert finer.value == math.ldexp(made.value, bits)
        assert finer.in_units(8.0) == made.in_units(2.0 ** (bits + 3))
    for units, rounding in [(0.5, 0.0), (2.0, -1.0)]:
        with refused("a query is counted in smaller units, 1 or more in one, and"):
            made.in_units(units, rounding=rounding)
    for units, rounding in [(1.1, 0.0), (4 / 3, 0.7), (1e9, math.sqrt(5.0)), (3.0, 1e-30)]:
        other = made.in_units(units, rounding=rounding)
        exact = Fraction(made.value) * Fraction(units) + Fraction(rounding)
        assert Fraction(other.value) >= exact > Fraction(math.nextafter(other.value, 0.0))
        assert other == replace(made, units=units, rounding=rounding, value=other.value)

    rounded = made.in_units(1.0, rounding=2.0**-30).in_units(2.0**40)
    for honest in (made, made.in_units(2.0**20), made.in_units(2.0**20, rounding=3.0), rounded):
        values = honest.to_dict()
        # More may be stated, and brings nothing: what counts is computed anew.
        assert sensitivity_from_dict(values) == sensitivity_from_dict(values | {"value": 2 * honest.value}) == honest
        for smaller in (math.nextafter(honest.value, 0.0), honest.value / 2, 0.0):
            with refused("is stated as less than it is"):
                sensitivity_from_dict(values | {"value": smaller})
    with refused("is stated as less than it is"):
        sensitivity_from_dict(made.in_units(2.0**20).to_dict() | {"rounding": 1.0})


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "wishful"},
        {"neighbors": "friends"},
        {"arguments": {"n_features": 3}},
        {"arguments": {"n_features": 0, "augmentation": 0.0}},
        {"arguments": {"n_features": 3, "augmentation": 2.0}},
        {"arguments": {"n_features": 3, "augmentation": 0.0, "discount": 0.5}},
        {"units": -1.0},
        {"units": math.inf},
        {"units": "1"},
        {"rounding": -1.0},
        {"rounding": None},
        {"value": math.nan},
        {"value": True},
    ],
)
def test_a_sensitivity_that_cannot_be_is_refused(changes: dict[str, Any]) -> None:
    values = sum_and_gram_frobenius(ADD_REMOVE, 3, 0.5).to_dict()
    assert sensitivity_from_dict(values).to_dict() == values
    with pytest.raises((ValueError, TypeError)):
        sensitivity_from_dict(values | changes)
    for entry in values:
        with pytest.raises(KeyError):
            sensitivity_from_dict({name: value for name, value in values.items() if name != entry})


def test_units_go_down_to_a_power_of_two() -> None:
    for made in (count(ADD_REMOVE), gram_frobenius(REPLACE_ONE, 3, 0.5)):
        finest = made.in_units(2.0**256)
        assert sensitivity_from_dict(finest.to_dict()) == finest
        for units in (2.0**257, 0.5, 0.25, 3.0, -2.0):
            values = finest.to_dict() | {"units": units, "value": 2.0**300}
            with refused(
                (
                    "sensitivity.units must be a finite number, 0 or above",
                    "units of a sensitivity must be a power of two, 1 or more",
                )
            ):
                sensitivity_from_dict(values)


def test_impossible_arguments_are_refused() -> None:
    for name in (*OF_AUGMENTED_ROWS, *OF_SHORT_ROWS, *OF_WIDTHS):
        with refused("a table needs at least one feature"):
            BY_NAME[name](REPLACE_ONE, *arguments_of(name, 0, 0.0))
    for name in (*OF_AUGMENTED_ROWS, *OF_SHORT_ROWS, *OF_NORMS):
        for w in (-0.001, 1.001):
            with refused("the appended constant is between 0 and 1"):
                BY_NAME[name](ADD_REMOVE, *arguments_of(name, 2, w))
    for published in (0.5, 2.0):
        with refused("must be", parameter="published"):
            inverse_gram_frobenius(Neighbors.ADD_REMOVE, 2, 5.0, published)
    for least, published in ((0.0, 0.0), (1.0, 1.0), (math.nan, 0.0)):
        with refused("least_eigenvalue="):
            inverse_gram_frobenius(Neighbors.ADD_REMOVE, 2, least, published)


@pytest.mark.parametrize("kind", [np.int64, object])
def test_a_distance_of_integers_is_exact_where_the_difference_is_no_int64(kind: Any) -> None:
    most, least = 2**63 - 1, -(2**63)
    for ours, theirs in (([most, 1], [least, 1]), ([most], [-1]), ([2**62 + 1], [2**62])):
        expected = float(abs(ours[0] - theirs[0]))
        first, second = np.array(ours, dtype=kind), np.array(theirs, dtype=kind)
        for norm in (Norm.L1, Norm.L2, Norm.SCORE):
            assert query_distance(norm, first, second, Neighbors.ADD_REMOVE) == expected
            assert query_distance(norm, first, second.astype(object), Neighbors.ADD_REMOVE) == expected


# Tuples of numbers ------------------------------------------------------------------------------------------------------------


def test_what_files_may_name_is_a_list_of_its_own() -> None:
    assert isinstance(SENSITIVITIES, tuple)
    assert len(BY_NAME) == len(SENSITIVITIES)
    with refused("unknown sensitivity", name="weighted_gram"):
        sensitivity_from_dict(count(ADD_REMOVE).to_dict() | {"name": "weighted_gram"})


FORGED_BLOCKS = {
    "a number": 1.75,
    "a text": "111",
    "none": None,
    "a mapping": {"0": 1.0},
    "a tuple": (2, 3),
    "an array": np.ones(3),
    "empty": [],
    "too many": [1.0] * (2**16 + 1),
    "zero": [2, 0.0],
    "negative": [2, -1.0],
    "infinite": [2, math.inf],
    "not a number": [math.nan],
    "beyond floating point": [10**400],
    "true": [True, 2],
    "a text in it": [2, "3"],
    "a list in it": [[2], [3]],
}


def test_blocks_are_a_list_in_a_file_and_forged_ones_are_refused() -> None:
    made = sums_in_body(ADD_REMOVE, 7, (2, 3)).in_units(2.0**20)
    values = json.loads(json.dumps(made.to_dict()))
    assert isinstance(values["arguments"]["blocks"], list)
    read = sensitivity_from_dict(values)
    assert read == made
    assert dict(read.arguments)["blocks"] == (2, 3)
    for what, forged in FORGED_BLOCKS.items():
        with refused(
            ("must be a list", "numbers: 1 to", "must be finite numbers above 0"),
            (TypeError, ValueError),
            name="sums_in_body",
            parameter="blocks",
        ):
            print(what, sensitivity_from_dict(values | {"arguments": {"n_features": 7, "blocks": forged}}))
    with refused("must be a finite number, and n_features a whole one", TypeError):
        sensitivity_from_dict(values | {"arguments": {"blocks": [1.0], "n_features": [3]}})
    with refused("lack"):
        sensitivity_from_dict(values | {"arguments": {"blocks": [1.0]}})
    sensitivity_module._check_positive_numbers([1.0], "blocks", "body")
    sensitivity_module._check_positive_numbers([1.0] * sensitivity_module.MAX_BLOCKS, "blocks", "body")
