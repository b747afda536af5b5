"""Mechanisms, one published algorithm per file; ``base.py`` is their contract, ``registry.py`` finds them by name."""

from typing import Any

from dpmoments.mechanisms import means
from dpmoments.mechanisms.adaptive_ball import AdaptiveBall
from dpmoments.mechanisms.auto import Auto
from dpmoments.mechanisms.coinpress import CoinPress
from dpmoments.mechanisms.entries import MOMENTS, class_named
from dpmoments.mechanisms.gaussian import Gaussian
from dpmoments.mechanisms.isotropic import Isotropic
from dpmoments.mechanisms.laplace import Laplace
from dpmoments.mechanisms.log_scale_histogram import LogScaleHistogram
from dpmoments.mechanisms.matrix_laplace import MatrixLaplace
from dpmoments.mechanisms.shape import MomentShape as MomentShape

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


def __getattr__(name: str) -> Any:
    """Load and return a class that only papers use."""
    if name in __all__:
        return class_named(name, MOMENTS)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
