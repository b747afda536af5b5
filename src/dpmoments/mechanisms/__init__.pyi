from dpmoments.mechanisms import means as means
from dpmoments.mechanisms.adaptive_ball import AdaptiveBall as AdaptiveBall
from dpmoments.mechanisms.auto import Auto as Auto
from dpmoments.mechanisms.coinpress import CoinPress as CoinPress
from dpmoments.mechanisms.gaussian import Gaussian as Gaussian
from dpmoments.mechanisms.isotropic import Isotropic as Isotropic
from dpmoments.mechanisms.laplace import Laplace as Laplace
from dpmoments.mechanisms.log_scale_histogram import LogScaleHistogram as LogScaleHistogram
from dpmoments.mechanisms.matrix_laplace import MatrixLaplace as MatrixLaplace
from dpmoments.papers.mechanisms.additive_wishart import AdditiveWishart as AdditiveWishart
from dpmoments.papers.mechanisms.inverse_gaussian import InverseGaussian as InverseGaussian
from dpmoments.papers.mechanisms.inverse_wishart import InverseWishart as InverseWishart
from dpmoments.papers.mechanisms.iterative_eigenvectors import IterativeEigenvectors as IterativeEigenvectors
from dpmoments.papers.mechanisms.johnson_lindenstrauss import JohnsonLindenstrauss as JohnsonLindenstrauss
from dpmoments.papers.mechanisms.kapralov_talwar import KapralovTalwar as KapralovTalwar
from dpmoments.papers.mechanisms.private_preconditioning import PrivatePreconditioning as PrivatePreconditioning

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
    "PrivatePreconditioning",
    "means",
]
