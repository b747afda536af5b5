"""The papers' theorems on accuracy, as numbers: how far an answer may be from the truth, and how many rows bring it how near.

Functions of public numbers and of what was released. One family of theorems a file.
"""

from dpmoments.mechanisms.coinpress_schedule import normal_smallest_eigenvalue as normal_smallest_eigenvalue
from dpmoments.papers.bounds.basic_mechanisms import exponential_mechanism_failure as exponential_mechanism_failure
from dpmoments.papers.bounds.basic_mechanisms import largest_noise as largest_noise
from dpmoments.papers.bounds.basic_mechanisms import noise_norm as noise_norm
from dpmoments.papers.bounds.coinpress import coinpress_covariance_error as coinpress_covariance_error
from dpmoments.papers.bounds.coinpress import coinpress_covariance_rows_needed as coinpress_covariance_rows_needed
from dpmoments.papers.bounds.coinpress import coinpress_covariance_theorem as coinpress_covariance_theorem
from dpmoments.papers.bounds.coinpress import coinpress_mean_error as coinpress_mean_error
from dpmoments.papers.bounds.coinpress import coinpress_mean_rows_needed as coinpress_mean_rows_needed
from dpmoments.papers.bounds.coinpress import coinpress_mean_theorem as coinpress_mean_theorem
from dpmoments.papers.bounds.coinpress import theorem_shares as theorem_shares
from dpmoments.papers.bounds.eigenvectors import cap_measure as cap_measure
from dpmoments.papers.bounds.eigenvectors import direction_failure as direction_failure
from dpmoments.papers.bounds.eigenvectors import direction_shortfall as direction_shortfall
from dpmoments.papers.bounds.eigenvectors import direction_shortfall_closed_form as direction_shortfall_closed_form
from dpmoments.papers.bounds.eigenvectors import eigenvector_release_error as eigenvector_release_error
from dpmoments.papers.bounds.eigenvectors import least_leading_eigenvalue as least_leading_eigenvalue
from dpmoments.papers.bounds.eigenvectors import log_partition_at_most as log_partition_at_most
from dpmoments.papers.bounds.eigenvectors import rank_error as rank_error
from dpmoments.papers.bounds.eigenvectors import reconstruction_error as reconstruction_error
from dpmoments.papers.bounds.eigenvectors import released_eigenvector_error as released_eigenvector_error
from dpmoments.papers.bounds.eigenvectors import weighted_shortfall as weighted_shortfall
from dpmoments.papers.bounds.lecture import empirical_covariance_error as empirical_covariance_error
from dpmoments.papers.bounds.lecture import noisy_second_moment_error as noisy_second_moment_error
from dpmoments.papers.bounds.lecture import noisy_second_moment_rows_needed as noisy_second_moment_rows_needed
from dpmoments.papers.bounds.lecture import preconditioned_covariance_error as preconditioned_covariance_error
from dpmoments.papers.bounds.lecture import (
    preconditioned_covariance_rows_needed as preconditioned_covariance_rows_needed,
)
from dpmoments.papers.bounds.lecture import preconditioning_round_holds as preconditioning_round_holds
from dpmoments.papers.bounds.lecture import preconditioning_rows_needed as preconditioning_rows_needed
from dpmoments.papers.bounds.lecture import spectral_sampling_error as spectral_sampling_error
from dpmoments.papers.bounds.wishart_sampling import ProjectionBound as ProjectionBound
from dpmoments.papers.bounds.wishart_sampling import additive_wishart_bound as additive_wishart_bound
from dpmoments.papers.bounds.wishart_sampling import gaussian_noise_bound as gaussian_noise_bound
from dpmoments.papers.bounds.wishart_sampling import johnson_lindenstrauss_bound as johnson_lindenstrauss_bound
from dpmoments.papers.bounds.wishart_sampling import posterior_draw_radius as posterior_draw_radius
from dpmoments.papers.bounds.wishart_sampling import projected_ridge_radius as projected_ridge_radius
from dpmoments.papers.bounds.wishart_sampling import released_coefficient_radius as released_coefficient_radius
from dpmoments.papers.bounds.wishart_sampling import ridge_distance_bound as ridge_distance_bound
