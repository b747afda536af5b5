"""The data plane: the only place in the library that sees records."""

from dpmoments.rows.moments import Moments
from dpmoments.rows.rows import Histogram, Rows

__all__ = ["Histogram", "Moments", "Rows"]
