"""Exact sums: equal to sums of Python integers, for every order, cut, layout and thread count; and their sensitivity."""

from __future__ import annotations

import copy
import json
import os
import pickle
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmoments.rows import kernel
from dpmoments.rows.kernel import exact_moments
from dpmoments.rows.moments import ExactMoments, add_limbs, split_limbs
from dpmoments.rows.rounding import Lattice
from references.reference_lattice import reference_lattice_row, reference_sums
from support.drawn_tables import drawn_table
from support.examples import examples
from support.lattice_rows import lattice_rows
from support.said import refused

FloatArray = NDArray[np.float64]


def values_of(moments: ExactMoments) -> tuple[Any, ...]:
    return moments.count, moments.dropped, moments.sum.tolist(), moments.gram.tolist()


@pytest.mark.long
@settings(deadline=None, max_examples=examples(150))
@given(st.data())
def test_same_bits_for_every_order_cut_layout_and_thread_count(data: st.DataObject) -> None:
    table, n_features, options = drawn_table(data)
    options["linear"] = data.draw(st.sampled_from([None, [[1.0 + j for j in range(n_features)]] * 2]))
    encoded = [reference_lattice_row(row, **options) for row in table]
    n_outputs = n_features if options["linear"] is None else 2
    expected_sum, expected_gram = reference_sums([row for row, _ in encoded], n_outputs)
    expected = (len(table), sum(dropped for _, dropped in encoded), expected_sum, expected_gram)

    rows = np.array(table, dtype=np.float64).reshape(-1, n_features)
    reordered = rows[data.draw(st.permutations(range(len(table))))] if table else rows
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=3)))
    blocks = [np.asfortranarray(block) if data.draw(st.booleans()) else block for block in np.split(reordered, cuts)]
    found = exact_moments(blocks, n_features, threads=data.draw(st.integers(1, 3)), **options)
    assert values_of(found) == expected


