"""Plots of releases."""
