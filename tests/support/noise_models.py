"""Noise models of the five families in one line each, for tests."""

from __future__ import annotations

from dpmoments.moments.models import AdditiveModel


def additive(
    family: str,
    n_features: int,
    diagonal: float,
    off_diagonal: float,
    of_sum: float | None,
    of_count: float | None,
    rate: float | None = None,
) -> AdditiveModel:
    return AdditiveModel(
        n_features=n_features,
        family=family,
        diagonal_variance=diagonal,
        off_diagonal_variance=off_diagonal,
        sum_variance=of_sum,
        count_variance=of_count,
        rate=rate,
    )


def gaussian(d: int, diagonal: float, off: float, of_sum: float | None, of_count: float | None) -> AdditiveModel:
    return additive("gaussian", d, diagonal, off, of_sum, of_count)


def laplace(d: int, diagonal: float, off: float, of_sum: float | None, of_count: float | None) -> AdditiveModel:
    return additive("laplace", d, diagonal, off, of_sum, of_count)
