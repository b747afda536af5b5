"""The papers' theorems on accuracy, as numbers: how far an answer may be from the truth, and how many rows bring it how near.

Functions of public numbers and of what was released. One family of theorems a file.
"""

from dpmoments.utility_bounds.basic_mechanisms import exponential_mechanism_failure, largest_noise, noise_norm
from dpmoments.utility_bounds.direction_sampling import (
    cap_measure,
    direction_failure,
    direction_shortfall,
    direction_shortfall_closed_form,
    log_partition_at_most,
    weighted_shortfall,
)
from dpmoments.utility_bounds.eigenvector_release import (
    eigenvector_release_error,
    least_leading_eigenvalue,
    rank_error,
    reconstruction_error,
    released_eigenvector_error,
)

__all__ = [
    "cap_measure",
    "direction_failure",
    "direction_shortfall",
    "direction_shortfall_closed_form",
    "eigenvector_release_error",
    "exponential_mechanism_failure",
    "largest_noise",
    "least_leading_eigenvalue",
    "log_partition_at_most",
    "noise_norm",
    "rank_error",
    "reconstruction_error",
    "released_eigenvector_error",
    "weighted_shortfall",
]
