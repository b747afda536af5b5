"""Repairs: noisy moments made those of a possible table, from the noise distribution only."""

from dpmoments.repair.repair import Repair
from dpmoments.repair.repair import repair_gram as repair_gram
from dpmoments.repair.repair import repair_moments as repair_moments

__all__ = ["Repair"]