def table_of_many_kinds(n_rows: int, n_features: int) -> FloatArray:
    """Rows inside and outside the ball, a few huge, some missing."""
    rng = np.random.default_rng(n_rows)
    rows = rng.standard_normal((n_rows, n_features)) * 10.0 ** rng.uniform(-2, 1, (n_rows, 1))
    rows[rng.integers(0, n_rows, n_rows // 50)] *= 1e200
    rows[rng.integers(0, n_rows, n_rows // 20), rng.integers(0, n_features, n_rows // 20)] = np.nan
    return rows


@pytest.mark.parametrize(("n_rows", "n_features", "bits"), [(30_000, 3, 20), (9_000, 40, 20), (3_000, 33, 23)])
def test_many_steps_and_threads(n_rows: int, n_features: int, bits: int) -> None:
    """Large enough for several products, tasks and threads, against int64 sums of the lattice rows."""
    rows = table_of_many_kinds(n_rows, n_features)
    options: dict[str, Any] = {"bits": bits, "missing": "drop"}
    integers = lattice_rows(rows, **options).astype(np.int64)
    gram = np.einsum("ij,ik->jk", integers, integers)
    assert n_rows * 4**bits < 2**63  # int64 is enough for the reference
    dropped = int(np.isnan(rows).any(axis=1).sum())
    expected = (n_rows, dropped, integers.sum(axis=0).tolist(), gram.tolist())
    first = exact_moments([rows], n_features, threads=1, **options)
    assert values_of(first) == expected
    assert 0 < first.clipped < n_rows - dropped
    blocks = np.array_split(np.asfortranarray(rows), 7)
    for threads in (1, 2, 5, None):
        assert exact_moments(iter(blocks), n_features, threads=threads, **options) == first
        assert exact_moments([rows[::-1]], n_features, threads=threads, **options) == first


def test_worst_case_sums_do_not_overflow(monkeypatch: pytest.MonkeyPatch) -> None:
    """40 000 rows at the radius with 24 bits pass 2^63; planted fault: without the carry, int64 wraps around."""
    rows = np.ones((40_000, 1))
    moments = exact_moments([rows], 1, bits=24, threads=1)
    assert moments.gram.tolist() == [[40_000 * 2**48]]
    assert moments.gram.dtype == object
    assert moments.sum.dtype == np.int64
    monkeypatch.setattr(kernel, "_PRODUCTS_PER_CARRY", 10**9)
    assert exact_moments([rows], 1, bits=24, threads=1).gram.tolist() != [[40_000 * 2**48]]


def test_products_are_cut_before_they_round(monkeypatch: pytest.MonkeyPatch) -> None:
    """Odd squares just below 2^40 add up inexactly beyond 2^53; planted fault: a product of more rows."""
    odd = 2**20 - 1
    rows = np.full((3 * 8192 + 1, 1), odd / 2**20)
    expected = [[len(rows) * odd**2]]
    assert exact_moments([rows], 1, threads=1).gram.tolist() == expected
    # Of blocks that are no whole products, so that what two of them add up to is odd.
    assert exact_moments(np.split(rows, [8191, 16382, 24573]), 1, threads=1).gram.tolist() == expected
    monkeypatch.setattr(Lattice, "rows_per_product", 2**20)
    assert exact_moments([rows], 1, threads=1).gram.tolist() != expected


def contribution(row: FloatArray, **options: Any) -> tuple[list[int], list[list[int]]]:
    """What one row adds to sum and gram, in Python integers, from the row alone."""
    integers, _ = reference_lattice_row(row.tolist(), **options)
    return reference_sums([integers], len(integers))


def sensitivity_is_exact(moments_of: Any, rows: FloatArray, **options: Any) -> bool:
    """Whether removing, and replacing, any row changes sum and gram by exactly that row's own contribution."""
    whole_sum, whole_gram = moments_of(rows)
    for i in range(len(rows)):
        own_sum, own_gram = contribution(rows[i], **options)
        new = rows[(i + 1) % len(rows)] * -1.5
        new_sum, new_gram = contribution(new, **options)
        without = moments_of(np.delete(rows, i, axis=0))
        replaced = moments_of(np.vstack([rows[:i], new[None], rows[i + 1 :]]))
        if not (
            np.array_equal(whole_sum - without[0], own_sum)
            and np.array_equal(whole_gram - without[1], own_gram)
            and np.array_equal(replaced[0] - without[0], new_sum)
            and np.array_equal(replaced[1] - without[1], new_gram)
        ):
            return False
    return True


@pytest.mark.long
def test_sensitivity_on_the_lattice() -> None:
    rng = np.random.default_rng(10)
    rows = rng.standard_normal((12, 4)) * 10.0 ** rng.uniform(-1, 1, (12, 1))
    rows[3], rows[4] = 0.0, 1e250
    matrix = rng.standard_normal((3, 4)).tolist()
    cases: list[dict[str, Any]] = [
        {},
        {"bits": 7, "radius": 3.0},
        {"center": [0.1, 0.2, -0.3, 0.0], "linear": matrix, "radius": 2.0},
    ]
    for options in cases:
        options = {"bits": 20, "radius": 1.0} | options

        def moments_of(table: FloatArray, options: dict[str, Any] = options) -> tuple[NDArray[Any], NDArray[Any]]:
            moments = exact_moments(np.array_split(table, 3), 4, **options)
            return moments.sum, moments.gram

        assert sensitivity_is_exact(moments_of, rows, **options)


def test_merging_with_itself_to_2_to_the_50_rows_and_beyond() -> None:
    rows = np.array([[1.0, 0.0], [0.6, -0.8], [-3.0, 1.0]])
    moments = exact_moments([rows], 2, bits=24)
    integers = [reference_lattice_row(row, bits=24, radius=1.0)[0] for row in rows.tolist()]
    total, gram = reference_sums(integers, 2)
    count = 3
    for _ in range(60):
        moments += moments
        count *= 2
        total = [2 * entry for entry in total]
        gram = [[2 * entry for entry in line] for line in gram]
        assert values_of(moments) == (count, 0, total, gram)
    assert moments.gram.dtype == object
    with pytest.raises(OverflowError):
        reduce(ExactMoments.merge, [moments] * 4)


@given(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=6), st.integers(0, 50))
def test_limbs_add_like_python_integers(integers: list[int], doublings: int) -> None:
    limbs = split_limbs(np.array(integers, dtype=np.int64))
    total = limbs
    for _ in range(doublings):
        total = add_limbs(total, total)
    total = add_limbs(total, limbs)
    found = [int(high) * 2**60 + int(low) for high, low in total.T]
    assert found == [integer * (2**doublings + 1) for integer in integers]
    assert np.all((total[1] >= 0) & (total[1] < 2**60))


@pytest.mark.parametrize("integer", [2**63 - 1, -(2**63), 2**60, -1, 0])
def test_int64_wherever_it_fits(integer: int) -> None:
    limbs = np.zeros((2, 2, 1), dtype=np.int64)
    limbs[:, 1] = split_limbs(np.array([integer]))
    fits = ExactMoments(1, 0, 0, 20, 1.0, limbs)
    assert fits.gram.dtype == np.int64
    assert fits.gram.tolist() == [[integer]]
    for step in (1, -1):
        beyond = ExactMoments(1, 0, 0, 20, 1.0, add_limbs(limbs, split_limbs(np.full((2, 1), step))))
        fits_still = -(2**63) <= integer + step < 2**63
        assert beyond.gram.tolist() == [[integer + step]]
        assert (beyond.gram.dtype == np.int64) == fits_still


def test_merge_is_a_commutative_monoid() -> None:
    rows = table_of_many_kinds(300, 4)
    parts = [exact_moments([part], 4, missing="drop") for part in np.array_split(rows, 3)]
    whole = exact_moments([rows], 4, missing="drop")
    empty = ExactMoments(0, 0, 0, 20, 1.0, np.zeros((2, 5, 4), dtype=np.int64))
    assert reduce(ExactMoments.merge, parts) == reduce(ExactMoments.merge, parts[::-1]) == whole
    assert parts[0] + (parts[1] + parts[2]) == (parts[0] + parts[1]) + parts[2] == whole
    assert empty + whole == whole + empty == whole
    assert whole != parts[0]
    assert whole.merge(parts[0]).count == 400
    assert exact_moments([], 4) == exact_moments([np.empty((0, 4))], 4, threads=1) == empty
    assert copy.deepcopy(whole) == whole


def test_moments_refuse_what_does_not_match() -> None:
    one = exact_moments([], 2, bits=20, radius=1.0)
    others = (
        exact_moments([], 3, bits=20, radius=1.0),
        exact_moments([], 2, bits=19, radius=1.0),
        exact_moments([], 2, bits=20, radius=2.0),
    )
    for other in others:
        with refused("cannot merge moments on different lattices: (features"):
            one.merge(other)
    with pytest.raises(TypeError):
        one + 1  # type: ignore[operator]
    with refused("limbs must be int64 of shape (2, d + 1, d), got"):
        ExactMoments(0, 0, 0, 20, 1.0, np.zeros((2, 2, 2), dtype=np.int64))
    with refused("need 0 <= dropped <= count and 0 <= clipped <= count"):
        ExactMoments(0, 1, 0, 20, 1.0, np.zeros((2, 2, 1), dtype=np.int64))
    with refused("with fewer, rounding could change a row by more than half"):
        exact_moments([], 2, bits=40, radius=1.0)


def test_moments_are_immutable_and_show_no_value() -> None:
    moments = exact_moments([np.full((12_345, 2), 0.25)], 2)
    assert "12345" not in repr(moments)
    assert str(262_144 * 12_345) not in repr(moments)
    assert moments.scale == 2.0**-20
    with pytest.raises(ValueError, match="read-only"):
        moments.limbs[0, 0, 0] = 1
    with pytest.raises(AttributeError):
        moments.count = 0  # type: ignore[misc]
    with pytest.raises(TypeError, match="unhashable"):
        hash(moments)


@pytest.mark.parametrize("doublings", [0, 23, 50])  # from 2^63 on, cells are sent in two limbs
@pytest.mark.parametrize("n_features", [1, 40])
def test_what_is_sent_is_the_lower_triangle(n_features: int, doublings: int) -> None:
    moments = exact_moments([np.random.default_rng(0).normal(0, 0.3, (9, n_features))], n_features)
    for _ in range(doublings):
        moments = moments + moments
    sent = pickle.dumps(moments, protocol=5)
    assert pickle.loads(sent) == moments
    integers = n_features + n_features * (n_features + 1) // 2
    assert len(sent) <= 8 * integers * (1 if doublings < 50 else 2) + 500
    limbs = np.array(moments.limbs)
    limbs[0, -1, 0] += 1  # of no rows; not symmetric, but for one feature
    assert pickle.loads(pickle.dumps(replace(moments, limbs=limbs))) == replace(moments, limbs=limbs)


@pytest.mark.parametrize("threads", [1, 2])
def test_errors_reach_the_caller(threads: int) -> None:
    good, bad = np.zeros((5000, 2)), np.array([[0.123456, np.nan]])
    with refused("a cell is NaN or infinite and missing='error': clean the") as caught:
        exact_moments([good, bad, good], 2, threads=threads)
    assert "0.123456" not in str(caught.value)
    with refused("a block must have"):
        exact_moments([good, np.zeros((7, 3))], 2, threads=threads)
    with refused("a block must be two-dimensional, got"):
        exact_moments(good, 2, threads=threads)

    def failing() -> Iterator[FloatArray]:
        yield good
        raise OSError("disk")

    with pytest.raises(OSError, match="disk"):
        exact_moments(failing(), 2, threads=threads)
    with refused("must be", parameter="threads"):
        exact_moments([good], 2, threads=0)


def test_clipped_counts_rows_beyond_the_radius() -> None:
    """Rows at the radius, which rounding alone may push beyond it, are not reported as clipped."""
    angles = np.linspace(0, 6, 1000)
    on_the_circle = np.column_stack([np.cos(angles), np.sin(angles)])
    assert exact_moments([on_the_circle], 2).clipped == 0
    assert exact_moments([on_the_circle * (1 + 1e-5)], 2).clipped == 1000
    assert exact_moments([on_the_circle * 1e200], 2).clipped == 1000


PRINT_DIGESTS = """
import hashlib, json
import numpy as np
from threadpoolctl import threadpool_info
from dpmoments.rows.kernel import exact_moments
from support.lattice_rows import lattice_rows

rng = np.random.default_rng(13)
rows = rng.standard_normal((3001, 61)) * 10.0 ** rng.uniform(-3, 1, (3001, 1))
rows[::97] *= 1e250
matrix = rng.standard_normal((17, 61))
exact = []
single = np.clip(rows, -1e30, 1e30).astype(np.float32)[:, :5]
for block in (rows, np.asfortranarray(rows), single):
    for linear in (None, matrix[:, : block.shape[1]]):
        exact.append(lattice_rows(block, linear=linear).tobytes())
        exact.append(exact_moments([block], block.shape[1], linear=linear).limbs.tobytes())
ordinary = np.delete(rows, slice(None, None, 97), axis=0)
digest = lambda parts: hashlib.sha256(b"".join(parts)).hexdigest()
processor = [pool.get("architecture") for pool in threadpool_info() if pool["user_api"] == "blas"]
print(json.dumps([processor, digest(exact), digest([(ordinary.T @ ordinary).tobytes()])]))
"""


def digests_on(environment: dict[str, str]) -> tuple[list[str], str, str]:
    """BLAS kernels, digest of exact results, digest of a float Gram matrix, in a process with this environment."""
    search_path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PRINT_DIGESTS],
        env=os.environ | environment | {"PYTHONPATH": search_path},
        capture_output=True,
        text=True,
        check=True,
    )
    kernels, exact, plain = json.loads(done.stdout)
    return kernels, exact, plain


@pytest.mark.long
def test_same_bits_on_other_processors() -> None:
    """Other BLAS kernels and other NumPy vector instructions, as on older processors, give the same bits."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    extensions = " ".join(name for name in __cpu_dispatch__ if __cpu_features__.get(name))
    here = digests_on({})
    older = digests_on({"OPENBLAS_CORETYPE": "Nehalem", "NPY_DISABLE_CPU_FEATURES": extensions})
    assert older[1] == here[1]
    if older[0] != here[0]:  # planted fault: floating-point sums do not, where the kernels do differ
        assert older[2] != here[2]
