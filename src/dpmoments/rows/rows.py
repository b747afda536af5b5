"""Rows: all queries that a mechanism may ask of a private table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from dpmoments.base.errors import InputValueError
from dpmoments.base.text_files import TextFormat
from dpmoments.base.values import FloatArray
from dpmoments.privacy.unit import Neighbors, PrivacyUnit, SelectionKey, require_unit
from dpmoments.rows.encode import Restriction
from dpmoments.rows.histogram import (
    CellCounts,
    CellCountSummary,
    Histogram,
    HistogramSummary,
    LengthSummary,
    MarginalSummary,
    MarginalSums,
    NameSummary,
    RowCount,
    RowStatistic,
    require_rowwise,
)
from dpmoments.rows.kernel import MomentSummary, MovedNumbers
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.sources.opening import open_source
from dpmoments.rows.sources.source import Source
from dpmoments.rows.summary import Missing, Prepared, Result, Running, Summary, stated_threads, summarize_in_threads
from dpmoments.rows.units import (
    BEHIND,
    ROUNDS,
    Tallied,
    UnitSelection,
    WeightCells,
    Weighted,
    require_same_table,
    selection_of_units,
)
from dpmoments.schema.columns import NameColumn
from dpmoments.schema.constraints import Level, require_mean_of_weighted
from dpmoments.schema.encoding import may_be_shortened
from dpmoments.schema.schema import Schema, require_schema


def _rows_in_unit_ball(block: npt.NDArray[Any], missing: Missing) -> FloatArray:
    """Return a copy whose rows have norm at most 1, up to rounding, each by itself."""
    # Missing values become 0 under ``"center"``; else they stay.
    rows: FloatArray = np.array(block, dtype=np.float64, order="C")
    if missing == "center":
        rows[~np.isfinite(rows)] = 0.0
    # Only so long as no square passes what floating point holds.
    peaks = np.maximum(np.abs(rows).max(axis=1, initial=0.0), 1.0)
    scaled = rows / peaks[:, None]
    norms = np.zeros(len(rows))
    for column in scaled.T:  # one addition after the other: a sum along rows depends on how many rows there are
        norms += column * column
    norms = np.sqrt(norms)
    long = norms * peaks > 1.0  # not where a cell is missing
    rows[long] = scaled[long] / norms[long, None]
    return rows


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """Private table that answers only the queries that a mechanism may ask.

    Made with :meth:`of`. It holds no copy of the table and can be passed over any number of times. Every result is
    exact, made of integers, and the same for every row order, memory layout, partitioning and number of threads.

    Attributes
    ----------
    schema : Schema
    neighbors : Neighbors
        Neighboring relation. Under both relations, every result leaves out the rows that column rules drop.
    source : Source
    threads : int or None
    on_block : callable or None
    on_pass : callable or None
    shortened : bool
        See :meth:`in_unit_ball`.
    privacy_unit : PrivacyUnit or None
        Unit with several rows. Queries then need :meth:`bounded` first, which selects rows.
    selection : UnitSelection or None
        Selected rows of each unit.
    is_group : bool
        See :meth:`where`.
    """

    schema: Schema
    neighbors: Neighbors
    source: Source
    threads: int | None = None
    on_block: Callable[[int], None] | None = None
    on_pass: Callable[[int | None, int], AbstractContextManager[None]] | None = field(default=None, kw_only=True)
    shortened: bool = False
    privacy_unit: PrivacyUnit | None = None
    selection: UnitSelection | None = None
    is_group: bool = False

    @classmethod
    def of(
        cls,
        data: Any,
        schema: Schema,
        *,
        mean: bool = True,
        neighbors: Neighbors | str = Neighbors.ADD_REMOVE,
        threads: int | None = None,
        on_block: Callable[[int], None] | None = None,
        on_pass: Callable[[int | None, int], AbstractContextManager[None]] | None = None,
        privacy_unit: PrivacyUnit | None = None,
        text_format: TextFormat | None = None,
    ) -> Rows:
        """Wrap a table; reads only names, types and file footers.

        Parameters
        ----------
        data : array, frame, path or relation
            A two-dimensional NumPy array (its columns are the schema's, in order, without derived features); a pandas,
            Polars or Arrow frame; a path, glob or folder of Parquet, Feather or CSV files, an Arrow dataset or a DuckDB
            relation (all streamed); a Dask DataFrame or array, a Spark DataFrame, or :class:`dpmoments.EngineFiles`.
        schema : Schema
        mean : bool
            True to encode rows about the midpoints of their bounds; see :meth:`dpmoments.Schema.encoding`.
        neighbors : Neighbors or str
            See the class.
        threads : int, optional
            Threads of a pass; default: ``DPMOMENTS_THREADS``, else the usable cores. The result does not depend on it.
        on_block : callable, optional
            Called with the progress of every batch, in the unit of the length that ``on_pass`` gets (rows if it is None).
        on_pass : callable, optional
            Called with the length of a pass (None if unknown) and the number of passes that follow one another. It
            returns a context manager that encloses them.
        privacy_unit : PrivacyUnit, optional
            Unit whose rows are protected together; default: each row by itself.
        text_format : TextFormat, optional
            Format of CSV files, if it is not the usual one.

        Raises
        ------
        ValueError, TypeError, FileNotFoundError
            If the table does not have the schema's columns or cannot be read at all.

        Examples
        --------
        >>> import numpy as np
        >>> rows = Rows.of(np.array([[0.5, 0.0], [0.0, 0.25]]), Schema.unit_ball(2))
        >>> moments = rows.moments()
        >>> moments.count, moments.gram * moments.scale**2
        (2, array([[0.25  , 0.    ],
               [0.    , 0.0625]]))
        """
        require_schema(schema)
        neighbors = Neighbors.of(neighbors)
        require_mean_of_weighted(schema, mean=mean)
        if privacy_unit is not None:
            require_unit(privacy_unit, schema, neighbors)
        source = open_source(data, schema.as_read, mean, privacy_unit, text_format, neighbors)
        schema = schema.with_text_format(text_format)
        return cls(
            schema, neighbors, source, stated_threads(threads), on_block, on_pass=on_pass, privacy_unit=privacy_unit
        )

    @property
    def n_features(self) -> int:
        """Number d of encoded features."""
        return self.schema.n_features

    def summarize(self, summary: Summary[Running, Result]) -> Result:
        """Run one pass over the data: map the summary over the partitions, and merge the results."""
        # Refused if units are bounded and the table has changed since then.
        if self.privacy_unit is not None and self.selection is None:
            raise InputValueError(
                "the rows of units are not bounded yet: call rows.bounded(key), as a plan for units does"
            )
        asked = summary
        if self.shortened:
            asked = Prepared(summary, partial(_rows_in_unit_ball, missing=self.source.missing))
        if (weights := self._weights) is None:
            return self._summarized(asked)
        weighed = asked.is_weighted and self.selection is not None
        weighted: Any = Weighted(asked, BEHIND if weighed else weights)
        return cast("Result", weighted.total(self._summarized(weighted, weighed=weighed)))

    @property
    def _weights(self) -> WeightCells | None:
        return None if self.schema.sampling_weight is None else WeightCells.of(self.schema.as_read)

    def _summarized(self, asked: Summary[Running, Result], *, weighed: bool = False) -> Result:
        """Run one pass over the selected rows, or over all with bounded weights."""
        with self._passing():
            if self.selection is None:
                return self.source.summarize(asked, threads=self.threads, on_block=self.on_block)

            # Wherever the source is, it needs no more of the selection.
            sent = replace(self.selection, repeated=self.selection.repeated[:0])
            tallied = Tallied(Prepared(asked, sent.weighed if weighed else sent.kept), self.selection.key)
            result, tally = self.source.summarize(tallied, threads=self.threads, on_block=self.on_block)
            require_same_table(self.selection.fingerprint, tally)
            if weighed:
                return result
            repeated = np.array_split(self.selection.repeated, len(self.selection.repeated) // asked.rows_per_task + 1)
            return asked.merge(result, summarize_in_threads(asked, repeated, lambda block: block, 1))

    def _passing(self, n_passes: int = 1) -> AbstractContextManager[None]:
        return nullcontext() if self.on_pass is None else self.on_pass(self.source.pass_length, n_passes)

    def bounded(self, key: SelectionKey) -> Rows:
        """Return the table with bounded units, in two rounds of passes.

        ``key`` is 128 random bits, from :meth:`dpmoments.privacy.filter.PrivacyFilter.selection_key`. Refused if the rows have
        no privacy unit, one is missing under ``missing="error"``, or the table differs between the two rounds.
        """
        if self.privacy_unit is None:
            raise InputValueError("the rows have no privacy unit: use Rows.of(..., privacy_unit=...)")
        with self._passing(ROUNDS):
            selection = selection_of_units(
                self.source,
                self.privacy_unit,
                self.schema.as_read.n_features,
                key,
                weights=self._weights,
                threads=self.threads,
                on_block=self.on_block,
            )
        return replace(self, selection=selection)

    def where(self, by: str, *levels: Level) -> Rows:
        """Return the rows with one of these levels of a column ``by``, without that column.

        ``by`` is Categorical or Boolean. Rows of other levels, or of none, are left out before they are encoded, so the column
        rules do not apply to them. An unknown column or level is refused, and so is the only column.
        """
        if self.privacy_unit is not None:
            raise InputValueError("rows of units cannot be divided into groups: a unit may have rows in several")
        restriction = Restriction.of(self.schema, by, levels)
        source = self.source.restricted(replace(restriction, schema=restriction.schema.as_read))
        return replace(self, schema=restriction.schema, source=source, is_group=True)

    def in_unit_ball(self) -> Rows:
        """Return the rows scaled down to norm 1 before a center is subtracted.

        The rows themselves if none can be longer. Sums about 0 scale them down anyway. Sums about a center would
        otherwise take a long row at its full length, and a missing value as the center instead of 0.
        """
        return replace(self, shortened=True) if may_be_shortened(self.schema.columns, self.schema.row_norm) else self

    def moments(
        self, center: FloatArray | None = None, linear: FloatArray | None = None, radius: float = 1.0, *, bits: int = 20
    ) -> ExactMoments:
        """Compute exact sums of w = linear · (x − center), clipped to norm ≤ radius and rounded.

        Each w is rounded to the lattice.

        Parameters
        ----------
        center : ndarray of shape (d,), optional
            In unit-ball units.
        linear : ndarray of shape (k, d), optional
        radius : float
        bits : int
            The lattice is radius · 2^−bits; every lattice row has norm ≤ radius in exact integer arithmetic.

        Returns
        -------
        Moments
            Moments of all kept rows.

        Raises
        ------
        ValueError
            If a value breaks a rule with outcome ``"error"``.
        """
        return self.summarize(MomentSummary(self.n_features, bits, radius, center, linear, missing=self.source.missing))

    def moments_of_moved(
        self, features: Sequence[int], center: FloatArray, limit: int, *, bits: int, scale: FloatArray | None = None
    ) -> ExactMoments:
        """Compute exact sums of rows with some features scaled about a center and clipped to a ball.

        ``center`` and ``scale`` (default 1) have one number for each of these ``features``; the ball's radius is ``limit``
        units of 2^−bits, which no row's norm exceeds in whole numbers. Other features have sums about 0.
        """
        missing, chosen = self.source.missing, tuple(features)
        if chosen == tuple(range(self.n_features)):  # in one step, which is machine code for narrow rows
            return self.summarize(
                MomentSummary(self.n_features, bits, center=center, missing=missing, scale=scale, limit=limit)
            )
        summary = MomentSummary(self.n_features, bits, missing=missing)
        moved = MovedNumbers(chosen, np.asarray(center), limit, bits, missing, scale)
        return self.summarize(Prepared(summary, moved))

    def marginal_sums(
        self, features: Sequence[int], center: FloatArray, scale: FloatArray, *, bits: int
    ) -> MarginalSums:
        """Compute exact sums and sums of squares of features, scaled about a center, clipped to ±1.

        A feature x counts as (x − center) · scale, clipped to [−1, 1] and rounded to multiples of 2^−bits.
        """
        return self.summarize(MarginalSummary(tuple(features), center, scale, bits, missing=self.source.missing))

    def lengths(self, features: Sequence[int], center: FloatArray, scale: FloatArray, edges: FloatArray) -> Histogram:
        """Count rows by ‖(x − center) · scale‖ in some features, between increasing edges above 0."""
        return self.summarize(LengthSummary(tuple(features), center, scale, edges, missing=self.source.missing))

    def name_counts(self) -> tuple[Counter[str], ...]:
        """Count rows by name, for each column whose levels are to be found."""
        starts = [index.start for column, index in self.schema.columns_with_slices if isinstance(column, NameColumn)]
        return self.summarize(NameSummary(tuple(starts), self.source.missing)).tables

    def histogram(self, statistic: RowStatistic, edges: Iterable[float]) -> Histogram:
        """Count kept rows by a statistic of the encoded row, in bins [edges[i], edges[i + 1]).

        It maps a block of shape (m, d), C-contiguous float64 in unit-ball units, to m values; each value must be a function
        of its row only, to the last bit, whatever the batch. Matrix products are not (a BLAS rounds rows differently by
        their index): see :func:`dpmoments.rows.kernel.transformed_norms`. This is tested on synthetic rows.
        """
        summary = HistogramSummary(statistic, np.array([*edges], dtype=np.float64), missing=self.source.missing)
        require_rowwise(statistic, self.n_features)
        return self.summarize(summary)

    def cell_counts(self, tables: Sequence[Sequence[str]]) -> CellCounts:
        """Count kept rows in the cells of contingency tables, given by their columns, in one pass.

        A row without a level in a column of a table is in no cell of that table.
        """
        return self.summarize(CellCountSummary.of(self.schema, tables, self.source.missing))

    def count(self) -> int:
        """Return the number of kept rows."""
        return self.summarize(RowCount(missing=self.source.missing))

    def table_size(self) -> int:
        """Return the number of rows of the whole table, dropped ones included.

        From file footers if they state it. Rows of some levels have none: their number is private under every relation.
        """
        assert not self.is_group, "the size of a group of rows is private"
        known = self.source.n_rows
        return known if known is not None else self.summarize(RowCount(missing=self.source.missing, keep_dropped=True))

    def __repr__(self) -> str:
        shown = f"{type(self.source).__name__}, n_features={self.n_features}, neighbors={str(self.neighbors)!r}"
        return f"Rows({shown}, values=<private>)"
