"""The papers' theorems on accuracy, as numbers: how far an answer may be from the truth, and how many rows bring it how near.

Functions of public numbers and of what was released. One family of theorems a file.
"""

from dpmoments.utility_bounds.normal_rows import normal_smallest_eigenvalue

__all__ = ["normal_smallest_eigenvalue"]
