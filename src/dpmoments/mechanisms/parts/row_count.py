"""The number of rows by itself: a small part of the budget, where a mechanism has no cell for it or needs it first."""

from __future__ import annotations

import math

from dpmoments.mechanisms.parts.lattice_noise import noise_scale_for, with_noise
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.sensitivity import count, count_l1

__all__ = ["COUNT_SHARE", "count_error", "count_scale", "noisy_count", "split_for_count"]

COUNT_SHARE = 0.01
"""Share of ε or ρ for the number of rows, where it is private."""


def split_for_count(whole: PrivacyBudget) -> tuple[PrivacyBudget, PrivacyBudget]:
    """The part for the number of rows, and what is left. Laplace noise needs no δ, so under (ε, δ) all of δ is left.

    Examples
    --------
    >>> split_for_count(PrivacyBudget.approximate(1.0, 1e-6))
    (PrivacyBudget.pure(epsilon=0.01), PrivacyBudget.approximate(epsilon=0.99, delta=1e-06))
    """
    if whole.kind is not BudgetKind.APPROXIMATE:
        for_count, rest = whole.split(COUNT_SHARE, 1.0 - COUNT_SHARE)
        return for_count, rest
    for_count, rest = PrivacyBudget.pure(whole.epsilon).split(COUNT_SHARE, 1.0 - COUNT_SHARE)
    return for_count, PrivacyBudget.approximate(rest.epsilon, whole.delta)


def noisy_count(n_rows: int, privacy_filter: PrivacyFilter, loss: PrivacyBudget, neighbors: Neighbors) -> float:
    """A number of rows plus discrete noise (Laplace where the loss is pure, else Gaussian), rounded, at least 1."""
    pure = loss.kind is BudgetKind.PURE
    sensitivity = count_l1(neighbors) if pure else count(neighbors)
    noisy = with_noise(privacy_filter, "count", [n_rows], sensitivity, count_scale(loss), bits=0, pure=pure)
    return max(1.0, float(round(noisy[0])))


def count_scale(loss: PrivacyBudget) -> float:
    """Scale of the noise of :func:`noisy_count`; the sensitivity of a count is the same under both relations."""
    return noise_scale_for(loss, count(Neighbors.ADD_REMOVE).value)


def count_error(loss: PrivacyBudget) -> float:
    """Standard deviation of the noise of :func:`noisy_count`."""
    return count_scale(loss) * (math.sqrt(2.0) if loss.kind is BudgetKind.PURE else 1.0)
