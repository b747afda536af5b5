"""Noise: entropy, exact integer noise, random matrices, directions on the sphere."""

from dpmoments.noise.dependent import InverseNormalPivot, LastStepPivot, WishartPivot
from dpmoments.noise.discrete import discrete_gaussian, discrete_laplace
from dpmoments.noise.entropy import SecureGenerator, insecure_generator, secure_generator
from dpmoments.noise.families import (
    GaussianNoise,
    IsotropicNoise,
    LaplaceNoise,
    MatrixLaplaceNoise,
    MeanNoise,
    WishartNoise,
)
from dpmoments.noise.law import (
    MomentInterval,
    MomentPivot,
    NoiseLaw,
    moment_pivot_classes,
    noise_law_classes,
    register_moment_pivot,
    register_noise_law,
)
from dpmoments.noise.matrices import inverse_wishart, isotropic, matrix_laplace, symmetric_gaussian, wishart
from dpmoments.noise.pooled import CarriedNoise, PooledNoise
from dpmoments.noise.sphere import sample_bingham

__all__ = [
    "CarriedNoise",
    "GaussianNoise",
    "InverseNormalPivot",
    "IsotropicNoise",
    "LaplaceNoise",
    "LastStepPivot",
    "MatrixLaplaceNoise",
    "MeanNoise",
    "MomentInterval",
    "MomentPivot",
    "NoiseLaw",
    "PooledNoise",
    "SecureGenerator",
    "WishartNoise",
    "WishartPivot",
    "discrete_gaussian",
    "discrete_laplace",
    "insecure_generator",
    "inverse_wishart",
    "isotropic",
    "matrix_laplace",
    "moment_pivot_classes",
    "noise_law_classes",
    "register_moment_pivot",
    "register_noise_law",
    "sample_bingham",
    "secure_generator",
    "symmetric_gaussian",
    "wishart",
]
