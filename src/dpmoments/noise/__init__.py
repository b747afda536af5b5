"""Noise: entropy, exact integer noise, random matrices, directions on the sphere; its laws, and what files hold of them."""

from dpmoments.noise.discrete import discrete_gaussian, discrete_laplace
from dpmoments.noise.entropy import SecureGenerator, insecure_generator, secure_generator
from dpmoments.noise.matrices import inverse_wishart, isotropic, matrix_laplace, symmetric_gaussian, wishart
from dpmoments.noise.models import AdditiveModel, NoiseModel
from dpmoments.noise.sphere import sample_bingham
from dpmoments.noise.terms import NoiseLaw, NoiseTerm

__all__ = [
    "AdditiveModel",
    "NoiseLaw",
    "NoiseModel",
    "NoiseTerm",
    "SecureGenerator",
    "discrete_gaussian",
    "discrete_laplace",
    "insecure_generator",
    "inverse_wishart",
    "isotropic",
    "matrix_laplace",
    "sample_bingham",
    "secure_generator",
    "symmetric_gaussian",
    "wishart",
]
