"""Budgets, neighbouring relations, sensitivities and exact privacy curves."""

from dpmoments.privacy import curves, sensitivity
from dpmoments.privacy.budget import BudgetKind, Neighbors, PrivacyBudget

__all__ = ["BudgetKind", "Neighbors", "PrivacyBudget", "curves", "sensitivity"]
