"""Exact sums and sums of squares of single features: what rough scales are made of.

A value is scaled about a center, clipped to [−1, 1] and rounded to a multiple of 2^−bits, element by element: what becomes of
it depends on nothing else. Its square is exact. Sums of such integers depend on no order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from dpmoments.foundation.arrays import FloatArray
from dpmoments.rows.level_sums import CodedBlock
from dpmoments.rows.summary import Missing, Summary, plain_rows

IntegerArray = npt.NDArray[Any]


@dataclass(frozen=True, eq=False, repr=False)
class MarginalSums:
    """Exact count, Σz and Σz² of lattice values |z| ≤ 2^bits, as Python integers. Private data: ``repr`` shows none."""

    count: int
    sums: IntegerArray  # (k,), Σz
    squares: IntegerArray  # (k,), Σz²

    def merge(self, other: MarginalSums) -> MarginalSums:
        """Return the sums over both sets of rows."""
        return MarginalSums(self.count + other.count, self.sums + other.sums, self.squares + other.squares)

    def __repr__(self) -> str:
        return f"MarginalSums({len(self.sums)} features, values=<private>)"


@dataclass(frozen=True, eq=False)
class MarginalSummary(Summary[list[MarginalSums], MarginalSums]):
    """Sums of some features (x − center) · scale, clipped to ±1; center and scale are public, or from noisy answers."""

    features: tuple[int, ...]
    center: FloatArray
    scale: FloatArray
    bits: int
    missing: Missing = "error"

    @property
    def takes_levels(self) -> bool:
        return True

    def start(self) -> list[MarginalSums]:
        none = np.zeros(len(self.features), dtype=object)
        return [MarginalSums(0, none, none)]

    def add(self, running: list[MarginalSums], block: Any) -> None:
        if isinstance(block, CodedBlock):
            rows = block.kept().numbers[:, np.searchsorted(block.layout.numbers, self.features)]
        else:
            rows = plain_rows(block, self.missing)[:, list(self.features)]
        one, step = 2.0**self.bits, 1 << (53 - 2 * self.bits)  # rows whose squares add up to at most 2^53
        for start in range(0, len(rows), step):
            values = (rows[start : start + step] - self.center) * (self.scale * one)
            np.rint(np.clip(values, -one, one, out=values), out=values)
            sums, squares = values.sum(axis=0), np.einsum("ij,ij->j", values, values)
            whole = (part.astype(np.int64).astype(object) for part in (sums, squares))
            running[0] = running[0].merge(MarginalSums(len(values), *whole))

    def finish(self, running: list[MarginalSums]) -> MarginalSums:
        return running[0]

    def merge(self, first: MarginalSums, second: MarginalSums) -> MarginalSums:
        return first.merge(second)
