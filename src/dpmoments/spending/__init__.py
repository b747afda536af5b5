"""Spending: ``release``, ``release_groups`` and ``release_mean``, all that spends a privacy budget."""
