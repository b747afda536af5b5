"""Budgets, neighboring relations, sensitivities and exact privacy curves."""

from dpmoments.privacy import curves as curves
from dpmoments.privacy import sensitivity as sensitivity
from dpmoments.privacy.budget import BudgetKind as BudgetKind
from dpmoments.privacy.budget import PrivacyBudget
from dpmoments.privacy.unit import Neighbors

__all__ = ["Neighbors", "PrivacyBudget"]
