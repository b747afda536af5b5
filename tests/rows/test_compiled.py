"""Sums in machine code: bit for bit those of NumPy's path, whatever the rows hold."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from dpmoments.rows import compiled, kernel
from dpmoments.rows.kernel import MomentSummary, exact_moments
from dpmoments.rows.rounding import Lattice, RowMap
from support.said import refused

pytestmark = pytest.mark.long


@pytest.fixture
def from_the_first_row(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernel, "_ROWS_BEFORE_COMPILED", 0)


def sums(rows: NDArray[Any], rows_before: int, monkeypatch: pytest.MonkeyPatch, **options: Any) -> Any:
    monkeypatch.setattr(kernel, "_ROWS_BEFORE_COMPILED", rows_before)
    monkeypatch.setattr(kernel, "is_loaded", lambda: False)
    return exact_moments([rows], rows.shape[1], **options)


@pytest.mark.long(sets=6)
@pytest.mark.parametrize("n_features", [1, 2, 3, 17, 32])
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


@pytest.mark.parametrize("n_features", [3, 40])
def test_singles_scaled_about_a_center_have_the_same_bits(n_features: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(1)
    rows = rng.standard_cauchy((3000, n_features)) * 0.1
    rows[0], rows[1, 0] = 1e300, np.nan
    center, scale = rng.uniform(-0.1, 0.1, n_features), rng.uniform(0.5, 9.0, n_features)
    summary = MomentSummary(n_features, 20, center=center, scale=scale, limit=1 << 18, missing="drop")
    made = []
    for loaded in (False, True):
        monkeypatch.setattr(kernel, "is_loaded", lambda loaded=loaded: loaded)
        running = summary.start()
        summary.add(running, rows)
        moments = summary.finish(running)
        made.append((moments.count, moments.sum.tolist(), moments.gram.tolist()))
    assert made[0] == made[1]
    limit = int(np.trace(np.array(made[0][2], dtype=object)))
    assert limit <= made[0][0] * 4**18, "a row is beyond its ball"
