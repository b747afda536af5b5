"""Table of mechanisms: the class of each name, loaded on first use."""

from __future__ import annotations

from collections.abc import Mapping

MOMENTS: Mapping[str, str] = {
    "additive-wishart": "dpmoments.papers.mechanisms.additive_wishart:AdditiveWishart",
    "auto": "dpmoments.mechanisms.auto:Auto",
    "coinpress": "dpmoments.papers.mechanisms.coinpress:CoinPress",
    "gaussian": "dpmoments.mechanisms.additive:Gaussian",
    "inverse-gaussian": "dpmoments.papers.mechanisms.inverse_gaussian:InverseGaussian",
    "inverse-wishart": "dpmoments.papers.mechanisms.wishart_sampling:InverseWishart",
    "isotropic": "dpmoments.mechanisms.additive:Isotropic",
    "iterative-eigenvectors": "dpmoments.papers.mechanisms.eigenvectors:IterativeEigenvectors",
    "johnson-lindenstrauss": "dpmoments.papers.mechanisms.wishart_sampling:JohnsonLindenstrauss",
    "kapralov-talwar": "dpmoments.papers.mechanisms.eigenvectors:KapralovTalwar",
    "laplace": "dpmoments.mechanisms.additive:Laplace",
    "log-scale-histogram": "dpmoments.papers.mechanisms.log_scale_histogram:LogScaleHistogram",
    "matrix-laplace": "dpmoments.mechanisms.additive:MatrixLaplace",
    "private-preconditioning": "dpmoments.papers.mechanisms.private_preconditioning:PrivatePreconditioning",
    "standardized": "dpmoments.mechanisms.standardized:Standardized",
}
"""Mechanisms of moments by registry name, sorted."""

MEANS: Mapping[str, str] = {
    "bounded-sums": "dpmoments.mechanisms.means.base:BoundedSums",
    "coinpress": "dpmoments.papers.mechanisms.coinpress_mean:CoinPressMean",
    "karwa-vadhan": "dpmoments.papers.mechanisms.coordinatewise:KarwaVadhan",
    "log-scale-histogram": "dpmoments.papers.mechanisms.log_scale_histogram:LogScaleHistogramMean",
    "naive": "dpmoments.papers.mechanisms.coordinatewise:Naive",
    "symq": "dpmoments.papers.mechanisms.coordinatewise:SymmetricQuantiles",
    "variance-aware": "dpmoments.papers.mechanisms.variance_aware:VarianceAware",
}
"""Mechanisms of means by registry name, sorted."""
