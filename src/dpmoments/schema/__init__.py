"""What is public about a table: columns, bounds and levels, and the affine map into the unit ball. Reads no record."""

from dpmoments.schema.columns import Boolean, Categorical, Column, Coordinate, Numeric
from dpmoments.schema.schema import Schema

__all__ = ["Boolean", "Categorical", "Column", "Coordinate", "Numeric", "Schema"]
