"""Numbers encoded in machine code: bit for bit the integer sums of NumPy's encoding, whatever the cells hold."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dpmoments as dpm
from dpmoments.rows import compiled, kernel
from dpmoments.rows.kernel import MomentSummary
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.rows import Rows
from dpmoments.schema.schema import Schema
from support.examples import examples
from support.said import refused


def moments(data: Any, schema: Schema, *, in_machine_code: bool, **options: Any) -> ExactMoments:
    """Exact moments of a table, encoded on one of the two paths, which is checked to have been taken."""
    used: list[bool] = []
    encode = compiled.CompiledSums.add

    def add(self: Any, *arguments: Any) -> Any:
        used.append(True)
        return encode(self, *arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "_ROWS_BEFORE_COMPILED", 0)
        patch.setattr(compiled.CompiledSums, "add", add)
        if not in_machine_code:
            patch.setattr(kernel, "can_be_compiled", lambda *_, **__: False)
        rows = Rows.of(data, schema, threads=1)
        found = rows.source.summarize(
            MomentSummary(schema.n_features, missing="drop", keep_dropped=True, **options), threads=1
        )
    assert bool(used) == (in_machine_code and found.count > 0)
    return found


def agree(data: Any, schema: Schema, **options: Any) -> bool:
    first, second = (moments(data, schema, in_machine_code=path, **options) for path in (True, False))
    return first == second


SPECIAL = [
    *(0.0, -0.0, 5e-324, -5e-324, 2.2e-308, 1e-300, 1e300, -1e300, 1.7e308, 2.0**53 + 2, 2.0**63),
    *(np.nan, np.inf, -np.inf),
]
cells = st.one_of(st.floats(-3, 3), st.floats(), st.sampled_from(SPECIAL))


@st.composite
def columns(draw: st.DrawFn, name: str) -> Any:
    missing = draw(st.sampled_from(["drop", "fill"]))
    kind = draw(st.sampled_from(["numeric", "narrow", "odd", "boolean", "typical"]))
    rule: dict[str, Any] = {"missing": missing}
    if kind == "boolean":
        if missing == "fill":
            rule["fill"] = draw(st.booleans())
        return dpm.Boolean(name, **rule)
    lower, upper = {
        "numeric": (0.0, 1.0),
        "narrow": (1.0, 1.0 + 2.0**-40),
        "odd": (-0.7, 1e5 / 3),
        "typical": (-1.0, 1000.0),
    }[kind]
    if missing == "fill":
        rule["fill"] = draw(st.sampled_from([lower, upper, lower + (upper - lower) / 3]))
    if kind == "typical":
        rule["typical"] = (0.0, 20.0)
    return dpm.Numeric(name, lower, upper, **rule)


@pytest.mark.long
@settings(deadline=None, max_examples=examples(120))
@given(st.data())
def test_same_bits_as_numpy(data: st.DataObject) -> None:
    d = data.draw(st.integers(1, 5))
    described = [data.draw(columns(f"c{index}")) for index in range(d)]
    schema = Schema(*described)
    table = data.draw(st.lists(st.lists(cells, min_size=d, max_size=d), max_size=12))
    array = np.array(table, dtype=np.float64).reshape(-1, d)
    edges = [[*c.bounds, np.nextafter(c.bounds[0], -9e9), np.nextafter(c.bounds[1], 9e9)] for c in described]
    array = np.vstack([array, np.array(edges).T])
    center = data.draw(st.sampled_from([None, np.linspace(-0.4, 0.3, d)]))
    options = {
        "center": center,
        "bits": data.draw(st.sampled_from([6, 20])),
        "radius": data.draw(st.sampled_from([1.0, 0.3])),
    }
    frame = pa.table({f"c{j}": pa.array(array[:, j], mask=np.isnan(array[:, j])) for j in range(d)})
    found = [
        moments(form, schema, in_machine_code=path, **options)
        for form in (array, np.asfortranarray(array), np.repeat(array, 2, axis=0)[::2], frame)
        for path in (True, False)
    ]
    assert all(one == found[0] for one in found)


def table_of(dtype: Any, n_rows: int, d: int, seed: int) -> np.ndarray:
    generator = np.random.default_rng(seed)
    if np.issubdtype(dtype, np.integer):
        limits = np.iinfo(dtype)
        array = generator.integers(-5 if limits.min else 0, 120, (n_rows, d)).astype(dtype)
        array[::97] = limits.max
        array[1::97] = limits.min
        array[2::97, 0] = limits.max - 1
        return array
    array = generator.uniform(-20, 120, (n_rows, d)).astype(dtype)
    array[::97, d // 2] = np.nan
    array[1::97, 0] = np.inf
    array[2::97, -1] = -0.0
    return array


@pytest.mark.long(sets=None)
@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.float16, np.int64, np.uint64, np.int8])
@pytest.mark.parametrize("d", [3, 32, 33, 70])
def test_same_bits_in_tiles_of_every_width(dtype: Any, d: int) -> None:
    """Narrow rows (products in machine code) and wide ones (products by BLAS), over several tiles and steps."""
    array = table_of(dtype, 2_500 if d > 32 else 9_000, d, d)
    rules = [{"missing": "drop"}, {"missing": "fill", "fill": 50.0}, {}]
    plain = Schema(*(dpm.Numeric(f"c{j}", 0, 100.1, **(rules[j % 2])) for j in range(d)))
    assert agree(array, plain)
    assert agree(array, plain, center=np.linspace(-0.2, 0.2, d) / d, radius=0.2)


def test_columns_without_bounds_and_scales() -> None:
    """Rows beyond what the lattice can hold take NumPy's way, one by one."""
    generator = np.random.default_rng(4)
    array = generator.standard_normal((2_000, 3)) * generator.choice([0.1, 1.0, 1e150, 1e300], (2_000, 1))
    array[::50, 1], array[1::50, 2] = np.nan, np.inf
    for norm in (0.3, 2.0):
        coordinates = Schema(*Schema.unit_ball(3, missing="drop").columns, row_norm=norm)
        assert agree(array, coordinates)
        assert agree(array, coordinates, center=np.array([0.1, -0.2, 0.0]))
    rough = Schema(*(dpm.Numeric(f"c{j}", scale=(1, 1e6), missing="drop") for j in range(3)))
    assert agree(array, rough)


