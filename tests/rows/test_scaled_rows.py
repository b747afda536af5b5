"""Singles scaled about a center: every source, and machine code, gives the same integers."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from dpmoments.mechanisms.shape import RowCoordinates
from dpmoments.rows import kernel
from dpmoments.rows.kernel import MomentSummary
from dpmoments.rows.rows import Rows
from support.table_forms import FILES, FORMS, SCHEMA, TABLE, a_third_of_forms

BITS = 20


def answers(rows: Rows) -> list[list[int]]:
    """What `standardized` asks of a table, as Python integers."""
    singles = RowCoordinates.of(SCHEMA).singles  # type: ignore[union-attr]
    rng = np.random.default_rng(0)
    center, scale = rng.uniform(-0.1, 0.1, len(singles)), rng.uniform(0.5, 9.0, len(singles))
    moved = rows.moments_of_moved(singles, center, 1 << (BITS - 2), bits=BITS, scale=scale)
    sums = rows.marginal_sums(singles, center, scale, bits=BITS)
    lengths = rows.lengths(singles, center, scale, np.geomspace(0.2, 5.0, 9))
    counts = [moved.count, sums.count, lengths.below, lengths.above, *lengths.counts.tolist()]
    return [counts, moved.sum.tolist(), moved.gram.ravel().tolist(), sums.sums.tolist(), sums.squares.tolist()]


def slowly() -> list[list[int]]:
    """One thread, NumPy alone, rows in reverse order."""
    return answers(Rows.of(TABLE.take(np.arange(len(TABLE))[::-1]), SCHEMA, threads=1))


@pytest.mark.long(sets=3)
@pytest.mark.parametrize("name", a_third_of_forms(0))
def test_every_source_gives_the_same_integers(name: str, tmp_path: Path) -> None:
    table = FORMS[name]() if name in FORMS else FILES[name](tmp_path)
    assert answers(Rows.of(table, SCHEMA)) == slowly()


@pytest.mark.parametrize("n_features", [3, 40])
def test_machine_code_gives_the_bits_of_numpy(n_features: int, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("numba")
    rng = np.random.default_rng(1)
    rows = rng.standard_cauchy((3000, n_features)) * 0.1
    rows[0], rows[1, 0] = 1e300, np.nan
    center, scale = rng.uniform(-0.1, 0.1, n_features), rng.uniform(0.5, 9.0, n_features)
    summary = MomentSummary(n_features, BITS, center=center, scale=scale, limit=1 << 18, missing="drop")
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
