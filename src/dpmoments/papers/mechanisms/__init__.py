"""Mechanisms of the source papers, and for tables without bounds, loaded by name."""
