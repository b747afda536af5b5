"""Sensitivity of each query to one row.

This is the only place in the library where a sensitivity is written down.

Rows are encoded as x with ‖x‖₂ ≤ 1. A release of count and mean with the Gram matrix appends a constant w to every row, z = (w,
x), so that Σ z zᵀ holds w²n, wΣx and G = Σ x xᵀ; ``augmentation`` is w, and 0 means only the Gram matrix. A row dropped by its
column rules is z = 0, under both relations: kept rows have the same w, and the entry w²n changes under ``replace_one`` only if
one of the two neighbors drops the row, as it does under ``add_remove``.

Every value below is proved in ``docs/evidence/derivations/sensitivities.md`` and attained by explicit neighbors in
``tests/privacy/test_sensitivity.py`` (exceptions under ``replace_one``, as the ℓ1 bound, are marked there).
"""

from __future__ import annotations

import inspect
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from fractions import Fraction
from functools import lru_cache
from typing import Annotated, Any

import numpy as np
import numpy.typing as npt

from dpmoments.base.errors import InputTypeError, InputValueError, out_of_range, shown
from dpmoments.base.records import NOT_NEGATIVE, read_entries
from dpmoments.base.values import is_finite_number, require_known, rounded_up
from dpmoments.privacy.unit import Neighbors

# Distances of a query on two neighbors, and bounds on them.

Argument = float | tuple[float, ...]
"""Public number, or public weights."""


class Norm(StrEnum):
    """Distance of a query on two neighbors.

    ``L1``, ``L2``: of the vector of its entries; of a symmetric matrix, ``L1`` of the upper triangle with the diagonal and
    ``L2`` the Frobenius norm. ``NUCLEAR``: sum of absolute eigenvalues. ``ROW``: the matrices differ by rows z zᵀ removed or
    added, and the number bounds ‖z‖²; a difference determines it exactly only if one row is added or the two are orthogonal.
    ``SCORE``: largest change of any one score. ``BODY``: gauge of a box times cross-polytopes, the largest absolute entry and ℓ1
    norm of any block of last entries. ``NAMES``: of numbers of rows by name, how many of them change, each by 1; infinite if one
    changes by more.
    """

    L1 = "l1"
    L2 = "l2"
    NUCLEAR = "nuclear"
    ROW = "row"
    SCORE = "score"
    BODY = "body"
    NAMES = "names"


