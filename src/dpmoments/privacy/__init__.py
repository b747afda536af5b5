"""Budgets, neighbouring relations, sensitivities and exact privacy curves."""

from dpmoments.privacy import curves, sensitivity
from dpmoments.privacy.budget import BudgetKind, PrivacyBudget
from dpmoments.privacy.unit import Neighbors

__all__ = ["BudgetKind", "Neighbors", "PrivacyBudget", "curves", "sensitivity"]
