"""Noise: entropy, exact integer noise, random matrices, directions on the sphere."""

from dpmoments.noise.dependent import InverseNormalPivot as InverseNormalPivot
from dpmoments.noise.dependent import LastStepPivot as LastStepPivot
from dpmoments.noise.dependent import WishartPivot as WishartPivot
from dpmoments.noise.discrete import discrete_gaussian as discrete_gaussian
from dpmoments.noise.discrete import discrete_laplace as discrete_laplace
from dpmoments.noise.entropy import SecureGenerator as SecureGenerator
from dpmoments.noise.entropy import insecure_generator
from dpmoments.noise.entropy import secure_generator as secure_generator
from dpmoments.noise.families import GaussianNoise as GaussianNoise
from dpmoments.noise.families import IsotropicNoise as IsotropicNoise
from dpmoments.noise.families import LaplaceNoise as LaplaceNoise
from dpmoments.noise.families import MatrixLaplaceNoise as MatrixLaplaceNoise
from dpmoments.noise.families import MeanNoise as MeanNoise
from dpmoments.noise.families import WishartNoise as WishartNoise
from dpmoments.noise.law import MomentInterval as MomentInterval
from dpmoments.noise.law import MomentPivot as MomentPivot
from dpmoments.noise.law import NoiseLaw
from dpmoments.noise.law import moment_pivot_classes as moment_pivot_classes
from dpmoments.noise.law import noise_law_classes as noise_law_classes
from dpmoments.noise.law import register_moment_pivot as register_moment_pivot
from dpmoments.noise.law import register_noise_law as register_noise_law
from dpmoments.noise.matrices import inverse_wishart as inverse_wishart
from dpmoments.noise.matrices import isotropic as isotropic
from dpmoments.noise.matrices import matrix_laplace
from dpmoments.noise.matrices import symmetric_gaussian as symmetric_gaussian
from dpmoments.noise.matrices import wishart as wishart
from dpmoments.noise.pooled import CarriedNoise as CarriedNoise
from dpmoments.noise.pooled import PooledNoise as PooledNoise
from dpmoments.noise.sphere import sample_bingham

__all__ = ["NoiseLaw", "insecure_generator", "matrix_laplace", "sample_bingham"]
