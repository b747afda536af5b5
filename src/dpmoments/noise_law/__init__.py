"""The public laws of the noise in a release: what repairs, error bars, forecasts and checks may know about it."""

from dpmoments.noise_law.base import (
    NoiseLaw,
    noise_law_classes,
    register_noise_law,
)
from dpmoments.noise_law.laws import (
    GaussianNoise,
    IsotropicNoise,
    LaplaceNoise,
    MatrixLaplaceNoise,
    WishartNoise,
)
from dpmoments.noise_law.mean_noise import (
    MeanNoise,
)
from dpmoments.noise_law.normal_pivots import (
    InverseNormalPivot,
    LastStepPivot,
)
from dpmoments.noise_law.pivots import (
    MomentInterval,
    MomentPivot,
    moment_pivot_classes,
    register_moment_pivot,
)
from dpmoments.noise_law.pooled import (
    CarriedNoise,
    PooledNoise,
)
from dpmoments.noise_law.rotated import (
    RotatedNoise,
)
from dpmoments.noise_law.wishart_pivot import (
    WishartPivot,
)

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
    "RotatedNoise",
    "WishartNoise",
    "WishartPivot",
    "moment_pivot_classes",
    "noise_law_classes",
    "register_moment_pivot",
    "register_noise_law",
]
