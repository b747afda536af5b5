"""Rows: all that a mechanism may ask of a private table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from os import PathLike
from pathlib import Path
from typing import Any, Literal, Protocol

import narwhals as nw
import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dpmoments.array_types import FloatArray
from dpmoments.rows.encode import largest_block
from dpmoments.rows.kernel import exact_moments
from dpmoments.rows.moments import Moments
from dpmoments.rows.sources.arrow import RelationSource, file_source
from dpmoments.rows.sources.memory import ArraySource, FrameSource, LazySource, require_columns
from dpmoments.schema.schema import Schema

__all__ = ["Histogram", "Rows", "Source"]

DroppedRows = Literal["as_zero", "omit"]


class Source(Protocol):
    """Where encoded blocks come from; iterable again and again."""

    @property
    def n_rows(self) -> int | None:
        """Number of rows where it is known without a pass."""

    @property
    def raw(self) -> bool:
        """Whether blocks are the caller's own numbers, to which the kernel applies the missing rule."""

    def blocks(self) -> Iterator[npt.NDArray[Any]]:
        """Encoded blocks of shape (n_i, d); a dropped row is NaN throughout."""


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Histogram:
    """Exact counts of a row statistic. They are private data: ``repr`` shows none.

    Attributes
    ----------
    counts : ndarray of shape (len(edges) − 1,), int64
        Rows with edges[i] ≤ statistic < edges[i + 1].
    below, above : int
        Rows under the first edge; rows at or over the last edge, NaN among them.
    """

    counts: npt.NDArray[np.int64]
    below: int
    above: int

    @property
    def total(self) -> int:
        """All rows, inside the edges or not."""
        return int(self.counts.sum()) + self.below + self.above

    def __repr__(self) -> str:
        return f"Histogram({len(self.counts)} bins, values=<private>)"


