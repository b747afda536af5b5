"""Functions that spend privacy budget: ``release``, ``release_groups`` and ``release_mean``."""
