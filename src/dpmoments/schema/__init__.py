"""What is public about a table: columns, bounds and levels, and the affine map into the unit ball. Reads no record."""

from dpmoments.schema.columns import Boolean, Categorical, Column, Coordinate
from dpmoments.schema.dates import Date
from dpmoments.schema.derived import DerivedColumn, Power, Product, derived_values
from dpmoments.schema.numeric import Numeric
from dpmoments.schema.schema import Schema

__all__ = [
    "Boolean",
    "Categorical",
    "Column",
    "Coordinate",
    "Date",
    "DerivedColumn",
    "Numeric",
    "Power",
    "Product",
    "Schema",
    "derived_values",
]