@dataclass(frozen=True)
class Sensitivity:
    """Bound on the change of a query between neighbors, made by ``sensitivity.py`` only."""

    name: str  # function that made it
    # names and values of its arguments, without `neighbors`: numbers, and weights as a tuple, which a file holds as a list
    arguments: tuple[tuple[str, Argument], ...]
    neighbors: Neighbors
    norm: Norm
    value: float  # in units of the query, rounded up
    units: float = 1.0  # units of the query in one unit of the encoded rows: a power of two, or a radius's
    rounding: float = 0.0  # effect of rounding the query to a lattice, in units of the query; part of `value`

    @property
    def blocks(self) -> tuple[float, ...]:
        """Sizes of the blocks of last entries of the query (``BODY``)."""
        blocks = dict(self.arguments).get("blocks", ())
        assert isinstance(blocks, tuple)
        return blocks

    def in_units(self, units: float, *, rounding: float = 0.0) -> Sensitivity:
        """Return the bound for a query in smaller units, ``units`` new ones in one old one."""
        # `rounding` is the largest change of the distance of two queries by rounding to whole units, in new units.
        if units < 1.0 or rounding < 0.0:
            raise InputValueError(
                "a query is counted in smaller units, 1 or more in one, and rounding adds to its distance"
            )
        return Sensitivity(
            self.name,
            self.arguments,
            self.neighbors,
            self.norm,
            _value_in_units(self.value, units, rounding),
            self.units * units,
            self.rounding * units + rounding,
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file."""
        return {
            "name": self.name,
            "arguments": {
                name: list(map(float, value)) if isinstance(value, tuple) else value for name, value in self.arguments
            },
            "neighbors": str(self.neighbors),
            "units": self.units,
            "rounding": self.rounding,
            "value": self.value,
        }


@lru_cache(maxsize=256)
def _value_in_units(value: float, units: float, rounding: float) -> float:
    return rounded_up(Fraction(value) * Fraction(units) + Fraction(rounding))


def query_distance(
    norm: Norm, first: npt.ArrayLike, second: npt.ArrayLike, neighbors: Neighbors, blocks: Sequence[float] = ()
) -> float:
    """Return the distance of a query on two neighboring tables in this norm.

    Infinite if the shapes differ.

    The queries are vectors or symmetric matrices, of exact integers or floats, or numbers of rows by name (``NAMES``);
    ``blocks`` are the sizes of blocks of last entries (``BODY``).
    """
    ours, theirs = np.asarray(first), np.asarray(second)
    if norm is Norm.NAMES:
        one, two = Counter(ours.item()), Counter(theirs.item())
        changes = [abs(one[name] - two[name]) for name in one | two]
        return float(sum(changes)) if max(changes, default=0) <= 1 else math.inf
    if ours.shape != theirs.shape:
        return math.inf
    if norm is Norm.L1:
        if ours.ndim == 2:
            upper = np.triu_indices(len(ours))
            ours, theirs = ours[upper], theirs[upper]
        return float(sum(abs(entry) for entry in _moved(ours, theirs)))
    if norm is Norm.L2:
        return math.sqrt(sum(entry * entry for entry in _moved(ours, theirs)))
    if norm is Norm.SCORE:
        return float(max(map(abs, _moved(ours, theirs)), default=0))
    if norm is Norm.BODY:
        ends = np.cumsum([len(ours) - int(sum(blocks)), *map(int, blocks)])
        moved = np.abs(_difference(ours, theirs).astype(object))
        parts = [part.sum() for part in np.split(moved, ends[:-1])[1:]]
        return float(max([*moved[: ends[0]], *parts], default=0))
    eigenvalues = np.linalg.eigvalsh(_difference(ours, theirs).astype(np.float64))
    added, removed = float(eigenvalues[eigenvalues > 0].sum()), -float(eigenvalues[eigenvalues < 0].sum())
    # Under add-remove one of the two is zero; a replaced row takes one z zᵀ away and brings another.
    both = norm is Norm.NUCLEAR or neighbors is Neighbors.ADD_REMOVE
    return added + removed if both else max(added, removed)


def _in_integers(part: npt.NDArray[Any]) -> bool:
    return bool(part.dtype == object or np.issubdtype(part.dtype, np.integer))


def _within_62_bits(part: npt.NDArray[np.int64]) -> bool:
    return bool(part.min(initial=0) >= -(2**62) and part.max(initial=0) <= 2**62 - 1)


def _difference(ours: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> npt.NDArray[Any]:
    if ours.dtype == theirs.dtype == np.int64 and _within_62_bits(ours) and _within_62_bits(theirs):
        within: npt.NDArray[Any] = ours - theirs
        return within
    # Python integers: a difference of two int64 may not be one.
    integers = _in_integers(ours) and _in_integers(theirs)
    difference: npt.NDArray[Any] = ours.astype(object) - theirs.astype(object) if integers else ours - theirs
    return difference


def _moved(ours: npt.NDArray[Any], theirs: npt.NDArray[Any]) -> list[Any]:
    """Return the entries of the difference."""
    # Of integers only the nonzero ones, which are few for one row of many.
    if ours.dtype == theirs.dtype and _in_integers(ours):
        indices = np.asarray(ours != theirs)
        ours, theirs = ours[indices], theirs[indices]
    return _difference(ours, theirs).ravel().tolist()


# Sensitivities: each query with the largest distance that one row can make.

MAX_BLOCKS = 2**16
MAX_UNITS = 2.0**256
"""Largest number of query units in one unit: the finest unit is 2^−256."""


def gram_frobenius(
    neighbors: Neighbors, n_features: int, augmentation: float = 0.0, row_square: float = 1.0
) -> Sensitivity:
    """Return the Frobenius sensitivity of Σ z zᵀ (the ℓ2 sensitivity of its svec)."""
    # Add-remove: ‖z zᵀ‖_F = ‖z‖² ≤ 1 + w². Replace-one: ‖z zᵀ − z′z′ᵀ‖_F² = ‖z‖⁴ + ‖z′‖⁴ − 2⟨z, z′⟩², at most 2(1 +
    # w²)², reached for ⟨x, x′⟩ = −w². `row_square` bounds ‖x‖², in place of 1, where the encoding has shorter rows.
    _check(n_features, augmentation)
    square = _row_square(augmentation, row_square)
    if neighbors is Neighbors.ADD_REMOVE:
        value = square
    elif n_features == 1 and augmentation == 0:
        value = square  # one dimension has no orthogonal pair; with w the general bound is safe there, not attained
    else:
        value = _up(math.sqrt(2.0) * square)
    arguments = {"n_features": n_features, "augmentation": augmentation, **_if_shorter(row_square)}
    return _made("gram_frobenius", neighbors, Norm.L2, value, **arguments)


def short_rows_frobenius(neighbors: Neighbors, n_features: int, augmentation: float, row_square: float) -> Sensitivity:
    """Return :func:`gram_frobenius`, or less where w² is above ``row_square``."""
    return _of_short_rows(gram_frobenius(neighbors, n_features, augmentation, row_square), "short_rows_frobenius", 8)


def short_rows_nuclear(neighbors: Neighbors, n_features: int, augmentation: float, row_square: float) -> Sensitivity:
    """Return :func:`gram_nuclear`, or less where w² is above ``row_square``."""
    return _of_short_rows(gram_nuclear(neighbors, n_features, augmentation, row_square), "short_rows_nuclear", 16)


def _of_short_rows(bound: Sensitivity, name: str, factor: int) -> Sensitivity:
    """Return the bound, or what opposite rows change if no two rows are orthogonal."""
    # Replace-one, w² > S ≥ ‖x‖²: √8·w√S (Frobenius) or 4w√S (nuclear) at x′ = −x, or w² + S if one row is dropped. The bound
    # keeps its name and value: files have it.
    arguments = dict(bound.arguments)
    w_square, square = (Fraction(float(arguments.get(key, 1.0))) for key in ("augmentation", "row_square"))  # type: ignore[arg-type]
    w_square *= w_square
    if bound.neighbors is Neighbors.ADD_REMOVE or w_square <= square:
        return bound
    value = max(_up(math.sqrt(rounded_up(factor * w_square * square))), rounded_up(w_square + square))
    return _made(name, bound.neighbors, bound.norm, min(value, bound.value), **arguments)


def sum_and_gram_frobenius(neighbors: Neighbors, n_features: int, augmentation: float) -> Sensitivity:
    """Return the Frobenius sensitivity of Σ z zᵀ without the count entry w²n."""
    # Add-remove: 2w²‖x‖² + ‖x‖⁴ ≤ 1 + 2w². Replace-one: the count entry does not change between kept rows, so the value
    # is that of the whole matrix.
    _check(n_features, augmentation)
    if neighbors is Neighbors.ADD_REMOVE:
        value = _up(math.sqrt(1.0 + 2.0 * augmentation * augmentation)) if augmentation else 1.0
    else:
        value = gram_frobenius(neighbors, n_features, augmentation).value
    arguments = {"n_features": n_features, "augmentation": augmentation}
    return _made("sum_and_gram_frobenius", neighbors, Norm.L2, value, **arguments)


def gram_nuclear(
    neighbors: Neighbors, n_features: int, augmentation: float = 0.0, row_square: float = 1.0
) -> Sensitivity:
    """Return the nuclear-norm sensitivity of Σ z zᵀ."""
    # The trace ‖z‖² ≤ 1 + w² under add-remove, twice that under replace-one. `row_square` bounds ‖x‖², in place of 1,
    # where the encoding has shorter rows.
    _check(n_features, augmentation)
    square = _row_square(augmentation, row_square)
    value = square if neighbors is Neighbors.ADD_REMOVE else 2.0 * square
    if n_features == 1 and augmentation == 0:
        value = square
    arguments = {"n_features": n_features, "augmentation": augmentation, **_if_shorter(row_square)}
    return _made("gram_nuclear", neighbors, Norm.NUCLEAR, value, **arguments)


def gram_entrywise_l1(neighbors: Neighbors, n_features: int, augmentation: float = 0.0) -> Sensitivity:
    """Return the ℓ1 sensitivity of the upper triangle with diagonal of Σ z zᵀ."""
    # Add-remove: ((Σ|z_i|)² + Σ z_i²)/2 ≤ ((w + √d)² + w² + 1)/2. Replace-one: min(d/√2 + 1, √(d(d+3)/2)) for the Gram
    # matrix (proven, attained at d = 2) and w·2√d for the entries of wΣx. The count entry changes, by w², only if just
    # one of two neighbors drops the row; then nothing changes by more than under add-remove.
    _check(n_features, augmentation)
    root = math.sqrt(n_features)
    if neighbors is Neighbors.ADD_REMOVE:
        gram = (n_features + 1) / 2.0
        value = _up(augmentation * augmentation + augmentation * root + gram) if augmentation else gram
    else:
        # Two bounds on the spread of eigenvalues of a sign matrix; the first is the smaller from d = 12 on, the second attained
        # at 2.
        gram = min(n_features / math.sqrt(2.0) + 1.0, math.sqrt(n_features * (n_features + 3) / 2.0))
        gram = 1.0 if n_features == 1 else gram
        value = _up(gram + 2.0 * augmentation * root) if n_features > 1 or augmentation else gram
    return _made("gram_entrywise_l1", neighbors, Norm.L1, value, n_features=n_features, augmentation=augmentation)


def row_norm_square(neighbors: Neighbors, augmentation: float = 0.0) -> Sensitivity:
    """Return the bound ‖z‖² ≤ 1 + w² on the row that one table has and its neighbor lacks."""
    # It also bounds a row that the neighbor has with other values.
    _check(1, augmentation)
    value = _row_square(augmentation)
    return _made("row_norm_square", neighbors, Norm.ROW, value, augmentation=augmentation)


def smallest_eigenvalue(neighbors: Neighbors, augmentation: float = 0.0) -> Sensitivity:
    """Return the sensitivity of the smallest eigenvalue of Σ z zᵀ.

    ‖z‖² ≤ 1 + w² under both relations.

    It is between the smallest eigenvalue of the matrix without the row in question and 1 + w² above.
    """
    _check(1, augmentation)
    value = _row_square(augmentation)
    return _made("smallest_eigenvalue", neighbors, Norm.L1, value, augmentation=augmentation)


def inverse_gram_frobenius(
    neighbors: Neighbors, n_features: int, least_eigenvalue: float, published: float = 0.0
) -> Sensitivity:
    """Return the Frobenius sensitivity Δ/w⁴ of the inverse of G.

    Eigenvalues below w² = ``least_eigenvalue`` are raised to it.

    Δ is the sensitivity of G; X ↦ max(X, w²)⁻¹ is Lipschitz with constant 1/w⁴
    (``docs/evidence/derivations/inverse_gaussian.md``). With ``published`` = 1 the larger value of Sheffet (2015), Theorem B.5:
    Δ/(w²(w² − 1)).
    """
    if published not in (0.0, 1.0):
        raise out_of_range("published", published, "0 or 1")
    if not least_eigenvalue > published:
        raise InputValueError(f"least_eigenvalue={shown(least_eigenvalue)} must be above {published:g}")
    of_gram = gram_frobenius(neighbors, n_features).value
    value = _up(of_gram / (least_eigenvalue * (least_eigenvalue - published)))
    arguments = {"n_features": n_features, "least_eigenvalue": least_eigenvalue, "published": published}
    return _made("inverse_gram_frobenius", neighbors, Norm.L2, value, **arguments)


def row_sum_l2(neighbors: Neighbors) -> Sensitivity:
    """Return the ℓ2 sensitivity of Σ x: 1 under add-remove, 2 under replace-one (x′ = −x)."""
    return _made("row_sum_l2", neighbors, Norm.L2, 1.0 if neighbors is Neighbors.ADD_REMOVE else 2.0)


def row_sum_l1(neighbors: Neighbors, n_features: int) -> Sensitivity:
    """Return the ℓ1 sensitivity of Σ x: √d times the ℓ2 one."""
    _check(n_features, 0.0)
    value = row_sum_l2(neighbors).value * math.sqrt(n_features)
    return _made("row_sum_l1", neighbors, Norm.L1, value if n_features == 1 else _up(value), n_features=n_features)


def sum_and_count_l2(neighbors: Neighbors) -> Sensitivity:
    """Return the ℓ2 sensitivity of (Σx, n)."""
    # √2 under add-remove; under replace-one 2, of Σx, or √2 if one row is dropped.
    value = _up(math.sqrt(2.0)) if neighbors is Neighbors.ADD_REMOVE else 2.0
    return _made("sum_and_count_l2", neighbors, Norm.L2, value)


def sum_and_count_l1(neighbors: Neighbors, n_features: int) -> Sensitivity:
    """Return the ℓ1 sensitivity of (Σx, n)."""
    # √d + 1 under add-remove; under replace-one 2√d, which covers a dropped row.
    _check(n_features, 0.0)
    add_remove = neighbors is Neighbors.ADD_REMOVE
    value = _up(math.sqrt(n_features) * row_sum_l2(neighbors).value + (1.0 if add_remove else 0.0))
    return _made("sum_and_count_l1", neighbors, Norm.L1, value, n_features=n_features)


def sum_and_square_l1(neighbors: Neighbors, augmentation: float) -> Sensitivity:
    """Return the ℓ1 sensitivity of (wΣx, Σx²), one feature."""
    # 1 + w; under replace-one (1 + w/2)², at x = 1 and x′ = −w/2.
    _check(1, augmentation)
    value = 1.0 + augmentation if neighbors is Neighbors.ADD_REMOVE else (1.0 + augmentation / 2.0) ** 2
    return _made("sum_and_square_l1", neighbors, Norm.L1, _up(value), augmentation=augmentation)


def sum_and_square_l2(neighbors: Neighbors, augmentation: float) -> Sensitivity:
    """Return the ℓ2 sensitivity of (wΣx, Σx²), one feature.

    √(1 + w²); under replace-one at x = 1 and x′ = −t.

    (1 + t)√(w² + (1 − t)²) is largest at t = 1, or at 2t = 1 − √(1 − 2w²).
    """
    _check(1, augmentation)
    square = augmentation**2
    value = math.sqrt(1.0 + square)
    if neighbors is Neighbors.REPLACE_ONE:
        t = (1.0 - math.sqrt(max(1.0 - 2.0 * square, 0.0))) / 2.0
        value = _up(max(2.0 * augmentation, (1.0 + t) * math.sqrt(square + (1.0 - t) ** 2)))  # up to five roundings
    return _made("sum_and_square_l2", neighbors, Norm.L2, _up(value), augmentation=augmentation)


ROUGH_WEIGHT, ROUGH_CENTER = Fraction(11, 8), Fraction(783, 1024)
"""γ and y₀ of (x, γ(x² − y₀)): nearly equal, least squared length at x = 0 and x = ±1."""


def rough_sums_l2(neighbors: Neighbors, n_numbers: int, n_flags: int, counted: float = 1.0) -> Sensitivity:
    """Return the ℓ2 sensitivity of (n, Σx, γΣ(x² − y₀)), |x| ≤ 1.

    Squares are of ``n_numbers`` of the x only. ``counted`` is 0 where the number of rows is public and left out.
    """
    # Add-remove: x² + γ²(x² − y₀)² is convex in x², so largest at 0 or 1. Replace-one: with s = x + x′ and t = x − x′,
    # t²(1 + γ²s²), |s| + |t| ≤ 2, is at most 4, at s = 0: (2 − s)²(1 + γ²s²) ≤ 4 for γ² ≤ 2. A row that only one of two
    # neighbors drops changes no more than under add-remove.
    if n_numbers < 0 or n_flags < 0 or n_numbers + n_flags < 1 or counted not in (0.0, 1.0):
        raise InputValueError(f"n_features={n_numbers + n_flags}: a table needs at least one feature")
    of_number = max(ROUGH_WEIGHT**2 * ROUGH_CENTER**2, 1 + ROUGH_WEIGHT**2 * (1 - ROUGH_CENTER) ** 2)
    square = Fraction(counted) + n_numbers * of_number + n_flags
    if neighbors is Neighbors.REPLACE_ONE:
        square = max(Fraction(4 * (n_numbers + n_flags)), square)
    arguments = {"n_numbers": n_numbers, "n_flags": n_flags, "counted": counted}
    return _made("rough_sums_l2", neighbors, Norm.L2, _up(math.sqrt(rounded_up(square))), **arguments)


def count(neighbors: Neighbors) -> Sensitivity:
    """Return the sensitivity of a number of rows: 1 under both relations."""
    # Under replace-one, it is a number of kept rows, or of rows of some kind.
    return _made("count", neighbors, Norm.L2, 1.0)


def count_l1(neighbors: Neighbors) -> Sensitivity:
    """Return :func:`count`, for Laplace noise."""
    return _made("count_l1", neighbors, Norm.L1, 1.0)


def histogram_l2(neighbors: Neighbors) -> Sensitivity:
    """Return the ℓ2 sensitivity of counts over disjoint bins."""
    # One bin changes by 1, or two bins do under replace-one.
    return _made("histogram_l2", neighbors, Norm.L2, 1.0 if neighbors is Neighbors.ADD_REMOVE else _up(math.sqrt(2.0)))


def histogram_l1(neighbors: Neighbors) -> Sensitivity:
    """Return the ℓ1 sensitivity of counts over disjoint bins: 1, or 2 under replace-one."""
    return _made("histogram_l1", neighbors, Norm.L1, 1.0 if neighbors is Neighbors.ADD_REMOVE else 2.0)


def name_counts(neighbors: Neighbors) -> Sensitivity:
    """Return how many numbers of rows by name change, by 1 each, if a row has one name at most.

    One, or two under replace-one.
    """
    return _made("name_counts", neighbors, Norm.NAMES, 1.0 if neighbors is Neighbors.ADD_REMOVE else 2.0)


def sums_in_body(neighbors: Neighbors, n_features: int, blocks: tuple[float, ...] = ()) -> Sensitivity:
    """Return the sensitivity of sums of rows in a body, in its gauge.

    The body is a box times cross-polytopes.

    ``blocks`` are the sizes of blocks of the last of ``n_features`` coordinates. A row's coordinates before them are in [−1, 1],
    and the absolute values of each block add up to 1 or less. A dropped row is 0.
    """
    # Under replace-one the two rows of a pair differ by twice the body at most. The count of kept rows may be scaled by 2 there:
    # of two kept rows the count is equal, and a row that is kept in one table only changes the rest by 1.
    whole = [int(size) for size in blocks]
    _check(n_features, 0.0)
    if list(blocks) != whole or min(whole, default=1) < 1 or sum(whole) > n_features:
        raise InputTypeError("blocks of sums_in_body must be a finite number, and n_features a whole one")
    arguments: dict[str, Argument] = {"blocks": tuple(whole)} if whole else {}
    arguments |= {"n_features": n_features}
    return _made("sums_in_body", neighbors, Norm.BODY, 1.0 if neighbors is Neighbors.ADD_REMOVE else 2.0, **arguments)


def rank_score(neighbors: Neighbors) -> Sensitivity:
    """Return the sensitivity of each of several scores that count rows, or rank distances."""
    # It is 1 under both relations.
    return _made("rank_score", neighbors, Norm.SCORE, 1.0)


def median_score(neighbors: Neighbors) -> Sensitivity:
    """Return the sensitivity of 2·rank − n, and of its distance from 0: 1."""
    # Under replace-one, with n unchanged, 2.
    return _made("median_score", neighbors, Norm.SCORE, 1.0 if neighbors is Neighbors.ADD_REMOVE else 2.0)


def quadratic_form(neighbors: Neighbors) -> Sensitivity:
    """Return the sensitivity of uᵀ G u for one unit vector u.

    1 under both relations, since 0 ≤ ⟨u, x⟩² ≤ 1.

    Amin et al. (2019) use 2 under replace-one.
    """
    return _made("quadratic_form", neighbors, Norm.ROW, 1.0)


def sorted_eigenvalues_l1(neighbors: Neighbors, n_features: int) -> Sensitivity:
    """Return the ℓ1 sensitivity of the sorted eigenvalues of G."""
    # By Lidskii, it is at most the nuclear norm of the difference.
    value = gram_nuclear(neighbors, n_features).value
    return _made("sorted_eigenvalues_l1", neighbors, Norm.L1, value, n_features=n_features)


def sorted_eigenvalues_l2(neighbors: Neighbors, n_features: int) -> Sensitivity:
    """Return the ℓ2 sensitivity of the sorted eigenvalues of G."""
    # By Hoffman & Wielandt, it is at most the Frobenius norm.
    value = gram_frobenius(neighbors, n_features).value
    return _made("sorted_eigenvalues_l2", neighbors, Norm.L2, value, n_features=n_features)


SENSITIVITIES: tuple[Callable[..., Sensitivity], ...] = (
    count,
    count_l1,
    gram_entrywise_l1,
    gram_frobenius,
    gram_nuclear,
    histogram_l1,
    name_counts,
    histogram_l2,
    inverse_gram_frobenius,
    median_score,
    quadratic_form,
    rank_score,
    row_norm_square,
    row_sum_l1,
    row_sum_l2,
    rough_sums_l2,
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
"""Every sensitivity by which receipts are recomputed; names and arguments are in files."""


_WHOLE = ("n_features", "n_numbers", "n_flags")
"""Arguments that are whole numbers."""
_SIZE = Annotated[float, NOT_NEGATIVE]
_ENTRIES = {"name": str, "arguments": dict, "neighbors": Neighbors, "units": _SIZE, "rounding": _SIZE, "value": _SIZE}


def sensitivity_from_dict(values: Mapping[str, Any]) -> Sensitivity:
    """Rebuild the sensitivity that a file states. One that is stated too low is refused."""
    values = read_entries(values, _ENTRIES, "sensitivity")
    made = next((one for one in SENSITIVITIES if one.__name__ == values["name"]), None)
    if made is None:
        known = ", ".join(one.__name__ for one in SENSITIVITIES)
        raise InputValueError(f"unknown sensitivity {shown(values['name'])}: use one of {known}")
    if not 1.0 <= values["units"] <= MAX_UNITS or math.frexp(values["units"])[0] != 0.5:
        raise InputValueError("units of a sensitivity must be a power of two, 1 or more")

    arguments, what = values["arguments"], f"the arguments of {made.__name__}"
    _, *parameters = inspect.signature(made).parameters.values()
    require_known(arguments, [parameter.name for parameter in parameters], what)
    if absent := [p.name for p in parameters if p.default is p.empty and p.name not in arguments]:
        raise InputValueError(f"{what} lack {', '.join(absent)}")
    for name, value in arguments.items():
        if name == "blocks":
            _check_positive_numbers(value, name, made.__name__)
        elif not is_finite_number(value) or (name in _WHOLE and not isinstance(value, int)):
            raise InputTypeError(f"{name} of {made.__name__} must be a finite number, and n_features a whole one")
    plain = {name: tuple(map(float, value)) if name == "blocks" else value for name, value in arguments.items()}
    base = made(values["neighbors"], **plain)
    anew = base.in_units(values["units"], rounding=values["rounding"])
    if anew.value > values["value"]:
        raise InputValueError(f"a sensitivity '{values['name']}' is stated as less than it is")
    return anew


def _check_positive_numbers(values: object, parameter: str, name: str) -> None:
    """Raise TypeError or ValueError unless a file's tuple is a list of positive numbers."""
    if not isinstance(values, list):
        raise InputTypeError(f"{parameter} of {name} must be a list")
    if not 1 <= len(values) <= MAX_BLOCKS:
        raise InputValueError(f"{parameter} of {name} are {len(values):,} numbers: 1 to {MAX_BLOCKS:,} are expected")
    if not all(is_finite_number(value) and value > 0 for value in values):
        raise InputValueError(f"{parameter} of {name} must be finite numbers above 0")


def _made(name: str, neighbors: Neighbors, norm: Norm, value: float, **arguments: Argument) -> Sensitivity:
    return Sensitivity(name, tuple(arguments.items()), neighbors, norm, value)


def _check(n_features: int, augmentation: float) -> None:
    if n_features < 1:
        raise InputValueError(f"n_features={n_features}: a table needs at least one feature")
    if not 0 <= augmentation <= 1:
        raise InputValueError(f"augmentation={augmentation}: the appended constant is between 0 and 1")


def _row_square(augmentation: float, row_square: float = 1.0) -> float:
    """Return ‖x‖² + w², exact if w is a multiple of 1/64 and ‖x‖² is 1, and else rounded up."""
    if not 0.0 < row_square <= 1.0:
        raise out_of_range("row_square", row_square, "a fraction, above 0 and at most 1")
    return rounded_up(Fraction(row_square) + Fraction(augmentation) ** 2)


def _if_shorter(row_square: float) -> dict[str, Argument]:
    """Return the argument if rows are shorter than 1."""
    return {} if row_square == 1.0 else {"row_square": row_square}


def _up(value: float) -> float:
    """Round two units in the last place up: above the true value after two or three roundings."""
    return math.nextafter(math.nextafter(value, math.inf), math.inf)
