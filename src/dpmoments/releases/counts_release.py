"""Release of contingency tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Annotated, Any

import numpy as np

from dpmoments.analysis.answers import confidence_level, in_floating_point
from dpmoments.analysis.cross_table import CountTable, CrossTable
from dpmoments.analysis.description import card
from dpmoments.analysis.released import Release, dependent_rows
from dpmoments.base.documents import DocumentKind
from dpmoments.base.errors import InputValueError, shown
from dpmoments.base.message import Message
from dpmoments.base.records import AS_IT_IS, Rule, read_entries
from dpmoments.base.values import FloatArray, IntegerArray
from dpmoments.moments.cells import CountNoise
from dpmoments.privacy.laws import DiscreteGaussian, DiscreteLaplace
from dpmoments.privacy.receipt import Draw
from dpmoments.releases.disclosed import Disclosed
from dpmoments.schema.constraints import Level, grouping_column, levels_of
from dpmoments.schema.schema import Schema

_MAX_COUNT = 1e12
"""Largest noisy count: sums of counts are exact."""
_ROUNDING = 1e-9
"""Relative difference of a noise SD in a file from the receipt's that is rounding."""
_NUMBER_OF_ROWS = Annotated[int, Rule(f"a whole number from 0 to {_MAX_COUNT:.0e}", lambda n: 0 <= n <= _MAX_COUNT)]
_TABLE = {
    "by": tuple[str, ...],
    "levels": Annotated[Any, AS_IT_IS],
    "noisy_counts": FloatArray,
    "noise_deviation": float,
}
"""Entries of a table in a file, and their kinds."""


