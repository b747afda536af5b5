"""Functions that spend budget: ``release`` and ``release_groups``, ``_mean``, ``_counts``."""
