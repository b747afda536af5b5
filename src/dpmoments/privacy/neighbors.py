"""Neighbouring relations: which two tables a guarantee makes hard to tell apart, and what follows from that."""

from __future__ import annotations

from enum import StrEnum

from dpmoments.foundation.values import shown

__all__ = ["Neighbors"]


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
            raise ValueError(
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
