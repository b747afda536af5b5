"""Lattice rows: equal to the slow reference bit for bit, inside the ball, and a function of the row alone."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmoments.rows import kernel, rounding, summary
from dpmoments.rows.kernel import MomentSummary, exact_moments, transformed_norms
from dpmoments.rows.rounding import EXACT, Lattice, _shrink_into_ball, squared_norms
from references.reference_lattice import reference_lattice_row, reference_sums
from support.examples import examples
from support.lattice_rows import lattice_rows
from support.said import Said, refused

FloatArray = NDArray[np.float64]

finite_cells = st.one_of(
    st.floats(-2, 2),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from([0.0, -0.0, 5e-324, 2.2e-308, 1e-300, 1e300, -1.7976931348623157e308, 0.6, 0.8, 1.0, 2.0**-21]),
)
any_cells = st.one_of(finite_cells, st.sampled_from([math.nan, math.inf, -math.inf]))


@st.composite
def encodings(draw: st.DrawFn) -> tuple[list[list[float]], int, dict[str, Any]]:
    """Rows of cells, their number of columns, and options of the kernel."""
    n_features = draw(st.integers(1, 5))
    n_outputs = n_features
    options: dict[str, Any] = {"missing": draw(st.sampled_from(["center", "drop"]))}
    if draw(st.booleans()):
        options["center"] = draw(st.lists(st.floats(-1e3, 1e3), min_size=n_features, max_size=n_features))
    if draw(st.booleans()):
        n_outputs = draw(st.integers(1, 5))
        entries = st.one_of(st.floats(-3, 3), st.floats(-1e120, 1e120))
        one_row = st.lists(entries, min_size=n_features, max_size=n_features)
        options["linear"] = draw(st.lists(one_row, min_size=n_outputs, max_size=n_outputs))
    options["bits"] = draw(st.integers(max(1, (n_outputs - 1).bit_length()), 24))
    options["radius"] = draw(st.sampled_from([1.0, 0.3, 7.0, 1e-140, 1e140, math.sqrt(14)]))
    one_row = st.lists(any_cells, min_size=n_features, max_size=n_features)
    return draw(st.lists(one_row, max_size=6)), n_features, options


@pytest.mark.long
@settings(deadline=None, max_examples=examples(400))
@given(encodings())
def test_lattice_rows_equal_the_reference(case: tuple[list[list[float]], int, dict[str, Any]]) -> None:
    rows, n_features, options = case
    found = lattice_rows(np.array(rows, dtype=np.float64).reshape(-1, n_features), **options)
    expected = [reference_lattice_row(row, **options)[0] for row in rows]
    assert found.tolist() == expected
    for row in found.tolist():
        assert sum(int(entry) ** 2 for entry in row) <= 4 ** options["bits"]


def layouts(rows: FloatArray) -> dict[str, NDArray[Any]]:
    """The same rows in every way NumPy can store them."""
    n_rows, n_features = rows.shape
    wide = np.zeros((2 * n_rows, 3 * n_features))
    wide[::2, 1::3] = rows
    unaligned = np.zeros(rows.nbytes + 1, dtype=np.uint8)[1:].view(np.float64).reshape(rows.shape)
    unaligned[:] = rows
    read_only = rows.copy()
    read_only.setflags(write=False)
    return {
        "C": rows.copy(),
        "F": np.asfortranarray(rows),
        "strided": wide[::2, 1::3],
        "strided F": np.asfortranarray(wide)[::2, 1::3],
        "backwards": rows[::-1, ::-1].copy()[::-1, ::-1],
        "unaligned": unaligned,
        "read-only": read_only,
        "other byte order": rows.astype(rows.dtype.newbyteorder()),
    }


def boundary_rows(n_rows: int, n_features: int, rng: np.random.Generator) -> FloatArray:
    """Rows to clip, each with a cell tuned so that a last-bit change of the norm flips its rounding at 20 bits."""
    rows = rng.standard_normal((n_rows, n_features)) * 2.0
    rows[:, 0] = 1.0
    for _ in range(40):
        norms = np.linalg.norm(rows, axis=1)
        half_integer = np.floor(rows[:, 0] * (2.0**20 / norms)) + 0.5
        rows[:, 0] = half_integer * norms / 2.0**20
    return rows


def depends_on_layout(encode: Any, rows: FloatArray) -> bool:
    expected = encode(rows)
    return not all(np.array_equal(encode(same), expected) for same in layouts(rows).values())


def depends_on_company(encode: Any, rows: FloatArray) -> bool:
    """Whether a row encodes differently alone, in pairs, or in another order."""
    expected = encode(rows)
    order = np.random.default_rng(5).permutation(len(rows))
    alone = np.vstack([encode(rows[i : i + 1]) for i in range(len(rows))])
    cut = np.vstack([encode(rows[:7]), encode(rows[7:])])
    return not (
        np.array_equal(alone, expected)
        and np.array_equal(cut, expected)
        and np.array_equal(encode(rows[order]), expected[order])
    )


@pytest.mark.parametrize("n_features", [1, 3, 32, 67])
def test_lattice_rows_depend_on_the_row_alone(n_features: int) -> None:
    rng = np.random.default_rng(n_features)
    rows = boundary_rows(60, n_features, rng)
    rows[20:30] *= 1e-3
    rows[30:40] *= 10.0 ** rng.uniform(-320, 300, (10, 1))
    rows[40:45] = 0.0
    rows[45] = 1.7e308
    assert not depends_on_layout(lattice_rows, rows)
    assert not depends_on_company(lattice_rows, rows)
    matrix = rng.standard_normal((4, n_features))

    def mapped(block: NDArray[Any]) -> FloatArray:
        return lattice_rows(block, center=np.arange(float(n_features)), linear=matrix, radius=30.0)

    assert not depends_on_layout(mapped, rows)
    assert not depends_on_company(mapped, rows)


def hard_rows() -> dict[str, tuple[FloatArray, dict[str, Any]]]:
    """Rows that random ones seldom are, and options of the kernel."""
    rng = np.random.default_rng(12)
    lengths = np.concatenate([2.0 ** rng.uniform(6, 7, 1500), 2.0 ** rng.uniform(-4, 900, 100)])
    gaps = rng.standard_normal((1600, 4)) * (lengths / 2.0)[:, None]
    squares = np.sum(np.rint(gaps[:1500] * 2.0**20) ** 2, axis=1)
    assert np.sum((squares >= 2.0**52) & (squares < 2.0**53)) > 300  # around the last exact integer
    assert np.sum((squares >= 2.0**53) & (squares < 2.0**54)) > 300
    gaps[:, 1] = rng.choice([np.nan, np.inf, -np.inf], 1600)
    long, wide = np.zeros((2, 17)), rng.standard_normal((6, 8192))
    long[0, -1], long[1, :2] = -0.6e300, [0.6e250, 0.6e250]
    wide *= (10.0 ** rng.uniform(-3, 290, 6) / np.linalg.norm(wide, axis=1))[:, None]
    edge = np.array([[2.0**900], [-1e308], [0.0]])
    return {
        "squares that add up to 2^53 + 1": (rows_whose_squares_round_to_2_to_the_53(10) * 2.0**-20, {}),
        "gaps in rows of every length": (gaps, {"missing": "center"}),
        "huge": (long[:, -2:], {}),
        # Scaling by a power of two alone leaves such a row shorter than the radius.
        "huge, of 17 features": (long, {"bits": 24}),
        "8192 features": (wide, {"radius": 3.7}),
        "2000 features, few bits": (wide[:, :2000], {"bits": 6}),
        "one feature, one bit": (wide[:, :1], {"bits": 1}),
        "a large center": (edge, {"center": [2.0**900], "bits": 4}),
        # A factor of 2^662 takes the image, 2^600, to units of 2^332/2^20.
        "a small matrix": (np.array([[2.0**1000], [0.0]]), {"linear": [[2.0**-400]], "radius": 2.0**332}),
        "a large matrix": (np.array([[-(2.0**1000)], [0.0]]), {"linear": [[-(2.0**390)]], "radius": 2.0**-460}),
    }


def test_hard_rows_equal_the_reference() -> None:
    for name, (rows, options) in hard_rows().items():
        found = lattice_rows(rows, **options)
        options = {"bits": 20, "radius": 1.0} | options
        assert found.tolist() == [reference_lattice_row(row, **options)[0] for row in rows.tolist()], name
        assert (np.sum(found.astype(np.int64) ** 2, axis=1) <= 4 ** options["bits"]).all(), name


@pytest.mark.parametrize("layout", ["C", "F"])
@pytest.mark.parametrize("linear", [None, [[1.0, 0.5, 0.0], [0.0, 2.0, -1.0]]], ids=["plain", "mapped"])
@pytest.mark.parametrize("n_rows", [1, 5, 6, 9, 24])
def test_a_block_of_several_steps_and_a_part_of_one(
    n_rows: int, linear: Any, layout: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Steps of five rows: every row is summed, and has a norm, whatever is left for the last step."""
    monkeypatch.setattr(kernel, "_CELLS_PER_STEP", 15)
    monkeypatch.setattr(kernel, "_MIN_ROWS_PER_STEP", 1)
    rows = np.random.default_rng(n_rows).standard_normal((n_rows, 3))
    options: dict[str, Any] = {"bits": 10, "radius": 1.0, "missing": "drop", "linear": linear}
    rows[n_rows // 2, 1] = np.nan
    encoded = [reference_lattice_row(row, **options)[0] for row in rows.tolist()]
    total, gram = reference_sums(encoded, 3 if linear is None else 2)
    found = exact_moments([np.array(rows, order=layout)], 3, threads=1, **options)
    assert (found.count, found.dropped) == (n_rows, 1)
    assert (found.sum.tolist(), found.gram.tolist()) == (total, gram)
    one_by_one = np.concatenate([transformed_norms(rows[place : place + 1], **options) for place in range(n_rows)])
    assert np.array_equal(transformed_norms(np.array(rows, order=layout), **options), one_by_one)
    assert (one_by_one > 0).sum() == n_rows - 1


def test_rows_at_the_radius_are_kept_where_the_lattice_allows() -> None:
    assert lattice_rows(np.eye(3)).tolist() == (np.eye(3) * 2**20).tolist()
    assert lattice_rows(np.full((1, 4), 0.5)).tolist() == [[2**19] * 4]
    assert lattice_rows(np.array([[1.7e308, 0.0], [-1e-310, 0.0]]), bits=4).tolist() == [[15, 0], [0, 0]]


@pytest.mark.parametrize("n_features", [3, 40])
def test_fallback_shrinks_any_integer_rows(n_features: int) -> None:
    """The last check holds whatever came before it, in either layout, and leaves rows inside alone."""
    rng = np.random.default_rng(n_features)
    small = Lattice(n_features, bits=8, radius=1.0)
    for order in ("C", "F"):
        before = np.array(np.rint(rng.standard_normal((200, n_features)) * 2.0 ** rng.integers(0, 12, (200, 1))))
        rows = before.copy(order=order)  # type: ignore[call-overload]
        norms = squared_norms(rows)
        was_inside = norms <= small.squared_limit
        assert 20 < was_inside.sum() < 180
        _shrink_into_ball(rows, norms, small)
        assert np.array_equal(rows[was_inside], before[was_inside])
        assert np.array_equal(np.sum(rows.astype(np.int64) ** 2, axis=1), norms)
        assert np.all(norms <= small.squared_limit)
        assert np.all(np.abs(rows) <= np.abs(before))
        lost = np.sqrt(squared_norms(before[~was_inside]).clip(max=small.squared_limit)) - np.sqrt(norms[~was_inside])
        assert np.all(lost <= math.sqrt(n_features))  # rounding toward zero loses less than 1 a coordinate


def test_rows_without_an_exact_norm_are_never_let_through() -> None:
    for norm in (math.nan, math.inf, 2.0**54):
        with pytest.raises(AssertionError, match="exact norm"):
            _shrink_into_ball(np.ones((1, 3)), np.array([norm]), Lattice(3, bits=8, radius=1.0))


def test_fallback_catches_a_clip_that_aims_too_far(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted fault: clipping to the radius itself lets rounding exceed it; the recheck must catch that."""
    rows = np.random.default_rng(4).standard_normal((500, 10))
    monkeypatch.setattr(Lattice, "clip_target", property(lambda self: 2.0**self.bits))
    caught = lattice_rows(rows, bits=10)
    assert np.all(np.sum(caught.astype(np.int64) ** 2, axis=1) <= 4**10)
    monkeypatch.setattr(rounding, "_shrink_into_ball", lambda *_: None)
    missed = lattice_rows(rows, bits=10)
    assert np.any(np.sum(missed.astype(np.int64) ** 2, axis=1) > 4**10)


@pytest.mark.parametrize("n_features", [1, 32, 100])
def test_squared_norms_around_the_last_exact_integer(n_features: int) -> None:
    """Exact below 2^53; not below 2^53 where the exact sum is not, in every layout, infinities included."""
    rng = np.random.default_rng(n_features)
    rows = np.rint(rng.standard_normal((300, n_features)) * 2.0**26.5 / math.sqrt(n_features))
    rows[:2, 0] = [2.0**600, math.inf]
    exact = [math.inf if math.inf in row else sum(int(entry) ** 2 for entry in row) for row in rows.tolist()]
    assert any(truth < 2**53 for truth in exact)
    assert any(2**53 <= truth < 2**60 for truth in exact)
    with np.errstate(over="ignore"):
        for layout in (rows, np.asfortranarray(rows), rows[::-1][::-1]):
            for value, truth in zip(squared_norms(layout).tolist(), exact, strict=True):
                if truth < 2**53:
                    assert value == truth
                else:
                    assert not value < EXACT


@pytest.mark.parametrize("dtype", [np.float32, np.float16, np.int64, np.int8, np.uint64, np.bool_])
def test_other_types_are_converted_exactly(dtype: type[np.generic]) -> None:
    rng = np.random.default_rng(7)
    rows = (rng.standard_normal((50, 6)) * 3).clip(0 if dtype is np.uint64 else -9, 9).astype(dtype)
    for center in (None, np.linspace(-1, 1, 6)):
        for layout in (rows, np.asfortranarray(rows)):
            found = lattice_rows(layout, radius=5.0, center=center)
            assert np.array_equal(found, lattice_rows(rows.astype(np.float64), radius=5.0, center=center))


def test_transformed_norms() -> None:
    rng = np.random.default_rng(8)
    rows = rng.standard_normal((60, 5)) * 10.0 ** rng.uniform(-7, 290, (60, 1))
    rows[0], rows[1, 2] = 0.0, np.nan
    matrix = rng.standard_normal((3, 5))
    filled = np.nan_to_num(rows)
    for options, image in (({}, filled), ({"linear": matrix}, filled @ matrix.T)):
        norms = transformed_norms(rows, radius=2.0, missing="center", **options)
        peaks = np.abs(image).max(axis=1)
        truth = peaks * np.linalg.norm(image / np.where(peaks == 0, 1, peaks)[:, None], axis=1)
        assert np.all(np.abs(norms - truth) <= 2.0 * math.sqrt(5) * 2.0**-20 * np.maximum(1.0, truth))
        for same in layouts(rows).values():
            again = transformed_norms(same, radius=2.0, missing="center", **options)
            assert np.array_equal(again, norms)
        alone = [transformed_norms(rows[i : i + 1], radius=2.0, missing="center", **options)[0] for i in range(60)]
        assert np.array_equal(alone, norms)
    assert transformed_norms(rows[:2], missing="drop").tolist() == [0.0, 0.0]
    assert transformed_norms(rows[:0]).shape == (0,)


def test_input_is_not_modified() -> None:
    rows = np.random.default_rng(9).standard_normal((20, 3)) * 2
    rows[3, 1] = np.inf
    before = rows.copy()
    lattice_rows(rows, missing="center", center=np.ones(3), linear=np.eye(3))
    lattice_rows(rows, missing="drop")
    assert np.array_equal(rows, before)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"bits": 25}, Said("with fewer, rounding could change a row by more than half", n_features=3)),
        ({"bits": 0}, Said("with fewer, rounding could change a row by more than half", n_features=3)),
        ({"radius": 0.0}, Said("radius must lie in [")),
        ({"radius": math.nan}, Said("radius must lie in [")),
        ({"radius": 1e200}, Said("radius must lie in [")),
        ({"missing": "ignore"}, Said(": use '", parameter="missing", value="ignore")),
        ({"center": np.zeros(2)}, Said("center must have shape", shape="(2,)")),
        ({"center": [0.0, math.inf, 0.0]}, Said("center must be finite and at most")),
        ({"center": [0.0, math.nan, 0.0]}, Said("center must be finite and at most")),
        ({"center": [0.0, np.nextafter(-(2.0**900), -math.inf), 0.0]}, Said("center must be finite and at most")),
        ({"linear": np.eye(2)}, Said("linear must have shape (k", shape="(2, 2)")),
        ({"linear": np.ones(3)}, Said("the matrix must be two-dimensional and not empty, got shape", shape="(3,)")),
        ({"linear": np.full((3, 3), np.nan)}, Said("the matrix must have finite entries of magnitude at most")),
        ({"linear": np.full((3, 3), 1e200)}, Said("the matrix must have finite entries of magnitude at most")),
    ],
)
def test_arguments_are_refused(options: dict[str, Any], said: Said) -> None:
    with refused(said):
        lattice_rows(np.zeros((1, 3)), **options)


def test_bits_are_limited_by_the_number_of_features() -> None:
    assert Lattice(2000, 21, 1.0).bits == 21
    with refused("with fewer, rounding could change a row by more than half"):
        Lattice(2000, 22, 1.0)
    with refused("with fewer, rounding could change a row by more than half"):
        Lattice(2000, 5, 1.0)
    with refused("with fewer, rounding could change a row by more than half"):
        Lattice(8193, 20, 1.0)
    for n_features in (1, 2, 3, 50, 2000, 8192):
        dimension_bits = (n_features - 1).bit_length()
        for bits in range(max(1, (dimension_bits + 1) // 2), min(24, (53 - dimension_bits) // 2) + 1):
            fine = Lattice(n_features, bits, 1.0)
            assert n_features * 4**fine.peak_bits <= 2**53
            assert fine.peak_bits >= bits
            assert fine.rows_per_product * 4**bits <= 2**53
            assert fine.clip_target > 0


def test_reduced_precision_products_are_detected() -> None:
    """Planted fault: a library that multiplies in single precision, or that loses one unit."""
    assert summary._products_are_exact()
    assert not summary._products_are_exact(
        lambda a, b: (a.astype(np.float32) @ b.astype(np.float32)).astype(np.float64)
    )

    def off_by_one(a: FloatArray, b: FloatArray) -> FloatArray:
        product: FloatArray = a @ b
        product[-1, 0] += 1.0
        return product

    assert not summary._products_are_exact(off_by_one)


def test_defaults_are_20_bits_and_the_unit_ball() -> None:
    rows = np.random.default_rng(14).standard_normal((40, 3)) / 3.0
    assert exact_moments([rows], 3) == exact_moments([rows], 3, bits=20, radius=1.0)
    assert exact_moments([rows / 10.0, rows / 10.0], 3).clipped == 0
    summary = MomentSummary(3)
    assert (summary.bits, summary.radius, summary.missing, summary.keep_dropped) == (20, 1.0, "error", False)
    np.testing.assert_array_equal(transformed_norms(rows), transformed_norms(rows, bits=20, radius=1.0))
    with refused("a cell is NaN or infinite and missing='error': clean the"):
        transformed_norms(np.full((1, 3), math.nan))


def test_a_dropped_row_is_counted_by_those_who_ask_for_it() -> None:
    rows = np.array([[math.nan, 0.0], [0.5, 0.5]])
    assert (exact_moments([rows], 2, missing="drop").count, exact_moments([rows], 2, missing="drop").dropped) == (2, 1)
    for keep, count in ((False, 1), (True, 2)):
        summary = MomentSummary(2, missing="drop", keep_dropped=keep)
        running = summary.start()
        summary.add(running, rows)
        found = summary.finish(running)
        assert (found.count, found.dropped) == (count, count - 1)
        assert summary.merge(found, found).count == 2 * count


def test_norms_of_images_at_the_ends_of_what_is_accepted() -> None:
    assert transformed_norms(np.array([[2.0**1000]]), linear=[[2.0**-400]], radius=2.0**332).tolist() == [2.0**600]
    for row, linear, radius in ((2.0**1000, 2.0**-400, 2.0**332), (-(2.0**1000), -(2.0**390), 2.0**-460)):
        assert exact_moments([np.array([[row], [0.0]])], 1, linear=[[linear]], radius=radius).clipped == 1


def rows_whose_squares_round_to_2_to_the_53(how_many: int) -> FloatArray:
    """Rows of four integers whose squares add up to 2^53 + 1, which floating point takes for 2^53."""
    rng, found = np.random.default_rng(15), list[list[int]]()
    while len(found) < how_many:
        first = int(rng.integers(2**25, 2**26))
        second = math.isqrt(2**53 + 1 - first**2)
        rest = 2**53 + 1 - first**2 - second**2
        third = next((c for c in range(math.isqrt(rest) + 1) if math.isqrt(rest - c * c) ** 2 == rest - c * c), None)
        if third is not None:
            found.append([first, second, third, math.isqrt(rest - third**2)])
    return np.array(found, dtype=np.float64)
