"""Whom a guarantee is for, where one person may have many rows: a column that tells people apart, and how many rows count."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from enum import StrEnum
from numbers import Integral
from typing import Any, Literal, get_args

from dpmoments.foundation.errors import InputTypeError, InputValueError
from dpmoments.foundation.values import require_known, shown

# Neighbouring relations: which two tables a guarantee makes hard to tell apart, and what follows from that.


class Neighbors(StrEnum):
    """Which two tables a guarantee makes hard to tell apart.

    ``ADD_REMOVE``: they differ by one row present or absent; the number of rows is private.
    ``REPLACE_ONE``: they differ in one row's values; the number of rows is public.
    """

    ADD_REMOVE = "add_remove"
    REPLACE_ONE = "replace_one"

    @classmethod
    def of(cls, value: Neighbors | str) -> Neighbors:
        """Return the relation named by ``value``.

        Raises
        ------
        ValueError
            If ``value`` names no relation.

        Examples
        --------
        >>> Neighbors.of("replace_one")
        <Neighbors.REPLACE_ONE: 'replace_one'>
        """
        if value not in tuple(cls):
            raise InputValueError(
                f"neighbors={shown(value)} is not a neighbouring relation: use 'add_remove' (the number of rows is private) "
                "or 'replace_one' (the number of rows is public)"
            )
        return cls(value)

    @property
    def table_size_is_public(self) -> bool:
        """Whether the number of rows of the table, dropped ones among them, may be told as it is."""
        return self is Neighbors.REPLACE_ONE

    def count_is_public(self, drops_rows: bool) -> bool:
        """Whether the number of rows that count may be told as it is.

        A row that its column rules drop contributes nothing to any answer, the count included. Where a rule can drop a row
        (``drops_rows``), a replaced row may be dropped in one of two neighbours alone, so the number of those kept is private
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
class PrivacyUnit:
    """All rows with one value of a column, of which ``max_rows`` count at most: what is protected together.

    Passed as ``privacy_unit=`` to :func:`dpmoments.release` and :func:`dpmoments.release_mean`, and to what plans them. The
    guarantee is then for tables that differ by all rows of one unit, however many there are and wherever in the table, or in
    which file, they stand.

    Parameters
    ----------
    column : str
        A column of the table that is not in the schema: integers, whole numbers, text or bytes. It is read, is no feature, and
        nothing but its name is released.
    max_rows : int
        k: of a unit with more rows, k chosen at random count. Noise grows in proportion to it.
    missing : {"error", "drop"}
        What becomes of a row whose cell of the column is empty, or names nobody (a list, 7.5): it belongs to nobody, so that
        nothing can bound its share.

    Raises
    ------
    ValueError, TypeError
        If a value cannot be.

    Notes
    -----
    **Privacy.** The rows that count are a function of each unit's own rows and of a key that is drawn for the release and thrown
    away, so that two tables that differ by one unit differ by k of the rows that count at most. Group privacy then gives the
    guarantee for units from that for rows: ``docs/derivations/privacy-units.md``.

    Examples
    --------
    >>> unit = PrivacyUnit("person_id", max_rows=5)
    >>> unit.in_words
    'all rows with one value of person_id, of which 5 count at most'
    """

    column: str
    max_rows: int
    missing: MissingUnit = "error"

    def __post_init__(self) -> None:
        if not isinstance(self.column, str):
            raise InputTypeError(
                f"the column of a privacy unit must be its name, a text, got {type(self.column).__name__}"
            )
        if not self.column:
            raise InputValueError(
                "the column of a privacy unit has no name: give that of the column that tells people apart"
            )
        if isinstance(self.max_rows, bool) or not isinstance(self.max_rows, Integral):
            raise InputTypeError(f"max_rows must be a whole number, got {type(self.max_rows).__name__}")
        object.__setattr__(self, "max_rows", int(self.max_rows))
        if not 1 <= self.max_rows <= _MAX_ROWS:
            raise InputValueError(
                f"max_rows={shown(self.max_rows)} cannot be: at least 1 row of a unit counts, and {_MAX_ROWS:,} at most"
            )
        if self.missing not in get_args(MissingUnit):
            raise InputValueError(
                f"missing={shown(self.missing)} is no rule for rows without a unit: use 'error', or 'drop' to leave them out"
            )

    @property
    def rows_text(self) -> str:
        """Which rows a number of rows is of, after the number."""
        return f"rows that count (at most {self.max_rows:,} for each value of {self.column})"

    @property
    def in_words(self) -> str:
        """What is protected, after "the protected unit is"."""
        counted = f"{self.max_rows:,} count at most" if self.max_rows > 1 else "one counts"
        return f"all rows with one value of {self.column}, of which {counted}"

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a file."""
        return {"column": self.column, "max_rows": self.max_rows, "missing": self.missing}

    @classmethod
    def from_dict(cls, values: Mapping[str, Any]) -> PrivacyUnit:
        """The inverse of :meth:`to_dict`.

        Raises
        ------
        KeyError, TypeError, ValueError
            If an entry is absent, unknown, or not what it must be.
        """
        known = [entry.name for entry in fields(cls)]
        require_known(values, known, "a privacy unit")
        return cls(**{name: values[name] for name in known})

    @classmethod
    def of_file(cls, value: object) -> PrivacyUnit | None:
        """The unit that a file names as ``"row"``, which is None, or by its entries.

        Raises
        ------
        KeyError, TypeError, ValueError
            If it is neither.
        """
        if value == "row":
            return None
        if not isinstance(value, Mapping):
            raise InputValueError(
                f"{shown(value)} is no protected unit: it is 'row', or a column with a number of rows"
            )
        return cls.from_dict(value)


def require_unit(privacy_unit: object, columns: Collection[str], neighbors: Neighbors) -> None:
    """Refuse a privacy unit that cannot serve, before a row is read.

    Parameters
    ----------
    columns : collection of str
        Those of the schema.
    """
    if not isinstance(privacy_unit, PrivacyUnit):
        raise InputTypeError(
            f"privacy_unit must be a dpmoments.PrivacyUnit, got {type(privacy_unit).__name__}: "
            "dpm.PrivacyUnit('person_id', max_rows=5)"
        )
    if neighbors is not Neighbors.ADD_REMOVE:
        raise InputValueError(
            f"a privacy unit is not supported under neighbors={str(neighbors)!r}: how many rows count depends on how many each "
            "unit has, so that their number is not public as that relation takes it to be. Use neighbors='add_remove'"
        )
    if privacy_unit.column in columns:
        raise InputValueError(
            f"the privacy unit's column {privacy_unit.column!r} is in the schema, so that it would be a feature of the release: "
            "leave it out of the schema, or copy it under another name if it is meant as a feature too"
        )
