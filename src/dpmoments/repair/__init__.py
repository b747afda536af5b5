"""Repairs: noisy moments made those of a possible table, and more accurate, from the public noise law alone."""

from dpmoments.repair.repair import Repair, repair_gram, repair_moments

__all__ = ["Repair", "repair_gram", "repair_moments"]
