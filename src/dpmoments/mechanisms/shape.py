"""What a plan may know of the moments to release before any row is read."""

from __future__ import annotations

from dataclasses import dataclass

from dpmoments.privacy.neighbors import Neighbors
from dpmoments.schema.rough_scale import RoughScale
from dpmoments.schema.schema import Schema

__all__ = ["MomentShape"]


@dataclass(frozen=True, slots=True)
class MomentShape:
    """What is public about the moments to release.

    Attributes
    ----------
    n_features : int
        d, after encoding.
    n_rows : int or None
        The number of rows, where it is public, else None. Under ``replace_one`` no plan uses it where a rule can drop a row: the
        number of those that count is then private.
    mean : bool
        Whether count and mean are wanted beside the second moment.
    row_norm : float or None
        Bound on the Euclidean norm of an encoded row: 1 (the unit ball), or None where the schema gives no bound.
    rough_scale : RoughScale or None
        Where the schema gives rough scales in place of bounds, what they say of the encoded rows.
    drops_rows : bool
        Whether a rule of the schema can drop a row.
    has_numbers : bool
        Whether some column holds numbers, other than flags and levels, of which most rows may lie far inside their bounds.
    """

    n_features: int
    n_rows: int | None = None
    mean: bool = True
    row_norm: float | None = 1.0
    rough_scale: RoughScale | None = None
    drops_rows: bool = False
    has_numbers: bool = False

    @classmethod
    def of(cls, schema: Schema, *, mean: bool, n_rows: int | None = None) -> MomentShape:
        """The shape of the moments of a table with this schema."""
        return cls(
            schema.n_features,
            n_rows=n_rows,
            mean=mean,
            row_norm=None if schema.row_norm is None else 1.0,
            rough_scale=schema.rough_scale(mean=mean),
            drops_rows=schema.drops_rows,
            has_numbers=schema.has_numbers,
        )

    def __post_init__(self) -> None:
        if self.n_features < 1:
            raise ValueError(f"n_features={self.n_features}: a table needs at least one feature")
        if self.n_rows is not None and self.n_rows < 0:
            raise ValueError(f"n_rows={self.n_rows} cannot be negative")

    def count_is_public(self, neighbors: Neighbors) -> bool:
        """Whether the number of rows that count may be told as it is."""
        return neighbors.count_is_public(self.drops_rows)
