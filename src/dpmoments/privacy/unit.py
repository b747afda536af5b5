"""Neighboring relations, and privacy units: people with several rows, named by a column."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, get_args

from dpmoments.base.checks import is_whole
from dpmoments.base.errors import InputValueError, out_of_range, shown, wrong_type
from dpmoments.base.records import Record
from dpmoments.schema.schema import Schema

# Neighboring relations: the two tables that a guarantee makes hard to distinguish.


class Neighbors(StrEnum):
    """Relation between the two tables that a guarantee makes hard to distinguish.

    ``ADD_REMOVE``: they differ by one row present or absent; the number of rows is private. ``REPLACE_ONE``: they differ in one
    row's values; the number of rows is public.
    """

    ADD_REMOVE = "add_remove"
    REPLACE_ONE = "replace_one"

    @classmethod
    def of(cls, value: Neighbors | str) -> Neighbors:
        """Return the relation named by ``value``; raise ValueError for any other text.

        Examples
        --------
        >>> Neighbors.of("replace_one")
        <Neighbors.REPLACE_ONE: 'replace_one'>
        """
        if value not in tuple(cls):
            raise InputValueError(
                f"neighbors={shown(value)} is not a neighboring relation: use 'add_remove' (the number of rows is "
                "private) or 'replace_one' (the number of rows is public)"
            )
        return cls(value)

    @property
    def table_size_is_public(self) -> bool:
        """True if the exact table size, dropped rows included, is public."""
        return self is Neighbors.REPLACE_ONE

    def count_is_public(self, drops_rows: bool) -> bool:
        """Return True if the exact number of kept rows is public.

        A row that its column rules drop contributes nothing to any answer, the count included. If a rule can drop a row
        (``drops_rows``), a replaced row may be dropped in just one of two neighbors, so the number of kept rows is private
        under ``replace_one`` too; the table's own number of rows is not.

        Examples
        --------
        >>> Neighbors.REPLACE_ONE.count_is_public(drops_rows=False), Neighbors.REPLACE_ONE.count_is_public(drops_rows=True)
        (True, False)
        """
        return self.table_size_is_public and not drops_rows


SelectionKey = tuple[int, int]
"""128 random bits, as two whole numbers."""

MissingUnit = Literal["error", "drop"]
_MAX_ROWS = 2**31


@dataclass(frozen=True, slots=True)
class PrivacyUnit(Record):
    """All rows with one value of a column, protected together.

    At most ``max_rows`` of them are kept, or, if rows have a sampling weight, all, with a bound on their total weight.

    Passed as ``privacy_unit=`` to :func:`dpmoments.release`, :func:`dpmoments.release_mean` and
    :func:`dpmoments.release_counts`, and to their forecasts. The guarantee is then for tables that differ by all rows of one
    unit, however many there are, anywhere in the table and in any file.

    Parameters
    ----------
    column : str
        A column of the table that is not in the schema: integers, whole numbers, text or bytes. It is read, but not encoded,
        and only its name is released.
    max_rows : int, optional
        k: of a unit with more rows, k are chosen at random. Noise grows about in proportion to it. Left out if the schema has a
        :class:`SamplingWeight`: its cap is then that of the weights of a unit's rows together, and the weights of a unit with
        more are reduced in proportion. Noise is as for single rows.
    missing : {"error", "drop"}
        Treatment of a row with a missing or invalid identifier (a list, 7.5): it belongs to no unit, so its contribution cannot
        be bounded.

    Raises
    ------
    ValueError, TypeError
        If a value is invalid.

    Notes
    -----
    **Privacy.** The kept rows are a function of each unit's own rows and of a key that is drawn for the release and discarded,
    so two tables that differ by one unit differ by at most k kept rows. Group privacy then extends the guarantee for rows to
    units. Rows with weights of at most 1 together move a sum no further than one row of weight 1:
    ``docs/evidence/derivations/privacy-units.md``.

    Examples
    --------
    >>> unit = PrivacyUnit("person_id", max_rows=5)
    >>> unit.description
    'all rows with one value of person_id, of which 5 count at most'
    """

    column: str
    max_rows: int | None = None
    missing: MissingUnit = "error"

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise wrong_type("column", "a text", self.column)
        if not self.column:
            raise InputValueError("the column of a privacy unit has no name: give the column that identifies people")
        if self.max_rows is not None:
            if not is_whole(self.max_rows):
                raise wrong_type("max_rows", "a whole number", self.max_rows)
            object.__setattr__(self, "max_rows", int(self.max_rows))
            if not 1 <= self.max_rows <= _MAX_ROWS:
                raise InputValueError(
                    f"the contribution bound must be between 1 and {_MAX_ROWS:,} rows, got {shown(self.max_rows)}"
                )
        if self.missing not in get_args(MissingUnit):
            raise out_of_range("missing", self.missing, "'error', or 'drop' to drop rows without a unit")

    @property
    def rows_per_unit(self) -> int:
        """Number of rows for which a unit pays: 1 if its total weight is bounded."""
        return 1 if self.max_rows is None else self.max_rows

    @property
    def rows_text(self) -> str:
        """Name of the counted rows, after their number."""
        if self.max_rows is None:
            return f"values of {self.column}"
        return f"rows that count (at most {self.max_rows:,} for each value of {self.column})"

    @property
    def description(self) -> str:
        """Description of the unit, after "the protected unit is"."""
        if self.max_rows is None:
            return f"all rows with one value of {self.column}, of a bounded total weight"
        counted = f"{self.max_rows:,} count at most" if self.max_rows > 1 else "one counts"
        return f"all rows with one value of {self.column}, of which {counted}"

    @classmethod
    def of_file(cls, value: object) -> PrivacyUnit | None:
        """Return the unit that a file names as ``"row"`` (None) or by its entries; raise if neither."""
        if value == "row":
            return None
        if not isinstance(value, Mapping):
            raise InputValueError(f"{shown(value)} is not a privacy unit: use 'row', or a column with a number of rows")
        return cls.from_dict(value, "receipt.protected_unit")


def require_unit(privacy_unit: object, schema: Schema, neighbors: Neighbors) -> None:
    """Raise unless a privacy unit suits tables of a schema; before a row is read."""
    if not isinstance(privacy_unit, PrivacyUnit):
        advice = ": dpm.PrivacyUnit('person_id', max_rows=5)"
        raise wrong_type("privacy_unit", "a dpmoments.PrivacyUnit", privacy_unit, advice=advice)
    if neighbors is not Neighbors.ADD_REMOVE:
        refused = (
            f"a privacy unit is not supported under {neighbors}: the number of kept rows depends on how many "
            "each unit has, so it is not public, as that relation assumes. Use "
        )
        raise InputValueError(f"{refused}neighbors='add_remove'", shell=f"{refused}--neighbors add_remove")
    if privacy_unit.column in schema.reserved_names:
        raise InputValueError(
            f"the privacy unit's column '{privacy_unit.column}' is in the schema, so it would be a feature of "
            "the release: remove it from the schema, or copy it under another name to use it as a feature too"
        )
    is_weighted = schema.sampling_weight is not None
    if privacy_unit.max_rows is None and not is_weighted:
        missing = "state the contribution bound, the most rows of one unit that count"
        raise InputValueError(f"{missing}: max_rows=5", shell=f"{missing}: --max-rows-per-unit 5")
    if privacy_unit.max_rows is not None and is_weighted:
        refused = "rows with a sampling weight are bounded by the total weight of a unit, for which its cap stands: leave out "
        raise InputValueError(f"{refused}max_rows", shell=f"{refused}--max-rows-per-unit")
