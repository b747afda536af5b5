"""How many examples a Hypothesis test tries."""

from __future__ import annotations

from hypothesis import settings

__all__ = ["examples"]


def examples(number: int) -> int:
    """A fifth of the number by default, all of them with ``--hypothesis-profile=default`` (``make test-slow``, ``make fuzz``)."""
    return -(-number // 5) if settings.get_current_profile_name() == "ci" else number
