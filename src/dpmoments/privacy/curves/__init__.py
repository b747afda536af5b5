"""Exact privacy curves and their inversion, always rounded to the safe side.

A curve is the smallest delta for which a mechanism is (epsilon, delta)-differentially private, as a function
of epsilon. Calibration inverts a curve and is rechecked by evaluating the curve at its result.
"""

from dpmoments.privacy.curves.discrete_gaussian import (
    discrete_gaussian_delta,
    discrete_gaussian_log_delta,
    discrete_gaussian_noise_scale,
)
from dpmoments.privacy.curves.gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_log_delta,
    gaussian_noise_scale,
)
from dpmoments.privacy.curves.zcdp import (
    pure_to_zcdp,
    zcdp_delta,
    zcdp_epsilon,
    zcdp_log_delta,
    zcdp_noise_scale,
    zcdp_rho,
)

__all__ = [
    "discrete_gaussian_delta",
    "discrete_gaussian_log_delta",
    "discrete_gaussian_noise_scale",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_log_delta",
    "gaussian_noise_scale",
    "pure_to_zcdp",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_log_delta",
    "zcdp_noise_scale",
    "zcdp_rho",
]
