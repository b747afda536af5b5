"""Exact sums and squares of single features and counts of rows by length, for rough scales.

A value is scaled about a center and rounded to a lattice, element by element: the result depends on nothing else. Sums
and squares clip it to [−1, 1] first; a length is the root of a sum of squares. All are integers, or made of them, so that no
order changes a bit. A table of numbers takes these steps in machine code where that is worth loading, with the same bits.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar, Generic

import numpy as np
import numpy.typing as npt

from dpmoments.base.arrays import FloatArray, IntegerArray
from dpmoments.rows.compiled import CellRules, CompiledFeatures, compiled_features
from dpmoments.rows.histogram import Histogram
from dpmoments.rows.kernel import NumberBlock, transformed_norms
from dpmoments.rows.level_sums import CodedBlock
from dpmoments.rows.rounding import RowMap
from dpmoments.rows.summary import Adapted, Missing, PrivateSums, Result, Summary, plain_rows

_ROWS_BEFORE_COMPILED = 100_000
"""Rows of a block from which machine code is worth loading."""


@dataclass(frozen=True, eq=False, repr=False)
class MarginalSums(PrivateSums):
    """Exact count, Σz and Σz² of lattice values |z| ≤ 2^bits, as Python integers: private data."""

    count: int
    sums: IntegerArray  # (k,), Σz
    squares: IntegerArray  # (k,), Σz²


@dataclass(eq=False)
class RunningFeatures:
    """Running counts or sums of one thread, and its machine code once it is loaded."""

    counts: IntegerArray
    rows: int = 0
    compiled: CompiledFeatures | None = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class _OfFeatures(Summary[RunningFeatures, Result], Generic[Result]):
    """Summary of features (x − center) · scale, both of these public or from noisy answers."""

    features: tuple[int, ...]
    center: FloatArray
    scale: FloatArray
    missing: Missing = field(default="error", kw_only=True)

    takes_levels: ClassVar[bool] = True

    def chosen(self, block: Any) -> FloatArray:
        """Return the features of the kept rows of a batch, C-contiguous."""
        if isinstance(block, CodedBlock):
            rows = block.kept().numbers[:, np.searchsorted(block.layout.numbers, self.features)]
        else:
            rows = plain_rows(block, self.missing)[:, list(self.features)]
        return np.ascontiguousarray(rows)

    def of_numbers(self, rules: CellRules) -> OfNumbersAlone | None:
        """Return the same summary of batches of numbers, if these are all features."""
        every = self.features == tuple(range(len(rules.drops)))
        return OfNumbersAlone(self, rules) if every and self.missing == "drop" else None

    @abstractmethod
    def add_numbers(self, running: RunningFeatures, compiled: CompiledFeatures, numbers: npt.NDArray[Any]) -> bool:
        """Add rows of numbers before rules, in machine code; return False if a rule refuses a cell."""


@dataclass(frozen=True)
class OfNumbersAlone(Adapted[RunningFeatures, Any]):
    """Summary of batches of numbers before encoding, in machine code if that is worth loading."""

    summary: _OfFeatures[Any]
    rules: CellRules

    def add(self, running: RunningFeatures, block: Any) -> None:
        assert isinstance(block, NumberBlock)
        if running.compiled is None and block.n_rows + running.rows >= _ROWS_BEFORE_COMPILED:
            running.compiled = compiled_features(self.rules)
        if running.compiled is None:
            running.rows += block.n_rows
            self.summary.add(running, block.encoded())
        elif not self.summary.add_numbers(running, running.compiled, block.numbers()):
            block.encoded()  # raises what the column's rule says
            raise AssertionError("a cell was refused that its column admits: a defect, please report it")


@dataclass(frozen=True, eq=False)
class MarginalSummary(_OfFeatures[MarginalSums]):
    """Sums and sums of squares, each value clipped to ±1 and rounded to a multiple of 2^−bits."""

    bits: int

    @property
    def is_weighted(self) -> bool:
        return True

    @property
    def _step(self) -> int:
        """Rows whose squares add up to at most 2^53."""
        return 1 << (53 - 2 * self.bits)

    def start(self) -> RunningFeatures:
        return RunningFeatures(np.zeros((3, len(self.features)), dtype=object))  # rows 0 to 2: count, Σz and Σz²

    def add(self, running: RunningFeatures, block: Any) -> None:
        rows, one, step = self.chosen(block), 2.0**self.bits, self._step
        for start in range(0, len(rows), step):
            values = (rows[start : start + step] - self.center) * (self.scale * one)
            np.rint(np.clip(values, -one, one, out=values), out=values)
            sums = np.stack([values.sum(axis=0), np.einsum("ij,ij->j", values, values)])
            running.counts[0] += len(values)
            running.counts[1:] += sums.astype(np.int64).astype(object)

    def add_numbers(self, running: RunningFeatures, compiled: CompiledFeatures, numbers: npt.NDArray[Any]) -> bool:
        one = 2.0**self.bits
        for start in range(0, len(numbers), self._step):
            kept, sums = compiled.sums(numbers[start : start + self._step], self.center, self.scale * one, one)
            if kept < 0:
                return False
            running.counts[0] += kept
            running.counts[1:] += sums.astype(np.int64).astype(object)
        return True

    def finish(self, running: RunningFeatures) -> MarginalSums:
        counts = running.counts
        return MarginalSums(int(counts[0, 0]), counts[1].copy(), counts[2].copy())


@dataclass(frozen=True, eq=False)
class LengthSummary(_OfFeatures[Histogram]):
    """Counts of rows by ‖(x − center) · scale‖ between edges, resolved to 2^−20 of the first."""

    edges: FloatArray

    @cached_property
    def _row_map(self) -> RowMap:
        return RowMap.of(
            len(self.features),
            bits=20,
            radius=float(self.edges[0]),
            center=self.center,
            linear=None,
            scale=self.scale,
            missing="center",
        )

    def start(self) -> RunningFeatures:
        return RunningFeatures(np.zeros(len(self.edges) + 1, dtype=np.int64))

    def add(self, running: RunningFeatures, block: Any) -> None:
        rows = self.chosen(block)
        lengths = transformed_norms(rows, radius=float(self.edges[0]), center=self.center, scale=self.scale)
        cells = np.searchsorted(self.edges, lengths, side="right")
        running.counts += np.bincount(cells, minlength=len(running.counts))

    def add_numbers(self, running: RunningFeatures, compiled: CompiledFeatures, numbers: npt.NDArray[Any]) -> bool:
        units, scale = self._row_map.units, self._row_map.lattice.scale
        return compiled.count_lengths(numbers, self.center, units, scale, self.edges, running.counts) >= 0

    def finish(self, running: RunningFeatures) -> Histogram:
        counts = running.counts
        return Histogram(counts[1:-1].copy(), int(counts[0]), int(counts[-1]))
