"""Mechanisms of the source papers that no default uses."""
