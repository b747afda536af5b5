"""Mechanisms for means alone: one estimator a file; ``base.py`` is the contract they obey."""