def test_marked_values_and_formats_are_read_first() -> None:
    array = table_of(np.float64, 2_000, 2, 7)
    array[::11] = -99.0
    marked = Schema(dpm.Numeric("a", 0, 100, missing="drop", missing_values=[-99]), dpm.Boolean("b", missing="drop"))
    assert agree(array, marked)
    assert moments(array, marked, in_machine_code=True).dropped > 180


@pytest.mark.parametrize("d", [2, 40])
def test_a_refused_cell_stops_the_pass_in_the_same_words(d: int) -> None:
    array = table_of(np.float64, 1_000, d, 3)
    schema = Schema(*(dpm.Numeric(f"c{j}", 0, 100) for j in range(d)))
    said = []
    for path in (True, False):
        with refused("has a cell that is missing, not finite or not readable, and", column="c0") as caught:
            moments(array, schema, in_machine_code=path)
        said.append(str(caught.value))
    assert said[0] == said[1]
    assert agree(np.nan_to_num(array, posinf=3.0), schema)


def test_machine_code_that_encodes_otherwise_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    right = compiled.CompiledSums.add

    def without_weight(self: Any, *arguments: Any) -> Any:
        encodes, (features, *others), rounding = self._constants
        features = features.copy()
        features[:, 5] = 1.0
        self._constants = encodes, (features, *others), rounding
        return right(self, *arguments)

    monkeypatch.setattr(compiled.CompiledSums, "add", without_weight)
    compiled.why_not_compiled.cache_clear()
    try:
        assert "not exact" in str(compiled.why_not_compiled())
    finally:
        monkeypatch.undo()
        compiled.why_not_compiled.cache_clear()
    assert compiled.why_not_compiled() is None
