"""What may be asked of a table's rows, what is told while they are read, and that nothing shows them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dpmoments as dpm
from dpmoments.progress import Watch
from dpmoments.rows.kernel import transformed_norms
from dpmoments.rows.rows import Rows
from dpmoments.schema import Schema
from table_forms import EXPECTED, FILES, FORMS, N_ROWS, SCHEMA, TABLE, csv_text, parquet, reference_rows, write


@pytest.fixture(params=[*FORMS, *FILES])
def form(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    name = request.param
    return FORMS[name]() if name in FORMS else FILES[name](tmp_path)


def test_a_histogram_counts_every_row(form: Any) -> None:
    edges = [0.2, 0.5, 0.9]
    rows, dropped = reference_rows(TABLE, SCHEMA)
    norms = np.linalg.norm(rows, axis=1)
    kept = norms[~dropped]
    for relation in ("add_remove", "replace_one"):
        found = Rows.of(form, SCHEMA, neighbors=relation).histogram(lambda block: np.linalg.norm(block, axis=1), edges)
        expected = np.histogram(kept, [0.0, *edges, 9.0])[0]
        assert [found.below, *found.counts, found.above] == expected.tolist()
        assert found.total == len(kept)


def test_nan_and_edges_of_a_histogram() -> None:
    rows = Rows.of(np.array([[0.0], [0.25], [0.5], [1.0]]), Schema.unit_ball(1))
    found = rows.histogram(lambda block: np.where(block[:, 0] == 1.0, np.nan, block[:, 0]), [0.25, 0.5, 0.75])
    assert (found.below, found.counts.tolist(), found.above) == (1, [1, 1], 1)
    for edges in ([0.5], [0.5, 0.5], [1.0, 0.0], [0.0, np.nan]):
        with pytest.raises(ValueError, match="increasing"):
            rows.histogram(lambda block: block[:, 0], edges)
    with pytest.raises(ValueError, match="one value a row"):
        rows.histogram(lambda block: block, [0.0, 1.0])


@pytest.mark.parametrize("d", [2, 17, 100])
def test_a_statistic_that_depends_on_the_rows_around_it_is_refused(d: int) -> None:
    rng = np.random.default_rng(d)
    rows = Rows.of(rng.standard_normal((50, d)) / d, Schema.unit_ball(d))
    vector = rng.standard_normal(d)
    refused: list[Callable[[np.ndarray], np.ndarray]] = [
        lambda block: block[:, 0] - block[:, 0].mean(),
        lambda block: np.arange(float(len(block))),
        lambda block: np.sort(block[:, 0]),
    ]
    if d > 2:
        refused.append(lambda block: block @ vector)
    for statistic in refused:
        with pytest.raises(ValueError, match="depends on the rows around it"):
            rows.histogram(statistic, [0.0, 1.0])
    for statistic in (
        lambda block: np.abs(block).max(axis=1),
        lambda block: transformed_norms(block, linear=np.eye(d)),
    ):
        assert rows.histogram(statistic, [0.0, 0.1]).total == 50


def told(data: Any, schema: Schema, passes: int = 1) -> list[float | None]:
    seen: list[float | None] = []
    for _ in range(passes):
        dpm.release(data, schema, epsilon=1.0, progress=seen.append, insecure_seed=0)
    return seen


def test_progress_tells_the_same_of_every_table(tmp_path: Path) -> None:
    ball = Schema.unit_ball(2)
    every_hundredth = [step / 100 for step in range(1, 101)]
    for n_rows in (0, 1, 2, 99, 70_000, 2_500_000):
        assert told(np.zeros((n_rows, 2)), ball) == every_hundredth
    assert told(parquet(tmp_path / "t.parquet", row_group_size=9), SCHEMA) == every_hundredth
    assert told(parquet(tmp_path / "empty.parquet", table=TABLE.slice(0, 0)), SCHEMA) == every_hundredth
    unknown = told(write(tmp_path / "t.csv", csv_text(TABLE)), SCHEMA)
    assert unknown == [None]


def test_progress_of_several_passes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[float | None] = []
    watch = Watch(seen.append)
    watch.expect(10)
    for block in (0, 4, 6, 0, 10, 3):
        watch(block)
    assert seen == [step / 100 for step in (*range(1, 101), *range(1, 101), *range(1, 31))]
    clock = iter([0.0, 0.1, 0.3, 0.35, 9.0])
    monkeypatch.setattr("dpmoments.progress.time.monotonic", lambda: next(clock))
    seen.clear()
    watch.expect(None)
    for _ in range(5):
        watch(1)
    assert seen == [None, None, None]  # at 0, 0.3 and 9 seconds


def test_a_progress_bar_says_nothing_of_the_table(capfd: pytest.CaptureFixture[str]) -> None:
    dpm.release(np.zeros((4711, 2)), Schema.unit_ball(2), epsilon=1.0, progress=True)
    out, err = capfd.readouterr()
    assert out == ""
    assert "4711" not in err
    assert "4,711" not in err


def nested_reprs(value: Any) -> Iterator[str]:
    yield repr(value)
    yield str(value)
    for name in ("source", "schema"):
        if hasattr(value, name):
            yield from nested_reprs(getattr(value, name))


def test_no_repr_shows_the_table(form: Any) -> None:
    rows = Rows.of(form, SCHEMA, neighbors="replace_one")
    histogram = rows.histogram(lambda block: block[:, 0], [0.0, 0.1])
    shown = " ".join(map(repr, (rows, rows.moments(), histogram)))
    for private in (N_ROWS, EXPECTED.count, N_ROWS - EXPECTED.count, histogram.below):
        assert str(private) not in shown
    for text in nested_reprs(rows):
        assert "secret" not in text
        assert "100.0" not in text.replace("upper=100.0", "")
        assert str(TABLE["age"][1]) not in text
    array_rows = Rows.of(np.full((37, 2), 0.4711), Schema.unit_ball(2))
    assert not any("4711" in text or "37" in text for text in nested_reprs(array_rows))
