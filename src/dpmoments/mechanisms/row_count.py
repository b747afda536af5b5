"""The number of rows by itself: a part of the budget, where a mechanism has no cell for it or needs it first."""

from __future__ import annotations

from types import MappingProxyType

from dpmoments.mechanisms.lattice_noise import noise_deviation, noise_scale_for, with_noise
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.filter import PrivacyFilter
from dpmoments.privacy.neighbors import Neighbors
from dpmoments.privacy.sensitivity import count, count_l1

__all__ = ["COUNT_SHARE", "count_error", "count_scale", "noisy_count", "split_for_count"]

COUNT_SHARE = 0.01
"""Share of ρ for the number of rows where a run of several steps counts first."""
PLANNED_SHARES = MappingProxyType({BudgetKind.ZCDP: 0.05, BudgetKind.PURE: 0.1, BudgetKind.APPROXIMATE: 0.1})
"""Share for the number of rows where every moment is divided by it at once: of ρ (Gaussian noise), or of ε (Laplace noise, which
falls with the share and not with its root)."""


def split_for_count(whole: PrivacyBudget, share: float | None = None) -> tuple[PrivacyBudget, PrivacyBudget]:
    """The part for the number of rows, and what is left. Laplace noise needs no δ, so under (ε, δ) all of δ is left.

    Parameters
    ----------
    whole : PrivacyBudget
    share : float, optional
        Default: of PLANNED_SHARES.

    Examples
    --------
    >>> for_count, rest = split_for_count(PrivacyBudget.approximate(1.0, 1e-6))
    >>> round(for_count.epsilon, 9), round(rest.epsilon, 9), rest.delta
    (0.1, 0.9, 1e-06)
    """
    share = PLANNED_SHARES[whole.kind] if share is None else share
    if whole.kind is not BudgetKind.APPROXIMATE:
        for_count, rest = whole.split(share, 1.0 - share)
        return for_count, rest
    for_count, rest = PrivacyBudget.pure(whole.epsilon).split(share, 1.0 - share)
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
    return noise_deviation(count_scale(loss), pure=loss.kind is BudgetKind.PURE)
