"""Exact privacy curves and their inversion, always rounded to the safe side.

A curve is the smallest delta for which a mechanism is (epsilon, delta)-differentially private, as a function of epsilon.
Calibration inverts a curve and is rechecked by evaluating the curve at its result.
"""

from importlib import import_module
from typing import Any

from dpmoments.privacy.curves.gaussian import discrete_gaussian_delta as discrete_gaussian_delta
from dpmoments.privacy.curves.gaussian import discrete_gaussian_log_delta as discrete_gaussian_log_delta
from dpmoments.privacy.curves.gaussian import discrete_gaussian_noise_scale as discrete_gaussian_noise_scale
from dpmoments.privacy.curves.gaussian import discrete_gaussian_rho as discrete_gaussian_rho
from dpmoments.privacy.curves.gaussian import gaussian_delta as gaussian_delta
from dpmoments.privacy.curves.gaussian import gaussian_epsilon as gaussian_epsilon
from dpmoments.privacy.curves.gaussian import gaussian_log_delta as gaussian_log_delta
from dpmoments.privacy.curves.gaussian import gaussian_noise_scale as gaussian_noise_scale
from dpmoments.privacy.curves.gaussian import pure_to_gaussian as pure_to_gaussian
from dpmoments.privacy.curves.zcdp import pure_to_zcdp as pure_to_zcdp
from dpmoments.privacy.curves.zcdp import zcdp_delta as zcdp_delta
from dpmoments.privacy.curves.zcdp import zcdp_epsilon as zcdp_epsilon
from dpmoments.privacy.curves.zcdp import zcdp_log_delta as zcdp_log_delta
from dpmoments.privacy.curves.zcdp import zcdp_noise_scale as zcdp_noise_scale
from dpmoments.privacy.curves.zcdp import zcdp_rho as zcdp_rho


def __getattr__(name: str) -> Any:
    """Load a curve of the papers' draws when it is first used."""
    if name.startswith(("additive_wishart_", "raised_wishart_", "wishart_sampling_")):
        return getattr(import_module("dpmoments.papers.curves"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
