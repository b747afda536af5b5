"""Sums in machine code: bit for bit those of NumPy's path, whatever the rows hold."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from dpmoments.rows import compiled, kernel
from dpmoments.rows.kernel import exact_moments
from dpmoments.rows.rounding import Lattice, RowMap
from references.reference_lattice import reference_lattice_row, reference_sums
from support.drawn_tables import drawn_table
from support.examples import examples
from support.said import refused

pytestmark = pytest.mark.long


@pytest.fixture
def from_the_first_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_ROWS_BEFORE_COMPILED", 0)


def sums(rows: NDArray[Any], rows_before: int, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Any:
    monkeypatch.setattr(kernel, "_ROWS_BEFORE_COMPILED", rows_before)
    monkeypatch.setattr(kernel, "is_loaded", lambda: False)
    return exact_moments([rows], rows.shape[1], **options)


@pytest.mark.parametrize("n_features", [1, 2, 3, 10, 17, 31, 32])
@pytest.mark.parametrize("bits", [6, 20, 24])
@pytest.mark.parametrize("layout", ["rows", "columns", "every other row", "float32", "integers"])
def test_same_bits_as_numpy(n_features: int, bits: int, layout: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(n_features)
    rows = rng.standard_normal((3_000, n_features)) * rng.choice([1e-3, 0.3, 1.0, 1e3, 1e300], (3_000, 1))
    rows[::7] = rng.uniform(-1.0, 1.0, (429, n_features)) / np.sqrt(n_features)  # some just about the radius
    rows[::70] = 1.0 / np.sqrt(n_features)
    rows[[5, 77, 600]] = [[np.nan], [np.inf], [0.0]]
    block: NDArray[Any] = {
        "rows": rows,
        "columns": np.asfortranarray(rows),
        "every other row": np.repeat(rows, 2, axis=0)[::2],
        "float32": np.clip(rows, -1e30, 1e30).astype(np.float32),
        "integers": np.nan_to_num(np.clip(rows, -9, 9)).astype(np.int32),
    }[layout]
    bits = min(bits, (53 - (n_features - 1).bit_length()) // 2)
    for center in (None, np.linspace(-1.0, 1.0, n_features)):
        options: dict[str, Any] = {"bits": bits, "center": center, "missing": "drop", "radius": 1.5, "threads": 1}
        assert sums(block, 0, monkeypatch, **options) == sums(block, 10**9, monkeypatch, **options)


@settings(deadline=None, max_examples=examples(150))
@given(st.data())
def test_same_bits_as_python_integers(data: st.DataObject) -> None:
    table, n_features, options = drawn_table(data)
    encoded = [reference_lattice_row(row, linear=None, **options) for row in table]
    rows = np.array(table, dtype=np.float64).reshape(-1, n_features)
    with pytest.MonkeyPatch.context() as patch:
        found = sums(rows, 0, patch, **options)
    expected_sum, expected_gram = reference_sums([row for row, _ in encoded], n_features)
    assert (found.sum.tolist(), found.gram.tolist()) == (expected_sum, expected_gram)
    assert (found.count, found.dropped) == (len(table), sum(dropped for _, dropped in encoded))


@pytest.mark.usefixtures("from_the_first_row")
def test_error_rule_is_kept() -> None:
    with refused("a cell is NaN or infinite and missing='error': clean the"):
        exact_moments([np.array([[0.1, np.nan]])], 2)


def test_few_rows_do_not_load_numba() -> None:
    code = (
        "import sys, numpy as np; from dpmoments.rows.kernel import exact_moments; "
        "exact_moments([np.ones((1000, 3))], 3); sys.exit('numba' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_once_loaded_it_takes_the_first_row(monkeypatch: pytest.MonkeyPatch) -> None:
    assert compiled.why_not_compiled() is None
    assert compiled.is_loaded()
    asked: list[object] = []
    monkeypatch.setattr(kernel, "compiled_sums", lambda *arguments: asked.append(arguments))
    exact_moments([np.ones((3, 2))], 2, threads=1)
    assert len(asked) == 1
    monkeypatch.setattr(kernel, "is_loaded", lambda: False)
    exact_moments([np.ones((3, 2))], 2, threads=1)
    assert len(asked) == 1


def test_wide_rows_and_maps_are_numpys() -> None:
    wide = compiled.MAX_FEATURES + 1
    assert not compiled.can_be_compiled(RowMap(wide, Lattice(wide, 20, 1.0), "drop", None, None), numbers=False)
    mapped = RowMap.of(2, bits=20, radius=1.0, center=None, linear=np.eye(2), missing="drop")
    assert not compiled.can_be_compiled(mapped, numbers=True)


@pytest.mark.parametrize("fault", ["raises", "wrong"])
def test_machine_code_that_fails_is_not_used(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def add(*_: Any) -> Any:
        if fault == "raises":
            raise ImportError("no such library")
        return np.zeros(0, np.int64), 0, 0

    monkeypatch.setattr(compiled.CompiledSums, "add", add)
    compiled.why_not_compiled.cache_clear()
    try:
        rows = np.random.default_rng(0).standard_normal((100, 3))
        assert sums(rows, 0, monkeypatch) == sums(rows, 10**9, monkeypatch)
        assert {"raises": "ImportError", "wrong": "not exact"}[fault] in str(compiled.why_not_compiled())
    finally:
        compiled.why_not_compiled.cache_clear()
