"""Contingency table of noisy counts: margins, shares, intervals, and a test of independence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np

from dpmoments.analysis.answers import Answer, Column, confidence_level, format_level, rounded
from dpmoments.analysis.cross_table import CrossTable, counts_below, independence_test
from dpmoments.foundation.arrays import FloatArray, IntegerArray
from dpmoments.foundation.errors import InputValueError
from dpmoments.foundation.values import shown
from dpmoments.messages.message import Message
from dpmoments.messages.wording import closest
from dpmoments.noise.cells import CountNoise
from dpmoments.schema.constraints import Level


def possible_counts(noisy: FloatArray, total: int | None = None) -> IntegerArray:
    """Return the possible counts of this total nearest to noisy counts, as whole numbers.

    The least-squares projection on counts of 0 or above that sum to the total subtracts one number from all counts and sets
    what is negative to 0. The total is the public one, or else the sum of the noisy counts, which has no bias; setting each
    negative count to 0 by itself would add rows. Rounding keeps the total: the largest fractions are rounded up. A tie goes to
    the first cell.
    """
    cells = noisy.ravel()
    wanted = max(0, round(float(cells.sum()))) if total is None else total
    ordered = np.sort(cells)[::-1]
    excess = (np.cumsum(ordered) - wanted) / np.arange(1, len(cells) + 1)
    kept = max(1, int(np.count_nonzero(ordered > excess)))
    exact = np.maximum(cells - excess[kept - 1], 0.0)
    whole = np.floor(exact).astype(np.int64)
    missing = wanted - int(whole.sum())
    by_fraction = np.argsort(-(exact - whole), kind="stable")
    whole[by_fraction[: max(0, missing)]] += 1
    counts: IntegerArray = whole.reshape(noisy.shape)
    return counts


MAX_TESTED = 2_000
"""Most cells of a table whose independence is tested: it inverts a matrix of this size."""


@dataclass(frozen=True, eq=False, repr=False)
class CountTable(Answer):
    """Counts of rows in the cells of a contingency table, or of a margin of it.

    Attributes
    ----------
    by : tuple of str
        Columns of the table; one axis of every array each.
    levels : tuple of tuples
        Levels of every column.
    noisy_counts : ndarray
        Counts as released, without bias: some may be negative.
    counts : integer ndarray
        Possible counts nearest to them: whole numbers, 0 or above; those of a margin are sums of the table's.
    noise : CountNoise
        Noise distribution of an entry of ``noisy_counts``.
    public_rows : int or None
        The sum of all counts, if it is public.
    rows_per_unit : int
        Most rows of one privacy unit: factor of the sampling variance.
    level : float
        Confidence level of the intervals.
    """

    by: tuple[str, ...]
    levels: tuple[tuple[Level, ...], ...]
    noisy_counts: FloatArray
    counts: IntegerArray
    noise: CountNoise
    public_rows: int | None = None
    rows_per_unit: int = 1
    level: float = 0.95

    facts = ("by", "n_rows", "standard_error", "level", "cells: *")

    @classmethod
    def of(
        cls,
        by: tuple[str, ...],
        levels: tuple[tuple[Level, ...], ...],
        noisy_counts: FloatArray,
        noise: CountNoise,
        public_rows: int | None = None,
        rows_per_unit: int = 1,
    ) -> CountTable:
        """Return the table of noisy counts, with possible ones."""
        counts = possible_counts(noisy_counts, public_rows)
        for array in (noisy_counts, counts):
            array.setflags(write=False)
        return cls(by, levels, noisy_counts, counts, noise, public_rows, rows_per_unit)

    @property
    def n_rows(self) -> int:
        """Number of rows in the table: the sum of its counts."""
        return int(self.counts.sum())

    @property
    def shares(self) -> FloatArray:
        """Counts as shares of all rows in the table; zeros if it has none."""
        return np.asarray(self.counts / max(self.n_rows, 1))

    @property
    def standard_error(self) -> float:
        """Privacy noise SD of each count, before repair."""
        return self.noise.standard_deviation

    @property
    def total_error(self) -> float:
        """Privacy noise SD of the sum of all counts."""
        return 0.0 if self.public_rows is not None else self.noise.of_sum(self.counts.size).standard_deviation

    def conf_int(self, level: float | None = None) -> FloatArray:
        """Compute confidence intervals for the table's counts, from the exact noise distribution.

        Parameters
        ----------
        level : float, optional
            Confidence level of each interval; default: the table's. All of them hold jointly less often.

        Returns
        -------
        ndarray of shape (..., 2)
            Lower and upper ends: the noisy count and what its noise may be, within what is possible, and widened to include
            the repaired count.

        Notes
        -----
        It includes privacy noise only: it is for the counts of this table's rows, not of their population.
        """
        half = self.noise.half_width(confidence_level(self.level if level is None else level))
        highest = np.inf if self.public_rows is None else float(self.public_rows)
        lower = np.minimum(np.clip(self.noisy_counts - half, 0.0, highest), self.counts)
        upper = np.maximum(np.clip(self.noisy_counts + half, 0.0, highest), self.counts)
        return np.stack([np.ceil(lower), np.floor(upper)], axis=-1)

    def margin(self, *by: str) -> CountTable:
        """Return the counts by some of its columns, summed over the others; their noise adds up."""
        axes = tuple(self._axis(name) for name in by)
        if len(set(axes)) < len(axes):
            raise InputValueError(f"a margin names a column twice: {shown(by)}")
        others = tuple(axis for axis in range(len(self.by)) if axis not in axes)
        summed = int(np.prod([len(self.levels[axis]) for axis in others], dtype=np.int64))
        kept = tuple(axis for axis in range(len(self.by)) if axis in axes)
        order = tuple(kept.index(axis) for axis in axes)
        return replace(
            self,
            by=tuple(by),
            levels=tuple(self.levels[axis] for axis in axes),
            noisy_counts=np.asarray(self.noisy_counts.sum(axis=others)).transpose(order),
            counts=np.asarray(self.counts.sum(axis=others)).transpose(order),
            noise=self.noise.of_sum(summed),
        )

    def cross_table(self, by: str, other: str, *, level: float = 0.95) -> CrossTable:
        """Count rows by two of its columns and test their independence by chi-square."""
        level = confidence_level(level)
        if by == other:
            raise InputValueError(f"a cross table is of two columns, and both are {shown(by)}: name another")
        table = self.margin(by, other)
        if table.counts.size > MAX_TESTED:
            raise InputValueError(
                f"a cross table of {table.counts.size:,} cells cannot be tested, and {MAX_TESTED:,} are the most: "
                "name columns of fewer levels; release.table(...) has its counts"
            )
        variance = table.standard_error**2
        privacy = variance * np.eye(table.counts.size)
        statistic, degrees, p_value = independence_test(
            table.noisy_counts, privacy, float(table.rows_per_unit * table.n_rows), table.noise
        )
        return CrossTable(
            by=by,
            other=other,
            rows=_named(by, table.levels[0]),
            labels=_named(other, table.levels[1]),
            counts=table.counts,
            noise=(noise := np.full(table.counts.shape, table.standard_error)),
            below=counts_below(table.noisy_counts, noise, table.counts, table.noise),
            n_rows=table.n_rows,
            statistic=statistic,
            degrees=degrees,
            p_value=p_value,
            level=level,
            rows_per_unit=table.rows_per_unit,
        )

    def at_level(self, level: float) -> CountTable:
        """Return the table with intervals of another confidence level."""
        return replace(self, level=confidence_level(level))

    @property
    def heading(self) -> tuple[str, ...]:
        exactness = "public" if self.public_rows is not None else "noisy"
        return (f"counts by {', '.join(self.by)}: {self.n_rows:,} rows ({exactness})",)

    @property
    def remarks(self) -> tuple[str, ...]:
        error = rounded(self.standard_error, self.standard_error)
        lowest = self.conf_int()[..., 0]
        empty = int(np.count_nonzero(lowest <= 0.0))
        unknown = f"Not distinguishable from empty cells: {empty:,} of {lowest.size:,}." if empty else ""
        return (
            f"Privacy noise on each count: ± {error} (SD, before repair: whole numbers, none negative, with an unbiased total).",
            f"{format_level(self.level)} intervals are for the counts of this table's rows; they do not include sampling error.",
            unknown,
        )

    def _columns(self) -> list[Column]:
        cells = list(product(*self.levels))
        levels = [[cell[axis] for cell in cells] for axis in range(len(self.by))]
        taken = set(self.by)
        lower, upper = np.moveaxis(self.conf_int(), -1, 0).reshape(2, -1)
        counts = self.counts.ravel()

        def named(name: str) -> str:
            return f"{name} " if name in taken else name

        return [
            *(
                Column(name, values, name, [str(level) for level in values], label=True)
                for name, values in zip(self.by, levels, strict=True)
            ),
            Column(named("count"), counts, "count", [f"{count:,}" for count in counts.tolist()]),
            Column(named("noisy_count"), self.noisy_counts.ravel()),
            Column(named("noise"), np.full(counts.size, self.standard_error)),
            Column(named("share"), self.shares.ravel(), "share", [f"{share:.1%}" for share in self.shares.ravel()]),
            Column(named("lower"), lower),
            Column(named("upper"), upper),
            Column(
                head=f"{format_level(self.level)} interval",
                cells=[f"[{low:,.0f}, {high:,.0f}]" for low, high in zip(lower.tolist(), upper.tolist(), strict=True)],
            ),
        ]

    def _axis(self, name: str) -> int:
        if name not in self.by:
            question = (
                {"question": Message("did-you-mean", close=[*close.values()])}
                if (close := closest(name, self.by))
                else {}
            )
            raise InputValueError(Message("not-a-column-of-table", name=name, columns=[*self.by], **question))
        return self.by.index(name)


def _named(column: str, levels: Sequence[Level]) -> tuple[str, ...]:
    """Return the names of levels as cross tables of moments have them."""
    return tuple(f"{column}={str(level).lower() if isinstance(level, bool) else level}" for level in levels)


def best_margin(tables: Sequence[CountTable], by: Sequence[str]) -> CountTable | None:
    """Return the table or margin of these columns with the least noise; None without one."""
    margins = [table.margin(*by) for table in tables if set(by) <= set(table.by)]
    return min(margins, key=lambda table: table.standard_error, default=None)
