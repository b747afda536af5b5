"""Every analysis, gathered for the class of releases, which has each as a method."""

from __future__ import annotations

from dpmoments.analysis.components import pca
from dpmoments.analysis.correlations import correlations
from dpmoments.analysis.cross_table import cross_table
from dpmoments.analysis.description import describe
from dpmoments.analysis.discriminant import lda
from dpmoments.analysis.distances import mahalanobis
from dpmoments.analysis.graphical_model import graphical_lasso
from dpmoments.analysis.group_means import group_means
from dpmoments.analysis.group_tests import t_test
from dpmoments.analysis.lasso import lasso
from dpmoments.analysis.partial_correlations import partial_correlation
from dpmoments.analysis.regression import ols, ridge
from dpmoments.analysis.variance_analysis import anova

__all__ = [
    "anova",
    "correlations",
    "cross_table",
    "describe",
    "graphical_lasso",
    "group_means",
    "lasso",
    "lda",
    "mahalanobis",
    "ols",
    "partial_correlation",
    "pca",
    "ridge",
    "t_test",
]