@dataclass(frozen=True, eq=False)
class CountsRelease(Release, Disclosed):
    """Contingency tables released under differential privacy.

    Made by :func:`dpmoments.release_counts` or :func:`dpmoments.load`. Everything below costs no further privacy.

    Attributes
    ----------
    by : tuple of tuples of str
        Columns of every table.
    noisy : tuple of ndarrays
        Noisy counts of every table, one axis for each of its columns.
    public_rows : int or None
        Number of rows in every table, if it is public: under ``replace_one``, if every row of the table has a level.

    It also has the attributes of every :class:`Release`: ``schema`` (of the tables' columns only), ``privacy``, ``receipt``,
    ``mechanism``, ``origin``, ….
    """

    by: tuple[tuple[str, ...], ...]
    noisy: tuple[FloatArray, ...]
    public_rows: int | None = None

    file_kind = DocumentKind("dpmoments-counts-release", 1, "release of counts")
    holds_counts = True

    def __post_init__(self) -> None:
        super().__post_init__()
        shapes = tuple(tuple(map(len, self._levels(names))) for names in self.by)
        if any(len(set(names)) < len(names) for names in self.by):
            raise InputValueError("a table names a column twice")
        if not self.by or not all(self.by) or shapes != tuple(counts.shape for counts in self.noisy):
            raise InputValueError("the counts are not those of tables of the schema's columns")
        if len(self.receipt.draws) != len(self.by):
            raise InputValueError("a release of counts has one draw of noise for each table")
        for names, counts, draw in zip(self.by, self.noisy, self.receipt.draws, strict=True):
            if draw.size != counts.size or draw.what.facts.get("names", names) != names:
                raise InputValueError("a draw of the receipt is for another table")
            if not (np.abs(counts) <= _MAX_COUNT).all():
                raise InputValueError(f"a noisy count is beyond ±{_MAX_COUNT:.0e}, which no table has")
            _noise_of(draw)

    @cached_property
    def tables(self) -> tuple[CountTable, ...]:
        """Every table, with its counts, noise and intervals."""
        return tuple(
            CountTable.of(
                names, self._levels(names), noisy, _noise_of(draw), self.public_rows, self.privacy.rows_per_unit
            )
            for names, noisy, draw in zip(self.by, self.noisy, self.receipt.draws, strict=True)
        )

    @property
    def counts(self) -> IntegerArray:
        """Possible counts of the only table: whole numbers, 0 or above, an axis for each column."""
        return self.table().counts

    @property
    def noisy_counts(self) -> FloatArray:
        """Counts of the only table as released: without bias, and some may be negative."""
        return self.table().noisy_counts

    @property
    def standard_error(self) -> float:
        """Privacy noise SD of each count of the only table."""
        return self.table().standard_error

    @property
    def count_is_public(self) -> bool:
        """True if the number of rows has no noise."""
        return self.public_rows is not None

    @property
    def n_rows(self) -> int:
        """Number of rows in the table that knows it best: public, or noisy and at least 0."""
        return min(self.tables, key=lambda table: table.total_error).n_rows

    @in_floating_point
    def table(self, *by: str, level: float = 0.95) -> CountTable:
        """Return the counts by some columns: the table, or margin of one, with the least noise.

        Parameters
        ----------
        *by : str
            Columns of the table, in the order of the axes; none for the only table.
        level : float
            Confidence level of the intervals.

        Raises
        ------
        ValueError
            If no table has all the columns, or none is named and there are several tables.

        Examples
        --------
        >>> import dpmoments as dpm, pyarrow as pa
        >>> schema = dpm.Schema(dpm.Categorical("region", ["north", "south"]), dpm.Boolean("smoker"))
        >>> people = pa.table({"region": ["north", "south"] * 500, "smoker": [True, True, False, False] * 250})
        >>> released = dpm.release_counts(people, schema, by=["region", "smoker"], epsilon=1.0, insecure_seed=0)
        >>> released.table("region").counts.tolist()
        [498, 499]
        """
        confidence_level(level)
        if not by and len(self.tables) > 1:
            raise InputValueError(f"name the columns of one table: {self._listed}")
        margins = [each.margin(*by) if by else each for each in self.tables if set(by) <= set(each.by)]
        table = min(margins, key=lambda margin: margin.standard_error, default=None)
        if table is None:
            raise InputValueError(
                f"no table of this release has the columns {', '.join(map(shown, by))}: it has {self._listed}"
            )
        return table if level == table.level else table.at_level(level)

    def describe(self, *by: str, level: float = 0.95) -> CountTable:
        """Return :meth:`table`: counts with noise, shares and intervals, which ``print`` shows."""
        return self.table(*by, level=level)

    def to_frame(self, *by: str, level: float = 0.95) -> Any:
        """Return a pandas frame with a row for each cell: counts, noise, shares and intervals."""
        return self.table(*by, level=level).to_pandas()

    def conf_int(self, *by: str, level: float = 0.95) -> FloatArray:
        """Return the confidence intervals of one table's counts."""
        return self.table(*by, level=level).conf_int()

    @in_floating_point
    def cross_table(self, by: str, other: str, *, level: float = 0.95) -> CrossTable:
        """Count rows by two columns and test their independence by chi-square: free of privacy cost.

        Parameters
        ----------
        by, other : str
            Two columns of one table; the first makes the rows.
        level : float
            The columns are called dependent if the p-value is below 1 − level.

        Raises
        ------
        ValueError
            If no table has both columns, or the level is below 0.5.

        Notes
        -----
        The test compares the noisy counts with those expected under independence, by multinomial sampling and noise together:
        Pearson's χ² would call noise dependence.
        """
        if by == other:
            raise InputValueError(f"a cross table is of two columns, and both are {shown(by)}: name another")
        warned = filter(None, (dependent_rows(self), *self.warnings))
        result = self.table(by, other).cross_table(by, other, level=level)
        return replace(result, warning=" ".join(f"Warning: {message.text()}" for message in warned))

    @property
    def _listed(self) -> str:
        return "; ".join(", ".join(map(repr, names)) for names in self.by)

    def _levels(self, names: Sequence[str]) -> tuple[tuple[Level, ...], ...]:
        return tuple(levels_of(grouping_column(self.schema, name)) for name in names)

    def summary(self) -> str:
        """Return every table as text, with the budget."""
        lines = [f"counts, {self.privacy.budget}, {self.privacy.neighbors}"]
        lines += [table.summary() for table in self.tables]
        lines += self._warned
        if not self.privacy.private:
            lines.append("NOT PRIVATE: made with an insecure seed.")
        return "\n".join(lines)

    def __str__(self) -> str:
        return self.summary()

    def _repr_html_(self) -> str:
        first, *others = self.tables
        more = [f"{len(others)} more tables: release.tables"] if others else []
        return card(
            f"Counts of {math.prod(first.counts.shape):,} cells by {', '.join(first.by)}",
            [*first.heading, *more, *first.remarks],
            first.table(),
            self.privacy,
            self._warned,
            [f"release.{call}" for call in ("counts", "to_frame()", "cross_table(…)", 'save("counts.json")')],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values for a file, without loss of precision."""
        return {
            **self._statements(),
            "tables": [
                {
                    "by": list(table.by),
                    "levels": [list(levels) for levels in table.levels],
                    "noisy_counts": table.noisy_counts.ravel().tolist(),
                    "noise_deviation": table.standard_error,
                }
                for table in self.tables
            ],
            "public_rows": self.public_rows,
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> CountsRelease:
        """Invert :meth:`to_dict`; raise KeyError, TypeError or ValueError if an entry is wrong."""
        kinds = {"tables": tuple[Annotated[Any, AS_IT_IS], ...], "public_rows": _NUMBER_OF_ROWS | None}
        given = cls._read(content, kinds)
        entries = [read_entries(entry, _TABLE, "tables") for entry in given.pop("tables")]
        by, noisy = [], []
        for entry in entries:
            shape = tuple(len(levels_of(grouping_column(given["schema"], name))) for name in entry["by"])
            by.append(entry["by"])
            if len(entry["noisy_counts"]) != math.prod(shape):
                raise InputValueError(f"noisy_counts must hold {math.prod(shape)} finite numbers")
            noisy.append(entry["noisy_counts"].reshape(shape))
        released = cls(**given, by=tuple(by), noisy=tuple(noisy))
        for table, entry in zip(released.tables, entries, strict=True):
            if entry["levels"] != [list(levels) for levels in table.levels]:
                raise InputValueError("the levels of a table are not those of the schema")
            if not math.isclose(entry["noise_deviation"], table.standard_error, rel_tol=_ROUNDING):
                raise InputValueError("the noise of a table is not that of the receipt")
        return released

    def __repr__(self) -> str:
        return self._described(f"{self._listed}, {sum(counts.size for counts in self.noisy):,} cells")


def rules_of_counts(schema: Schema) -> tuple[Message, ...]:
    """Return the rules of the tables' columns: no row is shortened."""
    return tuple(rule for rule in schema.rules if rule.code != "row-norm-bound")


def _noise_of(draw: Draw) -> CountNoise:
    """Return the noise of an entry of a draw, in rows."""
    units = draw.sensitivity.units
    if isinstance(draw.law, DiscreteLaplace):
        return CountNoise("laplace", draw.law.scale / units, 1.0 / units)
    if isinstance(draw.law, DiscreteGaussian) and draw.law.off_diagonal_scale is None:
        return CountNoise("gaussian", draw.law.scale / units, 1.0 / units)
    raise InputValueError("the noise of a table is not that of the receipt")
