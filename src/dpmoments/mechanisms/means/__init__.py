"""Mechanisms for means alone: one estimator a file; ``base.py`` is the contract they obey."""

from dpmoments.mechanisms.means.release_mean import MeanRelease, release_mean

__all__ = ["MeanRelease", "release_mean"]
