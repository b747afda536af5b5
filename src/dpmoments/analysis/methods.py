"""Every analysis, gathered for the class of releases, which has each as a method."""

from __future__ import annotations

from dpmoments.analysis.components import pca
from dpmoments.analysis.correlations import correlations, partial_correlation
from dpmoments.analysis.cross_table import cross_table
from dpmoments.analysis.description import describe
from dpmoments.analysis.discriminant import lda
from dpmoments.analysis.distances import mahalanobis
from dpmoments.analysis.graphical_model import graphical_lasso
from dpmoments.analysis.group_means import group_means
from dpmoments.analysis.group_tests import anova, t_test
from dpmoments.analysis.regression import lasso, ols, ridge

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
