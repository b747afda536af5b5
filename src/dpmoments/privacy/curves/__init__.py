"""Exact privacy curves and their inversion, always rounded to the safe side.

A curve is the smallest delta for which a mechanism is (epsilon, delta)-differentially private, as a function
of epsilon. Calibration inverts a curve and is rechecked by evaluating the curve at its result.
"""

from dpmoments.privacy.curves.discrete_gaussian import (
    discrete_gaussian_delta,
    discrete_gaussian_log_delta,
    discrete_gaussian_noise_scale,
    discrete_gaussian_rho,
)
from dpmoments.privacy.curves.gaussian import (
    gaussian_delta,
    gaussian_epsilon,
    gaussian_log_delta,
    gaussian_noise_scale,
    pure_to_gaussian,
)
from dpmoments.privacy.curves.wishart import (
    additive_wishart_degrees,
    additive_wishart_delta,
    additive_wishart_log_delta,
    additive_wishart_scale,
    raised_wishart_degrees,
    raised_wishart_delta,
    raised_wishart_log_delta,
    raised_wishart_ratio,
    wishart_sampling_degrees,
    wishart_sampling_delta,
    wishart_sampling_log_delta,
    wishart_sampling_padding,
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
    "additive_wishart_degrees",
    "additive_wishart_delta",
    "additive_wishart_log_delta",
    "additive_wishart_scale",
    "discrete_gaussian_delta",
    "discrete_gaussian_log_delta",
    "discrete_gaussian_noise_scale",
    "discrete_gaussian_rho",
    "gaussian_delta",
    "gaussian_epsilon",
    "gaussian_log_delta",
    "gaussian_noise_scale",
    "pure_to_gaussian",
    "pure_to_zcdp",
    "raised_wishart_degrees",
    "raised_wishart_delta",
    "raised_wishart_log_delta",
    "raised_wishart_ratio",
    "wishart_sampling_degrees",
    "wishart_sampling_delta",
    "wishart_sampling_log_delta",
    "wishart_sampling_padding",
    "zcdp_delta",
    "zcdp_epsilon",
    "zcdp_log_delta",
    "zcdp_noise_scale",
    "zcdp_rho",
]
