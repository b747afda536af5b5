"""The public laws of the noise in a release: what repairs, error bars, forecasts and checks may know about it."""

from dpmoments.noise_law.base import NoiseLaw, noise_law_classes, register_noise_law
from dpmoments.noise_law.laws import GaussianNoise, IsotropicNoise, LaplaceNoise, MatrixLaplaceNoise, WishartNoise
from dpmoments.noise_law.mean_noise import MeanNoise

__all__ = [
    "GaussianNoise",
    "IsotropicNoise",
    "LaplaceNoise",
    "MatrixLaplaceNoise",
    "MeanNoise",
    "NoiseLaw",
    "WishartNoise",
    "noise_law_classes",
    "register_noise_law",
]
