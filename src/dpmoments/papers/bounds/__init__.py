"""The papers' theorems on accuracy, as numbers: how far an answer may be from the truth, and how many rows bring it how near.

Functions of public numbers and of what was released. One family of theorems a file.
"""

from dpmoments.mechanisms.coinpress_schedule import (
    normal_smallest_eigenvalue,
)
from dpmoments.papers.bounds.basic_mechanisms import (
    exponential_mechanism_failure,
    largest_noise,
    noise_norm,
)
from dpmoments.papers.bounds.coinpress import (
    coinpress_covariance_error,
    coinpress_covariance_rows_needed,
    coinpress_covariance_theorem,
    coinpress_mean_error,
    coinpress_mean_rows_needed,
    coinpress_mean_theorem,
    theorem_shares,
)
from dpmoments.papers.bounds.eigenvectors import (
    cap_measure,
    direction_failure,
    direction_shortfall,
    direction_shortfall_closed_form,
    eigenvector_release_error,
    least_leading_eigenvalue,
    log_partition_at_most,
    rank_error,
    reconstruction_error,
    released_eigenvector_error,
    weighted_shortfall,
)
from dpmoments.papers.bounds.lecture import (
    empirical_covariance_error,
    noisy_second_moment_error,
    noisy_second_moment_rows_needed,
    preconditioned_covariance_error,
    preconditioned_covariance_rows_needed,
    preconditioning_round_holds,
    preconditioning_rows_needed,
    spectral_sampling_error,
)
from dpmoments.papers.bounds.wishart_sampling import (
    ProjectionBound,
    additive_wishart_bound,
    gaussian_noise_bound,
    johnson_lindenstrauss_bound,
    posterior_draw_radius,
    projected_ridge_radius,
    released_coefficient_radius,
    ridge_distance_bound,
)

__all__ = [
    "ProjectionBound",
    "additive_wishart_bound",
    "cap_measure",
    "coinpress_covariance_error",
    "coinpress_covariance_rows_needed",
    "coinpress_covariance_theorem",
    "coinpress_mean_error",
    "coinpress_mean_rows_needed",
    "coinpress_mean_theorem",
    "direction_failure",
    "direction_shortfall",
    "direction_shortfall_closed_form",
    "eigenvector_release_error",
    "empirical_covariance_error",
    "exponential_mechanism_failure",
    "gaussian_noise_bound",
    "johnson_lindenstrauss_bound",
    "largest_noise",
    "least_leading_eigenvalue",
    "log_partition_at_most",
    "noise_norm",
    "noisy_second_moment_error",
    "noisy_second_moment_rows_needed",
    "normal_smallest_eigenvalue",
    "posterior_draw_radius",
    "preconditioned_covariance_error",
    "preconditioned_covariance_rows_needed",
    "preconditioning_round_holds",
    "preconditioning_rows_needed",
    "projected_ridge_radius",
    "rank_error",
    "reconstruction_error",
    "released_coefficient_radius",
    "released_eigenvector_error",
    "ridge_distance_bound",
    "spectral_sampling_error",
    "theorem_shares",
    "weighted_shortfall",
]
