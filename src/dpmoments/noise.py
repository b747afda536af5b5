"""Noise: entropy, exact integer noise, random matrices, directions on the sphere.

Noise distributions and their files.
"""

from importlib import import_module
from typing import Any

from dpmoments.moments.law import NoiseLaw
from dpmoments.moments.models import AdditiveModel as AdditiveModel
from dpmoments.moments.models import NoiseModel as NoiseModel
from dpmoments.moments.terms import NoiseTerm as NoiseTerm
from dpmoments.privacy.sampling import SecureGenerator as SecureGenerator
from dpmoments.privacy.sampling import discrete_gaussian as discrete_gaussian
from dpmoments.privacy.sampling import discrete_laplace as discrete_laplace
from dpmoments.privacy.sampling import insecure_generator, matrix_laplace
from dpmoments.privacy.sampling import isotropic as isotropic
from dpmoments.privacy.sampling import secure_generator as secure_generator
from dpmoments.privacy.sampling import symmetric_gaussian as symmetric_gaussian

__all__ = ["NoiseLaw", "insecure_generator", "matrix_laplace", "sample_bingham"]  # noqa: F822


def __getattr__(name: str) -> Any:
    """Load a sampler that only papers' mechanisms use."""
    if name == "sample_bingham":
        return import_module("dpmoments.papers.sphere").sample_bingham
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
