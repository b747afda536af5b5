from dpmoments.mechanisms.log_scale_histogram import LogScaleHistogramMean as LogScaleHistogramMean
from dpmoments.mechanisms.means.bounded_sums import BoundedSums as BoundedSums
from dpmoments.mechanisms.means.coinpress import CoinPressMean as CoinPressMean
from dpmoments.mechanisms.means.variance_aware import VarianceAware as VarianceAware
from dpmoments.papers.mechanisms.karwa_vadhan import KarwaVadhan as KarwaVadhan
from dpmoments.papers.mechanisms.naive import Naive as Naive
from dpmoments.papers.mechanisms.symmetric_quantiles import SymmetricQuantiles as SymmetricQuantiles
