"""Public description of a table.

Columns, bounds, levels and the affine map into the unit ball. Reads no rows.
"""

from dpmoments.schema.columns import Boolean as Boolean
from dpmoments.schema.columns import Categorical as Categorical
from dpmoments.schema.columns import Column as Column
from dpmoments.schema.columns import Coordinate as Coordinate
from dpmoments.schema.columns import Numeric as Numeric
from dpmoments.schema.columns import SamplingWeight as SamplingWeight
from dpmoments.schema.dates import Date as Date
from dpmoments.schema.derived import DerivedColumn as DerivedColumn
from dpmoments.schema.derived import Power as Power
from dpmoments.schema.derived import Product as Product
from dpmoments.schema.schema import Schema as Schema
from dpmoments.schema.schema import derived_values as derived_values
