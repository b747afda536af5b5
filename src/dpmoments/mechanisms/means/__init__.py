"""Mechanisms for means alone: one estimator a file; ``base.py`` is the contract they obey."""

from dpmoments.mechanisms.means.coinpress import CoinPressMean
from dpmoments.mechanisms.means.log_scale_histogram import LogScaleHistogramMean
from dpmoments.mechanisms.means.variance_aware import VarianceAware
from dpmoments.papers.mechanisms.karwa_vadhan import KarwaVadhan
from dpmoments.papers.mechanisms.naive import Naive
from dpmoments.papers.mechanisms.symmetric_quantiles import SymmetricQuantiles

__all__ = ["CoinPressMean", "KarwaVadhan", "LogScaleHistogramMean", "Naive", "SymmetricQuantiles", "VarianceAware"]
