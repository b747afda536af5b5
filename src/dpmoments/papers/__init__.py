"""Mechanisms, bounds, metrics and data sets that no default needs where columns have bounds."""
