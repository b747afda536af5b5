"""Public tables for examples, tests and benchmarks.

The tables are public, so loading one spends nothing. Their schemas hold bounds and levels from codebooks,
never from the rows, so that they show what a curator of private data would write.
"""

from dpmoments.datasets.tables import (
    Dataset,
    adult,
    airfoil,
    wine,
)

__all__ = [
    "Dataset",
    "adult",
    "airfoil",
    "wine",
]
