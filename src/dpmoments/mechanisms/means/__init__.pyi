from dpmoments.mechanisms.means.base import BoundedSums as BoundedSums
from dpmoments.papers.mechanisms.coinpress_mean import CoinPressMean as CoinPressMean
from dpmoments.papers.mechanisms.coordinatewise import KarwaVadhan as KarwaVadhan
from dpmoments.papers.mechanisms.coordinatewise import Naive as Naive
from dpmoments.papers.mechanisms.coordinatewise import SymmetricQuantiles as SymmetricQuantiles
from dpmoments.papers.mechanisms.log_scale_histogram import LogScaleHistogramMean as LogScaleHistogramMean
from dpmoments.papers.mechanisms.variance_aware import VarianceAware as VarianceAware
