"""Noise: entropy, exact integer noise, random matrices, directions on the sphere."""

from dpmoments.noise.entropy import SecureGenerator, insecure_generator, secure_generator
from dpmoments.noise.lattice import discrete_gaussian, discrete_laplace
from dpmoments.noise.matrices import inverse_wishart, isotropic, matrix_laplace, symmetric_gaussian, wishart
from dpmoments.noise.sphere import sample_bingham

__all__ = [
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
