"""Noise: entropy, exact integer noise, random matrices, directions on the sphere.

Noise distributions and their files.
"""

from importlib import import_module
from typing import Any

from dpmoments.noise.discrete import discrete_gaussian as discrete_gaussian
from dpmoments.noise.discrete import discrete_laplace as discrete_laplace
from dpmoments.noise.entropy import SecureGenerator as SecureGenerator
from dpmoments.noise.entropy import insecure_generator
from dpmoments.noise.entropy import secure_generator as secure_generator
from dpmoments.noise.matrices import isotropic as isotropic
from dpmoments.noise.matrices import matrix_laplace
from dpmoments.noise.matrices import symmetric_gaussian as symmetric_gaussian
from dpmoments.noise.models import AdditiveModel as AdditiveModel
from dpmoments.noise.models import NoiseModel as NoiseModel
from dpmoments.noise.terms import NoiseLaw
from dpmoments.noise.terms import NoiseTerm as NoiseTerm

__all__ = ["NoiseLaw", "insecure_generator", "matrix_laplace", "sample_bingham"]


def __getattr__(name: str) -> Any:
    """Load a sampler that only papers' mechanisms use."""
    if name == "sample_bingham":
        return import_module("dpmoments.papers.sphere").sample_bingham
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
