"""Summaries: whatever the partitions, their order and how they are merged, the same integers; and nothing that cannot travel."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, is_dataclass
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from contracts.cases import CASES, Case, run_plan
from dpmoments.papers.mechanisms.log_scale_histogram import CoordinateValue
from dpmoments.papers.mechanisms.mapped_rows import TransformedNorm
from dpmoments.privacy.sampling import insecure_generator
from dpmoments.rows import kernel
from dpmoments.rows.histogram import Histogram, HistogramSummary, RowCount
from dpmoments.rows.kernel import MomentSummary
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.rows import Rows
from dpmoments.rows.summary import Summary, summarize_in_threads
from support.examples import examples
from support.said import refused

Running = TypeVar("Running")
Result = TypeVar("Result")

D = 3
LINEAR = np.array([[1.0, 0.5, 0.0], [0.0, 2.0, -1.0]])
SUMMARIES: dict[str, Callable[[bool], Summary[Any, Any]]] = {
    "moments": lambda keep: MomentSummary(D, 12, 0.8, missing="drop", keep_dropped=keep),
    "moments about a center": lambda keep: MomentSummary(
        D, 20, 1.5, np.full(D, 0.25), LINEAR, missing="drop", keep_dropped=keep
    ),
    "moments, missing at the center": lambda keep: MomentSummary(D, missing="center", keep_dropped=keep),
    "norms": lambda _: HistogramSummary(
        TransformedNorm(np.zeros(D), LINEAR, 1.0), np.array([0.1, 0.5, 1.0, 2.0]), missing="drop"
    ),
    "coordinate": lambda _: HistogramSummary(CoordinateValue(1), np.linspace(-1, 1, 9), missing="drop"),
    "count": lambda keep: RowCount(missing="drop", keep_dropped=keep),
}
every_summary = pytest.mark.parametrize("make", SUMMARIES.values(), ids=SUMMARIES)


@pytest.fixture(scope="module", autouse=True)
def short_steps() -> Iterator[None]:
    """Five rows a step of the moment kernel, so that small blocks take several steps and a part of one."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(kernel, "_CELLS_PER_STEP", 5 * D)
        patched.setattr(kernel, "_MIN_ROWS_PER_STEP", 1)
        yield


def plain(result: Any) -> Any:
    if isinstance(result, ExactMoments):
        return (result.count, result.dropped, result.clipped, result.limbs.tobytes())
    return (result.counts.tolist(), result.below, result.above) if isinstance(result, Histogram) else result


def of_partition(summary: Summary[Any, Any], blocks: list[np.ndarray]) -> Any:
    running = summary.start()
    for block in blocks:
        summary.add(running, block)
    return summary.finish(running)


rows_of_a_table = st.lists(
    st.lists(st.floats(-3, 3) | st.sampled_from([np.nan, np.inf, 0.0, 1e200]), min_size=D, max_size=D), max_size=12
)


@pytest.mark.long(sets=3)
@every_summary
@settings(deadline=None, max_examples=examples(60))
@given(rows=rows_of_a_table, keep=st.booleans(), data=st.data())
def test_any_partitioning_in_any_order_gives_the_same_bits(
    make: Callable[[bool], Summary[Any, Any]], rows: list[list[float]], keep: bool, data: st.DataObject
) -> None:
    summary, table = make(keep), np.array(rows, dtype=np.float64).reshape(-1, D)
    whole = plain(of_partition(summary, [table]))
    order = data.draw(st.permutations(range(len(table))))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(table)), max_size=4)))
    blocks = np.split(table[order], cuts)
    split = data.draw(st.integers(0, len(blocks)))
    parts = [of_partition(summary, [block]) for block in blocks[:split]] + [of_partition(summary, blocks[split:])]
    parts = data.draw(st.permutations(parts))
    assert plain(reduce(summary.merge, parts)) == whole
    folded_back = reduce(lambda last, part: summary.merge(part, last), reversed(parts))
    assert plain(folded_back) == whole
    nothing = summary.finish(summary.start())
    assert plain(summary.merge(nothing, parts[0])) == plain(parts[0]) == plain(summary.merge(parts[0], nothing))


def test_an_error_in_a_thread_is_raised_and_stops_the_pass() -> None:
    read = []

    def parts() -> Any:
        for index in range(10_000):
            read.append(index)
            yield np.full((1, D), np.nan)

    with refused("a cell is NaN or infinite and missing='error': clean the"):
        summarize_in_threads(MomentSummary(D), parts(), lambda part: part, 2)
    assert len(read) < 100
    with refused("must be", parameter="threads"):
        summarize_in_threads(RowCount(), [], lambda part: part, 0)


@dataclass(frozen=True, eq=False, repr=False)
class TravellingRows(Rows):
    """Rows whose every summary and result goes over a wire, as on an engine of several machines."""

    sent: list[Summary[Any, Any]] = field(default_factory=list)

    def summarize(self, summary: Summary[Running, Result]) -> Result:
        self.sent.append(summary)
        arrived = pickle.loads(pickle.dumps(summary))
        result = super().summarize(arrived)
        returned: Result = pickle.loads(pickle.dumps(result))
        return returned


def travelling(rows: Rows) -> TravellingRows:
    return TravellingRows(rows.schema, rows.neighbors, rows.source)


@pytest.mark.long(sets=7)
@pytest.mark.parametrize("case", CASES, ids=[case.id for case in CASES])
def test_what_mechanisms_ask_travels(case: Case) -> None:
    rows = travelling(case.rows())
    found = run_plan(case.plan(), rows, insecure_generator(5))
    assert found.gram.tobytes() == run_plan(case.plan(), case.rows(), insecure_generator(5)).gram.tobytes()
    for summary in rows.sent:
        assert is_dataclass(summary)
        statistic = getattr(summary, "statistic", None)
        assert statistic is None or is_dataclass(statistic)
