"""Mechanisms: one published algorithm a file; ``base.py`` is the contract they obey, ``registry.py`` finds them by name."""

from dpmoments.mechanisms import means
from dpmoments.mechanisms.adaptive_ball import AdaptiveBall
from dpmoments.mechanisms.auto import Auto
from dpmoments.mechanisms.base import MomentShape
from dpmoments.mechanisms.coinpress import CoinPress
from dpmoments.mechanisms.gaussian import Gaussian
from dpmoments.mechanisms.isotropic import Isotropic
from dpmoments.mechanisms.laplace import Laplace
from dpmoments.mechanisms.log_scale_histogram import LogScaleHistogram
from dpmoments.mechanisms.matrix_laplace import MatrixLaplace
from dpmoments.papers.mechanisms.additive_wishart import AdditiveWishart
from dpmoments.papers.mechanisms.inverse_gaussian import InverseGaussian
from dpmoments.papers.mechanisms.inverse_wishart import InverseWishart
from dpmoments.papers.mechanisms.iterative_eigenvectors import IterativeEigenvectors
from dpmoments.papers.mechanisms.johnson_lindenstrauss import JohnsonLindenstrauss
from dpmoments.papers.mechanisms.kapralov_talwar import KapralovTalwar
from dpmoments.papers.mechanisms.private_preconditioning import PrivatePreconditioning

__all__ = [
    "AdaptiveBall",
    "AdditiveWishart",
    "Auto",
    "CoinPress",
    "Gaussian",
    "InverseGaussian",
    "InverseWishart",
    "Isotropic",
    "IterativeEigenvectors",
    "JohnsonLindenstrauss",
    "KapralovTalwar",
    "Laplace",
    "LogScaleHistogram",
    "MatrixLaplace",
    "MomentShape",
    "PrivatePreconditioning",
    "means",
]
