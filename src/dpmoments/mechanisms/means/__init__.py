"""Mechanisms for mean-only releases, one estimator per file; ``base.py`` is their contract."""

from typing import Any

from dpmoments.mechanisms.entries import MEANS, class_named
from dpmoments.mechanisms.means.bounded_sums import BoundedSums
from dpmoments.mechanisms.means.coinpress import CoinPressMean
from dpmoments.mechanisms.means.log_scale_histogram import LogScaleHistogramMean
from dpmoments.mechanisms.means.variance_aware import VarianceAware

__all__ = [
    "BoundedSums",
    "CoinPressMean",
    "KarwaVadhan",
    "LogScaleHistogramMean",
    "Naive",
    "SymmetricQuantiles",
    "VarianceAware",
]


def __getattr__(name: str) -> Any:
    """Load and return a class that only papers use."""
    if name in __all__:
        return class_named(name, MEANS)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return list(__all__)
