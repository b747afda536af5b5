"""Noise: entropy, exact integer noise, random matrices, directions on the sphere.

Noise distributions and their files.
"""

from dpmoments.noise.discrete import discrete_gaussian as discrete_gaussian
from dpmoments.noise.discrete import discrete_laplace as discrete_laplace
from dpmoments.noise.entropy import SecureGenerator as SecureGenerator
from dpmoments.noise.entropy import insecure_generator
from dpmoments.noise.entropy import secure_generator as secure_generator
from dpmoments.noise.matrices import inverse_wishart as inverse_wishart
from dpmoments.noise.matrices import isotropic as isotropic
from dpmoments.noise.matrices import matrix_laplace
from dpmoments.noise.matrices import symmetric_gaussian as symmetric_gaussian
from dpmoments.noise.matrices import wishart as wishart
from dpmoments.noise.models import AdditiveModel as AdditiveModel
from dpmoments.noise.models import NoiseModel as NoiseModel
from dpmoments.noise.sphere import sample_bingham
from dpmoments.noise.terms import NoiseLaw
from dpmoments.noise.terms import NoiseTerm as NoiseTerm

__all__ = ["NoiseLaw", "insecure_generator", "matrix_laplace", "sample_bingham"]
