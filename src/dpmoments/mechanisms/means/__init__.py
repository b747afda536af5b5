"""Mechanisms for means alone: one estimator a file; ``base.py`` is the contract they obey."""

from dpmoments.mechanisms.means.coinpress import CoinPressMean
from dpmoments.mechanisms.means.karwa_vadhan import KarwaVadhan
from dpmoments.mechanisms.means.log_scale_histogram import LogScaleHistogramMean
from dpmoments.mechanisms.means.naive import Naive
from dpmoments.mechanisms.means.symmetric_quantiles import SymmetricQuantiles
from dpmoments.mechanisms.means.variance_aware import VarianceAware

__all__ = ["CoinPressMean", "KarwaVadhan", "LogScaleHistogramMean", "Naive", "SymmetricQuantiles", "VarianceAware"]
