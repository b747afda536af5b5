"""Public tables for examples, tests and benchmarks.

Loading a table spends nothing. The schemas hold bounds and levels from codebooks, never from the rows, as a curator of
private data would write them.
"""

from dpmoments.datasets.tables import (
    adult,
    airfoil,
    wine,
)

__all__ = [
    "adult",
    "airfoil",
    "wine",
]
