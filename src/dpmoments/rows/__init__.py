"""Data plane: the only package that sees records."""

from dpmoments.rows.histogram import Histogram as Histogram
from dpmoments.rows.moments import ExactMoments
from dpmoments.rows.rows import Rows

__all__ = ["ExactMoments", "Rows"]
