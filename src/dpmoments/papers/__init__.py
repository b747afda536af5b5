"""Mechanisms, bounds, metrics and data sets of the source papers that no default uses."""
