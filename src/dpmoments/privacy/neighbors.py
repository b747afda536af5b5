"""Neighbouring relations: which two tables a guarantee makes hard to tell apart, and what follows from that."""

from __future__ import annotations

from enum import StrEnum

from dpmoments.plain_values import shown

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
    def count_is_public(self) -> bool:
        """Whether the number of rows may be told as it is."""
        return self is Neighbors.REPLACE_ONE

    @property
    def keeps_dropped_rows(self) -> bool:
        """Whether a row dropped by its column rules still counts, as a row of zeros; otherwise it is left out altogether.

        Under ``replace_one`` the number of rows is public, so a row that only one of two neighbours drops must stay in the count.
        """
        return self.count_is_public

    def public_count(self, n_rows: float) -> float | None:
        """``n_rows`` under ``replace_one``, where the number of rows is public; else None.

        Examples
        --------
        >>> Neighbors.REPLACE_ONE.public_count(100), Neighbors.ADD_REMOVE.public_count(100)
        (100.0, None)
        """
        return float(n_rows) if self.count_is_public else None