@dataclass(frozen=True, eq=False, repr=False)
class Rows:
    """A private table behind the only questions a mechanism may ask.

    Made with :meth:`of`. It holds no copy of the table and can be passed over any number of times.

    Attributes
    ----------
    schema : Schema
    dropped : {"as_zero", "omit"}
        What becomes of rows that their column rules drop. ``"as_zero"``: they stay in the count as zero rows, so that
        the number of rows is the table's own (sound under both neighbouring relations). ``"omit"``: they are left
        out altogether (sound under add-remove only).
    """

    schema: Schema
    dropped: DroppedRows
    source: Source
    threads: int | None = None
    on_block: Callable[[int], None] | None = None

    @classmethod
    def of(
        cls,
        data: Any,
        schema: Schema,
        *,
        mean: bool = True,
        dropped: DroppedRows = "as_zero",
        threads: int | None = None,
        on_block: Callable[[int], None] | None = None,
    ) -> Rows:
        """Wrap a table. Only names, types and file footers are looked at here.

        Parameters
        ----------
        data : array, frame, path or relation
            A two-dimensional NumPy array (its columns are the schema's, in order); a pandas, Polars or Arrow frame; a
            path, glob or folder of Parquet or CSV files (streamed); a DuckDB relation (streamed).
        schema : Schema
        mean : bool
            See :meth:`dpmoments.Schema.encoding`.
        dropped : {"as_zero", "omit"}
            See the class.
        threads : int, optional
            Threads of the summation; default: the usable cores. The result does not depend on it.
        on_block : callable, optional
            Called with the number of rows of every block read, for progress.

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
        if not isinstance(schema, Schema):
            raise TypeError(f"schema must be a dpmoments.Schema, got {type(schema).__name__}")
        if dropped not in ("as_zero", "omit"):
            raise ValueError(f"dropped={dropped!r}: use 'as_zero' or 'omit'")
        return cls(schema, dropped, _source(data, schema, mean), threads, on_block)

    @property
    def n_features(self) -> int:
        """d, after encoding."""
        return self.schema.n_features

    def moments(
        self,
        center: FloatArray | None = None,
        linear: FloatArray | None = None,
        radius: float = 1.0,
        *,
        bits: int = 20,
    ) -> Moments:
        """Exact sums of w = linear · (x − center), each w clipped to norm ≤ radius and rounded to the lattice.

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
            The same bits for every row order, memory layout, chunking and thread count.

        Raises
        ------
        ValueError
            If a cell breaks a rule whose outcome is ``"error"``.
        """
        policy = self.schema.columns[0].missing if self.source.raw else "drop"
        if policy == "zero":
            raise AssertionError("only coordinates reach the kernel unencoded")
        moments = exact_moments(
            self._blocks(),
            self.n_features,
            bits=bits,
            radius=radius,
            center=center,
            linear=linear,
            missing=policy,
            threads=self.threads,
        )
        return (
            moments if self.dropped == "as_zero" else replace(moments, count=moments.count - moments.dropped, dropped=0)
        )

    def histogram(self, statistic: Callable[[FloatArray], FloatArray], edges: Iterable[float]) -> Histogram:
        """Count rows by a statistic of the encoded row.

        Parameters
        ----------
        statistic : callable
            Maps a block of shape (m, d), C-contiguous float64 in unit-ball units, to m values; each value must be a function
            of its row alone, to the last bit, whatever the block around it. Matrix products are not (a BLAS rounds rows
            differently by their place): see :func:`dpmoments.rows.kernel.transformed_norms`. This is tried on made-up rows.
        edges : increasing numbers
            Bins are [edges[i], edges[i + 1]).

        Returns
        -------
        Histogram

        Raises
        ------
        ValueError
            If the edges do not increase, or the statistic of a row depends on the rows around it.
        """
        bounds = np.asarray(list(edges), dtype=np.float64)
        if bounds.ndim != 1 or len(bounds) < 2 or not (np.diff(bounds) > 0).all():
            raise ValueError("edges must be at least two increasing numbers")
        _require_rowwise(statistic, self.n_features)
        counts = np.zeros(len(bounds) + 1, dtype=np.int64)
        for block in self.encoded_blocks():
            values = np.asarray(statistic(block), dtype=np.float64)
            if values.shape != (len(block),):
                raise ValueError("the statistic did not return one value a row")  # the number of rows is private
            # NaN sorts last, so it is counted above
            counts += np.bincount(np.searchsorted(bounds, values, side="right"), minlength=len(counts))
        return Histogram(counts[1:-1], int(counts[0]), int(counts[-1]))

    def encoded_blocks(self, rows_per_block: int = 65_536) -> Iterator[FloatArray]:
        """Encoded rows, block by block, C-contiguous and safe to change; dropped rows are zero or left out."""
        step = min(rows_per_block, largest_block(self.schema))
        for block in self._blocks():
            for start in range(0, len(block), step):
                part = np.array(block[start : start + step], dtype=np.float64, order="C")
                missing = ~np.isfinite(part)
                if missing.any():
                    part = self._apply_missing(part, missing)
                yield part

    def _apply_missing(self, part: FloatArray, missing: npt.NDArray[np.bool_]) -> FloatArray:
        rule = self.schema.columns[0].missing if self.source.raw else "drop"
        if rule == "error":
            raise ValueError("the table has a missing or non-finite cell and the schema's rule is missing='error'")
        if rule == "center":
            part[missing] = 0.0
            return part
        dropped = missing.any(axis=1)
        if self.dropped == "omit":
            return part[~dropped]
        part[dropped] = 0.0
        return part

    def count(self) -> int:
        """Number of rows, dropped ones included where they count; from file footers where those have it."""
        known = self.source.n_rows
        if known is not None and self.dropped == "as_zero":
            return known
        if self.dropped == "as_zero":
            return sum(len(block) for block in self._blocks())
        return sum(len(block) for block in self.encoded_blocks())

    def __repr__(self) -> str:
        return f"Rows({type(self.source).__name__}, n_features={self.n_features}, dropped={self.dropped!r}, values=<private>)"

    def _blocks(self) -> Iterator[npt.NDArray[Any]]:
        for block in self.source.blocks():
            yield block
            if self.on_block is not None:
                self.on_block(len(block))


def _require_rowwise(statistic: Callable[[FloatArray], FloatArray], n_features: int) -> None:
    """Refuse a statistic whose value for a row depends on the row's place or company, as found on made-up rows."""
    made_up = np.random.default_rng(0).standard_normal((67, n_features)) / np.sqrt(n_features)
    together = np.asarray(statistic(made_up.copy()), dtype=np.float64)
    if together.shape != (len(made_up),):
        raise ValueError(f"the statistic returned shape {together.shape} for {len(made_up)} rows: one value a row")
    backwards = np.asarray(statistic(np.ascontiguousarray(made_up[::-1])), dtype=np.float64)[::-1]
    parts = [statistic(made_up[start:stop].copy()) for start, stop in ((0, 1), (1, 4), (4, 37), (37, 67))]
    for again in (backwards, np.concatenate(parts)):
        if not np.array_equal(together, again, equal_nan=True):
            raise ValueError(
                "the statistic of a row depends on the rows around it, so that one row could move others between bins: compute "
                "it row by row (a sum along axis 1, or dpmoments.rows.kernel.transformed_norms), not by a matrix product"
            )


def _source(data: Any, schema: Schema, mean: bool) -> Source:
    if isinstance(data, str | PathLike):
        return file_source(data if isinstance(data, str) else Path(data), schema, mean)
    if isinstance(data, np.ndarray):
        return ArraySource(data, schema, mean)
    if isinstance(data, pa.RecordBatch):
        data = pa.Table.from_batches([data])
    if isinstance(data, pa.RecordBatchReader):
        raise TypeError(
            "a RecordBatchReader can be read once, and some mechanisms need several passes: pass the Parquet files, "
            "a DuckDB relation, or reader.read_all()"
        )
    library = type(data).__module__.split(".")[0]
    if library in ("duckdb", "_duckdb") and hasattr(data, "project"):
        return RelationSource(data, schema, mean)
    if library == "scipy" and hasattr(data, "toarray"):
        raise TypeError("sparse matrices are not supported: pass a dense array or a frame")
    if library == "polars" and hasattr(data, "collect_schema") and hasattr(data, "collect"):
        return LazySource(data, schema, mean)
    # narwhals refuses a frame with repeated names, wanted or not, in a message that lists them.
    if isinstance(data, pa.Table):
        require_columns(data.column_names, schema, "the table")
        data = data.select(list(schema.names))
    if library == "pandas" and getattr(getattr(data, "columns", None), "has_duplicates", False):
        require_columns(list(data.columns), schema, "the frame")
        data = data.loc[:, list(schema.names)]
    frame = nw.from_native(data, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return FrameSource(frame, schema, mean)
    raise TypeError(
        f"cannot read a table from {type(data).__name__}: pass a NumPy array, a pandas, Polars or Arrow frame, a path or glob of "
        "Parquet or CSV files, or a DuckDB relation"
    )
